// SPDX-License-Identifier: Apache-2.0
//
// fifo, skid_buffer, packet_fifo, stream_gate, frame_mux: nothing is lost, repeated or mixed.
#include <Vfifo.h>
#include <Vfifo_head.h>
#include <Vframe_mux.h>
#include <Vpacket_fifo.h>
#include <Vpacket_fifo_reg.h>
#include <Vskid_buffer.h>
#include <Vstream_gate.h>

#include <algorithm>
#include <utility>

#include "testbench.h"

namespace warpcache::rtl {
namespace {

// A stream through the block, then as fast as it can.
template <typename Block>
void pass(Model<Block>& model, Testbench& bench, uint64_t depth) {
  Stream& in = bench.input("in", model->in_valid, model->in_ready, {model->in_data});
  Stream& out = bench.output("out", model->out_valid, model->out_ready, {model->out_data});
  const auto push = [&](uint64_t beats) {
    for (; beats > 0; --beats) {
      const uint64_t data = bench.random().next() & 0xffff;
      in.push({data});
      out.push({data});
    }
  };
  bench.after = [&] {
    bench.check(in.passed() - out.passed() <= depth, "more beats inside than there are places");
  };
  push(bench.count(10000));
  bench.run();
  in.always = out.always = true;
  push(1000);
  const uint64_t began = bench.cycles();
  bench.run(0);
  bench.check(bench.cycles() - began <= 1002, "less than a beat a cycle");
}

void run_fifo(const Setup& setup) {
  Model<Vfifo> model;
  Testbench bench(*model, setup);
  pass(model, bench, 8);
}
void run_fifo_head(const Setup& setup) {
  Model<Vfifo_head> model;
  Testbench bench(*model, setup);
  pass(model, bench, 9);
}
void run_skid_buffer(const Setup& setup) {
  Model<Vskid_buffer> model;
  Testbench bench(*model, setup);
  pass(model, bench, 2);
}

// Packets end with a commit or an abort, with their last beat or later.
template <typename Block>
void run_packet_fifo(const Setup& setup) {
  constexpr uint64_t kPlaces = 16;
  Model<Block> model;
  Testbench bench(*model, setup);
  Random& random = bench.random();
  Stream& in = bench.input("in", model->in_valid, model->in_ready, {model->in_data});
  Stream& out = bench.output("out", model->out_valid, model->out_ready, {model->out_data});
  std::vector<Beat> packet;  // that has not ended
  bool ended = true;         // whether it has been said that a packet is over
  for (uint64_t i = bench.count(10000); i > 0; --i) in.push({random.next() & 0xffff});
  bench.before = [&] {
    const bool comes = model->in_valid != 0 && model->in_ready != 0;
    const size_t size = packet.size() + (comes ? 1 : 0);
    const bool must = size == kPlaces || (in.queued() <= 1 && size != 0);
    const bool ends = size != 0 && (must || random.below(6) == 0);
    const bool good = random.below(3) != 0;
    set(model->commit, ends && good);
    set(model->__SYM__abort, ends && !good);
    ended = ends;
  };
  in.on_beat = [&](const Beat& beat) { packet.push_back(beat); };
  bench.after = [&] {
    if (!ended) return;
    if (model->commit != 0) out.push_all(packet);
    packet.clear();
  };
  bench.run();
}

void run_stream_gate(const Setup& setup) {
  Model<Vstream_gate> model;
  Testbench bench(*model, setup);
  Stream& in = bench.input("in", model->in_valid, model->in_ready, {});
  Stream& out = bench.output("out", model->out_valid, model->out_ready, {model->out_valid});
  for (uint64_t i = bench.count(10000); i > 0; --i) {
    in.push({});
    out.push({1});
  }
  bool offered = false;  // and not taken
  bench.before = [&] { set(model->hold, bench.random().below(2)); };
  bench.after = [&] {
    bench.check((model->in_valid != 0 && model->in_ready != 0) ==
                    (model->out_valid != 0 && model->out_ready != 0),
                "one side goes on without the other");
    bench.check(model->out_valid == 0 || model->hold == 0 || offered,
                "a beat is offered although it is held");
    offered = model->out_valid != 0 && model->out_ready == 0;
  };
  bench.run();
}

// Beats tell which side they come from. Where both have a frame, they take turns.
void run_frame_mux(const Setup& setup) {
  constexpr uint64_t kSide = 0x8000;
  Model<Vframe_mux> model;
  Testbench bench(*model, setup);
  Random& random = bench.random();
  Stream* sides[2] = {
      &bench.input("a", model->a_valid, model->a_ready, {model->a_data, model->a_last}),
      &bench.input("b", model->b_valid, model->b_ready, {model->b_data, model->b_last})};
  Stream& out =
      bench.output("out", model->out_valid, model->out_ready, {model->out_data, model->out_last});
  std::deque<Beat> expected[2];
  for (uint64_t i = bench.count(3000); i > 0; --i) {
    const uint32_t side = random.below(2);
    for (uint32_t left = 1 + random.below(5); left > 0; --left) {
      const Beat beat = {(random.next() & 0x7fff) | (side != 0 ? kSide : 0), left == 1};
      sides[side]->push(beat);
      expected[side].push_back(beat);
    }
  }
  int begun = -1;  // the side whose frame is under way
  int last = -1;   // whose frame was the last one
  // A choice is made in the first cycle in which a beat is offered; it may wait.
  bool waits = false;
  bool both_then = false;  // both sides had a frame in that cycle
  out.unchecked = true;
  out.on_beat = [&](const Beat& beat) {
    const int side = (beat[0].low() & kSide) != 0 ? 1 : 0;
    bench.check(begun < 0 || begun == side, "frames are mixed");
    const bool both = waits ? both_then : model->a_valid != 0 && model->b_valid != 0;
    if (begun < 0) bench.check(!both || side != last, "a side that had its turn goes first");
    std::deque<Beat>& queue = expected[side];
    bench.check(!queue.empty() && queue.front() == beat, "out differs");
    queue.pop_front();
    begun = beat[1].zero() ? side : -1;
    last = side;
  };
  bench.after = [&] {
    const bool waited = std::exchange(waits, model->out_valid != 0 && model->out_ready == 0);
    if (waits && !waited) both_then = model->a_valid != 0 && model->b_valid != 0;
  };
  bench.run();
  bench.check(expected[0].empty() && expected[1].empty(), "out misses beats");
}

const Registered fifo("fifo", run_fifo);
const Registered fifo_head("fifo_head", run_fifo_head);
const Registered skid_buffer("skid_buffer", run_skid_buffer);
const Registered packet_fifo("packet_fifo", run_packet_fifo<Vpacket_fifo>);
const Registered packet_fifo_reg("packet_fifo_reg", run_packet_fifo<Vpacket_fifo_reg>);
const Registered stream_gate("stream_gate", run_stream_gate);
const Registered frame_mux("frame_mux", run_frame_mux);

}  // namespace
}  // namespace warpcache::rtl
