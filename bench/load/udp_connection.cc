// SPDX-License-Identifier: Apache-2.0
#include "load/udp_connection.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>

namespace warpcache::load {
namespace {

constexpr size_t kDatagramMax = 2048;  // memcached sends at most 1400 bytes in one
constexpr uint32_t kBurst = 64;        // datagrams in a system call

}  // namespace

UdpConnection::UdpConnection(ThreadContext* context, int socket, uint32_t places)
    : Connection(context, places),
      socket_(socket),
      id_step_(static_cast<uint16_t>(std::bit_ceil(places))),
      state_(places),
      rests_(places) {
  for (uint32_t place = places; place > 0; --place) {
    state_[place - 1].id = static_cast<uint16_t>(place - 1);
    free_.push_back(place - 1);
  }
  begins_.reserve(places);
}

uint32_t UdpConnection::take_place() {
  const uint32_t place = free_.back();
  free_.pop_back();
  state_[place].use(static_cast<uint16_t>(state_[place].id + id_step_));
  ++outstanding_;
  return place;
}

void UdpConnection::release(uint32_t place) {
  state_[place].used = false;
  free_.push_back(place);
  --outstanding_;
}

void UdpConnection::write(uint32_t place) {
  begins_.push_back(context_->out.size());
  DatagramHeader::write(state_[place].id, context_->out.reserve(DatagramHeader::kSize));
  context_->out.extend(DatagramHeader::kSize);
  write_body(place);
}

std::string_view UdpConnection::datagram(size_t number) const {
  const std::string_view all = context_->out.view();
  const size_t end = number + 1 < begins_.size() ? begins_[number + 1] : all.size();
  return all.substr(begins_[number], end - begins_[number]);
}

bool UdpConnection::flush() {
  for (size_t done = 0; done < begins_.size();) {
    mmsghdr messages[kBurst] = {};
    iovec parts[kBurst];
    const auto count = static_cast<uint32_t>(std::min<size_t>(begins_.size() - done, kBurst));
    for (uint32_t i = 0; i < count; ++i) {
      const std::string_view bytes = datagram(done + i);
      parts[i] = {const_cast<char*>(bytes.data()), bytes.size()};
      messages[i].msg_hdr.msg_iov = &parts[i];
      messages[i].msg_hdr.msg_iovlen = 1;
    }
    const int sent = sendmmsg(socket_, messages, count, MSG_DONTWAIT);
    if (sent > 0) {
      done += static_cast<size_t>(sent);
    } else if (errno == EAGAIN || errno == ENOBUFS) {
      pollfd writable = {socket_, POLLOUT, 0};
      poll(&writable, 1, 1);
    } else if (errno != EINTR) {
      return fail(std::string("cannot send: ") + std::strerror(errno));
    }
  }
  context_->note_sent(context_->out.size());
  begins_.clear();
  context_->out.clear();
  return true;
}

bool UdpConnection::receive() {
  const uint32_t count = std::min(std::max(outstanding_, 1u), kBurst);
  Buffer& in = context_->in;
  in.clear();
  char* const memory = in.reserve(count * kDatagramMax);
  mmsghdr messages[kBurst] = {};
  iovec parts[kBurst];
  for (uint32_t i = 0; i < count; ++i) {
    parts[i] = {memory + i * kDatagramMax, kDatagramMax};
    messages[i].msg_hdr.msg_iov = &parts[i];
    messages[i].msg_hdr.msg_iovlen = 1;
  }
  const int got = recvmmsg(socket_, messages, count, MSG_DONTWAIT, nullptr);
  context_->now_ns = steady_now_ns();
  if (got < 0) {
    if (errno == EAGAIN || errno == EINTR) return true;
    return fail(std::string("cannot receive: ") + std::strerror(errno));
  }
  context_->heard = true;
  for (int i = 0; i < got; ++i) {
    context_->note_received(messages[i].msg_len);
    read_datagram({memory + static_cast<size_t>(i) * kDatagramMax, messages[i].msg_len});
  }
  settle();
  return true;
}

void UdpConnection::read_datagram(std::string_view datagram) {
  if (datagram.size() < DatagramHeader::kSize) return;
  const DatagramHeader header = DatagramHeader::read(datagram.data());
  const uint32_t place = header.id & (id_step_ - 1u);
  if (place >= places_ || !state_[place].takes(header)) return;
  read_reply(place, state_[place].join(datagram.substr(DatagramHeader::kSize), &rests_[place]));
}

// Reads a part of a reply. memcached may send each key of a multiget like a separate reply, so the
// numbers of the datagrams do not show where a reply ends.
void UdpConnection::read_reply(uint32_t place, std::string_view reply) {
  Sent& sent = sent_[place];
  Progress progress = Progress::kAwaited;
  if (!reply.empty()) progress = context_->codec.read(&sent.pending, &reply, &context_->findings);
  if (progress == Progress::kAwaited) {
    state_[place].keep(reply, &rests_[place]);
    return;
  }
  context_->finish(sent.pending.operation, sent.begin_ns);
  release(place);
}

bool UdpConnection::check_timeouts(uint64_t oldest_ns) {
  for (uint32_t place = 0; place < places_; ++place) {
    if (!state_[place].used || sent_[place].sent_ns >= oldest_ns) continue;
    if (!context_->heard) return fail("no reply in time");
    context_->counters.lost.add(1);
    release(place);
  }
  return true;
}

}  // namespace warpcache::load
