// SPDX-License-Identifier: Apache-2.0
#include "store/maintenance.h"

#include <algorithm>
#include <chrono>

namespace warpcache::store {

namespace {

constexpr uint32_t kSurveyMax = 4096;  // segments looked at before a choice
// Of a segment is wasted before compacting it is preferred to evicting, one part in so many; with
// keep_all.
constexpr uint32_t kWasteShare = 4;
constexpr uint32_t kWasteShareKeepAll = 16;
constexpr uint32_t kYoungPercent = 20;  // of the sealed segments
// Compactions in a row that free no segment before something else is tried: packing items anew may
// gain nothing.
constexpr uint32_t kFruitlessMax = 2 * kWasteShare;
constexpr uint32_t kFruitlessMaxKeepAll = 2 * kWasteShareKeepAll;
constexpr uint32_t kStepsMax = 1u << 20;  // of one call; a bug, not a load, gets there
constexpr auto kEpochPause = std::chrono::microseconds(50);

}  // namespace

Maintenance::Maintenance(const Core& core, Mapping* arena, ThreadContext* thread,
                         uint32_t room_wait_ms_max)
    : core_(core),
      arena_(arena),
      reclaimer_(core, thread),
      room_wait_ms_max_(room_wait_ms_max),
      limit_target_(core.shared->segment_limit) {}

Maintenance::~Maintenance() { stop(); }

// --- The thread

void Maintenance::start(void (*every_second)(void*), void* context) {
  every_second_ = every_second;
  context_ = context;
  thread_ = std::thread([this] { run(); });
}

void Maintenance::stop() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard guard(wake_mutex_);
    stopping_ = true;
  }
  wake_condition_.notify_one();
  thread_.join();
}

void Maintenance::wake() {
  if (load_relaxed(&awake_) != 0) return;
  {
    const std::lock_guard guard(wake_mutex_);
    store_relaxed(&awake_, 1);
  }
  wake_condition_.notify_one();
}

void Maintenance::run() {
  using SteadyClock = std::chrono::steady_clock;
  SteadyClock::time_point second = SteadyClock::now() + std::chrono::seconds(1);
  while (true) {
    {
      std::unique_lock lock(wake_mutex_);
      wake_condition_.wait_until(lock, second,
                                 [this] { return stopping_ || load_relaxed(&awake_) != 0; });
      if (stopping_) return;
      store_relaxed(&awake_, 0);
    }
    if (SteadyClock::now() >= second) {
      second += std::chrono::seconds(1);
      every_second_(context_);
    }
    maintain();
  }
}

// --- Steps. REQUIRES for all below this line, but for the public ones: mutex_ is held.

// Empties a segment or chain; says what that means for whoever wants room.
Maintenance::Step Maintenance::empty(SegmentId id, const KeepRule& rule, bool must_keep) {
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
      return reclaimer_.limbo_unpinned() != 0 ? Step::kWait : Step::kNothing;
  }
  return Step::kNothing;
}

void Maintenance::survey_segment(SegmentId id, uint32_t now, uint64_t oldest_inside,
                                 Survey& survey) {
  const SegmentEntry& entry = core_.segment(id);
  const SegmentState state = entry.load_state();
  const bool chain = state == SegmentState::kChain;
  if (state != SegmentState::kYoung && state != SegmentState::kMain && !chain) return;
  if (chain) {
    // Only maintenance frees chains, so a published one can be looked at.
    const Item* item = reinterpret_cast<const Item*>(core_.segment_data(id));
    if (!is_alive(core_, *item, now)) survey.dead = id;
    return;
  }
  if (load_relaxed(&entry.epoch) >= oldest_inside) {
    survey.waiting = true;
    return;
  }
  const uint32_t live = load_acquire(&entry.live);
  if (live == 0 || load_acquire(&entry.deadline) <= now) survey.dead = id;
  // The end of a segment that was sealed for want of room is no waste: items packed anew leave the
  // like.
  const uint32_t used = load_relaxed(&entry.used);
  const uint32_t waste = (used < core_.segment_size() / 2 ? core_.segment_size() : used) - live;
  survey.waste_bytes += waste;
  if (survey.wasteful == kNoSegment || waste > survey.waste) {
    survey.wasteful = id;
    survey.waste = waste;
  }
  const bool flushed = load_relaxed(&entry.epoch) <= flush_ticket_;
  if (flushed) survey.flushed = id;
  if (load_relaxed(&entry.min_expiry) <= now || flushed) survey.outdated = id;
}

