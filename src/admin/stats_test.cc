// SPDX-License-Identifier: Apache-2.0
#include "admin/stats.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "admin/prefix_stats.h"
#include "admin/stats_command.h"

namespace warpcache::admin {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;

// The emitted names and values, in order.
struct Collected {
  std::vector<std::pair<std::string, std::string>> list;

  StatsEmit emit() {
    return
        [this](std::string_view name, std::string_view value) { list.emplace_back(name, value); };
  }
  std::vector<std::string> names() const {
    std::vector<std::string> result;
    for (const auto& [name, value] : list) result.push_back(name);
    return result;
  }
  std::string value(const std::string& name) const {
    for (const auto& [candidate, value] : list) {
      if (candidate == name) return value;
    }
    return "(absent)";
  }
};

std::vector<std::string> words(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> result;
  for (std::string word; stream >> word;) result.push_back(word);
  return result;
}

// The names in the replies of memcached 1.6.18 and 1.6.45, in their order.
const char* const kGeneralNames = R"(
    pid uptime time version libevent pointer_size rusage_user rusage_system max_connections curr_connections
    total_connections rejected_connections connection_structures response_obj_oom response_obj_count
    response_obj_bytes read_buf_count read_buf_bytes read_buf_bytes_free read_buf_oom reserved_fds cmd_get cmd_set
    cmd_flush cmd_touch cmd_meta get_hits get_misses get_expired get_flushed delete_misses delete_hits incr_misses
    incr_hits decr_misses decr_hits cas_misses cas_hits cas_badval touch_hits touch_misses store_too_large
    store_no_memory auth_cmds auth_errors bytes_read bytes_written limit_maxbytes accepting_conns listen_disabled_num
    time_in_listen_disabled_us threads conn_yields hash_power_level hash_bytes hash_is_expanding
    slab_reassign_rescues slab_reassign_chunk_rescues slab_reassign_evictions_nomem slab_reassign_inline_reclaim
    slab_reassign_busy_items slab_reassign_busy_deletes slab_reassign_busy_nomem slab_reassign_last_busy_status
    slab_reassign_running slabs_moved lru_crawler_running lru_crawler_starts lru_maintainer_juggles malloc_fails log_worker_dropped log_worker_written log_watcher_skipped
    log_watcher_sent log_watchers unexpected_napi_ids round_robin_fallback bytes curr_items total_items
    slab_global_page_pool expired_unfetched evicted_unfetched evicted_active evictions reclaimed crawler_reclaimed
    crawler_items_checked lrutail_reflocked moves_to_cold moves_to_warm moves_within_lru direct_reclaims
    lru_bumps_dropped)";

const char* const kSettingsNames = R"(
    maxbytes maxconns tcpport udpport inter verbosity oldest evictions domain_socket umask shutdown_command
    growth_factor chunk_size num_threads num_threads_per_udp stat_key_prefix detail_enabled reqs_per_event
    cas_enabled tcp_backlog binding_protocol auth_enabled_sasl auth_enabled_ascii item_size_max maxconns_fast
    hashpower_init slab_reassign slab_automove slab_automove_ratio slab_automove_window slab_chunk_max lru_crawler
    lru_crawler_sleep lru_crawler_tocrawl tail_repair_time flush_enabled dump_enabled hash_algorithm
    lru_maintainer_thread lru_segmented hot_lru_pct warm_lru_pct hot_max_factor warm_max_factor temp_lru
    temporary_ttl idle_timeout watcher_logbuf_size worker_logbuf_size read_buf_mem_limit track_sizes
    inline_ascii_response ext_item_size ext_item_age ext_low_ttl ext_recache_rate ext_wbuf_size ext_compact_under
    ext_drop_under ext_max_sleep ext_max_frag slab_automove_freeratio ext_drop_unread ssl_enabled ssl_chain_cert
    ssl_key ssl_verify_mode ssl_keyformat ssl_ciphers ssl_ca_cert ssl_wbuf_size ssl_session_cache ssl_kernel_tls
    ssl_min_version num_napi_ids memory_file client_flags_size)";

