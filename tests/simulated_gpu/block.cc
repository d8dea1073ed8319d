// SPDX-License-Identifier: Apache-2.0
#include "simulated_gpu/block.h"

#include <algorithm>
#include <boost/context/fiber.hpp>
#include <boost/context/fixedsize_stack.hpp>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <utility>

namespace simt {

namespace {

namespace context = boost::context;

constexpr size_t kStackBytes = 64 * 1024;
constexpr uint32_t kPassChance = 16;    // one of this number of possible switches is made
constexpr uint32_t kIdleRoundsMax = 8;  // rounds in which all poll before the host's thread sleeps
constexpr uint32_t kSleepUsMin = 10;    // doubled with each round, up to ...
constexpr uint32_t kSleepUsMax = 640;   // ... this
constexpr uint32_t kPauseUsMax = 200;
constexpr uint32_t kPollTurns = 32;  // between two rests of a thread that polls, more than it takes

thread_local BlockRunner* this_runner = nullptr;

// With SIMT_GPU_PAUSES=N one in N accesses to an atomic word pauses its block for a while, and
// other blocks get far between two accesses of this one. 0: no pauses.
const uint32_t accesses_a_pause = [] {
  const char* const wanted = std::getenv("SIMT_GPU_PAUSES");
  return wanted == nullptr ? 0 : static_cast<uint32_t>(std::strtoul(wanted, nullptr, 10));
}();

}  // namespace

// A thread of a block: a stack, and where it waits. Between blocks it waits for the next one.
class Thread {
 public:
  explicit Thread(BlockRunner& owner)
      : owner_(owner),
        fiber_(std::allocator_arg, context::fixedsize_stack(kStackBytes),
               [this](context::fiber&& back) { return live(std::move(back)); }) {}
  ~Thread() {
    ending_ = true;
    go_on();
  }
  Thread(const Thread&) = delete;
  Thread& operator=(const Thread&) = delete;

  // Called by the block: until the thread stops.
  void go_on() {
    if (poll_turns_ != 0) --poll_turns_;
    fiber_ = std::move(fiber_).resume();
  }
  // Called by the thread itself.
  void stop() { back_ = std::move(back_).resume(); }

  void begin(const Place& place) {
    place_ = place;
    ended_ = false;
    poll_turns_ = 0;
    word_ = nullptr;
  }
  const Place& place() const { return place_; }
  uint32_t number() const { return place_.thread; }
  bool ended() const { return ended_; }
  bool waits() const { return word_ != nullptr && *word_ == value_; }
  void rest() {
    poll_turns_ = kPollTurns;
    stop();
  }
  // Whether it rests again and again until something changes: what it does meanwhile is no work.
  bool polls() const { return poll_turns_ != 0; }
  void wait_while(const uint32_t* word, uint32_t value) {
    word_ = word;
    value_ = value;
    while (waits()) stop();
    word_ = nullptr;
  }

 private:
  context::fiber live(context::fiber&& back) {
    back_ = std::move(back);
    while (!ending_) {
      (*owner_.body_)();
      ended_ = true;
      stop();
    }
    return std::move(back_);
  }

  BlockRunner& owner_;
  context::fiber fiber_;
  context::fiber back_;
  Place place_;
  const uint32_t* word_ = nullptr;  // it waits until this word is no longer ...
  uint32_t value_ = 0;              // ... this
  uint32_t poll_turns_ = 0;
  bool ended_ = true;
  bool ending_ = false;
};

const Place& place() { return this_runner->running_->place(); }
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
  warps_.assign((size_ + kWarpSize - 1) / kWarpSize, Warp{});
  while (threads_.size() < size_) threads_.push_back(std::make_unique<Thread>(*this));
  Place place = shape;
  place.block = block;
  for (uint32_t i = 0; i < size_; ++i) {
    place.thread = i;
    threads_[i]->begin(place);
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
    if (!take_turns()) give_up("its threads wait for each other in vain");
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
bool BlockRunner::take_turns() {
  const auto first = static_cast<uint32_t>(chance_() % size_);
  bool any = false;
  for (uint32_t i = 0; i < size_; ++i) {
    Thread& thread = *threads_[(first + i) % size_];
    if (thread.ended() || thread.waits()) continue;
    any = true;
    running_ = &thread;
    thread.go_on();
    if (!thread.ended()) continue;
    worked_ = true;
    --left_;
    if (left_ != 0 && at_barrier_ == left_) open_barrier();
  }
  return any;
}

// If polling were work, a block that waits for the host would never let its processor go.
void BlockRunner::work() {
  if (!running_->polls()) worked_ = true;
}

void BlockRunner::pass() {
  work();
  if (accesses_a_pause != 0 && chance_() % accesses_a_pause == 0) {
    std::this_thread::sleep_for(std::chrono::microseconds(chance_() % kPauseUsMax));
  }
  if (chance_() % kPassChance == 0) running_->stop();
}

void BlockRunner::rest() { running_->rest(); }

void BlockRunner::wait_while(const uint32_t& word, uint32_t value) {
  work();
  running_->wait_while(&word, value);
}

const uint64_t* BlockRunner::exchange(uint32_t mask, uint64_t word, Together what) {
  const uint32_t lane = running_->number() % kWarpSize;
  Warp& warp = warps_[running_->number() / kWarpSize];
  if (mask != ~0u) give_up("part of a warp does something together, which is not simulated");
  warp.given[lane] = word;
  warp.what[lane] = what;
  warp.arrived |= 1u << lane;
  if (warp.arrived != mask) {
    wait_while(warp.turn, warp.turn);
    return warp.taken;
  }
  for (uint32_t i = 0; i < kWarpSize; ++i) {
    if (warp.what[i] != what) give_up("the lanes of a warp do different things together");
    warp.taken[i] = warp.given[i];
  }
  warp.arrived = 0;
  ++warp.turn;
  work();
  return warp.taken;
}

uint32_t BlockRunner::meet(uint32_t count) {
  barrier_sum_ += count;
  if (++at_barrier_ == left_) {
    open_barrier();
  } else {
    wait_while(barrier_turn_, barrier_turn_);
  }
  return barrier_result_;
}

void BlockRunner::open_barrier() {
  barrier_result_ = std::exchange(barrier_sum_, 0);
  at_barrier_ = 0;
  ++barrier_turn_;
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
