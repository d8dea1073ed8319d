// SPDX-License-Identifier: Apache-2.0
//
// Meta commands. The first byte chooses the command, so that the bytes after it are its flags.
#include "fuzz/frames.h"
#include "fuzz/mutate.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  constexpr const char* kLeads[] = {"mg ", "ms ", "md ", "ma ", "me ", "mn"};
  const std::string lead = kLeads[data[0] % 6];
  warpcache::fuzz::run_stream_target(data + 1, size - 1, warpcache::protocol::kProtocolText, lead);
  return 0;
}

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t size_max,
                                          unsigned int seed) {
  using namespace warpcache::fuzz;
  return mutate_messages(data, size, size_max, seed, split_lines, repair_line, 1, kSteeringBytes);
}