const char* const kItemsNames = R"(
    number number_hot number_warm number_cold age_hot age_warm age mem_requested evicted evicted_nonzero evicted_time
    outofmemory tailrepairs reclaimed expired_unfetched evicted_unfetched evicted_active crawler_reclaimed
    crawler_items_checked lrutail_reflocked moves_to_cold moves_to_warm moves_within_lru direct_reclaims hits_to_hot
    hits_to_warm hits_to_cold hits_to_temp)";

const char* const kSlabsNames = R"(
    chunk_size chunks_per_page total_pages total_chunks used_chunks free_chunks free_chunks_end get_hits cmd_set
    delete_hits incr_hits decr_hits cas_hits cas_badval touch_hits)";

StatsSnapshot filled_snapshot() {
  StatsSnapshot snapshot;
  for (size_t i = 0; i < static_cast<size_t>(StatCounter::kCount); ++i) {
    snapshot.counters[static_cast<StatCounter>(i)] = 1000 + i;
  }
  snapshot.version = "0.1.0";
  snapshot.uptime_s = 12;
  snapshot.unix_time = 1700000000;
  snapshot.connections = 3;
  snapshot.memory_limit_bytes = 64 << 20;
  snapshot.items = 7;
  snapshot.item_bytes = 1000;
  snapshot.oldest_item_age_s = 9;
  snapshot.hash_power = 16;
  snapshot.segment_bytes = 65536;
  snapshot.segments_used = 2;
  snapshot.segments_free = 5;
  return snapshot;
}

TEST(Stats, GeneralNamesAndOrderAreMemcacheds) {
  StatsSnapshot snapshot = filled_snapshot();
  snapshot.own = {{"batches", 42}};
  Collected collected;
  emit_general_stats(Options{}, snapshot, collected.emit());
  std::vector<std::string> expected = words(kGeneralNames);
  for (const char* const own :
       {"segments_used", "segments_free", "segments_compacted", "items_moved", "batches"}) {
    expected.emplace_back(own);
  }
  EXPECT_EQ(collected.names(), expected);
  EXPECT_EQ(collected.value("pid"), std::to_string(getpid()));
  EXPECT_EQ(collected.value("uptime"), "12");
  EXPECT_EQ(collected.value("time"), "1700000000");
  EXPECT_EQ(collected.value("version"), "0.1.0");
  EXPECT_EQ(collected.value("pointer_size"), "64");
  EXPECT_THAT(collected.value("rusage_user"),
              testing::MatchesRegex("[0-9]+\\.[0-9][0-9][0-9][0-9][0-9][0-9]"));
  EXPECT_EQ(collected.value("max_connections"), "1024");
  EXPECT_EQ(collected.value("curr_connections"), "3");
  EXPECT_EQ(collected.value("limit_maxbytes"), "67108864");
  EXPECT_EQ(collected.value("curr_items"), "7");
  EXPECT_EQ(collected.value("bytes"), "1000");
  EXPECT_EQ(collected.value("hash_power_level"), "16");
  EXPECT_EQ(collected.value("accepting_conns"), "1");
  EXPECT_EQ(collected.value("batches"), "42");
}

TEST(Stats, EveryCounterHasItsOwnName) {
  Options options;
  options.server.idle_timeout_s = 1;
  options.tls.enabled = true;
  options.tls.session_cache = true;
  Collected collected;
  emit_general_stats(options, filled_snapshot(), collected.emit());
  std::map<std::string, int> seen;
  for (const auto& [name, value] : collected.list) {
    if (value.size() == 4 && value[0] == '1' && value != "1024" && name != "bytes" && name != "pid")
      ++seen[value];
  }
  for (size_t i = 0; i < static_cast<size_t>(StatCounter::kCount); ++i) {
    const int expected = 1000 + i == 1024 ? 0 : 1;
    EXPECT_EQ(seen[std::to_string(1000 + i)], expected) << "counter " << i;
  }
  EXPECT_EQ(collected.value("cmd_get"),
            std::to_string(1000 + static_cast<size_t>(StatCounter::kCmdGet)));
  EXPECT_EQ(collected.value("evictions"),
            std::to_string(1000 + static_cast<size_t>(StatCounter::kEvictions)));
  EXPECT_EQ(collected.value("idle_kicks"),
            std::to_string(1000 + static_cast<size_t>(StatCounter::kIdleKicks)));
}

