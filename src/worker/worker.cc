// SPDX-License-Identifier: Apache-2.0
#include "worker/worker.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <new>
#include <string_view>
#include <utility>

#include "base/byte_pipe.h"
#include "engine/datagram.h"
#include "io/client_source.h"
#include "protocol/framing/frame.h"
#include "worker/peer_address.h"

namespace warpcache::worker {

using io::RxChunk;

namespace {

// In memcached's words.
constexpr std::array<std::string_view, 4> kReasons = {"error", "normal", "idle_timeout",
                                                      "shutdown"};

uint64_t now_ns() {
  return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(
                                   std::chrono::steady_clock::now().time_since_epoch())
                                   .count());
}

}  // namespace

static_assert(io::kChunksMax <= engine::kBatchEntriesMax);

Worker::Worker(const WorkerConfig& config, io::Transport& transport, engine::Engine& engine)
    : config_(config),
      transport_(transport),
      engine_(engine),
      limits_{config.item_size_max, kInlineBodyMax, config.cas_enabled, config.protocol},
      scratch_(kScratchFrames) {
  WC_ASSERT(config.requests_per_stream_max > 0);
  WC_ASSERT(engine.batches() > 0 && engine.batches() <= io::kRxBurstsMax);
  // Allocated at start-up, so that no iteration fails when memory is short. Pages occupy memory
  // only after their first use.
  for (uint32_t i = 0; i < engine.batches(); ++i) {
    Burst& burst = *bursts_.emplace_back(std::make_unique<Burst>());
    burst.rx.number = i;
    burst.rx.arena = {engine.input_memory(kInputBytes), kArenaBytes, 0};
    burst.rx.chunks.reserve(io::kChunksMax);
    burst.plans.reserve(io::kChunksMax);
    burst.queued.reserve(io::kChunksMax);
    burst.batch.input = burst.rx.arena.data;
    burst.batch.frames.reserve(kBatchFramesMax);
    burst.batch.entries.reserve(io::kChunksMax);
    burst.batch.spans.reserve(engine::kBatchSpansMax);
    free_.push_back(&burst);
  }
  completions_.reserve(io::kChunksMax);
  deferred_pool_.add(kDeferredReserve);
  transport_.attach(*this, *this);
}

void Worker::run() {
  while (run_once(kWaitMs)) {
  }
}

bool Worker::run_once(int timeout_ms) {
  const bool under_way = free_.size() < bursts_.size();
  if (!free_.empty()) {
    burst_ = free_.back();
    const bool is_open = receive(under_way ? 0 : timeout_ms);
    if (!is_open && !under_way) return false;
    if (!burst_->rx.chunks.empty()) {
      idle_ = false;
      if (!begin_burst()) {
        finish_burst();
      } else if (!free_.empty()) {
        (void)poll(1);
        return true;
      }
    } else if (!under_way) {
      nothing_came();
    }
  }
  // With a free burst, more can be received meanwhile.
  while (free_.size() < bursts_.size() && !poll(kPollsPerReceive) && free_.empty()) {
  }
  return true;
}

inline bool Worker::receive(int timeout_ms) {
  Burst& burst = *burst_;
  burst.rx.arena.used = burst.head_bytes = 0;
  burst.full = false;
  burst.rx.chunks.clear();
  return transport_.receive(burst.rx, timeout_ms);
}

// Makes the received chunks a batch and hands it to the engine. False: there is nothing to run.
inline bool Worker::begin_burst() {
  Burst& burst = *burst_;
  measure_begin();
  burst.batch.frames.clear();
  burst.batch.entries.clear();
  burst.plans.assign(burst.rx.chunks.size(), {});
  for (size_t i = 0; i < burst.rx.chunks.size(); ++i) {
    if (burst.rx.chunks[i].datagram) {
      frame_datagram(burst.rx.chunks[i], burst.plans[i]);
    } else {
      frame_stream(burst.rx.chunks[i], burst.plans[i]);
    }
  }
  if (burst.batch.entries.empty()) return false;
  free_.pop_back();
  engine_.submit(&burst.batch);
  return true;
}

