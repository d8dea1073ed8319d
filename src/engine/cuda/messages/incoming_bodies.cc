// SPDX-License-Identifier: Apache-2.0
#include "engine/cuda/messages/incoming_bodies.h"

#include <algorithm>
#include <utility>

#include "base/assert.h"

namespace warpcache::engine::cuda {

IncomingBodies::~IncomingBodies() {
  if (stream_.get() != nullptr) (void)settle();
}

std::string IncomingBodies::start(uint32_t body_size_max) {
  const auto host = gpu::CudaMemory::Place::kHost;
  const uint32_t segments = store_.reserved_segments_max(body_size_max);
  if (!memory_.allocate(host, uint64_t{kPieces} * kPieceBytes, gpu::CudaMemory::Content::kAny) ||
      !segments_.allocate(host, uint64_t{kPieces} * segments * sizeof(store::SegmentId))) {
    return "the system does not give pinned memory for large values";
  }
  if (!stream_.create(gpu::CudaStream::Priority::kNormal)) return "the GPU gives no stream";
  body_size_max_ = body_size_max;
  bodies_.resize(kPieces);
  for (uint32_t i = 0; i < kPieces; ++i) {
    bodies_[i].segments = segments_.as<store::SegmentId>() + uint64_t{i} * segments;
    bodies_[i].pieces.reserve(kPieces);
    free_.push_back(i);
  }
  leaving_.reserve(kPieces);
  return "";
}

Status IncomingBodies::reserve(uint8_t key_size, uint32_t size, uint32_t* id) {
  if (size > body_size_max_) return Status::kTooLarge;
  const auto place = std::find_if(bodies_.begin(), bodies_.end(),
                                  [](const Body& one) { return one.reservation == 0; });
  if (place == bodies_.end()) return Status::kDeferred;
  Body& body = *place;
  if (!take_piece(body.pieces, false)) return Status::kDeferred;
  const Status status = store_.reserve(key_size, size, body.segments, &body.reservation);
  if (status != Status::kOk) {
    free_.push_back(body.pieces.back());
    body.pieces.clear();
    body.reservation = 0;
    return status;
  }
  body.size = size;
  body.copied = 0;
  body.value_at = static_cast<uint32_t>(store::item_bytes(key_size, 0));
  body.on_host = store_.is_on_host(body.segments, key_size, size);
  if (body.on_host) {
    free_.push_back(body.pieces.back());
    body.pieces.clear();
  }
  *id = static_cast<uint32_t>(place - bodies_.begin()) + 1;
  return Status::kOk;
}

MutableBytes IncomingBodies::window(uint32_t id, uint32_t received, uint32_t after) {
  Body& one = body(id);
  WC_ASSERT(one.reservation != 0 && received + after < one.size);
  if (one.on_host) {
    const Place place = place_of(one, received + after);
    return {place.data, place.size};
  }
  copy_until(one, received / kPieceBytes * kPieceBytes);
  // Nothing has come into the pieces after the present one.
  while (after == 0 && one.pieces.size() > 1) {
    free_.push_back(one.pieces.back());
    one.pieces.pop_back();
  }
  return piece_window(one, received + after, after != 0);
}

// The bytes of a piece from `offset` on. Empty: there is no piece to look ahead.
MutableBytes IncomingBodies::piece_window(Body& body, uint32_t offset, bool ahead) {
  const uint32_t number = offset / kPieceBytes - body.copied / kPieceBytes;
  while (body.pieces.size() <= number) {
    if (take_piece(body.pieces, ahead)) continue;
    WC_ASSERT(ahead);
    return {};
  }
  const uint32_t into = offset % kPieceBytes;
  return {piece(body.pieces[number]) + into, std::min(kPieceBytes - into, body.size - offset)};
}

// Adds a piece to `pieces`. A body that has given one away always gets one.
bool IncomingBodies::take_piece(std::vector<uint32_t>& pieces, bool ahead) {
  if (ahead && free_.size() <= kFreePiecesMin) return false;
  if (free_.empty()) (void)settle();
  if (free_.empty()) return false;
  pieces.push_back(free_.back());
  free_.pop_back();
  return true;
}

IncomingBodies::Place IncomingBodies::place_of(const Body& body, uint32_t offset) const {
  const uint64_t at = uint64_t{body.value_at} + offset;
  const uint32_t segment_size = store_.segment_size();
  const auto into = static_cast<uint32_t>(at % segment_size);
  return {store_.segment_address(body.segments[at / segment_size]) + into,
          std::min(segment_size - into, body.size - offset)};
}

// Starts to copy what has come before `end`.
void IncomingBodies::copy_until(Body& body, uint32_t end) {
  uint32_t first = 0;  // the piece that `copied` lies in
  while (body.copied < end) {
    const uint32_t into = body.copied % kPieceBytes;
    const Place to = place_of(body, body.copied);
    const uint32_t count = std::min({to.size, kPieceBytes - into, end - body.copied});
    if (!faults_.failed()) {
      (void)faults_.check(cudaMemcpyAsync(to.data, piece(body.pieces[first]) + into, count,
                                          cudaMemcpyDefault, stream_.get()),
                          "storing a large value");
    }
    body.copied += count;
    if (body.copied % kPieceBytes == 0) leaving_.push_back(body.pieces[first++]);
  }
  body.pieces.erase(body.pieces.begin(), body.pieces.begin() + first);
}

uint32_t IncomingBodies::complete(uint32_t id) {
  Body& one = body(id);
  if (one.on_host) return one.reservation;
  copy_until(one, one.size);
  leaving_.insert(leaving_.end(), one.pieces.begin(), one.pieces.end());
  one.pieces.clear();
  return one.reservation;
}

bool IncomingBodies::settle() {
  const bool settled = !faults_.failed() &&
                       faults_.check(cudaStreamSynchronize(stream_.get()), "storing a large value");
  free_.insert(free_.end(), leaving_.begin(), leaving_.end());
  leaving_.clear();
  return settled;
}

void IncomingBodies::abandon(uint32_t id) {
  Body& one = body(id);
  if (one.reservation == 0) return;
  // Others may get the memory: nothing is copied into it any more.
  (void)settle();
  store_.abandon(std::exchange(one.reservation, 0));
  free_.insert(free_.end(), one.pieces.begin(), one.pieces.end());
  one.pieces.clear();
}

}  // namespace warpcache::engine::cuda
