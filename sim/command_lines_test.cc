// SPDX-License-Identifier: Apache-2.0
// The simulators as programs: exit statuses, what they refuse, and why.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <fstream>
#include <string>

#include "traces/exit_status.h"

namespace warpcache::sim {
namespace {

const std::string kHashSim = WARPCACHE_HASH_SIM;
const std::string kNicCacheSim = WARPCACHE_NIC_CACHE_SIM;
const std::string kCfgSim = WARPCACHE_CFG_SIM;
const std::string kEdgeSim = WARPCACHE_EDGE_SIM;
const std::string kSmall = " --key-count 2000 --requests 2000";

struct Outcome {
  int status = -1;
  std::string text;  // standard output and standard error
};

Outcome run(const std::string& command) {
  Outcome outcome;
  FILE* const pipe = popen((command + " 2>&1").c_str(), "r");
  if (pipe == nullptr) return outcome;
  std::array<char, 4096> piece;
  while (const size_t count = std::fread(piece.data(), 1, piece.size(), pipe)) {
    outcome.text.append(piece.data(), count);
  }
  const int status = pclose(pipe);
  if (WIFEXITED(status)) outcome.status = WEXITSTATUS(status);
  return outcome;
}

void expect_refused(const std::string& command, const std::string& why) {
  const Outcome outcome = run(command);
  EXPECT_EQ(outcome.status, kExitUsage) << command << "\n" << outcome.text;
  EXPECT_NE(outcome.text.find(why), std::string::npos) << command << "\n" << outcome.text;
}

// Five gets of three keys, two of them hits.
class CommandLines : public testing::Test {
 protected:
  CommandLines() { std::ofstream(path_) << "time,key,size\n0,a,1\n1,b,1\n2,a,1\n3,c,1\n4,b,1\n"; }
  ~CommandLines() override { std::remove(path_.c_str()); }

