// SPDX-License-Identifier: Apache-2.0
//
// The client's side of memcached's binary protocol: packets of requests and of replies.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "client/codec/text.h"

namespace warpcache::client {

inline constexpr size_t kBinaryHeaderSize = 24;
inline constexpr uint8_t kBinaryRequest = 0x80;
inline constexpr uint8_t kBinaryReply = 0x81;

enum BinaryStatus : uint16_t {
  kBinaryOk = 0x00,
  kBinaryNotFound = 0x01,
  kBinaryExists = 0x02,
  kBinaryNotStored = 0x05,
  kBinaryNonNumeric = 0x06,
  kBinaryNoMemory = 0x82,
};

struct BinaryHeader {
  uint8_t magic = kBinaryRequest;
  uint8_t opcode = 0;
  uint16_t key_size = 0;
  uint8_t extras_size = 0;
  uint16_t status = 0;     // of a reply; requests have the vbucket here
  uint32_t body_size = 0;  // extras, key and value
  uint32_t opaque = 0;
  uint64_t cas = 0;
};

// Numbers in network byte order, of `size` bytes.
void append_big(uint64_t number, size_t size, std::string* out);
uint64_t big(std::string_view bytes);

void append_header(const BinaryHeader& header, std::string* out);
// REQUIRES: `bytes` has kBinaryHeaderSize bytes.
BinaryHeader read_header(std::string_view bytes);

struct BinaryRequest {
  uint8_t opcode = 0;
  uint32_t opaque = 0;
  uint64_t cas = 0;
  std::string_view extras;
  std::string_view key;
  std::string_view value;
};

void append_request(const BinaryRequest& request, std::string* out);

// A packet of a reply. Points into the input.
struct BinaryPacket {
  BinaryHeader header;
  std::string_view extras;
  std::string_view key;
  std::string_view value;
};

// Takes the next packet of replies from the front of `in`. kBad: it starts with something else, or
// its sizes do not fit.
Taken take_reply(std::string_view* in, BinaryPacket* packet);

}  // namespace warpcache::client
