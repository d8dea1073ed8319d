// SPDX-License-Identifier: Apache-2.0
#include "server/stats_source.h"

#include <bit>
#include <string_view>
#include <utility>

#include "control/logging.h"
#include "wire/version.h"

namespace warpcache::server {
namespace {

using request::Counter;
using store::StoreCounter;

constexpr uint32_t kSlotsPerPair = 32;

constexpr std::pair<StatCounter, Counter> kRequestCounters[] = {
    {StatCounter::kCmdGet, Counter::kCmdGet},
    {StatCounter::kCmdSet, Counter::kCmdSet},
    {StatCounter::kCmdTouch, Counter::kCmdTouch},
    {StatCounter::kCmdMeta, Counter::kCmdMeta},
    {StatCounter::kGetHits, Counter::kGetHits},
    {StatCounter::kGetMisses, Counter::kGetMisses},
    {StatCounter::kGetExpired, Counter::kGetExpired},
    {StatCounter::kGetFlushed, Counter::kGetFlushed},
    {StatCounter::kDeleteMisses, Counter::kDeleteMisses},
    {StatCounter::kDeleteHits, Counter::kDeleteHits},
    {StatCounter::kIncrMisses, Counter::kIncrMisses},
    {StatCounter::kIncrHits, Counter::kIncrHits},
    {StatCounter::kDecrMisses, Counter::kDecrMisses},
    {StatCounter::kDecrHits, Counter::kDecrHits},
    {StatCounter::kCasMisses, Counter::kCasMisses},
    {StatCounter::kCasHits, Counter::kCasHits},
    {StatCounter::kCasBadval, Counter::kCasBadval},
    {StatCounter::kTouchHits, Counter::kTouchHits},
    {StatCounter::kTouchMisses, Counter::kTouchMisses},
    {StatCounter::kStoreTooLarge, Counter::kStoreTooLarge},
    {StatCounter::kStoreNoMemory, Counter::kStoreNoMemory},
};

constexpr std::pair<StatCounter, StoreCounter> kStoreCounters[] = {
    {StatCounter::kTotalItems, StoreCounter::kTotalItems},
    {StatCounter::kExpiredUnfetched, StoreCounter::kExpiredUnfetched},
    {StatCounter::kEvictedUnfetched, StoreCounter::kEvictedUnfetched},
    {StatCounter::kEvictions, StoreCounter::kEvicted},
    {StatCounter::kReclaimed, StoreCounter::kReclaimed},
    {StatCounter::kItemsMoved, StoreCounter::kMovedItems},
};

std::string_view text_of(Bytes bytes) {
  return {reinterpret_cast<const char*>(bytes.data), bytes.size};
}

int64_t unix_time(const store::Clock& clock, uint32_t second) { return clock.unix_start + second; }

}  // namespace

ServerStats::ServerStats(const ActiveStore& store, const ServerState& state,
                         const transport::Acceptor& acceptor)
    : store_(store), state_(state), acceptor_(acceptor) {}

void ServerStats::add_worker(const request::Counters& counters,
                             const transport::SocketTransport& transport) {
  workers_.push_back({&counters, &transport});
}

StatsSnapshot ServerStats::snapshot() {
  StatsSnapshot snapshot;
  const store::Clock clock = store_->clock();
  snapshot.version = text_of(wire::server_version());
  snapshot.uptime_s = clock.now - store::kClockStart;
  snapshot.unix_time = unix_time(clock, clock.now);
  add_requests(snapshot.counters);
  add_traffic(snapshot);
  add_store(snapshot);
  return snapshot;
}

void ServerStats::add_requests(StatCounters& counters) const {
  for (const Worker& worker : workers_) {
    for (const auto& [stat, counter] : kRequestCounters) {
      counters[stat] += worker.counters->read(counter);
    }
  }
  counters[StatCounter::kCmdFlush] = state_.flushes.load(std::memory_order_relaxed);
  counters[StatCounter::kAuthCmds] = state_.auth_commands.load(std::memory_order_relaxed);
  counters[StatCounter::kAuthErrors] = state_.auth_errors.load(std::memory_order_relaxed);
}

void ServerStats::add_traffic(StatsSnapshot& snapshot) const {
  StatCounters& counters = snapshot.counters;
  uint64_t large_missed = 0;
  uint64_t refused = 0;
  uint64_t stalled = 0;
  uint64_t timed_out = 0;
  uint64_t deferred = 0;
  uint64_t amplified = 0;
  uint64_t malformed = 0;
  uint64_t dropped = 0;
  for (const Worker& worker : workers_) {
    large_missed += worker.counters->read(Counter::kLargeMissed);
    const transport::TransportCounters& traffic = worker.transport->counters();
    counters[StatCounter::kBytesRead] += traffic.bytes_read.get();
    counters[StatCounter::kBytesWritten] += traffic.bytes_written.get();
    counters[StatCounter::kConnYields] += traffic.yields.get();
    counters[StatCounter::kIdleKicks] += traffic.idle_closed.get();
    counters[StatCounter::kReadBufferOom] += traffic.input_refused.get();
    counters[StatCounter::kResponseObjectOom] += traffic.stalled_closed.get();
    snapshot.connections += worker.transport->connection_count();
    snapshot.read_buffer_bytes += worker.transport->input_bytes();
    refused += traffic.connections_refused.get();
    stalled += traffic.stalled_closed.get();
    timed_out += traffic.stall_timeouts.get();
    deferred += traffic.replies_deferred.get();
    amplified += traffic.replies_amplified.get();
    malformed += traffic.datagrams_malformed.get();
    dropped += traffic.replies_dropped.get();
  }
  const transport::AcceptCounters& accepts = acceptor_.counters();
  counters[StatCounter::kTotalConnections] = accepts.accepted.get();
  counters[StatCounter::kRejectedConnections] = accepts.rejected.get();
  counters[StatCounter::kListenDisabled] = accepts.accept_disabled.get();
  counters[StatCounter::kListenDisabledUs] = accepts.accept_disabled_us.get();
  snapshot.connection_structures = snapshot.connections;
  snapshot.accepting = acceptor_.accepting();
  snapshot.own.insert(snapshot.own.end(), {{"replies_deferred", deferred},
                                           {"connections_refused", refused + accepts.refused.get()},
                                           {"connections_stalled", stalled},
                                           {"connections_stall_timeouts", timed_out},
                                           {"large_values_missed", large_missed},
                                           {"udp_requests_malformed", malformed},
                                           {"udp_replies_amplified", amplified},
                                           {"udp_replies_dropped", dropped}});
}

void ServerStats::add_store(StatsSnapshot& snapshot) const {
  const store::StoreStats stats = store_->stats();
  for (const auto& [stat, counter] : kStoreCounters) snapshot.counters[stat] = stats.get(counter);
  snapshot.memory_limit_bytes = state_.memory_limit_bytes.load(std::memory_order_relaxed);
  snapshot.items = stats.get(StoreCounter::kItems);
  snapshot.item_bytes = stats.get(StoreCounter::kBytes);
  const uint64_t slots = stats.index_pairs * kSlotsPerPair;
  snapshot.hash_power = slots == 0 ? 0 : static_cast<uint32_t>(std::bit_width(slots)) - 1;
  snapshot.hash_bytes = stats.index_bytes;
  snapshot.segment_bytes = stats.segment_size;
  snapshot.segments_used = stats.used_bytes / stats.segment_size;
  snapshot.segments_free = stats.free_segments;
  snapshot.own.insert(snapshot.own.end(), {{"segments_pinned", stats.pinned_segments},
                                           {"segments_reserved", stats.reserved_segments},
                                           {"segments_limbo", stats.limbo_segments},
                                           {"index_splits", stats.get(StoreCounter::kSplits)}});
}

SettingsSnapshot ServerStats::settings() {
  SettingsSnapshot settings;
  settings.memory_limit_bytes = state_.memory_limit_bytes.load(std::memory_order_relaxed);
  settings.verbosity = log_verbosity();
  settings.oldest_live_s = state_.flushed_at_s.load(std::memory_order_relaxed);
  return settings;
}

// The cursor: 0 for the listeners, then worker + 1 in the high half and, in the low one, the place
// in that worker's table.
void ServerStats::list_connections(uint64_t& cursor,
                                   const std::function<void(const ConnectionSnapshot&)>& visit) {
  if (cursor == 0) {
    for (const transport::ListenerInfo& listener : acceptor_.listener_infos()) {
      ConnectionSnapshot snapshot;
      snapshot.id = static_cast<uint64_t>(listener.fd);
      snapshot.address = listener.address;
      snapshot.state = "conn_listening";
      snapshot.idle_s = store_->clock().now - store::kClockStart;  // listens since the start
      visit(snapshot);
    }
    cursor = uint64_t{1} << 32;
    return;
  }
  const uint64_t worker = (cursor >> 32) - 1;
  if (worker >= workers_.size()) {
    cursor = kWalkEnd;
    return;
  }
  auto place = static_cast<uint32_t>(cursor);
  std::vector<transport::ConnectionInfo> streams;
  const bool more = workers_[worker].transport->list_connections(place, streams);
  for (transport::ConnectionInfo& stream : streams) {
    ConnectionSnapshot snapshot;
    snapshot.id = static_cast<uint64_t>(stream.fd);
    snapshot.address = std::move(stream.address);
    snapshot.listen_address = std::move(stream.listen_address);
    snapshot.state = stream.in_turn   ? "conn_parse_cmd"
                     : stream.writing ? "conn_mwrite"
                     : stream.in_body ? "conn_nread"
                                      : "conn_read";
    snapshot.idle_s = stream.idle_s;
    visit(snapshot);
  }
  cursor = more ? (worker + 1) << 32 | place : (worker + 2) << 32;
}

Status ServerStats::walk(uint64_t& cursor, const std::function<void(const DumpItem&)>& visit) {
  const store::Clock clock = store_->clock();
  return store_->walk(cursor, [&](const store::WalkedItem& walked) {
    const store::Item& item = *walked.item;
    DumpItem dump;
    dump.key = text_of(walked.key);
    dump.value_bytes = item.value_size;
    dump.item_bytes = walked.footprint;
    const uint32_t expiry = item.load_expiry();
    dump.expires_unix = expiry == 0 ? 0 : unix_time(clock, expiry);
    dump.accessed_unix = unix_time(clock, item.load_access_time());
    dump.cas = item.load_cas();
    dump.client_flags = item.client_flags;
    const uint8_t bits = item.load_bits();
    dump.fetched = (bits & store::kItemFetched) != 0;
    dump.binary_key = (bits & store::kItemBinaryKey) != 0;
    visit(dump);
  });
}

}  // namespace warpcache::server
