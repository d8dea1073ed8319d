// SPDX-License-Identifier: Apache-2.0
//
// Closes endpoints: those that failed, broke the rules or make no progress, and all at the end.
#include <algorithm>
#include <utility>

#include "base/byte_pipe.h"
#include "io/stillest.h"
#include "io/ucx/am_transport.h"

namespace warpcache::io {

// The endpoint is closed in the next receive(), outside of the port's handlers.
void AmTransport::set_broken(uint32_t number) {
  AmStream& stream = stream_of(number);
  if (stream.broken || stream.state == AmStream::State::kClosed) return;
  stream.broken = true;
  broken_.push_back(number);
}

// What the client sends from now on is ignored. It is told why when its replies are sent, and then
// has some time to leave.
void AmTransport::break_rules(uint32_t number, const char* why) {
  am_counters_.broken_rules.add(1);
  AmStream& stream = stream_of(number);
  stream.ends = stream.closing = true;
  stream.why = why;
  if (!stream.delivered && stream.under_way == 0) after_sending(number);
}

void AmTransport::failed(uint32_t endpoint) {
  if (stream_of(endpoint).is_open()) am_counters_.failed.add(1);
  set_broken(endpoint);
}

void AmTransport::close_broken() {
  for (size_t i = 0; i < broken_.size();) {
    // Its chunk is with the worker: complete() comes first.
    if (stream_of(broken_[i]).delivered) {
      ++i;
    } else {
      close_stream(broken_[i]);
    }
  }
}

void AmTransport::close_stream(uint32_t number) {
  AmStream& stream = stream_of(number);
  if (stream.greeted) ++attended_streams_;
  stream.state = AmStream::State::kClosed;
  stream.since_ms = attended_ms_;
  streams_[number]->open_id.store(0, std::memory_order_relaxed);
  if (stream.long_reply != nullptr) std::exchange(stream.long_reply, nullptr)->leave();
  for (std::vector<uint32_t>* list : {&ready_, &later_, &broken_, &long_replies_}) {
    std::erase(*list, number);
  }
  stream.input.clear();
  // A fetch under way writes into the session's body, or owns the first of the announced data.
  const size_t kept = stream.fetched_size != 0 ? 1 : 0;
  for (size_t i = kept; i < stream.announced.size(); ++i) {
    port_.drop(number, stream.announced[i].data);
  }
  stream.announced.clear();
  if (stream.fetched_size == 0) close_session(stream);
  port_.close(number);
}

void AmTransport::close_session(AmStream& stream) {
  if (std::exchange(stream.session_open, false))
    observer_->closed(stream.session, CloseReason::kNormal);
}

void AmTransport::ended(uint32_t endpoint) {
  AmStream& stream = stream_of(endpoint);
  --attended_streams_;
  close_session(stream);
  // After a restart nobody is told any more of messages that were under way.
  for (AmOut* const out : std::exchange(stream.unsent, {})) {
    if (!out->rendezvous) output_bytes_ -= out->held();
    give_out(*out);
  }
  count_unread(stream, 0 - stream.unread);
  stream.under_way = stream.pinned = 0;
  // Their clients may still be reading from the store's memory.
  forgotten_pins_.insert(forgotten_pins_.end(), stream.pins.begin(), stream.pins.end());
  stream.pins.clear();
  stream.state = AmStream::State::kFree;
  stream.fetched.reset();
  counters_.connections_closed.add(1);
  stream_count_.fetch_sub(1, std::memory_order_relaxed);
  budget_.give_back();
}

// The thread may be held up for seconds, on a busy machine or by its own requests. Meanwhile it
// neither reads what has come nor does what UCX needs to end an endpoint.
void AmTransport::look_at_clock() {
  const uint64_t now_ms = config_.clock_ms();
  attended_ms_ += std::min<uint64_t>(now_ms - clock_ms_, kRoundMsMax);
  clock_ms_ = now_ms;
  now_s_.store(static_cast<uint32_t>(now_ms / 1000), std::memory_order_relaxed);
}

void AmTransport::once_a_second() {
  swept_at_s_ = now_s_;
  for (uint32_t number = 0; number < streams_.size(); ++number) sweep_stream(number);
  if (config_.stall_timeout_s != 0) cancel_still_bodies();
  if (!forgotten_pins_.empty() && now_s_ >= forgotten_until_s_) release_forgotten();
}

void AmTransport::release_forgotten() {
  for (const uint32_t pin : forgotten_pins_) releaser_->release(pin);
  forgotten_pins_.clear();
}

// UCX 1.13 sometimes never ends an endpoint whose client was killed while it read by rendezvous.
bool AmTransport::has_endless_stream() const {
  constexpr uint64_t kEndsInMs = 5000;
  return std::any_of(streams_.begin(), streams_.end(), [this](const auto& slot) {
    const AmStream& stream = slot->stream;
    return stream.state == AmStream::State::kClosed && attended_ms_ - stream.since_ms > kEndsInMs;
  });
}

void AmTransport::check_port() {
  constexpr uint64_t kEveryMs = 1000;
  constexpr uint32_t kEndIn = 2;
  check_at_ms_ = attended_ms_ + kEveryMs;
  if (restarting_ || stream_count_ == 0) return;
  if (!port_.is_stuck() && !has_endless_stream()) return;
  restarting_ = true;
  restart_by_s_ = now_s_ + kEndIn;
  am_counters_.restarts.add(1);
  close_all();
}

// Endpoints that do not end in time end by the restart. Clients connect again.
void AmTransport::restart_port() {
  close_all();
  if (delivered_ != 0 || (stream_count_ != 0 && now_s_ < restart_by_s_)) return;
  constexpr uint32_t kReadsEndIn = 5;
  forgotten_until_s_ = now_s_ + kReadsEndIn;
  // The next check tries again if it fails.
  restarting_ = !port_.restart().empty();
  new_event_fd_ = true;
}

void AmTransport::close_all() {
  for (uint32_t number = 0; number < streams_.size(); ++number) {
    if (stream_of(number).state != AmStream::State::kFree) set_broken(number);
  }
  close_broken();
}

void AmTransport::sweep_stream(uint32_t number) {
  AmStream& stream = stream_of(number);
  if (stream.delivered || stream.broken) return;
  if (stream.state == AmStream::State::kLeaving && now_s_ >= stream.leave_at_s) {
    return set_broken(number);
  }
  if (!stream.is_open()) return;
  const uint32_t still_s = now_s_ - stream.active_at;
  if (!stream.greeted && attended_ms_ - stream.since_ms > kPatienceS * uint64_t{1000}) {
    return set_broken(number);
  }
  const bool holds_shared = stream.long_reply != nullptr || stream.pinned != 0 ||
                            stream.fetched_size != 0 || observer_->holds_body(stream.session);
  const bool stalled = config_.stall_timeout_s != 0 && still_s > config_.stall_timeout_s;
  if (stalled && holds_shared) {
    counters_.stall_timeouts.add(1);
    return set_broken(number);
  }
  // As in SocketTransport::close_idle().
  const bool in_message = holds_shared || stream.under_way != 0 ||
                          streams_[number]->in_body.load(std::memory_order_relaxed);
  if (config_.idle_timeout_s == 0 || still_s <= config_.idle_timeout_s) return;
  if (in_message && !stalled) return;
  counters_.idle_closed.add(1);
  set_broken(number);
}

// For each body that any thread refused since the last sweep, cancels one that makes no progress:
// first those without progress for the longest time.
void AmTransport::cancel_still_bodies() {
  const uint64_t refused = budget_.bodies_refused();
  const uint64_t wanted = refused - std::exchange(bodies_refused_before_, refused);
  if (wanted == 0) return;
  Stillest stillest;
  for (uint32_t number = 0; number < streams_.size(); ++number) {
    const AmStream& stream = stream_of(number);
    // Bytes that were fetched into the body and not delivered yet would be missing in the stream.
    const bool comes = stream.fetched_size != 0 || stream.body_fetched != 0;
    if (!stream.is_open() || stream.delivered || comes) continue;
    const uint32_t still_s = now_s_ - stream.active_at;
    if (still_s <= kStillBodyS || !observer_->holds_body(stream.session)) continue;
    stillest.add(number, still_s);
  }
  for (uint32_t i = 0; i < stillest.count() && i < wanted; ++i) {
    AmStream& stream = stream_of(stillest[i]);
    observer_->cancel_body(stream.session);
    stream.body = {};
    stream.body_ends = false;
    counters_.bodies_cancelled.add(1);
  }
}

// Closes the stream whose client has not read for the longest time.
void AmTransport::reclaim_output() {
  uint32_t longest = 0;
  const AmStream* found = nullptr;
  for (uint32_t number = 0; number < streams_.size(); ++number) {
    const AmStream& stream = stream_of(number);
    if (stream.under_way == stream.pinned || !stream.is_open() || stream.broken) continue;
    if (found != nullptr && found->active_at <= stream.active_at) continue;
    found = &stream;
    longest = number;
  }
  if (found == nullptr) return;
  counters_.stalled_closed.add(1);
  set_broken(longest);
}

void AmTransport::stop_now() {
  mode_.store(Mode::kStopping, std::memory_order_relaxed);
  port_.wake();
}

void AmTransport::drain() {
  Mode running = Mode::kRunning;
  (void)mode_.compare_exchange_strong(running, Mode::kDraining, std::memory_order_relaxed);
  port_.wake();
}

// Ends the streams that have no request in progress and no input; all of them when stopping.
void AmTransport::drain_idle() {
  const bool stopping = mode_.load(std::memory_order_relaxed) == Mode::kStopping;
  if (over_by_s_ == 0) over_by_s_ = now_s_ + kDrainSecondsMax;
  if (stopping || now_s_ >= over_by_s_) {
    if (!std::exchange(closed_all_, true)) over_by_s_ = now_s_ + 2;
    return close_all();
  }
  for (uint32_t number = 0; number < streams_.size(); ++number) {
    AmStream& stream = stream_of(number);
    if (!may_go_on(stream) || stream.ready || stream.input.size() != 0) continue;
    if (!stream.announced.empty() || !stream.body.empty()) continue;
    leave(number);
  }
}

bool AmTransport::list_connections(uint32_t& next, std::vector<ConnectionInfo>& list) const {
  const std::lock_guard lock(list_mutex_);
  const uint32_t now_s = now_s_.load(std::memory_order_relaxed);
  const auto size = static_cast<uint32_t>(streams_.size());
  for (const uint32_t end = std::min(size, next + kListedAtOnce); next < end; ++next) {
    const AmSlot& slot = *streams_[next];
    ConnectionInfo info;
    info.id = slot.open_id.load(std::memory_order_relaxed);
    if (info.id == 0) continue;
    info.address = "ucx:" + slot.peer;
    info.listen_address = "ucx:" + config_.address;
    info.in_body = slot.in_body.load(std::memory_order_relaxed);
    info.has_request = slot.has_request.load(std::memory_order_relaxed);
    const uint32_t active_at = slot.active_at.load(std::memory_order_relaxed);
    info.idle_s = now_s > active_at ? now_s - active_at : 0;
    list.push_back(std::move(info));
  }
  return next < size;
}

bool AmTransport::is_over() {
  if (mode_.load(std::memory_order_relaxed) == Mode::kRunning || delivered_ != 0) return false;
  // Endpoints that UCX does not end in time are given up.
  return stream_count_ == 0 || (closed_all_ && now_s_ >= over_by_s_);
}

}  // namespace warpcache::io
