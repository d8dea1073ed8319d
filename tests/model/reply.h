// SPDX-License-Identifier: Apache-2.0
//
// A reply as the model expects it: bytes, with places for CAS ids.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "model/cas_book.h"

namespace warpcache::model {

struct ReplyPiece {
  enum class Kind : uint8_t { kBytes, kCasText, kCasBinary };
  Kind kind = Kind::kBytes;
  std::string bytes;
  Cas cas;
};

class Reply {
 public:
  void add(std::string_view bytes);
  void add(const Reply& reply);
  void add_cas_text(const Cas& cas) { add_cas(ReplyPiece::Kind::kCasText, cas); }
  void add_cas_binary(const Cas& cas) { add_cas(ReplyPiece::Kind::kCasBinary, cas); }

  bool empty() const { return pieces_.empty(); }
  const std::vector<ReplyPiece>& pieces() const { return pieces_; }

 private:
  void add_cas(ReplyPiece::Kind kind, const Cas& cas);

  std::vector<ReplyPiece> pieces_;
};

// Compares a server's output, as it arrives, with the expected reply.
class ReplyMatcher {
 public:
  // The book learns the CAS ids of matching replies. REQUIRES: it outlives this object.
  explicit ReplyMatcher(CasBook& book) : book_(book) {}

  void expect(const Reply& reply);

  // Compares the next bytes of the server. False: they are wrong; difference() says where.
  bool take(std::string_view bytes);

  // Whether all expected bytes have come, and no others. (Some expected bytes may come early or
  // late: see take().)
  bool even() const { return expected_.empty() && early_.empty(); }
  // The bytes that have not come, and the bytes that were not expected.
  std::string missing() const;
  const std::string& surplus() const { return early_; }

 private:
  bool advance(std::string_view& left);
  bool take_bytes(std::string_view& left, ReplyPiece& piece);
  bool take_cas_text(std::string_view& left, const Cas& cas);
  bool take_cas_binary(std::string_view& left, const Cas& cas);

  CasBook& book_;
  std::deque<ReplyPiece> expected_;
  std::string early_;  // bytes that are not compared yet
};

}  // namespace warpcache::model
