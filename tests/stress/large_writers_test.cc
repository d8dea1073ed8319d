// SPDX-License-Identifier: Apache-2.0
//
// Many workers store large values in little memory. A worker that finds no space waits until there
// is some, however often others take what was just freed.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "engine/cpu/cpu_engine.h"
#include "engine/testing/store_admin.h"
#include "store/host/store.h"
#include "worker/testing/fake_transport.h"
#include "worker/worker.h"

namespace warpcache {
namespace {

constexpr uint32_t kWriters = 16;
constexpr int kWrites = 200;

// One connection with its own worker. Returns the reply to its first failed write.
std::string write_large_values(store::Store& store, uint32_t number) {
  engine::StoreAdmin admin(store);
  engine::CpuEngine engine({}, store, admin);
  worker::FakeTransport transport;
  worker::Worker worker({}, transport, engine);
  worker::FakeTransport::Stream& stream = transport.open();
  std::string failure;
  for (int i = 0; i < kWrites && failure.empty(); ++i) {
    const std::string value(static_cast<size_t>(70'000 + i % 13 * 10'000), 'v');
    stream.input = "set w" + std::to_string(number) + "-" + std::to_string(i) + " 0 0 " +
                   std::to_string(value.size()) + "\r\n" + value + "\r\n";
    while (!transport.idle()) (void)worker.run_once(0);
    if (stream.output != "STORED\r\n") failure = stream.output;
    stream.output.clear();
  }
  transport.close(stream);
  return failure;
}

TEST(LargeWriters, NoneIsRefusedWhileOthersCanBeEvicted) {
  store::StoreConfig config;
  config.memory_limit = uint64_t{16} << 20;
  config.threads = kWriters;
  std::unique_ptr<store::Store> store;
  ASSERT_EQ(store::Store::create(config, &store), Status::kOk);
  std::vector<std::string> failures(kWriters);
  std::vector<std::thread> writers;
  for (uint32_t i = 0; i < kWriters; ++i) {
    writers.emplace_back([&, i] { failures[i] = write_large_values(*store, i); });
  }
  for (std::thread& writer : writers) writer.join();
  for (const std::string& failure : failures) EXPECT_EQ(failure, "");
}

}  // namespace
}  // namespace warpcache
