// SPDX-License-Identifier: Apache-2.0
//
// A transport of streams that travel in active messages (am_layout.h), for one worker. The worker
// sees the same as from sockets: chunks of a stream's bytes. Differences:
//
// - A client sends at most kAmWindow eager bytes that were not taken. So unconsumed input is
//   bounded without a socket's buffer. A client that breaks this is closed.
// - Data by rendezvous is fetched straight into the store's memory for the body (SessionObserver::
//   body_window()), and a pinned value is sent from the store.
//
// Bounds: kAmWindow and one fetch of kAmRendezvousMax for each endpoint; AmTransportConfig::
// output_bytes_max of copied unsent output in all. A client that does not read holds up only its
// own stream.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "io/counters.h"
#include "io/socket/accept/acceptor.h"
#include "io/socket/connection_info.h"
#include "io/transport.h"
#include "io/ucx/am_stream.h"

namespace warpcache::io {

struct AmTransportConfig {
  uint32_t idle_timeout_s = 0;                     // as in SocketTransportConfig
  uint32_t stall_timeout_s = 0;                    // likewise
  uint64_t output_bytes_max = uint64_t{64} << 20;  // likewise
  bool admin = true;                               // see RxChunk
  uint64_t client_memory_max = 0;                  // RxChunk::value_memory_max, of each endpoint
  std::string address = {};                        // --ucx, for list_connections()
  // For clients that read copies by themselves (item_slots.h): a SlotRegion and a key, and who
  // copies an item. Empty: there are none.
  std::string slots = {};
  std::function<void(Bytes key)> copy = {};
  // Milliseconds of a clock that never goes back. Empty: the system's; tests have their own.
  std::function<uint64_t()> clock_ms = {};
};

// Counters beside those of every transport.
struct alignas(64) AmCounters {
  Counter messages_received;
  Counter messages_sent;
  Counter fetched_bytes;   // by rendezvous, straight into the store
  Counter device_bytes;    // of these: into a device's memory
  Counter copied_bytes;    // by rendezvous, through a buffer
  Counter pinned_bytes;    // sent by rendezvous from the store
  Counter refused;         // endpoints above the limit on connections (-c)
  Counter other_terms;     // requests for a connection without the port's terms
  Counter broken_rules;    // closed because a client broke the rules of am_layout.h
  Counter restarts;        // of the port, which was stuck or did not end an endpoint
  Counter failed;          // endpoints whose client went without a word
  Counter values_waited;   // times that values waited for those of the same client before them
  Counter values_refused;  // values above what a client may hold
  Counter unread_most;     // the most bytes that an endpoint had not fetched at a time
};

class AmTransport final : public AmReceiver {
 public:
  // Handles have this bit, so that they differ from those of sockets.
  static constexpr uint32_t kHandleBit = 0x80000000u;
  // A client must greet, and leave after its last message, within this time.
  static constexpr uint32_t kPatienceS = 5;
  // Between two rounds no more than this counts as time in which the thread waited for a client to
  // greet, for an endpoint to end, or for a stuck port. Longer is how long it was held up itself.
  static constexpr uint32_t kRoundMsMax = 20;

  // `port` and `budget` outlive the transport.
  AmTransport(const AmTransportConfig& config, AmPort& port, ConnectionBudget& budget);
  AmTransport(const AmTransport&) = delete;
  AmTransport& operator=(const AmTransport&) = delete;
  ~AmTransport() override;

  void attach(SessionObserver& observer, PinReleaser& releaser);

  // Appends chunks, as Transport::receive(), without waiting. Returns whether something happened.
  bool receive(RxBurst& burst);
  // The completions must be of this transport's chunks.
  void complete(const RxBurst& burst, const Completion* completions, uint32_t count);

  // Whether the thread may sleep until event_fd() is readable, at most sleep_ms_max() long.
  bool arm();
  int sleep_ms_max() const;
  int event_fd() const { return port_.event_fd(); }
  // Whether event_fd() is another one since the last call.
  bool has_new_event_fd() { return std::exchange(new_event_fd_, false); }
  bool has_streams() const { return stream_count_ != 0; }

  // Any thread; as in SocketTransport. is_over(): stopped or drained, and nothing is under way.
  // Owner's thread.
  void stop_now();
  void drain();
  bool is_over();

  const TransportCounters& counters() const { return counters_; }
  const AmCounters& am_counters() const { return am_counters_; }
  // Any thread: bytes of values that wait to be fetched by clients, by rendezvous from the store.
  uint64_t unread_bytes() const { return unread_bytes_.load(std::memory_order_relaxed); }
  uint64_t client_memory_max() const { return config_.client_memory_max; }
  uint32_t stream_count() const { return stream_count_.load(std::memory_order_relaxed); }

  // Any thread; as in SocketTransport.
  bool list_connections(uint32_t& next, std::vector<ConnectionInfo>& list) const;

