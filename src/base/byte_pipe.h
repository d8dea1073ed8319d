// SPDX-License-Identifier: Apache-2.0
//
// A bounded pipe of bytes between two threads: one writes a long reply in pieces, the other sends
// it as fast as the client reads. Neither side ever blocks; each is woken when it can continue.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <mutex>
#include <utility>

#include "base/assert.h"
#include "base/bytes.h"

namespace warpcache {

// The writer owns the pipe and keeps it until the reader has called leave().
class BytePipe {
 public:
  enum class State : uint8_t {
    kOpen,
    kEnded,   // the writer has written all, and the reader has read all
    kBroken,  // the writer gave up: what was read is not the whole
  };

  // The reader's thread calls `wake_writer` when there is free space again or the reader has left.
  // An `endless` pipe has nothing that its reader must wait for: it may leave whenever its client
  // closes, or the server stops. Throws std::bad_alloc where there is no memory for the buffer.
  BytePipe(size_t capacity, std::function<void()> wake_writer, bool endless = false)
      : buffer_(std::make_unique_for_overwrite<uint8_t[]>(capacity)),
        capacity_(capacity),
        endless_(endless),
        wake_writer_(std::move(wake_writer)),
        moved_at_(std::chrono::steady_clock::now()) {}
  BytePipe(const BytePipe&) = delete;
  BytePipe& operator=(const BytePipe&) = delete;

  bool endless() const { return endless_; }

  // --- Writer

  // Takes the bytes that fit and returns their number.
  size_t write(Bytes bytes) {
    const std::lock_guard lock(mutex_);
    size_t taken = 0;
    while (taken < bytes.size && filled_ < capacity_) {
      const size_t at = (first_ + filled_) % capacity_;
      const size_t piece = std::min({bytes.size - taken, capacity_ - filled_, capacity_ - at});
      std::memcpy(buffer_.get() + at, bytes.data + taken, piece);
      filled_ += piece;
      taken += piece;
    }
    writer_waits_ = taken < bytes.size;
    wake_reader_locked();
    return taken;
  }

  // The bytes that write() takes at least.
  size_t space() const {
    const std::lock_guard lock(mutex_);
    return capacity_ - filled_;
  }

  // Ends the reply. `whole` says whether it is complete; if it is not, the reader is woken even
  // while it waits for something else.
  void end(bool whole) {
    const std::lock_guard lock(mutex_);
    (whole ? ended_ : broken_) = true;
    if (!whole) reader_waits_ = true;
    wake_reader_locked();
  }

  bool reader_left() const {
    const std::lock_guard lock(mutex_);
    return left_;
  }

  // When the reader last consumed bytes; before that, when the pipe was made.
  std::chrono::steady_clock::time_point last_read() const {
    const std::lock_guard lock(mutex_);
    return moved_at_;
  }

  // --- Reader

  // The writer's thread calls `wake_reader` when there is something to read and the last readable()
  // was empty.
  void set_wake_reader(std::function<void()> wake_reader) {
    const std::lock_guard lock(mutex_);
    wake_reader_ = std::move(wake_reader);
    reader_waits_ = true;
  }

  // The bytes that can be read in one piece; they stay in place until consume(). Empty: see
  // state().
  Bytes readable() {
    const std::lock_guard lock(mutex_);
    reader_waits_ = filled_ == 0;
    return {buffer_.get() + first_, std::min(filled_, capacity_ - first_)};
  }

  // REQUIRES: 0 < bytes <= readable().size. Zero is not allowed, because each call counts as
  // progress of the reader (last_read()).
  void consume(size_t bytes) {
    const std::lock_guard lock(mutex_);
    WC_ASSERT(bytes > 0 && bytes <= filled_);
    first_ = (first_ + bytes) % capacity_;
    filled_ -= bytes;
    moved_at_ = std::chrono::steady_clock::now();
    if (writer_waits_ && filled_ <= capacity_ / 2) {
      writer_waits_ = false;
      wake_writer_();
    }
  }

  State state() const {
    const std::lock_guard lock(mutex_);
    if (broken_) return State::kBroken;
    return ended_ && filled_ == 0 ? State::kEnded : State::kOpen;
  }

  // The reader stops reading, whatever is still in the pipe. The last call of the reader, once: the
  // pipe may be gone when it returns.
  void leave() {
    const std::lock_guard lock(mutex_);
    left_ = true;
    wake_reader_ = nullptr;
    wake_writer_();
  }

 private:
  void wake_reader_locked() {
    if (reader_waits_ && wake_reader_ != nullptr) {
      reader_waits_ = false;
      wake_reader_();
    }
  }

  const std::unique_ptr<uint8_t[]> buffer_;
  const size_t capacity_;
  const bool endless_;
  const std::function<void()> wake_writer_;
  mutable std::mutex mutex_;  // guards what follows
  std::function<void()> wake_reader_;
  size_t first_ = 0;   // where the unread bytes start
  size_t filled_ = 0;  // number of unread bytes
  bool reader_waits_ = false;
  bool writer_waits_ = false;
  bool ended_ = false;
  bool broken_ = false;
  bool left_ = false;
  std::chrono::steady_clock::time_point moved_at_;
};

}  // namespace warpcache
