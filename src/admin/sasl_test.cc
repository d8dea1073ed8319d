// SPDX-License-Identifier: Apache-2.0
#include "admin/sasl.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace warpcache::admin {
namespace {

using Verdict = Sasl::Verdict;
using namespace std::string_literals;

class SaslTest : public testing::Test {
 protected:
  void SetUp() override {
    unsetenv("SASL_CONF_PATH");  // without the library
    write("alice:secret\nbob:b\n");
    ASSERT_EQ(sasl_.open(), "");
  }
  void TearDown() override { std::filesystem::remove(path_); }

  void write(const std::string& text) {
    // A new file, so that the change is seen whatever the clock's resolution.
    std::filesystem::remove(path_ + ".new");
    std::ofstream(path_ + ".new") << text;
    std::filesystem::rename(path_ + ".new", path_);
  }
  Verdict plain(const std::string& data, uint64_t connection = 1, uint64_t source = 1) {
    std::string challenge;
    const Verdict verdict = sasl_.start({connection, source}, "PLAIN", data, &challenge);
    EXPECT_EQ(challenge, "");
    return verdict;
  }
  Verdict step(const std::string& data, uint64_t connection = 1, uint64_t source = 1) {
    std::string challenge;
    return sasl_.step({connection, source}, data, &challenge);
  }

  const std::string path_ = testing::TempDir() + "/sasl-" + std::to_string(getpid());
  Sasl sasl_{path_};
};

TEST_F(SaslTest, PlainTakesANameAndItsPassword) {
  EXPECT_EQ(sasl_.mechanisms(), "PLAIN");
  EXPECT_EQ(plain("\0alice\0secret"s), Verdict::kAccepted);
  EXPECT_EQ(plain("alice\0alice\0secret"s), Verdict::kAccepted);
  for (const std::string& wrong :
       {"\0alice\0secre"s, "\0alice\0secrets"s, "\0bob\0secret"s, "bob\0alice\0secret"s, "alice"s,
        "\0alice"s, "\0alice\0"s, "\0\0secret"s, "\0alice\0secret\0"s, "\0"s}) {
    EXPECT_EQ(plain(wrong), Verdict::kRefused) << testing::PrintToString(wrong);
  }
}

TEST_F(SaslTest, OtherMechanismsNeedTheLibrary) {
  std::string challenge;
  EXPECT_EQ(sasl_.start({1, 1}, "plain", "\0alice\0secret"s, &challenge), Verdict::kAccepted);
  EXPECT_EQ(sasl_.start({1, 1}, "CRAM-MD5", "", &challenge), Verdict::kRefused);
  EXPECT_EQ(sasl_.start({1, 1}, "", "\0alice\0secret"s, &challenge), Verdict::kRefused);
}

TEST_F(SaslTest, TheDataMayComeInAStep) {
  EXPECT_EQ(step("\0alice\0secret"s), Verdict::kRefused);
  EXPECT_EQ(plain("", 1), Verdict::kContinue);
  EXPECT_EQ(step("\0alice\0secret"s, 2), Verdict::kRefused);  // another connection
  EXPECT_EQ(step("\0alice\0secret"s, 1), Verdict::kAccepted);
  EXPECT_EQ(step("\0alice\0secret"s, 1), Verdict::kRefused);  // it has ended
  EXPECT_EQ(plain("", 1), Verdict::kContinue);
  EXPECT_EQ(step("", 1), Verdict::kRefused);
  EXPECT_EQ(step("\0alice\0secret"s, 1), Verdict::kRefused);
}

TEST_F(SaslTest, LoginsUnderWayAreBounded) {
  for (uint64_t i = 0; i <= Sasl::kExchangesMax; ++i) EXPECT_EQ(plain("", i), Verdict::kContinue);
  EXPECT_EQ(step("\0alice\0secret"s, 0), Verdict::kRefused);
  EXPECT_EQ(step("\0alice\0secret"s, 1), Verdict::kAccepted);
  EXPECT_EQ(step("\0alice\0secret"s, Sasl::kExchangesMax), Verdict::kAccepted);
}

// A source that begins many logins and ends none pushes out its own.
TEST_F(SaslTest, LoginsUnderWayOfOthersStay) {
  constexpr uint64_t kOther = 1'000'000;
  EXPECT_EQ(plain("", kOther, 2), Verdict::kContinue);
  for (uint64_t i = 0; i <= 2 * Sasl::kExchangesMax; ++i) {
    EXPECT_EQ(plain("", i, 1), Verdict::kContinue);
  }
  EXPECT_EQ(step("\0alice\0secret"s, 0, 1), Verdict::kRefused);
  EXPECT_EQ(step("\0alice\0secret"s, kOther, 2), Verdict::kAccepted);
}

TEST_F(SaslTest, TheFileIsReadAgainWhenItChanges) {
  write("carol:c\n");
  EXPECT_EQ(plain("\0alice\0secret"s), Verdict::kRefused);
  EXPECT_EQ(plain("\0carol\0c"s), Verdict::kAccepted);
  std::filesystem::remove(path_);
  EXPECT_EQ(plain("\0carol\0c"s), Verdict::kRefused);
  EXPECT_NE(sasl_.reload(), "");
  write("carol:c\n");
  EXPECT_EQ(plain("\0carol\0c"s), Verdict::kAccepted);
}

TEST_F(SaslTest, FailedLoginsAreBounded) {
  for (uint32_t i = 0; i < 3 * AuthFile::kFailedLoginsAtOnce; ++i) (void)plain("\0alice\0no"s);
  EXPECT_EQ(plain("\0alice\0secret"s), Verdict::kRefused);
  // Not those of others. One may share the count by its hash; not four of them.
  uint32_t accepted = 0;
  for (uint64_t source = 2; source < 6; ++source) {
    accepted += plain("\0alice\0secret"s, 1, source) == Verdict::kAccepted ? 1u : 0u;
  }
  EXPECT_GT(accepted, 0u);
}

}  // namespace
}  // namespace warpcache::admin
