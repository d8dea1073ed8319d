// SPDX-License-Identifier: Apache-2.0
#include "io/frames/pcap_port.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "base/mem.h"
#include "io/frames/pcap_library.h"

namespace warpcache::io {
namespace {

constexpr uint64_t kNanosecondsPerSecond = 1'000'000'000;
constexpr int kSnapshotBytes = 262144;  // libpcap's own limit of a frame

}  // namespace

std::string PcapPort::open(const std::string& input, const std::string& output,
                           std::unique_ptr<FramePort>* port) {
  std::string failure;
  const PcapLibrary* const library = load_pcap(&failure);
  if (library == nullptr) return failure;
  std::unique_ptr<PcapPort> made(new PcapPort(*library));
  failure = open_file(input, false, made->input_);
  if (failure.empty() && !made->input_.is_pipe) failure = made->open_capture();
  if (failure.empty()) failure = open_file(output, true, made->output_);
  if (failure.empty()) failure = made->open_dumper();
  if (failure.empty()) *port = std::move(made);
  return failure;
}

PcapPort::~PcapPort() {
  if (capture_ != nullptr) library_->close(capture_);
  if (dumper_ != nullptr) library_->dump_close(dumper_);
  if (format_ != nullptr) library_->close(format_);
  if (input_.stream != nullptr) (void)std::fclose(input_.stream);
  if (output_.stream != nullptr) (void)std::fclose(output_.stream);
}

// Does not wait for the other end of a named pipe. One that is written to is opened for reading,
// too: then its reader may come later, and go.
std::string PcapPort::open_file(const std::string& name, bool to_write, File& file) {
  const auto failed = [&name] { return name + ": " + std::strerror(errno); };
  const int mode = to_write ? O_RDWR | O_CREAT | O_TRUNC : O_RDONLY | O_NONBLOCK;
  file.name = name;
  file.fd = ::open(name.c_str(), mode | O_CLOEXEC, 0644);
  struct stat status = {};
  if (file.fd < 0 || fstat(file.fd, &status) != 0) return failed();
  file.is_pipe = S_ISFIFO(status.st_mode);
  file.stream = fdopen(file.fd, to_write ? "w+b" : "rb");
  if (file.stream == nullptr) {
    std::string failure = failed();
    (void)close(file.fd);
    return failure;
  }
  if (!to_write && fcntl(file.fd, F_SETFL, 0) != 0) return failed();
  // Nothing may stay in a buffer that poll() does not know of.
  if (file.is_pipe && !to_write) (void)std::setvbuf(file.stream, nullptr, _IONBF, 0);
  return "";
}

std::string PcapPort::open_capture() {
  std::array<char, PCAP_ERRBUF_SIZE> error{};
  capture_ = library_->fopen_offline(input_.stream, PCAP_TSTAMP_PRECISION_NANO, error.data());
  if (capture_ == nullptr) return input_.name + ": " + error.data();
  input_.stream = nullptr;  // pcap_close() closes it
  if (const int link_type = library_->datalink(capture_); link_type != DLT_EN10MB) {
    return input_.name + ": link type " + std::to_string(link_type) + " is not Ethernet (1)";
  }
  return "";
}

std::string PcapPort::open_dumper() {
  format_ = library_->open_dead(DLT_EN10MB, kSnapshotBytes, PCAP_TSTAMP_PRECISION_NANO);
  if (format_ == nullptr) return output_.name + ": " + std::strerror(ENOMEM);
  dumper_ = library_->dump_fopen(format_, output_.stream);
  if (dumper_ == nullptr) return output_.name + ": " + library_->geterr(format_);
  output_.stream = nullptr;  // pcap_dump_close() closes it
  // Readers of a pipe expect the head of the file at once.
  return library_->dump_flush(dumper_) == 0 ? "" : output_.name + ": " + std::strerror(errno);
}

std::string PcapPort::describe() const { return "pcap " + input_.name + " to " + output_.name; }

void PcapPort::stop() {
  stopped_.store(true);
  stop_event_.raise();
}

// Whether `fd` is ready within timeout_ms (-1: no limit). False also if the port was stopped.
bool PcapPort::wait(int fd, short events, int timeout_ms) const {
  pollfd fds[2] = {{fd, events, 0}, {stop_event_.fd(), POLLIN, 0}};
  return poll(fds, 2, timeout_ms) > 0 && !stopped_.load() && fds[0].revents != 0;
}

bool PcapPort::receive(FrameBuffer& buffer, int timeout_ms) {
  while (buffer.has_space() && !stopped_.load() && failure_.empty()) {
    if (input_.is_pipe && !wait(input_.fd, POLLIN, timeout_ms)) break;
    timeout_ms = 0;
    if (capture_ == nullptr) {
      failure_ = open_capture();
      continue;
    }
    const Next next = take_frame(buffer);
    if (next == Next::kEnd) return false;
  }
  return !stopped_.load() && failure_.empty();
}

PcapPort::Next PcapPort::take_frame(FrameBuffer& buffer) {
  pcap_pkthdr* header = nullptr;
  const u_char* data = nullptr;
  const int outcome = library_->next_ex(capture_, &header, &data);
  if (outcome == PCAP_ERROR_BREAK) return Next::kEnd;
  if (outcome != 1) {
    failure_ = input_.name + ": " + library_->geterr(capture_);
    return Next::kNothing;
  }
  counters_.received.add(1);
  counters_.received_bytes.add(header->caplen);
  if (header->caplen > kFrameBytesMax) {
    counters_.receive_failed.add(1);
    return Next::kNothing;
  }
  mem_copy(buffer.next(), data, header->caplen);
  // Files hold 32 bits of seconds, which libpcap takes as signed. With this precision tv_usec holds
  // nanoseconds.
  buffer.add(header->caplen, static_cast<uint32_t>(header->ts.tv_sec) * kNanosecondsPerSecond +
                                 static_cast<uint64_t>(header->ts.tv_usec));
  return Next::kFrame;
}

// A frame is shorter than what a pipe takes at once when it is ready.
void PcapPort::send(uint32_t /*burst*/, const TxFrame* frames, uint32_t count) {
  for (uint32_t i = 0; i < count; ++i) {
    if (output_.is_pipe && !wait(output_.fd, POLLOUT, -1)) {
      counters_.send_failed.add(1);
      continue;
    }
    pcap_pkthdr header = {};
    header.ts.tv_sec = static_cast<time_t>(frames[i].time_ns / kNanosecondsPerSecond);
    header.ts.tv_usec = static_cast<suseconds_t>(frames[i].time_ns % kNanosecondsPerSecond);
    header.caplen = header.len = static_cast<bpf_u_int32>(frames[i].bytes.size);
    library_->dump(reinterpret_cast<u_char*>(dumper_), &header, frames[i].bytes.data);
    const bool flush = output_.is_pipe || i + 1 == count;
    if (flush && library_->dump_flush(dumper_) != 0) {
      counters_.send_failed.add(1);
      failure_ = output_.name + ": " + std::strerror(errno);
      return;
    }
    counters_.sent.add(1);
    counters_.sent_bytes.add(frames[i].bytes.size);
  }
}

}  // namespace warpcache::io
