// SPDX-License-Identifier: Apache-2.0
#include "nic_cache/nic_cache.h"

#include <net/if.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <optional>
#include <random>
#include <thread>
#include <unordered_set>

#include "base/atomic.h"
#include "base/frequency_sketch.h"
#include "nic_cache/addresses.h"
#include "nic_cache/copy_table.h"
#include "nic_cache/store_copies.h"
#include "nic_cache/write_back.h"

namespace warpcache::nic_cache {

namespace {

using std::chrono::milliseconds;
using SteadyTime = std::chrono::steady_clock::time_point;

// The program passes everything when the server gave no sign of life for this time.
constexpr auto kAliveFor = milliseconds(1000);
constexpr auto kBeatEvery = milliseconds(250);
constexpr auto kAddressesEvery = milliseconds(1000);
// The thread looks for missed keys; less often while there are none.
constexpr auto kPauseMin = milliseconds(1);
constexpr auto kPauseMax = milliseconds(32);
constexpr uint32_t kSourcesMax = 65536;  // whose rates are known; the least recent goes
constexpr size_t kChangedMax = 4096;     // keys that wait for the end of a change
constexpr uint32_t kTouchedParts = 64;   // a look at the hits takes this number of rounds

uint64_t nanoseconds(SteadyTime time) {
  return static_cast<uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(time.time_since_epoch()).count());
}

bool is_ipv4(const IpAddress& address) {
  constexpr uint8_t kMapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
  return std::memcmp(address.data(), kMapped, sizeof kMapped) == 0;
}

// The bits of a prefix, as the words lie in memory.
void mask_of(uint32_t prefix_bits, __u64* words) {
  uint8_t bytes[16] = {};
  for (uint32_t bit = 0; bit < prefix_bits; ++bit) {
    bytes[bit / 8] = static_cast<uint8_t>(bytes[bit / 8] | 0x80u >> bit % 8);
  }
  std::memcpy(words, bytes, sizeof bytes);
}

uint16_t to_network(uint16_t port) { return static_cast<uint16_t>(port >> 8 | port << 8); }

class XdpNicCache final : public NicCache {
 public:
  explicit XdpNicCache(NicCacheConfig config) : config_(std::move(config)) {}
  ~XdpNicCache() override { stop_now(); }
  XdpNicCache(const XdpNicCache&) = delete;
  XdpNicCache& operator=(const XdpNicCache&) = delete;

  std::string open() override;
  store::CopyHooks hooks() override { return hooks_of(*table_); }
  void start(StoreAccess& store) override;
  void stop() override { stop_now(); }
  void settle() override;
  std::string describe() const override;
  void stats(const Emit& emit) const override;

 private:
  void stop_now();
  void fill_control();
  void refresh_addresses();
  bool listens_at(const IpAddress& address) const;
  void run();
  void beat();
  bool take_wanted();
  bool refill_changed();
  bool copy(Bytes key);
  bool admits(Bytes key);
  void note_touched();
  void reuse_memory();
  void watch_interface();
  std::string attach();
  void take_interface();
  nic_control& control() const { return *memory_.control; }

