// SPDX-License-Identifier: Apache-2.0
//
// The server chooses CAS ids, so the model has names for them and learns from the replies which
// number belongs to each name.
#pragma once

#include <cstdint>
#include <map>

namespace warpcache::model {

// An item's CAS id: a number that a client chose, or the name of one that the server chose. Names
// are numbered in the order of their creation.
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

  // Learns from a reply that `cas` is `number`. False: it contradicts earlier replies.
  bool learn(const Cas& cas, uint64_t number);

  // The number of `cas`, if replies have shown it; 0: not yet.
  uint64_t number_of(const Cas& cas) const;

  // Compares a client's `given` with the CAS id of an item. kUnknown: the replies do not decide it.
  CasOrder compare(uint64_t given, const Cas& held) const;

 private:
  uint64_t first_number_;  // the server chooses no number below it
  bool in_order_;          // later names have larger numbers
  std::map<uint64_t, uint64_t> number_of_name_;
  std::map<uint64_t, uint64_t> name_of_number_;
};

}  // namespace warpcache::model
