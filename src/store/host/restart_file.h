// SPDX-License-Identifier: Apache-2.0
//
// The file that a store lies in, so that its items outlive the process (-e). Beside it, in
// FILE.meta, lies the description that a clean stop writes: what the store holds outside its arena.
// The description is removed when it has been read. So after a crash there is none, and a store
// that was changed without a clean stop is never taken over.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "store/host/memory.h"

namespace warpcache::store {

// What must be equal for a store to be taken over, and the numbers that continue. Written to the
// file as it is.
struct RestartHeader {
  char magic[8] = {};
  char version[56] = {};  // of the program that wrote it
  uint32_t layout = 0;    // counts changes of what lies in the arena and in the tables
  uint32_t base_depth = 0;
  uint64_t segment_size = 0;
  uint64_t arena_bytes = 0;
  uint64_t tables_bytes = 0;  // that follow the header
  uint64_t token = 0;         // the same in the file: both were written by the same stop
  uint64_t seed = 0;
  int64_t unix_start = 0;
  uint64_t items = 0;
  uint64_t item_bytes = 0;
  uint64_t overflow_sets = 0;
  uint32_t now = 0;
  uint32_t flush_at = 0;
  uint64_t checksum = 0;  // of the header, with 0 here, and the tables
};

class RestartFile {
 public:
  RestartFile() = default;
  RestartFile(const RestartFile&) = delete;
  RestartFile& operator=(const RestartFile&) = delete;
  ~RestartFile();

  // Opens the file, or creates it, for an arena as `wanted` says (magic, version and the fields up
  // to arena_bytes are compared). Reads and removes the description. Returns an error as one
  // sentence, or "". Afterwards: found(): whether the file holds a store; note(): a sentence for
  // the log, which says why not. The file is empty then.
  [[nodiscard]] std::string open(const std::string& path, const RestartHeader& wanted);

  bool found() const { return found_; }
  const std::string& note() const { return note_; }
  const RestartHeader& header() const { return header_; }
  // The tables that lay after the header. REQUIRES: found().
  const std::vector<uint8_t>& tables() const { return tables_; }
  void forget_tables() { tables_ = {}; }

  // Maps the arena. False: the system refuses.
  bool map(Mapping& arena, bool huge_pages) const;

  // Writes the arena's pages and the description. The caller writes nothing to the arena
  // afterwards. Returns an error as one sentence, or "".
  [[nodiscard]] std::string save(const RestartHeader& header, const std::vector<uint8_t>& tables);

 private:
  std::string read_description(const RestartHeader& wanted, std::string* why);
  std::string start_empty(uint64_t arena_bytes);

  std::string path_;
  int fd_ = -1;
  bool described_ = false;  // there was a description
  bool found_ = false;
  std::string note_;
  RestartHeader header_;
  std::vector<uint8_t> tables_;
};

// Fills magic and version. `version` is cut to its field.
RestartHeader restart_header(const std::string& version);

}  // namespace warpcache::store
