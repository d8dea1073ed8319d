// SPDX-License-Identifier: Apache-2.0
#include "edge/interpret.h"

#include <fmt/core.h>

#include <algorithm>
#include <bit>

#include "edge/arithmetic.h"
#include "simt/warp.h"

namespace warpcache::edge_sim {
namespace {

using simt::LaneMask;
constexpr uint64_t kRegionGap = uint64_t{1} << 21;
constexpr uint32_t kBanks = 32;

template <typename Visit>
void each_lane(LaneMask mask, Visit visit) {
  for (; mask != 0; mask &= mask - 1) visit(static_cast<uint32_t>(std::countr_zero(mask)));
}

struct StackEntry {
  uint32_t block, meets;
  LaneMask lanes;
};

struct WarpState {
  uint32_t number = 0;
  LaneMask ended = 0, present = 0;
  std::vector<StackEntry> stack;
  uint32_t at = 0;     // instruction
  bool waits = false;  // at a barrier
  std::vector<uint64_t> registers;
  std::vector<uint32_t> producer;  // per register: step + 1
  WarpTrace* trace = nullptr;
};

class Cta {
 public:
  Cta(const Kernel& kernel, const Launch& launch, const Regions& regions,
      const RecordOptions& options, KernelTrace* out)
      : kernel_(kernel),
        launch_(launch),
        regions_(regions),
        options_(options),
        out_(out),
        shared_(kernel.shared_bytes) {}

  bool run(uint32_t x, uint32_t y, uint64_t* steps_left, std::string* why) {
    x_ = x, y_ = y, steps_left_ = steps_left;
    const uint32_t threads = launch_.block_x * launch_.block_y;
    const uint32_t count = (threads + options_.warp_size - 1) / options_.warp_size;
    out_->ctas.emplace_back(count);
    if (options_.paths) out_->paths.resize(out_->paths.size() + threads);
    paths_ = options_.paths ? out_->paths.data() + out_->paths.size() - threads : nullptr;
    std::vector<WarpState> warps(count);
    for (uint32_t w = 0; w < count; ++w) start(w, threads, &warps[w]);
    while (true) {
      bool all_ended = true;
      for (WarpState& warp : warps) {
        if (!run_warp(warp)) {
          *why = fmt::format("kernel {}: {}", kernel_.name, why_);
          return false;
        }
        all_ended &= warp.stack.empty();
      }
      if (all_ended) return true;
      for (WarpState& warp : warps) warp.waits = false;
    }
  }

 private:
  void start(uint32_t number, uint32_t threads, WarpState* warp) {
    warp->number = number;
    warp->present =
        simt::first_lanes(std::min(options_.warp_size, threads - number * options_.warp_size));
    warp->stack.push_back({0, simt::kExit, warp->present});
    warp->registers.assign(size_t{kernel_.registers} * options_.warp_size, 0);
    warp->producer.assign(kernel_.registers, 0);
    warp->trace = &out_->ctas.back()[number];
    enter(*warp);
  }

  void enter(WarpState& warp) {
    if (warp.stack.empty()) return;
    const StackEntry& top = warp.stack.back();
    warp.at = kernel_.first[top.block];
    if (paths_ == nullptr) return;
    each_lane(top.lanes, [&](uint32_t lane) {
      paths_[warp.number * options_.warp_size + lane].push_back(top.block);
    });
  }

  // Until the warp waits at a barrier or ends.
  bool run_warp(WarpState& warp) {
    while (!warp.stack.empty() && !warp.waits) {
      if (*steps_left_ == 0) return refuse("it has no end within the steps allowed");
      --*steps_left_;
      const Instruction& one = kernel_.code[warp.at];
      const LaneMask lanes = active(warp, one);
      if (one.op == Op::kBra || one.op == Op::kRet || one.op == Op::kTrap) {
        emit(warp, one, warp.stack.back().lanes, kNoAccess);
        if (one.op == Op::kTrap && lanes != 0) return refuse("it traps");
        leave_block(warp, one, lanes);
        continue;
      }
      if (!execute(warp, one, lanes)) return false;
      if (++warp.at == kernel_.first[warp.stack.back().block + 1]) fall_through(warp);
    }
    return true;
  }

