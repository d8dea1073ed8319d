// SPDX-License-Identifier: Apache-2.0
#include "sim.h"

#if VM_COVERAGE
#include <verilated_cov.h>
#endif

#include <cstdlib>

#include "Vmc_core.h"
#include "model_sim.h"
#include "shape.h"

namespace warpcache::rtl {

Sim::Sim(const SimConfig& config) : core_(std::make_unique<ModelSim<Vmc_core>>(config, kHasHost)) {
  core_->reset();
}

Sim::~Sim() {
#if VM_COVERAGE
  // A model with counters of its lines, for rtl/coverage; each model adds a file.
  static int number = 0;
  const char* const file = std::getenv("RTL_COVERAGE_FILE");
  if (file != nullptr) {
    core_->context().coveragep()->write((file + std::to_string(number++) + ".dat").c_str());
  }
#endif
}

void Sim::send(const std::string& frame, bool damaged) { core_->wire().send(frame, damaged); }
uint64_t Sim::frames_queued() const { return core_->wire().queued(); }
std::vector<std::string> Sim::take() { return core_->wire().take(); }
void Sim::send_from_host(const std::string& frame) { core_->host().send(frame, false); }
std::vector<std::string> Sim::take_for_host() { return core_->host().take(); }

void Sim::step() { core_->step(); }
bool Sim::run_until_idle(uint64_t cycles_max) { return core_->run_until_idle(cycles_max); }

void Sim::write_register(uint32_t address, uint32_t value) {
  core_->write_register(address, value);
}
uint32_t Sim::read_register(uint32_t address) { return core_->read_register(address); }

void Sim::set_next_cas(uint64_t cas) {
  write_register(2, static_cast<uint32_t>(cas));
  write_register(3, static_cast<uint32_t>(cas >> 32));
}

uint64_t Sim::cycles() const { return core_->cycles(); }
uint64_t Sim::in_began() const { return core_->wire().in_began(); }
uint64_t Sim::out_began() const { return core_->wire().out_began(); }

}  // namespace warpcache::rtl
