// SPDX-License-Identifier: Apache-2.0
//
// byte_window, two_beats and packer: bytes in other portions than they came in.
#include <Vbyte_window.h>
#include <Vpacker.h>
#include <Vpacker8.h>
#include <Vtwo_beats.h>

#include <algorithm>

#include "testbench.h"

namespace warpcache::rtl {
namespace {

// In each cycle the window shows what has come and has not been taken, and some of it is taken.
void run_byte_window(const Setup& setup) {
  constexpr size_t kShown = 24;
  constexpr size_t kMost = 15;  // in a cycle
  Model<Vbyte_window> model;
  Testbench bench(*model, setup);
  Random& random = bench.random();
  Stream& in = bench.input("in", model->in_valid, model->in_ready,
                           {model->in_data, model->in_bytes, model->in_last});
  for (uint64_t i = bench.count(3000); i > 0; --i)
    in.push_all(
        packet_beats(random_bytes(random, 1 + random.below(random.below(4) == 0 ? 200 : 30))));
  std::string held;
  bool tail = false;
  uint64_t taken = 0;
  bench.before = [&] {
    Bits view;
    for (size_t i = 0; i < std::min(held.size(), kShown); ++i)
      view.place(static_cast<int>(8 * i), 8, static_cast<uint8_t>(held[i]));
    bench.check(model->count == held.size() && model->tail == tail, "count or tail is wrong");
    bench.check(Port(model->view).get() == view,
                "the view is wrong: " + Port(model->view).get().hex());
    const size_t shown = std::min(held.size(), kShown);
    bench.check(model->at_least == (uint32_t{2} << shown) - 1, "at_least is wrong");
    const auto most = static_cast<uint32_t>(std::min(held.size(), kMost));
    const uint32_t take = random.below(3) == 0 ? most : random.below(most + 1);
    set(model->take, take);
    taken += take;
    held.erase(0, take);
  };
  bench.after = [&] {
    if (tail && held.empty()) tail = false;
    if (model->in_valid == 0 || model->in_ready == 0) return;
    bench.check(!tail, "a packet comes before the one in front of it has been taken");
    uint64_t data = model->in_data;
    for (uint32_t i = 0; i < model->in_bytes; ++i, data >>= 8) held += static_cast<char>(data);
    tail = model->in_last != 0;
  };
  bench.run();
  bench.check(held.empty() && taken != 0, "bytes are left");
}

// One beat, both or none are taken in a cycle.
void run_two_beats(const Setup& setup) {
  Model<Vtwo_beats> model;
  Testbench bench(*model, setup);
  Random& random = bench.random();
  Stream& in = bench.input("in", model->in_valid, model->in_ready, {model->in_data});
  std::deque<uint64_t> held;
  in.on_beat = [&](const Beat& beat) { held.push_back(beat[0].low()); };
  uint64_t both = 0;
  for (uint64_t i = bench.count(10000); i > 0; --i) in.push({random.next() & 0xffff});
  bench.before = [&] {
    const bool first = model->first_valid != 0;
    const bool second = model->second_valid != 0;
    bench.check(!first || (!held.empty() && model->first == held[0]), "the first beat is wrong");
    bench.check(!second || (first && held.size() >= 2 && model->second == held[1]),
                "the second beat is wrong");
    bench.check(held.size() < 2 || second, "a beat is not shown");
    bench.check(held.size() <= 3, "more beats than places");
    const bool take = first && random.below(3) != 0;
    const bool take_both = take && second && random.below(3) == 0;
    set(model->take, take);
    set(model->take_both, take_both);
    both += take_both;
    if (take) held.erase(held.begin(), held.begin() + (take_both ? 2 : 1));
  };
  bench.run();
  bench.check(held.empty() && both != 0, "beats are left");
}

template <typename Block>
void run_packer(const Setup& setup, uint32_t piece_max) {
  Model<Block> model;
  Testbench bench(*model, setup);
  Random& random = bench.random();
  Stream& in = bench.input("in", model->in_valid, model->in_ready,
                           {model->in_data, model->in_bytes, model->in_last});
  Stream& out = bench.output("out", model->out_valid, model->out_ready,
                             {model->out_data, model->out_bytes, model->out_last});
  for (uint64_t i = bench.count(4000); i > 0; --i) {
    std::string packet;
    uint32_t size = 0;
    for (uint32_t left = 1 + random.below(12); left > 0; --left) {
      size = random.below(4) == 0   ? 0
             : random.below(3) == 0 ? piece_max
                                    : random.below(piece_max + 1);
      std::string piece = random_bytes(random, size);
      piece.resize(piece_max, '\0');
      Bits data = load_word(piece, 0);
      if (piece_max == 16) data.place(64, 64, load_word(piece, 8));
      in.push({data, size, left == 1});
      packet += piece.substr(0, size);
    }
    std::vector<Beat> beats = packet_beats(packet);
    // The end of a packet that was known too late to be told with its last bytes.
    if (size == 0 && !packet.empty() && packet.size() % 8 == 0) {
      beats.back()[2] = 0;
      beats.push_back({0, 0, 1});
    }
    out.push_all(beats);
  }
  bench.run();
}

const Registered byte_window("byte_window", run_byte_window);
const Registered two_beats("two_beats", run_two_beats);
const Registered packer("packer", [](const Setup& setup) { run_packer<Vpacker>(setup, 16); });
const Registered packer8("packer8", [](const Setup& setup) { run_packer<Vpacker8>(setup, 8); });

}  // namespace
}  // namespace warpcache::rtl
