// SPDX-License-Identifier: Apache-2.0
//
// The event loop of a worker thread. In each iteration, the received chunks of a burst become one
// batch, and a batch that the engine has finished goes back: the transport gets the replies and the
// number of consumed bytes of each chunk. As many bursts are under way as the engine finds useful
// (Engine::batches()); a stream is in one of them at most, so its commands run in order. Works with
// every Transport and every Engine.
//
// The loop itself takes no lock and makes no system call. It allocates only for large bodies and
// deferred frames; if the system refuses the memory, the request is refused or the stream is
// closed.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <vector>

#include "engine/engine.h"
#include "engine/timing.h"
#include "engine/watch.h"
#include "io/transport.h"
#include "protocol/framing/frame_types.h"
#include "worker/command_log.h"
#include "worker/session.h"

namespace warpcache::worker {

struct WorkerConfig {
  uint32_t item_size_max = 1 << 20;  // -I, bytes
  bool cas_enabled = true;           // not -C
  uint8_t protocol = protocol::kProtocolAuto;
  bool authentication = false;  // -Y, -S: streams must log in
  // The most requests of a stream in one batch (-R). The rest follows in the next iteration, after
  // the other streams.
  uint32_t requests_per_stream_max = 1024;
  // How long the body of a large value may wait for memory that others' unfinished bodies hold.
  // Longer than the transport takes to cancel those that make no progress.
  std::chrono::milliseconds body_wait{4000};
  // Connections and commands are reported to it, as long as it wants that; it outlives the worker.
  // Null: nobody.
  engine::Watch* watch = nullptr;
  // The time that bursts take is reported to it, likewise.
  engine::Timing* timing = nullptr;
  // Time without input after which the engine is asked to release what it holds for the next batch.
  std::chrono::milliseconds idle_after{1000};
};

class Worker final : private io::SessionObserver, private io::PinReleaser {
 public:
  // Bodies up to this size are received into the input arena; larger ones go into the store. A body
  // of this size must fit into a chunk together with its line.
  static constexpr uint32_t kInlineBodyMax = 60 * 1024;
  static_assert(kInlineBodyMax + protocol::kLineSizeMax + 2 <= io::kChunkBytesMax);
  // Space for full chunks of 64 streams, or a burst of 63 datagrams.
  static constexpr uint32_t kArenaBytes = 4 * 1024 * 1024;
  // Space after the arena for the heads of large bodies that became complete in this iteration.
  static constexpr uint32_t kHeadArenaBytes = 64 * 1024;
  // The memory that the worker asks the engine for, for each burst.
  static constexpr uint32_t kInputBytes = kArenaBytes + kHeadArenaBytes;
  static constexpr uint32_t kBatchFramesMax = 64 * 1024;
  // `transport` and `engine` outlive the worker.
  Worker(const WorkerConfig& config, io::Transport& transport, engine::Engine& engine);
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  // Runs one iteration; waits at most timeout_ms for input, and not at all while a burst is under
  // way. Returns false when the transport is shut down.
  bool run_once(int timeout_ms);

  // Runs iterations until the transport is shut down.
  void run();

 private:
  static constexpr uint32_t kNoEntry = 0xffffffffu;
  static constexpr uint32_t kScratchFrames = 256;
  // Streams whose frames can be deferred when the system refuses memory.
  static constexpr uint32_t kDeferredReserve = 256;
  static constexpr int kWaitMs = 1000;
  // How often the engine is asked for a batch before more is received meanwhile.
  static constexpr uint32_t kPollsPerReceive = 64;

  // What is done with a chunk.
  struct Plan {
    io::RxNext next;
    uint32_t entry = kNoEntry;
    uint32_t first_frame = 0;     // index in the batch, after the frame of a large body
    uint32_t framed_end = 0;      // bytes of the chunk that are consumed if all frames are done
    uint32_t body = 0;            // id of the LargeBody whose frame is the entry's first; 0: none
    uint32_t bodies_refused = 0;  // that exceed RxChunk::value_memory_max
    bool secret = false;          // the client had not logged in (-Y): not for the log
    bool not_reached = false;  // the batch was full before the chunk's end (a datagram: before it)
  };

