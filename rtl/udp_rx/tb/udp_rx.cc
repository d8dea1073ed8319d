// SPDX-License-Identifier: Apache-2.0
//
// Datagrams that are right, and such that differ from these in a byte or two, are cut or have more
// bytes; sizes in headers that are wrong; both kinds of port (REPLIES).
#include <Vudp_rx.h>
#include <Vudp_rx_replies.h>

#include "ip_datagrams.h"
#include "layouts.h"

namespace warpcache::rtl {
namespace {

constexpr uint32_t kPort = 11211;
constexpr uint32_t kDatagramMax = 4000;

enum What { kPassed, kNotForUs, kTruncated, kChecksum, kFragment, kUnsupported, kMalformed };

struct Reading {
  What what;
  bool may_change = false;
  size_t udp = 0;     // where UDP's header begins
  uint32_t size = 0;  // of the datagram, from there on
};

bool is_host4(uint32_t first) { return first != 0 && first < 224; }
bool is_host6(const std::string& ip, size_t at) {
  return byte_at(ip, at) != 0xff && ip.compare(at, 16, std::string(16, '\0')) != 0;
}

// The checks of src/net/packet.h, in their order, then those of memcached's header.
Reading read(const std::string& ip, bool v6, bool damaged, bool replies) {
  if (damaged) return {kChecksum};
  const auto other = [](What what) { return Reading{what, true}; };
  const size_t header_min = v6 ? 40 : 20;
  if (ip.size() < header_min) return other(kTruncated);
  if (byte_at(ip, 0) >> 4 != (v6 ? 6u : 4u)) return other(kUnsupported);
  size_t header = header_min;
  uint32_t left;  // bytes that IP carries
  uint32_t protocol;
  bool hosts;
  if (v6) {
    left = big16(ip, 4);
    if (header + left > ip.size()) return other(kTruncated);
    protocol = byte_at(ip, 6);
    if (protocol == 44) return other(kFragment);
    if (protocol == 0 || protocol == 43 || protocol == 60) return other(kUnsupported);
    hosts = is_host6(ip, 8) && is_host6(ip, 24);
  } else {
    header = 4 * (byte_at(ip, 0) & 15);
    const uint32_t total = big16(ip, 2);
    if (header < 20 || header > total || total > ip.size()) return other(kTruncated);
    if (folded(sum_of(ip.substr(0, header), 0)) != 0xffff) return other(kChecksum);
    if ((big16(ip, 6) & 0x3fff) != 0) return other(kFragment);
    left = total - static_cast<uint32_t>(header);
    protocol = byte_at(ip, 9);
    hosts = is_host4(byte_at(ip, 12)) && is_host4(byte_at(ip, 16));
  }
  // What is surely not for the port changes nothing, and a TCP segment without data neither.
  const bool to_port = big16(ip, header + 2) == kPort;
  const bool has_data = left > 4 * (byte_at(ip, header + 12) >> 4);
  const Reading not_for_us = {kNotForUs,
                              to_port && (protocol == 17 || (protocol == 6 && has_data))};
  if (protocol != 17 || !hosts) return not_for_us;
  if (left < 8) return other(kTruncated);
  if (big16(ip, header + (replies ? 0 : 2)) != kPort || big16(ip, header) == 0) return not_for_us;
  const uint32_t size = big16(ip, header + 4);
  if (size < 8 || size > left) return other(kTruncated);
  if (size > kDatagramMax) return other(kUnsupported);
  if (big16(ip, header + 6) == 0) {
    if (v6) return other(kChecksum);
  } else {
    const std::string addresses = v6 ? ip.substr(8, 32) : ip.substr(12, 8);
    if (folded(sum_of(addresses, 0, 17 + size) + sum_of(ip.substr(header, size), 0)) != 0xffff)
      return other(kChecksum);
  }
  if (size <= 16 || big16(ip, header + 12) != 1) return other(kMalformed);
  return {kPassed, false, header, size};
}

std::string address(Random& random, bool v6) {
  std::string bytes = random_bytes(random, v6 ? 16 : 4);
  if (random.below(40) != 0)
    bytes[0] = static_cast<char>(1 + random.below(200));
  else if (random.below(2) != 0)
    bytes.assign(bytes.size(), '\0');
  else
    bytes[0] = static_cast<char>(v6 ? 0xff : 0xe0);
  return bytes;
}

std::string random_datagram(Random& random, bool v6, bool replies) {
  IpDatagram datagram;
  datagram.v6 = v6;
  datagram.source = address(random, v6);
  datagram.destination = address(random, v6);
  datagram.source_port = static_cast<uint16_t>(random.next());
  datagram.destination_port = static_cast<uint16_t>(random.next());
  if (random.below(25) != 0) (replies ? datagram.source_port : datagram.destination_port) = kPort;
  if (random.below(25) == 0) datagram.destination_port = kPort;
  datagram.has_checksum = random.below(8) != 0;
  if (!v6 && random.below(5) == 0) datagram.options = random_bytes(random, 4 * random.below(11));
  uint32_t size = random.below(60);
  if (random.below(12) == 0) size = random.below(1500);
  if (random.below(80) == 0) size = kDatagramMax - 40 + random.below(60);
  datagram.payload =
      big(random.next() & 0xffff, 2) + big(0, 2) + big(random.below(20) != 0, 2) + big(0, 2);
  datagram.payload += random_bytes(random, size);
  for (char& byte : datagram.payload)
    if (random.below(20) == 0) byte = '\n';
  if (random.below(15) == 0) datagram.payload.resize(random.below(10));
  if (random.below(40) == 0) datagram.payload[datagram.payload.size() > 5 ? 5 : 0] = 2;
  std::string ip = datagram.bytes();
  const uint32_t kind = random.below(8);
  if (kind == 0) {
    for (uint32_t i = 1 + random.below(2); i > 0; --i) {
      const uint32_t at =
          random.below(random.below(3) != 0 ? 70 : static_cast<uint32_t>(ip.size()));
      if (at < ip.size()) ip[at] ^= static_cast<char>(1 << random.below(8));
    }
  } else if (kind == 1) {
    ip.resize(1 + random.below(static_cast<uint32_t>(ip.size())));
  } else if (kind == 2) {
    ip += random_bytes(random, random.below(40));
  } else if (kind == 3) {
    // Another protocol, fragment, version or length, behind a header whose sum is right.
    const uint32_t which = random.below(4);
    if (v6) {
      static const uint8_t kNext[] = {6, 0, 43, 44, 60, 58};
      if (which < 2) ip[6] = static_cast<char>(kNext[random.below(6)]);
      if (which == 2) ip[0] ^= static_cast<char>(0x10);
      if (which == 3) put16(ip, 4, big16(ip, 4) - random.below(30));
    } else {
      if (which == 0) ip[9] = static_cast<char>(random.below(2) != 0 ? 6 : 1);
      if (which == 1) ip[6] = static_cast<char>(random.below(2) != 0 ? 0x20 : 0x80);
      if (which == 2) put16(ip, 2, big16(ip, 2) - random.below(30));
      if (which == 3)
        ip[0] = static_cast<char>(random.below(2) != 0 ? 0x44 + random.below(6) : 0x65);
      put16(ip, 10, 0);
      const size_t header = std::min<size_t>(ip.size(), 4 * (byte_at(ip, 0) & 15));
      put16(ip, 10, checksum_of(sum_of(ip.substr(0, header), 0)));
    }
  } else if (kind == 4 && random.below(3) == 0) {
    // UDP's size, with a checksum that is right.
    const size_t header = v6 ? 40 : 20 + datagram.options.size();
    const uint32_t size_said = big16(ip, header + 4) - 12 + random.below(20);
    put16(ip, header + 4, size_said);
    put16(ip, header + 6, 0);
    const std::string addresses = v6 ? ip.substr(8, 32) : ip.substr(12, 8);
    const uint16_t sum =
        checksum_of(sum_of(addresses, 0, 17 + size_said) +
                    sum_of(ip.substr(header, std::min<size_t>(size_said, ip.size())), 0));
    put16(ip, header + 6, sum == 0 ? 0xffff : sum);
  }
  return ip;
}

template <typename Block>
void run(const Setup& setup, bool replies) {
  Model<Block> model;
  Testbench bench(*model, setup);
  Random& random = bench.random();
  model->udp_port = kPort;
  Stream& eth = bench.input("eth", model->eth_valid, model->eth_ready, {model->eth, model->eth_v6});
  Stream& in = bench.input("in", model->in_valid, model->in_ready,
                           {model->in_data, model->in_bytes, model->in_last, model->in_error});
  Stream& ctx = bench.output("ctx", model->ctx_valid, model->ctx_ready, {model->ctx});
  Stream& info = bench.output("info", model->info_valid, model->info_ready, {model->info});
  Stream& out = bench.output("out", model->out_valid, model->out_ready,
                             {model->out_data, model->out_bytes, model->out_last});
  Stream& ends =
      bench.pulses("ends", {model->passed, model->drop_not_for_us, model->drop_truncated,
                            model->drop_checksum, model->drop_fragment, model->drop_unsupported,
                            model->drop_malformed, model->drop_may_change});
  // A datagram's context and its sizes go on together.
  ctx.may_withdraw = info.may_withdraw = true;
  for (uint64_t i = bench.count(4000); i > 0; --i) {
    const bool v6 = random.below(3) == 0;
    const bool damaged = random.below(30) == 0;
    const Bits frame = random_bits(kEthCtx, random);
    const std::string ip = random_datagram(random, v6, replies);
    eth.push({frame, v6});
    for (Beat& beat : packet_beats(ip)) {
      beat.push_back(!beat[2].zero() && damaged);
      in.push(beat);
    }
    const Reading reading = read(ip, v6, damaged, replies);
    Beat end(8);
    end[reading.what] = 1;
    end[7] = reading.may_change;
    ends.push(end);
    if (reading.what != kPassed) continue;
    const std::string source = v6 ? ip.substr(8, 16) : ip.substr(12, 4);
    const std::string destination = v6 ? ip.substr(24, 16) : ip.substr(16, 4);
    Record record(kCtx);
    record.set("eth", frame)
        .set("v6", v6)
        .set("src_ip", number_of(source))
        .set("dst_ip", number_of(destination));
    record.set("address_sum", folded(sum_of(source + destination, 0)))
        .set("src_port", big16(ip, reading.udp));
    record.set("dst_port", big16(ip, reading.udp + 2))
        .set("has_checksum", big16(ip, reading.udp + 6) != 0);
    record.set("request_id", big16(ip, reading.udp + 8));
    ctx.push({record.bits()});
    const std::string payload = ip.substr(reading.udp + 16, reading.size - 16);
    const size_t line = payload.rfind('\n');
    info.push({Record(kInfo)
                   .set("size", payload.size())
                   .set("lf_end", line == std::string::npos ? 0 : line + 1)
                   .bits()});
    out.push_all(packet_beats(payload));
  }
  bench.run();
}

const Registered requests("udp_rx", [](const Setup& setup) { run<Vudp_rx>(setup, false); });
const Registered replies("udp_rx_replies",
                         [](const Setup& setup) { run<Vudp_rx_replies>(setup, true); });

}  // namespace
}  // namespace warpcache::rtl
