// SPDX-License-Identifier: Apache-2.0
//
// A top with the ports of mc_core in simulation, with a model of its memory and a host behind it.
// `Model` is Verilator's class of the top.
#pragma once

#include <verilated.h>

#include <memory>

#include "ports.h"

namespace warpcache::rtl {

template <typename Model>
class ModelSim {
 public:
  // Without a host nothing is taken from its port, and nothing offered there.
  ModelSim(const SimConfig& config, bool has_host)
      : config_(config), random_(config.seed), has_host_(has_host) {
    model_->udp_port = config.udp_port;
  }
  ~ModelSim() { model_->final(); }
  ModelSim(const ModelSim&) = delete;
  ModelSim& operator=(const ModelSim&) = delete;

  // Until the core takes operations. Inputs that only this top has are set before.
  void reset() {
    model_->rst = 1;
    model_->csr_address = kReadyRegister;
    for (int i = 0; i < 4; ++i) {
      model_->clk = 0;
      model_->eval();
      model_->clk = 1;
      model_->eval();
    }
    model_->rst = 0;
    while ((read_register(kReadyRegister) & 1) == 0) {
    }
  }

  void step() {
    drive();
    model_->clk = 0;
    model_->eval();
    sample();
    model_->clk = 1;
    model_->eval();
    ++cycles_;
  }

  // Nothing is under way in it, and none of its inputs waits.
  bool idle() const {
    return wire_.queued() == 0 && host_.queued() == 0 && model_->idle && memory_.idle();
  }
  // Until it has been idle for long; false after `cycles_max` cycles: it hangs.
  bool run_until_idle(uint64_t cycles_max) {
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

  void write_register(uint32_t address, uint32_t value) {
    model_->csr_write = 1;
    model_->csr_address = static_cast<uint8_t>(address);
    model_->csr_write_data = value;
    step();
    model_->csr_write = 0;
  }
  uint32_t read_register(uint32_t address) {
    model_->csr_address = static_cast<uint8_t>(address);
    step();
    return model_->csr_read_data;
  }

  Model& model() { return *model_; }
  VerilatedContext& context() { return *context_; }
  FramePorts& wire() { return wire_; }
  FramePorts& host() { return host_; }
  uint64_t cycles() const { return cycles_; }

 private:
  static constexpr uint32_t kReadyRegister = 3;

  void drive() {
    if (config_.hold_percent != 0) {
      uint32_t hold = 0;
      for (int i = 0; i < 12; ++i) hold |= static_cast<uint32_t>(random_.holds(config_)) << i;
      model_->hold = static_cast<uint16_t>(hold);
    }
    const FramePorts::Inputs& wire = wire_.drive(config_, random_);
    model_->rx_valid = wire.rx_valid;
    model_->rx_data = wire.rx_data;
    model_->rx_bytes = wire.rx_bytes;
    model_->rx_last = wire.rx_last;
    model_->rx_error = wire.rx_error;
    model_->tx_ready = wire.tx_ready;
    if (has_host_) {
      const FramePorts::Inputs& host = host_.drive(config_, random_);
      model_->host_rx_valid = host.rx_valid;
      model_->host_rx_data = host.rx_data;
      model_->host_rx_bytes = host.rx_bytes;
      model_->host_rx_last = host.rx_last;
      model_->host_tx_ready = host.tx_ready;
    }
    const MemoryPort::Inputs& memory = memory_.drive(config_, random_, cycles_);
    model_->ar_ready = memory.ar_ready;
    model_->r_valid = memory.r_valid;
    model_->r_tag = memory.r_tag;
    for (size_t i = 0; i < 4; ++i)
      model_->r_data[i] = static_cast<uint32_t>(memory.r_data[i / 2] >> (i % 2 * 32));
    model_->aw_ready = memory.aw_ready;
    model_->w_ready = memory.w_ready;
    model_->b_valid = memory.b_valid;
    model_->b_tag = memory.b_tag;
  }

  void sample() {
    wire_.sample({model_->rx_ready != 0, model_->tx_valid != 0, model_->tx_data, model_->tx_bytes,
                  model_->tx_last != 0},
                 cycles_);
    if (has_host_) {
      host_.sample({model_->host_rx_ready != 0, model_->host_tx_valid != 0, model_->host_tx_data,
                    model_->host_tx_bytes, model_->host_tx_last != 0},
                   cycles_);
    }
    memory_.sample({model_->ar_valid != 0, model_->ar_addr, model_->ar_len, model_->ar_tag,
                    model_->aw_valid != 0, model_->aw_addr, model_->aw_len, model_->aw_tag,
                    model_->w_valid != 0, model_->w_data, model_->w_last != 0},
                   config_, random_, cycles_);
  }

  SimConfig config_;
  Random random_;
  bool has_host_;
  std::unique_ptr<VerilatedContext> context_ = std::make_unique<VerilatedContext>();
  std::unique_ptr<Model> model_ = std::make_unique<Model>(context_.get());
  FramePorts wire_;
  FramePorts host_;
  MemoryPort memory_;
  uint64_t cycles_ = 0;
};

}  // namespace warpcache::rtl
