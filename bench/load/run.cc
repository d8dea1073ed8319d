// SPDX-License-Identifier: Apache-2.0
#include "load/run.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <thread>

#include "base/cpu_list.h"
#include "io/frames/dpdk/dpdk_ports.h"
#include "io/frames/peer_client.h"
#include "load/frame_worker.h"
#include "load/socket_worker.h"
#include "load/ucx_worker.h"

namespace warpcache::load {
namespace {

constexpr double kNsPerSecond = 1e9;
constexpr uint64_t kLookEveryNs = 5'000'000;
constexpr uint32_t kLinkWaitMs = 10'000;  // for the server's side of a device

double own_cpu_s() {
  rusage use;
  getrusage(RUSAGE_SELF, &use);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
  };
  return seconds(use.ru_utime) + seconds(use.ru_stime);
}

void add_up(const Worker& worker, Interval* all) {
  const Counters& counters = worker.counters();
  all->hits += counters.hits.get();
  all->misses += counters.misses.get();
  for (size_t i = 0; i < kOperations; ++i) {
    all->requests += counters.requests[i].get();
    all->latency_ns.add(counters.latency_ns[i]);
  }
}

Moment moment_of(const Interval& interval) {
  const Histogram& latency = interval.latency_ns;
  return {interval.at_s,          static_cast<double>(interval.requests) / interval.seconds,
          latency.mean(),         latency.quantile(0.5),
          latency.quantile(0.99), latency.quantile(1)};
}

}  // namespace

Run::Run(const Options& options, const Keyspace& keys, Distribution* distribution)
    : options_(options), keys_(keys), distribution_(distribution) {}

bool Run::connect(std::string* why) {
  Address address;
  if (!resolve(options_.server, options_.udp, &address, why)) return false;
  if (!options_.frames.empty()) return connect_by_frames(address, why);
  for (uint32_t i = 0; i < options_.threads && options_.ucx_port != 0; ++i) {
    workers_.push_back(
        make_ucx_worker(options_, keys_, distribution_, i, &stop_, host_of(address), why));
    if (workers_.back() == nullptr) return false;
  }
  for (uint32_t i = 0; i < options_.threads && options_.ucx_port == 0; ++i) {
    auto worker = std::make_unique<SocketWorker>(options_, keys_, distribution_, i, &stop_);
    if (!worker->connect(address, why)) return false;
    workers_.push_back(std::move(worker));
  }
  return true;
}

bool Run::connect_by_frames(const Address& address, std::string* why) {
  sockaddr_in server = {};
  sockaddr_in client = {};
  if (address.bytes.ss_family != AF_INET ||
      inet_pton(AF_INET, options_.frames_source.c_str(), &client.sin_addr) != 1) {
    *why = "frames need IPv4 addresses of client and server";
    return false;
  }
  std::memcpy(&server, &address.bytes, sizeof server);
  std::vector<std::unique_ptr<io::FramePort>> ports;
  if (options_.frames.starts_with(kPeerPrefix)) {
    *why = io::PeerClient::open(options_.frames.substr(kPeerPrefix.size()), &ports.emplace_back());
  } else {
    io::DpdkSettings settings;
    settings.is_ring_peer = options_.frames.starts_with(kRingPrefix);
    static_assert(kRingPrefix.size() == kDpdkPrefix.size());
    (settings.is_ring_peer ? settings.ring : settings.device) =
        options_.frames.substr(kDpdkPrefix.size());
    settings.queues = settings.threads = options_.threads;
    settings.link_wait_ms = kLinkWaitMs;
    *why = io::open_dpdk_ports(settings, &ports);
  }
  if (!why->empty()) return false;
  for (uint32_t i = 0; i < options_.threads; ++i) {
    auto worker = std::make_unique<FrameWorker>(options_, keys_, distribution_, i, &stop_,
                                                std::move(ports[i]), client, server);
    if (!worker->wait_for_server(kLinkWaitMs)) {
      *why = "no answer to frames of queue " + std::to_string(i);
      return false;
    }
    workers_.push_back(std::move(worker));
  }
  return true;
}

void Run::fill() {
  std::vector<std::thread> threads;
  for (const auto& worker : workers_) threads.emplace_back([&worker] { worker->fill(); });
  for (std::thread& thread : threads) thread.join();
}

std::string Run::failure() const {
  for (const auto& worker : workers_) {
    if (!worker->failure().empty()) return worker->failure();
  }
  return "";
}

