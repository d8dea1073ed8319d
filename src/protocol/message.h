// SPDX-License-Identifier: Apache-2.0
//
// One normalised request and one normalised result, whatever the protocol. parse() modules fill a
// Request, the stages of src/request turn it into a Result, compose() modules write the reply. All
// offsets are in bytes from the batch's input base (the arena in which the transport has put what
// it received).
#pragma once

#include <cstdint>
#include <type_traits>

#include "base/bytes.h"
#include "base/status.h"

namespace warpcache::protocol {

inline constexpr uint32_t kKeySizeMax = 250;  // bytes, as it comes over the wire

enum class Protocol : uint8_t { kText, kMeta, kBinary };

enum class Op : uint8_t {
  // On the store.
  kGet,  // get, gets, mg, binary get, getk; with kTouchBit also gat, gats, mg T, binary gat, gatk
  kSet,  // set, cas, ms (mode set), binary set; with kCasCompare the compare-and-swap forms
  kAdd,
  kReplace,
  kAppend,
  kPrepend,
  kDelete,  // delete, md, binary delete
  kIncr,    // incr, ma, binary increment
  kDecr,
  kTouch,  // touch, binary touch
  // Answered without the store.
  kNoop,  // mn, binary noop
  kVersion,
  kQuit,
  // Run by the AdminHandler, alone: they split a batch. `words` below means value_offset and
  // value_size.
  kMetaDebug,      // me: the key, decoded
  kFlushAll,       // exptime: the delay
  kVerbosity,      // delta: the level
  kStats,          // words: what follows the command (text), or the key (binary)
  kCacheMemlimit,  // delta: megabytes
  kShutdown,       // words: what follows the command
  kAdmin,          // words: the whole line (lru, lru_crawler, slabs, watch, debugtime, ...)
  kSasl,           // binary opcodes 0x20 to 0x22; words: the value
  // Not a command: `status` says what is wrong. Still framed, so that the reply stays in order.
  kInvalid,
};

// Bits of Request::bits.
enum RequestBit : uint32_t {
  kQuiet = 1u << 0,       // binary quiet forms and meta q: leave out the uninteresting replies
  kNoReply = 1u << 1,     // text noreply: no reply at all
  kLastKey = 1u << 2,     // text get family: the reply of this key is followed by END
  kReturnCas = 1u << 3,   // gets, gats (binary and meta have their own ways)
  kReturnKey = 1u << 4,   // binary getk, gatk
  kTouchBit = 1u << 5,    // `exptime` is to be set on what is found (gat, gats, binary gat; meta T)
  kCasCompare = 1u << 6,  // cas_compare is given (cas, meta C, binary header cas != 0)
  kCasSet = 1u << 7,      // cas_set is given (meta E)
  kVivify = 1u << 8,      // vivify_exptime is given (meta N, binary incr and decr that may create)
  kRecache = 1u << 9,     // recache_ttl is given (meta R)
  kInvalidate = 1u << 10,   // meta I (ms: store as stale if the CAS is older; md: mark stale)
  kKeyIsBase64 = 1u << 11,  // meta b: the key was base64 on the wire and has been decoded in place
  kNoBump = 1u << 12,  // meta u: the access is not to count for eviction, last access and "fetched"
  kReturnValue = 1u << 13,  // the value is wanted (text and binary get; meta v)
  kDropValue =
      1u << 14,  // md x: an empty item takes the place of what is found; client_flags is its flags
  kReserved = 1u << 15,  // the body is not in the input but in the batch entry's Reservation (set
                         // by the engine)
  kTtlBeforeTouch =
      1u << 16,  // meta t stands before T: Result::ttl is what was left before T took effect
  kAnswersFlags = 1u << 18,  // meta: some flag shows in the reply
  kDropOld =
      1u << 17,  // a refused store (`status` says why) must remove what is stored under its key
};

struct Request {
  uint64_t hash;  // of the key; filled by the decode stage
  uint64_t cas_compare;
  uint64_t cas_set;
  uint64_t delta;    // incr, decr; the number of an administrative command
  uint64_t initial;  // value a vivified counter starts with
  uint32_t key_offset;
  uint32_t value_offset;  // body, without its line end; administrative commands: their words
  uint32_t value_size;
  uint32_t client_flags;
  int32_t exptime;  // as the client gave it: 0 never, negative at once, <= 30 days relative, else
                    // Unix time
  int32_t vivify_exptime;
  int32_t recache_ttl;  // seconds
  uint32_t opaque;  // binary: the header's opaque, in its wire byte order; meta with kKeyIsBase64:
                    // the bytes that the key took on the wire
  uint32_t meta_offset;  // meta: the flags part of the line, walked again by compose (reply order
                         // is request order)
  uint32_t bits;         // RequestBit
  uint16_t meta_size;
  uint8_t key_size;       // after decoding
  uint8_t binary_opcode;  // binary: as it came, quiet forms included
  Op op;
  Protocol protocol;
  Status status;  // kOk unless op is kInvalid or the store was refused (kTooLarge, kOutOfMemory)
  uint8_t reserved_;
};
static_assert(std::is_trivially_copyable_v<Request>);
static_assert(sizeof(Request) == 88);

enum class Outcome : uint8_t {
  kHit,   // a read found the item (or, mg N, made it)
  kMiss,  // nothing there: text nothing/END, meta EN, binary 0x01
  kStored,
  kNotStored,  // add, replace, append, prepend on the wrong presence: NOT_STORED, NS
  kExists,     // CAS mismatch: EXISTS, EX
  kNotFound,   // delete, incr, touch, cas of a missing key: NOT_FOUND, NF
  kDeleted,
  kTouched,
  kNumber,  // incr, decr: `number` is the new value
  kOk,      // OK, HD, binary 0x00
  kVersion,
  kNoop,
  kError,  // `status` says which
};

// Bits of Result::bits (meta replies).
enum ResultBit : uint8_t {
  kWon = 1u << 0,              // W: this client is to recache
  kStale = 1u << 1,            // X
  kAlreadySent = 1u << 2,      // Z: another client has the win token
  kHitBefore = 1u << 3,        // h
  kItemKeyIsBinary = 1u << 4,  // the item was stored with meta b: k shows its key in base64
};

// A value as one piece, or as the first piece of a chain when `chained`.
struct Result {
  Bytes value;   // first piece; the bytes stay valid until the batch ends (or its Pin is released)
  uint64_t cas;  // of the item as it is now; 0 where nothing was stored or changed
  uint64_t number;
  uint32_t value_size;  // of the whole value: what was read, or what a store has made
  uint32_t client_flags;
  int32_t ttl;         // seconds left, -1: never expires
  uint32_t idle;       // seconds since the last access
  uint32_t item_size;  // bytes the item takes in the store, for me
  uint8_t bits;        // ResultBit
  Outcome outcome;
  Status status;
  bool chained;  // the value continues beyond `value` in further segments
};
static_assert(std::is_trivially_copyable_v<Result>);

}  // namespace warpcache::protocol
