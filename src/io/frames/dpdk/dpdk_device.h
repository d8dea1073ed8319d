// SPDX-License-Identifier: Apache-2.0
//
// A DPDK device and its queues. A port of frames has one or several of them. Received frames stay
// in the buffers that the device has written: an engine reads them there, and writes a short reply
// after the request, so that the same buffer goes back to the device.
#pragma once

#include <rte_mbuf.h>
#include <rte_memzone.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "io/frames/dpdk/dpdk_gpu.h"
#include "io/frames/dpdk/dpdk_pools.h"
#include "io/frames/dpdk/dpdk_ports.h"
#include "io/frames/dpdk/memif_guard.h"
#include "io/frames/frame_port.h"
#include "io/frames/tap_interface.h"

namespace warpcache::io {

// Shared by its ports; the last one stops the device and frees its memory.
class DpdkDevice {
 public:
  // A block of memory for the replies of a burst. It is used until the device has sent them all.
  struct ReplyBlock {
    rte_mbuf_ext_shared_info sharing;
    std::atomic<bool> used{false};  // DPDK's interrupt thread frees it, too
  };
  static constexpr uint32_t kReplyBlocks = kFrameBurstsMax + 2;
  using ReplyBlocks = std::array<ReplyBlock, kReplyBlocks>;

  // The requests of a burst, by the numbers of its packets.
  struct HeldBurst {
    std::vector<rte_mbuf*> frames;  // null: sent
    uint32_t count = 0;             // used ones
    uint32_t sent = 0;              // of these
  };
  using HeldBursts = std::array<HeldBurst, kFrameBurstsMax>;

  // The buffers of a port.
  struct Buffers {
    const rte_memzone* zone = nullptr;   // where the memory is DPDK's
    std::unique_ptr<DpdkGpuMemory> gpu;  // where it is a GPU's
    FrameMemory memory;                  // buffers of received frames, then blocks for replies
    rte_mempool* received = nullptr;
    rte_mempool* sent = nullptr;
    std::unique_ptr<ReplyBlocks> blocks;  // the device may refer to them until its end
    std::unique_ptr<HeldBursts> held;     // by the port
  };

  // `queues`: pairs of queues, which `ports` ports share. REQUIRES: 0 < ports <= queues.
  DpdkDevice(uint16_t number, std::string text, uint16_t queues, uint16_t ports)
      : number_(number), text_(std::move(text)), queues_(queues), ports_(ports) {}
  DpdkDevice(const DpdkDevice&) = delete;
  DpdkDevice& operator=(const DpdkDevice&) = delete;
  ~DpdkDevice();

  // Takes the memory for all ports, of a GPU if the settings say so. Returns the error as text, or
  // "".
  std::string allocate(const DpdkSettings& settings);
  // Opens the interface to the kernel. As allocate().
  std::string open_kernel(const DpdkSettings& settings);
  // Sets up the queues and starts the device. A memif whose other side is not there yet is started
  // later. As allocate().
  std::string start();

  // By the thread of port 0, when there are no frames: connects a memif again whose other side has
  // gone. `user`: the port's. Other ports' threads must call pause_if_asked() regularly.
  void keep_connected(const std::atomic<bool>& stopped, MemifUser* user);
  // By the thread of another port: while the device restarts, it waits here.
  void pause_if_asked();
  // Waits until the link is up. As allocate().
  std::string wait_for_link(uint32_t time_ms_max) const;

  // Whether frames may be received and sent.
  bool is_started() const { return started_.load(std::memory_order_relaxed); }
  const Buffers& buffers(uint32_t port) const { return buffers_[port]; }
  // The queues of a port are `port` and every ports()-th after it.
  uint16_t queues() const { return queues_; }
  uint16_t ports() const { return ports_; }
  uint16_t number() const { return number_; }
  bool is_memif() const { return is_memif_; }
  const std::string& text() const { return text_; }
  const TapInterface& kernel() const { return kernel_; }
  // Frames that the device has dropped since the last call, because queues or buffers were full.
  uint64_t take_missed();

 private:
  void take_lost();
  std::string take_memory(const DpdkSettings& settings, const std::string& name, uint64_t bytes,
                          Buffers& buffers) const;

