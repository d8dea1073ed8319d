// SPDX-License-Identifier: Apache-2.0
#include "options/syscall_filter.h"

#include <gtest/gtest.h>
#include <linux/bpf.h>
#include <net/if.h>
#include <signal.h>
#include <sys/ioctl.h>
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
int end_of_child(const std::function<int()>& body, const FilterNeeds& needs = {}) {
  const pid_t child = fork();
  if (child == 0) _exit(install_syscall_filter(needs).empty() ? body() : 99);
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

int error_of_socket(int domain, int kind = SOCK_STREAM) {
  return socket(domain, kind, 0) < 0 ? errno : 0;
}

TEST(SyscallFilter, FramesHaveUnixSockets) {
  const FilterNeeds frames = {.frames = true, .ucx = false, .cuda = false};
  EXPECT_EQ(end_of_child([] { return error_of_socket(AF_UNIX, SOCK_SEQPACKET); }, frames), 0);
  EXPECT_EQ(end_of_child([] { return error_of_socket(AF_INET); }, frames), EPERM);
  EXPECT_EQ(end_of_child([] { return error_of_socket(AF_PACKET, SOCK_RAW); }, frames), EPERM);
  EXPECT_EQ(end_of_child([] { return memfd_create("m", 0) < 0 ? errno : 0; }, frames), 0);
}

TEST(SyscallFilter, UcxHasSockets) {
  const FilterNeeds ucx = {.frames = false, .ucx = true, .cuda = false};
  EXPECT_EQ(end_of_child([] { return error_of_socket(AF_INET); }, ucx), 0);
  EXPECT_EQ(end_of_child([] { return error_of_socket(AF_PACKET, SOCK_RAW); }, ucx), EPERM);
  EXPECT_EQ(end_of_child([] { return error_of_socket(AF_INET); },
                         {.frames = true, .ucx = true, .cuda = false}),
            0);
}

// The driver's requests, but to no other device and with no other kind of server.
TEST(SyscallFilter, CudaAsksItsDriver) {
  const FilterNeeds cuda = {.frames = false, .ucx = false, .cuda = true};
  const auto error_of = [](unsigned long request, const FilterNeeds& needs) {
    return end_of_child([request] { return ioctl(-1, request, nullptr) < 0 ? errno : 0; }, needs);
  };
  constexpr unsigned long kControl = _IOC(_IOC_READ | _IOC_WRITE, 'F', 0x2a, 32);
  constexpr unsigned long kUvmInitialize = 0x30000001;
  constexpr unsigned long kUvmFree = 34;
  for (const unsigned long request : {kControl, kUvmInitialize, kUvmFree}) {
    EXPECT_EQ(error_of(request, cuda), EBADF) << request;
    EXPECT_EQ(error_of(request, {}), EPERM) << request;
    for (const bool other : {false, true}) {
      EXPECT_EQ(error_of(request, {.frames = other, .ucx = !other, .cuda = true}), EBADF);
      EXPECT_EQ(error_of(request, {.frames = other, .ucx = !other, .cuda = false}), EPERM);
    }
  }
  constexpr unsigned long kBeyondUvm = 0x30000003;
  for (const unsigned long request : {kBeyondUvm, 0x100ul, static_cast<unsigned long>(TIOCSTI)}) {
    EXPECT_EQ(error_of(request, cuda), EPERM) << request;
  }
  EXPECT_EQ(error_of(SIOCGIFFLAGS, {.frames = true, .ucx = false, .cuda = true}), EBADF);
  EXPECT_EQ(end_of_child([] { return error_of_socket(AF_UNIX); }, cuda), EPERM);
  EXPECT_EQ(end_of_child([] { return memfd_create("m", 0) < 0 ? errno : 0; }, cuda), 0);
  EXPECT_EQ(end_of_child([] { return fork() == 0 ? 0 : 1; }, cuda), -SIGSYS);
}

// Of ioctl() and bpf() only what asks.
TEST(SyscallFilter, OtherRequestsAreRefused) {
  const auto ask = [](unsigned long request) {
    ifreq interface = {};
    return ioctl(0, request, &interface) < 0 ? errno : 0;
  };
  for (const FilterNeeds& needs :
       {FilterNeeds{}, FilterNeeds{.frames = true, .ucx = false, .cuda = false},
        FilterNeeds{.frames = false, .ucx = true, .cuda = false},
        FilterNeeds{.frames = false, .ucx = false, .cuda = true}}) {
    EXPECT_EQ(end_of_child([&] { return ask(SIOCSIFFLAGS); }, needs), EPERM);
    EXPECT_EQ(end_of_child([&] { return ask(TIOCSTI); }, needs), EPERM);
    const bool asks = needs.frames || needs.ucx;
    EXPECT_EQ(end_of_child([&] { return ask(SIOCGIFFLAGS) != EPERM; }, needs), asks ? 1 : 0);
    EXPECT_EQ(
        end_of_child([] { return syscall(SYS_bpf, BPF_PROG_LOAD, 0, 0) < 0 ? errno : 0; }, needs),
        EPERM);
    EXPECT_EQ(end_of_child([] { return fork() == 0 ? 0 : 1; }, needs), -SIGSYS);
    EXPECT_EQ(end_of_child(
                  [] {
                    return mmap(nullptr, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS,
                                -1, 0) == MAP_FAILED
                               ? errno
                               : 0;
                  },
                  needs),
              EPERM);
  }
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
