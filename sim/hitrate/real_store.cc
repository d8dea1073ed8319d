// SPDX-License-Identifier: Apache-2.0
#include "hitrate/real_store.h"

#include <algorithm>
#include <utility>

#include "base/assert.h"
#include "base/mem.h"

namespace warpcache::sim {
namespace {

// A batch's epoch, left on every way out.
class InBatch {
 public:
  InBatch(const store::StoreRef& ref, store::ThreadContext* thread) : ref_(ref), thread_(thread) {
    ref_.enter_batch(*thread_);
  }
  ~InBatch() { ref_.leave_batch(*thread_); }
  InBatch(const InBatch&) = delete;
  InBatch& operator=(const InBatch&) = delete;

 private:
  const store::StoreRef& ref_;
  store::ThreadContext* thread_;
};

// A key's bytes. Their number does not matter to look-ups, only to the memory that an item takes.
class Name {
 public:
  Name(const bench::ItemMaker& maker, uint64_t id) { maker.write_key(id, sizeof bytes_, bytes_); }
  Bytes view() const { return {reinterpret_cast<const uint8_t*>(bytes_), sizeof bytes_}; }

 private:
  char bytes_[bench::kKeySizeMin];
};

}  // namespace

std::unique_ptr<RealStore> RealStore::create(uint64_t memory, uint64_t seed,
                                             uint64_t segment_size) {
  store::StoreConfig config;
  config.memory_limit = memory;
  config.memory_reach = memory;
  config.segment_size = segment_size;
  config.threads = 1;
  config.maintenance_thread = false;
  config.manual_clock = true;
  config.seed = seed;
  std::unique_ptr<store::Store> store;
  if (store::Store::create(config, &store) != Status::kOk) return nullptr;
  if (store->stats().memory_limit > memory) return nullptr;  // its least is more
  return std::unique_ptr<RealStore>(new RealStore(std::move(store), seed));
}

RealStore::RealStore(std::unique_ptr<store::Store> store, uint64_t seed)
    : store_(std::move(store)), ref_(store_->ref()), maker_(seed) {
  const Status status = store_->register_thread(&thread_);
  WC_ASSERT(status == Status::kOk);
}

RealStore::~RealStore() { store_->unregister_thread(&thread_); }

bool RealStore::get(const Key& key, uint32_t* value) {
  const Name name(maker_, key.id);
  const InBatch batch(ref_, &thread_);
  const store::Found found = ref_.find(ref_.hash(name.view()), name.view());
  if (!found || !ref_.alive(*found.item, now_)) return false;
  store::record_hit(found, now_);
  if (value != nullptr) *value = found.item->client_flags;
  return true;
}

Status RealStore::try_set(Bytes name, const Entry& entry) {
  const InBatch batch(ref_, &thread_);
  // The key's further bytes are counted with the value.
  const uint32_t value_size =
      entry.value_size + entry.key_size - std::min<uint32_t>(entry.key_size, bench::kKeySizeMin);
  store::Allocation allocation;
  const Status status =
      ref_.allocate(thread_, static_cast<uint8_t>(name.size), value_size, entry.expiry, allocation);
  if (status != Status::kOk) return status;
  mem_copy(allocation.item->key_data(), name.data, name.size);
  allocation.item->client_flags = entry.value;
  const uint64_t hash = ref_.hash(name);
  store::LockedPair pair(ref_, hash);
  const store::Found existing = pair.find(name);
  allocation.item->store_cas(ref_.next_cas(thread_, existing ? existing.item->load_cas() : 0));
  pair.publish(thread_, allocation, existing);
  return Status::kOk;
}

void RealStore::set(const Key& key, const Entry& entry) {
  const Name name(maker_, key.id);
  Status status = try_set(name.view(), entry);
  while (status == Status::kDeferred) {
    const uint64_t bytes = store::item_bytes(entry.key_size, entry.value_size);
    if (store_->reclaim(bytes) != Status::kOk) break;
    status = try_set(name.view(), entry);
  }
  // memcached's rule: a key whose new value cannot be stored loses its old one.
  if (status != Status::kOk) erase(key);
}

bool RealStore::erase(const Key& key) {
  const Name name(maker_, key.id);
  const InBatch batch(ref_, &thread_);
  store::LockedPair pair(ref_, ref_.hash(name.view()));
  const store::Found found = pair.find(name.view());
  if (found) pair.unlink(thread_, found);
  return static_cast<bool>(found);
}

uint64_t RealStore::items() const { return store_->stats().get(store::StoreCounter::kItems); }

uint64_t RealStore::moved() const { return store_->stats().get(store::StoreCounter::kMovedBytes); }

uint64_t RealStore::item_bytes() const {
  return store_->stats().get(store::StoreCounter::kBytes) - items() * sizeof(store::Item);
}

uint64_t RealStore::used_bytes() const { return store_->stats().used_bytes; }

uint64_t RealStore::evictions() const { return store_->stats().get(store::StoreCounter::kEvicted); }

void RealStore::set_clock(uint16_t second) {
  if (second == now_) return;
  now_ = second;
  store_->set_clock(second);
}

}  // namespace warpcache::sim
