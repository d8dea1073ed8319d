// SPDX-License-Identifier: Apache-2.0
//
// A run: rounds in which all clients work at the same time. In the pauses between them every key is
// read, and the histories of the round are checked.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <thread>

#include "base/assert.h"
#include "stress/checker.h"
#include "stress/client.h"
#include "stress/eviction_log.h"
#include "stress/speaker.h"

namespace warpcache::stress {

namespace {

constexpr size_t kUnseenMax = 16;     // evictions of a key in a round
constexpr size_t kBookMax = 200'000;  // CAS ids kept for each key

// Advances the time, does maintenance if the store has no thread for it, and changes limits.
class Keeper {
 public:
  Keeper(const Scenario& scenario, engine::Rig& rig)
      : scenario_(scenario), rig_(rig), store_(rig.store()), thread_([this] { run(); }) {}
  ~Keeper() {
    stopping_ = true;
    thread_.join();
  }
  // While it is held, the keeper does nothing.
  std::mutex& pause() { return mutex_; }

 private:
  void run() {
    uint64_t turn = 0;
    while (!stopping_) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      const std::lock_guard guard(mutex_);
      ++turn;
      if (scenario_.expiry && turn % scenario_.tick_ms == 0)
        store_.set_clock(store_.clock().now + 1);
      if (!scenario_.maintenance_thread) rig_.maintain();
      if (scenario_.change_limit && turn % 64 == 0) {
        const uint64_t part = 4 + turn / 64 * 5 % 5;  // 4/8 to 8/8, in changing order
        store_.set_memory_limit(scenario_.memory / 8 * part);
      }
    }
  }

  const Scenario& scenario_;
  engine::Rig& rig_;
  store::StoreOwner& store_;
  std::mutex mutex_;
  std::atomic<bool> stopping_ = false;
  std::thread thread_;
};

class Run {
 public:
  Run(const Scenario& scenario, const Effort& effort);
  Report go();

 private:
  void work(uint32_t thread);
  void gather();
  void note_upkeep();
  void add_to_histories(const Operation& op);
  void add_evictions(int64_t stopped, int64_t read);
  void add_unseen_evictions(int64_t stopped);
  bool may_evict_unseen() const {
    return effort_.engine != engine::RigKind::kCpu && effort_.front != nullptr &&
           !scenario_.keep_all && !scenario_.maintenance_thread;
  }
  bool waits_for_front() const {
    return effort_.front != nullptr && effort_.front->answered() < effort_.answered &&
           report_.rounds < effort_.front_rounds_max;
  }
  void check_keys();
  void check_key(uint32_t key);
  void fail(const std::string& what);

  const Scenario& scenario_;
  const Effort effort_;
  StoreObserver observer_;
  std::unique_ptr<engine::Rig> rig_;
  std::unique_ptr<engine::StoreAdmin> admin_;
  std::unique_ptr<Keeper> keeper_;
  std::vector<std::unique_ptr<Client>> clients_;
  std::barrier<> barrier_;
  int64_t start_ = 0;
  std::atomic<bool> done_ = false;
  std::atomic<uint32_t> next_key_ = 0;
  std::string upkeep_;    // of the current round
  uint64_t evicted_ = 0;  // items, before the current round
  uint64_t moved_ = 0;

  // Of the current round, by key.
  std::vector<std::vector<Operation>> histories_;
  std::vector<Operation> late_evictions_;  // logged while the round ended
  // Kept from round to round, by key.
  std::vector<State> states_;
  std::vector<CasBook> books_;

