// SPDX-License-Identifier: Apache-2.0
#include "io/ucx/joined_transport.h"

#include <poll.h>
#include <sched.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

namespace warpcache::io {
namespace {

bool is_message(const Completion& completion) {
  return (completion.chunk->handle & AmTransport::kHandleBit) != 0 && !completion.chunk->datagram;
}

}  // namespace

JoinedTransport::JoinedTransport(SocketTransport& sockets, AmTransport& messages)
    : sockets_(sockets), messages_(messages) {
  if (!sockets_.watch_also(messages.event_fd())) {
    throw std::system_error(errno, std::generic_category(), "epoll_ctl");
  }
}

void JoinedTransport::attach(SessionObserver& observer, PinReleaser& releaser) {
  sockets_.attach(observer, releaser);
  messages_.attach(observer, releaser);
}

// Some rounds at once, because the caller's own round takes longer than one without a message.
bool JoinedTransport::poll_messages(RxBurst& burst) {
  for (int i = 0; i < kPolls; ++i) {
    if (messages_.receive(burst)) return true;
    if (!messages_.has_streams()) return false;
  }
  return false;
}

bool JoinedTransport::receive(RxBurst& burst, int timeout_ms) {
  if (WC_UNLIKELY(sockets_over_)) return receive_last(burst);
  const bool busy = poll_messages(burst);
  // If the system refuses it, messages are looked at once a second only.
  if (WC_UNLIKELY(messages_.has_new_event_fd())) (void)sockets_.watch_also(messages_.event_fd());
  const Clock::time_point now = Clock::now();
  if (busy) poll_until_ = now + kPollFor;
  if (now < poll_until_) {
    if (!busy) (void)sched_yield();  // whoever shares this processor may be the client
    if (now < sockets_due_) return true;
    timeout_ms = 0;
  } else if (timeout_ms != 0) {
    timeout_ms = sleep_ms(timeout_ms, now);
  }
  sockets_due_ = now + kSocketsEvery;
  if (sockets_.receive(burst, timeout_ms)) return true;
  sockets_over_ = true;
  return receive_last(burst);
}

// How long the thread may sleep when no message has come for kPollFor.
int JoinedTransport::sleep_ms(int timeout_ms, Clock::time_point now) {
  if (messages_.arm()) return std::min(timeout_ms, messages_.sleep_ms_max());
  if (now < poll_until_ + kPollUnarmedFor) return 0;
  return timeout_ms < 0 ? kUnarmedSleepMs : std::min(timeout_ms, kUnarmedSleepMs);
}

// After the end of the sockets.
bool JoinedTransport::receive_last(RxBurst& burst) {
  if (!messages_.receive(burst) && burst.chunks.empty()) {
    if (messages_.is_over()) return false;
    constexpr int kWaitMs = 5;
    (void)poll(nullptr, 0, kWaitMs);
  }
  return true;
}

// A completion is of one of both; usually all are.
void JoinedTransport::complete(const RxBurst& burst, const Completion* completions,
                               uint32_t count) {
  for (uint32_t first = 0; first < count;) {
    const bool message = is_message(completions[first]);
    uint32_t end = first + 1;
    while (end < count && is_message(completions[end]) == message) ++end;
    if (message) {
      messages_.complete(burst, completions + first, end - first);
    } else {
      sockets_.complete(burst, completions + first, end - first);
    }
    first = end;
  }
}

}  // namespace warpcache::io
