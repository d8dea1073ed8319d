// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "client/channel.h"

namespace warpcache::client {

// Makes channels by active messages. Outlives them; used by one thread at a time.
class AmConnector {
 public:
  virtual ~AmConnector() = default;
  // Returns the error as text, or "".
  virtual std::string connect(const std::string& host, uint16_t port, Channel::Deadline deadline,
                              std::unique_ptr<Channel>* channel) = 0;
};

// Null, with the reason, where UCX cannot be used. `one_sided`: channels ask servers for slots, for
// Channel::read_item().
std::unique_ptr<AmConnector> make_am_connector(bool one_sided, std::string* failure);

}  // namespace warpcache::client
