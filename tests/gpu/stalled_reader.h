// SPDX-License-Identifier: Apache-2.0
//
// A batch that looks items up and is then held up for long, beside all that an engine does.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/testing/rig.h"

namespace warpcache::gpu_tests {

class StalledReader {
 public:
  virtual ~StalledReader() = default;

  // Looks the keys up, within an epoch if `guarded`, and holds on to what it finds. Returns how
  // many it has found. Once, as let_go().
  virtual uint32_t hold(const std::vector<std::string>& keys, bool guarded) = 0;

  // The bytes that lie now where the keys' values lay, in the same order; nothing for those that
  // were not found. Leaves the epoch.
  virtual std::vector<std::string> let_go() = 0;
};

// On the host a thread's, on a GPU a kernel's. A rig on a GPU has an engine to spare, whose readers
// are taken. The rig outlives it. Values have at most `value_size_max` bytes.
std::unique_ptr<StalledReader> make_stalled_reader(engine::RigKind kind, engine::Rig& rig,
                                                   uint32_t value_size_max);

}  // namespace warpcache::gpu_tests
