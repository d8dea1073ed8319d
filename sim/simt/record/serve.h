// SPDX-License-Identifier: Apache-2.0
// One request from bytes to reply, the way a GPU's thread goes: the project's own framing and
// request stages in one function without calls, so that its machine code is one control-flow graph.
#ifndef WARPCACHE_SIM_SIMT_RECORD_SERVE_H_
#define WARPCACHE_SIM_SIMT_RECORD_SERVE_H_

#include <cstdint>

#include "base/bytes.h"
#include "protocol/framing/frame_types.h"
#include "request/state.h"

namespace warpcache::simt {

// What a thread is given, and where it has put the end of its reply.
struct Thread {
  request::Context context;
  protocol::FrameLimits limits;
  Bytes request;
  uint8_t* out;
};

// The function's name in the object code.
inline constexpr const char* kServeSymbol = "warpcache_simt_serve";

}  // namespace warpcache::simt

// REQUIRES: the thread is inside an epoch, and the request is whole.
extern "C" void warpcache_simt_serve(warpcache::simt::Thread* thread);

#endif  // WARPCACHE_SIM_SIMT_RECORD_SERVE_H_
