// SPDX-License-Identifier: Apache-2.0
#include "memory/text_session.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "client/codec/words.h"

namespace warpcache::bench {
namespace {

using client::ReplyCode;
using client::Taken;
using client::TextReply;

constexpr int kWaitMsMax = 60 * 1000;
constexpr size_t kReceiveBytes = size_t{256} << 10;
constexpr uint32_t kStatsLinesMax = 10000;
constexpr uint32_t kLineKeysMax = 24;  // so that a line of usual keys has less than 1 KiB

}  // namespace

TextSession::~TextSession() {
  if (socket_ >= 0) close(socket_);
}

bool TextSession::fail(const std::string& what) {
  if (failure_.empty()) failure_ = what;
  return false;
}

bool TextSession::connect(const std::string& address, uint16_t port) {
  sockaddr_in to = {};
  to.sin_family = AF_INET;
  to.sin_port = htons(port);
  if (inet_pton(AF_INET, address.c_str(), &to.sin_addr) != 1) return fail("no IPv4 address");
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return fail(std::string("socket: ") + std::strerror(errno));
  attach(fd);
  if (::connect(fd, reinterpret_cast<const sockaddr*>(&to), sizeof to) != 0) {
    return fail(std::string("connect: ") + std::strerror(errno));
  }
  const int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  return true;
}

void TextSession::attach(int socket) { socket_ = socket; }

void TextSession::queue(const Request& request, uint32_t expiry_s) {
  const auto key = [this, &request](char* out) {
    maker_.write_key(request.id, request.sizes.key, out);
    return request.sizes.key;
  };
  const size_t line_max = client::line_bytes_max(request.sizes.key);
  std::string_view verb = request.operation == Operation::kGet ? "get" : "delete";
  if (request.operation == Operation::kSet) {
    const uint32_t size = request.sizes.value;
    client::append(line_max + size + client::kLineEnd.size(), &out_, [&](char* out) {
      const client::StoreFields fields = {maker_.flags(request.id, request.version), expiry_s,
                                          size};
      out = client::write_store("set", key, fields, out);
      maker_.write_value(request.id, request.version, size, out);
      return std::copy(client::kLineEnd.begin(), client::kLineEnd.end(), out + size);
    });
    line_keys_ = 0;
  } else {
    if (request.operation != Operation::kGet) {
      line_keys_ = 0;
    } else if (line_keys_ == 0 || line_keys_ == kLineKeysMax) {
      line_keys_ = 1;
    } else {
      out_.resize(out_.size() - client::kLineEnd.size());  // the line goes on
      verb = "";
      pending_.back().ends_line = false;
      ++line_keys_;
    }
    client::append(line_max, &out_,
                   [&](char* out) { return client::RequestLine(out, verb).key(key).end(); });
  }
  pending_.push_back({request, true});
}

bool TextSession::wait(short events) {
  pollfd descriptor = {socket_, events, 0};
  const int ready = poll(&descriptor, 1, kWaitMsMax);
  if (ready < 0 && errno != EINTR) return fail(std::string("poll: ") + std::strerror(errno));
  if (ready == 0) return fail("no reply in time");
  return true;
}

bool TextSession::receive_some() {
  if (in_begin_ > 0) {
    std::memmove(in_.data(), in_.data() + in_begin_, in_end_ - in_begin_);
    in_end_ -= in_begin_;
    in_begin_ = 0;
  }
  if (in_.size() - in_end_ < kReceiveBytes) in_.resize(in_end_ + 2 * kReceiveBytes);
  const ssize_t got = recv(socket_, in_.data() + in_end_, in_.size() - in_end_, MSG_DONTWAIT);
  if (got > 0) {
    in_end_ += static_cast<size_t>(got);
    return true;
  }
  if (got == 0) return fail("the server closed the connection");
  if (errno == EAGAIN || errno == EINTR) return true;
  return fail(std::string("recv: ") + std::strerror(errno));
}

bool TextSession::flush() {
  size_t sent = 0;
  while (sent < out_.size()) {
    const ssize_t did =
        send(socket_, out_.data() + sent, out_.size() - sent, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (did > 0) {
      sent += static_cast<size_t>(did);
    } else if (errno == EAGAIN) {
      if (!wait(POLLIN | POLLOUT) || !receive_some()) return false;
    } else if (errno != EINTR) {
      return fail(std::string("send: ") + std::strerror(errno));
    }
  }
  out_.clear();
  line_keys_ = 0;
  return true;
}

// Returns the next line, with its value; does not consume it.
bool TextSession::peek(TextReply* reply) {
  for (;;) {
    const std::string_view there = {in_.data() + in_begin_, in_end_ - in_begin_};
    std::string_view rest = there;
    switch (client::take_reply(&rest, reply, kValueSizeMax)) {
      case Taken::kWhole:
        reply_size_ = there.size() - rest.size();
        return true;
      case Taken::kBad:
        return fail("no reply of the text protocol");
      case Taken::kPart:
        if (!wait(POLLIN) || !receive_some()) return false;
    }
  }
}

// Reads the reply to one key of a `get` line. Values come in the order of the keys and missing keys
// have none, so a value of another key is left for the next key of the line.
bool TextSession::read_get(const Pending& pending, Outcome* outcome) {
  const Request& request = pending.request;
  TextReply reply;
  if (!peek(&reply)) return false;
  *outcome = Outcome::kMiss;
  if (reply.code == ReplyCode::kValue) {
    char key[kKeySizeMax];
    maker_.write_key(request.id, request.sizes.key, key);
    const bool key_fits = reply.head.key == std::string_view(key, request.sizes.key);
    if (!key_fits && !pending.ends_line) return true;
    *outcome = key_fits && value_fits(request, reply) ? Outcome::kHit : Outcome::kWrong;
    consume();
    if (!pending.ends_line) return true;
    if (!peek(&reply)) return false;
    if (reply.code != ReplyCode::kEnd) return fail("a value where END should be");
  } else if (reply.code != ReplyCode::kEnd) {
    refuse(reply.line);
    *outcome = Outcome::kRefused;
  }
  if (pending.ends_line) consume();
  return true;
}

bool TextSession::value_fits(const Request& request, const TextReply& reply) const {
  return reply.head.client_flags == maker_.flags(request.id, request.version) &&
         reply.value.size() == request.sizes.value &&
         maker_.value_is(request.id, request.version, reply.value.data(), request.sizes.value);
}

// Reads the one line that answers a set or a delete.
bool TextSession::read_change(const Request& request, Outcome* outcome) {
  TextReply reply;
  if (!peek(&reply)) return false;
  const bool is_set = request.operation == Operation::kSet;
  if (reply.code == (is_set ? ReplyCode::kStored : ReplyCode::kDeleted)) {
    *outcome = is_set ? Outcome::kStored : Outcome::kRemoved;
  } else if (reply.code == ReplyCode::kNotFound && !is_set) {
    *outcome = Outcome::kNotFound;
  } else if (reply.line == client::kOutOfMemory && is_set) {
    *outcome = Outcome::kOutOfMemory;
  } else {
    *outcome = Outcome::kRefused;
    refuse(reply.line);
  }
  consume();
  return true;
}

void TextSession::refuse(std::string_view line) {
  if (first_refusal_.empty()) first_refusal_ = line;
}

bool TextSession::next_reply(Reply* reply) {
  const Pending pending = pending_.front();
  pending_.pop_front();
  reply->request = pending.request;
  return pending.request.operation == Operation::kGet
             ? read_get(pending, &reply->outcome)
             : read_change(pending.request, &reply->outcome);
}

bool TextSession::ask_stats(std::map<std::string, std::string>* stats) {
  out_ += "stats\r\n";
  if (!flush()) return false;
  for (uint32_t i = 0; i < kStatsLinesMax; ++i) {
    TextReply reply;
    if (!peek(&reply)) return false;
    consume();
    if (reply.code == ReplyCode::kEnd) return true;
    std::string_view words = reply.line;
    if (client::take_word(&words) != "STAT") return fail("stats: not understood");
    const std::string_view name = client::take_word(&words);
    (*stats)[std::string(name)] = words;
  }
  return fail("stats: too many lines");
}

}  // namespace warpcache::bench
