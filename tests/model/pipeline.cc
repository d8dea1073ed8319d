// SPDX-License-Identifier: Apache-2.0
#include "model/pipeline.h"

#include <algorithm>
#include <utility>

#include "base/assert.h"
#include "wire/version.h"

namespace warpcache::model {

namespace {

// Enough for every script, so that nothing is evicted; small, so that chains begin at 32 KB.
constexpr uint64_t kMemoryBytes = uint64_t{64} << 20;
constexpr uint64_t kHashSeed = 12345;
constexpr int kTurnsMax = 2'000'000;

engine::CpuEngineConfig engine_config(const PipelineConfig& config) {
  engine::CpuEngineConfig engine;
  engine.item_size_max = config.item_size_max;
  return engine;
}

batcher::WorkerConfig worker_config(const PipelineConfig& config) {
  batcher::WorkerConfig worker;
  worker.item_size_max = config.item_size_max;
  if (config.cuts % 3 == 1) worker.requests_per_stream_max = 3;
  return worker;
}

}  // namespace

std::unique_ptr<store::Store> Pipeline::make_store() {
  store::StoreConfig config;
  config.memory_limit = kMemoryBytes;
  config.memory_reach = kMemoryBytes;
  config.threads = 1;
  config.keep_all = true;
  config.maintenance_thread = false;
  config.manual_clock = true;
  config.seed = kHashSeed;
  std::unique_ptr<store::Store> store;
  WC_ASSERT(store::Store::create(config, &store) == Status::kOk);
  return store;
}

Pipeline::Pipeline(const PipelineConfig& config)
    : store_(make_store()),
      admin_(*store_),
      engine_(engine_config(config), *store_, admin_),
      worker_(worker_config(config), transport_, engine_),
      random_(static_cast<uint32_t>(config.cuts)),
      cuts_(config.cuts != 0) {
  transport_.cut = [this](size_t available) { return next_cut(available); };
}

Pipeline::~Pipeline() { (void)finish(); }

size_t Pipeline::next_cut(size_t available) {
  if (!cuts_) return available;
  const size_t most = std::max<size_t>(available, 1);
  switch (random_() % 4) {
    case 0:
      return most > 4096 ? most / 8 : 1 + random_() % std::min<size_t>(most, 16);
    case 1:
      return 1 + random_() % most;
    default:
      return most;
  }
}

void Pipeline::send(int stream, const std::string& bytes) {
  batcher::FakeTransport::Stream*& place = streams_[stream];
  if (place == nullptr || place->closed) {
    place = &transport_.open();
    all_streams_.push_back(place);
  }
  place->input += bytes;
}

bool Pipeline::run() {
  for (int i = 0; i < kTurnsMax && !transport_.idle(); ++i) (void)worker_.turn(0);
  store_->maintain();
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

void Pipeline::advance(uint32_t seconds) { store_->set_clock(store_->clock().now + seconds); }

std::optional<std::map<std::string, std::string>> Pipeline::contents() {
  std::map<std::string, std::string> items;
  const auto text = [](Bytes bytes) {
    return std::string(reinterpret_cast<const char*>(bytes.data), bytes.size);
  };
  store_->walk([&](const store::WalkedItem& walked) {
    std::string& value = items[text(walked.key)];
    store::ValuePieces pieces = store_->ref().pieces(*walked.item);
    for (Bytes piece = pieces.first(); !piece.empty(); piece = pieces.next()) value += text(piece);
    return true;
  });
  return items;
}

std::string Pipeline::finish() {
  for (batcher::FakeTransport::Stream* stream : all_streams_) {
    if (!stream->closed) transport_.close(*stream);
  }
  const store::StoreStats stats = store_->stats();
  if (stats.pinned_segments != 0) return "segments are still pinned";
  if (stats.reserved_segments != 0) return "segments are still reserved";
  return {};
}

std::string Pipeline::version() const {
  const Bytes version = wire::server_version();
  return {reinterpret_cast<const char*>(version.data), version.size};
}

}  // namespace warpcache::model
