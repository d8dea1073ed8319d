// SPDX-License-Identifier: Apache-2.0
#include "nic_sim.h"

#include "Vnic_cache.h"
#include "model_sim.h"

namespace warpcache::rtl {

NicSim::NicSim(const SimConfig& config, uint8_t fill_seconds)
    : cache_(std::make_unique<ModelSim<Vnic_cache>>(config, true)) {
  cache_->model().fill_seconds = fill_seconds;
  cache_->reset();
}

NicSim::~NicSim() = default;

FramePorts& NicSim::wire() { return cache_->wire(); }
FramePorts& NicSim::host() { return cache_->host(); }
void NicSim::step() { cache_->step(); }
bool NicSim::idle() const { return cache_->idle(); }
bool NicSim::run_until_idle(uint64_t cycles_max) { return cache_->run_until_idle(cycles_max); }

void NicSim::tick() {
  cache_->model().second_tick = 1;
  step();
  cache_->model().second_tick = 0;
}

void NicSim::write_register(uint32_t address, uint32_t value) {
  cache_->write_register(address, value);
}
uint32_t NicSim::read_register(uint32_t address) { return cache_->read_register(address); }
uint64_t NicSim::cycles() const { return cache_->cycles(); }

}  // namespace warpcache::rtl
