// SPDX-License-Identifier: Apache-2.0
//
// Items above half a segment, and values that arrive piece by piece.
#include <random>
#include <set>

#include "store/testing/store_fixture.h"

namespace warpcache::store {
namespace {

TEST(Large, OneMegabyteInSmallMemories) {
  for (const uint64_t memory : {2 * kMiB, 64 * kMiB}) {
    for (const bool keep_all : {false, true}) {
      StoreConfig config = quiet_config(memory);
      config.keep_all = keep_all;
      const auto store = make_store(config);
      Worker worker(store.get());
      std::string value;
      for (uint64_t version = 1; version <= 20; ++version) {
        // A replacement needs space beside the old value; with keep_all in 2 MiB there is none
        // until the old value is deleted.
        if (keep_all && memory == 2 * kMiB) worker.erase("large");
        ASSERT_EQ(worker.set("large", make_value(5, version, 1'000'000)), Status::kOk)
            << memory << keep_all;
        ASSERT_TRUE(worker.get("large", &value));
        ASSERT_EQ(check_value(5, value), version);
      }
    }
  }
}

TEST(Large, EverySizeAroundTheSegment) {
  const auto store = make_store(quiet_config(16 * kMiB));
  Worker worker(store.get());
  const size_t segment = store->stats().segment_size;
  const size_t overhead = item_bytes(1, 0);
  for (const size_t around : {segment / 2, segment, 2 * segment, 3 * segment}) {
    for (size_t size = around - overhead - 3; size <= around - overhead + 3; ++size) {
      ASSERT_EQ(worker.set("k", make_value(9, size, size)), Status::kOk);
      std::string value;
      ASSERT_TRUE(worker.get("k", &value));
      ASSERT_EQ(value.size(), size);
      ASSERT_EQ(check_value(9, value), size);
    }
  }
}

TEST(Large, HalfTheMemoryInOneItem) {
  const auto store = make_store(quiet_config(256 * kMiB));
  Worker worker(store.get());
  const std::string value = make_value(3, 4, 128 * kMiB);
  ASSERT_EQ(worker.set("huge", value), Status::kOk);
  for (uint64_t i = 0; i < 50'000; ++i)
    ASSERT_EQ(worker.set(key_name(i), make_value(i, 1, 200)), Status::kOk);
  std::string back;
  ASSERT_TRUE(worker.get("huge", &back));
  EXPECT_TRUE(back == value);
  EXPECT_FALSE(worker.ref().too_large(4, 128 * kMiB));
  EXPECT_TRUE(worker.ref().too_large(4, 250 * kMiB));
  EXPECT_TRUE(worker.ref().too_large(4, uint64_t{1} << 33));
  EXPECT_EQ(worker.set("too large", std::string(250 * kMiB, 'x')), Status::kTooLarge);
}

TEST(Large, ChainsAreEvictedAndKeptByUse) {
  const auto store = make_store(quiet_config(16 * kMiB));
  Worker worker(store.get());
  std::string value;
  uint64_t kept = 0;
  for (uint64_t i = 0; i < 600; ++i) {
    ASSERT_EQ(worker.set(key_name(i), make_value(i, i, 50'000 + i * 100)), Status::kOk);
    kept += worker.get(key_name(0)) && worker.get(key_name(1)) ? 1u : 0u;
  }
  EXPECT_GT(kept, 590u);
  EXPECT_GT(store->stats().get(StoreCounter::kEvicted), 300u);
  uint64_t found = 0;
  for (uint64_t i = 0; i < 600; ++i) {
    if (!worker.get(key_name(i), &value)) continue;
    ++found;
    ASSERT_EQ(check_value(i, value), i);
  }
  EXPECT_EQ(found, store->stats().get(StoreCounter::kItems));
}

uint64_t tail_segments(const Store& store) { return store.census().get(SegmentState::kTails); }

// Chains that are a little longer than a segment share one for what is over.
TEST(Large, EndsOfChainsShareASegment) {
  const auto store = make_store(quiet_config(16 * kMiB));
  Worker worker(store.get());
  const size_t segment = store->stats().segment_size;
  const uint64_t free_before = store->stats().free_segments;
  for (uint64_t i = 0; i < 100; ++i) {
    ASSERT_EQ(worker.set(key_name(i), make_value(i, 1, segment)), Status::kOk);
  }
  EXPECT_EQ(tail_segments(*store), 2u);  // of 64 pages each
  EXPECT_EQ(free_before - store->stats().free_segments, 102u);
  // Holes are used again; an empty segment is free again.
  for (uint64_t i = 0; i < 100; i += 2) ASSERT_TRUE(worker.erase(key_name(i)));
  store->maintain();
  for (uint64_t i = 0; i < 100; i += 2) {
    ASSERT_EQ(worker.set(key_name(i), make_value(i, 2, segment)), Status::kOk);
  }
  EXPECT_EQ(tail_segments(*store), 2u);
  for (uint64_t i = 0; i < 100; ++i) {
    std::string value;
    ASSERT_TRUE(worker.get(key_name(i), &value));
    ASSERT_EQ(check_value(i, value), i % 2 == 0 ? 2u : 1u);
    ASSERT_TRUE(worker.erase(key_name(i)));
  }
  ASSERT_EQ(store->reclaim(16 * kMiB / 2), Status::kOk);
  EXPECT_EQ(tail_segments(*store), 0u);
  EXPECT_EQ(store->stats().free_segments, free_before);
}

// A pinned chain keeps its tail too.
TEST(Large, TailsOfAPinnedChainStay) {
  const auto store = make_store(quiet_config(4 * kMiB));
  Worker worker(store.get());
  const size_t size = store->stats().segment_size + 500;
  ASSERT_EQ(worker.set("pinned", make_value(1, 1, size)), Status::kOk);
  worker.enter();
  const Item* item = worker.find("pinned").item;
  const uint32_t pin = worker.ref().pin(*item, PinNeed::kMust);
  worker.leave();
  ASSERT_NE(pin, 0u);
  ASSERT_TRUE(worker.erase("pinned"));
  for (uint64_t i = 0; i < 2000; ++i) {
    ASSERT_EQ(worker.set(key_name(i), make_value(i, 1, size)), Status::kOk);
  }
  EXPECT_EQ(check_value(1, worker.value_of(*item)), 1u);
  worker.ref().unpin(pin);
}

// Items of many sizes come and go; what is read is what was written.
TEST(Large, TailsOfAllSizes) {
  const auto store = make_store(quiet_config(8 * kMiB));
  Worker worker(store.get());
  const size_t segment = store->stats().segment_size;
  std::mt19937 random(7);
  for (uint64_t round = 0; round < 3000; ++round) {
    const uint64_t key = random() % 200;
    const size_t size = segment / 2 + random() % (3 * segment);
    ASSERT_EQ(worker.set(key_name(key), make_value(key, round, size)), Status::kOk);
    if (round % 7 == 0) worker.erase(key_name(random() % 200));
    const uint64_t read = random() % 200;
    std::string value;
    if (!worker.get(key_name(read), &value)) continue;
    ASSERT_LE(check_value(read, value), round);
  }
  EXPECT_GT(tail_segments(*store), 1u);
  for (uint64_t key = 0; key < 200; ++key) worker.erase(key_name(key));
  ASSERT_EQ(store->reclaim(4 * kMiB), Status::kOk);
  EXPECT_EQ(tail_segments(*store), 0u);
}

TEST(Values, CopyAndWriteAcrossPieces) {
  const auto store = make_store(quiet_config(16 * kMiB));
  Worker worker(store.get());
  const StoreRef& ref = worker.ref();
  const std::string old_value = make_value(1, 1, 100'000);
  ASSERT_EQ(worker.set("old", old_value), Status::kOk);
  worker.enter();
  Allocation allocation;
  ASSERT_EQ(ref.allocate(worker.thread(), 3, 200'005, 0, allocation), Status::kOk);
  ref.write_value(*allocation.item, 0, bytes_of("12345"));
  ref.copy_value(*allocation.item, 5, *worker.find("old").item);
  ref.write_value(*allocation.item, 100'005, bytes_of(old_value));
  EXPECT_TRUE(worker.value_of(*allocation.item) == "12345" + old_value + old_value);
  ref.abandon(worker.thread(), allocation);
  EXPECT_FALSE(allocation);
  worker.leave();
}

// Fills a reservation's value through its windows.
void fill(Store& store, uint32_t id, const std::string& value) {
  uint32_t offset = 0;
  while (offset < value.size()) {
    const MutableBytes window = store.reservation_window(id, offset);
    ASSERT_GT(window.size, 0u);
    const size_t count = std::min<size_t>({window.size, value.size() - offset, 30'000});
    std::memcpy(window.data, value.data() + offset, count);
    offset += static_cast<uint32_t>(count);
  }
}

TEST(Reservation, BecomesAnItem) {
  const auto store = make_store(quiet_config(16 * kMiB));
  Worker worker(store.get());
  const StoreRef& ref = worker.ref();
  for (const size_t size : {size_t{100}, size_t{30'000}, size_t{70'000}, size_t{1'000'000}}) {
    uint32_t id = 0;
    ASSERT_EQ(store->reserve(5, static_cast<uint32_t>(size), &id), Status::kOk);
    ASSERT_NE(id, 0u);
    EXPECT_GT(store->stats().reserved_segments, 0u);
    const std::string value = make_value(size, 1, size);
    fill(*store, id, value);
    // Over many batches, with other requests between.
    for (uint64_t i = 0; i < 60'000; ++i)
      ASSERT_EQ(worker.set(key_name(i), make_value(i, 1, 300)), Status::kOk);
    worker.enter();
    EXPECT_EQ(worker.value_of(ref.reserved_item(id)), value);
    Allocation allocation;
    ASSERT_EQ(ref.allocate_reserved(worker.thread(), id, 0, allocation), Status::kOk);
    EXPECT_TRUE(allocation.holds_value);
    std::memcpy(allocation.item->key_data(), "large", 5);
    worker.publish(ref.hash(bytes_of("large")), "large", allocation);
    worker.leave();
    EXPECT_EQ(store->stats().reserved_segments, 0u);
    std::string back;
    ASSERT_TRUE(worker.get("large", &back));
    EXPECT_TRUE(back == value);
    store->abandon_reservation(id);  // used up: nothing happens
    ASSERT_TRUE(worker.get("large", &back));
    EXPECT_TRUE(back == value);
  }
}

// Replaces "large" by way of a reservation. Returns the place of the value.
const uint8_t* replace(Store& store, Worker& worker, const std::string& value) {
  uint32_t id = 0;
  EXPECT_EQ(store.reserve(5, static_cast<uint32_t>(value.size()), &id), Status::kOk);
  fill(store, id, value);
  worker.enter();
  Allocation allocation;
  EXPECT_EQ(worker.ref().allocate_reserved(worker.thread(), id, 0, allocation), Status::kOk);
  std::memcpy(allocation.item->key_data(), "large", 5);
  const auto* const place = reinterpret_cast<const uint8_t*>(allocation.item);
  worker.publish(worker.ref().hash(bytes_of("large")), "large", allocation);
  worker.leave();
  return place;
}

// Without maintenance: a value that is replaced again and again moves between few places, which the
// caches hold.
TEST(Reservation, TakesAgainWhatWasReplaced) {
  const auto store = make_store(quiet_config(1024 * kMiB));
  Worker worker(store.get());
  const std::string value(600'000, 'x');
  std::set<const uint8_t*> places;
  for (int i = 0; i < 200; ++i) places.insert(replace(*store, worker, value));
  EXPECT_LE(places.size(), 3u);
  EXPECT_LE(store->stats().retired_segments, 2u);
}

// But not while a reader may see it, or a pin holds it.
TEST(Reservation, DoesNotTakeWhatIsBeingRead) {
  const auto store = make_store(quiet_config(1024 * kMiB));
  Worker worker(store.get());
  Worker reader(store.get());
  const std::string old_value = make_value(1, 1, 600'000);
  (void)replace(*store, worker, old_value);
  reader.enter();
  const Item* const read = reader.find("large").item;
  for (int i = 0; i < 20; ++i) (void)replace(*store, worker, std::string(600'000, 'x'));
  EXPECT_TRUE(reader.value_of(*read) == old_value);
  EXPECT_GE(store->stats().retired_segments, 20u);
  const uint32_t pin = reader.ref().pin(*read, PinNeed::kMust);
  ASSERT_NE(pin, 0u);
  reader.leave();
  for (int i = 0; i < 40; ++i) (void)replace(*store, worker, std::string(600'000, 'x'));
  EXPECT_TRUE(reader.value_of(*read) == old_value);
  EXPECT_LE(store->stats().retired_segments, 3u);
  reader.ref().unpin(pin);
  for (int i = 0; i < 3; ++i) (void)replace(*store, worker, std::string(600'000, 'x'));
  EXPECT_LE(store->stats().retired_segments, 2u);
}

TEST(Reservation, IsBoundedAndComesBack) {
  const auto store = make_store(quiet_config(16 * kMiB));
  const uint64_t free_before = store->stats().free_segments;
  std::vector<uint32_t> ids;
  uint32_t id = 0;
  Status status = Status::kOk;
  while ((status = store->reserve(10, 500'000, &id)) == Status::kOk) ids.push_back(id);
  EXPECT_EQ(status, Status::kDeferred);
  EXPECT_EQ(ids.size(), 8u);  // of 8 segments each; 64 of 256 may be reserved
  for (const uint32_t one : ids) store->abandon_reservation(one);
  for (const uint32_t one : ids) store->abandon_reservation(one);
  EXPECT_EQ(store->stats().free_segments, free_before);
  EXPECT_EQ(store->stats().reserved_segments, 0u);
  EXPECT_EQ(store->reserve(10, 200'000'000, &id), Status::kTooLarge);
}

TEST(Reservation, TheirNumberIsLimited) {
  StoreConfig config = quiet_config(8192 * kMiB);
  config.huge_pages = false;  // only the start of each segment is written
  const auto store = make_store(config);
  const uint64_t free_before = store->stats().free_segments;
  std::vector<uint32_t> ids;
  uint32_t id = 0;
  while (store->reserve(10, 100, &id) == Status::kOk) ids.push_back(id);
  EXPECT_EQ(ids.size(), kReservationsMax);
  EXPECT_EQ(store->stats().reserved_segments, kReservationsMax);
  for (const uint32_t one : ids) store->abandon_reservation(one);
  EXPECT_EQ(store->stats().free_segments, free_before);
  EXPECT_EQ(store->stats().reserved_segments, 0u);
}

TEST(Reservation, AbandonedAfterAllocationLeavesNothing) {
  const auto store = make_store(quiet_config(16 * kMiB));
  Worker worker(store.get());
  const uint64_t free_before = store->stats().free_segments;
  uint32_t id = 0;
  ASSERT_EQ(store->reserve(3, 300'000, &id), Status::kOk);
  worker.abandon_allocated(id);
  EXPECT_EQ(store->stats().free_segments, free_before);
}

}  // namespace
}  // namespace warpcache::store
