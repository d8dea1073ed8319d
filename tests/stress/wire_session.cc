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
    : number_(number), form_(form) {
  fd_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(address.port);
  const bool valid = inet_pton(AF_INET, address.host.c_str(), &to.sin_addr) == 1;
  if (!valid || connect(fd_, reinterpret_cast<sockaddr*>(&to), sizeof to) != 0) {
    (void)close(fd_);
    throw std::runtime_error("no server at " + address.host + ":" + std::to_string(address.port));
  }
  const int on = 1;
  (void)setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

WireSession::~WireSession() { (void)close(fd_); }

void WireSession::add(Form form, std::span<const Operation> operations, std::string_view body) {
  Command command = {form, static_cast<uint32_t>(operations_.size()),
                     static_cast<uint32_t>(operations.size())};
  encode(form, operations, body, command.first_operation, &output_);
  for (Operation op : operations) {
    op.session = number_;
    operations_.push_back(op);
  }
  commands_.push_back(command);
}

void WireSession::begin() {
  output_ += form_ == Form::kBinary ? end_packet('\x80') : std::string(kEndText);
  sent_ = 0;
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
  if (!failed_ && (wants_to_send() || replies_.size() < kEndReply.size() || !is_whole()))
    return false;
  responded_ = now_ns();
  return true;
}

void WireSession::finish(Generator* generator, std::vector<Operation>* done, std::string* failure) {
  if (failed_) *failure = "a connection has failed\n";
  std::string_view replies = replies_;
  if (!failed_) replies.remove_suffix(form_ == Form::kBinary ? 24 : kEndReply.size());
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
