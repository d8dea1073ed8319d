// SPDX-License-Identifier: Apache-2.0
//
// Requests as Ethernet frames, and the replies that they must get. Everything follows from the
// number of a request, so nothing is stored besides the frames.
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

// Keys of one size, and their share of all keys.
struct KeySize {
  uint32_t bytes;
  double weight;
};

struct WorkloadConfig {
  uint32_t keys = 1'000'000;         // stored before the measurement
  uint32_t key_size = 16;            // bytes, 8 to 250
  std::vector<KeySize> key_mixture;  // instead of key_size; empty: all keys have that
  uint32_t value_size = 2;           // bytes; above kSetValueMax there are no sets
  // Sizes of keys and values as in Facebook's ETC pool (bench/workload/sizes.h), instead of those
  // above; values are cut at kSetValueMax.
  bool etc = false;
  double theta = 0;       // of Zipf; 0: uniform
  double hit_ratio = 1;   // of gets
  uint32_t multiget = 1;  // keys of a get
  double set_share = 0;   // of requests
  bool ping = false;      // only `mn`: headers, without the store
  bool udp_checksum = false;
  uint64_t seed = 1;
};

// Memory of a store, in bytes: twice what items, index and the leftovers of values stored in pieces
// take, so that nothing is evicted.
uint64_t memory_for(const WorkloadConfig& workload);
// See BackendConfig: the index has ways for all keys from the start, as an operator who knows their
// number would configure.
uint32_t hash_power_for(const WorkloadConfig& workload);

class Workload {
 public:
  static constexpr uint16_t kPort = 11211;
  static constexpr uint32_t kValueSizeMax = 16 * 1024;  // bytes
  static constexpr uint32_t kSetValueMax = 1024;        // a request is one datagram
  static constexpr uint32_t kDatagramMax = 1392;        // text of a reply in each of its frames

  explicit Workload(const WorkloadConfig& config);

  const WorkloadConfig& config() const { return config_; }

  // The largest frame and the largest reply, in slots of 16 bytes.
  uint32_t request_slot() const { return request_slot_; }
  uint32_t reply_slot() const { return reply_slot_; }

  // Writes the frame of request `number`; returns its size. REQUIRES: request_slot() bytes at
  // `out`.
  uint32_t write_request(uint64_t number, uint8_t* out) const;
  // Writes a frame that stores key `id` before the measurement: a set with the first piece of its
  // value, or an append with another piece. REQUIRES: fill_slot() bytes at `out`.
  uint32_t write_fill(uint32_t id, uint32_t piece, uint8_t* out) const;
  uint32_t fill_slot() const { return fill_slot_; }
  uint32_t fill_pieces() const;

  bool is_set(uint64_t number) const;
  // Bytes of the first key of request `number`.
  uint32_t key_size(uint64_t number) const { return key_size_of(key(number, 0).id); }

  // `frame_of(datagram)` returns the whole and correct answer to request `number`, with the right
  // number of frames: every byte is compared, and the checksums, which are computed here in another
  // way than by the server.
  template <typename FrameOf>
  bool is_right(uint64_t number, const FrameOf& frame_of) const {
    return carry(answer_to(number), number, frame_of);
  }
  template <typename FrameOf>
  bool is_stored(uint32_t id, const FrameOf& frame_of) const {
    return carry("STORED\r\n", id, frame_of);
  }
  // The number of a frame in its answer.
  static uint32_t sequence_of(Bytes frame);

 private:
  struct Request {
    uint32_t id;
    bool set;
  };

  Request draw(uint64_t number) const;
  // Key `index` of request `number`; a set has one.
  Request key(uint64_t number, uint32_t index) const {
    return draw(number * config_.multiget + index);
  }
  std::string message_of(uint64_t number) const;
  std::string answer_to(uint64_t number) const;
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
  std::vector<Sizes> etc_;  // by key; empty: without ETC
  uint32_t request_slot_ = 0;
  uint32_t reply_slot_ = 0;
  uint32_t fill_slot_ = 0;
};

}  // namespace warpcache::offline
