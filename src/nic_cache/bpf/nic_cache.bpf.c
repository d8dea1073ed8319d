// SPDX-License-Identifier: Apache-2.0
//
// The XDP program of the NIC cache: answers gets of keys that it has copies of, with
// --nic-cache-write also sets, and passes all else to the host's network stack. A request is
// answered as a whole, passed unchanged, or dropped where a source sends more than
// --nic-cache-rate.
//
// It owns nothing: the server fills the copies and takes them away (copy_table.h). A copy that it
// finds stays constant until the run ends.
#include "nic_cache/bpf/reply.h"

SEC("xdp")
int warpcache_nic(struct xdp_md *ctx) {
  __u8 *data = (__u8 *)(long)ctx->data;
  __u8 *data_end = (__u8 *)(long)ctx->data_end;
  struct request request = {};
  if (data + kEthernet + 2 * kVlanTag + kIpv4 > data_end) return XDP_PASS;
  __u16 type = load16(data + 12);
  request.l3 = kEthernet;
  if (type == bpf_htons(0x8100) || type == bpf_htons(0x88a8)) {
    request.vlan = bpf_ntohs(load16(data + 14)) & 0xfff;
    request.l3 += kVlanTag;
    type = load16(data + 16);
    if (type == bpf_htons(0x8100)) {
      request.vlan |= (__u32)(bpf_ntohs(load16(data + 18)) & 0xfff) << 12;
      request.l3 += kVlanTag;
      type = load16(data + 20);
    }
  }
  __u8 *ip = data + request.l3;
  __u8 *udp;
  __u32 carried;
  if (type == bpf_htons(0x0800)) {
    if (ip + kIpv4 + kUdp > data_end) return XDP_PASS;
    if (ip[9] != kProtocolUdp || ip[0] != 0x45) return XDP_PASS;
    if ((load16(ip + 6) & bpf_htons(0x3fff)) != 0) return XDP_PASS;
    udp = ip + kIpv4;
    carried = bpf_ntohs(load16(ip + 2)) - kIpv4;
  } else if (type == bpf_htons(0x86dd)) {
    if (ip + kIpv6 + kUdp > data_end) return XDP_PASS;
    if (ip[6] != kProtocolUdp || ip[0] >> 4 != 6) return XDP_PASS;
    udp = ip + kIpv6;
    carried = bpf_ntohs(load16(ip + 4));
    request.ipv6 = 1;
  } else {
    return XDP_PASS;
  }
  if (load16(udp + 2) != nic_control.port) return XDP_PASS;
  __u32 queue = ctx->rx_queue_index;
  if (queue >= kNicQueuesMax) queue = kNicQueuesMax - 1;
  struct nic_counters *counters = bpf_map_lookup_elem(&nic_count, &queue);
  struct scratch *scratch = scratch_of();
  if (!counters || !scratch) return XDP_PASS;
  ++counters->requests;
  if (!is_awake(scratch)) {
    ++counters->asleep;
    return XDP_PASS;
  }

  // For this host, from one host, complete and intact.
  load_address(ip, request.ipv6, 0, scratch->source);
  load_address(ip, request.ipv6, 1, scratch->target);
  for (int i = 0; i < 16; i += 8) store64(scratch->ethernet + i, load64(data + i));
  store64(scratch->ethernet + 14, load64(data + 14));
  __u32 differs = load32(data) ^ load32(nic_control.mac);
  differs |= load16(data + 4) ^ load16(nic_control.mac + 4);
  differs |= data[6] & 1;
  // Sources that no other host can have.
  differs |= scratch->source[0] == scratch->target[0] && scratch->source[1] == scratch->target[1];
  if (request.ipv6) {
    const __u64 last = scratch->source[1] & ~bpf_cpu_to_be64(1);  // zeros: :: or ::1
    differs |= (scratch->source[0] | last) == 0 || ip[8] == 0xff;
  } else {
    differs |= ip[12] == 0 || ip[12] == 127 || ip[12] >= 224;
    __u64 sum = 0;
    for (__u32 i = 0; i < kIpv4; i += 4) sum += load32(ip + i);
    differs |= fold(sum) ^ 0xffff;
  }
  const __u32 udp_size = bpf_ntohs(load16(udp + 4));
  differs |= load16(udp) == 0;
  differs |= udp_size > carried || (long)carried > data_end - udp;
  if (differs != 0 || !(is_first_local(scratch, request.vlan) || is_local(scratch, request.vlan))) {
    ++counters->foreign;
    return XDP_PASS;
  }
  if (nic_control.rate != 0 && is_over_rate(scratch)) {
    ++counters->limited;
    return XDP_DROP;
  }
  request.udp_size = udp_size;
  request.has_sum = load16(udp + 6) != 0;
  __u32 size = udp_size;
  if (size < kCommandAt + 7 || size > kNicRequestMax) {
    ++counters->other;
    return XDP_PASS;
  }
  const int length = (int)(data_end - data);
  const __u64 pseudo = pseudo_sum(scratch, udp_size);
  const __u16 unfinished = fold(pseudo);
  const __u16 given = load16(udp + 6);
  __u64 sum = pseudo;
  if (!load_datagram(scratch, udp, data_end, udp_size, &sum)) return XDP_PASS;
  // A sum over the pseudo header alone is what a sender leaves for its device to finish: veth
  // passes such frames on.
  const int intact = given == 0 ? !request.ipv6 : given == unfinished || fold(sum) == 0xffff;
  if (!intact) {
    ++counters->foreign;
    return XDP_PASS;
  }

  // memcached's header: one datagram; then the command.
  struct command *command = &scratch->command;
  __builtin_memset(command, 0, sizeof(*command));
  const __u64 header = scratch->words[1];
  int verdict = kOther;
  if ((header >> 32 & 0xffff) == bpf_htons(1)) {
    verdict = find_command(scratch, udp_size);
  }
  if (verdict != kAnswer) {
    ++*(verdict == kMiss ? &counters->misses : &counters->other);
    counters->wanted += command->wanted;
    counters->wanted_lost += command->wanted_lost;
    return XDP_PASS;
  }
  const __u32 reply_bytes = command->reply;
  const __u32 payload = kMemcached + reply_bytes;
  if (payload > kNicDatagramMax) {
    ++counters->other;
    return XDP_PASS;
  }
  if (payload > (udp_size - kUdp) * nic_control.amplification && !is_allowed(scratch)) {
    ++counters->guarded;
    return XDP_PASS;
  }

  struct reply reply;
  reply.begin = request.l3 + (request.ipv6 ? kIpv6 : kIpv4) + kUdp + kMemcached;
  reply.at = reply.begin;
  const int reply_size = (int)(reply.begin + reply_bytes);
  const int frame_size = reply_size < kFrameMin ? kFrameMin : reply_size;
  if (!resize(ctx, frame_size - length)) {
    if (command->wrote) return XDP_DROP;  // it must not be done twice; such frames do not grow
    ++counters->no_room;
    return XDP_PASS;
  }
  // From here on the frame is a reply. What follows cannot fail.
  const __u64 zeros[2] = {};
  if (reply_size < kFrameMin && bpf_xdp_store_bytes(ctx, kFrameMin - 16, (void *)zeros, 16) != 0) {
    return XDP_ABORTED;
  }
  reply.sum = 0;
  const int written = command->has_line ? put_line(ctx, &reply, scratch, command)
                                        : put_text(ctx, &reply, scratch, command);
  if (!written || !put_headers(ctx, scratch, &request, payload, reply.sum)) return XDP_ABORTED;
  ++counters->hits;
  counters->keys += command->keys;
  counters->writes += command->wrote;
  counters->reply_bytes += payload;
  return XDP_TX;
}

char nic_license[] SEC("license") = "Apache-2.0";
