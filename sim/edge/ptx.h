// SPDX-License-Identifier: Apache-2.0
// Kernels as PTX, the virtual instruction set that nvcc writes: the part of it that integer, single
// precision, memory and barrier code needs. A kernel is read into blocks that cfg-sim's analysis
// understands, with what each instruction costs on a machine.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "simt/graph.h"

namespace warpcache::edge_sim {

enum class Op : uint8_t {
  kMov,
  kAdd,
  kSub,
  kMul,
  kMad,
  kDiv,
  kRem,
  kMin,
  kMax,
  kAnd,
  kOr,
  kXor,
  kNot,
  kNeg,
  kAbs,
  kShl,
  kShr,
  kShf,
  kBfi,
  kPrmt,
  kClz,
  kBrev,
  kBfind,
  kSetp,
  kSelp,
  kCvt,
  kSqrt,
  kRcp,
  kLoad,
  kStore,
  kAtom,
  kBar,
  kFence,
  kBra,
  kRet,
  kTrap,
  kSleep,
};

// Width in bits and kind. A predicate is 1 bit wide.
struct Type {
  uint8_t bits = 32;
  bool is_signed = false;
  bool is_float = false;
};

enum class Compare : uint8_t { kEq, kNe, kLt, kLe, kGt, kGe };
enum class Half : uint8_t { kLow, kHigh, kWide };
enum class Space : uint8_t { kGlobal, kShared, kParam };
enum class Atom : uint8_t { kAdd, kExchange, kCompareSwap, kOr, kAnd, kMin, kMax };

enum class OperandKind : uint8_t { kNone, kRegister, kImmediate, kSpecial };
enum class Special : uint8_t {
  kTidX,
  kTidY,
  kNtidX,
  kNtidY,
  kCtaidX,
  kCtaidY,
  kNctaidX,
  kNctaidY,
  kLane
};

struct Operand {
  OperandKind kind = OperandKind::kNone;
  Special special = Special::kTidX;
  uint32_t reg = 0;
  uint64_t value = 0;
};

// The pipeline that executes an instruction.
enum class Unit : uint8_t {
  kAlu,
  kWide,
  kSpecial,
  kGlobalLoad,
  kGlobalStore,
  kAtomic,
  kShared,
  kBarrier,
  kFence,
  kControl
};

inline constexpr uint32_t kOperandsMax = 4;

struct Instruction {
  Op op = Op::kMov;
  Type type;
  Type from;  // of kCvt; of kMul with kWide: the sources
  Compare compare = Compare::kEq;
  Half half = Half::kLow;
  Space space = Space::kGlobal;
  Atom atom = Atom::kAdd;
  bool left = false;     // kShf
  bool ordered = false;  // volatile, acquire, release: not moved by the scheduler
  bool bypass = false;   // does not read the L1: volatile and ordered loads
  uint8_t destinations = 0;
  uint8_t sources = 0;
  uint32_t destination[kOperandsMax] = {};
  Operand source[kOperandsMax] = {};
  Operand base;  // of memory operations: the address is base + offset
  int64_t offset = 0;
  int32_t predicate = -1;  // a register; -1: none
  bool predicate_not = false;
  uint32_t target = 0;  // of kBra: a block
  // --- What it is on a machine
  Unit unit = Unit::kAlu;
  uint8_t slots = 1;  // machine instructions; 0: folded into another, or a copy
};

struct Kernel {
  std::string name;
  uint32_t registers = 0;          // virtual ones, of the interpreter
  uint32_t machine_registers = 0;  // a thread, as ptxas reports
  uint32_t shared_bytes = 0;
  uint32_t parameter_bytes = 0;
  std::vector<Instruction> code;
  std::vector<uint32_t> first;  // per block its first instruction, then the number of instructions
  std::vector<uint32_t> slot;   // per instruction its place in the machine code
  uint32_t slots = 0;           // of the whole kernel
  simt::Graph graph;            // of `first`'s blocks, one function
  std::vector<uint32_t> meets;  // per block: where diverged lanes meet, a block or simt::kExit
};

// The kernels of a module as nvcc --ptx writes it. Lines "// registers NAME COUNT" give
// machine_registers (32 without). False: `why` names the line or what is not supported.
bool read_ptx(const std::string& text, std::map<std::string, Kernel>* kernels, std::string* why);

}  // namespace warpcache::edge_sim
