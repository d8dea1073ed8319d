// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <cstdio>

#include "warpcache/edge.h"

namespace warpcache::edge {
const edge_program* program_of_example();
}

int main() {
  edge_config config = {};
  config.program = warpcache::edge::program_of_example();
  config.workers = 2;
  edge_runtime* runtime = nullptr;
  if (edge_open(&config, &runtime) != EDGE_OK) {
    (void)std::printf("%s\n", edge_why(runtime));
    (void)edge_close(runtime);
    return 77;
  }
  edge_event event = {};
  event.function = 0;  // Add, the first of its program
  event.blocks = 1;
  event.parameter_bytes = 8;
  event.depth = 16;
  uint32_t id = 0;
  if (edge_register_event(runtime, &event, &id) != EDGE_OK) return 1;

  edge_queues* const queues = edge_queues_of(runtime);
  const uint32_t parameters[] = {40, 2};
  if (edge_schedule(queues, id, parameters, sizeof(parameters), 0, nullptr) != EDGE_OK) return 1;
  uint32_t number = 0;
  uint32_t code = 0;
  while (edge_poll(queues, id, &number, &code) == EDGE_NOT_DONE) {
    if (edge_check(runtime) != EDGE_OK) return 1;
  }
  (void)std::printf("event %u: %u\n", number, code);  // event 1: 42
  return edge_close(runtime) == EDGE_OK ? 0 : 1;
}
