// SPDX-License-Identifier: Apache-2.0
//
// The loop of one worker thread: what has arrived on its connections in one turn becomes one batch,
// the batch's replies go out, and what was not consumed goes back. Knows any Transport and any
// Engine by their interfaces alone.
//
// A turn takes no lock and makes no system call of its own. It allocates only for bodies that come
// in pieces and frames that have to wait; where the system refuses that, the request or the stream
// is refused.
#pragma once

#include <chrono>
#include <cstdint>
#include <vector>

#include "engine/engine.h"
#include "io/transport.h"
#include "protocol/framing/frame_types.h"
#include "worker/command_log.h"
#include "worker/session.h"

namespace warpcache::worker {

struct WorkerConfig {
  uint32_t item_size_max = 1 << 20;  // -I, bytes
  bool cas_enabled = true;           // not -C
  uint8_t protocol = protocol::kProtocolAuto;
  bool authentication = false;  // -Y: streams must log in
  // Of one stream in one batch (-R). The rest comes in the next turn, after the other streams.
  uint32_t requests_per_stream_max = 1024;
  // How long nothing comes before the engine is asked to give back what it holds for the next
  // batch.
  std::chrono::milliseconds release_device_after{1000};
};

class Worker final : private io::SessionObserver, private io::PinReleaser {
 public:
  // Bodies up to this lie in the input whole; of larger ones, what is behind it is received into
  // the store. With its line it must fit into a chunk.
  static constexpr uint32_t kInlineBodyMax = 60 * 1024;
  static_assert(kInlineBodyMax + protocol::kLineSizeMax + 2 <= io::kChunkBytesMax);
  // Room for 64 streams that send all they can, or a burst of 63 datagrams.
  static constexpr uint32_t kArenaBytes = 4 * 1024 * 1024;
  // Heads of big bodies that were completed in this turn, behind the arena.
  static constexpr uint32_t kHeadArenaBytes = 64 * 1024;
  // Both, which is what it asks the engine for.
  static constexpr uint32_t kInputBytes = kArenaBytes + kHeadArenaBytes;
  static constexpr uint32_t kBatchFramesMax = 64 * 1024;
  // Of one datagram, which is lost if it has more: twice as many as keys of 6 bytes fit into the
  // largest. Without a bound, datagrams of line ends would take sixteen times their size in frames.
  static constexpr uint32_t kDatagramFramesMax = 8 * 1024;
  static_assert(kDatagramFramesMax < kBatchFramesMax);

  // `transport` and `engine` outlive the worker.
  Worker(const WorkerConfig& config, io::Transport& transport, engine::Engine& engine);
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  // One turn; waits at most timeout_ms for input. Returns false when the transport is shut down.
  bool turn(int timeout_ms);

  // Turns until the transport is shut down.
  void run();

 private:
  static constexpr uint32_t kNoEntry = 0xffffffffu;
  static constexpr uint32_t kScratchFrames = 256;
  static constexpr int kWaitMs = 1000;

  // What becomes of a chunk.
  struct Plan {
    io::RxNext next;
    uint32_t entry = kNoEntry;
    uint32_t first_frame = 0;  // in the batch, without the frame of a big body
    uint32_t framed_end = 0;   // bytes of the chunk that are dealt with if all frames are done
    uint32_t big = 0;          // BigBody in its pool whose frame is the entry's first; 0: none
    bool secret = false;       // no login had come before (-Y): not for the log
    bool left_out = false;     // of the batch, since that was full: a datagram wholly
  };

  void opened(io::SessionStorage& storage, int fd) override;
  void closed(io::SessionStorage& storage) override;
  void release(uint32_t pin) override { engine_.release(pin); }

  void frame_datagram(const io::RxChunk& chunk, Plan& plan);
  void frame_stream(const io::RxChunk& chunk, Plan& plan);
  void frame_input(const io::RxChunk& chunk, Session& session, Plan& plan);
  void open_entry(const io::RxChunk& chunk, const Session& session, Plan& plan);
  void close_entry(Plan& plan);
  bool begin_big(Session& session, protocol::Frame frame, const Plan& plan);
  bool refuse_big(Session& session, protocol::Frame frame, Status why);
  uint32_t key_size_of(BigBody& big);
  bool reserve_big(Session& session, size_t present, Plan& plan);
  bool continue_big(const io::RxChunk& chunk, Session& session, Plan& plan);
  bool take_body(BigBody& big, Bytes input, Plan& plan);
  bool add_big(uint32_t& big, Plan& plan);
  void drop_big(uint32_t& big, bool abandon);
  bool replay_waiting(const io::RxChunk& chunk, Session& session, Plan& plan);
  bool keep_waiting(const io::RxChunk& chunk, Session& session, Plan& plan);
  void finish_entry(const io::RxChunk& chunk, Session& session, Plan& plan);
  void plan_stream(const io::RxChunk& chunk, Plan& plan);
  void run_batch();
  void nothing_came();
  size_t first_to_complete() const;
  bool is_left(size_t index) const;
  void complete_unless_left(size_t index);
  void run_left();
  void keep_left_frames();
  void complete(const io::RxChunk& chunk, Plan& plan);
  template <typename Say>
  void log(Say say);
  void log_entry(const io::RxChunk& chunk, const Plan& plan);
  uint32_t frame_room(Plan& plan);

  WorkerConfig config_;
  io::Transport& transport_;
  engine::Engine& engine_;
  protocol::FrameLimits limits_;
  uint8_t* memory_;  // the engine's: the arena, then heads of big bodies
  io::InputArena arena_;
  uint32_t head_bytes_ = 0;
  engine::Batch batch_;
  bool full_ = false;  // the batch; somebody was left out
  bool idle_ = false;  // nothing has come since `idle_since_`
  std::chrono::steady_clock::time_point idle_since_;
  std::vector<io::RxChunk> chunks_;
  std::vector<Plan> plans_;
  std::vector<io::TxSpan> spans_;
  std::vector<uint32_t> left_;  // datagrams that are to be run in another batch, by chunk
  std::vector<protocol::Frame> scratch_;
  NumberedPool<BigBody> bigs_;
  NumberedPool<WaitingFrames> waiting_;
  CommandLog log_;
};

}  // namespace warpcache::worker
