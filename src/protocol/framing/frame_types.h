// SPDX-License-Identifier: Apache-2.0
//
// What framing says about a message, and what it remembers of a stream. See frame.h.
#pragma once

#include <cstdint>
#include <type_traits>

#include "base/bytes.h"
#include "base/hd.h"
#include "base/status.h"

namespace warpcache::protocol {

enum class Verdict : uint8_t {
  kTextLine,   // head: a line that has no body. It may still be malformed: parse() says so
  kTextStore,  // head: the line; body: the value (its CRLF has been checked)
  kTextKey,    // head: one key of get, gets, gat, gats; one Frame a key. `detail` is TextKeyBit;
               // body_size holds
               //   the exptime (int32) of gat, gats
  kMetaLine,   // head: the line of mg, md, ma, mn, me
  kMetaStore,  // ms: as kTextStore
  kBinary,     // head: header, extras and key; body: the value
  kInvalid,    // text: `detail` is the Status to answer; no head
  kInvalidBinary,  // `detail` is the Status to answer; head: the header
  kRefusedStore,   // text and ms: a storage command that cannot be taken, `detail` (a Status) says
                   // why. head as for
                   //   kTextStore; the body is swallowed
  kRefusedBinary,  // the same for binary: header, extras and key
};

enum TextKeyBit : uint8_t {
  kKeyOfGets = 1u << 0,  // cas wanted
  kKeyOfGat = 1u << 1,   // exptime in body_size
  kKeyLast = 1u << 2,    // END follows this key's reply
};

// The head starts at `offset`; the body, where there is one, at offset + head_size, always.
struct Frame {
  uint32_t offset;     // of the head, from the batch's input base
  uint32_t body_size;  // bytes, without the CRLF behind a text body; 0 where there is none
  uint16_t head_size;  // bytes; of a line: with its line end (LF or CRLF)
  Verdict verdict;
  uint8_t detail;
  uint32_t entry;  // index of the batch entry (connection or datagram) it belongs to
};
static_assert(sizeof(Frame) == 16 && std::is_trivially_copyable_v<Frame>);

// A line of anything but the get family, line end included. As memcached, which gives up when it
// has seen more than 2048 bytes of a line and not its end.
inline constexpr uint32_t kLineSizeMax = 2049;

// Shorter lines are malformed, whatever their command: "mn" with a bare LF, too.
inline constexpr uint32_t kLineSizeMin = 4;

// What follows the body of `frame` in the stream: CRLF or nothing.
WC_HD inline uint32_t body_end_size(const Frame& frame) {
  return frame.verdict == Verdict::kTextStore || frame.verdict == Verdict::kMetaStore ? 2 : 0;
}

enum ProtocolChoice : uint8_t { kProtocolAuto = 0, kProtocolText = 1, kProtocolBinary = 2 };

// What a stream remembers between calls. Zero-initialised for a new connection. 32 bytes.
struct FrameState {
  uint64_t swallow;  // bytes still to be thrown away
  int32_t multiget_exptime;
  uint8_t multiget;  // of the get line in progress: TextKeyBit, kInMultiget, kBeforeFirstKey
  uint8_t protocol;  // ProtocolChoice; auto: not known yet
  uint8_t closed;    // nothing more is framed
  uint8_t
      refused;  // the line in progress is refused: the Status to answer at its end; 0: it is not
  uint8_t reserved_[16];
};
static_assert(sizeof(FrameState) == 32);

struct FrameLimits {
  uint32_t item_size_max;  // -I; compared with what memcached would need for the item, see
                           // item_size_as_memcached()
  uint32_t
      inline_body_max;  // bodies above this are not collected in the input but in a Reservation
  bool cas_enabled;     // not -C
  uint8_t protocol;     // -B: ProtocolChoice
};

enum class FrameEnd : uint8_t {
  kNeedMore,   // the rest of the input is an unfinished message; `need` bytes in all finish it as
               // far as is known
  kFull,       // `out` is full: call again
  kLargeBody,  // the next message has a body above inline_body_max. `large` is its Frame; the
               // caller takes a Reservation
               //   for large.body_size bytes, receives the body and body_end_size(large) bytes more
               //   itself, tells frame_large_done() and adds `large` with its Reservation; or calls
               //   frame_refuse_large() and adds it so. The stream goes on behind that
  kClose,  // quit, or out of step, or over a bound: the last Frame, if any, is answered, then the
           // connection
           //   closes. Nothing more is framed on it
};

struct FrameResult {
  uint32_t consumed;  // bytes of the input that the frames cover or that were swallowed
  uint32_t count;     // frames written
  uint32_t need;  // with kNeedMore: the bytes that the unfinished message takes in all, at least
                  // (0: unknown)
  FrameEnd end;
  Frame large;  // with kLargeBody; `consumed` is up to the start of its body
};

}  // namespace warpcache::protocol
