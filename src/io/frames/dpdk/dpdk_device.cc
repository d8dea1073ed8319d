// SPDX-License-Identifier: Apache-2.0
#include "io/frames/dpdk/dpdk_device.h"

#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_ethdev.h>
#include <rte_lcore.h>
#include <rte_memory.h>
#include <rte_pause.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <utility>

#include "base/assert.h"
#include "base/bits.h"
#include "io/frames/dpdk/dpdk_eal.h"
#include "io/frames/dpdk/dpdk_pools.h"
#include "io/frames/dpdk/memif_guard.h"
#include "io/frames/dpdk/polling.h"
#include "io/frames/dpdk/ring_open.h"

namespace warpcache::io {
namespace {

constexpr uint16_t kRingFrames = 1024;
constexpr uint32_t kAhead = 8;  // frames
constexpr auto kAnySocket = static_cast<unsigned>(SOCKET_ID_ANY);

std::string failed(const char* what, int error) {
  return std::string(what) + ": " + rte_strerror(error < 0 ? -error : error);
}

// DPDK's threads inherit that signals are for others. Its TAP device is told of frames by realtime
// signals.
class SignalsElsewhere {
 public:
  SignalsElsewhere() {
    sigset_t blocked;
    sigfillset(&blocked);
    for (int number = SIGRTMIN; number <= SIGRTMAX; ++number) sigdelset(&blocked, number);
    (void)pthread_sigmask(SIG_BLOCK, &blocked, &before_);
  }
  SignalsElsewhere(const SignalsElsewhere&) = delete;
  SignalsElsewhere& operator=(const SignalsElsewhere&) = delete;
  ~SignalsElsewhere() { (void)pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t before_;
};

constexpr uint64_t kReplyBytes = uint64_t{DpdkDevice::kReplyBlocks} * DpdkPort::kReplyBlockBytes;

// DPDK keeps caches of buffers for threads that it knows.
class KnownThread {
 public:
  KnownThread() : known_(rte_thread_register() == 0) {}
  KnownThread(const KnownThread&) = delete;
  KnownThread& operator=(const KnownThread&) = delete;
  ~KnownThread() {
    if (known_) rte_thread_unregister();
  }

