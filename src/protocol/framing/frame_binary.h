// SPDX-License-Identifier: Apache-2.0
//
// Framing of the binary protocol.
#pragma once

#include "protocol/binary.h"
#include "protocol/framing/framer.h"
#include "protocol/framing/item_size.h"

namespace warpcache::protocol::framing {

// Refuses a message whose header has a fault. The rest of the message is discarded, so that the
// next header is found. (memcached discards extras and key twice here.)
WC_HD inline FrameStep refuse_binary(Framer& framer, const BinaryHeader& header, Status status,
                                     bool closes) {
  framer.emit_status(framer.at(), kBinaryHeaderSize, FrameKind::kInvalidBinary, status);
  framer.pass(kBinaryHeaderSize);
  if (closes) return framer.close();
  framer.swallow(header.body_size);
  return FrameStep::kTaken;
}

// The next message of a binary stream. REQUIRES: !full(), left() > 0.
WC_HD inline FrameStep take_binary(Framer& framer) {
  if (framer.at()[0] != kBinaryRequestMagic) return framer.close();
  if (framer.left() < kBinaryHeaderSize) {
    framer.set_need(kBinaryHeaderSize, false);
    return FrameStep::kMore;
  }
  const BinaryHeader header = load_binary_header(framer.at());
  bool closes = false;
  const Status status = check_binary_header(header, closes);
  if (status != Status::kOk) return refuse_binary(framer, header, status, closes);

  const uint32_t head_size = kBinaryHeaderSize + header.extras_size + header.key_size;
  const uint32_t value_size = header.value_size();
  if (binary_stores(header.opcode)) {
    if (framer.left() < head_size) {
      framer.set_need(head_size, false);
      return FrameStep::kMore;
    }
    const uint8_t* const extras = framer.at() + kBinaryHeaderSize;
    const uint32_t client_flags = header.extras_size != 0 ? load_big32(extras) : 0;
    if (!item_fits(framer.limits(), header.key_size, client_flags, value_size)) {
      framer.emit(framer.at(), head_size, value_size, FrameKind::kRefusedBinary,
                  static_cast<uint8_t>(Status::kTooLarge));
      framer.pass(head_size);
      framer.swallow(value_size);
      return FrameStep::kTaken;
    }
    if (value_size > framer.limits().inline_body_max) {
      return framer.stop_at_large(head_size, value_size, FrameKind::kBinary);
    }
  }
  const uint64_t size = uint64_t{head_size} + value_size;
  if (framer.left() < size) {
    framer.set_need(size, binary_stores(header.opcode));
    return FrameStep::kMore;
  }
  framer.emit(framer.at(), head_size, value_size, FrameKind::kBinary, 0);
  framer.pass(size);
  const bool quits = header.opcode == kOpQuit || header.opcode == kOpQuitQ;
  return quits ? framer.close() : FrameStep::kTaken;
}

}  // namespace warpcache::protocol::framing
