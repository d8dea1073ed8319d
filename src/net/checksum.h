// SPDX-License-Identifier: Apache-2.0
//
// The Internet checksum (RFC 1071): the one's complement sum of 16-bit words. Sums are 64 bits wide
// and of words in host byte order, so parts can be added in any order and no byte is swapped: a sum
// that is stored in host order lies in memory as the network expects it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/hd.h"
#include "base/mem.h"

namespace warpcache::net {

// Adds a number as if it lay in memory in network byte order.
WC_HD inline uint64_t checksum_add16(uint64_t sum, uint16_t value) {
  uint8_t bytes[2];
  store_big16(bytes, value);
  return sum + load_as<uint16_t>(bytes);
}

// The sum as a 16-bit word. Over a range that contains its checksum it is 0xffff if all is intact.
WC_HD inline uint16_t checksum_fold(uint64_t sum) {
  sum = (sum & 0xffffffffu) + (sum >> 32);
  sum = (sum & 0xffff) + ((sum >> 16) & 0xffff) + (sum >> 32);
  sum = (sum & 0xffff) + (sum >> 16);
  return static_cast<uint16_t>((sum & 0xffff) + (sum >> 16));
}

// Adds a range with unaligned loads of 8 bytes: for machines that have them.
WC_HD inline uint64_t checksum_add_unaligned(uint64_t sum, const uint8_t* data, size_t size) {
  for (; size >= 8; data += 8, size -= 8) {
    const auto word = load_as<uint64_t>(data);
    sum += (word & 0xffffffffu) + (word >> 32);
  }
  if (size >= 4) {
    sum += load_as<uint32_t>(data);
    data += 4;
    size -= 4;
  }
  if (size >= 2) {
    sum += load_as<uint16_t>(data);
    data += 2;
    size -= 2;
  }
  if (size == 0) return sum;
  const uint8_t last[2] = {*data, 0};
  return sum + load_as<uint16_t>(last);
}

// Adds a range with aligned loads of 4 bytes: for machines that load unaligned words byte by byte.
// The sum of a range that starts at an odd address has its bytes swapped, and is swapped back.
WC_HD inline uint64_t checksum_add_aligned(uint64_t sum, const uint8_t* data, size_t size) {
  if (size == 0) return sum;
  const bool odd = (reinterpret_cast<uintptr_t>(data) & 1) != 0;
  uint64_t part = 0;
  if (odd) {
    const uint8_t first[2] = {0, *data++};
    part += load_as<uint16_t>(first);
    --size;
  }
  if ((reinterpret_cast<uintptr_t>(data) & 2) != 0 && size >= 2) {
    part += load_aligned<uint16_t>(data);
    data += 2;
    size -= 2;
  }
  for (; size >= 4; data += 4, size -= 4) {
    part += load_aligned<uint32_t>(data);
  }
  if (size >= 2) {
    part += load_aligned<uint16_t>(data);
    data += 2;
    size -= 2;
  }
  if (size != 0) {
    const uint8_t last[2] = {*data, 0};
    part += load_as<uint16_t>(last);
  }
  if (!odd) return sum + part;
  const uint16_t shifted = checksum_fold(part);
  return sum + static_cast<uint16_t>(shifted << 8 | shifted >> 8);
}

// Adds a range. An odd range counts as if a zero byte followed it. REQUIRES: the ranges added
// before have an even total size; all ranges together are below 16 GiB.
WC_HD inline uint64_t checksum_add(uint64_t sum, const uint8_t* data, size_t size) {
#if defined(__CUDA_ARCH__)
  return checksum_add_aligned(sum, data, size);
#else
  return checksum_add_unaligned(sum, data, size);
#endif
}

}  // namespace warpcache::net
