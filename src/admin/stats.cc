// SPDX-License-Identifier: Apache-2.0
#include "admin/stats.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <initializer_list>

#include "base/bits.h"

namespace warpcache::admin {
namespace {

constexpr uint64_t kGranuleBytes = 16;

// Formats values and emits them.
class Writer {
 public:
  explicit Writer(const StatsEmit& emit) : emit_(emit) {}

  void operator()(std::string_view name, uint64_t value) const {
    emit_(name, fmt::format_int(value).c_str());
  }
  void text(std::string_view name, std::string_view value) const { emit_(name, value); }
  void yes_no(std::string_view name, bool value) const { emit_(name, value ? "yes" : "no"); }
  void fraction(std::string_view name, double value, int digits) const {
    emit_(name, fmt::format("{:.{}f}", value, digits));
  }
  void seconds(std::string_view name, const timeval& value) const {
    emit_(name, fmt::format("{}.{:06}", value.tv_sec, value.tv_usec));
  }
  void zeros(std::initializer_list<std::string_view> names) const {
    for (const std::string_view name : names) emit_(name, "0");
  }

 private:
  const StatsEmit& emit_;
};

struct NamedCounter {
  std::string_view name;
  StatCounter counter;
};

constexpr NamedCounter kCommandCounters[] = {
    {"cmd_get", StatCounter::kCmdGet},
    {"cmd_set", StatCounter::kCmdSet},
    {"cmd_flush", StatCounter::kCmdFlush},
    {"cmd_touch", StatCounter::kCmdTouch},
    {"cmd_meta", StatCounter::kCmdMeta},
    {"get_hits", StatCounter::kGetHits},
    {"get_misses", StatCounter::kGetMisses},
    {"get_expired", StatCounter::kGetExpired},
    {"get_flushed", StatCounter::kGetFlushed},
    {"delete_misses", StatCounter::kDeleteMisses},
    {"delete_hits", StatCounter::kDeleteHits},
    {"incr_misses", StatCounter::kIncrMisses},
    {"incr_hits", StatCounter::kIncrHits},
    {"decr_misses", StatCounter::kDecrMisses},
    {"decr_hits", StatCounter::kDecrHits},
    {"cas_misses", StatCounter::kCasMisses},
    {"cas_hits", StatCounter::kCasHits},
    {"cas_badval", StatCounter::kCasBadval},
    {"touch_hits", StatCounter::kTouchHits},
    {"touch_misses", StatCounter::kTouchMisses},
    {"store_too_large", StatCounter::kStoreTooLarge},
    {"store_no_memory", StatCounter::kStoreNoMemory},
    {"auth_cmds", StatCounter::kAuthCmds},
    {"auth_errors", StatCounter::kAuthErrors},
};

void emit_process(const StatsSnapshot& snapshot, const Writer& write) {
  rusage usage{};
  (void)getrusage(RUSAGE_SELF, &usage);
  write("pid", static_cast<uint64_t>(getpid()));
  write("uptime", snapshot.uptime_s);
  write("time", static_cast<uint64_t>(snapshot.unix_time));
  write.text("version", snapshot.version);
  write.text("libevent", "none");
  write("pointer_size", 8 * sizeof(void*));
  write.seconds("rusage_user", usage.ru_utime);
  write.seconds("rusage_system", usage.ru_stime);
}

void emit_connections(const Options& options, const StatsSnapshot& snapshot, const Writer& write) {
  const StatCounters& counters = snapshot.counters;
  write("max_connections", options.server.connections_max);
  write("curr_connections", snapshot.connections);
  write("total_connections", counters[StatCounter::kTotalConnections]);
  if (options.server.connections_max_fast) {
    write("rejected_connections", counters[StatCounter::kRejectedConnections]);
  }
  write("connection_structures", snapshot.connection_structures);
  write("response_obj_oom", counters[StatCounter::kResponseObjectOom]);
  write("response_obj_count", snapshot.response_objects);
  write("response_obj_bytes", snapshot.response_bytes);
  write("read_buf_count", snapshot.read_buffers);
  write("read_buf_bytes", snapshot.read_buffer_bytes);
  write("read_buf_bytes_free", snapshot.read_buffer_bytes_free);
  write("read_buf_oom", counters[StatCounter::kReadBufferOom]);
  write("reserved_fds", snapshot.reserved_fds);
}

void emit_traffic(const Options& options, const StatsSnapshot& snapshot, const Writer& write) {
  const StatCounters& counters = snapshot.counters;
  if (options.server.idle_timeout_s != 0) write("idle_kicks", counters[StatCounter::kIdleKicks]);
  write("bytes_read", counters[StatCounter::kBytesRead]);
  write("bytes_written", counters[StatCounter::kBytesWritten]);
  write("limit_maxbytes", snapshot.memory_limit_bytes);
  write("accepting_conns", static_cast<uint64_t>(snapshot.accepting));
  write("listen_disabled_num", counters[StatCounter::kListenDisabled]);
  write("time_in_listen_disabled_us", counters[StatCounter::kListenDisabledUs]);
  write("threads", options.server.threads);
  write("conn_yields", counters[StatCounter::kConnYields]);
}

// Present with TLS only, as in memcached.
void emit_tls(const TlsOptions& options, const StatsSnapshot& snapshot, const Writer& write) {
  if (!options.enabled) return;
  const StatCounters& counters = snapshot.counters;
  if (options.session_cache) write("ssl_new_sessions", counters[StatCounter::kSslNewSessions]);
  write("ssl_handshake_errors", counters[StatCounter::kSslHandshakeErrors]);
  write("ssl_proto_errors", counters[StatCounter::kSslProtoErrors]);
  write("time_since_server_cert_refresh", snapshot.certificate_age_s);
}

void emit_store(const Options& options, const StatsSnapshot& snapshot, const Writer& write) {
  const StatCounters& counters = snapshot.counters;
  write("hash_power_level", snapshot.hash_power);
  write("hash_bytes", snapshot.hash_bytes);
  write("hash_is_expanding", static_cast<uint64_t>(snapshot.hash_expanding));
  write.zeros({"slab_reassign_rescues", "slab_reassign_chunk_rescues",
               "slab_reassign_evictions_nomem", "slab_reassign_inline_reclaim",
               "slab_reassign_busy_items", "slab_reassign_busy_deletes",
               "slab_reassign_busy_nomem"});
  write.text("slab_reassign_last_busy_status", "none");
  write.zeros({"slab_reassign_running", "slabs_moved", "lru_crawler_running", "lru_crawler_starts",
               "lru_maintainer_juggles"});
  write("malloc_fails", counters[StatCounter::kMallocFails]);
  write("log_worker_dropped", counters[StatCounter::kWatchDropped]);
  write("log_worker_written", counters[StatCounter::kWatchWritten]);
  write("log_watcher_skipped", counters[StatCounter::kWatchSkipped]);
  write("log_watcher_sent", counters[StatCounter::kWatchSent]);
  write("log_watchers", snapshot.watchers);
  emit_tls(options.tls, snapshot, write);
  write.zeros({"unexpected_napi_ids", "round_robin_fallback"});
  write("bytes", snapshot.item_bytes);
  write("curr_items", snapshot.items);
  write("total_items", counters[StatCounter::kTotalItems]);
  write("slab_global_page_pool", snapshot.segments_free);
  write("expired_unfetched", counters[StatCounter::kExpiredUnfetched]);
  write("evicted_unfetched", counters[StatCounter::kEvictedUnfetched]);
  write("evicted_active", counters[StatCounter::kEvictedActive]);
  write("evictions", counters[StatCounter::kEvictions]);
  write("reclaimed", counters[StatCounter::kReclaimed]);
  write.zeros({"crawler_reclaimed", "crawler_items_checked", "lrutail_reflocked", "moves_to_cold",
               "moves_to_warm", "moves_within_lru", "direct_reclaims", "lru_bumps_dropped"});
}

bool has_class(const StatsSnapshot& snapshot) {
  return snapshot.items != 0 || snapshot.counters[StatCounter::kEvictions] != 0;
}

std::string_view protocol_name(ProtocolChoice protocol) {
  switch (protocol) {
    case ProtocolChoice::kText:
      return "ascii";
    case ProtocolChoice::kBinary:
      return "binary";
    case ProtocolChoice::kAuto:
      break;
  }
  return "auto-negotiate";
}

std::string_view or_null(const std::string& text) {
  return text.empty() ? std::string_view("NULL") : text;
}

void emit_serving_settings(const Options& options, const SettingsSnapshot& snapshot,
                           const Writer& write) {
  write("maxbytes", snapshot.memory_limit_bytes);
  write("maxconns", options.server.connections_max);
  write.text("tcpport", std::to_string(options.tcp_port));
  write.text("udpport", std::to_string(options.udp_port));
  write.text("inter", or_null(options.listen_text));
  write("verbosity", snapshot.verbosity);
  write("oldest", snapshot.oldest_live_s);
  write.text("evictions", options.store.evict ? "on" : "off");
  write.text("domain_socket", or_null(options.listen.unix_path));
  write.text("umask", fmt::format("{:o}", options.listen.unix_mask));
  write.yes_no("shutdown_command", options.server.shutdown_enabled);
  write.fraction("growth_factor", options.compat.growth_factor, 2);
  write("chunk_size", options.compat.chunk_size);
  write("num_threads", options.server.threads);
  write("num_threads_per_udp", options.server.threads);
  write.text("stat_key_prefix", std::string_view(&options.stats.prefix_delimiter, 1));
  write.yes_no("detail_enabled", snapshot.detail_enabled);
  write("reqs_per_event", options.server.requests_per_event_max);
  write.yes_no("cas_enabled", options.store.use_cas);
  write("tcp_backlog", options.listen.backlog);
  write.text("binding_protocol", protocol_name(options.server.protocol));
  write.yes_no("auth_enabled_sasl", options.server.sasl);
  write.yes_no("auth_enabled_ascii", !options.server.auth_file.empty());
  write("item_size_max", options.store.item_size_max_bytes);
  write.yes_no("maxconns_fast", options.server.connections_max_fast);
  write("hashpower_init", options.store.hash_power);
}

void emit_compat_settings(const Options& options, const SettingsSnapshot& snapshot,
                          const Writer& write) {
  const CompatOptions& compat = options.compat;
  write.yes_no("slab_reassign", compat.slab_reassign);
  write("slab_automove", compat.slab_automove);
  write.fraction("slab_automove_ratio", compat.slab_automove_ratio, 2);
  write("slab_automove_window", compat.slab_automove_window);
  write("slab_chunk_max", compat.slab_chunk_max_bytes);
  write.yes_no("lru_crawler", compat.lru_crawler);
  write("lru_crawler_sleep", compat.lru_crawler_sleep_us);
  write("lru_crawler_tocrawl", compat.lru_crawler_tocrawl);
  write("tail_repair_time", compat.tail_repair_time_s);
  write.yes_no("flush_enabled", options.server.flush_enabled);
  write.yes_no("dump_enabled", options.server.dump_enabled);
  write.text("hash_algorithm", compat.hash_algorithm);
  write.yes_no("lru_maintainer_thread", compat.lru_maintainer);
  write.yes_no("lru_segmented", compat.lru_maintainer);
  write("hot_lru_pct", compat.hot_lru_pct);
  write("warm_lru_pct", compat.warm_lru_pct);
  write.fraction("hot_max_factor", compat.hot_max_factor, 2);
  write.fraction("warm_max_factor", compat.warm_max_factor, 2);
  write.yes_no("temp_lru", compat.temp_lru);
  write("temporary_ttl", compat.temporary_ttl_s);
  write("idle_timeout", options.server.idle_timeout_s);
  write("watcher_logbuf_size", uint64_t{compat.watcher_logbuf_kib} << 10);
  write("worker_logbuf_size", uint64_t{compat.worker_logbuf_kib} << 10);
  write("read_buf_mem_limit", options.server.read_buffer_bytes_max);
  write.yes_no("track_sizes", snapshot.track_sizes);
  write.yes_no("inline_ascii_response", false);
}

void emit_tls_settings(const TlsOptions& tls, const Writer& write) {
  constexpr std::string_view kVersions[] = {"tlsv1.0", "tlsv1.1", "tlsv1.2", "tlsv1.3"};
  constexpr uint64_t kVerifyFlags[] = {0, 1, 3, 7};  // the mode as memcached shows it
  const auto path = [](const std::string& text) { return text.empty() ? "(null)" : text; };
  write.yes_no("ssl_enabled", tls.enabled);
  write.text("ssl_chain_cert", path(tls.chain_cert));
  write.text("ssl_key", path(tls.key));
  write("ssl_verify_mode", kVerifyFlags[tls.verify_mode]);
  write("ssl_keyformat", tls.key_format);
  write.text("ssl_ciphers", or_null(tls.ciphers));
  write.text("ssl_ca_cert", or_null(tls.ca_cert));
  write("ssl_wbuf_size", uint64_t{tls.wbuf_kib} << 10);
  write.yes_no("ssl_session_cache", tls.session_cache);
  write.yes_no("ssl_kernel_tls", tls.kernel_tls);
  write.text("ssl_min_version", kVersions[tls.version_min]);
}

// Settings of features that Debian's memcached has and this server has not.
void emit_absent_settings(const Options& options, const Writer& write) {
  constexpr std::pair<std::string_view, std::string_view> kExternalStorage[] = {
      {"ext_item_size", "512"},     {"ext_item_age", "4294967295"}, {"ext_low_ttl", "0"},
      {"ext_recache_rate", "2000"}, {"ext_wbuf_size", "4194304"},   {"ext_compact_under", "0"},
      {"ext_drop_under", "0"},      {"ext_max_sleep", "1000000"},   {"ext_max_frag", "0.80"}};
  for (const auto& [name, value] : kExternalStorage) write.text(name, value);
  write.fraction("slab_automove_freeratio", options.compat.slab_automove_freeratio, 3);
  write.text("ext_drop_unread", "no");
}

}  // namespace

StatCounters StatCounters::since(const StatCounters& earlier) const {
  StatCounters result;
  for (size_t i = 0; i < values_.size(); ++i) {
    result.values_[i] = values_[i] - (values_[i] >= earlier.values_[i] ? earlier.values_[i] : 0);
  }
  return result;
}

void emit_general_stats(const Options& options, const StatsSnapshot& snapshot,
                        const StatsEmit& emit) {
  const Writer write(emit);
  emit_process(snapshot, write);
  emit_connections(options, snapshot, write);
  for (const auto& [name, counter] : kCommandCounters) write(name, snapshot.counters[counter]);
  emit_traffic(options, snapshot, write);
  emit_store(options, snapshot, write);
  write("segments_used", snapshot.segments_used);
  write("segments_free", snapshot.segments_free);
  write("segments_compacted", snapshot.counters[StatCounter::kSegmentsCompacted]);
  write("items_moved", snapshot.counters[StatCounter::kItemsMoved]);
  for (const auto& [name, value] : snapshot.own) write(name, value);
}

void emit_settings_stats(const Options& options, const SettingsSnapshot& snapshot,
                         const StatsEmit& emit) {
  const Writer write(emit);
  emit_serving_settings(options, snapshot, write);
  emit_compat_settings(options, snapshot, write);
  emit_absent_settings(options, write);
  emit_tls_settings(options.tls, write);
  write("num_napi_ids", options.compat.napi_ids);
  const std::string& memory_file = options.store.memory_file;
  write.text("memory_file", memory_file.empty() ? "(null)" : memory_file);
  write.text("client_flags_size", "4");
}

void emit_items_stats(const StatsSnapshot& snapshot, const StatsEmit& emit) {
  if (!has_class(snapshot)) return;
  const Writer write(emit);
  const StatCounters& counters = snapshot.counters;
  write("items:1:number", snapshot.items);
  write.zeros({"items:1:number_hot", "items:1:number_warm"});
  write("items:1:number_cold", snapshot.items);
  write.zeros({"items:1:age_hot", "items:1:age_warm"});
  write("items:1:age", snapshot.oldest_item_age_s);
  write("items:1:mem_requested", snapshot.item_bytes);
  write("items:1:evicted", counters[StatCounter::kEvictions]);
  write.zeros({"items:1:evicted_nonzero", "items:1:evicted_time"});
  write("items:1:outofmemory", counters[StatCounter::kStoreNoMemory]);
  write.zeros({"items:1:tailrepairs"});
  write("items:1:reclaimed", counters[StatCounter::kReclaimed]);
  write("items:1:expired_unfetched", counters[StatCounter::kExpiredUnfetched]);
  write("items:1:evicted_unfetched", counters[StatCounter::kEvictedUnfetched]);
  write("items:1:evicted_active", counters[StatCounter::kEvictedActive]);
  write.zeros({"items:1:crawler_reclaimed", "items:1:crawler_items_checked",
               "items:1:lrutail_reflocked", "items:1:moves_to_cold", "items:1:moves_to_warm",
               "items:1:moves_within_lru", "items:1:direct_reclaims", "items:1:hits_to_hot",
               "items:1:hits_to_warm"});
  write("items:1:hits_to_cold", counters[StatCounter::kGetHits]);
  write.zeros({"items:1:hits_to_temp"});
}

void emit_slabs_stats(const StatsSnapshot& snapshot, const StatsEmit& emit) {
  const Writer write(emit);
  const bool listed = has_class(snapshot);
  if (listed) {
    const StatCounters& counters = snapshot.counters;
    const uint64_t chunks_per_page = snapshot.segment_bytes / kGranuleBytes;
    const uint64_t total_chunks = snapshot.segments_used * chunks_per_page;
    const uint64_t used_chunks =
        std::min(total_chunks, divided_up(snapshot.item_bytes, uint64_t{kGranuleBytes}));
    write("1:chunk_size", kGranuleBytes);
    write("1:chunks_per_page", chunks_per_page);
    write("1:total_pages", snapshot.segments_used);
    write("1:total_chunks", total_chunks);
    write("1:used_chunks", used_chunks);
    write("1:free_chunks", total_chunks - used_chunks);
    write("1:free_chunks_end", 0);
    write("1:get_hits", counters[StatCounter::kGetHits]);
    write("1:cmd_set", counters[StatCounter::kCmdSet]);
    write("1:delete_hits", counters[StatCounter::kDeleteHits]);
    write("1:incr_hits", counters[StatCounter::kIncrHits]);
    write("1:decr_hits", counters[StatCounter::kDecrHits]);
    write("1:cas_hits", counters[StatCounter::kCasHits]);
    write("1:cas_badval", counters[StatCounter::kCasBadval]);
    write("1:touch_hits", counters[StatCounter::kTouchHits]);
  }
  write("active_slabs", static_cast<uint64_t>(listed));
  write("total_malloced", snapshot.segments_used * snapshot.segment_bytes);
}

void emit_connection_stats(const ConnectionSnapshot& connection, const StatsEmit& emit) {
  const std::string id = std::to_string(connection.id) + ":";
  if (connection.udp) emit(id + "UDP", "UDP");
  emit(id + "addr", connection.address);
  if (!connection.listen_address.empty()) emit(id + "listen_addr", connection.listen_address);
  emit(id + "state", connection.state);
  emit(id + "secs_since_last_cmd", std::to_string(connection.idle_s));
}

std::string address_text(const sockaddr* address, size_t address_bytes, bool udp) {
  const std::string_view protocol = udp ? "udp" : "tcp";
  char text[INET6_ADDRSTRLEN] = {};
  // Copied, because a sockaddr need not be aligned as the family's type requires.
  if (address->sa_family == AF_INET && address_bytes >= sizeof(sockaddr_in)) {
    sockaddr_in in{};
    std::memcpy(&in, address, sizeof(in));
    (void)inet_ntop(AF_INET, &in.sin_addr, text, sizeof(text));
    return fmt::format("{}:{}:{}", protocol, text, ntohs(in.sin_port));
  }
  if (address->sa_family == AF_INET6 && address_bytes >= sizeof(sockaddr_in6)) {
    sockaddr_in6 in6{};
    std::memcpy(&in6, address, sizeof(in6));
    (void)inet_ntop(AF_INET6, &in6.sin6_addr, text, sizeof(text));
    return fmt::format("{}6:[{}]:{}", protocol, text, ntohs(in6.sin6_port));
  }
  if (address->sa_family == AF_UNIX && address_bytes <= sizeof(sockaddr_un)) {
    sockaddr_un un{};
    std::memcpy(&un, address, address_bytes);
    return fmt::format("unix:{}",
                       std::string_view(un.sun_path, strnlen(un.sun_path, sizeof(un.sun_path))));
  }
  return "<unknown>";
}

SizeHistogram::SizeHistogram() : counts_(kFineSteps + kCoarseSteps) {}

void SizeHistogram::add(uint64_t item_bytes) {
  // Rounded up to a step, as in memcached: the count for 64 is of sizes from 33 to 64.
  const size_t fine = static_cast<size_t>((std::max<uint64_t>(item_bytes, 1) - 1) / kFineStep);
  const size_t coarse =
      static_cast<size_t>((std::max(item_bytes, kCoarseStep + 1) - 1) / kCoarseStep) - 1;
  const size_t place = fine < kFineSteps ? fine : kFineSteps + std::min(coarse, kCoarseSteps - 1);
  ++counts_[place];
}

void SizeHistogram::emit(const StatsEmit& emit) const {
  for (size_t i = 0; i < counts_.size(); ++i) {
    if (counts_[i] == 0) continue;
    const uint64_t size = i < kFineSteps ? (i + 1) * kFineStep : (i - kFineSteps + 2) * kCoarseStep;
    emit(std::to_string(size), std::to_string(counts_[i]));
  }
}

}  // namespace warpcache::admin
