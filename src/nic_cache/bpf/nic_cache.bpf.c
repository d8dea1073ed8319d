// SPDX-License-Identifier: Apache-2.0
//
// The XDP program of the NIC cache: answers gets of keys that it has copies of, and passes all else
// to the host's network stack. A request is answered as a whole or passed unchanged.
//
// It owns nothing: the server fills the copies and takes them away (copy_table.h). A copy that it
// finds stays constant until the run ends.
// clang-format off
#include <linux/bpf.h>  // first: libbpf's headers use its types
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>
// clang-format on

#include "nic_cache/layout.h"

#define INLINE static __attribute__((always_inline)) inline
// Keeps the compiler from replacing a bound that the verifier must see.
#define OPAQUE(number) asm volatile("" : "+r"(number))

enum {
  kEthernet = 14,
  kVlanTag = 4,
  kIpv4 = 20,
  kIpv6 = 40,
  kUdp = 8,
  kMemcached = 8,
  kProtocolUdp = 17,
  kFrameMin = 60,
  kCommandAt = kUdp + kMemcached,  // in scratch.datagram
};

struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(map_flags, BPF_F_MMAPABLE);
  __uint(max_entries, 1);
  __type(key, __u32);
  __type(value, struct nic_control);
} nic_control SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(map_flags, BPF_F_MMAPABLE);
  __uint(max_entries, 1);  // the server sets it
  __type(key, __u32);
  __type(value, struct nic_set);
} nic_sets SEC(".maps");

struct nic_block {
  __u8 bytes[kNicBlockBytes];
};

struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(map_flags, BPF_F_MMAPABLE);
  __uint(max_entries, 1);  // the server sets it
  __type(key, __u32);
  __type(value, struct nic_block);
} nic_blocks SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
  __uint(max_entries, kNicQueuesMax);
  __type(key, __u32);
  __type(value, struct nic_counters);
} nic_count SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_RINGBUF);
  __uint(max_entries, 256 * 1024);
} nic_wants SEC(".maps");

// What a run needs besides its stack.
struct scratch {
  __u64 words[(kNicRequestMax + 264) / 8];  // UDP header, memcached's header, command; zeros
  __u32 slots[kNicKeysMax];                 // of the keys found
  __u8 ethernet[24];                        // header with VLAN tags
};

struct {
  __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
  __uint(max_entries, 1);
  __type(key, __u32);
  __type(value, struct scratch);
} nic_scratch SEC(".maps");

// Where the parts of a request lie.
struct request {
  __u32 l3;        // offset of the IP header: 14, 18 or 22
  __u32 ipv6;      // 1 or 0
  __u32 udp_size;  // bytes, header included
  __u32 vlan;
  __u32 has_sum;
  __u64 source[2];  // addresses, IPv4 as ::ffff:a.b.c.d
  __u64 target[2];
};

INLINE struct scratch *scratch_of(void) {
  __u32 zero = 0;
  return bpf_map_lookup_elem(&nic_scratch, &zero);
}

INLINE struct nic_control *control_of(void) {
  __u32 zero = 0;
  return bpf_map_lookup_elem(&nic_control, &zero);
}

// The byte at `at`. REQUIRES: at < kNicRequestMax.
INLINE __u8 byte_at(const struct scratch *scratch, __u32 at) {
  return ((const __u8 *)scratch->words)[at & (kNicRequestMax - 1)];
}
INLINE __u64 word_at(const struct scratch *scratch, __u32 at) {
  __u64 word;
  at &= 1023;
  if (at > sizeof(scratch->words) - 8) return 0;
  OPAQUE(at);
  if (at > sizeof(scratch->words) - 8) return 0;
  __builtin_memcpy(&word, (const __u8 *)scratch->words + at, 8);
  return word;
}

INLINE __u16 fold(__u64 sum) {
  sum = (sum & 0xffffffff) + (sum >> 32);
  sum = (sum & 0xffff) + (sum >> 16 & 0xffff) + (sum >> 32);
  sum = (sum & 0xffff) + (sum >> 16);
  return (__u16)((sum & 0xffff) + (sum >> 16));
}