  const std::string path_ =
      testing::TempDir() + "sim_command_lines." + std::to_string(getpid()) + ".csv";
};

TEST_F(CommandLines, AllEndAlike) {
  for (const std::string& program :
       {kHashSim, kNicCacheSim + " run", kCfgSim + " show", kEdgeSim + " run"}) {
    EXPECT_EQ(run(program + " --help").status, kExitDone);
    expect_refused(program + " --no-such-option", "--help");
  }
  expect_refused(kHashSim + " --trace /no/such/file", "/no/such/file");
  expect_refused(kNicCacheSim + " run --file /no/such/file --size dram:65536", "/no/such/file");
  expect_refused(kCfgSim + " show /no/such/file", "/no/such/file");
  for (const char* option : {"--period", "--seed", "--blocks", "--isr-lines", "--reserve-sms"}) {
    expect_refused(kEdgeSim + " run -k get " + option + " -4", option);
  }
  expect_refused(kEdgeSim + " run --ptx /no/such/file", "/no/such/file");
  expect_refused(kHashSim + kSmall + " --cache none", "no cache none");
  expect_refused(kHashSim + kSmall + " --json /no/such/folder/x", "cannot write");
  expect_refused(kHashSim + kSmall + " --write-trace /no/such/folder/x", "cannot write");
  expect_refused(kNicCacheSim + " run -n 2000 --requests 2000 --json /no/such/folder/x",
                 "cannot write");
}

TEST_F(CommandLines, EdgeSimSaysWhatItDoesNotKnow) {
  const std::string run_it = kEdgeSim + " run --scale 0.02 ";
  EXPECT_EQ(run(run_it + "-k bfs").status, kExitDone);
  expect_refused(run_it + "-k nothing", "no kernel nothing");
  expect_refused(run_it + "--machine nothing", "no machine nothing");
  expect_refused(run_it + "--victim nobody", "no victim nobody");
  expect_refused(run_it + "--flush water", "no way to flush water");
  expect_refused(run_it + "--scheduler fair", "no scheduler fair");
  expect_refused(run_it + "--memory none", "no memory none");
  expect_refused(run_it + "--l1 100", "whole lines");
  expect_refused(run_it + "--l1 many", "BYTES[:WAYS]");
  expect_refused(run_it + "--warp-size 65", "--warp-size");
  expect_refused(run_it + "--isr-lines 16", "reserved");
  expect_refused(run_it + "--reserve-sms 1", "none is left");
  expect_refused(run_it + "--entry x", "--ptx");
  expect_refused(kEdgeSim + " run --scale -1", "scale");
  expect_refused(run_it + "--json /no/such/folder/x", "cannot write");
}

TEST_F(CommandLines, EdgeSimRunsAKernelOfOnesOwn) {
  const std::string ptx = path_ + ".ptx";
  std::ofstream(ptx)
      << ".visible .entry twice(\n.param .u64 twice_0\n)\n{\n.reg .b32 %r<4>;\n.reg .b64 %rd<4>;\n"
         "ld.param.u64 %rd1, [twice_0];\nmov.u32 %r1, %tid.x;\nmul.wide.u32 %rd2, %r1, 4;\n"
         "add.s64 %rd3, %rd1, %rd2;\nld.global.u32 %r2, [%rd3];\nadd.s32 %r3, %r2, %r2;\n"
         "st.global.u32 [%rd3], %r3;\nret;\n}\n";
  const std::string own = kEdgeSim + " run --ptx " + ptx + " --grid 2 --block 64 --args ";
  const Outcome outcome = run(own + "ints:64:10 --json -");
  EXPECT_EQ(outcome.status, kExitDone) << outcome.text;
  EXPECT_NE(outcome.text.find("\"kernel\":\"twice\",\"machine\":\"gem5\""), std::string::npos)
      << outcome.text;
  expect_refused(own + "ints:8:10", "not in its buffers");
  expect_refused(own + "ints:64:10,int:5", "bytes of parameters");
  expect_refused(own + "thing:5", "not known");
  expect_refused(own + "ints:64:10 --entry other", "name one with --entry");
  expect_refused(kEdgeSim + " run --ptx " + path_ + " --args int:1", "--entry");
  std::remove(ptx.c_str());
}

TEST_F(CommandLines, HashSimRefusesWhatItWouldIgnore) {
  const std::string trace = kHashSim + " --trace " + path_ + " --capacity 2 --cache chained:lru";
  EXPECT_EQ(run(trace).status, kExitDone);
  for (const char* option : {"--mix a", "--keys uniform", "--key-count 5", "--requests 5",
                             "--sizes etc", "--one-hits 0.1", "--scans 0.1", "--no-load"}) {
    expect_refused(trace + " " + option, "--trace");
  }
  expect_refused(kHashSim + kSmall + " --ttl 5", "--rate");
  expect_refused(kHashSim + kSmall + " --rate 5", "--ttl");
  expect_refused(kHashSim + kSmall + " --ttl-every 5", "--ttl");
  expect_refused(kHashSim + kSmall + " --scan-length 5", "--scans");
  expect_refused(kHashSim + kSmall + " --overhead 5 --capacity 100", "--capacity");
  expect_refused(kHashSim + kSmall + " --exact-lru --memory 64K", "--memory");
}

TEST_F(CommandLines, HashSimRefusesWarmUpsWithoutRest) {
  expect_refused(kHashSim + kSmall + " --warm-up 2000", "warm-up");
  EXPECT_EQ(run(kHashSim + kSmall + " --warm-up 1999").status, kExitDone);
  expect_refused(kHashSim + " --trace " + path_ + " --capacity 2 --warm-up 5", "warm-up");
}

TEST_F(CommandLines, HashSimHoldsNoMoreThanItIsGiven) {
  expect_refused(kHashSim + kSmall + " --cache set:16 --capacity 5", "16 entries");
  EXPECT_EQ(run(kHashSim + kSmall + " --cache set:16 --capacity 16").status, kExitDone);
  expect_refused(kHashSim + kSmall + " --cache store --memory 1K", "the store needs");
  expect_refused(kHashSim + kSmall + " --cache set:4 --memory 64K", "counts entries");
  expect_refused(kHashSim + kSmall + " --cache store --capacity 1000", "counts bytes");
}

TEST_F(CommandLines, NicCacheSimReadsAFile) {
  const std::string file = kNicCacheSim + " run --file " + path_;
  const Outcome outcome = run(file + " --size dram:65536 --json - --quiet");
  EXPECT_EQ(outcome.status, kExitDone) << outcome.text;
  EXPECT_NE(outcome.text.find("\"gets\":5,\"hits\":2,"), std::string::npos) << outcome.text;
  EXPECT_EQ(outcome.text.find("fit into no slot"), std::string::npos);
  const Outcome large = run(file + " --size dram:65536 --slot-bytes 1 --quiet");
  EXPECT_NE(large.text.find("100.00% of the SETs"), std::string::npos) << large.text;
  expect_refused(file, "dram:BYTES or bits:BITS");
  expect_refused(file + " --size 1/4", "dram:BYTES or bits:BITS");
  expect_refused(file + " --size dram:65536 -w a", "--file");
  expect_refused(file + " --size dram:65536 --requests 5", "--file");
}

TEST_F(CommandLines, NicCacheSimShowsATableAndSeveralSeeds) {
  const std::string command = kNicCacheSim + " run -w a,c -n 4000 --requests 4000 --quiet";
  const Outcome table = run(command + " --seeds 3");
  EXPECT_EQ(table.status, kExitDone) << table.text;
  EXPECT_NE(table.text.find("misses"), std::string::npos) << table.text;
  EXPECT_NE(table.text.find(" to "), std::string::npos) << table.text;  // the spread
  EXPECT_EQ(table.text.find('{'), std::string::npos) << table.text;
  const Outcome json = run(command + " --seeds 3 --json -");
  for (const char* seed : {"\"seed\":1,", "\"seed\":2,", "\"seed\":3,"}) {
    EXPECT_NE(json.text.find(seed), std::string::npos) << seed;
  }
  EXPECT_EQ(json.text.find("workload a:"), std::string::npos) << json.text;
}

}  // namespace
}  // namespace warpcache::sim
