// SPDX-License-Identifier: Apache-2.0
//
// Sockets and active messages as one transport of a worker. While messages come, the thread polls
// their port and looks at the sockets every kSocketsEvery; after kPolls without one it sleeps until
// either has something. While a client of messages does not read, UCX cannot wake the thread: then
// it polls for kPollUnarmedFor, and after that looks at messages every kUnarmedSleepMs.
#pragma once

#include <chrono>

#include "io/socket/socket_transport.h"
#include "io/ucx/am_transport.h"

namespace warpcache::io {

class JoinedTransport final : public Transport {
 public:
  // Both outlive this object. Throws std::system_error if the system refuses to watch messages.
  JoinedTransport(SocketTransport& sockets, AmTransport& messages);

  void attach(SessionObserver& observer, PinReleaser& releaser) override;
  bool receive(RxBurst& burst, int timeout_ms) override;
  void complete(const RxBurst& burst, const Completion* completions, uint32_t count) override;
  void body_refused() override { sockets_.body_refused(); }
  void wake() override { sockets_.wake(); }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::microseconds kPollFor{50};
  static constexpr std::chrono::microseconds kSocketsEvery{20};
  static constexpr std::chrono::milliseconds kPollUnarmedFor{100};
  static constexpr int kUnarmedSleepMs = 1;
  static constexpr int kPolls = 16;

  bool poll_messages(RxBurst& burst);
  bool receive_last(RxBurst& burst);
  int sleep_ms(int timeout_ms, Clock::time_point now);

  SocketTransport& sockets_;
  AmTransport& messages_;
  Clock::time_point poll_until_{};
  Clock::time_point sockets_due_{};
  bool sockets_over_ = false;
};

}  // namespace warpcache::io
