// SPDX-License-Identifier: Apache-2.0
//
// Divides the spans of a reply into datagrams (udp_frame.h), for everything that sends datagrams.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/assert.h"
#include "protocol/framing/udp_frame.h"
#include "protocol/reply_span.h"

namespace warpcache::protocol {

class DatagramCutter {
 public:
  // REQUIRES: `spans` stay valid as long as the cutter is used.
  DatagramCutter(uint16_t request_id, const ReplySpan* spans, uint32_t span_count)
      : request_id_(request_id), span_(spans) {
    for (uint32_t i = 0; i < span_count; ++i) bytes_ += spans[i].size;
    if (fits()) count_ = udp_datagram_count(static_cast<uint32_t>(bytes_));
  }

  // Whether the reply has no bytes.
  bool empty() const { return bytes_ == 0; }
  // Whether the reply fits into the largest number of datagrams.
  bool fits() const { return bytes_ <= kUdpReplyMax; }
  // Datagrams of the reply; 0 if it is empty or does not fit.
  uint32_t count() const { return count_; }
  // UDP payload bytes of all datagrams: memcached's headers included, UDP and IP headers not.
  uint64_t bytes_on_wire() const { return bytes_ + uint64_t{count_} * kUdpHeaderSize; }
  // Whether all datagrams have been made. True from the start if the reply is empty or too long.
  bool done() const { return sequence_ == count_; }

  // Bytes that datagram `number` carries after its header. REQUIRES: number < count().
  uint32_t payload_size(uint32_t number) const {
    return udp_payload_size(static_cast<uint32_t>(bytes_), number);
  }
  // The same of the next datagram. REQUIRES: !done().
  uint32_t next_payload_size() const { return payload_size(sequence_); }

  // Makes the next datagram: writes kUdpHeaderSize bytes to `header` and calls piece(data, size)
  // for each contiguous part of its payload. Returns next_payload_size(). REQUIRES: !done().
  template <typename Piece>
  uint32_t next(uint8_t* header, Piece&& piece) {
    WC_DASSERT(!done());
    const uint32_t payload = next_payload_size();
    compose_udp_header(
        {request_id_, static_cast<uint16_t>(sequence_), static_cast<uint16_t>(count_)}, header);
    for (uint32_t left = payload; left > 0;) {
      const uint32_t bytes = std::min(left, span_->size - span_offset_);
      if (bytes > 0) piece(span_->data + span_offset_, bytes);
      left -= bytes;
      span_offset_ += bytes;
      if (span_offset_ == span_->size && left > 0) {
        ++span_;
        span_offset_ = 0;
      }
    }
    ++sequence_;
    return payload;
  }

 private:
  uint64_t bytes_ = 0;
  uint32_t count_ = 0;
  uint32_t sequence_ = 0;
  uint16_t request_id_;
  const ReplySpan* span_;
  uint32_t span_offset_ = 0;
};

}  // namespace warpcache::protocol
