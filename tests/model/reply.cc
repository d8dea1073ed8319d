// SPDX-License-Identifier: Apache-2.0
#include "model/reply.h"

#include <algorithm>

namespace warpcache::model {

namespace {

constexpr size_t kCasDigitsMax = 20;

}  // namespace

void Reply::add(std::string_view bytes) {
  if (bytes.empty()) return;
  if (pieces_.empty() || pieces_.back().kind != ReplyPiece::Kind::kBytes) pieces_.emplace_back();
  pieces_.back().bytes += bytes;
}

void Reply::add(const Reply& reply) {
  pieces_.insert(pieces_.end(), reply.pieces_.begin(), reply.pieces_.end());
}

void Reply::add_cas(ReplyPiece::Kind kind, const Cas& cas) {
  ReplyPiece piece;
  piece.kind = kind;
  piece.cas = cas;
  pieces_.push_back(std::move(piece));
}

void ReplyMatcher::expect(const Reply& reply) {
  expected_.insert(expected_.end(), reply.pieces().begin(), reply.pieces().end());
}

bool ReplyMatcher::take(std::string_view bytes) {
  early_ += bytes;
  std::string_view left = early_;
  const bool right = advance(left);
  early_.erase(0, early_.size() - left.size());
  return right;
}

// Compares as far as both sides reach.
bool ReplyMatcher::advance(std::string_view& left) {
  while (!expected_.empty() && !left.empty()) {
    ReplyPiece& piece = expected_.front();
    const size_t before = left.size();
    switch (piece.kind) {
      case ReplyPiece::Kind::kBytes:
        if (!take_bytes(left, piece)) return false;
        break;
      case ReplyPiece::Kind::kCasText:
        if (left.find_first_not_of("0123456789") == left.npos && left.size() < kCasDigitsMax) {
          return true;  // its end is still to come
        }
        if (!take_cas_text(left, piece.cas)) return false;
        break;
      case ReplyPiece::Kind::kCasBinary:
        if (left.size() < 8) return true;
        if (!take_cas_binary(left, piece.cas)) return false;
        break;
    }
    if (left.size() == before) return false;
  }
  return true;
}

bool ReplyMatcher::take_bytes(std::string_view& left, ReplyPiece& piece) {
  const size_t size = std::min(piece.bytes.size(), left.size());
  if (left.compare(0, size, piece.bytes, 0, size) != 0) return false;
  left.remove_prefix(size);
  if (size == piece.bytes.size()) {
    expected_.pop_front();
  } else {
    piece.bytes.erase(0, size);
  }
  return true;
}

// A number in text is always followed by something: the caller has seen that.
bool ReplyMatcher::take_cas_text(std::string_view& left, const Cas& cas) {
  const size_t size = std::min(left.find_first_not_of("0123456789"), left.size());
  if (size == 0 || size > kCasDigitsMax || (size > 1 && left[0] == '0')) return false;
  uint64_t number = 0;
  for (size_t i = 0; i < size; ++i) number = number * 10 + static_cast<uint64_t>(left[i] - '0');
  if (!book_.learn(cas, number)) return false;
  left.remove_prefix(size);
  expected_.pop_front();
  return true;
}

bool ReplyMatcher::take_cas_binary(std::string_view& left, const Cas& cas) {
  uint64_t number = 0;
  for (size_t i = 0; i < 8; ++i) number = number << 8 | static_cast<uint8_t>(left[i]);
  if (!book_.learn(cas, number)) return false;
  left.remove_prefix(8);
  expected_.pop_front();
  return true;
}

std::string ReplyMatcher::missing() const {
  std::string text;
  for (const ReplyPiece& piece : expected_) {
    const uint64_t number = book_.number_of(piece.cas);
    switch (piece.kind) {
      case ReplyPiece::Kind::kBytes:
        text += piece.bytes;
        break;
      case ReplyPiece::Kind::kCasText:
        text += number == 0 ? "<cas>" : std::to_string(number);
        break;
      case ReplyPiece::Kind::kCasBinary:
        text += number == 0 ? "<cas>" : "<cas " + std::to_string(number) + ">";
        break;
    }
  }
  return text;
}

}  // namespace warpcache::model
