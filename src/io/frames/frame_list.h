// SPDX-License-Identifier: Apache-2.0
//
// A list of Ethernet frames in memory, each with the time of its capture.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/assert.h"
#include "base/bytes.h"

namespace warpcache::io {

class FrameList {
 public:
  // Copies `frame`. REQUIRES: it is not a frame of this list.
  void add(Bytes frame, uint64_t time_ns = 0) {
    places_.push_back({bytes_.size(), frame.size, time_ns});
    bytes_.insert(bytes_.end(), frame.data, frame.data + frame.size);
  }

  size_t size() const { return places_.size(); }
  bool empty() const { return places_.empty(); }

  // The result is valid until the next add(). REQUIRES: i < size().
  Bytes operator[](size_t i) const {
    WC_DASSERT(i < places_.size());
    return {bytes_.data() + places_[i].offset, places_[i].size};
  }
  uint64_t time_ns(size_t i) const { return places_[i].time_ns; }

  void clear() {
    places_.clear();
    bytes_.clear();
  }

 private:
  struct Place {
    size_t offset;
    size_t size;
    uint64_t time_ns;
  };

  std::vector<uint8_t> bytes_;
  std::vector<Place> places_;
};

}  // namespace warpcache::io
