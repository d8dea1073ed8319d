// SPDX-License-Identifier: Apache-2.0
#include "io/socket/tls/handshakes.h"

#include <pthread.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <new>
#include <utility>

#include "base/assert.h"
#include "base/first_of_most.h"
#include "io/client_source.h"
#include "io/socket/stream/stream_socket.h"

namespace warpcache::io {

Handshakes::Handshakes(const HandshakesConfig& config, TlsServer* server, ConnectionBudget& budget)
    : config_(config), server_(server), budget_(budget) {
  WC_ASSERT(config.under_way_max <= HandshakesConfig::kUnderWayMax);
  config_.under_way_max = std::max(1u, config.under_way_max / config.threads);
  for (uint32_t i = 0; i < config.threads; ++i) {
    workers_.push_back(std::make_unique<Worker>());
    workers_.back()->epoll.add_or_throw(workers_.back()->wake.fd(), EPOLLIN, 0);
  }
}

Handshakes::~Handshakes() { stop(); }

void Handshakes::start(const std::vector<ConnectionSink*>& sinks) {
  for (const std::unique_ptr<Worker>& worker : workers_) {
    worker->sinks = SinkChoice(sinks);
    worker->thread = std::thread([this, &worker = *worker] { run(worker); });
    (void)pthread_setname_np(worker->thread.native_handle(), "handshakes");
  }
}

void Handshakes::stop() {
  stopping_.store(true);
  for (const std::unique_ptr<Worker>& worker : workers_) worker->wake.raise();
  for (const std::unique_ptr<Worker>& worker : workers_) {
    if (worker->thread.joinable()) worker->thread.join();
    for (size_t i = 0; i < worker->arrived.size() + worker->under_way.size(); ++i) give_back();
    worker->arrived.clear();
    worker->under_way.clear();
  }
}

void Handshakes::give_back() {
  under_way_.fetch_sub(1, std::memory_order_relaxed);
  budget_.give_back();
}

bool Handshakes::begin(NewStream stream, TlsUse use, bool proxied) {
  Worker& worker = *workers_[next_worker_++ % workers_.size()];
  {
    const std::lock_guard lock(worker.mutex);
    try {
      worker.arrived.push_back({std::move(stream), use, proxied});
    } catch (const std::bad_alloc&) {
      return false;
    }
  }
  under_way_.fetch_add(1, std::memory_order_relaxed);
  worker.wake.raise();
  return true;
}

void Handshakes::run(Worker& worker) {
  constexpr int kEventsMax = 64;
  constexpr int kLookMs = 100;  // how late a connection may be closed
  epoll_event events[kEventsMax];
  while (!stopping_.load()) {
    const uint32_t count =
        worker.epoll.wait(events, kEventsMax, worker.under_way.empty() ? -1 : kLookMs);
    for (uint32_t i = 0; i < count; ++i) {
      if (events[i].data.ptr != nullptr) {
        go_on(worker, *static_cast<Handshake*>(events[i].data.ptr));
      }
    }
    close_late(worker);
    take_arrived(worker);
  }
}

void Handshakes::take_arrived(Worker& worker) {
  worker.wake.clear();
  std::vector<Arrival> arrived;
  {
    const std::lock_guard lock(worker.mutex);
    arrived.swap(worker.arrived);
  }
  for (Arrival& arrival : arrived) open(worker, std::move(arrival));
}

// Closes the connection if there is no memory for it.
void Handshakes::open(Worker& worker, Arrival arrival) {
  try {
    Handshake handshake;
    handshake.use = arrival.use;
    if (arrival.proxied) {
      handshake.header = std::make_unique<ProxyHeader>();
    } else {
      arrival.stream.tls = server_->open(arrival.stream.fd.get(), arrival.use);
      if (arrival.stream.tls == nullptr) throw std::bad_alloc();
    }
    worker.under_way.push_back(std::move(handshake));
  } catch (const std::bad_alloc&) {
    failed_.fetch_add(1, std::memory_order_relaxed);
    arrival = {};
    give_back();
    return;
  }
  Handshake& handshake = worker.under_way.back();
  handshake.self = std::prev(worker.under_way.end());
  handshake.stream = std::move(arrival.stream);
  handshake.source = source_of(handshake.stream.fd.get());
  handshake.ends_at = Clock::now() + std::chrono::milliseconds(config_.time_limit_ms);
  const auto data = reinterpret_cast<uint64_t>(&handshake);
  if (!worker.epoll.add(handshake.stream.fd.get(), EPOLLIN, data)) {
    return end_failed(worker, handshake.self);
  }
  if (worker.under_way.size() > config_.under_way_max) close_one_of_too_many(worker);
}

void Handshakes::close_one_of_too_many(Worker& worker) {
  std::array<uint64_t, HandshakesConfig::kUnderWayMax + 1> sources{};
  size_t count = 0;
  for (const Handshake& handshake : worker.under_way) sources[count++] = handshake.source;
  closed_.fetch_add(1, std::memory_order_relaxed);
  const auto chosen =
      std::next(worker.under_way.begin(), static_cast<ptrdiff_t>(first_of_most(sources, count)));
  tell_failure(*chosen, "too many handshakes are under way");
  end_failed(worker, chosen);
}

void Handshakes::tell_failure(const Handshake& handshake, std::string_view why) const {
  if (config_.on_failure && handshake.use != TlsUse::kNone) {
    config_.on_failure(handshake.stream, why);
  }
}

void Handshakes::go_on(Worker& worker, Handshake& handshake) {
  if (handshake.header != nullptr && !finish_header(worker, handshake)) return;
  if (handshake.use == TlsUse::kNone) return finish(worker, handshake);
  const int fd = handshake.stream.fd.get();
  const auto data = reinterpret_cast<uint64_t>(&handshake);
  switch (handshake.stream.tls->handshake()) {
    case TlsStream::Handshake::kWantsInput:
      return worker.epoll.change(fd, EPOLLIN, data);
    case TlsStream::Handshake::kWantsOutput:
      return worker.epoll.change(fd, EPOLLOUT, data);
    case TlsStream::Handshake::kFailed:
      tell_failure(handshake, handshake.stream.tls->failure());
      finish_politely(fd);  // so that the client learns why
      return end_failed(worker, handshake.self);
    case TlsStream::Handshake::kDone:
      return finish(worker, handshake);
  }
}

// True: the header has been received; TLS follows if there is some. Else the connection waits, or
// has been closed.
bool Handshakes::finish_header(Worker& worker, Handshake& handshake) {
  const ProxyHeader::Step step = handshake.header->receive(handshake.stream.fd.get());
  if (step == ProxyHeader::Step::kMore) return false;
  bool opened = step == ProxyHeader::Step::kDone;
  if (!opened) headers_refused_.fetch_add(1, std::memory_order_relaxed);
  if (opened) {
    handshake.stream.client = handshake.header->take_client();
    if (handshake.stream.client != nullptr) {
      handshake.source = source_of(*handshake.stream.client);
    }
    handshake.header.reset();
    if (handshake.use != TlsUse::kNone) {
      handshake.stream.tls = server_->open(handshake.stream.fd.get(), handshake.use);
      opened = handshake.stream.tls != nullptr;
    }
  }
  if (!opened) end_failed(worker, handshake.self);
  return opened;
}

void Handshakes::finish(Worker& worker, Handshake& handshake) {
  worker.epoll.remove(handshake.stream.fd.get());
  NewStream stream = std::move(handshake.stream);
  worker.under_way.erase(handshake.self);
  under_way_.fetch_sub(1, std::memory_order_relaxed);
  if (!worker.sinks.fewest().adopt(std::move(stream))) budget_.give_back();
}

void Handshakes::close_late(Worker& worker) {
  const Clock::time_point now = Clock::now();
  while (!worker.under_way.empty() && worker.under_way.front().ends_at <= now) {
    closed_.fetch_add(1, std::memory_order_relaxed);
    tell_failure(worker.under_way.front(), "the handshake takes too long");
    end_failed(worker, worker.under_way.begin());
  }
}

void Handshakes::end_failed(Worker& worker, std::list<Handshake>::iterator handshake) {
  failed_.fetch_add(1, std::memory_order_relaxed);
  worker.under_way.erase(handshake);
  give_back();
}

}  // namespace warpcache::io
