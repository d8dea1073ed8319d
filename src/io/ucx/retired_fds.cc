// SPDX-License-Identifier: Apache-2.0
#include "io/ucx/retired_fds.h"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <string>

namespace warpcache::io {

void RetiredFds::release() {
  for (const int fd : held_) (void)close(fd);
  held_.clear();
}

void RetiredFds::note(const char* name) {
  release();
  noted_.clear();
  const std::string folder = "/proc/self/fd/";
  DIR* const list = opendir(folder.c_str());
  if (list == nullptr) return;
  while (const dirent* const entry = readdir(list)) {
    char target[256];
    const ssize_t size = readlink((folder + entry->d_name).c_str(), target, sizeof target - 1);
    if (size <= 0) continue;
    target[size] = '\0';
    if (std::strstr(target, name) != nullptr) noted_.push_back(std::atoi(entry->d_name));
  }
  (void)closedir(list);
}

void RetiredFds::hold() {
  const int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (null < 0) return;
  bool kept = false;  // `null` itself may have one of the numbers
  for (const int fd : noted_) {
    if (fd == null) {
      held_.push_back(fd);
      kept = true;
      continue;
    }
    if (fcntl(fd, F_GETFD) >= 0) continue;
    const int made = fcntl(null, F_DUPFD_CLOEXEC, fd);
    if (made == fd) {
      held_.push_back(fd);
    } else if (made >= 0) {
      (void)close(made);
    }
  }
  if (!kept) (void)close(null);
  noted_.clear();
}

}  // namespace warpcache::io
