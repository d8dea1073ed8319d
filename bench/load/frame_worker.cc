// SPDX-License-Identifier: Apache-2.0
#include "load/frame_worker.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <span>

#include "base/bits.h"
#include "base/hd.h"
#include "net/wide_checksum.h"

namespace warpcache::load {
namespace {

constexpr uint32_t kFirstClientPort = 20'000;  // each connection has one
constexpr uint16_t kProbePort = 19'999;
constexpr uint32_t kAhead = 8;  // replies
constexpr uint64_t kLookEveryNs = 50'000'000;
constexpr double kPollNsMax = 1'000'000;  // polls if a request is due before
constexpr uint8_t kServerMac[] = {2, 0, 0, 0, 0, 1};
constexpr uint8_t kClientMac[] = {2, 0, 0, 0, 0, 2};
constexpr uint32_t kSumBlock = 16;

// Adds a range for net::wide::udp_checksum(), in blocks: zeros follow the range to a block's end.
inline uint64_t add_blocks(uint64_t sum, const uint8_t* data, uint32_t size) {
  for (const uint8_t* const end = data + size; data < end; data += kSumBlock) {
    sum = net::wide::add(sum, load_as<uint64_t>(data), load_as<uint64_t>(data + kSumBlock / 2));
  }
  return sum;
}

}  // namespace

FrameWorker::FrameWorker(const Options& options, const Keyspace& keys, Distribution* distribution,
                         uint32_t index, std::atomic<bool>* stop,
                         std::unique_ptr<io::FramePort> port, const sockaddr_in& client,
                         const sockaddr_in& server)
    : Worker(options, keys, distribution, index, stop),
      port_(std::move(port)),
      pipeline_(options.pipeline),
      id_step_(std::bit_ceil(options.pipeline)),
      connections_(connection_count()),
      requests_(size_t{connections_} * options.pipeline),
      rests_(requests_.size()),
      ids_(requests_.size() * options.multiget),
      multiget_(options.multiget),
      out_(size_t{kBurst} * rounded_up(kFrameBytesMax + kSumBlock, kLine)),
      slots_(kReceivedMax),
      times_(kReceivedMax),
      check_every_(static_cast<uint32_t>(std::lround(1 / options.verify_share))) {
  std::copy(std::begin(kServerMac), std::end(kServerMac), header_.begin());
  std::copy(std::begin(kClientMac), std::end(kClientMac), header_.begin() + 6);
  uint8_t* const ip = &header_[kIp];
  store_big16(&header_[kIp - 2], net::kEtherTypeIpv4);
  ip[0] = 0x45;
  ip[8] = 64;  // hops
  ip[9] = net::kIpProtocolUdp;
  std::memcpy(ip + net::kIpv4SourceOffset, &client.sin_addr, net::kIpv4AddressSize);
  std::memcpy(ip + net::kIpv4SourceOffset + net::kIpv4AddressSize, &server.sin_addr,
              net::kIpv4AddressSize);
  ip_sum_ = net::checksum_add(0, ip, net::kIpv4HeaderSize);
  std::memcpy(&header_[kUdp + net::kUdpDestinationOffset], &server.sin_port, 2);
  pseudo_sum_ = net::udp_pseudo_header_sum(header_.data(), kIp, 4, 0);
  set_payload_size(0);
  for (const Operation operation : {Operation::kGet, Operation::kSet, Operation::kDelete}) {
    const uint32_t keys_max = operation == Operation::kGet ? multiget_ : 1;
    always_fits_[static_cast<size_t>(operation)] =
        context_.codec.bytes_max(operation, keys_max) <= kFrameBytesMax - kBody;
  }
  for (uint32_t number = 0; number < requests_.size(); ++number) {
    requests_[number].place.id = static_cast<uint16_t>(number % pipeline_);
    requests_[number].ids = &ids_[size_t{number} * multiget_];
    requests_[number].pending.ids = requests_[number].ids;
    requests_[number].port = static_cast<uint16_t>(kFirstClientPort + number / pipeline_);
    free_.push_back(number);
  }
  free_end_ = static_cast<uint32_t>(free_.size());
  free_.resize(std::bit_ceil(free_.size()));
  free_mask_ = static_cast<uint32_t>(free_.size() - 1);
  const MutableBytes own = port_->memory();
  if (own.size == 0) memory_.resize(size_t{4} * io::kFrameBytesMax);
  buffer_.data = own.size != 0 ? own.data : memory_.data();
  buffer_.size = static_cast<uint32_t>(memory_.size());
  buffer_.slots = slots_.data();
  buffer_.times_ns = times_.data();
  buffer_.frames_max = kReceivedMax;
}

// --- Sending

void FrameWorker::set_payload_size(uint32_t bytes) {
  payload_size_ = bytes;
  const auto udp_size = static_cast<uint16_t>(net::kUdpProtocolHeaderSize + bytes);
  const auto ip_size = static_cast<uint16_t>(net::kIpv4HeaderSize + udp_size);
  store_big16(&header_[kIp + 2], ip_size);
  const auto ip_checksum =
      static_cast<uint16_t>(~net::checksum_fold(net::checksum_add16(ip_sum_, ip_size)));
  std::memcpy(&header_[kIp + 10], &ip_checksum, sizeof ip_checksum);
  store_big16(&header_[kUdp + net::kUdpLengthOffset], udp_size);
}

// The payload at next_frame() + kPayload is complete: the frame around it joins the burst.
inline void FrameWorker::add_frame(uint16_t client_port, uint32_t payload_size) {
  static_assert(net::kEthernetFrameMin <= kBody + kSumBlock);
  if (WC_UNLIKELY(payload_size != payload_size_)) set_payload_size(payload_size);
  uint8_t* const frame = next_frame();
  std::memcpy(frame, header_.data(), kPayload);
  store_big16(frame + kUdp, client_port);
  const uint32_t size = kPayload + payload_size;
  std::memset(frame + size, 0, kSumBlock);  // padding, and for add_blocks()
  sent_[sent_count_++].bytes = {frame, size};
  out_used_ += rounded_up(size + kSumBlock, kLine);
}

// The UDP checksums of a whole burst: by now no load waits for the stores that wrote its bytes.
void FrameWorker::finish_frames() {
  const uint64_t pseudo_sum = pseudo_sum_;
  uint64_t payloads = 0;
  for (io::TxFrame& sent : std::span(sent_.data(), sent_count_)) {
    auto* const frame = const_cast<uint8_t*>(sent.bytes.data);
    const auto size = static_cast<uint32_t>(sent.bytes.size);
    uint8_t* const udp = frame + kUdp;
    const uint16_t udp_size = load_as<uint16_t>(udp + net::kUdpLengthOffset);
    store_as(udp + net::kUdpChecksumOffset,
             net::wide::udp_checksum(add_blocks(pseudo_sum + udp_size, udp, size - kUdp)));
    sent.bytes.size = net::padded_frame_size(size);
    payloads += size - kPayload;
  }
  context_.note_sent(payloads);
}

void FrameWorker::send_frames() {
  if (sent_count_ == 0) return;
  finish_frames();
  port_->send(0, sent_.data(), sent_count_);
  sent_count_ = out_used_ = 0;
}

// REQUIRES: room() is not 0.
inline FrameWorker::Request& FrameWorker::take(uint64_t begin_ns) {
  Request& request = requests_[free_[free_begin_++ & free_mask_]];
  request.place.use(static_cast<uint16_t>(request.place.id + id_step_));
  request.begin_ns = begin_ns;
  request.sent_ns = context_.now_ns;
  request.pending.next = 0;
  taken_[taken_count_++] = &request;
  return request;
}

inline void FrameWorker::release(Request& request) {
  request.place.used = false;
  free_[free_end_++ & free_mask_] = number_of(request);
}

void FrameWorker::take_missed() {
  while (!missed_.empty() && room() > 0) {
    Request& request = take(context_.now_ns);
    request.pending.operation = Operation::kSet;
    request.pending.count = 1;
    request.ids[0] = missed_.back();
    missed_.pop_back();
  }
}

// Makes the stream's next requests, of the burst's from number `first` on.
void FrameWorker::draw(uint32_t first) {
  for (uint32_t i = first; i < taken_count_; ++i) {
    Request& request = *taken_[i];
    request.pending.count = context_.next(&request.pending.operation, request.ids);
  }
  if (options_.rate == 0) return;
  for (uint32_t i = first; i < taken_count_; ++i) context_.note_delay(taken_[i]->begin_ns);
}

void FrameWorker::write_frames() {
  for (uint32_t i = 0; i < taken_count_; ++i) {
    const Request& request = *taken_[i];
    const Pending& pending = request.pending;
    auto* const payload = reinterpret_cast<char*>(next_frame() + kPayload);
    DatagramHeader::write(request.place.id, payload);
    char* const body = payload + DatagramHeader::kSize;
    const char* const end = WC_LIKELY(always_fits_[static_cast<size_t>(pending.operation)])
                                ? context_.codec.write(pending, context_.next_version(), body)
                                : write_long(pending, body);
    if (WC_UNLIKELY(end == nullptr)) continue;
    add_frame(request.port, static_cast<uint32_t>(end - payload));
  }
  taken_count_ = 0;
}

void FrameWorker::send() {
  write_frames();
  send_frames();
}

// Writes a request that may not fit to where a frame's is. Returns its end; nullptr: it does not
// fit.
char* FrameWorker::write_long(const Pending& pending, char* body) {
  Buffer& out = context_.out;
  out.clear();
  char* const long_body = out.reserve(context_.codec.bytes_max(pending.operation, pending.count));
  out.set_end(context_.codec.write(pending, context_.next_version(), long_body));
  if (out.size() > kFrameBytesMax - kBody) {
    give_up("a request of " + std::to_string(DatagramHeader::kSize + out.size()) +
            " bytes does not fit into a frame");
    return nullptr;
  }
  std::memcpy(body, out.data(), out.size());
  return body + out.size();
}

// --- Receiving

// A frame's headers are as they should be, checksums included.
bool FrameWorker::is_intact(Bytes frame, uint16_t client_port) const {
  net::Packet packet;
  return net::parse_packet(frame, client_port, packet) == net::PacketVerdict::kRequest &&
         packet.payload_offset == kPayload;
}

// What read() looks at in every frame. It may lie across two lines.
inline void FrameWorker::prefetch(Bytes frame) const {
  __builtin_prefetch(frame.data);
  __builtin_prefetch(frame.data + kBody);
}

__attribute__((always_inline)) inline void FrameWorker::read(Bytes frame) {
  if (frame.size < kBody) return;
  const uint16_t udp_size = load_big16(frame.data + kUdp + net::kUdpLengthOffset);
  const uint16_t client_port = load_big16(frame.data + kUdp + net::kUdpDestinationOffset);
  if (udp_size < net::kUdpProtocolHeaderSize + DatagramHeader::kSize ||
      kUdp + udp_size > frame.size || frame.data[kIp + 9] != net::kIpProtocolUdp) {
    return;
  }
  const bool checked = until_check_ == 0;
  until_check_ = checked ? check_every_ - 1 : until_check_ - 1;
  if (checked && !is_intact(frame, client_port)) return;
  const auto* const payload = reinterpret_cast<const char*>(frame.data + kPayload);
  const DatagramHeader header = DatagramHeader::read(payload);
  const uint32_t place = header.id & (id_step_ - 1);
  // Too large for a lower port.
  const uint32_t connection = uint32_t{client_port} - kFirstClientPort;
  if (place >= pipeline_ || connection >= connections_) return;
  const uint64_t number = uint64_t{connection} * pipeline_ + place;
  Request& request = requests_[number];
  if (!request.place.takes(header)) return;
  const std::string_view reply(payload + DatagramHeader::kSize,
                               udp_size - net::kUdpProtocolHeaderSize - DatagramHeader::kSize);
  received_bytes_ += DatagramHeader::kSize + reply.size();
  if (!checked && header.pieces == 1 && skim(request, reply)) return;
  read_reply(request, request.place.join(reply, &rests_[number]));
}

// Takes a reply whose values are not verified. False: it needs to be read.
inline bool FrameWorker::skim(Request& request, std::string_view reply) {
  const Pending& pending = request.pending;
  if (pending.operation != Operation::kGet || !reply.starts_with('V')) return false;
  uint32_t hits = 1;
  if (pending.count > 1) {
    if (!Codec::count_values(reply, &hits) || hits > pending.count) return false;
    if (hits < pending.count && context_.findings.keep_missed) return false;
  }
  context_.findings.hits += hits;
  context_.findings.misses += pending.count - hits;
  context_.finish(pending.operation, request.begin_ns);
  release(request);
  return true;
}

// See UdpConnection::read_reply().
void FrameWorker::read_reply(Request& request, std::string_view reply) {
  Progress progress = Progress::kAwaited;
  if (!reply.empty()) {
    progress = context_.codec.read(&request.pending, &reply, &context_.findings);
  }
  if (progress == Progress::kAwaited) {
    return request.place.keep(reply, &rests_[number_of(request)]);
  }
  context_.finish(request.pending.operation, request.begin_ns);
  release(request);
}

// Waits at most timeout_ms for replies and reads them.
void FrameWorker::receive(int timeout_ms) {
  buffer_.clear();
  const bool open = port_->receive(buffer_, timeout_ms);
  context_.now_ns = steady_now_ns();
  if (buffer_.count != 0) {
    context_.heard = true;
    last_reply_ns_ = context_.now_ns;
    const auto frame = [this](uint32_t number) {
      return Bytes{buffer_.data + slots_[number].offset, slots_[number].size};
    };
    for (uint32_t i = 0; i < std::min(kAhead, buffer_.count); ++i) prefetch(frame(i));
    received_bytes_ = 0;
    for (uint32_t i = 0; i < buffer_.count; ++i) {
      if (i + kAhead < buffer_.count) prefetch(frame(i + kAhead));
      read(frame(i));
    }
    context_.note_received(received_bytes_);
    Findings& findings = context_.findings;
    missed_.insert(missed_.end(), findings.missed.begin(), findings.missed.end());
    findings.missed.clear();
    context_.settle();
  }
  port_->take_back(buffer_);
  if (!open) return give_up("the frames have ended");
  check_timeouts();
}

void FrameWorker::check_timeouts() {
  if (context_.now_ns < next_look_ns_) return;
  next_look_ns_ = context_.now_ns + kLookEveryNs;
  const uint64_t oldest_ns = context_.now_ns - std::min(context_.now_ns, timeout_ns());
  for (Request& request : requests_) {
    if (!request.place.used || request.sent_ns >= oldest_ns) continue;
    if (!context_.heard) return give_up("no reply in time");
    context_.counters.lost.add(1);
    release(request);
  }
}

bool FrameWorker::wait_for_server(uint32_t time_ms_max) {
  constexpr int kStepMs = 10;
  constexpr std::string_view kVersion("\0\0\0\0\0\1\0\0version\r\n", 17);
  for (uint32_t ms = 0; ms < time_ms_max && !stopped(); ms += kStepMs) {
    std::memcpy(next_frame() + kPayload, kVersion.data(), kVersion.size());
    add_frame(kProbePort, kVersion.size());
    send_frames();
    receive(kStepMs);
    if (context_.heard) return true;
  }
  return false;
}

// --- Phases

void FrameWorker::fill() {
  context_.now_ns = steady_now_ns();
  while (!context_.fill_is_over() && !stopped()) {
    const uint64_t count = std::min<uint64_t>(room(), context_.fill_left());
    for (uint64_t i = 0; i < count; ++i) take(context_.now_ns);
    draw(0);
    send();
    receive(1);
  }
  drain(steady_now_ns() + timeout_ns());
}

void FrameWorker::drain(uint64_t deadline_ns) {
  while (free_count() < requests_.size() && !stopped() && context_.now_ns < deadline_ns) receive(1);
}

void FrameWorker::run_closed_loop() {
  while (goes_on()) {
    take_missed();
    const uint32_t first = taken_count_;
    const uint64_t now = context_.now_ns;
    const uint64_t count = std::min<uint64_t>(room(), allowed());
    for (uint64_t i = 0; i < count; ++i) take(now);
    use_quota(now, count);
    draw(first);
    send();
    receive(free_count() > 0 ? 0 : 1);
  }
}

// Takes requests that are due. Returns false if one is due and none is free.
bool FrameWorker::take_due() {
  const auto now = static_cast<double>(context_.now_ns);
  for (uint64_t left = allowed(); left > 0 && taken_count_ < kBurst && schedule_.due_ns() <= now;
       --left) {
    if (free_count() == 0) return false;
    const auto begin_ns = static_cast<uint64_t>(schedule_.due_ns());
    if (begin_ns >= context_.window.end_ns) break;
    schedule_.advance();
    take(begin_ns);
    use_quota(begin_ns);
  }
  return true;
}

void FrameWorker::run_open_loop() {
  while (goes_on()) {
    take_missed();
    const uint32_t first = taken_count_;
    const bool blocked = !take_due();
    draw(first);
    send();
    const double until_due_ns = schedule_.due_ns() - static_cast<double>(context_.now_ns);
    receive(blocked || until_due_ns > kPollNsMax ? 1 : 0);
  }
}

}  // namespace warpcache::load
