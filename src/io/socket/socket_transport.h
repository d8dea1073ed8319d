// SPDX-License-Identifier: Apache-2.0
//
// The port for sockets: streams (TCP, Unix) and datagrams (UDP) of one worker thread, with epoll.
//
// System calls of an iteration: one epoll_wait(), one receive call for each ready stream and each
// burst of datagrams, one send call for each stream with a reply and each burst. A stream is
// watched for input only while it has no unsent output; a client that reads too slowly costs one
// more call, which changes the watched events.
//
// Bounds. Unconsumed input: kChunkBytesMax per stream, and SocketTransportConfig::input_bytes_max
// in all. Unsent output: the replies of one batch per stream, and output_bytes_max in all; when a
// stream would exceed the latter, the streams whose clients have not read for the longest time are
// closed. A long reply stays in its pipe until its client reads.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "io/counters.h"
#include "io/socket/accept/acceptor.h"
#include "io/socket/connection_info.h"
#include "io/socket/epoll_set.h"
#include "io/socket/stream/connection.h"
#include "io/socket/stream/stash_pool.h"
#include "io/socket/udp/udp_burst.h"
#include "io/transport.h"
#include "io/wake_event.h"

namespace warpcache::io {

struct SocketTransportConfig {
  // Closes a stream that is silent between two messages. In the middle of a value or of a reply it
  // may stand still for stall_timeout_s, if this is longer. 0: never.
  uint32_t idle_timeout_s = 0;
  // Closes a stream that holds a shared resource and neither sends nor reads: memory of the store
  // (an unfinished body, a pinned value) or the writer of a long reply. 0: never. Besides, an
  // unfinished body without progress is cancelled while the store has no space for others.
  uint32_t stall_timeout_s = 0;
  uint64_t input_bytes_max = 0;  // unconsumed input of all streams; 0: only the bound per stream
  uint64_t output_bytes_max = uint64_t{64} << 20;  // copied unsent output of all streams
  std::string unix_path = {};                      // -s, for list_connections()
};

class SocketTransport final : public Transport, public ConnectionSink {
 public:
  // `budget` outlives the transport. `udp_sockets` may be empty. Throws std::system_error if the
  // system refuses to watch them.
  SocketTransport(const SocketTransportConfig& config, ConnectionBudget& budget,
                  std::vector<UdpSocket> udp_sockets, UdpGuard guard);
  SocketTransport(const SocketTransport&) = delete;
  SocketTransport& operator=(const SocketTransport&) = delete;
  // REQUIRES: receive() has returned false, or was never called.
  ~SocketTransport() override;

  void attach(SessionObserver& observer, PinReleaser& releaser) override;
  bool receive(RxBurst& burst, int timeout_ms) override;
  void complete(const RxBurst& burst, const Completion* completions, uint32_t count) override;
  void body_refused() override { budget_.count_refused_body(); }
  void wake() override { wake_.raise(); }
  // receive() also returns when `fd` is readable. False: the system refuses it.
  [[nodiscard]] bool watch_also(int fd) { return epoll_.add(fd, EPOLLIN, kWakeData); }

  // ConnectionSink; any thread. The connection was counted in the budget.
  bool adopt(NewStream stream) override;
  uint32_t connection_count() const override {
    return connection_count_.load(std::memory_order_relaxed);
  }

  // Any thread. stop_now(): the next receive() closes everything. drain(): received requests are
  // answered; each stream is closed when it has no request left, or after kDrainSecondsMax.
  // REQUIRES: no adopt() after either.
  void stop_now();
  void drain();
  static constexpr uint32_t kDrainSecondsMax = 9;

  const TransportCounters& counters() const { return counters_; }
  uint64_t input_bytes() const { return stashes_.bytes_in_use(); }
  // Any thread. Appends the open connections among the kListedAtOnce table slots from `next` on,
  // and advances `next`. False: these were the last.
  bool list_connections(uint32_t& next, std::vector<ConnectionInfo>& list) const;

 private:
  static constexpr uint32_t kEventsMax = 512;
  static constexpr uint64_t kLongReplyBytesAtOnce = 256 * 1024;
  static constexpr int kDrainPollMs = 20;
  // Streams that ask to be delivered later: see later.cc.
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::milliseconds kLaterAfter{1};
  static constexpr uint32_t kLaterAtOnce = 4;
  enum class Mode : uint8_t { kRunning, kDraining, kStopping };
  // Values of epoll_event::data: a Connection's generation and index, kWakeData, or kUdpData plus
  // the socket's number.
  static constexpr uint64_t kWakeData = ~uint64_t{0};
  static constexpr uint64_t kUdpData = uint64_t{0xfffffffe} << 32;

