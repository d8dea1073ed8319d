// SPDX-License-Identifier: Apache-2.0
#include "io/frames/tap_interface.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstring>

namespace warpcache::io {
namespace {

// As in linux/ipv6.h, which does not go together with the C library's headers.
struct Ipv6Request {
  in6_addr address;
  uint32_t prefix_bits;
  int interface_index;
};

ifreq request_for(const std::string& name) {
  ifreq request = {};
  name.copy(request.ifr_name, IFNAMSIZ - 1);
  return request;
}

}  // namespace

std::string TapInterface::failed(const char* what) const {
  return "tap:" + name_ + ": " + what + ": " + std::strerror(errno);
}

std::string TapInterface::open(const std::string& name) {
  if (name.empty() || name.size() >= IFNAMSIZ) {
    return "tap:" + name + ": the name of an interface has 1 to 15 characters";
  }
  name_ = name;
  fd_.reset(::open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC));
  if (!fd_.valid()) return failed("/dev/net/tun");
  ifreq request = request_for(name);
  request.ifr_flags = IFF_TAP | IFF_NO_PI;
  if (ioctl(fd_.get(), TUNSETIFF, &request) != 0) {
    return failed(errno == EPERM ? "needs the capability CAP_NET_ADMIN" : "opening it");
  }
  const UniqueFd control(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  request = request_for(name);
  if (ioctl(control.get(), SIOCGIFHWADDR, &request) != 0) return failed("its MAC address");
  std::memcpy(mac_, request.ifr_hwaddr.sa_data, sizeof mac_);
  return "";
}

std::string TapInterface::set_mac(const uint8_t* mac) {
  const UniqueFd control(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  ifreq request = request_for(name_);
  request.ifr_hwaddr.sa_family = ARPHRD_ETHER;
  std::memcpy(request.ifr_hwaddr.sa_data, mac, sizeof mac_);
  if (ioctl(control.get(), SIOCSIFHWADDR, &request) != 0) return failed("setting its MAC address");
  std::memcpy(mac_, mac, sizeof mac_);
  return "";
}

std::string TapInterface::set_up() {
  const UniqueFd control(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  ifreq request = request_for(name_);
  if (ioctl(control.get(), SIOCGIFFLAGS, &request) != 0) return failed("its flags");
  request.ifr_flags = static_cast<short>(request.ifr_flags | IFF_UP | IFF_RUNNING);
  if (ioctl(control.get(), SIOCSIFFLAGS, &request) != 0) return failed("setting it up");
  return "";
}

std::string TapInterface::add_ipv4(const void* address, uint32_t prefix_bits) const {
  const UniqueFd control(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_in value = {};
  value.sin_family = AF_INET;
  std::memcpy(&value.sin_addr, address, sizeof value.sin_addr);
  ifreq request = request_for(name_);
  std::memcpy(&request.ifr_addr, &value, sizeof value);
  if (ioctl(control.get(), SIOCSIFADDR, &request) != 0) return failed("address");
  value.sin_addr.s_addr = htonl(prefix_bits == 0 ? 0 : ~uint32_t{0} << (32 - prefix_bits));
  std::memcpy(&request.ifr_netmask, &value, sizeof value);
  return ioctl(control.get(), SIOCSIFNETMASK, &request) == 0 ? "" : failed("netmask");
}

std::string TapInterface::add_ipv6(const void* address, uint32_t prefix_bits) const {
  const UniqueFd control(socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  Ipv6Request request = {{}, prefix_bits, static_cast<int>(if_nametoindex(name_.c_str()))};
  std::memcpy(&request.address, address, sizeof request.address);
  if (ioctl(control.get(), SIOCSIFADDR, &request) != 0) return failed("address");
  return wait_for_ipv6(request.address) ? "" : failed("using its address");
}

// The kernel lets nobody bind to the address before it has seen that the link is up, which may take
// a second, and that no other host has the address.
bool TapInterface::wait_for_ipv6(const in6_addr& address) {
  constexpr int kTries = 500;
  constexpr useconds_t kStepUs = 10'000;
  sockaddr_in6 value = {};
  value.sin6_family = AF_INET6;
  value.sin6_addr = address;
  for (int i = 0; i < kTries; ++i) {
    const UniqueFd probe(socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    if (bind(probe.get(), reinterpret_cast<const sockaddr*>(&value), sizeof value) == 0)
      return true;
    if (errno != EADDRNOTAVAIL) return false;
    (void)usleep(kStepUs);
  }
  return false;
}

std::string TapInterface::add_address(const std::string& address) {
  const size_t slash = address.find('/');
  const std::string host = address.substr(0, slash);
  in_addr ipv4;
  in6_addr ipv6;
  const bool is_ipv4 = inet_pton(AF_INET, host.c_str(), &ipv4) == 1;
  const bool is_ipv6 = inet_pton(AF_INET6, host.c_str(), &ipv6) == 1;
  uint32_t bits = 0;
  bool valid = (is_ipv4 || is_ipv6) && slash != std::string::npos;
  if (valid) {
    const char* const end = address.data() + address.size();
    const auto [read_end, error] = std::from_chars(address.data() + slash + 1, end, bits);
    valid = error == std::errc{} && read_end == end && bits <= (is_ipv4 ? 32u : 128u);
  }
  if (!valid) {
    return "tap:" + name_ + ": \"" + address +
           "\" is not an address such as 10.9.0.1/24 or fd00::1/64";
  }
  return is_ipv4 ? add_ipv4(&ipv4, bits) : add_ipv6(&ipv6, bits);
}

ssize_t TapInterface::read(uint8_t* data, uint32_t size) const {
  ssize_t got;
  do {
    got = ::read(fd_.get(), data, size);
  } while (got < 0 && errno == EINTR);
  return got < 0 && errno == EAGAIN ? 0 : got;
}

bool TapInterface::write(Bytes frame) const {
  ssize_t written;
  do {
    written = ::write(fd_.get(), frame.data, frame.size);
  } while (written < 0 && errno == EINTR);
  return written == static_cast<ssize_t>(frame.size);
}

}  // namespace warpcache::io
