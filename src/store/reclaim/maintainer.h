// SPDX-License-Identifier: Apache-2.0
//
// Maintenance as single steps: each decides which segment is emptied next, and by which rule. One
// thread at a time calls it, on the host or on a device. The owner decides who runs it and when
// (maintenance.h on the host).
//
// Order of preference:
// 1. retired segments that no batch can see: they become free
// 2. segments with nothing alive in them: deleted, replaced, expired; then those flushed
// 3. segments of which little is alive: compaction, which keeps all that is alive
// 4. with keep_all: any compaction that gains something. Without it eviction: the oldest segment of
// the young generation while that has more than its share (items used since they were stored move
// to main), else the oldest of main (items used stay, and lose one access, or all: young_share.h)
#pragma once

#include <cstdint>

#include "store/reclaim/evacuators.h"
#include "store/reclaim/flush.h"
#include "store/reclaim/item_means.h"
#include "store/reclaim/limit.h"
#include "store/reclaim/low_water.h"
#include "store/reclaim/young_share.h"

namespace warpcache::store {

namespace detail {

// Segments that are looked at before a choice: as many more as emptying one costs more.
inline constexpr uint32_t kSurveyMin = 1024;
inline constexpr uint32_t kSurveyShare = 256;
inline constexpr uint32_t kSweepPairsMax = 1024;  // pairs that one step of sweep() visits
// A segment is compacted instead of evicted once more than 1/kCompactWasteDivisor of it is dead;
// with keep_all once 1/kCompactWasteDivisorKeepAll is.
inline constexpr uint32_t kCompactWasteDivisor = 4;
inline constexpr uint32_t kCompactWasteDivisorKeepAll = 16;
// Segments copied in vain for which an item needs one access more to be copied again. One chain of
// small segments must not be enough.
inline constexpr uint32_t kFruitlessSegments = 16;
// Compactions in a row that may free no segment; then something else is tried. Copying items to
// new segments may gain nothing.
inline constexpr uint32_t kFruitlessMax = 2 * kCompactWasteDivisor;
inline constexpr uint32_t kFruitlessMaxKeepAll = 2 * kCompactWasteDivisorKeepAll;

template <typename T>
WC_HD constexpr T least(T a, T b) {
  return a < b ? a : b;
}

}  // namespace detail

class Maintainer {
 public:
  // What `core` points to outlives the Maintainer. `thread`, `worker_group` and `evacuators` belong
  // to the caller; only the Maintainer uses them.
  WC_HD Maintainer(const Core& core, ThreadContext* thread, WorkerGroup* worker_group,
                   Evacuators* evacuators)
      : core_(core),
        thread_(*thread),
        worker_group_(*worker_group),
        evacuators_(*evacuators),
        reclaimer_(core, thread, worker_group),
        limit_target_(core.shared->segment_limit) {}

  enum class Step : uint8_t {
    kProgress,
    kWait,     // batches must end first
    kNothing,  // nothing to do, or nothing can be freed
  };
  enum class Space : uint8_t {
    kReady,     // an allocation may succeed now
    kProgress,  // call again
    kWait,      // batches must end first
    kNone,      // nothing can be reclaimed
  };

  // Worst case: 8 steps of 1024 pairs take 16 ms a second of one core, at about 50,000 items a
  // millisecond.
  static constexpr uint32_t kSweepStepsMax = 8;
  static constexpr uint32_t kExpireStepsMax = 4096;
  // Twice what maintain() refills to in a store of a thousand segments. More is left to the next
  // second.
  static constexpr uint32_t kEvictAheadStepsMax = 16;
  // Steps of one call. Only a bug reaches it, no load does.
  static constexpr uint32_t kStepsMax = 1u << 20;

