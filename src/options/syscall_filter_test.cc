// SPDX-License-Identifier: Apache-2.0
#include "options/syscall_filter.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <functional>
#include <latch>
#include <thread>

namespace warpcache {
namespace {

// How a child ends that runs `body` under the filter: its exit status, or minus the signal.
int end_of_child(const std::function<int()>& body) {
  const pid_t child = fork();
  if (child == 0) _exit(install_syscall_filter().empty() ? body() : 99);
  int status = -1;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

TEST(SyscallFilter, NoProgramCanBeStarted) {
  EXPECT_EQ(end_of_child([] {
              char* const none[] = {nullptr};
              return execve("/bin/true", none, none);
            }),
            -SIGSYS);
  EXPECT_EQ(end_of_child([] { return fork() == 0 ? 0 : 1; }), -SIGSYS);
}

TEST(SyscallFilter, NoSocketIsOpened) {
  EXPECT_EQ(end_of_child([] { return socket(AF_INET, SOCK_STREAM, 0) < 0 ? errno : 0; }), EPERM);
}

TEST(SyscallFilter, MemoryIsNotExecutable) {
  const auto map = [](int protection) {
    return mmap(nullptr, 4096, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED ? errno
                                                                                             : 0;
  };
  EXPECT_EQ(end_of_child([&] { return map(PROT_READ | PROT_WRITE); }), 0);
  EXPECT_EQ(end_of_child([&] { return map(PROT_READ | PROT_EXEC); }), EPERM);
}

TEST(SyscallFilter, ThreadsStart) {
  EXPECT_EQ(end_of_child([] {
              int seen = 0;
              std::thread([&seen] { seen = 7; }).join();
              return seen;
            }),
            7);
}

TEST(SyscallFilter, HoldsForThreadsThatRunAlready) {
  const pid_t child = fork();
  if (child == 0) {
    std::latch installed(1);
    int error = 0;
    std::thread other([&] {
      installed.wait();
      if (socket(AF_INET, SOCK_STREAM, 0) < 0) error = errno;
    });
    if (!install_syscall_filter().empty()) _exit(99);
    installed.count_down();
    other.join();
    _exit(error);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(WEXITSTATUS(status), EPERM);
}

// Another architecture's numbers would pass for allowed ones.
#if defined(__x86_64__)
TEST(SyscallFilter, X32IsRefused) {
  constexpr long kX32 = 0x40000000;
  EXPECT_EQ(end_of_child([] { return static_cast<int>(syscall(kX32 + SYS_getpid)); }), -SIGSYS);
}
#endif

}  // namespace
}  // namespace warpcache
