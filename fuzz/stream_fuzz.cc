// SPDX-License-Identifier: Apache-2.0
//
// Any bytes on three streams and in datagrams against the model. A line "--" ends a round; the byte
// before a round's bytes chooses the stream.
#include <algorithm>
#include <string>
#include <string_view>

#include "fuzz/mutate.h"
#include "fuzz/play.h"

namespace {

constexpr std::string_view kRoundEnd = "--\n";
constexpr int kStreams = 3;

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace warpcache::model;
  if (size == 0) return 0;
  std::string_view bytes(reinterpret_cast<const char*>(data), size);
  Script script;
  script.cuts = static_cast<uint8_t>(bytes.back());
  bytes.remove_suffix(1);
  if (script.cuts % 4 == 1) script.item_size_max = 200;
  for (uint32_t round = 0; !bytes.empty(); ++round) {
    const size_t end = std::min(bytes.find(kRoundEnd), bytes.size());
    std::string_view said = bytes.substr(0, end);
    bytes.remove_prefix(std::min(end + kRoundEnd.size(), bytes.size()));
    if (said.empty()) continue;
    Step step;
    step.round = round;
    const auto choice = static_cast<uint8_t>(said[0]);
    said.remove_prefix(1);
    if (choice % 8 == 7) {
      step.stream = kClock;
      step.seconds = 1 + choice / 8;
    } else {
      step.stream = choice % 8 == 6 ? kDatagram : 1 + choice % kStreams;
      step.text = escape(said);
    }
    script.steps.push_back(step);
  }
  warpcache::fuzz::play(script);
  return 0;
}

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t size_max,
                                          unsigned int seed) {
  using namespace warpcache::fuzz;
  return mutate_messages(data, size, size_max, seed, split_lines, repair_line, 0, 1);
}