  // Frees retired segments, reclaims up to the low-water mark and moves the limit towards its
  // target, in `steps_max` steps at most. True: there is more to do at once.
  WC_HD bool maintain(uint32_t steps_max);
  // One step that reclaims space for an item of `bytes`.
  WC_HD Space reclaim(uint64_t bytes);
  // Retires those of the `newest` last sealed young segments in which nothing is alive.
  WC_HD void retire_dead(uint32_t newest) { reclaimer_.retire_dead(newest); }
  // Empties one segment in which everything has expired. True: call again, but at most
  // kExpireStepsMax times a second.
  WC_HD bool expire();
  // In a full store: evicts one segment more than maintain() does. Called once a second, so that
  // evictions by a slow stream of sets are seen within a second, not only when the next segment is
  // full. True: call again.
  WC_HD bool evict_ahead();
  // Removes expired and flushed items from the next pairs of the index. False: nothing is left to
  // look at, until expire() finds that more has expired or something is flushed. A caller makes at
  // most kSweepStepsMax steps a second.
  WC_HD bool sweep();
  // Sets the limit that maintain() moves to; with keep_all it stops at what is stored. False: the
  // target is out of reach, or less than the store works with, and nothing changes.
  WC_HD bool set_target(uint32_t segments);

  // Seals the segments that it copies to itself.
  WC_HD void seal_all() { reclaimer_.seal_all(); }

 private:
  WC_HD Step step();
  WC_HD SegmentId choose_compaction(const Survey& survey) const;
  WC_HD Step compact(const Survey& survey);
  WC_HD Step evict();
  WC_HD Step empty(SegmentId id, const KeepRule& rule, bool must_keep);
  WC_HD Step empty_all(const SegmentId* ids, uint32_t count, const KeepRule& rule);
  WC_HD uint32_t at_once_max() const;
  WC_HD uint32_t collect(const Survey& survey, SegmentId victim, SegmentId* victims);
  WC_HD uint64_t copied_bytes() const;
  WC_HD Step free_wanted();
  WC_HD bool seal_open_segment(SegmentId id);
  WC_HD bool seal_sparse_segments();
  WC_HD uint32_t survey_most() const {
    const uint32_t share = core_.segment_size() / detail::kSurveyShare;
    return share > detail::kSurveyMin ? share : detail::kSurveyMin;
  }
  WC_HD Survey survey(uint32_t most);
  WC_HD bool swap_absent(SegmentId wanted);
  WC_HD uint32_t free_count() const { return load_relaxed(&core_.shared->free_count); }
  WC_HD uint32_t coming() const { return free_count() + reclaimer_.retired_unpinned(); }
  WC_HD bool shrink_by_one();
  WC_HD Step shrink();
  WC_HD Step grow();
  WC_HD Step move_limit();

