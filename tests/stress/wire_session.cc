// SPDX-License-Identifier: Apache-2.0
#include "stress/wire_session.h"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <utility>

#include "stress/eviction_log.h"

namespace warpcache::stress {

namespace {

constexpr std::string_view kEndText = "mn\r\n";
constexpr std::string_view kEndReply = "MN\r\n";

// Of memcached's datagrams: request id, number of the datagram, of how many, 0; 16 bits each.
constexpr size_t kUdpHeaderSize = 8;

void put16(std::string* out, size_t at, uint16_t value) {
  (*out)[at] = static_cast<char>(value >> 8);
  (*out)[at + 1] = static_cast<char>(value & 0xff);
}

uint16_t get16(std::string_view from, size_t at) {
  return static_cast<uint16_t>(static_cast<uint8_t>(from[at]) << 8 |
                               static_cast<uint8_t>(from[at + 1]));
}

// A noop; its reply differs in the first byte.
std::string end_packet(char magic) {
  std::string packet(24, '\0');
  packet[0] = magic;
  packet[1] = '\x0a';
  packet.replace(12, 4, "\xfe\xed\xbe\xef");
  return packet;
}

}  // namespace

WireSession::WireSession(const Address& address, uint32_t number, Form form)
    : is_udp_(address.is_udp), number_(number), form_(form) {
  fd_ = socket(AF_INET, (is_udp_ ? SOCK_DGRAM : SOCK_STREAM) | SOCK_CLOEXEC, 0);
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(address.port);
  const bool valid = inet_pton(AF_INET, address.host.c_str(), &to.sin_addr) == 1;
  if (!valid || connect(fd_, reinterpret_cast<sockaddr*>(&to), sizeof to) != 0) {
    (void)close(fd_);
    throw std::runtime_error("no server at " + address.host + ":" + std::to_string(address.port));
  }
  const int on = 1;
  if (!is_udp_) (void)setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

WireSession::~WireSession() { (void)close(fd_); }

void WireSession::add(Form form, std::span<const Operation> operations, std::string_view body) {
  Command command;
  command.form = form;
  command.first_operation = static_cast<uint32_t>(operations_.size());
  command.operation_count = static_cast<uint32_t>(operations.size());
  encode(form, operations, body, command.first_operation, &output_);
  command.request_end = output_.size();
  for (Operation op : operations) {
    op.session = number_;
    operations_.push_back(op);
  }
  commands_.push_back(std::move(command));
}

void WireSession::begin() {
  if (!is_udp_) output_ += form_ == Form::kBinary ? end_packet('\x80') : std::string(kEndText);
  sent_ = datagrams_sent_ = datagrams_answered_ = 0;
  invoked_ = now_ns();
}

// No value has the bytes of this end: it has no line end, and no byte above 127.
bool WireSession::is_whole() const {
  if (form_ == Form::kBinary) return replies_.ends_with(end_packet('\x81'));
  const size_t size = kEndReply.size();
  return replies_ == kEndReply || (replies_.ends_with(kEndReply) &&
                                   replies_.compare(replies_.size() - size - 2, 2, "\r\n") == 0);
}

bool WireSession::advance() {
  if (!(is_udp_ ? advance_datagrams() : advance_stream())) return false;
  responded_ = now_ns();
  return true;
}

bool WireSession::advance_stream() {
  if (wants_to_send()) {
    const ssize_t sent =
        send(fd_, output_.data() + sent_, output_.size() - sent_, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent > 0) sent_ += static_cast<size_t>(sent);
    failed_ = sent < 0 && errno != EAGAIN;
  }
  char buffer[65536];
  const ssize_t got = recv(fd_, buffer, sizeof buffer, MSG_DONTWAIT);
  if (got > 0) replies_.append(buffer, static_cast<size_t>(got));
  failed_ = failed_ || got == 0 || (got < 0 && errno != EAGAIN);
  return failed_ || (!wants_to_send() && replies_.size() >= kEndReply.size() && is_whole());
}

void WireSession::send_datagrams() {
  while (wants_to_send()) {
    const size_t begin = datagrams_sent_ == 0 ? 0 : commands_[datagrams_sent_ - 1].request_end;
    std::string datagram(kUdpHeaderSize, '\0');
    put16(&datagram, 0, static_cast<uint16_t>(first_id_ + datagrams_sent_));
    put16(&datagram, 4, 1);
    datagram.append(output_, begin, commands_[datagrams_sent_].request_end - begin);
    if (send(fd_, datagram.data(), datagram.size(), MSG_NOSIGNAL | MSG_DONTWAIT) < 0) {
      failed_ = errno != EAGAIN && errno != ENOBUFS;
      return;
    }
    ++datagrams_sent_;
  }
}

// memcached sends the items of a get of several keys in messages of their own, with the same id;
// for one that it has not, there may be a datagram with nothing in it, the first of none.
bool WireSession::is_answered(const Command& command) const {
  if (command.operation_count == 1 || command.reply.empty()) return !command.reply.empty();
  const bool is_items = command.reply.starts_with("VALUE ") || command.reply.starts_with("END");
  return !is_items || command.reply.ends_with("\r\nEND\r\n") || command.reply == "END\r\n";
}

// False: it belongs to no request that waits.
bool WireSession::take_datagram(std::string_view datagram) {
  if (datagram.size() < kUdpHeaderSize) return false;
  const auto index = static_cast<uint16_t>(get16(datagram, 0) - first_id_);
  const size_t part = get16(datagram, 2);
  const size_t count = get16(datagram, 4);
  if (datagram.size() == kUdpHeaderSize) return count == 0;
  if (index >= datagrams_sent_ || part >= count || is_answered(commands_[index])) return false;
  Command& command = commands_[index];
  if (command.parts.empty()) {
    command.parts.resize(count);
    command.parts_left = count;
  }
  if (command.parts.size() != count || !command.parts[part].empty()) return false;
  command.parts[part] = datagram.substr(kUdpHeaderSize);
  if (--command.parts_left != 0) return true;
  for (const std::string& one : command.parts) command.reply += one;
  command.parts.clear();
  if (is_answered(command)) ++datagrams_answered_;
  return true;
}

bool WireSession::advance_datagrams() {
  send_datagrams();
  char buffer[65536];
  while (!failed_ && datagrams_answered_ < commands_.size()) {
    const ssize_t got = recv(fd_, buffer, sizeof buffer, MSG_DONTWAIT);
    if (got < 0 && errno == EAGAIN) return false;
    failed_ = got < 0 || !take_datagram({buffer, static_cast<size_t>(got)});
  }
  for (const Command& command : commands_) replies_ += command.reply;
  first_id_ = static_cast<uint16_t>(first_id_ + commands_.size());
  return true;
}

void WireSession::finish(Generator* generator, std::vector<Operation>* done, std::string* failure) {
  if (failed_) *failure = "a connection has failed\n";
  std::string_view replies = replies_;
  if (!failed_ && !is_udp_) replies.remove_suffix(form_ == Form::kBinary ? 24 : kEndReply.size());
  for (const Command& command : commands_) {
    if (!failure->empty()) break;
    const std::span<Operation> operations =
        std::span(operations_).subspan(command.first_operation, command.operation_count);
    if (!decode(command.form, operations, command.first_operation, &replies)) {
      *failure = "no reply to this: " + describe(operations[0], 0) + ", but " +
                 std::string(replies.substr(0, 100)) + "\n";
    }
    for (const Operation& op : operations) {
      if (generator != nullptr) generator->learn(op);
    }
  }
  if (failure->empty() && !replies.empty()) *failure = "more replies than commands\n";
  for (Operation& op : operations_) {
    op.invoked = invoked_;
    op.responded = responded_;
    done->push_back(op);
  }
  output_.clear();
  replies_.clear();
  commands_.clear();
  operations_.clear();
}

}  // namespace warpcache::stress
