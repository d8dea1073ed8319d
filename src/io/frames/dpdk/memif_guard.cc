// SPDX-License-Identifier: Apache-2.0
#include "io/frames/dpdk/memif_guard.h"

#include <dlfcn.h>
#include <rte_interrupts.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace warpcache::io {
namespace {

// A handler as the driver has registered it.
struct Handler {
  rte_intr_callback_fn run;
  void* argument;
  rte_intr_unregister_callback_fn ended = nullptr;
  std::atomic<bool> is_over{false};  // it is not to run any more
};

// Both are never destroyed: DPDK's thread lives until the process ends.
struct Users {
  std::mutex mutex;
  std::vector<const MemifUser*> all;
  std::atomic<bool> closed{false};  // a handler runs, or waits for users to leave
};
struct Handlers {
  std::mutex mutex;
  std::vector<std::unique_ptr<Handler>> all;
};

Users& users() {
  static auto* const made = new Users;
  return *made;
}

Handlers& handlers() {
  static auto* const made = new Handlers;
  return *made;
}

constexpr useconds_t kStepUs = 10;

// DPDK's function of a name, where this file has one of the same name.
void* in_dpdk(const char* name) {
  static void* const library = [] {
    Dl_info found = {};
    void* const known = dlsym(RTLD_DEFAULT, "rte_eal_init");
    if (known == nullptr || dladdr(known, &found) == 0) return static_cast<void*>(nullptr);
    return dlopen(found.dli_fname, RTLD_NOW | RTLD_NOLOAD);
  }();
  return library == nullptr ? nullptr : dlsym(library, name);
}

template <typename Function>
Function* in_dpdk_as(Function* /*same*/, const char* name) {
  return reinterpret_cast<Function*>(in_dpdk(name));
}

bool is_of_memif(rte_intr_callback_fn run) {
  Dl_info found = {};
  return dladdr(reinterpret_cast<void*>(run), &found) != 0 && found.dli_fname != nullptr &&
         std::strstr(found.dli_fname, "net_memif") != nullptr;
}

// By DPDK's interrupt thread.
void run_alone(void* handler) {
  const auto& asked = *static_cast<const Handler*>(handler);
  Users& all = users();
  const std::lock_guard lock(all.mutex);
  all.closed.store(true);
  for (const MemifUser* const user : all.all) {
    while (user->is_at_device()) (void)usleep(kStepUs);
  }
  // A user may have ended it meanwhile, and the connection that it is for.
  if (!asked.is_over.load()) asked.run(asked.argument);
  all.closed.store(false);
}

// REQUIRES: the mutex of handlers() is locked.
Handler* find(rte_intr_callback_fn run, const void* argument) {
  for (const std::unique_ptr<Handler>& handler : handlers().all) {
    if (handler->run == run && handler->argument == argument && !handler->is_over) {
      return handler.get();
    }
  }
  return nullptr;
}

void forget(const Handler* handler) {
  const std::lock_guard lock(handlers().mutex);
  std::erase_if(handlers().all, [&](const auto& one) { return one.get() == handler; });
}

// By DPDK's interrupt thread.
void end_handler(rte_intr_handle* interrupt, void* handler) {
  auto* const asked = static_cast<Handler*>(handler);
  asked->ended(interrupt, asked->argument);
  forget(asked);
}

}  // namespace

MemifUser::MemifUser() {
  const std::lock_guard lock(users().mutex);
  users().all.push_back(this);
}

MemifUser::~MemifUser() {
  const std::lock_guard lock(users().mutex);
  std::erase(users().all, this);
}

// Of a user that says so and a handler's thread that closes at the same time, one sees the other.
void MemifUser::enter() {
  const std::atomic<bool>& closed = users().closed;
  at_device_.store(true);
  while (closed.load()) {
    at_device_.store(false);
    while (closed.load()) (void)usleep(kStepUs);
    at_device_.store(true);
  }
}

// Drivers look for functions in the program and in what is loaded for all, and only then in the
// libraries that they name.
void guard_memif() {
  Dl_info found = {};
  if (dladdr(reinterpret_cast<void*>(&guard_memif), &found) == 0) return;
  (void)dlopen(found.dli_fname, RTLD_NOW | RTLD_NOLOAD | RTLD_GLOBAL);
}

unsigned guarded_memif_handlers() {
  const std::lock_guard lock(handlers().mutex);
  return static_cast<unsigned>(handlers().all.size());
}

}  // namespace warpcache::io

// What the driver finds. Handlers of others go to DPDK as they are.

#define WC_FOUND_BY_DRIVERS extern "C" __attribute__((visibility("default")))

WC_FOUND_BY_DRIVERS int rte_intr_callback_register(const rte_intr_handle* interrupt,
                                                   rte_intr_callback_fn run, void* argument) {
  using namespace warpcache::io;
  static const auto in_eal = in_dpdk_as(&rte_intr_callback_register, "rte_intr_callback_register");
  if (!is_of_memif(run)) return in_eal(interrupt, run, argument);
  auto made = std::make_unique<Handler>();
  made->run = run;
  made->argument = argument;
  Handler* const handler = made.get();
  {
    const std::lock_guard lock(handlers().mutex);
    handlers().all.push_back(std::move(made));
  }
  const int result = in_eal(interrupt, run_alone, handler);
  if (result < 0) forget(handler);
  return result;
}

WC_FOUND_BY_DRIVERS int rte_intr_callback_unregister(const rte_intr_handle* interrupt,
                                                     rte_intr_callback_fn run, void* argument) {
  using namespace warpcache::io;
  static const auto in_eal =
      in_dpdk_as(&rte_intr_callback_unregister, "rte_intr_callback_unregister");
  Handler* handler = nullptr;
  {
    const std::lock_guard lock(handlers().mutex);
    handler = find(run, argument);
  }
  if (handler == nullptr) return in_eal(interrupt, run, argument);
  const int result = in_eal(interrupt, run_alone, handler);
  if (result > 0) forget(handler);
  return result;
}

WC_FOUND_BY_DRIVERS int rte_intr_callback_unregister_pending(
    const rte_intr_handle* interrupt, rte_intr_callback_fn run, void* argument,
    rte_intr_unregister_callback_fn ended) {
  using namespace warpcache::io;
  static const auto in_eal =
      in_dpdk_as(&rte_intr_callback_unregister_pending, "rte_intr_callback_unregister_pending");
  Handler* handler = nullptr;
  {
    const std::lock_guard lock(handlers().mutex);
    handler = find(run, argument);
    if (handler != nullptr && ended != nullptr) {
      handler->ended = ended;
      handler->is_over = true;
    }
  }
  if (handler == nullptr || ended == nullptr) return in_eal(interrupt, run, argument, ended);
  const int result = in_eal(interrupt, run_alone, handler, end_handler);
  if (result <= 0) handler->is_over = false;
  return result;
}
