// SPDX-License-Identifier: Apache-2.0
#include "base/byte_pipe.h"

#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <string>
#include <thread>

namespace warpcache {
namespace {

Bytes bytes_in(const std::string& text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

std::string read_all(BytePipe& pipe) {
  std::string text;
  for (Bytes bytes = pipe.readable(); !bytes.empty(); bytes = pipe.readable()) {
    text.append(reinterpret_cast<const char*>(bytes.data), bytes.size);
    pipe.consume(bytes.size);
  }
  return text;
}

TEST(BytePipe, TakesWhatFitsAndGivesItInOrder) {
  BytePipe pipe(8, [] {});
  EXPECT_TRUE(pipe.readable().empty());
  EXPECT_EQ(pipe.write(bytes_in("abcdefghij")), 8u);
  EXPECT_EQ(pipe.write(bytes_in("x")), 0u);
  pipe.consume(5);
  EXPECT_EQ(pipe.write(bytes_in("ij")), 2u);  // the end and the beginning of the buffer
  EXPECT_EQ(read_all(pipe), "fghij");
}

TEST(BytePipe, SaysHowMuchItTakes) {
  BytePipe pipe(
      8, [] {}, true);
  EXPECT_TRUE(pipe.endless());
  EXPECT_FALSE(BytePipe(8, [] {}).endless());
  EXPECT_EQ(pipe.space(), 8u);
  pipe.write(bytes_in("abc"));
  EXPECT_EQ(pipe.space(), 5u);
  pipe.consume(2);
  EXPECT_EQ(pipe.space(), 7u);
}

TEST(BytePipe, EndsWhenAllIsRead) {
  BytePipe pipe(8, [] {});
  pipe.write(bytes_in("abc"));
  pipe.end(true);
  EXPECT_EQ(pipe.state(), BytePipe::State::kOpen);
  EXPECT_EQ(read_all(pipe), "abc");
  EXPECT_EQ(pipe.state(), BytePipe::State::kEnded);
}

TEST(BytePipe, ABreakIsToldAtOnce) {
  BytePipe pipe(8, [] {});
  int woken = 0;
  pipe.set_wake_reader([&woken] { ++woken; });
  pipe.write(bytes_in("abc"));
  EXPECT_EQ(woken, 1);
  EXPECT_FALSE(pipe.readable().empty());
  pipe.end(false);
  EXPECT_EQ(woken, 2);
  EXPECT_EQ(pipe.state(), BytePipe::State::kBroken);
}

TEST(BytePipe, WakesOnlyWhoWaits) {
  int writer = 0;
  int reader = 0;
  BytePipe pipe(8, [&writer] { ++writer; });
  pipe.set_wake_reader([&reader] { ++reader; });
  pipe.write(bytes_in("a"));
  pipe.write(bytes_in("b"));
  EXPECT_EQ(reader, 1);
  pipe.consume(2);
  EXPECT_EQ(writer, 0);  // no write was short, so the writer is not woken
  pipe.write(bytes_in("0123456789"));
  pipe.consume(1);
  EXPECT_EQ(writer, 0);  // too little free space to wake the writer
  pipe.consume(3);
  EXPECT_EQ(writer, 1);
  pipe.leave();
  EXPECT_EQ(writer, 2);
  EXPECT_TRUE(pipe.reader_left());
  pipe.write(bytes_in("x"));
  EXPECT_EQ(reader, 1);
}

TEST(BytePipe, TwoThreads) {
  std::string text;
  for (int i = 0; i < 100'000; ++i) text += std::to_string(i);
  std::mutex mutex;
  std::condition_variable condition;
  uint32_t wakes = 0;
  const auto wake = [&] {
    const std::lock_guard lock(mutex);
    ++wakes;
    condition.notify_all();
  };
  const auto wait = [&](uint32_t& seen) {
    std::unique_lock lock(mutex);
    condition.wait(lock, [&] { return wakes != seen; });
    seen = wakes;
  };
  BytePipe pipe(1000, wake);
  pipe.set_wake_reader(wake);
  std::thread writer([&] {
    uint32_t seen = 0;
    Bytes left = bytes_in(text);
    while (!left.empty()) {
      const size_t written = pipe.write(left);
      left = {left.data + written, left.size - written};
      if (!left.empty()) wait(seen);
    }
    pipe.end(true);
  });
  std::string read;
  uint32_t seen = 0;
  while (true) {
    read += read_all(pipe);
    if (pipe.state() == BytePipe::State::kEnded) break;
    wait(seen);
  }
  writer.join();
  EXPECT_EQ(read, text);
}

}  // namespace
}  // namespace warpcache
