// SPDX-License-Identifier: Apache-2.0
//
// The parsers of the single-key fast path: what they take, framing and parsing must take with the
// same key, value, flags, expiry and lengths, and the replies must be the same. The input is the
// text of one datagram; its last bytes choose the form of the frame. (The target `packet` makes the
// same comparison with frames whose headers are changed too.)
#include <string>

#include "fuzz/frames.h"
#include "fuzz/mutate.h"
#include "fuzz/single_key.h"

namespace {

using namespace warpcache;

constexpr size_t kFormBytes = 6;  // taken from the end of the input

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fuzz::Steering steering(data, size);
  const uint32_t choice = steering.next();
  net::testing::FrameForm form;
  form.checksum = (choice & 1) != 0;
  form.padding = std::string(choice >> 1 & 7, '\n');
  const uint32_t item_size_max = (choice & 0x10) != 0 ? 50 + steering.next() : 1 << 20;
  const uint32_t client_flags = steering.next() << (choice >> 5 & 7) * 4;
  const std::string value((steering.next() << 8 | steering.next()) % 1300, 'v');
  const std::string frame =
      net::testing::frame_of(protocol::testing::kHeader + steering.rest(), form);
  fuzz::check_single_key(frame, client_flags, value, item_size_max);
  return 0;
}

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t size_max,
                                          unsigned int seed) {
  return fuzz::mutate_messages(data, size, size_max, seed, fuzz::split_lines, fuzz::repair_line, 0,
                               kFormBytes);
}
