// SPDX-License-Identifier: Apache-2.0
//
// What this project has UCX do. UCX reads settings from its environment, and some of them say how
// memory is laid out that both sides use: how large the places of a queue are, a buffer, a file's
// path. UCX 1.13 does not check that the other side has the same, and who has not writes past the
// other's memory. So both sides set these here, whatever the environment says, and a client states
// that with its request for a connection, before any memory is shared: UCX's client id.
#pragma once

#include <ucp/api/ucp.h>

#include <cstdint>
#include <string>

namespace warpcache::io {

// `transports`: in place of the environment's UCX_TLS; empty: as it says. Returns the error as
// text, or "": a UCX that refuses one of the settings must not be used, since the other side relies
// on it.
std::string choose_ucx_settings(ucp_config_t* config, const std::string& transports);

// Whether the same choice leaves only TCP between processes.
bool chooses_tcp_alone(const std::string& transports);

// Sets one; UCX before 1.20 takes any name. Returns the error as text, or "".
std::string set_ucx(ucp_config_t* config, const char* name, const char* value);

// What a client states; never 0, which UCX says of one that states nothing. It differs where the
// settings differ, and between UCX's versions, whose layouts may.
uint64_t ucx_terms();

// Of UCX 1.`minor`; what ucx_terms() is made of.
constexpr uint64_t ucx_terms_of(unsigned major, unsigned minor) {
  constexpr uint64_t kName = 0x57617270'00000000;  // "Warp"
  constexpr uint64_t kSettings = 1;                // one more with each change of the settings
  return kName | kSettings << 16 | uint64_t{major & 0xff} << 8 | (minor & 0xff);
}

}  // namespace warpcache::io
