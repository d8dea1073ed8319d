// SPDX-License-Identifier: Apache-2.0
#include "options/options.h"

#include <getopt.h>
#include <sched.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <limits>
#include <utility>

#include "options/choice_options.h"
#include "options/frames_options.h"
#include "options/nic_cache_options.h"
#include "options/option_draft.h"
#include "options/settle.h"
#include "options/tls_options.h"
#include "options/version.h"

namespace warpcache {
namespace {

constexpr int64_t kI32Max = std::numeric_limits<int32_t>::max();
constexpr uint64_t kMemoryBytesMin = uint64_t{1} << 20;
constexpr uint64_t kMemoryBytesMax = uint64_t{16} << 40;  // 40-bit offsets in granules of 16 bytes
constexpr uint64_t kItemSizeBytesMin = uint64_t{1} << 10;
constexpr uint64_t kItemSizeBytesMax = uint64_t{1} << 30;
constexpr int64_t kThreadsMax = 256;
constexpr int64_t kConnectionsMax =
    4'000'000;                      // far above the kernel's limit of descriptors for a process
constexpr size_t kHelpColumn = 26;  // where memcached's descriptions start

// Options that have only a long form.
enum LongOnly : int {
  kUdpAllow = 256,
  kUdpAmplification,
  kNicCache,
  kNicCacheMemory,
  kNicCacheFill,
  kNicCacheWrite,
  kNicCacheRate,
  kFrames,
  kFramesQueues,
  kFramesThreads,
  kFramesBurst,
  kFramesDepth,
  kFramesGpu,
  kFramesCpus,
  kFramesKernel,
  kUcx,
  kUcxClientMemory,
  kUcxOneSided,
  kUcxTransports,
  kMetrics,
  kAccess,
  kDoctor,
  kPlan,
  kEngine,
  kGpu,
  kGpuMode,
  kValues,
  kOnGpuError,
  kSelftest,
  kNoHugePages
};

struct Spec {
  int id;                     // the short option's letter, or a LongOnly
  const char* long_name;      // nullptr: none
  const char* value_name;     // nullptr: takes no value
  ApplyOption apply;          // gets "" if there is no value
  std::string_view accepted;  // the values it accepts
  std::string_view note;      // why it has no effect; empty: it has an effect
  std::string_view help;
};

bool set_port(int& port, bool& given, std::string_view value) {
  const auto number = read_number(value, -1, 65535);
  if (!number) return false;
  port = static_cast<int>(*number);
  given = true;
  return true;
}

bool set_u32(uint32_t& target, std::string_view value, int64_t min, int64_t max) {
  const auto number = read_number(value, min, max);
  if (!number) return false;
  target = static_cast<uint32_t>(*number);
  return true;
}

bool set_text(std::string& target, std::string_view value) {
  target = value;
  return !value.empty();
}

bool set_listen(OptionDraft& draft, std::string_view value) {
  // memcached splits at semicolons too, and accepts empty pieces.
  size_t pieces = 0;
  for (size_t begin = 0; begin <= value.size();) {
    const size_t end = std::min(value.find_first_of(",;", begin), value.size());
    const std::string_view piece = value.substr(begin, end - begin);
    begin = end + 1;
    if (piece.empty()) continue;
    auto spec = read_listen(piece);
    if (!spec) return false;
    draft.listen_specs.push_back(std::move(*spec));
    ++pieces;
  }
  std::string& text = draft.options.listen_text;
  text.append(text.empty() ? "" : ",").append(value);
  return pieces != 0;
}

bool set_memory(OptionDraft& draft, std::string_view value) {
  const auto bytes = read_size(value, uint64_t{1} << 20, kMemoryBytesMin, kMemoryBytesMax);
  if (bytes) draft.options.store.memory_bytes = *bytes;
  return draft.options.store.memory_given = bytes.has_value();
}

bool set_item_size(OptionDraft& draft, std::string_view value) {
  const auto bytes = read_size(value, 1, kItemSizeBytesMin, kItemSizeBytesMax);
  if (bytes) draft.options.store.item_size_max_bytes = *bytes;
  return draft.item_size_given = bytes.has_value();
}

bool set_growth_factor(OptionDraft& draft, std::string_view value) {
  const auto factor = read_fraction(value, 1.0, 1e6);
  if (!factor || *factor <= 1.0) return false;
  draft.options.compat.growth_factor = *factor;
  return true;
}

bool set_prefix_delimiter(OptionDraft& draft, std::string_view value) {
  if (value.size() != 1) return false;
  draft.options.stats.prefix_delimiter = value[0];
  draft.options.stats.detail_enabled = true;
  return true;
}

bool set_unix_mask(OptionDraft& draft, std::string_view value) {
  const auto mask = read_octal(value, 07777);
  if (mask) draft.options.listen.unix_mask = *mask;
  return mask.has_value();
}

bool add_udp_allow(OptionDraft& draft, std::string_view value) {
  const auto network = read_cidr(value);
  if (!network) return false;
  draft.options.udp_guard.allow.push_back(*network);
  return draft.udp_allow_given = true;
}

bool set_metrics(OptionDraft& draft, std::string_view value) {
  const auto spec = read_listen(value);
  if (!spec || spec->port.value_or(0) == 0 || !spec->admin || spec->tls.has_value() ||
      spec->proxied) {
    return false;
  }
  draft.options.listen.metrics = ListenAddress{spec->host, *spec->port};
  return draft.options.stats.track_latency = true;
}

using View = std::string_view;
using Draft = OptionDraft;

const Spec kSpecs[] = {
    {'p', "port", "num",
     [](Draft& d, View v) { return set_port(d.options.tcp_port, d.tcp_port_given, v); },
     "a port from 0 (no TCP) to 65535, or -1 for any free port", "",
     "TCP port (default: 11211; 0: none, -1: any free)"},
    {'U', "udp-port", "num",
     [](Draft& d, View v) { return set_port(d.options.udp_port, d.udp_port_given, v); },
     "a port from 0 (no UDP) to 65535, or -1 for any free port", "",
     "UDP port (default: 0, no UDP; -1: any free)"},
    {'s', "unix-socket", "file",
     [](Draft& d, View v) { return set_text(d.options.listen.unix_path, v); },
     "the path of a socket", "", "UNIX socket to serve instead of the network"},
    {'a', "unix-mask", "mask", set_unix_mask, "an octal number from 0 to 7777", "",
     "mode of the UNIX socket, octal (default: 700)"},
    {'A', "enable-shutdown", nullptr,
     [](Draft& d, View) { return d.options.server.shutdown_enabled = true; }, "", "",
     "allow the text command \"shutdown\""},
    {'l', "listen", "addr", set_listen,
     "addresses joined by commas, each as host, host:port, [ipv6] or [ipv6]:port, with * for every "
     "interface",
     "",
     "address to serve (default: every interface);\nhost, host:port, [ipv6]:port; several by "
     "commas or\nby -l again. With noadmin: before it, its clients\ncannot change the server (see "
     "-o "
     "no_admin). With -Z: notls:\nbefore it is without TLS, mtls: with a certificate of\nthe "
     "client, "
     "btls: without. With proxy: before it, a proxy in front says\nwho the client is (PROXY "
     "protocol, version 2)"},
    {'d', "daemon", nullptr, [](Draft& d, View) { return d.options.process.daemonize = true; }, "",
     "", "run in the background"},
    {'r', "enable-coredumps", nullptr,
     [](Draft& d, View) { return d.options.process.core_dumps = true; }, "", "",
     "raise the limit on core files"},
    {'u', "user", "user", [](Draft& d, View v) { return set_text(d.options.process.user, v); },
     "a user's name", "",
     "become this user after start (if root). Without it\nroot stays root, with a warning"},
    {'m', "memory-limit", "num", set_memory,
     "megabytes from 1 to 16777216, or a size such as 512m or 4g", "",
     "memory for items and index, in megabytes; k, m, g and\nt may follow (default: 64)"},
    {'M', "disable-evictions", nullptr,
     [](Draft& d, View) { return !(d.options.store.evict = false); }, "", "",
     "answer an error when memory is full, do not evict"},
    {'c', "conn-limit", "num",
     [](Draft& d, View v) {
       return set_u32(d.options.server.connections_max, v, 1, kConnectionsMax);
     },
     "a number from 1 to 4000000", "", "connections at a time (default: 1024)"},
    {'k', "lock-memory", nullptr,
     [](Draft& d, View) { return d.options.process.lock_memory = true; }, "", "",
     "keep all memory from being paged out"},
    {'v', "verbose", nullptr,
     [](Draft& d, View) {
       ++d.options.process.verbosity;
       return true;
     },
     "", "",
     "-vv logs connections, commands and replies, without\nvalues; -v and -vvv add nothing to what "
     "is logged"},
    {'h', "help", nullptr, [](Draft& d, View) { return d.help = true; }, "", "",
     "print this and exit"},
    {'i', "license", nullptr, [](Draft& d, View) { return d.license = true; }, "", "",
     "print the license and exit"},
    {'V', "version", nullptr, [](Draft& d, View) { return d.version = true; }, "", "",
     "print the version and exit"},
    {'P', "pidfile", "file",
     [](Draft& d, View v) { return set_text(d.options.process.pid_file, v); }, "the path of a file",
     "", "file for the process id; removed at the end"},
    {'f', "slab-growth-factor", "num", set_growth_factor, "a number above 1, such as 1.25",
     "items lie in a log of segments, there are no slab classes",
     "accepted, without effect (no slab classes)"},
    {'n', "slab-min-size", "bytes",
     [](Draft& d, View v) { return set_u32(d.options.compat.chunk_size, v, 1, kI32Max); },
     "bytes from 1 to 2147483647", "items lie in a log of segments, there are no slab classes",
     "accepted, without effect (no slab classes)"},
    {'L', "enable-largepages", nullptr,
     [](Draft& d, View) { return d.options.store.huge_pages = true; }, "", "",
     "ask for huge pages, as is done by default"},
    {'D', nullptr, "char", set_prefix_delimiter, "one character", "",
     "character that ends a key's prefix in \"stats detail\" and\nflush_prefix (default: \":\"). "
     "Given, it "
     "turns these\nstatistics on; otherwise \"stats detail on\" does"},
    {'t', "threads", "num",
     [](Draft& d, View v) { return set_u32(d.options.server.threads, v, 1, kThreadsMax); },
     "a number from 1 to 256", "", "worker threads (default: 4, or the CPUs if fewer)"},
    {'R', "max-reqs-per-event", "num",
     [](Draft& d, View v) {
       return set_u32(d.options.server.requests_per_event_max, v, 1, kU32Max);
     },
     "a number from 1 to 4294967295", "",
     "requests of one connection per event-loop iteration,\nso that none starves (default: 1024)"},
    {'C', "disable-cas", nullptr, [](Draft& d, View) { return !(d.options.store.use_cas = false); },
     "", "", "no CAS"},
    {'b', "listen-backlog", "num",
     [](Draft& d, View v) { return set_u32(d.options.listen.backlog, v, 0, kI32Max); },
     "a number from 0 to 2147483647", "", "connections waiting to be accepted (default: 1024)"},
    {'B', "protocol", "name", set_protocol, "auto, ascii or binary", "",
     "protocol: auto (default), ascii or binary"},
    {'I', "max-item-size", "num", set_item_size,
     "a size from 1k to 1g, such as 1048576, 512k or 2m", "",
     "largest item (default: 1m, from 1k to 1g, at most half\nof -m)"},
    {'S', "enable-sasl", nullptr, [](Draft& d, View) { return d.options.server.sasl = true; }, "",
     "",
     "require a login by SASL; binary protocol, no UDP. Names\nand passwords: MEMCACHED_SASL_PWDB "
     "names a file of lines\nuser:password; else libsasl2's (SASL_CONF_PATH)"},
    {'F', "disable-flush-all", nullptr,
     [](Draft& d, View) { return !(d.options.server.flush_enabled = false); }, "", "",
     "refuse flush_all and flush_prefix"},
    {'X', "disable-dumping", nullptr,
     [](Draft& d, View) { return !(d.options.server.dump_enabled = false); }, "", "",
     "refuse \"stats cachedump\" and \"lru_crawler metadump\""},
    {'W', "disable-watch", nullptr,
     [](Draft& d, View) { return !(d.options.server.watch_enabled = false); }, "", "",
     "refuse \"watch\""},
    {'Y', "auth-file", "file",
     [](Draft& d, View v) { return set_text(d.options.server.auth_file, v); }, "the path of a file",
     "",
     "require a name and password from this file, lines of\nuser:password; text protocol, no UDP"},
    {'e', "memory-file", "file",
     [](Draft& d, View v) { return set_text(d.options.store.memory_file, v); },
     "the path of a file", "",
     "keep the items in this file, on a RAM disk (tmpfs), over a\ngraceful restart (SIGUSR1); CPU "
     "engine"},
    {'Z', "enable-ssl", nullptr, [](Draft& d, View) { return d.options.tls.enabled = true; }, "",
     "", "TLS on TCP, with the words ssl_... of -o"},
    {'N', "napi-ids", "num",
     [](Draft& d, View v) { return set_u32(d.options.compat.napi_ids, v, 0, kI32Max); },
     "a number from 0 to 2147483647", "threads are not bound to network queues",
     "accepted, without effect (threads know no NAPI ids)"},
    {kUdpAllow, "udp-allow", "cidr", add_udp_allow,
     "a network such as 192.0.2.0/24 or 2001:db8::/32", "",
     "UDP sources that get replies of any size, may be given\nagain (default: 127.0.0.0/8, ::1)"},
    {kUdpAmplification, "udp-amplification", "num",
     [](Draft& d, View v) { return set_u32(d.options.udp_guard.amplification_max, v, 1, 65535); },
     "a number from 1 to 65535", "",
     "for all other UDP sources: most bytes of reply per byte\nof request (default: 10)"},
    {kNicCache, "nic-cache", "interface", set_nic_cache,
     "a name of 1 to 15 characters; after a comma native or generic", "",
     "an XDP program there answers UDP gets of hot items"},
    {kNicCacheMemory, "nic-cache-memory", "num", set_nic_cache_memory, "a number from 1 to 65536",
     "", "megabytes of copies for it, beside -m (default: 64)"},
    {kNicCacheFill, "nic-cache-fill", "name", set_nic_cache_fill, "reads, frequent or off", "",
     "copy items after gets (reads, default), where memory is\nfull after the second get "
     "(frequent), or never (off)"},
    {kNicCacheWrite, "nic-cache-write", "name", set_nic_cache_write, "forward, through or back", "",
     "experiments: copy changed items again at once (through);\nalso answer sets before the server "
     "has them (back)"},
    {kNicCacheRate, "nic-cache-rate", "num", set_nic_cache_rate, "a number from 0 to 4294967295",
     "",
     "most datagrams a second from one source (of IPv6 a /64);\nothers are dropped (0, default: "
     "all "
     "pass)"},
    {kFrames, "frames", "port", add_frames,
     "pcap:IN,OUT, tap:NAME, tap:NAME,ADDRESS/BITS, dpdk:DEVICE,ARGUMENTS, ring:NAME or "
     "peer:FILE[,BYTES]",
     "",
     "serve UDP from Ethernet frames beside the sockets, may\nbe given again: pcap:IN,OUT (files), "
     "tap:NAME[,ADDRESS/\nBITS] (a TAP interface; needs CAP_NET_ADMIN),\n"
     "dpdk:DEVICE[,ARGUMENTS] (as 0000:3b:00.0 or\nnet_memif0,role=client), ring:NAME (DPDK's "
     "rings, shared\nwith another process), "
     "peer:FILE[,BYTES]\n(another process "
     "writes frames to slots of BYTES there, 256\nby default, and rings the GPU; --gpu-mode=edge)"},
    {kFramesQueues, "frames-queues", "num",
     [](Draft& d, View v) { return set_u32(d.frames_of_dpdk.queues, v, 1, 64); },
     "a number from 1 to 64", "", "queues of the DPDK device (default: 1)"},
    {kFramesThreads, "frames-threads", "num",
     [](Draft& d, View v) {
       d.frames_threads_given = true;
       return set_u32(d.frames_of_dpdk.threads, v, 1, 64);
     },
     "a number from 1 to 64", "", "threads that share these queues (default: one a queue)"},
    {kFramesBurst, "frames-burst", "num",
     [](Draft& d, View v) { return set_u32(d.options.frames_burst, v, 32, 8192); },
     "a number from 32 to 8192", "",
     "the most frames that the engine gets at a time (default:\n64 for a CPU, 1024 for a GPU)"},
    {kFramesDepth, "frames-depth", "num",
     [](Draft& d, View v) { return set_u32(d.options.frames_depth, v, 1, kFramesDepthMax); },
     "a number from 1 to 8", "",
     "bursts that the GPU has at a time, of each thread: more\nfor latency, fewer for rate "
     "(default: 4; up to 8 with\na persistent kernel and few threads)"},
    {kFramesCpus, "frames-cpus", "list", set_frames_cpus, "numbers of CPUs, as 1,4-7", "",
     "CPUs for the threads of the DPDK device, one each"},
    {kFramesKernel, "frames-kernel", "name", set_frames_kernel, "NAME or NAME,ADDRESS/BITS", "",
     "a TAP interface through which the kernel has the frames\nof the DPDK device that are not the "
     "server's, and sends\nits own"},
    {kFramesGpu, "frames-gpu", nullptr, [](Draft& d, View) { return d.frames_gpu = true; }, "", "",
     "buffers of the DPDK device in the GPU's memory, which the\ndevice writes to and sends from "
     "(GPUDirect)"},
    {kUcx, "ucx", "addr", set_ucx, "an address with a port, as host:port, *:port or [ipv6]:port",
     "",
     "serve active messages by UCX beside the sockets, at\nhost:port; with noadmin: before it, as "
     "-l"},
    {kUcxClientMemory, "ucx-client-memory", "num", set_ucx_client_memory,
     "a number from 1 to 1048576", "",
     "megabytes of the store that one endpoint may hold by large\nvalues that it does not fetch, "
     "or "
     "sends (default: a 16th of\n-m, but -I at least)"},
    {kUcxOneSided, "ucx-one-sided", "num", set_ucx_one_sided, "a number from 1 to 1048576", "",
     "an experiment: the number of copies of small items in memory\nthat UCX clients read by "
     "themselves"},
    {kUcxTransports, "ucx-transports", "list", set_ucx_transports,
     "names of UCX's transports, as tcp or posix,tcp", "",
     "the transports that UCX may use (default: UCX_TLS, or UCX's\nchoice without sysv); tcp: no "
     "memory is shared with clients"},
    {kAccess, "access", "file",
     [](Draft& d, View v) { return set_text(d.options.server.access_file, v); },
     "the path of a file", "",
     "what the users of -Y or -S may do: lines USER RIGHTS\nPREFIX..., with r (read), w (write) "
     "and a "
     "(administrate);\nSIGHUP reads it again. CPU engine"},
    {kMetrics, "metrics", "addr", set_metrics,
     "an address with a port, as host:port, *:port or [ipv6]:port", "",
     "serve metrics for Prometheus (/metrics) and a live page\nover HTTP there; measures latency, "
     "as "
     "-o track_latency"},
    {kEngine, "engine", "name", set_engine, "auto, cpu or cuda", "",
     "what runs the requests: cpu, cuda (a GPU), or auto\n(default: what suits sockets, cpu)"},
    {kGpu, "gpu", "num", [](Draft& d, View v) { return set_u32(d.options.gpu.number, v, 0, 1023); },
     "the number of a GPU, from 0", "", "which GPU, with --engine=cuda (default: 0)"},
    {kGpuMode, "gpu-mode", "name", set_gpu_mode, "launch, persistent or edge", "",
     "how batches get to the GPU: launch (default), a\nkernel each, persistent, one that stays, or "
     "edge, as\nevents of a scheduler on the GPU"},
    {kValues, "values", "name", set_values, "device or host", "",
     "where items lie: in the GPU's memory as far as it goes\n(default), or host: only the index "
     "does"},
    {kOnGpuError, "on-gpu-error", "name", set_on_gpu_error, "cpu or exit", "",
     "when the GPU fails: go on with the CPU engine and an\nempty cache (default), or exit"},
    {kSelftest, "selftest", nullptr, [](Draft& d, View) { return d.options.gpu.selftest = true; },
     "", "", "test the GPU and the engine on it for some seconds,\nprint what was found, and exit"},
    {kDoctor, "doctor", nullptr, [](Draft& d, View) { return d.options.process.doctor = true; }, "",
     "",
     "say what this machine lacks for a server with these\noptions, and what mends it, and exit"},
    {kPlan, "plan", "file", [](Draft& d, View v) { return set_text(d.options.process.plan, v); },
     "the path of a file", "",
     "replay a trace of requests (lines time,key,size) for\nseveral sizes around -m; print items, "
     "overhead and hit\nratios of each, and exit"},
    {kNoHugePages, "no-huge-pages", nullptr,
     [](Draft& d, View) { return !(d.options.store.huge_pages = false); }, "", "",
     "items and index in small pages, even where the kernel\nwould give huge ones"},
    {'o', "extended", "words", [](Draft& d, View v) { return apply_extended_words(d, v); },
     "words of -o", "", "words joined by commas:"},
};

const Spec* find_spec(int id) {
  for (const Spec& spec : kSpecs) {
    if (spec.id == id) return &spec;
  }
  return nullptr;
}

// `-t` or `--engine`.
std::string option_name(const Spec& spec) {
  if (spec.id < kUdpAllow) return std::string("-") + static_cast<char>(spec.id);
  return std::string("--") + spec.long_name;
}

struct GetoptTables {
  std::string short_options = ":";  // a leading colon: report a missing value as ':'
  std::vector<option> long_options;
};

GetoptTables getopt_tables() {
  GetoptTables tables;
  for (const Spec& spec : kSpecs) {
    if (spec.id < kUdpAllow) {
      tables.short_options += static_cast<char>(spec.id);
      if (spec.value_name != nullptr) tables.short_options += ':';
    }
    if (spec.long_name != nullptr) {
      const int argument = spec.value_name != nullptr ? required_argument : no_argument;
      tables.long_options.push_back(option{spec.long_name, argument, nullptr, spec.id});
    }
  }
  tables.long_options.push_back(option{nullptr, 0, nullptr, 0});
  return tables;
}

// The error for what getopt_long() refused; `code` is its ':' or '?', `last` the current argument.
std::string getopt_refusal(int code, const char* last) {
  const Spec* const spec = optopt != 0 ? find_spec(optopt) : nullptr;
  if (spec != nullptr && code == ':') {
    return option_name(*spec) + " needs a value: give " + std::string(spec->accepted) + ".";
  }
  if (spec != nullptr)
    return option_name(*spec) + " takes no value, but \"" + std::string(last) + "\" gives one.";
  if (optopt != 0)
    return "there is no option -" + std::string(1, static_cast<char>(optopt)) +
           ": -h lists them all.";
  return "there is no option " + std::string(last) +
         ", or it is short for several: -h lists them all.";
}

bool apply_spec(OptionDraft& draft, const Spec& spec, std::string_view value) {
  if (!spec.apply(draft, value)) {
    if (draft.refusal.empty())
      draft.refusal = refused_value(option_name(spec), value, spec.accepted);
    return false;
  }
  if (!spec.note.empty()) {
    draft.options.notes.push_back(option_name(spec) + " has no effect: " + std::string(spec.note) +
                                  ".");
  }
  return true;
}

bool read_arguments(OptionDraft& draft, int argc, char** argv) {
  const GetoptTables tables = getopt_tables();
  optind = 0;  // glibc: restart getopt
  opterr = 0;
  while (true) {
    const int id =
        getopt_long(argc, argv, tables.short_options.c_str(), tables.long_options.data(), nullptr);
    if (id == -1) break;
    if (id == '?' || id == ':') {
      draft.refusal = getopt_refusal(id, argv[std::max(optind - 1, 0)]);
      return false;
    }
    if (!apply_spec(draft, *find_spec(id), optarg != nullptr ? optarg : "")) return false;
    if (draft.help || draft.version || draft.license)
      return true;  // as in memcached, the first one counts
  }
  if (optind < argc) {
    draft.refusal = "there is no meaning for the argument \"" + std::string(argv[optind]) +
                    "\": options start with -.";
    return false;
  }
  return true;
}

uint32_t cpus_available() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof(set), &set) != 0)
    return 1024;  // more CPUs than a cpu_set_t holds
  return static_cast<uint32_t>(CPU_COUNT(&set));
}

}  // namespace

