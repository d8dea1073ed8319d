// SPDX-License-Identifier: Apache-2.0
// Compiled by flags of its own (CMakeLists.txt): without jump tables and calls for copying, and
// without the host's vector instructions, as the code is for a device.
#include "simt/record/serve.h"

#include "protocol/framing/frame.h"
#include "request/stages.h"

extern "C" [[gnu::noinline, gnu::flatten]] void warpcache_simt_serve(
    warpcache::simt::Thread* thread) {
  using warpcache::Status;
  warpcache::protocol::FrameState state = {};
  warpcache::protocol::Frame frame = {};
  const auto framed =
      warpcache::protocol::frame(state, thread->limits, thread->request, 0, 0, &frame, 1);
  if (framed.count == 0) return;
  const Status status = warpcache::request::process_request(thread->context, frame, thread->out);
  if (status != Status::kOk) thread->out = nullptr;
}
