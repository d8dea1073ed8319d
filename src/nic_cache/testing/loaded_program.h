// SPDX-License-Identifier: Apache-2.0
//
// For tests: the program in the kernel with a table of copies, and frames that are run through it
// without an interface. It serves the address that frame_of() sends to.
#pragma once

#include <gtest/gtest.h>
#include <linux/bpf.h>

#include <memory>
#include <string>

#include "net/testing/packets.h"
#include "nic_cache/copy_table.h"
#include "nic_cache/program.h"
#include "nic_cache/testing/listen.h"

namespace warpcache::nic_cache {

class LoadedProgram {
 public:
  // "" or why programs cannot be loaded here.
  std::string load(uint32_t memory_mb = 4) {
    constexpr uint32_t kSources = 256;
    const std::string failure = program_.load(memory_mb, kSources);
    if (!failure.empty()) return failure;
    table_ = std::make_unique<CopyTable>(program_.memory(), 0x5eed);
    control().alive_until = UINT64_MAX;
    control().amplification = 10;
    control().network_count = 1;  // all: a mask of zeros
    control().read_allocate = 1;
    control().text = 1;
    control().binary = 1;
    set_port(net::testing::kTestPort);
    listen({});
    return "";
  }

  CopyTable& table() { return *table_; }
  XdpProgram& program() { return program_; }
  nic_control& control() { return *program_.memory().control; }

  void set_port(uint16_t port) { nic_cache::set_port(control(), port); }

  // The server's only address is that of such frames.
  void listen(const net::testing::FrameForm& form) { listen_to(net::testing::frame_of("", form)); }
  // The server's only address is that of this frame. REQUIRES: it has all headers.
  void listen_to(const std::string& frame) { nic_cache::listen_to(control(), frame); }

  // What the program sends for a frame; "" if it passes it, which is then unchanged.
  // The kernel runs no program on a frame without an Ethernet header.
  std::string run(const std::string& frame) {
    if (frame.size() < 14) return "";
    TestRun run;
    const std::string failure = program_.test_run(bytes_of(frame), 1, &run);
    EXPECT_EQ(failure, "");
    std::string out(run.frame.begin(), run.frame.end());
    if (run.action == XDP_TX) return out;
    EXPECT_EQ(run.action, uint32_t{XDP_PASS});
    EXPECT_TRUE(out == frame) << "a frame that passes has changed, of " << frame.size() << " to "
                              << out.size() << " bytes";
    return "";
  }

  // The text of the reply to a command; "" if it passes. Checks the headers of the reply.
  std::string ask(const std::string& text, const net::testing::FrameForm& form = {}) {
    const std::string header("\x12\x34\x00\x00\x00\x01\x00\x00", 8);
    const std::string frame = net::testing::frame_of(header + text, form);
    const std::string reply = run(frame);
    if (reply.empty()) return "";
    std::string want = reply;
    // A padded frame ends after its datagram.
    const size_t end = net::testing::l4_offset_of(reply) +
                       net::testing::get16(reply, net::testing::l4_offset_of(reply) + 4);
    net::testing::mend(want, form.checksum ? net::testing::kMendAll : 7u, reply.size() - end);
    EXPECT_TRUE(want == reply) << "lengths or checksums are wrong";
    EXPECT_EQ(reply.substr(0, 6), frame.substr(6, 6));
    EXPECT_EQ(reply.substr(6, 6), frame.substr(0, 6));
    const size_t at = net::testing::l4_offset_of(reply);
    EXPECT_EQ(net::testing::get16(reply, at), form.destination_port);
    EXPECT_EQ(net::testing::get16(reply, at + 2), form.source_port);
    EXPECT_EQ(reply.substr(at + 8, 8), header);
    EXPECT_EQ(reply.substr(end), std::string(reply.size() - end, '\0'));
    return reply.substr(at + 16, end - at - 16);
  }

 private:
  XdpProgram program_;
  std::unique_ptr<CopyTable> table_;
};

}  // namespace warpcache::nic_cache
