// SPDX-License-Identifier: Apache-2.0
#include "io/frames/tap_port.h"

#include <poll.h>

#include <cerrno>
#include <cstring>

#include "net/neighbour.h"

namespace warpcache::io {

std::string TapPort::open(const std::string& name, const std::string& address,
                          std::unique_ptr<FramePort>* port) {
  std::unique_ptr<TapPort> made(new TapPort);
  TapInterface& interface = made->interface_;
  std::string failure = interface.open(name);
  if (failure.empty()) failure = interface.set_up();
  if (failure.empty() && !address.empty()) failure = interface.add_address(address);
  if (failure.empty()) *port = std::move(made);
  return failure;
}

void TapPort::stop() {
  stopped_.store(true);
  stop_event_.raise();
}

bool TapPort::wait(int timeout_ms) const {
  pollfd fds[2] = {{interface_.fd(), POLLIN, 0}, {stop_event_.fd(), POLLIN, 0}};
  return poll(fds, 2, timeout_ms) > 0 && fds[0].revents != 0;
}

bool TapPort::receive(FrameBuffer& buffer, int timeout_ms) {
  if (timeout_ms != 0 && !wait(timeout_ms)) return !stopped_.load();
  while (buffer.has_space() && !stopped_.load()) {
    const ssize_t size = interface_.read(buffer.next(), kFrameBytesMax);
    if (size < 0) {
      failure_ = std::string("receiving: ") + std::strerror(errno);
      return false;
    }
    if (size == 0) break;
    counters_.received.add(1);
    counters_.received_bytes.add(static_cast<uint64_t>(size));
    buffer.add(static_cast<uint32_t>(size), 0);
  }
  return !stopped_.load();
}

void TapPort::send(const TxFrame* frames, uint32_t count) {
  for (uint32_t i = 0; i < count; ++i) {
    const bool sent = interface_.write(frames[i].bytes);
    (sent ? counters_.sent : counters_.send_failed).add(1);
    if (sent) counters_.sent_bytes.add(frames[i].bytes.size);
  }
}

// Only what this machine's kernel has sent: in a bridge there are other senders, which would get
// their own packets back.
void TapPort::pass_on(const MutableBytes* frames, uint32_t count) {
  uint8_t server_mac[net::kMacAddressSize];
  std::memcpy(server_mac, interface_.mac(), sizeof server_mac);
  server_mac[5] ^= 1;
  for (uint32_t i = 0; i < count; ++i) {
    const MutableBytes& frame = frames[i];
    const Bytes read_only = {frame.data, frame.size};
    const bool from_kernel =
        frame.size >= net::kEthernetHeaderSize &&
        std::memcmp(frame.data + net::kMacAddressSize, interface_.mac(), net::kMacAddressSize) == 0;
    if (!from_kernel) continue;
    uint8_t reply[net::kNeighbourFrameMax];
    uint32_t size = net::answer_arp(read_only, server_mac, reply);
    if (size == 0) size = net::answer_solicitation(read_only, server_mac, reply);
    const Bytes back = size != 0 ? Bytes{reply, size} : read_only;
    if (size == 0 && !net::send_back(frame)) continue;
    (interface_.write(back) ? counters_.passed_on : counters_.pass_failed).add(1);
  }
}

}  // namespace warpcache::io
