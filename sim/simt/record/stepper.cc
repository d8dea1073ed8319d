// SPDX-License-Identifier: Apache-2.0
#include "simt/record/stepper.h"

#include <ucontext.h>

#include <csignal>
#include <cstring>

namespace warpcache::simt {
namespace {

// What the signal handler writes; memory is taken beforehand.
uintptr_t g_begin;
uintptr_t g_end;
uint32_t* g_steps;
volatile uint32_t g_count;
std::vector<uint32_t> g_result;
std::vector<uint32_t> g_memory;
struct sigaction g_before;

void on_step(int, siginfo_t*, void* context) {
  const auto& registers = static_cast<ucontext_t*>(context)->uc_mcontext.gregs;
  const auto at = static_cast<uintptr_t>(registers[REG_RIP]);
  if (at < g_begin || at >= g_end) return;
  const uint32_t count = g_count;
  if (count < Stepper::kStepsMax) g_steps[count] = static_cast<uint32_t>(at - g_begin);
  g_count = count + 1;
}

// The trap flag makes the processor signal after every instruction, from the next on.
inline void set_trap_flag() {
  asm volatile("pushfq; orq $0x100, (%%rsp); popfq" ::: "memory", "cc");
}
inline void clear_trap_flag() {
  asm volatile("pushfq; andq $~0x100, (%%rsp); popfq" ::: "memory", "cc");
}

}  // namespace

Stepper::Stepper(uintptr_t begin, uintptr_t end) {
  g_begin = begin;
  g_end = end;
  g_memory.resize(kStepsMax);
  g_steps = g_memory.data();
  struct sigaction action;
  std::memset(&action, 0, sizeof(action));
  action.sa_sigaction = on_step;
  action.sa_flags = SA_SIGINFO;
  sigaction(SIGTRAP, &action, &g_before);
}

Stepper::~Stepper() { sigaction(SIGTRAP, &g_before, nullptr); }

const std::vector<uint32_t>& Stepper::run(void (*function)(void*), void* argument) {
  g_count = 0;
  set_trap_flag();
  function(argument);
  clear_trap_flag();
  const uint32_t count = g_count;
  g_result.assign(g_steps, g_steps + (count <= kStepsMax ? count : 0));
  return g_result;
}

}  // namespace warpcache::simt
