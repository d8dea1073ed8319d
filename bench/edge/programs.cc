// SPDX-License-Identifier: Apache-2.0
//
// Programs on the cores beside a server on the GPU that answers packets: what launches by the CPU
// cost both, and what is left with events. Figure 5.2 of the dissertation. A generator stands for
// the network's device: it writes packets, and has a core of its own.
#include <sched.h>

#include <atomic>
#include <memory>

#include "base/atomic.h"
#include "edge/bench.h"

namespace warpcache::edge {

namespace {

constexpr uint32_t kBatch = 64;              // packets of a launch or an event
constexpr uint32_t kInFlight = 32;           // of each server's thread or queue
constexpr uint32_t kServers = 4;             // threads of the server by launches, or queues
constexpr uint64_t kMemoryWords = 32 << 20;  // of the program that reads memory, 256 MiB each

enum class Program : uint8_t { kNone, kCompute, kMemory };
enum class Server : uint8_t { kNone, kLaunches, kEvents };

const char* name_of(Program program) {
  return program == Program::kNone ? "none" : program == Program::kCompute ? "compute" : "memory";
}
const char* name_of(Server server) {
  return server == Server::kNone ? "none" : server == Server::kLaunches ? "launch" : "edge";
}

void stay_on(uint32_t core) {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  CPU_SET(core % std::thread::hardware_concurrency(), &cores);
  (void)sched_setaffinity(0, sizeof(cores), &cores);
}

// Returns steps done.
uint64_t run_program(Program program, const std::atomic<bool>& ends,
                     const std::vector<uint64_t>& memory) {
  uint64_t steps = 0;
  uint64_t value = 88172645463325252;
  while (!ends.load(std::memory_order_relaxed)) {
    for (uint32_t i = 0; i < 4096; ++i) {
      value ^= value << 13;
      value ^= value >> 7;
      value ^= value << 17;
      if (program == Program::kMemory) value += memory[value % memory.size()];
    }
    ++steps;
  }
  return value == 0 ? 0 : steps;
}

// What a generator and a server's thread share.
struct Lane {
  gpu::CudaMemory in, out;  // pinned: kInFlight batches
  gpu::CudaMemory done;     // pinned: a word for each batch
  gpu::CudaStream stream;
  alignas(64) std::atomic<uint32_t> ready{0};     // batches that the generator has written
  alignas(64) std::atomic<uint32_t> answered{0};  // batches whose replies it may send
  bool allocate() {
    const auto host = gpu::CudaMemory::Place::kHost;
    return in.allocate(host, kInFlight * kBatch * kPacketBytes) &&
           out.allocate(host, kInFlight * kBatch * kPacketBytes) &&
           done.allocate(host, kInFlight * 64) && stream.create(gpu::CudaStream::Priority::kHigh);
  }
  PacketsParameters batch(uint32_t number) const {
    const uint64_t offset = uint64_t{number % kInFlight} * kBatch * kPacketBytes;
    return {address(in) + offset, address(out) + offset, kBatch, 0};
  }
  uint32_t* word(uint32_t number) const { return done.as<uint32_t>() + number % kInFlight * 16; }
};

// A thread of the server by launches: it starts a kernel for each batch, and learns of its end.
void serve_by_launches(Lane& lane, uint32_t core, const std::atomic<bool>& ends) {
  stay_on(core);
  (void)gpu::attach_thread();
  uint32_t launched = 0;
  uint32_t answered = 0;
  while (!ends.load(std::memory_order_relaxed)) {
    if (launched != lane.ready.load(std::memory_order_acquire)) {
      ++launched;
      program_of_bench_launch_packets(lane.batch(launched), lane.word(launched), launched,
                                      lane.stream.get());
    }
    if (answered != launched && load_acquire(lane.word(answered + 1)) == answered + 1) {
      lane.answered.store(++answered, std::memory_order_release);
    }
  }
  (void)cudaStreamSynchronize(lane.stream.get());
}

class Run {
 public:
  Run(const Scale& scale, Program program, Server server)
      : scale_(scale), program_(program), server_(server) {}

