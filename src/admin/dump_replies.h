// SPDX-License-Identifier: Apache-2.0
//
// The long replies of administrative commands, in the protocol of the request.
#pragma once

#include <memory>
#include <string>

#include "admin/long_reply.h"
#include "admin/stats_command.h"
#include "protocol/message.h"

namespace warpcache::admin {

// `lru_crawler metadump` and `mgdump`: all live keys.
class KeyDump final : public LongReply {
 public:
  enum class Form : uint8_t { kMetadump, kMgdump };

  // REQUIRES: `source` outlives this object. Without `with_items` the list is empty.
  KeyDump(StatsSource& source, Form form, bool with_items)
      : source_(source), form_(form), cursor_(with_items ? 0 : kWalkEnd) {}
  Step step(std::string& text) override;

 private:
  StatsSource& source_;
  const Form form_;
  bool begun_ = false;
  uint64_t cursor_;
};

// The results of a StatsWalk as replies to `request`.
class StatsReply final : public LongReply {
 public:
  // The most text in a binary packet, in whole lines: its header has the size, so the text must be
  // complete before it is sent.
  static constexpr size_t kPacketTextMax = 512 * 1024;

  StatsReply(const protocol::Request& request, bool is_text, std::unique_ptr<StatsWalk> walk)
      : request_(request), is_text_(is_text), walk_(std::move(walk)) {}
  Step step(std::string& text) override;

 private:
  Step step_of_packet(std::string& packet);

  const protocol::Request request_;
  const bool is_text_;
  const std::unique_ptr<StatsWalk> walk_;
  std::string packet_text_;
};

}  // namespace warpcache::admin
