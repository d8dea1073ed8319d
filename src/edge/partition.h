// SPDX-License-Identifier: Apache-2.0
//
// Multiprocessors that belong to one stream: green contexts of CUDA 12.4 and later.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <memory>
#include <string>

namespace warpcache::edge {

class Partition {
 public:
  // Cuts the multiprocessors of the thread's device in two. The driver may give more than
  // `multiprocessors`. Returns the error as text, or "".
  static std::string create(uint32_t multiprocessors, std::unique_ptr<Partition>* partition);
  virtual ~Partition() = default;

  // Kernels of these streams run on the multiprocessors asked for, or on all others.
  virtual cudaStream_t own() const = 0;
  virtual cudaStream_t rest() const = 0;
  virtual uint32_t multiprocessors() const = 0;
};

}  // namespace warpcache::edge
