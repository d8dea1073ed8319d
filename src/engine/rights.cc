// SPDX-License-Identifier: Apache-2.0
#include "engine/rights.h"

#include "base/mem.h"
#include "protocol/compose/admin_reply.h"
#include "protocol/compose/compose.h"
#include "request/stages.h"

namespace warpcache::engine {

bool are_enough(const Rights& rights, const protocol::Request& request, const uint8_t* input) {
  if (request::acts_on_key(request.op) || request.op == protocol::Op::kMetaDebug) {
    return rights.allows(request, {input + request.key_offset, request.key_size});
  }
  // The AdminHandler knows where a prefix ends.
  const bool asks = request.op == protocol::Op::kSasl || request.op == protocol::Op::kFlushPrefix;
  return !request::is_administrative(request.op) || asks || rights.allows_administration();
}

uint8_t* compose_denial(const protocol::Request& request, const uint8_t* input, uint8_t* out) {
  if (request.op == protocol::Op::kGet) {
    protocol::Result result = {};
    result.outcome = protocol::Outcome::kMiss;
    out = protocol::compose_head(request, result, input, out);
    return protocol::compose_tail(request, result, input, out);
  }
  const auto sink = [&out](Bytes bytes) {
    mem_copy(out, bytes.data, bytes.size);
    out += bytes.size;
  };
  if (request.protocol == protocol::Protocol::kBinary) {
    protocol::reply_error(request, Status::kUnauthenticated, sink);
  } else {
    protocol::reply_line(request, bytes_of("CLIENT_ERROR access denied"), sink);
  }
  return out;
}

}  // namespace warpcache::engine
