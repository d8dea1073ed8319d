// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <sstream>

#include "simt/read_graph.h"
#include "simt/record/listing.h"
#include "simt/record/requests.h"

namespace warpcache::simt {
namespace {

// if (edi == 0) abort(); while (--edi) ; return;
constexpr const char* kListing =
    "0000000000001100 <before>:\n    1100:\tret\n\n"
    "0000000000001110 <f>:\n"
    "    1110:\ttest   %edi,%edi\n"
    "    1112:\tje     1120 <f+0x10>\n"
    "    1114:\tnop\n"
    "    1118:\tsub    $0x1,%edi\n"
    "    111b:\tjne    1118 <f+0x8>\n"
    "    111d:\tret\n"
    "    1120:\tsub    $0x8,%rsp\n"
    "    1124:\tcall   1030 <abort@plt>\n\n"
    "0000000000001130 <behind>:\n    1130:\tret\n";

TEST(Listing, BecomesAGraph) {
  std::istringstream in(kListing);
  Listing listing;
  std::string why;
  ASSERT_TRUE(read_listing(in, "f", &listing, &why)) << why;
  const std::vector<Block>& blocks = listing.graph.blocks;
  ASSERT_EQ(blocks.size(), 5u);
  const auto is = [&](uint32_t b, const char* name, uint32_t instructions,
                      const std::vector<uint32_t>& successors) {
    EXPECT_EQ(blocks[b].name, name);
    EXPECT_EQ(blocks[b].instructions, instructions);
    EXPECT_EQ(blocks[b].successors, successors);
  };
  is(0, "b0", 2, {1, 4});
  is(1, "b4", 1, {2});
  is(2, "b8", 2, {3, 2});
  is(3, "bd", 1, {kExit});
  is(4, "b10", 2, {kExit});
  Graph again;
  ASSERT_TRUE(read_graph(to_dot(listing.graph), &again, &why)) << why;
  EXPECT_EQ(again.blocks.size(), blocks.size());
  EXPECT_EQ(again.blocks[2].instructions, 2u);
  std::vector<uint32_t> walk;
  ASSERT_TRUE(blocks_of(listing, {0, 2, 4, 8, 11, 8, 11, 13}, &walk));
  EXPECT_EQ(walk, (std::vector<uint32_t>{0, 1, 2, 2, 3}));
  EXPECT_FALSE(blocks_of(listing, {8, 11}, &walk));
}

TEST(Listing, RefusesWhatItCannotFollow) {
  std::istringstream in("0 <f>:\n 0:\tjmp    *%rax\n");
  Listing listing;
  std::string why;
  EXPECT_FALSE(read_listing(in, "f", &listing, &why));
  EXPECT_EQ(why, "a jump through a register:  0:\tjmp    *%rax");
  std::istringstream other(kListing);
  EXPECT_FALSE(read_listing(other, "g", &listing, &why));
  EXPECT_EQ(why, "the listing has no function g");
}

TEST(Requests, FollowTheMixture) {
  Workload workload;
  std::string why;
  ASSERT_TRUE(parse_lengths("16:3,64:1", &workload.lengths, &why)) << why;
  workload.hit_ratio = 0.8;
  workload.set_share = 0.5;
  std::map<std::string, uint32_t> seen;
  for (uint64_t i = 0; i < 20'000; ++i) {
    const Request one = request(workload, i);
    ++seen[one.thread_class];
    const std::string key = one.text.substr(4, one.text.find_first_of(" \r", 4) - 4);
    EXPECT_EQ(std::to_string(key.size()), one.thread_class.substr(0, 2));
    EXPECT_EQ(one.text, request(workload, i).text);
  }
  EXPECT_NEAR(seen["16h"] / 20'000.0, 0.75 * 0.5 * 0.8, 0.015);
  EXPECT_NEAR(seen["64m"] / 20'000.0, 0.25 * 0.5 * 0.2, 0.01);
  EXPECT_NEAR(seen["16s"] / 20'000.0, 0.75 * 0.5, 0.015);
  for (const char* bad : {"", "16", "16:0", "7:1", "251:1", "16:1,", "x:1"}) {
    EXPECT_FALSE(parse_lengths(bad, &workload.lengths, &why)) << bad;
  }
}

}  // namespace
}  // namespace warpcache::simt
