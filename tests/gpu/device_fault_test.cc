// SPDX-License-Identifier: Apache-2.0
//
// Faults of a real GPU: each is noticed, nothing hangs, no answer is wrong, and the CPU engine
// continues. Each test runs in a process of its own, since some faults make the GPU unusable for
// the whole process.
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "base/atomic.h"
#include "engine/cpu/cpu_engine.h"
#include "engine/cuda/cuda_engine.h"
#include "engine/cuda/edge/edge_jobs.h"
#include "engine/failover_engine.h"
#include "engine/testing/store_admin.h"
#include "gpu/device_kernels.h"
#include "gpu/talker.h"
#include "store/cuda/cuda_store.h"
#include "store/testing/store_fixture.h"

namespace warpcache::gpu_tests {
namespace {

using engine::FailoverEngine;
using engine::cuda::CudaEngine;
using engine::cuda::EdgeJobs;
using gpu::CudaMemory;
using gpu::CudaStream;
using gpu::DeviceFacts;
using gpu::DeviceFaults;
using store::CudaStore;

constexpr unsigned kChildSecondsMax = 60;
constexpr uint64_t kStoreBytes = 64 * store::kMiB;
constexpr uint32_t kEdgeWorkers = 4;
constexpr uint32_t kJobMsMax = 1000;                // in the test of a batch that does not end
constexpr uint64_t kOccupiedNsMax = 8'000'000'000;  // longer than that
constexpr auto kFaultPatience = std::chrono::seconds(10);

// In a child process: ends it unless `holds` is true.
void require(bool holds, const std::string& what) {
  if (holds) return;
  std::fprintf(stderr, "not so: %s\n", what.c_str());
  _exit(1);
}

void require_text(const std::string& got, const std::string& expected, const char* when) {
  require(got == expected, std::string(when) + ": '" + got + "' instead of '" + expected + "'");
}

bool contains(const std::string& text, const char* part) {
  return text.find(part) != std::string::npos;
}

// The body of a child process. It ends with status 0 if all went well.
[[noreturn]] void live(const std::function<void()>& life) {
  (void)alarm(kChildSecondsMax);  // a signal ends a child that hangs
  life();
  _exit(0);
}

enum class Mode { kLaunches, kPersistent, kEdge };  // --gpu-mode
std::string mode_name(Mode mode) {
  if (mode == Mode::kLaunches) return "Launches";
  return mode == Mode::kPersistent ? "Persistent" : "Edge";
}

struct ServedConfig {
  Mode mode = Mode::kLaunches;
  bool has_spare = true;  // --on-gpu-error=cpu
  uint32_t job_ms_max = 10000;
};

// The engine of a worker, as a server makes it: on a GPU, and on the CPU after that has failed.
class Served {
 public:
  explicit Served(const ServedConfig& config) {
    faults_.listen([this](const std::string&) { ++failures_; });
    require_text(gpu::open_device(0, &device_), "", "opening the device");
    store::CudaStoreConfig store;
    store.block_scratch_bytes = engine::cuda::block_scratch_bytes();
    store.store.memory_limit = kStoreBytes;
    store.blocks_per_engine = 16;
    // Before the store, as in a server.
    if (config.mode == Mode::kEdge) {
      require_text(EdgeJobs::create(kEdgeWorkers, "", &edge_), "", "starting the scheduler");
    }
    require_text(CudaStore::create(store, faults_, &store_), "", "making the store");
    admin_ = std::make_unique<engine::StoreAdmin>(*store_);
    engine::cuda::CudaEngineConfig cuda;
    cuda.jobs.blocks_max = store.blocks_per_engine;
    cuda.jobs.persistent = config.mode == Mode::kPersistent;
    cuda.jobs.edge = edge_.get();
    cuda.jobs.job_ms_max = config.job_ms_max;
    std::unique_ptr<CudaEngine> primary;
    require_text(CudaEngine::create(cuda, *store_, faults_, *admin_, &primary), "", "the engine");
    request::Counters& counters = primary->counters();
    FailoverEngine::Hooks hooks;
    hooks.failed = [this] { return faults_.failed(); };
    hooks.make_spare = [this, config](const request::Counters** spare_counters) {
      return config.has_spare ? make_spare(spare_counters) : nullptr;
    };
    engine_ = std::make_unique<FailoverEngine>(std::move(primary), counters, std::move(hooks));
    talker_ = std::make_unique<Talker>(*engine_);
  }

