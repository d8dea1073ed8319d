// SPDX-License-Identifier: Apache-2.0
//
// Sending to a stream: as much as the kernel takes at once, and a queue for the rest.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "io/transport.h"

namespace warpcache::io {

struct SendResult {
  uint64_t sent = 0;
  bool failed = false;  // the connection is gone
};

// Sends the spans, leaving out their first `skip` bytes, without waiting. One system call unless
// there are more pieces than one takes.
SendResult send_spans(int fd, const TxSpan* spans, uint32_t span_count, uint64_t skip);

// The unsent rest of a reply. Bytes without a pin are copied; pinned ones stay where they are.
// REQUIRES: drained or dropped before it goes away.
class OutQueue {
 public:
  enum class Progress : uint8_t { kDrained, kBlocked, kFailed };

  // Takes the spans from byte `skip` on, and the pins of spans that are not sent whole. Null, and
  // nothing is taken: the system refuses the memory for the copy.
  static std::unique_ptr<OutQueue> create(const TxSpan* spans, uint32_t span_count, uint64_t skip);
  OutQueue(const OutQueue&) = delete;
  OutQueue& operator=(const OutQueue&) = delete;

  // Bytes that a queue of these spans would have to copy.
  static uint64_t bytes_to_copy(const TxSpan* spans, uint32_t span_count, uint64_t skip);

  uint64_t copied_bytes() const { return copied_bytes_; }

  // Whether values that it sends from where they lie are still unsent.
  bool holds_pins() const;

  // Sends on. Pins of spans that have left are given back. `sent` grows by the bytes that left.
  Progress send(int fd, PinReleaser& releaser, uint64_t& sent);

  // Gives all pins back.
  void drop(PinReleaser& releaser);

 private:
  OutQueue(const TxSpan* spans, uint32_t span_count, uint64_t skip);

  std::vector<TxSpan> spans_;
  std::unique_ptr<uint8_t[]> copy_;
  uint64_t copied_bytes_ = 0;
  uint32_t first_ = 0;  // span that is sent next
  uint64_t skip_ = 0;   // bytes of it that have left
};

}  // namespace warpcache::io