// The copy that a slot points to, as far as the memory of a copy reaches.
INLINE const struct nic_copy *copy_of(__u32 slot) {
  const __u32 block = slot >> (kNicBlockShift - 6);
  __u32 offset = slot * kNicGranule & (kNicBlockBytes - 1);
  const __u8 *bytes = bpf_map_lookup_elem(&nic_blocks, &block);
  OPAQUE(offset);
  if (!bytes || offset > kNicBlockBytes - kNicCopyMax) return 0;
  return (const struct nic_copy *)(bytes + offset);
}

INLINE __u64 low_bytes(__u32 count) { return ~0ULL >> (8 * (8 - count)); }

// The hash of the key at `at` in the scratch memory. A function of its own, like the next ones: the
// verifier looks at it once.
__attribute__((noinline)) __u64 hash_at(__u32 at, __u32 key_size) {
  const struct scratch *scratch = scratch_of();
  const struct nic_control *control = control_of();
  if (!scratch || !control) return 0;
  __u64 hash = nic_hash_begin(control->seed, key_size);
  for (__u32 i = 0; i < 32; ++i) {
    if (i * 8 >= key_size) break;
    const __u32 left = key_size - i * 8;
    const __u64 mask = left >= 8 ? ~0ULL : low_bytes(left);
    hash = nic_hash_word(hash, word_at(scratch, at + i * 8) & mask);
  }
  return nic_hash_end(hash);
}

// Whether the copy of a slot has the key at `at`.
__attribute__((noinline)) int holds_key(__u32 slot, __u32 at, __u32 key_size) {
  const struct scratch *scratch = scratch_of();
  const struct nic_copy *copy = copy_of(slot);
  if (!scratch || !copy || copy->key_size != key_size) return 0;
  const __u8 *key = (const __u8 *)copy + kNicKeyAt;
  for (__u32 i = 0; i < 32; ++i) {
    if (i * 8 >= key_size) break;
    const __u32 left = key_size - i * 8;
    const __u64 mask = left >= 8 ? ~0ULL : low_bytes(left);
    if (((*(const __u64 *)(key + i * 8) ^ word_at(scratch, at + i * 8)) & mask) != 0) return 0;
  }
  return 1;
}

// Notes a hit; writes only what changes.
INLINE void touch(struct nic_set *set, __u32 way) {
  const __u8 recency = nic_used(set->recency, way);
  if (set->recency != recency) set->recency = recency;
  const __u32 touched = set->touched | 1u << way;
  if (set->touched != touched) set->touched = (__u8)touched;
}

// The slot of the copy of the key at `at` in the scratch memory; 0: there is none.
__attribute__((noinline)) int find(__u32 at, __u32 key_size) {
  const struct nic_control *control = control_of();
  if (!control) return 0;
  if (key_size == 0 || key_size > kNicKeyMax || at > kNicRequestMax) return 0;
  const __u64 hash = hash_at(at, key_size);
  const __u32 number = hash & control->set_mask;
  struct nic_set *set = bpf_map_lookup_elem(&nic_sets, &number);
  if (!set) return 0;
  const __u16 tag = nic_tag(hash);
  for (__u32 way = 0; way < kNicWays; ++way) {
    if (set->tags[way] != tag) continue;
    const __u32 slot = *(volatile __u32 *)&set->slots[way];
    if (slot == 0) continue;
    const struct nic_copy *copy = copy_of(slot);
    if (!copy || !holds_key(slot, at, key_size)) continue;
    if (copy->generation != *(volatile __u32 *)&control->generation) return 0;
    if (copy->expiry != 0 && copy->expiry <= *(volatile __u32 *)&control->now) return 0;
    touch(set, way);
    return (int)slot;
  }
  return 0;
}

