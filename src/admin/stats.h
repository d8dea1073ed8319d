// SPDX-License-Identifier: Apache-2.0
//
// What `stats` and its subcommands say, in memcached's names and order. The values come as plain
// snapshots, taken by whoever owns them; the names and values go to a function, so that the text
// and the binary protocol compose them each in their own way. Where memcached reports on something
// that does not exist here (slab classes, LRU lists, a crawler, external storage), the name is
// there all the same, since tools look for it, with the value of a server that does not use it.
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

// Takes one `STAT name value`. The views last for the call only.
using StatsEmit = std::function<void(std::string_view name, std::string_view value)>;

// Counters that only grow while the server runs. `stats reset` starts all of them anew.
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
  kCount,
};

class StatCounters {
 public:
  [[nodiscard]] uint64_t operator[](StatCounter counter) const {
    return values_[static_cast<size_t>(counter)];
  }
  uint64_t& operator[](StatCounter counter) { return values_[static_cast<size_t>(counter)]; }

  // What was added since `earlier`. A counter that is below it (its owner was restarted) reads as
  // it is.
  [[nodiscard]] StatCounters since(const StatCounters& earlier) const;

 private:
  std::array<uint64_t, static_cast<size_t>(StatCounter::kCount)> values_{};
};

// One moment of the server. Gauges are read where they live; values need not be of exactly the same
// instant.
struct StatsSnapshot {
  StatCounters counters;

  std::string version;  // as the command `version` says
  uint64_t uptime_s = 0;
  int64_t unix_time = 0;
  uint64_t connections = 0;            // open now, without listeners
  uint64_t connection_structures = 0;  // allocated
  uint64_t response_bytes = 0;         // of reply memory held now
  uint64_t response_objects = 0;
  uint64_t read_buffers = 0;
  uint64_t read_buffer_bytes = 0;
  uint64_t read_buffer_bytes_free = 0;
  uint64_t reserved_fds = 0;
  bool accepting = true;

  uint64_t memory_limit_bytes = 0;  // -m, or what cache_memlimit made of it
  uint64_t items = 0;
  uint64_t item_bytes = 0;  // live: headers, keys and values
  uint64_t oldest_item_age_s = 0;
  uint32_t hash_power = 0;  // log2 of the slots of the index, rounded down
  uint64_t hash_bytes = 0;
  bool hash_expanding = false;
  uint64_t segment_bytes = 0;  // size of one
  uint64_t segments_used = 0;  // holding items, of whatever state
  uint64_t segments_free = 0;

  // This server's own values, after memcached's: static names.
  std::vector<std::pair<std::string_view, uint64_t>> own;
};

// What of `stats settings` may have changed since the start.
struct SettingsSnapshot {
  uint64_t memory_limit_bytes = 0;
  uint32_t verbosity = 0;
  uint64_t oldest_live_s = 0;  // last server second that the last flush_all ends; 0: none
  bool detail_enabled = false;
  bool track_sizes = false;
};

struct ConnectionSnapshot {
  uint64_t id = 0;             // unique among the open ones; the descriptor, as memcached has it
  std::string address;         // see address_text()
  std::string listen_address;  // empty for a listener
  std::string_view state;      // conn_listening, conn_read, conn_waiting, conn_write...: static
  uint64_t idle_s = 0;
};

// An address as `stats conns` has it: tcp:127.0.0.1:11211, tcp6:[::1]:11211, udp:..., unix:/path.
// The path of a UNIX socket's client is that of its listener, which has none of its own: give the
// listener's address.
[[nodiscard]] std::string address_text(const sockaddr* address, size_t address_bytes, bool udp);

// Counts items by size as `stats sizes` shows them: steps of 32 bytes up to 1 MB, of 1 MB beyond.
class SizeHistogram {
 public:
  SizeHistogram();
  void add(uint64_t item_bytes);
  void emit(const StatsEmit& emit) const;

 private:
  static constexpr uint64_t kFineStep = 32;
  static constexpr uint64_t kCoarseStep = uint64_t{1} << 20;
  static constexpr size_t kFineSteps = kCoarseStep / kFineStep;
  static constexpr size_t kCoarseSteps = 1025;  // up to 1 GB, its header and one for what cannot be

  std::vector<uint64_t> counts_;  // kFineSteps, then kCoarseSteps
};

void emit_general_stats(const Options& options, const StatsSnapshot& snapshot,
                        const StatsEmit& emit);
void emit_settings_stats(const Options& options, const SettingsSnapshot& snapshot,
                         const StatsEmit& emit);
// The log of segments as one slab class, number 1: a page is a segment, a chunk the 16-byte granule
// of the log. Nothing is listed while there is no item and nothing was evicted.
void emit_items_stats(const StatsSnapshot& snapshot, const StatsEmit& emit);
void emit_slabs_stats(const StatsSnapshot& snapshot, const StatsEmit& emit);
void emit_connection_stats(const ConnectionSnapshot& connection, const StatsEmit& emit);

}  // namespace warpcache::admin
