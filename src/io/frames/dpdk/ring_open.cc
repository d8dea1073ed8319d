// SPDX-License-Identifier: Apache-2.0
#include "io/frames/dpdk/ring_open.h"

#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_memzone.h>

#include <algorithm>

#include "io/frames/dpdk/dpdk_eal.h"
#include "io/frames/dpdk/ring_client.h"
#include "io/frames/dpdk/ring_port.h"

namespace warpcache::io {
namespace {

constexpr const char* kZone = "warpcache_ring";
constexpr uint32_t kOtherMegabytes = 6;  // DPDK's own
constexpr uint32_t kReadyMsMax = 10'000;

std::string open_server(const DpdkSettings& settings,
                        std::vector<std::unique_ptr<FramePort>>* ports) {
  const uint32_t count = std::min(settings.threads, settings.queues);
  const auto server =
      std::make_shared<RingServer>(settings.ring, ring::Layout(settings.queues, count));
  const ring::Layout& layout = server->layout;
  std::string failure = server->door.take(settings.ring);
  if (!failure.empty()) return failure;
  const std::string prefix = shared_dpdk_prefix(settings.ring);
  const auto megabytes = static_cast<uint32_t>(layout.bytes() >> 20) + kOtherMegabytes;
  failure = start_shared_dpdk(prefix, megabytes);
  if (!failure.empty()) return failure;
  server->give_back = [prefix] { remove_shared_dpdk(prefix); };
  server->when_peer_leaves = [](pid_t process) { forget_secondary(process); };
  const rte_memzone* const zone = rte_memzone_reserve_aligned(
      kZone, layout.bytes(), SOCKET_ID_ANY, 0, static_cast<unsigned>(ring::kPage));
  if (zone == nullptr) return std::string("memory for frames: ") + rte_strerror(rte_errno);
  server->shared = static_cast<uint8_t*>(zone->addr);
  ring::Header& header = ring::Layout::header(server->shared);
  header.magic = ring::kMagic;
  header.queues = layout.queues();
  header.ports = layout.ports();
  remember_shared_dpdk(zone->addr, zone->len);
  failure = server->door.open(layout.queues(), layout.ports());
  if (!failure.empty()) return failure;
  for (uint32_t port = 0; port < count; ++port) {
    ports->push_back(std::make_unique<RingPort>(server, port));
  }
  return "";
}

std::string open_peer(const DpdkSettings& settings,
                      std::vector<std::unique_ptr<FramePort>>* ports) {
  const auto peer = std::make_shared<RingPeer>();
  peer->name = settings.ring;
  std::string failure = peer->visit.enter(settings.ring, settings.link_wait_ms);
  if (!failure.empty()) return failure;
  const RingHello& hello = peer->visit.hello();
  if (settings.queues > hello.queues) {
    return "its server has " + std::to_string(hello.queues) + " queues (--frames-queues)";
  }
  failure = join_shared_dpdk(shared_dpdk_prefix(settings.ring));
  if (!failure.empty()) return failure;
  const rte_memzone* const zone = rte_memzone_lookup(kZone);
  if (zone == nullptr) return "its server has ended";
  peer->layout = ring::Layout(hello.queues, hello.ports);
  peer->shared = static_cast<uint8_t*>(zone->addr);
  failure = await_rings(*peer, settings.queues, kReadyMsMax);
  if (!failure.empty()) return failure;
  for (uint32_t queue = 0; queue < settings.queues; ++queue) {
    ports->push_back(std::make_unique<RingClientPort>(peer, queue));
  }
  return "";
}

}  // namespace

std::string open_ring_ports(const DpdkSettings& settings,
                            std::vector<std::unique_ptr<FramePort>>* ports) {
  return settings.is_ring_peer ? open_peer(settings, ports) : open_server(settings, ports);
}

}  // namespace warpcache::io