  // A burst and its batch.
  struct Burst {
    io::RxBurst rx;
    uint32_t head_bytes = 0;  // of the heads of large bodies, after the arena
    engine::Batch batch;
    std::vector<Plan> plans;       // by chunk
    bool full = false;             // the batch is full, and a stream was not reached
    std::vector<uint32_t> queued;  // datagrams that run in a further batch: indices of their chunks
    uint64_t began_ns = 0;         // with WorkerConfig::timing; 0: it is not measured
    bool waited_for = false;       // by run_batch()
    bool has_ended = false;        // and another run_batch(), inside of that, has seen its end
  };

  void opened(io::SessionStorage& storage, int fd) override;
  void speaks_for(io::SessionStorage& storage, const sockaddr_storage& client) override;
  void closed(io::SessionStorage& storage, io::CloseReason reason) override;
  bool holds_body(const io::SessionStorage& storage) const override;
  void cancel_body(io::SessionStorage& storage) override;
  MutableBytes body_window(const io::SessionStorage& storage, uint32_t after) override;
  MutableBytes device_window(const io::SessionStorage& storage, uint32_t size) override;
  void release(uint32_t pin) override { engine_.release(pin); }

  void frame_datagram(const io::RxChunk& chunk, Plan& plan);
  void frame_stream(const io::RxChunk& chunk, Plan& plan);
  void frame_input(const io::RxChunk& chunk, Session& session, Plan& plan);
  void open_entry(const io::RxChunk& chunk, const Session& session, Plan& plan);
  void close_entry(Plan& plan);
  void note_body(const io::RxChunk& chunk, const Session& session);
  bool begin_body(const io::RxChunk& chunk, Session& session, protocol::Frame frame, Plan& plan);
  bool refuse_body(Session& session, protocol::Frame frame, Status why);
  uint32_t key_size_of(LargeBody& body);
  bool reserve_body(Session& session, size_t present, Plan& plan);
  bool may_wait(LargeBody& body) const;
  bool continue_body(const io::RxChunk& chunk, Session& session, Plan& plan);
  bool take_body(LargeBody& body, Bytes input, Plan& plan);
  bool add_body(uint32_t& id, Plan& plan);
  void drop_body(uint32_t& id, bool abandon);
  bool replay_deferred(const io::RxChunk& chunk, Session& session, Plan& plan);
  bool defer_frames(const io::RxChunk& chunk, Session& session, Plan& plan);
  void finish_entry(const io::RxChunk& chunk, Session& session, Plan& plan);
  void plan_stream(const io::RxChunk& chunk, Plan& plan);
  bool receive(int timeout_ms);
  bool begin_burst();
  void finish_burst();
  bool poll(uint32_t polls_max);
  Burst& burst_of(const engine::Batch* batch);
  void finish(Burst& burst);
  void run_batch();
  void nothing_came();
  size_t first_to_complete() const;
  bool runs_again(size_t index) const;
  void complete_or_queue(size_t index);
  void run_queued();
  void keep_deferred_frames();
  void complete(size_t index);
  void send_completed();
  void measure_begin();
  void measure_end();
  template <typename Say>
  void log(Say say);
  void log_entry(const io::RxChunk& chunk, const Plan& plan);
  bool is_watched(engine::WatchKind kind) const {
    return config_.watch != nullptr && (config_.watch->wanted() & kind) != 0;
  }
  uint32_t free_frames(Plan& plan);

  WorkerConfig config_;
  io::Transport& transport_;
  engine::Engine& engine_;
  protocol::FrameLimits limits_;
  std::vector<std::unique_ptr<Burst>> bursts_;
  std::vector<Burst*> free_;
  Burst* burst_ = nullptr;  // that is being worked on
  bool idle_ = false;       // no input since `idle_since_`
  std::chrono::steady_clock::time_point idle_since_;
  std::vector<io::Completion> completions_;
  std::vector<protocol::Frame> scratch_;
  NumberedPool<LargeBody> body_pool_;
  NumberedPool<DeferredFrames> deferred_pool_;
  CommandLog log_;
  bool logs_ = false;  // commands of the burst that is being completed, or a watcher wants them
};

}  // namespace warpcache::worker