// Asks the engine for a batch that it has finished, and completes its burst. False: there is none.
inline bool Worker::poll(uint32_t polls_max) {
  engine::Batch* batch = nullptr;
  for (uint32_t i = 0; i < polls_max && batch == nullptr; ++i) batch = engine_.poll();
  if (batch == nullptr) return false;
  finish(burst_of(batch));
  return true;
}

inline Worker::Burst& Worker::burst_of(const engine::Batch* batch) {
  Burst* burst = burst_;  // usually it is this one
  for (size_t i = 0; &burst->batch != batch; ++i) burst = bursts_[i].get();
  return *burst;
}

inline void Worker::finish(Burst& burst) {
  burst_ = &burst;
  finish_burst();
  free_.push_back(&burst);
}

inline void Worker::finish_burst() {
  logs_ = CommandLog::wanted() || is_watched(engine::kWatchCommands);
  const size_t count = burst_->rx.chunks.size();
  const size_t first = first_to_complete();
  for (size_t i = first; i < count; ++i) complete_or_queue(i);
  for (size_t i = 0; i < first; ++i) complete_or_queue(i);
  send_completed();
  if (WC_UNLIKELY(burst_->began_ns != 0)) measure_end();
  while (WC_UNLIKELY(!burst_->queued.empty())) run_queued();
}

inline void Worker::measure_begin() {
  const bool wanted = config_.timing != nullptr && config_.timing->wanted();
  burst_->began_ns = WC_UNLIKELY(wanted) ? now_ns() : 0;
}

void Worker::measure_end() {
  const uint64_t began_ns = std::exchange(burst_->began_ns, 0);
  config_.timing->burst_ended(burst_->batch, now_ns() - began_ns);
}

// Called in iterations without input, among them those in which a connection opens, closes or sends
// queued output.
void Worker::nothing_came() {
  const auto now = std::chrono::steady_clock::now();
  if (!std::exchange(idle_, true)) idle_since_ = now;
  if (now - idle_since_ >= config_.idle_after) engine_.release_device();
}

// Whether the chunk is a datagram that must run again in this iteration: the batch was full, or the
// engine had no reply space.
inline bool Worker::runs_again(size_t index) const {
  if (!burst_->rx.chunks[index].datagram) return false;
  const Plan& plan = burst_->plans[index];
  return plan.not_reached ||
         (plan.entry != kNoEntry && burst_->batch.entries[plan.entry].frames_done == 0);
}

inline void Worker::complete_or_queue(size_t index) {
  if (WC_UNLIKELY(runs_again(index))) {
    burst_->queued.push_back(static_cast<uint32_t>(index));
  } else {
    complete(index);
  }
}

// Runs the queued datagrams as a further batch. The earlier replies are sent, so the whole reply
// arena is free. If it is too small even for the first datagram, the datagrams of that batch get no
// reply. Ends: each call completes at least one datagram or frames the first one.
void Worker::run_queued() {
  std::sort(burst_->queued.begin(), burst_->queued.end());
  keep_deferred_frames();
  for (const uint32_t index : burst_->queued) {
    if (burst_->plans[index].not_reached)
      frame_datagram(burst_->rx.chunks[index], burst_->plans[index]);
  }
  if (!burst_->batch.entries.empty()) run_batch();
  const bool none_served =
      !burst_->batch.entries.empty() && burst_->batch.entries.front().frames_done == 0;
  size_t still_queued = 0;
  for (const uint32_t index : burst_->queued) {
    if (runs_again(index) && (burst_->plans[index].not_reached || !none_served)) {
      burst_->queued[still_queued++] = index;
    } else {
      complete(index);
    }
  }
  burst_->queued.resize(still_queued);
  send_completed();
}

