// SPDX-License-Identifier: Apache-2.0
//
// Runs every combination of the listed settings over a few workloads, on several threads.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "nic_cache/packed_trace.h"
#include "nic_cache/replay.h"

namespace warpcache::nic {

// The source of the requests.
struct Source {
  std::string file;          // a trace's path; empty: generated, by the rest
  std::string distribution;  // of keys, see sim::make_keys(); empty: YCSB's own for the workload
  std::string sizes = "fixed:64:448";
  uint64_t records = 1u << 20;
  uint64_t requests = 1u << 20;
  bool load = true;
  uint64_t seed = 1;
};

// The trace of a YCSB workload's letter, of a mix (see sim::Mix) or of the file; null, and *why, if
// it cannot be.
std::unique_ptr<PackedTrace> make_packed_trace(const Source& source, const std::string& workload,
                                               std::string* why);

// The size of a NIC cache, in one of several units.
struct Size {
  enum class Kind : uint8_t { kRatio, kDram, kBlockMemory };
  Kind kind = Kind::kRatio;
  double amount = 0.25;  // part of memcached's capacity, bytes of DRAM, bits of block memory
};

// Reads "1/4", "0.25", "dram:BYTES" or "bits:BITS". False if `text` is none of these.
bool parse_size(const std::string& text, Size* out);

struct Lists {
  std::vector<Size> sizes;
  std::vector<Replacement> replacements;
  std::vector<uint32_t> ways;
  std::vector<uint32_t> tag_bits;
  std::vector<Storage> storages;
  std::vector<uint32_t> slot_bytes;
  std::vector<ReadAllocate> allocates;
  std::vector<WritePolicy> writes;
  std::vector<Admission> admissions{Admission::kAll};
  std::vector<uint32_t> reply_requests;
  std::vector<HostKind> hosts;
  uint32_t block_bytes = 64;
  uint32_t inflight_max = 256;
  double host_capacity = 1;  // memcached's, in units of what the load phase stores; 0: no limit
};

// Every combination over `trace`; the last list varies fastest. Empty, and *why, if one of them is
// invalid.
std::vector<Setting> combinations(const Lists& lists, const PackedTrace& trace, std::string* why);

// Runs all settings over the trace on `threads` threads. Calls `done` from one thread at a time
// with the number of finished settings. Results are in the order of the settings.
std::vector<Result> run_all(const PackedTrace& trace, const std::vector<Setting>& settings,
                            uint32_t threads, const std::function<void(size_t)>& done);

}  // namespace warpcache::nic
