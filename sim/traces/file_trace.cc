// SPDX-License-Identifier: Apache-2.0
#include "traces/file_trace.h"

#include <algorithm>
#include <fstream>

namespace warpcache::sim {

std::unique_ptr<bench::Trace> load_file(const std::string& path, uint32_t value_size_default,
                                        std::string* why) {
  std::ifstream in(path);
  if (!in) {
    *why = path + " cannot be opened";
    return nullptr;
  }
  auto file = std::make_unique<bench::Trace>();
  if (bench::Trace::read(&in, value_size_default, file.get(), why)) return file;
  *why = path + ": " + *why;
  return nullptr;
}

size_t FileTrace::read(Request* out, size_t count) {
  const auto now = static_cast<size_t>(std::min<uint64_t>(count, length() - done_));
  for (size_t i = 0; i < now; ++i, ++done_) {
    const bench::Trace::Entry& entry = file_->entries()[done_];
    out[i] = {entry.id, file_->value_size(entry.id),
              static_cast<uint8_t>(file_->key_size(entry.id)), entry.operation};
  }
  return now;
}

}  // namespace warpcache::sim
