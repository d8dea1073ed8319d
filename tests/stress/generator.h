// SPDX-License-Identifier: Apache-2.0
//
// Random operations.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "stress/command.h"
#include "stress/scenario.h"

namespace warpcache::stress {

class Generator {
 public:
  Generator(const Scenario& scenario, uint32_t thread, uint64_t seed);

  // Appends one operation to `operations` (several reads, for a multiget); `body` is its value.
  // `form` is the session's, and becomes the form of the command.
  void make(Form* form, std::vector<Operation>* operations, std::string* body);

  // A set without options, of at most this number of bytes. False: of this key none is made so.
  bool make_plain_set(uint32_t bytes_max, Operation* op, std::string* body);

  // Remembers the CAS ids of replies, to use some of them.
  void learn(const Operation& op);

  uint64_t below(uint64_t limit) { return random_() % limit; }
  bool one_in(uint64_t n) { return below(n) == 0; }

 private:
  enum class KeyClass : uint8_t { kSmall, kNumber, kLarge };
  KeyClass class_of(uint32_t key) const;
  int32_t random_exptime(Form form);
  uint64_t next_id() { return uint64_t{thread_} << 40 | ++last_id_; }
  void make_read(Form form, Operation* op);
  void make_more_reads(std::vector<Operation>* operations);
  void make_store(Form form, Operation* op, std::string* body);
  void make_value_for(Operation* op, std::string* body);
  void make_delete(Form form, Operation* op);
  void make_delta(Form form, Operation* op);
  void maybe_compare(uint64_t percent, Operation* op);

  const Scenario& scenario_;
  uint32_t thread_;
  std::mt19937_64 random_;
  uint64_t last_id_ = 0;
  std::vector<uint64_t> cas_;  // the last one seen, by key
};

}  // namespace warpcache::stress
