// SPDX-License-Identifier: Apache-2.0
//
// Keeps segments free: decides which segment is emptied next and by which rule. A thread of its own
// does it ahead of need; a worker that has run out does the same steps itself, between batches.
//
// Order of preference:
//   1. what waits in limbo and is unseen
//   2. segments with nothing alive in them: deleted, replaced, expired; then those flushed
//   3. segments of which little is alive: compaction, keeping all
//   4. with keep_all: any compaction that gains something. Else eviction: the oldest segment of the
//   young generation
//      when that has more than its share (what was used since it was stored moves to main), else
//      the oldest of main (what was used stays, at the price of one access)
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>

#include "base/status.h"
#include "store/memory.h"
#include "store/reclaim.h"

namespace warpcache::store {

class Maintenance {
 public:
  // `arena` and what `core` points to outlive this. `thread` is maintenance's own.
  Maintenance(const Core& core, Mapping* arena, ThreadContext* thread, uint32_t room_wait_ms_max);
  ~Maintenance();

  // The thread calls `every_second` once a second, and reclaims when segments get few.
  void start(void (*every_second)(void*), void* context);
  void stop();

  // From any thread, with locks held: there is work.
  void wake();

  // See Store. Outside batches.
  Status make_room(uint64_t bytes);
  void maintain();
  uint64_t set_limit(uint32_t segments);
  void flush();   // everything stored before is dead
  void expire();  // bulk expiry: segments whose time has passed

  // The least number of segments that a store works with.
  static uint32_t segments_min(uint32_t index_segments) { return index_segments + 8; }
  // What the low-water mark is for a limit.
  static uint32_t low_water(uint32_t limit, uint32_t reserve) {
    const uint32_t share = limit / 256;
    return reserve + (share > 2 ? share : 2);
  }

 private:
  enum class Step : uint8_t {
    kProgress,
    kWait,     // batches must end first
    kNothing,  // nothing can be had
  };
  // What a look over the segments found. kNoSegment where there is none.
  struct Survey {
    SegmentId dead = kNoSegment;      // nothing alive
    SegmentId wasteful = kNoSegment;  // the one that compacting gains most of
    uint32_t waste = 0;               // bytes in it
    uint64_t waste_bytes = 0;         // in all
    SegmentId outdated = kNoSegment;  // something in it has expired or been flushed
    SegmentId flushed = kNoSegment;   // sealed before the last flush
    bool waiting = false;             // there are some whose batches have not ended
  };

  void run();
  Step step();
  SegmentId choose_compaction(const Survey& survey) const;
  Step compact(const Survey& survey);
  Step evict();
  Step empty(SegmentId id, const KeepRule& rule, bool must_keep);
  Step free_wanted();
  bool seal_lane_segment(SegmentId id);
  bool seal_sparse_lanes();
  Survey survey(uint32_t most);
  void survey_segment(SegmentId id, uint32_t now, uint64_t oldest_inside, Survey& survey);
  bool swap_absent(SegmentId wanted);
  uint32_t free_count() const { return load_relaxed(&core_.shared->free_count); }
  uint32_t coming() const { return free_count() + reclaimer_.limbo_unpinned(); }
  bool shrink_by_one();
  Step shrink();
  void grow();

  Core core_;
  Mapping* arena_;
  Reclaimer reclaimer_;
  uint32_t room_wait_ms_max_;

  std::mutex mutex_;           // one reclaims at a time; guards what follows
  uint32_t cursor_ = 0;        // where the next survey begins
  uint64_t flush_ticket_ = 0;  // segments sealed at or before it have flushed items
  uint32_t limit_target_;      // segments; the limit goes down to it as maintenance gets there
  uint32_t fruitless_compactions_ = 0;
  uint64_t fruitless_ = 0;  // bytes copied lately without gaining as much

  std::mutex wake_mutex_;
  std::condition_variable wake_condition_;
  uint32_t awake_ = 0;     // atomic: work is known
  bool stopping_ = false;  // guarded by wake_mutex_
  void (*every_second_)(void*) = nullptr;
  void* context_ = nullptr;
  std::thread thread_;
};

}  // namespace warpcache::store
