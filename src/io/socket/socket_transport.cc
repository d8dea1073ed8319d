// SPDX-License-Identifier: Apache-2.0
#include "io/socket/socket_transport.h"

#include <sys/socket.h>
#include <time.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <utility>

#include "base/assert.h"
#include "base/byte_pipe.h"

namespace warpcache::io {
namespace {

uint32_t coarse_now_s() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
  return static_cast<uint32_t>(now.tv_sec);
}

// Whether there is space for the largest chunk of a connection.
bool has_space(const InputArena& arena, const std::vector<RxChunk>& chunks) {
  return arena.size - arena.used >= kChunkBytesMax && chunks.size() < kChunksMax;
}

}  // namespace

SocketTransport::SocketTransport(const SocketTransportConfig& config, ConnectionBudget& budget,
                                 std::vector<UdpSocket> udp_sockets, UdpGuard guard)
    : config_(config),
      budget_(budget),
      stashes_(config.input_bytes_max),
      udp_(std::move(udp_sockets), std::move(guard), counters_),
      now_s_(coarse_now_s()) {
  swept_at_s_ = now_s_;
  epoll_.add_or_throw(wake_.fd(), EPOLLIN, kWakeData);
  for (uint32_t i = 0; i < udp_.socket_count(); ++i) {
    epoll_.add_or_throw(udp_.fd(i), EPOLLIN, kUdpData | i);
  }
}

SocketTransport::~SocketTransport() {
  WC_ASSERT(connection_count() == adopted_.size());
  for (size_t i = 0; i < adopted_.size(); ++i) budget_.give_back();
}

void SocketTransport::attach(SessionObserver& observer, PinReleaser& releaser) {
  observer_ = &observer;
  releaser_ = &releaser;
}

uint64_t SocketTransport::event_data(uint32_t index) const {
  // Below 2^31, so that it differs from kWakeData and kUdpData.
  const uint64_t generation = connections_[index].generation & 0x7fffffffu;
  return generation << 32 | index;
}

void SocketTransport::watch_for(uint32_t index, uint32_t events) {
  Connection& connection = connections_[index];
  if (connection.watched == events) return;
  connection.watched = events;
  epoll_.change(connection.fd, events, event_data(index));
}

bool SocketTransport::adopt(NewStream stream) {
  {
    const std::lock_guard lock(adopt_mutex_);
    try {
      adopted_.push_back(std::move(stream));
    } catch (const std::bad_alloc&) {
      return false;
    }
    connection_count_.fetch_add(1, std::memory_order_relaxed);
  }
  wake_.raise();
  return true;
}

void SocketTransport::adopt_new() {
  std::vector<NewStream> adopted;
  {
    const std::lock_guard lock(adopt_mutex_);
    adopted.swap(adopted_);
  }
  for (NewStream& one : adopted) open_stream(std::move(one));
}

// Closes the connection if the system refuses the memory for it.
void SocketTransport::open_stream(NewStream adopted) {
  uint32_t index = 0;
  try {
    const std::lock_guard lock(list_mutex_);
    Connection& connection = connections_.take(index);
    ready_.reserve(connections_.size());
    later_.reserve(connections_.size());
    long_replies_.reserve(connections_.size());
    if (adopted.tls) tls_pending_.reserve(connections_.size());
    connection.fd = adopted.fd.release();
    connection.tls = std::move(adopted.tls);
    connection.watched = EPOLLIN;
    connection.admin = adopted.admin;
    connection.client = std::move(adopted.client);
    connection.id = budget_.next_id();
    connection.session = {};
    connection.active_at.store(now_s_, std::memory_order_relaxed);
  } catch (const std::bad_alloc&) {
    counters_.connections_refused.add(1);
    connection_count_.fetch_sub(1, std::memory_order_relaxed);
    budget_.give_back();
    return;
  }
  if (connections_[index].client != nullptr) {
    observer_->speaks_for(connections_[index].session, *connections_[index].client);
  }
  observer_->opened(connections_[index].session, connections_[index].fd);
  counters_.connections_opened.add(1);
  if (!epoll_.add(connections_[index].fd, EPOLLIN, event_data(index))) {
    counters_.connections_refused.add(1);
    return close_stream(index);
  }
  const TlsStream* const tls = connections_[index].tls.get();
  if (tls != nullptr && tls->has_more()) set_tls_pending(index);
}

