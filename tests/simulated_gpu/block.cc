// SPDX-License-Identifier: Apache-2.0
#include "simulated_gpu/block.h"

#include <algorithm>
#include <bit>
#include <boost/context/detail/fcontext.hpp>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <thread>
#include <utility>

namespace simt {

namespace {

namespace context = boost::context::detail;

constexpr size_t kStackBytes = 64 * 1024;
constexpr uint32_t kPassChance = 16;    // one of this number of possible switches is made
constexpr uint32_t kIdleRoundsMax = 2;  // rounds in which all poll before the host's thread sleeps
constexpr uint32_t kSleepUsMin = 20;    // doubled with each round, up to ...
constexpr uint32_t kSleepUsMax = 640;   // ... this
constexpr uint32_t kPauseUsMax = 200;
constexpr uint32_t kPollTurns = 32;  // between two rests of a thread that polls, more than it takes
// In those after a rest the other lanes of the warp do no work: they wait to hear what was seen.
constexpr uint32_t kPollRounds = 8;

thread_local BlockRunner* this_runner = nullptr;

// With SIMT_GPU_PAUSES=N one in N accesses to an atomic word pauses its block for a while, and
// other blocks get far between two accesses of this one. 0: no pauses.
const uint32_t accesses_a_pause = [] {
  const char* const wanted = std::getenv("SIMT_GPU_PAUSES");
  return wanted == nullptr ? 0 : static_cast<uint32_t>(std::strtoul(wanted, nullptr, 10));
}();

// Goes on at `to`, and leaves in `here` where the caller goes on when somebody jumps there.
void jump(void* to, void** here) {
  const context::transfer_t from = context::jump_fcontext(to, here);
  *static_cast<void**>(from.data) = from.fctx;
}

}  // namespace

thread_local const Place* running_place = nullptr;

// A thread of a block: a stack, and where it goes on. Between blocks it waits for the next one.
class Thread {
 public:
  Thread() {
    stack_.reset(static_cast<std::byte*>(std::malloc(kStackBytes)));
    if (stack_ == nullptr) std::abort();
    here_ = context::make_fcontext(stack_.get() + kStackBytes, kStackBytes, &live);
  }
  Thread(const Thread&) = delete;
  Thread& operator=(const Thread&) = delete;

  void begin(const Place& place) {
    place_ = place;
    poll_turns_ = 0;
  }
  const Place& place() const { return place_; }
  void** here() { return &here_; }
  void take_turn() {
    if (poll_turns_ != 0) --poll_turns_;
  }
  void rest() { poll_turns_ = kPollTurns; }
  // Whether it rests again and again until something changes: what it does meanwhile is no work.
  bool polls() const { return poll_turns_ != 0; }

 private:
  static void live(context::transfer_t from) {
    *static_cast<void**>(from.data) = from.fctx;
    this_runner->run_thread();
  }

  struct Free {
    void operator()(std::byte* memory) const { std::free(memory); }
  };

