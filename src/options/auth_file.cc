// SPDX-License-Identifier: Apache-2.0
#include "options/auth_file.h"

#include <algorithm>
#include <cstring>
#include <random>
#include <utility>

#include "base/hash.h"
#include "options/text_file.h"

namespace warpcache {
namespace {

constexpr AuthFile::Clock::duration kFailurePrice =
    AuthFile::Clock::duration(std::chrono::seconds(1)) / AuthFile::kFailedLoginsPerSecond;

uint64_t random_seed() {
  std::random_device device;
  return uint64_t{device()} << 32 | device();
}

}  // namespace

AuthFile::AuthFile(Kind kind) : kind_(kind), seed_(random_seed()) {}

std::string AuthFile::load(const std::string& path) {
  std::string text;
  const std::string failure = read_text_file(path, kFileSizeMax, &text);
  if (!failure.empty()) return prefix() + "the file " + path + " cannot be read: " + failure;
  return parse(text, path);
}

std::string AuthFile::prefix() const {
  return kind_ == Kind::kTokens ? "-Y: " : "MEMCACHED_SASL_PWDB: ";
}

void AuthFile::clear() {
  auto table = std::make_shared<const Entries>();
  const std::lock_guard lock(mutex_);
  entries_.swap(table);
}

// Adds the entry of a line; with further words, one for each colon at which the password may end.
// False: the line has none, or it is too long.
bool AuthFile::add_entries(std::string_view line, Entries* entries) const {
  const size_t colon = line.find(':');
  if (colon == std::string_view::npos || colon < 1 || colon > kTextSizeMax) return false;
  const std::string_view user = line.substr(0, colon);
  const std::string_view rest = line.substr(colon + 1);
  if (rest.empty()) return false;
  size_t end = kind_ == Kind::kSasl ? std::min(rest.find(':', 1), rest.size()) : rest.size();
  if (end > kTextSizeMax) return false;
  while (end <= kTextSizeMax) {
    entries->push_back({make_text(user), make_text(rest.substr(0, end))});
    if (end == rest.size()) break;
    end = std::min(rest.find(':', end + 1), rest.size());
  }
  return true;
}

std::string AuthFile::parse(std::string_view text, const std::string& name) {
  if (text.size() > kFileSizeMax) {
    return prefix() + "the file " + name + " is larger than " + std::to_string(kFileSizeMax) +
           " bytes.";
  }
  Entries entries;
  size_t line_number = 0;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    ++line_number;
    if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
    if (line.empty()) continue;
    if (!add_entries(line, &entries) && kind_ == Kind::kTokens) {
      return prefix() + "line " + std::to_string(line_number) + " of " + name +
             " is not user:password with 1 to 255 bytes each.";
    }
    if (entries.size() > kEntriesMax) {
      return prefix() + "the file " + name + " has more than " + std::to_string(kEntriesMax) +
             " entries.";
    }
  }
  if (entries.empty()) {
    return prefix() + "the file " + name + " has no entry, so nobody could log in.";
  }
  auto table = std::make_shared<const Entries>(std::move(entries));
  const std::lock_guard lock(mutex_);
  entries_.swap(table);
  return "";
}

std::shared_ptr<const AuthFile::Entries> AuthFile::entries() const {
  const std::lock_guard lock(mutex_);
  return entries_;
}

AuthResult AuthFile::check(std::string_view token, uint64_t source, Clock::time_point now) const {
  if (!may_try(source, now)) return AuthResult::kRefused;
  const AuthResult result = compare(token);
  if (result == AuthResult::kRefused) count_failure(source, now);
  return result;
}

std::atomic<AuthFile::Clock::duration>& AuthFile::failures_of(uint64_t source) const {
  const Bytes bytes = {reinterpret_cast<const uint8_t*>(&source), sizeof source};
  return failures_until_[hash_key(seed_, bytes) % kSourceCounts];
}

bool AuthFile::may_try(uint64_t source, Clock::time_point now) const {
  return failures_of(source).load(std::memory_order_relaxed) - now.time_since_epoch() <=
         (kFailedLoginsAtOnce - 1) * kFailurePrice;
}

void AuthFile::count_failure(uint64_t source, Clock::time_point now) const {
  std::atomic<Clock::duration>& failures = failures_of(source);
  Clock::duration until = failures.load(std::memory_order_relaxed);
  while (!failures.compare_exchange_weak(
      until, std::max(until, now.time_since_epoch()) + kFailurePrice, std::memory_order_relaxed)) {
  }
}

// The first blank ends the name; all after it is the password, further blanks too.
AuthResult AuthFile::compare(std::string_view token) const {
  const size_t user_end = token.find(' ');
  if (user_end == std::string_view::npos) return AuthResult::kBadFormat;
  return matches(token.substr(0, user_end), token.substr(user_end + 1)) ? AuthResult::kAccepted
                                                                        : AuthResult::kRefused;
}

bool AuthFile::matches(std::string_view user, std::string_view password,
                       std::string_view host) const {
  std::string long_user(user);
  if (!host.empty()) long_user.append("@").append(host);
  if (user.size() > kTextSizeMax || password.size() > kTextSizeMax) return false;

  const Text given_user = make_text(user);
  const Text given_long = make_text(long_user.size() > kTextSizeMax ? user : long_user);
  const Text given_password = make_text(password);
  const std::shared_ptr<const Entries> table = entries();
  uint32_t found = 0;
  for (const Entry& entry : *table) {
    const uint64_t other_user = uint64_t{difference(entry.user, given_user) != 0} &
                                uint64_t{difference(entry.user, given_long) != 0};
    const uint64_t different = other_user | difference(entry.password, given_password);
    found += static_cast<uint32_t>(different == 0);
  }
  return found != 0;
}

AuthFile::Text AuthFile::make_text(std::string_view text) {
  Text result;
  std::copy(text.begin(), text.end(), result.bytes.begin());
  result.size = static_cast<uint8_t>(text.size());
  return result;
}

// Non-zero if the texts differ. Compares every byte, eight at a time, so the time does not depend
// on the texts.
uint64_t AuthFile::difference(const Text& a, const Text& b) {
  uint64_t different = 0;
  for (size_t at = 0; at < sizeof(Text); at += sizeof(uint64_t)) {
    uint64_t of_a = 0;
    uint64_t of_b = 0;
    std::memcpy(&of_a, reinterpret_cast<const char*>(&a) + at, sizeof of_a);
    std::memcpy(&of_b, reinterpret_cast<const char*>(&b) + at, sizeof of_b);
    different |= of_a ^ of_b;
  }
  return different;
}

}  // namespace warpcache
