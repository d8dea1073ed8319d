// SPDX-License-Identifier: Apache-2.0
#include "io/frames/dpdk/memif_guard.h"

#include <dlfcn.h>
#include <errno.h>
#include <rte_interrupts.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace warpcache::io {
namespace {

// Which file a descriptor is for. Numbers are used again, sockets are not.
struct OpenFile {
  int fd;
  dev_t device = 0;
  ino_t inode = 0;

  explicit OpenFile(int number) : fd(number) {
    struct stat found = {};
    if (fstat(fd, &found) != 0) return;
    device = found.st_dev;
    inode = found.st_ino;
  }
  bool is_closed() const {
    const OpenFile now(fd);
    return now.inode != inode || now.device != device;
  }
};

// A handler as the driver has registered it.
struct Handler {
  Handler(rte_intr_callback_fn run_it, void* with, int fd)
      : run(run_it), argument(with), file(fd) {}

  rte_intr_callback_fn run;
  void* argument;
  OpenFile file;  // that it waits for
  std::atomic<rte_intr_unregister_callback_fn> ended{nullptr};
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

bool is_of_memif(rte_intr_callback_fn run) {
  Dl_info found = {};
  return dladdr(reinterpret_cast<void*>(run), &found) != 0 && found.dli_fname != nullptr &&
         std::strstr(found.dli_fname, "net_memif") != nullptr;
}

// One that is not over.
Handler* find(rte_intr_callback_fn run, const void* argument) {
  const std::lock_guard lock(handlers().mutex);
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

// DPDK's own functions.
int register_in_dpdk(const rte_intr_handle* interrupt, rte_intr_callback_fn run, void* argument) {
  static const auto function =
      function_in_dpdk(&rte_intr_callback_register, "rte_intr_callback_register");
  return function(interrupt, run, argument);
}

int unregister_in_dpdk(const rte_intr_handle* interrupt, rte_intr_callback_fn run, void* argument) {
  static const auto function =
      function_in_dpdk(&rte_intr_callback_unregister, "rte_intr_callback_unregister");
  return function(interrupt, run, argument);
}

int unregister_later_in_dpdk(const rte_intr_handle* interrupt, rte_intr_callback_fn run,
                             void* argument, rte_intr_unregister_callback_fn ended) {
  static const auto function = function_in_dpdk(&rte_intr_callback_unregister_pending,
                                                "rte_intr_callback_unregister_pending");
  return function(interrupt, run, argument, ended);
}

void run_alone(void* handler);

// By DPDK's interrupt thread, when the handler has returned.
void end_handler(rte_intr_handle* interrupt, void* handler) {
  auto* const asked = static_cast<Handler*>(handler);
  const rte_intr_unregister_callback_fn ended = asked->ended.load();
  if (ended != nullptr) ended(interrupt, asked->argument);
  forget(asked);
}

// Takes a handler from DPDK, at once or when it has returned. `ended` is called then, if there is
// one. Returns what DPDK's functions do. REQUIRES: no other thread ends it.
int end(const rte_intr_handle* interrupt, Handler* handler, rte_intr_unregister_callback_fn ended) {
  handler->ended.store(ended);
  handler->is_over.store(true);
  // Each of the two functions refuses what the other one does; in between the handler may return.
  for (;;) {
    int result = unregister_later_in_dpdk(interrupt, run_alone, handler, end_handler);
    if (result > 0) return result;
    if (result == -EAGAIN) result = unregister_in_dpdk(interrupt, run_alone, handler);
    if (result == -EAGAIN) continue;
    if (result > 0) end_handler(const_cast<rte_intr_handle*>(interrupt), handler);
    if (result <= 0) handler->is_over.store(false);
    return result;
  }
}

// The same where the driver's description of the interrupt may be gone.
void end_by_number(Handler* handler) {
  rte_intr_handle* const interrupt = rte_intr_instance_alloc(RTE_INTR_INSTANCE_F_PRIVATE);
  if (interrupt == nullptr) return;
  if (rte_intr_fd_set(interrupt, handler->file.fd) == 0 &&
      rte_intr_type_set(interrupt, RTE_INTR_HANDLE_EXT) == 0) {
    (void)end(interrupt, handler, nullptr);
  }
  rte_intr_instance_free(interrupt);
}

template <typename Condition>
std::vector<Handler*> handlers_that(const Condition& condition) {
  std::vector<Handler*> found;
  const std::lock_guard lock(handlers().mutex);
  for (const std::unique_ptr<Handler>& handler : handlers().all) {
    if (!handler->is_over && condition(*handler)) found.push_back(handler.get());
  }
  return found;
}

// When a peer goes before it is greeted, the driver closes and frees the connection, but leaves the
// handler with DPDK, which ends the process as soon as it waits for that descriptor.
void end_closed() {
  const auto is_closed = [](const Handler& handler) { return handler.file.is_closed(); };
  for (Handler* const handler : handlers_that(is_closed)) end_by_number(handler);
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
  end_closed();
  all.closed.store(false);
}

}  // namespace

void* find_in_dpdk(const char* name) {
  static void* const library = [] {
    Dl_info found = {};
    void* const known = dlsym(RTLD_DEFAULT, "rte_eal_init");
    if (known == nullptr || dladdr(known, &found) == 0) return static_cast<void*>(nullptr);
    return dlopen(found.dli_fname, RTLD_NOW | RTLD_NOLOAD);
  }();
  return library == nullptr ? nullptr : dlsym(library, name);
}

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

void end_memif_handlers() {
  for (Handler* const handler : handlers_that([](const Handler&) { return true; })) {
    end_by_number(handler);
  }
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
  if (!is_of_memif(run)) return register_in_dpdk(interrupt, run, argument);
  auto made = std::make_unique<Handler>(run, argument, rte_intr_fd_get(interrupt));
  Handler* const handler = made.get();
  {
    const std::lock_guard lock(handlers().mutex);
    handlers().all.push_back(std::move(made));
  }
  const int result = register_in_dpdk(interrupt, run_alone, handler);
  if (result < 0) forget(handler);
  return result;
}

WC_FOUND_BY_DRIVERS int rte_intr_callback_unregister(const rte_intr_handle* interrupt,
                                                     rte_intr_callback_fn run, void* argument) {
  using namespace warpcache::io;
  Handler* const handler = find(run, argument);
  if (handler == nullptr) return unregister_in_dpdk(interrupt, run, argument);
  const int result = unregister_in_dpdk(interrupt, run_alone, handler);
  if (result > 0) forget(handler);
  return result;
}

WC_FOUND_BY_DRIVERS int rte_intr_callback_unregister_pending(
    const rte_intr_handle* interrupt, rte_intr_callback_fn run, void* argument,
    rte_intr_unregister_callback_fn ended) {
  using namespace warpcache::io;
  Handler* const handler = find(run, argument);
  if (handler == nullptr) return unregister_later_in_dpdk(interrupt, run, argument, ended);
  return end(interrupt, handler, ended);
}
