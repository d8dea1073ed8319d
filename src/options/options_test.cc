// SPDX-License-Identifier: Apache-2.0
#include "options/options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <initializer_list>
#include <string>
#include <vector>

#include "options/version.h"

namespace warpcache {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

ParseResult parse(const std::vector<std::string>& arguments) {
  std::vector<std::string> storage = {"warpcached"};
  storage.insert(storage.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  for (std::string& text : storage) argv.push_back(text.data());
  argv.push_back(nullptr);
  return parse_options(static_cast<int>(storage.size()), argv.data());
}

Options accept(const std::vector<std::string>& arguments) {
  ParseResult result = parse(arguments);
  EXPECT_TRUE(result.options.has_value()) << result.text;
  EXPECT_EQ(result.text, "");
  return result.options.value_or(Options{});
}

// The option is refused in one sentence with the option's name, the given value and a word of the
// accepted values.
void refuse(const std::vector<std::string>& arguments, const std::string& option,
            const std::string& value, const std::string& accepted) {
  const ParseResult result = parse(arguments);
  EXPECT_FALSE(result.options.has_value()) << option << " " << value;
  EXPECT_EQ(result.exit_status, kExitUsage);
  EXPECT_THAT(result.text, HasSubstr("warpcached: " + option + " "));
  EXPECT_THAT(result.text, HasSubstr(value));
  EXPECT_THAT(result.text, HasSubstr(accepted));
  ASSERT_GE(result.text.size(), 2u);
  EXPECT_EQ(result.text.substr(result.text.size() - 2), ".\n");
}

void refuse_value(const std::string& option, std::initializer_list<const char*> values,
                  const std::string& accepted) {
  for (const char* const value : values) {
    refuse({option, value}, option, std::string("does not accept \"") + value + "\": give ",
           accepted);
  }
}

TEST(Options, DefaultsAreMemcacheds) {
  const Options options = accept({});
  EXPECT_THAT(options.listen.tcp, ElementsAre(ListenAddress{"", 11211}));
  EXPECT_THAT(options.listen.udp, IsEmpty());
  EXPECT_EQ(options.listen.unix_path, "");
  EXPECT_EQ(options.listen.unix_mask, 0700u);
  EXPECT_EQ(options.listen.backlog, 1024u);
  EXPECT_EQ(options.store.memory_bytes, uint64_t{64} << 20);
  EXPECT_EQ(options.store.item_size_max_bytes, uint64_t{1} << 20);
  EXPECT_TRUE(options.store.evict);
  EXPECT_TRUE(options.store.use_cas);
  EXPECT_TRUE(options.store.huge_pages);
  EXPECT_EQ(options.store.hash_power, 0u);
  EXPECT_GE(options.server.threads, 1u);
  EXPECT_LE(options.server.threads, 4u);
  EXPECT_EQ(options.server.connections_max, 1024u);
  EXPECT_TRUE(options.server.connections_max_fast);
  EXPECT_EQ(options.server.idle_timeout_s, 0u);
  EXPECT_EQ(options.server.requests_per_event_max, 1024u);
  EXPECT_EQ(options.server.protocol, ProtocolChoice::kAuto);
  EXPECT_EQ(options.server.engine, EngineChoice::kAuto);
  EXPECT_TRUE(options.server.flush_enabled);
  EXPECT_FALSE(options.server.shutdown_enabled);
  EXPECT_TRUE(options.server.dump_enabled);
  EXPECT_TRUE(options.server.watch_enabled);
  EXPECT_EQ(options.server.auth_file, "");
  EXPECT_FALSE(options.stats.detail_enabled);
  EXPECT_EQ(options.stats.prefix_delimiter, ':');
  EXPECT_FALSE(options.process.daemonize);
  EXPECT_EQ(options.process.verbosity, 0u);
  EXPECT_EQ(options.process.user, "");
  EXPECT_EQ(options.udp_guard.amplification_max, 10u);
  EXPECT_EQ(options.udp_guard.allow.size(), 2u);
  EXPECT_THAT(options.notes, IsEmpty());
}

TEST(Options, PortsInEverySpelling) {
  for (const auto& spelling : std::vector<std::vector<std::string>>{
           {"-p", "11311"}, {"-p11311"}, {"--port=11311"}, {"--port", "11311"}, {"--po=11311"}}) {
    EXPECT_THAT(accept(spelling).listen.tcp, ElementsAre(ListenAddress{"", 11311}));
  }
  EXPECT_THAT(accept({"-p", "-1"}).listen.tcp, ElementsAre(ListenAddress{"", 0}));
  refuse_value("-p", {"x", "70000", "-2", "", "1.5", "11211x"}, "65535");
}

TEST(Options, UdpPorts) {
  for (const auto& spelling :
       std::vector<std::vector<std::string>>{{"-U", "5"}, {"-U5"}, {"--udp-port=5"}}) {
    EXPECT_THAT(accept(spelling).listen.udp, ElementsAre(ListenAddress{"", 5}));
    EXPECT_THAT(accept(spelling).listen.tcp,
                ElementsAre(ListenAddress{"", 5}));  // as memcached: TCP follows
  }
  EXPECT_THAT(accept({"-U", "0"}).listen.udp, IsEmpty());
  EXPECT_THAT(accept({"-U", "0"}).listen.tcp, ElementsAre(ListenAddress{"", 11211}));
  const Options both = accept({"-U", "5", "-p", "6"});
  EXPECT_THAT(both.listen.udp, ElementsAre(ListenAddress{"", 5}));
  EXPECT_THAT(both.listen.tcp, ElementsAre(ListenAddress{"", 6}));
  const Options udp_only = accept({"-U", "-1", "-p", "0"});
  EXPECT_THAT(udp_only.listen.udp, ElementsAre(ListenAddress{"", 0}));
  EXPECT_THAT(udp_only.listen.tcp, IsEmpty());
  refuse_value("-U", {"x", "65536", "-2"}, "65535");
  const Options none = accept({"-p", "0"});  // as memcached, but with a line in the log
  EXPECT_THAT(none.listen.tcp, IsEmpty());
  EXPECT_THAT(none.notes, ElementsAre(HasSubstr("no client can reach")));
  EXPECT_THAT(accept({"-p", "0", "-U", "5"}).notes, IsEmpty());
}

TEST(Options, ListenAddresses) {
  const Options options =
      accept({"-l", "127.0.0.1,[::1]:5;host:6,", "-l*:7", "--listen=::1", "-p", "9"});
  EXPECT_THAT(options.listen.tcp,
              ElementsAre(ListenAddress{"127.0.0.1", 9}, ListenAddress{"::1", 5},
                          ListenAddress{"host", 6}, ListenAddress{"", 7}, ListenAddress{"::1", 9}));
  EXPECT_THAT(options.listen.udp, IsEmpty());
  EXPECT_EQ(options.listen_text, "127.0.0.1,[::1]:5;host:6,,*:7,::1");
  EXPECT_THAT(accept({"-l", "127.0.0.1", "-p", "-1", "-U", "-1"}).listen.udp,
              ElementsAre(ListenAddress{"127.0.0.1", 0}));
  // As memcached: a port of the address counts for both, but UDP is served only with -U.
  EXPECT_THAT(accept({"-l", "127.0.0.1:5", "-U", "6"}).listen.udp,
              ElementsAre(ListenAddress{"127.0.0.1", 5}));
  refuse_value(
      "-l", {"", ",", "[::1", "host:x", "host:99999", "127.0.0.1,host:", "proto[ascii]:127.0.0.1"},
      "host:port");
}

TEST(Options, ActiveMessages) {
  EXPECT_EQ(accept({"--ucx=noadmin:*:5", "-p", "0"}).listen.ucx, (ListenAddress{"", 5, false}));
  refuse_value("--ucx", {"", "host", "host:0", "host:x", "[::1]", "host:99999"}, "host:port");
}

TEST(Options, UnixSocketTurnsTheNetworkOff) {
  for (const auto& spelling : std::vector<std::vector<std::string>>{
           {"-s", "/tmp/w", "-a", "0777"}, {"--unix-socket=/tmp/w", "--unix-mask=777"}}) {
    const Options options = accept(spelling);
    EXPECT_EQ(options.listen.unix_path, "/tmp/w");
    EXPECT_EQ(options.listen.unix_mask, 0777u);
    EXPECT_THAT(options.listen.tcp, IsEmpty());
    EXPECT_THAT(options.listen.udp, IsEmpty());
  }
  accept({"-s", "/tmp/w", "-p", "0"});
  refuse_value("-s", {""}, "path");
  refuse_value("-a", {"999", "x", "-1", "10000"}, "octal");
}

TEST(Options, Memory) {
  EXPECT_EQ(accept({"-m", "1024"}).store.memory_bytes, uint64_t{1} << 30);
  EXPECT_EQ(accept({"-m1024"}).store.memory_bytes, uint64_t{1} << 30);
  EXPECT_EQ(accept({"--memory-limit=2g"}).store.memory_bytes, uint64_t{2} << 30);
  EXPECT_EQ(accept({"-m", "2"}).store.memory_bytes, uint64_t{2} << 20);
  EXPECT_EQ(accept({"-m", "16t"}).store.memory_bytes, uint64_t{16} << 40);
  refuse_value("-m", {"0", "-5", "x", "1.5", "16777217", "512k", ""}, "megabytes");
  refuse({"-m", "1"}, "-m", "1048576", "at most half");
}

TEST(Options, ItemSize) {
  EXPECT_EQ(accept({"-I", "2m"}).store.item_size_max_bytes, uint64_t{2} << 20);
  EXPECT_EQ(accept({"--max-item-size=4096"}).store.item_size_max_bytes, 4096u);
  EXPECT_EQ(accept({"-I", "1k"}).store.item_size_max_bytes, 1024u);
  EXPECT_EQ(accept({"-I", "1024m", "-m", "2048"}).store.item_size_max_bytes, uint64_t{1} << 30);
  EXPECT_EQ(accept({"-I1g", "-m2g"}).store.item_size_max_bytes, uint64_t{1} << 30);
  EXPECT_EQ(accept({"-I", "32m"}).store.item_size_max_bytes, uint64_t{32} << 20);
  EXPECT_EQ(accept({"-m", "1", "-I", "512k"}).store.memory_bytes, uint64_t{1} << 20);
  refuse_value("-I", {"1023", "0", "-1", "x", "1025m", "2g", "1mb"}, "from 1k to 1g");
  refuse({"-I", "33m"}, "-I", "34603008", "at most half of -m, which is 33554432 bytes");
}

TEST(Options, Numbers) {
  EXPECT_EQ(accept({"-t", "8"}).server.threads, 8u);
  EXPECT_EQ(accept({"--threads=256"}).server.threads, 256u);
  refuse_value("-t", {"0", "-1", "x", "257", "4x"}, "from 1 to 256");
  EXPECT_EQ(accept({"-c", "1"}).server.connections_max, 1u);
  EXPECT_EQ(accept({"--conn-limit=20000"}).server.connections_max, 20000u);
  refuse_value("-c", {"0", "-1", "x", "4000001"}, "from 1 to 4000000");
  EXPECT_EQ(accept({"-R", "1"}).server.requests_per_event_max, 1u);
  EXPECT_EQ(accept({"--max-reqs-per-event=500"}).server.requests_per_event_max, 500u);
  refuse_value("-R", {"0", "-1", "x", "4294967296"}, "from 1 to 4294967295");
  EXPECT_EQ(accept({"-b", "0"}).listen.backlog, 0u);
  EXPECT_EQ(accept({"--listen-backlog=4096"}).listen.backlog, 4096u);
  refuse_value("-b", {"-1", "x", "2147483648"}, "from 0 to 2147483647");
}

TEST(Options, Switches) {
  for (const char* const spelling : {"-A", "--enable-shutdown"})
    EXPECT_TRUE(accept({spelling}).server.shutdown_enabled);
  for (const char* const spelling : {"-d", "--daemon"})
    EXPECT_TRUE(accept({spelling}).process.daemonize);
  for (const char* const spelling : {"-r", "--enable-coredumps"})
    EXPECT_TRUE(accept({spelling}).process.core_dumps);
  for (const char* const spelling : {"-M", "--disable-evictions"})
    EXPECT_FALSE(accept({spelling}).store.evict);
  for (const char* const spelling : {"-k", "--lock-memory"})
    EXPECT_TRUE(accept({spelling}).process.lock_memory);
  for (const char* const spelling : {"-L", "--enable-largepages"})
    EXPECT_TRUE(accept({"--no-huge-pages", spelling}).store.huge_pages);
  EXPECT_FALSE(accept({"--no-huge-pages"}).store.huge_pages);
  for (const char* const spelling : {"-C", "--disable-cas"})
    EXPECT_FALSE(accept({spelling}).store.use_cas);
  for (const char* const spelling : {"-F", "--disable-flush-all"})
    EXPECT_FALSE(accept({spelling}).server.flush_enabled);
  for (const char* const spelling : {"-X", "--disable-dumping"})
    EXPECT_FALSE(accept({spelling}).server.dump_enabled);
  for (const char* const spelling : {"-W", "--disable-watch"})
    EXPECT_FALSE(accept({spelling}).server.watch_enabled);
  refuse({"--daemon=3"}, "-d", "--daemon=3", "takes no value");
}

TEST(Options, ShortOptionsJoin) {
  const Options options = accept({"-dvMm", "128", "-vvv", "--verbose"});
  EXPECT_TRUE(options.process.daemonize);
  EXPECT_FALSE(options.store.evict);
  EXPECT_EQ(options.store.memory_bytes, uint64_t{128} << 20);
  EXPECT_EQ(options.process.verbosity, 5u);
  EXPECT_EQ(accept({"-v"}).process.verbosity, 1u);
  EXPECT_EQ(accept({"-vv"}).process.verbosity, 2u);
}

TEST(Options, UserAndFiles) {
  for (const auto& spelling : std::vector<std::vector<std::string>>{
           {"-d", "-u", "nobody", "-P", "/tmp/pid", "-Y", "/tmp/auth"},
           {"-d", "--user=nobody", "--pidfile=/tmp/pid", "--auth-file=/tmp/auth"}}) {
    const Options options = accept(spelling);
    EXPECT_EQ(options.process.user, "nobody");
    EXPECT_EQ(options.process.pid_file, "/tmp/pid");
    EXPECT_EQ(options.server.auth_file, "/tmp/auth");
    EXPECT_THAT(options.notes, IsEmpty());
  }
  EXPECT_THAT(accept({"-P", "/tmp/pid"}).notes, IsEmpty());
  refuse_value("-u", {""}, "user");
  refuse_value("-P", {""}, "path");
  refuse_value("-Y", {""}, "path");
}

TEST(Options, DaemonsGetAbsolutePaths) {
  const std::string here = std::filesystem::current_path().string();
  const Options daemon = accept({"-d", "-P", "pid", "-Y", "auth", "-s", "socket"});
  EXPECT_EQ(daemon.process.pid_file, here + "/pid");
  EXPECT_EQ(daemon.server.auth_file, here + "/auth");
  EXPECT_EQ(daemon.listen.unix_path, here + "/socket");
  EXPECT_EQ(accept({"-s", "socket"}).listen.unix_path, "socket");
}

TEST(Options, AuthenticationMeansTextOverStreams) {
  EXPECT_EQ(accept({"-Y", "/tmp/auth"}).server.protocol, ProtocolChoice::kText);
  EXPECT_EQ(accept({"-Y", "/tmp/auth", "-B", "ascii"}).server.protocol, ProtocolChoice::kText);
  refuse({"-Y", "/tmp/auth", "-B", "auto"}, "-Y", "text protocol", "-B ascii");
  refuse({"-Y", "/tmp/auth", "-B", "binary"}, "-Y", "text protocol", "-B ascii");
  refuse({"-Y", "/tmp/auth", "-U", "5"}, "-Y", "-U", "-U 0");
}

TEST(Options, ProtocolAndEngine) {
  EXPECT_EQ(accept({"-B", "ascii"}).server.protocol, ProtocolChoice::kText);
  EXPECT_EQ(accept({"-Bbinary"}).server.protocol, ProtocolChoice::kBinary);
  EXPECT_EQ(accept({"--protocol=auto"}).server.protocol, ProtocolChoice::kAuto);
  refuse_value("-B", {"foo", "", "ASCII", "negotiating"}, "auto, ascii or binary");
  EXPECT_EQ(accept({"--engine=cpu"}).server.engine, EngineChoice::kCpu);
  EXPECT_EQ(accept({"--engine", "auto"}).server.engine, EngineChoice::kAuto);
  EXPECT_EQ(accept({"--engine=cuda"}).server.engine, EngineChoice::kCuda);
  refuse({"--engine=gpu"}, "--engine", "\"gpu\"", "auto, cpu or cuda");
  EXPECT_EQ(accept({"--gpu=3"}).gpu.number, 3u);
  EXPECT_EQ(accept({}).gpu.mode, GpuMode::kLaunch);
  EXPECT_EQ(accept({"--gpu-mode=persistent"}).gpu.mode, GpuMode::kPersistent);
  EXPECT_EQ(accept({"--gpu-mode=edge"}).gpu.mode, GpuMode::kEdge);
  EXPECT_EQ(accept({}).gpu.values, ValuesChoice::kDevice);
  EXPECT_EQ(accept({"--values=host"}).gpu.values, ValuesChoice::kHost);
  refuse({"--values=gpu"}, "--values", "\"gpu\"", "device or host");
  EXPECT_EQ(accept({"--on-gpu-error=exit"}).gpu.on_error, GpuErrorChoice::kExit);
  EXPECT_TRUE(accept({"--selftest"}).gpu.selftest);
  EXPECT_FALSE(accept({}).store.memory_given);
  EXPECT_TRUE(accept({"-m", "64"}).store.memory_given);
  refuse({"--gpu-mode=fast"}, "--gpu-mode", "\"fast\"", "launch, persistent or edge");
}

TEST(Options, PrefixStatistics) {
  const Options options = accept({"-D", "/"});
  EXPECT_EQ(options.stats.prefix_delimiter, '/');
  EXPECT_TRUE(options.stats.detail_enabled);
  refuse_value("-D", {"", "::"}, "one character");
}

TEST(Options, UdpGuard) {
  const Options options =
      accept({"--udp-allow=192.0.2.0/24", "--udp-allow", "::/0", "--udp-amplification=3"});
  ASSERT_EQ(options.udp_guard.allow.size(), 2u);
  EXPECT_EQ(options.udp_guard.allow[0].prefix_bits, 96 + 24);
  EXPECT_EQ(options.udp_guard.allow[1].prefix_bits, 0);
  EXPECT_EQ(options.udp_guard.amplification_max, 3u);
  refuse({"--udp-allow=x"}, "--udp-allow", "\"x\"", "192.0.2.0/24");
  refuse({"--udp-amplification=0"}, "--udp-amplification", "\"0\"", "from 1 to 65535");
}

TEST(Options, SlabOptionsLeaveANote) {
  const Options options = accept({"-f", "1.1", "-n", "64"});
  EXPECT_DOUBLE_EQ(options.compat.growth_factor, 1.1);
  EXPECT_EQ(options.compat.chunk_size, 64u);
  EXPECT_THAT(options.notes,
              ElementsAre(HasSubstr("-f has no effect"), HasSubstr("-n has no effect")));
  EXPECT_DOUBLE_EQ(accept({"--slab-growth-factor=2"}).compat.growth_factor, 2.0);
  EXPECT_EQ(accept({"--slab-min-size=80"}).compat.chunk_size, 80u);
  refuse_value("-f", {"1", "1.0", "0.5", "x", "-2", "nan"}, "above 1");
  refuse_value("-n", {"0", "-1", "x"}, "bytes from 1");
  EXPECT_EQ(accept({"-e", "/mnt/x"}).store.memory_file, "/mnt/x");
  refuse({"--memory-file=/mnt/x", "--engine=cuda"}, "-e", "--engine=cuda", "GPU");
  EXPECT_THAT(accept({"--napi-ids=2"}).notes, ElementsAre(HasSubstr("-N has no effect")));
  refuse_value("-N", {"x"}, "number");
}

TEST(Options, WhatIsAbsentAndMattersIsRefused) {}

TEST(Options, SaslMeansTheBinaryProtocol) {
  EXPECT_TRUE(accept({"-S"}).server.authentication());
  EXPECT_EQ(accept({"--enable-sasl", "-B", "binary"}).server.protocol, ProtocolChoice::kBinary);
  for (const char* const other : {"auto", "ascii"})
    refuse({"-S", "-B", "binary", "-B", other}, "-S", "binary protocol", "-B binary");
  refuse({"-S", "-Y", "/tmp/auth"}, "-S", "-Y", "binary protocol");
}

TEST(Options, UnknownAndIncompleteArguments) {
  refuse({"-q"}, "there", "no option -q", "-h");
  refuse({"-vq"}, "there", "no option -q", "-h");
  refuse({"--foo"}, "there", "no option --foo", "-h");
  refuse({"--hash-seed=1"}, "there", "no option --hash-seed=1", "-h");
  refuse({"--un=x"}, "there", "no option --un=x", "short for several");
  refuse({"-p"}, "-p", "needs a value", "65535");
  refuse({"--port"}, "-p", "needs a value", "65535");
  refuse({"--udp-allow"}, "--udp-allow", "needs a value", "192.0.2.0/24");
  refuse({"-m", "64", "extra"}, "there", "\"extra\"", "options start with -");
  refuse({"--", "-p"}, "there", "\"-p\"", "options start with -");
}

TEST(Options, ExtendedWordsThatCount) {
  const Options options =
      accept({"-o", "idle_timeout=30,no_maxconns_fast,hashpower=20", "-otrack_sizes,",
              "--extended=read_buf_mem_limit=8", "-o", "stall_timeout=0"});
  EXPECT_EQ(options.server.idle_timeout_s, 30u);
  EXPECT_EQ(options.server.stall_timeout_s, 0u);
  EXPECT_EQ(accept({}).server.stall_timeout_s, 60u);
  EXPECT_FALSE(options.server.connections_max_fast);
  EXPECT_EQ(options.store.hash_power, 20u);
  EXPECT_TRUE(options.stats.track_sizes);
  EXPECT_EQ(options.server.read_buffer_bytes_max, uint64_t{8} << 20);
  EXPECT_THAT(options.notes, IsEmpty());
  EXPECT_TRUE(accept({"-o", "no_maxconns_fast,maxconns_fast"}).server.connections_max_fast);
  EXPECT_FALSE(accept({"-o", "no_modern"}).server.connections_max_fast);
  EXPECT_TRUE(accept({"-o", "modern"}).server.connections_max_fast);
}

TEST(Options, ExtendedWordsWithoutEffectLeaveOneNoteEach) {
  const std::vector<std::string> words = {
      "no_hashexpand",          "hash_algorithm=jenkins", "hash_algorithm=murmur3",
      "hash_algorithm=xxh3",    "tail_repair_time=10",    "lru_crawler",
      "no_lru_crawler",         "lru_crawler_sleep=0",    "lru_crawler_tocrawl=5",
      "lru_maintainer",         "no_lru_maintainer",      "hot_lru_pct=10",
      "warm_lru_pct=60",        "hot_max_factor=0.5",     "warm_max_factor=3",
      "temporary_ttl=61",       "slab_reassign",          "no_slab_reassign",
      "slab_automove",          "slab_automove=2",        "no_slab_automove",
      "slab_automove_ratio=.5", "slab_automove_window=3", "slab_automove_freeratio=0.01",
      "slab_sizes=100-200-300", "slab_chunk_max=512",     "no_chunked_items",
      "inline_ascii_resp",      "inline_ascii_response",  "no_inline_ascii_resp",
      "resp_obj_mem_limit=1",   "relaxed_privileges",     "sock_cookie_id=1",
      "ext_path=/mnt/x:1G",     "ext_page_size=64",       "ext_wbuf_size=4",
      "ext_threads=1",          "ext_io_depth=1",         "ext_item_size=512",
      "ext_item_age=60",        "ext_low_ttl=0",          "ext_recache_rate=2000",
      "ext_compact_under=3",    "ext_drop_under=3",       "ext_max_sleep=1000",
      "ext_max_frag=0.8",       "ext_drop_unread",        "ssl_wbuf_size=16"};
  for (const std::string& word : words) {
    const std::string name = "-o " + word.substr(0, word.find('='));
    EXPECT_THAT(accept({"-o", word}).notes, ElementsAre(HasSubstr(name + " has no effect: ")))
        << word;
  }
}

TEST(Options, PortsAreSharedAndPrivilegesDroppedOnlyIfAsked) {
  const Options plain = accept({});
  EXPECT_FALSE(plain.listen.share_ports || plain.process.drop_privileges);
  const Options both = accept({"-o", "share_ports,drop_privileges"});
  EXPECT_TRUE(both.listen.share_ports && both.process.drop_privileges);
  EXPECT_FALSE(accept({"-o", "drop_privileges,no_drop_privileges"}).process.drop_privileges);
}

TEST(Options, ExtendedWordsAreReportedBack) {
  const CompatOptions compat =
      accept({"-o",
              "hash_algorithm=xxh3,tail_repair_time=20,no_lru_crawler,lru_crawler_sleep=7,lru_"
              "crawler_tocrawl=8,"
              "no_lru_maintainer,hot_lru_pct=11,warm_lru_pct=12,hot_max_factor=.3,warm_max_factor="
              "4,temporary_ttl=9,"
              "no_slab_reassign,slab_automove=2,slab_automove_ratio=.5,slab_automove_window=13,"
              "slab_automove_freeratio=.02,slab_chunk_max=256,worker_logbuf_size=14,watcher_logbuf_"
              "size=15"})
          .compat;
  EXPECT_EQ(compat.hash_algorithm, "xxh3");
  EXPECT_EQ(compat.tail_repair_time_s, 20u);
  EXPECT_FALSE(compat.lru_crawler);
  EXPECT_EQ(compat.lru_crawler_sleep_us, 7u);
  EXPECT_EQ(compat.lru_crawler_tocrawl, 8u);
  EXPECT_FALSE(compat.lru_maintainer);
  EXPECT_EQ(compat.hot_lru_pct, 11u);
  EXPECT_EQ(compat.warm_lru_pct, 12u);
  EXPECT_DOUBLE_EQ(compat.hot_max_factor, 0.3);
  EXPECT_DOUBLE_EQ(compat.warm_max_factor, 4.0);
  EXPECT_TRUE(compat.temp_lru);
  EXPECT_EQ(compat.temporary_ttl_s, 9u);
  EXPECT_FALSE(compat.slab_reassign);
  EXPECT_EQ(compat.slab_automove, 2u);
  EXPECT_DOUBLE_EQ(compat.slab_automove_ratio, 0.5);
  EXPECT_EQ(compat.slab_automove_window, 13u);
  EXPECT_DOUBLE_EQ(compat.slab_automove_freeratio, 0.02);
  EXPECT_EQ(compat.slab_chunk_max_bytes, 256u << 10);
  EXPECT_EQ(compat.worker_logbuf_kib, 14u);
  EXPECT_EQ(compat.watcher_logbuf_kib, 15u);
}

TEST(Options, ExtendedWordsRefused) {
  const std::vector<std::pair<std::string, std::string>> bad = {
      {"idle_timeout=x", "seconds"},
      {"idle_timeout=-1", "seconds"},
      {"stall_timeout=1m", "seconds"},
      {"hashpower=11", "12 to 32"},
      {"hashpower=33", "12 to 32"},
      {"read_buf_mem_limit=x", "megabytes"},
      {"hash_algorithm=md5", "jenkins"},
      {"tail_repair_time=9", "10 or more"},
      {"lru_crawler_sleep=1000001", "1000000"},
      {"lru_crawler_tocrawl=-1", "0 to"},
      {"hot_lru_pct=0", "1 to 79"},
      {"hot_lru_pct=80", "1 to 79"},
      {"warm_lru_pct=80", "1 to 79"},
      {"hot_max_factor=-1", "above 0"},
      {"warm_max_factor=0", "above 0"},
      {"temporary_ttl=x", "0 to"},
      {"slab_automove=3", "0, 1 or 2"},
      {"slab_automove_ratio=1", "below 1"},
      {"slab_automove_window=2", "3 or more"},
      {"slab_automove_freeratio=2", "0 to 1"},
      {"slab_sizes=1-x", "dashes"},
      {"slab_sizes=1--2", "dashes"},
      {"slab_chunk_max=0", "kilobytes"},
      {"resp_obj_mem_limit=x", "megabytes"},
      {"worker_logbuf_size=0", "kilobytes"},
      {"watcher_logbuf_size=x", "kilobytes"},
      {"sock_cookie_id=x", "0 to"},
      {"ext_path=", "a text"},
      {"ext_threads=x", "0 to"},
      {"ext_max_frag=2", "0 to 1"}};
  for (const auto& [word, accepted] : bad) {
    const size_t equals = word.find('=');
    refuse({"-o", word}, "-o " + word.substr(0, equals),
           "does not accept \"" + word.substr(equals + 1) + "\"", accepted);
  }
  refuse({"-o", "foo"}, "-o", "does not know \"foo\"", "-h");
  refuse({"-o", ",modern"}, "-o", "does not know \"\"", "-h");
  refuse({"-o", "modern=3"}, "-o modern", "takes no value", "\"3\"");
  refuse({"-o", "idle_timeout"}, "-o idle_timeout", "needs a value", "seconds");
  refuse({"-o", "hot_lru_pct=50,warm_lru_pct=60"}, "-o", "50 and 60", "at most 80");
}

TEST(Options, PortFileComesFromTheEnvironment) {
  ASSERT_EQ(setenv("MEMCACHED_PORT_FILENAME", "/tmp/ports", 1), 0);
  EXPECT_EQ(accept({}).listen.port_filename, "/tmp/ports");
  ASSERT_EQ(unsetenv("MEMCACHED_PORT_FILENAME"), 0);
  EXPECT_EQ(accept({}).listen.port_filename, "");
}

TEST(Options, HelpVersionAndLicenseExitWell) {
  for (const char* const spelling : {"-V", "--version"}) {
    const ParseResult result = parse({spelling, "-p", "wrong"});
    EXPECT_FALSE(result.options.has_value());
    EXPECT_EQ(result.exit_status, 0);
    EXPECT_EQ(result.text, "warpcached " + std::string(version()) + "\n");
  }
  for (const char* const spelling : {"-i", "--license"}) {
    const ParseResult result = parse({spelling});
    EXPECT_EQ(result.exit_status, 0);
    EXPECT_THAT(result.text, HasSubstr("Apache License"));
  }
  for (const char* const spelling : {"-h", "--help"}) {
    const ParseResult result = parse({spelling});
    EXPECT_EQ(result.exit_status, 0);
    EXPECT_EQ(result.text, help_text("warpcached"));
  }
}

// What clients' test suites look for.
TEST(Options, UnderMemcachedsNameTheTextsBeginAsMemcacheds) {
  for (const char* const name : {"memcached", "/usr/bin/memcached", "./memcached-debug"}) {
    EXPECT_EQ(version_text(name), "memcached 1.6.45\n");
    EXPECT_THAT(help_text(name), StartsWith("memcached 1.6.45\n"));
    EXPECT_THAT(license_text(name), StartsWith("memcached 1.6.45\n"));
  }
  EXPECT_THAT(version_text("/opt/memcached/warpcached"), StartsWith("warpcached "));
  char name[] = "memcached";
  char version[] = "-V";
  char* arguments[] = {name, version, nullptr};
  EXPECT_EQ(parse_options(2, arguments).text, "memcached 1.6.45\n");
}

TEST(Options, HelpNamesEveryOption) {
  const std::string help = help_text("/usr/bin/warpcached");
  for (const char* const name : {"-p, --port=<num>          ",
                                 "-U, --udp-port=<num>",
                                 "-s, --unix-socket=<file>",
                                 "-a, --unix-mask=<mask>",
                                 "-A, --enable-shutdown",
                                 "-l, --listen=<addr>",
                                 "-d, --daemon",
                                 "-r, --enable-coredumps",
                                 "-u, --user=<user>",
                                 "-m, --memory-limit=<num>",
                                 "-M, --disable-evictions",
                                 "-c, --conn-limit=<num>",
                                 "-k, --lock-memory",
                                 "-v, --verbose",
                                 "-vv",
                                 "-h, --help",
                                 "-i, --license",
                                 "-V, --version",
                                 "-P, --pidfile=<file>",
                                 "-f, --slab-growth-factor=<num>",
                                 "-n, --slab-min-size=<bytes>",
                                 "-L, --enable-largepages",
                                 "-D <char>",
                                 "-t, --threads=<num>",
                                 "-R, --max-reqs-per-event=<num>",
                                 "-C, --disable-cas",
                                 "-b, --listen-backlog=<num>",
                                 "-B, --protocol=<name>",
                                 "-I, --max-item-size=<num>",
                                 "-S, --enable-sasl",
                                 "-F, --disable-flush-all",
                                 "-X, --disable-dumping",
                                 "-W, --disable-watch",
                                 "-Y, --auth-file=<file>",
                                 "-e, --memory-file=<file>",
                                 "-Z, --enable-ssl",
                                 "-N, --napi-ids=<num>",
                                 "-o, --extended=<words>",
                                 "    --udp-allow=<cidr>",
                                 "    --udp-amplification=<num>",
                                 "    --nic-cache=<interface>",
                                 "    --nic-cache-memory=<num>",
                                 "    --nic-cache-fill=<name>",
                                 "    --nic-cache-write=<name>",
                                 "    --nic-cache-rate=<num>",
                                 "    --frames=<port>",
                                 "    --frames-queues=<num>",
                                 "    --frames-threads=<num>",
                                 "    --frames-burst=<num>",
                                 "    --frames-depth=<num>",
                                 "    --frames-cpus=<list>",
                                 "    --frames-kernel=<name>",
                                 "    --frames-gpu",
                                 "    --ucx=<addr>",
                                 "    --ucx-client-memory=<num>",
                                 "    --ucx-one-sided=<num>",
                                 "    --ucx-transports=<list>",
                                 "    --engine=<name>",
                                 "    --gpu=<num>",
                                 "    --gpu-mode=<name>",
                                 "    --values=<name>",
                                 "    --on-gpu-error=<name>",
                                 "    --selftest",
                                 "   - idle_timeout:        ",
                                 "   - hashpower:",
                                 "   - maxconns_fast:",
                                 "   - track_sizes:",
                                 "   - modern:",
                                 "   - no_modern:",
                                 " slab_reassign",
                                 " ext_*",
                                 " hot_lru_pct"}) {
    EXPECT_THAT(help, HasSubstr(name));
  }
  EXPECT_THAT(help, Not(HasSubstr("ext_path")));  // there is no external storage
}

}  // namespace
}  // namespace warpcache
