// SPDX-License-Identifier: Apache-2.0
// From the name of a workload to its trace.
#pragma once

#include <map>
#include <string>

#include "edge/cases.h"
#include "edge/interpret.h"

namespace warpcache::edge_sim {

// The named kernels; read once. Ends the process if the PTX that the program holds is broken.
const std::map<std::string, Kernel>& built_in_kernels();

// Runs a case and compares its output with the reference. False: `why` says what is wrong; *differs
// is set if that is the output.
bool record_case(const std::string& name, const CaseOptions& options, const RecordOptions& how,
                 KernelTrace* out, bool* differs, std::string* why);

struct IsrOptions {
  uint32_t delay = 0;  // iterations of its loop
  bool saves = true;   // the victim's registers
};

// The interrupt service routine as one warp with one lane. *chip_from: the first sector that is not
// memory but the interrupt controller's or the event kernel table's.
KernelTrace record_isr(const IsrOptions& options, uint32_t* chip_from);

}  // namespace warpcache::edge_sim
