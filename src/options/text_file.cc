// SPDX-License-Identifier: Apache-2.0
#include "options/text_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

namespace warpcache {
namespace {

constexpr mode_t kMode = 0644;  // memcached's

class File {
 public:
  explicit File(int fd) : fd_(fd) {}
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  ~File() { (void)close(); }

  int fd() const { return fd_; }
  bool close() { return fd_ < 0 || ::close(std::exchange(fd_, -1)) == 0; }

 private:
  int fd_;
};

std::string system_failure(int error = errno) { return std::string(std::strerror(error)) + "."; }

bool write_whole(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t put = write(fd, text.data(), text.size());
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) return false;
    text.remove_prefix(static_cast<size_t>(put));
  }
  return true;
}

}  // namespace

std::string read_text_file(const std::string& path, size_t size_max, std::string* text) {
  // Without O_NONBLOCK, opening a FIFO would block until a process writes to it.
  const File file(open(path.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  if (file.fd() < 0) return system_failure();
  struct stat status {};
  if (fstat(file.fd(), &status) != 0) return system_failure();
  if (!S_ISREG(status.st_mode)) return "it is not a regular file.";
  text->resize(size_max + 1);
  size_t size = 0;
  while (size < text->size()) {
    const ssize_t got = read(file.fd(), text->data() + size, text->size() - size);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return system_failure();
    if (got == 0) break;
    size += static_cast<size_t>(got);
  }
  text->resize(size);
  return "";
}

std::string write_text_file(const std::string& path, std::string_view text,
                            FileIdentity* identity) {
  struct stat old {};
  if (lstat(path.c_str(), &old) == 0 && !S_ISREG(old.st_mode) && !S_ISLNK(old.st_mode)) {
    return "it is not a regular file.";
  }
  std::string beside = path + ".XXXXXX";
  File file(mkostemp(beside.data(), O_CLOEXEC));
  if (file.fd() < 0) return system_failure();
  struct stat made {};
  const bool written = fstat(file.fd(), &made) == 0 && fchmod(file.fd(), kMode) == 0 &&
                       write_whole(file.fd(), text) && file.close() &&
                       std::rename(beside.c_str(), path.c_str()) == 0;
  if (!written) {
    const int error = errno;
    (void)unlink(beside.c_str());
    return system_failure(error);
  }
  if (identity != nullptr) *identity = {made.st_dev, made.st_ino};
  return "";
}

void remove_file(const std::string& path, const FileIdentity& identity) {
  struct stat found {};
  if (lstat(path.c_str(), &found) != 0) return;
  if (FileIdentity{found.st_dev, found.st_ino} == identity) (void)unlink(path.c_str());
}

}  // namespace warpcache
