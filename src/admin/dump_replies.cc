// SPDX-License-Identifier: Apache-2.0
#include "admin/dump_replies.h"

#include <algorithm>

#include "admin/reply_sink.h"
#include "base/base64.h"
#include "protocol/compose/admin_reply.h"

namespace warpcache::admin {
namespace {

// Appends the mg request that reads `key`. A key that a line cannot hold is base64-encoded.
void append_meta_get(std::string& text, std::string_view key) {
  text += "mg ";
  const bool plain = std::all_of(key.begin(), key.end(), [](char c) { return c > ' ' && c < 127; });
  if (plain) {
    text += key;
  } else {
    uint8_t encoded[4 * ((protocol::kKeySizeMax + 2) / 3)];
    uint8_t* const end =
        base64_encode({reinterpret_cast<const uint8_t*>(key.data()), key.size()}, encoded);
    text.append(&encoded[0], end);
    text += " b";
  }
  text += "\r\n";
}

StatsEmit emit_into(const protocol::Request& request, std::string& text) {
  return [&request, sink = ReplySink(text)](std::string_view name, std::string_view value) {
    protocol::reply_stat(request, bytes_of(name.substr(0, protocol::kKeySizeMax)), bytes_of(value),
                         sink);
  };
}

}  // namespace

LongReply::Step KeyDump::step(std::string& text) {
  if (!begun_) {
    begun_ = true;
    text += "OK\r\n";
  }
  if (cursor_ != kWalkEnd) {
    const Status status = source_.walk(cursor_, [&](const DumpItem& item) {
      if (form_ == Form::kMgdump) {
        append_meta_get(text, item.key);
      } else {
        text += metadump_line(item);
      }
    });
    if (status != Status::kOk) return Step::kBroken;
  }
  if (cursor_ != kWalkEnd) return Step::kMore;
  text += form_ == Form::kMgdump ? "EN\r\n" : "END\r\n";
  return Step::kLast;
}

LongReply::Step StatsReply::step(std::string& text) {
  if (is_text_ && request_.protocol == protocol::Protocol::kBinary) return step_of_packet(text);
  const Step step = walk_->step(emit_into(request_, text), text);
  if (step == Step::kLast && !is_text_) protocol::reply_stats_end(request_, ReplySink(text));
  return step;
}

LongReply::Step StatsReply::step_of_packet(std::string& packet) {
  const Step step = walk_->step(emit_into(request_, packet), packet_text_);
  if (step == Step::kBroken) return step;
  const bool full = packet_text_.size() > kPacketTextMax;
  if (step == Step::kMore && !full) return step;
  if (full) {
    packet_text_.resize(packet_text_.rfind('\n', kPacketTextMax) + 1);
    packet_text_ += "END\r\n";
  }
  protocol::reply_stat(request_, bytes_of("detailed"), bytes_of(packet_text_), ReplySink(packet));
  protocol::reply_stats_end(request_, ReplySink(packet));
  return Step::kLast;
}

}  // namespace warpcache::admin
