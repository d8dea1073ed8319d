// SPDX-License-Identifier: Apache-2.0
//
// An administration for tests of engines: it answers everything, and remembers what it was shown.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/byte_pipe.h"
#include "engine/engine.h"

namespace warpcache::engine {

// Answers every administrative command with one line.
class FakeAdmin : public AdminHandler {
 public:
  void run(const protocol::Request& request, const uint8_t*, BatchEntry& entry,
           std::string& reply) override {
    if (request.op == protocol::Op::kAdmin) {
      entry.long_reply = &long_reply;
    } else {
      reply += "ADMIN\r\n";
    }
  }
  void authenticate(const protocol::Request& request, const uint8_t*, BatchEntry& entry,
                    std::string& reply) override {
    entry.authenticated = request.op == protocol::Op::kSet;
    if (entry.authenticated) entry.user = login_user;
    reply += entry.authenticated ? "STORED\r\n" : "CLIENT_ERROR unauthenticated\r\n";
  }
  std::shared_ptr<const Rights> rights_of(uint16_t) const override { return rights; }
  void denied() override { ++refused; }
  bool wants_keys() const override { return wants_keys_now; }
  void saw_key(protocol::Op, Bytes key, bool hit) override {
    seen.emplace_back(reinterpret_cast<const char*>(key.data), key.size);
    hits += hit ? 1 : 0;
  }
  void saw_request(const SeenRequest& request) override {
    states.push_back(request.before);
    sizes.push_back(request.value_size_before);
    ttls.push_back(request.ttl);
    AdminHandler::saw_request(request);
  }

  BytePipe long_reply{16, [] {}};  // of `lru_crawler`
  bool wants_keys_now = false;
  std::vector<std::string> seen;
  std::vector<KeyState> states;
  std::vector<uint32_t> sizes;
  std::vector<uint32_t> ttls;
  int hits = 0;
  std::shared_ptr<const Rights> rights;  // of every user
  uint16_t login_user = 0;
  uint32_t refused = 0;  // for want of rights
};

}  // namespace warpcache::engine
