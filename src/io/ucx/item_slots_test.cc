// SPDX-License-Identifier: Apache-2.0
#include "io/ucx/item_slots.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/atomic.h"

namespace warpcache::io {
namespace {

class ItemSlotsTest : public testing::Test {
 protected:
  using Slot = std::vector<uint64_t>;

  void fill(const std::string& key, const std::string& value, uint32_t generation = 0) {
    slots_.fill({.key = text(key),
                 .value = text(value),
                 .cas = 77,
                 .client_flags = 5,
                 .generation = generation});
  }
  static Bytes text(std::string_view text) { return bytes_of(text); }

  const uint64_t* words(std::string_view key) const {
    return reinterpret_cast<const uint64_t*>(slots_.memory().data +
                                             slot_offset(slots_.region(), text(key)));
  }
  // As another process or a device reads it, in any order.
  Slot read(std::string_view key, bool backwards = false) const {
    Slot slot(kSlotBytes / 8);
    for (size_t i = 0; i < slot.size(); ++i) {
      const size_t at = backwards ? slot.size() - 1 - i : i;
      slot[at] = load_acquire(words(key) + at);
    }
    return slot;
  }
  static SlotState look(const Slot& slot, std::string_view key, std::string* value = nullptr) {
    SlotItem item;
    const SlotState state =
        read_slot(reinterpret_cast<const uint8_t*>(slot.data()), text(key), &item);
    if (state == SlotState::kFound) {
      EXPECT_EQ(item.cas, 77u);
      EXPECT_EQ(item.client_flags, 5u);
      if (value != nullptr) {
        value->assign(reinterpret_cast<const char*>(item.value.data), item.value.size);
      }
    }
    return state;
  }
  SlotState state(std::string_view key) const { return look(read(key), key); }

  ItemSlots slots_{4, 12345};
};

TEST_F(ItemSlotsTest, ACopyIsFoundUntilItIsDropped) {
  std::string value;
  EXPECT_EQ(state("a"), SlotState::kAbsent);
  fill("a", "first");
  EXPECT_EQ(look(read("a"), "a", &value), SlotState::kFound);
  EXPECT_EQ(value, "first");
  fill("a", "");
  EXPECT_EQ(look(read("a"), "a", &value), SlotState::kFound);
  EXPECT_EQ(value, "");
  slots_.drop(text("b"));
  EXPECT_EQ(state("a"), SlotState::kFound);
  slots_.drop(text("a"));
  EXPECT_EQ(state("a"), SlotState::kAbsent);
  EXPECT_EQ(slots_.fills(), 2u);
  EXPECT_EQ(slots_.drops(), 1u);
}

TEST_F(ItemSlotsTest, TheLongestItemFits) {
  const std::string key(250, 'k');
  const std::string value(kSlotValueMax, 'v');
  std::string found;
  fill(key, value);
  EXPECT_EQ(look(read(key), key, &found), SlotState::kFound);
  EXPECT_EQ(found, value);
  fill(key + "k", value);
  fill("longer", value + "v");
  EXPECT_EQ(look(read("longer"), "longer"), SlotState::kAbsent);
  EXPECT_EQ(slots_.fills(), 1u);
}

TEST_F(ItemSlotsTest, ACopyPutsAnotherOutAndIsNotMistakenForIt) {
  int absent = 0;
  for (int i = 0; i < 64; ++i) fill("key" + std::to_string(i), std::to_string(i));
  for (int i = 0; i < 64; ++i) {
    std::string value;
    const std::string key = "key" + std::to_string(i);
    if (look(read(key), key, &value) == SlotState::kAbsent) {
      ++absent;
    } else {
      EXPECT_EQ(value, std::to_string(i));
    }
  }
  EXPECT_GE(absent, 60);
}

TEST_F(ItemSlotsTest, AFlushEmptiesAllAndRefusesItemsFromBefore) {
  fill("a", "1", 3);
  EXPECT_EQ(state("a"), SlotState::kFound);
  slots_.flush(4);
  EXPECT_EQ(state("a"), SlotState::kAbsent);
  fill("a", "1", 3);  // who made it before the flush
  EXPECT_EQ(state("a"), SlotState::kAbsent);
  fill("a", "2", 4);
  EXPECT_EQ(state("a"), SlotState::kFound);
}

// Each word may be of another moment than its neighbour.
TEST_F(ItemSlotsTest, BytesOfTwoMomentsAreNoticed) {
  fill("a", std::string(1000, 'x'));
  const Slot before = read("a");
  fill("a", std::string(1000, 'y'));
  const Slot after = read("a");
  const size_t used = (sizeof(SlotHead) + 1 + 1000 + 7) / 8;
  for (size_t cut = 1; cut < used; ++cut) {
    for (const bool front : {false, true}) {
      Slot torn = front ? before : after;
      std::copy((front ? after : before).begin(),
                (front ? after : before).begin() + static_cast<ptrdiff_t>(cut), torn.begin());
      EXPECT_EQ(look(torn, "a"), SlotState::kTorn) << cut << front;
    }
  }
  Slot odd = after;
  ++odd[0];
  EXPECT_EQ(look(odd, "a"), SlotState::kTorn);
  Slot changed = after;
  changed[used / 2] ^= 1;
  EXPECT_EQ(look(changed, "a"), SlotState::kTorn);
}

// Threads write while others read: a value that is found is one that was written, and no older than
// what was there when the read began.
TEST_F(ItemSlotsTest, ReadersNeverSeeAMixtureOrAnOldValue) {
  constexpr uint32_t kWrites = 20'000;
  std::atomic<uint32_t> written{0};  // the copy is of this number at least
  std::atomic<uint32_t> begun{0};
  std::atomic<uint64_t> found{0};
  std::atomic<bool> stop{false};
  const auto number = [](uint32_t n) {
    std::string value;
    for (int i = 0; i < 100; ++i) value += std::to_string(1'000'000 + n);
    return value;
  };
  fill("k", number(0));
  const auto reader = [&](bool backwards) {
    while (!stop.load()) {
      const uint32_t least = written.load(std::memory_order_acquire);
      const Slot slot = read("k", backwards);
      const uint32_t most = begun.load(std::memory_order_acquire);
      std::string value;
      if (look(slot, "k", &value) != SlotState::kFound) continue;
      const uint32_t n = static_cast<uint32_t>(std::stoul(value.substr(0, 7))) - 1'000'000;
      if (value != number(n) || n < least || n > most) {
        ADD_FAILURE() << n << " of " << least << " to " << most;
        return;
      }
      ++found;
    }
  };
  std::thread forwards(reader, false);
  std::thread backwards(reader, true);
  for (uint32_t n = 1; n <= kWrites; ++n) {
    begun.store(n, std::memory_order_release);
    if (n % 3 == 0) slots_.drop(text("k"));  // as before a change
    fill("k", number(n));
    written.store(n, std::memory_order_release);
  }
  // On a machine with one free processor the readers may not have run yet.
  const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (found.load() == 0 && std::chrono::steady_clock::now() < give_up) std::this_thread::yield();
  stop.store(true);
  forwards.join();
  backwards.join();
  EXPECT_GT(found.load(), 0u);
}

}  // namespace
}  // namespace warpcache::io
