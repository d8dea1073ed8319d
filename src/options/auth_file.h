// SPDX-License-Identifier: Apache-2.0
//
// The password file of -Y: lines `user:password`. A client of the text protocol logs in by a `set`
// of any key whose value is `user password`.
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

// Holds names and passwords; all functions may be called by any thread.
//
// Differences from memcached: 1024 entries instead of 8; the last line needs no line end; empty
// lines are skipped; a file without any entry is an error, since nobody could log in; failed logins
// are bounded.
class AuthFile {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr size_t kEntriesMax = 1024;
  static constexpr size_t kTextSizeMax = 255;  // bytes of a name, and of a password
  static constexpr size_t kFileSizeMax = kEntriesMax * (2 * kTextSizeMax + 3);
  // Of one connection, which is then closed. A client with a wrong password sees why, and one that
  // guesses pays for a connection every few guesses.
  static constexpr uint32_t kFailedLoginsMax = 3;
  // Of all connections together, in the long run and at once. Above them a login is refused without
  // a look at the entries, so that passwords cannot be tried as fast as the network carries them.
  // It refuses right passwords as well, so it is far above what clients do that were given a wrong
  // one.
  static constexpr uint32_t kFailedLoginsPerSecond = 1000;
  static constexpr uint32_t kFailedLoginsAtOnce = 1000;

  AuthFile() = default;
  AuthFile(const AuthFile&) = delete;
  AuthFile& operator=(const AuthFile&) = delete;

  // Reads the file and replaces all entries. Returns an empty string, or one sentence that says
  // what is wrong; then the entries stay as they were. Called at start-up and on SIGHUP.
  [[nodiscard]] std::string load(const std::string& path);

  // The same from a text; `name` stands for the file in the sentence.
  [[nodiscard]] std::string parse(std::string_view text, const std::string& name);

  // Checks the value of a login `set`, without its CRLF: a name, blanks, a password. Takes the same
  // time for every value of the same size, whatever the entries are: all are compared, each over
  // its whole width.
  [[nodiscard]] AuthResult check(std::string_view token,
                                 Clock::time_point now = Clock::now()) const;

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
  bool may_try(Clock::time_point now) const;
  void count_failure(Clock::time_point now) const;
  std::shared_ptr<const Entries> entries() const;
  static Text make_text(std::string_view text);
  static uint64_t difference(const Text& a, const Text& b);

  mutable std::mutex mutex_;  // held for as long as it takes to copy the pointer
  std::shared_ptr<const Entries> entries_ = std::make_shared<const Entries>();  // never changes
  // When all failures so far are paid for, one each 1 / kFailedLoginsPerSecond.
  mutable std::atomic<Clock::duration> failures_until_{Clock::duration::zero()};
};

}  // namespace warpcache
