// SPDX-License-Identifier: Apache-2.0
//
// The words of a text line, and which command the first one names.
#pragma once

#include <cstdint>

#include "base/bits.h"
#include "base/bytes.h"
#include "base/hd.h"
#include "base/mem.h"
#include "protocol/framing/scan.h"

namespace warpcache::protocol {

// The most words that are read of a line outside the get family; memcached's tokenizer has the same
// limit.
inline constexpr uint32_t kWordsMax = 23;

// A line without its line end (LF or CRLF).
WC_HD inline Bytes without_line_end(Bytes line) {
  size_t size = line.size;
  if (size > 0 && line.data[size - 1] == '\n') --size;
  if (size < line.size && size > 0 && line.data[size - 1] == '\r') --size;
  return {line.data, size};
}

// Iterates over the words of a text, which are separated by blanks.
class Words {
 public:
  WC_HD explicit Words(Bytes text)
      : begin_(text.data), at_(text.data), end_(text.data + text.size) {}

  // False at the end; `word` is empty then.
  WC_HD bool next(Bytes& word) {
    skip_blanks();
    const uint8_t* const start = at_;
    // Flags are mostly words of one letter.
    if (at_ != end_ && (at_ + 1 == end_ || at_[1] == ' ')) {
      word = {at_++, 1};
      return true;
    }
    while (at_ < end_) {
      const uint32_t blanks = scan_detail::masks_at(begin_, at_, end_).blanks;
      if (blanks != 0) {
        at_ += lowest_bit(blanks);
        break;
      }
      at_ = end_ - at_ > 16 ? at_ + 16 : end_;
    }
    word = {start, static_cast<size_t>(at_ - start)};
    return at_ != start;
  }

  // The text after the words that next() has returned, without leading blanks.
  WC_HD Bytes rest() {
    skip_blanks();
    return {at_, static_cast<size_t>(end_ - at_)};
  }

 private:
  WC_HD void skip_blanks() {
    while (at_ != end_ && *at_ == ' ') ++at_;
  }

  const uint8_t* begin_;
  const uint8_t* at_;
  const uint8_t* end_;
};

// Where the words of a text of up to 63 bytes start, as bits.
struct WordMap {
  uint64_t blanks;  // bits of the blanks, and of everything after the text
  uint64_t starts;

  WC_HD WordMap(uint64_t line_blanks, uint64_t text_size)
      : blanks(line_blanks | ~uint64_t{0} << text_size), starts(~blanks & (blanks << 1 | 1)) {}
};

// The bits of the blanks in a text of up to 63 bytes.
WC_HD inline uint64_t blanks_of(Bytes text) {
  const uint8_t* const end = text.data + text.size;
  uint64_t blanks = 0;
  for (uint32_t offset = 0; offset < text.size; offset += 16) {
    const scan_detail::Masks masks = scan_detail::masks_at(text.data, text.data + offset, end);
    blanks |= static_cast<uint64_t>(masks.blanks) << offset;
  }
  return blanks;
}

enum class Command : uint8_t {
  kUnknown,
  kGet,
  kGets,
  kGat,
  kGats,
  kSet,
  kAdd,
  kReplace,
  kAppend,
  kPrepend,
  kCas,
  kMetaGet,
  kMetaSet,
  kMetaDelete,
  kMetaArithmetic,
  kMetaNoop,
  kMetaDebug,
  kDelete,
  kIncr,
  kDecr,
  kTouch,
  kQuit,
  kVersion,
  kStats,
  kFlushAll,
  kFlushPrefix,
  kVerbosity,
  kCacheMemlimit,
  kShutdown,
  kAdmin,  // a known administrative command; the AdminHandler reads its words
};

WC_HD inline bool is_get_family(Command command) {
  return command >= Command::kGet && command <= Command::kGats;
}
WC_HD inline bool is_text_store(Command command) {
  return command >= Command::kSet && command <= Command::kCas;
}
WC_HD inline bool is_meta(Command command) {
  return command >= Command::kMetaGet && command <= Command::kMetaDebug;
}

namespace words_detail {

WC_HD inline Command meta_command(uint8_t letter) {
  switch (letter) {
    case 'g':
      return Command::kMetaGet;
    case 's':
      return Command::kMetaSet;
    case 'd':
      return Command::kMetaDelete;
    case 'a':
      return Command::kMetaArithmetic;
    case 'n':
      return Command::kMetaNoop;
    case 'e':
      return Command::kMetaDebug;
    default:
      return Command::kUnknown;
  }
}

WC_HD inline Command short_command(Bytes word) {
  if (word.size == 3) {
    if (equal(word, "get")) return Command::kGet;
    if (equal(word, "set")) return Command::kSet;
    if (equal(word, "add")) return Command::kAdd;
    if (equal(word, "cas")) return Command::kCas;
    if (equal(word, "gat")) return Command::kGat;
    return equal(word, "lru") ? Command::kAdmin : Command::kUnknown;
  }
  if (equal(word, "gets")) return Command::kGets;
  if (equal(word, "incr")) return Command::kIncr;
  if (equal(word, "decr")) return Command::kDecr;
  if (equal(word, "gats")) return Command::kGats;
  return equal(word, "quit") ? Command::kQuit : Command::kUnknown;
}

WC_HD inline Command long_command(Bytes word) {
  switch (word.size) {
    case 5:
      if (equal(word, "touch")) return Command::kTouch;
      if (equal(word, "stats")) return Command::kStats;
      if (equal(word, "watch") || equal(word, "slabs")) return Command::kAdmin;
      return Command::kUnknown;
    case 6:
      if (equal(word, "delete")) return Command::kDelete;
      return equal(word, "append") ? Command::kAppend : Command::kUnknown;
    case 7:
      if (equal(word, "replace")) return Command::kReplace;
      if (equal(word, "prepend")) return Command::kPrepend;
      return equal(word, "version") ? Command::kVersion : Command::kUnknown;
    case 8:
      if (equal(word, "shutdown")) return Command::kShutdown;
      return equal(word, "extstore") ? Command::kAdmin : Command::kUnknown;
    case 9:
      if (equal(word, "flush_all")) return Command::kFlushAll;
      if (equal(word, "verbosity")) return Command::kVerbosity;
      return equal(word, "debugtime") ? Command::kAdmin : Command::kUnknown;
    case 11:
      return equal(word, "lru_crawler") ? Command::kAdmin : Command::kUnknown;
    case 12:
      return equal(word, "flush_prefix") ? Command::kFlushPrefix : Command::kUnknown;
    case 13:
      return equal(word, "refresh_certs") ? Command::kAdmin : Command::kUnknown;
    case 14:
      return equal(word, "cache_memlimit") ? Command::kCacheMemlimit : Command::kUnknown;
    default:
      return Command::kUnknown;
  }
}

}  // namespace words_detail

WC_HD inline Command command_of(Bytes word) {
  if (word.size == 2) {
    return word.data[0] == 'm' ? words_detail::meta_command(word.data[1]) : Command::kUnknown;
  }
  if (word.size == 3 || word.size == 4) return words_detail::short_command(word);
  return words_detail::long_command(word);
}

}  // namespace warpcache::protocol
