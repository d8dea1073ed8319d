// SPDX-License-Identifier: Apache-2.0
//
// Bodies that are received piece by piece into reservations of the store. A socket cannot write
// device memory, so it writes into pieces of pinned memory, and each full piece is copied to its
// place by the GPU's copy engine while the next one is received. Where the whole reservation lies
// in the host's memory, the socket writes there. The pieces are taken at the start; where they are
// used up, a body waits for its turn. A transport that can write device memory gets the place
// itself (device_window()).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/status.h"
#include "gpu/device.h"
#include "store/cuda/cuda_store.h"

namespace warpcache::engine::cuda {

// Used by one thread. All bodies of an engine.
class IncomingBodies {
 public:
  static constexpr uint32_t kPieceBytes = 64 * 1024;
  static constexpr uint32_t kPieces = 128;

  IncomingBodies(store::CudaStore& store, gpu::DeviceFaults& faults)
      : store_(store), faults_(faults) {}
  ~IncomingBodies();
  IncomingBodies(const IncomingBodies&) = delete;
  IncomingBodies& operator=(const IncomingBodies&) = delete;

  // Takes all memory for bodies of at most `body_size_max` bytes. Returns the error as text, or "".
  std::string start(uint32_t body_size_max);

  // As the functions of Engine; ids count from 1. reserve() and
  // abandon() launch a kernel of the store: persistent kernels of the engine have ended. After a
  // failure of the device bodies are received all the same, and are lost.
  Status reserve(uint8_t key_size, uint32_t size, uint32_t* id);
  MutableBytes window(uint32_t id, uint32_t received, uint32_t after);
  MutableBytes device_window(uint32_t id, uint32_t received, uint32_t size);
  void device_bytes_came(uint32_t id, uint32_t received, uint32_t size);
  void abandon(uint32_t id);  // also what the store has used up

  // Starts to copy the last bytes of a body that has come completely. Returns the id of the store's
  // reservation.
  uint32_t complete(uint32_t id);
  // Waits until all bytes so far are in their places. False: the device has failed.
  bool settle();

 private:
  // Lookahead takes pieces only while at least this many are free: each body needs one.
  static constexpr uint32_t kFreePiecesMin = kPieces / 2;

  struct Body {
    MutableBytes* parts = nullptr;  // of the value's place, in order; pinned
    std::vector<uint32_t> pieces;   // those of the bytes from `copied` on, in order
    uint32_t reservation = 0;       // 0: the place is free
    uint32_t size = 0;
    uint32_t copied = 0;   // bytes whose copy has been started, or that came without one
    bool on_host = false;  // all parts are: `pieces` is not used
  };

  Body& body(uint32_t id) { return bodies_[id - 1]; }
  MutableBytes place_of(const Body& body, uint32_t offset) const;
  MutableBytes piece_window(Body& body, uint32_t offset, bool ahead);
  void copy_until(Body& body, uint32_t end);
  bool take_piece(std::vector<uint32_t>& pieces, bool ahead);
  uint8_t* piece(uint32_t number) const { return memory_.data() + uint64_t{number} * kPieceBytes; }

  store::CudaStore& store_;
  gpu::DeviceFaults& faults_;
  gpu::CudaMemory memory_;  // pinned: the pieces
  gpu::CudaMemory parts_;   // pinned: of all bodies
  gpu::CudaStream stream_;
  uint32_t body_size_max_ = 0;
  std::vector<Body> bodies_;
  std::vector<uint32_t> free_;     // pieces
  std::vector<uint32_t> leaving_;  // pieces that are being copied
};

}  // namespace warpcache::engine::cuda
