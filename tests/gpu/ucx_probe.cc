// SPDX-License-Identifier: Apache-2.0
//
// ucx_probe [SIZE...]: what active messages of UCX cost between a client's memory and a GPU's,
// without the server: a process with the GPU, and a client without one, one message at a time. Each
// way is measured once a round, and every byte is checked. Prints a line for each way and
// size, in microseconds.
//   set direct    the data is fetched into device memory
//   set staged    into pinned memory, and copied from there
//   get direct    the data is sent from device memory
//   get staged    copied to pinned memory, and sent from there
#include <cuda_runtime_api.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "gpu/device.h"
#include "io/ucx/ucx_port.h"

namespace warpcache {
namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kSizeMax = 1024 * 1024;
constexpr int kRounds = 10;
constexpr int kTimesARound = 100;

enum Way : uint32_t { kSetDirect, kSetStaged, kGetDirect, kGetStaged, kWays };
constexpr const char* kNames[kWays] = {"set direct", "set staged", "get direct", "get staged"};

void require(bool ok, const std::string& what) {
  if (ok) return;
  std::fprintf(stderr, "ucx_probe: %s\n", what.c_str());
  std::_Exit(1);
}

// What both sides do with UCX: one message under way at a time.
class Side : protected io::AmReceiver {
 protected:
  void start() {
    std::shared_ptr<io::UcxContext> context;
    std::string failure = io::UcxContext::open(&context);
    if (failure.empty()) failure = io::UcxPort::open(context, &port_);
    require(failure.empty(), failure);
    reaches_device_ = context->reaches_device();
    port_->attach(*this);
  }
  // The header's sequence says the way, and `taken` the size.
  void send(uint32_t way, size_t size, Bytes data, bool rendezvous) {
    message_.header = {.sequence = way, .taken = size};
    message_.data = data;
    message_.rendezvous = rendezvous;
    message_.endpoint = endpoint_;
    sent_ = false;
    const io::AmSent result = port_->send(message_);
    require(result != io::AmSent::kFailed, "sending");
    sent_ = result == io::AmSent::kDone;
  }

  bool admits() override { return true; }
  void not_opened() override {}
  void opened(uint32_t endpoint) override { endpoint_ = endpoint; }
  void received(uint32_t, Bytes header, Bytes) override {
    std::memcpy(&header_, header.data, sizeof header_);
    came_ = true;
  }
  bool announced(uint32_t, Bytes header, uint64_t size, io::AmRemote data) override {
    std::memcpy(&header_, header.data, sizeof header_);
    remote_ = data;
    remote_size_ = size;
    came_ = true;
    return true;
  }
  void sent(io::AmSend&, bool whole) override {
    require(whole, "a message was not sent");
    sent_ = true;
  }
  void fetched(uint32_t, bool whole) override {
    require(whole, "data was not fetched");
    fetched_ = true;
  }
  void failed(uint32_t) override { gone_ = true; }
  void ended(uint32_t) override {}

  // Fetches what was announced.
  void fetch(uint8_t* to, bool on_device = false) {
    const MutableBytes piece = {to, remote_size_};
    fetched_ = false;
    io::AmRemote const data = std::exchange(remote_, nullptr);
    fetched_ = on_device ? port_->fetch_to_device(endpoint_, data, piece)
                         : port_->fetch(endpoint_, data, &piece, 1);
    wait([this] { return fetched_; });
  }
  void wait(const std::function<bool()>& until) {
    const auto deadline = Clock::now() + std::chrono::seconds(60);
    while (!until()) {
      if (!port_->progress()) (void)sched_yield();  // the other side may share this processor
      require(!gone_ && Clock::now() < deadline, "the other side does not answer");
    }
  }

  std::unique_ptr<io::UcxPort> port_;
  uint32_t endpoint_ = 0;
  io::AmSend message_;
  io::AmHeader header_;
  bool came_ = false;
  bool sent_ = true;
  bool fetched_ = false;
  bool gone_ = false;
  bool reaches_device_ = false;
  io::AmRemote remote_ = nullptr;
  size_t remote_size_ = 0;
};

// The process with the GPU: does what the client's messages say, until the client goes.
class Holder final : private Side {
 public:
  [[noreturn]] void serve(uint16_t port) {
    gpu::DeviceFacts facts;
    const std::string failure = gpu::open_device(0, &facts);
    require(failure.empty(), failure);
    start();
    std::printf("%s, UCX %s the GPU's memory\n", facts.name.c_str(),
                reaches_device_ ? "reaches" : "does not reach");
    require(device_.allocate(gpu::CudaMemory::Place::kDevice, kSizeMax) &&
                pinned_.allocate(gpu::CudaMemory::Place::kHost, kSizeMax) &&
                stream_.create(gpu::CudaStream::Priority::kNormal),
            "no memory");
    const std::string refused = port_->listen("127.0.0.1", port, {port_.get()});
    require(refused.empty(), refused);
    std::printf("ready\n");
    (void)std::fflush(stdout);
    while (!gone_) {
      if (!port_->progress()) (void)sched_yield();
      if (std::exchange(came_, false)) answer();
    }
    std::_Exit(0);
  }

