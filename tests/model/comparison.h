// SPDX-License-Identifier: Apache-2.0
//
// Plays a script against warpcached and against memcached, and compares all answers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "model/answer_units.h"
#include "model/listed_differences.h"
#include "model/script.h"
#include "model/server_process.h"

namespace warpcache::model {

struct Unlisted {
  uint32_t round = 0;
  int stream = 0;
  std::string ours;
  std::string theirs;
};
std::string describe(const Unlisted& difference);
// A name that is the same for differences that probably have one cause.
std::string kind_of(const Unlisted& difference);

struct Compared {
  std::optional<Unlisted> difference;
  Script transcript;  // the played part of the script, with the answers of warpcached
  size_t commands = 0;
  std::map<std::string_view, size_t> listed;  // how often each listed difference was met
};

class Comparison {
 public:
  // REQUIRES: all arguments outlive this object.
  Comparison(const Script& script, ServerProcess& ours, ServerProcess& theirs)
      : script_(script), ours_(ours), theirs_(theirs), history_(theirs.clock_moves()) {}
  Comparison(const Comparison&) = delete;
  Comparison& operator=(const Comparison&) = delete;

  Compared play();

 private:
  enum class Verdict : uint8_t { kGoesOn, kEndsScript, kDiffers };

  void send_round(size_t begin, size_t end);
  void ask_cas(size_t begin, size_t end);
  void send(const Step& step);
  Verdict compare_stream(uint32_t round, int stream);
  Verdict judge(const Parting& parting, size_t& at_ours, size_t& at_theirs);
  // Judges a place with equal answers where the stored items may differ.
  Verdict judge_hidden(const Parting& parting);
  void write_down(uint32_t round, int stream, const std::string& output);

  const Script& script_;
  ServerProcess& ours_;
  ServerProcess& theirs_;
  CasPairs pairs_;
  History history_;
  std::map<std::string, uint64_t> cas_of_ours_;  // by key, before the round
  std::map<std::string, uint64_t> cas_of_theirs_;
  std::map<int, bool> is_binary_;                 // protocol of a stream's connection
  std::map<int, std::vector<std::string>> sent_;  // in this round
  Compared compared_;
};

}  // namespace warpcache::model
