// SPDX-License-Identifier: Apache-2.0
//
// Kernels for the store's own work, and how the host starts them. The first block leads; further
// blocks are evacuators (store/reclaim/evacuators.h). All launches are asynchronous on the given
// stream; memory that pointers lead to must stay until they have ended. Errors are CUDA's: look for
// them with cudaGetLastError() and at the next synchronisation.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "store/host/owner.h"

namespace warpcache::store {

enum class ServiceOp : uint32_t {
  kStart,     // builds the maintainer
  kMaintain,  // see Maintainer::maintain(). `result` 1: there is more to do at once
  kReclaim,   // argument: bytes. `result` is a Maintainer::Space
  kFlush,
  kFlushPrefix,  // `key`, `key_size`; argument: when it is due. `status`: see flush_prefix()
  kClock,        // argument: the second
  kExpire,
  kSetTarget,  // argument: segments. `result` 0: see Maintainer::set_target()
  kReserve,    // argument: key size << 32 | value size; `parts`. `result` is the id, `status` says
               // more
  kAbandon,    // argument: the id
  kInspect,    // `key`, `key_size`. `result` 1: `item` is the header
  kLogEvictions,  // argument: the address of the EvictionLog; 0: ends it
  kRead,          // likewise, and the item is marked as copied: `key` and the value follow `item`
};

// Bytes of a value that kRead copies at most.
inline constexpr uint32_t kReadValueMax = 1536;

// In pinned host memory.
struct ServiceCall {
  ServiceOp op;
  uint32_t key_size;
  uint64_t argument;
  uint64_t result;
  MutableBytes* parts;  // pinned: gets those of a reservation
  Status status;
  uint32_t free_segments;
  uint32_t low_water;
  uint32_t missed_evictions;  // EvictionLog::missed; unchanged while evictions are not logged
  uint32_t next_due;  // of kFlushPrefix and kClock: the next second at which a prefix is flushed; 0
  uint64_t segment_limit;
  Clock clock;
  alignas(16) Item item;
  uint8_t key[256 + kReadValueMax];  // of an item in one piece the value follows the key
};
static_assert(offsetof(ServiceCall, key) == offsetof(ServiceCall, item) + sizeof(Item));

// Makes the driver allocate the local memory that kernels need when their threads have too few
// registers: hundreds of megabytes. Without this call the driver allocates it at the first launch,
// when there may be too little. The store's kernels need most of it.
void take_kernel_memory(cudaStream_t stream);

// `maintainer`: device memory of maintainer_bytes(). `evacuators`: the same number at each call.
// `launch_number`: another number at each call, never 0.
uint64_t maintainer_bytes(uint32_t evacuators);
void launch_service(const Core& core, ThreadCounters* counters, void* maintainer, ServiceCall* call,
                    uint32_t launch_number, uint32_t evacuators, cudaStream_t stream);

// Keys whose items were read elsewhere.
inline constexpr uint32_t kNotedMax = 512;
struct NotedKeys {
  struct Key {
    uint32_t size;
    uint32_t found;  // out: 1: the item is there
    uint8_t text[256];
  };
  uint32_t count;
  Key keys[kNotedMax];
};
// `noted`: pinned.
void launch_note_read(const Core& core, NotedKeys* noted, cudaStream_t stream);

// Copies header and key of the live items in the pairs from `first_pair` on, until the buffer is
// full or some milliseconds have passed.
struct WalkCall {
  uint32_t first_pair;
  uint32_t next_pair;   // out: where to continue, if below pair_count
  uint32_t pair_count;  // out
  uint32_t count;       // out: items in the buffer
};
inline constexpr uint32_t kWalkedBytes = sizeof(Item) + 256;  // a key has at most 250 bytes
inline constexpr uint32_t kWalkedMax = 2048;
void launch_walk(const Core& core, WalkCall* call, uint8_t* buffer, cudaStream_t stream);

}  // namespace warpcache::store
