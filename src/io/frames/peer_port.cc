// SPDX-License-Identifier: Apache-2.0
#include "io/frames/peer_port.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
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

constexpr char kMagic[8] = {'W', 'A', 'P', 'P', 'E', 'E', 'R', '1'};
constexpr uint32_t kVersion = 1;
constexpr uint64_t kControlsOffset = 4096;
constexpr uint64_t kControlBytes = 128;
constexpr uint64_t kAreasOffset = 8192;
// A slot that holds no frame begins with this number of zero bytes.
constexpr size_t kEmptyBytes = 16;
// Without work the thread looks this often before it sleeps between looks.
constexpr uint32_t kLooks = 20'000;
constexpr auto kNap = std::chrono::microseconds(100);

enum class State : uint32_t { kUnused, kReady, kEnded, kGivenBack };

struct Header {
  char magic[8];
  uint32_t version;
  uint32_t bursts;
  uint64_t bytes;
  uint32_t slots;
  uint32_t slot_bytes;
};
static_assert(sizeof(Header) == 32);

constexpr uint64_t kRepliesBytes = uint64_t{PeerPort::kSlots} * 16;

std::string failed(const std::string& path) { return path + ": " + std::strerror(errno); }

}  // namespace

// What both sides say of a burst. The server writes all of it but `frames` and, to give the burst
// back, `state`.
struct PeerPort::Control {
  uint32_t state;           // State
  uint32_t frames;          // that the peer has written
  uint64_t doorbell;        // where it rings, in the file of the doorbells
  uint64_t value;           // what it writes there
  uint64_t slots_offset;    // in this file
  uint64_t replies_offset;  // of an array of Reply
  uint32_t replies;         // how many there are
  uint32_t capacity;        // slots of this burst
};

struct PeerPort::Reply {
  uint32_t request;  // the number of its slot
  uint32_t size;     // bytes of the frame
  uint64_t offset;   // in this file
};

std::string PeerPort::open(const std::string& path, uint32_t slot_bytes,
                           std::unique_ptr<FramePort>* port) {
  WC_ASSERT(slot_bytes % 16 == 0 && slot_bytes > kEmptyBytes);
  std::unique_ptr<PeerPort> made(new PeerPort(path, slot_bytes));
  std::string failure = made->map();
  if (!failure.empty()) return "peer: " + failure;
  *port = std::move(made);
  return "";
}

std::string PeerPort::map() {
  static_assert(sizeof(Control) <= kControlBytes && sizeof(Reply) == 16);
  static_assert(kControlsOffset + kBursts * kControlBytes <= kAreasOffset);
  file_ = UniqueFd(::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (file_.get() < 0) return failed(path_);
  if (flock(file_.get(), LOCK_EX | LOCK_NB) != 0) return path_ + ": another server uses it";
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
  Header header = {};
  header.version = kVersion;
  header.bursts = kBursts;
  header.bytes = file_bytes();
  header.slots = kSlots;
  header.slot_bytes = slot_bytes_;
  mem_copy(data_, &header, sizeof(header));
  uint64_t magic = 0;
  mem_copy(&magic, kMagic, sizeof(magic));
  store_release(reinterpret_cast<uint64_t*>(data_), magic);
  return "";
}

PeerPort::~PeerPort() {
  if (data_ == nullptr) return;
  for (uint32_t area = 0; area < kBursts; ++area) {
    store_release(&control(area).state, static_cast<uint32_t>(State::kUnused));
  }
  (void)unlink(path_.c_str());
  (void)munmap(data_, file_bytes());
}

uint64_t PeerPort::area_bytes() const { return slots_bytes() + kRepliesBytes + kReplyBytes; }

uint64_t PeerPort::file_bytes() const { return kAreasOffset + kBursts * area_bytes(); }

PeerPort::Control& PeerPort::control(uint32_t area) const {
  return *reinterpret_cast<Control*>(data_ + kControlsOffset + area * kControlBytes);
}

uint8_t* PeerPort::slots(uint32_t area) const { return data_ + kAreasOffset + area * area_bytes(); }

PeerPort::Reply* PeerPort::replies(uint32_t area) const {
  return reinterpret_cast<Reply*>(slots(area) + slots_bytes());
}

uint8_t* PeerPort::reply_arena(uint32_t area) const {
  return slots(area) + slots_bytes() + kRepliesBytes;
}

MutableBytes PeerPort::memory() const { return {data_, file_bytes()}; }

MutableBytes PeerPort::reply_memory(uint32_t burst) {
  return {reply_arena(area_[burst]), kReplyBytes};
}

// Every area that no burst uses and that the peer does not read is for the peer to fill.
bool PeerPort::receive(FrameBuffer& buffer, int /*timeout_ms*/) {
  if (stopped_.load()) return false;
  for (uint32_t area = 0; area < kBursts; ++area) {
    const auto state = static_cast<State>(load_acquire(&control(area).state));
    if (in_use_[area] || state == State::kEnded) continue;
    in_use_[area] = true;
    area_[buffer.number] = area;
    buffer.data = slots(area);
    buffer.peer_slot_bytes = slot_bytes_;
    buffer.count = std::min(kSlots, buffer.frames_max);
    for (uint32_t i = 0; i < buffer.count; ++i) {
      std::memset(slots(area) + uint64_t{i} * slot_bytes_, 0, kEmptyBytes);
    }
    break;
  }
  return true;
}

void PeerPort::wait_for_ring(const FrameBuffer& buffer, const net::PeerDoorbell& bell) {
  bells_[buffer.number] = bell;
  const uint32_t area = area_[buffer.number];
  if (bell.word == nullptr) {
    failure_ = path_ + ": the engine cannot be rung any more";
    stop();
    return;
  }
  Control& shared = control(area);
  shared.frames = 0;
  shared.doorbell = bell.offset;
  shared.value = bell.value;
  shared.slots_offset = static_cast<uint64_t>(slots(area) - data_);
  shared.replies_offset = shared.slots_offset + slots_bytes();
  shared.replies = 0;
  shared.capacity = buffer.count;
  store_release(&shared.state, static_cast<uint32_t>(State::kReady));
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
  const uint32_t sent = std::min(count, kSlots);
  for (uint32_t i = 0; i < sent; ++i) {
    replies(area)[i] = {frames[i].request, static_cast<uint32_t>(frames[i].bytes.size),
                        static_cast<uint64_t>(frames[i].bytes.data - data_)};
    counters_.sent_bytes.add(frames[i].bytes.size);
  }
  control(area).replies = sent;
  counters_.sent.add(sent);
  counters_.send_failed.add(count - sent);
}

void PeerPort::take_back(const FrameBuffer& buffer) {
  const uint32_t area = area_[buffer.number];
  in_use_[area] = false;
  store_release(&control(area).state, static_cast<uint32_t>(State::kEnded));
}

}  // namespace warpcache::io