void SocketTransport::close_stream(uint32_t index) {
  Connection& connection = connections_[index];
  observer_->closed(connection.session, connection.reason);
  if (connection.out) {
    take_output(index)->drop(*releaser_);
  }
  if (connection.long_reply != nullptr) {
    std::exchange(connection.long_reply, nullptr)->leave();
    std::erase(long_replies_, index);
  }
  stashes_.give(connection.stash);
  clear_ready(index);
  clear_later(index);
  clear_tls_pending(index);
  connection.tls.reset();
  if (connection.closing) finish_politely(connection.fd);
  {
    const std::lock_guard lock(list_mutex_);
    ::close(connection.fd);
    connection.fd = -1;
    connections_.give(index);
  }
  counters_.connections_closed.add(1);
  connection_count_.fetch_sub(1, std::memory_order_relaxed);
  budget_.give_back();
}

bool SocketTransport::receive(RxBurst& burst, int timeout_ms) {
  InputArena& arena = burst.arena;
  std::vector<RxChunk>& chunks = burst.chunks;
  WC_DASSERT(arena.size >= 2 * kChunkBytesMax);
  udp_.start_burst(burst.number);
  if (WC_UNLIKELY(mode() != Mode::kRunning)) {
    if (mode() == Mode::kStopping && delivered_ != 0) return true;
    if (is_over()) return false;
    timeout_ms = std::min(timeout_ms, kDrainPollMs);
  }
  wait_for_events(timeout_ms);
  if (now_s_ != swept_at_s_) once_a_second();
  const size_t before = chunks.size();
  deliver_ready(arena, chunks);
  if (WC_UNLIKELY(!tls_pending_.empty())) deliver_tls_pending(arena, chunks);
  while (next_event_ < event_count_) {
    if (!take_event(events_[next_event_], arena, chunks)) break;
    ++next_event_;
  }
  if (WC_UNLIKELY(draining_)) drain_idle(arena, chunks);
  delivered_ += static_cast<uint32_t>(chunks.size() - before);
  return true;
}

// Whether the transport has ended: it is stopping, or it drains and no connection is open. Closes
// everything then.
bool SocketTransport::is_over() {
  const bool drained = connection_count() == 0 || coarse_now_s() >= drain_until_s_;
  const bool over = delivered_ == 0 && (mode() == Mode::kStopping || (draining_ && drained));
  if (over) {
    stop_all();
    udp_.close();
  } else if (!draining_) {
    draining_ = true;
    drain_until_s_ = coarse_now_s() + kDrainSecondsMax;
  }
  return over;
}

void SocketTransport::wait_for_events(int timeout_ms) {
  if (next_event_ < event_count_) return;
  next_event_ = event_count_ = 0;
  constexpr int kSweepMs = 1000;
  if (config_.idle_timeout_s != 0 || config_.stall_timeout_s != 0) {
    timeout_ms = std::min(timeout_ms, kSweepMs);
  }
  if (!ready_.empty() || !tls_pending_.empty()) timeout_ms = 0;
  if (WC_UNLIKELY(!later_.empty())) {
    timeout_ms = std::min(timeout_ms, static_cast<int>(kLaterAfter.count()));
  }
  event_count_ = epoll_.wait(events_.data(), kEventsMax, timeout_ms);
  now_s_.store(coarse_now_s(), std::memory_order_relaxed);
  if (WC_UNLIKELY(!later_.empty())) ready_later();
}

// Returns false if there is no space: the event is handled in the next iteration.
bool SocketTransport::take_event(const epoll_event& event, InputArena& arena,
                                 std::vector<RxChunk>& chunks) {
  const uint64_t data = event.data.u64;
  if (WC_UNLIKELY(data == kWakeData)) {
    wake_.clear();
    adopt_new();
    send_long_replies();
    return true;
  }
  const auto index = static_cast<uint32_t>(data);
  if ((data & kUdpData) == kUdpData) return udp_.receive(index, arena, chunks);
  Connection& connection = connections_[index];
  if (connection.fd == -1 || (connection.generation & 0x7fffffffu) != data >> 32) return true;
  if (connection.delivered || connection.ready_at != kNotReady) return true;
  if (WC_UNLIKELY(connection.waits_later)) {
    if ((event.events & (EPOLLERR | EPOLLHUP)) != 0) close_stream(index);
    return true;
  }
  if (connection.out) {
    continue_sending(index);
    return true;
  }
  if (WC_UNLIKELY(connection.long_reply != nullptr)) {
    // Without output to send, only these events show that the client has closed.
    if ((event.events & (EPOLLERR | EPOLLHUP | EPOLLRDHUP)) != 0) {
      if ((event.events & EPOLLERR) == 0) connection.reason = CloseReason::kNormal;
      close_stream(index);
    } else {
      send_long_reply(index);
    }
    return true;
  }
  if (!has_space(arena, chunks)) return false;
  (void)receive_stream(index, arena, chunks);
  return true;
}

