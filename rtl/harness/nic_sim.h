// SPDX-License-Identifier: Apache-2.0
//
// The NIC cache in simulation, with a model of its memory. What the host does with its frames is
// the caller's.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "ports.h"

class Vnic_cache;

namespace warpcache::rtl {

template <typename Model>
class ModelSim;

// The numbers of its counters beside the core's (CoreCounter).
enum NicCounter : uint32_t {
  kAnswered = 16,
  kForwarded,
  kFilled,
  kFillDead,
  kFlushed,
};

class NicSim {
 public:
  explicit NicSim(const SimConfig& config, uint8_t fill_seconds = 1);
  ~NicSim();
  NicSim(const NicSim&) = delete;
  NicSim& operator=(const NicSim&) = delete;

  // Frames of clients, of the host, to clients and to the host.
  FramePorts& wire();
  FramePorts& host();
  void step();
  // Nothing is under way in it, and none of its inputs waits.
  bool idle() const;
  // Until it has been idle for long; false after `cycles_max` cycles: it hangs.
  bool run_until_idle(uint64_t cycles_max = 2'000'000);
  // A second passes.
  void tick();
  void write_register(uint32_t address, uint32_t value);
  uint32_t read_register(uint32_t address);
  uint32_t counter(uint32_t which) { return read_register(16 + which); }
  uint64_t cycles() const;

 private:
  std::unique_ptr<ModelSim<Vnic_cache>> cache_;
};

}  // namespace warpcache::rtl
