// SPDX-License-Identifier: Apache-2.0
// A control-flow graph: blocks of instructions, the edges between them, calls, and the
// machine code's reconvergence.
#ifndef WARPCACHE_SIM_SIMT_GRAPH_H_
#define WARPCACHE_SIM_SIMT_GRAPH_H_

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

namespace warpcache::simt {

// Successors that are not blocks. They have values that no block number has.
inline constexpr uint32_t kExit = UINT32_MAX;        // the thread has ended
inline constexpr uint32_t kReturn = UINT32_MAX - 1;  // from a function to the block after its call
inline constexpr uint32_t kNone = UINT32_MAX - 2;    // no block, no function, no loop

constexpr bool is_block(uint32_t to) { return to < kNone; }

// Convergence barriers (B0 to B15) of Volta and later; the last one is the whole warp.
inline constexpr uint8_t kBarriers = 17;
inline constexpr uint8_t kWholeWarp = 16;
inline constexpr uint8_t kNoBarrier = UINT8_MAX;

enum class BarrierOp : uint8_t {
  kOpen,     // BSSY: the barrier waits for the active lanes
  kBreak,    // BREAK: lanes leave the barrier
  kSave,     // BMOV to a register; the barrier is empty then
  kRestore,  // BMOV from a register
};

// The lanes that an action applies to, by their branch at the block's end.
enum class Who : uint8_t { kAll, kTakers, kOthers };

struct BarrierAction {
  BarrierOp op;
  uint8_t barrier;
  uint8_t reg = 0;  // of kSave and kRestore; 255 is RZ
  Who who = Who::kAll;
};

// In a block with two successors the last one is the target of the taken branch.
struct Block {
  std::string name;
  uint32_t function = 0;
  uint32_t instructions = 0;
  uint64_t address = 0;              // of the last instruction; 0: not known
  std::vector<uint32_t> successors;  // blocks, kExit or kReturn; never empty
  std::vector<double> weights;       // of the successors as the graph's file gives them, or empty
  uint32_t call = kNone;             // the function that runs between this block and its successor
  std::vector<BarrierAction> actions = {};
  uint8_t sync = kNoBarrier;  // waits at its end for this barrier's lanes
  bool yields = false;        // YIELD at its end: other groups may run first
  bool loads = false;         // has an instruction whose result comes late
  bool if_divided = false;    // BRA.DIV: taken where the group is not the whole warp
  bool collects = false;      // with `sync`: WARPSYNC.COLLECTIVE, up to a block that
  bool disperses = false;     // ends with ENDCOLLECTIVE
  // Of a branch on a vote (VOTE.ANY, VOTE.ALL): the number of the successor that a warp takes if
  // any of its lanes wants to; kNone: no vote.
  uint32_t vote = kNone;
};

struct Function {
  std::string name;
  uint32_t entry = kNone;
};

struct Graph {
  std::vector<Block> blocks;
  std::vector<Function> functions;

  // kNone where there is none.
  uint32_t find_block(const std::string& name) const;
  // By its whole name, or by a part of it that no other function has; kernels' local functions,
  // which nvdisasm names with a '$' in front, only by the whole. kNone otherwise.
  uint32_t find_function(const std::string& name) const;
};

inline uint32_t Graph::find_block(const std::string& name) const {
  for (uint32_t i = 0; i < blocks.size(); ++i) {
    if (blocks[i].name == name) return i;
  }
  return kNone;
}

inline uint32_t Graph::find_function(const std::string& name) const {
  uint32_t found = kNone;
  uint32_t count = 0;
  for (uint32_t i = 0; i < functions.size(); ++i) {
    if (functions[i].name == name) return i;
    if (functions[i].name[0] == '$' || functions[i].name.find(name) == std::string::npos) continue;
    found = i;
    ++count;
  }
  return count == 1 ? found : kNone;
}

}  // namespace warpcache::simt

#endif  // WARPCACHE_SIM_SIMT_GRAPH_H_
