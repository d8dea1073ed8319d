// SPDX-License-Identifier: Apache-2.0
//
// A bounded pipe of bytes between two threads: one writes a long reply in pieces, the other sends
// it at its reader's speed. Neither side ever waits; each is woken when it can go on.
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

// Owned by the writer, who keeps it until the reader has left.
class BytePipe {
 public:
  enum class State : uint8_t {
    kOpen,
    kEnded,   // the writer has written all, and all of it was read
    kBroken,  // the writer gave up: what was read is not the whole
  };

  // `wake_writer` is called by the reader's thread: there is room again, or the reader has left.
  // std::bad_alloc where there is no memory for the buffer.
  BytePipe(size_t capacity, std::function<void()> wake_writer)
      : buffer_(std::make_unique_for_overwrite<uint8_t[]>(capacity)),
        capacity_(capacity),
        wake_writer_(std::move(wake_writer)),
        moved_at_(std::chrono::steady_clock::now()) {}
  BytePipe(const BytePipe&) = delete;
  BytePipe& operator=(const BytePipe&) = delete;

  // --- Writer

  // Takes as many of the bytes as there is room for, and returns how many that were.
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

  // Nothing more comes. `whole` says whether that was all; if not, the reader is woken even where
  // it waits for something else.
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

  // When the reader last took something; at first, when the pipe was made.
  std::chrono::steady_clock::time_point last_read() const {
    const std::lock_guard lock(mutex_);
    return moved_at_;
  }

  // --- Reader

  // `wake_reader` is called by the writer's thread after readable() gave nothing: look again.
  void set_wake_reader(std::function<void()> wake_reader) {
    const std::lock_guard lock(mutex_);
    wake_reader_ = std::move(wake_reader);
    reader_waits_ = true;
  }

  // Bytes that can be read in one piece, in place until consume(). None: see state().
  Bytes readable() {
    const std::lock_guard lock(mutex_);
    reader_waits_ = filled_ == 0;
    return {buffer_.get() + first_, std::min(filled_, capacity_ - first_)};
  }

  // REQUIRES: readable() gave at least as many, and it is not 0: it counts as a sign of life.
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

  // The reader wants nothing more, whatever there is. Once, and its last call: the pipe may be gone
  // when this returns.
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
  const std::function<void()> wake_writer_;
  mutable std::mutex mutex_;  // guards what follows
  std::function<void()> wake_reader_;
  size_t first_ = 0;   // of the bytes that are there
  size_t filled_ = 0;  // how many there are
  bool reader_waits_ = false;
  bool writer_waits_ = false;
  bool ended_ = false;
  bool broken_ = false;
  bool left_ = false;
  std::chrono::steady_clock::time_point moved_at_;
};

}  // namespace warpcache
