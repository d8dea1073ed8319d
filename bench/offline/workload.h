// SPDX-License-Identifier: Apache-2.0
//
// Requests as whole Ethernet frames, and the replies that they must get. Everything is a function
// of a request's number, so that nothing has to be kept beside the frames themselves.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "workload/item_maker.h"
#include "workload/zipf.h"

namespace warpcache::offline {

// Keys of one size, and how many of all they are.
struct KeySize {
  uint32_t bytes;
  double weight;
};

struct WorkloadConfig {
  uint32_t keys = 1'000'000;         // stored before
  uint32_t key_size = 16;            // bytes, 8 to 250
  std::vector<KeySize> key_mixture;  // instead of key_size; empty: all keys have that
  uint32_t value_size = 2;           // bytes; above kSetValueMax there can be no sets
  // Keys and values as large as those of Facebook's ETC pool (bench/workload/sizes.h), values cut
  // at kSetValueMax; instead of the sizes above.
  bool etc = false;
  double theta = 0;      // of Zipf; 0: uniform
  double hit_ratio = 1;  // of gets
  double set_share = 0;  // of requests
  bool ping = false;     // `mn` alone: headers and nothing of the store
  bool udp_checksum = false;
  uint64_t seed = 1;
};

// Of a store, in bytes: twice what items and index take, and what values that are stored in pieces
// leave behind, so that nothing is evicted.
uint64_t memory_for(const WorkloadConfig& workload);
// See BackendConfig: the index has room for all keys from the start, as who knows their number
// would have it.
uint32_t hash_power_for(const WorkloadConfig& workload);

class Workload {
 public:
  static constexpr uint16_t kPort = 11211;
  static constexpr uint32_t kValueSizeMax = 16 * 1024;  // bytes
  static constexpr uint32_t kSetValueMax = 1024;        // a request is one datagram
  static constexpr uint32_t kDatagramMax = 1392;        // of a reply's text, in each of its frames

  explicit Workload(const WorkloadConfig& config);

  const WorkloadConfig& config() const { return config_; }

  // What a frame and a reply take at most, in slots of 16 bytes.
  uint32_t request_slot() const { return request_slot_; }
  uint32_t reply_slot() const { return reply_slot_; }

  // Writes the frame of request `number`; returns its size. REQUIRES: room for request_slot()
  // bytes.
  uint32_t write_request(uint64_t number, uint8_t* out) const;
  // The same of what stores key `id` beforehand: a set with the first of its value's pieces, an
  // append with each of the others. REQUIRES: room for fill_slot() bytes.
  uint32_t write_fill(uint32_t id, uint32_t piece, uint8_t* out) const;
  uint32_t fill_slot() const { return fill_slot_; }
  uint32_t fill_pieces() const;

  bool is_set(uint64_t number) const;
  // Bytes of the key of request `number`.
  uint32_t key_size(uint64_t number) const { return key_size_of(draw(number).id); }

  // Whether what `frame_of(datagram)` returns is the whole answer to request `number`, in as many
  // frames as it takes and no more: every byte, and the checksums, which are computed here in
  // another way than by the product.
  template <typename FrameOf>
  bool is_right(uint64_t number, const FrameOf& frame_of) const {
    return carry(answer_to(draw(number)), number, frame_of);
  }
  template <typename FrameOf>
  bool is_stored(uint32_t id, const FrameOf& frame_of) const {
    return carry("STORED\r\n", id, frame_of);
  }
  // The number of a reply's frame among those of its answer.
  static uint32_t sequence_of(Bytes frame);

 private:
  struct Request {
    uint32_t id;
    bool set;
  };

  Request draw(uint64_t number) const;
  std::string message_of(Request request) const;
  std::string answer_to(Request request) const;
  std::string store_of(uint32_t id, uint32_t piece) const;
  struct Sizes {
    uint16_t key;
    uint16_t value;
  };

  Sizes sizes_of(uint32_t id) const;
  uint32_t key_size_of(uint32_t id) const { return sizes_of(id).key; }
  Sizes longest() const;
  std::string key_of(uint32_t id) const;
  std::string value_of(uint32_t id) const;
  uint32_t write_frame(const std::string& message, uint64_t number, uint8_t* out) const;
  // A part of a message: `text`, in frame `sequence` of `count`.
  struct Datagram {
    Bytes text;
    uint32_t sequence;
    uint32_t count;
  };
  bool carries(Bytes reply, const Datagram& datagram, uint64_t number) const;
  template <typename FrameOf>
  bool carry(const std::string& message, uint64_t number, const FrameOf& frame_of) const {
    const auto size = static_cast<uint32_t>(message.size());
    const auto* const text = reinterpret_cast<const uint8_t*>(message.data());
    const uint32_t count = (size + kDatagramMax - 1) / kDatagramMax;
    for (uint32_t i = 0; i < count; ++i) {
      const uint32_t begin = i * kDatagramMax;
      const Bytes part = {text + begin, std::min(size - begin, kDatagramMax)};
      if (!carries(frame_of(i), {part, i, count}, number)) return false;
    }
    return frame_of(count).size == 0;
  }

  WorkloadConfig config_;
  bench::ItemMaker items_;
  std::optional<bench::Zipf> zipf_;
  std::vector<Sizes> etc_;  // by key; empty: not ETC's
  uint32_t request_slot_ = 0;
  uint32_t reply_slot_ = 0;
  uint32_t fill_slot_ = 0;
};

}  // namespace warpcache::offline
