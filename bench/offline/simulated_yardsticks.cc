// SPDX-License-Identifier: Apache-2.0
//
// In the place of what measures a GPU, where the GPU is simulated (tests/simulated_gpu): nothing
// about it is worth measuring. So all that remains of the study can be tested.
#include <stdexcept>

#include "offline/backend.h"

namespace warpcache::offline {
namespace {

[[noreturn]] void refuse() { throw std::runtime_error("the GPU is simulated"); }

}  // namespace

class BackgroundWork::Worker {};

BackgroundWork::BackgroundWork(const BackgroundConfig&, uint32_t) { refuse(); }
BackgroundWork::~BackgroundWork() = default;
uint32_t BackgroundWork::loops_for(double) { refuse(); }
double BackgroundWork::stop() { refuse(); }
BackgroundFigures run_background(const BackgroundProcess&) { refuse(); }

BusLimits measure_bus() { return {}; }

}  // namespace warpcache::offline