// Delivers streams that need no new bytes. Uses at most half of the arena, so that they cannot
// starve streams with new bytes.
void SocketTransport::deliver_ready(InputArena& arena, std::vector<RxChunk>& chunks) {
  uint32_t delivered = 0;
  while (delivered < ready_.size() && arena.used < arena.size / 2 &&
         chunks.size() < kChunksMax / 2) {
    const uint32_t index = ready_[delivered++];
    Connection& connection = connections_[index];
    connection.ready_at = kNotReady;
    connection.more_now = false;
    const uint32_t size = connection.stash.size;
    if (size > 0) std::memcpy(arena.data + arena.used, connection.stash.data, size);
    deliver(index, size, 0, arena, chunks);
  }
  if (delivered == 0) return;
  ready_.erase(ready_.begin(), ready_.begin() + delivered);
  for (uint32_t i = 0; i < ready_.size(); ++i) connections_[ready_[i]].ready_at = i;
}

// Appends a chunk of the `size` bytes at the arena's end, which include the stash.
void SocketTransport::deliver(uint32_t index, uint32_t size, uint32_t body_received,
                              InputArena& arena, std::vector<RxChunk>& chunks) {
  Connection& connection = connections_[index];
  connection.delivered.store(true, std::memory_order_relaxed);
  connection.active_at.store(now_s_, std::memory_order_relaxed);
  stashes_.give(connection.stash);
  RxChunk chunk;
  chunk.handle = index;
  chunk.offset = arena.used;
  chunk.size = size;
  chunk.body_received = body_received;
  chunk.admin = connection.admin;
  chunk.session = &connection.session;
  chunk.connection_id = connection.id;
  chunks.push_back(chunk);
  arena.used += size;
}

SocketTransport::Received SocketTransport::receive_stream(uint32_t index, InputArena& arena,
                                                          std::vector<RxChunk>& chunks) {
  const Connection& connection = connections_[index];
  if (WC_UNLIKELY(!connection.body.empty())) return receive_body(index, arena, chunks);
  if (connection.need > connection.stash.size) return receive_rest(index, arena, chunks);
  return receive_more(index, arena, chunks);
}

SocketTransport::Received SocketTransport::nothing_received(uint32_t index, ssize_t result) {
  if (result < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) {
    return Received::kNothing;
  }
  if (result < 0 && errno == EPROTO) counters_.tls_errors.add(1);
  if (result == 0) connections_[index].reason = CloseReason::kNormal;
  close_stream(index);
  return Received::kClosed;
}

// Receives after the unconsumed bytes and delivers any number of new bytes.
SocketTransport::Received SocketTransport::receive_more(uint32_t index, InputArena& arena,
                                                        std::vector<RxChunk>& chunks) {
  Connection& connection = connections_[index];
  const uint32_t kept = connection.stash.size;
  uint8_t* const start = arena.data + arena.used;
  const ssize_t got = receive_bytes(connection.end(), start + kept, kChunkBytesMax - kept);
  if (WC_UNLIKELY(got <= 0)) return nothing_received(index, got);
  if (kept > 0) std::memcpy(start, connection.stash.data, kept);
  counters_.bytes_read.add(static_cast<uint64_t>(got));
  deliver(index, kept + static_cast<uint32_t>(got), 0, arena, chunks);
  return Received::kDelivered;
}

// Receives the rest of a message of known size: its missing bytes go into the stash, later bytes
// directly into their place in the arena. So a message in many pieces is copied once.
SocketTransport::Received SocketTransport::receive_rest(uint32_t index, InputArena& arena,
                                                        std::vector<RxChunk>& chunks) {
  Connection& connection = connections_[index];
  Stash& stash = connection.stash;
  const uint32_t missing = connection.need - stash.size;
  uint8_t* const start = arena.data + arena.used;
  iovec pieces[2] = {{stash.data + stash.size, missing},
                     {start + connection.need, kChunkBytesMax - connection.need}};
  const ssize_t result = receive_pieces(connection.end(), pieces, 2);
  if (WC_UNLIKELY(result <= 0)) return nothing_received(index, result);
  const auto got = static_cast<uint32_t>(result);
  counters_.bytes_read.add(got);
  if (got < missing) {
    stash.size += got;
    connection.active_at.store(now_s_, std::memory_order_relaxed);
    if (connection.tls && connection.tls->has_more()) set_tls_pending(index);
    return Received::kNothing;
  }
  std::memcpy(start, stash.data, connection.need);
  deliver(index, stash.size + got, 0, arena, chunks);
  return Received::kDelivered;
}

