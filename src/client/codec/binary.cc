// SPDX-License-Identifier: Apache-2.0
#include "client/codec/binary.h"

namespace warpcache::client {

void append_big(uint64_t number, size_t size, std::string* out) {
  for (size_t left = size; left > 0; --left) {
    *out += static_cast<char>(number >> (left - 1) * 8 & 0xff);
  }
}

uint64_t big(std::string_view bytes) {
  uint64_t number = 0;
  for (const char byte : bytes) number = number << 8 | static_cast<uint8_t>(byte);
  return number;
}

void append_header(const BinaryHeader& header, std::string* out) {
  append_big(header.magic, 1, out);
  append_big(header.opcode, 1, out);
  append_big(header.key_size, 2, out);
  append_big(header.extras_size, 1, out);
  append_big(0, 1, out);  // the data type
  append_big(header.status, 2, out);
  append_big(header.body_size, 4, out);
  append_big(header.opaque, 4, out);
  append_big(header.cas, 8, out);
}

BinaryHeader read_header(std::string_view bytes) {
  const auto field = [bytes](size_t at, size_t size) { return big(bytes.substr(at, size)); };
  BinaryHeader header;
  header.magic = static_cast<uint8_t>(field(0, 1));
  header.opcode = static_cast<uint8_t>(field(1, 1));
  header.key_size = static_cast<uint16_t>(field(2, 2));
  header.extras_size = static_cast<uint8_t>(field(4, 1));
  header.status = static_cast<uint16_t>(field(6, 2));
  header.body_size = static_cast<uint32_t>(field(8, 4));
  header.opaque = static_cast<uint32_t>(field(12, 4));
  header.cas = field(16, 8);
  return header;
}

void append_request(const BinaryRequest& request, std::string* out) {
  BinaryHeader header;
  header.opcode = request.opcode;
  header.key_size = static_cast<uint16_t>(request.key.size());
  header.extras_size = static_cast<uint8_t>(request.extras.size());
  header.body_size =
      static_cast<uint32_t>(request.extras.size() + request.key.size() + request.value.size());
  header.opaque = request.opaque;
  header.cas = request.cas;
  append_header(header, out);
  out->append(request.extras).append(request.key).append(request.value);
}

Taken take_reply(std::string_view* in, BinaryPacket* packet) {
  if (!in->empty() && static_cast<uint8_t>(in->front()) != kBinaryReply) return Taken::kBad;
  if (in->size() < kBinaryHeaderSize) return Taken::kPart;
  const BinaryHeader header = read_header(*in);
  const size_t before_value = size_t{header.extras_size} + header.key_size;
  if (before_value > header.body_size) return Taken::kBad;
  if (in->size() < kBinaryHeaderSize + header.body_size) return Taken::kPart;
  std::string_view body = in->substr(kBinaryHeaderSize, header.body_size);
  packet->header = header;
  packet->extras = body.substr(0, header.extras_size);
  packet->key = body.substr(header.extras_size, header.key_size);
  packet->value = body.substr(before_value);
  in->remove_prefix(kBinaryHeaderSize + header.body_size);
  return Taken::kWhole;
}

}  // namespace warpcache::client
