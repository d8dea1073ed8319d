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
  // The time runs from here on. REQUIRES: before the first take().
  void start() { begin_ = SteadyClock::now(); }
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
  SteadyClock::time_point begin_;
};

void EngineBackend::add(engine::Engine& engine) {
  engine::PacketSettings settings;
  settings.udp_port = Workload::kPort;
  const std::string failure = engine.open_packets(settings);
  if (!failure.empty()) throw std::runtime_error(failure);
  engines_.push_back(&engine);
}

Bytes EngineBackend::reply(uint64_t request, uint32_t datagram) const {
  const uint64_t batch = request / pass_.batch;
  const net::ReplyFrames frames(replies_ + batch * batch_reply_bytes_, results_[request]);
  return datagram < frames.count() ? frames[datagram] : Bytes{};
}

// The work of a thread. A batch is taken when the engine can take one more burst. With a carrier
// there are places for more batches: while the engine has its bursts, others come and leave.
class EngineBackend::Server {
 public:
  Server(EngineBackend& backend, engine::Engine& engine, Arrivals& arrivals, PassResult& result)
      : backend_(backend), engine_(engine), arrivals_(arrivals), result_(result) {
    constexpr uint32_t kPlacesOfBurst = 3;  // one comes, one is at the engine, one leaves
    const uint32_t bursts = engine.packet_bursts();
    carrier_ = backend.make_carrier(bursts * kPlacesOfBurst);
    places_.resize(carrier_ != nullptr ? bursts * kPlacesOfBurst : bursts);
    for (Place& place : places_) free_.push_back(&place);
  }

  void run() {
    next_ = arrivals_.take();
    engine_.attach_thread();
    while (!backend_.failed()) {
      if (begin_batch() && !free_.empty() && carrier_ == nullptr) continue;
      if (carrier_ != nullptr) look_at_carrier();
      finish_burst();
      if (free_.size() == places_.size() && next_ >= arrivals_.count()) return;
    }
  }

 private:
  enum class State : uint8_t { kFree, kComing, kWaiting, kAtEngine, kLeaving };
  struct Place {
    net::PacketBurst burst;
    uint64_t batch = 0;
    SteadyClock::time_point came;
    State state = State::kFree;
  };

  uint32_t number_of(const Place& place) const {
    return static_cast<uint32_t>(&place - places_.data());
  }

  // False: none is due, or there is no place.
  bool begin_batch() {
    if (free_.empty() || next_ >= arrivals_.count()) return false;
    const SteadyClock::time_point now = SteadyClock::now();
    const SteadyClock::time_point comes = arrivals_.time_of(next_, now);
    if (now < comes) return false;
    Place& place = *free_.back();
    free_.pop_back();
    place = {backend_.burst_of(next_), next_, comes, State::kWaiting};
    if (carrier_ == nullptr) {
      submit(place);
    } else {
      place.state = State::kComing;
      carrier_->bring(number_of(place), next_ * backend_.pass_.batch * backend_.pass_.slot_bytes,
                      place.burst.input_bytes);
    }
    next_ = arrivals_.take();
    return true;
  }

  void submit(Place& place) {
    place.state = State::kAtEngine;
    ++at_engine_;
    engine_.submit_packets(&place.burst);
  }

  void look_at_carrier() {
    for (Place& place : places_) {
      if (place.state == State::kComing && carrier_->is_done(number_of(place))) {
        place.state = State::kWaiting;
      }
      if (place.state == State::kWaiting && at_engine_ < engine_.packet_bursts()) submit(place);
      if (place.state == State::kLeaving && carrier_->is_done(number_of(place))) release(place);
    }
  }

  void finish_burst() {
    if (at_engine_ == 0) return;
    const net::PacketBurst* const done = engine_.poll_packets();
    if (done == nullptr) return;
    --at_engine_;
    Place& place = *std::find_if(places_.begin(), places_.end(),
                                 [done](const Place& p) { return &p.burst == done; });
    if (carrier_ == nullptr) return release(place);
    place.state = State::kLeaving;
    carrier_->take_away(number_of(place), place.batch * backend_.batch_reply_bytes_,
                        backend_.batch_reply_bytes_);
  }

  void release(Place& place) {
    result_.batch_us[place.batch] = static_cast<float>(us_since(place.came));
    place.state = State::kFree;
    free_.push_back(&place);
  }

  EngineBackend& backend_;
  engine::Engine& engine_;
  Arrivals& arrivals_;
  PassResult& result_;
  std::unique_ptr<Carrier> carrier_;
  std::vector<Place> places_;
  std::vector<Place*> free_;
  uint64_t next_ = 0;       // batch
  uint32_t at_engine_ = 0;  // bursts
};

PassResult EngineBackend::run(const Pass& pass) {
  prepare(pass);
  PassResult result;
  Arrivals arrivals(pass_);
  result.batch_us.resize(arrivals.count());
  std::vector<std::unique_ptr<Server>> servers;
  for (engine::Engine* const engine : engines_) {
    servers.push_back(std::make_unique<Server>(*this, *engine, arrivals, result));
  }
  arrivals.start();
  std::vector<std::thread> threads;
  for (const auto& server : servers) threads.emplace_back([&server] { server->run(); });
  for (std::thread& thread : threads) thread.join();
  result.seconds = us_since(arrivals.begin()) / 1e6;
  for (engine::Engine* const engine : engines_) engine->release_device();
  end_pass();
  return result;
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
