// SPDX-License-Identifier: Apache-2.0
#include "nic_sim.h"

#include <verilated.h>

#include "Vnic_cache.h"

namespace warpcache::rtl {

NicSim::NicSim(const SimConfig& config, uint8_t fill_seconds)
    : config_(config),
      random_(config.seed),
      context_(std::make_unique<VerilatedContext>()),
      cache_(std::make_unique<Vnic_cache>(context_.get())) {
  cache_->rst = 1;
  cache_->udp_port = config.udp_port;
  cache_->fill_seconds = fill_seconds;
  cache_->second_tick = 0;
  cache_->hold = 0;
  cache_->rx_valid = 0;
  cache_->tx_ready = 0;
  cache_->host_rx_valid = 0;
  cache_->host_tx_ready = 0;
  cache_->ar_ready = 0;
  cache_->r_valid = 0;
  cache_->aw_ready = 0;
  cache_->w_ready = 0;
  cache_->b_valid = 0;
  cache_->csr_write = 0;
  cache_->csr_address = 3;
  for (int i = 0; i < 4; ++i) {
    cache_->clk = 0;
    cache_->eval();
    cache_->clk = 1;
    cache_->eval();
  }
  cache_->rst = 0;
  while ((read_register(3) & 1) == 0) {
  }
}

NicSim::~NicSim() { cache_->final(); }

void NicSim::drive() {
  if (config_.hold_percent != 0) {
    uint32_t hold = 0;
    for (int i = 0; i < 12; ++i) hold |= static_cast<uint32_t>(random_.holds(config_)) << i;
    cache_->hold = static_cast<uint16_t>(hold);
  }
  const FramePorts::Inputs& wire = wire_.drive(config_, random_);
  cache_->rx_valid = wire.rx_valid;
  cache_->rx_data = wire.rx_data;
  cache_->rx_bytes = wire.rx_bytes;
  cache_->rx_last = wire.rx_last;
  cache_->rx_error = wire.rx_error;
  cache_->tx_ready = wire.tx_ready;
  const FramePorts::Inputs& host = host_.drive(config_, random_);
  cache_->host_rx_valid = host.rx_valid;
  cache_->host_rx_data = host.rx_data;
  cache_->host_rx_bytes = host.rx_bytes;
  cache_->host_rx_last = host.rx_last;
  cache_->host_tx_ready = host.tx_ready;
  const MemoryPort::Inputs& memory = memory_.drive(config_, random_, cycles_);
  cache_->ar_ready = memory.ar_ready;
  cache_->r_valid = memory.r_valid;
  cache_->r_tag = memory.r_tag;
  for (size_t i = 0; i < 4; ++i)
    cache_->r_data[i] = static_cast<uint32_t>(memory.r_data[i / 2] >> (i % 2 * 32));
  cache_->aw_ready = memory.aw_ready;
  cache_->w_ready = memory.w_ready;
  cache_->b_valid = memory.b_valid;
  cache_->b_tag = memory.b_tag;
}

void NicSim::sample() {
  wire_.sample({cache_->rx_ready != 0, cache_->tx_valid != 0, cache_->tx_data, cache_->tx_bytes,
                cache_->tx_last != 0},
               cycles_);
  host_.sample({cache_->host_rx_ready != 0, cache_->host_tx_valid != 0, cache_->host_tx_data,
                cache_->host_tx_bytes, cache_->host_tx_last != 0},
               cycles_);
  memory_.sample({cache_->ar_valid != 0, cache_->ar_addr, cache_->ar_len, cache_->ar_tag,
                  cache_->aw_valid != 0, cache_->aw_addr, cache_->aw_len, cache_->aw_tag,
                  cache_->w_valid != 0, cache_->w_data, cache_->w_last != 0},
                 config_, random_, cycles_);
}

void NicSim::step() {
  drive();
  cache_->clk = 0;
  cache_->eval();
  sample();
  cache_->clk = 1;
  cache_->eval();
  ++cycles_;
}

bool NicSim::idle() const {
  return wire_.queued() == 0 && host_.queued() == 0 && cache_->idle && memory_.idle();
}

bool NicSim::run_until_idle(uint64_t cycles_max) {
  constexpr int kQuietCycles =
      400;  // longer than a frame in the first blocks, or the slowest memory
  int quiet = 0;
  for (uint64_t i = 0; i < cycles_max; ++i) {
    step();
    quiet = idle() ? quiet + 1 : 0;
    if (quiet == kQuietCycles) return wire_.between_frames() && host_.between_frames();
  }
  return false;
}

void NicSim::tick() {
  cache_->second_tick = 1;
  step();
  cache_->second_tick = 0;
}

void NicSim::write_register(uint32_t address, uint32_t value) {
  cache_->csr_write = 1;
  cache_->csr_address = static_cast<uint8_t>(address);
  cache_->csr_write_data = value;
  step();
  cache_->csr_write = 0;
}

uint32_t NicSim::read_register(uint32_t address) {
  cache_->csr_address = static_cast<uint8_t>(address);
  step();
  return cache_->csr_read_data;
}

}  // namespace warpcache::rtl