// Keeps only the batch entries that were deferred.
void Worker::keep_deferred_frames() {
  uint32_t frames = 0;
  uint32_t entries = 0;
  for (const uint32_t index : burst_->queued) {
    if (burst_->plans[index].not_reached) continue;
    engine::BatchEntry entry = burst_->batch.entries[burst_->plans[index].entry];
    for (uint32_t i = 0; i < entry.frame_count; ++i) {
      protocol::Frame& frame = burst_->batch.frames[frames + i] =
          burst_->batch.frames[entry.first_frame + i];
      frame.entry = entries;
    }
    entry.first_frame = frames;
    frames += entry.frame_count;
    burst_->batch.entries[entries] = entry;
    burst_->plans[index].entry = entries++;
  }
  burst_->batch.frames.resize(frames);
  burst_->batch.entries.resize(entries);
}

// The index of the chunk to complete first. The transport delivers streams with more_now in the
// order of complete(). So the first ones in the next iteration are those that were deferred or not
// reached, because the batch, the reply space or the administrative commands were at their limit.
// Otherwise fast clients could starve the others.
inline size_t Worker::first_to_complete() const {
  if (WC_LIKELY(!burst_->full && !burst_->batch.stream_not_reached)) return 0;
  const auto waits = [this](const Plan& plan) {
    return plan.not_reached ||
           (plan.entry != kNoEntry && burst_->batch.entries[plan.entry].frames_done == 0);
  };
  const auto first = std::find_if(burst_->plans.begin(), burst_->plans.end(), waits);
  return first == burst_->plans.end() ? 0 : static_cast<size_t>(first - burst_->plans.begin());
}

// Runs the batch of a burst that the engine has given back once more, and waits for it. Others that
// the engine gives back meanwhile are completed at once, before it gets a further batch: that could
// overwrite their replies. Completing them may lead here again, once for each burst at most.
void Worker::run_batch() {
  Burst& burst = *burst_;
  burst.waited_for = true;
  burst.has_ended = false;
  engine_.submit(&burst.batch);
  while (!burst.has_ended) {
    const engine::Batch* const done = engine_.poll();
    if (done == nullptr) continue;
    Burst& other = burst_of(done);
    if (other.waited_for) {
      other.has_ended = true;
    } else {
      finish(other);
    }
  }
  burst.waited_for = false;
  burst_ = &burst;
}

void Worker::open_entry(const RxChunk& chunk, const Session& session, Plan& plan) {
  engine::Batch& batch = burst_->batch;
  plan.entry = static_cast<uint32_t>(batch.entries.size());
  plan.first_frame = static_cast<uint32_t>(batch.frames.size());
  engine::BatchEntry entry;
  entry.first_frame = plan.first_frame;
  entry.datagram = chunk.datagram;
  entry.admin = chunk.admin;
  entry.value_memory_max = chunk.value_memory_max;
  if (WC_UNLIKELY(config_.authentication)) {
    entry.authenticated = session.authenticated;
    entry.failed_logins = session.failed_logins;
    entry.user = session.user;
    entry.source = session.source;
    plan.secret = !entry.authenticated;
  }
  entry.connection_id = chunk.connection_id;
  entry.fd = session.fd;
  batch.entries.push_back(entry);
}

// Removes the entry if it has no frames.
void Worker::close_entry(Plan& plan) {
  engine::BatchEntry& entry = burst_->batch.entries.back();
  entry.frame_count = static_cast<uint32_t>(burst_->batch.frames.size()) - entry.first_frame;
  if (entry.frame_count > 0) return;
  burst_->batch.entries.pop_back();
  plan.entry = kNoEntry;
}

