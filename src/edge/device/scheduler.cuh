// SPDX-License-Identifier: Apache-2.0
//
// The scheduler: a block whose warps look at submission queues and start events. Its last warp is
// the manager: it alone follows the host's orders (the table of events, barriers, the end), and
// announces completions. The others, the servers, have events of their own each, so that the words
// of a queue have one reader. A block of one warp does both alternately. Reads of the host's memory
// delay each other, and a fence waits for them: no two warps read the same word there, and no
// server has a fence. A Dispatch starts events:
//
//   open(), close()       around calls of start()
//   start(...)            see RingDispatch
//   manage()              now and then
//
// Device code.
#pragma once

#include "edge/device/barrier.cuh"
#include "edge/device/words.cuh"

namespace warpcache::edge {

// In shared memory, or in device memory where the scheduler ends and goes on. Counts of changes
// begin with the region's.
struct SchedulerShared {
  Facts facts[kEventsMax];
  uint32_t taken[kEventsMax];
  uint32_t ticks[kEventsMax];
  uint64_t tick_ns[kEventsMax];  // when a timer's next event is due
  // The manager's.
  uint32_t announced[kEventsMax];
  uint64_t unannounced_ns[kEventsMax];  // 0: nothing waits
  uint32_t loaded;                      // 1: the table was read
  // Between the manager and the servers.
  uint32_t orders;   // counts changes of the following
  uint32_t stop;     // 1: all warps end
  uint32_t open;     // events, a bit each
  uint32_t applied;  // changes of the table that are in `facts`
  uint32_t wanted;   // the change of the table for which servers must stop reading it
  uint32_t let_go[kThreadsMax / kWarp];  // of each server: the last change for which it has stopped
};

template <typename Dispatch>
class Scheduler {
 public:
  // Called by the whole block; `shared` is all zeros, or what the last run has left.
  __device__ Scheduler(const View& view, SchedulerShared& shared, Dispatch& dispatch)
      : view_(view), shared_(shared), dispatch_(dispatch) {
    if (lane() == 0) shared.let_go[warp()] = shared.applied;
    __syncthreads();
  }

  // Until the host says stop, the lifetime has passed, or `ends` says so.
  template <typename Ends>
  __device__ void run(uint64_t began_ns, const Ends& ends) {
    const bool manages = warp() == manager();
    const bool serves = !manages || manager() == 0;
    uint32_t idle_rounds = 0;
    uint32_t orders = ~0u;
    uint32_t own = 0;
    bool eager = false;
    for (uint32_t round = 0; !ends(); ++round) {
      if (manages && (!serves || round % kSeldom == 0)) manage(began_ns, round);
      uint32_t now = lane() == 0 ? load_acquire_block(&shared_.orders) : 0;
      now = __shfl_sync(~0u, now, 0);
      if (now != orders) {
        orders = now;
        if (must_stop()) break;
        if (!manages) let_go_if_wanted();
        own = own_events();
      }
      if (!serves) {
        __nanosleep(kManagerPauseNs);
        continue;
      }
      bool found = false;
      for (uint32_t left = candidates(own); left != 0; left &= left - 1) {
        if (serve(static_cast<uint32_t>(__ffs(left)) - 1, eager)) found = true;
      }
      eager = found;
      if (round % kRare == 0) flush_polls();
      idle_rounds = found ? 0 : idle_rounds + 1;
      if (!found) pause(own == 0 ? kNothingToDo : idle_rounds);
    }
    flush_polls();
    __syncwarp();
    if (lane() == 0) store_release_block(&shared_.let_go[warp()], kGone);
  }

 private:
  static constexpr uint32_t kBurst = kTakenAtOnceMax;  // entries of few words, read at once
  static constexpr uint32_t kLoads = 4;                // of each lane, for an entry of many words
  static_assert(kLoads * kWarp > kParameterWordsMax);
  static_assert(kEventsMax == kWarp, "the manager and look() have a lane for each event");
  static constexpr uint32_t kSeldom = 8;
  static constexpr uint32_t kNothingToDo =
      5000;  // for pause(): a server without events looks seldom
  static constexpr uint32_t kRare = 256;
  static constexpr uint32_t kManagerPauseNs = 500;
  static constexpr uint32_t kGone = ~0u;  // of let_go: the server has ended

  __device__ static uint32_t manager() { return blockDim.x / kWarp - 1; }

  // All functions from here on are called by a whole warp.
  __device__ bool must_stop() const {
    const uint32_t stop = lane() == 0 ? load_block(&shared_.stop) : 0;
    return __shfl_sync(~0u, stop, 0) != 0;
  }

