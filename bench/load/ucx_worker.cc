// SPDX-License-Identifier: Apache-2.0
#include "load/ucx_worker.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <utility>
#include <vector>

#include "client/am_client.h"
#include "load/connection_worker.h"
#include "load/stream_connection.h"

namespace warpcache::load {
namespace {

using client::AmClient;
using client::AmStream;

class MessageStream final : public ByteStream {
 public:
  explicit MessageStream(AmStream& stream) : stream_(stream) {}

  [[nodiscard]] bool send(std::string_view bytes, size_t* taken, std::string* why) override {
    *taken = 0;
    if (ended(why)) return false;
    *taken = stream_.send({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()});
    return true;
  }

  [[nodiscard]] bool receive(char* out, size_t space, size_t* got, std::string* why) override {
    const Bytes bytes = stream_.readable();
    *got = std::min(bytes.size, space);
    if (*got == 0) {
      if (stream_.announced() > 0 && !stream_.is_fetching()) stream_.fetch_more();
      return !ended(why);
    }
    std::memcpy(out, bytes.data, *got);
    stream_.consume(*got);
    return true;
  }

 private:
  bool ended(std::string* why) const {
    if (stream_.state() != AmStream::State::kEnded) return false;
    *why = "the server ended the endpoint: " + stream_.reason();
    return true;
  }

  AmStream& stream_;
};

class UcxWorker final : public ConnectionWorker {
 public:
  using ConnectionWorker::ConnectionWorker;
  UcxWorker(const UcxWorker&) = delete;
  UcxWorker& operator=(const UcxWorker&) = delete;
  ~UcxWorker() override {
    for (AmStream* const stream : streams_) {
      stream->half_close();
      client_->close_and_wait(stream);
    }
  }

  [[nodiscard]] bool connect(const std::string& host, std::string* why) {
    *why = AmClient::open(&client_);
    const auto deadline = AmClient::Deadline::clock::now() + std::chrono::nanoseconds(timeout_ns());
    for (uint32_t i = 0; i < connection_count() && why->empty(); ++i) {
      AmStream* stream = nullptr;
      *why = client_->connect(host, options_.ucx_port, &stream);
      if (!why->empty()) break;
      streams_.push_back(stream);
      while (stream->state() == AmStream::State::kConnecting &&
             AmClient::Deadline::clock::now() < deadline) {
        client_->wait(deadline);
      }
      if (stream->state() != AmStream::State::kOpen) {
        *why = stream->reason().empty() ? "no answer in time" : stream->reason();
        break;
      }
      connections_.push_back(std::make_unique<StreamConnection>(
          &context_, std::make_unique<MessageStream>(*stream), fill_pipeline()));
    }
    return why->empty();
  }

 private:
  [[nodiscard]] bool wait(uint64_t wait_ns) override {
    if (!client_->progress() && wait_ns > 0) {
      client_->wait(AmClient::Deadline::clock::now() + std::chrono::nanoseconds(wait_ns));
    }
    context_.now_ns = steady_now_ns();
    for (size_t i = 0; i < streams_.size(); ++i) {
      const AmStream& stream = *streams_[i];
      const bool readable = stream.readable().size > 0 ||
                            (stream.announced() > 0 && !stream.is_fetching()) ||
                            stream.state() == AmStream::State::kEnded;
      if ((readable || connections_[i]->wants_to_write()) && !serve(i, readable)) return false;
    }
    return true;
  }

  // Each wait() looks at all of them.
  [[nodiscard]] bool watch(size_t, bool) override { return true; }

  std::unique_ptr<AmClient> client_;
  std::vector<AmStream*> streams_;  // of the connections
};

}  // namespace

std::unique_ptr<Worker> make_ucx_worker(const Options& options, const Keyspace& keys,
                                        Distribution* distribution, uint32_t index,
                                        std::atomic<bool>* stop, const std::string& host,
                                        std::string* why) {
  auto worker = std::make_unique<UcxWorker>(options, keys, distribution, index, stop);
  if (!worker->connect(host, why)) return nullptr;
  return worker;
}

}  // namespace warpcache::load
