// SPDX-License-Identifier: Apache-2.0
//
// Finding copies, and reporting keys that have none.
#ifndef WARPCACHE_NIC_CACHE_BPF_LOOKUP_H_
#define WARPCACHE_NIC_CACHE_BPF_LOOKUP_H_

#include "nic_cache/bpf/maps.h"

// The hash of the key at `at` in the scratch memory.
APART __u64 hash_at(const struct scratch *scratch, __u32 at, __u32 key_size) {
  const struct nic_control *control = control_of();
  if (!scratch || !control) return 0;
  __u64 hash = nic_hash_begin(control->seed, key_size);
  for (__u32 i = 0; i < 32; ++i) {
    if (i * 8 >= key_size) break;
    hash = nic_hash_word(hash, keep_bytes(word_at(scratch, at + i * 8), key_size - i * 8));
  }
  return nic_hash_end(hash);
}

// Whether the copy of a slot has the key at `at`.
APART int holds_key(const struct scratch *scratch, __u32 slot, __u32 at, __u32 key_size) {
  const struct nic_copy *copy = copy_of(slot);
  if (!scratch || !copy || copy->key_size != key_size) return 0;
  const __u8 *key = (const __u8 *)copy + kNicKeyAt;
  for (__u32 i = 0; i < 32; ++i) {
    if (i * 8 >= key_size) break;
    const __u64 differs = *(const __u64 *)(key + i * 8) ^ word_at(scratch, at + i * 8);
    if (keep_bytes(differs, key_size - i * 8) != 0) return 0;
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
APART int find(const struct scratch *scratch, __u32 at, __u32 key_size) {
  const struct nic_control *control = control_of();
  if (!scratch || !control) return 0;
  if (key_size == 0 || key_size > kNicKeyMax || at > kNicRequestMax) return 0;
  const __u64 hash = hash_at(scratch, at, key_size);
  const __u32 number = hash & control->set_mask;
  struct nic_set *set = bpf_map_lookup_elem(&nic_sets, &number);
  if (!set) return 0;
  const __u16 tag = nic_tag(hash);
  for (__u32 way = 0; way < kNicWays; ++way) {
    if (set->tags[way] != tag) continue;
    const __u32 slot = *(volatile __u32 *)&set->slots[way];
    if (slot == 0) continue;
    const struct nic_copy *copy = copy_of(slot);
    if (!copy || !holds_key(scratch, slot, at, key_size)) continue;
    if (copy->generation != *(volatile __u32 *)&control->generation) return 0;
    if (copy->expiry != 0 && copy->expiry <= *(volatile __u32 *)&control->now) return 0;
    touch(set, way);
    return (int)slot;
  }
  return 0;
}

APART int report_miss(const struct scratch *scratch, __u32 at, __u32 key_size) {
  if (!scratch || key_size == 0 || key_size > kNicKeyMax) return 0;
  struct nic_wanted *wanted = bpf_ringbuf_reserve(&nic_wants, sizeof(*wanted), 0);
  if (!wanted) return 0;
  wanted->key_size = key_size;
  for (__u32 i = 0; i < 32; ++i) {
    if (i * 8 >= key_size) break;
    const __u64 word = word_at(scratch, at + i * 8);
    __builtin_memcpy(wanted->key + i * 8, &word, 8);
  }
  bpf_ringbuf_submit(wanted, BPF_RB_NO_WAKEUP);
  return 1;
}

#endif  // WARPCACHE_NIC_CACHE_BPF_LOOKUP_H_
