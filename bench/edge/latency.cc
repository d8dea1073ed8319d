// SPDX-License-Identifier: Apache-2.0
//
// From the doorbell to the completion word, and events per second.
#include <sys/resource.h>

#include <algorithm>

#include "base/atomic.h"
#include "edge/bench.h"

namespace warpcache::edge {

namespace {

constexpr uint32_t kPings = 4000;
constexpr uint32_t kBlocksMax = 64;
constexpr uint32_t kThreads = 256;

struct Words {
  gpu::CudaMemory memory;
  bool allocate() {
    return memory.allocate(gpu::CudaMemory::Place::kDevice, kBlocksMax * kThreads * 4);
  }
  PingParameters parameters() const { return {address(memory)}; }
};

void print_latencies(const char* form, uint32_t blocks, std::vector<double>& times) {
  if (times.empty()) return;
  const double p50 = quantile(times, 0.5);
  const double p99 = quantile(times, 0.99);
  Line("latency")
      .add("form", form)
      .add("blocks", blocks)
      .add("events", static_cast<double>(times.size()))
      .add("p50_us", p50 * 1e6)
      .add("p99_us", p99 * 1e6)
      .add("max_us", times.back() * 1e6)
      .print();
}

void by_launches(const Scale& scale, const Words& words, uint32_t blocks) {
  gpu::CudaStream stream;
  gpu::CudaMemory done;
  if (!stream.create(gpu::CudaStream::Priority::kNormal) ||
      !done.allocate(gpu::CudaMemory::Place::kHost, 64)) {
    return;
  }
  std::vector<double> times;
  const auto begin = Clock::now();
  for (uint32_t i = 1; i <= kPings && seconds_since(begin) < scale.seconds; ++i) {
    const auto start = Clock::now();
    program_of_bench_launch_ping(words.parameters(), blocks, done.as<uint32_t>(), i, stream.get());
    while (load_acquire(done.as<uint32_t>()) != i && seconds_since(start) < 2) {
    }
    times.push_back(seconds_since(start));
  }
  (void)cudaStreamSynchronize(stream.get());
  print_latencies("launch", blocks, times);
}

// The least that anything can take which waits for a word of the host and answers with one: a
// thread that does nothing else.
void by_answers(const Scale& scale) {
  gpu::CudaStream stream;
  gpu::CudaMemory memory;
  if (!stream.create(gpu::CudaStream::Priority::kNormal) ||
      !memory.allocate(gpu::CudaMemory::Place::kHost, 256)) {
    return;
  }
  auto* const bell = memory.as<uint32_t>();
  uint32_t* const done = bell + 32;
  store_release(bell, 0);
  store_release(done, 0);
  program_of_bench_launch_answers(bell, done, kPings, stream.get());
  std::vector<double> times;
  for (uint32_t i = 1; i <= kPings; ++i) {
    const auto start = Clock::now();
    store_release(bell, i);
    while (load_acquire(done) != i && seconds_since(start) < scale.patience_s) {
    }
    times.push_back(seconds_since(start));
  }
  (void)cudaStreamSynchronize(stream.get());
  print_latencies("answer", 1, times);
}

void by_events(const Scale& scale, edge_form form, const Words& words) {
  Queues queues(scale, form);
  if (!queues.open()) return;
  const char* const name = form == EDGE_PERSISTENT ? "persistent" : "graph";
  for (const uint32_t blocks : {1u, 4u, kBlocksMax}) {
    uint32_t id = 0;
    if (!queues.add(kPing, sizeof(PingParameters), blocks, 32, &id)) return;
    Submitter<PingParameters> submitter(queues, id);
    std::vector<double> times;
    const auto begin = Clock::now();
    for (uint32_t i = 0; i < kPings && seconds_since(begin) < scale.seconds; ++i) {
      const auto start = Clock::now();
      (void)submitter.submit(words.parameters());
      if (!submitter.finish()) return;
      times.push_back(seconds_since(start));
    }
    if (times.size() > 100) times.erase(times.begin(), times.begin() + 50);  // warm-up
    print_latencies(name, blocks, times);
    if (edge_unregister_event(queues.runtime(), id) != EDGE_OK) return;
  }
  if (form == EDGE_GRAPH_LAUNCH) {
    Line("graph_launches")
        .add("events", static_cast<double>(queues.counts().events))
        .add("busy", static_cast<double>(queues.counts().busy_launches))
        .print();
  }
}

double cpu_seconds() {
  struct rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  const auto of = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
  };
  return of(usage.ru_utime) + of(usage.ru_stime);
}

// Events of a timer: what the CPU does while the GPU submits and runs events.
void without_cpu(const Scale& scale) {
  Queues queues(scale);
  if (!queues.open()) return;
  // Word 0 becomes the tick: look-ups of no keys do not read it.
  const LookupsParameters nothing = {};
  edge_event event = {};
  event.function = kLookups;
  event.blocks = 1;
  event.parameter_bytes = sizeof(nothing);
  event.depth = 64;
  event.flags = EDGE_SELF_FREEING;
  event.period_us = 10;
  event.timer_parameters = &nothing;
  uint32_t id = 0;
  if (!queues.add(event, &id)) return;
  const uint64_t before = queues.counts().events;
  const double cpu = cpu_seconds();
  const auto begin = Clock::now();
  std::this_thread::sleep_for(std::chrono::duration<double>(scale.seconds));
  const double used = cpu_seconds() - cpu;
  const double passed = seconds_since(begin);
  Line("timer")
      .add("period_us", 10.0)
      .add("events", static_cast<double>(queues.counts().events - before))
      .add("seconds", passed)
      .add("cpu_seconds", used)
      .print();
}

void rate(const Scale& scale, edge_form form, uint32_t threads, uint32_t queues_each,
          const Words& words) {
  Queues queues(scale, form);
  const bool graphs = form == EDGE_GRAPH_LAUNCH;
  queues.config.depth_max = graphs ? 64 : scale.depth;
  if (!queues.open()) return;
  std::vector<uint32_t> ids(threads * queues_each);
  for (uint32_t& id : ids) {
    if (!queues.add(kPing, sizeof(PingParameters), 1, queues.config.depth_max, &id)) return;
  }
  std::vector<uint64_t> done(threads);
  std::vector<std::thread> submitters;
  const auto begin = Clock::now();
  for (uint32_t thread = 0; thread < threads; ++thread) {
    submitters.emplace_back([&, thread] {
      std::vector<Submitter<PingParameters>> own;
      for (uint32_t i = 0; i < queues_each; ++i) {
        own.emplace_back(queues, ids[thread * queues_each + i]);
      }
      while (seconds_since(begin) < scale.seconds) {
        for (auto& submitter : own) {
          for (uint32_t i = 0; i < 64 && submitter.submit(words.parameters()); ++i) {
          }
          (void)submitter.collect();
        }
      }
      for (auto& submitter : own) {
        if (submitter.finish()) done[thread] += submitter.completed();
      }
    });
  }
  for (std::thread& thread : submitters) thread.join();
  const double seconds = seconds_since(begin);
  uint64_t all = 0;
  for (const uint64_t count : done) all += count;
  Line("rate")
      .add("form", graphs ? "graph" : "persistent")
      .add("threads", threads)
      .add("queues", threads * queues_each)
      .add("events", static_cast<double>(all))
      .add("events_per_s", static_cast<double>(all) / seconds)
      .add("busy_launches", static_cast<double>(queues.counts().busy_launches))
      .print();
}

}  // namespace

void measure_latency(const Scale& scale) {
  Words words;
  if (!words.allocate()) return;
  by_answers(scale);
  for (const uint32_t blocks : {1u, 4u, kBlocksMax}) by_launches(scale, words, blocks);
  by_events(scale, EDGE_PERSISTENT, words);
  without_cpu(scale);
  if (scale.graphs) by_events(scale, EDGE_GRAPH_LAUNCH, words);
}

void measure_rates(const Scale& scale) {
  Words words;
  if (!words.allocate()) return;
  rate(scale, EDGE_PERSISTENT, 1, 1, words);
  rate(scale, EDGE_PERSISTENT, 4, 2, words);
  if (scale.graphs) rate(scale, EDGE_GRAPH_LAUNCH, 1, 1, words);
}

}  // namespace warpcache::edge
