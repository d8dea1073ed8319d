// SPDX-License-Identifier: Apache-2.0
// Requests from a file: see bench::Trace for the forms that it may have.
#ifndef WARPCACHE_SIM_TRACES_FILE_TRACE_H_
#define WARPCACHE_SIM_TRACES_FILE_TRACE_H_

#include <cstdint>
#include <memory>
#include <string>

#include "traces/trace.h"
#include "workload/trace.h"

namespace warpcache::sim {

// Reads the file whole. Null, and *why, if it cannot be read or a line is no request. A key that
// the file gives no value size has `value_size_default` bytes. Keys are numbered as they appear.
std::unique_ptr<bench::Trace> load_file(const std::string& path, uint32_t value_size_default,
                                        std::string* why);

// One pass over a file's requests.
class FileTrace final : public Trace {
 public:
  // `file` outlives this.
  explicit FileTrace(const bench::Trace* file) : file_(file) {}

  size_t read(Request* out, size_t count) override;
  uint64_t length() const override { return file_->entries().size(); }

 private:
  const bench::Trace* file_;
  uint64_t done_ = 0;
};

}  // namespace warpcache::sim

#endif  // WARPCACHE_SIM_TRACES_FILE_TRACE_H_
