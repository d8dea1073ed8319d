// SPDX-License-Identifier: Apache-2.0
//
// Where replies are put together: one arena that a batch fills from the front, cut into spans.
// Bytes that follow each other in the arena share a span; a value sent from where it lies has spans
// of its own.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/assert.h"
#include "engine/engine.h"

namespace warpcache::engine {

class ReplyWriter {
 public:
  explicit ReplyWriter(uint32_t arena_bytes)
      : arena_(std::make_unique<uint8_t[]>(arena_bytes)), end_(arena_.get() + arena_bytes) {}

  // Forgets the last batch's replies. `spans` takes those of the next.
  void start(std::vector<ReplySpan>* spans) {
    spans_ = spans;
    spans_->clear();
    texts_.clear();
    cursor_ = span_start_ = arena_.get();
  }

  // Whether `bytes` can be written, in as many spans as a batch has room for. Half of that room is
  // left for the pieces of values.
  bool has_space(uint32_t bytes) const {
    return static_cast<uint32_t>(end_ - cursor_) >= bytes && span_count() <= kBatchSpansMax / 2;
  }
  uint8_t* cursor() { return cursor_; }

  // What was written from cursor() on ends at `end`.
  void advance(uint8_t* end) {
    WC_ASSERT(end >= cursor_ && end <= end_);
    cursor_ = end;
  }

  // Ends the span in work, so that what comes next belongs to another entry or piece.
  void cut() {
    if (cursor_ != span_start_) {
      spans_->push_back({span_start_, static_cast<uint32_t>(cursor_ - span_start_), 0});
    }
    span_start_ = cursor_;
  }

  void add_pinned(const uint8_t* data, uint32_t size, uint32_t pin) {
    cut();
    spans_->push_back({data, size, pin});
  }

  // A reply that was put together elsewhere; kept until the next start().
  void add_text(std::string text) {
    if (text.empty()) return;
    cut();
    texts_.push_back(std::make_unique<std::string>(std::move(text)));
    const std::string& kept = *texts_.back();
    spans_->push_back(
        {reinterpret_cast<const uint8_t*>(kept.data()), static_cast<uint32_t>(kept.size()), 0});
  }

  uint32_t span_count() const { return static_cast<uint32_t>(spans_->size()); }

  // Drops the bytes and spans written since span `first` and arena position `cursor`; the caller
  // has released pins.
  void rewind(uint32_t first, uint8_t* cursor) {
    spans_->resize(first);
    cursor_ = span_start_ = cursor;
  }

 private:
  std::unique_ptr<uint8_t[]> arena_;
  uint8_t* end_;
  uint8_t* cursor_ = nullptr;
  uint8_t* span_start_ = nullptr;
  std::vector<ReplySpan>* spans_ = nullptr;
  std::vector<std::unique_ptr<std::string>> texts_;
};

}  // namespace warpcache::engine
