// SPDX-License-Identifier: Apache-2.0
//
// The XDP program in the kernel: loads it, maps its memory, attaches it to an interface. Functions
// that can fail return "" or a reason. For one thread, except where a comment says otherwise.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "nic_cache/copy_table.h"
#include "nic_cache/layout.h"

namespace warpcache::nic_cache {

enum class XdpMode : uint8_t {
  kAny,      // the driver's, else the generic one
  kNative,   // in the driver
  kGeneric,  // in the network stack
};

// What the verifier said of the program.
struct ProgramSize {
  uint32_t instructions = 0;
  uint32_t verified = 0;        // instructions that the verifier looked at, of a limit of 1,000,000
  std::vector<uint32_t> stack;  // bytes of each function; along calls 512 are allowed
};

// The result of a run without an interface.
struct TestRun {
  uint32_t action = 0;  // XDP_PASS, XDP_TX, ...
  std::vector<uint8_t> frame;
  uint32_t nanoseconds = 0;  // each run, with several of them
};

class XdpProgram {
 public:
  XdpProgram();
  ~XdpProgram();  // detaches
  XdpProgram(const XdpProgram&) = delete;
  XdpProgram& operator=(const XdpProgram&) = delete;

  // Loads the program, with this much memory for copies, and for the rates of this number of
  // sources.
  std::string load(uint32_t memory_mb, uint32_t sources = 1);
  // REQUIRES for all that follow: load() was successful.
  CopyMemory memory() const;

  // The program stays attached until detach(), or until the process ends in whatever way. `*busy`:
  // it failed because another program is there.
  std::string attach(unsigned interface, XdpMode mode, bool* busy);
  void detach();
  // False: not attached, or the interface is gone.
  bool attached() const;

  // Returns true when every run of the program that was under way has ended. False: the kernel does
  // not say.
  bool wait_for_runs();

  // Calls `take` for the missed keys that were reported since the last call.
  void take_wanted(const std::function<void(Bytes key)>& take);

  // Calls `take` for the writes that were accepted since the last call, in their order, up to one
  // that a run has not finished yet. By one thread at a time.
  void take_writes(const std::function<void(const nic_write&)>& take);

  // Counters of a receive queue, below kNicQueuesMax. From any thread.
  nic_counters counters(uint32_t queue) const;

  ProgramSize size() const;

  // Runs the program `repeat` times on a frame, and returns what the last run made of it.
  std::string test_run(Bytes frame, uint32_t repeat, TestRun* run) const;

 private:
  struct Kernel;
  std::unique_ptr<Kernel> kernel_;
};

}  // namespace warpcache::nic_cache
