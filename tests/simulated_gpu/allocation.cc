// SPDX-License-Identifier: Apache-2.0
//
// The simulated GPU's own memory. Like a driver's it does not come from the program's operator new,
// which a test may replace. Only this library uses it (kernels.map).
#include <cstdlib>
#include <new>

void* operator new(size_t bytes) {
  void* const memory = std::malloc(bytes);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t /*bytes*/) noexcept { std::free(memory); }
