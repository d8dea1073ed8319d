// SPDX-License-Identifier: Apache-2.0
//
// Copies of items of a GPU's store (store/cuda/copy_guard.h): none outlives its item, whatever ends
// that. That no reader sees an old copy while all this goes on at once is checked by
// tests/stress/nic_cache_test.cc.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "engine/testing/rig.h"
#include "engine/testing/store_admin.h"
#include "engine/testing/test_batch.h"
#include "gpu/talker.h"
#include "net/testing/packets.h"
#include "store/cuda/cuda_store.h"

namespace warpcache::gpu_tests {
namespace {

using engine::RigKind;

std::string text_of(Bytes bytes) { return {reinterpret_cast<const char*>(bytes.data), bytes.size}; }

// An owner of copies, called from any thread.
struct Owner {
  struct Copy {
    std::string value;  // as far as it was given
    uint32_t value_size = 0;
    uint32_t client_flags = 0;
    uint32_t expiry = 0;
    uint32_t generation = 0;
    uint64_t cas = 0;
  };

  store::CopyHooks make_hooks() {
    store::CopyHooks hooks;
    hooks.context = this;
    hooks.drop = [](void* context, Bytes key) {
      auto& self = *static_cast<Owner*>(context);
      const std::lock_guard guard(self.mutex);
      self.copies.erase(text_of(key));
      self.dropped.push_back(text_of(key));
    };
    hooks.flush = [](void* context, uint32_t next) {
      auto& self = *static_cast<Owner*>(context);
      const std::lock_guard guard(self.mutex);
      self.generation = next;
    };
    hooks.clock = [](void* context, uint32_t second) {
      auto& self = *static_cast<Owner*>(context);
      const std::lock_guard guard(self.mutex);
      self.now = second;
    };
    return hooks;
  }

  // A copy that can be read; null: there is none.
  const Copy* find(const std::string& key) {
    const std::lock_guard guard(mutex);
    const auto found = copies.find(key);
    if (found == copies.end() || found->second.generation != generation) return nullptr;
    const uint32_t expiry = found->second.expiry;
    return expiry != 0 && expiry <= now ? nullptr : &found->second;
  }

  std::mutex mutex;  // guards what follows
  std::map<std::string, Copy> copies;
  std::vector<std::string> dropped;
  uint32_t generation = 0;
  uint32_t now = 0;
};

class CopiesOfGpu : public testing::TestWithParam<RigKind> {
 protected:
  static constexpr uint64_t kMiB = uint64_t{1} << 20;

  void start(uint64_t memory = 64 * kMiB) {
    engine::RigConfig config;
    config.store.memory_limit = config.store.memory_reach = memory;
    config.store.manual_clock = true;
    config.store.maintenance_thread = false;
    config.store.copies = owner_.make_hooks();
    std::string why;
    config.engines = 2;
    rig_ = engine::make_rig(GetParam(), config, &why);
    if (rig_ == nullptr) GTEST_SKIP() << why;
    store_ = dynamic_cast<store::CudaStore*>(&rig_->store());
    admin_ = std::make_unique<engine::StoreAdmin>(rig_->store());
    engine_ = &rig_->make_engine(*admin_);
    talker_ = std::make_unique<Talker>(*engine_);
  }
  void TearDown() override {
    if (rig_ != nullptr) rig_->rest();
  }

  std::string say(const std::string& text) { return talker_->say(text); }
  std::string set(const std::string& key, const std::string& value,
                  const std::string& words = " 0 0 ") {
    return "set " + key + words + std::to_string(value.size()) + "\r\n" + value + "\r\n";
  }
  // As the NIC cache does it. False: the item cannot be copied now.
  bool copy(const std::string& key) {
    bool made = false;
    rig_->visit_item(bytes_of(key), [&](const store::Item& item) {
      EXPECT_EQ(text_of(item.key()), key);
      Owner::Copy copy;
      const bool whole = !item.chained() && item.value_size <= store::kReadValueMax;
      if (whole) copy.value = text_of({item.value_data(), item.value_size});
      copy.value_size = item.value_size;
      copy.client_flags = item.client_flags;
      copy.expiry = item.load_expiry();
      copy.generation = item.load_flush_generation();
      copy.cas = item.load_cas();
      const std::lock_guard guard(owner_.mutex);
      owner_.copies[key] = copy;
      made = true;
    });
    return made;
  }

