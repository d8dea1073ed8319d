// SPDX-License-Identifier: Apache-2.0
#ifndef WARPCACHE_BENCH_LOAD_STREAM_CONNECTION_H_
#define WARPCACHE_BENCH_LOAD_STREAM_CONNECTION_H_

#include <memory>
#include <utility>

#include "load/byte_stream.h"
#include "load/connection.h"

namespace warpcache::load {

// Replies come in the order of the requests.
class StreamConnection final : public Connection {
 public:
  StreamConnection(ThreadContext* context, std::unique_ptr<ByteStream> stream, uint32_t places)
      : Connection(context, places), stream_(std::move(stream)) {}

  bool has_space() const override {
    return outstanding_ < limit_ && unsent_.empty() && context_->out.size() < kSendBytesMax;
  }
  [[nodiscard]] bool flush() override;
  bool wants_to_write() const override { return !unsent_.empty(); }
  [[nodiscard]] bool receive() override;
  [[nodiscard]] bool check_timeouts(uint64_t oldest_ns) override;

 private:
  static constexpr size_t kSendBytesMax = size_t{256} << 10;  // requests of one send
  static constexpr size_t kReceiveBytes = size_t{256} << 10;  // buffer of one receive

  uint32_t take_place() override { return (oldest_ + outstanding_++) % places_; }
  void write(uint32_t place) override { write_body(place); }
  bool read_replies(std::string_view* in);

  std::unique_ptr<ByteStream> stream_;
  uint32_t oldest_ = 0;  // place of the oldest unanswered request
  Buffer unsent_;        // bytes that the stream did not take
  Buffer partial_;       // the start of an incomplete reply
};

}  // namespace warpcache::load

#endif  // WARPCACHE_BENCH_LOAD_STREAM_CONNECTION_H_
