// SPDX-License-Identifier: Apache-2.0
#include "edge/get_case.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/mem.h"
#include "edge/kernels/get_request.h"
#include "store/host/store.h"
#include "store/host/tables.h"

namespace warpcache::edge_sim {
namespace {

// The dissertation's (section 5.5): 8 K SETs, 16-byte keys, 2-byte values.
constexpr uint32_t kStoredKeys = 8192;
constexpr uint32_t kKeyBytes = 16;
constexpr uint32_t kMixedBytesMin = 8, kMixedBytesMax = 64;
constexpr uint32_t kValueBytes = 2;
constexpr uint64_t kStoreBytes = uint64_t{64} << 20;
constexpr uint64_t kSegmentBytes = uint64_t{1} << 20;
constexpr uint64_t kHashSeed = 12345;
constexpr uint32_t kMissesIn = 20;  // one request of these asks for a key that is not stored
constexpr uint32_t kUsualRequests = 4096;
constexpr uint32_t kBlockThreads = 128;

// A store with the keys of a case, its memory and its thread.
class FilledStore {
 public:
  ~FilledStore() {
    if (store_) store_->unregister_thread(&thread_);
  }

  bool create() {
    config_.memory_limit = config_.memory_reach = kStoreBytes;
    config_.segment_size = kSegmentBytes;
    config_.threads = 1;
    config_.readers_max = 4;
    config_.maintenance_thread = false;
    config_.manual_clock = true;
    config_.huge_pages = false;
    config_.seed = kHashSeed;
    if (store::Store::create(config_, &store_) != Status::kOk) return false;
    if (store_->register_thread(&thread_) != Status::kOk) return false;
    return true;
  }

  bool set(const std::string& key) {
    const store::StoreRef ref = store_->ref();
    const Bytes name = {reinterpret_cast<const uint8_t*>(key.data()), key.size()};
    ref.enter_batch(thread_);
    store::Allocation allocation;
    const Status status =
        ref.allocate(thread_, static_cast<uint8_t>(key.size()), kValueBytes, 0, allocation);
    if (status == Status::kOk) {
      mem_copy(allocation.item->key_data(), name.data, name.size);
      ref.write_value(*allocation.item, 0, name.sub(name.size - kValueBytes, kValueBytes));
      store::LockedPair pair(ref, ref.hash(name));
      pair.publish(thread_, allocation, pair.find(name));
    }
    ref.leave_batch(thread_);
    return status == Status::kOk;
  }

  store::StoreRef ref() const { return store_->ref(); }
  std::vector<Buffer> memory() const {
    const store::Geometry geometry = store::geometry_of(config_);
    const store::Tables tables(config_, geometry);
    return {{ref().core.arena, geometry.arena_bytes()}, {ref().core.shared, tables.bytes()}};
  }

 private:
  store::StoreConfig config_;
  std::unique_ptr<store::Store> store_;
  store::ThreadContext thread_;
};

// Keys of one number have one length.
std::string key_of(uint32_t number, bool mixed) {
  std::mt19937_64 random(number);
  const uint32_t span = kMixedBytesMax - kMixedBytesMin + 1;
  const uint32_t bytes =
      mixed ? kMixedBytesMin + static_cast<uint32_t>(random() % span) : kKeyBytes;
  std::string key(bytes, 'k');
  const std::string digits = fmt::format("{:07}", number);
  key.replace(bytes - digits.size(), digits.size(), digits);
  return key;
}

void make(const CaseOptions& options, bool mixed, std::mt19937_64& random, Case* out) {
  out->launch.block_x = 0;
  const auto store = std::make_shared<FilledStore>();
  bool filled = store->create();
  for (uint32_t i = 0; filled && i < kStoredKeys; ++i) filled = store->set(key_of(i, mixed));
  if (!filled) return;
  const auto count =
      static_cast<uint32_t>(std::max(1.0, std::round(kUsualRequests * options.scale)));
  auto* const keys = out->allocate<uint8_t>(size_t{count} * kMixedBytesMax);
  auto* const first = out->allocate<uint32_t>(count + 1);
  for (uint32_t i = 0; i < count; ++i) {
    const bool misses = random() % kMissesIn == 0;
    const std::string key =
        key_of(misses ? kStoredKeys + i : static_cast<uint32_t>(random() % kStoredKeys), mixed);
    std::copy(key.begin(), key.end(), keys + first[i]);
    first[i + 1] = first[i] + static_cast<uint32_t>(key.size());
  }
  auto* const replies = out->allocate<uint32_t>(size_t{count} * kReplyWords);
  for (const Buffer& memory : store->memory()) out->buffers.push_back(memory);
  out->keep(store);
  const GetBatch batch = {store->ref(), keys, first, replies, count, 0};
  out->launch = {(count + kBlockThreads - 1) / kBlockThreads, 1, kBlockThreads, 1, {}};
  out->launch.push(batch);
  out->check = [=] {  // what the same code answers on the host
    std::vector<uint32_t> wanted(size_t{count} * kReplyWords);
    GetBatch host = batch;
    host.replies = wanted.data();
    uint32_t hits = 0;
    for (uint32_t i = 0; i < count; ++i) {
      serve_get(host, i);
      hits += wanted[size_t{i} * kReplyWords] != kMissed;
    }
    if (hits < count / 2) return fmt::format("only {} of {} requests hit", hits, count);
    for (size_t i = 0; i < wanted.size(); ++i) {
      if (replies[i] != wanted[i])
        return fmt::format("word {} of the replies is {:#x}, the host's has {:#x}", i, replies[i],
                           wanted[i]);
    }
    return std::string();
  };
}

}  // namespace

void make_get(const CaseOptions& options, std::mt19937_64& random, Case* out) {
  make(options, false, random, out);
}
void make_get_mixed(const CaseOptions& options, std::mt19937_64& random, Case* out) {
  make(options, true, random, out);
}

}  // namespace warpcache::edge_sim
