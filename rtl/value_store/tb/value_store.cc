// SPDX-License-Identifier: Apache-2.0
//
// item_reader and item_writer before a memory that answers in any order, bursts interleaved.
#include <Vitem_reader.h>
#include <Vitem_writer.h>

#include <algorithm>
#include <map>
#include <set>

#include "testbench.h"

namespace warpcache::rtl {
namespace {

constexpr uint32_t kSlots = 1 << 15;

// The word that memory holds at first.
uint64_t word_at(uint64_t address) { return (address + 1) * 0x9e3779b97f4a7c15; }

void run_item_reader(const Setup& setup) {
  struct Burst {
    uint64_t address;
    uint32_t beats, tag;
    uint64_t ready;
  };
  Model<Vitem_reader> model;
  Testbench bench(*model, setup);
  Random& random = bench.random();
  Stream& request = bench.input("request", model->req_valid, model->req_ready,
                                {model->req_slot, model->req_words});
  Stream& ar = bench.output("ar", model->ar_valid, model->ar_ready,
                            {model->ar_addr, model->ar_len, model->ar_tag});
  Stream& out =
      bench.output("out", model->out_valid, model->out_ready, {model->out_data, model->out_two});
  // The second word of an item's last beat may be anything.
  out.normalize = [](Beat& beat) {
    if (beat[1].zero()) beat[0] = beat[0].low();
  };
  std::vector<Burst> bursts;
  std::set<uint32_t> tags;
  size_t most = 0;
  ar.on_beat = [&](const Beat& beat) {
    const auto own_tag = static_cast<uint32_t>(beat[2].low());
    bench.check(tags.insert(own_tag).second, "a tag is used twice");
    bursts.push_back({beat[0].low(), static_cast<uint32_t>(beat[1].low()), own_tag,
                      bench.cycles() + random.below(100)});
    most = std::max(most, bursts.size());
  };
  bench.before = [&] {
    const size_t which = bursts.empty() ? 0 : random.below(static_cast<uint32_t>(bursts.size()));
    const bool answers = !bursts.empty() && bursts[which].ready <= bench.cycles();
    set(model->r_valid, answers);
    if (!answers) return;
    Burst& burst = bursts[which];
    Bits data = word_at(2 * burst.address);
    data.place(64, 64, word_at(2 * burst.address + 1));
    set(model->r_tag, burst.tag);
    set(model->r_data, data);
    ++burst.address;
    if (--burst.beats != 0) return;
    tags.erase(burst.tag);
    bursts.erase(bursts.begin() + static_cast<std::ptrdiff_t>(which));
  };
  uint64_t tag = 0;  // they are used one after the other
  for (uint64_t i = bench.count(3000); i > 0; --i) {
    const uint64_t slot = random.below(kSlots);
    const uint64_t words = 1 + random.below(random.below(10) == 0 ? 227 : 12);
    request.push({slot, words});
    for (uint64_t at = 0; at < words; at += 2) {
      Bits data = word_at(slot * 256 + at);
      if (at + 1 < words) data.place(64, 64, word_at(slot * 256 + at + 1));
      out.push({data, at + 1 < words});
    }
    // Bursts of 64 bytes, none of which crosses a border of 64 bytes.
    for (uint64_t at = 0; at < words; at += 8)
      ar.push({(slot * 256 + at) / 2, (std::min<uint64_t>(words - at, 8) + 1) / 2, tag++ % 64});
  }
  bench.run();
  bench.check(most >= 32, "fewer than 32 bursts are under way at a time");
}

void run_item_writer(const Setup& setup) {
  struct Burst {
    uint64_t address;
    uint32_t beats, tag;
    std::vector<uint64_t> data;
  };
  struct Item {
    uint64_t address;
    std::vector<uint64_t> words;
  };
  Model<Vitem_writer> model;
  Testbench bench(*model, setup);
  Random& random = bench.random();
  Stream& request = bench.input("request", model->req_valid, model->req_ready,
                                {model->req_slot, model->req_beats, model->req_hazard});
  Stream& data = bench.input("data", model->data_valid, model->data_ready, {model->data});
  Stream& aw = bench.output("aw", model->aw_valid, model->aw_ready,
                            {model->aw_addr, model->aw_len, model->aw_tag});
  Stream& w = bench.output("w", model->w_valid, model->w_ready, {model->w_data, model->w_last});
  aw.unchecked = w.unchecked = true;
  std::map<uint64_t, uint64_t> memory;
  std::deque<Burst> filling;
  std::vector<Burst> written;      // whose answers are to come
  std::map<uint32_t, Item> items;  // by entry of the scoreboard
  std::set<uint32_t> tags;
  size_t most = 0;
  uint64_t freed = 0;
  aw.on_beat = [&](const Beat& beat) {
    const Burst burst = {beat[0].low(),
                         static_cast<uint32_t>(beat[1].low()),
                         static_cast<uint32_t>(beat[2].low()),
                         {}};
    bench.check(tags.insert(burst.tag).second, "a tag is used twice");
    bench.check(burst.beats >= 1 && burst.address % 8 + burst.beats <= 8,
                "a burst crosses a border of 64 bytes");
    filling.push_back(burst);
    most = std::max(most, filling.size() + written.size());
  };
  w.on_beat = [&](const Beat& beat) {
    bench.check(!filling.empty(), "data without a burst");
    Burst& burst = filling.front();
    burst.data.push_back(beat[0].low());
    bench.check((burst.data.size() == burst.beats) == !beat[1].zero(), "last is wrong");
    if (beat[1].zero()) return;
    written.push_back(std::move(burst));
    filling.pop_front();
  };
  uint32_t slow = 0;  // cycles in which memory does not answer
  bench.before = [&] {
    if (slow == 0 && random.below(300) == 0) slow = 400;
    if (slow != 0) --slow;
    const bool answers = !written.empty() && slow == 0 && random.below(3) == 0;
    set(model->b_valid, answers);
    if (!answers) return;
    const auto which = written.begin() + random.below(static_cast<uint32_t>(written.size()));
    set(model->b_tag, which->tag);
    for (size_t i = 0; i < which->data.size(); ++i) memory[which->address + i] = which->data[i];
    tags.erase(which->tag);
    written.erase(which);
  };
  // Entries of requests that have not been given yet are not in use.
  std::deque<uint32_t> free_entries;
  for (uint32_t i = 0; i < 32; ++i) free_entries.push_back(i);
  uint64_t left = bench.count(3000);
  const uint64_t all = left;
  bench.after = [&] {
    if (model->free_valid != 0) {
      const uint32_t entry = model->free_id;
      const auto item = items.find(entry);
      bench.check(item != items.end(), "an entry is freed that nothing was asked for");
      for (size_t i = 0; i < item->second.words.size(); ++i) {
        const auto there = memory.find(item->second.address + i);
        bench.check(there != memory.end() && there->second == item->second.words[i],
                    "free before it is written, or wrongly written");
      }
      items.erase(item);
      free_entries.push_back(entry);
      ++freed;
    }
    if (left == 0 || free_entries.empty() || random.below(4) == 0) return;
    --left;
    const uint32_t entry = free_entries.front();
    free_entries.pop_front();
    const uint64_t slot =
        random.below(kSlots / 32) * 32 + entry;  // no two at a time write to one slot
    Item item = {slot * 256, {}};
    for (uint32_t words = 1 + random.below(random.below(10) == 0 ? 227 : 12); words > 0; --words)
      item.words.push_back(random.next());
    request.push({slot, item.words.size(), entry});
    for (size_t i = 0; i < item.words.size(); ++i) {
      data.push({item.words[i]});
      memory.erase(item.address + i);
    }
    items[entry] = std::move(item);
  };
  while (left != 0) bench.step();
  bench.run(2000);
  bench.check(freed == all && items.empty(), "requests are left");
  bench.check(most >= 32, "fewer than 32 bursts are under way at a time");
}

const Registered reader("item_reader", run_item_reader);
const Registered writer("item_writer", run_item_writer);

}  // namespace
}  // namespace warpcache::rtl
