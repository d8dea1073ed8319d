// SPDX-License-Identifier: Apache-2.0
#include "load/protocol.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace warpcache::load {
namespace {

constexpr uint32_t kVersion = 7;

bench::Sizes fixed_sizes() {
  bench::Sizes sizes;
  std::string why;
  EXPECT_TRUE(bench::Sizes::parse("fixed:16:20", &sizes, &why));
  return sizes;
}

// Speaks one protocol about 100 keys with values of 20 bytes.
class Speaker {
 public:
  explicit Speaker(bool meta, bool look_aside = false)
      : keys_(1, fixed_sizes(), 100), options_(options_for(meta)), codec_(options_, keys_) {
    findings.keep_missed = look_aside;
  }

  std::string key(uint32_t id) const {
    std::string out(bench::kKeySizeMax, '\0');
    out.resize(keys_.write_key(id, out.data()));
    return out;
  }

  std::string value(uint32_t id, uint32_t version = kVersion) const {
    std::string out(keys_.value_size(id), '\0');
    keys_.write_value(id, version, out.data());
    return out;
  }

  std::string flags(uint32_t id, uint32_t version = kVersion) const {
    return std::to_string(keys_.flags(id, version));
  }

  // A text hit without END, a meta hit for the place.
  std::string text_hit(uint32_t id) const {
    return "VALUE " + key(id) + " " + flags(id) + " 20\r\n" + value(id) + "\r\n";
  }
  std::string meta_hit(uint32_t id, uint32_t place) const {
    return "VA 20 f" + flags(id) + " O" + std::to_string(place) + "\r\n" + value(id) + "\r\n";
  }

  std::string request(Operation operation, const std::vector<uint32_t>& ids) {
    const Pending asked = pending(operation, ids);
    std::string out(codec_.bytes_max(operation, asked.count), '\0');
    out.resize(static_cast<size_t>(codec_.write(asked, kVersion, out.data()) - out.data()));
    return out;
  }

  // Reads the reply piece by piece, each byte as it comes. Returns how that ended.
  Progress reply(Operation operation, const std::vector<uint32_t>& ids, const std::string& bytes) {
    Pending asked = pending(operation, ids);
    std::string there;
    Progress progress = Progress::kAwaited;
    for (const char byte : bytes) {
      EXPECT_EQ(progress, Progress::kAwaited) << "complete before its end";
      there += byte;
      std::string_view in = there;
      progress = codec_.read(&asked, &in, &findings);
      there.erase(0, there.size() - in.size());
      if (progress == Progress::kOutOfStep) return progress;
    }
    EXPECT_TRUE(progress == Progress::kAwaited || there.empty());
    return progress;
  }

  Findings findings;

 private:
  static Options options_for(bool meta) {
    Options options;
    options.meta = meta;
    return options;
  }
  static Pending pending(Operation operation, const std::vector<uint32_t>& ids) {
    return {operation, static_cast<uint32_t>(ids.size()), 0, ids.data()};
  }

