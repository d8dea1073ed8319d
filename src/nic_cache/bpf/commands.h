// SPDX-License-Identifier: Apache-2.0
//
// Commands: what the datagram in the scratch memory asks for, and whether there are copies of all
// of it.
#ifndef WARPCACHE_NIC_CACHE_BPF_COMMANDS_H_
#define WARPCACHE_NIC_CACHE_BPF_COMMANDS_H_

#include "nic_cache/bpf/lookup.h"

// The offset of the first blank or control character from `at` on.
APART int word_end(const struct scratch *scratch, __u32 at) {
  if (!scratch) return 0;
  for (__u32 i = 0; i < 64; ++i) {
    const __u64 word = word_at(scratch, at + i * 8);
    // The top bit of each byte that is at most 0x20; bytes above 0x7f are not.
    const __u64 small = (word - 0x2121212121212121ULL) & ~word & 0x8080808080808080ULL;
    if (small == 0) continue;
    // Bytes below the lowest of them, each counted by its last bit.
    const __u64 below = ((small & -small) - 1) & 0x0101010101010101ULL;
    return (int)(at + i * 8 + (__u32)(below * 0x0101010101010101ULL >> 56) - 1);
  }
  return 0;
}

INLINE void note_miss(struct scratch *scratch, __u32 at, __u32 size) {
  struct command *command = &scratch->command;
  if (!nic_control.read_allocate) return;
  if (report_miss(scratch, at, size)) {
    ++command->wanted;
  } else {
    ++command->wanted_lost;
  }
}

// Adds a copy to a text reply.
INLINE void add_copy(struct scratch *scratch, __u32 slot) {
  struct command *command = &scratch->command;
  const struct nic_copy *copy = copy_of(slot);
  if (!copy) return;
  command->reply += copy->head_size + copy->value_size + 4;
  if (command->with_cas) command->reply += copy->cas_size;
  scratch->slots[command->keys & (kNicKeysMax - 1)] = slot;
  ++command->keys;
}

// The keys of a command, with blanks between them.
APART int find_keys(struct scratch *scratch, __u32 at, __u32 end) {
  if (!scratch) return kOther;
  int verdict = kAnswer;
  // 64 bits, here and where else a round makes calls: the verifier loses count of smaller numbers
  // when the compiler saves them on the stack beside others.
  for (__u64 i = 0; i < kNicKeysMax; ++i) {
    const __u32 stop = (__u32)word_end(scratch, at);
    if (stop <= at || stop > end || stop - at > kNicKeyMax) return kOther;
    const __u32 slot = (__u32)find(scratch, at, stop - at);
    if (slot != 0) {
      add_copy(scratch, slot);
    } else {
      note_miss(scratch, at, stop - at);
      verdict = kMiss;
    }
    if (stop == end) return verdict;
    if (byte_at(scratch, stop) != ' ') return kOther;
    at = stop + 1;
  }
  return kOther;
}

// "get KEY...", "gets KEY...". REQUIRES: the text ends before the CR LF at `end`. One key whose
// copy lies where most do is found here, without a call; copies' keys have no blanks.
INLINE int find_gets(struct scratch *scratch, __u32 at, __u32 end) {
  struct command *command = &scratch->command;
  command->with_cas = at != kCommandAt + 4;
  command->reply = 5;  // END, CR LF
  __u32 size = end - at;
  OPAQUE(size);
  if ((__s32)size <= 0) return kOther;
  if (size <= kNicKeyMax) {
    const __u32 slot = find_first(scratch, at, size);
    if (slot != 0) {
      add_copy(scratch, slot);
      return kAnswer;
    }
  }
  return find_keys(scratch, at, end);
}

// The line being written: bytes may be written beyond its end.
INLINE void put_word(struct scratch *scratch, __u32 at, __u64 word) {
  at &= kWindow - 1;
  OPAQUE(at);
  at &= kWindow - 1;
  store64((__u8 *)scratch->line + at, word);
}

// Up to 24 bytes of a copy, from `from` on.
INLINE void put_piece(struct scratch *scratch, __u32 at, const struct nic_copy *copy, __u32 from) {
  OPAQUE(from);
  if (from > kNicCopyMax - 24) return;
  const __u8 *piece = (const __u8 *)copy + from;
  put_word(scratch, at, load64(piece));
  put_word(scratch, at + 8, load64(piece + 8));
  put_word(scratch, at + 16, load64(piece + 16));
}