// Looks at the next segments in turn, at most `most`, until one is dead.
Maintenance::Survey Maintenance::survey(uint32_t most) {
  Survey survey;
  const uint32_t now = load_relaxed(&core_.shared->now);
  // A segment sealed after this look has a higher ticket, so this is on the safe side.
  const uint64_t oldest_inside = reclaimer_.oldest_inside();
  const uint32_t first = load_relaxed(&core_.shared->index_segments);
  const uint32_t end = load_relaxed(&core_.shared->segment_top);
  const uint32_t count = std::min(most, end - first);
  for (uint32_t i = 0; i < count && survey.dead == kNoSegment; ++i) {
    if (cursor_ < first || cursor_ >= end) cursor_ = first;
    survey_segment(cursor_++, now, oldest_inside, survey);
  }
  return survey;
}

// The segment that is worth compacting, if one is.
SegmentId Maintenance::choose_compaction(const Survey& survey) const {
  const uint32_t size = core_.segment_size();
  if (!core_.shared->keep_all)
    return survey.waste >= size / kWasteShare ? survey.wasteful : kNoSegment;
  if (survey.outdated != kNoSegment) return survey.outdated;
  const bool worth = survey.waste >= size / kWasteShareKeepAll && survey.waste_bytes >= size;
  return worth ? survey.wasteful : kNoSegment;
}

// Compacts a segment, keeping all that is alive. kNothing: none is worth it.
Maintenance::Step Maintenance::compact(const Survey& survey) {
  const bool must_keep = core_.shared->keep_all;
  const SegmentId victim = choose_compaction(survey);
  if (victim == kNoSegment) return Step::kNothing;
  if (++fruitless_compactions_ > (must_keep ? kFruitlessMaxKeepAll : kFruitlessMax)) {
    fruitless_compactions_ = 0;
    return Step::kNothing;
  }
  // Copying takes what little is free: wait rather than evict when memory is already on its way.
  if (free_count() < core_.shared->copy_reserve && reclaimer_.limbo_unpinned() != 0)
    return Step::kWait;
  KeepRule rule;
  const bool young = core_.segment(victim).load_state() == SegmentState::kYoung;
  rule.to = young ? Generation::kYoung : Generation::kMain;
  const uint32_t before = coming();
  const Step step = empty(victim, rule, must_keep);
  if (coming() > before) fruitless_compactions_ = 0;
  return step;
}

Maintenance::Step Maintenance::evict() {
  Shared& shared = *core_.shared;
  SegmentId victim = kNoSegment;
  KeepRule rule;
  {
    SpinGuard guard(&shared.segment_lock);
    const uint64_t sealed = uint64_t{shared.young.segments} + shared.main.segments;
    const bool young =
        shared.main.segments == 0 || shared.young.segments * 100ull > sealed * kYoungPercent;
    victim = young && shared.young.oldest != kNoSegment ? shared.young.oldest : shared.main.oldest;
    rule.spend = victim != shared.young.oldest;
  }
  if (victim == kNoSegment) return Step::kNothing;
  if (free_count() < core_.shared->copy_reserve && reclaimer_.limbo_unpinned() != 0)
    return Step::kWait;
  // Guaranteed to end: the more was copied without gain, the more use an item must have seen to be
  // copied again.
  const uint64_t segment = core_.segment_size();
  rule.counter_min = 1 + static_cast<uint32_t>(std::min<uint64_t>(fruitless_ / (4 * segment), 3));
  const uint64_t before = reclaimer_.copied_bytes();
  const Step step = empty(victim, rule, false);
  fruitless_ += reclaimer_.copied_bytes() - before;
  fruitless_ -= std::min(fruitless_, segment * 3 / 4);
  return step;
}

// One step towards more free segments, beyond what already waits in limbo.
Maintenance::Step Maintenance::step() {
  // With keep_all a failure is an answer to a client, so all is looked at first.
  const Survey found = survey(core_.shared->keep_all ? UINT32_MAX : kSurveyMax);
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
  return seal_sparse_lanes() || found.waiting ? Step::kWait : Step::kNothing;
}

