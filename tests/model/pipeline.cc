// SPDX-License-Identifier: Apache-2.0
#include "model/pipeline.h"

#include <stdexcept>
#include <utility>

#include "base/assert.h"
#include "protocol/version.h"

namespace warpcache::model {

namespace {

constexpr uint64_t kHashSeed = 12345;
constexpr int kIterationsMax = 2'000'000;
constexpr uint32_t kPinWaitMsMax = 60'000;  // the model knows no value that has waited too long

worker::WorkerConfig worker_config(const PipelineConfig& config) {
  worker::WorkerConfig worker;
  worker.item_size_max = config.item_size_max;
  worker.body_wait = {};  // in a single thread nobody frees memory meanwhile
  if (config.cuts % 3 == 1) worker.requests_per_stream_max = 3;
  return worker;
}

}  // namespace

std::unique_ptr<engine::Rig> Pipeline::make_rig(const PipelineConfig& config) {
  engine::RigConfig rig;
  rig.item_size_max = config.item_size_max;
  rig.gpu_blocks = config.gpu_blocks;
  rig.pin_wait_ms_max = kPinWaitMsMax;
  // Which datagrams are refused must not depend on the time that the ones before take.
  rig.admin_window = engine::AdminBudget::Clock::duration::zero();
  rig.store.memory_limit = config.memory_bytes;
  rig.store.memory_reach = config.memory_bytes;
  rig.store.threads = 1;
  rig.store.keep_all = true;
  rig.store.maintenance_thread = false;
  rig.store.manual_clock = true;
  rig.store.seed = kHashSeed;
  std::string why;
  std::unique_ptr<engine::Rig> made = engine::make_rig(config.engine, rig, &why);
  if (made == nullptr) throw std::runtime_error("no engine: " + why);
  return made;
}

Pipeline::Pipeline(const PipelineConfig& config)
    : rig_(make_rig(config)),
      admin_(rig_->store()),
      worker_(worker_config(config), transport_, rig_->make_engine(admin_)),
      cuts_(config.cuts),
      follows_requests_(config.engine == engine::RigKind::kCpu) {
  transport_.cut = [this](size_t available) { return cuts_.next(available); };
  // A GPU runs the datagrams of a batch in any order; the model takes them one after the other.
  if (config.engine != engine::RigKind::kCpu) transport_.datagrams_per_burst = 1;
}

Pipeline::~Pipeline() { (void)finish(); }

void Pipeline::send(int stream, const std::string& bytes) {
  worker::FakeTransport::Stream*& place = streams_[stream];
  if (place == nullptr || place->closed) {
    place = &transport_.open();
    all_streams_.push_back(place);
  }
  place->input += bytes;
}

bool Pipeline::run() {
  for (int i = 0; i < kIterationsMax && !transport_.idle(); ++i) (void)worker_.run_once(0);
  rig_->maintain();
  return transport_.idle();
}

std::string Pipeline::take_output(int stream) {
  return std::exchange(stream_at(stream).output, {});
}

std::vector<std::string> Pipeline::take_datagrams() {
  const std::vector<std::string>& all = transport_.datagram_replies();
  std::vector<std::string> taken(all.begin() + static_cast<ptrdiff_t>(datagrams_taken_), all.end());
  datagrams_taken_ = all.size();
  return taken;
}

void Pipeline::advance(uint32_t seconds) {
  store::StoreOwner& store = rig_->store();
  store.set_clock(store.clock().now + seconds);
}

std::optional<std::map<std::string, std::string>> Pipeline::contents() {
  std::map<std::string, std::string> items;
  bool told = true;
  for (uint64_t cursor = 0; told && cursor != store::StoreOwner::kWalkEnd;) {
    const Status status = rig_->store().walk(cursor, [&](const store::WalkedItem& walked) {
      const Bytes key = walked.key;
      std::string& value = items[{reinterpret_cast<const char*>(key.data), key.size}];
      told = rig_->value_of(*walked.item, &value) && told;
    });
    WC_ASSERT(status == Status::kOk);
  }
  return told ? std::optional(items) : std::nullopt;
}

std::string Pipeline::finish() {
  for (worker::FakeTransport::Stream* stream : all_streams_) {
    if (!stream->closed) transport_.close(*stream);
  }
  rig_->rest();
  const store::StoreStats stats = rig_->store().stats();
  if (stats.pinned_segments != 0) return "segments are still pinned";
  if (stats.reserved_segments != 0) return "segments are still reserved";
  return {};
}

std::string Pipeline::version() const {
  const Bytes version = protocol::server_version();
  return {reinterpret_cast<const char*>(version.data), version.size};
}

}  // namespace warpcache::model