INLINE void report_miss(struct nic_counters *counters, __u32 at, __u32 key_size) {
  const struct scratch *scratch = scratch_of();
  if (!scratch || key_size == 0 || key_size > kNicKeyMax) return;
  struct nic_wanted *wanted = bpf_ringbuf_reserve(&nic_wants, sizeof(*wanted), 0);
  if (!wanted) {
    ++counters->wanted_lost;
    return;
  }
  wanted->key_size = key_size;
  for (__u32 i = 0; i < 32; ++i) {
    if (i * 8 >= key_size) break;
    const __u64 word = word_at(scratch, at + i * 8);
    __builtin_memcpy(wanted->key + i * 8, &word, 8);
  }
  bpf_ringbuf_submit(wanted, BPF_RB_NO_WAKEUP);
  ++counters->wanted;
}

INLINE int is_local(const struct nic_control *control, const __u64 *target, __u32 vlan) {
  for (__u32 i = 0; i < kNicAddressesMax; ++i) {
    if (i >= control->address_count) return 0;
    const struct nic_address *address = &control->addresses[i];
    if (address->words[0] == target[0] && address->words[1] == target[1] && address->vlan == vlan) {
      return 1;
    }
  }
  return 0;
}

INLINE int is_allowed(const struct nic_control *control, const __u64 *source) {
  for (__u32 i = 0; i < kNicNetworksMax; ++i) {
    if (i >= control->network_count) return 0;
    const struct nic_network *network = &control->networks[i];
    if (((source[0] ^ network->words[0]) & network->mask[0]) == 0 &&
        ((source[1] ^ network->words[1]) & network->mask[1]) == 0) {
      return 1;
    }
  }
  return 0;
}

INLINE void load_address(const __u8 *ip, __u32 ipv6, __u32 which, __u64 *words) {
  if (ipv6) {
    __builtin_memcpy(words, ip + 8 + 16 * which, 16);
  } else {
    __u32 address;
    __builtin_memcpy(&address, ip + 12 + 4 * which, 4);
    words[0] = 0;
    words[1] = (__u64)address << 32 | bpf_htonl(0xffff);
  }
}

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

INLINE int put_value(struct xdp_md *ctx, struct reply *reply, __u32 slot, int with_cas) {
  const struct nic_copy *copy = copy_of(slot);
  if (!copy) return 0;
  __u32 head = copy->head_size;
  __u32 body = copy->value_size + 4;
  __u32 cas = copy->cas_size;
  if (head == 0 || head > 320 || body > kNicDatagramMax || cas == 0 || cas > 21) return 0;
  const __u8 *text = copy->text;
  if (!put(ctx, reply, text, head, copy->sum_head)) return 0;
  if (with_cas && !put(ctx, reply, text + head + body + 5, cas, copy->sum_cas)) return 0;
  return put(ctx, reply, text + head, body, copy->sum_body);
}