TEST(Stats, SettingsNamesAndOrderAreMemcacheds) {
  Options options;
  options.server.threads = 4;
  SettingsSnapshot settings;
  settings.memory_limit_bytes = 64 << 20;
  Collected collected;
  emit_settings_stats(options, settings, collected.emit());
  EXPECT_EQ(collected.names(), words(kSettingsNames));
  const std::map<std::string, std::string> defaults = {{"maxbytes", "67108864"},
                                                       {"maxconns", "1024"},
                                                       {"tcpport", "11211"},
                                                       {"udpport", "0"},
                                                       {"inter", "NULL"},
                                                       {"verbosity", "0"},
                                                       {"oldest", "0"},
                                                       {"evictions", "on"},
                                                       {"domain_socket", "NULL"},
                                                       {"umask", "700"},
                                                       {"shutdown_command", "no"},
                                                       {"growth_factor", "1.25"},
                                                       {"chunk_size", "48"},
                                                       {"num_threads", "4"},
                                                       {"stat_key_prefix", ":"},
                                                       {"detail_enabled", "no"},
                                                       {"reqs_per_event", "1024"},
                                                       {"cas_enabled", "yes"},
                                                       {"tcp_backlog", "1024"},
                                                       {"binding_protocol", "auto-negotiate"},
                                                       {"auth_enabled_ascii", "no"},
                                                       {"auth_enabled_sasl", "no"},
                                                       {"item_size_max", "1048576"},
                                                       {"maxconns_fast", "yes"},
                                                       {"hashpower_init", "0"},
                                                       {"slab_reassign", "yes"},
                                                       {"slab_automove", "1"},
                                                       {"slab_automove_ratio", "0.80"},
                                                       {"slab_automove_window", "10"},
                                                       {"num_napi_ids", "0"},
                                                       {"slab_chunk_max", "524288"},
                                                       {"lru_crawler", "yes"},
                                                       {"lru_crawler_sleep", "100"},
                                                       {"lru_crawler_tocrawl", "0"},
                                                       {"tail_repair_time", "0"},
                                                       {"flush_enabled", "yes"},
                                                       {"dump_enabled", "yes"},
                                                       {"hash_algorithm", "murmur3"},
                                                       {"lru_segmented", "yes"},
                                                       {"hot_lru_pct", "20"},
                                                       {"warm_lru_pct", "40"},
                                                       {"hot_max_factor", "0.20"},
                                                       {"warm_max_factor", "2.00"},
                                                       {"temp_lru", "no"},
                                                       {"temporary_ttl", "61"},
                                                       {"idle_timeout", "0"},
                                                       {"watcher_logbuf_size", "262144"},
                                                       {"worker_logbuf_size", "65536"},
                                                       {"track_sizes", "no"},
                                                       {"slab_automove_freeratio", "0.010"},
                                                       {"ssl_enabled", "no"}};
  for (const auto& [name, value] : defaults) EXPECT_EQ(collected.value(name), value) << name;
}

TEST(Stats, SettingsShowSasl) {
  Options options;
  options.server.sasl = true;
  Collected collected;
  emit_settings_stats(options, {1 << 20, 2, 77, true, true}, collected.emit());
  EXPECT_EQ(collected.value("auth_enabled_sasl"), "yes");
  EXPECT_EQ(collected.value("auth_enabled_ascii"), "no");
}