 private:
  bool known_;
};

uint64_t now_us() { return polling_now_us(); }

}  // namespace

DpdkDevice::~DpdkDevice() {
  rte_eth_dev_info info = {};
  const bool known = rte_eth_dev_info_get(number_, &info) == 0;
  {
    MemifUser user;
    const AtMemif alone(&user);
    if (started_) (void)rte_eth_dev_stop(number_);
    end_memif_handlers();
  }
  if (known) (void)rte_dev_remove(info.device);
  for (const Buffers& buffers : buffers_) {
    rte_mempool_free(buffers.received);
    rte_mempool_free(buffers.sent);
    if (buffers.zone != nullptr) (void)rte_memzone_free(buffers.zone);
  }
}

std::string DpdkDevice::take_memory(const DpdkSettings& settings, const std::string& name,
                                    uint64_t bytes, Buffers& buffers) const {
  if (settings.gpu.has_value()) {
    buffers.gpu = std::make_unique<DpdkGpuMemory>();
    std::string failure = buffers.gpu->allocate(*settings.gpu, number_, bytes);
    buffers.memory = buffers.gpu->memory();
    return failure;
  }
  buffers.zone = rte_memzone_reserve_aligned(("wc_frames_" + name).c_str(), bytes, SOCKET_ID_ANY, 0,
                                             static_cast<unsigned>(kDpdkPage));
  if (buffers.zone == nullptr) return failed("memory for frames", rte_errno);
  auto* const data = static_cast<uint8_t*>(buffers.zone->addr);
  buffers.memory = {data, data, buffers.zone->len, buffers.zone->iova, buffers.zone->hugepage_sz};
  return "";
}

// The buffers of received frames lie in one piece of memory, so that an engine can address them all
// from its start.
std::string DpdkDevice::allocate(const DpdkSettings& settings) {
  const uint32_t queues = (queues_ + ports_ - 1u) / ports_;  // of a port, at most
  const uint32_t count = queues * kDpdkQueueBuffers;
  const BufferLayout layout = layout_for(number_, settings.gpu.has_value());
  const uint64_t received_bytes = bytes_of_buffers(layout, count);
  for (uint32_t port = 0; port < ports_; ++port) {
    const std::string name = std::to_string(number_) + "_" + std::to_string(port);
    Buffers& buffers = buffers_.emplace_back();
    std::string failure = take_memory(settings, name, received_bytes + kReplyBytes, buffers);
    if (!failure.empty()) return failure;
    buffers.received =
        create_pool_in(buffers.memory, received_bytes, layout, "wc_received_" + name, count);
    if (buffers.received == nullptr) return failed("buffers for received frames", rte_errno);
    buffers.sent = rte_pktmbuf_pool_create(("wc_sent_" + name).c_str(), count, kDpdkPoolCache, 0,
                                           kDpdkBufferBytes, SOCKET_ID_ANY);
    if (buffers.sent == nullptr) return failed("buffers for replies", rte_errno);
    buffers.blocks = std::make_unique<ReplyBlocks>();
  }
  return "";
}

std::string DpdkDevice::start() {
  MemifUser user;  // the other side may be there already
  const AtMemif alone(&user);
  rte_eth_dev_info info;
  int error = rte_eth_dev_info_get(number_, &info);
  if (error != 0) return failed("its properties", error);
  if (queues_ > info.max_rx_queues || queues_ > info.max_tx_queues) {
    const uint32_t most = std::min(info.max_rx_queues, info.max_tx_queues);
    return "it has at most " + std::to_string(most) + " queues";
  }
  rte_eth_conf settings = {};
  if (queues_ > 1) {
    settings.rxmode.mq_mode = RTE_ETH_MQ_RX_RSS;
    settings.rx_adv_conf.rss_conf.rss_hf =
        (RTE_ETH_RSS_IP | RTE_ETH_RSS_UDP) & info.flow_type_rss_offloads;
    if (settings.rx_adv_conf.rss_conf.rss_hf == 0) settings.rxmode.mq_mode = RTE_ETH_MQ_RX_NONE;
  }
  error = rte_eth_dev_configure(number_, queues_, queues_, &settings);
  if (error != 0) return failed("configuring it", error);
  uint16_t received = kRingFrames;
  uint16_t sent = kRingFrames;
  error = rte_eth_dev_adjust_nb_rx_tx_desc(number_, &received, &sent);
  if (error != 0) return failed("the size of its rings", error);
  for (uint16_t queue = 0; queue < queues_; ++queue) {
    error = rte_eth_rx_queue_setup(number_, queue, received, kAnySocket, nullptr,
                                   buffers_[queue % ports_].received);
    if (error != 0) return failed("a queue for received frames", error);
    error = rte_eth_tx_queue_setup(number_, queue, sent, kAnySocket, nullptr);
    if (error != 0) return failed("a queue for frames to be sent", error);
  }
  is_memif_ = std::strcmp(info.driver_name, "net_memif") == 0;
  error = rte_eth_dev_start(number_);
  if (error != 0 && !is_memif_) return failed("starting it", error);
  started_ = error == 0;
  restarted_us_ = now_us();
  // The kernel has neighbours by IPv6. Not every device can; most of these receive all anyway.
  if (kernel_.is_open()) (void)rte_eth_allmulticast_enable(number_);
  return "";
}

void DpdkDevice::keep_connected(const std::atomic<bool>& stopped, MemifUser* user) {
  constexpr uint64_t kEveryUs = 500'000;
  // Both sides agree by messages, which takes a busy machine a while: a side that gives up
  // meanwhile makes the other begin anew.
  constexpr uint64_t kAgreementUs = 3'000'000;
  constexpr useconds_t kStepUs = 100;
  rte_eth_link link = {};
  const uint64_t waits_us = started_ && !was_up_ ? kAgreementUs : kEveryUs;
  if (!is_memif_ || now_us() < restarted_us_ + waits_us) return;
  (void)rte_eth_link_get_nowait(number_, &link);
  was_up_ = link.link_status == RTE_ETH_LINK_UP;
  if (was_up_) return;
  restarting_.store(true);
  while (paused_.load() + 1 < buffers_.size() && !stopped.load()) (void)usleep(kStepUs);
  if (!stopped.load()) {
    const AtMemif alone(user);
    if (started_.exchange(false)) (void)rte_eth_dev_stop(number_);
    started_ = rte_eth_dev_start(number_) == 0;
  }
  restarting_.store(false);
  restarted_us_ = now_us();
}

void DpdkDevice::pause_if_asked(const std::atomic<bool>& stopped) {
  constexpr useconds_t kStepUs = 100;
  if (!restarting_.load(std::memory_order_relaxed)) return;
  paused_.fetch_add(1);
  while (restarting_.load() && !stopped.load()) (void)usleep(kStepUs);
  paused_.fetch_sub(1);
}

std::string DpdkDevice::wait_for_link(uint32_t time_ms_max) const {
  constexpr useconds_t kStepUs = 1000;
  rte_eth_link link = {};
  for (uint32_t ms = 0; ms < time_ms_max; ++ms) {
    if (rte_eth_link_get_nowait(number_, &link) == 0 && link.link_status == RTE_ETH_LINK_UP) {
      return "";
    }
    (void)usleep(kStepUs);
  }
  return time_ms_max == 0 ? "" : "there is no other side";
}

std::string DpdkDevice::open_kernel(const DpdkSettings& settings) {
  if (settings.kernel_interface.empty()) return "";
  rte_ether_addr mac;
  const int error = rte_eth_macaddr_get(number_, &mac);
  if (error != 0) return failed("its MAC address", error);
  std::string failure = kernel_.open(settings.kernel_interface);
  if (failure.empty()) failure = kernel_.set_mac(mac.addr_bytes);
  if (failure.empty()) failure = kernel_.set_up();
  if (failure.empty() && !settings.kernel_address.empty()) {
    failure = kernel_.add_address(settings.kernel_address);
  }
  return failure;
}

uint64_t DpdkDevice::take_missed() {
  rte_eth_stats stats;
  if (rte_eth_stats_get(number_, &stats) != 0) return 0;
  const uint64_t all = stats.imissed + stats.rx_nombuf + stats.ierrors;
  return all - std::exchange(missed_, all);
}

DpdkPort::DpdkPort(std::shared_ptr<DpdkDevice> device, uint16_t number)
    : device_(std::move(device)),
      number_(number),
      next_queue_(number),
      memif_(device_->is_memif() ? std::make_unique<MemifUser>() : nullptr),
      blocks_(*device_->buffers(number).blocks) {
  const DpdkDevice::Buffers& buffers = device_->buffers(number);
  memory_ = buffers.memory;
  is_on_gpu_ = buffers.gpu != nullptr;
  sent_ = buffers.sent;
  block_of_.fill(kNoBlock);
  queue_of_.fill(number);
}

DpdkPort::~DpdkPort() {
  for (const std::vector<rte_mbuf*>& burst : held_) {
    for (rte_mbuf* const frame : burst) rte_pktmbuf_free(frame);
  }
}

std::string DpdkPort::describe() const {
  std::string queues = "queue " + std::to_string(number_);
  for (uint32_t queue = number_; (queue += device_->ports()) < device_->queues();) {
    queues += ", " + std::to_string(queue);
  }
  return "dpdk " + device_->text() + " " + queues + (is_on_gpu_ ? " (in the GPU's memory)" : "") +
         (dpdk_has_huge_pages() ? "" : " (without huge pages)");
}

bool DpdkPort::receive(FrameBuffer& buffer, int timeout_ms) {
  thread_local const KnownThread known;
  return poll_frames(
      stopped_, timeout_ms, [&] { return receive_now(buffer) != 0; }, [this] { now_and_then(); });
}

// From the next queue that has frames: a burst's replies leave by the queue that it came from.
uint32_t DpdkPort::receive_now(FrameBuffer& buffer) {
  if (number_ != 0) device_->pause_if_asked(stopped_);
  if (!device_->is_started()) return 0;
  constexpr uint32_t kPollsOfKernel = 16;  // looking there is a system call
  if (number_ == 0 && device_->kernel().is_open() && ++polls_ % kPollsOfKernel == 0) {
    send_from_kernel();
  }
  for (uint32_t queue = number_; queue < device_->queues(); queue += device_->ports()) {
    const uint16_t asked = next_queue_;
    const uint32_t next = uint32_t{asked} + device_->ports();
    next_queue_ = next < device_->queues() ? static_cast<uint16_t>(next) : number_;
    if (receive_from(asked, buffer) != 0) {
      queue_of_[buffer.number] = asked;
      break;
    }
  }
  return buffer.count;
}

uint32_t DpdkPort::receive_from(uint16_t queue, FrameBuffer& buffer) {
  buffer.frame_room = kFrameRoom;
  rte_mbuf* frames[kAtOnce];
  uint32_t count;
  const AtMemif alone(memif_.get());
  do {
    const uint32_t room = std::min(buffer.frames_max - buffer.count, kAtOnce);
    count = rte_eth_rx_burst(device_->number(), queue, frames, static_cast<uint16_t>(room));
    add(buffer, frames, count);
  } while (count == kAtOnce);
  return buffer.count;
}

void DpdkPort::add(FrameBuffer& buffer, rte_mbuf* const* frames, uint32_t count) {
  std::vector<rte_mbuf*>& held = held_[buffer.number];
  uint64_t bytes = 0;
  uint32_t taken = 0;
  for (uint32_t i = 0; i < count; ++i) {
    rte_mbuf* const frame = frames[i];
    if (frame->nb_segs != 1) {
      counters_.receive_failed.add(1);
      rte_pktmbuf_free(frame);
      continue;
    }
    const auto* const data = rte_pktmbuf_mtod(frame, const uint8_t*);
    if (frame->data_off != RTE_PKTMBUF_HEADROOM) buffer.frame_room = 0;
    held.push_back(frame);
    buffer.add_at(static_cast<uint32_t>(data - memory_.data), frame->data_len, 0);
    bytes += frame->data_len;
    ++taken;
  }
  counters_.received.add(taken);
  counters_.received_bytes.add(bytes);
}

void DpdkPort::take_back(const FrameBuffer& buffer) {
  std::vector<rte_mbuf*>& frames = held_[buffer.number];
  if (!frames.empty()) rte_pktmbuf_free_bulk(frames.data(), static_cast<unsigned>(frames.size()));
  frames.clear();
  const uint32_t block = std::exchange(block_of_[buffer.number], kNoBlock);
  if (block == kNoBlock) return;
  // The port's own share; the device has the others.
  if (rte_mbuf_ext_refcnt_update(&blocks_[block].sharing, -1) == 0) {
    free_block(nullptr, &blocks_[block]);
  }
}

uint8_t* DpdkPort::block_data(uint32_t block) const {
  return memory_.seen + memory_.bytes - kReplyBytes + uint64_t{block} * kReplyBlockBytes;
}

// The device sends a block's frames from where they are. A frame may lie across two pages, so that
// needs pages that lie together for the device.
MutableBytes DpdkPort::reply_memory(uint32_t burst) {
  if (pages_lie_apart() && !is_on_gpu_) return {};
  for (uint32_t i = 0; i < blocks_.size(); ++i) {
    if (blocks_[i].used) continue;
    blocks_[i].used = true;
    blocks_[i].sharing = {free_block, &blocks_[i], 1};
    block_of_[burst] = i;
    return {block_data(i), kReplyBlockBytes};
  }
  return {};
}

void DpdkPort::free_block(void* /*data*/, void* block) {
  static_cast<DpdkDevice::ReplyBlock*>(block)->used = false;
}

// The request's buffer, with the reply that lies in it.
rte_mbuf* DpdkPort::take_request(uint32_t burst, const TxFrame& frame) {
  rte_mbuf* const request = std::exchange(held_[burst][frame.request], nullptr);
  request->data_off =
      static_cast<uint16_t>(in_mbufs(frame.bytes.data) - static_cast<uint8_t*>(request->buf_addr));
  return request;
}

// The device and the CPU touch both lines of it.
void DpdkPort::prefetch_request(uint32_t burst, const TxFrame& frame) const {
  if (!frame.is_beside) return;
  const rte_mbuf* const request = held_[burst][frame.request];
  rte_mbuf_prefetch_part1(const_cast<rte_mbuf*>(request));
  rte_mbuf_prefetch_part2(const_cast<rte_mbuf*>(request));
}

// Buffers for those frames that do not lie beside their requests. Returns how many it has got.
uint32_t DpdkPort::take_buffers(const TxFrame* frames, uint32_t count, rte_mbuf** buffers) {
  uint32_t wanted = 0;
  for (uint32_t i = 0; i < count; ++i) wanted += frames[i].is_beside ? 0 : 1;
  if (wanted == 0 || rte_pktmbuf_alloc_bulk(sent_, buffers, wanted) == 0) return wanted;
  uint32_t taken = 0;
  while (taken < wanted && (buffers[taken] = rte_pktmbuf_alloc(sent_)) != nullptr) ++taken;
  return taken;
}

// Puts a frame into a buffer: one of the block is sent from where it is, any other is copied.
void DpdkPort::fill_buffer(uint32_t block, const TxFrame& frame, rte_mbuf* made) {
  const Bytes bytes = frame.bytes;
  if (block != kNoBlock) {
    uint8_t* const data = in_mbufs(bytes.data);
    const auto offset = static_cast<uint64_t>(data - memory_.data);
    const bool by_data = memory_.device_address == RTE_BAD_IOVA;
    rte_mbuf_ext_refcnt_update(&blocks_[block].sharing, 1);
    rte_pktmbuf_attach_extbuf(made, data, by_data ? RTE_BAD_IOVA : memory_.device_address + offset,
                              static_cast<uint16_t>(bytes.size), &blocks_[block].sharing);
  } else {
    std::memcpy(rte_pktmbuf_mtod(made, void*), bytes.data, bytes.size);
    counters_.copied_bytes.add(bytes.size);
  }
}

// Waits a little for a full ring: a peer that takes frames frees it soon. What it does not take
// then is dropped.
uint32_t DpdkPort::transmit(uint16_t queue, rte_mbuf** frames, uint32_t count) {
  constexpr uint64_t kPatienceUs = 100;
  uint32_t sent = 0;
  uint64_t deadline_us = 0;
  while (sent < count && device_->is_started()) {
    uint16_t taken = 0;
    {
      const AtMemif alone(memif_.get());
      taken = rte_eth_tx_burst(device_->number(), queue, frames + sent,
                               static_cast<uint16_t>(count - sent));
    }
    sent += taken;
    if (taken != 0) continue;
    const uint64_t now = now_us();
    if (deadline_us == 0) deadline_us = now + kPatienceUs;
    if (now >= deadline_us) break;
    rte_pause();
  }
  if (sent < count) rte_pktmbuf_free_bulk(frames + sent, count - sent);
  return sent;
}

void DpdkPort::send(uint32_t burst, const TxFrame* frames, uint32_t count) {
  rte_mbuf* filled[kAtOnce];
  rte_mbuf* buffers[kAtOnce];
  const uint32_t block = block_of_[burst];
  for (uint32_t at = 0; at < count; at += kAtOnce) {
    const uint32_t some = std::min(count - at, kAtOnce);
    uint32_t ready = 0;
    const uint32_t buffer_count = take_buffers(frames + at, some, buffers);
    uint32_t used = 0;
    for (uint32_t i = at; i < at + some; ++i) {
      if (i + kAhead < at + some) prefetch_request(burst, frames[i + kAhead]);
      WC_ASSERT(block != kNoBlock || frames[i].bytes.size <= kFrameRoom);
      if (!frames[i].is_beside && used == buffer_count) continue;
      rte_mbuf* const frame =
          frames[i].is_beside ? take_request(burst, frames[i]) : buffers[used++];
      if (!frames[i].is_beside) fill_buffer(block, frames[i], frame);
      frame->data_len = static_cast<uint16_t>(frames[i].bytes.size);
      frame->pkt_len = frame->data_len;
      filled[ready++] = frame;
    }
    const uint32_t sent = transmit(queue_of_[burst], filled, ready);
    counters_.sent.add(sent);
    counters_.send_failed.add(some - sent);
    uint64_t bytes = 0;
    for (uint32_t i = at; i < at + sent; ++i) bytes += frames[i].bytes.size;
    counters_.sent_bytes.add(bytes);
  }
}

void DpdkPort::pass_on(const MutableBytes* frames, uint32_t count) {
  const TapInterface& kernel = device_->kernel();
  if (!kernel.is_open()) return;
  for (uint32_t i = 0; i < count; ++i) {
    const bool passed = kernel.write({frames[i].data, frames[i].size});
    (passed ? counters_.passed_on : counters_.pass_failed).add(1);
  }
}

// A bounded number, so that requests do not wait for the kernel's frames.
void DpdkPort::send_from_kernel() {
  for (uint32_t i = 0; i < kAtOnce; ++i) {
    rte_mbuf* frame = rte_pktmbuf_alloc(sent_);
    if (frame == nullptr) return;
    const ssize_t size = device_->kernel().read(rte_pktmbuf_mtod(frame, uint8_t*), kFrameRoom);
    if (size <= 0) return rte_pktmbuf_free(frame);
    frame->data_len = static_cast<uint16_t>(size);
    frame->pkt_len = static_cast<uint32_t>(size);
    const uint32_t sent = transmit(number_, &frame, 1);
    counters_.from_kernel.add(sent);
    counters_.from_kernel_failed.add(1 - sent);
  }
}

void DpdkPort::now_and_then() {
  constexpr uint64_t kEveryUs = 100'000;
  if (number_ != 0) return device_->pause_if_asked(stopped_);
  if (now_us() < next_look_us_) return;
  next_look_us_ = now_us() + kEveryUs;
  counters_.receive_missed.add(device_->take_missed());
  device_->keep_connected(stopped_, memif_.get());
}

namespace {

std::string open_ports(const DpdkSettings& settings,
                       std::vector<std::unique_ptr<FramePort>>* ports) {
  const SignalsElsewhere signals;
  if (!settings.ring.empty()) return open_ring_ports(settings, ports);
  constexpr uint32_t kOtherMegabytes = 64;  // DPDK's own, and the rings of devices
  constexpr const char* kVirtual = "net_";  // how DPDK's names of virtual devices begin
  const uint32_t ports_count = std::min(settings.threads, settings.queues);
  const uint32_t queues = divided_up(settings.queues, ports_count);  // of a port
  const uint32_t megabytes =
      ports_count * (DpdkPort::kMegabytes + queues * DpdkPort::kQueueMegabytes);
  guard_memif();
  std::string failure =
      start_dpdk(kOtherMegabytes + megabytes, settings.device.starts_with(kVirtual));
  if (!failure.empty()) return failure;
  uint16_t number = 0;
  failure = add_dpdk_device(settings.device, &number);
  if (!failure.empty()) return failure;
  const auto device =
      std::make_shared<DpdkDevice>(number, settings.device, static_cast<uint16_t>(settings.queues),
                                   static_cast<uint16_t>(ports_count));
  failure = device->allocate(settings);
  if (failure.empty()) failure = device->open_kernel(settings);
  if (failure.empty()) failure = device->start();
  if (failure.empty()) failure = device->wait_for_link(settings.link_wait_ms);
  if (!failure.empty()) return failure;
  for (uint16_t port = 0; port < ports_count; ++port) {
    ports->push_back(std::make_unique<DpdkPort>(device, port));
  }
  return "";
}

}  // namespace
}  // namespace warpcache::io

extern "C" __attribute__((visibility("default"))) void warpcache_open_dpdk_ports(
    const warpcache::io::DpdkSettings& settings,
    std::vector<std::unique_ptr<warpcache::io::FramePort>>* ports, std::string* failure) {
  *failure = warpcache::io::open_ports(settings, ports);
}
