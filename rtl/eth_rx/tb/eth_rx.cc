// SPDX-License-Identifier: Apache-2.0
//
// Random frames: group addresses, up to three tags, other types, frames that end anywhere.
#include <Veth_rx.h>

#include "layouts.h"
#include "testbench.h"

namespace warpcache::rtl {
namespace {

uint64_t big(const std::string& bytes, size_t at, size_t size) {
  uint64_t number = 0;
  for (size_t i = 0; i < size; ++i) number = number << 8 | static_cast<uint8_t>(bytes[at + i]);
  return number;
}

bool is_ip(uint64_t type) { return type == 0x0800 || type == 0x86dd; }
bool is_tag(uint64_t type) { return type == 0x8100 || type == 0x88a8; }

struct Reading {
  enum What { kPassed, kNotForUs, kTruncated, kUnsupported } what;
  bool may_change = false;
  Bits ctx = {};
  bool v6 = false;
  size_t header = 0;  // bytes
};

Reading read(const std::string& frame) {
  if (frame.size() < 14) return {Reading::kTruncated};
  Record ctx(kEthCtx);
  ctx.set("dst_mac", big(frame, 0, 6)).set("src_mac", big(frame, 6, 6));
  uint64_t type = big(frame, 12, 2);
  if ((frame[0] & 1) != 0 || (frame[6] & 1) != 0)
    return {Reading::kNotForUs, is_ip(type) || is_tag(type)};
  size_t at = 14;
  uint64_t tags = 0;
  while (is_tag(type)) {
    if (tags == 2) return {Reading::kUnsupported, true};
    if (frame.size() < at + 4) return {Reading::kTruncated};
    ctx.set(tags == 0 ? "vlan0" : "vlan1", big(frame, at - 2, 4));
    type = big(frame, at + 2, 2);
    at += 4;
    ++tags;
  }
  if (!is_ip(type)) return {Reading::kNotForUs};
  if (frame.size() == at) return {Reading::kTruncated};
  ctx.set("vlans", tags);
  return {Reading::kPassed, false, ctx.bits(), type == 0x86dd, at};
}

std::string random_frame(Random& random) {
  static const char* const kTypes[] = {"\x08\x00", "\x86\xdd", "\x81\x00", "\x88\xa8", "\x08\x06"};
  std::string frame = random_bytes(random, 12);
  for (const size_t at : {size_t{0}, size_t{6}})
    if (random.below(20) != 0) frame[at] &= static_cast<char>(0xfe);
  for (uint32_t tags = random.below(3) == 0 ? random.below(4) : 0; tags > 0; --tags)
    frame += std::string(kTypes[2 + random.below(2)], 2) + random_bytes(random, 2);
  frame += std::string(kTypes[random.below(12) == 0 ? 4 : random.below(2)], 2);
  frame += random_bytes(random, random.below(random.below(10) == 0 ? 1500 : 60));
  if (random.below(8) == 0) frame.resize(1 + random.below(30), 'x');
  return frame;
}

void run(const Setup& setup) {
  Model<Veth_rx> model;
  Testbench bench(*model, setup);
  Stream& in = bench.input("in", model->in_valid, model->in_ready,
                           {model->in_data, model->in_bytes, model->in_last, model->in_error});
  Stream& ctx =
      bench.output("ctx", model->ctx_valid, model->ctx_ready, {model->ctx, model->ctx_v6});
  Stream& out =
      bench.output("out", model->out_valid, model->out_ready,
                   {model->out_data, model->out_bytes, model->out_last, model->out_error});
  Stream& drops = bench.pulses("drops", {model->drop_not_for_us, model->drop_truncated,
                                         model->drop_unsupported, model->drop_may_change});
  // Whether the frame is damaged is known with its last beat.
  out.normalize = [](Beat& beat) {
    if (beat[2].zero()) beat[3] = 0;
  };
  // A frame's context comes no later than its first beat.
  uint64_t frames = 0;
  bool begins = true;
  out.on_beat = [&](const Beat& beat) {
    if (begins) ++frames;
    begins = !beat[2].zero();
    bench.check(ctx.passed() >= frames, "a frame comes before its context");
  };
  for (uint64_t i = bench.count(4000); i > 0; --i) {
    const std::string frame = random_frame(bench.random());
    const bool damaged = bench.random().below(10) == 0;
    for (Beat& beat : packet_beats(frame)) {
      beat.push_back(!beat[2].zero() && damaged);
      in.push(beat);
    }
    const Reading reading = read(frame);
    if (reading.what == Reading::kPassed) {
      ctx.push({reading.ctx, reading.v6});
      for (Beat& beat : packet_beats(frame.substr(reading.header))) {
        beat.push_back(!beat[2].zero() && damaged);
        out.push(beat);
      }
    } else {
      drops.push({reading.what == Reading::kNotForUs, reading.what == Reading::kTruncated,
                  reading.what == Reading::kUnsupported, reading.may_change});
    }
  }
  bench.run();
}

const Registered registered("eth_rx", run);

}  // namespace
}  // namespace warpcache::rtl
