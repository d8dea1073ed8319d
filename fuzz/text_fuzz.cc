// SPDX-License-Identifier: Apache-2.0
//
// Streams of the text protocols.
#include "fuzz/frames.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  warpcache::fuzz::run_stream_target(data, size, warpcache::wire::kProtocolText, "");
  return 0;
}
