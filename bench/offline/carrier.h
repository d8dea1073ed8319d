// SPDX-License-Identifier: Apache-2.0
//
// What brings the frames of batches to where the engine reads them, and takes the replies away:
// the stand-in for a network card. Both run beside the engine's work.
#pragma once

#include <cstdint>

namespace warpcache::offline {

class Carrier {
 public:
  virtual ~Carrier() = default;

  // Begins to move the frames of the batch at `place`, or its replies. The numbers are bytes: where
  // they begin in the memory of all frames (all replies), and how many they are. REQUIRES: what was
  // begun at this place before is done.
  virtual void bring(uint32_t place, uint64_t offset, uint64_t bytes) = 0;
  virtual void take_away(uint32_t place, uint64_t offset, uint64_t bytes) = 0;
  // Whether what was begun at this place has ended.
  virtual bool is_done(uint32_t place) = 0;
};

}  // namespace warpcache::offline
