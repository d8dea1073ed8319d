// SPDX-License-Identifier: Apache-2.0
//
// What a run of the NIC cache's program takes, by the kernel's own clock around it. Prints a JSON
// line for each kind of frame. A run turns a request into its reply, so each needs a call of its
// own; what the kernel's clock takes is measured with a frame that passes at once, and is part of
// all those numbers. Frames that pass unchanged are run many times in one call, too.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "net/testing/packets.h"
#include "nic_cache/copy_table.h"
#include "nic_cache/program.h"
#include "nic_cache/testing/listen.h"

namespace warpcache::nic_cache {
namespace {

constexpr uint32_t kRounds = 20;
constexpr uint32_t kSingleRuns = 2'000;
constexpr uint32_t kRunsAtOnce = 250'000;
const std::string kHeader("\0\1\0\0\0\1\0\0", 8);

std::string frame_with(const std::string& command) {
  return net::testing::frame_of(kHeader + command);
}

class Bench {
 public:
  std::string open() {
    std::string failure = program_.load(16);
    if (!failure.empty()) return failure;
    table_ = std::make_unique<CopyTable>(program_.memory(), 1);
    nic_control& control = *program_.memory().control;
    control.alive_until = UINT64_MAX;
    control.amplification = 65535;
    control.text = 1;
    control.binary = 1;
    set_port(control, net::testing::kTestPort);
    listen_to(control, frame_with("get a\r\n"));
    return "";
  }

  void copy(const std::string& key, size_t value_size) {
    const std::string value(value_size, 'v');
    if (!table_->fill({.key = bytes_of(key), .value = bytes_of(value), .cas = 12345})) std::abort();
  }

  void add(const char* what, const std::string& frame, bool answered) {
    cases_.push_back({what, frame, answered});
  }

  // Nanoseconds of a run: of the medians of all rounds the lowest one. The rounds of all frames are
  // interleaved, so that what else runs on the machine disturbs some rounds and not some frames.
  void measure() {
    for (uint32_t round = 0; round < kRounds; ++round) {
      for (Case& one : cases_) measure_round(one);
    }
    for (const Case& one : cases_) {
      fmt::print("{{\"frame\": \"{}\", \"answered\": {}, \"ns_single\": {}, \"ns_single_p99\": {}",
                 one.what, one.answered, one.single, one.single_p99);
      if (!one.answered) fmt::print(", \"ns_at_once\": {}", one.at_once);
      fmt::print("}}\n");
    }
  }

  ProgramSize size() const { return program_.size(); }

 private:
  struct Case {
    const char* what;
    std::string frame;
    bool answered;
    uint32_t single = UINT32_MAX;
    uint32_t single_p99 = UINT32_MAX;
    uint32_t at_once = UINT32_MAX;
  };

  void measure_round(Case& one) {
    std::vector<uint32_t> each;
    TestRun run;
    for (uint32_t i = 0; i < kSingleRuns; ++i) {
      if (!program_.test_run(bytes_of(one.frame), 1, &run).empty()) std::abort();
      each.push_back(run.nanoseconds);
    }
    constexpr uint32_t kTx = 3;
    if ((run.action == kTx) != one.answered) {
      fmt::print(stderr, "{}: unexpected action {}\n", one.what, run.action);
      std::exit(1);
    }
    std::sort(each.begin(), each.end());
    one.single = std::min(one.single, each[each.size() / 2]);
    one.single_p99 = std::min(one.single_p99, each[each.size() * 99 / 100]);
    if (one.answered) return;
    if (!program_.test_run(bytes_of(one.frame), kRunsAtOnce, &run).empty()) std::abort();
    one.at_once = std::min(one.at_once, run.nanoseconds);
  }

  XdpProgram program_;
  std::unique_ptr<CopyTable> table_;
  std::vector<Case> cases_;
};

int run() {
  Bench bench;
  if (const std::string failure = bench.open(); !failure.empty()) {
    fmt::print(stderr, "nic_cache_cost: {}\n", failure);
    return 1;
  }
  const std::string name(31, 'k');
  bench.copy(name, 64);
  bench.copy("1k", 1000);
  for (int i = 0; i < 8; ++i) bench.copy("key" + std::to_string(i), 64);
  std::string tcp = frame_with("get a\r\n");
  tcp[23] = 6;
  std::string other_port = frame_with("get a\r\n");
  other_port[37] = 0;
  std::string eight;
  for (int i = 0; i < 8; ++i) eight += " key" + std::to_string(i);
  bench.add("TCP", tcp, false);
  bench.add("UDP to another port", other_port, false);
  bench.add("get, 31 B key, 64 B value", frame_with("get " + name + "\r\n"), true);
  bench.add("gets, 31 B key, 64 B value", frame_with("gets " + name + "\r\n"), true);
  bench.add("mg v f, 31 B key, 64 B value", frame_with("mg " + name + " v f\r\n"), true);
  bench.add("get, 1000 B value", frame_with("get 1k\r\n"), true);
  bench.add("get of 8 keys, 64 B values", frame_with("get" + eight + "\r\n"), true);
  bench.add("get without a copy", frame_with("get none\r\n"), false);
  bench.add("set", frame_with("set a 0 0 1\r\nx\r\n"), false);
  bench.measure();
  const ProgramSize size = bench.size();
  fmt::print("{{\"instructions\": {}, \"verified\": {}, \"stack\": [{}]}}\n", size.instructions,
             size.verified, fmt::join(size.stack, ", "));
  return 0;
}

}  // namespace
}  // namespace warpcache::nic_cache

int main() { return warpcache::nic_cache::run(); }
