// SPDX-License-Identifier: Apache-2.0
//
// The administrative commands that need only a store, for engines without a server.
#pragma once

#include <algorithm>
#include <string>

#include "engine/engine.h"
#include "protocol/compose/admin_reply.h"
#include "store/host/owner.h"

namespace warpcache::engine {

// Runs flush_all and flush_prefix (of the prefix as it is given), accepts verbosity, refuses all
// others. Every connection is logged in.
class StoreAdmin final : public AdminHandler {
 public:
  // `store` outlives it.
  explicit StoreAdmin(store::StoreOwner& store) : store_(store) {}

  void run(const protocol::Request& request, const uint8_t* input, BatchEntry&,
           std::string& reply) override {
    const auto sink = [&reply](Bytes bytes) {
      reply.append(reinterpret_cast<const char*>(bytes.data), bytes.size);
    };
    if (request.op == protocol::Op::kFlushAll) {
      store_.flush_all(static_cast<uint32_t>(std::max(request.exptime, 0)));
    } else if (request.op == protocol::Op::kFlushPrefix) {
      const Bytes prefix = {input + request.key_offset, request.key_size};
      const auto delay = static_cast<uint32_t>(std::max(request.exptime, 0));
      const Status status = store_.flush_prefix(prefix, delay);
      if (status != Status::kOk) return protocol::reply_error(request, status, sink);
    } else if (request.op != protocol::Op::kVerbosity) {
      return protocol::reply_error(request, Status::kUnknownCommand, sink);
    }
    protocol::reply_ok(request, sink);
  }
  void authenticate(const protocol::Request&, const uint8_t*, BatchEntry&, std::string&) override {}
  bool wants_keys() const override { return false; }
  void saw_key(protocol::Op, Bytes, bool) override {}

 private:
  store::StoreOwner& store_;
};

}  // namespace warpcache::engine
