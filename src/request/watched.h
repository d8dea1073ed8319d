// SPDX-License-Identifier: Apache-2.0
//
// What a watcher sees and the results of requests do not say: what was at the key before.
#pragma once

#include "request/expiry.h"
#include "request/key_state.h"
#include "request/stages.h"

namespace warpcache::request {

struct KeyBefore {
  uint64_t cas = 0;         // with kFound, as what follows
  uint32_t value_size = 0;  // bytes
  uint32_t expiry = 0;      // server second; 0: never
  KeyState state = KeyState::kNotFound;
};

// Looks the key up as the request will. Another thread may change the key before that runs.
// REQUIRES: the thread is inside an epoch.
WC_HD inline KeyBefore look_before(const Context& context, const RequestState& state) {
  KeyBefore before;
  const protocol::Request& request = state.request;
  if (!acts_on_key(request.op) || request.key_size == 0) return before;
  const store::Found found = context.store.find(request.hash, context.key(request), state.hint);
  if (!found) return before;
  const store::Item& item = *found.item;
  if (context.store.alive(item, context.clock.now)) {
    before.state = KeyState::kFound;
    before.value_size = item.value_size;
    before.expiry = item.load_expiry();
    before.cas = item.load_cas();
  } else {
    before.state = context.store.flushed(item) ? KeyState::kFlushed : KeyState::kTimedOut;
  }
  return before;
}

// Seconds that an item lives which the request has stored; 0: for ever. Wraps below 0.
inline uint32_t ttl_of_stored(const protocol::Request& request, protocol::Outcome outcome,
                              const KeyBefore& before, const store::Clock& clock) {
  const bool joins = request.op == protocol::Op::kAppend || request.op == protocol::Op::kPrepend;
  const bool keeps_stale = (request.bits & protocol::kInvalidate) != 0 &&
                           (request.bits & protocol::kCasCompare) != 0 &&
                           request.cas_compare != before.cas;
  const bool keeps = outcome == protocol::Outcome::kStored && before.state == KeyState::kFound &&
                     (joins || keeps_stale);
  const int32_t exptime = joins ? request.vivify_exptime : request.exptime;
  const uint32_t expiry = keeps ? before.expiry : expiry_second(exptime, clock);
  return expiry == 0 ? 0 : expiry - clock.now;
}

}  // namespace warpcache::request
