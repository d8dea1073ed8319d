// SPDX-License-Identifier: Apache-2.0
// The named workloads: a kernel, its input from a seed, its launch, and a plain reference that its
// output is compared with.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "edge/launch.h"

namespace warpcache::edge_sim {

struct CaseOptions {
  double scale = 1;   // of the amount of work: blocks, or requests
  uint64_t seed = 1;  // of the input
  // Only the first blocks, without a check of the output; 0: all.
  uint32_t blocks_max = 0;
};

// Memory of a case that a kernel may touch.
struct Buffer {
  void* data;
  uint64_t bytes;
};

class Case {
 public:
  std::string kernel;
  Launch launch;
  std::vector<Buffer> buffers;
  // Compares the output with the reference; an empty string, or what is wrong.
  std::function<std::string()> check;

  // Owned memory, zeroed, with 64 bytes behind it that may be read.
  template <typename T>
  T* allocate(size_t count) {
    auto owner = std::make_shared<std::vector<uint64_t>>((count * sizeof(T) + 64 + 7) / 8);
    T* const data = reinterpret_cast<T*>(owner->data());
    owners_.push_back(owner);
    buffers.push_back({data, count * sizeof(T) + 64});
    return data;
  }
  void keep(std::shared_ptr<void> owner) { owners_.push_back(std::move(owner)); }

 private:
  std::vector<std::shared_ptr<void>> owners_;
};

// What a user may name, and one line about each.
struct CaseName {
  const char* name;
  const char* what;
};
const std::vector<CaseName>& case_names();

// False: `why` says that there is no such case or that its size is out of bounds.
bool make_case(const std::string& name, const CaseOptions& options, Case* out, std::string* why);

}  // namespace warpcache::edge_sim
