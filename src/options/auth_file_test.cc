// SPDX-License-Identifier: Apache-2.0
#include "options/auth_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <string>
#include <thread>
#include <utility>

namespace warpcache {
namespace {

using ::testing::HasSubstr;

TEST(AuthFile, ChecksNamesAndPasswords) {
  AuthFile file;
  ASSERT_EQ(file.parse("u:p\nv:q:r\nu:second\n", "f"), "");
  EXPECT_EQ(file.check("u p", 1), AuthResult::kAccepted);
  EXPECT_EQ(file.check("v q:r", 1), AuthResult::kAccepted);
  EXPECT_EQ(file.check("u second", 1), AuthResult::kAccepted);
  for (const char* const wrong :
       {"u q", "u", "v p", "v q", "U p", "u pp", "u p p", "uu p", "x p", "u  p", "u p ", " u p"}) {
    EXPECT_NE(file.check(wrong, 1), AuthResult::kAccepted) << wrong;
  }
  EXPECT_EQ(file.check("u q", 1), AuthResult::kRefused);
  EXPECT_EQ(file.check(std::string("u p\0", 4), 1), AuthResult::kRefused);
  for (const char* const malformed : {"", "u", "u:p", "u\tp"}) {
    EXPECT_EQ(file.check(malformed, 1), AuthResult::kBadFormat) << malformed;
  }
}

// As memcached 1.6.45: after the first blank, every byte is of the password.
TEST(AuthFile, BlanksAreOfThePassword) {
  AuthFile file;
  ASSERT_EQ(file.parse("u: p\nv:p \nw:  \nx: p  q \r\ny:\tp\n z:p\nz :p\n\tt:p\n", "f"), "");
  for (const char* const right : {"u  p", "v p ", "w   ", "x  p  q ", "y \tp", "\tt p"}) {
    EXPECT_EQ(file.check(right, 1), AuthResult::kAccepted) << right;
  }
  for (const char* const wrong : {"u p", "v p", "w ", "w  ", "x p  q", "x  p q ", "y p", " z p",
                                  "z  p", "z p", "t p", "u ", " ", " p"}) {
    EXPECT_EQ(file.check(wrong, 1), AuthResult::kRefused) << wrong;
  }
}

TEST(AuthFile, NobodyGetsInWithoutEntries) {
  const AuthFile file;
  EXPECT_EQ(file.check("u p", 1), AuthResult::kRefused);
}

TEST(AuthFile, ASaslFileHasFurtherWordsAndLinesThatAreNoEntry) {
  AuthFile file(AuthFile::Kind::kSasl);
  ASSERT_EQ(file.parse("# users\nu:p:admin:x\r\nv@host:q\nno entry\n:x\nw:\nu:second", "f"), "");
  EXPECT_TRUE(file.matches("u", "p"));
  EXPECT_TRUE(file.matches("u", "p:admin"));
  EXPECT_TRUE(file.matches("u", "p:admin:x"));
  EXPECT_TRUE(file.matches("u", "second"));
  EXPECT_TRUE(file.matches("v@host", "q"));
  EXPECT_TRUE(file.matches("v", "q", "host"));
  EXPECT_TRUE(file.matches("u", "p", "host"));
  for (const auto& [user, password] : {std::pair{"u", "p:"},
                                       {"u", "admin"},
                                       {"u", "p:adm"},
                                       {"v", "q"},
                                       {"w", ""},
                                       {"", "x"},
                                       {"u", ""}}) {
    EXPECT_FALSE(file.matches(user, password)) << user << " " << password;
  }
  EXPECT_FALSE(file.matches("v", "q", "hos"));
  EXPECT_FALSE(file.matches(std::string(300, 'u'), "p"));
  EXPECT_FALSE(file.matches("u", std::string(300, 'p')));
  file.clear();
  EXPECT_FALSE(file.matches("u", "p"));
  EXPECT_THAT(file.parse("nothing\n", "f"),
              HasSubstr("MEMCACHED_SASL_PWDB: the file f has no entry"));
}

TEST(AuthFile, TakesEveryLineEnd) {
  AuthFile file;
  ASSERT_EQ(file.parse("\r\n\nu:p\r\nv:q", "f"), "");
  EXPECT_EQ(file.check("u p", 1), AuthResult::kAccepted);
  EXPECT_EQ(file.check("u p\r", 1), AuthResult::kRefused);
  EXPECT_EQ(file.check("v q", 1), AuthResult::kAccepted);
}

TEST(AuthFile, SizesUpToTheBound) {
  AuthFile file;
  const std::string longest(AuthFile::kTextSizeMax, 'a');
  ASSERT_EQ(file.parse(longest + ":" + longest + "\n", "f"), "");
  EXPECT_EQ(file.check(longest + " " + longest, 1), AuthResult::kAccepted);
  EXPECT_EQ(file.check(longest + " " + longest + "a", 1), AuthResult::kRefused);
  EXPECT_EQ(file.check(longest + "a " + longest, 1), AuthResult::kRefused);
  EXPECT_THAT(file.parse(longest + "a:p\n", "f"), HasSubstr("line 1 of f"));
  EXPECT_THAT(file.parse("u:" + longest + "a\n", "f"), HasSubstr("line 1 of f"));
}

// A difference in any byte of name or password is noticed.
TEST(AuthFile, EveryByteCounts) {
  for (const size_t size : {size_t{1}, size_t{20}, AuthFile::kTextSizeMax}) {
    const std::string text(size, 'a');
    AuthFile file;
    ASSERT_EQ(file.parse(text + ":" + text + "\n", "f"), "");
    const AuthFile::Clock::time_point start = AuthFile::Clock::now();
    EXPECT_EQ(file.check(text + " " + text, 1, start), AuthResult::kAccepted);
    for (size_t at = 0; at < size; ++at) {
      std::string other = text;
      other[at] = 'b';
      const auto now = start + std::chrono::seconds(at);
      EXPECT_EQ(file.check(text + " " + other, 1, now), AuthResult::kRefused) << "password, " << at;
      EXPECT_EQ(file.check(other + " " + text, 1, now), AuthResult::kRefused) << "user, " << at;
    }
    const std::string shorter = text.substr(1);
    if (shorter.empty()) continue;
    EXPECT_EQ(file.check(text + " " + shorter, 1, start), AuthResult::kRefused);
    EXPECT_EQ(file.check(shorter + " " + text, 1, start), AuthResult::kRefused);
  }
}

// The user of one entry with the password of another is refused.
TEST(AuthFile, EntriesAreNotMixed) {
  AuthFile file;
  ASSERT_EQ(file.parse("u:p\nv:q\n", "f"), "");
  EXPECT_EQ(file.check("u q", 1), AuthResult::kRefused);
  EXPECT_EQ(file.check("v p", 1), AuthResult::kRefused);
}

TEST(AuthFile, EntriesUpToTheBound) {
  std::string text;
  for (size_t i = 0; i < AuthFile::kEntriesMax; ++i) text += "u" + std::to_string(i) + ":p\n";
  AuthFile file;
  ASSERT_EQ(file.parse(text, "f"), "");
  EXPECT_EQ(file.check("u0 p", 1), AuthResult::kAccepted);
  EXPECT_EQ(file.check("u1023 p", 1), AuthResult::kAccepted);
  EXPECT_EQ(file.check("u1024 p", 1), AuthResult::kRefused);
  EXPECT_THAT(file.parse(text + "one:more\n", "f"), HasSubstr("more than 1024"));
  EXPECT_THAT(file.parse(std::string(AuthFile::kFileSizeMax + 1, '\n'), "f"),
              HasSubstr("larger than"));
}

TEST(AuthFile, ABadFileChangesNothing) {
  AuthFile file;
  ASSERT_EQ(file.parse("u:p\n", "f"), "");
  EXPECT_THAT(file.parse("x:y\nnocolon\n", "f"), HasSubstr("line 2 of f"));
  EXPECT_THAT(file.parse(":p\n", "f"), HasSubstr("line 1 of f"));
  EXPECT_THAT(file.parse("u:\n", "f"), HasSubstr("line 1 of f"));
  EXPECT_THAT(file.parse("", "f"), HasSubstr("no entry"));
  EXPECT_THAT(file.load("/nonexistent/auth"),
              HasSubstr("/nonexistent/auth cannot be read: No such file"));
  EXPECT_THAT(file.load("/"), HasSubstr("cannot be read"));
  EXPECT_EQ(file.check("u p", 1), AuthResult::kAccepted);
  EXPECT_EQ(file.check("x y", 1), AuthResult::kRefused);
}

TEST(AuthFile, LoadsAndReloads) {
  const std::string path = testing::TempDir() + "warpcache_auth_file." + std::to_string(getpid());
  std::ofstream(path) << "u:p\n";
  AuthFile file;
  ASSERT_EQ(file.load(path), "");
  EXPECT_EQ(file.check("u p", 1), AuthResult::kAccepted);
  std::ofstream(path) << "u:q\n";
  ASSERT_EQ(file.load(path), "");
  EXPECT_EQ(file.check("u p", 1), AuthResult::kRefused);
  EXPECT_EQ(file.check("u q", 1), AuthResult::kAccepted);
  EXPECT_EQ(std::remove(path.c_str()), 0);
}

TEST(AuthFile, FailedLoginsAreBoundedInTime) {
  AuthFile file;
  ASSERT_EQ(file.parse("u:p\n", "f"), "");
  const AuthFile::Clock::time_point start = AuthFile::Clock::now();
  for (uint32_t i = 0; i < AuthFile::kFailedLoginsAtOnce; ++i) {
    EXPECT_EQ(file.check("u p", 1, start), AuthResult::kAccepted) << i;
    EXPECT_EQ(file.check("u q", 1, start), AuthResult::kRefused) << i;
  }
  EXPECT_EQ(file.check("u p", 1, start), AuthResult::kRefused);
  // One more failure is allowed after 1 ms.
  const auto later =
      start + AuthFile::Clock::duration(std::chrono::seconds(1)) / AuthFile::kFailedLoginsPerSecond;
  EXPECT_EQ(file.check("u p", 1, later), AuthResult::kAccepted);
  EXPECT_EQ(file.check("u q", 1, later), AuthResult::kRefused);
  EXPECT_EQ(file.check("u p", 1, later), AuthResult::kRefused);
  // A day later the largest burst is allowed again, and no more.
  const auto next_day = start + std::chrono::hours(24);
  for (uint32_t i = 0; i < AuthFile::kFailedLoginsAtOnce; ++i) {
    EXPECT_EQ(file.check("u p", 1, next_day), AuthResult::kAccepted) << i;
    EXPECT_EQ(file.check("u q", 1, next_day), AuthResult::kRefused) << i;
  }
  EXPECT_EQ(file.check("u p", 1, next_day), AuthResult::kRefused);
}

// Whoever fails all the time shuts out its own address, and nobody else.
TEST(AuthFile, FailedLoginsAreBoundedForEachSource) {
  AuthFile file;
  ASSERT_EQ(file.parse("u:p\n", "f"), "");
  const AuthFile::Clock::time_point start = AuthFile::Clock::now();
  for (uint32_t i = 0; i < 3 * AuthFile::kFailedLoginsAtOnce; ++i) {
    EXPECT_EQ(file.check("u q", 7, start), AuthResult::kRefused) << i;
  }
  EXPECT_EQ(file.check("u p", 7, start), AuthResult::kRefused);
  // Another source may share the count by its hash; not four of them.
  uint32_t accepted = 0;
  for (uint64_t source = 8; source < 12; ++source) {
    accepted += file.check("u p", source, start) == AuthResult::kAccepted ? 1u : 0u;
  }
  EXPECT_GT(accepted, 0u);
}

// Entries are replaced while other threads compare: each thread sees all old or all new entries.
TEST(AuthFile, EntriesAreReplacedUnderThoseWhoCompare) {
  AuthFile file;
  ASSERT_EQ(file.parse("u:p\nboth:p\n", "f"), "");
  std::atomic<bool> done{false};
  std::thread other([&] {
    for (int i = 0; i < 2000; ++i) {
      EXPECT_EQ(file.parse(i % 2 == 0 ? "both:p\n" : "u:p\nboth:p\n", "f"), "");
    }
    done.store(true);
  });
  while (!done.load()) {
    ASSERT_EQ(file.check("both p", 1), AuthResult::kAccepted);
  }
  other.join();
}

TEST(AuthFile, AFifoIsNotWaitedFor) {
  const std::string path = testing::TempDir() + "warpcache_auth_fifo." + std::to_string(getpid());
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  AuthFile file;
  EXPECT_THAT(file.load(path), HasSubstr(path + " cannot be read: it is not a regular file."));
  EXPECT_EQ(unlink(path.c_str()), 0);
}

}  // namespace
}  // namespace warpcache
