// SPDX-License-Identifier: Apache-2.0
//
// Datagrams of all sizes, with up to two tags; headers and data come at their own pace.
#include <Veth_tx.h>

#include "ip_datagrams.h"
#include "layouts.h"
#include "testbench.h"

namespace warpcache::rtl {
namespace {

void run(const Setup& setup) {
  Model<Veth_tx> model;
  Testbench bench(*model, setup);
  Random& random = bench.random();
  Stream& eth =
      bench.input("eth", model->eth_valid, model->eth_ready, {model->eth, model->eth_v6});
  Stream& in = bench.input("in", model->in_valid, model->in_ready,
                           {model->in_data, model->in_bytes, model->in_last});
  Stream& out = bench.output("out", model->out_valid, model->out_ready,
                             {model->out_data, model->out_bytes, model->out_last});
  for (uint64_t i = bench.count(3000); i > 0; --i) {
    Record ctx(kEthCtx, random_bits(kEthCtx, random));
    const uint64_t tags = random.below(3);
    const bool v6 = random.below(2) != 0;
    ctx.set("vlans", tags);
    const std::string datagram =
        random_bytes(random, 1 + random.below(random.below(10) == 0 ? 1500 : 70));
    eth.push({ctx.bits(), v6});
    in.push_all(packet_beats(datagram));
    // The request's addresses change places.
    std::string frame = big(ctx.get("src_mac").low(), 6) + big(ctx.get("dst_mac").low(), 6);
    if (tags >= 1) frame += big(ctx.get("vlan0").low(), 4);
    if (tags >= 2) frame += big(ctx.get("vlan1").low(), 4);
    frame += big(v6 ? 0x86dd : 0x0800, 2) + datagram;
    if (frame.size() < 60) frame.resize(60, '\0');
    out.push_all(packet_beats(frame));
  }
  bench.run();
}

const Registered registered("eth_tx", run);

}  // namespace
}  // namespace warpcache::rtl