// Has lanes end open segments that are nearly full of what is dead. False: there are none.
bool Maintenance::seal_sparse_lanes() {
  bool sealed = false;
  const uint64_t size = core_.segment_size();
  for (uint32_t i = 0; i < core_.shared->lane_count; ++i) {
    Lane& lane = core_.lanes[i];
    SpinGuard guard(&lane.lock);
    for (SegmentId& open : lane.open) {
      if (open == kNoSegment) continue;
      const SegmentEntry& entry = core_.segment(open);
      const uint64_t dead = load_relaxed(&entry.used) - load_relaxed(&entry.live);
      if (dead < size / kWasteShareKeepAll || load_relaxed(&entry.used) * 2ull < size) continue;
      seal_segment(core_, open);
      open = kNoSegment;
      sealed = true;
    }
  }
  return sealed;
}

// --- The segment that the index wants next

// Has a lane end its open segment if it is `id`.
bool Maintenance::seal_lane_segment(SegmentId id) {
  for (uint32_t i = 0; i < core_.shared->lane_count; ++i) {
    Lane& lane = core_.lanes[i];
    SpinGuard guard(&lane.lock);
    for (SegmentId& open : lane.open) {
      if (open != id) continue;
      seal_segment(core_, id);
      open = kNoSegment;
      return true;
    }
  }
  return reclaimer_.seal_own(id);
}

// Lets `wanted`, which is beyond the limit, change places with a free segment.
bool Maintenance::swap_absent(SegmentId wanted) {
  SegmentId other = kNoSegment;
  {
    SpinGuard guard(&core_.shared->segment_lock);
    if (core_.shared->free_count <= core_.shared->copy_reserve) return false;
    other = detail::highest_free(core_);
    if (other == kNoSegment) return false;
    detail::unmark_free(core_, other);
    core_.segment(other).store_state(SegmentState::kAbsent);
  }
  arena_->drop(uint64_t{other} << core_.segment_shift, core_.segment_size());
  SpinGuard guard(&core_.shared->segment_lock);
  detail::mark_free(core_, wanted);
  return true;
}

Maintenance::Step Maintenance::free_wanted() {
  const SegmentId wanted = load_relaxed(&core_.shared->segment_wanted);
  if (wanted == kNoSegment) return Step::kNothing;
  const bool must_keep = core_.shared->keep_all;
  KeepRule rule;
  switch (core_.segment(wanted).load_state()) {
    case SegmentState::kAbsent:
      return swap_absent(wanted) ? Step::kProgress : Step::kNothing;
    case SegmentState::kOpen:
      return seal_lane_segment(wanted) ? Step::kProgress : Step::kWait;
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
    case SegmentState::kFree:
    case SegmentState::kLimbo:
    case SegmentState::kIndex:
    case SegmentState::kCount:
      break;
  }
  return Step::kNothing;
}

// --- What the owner calls

void Maintenance::maintain() {
  const std::lock_guard guard(mutex_);
  reclaimer_.free_limbo();
  free_wanted();
  shrink();
  const Shared& shared = *core_.shared;
  const uint32_t low = load_relaxed(&shared.low_water);
  if (free_count() >= low) return;
  const uint32_t target = low + (low - shared.copy_reserve) / 2;
  for (uint32_t i = 0; i < kStepsMax && coming() < target; ++i) {
    if (step() != Step::kProgress) break;
    reclaimer_.free_limbo();
  }
  reclaimer_.free_limbo();
}

