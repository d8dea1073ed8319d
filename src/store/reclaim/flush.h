// SPDX-License-Identifier: Apache-2.0
//
// flush_all and flush_prefix, in the same time whatever is stored. Any thread may call the
// functions, also while another one runs the Maintainer: they wait for other flushes only.
#pragma once

#include <cstdint>

#include "base/status.h"
#include "store/index/copies.h"
#include "store/index/flushed.h"
#include "store/reclaim/epoch.h"

namespace warpcache::store {

namespace detail {

// Everything that `mark` concerns and was stored before is dead from now on. REQUIRES: the lock of
// flushes is held.
WC_HD inline void flush_by(const Core& core, FlushMark& mark) {
  Shared& shared = *core.shared;
  const uint32_t generation = load_relaxed(&shared.flush_generation) + 1;
  flush_copies(core, generation);
  store_release(&mark.before, load_relaxed(&mark.generation));
  store_release(&mark.generation, generation);
  store_release(&shared.flush_generation, generation);
}

// No item is so old that the mark concerns it, and no reader holds one.
WC_HD inline bool is_folded(const Shared& shared, const FlushedPrefix& prefix) {
  return prefix.due == 0 &&
         !is_later(load_relaxed(&prefix.mark.generation), load_acquire(&shared.folded_generation));
}

// The slot of a prefix: its own, a free one, or one more. Null: there are too many. REQUIRES: the
// lock of flushes is held.
WC_HD inline FlushedPrefix* slot_of_prefix(Shared& shared, Bytes text) {
  const uint32_t count = load_relaxed(&shared.flushed_prefix_count);
  FlushedPrefix* free = nullptr;
  for (uint32_t i = 0; i < count; ++i) {
    FlushedPrefix& prefix = shared.flushed_prefixes[i];
    if (equal(text, Bytes{prefix.text, prefix.size})) return &prefix;
    if (free == nullptr && i < shared.flushed_prefix_limit && is_folded(shared, prefix)) {
      free = &prefix;
    }
  }
  const bool is_new = free == nullptr && count < shared.flushed_prefix_limit;
  if (is_new) free = &shared.flushed_prefixes[count];
  if (free == nullptr) return nullptr;
  const uint32_t folded = load_relaxed(&shared.folded_generation);
  mem_copy(free->text, text.data, text.size);
  free->size = static_cast<uint32_t>(text.size);
  store_relaxed(&free->due, 0);
  store_release(&free->mark.before, folded);
  store_release(&free->mark.generation, folded);
  if (is_new) store_release(&shared.flushed_prefix_count, count + 1);
  return free;
}

}  // namespace detail

// Everything stored before is dead from now on. Maintainer::sweep() removes it later.
WC_HD inline void flush_store(const Core& core) {
  Shared& shared = *core.shared;
  {
    const SpinGuard flushes(&shared.flush_lock);
    detail::flush_by(core, shared.flush_mark);
  }
  raise_to(&shared.flush_ticket, draw_ticket(&shared.epoch));
}

// The same for items whose keys begin with `text`. With `due` that is so from this server second
// on, as soon as flush_due_prefixes() sees it; without, from now on. A later call for the
// same text replaces one that is not due yet. kOutOfMemory: flushed_prefix_limit prefixes have been
// flushed and not yet swept, and nothing happens. REQUIRES: 1 to kFlushedPrefixSizeMax bytes.
WC_HD inline Status flush_prefix(const Core& core, Bytes text, uint32_t due) {
  Shared& shared = *core.shared;
  const SpinGuard flushes(&shared.flush_lock);
  FlushedPrefix* const prefix = detail::slot_of_prefix(shared, text);
  if (prefix == nullptr) return Status::kOutOfMemory;
  store_relaxed(&prefix->due, due);
  if (due == 0) {
    detail::flush_by(core, prefix->mark);
  } else {
    store_relaxed(&shared.flushes_due, 1);
  }
  return Status::kOk;
}

// Flushes the prefixes that are due at second `now`.
WC_HD inline void flush_due_prefixes(const Core& core, uint32_t now) {
  Shared& shared = *core.shared;
  if (load_relaxed(&shared.flushes_due) == 0) return;
  const SpinGuard flushes(&shared.flush_lock);
  uint32_t later = 0;
  const uint32_t count = load_relaxed(&shared.flushed_prefix_count);
  for (uint32_t i = 0; i < count; ++i) {
    FlushedPrefix& prefix = shared.flushed_prefixes[i];
    if (prefix.due > now) later = 1;
    if (prefix.due == 0 || prefix.due > now) continue;
    store_relaxed(&prefix.due, 0);
    detail::flush_by(core, prefix.mark);
  }
  store_relaxed(&shared.flushes_due, later);
}

// Prefixes that have been flushed and not yet swept, or will be flushed. Other threads may change
// them meanwhile.
inline uint32_t flushed_prefixes(const Shared& shared) {
  uint32_t used = 0;
  const uint32_t count = load_acquire(&shared.flushed_prefix_count);
  const uint32_t folded = load_relaxed(&shared.folded_generation);
  for (uint32_t i = 0; i < count; ++i) {
    const FlushedPrefix& prefix = shared.flushed_prefixes[i];
    const bool swept = !is_later(load_relaxed(&prefix.mark.generation), folded);
    if (!swept || load_relaxed(&prefix.due) != 0) ++used;
  }
  return used;
}

}  // namespace warpcache::store