  uint64_t event_data(uint32_t index) const;
  void watch_for(uint32_t index, uint32_t events);
  void adopt_new();
  void open_stream(NewStream adopted);
  void close_stream(uint32_t index);
  void wait_for_events(int timeout_ms);
  bool take_event(const epoll_event& event, InputArena& arena, std::vector<RxChunk>& chunks);
  void deliver_ready(InputArena& arena, std::vector<RxChunk>& chunks);
  void deliver(uint32_t index, uint32_t size, uint32_t body_received, InputArena& arena,
               std::vector<RxChunk>& chunks);
  enum class Received : uint8_t { kDelivered, kNothing, kClosed };
  Received receive_stream(uint32_t index, InputArena& arena, std::vector<RxChunk>& chunks);
  Received receive_body(uint32_t index, InputArena& arena, std::vector<RxChunk>& chunks);
  Received receive_rest(uint32_t index, InputArena& arena, std::vector<RxChunk>& chunks);
  Received receive_more(uint32_t index, InputArena& arena, std::vector<RxChunk>& chunks);
  Received nothing_received(uint32_t index, ssize_t result);
  void complete_stream(const RxBurst& burst, const Completion& completion);
  bool keep_left_over(Connection& connection, const uint8_t* bytes, const Completion& completion);
  bool send_reply(uint32_t index, const ReplySpan* spans, uint32_t span_count);
  void continue_sending(uint32_t index);
  void after_sending(uint32_t index);
  void begin_long_reply(uint32_t index, BytePipe* long_reply);
  void send_long_reply(uint32_t index);
  void send_long_replies();
  void set_later(uint32_t index);
  void clear_later(uint32_t index);
  void ready_later();
  void set_tls_pending(uint32_t index);
  void clear_tls_pending(uint32_t index);
  void deliver_tls_pending(InputArena& arena, std::vector<RxChunk>& chunks);
  void set_ready(uint32_t index);
  void clear_ready(uint32_t index);
  void drain_idle(InputArena& arena, std::vector<RxChunk>& chunks);
  void close_idle();
  void close_stalled();
  void cancel_still_bodies();
  bool holds_shared(const Connection& connection) const;
  void close_stalled_stream(uint32_t index);
  void add_output(uint32_t index, std::unique_ptr<OutQueue> out);
  std::unique_ptr<OutQueue> take_output(uint32_t index);
  bool reclaim_output(uint64_t bytes);
  void once_a_second();
  bool is_over();
  void stop_all();
  Mode mode() const { return mode_.load(std::memory_order_acquire); }

  SocketTransportConfig config_;
  ConnectionBudget& budget_;
  WakeEvent wake_;
  EpollSet epoll_;
  TransportCounters counters_;
  StashPool stashes_;
  UdpBurst udp_;
  SessionObserver* observer_ = nullptr;
  PinReleaser* releaser_ = nullptr;

  ConnectionTable connections_;    // the owner alone changes it, under list_mutex_
  mutable std::mutex list_mutex_;  // for opening, closing and listing; no request takes it
  std::atomic<uint32_t> connection_count_{0};
  std::mutex adopt_mutex_;
  std::vector<NewStream> adopted_;

  uint32_t delivered_ = 0;  // chunks that are not completed
  std::array<epoll_event, kEventsMax> events_;
  uint32_t event_count_ = 0;
  uint32_t next_event_ = 0;  // the first event that is not handled yet
  std::vector<uint32_t> ready_;
  std::vector<uint32_t> later_;  // streams that are delivered again after later_due_
  Clock::time_point later_due_;
  std::vector<uint32_t> tls_pending_;   // see tls_pending.cc
  std::vector<uint32_t> long_replies_;  // connections with an unfinished long reply
  uint64_t output_bytes_ = 0;           // copied, of all streams
  StallOrder stalls_{connections_};
  std::atomic<uint32_t> now_s_;
  uint32_t swept_at_s_ = 0;
  uint64_t bodies_refused_before_ = 0;  // by all workers, up to the last sweep
  std::atomic<Mode> mode_{Mode::kRunning};
  bool draining_ = false;
  uint32_t drain_until_s_ = 0;
};

}  // namespace warpcache::io
