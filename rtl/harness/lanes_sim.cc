// SPDX-License-Identifier: Apache-2.0
#include "lanes_sim.h"

#include <verilated.h>

#include "Vmc_lanes.h"

namespace warpcache::rtl {

namespace {

// Field `i` of a port that has a field of `bits` bits for each lane. Ports of up to 64 bits are
// numbers, longer ones arrays of 32 bits.
template <typename Port>
uint64_t get(const Port& port, uint32_t i, uint32_t bits) {
  const uint64_t mask = (uint64_t{1} << bits) - 1;
  return static_cast<uint64_t>(port) >> (i * bits) & mask;
}
template <typename Port>
void put(Port& port, uint32_t i, uint32_t bits, uint64_t value) {
  const uint64_t mask = ((uint64_t{1} << bits) - 1) << (i * bits);
  port = static_cast<Port>((static_cast<uint64_t>(port) & ~mask) | (value << (i * bits) & mask));
}
template <typename Wide>
uint64_t get64(const Wide& port, uint32_t i) {
  return uint64_t{port[2 * i]} | uint64_t{port[2 * i + 1]} << 32;
}
template <typename Wide>
void put64(Wide& port, uint32_t i, uint64_t value) {
  port[2 * i] = static_cast<uint32_t>(value);
  port[2 * i + 1] = static_cast<uint32_t>(value >> 32);
}

}  // namespace

LanesSim::LanesSim(const SimConfig& config)
    : config_(config),
      random_(config.seed),
      context_(std::make_unique<VerilatedContext>()),
      top_(std::make_unique<Vmc_lanes>(context_.get())),
      lanes_(kLanes) {
  constexpr uint32_t kReadyRegister = 3;
  top_->rst = 1;
  top_->udp_port = config.udp_port;
  for (uint32_t i = 0; i < 3; ++i) top_->hold[i] = 0;
  top_->csr_lane = 0;
  top_->csr_address = kReadyRegister;
  for (int i = 0; i < 4; ++i) {
    top_->clk = 0;
    top_->eval();
    top_->clk = 1;
    top_->eval();
  }
  top_->rst = 0;
  for (uint32_t lane = 0; lane < kLanes; ++lane) {
    while ((read_register(lane, kReadyRegister) & 1) == 0) {
    }
  }
}

LanesSim::~LanesSim() { top_->final(); }

void LanesSim::drive() {
  constexpr uint32_t kHolds = 12;  // of a lane
  if (config_.hold_percent != 0) {
    for (uint32_t word = 0; word < 3; ++word) top_->hold[word] = 0;
    for (uint32_t bit = 0; bit < kHolds * kLanes; ++bit)
      if (random_.holds(config_)) top_->hold[bit / 32] |= uint32_t{1} << bit % 32;
  }
  for (uint32_t i = 0; i < kLanes; ++i) {
    const FramePorts::Inputs& frames = lanes_[i].frames.drive(config_, random_);
    put(top_->rx_valid, i, 1, frames.rx_valid);
    put64(top_->rx_data, i, frames.rx_data);
    put(top_->rx_bytes, i, 4, frames.rx_bytes);
    put(top_->rx_last, i, 1, frames.rx_last);
    put(top_->rx_error, i, 1, frames.rx_error);
    put(top_->tx_ready, i, 1, frames.tx_ready);
    const MemoryPort::Inputs& memory = lanes_[i].memory.drive(config_, random_, cycles_);
    put(top_->ar_ready, i, 1, memory.ar_ready);
    put(top_->r_valid, i, 1, memory.r_valid);
    put(top_->r_tag, i, 6, memory.r_tag);
    put64(top_->r_data, 2 * i, memory.r_data[0]);
    put64(top_->r_data, 2 * i + 1, memory.r_data[1]);
    put(top_->aw_ready, i, 1, memory.aw_ready);
    put(top_->w_ready, i, 1, memory.w_ready);
    put(top_->b_valid, i, 1, memory.b_valid);
    put(top_->b_tag, i, 5, memory.b_tag);
  }
}

void LanesSim::sample() {
  for (uint32_t i = 0; i < kLanes; ++i) {
    FramePorts::Outputs frames;
    frames.rx_ready = get(top_->rx_ready, i, 1) != 0;
    frames.tx_valid = get(top_->tx_valid, i, 1) != 0;
    frames.tx_data = get64(top_->tx_data, i);
    frames.tx_bytes = static_cast<uint8_t>(get(top_->tx_bytes, i, 4));
    frames.tx_last = get(top_->tx_last, i, 1) != 0;
    lanes_[i].frames.sample(frames, cycles_);
    MemoryPort::Outputs memory;
    memory.ar_valid = get(top_->ar_valid, i, 1) != 0;
    memory.ar_addr = top_->ar_addr[i];
    memory.ar_len = static_cast<uint8_t>(get(top_->ar_len, i, 3));
    memory.ar_tag = static_cast<uint8_t>(get(top_->ar_tag, i, 6));
    memory.aw_valid = get(top_->aw_valid, i, 1) != 0;
    memory.aw_addr = top_->aw_addr[i];
    memory.aw_len = static_cast<uint8_t>(get(top_->aw_len, i, 4));
    memory.aw_tag = static_cast<uint8_t>(get(top_->aw_tag, i, 5));
    memory.w_valid = get(top_->w_valid, i, 1) != 0;
    memory.w_data = get64(top_->w_data, i);
    memory.w_last = get(top_->w_last, i, 1) != 0;
    lanes_[i].memory.sample(memory, config_, random_, cycles_);
  }
}

void LanesSim::step() {
  drive();
  top_->clk = 0;
  top_->eval();
  sample();
  top_->clk = 1;
  top_->eval();
  ++cycles_;
}

bool LanesSim::ports_idle() const {
  for (const Lane& lane : lanes_)
    if (lane.frames.queued() != 0 || !lane.memory.idle()) return false;
  return true;
}

bool LanesSim::run_until_idle(uint64_t cycles_max) {
  constexpr int kQuietCycles = 400;  // as of Sim
  int quiet = 0;
  for (uint64_t i = 0; i < cycles_max; ++i) {
    step();
    quiet = ports_idle() && top_->idle ? quiet + 1 : 0;
    if (quiet < kQuietCycles) continue;
    bool between = true;
    for (const Lane& lane : lanes_) between = between && lane.frames.between_frames();
    return between;
  }
  return false;
}

void LanesSim::write_register(uint32_t address, uint32_t value) {
  top_->csr_write = 1;
  top_->csr_address = static_cast<uint8_t>(address);
  top_->csr_write_data = value;
  step();
  top_->csr_write = 0;
}

uint32_t LanesSim::read_register(uint32_t lane, uint32_t address) {
  top_->csr_lane = static_cast<uint8_t>(lane);
  top_->csr_address = static_cast<uint8_t>(address);
  step();
  return top_->csr_read_data;
}

}  // namespace warpcache::rtl
