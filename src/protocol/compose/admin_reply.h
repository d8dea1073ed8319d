// SPDX-License-Identifier: Apache-2.0
//
// Replies of administrative commands, written piece by piece into a sink: a callable that takes
// Bytes and appends them. Each function writes the protocol of its request, and nothing for a
// noreply or quiet request.
#pragma once

#include "base/bytes.h"
#include "base/hd.h"
#include "protocol/compose/compose.h"
#include "protocol/message.h"

namespace warpcache::protocol {

// A reply without a value: OK, or an error.
template <typename Sink>
WC_HD inline void reply_result(const Request& request, const Result& result, const uint8_t* input,
                               Sink&& sink) {
  uint8_t reply[kMetaDebugMax + kMetaFrameMax + 512];
  WC_ASSERT(reply_bound(request, result) <= sizeof(reply));
  const uint8_t* end = compose_head(request, result, input, reply);
  if (end != reply) sink(Bytes{reply, static_cast<size_t>(end - reply)});
}

template <typename Sink>
WC_HD inline void reply_ok(const Request& request, Sink&& sink) {
  Result result = {};
  result.outcome = Outcome::kOk;
  reply_result(request, result, nullptr, sink);
}

template <typename Sink>
WC_HD inline void reply_error(const Request& request, Status status, Sink&& sink) {
  Result result = {};
  result.outcome = Outcome::kError;
  result.status = status;
  reply_result(request, result, nullptr, sink);
}

// A line of text; `line` has no line end. In the binary protocol: a success with the text as its
// body.
template <typename Sink>
WC_HD inline void reply_line(const Request& request, Bytes line, Sink&& sink) {
  if (request.protocol != Protocol::kBinary) {
    if ((request.bits & kNoReply) != 0) return;
    sink(line);
    const uint8_t crlf[2] = {'\r', '\n'};
    return sink(Bytes{crlf, 2});
  }
  if ((request.bits & kQuiet) != 0) return;
  BinaryReply reply;
  reply.value_size = static_cast<uint32_t>(line.size);
  uint8_t header[kBinaryHeaderSize];
  put_binary_header(request.binary_opcode, request.opaque, reply, header);
  sink(Bytes{header, kBinaryHeaderSize});
  sink(line);
}

// The server's part of a SASL exchange that goes on.
template <typename Sink>
WC_HD inline void reply_challenge(const Request& request, Bytes challenge, Sink&& sink) {
  BinaryReply reply;
  reply.status = kBinaryAuthContinue;
  reply.value_size = static_cast<uint32_t>(challenge.size);
  uint8_t header[kBinaryHeaderSize];
  put_binary_header(request.binary_opcode, request.opaque, reply, header);
  sink(Bytes{header, kBinaryHeaderSize});
  sink(challenge);
}

// One statistic. REQUIRES: name.size <= kKeySizeMax.
template <typename Sink>
WC_HD inline void reply_stat(const Request& request, Bytes name, Bytes value, Sink&& sink) {
  WC_DASSERT(name.size <= kKeySizeMax);
  if (request.protocol == Protocol::kBinary) {
    BinaryReply reply;
    reply.key_size = static_cast<uint16_t>(name.size);
    reply.value_size = static_cast<uint32_t>(value.size);
    uint8_t header[kBinaryHeaderSize];
    put_binary_header(request.binary_opcode, request.opaque, reply, header);
    sink(Bytes{header, kBinaryHeaderSize});
    sink(name);
    return sink(value);
  }
  uint8_t line[8 + kKeySizeMax];
  uint8_t* end = put(put(line, "STAT "), name);
  *end++ = ' ';
  sink(Bytes{line, static_cast<size_t>(end - line)});
  sink(value);
  put_crlf(line);
  sink(Bytes{line, 2});
}

// Ends a list of statistics: END, or in the binary protocol a packet without a name.
template <typename Sink>
WC_HD inline void reply_stats_end(const Request& request, Sink&& sink) {
  uint8_t end[kBinaryHeaderSize];
  if (request.protocol == Protocol::kBinary) {
    put_binary_header(request.binary_opcode, request.opaque, BinaryReply{}, end);
    return sink(Bytes{end, kBinaryHeaderSize});
  }
  put(end, "END\r\n");
  sink(Bytes{end, 5});
}

}  // namespace warpcache::protocol