  uint16_t number_;
  std::string text_;
  uint16_t queues_;
  uint16_t ports_;
  std::vector<Buffers> buffers_;  // of each port
  std::atomic<bool> started_{false};
  bool is_memif_ = false;  // it does not connect again by itself
  uint64_t restarted_us_ = 0;
  bool was_up_ = false;  // when keep_connected() looked last
  std::atomic<bool> restarting_{false};
  std::atomic<uint32_t> paused_{0};  // threads
  TapInterface kernel_;
  uint64_t missed_ = 0;
};

class DpdkPort final : public FramePort {
 public:
  static constexpr uint32_t kFrameRoom = kDpdkFrameRoom;
  // Of a block for replies, which the device sends from where the engine has put them.
  static constexpr uint32_t kReplyBlockBytes = 4u << 20;
  static constexpr uint64_t kReplyBytes = uint64_t{DpdkDevice::kReplyBlocks} * kReplyBlockBytes;
  // DPDK's memory that a port needs in total, and what each queue adds to it.
  static constexpr uint32_t kMegabytes = 50;
  static constexpr uint32_t kQueueMegabytes = 38;

  // REQUIRES: the device has buffers for the port.
  DpdkPort(std::shared_ptr<DpdkDevice> device, uint16_t number);
  DpdkPort(const DpdkPort&) = delete;
  DpdkPort& operator=(const DpdkPort&) = delete;
  ~DpdkPort() override;

  MutableBytes memory() const override { return {memory_.seen, memory_.bytes}; }
  uint8_t* gpu_memory() const override { return is_on_gpu_ ? memory_.data : nullptr; }
  bool receive(FrameBuffer& buffer, int timeout_ms) override;
  MutableBytes reply_memory(uint32_t burst) override;
  void send(uint32_t burst, const TxFrame* frames, uint32_t count) override;
  bool send_beside(const RepliesBeside& replies) override;
  void pass_on(const MutableBytes* frames, uint32_t count) override;
  void take_back(const FrameBuffer& buffer) override;
  void stop() override { stopped_.store(true, std::memory_order_relaxed); }
  std::string describe() const override;

 private:
  static constexpr uint32_t kAtOnce = 64;
  static constexpr uint32_t kNoBlock = ~0u;

  using HeldBurst = DpdkDevice::HeldBurst;

  uint32_t receive_now(FrameBuffer& buffer);
  uint32_t receive_from(uint16_t queue, FrameBuffer& buffer);
  void add(FrameBuffer& buffer, HeldBurst& held, uint32_t count);
  uint32_t drop_in_pieces(rte_mbuf** frames, uint32_t count);
  void prefetch_request(uint32_t burst, const TxFrame& frame) const;
  rte_mbuf* take_request(uint32_t burst, const TxFrame& frame);
  uint32_t take_buffers(uint32_t wanted, rte_mbuf** buffers);
  uint32_t copy_frames(const TxFrame* frames, uint32_t count, rte_mbuf** filled);
  uint32_t fill_buffers(uint32_t burst, const TxFrame* frames, uint32_t count, rte_mbuf** filled);
  void fill_buffer(uint32_t block, const TxFrame& frame, rte_mbuf* made);
  uint8_t* block_data(uint32_t block) const;
  // Where rte_mbufs have what the CPU sees there. REQUIRES: it is of the memory.
  uint8_t* in_mbufs(const uint8_t* seen) const { return memory_.data + (seen - memory_.seen); }
  static void free_block(void* data, void* block);
  uint32_t transmit(uint16_t queue, rte_mbuf** frames, uint32_t count);
  void send_from_kernel();
  void now_and_then();

  std::shared_ptr<DpdkDevice> device_;
  uint16_t number_;                   // of the port
  uint16_t next_queue_;               // to be asked for frames
  std::unique_ptr<MemifUser> memif_;  // nullptr: the device is none
  FrameMemory memory_;                // the buffers of received frames
  bool is_on_gpu_;
  rte_mempool* sent_;
  DpdkDevice::HeldBursts& held_;
  std::array<uint16_t, kFrameBurstsMax> queue_of_;  // each burst has come from one
  DpdkDevice::ReplyBlocks& blocks_;
  std::array<uint32_t, kFrameBurstsMax> block_of_;  // of each burst, or kNoBlock
  uint32_t polls_ = 0;
  uint64_t next_look_us_ = 0;
  std::atomic<bool> stopped_{false};
};

}  // namespace warpcache::io
