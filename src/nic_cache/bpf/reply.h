// SPDX-License-Identifier: Apache-2.0
//
// Writing replies into the frame of the request.
#ifndef WARPCACHE_NIC_CACHE_BPF_REPLY_H_
#define WARPCACHE_NIC_CACHE_BPF_REPLY_H_

#include "nic_cache/bpf/commands.h"
#include "nic_cache/bpf/request.h"

INLINE __u32 swap_bytes(__u32 sum) { return (sum >> 8 & 0xff) | (sum & 0xff) << 8; }

// A reply while it is written: its place in the frame, and the sum of what is there.
struct reply {
  __u32 at;     // offset in the frame of the next byte
  __u32 begin;  // of the payload
  __u64 sum;
};

// Adds a piece whose sum is known. False: cannot happen.
INLINE int put(struct xdp_md *ctx, struct reply *reply, const void *piece, __u32 size, __u32 sum) {
  if (bpf_xdp_store_bytes(ctx, reply->at, (void *)piece, size) != 0) return 0;
  reply->sum += ((reply->at - reply->begin) & 1) != 0 ? swap_bytes(sum) : sum;
  reply->at += size;
  return 1;
}

// The text of a copy; with_cas as for gets.
INLINE int put_value(struct xdp_md *ctx, struct reply *reply, __u32 slot, int with_cas) {
  const struct nic_copy *copy = copy_of(slot);
  if (!copy) return 0;
  const __u32 head = copy->head_size;
  const __u32 body = copy->value_size + 4;
  const __u32 cas = copy->cas_size;
  if (head == 0 || head > 320 || body > kNicDatagramMax || cas == 0 || cas > 21) return 0;
  const __u8 *text = copy->text;
  if (!put(ctx, reply, text, head, copy->sum_head)) return 0;
  if (with_cas && !put(ctx, reply, text + head + body + 5, cas, copy->sum_cas)) return 0;
  return put(ctx, reply, text + head, body, copy->sum_body);
}

// The sum of a part of the line. REQUIRES: size is not 0.
APART __u64 line_sum(const struct scratch *scratch, __u32 at, __u32 size) {
  if (!scratch) return 0;
  const __u32 from = words_before_last(size) * 8;
  __u64 sum = halves(keep_bytes(word_in(scratch->line, at + from), size - from));
  const __u32 count = words_before_last(size);
  for (__u32 i = 0; i < kLineMax / 8; ++i) {
    if (i >= count) break;
    sum += halves(word_in(scratch->line, at + i * 8));
  }
  return fold(sum);
}

// The line, and what of the copy follows it.
INLINE int put_line(struct xdp_md *ctx, struct reply *reply, const struct scratch *scratch,
                    const struct command *command) {
  __u32 at = command->line_at, size = command->line_size;
  OPAQUE(at);
  OPAQUE(size);
  if (at > kLineAt || size == 0 || size > kLineMax) return 0;
  const __u8 *line = (const __u8 *)scratch->line + at;
  if (!put(ctx, reply, line, size, (__u32)line_sum(scratch, at, size))) return 0;
  const struct nic_copy *copy = copy_of(scratch->slots[0]);
  if (!copy) return 0;
  const __u32 head = copy->head_size, value = copy->value_size;
  if (head > 320 || value > kNicDatagramMax - 4) return 0;
  if (command->rest == kBody) {
    return put(ctx, reply, copy->text + head, value + 4, copy->sum_body);
  }
  if (command->rest == kNothing || value == 0) return 1;
  return put(ctx, reply, copy->text + head + 2, value, copy->sum_value);
}

// Writes a copy's text, which is the whole reply to a get, at `at` in the frame. A short text is
// written here: a helper's calls and returns take longer. REQUIRES: size >= 8.
INLINE int put_copy(struct xdp_md *ctx, __u32 at, const struct nic_copy *copy, __u32 size) {
  enum { kShort = 256 };
  OPAQUE(size);
  if (size < 8 || size > kNicDatagramMax || at > kTextAtMax) return 0;
  if (size > kShort) return bpf_xdp_store_bytes(ctx, at, (void *)copy->text, size) == 0;
  __u8 *to = (__u8 *)(long)ctx->data + at;
  const __u8 *const end = (const __u8 *)(long)ctx->data_end;
  // The last word overlaps the one before it.
  __u32 last = size - 8;
  const __u32 whole = (size - 1) / 8;
  OPAQUE(last);
  if (last > kShort - 8) return 0;
  if (to + last + 8 > end) return 0;
  store64(to + last, load64(copy->text + last));
  for (__u32 i = 0; i < kShort / 8; ++i) {
    if (i >= whole) break;
    if (to + i * 8 + 8 > end) return 0;
    store64(to + i * 8, load64(copy->text + i * 8));
  }
  return 1;
}

