// SPDX-License-Identifier: Apache-2.0
#include "io/frames/pcap.h"

#include <cerrno>
#include <cstring>
#include <fstream>

#include "base/mem.h"

namespace warpcache::io {
namespace {

constexpr uint32_t kMagicMicroseconds = 0xa1b2c3d4;
constexpr uint32_t kMagicNanoseconds = 0xa1b23c4d;
constexpr uint32_t kMagicOfPcapng = 0x0a0d0d0a;
constexpr size_t kFileHeaderSize = 24;
constexpr size_t kRecordHeaderSize = 16;
constexpr uint16_t kVersionMajor = 2;
constexpr uint16_t kVersionMinor = 4;
constexpr uint32_t kFrameBytesMax = 262144;  // the largest snapshot length of capture programs
constexpr uint32_t kLinkTypeMask = 0xffff;   // other bits: length of the frame check sequence
constexpr uint32_t kLinkTypeEthernet = 1;
constexpr std::streamsize kReadBytes = 1 << 16;
constexpr uint64_t kNanosecondsPerSecond = 1'000'000'000;

// Reads numbers in the byte order of the file.
class Reader {
 public:
  Reader(Bytes file, bool big_endian) : file_(file), big_endian_(big_endian) {}

  uint16_t get16(size_t at) const {
    const uint8_t* bytes = file_.data + at;
    return static_cast<uint16_t>(big_endian_ ? bytes[0] << 8 | bytes[1] : bytes[1] << 8 | bytes[0]);
  }
  uint32_t get32(size_t at) const {
    const uint32_t first = get16(at);
    const uint32_t second = get16(at + 2);
    return big_endian_ ? first << 16 | second : second << 16 | first;
  }

 private:
  Bytes file_;
  bool big_endian_;
};

bool is_magic(uint32_t number) {
  return number == kMagicMicroseconds || number == kMagicNanoseconds;
}

std::string check_header(const Reader& reader) {
  if (reader.get16(4) != kVersionMajor) {
    return "version " + std::to_string(reader.get16(4)) + " of the pcap format is not known";
  }
  const uint32_t link_type = reader.get32(20) & kLinkTypeMask;
  if (link_type != kLinkTypeEthernet) {
    return "link type " + std::to_string(link_type) + " is not Ethernet (1)";
  }
  return "";
}

void put32(std::string& out, uint64_t value) {
  for (int shift = 0; shift < 32; shift += 8) out += static_cast<char>(value >> shift);
}

}  // namespace

std::string read_pcap(Bytes file, FrameList& frames) {
  if (file.size < kFileHeaderSize) return "too short for a pcap file";
  if (load_big32(file.data) == kMagicOfPcapng) return "pcapng is not read, only classic pcap";
  const bool big_endian = is_magic(load_big32(file.data));
  const Reader reader(file, big_endian);
  const uint32_t magic = reader.get32(0);
  if (!is_magic(magic)) return "not a pcap file";
  std::string failure = check_header(reader);
  if (!failure.empty()) return failure;
  const uint64_t tick_ns = magic == kMagicNanoseconds ? 1 : 1000;
  uint64_t number = 0;
  for (size_t at = kFileHeaderSize; at < file.size;) {
    const std::string record = "record " + std::to_string(++number);
    if (file.size - at < kRecordHeaderSize) return record + " has no whole header";
    const uint32_t size = reader.get32(at + 8);
    if (size > kFrameBytesMax) return record + " is too long: " + std::to_string(size) + " bytes";
    const uint64_t time_ns =
        reader.get32(at) * kNanosecondsPerSecond + reader.get32(at + 4) * tick_ns;
    at += kRecordHeaderSize;
    if (file.size - at < size) return record + " is cut off";
    frames.add(file.sub(at, size), time_ns);
    at += size;
  }
  return "";
}

std::string read_pcap_file(const std::string& path, FrameList& frames) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return path + ": " + std::strerror(errno);
  std::string bytes;
  std::string part(kReadBytes, '\0');
  while (file.read(part.data(), kReadBytes) || file.gcount() > 0) {
    bytes.append(part, 0, static_cast<size_t>(file.gcount()));
  }
  if (file.bad()) return path + ": cannot be read";
  const std::string failure =
      read_pcap({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()}, frames);
  return failure.empty() ? "" : path + ": " + failure;
}

std::string write_pcap(const FrameList& frames) {
  std::string out;
  put32(out, kMagicNanoseconds);
  put32(out, uint32_t{kVersionMinor} << 16 | kVersionMajor);
  put32(out, 0);
  put32(out, 0);
  put32(out, kFrameBytesMax);
  put32(out, kLinkTypeEthernet);
  for (size_t i = 0; i < frames.size(); ++i) {
    const Bytes frame = frames[i];
    put32(out, frames.time_ns(i) / kNanosecondsPerSecond);
    put32(out, frames.time_ns(i) % kNanosecondsPerSecond);
    put32(out, frame.size);
    put32(out, frame.size);
    out.append(reinterpret_cast<const char*>(frame.data), frame.size);
  }
  return out;
}

std::string write_pcap_file(const std::string& path, const FrameList& frames) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  if (!file) return path + ": " + std::strerror(errno);
  const std::string bytes = write_pcap(frames);
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  file.close();
  return file ? "" : path + ": " + std::strerror(errno);
}

}  // namespace warpcache::io
