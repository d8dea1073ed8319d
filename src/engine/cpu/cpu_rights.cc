// SPDX-License-Identifier: Apache-2.0
//
// Requests of users that may not do everything (--access).
#include "engine/cpu/cpu_engine.h"
#include "protocol/compose/admin_reply.h"

namespace warpcache::engine {

// REQUIRES: rights_ are given.
bool CpuEngine::is_allowed(const request::RequestState& state) const {
  const protocol::Request& request = state.request;
  if (request::acts_on_key(request.op) || request.op == protocol::Op::kMetaDebug) {
    return rights_->allows(request, context_.key(request));
  }
  // The AdminHandler knows where a prefix ends.
  const bool asks = request.op == protocol::Op::kSasl || request.op == protocol::Op::kFlushPrefix;
  return !request::is_administrative(request.op) || asks || rights_->allows_administration();
}

// What may not be read does not exist.
void CpuEngine::deny(BatchEntry& entry, const request::RequestState& state) {
  const protocol::Request& request = state.request;
  admin_.denied();
  if ((request.bits & protocol::kReserved) != 0) store_.abandon_reservation(entry.reservation);
  if (request.op == protocol::Op::kGet) {
    protocol::Result result = {};
    result.outcome = protocol::Outcome::kMiss;
    return answer(entry, state, result);
  }
  const auto sink = [this](Bytes bytes) { write(bytes); };
  if (request.protocol == protocol::Protocol::kBinary) {
    return protocol::reply_error(request, Status::kUnauthenticated, sink);
  }
  protocol::reply_line(request, bytes_of("CLIENT_ERROR access denied"), sink);
}

}  // namespace warpcache::engine
