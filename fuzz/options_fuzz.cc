// SPDX-License-Identifier: Apache-2.0
//
// Command lines: words separated by NUL bytes or line ends.
#include <cstdint>
#include <string>
#include <vector>

#include "base/assert.h"
#include "options/options.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  constexpr size_t kWordsMax = 64;
  std::vector<std::string> words = {"warpcached", ""};
  for (size_t i = 0; i < size && words.size() < kWordsMax; ++i) {
    if (data[i] == 0 || data[i] == '\n') {
      words.emplace_back();
    } else {
      words.back() += static_cast<char>(data[i]);
    }
  }
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  const warpcache::ParseResult result =
      warpcache::parse_options(static_cast<int>(words.size()), arguments.data());
  // Either options, or a text.
  WC_ASSERT(result.options.has_value() != !result.text.empty());
  if (!result.options.has_value()) {
    WC_ASSERT(result.exit_status == 0 || result.exit_status == warpcache::kExitUsage);
    WC_ASSERT(result.text.back() == '\n');
    return 0;
  }
  const warpcache::Options& options = *result.options;
  WC_ASSERT(options.server.threads > 0 && options.server.connections_max > 0);
  WC_ASSERT(options.store.memory_bytes > 0 && options.store.item_size_max_bytes > 0);
  return 0;
}
