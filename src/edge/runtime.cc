// SPDX-License-Identifier: Apache-2.0
#include "edge/runtime.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <new>
#include <thread>

#include "base/atomic.h"
#include "base/bits.h"

using warpcache::fetch_or;
using warpcache::load_acquire;
using warpcache::store_release;
using warpcache::edge::Command;
using warpcache::edge::Context;
using warpcache::edge::Counts;
using warpcache::edge::DeviceState;
using warpcache::edge::EventEntry;
using warpcache::edge::EventState;
using warpcache::edge::GraphLaunches;
using warpcache::edge::kBarriersMax;
using warpcache::edge::kClosedBit;
using warpcache::edge::kEventsMax;
using warpcache::edge::kFree;
using warpcache::edge::kQueuesOffset;
using warpcache::edge::kThreadsMax;
using warpcache::edge::kWarp;
using warpcache::edge::number_at;
using warpcache::edge::number_of;
using warpcache::edge::numbered;
using warpcache::edge::Partition;
using warpcache::edge::queue_bytes;
using warpcache::edge::QueueState;
using warpcache::edge::RegionHeader;
using warpcache::edge::RegionState;
using warpcache::edge::Ring;
using warpcache::edge::stride_for;
using warpcache::gpu::CudaMemory;

namespace {

constexpr uint32_t kDepth = 1024;
constexpr uint32_t kThreads = 128;
constexpr uint32_t kWaitMs = 5000;
constexpr uint32_t kReleaseUs = 10;
constexpr uint32_t kPageBytes = 4096;
constexpr uint32_t kCopyBytes = 4096;
// A queue of the greatest depth has room for this number of bytes in each entry.
constexpr uint32_t kEntryBytes = 264;
constexpr uint32_t kAreaBytesMin = 64 * 1024;

constexpr bool is_one_of(uint32_t value, uint32_t least, uint32_t most) {
  return value >= least && value <= most;
}

void nap() { std::this_thread::sleep_for(std::chrono::microseconds(50)); }

}  // namespace

edge_runtime::edge_runtime(const edge_config& config) : config_(config) {
  if (config.path != nullptr) path_ = config.path;
  if (config_.depth_max == 0) config_.depth_max = kDepth;
  if (config_.threads == 0) config_.threads = kThreads;
  if (config_.wait_ms_max == 0) config_.wait_ms_max = kWaitMs;
  if (config_.release_count == 0) config_.release_count = 1;
  if (config_.release_us_max == 0) config_.release_us_max = kReleaseUs;
}

edge_runtime::~edge_runtime() {
  if (runs_ && !failed_) (void)stop();
}

uint64_t edge_runtime::area_bytes() const {
  const uint64_t wanted =
      std::max<uint64_t>(uint64_t{config_.depth_max} * kEntryBytes, kAreaBytesMin);
  return warpcache::rounded_up(wanted, uint64_t{kPageBytes});
}

edge_status edge_runtime::open_device() {
  warpcache::gpu::DeviceFacts facts;
  const std::string refusal = warpcache::gpu::open_device(config_.device, &facts);
  return refusal.empty() ? open() : fail(EDGE_NO_DEVICE, refusal);
}

