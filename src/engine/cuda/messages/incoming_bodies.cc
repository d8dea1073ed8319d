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
  const uint32_t parts = store_.reserved_parts_max(body_size_max);
  if (!memory_.allocate(host, uint64_t{kPieces} * kPieceBytes, gpu::CudaMemory::Content::kAny) ||
      !parts_.allocate(host, uint64_t{kPieces} * parts * sizeof(MutableBytes))) {
    return "the system does not give pinned memory for large values";
  }
  if (!stream_.create(gpu::CudaStream::Priority::kNormal)) return "the GPU gives no stream";
  body_size_max_ = body_size_max;
  bodies_.resize(kPieces);
  for (uint32_t i = 0; i < kPieces; ++i) {
    bodies_[i].parts = parts_.as<MutableBytes>() + uint64_t{i} * parts;
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
  const Status status = store_.reserve(key_size, size, body.parts, &body.reservation);
  if (status != Status::kOk) {
    free_.push_back(body.pieces.back());
    body.pieces.clear();
    body.reservation = 0;
    return status;
  }
  body.size = size;
  body.copied = 0;
  body.on_host = store_.is_on_host(body.parts, size);
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
  if (one.on_host) return place_of(one, received + after);
  copy_until(one, received / kPieceBytes * kPieceBytes);
  // Nothing has come into the pieces after the present one.
  while (after == 0 && one.pieces.size() > 1) {
    free_.push_back(one.pieces.back());
    one.pieces.pop_back();
  }
  return piece_window(one, received + after, after != 0);
}

// In one piece only: UCX does not scatter into device memory.
MutableBytes IncomingBodies::device_window(uint32_t id, uint32_t received, uint32_t size) {
  const Body& one = body(id);
  WC_ASSERT(one.reservation != 0 && received + size <= one.size);
  if (one.on_host || faults_.failed()) return {};
  const MutableBytes place = place_of(one, received);
  return place.size < size ? MutableBytes{} : MutableBytes{place.data, size};
}

void IncomingBodies::device_bytes_came(uint32_t id, uint32_t received, uint32_t size) {
  Body& one = body(id);
  copy_until(one, received);
  leaving_.insert(leaving_.end(), one.pieces.begin(), one.pieces.end());
  one.pieces.clear();
  one.copied = received + size;
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

// The bytes of a part from `offset` of the body on.
MutableBytes IncomingBodies::place_of(const Body& body, uint32_t offset) const {
  const MutableBytes* part = body.parts;
  uint64_t into = offset;
  if (into >= part->size) {
    // All between the first and the last fill a segment each.
    const uint64_t after_first = into - part->size;
    part += 1 + after_first / store_.segment_size();
    into = after_first % store_.segment_size();
  }
  return {part->data + into, part->size - static_cast<size_t>(into)};
}

// Starts to copy what has come before `end`.
void IncomingBodies::copy_until(Body& body, uint32_t end) {
  uint32_t first = 0;  // the piece that `copied` lies in
  while (body.copied < end) {
    const uint32_t into = body.copied % kPieceBytes;
    const MutableBytes to = place_of(body, body.copied);
    const auto space = static_cast<uint32_t>(to.size);
    const uint32_t count = std::min({space, kPieceBytes - into, end - body.copied});
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
