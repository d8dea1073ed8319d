// SPDX-License-Identifier: Apache-2.0
//
// Which of a thread's streams hold an unfinished body and have made no progress for the longest
// time: their bodies are cancelled first where another client's finds no space.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace warpcache::io {

// While the store has no space for other bodies, a body without a new byte for longer than this may
// be cancelled.
inline constexpr uint32_t kStillBodyS = 1;
// The most bodies that a thread cancels in a second.
inline constexpr uint32_t kBodiesCancelledMax = 16;

// The first ones by time without progress, in that order.
class Stillest {
 public:
  // `stream`: its number in the transport. `still_s`: seconds without progress.
  void add(uint32_t stream, uint32_t still_s) {
    if (count_ == found_.size() && found_.back().still_s >= still_s) return;
    if (count_ < found_.size()) ++count_;
    size_t at = count_ - 1;
    for (; at > 0 && found_[at - 1].still_s < still_s; --at) found_[at] = found_[at - 1];
    found_[at] = {stream, still_s};
  }
  uint32_t count() const { return count_; }
  uint32_t operator[](uint32_t at) const { return found_[at].stream; }

 private:
  struct Found {
    uint32_t stream;
    uint32_t still_s;
  };
  std::array<Found, kBodiesCancelledMax> found_{};
  uint32_t count_ = 0;
};

}  // namespace warpcache::io