  __device__ uint32_t own_events() const {
    uint32_t open = lane() == 0 ? load_block(&shared_.open) : 0;
    open = __shfl_sync(~0u, open, 0);
    if (manager() == 0) return open;
    const bool own = lane() % manager() == warp();
    return open & __ballot_sync(~0u, own);
  }

  // --- Changes of the table

  // A server uses nothing of the table while the manager changes it.
  __device__ void let_go_if_wanted() {
    uint32_t wanted = lane() == 0 ? load_acquire_block(&shared_.wanted) : 0;
    wanted = __shfl_sync(~0u, wanted, 0);
    uint32_t applied = 0;
    while (true) {
      applied = lane() == 0 ? load_acquire_block(&shared_.applied) : 0;
      applied = __shfl_sync(~0u, applied, 0);
      if (applied == wanted) break;
      if (lane() == 0) store_release_block(&shared_.let_go[warp()], wanted);
      __nanosleep(50);
    }
  }

  __device__ void manage(uint64_t began_ns, uint32_t round) {
    dispatch_.manage();
    announce();
    if (round % kSeldom != 0) return;
    uint64_t control = 0;
    if (lane() == 0) control = load_system(&view_.header().control);
    forward_releases();
    control = __shfl_sync(~0u, control, 0);
    bool stops = half_of(control) == static_cast<uint32_t>(Command::kStop);
    if (!stops && round % kRare == 0) stops = expired(began_ns);
    if (stops) {
      if (lane() == 0) {
        store_block(&shared_.stop, 1);
        order();
      }
    } else if (shared_.loaded == 0 || number_of(control) != shared_.applied) {
      change_table(number_of(control));
    }
    __syncwarp();
  }

  // Servers look again. Lane 0.
  __device__ void order() { store_release_block(&shared_.orders, shared_.orders + 1); }

  __device__ bool expired(uint64_t began_ns) const {
    uint32_t over = 0;
    if (lane() == 0 && view_.lifetime_ns != 0) {
      over = gpu::global_time_ns() - began_ns > view_.lifetime_ns ? 1 : 0;
    }
    return __shfl_sync(~0u, over, 0) != 0;
  }

  // Reads the table, a lane an event. The host waits for `seen` before it writes the fields of an
  // event anew.
  __device__ void change_table(uint32_t generation) {
    if (lane() == 0) {
      store_release_block(&shared_.wanted, generation);
      order();
      for (uint32_t server = 0; server < manager(); ++server) {
        uint32_t let_go = 0;
        do {
          let_go = load_acquire_block(&shared_.let_go[server]);
          if (let_go != generation && let_go != kGone) __nanosleep(50);
        } while (let_go != generation && let_go != kGone);
      }
    }
    __syncwarp();
    fence_all();
    const bool fresh = load_entry(lane());
    for (uint32_t left = __ballot_sync(~0u, fresh); left != 0; left &= left - 1) {
      clear_contexts(static_cast<uint32_t>(__ffs(left)) - 1);
    }
    const uint32_t open = __ballot_sync(~0u, shared_.facts[lane()].open != 0);
    fence_all();
    store_system(&view_.entry(lane()).seen, generation);
    if (lane() == 0) {
      shared_.loaded = 1;
      store_block(&shared_.open, open);
      store_release_block(&shared_.applied, generation);
      order();
    }
    __syncwarp();
  }

  // True: another registration than before. Each lane by itself.
  __device__ bool load_entry(uint32_t event) {
    const EventEntry& entry = view_.entry(event);
    Facts facts = {};
    facts.open = load_system(&entry.state) == static_cast<uint32_t>(EventState::kOpen);
    facts.serial = load_system(&entry.serial);
    facts.flags = load_system(&entry.flags);
    facts.depth = load_system(&entry.depth);
    facts.function = load_system(&entry.function);
    facts.words = load_system(&entry.words);
    facts.stride = load_system(&entry.stride);
    facts.blocks = load_system(&entry.blocks);
    facts.priority = load_system(&entry.priority);
    facts.period_us = load_system(&entry.period_us);
    facts.notify_count = load_system(&entry.notify_count);
    facts.notify_us_max = load_system(&entry.notify_us_max);
    facts.task_flags = facts.depth == 0 ? 0 : task_flags(facts);
    const bool on_device = (facts.flags & EDGE_DEVICE_QUEUE) != 0;
    uint8_t* const base =
        on_device ? view_.device_queues + event * view_.device_queue_bytes : view_.region;
    facts.submissions = reinterpret_cast<uint64_t*>(base + load_system(&entry.submissions));
    facts.completions = reinterpret_cast<uint64_t*>(base + load_system(&entry.completions));
    QueueState& queue = view_.state->queues[event];
    const bool fresh = facts.open != 0 && facts.serial != queue.facts.serial;
    if (fresh) {
      store_device(&queue.posted, load_system(&entry.taken));
      store_device(&queue.completed, 0);
    }
    const bool began = shared_.facts[event].serial != facts.serial;
    const uint32_t open = facts.open;
    facts.open = 0;
    queue.facts = facts;
    __threadfence();
    atomicExch(&queue.facts.open, open);
    facts.open = open;
    if (began) {
      shared_.taken[event] = load_system(&entry.taken);
      shared_.announced[event] = fresh ? 0 : load_system(&entry.notified);
      shared_.unannounced_ns[event] = 0;
      shared_.tick_ns[event] = gpu::global_time_ns() + uint64_t{facts.period_us} * 1000;
      shared_.ticks[event] = shared_.taken[event];
    }
    shared_.facts[event] = facts;
    return fresh;
  }

