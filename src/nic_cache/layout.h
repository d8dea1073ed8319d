// SPDX-License-Identifier: Apache-2.0
//
// The memory that the server and the XDP program share: BPF maps that the server has mapped. Plain
// C, because the program (bpf/nic_cache.bpf.c) is C. The server alone writes all of it except
// nic_set::recency, nic_set::touched, nic_control::accepted, nic_versions and the counters. Numbers
// are in the machine's byte order unless a comment says otherwise.
#ifndef WARPCACHE_NIC_CACHE_LAYOUT_H_
#define WARPCACHE_NIC_CACHE_LAYOUT_H_

#include <linux/types.h>

enum {
  kNicWays = 8,
  kNicKeyMax = 250,        // bytes
  kNicDatagramMax = 1400,  // bytes of UDP payload of a reply, memcached's header included
  kNicGranule = 64,        // bytes; copies start at multiples of it
  kNicBlockShift = 20,     // copies lie in blocks of 1 MiB
  kNicBlockBytes = 1 << 20,
  kNicCopyMax = 2048,     // bytes of the largest copy
  kNicAddressesMax = 32,  // of the interface
  kNicNetworksMax = 32,   // of --udp-allow
  kNicQueuesMax = 64,     // with counters of their own
  kNicRequestMax = 512,   // bytes of UDP, its header included; longer requests pass
  kNicKeysMax = 16,       // of a multiget; more pass
  kNicTextAt = 50,        // of nic_copy::text: the key, 6 bytes later, is a multiple of 8
  kNicVersions = 8192,    // a power of two
  kNicKeyAt = kNicTextAt + 6,
};

// A set of copies: 8 ways. A way is empty if its slot is 0.
struct nic_set {
  __u16 tags[kNicWays];
  __u32 slots[kNicWays];  // where the copy lies, in granules from the start of the first block
  __u8 recency;           // tree pseudo-LRU; hint
  __u8 touched;           // ways that were hit since the server looked; hint
  __u8 reserved[14];
};

// A copy of an item, constant while a slot points to it, and until every run of the program that
// may have seen the slot has ended. text has the pieces of replies:
//   "VALUE KEY FLAGS SIZE"   head_size bytes
//   "\r\n" value "\r\n"      value_size + 4 bytes
//   "END\r\n"                5 bytes
//   " CAS"                   cas_size bytes
// The sums are Internet checksums of pieces, folded to 16 bits, each as if at an even offset.
struct nic_copy {
  __u64 cas;
  __u32 generation;  // the copy is dead when this differs from nic_control::generation
  __u32 expiry;      // server second from which the copy is dead; 0: never
  __u32 client_flags;
  __u32 set;      // where the slot is, for the server
  __u32 version;  // of nic_versions; with write-back the copy is dead when it differs
  __u32 reserved;
  __u16 value_size;  // bytes
  __u16 head_size;
  __u16 sum_head;
  __u16 sum_body;  // of "\r\n" value "\r\n"
  __u16 sum_value;
  __u16 sum_cas;
  __u8 key_size;
  __u8 way;
  __u8 flags_size;  // digits
  __u8 cas_size;    // the blank and the digits
  __u16 sum_get;    // of the whole reply to a get: head, body and END
  __u8 text[1998];
};

