// SPDX-License-Identifier: Apache-2.0
//
// The boundaries of keys in get lines, as a device's threads find them: the same that framing and
// parsing find. The input is the payload of one datagram; its last byte chooses where it lies.
#include <cstdio>

#include "base/assert.h"
#include "fuzz/frames.h"
#include "fuzz/mutate.h"
#include "protocol/testing/get_line.h"

namespace {

using namespace warpcache;

constexpr size_t kFormBytes = 1;  // taken from the end of the input

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fuzz::Steering steering(data, size);
  const uint32_t skew = steering.next() % protocol::kGetLineBlock;
  const auto result = protocol::testing::compare_get_line(steering.rest(), skew);
  if (!result.difference.empty()) {
    std::fprintf(stderr, "get line differs: %s\n", result.difference.c_str());
    WC_ASSERT(false);
  }
  return 0;
}

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t size_max,
                                          unsigned int seed) {
  return fuzz::mutate_messages(data, size, size_max, seed, fuzz::split_lines, fuzz::repair_line, 0,
                               kFormBytes);
}
