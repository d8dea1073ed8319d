// SPDX-License-Identifier: Apache-2.0
//
// Command-line options with memcached's names. parse_options() turns argv into one plain struct for
// each consumer. It changes no globals and never exits, so main() and the tests use the same
// function.
//
// All options of memcached are accepted. An option without meaning for this server adds one
// sentence to Options::notes, for the log at start-up. A value that is surely a mistake (`-t 4x`,
// `-p 70000`) is refused, even where memcached reads a prefix of it.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace warpcache {

// The exit status for a refused command line (sysexits.h EX_USAGE). memcached's is 1 or 64,
// depending on the option.
inline constexpr int kExitUsage = 64;

// The TLS of an address: none, as -o ssl_verify_mode says, or a prefix of -l (notls:, btls:,
// mtls:).
enum class ListenTls : uint8_t { kNone, kDefault, kServerOnly, kMutual };

// An address to listen at. An empty host means every interface of IPv4 and IPv6. With port 0 the
// kernel chooses (`-p -1`, as in memcached). An IPv6 host has no brackets.
struct ListenAddress {
  std::string host;
  uint16_t port = 0;
  bool admin = true;  // its clients may change the server; false: -l noadmin:...
  ListenTls tls = ListenTls::kNone;
  bool proxied = false;  // -l proxy:...

  bool operator==(const ListenAddress&) const = default;
};

// A network of IPv4 or IPv6 addresses. IPv4 is stored as IPv4-mapped IPv6 (::ffff:a.b.c.d): one
// comparison is enough for both, and the mapped source address of a dual-stack socket matches an
// IPv4 network.
struct Cidr {
  std::array<uint8_t, 16> address{};
  uint8_t prefix_bits = 0;  // 0 to 128, of the mapped form

  [[nodiscard]] bool contains(const std::array<uint8_t, 16>& candidate) const;
  bool operator==(const Cidr&) const = default;
};

struct ListenOptions {
  std::vector<ListenAddress> tcp;        // -p and -l, resolved; empty with -s or -p 0
  std::vector<ListenAddress> udp;        // -U and -l, resolved; empty unless -U
  std::string unix_path;                 // -s; empty: none
  uint32_t unix_mask = 0700;             // -a
  uint32_t backlog = 1024;               // -b
  bool share_ports = false;              // -o share_ports
  std::string port_filename;             // MEMCACHED_PORT_FILENAME; empty: none
  std::optional<ListenAddress> ucx;      // --ucx: active messages
  uint64_t ucx_client_bytes = 0;         // --ucx-client-memory; 0: settle() chooses
  std::string ucx_transports = {};       // --ucx-transports; empty: UCX_TLS, or UCX's choice
  uint32_t ucx_slots = 0;                // --ucx-one-sided, a power of two; 0: none
  std::optional<ListenAddress> metrics;  // --metrics
};

inline constexpr uint32_t kFramesDepthMax = 8;
inline constexpr uint32_t kPeerSlotBytesMax = 16 * 1024;

// A port of Ethernet frames, beside the sockets (--frames).
struct FramesOptions {
  enum class Kind : uint8_t { kPcap, kTap, kDpdk, kPeer, kRing };

  Kind kind = Kind::kPcap;
  std::string input;   // kPcap: the file that frames are read from
  std::string output;  // kPcap: the file that replies are written to
  // kTap: the interface; kDpdk: the device, with its arguments; kPeer: the file of the frames;
  // kRing: the rings' name.
  std::string name;
  uint32_t slot_bytes = 256;  // kPeer: the longest frame
  std::string address;        // kTap: as in 10.9.0.1/24, added to the interface; empty: none
  // kDpdk, kRing: pairs of queues (--frames-queues), and the CPU of each thread that serves them
  // (--frames-cpus); empty: any.
  uint32_t queues = 1;
  std::vector<uint32_t> cpus;
  uint32_t threads = 1;  // that serve it. kDpdk, kRing: they share the queues (--frames-threads)
  // kDpdk: the TAP interface for what is the kernel's (--frames-kernel), and an address as above.
  std::string kernel_interface;
  std::string kernel_address;
  // kDpdk: buffers are in the memory of this GPU (--frames-gpu, --gpu); none: in the host's.
  std::optional<uint32_t> gpu;

  bool operator==(const FramesOptions&) const = default;
};

// The NIC cache (--nic-cache...).
struct NicCacheOptions {
  enum class Mode : uint8_t { kAny, kNative, kGeneric };
  enum class Write : uint8_t { kForward, kThrough, kBack };