TEST(Stats, SettingsFollowOptions) {
  Options options;
  options.tcp_port = -1;
  options.udp_port = 5;
  options.listen_text = "127.0.0.1,::1";
  options.listen.unix_path = "/tmp/w";
  options.store.evict = false;
  options.store.use_cas = false;
  options.server.protocol = ProtocolChoice::kText;
  options.server.auth_file = "/tmp/auth";
  options.server.flush_enabled = false;
  options.stats.prefix_delimiter = '/';
  options.store.memory_file = "/dev/shm/items";
  Collected collected;
  emit_settings_stats(options, {1 << 20, 2, 77, true, true}, collected.emit());
  const std::map<std::string, std::string> expected = {{"tcpport", "-1"},
                                                       {"udpport", "5"},
                                                       {"inter", "127.0.0.1,::1"},
                                                       {"domain_socket", "/tmp/w"},
                                                       {"evictions", "off"},
                                                       {"cas_enabled", "no"},
                                                       {"binding_protocol", "ascii"},
                                                       {"auth_enabled_ascii", "yes"},
                                                       {"flush_enabled", "no"},
                                                       {"stat_key_prefix", "/"},
                                                       {"memory_file", "/dev/shm/items"},
                                                       {"maxbytes", "1048576"},
                                                       {"verbosity", "2"},
                                                       {"oldest", "77"},
                                                       {"detail_enabled", "yes"},
                                                       {"track_sizes", "yes"}};
  for (const auto& [name, value] : expected) EXPECT_EQ(collected.value(name), value) << name;
}

TEST(Stats, ItemsAndSlabsAreOneClass) {
  Collected items;
  emit_items_stats(filled_snapshot(), items.emit());
  std::vector<std::string> expected;
  for (const std::string& name : words(kItemsNames)) expected.push_back("items:1:" + name);
  EXPECT_EQ(items.names(), expected);
  EXPECT_EQ(items.value("items:1:number"), "7");
  EXPECT_EQ(items.value("items:1:age"), "9");
  EXPECT_EQ(items.value("items:1:mem_requested"), "1000");

  Collected slabs;
  emit_slabs_stats(filled_snapshot(), slabs.emit());
  expected.clear();
  for (const std::string& name : words(kSlabsNames)) expected.push_back("1:" + name);
  expected.insert(expected.end(), {"active_slabs", "total_malloced"});
  EXPECT_EQ(slabs.names(), expected);
  EXPECT_EQ(slabs.value("1:chunk_size"), "16");
  EXPECT_EQ(slabs.value("1:chunks_per_page"), "4096");
  EXPECT_EQ(slabs.value("1:total_pages"), "2");
  EXPECT_EQ(slabs.value("1:total_chunks"), "8192");
  EXPECT_EQ(slabs.value("1:used_chunks"), "63");
  EXPECT_EQ(slabs.value("1:free_chunks"), "8129");
  EXPECT_EQ(slabs.value("active_slabs"), "1");
  EXPECT_EQ(slabs.value("total_malloced"), "131072");
}

TEST(Stats, AnEmptyServerHasNoClass) {
  Collected items;
  emit_items_stats(StatsSnapshot{}, items.emit());
  EXPECT_THAT(items.list, IsEmpty());
  Collected slabs;
  emit_slabs_stats(StatsSnapshot{}, slabs.emit());
  EXPECT_THAT(slabs.list, ElementsAre(Pair("active_slabs", "0"), Pair("total_malloced", "0")));
}

TEST(Stats, Connections) {
  Collected collected;
  emit_connection_stats({23, "tcp:127.0.0.1:11211", "", "conn_listening", 2}, collected.emit());
  emit_connection_stats({24, "tcp:1.2.3.4:5", "tcp:1.2.3.4:1", "conn_read", 0}, collected.emit());
  EXPECT_THAT(collected.list,
              ElementsAre(Pair("23:addr", "tcp:127.0.0.1:11211"),
                          Pair("23:state", "conn_listening"), Pair("23:secs_since_last_cmd", "2"),
                          Pair("24:addr", "tcp:1.2.3.4:5"), Pair("24:listen_addr", "tcp:1.2.3.4:1"),
                          Pair("24:state", "conn_read"), Pair("24:secs_since_last_cmd", "0")));
  emit_connection_stats({25, "udp:1.2.3.4:5", "", "conn_read", 2, true}, collected.emit());
  EXPECT_EQ(collected.value("25:UDP"), "UDP");
}