  Owner owner_;
  std::unique_ptr<engine::Rig> rig_;
  store::CudaStore* store_ = nullptr;
  std::unique_ptr<engine::StoreAdmin> admin_;
  engine::Engine* engine_ = nullptr;
  std::unique_ptr<Talker> talker_;
};

TEST_P(CopiesOfGpu, ShowTheItem) {
  start();
  if (IsSkipped()) return;
  const uint32_t now = rig_->store().clock().now;
  for (const size_t size : {0u, 1u, 64u, 1400u, 1536u, 1537u, 100'000u}) {
    const std::string key(1 + size % 250, 'k');
    std::string value(size, 'v');
    for (size_t i = 0; i < size; ++i) value[i] = static_cast<char>('a' + i % 26);
    ASSERT_EQ(say(set(key, value, " 77 100 ")), "STORED\r\n");
    ASSERT_TRUE(copy(key));
    const Owner::Copy* const made = owner_.find(key);
    ASSERT_NE(made, nullptr);
    EXPECT_EQ(made->value, size <= store::kReadValueMax ? value : "");
    EXPECT_EQ(made->value_size, size);
    EXPECT_EQ(made->client_flags, 77u);
    EXPECT_EQ(made->expiry, now + 100);
    const std::string reply = say("gets " + key + "\r\n");
    EXPECT_EQ(reply.substr(0, reply.find("\r\n")),
              "VALUE " + key + " 77 " + std::to_string(size) + " " + std::to_string(made->cas));
  }
  EXPECT_FALSE(copy("nothing"));
}

std::string binary_request(uint8_t opcode, const std::string& extras, const std::string& key,
                           const std::string& value) {
  const auto body = static_cast<uint32_t>(extras.size() + key.size() + value.size());
  std::string text = {'\x80', static_cast<char>(opcode), 0, static_cast<char>(key.size())};
  text += {static_cast<char>(extras.size()), 0, 0, 0, 0, 0, static_cast<char>(body >> 8),
           static_cast<char>(body)};
  return text + std::string(12, '\0') + extras + key + value;
}

TEST_P(CopiesOfGpu, AreGoneAfterEveryChange) {
  start();
  if (IsSkipped()) return;
  const std::string extras(8, '\0');
  const std::vector<std::string> changes = {
      "set k 0 0 1\r\n6\r\n",
      "add k 0 0 1\r\n6\r\n",  // changes nothing, which the host does not know before
      "replace k 0 0 1\r\n6\r\n",
      "append k 0 0 1\r\n6\r\n",
      "prepend k 0 0 1\r\n6\r\n",
      "cas k 0 0 1 1\r\n6\r\n",
      "delete k\r\n",
      "delete k noreply\r\n",
      "incr k 1\r\n",
      "decr k 1\r\n",
      "touch k 100\r\n",
      "gat 100 k\r\n",
      "gats 100 other k\r\n",
      "ms k 1\r\n6\r\n",
      "ms aw== 1 b\r\n6\r\n",  // k
      "md k\r\n",
      "md k I\r\n",
      "md k q x\r\n",
      "md aw== b\r\n",
      "ma k\r\n",
      "mg k v T100\r\n",
      "mg k v R100000\r\n",
      "mg k N100 v\r\n",
      "mg aw== b T100 v\r\n",
      "get k\r\nset k 0 0 1\r\n6\r\nget k\r\n",
      "set k 0 0 70000000\r\n",  // too large: the old value goes
      binary_request(0x01, extras, "k", "6"),
      binary_request(0x11, extras, "k", "6"),
      binary_request(0x04, "", "k", ""),
      binary_request(0x0e, "", "k", "6"),
      binary_request(0x1c, std::string(4, '\1'), "k", ""),
      binary_request(0x1d, std::string(4, '\1'), "k", ""),
  };
  for (const std::string& change : changes) {
    SCOPED_TRACE(change);
    ASSERT_EQ(say(set("k", "5")), "STORED\r\n");
    ASSERT_TRUE(copy("k"));
    ASSERT_NE(owner_.find("k"), nullptr);
    (void)say(change);
    EXPECT_EQ(owner_.find("k"), nullptr);
  }
}

TEST_P(CopiesOfGpu, StayThroughReadsAndChangesOfOthers) {
  start();
  if (IsSkipped()) return;
  ASSERT_EQ(say(set("k", "5")), "STORED\r\n");
  ASSERT_TRUE(copy("k"));
  for (const std::string& text :
       {std::string("get k\r\n"), std::string("gets k other\r\n"),
        std::string("mg k v f t h l\r\n"), std::string("mg aw== b v\r\n"), std::string("mn\r\n"),
        std::string("version\r\n"), set("other", "k"), std::string("delete kk\r\n"),
        std::string("no such command\r\n"), binary_request(0x00, "", "k", ""),
        binary_request(0x0d, "", "k", "")}) {
    SCOPED_TRACE(text);
    EXPECT_NE(say(text), "");
    EXPECT_NE(owner_.find("k"), nullptr);
  }
}

// A base64 key is decoded once, by whoever runs the request.
TEST_P(CopiesOfGpu, RequestsRunAsWithoutThem) {
  start();
  if (IsSkipped()) return;
  EXPECT_EQ(say("ms Zm9v 1 b\r\n6\r\nmg Zm9v b k v\r\nmg foo k v\r\nmd Zm9v b k\r\nget foo\r\n"),
            "HD\r\nVA 1 kZm9v b\r\n6\r\nVA 1 kZm9v b\r\n6\r\nHD kZm9v b\r\nEND\r\n");
}

TEST_P(CopiesOfGpu, AreNotMadeWhileABatchMayChangeTheItem) {
  start();
  if (IsSkipped()) return;
  engine::Engine& other = rig_->make_engine(*admin_);
  uint8_t* const input = other.input_memory(64 * 1024);
  ASSERT_EQ(say(set("k", "5") + set("l", "5")), "STORED\r\nSTORED\r\n");
  engine::TestBatch batch;
  batch.add("get l\r\nincr k 1\r\n");
  ASSERT_TRUE(copy("k"));
  other.submit(batch.build(input));
  EXPECT_EQ(owner_.find("k"), nullptr);
  EXPECT_FALSE(copy("k"));
  EXPECT_TRUE(copy("l"));
  while (other.poll() == nullptr) {
  }
  EXPECT_EQ(batch.reply(0), "VALUE l 0 1\r\n5\r\nEND\r\n6\r\n");
  ASSERT_TRUE(copy("k"));
  EXPECT_EQ(owner_.find("k")->value, "6");
}

TEST_P(CopiesOfGpu, OfFramesAreTakenBackTheSame) {
  start();
  if (IsSkipped()) return;
  engine::Engine& frames = rig_->make_engine(*admin_);
  ASSERT_EQ(frames.open_packets({net::testing::kTestPort, 0}), "");
  constexpr uint32_t kSlotBytes = 512;
  constexpr uint32_t kReplyBytes = 64 * 1024;
  constexpr uint32_t kFramesMax = 8;
  net::PacketBurst burst;
  burst.input = frames.packet_memory(kFramesMax * kSlotBytes);
  burst.replies = frames.packet_memory(kReplyBytes);
  burst.reply_bytes = kReplyBytes;
  burst.results =
      reinterpret_cast<net::PacketResult*>(frames.packet_memory(kFramesMax * sizeof(uint32_t)));
  auto* const slots = reinterpret_cast<net::PacketSlot*>(
      frames.packet_memory(kFramesMax * sizeof(net::PacketSlot)));
  burst.slots = slots;
  const auto run = [&](const std::vector<std::string>& texts) {
    burst.count = 0;
    for (const std::string& text : texts) {
      const std::string frame = net::testing::frame_of(std::string("\0\1\0\0\0\1\0\0", 8) + text);
      ASSERT_LE(frame.size(), kSlotBytes);
      const uint32_t at = burst.count * kSlotBytes;
      std::copy(frame.begin(), frame.end(), burst.input + at);
      slots[burst.count++] = {at, static_cast<uint32_t>(frame.size())};
    }
    burst.input_bytes = burst.count * kSlotBytes;
    frames.submit_packets(&burst);
    EXPECT_EQ(copy("k"), texts.size() == 1);  // while it is under way
    while (frames.poll_packets() == nullptr) {
    }
  };
  ASSERT_EQ(say(set("k", "5")), "STORED\r\n");
  // One key, several, and what the GPU leaves to the host.
  run({"get other k\r\n"});
  for (const char* const change :
       {"set k 0 0 1\r\n6\r\n", "incr k 1\r\n", "gat 100 k\r\n", "md aw== b\r\n",
        "set k 0 0 1\r\n7\r\nget k\r\n", "get x\r\nset k 0 0 1\r\n7\r\n"}) {
    SCOPED_TRACE(change);
    ASSERT_EQ(say(set("k", "5")), "STORED\r\n");
    ASSERT_TRUE(copy("k"));
    run({"get k\r\n"});
    EXPECT_NE(owner_.find("k"), nullptr);
    run({"get k\r\n", change});
    EXPECT_EQ(owner_.find("k"), nullptr);
  }
  frames.release_device();
}

TEST_P(CopiesOfGpu, AreDeadFromAFlushOn) {
  start();
  if (IsSkipped()) return;
  const auto make = [this] {
    ASSERT_EQ(say(set("a:k", "5")), "STORED\r\n");
    ASSERT_TRUE(copy("a:k"));
    ASSERT_NE(owner_.find("a:k"), nullptr);
  };
  const auto pass = [this](uint32_t seconds) {
    rig_->rest();
    rig_->store().set_clock(rig_->store().clock().now + seconds);
  };
  make();
  rig_->rest();
  rig_->store().flush_all();
  EXPECT_EQ(owner_.find("a:k"), nullptr);
  EXPECT_EQ(say("get a:k\r\n"), "END\r\n");
  make();
  rig_->rest();
  ASSERT_EQ(rig_->store().flush_prefix(bytes_of("a:")), Status::kOk);
  EXPECT_EQ(owner_.find("a:k"), nullptr);
  EXPECT_EQ(say("get a:k\r\n"), "END\r\n");
  // With a delay, two of them.
  rig_->rest();
  ASSERT_EQ(rig_->store().flush_prefix(bytes_of("b:"), 5), Status::kOk);
  ASSERT_EQ(rig_->store().flush_prefix(bytes_of("a:"), 3), Status::kOk);
  make();
  pass(2);
  EXPECT_NE(owner_.find("a:k"), nullptr);
  pass(1);
  EXPECT_EQ(owner_.find("a:k"), nullptr);
  EXPECT_EQ(say("get a:k\r\n"), "END\r\n");
  make();
  pass(1);
  EXPECT_NE(owner_.find("a:k"), nullptr);
  pass(1);
  EXPECT_EQ(owner_.find("a:k"), nullptr);  // of the other prefix: all copies go
  make();
  pass(100);
  EXPECT_NE(owner_.find("a:k"), nullptr);
}

TEST_P(CopiesOfGpu, ExpireBeforeTheirItems) {
  start();
  if (IsSkipped()) return;
  ASSERT_EQ(say(set("k", "5", " 0 3 ")), "STORED\r\n");
  ASSERT_TRUE(copy("k"));
  for (uint32_t second = 1; second <= 3; ++second) {
    EXPECT_NE(owner_.find("k"), nullptr);
    rig_->rest();
    rig_->store().set_clock(rig_->store().clock().now + 1);
  }
  EXPECT_EQ(owner_.find("k"), nullptr);
  EXPECT_EQ(say("get k\r\n"), "END\r\n");
}

// The key is read by nobody, so it is evicted at last, by maintenance or for want of a place in the
// index.
TEST_P(CopiesOfGpu, AreGoneWhenTheItemIsEvicted) {
  start(2 * kMiB);
  if (IsSkipped()) return;
  constexpr uint32_t kKeys = 50;
  for (uint32_t i = 0; i < kKeys; ++i) {
    const std::string key = "copied" + std::to_string(i);
    ASSERT_EQ(say(set(key, "5")), "STORED\r\n");
    ASSERT_TRUE(copy(key));
  }
  uint32_t gone = 0;
  uint32_t number = 0;
  for (uint32_t round = 0; round < 200 && gone < kKeys; ++round) {
    std::string sets;
    for (uint32_t i = 0; i < 200; ++i) {
      sets += set("filler" + std::to_string(++number), std::string(200, 'v'));
    }
    (void)say(sets);
    rig_->rest();
    rig_->maintain();
    gone = 0;
    for (uint32_t i = 0; i < kKeys; ++i) {
      const std::string key = "copied" + std::to_string(i);
      if (store::Item header; store_->inspect(bytes_of(key), &header)) continue;
      ++gone;
      EXPECT_EQ(owner_.find(key), nullptr) << key;
      const std::lock_guard guard(owner_.mutex);
      EXPECT_NE(std::find(owner_.dropped.begin(), owner_.dropped.end(), key), owner_.dropped.end());
    }
  }
  EXPECT_EQ(gone, kKeys);
}

TEST_P(CopiesOfGpu, OfItemsThatAreNotThereAreDroppedWhenTheirReadsAreNoted) {
  start();
  if (IsSkipped()) return;
  ASSERT_EQ(say(set("there", "5")), "STORED\r\n");
  ASSERT_TRUE(copy("there"));
  {
    const std::lock_guard guard(owner_.mutex);
    owner_.copies["gone"] = {};
  }
  std::vector<std::vector<uint8_t>> keys(1200, {'t', 'h', 'e', 'r', 'e'});
  keys.push_back({'g', 'o', 'n', 'e'});
  store_->note_read(keys);
  EXPECT_NE(owner_.find("there"), nullptr);
  EXPECT_EQ(owner_.find("gone"), nullptr);
  EXPECT_EQ(say("mg there h\r\n"), "HD h1\r\n");
}

TEST_P(CopiesOfGpu, AreDeadWhenTheGpuHasFailed) {
  start();
  if (IsSkipped()) return;
  ASSERT_EQ(say(set("k", "5")), "STORED\r\n");
  ASSERT_TRUE(copy("k"));
  store_->stop_copies();
  EXPECT_EQ(owner_.find("k"), nullptr);
}

INSTANTIATE_TEST_SUITE_P(Engines, CopiesOfGpu,
                         testing::Values(RigKind::kCudaLaunch, RigKind::kCudaPersistent,
                                         RigKind::kCudaHostValues, RigKind::kCudaEdge),
                         [](const auto& made) { return engine::rig_name(made.param); });

}  // namespace
}  // namespace warpcache::gpu_tests
