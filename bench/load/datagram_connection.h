// SPDX-License-Identifier: Apache-2.0
#ifndef WARPCACHE_BENCH_LOAD_DATAGRAM_CONNECTION_H_
#define WARPCACHE_BENCH_LOAD_DATAGRAM_CONNECTION_H_

#include <sys/socket.h>

#include <vector>

#include "load/connection.h"
#include "load/frame_link.h"

namespace warpcache::load {

// UDP: one datagram for each request, with memcached's header. Replies come in any order, or never.
class DatagramConnection : public Connection {
 public:
  bool has_space() const override { return outstanding_ < limit_; }
  [[nodiscard]] bool check_timeouts(uint64_t oldest_ns) override;

 protected:
  DatagramConnection(ThreadContext* context, int socket, uint32_t places);

  // The datagrams that are to be sent.
  size_t unsent() const { return begins_.size(); }
  std::string_view datagram(size_t number) const;
  void clear_unsent();
  // Reads a datagram of a reply. Ignores one that belongs to no outstanding request.
  void read_datagram(std::string_view datagram);

 private:
  // The state of a request, in addition to Sent.
  struct Place {
    uint16_t id = 0;  // the request id; its lower bits are the place's number
    bool used = false;
    uint16_t next_piece = 0;  // of a reply in several datagrams
    Buffer rest;              // the start of a value that ends in a later datagram
  };

  uint32_t take_place() override;
  void write(uint32_t place) override;
  void release(uint32_t place);
  void read_reply(uint32_t place, std::string_view reply);

  uint16_t id_step_;  // a power of two, not below places_
  std::vector<Place> state_;
  std::vector<uint32_t> free_;
  std::vector<size_t> begins_;  // of the datagrams in the context's output
};

// Through a socket.
class UdpConnection final : public DatagramConnection {
 public:
  UdpConnection(ThreadContext* context, int socket, uint32_t places)
      : DatagramConnection(context, socket, places) {}

  [[nodiscard]] bool flush() override;
  [[nodiscard]] bool receive() override;
};

// Through a link of frames, which receives for all its connections.
class FrameConnection final : public DatagramConnection {
 public:
  FrameConnection(ThreadContext* context, FrameLink* link, uint16_t port, uint32_t places)
      : DatagramConnection(context, -1, places), link_(link), port_(port) {}

  // Adds the requests to the link.
  [[nodiscard]] bool flush() override;
  [[nodiscard]] bool receive() override { return true; }
  // A datagram has come for this connection.
  void take(std::string_view datagram);

 private:
  FrameLink* const link_;
  const uint16_t port_;
};

}  // namespace warpcache::load

#endif  // WARPCACHE_BENCH_LOAD_DATAGRAM_CONNECTION_H_
