// SPDX-License-Identifier: Apache-2.0
//
// What arrives: messages become chunks. am_output.cc sends, am_sweep.cc closes.
#include "io/ucx/am_transport.h"

#include <time.h>

#include <algorithm>
#include <cstring>
#include <new>
#include <string_view>
#include <utility>

#include "base/assert.h"

namespace warpcache::io {
namespace {

uint64_t coarse_ms() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1000 + static_cast<uint64_t>(now.tv_nsec) / 1'000'000;
}

}  // namespace

AmTransport::AmTransport(const AmTransportConfig& config, AmPort& port, ConnectionBudget& budget)
    : config_(config), port_(port), reaches_device_(port.reaches_device()), budget_(budget) {
  if (!config_.clock_ms) config_.clock_ms = coarse_ms;
  clock_ms_ = config_.clock_ms();
  look_at_clock();
  swept_at_s_ = now_s_;
  port_.attach(*this);
}

AmTransport::~AmTransport() = default;

void AmTransport::attach(SessionObserver& observer, PinReleaser& releaser) {
  observer_ = &observer;
  releaser_ = &releaser;
}

bool AmTransport::receive(RxBurst& burst) {
  const size_t chunks_before = burst.chunks.size();
  burst_ = &burst;
  look_at_clock();
  bool busy = port_.progress();
  if (WC_UNLIKELY(!broken_.empty())) close_broken();
  if (WC_UNLIKELY(!later_.empty())) ready_later();
  if (WC_UNLIKELY(!long_replies_.empty())) pump_long_replies();
  if (WC_UNLIKELY(now_s_ != swept_at_s_)) once_a_second();
  if (WC_UNLIKELY(attended_ms_ >= check_at_ms_)) check_port();
  if (WC_UNLIKELY(mode_.load(std::memory_order_relaxed) != Mode::kRunning)) drain_idle();
  if (WC_UNLIKELY(restarting_)) restart_port();
  if (!ready_.empty()) deliver_ready();
  burst_ = nullptr;
  const size_t added = burst.chunks.size() - chunks_before;
  delivered_ += static_cast<uint32_t>(added);
  for (size_t i = chunks_before; i < burst.chunks.size(); ++i) {
    busy = true;
    // The arena's end moves on: nothing is added to these any more.
    stream_of(burst.chunks[i].handle & ~kHandleBit).chunk = kNoChunk;
  }
  return busy;
}

bool AmTransport::arm() { return ready_.empty() && broken_.empty() && port_.arm(); }

int AmTransport::sleep_ms_max() const {
  if (!later_.empty()) return static_cast<int>(kLaterAfter.count());
  if (mode_.load(std::memory_order_relaxed) != Mode::kRunning) return 20;
  if (attended_streams_ != 0) return static_cast<int>(kRoundMsMax);
  return stream_count_ == 0 ? INT32_MAX : 1000;
}

bool AmTransport::admits() {
  if (restarting_ || mode_.load(std::memory_order_relaxed) != Mode::kRunning) return false;
  if (budget_.try_take()) return true;
  am_counters_.refused.add(1);
  return false;
}

void AmTransport::not_opened() {
  counters_.connections_refused.add(1);
  budget_.give_back();
}

void AmTransport::opened(uint32_t endpoint) {
  const std::lock_guard lock(list_mutex_);
  while (streams_.size() <= endpoint) {
    streams_.push_back(std::make_unique<AmSlot>());
    ready_.reserve(streams_.size());
    later_.reserve(streams_.size());
    broken_.reserve(streams_.size());
    long_replies_.reserve(streams_.size());
  }
  AmStream& stream = stream_of(endpoint);
  WC_ASSERT(stream.state == AmStream::State::kFree);
  stream = {};
  stream.state = AmStream::State::kOpen;
  stream.id = budget_.next_id();
  stream.active_at = now_s_;
  stream.since_ms = attended_ms_;
  ++attended_streams_;
  stream.session_open = true;
  AmSlot& slot = *streams_[endpoint];
  slot.peer = port_.peer(endpoint);
  slot.active_at.store(now_s_, std::memory_order_relaxed);
  slot.has_request.store(false, std::memory_order_relaxed);
  slot.in_body.store(false, std::memory_order_relaxed);
  slot.open_id.store(stream.id, std::memory_order_relaxed);
  stream_count_.fetch_add(1, std::memory_order_relaxed);
  counters_.connections_opened.add(1);
  observer_->opened(stream.session, -1);
}

