// SPDX-License-Identifier: Apache-2.0
// GET requests on a store of our own, filled through its own code.
#pragma once

#include <random>

#include "edge/cases.h"

namespace warpcache::edge_sim {

// A launch without threads where there is no memory for the store.
void make_get(const CaseOptions& options, std::mt19937_64& random, Case* out);
void make_get_mixed(const CaseOptions& options, std::mt19937_64& random, Case* out);

}  // namespace warpcache::edge_sim
