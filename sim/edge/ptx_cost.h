// SPDX-License-Identifier: Apache-2.0
// What ptxas makes of PTX, as far as time depends on it: which instructions vanish, which become
// two, and that loads are issued early. An approximation; the manual says how near it is.
#pragma once

#include "edge/ptx.h"

namespace warpcache::edge_sim {

// Sets unit, slots and slot of every instruction, and moves loads up within their blocks. REQUIRES:
// `code` and `first` are complete.
void assign_costs(Kernel* kernel);

}  // namespace warpcache::edge_sim