  std::string interface;  // empty: none
  Mode mode = Mode::kAny;
  uint32_t memory_mb = 64;
  bool read_allocate = true;      // --nic-cache-fill=off clears it
  bool admit_frequent = false;    // --nic-cache-fill=frequent
  Write write = Write::kForward;  // --nic-cache-write
  uint32_t source_rate_max = 0;   // --nic-cache-rate: datagrams a second; 0: all
};

struct UdpGuardOptions {
  std::vector<Cidr> allow;  // --udp-allow; without it, loopback
  uint32_t amplification_max =
      10;  // --udp-amplification: reply bytes per request byte, for all other sources
};

enum class ProtocolChoice : uint8_t { kAuto, kText, kBinary };  // -B
enum class EngineChoice : uint8_t { kAuto, kCpu, kCuda };       // --engine
enum class GpuMode : uint8_t { kLaunch, kPersistent, kEdge };   // --gpu-mode
enum class ValuesChoice : uint8_t { kDevice, kHost };           // --values
enum class GpuErrorChoice : uint8_t { kCpu, kExit };            // --on-gpu-error

struct StoreOptions {
  uint64_t memory_bytes = uint64_t{64} << 20;        // -m: index and values together
  bool memory_given = false;                         // -m was given; else the engine may choose
  uint64_t item_size_max_bytes = uint64_t{1} << 20;  // -I
  bool evict = true;                                 // -M clears it
  bool use_cas = true;                               // -C clears it
  bool huge_pages = true;                            // --no-huge-pages clears it, -L sets it
  std::string memory_file;                           // -e; empty: items end with the process
  uint32_t hash_power = 0;                           // -o hashpower; 0: the store chooses
  uint32_t flushed_prefixes_max = 64;                // -o flush_prefixes; 0: refuse flush_prefix
};

struct ServerOptions {
  uint32_t threads = 4;              // -t; default: 4, or the number of CPUs if that is less
  uint32_t connections_max = 1024;   // -c
  bool connections_max_fast = true;  // -o (no_)maxconns_fast: refuse, instead of accepting later
  uint32_t idle_timeout_s = 0;       // -o idle_timeout; 0: none
  uint32_t stall_timeout_s = 60;     // -o stall_timeout; 0: none
  uint32_t requests_per_event_max = 1024;           // -R
  uint64_t read_buffer_bytes_max = 0;               // -o read_buf_mem_limit; 0: no limit
  ProtocolChoice protocol = ProtocolChoice::kAuto;  // -B
  EngineChoice engine = EngineChoice::kAuto;        // --engine
  bool flush_enabled = true;                        // -F clears it
  bool shutdown_enabled = false;                    // -A
  bool dump_enabled = true;                         // -X clears it
  bool admin_enabled = true;                        // -o no_admin clears it
  bool watch_enabled = true;                        // -W clears it
  std::string auth_file;                            // -Y; empty: no authentication
  bool sasl = false;                                // -S
  std::string access_file;                          // --access; empty: everyone may do all
  std::string sasl_password_file;                   // MEMCACHED_SASL_PWDB, with -S; empty: none
  // Clients must log in.
  [[nodiscard]] bool authentication() const { return sasl || !auth_file.empty(); }
};

// For --engine=cuda.
struct GpuOptions {
  uint32_t number = 0;                             // --gpu
  GpuMode mode = GpuMode::kLaunch;                 // --gpu-mode
  ValuesChoice values = ValuesChoice::kDevice;     // --values
  GpuErrorChoice on_error = GpuErrorChoice::kCpu;  // --on-gpu-error
  bool selftest = false;                           // --selftest
};

// -Z and the words of -o that begin with ssl_.
struct TlsOptions {
  bool enabled = false;        // -Z
  std::string chain_cert;      // ssl_chain_cert
  std::string key;             // ssl_key
  uint32_t verify_mode = 0;    // ssl_verify_mode: 0 none, 1 request, 2 require, 3 once
  uint32_t key_format = 1;     // ssl_keyformat: 1 PEM, 2 DER
  std::string ciphers;         // ssl_ciphers; empty: OpenSSL's
  std::string ca_cert;         // ssl_ca_cert; empty: none
  uint32_t wbuf_kib = 16;      // ssl_wbuf_size
  bool session_cache = false;  // ssl_session_cache
  bool kernel_tls = false;     // ssl_kernel_tls
  uint32_t version_min = 2;    // ssl_min_version: TLS 1.x
};

struct StatsOptions {
  bool detail_enabled = false;  // set by -D
  char prefix_delimiter = ':';  // -D
  bool track_sizes = false;     // -o track_sizes
  bool track_latency = false;   // -o track_latency
  bool track_keys = false;      // -o track_keys
  uint32_t slow_us = 0;         // -o slow_log; 0: none
};

