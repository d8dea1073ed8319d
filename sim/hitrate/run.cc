// SPDX-License-Identifier: Apache-2.0
#include "hitrate/run.h"

#include <array>
#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <unordered_map>
#include <unordered_set>

#include "hitrate/stack_distance.h"

namespace warpcache::sim {
namespace {

using SteadyClock = std::chrono::steady_clock;

double seconds_since(SteadyClock::time_point begin) {
  return std::chrono::duration<double>(SteadyClock::now() - begin).count();
}

// What threads share.
struct Board {
  std::atomic<size_t> next = 0;
  std::atomic<uint64_t> requests = 0;
  std::mutex mutex;                             // guards what follows, and the callbacks
  std::vector<std::optional<Result>> finished;  // not reported yet, by run
  size_t reported = 0;
  std::string why;
};

uint64_t requests_of(const Source& source) {
  const std::unique_ptr<Trace> load = source.load_trace();
  return source.trace()->length() + (load != nullptr ? load->length() : 0);
}

class Runner {
 public:
  Runner(const Options& options, const Source& source, const TotalProgress& progress, Board* board)
      : options_(options),
        source_(source),
        progress_(progress),
        runs_(runs_of(options)),
        all_(runs_.size() * requests_of(source)),
        board_(board) {
    board_->finished.resize(runs_.size());
  }

  size_t runs() const { return runs_.size(); }

  void work(const std::function<void(const Result&)>& done) {
    while (true) {
      const size_t i = board_->next++;
      if (i >= runs_.size()) return;
      Result result;
      result.run = runs_[i];
      std::string why;
      const bool well = run(&result, &why);
      const std::lock_guard guard(board_->mutex);
      if (!well) {
        board_->why = why;
        board_->next = runs_.size();
        return;
      }
      board_->finished[i] = result;
      report(done);
    }
  }

 private:
  // In the order of the runs, whichever thread was first. REQUIRES: the board's mutex is held.
  void report(const std::function<void(const Result&)>& done) {
    for (; board_->reported < runs_.size(); ++board_->reported) {
      std::optional<Result>& next = board_->finished[board_->reported];
      if (!next) return;
      done(*next);
      next.reset();
    }
  }

  SimulateOptions with_progress(const SimulateOptions& options) {
    SimulateOptions out = options;
    auto reported = std::make_shared<uint64_t>(0);
    out.progress = [this, reported](uint64_t done) {
      const uint64_t before = board_->requests.fetch_add(done - *reported);
      const uint64_t total = before + done - *reported;
      *reported = done;
      if (total / kReportEvery == before / kReportEvery && total < all_) return;
      const std::lock_guard guard(board_->mutex);
      progress_(total, all_);
    };
    return out;
  }

  bool run(Result* result, std::string* why) {
    const auto begin = SteadyClock::now();
    const std::unique_ptr<Cache> cache =
        make_cache(result->run.cache, result->run.size, options_.workload.seed, why);
    if (cache == nullptr) return false;
    if (const std::unique_ptr<Trace> load = source_.load_trace()) {
      SimulateOptions loading;
      loading.hash_seed = options_.simulate.hash_seed;
      loading.ttl_s = options_.simulate.ttl_s;
      loading.ttl_every = options_.simulate.ttl_every;
      result->counts.wrong = simulate(load.get(), cache.get(), with_progress(loading)).wrong;
    }
    const uint64_t wrong = result->counts.wrong;
    SimulateOptions options = options_.simulate;
    if (result->run.cache == "chained:farthest") options.next_uses = source_.next_uses();
    result->counts = simulate(source_.trace().get(), cache.get(), with_progress(options));
    result->counts.wrong += wrong;
    result->items = cache->items();
    result->moved = cache->moved();
    result->item_bytes = cache->item_bytes();
    result->used_bytes = cache->used_bytes();
    result->evictions = cache->evictions();
    result->seconds = seconds_since(begin);
    return true;
  }

  static constexpr uint64_t kReportEvery = 1'000'000;  // requests

