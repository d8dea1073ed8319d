// SPDX-License-Identifier: Apache-2.0
//
// Small files that others may have prepared: nothing here waits for a FIFO, follows a link when it
// writes, or writes to a device. Functions return an empty string or what is wrong, as the end of a
// sentence.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <string>
#include <string_view>

namespace warpcache {

// Tells a file from another that has taken its place.
struct FileIdentity {
  dev_t device = 0;
  ino_t inode = 0;

  bool operator==(const FileIdentity&) const = default;
};

// Reads a regular file: at most `size_max` bytes, and one more where it is larger.
[[nodiscard]] std::string read_text_file(const std::string& path, size_t size_max,
                                         std::string* text);

// Writes a file whole or not at all: under a name of its own beside `path`, then renamed. A link at
// `path` is replaced, what it points at stays. Fails where `path` is neither a regular file nor a
// link.
[[nodiscard]] std::string write_text_file(const std::string& path, std::string_view text,
                                          FileIdentity* identity = nullptr);

// Removes the file, if it is the one that `identity` says.
void remove_file(const std::string& path, const FileIdentity& identity);

}  // namespace warpcache
