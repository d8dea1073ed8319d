// SPDX-License-Identifier: Apache-2.0
#include "ablation/study.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <limits>
#include <memory>
#include <stdexcept>

#include "ablation/hopscotch.h"
#include "ablation/launches.h"
#include "ablation/shadow.h"
#include "gpu/device.h"
#include "offline/gpu_backend.h"
#include "offline/parallel.h"
#include "protocol/single_key/packet.h"

namespace warpcache::ablation {

namespace {

using gpu::CudaMemory;
using gpu::CudaStream;
using offline::in_parallel;
using offline::Progress;
using offline::Workload;

void take(CudaMemory& memory, CudaMemory::Place place, uint64_t bytes) {
  if (!memory.allocate(place, bytes)) throw std::bad_alloc();
}

class Event {
 public:
  Event() { check(cudaEventCreate(&event_), "an event"); }
  ~Event() { (void)cudaEventDestroy(event_); }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;

  void record(cudaStream_t stream) { check(cudaEventRecord(event_, stream), "an event"); }
  double ms_since(const Event& begin) const {
    float ms = 0;
    check(cudaEventSynchronize(event_), "a variant's kernels");
    check(cudaEventElapsedTime(&ms, begin.event_, event_), "the time between events");
    return static_cast<double>(ms);
  }

 private:
  cudaEvent_t event_ = nullptr;
};

class Study {
 public:
  Study(const StudyConfig& config, const Progress& progress)
      : config_(config),
        progress_(progress),
        workload_(config.workload),
        batches_((config.requests + config.batch - 1) / config.batch),
        requests_(batches_ * config.batch) {}

  StudyResult run() {
    fill();
    write_requests();
    StudyResult result;
    result.device = facts_.name;
    result.request_slot_bytes = workload_.request_slot();
    result.reply_slot_bytes = workload_.reply_slot();
    result.requests = requests_;
    for (const Variant<GetBatch>& variant : get_variants(core_, get_batch(0))) {
      result.rows.push_back(measure_gets(variant));
    }
    compare_launches(result.rows);
    compare_indexes(result.rows);
    return result;
  }

 private:
  void fill() {
    offline::BackendConfig config;
    config.memory_bytes = memory_for(config_.workload);
    config.hash_power = hash_power_for(config_.workload);
    config.gpu = config_.gpu;
    // The kernels of the variants enter no epoch: nothing may be reclaimed or moved meanwhile.
    config.maintenance = false;
    const std::string failure = gpu::open_device(static_cast<int>(config.gpu), &facts_);
    if (!failure.empty()) throw std::runtime_error(failure);
    store::CudaStore* store = nullptr;
    backend_ = make_gpu_backend(config, &store);
    offline::fill(workload_, *backend_, progress_);
    if (store->host_bytes() != 0) throw std::runtime_error("the GPU has too little memory");
    core_ = store->resources().core;
    now_ = store->clock().now;
    if (!stream_.create(CudaStream::Priority::kNormal)) {
      throw std::runtime_error("the GPU gives no stream");
    }
  }

  void write_requests() {
    progress_("writing frames");
    const uint64_t slot = workload_.request_slot();
    frames_.resize(requests_ * slot);
    in_parallel(requests_, [&](uint64_t begin, uint64_t end) {
      for (uint64_t i = begin; i < end; ++i) {
        (void)workload_.write_request(i, frames_.data() + i * slot);
      }
    });
    take(input_, CudaMemory::Place::kDevice, frames_.size());
    check(cudaMemcpy(input_.data(), frames_.data(), frames_.size(), cudaMemcpyHostToDevice),
          "frames to the GPU");
    take(replies_, CudaMemory::Place::kDevice, requests_ * workload_.reply_slot());
    take(sizes_, CudaMemory::Place::kDevice, requests_ * sizeof(uint32_t));
  }

