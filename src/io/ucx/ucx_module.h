// SPDX-License-Identifier: Apache-2.0
//
// Ports of active messages on UCX. UCX is needed only by who asks for such a port, so the code that
// uses it is a module that is loaded then.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "io/ucx/am_port.h"

namespace warpcache::io {

struct UcxSettings {
  std::string host;  // empty: every interface of IPv4
  uint16_t port = 0;
  uint32_t ports = 1;      // of active messages, each for one thread
  bool one_sided = false;  // AmPort::expose() will be called
  std::string transports;  // in place of UCX_TLS; empty: as that says
};

// Opens the ports and listens with the first one, which must be destroyed first: each endpoint is
// assigned to the next port. Returns the error as text, or "".
std::string open_ucx_ports(const UcxSettings& settings,
                           std::vector<std::unique_ptr<AmPort>>* ports);

inline constexpr char kUcxModule[] = "warpcached-ucx.so";

}  // namespace warpcache::io

// The module's own function of that kind; `failure` is the error or "".
extern "C" void warpcache_open_ucx_ports(const warpcache::io::UcxSettings& settings,
                                         std::vector<std::unique_ptr<warpcache::io::AmPort>>* ports,
                                         std::string* failure);