  Keyspace keys_;
  Options options_;
  Codec codec_;
};

TEST(Protocol, WritesTextRequests) {
  Speaker text(false);
  EXPECT_EQ(text.request(Operation::kGet, {3}), "get " + text.key(3) + "\r\n");
  EXPECT_EQ(text.request(Operation::kGet, {3, 4}),
            "get " + text.key(3) + " " + text.key(4) + "\r\n");
  EXPECT_EQ(text.request(Operation::kSet, {3}),
            "set " + text.key(3) + " " + text.flags(3) + " 0 20\r\n" + text.value(3) + "\r\n");
  EXPECT_EQ(text.request(Operation::kDelete, {3}), "delete " + text.key(3) + "\r\n");
}

TEST(Protocol, WritesMetaRequests) {
  Speaker meta(true);
  EXPECT_EQ(meta.request(Operation::kGet, {3}), "mg " + meta.key(3) + " f v\r\n");
  EXPECT_EQ(meta.request(Operation::kGet, {3, 4}),
            "mg " + meta.key(3) + " f q v O0\r\nmg " + meta.key(4) + " f q v O1\r\nmn\r\n");
  EXPECT_EQ(meta.request(Operation::kSet, {3}),
            "ms " + meta.key(3) + " 20 F" + meta.flags(3) + "\r\n" + meta.value(3) + "\r\n");
  EXPECT_EQ(meta.request(Operation::kDelete, {3}), "md " + meta.key(3) + "\r\n");
}

TEST(Protocol, CountsHitsAndMisses) {
  Speaker text(false, true);
  const std::vector<uint32_t> ids = {1, 2, 3, 2};
  EXPECT_EQ(text.reply(Operation::kGet, ids, text.text_hit(2) + text.text_hit(2) + "END\r\n"),
            Progress::kDone);
  EXPECT_EQ(text.findings.hits, 2u);
  EXPECT_EQ(text.findings.misses, 2u);
  EXPECT_EQ(text.findings.missed, (std::vector<uint32_t>{1, 3}));
  EXPECT_EQ(text.findings.wrong, 0u);

  Speaker meta(true, true);
  EXPECT_EQ(meta.reply(Operation::kGet, ids, meta.meta_hit(2, 1) + meta.meta_hit(2, 3) + "MN\r\n"),
            Progress::kDone);
  EXPECT_EQ(meta.findings.hits, 2u);
  EXPECT_EQ(meta.findings.missed, (std::vector<uint32_t>{1, 3}));
  EXPECT_EQ(meta.reply(Operation::kGet, {9}, "EN\r\n"), Progress::kDone);
  EXPECT_EQ(meta.findings.misses, 3u);
}

TEST(Protocol, CountsTheValuesOfAWholeReply) {
  const Speaker speaker(false);
  uint32_t count = 0;
  for (const uint32_t hits : {1u, 3u, 24u}) {
    std::string reply;
    for (uint32_t id = 0; id < hits; ++id) reply += speaker.text_hit(id);
    for (size_t size = 0; size < reply.size() + 5; ++size) {
      EXPECT_FALSE(Codec::count_values((reply + "END\r\n").substr(0, size), &count)) << size;
    }
    EXPECT_TRUE(Codec::count_values(reply + "END\r\n", &count));
    EXPECT_EQ(count, hits);
    EXPECT_FALSE(Codec::count_values(reply + "END\r\nEND\r\n", &count));
  }
  // A value may look like a reply.
  EXPECT_TRUE(
      Codec::count_values("VALUE a 0 7\r\nEND\r\nEN\r\nVALUE b 0 0\r\n\r\nEND\r\n", &count));
  EXPECT_EQ(count, 2u);
  for (const char* const other : {"", "END\r\n", "VALUE ", "VALUE \r\n\r\nEND\r\n", "ERROR\r\n",
                                  "VALUE a 0 99999999999999999999\r\nx\r\nEND\r\n"}) {
    count = 77;
    const bool counted = Codec::count_values(other, &count);
    EXPECT_TRUE(!counted || count == 1) << other;
  }
}

TEST(Protocol, TellsWrongValues) {
  const auto wrong = [](const std::string& reply) {
    Speaker text(false);
    EXPECT_EQ(text.reply(Operation::kGet, {5}, reply + "END\r\n"), Progress::kDone) << reply;
    EXPECT_EQ(text.findings.hits, 0u) << reply;
    return text.findings.wrong;
  };
  const Speaker some(false);
  const auto hit = [&](const std::string& key, const std::string& flags, const std::string& value) {
    return "VALUE " + key + " " + flags + " " + std::to_string(value.size()) + "\r\n" + value +
           "\r\n";
  };
  const std::string good = some.value(5);
  const std::string other_version = some.value(5, kVersion + 1);
  EXPECT_EQ(wrong(hit(some.key(6), some.flags(6), some.value(6))), 1u) << "another key";
  EXPECT_EQ(wrong(hit(some.key(5), some.flags(6), some.value(6))), 1u) << "another's item";
  EXPECT_EQ(wrong(hit(some.key(5), some.flags(5), some.value(6))), 1u) << "another's value";
  EXPECT_EQ(wrong(hit(some.key(5), some.flags(5), other_version)), 1u) << "another version's value";
  EXPECT_EQ(wrong(hit(some.key(5), some.flags(5), good.substr(0, 10) + other_version.substr(10))),
            1u)
      << "torn";
  EXPECT_EQ(wrong(hit(some.key(5), some.flags(5), good.substr(0, 19))), 1u) << "cut short";
  for (size_t i = 0; i < good.size(); ++i) {
    std::string spoiled = good;
    spoiled[i] = static_cast<char>(spoiled[i] ^ 0x10);
    EXPECT_EQ(wrong(hit(some.key(5), some.flags(5), spoiled)), 1u) << i;
  }
}

TEST(Protocol, TellsWrongValuesInMeta) {
  Speaker meta(true);
  EXPECT_EQ(meta.reply(Operation::kGet, {5, 6}, meta.meta_hit(6, 0) + "MN\r\n"), Progress::kDone);
  EXPECT_EQ(meta.findings.wrong, 1u);
  EXPECT_EQ(meta.findings.misses, 1u);
  EXPECT_EQ(
      meta.reply(Operation::kGet, {5, 6}, meta.meta_hit(5, 0) + meta.meta_hit(5, 0) + "MN\r\n"),
      Progress::kDone);
  EXPECT_EQ(meta.findings.wrong, 2u) << "the same key twice";
  EXPECT_EQ(meta.findings.hits, 1u);
}

TEST(Protocol, ReadsChanges) {
  for (const bool meta : {false, true}) {
    Speaker speaker(meta);
    const std::vector<uint32_t> ids = {5};
    EXPECT_EQ(speaker.reply(Operation::kSet, ids, meta ? "HD\r\n" : "STORED\r\n"), Progress::kDone);
    EXPECT_EQ(speaker.reply(Operation::kDelete, ids, meta ? "HD\r\n" : "DELETED\r\n"),
              Progress::kDone);
    EXPECT_EQ(speaker.reply(Operation::kDelete, ids, meta ? "NF\r\n" : "NOT_FOUND\r\n"),
              Progress::kDone);
    EXPECT_EQ(speaker.findings.refused + speaker.findings.out_of_memory, 0u);
    EXPECT_EQ(speaker.reply(Operation::kSet, ids, "SERVER_ERROR out of memory storing object\r\n"),
              Progress::kDone);
    EXPECT_EQ(speaker.findings.out_of_memory, 1u);
    EXPECT_EQ(speaker.reply(Operation::kSet, ids, "NOT_STORED\r\n"), Progress::kOutOfStep);
    EXPECT_EQ(speaker.findings.first_refusal, "NOT_STORED");
  }
}

TEST(Protocol, RefusalsLeaveTheStreamInStep) {
  for (const Operation operation : {Operation::kGet, Operation::kSet, Operation::kDelete}) {
    for (const bool meta : {false, true}) {
      Speaker speaker(meta);
      EXPECT_EQ(speaker.reply(operation, {5}, "SERVER_ERROR busy\r\n"), Progress::kDone);
      EXPECT_EQ(speaker.findings.refused, 1u);
      EXPECT_EQ(speaker.findings.first_refusal, "SERVER_ERROR busy");
    }
  }
}

TEST(Protocol, TellsWhatIsNoReply) {
  const Speaker some(false);
  for (const char* reply :
       {"STORED\r\n", "\r\n", "VALUE\r\n", "VALUE x\r\n", "VALUE x 1\r\n", "VALUE x 1 99999999\r\n",
        "VALUE x 1 -3\r\n", "HTTP/1.1 200 OK\r\n", "VALUE x 1 2\r\nabcd\r\n"}) {
    Speaker text(false);
    EXPECT_EQ(text.reply(Operation::kGet, {5}, reply), Progress::kOutOfStep) << reply;
    EXPECT_EQ(text.findings.refused, 1u);
  }
  for (const char* reply : {"VA\r\n", "VA 20\r\n", "VA 20 f1\r\n", "EN\r\n", "HD\r\n"}) {
    Speaker meta(true);
    EXPECT_EQ(meta.reply(Operation::kGet, {5, 6}, reply), Progress::kOutOfStep) << reply;
  }
}

}  // namespace
}  // namespace warpcache::load
