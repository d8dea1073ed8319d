// SPDX-License-Identifier: Apache-2.0
#include "server/testing/refusal.h"

#include <cstdlib>
#include <new>

namespace warpcache::server {
namespace {

Refusal the_refusal;
thread_local bool exempt = false;

void* allocate(size_t bytes) {
  if (!exempt) {
    const int64_t number = the_refusal.asked.fetch_add(1) + 1;
    if (number >= the_refusal.first && number <= the_refusal.last) return nullptr;
  }
  return std::malloc(bytes);
}

}  // namespace

Refusal& refusal() { return the_refusal; }

void exempt_this_thread() { exempt = true; }

}  // namespace warpcache::server

void* operator new(size_t bytes) {
  void* const memory = warpcache::server::allocate(bytes);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
void* operator new(size_t bytes, const std::nothrow_t& /*tag*/) noexcept {
  return warpcache::server::allocate(bytes);
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t /*bytes*/) noexcept { std::free(memory); }
