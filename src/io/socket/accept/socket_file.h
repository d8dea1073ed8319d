// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <utility>

#include "io/unique_fd.h"

namespace warpcache::io {

// The file of a listening Unix socket. bind() creates it under a temporary name in the same folder;
// publish() renames it to `path` when the socket listens, so a client that sees the file can
// connect. Start-up and end only, one thread. Functions that can fail return an empty string or one
// sentence.
class SocketFile {
 public:
  SocketFile() = default;
  SocketFile(SocketFile&& other) noexcept { *this = std::move(other); }
  SocketFile& operator=(SocketFile&& other) noexcept;
  SocketFile(const SocketFile&) = delete;
  SocketFile& operator=(const SocketFile&) = delete;
  ~SocketFile() { remove(); }

  // Binds `fd`, a Unix socket, with `mode` (9 bits). Fails if a server listens at `path` or a file
  // of another kind is there.
  [[nodiscard]] std::string bind(int fd, const std::string& path, uint32_t mode);

  // Replaces the file that an earlier server left at the path. Fails as bind() does, without a
  // change to the file there. Does nothing without bind(). REQUIRES: the socket listens.
  [[nodiscard]] std::string publish();

  // Removes the file, unless another file has replaced it. REQUIRES: the socket is open, so that
  // its inode number is not reused.
  void remove();

 private:
  std::string path_;
  std::string name_;  // the file's current name: `path_` or the temporary one; empty: no file
  dev_t device_ = 0;
  ino_t inode_ = 0;
};

}  // namespace warpcache::io
