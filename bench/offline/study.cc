// SPDX-License-Identifier: Apache-2.0
#include "offline/study.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <mutex>
#include <numeric>
#include <stdexcept>

#include "engine/cpu/cpu_engine.h"
#include "offline/parallel.h"

namespace warpcache::offline {

namespace {

constexpr uint64_t kFillAtATime = 1 << 20;
constexpr uint32_t kFillBatch = 16384;
constexpr double kEnergySecondsMin = 1;  // the meter counts in steps of 0.1 seconds

// Like in_parallel(), piece by piece, with reports of the progress.
template <typename Work>
void in_pieces(uint64_t count, const std::string& what, const Progress& progress,
               const Work& work) {
  constexpr uint64_t kPiece = 1 << 22;
  for (uint64_t begin = 0; begin < count; begin += kPiece) {
    progress(what + " " + std::to_string(begin * 100 / count) + "%");
    in_parallel(std::min(kPiece, count - begin),
                [&](uint64_t first, uint64_t end) { work(begin + first, begin + end); });
  }
}

double quantile(std::vector<float>& sorted, double share) {
  const auto rank = static_cast<size_t>(std::ceil(share * static_cast<double>(sorted.size())));
  return static_cast<double>(sorted[std::max<size_t>(rank, 1) - 1]);
}

Row row_of(const Pass& pass, PassResult& result) {
  Row row;
  row.batch = pass.batch;
  row.requests_per_s = static_cast<double>(pass.count) / result.seconds;
  std::sort(result.batch_us.begin(), result.batch_us.end());
  row.mean_us = std::accumulate(result.batch_us.begin(), result.batch_us.end(), 0.0) /
                static_cast<double>(result.batch_us.size());
  row.max_us = static_cast<double>(result.batch_us.back());
  row.p50_us = quantile(result.batch_us, 0.5);
  row.p95_us = quantile(result.batch_us, 0.95);
  row.p99_us = quantile(result.batch_us, 0.99);
  row.in_gb_per_s = row.requests_per_s * pass.slot_bytes / 1e9;
  row.out_gb_per_s = row.requests_per_s * pass.reply_slot_bytes / 1e9;
  return row;
}

// The request at each place of a batch.
class Places {
 public:
  Places(const StudyConfig& config, const Workload& workload) : order_(config.order) {
    if (order_ == Order::kDrawn) return;
    numbers_.resize(config.requests);
    std::iota(numbers_.begin(), numbers_.end(), 0u);
    rank_.resize(config.requests);
    in_parallel(config.requests, [&](uint64_t first, uint64_t end) {
      for (uint64_t i = first; i < end; ++i) {
        rank_[i] = order_ == Order::kCommand ? static_cast<uint8_t>(workload.is_set(i))
                                             : static_cast<uint8_t>(workload.key_size(i));
      }
    });
  }

  void sort(uint32_t batch) {
    const uint64_t batches = (numbers_.size() + batch - 1) / batch;
    in_parallel(batches, [&](uint64_t first, uint64_t end) {
      for (uint64_t i = first; i < end; ++i) {
        const auto begin = numbers_.begin() + static_cast<int64_t>(i * batch);
        const auto left = numbers_.end() - begin;
        const auto stop = begin + std::min<int64_t>(batch, left);
        std::stable_sort(begin, stop, [&](uint32_t a, uint32_t b) { return rank_[a] < rank_[b]; });
      }
    });
  }
  bool sorts() const { return order_ != Order::kDrawn; }
  uint64_t request_at(uint64_t place) const { return sorts() ? numbers_[place] : place; }