  std::unique_ptr<std::byte, Free> stack_;
  void* here_ = nullptr;
  Place place_;
  uint32_t poll_turns_ = 0;
};

void pass() { this_runner->pass(); }
void rest() { this_runner->rest(); }
const uint64_t* exchange_in_warp(uint32_t mask, uint64_t word, Together what) {
  return this_runner->exchange(mask, word, what);
}
uint32_t meet_in_block(uint32_t count) { return this_runner->meet(count); }

BlockRunner::BlockRunner() : chance_(std::random_device()()) {}

BlockRunner::~BlockRunner() = default;

void BlockRunner::start(const Place& shape, uint32_t block) {
  size_ = left_ = shape.block_size;
  at_barrier_ = barrier_sum_ = 0;
  round_ = 0;
  warps_.assign((size_ + kWarpSize - 1) / kWarpSize, Warp{});
  while (threads_.size() < size_) threads_.push_back(std::make_unique<Thread>());
  Place place = shape;
  place.block = block;
  for (uint32_t i = 0; i < size_; ++i) {
    place.thread = i;
    threads_[i]->begin(place);
    warps_[i / kWarpSize].ready |= 1u << i % kWarpSize;
  }
}

void BlockRunner::run(const Place& shape, uint32_t block, const std::function<void()>& body) {
  this_runner = this;
  body_ = &body;
  start(shape, block);
  uint32_t idle_rounds = 0;
  uint32_t sleep_us = kSleepUsMin;
  while (left_ != 0) {
    worked_ = false;
    if (!run_round()) give_up("its threads wait for each other in vain");
    if (worked_) {
      idle_rounds = 0;
      sleep_us = kSleepUsMin;
    } else if (++idle_rounds > kIdleRoundsMax) {
      // Not only yielding: that takes half of a processor from a thread that computes.
      std::this_thread::sleep_for(std::chrono::microseconds(sleep_us));
      sleep_us = std::min(2 * sleep_us, kSleepUsMax);
    } else {
      std::this_thread::yield();
    }
  }
}

// Runs every thread that can continue once, in a changing order. False: none can.
bool BlockRunner::run_round() {
  ++round_;
  const uint32_t first = chance() % size_;
  warp_ = first / kWarpSize;
  lanes_left_ = ~0u << first % kWarpSize;
  warps_left_ = warps_.size();
  last_lanes_ = ~lanes_left_;
  Thread* const next = take_next();
  if (next == nullptr) return false;
  jump(*next->here(), &host_);
  return true;
}

// The next thread of the round, which runs from now on. Null: the round is over.
Thread* BlockRunner::take_next() {
  uint32_t ready = warps_[warp_].ready & lanes_left_;
  while (ready == 0) {
    if (warps_left_ == 0) return nullptr;
    if (++warp_ == warps_.size()) warp_ = 0;
    lanes_left_ = --warps_left_ == 0 ? last_lanes_ : ~0u;
    ready = warps_[warp_].ready & lanes_left_;
  }
  lane_ = ready & (0 - ready);
  lanes_left_ &= ~(lane_ | (lane_ - 1));
  running_ = threads_[warp_ * kWarpSize + static_cast<uint32_t>(std::countr_zero(ready))].get();
  running_->take_turn();
  running_place = &running_->place();
  return running_;
}

// Lets the others continue: straight to the next thread, or at the end of the round to the host's.
void BlockRunner::leave() {
  Thread& me = *running_;
  Thread* const next = take_next();
  jump(next != nullptr ? *next->here() : host_, me.here());
}

// Returns when somebody has made the thread ready again.
void BlockRunner::wait(uint32_t& waiting) {
  work();
  waiting |= lane_;
  warps_[warp_].ready &= ~lane_;
  leave();
}

uint32_t BlockRunner::chance() {
  chance_ = chance_ * 6364136223846793005 + 1442695040888963407;  // Knuth's MMIX
  return static_cast<uint32_t>(chance_ >> 33);
}

// If polling were work, a block that waits for the host would never let its processor go.
void BlockRunner::work() {
  if (!running_->polls() && round_ >= warps_[warp_].polls_until) worked_ = true;
}

// What each thread does, for one block after the other.
void BlockRunner::run_thread() {
  while (true) {
    (*body_)();
    worked_ = true;
    warps_[warp_].ready &= ~lane_;
    --left_;
    if (left_ != 0 && at_barrier_ == left_) open_barrier();
    leave();
  }
}

void BlockRunner::pass() {
  work();
  if (accesses_a_pause != 0 && chance() % accesses_a_pause == 0) {
    std::this_thread::sleep_for(std::chrono::microseconds(chance() % kPauseUsMax));
  }
  if (chance() % kPassChance == 0) leave();
}

void BlockRunner::rest() {
  running_->rest();
  warps_[warp_].polls_until = round_ + kPollRounds;
  leave();
}

const uint64_t* BlockRunner::exchange(uint32_t mask, uint64_t word, Together what) {
  Warp& warp = warps_[warp_];
  if (mask != ~0u) give_up("part of a warp does something together, which is not simulated");
  if (warp.arrived == 0) warp.what = what;
  if (warp.what != what) give_up("the lanes of a warp do different things together");
  uint64_t* const words = warp.words[warp.exchanges % 2];
  words[std::countr_zero(lane_)] = word;
  if ((warp.arrived | lane_) != mask) {
    wait(warp.arrived);
    return words;
  }
  warp.arrived = 0;
  warp.ready = mask;
  ++warp.exchanges;
  work();
  return words;
}

uint32_t BlockRunner::meet(uint32_t count) {
  barrier_sum_ += count;
  if (++at_barrier_ == left_) {
    open_barrier();
  } else {
    wait(warps_[warp_].at_barrier);
  }
  return barrier_result_;
}

void BlockRunner::open_barrier() {
  barrier_result_ = std::exchange(barrier_sum_, 0);
  at_barrier_ = 0;
  for (Warp& warp : warps_) warp.ready |= std::exchange(warp.at_barrier, 0);
  worked_ = true;
}

void BlockRunner::give_up(const char* why) const {
  const Place& place = running_->place();
  std::fprintf(
      stderr,
      "simulated GPU: block %u of %u: %s (thread %u; %u of %u threads left, %u at the barrier)\n",
      place.block, place.grid_size, why, place.thread, left_, size_, at_barrier_);
  for (size_t i = 0; i < warps_.size(); ++i) {
    if (warps_[i].arrived != 0)
      std::fprintf(stderr, "  warp %zu: lanes %08x wait for the others\n", i, warps_[i].arrived);
  }
  std::abort();
}

}  // namespace simt
