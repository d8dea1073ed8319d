// SPDX-License-Identifier: Apache-2.0
#include "gpu/stalled_reader.h"

#include <algorithm>
#include <chrono>
#include <stdexcept>
#include <thread>

#include "base/assert.h"
#include "base/atomic.h"
#include "gpu/device_kernels.h"
#include "store/cuda/cuda_store.h"
#include "store/host/store.h"

namespace warpcache::gpu_tests {

namespace {

using gpu::CudaMemory;
using gpu::CudaStream;
using store::CudaStore;

constexpr uint64_t kHoldNsMax = 15'000'000'000;  // more than a test needs
constexpr auto kLookUpPatience = std::chrono::seconds(5);

class HostReader final : public StalledReader {
 public:
  explicit HostReader(store::Store& store) : store_(store) {
    WC_ASSERT(store_.register_thread(&thread_) == Status::kOk);
  }
  ~HostReader() override {
    store_.ref().leave_batch(thread_);
    store_.unregister_thread(&thread_);
  }

  uint32_t hold(const std::vector<std::string>& keys, bool guarded) override {
    const store::StoreRef ref = store_.ref();
    if (guarded) ref.enter_batch(thread_);
    uint32_t count = 0;
    for (const std::string& key : keys) {
      const store::Found found = ref.find(ref.hash(bytes_of(key)), bytes_of(key));
      held_.push_back(found ? ref.pieces(*found.item) : store::ValuePieces());
      if (found) ++count;
    }
    return count;
  }

  std::vector<std::string> let_go() override {
    std::vector<std::string> values;
    for (store::ValuePieces& pieces : held_) {
      std::string& value = values.emplace_back();
      for (Bytes piece = pieces.first(); !piece.empty(); piece = pieces.next()) {
        value.append(reinterpret_cast<const char*>(piece.data), piece.size);
      }
    }
    store_.ref().leave_batch(thread_);
    return values;
  }

 private:
  store::Store& store_;
  store::ThreadContext thread_;
  std::vector<store::ValuePieces> held_;
};

class DeviceReader final : public StalledReader {
 public:
  // Allocates all memory now: later, allocation would wait for kernels, also for the stalled one.
  DeviceReader(CudaStore& store, uint32_t value_size_max)
      : core_(store.resources().core), reader_(store.take_readers()), stride_(value_size_max) {
    WC_ASSERT(stall_.allocate(CudaMemory::Place::kHost, sizeof(Stall)));
    WC_ASSERT(keys_.allocate(CudaMemory::Place::kHost, sizeof(StalledKey) * kStalledKeysMax));
    WC_ASSERT(out_.allocate(CudaMemory::Place::kHost, uint64_t{stride_} * kStalledKeysMax));
    WC_ASSERT(stream_.create(CudaStream::Priority::kNormal));
  }
  ~DeviceReader() override { end(); }

  uint32_t hold(const std::vector<std::string>& keys, bool guarded) override {
    WC_ASSERT(keys.size() <= kStalledKeysMax);
    auto& stall = *stall_.as<Stall>();
    stall = {};
    stall.key_count = static_cast<uint32_t>(keys.size());
    stall.guarded = guarded ? 1 : 0;
    stall.ns_max = kHoldNsMax;
    for (uint32_t i = 0; i < stall.key_count; ++i) {
      StalledKey& key = keys_.as<StalledKey>()[i];
      key = {};
      WC_ASSERT(keys[i].size() <= sizeof key.key);
      std::copy(keys[i].begin(), keys[i].end(), key.key);
      key.key_size = static_cast<uint32_t>(keys[i].size());
      key.out = uint64_t{stride_} * i;
    }
    launch_stalled_reader(core_, reader_, &stall, keys_.as<StalledKey>(), out_.data(),
                          stream_.get());
    require(cudaGetLastError());
    const auto deadline = std::chrono::steady_clock::now() + kLookUpPatience;
    while (load_acquire(&stall.holding) == 0) {
      if (std::chrono::steady_clock::now() > deadline) throw std::runtime_error("no look-up");
      std::this_thread::yield();
    }
    uint32_t count = 0;
    for (uint32_t i = 0; i < stall.key_count; ++i) count += keys_.as<StalledKey>()[i].found;
    return count;
  }

  std::vector<std::string> let_go() override {
    end();
    require(cudaGetLastError());
    const Stall& stall = *stall_.as<Stall>();
    if (stall.timed_out != 0) throw std::runtime_error("the kernel was held for too long");
    std::vector<std::string> values;
    for (uint32_t i = 0; i < stall.key_count; ++i) {
      const StalledKey& key = keys_.as<StalledKey>()[i];
      const auto* data = reinterpret_cast<const char*>(out_.data() + key.out);
      values.emplace_back(data, key.found != 0 ? key.value_size : 0);
    }
    return values;
  }

 private:
  static void require(cudaError_t error) {
    if (error != cudaSuccess) throw std::runtime_error(cudaGetErrorString(error));
  }
  void end() {
    store_release(&stall_.as<Stall>()->go_on, 1);
    (void)cudaStreamSynchronize(stream_.get());
  }

  const store::Core core_;
  const uint32_t reader_;
  const uint32_t stride_;  // bytes of the output a key
  CudaMemory stall_;       // pinned, as the others
  CudaMemory keys_;
  CudaMemory out_;
  CudaStream stream_;
};

}  // namespace

std::unique_ptr<StalledReader> make_stalled_reader(engine::RigKind kind, engine::Rig& rig,
                                                   uint32_t value_size_max) {
  if (kind == engine::RigKind::kCpu) {
    return std::make_unique<HostReader>(dynamic_cast<store::Store&>(rig.store()));
  }
  return std::make_unique<DeviceReader>(dynamic_cast<CudaStore&>(rig.store()), value_size_max);
}

}  // namespace warpcache::gpu_tests
