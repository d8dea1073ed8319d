// SPDX-License-Identifier: Apache-2.0
#include "sim.h"

#include <verilated.h>
#if VM_COVERAGE
#include <verilated_cov.h>
#endif

#include <cstdlib>

#include "Vmc_core.h"
#include "shape.h"

namespace warpcache::rtl {

Sim::Sim(const SimConfig& config)
    : config_(config),
      random_(config.seed),
      context_(std::make_unique<VerilatedContext>()),
      core_(std::make_unique<Vmc_core>(context_.get())) {
  core_->clk = 0;
  core_->rst = 1;
  core_->udp_port = config.udp_port;
  core_->second_tick = 0;
  core_->hold = 0;
  core_->rx_valid = 0;
  core_->tx_ready = 0;
  core_->host_tx_ready = 0;
  core_->host_rx_valid = 0;
  core_->ar_ready = 0;
  core_->r_valid = 0;
  core_->aw_ready = 0;
  core_->w_ready = 0;
  core_->b_valid = 0;
  core_->csr_write = 0;
  core_->csr_address = 3;
  for (int i = 0; i < 4; ++i) {
    core_->clk = 0;
    core_->eval();
    core_->clk = 1;
    core_->eval();
  }
  core_->rst = 0;
  while ((read_register(3) & 1) == 0) {
  }
}

Sim::~Sim() {
  core_->final();
#if VM_COVERAGE
  // A model with counters of its lines, for rtl/coverage; each model adds a file.
  static int number = 0;
  const char* const file = std::getenv("RTL_COVERAGE_FILE");
  if (file != nullptr) {
    context_->coveragep()->write((file + std::to_string(number++) + ".dat").c_str());
  }
#endif
}

void Sim::drive() {
  if (config_.hold_percent != 0) {
    uint32_t hold = 0;
    for (int i = 0; i < 12; ++i) hold |= static_cast<uint32_t>(random_.holds(config_)) << i;
    core_->hold = static_cast<uint16_t>(hold);
  }
  const FramePorts::Inputs& frames = frames_.drive(config_, random_);
  core_->rx_valid = frames.rx_valid;
  core_->rx_data = frames.rx_data;
  core_->rx_bytes = frames.rx_bytes;
  core_->rx_last = frames.rx_last;
  core_->rx_error = frames.rx_error;
  core_->tx_ready = frames.tx_ready;
  if (kHasHost) {
    const FramePorts::Inputs& host = host_.drive(config_, random_);
    core_->host_rx_valid = host.rx_valid;
    core_->host_rx_data = host.rx_data;
    core_->host_rx_bytes = host.rx_bytes;
    core_->host_rx_last = host.rx_last;
    core_->host_tx_ready = host.tx_ready;
  }
  const MemoryPort::Inputs& memory = memory_.drive(config_, random_, cycles_);
  core_->ar_ready = memory.ar_ready;
  core_->r_valid = memory.r_valid;
  core_->r_tag = memory.r_tag;
  for (size_t i = 0; i < 4; ++i)
    core_->r_data[i] = static_cast<uint32_t>(memory.r_data[i / 2] >> (i % 2 * 32));
  core_->aw_ready = memory.aw_ready;
  core_->w_ready = memory.w_ready;
  core_->b_valid = memory.b_valid;
  core_->b_tag = memory.b_tag;
}

void Sim::sample() {
  frames_.sample({core_->rx_ready != 0, core_->tx_valid != 0, core_->tx_data, core_->tx_bytes,
                  core_->tx_last != 0},
                 cycles_);
  if (kHasHost) {
    host_.sample({core_->host_rx_ready != 0, core_->host_tx_valid != 0, core_->host_tx_data,
                  core_->host_tx_bytes, core_->host_tx_last != 0},
                 cycles_);
  }
  memory_.sample({core_->ar_valid != 0, core_->ar_addr, core_->ar_len, core_->ar_tag,
                  core_->aw_valid != 0, core_->aw_addr, core_->aw_len, core_->aw_tag,
                  core_->w_valid != 0, core_->w_data, core_->w_last != 0},
                 config_, random_, cycles_);
}

void Sim::step() {
  drive();
  core_->clk = 0;
  core_->eval();
  sample();
  core_->clk = 1;
  core_->eval();
  ++cycles_;
}

bool Sim::run_until_idle(uint64_t cycles_max) {
  constexpr int kQuietCycles =
      400;  // longer than a frame in the first blocks, or the slowest memory
  int quiet = 0;
  for (uint64_t i = 0; i < cycles_max; ++i) {
    step();
    const bool idle = frames_.queued() == 0 && host_.queued() == 0 && core_->idle && memory_.idle();
    quiet = idle ? quiet + 1 : 0;
    if (quiet == kQuietCycles) return frames_.between_frames() && host_.between_frames();
  }
  return false;
}

void Sim::write_register(uint32_t address, uint32_t value) {
  core_->csr_write = 1;
  core_->csr_address = static_cast<uint8_t>(address);
  core_->csr_write_data = value;
  step();
  core_->csr_write = 0;
}

uint32_t Sim::read_register(uint32_t address) {
  core_->csr_address = static_cast<uint8_t>(address);
  step();
  return core_->csr_read_data;
}

void Sim::set_next_cas(uint64_t cas) {
  write_register(2, static_cast<uint32_t>(cas));
  write_register(3, static_cast<uint32_t>(cas >> 32));
}

}  // namespace warpcache::rtl
