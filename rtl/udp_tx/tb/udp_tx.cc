// SPDX-License-Identifier: Apache-2.0
//
// Replies of no, one and several datagrams, and such as are too long; the last beat may be empty.
#include <Vudp_tx.h>

#include "ip_datagrams.h"
#include "layouts.h"

namespace warpcache::rtl {
namespace {

constexpr size_t kPartMax = 1392;
constexpr size_t kPartsMax = 8;

size_t random_size(Random& random) {
  switch (random.below(12)) {
    case 0:
      return 0;
    case 1:
      return kPartMax * random.below(4) + random.below(20);
    case 2:
      return random.below(3) != 0 ? kPartMax - 10 + random.below(20)
                                  : kPartMax * kPartsMax - 10 + random.below(20);
    case 3:
      return random.below(4) != 0 ? random.below(4000) : random.below(14000);
    default:
      return random.below(100);
  }
}

void run(const Setup& setup) {
  Model<Vudp_tx> model;
  Testbench bench(*model, setup);
  Random& random = bench.random();
  Stream& ctx = bench.input("ctx", model->ctx_valid, model->ctx_ready, {model->ctx});
  Stream& in = bench.input("in", model->in_valid, model->in_ready,
                           {model->in_data, model->in_bytes, model->in_last});
  Stream& eth =
      bench.output("eth", model->eth_valid, model->eth_ready, {model->eth, model->eth_v6});
  Stream& out = bench.output("out", model->out_valid, model->out_ready,
                             {model->out_data, model->out_bytes, model->out_last});
  Stream& dropped = bench.pulses("dropped", {model->dropped});
  // A datagram's first beat is offered only while its context is taken.
  uint64_t datagrams = 0;
  bool begins = true;
  out.on_beat = [&](const Beat& beat) {
    if (begins) ++datagrams;
    begins = !beat[2].zero();
    bench.check(eth.passed() >= datagrams, "a datagram comes before its context");
  };
  out.may_withdraw = eth.may_withdraw = true;
  for (uint64_t i = bench.count(800); i > 0; --i) {
    // What the request had is turned around.
    IpDatagram reply;
    reply.v6 = random.below(3) == 0;
    reply.source = random_bytes(random, reply.v6 ? 16 : 4);
    reply.destination = random_bytes(random, reply.v6 ? 16 : 4);
    reply.source_port = static_cast<uint16_t>(random.next());
    reply.destination_port = static_cast<uint16_t>(random.next());
    reply.has_checksum = reply.v6 || random.below(5) != 0;
    const Bits frame = random_bits(kEthCtx, random);
    const auto request_id = static_cast<uint16_t>(random.next());
    Record record(kCtx);
    record.set("eth", frame).set("v6", reply.v6).set("src_ip", number_of(reply.destination));
    record.set("dst_ip", number_of(reply.source)).set("src_port", reply.destination_port);
    record.set("dst_port", reply.source_port)
        .set("has_checksum", reply.has_checksum)
        .set("request_id", request_id);
    record.set("address_sum", folded(sum_of(reply.source + reply.destination, 0)));
    ctx.push({record.bits()});

    const std::string bytes = random_bytes(random, random_size(random));
    std::vector<Beat> beats = packet_beats(bytes);
    if (bytes.size() % 8 == 0 && !bytes.empty() && random.below(3) == 0) {
      beats.back()[2] = 0;
      beats.push_back({0, 0, 1});
    }
    in.push_all(beats);
    const size_t parts = (bytes.size() + kPartMax - 1) / kPartMax;
    if (parts > kPartsMax) {
      dropped.push({1});
      continue;
    }
    for (size_t part = 0; part < parts; ++part) {
      reply.payload = big(request_id, 2) + big(part, 2) + big(parts, 2) + big(0, 2) +
                      bytes.substr(part * kPartMax, kPartMax);
      const std::string datagram = reply.bytes();
      eth.push({frame, reply.v6});
      out.push_all(packet_beats(datagram));
    }
  }
  bench.run();
}

const Registered registered("udp_tx", run);

}  // namespace
}  // namespace warpcache::rtl
