// SPDX-License-Identifier: Apache-2.0
//
// -vv and `verbosity 2`: connections, commands and replies as lines on standard error, in the form
// that memcached gives them. One for each worker, its thread only.
//
// Values are left out, and so is all that a client says before it has logged in (-Y). Bytes that
// are no text are escaped.
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
  // Whether any of the others is to be called. Changes at any time.
  static bool wanted() { return log_verbosity() >= kVerbosityOfCommands; }

  // `fd` stands for the connection; negative: a datagram.
  void opened(int fd, uint8_t protocol);
  void closed(int fd);
  // Frames that were run, in their order, and their replies. `secret`: no login had come before.
  void commands(int fd, const protocol::Frame* frames, uint32_t count, const uint8_t* input,
                bool secret);
  void replies(int fd, const io::TxSpan* spans, uint32_t count);
  // Writes what has been said since the last time.
  void flush();

 private:
  // How far a reply has been read.
  struct Reader {
    std::string line;     // its start, up to kLineBytesMax
    uint64_t skip = 0;    // bytes of a value
    bool binary = false;  // `line` is a header
  };
  static constexpr size_t kLineBytesMax = 1024;
  // Written at once when there is as much.
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
  bool in_multiget_ = false;  // the line of a get is being written
};

}  // namespace warpcache::worker
