// SPDX-License-Identifier: Apache-2.0
//
// Streams of the binary protocol.
#include "fuzz/frames.h"
#include "fuzz/mutate.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  warpcache::fuzz::run_stream_target(data, size, warpcache::protocol::kProtocolBinary, "");
  return 0;
}

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t size_max,
                                          unsigned int seed) {
  using namespace warpcache::fuzz;
  return mutate_messages(data, size, size_max, seed, split_packets, repair_packet, 0,
                         kSteeringBytes);
}