APART int put_key(struct scratch *scratch, __u32 at, __u32 slot) {
  const struct nic_copy *copy = copy_of(slot);
  if (!scratch || !copy) return 0;
  const __u8 *key = (const __u8 *)copy + kNicKeyAt;
  for (__u32 i = 0; i < 32; ++i) {
    if (i * 8 >= copy->key_size) break;
    put_word(scratch, at + i * 8, load64(key + i * 8));
  }
  return copy->key_size;
}

enum { kLineAt = 16 };  // in scratch.line; the line's first words may lie before it

// The flag at `at` of a meta command, whose reply is written from `out` on. Returns the bytes
// written; -1 if the program does not answer commands with this flag.
APART int put_flag(struct scratch *scratch, __u32 slot, __u32 at, __u32 size, __u32 out) {
  const struct nic_copy *copy = copy_of(slot);
  if (!scratch || !copy) return -1;
  const __u8 letter = byte_at(scratch, at);
  if (letter == 'O') {
    if (size > 33) return -1;
    put_word(scratch, out, ' ');
    for (__u32 i = 0; i < 5; ++i) {
      put_word(scratch, out + 1 + i * 8, word_at(scratch, at + i * 8));
    }
    return (int)size + 1;
  }
  if (size != 1) return -1;
  if (letter == 'v' || letter == 'q') return 0;
  put_word(scratch, out, ' ' | (__u64)letter << 8);
  const __u32 numbers = kNicKeyAt + copy->key_size + 1;
  if (letter == 'k') return 2 + put_key(scratch, out + 2, slot);
  if (letter == 'f') {
    put_piece(scratch, out + 2, copy, numbers);
    return 2 + copy->flags_size;
  }
  if (letter == 's') {
    const __u32 skipped = numbers + copy->flags_size + 1;
    put_piece(scratch, out + 2, copy, skipped);
    return 2 + (int)(kNicTextAt + copy->head_size - skipped);
  }
  if (letter == 'c') {
    put_piece(scratch, out + 2, copy, kNicTextAt + copy->head_size + copy->value_size + 4 + 5 + 1);
    return 1 + copy->cas_size;
  }
  return -1;
}

// "mg KEY FLAG..." with the flags v, f, s, c, k, q and O. REQUIRES: as find_gets(scratch, ).
APART int find_meta(struct scratch *scratch, __u32 end) {
  if (!scratch) return kOther;
  struct command *command = &scratch->command;
  __u32 at = kCommandAt + 3;
  __u32 stop = (__u32)word_end(scratch, at);
  if (stop <= at || stop > end || stop - at > kNicKeyMax) return kOther;
  const __u32 slot = (__u32)find(scratch, at, stop - at);
  const __u32 key_at = at, key_size = stop - at;
  __u32 out = kLineAt;
  __u32 seen = 0;
  int done = stop == end;
  for (__u64 i = 0; i < 8 && !done; ++i) {
    if (byte_at(scratch, stop) != ' ') return kOther;
    at = stop + 1;
    stop = (__u32)word_end(scratch, at);
    if (stop <= at || stop > end) return kOther;
    const __u32 bit = 1u << (byte_at(scratch, at) & 31);
    if ((seen & bit) != 0) return kOther;
    seen |= bit;
    if (slot != 0) {
      const int written = put_flag(scratch, slot, at, stop - at, out);
      if (written < 0 || written > 256 || out > kLineMax - 64) return kOther;
      out += (__u32)written;
    }
    done = stop == end;
  }
  if (!done) return kOther;
  if (slot == 0) {
    note_miss(scratch, key_at, key_size);
    return kMiss;
  }
  const struct nic_copy *copy = copy_of(slot);
  if (!copy) return kOther;
  __u32 before = 2;
  if ((seen & 1u << ('v' & 31)) != 0) {
    const __u32 skipped = copy->key_size + 6 + 1 + copy->flags_size + 1;
    const __u32 digits = copy->head_size - skipped;
    before = 3 + digits;
    // Written in front of the flags, so that the digits end there.
    __u64 first = scratch->line[kLineAt / 8];
    put_word(scratch, kLineAt - before, 'V' | 'A' << 8 | ' ' << 16);
    __u64 number = 0;
    if (kNicTextAt + skipped > kNicCopyMax - 24) return kOther;
    __u32 from = kNicTextAt + skipped;
    OPAQUE(from);
    if (from > kNicCopyMax - 24) return kOther;
    number = load64((const __u8 *)copy + from);
    put_word(scratch, kLineAt - digits, number);
    scratch->line[kLineAt / 8] = first;
    command->rest = kBody;
  } else {
    const __u64 first = scratch->line[kLineAt / 8];
    put_word(scratch, kLineAt - 2, 'H' | 'D' << 8);
    scratch->line[kLineAt / 8] = first;
    put_word(scratch, out, '\r' | '\n' << 8);
    out += 2;
    command->rest = kNothing;
  }
  command->has_line = 1;
  command->keys = 1;
  command->line_at = kLineAt - before;
  command->line_size = out - command->line_at;
  command->reply = command->line_size + (command->rest == kBody ? copy->value_size + 4 : 0);
  scratch->slots[0] = slot;
  return kAnswer;
}

