// SPDX-License-Identifier: Apache-2.0
//
// Builds replies: one arena that a batch fills from the front, cut into spans. Neighbouring bytes
// of the arena share a span; a value that is sent from the store has spans of its own.
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
      : arena_(std::make_unique_for_overwrite<uint8_t[]>(arena_bytes)),
        end_(arena_.get() + arena_bytes) {}

  // Forgets the replies of the last batch. `spans` gets those of the next.
  void start(std::vector<ReplySpan>* spans) {
    spans_ = spans;
    spans_->clear();
    texts_.clear();
    cursor_ = span_start_ = arena_.get();
  }

  // `bytes` can be written, in at most the spans that a batch has capacity for. Half of that
  // capacity is kept for the pieces of values.
  bool has_space(uint32_t bytes) const {
    return static_cast<uint32_t>(end_ - cursor_) >= bytes && span_count() <= kBatchSpansMax / 2;
  }
  uint8_t* cursor() { return cursor_; }

  // The caller has written from cursor() to `end`.
  void advance(uint8_t* end) {
    WC_ASSERT(end >= cursor_ && end <= end_);
    cursor_ = end;
  }

  // Ends the current span, so that the next bytes belong to another entry or piece.
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

  // Appends a reply that was built elsewhere; it is kept until the next start().
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
  // has released their pins.
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