TEST(Stats, Addresses) {
  sockaddr_in in{};
  in.sin_family = AF_INET;
  in.sin_port = htons(11211);
  in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT_EQ(address_text(reinterpret_cast<sockaddr*>(&in), sizeof(in), false),
            "tcp:127.0.0.1:11211");
  EXPECT_EQ(address_text(reinterpret_cast<sockaddr*>(&in), sizeof(in), true),
            "udp:127.0.0.1:11211");
  EXPECT_EQ(address_text(reinterpret_cast<sockaddr*>(&in), sizeof(in) - 1, true), "<unknown>");
  sockaddr_in6 in6{};
  in6.sin6_family = AF_INET6;
  in6.sin6_port = htons(5);
  in6.sin6_addr = in6addr_loopback;
  EXPECT_EQ(address_text(reinterpret_cast<sockaddr*>(&in6), sizeof(in6), false), "tcp6:[::1]:5");
  sockaddr_un un{};
  un.sun_family = AF_UNIX;
  std::strcpy(un.sun_path, "/run/w");
  EXPECT_EQ(address_text(reinterpret_cast<sockaddr*>(&un), sizeof(un), false), "unix:/run/w");
  EXPECT_EQ(address_text(reinterpret_cast<sockaddr*>(&un), sizeof(sa_family_t), false), "unix:");
}

TEST(Stats, SizesAreRoundedUpToTheirStep) {
  SizeHistogram histogram;
  constexpr uint64_t kMegabyte = 1 << 20;
  for (const uint64_t size :
       {uint64_t{0}, uint64_t{1}, uint64_t{32}, uint64_t{33}, uint64_t{64}, kMegabyte,
        kMegabyte + 1, 2 * kMegabyte, 2 * kMegabyte + 1, 1024 * kMegabyte, ~uint64_t{0}}) {
    histogram.add(size);
  }
  Collected collected;
  histogram.emit(collected.emit());
  EXPECT_THAT(collected.list, ElementsAre(Pair("32", "3"), Pair("64", "2"), Pair("1048576", "1"),
                                          Pair("2097152", "2"), Pair("3145728", "1"),
                                          Pair("1073741824", "1"), Pair("1075838976", "1")));
}

std::string dump(const PrefixStats& stats) {
  std::string text;
  std::optional<std::string> last;
  while (stats.dump(last, text)) {
  }
  return text;
}

TEST(PrefixStats, CountsWhatStandsBeforeTheFirstDelimiter) {
  PrefixStats stats(':', true);
  EXPECT_TRUE(stats.enabled());
  stats.record(PrefixEvent::kSet, "b:2:3");
  stats.record(PrefixEvent::kGetHit, "a:1");
  stats.record(PrefixEvent::kGet, "a:2");
  stats.record(PrefixEvent::kDelete, "a:9");
  stats.record(PrefixEvent::kGet, "plain");
  stats.record(PrefixEvent::kSet, ":x");
  EXPECT_EQ(dump(stats),
            "PREFIX  get 0 hit 0 set 1 del 0\r\n"
            "PREFIX a get 2 hit 1 set 0 del 1\r\n"
            "PREFIX b get 0 hit 0 set 1 del 0\r\n");
  stats.reset();
  EXPECT_EQ(dump(stats), "");
}

