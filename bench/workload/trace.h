// SPDX-License-Identifier: Apache-2.0
// A recorded stream of requests, read from a file and kept in memory.
#ifndef WARPCACHE_BENCH_WORKLOAD_TRACE_H_
#define WARPCACHE_BENCH_WORKLOAD_TRACE_H_

#include <cstdint>
#include <cstring>
#include <istream>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "workload/operation.h"

namespace warpcache::bench {

class Trace {
 public:
  struct Entry {
    uint32_t id;
    Operation operation;
  };

  // Reads lines of one of three forms:
  //   get KEY | set KEY BYTES | delete KEY
  //   time,key,key size,value size,client,operation,ttl     (the cache traces that Twitter
  //   published)
  //   time,key,size     (the form of libCacheSim and of most collections of block and CDN traces:
  //   only gets. A first line without numbers names the columns. Sizes above kValueSizeMax count as
  //   kValueSizeMax)
  // Empty lines and lines that start with # are skipped. A key has one value size, the first one in
  // the trace, or `value_size_default` if the trace has none. False, and *why with the line's
  // number, if a line cannot be read or the trace is empty.
  static bool read(std::istream* in, uint32_t value_size_default, Trace* out, std::string* why);

  uint32_t keys() const { return static_cast<uint32_t>(keys_.size()); }
  uint32_t value_size(uint32_t id) const { return keys_[id].value_size; }
  uint32_t key_size(uint32_t id) const { return keys_[id].size; }
  const std::vector<Entry>& entries() const { return entries_; }

  // Returns the key's size.
  uint32_t write_key(uint32_t id, char* out) const {
    const Key& key = keys_[id];
    std::memcpy(out, bytes_.data() + key.begin, key.size);
    return key.size;
  }

 private:
  struct Key {
    uint64_t begin;  // in bytes_
    uint32_t size;
    uint32_t value_size;
  };
  struct Line {
    Operation operation;
    std::string_view key;
    uint32_t value_size;
  };

  static bool read_words(std::string_view line, Line* out);
  static bool read_columns(std::string_view line, Line* out);
  static bool read_accesses(std::string_view line, Line* out);
  static bool read_line(std::string_view line, Line* out);
  void add(const Line& line);

  std::vector<Key> keys_;
  std::string bytes_;
  std::vector<Entry> entries_;
  std::unordered_map<std::string, uint32_t> ids_;  // only while the trace is read
};

}  // namespace warpcache::bench

#endif  // WARPCACHE_BENCH_WORKLOAD_TRACE_H_
