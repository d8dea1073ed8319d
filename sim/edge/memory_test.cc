// SPDX-License-Identifier: Apache-2.0
// Caches and DRAM, by hand.
#include "edge/memory.h"

#include "edge/test_support.h"

namespace warpcache::edge_sim {
namespace {

TEST(TagArray, ReplacesTheLeastRecentlyUsedOfASet) {
  TagArray tags({4 * 128, 128, 2});  // two sets of two
  tags.insert(0), tags.insert(2);    // both in set 0
  EXPECT_NE(tags.find(0), nullptr);
  tags.insert(4);
  EXPECT_NE(tags.find(0), nullptr);
  EXPECT_EQ(tags.find(2), nullptr);
  tags.insert(1);
  EXPECT_NE(tags.find(4), nullptr);
}

TEST(SharedMemory, AMissTakesDramAndTheNextOneHits) {
  const Machine machine = small_machine();
  SharedMemory memory(machine);
  EXPECT_EQ(memory.request(7, 0x1, false, 1000), 1130u);
  EXPECT_EQ(memory.request(7, 0x1, false, 2000), 2030u);
  EXPECT_EQ(memory.request(7, 0x2, false, 3000), 3130u);  // another sector of the line
  EXPECT_EQ(memory.accesses, 3u);
  EXPECT_EQ(memory.misses, 2u);
}

TEST(SharedMemory, DramIsTakenFor32BytesAtATime) {
  Machine machine = small_machine();
  machine.dram_bytes = 4;  // 8 cycles a sector
  SharedMemory memory(machine);
  EXPECT_EQ(memory.request(1, 0xf, false, 0), 4 * 8 + 130u);
  EXPECT_EQ(memory.request(2, 0x1, false, 0), 5 * 8 + 130u);
  EXPECT_EQ(memory.request(3, 0x1, true, 0), 30u);            // nobody waits for a write
  EXPECT_EQ(memory.request(4, 0x1, false, 0), 7 * 8 + 130u);  // but it takes DRAM
}

TEST(L1, HitsMissesAndMerges) {
  const Machine machine = small_machine();
  SharedMemory below(machine);
  L1 l1(machine, &below);
  const uint32_t sectors[] = {0, 1, 4};
  EXPECT_EQ(l1.load({sectors, 2, 0}, false, 100), 230u);  // a line from DRAM
  EXPECT_EQ(l1.load({sectors, 1, 0}, false, 110), 230u);  // under way
  EXPECT_EQ(l1.load({sectors, 1, 0}, false, 300), 310u);  // there
  EXPECT_EQ(l1.load({sectors, 3, 0}, false, 400), 531u);  // the second line, a cycle later
  EXPECT_EQ(l1.load({sectors, 1, 9}, false, 600), 730u);  // a line of another kernel
  EXPECT_EQ(l1.load({sectors, 1, 0}, true, 800), 830u);   // past the L1: the L2 has it
  EXPECT_EQ(l1.counts.requests, 7u);
  EXPECT_EQ(l1.counts.misses, 4u);
  EXPECT_EQ(l1.counts.sectors, 9u);
  EXPECT_EQ(l1.counts.hits, 4u);
}

TEST(L1, AMissWaitsWhileAllAreUnderWay) {
  Machine machine = small_machine();
  machine.misses = 1;
  SharedMemory below(machine);
  L1 l1(machine, &below);
  const uint32_t first = 0, second = 4;
  EXPECT_EQ(l1.load({&first, 1, 0}, false, 0), 130u);
  EXPECT_EQ(l1.load({&second, 1, 0}, false, 1), 260u);
  EXPECT_EQ(l1.free_at(), 130u);
}

TEST(L1, SharedMemoryTakesTheUnitOncePerConflict) {
  const Machine machine = small_machine();
  SharedMemory below(machine);
  L1 l1(machine, &below);
  EXPECT_EQ(l1.shared(1, 10), 16u);
  EXPECT_EQ(l1.shared(3, 20), 28u);
  EXPECT_EQ(l1.free_at(), 23u);
}

}  // namespace
}  // namespace warpcache::edge_sim
