// SPDX-License-Identifier: Apache-2.0
//
// The replies of `stats` and its subcommands, with memcached's names and order. The owners of the
// values give plain snapshots; names and values go to a function, so that the text and the binary
// protocol can compose them differently. The names of things that do not exist here (slab classes,
// LRU lists, a crawler, external storage) are present too, because tools look for them, with the
// value of a memcached that does not use them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "options/options.h"

struct sockaddr;

namespace warpcache::admin {

// Receives one `STAT name value`. The views are valid only during the call.
using StatsEmit = std::function<void(std::string_view name, std::string_view value)>;

// Counters that only grow while the server runs. `stats reset` sets all of them to 0.
enum class StatCounter : uint8_t {
  kTotalConnections,
  kRejectedConnections,
  kResponseObjectOom,
  kReadBufferOom,
  kCmdGet,
  kCmdSet,
  kCmdFlush,
  kCmdTouch,
  kCmdMeta,
  kGetHits,
  kGetMisses,
  kGetExpired,
  kGetFlushed,
  kDeleteMisses,
  kDeleteHits,
  kIncrMisses,
  kIncrHits,
  kDecrMisses,
  kDecrHits,
  kCasMisses,
  kCasHits,
  kCasBadval,
  kTouchHits,
  kTouchMisses,
  kStoreTooLarge,
  kStoreNoMemory,
  kAuthCmds,
  kAuthErrors,
  kIdleKicks,
  kBytesRead,
  kBytesWritten,
  kListenDisabled,
  kListenDisabledUs,
  kConnYields,
  kMallocFails,
  kTotalItems,
  kExpiredUnfetched,
  kEvictedUnfetched,
  kEvictedActive,
  kEvictions,
  kReclaimed,
  kSegmentsCompacted,
  kItemsMoved,
  kSslNewSessions,
  kSslHandshakeErrors,
  kSslProtoErrors,
  kWatchDropped,
  kWatchWritten,
  kWatchSkipped,
  kWatchSent,
  kCount,
};

class StatCounters {
 public:
  [[nodiscard]] uint64_t operator[](StatCounter counter) const {
    return values_[static_cast<size_t>(counter)];
  }
  uint64_t& operator[](StatCounter counter) { return values_[static_cast<size_t>(counter)]; }

  // The growth since `earlier`. A counter that is below its earlier value (its owner was restarted)
  // keeps its value.
  [[nodiscard]] StatCounters since(const StatCounters& earlier) const;

 private:
  std::array<uint64_t, static_cast<size_t>(StatCounter::kCount)> values_{};
};

// What has come and gone through the ports of a kind.
struct PortTraffic {
  std::string_view name;  // static
  uint64_t bytes_read = 0;
  uint64_t bytes_written = 0;
};

// The server's values at one time. They are read one after the other, so they may be of slightly
// different times.
struct StatsSnapshot {
  StatCounters counters;

  std::string version;  // as in the reply of `version`
  uint64_t uptime_s = 0;
  int64_t unix_time = 0;
  uint64_t connections = 0;            // open now, without listeners
  uint64_t connection_structures = 0;  // allocated
  uint64_t response_bytes = 0;         // reply memory in use
  uint64_t response_objects = 0;
  uint64_t read_buffers = 0;
  uint64_t read_buffer_bytes = 0;
  uint64_t read_buffer_bytes_free = 0;
  uint64_t reserved_fds = 0;
  bool accepting = true;
  uint64_t certificate_age_s = 0;  // since the certificates of TLS were read

  uint64_t memory_limit_bytes = 0;  // -m, or the last cache_memlimit
  uint64_t items = 0;
  uint64_t item_bytes = 0;         // headers, keys and values of live items
  uint64_t oldest_item_age_s = 0;  // of a sample: see ItemAges
  uint64_t walk_places = 0;        // cursors of StatsSource::walk() are below it
  uint32_t hash_power = 0;         // log2 of the slots of the index, rounded down
  uint64_t hash_bytes = 0;
  bool hash_expanding = false;
  uint64_t watchers = 0;
  uint64_t segment_bytes = 0;  // size of one segment
  uint64_t segments_used = 0;  // segments with items, in any state
  uint64_t segments_free = 0;

  std::vector<PortTraffic> ports;

  // Values that memcached does not have, listed after the others. The names are static strings.
  std::vector<std::pair<std::string_view, uint64_t>> own;
};

// The values of `stats settings` that can change after the start.
struct SettingsSnapshot {
  uint64_t memory_limit_bytes = 0;
  uint32_t verbosity = 0;
  uint64_t oldest_live_s = 0;  // see ServerState; 0: no flush_all yet
  bool detail_enabled = false;
  bool track_sizes = false;
};

struct ConnectionSnapshot {
  uint64_t id = 0;             // unique among open connections: the descriptor, as in memcached
  std::string address;         // see address_text()
  std::string listen_address;  // empty for a listener
  std::string_view state;      // conn_listening, conn_read, conn_waiting, conn_write...: static
  uint64_t idle_s = 0;
  bool udp = false;  // a socket for datagrams, which has no connections
};

// An address in the form of `stats conns`: tcp:127.0.0.1:11211, tcp6:[::1]:11211, udp:...,
// unix:/path. The client of a Unix socket has no path; pass the listener's address for it.
[[nodiscard]] std::string address_text(const sockaddr* address, size_t address_bytes, bool udp);

// Counts items by size for `stats sizes`: in steps of 32 bytes up to 1 MB, in steps of 1 MB above.
class SizeHistogram {
 public:
  SizeHistogram();
  void add(uint64_t item_bytes);
  void emit(const StatsEmit& emit) const;

 private:
  static constexpr uint64_t kFineStep = 32;
  static constexpr uint64_t kCoarseStep = uint64_t{1} << 20;
  static constexpr size_t kFineSteps = kCoarseStep / kFineStep;
  static constexpr size_t kCoarseSteps = 1025;  // up to 1 GB and one step for an item's header

  std::vector<uint64_t> counts_;  // kFineSteps, then kCoarseSteps
};

void emit_general_stats(const Options& options, const StatsSnapshot& snapshot,
                        const StatsEmit& emit);
void emit_settings_stats(const Options& options, const SettingsSnapshot& snapshot,
                         const StatsEmit& emit);
// Presents the log as slab class 1: a page is a segment, a chunk is the log's granule of 16 bytes.
// Lists nothing while the store has no item and has evicted none.
void emit_items_stats(const StatsSnapshot& snapshot, const StatsEmit& emit);
void emit_slabs_stats(const StatsSnapshot& snapshot, const StatsEmit& emit);
void emit_connection_stats(const ConnectionSnapshot& connection, const StatsEmit& emit);

}  // namespace warpcache::admin
