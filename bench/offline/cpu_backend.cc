// SPDX-License-Identifier: Apache-2.0
//
// The CPU backend: each thread replays its share of the frames into its own worker; all workers use
// one store.
#include <algorithm>
#include <chrono>
#include <stdexcept>
#include <thread>

#include "engine/cpu/cpu_engine.h"
#include "engine/testing/store_admin.h"
#include "io/frames/replay_transport.h"
#include "offline/backend.h"
#include "store/host/store.h"
#include "worker/worker.h"

namespace warpcache::offline {

namespace {

using SteadyClock = std::chrono::steady_clock;

double seconds_since(SteadyClock::time_point begin) {
  return std::chrono::duration<double>(SteadyClock::now() - begin).count();
}

// The share of one thread.
class Lane {
 public:
  Lane(store::Store& store, engine::AdminHandler& admin) : engine_({}, store, admin) {}

  void take(const uint8_t* input, const Pass& pass, uint64_t first, uint64_t end) {
    first_ = first;
    frames_.clear();
    for (uint64_t i = first; i < end; ++i) {
      frames_.add({input + i * pass.slot_bytes, pass.slot_bytes});
    }
    replay_ = std::make_unique<io::ReplayTransport>(
        io::ReplayConfig{.udp_port = Workload::kPort, .burst_frames_max = pass.batch}, frames_);
    worker_ = std::make_unique<worker::Worker>(worker::WorkerConfig{}, *replay_, engine_);
    batch_us_.clear();
  }

  void run() {
    while (true) {
      const SteadyClock::time_point begin = SteadyClock::now();
      if (!worker_->run_once(0)) return;
      batch_us_.push_back(static_cast<float>(seconds_since(begin) * 1e6));
    }
  }

  const std::vector<float>& batch_us() const { return batch_us_; }
  uint64_t first() const { return first_; }
  // Called after the last run(), before reply(). Requests are answered in order, so a datagram with
  // number 0 begins the next answer.
  void sort_replies() {
    const io::FrameList& replies = replay_->replies();
    answers_.clear();
    for (size_t i = 0; i < replies.size(); ++i) {
      if (Workload::sequence_of(replies[i]) == 0) answers_.push_back(i);
    }
    answers_.push_back(replies.size());
  }
  Bytes reply(uint64_t request, uint32_t datagram) const {
    if (answers_.size() != frames_.size() + 1) return {};
    const uint64_t index = request - first_;
    const uint64_t frame = answers_[index] + datagram;
    return frame < answers_[index + 1] ? replay_->replies()[frame] : Bytes{};
  }

 private:
  engine::CpuEngine engine_;
  io::FrameList frames_;
  std::unique_ptr<io::ReplayTransport> replay_;
  std::unique_ptr<worker::Worker> worker_;
  std::vector<size_t> answers_;  // where the answer of each request begins in the replies, and the
                                 // end
  std::vector<float> batch_us_;
  uint64_t first_ = 0;
};

class CpuBackend final : public Backend {
 public:
  explicit CpuBackend(const BackendConfig& config)
      : threads_(config.threads), store_(make_store(config)), admin_(*store_) {
    for (uint32_t i = 0; i < threads_; ++i) {
      lanes_.push_back(std::make_unique<Lane>(*store_, admin_));
    }
  }

  std::string describe() const override {
    return "CPU engine, " + std::to_string(threads_) + (threads_ == 1 ? " thread" : " threads");
  }
  uint8_t* input(uint64_t bytes) override {
    input_ = std::make_unique<uint8_t[]>(bytes);
    return input_.get();
  }
  PassResult run(const Pass& pass) override {
    if (pass.requests_per_s != 0) throw std::runtime_error("a rate needs --engine cuda");
    const uint64_t share = (pass.count + threads_ - 1) / threads_;
    for (uint64_t i = 0; i < threads_; ++i) {
      lanes_[i]->take(input_.get(), pass, std::min(i * share, pass.count),
                      std::min((i + 1) * share, pass.count));
    }
    PassResult result;
    const SteadyClock::time_point begin = SteadyClock::now();
    std::vector<std::thread> threads;
    for (const auto& lane : lanes_) threads.emplace_back([&lane] { lane->run(); });
    for (std::thread& thread : threads) thread.join();
    result.seconds = seconds_since(begin);
    for (const auto& lane : lanes_) {
      lane->sort_replies();
      result.batch_us.insert(result.batch_us.end(), lane->batch_us().begin(),
                             lane->batch_us().end());
    }
    return result;
  }
  Bytes reply(uint64_t request, uint32_t datagram) const override {
    size_t lane = lanes_.size() - 1;
    while (lanes_[lane]->first() > request) --lane;
    return lanes_[lane]->reply(request, datagram);
  }

 private:
  static std::unique_ptr<store::Store> make_store(const BackendConfig& config) {
    store::StoreConfig store;
    store.memory_limit = config.memory_bytes;
    store.hash_power = config.hash_power;
    store.threads = config.threads;
    std::unique_ptr<store::Store> made;
    if (store::Store::create(store, &made) != Status::kOk) {
      throw std::runtime_error("the system does not give the memory for the store");
    }
    return made;
  }

  uint32_t threads_;
  std::unique_ptr<store::Store> store_;
  engine::StoreAdmin admin_;
  std::vector<std::unique_ptr<Lane>> lanes_;
  std::unique_ptr<uint8_t[]> input_;
};

}  // namespace

std::unique_ptr<Backend> make_cpu_backend(const BackendConfig& config) {
  return std::make_unique<CpuBackend>(config);
}

}  // namespace warpcache::offline