// get, getq, getk and getkq of the binary protocol, one in a datagram of which the command has
// `size` bytes.
APART int find_binary(struct scratch *scratch, __u32 size) {
  if (!scratch) return kOther;
  struct command *command = &scratch->command;
  const __u64 first = scratch->words[kCommandAt / 8], second = scratch->words[kCommandAt / 8 + 1];
  const __u8 opcode = (__u8)(first >> 8);
  const int shows_key = opcode == 0x0c || opcode == 0x0d;
  if (opcode != 0x00 && opcode != 0x09 && !shows_key) return kOther;
  const __u32 key_size = bpf_ntohs((__u16)(first >> 16));
  // No extras, data type 0, bucket 0, no CAS id, and the body is the key.
  if (first >> 32 != 0 || scratch->words[kCommandAt / 8 + 2] != 0) return kOther;
  if (bpf_ntohl((__u32)second) != key_size || size != 24 + key_size) return kOther;
  if (key_size == 0 || key_size > kNicKeyMax) return kOther;
  const __u32 slot = (__u32)find(scratch, kCommandAt + 24, key_size);
  if (slot == 0) {
    note_miss(scratch, kCommandAt + 24, key_size);
    return kMiss;
  }
  const struct nic_copy *copy = copy_of(slot);
  if (!copy) return kOther;
  const __u32 shown = shows_key ? key_size : 0;
  __u64 *line = scratch->line;
  line[0] = 0x81 | (__u64)opcode << 8 | (__u64)bpf_htons((__u16)shown) << 16 | 4ULL << 32;
  line[1] = bpf_htonl(4 + shown + copy->value_size) | (second & ~0xffffffffULL);
  line[2] = bpf_cpu_to_be64(copy->cas);
  line[3] = bpf_htonl(copy->client_flags);
  if (shows_key) put_key(scratch, 28, slot);
  command->has_line = 1;
  command->keys = 1;
  command->line_at = 0;
  command->line_size = 28 + shown;
  command->rest = kValue;
  command->reply = 28 + shown + copy->value_size;
  scratch->slots[0] = slot;
  return kAnswer;
}

// The decimal number at `at`, of `size` digits; more than 32 bits: there is none.
INLINE __u64 number_at(const struct scratch *scratch, __u32 at, __u32 size) {
  __u64 number = 0;
  for (__u32 i = 0; i < 10; ++i) {
    if (i >= size) break;
    const __u8 digit = byte_at(scratch, at + i) - '0';
    number = number * 10 + digit;
    if (digit > 9) number = 1ULL << 40;
  }
  return size == 0 || size > 10 ? 1ULL << 40 : number;
}

// Hands a write over to the server: it is counted when it has its place in the ring, then put
// there, then the copies of the key are dead, and after all that it is answered. So who has seen
// the answer finds no old copy, and the server, once it has taken over as many as are counted, has
// the write.
APART int hand_over(const struct scratch *scratch, __u32 at, __u32 sizes, __u32 value_at,
                    __u32 flags) {
  const struct nic_copy *copy = scratch ? copy_of(scratch->slots[0]) : 0;
  const __u32 key_size = sizes & 0xffff, value_size = sizes >> 16;
  if (!scratch || !copy || key_size == 0 || key_size > kNicKeyMax) return 0;
  if (value_size > kNicRequestMax) return 0;
  struct nic_write *write = bpf_ringbuf_reserve(&nic_writes, sizeof(*write), 0);
  if (!write) return 0;
  __sync_fetch_and_add(&nic_control.accepted, 1);
  write->cas = copy->cas;
  write->key_size = key_size;
  write->value_size = value_size;
  write->client_flags = flags;
  for (__u32 i = 0; i < 32; ++i) store64(write->key + i * 8, word_at(scratch, at + i * 8));
  for (__u32 i = 0; i < 64; ++i) {
    if (i * 8 >= value_size) break;
    store64(write->value + i * 8, word_at(scratch, value_at + i * 8));
  }
  bpf_ringbuf_submit(write, BPF_RB_NO_WAKEUP);
  const __u64 hash = hash_at(scratch, at, key_size);
  __sync_fetch_and_add(&nic_versions.of[nic_version_index(hash)], 1);
  return 1;
}

