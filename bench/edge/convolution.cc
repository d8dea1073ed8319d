// SPDX-License-Identifier: Apache-2.0
//
// A convolution beside look-ups that arrive at a rate: run times against each alone, and their mean
// (ANTT). Figures 5.14 and 5.16 of the dissertation. The look-ups stand for the GET kernel.
#include <algorithm>
#include <atomic>
#include <memory>

#include "base/atomic.h"
#include "edge/bench.h"

namespace warpcache::edge {

namespace {

constexpr uint32_t kBatch = 256;      // look-ups of an event
constexpr uint32_t kInFlight = 64;    // batches
constexpr uint32_t kWorkersEach = 4;  // on a multiprocessor, where the convolution is an event
constexpr uint32_t kAllShared = 200 * 1024;  // bytes that leave no room for others that use some

enum class Way : uint8_t { kLaunch, kLaunchUrgent, kEvents, kReserved, kGreen, kUrgentOnly };
struct Facts {
  Way way;
  const char* name;
};
constexpr Facts kWays[] = {
    {Way::kLaunch, "launch"},          {Way::kLaunchUrgent, "launch-priority"},
    {Way::kEvents, "edge-p1"},         {Way::kReserved, "edge-p1-reserved-16"},
    {Way::kGreen, "edge-p1-green-16"}, {Way::kUrgentOnly, "edge-p2"}};

struct Memory {
  gpu::CudaMemory in, out, index, items, replies, done;
  uint32_t side = 0;
  uint32_t mask = 0;
  bool allocate(const Scale& scale) {
    side = scale.image;
    uint32_t places = 1 << 10;
    while (uint64_t{places} * 2 * 64 <= scale.table_bytes) places *= 2;
    mask = places - 1;
    const auto device = gpu::CudaMemory::Place::kDevice;
    const auto host = gpu::CudaMemory::Place::kHost;
    const uint64_t pixels = uint64_t{side} * side * sizeof(float);
    return in.allocate(device, pixels) && out.allocate(device, pixels) &&
           index.allocate(device, uint64_t{places} * 4) &&
           items.allocate(device, uint64_t{places} * 64) &&
           replies.allocate(host, kInFlight * kBatch * 16) && done.allocate(host, kInFlight * 64);
  }
  ConvolutionParameters convolution() const { return {address(in), address(out), side, side}; }
  LookupsParameters lookups(uint32_t number) const {
    return {address(index),
            address(items),
            address(replies) + uint64_t{number % kInFlight} * kBatch * 16,
            mask,
            kBatch,
            number * kBatch,
            0};
  }
};

struct Result {
  double convolution_us = 0;  // each
  double batch_us = 0;        // from its due time to its completion, on average
  double batches = 0;
};

// Convolutions by launches, one after the other, on a thread of their own. Returns the time of
// each.
double convolve(const Memory& memory, const std::atomic<bool>& ends, cudaStream_t on = nullptr) {
  (void)gpu::attach_thread();
  gpu::CudaStream own;
  if (on == nullptr && !own.create(gpu::CudaStream::Priority::kNormal)) return 0;
  const cudaStream_t stream = on == nullptr ? own.get() : on;
  const auto begin = Clock::now();
  uint64_t count = 0;
  while (!ends.load(std::memory_order_relaxed)) {
    for (uint32_t i = 0; i < 8; ++i, ++count) {
      program_of_bench_launch_convolution(memory.convolution(), stream);
    }
    if (cudaStreamSynchronize(stream) != cudaSuccess) return 0;
  }
  return seconds_since(begin) / static_cast<double>(count) * 1e6;
}

// Batches at equal distances. `submit(number)` starts one, `completed()` is how many have ended.
template <typename Submit, typename Completed>
void pace(double seconds, double rate, const Submit& submit, const Completed& completed,
          Result* result) {
  const double distance = kBatch / rate;
  std::vector<Clock::time_point> due(kInFlight);
  const auto begin = Clock::now();
  uint32_t submitted = 0;
  uint32_t ended = 0;
  double sum = 0;
  while (seconds_since(begin) < seconds) {
    const auto next = begin + std::chrono::duration_cast<Clock::duration>(
                                  std::chrono::duration<double>(distance * submitted));
    if (submitted - ended < kInFlight && Clock::now() >= next && submit(submitted)) {
      due[submitted++ % kInFlight] = next;
    }
    for (const uint32_t now = completed(); ended != now; ++ended) {
      sum += seconds_since(due[ended % kInFlight]);
    }
  }
  if (ended == 0) return;
  result->batches = ended;
  result->batch_us = sum / ended * 1e6;
}

class Run {
 public:
  Run(const Scale& scale, const Memory& memory, Way way, double rate, bool convolves)
      : scale_(scale), memory_(memory), way_(way), rate_(rate), convolves_(convolves) {}

  Result run() {
    if (way_ == Way::kLaunch || way_ == Way::kLaunchUrgent) {
      by_launches();
    } else {
      by_events();
    }
    return result_;
  }

 private:
  bool convolves_by_launches() const { return convolves_ && way_ != Way::kUrgentOnly; }

  template <typename Body>
  void beside_convolutions(const Body& body) {
    std::atomic<bool> ends{false};
    double each = 0;
    std::thread other;
    if (convolves_by_launches())
      other = std::thread([&] { each = convolve(memory_, ends, rest_); });
    body();
    ends.store(true);
    if (other.joinable()) other.join();
    if (convolves_by_launches()) result_.convolution_us = each;
  }

