// SPDX-License-Identifier: Apache-2.0
#include "model/cas_book.h"

namespace warpcache::model {

namespace {

// No server gets so far by itself.
constexpr uint64_t kBeyond = uint64_t{1} << 62;

CasOrder order(uint64_t given, uint64_t held) {
  if (given == held) return CasOrder::kEqual;
  return given < held ? CasOrder::kOlder : CasOrder::kNewer;
}

}  // namespace

bool CasBook::learn(const Cas& cas, uint64_t number) {
  if (!cas.chosen_by_server) return number == cas.number;
  const auto known = number_of_name_.find(cas.number);
  if (known != number_of_name_.end()) return known->second == number;
  if (number < first_number_ || !name_of_number_.emplace(number, cas.number).second) return false;
  number_of_name_[cas.number] = number;
  return true;
}

uint64_t CasBook::number_of(const Cas& cas) const {
  if (!cas.chosen_by_server) return cas.number;
  const auto known = number_of_name_.find(cas.number);
  return known == number_of_name_.end() ? 0 : known->second;
}

CasOrder CasBook::compare(uint64_t given, const Cas& held) const {
  if (!held.chosen_by_server) return order(given, held.number);
  const auto known = number_of_name_.find(held.number);
  if (known != number_of_name_.end()) return order(given, known->second);
  if (given < first_number_) return CasOrder::kOlder;
  if (given >= kBeyond) return CasOrder::kNewer;
  const auto named = name_of_number_.find(given);
  if (named == name_of_number_.end() || !in_order_) return CasOrder::kUnknown;
  return named->second < held.number ? CasOrder::kOlder : CasOrder::kNewer;
}

}  // namespace warpcache::model