  // Of an event of another registration.
  __device__ void clear_contexts(uint32_t event) {
    __syncwarp();
    for (uint32_t i = lane(); i < view_.contexts_each; i += kWarp) {
      Context& context = view_.contexts[event * view_.contexts_each + i];
      context.blocks_done = context.code = context.ended = 0;
    }
    __threadfence();
    __syncwarp();
  }

  __device__ const uint64_t* entry_at(const Facts& facts, uint32_t position) const {
    return reinterpret_cast<const uint64_t*>(reinterpret_cast<const uint8_t*>(facts.submissions) +
                                             uint64_t{position & (facts.depth - 1)} * facts.stride);
  }

  // --- Events

  // Of a warp's events those whose doorbell may have rung. For one or two it is not worth a look:
  // serve() reads the doorbell along with the parameters.
  __device__ uint32_t candidates(uint32_t own) {
    if (__popc(own) <= 2) return own;
    bool rung = false;
    if ((own >> lane() & 1) != 0) {
      const Facts& facts = shared_.facts[lane()];
      const uint32_t taken = shared_.taken[lane()];
      rung = facts.period_us != 0 ||
             number_of(load_system(entry_at(facts, taken))) == number_at(taken);
    }
    bell_polls_ += static_cast<uint32_t>(__popc(own));
    return __ballot_sync(~0u, rung);
  }

  // True: something was started.
  __device__ bool serve(uint32_t event, bool eager) {
    const Facts facts = shared_.facts[event];  // read before the doorbell: it takes longer
    if (facts.period_us != 0) return serve_timer(event);
    const uint32_t taken = shared_.taken[event];
    ++bell_polls_;
    if (facts.words >= kWarp) return serve_large(facts, event, taken);
    return eager ? serve_small<kBurst>(facts, event, taken) : serve_small<1>(facts, event, taken);
  }

  template <uint32_t kEntries>
  __device__ bool serve_small(const Facts& facts, uint32_t event, uint32_t taken) {
    uint64_t words[kEntries][1];
#pragma unroll
    for (uint32_t i = 0; i < kEntries; ++i) {
      words[i][0] = numbered(number_at(taken + i), 0);
      if (lane() <= facts.words) words[i][0] = load_system(entry_at(facts, taken + i) + lane());
    }
    uint32_t count = 0;
    bool goes_on = true;
#pragma unroll
    for (uint32_t i = 0; i < kEntries; ++i) {
      if (!goes_on) continue;
      const uint32_t number = number_at(taken + i);
      goes_on = __any_sync(~0u, number_of(words[i][0]) != number) == 0;
      if (!goes_on) continue;
      if (i == 0) dispatch_.open();
      goes_on = start(facts, event, number, words[i]);
      if (goes_on) ++count;
      if (!goes_on && i == 0) dispatch_.close();
    }
    if (count != 0) dispatch_.close();
    return took(event, taken, count);
  }

  __device__ bool serve_large(const Facts& facts, uint32_t event, uint32_t taken) {
    const uint32_t number = number_at(taken);
    uint64_t words[kLoads];
    load_words(facts, taken, number, words);
    bool whole = true;
#pragma unroll
    for (uint32_t i = 0; i < kLoads; ++i) whole = whole && number_of(words[i]) == number;
    if (__any_sync(~0u, !whole) != 0) return false;
    dispatch_.open();
    const bool started = start(facts, event, number, words);
    dispatch_.close();
    return took(event, taken, started ? 1 : 0);
  }

  __device__ void load_words(const Facts& facts, uint32_t position, uint32_t number,
                             uint64_t (&words)[kLoads]) const {
#pragma unroll
    for (uint32_t i = 0; i < kLoads; ++i) {
      const uint32_t at = i * kWarp + lane();
      words[i] = numbered(number, 0);
      if (at <= facts.words) words[i] = load_system(entry_at(facts, position) + at);
    }
  }

