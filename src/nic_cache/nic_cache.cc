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
#include <random>
#include <thread>

#include "base/atomic.h"
#include "nic_cache/addresses.h"
#include "nic_cache/copy_table.h"
#include "nic_cache/store_copies.h"

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
constexpr uint32_t kTouchedParts = 64;  // a look at the hits takes this number of rounds

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

}  // namespace

struct NicCache::Parts {
  explicit Parts(NicCacheConfig given) : config(std::move(given)) {}

  void fill_control();
  void refresh_addresses();
  bool listens_at(const IpAddress& address) const;
  void run();
  bool take_wanted();
  void note_touched();
  void reuse_memory();
  void watch_interface();
  nic_control& control() const { return *memory.control; }

  const NicCacheConfig config;
  XdpProgram program;
  CopyMemory memory;
  std::unique_ptr<CopyTable> table;
  store::Store* store = nullptr;
  std::thread thread;
  std::mutex mutex;  // guards `stopping`
  std::condition_variable stopped;
  bool stopping = false;
  std::atomic<bool> attached{false};
  std::atomic<bool> reuses_memory{true};
};

NicCache::NicCache(NicCacheConfig config) : parts_(std::make_unique<Parts>(std::move(config))) {}

NicCache::~NicCache() { stop(); }

std::string NicCache::open() {
  Parts& parts = *parts_;
  const std::string prefix = "--nic-cache=" + parts.config.interface + ": ";
  const unsigned interface = if_nametoindex(parts.config.interface.c_str());
  if (interface == 0) return prefix + "there is no such interface.";
  if (parts.config.allowed.size() > kNicNetworksMax) {
    return prefix + "at most " + std::to_string(kNicNetworksMax) + " networks of --udp-allow.";
  }
  std::string failure = parts.program.load(parts.config.memory_mb);
  if (!failure.empty()) return prefix + failure + ".";
  parts.memory = parts.program.memory();
  std::random_device random;
  parts.table =
      std::make_unique<CopyTable>(parts.memory, uint64_t{random()} << 32 | uint64_t{random()});
  parts.fill_control();
  failure = parts.program.attach(interface, parts.config.mode);
  if (!failure.empty()) return prefix + failure + ".";
  parts.attached = true;
  return "";
}

void NicCache::Parts::fill_control() {
  nic_control& words = control();
  words.amplification = config.amplification_max;
  words.port = to_network(config.udp_port);
  words.read_allocate = config.read_allocate ? 1 : 0;
  words.text = config.text ? 1 : 0;
  words.binary = config.binary ? 1 : 0;
  words.network_count = static_cast<uint32_t>(config.allowed.size());
  for (size_t i = 0; i < config.allowed.size(); ++i) {
    std::memcpy(words.networks[i].words, config.allowed[i].address.data(), 16);
    mask_of(config.allowed[i].prefix_bits, words.networks[i].mask);
  }
  refresh_addresses();
}

bool NicCache::Parts::listens_at(const IpAddress& address) const {
  return std::any_of(config.listeners.begin(), config.listeners.end(),
                     [&](const NicCacheConfig::Listener& one) {
                       return is_ipv4(address) ? one.any_ipv4 || one.address == address
                                               : one.any_ipv6 || one.address == address;
                     });
}

// The program compares with the first `address_count` addresses. While they change, there are none.
void NicCache::Parts::refresh_addresses() {
  const InterfaceAddresses found = addresses_of(config.interface);
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
  (void)program.wait_for_runs();
  std::memcpy(words.mac, found.mac.data(), sizeof words.mac);
  std::copy(wanted.begin(), wanted.end(), words.addresses);
  store_release(&words.address_count, static_cast<uint32_t>(wanted.size()));
}

store::CopyHooks NicCache::hooks() { return hooks_of(*parts_->table); }

void NicCache::start(store::Store& store) {
  parts_->store = &store;
  parts_->thread = std::thread([this] { parts_->run(); });
}

void NicCache::stop() {
  Parts& parts = *parts_;
  if (parts.table != nullptr) store_release(&parts.control().alive_until, 0);
  parts.program.detach();
  parts.attached = false;
  if (!parts.thread.joinable()) return;
  {
    const std::lock_guard guard(parts.mutex);
    parts.stopping = true;
  }
  parts.stopped.notify_all();
  parts.thread.join();
  store_release(&parts.control().alive_until, 0);
}

void NicCache::Parts::run() {
  SteadyTime next_beat{};
  SteadyTime next_addresses{};
  milliseconds pause = kPauseMin;
  std::unique_lock guard(mutex);
  while (!stopping) {
    guard.unlock();
    const SteadyTime now = std::chrono::steady_clock::now();
    if (now >= next_beat) {
      store_release(&control().alive_until, nanoseconds(now + kAliveFor));
      next_beat = now + kBeatEvery;
      watch_interface();
    }
    if (now >= next_addresses) {
      refresh_addresses();
      next_addresses = now + kAddressesEvery;
    }
    pause = take_wanted() ? kPauseMin : std::min(pause * 2, kPauseMax);
    note_touched();
    reuse_memory();
    guard.lock();
    stopped.wait_for(guard, pause, [this] { return stopping; });
  }
}

void NicCache::Parts::watch_interface() {
  if (!attached || program.attached()) return;
  attached = false;
  spdlog::warn("--nic-cache={}: the interface is gone; the server goes on without its NIC cache",
               config.interface);
}

// Copies the items of keys that were missed.
bool NicCache::Parts::take_wanted() {
  bool any = false;
  program.take_wanted([&](Bytes key) {
    any = true;
    store->visit_locked(key, [&](const store::Item& item) { copy_item(*table, item); });
  });
  return any;
}

// Tells the store which items were hit, so that it does not evict them as unused.
void NicCache::Parts::note_touched() {
  std::vector<std::vector<uint8_t>> keys;
  table->take_touched(std::max(memory.set_count / kTouchedParts, 1u), &keys);
  for (const std::vector<uint8_t>& key : keys) store->note_read({key.data(), key.size()});
}

void NicCache::Parts::reuse_memory() {
  if (!reuses_memory || !table->retire_begin()) return;
  if (program.wait_for_runs()) {
    table->retire_end();
    return;
  }
  reuses_memory = false;
  spdlog::error(
      "--nic-cache={}: the kernel does not say when runs of the program have ended; the "
      "memory of copies is not used again",
      config.interface);
}

std::string NicCache::describe() const {
  const char* const mode = parts_->config.mode == XdpMode::kGeneric  ? ", generic"
                           : parts_->config.mode == XdpMode::kNative ? ", native"
                                                                     : "";
  return parts_->config.interface + mode + ", " + std::to_string(parts_->config.memory_mb) + " MB";
}

void NicCache::stats(const Emit& emit) const {
  const auto number = [&](std::string_view name, uint64_t value) {
    emit(name, std::to_string(value));
  };
  const Parts& parts = *parts_;
  emit("interface", parts.config.interface);
  number("attached", parts.attached ? 1 : 0);
  const CopyCounts copies = parts.table->counts();
  number("limit_bytes", uint64_t{parts.memory.block_count} * kNicBlockBytes);
  number("copies", copies.copies);
  number("copies_bytes", copies.bytes);
  number("filled", copies.filled);
  number("refused", copies.refused);
  number("no_space", copies.no_space);
  number("dropped", copies.dropped);
  number("evicted", copies.evicted);
  for (uint32_t queue = 0; queue < kNicQueuesMax; ++queue) {
    const nic_counters counters = parts.program.counters(queue);
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
  }
}

}  // namespace warpcache::nic_cache
