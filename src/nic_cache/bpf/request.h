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
    __builtin_memcpy(words, ip + 8 + 16 * which, 16);
  } else {
    __u32 address;
    __builtin_memcpy(&address, ip + 12 + 4 * which, 4);
    words[0] = 0;
    words[1] = (__u64)address << 32 | bpf_htonl(0xffff);
  }
}

// Whether the server listens at the request's target.
APART int is_local(const struct scratch *scratch, __u32 vlan) {
  const struct nic_control *control = control_of();
  if (!scratch || !control) return 0;
  const __u64 *target = scratch->target;
  for (__u32 i = 0; i < kNicAddressesMax; ++i) {
    if (i >= control->address_count) return 0;
    const struct nic_address *address = &control->addresses[i];
    if (address->words[0] == target[0] && address->words[1] == target[1] && address->vlan == vlan) {
      return 1;
    }
  }
  return 0;
}

// Whether the request's source may have replies of any size.
APART int is_allowed(const struct scratch *scratch) {
  const struct nic_control *control = control_of();
  if (!scratch || !control) return 0;
  const __u64 *source = scratch->source;
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

// Whether the checksum over the datagram in the scratch memory is right, or is what a sender leaves
// for its device to finish: the sum over the pseudo header alone (veth passes such frames on).
APART int is_intact(const struct scratch *scratch, __u32 udp_size) {
  if (!scratch) return 0;
  __u64 sum = bpf_htons(kProtocolUdp) + bpf_htons((__u16)udp_size);
  // The words of ::ffff: count as much as the checksum's zero.
  for (int i = 0; i < 2; ++i) sum += halves(scratch->source[i]) + halves(scratch->target[i]);
  if ((__u16)(scratch->words[0] >> 48) == fold(sum)) return 1;
  for (__u32 i = 0; i < kNicRequestMax / 8; ++i) {
    if (i * 8 >= udp_size) break;
    sum += halves(scratch->words[i]);
  }
  return fold(sum) == 0xffff;
}

#endif  // WARPCACHE_NIC_CACHE_BPF_REQUEST_H_