  template <uint32_t kCount>
  __device__ bool start(const Facts& facts, uint32_t event, uint32_t number,
                        const uint64_t (&words)[kCount]) {
    uint32_t blocks = half_of(__shfl_sync(~0u, words[0], 0));
    if (blocks == 0 || (facts.flags & EDGE_MODIFIABLE) == 0) blocks = facts.blocks;
    return dispatch_.start(facts, event, number, blocks & 0xffff, words);
  }

  __device__ bool took(uint32_t event, uint32_t taken, uint32_t count) {
    __syncwarp();
    if (count != 0 && lane() == 0) {
      shared_.taken[event] = taken + count;
      store_system(&view_.entry(event).taken, taken + count);
    }
    __syncwarp();
    return count != 0;
  }

  // Entry 0 of a timer's queue has its parameters; the first of them becomes the number of the
  // tick.
  __device__ bool serve_timer(uint32_t event) {
    const Facts& facts = shared_.facts[event];
    const uint32_t taken = shared_.taken[event];
    const uint32_t number = number_at(taken);
    uint32_t due = 0;
    if (lane() == 0) due = tick_is_due(event, number) ? 1 : 0;
    if (__shfl_sync(~0u, due, 0) == 0) return false;
    uint64_t words[kLoads];
    load_words(facts, 0, number, words);
    if (lane() == 0) words[0] = 0;
    if (lane() == 1) words[0] = shared_.ticks[event];
    dispatch_.open();
    const bool started = start(facts, event, number, words);
    dispatch_.close();
    if (started && lane() == 0) next_tick(event);
    return took(event, taken, started ? 1 : 0);
  }

  // Lane 0, likewise the next ones.
  __device__ bool tick_is_due(uint32_t event, uint32_t number) {
    const Facts& facts = shared_.facts[event];
    if (gpu::global_time_ns() < shared_.tick_ns[event]) return false;
    const uint64_t* const word = &facts.completions[(number - 1) & (facts.depth - 1)];
    if (load_system(word) == numbered(number, kFree)) return true;
    atomicAdd(&view_.state->queues[event].ticks_missed, 1u);
    next_tick(event);
    return false;
  }
  __device__ void next_tick(uint32_t event) {
    ++shared_.ticks[event];
    const uint64_t period = uint64_t{shared_.facts[event].period_us} * 1000;
    const uint64_t now = gpu::global_time_ns();
    uint64_t next = shared_.tick_ns[event] + period;
    if (next + period < now) next = now;  // after a pause ticks do not come all at once
    shared_.tick_ns[event] = next;
  }

  // --- What the host gets to know

  // Completions, once for several. A lane an event.
  __device__ void announce() {
    const uint32_t event = lane();
    const Facts& facts = shared_.facts[event];
    uint32_t completed = 0;
    bool now = false;
    if (facts.open != 0) {
      completed = load_device(&view_.state->queues[event].completed);
      const uint32_t waiting = completed - shared_.announced[event];
      if (waiting != 0) {
        now = waiting >= facts.notify_count;
        if (!now) {
          const uint64_t time = gpu::global_time_ns();
          if (shared_.unannounced_ns[event] == 0) shared_.unannounced_ns[event] = time;
          now = time - shared_.unannounced_ns[event] >= uint64_t{facts.notify_us_max} * 1000;
        }
      }
    }
    if (__any_sync(~0u, now) == 0) return;
    fence_all();
    if (now) {
      store_system(&view_.entry(event).notified, completed);
      shared_.announced[event] = completed;
      shared_.unannounced_ns[event] = 0;
    }
    __syncwarp();
  }

  // Releases that the host has asked for.
  __device__ void forward_releases() {
    if (lane() < kBarriersMax) {
      Barrier& barrier = view_.state->barriers[lane()];
      const uint32_t wanted = load_system(&view_.header().releases[lane()]);
      if (wanted != barrier.host_seen) {
        barrier.host_seen = wanted;
        fence_all();
        release_threads(barrier);
      }
    }
    __syncwarp();
  }

  __device__ void flush_polls() {
    if (lane() == 0) add_to(&view_.state->counts.bell_polls, bell_polls_);
    bell_polls_ = 0;
  }

  const View& view_;
  SchedulerShared& shared_;
  Dispatch& dispatch_;
  uint64_t bell_polls_ = 0;
};

// Called by the whole block, before the scheduler is made.
__device__ inline void reset_scheduler(SchedulerShared& shared) {
  auto* const words = reinterpret_cast<uint32_t*>(&shared);
  for (uint32_t i = threadIdx.x; i < sizeof(shared) / sizeof(uint32_t); i += blockDim.x) {
    words[i] = 0;
  }
  __syncthreads();
}

}  // namespace warpcache::edge