  std::mutex mutex_;  // guards report_
  Report report_;
};

Run::Run(const Scenario& scenario, const Effort& effort)
    : scenario_(scenario),
      effort_(effort),
      observer_(scenario.fail_every),
      barrier_(scenario.threads),
      histories_(scenario.keys),
      states_(scenario.keys),
      books_(scenario.keys) {
  engine::RigConfig rig;
  rig.item_size_max = kItemSizeMax;
  rig.engines = scenario.threads;
  rig.gpu_blocks = effort.gpu_blocks;
  if (scenario.exhaust_pins) rig.pin_wait_ms_max = 1;
  store::StoreConfig& config = rig.store;
  config.memory_limit = scenario.memory;
  config.memory_reach = scenario.memory;
  config.threads = scenario.threads;
  config.keep_all = scenario.keep_all;
  config.maintenance_thread = scenario.maintenance_thread;
  config.manual_clock = true;
  config.seed = effort.seed;
  const bool observed = effort.engine == engine::RigKind::kCpu;
  if (observed) {
    config.observer = &observer_;
    config.faults = &observer_;
  }
  if (effort.front != nullptr) config.copies = effort.front->hooks();
  if (!observed && scenario.fail_every != 0) {
    throw std::runtime_error("allocations cannot be made to fail on a GPU");
  }
  std::string why;
  rig_ = engine::make_rig(effort.engine, rig, &why);
  if (rig_ == nullptr) throw std::runtime_error("no engine: " + why);
  admin_ = std::make_unique<engine::StoreAdmin>(rig_->store());
  for (uint32_t i = 0; i < scenario.threads; ++i) {
    clients_.push_back(std::make_unique<Client>(scenario, i, effort.seed, rig_->store(),
                                                rig_->make_engine(*admin_), effort.front));
  }
}

void Run::fail(const std::string& what) {
  const std::lock_guard guard(mutex_);
  report_.failures.push_back(what);
}

void Run::add_to_histories(const Operation& op) {
  if (op.kind == Kind::kFlush) {
    for (auto& history : histories_) history.push_back(op);
    return;
  }
  if (op.kind == Kind::kGet) ++(op.outcome == Outcome::kHit ? report_.hits : report_.misses);
  if (op.outcome == Outcome::kNoMemory) ++report_.no_memory;
  histories_[op.key].push_back(op);
}

// Adds evictions. One that was logged before the clients stopped was over when the key's lock was
// taken again. A later one may have come before or after the last reads.
void Run::add_evictions(int64_t stopped, int64_t read) {
  std::vector<Operation> late;
  for (Operation& op : late_evictions_) {
    op.options |= kOptional;
    op.responded = read;
    add_to_histories(op);
  }
  for (Operation& op : observer_.take_evictions()) {
    op.session = kEvictSession;
    op.responded = read;
    // An item that the front has replaced, which the store did not know yet: no client sees it.
    if (effort_.front != nullptr && effort_.front->writes()) op.options |= kOptional;
    if (op.invoked >= stopped) {
      late.push_back(op);
      op.options |= kOptional;
    }
    add_to_histories(op);
  }
  late_evictions_ = std::move(late);
}

// Of each key as many as there were replies without an item, in this round before the last reads:
// nobody evicts meanwhile.
void Run::add_unseen_evictions(int64_t stopped) {
  for (uint32_t key = 0; key < histories_.size(); ++key) {
    std::vector<Operation>& history = histories_[key];
    const auto shows_none = [](const Operation& op) {
      return op.outcome != Outcome::kHit && op.kind != Kind::kFlush;
    };
    const auto count = std::count_if(history.begin(), history.end(), shows_none);
    Operation op;
    op.kind = Kind::kEvict;
    op.outcome = Outcome::kOk;
    op.session = kEvictSession;
    op.key = key;
    op.options = kOptional;
    op.cas_compare = kAnyItem;
    op.responded = stopped;
    history.insert(history.end(), std::min<size_t>(static_cast<size_t>(count), kUnseenMax), op);
  }
}

// Ends the round. REQUIRES: all other clients wait.
void Run::gather() {
  const int64_t stopped = now_ns();
  clients_[0]->read_all_keys();
  const int64_t read = now_ns();
  for (const auto& client : clients_) {
    for (const Operation& op : client->take_operations()) {
      add_to_histories(op);
      ++report_.operations;
    }
    for (const std::string& failure : client->failures()) report_.failures.push_back(failure);
  }
  add_evictions(stopped, read);
  if (may_evict_unseen()) add_unseen_evictions(stopped);
  next_key_ = 0;
  ++report_.rounds;
  note_upkeep();
}

// Records what maintenance has done in the round: where evictions are not seen, it helps to explain
// a failure.
void Run::note_upkeep() {
  const store::StoreStats stats = rig_->store().stats();
  const uint64_t evicted = stats.get(store::StoreCounter::kEvicted);
  const uint64_t moved = stats.get(store::StoreCounter::kMovedItems);
  upkeep_ = fmt::format("{} items evicted and {} moved in it", evicted - evicted_, moved - moved_);
  evicted_ = evicted;
  moved_ = moved;
}

void Run::check_key(uint32_t key) {
  std::vector<Operation>& history = histories_[key];
  if (books_[key].size() > kBookMax) books_[key].clear();
  const CheckResult result = check_history(history, states_[key], &books_[key]);
  states_[key] = result.last;
  history.clear();
  const std::lock_guard guard(mutex_);
  report_.steps += result.steps;
  if (result.verdict == Linearizable::kYes) return;
  const char* verdict = result.verdict == Linearizable::kNo ? "no order explains" : "undecided:";
  report_.failures.push_back(fmt::format("round {}, {}, {} {}: {}", report_.rounds, upkeep_,
                                         verdict, key_name(key), result.because));
}

void Run::check_keys() {
  for (uint32_t key = next_key_++; key < scenario_.keys; key = next_key_++) check_key(key);
}

void Run::work(uint32_t thread) {
  Client& client = *clients_[thread];
  while (!done_) {
    for (uint32_t i = 0; i < scenario_.batches; ++i) client.run_batch();
    client.release_pins();
    barrier_.arrive_and_wait();
    if (thread == 0) {
      const std::lock_guard pause(keeper_->pause());
      gather();
      barrier_.arrive_and_wait();
    } else {
      barrier_.arrive_and_wait();
    }
    check_keys();
    barrier_.arrive_and_wait();
    if (thread == 0) {
      report_.seconds = static_cast<double>(now_ns() - start_) / 1e9;
      const bool enough = effort_.operations != 0 && report_.operations >= effort_.operations;
      done_ = ((enough || report_.seconds >= effort_.seconds) && !waits_for_front()) ||
              !report_.failures.empty();
    }
    barrier_.arrive_and_wait();
  }
}

Report Run::go() {
  start_ = now_ns();
  keeper_ = std::make_unique<Keeper>(scenario_, *rig_);
  if (effort_.front != nullptr) effort_.front->start(*rig_);
  std::vector<std::thread> threads;
  for (uint32_t i = 0; i < scenario_.threads; ++i) threads.emplace_back([this, i] { work(i); });
  for (std::thread& thread : threads) thread.join();
  if (effort_.front != nullptr) effort_.front->stop();
  keeper_.reset();
  for (const auto& client : clients_) {
    client->release_pins();
    report_.filler += client->filler_commands();
    report_.pins += client->pins_held();
    for (const std::string& failure : client->failures()) fail(failure);
  }
  const store::StoreStats stats = rig_->store().stats();
  if (stats.pinned_segments != 0) fail("segments stay pinned");
  if (stats.reserved_segments != 0) fail("segments stay reserved");
  report_.evictions = observer_.evictions();
  report_.all_evictions = stats.get(store::StoreCounter::kEvicted);
  report_.moved = stats.get(store::StoreCounter::kMovedItems);
  report_.splits = stats.get(store::StoreCounter::kSplits);
  report_.expired = stats.get(store::StoreCounter::kExpired);
  clients_.clear();
  return report_;
}

}  // namespace

Report run_scenario(const Scenario& scenario, const Effort& effort) {
  return Run(scenario, effort).go();
}

}  // namespace warpcache::stress
