// SPDX-License-Identifier: Apache-2.0
//
// One operation on one key, as its client sees it: request, time, and reply.
#pragma once

#include <cstdint>
#include <string>

#include "stress/value.h"

namespace warpcache::stress {

enum class Kind : uint8_t {
  kGet,
  kSet,
  kAdd,
  kReplace,
  kAppend,
  kPrepend,
  kDelete,
  kIncr,
  kDecr,
  kTouch,
  kFlush,  // of all keys, so it is in the history of every key
  kEvict,  // logged by the server: the item with `cas_compare`, or kAnyItem, is evicted
};

enum class Outcome : uint8_t {
  kUnknown,
  kHit,
  kMiss,
  kStored,
  kNotStored,
  kExists,
  kNotFound,
  kDeleted,
  kTouched,
  kNumber,
  kOk,
  kNonNumeric,
  kNoMemory,
};

inline constexpr uint64_t kAnyItem = 0;  // in place of a CAS id

// Bits of Operation::options: flags of the request.
enum Option : uint32_t {
  kTouches = 1u << 0,         // sets the item's expiry to `exptime` (gat, gats, meta T)
  kComparesCas = 1u << 1,     // `cas_compare` is given
  kVivifies = 1u << 2,        // `vivify_exptime` is given; counters: `initial`
  kRecaches = 1u << 3,        // `recache_ttl` is given
  kInvalidates = 1u << 4,     // meta I
  kEmpties = 1u << 5,         // md x
  kMeta = 1u << 6,            // a meta command: it can win a token
  kOptional = 1u << 7,        // kEvict: may be outside of the time of this history
  kDropsOnFailure = 1u << 8,  // a store that removes the old value if it finds no memory
  kMayBeUnpinned = 1u << 9,   // a read of a large value may be answered as a miss
};

// Bits of Operation::shown: what the reply contains.
enum Shown : uint32_t {
  kShowsValue = 1u << 0,
  kShowsCas = 1u << 1,
  kShowsTtl = 1u << 2,
  kShowsFlags = 1u << 3,
  kShowsSigns = 1u << 4,  // W, X and Z, present or not
};

enum Sign : uint8_t { kWon = 1u << 0, kStale = 1u << 1, kAlreadySent = 1u << 2 };

struct Operation {
  int64_t invoked = 0;    // nanoseconds, monotonic
  int64_t responded = 0;  // likewise
  uint32_t session = 0;   // operations of a session take effect in order
  uint32_t key = 0;
  uint32_t clock_low = 0;  // server seconds: one of them was the current one
  uint32_t clock_high = 0;

  Kind kind = Kind::kGet;
  uint32_t options = 0;
  uint32_t flags = 0;  // client flags to store
  int32_t exptime = 0;
  int32_t vivify_exptime = 0;
  int32_t recache_ttl = 0;
  Value value;
  uint64_t cas_compare = 0;
  uint64_t delta = 0;
  uint64_t initial = 0;

  Outcome outcome = Outcome::kUnknown;
  uint8_t signs = 0;
  uint32_t shown = 0;
  uint32_t seen_flags = 0;
  int32_t seen_ttl = 0;
  Value seen;
  uint64_t seen_cas = 0;
  uint64_t seen_number = 0;  // with kNumber

  bool has(Option option) const { return (options & option) != 0; }
  bool shows(Shown what) const { return (shown & what) != 0; }
};

// One line, with times in microseconds since `origin`.
std::string describe(const Operation& operation, int64_t origin);

}  // namespace warpcache::stress
