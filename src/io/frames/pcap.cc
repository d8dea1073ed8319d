// SPDX-License-Identifier: Apache-2.0
#include "io/frames/pcap.h"

#include <pcap/pcap.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

namespace warpcache::io {
namespace {

constexpr uint64_t kNanosecondsPerSecond = 1'000'000'000;
constexpr int kFrameBytesMax = 262144;  // libpcap's own limit

struct Close {
  void operator()(pcap_t* capture) const { pcap_close(capture); }
  void operator()(pcap_dumper_t* dumper) const { pcap_dump_close(dumper); }
  void operator()(FILE* file) const { (void)std::fclose(file); }
};
using File = std::unique_ptr<FILE, Close>;
using Capture = std::unique_ptr<pcap_t, Close>;
using Dumper = std::unique_ptr<pcap_dumper_t, Close>;

// Takes `file` over.
std::string read_all(File file, FrameList& frames) {
  std::array<char, PCAP_ERRBUF_SIZE> error{};
  const Capture capture(pcap_fopen_offline_with_tstamp_precision(
      file.get(), PCAP_TSTAMP_PRECISION_NANO, error.data()));
  if (capture == nullptr) return error.data();
  (void)file.release();  // pcap_close() closes it
  if (const int link_type = pcap_datalink(capture.get()); link_type != DLT_EN10MB) {
    return "link type " + std::to_string(link_type) + " is not Ethernet (1)";
  }
  pcap_pkthdr* header = nullptr;
  const u_char* data = nullptr;
  int outcome = 0;
  while ((outcome = pcap_next_ex(capture.get(), &header, &data)) == 1) {
    // Files hold 32 bits of seconds, which libpcap takes as signed. With this precision tv_usec
    // holds nanoseconds.
    frames.add({data, header->caplen},
               static_cast<uint32_t>(header->ts.tv_sec) * kNanosecondsPerSecond +
                   static_cast<uint64_t>(header->ts.tv_usec));
  }
  return outcome == PCAP_ERROR_BREAK ? "" : pcap_geterr(capture.get());
}

}  // namespace

std::string read_pcap(Bytes file, FrameList& frames) {
  if (file.size == 0) return "an empty file";  // which fmemopen() does not open everywhere
  File stream(fmemopen(const_cast<uint8_t*>(file.data), file.size, "rb"));
  if (stream == nullptr) return std::strerror(errno);
  return read_all(std::move(stream), frames);
}

std::string read_pcap_file(const std::string& path, FrameList& frames) {
  File stream(std::fopen(path.c_str(), "rb"));
  if (stream == nullptr) return path + ": " + std::strerror(errno);
  const std::string failure = read_all(std::move(stream), frames);
  return failure.empty() ? "" : path + ": " + failure;
}

std::string write_pcap_file(const std::string& path, const FrameList& frames) {
  const Capture format(
      pcap_open_dead_with_tstamp_precision(DLT_EN10MB, kFrameBytesMax, PCAP_TSTAMP_PRECISION_NANO));
  if (format == nullptr) return path + ": " + std::strerror(ENOMEM);
  File stream(std::fopen(path.c_str(), "wb"));
  if (stream == nullptr) return path + ": " + std::strerror(errno);
  const Dumper dumper(pcap_dump_fopen(format.get(), stream.get()));
  if (dumper == nullptr) return path + ": " + pcap_geterr(format.get());
  (void)stream.release();  // pcap_dump_close() closes it
  for (size_t i = 0; i < frames.size(); ++i) {
    pcap_pkthdr header = {};
    header.ts.tv_sec = static_cast<time_t>(frames.time_ns(i) / kNanosecondsPerSecond);
    header.ts.tv_usec = static_cast<suseconds_t>(frames.time_ns(i) % kNanosecondsPerSecond);
    header.caplen = header.len = static_cast<bpf_u_int32>(frames[i].size);
    pcap_dump(reinterpret_cast<u_char*>(dumper.get()), &header, frames[i].data);
  }
  return pcap_dump_flush(dumper.get()) == 0 ? "" : path + ": " + std::strerror(errno);
}

}  // namespace warpcache::io
