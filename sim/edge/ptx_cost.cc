// SPDX-License-Identifier: Apache-2.0
#include "edge/ptx_cost.h"

#include <algorithm>
#include <set>

namespace warpcache::edge_sim {
namespace {

constexpr uint32_t kEarlyLoadsMax = 16;  // that ptxas holds in registers at a time in one block

Unit unit_of(const Instruction& one) {
  const bool shared = one.space == Space::kShared;
  switch (one.op) {
    case Op::kLoad:
      return one.space == Space::kParam ? Unit::kAlu : shared ? Unit::kShared : Unit::kGlobalLoad;
    case Op::kStore:
      return shared ? Unit::kShared : Unit::kGlobalStore;
    case Op::kAtom:
      return shared ? Unit::kShared : Unit::kAtomic;
    case Op::kBar:
      return Unit::kBarrier;
    case Op::kFence:
      return Unit::kFence;
    case Op::kBra:
    case Op::kRet:
    case Op::kTrap:
      return Unit::kControl;
    case Op::kSqrt:
    case Op::kRcp:
    case Op::kDiv:
    case Op::kRem:
      return Unit::kSpecial;
    case Op::kMul:
    case Op::kMad:
      return one.type.bits == 64 && !one.type.is_float ? Unit::kWide : Unit::kAlu;
    case Op::kClz:
    case Op::kBrev:
    case Op::kBfind:
      return Unit::kSpecial;
    case Op::kCvt:
      return one.type.is_float != one.from.is_float ? Unit::kSpecial : Unit::kAlu;
    default:
      return Unit::kAlu;
  }
}

// Machine instructions of one PTX instruction by itself.
uint8_t slots_of(const Instruction& one) {
  const bool wide = one.type.bits == 64 && !one.type.is_float;
  switch (one.op) {
    case Op::kMov:  // copies and constants are folded; a special register is read
      return one.source[0].kind == OperandKind::kSpecial ? 1 : 0;
    case Op::kLoad:
      return one.space == Space::kParam ? 0 : 1;
    case Op::kCvt:
      if (one.type.is_float || one.from.is_float) return 1;
      return one.from.is_signed && one.type.bits > one.from.bits ? 1 : 0;
    case Op::kAnd:
    case Op::kOr:
    case Op::kNot:
      return one.type.bits == 1 ? 0 : wide ? 2 : 1;
    case Op::kMul:
      if (one.half == Half::kWide) return 1;
      return wide ? (one.half == Half::kHigh ? 6 : 4) : 1;
    case Op::kMad:
      return one.half == Half::kWide ? 1 : wide ? 4 : 1;
    case Op::kDiv:
    case Op::kRem:
      return one.type.is_float ? 8 : 16;
    case Op::kSqrt:
      return 6;
    case Op::kBfi:
      return wide ? 0 : 1;  // two halves become a register pair
    case Op::kAdd:
    case Op::kSub:
    case Op::kXor:
    case Op::kShl:
    case Op::kShr:
    case Op::kSetp:
    case Op::kSelp:
    case Op::kMin:
    case Op::kMax:
    case Op::kNeg:
      return wide ? 2 : 1;
    default:
      return 1;
  }
}

template <typename Visit>
void each_source(const Instruction& one, Visit visit) {
  for (uint32_t i = 0; i < one.sources; ++i) {
    if (one.source[i].kind == OperandKind::kRegister) visit(one.source[i].reg);
  }
  if (one.base.kind == OperandKind::kRegister) visit(one.base.reg);
  if (one.predicate >= 0) visit(static_cast<uint32_t>(one.predicate));
}

bool writes(const Instruction& one, uint32_t reg) {
  return std::find(one.destination, one.destination + one.destinations, reg) !=
         one.destination + one.destinations;
}

bool reads(const Instruction& one, uint32_t reg) {
  bool found = false;
  each_source(one, [&](uint32_t source) { found |= source == reg; });
  return found;
}

// A product or a shift whose only readers are additions becomes part of them.
void fold_products(Kernel* kernel) {
  std::vector<uint32_t> readers(kernel->registers, 0), adders(kernel->registers, 0);
  for (const Instruction& one : kernel->code) {
    const bool adds = (one.op == Op::kAdd || one.op == Op::kSub) && !one.type.is_float;
    each_source(one, [&](uint32_t reg) {
      ++readers[reg];
      if (adds) ++adders[reg];
    });
  }
  for (Instruction& one : kernel->code) {
    const bool folds = (one.op == Op::kMul && !one.type.is_float && one.half != Half::kHigh &&
                        one.unit != Unit::kWide) ||
                       (one.op == Op::kMul && one.half == Half::kWide) || one.op == Op::kShl;
    if (!folds) continue;
    const uint32_t result = one.destination[0];
    if (readers[result] == 0 || readers[result] != adders[result]) continue;
    one.slots = 0;
    for (Instruction& reader : kernel->code) {
      if (reads(reader, result)) reader.slots = 1;
    }
  }
}

bool may_pass(const Instruction& load, const Instruction& before) {
  const bool other_space = before.op == Op::kStore && before.space != load.space;
  const bool orders = (before.op == Op::kStore && !other_space) || before.op == Op::kAtom ||
                      before.op == Op::kBar || before.op == Op::kFence || before.op == Op::kBra ||
                      before.op == Op::kRet || before.ordered || before.op == Op::kTrap;
  if (orders) return false;
  bool free = true;
  each_source(load, [&](uint32_t reg) { free &= !writes(before, reg); });
  for (uint32_t i = 0; i < load.destinations; ++i) {
    free &= !writes(before, load.destination[i]) && !reads(before, load.destination[i]);
  }
  return free;
}

// Loads, and what their addresses need, go as far up as registers and order allow.
void hoist_loads(Kernel* kernel) {
  for (size_t b = 0; b + 1 < kernel->first.size(); ++b) {
    uint32_t early = 0;
    for (uint32_t i = kernel->first[b]; i < kernel->first[b + 1]; ++i) {
      const Instruction one = kernel->code[i];
      const bool is_load = one.op == Op::kLoad && one.space != Space::kParam && !one.ordered;
      const bool is_address = one.op == Op::kAdd && one.type.bits == 64;
      if (!is_load && !is_address) continue;
      if (is_load && ++early > kEarlyLoadsMax) break;
      uint32_t to = i;
      while (
          to > kernel->first[b] && may_pass(one, kernel->code[to - 1]) &&
          (kernel->code[to - 1].op != Op::kLoad || kernel->code[to - 1].space == Space::kParam)) {
        kernel->code[to] = kernel->code[to - 1];
        --to;
      }
      kernel->code[to] = one;
    }
  }
}

}  // namespace

void assign_costs(Kernel* kernel) {
  for (Instruction& one : kernel->code) {
    one.unit = unit_of(one);
    one.slots = slots_of(one);
  }
  fold_products(kernel);
  hoist_loads(kernel);
  kernel->slot.clear();
  kernel->slots = 0;
  for (const Instruction& one : kernel->code) {
    kernel->slot.push_back(kernel->slots);
    kernel->slots += one.slots;
  }
}

}  // namespace warpcache::edge_sim
