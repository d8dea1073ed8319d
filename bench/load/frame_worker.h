// SPDX-License-Identifier: Apache-2.0
#ifndef WARPCACHE_BENCH_LOAD_FRAME_WORKER_H_
#define WARPCACHE_BENCH_LOAD_FRAME_WORKER_H_

#include <netinet/in.h>

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
  static constexpr uint32_t kFrameBytesMax = 1514;
  static constexpr uint32_t kFrameStride = 1536;  // in out_
  static constexpr uint32_t kBurst = 64;          // frames that are sent at a time
  static constexpr uint32_t kReceivedMax = 1024;

  struct Request {
    uint64_t begin_ns;  // when it was due
    uint64_t sent_ns;
    Pending pending;
    DatagramPlace place;
  };

  void run_closed_loop() override;
  void run_open_loop() override;
  void drain(uint64_t deadline_ns) override;
  [[nodiscard]] bool send_due();
  void add(uint64_t begin_ns);
  void add_missed();
  uint32_t take_request(uint64_t begin_ns);
  void write(uint32_t number);
  void set_payload_size(uint32_t bytes);
  void finish_frame(uint16_t client_port, uint32_t payload_size, uint8_t* frame);
  void send();
  void receive(int timeout_ms);
  void read(Bytes frame);
  [[nodiscard]] bool is_intact(Bytes frame, uint16_t client_port) const;
  [[nodiscard]] bool skim(Request& request, std::string_view reply);
  void read_reply(Request& request, std::string_view reply);
  void release(Request& request);
  void check_timeouts();

  const std::unique_ptr<io::FramePort> port_;
  // Of a request's frame with payload_size_ bytes, which most have: without port and UDP checksum.
  std::array<uint8_t, kPayload> header_ = {};
  uint32_t payload_size_ = 0;
  uint64_t ip_sum_;         // of the IP header, without its length
  uint64_t udp_sum_;        // of the UDP pseudo header and header, likewise
  uint64_t sized_udp_sum_;  // with it

  const uint32_t pipeline_;
  const uint32_t id_step_;         // a power of two, not below pipeline_
  std::vector<Request> requests_;  // request r belongs to connection r / pipeline_
  std::vector<uint32_t> ids_;      // the keys of each
  // A ring: the request that ended first is used first, so that all connections are in use.
  std::vector<uint32_t> free_;
  uint32_t free_begin_ = 0;
  uint32_t free_count_ = 0;
  std::vector<uint32_t> missed_;  // keys that are to be set

  std::vector<uint8_t> out_;
  std::vector<io::TxFrame> sent_;

  std::vector<uint8_t> memory_;  // for frames, if the port has none
  std::vector<net::PacketSlot> slots_;
  std::vector<uint64_t> times_;
  io::FrameBuffer buffer_;
  uint32_t check_every_;  // one reply of this number is checked whole
  uint32_t until_check_ = 0;
  uint64_t next_look_ns_ = 0;  // at what was lost
};

}  // namespace warpcache::load

#endif  // WARPCACHE_BENCH_LOAD_FRAME_WORKER_H_