// How many frames can be added now; sets plan.not_reached if the batch is full. One place stays
// free for the frame of a refused large body.
uint32_t Worker::free_frames(Plan& plan) {
  const auto in_batch = static_cast<uint32_t>(burst_->batch.frames.size());
  const uint32_t in_entry = in_batch - plan.first_frame;
  if (in_entry >= config_.requests_per_stream_max) return 0;
  plan.not_reached = in_batch + 1 >= kBatchFramesMax;
  if (WC_UNLIKELY(plan.not_reached)) {
    burst_->full = true;
    return 0;
  }
  return std::min(
      {kBatchFramesMax - 1 - in_batch, config_.requests_per_stream_max - in_entry, kScratchFrames});
}

void Worker::frame_datagram(const RxChunk& chunk, Plan& plan) {
  plan.not_reached = burst_->batch.frames.size() + engine::kDatagramFramesMax >= kBatchFramesMax;
  if (WC_UNLIKELY(plan.not_reached)) return;
  engine::Batch& batch = burst_->batch;
  engine::BatchEntry entry;
  entry.admin = chunk.admin;
  entry.fd = chunk.udp_fd;
  entry.authenticated = !config_.authentication;
  const auto number = static_cast<uint32_t>(batch.entries.size());
  if (WC_UNLIKELY(!engine::append_datagram(batch, limits_, chunk.offset, chunk.size, entry)))
    return;
  plan.entry = number;
  plan.first_frame = batch.entries.back().first_frame;
}

void Worker::frame_stream(const RxChunk& chunk, Plan& plan) {
  Session& session = session_of(*chunk.session);
  open_entry(chunk, session, plan);
  if (chunk.body_received > 0) note_body(chunk, session);
  bool go_on = true;
  if (WC_UNLIKELY(session.deferred_body != 0)) go_on = add_body(session.deferred_body, plan);
  if (WC_UNLIKELY(session.deferred_frames != 0) && go_on)
    go_on = replay_deferred(chunk, session, plan);
  if (WC_UNLIKELY(session.incoming_body != 0) && go_on) go_on = continue_body(chunk, session, plan);
  if (WC_LIKELY(go_on && !session.closing)) frame_input(chunk, session, plan);
  close_entry(plan);
}

// Frames the chunk from plan.framed_end to its end, or until the batch is full.
void Worker::frame_input(const RxChunk& chunk, Session& session, Plan& plan) {
  while (true) {
    const uint32_t room = free_frames(plan);
    if (WC_UNLIKELY(room == 0)) {
      plan.next.more_now = true;
      return;
    }
    const Bytes input = {burst_->rx.arena.data + chunk.offset + plan.framed_end,
                         chunk.size - plan.framed_end};
    const protocol::FrameResult result =
        protocol::frame(session.frame, limits_, input, chunk.offset + plan.framed_end, plan.entry,
                        scratch_.data(), room);
    burst_->batch.frames.insert(burst_->batch.frames.end(), scratch_.begin(),
                                scratch_.begin() + result.count);
    plan.framed_end += result.consumed;
    switch (result.end) {
      case protocol::FrameEnd::kNeedMore:
        WC_ASSERT(result.need <= io::kChunkBytesMax);
        plan.next.need = result.need;
        plan.next.in_value = result.in_value;
        return;
      case protocol::FrameEnd::kFull:
        break;
      case protocol::FrameEnd::kClose:
        session.closing = session.refused = true;
        return;
      case protocol::FrameEnd::kLargeBody:
        if (begin_body(chunk, session, result.large, plan) &&
            !continue_body(chunk, session, plan)) {
          return;
        }
        break;
    }
  }
}

