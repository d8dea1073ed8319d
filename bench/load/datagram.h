// SPDX-License-Identifier: Apache-2.0
// memcached's requests and replies by UDP: the header of each datagram, and what is known of a
// request until its reply is complete.
#ifndef WARPCACHE_BENCH_LOAD_DATAGRAM_H_
#define WARPCACHE_BENCH_LOAD_DATAGRAM_H_

#include <cstdint>
#include <string_view>

#include "base/mem.h"
#include "load/buffer.h"

namespace warpcache::load {

struct DatagramHeader {
  static constexpr size_t kSize = 8;

  uint16_t id;
  uint16_t piece;
  uint16_t pieces;

  // REQUIRES: `at` has kSize bytes.
  static DatagramHeader read(const char* at) { return {word(at), word(at + 2), word(at + 4)}; }
  // Writes the header of a request.
  static void write(uint16_t id, char* at) {
    std::memcpy(at, "\0\0\0\0\0\1\0", kSize);
    store_big16(reinterpret_cast<uint8_t*>(at), id);
  }

 private:
  static uint16_t word(const char* at) {
    return static_cast<uint16_t>(static_cast<uint8_t>(at[0]) << 8 | static_cast<uint8_t>(at[1]));
  }
};

// A place for a request that is not answered yet. Its ids have the same lower bits, which find it.
struct DatagramPlace {
  uint16_t id = 0;
  uint16_t next_piece = 0;  // of a reply in several datagrams
  bool used = false;
  bool has_rest = false;  // the start of a value that ends in a later datagram, in a buffer

  void use(uint16_t next_id) {
    id = next_id;
    used = true;
    next_piece = 0;
    has_rest = false;
  }
  // Whether the datagram is the next of this request's reply. One out of order makes the reply
  // unreadable; it counts as lost.
  bool takes(const DatagramHeader& header) {
    if (!used || id != header.id || header.piece != next_piece) return false;
    if (header.pieces != 1) {
      next_piece = header.piece + 1 < header.pieces ? static_cast<uint16_t>(header.piece + 1) : 0;
    }
    return true;
  }
  // The bytes of the reply that are not read yet, with those of its latest datagram. `rest` is the
  // place's buffer.
  std::string_view join(std::string_view latest, Buffer* rest) const {
    if (!has_rest) return latest;
    rest->append(latest);
    return rest->view();
  }
  // Bytes of join() are left for a later datagram.
  void keep(std::string_view left, Buffer* rest) {
    rest->assign(left);
    has_rest = !left.empty();
  }
};

}  // namespace warpcache::load

#endif  // WARPCACHE_BENCH_LOAD_DATAGRAM_H_