SocketTransport::Received SocketTransport::receive_body(uint32_t index, InputArena& arena,
                                                        std::vector<RxChunk>& chunks) {
  Connection& connection = connections_[index];
  const MutableBytes body = connection.body;
  iovec pieces[2] = {{body.data, body.size}, {arena.data + arena.used, kChunkBytesMax}};
  const ssize_t result = receive_pieces(connection.end(), pieces, connection.body_ends ? 2 : 1);
  if (WC_UNLIKELY(result <= 0)) return nothing_received(index, result);
  const auto got = static_cast<size_t>(result);
  counters_.bytes_read.add(got);
  const size_t into_body = std::min(got, body.size);
  deliver(index, static_cast<uint32_t>(got - into_body), static_cast<uint32_t>(into_body), arena,
          chunks);
  return Received::kDelivered;
}

void SocketTransport::complete(const RxBurst& burst, const Completion* completions,
                               uint32_t count) {
  udp_.begin_replies(burst.number);
  for (uint32_t i = 0; i < count; ++i) {
    const Completion& completion = completions[i];
    if (completion.chunk->datagram) {
      udp_.reply(completion.chunk->handle, completion.spans, completion.span_count, *releaser_);
    } else {
      complete_stream(burst, completion);
    }
  }
  udp_.flush(*releaser_);
  delivered_ -= count;
}

void SocketTransport::complete_stream(const RxBurst& burst, const Completion& completion) {
  const RxChunk& chunk = *completion.chunk;
  const RxNext& next = *completion.next;
  Connection& connection = connections_[chunk.handle];
  WC_ASSERT(connection.delivered);
  connection.delivered.store(false, std::memory_order_relaxed);
  connection.body = next.body;
  connection.body_ends = next.body_ends;
  connection.more_now = next.more_now;
  connection.later = next.later;
  if (next.more_now) counters_.yields.add(1);
  connection.closing = next.close;
  if (next.close && !next.refused) connection.reason = CloseReason::kNormal;
  if (WC_UNLIKELY(next.long_reply != nullptr)) begin_long_reply(chunk.handle, next.long_reply);
  if (!keep_left_over(connection, burst.arena.data + chunk.offset, completion)) {
    release_pins(completion.spans, completion.span_count, *releaser_);
    return close_stream(chunk.handle);
  }
  if (completion.span_count > 0 &&
      !send_reply(chunk.handle, completion.spans, completion.span_count)) {
    return close_stream(chunk.handle);
  }
  if (WC_UNLIKELY(connection.out || connection.long_reply != nullptr)) {
    if (!connection.out) send_long_reply(chunk.handle);
    return;
  }
  after_sending(chunk.handle);
}

// Keeps the unconsumed bytes of a chunk, which lies at `bytes`. False: the connection must be
// closed.
bool SocketTransport::keep_left_over(Connection& connection, const uint8_t* bytes,
                                     const Completion& completion) {
  const RxChunk& chunk = *completion.chunk;
  const RxNext& next = *completion.next;
  WC_ASSERT(next.consumed <= chunk.size && next.need <= kChunkBytesMax);
  const uint32_t left = chunk.size - next.consumed;
  connection.need = left > 0 ? next.need : 0;
  connection.in_body.store(next.in_value, std::memory_order_relaxed);
  if (WC_LIKELY(left == 0) || next.close) return true;
  WC_ASSERT(next.body.empty());
  // A full chunk of which nothing was consumed leaves no space for new bytes: the stream is stuck.
  const bool stuck = left == kChunkBytesMax && !next.more_now;
  if (!stuck) connection.stash = stashes_.take(std::max(left, next.need));
  if (connection.stash.data == nullptr) {
    counters_.input_refused.add(1);
    return false;
  }
  std::memcpy(connection.stash.data, bytes + next.consumed, left);
  connection.stash.size = left;
  return true;
}

