// SPDX-License-Identifier: Apache-2.0
#include "admin/access.h"

#include <algorithm>
#include <new>

#include "admin/next_word.h"
#include "options/text_file.h"
#include "request/stages.h"

namespace warpcache::admin {
namespace {

constexpr std::string_view kEveryone = "*";

// Requests on a key that change nothing but when an item was last used.
bool only_reads(const protocol::Request& request) {
  constexpr uint32_t kChanges = protocol::kTouchBit | protocol::kVivify | protocol::kRecache;
  const bool gets = request.op == protocol::Op::kGet || request.op == protocol::Op::kMetaDebug;
  return gets && (request.bits & kChanges) == 0;
}

}  // namespace

class Access::UserRights final : public engine::Rights {
 public:
  bool allows(const protocol::Request& request, Bytes key) const override {
    const std::string_view text(reinterpret_cast<const char*>(key.data), key.size);
    const auto fits = [text](const std::string& prefix) { return text.starts_with(prefix); };
    // A request that reads and changes needs both.
    const bool reads = request.op == protocol::Op::kGet || request.op == protocol::Op::kMetaDebug;
    if (reads && std::none_of(readable.begin(), readable.end(), fits)) return false;
    if (only_reads(request)) return true;
    return std::any_of(writable.begin(), writable.end(), fits);
  }
  bool allows_flush(Bytes prefix) const override {
    const std::string_view text(reinterpret_cast<const char*>(prefix.data), prefix.size);
    return administers || std::any_of(writable.begin(), writable.end(),
                                      [text](const auto& own) { return text.starts_with(own); });
  }
  bool allows_administration() const override { return administers; }

  void add(const UserRights& other) {
    readable.insert(readable.end(), other.readable.begin(), other.readable.end());
    writable.insert(writable.end(), other.writable.begin(), other.writable.end());
    administers = administers || other.administers;
  }

  std::vector<std::string> readable;  // prefixes
  std::vector<std::string> writable;
  bool administers = false;
};

std::string Access::load(const std::string& path) {
  std::string text;
  const std::string failure = read_text_file(path, kFileSizeMax, &text);
  if (!failure.empty()) return "--access: the file " + path + " cannot be read: " + failure;
  if (text.size() > kFileSizeMax) return "--access: the file " + path + " is too large.";
  return parse(text, path);
}

std::string Access::parse(std::string_view text, const std::string& name) {
  Rules rules;
  rules[std::string(kEveryone)] = std::make_shared<UserRights>();
  for (size_t number = 1; !text.empty(); ++number) {
    const size_t end = std::min(text.find('\n'), text.size());
    std::string line(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    line.resize(std::min(line.find('#'), line.size()));
    std::replace_if(
        line.begin(), line.end(), [](char c) { return c == '\t' || c == '\r'; }, ' ');
    std::string_view words = line;
    const std::string_view user = next_word(words);
    if (user.empty()) continue;
    const std::string_view rights = next_word(words);
    if (rights.empty() || rights.find_first_not_of("rwa") != std::string_view::npos) {
      return "--access: line " + std::to_string(number) + " of " + name +
             " is not \"USER RIGHTS PREFIX...\", with the letters r, w and a for rights.";
    }
    std::vector<std::string> prefixes;
    for (std::string_view word = next_word(words); !word.empty(); word = next_word(words)) {
      prefixes.emplace_back(word);
    }
    if (prefixes.empty()) prefixes.emplace_back();
    UserRights line_rights;
    if (rights.find('r') != std::string_view::npos) line_rights.readable = prefixes;
    if (rights.find('w') != std::string_view::npos) line_rights.writable = prefixes;
    line_rights.administers = rights.find('a') != std::string_view::npos;
    std::shared_ptr<UserRights>& place = rules[std::string(user)];
    if (place == nullptr) place = std::make_shared<UserRights>();
    place->add(line_rights);
  }
  for (auto& [user, place] : rules) {
    if (user != kEveryone) place->add(*rules.find(kEveryone)->second);
  }
  const std::lock_guard lock(mutex_);
  rules_.swap(rules);
  return "";
}

uint16_t Access::number_of(std::string_view user) {
  const std::lock_guard lock(mutex_);
  const auto found = numbers_.find(user);
  if (found != numbers_.end()) return found->second;
  if (users_.size() == kUsersMax) return 0;
  try {
    users_.emplace_back(user);
    return numbers_.emplace(users_.back(), static_cast<uint16_t>(users_.size())).first->second;
  } catch (const std::bad_alloc&) {
    return 0;
  }
}

std::shared_ptr<const engine::Rights> Access::rights_of(uint16_t user) const {
  const std::lock_guard lock(mutex_);
  const auto found = rules_.find(users_[user - 1]);
  return found != rules_.end() ? found->second : rules_.find(kEveryone)->second;
}

}  // namespace warpcache::admin