// Keeps the frames that the engine deferred for the next iteration; the transport keeps their
// bytes. False: the system refuses the memory.
bool Worker::defer_frames(const RxChunk& chunk, Session& session, Plan& plan) {
  const engine::BatchEntry& entry = burst_->batch.entries[plan.entry];
  const uint32_t first = std::max(entry.first_frame + entry.frames_done, plan.first_frame);
  const uint32_t end = entry.first_frame + entry.frame_count;
  try {
    session.deferred_frames = deferred_pool_.take();
    deferred_pool_[session.deferred_frames].frames.assign(burst_->batch.frames.begin() + first,
                                                          burst_->batch.frames.begin() + end);
  } catch (const std::bad_alloc&) {
    return false;
  }
  DeferredFrames& deferred = deferred_pool_[session.deferred_frames];
  // Frames without a head have no valid offset.
  uint32_t start = chunk.offset + plan.framed_end;
  for (const protocol::Frame& frame : deferred.frames) {
    if (frame.head_size > 0) start = std::min(start, frame.offset);
  }
  for (protocol::Frame& frame : deferred.frames) {
    frame.offset = frame.head_size > 0 ? frame.offset - start : 0;
  }
  deferred.framed_end = plan.framed_end - (start - chunk.offset);
  plan.next = {.consumed = start - chunk.offset,
               .more_now = true,
               .later = entry.waits,
               .long_reply = plan.next.long_reply};
  return true;
}

// Adds the deferred frames to the batch. False: the batch has no space; they stay deferred.
bool Worker::replay_deferred(const RxChunk& chunk, Session& session, Plan& plan) {
  DeferredFrames& deferred = deferred_pool_[session.deferred_frames];
  if (burst_->batch.frames.size() + deferred.frames.size() > kBatchFramesMax) {
    burst_->full = plan.not_reached = plan.next.more_now = true;
    return false;
  }
  for (protocol::Frame frame : deferred.frames) {
    frame.offset += chunk.offset;
    frame.entry = plan.entry;
    burst_->batch.frames.push_back(frame);
  }
  plan.framed_end = deferred.framed_end;
  deferred.frames.clear();
  deferred_pool_.give(session.deferred_frames);
  session.deferred_frames = 0;
  return true;
}

// Applies the engine's results of a stream's entry to the session and the plan.
void Worker::finish_entry(const RxChunk& chunk, Session& session, Plan& plan) {
  const engine::BatchEntry& entry = burst_->batch.entries[plan.entry];
  if (WC_UNLIKELY(config_.authentication)) {
    session.authenticated = entry.authenticated;
    session.failed_logins = entry.failed_logins;
    session.user = entry.user;
  }
  plan.next.long_reply = entry.long_reply;
  if (WC_UNLIKELY(plan.body != 0)) {
    if (entry.frames_done == 0 && !entry.close) {
      session.deferred_body = plan.body;
    } else {
      drop_body(plan.body, entry.frames_done == 0);
    }
  }
  if (entry.close) {
    session.closing = plan.next.close = true;
    session.refused = entry.refused;
  } else if (WC_UNLIKELY(entry.frames_done < entry.frame_count) && session.deferred_frames == 0) {
    if (!defer_frames(chunk, session, plan)) {
      session.closing = session.refused = plan.next.close = true;
    }
  }
}

void Worker::plan_stream(const RxChunk& chunk, Plan& plan) {
  Session& session = session_of(*chunk.session);
  plan.next.consumed = plan.framed_end;
  if (WC_LIKELY(plan.entry != kNoEntry)) finish_entry(chunk, session, plan);
  if (session.closing && session.deferred_frames == 0) plan.next.close = true;
  if (plan.next.close) {
    BytePipe* const long_reply = plan.next.long_reply;
    plan.next = {};
    plan.next.consumed = chunk.size;
    plan.next.close = true;
    plan.next.refused = session.refused;
    plan.next.long_reply = long_reply;
  }
  plan.next.in_value = plan.next.in_value || is_in_value(session);
  plan.next.values_refused = plan.bodies_refused;
  if (WC_UNLIKELY(chunk.value_memory_max != 0 && plan.entry != kNoEntry)) {
    const engine::BatchEntry& entry = burst_->batch.entries[plan.entry];
    plan.next.values_wait = entry.values_wait;
    plan.next.values_refused += entry.values_refused;
  }
  // A body can be received directly into the store only if all input before it is consumed.
  if (plan.next.consumed < chunk.size && !plan.next.body.empty()) {
    plan.next.body = {};
    plan.next.more_now = true;
  }
}

