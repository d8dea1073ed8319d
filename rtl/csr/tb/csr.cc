// SPDX-License-Identifier: Apache-2.0
//
// Events in any cycle, while registers are read and written: what is read is what was written, or
// counted.
#include <Vcsr.h>

#include "testbench.h"

namespace warpcache::rtl {
namespace {

constexpr uint32_t kCounters = 16;
constexpr uint32_t kFirst = 16;  // the first counter's address

void run(const Setup& setup) {
  Model<Vcsr> model;
  Testbench bench(*model, setup);
  Random& random = bench.random();
  // Counts now, and one and two cycles ago: an event is counted a cycle after it.
  std::array<uint32_t, kCounters> counts[3] = {};
  uint32_t cas_low = 0;
  bool reads = false;
  uint32_t expected = 0;
  uint64_t found = 0;
  bench.before = [&] {
    bench.check(
        !reads || model->read_data == expected,
        "read " + std::to_string(model->read_data) + ", expected " + std::to_string(expected));
    const uint32_t address = random.below(64);
    const auto value = static_cast<uint32_t>(random.next() >> 32);
    const bool write = random.below(3) == 0;
    const auto now = static_cast<uint32_t>(random.next() >> 32);
    const auto start = static_cast<uint32_t>(random.next() >> 32);
    const auto generation = static_cast<uint32_t>(random.next() >> 32);
    const uint32_t ready = random.below(2);
    set(model->write, write);
    set(model->address, address);
    set(model->write_data, value);
    set(model->now, now);
    set(model->unix_start, start);
    set(model->generation, generation);
    set(model->ready, ready);
    counts[2] = counts[1];
    counts[1] = counts[0];
    uint32_t events[2];
    for (uint32_t& some : events) {
      some =
          static_cast<uint32_t>(random.next() >> 48) & static_cast<uint32_t>(random.next() >> 48);
      for (uint32_t i = 0; i < kCounters; ++i) counts[0][i] += some >> i & 1;
    }
    set(model->events, events[0]);
    set(model->events_too, events[1]);
    reads = true;
    expected = 0;
    if (address == 0)
      expected = now;
    else if (address == 1)
      expected = start;
    else if (address == 2)
      expected = generation;
    else if (address == 3)
      expected = ready;
    else if (address >= kFirst && address < kFirst + kCounters)
      expected = counts[2][address - kFirst];
    if (expected != 0) ++found;
  };
  bench.after = [&] {
    const bool write = model->write != 0;
    const uint32_t address = model->address;
    bench.check((model->set_clock != 0) == (write && address <= 1), "set_clock is wrong");
    if (write && address <= 1) {
      // The other one of the two stays.
      bench.check(model->set_now == (address == 0 ? model->write_data : model->now),
                  "set_now is wrong");
      bench.check(model->set_unix_start == (address == 1 ? model->write_data : model->unix_start),
                  "set_unix_start is wrong");
    }
    bench.check((model->set_cas != 0) == (write && address == 3), "set_cas is wrong");
    if (write && address == 3)
      bench.check(model->cas == (uint64_t{model->write_data} << 32 | cas_low),
                  "the CAS id is wrong");
    if (write && address == 2) cas_low = model->write_data;
  };
  for (uint64_t i = bench.count(30000); i > 0; --i) bench.step();
  bench.check(found > 1000, "too little was read");
}

const Registered registered("csr", run);

}  // namespace
}  // namespace warpcache::rtl
