// SPDX-License-Identifier: Apache-2.0
//
// What one key may hold and what each operation does to it, one operation at a time. It is written
// from memcached's rules alone.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>

#include "stress/operation.h"

namespace warpcache::stress {

// The key's item. Dead by time or not is for each operation's own clock to say.
struct State {
  bool present = false;
  bool cas_known = false;
  bool stale = false;
  bool token_sent = false;
  Value value;
  uint64_t cas = 0;  // unless cas_known: the item's id is above this one
  uint32_t expiry = 0;
  uint32_t flags = 0;

  bool alive(uint32_t clock) const { return present && (expiry == 0 || expiry > clock); }
  uint64_t hash() const;
};

std::string describe(const State& state);

// Which value each CAS id has been seen with: an id that was another value's is not this one's. The
// empty value may have any: md x leaves an item its id.
class CasBook {
 public:
  // False: the id belongs to another value.
  bool note(uint64_t cas, const Value& value);
  bool fits(uint64_t cas, const Value& value) const;
  void clear() { values_.clear(); }
  size_t size() const { return values_.size(); }

 private:
  std::unordered_map<uint64_t, uint64_t> values_;  // hash of the value
};

// What an operation that showed nothing of it may have met.
struct Choice {
  uint32_t clock = 0;       // now, as it counted
  uint32_t real_clock = 0;  // now, when it took effect: what has expired by then may be gone
  bool other_cas =
      false;  // the item's CAS id, not known, was another than the one it compares with
};

// Whether `operation` may have had its outcome on `before`; `after` is what it leaves.
bool apply(const Operation& operation, const Choice& choice, const CasBook& book,
           const State& before, State* after);

}  // namespace warpcache::stress
