// SPDX-License-Identifier: Apache-2.0
//
// Bodies that are received piece by piece. They stay in host memory until their batch is submitted,
// bounded in bytes, since clients may be slow.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <new>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/status.h"

namespace warpcache::engine::cuda {

class IncomingBodies {
 public:
  struct Body {
    std::unique_ptr<uint8_t[]> bytes;
    uint32_t size = 0;
    uint8_t key_size = 0;
  };

  // At most `bytes_max` at a time.
  explicit IncomingBodies(uint64_t bytes_max) : bytes_max_(bytes_max) {
    bodies_.reserve(kBodiesMax);
  }

  // As Engine::reserve(): ids count from 1.
  Status reserve(uint8_t key_size, uint32_t size, uint32_t* id) {
    if (bytes_ + size > bytes_max_) return Status::kDeferred;
    size_t place = 0;
    while (place < bodies_.size() && bodies_[place].bytes != nullptr) ++place;
    if (place == kBodiesMax) return Status::kDeferred;
    std::unique_ptr<uint8_t[]> bytes(new (std::nothrow) uint8_t[size]);
    if (bytes == nullptr) return Status::kOutOfMemory;
    if (place == bodies_.size()) bodies_.emplace_back();
    bodies_[place] = {std::move(bytes), size, key_size};
    bytes_ += size;
    *id = static_cast<uint32_t>(place) + 1;
    return Status::kOk;
  }

  const Body& body(uint32_t id) const { return bodies_[id - 1]; }
  MutableBytes window(uint32_t id, uint32_t offset) {
    Body& body = bodies_[id - 1];
    return {body.bytes.get() + offset, body.size - offset};
  }
  // Does nothing if it is gone already.
  void abandon(uint32_t id) {
    Body& body = bodies_[id - 1];
    if (body.bytes == nullptr) return;
    bytes_ -= body.size;
    body = {};
  }

 private:
  static constexpr size_t kBodiesMax = 1024;

  uint64_t bytes_max_;
  uint64_t bytes_ = 0;
  std::vector<Body> bodies_;
};

}  // namespace warpcache::engine::cuda
