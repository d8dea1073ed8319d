// SPDX-License-Identifier: Apache-2.0
//
// The structs and enumerations of wc_pkg.sv, for test benches.
#pragma once

#include "testbench.h"

namespace warpcache::rtl {

enum Op : uint8_t {
  kOpNop,
  kOpEnd,
  kOpGet,
  kOpSet,
  kOpAdd,
  kOpReplace,
  kOpAppend,
  kOpPrepend,
  kOpDelete,
  kOpIncr,
  kOpDecr,
  kOpTouch,
  kOpFlush,
  kOpVersion,
  kOpNoop,
  kOpOk,
  kOpError,
};

enum Err : uint8_t {
  kErrUnknown,
  kErrFormat,
  kErrData,
  kErrExptime,
  kErrDelta,
  kErrNonnum,
  kErrUnsupported,
  kErrTooLarge,
};

enum Outcome : uint8_t {
  kOutNone,
  kOutEnd,
  kOutHit,
  kOutMiss,
  kOutStored,
  kOutNotStored,
  kOutExists,
  kOutNotFound,
  kOutDeleted,
  kOutTouched,
  kOutNumber,
  kOutOk,
  kOutVersion,
  kOutNoop,
  kOutError,
};

inline const Layout kEthCtx = {
    {"dst_mac", 48}, {"src_mac", 48}, {"vlans", 2}, {"vlan0", 32}, {"vlan1", 32}};

inline const Layout kCtx = {{"eth", 162},     {"v6", 1},           {"src_ip", 128},
                            {"dst_ip", 128},  {"address_sum", 16}, {"src_port", 16},
                            {"dst_port", 16}, {"has_checksum", 1}, {"request_id", 16}};

inline const Layout kAsker = {{"v6", 1}, {"ip", 128}, {"port", 16}, {"request_id", 16}};

inline const Layout kSorting = {{"eth_dropped", 1}, {"eth_passed", 1}, {"eth_may_change", 1},
                                {"udp_dropped", 1}, {"udp_passed", 1}, {"udp_may_change", 1},
                                {"asker", 161}};

inline const Layout kInfo = {{"size", 12}, {"lf_end", 12}};

inline const Layout kMeta = {
    {"op", 5},       {"err", 4},   {"bin", 1},     {"quiet", 1},          {"ret_cas", 1},
    {"ret_key", 1},  {"touch", 1}, {"cas_cmp", 1}, {"vivify", 1},         {"last_key", 1},
    {"own_cas", 1},  {"eod", 1},   {"opcode", 8},  {"opaque", 32},        {"flags", 32},
    {"exptime", 32}, {"cas", 64},  {"delta", 64},  {"initial_value", 64}, {"klen", 8},
    {"kbeats", 6},   {"vlen", 12}, {"vbeats", 9}};

inline const Layout kHashed = {{"op", 350}, {"row_hash", 32}, {"tag_hash", 32}};

inline const Layout kResult = {
    {"outcome", 4}, {"op", 5},       {"err", 4},  {"bin", 1},    {"quiet", 1},   {"ret_cas", 1},
    {"ret_key", 1}, {"last_key", 1}, {"eod", 1},  {"opcode", 8}, {"opaque", 32}, {"flags", 32},
    {"cas", 64},    {"number", 64},  {"klen", 8}, {"kbeats", 6}, {"vlen", 12},   {"vbeats", 9}};

inline uint64_t beats_of(uint64_t bytes) { return (bytes + 7) / 8; }
inline bool has_key(uint64_t op) { return op >= kOpGet && op <= kOpTouch; }

}  // namespace warpcache::rtl
