// SPDX-License-Identifier: Apache-2.0
#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "engine/cuda/cuda_engine.h"
#include "protocol/framing/frame.h"
#include "server/selftest.h"
#include "store/cuda/cuda_store.h"

namespace warpcache::server {

namespace {

using engine::cuda::CudaEngine;
using store::CudaStore;
using SteadyClock = std::chrono::steady_clock;

constexpr uint64_t kMemoryBytes = uint64_t{256} << 20;
constexpr uint32_t kKeys = 200'000;
constexpr uint32_t kBatches = 10;  // for all keys
constexpr uint32_t kKeysOfASingleGet = 100;
constexpr uint32_t kInputBytes = 4 * 1024 * 1024;
constexpr int kExitWrong = 1;
constexpr int kExitNoGpu = 69;  // sysexits.h EX_UNAVAILABLE

void say(const std::string& line) {
  (void)std::fputs((line + "\n").c_str(), stdout);
  (void)std::fflush(stdout);
}

// Has no administrative commands.
class NoAdmin final : public engine::AdminHandler {
 public:
  void run(const protocol::Request&, const uint8_t*, engine::BatchEntry&, std::string&) override {}
  void authenticate(const protocol::Request&, const uint8_t*, engine::BatchEntry&,
                    std::string&) override {}
  bool wants_keys() const override { return false; }
  void saw_key(protocol::Op, Bytes, bool) override {}
};

// Tests on the simulated GPU, which is slow, ask for fewer keys.
uint32_t key_count() {
  const char* const wanted = std::getenv("WARPCACHE_SELFTEST_KEYS");
  if (wanted == nullptr) return kKeys;
  const auto count = static_cast<uint32_t>(std::strtoul(wanted, nullptr, 10));
  return std::clamp(count, kKeysOfASingleGet, kKeys) / kKeysOfASingleGet * kKeysOfASingleGet;
}

std::string key_of(uint32_t i) { return fmt::format("selftest:{:08}", i); }
std::string value_of(uint32_t i) {
  return std::string(1 + i % 100, static_cast<char>('a' + i % 26));
}
std::string hit_of(uint32_t i) {
  const std::string value = value_of(i);
  return fmt::format("VALUE {} {} {}\r\n{}\r\nEND\r\n", key_of(i), i, value.size(), value);
}

// One engine and its results.
class Bench {
 public:
  Bench(engine::Engine& engine, const gpu::DeviceFaults& faults)
      : engine_(engine), faults_(faults), input_(engine.input_memory(kInputBytes)) {}

  // Runs `requests` as one batch, each on its own stream, and counts replies that differ from
  // `expected`. False: the GPU has failed.
  bool run(const std::vector<std::string>& requests, const std::vector<std::string>& expected) {
    fill(requests);
    const SteadyClock::time_point began = SteadyClock::now();
    engine_.submit(&batch_);
    while (engine_.poll() == nullptr) {
    }
    seconds_ = std::chrono::duration<double>(SteadyClock::now() - began).count();
    if (faults_.failed()) return false;
    for (size_t i = 0; i < requests.size(); ++i) {
      ++checked_;
      if (reply(i) == expected[i]) continue;
      if (++wrong_ <= 3) say(fmt::format("  sent {}, got {}", requests[i], reply(i)));
    }
    return true;
  }

  double seconds() const { return seconds_; }
  uint64_t checked() const { return checked_; }
  uint64_t wrong() const { return wrong_; }

 private:
  void fill(const std::vector<std::string>& requests) {
    const protocol::FrameLimits limits = {1 << 20, 1 << 20, true, protocol::kProtocolText};
    batch_.input = input_;
    batch_.frames.clear();
    batch_.entries.clear();
    uint32_t used = 0;
    for (const std::string& request : requests) {
      const auto size = static_cast<uint32_t>(request.size());
      std::copy(request.begin(), request.end(), input_ + used);
      protocol::FrameState state = {};
      protocol::Frame frames[4];
      engine::BatchEntry entry;
      entry.first_frame = static_cast<uint32_t>(batch_.frames.size());
      const auto number = static_cast<uint32_t>(batch_.entries.size());
      entry.frame_count =
          protocol::frame(state, limits, {input_ + used, size}, used, number, frames, 4).count;
      batch_.frames.insert(batch_.frames.end(), frames, frames + entry.frame_count);
      batch_.entries.push_back(entry);
      used += size;
    }
  }

  std::string reply(size_t index) const {
    const engine::BatchEntry& entry = batch_.entries[index];
    std::string text;
    for (uint32_t i = 0; i < entry.span_count; ++i) {
      const engine::ReplySpan& span = batch_.spans[entry.first_span + i];
      text.append(reinterpret_cast<const char*>(span.data), span.size);
    }
    return text;
  }

