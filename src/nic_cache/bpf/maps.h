// SPDX-License-Identifier: Apache-2.0
//
// The maps of the program, and the memory of a run.
#ifndef WARPCACHE_NIC_CACHE_BPF_MAPS_H_
#define WARPCACHE_NIC_CACHE_BPF_MAPS_H_

// clang-format off
#include <linux/bpf.h>  // first: libbpf's headers use its types
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>
// clang-format on

#include "nic_cache/layout.h"

#define INLINE static __attribute__((always_inline)) inline
// A function of its own: the verifier looks at it once.
#define APART __attribute__((noinline))
// Keeps the compiler from replacing a bound that the verifier must see.
#define OPAQUE(number) asm volatile("" : "+r"(number))

// Words at any address. The compiler would take a memcpy of unknown alignment to bytes; the
// machines that are served read and write words wherever they lie.
INLINE __u64 load64(const void *at) { return *(const __u64 *)at; }
INLINE __u32 load32(const void *at) { return *(const __u32 *)at; }
INLINE __u16 load16(const void *at) { return *(const __u16 *)at; }
INLINE void store64(void *at, __u64 word) { *(__u64 *)at = word; }
INLINE void store32(void *at, __u32 word) { *(__u32 *)at = word; }
INLINE void store16(void *at, __u16 word) { *(__u16 *)at = word; }

enum {
  kEthernet = 14,
  kVlanTag = 4,
  kIpv4 = 20,
  kIpv6 = 40,
  kUdp = 8,
  kMemcached = 8,
  kProtocolUdp = 17,
  kFrameMin = 60,
  kCommandAt = kUdp + kMemcached,                                     // in scratch.words
  kTextAtMax = kEthernet + 2 * kVlanTag + kIpv6 + kUdp + kMemcached,  // of a frame
  kLineMax = 512,  // bytes, with the room before the line
  kWindow = 1024,  // bytes of a command or a line that words are read from
};

// A map of its own, whose address is in the program's instructions: no look-up. libbpf makes it
// mappable. Written by the server while the program runs: what may change is read as volatile.
struct nic_control nic_control SEC(".data.nic_control") = {};
struct nic_versions nic_versions SEC(".data.nic_versions") = {};

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

struct {
  __uint(type, BPF_MAP_TYPE_RINGBUF);
  __uint(max_entries, 256 * 1024);
} nic_writes SEC(".maps");

// By address, of IPv6 the upper half: who may choose the lower one has as many sources as he wants.
struct {
  __uint(type, BPF_MAP_TYPE_LRU_HASH);
  __uint(max_entries, 1);  // the server sets it
  __uint(key_size, 16);
  __type(value, struct nic_source);
} nic_sources SEC(".maps");

enum verdict {
  kAnswer,  // there are copies of all keys
  kMiss,    // not of all
  kOther,   // a command of another form
};

// What follows the line of a reply.
enum rest {
  kNothing,
  kBody,   // CR LF, the value, CR LF
  kValue,  // the value
};

// The reply is either the text of `keys` copies and END, or a line and what follows it.
struct command {
  __u32 keys;
  __u32 reply;     // bytes
  __u32 with_cas;  // gets
  __u32 has_line;
  __u32 line_at;  // where the line begins in scratch.line
  __u32 line_size;
  __u32 rest;
  __u32 wanted;  // keys reported
  __u32 wanted_lost;
  __u32 wrote;  // a set was accepted
};

// What a run needs besides its stack.
struct scratch {
  __u64 words[kWindow / 8 + 2];  // UDP header, memcached's header, command; zeros
  __u64 line[kWindow / 8 + 1];   // of a meta or binary reply
  __u64 source[2];               // addresses, IPv4 as ::ffff:a.b.c.d
  __u64 target[2];
  __u64 awake_tick;  // in this tick the server was alive
  __u64 awake_until;
  struct command command;
  __u32 slots[kNicKeysMax];  // of the copies found
  __u8 ethernet[24];         // header with VLAN tags
};

struct {
  __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
  __uint(max_entries, 1);
  __type(key, __u32);
  __type(value, struct scratch);
} nic_scratch SEC(".maps");

INLINE struct scratch *scratch_of(void) {
  __u32 zero = 0;
  return bpf_map_lookup_elem(&nic_scratch, &zero);
}

// 8 bytes from `at` on. REQUIRES: at < kWindow; the verifier sees that it cannot be more.
INLINE __u64 word_in(const __u64 *words, __u32 at) {
  at &= kWindow - 1;
  OPAQUE(at);
  at &= kWindow - 1;
  return load64((const __u8 *)words + at);
}
INLINE __u64 word_at(const struct scratch *scratch, __u32 at) {
  return word_in(scratch->words, at);
}
INLINE __u8 byte_at(const struct scratch *scratch, __u32 at) {
  return ((const __u8 *)scratch->words)[at & (kNicRequestMax - 1)];
}

// The words of a piece before its last one; the piece is not empty. The count is computed anew for
// each loop: where the verifier sees one count in two loops, it follows the second one for each end
// of the first.
INLINE __u32 words_before_last(__u32 bytes) {
  OPAQUE(bytes);
  return (bytes - 1) / 8;
}

// The first `count` bytes of a word, of more than 8 all.
INLINE __u64 keep_bytes(__u64 word, __u32 count) {
  __s32 cut = 64 - 8 * (__s32)count;
  OPAQUE(cut);
  cut &= ~(cut >> 31);
  return word & ~0ULL >> (cut & 63);
}

INLINE __u16 fold(__u64 sum) {
  sum = (sum & 0xffffffff) + (sum >> 32);
  sum = (sum & 0xffff) + (sum >> 16 & 0xffff) + (sum >> 32);
  sum = (sum & 0xffff) + (sum >> 16);
  return (__u16)((sum & 0xffff) + (sum >> 16));
}

INLINE __u64 halves(__u64 word) { return (word & 0xffffffff) + (word >> 32); }

// The copy that a slot points to, as far as the memory of a copy reaches.
INLINE const struct nic_copy *copy_of(__u32 slot) {
  const __u32 block = slot >> (kNicBlockShift - 6);
  __u32 offset = slot * kNicGranule & (kNicBlockBytes - 1);
  const __u8 *bytes = bpf_map_lookup_elem(&nic_blocks, &block);
  OPAQUE(offset);
  if (!bytes || offset > kNicBlockBytes - kNicCopyMax) return 0;
  return (const struct nic_copy *)(bytes + offset);
}

#endif  // WARPCACHE_NIC_CACHE_BPF_MAPS_H_
