// SPDX-License-Identifier: Apache-2.0
#include "model/frame_client.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <utility>

#include "io/frames/dpdk/dpdk_ports.h"
#include "io/frames/frame_port.h"

namespace warpcache::model {

namespace {

using SteadyClock = std::chrono::steady_clock;

constexpr uint32_t kLinkWaitMs = 60'000;
constexpr uint32_t kFramesAtATime = 256;
constexpr size_t kSentAtATime = 64;  // of which a port sends the first ones
constexpr auto kTakenMax = std::chrono::minutes(5);
constexpr size_t kPipeReadBytes = 65536;

std::string text_of(Bytes bytes) { return {reinterpret_cast<const char*>(bytes.data), bytes.size}; }

std::string memif_arguments(const std::string& role, const std::string& folder) {
  // Rings for all replies to the requests of a round.
  return "net_memif0,role=" + role + ",rsize=12,socket-abstract=no,socket=" + folder + "/memif";
}

class MemifClient final : public FrameClient {
 public:
  explicit MemifClient(const std::string& folder) {
    io::DpdkSettings settings;
    settings.device = memif_arguments("server", folder);
    settings.link_wait_ms = kLinkWaitMs;
    std::vector<std::unique_ptr<io::FramePort>> ports;
    const std::string failure = io::open_dpdk_ports(settings, &ports);
    if (!failure.empty()) throw std::runtime_error(failure);
    port_ = std::move(ports[0]);
    const MutableBytes own = port_->memory();
    if (own.size == 0) memory_.resize(size_t{2} * io::kFrameBytesMax);
    buffer_.data = own.size != 0 ? own.data : memory_.data();
    buffer_.size = static_cast<uint32_t>(memory_.size());
    buffer_.slots = slots_.data();
    buffer_.times_ns = times_.data();
    buffer_.frames_max = kFramesAtATime;
  }

  MemifClient(const MemifClient&) = delete;
  MemifClient& operator=(const MemifClient&) = delete;
  // DPDK's memif may end the process when a device is closed while its other side goes, too: the
  // end of the process closes it.
  ~MemifClient() override { (void)port_.release(); }

  void send(const std::vector<std::string>& frames) override {
    std::vector<io::TxFrame> out;
    for (const std::string& frame : frames) {
      out.push_back({{reinterpret_cast<const uint8_t*>(frame.data()), frame.size()}, 0});
    }
    // A server that gets no CPU takes none for a while: the port drops what it does not take.
    const SteadyClock::time_point end = SteadyClock::now() + kTakenMax;
    for (size_t at = 0; at < out.size();) {
      const size_t some = std::min<size_t>(out.size() - at, kSentAtATime);
      const uint64_t before = port_->counters().sent.get();
      port_->send(0, out.data() + at, static_cast<uint32_t>(some));
      at += port_->counters().sent.get() - before;
      if (SteadyClock::now() > end) throw std::runtime_error("frames are not taken");
    }
  }

  void receive(std::vector<std::string>& frames, int timeout_ms) override {
    buffer_.clear();
    (void)port_->receive(buffer_, timeout_ms);
    for (uint32_t i = 0; i < buffer_.count; ++i) {
      frames.push_back(text_of({buffer_.data + slots_[i].offset, slots_[i].size}));
    }
    port_->take_back(buffer_);
  }

 private:
  std::unique_ptr<io::FramePort> port_;
  std::vector<uint8_t> memory_;  // if the port has none
  std::array<net::PacketSlot, kFramesAtATime> slots_ = {};
  std::array<uint64_t, kFramesAtATime> times_ = {};
  io::FrameBuffer buffer_;
};

// As in a capture of pcap, in this machine's byte order.
struct FileHead {
  uint32_t magic = 0xa1b23c4d;
  uint16_t major = 2;
  uint16_t minor = 4;
  uint32_t zone = 0;
  uint32_t digits = 0;
  uint32_t frame_bytes_max = 262144;
  uint32_t link_type = 1;
};
struct FrameHead {
  uint32_t seconds = 7;
  uint32_t nanoseconds = 0;
  uint32_t kept_bytes = 0;
  uint32_t bytes = 0;
};

class PipeClient final : public FrameClient {
 public:
  explicit PipeClient(const std::string& folder)
      : to_server_(open_pipe(folder + "/in", O_RDWR)),
        from_server_(open_pipe(folder + "/out", O_RDWR | O_NONBLOCK)) {
    const FileHead head;
    write_all({reinterpret_cast<const char*>(&head), sizeof head});
  }
  PipeClient(const PipeClient&) = delete;
  PipeClient& operator=(const PipeClient&) = delete;
  ~PipeClient() override {
    (void)close(to_server_);
    (void)close(from_server_);
  }

  // The server may wait until its replies are read, so they are.
  void send(const std::vector<std::string>& frames) override {
    for (const std::string& frame : frames) {
      FrameHead head;
      head.kept_bytes = head.bytes = static_cast<uint32_t>(frame.size());
      write_all(std::string(reinterpret_cast<const char*>(&head), sizeof head) + frame);
      read_some(0);
    }
  }

  void receive(std::vector<std::string>& frames, int timeout_ms) override {
    read_some(timeout_ms);
    size_t at = head_seen_ ? 0 : sizeof(FileHead);
    while (at + sizeof(FrameHead) <= input_.size()) {
      FrameHead head;
      std::memcpy(&head, input_.data() + at, sizeof head);
      if (at + sizeof head + head.kept_bytes > input_.size()) break;
      frames.push_back(input_.substr(at + sizeof head, head.kept_bytes));
      at += sizeof head + head.kept_bytes;
    }
    if (at > input_.size()) return;
    head_seen_ = true;
    input_.erase(0, at);
  }

 private:
  static int open_pipe(const std::string& path, int mode) {
    const int fd = open(path.c_str(), mode | O_CLOEXEC);
    if (fd < 0) throw std::runtime_error(path + ": " + std::strerror(errno));
    return fd;
  }

  void write_all(const std::string& bytes) const {
    for (size_t at = 0; at < bytes.size();) {
      const ssize_t put = write(to_server_, bytes.data() + at, bytes.size() - at);
      if (put < 0) throw std::runtime_error(std::string("writing: ") + std::strerror(errno));
      at += static_cast<size_t>(put);
    }
  }

  void read_some(int timeout_ms) {
    pollfd wait = {from_server_, POLLIN, 0};
    if (poll(&wait, 1, timeout_ms) <= 0) return;
    char buffer[kPipeReadBytes];
    const ssize_t got = read(from_server_, buffer, sizeof buffer);
    if (got > 0) input_.append(buffer, static_cast<size_t>(got));
  }

  int to_server_;
  int from_server_;
  std::string input_;
  bool head_seen_ = false;
};

}  // namespace

std::string frames_option(FrameLink link, const std::string& folder) {
  if (link == FrameLink::kMemif) return "--frames=dpdk:" + memif_arguments("client", folder);
  for (const char* name : {"/in", "/out"}) {
    if (mkfifo((folder + name).c_str(), 0600) != 0) {
      throw std::runtime_error(folder + name + ": " + std::strerror(errno));
    }
  }
  return "--frames=pcap:" + folder + "/in," + folder + "/out";
}

std::unique_ptr<FrameClient> connect_frames(FrameLink link, const std::string& folder) {
  if (link == FrameLink::kMemif) return std::make_unique<MemifClient>(folder);
  return std::make_unique<PipeClient>(folder);
}

}  // namespace warpcache::model