  LaneMask active(const WarpState& warp, const Instruction& one) const {
    LaneMask lanes = warp.stack.back().lanes;
    if (one.predicate < 0) return lanes;
    LaneMask on = 0;
    each_lane(lanes, [&](uint32_t lane) {
      const bool value =
          (warp.registers[static_cast<size_t>(one.predicate) * options_.warp_size + lane] & 1) != 0;
      if (value != one.predicate_not) on |= LaneMask{1} << lane;
    });
    return on;
  }

  void fall_through(WarpState& warp) { go(warp, warp.stack.back().block + 1); }

  // All lanes of the top go on to `block`.
  void go(WarpState& warp, uint32_t block) {
    warp.stack.back().block = block;
    settle(warp);
  }

  // Removes entries that have met the one below or whose lanes have ended; begins the block on top.
  void settle(WarpState& warp) {
    while (!warp.stack.empty()) {
      StackEntry& top = warp.stack.back();
      top.lanes &= ~warp.ended;
      if (top.lanes != 0 && top.block != top.meets && simt::is_block(top.block)) break;
      warp.stack.pop_back();
    }
    enter(warp);
  }

  void leave_block(WarpState& warp, const Instruction& one, LaneMask lanes) {
    StackEntry& top = warp.stack.back();
    const uint32_t next = top.block + 1;
    if (one.op == Op::kRet) {
      warp.ended |= lanes;
      top.block = next;
      return settle(warp);
    }
    const LaneMask others = top.lanes & ~lanes;
    if (others == 0) return go(warp, one.target);
    if (lanes == 0) return go(warp, next);
    const uint32_t meets = kernel_.meets[top.block];
    top.block = meets;  // the rest waits there; simt::kExit: nobody goes on
    if (!simt::is_block(meets)) warp.stack.pop_back();
    if (next != meets) warp.stack.push_back({next, meets, others});
    if (one.target != meets) warp.stack.push_back({one.target, meets, lanes});
    settle(warp);
  }

  void emit(WarpState& warp, const Instruction& one, LaneMask lanes, uint32_t access) {
    std::vector<uint32_t> waits;
    const auto wait_for = [&](uint32_t step) {
      if (step != 0 && std::find(waits.begin(), waits.end(), step) == waits.end())
        waits.push_back(step);
    };
    for (uint32_t i = 0; i < one.sources; ++i) {
      if (one.source[i].kind == OperandKind::kRegister) wait_for(warp.producer[one.source[i].reg]);
    }
    if (one.base.kind == OperandKind::kRegister) wait_for(warp.producer[one.base.reg]);
    if (one.predicate >= 0) wait_for(warp.producer[static_cast<size_t>(one.predicate)]);
    const bool partial = lanes != warp.present;
    for (uint32_t i = 0; partial && i < one.destinations; ++i)
      wait_for(warp.producer[one.destination[i]]);
    std::sort(waits.rbegin(), waits.rend());
    uint32_t result = waits.empty() ? 0 : waits[0];
    if (one.slots > 0) {
      Step step;
      step.instruction = warp.at;
      step.access = access;
      step.lanes = static_cast<uint8_t>(std::popcount(lanes));
      for (uint32_t i = 0; i < std::min<size_t>(waits.size(), kWaitsMax); ++i)
        step.waits[i] = waits[i];
      warp.trace->push_back(step);
      result = static_cast<uint32_t>(warp.trace->size());
    }
    for (uint32_t i = 0; i < one.destinations; ++i) warp.producer[one.destination[i]] = result;
  }

  uint64_t special(const WarpState& warp, Special which, uint32_t lane) const {
    const uint32_t thread = warp.number * options_.warp_size + lane;
    switch (which) {
      case Special::kTidX:
        return thread % launch_.block_x;
      case Special::kTidY:
        return thread / launch_.block_x;
      case Special::kNtidX:
        return launch_.block_x;
      case Special::kNtidY:
        return launch_.block_y;
      case Special::kCtaidX:
        return x_;
      case Special::kCtaidY:
        return y_;
      case Special::kNctaidX:
        return launch_.grid_x;
      case Special::kNctaidY:
        return launch_.grid_y;
      case Special::kLane:
        return lane;
    }
    return 0;
  }

  uint64_t value(const WarpState& warp, const Operand& operand, uint32_t lane) const {
    if (operand.kind == OperandKind::kRegister)
      return warp.registers[size_t{operand.reg} * options_.warp_size + lane];
    if (operand.kind == OperandKind::kSpecial) return special(warp, operand.special, lane);
    return operand.value;
  }

