// SPDX-License-Identifier: Apache-2.0
#include "stress/wire_run.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <poll.h>

#include <atomic>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

#include "base/assert.h"
#include "stress/checker.h"
#include "stress/client.h"
#include "stress/eviction_log.h"
#include "stress/wire_session.h"

namespace warpcache::stress {

namespace {

constexpr size_t kNumbersMax = 200'000;         // CAS ids kept for each key
constexpr int64_t kSilenceNs = 60'000'000'000;  // a server that is silent for so long has failed

// Waits until each of the sessions has all replies. False: one does not get them.
bool complete_all(const std::vector<WireSession*>& sessions) {
  std::vector<WireSession*> open = sessions;
  int64_t last = now_ns();
  while (!open.empty() && now_ns() - last < kSilenceNs) {
    const size_t before = open.size();
    std::erase_if(open, [](WireSession* session) { return session->advance(); });
    if (open.size() != before) last = now_ns();
    std::vector<pollfd> waits;
    for (const WireSession* session : open) {
      const int events = POLLIN | (session->wants_to_send() ? POLLOUT : 0);
      waits.push_back({session->fd(), static_cast<short>(events), 0});
    }
    if (!waits.empty()) (void)poll(waits.data(), waits.size(), 1000);
  }
  return open.empty();
}

// One thread's connections.
class Worker {
 public:
  Worker(const Scenario& scenario, uint32_t index, uint64_t seed,
         const std::vector<Address>& addresses)
      : scenario_(scenario), generator_(scenario, index + 1, seed) {
    for (uint32_t i = 0; i < scenario.sessions; ++i) {
      const uint32_t number = index * scenario.sessions + i;
      // So that each form comes over each address.
      const Form form = (number / addresses.size()) % 3 == 2 ? Form::kBinary : Form::kText;
      sessions_.push_back(
          std::make_unique<WireSession>(addresses[number % addresses.size()], number, form));
      all_.push_back(sessions_.back().get());
    }
  }

  void run_batches() {
    for (uint32_t i = 0; i < scenario_.batches && failure_.empty(); ++i) run_batch();
  }
  std::vector<Operation> take_operations() { return std::exchange(operations_, {}); }
  const std::string& failure() const { return failure_; }

 private:
  void run_batch() {
    std::vector<Operation> made;
    for (const auto& session : sessions_) {
      for (uint64_t i = 1 + generator_.below(scenario_.commands_max); i > 0; --i) {
        made.clear();
        Form form = session->form();
        generator_.make(&form, &made, &body_);
        session->add(form, made, body_);
      }
      session->begin();
    }
    if (!complete_all(all_)) {
      failure_ = "a server does not answer\n";
      return;
    }
    for (const auto& session : sessions_) session->finish(&generator_, &operations_, &failure_);
  }

  const Scenario& scenario_;
  Generator generator_;
  std::vector<std::unique_ptr<WireSession>> sessions_;
  std::vector<WireSession*> all_;
  std::string body_;
  std::vector<Operation> operations_;
  std::string failure_;
};

class WireRun {
 public:
  WireRun(const Scenario& scenario, const Effort& effort, const std::vector<Address>& addresses)
      : scenario_(scenario),
        effort_(effort),
        reader_(addresses[0], kFinalSession, Form::kText),
        histories_(scenario.keys),
        states_(scenario.keys),
        books_(scenario.keys) {
    for (uint32_t i = 0; i < scenario.threads; ++i) {
      workers_.push_back(std::make_unique<Worker>(scenario, i, effort.seed, addresses));
    }
    WC_ASSERT(!scenario.expiry && scenario.threads * scenario.sessions <= kFrontSession);
  }

  Report go() {
    const int64_t start = now_ns();
    ask_of_all_keys(Kind::kDelete, nullptr);
    do {
      run_on_threads([](Worker& worker, uint32_t) { worker.run_batches(); });
      gather();
      std::atomic<uint32_t> next = 0;
      run_on_threads([&](Worker&, uint32_t) {
        for (uint32_t key = next++; key < scenario_.keys; key = next++) check_key(key);
      });
      ++report_.rounds;
      report_.seconds = static_cast<double>(now_ns() - start) / 1e9;
    } while (report_.failures.empty() &&
             (effort_.operations != 0 ? report_.operations < effort_.operations
                                      : report_.seconds < effort_.seconds));
    return report_;
  }

 private:
  template <typename Work>
  void run_on_threads(const Work& work) {
    std::vector<std::thread> threads;
    for (uint32_t i = 0; i < workers_.size(); ++i) {
      threads.emplace_back([&, i] { work(*workers_[i], i); });
    }
    for (std::thread& thread : threads) thread.join();
  }

  // The operations go to `done`, if it is not null.
  void ask_of_all_keys(Kind kind, std::vector<Operation>* done) {
    std::string failure;
    std::vector<Operation> ignored;
    for (uint32_t key = 0; key < scenario_.keys; ++key) {
      Operation op;
      op.kind = kind;
      op.key = key;
      op.options = kMeta;
      reader_.add(Form::kMeta, {&op, 1}, "");
    }
    reader_.begin();
    if (!complete_all({&reader_})) failure = "a server does not answer\n";
    if (failure.empty()) reader_.finish(nullptr, done != nullptr ? done : &ignored, &failure);
    if (!failure.empty()) report_.failures.push_back(failure);
  }

  void gather() {
    std::vector<Operation> operations;
    for (const auto& worker : workers_) {
      for (const Operation& op : worker->take_operations()) operations.push_back(op);
      if (!worker->failure().empty()) report_.failures.push_back(worker->failure());
    }
    ask_of_all_keys(Kind::kGet, &operations);
    report_.operations += operations.size();
    for (const Operation& op : operations) {
      if (op.kind == Kind::kGet) ++(op.outcome == Outcome::kHit ? report_.hits : report_.misses);
      if (op.outcome == Outcome::kNoMemory) ++report_.no_memory;
      histories_[op.key].push_back(op);
    }
  }

  void check_key(uint32_t key) {
    if (books_[key].size() > kNumbersMax) books_[key].clear();
    const CheckResult result = check_history(histories_[key], states_[key], &books_[key]);
    states_[key] = result.last;
    histories_[key].clear();
    const std::lock_guard guard(mutex_);
    report_.steps += result.steps;
    if (result.verdict == Linearizable::kYes) return;
    const char* verdict = result.verdict == Linearizable::kNo ? "no order explains" : "undecided:";
    report_.failures.push_back(
        fmt::format("round {}, {} {}: {}", report_.rounds, verdict, key_name(key), result.because));
  }

  const Scenario& scenario_;
  const Effort effort_;
  WireSession reader_;
  std::vector<std::unique_ptr<Worker>> workers_;
  std::vector<std::vector<Operation>> histories_;  // of the round, by key
  std::vector<State> states_;
  std::vector<CasBook> books_;
  std::mutex mutex_;  // guards report_ in check_key()
  Report report_;
};

}  // namespace

bool read_address(const std::string& text, Address* address) {
  const size_t colon = text.rfind(':');
  if (colon == std::string::npos) return false;
  address->host = text.substr(0, colon);
  const int port = std::atoi(text.c_str() + colon + 1);
  address->port = static_cast<uint16_t>(port);
  in_addr number{};
  return port > 0 && port < 65536 && inet_pton(AF_INET, address->host.c_str(), &number) == 1;
}

Report run_over_wire(const Scenario& scenario, const Effort& effort,
                     const std::vector<Address>& addresses) {
  return WireRun(scenario, effort, addresses).go();
}

}  // namespace warpcache::stress