// A prefix of a binary key may have a line end.
TEST(PrefixStats, NoPrefixEndsALine) {
  PrefixStats stats(':', true);
  stats.record(PrefixEvent::kSet, "a b\r\nEND\r\n\x7f\xc3\xa9:x");
  EXPECT_EQ(dump(stats), "PREFIX a%20b%0D%0AEND%0D%0A%7F\xc3\xa9 get 0 hit 0 set 1 del 0\r\n");
}

TEST(PrefixStats, ClientsCannotGrowItWithoutEnd) {
  PrefixStats stats('/', true);
  for (size_t i = 0; i < PrefixStats::kPrefixesMax + 10; ++i) {
    stats.record(PrefixEvent::kSet, std::to_string(i) + "/x");
  }
  stats.record(PrefixEvent::kSet, "0/x");
  const std::string text = dump(stats);
  EXPECT_EQ(static_cast<size_t>(std::count(text.begin(), text.end(), '\n')),
            PrefixStats::kPrefixesMax);
  EXPECT_THAT(text, HasSubstr("PREFIX 0 get 0 hit 0 set 2 del 0\r\n"));
}

class FakeSource : public StatsSource {
 public:
  StatsSnapshot snapshot() override { return snapshot_; }
  SettingsSnapshot settings() override { return {}; }
  // One at a time.
  void list_connections(uint64_t& cursor,
                        const std::function<void(const ConnectionSnapshot&)>& visit) override {
    visit({++cursor, "tcp:x", "", "conn_listening", 0});
    if (cursor == 2) cursor = kWalkEnd;
  }
  Status walk(uint64_t& cursor, const std::function<void(const DumpItem&)>& visit) override {
    if (failed_) return Status::kNotSupported;
    for (int i = 0; i < 100 && cursor < items_.size(); ++i) visit(items_[cursor++]);
    if (cursor == items_.size()) cursor = kWalkEnd;
    return Status::kOk;
  }

  bool failed_ = false;

  StatsSnapshot snapshot_ = filled_snapshot();
  std::vector<DumpItem> items_ = {
      {.key = "k1", .value_bytes = 3, .item_bytes = 40},
      {.key = "k2", .value_bytes = 5, .item_bytes = 70, .expires_unix = 1700000000}};
};

class StatsCommandTest : public testing::Test {
 protected:
  StatsVerdict run(std::string_view words) {
    collected_ = Collected();
    text_.clear();
    std::unique_ptr<StatsWalk> walk;
    const StatsVerdict verdict = command_.run(words, collected_.emit(), walk);
    steps_ = 0;
    if (walk == nullptr) return verdict;
    do {
      ++steps_;
      last_ = walk->step(collected_.emit(), text_);
    } while (last_ == LongReply::Step::kMore);
    return verdict;
  }

  Options options_;
  FakeSource source_;
  Inspection inspection_{StatsOptions{}};
  StatsCommand command_{options_, source_, inspection_};
  Collected collected_;
  std::string text_;
  int steps_ = 0;
  LongReply::Step last_ = LongReply::Step::kMore;
};

TEST_F(StatsCommandTest, SubcommandsAndWhatFollowsThem) {
  const std::pair<const char*, const char*> expected[] = {{"", "pid"},
                                                          {"  ", "pid"},
                                                          {"settings", "maxbytes"},
                                                          {"settings x", "maxbytes"},
                                                          {" items", "items:1:number"},
                                                          {"slabs", "1:chunk_size"},
                                                          {"sizes", "sizes_status"},
                                                          {"sizes_disable", "sizes_status"}};
  for (const auto& [words, first] : expected) {
    EXPECT_EQ(run(words), StatsVerdict::kEnd) << words;
    ASSERT_FALSE(collected_.list.empty()) << words;
    EXPECT_EQ(collected_.list.front().first, first) << words;
  }
  for (const char* const unknown : {"foo", "malloc", "noreply", "Settings", "proxy"}) {
    EXPECT_EQ(run(unknown), StatsVerdict::kUnknown) << unknown;
    EXPECT_THAT(collected_.list, IsEmpty()) << unknown;
  }
  EXPECT_EQ(run("extstore"), StatsVerdict::kEnd);
  EXPECT_THAT(collected_.list, IsEmpty());
}