  GetBatch get_batch(uint64_t number) const {
    const uint64_t first = number * config_.batch;
    GetBatch batch;
    batch.slot_bytes = workload_.request_slot();
    batch.reply_slot_bytes = workload_.reply_slot();
    batch.input = input_.data() + first * batch.slot_bytes;
    batch.replies = replies_.data() + first * batch.reply_slot_bytes;
    batch.sizes = sizes_.as<uint32_t>() + first;
    batch.count = config_.batch;
    batch.now = now_;
    batch.udp_port = Workload::kPort;
    return batch;
  }

  // Launches one kernel for each batch, one after the other.
  template <typename Batch, typename BatchOf>
  void launch_all(const Variant<Batch>& variant, const BatchOf& batch_of) {
    for (uint64_t i = 0; i < batches_; ++i) {
      variant.launch(batch_of(i), stream_.get());
      check(cudaGetLastError(), "a variant's start");
    }
  }

  // Measures, without the verification.
  template <typename Batch, typename BatchOf>
  Row measure(const Variant<Batch>& variant, const BatchOf& batch_of) {
    progress_(variant.experiment + ": " + variant.name);
    launch_all(variant, batch_of);  // warms up
    double best_ms = std::numeric_limits<double>::max();
    for (uint32_t pass = 0; pass < config_.passes; ++pass) {
      Event begin;
      Event end;
      begin.record(stream_.get());
      launch_all(variant, batch_of);
      end.record(stream_.get());
      best_ms = std::min(best_ms, end.ms_since(begin));
    }
    Row row;
    row.experiment = variant.experiment;
    row.variant = variant.name;
    row.footprint = variant.footprint;
    row.requests_per_s = static_cast<double>(requests_) / best_ms * 1e3;
    row.batch_us = best_ms * 1e3 / static_cast<double>(batches_);
    row.verified = requests_;
    return row;
  }

  void clear(const CudaMemory& memory) {
    check(cudaMemsetAsync(memory.data(), 0, memory.bytes(), stream_.get()), "clearing results");
  }
  void finish(const char* what) { check(cudaStreamSynchronize(stream_.get()), what); }

  template <typename T>
  std::vector<T> bring_back(const CudaMemory& memory) {
    std::vector<T> copy(memory.bytes() / sizeof(T));
    check(cudaMemcpy(copy.data(), memory.data(), memory.bytes(), cudaMemcpyDeviceToHost),
          "results from the GPU");
    return copy;
  }

  Row measure_gets(const Variant<GetBatch>& variant) {
    const auto batch_of = [this](uint64_t number) { return get_batch(number); };
    Row row = measure(variant, batch_of);
    // Once more, so that nothing of another variant remains.
    clear(replies_);
    clear(sizes_);
    launch_all(variant, batch_of);
    finish("a variant's kernels");
    const auto replies = bring_back<uint8_t>(replies_);
    const auto sizes = bring_back<uint32_t>(sizes_);
    const uint64_t slot = workload_.reply_slot();
    std::atomic<uint64_t> wrong{0};
    in_parallel(requests_, [&](uint64_t begin, uint64_t end) {
      for (uint64_t i = begin; i < end; ++i) {
        const Bytes reply = {replies.data() + i * slot, sizes[i]};
        const auto frame_of = [reply](uint32_t datagram) {
          return datagram == 0 ? reply : Bytes{};
        };
        if (sizes[i] > slot || !workload_.is_right(i, frame_of)) ++wrong;
      }
    });
    row.wrong = wrong;
    return row;
  }

  // --- Launches