edge_status edge_runtime::open() {
  const std::lock_guard guard(mutex_);
  if (config_.program == nullptr || config_.threads % kWarp != 0 ||
      !is_one_of(config_.threads, kWarp, kThreadsMax) ||
      !is_one_of(config_.depth_max, 1, EDGE_DEPTH_MAX) || !std::has_single_bit(config_.depth_max)) {
    return fail(EDGE_BAD_ARGUMENT, "edge_config is wrong");
  }
  const edge_status allocated = allocate();
  if (allocated != EDGE_OK) return allocated;
  const cudaError_t prepared = config_.program->prepare(config_.shared_bytes);
  if (prepared != cudaSuccess) {
    return fail(EDGE_NO_DEVICE,
                std::string("loading the kernels: ") + cudaGetErrorString(prepared));
  }
  const uint32_t at_once = config_.program->workers_at_once(config_.threads, config_.shared_bytes);
  if (config_.multiprocessors != 0) {
    const std::string refusal = Partition::create(config_.multiprocessors, &partition_);
    if (!refusal.empty()) return fail(EDGE_NO_DEVICE, refusal);
    if (config_.workers == 0) config_.workers = partition_->multiprocessors() - 1;
  }
  if (config_.workers == 0) {
    int device = 0;
    cudaDeviceProp facts = {};
    if (cudaGetDevice(&device) != cudaSuccess ||
        cudaGetDeviceProperties(&facts, device) != cudaSuccess) {
      return fail(EDGE_NO_DEVICE, "the GPU gives no facts");
    }
    const auto multiprocessors = static_cast<uint32_t>(facts.multiProcessorCount);
    config_.workers = std::min(multiprocessors, at_once == 0 ? 0 : at_once - 1);
  }
  if (config_.form == EDGE_PERSISTENT && config_.workers + 1 > at_once) {
    return fail(EDGE_NO_SPACE, "the GPU has no room for these workers at a time: " +
                                   std::to_string(at_once) + " blocks");
  }
  if (config_.reserved_workers > config_.workers || config_.workers == 0) {
    return fail(EDGE_BAD_ARGUMENT, "edge_config has too few workers");
  }
  view_.region = queues_.data();
  view_.state = state_.as<DeviceState>();
  view_.contexts = contexts_.as<Context>();
  view_.device_queues = device_queues_.data();
  view_.device_queue_bytes = area_bytes();
  view_.lifetime_ns = uint64_t{config_.lifetime_ms} * 1'000'000;
  view_.contexts_each = config_.depth_max;
  view_.reserved_workers = config_.reserved_workers;
  view_.release_count = config_.release_count;
  view_.release_ns_max = config_.release_us_max * 1000;
  view_.wait = config_.wait;
  if (config_.form == EDGE_GRAPH_LAUNCH) {
    const std::string refusal = GraphLaunches::create(*config_.program, view_, stream(), &graphs_);
    if (!refusal.empty()) return fail(EDGE_NO_DEVICE, refusal);
  }
  return start();
}

edge_status edge_runtime::allocate() {
  bool existed = false;
  const edge_status made =
      queues_.create(path_, kQueuesOffset + kEventsMax * area_bytes(), &existed);
  if (made != EDGE_OK) return fail(made, "the memory of the queues cannot be had: " + path_);
  if (existed) recover();
  const auto device = CudaMemory::Place::kDevice;
  if (!pinned_.pin({queues_.data(), queues_.bytes()}) ||
      !state_.allocate(device, sizeof(DeviceState)) ||
      !contexts_.allocate(device, uint64_t{kEventsMax} * config_.depth_max * sizeof(Context)) ||
      !device_queues_.allocate(device, kEventsMax * area_bytes()) ||
      !copies_.allocate(CudaMemory::Place::kHost, kCopyBytes)) {
    return fail(EDGE_NO_SPACE, "there is too little memory for the queues");
  }
  if (!stream_.create(warpcache::gpu::CudaStream::Priority::kHigh) ||
      !side_.create(warpcache::gpu::CudaStream::Priority::kNormal)) {
    return fail(EDGE_NO_DEVICE, "the GPU gives no stream");
  }
  return EDGE_OK;
}

// Another process has left these queues.
void edge_runtime::recover() {
  generation_ = number_of(queues_.header().control);
  for (uint32_t id = 0; id < kEventsMax; ++id) {
    EventEntry& event = queues_.event(id);
    if (event.state != static_cast<uint32_t>(EventState::kOpen)) continue;
    if ((load_acquire(&event.head) & kClosedBit) != 0 || (event.flags & EDGE_DEVICE_QUEUE) != 0) {
      store_release(&event.state, static_cast<uint32_t>(EventState::kUnused));
    } else {
      queues_.complete_taken(event, EDGE_CODE_FAULT);
    }
  }
}

edge_status edge_runtime::start() {
  if (failed_) return EDGE_FAULT;
  for (Ring& ring : view_.state->rings) {
    if (cudaMemsetAsync(&ring, 0, sizeof(Ring), stream()) != cudaSuccess) {
      return fail(EDGE_FAULT, "clearing the work queues");
    }
  }
  RegionHeader& header = queues_.header();
  store_release(&header.control, numbered(++generation_, static_cast<uint32_t>(Command::kRun)));
  store_release(&header.state, static_cast<uint32_t>(RegionState::kRunning));
  std::string failure;
  if (graphs_ != nullptr) {
    failure = graphs_->start();
  } else {
    config_.program->start_workers(view_, {config_.workers + 1, config_.threads},
                                   config_.shared_bytes, stream());
    const cudaError_t error = cudaGetLastError();
    if (error != cudaSuccess) failure = cudaGetErrorString(error);
  }
  if (!failure.empty()) return fail(EDGE_FAULT, "starting the scheduler: " + failure);
  runs_ = true;
  return EDGE_OK;
}