// Reads the header and checks what is the same for all handlers. False: the message is ignored.
bool AmTransport::take_header(AmStream& stream, uint32_t number, Bytes header, AmHeader& parsed) {
  if (!stream.is_open() || stream.broken || stream.ends) return false;
  am_counters_.messages_received.add(1);
  stream.active_at = now_s_;
  if (header.size != sizeof parsed) {
    break_rules(number, "the header has another size");
    return false;
  }
  std::memcpy(&parsed, header.data, sizeof parsed);
  if (parsed.version != kAmVersion) {
    break_rules(number, "this server speaks version 1 of the byte layout");
    return false;
  }
  if (parsed.sequence != stream.next_in++) {
    break_rules(number, "a message is out of order");
    return false;
  }
  const bool greets = parsed.handler == AmHandler::kHello;
  if (greets == stream.greeted) {
    break_rules(number, greets ? "a second hello" : "the first message must be a hello");
    return false;
  }
  return true;
}

void AmTransport::received(uint32_t endpoint, Bytes header, Bytes data) {
  AmStream& stream = stream_of(endpoint);
  AmHeader parsed;
  if (!take_header(stream, endpoint, header, parsed)) return;
  switch (parsed.handler) {
    case AmHandler::kBytes:
      return take_bytes(endpoint, stream, data);
    case AmHandler::kHello:
      return greet(endpoint, stream, data);
    case AmHandler::kCopy:
      return copy_item(endpoint, stream, data);
    case AmHandler::kTaken:
      return;
    case AmHandler::kBye:
      stream.half_closed = true;
      return schedule(endpoint);
    case AmHandler::kWelcome:
      break;
  }
  break_rules(endpoint, "there is no such handler");
}

void AmTransport::greet(uint32_t number, AmStream& stream, Bytes hello) {
  stream.greeted = true;
  --attended_streams_;
  const uint8_t asks = hello.size == 1 ? hello[0] : 0;
  if ((asks & kAmAsksForLong) != 0) stream.eager_max = kAmLongMax;
  const AmWelcome numbers = {kAmWindow, stream.eager_max, kAmRendezvousMax, kAmAnnouncedMax};
  std::string welcome(reinterpret_cast<const char*>(&numbers), sizeof numbers);
  stream.has_slots = !config_.slots.empty() && (asks & kAmAsksForSlots) != 0;
  if (stream.has_slots) welcome += config_.slots;
  send_control(number, AmHandler::kWelcome, bytes_of(std::string_view(welcome)));
}

void AmTransport::copy_item(uint32_t number, AmStream& stream, Bytes key) {
  constexpr size_t kKeyMax = 250;
  if (!stream.has_slots || key.size == 0 || key.size > kKeyMax) {
    return break_rules(number, "a key to be copied that is none, or without slots");
  }
  config_.copy(key);
}

void AmTransport::take_bytes(uint32_t number, AmStream& stream, Bytes data) {
  counters_.bytes_read.add(data.size);
  stream.received += data.size;
  if (stream.received - stream.taken > kAmWindow || data.size > kAmWindow) {
    return break_rules(number, "more bytes than the window has");
  }
  if (WC_LIKELY(deliver_direct(number, stream, data))) return;
  if (!stream.input.append(data)) {
    counters_.input_refused.add(1);
    return set_broken(number);
  }
  schedule(number);
}

bool AmTransport::has_space() const {
  const InputArena& arena = burst_->arena;
  return arena.size - arena.used >= kChunkBytesMax && burst_->chunks.size() < kChunksMax;
}

