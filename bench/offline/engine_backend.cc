// SPDX-License-Identifier: Apache-2.0
#include "offline/engine_backend.h"

#include <algorithm>
#include <atomic>
#include <stdexcept>
#include <string>
#include <thread>

namespace warpcache::offline {

namespace {

using SteadyClock = std::chrono::steady_clock;

double us_since(SteadyClock::time_point begin) {
  return std::chrono::duration<double, std::micro>(SteadyClock::now() - begin).count();
}

}  // namespace

// The batches of a pass, and when each is due: now, or at its time.
class EngineBackend::Arrivals {
 public:
  explicit Arrivals(const Pass& pass)
      : pass_(pass), count_((pass.count + pass.batch - 1) / pass.batch) {}

  // Called by any thread. Returns the next batch; past the last one, a larger number.
  uint64_t take() { return next_++; }
  uint64_t count() const { return count_; }
  SteadyClock::time_point begin() const { return begin_; }
  // When a batch came or will come.
  SteadyClock::time_point time_of(uint64_t batch, SteadyClock::time_point now) const {
    if (pass_.requests_per_s == 0) return now;
    const double after = static_cast<double>(batch * pass_.batch) / pass_.requests_per_s;
    return begin_ +
           std::chrono::duration_cast<SteadyClock::duration>(std::chrono::duration<double>(after));
  }

 private:
  const Pass& pass_;
  uint64_t count_;
  std::atomic<uint64_t> next_{0};
  SteadyClock::time_point begin_ = SteadyClock::now();
};

void EngineBackend::add(engine::Engine& engine) {
  engine::PacketSettings settings;
  settings.udp_port = Workload::kPort;
  const std::string failure = engine.open_packets(settings);
  if (!failure.empty()) throw std::runtime_error(failure);
  engines_.push_back(&engine);
}

PassResult EngineBackend::run(const Pass& pass) {
  prepare(pass);
  PassResult result;
  Arrivals arrivals(pass_);
  result.batch_us.resize(arrivals.count());
  std::vector<std::thread> threads;
  for (engine::Engine* const engine : engines_) {
    threads.emplace_back([&, engine] { serve(*engine, arrivals, result); });
  }
  for (std::thread& thread : threads) thread.join();
  result.seconds = us_since(arrivals.begin()) / 1e6;
  for (engine::Engine* const engine : engines_) engine->release_device();
  end_pass();
  return result;
}

Bytes EngineBackend::reply(uint64_t request, uint32_t datagram) const {
  const uint64_t batch = request / pass_.batch;
  const net::ReplyFrames frames(replies_ + batch * batch_reply_bytes_, results_[request]);
  return datagram < frames.count() ? frames[datagram] : Bytes{};
}

// The work of a thread. A batch is taken when the engine can take one more burst.
void EngineBackend::serve(engine::Engine& engine, Arrivals& arrivals, PassResult& result) {
  struct Running {
    net::PacketBurst burst;
    uint64_t batch = 0;
    SteadyClock::time_point came;
  };
  std::vector<Running> bursts(engine.packet_bursts());
  std::vector<Running*> free;
  for (Running& running : bursts) free.push_back(&running);
  uint64_t next = arrivals.take();
  engine.attach_thread();
  while (!failed()) {
    if (!free.empty() && next < arrivals.count()) {
      const SteadyClock::time_point now = SteadyClock::now();
      const SteadyClock::time_point comes = arrivals.time_of(next, now);
      if (now >= comes) {
        Running& running = *free.back();
        free.pop_back();
        running = {burst_of(next), next, comes};
        engine.submit_packets(&running.burst);
        next = arrivals.take();
        if (!free.empty()) continue;
      }
    }
    const net::PacketBurst* const done = engine.poll_packets();
    if (done != nullptr) {
      const auto running = std::find_if(bursts.begin(), bursts.end(),
                                        [done](const Running& r) { return &r.burst == done; });
      result.batch_us[running->batch] = static_cast<float>(us_since(running->came));
      free.push_back(&*running);
    }
    if (free.size() == bursts.size() && next >= arrivals.count()) return;
  }
}

// Allocates everything that a pass needs, before its time is measured.
void EngineBackend::prepare(const Pass& pass) {
  pass_ = pass;
  if (result_count_ < pass.count) {
    results_ =
        reinterpret_cast<net::PacketResult*>(take(Use::kResults, pass.count * sizeof(*results_)));
    result_count_ = pass.count;
  }
  const uint32_t reply_space = pass.writes
                                   ? std::max(pass.reply_slot_bytes, net::kReservedReplyBytes)
                                   : pass.reply_slot_bytes;
  batch_reply_bytes_ = uint64_t{pass.batch} * reply_space;
  if (batch_reply_bytes_ > net::PacketResult::kArenaMax) {
    throw std::runtime_error("the replies of a batch take more than " +
                             std::to_string(net::PacketResult::kArenaMax >> 20) + " MiB");
  }
  const uint64_t batches = (pass.count + pass.batch - 1) / pass.batch;
  if (reply_bytes_ < batches * batch_reply_bytes_) {
    reply_bytes_ = batches * batch_reply_bytes_;
    replies_ = take(Use::kReplies, reply_bytes_);
  }
  begin_pass(reply_bytes_);
}

net::PacketBurst EngineBackend::burst_of(uint64_t number) {
  const uint64_t first = number * pass_.batch;
  net::PacketBurst burst;
  burst.input = frames() + first * pass_.slot_bytes;
  burst.slot_bytes = pass_.slot_bytes;
  burst.count = static_cast<uint32_t>(std::min<uint64_t>(pass_.batch, pass_.count - first));
  burst.replies = reply_space() + number * batch_reply_bytes_;
  burst.reply_bytes = static_cast<uint32_t>(batch_reply_bytes_);
  burst.input_bytes = burst.count * pass_.slot_bytes;
  burst.results = results_ + first;
  burst.on_device = config_.device_memory;
  return burst;
}

}  // namespace warpcache::offline
