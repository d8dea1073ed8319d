// SPDX-License-Identifier: Apache-2.0
//
// item_forward between key_check, which executes operations in order, and readers, which ask for
// items that writers before them have yet to write.
#include <Vitem_forward.h>

#include <deque>
#include <map>

#include "testbench.h"

namespace warpcache::rtl {
namespace {

constexpr uint32_t kEntries = 32;
constexpr uint32_t kNumbers = 4 * kEntries;
constexpr uint32_t kWordsMax = 32;  // of an item that is read here

struct Burst {
  uint32_t from;  // the writer, counted from 0 on
  uint32_t beat;  // the next one
  uint32_t left;  // beats
  uint32_t tag;
};

// An operation: it writes, or reads what another one writes.
struct Operation {
  bool writes;
  uint64_t reads_left;  // beats that have not come: the number of all readers' beats before it and
                        // its own
};

void run(const Setup& setup) {
  Model<Vitem_forward> model;
  Testbench bench(*model, setup);
  Random& random = bench.random();
  Stream& ask = bench.input("ask", model->ask_valid, model->ask_ready,
                            {model->ask_from, model->ask_beat, model->ask_len, model->ask_tag});
  Stream& r = bench.pulses("r", {model->r_data, model->r_tag, model->r_valid});
  r.unchecked = true;
  // Without `valid` the rest has no meaning.
  r.normalize = [](Beat& beat) {
    if (beat[2].zero()) beat = {0, 0, 0};
  };
  std::map<uint32_t, std::vector<uint64_t>> items;  // by writer
  std::deque<Burst> bursts;                         // that have been asked for
  std::deque<Operation> operations;                 // asked for, to be executed
  uint32_t allocated = 0;                           // writers
  uint32_t ended = 0;
  uint64_t beats_asked = 0;
  uint64_t beats_come = 0;
  uint64_t from_memory = 0;
  bool memory = false;
  Bits memory_data;
  uint32_t memory_tag = 0;
  bool answered = false;
  r.on_beat = [&](const Beat& beat) {
    bench.check(!answered, "two answers in a cycle");
    answered = true;
    if (memory) {
      bench.check(beat[0] == memory_data && beat[1].low() == memory_tag && !beat[2].zero(),
                  "memory's answer has changed");
      return;
    }
    bench.check(!bursts.empty() && !beat[2].zero(), "an answer that nobody has asked for");
    Burst& burst = bursts.front();
    bench.check(burst.from < ended, "an answer before the writer has ended");
    const std::vector<uint64_t>& words = items[burst.from];
    Bits expected = words[2 * burst.beat];
    Bits is = beat[0];
    if (2 * burst.beat + 1 < words.size())
      expected.place(64, 64, words[2 * burst.beat + 1]);
    else
      is = is.low();  // the second word may be anything
    bench.check(is == expected && beat[1].low() == burst.tag, "another word than was written");
    ++burst.beat;
    ++beats_come;
    if (--burst.left == 0) bursts.pop_front();
  };
  // The write that is under way: words that are to be given, and cycles until the next one.
  bool writing = false;
  size_t given = 0;
  bench.before = [&] {
    memory = random.below(3) == 0;
    memory_tag = random.below(64);
    memory_data = random.next();
    memory_data.place(64, 64, random.next());
    set(model->memory_valid, memory);
    set(model->memory_tag, memory_tag);
    set(model->memory_data, memory_data);
    if (memory) ++from_memory;
    answered = false;
    set(model->write_begins, 0);
    set(model->data_valid, 0);
    set(model->writer_ends, 0);
    if (operations.empty() || random.below(4) == 0) return;
    const Operation& next = operations.front();
    if (!next.writes) {
      if (beats_come >= next.reads_left) operations.pop_front();
      return;
    }
    const std::vector<uint64_t>& words = items[ended];
    if (!writing && !words.empty()) {
      set(model->write_begins, 1);
      set(model->write_id, ended % kEntries);
      writing = true;
      given = 0;
    } else if (given < words.size()) {
      set(model->data_valid, 1);
      set(model->data, words[given++]);
    } else {
      set(model->writer_ends, 1);
      writing = false;
      given = 0;
      ++ended;
      operations.pop_front();
    }
  };
  bench.after = [&] { bench.check(answered || !memory, "memory's answer is lost"); };
  uint64_t waited = 0;  // bursts that were asked for before their writer ended
  for (uint64_t i = bench.count(4000); i > 0; --i) {
    uint64_t cycles = 0;
    while (operations.size() > 60 || allocated - ended > kEntries - 1 || ask.queued() > 4) {
      bench.step();
      bench.check(++cycles < 10'000, "nothing comes any more");
    }
    const uint32_t from = allocated - 1 - random.below(1 + random.below(kEntries - 1));
    // An entry's writer can be followed until it gets another one.
    if (random.below(2) == 0 && allocated > kEntries && !items[from].empty() &&
        items[from].size() <= kWordsMax) {
      const auto beats = static_cast<uint32_t>(items[from].size() + 1) / 2;
      Burst burst = {from, random.below(beats), 0, random.below(64)};
      burst.left = 1 + random.below(std::min(beats - burst.beat, 4U));
      if (from >= ended) ++waited;
      ask.push({from % kNumbers, burst.beat, burst.left, burst.tag});
      bursts.push_back(burst);
      beats_asked += burst.left;
      operations.push_back({false, beats_asked});
    } else {
      std::vector<uint64_t> words(
          random.below(8) == 0 ? 0 : 1 + random.below(random.below(8) == 0 ? 60 : 10));
      for (uint64_t& word : words) word = random.next();
      items[allocated++] = std::move(words);
      items.erase(allocated - 3 * kEntries);
      operations.push_back({true, 0});
    }
  }
  for (uint64_t cycles = 0; !operations.empty(); ++cycles) {
    bench.step();
    bench.check(cycles < 100'000, "nothing comes any more");
  }
  bench.run();
  bench.check(beats_come == beats_asked && bursts.empty(), "beats are left");
  bench.check(bench.count(4000) < 4000 || (waited > 500 && from_memory > 1000),
              "too few wait for their writer");
}

const Registered forward("item_forward", run);

}  // namespace
}  // namespace warpcache::rtl
