// SPDX-License-Identifier: Apache-2.0
#include "options/text_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

namespace warpcache {
namespace {

using ::testing::HasSubstr;

class TextFileTest : public testing::Test {
 protected:
  TextFileTest() {
    std::string name = testing::TempDir() + "warpcache_text_file_XXXXXX";
    folder_ = mkdtemp(name.data());
  }
  ~TextFileTest() override { std::filesystem::remove_all(folder_); }

  std::string at(const std::string& name) const { return folder_ + "/" + name; }
  std::string read(const std::string& name) const {
    std::string text;
    EXPECT_EQ(read_text_file(at(name), 1000, &text), "");
    return text;
  }

  std::string folder_;
};

TEST_F(TextFileTest, WhatIsWrittenIsRead) {
  ASSERT_EQ(write_text_file(at("f"), "one\n"), "");
  ASSERT_EQ(write_text_file(at("f"), "two\n"), "");
  EXPECT_EQ(read("f"), "two\n");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_), {}), 1);
}

TEST_F(TextFileTest, ALargerFileIsSeenToBeLarger) {
  ASSERT_EQ(write_text_file(at("f"), "12345"), "");
  std::string text;
  ASSERT_EQ(read_text_file(at("f"), 5, &text), "");
  EXPECT_EQ(text, "12345");
  ASSERT_EQ(read_text_file(at("f"), 4, &text), "");
  EXPECT_EQ(text.size(), 5u);
}

TEST_F(TextFileTest, WhatALinkPointsAtStays) {
  std::ofstream(at("precious")) << "precious";
  std::filesystem::create_symlink(at("precious"), at("f"));
  for (const char* const beside : {"f.tmp", "f.lck"}) {
    std::filesystem::create_symlink(at("precious"), at(beside));
  }
  ASSERT_EQ(write_text_file(at("f"), "mine"), "");
  EXPECT_EQ(read("precious"), "precious");
  EXPECT_EQ(read("f"), "mine");
  EXPECT_FALSE(std::filesystem::is_symlink(at("f")));
}

TEST_F(TextFileTest, OnlyRegularFilesAreReadAndReplaced) {
  ASSERT_EQ(mkfifo(at("fifo").c_str(), 0600), 0);
  std::filesystem::create_directory(at("folder"));
  std::string text;
  for (const std::string& path : {at("fifo"), at("folder"), std::string("/dev/null")}) {
    EXPECT_THAT(read_text_file(path, 10, &text), HasSubstr("not a regular file")) << path;
    EXPECT_THAT(write_text_file(path, "mine"), HasSubstr("not a regular file")) << path;
  }
  EXPECT_THAT(read_text_file(at("none"), 10, &text), HasSubstr("No such file"));
  EXPECT_THAT(write_text_file(at("none/f"), "mine"), HasSubstr("No such file"));
}

TEST_F(TextFileTest, AnotherFileIsNotRemoved) {
  FileIdentity first;
  ASSERT_EQ(write_text_file(at("f"), "first", &first), "");
  ASSERT_EQ(write_text_file(at("f"), "second"), "");
  remove_file(at("f"), first);
  EXPECT_EQ(read("f"), "second");
  ASSERT_EQ(write_text_file(at("f"), "third", &first), "");
  remove_file(at("f"), first);
  EXPECT_FALSE(std::filesystem::exists(at("f")));
}

}  // namespace
}  // namespace warpcache