  void run() {
    for (uint32_t i = 0; i < kServers; ++i) lanes_.push_back(std::make_unique<Lane>());
    for (const auto& lane : lanes_) {
      if (!lane->allocate()) return;
    }
    Queues queues(scale_);
    // A few multiprocessors answer all that this generator sends.
    queues.config.workers = scale_.workers == 0 ? 16 : scale_.workers;
    std::vector<Submitter<PacketsParameters>> submitters;
    if (server_ == Server::kEvents) {
      if (!queues.open()) return;
      for (uint32_t i = 0; i < kServers; ++i) {
        uint32_t id = 0;
        if (!queues.add(kPackets, sizeof(PacketsParameters), 1, kInFlight, &id)) return;
        submitters.emplace_back(queues, id);
      }
    }
    start_threads();
    while (program_ != Program::kNone && ready_.load() != kServers) std::this_thread::yield();
    begins_.store(true);
    const auto begin = Clock::now();
    uint64_t packets = 0;
    stay_on(0);
    while (seconds_since(begin) < scale_.seconds) {
      if (server_ == Server::kLaunches) packets += generate_for_launches();
      if (server_ == Server::kEvents) packets += generate_for_events(submitters);
      if (server_ == Server::kNone) std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    const double seconds = seconds_since(begin);
    ends_.store(true);
    for (std::thread& thread : threads_) thread.join();
    bool whole = true;
    for (auto& submitter : submitters) whole = submitter.finish() && whole;
    cpu_set_t all;
    CPU_ZERO(&all);
    for (uint32_t i = 0; i < std::thread::hardware_concurrency(); ++i) CPU_SET(i, &all);
    (void)sched_setaffinity(0, sizeof(all), &all);
    Line line("beside_programs");
    line.add("program", name_of(program_)).add("server", name_of(server_));
    if (program_ != Program::kNone) {
      line.add("steps_per_s", static_cast<double>(steps_.load()) / seconds);
    }
    if (server_ != Server::kNone) line.add("packets_per_s", static_cast<double>(packets) / seconds);
    if (whole) line.print();
  }

 private:
  // Programs and the server's threads share cores 1 to kServers.
  void start_threads() {
    for (uint32_t i = 0; i < kServers; ++i) {
      if (server_ == Server::kLaunches) {
        threads_.emplace_back([this, i] { serve_by_launches(*lanes_[i], 1 + i, ends_); });
      }
      if (program_ == Program::kNone) continue;
      threads_.emplace_back([this, i] {
        stay_on(1 + i);
        const std::vector<uint64_t> memory(program_ == Program::kMemory ? kMemoryWords : 1, 1);
        ready_.fetch_add(1);
        while (!begins_.load()) std::this_thread::yield();
        steps_.fetch_add(run_program(program_, ends_, memory));
      });
    }
  }

  uint32_t generate_for_launches() {
    uint32_t sent = 0;
    for (uint32_t i = 0; i < kServers; ++i) {
      Lane& lane = *lanes_[i];
      const uint32_t answered = lane.answered.load(std::memory_order_acquire);
      sent += answered - seen_[i];
      seen_[i] = answered;
      const uint32_t ready = lane.ready.load(std::memory_order_relaxed);
      if (ready - answered < kInFlight) lane.ready.store(ready + 1, std::memory_order_release);
    }
    return sent * kBatch;
  }

  uint32_t generate_for_events(std::vector<Submitter<PacketsParameters>>& submitters) {
    uint32_t sent = 0;
    for (uint32_t i = 0; i < kServers; ++i) {
      const auto number = static_cast<uint32_t>(submitters[i].submitted());
      (void)submitters[i].submit(lanes_[i]->batch(number));
      sent += submitters[i].collect();
    }
    return sent * kBatch;
  }

  const Scale& scale_;
  const Program program_;
  const Server server_;
  std::vector<std::unique_ptr<Lane>> lanes_;
  std::vector<std::thread> threads_;
  uint32_t seen_[kServers] = {};
  std::atomic<uint32_t> ready_{0};
  std::atomic<bool> begins_{false};
  std::atomic<bool> ends_{false};
  std::atomic<uint64_t> steps_{0};
};

}  // namespace

// Interleaved, several times: the machine is not equally fast all the time.
void measure_beside_programs(const Scale& scale) {
  for (uint32_t round = 0; round < scale.rounds; ++round) {
    for (const Program program : {Program::kNone, Program::kCompute, Program::kMemory}) {
      for (const Server server : {Server::kNone, Server::kLaunches, Server::kEvents}) {
        if (program != Program::kNone || server != Server::kNone) Run(scale, program, server).run();
      }
    }
  }
}

}  // namespace warpcache::edge
