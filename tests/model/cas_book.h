// SPDX-License-Identifier: Apache-2.0
//
// CAS ids are the server's to choose, so the model gives out names for them and learns from the
// replies which number each name stands for.
#pragma once

#include <cstdint>
#include <map>

namespace warpcache::model {

// An item's CAS id: a number that a client chose, or the name of one that the server chose. Names
// are numbered in the order in which they were given out.
struct Cas {
  uint64_t number = 0;
  bool chosen_by_server = false;
};

enum class CasOrder : uint8_t { kEqual, kOlder, kNewer, kUnknown };

class CasBook {
 public:
  // `in_order`: see Server::cas_follows_requests().
  explicit CasBook(uint64_t first_number, bool in_order = true)
      : first_number_(first_number), in_order_(in_order) {}

  // A reply says that `cas` is `number`. False: it cannot be, by what earlier replies said.
  bool learn(const Cas& cas, uint64_t number);

  // The number of `cas` as far as replies have told it; 0: not yet.
  uint64_t number_of(const Cas& cas) const;

  // `given`, by a client, beside the CAS id that an item holds. kUnknown: no reply has told enough.
  CasOrder compare(uint64_t given, const Cas& held) const;

 private:
  uint64_t first_number_;  // no server chooses a number below it
  bool in_order_;          // names given out later stand for larger numbers
  std::map<uint64_t, uint64_t> number_of_name_;
  std::map<uint64_t, uint64_t> name_of_number_;
};

}  // namespace warpcache::model
