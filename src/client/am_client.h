// SPDX-License-Identifier: Apache-2.0
//
// The client's side of streams in active messages (io/ucx/am_layout.h). One thread uses a client
// and all of its streams.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "io/ucx/am_input.h"
#include "io/ucx/item_slots.h"
#include "io/ucx/ucx_port.h"

namespace warpcache::client {

class AmClient;

// The stream of one endpoint: bytes of memcached's protocols both ways.
class AmStream {
 public:
  enum class State : uint8_t { kConnecting, kOpen, kEnded };

  State state() const { return state_; }
  // Why it has ended, where that is known.
  const std::string& reason() const { return reason_; }

  // Sends a copy of the first bytes, as many as the server's window and the unsent messages allow,
  // and returns their number. REQUIRES: kOpen.
  size_t send(Bytes bytes);
  // The same without a copy: the bytes stay in place until is_sent().
  size_t send_from(Bytes bytes);
  // Sends without a copy, by rendezvous: the bytes stay in place until is_sent(). They must be
  // bytes of a body. REQUIRES: kOpen, bytes.size <= rendezvous_max(), rendezvous_free().
  void send_in_place(Bytes bytes);
  // Bytes of a message of send_from().
  uint32_t eager_max() const { return welcome_.eager_max; }
  bool is_sent() const { return under_way_ == 0; }
  bool rendezvous_free() const { return in_place_under_way_ < welcome_.announced_max; }
  uint32_t rendezvous_max() const { return welcome_.rendezvous_max; }

  // The bytes that have come and were not consumed.
  Bytes readable() const { return {input_.data(), visible()}; }
  void consume(size_t bytes);
  // Bytes after the readable ones that the server holds ready; 0: none. They are fetched to where
  // fetch() says, or with fetch_more() they become readable.
  uint32_t announced() const { return announced_.empty() ? 0 : announced_.front().size; }
  // REQUIRES: readable() is empty, size == announced() != 0. Fetches the bytes to `data`, which
  // stays in place while is_fetching().
  void fetch(uint8_t* data);
  void fetch_more();
  bool is_fetching() const { return fetching_; }

  // Reads of one side (io/ucx/item_slots.h), where the client was opened for them and the server
  // has slots. begin_read() starts to read the key's slot, slot() is what was read. REQUIRES:
  // kOpen, has_slots(), !is_reading().
  bool has_slots() const { return region_.slots != 0; }
  void begin_read(Bytes key);
  bool is_reading() const { return read_.state == io::UcxPort::Read::State::kUnderWay; }
  // Null: it could not be read. REQUIRES: !is_reading().
  const uint8_t* slot() const {
    return read_.state == io::UcxPort::Read::State::kDone ? slot_.get() : nullptr;
  }
  // Asks the server to copy the key's item. REQUIRES: kOpen, has_slots(), a valid key.
  void ask_copy(Bytes key);

  // Says that no request follows; the server answers what it has and ends the stream.
  void half_close();

 private:
  friend class AmClient;
  struct Announced {
    io::AmRemote data;
    uint32_t size;
    uint64_t at;  // eager bytes that precede it
  };

  AmStream(AmClient& client, uint32_t endpoint) : client_(client), endpoint_(endpoint) {}
  size_t visible() const;
  size_t send_eagerly(Bytes bytes, bool copies);

  AmClient& client_;
  uint32_t endpoint_;
  State state_ = State::kConnecting;
  std::string reason_;
  io::AmWelcome welcome_;
  io::SlotRegion region_;  // slots 0: none
  std::string region_key_;
  std::unique_ptr<uint8_t[]> slot_;
  io::UcxPort::Read read_;
  io::AmInput input_;
  size_t readable_max_ = SIZE_MAX;  // bytes before those that were lost
  uint64_t not_eager_ = 0;          // of the input's first bytes: came by rendezvous
  std::vector<Announced> announced_;
  std::unique_ptr<uint8_t[]> fetched_;  // of fetch_more()
  bool fetching_ = false;
  bool half_closed_ = false;
  bool closed_ = false;  // AmClient::close() was called
  uint32_t next_in_ = 0;
  uint32_t next_out_ = 0;
  uint64_t received_ = 0;  // eager bytes
  uint64_t sent_ = 0;
  uint64_t taken_ = 0;  // of these: by the server
  uint32_t under_way_ = 0;
  uint32_t in_place_under_way_ = 0;
};

class AmClient final : private io::AmReceiver {
 public:
  using Deadline = std::chrono::steady_clock::time_point;

  // Returns the error as text, or "". `one_sided`: its streams ask servers for slots.
  // `long_messages`: they ask for these where they go by TCP alone.
  static std::string open(std::unique_ptr<AmClient>* client, bool one_sided = false,
                          bool long_messages = true);
  AmClient(const AmClient&) = delete;
  AmClient& operator=(const AmClient&) = delete;
  ~AmClient() override;

  // The stream is kConnecting. Returns the error as text, or "". The client owns the stream until
  // close().
  std::string connect(const std::string& host, uint16_t port, AmStream** stream);
  void close(AmStream* stream);
  // The same, and returns when nothing of the stream is under way, or after a second.
  void close_and_wait(AmStream* stream);

  // Handles what has come. Returns whether there was something.
  bool progress() { return port_->progress(); }
  // Handles what comes, and waits for it until `deadline` at most: first by polling, then asleep.
  void wait(Deadline deadline);
  // For a caller's own loop: false: progress() has something to do.
  bool arm() { return port_->arm(); }
  int event_fd() const { return port_->event_fd(); }

 private:
  friend class AmStream;
  struct Out : io::AmSend {
    bool in_place = false;
    uint8_t bytes[io::kAmEagerMax];
  };

  AmClient() = default;
  AmStream* stream_of(uint32_t endpoint);
  Out& new_out(AmStream& stream, io::AmHandler handler);
  void send_out(AmStream& stream, Out& out);
  void end(AmStream& stream, std::string reason);
  void lose_rest(AmStream& stream, size_t gone, const char* reason);
  void take_welcome(AmStream& stream, Bytes data);

  bool admits() override { return false; }
  void not_opened() override {}
  void opened(uint32_t) override {}
  void received(uint32_t endpoint, Bytes header, Bytes data) override;
  bool announced(uint32_t endpoint, Bytes header, uint64_t size, io::AmRemote data) override;
  void sent(io::AmSend& message, bool whole) override;
  void fetched(uint32_t endpoint, bool whole) override;
  void failed(uint32_t endpoint) override;
  void ended(uint32_t endpoint) override;

  std::unique_ptr<io::UcxPort> port_;
  std::vector<std::unique_ptr<AmStream>> streams_;  // by endpoint; null: closed
  std::vector<std::unique_ptr<Out>> spare_;
  uint32_t closing_ = 0;
  bool one_sided_ = false;
  bool long_messages_ = true;
};

}  // namespace warpcache::client