Status Maintenance::make_room(uint64_t bytes) {
  using SteadyClock = std::chrono::steady_clock;
  const auto patience = std::chrono::milliseconds(room_wait_ms_max_);
  SteadyClock::time_point deadline = SteadyClock::now() + patience;
  const uint32_t count = bytes > core_.plain_size_max() ? chain_segments(core_, bytes) : 1;
  for (uint32_t i = 0; i < kStepsMax; ++i) {
    {
      const std::lock_guard guard(mutex_);
      // One more, that the index may hold back.
      const uint32_t need = core_.shared->copy_reserve + count + 1;
      reclaimer_.free_limbo();
      free_wanted();
      if (free_count() >= need) return Status::kOk;
      const Step done = coming() < need ? step() : Step::kWait;
      if (done == Step::kNothing) {
        if (free_count() + 1 >= need) return Status::kOk;
        if (reclaimer_.limbo_unpinned() == 0) return Status::kOutOfMemory;
      }
      if (done == Step::kProgress) {
        deadline = SteadyClock::now() + patience;
        continue;
      }
    }
    if (SteadyClock::now() >= deadline) return Status::kOutOfMemory;
    std::this_thread::sleep_for(kEpochPause);
  }
  return Status::kOutOfMemory;
}

void Maintenance::flush() {
  const std::lock_guard guard(mutex_);
  Shared& shared = *core_.shared;
  store_release(&shared.flush_generation, load_relaxed(&shared.flush_generation) + 1);
  flush_ticket_ = draw_ticket(&shared.epoch);
}

void Maintenance::expire() {
  const std::lock_guard guard(mutex_);
  KeepRule rule;
  for (uint32_t i = 0; i < kSurveyMax; ++i) {
    const Survey found = survey(kSurveyMax);
    if (found.dead == kNoSegment ||
        empty(found.dead, rule, core_.shared->keep_all) != Step::kProgress)
      break;
  }
  reclaimer_.free_limbo();
}

// Takes one free segment out of the limit. False: none is free.
bool Maintenance::shrink_by_one() {
  SegmentId id = kNoSegment;
  {
    SpinGuard guard(&core_.shared->segment_lock);
    if (core_.shared->free_count <= core_.shared->copy_reserve) return false;
    id = detail::highest_free(core_);
    if (id == kNoSegment) return false;
    detail::unmark_free(core_, id);
    core_.segment(id).store_state(SegmentState::kAbsent);
    store_relaxed(&core_.shared->segment_limit, core_.shared->segment_limit - 1);
  }
  arena_->drop(uint64_t{id} << core_.segment_shift, core_.segment_size());
  return true;
}

// Goes on with shrinking to limit_target_ until it is done or has to wait.
Maintenance::Step Maintenance::shrink() {
  for (uint32_t i = 0; i < kStepsMax; ++i) {
    if (load_relaxed(&core_.shared->segment_limit) <= limit_target_) return Step::kProgress;
    reclaimer_.free_limbo();
    if (shrink_by_one()) continue;
    if (coming() > core_.shared->copy_reserve) return Step::kWait;
    const Step done = step();
    if (done != Step::kProgress) return done;
  }
  return Step::kWait;
}

// Makes absent segments free.
void Maintenance::grow() {
  Shared& shared = *core_.shared;
  SpinGuard lock(&shared.segment_lock);
  for (SegmentId id = 1; id < shared.segments_max && shared.segment_limit < limit_target_; ++id) {
    if (core_.segment(id).load_state() != SegmentState::kAbsent) continue;
    detail::reset_entry(core_.segment(id), SegmentState::kFree, Generation::kYoung);
    detail::mark_free(core_, id);
    store_relaxed(&shared.segment_limit, shared.segment_limit + 1);
    if (id >= shared.segment_top) store_relaxed(&shared.segment_top, id + 1);
  }
  shared.low_water = low_water(limit_target_, shared.copy_reserve);
}

uint64_t Maintenance::set_limit(uint32_t segments) {
  using SteadyClock = std::chrono::steady_clock;
  Shared& shared = *core_.shared;
  const SteadyClock::time_point deadline =
      SteadyClock::now() + std::chrono::milliseconds(room_wait_ms_max_);
  Step done = Step::kWait;
  for (bool first = true; done == Step::kWait; first = false) {
    {
      const std::lock_guard guard(mutex_);
      if (first) {
        const uint32_t least = segments_min(load_relaxed(&shared.index_segments));
        limit_target_ = std::clamp(segments, least, shared.segments_max);
        grow();
      }
      done = shrink();
    }
    if (SteadyClock::now() >= deadline) break;
    if (done == Step::kWait) std::this_thread::sleep_for(kEpochPause);
  }
  return uint64_t{load_relaxed(&shared.segment_limit)} << core_.segment_shift;
}

}  // namespace warpcache::store