  // Small batches, where the launch takes much of the time. Their replies are those of the first
  // experiment, and are not verified again.
  void compare_launches(std::vector<Row>& rows) {
    constexpr uint32_t kRequests = 256;
    constexpr uint64_t kBatches = 64;
    constexpr uint32_t kRounds = 50;
    progress_("launches");
    std::vector<GetBatch> batches;
    for (uint64_t first = 0; first + kRequests <= requests_ && batches.size() < kBatches;
         first += kRequests) {
      GetBatch batch = get_batch(0);
      batch.input += first * batch.slot_bytes;
      batch.replies += first * batch.reply_slot_bytes;
      batch.sizes += first;
      batch.count = kRequests;
      batches.push_back(batch);
    }
    if (batches.empty()) return;
    CudaMemory frames;
    take(frames, CudaMemory::Place::kHost, uint64_t{kRequests} * workload_.request_slot());
    std::memcpy(frames.data(), frames_.data(), frames.bytes());
    const Variant<GetBatch> variant = get_variants(core_, batches.front()).front();
    for (const LaunchTimes& times :
         measure_launches(variant, batches, frames.data(), kRounds, stream_.get())) {
      Row row;
      row.experiment = "launch";
      row.variant = times.variant;
      row.footprint = variant.footprint;
      row.batch_us = times.median_us;
      row.requests_per_s = kRequests / times.median_us * 1e6;
      rows.push_back(row);
    }
  }

  // --- Indexes

  Bytes key_of(const uint8_t* frame) const {
    return {frame + protocol::kSingleKeyOffset, config_.workload.key_size};
  }

  // Of all keys, in the order in which they were stored.
  std::vector<Located> locate_items(const Shadow& shadow) const {
    progress_("reading the store");
    std::vector<Located> items(config_.workload.keys);
    in_parallel_or_throw(items.size(), [&](uint64_t begin, uint64_t end) {
      std::vector<uint8_t> frame(workload_.fill_slot());
      for (uint64_t i = begin; i < end; ++i) {
        (void)workload_.write_fill(static_cast<uint32_t>(i), 0, frame.data());
        items[i] = shadow.locate(key_of(frame.data()));
      }
    });
    return items;
  }

  std::vector<Located> locate_requests(const Shadow& shadow) const {
    std::vector<Located> located(requests_);
    in_parallel_or_throw(requests_, [&](uint64_t begin, uint64_t end) {
      for (uint64_t i = begin; i < end; ++i) {
        located[i] = shadow.locate(key_of(frames_.data() + i * workload_.request_slot()));
      }
    });
    return located;
  }

  // Like in_parallel(); an exception of `work` (std::runtime_error) is thrown here.
  template <typename Work>
  static void in_parallel_or_throw(uint64_t count, const Work& work) {
    std::atomic<bool> failed{false};
    in_parallel(count, [&](uint64_t begin, uint64_t end) {
      try {
        work(begin, end);
      } catch (const std::runtime_error&) {
        failed = true;
      }
    });
    if (failed) throw std::runtime_error("a key is not where the store should have it");
  }

  void write_keys() {
    key_slot_ = (kKeyInSlot + config_.workload.key_size + 15) / 16 * 16;
    std::vector<uint8_t> slots(requests_ * key_slot_);
    in_parallel(requests_, [&](uint64_t begin, uint64_t end) {
      for (uint64_t i = begin; i < end; ++i) {
        const Bytes key = key_of(frames_.data() + i * workload_.request_slot());
        std::memcpy(slots.data() + i * key_slot_ + kKeyInSlot, key.data, key.size);
      }
    });
    take(keys_, CudaMemory::Place::kDevice, slots.size());
    check(cudaMemcpy(keys_.data(), slots.data(), slots.size(), cudaMemcpyHostToDevice),
          "keys to the GPU");
    take(offsets_, CudaMemory::Place::kDevice, requests_ * sizeof(uint64_t));
    take(sum_, CudaMemory::Place::kDevice, sizeof(uint64_t));
  }

  LookupBatch lookup_batch(uint64_t number, bool with_offsets) const {
    const uint64_t first = number * config_.batch;
    LookupBatch batch;
    batch.keys = keys_.data() + first * key_slot_;
    batch.slot_bytes = key_slot_;
    batch.key_size = config_.workload.key_size;
    batch.count = config_.batch;
    batch.sum = sum_.as<unsigned long long>();
    if (with_offsets) batch.offsets = offsets_.as<unsigned long long>() + first;
    return batch;
  }

