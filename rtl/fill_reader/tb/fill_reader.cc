// SPDX-License-Identifier: Apache-2.0
//
// Frames of a host: replies that can be copied, such as differ from these a little, and frames of
// others. First one at a time, each of which must be read; then as fast as a wire brings them,
// where some may be left out.
#include <Vfill_reader.h>

#include <iterator>

#include "ip_datagrams.h"
#include "key_crc.h"
#include "layouts.h"

namespace warpcache::rtl {
namespace {

constexpr uint16_t kPort = 11211;
constexpr uint32_t kSeconds = 7;

struct Reply {
  std::string frame;
  bool of_port = true;  // and intact
  bool copied = false;
  Beat op;  // hashed, asker
  std::vector<Bits> key, value;
};

std::string random_text(Random& random, size_t size) {
  std::string text = random_bytes(random, size);
  for (char& byte : text) byte = static_cast<char>(33 + static_cast<uint8_t>(byte) % 90);
  return text;
}

Reply random_reply(Random& random) {
  Reply reply;
  const std::string key = random_text(random, 1 + random.below(random.below(6) == 0 ? 250 : 20));
  const std::string value = random_bytes(random, random.below(random.below(10) == 0 ? 1300 : 40));
  const auto flags = static_cast<uint32_t>(random.next() >> (32 + random.below(32)));
  const bool has_cas = random.below(2) != 0;
  const uint64_t cas = has_cas ? random.next() >> random.below(64) : 0;
  std::string line =
      "VALUE " + key + " " + std::to_string(flags) + " " + std::to_string(value.size());
  if (has_cas) line += " " + std::to_string(cas);
  std::string text = line + "\r\n" + value + "\r\nEND\r\n";
  reply.copied = true;
  if (random.below(4) == 0) {
    const std::string others[] = {
        "END\r\n",
        "STORED\r\n",
        "VALUE",
        line + "\r\n" + value + "\r\n",  // the next one is in another datagram
        line + "\r\n" + value + "\r\nEND\r\nEND\r\n",
        line + "\r\n" + value + "x\r\nEND\r\n",                        // longer than it says
        line + "\r\n" + value.substr(0, value.size() / 2) + "\r\nEN",  // shorter, or cut
        "VALUE " + key + " x " + std::to_string(value.size()) + "\r\n" + value + "\r\nEND\r\n",
        "VALUE " + key + " 0 \r\n" + value + "\r\nEND\r\n",
        "VALUE " + key + " 0 99999999999999999999\r\n" + value + "\r\nEND\r\n",
        "VALUE " + std::string(251, 'k') + " 0 1\r\nv\r\nEND\r\n",
        "VALUE  0 1\r\nv\r\nEND\r\n",  // no key
        "VALUE k 0 1537\r\n" + std::string(1537, 'v') + "\r\nEND\r\n",
        "VALUE k 0 1 1 1\r\nv\r\nEND\r\n",
    };
    text = others[random.below(std::size(others))];
    reply.copied = false;
  }
  IpDatagram datagram;
  datagram.v6 = random.below(3) == 0;
  datagram.source =
      datagram.v6 ? "\x20" + random_bytes(random, 15) : "\x0a" + random_bytes(random, 3);
  datagram.destination =
      datagram.v6 ? "\x20" + random_bytes(random, 15) : "\x0a" + random_bytes(random, 3);
  datagram.source_port = kPort;
  datagram.destination_port = static_cast<uint16_t>(1 + random.below(65535));
  datagram.has_checksum = datagram.v6 || random.below(10) != 0;
  const auto request_id = static_cast<uint16_t>(random.next());
  datagram.payload = big(request_id, 2) + big(0, 2) + big(1, 2) + big(0, 2) + text;
  if (random.below(10) == 0) {
    datagram.source_port = kPort + 1;
    reply.of_port = false;
  }
  reply.frame = random_bytes(random, 12);
  reply.frame[0] &= static_cast<char>(0xfe);
  reply.frame[6] &= static_cast<char>(0xfe);
  reply.frame += big(datagram.v6 ? 0x86dd : 0x0800, 2) + datagram.bytes();
  if (datagram.has_checksum && random.below(12) == 0) {
    reply.frame.back() ^= 1;
    reply.of_port = false;
  }
  if (!reply.of_port) reply.copied = false;
  Record asker(kAsker);
  asker.set("v6", datagram.v6).set("ip", number_of(datagram.destination));
  asker.set("port", datagram.destination_port).set("request_id", request_id);
  Record op(kMeta);
  op.set("op", kOpSet)
      .set("own_cas", 1)
      .set("exptime", kSeconds)
      .set("flags", flags)
      .set("cas", cas);
  op.set("klen", key.size())
      .set("kbeats", beats_of(key.size()))
      .set("vlen", value.size())
      .set("vbeats", beats_of(value.size()));
  Record hashed(kHashed);
  hashed.set("op", op.bits())
      .set("row_hash", key_crc(key, kRowPolynomial))
      .set("tag_hash", key_crc(key, kTagPolynomial));
  reply.op = {hashed.bits(), asker.bits()};
  reply.key = words_of(key);
  reply.value = words_of(value);
  return reply;
}

void run(const Setup& setup) {
  Model<Vfill_reader> model;
  Testbench bench(*model, setup);
  Random& random = bench.random();
  model->udp_port = kPort;
  model->fill_seconds = kSeconds;
  Stream& in =
      bench.command("in", model->in_valid, {model->in_data, model->in_bytes, model->in_last});
  Stream& op = bench.output("op", model->op_valid, model->op_ready, {model->op, model->asker});
  Stream& key = bench.output("key", model->key_valid, model->key_ready, {model->key});
  Stream& value = bench.output("value", model->value_valid, model->value_ready, {model->value});
  Stream& other = bench.pulses("other", {model->other, model->asker});
  other.normalize = [](Beat& beat) {
    if (beat[0].zero()) beat[1] = 0;
  };
  const auto expect = [&](const Reply& reply) {
    if (reply.copied) {
      op.push(reply.op);
      for (const Bits& word : reply.key) key.push({word});
      for (const Bits& word : reply.value) value.push({word});
    } else if (reply.of_port) {
      other.push({1, reply.op[1]});
    }
  };
  for (uint64_t i = bench.count(300); i > 0; --i) {
    const Reply reply = random_reply(random);
    in.push_all(packet_beats(reply.frame));
    expect(reply);
    bench.run(reply.of_port ? 10 : 300);
  }
  bench.run();
  bench.check(model->idle != 0, "it is not idle");
  // As fast as they come: what is read is right, and in order.
  std::deque<Reply> coming;
  uint64_t read = 0;
  const auto skip_to = [&](const Beat& asker) {
    while (!coming.empty() && !(coming.front().of_port && coming.front().op[1] == asker[0]))
      coming.pop_front();
    bench.check(!coming.empty(), "a reply that nobody has sent, or out of order");
    const Reply reply = coming.front();
    coming.pop_front();
    expect(reply);
    // A reply's key may leave before its operation does: these two are looked at in the first part.
    key.clear();
    value.clear();
    ++read;
  };
  op.on_beat = [&](const Beat& beat) { skip_to({beat[1]}); };
  other.on_beat = [&](const Beat& beat) { skip_to({beat[1]}); };
  key.unchecked = value.unchecked = true;
  for (uint64_t i = bench.count(300); i > 0; --i) {
    coming.push_back(random_reply(random));
    in.push_all(packet_beats(coming.back().frame));
  }
  bench.run(4000);
  bench.check(read > bench.count(300) / 4, "too little was read");
}

const Registered registered("fill_reader", run);

}  // namespace
}  // namespace warpcache::rtl