  const NicCacheConfig config_;
  XdpProgram program_;
  CopyMemory memory_;
  std::unique_ptr<CopyTable> table_;
  std::unique_ptr<WriteBack> write_back_;  // null: writes pass
  std::optional<FrequencySketch> asked_;   // misses of keys, with admit_frequent
  std::atomic<uint64_t> rare_{0};          // keys that were not copied for it
  StoreAccess* store_ = nullptr;
  std::vector<std::vector<uint8_t>> changed_;  // keys that are copied again, with refill_changed
  std::atomic<uint64_t> lost_writes_{0};
  std::thread thread_;
  std::mutex mutex_;  // guards `stopping_`
  std::condition_variable stopped_;
  bool stopping_ = false;
  std::atomic<bool> attached_{false};
  bool waits_for_interface_ = false;  // another server's program is on it
  SteadyTime next_beat_{};
  std::atomic<bool> reuses_memory_{true};
};

std::string XdpNicCache::open() {
  const std::string prefix = "--nic-cache=" + config_.interface + ": ";
  if (if_nametoindex(config_.interface.c_str()) == 0) {
    return prefix + "there is no such interface.";
  }
  if (config_.allowed.size() > kNicNetworksMax) {
    return prefix + "at most " + std::to_string(kNicNetworksMax) + " networks of --udp-allow.";
  }
  const uint32_t sources = config_.source_rate_max != 0 ? kSourcesMax : 1;
  std::string failure = program_.load(config_.memory_mb, sources);
  if (!failure.empty()) return prefix + failure + ".";
  memory_ = program_.memory();
  std::random_device random;
  table_ = std::make_unique<CopyTable>(memory_, uint64_t{random()} << 32 | uint64_t{random()});
  if (config_.refill_changed) table_->keep_dropped();
  if (config_.write_back) write_back_ = std::make_unique<WriteBack>(program_);
  if (config_.admit_frequent) asked_.emplace(uint64_t{memory_.set_count} * kNicWays);
  fill_control();
  failure = attach();
  if (waits_for_interface_) {
    spdlog::info("--nic-cache={}: {}; this server's takes its place when that is gone",
                 config_.interface, failure);
    return "";
  }
  return failure.empty() ? "" : prefix + failure + ".";
}

// Sets attached_ and waits_for_interface_.
std::string XdpNicCache::attach() {
  const unsigned interface = if_nametoindex(config_.interface.c_str());
  bool busy = false;
  std::string failure =
      interface == 0 ? "the interface is gone" : program_.attach(interface, config_.mode, &busy);
  attached_ = failure.empty();
  waits_for_interface_ = busy && config_.takes_over;
  return failure;
}

// After the server before this one has detached its program.
void XdpNicCache::take_interface() {
  const std::string failure = attach();
  if (waits_for_interface_) return;
  if (failure.empty()) {
    spdlog::info("--nic-cache={}: attached", config_.interface);
  } else {
    spdlog::warn("--nic-cache={}: {}; the server goes on without its NIC cache", config_.interface,
                 failure);
  }
}

void XdpNicCache::fill_control() {
  nic_control& words = control();
  words.amplification = config_.amplification_max;
  words.rate = config_.source_rate_max;
  words.port = to_network(config_.udp_port);
  words.read_allocate = config_.read_allocate ? 1 : 0;
  words.text = config_.text ? 1 : 0;
  words.binary = config_.binary ? 1 : 0;
  words.write_back = config_.write_back ? 1 : 0;
  words.network_count = static_cast<uint32_t>(config_.allowed.size());
  for (size_t i = 0; i < config_.allowed.size(); ++i) {
    std::memcpy(words.networks[i].words, config_.allowed[i].address.data(), 16);
    mask_of(config_.allowed[i].prefix_bits, words.networks[i].mask);
  }
  refresh_addresses();
}

bool XdpNicCache::listens_at(const IpAddress& address) const {
  return std::any_of(config_.listeners.begin(), config_.listeners.end(),
                     [&](const NicCacheConfig::Listener& one) {
                       return is_ipv4(address) ? one.any_ipv4 || one.address == address
                                               : one.any_ipv6 || one.address == address;
                     });
}

// The program compares with the first `address_count` addresses. While they change, there are none.
void XdpNicCache::refresh_addresses() {
  const InterfaceAddresses found = addresses_of(config_.interface);
  std::vector<nic_control::nic_address> wanted;
  for (const InterfaceAddress& one : found.addresses) {
    if (wanted.size() == kNicAddressesMax || !listens_at(one.address)) continue;
    nic_control::nic_address& words = wanted.emplace_back();
    words = {};
    std::memcpy(words.words, one.address.data(), 16);
    words.vlan = one.vlan;
  }
  nic_control& words = control();
  const bool same = words.address_count == wanted.size() &&
                    std::memcmp(words.mac, found.mac.data(), sizeof words.mac) == 0 &&
                    (wanted.empty() || std::memcmp(words.addresses, wanted.data(),
                                                   wanted.size() * sizeof wanted[0]) == 0);
  if (same) return;
  store_release(&words.address_count, 0);
  (void)program_.wait_for_runs();
  std::memcpy(words.mac, found.mac.data(), sizeof words.mac);
  std::copy(wanted.begin(), wanted.end(), words.addresses);
  store_release(&words.address_count, static_cast<uint32_t>(wanted.size()));
}

void XdpNicCache::start(StoreAccess& store) {
  store_ = &store;
  beat();  // what comes before the thread has run is answered too
  thread_ = std::thread([this] { run(); });
}

void XdpNicCache::stop_now() {
  if (table_ != nullptr) store_release(&control().alive_until, 0);
  program_.detach();
  attached_ = false;
  if (!thread_.joinable()) return;
  {
    const std::lock_guard guard(mutex_);
    stopping_ = true;
  }
  stopped_.notify_all();
  thread_.join();
  store_release(&control().alive_until, 0);
  if (write_back_ != nullptr) (void)program_.wait_for_runs();
  settle();
}

void XdpNicCache::settle() {
  if (write_back_ == nullptr) return;
  write_back_->settle([this](const nic_write& write) {
    const Bytes key = {write.key, write.key_size};
    const Bytes value = {write.value, write.value_size};
    if (!store_->set(key, write.client_flags, value, write.cas)) ++lost_writes_;
  });
}

void XdpNicCache::run() {
  SteadyTime next_addresses{};
  milliseconds pause = kPauseMin;
  std::unique_lock guard(mutex_);
  while (!stopping_) {
    guard.unlock();
    beat();
    const SteadyTime now = std::chrono::steady_clock::now();
    if (now >= next_addresses) {
      if (waits_for_interface_) take_interface();
      refresh_addresses();
      next_addresses = now + kAddressesEvery;
    }
    settle();
    const bool wanted = take_wanted();
    pause = refill_changed() || wanted ? kPauseMin : std::min(pause * 2, kPauseMax);
    note_touched();
    reuse_memory();
    guard.lock();
    stopped_.wait_for(guard, pause, [this] { return stopping_; });
  }
}

// Also between copies: an item of a device takes its time.
void XdpNicCache::beat() {
  const SteadyTime now = std::chrono::steady_clock::now();
  if (now < next_beat_) return;
  store_release(&control().alive_until, nanoseconds(now + kAliveFor));
  next_beat_ = now + kBeatEvery;
  watch_interface();
}

void XdpNicCache::watch_interface() {
  if (!attached_ || program_.attached()) return;
  attached_ = false;
  spdlog::warn("--nic-cache={}: the interface is gone; the server goes on without its NIC cache",
               config_.interface);
}

// A write that the program accepts after the version was read makes the copy a dead one; the item
// has all earlier ones. False: the item is being changed.
bool XdpNicCache::copy(Bytes key) {
  beat();
  const uint32_t version = table_->version_of(key);
  settle();
  return store_->visit_locked(key,
                              [&](const store::Item& item) { copy_item(*table_, item, version); });
}

// Copies the items of keys that were missed, each once however often it was. The keys are taken
// first: while items are copied there may come more, without end.
bool XdpNicCache::take_wanted() {
  std::vector<std::string> wanted;
  program_.take_wanted([&wanted](Bytes key) {
    wanted.emplace_back(reinterpret_cast<const char*>(key.data), key.size);
  });
  std::unordered_set<std::string_view> copied;
  for (const std::string& key : wanted) {
    if (admits(bytes_of(key)) && copied.insert(key).second) (void)copy(bytes_of(key));
  }
  return !wanted.empty();
}

// Of keys that are asked for once, copies only put others out.
bool XdpNicCache::admits(Bytes key) {
  if (!asked_.has_value()) return true;
  const bool again = asked_->add(table_->hash(key)) > 1;
  if (again || table_->has_space(key)) return true;
  ++rare_;
  return false;
}

// Copies the items again whose copies were taken back. What was removed is not there any more; what
// is still being changed is tried again.
bool XdpNicCache::refill_changed() {
  table_->take_dropped(&changed_);
  if (changed_.empty()) return false;
  std::erase_if(changed_, [this](const std::vector<uint8_t>& key) {
    return copy({key.data(), key.size()});
  });
  if (changed_.size() > kChangedMax) changed_.resize(kChangedMax);
  return true;
}

// Reports to the store which items were hit, so that it does not evict them as unused.
void XdpNicCache::note_touched() {
  std::vector<std::vector<uint8_t>> keys;
  table_->take_touched(std::max(memory_.set_count / kTouchedParts, 1u), &keys);
  if (!keys.empty()) store_->note_read(keys);
}

void XdpNicCache::reuse_memory() {
  if (!reuses_memory_ || !table_->retire_begin()) return;
  if (program_.wait_for_runs()) {
    table_->retire_end();
    return;
  }
  reuses_memory_ = false;
  spdlog::error(
      "--nic-cache={}: the kernel does not say when runs of the program have ended; the "
      "memory of copies is not used again",
      config_.interface);
}

std::string XdpNicCache::describe() const {
  const char* const mode = config_.mode == XdpMode::kGeneric  ? ", generic"
                           : config_.mode == XdpMode::kNative ? ", native"
                                                              : "";
  return config_.interface + mode + ", " + std::to_string(config_.memory_mb) + " MB";
}

void XdpNicCache::stats(const Emit& emit) const {
  const auto number = [&](std::string_view name, uint64_t value) {
    emit(name, std::to_string(value));
  };
  emit("interface", config_.interface);
  number("attached", attached_ ? 1 : 0);
  const CopyCounts copies = table_->counts();
  number("limit_bytes", uint64_t{memory_.block_count} * kNicBlockBytes);
  number("copies", copies.copies);
  number("copies_bytes", copies.bytes);
  number("filled", copies.filled);
  number("refused", copies.refused);
  number("no_space", copies.no_space);
  number("dropped", copies.dropped);
  number("evicted", copies.evicted);
  number("rare", rare_);
  number("lost_writes", lost_writes_);
  for (uint32_t queue = 0; queue < kNicQueuesMax; ++queue) {
    const nic_counters counters = program_.counters(queue);
    if (queue != 0 && counters.requests == 0) continue;
    const std::string prefix = "queue" + std::to_string(queue) + "_";
    number(prefix + "requests", counters.requests);
    number(prefix + "hits", counters.hits);
    number(prefix + "keys", counters.keys);
    number(prefix + "misses", counters.misses);
    number(prefix + "other", counters.other);
    number(prefix + "foreign", counters.foreign);
    number(prefix + "guarded", counters.guarded);
    number(prefix + "no_room", counters.no_room);
    number(prefix + "asleep", counters.asleep);
    number(prefix + "wanted", counters.wanted);
    number(prefix + "wanted_lost", counters.wanted_lost);
    number(prefix + "reply_bytes", counters.reply_bytes);
    number(prefix + "writes", counters.writes);
    number(prefix + "limited", counters.limited);
  }
}

}  // namespace
}  // namespace warpcache::nic_cache

extern "C" __attribute__((visibility("default"))) warpcache::nic_cache::NicCache*
warpcache_make_nic_cache(const warpcache::nic_cache::NicCacheConfig& config) {
  return new warpcache::nic_cache::XdpNicCache(config);
}
