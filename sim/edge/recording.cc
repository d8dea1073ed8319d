// SPDX-License-Identifier: Apache-2.0
#include "edge/recording.h"

#include <fmt/core.h>

#include <cstdlib>

#include "base/assert.h"
#include "edge/kernels_ptx.h"

namespace warpcache::edge_sim {

const std::map<std::string, Kernel>& built_in_kernels() {
  static const std::map<std::string, Kernel> kernels = [] {
    std::map<std::string, Kernel> all;
    std::string why;
    if (!read_ptx(kKernelsPtx, &all, &why)) {
      fmt::print(stderr, "edge-sim: the built-in kernels: {}\n", why);
      std::abort();
    }
    return all;
  }();
  return kernels;
}

bool record_case(const std::string& name, const CaseOptions& options, const RecordOptions& how,
                 KernelTrace* out, bool* differs, std::string* why) {
  Case one;
  if (!make_case(name, options, &one, why)) return false;
  Regions regions;
  for (const Buffer& buffer : one.buffers) regions.add(buffer.data, buffer.bytes);
  if (!record(built_in_kernels().at(one.kernel), one.launch, regions, how, out, why)) return false;
  out->name = name;
  const std::string wrong = one.check();
  if (wrong.empty()) return true;
  *differs = true;
  *why = fmt::format("kernel {}: {}", name, wrong);
  return false;
}

KernelTrace record_isr(const IsrOptions& options, uint32_t* chip_from) {
  uint32_t save[16] = {}, controller[8] = {1, 3}, table[16] = {};
  Regions regions;
  regions.add(save, sizeof save);
  regions.add(controller, sizeof controller);
  regions.add(table, sizeof table);
  Launch launch;
  launch.block_x = 1;
  launch.push(options.saves ? save : nullptr);
  launch.push(&controller[0]);
  launch.push(&table[0]);
  launch.push(static_cast<int>(options.delay));
  KernelTrace trace;
  std::string why;
  const bool recorded = record(built_in_kernels().at("isr"), launch, regions, {}, &trace, &why);
  WC_ASSERT(recorded && table[3] == 4);
  uint64_t place = 0;
  const bool found = regions.find(reinterpret_cast<uint64_t>(&controller[0]), 4, &place);
  WC_ASSERT(found);
  *chip_from = static_cast<uint32_t>(place / kSectorBytes);
  return trace;
}

}  // namespace warpcache::edge_sim
