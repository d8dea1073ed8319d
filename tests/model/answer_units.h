// SPDX-License-Identifier: Apache-2.0
//
// Divides a server's output into units that can be compared with those of another server.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace warpcache::model {

// One line of text, with its value if it has one; or all lines of a statistic; or one binary
// packet.
struct AnswerUnit {
  // The text that must be equal. CAS ids are replaced by <cas>; values that servers may choose
  // (those of statistics, sizes and classes in the reply of `me`) by <own>.
  std::string shown;
  std::vector<uint64_t> cas;
  // The names of a statistic, in order; empty if the unit is no statistic.
  std::vector<std::string> names;
};

std::vector<AnswerUnit> split_text_answers(std::string_view output);
std::vector<AnswerUnit> split_binary_answers(std::string_view output);

// Maps the CAS ids of one server to those of the other.
class CasPairs {
 public:
  // False: the two belong to different items according to earlier answers. Equal numbers were
  // chosen by a client, or are 0.
  bool learn(uint64_t ours, uint64_t theirs);
  // Whether both units are equal. Learns the pairs of their CAS ids.
  bool same(const AnswerUnit& ours, const AnswerUnit& theirs);
  bool same_cas(const AnswerUnit& ours, const AnswerUnit& theirs);

 private:
  std::map<uint64_t, uint64_t> theirs_of_ours_;
  std::map<uint64_t, uint64_t> ours_of_theirs_;
};

}  // namespace warpcache::model