edge_status edge_runtime::stop() {
  if (!runs_) return EDGE_OK;
  RegionHeader& header = queues_.header();
  store_release(&header.control, numbered(generation_, static_cast<uint32_t>(Command::kStop)));
  const auto end = deadline();
  cudaError_t state = cudaErrorNotReady;
  while (state == cudaErrorNotReady && Clock::now() < end) {
    state = cudaStreamQuery(stream());
    if (state == cudaErrorNotReady) nap();
  }
  if (state == cudaErrorNotReady) return fail(EDGE_TIMEOUT, "an event does not end");
  runs_ = false;
  if (state != cudaSuccess) return check_locked();
  return EDGE_OK;
}

edge_status edge_runtime::pause() {
  const std::lock_guard guard(mutex_);
  return stop();
}

edge_status edge_runtime::resume() {
  const std::lock_guard guard(mutex_);
  return runs_ ? EDGE_OK : start();
}

edge_status edge_runtime::close() {
  const std::lock_guard guard(mutex_);
  edge_status status = failed_ ? EDGE_FAULT : stop();
  for (uint32_t id = 0; id < kEventsMax; ++id) {
    EventEntry& event = queues_.event(id);
    if (event.state != static_cast<uint32_t>(EventState::kOpen)) continue;
    (void)fetch_or(&event.head, kClosedBit);
    if (status == EDGE_OK && (event.flags & EDGE_DEVICE_QUEUE) == 0 && event.period_us == 0) {
      queues_.complete_all(event, EDGE_CODE_CANCELLED);
    }
  }
  return status;
}

void edge_runtime::change_table() {
  store_release(
      &queues_.header().control,
      numbered(++generation_, static_cast<uint32_t>(runs_ ? Command::kRun : Command::kStop)));
}

bool edge_runtime::wait_until_seen(uint32_t id) {
  const auto end = deadline();
  const EventEntry& event = queues_.event(id);
  while (runs_ && static_cast<int32_t>(load_acquire(&event.seen) - generation_) < 0) {
    if (Clock::now() > end || check_locked() != EDGE_OK) return false;
    nap();
  }
  return true;
}

edge_status edge_runtime::check_event(const edge_event& event) const {
  const edge_program& program = *config_.program;
  const bool fits =
      event.function < program.functions &&
      event.parameter_bytes == (program.parameter_bytes[event.function] + 3) / 4 * 4 &&
      event.parameter_bytes <= EDGE_PARAMETER_BYTES_MAX && is_one_of(event.blocks, 1, 0xffff) &&
      is_one_of(event.depth, 1, config_.depth_max) && std::has_single_bit(event.depth) &&
      (event.period_us == 0 || event.parameter_bytes >= 4) &&
      (event.period_us == 0 || (event.flags & EDGE_DEVICE_QUEUE) == 0);
  if (!fits) return EDGE_BAD_ARGUMENT;
  return queue_bytes(event.depth, event.parameter_bytes / 4) <= area_bytes() ? EDGE_OK
                                                                             : EDGE_NO_SPACE;
}

edge_status edge_runtime::register_event(const edge_event& wanted, uint32_t* id) {
  const std::lock_guard guard(mutex_);
  const edge_status checked = check_event(wanted);
  if (checked != EDGE_OK) return fail(checked, "edge_event is wrong");
  uint32_t free = 0;
  while (free < kEventsMax &&
         queues_.event(free).state != static_cast<uint32_t>(EventState::kUnused)) {
    ++free;
  }
  if (free == kEventsMax) return fail(EDGE_NO_SPACE, "all events are registered");
  EventEntry& event = queues_.event(free);
  const bool on_device = (wanted.flags & EDGE_DEVICE_QUEUE) != 0;
  const uint32_t serial = event.serial + 1 == 0 ? 1 : event.serial + 1;
  event.function = wanted.function;
  event.depth = wanted.depth;
  event.words = wanted.parameter_bytes / 4;
  event.stride = stride_for(event.words);
  event.flags = wanted.flags;
  event.submissions = on_device ? 0 : kQueuesOffset + free * area_bytes();
  event.completions = event.submissions + uint64_t{event.depth} * event.stride;
  event.blocks = wanted.blocks;
  event.threads = wanted.threads == 0 ? config_.threads : wanted.threads;
  event.shared_bytes = wanted.shared_bytes;
  event.priority = wanted.priority;
  event.serial = serial;
  event.period_us = wanted.period_us;
  event.notify_count = std::max(wanted.notify_count, 1u);
  event.notify_us_max = wanted.notify_us_max == 0 ? kReleaseUs : wanted.notify_us_max;
  if (event.period_us != 0) event.flags |= EDGE_SELF_FREEING;
  event.taken = event.notified = 0;
  store_release(&event.head, 0);
  store_release(&event.tail, 0);
  if (on_device) {
    const edge_status prepared = prepare_device_queue(free);
    if (prepared != EDGE_OK) return prepared;
  } else {
    queues_.clear(event);
  }
  if (event.period_us != 0 && wanted.timer_parameters != nullptr) {
    for (uint32_t i = 0; i < event.words; ++i) {
      uint32_t word;
      std::memcpy(&word, static_cast<const uint8_t*>(wanted.timer_parameters) + i * 4, 4);
      store_release(&queues_.submission(event, 0)[1 + i], numbered(0, word));
    }
  }
  if (graphs_ != nullptr) {
    const bool ran = runs_;
    edge_status status = stop();
    if (status != EDGE_OK) return status;
    const std::string refusal = graphs_->add_event(free, event);
    if (!refusal.empty()) return fail(EDGE_NO_SPACE, refusal);
    store_release(&event.state, static_cast<uint32_t>(EventState::kOpen));
    if (ran) status = start();
    *id = free;
    return status;
  }
  store_release(&event.state, static_cast<uint32_t>(EventState::kOpen));
  change_table();
  *id = free;
  return on_device && !wait_until_seen(free) ? fail(EDGE_TIMEOUT, "the scheduler does not answer")
                                             : EDGE_OK;
}