// The usual case: the stream's only bytes go straight into the arena.
bool AmTransport::deliver_direct(uint32_t number, AmStream& stream, Bytes data) {
  if (burst_ == nullptr || stream.input.size() != 0 || !stream.announced.empty()) return false;
  InputArena& arena = burst_->arena;
  if (stream.delivered) {
    // Bytes can follow those of the last chunk of this burst.
    if (!stream.direct || stream.chunk == kNoChunk) return false;
    if (stream.chunk + 1 != burst_->chunks.size()) return false;
    RxChunk& chunk = burst_->chunks.back();
    if (chunk.size + data.size > kChunkBytesMax || arena.size - arena.used < data.size)
      return false;
    std::memcpy(arena.data + arena.used, data.data, data.size);
    chunk.size += static_cast<uint32_t>(data.size);
    arena.used += static_cast<uint32_t>(data.size);
    return true;
  }
  if (stream.need != 0 || !stream.body.empty() || !may_go_on(stream) || stream.ready ||
      data.size > kChunkBytesMax || !has_space()) {
    return false;
  }
  std::memcpy(arena.data + arena.used, data.data, data.size);
  stream.direct = true;
  stream.chunk = static_cast<uint32_t>(burst_->chunks.size());
  add_chunk(number, static_cast<uint32_t>(data.size), 0);
  return true;
}

// Appends a chunk of the `size` bytes at the arena's end.
void AmTransport::add_chunk(uint32_t number, uint32_t size, uint32_t body_received) {
  AmStream& stream = stream_of(number);
  stream.delivered = true;
  streams_[number]->has_request.store(true, std::memory_order_relaxed);
  streams_[number]->active_at.store(now_s_, std::memory_order_relaxed);
  RxChunk chunk;
  chunk.handle = number | kHandleBit;
  chunk.offset = burst_->arena.used;
  chunk.size = size;
  chunk.body_received = body_received;
  chunk.admin = config_.admin;
  chunk.value_memory_max = config_.client_memory_max;
  chunk.session = &stream.session;
  chunk.connection_id = stream.id;
  if (!stream.announced.empty() && size == visible(stream)) {
    chunk.announced = stream.announced.front().size;
    stream.announced.front().offered = true;
  }
  burst_->chunks.push_back(chunk);
  burst_->arena.used += size;
}

bool AmTransport::announced(uint32_t endpoint, Bytes header, uint64_t size, AmRemote data) {
  AmStream& stream = stream_of(endpoint);
  AmHeader parsed;
  if (!take_header(stream, endpoint, header, parsed)) return false;
  if (parsed.handler != AmHandler::kBytes || size == 0 || size > kAmRendezvousMax ||
      stream.announced.size() == kAmAnnouncedMax) {
    break_rules(endpoint, "data by rendezvous of that handler, size or number");
    return false;
  }
  counters_.bytes_read.add(size);
  stream.announced.push_back({data, static_cast<uint32_t>(size), stream.received, false});
  schedule(endpoint);
  return true;
}

// Bytes of the input that come before announced data.
uint32_t AmTransport::visible(const AmStream& stream) const {
  const size_t size = stream.input.size();
  if (stream.announced.empty()) return static_cast<uint32_t>(std::min<size_t>(size, UINT32_MAX));
  const uint64_t eager = size - stream.not_eager;
  return static_cast<uint32_t>(stream.not_eager +
                               (stream.announced.front().at - (stream.received - eager)));
}

bool AmTransport::may_go_on(const AmStream& stream) const {
  return stream.is_open() && !stream.broken && !stream.delivered && stream.under_way == 0 &&
         stream.long_reply == nullptr && !stream.closing && !stream.later &&
         stream.fetched_size == 0;
}

// Delivers the stream in this or the next receive(), or fetches what it needs first.
void AmTransport::schedule(uint32_t number) {
  const AmStream& stream = stream_of(number);
  if (stream.ready || !may_go_on(stream)) return;
  const uint32_t bytes = visible(stream);
  const bool enough = stream.need != 0 ? bytes >= stream.need : bytes > stream.seen;
  if (stream.more_now || enough) return set_ready(number);
  if (stream.announced.empty()) {
    if (stream.half_closed) leave(number);
    return;
  }
  const AmAnnounced& next = stream.announced.front();
  // The worker may take space in the store for it.
  if (!next.offered && stream.body.empty()) return set_ready(number);
  fetch_next(number);
}

void AmTransport::set_ready(uint32_t number) {
  stream_of(number).ready = true;
  ready_.push_back(number);
}

// As SocketTransport::deliver_ready(): at most half of the arena.
void AmTransport::deliver_ready() {
  size_t done = 0;
  while (done < ready_.size() && has_space() && burst_->arena.used < burst_->arena.size / 2 &&
         burst_->chunks.size() < kChunksMax / 2) {
    const uint32_t number = ready_[done++];
    stream_of(number).ready = false;
    if (may_go_on(stream_of(number))) deliver(number);
  }
  ready_.erase(ready_.begin(), ready_.begin() + static_cast<ptrdiff_t>(done));
}

