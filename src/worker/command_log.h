// SPDX-License-Identifier: Apache-2.0
//
// The log of -vv and `verbosity 2`: connections, commands and replies as lines on standard error,
// in memcached's form. Each worker has one; its thread only.
//
// The log has no values, and nothing that a client sends before it has logged in (-Y). Bytes that
// are not text are escaped.
#pragma once

#include <cstdint>
#include <string>

#include "base/bytes.h"
#include "io/transport.h"
#include "options/logging.h"
#include "protocol/framing/frame_types.h"

namespace warpcache::worker {

class CommandLog {
 public:
  // Whether commands are logged: call the other functions only then. Changes at any time.
  static bool wanted() { return log_verbosity() >= kVerbosityOfCommands; }

  // `fd` names the connection; negative: a datagram.
  void opened(int fd, uint8_t protocol);
  void closed(int fd);
  // Logs frames that were run, in their order. `secret`: the client had not logged in before.
  void commands(int fd, const protocol::Frame* frames, uint32_t count, const uint8_t* input,
                bool secret);
  void replies(int fd, const io::ReplySpan* spans, uint32_t count);
  // The lines since the last flush() or drop(), as far as they were not written.
  std::string_view text() const { return text_; }
  void drop() { text_.clear(); }
  // Writes all lines since the last flush().
  void flush();

 private:
  // The state of reading a reply that comes in pieces.
  struct Reader {
    std::string line;     // its start, up to kLineBytesMax
    uint64_t skip = 0;    // bytes of a value
    bool binary = false;  // `line` is a header
  };
  static constexpr size_t kLineBytesMax = 1024;
  // Lines are written at once when they reach this size.
  static constexpr size_t kTextBytesMax = 64 * 1024;

  void begin(char direction, int fd);
  void end();
  void add_escaped(Bytes bytes);
  void add_header(char direction, int fd, const uint8_t* header);
  void binary_command(int fd, const protocol::Frame& frame, const uint8_t* head);
  void key_of_multiget(int fd, const protocol::Frame& frame, const uint8_t* head);
  uint64_t read_some(int fd, Bytes bytes, Reader& reader);
  void reply_line(int fd, Reader& reader);

  std::string text_;
  bool in_multiget_ = false;  // the line of a multiget is unfinished
};

}  // namespace warpcache::worker
