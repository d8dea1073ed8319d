// SPDX-License-Identifier: Apache-2.0
#include "admin/watchers.h"

#include <pthread.h>
#include <time.h>

#include <algorithm>
#include <cstring>
#include <new>
#include <system_error>
#include <utility>

namespace warpcache::admin {
namespace {

using engine::KeyState;
using engine::SeenRequest;
using protocol::Op;
using protocol::Outcome;
using std::chrono::milliseconds;

// How long the thread waits for records: less while there are many.
constexpr milliseconds kWaitMin{1};
constexpr milliseconds kWaitMax{64};

// Space in a pipe beside a line, for the line that says how many were skipped.
constexpr size_t kSkippedLineMax = 128;

std::string_view text_of(Bytes bytes) {
  return {reinterpret_cast<const char*>(bytes.data), bytes.size};
}

// The buffer of the calling thread.
uint32_t buffer_of_thread() {
  static std::atomic<uint32_t> threads{0};
  thread_local const uint32_t kNumber = threads.fetch_add(1, std::memory_order_relaxed);
  return kNumber % Watchers::kBuffers;
}

CommandWord command_word(const protocol::Request& request) {
  switch (request.op) {
    case Op::kAdd:
      return CommandWord::kAdd;
    case Op::kReplace:
      return CommandWord::kReplace;
    case Op::kAppend:
      return CommandWord::kAppend;
    case Op::kPrepend:
      return CommandWord::kPrepend;
    default:
      return (request.bits & protocol::kCasCompare) != 0 ? CommandWord::kCas : CommandWord::kSet;
  }
}

StoreWord store_word(const protocol::Result& result) {
  switch (result.outcome) {
    case Outcome::kStored:
      return StoreWord::kStored;
    case Outcome::kExists:
      return StoreWord::kExists;
    case Outcome::kNotFound:
      return StoreWord::kNotFound;
    case Outcome::kError:
      return result.status == Status::kOutOfMemory ? StoreWord::kNoMemory : StoreWord::kTooLarge;
    default:
      return StoreWord::kNotStored;
  }
}

bool is_counter(Op op) { return op == Op::kIncr || op == Op::kDecr; }

// The digits of a number that a counter starts with.
uint32_t digits(uint64_t number) { return static_cast<uint32_t>(std::to_string(number).size()); }

}  // namespace

Watchers::~Watchers() { stop(); }

void Watchers::stop() {
  {
    const std::lock_guard lock(wake_mutex_);
    stopping_ = true;
  }
  condition_.notify_one();
  if (thread_.joinable()) thread_.join();
}

void Watchers::wake() {
  {
    const std::lock_guard lock(wake_mutex_);
    awake_ = true;
  }
  condition_.notify_one();
}

Watchers::Added Watchers::add(uint32_t kinds, BytePipe** pipe) {
  {
    const std::lock_guard lock(watchers_mutex_);
    size_t there = 0;
    uint32_t all = kinds;
    for (const Watcher& watcher : watchers_) {
      if (watcher.pipe.reader_left()) continue;
      ++there;
      all |= watcher.kinds;
    }
    if (there >= kWatchersMax) return Added::kTooMany;
    try {
      // All memory that events and lines need.
      for (Buffer& buffer : buffers_) {
        const std::lock_guard buffer_lock(buffer.mutex);
        buffer.bytes.reserve(buffer_bytes_);
      }
      if (!thread_.joinable()) {
        taken_.reserve(buffer_bytes_);
        line_.reserve(kWatchLineMax);
        thread_ = std::thread([this] { run(); });
        (void)pthread_setname_np(thread_.native_handle(), "watchers");
      }
      Watcher& watcher =
          watchers_.emplace_back(kinds, number_.fetch_add(1) + 1, pipe_bytes_, [this] { wake(); });
      *pipe = &watcher.pipe;
      watcher.text.reserve(pipe_bytes_);
    } catch (const std::bad_alloc&) {
      if (*pipe != nullptr) watchers_.pop_back();
      *pipe = nullptr;
      return Added::kRefused;
    } catch (const std::system_error&) {
      return Added::kRefused;
    }
    set_wanted(all);
  }
  wake();
  return Added::kYes;
}

WatchCounts Watchers::counts() {
  WatchCounts counts;
  counts.lines_sent = lines_sent_.load(std::memory_order_relaxed);
  counts.lines_skipped = lines_skipped_.load(std::memory_order_relaxed);
  for (Buffer& buffer : buffers_) {
    const std::lock_guard lock(buffer.mutex);
    counts.records_written += buffer.written;
    counts.records_dropped += buffer.dropped;
  }
  const std::lock_guard lock(watchers_mutex_);
  for (const Watcher& watcher : watchers_) {
    if (!watcher.pipe.reader_left()) ++counts.watchers;
  }
  return counts;
}

// --- In the threads of the events

void Watchers::put(WatchRecord record, uint32_t kind, std::string_view text) {
  text = text.substr(0, kWatchTextMax);
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  record.seconds = now.tv_sec;
  record.microseconds = static_cast<uint32_t>(now.tv_nsec / 1000);
  record.kind = kind;
  record.text_size = static_cast<uint16_t>(text.size());
  Buffer& buffer = buffers_[buffer_of_thread()];
  const std::lock_guard lock(buffer.mutex);
  const size_t at = buffer.bytes.size();
  if (at + sizeof record + text.size() > buffer.bytes.capacity()) {
    ++buffer.dropped;
    return;
  }
  record.number = number_.fetch_add(1, std::memory_order_relaxed) + 1;
  buffer.bytes.resize(at + sizeof record + text.size());
  std::memcpy(buffer.bytes.data() + at, &record, sizeof record);
  std::memcpy(buffer.bytes.data() + at + sizeof record, text.data(), text.size());
  ++buffer.written;
}

void Watchers::saw_look_up(int fd, Bytes key, KeyState found, uint32_t value_size) {
  if ((wanted() & engine::kWatchFetchers) == 0) return;
  WatchRecord record;
  record.line = WatchRecord::Line::kGet;
  record.found = found;
  record.value_size = found == KeyState::kFound ? value_size : 0;
  record.fd = fd;
  put(record, engine::kWatchFetchers, text_of(key));
}

void Watchers::look_up(const SeenRequest& seen) {
  saw_look_up(seen.fd, seen.key, seen.before, seen.value_size_before);
}

void Watchers::store(const SeenRequest& seen) {
  if ((wanted() & engine::kWatchMutations) == 0) return;
  WatchRecord record;
  record.line = WatchRecord::Line::kStore;
  record.fd = seen.fd;
  record.stored = store_word(seen.result);
  record.command = command_word(seen.request);
  record.ttl = seen.ttl;
  record.value_size = seen.request.value_size;
  if (record.stored == StoreWord::kStored) record.value_size = seen.result.value_size;
  if (record.stored == StoreWord::kTooLarge) record.value_size = 0;
  if (is_counter(seen.request.op)) {  // it created the item
    record.stored = StoreWord::kStored;
    record.command = CommandWord::kAdd;
    record.value_size = digits(seen.result.number);
  }
  if (seen.request.op == Op::kDelete) {  // it stored an empty item
    record.stored = StoreWord::kStored;
    record.command = CommandWord::kSet;
    record.value_size = 0;
  }
  put(record, engine::kWatchMutations, text_of(seen.key));
}

// memcached reports each look-up: a storage command makes one before it stores.
void Watchers::saw_request(const SeenRequest& seen) {
  const protocol::Request& request = seen.request;
  const Op op = request.op;
  const bool failed = seen.result.outcome == Outcome::kError;
  if (op == Op::kGet || op == Op::kTouch) return look_up(seen);
  if (is_counter(op)) {
    look_up(seen);
    const bool created = seen.before != KeyState::kFound && seen.result.outcome == Outcome::kNumber;
    if (!created) return;
    look_up(seen);
    return store(seen);
  }
  if (op == Op::kDelete) {
    look_up(seen);
    const bool deleted = seen.result.outcome == Outcome::kDeleted;
    if (!deleted || request.protocol == protocol::Protocol::kBinary) return;
    const bool empties = (request.bits & protocol::kDropValue) != 0;
    if (empties) {
      look_up(seen);
      store(seen);
    }
    if ((request.bits & protocol::kInvalidate) != 0) return;
    if ((wanted() & engine::kWatchDeletions) == 0) return;
    WatchRecord record;
    record.line = WatchRecord::Line::kDelete;
    record.meta = request.protocol == protocol::Protocol::kMeta;
    record.value_size = empties ? 0 : seen.value_size_before;
    return put(record, engine::kWatchDeletions, text_of(seen.key));
  }
  // Before a refused value comes no look-up; what was stored is then looked up, to be removed.
  const Status status = seen.result.status;
  if (failed && status != Status::kTooLarge && status != Status::kOutOfMemory &&
      status != Status::kOverShare) {
    return;
  }
  if (failed) store(seen);
  look_up(seen);
  if (!failed) store(seen);
}

void Watchers::evicted(const store::Item& item, uint32_t now) {
  if ((wanted() & engine::kWatchEvictions) == 0) return;
  WatchRecord record;
  record.line = WatchRecord::Line::kEviction;
  const uint32_t expiry = item.load_expiry();
  const uint32_t accessed = item.load_access_time();
  record.ttl = expiry == 0 ? UINT32_MAX : expiry > now ? expiry - now : 0;
  record.idle_s = now > accessed ? now - accessed : 0;
  record.fetched = (item.load_bits() & store::kItemFetched) != 0;
  record.value_size = item.value_size;
  put(record, engine::kWatchEvictions, text_of(item.key()));
}

bool Watchers::takes_eviction() {
  Buffer& buffer = buffers_[buffer_of_thread()];
  const std::lock_guard lock(buffer.mutex);
  return buffer.bytes.size() + sizeof(WatchRecord) + UINT8_MAX <= buffer.bytes.capacity();
}

void Watchers::missed_evictions(uint64_t count) {
  Buffer& buffer = buffers_[buffer_of_thread()];
  const std::lock_guard lock(buffer.mutex);
  buffer.dropped += count;
}

void Watchers::connection_opened(int fd, const engine::PeerAddress& peer) {
  WatchRecord record;
  record.line = WatchRecord::Line::kOpened;
  record.fd = fd;
  record.peer = peer;
  put(record, engine::kWatchConnections, "");
}

void Watchers::connection_closed(int fd, const engine::PeerAddress& peer, std::string_view reason) {
  WatchRecord record;
  record.line = WatchRecord::Line::kClosed;
  record.fd = fd;
  record.peer = peer;
  put(record, engine::kWatchConnections, reason);
}

void Watchers::handshake_failed(int fd, const engine::PeerAddress& peer, std::string_view why) {
  connection_opened(fd, peer);
  WatchRecord record;
  record.line = WatchRecord::Line::kTlsError;
  record.fd = fd;
  put(record, engine::kWatchConnections, why);
  connection_closed(fd, peer, "error");
}

void Watchers::saw_commands(std::string_view lines) {
  WatchRecord record;
  record.line = WatchRecord::Line::kCommand;
  while (!lines.empty()) {
    const size_t end = std::min(lines.find('\n'), lines.size());
    put(record, engine::kWatchCommands, lines.substr(0, end));
    lines.remove_prefix(std::min(end + 1, lines.size()));
  }
}

// --- In the thread that makes the lines

// Waits for records or for wake(). False: stop() was called.
bool Watchers::wait(milliseconds for_at_most) {
  std::unique_lock lock(wake_mutex_);
  const auto is_awake = [this] { return awake_ || stopping_; };
  if (wanted() == 0) {
    condition_.wait(lock, is_awake);
  } else {
    (void)condition_.wait_for(lock, for_at_most, is_awake);
  }
  awake_ = false;
  return !stopping_;
}

void Watchers::run() {
  milliseconds pause = kWaitMin;
  while (wait(pause)) {
    const std::lock_guard lock(watchers_mutex_);
    remove_left();
    const bool found = take_records();
    for (Watcher& watcher : watchers_) flush(watcher);
    pause = found ? kWaitMin : std::min(pause * 2, kWaitMax);
  }
}

// Makes lines of what is in the buffers. False: nothing is.
bool Watchers::take_records() {
  bool found = false;
  for (Buffer& buffer : buffers_) {
    {
      const std::lock_guard lock(buffer.mutex);
      if (buffer.bytes.empty()) continue;
      taken_.swap(buffer.bytes);  // both have the whole capacity
    }
    show(taken_);
    taken_.clear();
    found = true;
  }
  return found;
}

void Watchers::show(const std::vector<uint8_t>& records) {
  WatchRecord record;
  for (size_t at = 0; at < records.size();) {
    std::memcpy(&record, records.data() + at, sizeof record);
    at += sizeof record;
    line_.clear();
    append_watch_line(record, text_of({records.data() + at, record.text_size}), line_);
    at += record.text_size;
    for (Watcher& watcher : watchers_) {
      const bool its_own =
          (watcher.kinds & record.kind) != 0 && record.number >= watcher.first_number;
      if (its_own) offer(watcher, line_);
    }
  }
}

void Watchers::offer(Watcher& watcher, std::string_view line) {
  const size_t needed = watcher.text.size() + line.size() + kSkippedLineMax;
  if (needed > watcher.pipe.space()) {
    ++watcher.skipped;
    lines_skipped_.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  if (watcher.skipped > 0) {
    watcher.text += "skipped=" + std::to_string(std::exchange(watcher.skipped, 0)) + "\n";
  }
  watcher.text += line;
  lines_sent_.fetch_add(1, std::memory_order_relaxed);
}

void Watchers::flush(Watcher& watcher) {
  if (watcher.text.empty()) return;
  (void)watcher.pipe.write(bytes_of(watcher.text));  // offer() has seen that all of it fits
  watcher.text.clear();
}

void Watchers::remove_left() {
  watchers_.remove_if([](const Watcher& watcher) { return watcher.pipe.reader_left(); });
  uint32_t all = 0;
  for (const Watcher& watcher : watchers_) all |= watcher.kinds;
  set_wanted(all);
}

}  // namespace warpcache::admin
