// SPDX-License-Identifier: Apache-2.0
//
// Test support: a transport whose streams deliver what the test has written, in pieces that the
// test chooses. It checks that the worker keeps the contract of transport.h.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/assert.h"
#include "io/transport.h"

namespace warpcache::worker {

class FakeTransport final : public io::Transport {
 public:
  struct Stream {
    std::string input;   // not received yet
    std::string kept;    // received, not consumed
    std::string output;  // sent
    bool closed = false;
    bool more_now = false;
    uint32_t need = 0;
    MutableBytes body;
    bool body_ends = false;
    bool delivered = false;
    bool refused = false;  // closed by the worker, not for a quit
    io::SessionStorage session{};
  };

  static constexpr int kFirstFd = 30;  // fd of the first stream; later ones count up

  // How many of the available bytes the next chunk gets; at least one.
  std::function<size_t(size_t available)> cut = [](size_t available) { return available; };

  uint32_t bodies_refused = 0;
  uint64_t value_memory_max = 0;  // of each chunk
  uint32_t values_refused = 0;    // that the worker has told

  // The most streams and datagrams of one receive().
  size_t streams_per_burst = SIZE_MAX;
  size_t datagrams_per_burst = SIZE_MAX;

  // REQUIRES: the test or the worker has closed all streams.
  ~FakeTransport() override {
    for (const auto& stream : streams_) WC_ASSERT(stream->closed);
  }

  // `client`: whom a proxy speaks for, or null.
  Stream& open(const sockaddr_storage* client = nullptr) {
    streams_.push_back(std::make_unique<Stream>());
    if (client != nullptr) observer_->speaks_for(streams_.back()->session, *client);
    observer_->opened(streams_.back()->session, kFirstFd + static_cast<int>(streams_.size()) - 1);
    return *streams_.back();
  }
  // Closes the stream as its client would.
  void close(Stream& stream) {
    WC_ASSERT(!stream.closed && !stream.delivered);
    observer_->closed(stream.session, io::CloseReason::kNormal);
    stream.closed = true;
  }
  // As a transport does while others find no space.
  void cancel_body(Stream& stream) {
    WC_ASSERT(!stream.delivered && observer_->holds_body(stream.session));
    observer_->cancel_body(stream.session);
    stream.body = {};
    stream.body_ends = false;
  }
  void add_datagram(std::string text) { datagrams_.push_back(std::move(text)); }
  const std::vector<std::string>& datagram_replies() const { return datagram_replies_; }

  // Whether nothing will happen until the test writes more.
  bool idle() const {
    if (!datagrams_.empty()) return false;
    return std::all_of(streams_.begin(), streams_.end(), [](const auto& stream) {
      return stream->closed || (stream->input.empty() && !stream->more_now && !stream->delivered);
    });
  }

  void attach(io::SessionObserver& observer, io::PinReleaser& releaser) override {
    observer_ = &observer;
    releaser_ = &releaser;
  }

  bool receive(io::RxBurst& burst, int) override {
    io::InputArena& arena = burst.arena;
    std::vector<io::RxChunk>& chunks = burst.chunks;
    WC_ASSERT(arena.used == 0 && chunks.empty());
    const std::vector<uint32_t> again = std::exchange(again_, {});
    for (const uint32_t i : again) receive_stream(i, arena, chunks);
    for (uint32_t i = 0; i < streams_.size() && chunks.size() < streams_per_burst; ++i) {
      receive_stream(i, arena, chunks);
    }
    const size_t count = std::min(datagrams_.size(), datagrams_per_burst);
    for (size_t i = 0; i < count; ++i) {
      io::RxChunk chunk;
      chunk.datagram = true;
      put(arena, chunk, datagrams_[i]);
      chunks.push_back(chunk);
    }
    datagrams_.erase(datagrams_.begin(), datagrams_.begin() + static_cast<ptrdiff_t>(count));
    return true;
  }

  void body_refused() override { ++bodies_refused; }