INLINE int put_text(struct xdp_md *ctx, struct reply *reply, const struct scratch *scratch,
                    const struct command *command) {
  if (command->keys == 1 && !command->with_cas) {
    const struct nic_copy *copy = copy_of(scratch->slots[0]);
    if (!copy || !put_copy(ctx, reply->at, copy, command->reply)) return 0;
    reply->sum = copy->sum_get;
    return 1;
  }
  for (__u64 i = 0; i < kNicKeysMax; ++i) {
    if (i >= command->keys) break;
    if (!put_value(ctx, reply, scratch->slots[i], command->with_cas != 0)) return 0;
  }
  const char end_line[6] = "END\r\n";
  return put(ctx, reply, end_line, 5, ('E' | 'N' << 8) + ('D' | '\r' << 8) + '\n');
}

// Writes the headers of the reply: addresses and ports swapped, memcached's header, and the
// checksums over them and over `sum`, which is that of the text.
INLINE int put_headers(struct xdp_md *ctx, const struct scratch *scratch,
                       const struct request *request, __u32 payload, __u64 sum) {
  const __u64 header = (scratch->words[1] & 0xffff) | (__u64)bpf_htons(1) << 32;
  __u8 *data = (__u8 *)(long)ctx->data;
  __u8 *end = (__u8 *)(long)ctx->data_end;
  const __u32 l3 = request->l3;
  if (l3 > kEthernet + 2 * kVlanTag) return 0;
  __u8 *ip = data + l3;
  if (ip + kIpv4 + kUdp + kMemcached > end) return 0;
  const __u8 *ethernet = scratch->ethernet;
  store64(data, load64(ethernet + 6));  // the last 2 bytes are overwritten
  store32(data + 6, load32(ethernet));
  store16(data + 10, load16(ethernet + 4));
  store16(data + 12, load16(ethernet + 12));
  if (l3 >= kEthernet + kVlanTag) store32(data + 14, load32(ethernet + 14));
  if (l3 == kEthernet + 2 * kVlanTag) store32(data + 18, load32(ethernet + 18));
  const __u64 *source = scratch->source, *target = scratch->target;
  const __u16 udp_size = bpf_htons((__u16)(kUdp + payload));
  __u8 *udp;
  if (request->ipv6) {
    if (ip + kIpv6 + kUdp + kMemcached > end) return 0;
    store32(ip, bpf_htonl(6u << 28));
    store16(ip + 4, udp_size);
    store16(ip + 6, bpf_htons(kProtocolUdp << 8 | 64));
    for (int i = 0; i < 2; ++i) {
      store64(ip + 8 + 8 * i, target[i]);
      store64(ip + 24 + 8 * i, source[i]);
      sum += halves(source[i]) + halves(target[i]);
    }
    udp = ip + kIpv6;
  } else {
    const __u32 from = (__u32)(target[1] >> 32), to = (__u32)(source[1] >> 32);
    const __u16 total = bpf_htons((__u16)(kIpv4 + kUdp + payload));
    store16(ip, bpf_htons(0x4500));
    store16(ip + 2, total);
    store16(ip + 4, 0);
    store16(ip + 6, bpf_htons(0x4000));
    store16(ip + 8, bpf_htons(64 << 8 | kProtocolUdp));
    const __u64 addresses = (__u64)from + to;
    const __u64 ip_sum = addresses + bpf_htons(0x4500) + total + bpf_htons(0x4000) +
                         bpf_htons(64 << 8 | kProtocolUdp);
    store16(ip + 10, (__u16)~fold(ip_sum));
    store32(ip + 12, from);
    store32(ip + 16, to);
    sum += addresses;
    udp = ip + kIpv4;
  }
  const __u16 from_port = (__u16)(scratch->words[0] >> 16), to_port = (__u16)scratch->words[0];
  store64(udp + kUdp, header);
  store16(udp, from_port);
  store16(udp + 2, to_port);
  store16(udp + 4, udp_size);
  __u16 check = 0;
  if (request->has_sum) {
    sum += (header & 0xffff) + bpf_htons(1);
    sum += (__u64)from_port + to_port + 2 * udp_size + bpf_htons(kProtocolUdp);
    check = (__u16)~fold(sum);
    if (check == 0) check = 0xffff;
  }
  store16(udp + 6, check);
  return 1;
}

// Makes the frame this many bytes longer or shorter: at its end, or where the driver leaves no room
// there, at its beginning.
INLINE int resize(struct xdp_md *ctx, int bytes) {
  if (bpf_xdp_adjust_tail(ctx, bytes) == 0) return 1;
  return bpf_xdp_adjust_head(ctx, -bytes) == 0;
}

#endif  // WARPCACHE_NIC_CACHE_BPF_REPLY_H_
