// SPDX-License-Identifier: Apache-2.0
#include "memory/text_session.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstring>

namespace warpcache::bench {
namespace {

constexpr int kWaitMsMax = 60 * 1000;
constexpr size_t kReceiveBytes = size_t{256} << 10;
constexpr uint32_t kStatsLinesMax = 10000;
constexpr uint32_t kLineKeysMax = 24;  // so that a line of usual keys has less than 1 KiB
constexpr std::string_view kLineEnd = "\r\n";

// Removes the next word from a line and returns it.
std::string_view take_word(std::string_view* line) {
  const size_t space = line->find(' ');
  const std::string_view word = line->substr(0, space);
  line->remove_prefix(space == std::string_view::npos ? line->size() : space + 1);
  return word;
}

bool is_number(std::string_view word, uint32_t expected) {
  uint32_t number = 0;
  const char* const end = word.data() + word.size();
  const auto [stop, error] = std::from_chars(word.data(), end, number);
  return error == std::errc() && stop == end && number == expected;
}

void append(std::vector<char>* out, std::string_view text) {
  out->insert(out->end(), text.begin(), text.end());
}

void append_number(std::vector<char>* out, uint32_t number) {
  char digits[10];
  const auto end = std::to_chars(digits, digits + sizeof digits, number).ptr;
  out->push_back(' ');
  out->insert(out->end(), digits, end);
}

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
  static constexpr std::string_view kWords[] = {"get ", "set ", "delete "};
  const bool is_get = request.operation == Operation::kGet;
  if (is_get && line_keys_ > 0 && line_keys_ < kLineKeysMax) {
    out_.resize(out_.size() - kLineEnd.size());
    out_.push_back(' ');
    pending_.back().ends_line = false;
    ++line_keys_;
  } else {
    append(&out_, kWords[static_cast<size_t>(request.operation)]);
    line_keys_ = is_get ? 1 : 0;
  }
  size_t at = out_.size();
  out_.resize(at + request.sizes.key);
  maker_.write_key(request.id, request.sizes.key, out_.data() + at);
  if (request.operation == Operation::kSet) {
    append_number(&out_, maker_.flags(request.id, request.version));
    append_number(&out_, expiry_s);
    append_number(&out_, request.sizes.value);
    append(&out_, kLineEnd);
    at = out_.size();
    out_.resize(at + request.sizes.value);
    maker_.write_value(request.id, request.version, request.sizes.value, out_.data() + at);
  }
  append(&out_, kLineEnd);
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

// Returns the next line without its end; does not consume it.
bool TextSession::peek_line(std::string_view* line) {
  size_t searched = 0;
  for (;;) {
    const char* const begin = in_.data() + in_begin_;
    const size_t size = in_end_ - in_begin_;
    const void* const found =
        size > searched ? std::memchr(begin + searched, '\n', size - searched) : nullptr;
    if (found != nullptr) {
      const auto length = static_cast<size_t>(static_cast<const char*>(found) - begin);
      line_size_ = length + 1;
      *line = {begin, length > 0 && begin[length - 1] == '\r' ? length - 1 : length};
      return true;
    }
    searched = size;
    if (!wait(POLLIN) || !receive_some()) return false;
  }
}

// Reads the reply to one key of a `get` line. Values come in the order of the keys and missing keys
// have none, so a value of another key is left for the next key of the line.
bool TextSession::read_get(const Pending& pending, Outcome* outcome) {
  const Request& request = pending.request;
  std::string_view line;
  if (!peek_line(&line)) return false;
  *outcome = Outcome::kMiss;
  if (line.starts_with("VALUE ")) {
    char key[kKeySizeMax];
    maker_.write_key(request.id, request.sizes.key, key);
    std::string_view words = line.substr(6);
    const bool key_fits = take_word(&words) == std::string_view(key, request.sizes.key);
    if (!key_fits && !pending.ends_line) return true;
    if (!read_value(request, words, outcome)) return false;
    if (!key_fits) *outcome = Outcome::kWrong;
    if (!pending.ends_line) return true;
    if (!peek_line(&line)) return false;
    if (line != "END") return fail("a value where END should be");
  } else if (line != "END") {
    refuse(line);
    *outcome = Outcome::kRefused;
  }
  if (pending.ends_line) consume_line();
  return true;
}

// Reads a value after its VALUE line; `words` are the words after the key.
bool TextSession::read_value(const Request& request, std::string_view words, Outcome* outcome) {
  const bool flags_fit = is_number(take_word(&words), maker_.flags(request.id, request.version));
  uint32_t size = 0;
  std::from_chars(words.data(), words.data() + words.size(), size);
  if (size > kValueSizeMax) return fail("a value is larger than any that was stored");
  consume_line();

  while (in_end_ - in_begin_ < size) {
    if (!wait(POLLIN) || !receive_some()) return false;
  }
  const char* const value = in_.data() + in_begin_;
  const bool value_fits =
      size == request.sizes.value && maker_.value_is(request.id, request.version, value, size);
  in_begin_ += size;
  std::string_view rest;
  if (!peek_line(&rest)) return false;
  if (!rest.empty()) return fail("a value's end is not where it should be");
  consume_line();
  *outcome = flags_fit && value_fits ? Outcome::kHit : Outcome::kWrong;
  return true;
}

// Reads the one line that answers a set or a delete.
bool TextSession::read_change(const Request& request, Outcome* outcome) {
  std::string_view line;
  if (!peek_line(&line)) return false;
  const bool is_set = request.operation == Operation::kSet;
  if (line == (is_set ? "STORED" : "DELETED")) {
    *outcome = is_set ? Outcome::kStored : Outcome::kRemoved;
  } else if (line == "NOT_FOUND" && !is_set) {
    *outcome = Outcome::kNotFound;
  } else if (line == "SERVER_ERROR out of memory storing object" && is_set) {
    *outcome = Outcome::kOutOfMemory;
  } else {
    *outcome = Outcome::kRefused;
    refuse(line);
  }
  consume_line();
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
  append(&out_, "stats\r\n");
  if (!flush()) return false;
  for (uint32_t i = 0; i < kStatsLinesMax; ++i) {
    std::string_view line;
    if (!peek_line(&line)) return false;
    consume_line();
    if (line == "END") return true;
    if (take_word(&line) != "STAT") return fail("stats: not understood");
    const std::string_view name = take_word(&line);
    (*stats)[std::string(name)] = line;
  }
  return fail("stats: too many lines");
}

}  // namespace warpcache::bench
