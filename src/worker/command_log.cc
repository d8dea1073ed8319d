// SPDX-License-Identifier: Apache-2.0
#include "worker/command_log.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <string_view>

#include "protocol/binary.h"

namespace warpcache::worker {
namespace {

std::string_view text_of(Bytes bytes) {
  return {reinterpret_cast<const char*>(bytes.data), bytes.size};
}

// The size of the value that follows a reply's line, with its line end; 0: no value follows.
uint64_t value_behind(std::string_view line) {
  const auto number_at = [line](size_t at) {
    uint64_t number = 0;
    for (; at < line.size() && line[at] >= '0' && line[at] <= '9' && number < UINT32_MAX; ++at) {
      number = number * 10 + static_cast<uint64_t>(line[at] - '0');
    }
    return number + 2;
  };
  if (line.starts_with("VA ")) return number_at(3);
  if (!line.starts_with("VALUE ")) return 0;
  size_t at = 6;  // VALUE key flags bytes [cas]
  for (int blanks = 0; blanks < 2 && at < line.size(); ++at) blanks += line[at] == ' ' ? 1 : 0;
  return number_at(at);
}

// Whether it is a line of a list: memcached logs none of them.
bool is_listed(std::string_view line) {
  return line.starts_with("STAT ") || line.starts_with("ITEM ") || line.starts_with("PREFIX ") ||
         line.starts_with("key=");
}

std::string_view opcode_name(uint8_t opcode) {
  static constexpr std::string_view kNames[] = {
      "GET",    "SET",     "ADD",      "REPLACE",   "DELETE",  "INCR",  "DECR",   "QUIT",
      "FLUSH",  "GETQ",    "NOOP",     "VERSION",   "GETK",    "GETKQ", "APPEND", "PREPEND",
      "STAT",   "SETQ",    "ADDQ",     "REPLACEQ",  "DELETEQ", "INCRQ", "DECRQ",  "QUITQ",
      "FLUSHQ", "APPENDQ", "PREPENDQ", "VERBOSITY", "TOUCH",   "GAT",   "GATQ"};
  return opcode < std::size(kNames) ? kNames[opcode] : "OTHER";
}

}  // namespace

void CommandLog::opened(int fd, uint8_t protocol) {
  begin('<', fd);
  text_ += protocol == protocol::kProtocolText     ? "new ascii client connection."
           : protocol == protocol::kProtocolBinary ? "new binary client connection."
                                                   : "new auto-negotiating client connection";
  end();
}

void CommandLog::closed(int fd) {
  begin('<', fd);
  text_ += "connection closed.";
  end();
}

void CommandLog::commands(int fd, const protocol::Frame* frames, uint32_t count,
                          const uint8_t* input, bool secret) {
  for (uint32_t i = 0; i < count; ++i) {
    const protocol::Frame& frame = frames[i];
    const uint8_t* const head = input + frame.offset;
    if (secret) {
      begin('<', fd);
      text_ += "(before a login)";
      end();
    } else if (frame.kind == protocol::FrameKind::kTextKey) {
      key_of_multiget(fd, frame, head);
    } else if (frame.head_size >= protocol::kBinaryHeaderSize &&
               (frame.kind == protocol::FrameKind::kBinary ||
                frame.kind == protocol::FrameKind::kRefusedBinary ||
                frame.kind == protocol::FrameKind::kInvalidBinary)) {
      binary_command(fd, frame, head);
    } else {
      begin('<', fd);
      Bytes line = {head, frame.head_size};
      while (!line.empty() && (line[line.size - 1] == '\n' || line[line.size - 1] == '\r')) {
        --line.size;
      }
      if (frame.head_size == 0) text_ += "(malformed)";
      add_escaped(line);
      end();
    }
  }
  if (in_multiget_) end();  // the rest of the keys is in another batch
  in_multiget_ = false;
}

void CommandLog::key_of_multiget(int fd, const protocol::Frame& frame, const uint8_t* head) {
  if (!in_multiget_) {
    begin('<', fd);
    const bool cas = (frame.detail & protocol::kKeyOfGets) != 0;
    if ((frame.detail & protocol::kKeyOfGat) != 0) {
      fmt::format_to(std::back_inserter(text_), "{} {}", cas ? "gats" : "gat",
                     static_cast<int32_t>(frame.body_size));
    } else {
      text_ += cas ? "gets" : "get";
    }
  }
  text_ += ' ';
  add_escaped({head, frame.head_size});
  in_multiget_ = (frame.detail & protocol::kKeyLast) == 0;
  if (!in_multiget_) end();
}

void CommandLog::binary_command(int fd, const protocol::Frame& frame, const uint8_t* head) {
  begin('<', fd);
  text_ += "Read binary protocol data:";
  end();
  add_header('<', fd, head);
  const protocol::BinaryHeader header = protocol::load_binary_header(head);
  begin('<', fd);
  text_ += opcode_name(header.opcode);
  const uint32_t key_at = uint32_t{protocol::kBinaryHeaderSize} + header.extras_size;
  if (frame.kind == protocol::FrameKind::kBinary && header.key_size > 0 &&
      key_at + header.key_size <= frame.head_size) {
    text_ += ' ';
    add_escaped({head + key_at, header.key_size});
    if (frame.body_size > 0) {
      fmt::format_to(std::back_inserter(text_), " Value len is {}", frame.body_size);
    }
  }
  end();
}

void CommandLog::replies(int fd, const io::ReplySpan* spans, uint32_t count) {
  Reader reader;
  for (uint32_t i = 0; i < count; ++i) {
    uint64_t at = 0;
    while (at < spans[i].size) {
      at += read_some(fd, {spans[i].data + at, static_cast<size_t>(spans[i].size - at)}, reader);
    }
  }
}

// Reads from the start of `bytes`; returns how many it has read. REQUIRES: `bytes` are not empty.
uint64_t CommandLog::read_some(int fd, Bytes bytes, Reader& reader) {
  if (reader.skip > 0) {
    const uint64_t skipped = std::min<uint64_t>(reader.skip, bytes.size);
    reader.skip -= skipped;
    return skipped;
  }
  if (reader.line.empty()) reader.binary = bytes[0] == protocol::kBinaryResponseMagic;
  if (reader.binary) {
    const size_t missing = protocol::kBinaryHeaderSize - reader.line.size();
    const size_t taken = std::min(missing, bytes.size);
    reader.line += text_of(bytes.sub(0, taken));
    if (taken < missing) return taken;
    const auto* const header = reinterpret_cast<const uint8_t*>(reader.line.data());
    begin('>', fd);
    text_ += "Writing bin response:";
    end();
    add_header('>', fd, header);
    reader.skip = protocol::load_binary_header(header).body_size;
    reader.line.clear();
    return taken;
  }
  const size_t line_end = text_of(bytes).find('\n');
  const size_t taken = line_end == std::string_view::npos ? bytes.size : line_end + 1;
  const size_t kept = std::min(taken, kLineBytesMax - std::min(kLineBytesMax, reader.line.size()));
  reader.line += text_of(bytes.sub(0, kept));
  if (line_end != std::string_view::npos) reply_line(fd, reader);
  return taken;
}

void CommandLog::reply_line(int fd, Reader& reader) {
  std::string_view line = reader.line;
  while (!line.empty() && (line.back() == '\n' || line.back() == '\r')) line.remove_suffix(1);
  reader.skip = value_behind(line);
  if (!is_listed(line)) {
    begin('>', fd);
    if (line.starts_with("VALUE ")) {
      text_ += "sending key ";
      line.remove_prefix(6);
      line = line.substr(0, line.find(' '));
    }
    add_escaped(bytes_of(line));
    end();
  }
  reader.line.clear();
}

void CommandLog::begin(char direction, int fd) {
  text_ += direction;
  if (fd < 0) {
    text_ += "udp ";
  } else {
    fmt::format_to(std::back_inserter(text_), "{} ", fd);
  }
}

void CommandLog::end() {
  text_ += '\n';
  if (text_.size() >= kTextBytesMax) flush();
}

void CommandLog::add_escaped(Bytes bytes) {
  const size_t size = std::min(bytes.size, kLineBytesMax);
  for (size_t i = 0; i < size; ++i) {
    const uint8_t byte = bytes[i];
    if (byte >= 0x20 && byte < 0x7f && byte != '\\') {
      text_ += static_cast<char>(byte);
    } else {
      fmt::format_to(std::back_inserter(text_), "\\x{:02x}", byte);
    }
  }
  if (size < bytes.size) text_ += "...";
}

void CommandLog::add_header(char direction, int fd, const uint8_t* header) {
  for (uint32_t i = 0; i < protocol::kBinaryHeaderSize; i += 4) {
    begin(direction, fd);
    fmt::format_to(std::back_inserter(text_), "{}0x{:02x} 0x{:02x} 0x{:02x} 0x{:02x}",
                   direction == '<' ? "   " : "  ", header[i], header[i + 1], header[i + 2],
                   header[i + 3]);
    end();
  }
}

void CommandLog::flush() {
  write_log(text_);
  text_.clear();
}

}  // namespace warpcache::worker
