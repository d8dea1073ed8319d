// SPDX-License-Identifier: Apache-2.0
#include "io/frames/dpdk/dpdk_device.h"

#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_ethdev.h>
#include <rte_memory.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <utility>

#include "base/assert.h"
#include "base/bits.h"
#include "io/frames/dpdk/dpdk_eal.h"
#include "io/frames/dpdk/dpdk_lost.h"
#include "io/frames/dpdk/dpdk_pools.h"
#include "io/frames/dpdk/memif_guard.h"
#include "io/frames/dpdk/memif_memory.h"
#include "io/frames/dpdk/polling.h"
#include "io/frames/dpdk/ring_open.h"

namespace warpcache::io {
namespace {

constexpr uint16_t kRingFrames = 1024;
constexpr auto kAnySocket = static_cast<unsigned>(SOCKET_ID_ANY);

std::string failed(const char* what, int error) {
  return std::string(what) + ": " + rte_strerror(error < 0 ? -error : error);
}

// DPDK's threads inherit that signals are for others. Its TAP device learns of frames by realtime
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
    std::string failure =
        take_memory(settings, name, received_bytes + DpdkPort::kReplyBytes, buffers);
    if (!failure.empty()) return failure;
    buffers.received =
        create_pool_in(buffers.memory, received_bytes, layout, "wc_received_" + name, count);
    if (buffers.received == nullptr) return failed("buffers for received frames", rte_errno);
    buffers.sent = rte_pktmbuf_pool_create(("wc_sent_" + name).c_str(), count, kDpdkPoolCache, 0,
                                           kDpdkBufferBytes, SOCKET_ID_ANY);
    if (buffers.sent == nullptr) return failed("buffers for replies", rte_errno);
    buffers.blocks = std::make_unique<ReplyBlocks>();
    buffers.held = std::make_unique<HeldBursts>();
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
    if (started_.exchange(false)) {
      (void)rte_eth_dev_stop(number_);
      take_lost();
    }
    started_ = rte_eth_dev_start(number_) == 0;
  }
  restarting_.store(false);
  restarted_us_ = now_us();
}

// What the driver forgets with its connection. REQUIRES: it is stopped; no port's thread uses
// buffers; no handler runs.
void DpdkDevice::take_lost() {
  for (const Buffers& buffers : buffers_) {
    std::vector<rte_mbuf*> held;
    for (const HeldBurst& burst : *buffers.held) {
      held.insert(held.end(), burst.frames.begin(), burst.frames.begin() + burst.count);
    }
    (void)free_lost_buffers(buffers.received, held);
    (void)free_lost_buffers(buffers.sent, {});
  }
  free_memif_lists();
}

// Not left early when the server stops: take_lost() may be looking at all buffers, and the port
// that restarts the device ends that soon.
void DpdkDevice::pause_if_asked() {
  constexpr useconds_t kStepUs = 100;
  if (!restarting_.load(std::memory_order_relaxed)) return;
  paused_.fetch_add(1);
  while (restarting_.load()) (void)usleep(kStepUs);
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
