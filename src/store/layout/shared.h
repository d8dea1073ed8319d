// SPDX-License-Identifier: Apache-2.0
//
// The words that all threads of a store share. They lie in memory that requests can reach (on a
// device: device memory); the owner zeroes and fills them before the first use. Words that change
// often have cache lines of their own.
#pragma once

#include <cstdint>

#include "base/bytes.h"
#include "base/hd.h"
#include "store/layout/flush_marks.h"
#include "store/layout/item.h"
#include "store/layout/segment.h"
#include "store/layout/thread.h"
#include "store/reclaim/epoch.h"

namespace warpcache::store {

inline constexpr uint32_t kExpiryClassesMax = 4;
inline constexpr uint32_t kFreeWordSegments = 64;

class Observer;  // observer.h
class Faults;

// Who owns copies of items outside of the store: see index/copies.h. Functions of the host; device
// code never calls them. All null: there are no copies. drop() is called with the lock of the key's
// pair held, from any thread, and must not block for long.
struct CopyHooks {
  void* context = nullptr;
  void (*drop)(void* context, Bytes key) = nullptr;
  void (*flush)(void* context, uint32_t generation) = nullptr;  // the store's next one
  void (*clock)(void* context, uint32_t now) = nullptr;         // server second
};

// How a device says that it evicts an item with a copy, and waits until that is taken away. In
// pinned host memory. Device code fills it with Shared::evicted_mail_lock held.
struct EvictedMail {
  static constexpr uint32_t kClosed = UINT32_MAX;  // `answered`: nobody answers any more

  alignas(64) uint32_t sent;  // counts them; never kClosed
  uint32_t key_size;
  uint8_t key[256];
  alignas(64) uint32_t answered;  // the last of `sent` whose copy is gone. The host writes it
};

// Where a thread appends. An append point has one open segment for each expiry class.
struct alignas(64) AppendPoint {
  uint32_t lock;
  SegmentId open[kExpiryClassesMax];
  uint32_t reserved[11];
};
static_assert(sizeof(AppendPoint) == 64);

struct Shared {
  // Constant after creation.
  uint64_t seed;
  uint32_t segment_shift;
  uint32_t segments_max;  // entries of the table: the limit can be raised to this
  uint32_t base_depth;    // the index starts with 2^base_depth pairs
  uint32_t append_point_count;
  uint32_t expiry_classes;
  uint32_t low_water_share;
  uint32_t copy_reserve;      // segments that only maintenance may take
  bool keep_all;              // -M: nothing alive is evicted
  Observer* observer;         // null: none; device code never calls it
  Faults* faults;             // likewise
  CopyHooks copies;           // likewise
  EvictedMail* evicted_mail;  // of a device whose items have copies; else null
  // Called by any thread, with locks held: must not block for long. May be null.
  void (*low_on_segments)(void* context);
  void* low_on_segments_context;
  // Gives the pages of an absent segment back to the system. May be null.
  void (*drop_pages)(void* context, SegmentId id);
  void* drop_pages_context;

  // Every batch reads these; they change seldom.
  alignas(64) uint32_t pair_count;  // of the index
  uint32_t index_segments;
  uint32_t now;  // server second
  uint32_t flush_generation;
  int64_t unix_start;
  uint32_t segment_limit;   // segments that are not absent
  uint32_t segment_wanted;  // the index needs it next and it is not free; kNoSegment: none

  uint32_t epoch_slots;   // slots that have ever been taken; later ones need no look
  uint64_t flush_ticket;  // segments sealed at this ticket or before hold flushed items

  alignas(64) uint64_t epoch;       // see epoch.h
  alignas(64) uint64_t cas_batch;   // the last batch of CAS ids that was given out
  alignas(64) uint32_t split_lock;  // one split at a time
  alignas(64) uint64_t items;       // in the index, without what threads have not reported yet

  alignas(64) uint32_t segment_lock;  // guards what follows, states and queues
  uint32_t free_count;
  uint32_t free_top;           // no free segment at or above it; of a split arena: no near one
  uint32_t far_free_top;       // the same for far ones
  uint32_t segment_top;        // all segments at or above it are absent
  uint32_t low_water;          // with fewer free segments maintenance is woken
  uint32_t reserved_segments;  // held by reservations
  uint32_t pinned_segments;    // atomic
  SegmentQueue young;
  SegmentQueue main;
  SegmentQueue retired;
  SegmentQueue tails;  // those with free pages

  // Flushes. Requests look at them only for items of another generation than flush_generation.
  alignas(64) FlushMark flush_mark;  // of flush_all
  uint32_t folded_generation;        // no item is earlier, and no reader holds one that was
  uint32_t flushed_prefix_count;     // slots that have ever been used
  uint32_t flushed_prefix_limit;     // slots that may be used; constant after creation
  uint32_t flush_lock;               // one flush at a time
  uint32_t flushes_due;              // 1: some prefix has a second at which it is flushed
  uint32_t evicted_mail_lock;        // guards `evicted_mail`; taken last
  FlushedPrefix flushed_prefixes[kFlushedPrefixesMax];

  // What eviction learns from: see reclaim/young_share.h. Atomic; by Generation.
  alignas(64) uint64_t evicted_from[2];  // items that the index remembers or has remembered
  uint64_t returned_from[2];             // of these, stored again while it did
  // What it has learnt. Written by maintenance, guarded by segment_lock.
  alignas(64) uint32_t young_share;  // of the sealed segments, in 65536ths
  // Of a device while somebody watches evictions: the address of its EvictionLog
  // (index/eviction_log.h); else 0. It changes while kernels run.
  uint64_t eviction_log;
  uint32_t low_water_share_max;  // see reclaim/low_water.h; constant after creation
};

}  // namespace warpcache::store
