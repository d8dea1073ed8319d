// SPDX-License-Identifier: Apache-2.0
#include <rte_ethdev.h>
#include <rte_lcore.h>
#include <rte_pause.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/assert.h"
#include "base/mem.h"
#include "io/frames/dpdk/dpdk_device.h"
#include "io/frames/dpdk/dpdk_eal.h"
#include "io/frames/dpdk/polling.h"

namespace warpcache::io {
namespace {

constexpr uint32_t kAhead = 8;  // frames

// DPDK keeps caches of buffers for threads that it knows.
class KnownThread {
 public:
  KnownThread() : known_(rte_thread_register() == 0) {}
  KnownThread(const KnownThread&) = delete;
  KnownThread& operator=(const KnownThread&) = delete;
  ~KnownThread() {
    if (known_) rte_thread_unregister();
  }

 private:
  bool known_;
};

// The device and the CPU touch both lines of it.
inline void prefetch_mbuf(rte_mbuf* buffer) {
  rte_mbuf_prefetch_part1(buffer);
  rte_mbuf_prefetch_part2(buffer);
}

}  // namespace

DpdkPort::DpdkPort(std::shared_ptr<DpdkDevice> device, uint16_t number)
    : device_(std::move(device)),
      number_(number),
      next_queue_(number),
      memif_(device_->is_memif() ? std::make_unique<MemifUser>() : nullptr),
      held_(*device_->buffers(number).held),
      blocks_(*device_->buffers(number).blocks) {
  const DpdkDevice::Buffers& buffers = device_->buffers(number);
  memory_ = buffers.memory;
  is_on_gpu_ = buffers.gpu != nullptr;
  sent_ = buffers.sent;
  block_of_.fill(kNoBlock);
  queue_of_.fill(number);
}

DpdkPort::~DpdkPort() {
  for (HeldBurst& held : held_) rte_pktmbuf_free_bulk(held.frames.data(), held.count);
}

std::string DpdkPort::describe() const {
  std::string queues = "queue " + std::to_string(number_);
  for (uint32_t queue = number_; (queue += device_->ports()) < device_->queues();) {
    queues += ", " + std::to_string(queue);
  }
  return "dpdk " + device_->text() + " " + queues + (is_on_gpu_ ? " (in the GPU's memory)" : "") +
         (dpdk_has_huge_pages() ? "" : " (without huge pages)");
}

bool DpdkPort::receive(FrameBuffer& buffer, int timeout_ms) {
  thread_local const KnownThread known;
  return poll_frames(
      stopped_, timeout_ms, [&] { return receive_now(buffer) != 0; }, [this] { now_and_then(); });
}

// From the next queue that has frames: a burst's replies leave by the queue that it came from.
uint32_t DpdkPort::receive_now(FrameBuffer& buffer) {
  if (number_ != 0) device_->pause_if_asked();
  if (!device_->is_started()) return 0;
  constexpr uint32_t kPollsOfKernel = 16;  // looking there is a system call
  if (number_ == 0 && device_->kernel().is_open() && ++polls_ % kPollsOfKernel == 0) {
    send_from_kernel();
  }
  for (uint32_t queue = number_; queue < device_->queues(); queue += device_->ports()) {
    const uint16_t asked = next_queue_;
    const uint32_t next = uint32_t{asked} + device_->ports();
    next_queue_ = next < device_->queues() ? static_cast<uint16_t>(next) : number_;
    if (receive_from(asked, buffer) != 0) {
      queue_of_[buffer.number] = asked;
      break;
    }
  }
  return buffer.count;
}

uint32_t DpdkPort::receive_from(uint16_t queue, FrameBuffer& buffer) {
  buffer.frame_room = kFrameRoom;
  HeldBurst& held = held_[buffer.number];
  if (held.frames.size() < buffer.frames_max) held.frames.resize(buffer.frames_max);
  const AtMemif alone(memif_.get());
  for (;;) {
    const uint32_t room = std::min(buffer.frames_max - buffer.count, kAtOnce);
    const uint32_t count = rte_eth_rx_burst(
        device_->number(), queue, held.frames.data() + held.count, static_cast<uint16_t>(room));
    if (count != 0) add(buffer, held, count);
    if (count < kAtOnce || buffer.count == buffer.frames_max) return buffer.count;
  }
}

// The `count` frames after those that the burst holds become its next packets.
void DpdkPort::add(FrameBuffer& buffer, HeldBurst& held, uint32_t count) {
  rte_mbuf** const frames = held.frames.data() + held.count;
  const uint8_t* const memory = memory_.data;
  net::PacketSlot* const slots = buffer.slots + buffer.count;
  uint64_t bytes = 0;
  const auto fill = [&](uint32_t taken) {
    bytes = 0;
    uint32_t unusual = 0;
    for (uint32_t i = 0; i < taken; ++i) {
      const rte_mbuf& frame = *frames[i];
      unusual |= uint32_t{frame.data_off} ^ RTE_PKTMBUF_HEADROOM;
      unusual |= (uint32_t{frame.nb_segs} ^ 1) << 16;
      const uint32_t size = frame.data_len;
      const auto* const data = static_cast<const uint8_t*>(frame.buf_addr) + frame.data_off;
      slots[i] = {static_cast<uint32_t>(data - memory), size};
      bytes += size;
    }
    return unusual;
  };
  uint32_t unusual = fill(count);
  if (WC_UNLIKELY(unusual > UINT16_MAX)) {
    count = drop_in_pieces(frames, count);
    unusual = fill(count);
  }
  if (WC_UNLIKELY(unusual != 0)) buffer.frame_room = 0;
  held.count += count;
  buffer.count += count;
  counters_.received.add(count);
  counters_.received_bytes.add(bytes);
}

// Drops frames that span several buffers. Returns how many are left.
uint32_t DpdkPort::drop_in_pieces(rte_mbuf** frames, uint32_t count) {
  uint32_t left = 0;
  for (uint32_t i = 0; i < count; ++i) {
    if (frames[i]->nb_segs == 1) {
      frames[left++] = frames[i];
      continue;
    }
    counters_.receive_failed.add(1);
    rte_pktmbuf_free(frames[i]);
  }
  return left;
}

void DpdkPort::take_back(const FrameBuffer& buffer) {
  HeldBurst& held = held_[buffer.number];
  if (held.sent != held.count) rte_pktmbuf_free_bulk(held.frames.data(), held.count);
  held.count = held.sent = 0;
  const uint32_t block = std::exchange(block_of_[buffer.number], kNoBlock);
  if (block == kNoBlock) return;
  // The port's own share; the device has the others.
  if (rte_mbuf_ext_refcnt_update(&blocks_[block].sharing, -1) == 0) {
    free_block(nullptr, &blocks_[block]);
  }
}

uint8_t* DpdkPort::block_data(uint32_t block) const {
  return memory_.seen + memory_.bytes - kReplyBytes + uint64_t{block} * kReplyBlockBytes;
}

// The device sends a block's frames from where they are. A frame may lie across two pages, so that
// needs pages that lie together for the device.
MutableBytes DpdkPort::reply_memory(uint32_t burst) {
  if (pages_lie_apart() && !is_on_gpu_) return {};
  for (uint32_t i = 0; i < blocks_.size(); ++i) {
    if (blocks_[i].used) continue;
    blocks_[i].used = true;
    blocks_[i].sharing = {free_block, &blocks_[i], 1};
    block_of_[burst] = i;
    return {block_data(i), kReplyBlockBytes};
  }
  return {};
}

void DpdkPort::free_block(void* /*data*/, void* block) {
  static_cast<DpdkDevice::ReplyBlock*>(block)->used = false;
}

// The request's buffer, with the reply that lies in it.
rte_mbuf* DpdkPort::take_request(uint32_t burst, const TxFrame& frame) {
  HeldBurst& held = held_[burst];
  rte_mbuf* const request = std::exchange(held.frames[frame.request], nullptr);
  ++held.sent;
  request->data_off =
      static_cast<uint16_t>(in_mbufs(frame.bytes.data) - static_cast<uint8_t*>(request->buf_addr));
  return request;
}

void DpdkPort::prefetch_request(uint32_t burst, const TxFrame& frame) const {
  if (!frame.is_beside) return;
  prefetch_mbuf(held_[burst].frames[frame.request]);
}

// Returns how many it has got.
uint32_t DpdkPort::take_buffers(uint32_t wanted, rte_mbuf** buffers) {
  if (wanted == 0 || rte_pktmbuf_alloc_bulk(sent_, buffers, wanted) == 0) return wanted;
  uint32_t taken = 0;
  while (taken < wanted && (buffers[taken] = rte_pktmbuf_alloc(sent_)) != nullptr) ++taken;
  return taken;
}

// Puts a frame into a buffer: one of the block is sent from where it is, any other is copied.
void DpdkPort::fill_buffer(uint32_t block, const TxFrame& frame, rte_mbuf* made) {
  const Bytes bytes = frame.bytes;
  if (block != kNoBlock) {
    uint8_t* const data = in_mbufs(bytes.data);
    const auto offset = static_cast<uint64_t>(data - memory_.data);
    const bool by_data = memory_.device_address == RTE_BAD_IOVA;
    rte_mbuf_ext_refcnt_update(&blocks_[block].sharing, 1);
    rte_pktmbuf_attach_extbuf(made, data, by_data ? RTE_BAD_IOVA : memory_.device_address + offset,
                              static_cast<uint16_t>(bytes.size), &blocks_[block].sharing);
  } else {
    std::memcpy(rte_pktmbuf_mtod(made, void*), bytes.data, bytes.size);
    counters_.copied_bytes.add(bytes.size);
  }
}

// Waits a little for a full ring: a peer that takes frames frees it soon. What it does not take
// then is dropped.
uint32_t DpdkPort::transmit(uint16_t queue, rte_mbuf** frames, uint32_t count) {
  constexpr uint64_t kPatienceUs = 100;
  uint32_t sent = 0;
  uint64_t deadline_us = 0;
  while (sent < count && device_->is_started()) {
    uint16_t taken = 0;
    {
      const AtMemif alone(memif_.get());
      taken = rte_eth_tx_burst(device_->number(), queue, frames + sent,
                               static_cast<uint16_t>(count - sent));
    }
    sent += taken;
    if (taken != 0) continue;
    const uint64_t now = polling_now_us();
    if (deadline_us == 0) deadline_us = now + kPatienceUs;
    if (now >= deadline_us) break;
    rte_pause();
  }
  if (sent < count) rte_pktmbuf_free_bulk(frames + sent, count - sent);
  return sent;
}

// Puts frames into buffers of their own. Returns how many.
uint32_t DpdkPort::copy_frames(const TxFrame* frames, uint32_t count, rte_mbuf** filled) {
  count = take_buffers(count, filled);
  uint64_t bytes = 0;
  for (uint32_t i = 0; i < count; ++i) {
    const Bytes frame = frames[i].bytes;
    WC_ASSERT(frame.size <= kFrameRoom);
    mem_copy_often_short(rte_pktmbuf_mtod(filled[i], void*), frame.data, frame.size);
    filled[i]->data_len = static_cast<uint16_t>(frame.size);
    filled[i]->pkt_len = static_cast<uint32_t>(frame.size);
    bytes += frame.size;
  }
  counters_.copied_bytes.add(bytes);
  return count;
}

// Takes the buffers of requests with replies in them, and fills others. Returns how many.
uint32_t DpdkPort::fill_buffers(uint32_t burst, const TxFrame* frames, uint32_t count,
                                rte_mbuf** filled) {
  rte_mbuf* buffers[kAtOnce];
  const uint32_t block = block_of_[burst];
  uint32_t wanted = 0;
  for (uint32_t i = 0; i < count; ++i) wanted += frames[i].is_beside ? 0 : 1;
  const uint32_t buffer_count = take_buffers(wanted, buffers);
  uint32_t ready = 0;
  uint32_t used = 0;
  for (uint32_t i = 0; i < count; ++i) {
    if (i + kAhead < count) prefetch_request(burst, frames[i + kAhead]);
    WC_ASSERT(block != kNoBlock || frames[i].bytes.size <= kFrameRoom);
    if (!frames[i].is_beside && used == buffer_count) continue;
    rte_mbuf* const frame = frames[i].is_beside ? take_request(burst, frames[i]) : buffers[used++];
    if (!frames[i].is_beside) fill_buffer(block, frames[i], frame);
    frame->data_len = static_cast<uint16_t>(frames[i].bytes.size);
    frame->pkt_len = frame->data_len;
    filled[ready++] = frame;
  }
  return ready;
}

void DpdkPort::send(uint32_t burst, const TxFrame* frames, uint32_t count) {
  rte_mbuf* filled[kAtOnce];
  // Of a burst without requests, as a client's, no frame lies beside one.
  const bool are_copied = block_of_[burst] == kNoBlock && held_[burst].count == 0;
  for (uint32_t at = 0; at < count; at += kAtOnce) {
    const uint32_t some = std::min(count - at, kAtOnce);
    const uint32_t ready = are_copied ? copy_frames(frames + at, some, filled)
                                      : fill_buffers(burst, frames + at, some, filled);
    const uint32_t sent = transmit(queue_of_[burst], filled, ready);
    counters_.sent.add(sent);
    counters_.send_failed.add(some - sent);
    uint64_t bytes = 0;
    for (uint32_t i = at; i < at + sent; ++i) bytes += frames[i].bytes.size;
    counters_.sent_bytes.add(bytes);
  }
}

bool DpdkPort::send_beside(const RepliesBeside& replies) {
  HeldBurst& held = held_[replies.burst];
  rte_mbuf** const frames = held.frames.data() + replies.first;
  const uint32_t count = replies.count;
  const uint32_t last = held.count - replies.first - 1;
  uint64_t bytes = 0;
  for (uint32_t i = 0; i < count; ++i) {
    prefetch_mbuf(frames[std::min(i + kAhead, last)]);
    const net::PacketResult result = replies.result(i);
    // What was written to earlier buffers does no harm: send() writes it again.
    if (!replies.takes(result)) return false;
    rte_mbuf& frame = *frames[i];
    const uint32_t size = result.size();
    frame.data_off =
        static_cast<uint16_t>(RTE_PKTMBUF_HEADROOM + result.without_beside(kFrameRoom).offset());
    frame.data_len = static_cast<uint16_t>(size);
    frame.pkt_len = size;
    bytes += size;
  }
  const uint32_t sent = transmit(queue_of_[replies.burst], frames, count);
  for (uint32_t i = sent; i < count; ++i) bytes -= replies.result(i).size();
  counters_.sent.add(sent);
  counters_.send_failed.add(count - sent);
  counters_.sent_bytes.add(bytes);
  std::fill_n(frames, count, nullptr);  // the device's, or freed
  held.sent += count;
  return true;
}

void DpdkPort::pass_on(const MutableBytes* frames, uint32_t count) {
  const TapInterface& kernel = device_->kernel();
  if (!kernel.is_open()) return;
  for (uint32_t i = 0; i < count; ++i) {
    const bool passed = kernel.write({frames[i].data, frames[i].size});
    (passed ? counters_.passed_on : counters_.pass_failed).add(1);
  }
}

// A bounded number, so that requests do not wait for the kernel's frames.
void DpdkPort::send_from_kernel() {
  for (uint32_t i = 0; i < kAtOnce; ++i) {
    rte_mbuf* frame = rte_pktmbuf_alloc(sent_);
    if (frame == nullptr) return;
    const ssize_t size = device_->kernel().read(rte_pktmbuf_mtod(frame, uint8_t*), kFrameRoom);
    if (size <= 0) return rte_pktmbuf_free(frame);
    frame->data_len = static_cast<uint16_t>(size);
    frame->pkt_len = static_cast<uint32_t>(size);
    const uint32_t sent = transmit(number_, &frame, 1);
    counters_.from_kernel.add(sent);
    counters_.from_kernel_failed.add(1 - sent);
  }
}

void DpdkPort::now_and_then() {
  constexpr uint64_t kEveryUs = 100'000;
  if (number_ != 0) return device_->pause_if_asked();
  if (polling_now_us() < next_look_us_) return;
  next_look_us_ = polling_now_us() + kEveryUs;
  counters_.receive_missed.add(device_->take_missed());
  device_->keep_connected(stopped_, memif_.get());
}

}  // namespace warpcache::io
