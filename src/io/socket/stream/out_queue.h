// SPDX-License-Identifier: Apache-2.0
//
// Sends to a stream: as much as the kernel takes at once, and queues the rest.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "io/socket/stream/stream_socket.h"
#include "io/transport.h"

namespace warpcache::io {

struct SendResult {
  uint64_t sent = 0;
  bool failed = false;  // the connection has ended
};

// Sends the spans without their first `skip` bytes; does not block. One system call, unless there
// are more spans than one call takes. With TLS the spans share records, with a system call each.
SendResult send_spans(StreamSocket end, const ReplySpan* spans, uint32_t span_count, uint64_t skip);

// The unsent rest of a reply. Bytes without a pin are copied; pinned ones are sent from the store.
// REQUIRES: drained or dropped before it is destroyed.
class OutQueue {
 public:
  enum class Progress : uint8_t { kDrained, kBlocked, kFailed };

  // Takes over the spans from byte `skip` on, and the pins of all spans that are not completely
  // sent. Null: the system refuses the memory for the copy; nothing is taken over.
  static std::unique_ptr<OutQueue> create(const ReplySpan* spans, uint32_t span_count,
                                          uint64_t skip);
  OutQueue(const OutQueue&) = delete;
  OutQueue& operator=(const OutQueue&) = delete;

  // Bytes that a queue of these spans would copy.
  static uint64_t bytes_to_copy(const ReplySpan* spans, uint32_t span_count, uint64_t skip);

  uint64_t copied_bytes() const { return copied_bytes_; }

  // Whether pinned values are still unsent.
  bool holds_pins() const;

  // Continues to send. Releases the pins of spans that are sent. Adds the sent bytes to `sent`.
  Progress send(StreamSocket end, PinReleaser& releaser, uint64_t& sent);

  // Releases all pins.
  void drop(PinReleaser& releaser);

 private:
  OutQueue(const ReplySpan* spans, uint32_t span_count, uint64_t skip);

  std::vector<ReplySpan> spans_;
  std::unique_ptr<uint8_t[]> copy_;
  uint64_t copied_bytes_ = 0;
  uint32_t first_ = 0;  // the span that is sent next
  uint64_t skip_ = 0;   // bytes of it that are sent
};

}  // namespace warpcache::io