  void by_launches() {
    gpu::CudaStream stream;
    const auto priority = way_ == Way::kLaunch ? gpu::CudaStream::Priority::kNormal
                                               : gpu::CudaStream::Priority::kHigh;
    if (!stream.create(priority)) return;
    uint32_t ended = 0;
    const auto word = [this](uint32_t number) {
      return memory_.done.as<uint32_t>() + number % kInFlight * 16;
    };
    for (uint32_t i = 0; i < kInFlight; ++i) store_release(word(i), 0);
    const auto submit = [&](uint32_t number) {
      program_of_bench_launch_lookups(memory_.lookups(number), word(number), number + 1,
                                      stream.get());
      return true;
    };
    const auto completed = [&] {
      while (load_acquire(word(ended)) == ended + 1) ++ended;
      return ended;
    };
    beside_convolutions([&] {
      if (rate_ != 0) pace(scale_.seconds, rate_, submit, completed, &result_);
      if (rate_ == 0) std::this_thread::sleep_for(std::chrono::duration<double>(scale_.seconds));
    });
    (void)cudaStreamSynchronize(stream.get());
  }

  void by_events() {
    Queues queues(scale_);
    if (way_ == Way::kReserved) {
      queues.config.workers = scale_.workers == 0 ? 16 : scale_.workers;
      queues.config.shared_bytes = kAllShared;
    }
    if (way_ == Way::kGreen) queues.config.multiprocessors = 16;
    if (way_ == Way::kUrgentOnly) queues.use_workers(kWorkersEach);
    uint32_t id = 0;
    const edge_priority priority = way_ == Way::kUrgentOnly ? EDGE_PRIORITY_2 : EDGE_PRIORITY_1;
    if (!queues.open() ||
        !queues.add(kLookups, sizeof(LookupsParameters), 1, kInFlight, &id, 0, priority)) {
      return;
    }
    rest_ = static_cast<cudaStream_t>(edge_rest_stream(queues.runtime()));
    // With priority 2 the convolution is an event as well: only then can it be held back.
    uint32_t background = 0;
    if (way_ == Way::kUrgentOnly && !queues.add(kConvolution, sizeof(ConvolutionParameters),
                                                memory_.side / kRows, 4, &background)) {
      return;
    }
    Submitter<LookupsParameters> lookups(queues, id);
    Submitter<ConvolutionParameters> convolutions(queues, background);
    const bool convolves = convolves_ && way_ == Way::kUrgentOnly;
    const auto submit = [&](uint32_t number) { return lookups.submit(memory_.lookups(number)); };
    const auto completed = [&] {
      if (convolves) {
        (void)convolutions.submit(memory_.convolution());
        (void)convolutions.collect();
      }
      (void)lookups.collect();
      return static_cast<uint32_t>(lookups.completed());
    };
    const auto begin = Clock::now();
    beside_convolutions([&] {
      if (rate_ != 0) pace(scale_.seconds, rate_, submit, completed, &result_);
      while (rate_ == 0 && seconds_since(begin) < scale_.seconds) (void)completed();
    });
    if (convolves) {
      result_.convolution_us = seconds_since(begin) * 1e6 /
                               static_cast<double>(std::max<uint64_t>(convolutions.completed(), 1));
      (void)convolutions.finish();
    }
    (void)lookups.finish();
  }

  const Scale& scale_;
  const Memory& memory_;
  const Way way_;
  const double rate_;
  const bool convolves_;
  cudaStream_t rest_ = nullptr;  // of the multiprocessors that events leave
  Result result_;
};

// What persistent blocks that own multiprocessors cost the convolution while no event comes.
void reserve(const Scale& scale, const Memory& memory, uint32_t workers, double alone_us) {
  Queues queues(scale);
  queues.config.workers = workers;
  queues.config.shared_bytes = kAllShared;
  if (!queues.open()) return;
  std::atomic<bool> ends{false};
  double each = 0;
  std::thread other([&] { each = convolve(memory, ends); });
  std::this_thread::sleep_for(std::chrono::duration<double>(scale.seconds / 2));
  ends.store(true);
  other.join();
  Line("reserved")
      .add("multiprocessors", workers)
      .add("convolution_us", each)
      .add("convolution_slowdown", each / alone_us)
      .print();
}

}  // namespace

void measure_beside_convolution(const Scale& scale) {
  Memory memory;
  if (!memory.allocate(scale)) return;
  const double launched_us = Run(scale, memory, Way::kLaunch, 0, true).run().convolution_us;
  const double event_us = Run(scale, memory, Way::kUrgentOnly, 0, true).run().convolution_us;
  Line("convolution_alone").add("launch_us", launched_us).add("event_us", event_us).print();
  for (const Facts& facts : kWays) {
    for (const double rate : {2.5e6, 4e6, 40e6}) {
      const Result alone = Run(scale, memory, facts.way, rate, false).run();
      const Result both = Run(scale, memory, facts.way, rate, true).run();
      if (alone.batches == 0 || both.batches == 0) continue;  // it has said why
      const double base = facts.way == Way::kUrgentOnly ? event_us : launched_us;
      const double slower = both.convolution_us / base;
      const double lookups = both.batch_us / alone.batch_us;
      Line("beside_convolution")
          .add("way", facts.name)
          .add("rate", rate)
          .add("reached", both.batches * kBatch / scale.seconds)
          .add("batch_us_alone", alone.batch_us)
          .add("batch_us", both.batch_us)
          .add("convolution_us", both.convolution_us)
          .add("lookups_slowdown", lookups)
          .add("convolution_slowdown", slower)
          .add("antt", (slower + lookups) / 2)
          .print();
    }
  }
  for (const uint32_t workers : {8u, 16u, 32u, 64u}) reserve(scale, memory, workers, launched_us);
}

}  // namespace warpcache::edge