RunStatus Run::execute(const std::function<void(const Interval&)>& progress, Summary* summary,
                       std::string* why) {
  if (!connect(why)) return RunStatus::kNoServer;
  if (options_.fill) fill();
  Window window;
  window.begin_ns = steady_now_ns() + static_cast<uint64_t>(options_.warm_up_s * kNsPerSecond);
  if (options_.requests == 0) {
    window.end_ns = window.begin_ns + static_cast<uint64_t>(options_.seconds * kNsPerSecond);
  }
  loading_ = options_.threads;
  std::vector<std::thread> threads;
  const std::vector<uint32_t> cpus = read_cpu_list(options_.cpus);
  for (const auto& worker : workers_) {
    const size_t number = threads.size();
    threads.emplace_back([this, &worker, &window, &cpus, number] {
      if (!cpus.empty()) (void)pin_thread(cpus[number]);
      worker->load(window);
      loading_.fetch_sub(1);
    });
  }
  watch(window, progress, summary);
  for (std::thread& thread : threads) thread.join();
  if (options_.requests > 0 && summary->seconds > 0) {
    uint64_t last_ns = window.begin_ns + 1;
    for (const auto& worker : workers_) last_ns = std::max(last_ns, worker->last_reply_ns());
    summary->seconds = static_cast<double>(last_ns - window.begin_ns) / kNsPerSecond;
  }
  sum_up(summary);
  *why = failure();
  return why->empty() ? RunStatus::kDone : RunStatus::kLostServer;
}

// Sleeps until the window or all threads have ended. Reads the CPU time of both processes at the
// start and the end of the window.
void Run::watch(const Window& window, const std::function<void(const Interval&)>& progress,
                Summary* summary) {
  Interval before;
  ProcessUse server_before, server_after;
  double own_before = own_cpu_s();
  bool begun = false;
  uint64_t began_ns = 0, reported_ns = steady_now_ns(), now_ns = reported_ns;
  while (loading_ > 0 && now_ns < window.end_ns) {
    const uint64_t next_ns = begun ? window.end_ns : window.begin_ns;
    const uint64_t wait_ns = std::min(kLookEveryNs, next_ns - std::min(now_ns, next_ns));
    std::this_thread::sleep_for(std::chrono::nanoseconds(wait_ns));
    now_ns = steady_now_ns();
    if (!begun && now_ns >= window.begin_ns) {
      begun = true;
      read_process(options_.server_pid, &server_before);
      own_before = own_cpu_s();
      began_ns = reported_ns = now_ns;
    }
    if (static_cast<double>(now_ns - reported_ns) < options_.interval_s * kNsPerSecond) continue;
    Interval all;
    for (const auto& worker : workers_) add_up(*worker, &all);
    Interval since = all;
    since.at_s =
        (static_cast<double>(now_ns) - static_cast<double>(window.begin_ns)) / kNsPerSecond;
    since.seconds = static_cast<double>(now_ns - reported_ns) / kNsPerSecond;
    since.requests -= before.requests;
    since.hits -= before.hits;
    since.misses -= before.misses;
    since.latency_ns.subtract(before.latency_ns);
    progress(since);
    if (begun) summary->moments.push_back(moment_of(since));
    before = all;
    reported_ns = now_ns;
  }
  if (!begun) return;
  // This thread may wake a little after the window starts. The CPU time from then on is scaled to
  // the whole window.
  const uint64_t end_ns = std::min(now_ns, window.end_ns);
  summary->seconds = static_cast<double>(end_ns - window.begin_ns) / kNsPerSecond;
  const double scale = summary->seconds * kNsPerSecond / static_cast<double>(end_ns - began_ns + 1);
  summary->generator_cpu_s = (own_cpu_s() - own_before) * scale;
  summary->server_measured = read_process(options_.server_pid, &server_after);
  summary->server_cpu_s =
      static_cast<double>(server_after.cpu_ns - server_before.cpu_ns) / kNsPerSecond * scale;
  summary->server_resident_kib = server_after.resident_kib;
}

void Run::sum_up(Summary* summary) const {
  for (const auto& worker : workers_) {
    const Counters& counters = worker->counters();
    for (size_t i = 0; i < kOperations; ++i) {
      summary->requests[i] += counters.requests[i].get();
      summary->latency_ns[i].add(counters.latency_ns[i]);
      summary->all_latency_ns.add(counters.latency_ns[i]);
    }
    summary->delay_ns.add(counters.delay_ns);
    if (options_.rate > 0) {
      ThreadSummary& thread = summary->threads.emplace_back();
      thread.delay_ns.add(counters.delay_ns);
      for (size_t i = 0; i < kOperations; ++i) {
        thread.requests += counters.requests[i].get();
        thread.latency_ns.add(counters.latency_ns[i]);
      }
    }
    summary->hits += counters.hits.get();
    summary->misses += counters.misses.get();
    summary->wrong += counters.wrong.get();
    summary->refused += counters.refused.get();
    summary->out_of_memory += counters.out_of_memory.get();
    summary->lost += counters.lost.get();
    summary->unsent += counters.unsent.get();
    summary->bytes_sent += counters.bytes_sent.get();
    summary->bytes_received += counters.bytes_received.get();
    const Findings& findings = worker->findings();
    if (summary->first_wrong.empty()) summary->first_wrong = findings.first_wrong;
    if (summary->first_refusal.empty()) summary->first_refusal = findings.first_refusal;
  }
}

}  // namespace warpcache::load
