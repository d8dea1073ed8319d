// SPDX-License-Identifier: Apache-2.0
//
// Reading the headers of a request.
#ifndef WARPCACHE_NIC_CACHE_BPF_REQUEST_H_
#define WARPCACHE_NIC_CACHE_BPF_REQUEST_H_

#include "nic_cache/bpf/maps.h"

// Where the parts of a request lie.
struct request {
  __u32 l3;        // offset of the IP header: 14, 18 or 22
  __u32 ipv6;      // 1 or 0
  __u32 udp_size;  // bytes, header included
  __u32 vlan;      // tag; of two the second one above the first
  __u32 has_sum;
};

INLINE void load_address(const __u8 *ip, __u32 ipv6, __u32 which, __u64 *words) {
  if (ipv6) {
    words[0] = load64(ip + 8 + 16 * which);
    words[1] = load64(ip + 16 + 16 * which);
  } else {
    words[0] = 0;
    words[1] = (__u64)load32(ip + 12 + 4 * which) << 32 | bpf_htonl(0xffff);
  }
}

// Whether the server listens at the request's target.
APART int is_local(const struct scratch *scratch, __u32 vlan) {
  if (!scratch) return 0;
  const __u64 *target = scratch->target;
  for (__u32 i = 0; i < kNicAddressesMax; ++i) {
    if (i >= nic_control.address_count) return 0;
    const struct nic_address *address = &nic_control.addresses[i];
    if (address->words[0] == target[0] && address->words[1] == target[1] && address->vlan == vlan) {
      return 1;
    }
  }
  return 0;
}

// The same of the first address, without a call.
INLINE int is_first_local(const struct scratch *scratch, __u32 vlan) {
  const struct nic_address *address = &nic_control.addresses[0];
  return nic_control.address_count != 0 && address->words[0] == scratch->target[0] &&
         address->words[1] == scratch->target[1] && address->vlan == vlan;
}

// Whether the request's source may have replies of any size.
APART int is_allowed(const struct scratch *scratch) {
  if (!scratch) return 0;
  const __u64 *source = scratch->source;
  for (__u32 i = 0; i < kNicNetworksMax; ++i) {
    if (i >= nic_control.network_count) return 0;
    const struct nic_network *network = &nic_control.networks[i];
    if (((source[0] ^ network->words[0]) & network->mask[0]) == 0 &&
        ((source[1] ^ network->words[1]) & network->mask[1]) == 0) {
      return 1;
    }
  }
  return 0;
}

// Counts a datagram of the request's source. Whether that has sent more than it may in this second.
APART int is_over_rate(const struct scratch *scratch) {
  if (!scratch) return 0;
  __u64 key[2] = {scratch->source[0], scratch->source[1]};
  if (key[0] != 0) key[1] = 0;
  const __u64 second = bpf_ktime_get_coarse_ns() / 1000000000;
  struct nic_source *source = bpf_map_lookup_elem(&nic_sources, &key);
  if (!source) {
    const struct nic_source first = {second, 1};
    bpf_map_update_elem(&nic_sources, &key, &first, BPF_ANY);
    return 0;
  }
  if (source->second != second) {
    source->second = second;
    source->count = 0;
  }
  return __sync_fetch_and_add(&source->count, 1) >= nic_control.rate;
}

// Whether the server gave a sign of life. The clock advances by ticks: it is read once in a tick
// and for each sign of life, as reading it is a call.
INLINE int is_awake(struct scratch *scratch) {
  const __u64 until = *(volatile __u64 *)&nic_control.alive_until;
  const __u64 tick = bpf_jiffies64();
  if (scratch->awake_tick == tick && scratch->awake_until == until) return 1;
  if (bpf_ktime_get_coarse_ns() > until) return 0;
  scratch->awake_tick = tick;
  scratch->awake_until = until;
  return 1;
}

// The sum over the pseudo header of a datagram.
INLINE __u64 pseudo_sum(const struct scratch *scratch, __u32 udp_size) {
  __u64 sum = bpf_htons(kProtocolUdp) + bpf_htons((__u16)udp_size);
  // The words of ::ffff: count as much as the checksum's zero.
  for (int i = 0; i < 2; ++i) sum += halves(scratch->source[i]) + halves(scratch->target[i]);
  return sum;
}

// Copies the datagram at `udp` to the scratch memory, with at least 8 bytes of zeros after it, and
// adds it to `*sum`. False: it is not whole. REQUIRES: 8 <= udp_size <= kNicRequestMax.
INLINE int load_datagram(struct scratch *scratch, const __u8 *udp, const __u8 *data_end,
                         __u32 udp_size, __u64 *sum) {
  const __u32 whole = udp_size / 8;
  __u32 last_at = udp_size - 8;
  OPAQUE(last_at);
  if (last_at > kNicRequestMax - 8) return 0;
  const __u8 *const last = udp + last_at;
  if (last + 8 > data_end) return 0;
  // What is left after the whole words, of up to 7 bytes.
  const __u64 rest = load64(last) >> 1 >> (63 - 8 * (udp_size & 7));
  __u32 rest_at = whole;
  OPAQUE(rest_at);
  rest_at &= 127;
  scratch->words[rest_at] = rest;
  scratch->words[rest_at + 1] = 0;
  __u64 total = *sum + halves(rest);
  for (__u32 i = 0; i < kNicRequestMax / 8; ++i) {
    if (i >= whole) break;
    if (udp + i * 8 + 8 > data_end) return 0;
    const __u64 word = load64(udp + i * 8);
    scratch->words[i] = word;
    total += halves(word);
  }
  *sum = total;
  return 1;
}

#endif  // WARPCACHE_NIC_CACHE_BPF_REQUEST_H_