TEST_F(StatsCommandTest, ConnectionsAreListedStepByStep) {
  EXPECT_EQ(run("conns"), StatsVerdict::kWalk);
  EXPECT_EQ(steps_, 2);
  EXPECT_THAT(collected_.names(), ElementsAre("1:addr", "1:state", "1:secs_since_last_cmd",
                                              "2:addr", "2:state", "2:secs_since_last_cmd"));
}

TEST_F(StatsCommandTest, AWalkOverAStoreThatFailsIsNotWhole) {
  source_.failed_ = true;
  run("sizes_enable");
  for (const char* const words : {"sizes", "cachedump 1 0"}) {
    run(words);
    EXPECT_EQ(last_, LongReply::Step::kBroken) << words;
  }
}

TEST_F(StatsCommandTest, ResetStartsCountersAnewAndLeavesGauges) {
  inspection_.prefixes.record(PrefixEvent::kSet, "a:1");
  EXPECT_EQ(run("reset"), StatsVerdict::kReset);
  source_.snapshot_.counters[StatCounter::kCmdGet] += 5;
  run("");
  EXPECT_EQ(collected_.value("cmd_get"), "5");
  EXPECT_EQ(collected_.value("cmd_set"), "0");
  EXPECT_EQ(collected_.value("evictions"), "0");
  EXPECT_EQ(collected_.value("curr_items"), "7");
  run("items");
  EXPECT_EQ(collected_.value("items:1:number"), "7");
  run("slabs");
  EXPECT_EQ(collected_.value("1:cmd_set"), "0");
  run("detail dump");
  EXPECT_EQ(text_, "END\r\n");
}

TEST_F(StatsCommandTest, Detail) {
  EXPECT_EQ(run("detail on"), StatsVerdict::kOk);
  EXPECT_TRUE(inspection_.prefixes.enabled());
  run("settings");
  EXPECT_EQ(collected_.value("detail_enabled"), "yes");
  inspection_.prefixes.record(PrefixEvent::kSet, "a:1");
  EXPECT_EQ(run("detail dump"), StatsVerdict::kTextWalk);
  EXPECT_EQ(text_, "PREFIX a get 0 hit 0 set 1 del 0\r\nEND\r\n");
  EXPECT_EQ(run("detail off"), StatsVerdict::kOk);
  EXPECT_FALSE(inspection_.prefixes.enabled());
  EXPECT_EQ(run("detail"), StatsVerdict::kDetailUsage);
  EXPECT_EQ(run("detail foo"), StatsVerdict::kDetailUsage);
  options_.server.dump_enabled = false;
  EXPECT_EQ(run("detail dump"), StatsVerdict::kDetailDisabled);
}

TEST_F(StatsCommandTest, SizesWhenTheyAreTracked) {
  EXPECT_EQ(run("sizes_enable"), StatsVerdict::kEnd);
  EXPECT_THAT(collected_.list, ElementsAre(Pair("sizes_status", "enabled")));
  EXPECT_EQ(run("sizes"), StatsVerdict::kWalk);
  EXPECT_THAT(collected_.list, ElementsAre(Pair("64", "1"), Pair("96", "1")));
  run("settings");
  EXPECT_EQ(collected_.value("track_sizes"), "yes");
  options_.server.dump_enabled = false;
  run("sizes");
  EXPECT_THAT(collected_.list, ElementsAre(Pair("sizes_status", "disabled")));
  options_.server.dump_enabled = true;
  run("sizes_disable");
  run("sizes");
  EXPECT_THAT(collected_.list, ElementsAre(Pair("sizes_status", "disabled")));
}

