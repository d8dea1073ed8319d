// SPDX-License-Identifier: Apache-2.0
#include "io/frames/peer_client.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>

#include "base/atomic.h"
#include "base/mem.h"
#include "io/unique_fd.h"

namespace warpcache::io {
namespace {

using SteadyClock = std::chrono::steady_clock;

// A burst that was read is ready again within microseconds. After this time what is to be sent is
// dropped.
constexpr auto kReadyMax = std::chrono::milliseconds(2);

std::string map_file(const std::string& path, uint8_t** data, uint64_t* bytes) {
  const UniqueFd file(::open(path.c_str(), O_RDWR | O_CLOEXEC));
  struct stat facts = {};
  if (file.get() < 0 || fstat(file.get(), &facts) != 0) return path + ": " + std::strerror(errno);
  *bytes = static_cast<uint64_t>(facts.st_size);
  if (*bytes < peer::kAreasOffset) return path + ": this is no file of --frames=peer";
  void* const mapped = mmap(nullptr, *bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
  if (mapped == MAP_FAILED) return path + ": " + std::strerror(errno);
  *data = static_cast<uint8_t*>(mapped);
  return "";
}

bool is_in(peer::State state, const peer::Control& control) {
  return load_acquire(&control.state) == static_cast<uint32_t>(state);
}

}  // namespace

std::string PeerClient::open(const std::string& path, std::unique_ptr<FramePort>* port) {
  std::unique_ptr<PeerClient> made(new PeerClient(path));
  std::string failure = made->map();
  if (failure.empty()) *port = std::move(made);
  return failure;
}

std::string PeerClient::map() {
  std::string failure = map_file(path_, &data_, &bytes_);
  if (failure.empty()) failure = map_file(path_ + ".doorbells", &doorbells_, &doorbells_bytes_);
  if (!failure.empty()) return failure;
  const auto& header = *reinterpret_cast<const peer::Header*>(data_);
  if (load_acquire(&header.magic) != peer::kMagic || header.version != peer::kVersion ||
      header.bytes != bytes_ || peer::file_bytes(header.slot_bytes) != bytes_) {
    return path_ + ": this is no file of --frames=peer, or one of another version";
  }
  slot_bytes_ = header.slot_bytes;
  for (uint32_t burst = 0; burst < peer::kBursts; ++burst) {
    if (is_in(peer::State::kEnded, control(burst))) read_.push_back(burst);
  }
  take_back({});
  return "";
}

PeerClient::~PeerClient() {
  if (doorbells_ != nullptr) (void)munmap(doorbells_, doorbells_bytes_);
  if (data_ != nullptr) (void)munmap(data_, bytes_);
}

peer::Control& PeerClient::control(uint32_t burst) const {
  return *reinterpret_cast<peer::Control*>(data_ + peer::kControlsOffset +
                                           burst * peer::kControlBytes);
}

bool PeerClient::is_rung(uint32_t burst) const {
  const peer::Control& shared = control(burst);
  return load_acquire(reinterpret_cast<uint64_t*>(doorbells_ + shared.doorbell)) == shared.value;
}

int PeerClient::ready_burst() const {
  for (uint32_t burst = 0; burst < peer::kBursts; ++burst) {
    if (is_in(peer::State::kReady, control(burst)) && !is_rung(burst)) {
      return static_cast<int>(burst);
    }
  }
  return -1;
}

// A burst takes all frames of a call that fit.
void PeerClient::send(uint32_t /*burst*/, const TxFrame* frames, uint32_t count) {
  uint32_t sent = 0;
  for (auto end = SteadyClock::now() + kReadyMax; sent < count && SteadyClock::now() < end;) {
    const int burst = ready_burst();
    if (burst < 0) continue;
    peer::Control& shared = control(static_cast<uint32_t>(burst));
    uint32_t filled = 0;
    for (; sent < count && filled < shared.capacity; ++sent) {
      const Bytes frame = frames[sent].bytes;
      if (frame.size > slot_bytes_) {
        counters_.send_failed.add(1);
        continue;
      }
      mem_copy(data_ + shared.slots_offset + uint64_t{filled++} * slot_bytes_, frame.data,
               frame.size);
      counters_.sent_bytes.add(frame.size);
    }
    counters_.sent.add(filled);
    store_release(&shared.frames, filled);
    store_release(reinterpret_cast<uint64_t*>(doorbells_ + shared.doorbell), shared.value);
  }
  counters_.send_failed.add(count - sent);
}

bool PeerClient::take_replies(FrameBuffer& buffer) {
  for (uint32_t burst = 0; burst < peer::kBursts; ++burst) {
    const peer::Control& shared = control(burst);
    if (!is_in(peer::State::kEnded, shared)) continue;
    if (std::find(read_.begin(), read_.end(), burst) != read_.end()) continue;
    if (buffer.frames_max - buffer.count < shared.replies) break;
    const auto* const replies = reinterpret_cast<const peer::Reply*>(data_ + shared.replies_offset);
    for (uint32_t i = 0; i < shared.replies; ++i) {
      buffer.add_at(static_cast<uint32_t>(replies[i].offset), replies[i].size, 0);
      counters_.received_bytes.add(replies[i].size);
    }
    counters_.received.add(shared.replies);
    read_.push_back(burst);
  }
  return buffer.count != 0;
}

bool PeerClient::receive(FrameBuffer& buffer, int timeout_ms) {
  const auto end = SteadyClock::now() + std::chrono::milliseconds(timeout_ms);
  while (!take_replies(buffer) && timeout_ms > 0 && SteadyClock::now() < end && !stopped_.load()) {
  }
  return !stopped_.load();
}

void PeerClient::take_back(const FrameBuffer& /*buffer*/) {
  for (const uint32_t burst : read_) {
    store_release(&control(burst).state, static_cast<uint32_t>(peer::State::kGivenBack));
  }
  read_.clear();
}

}  // namespace warpcache::io