// Its queues are made on the host and copied.
edge_status edge_runtime::prepare_device_queue(uint32_t id) {
  const EventEntry& event = queues_.event(id);
  uint8_t* const base = device_queues_.data() + id * area_bytes();
  auto* const words = copies_.as<uint64_t>();
  const uint64_t entries = uint64_t{event.depth} * event.stride;
  bool done = cudaMemsetAsync(base, 0, entries, side_.get()) == cudaSuccess &&
              cudaMemsetAsync(&view_.state->queues[id].head, 0, sizeof(uint64_t), side_.get()) ==
                  cudaSuccess;
  constexpr uint32_t kAtOnce = kCopyBytes / sizeof(uint64_t);
  for (uint32_t first = 0; done && first < event.depth; first += kAtOnce) {
    const uint32_t count = std::min(kAtOnce, event.depth - first);
    for (uint32_t i = 0; i < count; ++i) words[i] = numbered(number_at(first + i), kFree);
    done =
        cudaMemcpyAsync(base + entries + first * sizeof(uint64_t), words, count * sizeof(uint64_t),
                        cudaMemcpyHostToDevice, side_.get()) == cudaSuccess &&
        cudaStreamSynchronize(side_.get()) == cudaSuccess;
  }
  return done ? EDGE_OK : fail(EDGE_FAULT, "making a queue in device memory");
}

bool edge_runtime::copy_from_device(void* to, const void* from, size_t bytes) {
  if (cudaMemcpyAsync(copies_.data(), from, bytes, cudaMemcpyDeviceToHost, side_.get()) !=
          cudaSuccess ||
      cudaStreamSynchronize(side_.get()) != cudaSuccess) {
    return false;
  }
  std::memcpy(to, copies_.data(), bytes);
  return true;
}

bool edge_runtime::device_queue_idle(uint32_t id, bool* idle) {
  uint64_t head = 0;
  uint32_t completed = 0;
  const QueueState& queue = view_.state->queues[id];
  if (!copy_from_device(&head, &queue.head, sizeof(head)) ||
      !copy_from_device(&completed, &queue.completed, sizeof(completed))) {
    return false;
  }
  *idle = static_cast<uint32_t>(head) == completed;
  return true;
}

edge_status edge_runtime::unregister_event(uint32_t id) {
  const std::lock_guard guard(mutex_);
  if (id >= kEventsMax) return fail(EDGE_BAD_ARGUMENT, "there is no such event");
  EventEntry& event = queues_.event(id);
  if (event.state != static_cast<uint32_t>(EventState::kOpen)) return EDGE_CLOSED;
  const bool on_device = (event.flags & EDGE_DEVICE_QUEUE) != 0;
  const auto end = deadline();
  (void)fetch_or(&event.head, kClosedBit);
  if (event.period_us != 0) {
    // The scheduler is the submitter.
    store_release(&event.state, static_cast<uint32_t>(EventState::kUnused));
    change_table();
    if (!wait_until_seen(id)) return fail(EDGE_TIMEOUT, "the scheduler does not answer");
    store_release(&event.head, kClosedBit | load_acquire(&event.taken));
  }
  if (!runs_ && !on_device) queues_.complete_all(event, EDGE_CODE_CANCELLED);
  bool idle = false;
  while (!idle) {
    const edge_status checked = check_locked();
    if (checked != EDGE_OK) return checked;
    idle = queues_.idle(event);
    if (on_device && (!runs_ || !device_queue_idle(id, &idle))) idle = true;
    if (!idle && Clock::now() > end) return fail(EDGE_TIMEOUT, "events are still in flight");
    if (!idle) nap();
  }
  store_release(&event.state, static_cast<uint32_t>(EventState::kUnused));
  change_table();
  if (!wait_until_seen(id)) return fail(EDGE_TIMEOUT, "the scheduler does not answer");
  return EDGE_OK;
}

