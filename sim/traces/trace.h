// SPDX-License-Identifier: Apache-2.0
// What every simulator is fed: a stream of requests.
#ifndef WARPCACHE_SIM_TRACES_TRACE_H_
#define WARPCACHE_SIM_TRACES_TRACE_H_

#include <cstddef>
#include <cstdint>

#include "workload/operation.h"

namespace warpcache::sim {

using bench::Operation;

struct Request {
  uint64_t key;         // its number
  uint32_t value_size;  // bytes; of a get: of the value that a set after a miss would store
  uint8_t key_size;     // bytes
  Operation operation;
};
static_assert(sizeof(Request) == 16);

// One pass over a stream. The same settings and seed give the same requests on every machine.
class Trace {
 public:
  virtual ~Trace() = default;
  Trace() = default;
  Trace(const Trace&) = delete;
  Trace& operator=(const Trace&) = delete;

  // Writes the next requests, at most `count`, to `out`. Returns how many; 0 at the end.
  // REQUIRES: count > 0.
  virtual size_t read(Request* out, size_t count) = 0;

  // How many requests all reads together give.
  virtual uint64_t length() const = 0;
};

}  // namespace warpcache::sim

#endif  // WARPCACHE_SIM_TRACES_TRACE_H_
