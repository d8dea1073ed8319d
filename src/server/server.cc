// SPDX-License-Identifier: Apache-2.0
#include "server/server.h"

#include <pthread.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <cstddef>
#include <string_view>
#include <utility>

#include "base/assert.h"
#include "base/bits.h"
#include "base/cpu_list.h"
#include "io/socket/accept/inherited.h"
#include "options/logging.h"
#include "server/frame_ports.h"
#include "server/open_nic_cache.h"
#include "server/settled_engine.h"
#include "worker/peer_address.h"

namespace warpcache::server {
namespace {

constexpr uint32_t kWorkersPerHandshaker = 4;

io::TlsUse tls_use(ListenTls tls) {
  switch (tls) {
    case ListenTls::kNone:
      break;
    case ListenTls::kDefault:
      return io::TlsUse::kDefault;
    case ListenTls::kServerOnly:
      return io::TlsUse::kServerOnly;
    case ListenTls::kMutual:
      return io::TlsUse::kMutual;
  }
  return io::TlsUse::kNone;
}

io::ListenTarget target_of(const ListenAddress& address, bool share) {
  return {address.host, address.port, address.admin, tls_use(address.tls), address.proxied, share};
}

io::TlsSettings settings_of(const TlsOptions& options) {
  constexpr uint32_t kDer = 2;
  return {.chain_cert = options.chain_cert,
          .key = options.key,
          .key_is_der = options.key_format == kDer,
          .ca_cert = options.ca_cert,
          .ciphers = options.ciphers,
          .verify = static_cast<io::TlsVerify>(options.verify_mode),
          .version_min = static_cast<uint8_t>(options.version_min),
          .session_cache = options.session_cache,
          .kernel_tls = options.kernel_tls};
}

void name_thread(std::thread& thread, const std::string& name) {
  (void)pthread_setname_np(thread.native_handle(), name.c_str());
}

}  // namespace

Server::Server(const Options& options)
    : options_(options),
      inspection_(std::make_unique<admin::Inspection>(options.stats)),
      watchers_(std::make_unique<admin::Watchers>(size_t{options.compat.worker_logbuf_kib} << 10,
                                                  size_t{options.compat.watcher_logbuf_kib} << 10)),
      metrics_(options) {}

Server::~Server() {
  begin_stop(admin::StopKind::kNow);
  finish_stop();
}

std::string Server::open_tls() {
  if (!options_.tls.enabled) return "";
  std::string failure = io::open_tls(settings_of(options_.tls), &tls_);
  if (!failure.empty()) return failure;
  if (const std::string warning = tls_->warning(); !warning.empty()) spdlog::warn("{}", warning);
  state_.refresh_certificates = [this] { return refresh_certificates(); };
  return "";
}

// Any thread.
std::string Server::refresh_certificates() {
  std::string failure = tls_->load();
  if (!failure.empty()) return failure;
  spdlog::info("the certificate {} was read again", options_.tls.chain_cert);
  if (const std::string warning = tls_->warning(); !warning.empty()) spdlog::warn("{}", warning);
  return "";
}

std::string Server::open_ports() {
  // First, because -l may name an address of a TAP interface.
  for (const FramesOptions& frames : options_.frames) {
    std::vector<std::unique_ptr<io::FramePort>> ports;
    std::string failure = open_frame_ports(frames, &ports);
    if (!failure.empty()) return "--frames=" + failure + ".";
    for (size_t i = 0; i < ports.size(); ++i) {
      FrameThread& made = frames_.emplace_back();
      made.port = std::move(ports[i]);
      if (!frames.cpus.empty()) made.cpu = frames.cpus[i];
    }
  }
  const io::TlsUse tls = tls_ == nullptr ? io::TlsUse::kNone : io::TlsUse::kDefault;
  std::string failure =
      io::take_inherited({tls, static_cast<int>(options_.listen.backlog), options_.server.threads},
                         listeners_, udp_listeners_);
  if (!failure.empty()) return failure;
  inherited_ = !listeners_.empty() || !udp_listeners_.empty();
  if (inherited_) {
    spdlog::info("serving the sockets of LISTEN_FDS; -p, -U, -l, -s and -o share_ports are unused");
  } else {
    failure = open_sockets();
    if (!failure.empty()) return failure;
  }
  failure = metrics_.open();
  if (!failure.empty()) return failure;
  if (options_.server.authentication() && !udp_listeners_.empty()) {
    return "-U: UDP has no way to log in, so it cannot be used with -Y or -S.";
  }
  for (const io::Listener& listener : listeners_) {
    if (!listener.is_unix) ports_.push_back({false, listener.ipv6, listener.host, listener.port});
  }
  for (const io::UdpListener& listener : udp_listeners_) {
    ports_.push_back({true, listener.ipv6, listener.host, listener.port});
  }
  if (options_.nic_cache.interface.empty()) return "";
  return open_nic_cache(options_, ports_, &nic_cache_);
}

// Those of -p, -U and -l.
std::string Server::open_sockets() {
  std::vector<std::string> skipped;
  for (const ListenAddress& address : options_.listen.tcp) {
    std::string failure =
        io::open_tcp(target_of(address, options_.listen.share_ports),
                     static_cast<int>(options_.listen.backlog), listeners_, skipped);
    if (!failure.empty()) return failure;
  }
  for (const ListenAddress& address : options_.listen.udp) {
    std::string failure = io::open_udp(target_of(address, options_.listen.share_ports),
                                       options_.server.threads, udp_listeners_, skipped);
    if (!failure.empty()) return failure;
  }
  for (const std::string& sentence : skipped) spdlog::warn("{}", sentence);
  return "";
}

std::string Server::open_backend() {
  store::CopyHooks copies;
  if (nic_cache_ != nullptr) copies = nic_cache_->hooks();
  if (options_.listen.ucx_slots != 0) {
    one_sided_ = std::make_unique<OneSided>(options_.listen.ucx_slots);
    copies = one_sided_->hooks();
  }
  if (options_.server.engine == EngineChoice::kCuda) {
    const auto stop = [this] {
      failed_.store(true);
      stop_request_.ask(admin::StopKind::kNow);
    };
    backend_ = make_cuda_backend(options_, watchers_.get(), stop, copies);
    if (backend_ == nullptr) return "--engine=cuda: this server was built without CUDA.";
  } else {
    backend_ = make_cpu_backend(options_, watchers_.get(), copies);
  }
  std::string failure = backend_->start();
  state_.memory_limit_bytes.store(backend_->memory_bytes());
  return failure;
}

std::string Server::start() {
  if (!options_.server.auth_file.empty()) {
    std::string failure = auth_.load(options_.server.auth_file);
    if (!failure.empty()) return failure;
  }
  if (options_.server.sasl) {
    sasl_ = std::make_unique<admin::Sasl>(options_.server.sasl_password_file);
    std::string failure = sasl_->open();
    if (!failure.empty()) return failure;
  }
  if (!options_.server.access_file.empty()) {
    std::string failure = access_.load(options_.server.access_file);
    if (!failure.empty()) return failure;
  }
  if (!options_.listen.unix_path.empty() && !inherited_) {
    std::string failure = io::open_unix(options_.listen.unix_path, options_.listen.unix_mask,
                                        static_cast<int>(options_.listen.backlog), listeners_);
    if (!failure.empty()) return failure;
  }
  std::string failure = open_backend();
  if (!failure.empty()) return failure;
  acceptor_ = std::make_unique<io::Acceptor>(
      io::AcceptorConfig{options_.server.connections_max, options_.server.connections_max_fast},
      std::exchange(listeners_, {}));
  const bool proxied = std::any_of(options_.listen.tcp.begin(), options_.listen.tcp.end(),
                                   [](const ListenAddress& one) { return one.proxied; });
  if (tls_ != nullptr || proxied) {
    io::HandshakesConfig config;
    config.threads = divided_up(options_.server.threads, kWorkersPerHandshaker);
    config.on_failure = [this](const io::NewStream& stream, std::string_view why) {
      if ((watchers_->wanted() & engine::kWatchConnections) == 0) return;
      const int fd = stream.fd.get();
      const bool proxied_client = stream.client != nullptr;
      watchers_->handshake_failed(
          fd, proxied_client ? worker::peer_of(*stream.client) : worker::peer_of(fd), why);
    };
    handshakes_ = std::make_unique<io::Handshakes>(config, tls_.get(), acceptor_->budget());
  }
  stats_ = std::make_unique<ServerStats>(backend_->store(), state_, *acceptor_, *watchers_,
                                         tls_.get(), handshakes_.get());
  stats_->set_nic_cache(nic_cache_.get());
  stats_->set_slots(one_sided_ == nullptr ? nullptr : &one_sided_->slots());
  admin::Access* access = options_.server.access_file.empty() ? nullptr : &access_;
  const AuthFile* auth = options_.server.auth_file.empty() ? nullptr : &auth_;
  admin_ = std::make_unique<admin::Admin>(
      options_, backend_->store(), *stats_, long_replies_, *watchers_, *inspection_,
      admin::Logins{auth, sasl_.get(), access}, state_, stop_request_);
  failure = make_workers();
  if (!failure.empty()) return failure;
  long_replies_.start();
  failure = metrics_.start(*stats_, *inspection_, backend_->describe());
  if (!failure.empty()) return failure;
  failure = acceptor_->listen();
  if (failure.empty() && log_verbosity() >= kVerbosityOfCommands) log_listeners();
  return failure;
}

// Logs the listeners in memcached's words, because some programs wait for these lines.
void Server::log_listeners() const {
  const uint8_t protocol = worker_config().protocol;
  const char* const name = protocol == protocol::kProtocolText     ? "ascii"
                           : protocol == protocol::kProtocolBinary ? "binary"
                                                                   : "auto-negotiate";
  std::string lines;
  for (const io::ListenerInfo& listener : acceptor_->listener_infos()) {
    lines += "<" + std::to_string(listener.fd) + " server listening (" + name + ")\n";
  }
  for (const int fd : udp_fds_) lines += "<" + std::to_string(fd) + " server listening (udp)\n";
  write_log(lines);
}

void Server::serve() {
  std::vector<io::ConnectionSink*> sinks;
  attached_.emplace(static_cast<std::ptrdiff_t>(workers_.size() + frames_.size()));
  workers_running_.store(workers_.size() + frames_.size());
  for (WorkerThread& worker : workers_) {
    sinks.push_back(worker.transport.get());
    worker.thread = std::thread([this, &worker] { run_worker(worker); });
    name_thread(worker.thread, "worker-" + std::to_string(&worker - workers_.data()));
  }
  for (FrameThread& frames : frames_) {
    frames.thread = std::thread([this, &frames] { run_frames(frames); });
    name_thread(frames.thread, "frames-" + std::to_string(&frames - frames_.data()));
  }
  attached_->wait();
  if (nic_cache_ != nullptr) {
    nic_cache_store_ = backend_->nic_cache_access();
    nic_cache_->start(*nic_cache_store_);
  }
  if (handshakes_ != nullptr) handshakes_->start(sinks);
  acceptor_->start(std::move(sinks), handshakes_.get());
}

// The main function of a worker's thread. Before it ends, its engine releases what it holds; so all
// engines have done so when finish_stop() has joined the threads.
void Server::run_worker(const WorkerThread& worker) {
  worker.engine->attach_thread();
  attached_->count_down();
  worker.loop->run();
  worker.engine->release_device();
  worker_ended();
}

// The main function of a frame port's thread, likewise. A server without sockets ends with its last
// port.
void Server::run_frames(const FrameThread& frames) {
  static_assert(kFramesDepthMax <= io::kFrameBurstsMax);
  if (frames.cpu.has_value() && !pin_thread(*frames.cpu)) {
    spdlog::warn("frames of {} are not bound to CPU {}", frames.port->describe(), *frames.cpu);
  }
  frames.engine->attach_thread();
  attached_->count_down();
  frames.loop->run();
  frames.engine->release_device();
  const io::FrameCounters& counters = frames.port->counters();
  if (const std::string failure = frames.port->failure(); !failure.empty()) {
    spdlog::error("frames of {} have ended: {}", frames.port->describe(), failure);
  }
  spdlog::info("frames of {} have ended: {} received, {} requests, {} sent",
               frames.port->describe(), counters.received.get(), counters.requests.get(),
               counters.sent.get());
  const bool last = frames_running_.fetch_sub(1) == 1;
  const bool has_sockets = inherited_ || !ports_.empty() || !options_.listen.unix_path.empty();
  if (last && !has_sockets) stop_request_.ask(admin::StopKind::kGraceful);
  worker_ended();
}

void Server::worker_ended() {
  if (workers_running_.fetch_sub(1) == 1) ended_.ask(admin::StopKind::kNow);
}

worker::WorkerConfig Server::worker_config() const {
  worker::WorkerConfig config;
  config.item_size_max = static_cast<uint32_t>(options_.store.item_size_max_bytes);
  config.cas_enabled = options_.store.use_cas;
  config.authentication = options_.server.authentication();
  if (options_.server.protocol == ProtocolChoice::kText) {
    config.protocol = protocol::kProtocolText;
  } else if (options_.server.protocol == ProtocolChoice::kBinary) {
    config.protocol = protocol::kProtocolBinary;
  }
  config.watch = watchers_.get();
  config.timing = &inspection_->timings;
  config.requests_per_stream_max = options_.server.requests_per_event_max;
  return config;
}

io::UdpGuard Server::udp_guard() const {
  std::vector<io::Network> allowed;
  for (const Cidr& cidr : options_.udp_guard.allow) {
    allowed.push_back({cidr.address, cidr.prefix_bits});
  }
  return {std::move(allowed), options_.udp_guard.amplification_max};
}

std::string Server::make_workers() {
  io::SocketTransportConfig config;
  config.idle_timeout_s = options_.server.idle_timeout_s;
  config.stall_timeout_s = options_.server.stall_timeout_s;
  config.input_bytes_max = options_.server.read_buffer_bytes_max / options_.server.threads;
  config.unix_path = options_.listen.unix_path;
  if (std::string failure = open_messages(); !failure.empty()) {
    return "--ucx=" + ucx_text() + ": " + failure + ".";
  }
  workers_.reserve(options_.server.threads);
  for (uint32_t i = 0; i < options_.server.threads; ++i) {
    std::vector<io::UdpSocket> udp_sockets;
    for (io::UdpListener& listener : udp_listeners_) {
      udp_fds_.push_back(listener.fds[i].get());
      stats_->add_udp(listener.fds[i].get());
      udp_sockets.push_back({std::move(listener.fds[i]), listener.admin});
    }
    // Added to workers_ only when complete, so that begin_stop() meets no incomplete worker.
    WorkerThread worker;
    Backend::WorkerEngine made;
    std::string failure = backend_->make_engine(*admin_, &made);
    if (!failure.empty()) return failure;
    worker.engine = settled(std::move(made.engine));
    worker.transport = std::make_unique<io::SocketTransport>(config, acceptor_->budget(),
                                                             std::move(udp_sockets), udp_guard());
    io::Transport* transport = worker.transport.get();
    if (!message_ports_.empty()) {
      join_messages(worker, *message_ports_[i]);
      transport = worker.joined.get();
    }
    worker.loop = std::make_unique<worker::Worker>(worker_config(), *transport, *worker.engine);
    stats_->add_worker(*made.counters, *worker.transport, worker.messages.get());
    workers_.push_back(std::move(worker));
  }
  udp_listeners_.clear();
  for (FrameThread& frames : frames_) {
    std::string failure = make_frame_worker(frames);
    if (!failure.empty()) return failure;
  }
  frames_running_.store(frames_.size());
  return "";
}

// With write-back, whoever uses the store takes over first what the NIC cache's program accepted.
std::unique_ptr<engine::Engine> Server::settled(std::unique_ptr<engine::Engine> engine) {
  if (nic_cache_ == nullptr || options_.nic_cache.write != NicCacheOptions::Write::kBack) {
    return engine;
  }
  return std::make_unique<SettledEngine>(std::move(engine), *nic_cache_);
}

std::string Server::open_messages() {
  const auto& ucx = options_.listen.ucx;
  if (!ucx.has_value()) return "";
  std::string failure = io::open_ucx_ports({ucx->host, ucx->port, options_.server.threads,
                                            one_sided_ != nullptr, options_.listen.ucx_transports},
                                           &message_ports_);
  if (!failure.empty() || one_sided_ == nullptr) return failure;
  one_sided_->start(backend_->nic_cache_access());
  return one_sided_->open(*message_ports_[0]);
}

// The worker serves active messages too.
void Server::join_messages(WorkerThread& worker, io::AmPort& port) {
  io::AmTransportConfig config;
  config.idle_timeout_s = options_.server.idle_timeout_s;
  config.stall_timeout_s = options_.server.stall_timeout_s;
  config.admin = options_.listen.ucx->admin;
  config.client_memory_max = options_.listen.ucx_client_bytes;
  config.address = ucx_text();
  if (one_sided_ != nullptr) {
    config.slots = one_sided_->description();
    config.copy = [this](Bytes key) { one_sided_->copy(key); };
  }
  worker.messages = std::make_unique<io::AmTransport>(config, port, acceptor_->budget());
  worker.joined = std::make_unique<io::JoinedTransport>(*worker.transport, *worker.messages);
}

std::string Server::ucx_text() const {
  const auto& ucx = options_.listen.ucx;
  if (!ucx.has_value()) return "";
  const bool ipv6 = ucx->host.find(':') != std::string::npos;
  const std::string host = ucx->host.empty() ? "0.0.0.0" : ipv6 ? "[" + ucx->host + "]" : ucx->host;
  return host + ":" + std::to_string(ucx->port);
}

std::string Server::make_frame_worker(FrameThread& frames) {
  Backend::WorkerEngine made;
  std::string failure = backend_->make_engine(*admin_, &made);
  if (!failure.empty()) return failure;
  worker::FrameWorkerConfig config;
  config.packets.udp_port = frames_udp_port();
  config.packets.protocol = worker_config().protocol;
  frames.engine = settled(std::move(made.engine));
  config.burst_packets_max =
      options_.frames_burst != 0 ? options_.frames_burst : frames.engine->packets_per_burst();
  frames.loop =
      std::make_unique<worker::FrameWorker>(config, udp_guard(), *frames.port, *frames.engine);
  failure = frames.loop->open();
  if (!failure.empty()) return "--frames: " + failure + ".";
  stats_->add_frames(*made.counters, *frames.port);
  return "";
}

// The port of -U, else the one of TCP.
uint16_t Server::frames_udp_port() const {
  for (const bool udp : {true, false}) {
    for (const BoundPort& port : ports_) {
      if (port.udp == udp) return port.port;
    }
  }
  // With a Unix socket alone, no port is bound.
  constexpr uint16_t kDefaultPort = 11211;
  for (const int port : {options_.udp_port, options_.tcp_port}) {
    if (port > 0) return static_cast<uint16_t>(port);
  }
  return kDefaultPort;
}

std::vector<std::string> Server::frame_ports() const {
  std::vector<std::string> texts;
  for (const FrameThread& frames : frames_) {
    texts.push_back(frames.port->describe() + ", UDP port " + std::to_string(frames_udp_port()));
  }
  return texts;
}

void Server::reload() {
  if (sasl_ != nullptr) {
    const std::string failure = sasl_->reload();
    if (!failure.empty()) spdlog::warn("{} The old passwords stay in force.", failure);
  }
  if (!options_.server.auth_file.empty()) {
    const std::string failure = auth_.load(options_.server.auth_file);
    if (!failure.empty()) spdlog::warn("{} The old passwords stay in force.", failure);
  }
  if (!options_.server.access_file.empty()) {
    const std::string failure = access_.load(options_.server.access_file);
    if (!failure.empty()) spdlog::warn("{} The old rules stay in force.", failure);
  }
  if (tls_ != nullptr) {
    const std::string failure = refresh_certificates();
    if (!failure.empty()) {
      spdlog::warn("Could not reload TLS certificates on SIGHUP: {}. The old ones stay in force.",
                   failure);
    }
  }
}

void Server::begin_stop(admin::StopKind kind) {
  if (nic_cache_ != nullptr) nic_cache_->stop();
  metrics_.stop();
  if (acceptor_ != nullptr) {
    if (kind == admin::StopKind::kGraceful) acceptor_->hand_over();
    acceptor_->stop();
  }
  if (handshakes_ != nullptr) handshakes_->stop();
  for (const FrameThread& frames : frames_) {
    if (frames.port != nullptr) frames.port->stop();
  }
  for (const WorkerThread& worker : workers_) {
    if (kind == admin::StopKind::kGraceful) {
      worker.transport->drain();
      if (worker.messages != nullptr) worker.messages->drain();
    } else {
      stop_now(worker);
    }
  }
}

void Server::finish_stop() {
  for (FrameThread& frames : frames_) {
    if (frames.thread.joinable()) frames.thread.join();
  }
  for (WorkerThread& worker : workers_) {
    if (worker.thread.joinable()) worker.thread.join();
  }
  if (one_sided_ != nullptr) one_sided_->stop();
  nic_cache_store_.reset();  // the cache has stopped, and the store's users leave it
  long_replies_.stop();
  watchers_->stop();
}

std::string Server::save_items() {
  workers_.clear();
  frames_.clear();
  return backend_->save();
}

void Server::hurry() {
  for (const WorkerThread& worker : workers_) stop_now(worker);
}

void Server::stop_now(const WorkerThread& worker) {
  worker.transport->stop_now();
  if (worker.messages != nullptr) worker.messages->stop_now();
}

}  // namespace warpcache::server
