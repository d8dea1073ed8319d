// SPDX-License-Identifier: Apache-2.0
//
// What the measurements share. Every wait has a limit: a measurement that does not get on prints
// where it stands, and the next one begins.
#pragma once

#include <cuda_runtime_api.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "edge/events.h"
#include "gpu/device.h"

namespace warpcache::edge {

using Clock = std::chrono::steady_clock;

inline double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

// What a run of the program may take: of each measurement.
struct Scale {
  double seconds = 1.0;   // of one point
  double patience_s = 5;  // for the GPU
  uint32_t depth = 4096;  // of queues, where a rate is measured
  uint32_t workers = 0;   // 0: one a multiprocessor
  uint32_t product_large = 1024;
  uint32_t image = 4096;  // pixels of a side
  uint64_t table_bytes = uint64_t{1} << 30;
  bool graphs = true;
  uint32_t rounds = 5;  // of what is measured several times
};

// One line of JSON a result.
class Line {
 public:
  explicit Line(const char* what) {
    text_ = std::string("{\"bench\":\"edge\",\"what\":\"") + what + '"';
  }
  Line& add(const char* name, const std::string& value) {
    text_ += std::string(",\"") + name + "\":\"" + value + '"';
    return *this;
  }
  Line& add(const char* name, const char* value) { return add(name, std::string(value)); }
  Line& add(const char* name, double value) {
    char digits[40];
    (void)std::snprintf(digits, sizeof(digits), "%.6g", value);
    text_ += std::string(",\"") + name + "\":" + digits;
    return *this;
  }
  void print() const {
    (void)std::printf("%s}\n", text_.c_str());
    (void)std::fflush(stdout);
  }

 private:
  std::string text_;
};

// Queues with the program of the measurements, for as long as this lives.
class Queues {
 public:
  explicit Queues(const Scale& scale, edge_form form = EDGE_PERSISTENT) {
    config.program = program_of_bench();
    config.form = form;
    config.workers = scale.workers;
    config.threads = 256;
    config.wait_ms_max = static_cast<uint32_t>(scale.patience_s * 1000);
    config.lifetime_ms = 30000;
  }
  ~Queues() {
    if (runtime_ == nullptr) return;
    const edge_status status = edge_close(runtime_);
    if (status != EDGE_OK) complain("closing", status);
  }
  Queues(const Queues&) = delete;
  Queues& operator=(const Queues&) = delete;

  // Workers for events of many blocks: as many on each multiprocessor, where the scale says none.
  void use_workers(uint32_t each) {
    int device = 0;
    cudaDeviceProp facts = {};
    if (config.workers != 0 || cudaGetDevice(&device) != cudaSuccess ||
        cudaGetDeviceProperties(&facts, device) != cudaSuccess) {
      return;
    }
    // The scheduler is a block as well.
    config.workers = each * static_cast<uint32_t>(facts.multiProcessorCount) - 1;
  }
  // False: it has said why.
  bool open() {
    const edge_status status = edge_open(&config, &runtime_);
    if (status != EDGE_OK) return complain("opening", status);
    queues_ = edge_queues_of(runtime_);
    return true;
  }
  bool add(BenchFunction function, uint32_t bytes, uint32_t blocks, uint32_t depth, uint32_t* id,
           uint32_t flags = 0, edge_priority priority = EDGE_PRIORITY_NORMAL) {
    edge_event event = {};
    event.function = function;
    event.blocks = blocks;
    event.threads = 256;
    event.parameter_bytes = bytes;
    event.depth = depth;
    event.flags = flags | (function == kPackets ? 0 : EDGE_PARAMETERS_ONLY);
    event.priority = priority;
    return add(event, id);
  }
  bool add(const edge_event& event, uint32_t* id) {
    const edge_status status = edge_register_event(runtime_, &event, id);
    return status == EDGE_OK || complain("registering", status);
  }
  edge_counts counts() {
    edge_counts counts = {};
    (void)edge_read_counts(runtime_, &counts);
    return counts;
  }
  bool complain(const char* what, edge_status status) const {
    Line("failure")
        .add("where", what)
        .add("status", edge_status_text(status))
        .add("why", edge_why(runtime_))
        .print();
    return false;
  }

  edge_runtime* runtime() const { return runtime_; }
  edge_queues* queues() const { return queues_; }

  edge_config config = {};

 private:
  edge_runtime* runtime_ = nullptr;
  edge_queues* queues_ = nullptr;
};

// Submits events to one queue and counts completions, from one thread.
template <typename Parameters>
class Submitter {
 public:
  Submitter(Queues& queues, uint32_t id) : queues_(queues), id_(id) {}

  // False: the queue is full.
  bool submit(const Parameters& parameters) {
    if (edge_schedule(queues_.queues(), id_, &parameters, sizeof(parameters), 0, nullptr) !=
        EDGE_OK) {
      return false;
    }
    ++submitted_;
    return true;
  }
  // Takes what has completed.
  uint32_t collect() {
    uint32_t count = 0;
    uint32_t code = 0;
    while (edge_poll(queues_.queues(), id_, nullptr, &code) == EDGE_OK) ++count;
    completed_ += count;
    return count;
  }
  // False: not all events complete in time, and it has said where they stand.
  bool finish() {
    const auto begin = Clock::now();
    while (completed_ != submitted_) {
      if (collect() != 0) continue;
      if (seconds_since(begin) * 1000 < queues_.config.wait_ms_max) continue;
      Line("failure")
          .add("where", "waiting for events")
          .add("submitted", static_cast<double>(submitted_))
          .add("completed", static_cast<double>(completed_))
          .add("status", edge_status_text(edge_check(queues_.runtime())))
          .add("why", edge_why(queues_.runtime()))
          .print();
      return false;
    }
    return true;
  }
  uint64_t submitted() const { return submitted_; }
  uint64_t completed() const { return completed_; }

 private:
  Queues& queues_;
  uint32_t id_;
  uint64_t submitted_ = 0;
  uint64_t completed_ = 0;
};

inline uint64_t address(const gpu::CudaMemory& memory) {
  return reinterpret_cast<uint64_t>(memory.data());
}

// The value that `share` of the values do not exceed. `values` get sorted.
double quantile(std::vector<double>& values, double share);

// Energy of the GPU by NVML, in millijoules; 0 where there is none.
class Energy {
 public:
  Energy();
  bool known() const { return device_ != nullptr; }
  double millijoules() const;
  double watts_now() const;

 private:
  void* library_ = nullptr;
  void* device_ = nullptr;
};

// The measurements.
void measure_latency(const Scale& scale);
void measure_rates(const Scale& scale);
void measure_beside_programs(const Scale& scale);
void measure_power(const Scale& scale);
void measure_beside_convolution(const Scale& scale);
void measure_barriers(const Scale& scale);
// One run each for a profiler: bench/edge/run counts instructions and accesses with it.
void measure_profiled_polls(const Scale& scale);
void measure_profiled_releases(const Scale& scale);
void measure_profiled_targeted(const Scale& scale);

}  // namespace warpcache::edge
