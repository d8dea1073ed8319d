// SPDX-License-Identifier: Apache-2.0
//
// A TAP interface: what the kernel sends through it can be read here, and what is written here the
// kernel receives from it. One frame a call.
#pragma once

#include <netinet/in.h>
#include <sys/types.h>

#include <cstdint>
#include <string>

#include "base/bytes.h"
#include "io/unique_fd.h"
#include "net/ethernet.h"

namespace warpcache::io {

class TapInterface {
 public:
  // Opens interface `name`, or makes it if there is none; an interface that was made is removed at
  // the end. Returns the error as text, or "".
  std::string open(const std::string& name);
  // Makes `mac`, of kMacAddressSize bytes, the interface's. REQUIRES: it is not up. As open().
  std::string set_mac(const uint8_t* mac);
  std::string set_up();
  // Adds `address`, the kernel's own, as in 10.9.0.1/24 or fd00::1/64. As open().
  std::string add_address(const std::string& address);

  bool is_open() const { return fd_.valid(); }
  int fd() const { return fd_.get(); }
  const std::string& name() const { return name_; }
  const uint8_t* mac() const { return mac_; }

  // Reads a frame, of which more than `size` bytes are cut off. Returns its size; 0: there is none;
  // -1: the interface has ended, with errno.
  ssize_t read(uint8_t* data, uint32_t size) const;
  // False: the system has refused the frame.
  bool write(Bytes frame) const;

 private:
  std::string failed(const char* what) const;
  std::string add_ipv4(const void* address, uint32_t prefix_bits) const;
  std::string add_ipv6(const void* address, uint32_t prefix_bits) const;
  static bool wait_for_ipv6(const in6_addr& address);

  UniqueFd fd_;
  std::string name_;
  uint8_t mac_[net::kMacAddressSize] = {};
};

}  // namespace warpcache::io
