// SPDX-License-Identifier: Apache-2.0
#include "client/am_client.h"

#include <poll.h>
#include <sched.h>

#include <algorithm>
#include <cstring>
#include <new>
#include <string_view>
#include <utility>

#include "base/assert.h"

namespace warpcache::client {
namespace {

using Clock = std::chrono::steady_clock;

// Longer than an answer of a server that polls, shorter than a time slice.
constexpr std::chrono::microseconds kPollFor{50};
constexpr uint32_t kOutUnderWayMax = 64;

}  // namespace

// --- Stream

size_t AmStream::visible() const {
  if (announced_.empty()) return std::min(input_.size(), readable_max_);
  const uint64_t eager = input_.size() - not_eager_;
  return not_eager_ + (announced_.front().at - (received_ - eager));
}

void AmStream::consume(size_t bytes) {
  not_eager_ -= std::min<uint64_t>(not_eager_, bytes);
  if (readable_max_ != SIZE_MAX) readable_max_ -= bytes;
  input_.consume(bytes);
}

size_t AmStream::send(Bytes bytes) { return send_eagerly(bytes, true); }

size_t AmStream::send_from(Bytes bytes) { return send_eagerly(bytes, false); }

size_t AmStream::send_eagerly(Bytes bytes, bool copies) {
  size_t done = 0;
  while (done < bytes.size && state_ == State::kOpen && under_way_ < kOutUnderWayMax) {
    const uint64_t window = welcome_.window - (sent_ - taken_);
    const size_t most = copies ? std::min(welcome_.eager_max, io::kAmEagerMax) : welcome_.eager_max;
    const size_t size = std::min({bytes.size - done, most, size_t{window}});
    if (size == 0) break;
    AmClient::Out& out = client_.new_out(*this, io::AmHandler::kBytes);
    out.data = bytes.sub(done, size);
    if (copies) {
      std::memcpy(out.bytes, out.data.data, size);
      out.data.data = out.bytes;
    }
    sent_ += size;
    done += size;
    client_.send_out(*this, out);
  }
  return done;
}

void AmStream::send_in_place(Bytes bytes) {
  AmClient::Out& out = client_.new_out(*this, io::AmHandler::kBytes);
  out.rendezvous = out.in_place = true;
  out.data = bytes;
  client_.send_out(*this, out);
}

void AmStream::begin_read(Bytes key) {
  const MutableBytes buffer = {slot_.get(), io::kSlotBytes};
  client_.port_->read(endpoint_, bytes_of(std::string_view(region_key_)),
                      region_.address + io::slot_offset(region_, key), buffer, &read_);
}

void AmStream::ask_copy(Bytes key) {
  if (under_way_ >= kOutUnderWayMax) return;
  AmClient::Out& out = client_.new_out(*this, io::AmHandler::kCopy);
  std::memcpy(out.bytes, key.data, key.size);
  out.data = {out.bytes, key.size};
  client_.send_out(*this, out);
}

void AmStream::half_close() {
  if (state_ != State::kOpen || std::exchange(half_closed_, true)) return;
  client_.send_out(*this, client_.new_out(*this, io::AmHandler::kBye));
}

void AmStream::fetch(uint8_t* data) {
  const Announced next = announced_.front();
  const MutableBytes piece = {data, next.size};
  fetching_ = true;
  if (client_.port_->fetch(endpoint_, next.data, &piece, 1)) client_.fetched(endpoint_, true);
}

void AmStream::fetch_more() {
  fetched_.reset(new (std::nothrow) uint8_t[announced_.front().size]);
  if (fetched_ == nullptr) return client_.lose_rest(*this, 0, "no memory for a value");
  fetch(fetched_.get());
}

// --- Client

std::string AmClient::open(std::unique_ptr<AmClient>* client, bool one_sided, bool long_messages) {
  std::unique_ptr<AmClient> made(new AmClient);
  std::shared_ptr<io::UcxContext> context;
  made->one_sided_ = one_sided;
  made->long_messages_ = long_messages;
  std::string failure = io::UcxContext::open(&context, one_sided);
  if (failure.empty()) failure = io::UcxPort::open(context, &made->port_);
  if (!failure.empty()) return failure;
  made->port_->attach(*made);
  *client = std::move(made);
  return "";
}

AmClient::~AmClient() {
  if (port_ == nullptr) return;
  for (size_t i = 0; i < streams_.size(); ++i) {
    if (streams_[i] != nullptr && !streams_[i]->closed_) close(streams_[i].get());
  }
  const Deadline deadline = Clock::now() + std::chrono::seconds(1);
  while (closing_ != 0 && Clock::now() < deadline) wait(deadline);
  port_.reset();  // it tells the streams of what is still under way
}

std::string AmClient::connect(const std::string& host, uint16_t port, AmStream** stream) {
  uint32_t endpoint = 0;
  std::string failure = port_->connect(host, port, &endpoint);
  if (!failure.empty()) return failure;
  while (streams_.size() <= endpoint) streams_.emplace_back();
  streams_[endpoint].reset(new AmStream(*this, endpoint));
  *stream = streams_[endpoint].get();
  Out& hello = new_out(**stream, io::AmHandler::kHello);
  hello.bytes[0] =
      static_cast<uint8_t>((one_sided_ ? io::kAmAsksForSlots : 0) |
                           (long_messages_ && port_->is_by_tcp() ? io::kAmAsksForLong : 0));
  hello.data.size = hello.bytes[0] != 0 ? 1 : 0;
  send_out(**stream, hello);
  return "";
}

void AmClient::close(AmStream* stream) {
  const uint32_t endpoint = stream->endpoint_;
  // A fetch under way writes to memory of the caller's, who must wait for it or close the client.
  for (size_t i = stream->fetching_ ? 1 : 0; i < stream->announced_.size(); ++i) {
    port_->drop(endpoint, stream->announced_[i].data);
  }
  stream->announced_.clear();
  stream->state_ = AmStream::State::kEnded;
  stream->closed_ = true;
  ++closing_;
  port_->close(endpoint);
}

void AmClient::close_and_wait(AmStream* stream) {
  const uint32_t endpoint = stream->endpoint_;
  close(stream);
  const Deadline deadline = Clock::now() + std::chrono::seconds(1);
  while (streams_[endpoint] != nullptr && Clock::now() < deadline) wait(deadline);
}

AmStream* AmClient::stream_of(uint32_t endpoint) {
  return endpoint < streams_.size() ? streams_[endpoint].get() : nullptr;
}

AmClient::Out& AmClient::new_out(AmStream& stream, io::AmHandler handler) {
  if (spare_.empty()) spare_.push_back(std::make_unique<Out>());
  Out& out = *spare_.back().release();
  spare_.pop_back();
  out.header = {};
  out.header.handler = handler;
  out.header.sequence = stream.next_out_++;
  out.data = {out.bytes, 0};
  out.rendezvous = out.in_place = false;
  out.endpoint = stream.endpoint_;
  return out;
}

void AmClient::send_out(AmStream& stream, Out& out) {
  if (port_->send(out) == io::AmSent::kUnderWay) {
    ++stream.under_way_;
    if (out.in_place) ++stream.in_place_under_way_;
    return;
  }
  spare_.emplace_back(&out);  // sent, or failed() follows
}

void AmClient::sent(io::AmSend& message, bool) {
  Out& out = static_cast<Out&>(message);
  AmStream* const stream = stream_of(out.endpoint);
  WC_ASSERT(stream != nullptr);
  --stream->under_way_;
  if (out.in_place) --stream->in_place_under_way_;
  spare_.emplace_back(&out);
}

void AmClient::end(AmStream& stream, std::string reason) {
  if (stream.state_ == AmStream::State::kEnded) return;
  stream.state_ = AmStream::State::kEnded;
  stream.reason_ = std::move(reason);
}

void AmClient::received(uint32_t endpoint, Bytes header, Bytes data) {
  AmStream* const stream = stream_of(endpoint);
  if (stream == nullptr || stream->state_ == AmStream::State::kEnded) return;
  io::AmHeader parsed;
  if (header.size != sizeof parsed) return end(*stream, "the server sent a header of another size");
  std::memcpy(&parsed, header.data, sizeof parsed);
  if (parsed.version != io::kAmVersion || parsed.sequence != stream->next_in_++) {
    return end(*stream, "the server speaks another version, or messages are out of order");
  }
  stream->taken_ = std::max(stream->taken_, parsed.taken);
  switch (parsed.handler) {
    case io::AmHandler::kBytes:
      stream->received_ += data.size;
      if (!stream->input_.append(data)) end(*stream, "no memory for a reply");
      return;
    case io::AmHandler::kWelcome:
      return take_welcome(*stream, data);
    case io::AmHandler::kBye:
      return end(*stream, std::string(reinterpret_cast<const char*>(data.data), data.size));
    case io::AmHandler::kTaken:
    case io::AmHandler::kHello:
    case io::AmHandler::kCopy:
      return;
  }
}

void AmClient::take_welcome(AmStream& stream, Bytes data) {
  if (data.size < sizeof stream.welcome_) return end(stream, "the server's welcome is short");
  std::memcpy(&stream.welcome_, data.data, sizeof stream.welcome_);
  stream.state_ = AmStream::State::kOpen;
  const Bytes more = data.from(sizeof stream.welcome_);
  io::SlotRegion region;
  if (!one_sided_ || more.size <= sizeof region) return;
  std::memcpy(&region, more.data, sizeof region);
  const bool is_known = region.slot_bytes == io::kSlotBytes && region.slots != 0 &&
                        (region.slots & (region.slots - 1)) == 0;
  if (!is_known) return;
  stream.slot_.reset(new (std::nothrow) uint8_t[io::kSlotBytes]);
  if (stream.slot_ == nullptr) return;
  const Bytes key = more.from(sizeof region);
  stream.region_key_.assign(reinterpret_cast<const char*>(key.data), key.size);
  stream.region_ = region;
}

bool AmClient::announced(uint32_t endpoint, Bytes header, uint64_t size, io::AmRemote data) {
  AmStream* const stream = stream_of(endpoint);
  if (stream == nullptr || stream->state_ != AmStream::State::kOpen) return false;
  io::AmHeader parsed;
  if (header.size != sizeof parsed) return false;
  std::memcpy(&parsed, header.data, sizeof parsed);
  if (parsed.sequence != stream->next_in_++ || parsed.handler != io::AmHandler::kBytes) {
    end(*stream, "messages are out of order");
    return false;
  }
  stream->taken_ = std::max(stream->taken_, parsed.taken);
  stream->announced_.push_back({data, static_cast<uint32_t>(size), stream->received_});
  return true;
}

void AmClient::fetched(uint32_t endpoint, bool whole) {
  AmStream* const stream = stream_of(endpoint);
  WC_ASSERT(stream != nullptr);
  stream->fetching_ = false;
  const std::unique_ptr<uint8_t[]> buffer = std::move(stream->fetched_);
  if (stream->announced_.empty()) return;  // closed
  if (!whole) return lose_rest(*stream, 1, "a value could not be fetched");
  const size_t before = stream->visible();
  const uint32_t size = stream->announced_.front().size;
  stream->announced_.erase(stream->announced_.begin());
  if (buffer == nullptr) return;
  if (!stream->input_.insert(before, {buffer.get(), size})) return end(*stream, "no memory");
  stream->not_eager_ = before + size;
}

// Announced bytes cannot be had: none after them may be read. The port knows nothing more of the
// first `gone` ones.
void AmClient::lose_rest(AmStream& stream, size_t gone, const char* reason) {
  stream.readable_max_ = stream.visible();
  for (size_t i = gone; i < stream.announced_.size(); ++i) {
    port_->drop(stream.endpoint_, stream.announced_[i].data);
  }
  stream.announced_.clear();
  end(stream, reason);
}

void AmClient::failed(uint32_t endpoint) {
  AmStream* const stream = stream_of(endpoint);
  if (stream == nullptr) return;
  end(*stream, stream->state_ == AmStream::State::kConnecting
                   ? "no server answers there, it is full, or it refuses this version of UCX"
                   : "the server has gone");
}

void AmClient::ended(uint32_t endpoint) {
  streams_[endpoint].reset();
  --closing_;
}

void AmClient::wait(Deadline deadline) {
  const Deadline poll_until = std::min(deadline, Clock::now() + kPollFor);
  do {
    for (int i = 0; i < 16; ++i) {
      if (port_->progress()) return;
    }
    // Whoever shares this processor may be the server.
    (void)sched_yield();
  } while (Clock::now() < poll_until);
  if (!port_->arm()) return;
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now());
  pollfd event{port_->event_fd(), POLLIN, 0};
  (void)::poll(&event, 1, static_cast<int>(std::clamp<int64_t>(left.count() + 1, 0, 1000)));
}

}  // namespace warpcache::client
