// SPDX-License-Identifier: Apache-2.0
//
// Emptying segments, one at a time: what is dead is dropped, of what is alive a rule keeps some and
// evicts the rest. Keeping means copying to the open segment of the copier's own lane. An emptied
// segment goes to limbo, and from there to the free ones when every batch that could have seen it
// has ended and no pin holds it.
//
// For maintenance alone: one thread at a time (Maintenance's mutex). Requests go on meanwhile.
#pragma once

#include <cstdint>

#include "store/store_ref.h"

namespace warpcache::store {

// Which live items stay when a segment is emptied.
struct KeepRule {
  uint32_t counter_min = 0;  // used at least as often; 0: all stay, above 3: none does
  Generation to = Generation::kMain;
  bool spend = false;  // a stay costs one access of the counter
};

enum class Emptied : uint8_t {
  kDone,     // it is in limbo
  kNotYet,   // a batch that may still write to it has not ended, or its owner holds it
  kNoSpace,  // there was nowhere to copy to; what was moved is moved
};

class Reclaimer {
 public:
  // `thread` is the reclaimer's own and stays the caller's.
  Reclaimer(const Core& core, ThreadContext* thread) : core_(core), thread_(*thread) {}

  // Frees what waits in limbo and is unseen. Returns how many segments.
  uint32_t free_limbo();
  // Segments in limbo that no pin holds: free as soon as the batches under way have ended.
  uint32_t limbo_unpinned() const;

  // Empties a sealed segment. With `must_keep` a live item is never evicted for want of space.
  Emptied empty_segment(SegmentId id, const KeepRule& rule, bool must_keep);
  // The same for a chain, by its head: it stays by going to the newest place of the main
  // generation. kNotYet: it stayed.
  Emptied judge_chain(SegmentId head, const KeepRule& rule);
  // Copies a chain to other segments, so that its own become free. Evicts it if there is no space,
  // unless must_keep.
  Emptied move_chain(SegmentId head, bool must_keep);

  // The oldest epoch that a reader is in: what was sealed or unlinked with a lower ticket is
  // unseen.
  uint64_t oldest_inside() const {
    return oldest_epoch(core_.epochs, load_seq_cst(&core_.shared->epoch_slots));
  }
  // Whether every batch that could write to a sealed segment has ended.
  bool walkable(SegmentId id) const;
  // Ends appending to the copier's own open segment if it is `id`.
  bool seal_own(SegmentId id);

  uint64_t copied_bytes() const { return copied_bytes_; }

 private:
  enum class Fate : uint8_t { kDead, kStays, kEvicted };

  struct Judged {
    Fate fate = Fate::kDead;
    uint32_t counter = 0;
  };

  Way locate(Set* pair, const Item* item, uint64_t hash) const;
  Judged judge(Item* item, uint64_t hash, const KeepRule& rule);
  void drop_locked(Set* pair, const Way& place, Item* item, bool evicted);
  bool keep(Item* item, uint64_t hash, const KeepRule& rule, bool must_keep);
  bool swap(Item* from, Item* to, uint64_t hash, const KeepRule& rule);
  uint8_t* space(uint32_t bytes, Generation generation);

  Core core_;
  ThreadContext& thread_;
  SegmentId open_[2] = {kNoSegment, kNoSegment};  // by generation
  uint64_t copied_bytes_ = 0;
};

}  // namespace warpcache::store
