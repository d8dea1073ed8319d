// SPDX-License-Identifier: Apache-2.0
//
// What may answer reads before the engine: a cache with copies of the store's items.
#pragma once

#include <cstdint>
#include <string>

#include "engine/testing/rig.h"

namespace warpcache::stress {

class Front {
 public:
  virtual ~Front() = default;

  // For the store of the next run.
  virtual store::CopyHooks hooks() = 0;
  // From now on items of this rig's store are copied; until stop().
  virtual void start(engine::Rig& rig) = 0;
  virtual void stop() = 0;

  // It answers sets before the store has them.
  virtual bool writes() const = 0;
  // The store has all that the front has answered before. Called before an engine runs.
  virtual void settle() = 0;

  // The reply to a text command, or "" if the front does not answer it. From any thread.
  virtual std::string ask(const std::string& command) = 0;
  // The number of replies so far, of all runs.
  virtual uint64_t answered() const = 0;
};

}  // namespace warpcache::stress
