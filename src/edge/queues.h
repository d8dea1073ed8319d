// SPDX-License-Identifier: Apache-2.0
//
// The region of the queues on the host: memory of its own or a file, and what submitters and
// consumers do with it. Knows nothing of a GPU.
#pragma once

#include <cstdint>
#include <string>

#include "edge/layout.h"

struct edge_queues {
 public:
  edge_queues() = default;
  ~edge_queues();
  edge_queues(const edge_queues&) = delete;
  edge_queues& operator=(const edge_queues&) = delete;

  // Makes a region, or opens the one of a file; `path` may be empty. `existed`: the file held a
  // region of this size.
  edge_status create(const std::string& path, uint64_t bytes, bool* existed);
  edge_status attach(const std::string& path);

  uint8_t* data() const { return data_; }
  uint64_t bytes() const { return bytes_; }
  warpcache::edge::RegionHeader& header() const {
    return *reinterpret_cast<warpcache::edge::RegionHeader*>(data_);
  }
  // REQUIRES: id < kEventsMax.
  warpcache::edge::EventEntry& event(uint32_t id) const {
    return reinterpret_cast<warpcache::edge::EventEntry*>(data_ +
                                                          warpcache::edge::kTableOffset)[id];
  }
  uint64_t* submission(const warpcache::edge::EventEntry& event, uint32_t position) const {
    return reinterpret_cast<uint64_t*>(data_ + event.submissions +
                                       uint64_t{position & (event.depth - 1)} * event.stride);
  }
  uint64_t* completion(const warpcache::edge::EventEntry& event, uint32_t position) const {
    return reinterpret_cast<uint64_t*>(data_ + event.completions) + (position & (event.depth - 1));
  }

  // An entry that is complete but for its doorbell, which whoever knows `word` and `value` rings by
  // storing one in the other. A second store of it changes nothing, until the event has ended.
  struct Doorbell {
    uint64_t* word = nullptr;
    uint64_t value = 0;

    bool is_rung() const;
  };

  edge_status schedule(uint32_t id, const void* parameters, uint32_t parameter_bytes,
                       uint32_t blocks, uint32_t* number);
  // Like schedule(), but the doorbell is not rung.
  edge_status prepare(uint32_t id, const void* parameters, uint32_t parameter_bytes,
                      uint32_t blocks, Doorbell* doorbell);
  // Changes four bytes of the parameters of an event that was prepared: what the GPU has taken
  // already stays. `word`: their number.
  static void change(const Doorbell& doorbell, uint32_t word, uint32_t value);
  edge_status poll(uint32_t id, uint32_t* number, uint32_t* code);
  edge_status take(uint32_t id, uint32_t number, uint32_t* code);

  // All entries are free, for events from position 0 on.
  void clear(warpcache::edge::EventEntry& queue);
  // No event is in flight: all that were submitted have completed. REQUIRES: `queue` is closed.
  bool idle(const warpcache::edge::EventEntry& queue) const;
  // Gives `code` to all events in flight.
  void complete_all(warpcache::edge::EventEntry& queue, uint32_t code);
  // Likewise to those that the GPU has taken, or may have: it reports that after it has started
  // them. None of them runs again. REQUIRES: the GPU is gone.
  void complete_taken(warpcache::edge::EventEntry& queue, uint32_t code);

 private:
  bool is_open(uint32_t id) const;
  void complete_until(warpcache::edge::EventEntry& queue, uint32_t end, uint32_t code);
  edge_status map(int file, uint64_t bytes);

  uint8_t* data_ = nullptr;
  uint64_t bytes_ = 0;
};
