// SPDX-License-Identifier: Apache-2.0
//
// What the CPU engine reports of its requests while somebody watches them.
#include "engine/cpu/cpu_engine.h"

namespace warpcache::engine {

// Apart from the requests' code, which it would only lengthen.
request::KeyBefore CpuEngine::look_before(const request::RequestState& state) const {
  return request::look_before(context_, state);
}

void CpuEngine::show_request(const BatchEntry& entry, const request::RequestState& state,
                             const protocol::Result& result, const request::KeyBefore& before) {
  const protocol::Request& request = state.request;
  if (!request::acts_on_key(request.op)) return;
  const SeenRequest seen = {
      .request = request,
      .result = result,
      .key = context_.key(request),
      .hit = counts_as_hit(result.outcome),
      .fd = entry.fd,
      .before = before.state,
      .value_size_before = before.value_size,
      .ttl = request::ttl_of_stored(request, result.outcome, before, context_.clock)};
  admin_.saw_request(seen);
}

}  // namespace warpcache::engine
