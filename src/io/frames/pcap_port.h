// SPDX-License-Identifier: Apache-2.0
//
// A port of recorded frames, by libpcap: it receives the frames of a file and writes those of the
// replies to another one, each with the time of its request. pcap and pcapng are read, in either
// byte order and with times in microseconds or nanoseconds; pcap with nanoseconds is written.
// Ethernet alone. A frame that was recorded in part is received as far as it goes. Frames that are
// not for the server are dropped.
//
// Either file may be a named pipe, so that another program can send frames and wait for the
// replies. Built where libpcap's headers are found; the library is loaded when a port is opened.
#pragma once

#include <atomic>
#include <cstdio>
#include <memory>
#include <string>

#include "io/frames/frame_port.h"
#include "io/wake_event.h"

struct pcap;
struct pcap_dumper;

namespace warpcache::io {

struct PcapLibrary;

class PcapPort final : public FramePort {
 public:
  // Opens both files. What is wrong with the content of a named pipe is found later: failure().
  // Returns the error as text, or "".
  static std::string open(const std::string& input, const std::string& output,
                          std::unique_ptr<FramePort>* port);
  ~PcapPort() override;

  bool receive(FrameBuffer& buffer, int timeout_ms) override;
  void send(uint32_t burst, const TxFrame* frames, uint32_t count) override;
  void pass_on(const MutableBytes*, uint32_t) override {}
  void stop() override;
  std::string failure() const override { return failure_; }
  std::string describe() const override;

 private:
  enum class Next : uint8_t { kFrame, kNothing, kEnd };

  // A file, which may be a named pipe.
  struct File {
    std::string name;
    std::FILE* stream = nullptr;  // until libpcap owns it
    int fd = -1;
    bool is_pipe = false;
  };

  explicit PcapPort(const PcapLibrary& library) : library_(&library) {}
  static std::string open_file(const std::string& name, bool to_write, File& file);
  std::string open_capture();
  std::string open_dumper();
  bool wait(int fd, short events, int timeout_ms) const;
  Next take_frame(FrameBuffer& buffer);

  const PcapLibrary* library_;
  File input_;
  File output_;
  WakeEvent stop_event_;
  std::atomic<bool> stopped_{false};
  pcap* capture_ = nullptr;  // null: the head of the file has not been read
  pcap* format_ = nullptr;
  pcap_dumper* dumper_ = nullptr;
  std::string failure_;
};

}  // namespace warpcache::io
