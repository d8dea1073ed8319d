// SPDX-License-Identifier: Apache-2.0
//
// Keeps the numbers of closed files from being used again. UCX's shared memory is known to other
// processes by the number of its descriptor here (/proc/PID/fd/N). One that still has an old number
// would map whatever has it now: then it writes into that, or ends by SIGBUS where that is shorter.
// One thread uses it.
#pragma once

#include <vector>

namespace warpcache::io {

class RetiredFds {
 public:
  RetiredFds() = default;
  RetiredFds(const RetiredFds&) = delete;
  RetiredFds& operator=(const RetiredFds&) = delete;
  ~RetiredFds() { release(); }

  // Gives back what is held, and notes the open files of this process whose names contain `name`.
  void note(const char* name);
  // Holds the numbers of those noted that have been closed since. They are /dev/null now, which
  // cannot be mapped. A number that another thread has already taken is not held.
  void hold();

 private:
  void release();

  std::vector<int> noted_;
  std::vector<int> held_;
};

}  // namespace warpcache::io
