// SPDX-License-Identifier: Apache-2.0
//
// Persistent blocks against launches: time, power and energy of matrix products, and the power of
// blocks that wait. Figure 5.3 of the dissertation.
#include <cuda_runtime_api.h>

#include "edge/bench.h"

namespace warpcache::edge {

namespace {

constexpr uint32_t kSmall = 128;
constexpr uint32_t kStreams = 8;
constexpr uint32_t kWorkersEach = 4;  // persistent blocks on a multiprocessor
constexpr double kWatchFactor = 2;    // NVML renews its counter ten times a second

struct Matrices {
  gpu::CudaMemory a, b, c;
  uint32_t size = 0;
  bool allocate(uint32_t wanted) {
    size = wanted;
    const uint64_t bytes = uint64_t{size} * size * sizeof(float);
    const auto device = gpu::CudaMemory::Place::kDevice;
    return a.allocate(device, bytes) && b.allocate(device, bytes) && c.allocate(device, bytes);
  }
  ProductParameters parameters() const { return {address(a), address(b), address(c), size, 0}; }
};

void print(const char* way, uint32_t size, double products, double seconds, double millijoules) {
  Line line("product");
  line.add("way", way).add("size", size).add("products", products).add("seconds", seconds);
  line.add("us_each", seconds / products * 1e6);
  if (millijoules > 0) {
    line.add("watts", millijoules * 1e-3 / seconds).add("mj_each", millijoules / products);
  }
  line.print();
}

void by_launches(const Scale& scale, const Energy& energy, uint32_t size, uint32_t streams) {
  Matrices matrices;
  std::vector<gpu::CudaStream> all(streams);
  if (!matrices.allocate(size)) return;
  for (gpu::CudaStream& stream : all) {
    if (!stream.create(gpu::CudaStream::Priority::kNormal)) return;
  }
  const double before = energy.millijoules();
  const auto begin = Clock::now();
  uint64_t count = 0;
  while (seconds_since(begin) < scale.seconds * kWatchFactor) {
    program_of_bench_launch_product(matrices.parameters(), all[count % streams].get());
    // The driver holds about a thousand launches for each stream; large ones are waited for sooner.
    if (++count % 256 == 0) {
      for (gpu::CudaStream& stream : all) (void)cudaStreamSynchronize(stream.get());
    }
  }
  for (gpu::CudaStream& stream : all) (void)cudaStreamSynchronize(stream.get());
  const double seconds = seconds_since(begin);
  print(streams == 1 ? "launch" : "launch-8-streams", size, static_cast<double>(count), seconds,
        energy.millijoules() - before);
}

void by_events(const Scale& scale, const Energy& energy, uint32_t size) {
  Matrices matrices;
  Queues queues(scale);
  queues.use_workers(kWorkersEach);
  uint32_t id = 0;
  const uint32_t tiles = size / kTile;
  if (!matrices.allocate(size) || !queues.open() ||
      !queues.add(kProduct, sizeof(ProductParameters), tiles * tiles, 64, &id)) {
    return;
  }
  Submitter<ProductParameters> submitter(queues, id);
  const double before = energy.millijoules();
  const auto begin = Clock::now();
  while (seconds_since(begin) < scale.seconds * kWatchFactor) {
    (void)submitter.submit(matrices.parameters());
    (void)submitter.collect();
  }
  if (!submitter.finish()) return;
  const double seconds = seconds_since(begin);
  print("persistent", size, static_cast<double>(submitter.completed()), seconds,
        energy.millijoules() - before);
}

void waits(const Scale& scale, const Energy& energy, const char* way, const edge_wait* wait) {
  Queues queues(scale);
  if (wait != nullptr) {
    queues.config.wait = *wait;
    if (!queues.open()) return;
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  const double before = energy.millijoules();
  const auto begin = Clock::now();
  std::this_thread::sleep_for(std::chrono::duration<double>(scale.seconds * kWatchFactor));
  Line("idle")
      .add("way", way)
      .add("watts", (energy.millijoules() - before) * 1e-3 / seconds_since(begin))
      .add("watts_at_end", energy.watts_now())
      .print();
}

}  // namespace

void measure_power(const Scale& scale) {
  const Energy energy;
  if (!energy.known()) Line("note").add("text", "no NVML: no power").print();
  for (const uint32_t size : {kSmall, scale.product_large}) {
    by_launches(scale, energy, size, 1);
    by_launches(scale, energy, size, kStreams);
    by_events(scale, energy, size);
  }
  constexpr edge_wait kTargeted = EDGE_WAIT_TARGETED;
  constexpr edge_wait kReleaseAll = EDGE_WAIT_RELEASE_ALL;
  constexpr edge_wait kPoll = EDGE_WAIT_POLL;
  waits(scale, energy, "none", nullptr);
  waits(scale, energy, "targeted", &kTargeted);
  waits(scale, energy, "release-all", &kReleaseAll);
  waits(scale, energy, "poll", &kPoll);
}

}  // namespace warpcache::edge
