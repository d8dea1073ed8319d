// SPDX-License-Identifier: Apache-2.0
#include "io/ucx/retired_fds.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <vector>

namespace warpcache::io {
namespace {

int make(const char* name) { return memfd_create(name, MFD_CLOEXEC); }

TEST(RetiredFds, NumbersOfClosedFilesAreNotUsedAgain) {
  const std::vector<int> old = {make("shared-one"), make("shared-two"), make("shared-three")};
  const int other = make("other");
  RetiredFds retired;
  retired.note("shared-");
  (void)close(old[0]);
  (void)close(old[2]);
  (void)close(other);
  retired.hold();
  for (const int fd : {old[0], old[2]}) {
    EXPECT_GE(fcntl(fd, F_GETFD), 0);
    EXPECT_EQ(mmap(nullptr, 4096, PROT_READ, MAP_SHARED, fd, 0), MAP_FAILED);
  }
  const int next = make("next");
  EXPECT_NE(next, old[0]);
  EXPECT_NE(next, old[2]);
  // One that is open still is the file that it was.
  EXPECT_EQ(ftruncate(old[1], 4096), 0);
  void* const memory = mmap(nullptr, 4096, PROT_READ, MAP_SHARED, old[1], 0);
  EXPECT_NE(memory, MAP_FAILED);
  (void)munmap(memory, 4096);
  (void)close(next);
  (void)close(old[1]);
}

TEST(RetiredFds, AreGivenBackByTheNextNote) {
  const int old = make("shared-one");
  RetiredFds retired;
  retired.note("shared-");
  (void)close(old);
  retired.hold();
  EXPECT_GE(fcntl(old, F_GETFD), 0);
  retired.note("shared-");
  EXPECT_LT(fcntl(old, F_GETFD), 0);
  retired.hold();
  EXPECT_LT(fcntl(old, F_GETFD), 0);
}

TEST(RetiredFds, ANumberThatIsTakenIsLeftAlone) {
  const int old = make("shared-one");
  RetiredFds retired;
  retired.note("shared-");
  (void)close(old);
  const int taken = make("taken");
  ASSERT_EQ(taken, old);
  retired.hold();
  EXPECT_EQ(ftruncate(taken, 100), 0);
  (void)close(taken);
}

}  // namespace
}  // namespace warpcache::io
