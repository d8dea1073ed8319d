// SPDX-License-Identifier: Apache-2.0
//
// What each user may do (--access): a file of lines
//
//     USER RIGHTS PREFIX...
//
// USER is a name of the passwords' file, or * for everyone. RIGHTS are letters: r (read), w (write:
// store, delete, count, touch), a (administrative commands). The rights hold for keys that begin
// with one of the prefixes; without a prefix, for all keys. The lines of a user and those of * add
// up; what no line allows is refused. # begins a comment. An item that one may not read is
// answered like one that does not exist. flush_prefix needs w for the whole prefix, or a.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "engine/rights.h"

namespace warpcache::admin {

// Any thread may call all functions.
class Access {
 public:
  static constexpr size_t kFileSizeMax = size_t{1} << 20;
  static constexpr size_t kUsersMax = 0xffff;

  // Reads the file and replaces all rules; connections have the new ones from their next burst on.
  // Returns "", or one sentence; the old rules stay then.
  [[nodiscard]] std::string load(const std::string& path);
  // load() from a text; `name` is the file name for the error message.
  [[nodiscard]] std::string parse(std::string_view text, const std::string& name);

  // A number for the user, from 1 on, the same each time. 0: there are too many users, or the
  // system refuses the memory: the login must be refused.
  [[nodiscard]] uint16_t number_of(std::string_view user);
  // REQUIRES: `user` came from number_of().
  [[nodiscard]] std::shared_ptr<const engine::Rights> rights_of(uint16_t user) const;

 private:
  class UserRights;
  using Rules = std::map<std::string, std::shared_ptr<UserRights>, std::less<>>;

  mutable std::mutex mutex_;  // held to copy a pointer, and for a login
  Rules rules_;               // by user; "*" has what holds for those without lines
  std::map<std::string, uint16_t, std::less<>> numbers_;
  std::vector<std::string> users_;  // by number, minus 1
};

}  // namespace warpcache::admin
