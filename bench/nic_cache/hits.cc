// SPDX-License-Identifier: Apache-2.0
//
// Plays a file of requests through the NIC cache's program and its table of copies, as the server
// does it, but one step after the other: a miss is copied before the next request, and a set takes
// the copy back. So the hit ratio is the cache's own and does not depend on how busy the machine
// is. Prints a JSON line.
#include <fmt/core.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <memory>
#include <string>

#include "base/frequency_sketch.h"
#include "net/testing/packets.h"
#include "nic_cache/copy_table.h"
#include "nic_cache/program.h"
#include "nic_cache/testing/listen.h"
#include "workload/trace.h"

namespace warpcache::nic_cache {
namespace {

const std::string kHeader("\0\1\0\0\0\1\0\0", 8);
constexpr uint32_t kTx = 3;

class Replay {
 public:
  Replay(const bench::Trace& trace, bool frequent) : trace_(trace), frequent_(frequent) {}

  std::string open(uint32_t memory_mb) {
    std::string failure = program_.load(memory_mb);
    if (!failure.empty()) return failure;
    const CopyMemory memory = program_.memory();
    table_ = std::make_unique<CopyTable>(memory, 1);
    asked_ = std::make_unique<FrequencySketch>(uint64_t{memory.set_count} * kNicWays);
    nic_control& control = *memory.control;
    control.alive_until = UINT64_MAX;
    control.amplification = 65535;
    control.text = 1;
    set_port(control, net::testing::kTestPort);
    listen_to(control, net::testing::frame_of(kHeader));
    return "";
  }

  std::string run() {
    for (const bench::Trace::Entry& entry : trace_.entries()) {
      char text[256];
      const std::string key(text, trace_.write_key(entry.id, text));
      if (entry.operation != bench::Operation::kGet) {
        table_->drop(bytes_of(key));
      } else if (std::string failure = get(key, entry.id); !failure.empty()) {
        return failure;
      }
      if (table_->retire_begin()) table_->retire_end();  // no run is under way
    }
    return "";
  }

  uint64_t gets() const { return gets_; }
  uint64_t hits() const { return hits_; }
  uint64_t ways() const { return uint64_t{program_.memory().set_count} * kNicWays; }
  CopyCounts counts() const { return table_->counts(); }

 private:
  std::string get(const std::string& key, uint32_t id) {
    ++gets_;
    const std::string frame = net::testing::frame_of(kHeader + "get " + key + "\r\n");
    TestRun done;
    if (std::string failure = program_.test_run(bytes_of(frame), 1, &done); !failure.empty())
      return failure;
    if (done.action == kTx) {
      ++hits_;
      return "";
    }
    const bool again = asked_->add(table_->hash(bytes_of(key))) > 1;
    if (frequent_ && !again && !table_->has_space(bytes_of(key))) return "";
    const std::string value(trace_.value_size(id), 'v');
    (void)table_->fill({.key = bytes_of(key), .value = bytes_of(value), .cas = 1});
    return "";
  }

  const bench::Trace& trace_;
  const bool frequent_;
  XdpProgram program_;
  std::unique_ptr<CopyTable> table_;
  std::unique_ptr<FrequencySketch> asked_;
  uint64_t gets_ = 0;
  uint64_t hits_ = 0;
};

int refuse(const std::string& why) {
  fmt::print(stderr, "nic_cache_hits: {}\n", why);
  return 2;
}

int run(int argc, char** argv) {
  if (argc != 4) return refuse("usage: nic_cache_hits TRACE MEGABYTES reads|frequent");
  const std::string fill = argv[3];
  const auto megabytes = static_cast<uint32_t>(std::strtoul(argv[2], nullptr, 10));
  if (megabytes == 0 || (fill != "reads" && fill != "frequent")) return refuse("bad arguments");
  std::ifstream in(argv[1]);
  bench::Trace trace;
  std::string failure = "it cannot be opened";
  if (!in || !bench::Trace::read(&in, 1, &trace, &failure)) return refuse(failure);
  Replay replay(trace, fill == "frequent");
  failure = replay.open(megabytes);
  if (failure.empty()) failure = replay.run();
  if (!failure.empty()) return refuse(failure);
  const CopyCounts counts = replay.counts();
  fmt::print("{{\"ways\": {}, \"gets\": {}, \"hits\": {}, \"evicted\": {}, \"no_space\": {}}}\n",
             replay.ways(), replay.gets(), replay.hits(), counts.evicted, counts.no_space);
  return 0;
}

}  // namespace
}  // namespace warpcache::nic_cache

int main(int argc, char** argv) { return warpcache::nic_cache::run(argc, argv); }
