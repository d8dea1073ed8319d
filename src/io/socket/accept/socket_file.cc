// SPDX-License-Identifier: Apache-2.0
#include "io/socket/accept/socket_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

namespace warpcache::io {
namespace {

constexpr size_t kPathSizeMax = sizeof(sockaddr_un::sun_path) - 1;

std::string system_failure(int error) { return std::string(std::strerror(error)) + "."; }

std::string folder_of(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "./" : path.substr(0, slash + 1);
}

// A random name in the same folder. Replaces the end of a name that is too long.
std::string name_beside(const std::string& path) {
  uint32_t number = 0;
  (void)getrandom(&number, sizeof number, 0);
  char suffix[16];
  const auto suffix_size =
      static_cast<size_t>(std::snprintf(suffix, sizeof suffix, ".%08x", number));
  const size_t slash = path.rfind('/');
  const size_t folder_size = slash == std::string::npos ? 0 : slash + 1;
  const size_t kept = std::min(path.size(), kPathSizeMax - suffix_size);
  return path.substr(0, std::max(kept, folder_size)) + suffix;
}

bool make_address(const std::string& path, sockaddr_un& address) {
  address = {};
  address.sun_family = AF_UNIX;
  if (path.empty() || path.size() > kPathSizeMax) return false;
  std::memcpy(address.sun_path, path.data(), path.size());
  return true;
}

// Whether `path` can be used: no file is there, or the socket of a server that has ended. Returns
// an error message, or "".
std::string look_at(const std::string& path) {
  struct stat found {};
  if (lstat(path.c_str(), &found) != 0) return errno == ENOENT ? "" : system_failure(errno);
  if (!S_ISSOCK(found.st_mode)) return "there is a file of that name.";
  sockaddr_un address;
  if (!make_address(path, address)) return system_failure(ENAMETOOLONG);
  const UniqueFd client(socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!client.valid()) return system_failure(errno);
  const int result =
      connect(client.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address);
  if (result != 0 && (errno == ECONNREFUSED || errno == ENOENT)) return "";
  // EAGAIN: its queue is full, so it listens.
  if (result == 0 || errno == EAGAIN) return "another server listens there.";
  return "whether another server listens there cannot be seen: " + system_failure(errno);
}

}  // namespace

SocketFile& SocketFile::operator=(SocketFile&& other) noexcept {
  if (this == &other) return *this;
  remove();
  path_ = std::move(other.path_);
  name_ = std::exchange(other.name_, {});
  device_ = other.device_;
  inode_ = other.inode_;
  return *this;
}

std::string SocketFile::bind(int fd, const std::string& path, uint32_t mode) {
  std::string failure = look_at(path);
  if (!failure.empty()) return failure;
  const std::string beside = name_beside(path);
  sockaddr_un address;
  if (path.size() > kPathSizeMax || !make_address(beside, address)) {
    return system_failure(ENAMETOOLONG);
  }
  const mode_t old_mask = umask(static_cast<mode_t>(~mode & 0777u));
  const int bound = ::bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address);
  const int error = errno;
  umask(old_mask);
  if (bound != 0) return system_failure(error);
  struct stat made {};
  if (lstat(beside.c_str(), &made) != 0) return system_failure(errno);
  path_ = path;
  name_ = beside;
  device_ = made.st_dev;
  inode_ = made.st_ino;
  return "";
}

std::string SocketFile::publish() {
  if (name_.empty()) return "";
  // A lock on the folder: of two servers that start at the same time, one checks the path while the
  // other waits. Without permission to read the folder there is no lock.
  const UniqueFd folder(open(folder_of(path_).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (folder.valid()) (void)flock(folder.get(), LOCK_EX);
  std::string failure = look_at(path_);
  if (!failure.empty()) return failure;
  if (std::rename(name_.c_str(), path_.c_str()) != 0) return system_failure(errno);
  name_ = path_;
  return "";
}

void SocketFile::remove() {
  if (name_.empty()) return;
  struct stat found {};
  const bool ours =
      lstat(name_.c_str(), &found) == 0 && found.st_dev == device_ && found.st_ino == inode_;
  if (ours) (void)unlink(name_.c_str());
  name_.clear();
}

}  // namespace warpcache::io
