// SPDX-License-Identifier: Apache-2.0
//
// Copies of an item outside of the store are dropped before any command changes the item.
#include <gtest/gtest.h>

#include <memory>
#include <ostream>
#include <string>

#include "request/testing/dialogue.h"

namespace warpcache::request {
namespace {

// The words of an item, and where it lies.
struct Seen {
  const store::Item* item = nullptr;
  uint64_t cas = 0;
  uint32_t expiry = 0;
  uint8_t bits = 0;

  bool operator==(const Seen&) const = default;
};

struct Owner {
  store::Store* store = nullptr;
  Seen before;
  uint32_t dropped = 0;
  uint32_t late = 0;
};

Seen look(store::Store& store, const std::string& key) {
  const store::StoreRef ref = store.ref();
  const store::Found found = ref.find(ref.hash(bytes_of(key)), bytes_of(key));
  if (!found) return {};
  const auto bits = static_cast<uint8_t>(found.item->load_bits() & ~uint32_t{store::kItemFetched});
  return {found.item, found.item->load_cas(), found.item->load_expiry(), bits};
}

store::StoreConfig config_with(Owner& owner) {
  store::StoreConfig config;
  config.memory_limit = 16 * 1024 * 1024;
  config.threads = 1;
  config.manual_clock = true;
  config.maintenance_thread = false;
  config.copies.context = &owner;
  config.copies.drop = [](void* context, Bytes) {
    auto& self = *static_cast<Owner*>(context);
    // A command may say it again: nobody makes a copy while the pair is locked.
    if (self.dropped++ == 0) self.late += look(*self.store, "k") == self.before ? 0u : 1u;
  };
  return config;
}

struct Change {
  const char* name;
  const char* command;
  bool changes;
};

// How a failure names it.
void PrintTo(const Change& change, std::ostream* out) { *out << change.name; }

class CopiesOfRequests : public ::testing::TestWithParam<Change> {};

TEST_P(CopiesOfRequests, AreDroppedFirst) {
  Owner owner;
  Dialogue dialogue(config_with(owner));
  owner.store = &dialogue.store();
  EXPECT_EQ(dialogue.say("set k 0 100 1\r\n1\r\n"), "STORED\r\n");
  owner.before = look(dialogue.store(), "k");
  const std::string reply = dialogue.say(GetParam().command);
  EXPECT_EQ(reply.find("ERROR"), std::string::npos) << reply;
  EXPECT_EQ(owner.dropped != 0, GetParam().changes) << reply;
  EXPECT_EQ(look(dialogue.store(), "k") != owner.before, GetParam().changes) << reply;
  EXPECT_EQ(owner.late, 0u);
}

INSTANTIATE_TEST_SUITE_P(
    All, CopiesOfRequests,
    ::testing::Values(
        Change{"Set", "set k 0 0 1\r\n2\r\n", true},
        Change{"Replace", "replace k 0 0 1\r\n2\r\n", true},
        Change{"Append", "append k 0 0 1\r\n2\r\n", true}, Change{"Delete", "delete k\r\n", true},
        Change{"Incr", "incr k 1\r\n", true}, Change{"Touch", "touch k 50\r\n", true},
        Change{"GetAndTouch", "gat 50 k\r\n", true}, Change{"MetaTouch", "mg k T50\r\n", true},
        Change{"Stale", "md k I\r\n", true}, Change{"StaleAndTouched", "md k I T30\r\n", true},
        Change{"Emptied", "md k x\r\n", true}, Change{"Token", "mg k R200\r\n", true},
        Change{"MetaArithmetic", "ma k D5\r\n", true},
        Change{"StaleSet", "ms k 1 C1 I\r\n2\r\n", true}, Change{"Get", "gets k\r\n", false},
        Change{"MetaGet", "mg k v f c t\r\n", false},
        Change{"FailedAdd", "add k 0 0 1\r\n2\r\n", false},
        Change{"FailedCas", "cas k 0 0 1 1\r\n2\r\n", false}),
    [](const auto& made) { return std::string(made.param.name); });

}  // namespace
}  // namespace warpcache::request
