// SPDX-License-Identifier: Apache-2.0
//
// What a server said, taken apart into units that two servers can be compared by.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace warpcache::model {

// One line of text, with its value where it has one; all lines of a statistic; one binary packet.
struct AnswerUnit {
  // What must be equal: CAS ids stand as <cas>, and what is the server's own business (the values
  // of statistics, sizes and classes in the reply of `me`) as <own>.
  std::string shown;
  std::vector<uint64_t> cas;
  // The names of a statistic, in order; the unit is one then.
  std::vector<std::string> names;
};

std::vector<AnswerUnit> split_text_answers(std::string_view output);
std::vector<AnswerUnit> split_binary_answers(std::string_view output);

// Which CAS id of one server is which of the other.
class CasPairs {
 public:
  // False: the two stand for different things, by what earlier answers said. Equal numbers are a
  // client's choice, or none.
  bool learn(uint64_t ours, uint64_t theirs);
  // Both say the same. Learns the pairs of their CAS ids.
  bool same(const AnswerUnit& ours, const AnswerUnit& theirs);
  bool same_cas(const AnswerUnit& ours, const AnswerUnit& theirs);

 private:
  std::map<uint64_t, uint64_t> theirs_of_ours_;
  std::map<uint64_t, uint64_t> ours_of_theirs_;
};

}  // namespace warpcache::model
