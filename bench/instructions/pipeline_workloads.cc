// SPDX-License-Identifier: Apache-2.0
//
// Fixed workloads for counting instructions: requests from memory through framing, engine and store
// to replies in memory, without sockets. A run executes one workload and is deterministic.
// bench/instructions/run counts the instructions inside Worker::run_once() with callgrind.
#include <fmt/core.h>

#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "base/assert.h"
#include "engine/cpu/cpu_engine.h"
#include "engine/testing/store_admin.h"
#include "instructions/workloads.h"
#include "protocol/framing/frame.h"
#include "store/host/store.h"
#include "worker/worker.h"

namespace warpcache::bench {
namespace {

constexpr uint32_t kKeys = 20'000;
constexpr uint32_t kValueSize = 100;
constexpr uint32_t kPipelined = 32;
constexpr uint32_t kKeysOfMultiget = 100;

// Delivers one stream or datagram in each iteration. Discards replies after a read of their first
// byte.
class MemoryTransport final : public io::Transport {
 public:
  explicit MemoryTransport(bool datagrams) : datagrams_(datagrams) {}

  void set_input(const std::string& input) { input_ = input; }
  uint64_t reply_bytes() const { return reply_bytes_; }
  void close() { observer_->closed(session_, io::CloseReason::kNormal); }

  void attach(io::SessionObserver& observer, io::PinReleaser&) override { observer_ = &observer; }
  bool receive(io::RxBurst& burst, int) override {
    io::RxChunk chunk;
    chunk.size = static_cast<uint32_t>(input_.size());
    chunk.datagram = datagrams_;
    chunk.session = datagrams_ ? nullptr : &session_;
    chunk.connection_id = datagrams_ ? 0 : 1;
    std::memcpy(burst.arena.data, input_.data(), input_.size());
    burst.arena.used = chunk.size;
    burst.chunks.push_back(chunk);
    return true;
  }
  void complete(const io::RxBurst&, const io::Completion* completions, uint32_t count) override {
    for (uint32_t i = 0; i < count; ++i) {
      const io::Completion& completion = completions[i];
      WC_ASSERT(datagrams_ || completion.next->consumed == completion.chunk->size);
      for (uint32_t j = 0; j < completion.span_count; ++j) {
        const protocol::ReplySpan& span = completion.spans[j];
        WC_ASSERT(span.pin == 0 && std::memcmp(span.data, "ERR", 3) != 0);
        reply_bytes_ += span.size;
      }
    }
  }
  void wake() override {}

 private:
  bool datagrams_;
  std::string input_;
  io::SessionStorage session_{};
  io::SessionObserver* observer_ = nullptr;
  uint64_t reply_bytes_ = 0;
};

struct Workload {
  uint32_t requests;  // in one message
  std::function<std::string(std::minstd_rand&)> message;
  bool datagrams = false;
};

std::string key(std::minstd_rand& random) { return fmt::format("key:{:026}", random() % kKeys); }

std::string times(uint32_t count, const std::function<std::string()>& make) {
  std::string text;
  for (uint32_t i = 0; i < count; ++i) text += make();
  return text;
}

std::string binary_get(const std::string& key) {
  std::string text(24, '\0');
  text[0] = '\x80';
  text[3] = text[11] = static_cast<char>(key.size());
  return text + key;
}

std::map<std::string, Workload> workloads() {
  using Random = std::minstd_rand;
  const std::string value(kValueSize, 'v');
  const auto get = [](Random& r) { return "get " + key(r) + "\r\n"; };
  const auto mg = [](Random& r) { return "mg " + key(r) + " v\r\n"; };
  const auto mg_flags = [](Random& r) { return "mg " + key(r) + " f v\r\n"; };
  const auto set = [value](Random& r) { return "set " + key(r) + " 0 0 100\r\n" + value + "\r\n"; };
  const auto set_flags = [value](Random& r) {  // of ten digits, as clients' marks of types may be
    return "set " + key(r) + " 4026531841 0 100\r\n" + value + "\r\n";
  };
  const auto ms = [value](Random& r) { return "ms " + key(r) + " 100\r\n" + value + "\r\n"; };
  const auto missed = [](Random& r) { return "get no-" + key(r) + "\r\n"; };
  const auto touch = [](Random& r) { return "touch " + key(r) + " 0\r\n"; };
  const auto binary = [](Random& r) { return binary_get(key(r)); };
  const auto pipelined = [](const std::function<std::string(Random&)>& make) {
    return Workload{kPipelined,
                    [make](Random& r) { return times(kPipelined, [&] { return make(r); }); }};
  };
  const auto multiget = [](Random& r) {
    return "get" + times(kKeysOfMultiget, [&] { return " " + key(r); }) + "\r\n";
  };
  return {{"get alone", {1, get}},
          {"set alone", {1, set}},
          {"get pipelined 32", pipelined(get)},
          {"get missed, pipelined 32", pipelined(missed)},
          {"mg pipelined 32", pipelined(mg)},
          {"mg with flags pipelined 32", pipelined(mg_flags)},
          {"multiget of 100, a key", {kKeysOfMultiget, multiget}},
          {"set pipelined 32", pipelined(set)},
          {"set with flags pipelined 32", pipelined(set_flags)},
          {"ms pipelined 32", pipelined(ms)},
          {"touch pipelined 32", pipelined(touch)},
          {"binary get pipelined 32", pipelined(binary)},
          {"get in a datagram", {1, get, true}}};
}

// Stores every key without run_once(), so that the fill is not counted.
void fill(engine::Engine& engine) {
  constexpr protocol::FrameLimits kLimits = {1 << 20, 1 << 16, true, protocol::kProtocolAuto};
  const std::string value(kValueSize, 'v');
  for (uint32_t i = 0; i < kKeys; ++i) {
    std::string text = fmt::format("set key:{:026} 0 0 {}\r\n{}\r\n", i, value.size(), value);
    protocol::FrameState state{};
    engine::Batch batch;
    batch.input = reinterpret_cast<uint8_t*>(text.data());
    batch.frames.resize(1);
    const protocol::FrameResult framed =
        protocol::frame(state, kLimits, {batch.input, text.size()}, 0, 0, batch.frames.data(), 1);
    WC_ASSERT(framed.count == 1 && framed.consumed == text.size());
    engine::BatchEntry entry;
    entry.frame_count = 1;
    entry.authenticated = true;
    batch.entries.push_back(entry);
    engine.submit(&batch);
    WC_ASSERT(engine.poll() == &batch);
  }
}

void run(const Workload& workload, uint32_t iterations) {
  const std::unique_ptr<store::Store> store = make_store();
  engine::StoreAdmin admin(*store);
  engine::CpuEngine engine({}, *store, admin);
  MemoryTransport transport(workload.datagrams);
  worker::Worker worker({}, transport, engine);
  fill(engine);
  std::minstd_rand random(1);
  for (uint32_t i = 0; i < iterations; ++i) {
    transport.set_input(workload.message(random));
    WC_ASSERT(worker.run_once(0));
  }
  if (!workload.datagrams) transport.close();
  fmt::print("{}\n", uint64_t{iterations} * workload.requests);
}

}  // namespace
}  // namespace warpcache::bench

int main(int argc, char** argv) {
  namespace bench = warpcache::bench;
  return bench::run_named(
      argc, argv, bench::workloads(), 1000,
      "Runs one workload through the pipeline and prints its number of requests", "messages",
      bench::run);
}
