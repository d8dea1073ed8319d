// SPDX-License-Identifier: Apache-2.0
#include "client/am_channel.h"

#include <algorithm>
#include <cstring>
#include <string_view>

#include "client/am_client.h"

namespace warpcache::client {
namespace {

using Clock = std::chrono::steady_clock;

// A longer body goes by rendezvous, straight into the server's store. Up to here eager messages
// take less time than the server's asking for it.
constexpr size_t kEagerBodyMax = size_t{60} << 10;
static_assert(io::kAmCopiedByTcpMax < io::kAmWindow && kEagerBodyMax < io::kAmWindow);

class AmChannel final : public Channel {
 public:
  AmChannel(AmClient& client, AmStream* stream) : client_(client), stream_(stream) {}
  ~AmChannel() override {
    stream_->half_close();
    client_.close_and_wait(stream_);
  }

  const char* name() const override { return "ucx"; }

  Result send(Bytes head, Bytes body, Bytes end, Deadline deadline) override {
    const size_t size = head.size + body.size + end.size;
    // Head, body and end in one message.
    if (size <= io::kAmEagerMax) {
      uint8_t packed[io::kAmEagerMax];
      pack(packed, head, body, end);
      return send_copy({packed, size}, deadline);
    }
    if (size <= stream_->eager_max()) {
      if (packed_ == nullptr) packed_.reset(new uint8_t[stream_->eager_max()]);
      pack(packed_.get(), head, body, end);
      return send_eagerly({packed_.get(), size}, deadline);
    }
    Result result = send_copy(head, deadline);
    if (result == Result::kOk) {
      result = body.size > eager_body_max() ? send_in_place(body, deadline)
                                            : send_eagerly(body, deadline);
    }
    // The end comes after the body has left the caller's memory. So a server that gets a body after
    // this call has failed, from memory that the caller uses for something else by then, does not
    // store what it got.
    return result == Result::kOk ? send_copy(end, deadline) : result;
  }

  Result read_line(std::string* line, Deadline deadline) override {
    size_t searched = 0;
    while (true) {
      const Bytes bytes = stream_->readable();
      const std::string_view text(reinterpret_cast<const char*>(bytes.data), bytes.size);
      const size_t at = text.find("\r\n", searched);
      if (at != std::string_view::npos) {
        line->assign(text.substr(0, at));
        stream_->consume(at + 2);
        return Result::kOk;
      }
      if (bytes.size >= kLineMax) return Result::kClosed;
      searched = bytes.size > 0 ? bytes.size - 1 : 0;
      // A line is never announced: a server that does so is asked for the bytes all the same.
      if (stream_->announced() > 0 && !stream_->is_fetching()) stream_->fetch_more();
      if (stream_->readable().size > bytes.size) continue;
      if (!wait(deadline)) return failed();
    }
  }

  Result read(uint8_t* data, size_t size, Deadline deadline) override {
    size_t done = 0;
    while (done < size) {
      const Bytes bytes = stream_->readable();
      if (bytes.size > 0) {
        const size_t piece = std::min(bytes.size, size - done);
        if (data != nullptr) std::memcpy(data + done, bytes.data, piece);
        stream_->consume(piece);
        done += piece;
        continue;
      }
      const uint32_t announced = stream_->announced();
      if (announced > 0 && data != nullptr && announced <= size - done) {
        stream_->fetch(data + done);
        while (stream_->is_fetching()) {
          // The destructor waits until UCX no longer writes to the caller's memory.
          if (!wait(deadline)) return failed();
        }
        done += announced;
        if (stream_->state() == AmStream::State::kEnded) return Result::kClosed;
        continue;
      }
      if (announced > 0 && !stream_->is_fetching()) {
        stream_->fetch_more();
        continue;
      }
      if (!wait(deadline)) return failed();
    }
    return Result::kOk;
  }

  bool read_item(Bytes key, Item* item, Deadline deadline) override {
    if (!stream_->has_slots() || stream_->is_reading()) return false;
    for (int tries = 0; tries < kTornMax; ++tries) {
      if (stream_->state() != AmStream::State::kOpen) return false;
      stream_->begin_read(key);
      while (stream_->is_reading()) {
        if (!wait(deadline)) return false;
      }
      io::SlotItem found;
      if (stream_->slot() == nullptr) return false;
      const io::SlotState state = io::read_slot(stream_->slot(), key, &found);
      if (state == io::SlotState::kTorn) continue;
      if (state == io::SlotState::kAbsent) return false;
      *item = {found.value.data, static_cast<uint32_t>(found.value.size), found.client_flags,
               found.cas};
      return true;
    }
    return false;
  }

