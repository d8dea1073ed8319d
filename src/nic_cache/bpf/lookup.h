// SPDX-License-Identifier: Apache-2.0
//
// Finding copies, and reporting keys that have none.
#ifndef WARPCACHE_NIC_CACHE_BPF_LOOKUP_H_
#define WARPCACHE_NIC_CACHE_BPF_LOOKUP_H_

#include "nic_cache/bpf/maps.h"

// The hash of the key at `at` in the scratch memory. REQUIRES: key_size is not 0.
INLINE __u64 hash_at(const struct scratch *scratch, __u32 at, __u32 key_size) {
  __u64 hash = nic_hash_begin(nic_control.seed, key_size);
  const __u32 count = words_before_last(key_size);
  for (__u32 i = 0; i < kNicKeyMax / 8 + 1; ++i) {
    if (i >= count) break;
    hash = nic_hash_word(hash, word_at(scratch, at + i * 8));
  }
  const __u32 from = words_before_last(key_size) * 8;
  const __u64 last = keep_bytes(word_at(scratch, at + from), key_size - from);
  return nic_hash_end(nic_hash_word(hash, last));
}

// Whether a copy has the key at `at`. REQUIRES: key_size is not 0.
INLINE int holds_key(const struct scratch *scratch, const struct nic_copy *copy, __u32 at,
                     __u32 key_size) {
  if (copy->key_size != key_size) return 0;
  const __u8 *key = (const __u8 *)copy + kNicKeyAt;
  __u64 differs = 0;
  const __u32 count = words_before_last(key_size);
  for (__u32 i = 0; i < kNicKeyMax / 8 + 1; ++i) {
    if (i >= count) break;
    differs |= load64(key + i * 8) ^ word_at(scratch, at + i * 8);
  }
  __u32 from = words_before_last(key_size) * 8;
  OPAQUE(from);
  if (from > kNicKeyMax) return 0;
  const __u64 last = load64(key + from) ^ word_at(scratch, at + from);
  return (differs | keep_bytes(last, key_size - from)) == 0;
}

// Whether a copy may be shown now.
INLINE int is_live(const struct nic_copy *copy, __u64 hash) {
  if (nic_control.write_back &&
      copy->version != *(volatile __u32 *)&nic_versions.of[nic_version_index(hash)]) {
    return 0;
  }
  if (copy->generation != *(volatile __u32 *)&nic_control.generation) return 0;
  return copy->expiry == 0 || copy->expiry > *(volatile __u32 *)&nic_control.now;
}

// Notes a hit; writes only what changes.
INLINE void touch(struct nic_set *set, __u32 way) {
  const __u8 recency = nic_used(set->recency, way);
  if (set->recency != recency) set->recency = recency;
  const __u32 touched = set->touched | 1u << way;
  if (set->touched != touched) set->touched = (__u8)touched;
}

// The first way whose tag is equal; kNicWays or more: there is none.
INLINE __u32 way_of(const struct nic_set *set, __u16 tag) {
  const __u64 ones = 0x0001000100010001ULL, tops = 0x8000800080008000ULL;
  __u32 before = 0;
  for (int half = 0; half < 2; ++half, before += 4) {
    const __u64 differs = load64(set->tags + half * 4) ^ tag * ones;
    const __u64 equal = (differs - ones) & ~differs & tops;  // the lowest one is right
    if (equal == 0) continue;
    const __u64 up_to = ((equal & -equal) - 1) & ones;  // a bit of each tag up to the equal one
    return before + (__u32)(up_to * ones >> 48) - 1;
  }
  return kNicWays;
}

// The slot of the copy of the key at `at`, if it is in the first way with the key's tag; else 0:
// find() looks at all ways. REQUIRES: key_size is not 0.
INLINE __u32 find_first(const struct scratch *scratch, __u32 at, __u32 key_size) {
  const __u64 hash = hash_at(scratch, at, key_size);
  const __u32 number = hash & nic_control.set_mask;
  struct nic_set *set = bpf_map_lookup_elem(&nic_sets, &number);
  if (!set) return 0;
  __u32 way = way_of(set, nic_tag(hash));
  OPAQUE(way);
  if (way >= kNicWays) return 0;
  const __u32 slot = *(volatile __u32 *)&set->slots[way];
  if (slot == 0) return 0;
  const struct nic_copy *copy = copy_of(slot);
  if (!copy || !holds_key(scratch, copy, at, key_size) || !is_live(copy, hash)) return 0;
  touch(set, way);
  return slot;
}

// The slot of the copy of the key at `at` in the scratch memory; 0: there is none.
APART int find(const struct scratch *scratch, __u32 at, __u32 key_size) {
  if (!scratch) return 0;
  if (key_size == 0 || key_size > kNicKeyMax || at > kNicRequestMax) return 0;
  const __u64 hash = hash_at(scratch, at, key_size);
  const __u32 number = hash & nic_control.set_mask;
  struct nic_set *set = bpf_map_lookup_elem(&nic_sets, &number);
  if (!set) return 0;
  const __u16 tag = nic_tag(hash);
  for (__u32 way = 0; way < kNicWays; ++way) {
    if (set->tags[way] != tag) continue;
    const __u32 slot = *(volatile __u32 *)&set->slots[way];
    if (slot == 0) continue;
    const struct nic_copy *copy = copy_of(slot);
    if (!copy || !holds_key(scratch, copy, at, key_size)) continue;
    if (!is_live(copy, hash)) return 0;
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
    store64(wanted->key + i * 8, word_at(scratch, at + i * 8));
  }
  bpf_ringbuf_submit(wanted, BPF_RB_NO_WAKEUP);
  return 1;
}

#endif  // WARPCACHE_NIC_CACHE_BPF_LOOKUP_H_