// Writes the headers of the reply: addresses and ports swapped, the checksums over `sum`, which is
// that of memcached's header and what follows.
INLINE int put_headers(struct xdp_md *ctx, const struct scratch *scratch,
                       const struct request *request, __u32 payload, __u64 sum) {
  __u8 *data = (__u8 *)(long)ctx->data;
  __u8 *end = (__u8 *)(long)ctx->data_end;
  const __u32 l3 = request->l3;
  if (l3 > kEthernet + 2 * kVlanTag) return 0;
  __u8 *ip = data + l3;
  if (ip + kIpv6 + kUdp > end) return 0;  // a reply is never shorter than this
  const __u8 *ethernet = scratch->ethernet;
  __builtin_memcpy(data, ethernet + 6, 6);
  __builtin_memcpy(data + 6, ethernet, 6);
  __builtin_memcpy(data + 12, ethernet + 12, 2);
  if (l3 >= kEthernet + kVlanTag) __builtin_memcpy(data + 14, ethernet + 14, 4);
  if (l3 == kEthernet + 2 * kVlanTag) __builtin_memcpy(data + 18, ethernet + 18, 4);
  const __u64 *source = request->source, *target = request->target;
  const __u16 udp_size = bpf_htons((__u16)(kUdp + payload));
  __u8 *udp;
  if (request->ipv6) {
    *(__u32 *)ip = bpf_htonl(6u << 28);
    *(__u16 *)(ip + 4) = udp_size;
    *(__u16 *)(ip + 6) = bpf_htons(kProtocolUdp << 8 | 64);
    __builtin_memcpy(ip + 8, target, 16);
    __builtin_memcpy(ip + 24, source, 16);
    for (int i = 0; i < 2; ++i) {
      sum += (source[i] & 0xffffffff) + (source[i] >> 32);
      sum += (target[i] & 0xffffffff) + (target[i] >> 32);
    }
    udp = ip + kIpv6;
  } else {
    const __u32 from = (__u32)(target[1] >> 32), to = (__u32)(source[1] >> 32);
    const __u16 total = bpf_htons((__u16)(kIpv4 + kUdp + payload));
    *(__u16 *)ip = bpf_htons(0x4500);
    *(__u16 *)(ip + 2) = total;
    *(__u16 *)(ip + 4) = 0;
    *(__u16 *)(ip + 6) = bpf_htons(0x4000);
    *(__u16 *)(ip + 8) = bpf_htons(64 << 8 | kProtocolUdp);
    const __u64 addresses = (__u64)from + to;
    const __u64 ip_sum = addresses + bpf_htons(0x4500) + total + bpf_htons(0x4000) +
                         bpf_htons(64 << 8 | kProtocolUdp);
    *(__u16 *)(ip + 10) = (__u16)~fold(ip_sum);
    __builtin_memcpy(ip + 12, &from, 4);
    __builtin_memcpy(ip + 16, &to, 4);
    sum += addresses;
    udp = ip + kIpv4;
  }
  const __u16 from_port = (__u16)(scratch->words[0] >> 16), to_port = (__u16)scratch->words[0];
  *(__u16 *)udp = from_port;
  *(__u16 *)(udp + 2) = to_port;
  *(__u16 *)(udp + 4) = udp_size;
  __u16 check = 0;
  if (request->has_sum) {
    sum += (__u64)from_port + to_port + 2 * udp_size + bpf_htons(kProtocolUdp);
    check = (__u16)~fold(sum);
    if (check == 0) check = 0xffff;
  }
  *(__u16 *)(udp + 6) = check;
  return 1;
}

// Makes the frame this many bytes longer or shorter: at its end, or where the driver leaves no room
// there, at its beginning.
INLINE int resize(struct xdp_md *ctx, int bytes) {
  if (bpf_xdp_adjust_tail(ctx, bytes) == 0) return 1;
  return bpf_xdp_adjust_head(ctx, -bytes) == 0;
}

// Whether the checksum over the datagram in the scratch memory is right, or is what a sender leaves
// for its device to finish: the sum over the pseudo header alone (veth passes such frames on).
INLINE int is_intact(const struct scratch *scratch, const struct request *request) {
  const __u64 *source = request->source, *target = request->target;
  __u64 sum = bpf_htons(kProtocolUdp) + bpf_htons((__u16)request->udp_size);
  // The words of ::ffff: count as much as the checksum's zero.
  for (int i = 0; i < 2; ++i) {
    sum += (source[i] & 0xffffffff) + (source[i] >> 32);
    sum += (target[i] & 0xffffffff) + (target[i] >> 32);
  }
  const __u16 check = (__u16)(scratch->words[0] >> 48);
  if (check == fold(sum)) return 1;
  for (__u32 i = 0; i < kNicRequestMax / 8; ++i) {
    if (i * 8 >= request->udp_size) break;
    const __u64 word = scratch->words[i];
    sum += (word & 0xffffffff) + (word >> 32);
  }
  return fold(sum) == 0xffff;
}

// What a datagram in the scratch memory asks for.
struct command {
  __u32 keys;   // found copies: scratch.slots
  __u32 reply;  // bytes of text
  __u32 with_cas;
  __u32 missed_at;  // of the first key without a copy
  __u32 missed_size;
};

