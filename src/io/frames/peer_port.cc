// SPDX-License-Identifier: Apache-2.0
#include "io/frames/peer_port.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/statfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>

#include "base/atomic.h"
#include "base/mem.h"

namespace warpcache::io {
namespace {

// Without work the thread looks this often before it sleeps between looks.
constexpr uint32_t kLooks = 20'000;
constexpr auto kNap = std::chrono::microseconds(100);

std::string failed(const std::string& path) { return path + ": " + std::strerror(errno); }

}  // namespace

std::string PeerPort::open(const std::string& path, uint32_t slot_bytes,
                           std::unique_ptr<FramePort>* port) {
  WC_ASSERT(slot_bytes % 16 == 0 && slot_bytes > peer::kEmptyBytes);
  std::unique_ptr<PeerPort> made(new PeerPort(path, slot_bytes));
  std::string failure = made->map();
  if (!failure.empty()) return "peer: " + failure;
  *port = std::move(made);
  return "";
}

std::string PeerPort::map() {
  file_ = UniqueFd(::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (file_.get() < 0) return failed(path_);
  if (flock(file_.get(), LOCK_EX | LOCK_NB) != 0) return path_ + ": another server uses it";
  // A GPU's driver takes no pages that the kernel may write to a disk.
  struct statfs system = {};
  if (fstatfs(file_.get(), &system) != 0) return failed(path_);
  if (system.f_type != TMPFS_MAGIC && system.f_type != HUGETLBFS_MAGIC) {
    (void)unlink(path_.c_str());
    return path_ + ": this file system is not in memory: take /dev/shm";
  }
  const auto bytes = static_cast<off_t>(file_bytes());
  // Nothing of an earlier server stays.
  if (ftruncate(file_.get(), 0) != 0 || ftruncate(file_.get(), bytes) != 0) {
    return failed(path_);
  }
  if (const int error = posix_fallocate(file_.get(), 0, bytes); error != 0) {
    return path_ + ": " + std::strerror(error);
  }
  void* const data =
      mmap(nullptr, file_bytes(), PROT_READ | PROT_WRITE, MAP_SHARED, file_.get(), 0);
  if (data == MAP_FAILED) return failed(path_);
  data_ = static_cast<uint8_t*>(data);
  auto& header = *reinterpret_cast<peer::Header*>(data_);
  header.version = peer::kVersion;
  header.bursts = peer::kBursts;
  header.bytes = file_bytes();
  header.slots = peer::kSlots;
  header.slot_bytes = slot_bytes_;
  store_release(&header.magic, peer::kMagic);
  return "";
}

PeerPort::~PeerPort() {
  if (data_ == nullptr) return;
  for (uint32_t area = 0; area < peer::kBursts; ++area) {
    store_release(&control(area).state, static_cast<uint32_t>(peer::State::kUnused));
  }
  (void)unlink(path_.c_str());
  (void)munmap(data_, file_bytes());
}

peer::Control& PeerPort::control(uint32_t area) const {
  return *reinterpret_cast<peer::Control*>(data_ + peer::kControlsOffset +
                                           area * peer::kControlBytes);
}

uint8_t* PeerPort::slots(uint32_t area) const {
  return data_ + peer::kAreasOffset + area * peer::area_bytes(slot_bytes_);
}

peer::Reply* PeerPort::replies(uint32_t area) const {
  return reinterpret_cast<peer::Reply*>(slots(area) + peer::slots_bytes(slot_bytes_));
}

uint8_t* PeerPort::reply_arena(uint32_t area) const {
  return reinterpret_cast<uint8_t*>(replies(area) + peer::kSlots);
}

MutableBytes PeerPort::memory() const { return {data_, file_bytes()}; }

MutableBytes PeerPort::reply_memory(uint32_t burst) {
  return {reply_arena(area_[burst]), peer::kReplyBytes};
}

// Every area that no burst uses and that the peer does not read is for the peer to fill.
bool PeerPort::receive(FrameBuffer& buffer, int /*timeout_ms*/) {
  if (stopped_.load()) return false;
  for (uint32_t area = 0; area < peer::kBursts; ++area) {
    const auto state = static_cast<peer::State>(load_acquire(&control(area).state));
    if (in_use_[area] || state == peer::State::kEnded) continue;
    in_use_[area] = true;
    area_[buffer.number] = area;
    buffer.data = slots(area);
    buffer.peer_slot_bytes = slot_bytes_;
    buffer.count = std::min(peer::kSlots, buffer.frames_max);
    for (uint32_t i = 0; i < buffer.count; ++i) {
      std::memset(slots(area) + uint64_t{i} * slot_bytes_, 0, peer::kEmptyBytes);
    }
    break;
  }
  return true;
}

void PeerPort::wait_for_ring(const FrameBuffer& buffer, const net::PeerDoorbell& bell) {
  bells_[buffer.number] = bell;
  replies_[buffer.number] = 0;
  const uint32_t area = area_[buffer.number];
  if (bell.word == nullptr) {
    failure_ = path_ + ": the engine cannot be rung any more";
    stop();
    return;
  }
  peer::Control& shared = control(area);
  shared.frames = 0;
  shared.doorbell = bell.offset;
  shared.value = bell.value;
  shared.slots_offset = static_cast<uint64_t>(slots(area) - data_);
  shared.replies_offset = shared.slots_offset + peer::slots_bytes(slot_bytes_);
  shared.replies = 0;
  shared.capacity = buffer.count;
  store_release(&shared.state, static_cast<uint32_t>(peer::State::kReady));
}

uint32_t PeerPort::peer_frames(const FrameBuffer& buffer) {
  rests_ = 0;
  bells_[buffer.number] = {};
  const uint32_t frames =
      std::min(load_acquire(&control(area_[buffer.number]).frames), buffer.count);
  counters_.received.add(frames);
  counters_.received_bytes.add(uint64_t{frames} * slot_bytes_);
  return frames;
}

// The doorbell of a burst that was not rung is rung here when the port ends: no frame is lost that
// the peer has written before, and the burst ends.
void PeerPort::rest() {
  if (stopped_.load()) {
    for (const net::PeerDoorbell& bell : bells_) {
      if (bell.word != nullptr) store_release(bell.word, bell.value);
    }
  }
  if (++rests_ > kLooks) std::this_thread::sleep_for(kNap);
}

void PeerPort::send(uint32_t burst, const TxFrame* frames, uint32_t count) {
  const uint32_t area = area_[burst];
  uint32_t& before = replies_[burst];
  const uint32_t sent = std::min(count, peer::kSlots - before);
  for (uint32_t i = 0; i < sent; ++i) {
    replies(area)[before + i] = {frames[i].request, static_cast<uint32_t>(frames[i].bytes.size),
                                 static_cast<uint64_t>(frames[i].bytes.data - data_)};
    counters_.sent_bytes.add(frames[i].bytes.size);
  }
  before += sent;
  control(area).replies = before;
  counters_.sent.add(sent);
  counters_.send_failed.add(count - sent);
}

void PeerPort::take_back(const FrameBuffer& buffer) {
  const uint32_t area = area_[buffer.number];
  in_use_[area] = false;
  store_release(&control(area).state, static_cast<uint32_t>(peer::State::kEnded));
}

}  // namespace warpcache::io
