// SPDX-License-Identifier: Apache-2.0
//
// Active messages in memory, for tests: the test plays the clients.
#pragma once

#include <algorithm>
#include <cstring>
#include <deque>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "io/ucx/am_port.h"
#include "io/wake_event.h"

namespace warpcache::io {

class MemoryAmPort final : public AmPort {
 public:
  struct Sent {
    AmHeader header;
    std::string data;
    bool rendezvous;
    uint32_t endpoint;
  };

  explicit MemoryAmPort(bool reaches_device = false) : reaches_device_(reaches_device) {}

  // --- The clients

  // What happens in the next progress().
  void open(uint32_t endpoint) {
    next_.push_back([this, endpoint] {
      if (receiver_->admits()) receiver_->opened(endpoint);
    });
  }
  void message(uint32_t endpoint, AmHeader header, std::string data) {
    next_.push_back([this, endpoint, header, data = std::move(data)] {
      receiver_->received(endpoint, {reinterpret_cast<const uint8_t*>(&header), sizeof header},
                          bytes_of(data));
    });
  }
  // The data stays in place until it is fetched or dropped.
  void announce(uint32_t endpoint, AmHeader header, std::string* data) {
    next_.push_back([this, endpoint, header, data] {
      const Bytes head = {reinterpret_cast<const uint8_t*>(&header), sizeof header};
      if (receiver_->announced(endpoint, head, data->size(), data)) ++held;
    });
  }
  void fail(uint32_t endpoint) {
    next_.push_back([this, endpoint] { receiver_->failed(endpoint); });
  }

  std::vector<Sent> sent;    // messages, whether done or under way
  bool done_at_once = true;  // else sends and fetches are under way until finish()
  uint32_t held = 0;         // announced, neither fetched nor dropped
  std::vector<uint32_t> closed;
  bool stuck = false;       // what is_stuck() says next
  bool forgets = false;     // messages that are under way when their endpoint is closed
  bool never_ends = false;  // an endpoint that is closed, before a restart
  uint32_t ends_in = 1;     // rounds of progress() that an endpoint takes to end
  uint32_t restarts = 0;
  uint32_t checks = 0;  // calls of is_stuck()

  // Completes what is under way in the next progress().
  void finish(bool whole = true) {
    next_.push_back([this, whole] {
      for (AmSend* message : std::exchange(under_way_, {})) receiver_->sent(*message, whole);
      if (fetch_ != nullptr) std::exchange(fetch_, nullptr)(whole);
    });
  }

  // --- AmPort

  void attach(AmReceiver& receiver) override { receiver_ = &receiver; }
  bool progress() override {
    const bool busy = !next_.empty();
    for (auto& step : std::exchange(next_, {})) step();
    return busy;
  }
  bool arm() override { return next_.empty(); }
  int event_fd() const override { return event_.fd(); }
  void wake() override { event_.raise(); }
  AmSent send(AmSend& message) override {
    sent.push_back({message.header,
                    {reinterpret_cast<const char*>(message.data.data), message.data.size},
                    message.rendezvous,
                    message.endpoint});
    if (done_at_once) return AmSent::kDone;
    under_way_.push_back(&message);
    return AmSent::kUnderWay;
  }
  bool fetch(uint32_t endpoint, AmRemote data, const MutableBytes* pieces,
             uint32_t count) override {
    --held;
    const std::vector<MutableBytes> to(pieces, pieces + count);
    const auto copy = [data, to] {
      const char* from = static_cast<std::string*>(data)->data();
      for (const MutableBytes& piece : to) {
        std::memcpy(piece.data, from, piece.size);
        from += piece.size;
      }
    };
    if (done_at_once) {
      copy();
      return true;
    }
    fetch_ = [this, endpoint, copy](bool whole) {
      if (whole) copy();
      receiver_->fetched(endpoint, whole);
    };
    return false;
  }
  bool reaches_device() const override { return reaches_device_; }
  void drop(uint32_t, AmRemote) override { --held; }
  std::string peer(uint32_t) const override { return "memory"; }
  bool is_stuck() override {
    ++checks;
    return std::exchange(stuck, false);
  }
  std::string restart() override {
    ++restarts;
    for (const uint32_t endpoint : std::exchange(endless_, {})) receiver_->ended(endpoint);
    return "";
  }
  void close(uint32_t endpoint) override {
    closed.push_back(endpoint);
    if (never_ends) return endless_.push_back(endpoint);
    end_in(ends_in, endpoint);
  }

 private:
  void end_in(uint32_t rounds, uint32_t endpoint) {
    next_.push_back([this, rounds, endpoint] {
      if (rounds > 1) return end_in(rounds - 1, endpoint);
      for (AmSend* message : std::exchange(under_way_, {})) {
        if (!forgets) receiver_->sent(*message, false);
      }
      if (fetch_ != nullptr) std::exchange(fetch_, nullptr)(false);
      receiver_->ended(endpoint);
    });
  }

  const bool reaches_device_;
  WakeEvent event_;
  AmReceiver* receiver_ = nullptr;
  std::deque<std::function<void()>> next_;
  std::vector<uint32_t> endless_;
  std::vector<AmSend*> under_way_;
  std::function<void(bool)> fetch_;
};

}  // namespace warpcache::io