// One for the server. Its first words are read for every datagram to the server's port.
struct nic_control {
  __u64 alive_until;    // nanoseconds of the monotonic clock; later, everything passes
  __u64 seed;           // of the hash
  __u32 now;            // server second
  __u32 generation;     // raised by flush_all
  __u32 set_mask;       // number of sets minus 1
  __u32 amplification;  // reply bytes per request byte, for sources outside the networks
  __u16 port;           // of the server, in network order
  __u8 mac[6];          // of the interface
  __u8 read_allocate;   // keys that were missed are reported
  __u8 text;            // text and meta commands are answered
  __u8 binary;          // binary commands are answered
  __u8 write_back;      // the program accepts sets of items that it has copies of
  __u32 address_count;
  __u32 network_count;
  __u32 rate;  // datagrams a second that a source may send; 0: any number
  __u32 reserved;
  struct nic_address {
    __u64 words[2];  // IPv4 as ::ffff:a.b.c.d, in network order
    __u32 vlan;      // tag that its interface has; 0: none
    __u32 reserved;
  } addresses[kNicAddressesMax];
  struct nic_network {
    __u64 words[2];
    __u64 mask[2];
  } networks[kNicNetworksMax];
  __u64 accepted __attribute__((aligned(64)));  // writes that have a place in their ring
};

// Of all keys with the same hash bits: raised by a write that the program accepts, before it is
// answered.
struct nic_versions {
  __u32 of[kNicVersions];
};

// A write that the program has accepted and that the server takes over.
struct nic_write {
  __u64 cas;  // of the item that it replaces; its own is above
  __u32 key_size;
  __u32 value_size;
  __u32 client_flags;
  __u32 reserved;
  __u8 key[256];
  __u8 value[512];
};

// Of a receive queue and a CPU.
struct nic_counters {
  __u64 requests;     // datagrams to the server's port
  __u64 hits;         // requests answered
  __u64 keys;         // keys in them
  __u64 misses;       // requests for keys without a copy: passed
  __u64 other;        // requests of another form: passed
  __u64 foreign;      // of another host, of another source than may ask, or faulty: passed
  __u64 guarded;      // replies that the amplification limit forbids: passed
  __u64 no_room;      // replies for which the driver has no room in the frame: passed
  __u64 asleep;       // the server gave no sign of life: passed
  __u64 wanted;       // keys reported
  __u64 wanted_lost;  // not reported, because the server has not read earlier ones
  __u64 reply_bytes;  // UDP payload
  __u64 writes;       // sets accepted, of the hits
  __u64 limited;      // beyond the rate of their source: dropped
};

// What a source has sent, with nic_control::rate.
struct nic_source {
  __u64 second;  // of the monotonic clock
  __u64 count;   // datagrams in it
};

// A key that was missed, as the program reports it.
struct nic_wanted {
  __u32 key_size;
  __u8 key[256];
};

// nic_set::recency when a way was used last. Bits of the tree: 0 root, 1 and 2 its children, 3 to 6
// pairs of ways; a bit says in which half the least recently used way is.
static inline __attribute__((always_inline)) __u8 nic_used(__u32 recency, __u32 way) {
  const __u32 pair = 3 + (way >> 1);
  const __u32 half = 1 + (way >> 2);
  const __u32 kept = recency & ~(1u | 1u << half | 1u << pair);
  return (__u8)(kept | (way >> 2 ^ 1) | ((way >> 1 & 1) ^ 1) << half | ((way & 1) ^ 1) << pair);
}

// The hash of a key, a word of 8 bytes at a time; the last one is padded with zeros.
static inline __attribute__((always_inline)) __u64 nic_hash_begin(__u64 seed, __u32 key_size) {
  return seed ^ key_size * 0x9e3779b97f4a7c15ULL;
}
static inline __attribute__((always_inline)) __u64 nic_hash_word(__u64 state, __u64 word) {
  state = (state ^ word) * 0xd6e8feb86659fd93ULL;
  return state ^ state >> 32;
}
static inline __attribute__((always_inline)) __u64 nic_hash_end(__u64 state) {
  state *= 0xa5a3564e27f8862bULL;
  return state ^ state >> 29;
}
static inline __attribute__((always_inline)) __u16 nic_tag(__u64 hash) {
  return (__u16)(hash >> 48);
}
static inline __attribute__((always_inline)) __u32 nic_version_index(__u64 hash) {
  return (__u32)(hash >> 32) & (kNicVersions - 1);
}

#endif  // WARPCACHE_NIC_CACHE_LAYOUT_H_