  // AmReceiver
  bool admits() override;
  void not_opened() override;
  void other_terms() override { am_counters_.other_terms.add(1); }
  void opened(uint32_t endpoint) override;
  void received(uint32_t endpoint, Bytes header, Bytes data) override;
  bool announced(uint32_t endpoint, Bytes header, uint64_t size, AmRemote data) override;
  void sent(AmSend& message, bool whole) override;
  void fetched(uint32_t endpoint, bool whole) override;
  void failed(uint32_t endpoint) override;
  void ended(uint32_t endpoint) override;

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::milliseconds kLaterAfter{1};
  static constexpr uint32_t kLaterAtOnce = 4;
  static constexpr uint32_t kDrainSecondsMax = 9;
  static constexpr uint32_t kLongReplyMessages = 8;
  static constexpr size_t kSpareMax = 64;
  static constexpr uint32_t kPiecesMax = 1024;
  enum class Mode : uint8_t { kRunning, kDraining, kStopping };

  bool take_header(AmStream& stream, uint32_t number, Bytes header, AmHeader& parsed);
  void greet(uint32_t number, AmStream& stream, Bytes hello);
  void copy_item(uint32_t number, AmStream& stream, Bytes key);
  void take_bytes(uint32_t number, AmStream& stream, Bytes data);
  bool deliver_direct(uint32_t number, AmStream& stream, Bytes data);
  uint32_t visible(const AmStream& stream) const;
  bool may_go_on(const AmStream& stream) const;
  void schedule(uint32_t number);
  void set_ready(uint32_t number);
  void deliver_ready();
  void deliver(uint32_t number);
  void add_chunk(uint32_t number, uint32_t size, uint32_t body_received);
  bool has_space() const;
  void fetch_next(uint32_t number);
  bool collect_windows(AmStream& stream, uint32_t size);
  void complete_stream(const RxBurst& burst, const Completion& completion);
  bool keep_left_over(AmStream& stream, const uint8_t* bytes, const Completion& completion);
  void take(AmStream& stream, uint64_t bytes);
  void send_spans(uint32_t number, const ReplySpan* spans, uint32_t span_count);
  AmOut& new_out(uint32_t number, AmHandler handler);
  AmOut& new_reply(uint32_t number, uint64_t bytes);
  void send_out(AmOut& out);
  void give_out(AmOut& out);
  void send_pinned(uint32_t number, const ReplySpan& span);
  void release_later(uint32_t number, const ReplySpan& span);
  void release_all(AmStream& stream);
  void count_unread(AmStream& stream, uint64_t more);
  void send_control(uint32_t number, AmHandler handler, Bytes data);
  void after_sending(uint32_t number);
  void pump_long_reply(uint32_t number);
  void pump_long_replies();
  void ready_later();
  void leave(uint32_t number);
  void set_broken(uint32_t number);
  void break_rules(uint32_t number, const char* why);
  void close_broken();
  void close_stream(uint32_t number);
  void close_session(AmStream& stream);
  void look_at_clock();
  void once_a_second();
  void sweep_stream(uint32_t number);
  void cancel_still_bodies();
  void reclaim_output();
  void drain_idle();
  void close_all();
  void check_port();
  bool has_endless_stream() const;
  void restart_port();
  void release_forgotten();
  AmStream& stream_of(uint32_t number) { return streams_[number]->stream; }

  AmTransportConfig config_;
  AmPort& port_;
  const bool reaches_device_;
  ConnectionBudget& budget_;
  SessionObserver* observer_ = nullptr;
  PinReleaser* releaser_ = nullptr;
  TransportCounters counters_;
  AmCounters am_counters_;
  std::vector<std::unique_ptr<AmSlot>> streams_;  // by endpoint; grows under the lock
  mutable std::mutex list_mutex_;                 // for opening and listing
  std::atomic<uint32_t> stream_count_{0};         // that are not free
  RxBurst* burst_ = nullptr;                      // of the receive() that runs
  uint32_t delivered_ = 0;
  std::vector<uint32_t> ready_;
  std::vector<uint32_t> later_;
  Clock::time_point later_due_;
  std::vector<uint32_t> broken_;
  std::vector<uint32_t> long_replies_;
  std::vector<MutableBytes> windows_;
  std::vector<std::unique_ptr<AmOut>> spare_;
  uint64_t output_bytes_ = 0;  // copied and under way, of all streams
  std::atomic<uint64_t> unread_bytes_{0};
  std::atomic<uint32_t> now_s_{0};
  uint64_t clock_ms_ = 0;          // as the last look at the clock
  uint64_t attended_ms_ = 0;       // the sum of the rounds' time, each of kRoundMsMax at most
  uint64_t check_at_ms_ = 0;       // of attended_ms_: when the port is checked
  uint32_t attended_streams_ = 0;  // whose time is counted by attended_ms_
  uint32_t swept_at_s_ = 0;
  uint64_t bodies_refused_before_ = 0;
  std::atomic<Mode> mode_{Mode::kRunning};
  uint32_t over_by_s_ = 0;
  bool closed_all_ = false;
  bool restarting_ = false;  // all streams end, then the port starts anew
  bool new_event_fd_ = false;
  uint32_t restart_by_s_ = 0;
  std::vector<uint32_t> forgotten_pins_;  // of messages that a restart has ended
  uint32_t forgotten_until_s_ = 0;        // then no client reads them any more
};

}  // namespace warpcache::io
