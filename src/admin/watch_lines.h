// SPDX-License-Identifier: Apache-2.0
//
// The lines that watchers get, in memcached's form. The thread of an event makes a short record;
// another thread makes the line of it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "engine/watch.h"

namespace warpcache::admin {

enum class StoreWord : uint8_t { kNotStored, kStored, kExists, kNotFound, kTooLarge, kNoMemory };
enum class CommandWord : uint8_t { kAdd, kSet, kReplace, kAppend, kPrepend, kCas };

// An event; its key or text follows in the buffer.
struct WatchRecord {
  enum class Line : uint8_t {
    kGet,
    kStore,
    kDelete,
    kEviction,
    kOpened,
    kTlsError,
    kClosed,
    kCommand
  };

  uint64_t number = 0;  // `gid`: counts the events of the server
  int64_t seconds = 0;  // Unix time
  uint32_t microseconds = 0;
  uint32_t kind = 0;  // engine::WatchKind
  int32_t fd = -1;
  uint32_t value_size = 0;
  uint32_t ttl =
      0;  // kStore: as engine::SeenRequest; kEviction: seconds, UINT32_MAX: never expires
  uint32_t idle_s = 0;
  Line line = Line::kGet;
  engine::KeyState found = engine::KeyState::kNotFound;
  StoreWord stored = StoreWord::kNotStored;
  CommandWord command = CommandWord::kSet;
  bool meta = false;     // kDelete
  bool fetched = false;  // kEviction
  uint16_t text_size = 0;
  engine::PeerAddress peer = {};
};

// Appends the line, with its end. `text` is the key, the reason of a close or of TLS's failure, or
// a command.
void append_watch_line(const WatchRecord& record, std::string_view text, std::string& out);

// The longest line, with its end.
inline constexpr size_t kWatchLineMax = 3072;
inline constexpr size_t kWatchTextMax = 2048;  // of a record

}  // namespace warpcache::admin
