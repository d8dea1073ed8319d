// SPDX-License-Identifier: Apache-2.0
//
// The flags of mg and ma about time: T, N, R and t. They take effect in the order of the line. So t
// shows the time before a T that comes after it.
#pragma once

#include "protocol/parse/words.h"
#include "request/expiry.h"
#include "request/state.h"

namespace warpcache::request {

struct MetaTimes {
  uint32_t expiry;     // after all of them
  uint32_t shown;      // what t shows; without t the same as expiry
  bool wants_recache;  // R: less time is left than it asks for
};

// REQUIRES: a meta request. `before`: the expiry of the item that was found, or 0 for a new one
// (`made`).
WC_HD inline MetaTimes take_times(const Context& context, const protocol::Request& request,
                                  uint32_t before, bool made) {
  MetaTimes times = {before, before, false};
  bool shown = false;
  protocol::Words words({context.input + request.meta_offset, request.meta_size});
  Bytes word;
  while (words.next(word)) {
    switch (word.data[0]) {
      case 'T':
        times.expiry = expiry_second(request.exptime, context.clock);
        break;
      case 'N':
        if (made) times.expiry = expiry_second(request.vivify_exptime, context.clock);
        break;
      case 'R':
        if (!made && times.expiry != 0 &&
            times.expiry < expiry_second(request.recache_ttl, context.clock)) {
          times.wants_recache = true;
        }
        break;
      case 't':
        times.shown = times.expiry;
        shown = true;
        break;
      default:
        break;
    }
  }
  if (!shown) times.shown = times.expiry;
  return times;
}

}  // namespace warpcache::request
