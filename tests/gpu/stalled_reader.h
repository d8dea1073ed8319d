// SPDX-License-Identifier: Apache-2.0
//
// A batch that looks items up and then stalls, while the engines work.
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

  // Looks the keys up, within an epoch if `guarded`, and keeps their addresses. Returns how many it
  // has found. To be called once, like let_go().
  virtual uint32_t hold(const std::vector<std::string>& keys, bool guarded) = 0;

  // The current bytes at the places of the values, in the same order; nothing for keys that were
  // not found. Leaves the epoch.
  virtual std::vector<std::string> let_go() = 0;
};

// A thread on the host, a kernel on a GPU. On a GPU it takes the readers of one engine, so the rig
// needs one more than it runs. The rig outlives the reader. Values have at most `value_size_max`
// bytes.
std::unique_ptr<StalledReader> make_stalled_reader(engine::RigKind kind, engine::Rig& rig,
                                                   uint32_t value_size_max);

}  // namespace warpcache::gpu_tests
