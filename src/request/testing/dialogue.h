// SPDX-License-Identifier: Apache-2.0
//
// Test support: a store and the request pipeline over it, spoken to in wire bytes, one message
// after the other.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "protocol/framing/frame.h"
#include "request/stages.h"
#include "store/host/store.h"

namespace warpcache::request {

class Dialogue {
 public:
  explicit Dialogue(store::StoreConfig config);
  ~Dialogue();

  // Sends `bytes` down one stream and returns everything it is answered. Unfinished messages are a
  // test's mistake.
  std::string say(std::string bytes);

  // Lets `seconds` pass on the server's clock.
  void advance(uint32_t seconds) { store_->set_clock(store_->clock().now + seconds); }

  store::Store& store() { return *store_; }
  Counters& counters() { return counters_; }
  protocol::FrameLimits& limits() { return limits_; }

 private:
  std::unique_ptr<store::Store> store_;
  store::ThreadContext thread_;
  Counters counters_;

  protocol::FrameState framing_ = {};
  protocol::FrameLimits limits_ = {};
};

}  // namespace warpcache::request