// Sends the spans. Returns false if the connection has ended or there is no memory for its unsent
// output. All pins are released, or the OutQueue owns them.
bool SocketTransport::send_reply(uint32_t index, const ReplySpan* spans, uint32_t span_count) {
  Connection& connection = connections_[index];
  const SendResult result = send_spans(connection.end(), spans, span_count, 0);
  counters_.bytes_written.add(result.sent);
  uint64_t end = 0;
  uint32_t whole = 0;  // spans that are completely sent
  while (whole < span_count && end + spans[whole].size <= result.sent) end += spans[whole++].size;
  if (WC_LIKELY(whole == span_count)) {
    release_pins(spans, span_count, *releaser_);
    return true;
  }
  std::unique_ptr<OutQueue> out;
  if (!result.failed && reclaim_output(OutQueue::bytes_to_copy(spans, span_count, result.sent))) {
    out = OutQueue::create(spans, span_count, result.sent);
  }
  if (!out) {
    if (!result.failed) counters_.stalled_closed.add(1);
    release_pins(spans, span_count, *releaser_);
    connection.closing = false;
    return false;
  }
  counters_.replies_deferred.add(1);
  release_pins(spans, whole, *releaser_);
  add_output(index, std::move(out));
  connection.writing.store(true, std::memory_order_relaxed);
  watch_for(index, EPOLLOUT);
  return true;
}

void SocketTransport::continue_sending(uint32_t index) {
  Connection& connection = connections_[index];
  uint64_t sent = 0;
  const OutQueue::Progress progress = connection.out->send(connection.end(), *releaser_, sent);
  counters_.bytes_written.add(sent);
  if (sent > 0) connection.active_at.store(now_s_, std::memory_order_relaxed);
  if (progress == OutQueue::Progress::kBlocked) {
    if (sent > 0) add_output(index, take_output(index));  // moves it to the end of the stall order
    return;
  }
  if (progress == OutQueue::Progress::kFailed) {
    connection.closing = false;
    return close_stream(index);
  }
  take_output(index).reset();
  connection.writing.store(false, std::memory_order_relaxed);
  if (connection.long_reply != nullptr) return send_long_reply(index);
  after_sending(index);
}

void SocketTransport::after_sending(uint32_t index) {
  const Connection& connection = connections_[index];
  if (connection.closing) return close_stream(index);
  if (WC_UNLIKELY(connection.more_now && connection.later)) return set_later(index);
  watch_for(index, EPOLLIN);
  if (connection.more_now) return set_ready(index);
  if (WC_UNLIKELY(connection.tls != nullptr) && connection.tls->has_more()) set_tls_pending(index);
}

void SocketTransport::set_ready(uint32_t index) {
  connections_[index].ready_at = static_cast<uint32_t>(ready_.size());
  ready_.push_back(index);
}

void SocketTransport::clear_ready(uint32_t index) {
  const uint32_t at = connections_[index].ready_at;
  if (at == kNotReady) return;
  ready_[at] = ready_.back();
  connections_[ready_[at]].ready_at = at;
  ready_.pop_back();
  connections_[index].ready_at = kNotReady;
}

void SocketTransport::stop_now() {
  mode_.store(Mode::kStopping, std::memory_order_release);
  wake_.raise();
}

void SocketTransport::drain() {
  Mode running = Mode::kRunning;
  (void)mode_.compare_exchange_strong(running, Mode::kDraining, std::memory_order_release);
  wake_.raise();
}

// Closes the streams that have no request in progress and no input.
void SocketTransport::drain_idle(InputArena& arena, std::vector<RxChunk>& chunks) {
  for (uint32_t index = 0; index < connections_.size(); ++index) {
    Connection& connection = connections_[index];
    if (connection.fd == -1 || connection.delivered || connection.out) continue;
    if (connection.long_reply != nullptr) {
      connection.reason = CloseReason::kShutdown;
      if (connection.long_reply->endless()) close_stream(index);
      continue;
    }
    if (connection.ready_at != kNotReady || connection.waits_later) continue;
    if (!has_space(arena, chunks)) return;
    if (receive_stream(index, arena, chunks) != Received::kNothing) continue;
    if (connection.stash.size == 0 && connection.body.empty()) {
      connection.closing = true;
      connection.reason = CloseReason::kShutdown;
      close_stream(index);
    }
  }
}

void SocketTransport::stop_all() {
  adopt_new();
  for (uint32_t index = 0; index < connections_.size(); ++index) {
    if (connections_[index].fd == -1) continue;
    connections_[index].reason = CloseReason::kShutdown;
    close_stream(index);
  }
}

}  // namespace warpcache::io