std::string refused_value(std::string_view option, std::string_view value,
                          std::string_view accepted) {
  std::string text(option);
  text.append(" does not accept \"").append(value).append("\": give ").append(accepted).append(".");
  return text;
}

ParseResult parse_options(int argc, char** argv) {
  OptionDraft draft;
  draft.options.server.threads = std::clamp(cpus_available(), 1u, draft.options.server.threads);
  if (const char* const file = std::getenv("MEMCACHED_PORT_FILENAME"))
    draft.options.listen.port_filename = file;

  if (read_arguments(draft, argc, argv)) {
    if (draft.help) return {std::nullopt, 0, help_text(argv[0])};
    if (draft.version) return {std::nullopt, 0, version_text(argv[0])};
    if (draft.license) return {std::nullopt, 0, license_text(argv[0])};
    draft.refusal = settle(draft);
  }
  if (!draft.refusal.empty())
    return {std::nullopt, kExitUsage, "warpcached: " + draft.refusal + "\n"};
  return {std::move(draft.options), 0, ""};
}

std::string version_text(std::string_view program) {
  const size_t slash = program.rfind('/');
  if (slash != std::string_view::npos) program.remove_prefix(slash + 1);
  const bool is_memcached = program.starts_with("memcached");
  return (is_memcached ? "memcached " + std::string(kMemcachedVersion)
                       : "warpcached " + std::string(version())) +
         "\n";
}

std::string license_text(std::string_view program) {
  return version_text(program) +
         "\nLicensed under the Apache License, Version "
         "2.0:\nhttps://www.apache.org/licenses/LICENSE-2.0\n";
}

std::string help_text(std::string_view program) {
  std::string text = version_text(program);
  for (const Spec& spec : kSpecs) {
    std::string line = spec.id < kUdpAllow ? option_name(spec) : "    ";
    if (spec.id < kUdpAllow && spec.long_name != nullptr) line += ", ";
    if (spec.long_name != nullptr) line += std::string("--") + spec.long_name;
    if (spec.value_name != nullptr) {
      line += std::string(spec.long_name != nullptr ? "=" : " ") + "<" + spec.value_name + ">";
    }
    line.resize(std::max(line.size() + 1, kHelpColumn), ' ');
    for (const char c : spec.help) {
      line += c;
      if (c == '\n') line.append(kHelpColumn, ' ');
    }
    text += line + "\n";
  }
  return text + extended_help();
}

}  // namespace warpcache