// With -d, all paths of Options are absolute, because the daemon changes its directory.
struct ProcessOptions {
  bool doctor = false;           // --doctor
  std::string plan;              // --plan: a trace; empty: no plan is asked for
  bool daemonize = false;        // -d
  bool core_dumps = false;       // -r
  bool lock_memory = false;      // -k
  bool drop_privileges = false;  // -o drop_privileges
  uint32_t verbosity = 0;        // -v, -vv, -vvv
  std::string user;              // -u; empty: do not change the user
  std::string pid_file;          // -P; empty: none
};

// Values of memcached's options that have no effect here, except that `stats settings` shows them.
struct CompatOptions {
  double growth_factor = 1.25;      // -f
  uint32_t chunk_size = 48;         // -n
  uint32_t tail_repair_time_s = 0;  // -o tail_repair_time
  std::string hash_algorithm = "murmur3";
  bool slab_reassign = true;
  uint32_t slab_automove = 1;
  double slab_automove_ratio = 0.8;
  uint32_t slab_automove_window = 10;
  uint32_t napi_ids = 0;
  double slab_automove_freeratio = 0.01;
  uint32_t slab_chunk_max_bytes = 512u << 10;
  bool lru_crawler = true;
  uint32_t lru_crawler_sleep_us = 100;
  uint32_t lru_crawler_tocrawl = 0;
  bool lru_maintainer = true;
  uint32_t hot_lru_pct = 20;
  uint32_t warm_lru_pct = 40;
  double hot_max_factor = 0.2;
  double warm_max_factor = 2.0;
  bool temp_lru = false;
  uint32_t temporary_ttl_s = 61;
  uint32_t worker_logbuf_kib = 64;
  uint32_t watcher_logbuf_kib = 256;
};

struct Options {
  ListenOptions listen;
  std::vector<FramesOptions> frames;
  uint32_t frames_burst = 0;  // --frames-burst: the most frames of a burst; 0: the engine's choice
  // --frames-depth: bursts that a CUDA engine has at a time; 0: the server's choice
  uint32_t frames_depth = 0;
  // Threads that serve ports of frames.
  uint32_t frame_threads() const {
    uint32_t threads = 0;
    for (const FramesOptions& one : frames) threads += one.threads;
    return threads;
  }
  // The file of the doorbells that a peer of --frames=peer rings; empty: there is no peer.
  std::string doorbells_file() const {
    for (const FramesOptions& one : frames) {
      if (one.kind == FramesOptions::Kind::kPeer) return one.name + ".doorbells";
    }
    return "";
  }
  // Some requests come in frames that the host does not see before a GPU has answered them.
  bool frames_are_hidden() const {
    for (const FramesOptions& one : frames) {
      if (one.kind == FramesOptions::Kind::kPeer || one.gpu.has_value()) return true;
    }
    return false;
  }
  NicCacheOptions nic_cache;
  UdpGuardOptions udp_guard;
  StoreOptions store;
  ServerOptions server;
  GpuOptions gpu;
  TlsOptions tls;
  StatsOptions stats;
  ProcessOptions process;
  CompatOptions compat;
  // The values as given, for `stats settings` and the banner: -1 asks for any free port.
  int tcp_port = 11211;
  int udp_port = 0;
  std::string listen_text;  // the -l values joined by commas; empty: none given
  // One sentence for each option that was accepted without effect. Log each once.
  std::vector<std::string> notes;
};

// Either options, or a text and an exit status: 0 with a text for standard output (-h, -V, -i), or
// kExitUsage with one sentence for standard error.
struct ParseResult {
  std::optional<Options> options;
  int exit_status = 0;
  std::string text;  // ends with a newline unless empty
};

// Parses argv[1..argc). Reads MEMCACHED_PORT_FILENAME and MEMCACHED_SASL_PWDB from the environment
// and the number of CPUs from the kernel. Changes only the parser state of getopt(3), so only one
// thread at a time may call it. REQUIRES: argc >= 1, argv[argc] == nullptr. Permutes the array;
// copies the strings that it keeps.
[[nodiscard]] ParseResult parse_options(int argc, char** argv);

// The text of -h, -V and -i of a program that was started as `program` (argv[0]). Test suites of
// memcached's clients start a program of that name and look for its version: if the name begins
// with "memcached", so does the text, with memcached's version.
[[nodiscard]] std::string help_text(std::string_view program);
[[nodiscard]] std::string version_text(std::string_view program);
[[nodiscard]] std::string license_text(std::string_view program);

}  // namespace warpcache