edge_status edge_runtime::modify_event(uint32_t id, uint32_t blocks) {
  const std::lock_guard guard(mutex_);
  if (id >= kEventsMax || !is_one_of(blocks, 1, 0xffff)) {
    return fail(EDGE_BAD_ARGUMENT, "there is no such event, or no such number of blocks");
  }
  store_release(&queues_.event(id).blocks, blocks);
  change_table();
  return wait_until_seen(id) ? EDGE_OK : fail(EDGE_TIMEOUT, "the scheduler does not answer");
}

edge_status edge_runtime::release_barrier(uint32_t barrier) {
  if (barrier >= kBarriersMax) return EDGE_BAD_ARGUMENT;
  (void)warpcache::fetch_add(&queues_.header().releases[barrier], 1);
  return EDGE_OK;
}

edge_status edge_runtime::check() {
  const std::lock_guard guard(mutex_);
  return check_locked();
}

edge_status edge_runtime::check_locked() {
  if (failed_) return EDGE_FAULT;
  const cudaError_t state = cudaStreamQuery(stream());
  if (state == cudaErrorNotReady || (state == cudaSuccess && !runs_)) return EDGE_OK;
  failed_ = true;
  runs_ = false;
  why_ = state == cudaSuccess ? "the scheduler has ended" : cudaGetErrorString(state);
  store_release(&queues_.header().state, static_cast<uint32_t>(RegionState::kFailed));
  for (uint32_t id = 0; id < kEventsMax; ++id) {
    EventEntry& event = queues_.event(id);
    if (event.state != static_cast<uint32_t>(EventState::kOpen)) continue;
    if ((event.flags & EDGE_DEVICE_QUEUE) == 0) queues_.complete_taken(event, EDGE_CODE_FAULT);
  }
  return EDGE_FAULT;
}

edge_status edge_runtime::read_counts(edge_counts* counts) {
  const std::lock_guard guard(mutex_);
  static_assert(sizeof(Counts) == sizeof(edge_counts));
  if (failed_ || !copy_from_device(counts, &view_.state->counts, sizeof(Counts))) {
    return fail(EDGE_FAULT, "reading the counts");
  }
  return EDGE_OK;
}

extern "C" {

edge_status edge_open(const edge_config* config, edge_runtime** runtime) {
  auto* const made = new (std::nothrow) edge_runtime(*config);
  if (made == nullptr) return EDGE_NO_SPACE;
  *runtime = made;
  return made->open_device();
}

edge_status edge_close(edge_runtime* runtime) {
  const edge_status status = runtime->close();
  // Kernels may still use its memory after a timeout: the process keeps it.
  if (status != EDGE_TIMEOUT) delete runtime;
  return status;
}

edge_status edge_register_event(edge_runtime* runtime, const edge_event* event, uint32_t* id) {
  return runtime->register_event(*event, id);
}
edge_status edge_unregister_event(edge_runtime* runtime, uint32_t id) {
  return runtime->unregister_event(id);
}
edge_status edge_modify_event(edge_runtime* runtime, uint32_t id, uint32_t blocks) {
  return runtime->modify_event(id, blocks);
}
edge_status edge_pause(edge_runtime* runtime) { return runtime->pause(); }
edge_status edge_resume(edge_runtime* runtime) { return runtime->resume(); }
edge_status edge_release_barrier(edge_runtime* runtime, uint32_t barrier) {
  return runtime->release_barrier(barrier);
}
void* edge_rest_stream(edge_runtime* runtime) { return runtime->rest_stream(); }
edge_queues* edge_queues_of(edge_runtime* runtime) { return &runtime->queues(); }
edge_status edge_check(edge_runtime* runtime) { return runtime->check(); }
edge_status edge_read_counts(edge_runtime* runtime, edge_counts* counts) {
  return runtime->read_counts(counts);
}
const char* edge_why(const edge_runtime* runtime) { return runtime->why().c_str(); }

}  // extern "C"