 private:
  void answer() {
    const auto way = static_cast<Way>(header_.sequence);
    const auto size = static_cast<size_t>(header_.taken);
    if (way == kSetDirect) {
      fetch(device_.data(), true);
    } else if (way == kSetStaged) {
      fetch(pinned_.data());
      copy(device_.data(), pinned_.data(), size);
    } else if (way == kGetStaged) {
      copy(pinned_.data(), device_.data(), size);
    }
    if (way == kSetDirect || way == kSetStaged) {
      send(way, size, {}, false);
    } else {
      send(way, size, {way == kGetDirect ? device_.data() : pinned_.data(), size}, true);
    }
    wait([this] { return sent_ || gone_; });
  }
  void copy(uint8_t* to, const uint8_t* from, size_t size) {
    require(cudaMemcpyAsync(to, from, size, cudaMemcpyDefault, stream_.get()) == cudaSuccess &&
                cudaStreamSynchronize(stream_.get()) == cudaSuccess,
            "copying");
  }

  gpu::CudaMemory device_;
  gpu::CudaMemory pinned_;
  gpu::CudaStream stream_;
};

class Prober final : private Side {
 public:
  void run(uint16_t port, const std::vector<size_t>& sizes) {
    start();
    const std::string failure = port_->connect("127.0.0.1", port, &endpoint_);
    require(failure.empty(), failure);
    std::printf("%-10s %9s %9s %9s\n", "way", "bytes", "p50 us", "GB/s");
    for (const size_t size : sizes) measure(size);
  }

 private:
  void measure(size_t size) {
    std::vector<double> times[kWays];
    for (int round = 0; round < kRounds; ++round) {
      for (uint32_t way = 0; way < kWays; ++way) {
        for (int i = 0; i < kTimesARound; ++i)
          times[way].push_back(once(static_cast<Way>(way), size));
      }
    }
    for (uint32_t way = 0; way < kWays; ++way) {
      std::sort(times[way].begin(), times[way].end());
      const double p50 = times[way][times[way].size() / 2];
      std::printf("%-10s %9zu %9.1f %9.2f\n", kNames[way], size, p50,
                  static_cast<double>(size) / p50 / 1e3);
    }
    (void)std::fflush(stdout);
  }

  // Microseconds. A set stores other bytes each time, and a get checks them.
  double once(Way way, size_t size) {
    const bool sets = way == kSetDirect || way == kSetStaged;
    if (sets) {
      ++number_;
      for (size_t i = 0; i < size; i += 64) mine_[i] = static_cast<uint8_t>(number_ + i / 64);
    } else {
      std::fill(theirs_.begin(), theirs_.end(), uint8_t{0});
    }
    came_ = false;
    const Clock::time_point begun = Clock::now();
    send(way, size, sets ? Bytes{mine_.data(), size} : Bytes{}, sets);
    wait([this] { return came_; });
    if (!sets) fetch(theirs_.data());
    const std::chrono::duration<double, std::micro> time = Clock::now() - begun;
    wait([this] { return sent_; });
    require(sets || std::memcmp(mine_.data(), theirs_.data(), size) == 0, "other bytes came");
    return time.count();
  }

  std::vector<uint8_t> mine_ = std::vector<uint8_t>(kSizeMax);
  std::vector<uint8_t> theirs_ = std::vector<uint8_t>(kSizeMax);
  uint32_t number_ = 0;
};

// The child knows CUDA and the parent does not; neither has used UCX before the fork.
int run(int argc, char** argv) {
  std::vector<size_t> sizes;
  for (int i = 1; i < argc; ++i) sizes.push_back(std::strtoull(argv[i], nullptr, 10));
  if (sizes.empty()) sizes = {64 * 1024, 128 * 1024, 256 * 1024, 512 * 1024, 1024 * 1024};
  for (const size_t size : sizes)
    require(size > 8000 && size <= kSizeMax, "sizes: 8001 to 1048576");
  const auto port = static_cast<uint16_t>(20000 + getpid() % 20000);
  int pipe_fds[2];
  require(pipe(pipe_fds) == 0, "no pipe");
  const pid_t child = fork();
  if (child == 0) {
    (void)dup2(pipe_fds[1], STDOUT_FILENO);
    (void)close(pipe_fds[0]);
    (void)close(pipe_fds[1]);
    Holder().serve(port);
  }
  (void)close(pipe_fds[1]);
  std::string said;
  char c = 0;
  while (!said.ends_with("ready\n") && read(pipe_fds[0], &c, 1) == 1) said += c;
  require(said.ends_with("ready\n"), "the process with the GPU has ended");
  std::printf("%s", said.substr(0, said.size() - 6).c_str());
  Prober().run(port, sizes);
  (void)kill(child, SIGTERM);
  (void)waitpid(child, nullptr, 0);
  return 0;
}

}  // namespace
}  // namespace warpcache

int main(int argc, char** argv) { return warpcache::run(argc, argv); }
