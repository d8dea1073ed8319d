// SPDX-License-Identifier: Apache-2.0
//
// Streams that are to be delivered again, but not at once (RxNext::later). Every kLaterAfter, the
// first kLaterAtOnce of them are delivered, in the order in which they came. Until then nothing is
// read from them, so that the thread can sleep.
#include <algorithm>

#include "io/socket/socket_transport.h"

namespace warpcache::io {

void SocketTransport::set_later(uint32_t index) {
  if (later_.empty()) later_due_ = Clock::now() + kLaterAfter;
  connections_[index].waits_later = true;
  later_.push_back(index);
  watch_for(index, 0);
}

void SocketTransport::clear_later(uint32_t index) {
  if (!connections_[index].waits_later) return;
  connections_[index].waits_later = false;
  std::erase(later_, index);
}

// REQUIRES: some wait.
void SocketTransport::ready_later() {
  const Clock::time_point now = Clock::now();
  if (now < later_due_) return;
  later_due_ = now + kLaterAfter;
  const size_t count = std::min<size_t>(later_.size(), kLaterAtOnce);
  for (size_t i = 0; i < count; ++i) {
    connections_[later_[i]].waits_later = false;
    set_ready(later_[i]);
  }
  later_.erase(later_.begin(), later_.begin() + static_cast<ptrdiff_t>(count));
}

}  // namespace warpcache::io