  Core core_;
  ThreadContext& thread_;
  WorkerGroup& worker_group_;
  Evacuators& evacuators_;
  Reclaimer reclaimer_;
  YoungShare young_share_;
  LowWater low_water_;
  uint32_t cursor_ = 0;      // where the next survey begins
  uint32_t limit_target_;    // segments; the limit moves there step by step
  SegmentId grow_at_ = 1;    // where absent segments are looked for next
  PairNumber sweep_at_ = 0;  // where the next step of sweep() begins
  uint32_t sweep_left_ = 0;  // pairs that it has to look at
  FlushPass flush_pass_;
  bool refilling_ = false;  // reclaiming until above the low-water mark
  bool full_ = false;       // it has been below that mark
  uint32_t fruitless_compactions_ = 0;
  uint64_t fruitless_ = 0;  // bytes copied recently without gaining as much
};

// Empties a segment or chain. Returns what that means for a caller that waits for free space.
WC_HD inline Maintainer::Step Maintainer::empty(SegmentId id, const KeepRule& rule,
                                                bool must_keep) {
  const bool chain = core_.segment(id).load_state() == SegmentState::kChain;
  if (chain) {
    if (reclaimer_.judge_chain(id, rule) == Emptied::kNotYet) {
      fruitless_ += uint64_t{load_relaxed(&core_.segment(id).chain_length)} << core_.segment_shift;
    }
    return Step::kProgress;
  }
  switch (reclaimer_.empty_segment(id, rule, must_keep)) {
    case Emptied::kDone:
      return Step::kProgress;
    case Emptied::kNotYet:
      return Step::kWait;
    case Emptied::kNoSpace:
      return reclaimer_.retired_unpinned() != 0 ? Step::kWait : Step::kNothing;
  }
  return Step::kNothing;
}

// Empties several segments: the leader the first, evacuators the others. All are of one generation,
// and their items go to one generation. REQUIRES: at most at_once_max().
WC_HD inline Maintainer::Step Maintainer::empty_all(const SegmentId* ids, uint32_t count,
                                                    const KeepRule& rule) {
  Evacuator* evacuators[kEvacuationsMax];
  if (count > 1) (void)evacuators_.ready(evacuators);
  for (uint32_t i = 1; i < count; ++i) evacuators[i - 1]->give(ids[i], rule);
  Step step = empty(ids[0], rule, false);
  for (uint32_t i = 1; i < count; ++i) {
    if (evacuators[i - 1]->wait() == Emptied::kDone) step = Step::kProgress;
  }
  return step;
}

// How many segments can be emptied at the same time. Each may need a free segment for the items
// that stay. With keep_all only one, since there may be too few free segments for more.
WC_HD inline uint32_t Maintainer::at_once_max() const {
  if (evacuators_.count == 0 || core_.shared->keep_all) return 1;
  Evacuator* evacuators[kEvacuationsMax];
  const uint32_t free = free_count();
  return detail::least(evacuators_.ready(evacuators) + 1, free > 1 ? free : 1);
}

WC_HD inline uint64_t Maintainer::copied_bytes() const {
  uint64_t sum = reclaimer_.copied_bytes();
  for (uint32_t i = 0; i < evacuators_.count; ++i) sum += evacuators_.list[i].copied_bytes();
  return sum;
}

// Looks at the next segments, at most `most`, until one is dead.
WC_HD inline Survey Maintainer::survey(uint32_t most) {
  SurveyTask& task = worker_group_.survey;
  task = {};
  task.now = load_relaxed(&core_.shared->now);
  // A segment sealed after this read has a higher ticket and counts as in use: that is safe.
  task.oldest_inside = reclaimer_.oldest_inside();
  task.flush_ticket = load_relaxed(&core_.shared->flush_ticket);
  task.first = load_relaxed(&core_.shared->index_segments);
  task.end = load_relaxed(&core_.shared->segment_top);
  task.start = cursor_ < task.first || cursor_ >= task.end ? task.first : cursor_;
  task.count = detail::least(most, task.end - task.first);
  if (task.count == 0) return {};
  worker_group_.run(core_, thread_, Task::kSurvey);
  const uint32_t last = task.dead != SurveyTask::kNowhere ? task.dead : task.count - 1;
  cursor_ = task.id_at(last) + 1;
  return surveyed(task);
}

// The segment that is worth compacting; kNoSegment: there is none.
WC_HD inline SegmentId Maintainer::choose_compaction(const Survey& survey) const {
  const uint32_t size = core_.segment_size();
  if (!core_.shared->keep_all)
    return survey.waste >= size / detail::kCompactWasteDivisor ? survey.wasteful : kNoSegment;
  if (survey.outdated != kNoSegment) return survey.outdated;
  const bool worth =
      survey.waste >= size / detail::kCompactWasteDivisorKeepAll && survey.waste_bytes >= size;
  return worth ? survey.wasteful : kNoSegment;
}

// Lists `victim` and others of its generation that waste about as much. Returns how many.
WC_HD inline uint32_t Maintainer::collect(const Survey& survey, SegmentId victim,
                                          SegmentId* victims) {
  victims[0] = victim;
  uint32_t count = 1;
  const uint32_t most = at_once_max();
  if (most == 1 || victim != survey.wasteful) return count;
  CollectTask& more = worker_group_.collect;
  more.waste_min = survey.waste - survey.waste / detail::kCompactWasteDivisor;
  more.count = 0;
  worker_group_.run(core_, thread_, Task::kCollect);
  const SegmentState state = core_.segment(victim).load_state();
  for (uint32_t i = 0; i < detail::least(more.count, CollectTask::kMax) && count < most; ++i) {
    const SegmentId id = more.found[i];
    if (id != victim && core_.segment(id).load_state() == state) victims[count++] = id;
  }
  return count;
}

// Compacts a segment, or several, keeping all that is alive. kNothing: none is worth it.
WC_HD inline Maintainer::Step Maintainer::compact(const Survey& survey) {
  const bool must_keep = core_.shared->keep_all;
  const SegmentId victim = choose_compaction(survey);
  if (victim == kNoSegment) return Step::kNothing;
  if (++fruitless_compactions_ >
      (must_keep ? detail::kFruitlessMaxKeepAll : detail::kFruitlessMax)) {
    fruitless_compactions_ = 0;
    return Step::kNothing;
  }
  // Copying needs free segments. Where retired ones become free soon, wait instead of evicting.
  if (free_count() < core_.shared->copy_reserve && reclaimer_.retired_unpinned() != 0)
    return Step::kWait;
  KeepRule rule;
  const bool young = core_.segment(victim).load_state() == SegmentState::kYoung;
  rule.to = young ? Generation::kYoung : Generation::kMain;
  const uint32_t before = coming();
  SegmentId victims[kEvacuationsMax];
  const uint32_t count = collect(survey, victim, victims);
  const Step step = count == 1 ? empty(victim, rule, must_keep) : empty_all(victims, count, rule);
  if (coming() > before) fruitless_compactions_ = 0;
  return step;
}

WC_HD inline Maintainer::Step Maintainer::evict() {
  Shared& shared = *core_.shared;
  SegmentId victims[kEvacuationsMax];
  uint32_t count = 0;
  uint64_t segments = 0;  // of the victims
  KeepRule rule;
  const uint32_t most = at_once_max();
  young_share_.adapt(shared, reported_items(load_relaxed(&shared.items)));
  {
    SpinGuard guard(&shared.segment_lock);
    const uint64_t sealed = uint64_t{shared.young.segments} + shared.main.segments;
    const bool young = shared.main.segments == 0 ||
                       uint64_t{shared.young.segments} << 16 > sealed * shared.young_share;
    const SegmentQueue& queue =
        young && shared.young.oldest != kNoSegment ? shared.young : shared.main;
    rule.from = &queue == &shared.young ? Generation::kYoung : Generation::kMain;
    rule.spend = rule.from == Generation::kYoung ? Spend::kAll : main_spend(shared.young_share);
    for (SegmentId id = queue.oldest; id != kNoSegment; id = core_.segment(id).queue_newer) {
      // Only the leader moves chains. The newest segments of a short queue stay.
      const bool chain = core_.segment(id).load_state() == SegmentState::kChain;
      if (count != 0 && (chain || count == most || count > queue.segments / 8)) break;
      victims[count++] = id;
      segments += load_relaxed(&core_.segment(id).chain_length);
      if (chain) break;
    }
  }
  if (count == 0) return Step::kNothing;
  if (free_count() < core_.shared->copy_reserve && reclaimer_.retired_unpinned() != 0)
    return Step::kWait;
  // Why this ends: the more bytes are copied without gain, the more accesses an item needs to be
  // copied again.
  const uint64_t segment = core_.segment_size();
  rule.counter_min = 1 + static_cast<uint32_t>(detail::least(
                             fruitless_ / (detail::kFruitlessSegments * segment), uint64_t{3}));
  rule.ghosts = ghosts_a_set(core_);
  if (rule.counter_min == 1) {
    rule.mean = mean_item(core_);
    rule.small_max = rule.from == Generation::kYoung ? young_share_.small_max(shared, rule.mean)
                                                     : rule.mean / kSmallDivisor;
  }
  const uint64_t before = copied_bytes();
  const Step step = empty_all(victims, count, rule);
  fruitless_ += copied_bytes() - before;
  fruitless_ -= detail::least(fruitless_, segments * segment * 3 / 4);
  return step;
}

// One step towards more free segments, beyond those that are retired.
WC_HD inline Maintainer::Step Maintainer::step() {
  // With keep_all a failure reaches a client, so all segments are looked at first.
  const Survey found = survey(core_.shared->keep_all ? UINT32_MAX : survey_most());
  KeepRule rule;
  const SegmentId dead = found.dead != kNoSegment ? found.dead : found.flushed;
  if (dead != kNoSegment) {
    rule.to = Generation::kMain;
    const Step done = empty(dead, rule, core_.shared->keep_all);
    if (done == Step::kProgress) return done;
  }
  const Step compacted = compact(found);
  if (compacted != Step::kNothing) return compacted;
  if (!core_.shared->keep_all) return evict();
  return seal_sparse_segments() || found.in_use ? Step::kWait : Step::kNothing;
}

// Seals open segments of append points that are mostly dead. False: there are none.
WC_HD inline bool Maintainer::seal_sparse_segments() {
  bool sealed = false;
  const uint64_t size = core_.segment_size();
  for (uint32_t i = 0; i < core_.shared->append_point_count; ++i) {
    AppendPoint& point = core_.append_points[i];
    SpinGuard guard(&point.lock);
    for (SegmentId& open : point.open) {
      if (open == kNoSegment) continue;
      const SegmentEntry& entry = core_.segment(open);
      if (load_relaxed(&entry.pages) != 0) continue;  // what is reserved there is not dead
      const uint64_t dead = load_relaxed(&entry.used) - load_relaxed(&entry.live);
      if (dead < size / detail::kCompactWasteDivisorKeepAll ||
          load_relaxed(&entry.used) * 2ull < size)
        continue;
      seal_segment(core_, open);
      open = kNoSegment;
      sealed = true;
    }
  }
  return sealed;
}

// --- The segment that the index wants next

// Seals `id` if it is an append point's open segment. False: it is none.
WC_HD inline bool Maintainer::seal_open_segment(SegmentId id) {
  for (uint32_t i = 0; i < core_.shared->append_point_count; ++i) {
    AppendPoint& point = core_.append_points[i];
    SpinGuard guard(&point.lock);
    for (SegmentId& open : point.open) {
      if (open != id) continue;
      seal_segment(core_, id);
      open = kNoSegment;
      return true;
    }
  }
  for (uint32_t i = 0; i < evacuators_.count; ++i) {
    if (evacuators_.list[i].seal_own(id)) return true;
  }
  return reclaimer_.seal_own(id);
}

// Adds `wanted`, which is beyond the limit, and removes a free segment in its place.
WC_HD inline bool Maintainer::swap_absent(SegmentId wanted) {
  SegmentId other = kNoSegment;
  {
    SpinGuard guard(&core_.shared->segment_lock);
    if (core_.shared->free_count <= core_.shared->copy_reserve) return false;
    other = detail::highest_free(core_);
    if (other == kNoSegment) return false;
    detail::unmark_free(core_, other);
    core_.segment(other).store_state(SegmentState::kAbsent);
  }
  detail::drop_pages(core_, other);
  Shared& shared = *core_.shared;
  SpinGuard guard(&shared.segment_lock);
  detail::mark_free(core_, wanted);
  if (wanted >= shared.segment_top) store_relaxed(&shared.segment_top, wanted + 1);
  return true;
}

WC_HD inline Maintainer::Step Maintainer::free_wanted() {
  const SegmentId wanted = load_relaxed(&core_.shared->segment_wanted);
  if (wanted == kNoSegment) return Step::kNothing;
  const bool must_keep = core_.shared->keep_all;
  KeepRule rule;
  switch (core_.segment(wanted).load_state()) {
    case SegmentState::kAbsent:
      return swap_absent(wanted) ? Step::kProgress : Step::kNothing;
    case SegmentState::kOpen:
      return seal_open_segment(wanted) ? Step::kProgress : Step::kWait;
    case SegmentState::kYoung:
      rule.to = Generation::kYoung;
      return empty(wanted, rule, must_keep);
    case SegmentState::kMain:
      return empty(wanted, rule, must_keep);
    case SegmentState::kChain:
    case SegmentState::kStaged: {
      const SegmentId head = load_relaxed(&core_.segment(wanted).chain_head);
      if (core_.segment(head).load_state() != SegmentState::kChain) return Step::kWait;
      return reclaimer_.move_chain(head, must_keep) == Emptied::kDone ? Step::kProgress
                                                                      : Step::kNothing;
    }
    case SegmentState::kTails:
      return reclaimer_.move_tails(wanted, must_keep) == Emptied::kDone ? Step::kProgress
                                                                        : Step::kWait;
    case SegmentState::kHeld:
      return Step::kWait;
    case SegmentState::kFree:
    case SegmentState::kRetired:
    case SegmentState::kIndex:
    case SegmentState::kCount:
      break;
  }
  return Step::kNothing;
}

// --- What the owner calls

WC_HD inline bool Maintainer::maintain(uint32_t steps_max) {
  reclaimer_.free_retired();
  free_wanted();
  const bool moves = move_limit() == Step::kProgress;
  Shared& shared = *core_.shared;
  low_water_.relax(shared);
  const uint32_t low = load_relaxed(&shared.low_water);
  if (!refilling_ && free_count() >= low) return moves;
  refilling_ = true;
  full_ = true;
  const uint32_t target = refill_target(shared);
  for (uint32_t i = 0; i < steps_max && coming() < target; ++i) {
    if (step() != Step::kProgress) {
      reclaimer_.free_retired();
      refilling_ = false;
      return moves;
    }
    reclaimer_.free_retired();
  }
  refilling_ = coming() < target;
  return moves || refilling_;
}

WC_HD inline Maintainer::Space Maintainer::reclaim(uint64_t bytes) {
  const uint32_t count =
      bytes > core_.plain_size_max() ? static_cast<uint32_t>(chain_segments(core_, bytes)) : 1;
  // One more, since the index may hold one back.
  const uint32_t need = core_.shared->copy_reserve + count + 1;
  reclaimer_.free_retired();
  free_wanted();
  if (free_count() >= need) return Space::kReady;
  low_water_.raise(*core_.shared);
  const Step done = coming() < need ? step() : Step::kWait;
  if (done == Step::kProgress) return Space::kProgress;
  if (done == Step::kWait) return Space::kWait;
  if (free_count() + 1 >= need) return Space::kReady;
  return reclaimer_.retired_unpinned() == 0 ? Space::kNone : Space::kWait;
}

WC_HD inline bool Maintainer::set_target(uint32_t segments) {
  if (!is_possible_target(core_, segments)) return false;
  limit_target_ = segments;
  full_ = false;
  grow_at_ = 1;
  if (evacuators_.count != 0) {
    // Evacuators may have open segments that would be beyond the limit.
    for (uint32_t i = 0; i < evacuators_.count; ++i) evacuators_.list[i].seal_all();
    store_relaxed(&core_.shared->copy_reserve,
                  kLeaderReserve + evacuators_for(limit_target_, evacuators_.count));
  }
  return true;
}

WC_HD inline bool Maintainer::expire() {
  const KeepRule rule;
  const Survey found = survey(survey_most());
  if (found.expired && sweep_left_ == 0) sweep_left_ = load_acquire(&core_.shared->pair_count);
  const bool more = found.dead != kNoSegment &&
                    empty(found.dead, rule, core_.shared->keep_all) == Step::kProgress;
  reclaimer_.free_retired();
  return more;
}

WC_HD inline bool Maintainer::evict_ahead() {
  const Shared& shared = *core_.shared;
  if (!full_ || refilling_ || shared.keep_all ||
      load_relaxed(&shared.segment_limit) < kEvictAheadSegmentsMin ||
      coming() > refill_target(shared))
    return false;
  const bool more = step() == Step::kProgress;
  reclaimer_.free_retired();
  return more;
}

WC_HD inline bool Maintainer::sweep() {
  Shared& shared = *core_.shared;
  if (flush_pass_.waits()) flush_pass_.settle(shared, reclaimer_.oldest_inside());
  const bool begins = flush_pass_.begin(shared);
  const uint32_t pairs = load_acquire(&shared.pair_count);
  if (begins || sweep_at_ >= pairs) sweep_at_ = 0;
  if (flush_pass_.runs()) sweep_left_ = pairs - sweep_at_;
  if (sweep_left_ == 0) return false;
  SweepTask& task = worker_group_.sweep;
  task.first = sweep_at_;
  task.count = detail::least(detail::least(sweep_left_, pairs - sweep_at_), detail::kSweepPairsMax);
  worker_group_.run(core_, thread_, Task::kSweep);
  settle_growth(core_, thread_);
  sweep_at_ += task.count;
  sweep_left_ -= task.count;
  if (!flush_pass_.runs()) return sweep_left_ != 0;
  if (sweep_at_ < load_acquire(&shared.pair_count)) return true;
  flush_pass_.end(shared);
  return false;
}

// Removes one free segment from the limit. False: none is free.
WC_HD inline bool Maintainer::shrink_by_one() {
  Shared& shared = *core_.shared;
  SegmentId id = kNoSegment;
  {
    SpinGuard guard(&shared.segment_lock);
    if (shared.free_count <= shared.copy_reserve) return false;
    id = detail::highest_free(core_);
    if (id == kNoSegment) return false;
    detail::unmark_free(core_, id);
    core_.segment(id).store_state(SegmentState::kAbsent);
    store_relaxed(&shared.segment_limit, shared.segment_limit - 1);
    detail::lower_segment_top(core_);
  }
  detail::drop_pages(core_, id);
  return true;
}

// Continues to lower the limit. kProgress: there is more to do at once.
WC_HD inline Maintainer::Step Maintainer::shrink() {
  for (uint32_t i = 0; i < detail::kShrunkAtOnce; ++i) {
    if (load_relaxed(&core_.shared->segment_limit) <= limit_target_) return Step::kNothing;
    reclaimer_.free_retired();
    if (shrink_by_one()) continue;
    return coming() > core_.shared->copy_reserve ? Step::kWait : step();
  }
  return Step::kProgress;
}

// Continues to raise the limit by making absent segments free. kProgress: there is more to do at
// once.
WC_HD inline Maintainer::Step Maintainer::grow() {
  Shared& shared = *core_.shared;
  SpinGuard lock(&shared.segment_lock);
  for (uint32_t i = 0; i < detail::kGrownAtOnce && grow_at_ < shared.segments_max;
       ++i, ++grow_at_) {
    const SegmentId id = grow_at_;
    if (shared.segment_limit >= limit_target_) return Step::kNothing;
    if (core_.segment(id).load_state() != SegmentState::kAbsent) continue;
    detail::reset_entry(core_.segment(id), SegmentState::kFree, Generation::kYoung);
    detail::mark_free(core_, id);
    store_relaxed(&shared.segment_limit, shared.segment_limit + 1);
    if (id >= shared.segment_top) store_relaxed(&shared.segment_top, id + 1);
  }
  // A segment that swap_absent() removed may be lower.
  if (grow_at_ == shared.segments_max) grow_at_ = 1;
  return Step::kProgress;
}

WC_HD inline Maintainer::Step Maintainer::move_limit() {
  Shared& shared = *core_.shared;
  const uint32_t limit = load_relaxed(&shared.segment_limit);
  if (limit == limit_target_) return Step::kNothing;
  const Step step = limit < limit_target_ ? grow() : shrink();
  SpinGuard lock(&shared.segment_lock);
  low_water_.follow_limit(shared);
  return step;
}

}  // namespace warpcache::store
