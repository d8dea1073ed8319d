// SPDX-License-Identifier: Apache-2.0
//
// What waiting blocks read while they wait: figures 5.17 and 5.18 of the dissertation.
#include <atomic>

#include "edge/bench.h"

namespace warpcache::edge {

namespace {

struct Way {
  const char* name;
  edge_wait wait;
  uint32_t release_count;
};

constexpr Way kWays[] = {{"poll", EDGE_WAIT_POLL, 1},
                         {"release-all-1", EDGE_WAIT_RELEASE_ALL, 1},
                         {"release-all-8", EDGE_WAIT_RELEASE_ALL, 8},
                         {"release-all-32", EDGE_WAIT_RELEASE_ALL, 32},
                         {"targeted", EDGE_WAIT_TARGETED, 1}};
constexpr double kDelaysUs[] = {0, 1, 10, 100};
constexpr uint32_t kTasksMax = 20000;

void run(const Scale& scale, const Way& way, double delay_us) {
  gpu::CudaMemory words;  // freed after the scheduler has ended: freeing waits for kernels
  Queues queues(scale);
  queues.config.wait = way.wait;
  queues.config.release_count = way.release_count;
  queues.config.release_us_max = 100;
  uint32_t id = 0;
  if (!words.allocate(gpu::CudaMemory::Place::kDevice, 1024 * 4) || !queues.open() ||
      !queues.add(kPing, sizeof(PingParameters), 1, 256, &id)) {
    return;
  }
  const PingParameters parameters = {address(words)};
  Submitter<PingParameters> submitter(queues, id);
  (void)submitter.submit(parameters);
  if (!submitter.finish()) return;
  const edge_counts before = queues.counts();
  const auto begin = Clock::now();
  const double limit = scale.seconds / 4;
  while (submitter.submitted() < kTasksMax && seconds_since(begin) < limit) {
    (void)submitter.submit(parameters);
    (void)submitter.collect();
    const auto start = Clock::now();
    while (seconds_since(start) * 1e6 < delay_us) {
    }
  }
  if (!submitter.finish()) return;
  const double seconds = seconds_since(begin);
  const edge_counts after = queues.counts();
  const auto tasks = static_cast<double>(after.blocks - before.blocks);
  const auto polls = static_cast<double>(after.queue_polls - before.queue_polls);
  const auto barrier = static_cast<double>(after.barrier_polls - before.barrier_polls);
  Line("barrier")
      .add("way", way.name)
      .add("delay_us", delay_us)
      .add("tasks", tasks)
      .add("seconds", seconds)
      .add("queue_loads_per_task", polls / tasks)
      .add("barrier_loads_per_task", barrier / tasks)
      .add("loads_per_s", (polls + barrier) / seconds)
      .add("releases_per_task", static_cast<double>(after.releases - before.releases) / tasks)
      .add("bell_loads_per_task", static_cast<double>(after.bell_polls - before.bell_polls) / tasks)
      .print();
}

// One run of the scheduler for a profiler that counts for a whole kernel, while an event comes
// every 10 us. It may hold the thread that starts the kernel until that ends, so the events come
// from another one. The first start, by open(), is not this run: it has no events.
void run_once(const Scale& scale, const Way& way) {
  constexpr uint32_t kLifeMs = 300;
  constexpr double kDelayUs = 10;
  gpu::CudaMemory words;
  Queues queues(scale);
  queues.config.wait = way.wait;
  queues.config.lifetime_ms = kLifeMs;
  uint32_t id = 0;
  if (!words.allocate(gpu::CudaMemory::Place::kDevice, 1024 * 4) || !queues.open() ||
      !queues.add(kPing, sizeof(PingParameters), 1, 256, &id) ||
      edge_pause(queues.runtime()) != EDGE_OK) {
    return;
  }
  const PingParameters parameters = {address(words)};
  Submitter<PingParameters> submitter(queues, id);
  std::atomic<bool> ends{false};
  std::thread other([&] {
    (void)submitter.submit(parameters);
    while (!ends.load() && submitter.collect() == 0) {
    }
    const auto begin = Clock::now();
    while (!ends.load() && seconds_since(begin) < kLifeMs * 0.5e-3) {
      (void)submitter.submit(parameters);
      (void)submitter.collect();
      const auto start = Clock::now();
      while (seconds_since(start) * 1e6 < kDelayUs) {
      }
    }
  });
  const edge_status resumed = edge_resume(queues.runtime());
  if (resumed != EDGE_OK) (void)queues.complain("resuming", resumed);
  std::this_thread::sleep_for(std::chrono::milliseconds(2 * kLifeMs));
  ends.store(true);
  other.join();
  (void)submitter.collect();
  Line("profiled")
      .add("way", way.name)
      .add("life_ms", kLifeMs)
      .add("events", static_cast<double>(submitter.completed()))
      .print();
}

}  // namespace

void measure_profiled_polls(const Scale& scale) { run_once(scale, kWays[0]); }
void measure_profiled_releases(const Scale& scale) { run_once(scale, kWays[1]); }
void measure_profiled_targeted(const Scale& scale) { run_once(scale, kWays[4]); }

void measure_barriers(const Scale& scale) {
  for (const double delay_us : kDelaysUs) {
    for (const Way& way : kWays) run(scale, way, delay_us);
  }
}

}  // namespace warpcache::edge
