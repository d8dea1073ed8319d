// SPDX-License-Identifier: Apache-2.0
#include "server/stats_source.h"

#include <algorithm>
#include <bit>
#include <string_view>
#include <utility>

#include "io/socket/accept/address_text.h"
#include "options/logging.h"
#include "protocol/version.h"

namespace warpcache::server {
namespace {

using request::Counter;
using store::StoreCounter;

constexpr uint32_t kSlotsPerPair = 32;
// In the cursor of list_connections().
constexpr uint32_t kOfMessages = 0x80000000u;
// `stats conns` names connections by descriptor; those without one by numbers above all of them.
constexpr uint64_t kMessageIds = 1'000'000'000;

// The cursor of list_connections(): above these bits the number of the worker, from 1.
constexpr uint64_t kFirstWorker = uint64_t{1} << 32;
// Connections that are listed in one step, in order.
constexpr uint32_t kSortedConnectionsMax = 512;

constexpr std::pair<admin::StatCounter, Counter> kRequestCounters[] = {
    {admin::StatCounter::kCmdGet, Counter::kCmdGet},
    {admin::StatCounter::kCmdSet, Counter::kCmdSet},
    {admin::StatCounter::kCmdTouch, Counter::kCmdTouch},
    {admin::StatCounter::kCmdMeta, Counter::kCmdMeta},
    {admin::StatCounter::kGetHits, Counter::kGetHits},
    {admin::StatCounter::kGetMisses, Counter::kGetMisses},
    {admin::StatCounter::kGetExpired, Counter::kGetExpired},
    {admin::StatCounter::kGetFlushed, Counter::kGetFlushed},
    {admin::StatCounter::kDeleteMisses, Counter::kDeleteMisses},
    {admin::StatCounter::kDeleteHits, Counter::kDeleteHits},
    {admin::StatCounter::kIncrMisses, Counter::kIncrMisses},
    {admin::StatCounter::kIncrHits, Counter::kIncrHits},
    {admin::StatCounter::kDecrMisses, Counter::kDecrMisses},
    {admin::StatCounter::kDecrHits, Counter::kDecrHits},
    {admin::StatCounter::kCasMisses, Counter::kCasMisses},
    {admin::StatCounter::kCasHits, Counter::kCasHits},
    {admin::StatCounter::kCasBadval, Counter::kCasBadval},
    {admin::StatCounter::kTouchHits, Counter::kTouchHits},
    {admin::StatCounter::kTouchMisses, Counter::kTouchMisses},
    {admin::StatCounter::kStoreTooLarge, Counter::kStoreTooLarge},
    {admin::StatCounter::kStoreNoMemory, Counter::kStoreNoMemory},
};

constexpr std::pair<admin::StatCounter, StoreCounter> kStoreCounters[] = {
    {admin::StatCounter::kTotalItems, StoreCounter::kTotalItems},
    {admin::StatCounter::kExpiredUnfetched, StoreCounter::kExpiredUnfetched},
    {admin::StatCounter::kEvictedUnfetched, StoreCounter::kEvictedUnfetched},
    {admin::StatCounter::kEvictions, StoreCounter::kEvicted},
    {admin::StatCounter::kReclaimed, StoreCounter::kReclaimed},
    {admin::StatCounter::kItemsMoved, StoreCounter::kMovedItems},
};

std::string_view text_of(Bytes bytes) {
  return {reinterpret_cast<const char*>(bytes.data), bytes.size};
}

int64_t unix_time(const store::Clock& clock, uint32_t second) { return clock.unix_start + second; }

// A stream's number in `stats conns`.
uint64_t number_of(const io::ConnectionInfo& stream) {
  return stream.fd >= 0 ? static_cast<uint64_t>(stream.fd) : kMessageIds + stream.id;
}

}  // namespace

ServerStats::ServerStats(const store::ActiveStore& store, const admin::ServerState& state,
                         const io::Acceptor& acceptor, admin::Watchers& watchers,
                         const io::TlsServer* tls, const io::Handshakes* handshakes)
    : store_(store),
      state_(state),
      acceptor_(acceptor),
      watchers_(watchers),
      tls_(tls),
      handshakes_(handshakes),
      started_at_(store->clock().now) {}

void ServerStats::add_worker(const request::Counters& counters,
                             const io::SocketTransport& transport,
                             const io::AmTransport* messages) {
  workers_.push_back({&counters, &transport, messages});
}

void ServerStats::add_udp(int fd) { udp_sockets_.push_back({fd, io::local_address_text(fd)}); }

void ServerStats::add_frames(const request::Counters& counters, const io::FramePort& port) {
  frames_.push_back({&counters, &port});
}

admin::StatsSnapshot ServerStats::snapshot() {
  admin::StatsSnapshot snapshot;
  const store::Clock clock = store_->clock();
  snapshot.version = text_of(protocol::server_version());
  snapshot.uptime_s = clock.now - started_at_;
  snapshot.unix_time = unix_time(clock, clock.now);
  add_requests(snapshot.counters);
  add_traffic(snapshot);
  add_ports(snapshot);
  if (handshakes_ != nullptr) add_handshakes(snapshot);
  if (const uint64_t denied = state_.access_denied.load(std::memory_order_relaxed); denied > 0) {
    snapshot.own.emplace_back("access_denied", denied);
  }
  if (!workers_.empty() && workers_.front().messages != nullptr) add_messages(snapshot);
  if (!frames_.empty()) add_frames_traffic(snapshot);
  add_store(snapshot);
  const admin::WatchCounts watch = watchers_.counts();
  snapshot.counters[admin::StatCounter::kWatchDropped] = watch.records_dropped;
  snapshot.counters[admin::StatCounter::kWatchWritten] = watch.records_written;
  snapshot.counters[admin::StatCounter::kWatchSkipped] = watch.lines_skipped;
  snapshot.counters[admin::StatCounter::kWatchSent] = watch.lines_sent;
  snapshot.watchers = watch.watchers;
  return snapshot;
}

void ServerStats::add_requests(admin::StatCounters& counters) const {
  const auto add = [&counters](const request::Counters& of) {
    for (const auto& [stat, counter] : kRequestCounters) counters[stat] += of.read(counter);
  };
  for (const Worker& worker : workers_) add(*worker.counters);
  for (const Frames& frames : frames_) add(*frames.counters);
  counters[admin::StatCounter::kCmdFlush] = state_.flushes.load(std::memory_order_relaxed);
  counters[admin::StatCounter::kAuthCmds] = state_.auth_commands.load(std::memory_order_relaxed);
  counters[admin::StatCounter::kAuthErrors] = state_.auth_errors.load(std::memory_order_relaxed);
}

void ServerStats::add_traffic(admin::StatsSnapshot& snapshot) const {
  admin::StatCounters& counters = snapshot.counters;
  uint64_t large_missed = 0;
  uint64_t refused = 0;
  uint64_t stalled = 0;
  uint64_t timed_out = 0;
  uint64_t cancelled = 0;
  uint64_t deferred = 0;
  uint64_t amplified = 0;
  uint64_t malformed = 0;
  uint64_t dropped = 0;
  const auto add = [&](const io::TransportCounters& traffic) {
    counters[admin::StatCounter::kBytesRead] += traffic.bytes_read.get();
    counters[admin::StatCounter::kBytesWritten] += traffic.bytes_written.get();
    counters[admin::StatCounter::kConnYields] += traffic.yields.get();
    counters[admin::StatCounter::kIdleKicks] += traffic.idle_closed.get();
    counters[admin::StatCounter::kReadBufferOom] += traffic.input_refused.get();
    counters[admin::StatCounter::kResponseObjectOom] += traffic.stalled_closed.get();
    counters[admin::StatCounter::kSslProtoErrors] += traffic.tls_errors.get();
    refused += traffic.connections_refused.get();
    stalled += traffic.stalled_closed.get();
    timed_out += traffic.stall_timeouts.get();
    cancelled += traffic.bodies_cancelled.get();
    deferred += traffic.replies_deferred.get();
    amplified += traffic.replies_amplified.get();
    malformed += traffic.datagrams_malformed.get();
    dropped += traffic.replies_dropped.get();
  };
  for (const Worker& worker : workers_) {
    large_missed += worker.counters->read(Counter::kLargeMissed);
    snapshot.connections += worker.transport->connection_count();
    snapshot.read_buffer_bytes += worker.transport->input_bytes();
    add(worker.transport->counters());
    if (worker.messages == nullptr) continue;
    snapshot.connections += worker.messages->stream_count();
    add(worker.messages->counters());
  }
  const io::AcceptCounters& accepts = acceptor_.counters();
  counters[admin::StatCounter::kTotalConnections] = accepts.accepted.get();
  counters[admin::StatCounter::kRejectedConnections] = accepts.rejected.get();
  counters[admin::StatCounter::kListenDisabled] = accepts.accept_disabled.get();
  counters[admin::StatCounter::kListenDisabledUs] = accepts.accept_disabled_us.get();
  snapshot.connection_structures = snapshot.connections;
  snapshot.accepting = acceptor_.accepting();
  snapshot.own.insert(snapshot.own.end(), {{"replies_deferred", deferred},
                                           {"connections_refused", refused + accepts.refused.get()},
                                           {"connections_stalled", stalled},
                                           {"connections_stall_timeouts", timed_out},
                                           {"large_values_cancelled", cancelled},
                                           {"large_values_missed", large_missed},
                                           {"udp_requests_malformed", malformed},
                                           {"udp_replies_amplified", amplified},
                                           {"udp_replies_dropped", dropped}});
}

// Unix sockets count as TCP.
void ServerStats::add_ports(admin::StatsSnapshot& snapshot) const {
  admin::PortTraffic tcp = {"tcp"};
  admin::PortTraffic udp = {"udp"};
  admin::PortTraffic messages = {"ucx"};
  admin::PortTraffic frames = {"frames"};
  for (const Worker& worker : workers_) {
    // Datagrams first: they are part of the others, which grow meanwhile.
    const io::TransportCounters& sockets = worker.transport->counters();
    const uint64_t datagrams_read = sockets.datagram_bytes_read.get();
    const uint64_t datagrams_written = sockets.datagram_bytes_written.get();
    udp.bytes_read += datagrams_read;
    udp.bytes_written += datagrams_written;
    tcp.bytes_read += sockets.bytes_read.get() - datagrams_read;
    tcp.bytes_written += sockets.bytes_written.get() - datagrams_written;
    if (worker.messages == nullptr) continue;
    messages.bytes_read += worker.messages->counters().bytes_read.get();
    messages.bytes_written += worker.messages->counters().bytes_written.get();
  }
  for (const Frames& port : frames_) {
    frames.bytes_read += port.port->counters().received_bytes.get();
    frames.bytes_written += port.port->counters().sent_bytes.get();
  }
  snapshot.ports = {tcp, udp, messages, frames};
}

// A connection whose handshake is under way is open for the client already.
void ServerStats::add_handshakes(admin::StatsSnapshot& snapshot) const {
  snapshot.connections += handshakes_->under_way();
  snapshot.connection_structures = snapshot.connections;
  const uint64_t refused = handshakes_->headers_refused();
  snapshot.own.emplace_back("proxy_headers_refused", refused);
  if (tls_ == nullptr) return;
  snapshot.certificate_age_s = tls_->seconds_since_load();
  snapshot.counters[admin::StatCounter::kSslNewSessions] = tls_->new_sessions();
  snapshot.counters[admin::StatCounter::kSslHandshakeErrors] =
      handshakes_->failed() - std::min(handshakes_->failed(), refused);
  snapshot.own.emplace_back("ssl_handshakes_closed", handshakes_->closed());
}

void ServerStats::add_messages(admin::StatsSnapshot& snapshot) const {
  static constexpr std::pair<const char*, io::Counter io::AmCounters::*> kNames[] = {
      {"ucx_messages_received", &io::AmCounters::messages_received},
      {"ucx_messages_sent", &io::AmCounters::messages_sent},
      {"ucx_fetched_bytes", &io::AmCounters::fetched_bytes},
      {"ucx_device_bytes", &io::AmCounters::device_bytes},
      {"ucx_copied_bytes", &io::AmCounters::copied_bytes},
      {"ucx_pinned_bytes", &io::AmCounters::pinned_bytes},
      {"ucx_refused", &io::AmCounters::refused},
      {"ucx_other_terms", &io::AmCounters::other_terms},
      {"ucx_broken_rules", &io::AmCounters::broken_rules},
      {"ucx_failed", &io::AmCounters::failed},
      {"ucx_restarts", &io::AmCounters::restarts},
      {"ucx_values_waited", &io::AmCounters::values_waited},
      {"ucx_values_refused", &io::AmCounters::values_refused},
  };
  uint64_t endpoints = 0;
  uint64_t opened = 0;
  uint64_t unread = 0;
  uint64_t unread_most = 0;
  for (const Worker& worker : workers_) {
    unread += worker.messages->unread_bytes();
    unread_most = std::max(unread_most, worker.messages->am_counters().unread_most.get());
    endpoints += worker.messages->stream_count();
    opened += worker.messages->counters().connections_opened.get();
  }
  snapshot.counters[admin::StatCounter::kTotalConnections] += opened;
  snapshot.own.emplace_back("ucx_endpoints", endpoints);
  snapshot.own.emplace_back("ucx_opened", opened);
  snapshot.own.emplace_back("ucx_client_memory", workers_[0].messages->client_memory_max());
  snapshot.own.emplace_back("ucx_unread_bytes", unread);
  snapshot.own.emplace_back("ucx_unread_most", unread_most);
  if (slots_ != nullptr) {
    snapshot.own.emplace_back("ucx_slots_filled", slots_->fills());
    snapshot.own.emplace_back("ucx_slots_dropped", slots_->drops());
  }
  for (const auto& [name, counter] : kNames) {
    uint64_t sum = 0;
    for (const Worker& worker : workers_) sum += (worker.messages->am_counters().*counter).get();
    snapshot.own.emplace_back(name, sum);
  }
}

void ServerStats::add_frames_traffic(admin::StatsSnapshot& snapshot) const {
  static constexpr std::pair<const char*, io::Counter io::FrameCounters::*> kFrameCounters[] = {
      {"frames_received", &io::FrameCounters::received},
      {"frames_receive_failed", &io::FrameCounters::receive_failed},
      {"frames_receive_missed", &io::FrameCounters::receive_missed},
      {"frames_requests", &io::FrameCounters::requests},
      {"frames_malformed", &io::FrameCounters::malformed},
      {"frames_not_for_us", &io::FrameCounters::not_for_us},
      {"frames_truncated", &io::FrameCounters::truncated},
      {"frames_bad_checksum", &io::FrameCounters::bad_checksum},
      {"frames_fragments", &io::FrameCounters::fragments},
      {"frames_unsupported", &io::FrameCounters::unsupported},
      {"frames_passed_on", &io::FrameCounters::passed_on},
      {"frames_pass_failed", &io::FrameCounters::pass_failed},
      {"frames_from_kernel", &io::FrameCounters::from_kernel},
      {"frames_from_kernel_failed", &io::FrameCounters::from_kernel_failed},
      {"frames_sent", &io::FrameCounters::sent},
      {"frames_send_failed", &io::FrameCounters::send_failed},
      {"frames_replies_dropped", &io::FrameCounters::replies_dropped},
      {"frames_replies_amplified", &io::FrameCounters::replies_amplified},
      {"frames_copied_bytes", &io::FrameCounters::copied_bytes},
  };
  for (const Frames& frames : frames_) {
    const io::FrameCounters& traffic = frames.port->counters();
    snapshot.counters[admin::StatCounter::kBytesRead] += traffic.received_bytes.get();
    snapshot.counters[admin::StatCounter::kBytesWritten] += traffic.sent_bytes.get();
  }
  for (const auto& [name, counter] : kFrameCounters) {
    uint64_t sum = 0;
    for (const Frames& frames : frames_) sum += (frames.port->counters().*counter).get();
    snapshot.own.emplace_back(name, sum);
  }
}

void ServerStats::add_store(admin::StatsSnapshot& snapshot) const {
  const store::StoreStats stats = store_->stats();
  for (const auto& [stat, counter] : kStoreCounters) snapshot.counters[stat] = stats.get(counter);
  snapshot.memory_limit_bytes = state_.memory_limit_bytes.load(std::memory_order_relaxed);
  snapshot.items = stats.get(StoreCounter::kItems);
  snapshot.item_bytes = stats.get(StoreCounter::kBytes);
  snapshot.walk_places = stats.index_pairs;
  const uint64_t slots = stats.index_pairs * kSlotsPerPair;
  snapshot.hash_power = slots == 0 ? 0 : static_cast<uint32_t>(std::bit_width(slots)) - 1;
  snapshot.hash_bytes = stats.index_bytes;
  snapshot.segment_bytes = stats.segment_size;
  snapshot.segments_used = stats.used_bytes / stats.segment_size;
  snapshot.segments_free = stats.free_segments;
  snapshot.own.insert(snapshot.own.end(),
                      {{"segments_pinned", stats.pinned_segments},
                       {"segments_reserved", stats.reserved_segments},
                       {"segments_limbo", stats.retired_segments},
                       {"index_splits", stats.get(StoreCounter::kSplits)},
                       {"cmd_flush_prefix", state_.prefix_flushes.load(std::memory_order_relaxed)},
                       {"flushed_prefixes", stats.flushed_prefixes}});
}

admin::SettingsSnapshot ServerStats::settings() {
  admin::SettingsSnapshot settings;
  settings.memory_limit_bytes = state_.memory_limit_bytes.load(std::memory_order_relaxed);
  settings.verbosity = log_verbosity();
  settings.oldest_live_s = state_.flushed_at_s.load(std::memory_order_relaxed);
  return settings;
}

bool ServerStats::nic_cache(const admin::StatsEmit& emit) {
  if (nic_cache_ != nullptr) nic_cache_->stats(emit);
  return nic_cache_ != nullptr;
}

// The cursor is 0 for the listeners. After that its high half is the worker's number + 1, its low
// half the place in that worker's table: of sockets, or with kOfMessages of messages.
void ServerStats::list_connections(
    uint64_t& cursor, const std::function<void(const admin::ConnectionSnapshot&)>& visit) {
  if (cursor == 0) {
    for (const io::ListenerInfo& listener : acceptor_.listener_infos()) {
      admin::ConnectionSnapshot snapshot;
      snapshot.id = static_cast<uint64_t>(listener.fd);
      snapshot.address = listener.address;
      snapshot.state = "conn_listening";
      snapshot.idle_s = store_->clock().now - started_at_;  // a listener: since the start
      visit(snapshot);
    }
    for (const io::ListenerInfo& socket : udp_sockets_) {
      admin::ConnectionSnapshot snapshot;
      snapshot.id = static_cast<uint64_t>(socket.fd);
      snapshot.address = socket.address;
      snapshot.state = "conn_read";
      snapshot.idle_s = store_->clock().now - started_at_;
      snapshot.udp = true;
      visit(snapshot);
    }
    cursor = kFirstWorker;
    return;
  }
  if (cursor == kFirstWorker && list_in_order(visit)) {
    cursor = admin::kWalkEnd;
    return;
  }
  const uint64_t worker = (cursor >> 32) - 1;
  if (worker >= workers_.size()) {
    cursor = admin::kWalkEnd;
    return;
  }
  auto place = static_cast<uint32_t>(cursor);
  std::vector<io::ConnectionInfo> streams;
  bool more = false;
  if ((place & kOfMessages) != 0) {
    place &= ~kOfMessages;
    more = workers_[worker].messages->list_connections(place, streams);
    place |= kOfMessages;
  } else {
    more = workers_[worker].transport->list_connections(place, streams);
    if (!more && workers_[worker].messages != nullptr) {
      place = kOfMessages;
      more = true;
    }
  }
  for (io::ConnectionInfo& stream : streams) show_connection(stream, visit);
  cursor = more ? (worker + 1) << 32 | place : (worker + 2) << 32;
}

// Visits all connections in the order of their descriptors, as memcached lists them. False: there
// are too many for one step.
bool ServerStats::list_in_order(
    const std::function<void(const admin::ConnectionSnapshot&)>& visit) const {
  uint32_t count = 0;
  for (const Worker& worker : workers_) {
    count += worker.transport->connection_count();
    if (worker.messages != nullptr) count += worker.messages->stream_count();
  }
  if (count > kSortedConnectionsMax) return false;
  std::vector<io::ConnectionInfo> streams;
  for (const Worker& worker : workers_) {
    uint32_t place = 0;
    while (worker.transport->list_connections(place, streams)) {
      if (streams.size() > 2 * kSortedConnectionsMax) return false;
    }
    place = 0;
    while (worker.messages != nullptr && worker.messages->list_connections(place, streams)) {
      if (streams.size() > 2 * kSortedConnectionsMax) return false;
    }
  }
  std::sort(streams.begin(), streams.end(),
            [](const io::ConnectionInfo& a, const io::ConnectionInfo& b) {
              return number_of(a) < number_of(b);
            });
  for (io::ConnectionInfo& stream : streams) show_connection(stream, visit);
  return true;
}

void ServerStats::show_connection(
    io::ConnectionInfo& stream,
    const std::function<void(const admin::ConnectionSnapshot&)>& visit) {
  admin::ConnectionSnapshot snapshot;
  snapshot.id = number_of(stream);
  snapshot.address = std::move(stream.address);
  snapshot.listen_address = std::move(stream.listen_address);
  snapshot.state = stream.watching      ? "conn_watch"
                   : stream.has_request ? "conn_parse_cmd"
                   : stream.writing     ? "conn_mwrite"
                   : stream.in_body     ? "conn_nread"
                                        : "conn_read";
  snapshot.idle_s = stream.idle_s;
  visit(snapshot);
}

Status ServerStats::walk(uint64_t& cursor,
                         const std::function<void(const admin::DumpItem&)>& visit) {
  const store::Clock clock = store_->clock();
  return store_->walk(cursor, [&](const store::WalkedItem& walked) {
    const store::Item& item = *walked.item;
    admin::DumpItem dump;
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
