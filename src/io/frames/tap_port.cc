// SPDX-License-Identifier: Apache-2.0
#include "io/frames/tap_port.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstring>

#include "net/neighbour.h"

namespace warpcache::io {
namespace {

// As in linux/ipv6.h, which does not go together with the C library's headers.
struct Ipv6Request {
  in6_addr address;
  uint32_t prefix_bits;
  int interface_index;
};

std::string failed(const std::string& name, const char* what) {
  return "tap:" + name + ": " + what + ": " + std::strerror(errno);
}

ifreq request_for(const std::string& name) {
  ifreq request = {};
  name.copy(request.ifr_name, IFNAMSIZ - 1);
  return request;
}

std::string add_ipv4(const std::string& name, const in_addr& address, uint32_t prefix_bits) {
  const UniqueFd control(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_in value = {};
  value.sin_family = AF_INET;
  value.sin_addr = address;
  ifreq request = request_for(name);
  std::memcpy(&request.ifr_addr, &value, sizeof value);
  if (ioctl(control.get(), SIOCSIFADDR, &request) != 0) return failed(name, "address");
  value.sin_addr.s_addr = htonl(prefix_bits == 0 ? 0 : ~uint32_t{0} << (32 - prefix_bits));
  std::memcpy(&request.ifr_netmask, &value, sizeof value);
  return ioctl(control.get(), SIOCSIFNETMASK, &request) == 0 ? "" : failed(name, "netmask");
}

std::string add_ipv6(const std::string& name, const in6_addr& address, uint32_t prefix_bits) {
  const UniqueFd control(socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  Ipv6Request request = {address, prefix_bits, static_cast<int>(if_nametoindex(name.c_str()))};
  return ioctl(control.get(), SIOCSIFADDR, &request) == 0 ? "" : failed(name, "address");
}

// Adds `text`, an address with its number of prefix bits.
std::string add_address(const std::string& name, const std::string& text) {
  const size_t slash = text.find('/');
  const std::string host = text.substr(0, slash);
  in_addr ipv4;
  in6_addr ipv6;
  const bool is_ipv4 = inet_pton(AF_INET, host.c_str(), &ipv4) == 1;
  const bool is_ipv6 = inet_pton(AF_INET6, host.c_str(), &ipv6) == 1;
  uint32_t bits = 0;
  bool valid = (is_ipv4 || is_ipv6) && slash != std::string::npos;
  if (valid) {
    const char* const end = text.data() + text.size();
    const auto [read_end, error] = std::from_chars(text.data() + slash + 1, end, bits);
    valid = error == std::errc{} && read_end == end && bits <= (is_ipv4 ? 32u : 128u);
  }
  if (!valid) {
    return "tap:" + name + ": \"" + text + "\" is not an address such as 10.9.0.1/24 or fd00::1/64";
  }
  return is_ipv4 ? add_ipv4(name, ipv4, bits) : add_ipv6(name, ipv6, bits);
}

}  // namespace

std::string TapPort::open(const std::string& name, const std::string& address,
                          std::unique_ptr<FramePort>* port) {
  std::unique_ptr<TapPort> made(new TapPort);
  std::string failure = made->open_interface(name);
  if (failure.empty() && !address.empty()) failure = add_address(name, address);
  if (failure.empty()) *port = std::move(made);
  return failure;
}

std::string TapPort::open_interface(const std::string& name) {
  if (name.empty() || name.size() >= IFNAMSIZ) {
    return "tap:" + name + ": the name of an interface has 1 to 15 characters";
  }
  name_ = name;
  fd_.reset(::open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC));
  if (!fd_.valid()) return failed(name, "/dev/net/tun");
  ifreq request = request_for(name);
  request.ifr_flags = IFF_TAP | IFF_NO_PI;
  if (ioctl(fd_.get(), TUNSETIFF, &request) != 0) {
    return failed(name, errno == EPERM ? "needs the capability CAP_NET_ADMIN" : "opening it");
  }
  const UniqueFd control(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  request = request_for(name);
  if (ioctl(control.get(), SIOCGIFHWADDR, &request) != 0) return failed(name, "its MAC address");
  std::memcpy(kernel_mac_, request.ifr_hwaddr.sa_data, sizeof kernel_mac_);
  request = request_for(name);
  if (ioctl(control.get(), SIOCGIFFLAGS, &request) != 0) return failed(name, "its flags");
  request.ifr_flags = static_cast<short>(request.ifr_flags | IFF_UP | IFF_RUNNING);
  if (ioctl(control.get(), SIOCSIFFLAGS, &request) != 0) return failed(name, "setting it up");
  return "";
}

void TapPort::stop() {
  stopped_.store(true);
  stop_event_.raise();
}

bool TapPort::wait(int timeout_ms) const {
  pollfd fds[2] = {{fd_.get(), POLLIN, 0}, {stop_event_.fd(), POLLIN, 0}};
  return poll(fds, 2, timeout_ms) > 0 && fds[0].revents != 0;
}

bool TapPort::receive(FrameBuffer& buffer, int timeout_ms) {
  if (timeout_ms != 0 && !wait(timeout_ms)) return !stopped_.load();
  while (buffer.has_space() && !stopped_.load()) {
    const ssize_t size = read(fd_.get(), buffer.next(), kFrameBytesMax);
    if (size < 0 && errno == EINTR) continue;
    if (size < 0 && errno != EAGAIN) {
      failure_ = failed(name_, "receiving");
      return false;
    }
    if (size < 0) break;
    counters_.received.add(1);
    counters_.received_bytes.add(static_cast<uint64_t>(size));
    buffer.add(static_cast<uint32_t>(size), 0);
  }
  return !stopped_.load();
}

bool TapPort::write_frame(Bytes frame) {
  ssize_t written = -1;
  do {
    written = write(fd_.get(), frame.data, frame.size);
  } while (written < 0 && errno == EINTR);
  return written == static_cast<ssize_t>(frame.size);
}

void TapPort::send(const TxFrame* frames, uint32_t count) {
  for (uint32_t i = 0; i < count; ++i) {
    const bool sent = write_frame(frames[i].bytes);
    (sent ? counters_.sent : counters_.send_failed).add(1);
    if (sent) counters_.sent_bytes.add(frames[i].bytes.size);
  }
}

// Only what this machine's kernel has sent: in a bridge there are other senders, which would get
// their own packets back.
void TapPort::pass_on(const MutableBytes* frames, uint32_t count) {
  uint8_t server_mac[sizeof kernel_mac_];
  std::memcpy(server_mac, kernel_mac_, sizeof server_mac);
  server_mac[5] ^= 1;
  for (uint32_t i = 0; i < count; ++i) {
    const MutableBytes& frame = frames[i];
    const Bytes read_only = {frame.data, frame.size};
    const bool from_kernel =
        frame.size >= net::kEthernetHeaderSize &&
        std::memcmp(frame.data + net::kMacAddressSize, kernel_mac_, sizeof kernel_mac_) == 0;
    if (!from_kernel) continue;
    uint8_t reply[net::kNeighbourFrameMax];
    uint32_t size = net::answer_arp(read_only, server_mac, reply);
    if (size == 0) size = net::answer_solicitation(read_only, server_mac, reply);
    const Bytes back = size != 0 ? Bytes{reply, size} : read_only;
    if (size == 0 && !net::send_back(frame)) continue;
    (write_frame(back) ? counters_.passed_on : counters_.pass_failed).add(1);
  }
}

}  // namespace warpcache::io