  void complete(const io::RxBurst& burst, const io::Completion* completions,
                uint32_t count) override {
    for (uint32_t i = 0; i < count; ++i) complete_one(burst, completions[i]);
  }

  void wake() override {}

 private:
  void complete_one(const io::RxBurst& burst, const io::Completion& completion) {
    const io::RxChunk& chunk = *completion.chunk;
    const io::RxNext& next = *completion.next;
    std::string reply;
    for (uint32_t i = 0; i < completion.span_count; ++i) {
      const io::ReplySpan& span = completion.spans[i];
      reply.append(reinterpret_cast<const char*>(span.data), span.size);
    }
    io::release_pins(completion.spans, completion.span_count, *releaser_);
    if (chunk.datagram) {
      datagram_replies_.push_back(std::move(reply));
      return;
    }
    Stream& stream = *streams_[chunk.handle];
    WC_ASSERT(stream.delivered && next.consumed <= chunk.size);
    WC_ASSERT(next.need <= io::kChunkBytesMax);
    stream.delivered = false;
    values_refused += next.values_refused;
    stream.output += reply;
    WC_ASSERT(next.long_reply == nullptr);  // test engines make no long reply
    stream.kept.assign(
        reinterpret_cast<const char*>(burst.arena.data) + chunk.offset + next.consumed,
        chunk.size - next.consumed);
    WC_ASSERT(next.body.empty() || stream.kept.empty());
    stream.need = next.need;
    stream.more_now = next.more_now;
    if (next.more_now) again_.push_back(chunk.handle);
    stream.body = next.body;
    stream.body_ends = next.body_ends;
    stream.refused = next.close && next.refused;
    if (next.close) close(stream);
  }

  static void put(io::InputArena& arena, io::RxChunk& chunk, const std::string& bytes) {
    WC_ASSERT(arena.size - arena.used >= bytes.size());
    chunk.offset = arena.used;
    chunk.size = static_cast<uint32_t>(bytes.size());
    std::memcpy(arena.data + arena.used, bytes.data(), bytes.size());
    arena.used += chunk.size;
  }

  void receive_stream(uint32_t index, io::InputArena& arena, std::vector<io::RxChunk>& chunks) {
    Stream& stream = *streams_[index];
    if (stream.closed || stream.delivered || arena.size - arena.used < io::kChunkBytesMax) return;
    if (stream.input.empty() && !stream.more_now) return;
    io::RxChunk chunk;
    chunk.handle = index;
    chunk.session = &stream.session;
    chunk.connection_id = index + 1;
    chunk.value_memory_max = value_memory_max;
    if (!stream.more_now && !receive_bytes(stream, chunk)) return;
    stream.delivered = true;
    put(arena, chunk, stream.kept);
    chunks.push_back(chunk);
  }

  static std::string take(std::string& from, size_t count) {
    std::string taken = from.substr(0, count);
    from.erase(0, count);
    return taken;
  }

  // Returns false if the received bytes must not be delivered yet.
  bool receive_bytes(Stream& stream, io::RxChunk& chunk) {
    size_t count = std::clamp<size_t>(cut(stream.input.size()), 1, stream.input.size());
    if (!stream.body.empty()) {
      const std::string body = take(stream.input, std::min(count, stream.body.size));
      std::memcpy(stream.body.data, body.data(), body.size());
      chunk.body_received = static_cast<uint32_t>(body.size());
      count = stream.body_ends ? count - body.size() : 0;
    }
    count = std::min(count, io::kChunkBytesMax - stream.kept.size());
    stream.kept += take(stream.input, count);
    return chunk.body_received > 0 || stream.kept.size() >= stream.need;
  }

  std::vector<std::unique_ptr<Stream>> streams_;
  std::vector<uint32_t> again_;  // streams to be delivered again, in the order of complete()
  std::vector<std::string> datagrams_;
  std::vector<std::string> datagram_replies_;
  io::SessionObserver* observer_ = nullptr;
  io::PinReleaser* releaser_ = nullptr;
};

}  // namespace warpcache::worker
