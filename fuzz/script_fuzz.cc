// SPDX-License-Identifier: Apache-2.0
//
// The fuzzer makes the decisions of the generator: valid streams of all protocols against the
// model.
#include "fuzz/play.h"
#include "model/generator.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  warpcache::model::ByteDice dice(data, size);
  warpcache::model::GeneratorConfig config;
  config.steps = 100;
  config.bytes_max = 2u << 20;
  warpcache::fuzz::play(warpcache::model::Generator(config, dice).generate());
  return 0;
}
