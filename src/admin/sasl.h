// SPDX-License-Identifier: Apache-2.0
//
// Logins by SASL (-S), as memcached's: names and passwords come from the file that
// MEMCACHED_SASL_PWDB names, from libsasl2's configuration, or from both.
//
// The file alone needs no library: this class knows the mechanism PLAIN. libsasl2, where the server
// was built with it, is loaded if SASL_CONF_PATH is set or no file is given. All mechanisms are
// then the library's, except that PLAIN looks into the file first.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "options/auth_file.h"

namespace warpcache::admin {

// What a login needs of libsasl2. Not for several threads at a time.
class SaslLibrary {
 public:
  enum class Verdict : uint8_t { kAccepted, kContinue, kRefused };

  // The state of a login between its messages.
  class Exchange {
   public:
    virtual ~Exchange() = default;
    // `challenge` gets what is sent to the client, with kContinue.
    virtual Verdict start(const std::string& mechanism, std::string_view data,
                          std::string* challenge) = 0;
    virtual Verdict step(std::string_view data, std::string* challenge) = 0;
    // The names of the mechanisms, separated by blanks.
    virtual std::string mechanisms() = 0;
  };

  virtual ~SaslLibrary() = default;
  // Null: the library refuses.
  virtual std::unique_ptr<Exchange> begin() = 0;
};

// Loads and prepares libsasl2, once in a process. Null, with the reason in `why`, if it is not
// there or refuses its configuration.
[[nodiscard]] std::unique_ptr<SaslLibrary> load_sasl_library(std::string* why);

// Any thread may call all functions.
class Sasl {
 public:
  using Verdict = SaslLibrary::Verdict;
  // Logins of several messages that are under way. For a new one the oldest of the source that has
  // the most is given up.
  static constexpr size_t kExchangesMax = 1024;

  // `path`: the file of names and passwords, or "".
  explicit Sasl(std::string path);
  Sasl(const Sasl&) = delete;
  Sasl& operator=(const Sasl&) = delete;

  // Prepares. Returns one sentence if nobody could ever log in, or "". A file that cannot be read
  // is only a warning in the log: it may appear later.
  [[nodiscard]] std::string open();

  // Reads the file now (SIGHUP). A login reads it too, if it has changed since, as in memcached.
  // Returns "", or one sentence: nobody in the file can log in then.
  [[nodiscard]] std::string reload();

  // The names of the mechanisms, separated by blanks.
  [[nodiscard]] std::string mechanisms();

  // Who logs in.
  struct Client {
    uint64_t connection = 0;
    uint64_t source = 0;  // of all connections from its address
  };

  // The first message of a login, and a further one.
  [[nodiscard]] Verdict start(const Client& client, std::string_view mechanism,
                              std::string_view data, std::string* challenge);
  [[nodiscard]] Verdict step(const Client& client, std::string_view data, std::string* challenge);

 private:
  struct FileState {
    uint64_t inode = 0;
    int64_t size = -1;
    int64_t changed_ns = 0;

    bool operator==(const FileState&) const = default;
  };
  struct Exchange {
    uint64_t connection = 0;
    uint64_t source = 0;
    std::unique_ptr<SaslLibrary::Exchange> library;  // null: PLAIN, of this class
  };

  FileState file_state() const;
  void refresh();
  Verdict plain(std::string_view data);
  void keep(const Client& client, std::unique_ptr<SaslLibrary::Exchange> library);
  void forget(uint64_t connection);

  const std::string path_;
  std::string host_;  // memcached's library adds it to names: an entry may be user@host
  AuthFile file_{AuthFile::Kind::kSasl};
  std::mutex mutex_;  // of what follows
  FileState read_;    // the file when it was read last
  std::unique_ptr<SaslLibrary> library_;
  std::map<uint64_t, Exchange> exchanges_;  // by their numbers: the lowest is the oldest
  std::map<uint64_t, uint64_t> numbers_;    // of exchanges, by connection
  uint64_t exchanges_begun_ = 0;
};

}  // namespace warpcache::admin