// "set KEY FLAGS 0 BYTES", of an item that has a copy; all else passes. REQUIRES: as find_gets().
APART int accept_set(struct scratch *scratch, __u32 end) {
  if (!scratch) return kOther;
  const __u32 key_at = kCommandAt + 4;
  const __u32 key_end = (__u32)word_end(scratch, key_at);
  if (key_end <= key_at || key_end >= end || key_end - key_at > kNicKeyMax) return kOther;
  const __u32 flags_at = key_end + 1;
  const __u32 flags_end = (__u32)word_end(scratch, flags_at);
  if (flags_end <= flags_at || flags_end >= end) return kOther;
  const __u64 flags = number_at(scratch, flags_at, flags_end - flags_at);
  // A blank, the time to live 0, a blank.
  if (byte_at(scratch, key_end) != ' ') return kOther;
  if ((word_at(scratch, flags_end) & 0xffffff) != (' ' | '0' << 8 | ' ' << 16)) return kOther;
  const __u32 bytes_at = flags_end + 3;
  const __u32 bytes_end = (__u32)word_end(scratch, bytes_at);
  if (bytes_end <= bytes_at || bytes_end >= end) return kOther;
  const __u64 bytes = number_at(scratch, bytes_at, bytes_end - bytes_at);
  if ((word_at(scratch, bytes_end) & 0xffff) != ('\r' | '\n' << 8)) return kOther;
  if (flags >> 32 != 0 || bytes > kNicRequestMax || bytes_end + 2 + bytes != end) return kOther;
  const __u32 slot = (__u32)find(scratch, key_at, key_end - key_at);
  if (slot == 0) return kOther;
  scratch->slots[0] = slot;
  const __u32 sizes = (key_end - key_at) | (__u32)bytes << 16;
  if (!hand_over(scratch, key_at, sizes, bytes_end + 2, (__u32)flags)) return kOther;
  struct command *command = &scratch->command;
  scratch->line[0] = *(const __u64 *)"STORED\r\n";
  command->has_line = 1;
  command->line_at = 0;
  command->line_size = 8;
  command->rest = kNothing;
  command->reply = 8;
  command->wrote = 1;
  return kAnswer;
}

// REQUIRES: the datagram, of `udp_size` bytes with its UDP header, has at least 4 of a command.
INLINE int find_command(struct scratch *scratch, __u32 udp_size) {
  const __u64 head = word_at(scratch, kCommandAt);
  const __u32 end = udp_size - 2;
  if ((head & 0xff) == 0x80) {
    if (!nic_control.binary || udp_size < kCommandAt + 24) return kOther;
    return find_binary(scratch, udp_size - kCommandAt);
  }
  if (!nic_control.text || byte_at(scratch, end) != '\r' || byte_at(scratch, end + 1) != '\n') {
    return kOther;
  }
  const __u32 get = 'g' | 'e' << 8 | 't' << 16;
  const __u32 first = (__u32)head;
  const int gets = first == (get | (__u32)'s' << 24) && (head >> 32 & 0xff) == ' ';
  if (gets || first == (get | (__u32)' ' << 24)) {
    return find_gets(scratch, kCommandAt + 4 + (__u32)gets, end);
  }
  if (nic_control.write_back && first == ('s' | 'e' << 8 | 't' << 16 | (__u32)' ' << 24)) {
    return accept_set(scratch, end);
  }
  if ((first & 0xffffff) == ('m' | 'g' << 8 | ' ' << 16)) {
    return find_meta(scratch, end);
  }
  return kOther;
}

#endif  // WARPCACHE_NIC_CACHE_BPF_COMMANDS_H_