  engine::Engine& engine_;
  const gpu::DeviceFaults& faults_;
  uint8_t* input_;
  engine::Batch batch_;
  double seconds_ = 0;
  uint64_t checked_ = 0;
  uint64_t wrong_ = 0;
};

// Stores, reads, replaces, deletes and reads again: in large batches, then one request at a time.
bool exercise(Bench& bench, std::string* figures) {
  const uint32_t keys = key_count();
  const uint32_t batch = keys / kBatches;
  const uint32_t single_gets = keys / kKeysOfASingleGet;
  double set_s = 0;
  double get_s = 0;
  std::vector<std::string> requests;
  std::vector<std::string> expected;
  const auto send = [&](double* seconds) {
    const bool ran = bench.run(requests, expected);
    *seconds += bench.seconds();
    requests.clear();
    expected.clear();
    return ran;
  };
  double other_s = 0;
  for (uint32_t first = 0; first < keys; first += batch) {
    for (uint32_t i = first; i < first + batch; ++i) {
      requests.push_back(
          fmt::format("set {} {} 0 {}\r\n{}\r\n", key_of(i), i, value_of(i).size(), value_of(i)));
      expected.emplace_back("STORED\r\n");
    }
    if (!send(&set_s)) return false;
  }
  for (uint32_t first = 0; first < keys; first += batch) {
    for (uint32_t i = first; i < first + batch; ++i) {
      requests.push_back("get " + key_of(i) + "\r\n");
      expected.push_back(hit_of(i));
    }
    if (!send(&get_s)) return false;
  }
  for (uint32_t i = 0; i < batch; ++i) {
    requests.push_back("delete " + key_of(i) + "\r\n");
    expected.emplace_back("DELETED\r\n");
  }
  if (!send(&other_s)) return false;
  for (uint32_t i = 0; i < 2 * batch; ++i) {
    requests.push_back("get " + key_of(i) + "\r\n");
    expected.push_back(i < batch ? "END\r\n" : hit_of(i));
  }
  if (!send(&other_s)) return false;
  std::vector<double> single_us;
  for (uint32_t i = 0; i < single_gets; ++i) {
    requests.push_back("get " + key_of(batch + i) + "\r\n");
    expected.push_back(hit_of(batch + i));
    if (!send(&other_s)) return false;
    single_us.push_back(bench.seconds() * 1e6);
  }
  std::sort(single_us.begin(), single_us.end());
  *figures = fmt::format("{:.1f} M sets/s, {:.1f} M gets/s, a single get {:.1f} us (99%: {:.1f})",
                         keys / set_s / 1e6, keys / get_s / 1e6, single_us[single_gets / 2],
                         single_us[single_gets * 99 / 100]);
  return true;
}

// Tests one GPU mode. False: a test has failed.
bool test_way(GpuMode mode, uint32_t multiprocessors) {
  gpu::DeviceFaults faults;
  store::CudaStoreConfig store_config;
  store_config.block_scratch_bytes = engine::cuda::block_scratch_bytes();
  store_config.store.memory_limit = kMemoryBytes;
  store_config.blocks_per_engine = 128;
  std::unique_ptr<engine::cuda::EdgeJobs> edge;
  std::string failure;
  if (mode == GpuMode::kEdge) {
    failure = engine::cuda::EdgeJobs::create(std::max(1u, multiprocessors * 3 / 4), "", &edge);
  }
  std::unique_ptr<CudaStore> store;
  if (failure.empty()) failure = CudaStore::create(store_config, faults, &store);
  NoAdmin admin;
  std::unique_ptr<CudaEngine> engine;
  engine::cuda::CudaEngineConfig config;
  config.jobs.blocks_max = store_config.blocks_per_engine;
  config.jobs.persistent = mode == GpuMode::kPersistent;
  config.jobs.edge = edge.get();
  if (failure.empty()) failure = CudaEngine::create(config, *store, faults, admin, &engine);
  const char* const name = mode == GpuMode::kPersistent ? "a persistent kernel"
                           : mode == GpuMode::kEdge     ? "events of a scheduler"
                                                        : "a kernel for each batch";
  if (!failure.empty()) {
    say(fmt::format("  {}: {}", name, failure));
    return false;
  }
  Bench bench(*engine, faults);
  std::string figures;
  if (!exercise(bench, &figures)) {
    say(fmt::format("  {}: the GPU has failed: {}", name, faults.why()));
    return false;
  }
  engine->release_device();
  say(fmt::format("  {}: {} replies, {} wrong; {}", name, bench.checked(), bench.wrong(), figures));
  return bench.wrong() == 0;
}

}  // namespace

int run_selftest(const Options& options) {
  gpu::DeviceFacts device;
  const std::string failure = gpu::open_device(static_cast<int>(options.gpu.number), &device);
  if (!failure.empty()) {
    say(fmt::format("selftest: GPU {}: {}", options.gpu.number, failure));
    return kExitNoGpu;
  }
  say(fmt::format("selftest of GPU {}, {}, {} MiB of {} free", device.number, device.name,
                  device.free_bytes >> 20, device.memory_bytes >> 20));
  bool well = true;
  for (const GpuMode mode : {GpuMode::kLaunch, GpuMode::kPersistent, GpuMode::kEdge}) {
    well = test_way(mode, device.multiprocessors) && well;
  }
  say(well ? "all is well" : "something is wrong");
  return well ? 0 : kExitWrong;
}

}  // namespace warpcache::server
