// SPDX-License-Identifier: Apache-2.0
//
// A connection of a client to one server: bytes out, lines and bodies in. Each call ends by its
// deadline. After anything but kOk the channel is of no use any more.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "base/bytes.h"

namespace warpcache::client {

class Channel {
 public:
  using Deadline = std::chrono::steady_clock::time_point;
  enum class Result : uint8_t { kOk, kClosed, kTimeout };

  virtual ~Channel() = default;
  virtual const char* name() const = 0;

  // Sends a head and a body, each of any size.
  virtual Result send(Bytes head, Bytes body, Bytes end, Deadline deadline) = 0;
  // Reads to the next "\r\n", which is left out. Lines are at most kLineMax long.
  virtual Result read_line(std::string* line, Deadline deadline) = 0;
  // Reads exactly `size` bytes; null: to nowhere.
  virtual Result read(uint8_t* data, size_t size, Deadline deadline) = 0;

  // A read of one side (io/ucx/item_slots.h) of a copy of the key's item. False: there is none to
  // be had, so the server must be asked. The value is valid until the next call.
  struct Item {
    const uint8_t* value = nullptr;
    uint32_t value_size = 0;
    uint32_t client_flags = 0;
    uint64_t cas = 0;
  };
  virtual bool read_item(Bytes /*key*/, Item* /*item*/, Deadline /*deadline*/) { return false; }
  // Reports to the server that a key that was not found so is worth a copy.
  virtual void ask_copy(Bytes /*key*/) {}

  static constexpr size_t kLineMax = 4096;
};

// Return the error as text, or "".
std::string connect_tcp(const std::string& host, uint16_t port, Channel::Deadline deadline,
                        std::unique_ptr<Channel>* channel);

std::string connect_unix(const std::string& path, std::unique_ptr<Channel>* channel);

}  // namespace warpcache::client
