// SPDX-License-Identifier: Apache-2.0
//
// Small files at paths that other users may control: the functions never block on a FIFO, never
// follow a link when they write, and never write to a device. They return an empty string, or the
// error as the end of a sentence.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <string>
#include <string_view>

namespace warpcache {

// Distinguishes a file from another one that has replaced it.
struct FileIdentity {
  dev_t device = 0;
  ino_t inode = 0;

  bool operator==(const FileIdentity&) const = default;
};

// Reads a regular file: at most `size_max` bytes, and one more byte if it is larger.
[[nodiscard]] std::string read_text_file(const std::string& path, size_t size_max,
                                         std::string* text);

// Writes a file completely or not at all: writes a temporary file in the same folder and renames
// it. Replaces a link at `path`, not the file that it points to. Fails if `path` is neither a
// regular file nor a link.
[[nodiscard]] std::string write_text_file(const std::string& path, std::string_view text,
                                          FileIdentity* identity = nullptr);

// Removes the file if it is the one that `identity` describes.
void remove_file(const std::string& path, const FileIdentity& identity);

}  // namespace warpcache
