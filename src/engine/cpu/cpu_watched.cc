// SPDX-License-Identifier: Apache-2.0
//
// What the CPU engine tells of its requests while somebody wants to know.
#include "engine/cpu/cpu_engine.h"
#include "request/expiry.h"

namespace warpcache::engine {

// Looks the key up as the request will.
CpuEngine::KeyBefore CpuEngine::look_before(const request::RequestState& state) const {
  const protocol::Request& request = state.request;
  if (!request::acts_on_key(request.op) || request.key_size == 0) return {};
  const store::Found found = context_.store.find(request.hash, context_.key(request), state.hint);
  if (!found) return {};
  const store::Item& item = *found.item;
  if (context_.store.alive(item, context_.clock.now)) {
    return {KeyState::kFound, item.value_size, item.load_expiry(), item.load_cas()};
  }
  return {context_.store.flushed(item) ? KeyState::kFlushed : KeyState::kExpired, 0, 0, 0};
}

void CpuEngine::show_request(const BatchEntry& entry, const request::RequestState& state,
                             const protocol::Result& result, const KeyBefore& before) {
  const protocol::Request& request = state.request;
  if (!request::acts_on_key(request.op)) return;
  const bool joins = request.op == protocol::Op::kAppend || request.op == protocol::Op::kPrepend;
  const bool keeps_stale = (request.bits & protocol::kInvalidate) != 0 &&
                           (request.bits & protocol::kCasCompare) != 0 &&
                           request.cas_compare != before.cas;
  const int32_t exptime = joins ? request.vivify_exptime : request.exptime;
  uint32_t expiry = request::expiry_second(exptime, context_.clock);
  if (result.outcome == protocol::Outcome::kStored && before.state == KeyState::kFound &&
      (joins || keeps_stale)) {
    expiry = before.expiry;
  }
  const SeenRequest seen = {.request = request,
                            .result = result,
                            .key = context_.key(request),
                            .hit = counts_as_hit(result.outcome),
                            .fd = entry.fd,
                            .before = before.state,
                            .value_size_before = before.value_size,
                            .ttl = expiry == 0 ? 0 : expiry - context_.clock.now};
  admin_.saw_request(seen);
}

}  // namespace warpcache::engine