// Copies input into the arena, or first into the body.
void AmTransport::deliver(uint32_t number) {
  AmStream& stream = stream_of(number);
  stream.more_now = false;
  stream.direct = false;
  if (stream.body_fetched != 0) {
    add_chunk(number, 0, std::exchange(stream.body_fetched, 0));
    burst_->chunks.back().body_on_device = stream.on_device;
    return;
  }
  uint32_t into_body = 0;
  if (!stream.body.empty()) {
    into_body = static_cast<uint32_t>(std::min<size_t>(visible(stream), stream.body.size));
    std::memcpy(stream.body.data, stream.input.data(), into_body);
    take(stream, into_body);
  }
  const bool only_body = into_body != 0 && (into_body < stream.body.size || !stream.body_ends);
  const uint32_t size = only_body ? 0 : std::min(visible(stream), kChunkBytesMax);
  if (size > 0) std::memcpy(burst_->arena.data + burst_->arena.used, stream.input.data(), size);
  add_chunk(number, size, into_body);
}

// Consumes bytes of the input.
void AmTransport::take(AmStream& stream, uint64_t bytes) {
  const uint64_t not_eager = std::min(bytes, stream.not_eager);
  stream.not_eager -= not_eager;
  stream.taken += bytes - not_eager;
  stream.input.consume(bytes);
}

// The places in the store for the next `size` bytes of the body. False: the body ends before.
bool AmTransport::collect_windows(AmStream& stream, uint32_t size) {
  windows_.clear();
  if (stream.body.empty()) return false;
  const MutableBytes device =
      reaches_device_ ? observer_->device_window(stream.session, size) : MutableBytes{};
  stream.on_device = !device.empty();
  if (stream.on_device) {
    windows_.push_back(device);
    return true;
  }
  uint32_t collected = 0;
  while (collected < size && windows_.size() < kPiecesMax) {
    MutableBytes window = observer_->body_window(stream.session, collected);
    if (window.empty()) return false;
    window.size = std::min<size_t>(window.size, size - collected);
    collected += static_cast<uint32_t>(window.size);
    windows_.push_back(window);
  }
  return collected == size;
}

void AmTransport::fetch_next(uint32_t number) {
  AmStream& stream = stream_of(number);
  const AmAnnounced next = stream.announced.front();
  const bool into_body = visible(stream) == 0 && collect_windows(stream, next.size);
  if (!into_body) {
    stream.fetched.reset(new (std::nothrow) uint8_t[next.size]);
    if (stream.fetched == nullptr) return set_broken(number);
    windows_.assign(1, {stream.fetched.get(), next.size});
  }
  (into_body ? am_counters_.fetched_bytes : am_counters_.copied_bytes).add(next.size);
  if (into_body && stream.on_device) am_counters_.device_bytes.add(next.size);
  stream.fetched_size = next.size;
  const auto count = static_cast<uint32_t>(windows_.size());
  const bool done = into_body && stream.on_device
                        ? port_.fetch_to_device(number, next.data, windows_.front())
                        : port_.fetch(number, next.data, windows_.data(), count);
  if (done) fetched(number, true);
}

void AmTransport::fetched(uint32_t endpoint, bool whole) {
  AmStream& stream = stream_of(endpoint);
  const uint32_t size = std::exchange(stream.fetched_size, 0);
  const std::unique_ptr<uint8_t[]> buffer = std::move(stream.fetched);
  if (stream.state == AmStream::State::kClosed) return;
  stream.active_at = now_s_;
  if (!whole) return set_broken(endpoint);
  const uint32_t before = visible(stream);
  stream.announced.erase(stream.announced.begin());
  if (buffer != nullptr) {
    // What precedes it counts as consumed, or the window would not fit to the order of the bytes.
    if (!stream.input.insert(before, {buffer.get(), size})) return set_broken(endpoint);
    const uint64_t eager_before = before - stream.not_eager;
    stream.taken += eager_before;
    stream.not_eager = before + size;
    return schedule(endpoint);
  }
  stream.body_fetched = size;
  set_ready(endpoint);
}

}  // namespace warpcache::io
