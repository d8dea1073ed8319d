// SPDX-License-Identifier: Apache-2.0
//
// What framing reports of a message, and the state that it keeps for a stream. See frame.h.
#pragma once

#include <cstdint>
#include <type_traits>

#include "base/bytes.h"
#include "base/hd.h"
#include "base/status.h"

namespace warpcache::protocol {

enum class FrameKind : uint8_t {
  kTextLine,       // head: a line that has no body. It may still be malformed: parse() says so
  kTextStore,      // head: the line; body: the value (its CRLF has been checked). `detail`: the
                   // size of the key where the line is "set" with five words, a blank between each
                   // two, and CRLF (usual_lines.h); 0: it may have any form
  kTextKey,        // head: one key of get, gets, gat, gats; one Frame for each key. `detail`:
                   // TextKeyBit; body_size: the exptime (int32) of gat, gats
  kMetaLine,       // head: the line of mg, md, ma, mn, me. `detail`: the size of the key where the
                   // line is "mg", a blank, the key, whatever follows, and CRLF; 0: any form
  kMetaStore,      // ms: as kTextStore. `detail`: the size of the key where the line is "ms" with
                   // three words, a blank between each two, and CRLF; 0: any form
  kBinary,         // head: header, extras and key; body: the value
  kInvalid,        // text: `detail` is the Status to answer; no head
  kInvalidBinary,  // `detail` is the Status to answer; head: the header
  kRefusedStore,   // text and ms: a refused storage command; `detail` is the Status to answer.
                   // head: as for kTextStore; the body is discarded
  kRefusedBinary,  // the same for binary; head: header, extras and key
};

enum TextKeyBit : uint8_t {
  kKeyOfGets = 1u << 0,  // the reply has the CAS id
  kKeyOfGat = 1u << 1,   // exptime in body_size
  kKeyLast = 1u << 2,    // END follows this key's reply
};

// The head starts at `offset`; the body, if there is one, always at offset + head_size.
struct Frame {
  uint32_t offset;     // of the head, from the batch's input base
  uint32_t body_size;  // bytes, without the CRLF after a text body; 0: no body
  uint16_t head_size;  // bytes; a line with its line end (LF or CRLF)
  FrameKind kind;
  uint8_t detail;
  uint32_t entry;  // index of its batch entry (connection or datagram)
};
static_assert(sizeof(Frame) == 16 && std::is_trivially_copyable_v<Frame>);

// The longest line outside the get family, line end included. memcached, too, gives up after more
// than 2048 bytes without a line end.
inline constexpr uint32_t kLineSizeMax = 2049;

// Shorter lines are malformed, whatever their command; so is "mn" with only LF as its line end.
inline constexpr uint32_t kLineSizeMin = 4;

// Bytes that follow the body of `frame` in the stream: 2 for CRLF, or 0.
WC_HD inline uint32_t body_end_size(const Frame& frame) {
  return frame.kind == FrameKind::kTextStore || frame.kind == FrameKind::kMetaStore ? 2 : 0;
}

enum ProtocolChoice : uint8_t { kProtocolAuto = 0, kProtocolText = 1, kProtocolBinary = 2 };

// The state of a stream between calls. Zero-initialised for a new connection. 32 bytes.
struct FrameState {
  uint64_t swallow;  // bytes that are still to be discarded
  int32_t multiget_exptime;
  uint8_t multiget;  // of the get line in progress: TextKeyBit, kInMultiget, kBeforeFirstKey
  uint8_t protocol;  // ProtocolChoice; auto: not known yet
  uint8_t closed;    // nothing more is framed
  uint8_t refused;   // the Status that answers the line in progress at its end; 0: not refused
  uint8_t reserved_[16];
};
static_assert(sizeof(FrameState) == 32);

struct FrameLimits {
  uint32_t item_size_max;    // -I; compared with item_size_as_memcached()
  uint32_t inline_body_max;  // larger bodies are received into a reservation, not into the input
  bool cas_enabled;          // not -C
  uint8_t protocol;          // -B: ProtocolChoice
};

enum class FrameEnd : uint8_t {
  kNeedMore,   // the rest of the input is an unfinished message; see `need`
  kFull,       // `out` is full: call again
  kLargeBody,  // the next message has a body above inline_body_max; `large` is its Frame. The
               // caller reserves large.body_size bytes, receives the body and body_end_size(large)
               // more bytes, calls frame_large_done() and adds `large` with its reservation. Or it
               // calls frame_refuse_large() and adds `large` without one. The stream continues
               // after that
  kClose,  // quit, or a message whose end is not known, or a bound was exceeded: the last Frame,
           // if any, is answered, then the connection closes. Nothing more is framed on it
};

struct FrameResult {
  uint32_t consumed;  // bytes of the input that the frames cover or that were discarded
  uint32_t count;     // frames written
  uint32_t need;      // with kNeedMore: the least size of the unfinished message (0: unknown)
  bool in_value;      // with kNeedMore: the next bytes are of a value
  FrameEnd end;
  Frame large;  // with kLargeBody; `consumed` reaches to the start of its body
};

}  // namespace warpcache::protocol
