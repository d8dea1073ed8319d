// SPDX-License-Identifier: Apache-2.0
//
// Traffic on keys without a history: it fills the memory, makes the index grow and the store evict.
// Each key has one writer, so each hit can be checked by itself.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "stress/scenario.h"

namespace warpcache::stress {

class Filler {
 public:
  Filler(const Scenario& scenario, uint32_t thread, uint64_t seed);

  // Appends the next commands to `input`.
  void make(std::string* input);
  // Checks the replies to them. False: one is wrong.
  bool check(std::string_view* replies);

  uint64_t commands() const { return commands_; }

 private:
  struct Sent {
    uint32_t key;
    uint64_t id;  // of the stored value; 0: a get
    uint32_t size;
  };
  std::string key_text(uint32_t key) const;
  void make_set(uint32_t key, std::string* input);
  bool check_set(const Sent& sent, std::string_view* replies);
  bool check_get(uint32_t key, std::string_view* replies);

  const Scenario& scenario_;
  uint32_t thread_;
  std::mt19937_64 random_;
  std::vector<uint64_t> ids_;  // of each key's value, as far as replies say; 0: none
  std::vector<uint32_t> sizes_;
  std::vector<Sent> sent_;
  uint64_t last_id_ = 0;
  uint64_t commands_ = 0;
};

}  // namespace warpcache::stress
