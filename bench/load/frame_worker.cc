// SPDX-License-Identifier: Apache-2.0
#include "load/frame_worker.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

namespace warpcache::load {
namespace {

constexpr uint32_t kFirstClientPort = 20'000;  // each connection has one
constexpr uint16_t kProbePort = 19'999;
constexpr uint64_t kLookEveryNs = 50'000'000;
constexpr double kPollNsMax = 1'000'000;  // polls if a request is due before
constexpr uint8_t kServerMac[] = {2, 0, 0, 0, 0, 1};
constexpr uint8_t kClientMac[] = {2, 0, 0, 0, 0, 2};

}  // namespace

FrameWorker::FrameWorker(const Options& options, const Keyspace& keys, Distribution* distribution,
                         uint32_t index, std::atomic<bool>* stop,
                         std::unique_ptr<io::FramePort> port, const sockaddr_in& client,
                         const sockaddr_in& server)
    : Worker(options, keys, distribution, index, stop),
      port_(std::move(port)),
      pipeline_(options.pipeline),
      id_step_(std::bit_ceil(options.pipeline)),
      requests_(size_t{connection_count()} * options.pipeline),
      ids_(requests_.size() * options.multiget),
      out_(size_t{kBurst} * kFrameStride),
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
  udp_sum_ = net::checksum_add(net::udp_pseudo_header_sum(header_.data(), kIp, 4, 0),
                               &header_[kUdp], net::kUdpProtocolHeaderSize);
  set_payload_size(0);
  for (uint32_t number = 0; number < requests_.size(); ++number) {
    requests_[number].place.id = static_cast<uint16_t>(number % pipeline_);
    requests_[number].pending.ids = &ids_[size_t{number} * options.multiget];
    free_.push_back(number);
  }
  free_count_ = static_cast<uint32_t>(free_.size());
  sent_.reserve(kBurst);
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
  sized_udp_sum_ = net::checksum_add16(net::checksum_add16(udp_sum_, udp_size), udp_size);
}

// Completes the frame around the payload at `frame` + kPayload.
void FrameWorker::finish_frame(uint16_t client_port, uint32_t payload_size, uint8_t* frame) {
  if (payload_size != payload_size_) set_payload_size(payload_size);
  std::memcpy(frame, header_.data(), kPayload);
  store_big16(frame + kUdp, client_port);
  const uint64_t sum = net::checksum_add16(sized_udp_sum_, client_port);
  const uint16_t checksum =
      net::udp_checksum(net::checksum_add(sum, frame + kPayload, payload_size));
  std::memcpy(frame + kUdp + net::kUdpChecksumOffset, &checksum, sizeof checksum);
  net::pad_frame(frame, kPayload + payload_size);
  sent_.push_back({{frame, net::padded_frame_size(kPayload + payload_size)}, 0});
  context_.note_sent(payload_size);
}

void FrameWorker::send() {
  if (!sent_.empty()) port_->send(0, sent_.data(), static_cast<uint32_t>(sent_.size()));
  sent_.clear();
}

// REQUIRES: one is free.
uint32_t FrameWorker::take_request(uint64_t begin_ns) {
  const uint32_t number = free_[free_begin_];
  free_begin_ = free_begin_ + 1 < free_.size() ? free_begin_ + 1 : 0;
  --free_count_;
  Request& request = requests_[number];
  request.place.use(static_cast<uint16_t>(request.place.id + id_step_));
  request.begin_ns = begin_ns;
  request.sent_ns = context_.now_ns;
  request.pending.next = 0;
  return number;
}

void FrameWorker::release(Request& request) {
  request.place.used = false;
  uint32_t end = free_begin_ + free_count_;
  if (end >= free_.size()) end -= static_cast<uint32_t>(free_.size());
  free_[end] = static_cast<uint32_t>(&request - requests_.data());
  ++free_count_;
}

// Writes the request, whose keys are drawn, to a frame.
void FrameWorker::write(uint32_t number) {
  const Request& request = requests_[number];
  const Pending& pending = request.pending;
  uint8_t* const frame = out_.data() + sent_.size() * kFrameStride;
  auto* const payload = reinterpret_cast<char*>(frame + kPayload);
  DatagramHeader::write(request.place.id, payload);
  char* const body = payload + DatagramHeader::kSize;
  uint32_t size = 0;
  if (context_.codec.bytes_max(pending.operation, pending.count) <=
      kFrameBytesMax - kPayload - DatagramHeader::kSize) {
    size = static_cast<uint32_t>(context_.codec.write(pending, context_.next_version(), body) -
                                 payload);
  } else {
    // It may still fit.
    Buffer& out = context_.out;
    out.clear();
    char* const long_body = out.reserve(context_.codec.bytes_max(pending.operation, pending.count));
    out.set_end(context_.codec.write(pending, context_.next_version(), long_body));
    size = static_cast<uint32_t>(DatagramHeader::kSize + out.size());
    if (kPayload + size > kFrameBytesMax) {
      return give_up("a request of " + std::to_string(size) + " bytes does not fit into a frame");
    }
    std::memcpy(body, out.data(), out.size());
  }
  finish_frame(static_cast<uint16_t>(kFirstClientPort + number / pipeline_), size, frame);
}