  // The GPU answers.
  void begin() {
    require_text(say("set a 0 0 3\r\nold\r\nget a\r\n"), "STORED\r\nVALUE a 0 3\r\nold\r\nEND\r\n",
                 "on the GPU");
    require(!faults_.failed(), "the GPU works");
  }
  // The CPU engine answers, with an empty cache; the reason contains `part`.
  void require_spare(const char* part) {
    require_text(say("get a\r\n"), "END\r\n", "the first batch afterwards");
    require(faults_.failed(), "the failure is noticed");
    require(contains(faults_.why(), part), "the reason is told: '" + faults_.why() + "'");
    require_text(say("set a 0 0 3\r\nnew\r\nget a\r\n"), "STORED\r\nVALUE a 0 3\r\nnew\r\nEND\r\n",
                 "on the CPU");
    require(failures_ == 1, "who listens is told once");
  }
  // Calls of the lost store return too.
  void require_lost_store() {
    require(store_->stats().segment_limit == 0, "the lost store has no statistics");
    require(store_->reclaim(1, 1) == Status::kOutOfMemory, "the lost store has no room");
  }

  std::string say(const std::string& text) { return talker_->say(text); }
  Talker& talker() { return *talker_; }
  DeviceFaults& faults() { return faults_; }
  const DeviceFacts& device() const { return device_; }

 private:
  std::unique_ptr<engine::Engine> make_spare(const request::Counters** counters) {
    spare_store_ = store::make_store(store::quiet_config(kStoreBytes));
    spare_admin_ = std::make_unique<engine::StoreAdmin>(*spare_store_);
    auto spare = std::make_unique<engine::CpuEngine>(engine::CpuEngineConfig{}, *spare_store_,
                                                     *spare_admin_);
    *counters = &spare->counters();
    return spare;
  }

