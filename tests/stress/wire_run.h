// SPDX-License-Identifier: Apache-2.0
//
// The load of a scenario by connections to a server that runs already, at one address or several of
// one store: so clients of several transports are checked against each other. Nothing but replies
// is seen of the server. Evictions are not: its memory must be large enough. Time stands still:
// scenarios with times to live are for run_scenario(). By UDP values must fit into a datagram.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "stress/scenario.h"

namespace warpcache::stress {

struct Address {
  std::string host;  // a number
  uint16_t port = 0;
  bool is_udp = false;
};

// False: it is not HOST:PORT.
bool read_address(const std::string& text, Address* address);

// Connections go to one address after the other. The keys are deleted first. Throws
// std::runtime_error if a server does not accept a connection. REQUIRES: no other client uses the
// keys; !scenario.expiry, and threads * sessions is at most kSessionsMax less 16.
Report run_over_wire(const Scenario& scenario, const Effort& effort,
                     const std::vector<Address>& addresses);

}  // namespace warpcache::stress