void FrameWorker::add(uint64_t begin_ns) {
  const uint32_t number = take_request(begin_ns);
  Pending& pending = requests_[number].pending;
  pending.count = context_.next(&pending.operation, &ids_[size_t{number} * options_.multiget]);
  context_.note_delay(begin_ns);
  use_quota(begin_ns);
  write(number);
}

void FrameWorker::add_missed() {
  while (!missed_.empty() && free_count_ > 0 && sent_.size() < kBurst) {
    const uint32_t number = take_request(context_.now_ns);
    Pending& pending = requests_[number].pending;
    pending.operation = Operation::kSet;
    pending.count = 1;
    ids_[size_t{number} * options_.multiget] = missed_.back();
    missed_.pop_back();
    write(number);
  }
}

// --- Receiving

// A frame's headers are as they should be, checksums included.
bool FrameWorker::is_intact(Bytes frame, uint16_t client_port) const {
  net::Packet packet;
  return net::parse_packet(frame, client_port, packet) == net::PacketVerdict::kRequest &&
         packet.payload_offset == kPayload;
}

void FrameWorker::read(Bytes frame) {
  if (frame.size < kPayload + DatagramHeader::kSize) return;
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
  const uint64_t number = uint64_t{client_port - kFirstClientPort} * pipeline_ + place;
  if (client_port < kFirstClientPort || place >= pipeline_ || number >= requests_.size()) return;
  Request& request = requests_[number];
  if (!request.place.takes(header)) return;
  const std::string_view reply(payload + DatagramHeader::kSize,
                               udp_size - net::kUdpProtocolHeaderSize - DatagramHeader::kSize);
  context_.note_received(DatagramHeader::kSize + reply.size());
  if (!checked && header.pieces == 1 && skim(request, reply)) return;
  read_reply(request, request.place.join(reply));
}

// Takes a reply whose values are not verified. False: it needs to be read.
bool FrameWorker::skim(Request& request, std::string_view reply) {
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
  if (progress == Progress::kAwaited) return request.place.rest.assign(reply);
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
    for (uint32_t i = 0; i < buffer_.count; ++i) {
      const uint32_t later = std::min(i + 4, buffer_.count - 1);
      __builtin_prefetch(buffer_.data + slots_[later].offset);
      read({buffer_.data + slots_[i].offset, slots_[i].size});
    }
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
    std::memcpy(out_.data() + kPayload, kVersion.data(), kVersion.size());
    finish_frame(kProbePort, kVersion.size(), out_.data());
    send();
    receive(kStepMs);
    if (context_.heard) return true;
  }
  return false;
}

// --- Phases

void FrameWorker::fill() {
  context_.now_ns = steady_now_ns();
  while (!context_.fill_is_over() && !stopped()) {
    while (free_count_ > 0 && sent_.size() < kBurst && !context_.fill_is_over()) {
      add(context_.now_ns);
    }
    send();
    receive(1);
  }
  drain(steady_now_ns() + timeout_ns());
}

void FrameWorker::drain(uint64_t deadline_ns) {
  while (free_count_ < free_.size() && !stopped() && context_.now_ns < deadline_ns) receive(1);
}

void FrameWorker::run_closed_loop() {
  while (goes_on()) {
    add_missed();
    while (free_count_ > 0 && sent_.size() < kBurst && goes_on()) add(context_.now_ns);
    send();
    receive(free_count_ > 0 ? 0 : 1);
  }
}

// Adds requests that are due to a burst. Returns false if one is due and none is free.
bool FrameWorker::send_due() {
  const auto now = static_cast<double>(context_.now_ns);
  while (sent_.size() < kBurst && schedule_.due_ns() <= now && goes_on()) {
    if (free_count_ == 0) return false;
    const auto begin_ns = static_cast<uint64_t>(schedule_.due_ns());
    if (begin_ns >= context_.window.end_ns) break;
    schedule_.advance();
    add(begin_ns);
  }
  return true;
}

void FrameWorker::run_open_loop() {
  while (goes_on()) {
    add_missed();
    const bool blocked = !send_due();
    send();
    const double until_due_ns = schedule_.due_ns() - static_cast<double>(context_.now_ns);
    receive(blocked || until_due_ns > kPollNsMax ? 1 : 0);
  }
}

}  // namespace warpcache::load
