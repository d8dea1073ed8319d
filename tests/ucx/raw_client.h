// SPDX-License-Identifier: Apache-2.0
//
// A client of active messages that does only what it is told, right or wrong. One thread uses it.
#pragma once

#include <chrono>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/testing/patience.h"
#include "io/ucx/ucx_port.h"

namespace warpcache {

class RawClient final : private io::AmReceiver {
 public:
  std::string open(const std::string& host, uint16_t port) {
    std::shared_ptr<io::UcxContext> context;
    std::string failure = io::UcxContext::open(&context);
    if (failure.empty()) failure = io::UcxPort::open(context, &port_);
    if (!failure.empty()) return failure;
    port_->attach(*this);
    return port_->connect(host, port, &endpoint_);
  }

  void send(io::AmHeader header, std::string_view data, bool rendezvous = false) {
    auto message = std::make_unique<io::AmSend>();
    message->header = header;
    message->data = bytes_of(data);
    message->rendezvous = rendezvous;
    message->endpoint = endpoint_;
    (void)port_->send(*message);
    messages_.push_back(std::move(message));
  }
  void bytes(std::string_view data, bool rendezvous = false) {
    send({.sequence = next_++}, data, rendezvous);
  }
  void hello() { send({.handler = io::AmHandler::kHello, .sequence = next_++}, ""); }

  // Handles messages until `until` is true.
  template <typename Until>
  void run(Until until) {
    const auto deadline = std::chrono::steady_clock::now() + kPatience;
    while (!until() && std::chrono::steady_clock::now() < deadline) (void)port_->progress();
  }
  void greet() {
    hello();
    run([this] { return welcomed_ || closed_; });
  }
  void run_for_ms(int ms) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(ms);
    run([end] { return std::chrono::steady_clock::now() >= end; });
  }

  // Fetches the next of the announced data.
  void fetch(std::string* to) {
    const auto [data, size] = announced_[fetches_++];
    to->resize(size);
    const MutableBytes piece = {reinterpret_cast<uint8_t*>(to->data()), size};
    if (port_->fetch(endpoint_, data, &piece, 1)) ++fetched_;
  }
  void bye() { send({.handler = io::AmHandler::kBye, .sequence = next_++}, ""); }

  bool welcomed() const { return welcomed_; }
  bool closed() const { return closed_; }
  const std::string& why() const { return why_; }
  size_t announced() const { return announced_.size(); }
  size_t received() const { return received_; }
  size_t fetched() const { return fetched_; }
  size_t sent_rendezvous() const { return sent_rendezvous_; }

 private:
  bool admits() override { return false; }
  void not_opened() override {}
  void opened(uint32_t) override {}
  void received(uint32_t, Bytes header, Bytes data) override {
    io::AmHeader parsed;
    std::memcpy(&parsed, header.data, sizeof parsed);
    welcomed_ |= parsed.handler == io::AmHandler::kWelcome;
    received_ += parsed.handler == io::AmHandler::kBytes ? data.size : 0;
    if (parsed.handler != io::AmHandler::kBye) return;
    closed_ = true;
    why_.assign(reinterpret_cast<const char*>(data.data), data.size);
  }
  bool announced(uint32_t, Bytes, uint64_t size, io::AmRemote data) override {
    announced_.push_back({data, size});
    return true;  // and fetches it only if it is told to
  }
  void sent(io::AmSend& message, bool) override { sent_rendezvous_ += message.rendezvous ? 1 : 0; }
  void fetched(uint32_t, bool whole) override { fetched_ += whole ? 1 : 0; }
  void failed(uint32_t) override { closed_ = true; }
  void ended(uint32_t) override {}

  std::unique_ptr<io::UcxPort> port_;
  std::vector<std::unique_ptr<io::AmSend>> messages_;
  uint32_t endpoint_ = 0;
  uint32_t next_ = 0;
  bool welcomed_ = false;
  bool closed_ = false;
  std::vector<std::pair<io::AmRemote, uint64_t>> announced_;
  size_t fetches_ = 0;  // begun
  size_t fetched_ = 0;
  size_t sent_rendezvous_ = 0;
  size_t received_ = 0;
  std::string why_;
};

}  // namespace warpcache