  const Options& options_;
  const Source& source_;
  const TotalProgress& progress_;
  std::vector<Run> runs_;
  uint64_t all_;
  Board* board_;
};

template <typename Function>
void for_each_request(Trace* trace, const Function& function) {
  std::array<Request, 1024> requests;
  while (const size_t now = trace->read(requests.data(), requests.size())) {
    for (size_t i = 0; i < now; ++i) function(requests[i]);
  }
}

}  // namespace

bool Source::open(const Options& options, std::string* why) {
  workload_ = options.workload;
  if (!options.trace_path.empty()) {
    file_ = load_file(options.trace_path, kValueSizeDefault, why);
    if (file_ == nullptr) return false;
  } else {
    load_ = options.load;
    if (make_load_trace(workload_, why) == nullptr) return false;
  }
  const std::unique_ptr<Trace> requests = make_requests(why);
  if (requests == nullptr) return false;
  if (options.simulate.warm_up < requests->length()) return true;
  *why = "a warm-up of " + std::to_string(options.simulate.warm_up) + " requests leaves none of " +
         std::to_string(requests->length()) + " to count";
  return false;
}

std::unique_ptr<Trace> Source::make_requests(std::string* why) const {
  if (file_ != nullptr) return std::make_unique<FileTrace>(file_.get());
  return make_trace(workload_, why);
}

uint64_t Source::keys() const { return file_ != nullptr ? file_->keys() : workload_.key_count; }

std::unique_ptr<Trace> Source::load_trace() const {
  std::string why;
  return load_ ? make_load_trace(workload_, &why) : nullptr;
}

std::unique_ptr<Trace> Source::trace() const {
  std::string why;
  return make_requests(&why);
}

uint64_t Source::footprint(uint32_t overhead) const {
  std::unordered_set<uint64_t> seen;
  uint64_t bytes = 0;
  const auto add = [&](const Request& request) {
    if (request.operation == Operation::kDelete || !seen.insert(request.key).second) return;
    bytes += uint64_t{overhead} + request.key_size + request.value_size;
  };
  if (const std::unique_ptr<Trace> load = load_trace()) for_each_request(load.get(), add);
  for_each_request(trace().get(), add);
  return bytes;
}

std::vector<uint64_t> Source::next_uses() const {
  std::vector<uint64_t> next;
  std::unordered_map<uint64_t, uint64_t> last;
  for_each_request(trace().get(), [&](const Request& request) {
    const auto [entry, is_new] = last.try_emplace(request.key, next.size());
    if (!is_new) next[entry->second] = next.size();
    entry->second = next.size();
    next.push_back(kNever);
  });
  return next;
}

std::vector<Run> runs_of(const Options& options) {
  std::vector<Run> runs;
  const bool bytes = !options.memories.empty();
  for (const uint64_t size : bytes ? options.memories : options.capacities) {
    for (const std::string& cache : options.caches) {
      runs.push_back({cache, {size, {bytes, bytes ? options.overhead : 0}}});
    }
  }
  return runs;
}

bool run_all(const Options& options, const Source& source, const TotalProgress& progress,
             const std::function<void(const Result&)>& done, std::string* why) {
  Board board;
  Runner runner(options, source, progress, &board);
  std::vector<std::thread> threads;
  for (uint32_t i = 1; i < options.threads; ++i) {
    threads.emplace_back([&] { runner.work(done); });
  }
  runner.work(done);
  for (std::thread& thread : threads) thread.join();
  *why = board.why;
  return why->empty();
}

std::vector<Result> run_exact_lru(const Options& options, const Source& source) {
  const auto begin = SteadyClock::now();
  StackDistance distances(requests_of(source));
  uint64_t done = 0;
  if (const std::unique_ptr<Trace> load = source.load_trace()) {
    for_each_request(load.get(), [&](const Request& request) { distances.add(request, false); });
  }
  for_each_request(source.trace().get(), [&](const Request& request) {
    distances.add(request, done++ >= options.simulate.warm_up);
  });
  std::vector<Result> results;
  for (const uint64_t capacity : options.capacities) {
    Result result;
    result.run = {"exact-lru", {capacity, {}}};
    result.counts.gets = distances.gets();
    result.counts.hits = distances.hits(capacity);
    result.seconds = seconds_since(begin);
    results.push_back(result);
  }
  return results;
}

}  // namespace warpcache::sim