  // `located`: the items of the requests.
  Row measure_lookups(const Variant<LookupBatch>& variant, const std::vector<Located>& located) {
    Row row = measure(variant, [this](uint64_t number) { return lookup_batch(number, false); });
    const uint64_t to_value = sizeof(store::Item) + config_.workload.key_size;
    uint64_t sum = 0;
    for (const Located& item : located) sum += item.offset + to_value;
    // First as measured, by the sum alone, then one by one.
    clear(sum_);
    launch_all(variant, [this](uint64_t number) { return lookup_batch(number, false); });
    finish("a variant's kernels");
    const bool right_sum = bring_back<uint64_t>(sum_)[0] == sum;
    clear(offsets_);
    launch_all(variant, [this](uint64_t number) { return lookup_batch(number, true); });
    finish("a variant's kernels");
    const auto offsets = bring_back<uint64_t>(offsets_);
    for (uint64_t i = 0; i < requests_; ++i) {
      if (offsets[i] != located[i].offset + to_value) ++row.wrong;
    }
    if (!right_sum) row.wrong = std::max<uint64_t>(row.wrong, 1);
    return row;
  }

  void compare_indexes(std::vector<Row>& rows) {
    const Shadow shadow(core_);
    const std::vector<Located> items = locate_items(shadow);
    const std::vector<Located> located = locate_requests(shadow);
    write_keys();
    const auto keys = static_cast<double>(items.size());
    Row sets = measure_lookups(set_lookups(core_, shadow.pairs(), lookup_batch(0, false)), located);
    sets.load = keys / static_cast<double>(shadow.slots());
    sets.sectors = mean(located, [](const Located& item) { return item.sectors; });
    rows.push_back(sets);
    for (const double load : config_.hopscotch_loads) {
      const double homes = load == 0 ? static_cast<double>(shadow.slots()) : keys / load;
      progress_("building a hopscotch table");
      const HopscotchTable table(items, static_cast<uint32_t>(homes));
      rows.push_back(measure_hopscotch(table, located));
    }
  }

  Row measure_hopscotch(const HopscotchTable& table, const std::vector<Located>& located) {
    CudaMemory entries;
    const uint64_t bytes = table.entries().size() * sizeof(uint64_t);
    take(entries, CudaMemory::Place::kDevice, bytes);
    check(cudaMemcpy(entries.data(), table.entries().data(), bytes, cudaMemcpyHostToDevice),
          "a hopscotch table to the GPU");
    const HopscotchView view = {entries.as<uint64_t>(), table.homes()};
    Row row = measure_lookups(hopscotch_lookups(core_, view, lookup_batch(0, false)), located);
    row.load = static_cast<double>(config_.workload.keys) / table.homes();
    row.sectors = mean(located, [&](const Located& item) {
      return table.sectors_of(item, config_.workload.key_size);
    });
    return row;
  }

  template <typename Count>
  static double mean(const std::vector<Located>& located, const Count& count) {
    uint64_t sum = 0;
    for (const Located& item : located) sum += count(item);
    return static_cast<double>(sum) / static_cast<double>(located.size());
  }

  const StudyConfig& config_;
  const Progress& progress_;
  Workload workload_;
  uint64_t batches_;
  uint64_t requests_;
  gpu::DeviceFacts facts_;
  std::unique_ptr<offline::Backend> backend_;
  store::Core core_;
  uint32_t now_ = 0;
  std::vector<uint8_t> frames_;
  uint32_t key_slot_ = 0;
  CudaStream stream_;
  CudaMemory input_;
  CudaMemory replies_;
  CudaMemory sizes_;
  CudaMemory keys_;
  CudaMemory offsets_;
  CudaMemory sum_;
};

}  // namespace

StudyResult run_study(const StudyConfig& config, const Progress& progress) {
  return Study(config, progress).run();
}

}  // namespace warpcache::ablation