  void ask_copy(Bytes key) override {
    if (stream_->has_slots() && stream_->state() == AmStream::State::kOpen) stream_->ask_copy(key);
  }

 private:
  static constexpr int kTornMax = 3;  // reads of a slot that is being written

  size_t eager_body_max() const {
    return stream_->eager_max() > io::kAmEagerMax ? io::kAmCopiedByTcpMax : kEagerBodyMax;
  }

  static void pack(uint8_t* to, Bytes head, Bytes body, Bytes end) {
    for (const Bytes part : {head, body, end}) {
      if (part.size > 0) std::memcpy(to, part.data, part.size);
      to += part.size;
    }
  }

  Result failed() const {
    return stream_->state() == AmStream::State::kEnded ? Result::kClosed : Result::kTimeout;
  }

  // False: the stream has ended with nothing left, or the deadline has passed.
  bool wait(Deadline deadline) {
    if (client_.progress()) return true;
    if (stream_->state() == AmStream::State::kEnded) return false;
    client_.wait(deadline);
    return Clock::now() < deadline;
  }

  Result send_copy(Bytes bytes, Deadline deadline) {
    while (bytes.size > 0) {
      bytes = bytes.from(stream_->send(bytes));
      if (bytes.size > 0 && !wait(deadline)) return failed();
    }
    return Result::kOk;
  }

  Result send_eagerly(Bytes bytes, Deadline deadline) {
    while (bytes.size > 0) {
      bytes = bytes.from(stream_->send_from(bytes));
      if (bytes.size > 0 && !wait(deadline)) return failed();
    }
    return wait_until_sent(deadline);
  }

  Result send_in_place(Bytes bytes, Deadline deadline) {
    const uint32_t piece_max = stream_->rendezvous_max();
    while (bytes.size > 0) {
      if (stream_->state() == AmStream::State::kEnded) return Result::kClosed;
      if (!stream_->rendezvous_free()) {
        if (!wait(deadline)) return failed();
        continue;
      }
      const size_t piece = std::min<size_t>(bytes.size, piece_max);
      stream_->send_in_place(bytes.sub(0, piece));
      bytes = bytes.from(piece);
    }
    return wait_until_sent(deadline);
  }

  Result wait_until_sent(Deadline deadline) {
    while (!stream_->is_sent()) {
      if (!wait(deadline)) return failed();
    }
    return Result::kOk;
  }

  AmClient& client_;
  AmStream* stream_;
  std::unique_ptr<uint8_t[]> packed_;  // of a message of eager_max() bytes
};

class UcxConnector final : public AmConnector {
 public:
  explicit UcxConnector(std::unique_ptr<AmClient> client) : client_(std::move(client)) {}

  std::string connect(const std::string& host, uint16_t port, Channel::Deadline deadline,
                      std::unique_ptr<Channel>* channel) override {
    AmStream* stream = nullptr;
    std::string failure = client_->connect(host, port, &stream);
    if (!failure.empty()) return failure;
    while (stream->state() == AmStream::State::kConnecting && Clock::now() < deadline) {
      client_->wait(deadline);
    }
    if (stream->state() == AmStream::State::kOpen) {
      *channel = std::make_unique<AmChannel>(*client_, stream);
      return "";
    }
    failure = stream->state() == AmStream::State::kEnded ? stream->reason() : "no answer in time";
    client_->close(stream);
    return host + ":" + std::to_string(port) + ": " + failure;
  }

 private:
  std::unique_ptr<AmClient> client_;
};

}  // namespace

std::unique_ptr<AmConnector> make_am_connector(bool one_sided, std::string* failure) {
  std::unique_ptr<AmClient> client;
  *failure = AmClient::open(&client, one_sided);
  if (!failure->empty()) return nullptr;
  return std::make_unique<UcxConnector>(std::move(client));
}

}  // namespace warpcache::client
