// SPDX-License-Identifier: Apache-2.0
//
// A model of one key: its state, and the effect of each operation. It follows memcached's rules
// alone.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>

#include "stress/operation.h"

namespace warpcache::stress {

// The item of the key. Whether it has expired depends on the clock of each operation.
struct State {
  bool present = false;
  bool cas_known = false;
  bool stale = false;
  bool token_sent = false;
  Value value;
  uint64_t cas = 0;  // if not cas_known: the item's id is higher than this
  uint32_t expiry = 0;
  uint32_t flags = 0;

  bool alive(uint32_t clock) const { return present && (expiry == 0 || expiry > clock); }
  uint64_t hash() const;
};

std::string describe(const State& state);

// The value with which each CAS id was seen: one id cannot belong to two values. The empty value
// may have any id: md x keeps the item's id.
class CasBook {
 public:
  // False: the id belongs to another value.
  bool note(uint64_t cas, const Value& value);
  bool fits(uint64_t cas, const Value& value) const;
  void clear() { values_.clear(); }
  size_t size() const { return values_.size(); }

 private:
  std::unordered_map<uint64_t, uint64_t> values_;  // value: its hash
};

// What the reply of an operation does not show.
struct Choice {
  uint32_t clock = 0;       // the current second, as the operation counted it
  uint32_t real_clock = 0;  // the current second when it took effect: expired items may be gone
  bool other_cas = false;   // the item's CAS id is not known and differs from the compared one
};

// `operation` may have had its outcome on `before`; `after` is the state after it.
bool apply(const Operation& operation, const Choice& choice, const CasBook& book,
           const State& before, State* after);

}  // namespace warpcache::stress
