// SPDX-License-Identifier: Apache-2.0
#include "stress/register_model.h"

#include <fmt/format.h>

#include <algorithm>

namespace warpcache::stress {

namespace {

constexpr uint32_t kNumericValueMax = 16'000;    // bytes; longer values are no numbers
constexpr uint32_t kHeapValueMax = 1024 * 1024;  // bytes; larger values are sent pinned, or missed

uint32_t expiry_second(int32_t exptime, uint32_t clock) {
  if (exptime < 0) return 1;
  return exptime == 0 ? 0 : clock + static_cast<uint32_t>(exptime);
}

int32_t seconds_left(uint32_t expiry, uint32_t clock) {
  if (expiry == 0) return -1;
  return expiry > clock ? static_cast<int32_t>(expiry - clock) : 0;
}

// False: the item's id cannot be `cas`. Else the id is known from here on.
bool bind_cas(uint64_t cas, const CasBook& book, State* state) {
  if (state->cas_known) return state->cas == cas;
  if (cas <= state->cas || !book.fits(cas, state->value)) return false;
  state->cas = cas;
  state->cas_known = true;
  return true;
}

// A new id. It is known only to be higher than that of the living item that it replaces.
void renew_cas(bool replaces, State* state) {
  state->cas_known = false;
  if (!replaces) state->cas = 0;
}

// The reply may show these fields of `state`.
bool shows_rightly(const Operation& op, uint32_t clock, const CasBook& book, State* state) {
  if (op.shows(kShowsValue) && !op.seen.same_bytes(state->value)) return false;
  if (op.shows(kShowsFlags) && op.seen_flags != state->flags) return false;
  if (op.shows(kShowsTtl) && op.seen_ttl != seconds_left(state->expiry, clock)) return false;
  return !op.shows(kShowsCas) || bind_cas(op.seen_cas, book, state);
}

bool apply_get(const Operation& op, const Choice& choice, const CasBook& book, State* state) {
  const uint32_t clock = choice.clock;
  // A stub would have been made for a miss; nothing has happened.
  if (op.outcome == Outcome::kNoMemory) return op.has(kVivifies);
  const bool unpinned = op.outcome == Outcome::kMiss && op.has(kMayBeUnpinned);
  uint8_t signs = 0;
  if (!state->alive(choice.real_clock)) {
    if (!op.has(kVivifies)) return op.outcome == Outcome::kMiss;
    *state = {};
    state->present = true;
    state->expiry = expiry_second(op.vivify_exptime, clock);
    signs = kWon;
  } else if (unpinned) {
    return state->value.size > kHeapValueMax;  // and nothing has changed
  } else {
    const bool soon = op.has(kRecaches) && state->expiry != 0 &&
                      seconds_left(state->expiry, clock) < op.recache_ttl;
    if (state->stale) signs |= kStale;
    if (state->token_sent) signs |= kAlreadySent;
    if (op.has(kMeta) && !state->token_sent && (state->stale || soon)) signs |= kWon;
    if (op.has(kTouches)) state->expiry = expiry_second(op.exptime, clock);
  }
  if ((signs & kWon) != 0) state->token_sent = true;
  if (op.outcome != Outcome::kHit) return false;
  if (op.shows(kShowsSigns) && op.signs != signs) return false;
  return shows_rightly(op, clock, book, state);
}

enum class Decision : uint8_t { kStore, kStoreStale, kRefuse };

// The effect of a storage command on a living item whose id may not be known yet. False: another
// outcome.
bool decide_on_cas(const Operation& op, bool other_cas, const CasBook& book, State* state,
                   Decision* decision) {
  *decision = Decision::kStore;
  if (!op.has(kComparesCas)) return true;
  if (op.outcome == Outcome::kExists) {
    *decision = Decision::kRefuse;
    return !state->cas_known || state->cas != op.cas_compare;
  }
  State bound = *state;
  if (!other_cas && bind_cas(op.cas_compare, book, &bound)) {
    *state = bound;
    return true;
  }
  *decision = Decision::kStoreStale;
  return op.has(kInvalidates) && (!state->cas_known || op.cas_compare < state->cas);
}

// A number with blanks after it stays a number, whatever follows the blanks.
Value join(Kind kind, const Value& old, const Value& added) {
  if (kind == Kind::kPrepend) return concatenate(added, old);
  Value joined = concatenate(old, added);
  const bool padded = old.is_number && old.size > std::to_string(old.number).size();
  joined.is_number = padded && joined.size <= kNumericValueMax;
  joined.number = old.number;
  return joined;
}

void store_value(const Operation& op, uint32_t clock, bool alive, Decision decision, State* state) {
  const bool joins = op.kind == Kind::kAppend || op.kind == Kind::kPrepend;
  if (!joins) {
    state->value = op.value;
    state->flags = op.flags;
  } else {
    state->value = join(op.kind, state->value, op.value);
  }
  const bool stale = decision == Decision::kStoreStale;
  if (!joins && !stale) state->expiry = expiry_second(op.exptime, clock);
  state->token_sent = stale && state->token_sent;
  state->stale = stale;
  state->present = true;
  renew_cas(alive, state);
}

bool apply_store(const Operation& op, const Choice& choice, const CasBook& book, State* state) {
  const uint32_t clock = choice.clock;
  if (op.outcome == Outcome::kNoMemory) {
    if (op.has(kDropsOnFailure)) *state = {};  // the old value must not be read any more
    return true;
  }
  const bool alive = state->alive(choice.real_clock);
  const bool wants_item = op.kind != Kind::kSet && op.kind != Kind::kAdd;
  if (op.kind == Kind::kAdd && alive) return op.outcome == Outcome::kNotStored;
  if (!alive && op.has(kComparesCas)) return op.outcome == Outcome::kNotFound;
  if (!alive && wants_item) return op.outcome == Outcome::kNotStored;
  Decision decision = Decision::kStore;
  if (alive && !decide_on_cas(op, choice.other_cas, book, state, &decision)) return false;
  if (decision == Decision::kRefuse) return op.outcome == Outcome::kExists;
  if (op.outcome != Outcome::kStored) return false;
  store_value(op, clock, alive, decision, state);
  return shows_rightly(op, clock, book, state);
}

bool apply_delete(const Operation& op, const Choice& choice, const CasBook& book, State* state) {
  const uint32_t clock = choice.clock;
  if (op.outcome == Outcome::kNoMemory) return true;
  if (!state->alive(choice.real_clock)) return op.outcome == Outcome::kNotFound;
  Decision decision = Decision::kStore;
  if (!decide_on_cas(op, false, book, state, &decision)) return false;
  if (decision == Decision::kRefuse) return op.outcome == Outcome::kExists;
  if (op.outcome != Outcome::kDeleted || decision == Decision::kStoreStale) return false;
  if (!op.has(kEmpties) && !op.has(kInvalidates)) {
    *state = {};
    return true;
  }
  if (op.has(kEmpties)) {
    state->value = {};
    state->flags = 0;
    state->expiry = 0;
    state->stale = false;
  }
  if (op.has(kInvalidates)) state->stale = true;
  state->token_sent = false;
  if (op.has(kTouches)) state->expiry = expiry_second(op.exptime, clock);
  if (op.has(kInvalidates)) renew_cas(true, state);
  return true;
}

bool apply_delta(const Operation& op, const Choice& choice, const CasBook& book, State* state) {
  const uint32_t clock = choice.clock;
  if (op.outcome == Outcome::kNoMemory) return true;
  const bool alive = state->alive(choice.real_clock);
  if (!alive) {
    if (!op.has(kVivifies)) return op.outcome == Outcome::kNotFound;
    *state = {};
    state->present = true;
    state->value = number_value(op.initial, 0);
    state->expiry = expiry_second(op.vivify_exptime, clock);
  } else {
    // memcached checks first that there is an item, then the CAS id, and the number last.
    if (state->value.size == 0) return op.outcome == Outcome::kNonNumeric;
    Decision decision = Decision::kStore;
    if (!decide_on_cas(op, false, book, state, &decision) || decision == Decision::kStoreStale)
      return false;
    if (decision == Decision::kRefuse) return op.outcome == Outcome::kExists;
    if (!state->value.is_number) return op.outcome == Outcome::kNonNumeric;
    const uint64_t old = state->value.number;
    const uint64_t lowered = old > op.delta ? old - op.delta : 0;
    const uint64_t number = op.kind == Kind::kIncr ? old + op.delta : lowered;
    state->value = number_value(number, state->value.size);
    if (op.has(kTouches)) state->expiry = expiry_second(op.exptime, clock);
    renew_cas(true, state);
  }
  if (op.outcome != Outcome::kNumber || op.seen_number != state->value.number) return false;
  return shows_rightly(op, clock, book, state);
}

bool apply_touch(const Operation& op, const Choice& choice, const CasBook& book, State* state) {
  const uint32_t clock = choice.clock;
  if (!state->alive(choice.real_clock)) return op.outcome == Outcome::kNotFound;
  state->expiry = expiry_second(op.exptime, clock);
  return op.outcome == Outcome::kTouched && shows_rightly(op, clock, book, state);
}

bool apply_evict(const Operation& op, const CasBook& book, State* state) {
  if (!state->present) return false;
  if (op.cas_compare != kAnyItem && !bind_cas(op.cas_compare, book, state)) return false;
  *state = {};
  return true;
}

}  // namespace

uint64_t State::hash() const {
  if (!present) return 0;
  uint64_t sum = value.hash + value.size;
  const uint64_t bits = uint64_t{cas_known} | uint64_t{stale} << 1 | uint64_t{token_sent} << 2;
  for (const uint64_t word : {cas, uint64_t{expiry} << 32 | flags, bits + 1}) {
    sum = (sum ^ word) * 0xd6e8feb86659fd93;
    sum ^= sum >> 32;
  }
  return sum;
}

std::string describe(const State& state) {
  if (!state.present) return "nothing";
  return fmt::format("value {:08x}/{}{} cas {}{} expiry {} flags {}{}{}",
                     state.value.hash & 0xffffffff, state.value.size,
                     state.value.is_number ? fmt::format(" = {}", state.value.number) : "",
                     state.cas_known ? "" : "above ", state.cas, state.expiry, state.flags,
                     state.stale ? " stale" : "", state.token_sent ? " token sent" : "");
}

bool CasBook::note(uint64_t cas, const Value& value) {
  if (value.size == 0) return true;
  return values_.emplace(cas, value.hash).first->second == value.hash;
}

bool CasBook::fits(uint64_t cas, const Value& value) const {
  if (value.size == 0) return true;
  const auto found = values_.find(cas);
  return found == values_.end() || found->second == value.hash;
}

bool apply(const Operation& operation, const Choice& choice, const CasBook& book,
           const State& before, State* after) {
  *after = before;
  switch (operation.kind) {
    case Kind::kGet:
      return apply_get(operation, choice, book, after);
    case Kind::kDelete:
      return apply_delete(operation, choice, book, after);
    case Kind::kIncr:
    case Kind::kDecr:
      return apply_delta(operation, choice, book, after);
    case Kind::kTouch:
      return apply_touch(operation, choice, book, after);
    case Kind::kFlush:
      *after = {};
      return true;
    case Kind::kEvict:
      return apply_evict(operation, book, after);
    default:
      return apply_store(operation, choice, book, after);
  }
}

}  // namespace warpcache::stress
