// SPDX-License-Identifier: Apache-2.0
//
// The NIC cache: answers gets of hot items by UDP on the receive path of a network interface,
// before the host's network stack sees them (docs/nic_cache.md). The program passes all other
// frames on, and reports the keys that it missed. The cache's thread copies their items, and says
// every moment that the server lives.
//
// The order of the calls: open(), as the user who may attach programs; hooks(), for the store that
// is made then; start(); stop(). The object outlives the store. Few servers have one, so its code
// is a module that is loaded for it.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "nic_cache/program.h"
#include "store/layout/item.h"
#include "store/layout/shared.h"

namespace warpcache::nic_cache {

// As options of the server say.
struct NicCacheConfig {
  struct Network {
    std::array<uint8_t, 16> address{};  // IPv4 as ::ffff:a.b.c.d
    uint8_t prefix_bits = 0;
  };
  struct Listener {
    std::array<uint8_t, 16> address{};  // likewise
    bool any_ipv4 = false;              // 0.0.0.0
    bool any_ipv6 = false;              // ::
  };

  std::string interface;
  XdpMode mode = XdpMode::kAny;
  uint32_t memory_mb = 64;
  bool read_allocate = true;
  bool admit_frequent = false;  // where a copy puts another out, its key has been missed before
  bool takes_over = false;      // where another server's program is, waits until that is gone
  bool write_back = false;      // the program accepts sets; then refill_changed too
  bool refill_changed = false;  // a copy that was taken back for a change is made anew at once
  uint16_t udp_port = 0;
  std::vector<Listener> listeners;  // at udp_port
  std::vector<Network> allowed;     // sources that get replies of any size
  uint32_t amplification_max = 10;  // for others: reply bytes per request byte
  uint32_t source_rate_max = 0;     // datagrams a second of a source, others are dropped; 0: all
  bool text = true;
  bool binary = true;
};

// What the cache asks of the store.
class StoreAccess {
 public:
  virtual ~StoreAccess() = default;
  // Calls visit(item) if the key has an item that can be copied now: nobody changes it before
  // `visit` has returned. The value is there if a copy can hold it. False: it is being changed; ask
  // again later.
  virtual bool visit_locked(Bytes key, const std::function<void(const store::Item&)>& visit) = 0;
  // The keys were read elsewhere.
  virtual void note_read(const std::vector<std::vector<uint8_t>>& keys) = 0;
  // Sets an item without a time to live, with a CAS id above `cas` if the store gave that; where
  // there is no memory, removes it and returns false. By one thread at a time, outside batches.
  virtual bool set(Bytes key, uint32_t client_flags, Bytes value, uint64_t cas) = 0;
};

class NicCache {
 public:
  virtual ~NicCache() = default;  // stops

  // Loads the program and attaches it; it passes everything until start(). Returns "" or a
  // sentence. With takes_over it may be attached later.
  [[nodiscard]] virtual std::string open() = 0;
  virtual store::CopyHooks hooks() = 0;
  // REQUIRES: the store was made with hooks(); `store` outlives stop().
  virtual void start(StoreAccess& store) = 0;
  // From now on everything passes; the program is detached, and the thread has ended.
  virtual void stop() = 0;

  // With write_back: the store has all writes that were answered before. Called before the store is
  // used, by any thread outside batches.
  virtual void settle() = 0;

  // The interface and the mode, for the banner.
  [[nodiscard]] virtual std::string describe() const = 0;

  // Names and values for `stats nic`. From any thread.
  using Emit = std::function<void(std::string_view name, std::string_view value)>;
  virtual void stats(const Emit& emit) const = 0;
};

inline constexpr char kNicCacheModule[] = "warpcached-nic-cache.so";

}  // namespace warpcache::nic_cache

// The module's function. The caller owns the result.
extern "C" warpcache::nic_cache::NicCache* warpcache_make_nic_cache(
    const warpcache::nic_cache::NicCacheConfig& config);