  bool execute(WarpState& warp, const Instruction& one, LaneMask lanes) {
    uint32_t access = kNoAccess;
    if (one.op == Op::kBar) {
      warp.waits = true;
    } else if (one.op == Op::kLoad || one.op == Op::kStore || one.op == Op::kAtom) {
      if (!touch(warp, one, lanes, &access)) return false;
    } else if (one.op != Op::kFence && one.op != Op::kSleep) {
      each_lane(lanes, [&](uint32_t lane) {
        uint64_t in[kOperandsMax] = {};
        for (uint32_t i = 0; i < one.sources; ++i) in[i] = value(warp, one.source[i], lane);
        warp.registers[size_t{one.destination[0]} * options_.warp_size + lane] = compute(one, in);
      });
    }
    emit(warp, one, lanes, access);
    return true;
  }

  bool touch(WarpState& warp, const Instruction& one, LaneMask lanes, uint32_t* access) {
    const uint32_t bytes = one.type.bits / 8;
    const uint32_t pieces = one.op == Op::kStore  ? one.sources
                            : one.op == Op::kLoad ? one.destinations
                                                  : 1;
    places_.clear();
    bool sound = true;
    each_lane(lanes, [&](uint32_t lane) {
      if (!sound) return;
      const uint64_t base = one.base.kind == OperandKind::kNone ? 0 : value(warp, one.base, lane);
      const uint64_t address = base + static_cast<uint64_t>(one.offset);
      uint64_t place = address;
      uint8_t* const data = locate(one, address, bytes * pieces, &place);
      sound = data != nullptr;
      if (!sound) return;
      places_.push_back(place);
      move(warp, one, lane, data, bytes);
    });
    if (sound && one.space != Space::kParam && !places_.empty())
      *access = note(one, bytes * pieces);
    return sound;
  }

  uint8_t* locate(const Instruction& one, uint64_t address, uint32_t bytes, uint64_t* place) {
    if (one.space == Space::kShared) {
      if (address <= shared_.size() && bytes <= shared_.size() - address)
        return shared_.data() + address;
      return refuse_address("shared memory", address);
    }
    if (one.space == Space::kParam) {
      if (address + bytes <= launch_.parameters.size())
        return const_cast<uint8_t*>(launch_.parameters.data()) + address;
      return refuse_address("its parameters", address);
    }
    if (address % (one.type.bits / 8) == 0 && regions_.find(address, bytes, place))
      return reinterpret_cast<uint8_t*>(address);
    return refuse_address("its buffers", address);
  }

  uint8_t* refuse_address(const char* where, uint64_t address) {
    refuse(fmt::format("address {:#x} is not in {}, or not aligned", address, where));
    return nullptr;
  }

  void move(WarpState& warp, const Instruction& one, uint32_t lane, uint8_t* data, uint32_t bytes) {
    const auto slot = [&](uint32_t i) -> uint64_t& {
      return warp.registers[size_t{one.destination[i]} * options_.warp_size + lane];
    };
    if (one.op == Op::kStore) {
      for (uint32_t i = 0; i < one.sources; ++i) {
        const uint64_t bits = value(warp, one.source[i], lane);
        __builtin_memcpy(data + i * bytes, &bits, bytes);
      }
      return;
    }
    uint64_t before[kOperandsMax] = {};
    for (uint32_t i = 0; i < std::max<uint32_t>(1, one.destinations); ++i) {
      __builtin_memcpy(&before[i], data + i * bytes, bytes);
      if (one.type.is_signed) before[i] = truncate(extend(before[i], one.type.bits), 64);
    }
    if (one.op == Op::kAtom) {
      const uint64_t after = apply_atomic(one, before[0], value(warp, one.source[0], lane),
                                          one.sources > 1 ? value(warp, one.source[1], lane) : 0);
      __builtin_memcpy(data, &after, bytes);
    }
    for (uint32_t i = 0; i < one.destinations; ++i) slot(i) = before[i];
  }