 private:
  Order order_;
  std::vector<uint32_t> numbers_;
  std::vector<uint8_t> rank_;  // of requests
};

void verify(const Workload& workload, const Backend& backend, const Places& places, uint64_t count,
            const Progress& progress, Row& row) {
  std::vector<uint64_t> wrong;
  std::mutex mutex;
  in_pieces(count, "verifying", progress, [&](uint64_t first, uint64_t end) {
    for (uint64_t i = first; i < end; ++i) {
      const auto frame_of = [&](uint32_t datagram) { return backend.reply(i, datagram); };
      if (workload.is_right(places.request_at(i), frame_of)) continue;
      const std::lock_guard lock(mutex);
      wrong.push_back(i);
    }
  });
  row.verified = count;
  row.wrong = wrong.size();
  if (wrong.empty()) return;
  const uint64_t first = *std::min_element(wrong.begin(), wrong.end());
  row.first_wrong = "request " + std::to_string(first) + " got";
  for (uint32_t i = 0; i == 0 || backend.reply(first, i).size != 0; ++i) {
    row.first_wrong += " " + std::to_string(backend.reply(first, i).size);
  }
  row.first_wrong += " bytes";
}

// How long a run of background work takes without requests.
double alone(const BackgroundConfig& background, Backend& backend, const Progress& progress) {
  progress("background work alone");
  backend.begin_background(background);
  return backend.end_background();
}

// One row of the table: the best of several passes.
Row best_of(const StudyConfig& config, const Pass& pass, const BackgroundConfig& background,
            Backend& backend, const Progress& progress) {
  const bool shared = background.launches != 0;
  const double alone_ms = shared ? alone(background, backend, progress) : 0;
  Row best;
  double joules = 0;
  auto begin = std::chrono::steady_clock::now();
  if (shared) backend.begin_background(background);
  for (uint32_t i = 0; i < config.passes; ++i) {
    progress("batches of " + std::to_string(pass.batch) + ", pass " + std::to_string(i + 1));
    PassResult times = backend.run(pass);
    const Row row = row_of(pass, times);
    if (row.requests_per_s > best.requests_per_s) best = row;
    if (i != 0) continue;
    // The first pass allocates memory: it is not counted.
    joules = backend.joules();
    begin = std::chrono::steady_clock::now();
  }
  joules = backend.joules() - joules;
  const std::chrono::duration<double> time = std::chrono::steady_clock::now() - begin;
  if (shared) {
    best.background = background;
    best.background_ms = backend.end_background();
    best.background_alone_ms = alone_ms;
  }
  if (joules > 0 && time.count() >= kEnergySecondsMin) {
    best.requests_per_j = static_cast<double>((config.passes - 1) * pass.count) / joules;
    best.watts = joules / time.count();
  }
  return best;
}

// Requests of a batch that stores piece `piece` of its values. The pieces after the first are
// appended, which writes the values anew: an engine refuses datagrams that copy more in a batch.
uint32_t fill_batch(const Workload& workload, uint32_t piece) {
  if (piece == 0) return kFillBatch;
  const uint64_t value_max = uint64_t{piece + 1} * workload.fill_slot();
  return static_cast<uint32_t>(
      std::clamp<uint64_t>(engine::kBatchCopiedMax / value_max, 1, kFillBatch));
}

// Stores one piece of the values of `pass.count` keys from `first` on.
void fill_piece(const Workload& workload, Backend& backend, const Pass& pass, uint64_t first,
                uint32_t piece) {
  uint8_t* input = backend.input(pass.count * pass.slot_bytes);
  in_parallel(pass.count, [&](uint64_t begin, uint64_t end) {
    for (uint64_t i = begin; i < end; ++i) {
      const auto id = static_cast<uint32_t>(first + i);
      (void)workload.write_fill(id, piece, input + i * pass.slot_bytes);
    }
  });
  (void)backend.run(pass);
  std::atomic<uint64_t> not_stored{UINT64_MAX};
  in_parallel(pass.count, [&](uint64_t begin, uint64_t end) {
    for (uint64_t i = begin; i < end; ++i) {
      const auto frame_of = [&](uint32_t datagram) { return backend.reply(i, datagram); };
      if (!workload.is_stored(static_cast<uint32_t>(first + i), frame_of)) not_stored = first + i;
    }
  });
  if (not_stored != UINT64_MAX) {
    throw std::runtime_error("key " + std::to_string(not_stored) + " was not stored");
  }
}

}  // namespace

void fill(const Workload& workload, Backend& backend, const Progress& progress) {
  const uint32_t keys = workload.config().keys;
  for (uint64_t first = 0; first < keys; first += kFillAtATime) {
    progress("storing keys " + std::to_string(first * 100 / keys) + "%");
    Pass pass;
    pass.count = std::min<uint64_t>(kFillAtATime, keys - first);
    pass.slot_bytes = workload.fill_slot();
    pass.reply_slot_bytes = workload.fill_slot();
    pass.writes = true;
    for (uint32_t i = 0; i < workload.fill_pieces(); ++i) {
      pass.batch = fill_batch(workload, i);
      fill_piece(workload, backend, pass, first, i);
    }
  }
}

StudyResult run_study(const StudyConfig& config, Backend& backend, const Progress& progress) {
  StudyResult result;
  result.bus = backend.bus();
  const Workload workload(config.workload);
  if (!config.workload.ping) fill(workload, backend, progress);
  Pass pass;
  pass.count = config.requests;
  pass.slot_bytes = workload.request_slot();
  pass.reply_slot_bytes = workload.reply_slot();
  pass.writes = config.workload.set_share > 0;
  uint8_t* input = backend.input(pass.count * pass.slot_bytes);
  Places places(config, workload);
  const auto write = [&] {
    in_pieces(pass.count, "writing frames", progress, [&](uint64_t first, uint64_t end) {
      for (uint64_t i = first; i < end; ++i) {
        (void)workload.write_request(places.request_at(i), input + i * pass.slot_bytes);
      }
    });
  };
  write();
  pass.requests_per_s = config.requests_per_s;
  for (const uint32_t batch : config.batches) {
    pass.batch = batch;
    if (places.sorts()) {
      places.sort(batch);
      write();
    }
    for (const BackgroundConfig& background : config.backgrounds) {
      Row row = best_of(config, pass, background, backend, progress);
      if (config.verify) verify(workload, backend, places, pass.count, progress, row);
      result.rows.push_back(row);
    }
  }
  return result;
}

}  // namespace warpcache::offline
