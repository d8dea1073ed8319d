// SPDX-License-Identifier: Apache-2.0
//
// Frames with all that can become of them. The bench is the core, which says it later, and what
// ends copies.
#include <Vmiss_port.h>

#include "layouts.h"
#include "testbench.h"

namespace warpcache::rtl {
namespace {

struct Fate {
  bool damaged;
  bool eth_passed;
  bool udp_passed;
  bool may_change;  // of a frame that is not understood
  bool answered;
  bool forwarded() const { return !damaged && !(eth_passed && udp_passed && answered); }
  bool flushes() const { return forwarded() && !(eth_passed && udp_passed) && may_change; }
};

Fate random_fate(Random& random) {
  Fate fate = {};
  fate.damaged = random.below(10) == 0;
  fate.eth_passed = random.below(5) != 0;
  fate.udp_passed = !fate.damaged && random.below(5) != 0;
  fate.may_change = !fate.damaged && random.below(2) != 0;
  fate.answered = random.below(2) != 0;
  return fate;
}

void run(const Setup& setup) {
  Model<Vmiss_port> model;
  Testbench bench(*model, setup);
  Random& random = bench.random();
  Stream& in = bench.input("in", model->in_valid, model->in_ready,
                           {model->in_data, model->in_bytes, model->in_last, model->in_error});
  Stream& core = bench.output("core", model->core_valid, model->core_ready,
                              {model->in_data, model->in_bytes, model->in_last});
  Stream& out = bench.output("out", model->out_valid, model->out_ready,
                             {model->out_data, model->out_bytes, model->out_last});
  Stream& ends = bench.pulses("ends", {model->answers, model->forwards});
  std::deque<Fate> coming;                    // frames that have not come whole
  std::deque<Fate> by_eth, by_udp, by_store;  // what the core has still to say
  std::deque<bool> flush_first;               // of each frame that goes to the host
  uint64_t forwarded = 0;
  uint64_t flushes = 0;
  uint64_t expected_flushes = 0;
  bool flushing = false;
  in.on_beat = [&](const Beat& beat) {
    if (beat[2].zero()) return;
    by_eth.push_back(coming.front());
    coming.pop_front();
  };
  out.on_beat = [&](const Beat& beat) {
    bench.check(forwarded < flush_first.size(), "a frame too many");
    bench.check(flushes == expected_flushes + flush_first[forwarded],
                "a frame goes to the host before copies are ended");
    if (beat[2].zero()) return;
    expected_flushes += flush_first[forwarded];
    ++forwarded;
  };
  bench.before = [&] {
    // The core says it in the order of frames: first its reader of Ethernet, then that of UDP, then
    // the store.
    Record sorting(kSorting);
    bool verdict = false;
    bool answered = false;
    if (!by_store.empty() && random.below(4) == 0) {
      verdict = true;
      answered = by_store.front().answered;
      by_store.pop_front();
    }
    if (!by_udp.empty() && random.below(4) == 0) {
      const Fate fate = by_udp.front();
      by_udp.pop_front();
      sorting.set(fate.udp_passed ? "udp_passed" : "udp_dropped", 1)
          .set("udp_may_change", !fate.udp_passed && fate.may_change);
      if (fate.udp_passed) by_store.push_back(fate);
    }
    if (!by_eth.empty() && random.below(4) == 0) {
      const Fate fate = by_eth.front();
      by_eth.pop_front();
      sorting.set(fate.eth_passed ? "eth_passed" : "eth_dropped", 1)
          .set("eth_may_change", !fate.eth_passed && fate.may_change);
      if (fate.eth_passed) by_udp.push_back(fate);
    }
    set(model->sorting, sorting.bits());
    set(model->verdict_valid, verdict);
    set(model->verdict_answered, answered);
    const bool done = flushing && random.below(10) == 0;
    set(model->flush_done, done);
    if (done) ++flushes;
  };
  bench.after = [&] { flushing = model->flush_valid != 0 && model->flush_done == 0; };
  for (uint64_t i = bench.count(3000); i > 0; --i) {
    const Fate fate = random_fate(random);
    const std::string frame =
        random_bytes(random, 1 + random.below(random.below(20) == 0 ? 9000 : 100));
    coming.push_back(fate);
    for (Beat& beat : packet_beats(frame)) {
      core.push(beat);
      if (fate.forwarded()) out.push(beat);
      beat.push_back(!beat[2].zero() && fate.damaged);
      in.push(beat);
    }
    if (fate.forwarded()) flush_first.push_back(fate.flushes());
    if (!fate.damaged) ends.push({!fate.forwarded(), fate.forwarded()});
  }
  bench.run(400);
  bench.check(model->idle != 0, "it is not idle at the end");
  bench.check(flushes == expected_flushes && flushes > 100, "flushes are wrong");
}

const Registered registered("miss_port", run);

}  // namespace
}  // namespace warpcache::rtl