  uint32_t note(const Instruction& one, uint32_t bytes) {
    Access access;
    if (one.space == Space::kShared) {
      access.degree = static_cast<uint16_t>(conflicts());
    } else {
      access.first = static_cast<uint32_t>(out_->sectors.size());
      std::vector<uint32_t> sectors;
      for (const uint64_t place : places_) {
        for (uint64_t s = place / kSectorBytes; s <= (place + bytes - 1) / kSectorBytes; ++s) {
          sectors.push_back(static_cast<uint32_t>(s));
        }
      }
      std::sort(sectors.begin(), sectors.end());
      sectors.erase(std::unique(sectors.begin(), sectors.end()), sectors.end());
      access.count = static_cast<uint16_t>(sectors.size());
      out_->sectors.insert(out_->sectors.end(), sectors.begin(), sectors.end());
    }
    out_->accesses.push_back(access);
    return static_cast<uint32_t>(out_->accesses.size() - 1);
  }

  // Different words of the bank that most lanes want.
  uint32_t conflicts() {
    std::vector<uint64_t> words;
    for (const uint64_t place : places_) words.push_back(place / 4);
    std::sort(words.begin(), words.end());
    words.erase(std::unique(words.begin(), words.end()), words.end());
    uint32_t wanted[kBanks] = {}, most = 1;
    for (const uint64_t word : words) most = std::max(most, ++wanted[word % kBanks]);
    return most;
  }

  bool refuse(const std::string& why) {
    why_ = why;
    return false;
  }

  const Kernel& kernel_;
  const Launch& launch_;
  const Regions& regions_;
  const RecordOptions& options_;
  KernelTrace* out_;
  std::vector<uint8_t> shared_;
  std::vector<uint64_t> places_;
  std::vector<uint32_t>* paths_ = nullptr;
  uint64_t* steps_left_ = nullptr;
  uint32_t x_ = 0, y_ = 0;
  std::string why_;
};

}  // namespace

void Regions::add(void* data, uint64_t bytes) {
  const auto begin = reinterpret_cast<uint64_t>(data);
  regions_.push_back({begin, begin + bytes, next_});
  next_ += (bytes + kSectorBytes + kRegionGap - 1) / kRegionGap * kRegionGap;
}

bool Regions::find(uint64_t address, uint32_t bytes, uint64_t* place) const {
  for (size_t i = 0; i < regions_.size(); ++i) {
    const size_t at = (last_ + i) % regions_.size();
    const Region& region = regions_[at];
    if (address < region.begin || address >= region.end || bytes > region.end - address) continue;
    last_ = at;
    *place = region.place + (address - region.begin);
    return true;
  }
  return false;
}

uint64_t KernelTrace::machine_instructions() const {
  uint64_t sum = 0;
  for (const CtaTrace& cta : ctas) {
    for (const WarpTrace& warp : cta) {
      for (const Step& step : warp) sum += kernel->code[step.instruction].slots;
    }
  }
  return sum;
}

uint64_t KernelTrace::lane_instructions() const {
  uint64_t sum = 0;
  for (const CtaTrace& cta : ctas) {
    for (const WarpTrace& warp : cta) {
      for (const Step& step : warp)
        sum += uint64_t{kernel->code[step.instruction].slots} * step.lanes;
    }
  }
  return sum;
}

bool record(const Kernel& kernel, const Launch& launch, const Regions& regions,
            const RecordOptions& options, KernelTrace* out, std::string* why) {
  const uint64_t threads = uint64_t{launch.block_x} * launch.block_y;
  const bool sound = threads >= 1 && threads <= 1024 && launch.grid_x > 0 && launch.grid_y > 0 &&
                     options.warp_size >= 1 && options.warp_size <= simt::kLanesMax &&
                     launch.parameters.size() >= kernel.parameter_bytes;
  if (!sound) {
    *why = fmt::format(
        "kernel {}: a launch without threads, with more than 1024, or without its parameters",
        kernel.name);
    return false;
  }
  out->kernel = &kernel;
  out->name = kernel.name;
  out->warp_size = options.warp_size;
  out->threads = static_cast<uint32_t>(threads);
  uint64_t steps_left = options.steps_max;
  for (uint32_t y = 0; y < launch.grid_y; ++y) {
    for (uint32_t x = 0; x < launch.grid_x; ++x) {
      Cta cta(kernel, launch, regions, options, out);
      if (!cta.run(x, y, &steps_left, why)) return false;
    }
  }
  return true;
}

}  // namespace warpcache::edge_sim
