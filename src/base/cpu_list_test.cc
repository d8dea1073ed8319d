// SPDX-License-Identifier: Apache-2.0
#include "base/cpu_list.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>

#include <thread>

namespace warpcache {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(CpuListTest, ReadsNumbersAndRanges) {
  EXPECT_THAT(read_cpu_list("3"), ElementsAre(3));
  EXPECT_THAT(read_cpu_list("0,4-6,2"), ElementsAre(0, 4, 5, 6, 2));
  EXPECT_THAT(read_cpu_list("7-7"), ElementsAre(7));
}

TEST(CpuListTest, RefusesWhatIsNoList) {
  for (const char* text : {"", ",", "1,", "a", "1-", "-1", "3-1", "1 2", "1024", "0-99999999999"}) {
    EXPECT_THAT(read_cpu_list(text), IsEmpty()) << text;
  }
}

TEST(CpuListTest, PinsAThread) {
  std::thread([] {
    cpu_set_t allowed;
    CPU_ZERO(&allowed);
    ASSERT_EQ(sched_getaffinity(0, sizeof allowed, &allowed), 0);
    uint32_t last = CPU_SETSIZE - 1;
    while (!CPU_ISSET(last, &allowed)) --last;
    ASSERT_TRUE(pin_thread(last));
    EXPECT_EQ(static_cast<uint32_t>(sched_getcpu()), last);
    EXPECT_THAT(cpus_not_allowed({last}), IsEmpty());
    const uint32_t other = last == 0 ? 1 : last - 1;
    EXPECT_THAT(cpus_not_allowed({last, other}), ElementsAre(other));
  }).join();
}

}  // namespace
}  // namespace warpcache
