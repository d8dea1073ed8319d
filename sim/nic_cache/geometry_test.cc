// SPDX-License-Identifier: Apache-2.0
#include "nic_cache/geometry.h"

#include <gtest/gtest.h>

namespace warpcache::nic {
namespace {

Geometry shape(uint32_t rows, uint32_t ways, uint32_t tag_bits, Replacement replacement) {
  Geometry geometry;
  geometry.rows = rows;
  geometry.ways = ways;
  geometry.tag_bits = tag_bits;
  geometry.replacement = replacement;
  return geometry;
}

TEST(Geometry, ThePapersTableHas19BitsAnEntryAnd128MiB) {
  const Geometry paper;
  EXPECT_EQ(paper.dram_bytes(), 128u << 20);
  EXPECT_EQ(row_bits(paper), 8u * (17 + 1 + 1));
  EXPECT_EQ(block_memory_bits(paper), uint64_t{8 * 19} << 15);
}

TEST(Geometry, RowBitsOfEachReplacement) {
  EXPECT_EQ(row_bits(shape(4, 4, 3, Replacement::kFifo)), 16u + 2);      // the next way
  EXPECT_EQ(row_bits(shape(4, 4, 3, Replacement::kLru)), 16u + 5);       // 24 orders
  EXPECT_EQ(row_bits(shape(4, 8, 3, Replacement::kLru)), 32u + 16);      // 40320 orders
  EXPECT_EQ(row_bits(shape(4, 4, 3, Replacement::kLfu)), 16u + 32 + 5);  // and counters
  EXPECT_EQ(row_bits(shape(4, 4, 3, Replacement::kTreePlru)), 16u + 3);
  EXPECT_EQ(row_bits(shape(4, 4, 3, Replacement::kBitPlru)), 16u + 4);
}

TEST(Geometry, ASingleWayWithoutTagIsOneValidBit) {
  EXPECT_EQ(row_bits(shape(4, 1, 0, Replacement::kBitPlru)), 1u);
}

TEST(Geometry, BlocksNeedPointers) {
  Geometry geometry = shape(4, 4, 3, Replacement::kBitPlru);
  geometry.storage = Storage::kBlocks;
  geometry.slot_bytes = 64;
  geometry.block_bytes = 64;  // 16 blocks: numbers 0 to 16, 16 for none, in 5 bits
  EXPECT_EQ(row_bits(geometry), 20u + 4 * 5);
}

// Section 6: the widths that the paper chose are those where the rows double.
TEST(Geometry, NarrowTagsLeaveSpaceForMoreRows) {
  const uint64_t bits = block_memory_bits(Geometry{});
  EXPECT_EQ(rows_within(shape(1, 8, 17, Replacement::kBitPlru), bits), 1u << 15);
  EXPECT_EQ(rows_within(shape(1, 8, 7, Replacement::kBitPlru), bits), 1u << 16);
  EXPECT_EQ(rows_within(shape(1, 8, 2, Replacement::kBitPlru), bits), 1u << 17);
  EXPECT_EQ(rows_within(shape(1, 8, 0, Replacement::kBitPlru), bits), 1u << 18);
  // Fully used: 4 ways and twice the rows, then one way, no tag and no use bit.
  EXPECT_EQ(rows_within(shape(1, 4, 2, Replacement::kBitPlru), bits), 1u << 18);
  EXPECT_EQ(rows_within(shape(1, 1, 0, Replacement::kBitPlru), bits), 1u << 22);
  EXPECT_EQ(rows_within(shape(1, 8, 17, Replacement::kBitPlru), 100), 0u);
}

TEST(Geometry, UnsoundShapesAreNamed) {
  EXPECT_EQ(Geometry{}.fault(), nullptr);
  EXPECT_NE(shape(3, 8, 17, Replacement::kLru).fault(), nullptr);
  EXPECT_NE(shape(4, 64, 17, Replacement::kLru).fault(), nullptr);
  EXPECT_NE(shape(4, 0, 17, Replacement::kLru).fault(), nullptr);
  EXPECT_NE(shape(4, 8, 32, Replacement::kLru).fault(), nullptr);
}

TEST(Geometry, NamesAreReadBack) {
  for (const auto replacement : {Replacement::kFifo, Replacement::kLru, Replacement::kLfu,
                                 Replacement::kTreePlru, Replacement::kBitPlru}) {
    EXPECT_EQ(replacement_of(name(replacement)), replacement);
  }
  EXPECT_FALSE(replacement_of("clock"));
}

}  // namespace
}  // namespace warpcache::nic