  DeviceFaults faults_;
  std::atomic<int> failures_{0};
  DeviceFacts device_;
  std::unique_ptr<EdgeJobs> edge_;
  std::unique_ptr<CudaStore> store_;
  std::unique_ptr<engine::StoreAdmin> admin_;
  std::unique_ptr<store::Store> spare_store_;
  std::unique_ptr<engine::StoreAdmin> spare_admin_;
  std::unique_ptr<FailoverEngine> engine_;
  std::unique_ptr<Talker> talker_;
};

// Makes an illegal access on a separate stream. Returns when the driver has noticed it.
void access_nothing() {
  CudaStream stream;
  require(stream.create(CudaStream::Priority::kNormal), "a stream");
  launch_illegal_access(stream.get());
  const auto deadline = std::chrono::steady_clock::now() + kFaultPatience;
  while (cudaStreamQuery(stream.get()) == cudaErrorNotReady) {
    require(std::chrono::steady_clock::now() < deadline, "the access ends");
  }
  require(cudaStreamQuery(stream.get()) == cudaErrorIllegalAddress, "the access is illegal");
}

class DeviceFaultTest : public testing::Test {
 protected:
  void SetUp() override {
    DeviceFacts facts;
    const std::string why = gpu::open_device(0, &facts);
    if (!why.empty()) GTEST_SKIP() << why;
    GTEST_FLAG_SET(death_test_style, "threadsafe");  // a new process, not a copy
  }
};

#define EXPECT_LIFE(...) EXPECT_EXIT(live(__VA_ARGS__), testing::ExitedWithCode(0), "")

class DeviceFaultModeTest : public DeviceFaultTest, public testing::WithParamInterface<Mode> {};

TEST_P(DeviceFaultModeTest, AfterAnIllegalAccessTheCpuGoesOn) {
  EXPECT_LIFE([mode = GetParam()] {
    Served served({.mode = mode});
    served.begin();
    access_nothing();
    served.require_spare("illegal memory access");
    served.require_lost_store();
  });
}

// Batches come all the time; the GPU or the CPU answers each of them, as a whole.
TEST_P(DeviceFaultModeTest, BatchesUnderWayAreAnsweredByTheCpu) {
  EXPECT_LIFE([mode = GetParam()] {
    Served served({.mode = mode});
    served.begin();
    std::thread culprit([] {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      access_nothing();
    });
    const std::string on_gpu = "VALUE a 0 3\r\nold\r\nEND\r\nSTORED\r\nVALUE b 0 1\r\nx\r\nEND\r\n";
    const std::string on_cpu = "END\r\nSTORED\r\nVALUE b 0 1\r\nx\r\nEND\r\n";
    const auto deadline = std::chrono::steady_clock::now() + kFaultPatience;
    std::string answer = on_gpu;
    while (answer == on_gpu) {
      require(std::chrono::steady_clock::now() < deadline, "the failure is noticed");
      answer = served.say("get a\r\nset b 0 0 1\r\nx\r\nget b\r\n");
    }
    require_text(answer, on_cpu, "the batch that met it");
    culprit.join();
    served.require_spare("illegal memory access");
  });
}

INSTANTIATE_TEST_SUITE_P(Modes, DeviceFaultModeTest,
                         testing::Values(Mode::kLaunches, Mode::kPersistent, Mode::kEdge),
                         [](const auto& made) { return mode_name(made.param); });

TEST_F(DeviceFaultTest, WithoutASpareConnectionsAreClosedAndNothingIsSaid) {
  EXPECT_LIFE([] {
    Served served({.has_spare = false});
    served.begin();
    access_nothing();
    for (int i = 0; i < 2; ++i) {
      for (const Answer& answer : served.talker().say_all({"get a\r\n", "set b 0 0 1\r\nx\r\n"})) {
        require_text(answer.bytes, "", "without a spare");
        require(answer.closed, "the connection is closed");
      }
    }
  });
}

// An error that the engine has not made, and that nobody has read, still means that the device
// cannot be trusted.
TEST_F(DeviceFaultTest, ALaunchThatFailsCountsAsAFailure) {
  EXPECT_LIFE([] {
    Served served({});
    served.begin();
    launch_impossible(nullptr);
    const cudaError_t error = cudaPeekAtLastError();
    require(error != cudaSuccess, "the launch fails");
    served.require_spare(cudaGetErrorString(error));
    served.require_lost_store();
  });
}

TEST_F(DeviceFaultTest, ALaunchOfOthersThatFailsIsTheirs) {
  EXPECT_LIFE([] {
    Served served({});
    served.begin();
    launch_impossible(nullptr);
    require(cudaGetLastError() != cudaSuccess, "the launch fails");
    std::thread([] { launch_impossible(nullptr); }).join();
    require_text(served.say("get a\r\n"), "VALUE a 0 3\r\nold\r\nEND\r\n", "still on the GPU");
    require(!served.faults().failed(), "the GPU works");
  });
}

// Blocks that do not end occupy the whole GPU: those of the batch do not fit.
TEST_F(DeviceFaultTest, ABatchThatDoesNotEndIsAnsweredByTheCpu) {
  EXPECT_LIFE([] {
    Served served({.job_ms_max = kJobMsMax});
    served.begin();
    CudaMemory end;
    CudaStream stream;
    require(end.allocate(CudaMemory::Place::kHost, sizeof(uint32_t)), "pinned memory");
    require(stream.create(CudaStream::Priority::kHigh), "a stream");
    launch_occupier(end.as<uint32_t>(), kOccupiedNsMax, served.device().multiprocessors,
                    stream.get());
    require(cudaGetLastError() == cudaSuccess, "the launch");
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    const auto begin = std::chrono::steady_clock::now();
    require_text(served.say("get a\r\n"), "END\r\n", "the batch");
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    require(took > std::chrono::milliseconds(kJobMsMax), "the GPU gets its time");
    require(took < std::chrono::milliseconds(3 * kJobMsMax), "the answer comes in time");
    served.require_spare("does not end");
    // The batch runs in the end, on the GPU: nobody reads its results.
    store_release(end.as<uint32_t>(), 1);
    require(cudaDeviceSynchronize() == cudaSuccess, "the GPU comes free");
    require_text(served.say("get a\r\n"), "VALUE a 0 3\r\nnew\r\nEND\r\n", "on the CPU");
    served.require_lost_store();
  });
}

// A request for too much memory is refused with a clear message, and is no failure of the device.
TEST_F(DeviceFaultTest, TooLittleMemoryIsTold) {
  EXPECT_LIFE([] {
    DeviceFacts device;
    require_text(gpu::open_device(0, &device), "", "opening the device");
    // What does not fit on the device goes to the host, which has too little memory as well.
    for (const uint64_t bytes : {uint64_t{8} << 40, uint64_t{16} << 40}) {
      DeviceFaults faults;
      store::CudaStoreConfig config;
      config.block_scratch_bytes = engine::cuda::block_scratch_bytes();
      config.store.memory_limit = bytes;
      std::unique_ptr<CudaStore> store;
      const std::string why = CudaStore::create(config, faults, &store);
      require(store == nullptr, "there is no store");
      require(contains(why, " megabytes"), "it is told: '" + why + "'");
      require(contains(why, std::to_string(bytes >> 20).c_str()), "how much: '" + why + "'");
      require(!faults.failed(), "the GPU has not failed");
    }
    require(cudaPeekAtLastError() == cudaSuccess, "no error is left");
    Served({}).begin();
  });
}

}  // namespace
}  // namespace warpcache::gpu_tests
