// SPDX-License-Identifier: Apache-2.0
//
// rtl_hits TRACE [--hold PERCENT]: plays a file of requests through the simulated core as through a
// cache in front of a host: what a get does not find is stored, a set is stored at once, a delete
// deletes. Gets of up to 32 different keys are under way at once, and what they missed is stored
// before the next ones, and before anything else is done to one of these keys. Prints a JSON line,
// to be compared with nic-cache-sim's of the same file.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "frames.h"
#include "sim.h"
#include "workload/trace.h"

namespace warpcache::rtl {
namespace {

constexpr size_t kTogether = 32;
constexpr size_t kPayloadAt = 50;  // in a frame

class Replay {
 public:
  Replay(const bench::Trace& trace, const SimConfig& config) : trace_(trace), sim_(config) {}

  // False if the core hangs, or answers with what is no reply to the request.
  bool run() {
    for (const bench::Trace::Entry& entry : trace_.entries()) {
      const bool waits = std::find(asked_.begin(), asked_.end(), entry.id) != asked_.end();
      if ((waits || asked_.size() == kTogether) && !settle()) return false;
      switch (entry.operation) {
        case bench::Operation::kGet:
          ++gets_;
          asked_.push_back(entry.id);
          sim_.send(request_frame("get " + key_of(entry.id) + "\r\n"));
          break;
        case bench::Operation::kSet:
          ++sets_;
          store(entry.id);
          break;
        default:
          sim_.send(request_frame("delete " + key_of(entry.id) + " noreply\r\n"));
          break;
      }
    }
    return settle();
  }

  void print() {
    const auto gets = static_cast<double>(gets_);
    std::printf(
        "{\"gets\": %llu, \"hits\": %llu, \"sets\": %llu, \"other_key\": %u, \"cycles\": %llu, "
        "\"hit_ratio\": %.6f}\n",
        static_cast<unsigned long long>(gets_), static_cast<unsigned long long>(hits_),
        static_cast<unsigned long long>(sets_), sim_.counter(kOtherKey),
        static_cast<unsigned long long>(sim_.cycles()),
        gets_ == 0 ? 0.0 : static_cast<double>(hits_) / gets);
  }

 private:
  std::string key_of(uint32_t id) const {
    char text[256];
    return std::string(text, trace_.write_key(id, text));
  }
  void store(uint32_t id) {
    const std::string value(trace_.value_size(id), 'v');
    sim_.send(request_frame("set " + key_of(id) + " 0 0 " + std::to_string(value.size()) +
                            " noreply\r\n" + value + "\r\n"));
  }

  // The gets under way are answered, and what they missed is stored.
  bool settle() {
    if (asked_.empty()) return true;
    if (!sim_.run_until_idle()) return false;
    const std::vector<std::string> replies = sim_.take();
    if (replies.size() != asked_.size()) return false;
    for (size_t i = 0; i < replies.size(); ++i) {
      if (replies[i].compare(kPayloadAt, 6, "VALUE ") == 0) {
        ++hits_;
      } else if (replies[i].compare(kPayloadAt, 5, "END\r\n") == 0) {
        store(asked_[i]);
      } else {
        return false;
      }
    }
    asked_.clear();
    return true;
  }

  const bench::Trace& trace_;
  Sim sim_;
  std::vector<uint32_t> asked_;  // gets under way
  uint64_t gets_ = 0;
  uint64_t hits_ = 0;
  uint64_t sets_ = 0;
};

int refuse(const std::string& why) {
  std::fprintf(stderr, "rtl_hits: %s\n", why.c_str());
  return 2;
}

int run(int argc, char** argv) {
  if (argc < 2) return refuse("usage: rtl_hits TRACE [--hold PERCENT]");
  SimConfig config;
  for (int i = 2; i + 1 < argc; i += 2) {
    if (std::string(argv[i]) != "--hold") return refuse(std::string("unknown: ") + argv[i]);
    config.hold_percent = static_cast<uint32_t>(std::atoi(argv[i + 1]));
  }
  std::ifstream in(argv[1]);
  bench::Trace trace;
  std::string failure = "it cannot be opened";
  if (!in || !bench::Trace::read(&in, 32, &trace, &failure)) return refuse(failure);
  Replay replay(trace, config);
  if (!replay.run()) return refuse("a reply is missing or wrong");
  replay.print();
  return 0;
}

}  // namespace
}  // namespace warpcache::rtl

int main(int argc, char** argv) { return warpcache::rtl::run(argc, argv); }