inline void Worker::complete(size_t index) {
  const RxChunk& chunk = burst_->rx.chunks[index];
  Plan& plan = burst_->plans[index];
  if (!chunk.datagram) plan_stream(chunk, plan);
  io::Completion completion = {&chunk, &plan.next, nullptr, 0};
  if (WC_LIKELY(plan.entry != kNoEntry)) {
    const engine::BatchEntry& entry = burst_->batch.entries[plan.entry];
    completion.spans = burst_->batch.spans.data() + entry.first_span;
    completion.span_count = entry.span_count;
    if (WC_UNLIKELY(logs_)) log_entry(chunk, plan);
  }
  completions_.push_back(completion);
}

inline void Worker::send_completed() {
  transport_.complete(burst_->rx, completions_.data(), static_cast<uint32_t>(completions_.size()));
  completions_.clear();
}

// If the system refuses memory, the log has a gap.
template <typename Say>
void Worker::log(Say say) {
  try {
    say();
  } catch (const std::bad_alloc&) {
  }
  log_.flush();
}

void Worker::log_entry(const RxChunk& chunk, const Plan& plan) {
  const engine::BatchEntry& entry = burst_->batch.entries[plan.entry];
  const int fd = chunk.datagram ? -1 : session_of(*chunk.session).fd;
  const bool starts_watching = entry.long_reply != nullptr && entry.long_reply->endless();
  if (is_watched(engine::kWatchCommands) && !starts_watching) {
    log([&] {
      log_.commands(fd, burst_->batch.frames.data() + entry.first_frame, entry.frames_done,
                    burst_->batch.input, plan.secret);
      config_.watch->saw_commands(log_.text());
      log_.drop();
    });
  }
  if (!CommandLog::wanted()) return;
  log([&] {
    log_.commands(fd, burst_->batch.frames.data() + entry.first_frame, entry.frames_done,
                  burst_->batch.input, plan.secret);
    log_.replies(fd, burst_->batch.spans.data() + entry.first_span, entry.span_count);
  });
}

void Worker::speaks_for(io::SessionStorage& storage, const sockaddr_storage& client) {
  session_of(storage).peer = peer_of(client);
  session_of(storage).source = io::source_of(client);
}

void Worker::opened(io::SessionStorage& storage, int fd) {
  Session& session = session_of(storage);
  session.fd = fd;
  if (WC_UNLIKELY(config_.authentication) && session.source == 0) {
    session.source = io::source_of(fd);
  }
  if (WC_UNLIKELY(is_watched(engine::kWatchConnections))) {
    const bool knows = session.peer.kind != engine::PeerAddress::Kind::kUnknown;
    if (!knows) session.peer = peer_of(fd);
    config_.watch->connection_opened(fd, session.peer);
  }
  if (WC_UNLIKELY(CommandLog::wanted())) log([&] { log_.opened(fd, config_.protocol); });
}

void Worker::closed(io::SessionStorage& storage, io::CloseReason reason) {
  Session& session = session_of(storage);
  if (WC_UNLIKELY(is_watched(engine::kWatchConnections))) {
    const bool knows = session.peer.kind != engine::PeerAddress::Kind::kUnknown;
    config_.watch->connection_closed(session.fd, knows ? session.peer : peer_of(session.fd),
                                     kReasons[static_cast<size_t>(reason)]);
  }
  if (WC_UNLIKELY(CommandLog::wanted())) log([&] { log_.closed(session.fd); });
  if (session.incoming_body != 0) drop_body(session.incoming_body, true);
  if (session.deferred_body != 0) drop_body(session.deferred_body, true);
  if (session.deferred_frames != 0) {
    deferred_pool_[session.deferred_frames].frames.clear();
    deferred_pool_.give(session.deferred_frames);
    session.deferred_frames = 0;
  }
}

}  // namespace warpcache::worker
