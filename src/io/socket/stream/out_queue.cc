// SPDX-License-Identifier: Apache-2.0
#include "io/socket/stream/out_queue.h"

#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>

#include "base/assert.h"

namespace warpcache::io {
namespace {

constexpr uint32_t kPiecesPerCall = 256;

ssize_t send_pieces(int fd, const iovec* pieces, uint32_t count, bool more) {
  const int flags = MSG_DONTWAIT | MSG_NOSIGNAL | (more ? MSG_MORE : 0);
  if (count == 1) return ::send(fd, pieces[0].iov_base, pieces[0].iov_len, flags);
  msghdr message{};
  message.msg_iov = const_cast<iovec*>(pieces);
  message.msg_iovlen = count;
  return sendmsg(fd, &message, flags);
}

// Whether the error of a send means that the connection has ended.
bool has_ended(int error) {
  return error != EAGAIN && error != EWOULDBLOCK && error != EINTR && error != ENOBUFS &&
         error != ENOMEM;
}

// Gathers spans in records of the largest size. A span that fills one is not copied. The cut
// depends on the unsent bytes only, as TlsStream::send() asks for.
SendResult send_records(TlsStream& tls, const ReplySpan* spans, uint32_t span_count,
                        uint64_t skip) {
  SendResult result;
  uint32_t next = 0;
  while (next < span_count && skip >= spans[next].size) skip -= spans[next++].size;
  uint8_t record[kTlsRecordBytes];
  while (next < span_count) {
    const uint8_t* bytes = spans[next].data + skip;
    size_t size = spans[next].size - skip;
    if (size < kTlsRecordBytes && next + 1 < span_count) {
      std::memcpy(record, bytes, size);
      for (uint32_t i = next + 1; i < span_count && size < kTlsRecordBytes; ++i) {
        const size_t part = std::min<size_t>(spans[i].size, kTlsRecordBytes - size);
        std::memcpy(record + size, spans[i].data, part);
        size += part;
      }
      bytes = record;
    }
    const ssize_t sent = tls.send(bytes, std::min(size, kTlsRecordBytes));
    if (sent < 0) {
      result.failed = has_ended(errno);
      return result;
    }
    result.sent += static_cast<uint64_t>(sent);
    skip += static_cast<uint64_t>(sent);
    while (next < span_count && skip >= spans[next].size) skip -= spans[next++].size;
  }
  return result;
}

}  // namespace

SendResult send_spans(StreamSocket end, const ReplySpan* spans, uint32_t span_count,
                      uint64_t skip) {
  if (WC_UNLIKELY(end.tls != nullptr) && !end.tls->kernel_encrypts()) {
    return send_records(*end.tls, spans, span_count, skip);
  }
  SendResult result;
  uint32_t next = 0;
  while (next < span_count) {
    iovec pieces[kPiecesPerCall];
    uint32_t count = 0;
    uint64_t bytes = 0;
    for (; next < span_count && count < kPiecesPerCall; ++next) {
      const uint64_t skipped = std::min<uint64_t>(skip, spans[next].size);
      skip -= skipped;
      if (skipped == spans[next].size) continue;
      pieces[count++] = {const_cast<uint8_t*>(spans[next].data) + skipped,
                         spans[next].size - skipped};
      bytes += spans[next].size - skipped;
    }
    if (count == 0) break;
    const ssize_t sent = send_pieces(end.fd, pieces, count, next < span_count);
    if (sent < 0) {
      result.failed = has_ended(errno);
      return result;
    }
    result.sent += static_cast<uint64_t>(sent);
    if (static_cast<uint64_t>(sent) < bytes) return result;
  }
  return result;
}

uint64_t OutQueue::bytes_to_copy(const ReplySpan* spans, uint32_t span_count, uint64_t skip) {
  uint64_t bytes = 0;
  for (uint32_t i = 0; i < span_count; ++i) {
    const uint64_t skipped = std::min<uint64_t>(skip, spans[i].size);
    skip -= skipped;
    if (!spans[i].pinned()) bytes += spans[i].size - skipped;
  }
  return bytes;
}

std::unique_ptr<OutQueue> OutQueue::create(const ReplySpan* spans, uint32_t span_count,
                                           uint64_t skip) {
  try {
    return std::unique_ptr<OutQueue>(new OutQueue(spans, span_count, skip));
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

OutQueue::OutQueue(const ReplySpan* spans, uint32_t span_count, uint64_t skip)
    : copied_bytes_(bytes_to_copy(spans, span_count, skip)) {
  uint32_t first = 0;
  while (first < span_count && skip >= spans[first].size) skip -= spans[first++].size;
  spans_.reserve(span_count - first);
  copy_ = std::make_unique_for_overwrite<uint8_t[]>(copied_bytes_);
  uint8_t* cursor = copy_.get();
  for (uint32_t i = first; i < span_count; ++i) {
    const auto skipped = static_cast<uint32_t>(skip);
    skip = 0;
    const uint32_t size = spans[i].size - skipped;
    if (size == 0 && !has_pin_to_release(spans[i])) continue;
    if (spans[i].pinned()) {
      spans_.push_back({spans[i].data + skipped, size, spans[i].pin});
    } else {
      std::memcpy(cursor, spans[i].data + skipped, size);
      spans_.push_back({cursor, size, 0});
      cursor += size;
    }
  }
}

bool OutQueue::holds_pins() const {
  return std::any_of(spans_.begin() + first_, spans_.end(), has_pin_to_release);
}

OutQueue::Progress OutQueue::send(StreamSocket end, PinReleaser& releaser, uint64_t& sent) {
  const auto count = static_cast<uint32_t>(spans_.size()) - first_;
  const SendResult result = send_spans(end, spans_.data() + first_, count, skip_);
  sent += result.sent;
  if (result.failed) return Progress::kFailed;
  skip_ += result.sent;
  while (first_ < spans_.size() && skip_ >= spans_[first_].size) {
    skip_ -= spans_[first_].size;
    release_pins(&spans_[first_++], 1, releaser);
  }
  return first_ == spans_.size() ? Progress::kDrained : Progress::kBlocked;
}

void OutQueue::drop(PinReleaser& releaser) {
  release_pins(spans_.data() + first_, static_cast<uint32_t>(spans_.size()) - first_, releaser);
  first_ = static_cast<uint32_t>(spans_.size());
}

}  // namespace warpcache::io
