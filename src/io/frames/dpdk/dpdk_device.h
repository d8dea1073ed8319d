// SPDX-License-Identifier: Apache-2.0
//
// A DPDK device and its queues, each of which is a port of frames. Received frames stay in the
// buffers that the device has written: an engine reads them there.
#pragma once

#include <rte_mbuf.h>
#include <rte_memzone.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "io/frames/dpdk/dpdk_ports.h"
#include "io/frames/frame_port.h"
#include "io/frames/tap_interface.h"

namespace warpcache::io {

// Shared by the ports of its queues; the last one stops the device and frees its memory.
class DpdkDevice {
 public:
  // The buffers of a queue.
  struct Buffers {
    const rte_memzone* zone = nullptr;  // where frames are received
    rte_mempool* received = nullptr;    // its buffers
    rte_mempool* sent = nullptr;
  };

  DpdkDevice(uint16_t number, std::string text) : number_(number), text_(std::move(text)) {}
  DpdkDevice(const DpdkDevice&) = delete;
  DpdkDevice& operator=(const DpdkDevice&) = delete;
  ~DpdkDevice();

  // Takes the memory for `queues` queues. Returns the error as text, or "".
  std::string allocate(uint32_t queues);
  // Opens the interface to the kernel. As allocate().
  std::string open_kernel(const DpdkSettings& settings);
  // Sets up the queues and starts the device. A memif whose other side is not there yet is started
  // later. As allocate().
  std::string start();

  // By the thread of queue 0, when there are no frames: connects a memif again whose other side has
  // gone. Other queues' threads must call pause_if_asked() regularly.
  void keep_connected(const std::atomic<bool>& stopped);
  // By the thread of another queue: while the device restarts, it waits here.
  void pause_if_asked(const std::atomic<bool>& stopped);
  // Waits until the link is up. As allocate().
  std::string wait_for_link(uint32_t time_ms_max) const;

  // Whether frames may be received and sent.
  bool is_started() const { return started_.load(std::memory_order_relaxed); }
  const Buffers& buffers(uint32_t queue) const { return buffers_[queue]; }
  uint16_t number() const { return number_; }
  const std::string& text() const { return text_; }
  const TapInterface& kernel() const { return kernel_; }
  // Frames that the device has dropped since the last call, because queues or buffers were full.
  uint64_t take_missed();

 private:
  uint16_t number_;
  std::string text_;
  std::vector<Buffers> buffers_;
  std::atomic<bool> started_{false};
  bool reconnects_ = false;  // it does not do so by itself
  uint64_t restarted_us_ = 0;
  std::atomic<bool> restarting_{false};
  std::atomic<uint32_t> paused_{0};  // threads
  TapInterface kernel_;
  uint64_t missed_ = 0;
};

class DpdkPort final : public FramePort {
 public:
  // The most frames of all bursts that are under way, and of the device's own rings.
  static constexpr uint32_t kBuffers = 8192;
  static constexpr uint32_t kFrameRoom = 2048;  // bytes of a buffer, without its headroom
  // DPDK's memory that a port needs, all told.
  static constexpr uint32_t kMegabytes = 48;

  // REQUIRES: the device has buffers for the queue.
  DpdkPort(std::shared_ptr<DpdkDevice> device, uint16_t queue);
  DpdkPort(const DpdkPort&) = delete;
  DpdkPort& operator=(const DpdkPort&) = delete;
  ~DpdkPort() override;

  MutableBytes memory() const override { return memory_; }
  bool receive(FrameBuffer& buffer, int timeout_ms) override;
  void send(const TxFrame* frames, uint32_t count) override;
  void pass_on(const MutableBytes* frames, uint32_t count) override;
  void take_back(const FrameBuffer& buffer) override;
  void stop() override { stopped_.store(true, std::memory_order_relaxed); }
  std::string describe() const override;

 private:
  static constexpr uint32_t kAtOnce = 64;

  uint32_t receive_now(FrameBuffer& buffer);
  void add(FrameBuffer& buffer, rte_mbuf* frame);
  uint32_t fill(const TxFrame* frames, uint32_t count, rte_mbuf** filled);
  uint32_t transmit(rte_mbuf** frames, uint32_t count);
  void send_from_kernel();
  void now_and_then();

  std::shared_ptr<DpdkDevice> device_;
  uint16_t queue_;
  MutableBytes memory_;  // the buffers of received frames
  rte_mempool* sent_;
  std::array<std::vector<rte_mbuf*>, kFrameBurstsMax> held_;  // the frames of each burst
  bool registered_ = false;                                   // the thread is known to DPDK
  uint64_t next_look_us_ = 0;
  std::atomic<bool> stopped_{false};
};

}  // namespace warpcache::io