TEST_F(StatsCommandTest, Cachedump) {
  EXPECT_EQ(run("cachedump 1 0"), StatsVerdict::kTextWalk);
  EXPECT_EQ(text_, "ITEM k1 [3 b; 0 s]\r\nITEM k2 [5 b; 1700000000 s]\r\nEND\r\n");
  EXPECT_EQ(run("cachedump 1 1"), StatsVerdict::kTextWalk);
  EXPECT_EQ(text_, "ITEM k1 [3 b; 0 s]\r\nEND\r\n");
  EXPECT_EQ(run("cachedump 2 0"), StatsVerdict::kTextWalk);
  EXPECT_EQ(text_, "END\r\n");
  EXPECT_EQ(run("cachedump"), StatsVerdict::kBadCommandLine);
  EXPECT_EQ(run("cachedump 1"), StatsVerdict::kBadCommandLine);
  EXPECT_EQ(run("cachedump x 1"), StatsVerdict::kBadFormat);
  EXPECT_EQ(run("cachedump 1 x"), StatsVerdict::kBadFormat);
  EXPECT_EQ(run("cachedump 64 1"), StatsVerdict::kIllegalSlab);
  options_.server.dump_enabled = false;
  EXPECT_EQ(run("cachedump 1 0"), StatsVerdict::kCachedumpDisabled);
}

// As in memcached: a line end in a binary key would look like the end of the line.
TEST_F(StatsCommandTest, CachedumpLeavesOutKeysOfAnyBytes) {
  source_.items_[0].key = "k\r\nEND\r\n";
  source_.items_[0].binary_key = true;
  run("cachedump 1 0");
  EXPECT_EQ(text_, "ITEM k2 [5 b; 1700000000 s]\r\nEND\r\n");
}

TEST_F(StatsCommandTest, CachedumpIsBounded) {
  const std::string key(250, 'k');
  source_.items_.assign(20000, {.key = key, .value_bytes = 1, .item_bytes = 300});
  EXPECT_EQ(run("cachedump 1 0"), StatsVerdict::kTextWalk);
  EXPECT_LE(text_.size(), StatsCommand::kCachedumpBytesMax);
  EXPECT_GT(text_.size(), StatsCommand::kCachedumpBytesMax - 300);
  EXPECT_EQ(text_.substr(text_.size() - 7), "\r\nEND\r\n");
}

TEST(StatsVerdict, Lines) {
  EXPECT_EQ(verdict_line(StatsVerdict::kEnd), "END\r\n");
  EXPECT_EQ(verdict_line(StatsVerdict::kReset), "RESET\r\n");
  EXPECT_EQ(verdict_line(StatsVerdict::kOk), "OK\r\n");
  EXPECT_EQ(verdict_line(StatsVerdict::kDetailUsage),
            "CLIENT_ERROR usage: stats detail on|off|dump\r\n");
  EXPECT_EQ(verdict_line(StatsVerdict::kBadCommandLine), "CLIENT_ERROR bad command line\r\n");
  EXPECT_EQ(verdict_line(StatsVerdict::kBadFormat), "CLIENT_ERROR bad command line format\r\n");
  EXPECT_EQ(verdict_line(StatsVerdict::kIllegalSlab), "CLIENT_ERROR Illegal slab id\r\n");
  EXPECT_EQ(verdict_line(StatsVerdict::kCachedumpDisabled),
            "CLIENT_ERROR stats cachedump not allowed\r\n");
  EXPECT_EQ(verdict_line(StatsVerdict::kUnknown), "ERROR\r\n");
}

TEST(Metadump, LineIsMemcacheds) {
  EXPECT_EQ(metadump_line({"a/b:c", 1, 65, 1795240958, 1795240858, 1, 0, false, false}),
            "key=a%2Fb%3Ac exp=1795240958 la=1795240858 cas=1 fetch=no cls=1 size=65 flags=0 \n");
  EXPECT_EQ(metadump_line({"A-z_0.~\xff", 1, 65, 0, 5, 2, 7, true, true}),
            "key=A-z_0.~%FF exp=-1 la=5 cas=2 fetch=yes cls=1 size=65 flags=7 \n");
}

}  // namespace
}  // namespace warpcache::admin
