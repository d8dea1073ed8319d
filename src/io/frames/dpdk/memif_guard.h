// SPDX-License-Identifier: Apache-2.0
//
// Keeps two threads apart that DPDK does not (22.11): when the other process of a memif goes,
// DPDK's interrupt thread takes the shared memory away, while a port's thread may be reading it;
// and when a port's thread restarts the device, the interrupt thread may be handling its messages.
//
// DPDK offers no lock for that. What runs in the interrupt thread, however, the driver has handed
// to rte_intr_callback_register(). This file has a function of that name, which the driver finds
// before DPDK's: it registers the handler such that it runs only while no port's thread is at the
// device.
#pragma once

#include <atomic>

namespace warpcache::io {

// A flag of one thread: it is using a memif device. Only that thread sets it.
class MemifUser {
 public:
  MemifUser();
  MemifUser(const MemifUser&) = delete;
  MemifUser& operator=(const MemifUser&) = delete;
  ~MemifUser();

  // Between these calls no handler runs. enter() waits for one that does. They do not nest.
  void enter();
  void leave() { at_device_.store(false, std::memory_order_release); }

  bool is_at_device() const { return at_device_.load(); }

 private:
  alignas(64) std::atomic<bool> at_device_{false};  // a cache line, since each burst writes it
};

// While it lives, no handler runs. `user` may be nullptr: then it does nothing.
class AtMemif {
 public:
  explicit AtMemif(MemifUser* user) : user_(user) {
    if (user_ != nullptr) user_->enter();
  }
  AtMemif(const AtMemif&) = delete;
  AtMemif& operator=(const AtMemif&) = delete;
  ~AtMemif() {
    if (user_ != nullptr) user_->leave();
  }

 private:
  MemifUser* user_;
};

// To be called before DPDK starts, since it loads its drivers then.
void guard_memif();

// No handler runs any more, since the driver would leave some to DPDK when its device goes.
// REQUIRES: called between enter() and leave() of a user.
void end_memif_handlers();

// DPDK's function of a name, where this module has one of the same name, which drivers find first.
void* find_in_dpdk(const char* name);
template <typename Function>
Function* function_in_dpdk(Function* /*same*/, const char* name) {
  return reinterpret_cast<Function*>(find_in_dpdk(name));
}

// How many handlers of memif devices are registered. None although there is such a device: the
// driver has not found this file's functions.
unsigned guarded_memif_handlers();

}  // namespace warpcache::io
