// SPDX-License-Identifier: Apache-2.0
//
// A file of names and passwords, lines `user:password`.
//
// With -Y a client of the text protocol logs in with a `set` of any key whose value is
// `user password`. With -S a client of the binary protocol logs in by SASL, and the variable
// MEMCACHED_SASL_PWDB names the file.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace warpcache {

enum class AuthResult : uint8_t {
  kAccepted,
  kRefused,    // CLIENT_ERROR authentication failure
  kBadFormat,  // CLIENT_ERROR bad authentication token format
};

// Holds names and passwords. Any thread may call all functions.
//
// Differences from memcached: 1024 entries instead of 8; the last line needs no line end; empty
// lines are skipped; a file without entries is an error, because nobody could log in; failed logins
// are limited.
class AuthFile {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr size_t kEntriesMax = 1024;
  static constexpr size_t kTextSizeMax = 255;  // bytes of a name or a password
  static constexpr size_t kFileSizeMax = kEntriesMax * (2 * kTextSizeMax + 3);
  // After this many failed logins a connection is closed. A client with a wrong password sees the
  // error; a client that guesses passwords needs a new connection after three guesses.
  static constexpr uint32_t kFailedLoginsMax = 3;
  // Failed logins of all connections from one source together: the sustained rate, and the largest
  // burst. Above these limits every login from there is refused without a comparison, so that
  // passwords cannot be tried at network speed. Correct passwords are refused too, so the limits
  // are far above the rate of clients that have a wrong password by mistake, and one source does
  // not exhaust those of others.
  static constexpr uint32_t kFailedLoginsPerSecond = 1000;
  static constexpr uint32_t kFailedLoginsAtOnce = 1000;
  // Sources are counted by hash. Two of them share a count with a chance of one in this many.
  static constexpr uint32_t kSourceCounts = 1024;

  enum class Kind : uint8_t {
    kTokens,  // -Y
    // MEMCACHED_SASL_PWDB, as memcached reads it: more words may follow the password after colons,
    // and lines that are no entry are skipped.
    kSasl,
  };

  explicit AuthFile(Kind kind = Kind::kTokens);
  AuthFile(const AuthFile&) = delete;
  AuthFile& operator=(const AuthFile&) = delete;

  // Reads the file and replaces all entries. Returns an empty string; or one sentence that says
  // what is wrong, and keeps the old entries. Called at start-up and on SIGHUP.
  [[nodiscard]] std::string load(const std::string& path);

  // Forgets all entries: nobody can log in.
  void clear();

  // load() from a text; `name` is the file name for the error message.
  [[nodiscard]] std::string parse(std::string_view text, const std::string& name);

  // Checks the value of a login `set`, without its CRLF: a name, blanks, a password. Compares with
  // every entry over its full size, so that the time depends only on the size of the value and the
  // number of entries. `source` stands for the client's address.
  [[nodiscard]] AuthResult check(std::string_view token, uint64_t source,
                                 Clock::time_point now = Clock::now()) const;

  // Whether an entry has this name and password, or, with a `host`, the name `user@host`. Compares
  // as check() does, and counts nothing.
  [[nodiscard]] bool matches(std::string_view user, std::string_view password,
                             std::string_view host = {}) const;

  // The limit of failed logins, which check() applies by itself. Threads that ask at the same time
  // may exceed it by one failure each.
  [[nodiscard]] bool may_try(uint64_t source, Clock::time_point now = Clock::now()) const;
  void count_failure(uint64_t source, Clock::time_point now = Clock::now()) const;

 private:
  struct Text {
    std::array<char, kTextSizeMax> bytes{};
    uint8_t size = 0;
  };
  static_assert(sizeof(Text) % sizeof(uint64_t) == 0);
  struct Entry {
    Text user;
    Text password;
  };

  using Entries = std::vector<Entry>;

  AuthResult compare(std::string_view token) const;
  bool add_entries(std::string_view line, Entries* entries) const;
  std::string prefix() const;
  std::shared_ptr<const Entries> entries() const;
  static Text make_text(std::string_view text);
  static uint64_t difference(const Text& a, const Text& b);

  std::atomic<Clock::duration>& failures_of(uint64_t source) const;

  const Kind kind_;
  const uint64_t seed_;       // of the hash of sources, so that nobody can choose one that collides
  mutable std::mutex mutex_;  // held only to copy the pointer
  std::shared_ptr<const Entries> entries_ = std::make_shared<const Entries>();  // never changes
  // By source: each failure moves this time on by 1 / kFailedLoginsPerSecond s. Logins are refused
  // while it is too far in the future.
  mutable std::array<std::atomic<Clock::duration>, kSourceCounts> failures_until_{};
};

}  // namespace warpcache
