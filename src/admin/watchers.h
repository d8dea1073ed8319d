// SPDX-License-Identifier: Apache-2.0
//
// The command `watch`: connections that get a line for each event of some kinds.
//
// The threads in which events happen put records into bounded buffers: they never wait, and a
// record that finds no space is dropped and counted. One thread, which runs from the first `watch`
// on, makes lines of the records and puts them into the pipe of each watcher. A line that finds no
// space there is skipped and counted, and the watcher is told so once it has read. So a watcher
// that does not read costs its pipe and slows nobody. Without watchers there are no records.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <list>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "admin/watch_lines.h"
#include "base/byte_pipe.h"
#include "engine/watch.h"
#include "store/layout/item.h"
#include "store/observer.h"

namespace warpcache::admin {

// As in `stats`.
struct WatchCounts {
  uint64_t records_dropped = 0;  // log_worker_dropped
  uint64_t records_written = 0;  // log_worker_written
  uint64_t lines_skipped = 0;    // log_watcher_skipped
  uint64_t lines_sent = 0;       // log_watcher_sent
  uint64_t watchers = 0;         // log_watchers
};

// Any thread may call all functions.
class Watchers final : public engine::Watch, public store::Observer {
 public:
  static constexpr uint32_t kWatchersMax = 20;
  // Buffers for records. Threads above this number share them.
  static constexpr uint32_t kBuffers = 32;
  static constexpr size_t kPipeBytesMin = 64 * 1024;

  // Bytes of a buffer for records, and of a watcher's pipe, which has at least kPipeBytesMin.
  Watchers(size_t buffer_bytes, size_t pipe_bytes)
      : buffer_bytes_(buffer_bytes), pipe_bytes_(std::max(pipe_bytes, kPipeBytesMin)) {}
  Watchers(const Watchers&) = delete;
  Watchers& operator=(const Watchers&) = delete;
  // REQUIRES: all readers have left.
  ~Watchers() override;

  enum class Added : uint8_t { kYes, kTooMany, kRefused };
  // Adds a watcher; `pipe` gets the pipe that the caller becomes the reader of. kRefused: the
  // system refuses memory or the thread.
  [[nodiscard]] Added add(uint32_t kinds, BytePipe** pipe);
  // Ends the thread; lines that are not in the pipes are lost.
  void stop();

  void saw_request(const engine::SeenRequest& seen);
  void saw_look_up(int fd, Bytes key, engine::KeyState found, uint32_t value_size);
  void evicted(const store::Item& item, uint32_t now) override;
  bool wants_evictions() override { return (wanted() & engine::kWatchEvictions) != 0; }
  bool takes_eviction() override;
  void missed_evictions(uint64_t count) override;
  void connection_opened(int fd, const engine::PeerAddress& peer) override;
  void connection_closed(int fd, const engine::PeerAddress& peer, std::string_view reason) override;
  // A TLS handshake has failed: the connection's begin, `why`, and its end, as memcached reports
  // it.
  void handshake_failed(int fd, const engine::PeerAddress& peer, std::string_view why);
  void saw_commands(std::string_view lines) override;

  WatchCounts counts();

 private:
  struct Buffer {
    std::mutex mutex;
    std::vector<uint8_t> bytes;  // records, each before its text; grows up to buffer_bytes_ only
    uint64_t written = 0;
    uint64_t dropped = 0;
  };
  struct Watcher {
    Watcher(uint32_t of_kinds, uint64_t first, size_t bytes, std::function<void()> wake)
        : kinds(of_kinds), first_number(first), pipe(bytes, std::move(wake), true) {}

    const uint32_t kinds;
    const uint64_t first_number;  // earlier events are not for this watcher
    BytePipe pipe;
    std::string text;  // lines that are not in the pipe yet
    uint64_t skipped = 0;
  };

  void put(WatchRecord record, uint32_t kind, std::string_view text);
  void look_up(const engine::SeenRequest& seen);
  void store(const engine::SeenRequest& seen);
  void run();
  bool wait(std::chrono::milliseconds for_at_most);
  bool take_records();
  void show(const std::vector<uint8_t>& records);
  void offer(Watcher& watcher, std::string_view line);
  void flush(Watcher& watcher);
  void remove_left();
  void wake();

  const size_t buffer_bytes_;
  const size_t pipe_bytes_;
  std::array<Buffer, kBuffers> buffers_;
  std::atomic<uint64_t> number_{0};

  std::mutex watchers_mutex_;  // guards the list; locked before a pipe's mutex
  std::list<Watcher> watchers_;
  std::atomic<uint64_t> lines_sent_{0};
  std::atomic<uint64_t> lines_skipped_{0};
  std::vector<uint8_t> taken_;  // the thread's
  std::string line_;            // the thread's

  std::mutex wake_mutex_;  // guards the members below; locked after a pipe's mutex
  std::condition_variable condition_;
  bool awake_ = false;
  bool stopping_ = false;
  std::thread thread_;  // started under watchers_mutex_
};

}  // namespace warpcache::admin
