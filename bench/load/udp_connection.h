// SPDX-License-Identifier: Apache-2.0
#ifndef WARPCACHE_BENCH_LOAD_UDP_CONNECTION_H_
#define WARPCACHE_BENCH_LOAD_UDP_CONNECTION_H_

#include <vector>

#include "load/connection.h"
#include "load/datagram.h"

namespace warpcache::load {

// A UDP socket, which belongs to somebody else: one datagram for each request. Replies come in any
// order, or never.
class UdpConnection final : public Connection {
 public:
  UdpConnection(ThreadContext* context, int socket, uint32_t places);

  bool has_space() const override { return outstanding_ < limit_; }
  [[nodiscard]] bool flush() override;
  [[nodiscard]] bool receive() override;
  [[nodiscard]] bool check_timeouts(uint64_t oldest_ns) override;

 private:
  uint32_t take_place() override;
  void write(uint32_t place) override;
  void release(uint32_t place);
  std::string_view datagram(size_t number) const;
  void read_datagram(std::string_view datagram);
  void read_reply(uint32_t place, std::string_view reply);

  const int socket_;
  uint16_t id_step_;  // a power of two, not below places_
  std::vector<DatagramPlace> state_;
  std::vector<Buffer> rests_;  // of each
  std::vector<uint32_t> free_;
  std::vector<size_t> begins_;  // of the datagrams in the context's output
};

}  // namespace warpcache::load

#endif  // WARPCACHE_BENCH_LOAD_UDP_CONNECTION_H_
