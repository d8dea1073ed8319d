// SPDX-License-Identifier: Apache-2.0
// Runs a function one machine instruction at a time and keeps the addresses that it went through.
// x86-64 on Linux; one stepper at a time in a process.
#ifndef WARPCACHE_SIM_SIMT_RECORD_STEPPER_H_
#define WARPCACHE_SIM_SIMT_RECORD_STEPPER_H_

#include <cstdint>
#include <vector>

namespace warpcache::simt {

// Keeps addresses from `begin` up to `end`; what lies elsewhere (called functions) is passed over.
// Installs a handler for SIGTRAP for as long as it lives.
class Stepper {
 public:
  Stepper(uintptr_t begin, uintptr_t end);
  ~Stepper();
  Stepper(const Stepper&) = delete;
  Stepper& operator=(const Stepper&) = delete;

  // Calls function(argument) and returns the distances from `begin` of all instructions executed,
  // in order; valid until the next call. Empty: there were more than kStepsMax.
  const std::vector<uint32_t>& run(void (*function)(void*), void* argument);

  static constexpr uint32_t kStepsMax = 1'000'000;
};

}  // namespace warpcache::simt

#endif  // WARPCACHE_SIM_SIMT_RECORD_STEPPER_H_