// "get KEY" or "gets KEY". REQUIRES: the text ends at `end`, with CR LF.
INLINE int find_text(struct scratch *scratch, __u32 end, struct command *command) {
  __u32 at = kCommandAt + 4;
  const __u32 word = (__u32)word_at(scratch, kCommandAt);
  const __u32 get = 'g' | 'e' << 8 | 't' << 16;
  command->with_cas = 0;
  if (word == (get | (__u32)'s' << 24) && byte_at(scratch, at) == ' ') {
    command->with_cas = 1;
    ++at;
  } else if (word != (get | (__u32)' ' << 24)) {
    return 0;
  }
  if (end <= at || end - at > kNicKeyMax) return 0;
  const __u32 slot = (__u32)find(at, end - at);
  command->missed_at = at;
  command->missed_size = end - at;
  if (slot == 0) return 1;
  const struct nic_copy *copy = copy_of(slot);
  if (!copy) return 0;
  command->reply =
      copy->head_size + copy->value_size + 4 + 5 + (command->with_cas ? copy->cas_size : 0);
  command->keys = 1;
  scratch->slots[0] = slot;
  return 1;
}

SEC("xdp")
int warpcache_nic(struct xdp_md *ctx) {
  __u8 *data = (__u8 *)(long)ctx->data;
  __u8 *data_end = (__u8 *)(long)ctx->data_end;
  struct request request = {};
  if (data + kEthernet + 2 * kVlanTag + kIpv4 > data_end) return XDP_PASS;
  __u16 type = *(__u16 *)(data + 12);
  request.l3 = kEthernet;
  if (type == bpf_htons(0x8100) || type == bpf_htons(0x88a8)) {
    request.vlan = bpf_ntohs(*(__u16 *)(data + 14)) & 0xfff;
    request.l3 += kVlanTag;
    type = *(__u16 *)(data + 16);
    if (type == bpf_htons(0x8100)) {
      request.vlan |= (__u32)(bpf_ntohs(*(__u16 *)(data + 18)) & 0xfff) << 12;
      request.l3 += kVlanTag;
      type = *(__u16 *)(data + 20);
    }
  }
  __u8 *ip = data + request.l3;
  __u8 *udp;
  __u32 carried;
  if (type == bpf_htons(0x0800)) {
    if (ip + kIpv4 + kUdp > data_end) return XDP_PASS;
    if (ip[9] != kProtocolUdp || ip[0] != 0x45) return XDP_PASS;
    if ((*(__u16 *)(ip + 6) & bpf_htons(0x3fff)) != 0) return XDP_PASS;
    udp = ip + kIpv4;
    carried = bpf_ntohs(*(__u16 *)(ip + 2)) - kIpv4;
  } else if (type == bpf_htons(0x86dd)) {
    if (ip + kIpv6 + kUdp > data_end) return XDP_PASS;
    if (ip[6] != kProtocolUdp || ip[0] >> 4 != 6) return XDP_PASS;
    udp = ip + kIpv6;
    carried = bpf_ntohs(*(__u16 *)(ip + 4));
    request.ipv6 = 1;
  } else {
    return XDP_PASS;
  }
  const struct nic_control *control = control_of();
  if (!control || *(__u16 *)(udp + 2) != control->port) return XDP_PASS;
  __u32 queue = ctx->rx_queue_index;
  if (queue >= kNicQueuesMax) queue = kNicQueuesMax - 1;
  struct nic_counters *counters = bpf_map_lookup_elem(&nic_count, &queue);
  struct scratch *scratch = scratch_of();
  if (!counters || !scratch) return XDP_PASS;
  ++counters->requests;
  if (bpf_ktime_get_coarse_ns() > *(volatile __u64 *)&control->alive_until) {
    ++counters->asleep;
    return XDP_PASS;
  }

  // For this host, from one host, complete and intact.
  load_address(ip, request.ipv6, 0, request.source);
  load_address(ip, request.ipv6, 1, request.target);
  __builtin_memcpy(scratch->ethernet, data, kEthernet + 2 * kVlanTag);
  __u32 differs = *(__u32 *)data ^ *(__u32 *)control->mac;
  differs |= *(__u16 *)(data + 4) ^ *(__u16 *)(control->mac + 4);
  differs |= data[6] & 1;
  if (request.ipv6) {
    differs |= (request.source[0] | request.source[1]) == 0 || ip[8] == 0xff;
  } else {
    differs |= ip[12] == 0 || ip[12] >= 224;
    __u64 sum = 0;
    for (__u32 i = 0; i < kIpv4; i += 4) sum += *(__u32 *)(ip + i);
    differs |= fold(sum) ^ 0xffff;
  }
  const __u32 udp_size = bpf_ntohs(*(__u16 *)(udp + 4));
  differs |= *(__u16 *)udp == 0;
  differs |= udp_size > carried || (long)carried > data_end - udp;
  if (differs != 0 || !is_local(control, request.target, request.vlan)) {
    ++counters->foreign;
    return XDP_PASS;
  }
  request.udp_size = udp_size;
  request.has_sum = *(__u16 *)(udp + 6) != 0;
  __u32 size = udp_size;
  if (size < kCommandAt + 7 || size > kNicRequestMax) {
    ++counters->other;
    return XDP_PASS;
  }
  OPAQUE(size);
  if (size == 0 || size > kNicRequestMax) return XDP_PASS;
  if (bpf_xdp_load_bytes(ctx, (__u32)(udp - data), scratch->words, size) != 0) return XDP_PASS;
  __builtin_memset((__u8 *)scratch->words + size, 0, 8);
  const int intact = request.has_sum ? is_intact(scratch, &request) : !request.ipv6;
  if (!intact) {
    ++counters->foreign;
    return XDP_PASS;
  }

  // memcached's header: one datagram; then the command.
  struct command command = {};
  const __u64 header = scratch->words[1];
  const __u32 text_end = udp_size - 2;
  const int known = (header >> 32 & 0xffff) == bpf_htons(1) && byte_at(scratch, text_end) == '\r' &&
                    byte_at(scratch, text_end + 1) == '\n' &&
                    find_text(scratch, text_end, &command);
  if (!known) {
    ++counters->other;
    return XDP_PASS;
  }
  if (command.keys == 0) {
    ++counters->misses;
    if (control->read_allocate) report_miss(counters, command.missed_at, command.missed_size);
    return XDP_PASS;
  }
  const __u32 payload = kMemcached + command.reply;
  if (payload > kNicDatagramMax) {
    ++counters->other;
    return XDP_PASS;
  }
  if (payload > (udp_size - kUdp) * control->amplification &&
      !is_allowed(control, request.source)) {
    ++counters->guarded;
    return XDP_PASS;
  }

  struct reply reply;
  reply.begin = request.l3 + (request.ipv6 ? kIpv6 : kIpv4) + kUdp + kMemcached;
  reply.at = reply.begin;
  const int frame = (int)(reply.begin + command.reply);
  if (!resize(ctx, frame - (int)(data_end - data))) {
    ++counters->no_room;
    return XDP_PASS;
  }
  // From here on the frame is a reply. What follows cannot fail.
  const __u64 reply_header = (header & 0xffff) | (__u64)bpf_htons(1) << 32;
  if (bpf_xdp_store_bytes(ctx, reply.begin - kMemcached, (void *)&reply_header, 8) != 0) {
    return XDP_ABORTED;
  }
  reply.sum = (header & 0xffff) + bpf_htons(1);
  if (!put_value(ctx, &reply, scratch->slots[0], command.with_cas != 0)) return XDP_ABORTED;
  const char end_line[6] = "END\r\n";
  if (!put(ctx, &reply, end_line, 5, ('E' | 'N' << 8) + ('D' | '\r' << 8) + '\n')) {
    return XDP_ABORTED;
  }
  if (!put_headers(ctx, scratch, &request, payload, reply.sum)) return XDP_ABORTED;
  ++counters->hits;
  counters->keys += command.keys;
  counters->reply_bytes += payload;
  return XDP_TX;
}

char nic_license[] SEC("license") = "Apache-2.0";
