// SPDX-License-Identifier: Apache-2.0
#include "admin/sasl.h"

#include <spdlog/spdlog.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstdlib>
#include <iterator>
#include <utility>

#include "base/first_of_most.h"

namespace warpcache::admin {
namespace {

constexpr std::string_view kPlain = "PLAIN";

bool is_plain(std::string_view mechanism) {
  return mechanism.size() == kPlain.size() &&
         strncasecmp(mechanism.data(), kPlain.data(), kPlain.size()) == 0;
}

std::string host_name() {
  std::array<char, 256> name{};
  return gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "";
}

}  // namespace

Sasl::Sasl(std::string path) : path_(std::move(path)), host_(host_name()) {}

std::string Sasl::open() {
  if (!path_.empty()) {
    const std::string failure = reload();
    if (!failure.empty()) spdlog::warn("{} It is read again when it has changed.", failure);
  }
  if (!path_.empty() && std::getenv("SASL_CONF_PATH") == nullptr) return "";
  std::string why;
  library_ = load_sasl_library(&why);
  if (library_ != nullptr) return "";
  if (path_.empty()) {
    return "-S needs names and passwords: set MEMCACHED_SASL_PWDB to a file of lines "
           "user:password; libsasl2 is not used, " +
           why + ".";
  }
  spdlog::warn("SASL_CONF_PATH is set, but libsasl2 is not used: {}", why);
  return "";
}

Sasl::FileState Sasl::file_state() const {
  struct stat state {};
  if (stat(path_.c_str(), &state) != 0) return {};
  return {static_cast<uint64_t>(state.st_ino), static_cast<int64_t>(state.st_size),
          int64_t{state.st_mtim.tv_sec} * 1'000'000'000 + state.st_mtim.tv_nsec};
}

std::string Sasl::reload() {
  if (path_.empty()) return "";
  const std::lock_guard lock(mutex_);
  read_ = file_state();
  std::string failure = file_.load(path_);
  if (!failure.empty()) file_.clear();
  return failure;
}

void Sasl::refresh() {
  {
    const std::lock_guard lock(mutex_);
    if (file_state() == read_) return;
  }
  const std::string failure = reload();
  if (!failure.empty()) spdlog::warn("{}", failure);
}

std::string Sasl::mechanisms() {
  const std::lock_guard lock(mutex_);
  if (library_ == nullptr) return std::string(kPlain);
  const std::unique_ptr<SaslLibrary::Exchange> exchange = library_->begin();
  return exchange == nullptr ? "" : exchange->mechanisms();
}

Sasl::Verdict Sasl::start(const Client& client, std::string_view mechanism, std::string_view data,
                          std::string* challenge) {
  if (!file_.may_try(client.source)) return Verdict::kRefused;
  Verdict verdict = Verdict::kRefused;
  if (!path_.empty() && is_plain(mechanism)) {
    if (data.empty()) {
      const std::lock_guard lock(mutex_);
      keep(client, nullptr);
      return Verdict::kContinue;
    }
    verdict = plain(data);
  }
  if (verdict == Verdict::kRefused) {
    const std::lock_guard lock(mutex_);
    forget(client.connection);
    std::unique_ptr<SaslLibrary::Exchange> exchange;
    if (library_ != nullptr) exchange = library_->begin();
    if (exchange != nullptr) verdict = exchange->start(std::string(mechanism), data, challenge);
    if (verdict == Verdict::kContinue) keep(client, std::move(exchange));
  }
  if (verdict == Verdict::kRefused) file_.count_failure(client.source);
  return verdict;
}

Sasl::Verdict Sasl::step(const Client& client, std::string_view data, std::string* challenge) {
  if (!file_.may_try(client.source)) return Verdict::kRefused;
  Verdict verdict = Verdict::kRefused;
  bool is_ours = false;
  {
    const std::lock_guard lock(mutex_);
    const auto number = numbers_.find(client.connection);
    if (number != numbers_.end()) {
      Exchange& exchange = exchanges_.at(number->second);
      is_ours = exchange.library == nullptr;
      if (!is_ours) verdict = exchange.library->step(data, challenge);
      if (verdict != Verdict::kContinue) forget(client.connection);
    }
  }
  if (is_ours) {
    return start(client, kPlain, data.empty() ? std::string_view("\0", 1) : data, challenge);
  }
  if (verdict == Verdict::kRefused) file_.count_failure(client.source);
  return verdict;
}

// Remembers a login that goes on with the next message. REQUIRES: mutex_ is held.
void Sasl::keep(const Client& client, std::unique_ptr<SaslLibrary::Exchange> library) {
  forget(client.connection);
  if (exchanges_.size() == kExchangesMax) {
    std::array<uint64_t, kExchangesMax> sources{};
    size_t count = 0;
    for (const auto& [number, exchange] : exchanges_) sources[count++] = exchange.source;
    const auto victim =
        std::next(exchanges_.begin(), static_cast<ptrdiff_t>(first_of_most(sources, count)));
    forget(victim->second.connection);
  }
  const uint64_t number = ++exchanges_begun_;
  exchanges_[number] = {client.connection, client.source, std::move(library)};
  numbers_[client.connection] = number;
}

// REQUIRES: mutex_ is held.
void Sasl::forget(uint64_t connection) {
  const auto number = numbers_.find(connection);
  if (number == numbers_.end()) return;
  exchanges_.erase(number->second);
  numbers_.erase(number);
}

// The message of PLAIN (RFC 4616): the name to act as, which must be the client's own or empty; the
// name; the password; with a zero byte between them.
Sasl::Verdict Sasl::plain(std::string_view data) {
  refresh();
  const size_t first = data.find('\0');
  if (first == std::string_view::npos) return Verdict::kRefused;
  const size_t second = data.find('\0', first + 1);
  if (second == std::string_view::npos) return Verdict::kRefused;
  const std::string_view acts_as = data.substr(0, first);
  const std::string_view user = data.substr(first + 1, second - first - 1);
  const std::string_view password = data.substr(second + 1);
  const bool is_itself = acts_as.empty() || acts_as == user;
  if (user.empty() || password.empty() || !is_itself) return Verdict::kRefused;
  if (password.find('\0') != std::string_view::npos) return Verdict::kRefused;
  return file_.matches(user, password, host_) ? Verdict::kAccepted : Verdict::kRefused;
}

}  // namespace warpcache::admin
