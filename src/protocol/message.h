// SPDX-License-Identifier: Apache-2.0
//
// The normalised request and result of all protocols. protocol/parse fills a Request, the stages of
// src/request turn it into a Result, protocol/compose writes the reply. Offsets are in bytes from
// the batch's input base: the start of the input arena.
#pragma once

#include <cstdint>
#include <type_traits>

#include "base/bytes.h"
#include "base/status.h"

namespace warpcache::protocol {

inline constexpr uint32_t kKeySizeMax = 250;  // bytes, as the client sends the key

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
  // Run by the AdminHandler, outside the stages: they split a batch. `words` below means
  // value_offset and value_size.
  kMetaDebug,      // me: the key, decoded
  kFlushAll,       // exptime: the delay
  kFlushPrefix,    // the key is the prefix; exptime: the delay
  kVerbosity,      // delta: the level
  kStats,          // words: what follows the command (text), or the key (binary)
  kCacheMemlimit,  // delta: megabytes
  kShutdown,       // words: what follows the command
  kAdmin,          // words: the whole line (lru, lru_crawler, slabs, watch, debugtime, ...)
  kSasl,           // binary opcodes 0x20 to 0x22; words: the value
  // Not a command: `status` says what is wrong. It is a request too, so that replies stay in order.
  kInvalid,
};

// Bits of Request::bits.
enum RequestBit : uint32_t {
  kQuiet = 1u << 0,         // binary quiet forms and meta q: no reply to a miss or a success
  kNoReply = 1u << 1,       // text noreply: no reply at all
  kLastKey = 1u << 2,       // text get family: the reply of this key is followed by END
  kReturnCas = 1u << 3,     // gets, gats (not used by binary and meta)
  kReturnKey = 1u << 4,     // binary getk, gatk
  kTouchBit = 1u << 5,      // set `exptime` on the found item (gat, gats, binary gat; meta T)
  kCasCompare = 1u << 6,    // cas_compare is given (cas, meta C, binary header cas != 0)
  kCasSet = 1u << 7,        // cas_set is given (meta E)
  kVivify = 1u << 8,        // vivify_exptime is given (meta N; binary incr, decr that may create)
  kRecache = 1u << 9,       // recache_ttl is given (meta R)
  kInvalidate = 1u << 10,   // meta I (ms: store as stale if the CAS is older; md: mark stale)
  kKeyIsBase64 = 1u << 11,  // meta b: the key was base64 on the wire and has been decoded in place
  kNoBump = 1u << 12,  // meta u: the access does not count for eviction, last access, "fetched"
  kReturnValue = 1u << 13,  // the reply has the value (text and binary get; meta v)
  kDropValue = 1u << 14,    // md x: an empty item with client_flags replaces the found one
  kReserved = 1u << 15,  // the body is in the batch entry's reservation, not in the input (set by
                         // the engine)
  kTtlBeforeTouch =
      1u << 16,  // meta t stands before T: Result::ttl is the time to live before T took effect
  kAnswersFlags = 1u << 18,  // meta: the reply shows at least one flag
  kDropOld = 1u << 17,  // a refused store (`status` says why) must remove the item with its key
};

struct Request {
  uint64_t hash;  // of the key; filled by the decode stage
  uint64_t cas_compare;
  uint64_t cas_set;
  uint64_t delta;    // incr, decr; the number of an administrative command
  uint64_t initial;  // start value of a counter that the command creates
  uint32_t key_offset;
  uint32_t value_offset;  // the body; administrative commands: their words
  uint32_t value_size;
  uint32_t client_flags;
  int32_t exptime;  // as in the command: 0 never, negative at once, <= 30 days relative, else a
                    // Unix time
  int32_t vivify_exptime;
  int32_t recache_ttl;  // seconds
  uint32_t opaque;  // binary: the header's opaque, in network byte order; meta with kKeyIsBase64:
                    // the size of the key before decoding
  uint32_t meta_offset;  // meta: the flags of the line; compose reads them again, since the reply
                         // has them in the order of the request
  uint32_t bits;         // RequestBit
  uint16_t meta_size;
  uint8_t key_size;       // after decoding
  uint8_t binary_opcode;  // binary: as received, quiet forms included
  Op op;
  Protocol protocol;
  Status status;  // kOk unless op is kInvalid or the store was refused (kTooLarge, kOutOfMemory)
  uint8_t reserved_;
};
static_assert(std::is_trivially_copyable_v<Request>);
static_assert(sizeof(Request) == 88);

enum class Outcome : uint8_t {
  kHit,   // a read found the item (or mg N created it)
  kMiss,  // no item: text nothing/END, meta EN, binary 0x01
  kStored,
  kNotStored,  // add of an existing item; replace, append, prepend of a missing one: NOT_STORED, NS
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
  kWon = 1u << 0,              // W: this client should store a new value
  kStale = 1u << 1,            // X: the item is stale
  kAlreadySent = 1u << 2,      // Z: another client has the win token
  kHitBefore = 1u << 3,        // h
  kItemKeyIsBinary = 1u << 4,  // the item was stored with meta b: k shows its key in base64
};

// The value is in one piece, or in a chain of segments if `chained`.
struct Result {
  Bytes value;   // first piece; valid until the batch ends (or its pin is released)
  uint64_t cas;  // of the item after the request; 0 where nothing was stored or changed
  uint64_t number;
  uint32_t value_size;  // of the whole value that was read or stored
  uint32_t client_flags;
  int32_t ttl;         // seconds left, -1: never expires
  uint32_t idle;       // seconds since the last access
  uint32_t item_size;  // bytes of the item in the store, for the command me
  uint8_t bits;        // ResultBit
  Outcome outcome;
  Status status;
  bool chained;  // the value continues beyond `value` in further segments
};
static_assert(std::is_trivially_copyable_v<Result>);

}  // namespace warpcache::protocol
