// SPDX-License-Identifier: Apache-2.0
#ifndef WARPCACHE_BENCH_LOAD_FRAME_WORKER_H_
#define WARPCACHE_BENCH_LOAD_FRAME_WORKER_H_

#include <netinet/in.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "io/frames/frame_port.h"
#include "load/datagram.h"
#include "load/worker.h"
#include "net/packet.h"

namespace warpcache::load {

// A thread that sends each request as a datagram in a whole Ethernet frame, through a port of
// frames. It has its share of the connections: a connection is a UDP port of the client, with
// Options::pipeline requests that are not answered yet.
class FrameWorker final : public Worker {
 public:
  // The addresses are IPv4.
  FrameWorker(const Options& options, const Keyspace& keys, Distribution* distribution,
              uint32_t index, std::atomic<bool>* stop, std::unique_ptr<io::FramePort> port,
              const sockaddr_in& client, const sockaddr_in& server);

  // Asks the server for its version until it answers. False: it does not within the time.
  [[nodiscard]] bool wait_for_server(uint32_t time_ms_max);

  void fill() override;

 private:
  // Bytes before the UDP payload.
  static constexpr uint32_t kIp = net::kEthernetHeaderSize;
  static constexpr uint32_t kUdp = kIp + net::kIpv4HeaderSize;
  static constexpr uint32_t kPayload = kUdp + net::kUdpProtocolHeaderSize;
  static constexpr uint32_t kBody = kPayload + DatagramHeader::kSize;
  static constexpr uint32_t kFrameBytesMax = 1514;
  static constexpr uint32_t kLine = 64;          // of a cache
  static constexpr uint32_t kBurst = 64;         // frames that are sent at a time
  static constexpr uint32_t kReceivedMax = 128;  // more of them would leave the L1 cache

  struct alignas(kLine) Request {
    uint64_t begin_ns;  // when it was due
    uint64_t sent_ns;
    Pending pending;
    uint32_t* ids;  // as pending.ids
    DatagramPlace place;
    uint16_t port;  // the client's
  };
  static_assert(sizeof(Request) == kLine);

  void run_closed_loop() override;
  void run_open_loop() override;
  void drain(uint64_t deadline_ns) override;
  // A burst of at most kBurst requests, in this order: take() for each, draw() for those that the
  // stream makes, send().
  uint32_t free_count() const { return free_end_ - free_begin_; }
  uint32_t room() const { return std::min(free_count(), kBurst - taken_count_); }
  Request& take(uint64_t begin_ns);
  [[nodiscard]] bool take_due();
  void take_missed();
  void draw(uint32_t first);
  void send();
  void write_frames();
  char* write_long(const Pending& pending, char* body);
  void set_payload_size(uint32_t bytes);
  uint8_t* next_frame() { return out_.data() + out_used_; }
  void add_frame(uint16_t client_port, uint32_t payload_size);
  void finish_frames();
  void send_frames();
  void receive(int timeout_ms);
  void read(Bytes frame);
  void prefetch(Bytes frame) const;
  [[nodiscard]] bool is_intact(Bytes frame, uint16_t client_port) const;
  [[nodiscard]] bool skim(Request& request, std::string_view reply);
  void read_reply(Request& request, std::string_view reply);
  uint32_t number_of(const Request& request) const {
    return static_cast<uint32_t>(&request - requests_.data());
  }
  void release(Request& request);
  void check_timeouts();

  const std::unique_ptr<io::FramePort> port_;
  // Of a request's frame with payload_size_ bytes, which most have: without port and UDP checksum.
  std::array<uint8_t, kPayload> header_ = {};
  uint32_t payload_size_ = 0;
  uint64_t ip_sum_;      // of the IP header, without its length
  uint64_t pseudo_sum_;  // of the UDP pseudo header, likewise

  const uint32_t pipeline_;
  const uint32_t id_step_;  // a power of two, not below pipeline_
  const uint32_t connections_;
  std::vector<Request> requests_;  // request r belongs to connection r / pipeline_
  std::vector<Buffer> rests_;      // the place's of each
  std::vector<uint32_t> ids_;      // the keys of each
  const uint32_t multiget_;
  // Whether each request of an operation fits into a frame, whatever its keys are.
  std::array<bool, kOperations> always_fits_;
  // A ring: the request that ended first is used first, so that all connections are in use. Its
  // size is a power of two; begin and end count on and on.
  std::vector<uint32_t> free_;
  uint32_t free_begin_ = 0;
  uint32_t free_end_;
  uint32_t free_mask_;
  std::array<Request*, kBurst> taken_;  // the burst's
  uint32_t taken_count_ = 0;
  std::vector<uint32_t> missed_;  // keys that are to be set

  // The burst's frames, one close to the other, so that they stay in the nearest cache.
  std::vector<uint8_t> out_;
  uint32_t out_used_ = 0;
  std::array<io::TxFrame, kBurst> sent_;  // their sizes are without padding
  uint32_t sent_count_ = 0;

  std::vector<uint8_t> memory_;  // for frames, if the port has none
  std::vector<net::PacketSlot> slots_;
  std::vector<uint64_t> times_;
  io::FrameBuffer buffer_;
  uint32_t check_every_;  // one reply of this number is checked whole
  uint32_t until_check_ = 0;
  uint64_t received_bytes_ = 0;  // of a burst
  uint64_t next_look_ns_ = 0;    // at what was lost
};

}  // namespace warpcache::load

#endif  // WARPCACHE_BENCH_LOAD_FRAME_WORKER_H_
