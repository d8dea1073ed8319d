// SPDX-License-Identifier: Apache-2.0
#include "worker/worker.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include "engine/datagram.h"
#include "protocol/framing/frame.h"

namespace warpcache::worker {

using io::RxChunk;
using protocol::ReplySpan;

static_assert(io::kChunksMax <= engine::kBatchEntriesMax);

Worker::Worker(const WorkerConfig& config, io::Transport& transport, engine::Engine& engine)
    : config_(config),
      transport_(transport),
      engine_(engine),
      limits_{config.item_size_max, kInlineBodyMax, config.cas_enabled, config.protocol},
      memory_(engine.input_memory(kInputBytes)),
      scratch_(kScratchFrames) {
  WC_ASSERT(config.requests_per_stream_max > 0);
  // Allocated at start-up, so that no iteration fails when memory is short. Pages occupy memory
  // only after their first use.
  batch_.frames.reserve(kBatchFramesMax);
  batch_.entries.reserve(io::kChunksMax);
  batch_.spans.reserve(engine::kBatchSpansMax);
  chunks_.reserve(io::kChunksMax);
  plans_.reserve(io::kChunksMax);
  queued_.reserve(io::kChunksMax);
  arena_ = {memory_, kArenaBytes, 0};
  batch_.input = memory_;
  transport_.attach(*this, *this);
}

void Worker::run() {
  while (run_once(kWaitMs)) {
  }
}

bool Worker::run_once(int timeout_ms) {
  arena_.used = head_bytes_ = 0;
  full_ = false;
  chunks_.clear();
  batch_.frames.clear();
  batch_.entries.clear();
  if (!transport_.receive(arena_, chunks_, timeout_ms)) return false;
  if (WC_LIKELY(!chunks_.empty())) {
    idle_ = false;
  } else {
    nothing_came();
  }
  plans_.assign(chunks_.size(), {});
  for (size_t i = 0; i < chunks_.size(); ++i) {
    if (chunks_[i].datagram) {
      frame_datagram(chunks_[i], plans_[i]);
    } else {
      frame_stream(chunks_[i], plans_[i]);
    }
  }
  if (!batch_.entries.empty()) run_batch();
  const size_t first = first_to_complete();
  for (size_t i = first; i < chunks_.size(); ++i) complete_or_queue(i);
  for (size_t i = 0; i < first; ++i) complete_or_queue(i);
  transport_.flush();
  while (WC_UNLIKELY(!queued_.empty())) run_queued();
  return true;
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
bool Worker::runs_again(size_t index) const {
  if (!chunks_[index].datagram) return false;
  const Plan& plan = plans_[index];
  return plan.not_reached ||
         (plan.entry != kNoEntry && batch_.entries[plan.entry].frames_done == 0);
}

void Worker::complete_or_queue(size_t index) {
  if (WC_UNLIKELY(runs_again(index))) {
    queued_.push_back(static_cast<uint32_t>(index));
  } else {
    complete(chunks_[index], plans_[index]);
  }
}

// Runs the queued datagrams as a further batch. The earlier replies are sent, so the whole reply
// arena is free. If it is too small even for the first datagram, the datagrams of that batch get no
// reply. Ends: each call completes at least one datagram or frames the first one.
void Worker::run_queued() {
  std::sort(queued_.begin(), queued_.end());
  keep_deferred_frames();
  for (const uint32_t index : queued_) {
    if (plans_[index].not_reached) frame_datagram(chunks_[index], plans_[index]);
  }
  if (!batch_.entries.empty()) run_batch();
  const bool none_served = !batch_.entries.empty() && batch_.entries.front().frames_done == 0;
  size_t still_queued = 0;
  for (const uint32_t index : queued_) {
    if (runs_again(index) && (plans_[index].not_reached || !none_served)) {
      queued_[still_queued++] = index;
    } else {
      complete(chunks_[index], plans_[index]);
    }
  }
  queued_.resize(still_queued);
  transport_.flush();
}

// Keeps only the batch entries that were deferred.
void Worker::keep_deferred_frames() {
  uint32_t frames = 0;
  uint32_t entries = 0;
  for (const uint32_t index : queued_) {
    if (plans_[index].not_reached) continue;
    engine::BatchEntry entry = batch_.entries[plans_[index].entry];
    for (uint32_t i = 0; i < entry.frame_count; ++i) {
      protocol::Frame& frame = batch_.frames[frames + i] = batch_.frames[entry.first_frame + i];
      frame.entry = entries;
    }
    entry.first_frame = frames;
    frames += entry.frame_count;
    batch_.entries[entries] = entry;
    plans_[index].entry = entries++;
  }
  batch_.frames.resize(frames);
  batch_.entries.resize(entries);
}

// The index of the chunk to complete first. The transport delivers streams with more_now in the
// order of complete(). So the first ones in the next iteration are those that were deferred or not
// reached, because the batch, the reply space or the administrative commands were at their limit.
// Otherwise fast clients could starve the others.
size_t Worker::first_to_complete() const {
  if (WC_LIKELY(!full_ && !batch_.stream_not_reached)) return 0;
  const auto waits = [this](const Plan& plan) {
    return plan.not_reached ||
           (plan.entry != kNoEntry && batch_.entries[plan.entry].frames_done == 0);
  };
  const auto first = std::find_if(plans_.begin(), plans_.end(), waits);
  return first == plans_.end() ? 0 : static_cast<size_t>(first - plans_.begin());
}

void Worker::run_batch() {
  engine_.submit(&batch_);
  while (engine_.poll() == nullptr) {
  }
}

void Worker::open_entry(const RxChunk& chunk, const Session& session, Plan& plan) {
  plan.entry = static_cast<uint32_t>(batch_.entries.size());
  plan.first_frame = static_cast<uint32_t>(batch_.frames.size());
  engine::BatchEntry entry;
  entry.first_frame = plan.first_frame;
  entry.datagram = chunk.datagram;
  entry.admin = chunk.admin;
  if (WC_UNLIKELY(config_.authentication)) {
    entry.authenticated = session.authenticated;
    entry.failed_logins = session.failed_logins;
    plan.secret = !entry.authenticated;
  }
  entry.connection_id = chunk.connection_id;
  batch_.entries.push_back(entry);
}

// Removes the entry if it has no frames.
void Worker::close_entry(Plan& plan) {
  engine::BatchEntry& entry = batch_.entries.back();
  entry.frame_count = static_cast<uint32_t>(batch_.frames.size()) - entry.first_frame;
  if (entry.frame_count > 0) return;
  batch_.entries.pop_back();
  plan.entry = kNoEntry;
}

// How many frames can be added now; sets plan.not_reached if the batch is full. One place stays
// free for the frame of a refused large body.
uint32_t Worker::free_frames(Plan& plan) {
  const auto in_batch = static_cast<uint32_t>(batch_.frames.size());
  const uint32_t in_entry = in_batch - plan.first_frame;
  if (in_entry >= config_.requests_per_stream_max) return 0;
  plan.not_reached = in_batch + 1 >= kBatchFramesMax;
  if (WC_UNLIKELY(plan.not_reached)) {
    full_ = true;
    return 0;
  }
  return std::min(
      {kBatchFramesMax - 1 - in_batch, config_.requests_per_stream_max - in_entry, kScratchFrames});
}

void Worker::frame_datagram(const RxChunk& chunk, Plan& plan) {
  plan.not_reached = batch_.frames.size() + engine::kDatagramFramesMax >= kBatchFramesMax;
  if (WC_UNLIKELY(plan.not_reached)) return;
  engine::BatchEntry entry;
  entry.admin = chunk.admin;
  entry.authenticated = !config_.authentication;
  const auto number = static_cast<uint32_t>(batch_.entries.size());
  if (engine::append_datagram(batch_, limits_, chunk.offset, chunk.size, entry)) {
    plan.entry = number;
    plan.first_frame = batch_.entries.back().first_frame;
  }
}

void Worker::frame_stream(const RxChunk& chunk, Plan& plan) {
  Session& session = session_of(*chunk.session);
  open_entry(chunk, session, plan);
  if (chunk.body_received > 0) body_pool_[session.incoming_body].received += chunk.body_received;
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
    const Bytes input = {arena_.data + chunk.offset + plan.framed_end,
                         chunk.size - plan.framed_end};
    const protocol::FrameResult result =
        protocol::frame(session.frame, limits_, input, chunk.offset + plan.framed_end, plan.entry,
                        scratch_.data(), room);
    batch_.frames.insert(batch_.frames.end(), scratch_.begin(), scratch_.begin() + result.count);
    plan.framed_end += result.consumed;
    switch (result.end) {
      case protocol::FrameEnd::kNeedMore:
        WC_ASSERT(result.need <= io::kChunkBytesMax);
        plan.next.need = result.need;
        return;
      case protocol::FrameEnd::kFull:
        break;
      case protocol::FrameEnd::kClose:
        session.closing = true;
        return;
      case protocol::FrameEnd::kLargeBody:
        if (begin_body(session, result.large, plan) && !continue_body(chunk, session, plan)) return;
        break;
    }
  }
}

// Keeps the frames that the engine deferred for the next iteration; the transport keeps their
// bytes. False: the system refuses the memory.
bool Worker::defer_frames(const RxChunk& chunk, Session& session, Plan& plan) {
  const engine::BatchEntry& entry = batch_.entries[plan.entry];
  const uint32_t first = std::max(entry.first_frame + entry.frames_done, plan.first_frame);
  const uint32_t end = entry.first_frame + entry.frame_count;
  try {
    session.deferred_frames = deferred_pool_.take();
    deferred_pool_[session.deferred_frames].frames.assign(batch_.frames.begin() + first,
                                                          batch_.frames.begin() + end);
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
  if (batch_.frames.size() + deferred.frames.size() > kBatchFramesMax) {
    full_ = plan.not_reached = plan.next.more_now = true;
    return false;
  }
  for (protocol::Frame frame : deferred.frames) {
    frame.offset += chunk.offset;
    frame.entry = plan.entry;
    batch_.frames.push_back(frame);
  }
  plan.framed_end = deferred.framed_end;
  deferred.frames.clear();
  deferred_pool_.give(session.deferred_frames);
  session.deferred_frames = 0;
  return true;
}

// Applies the engine's results of a stream's entry to the session and the plan.
void Worker::finish_entry(const RxChunk& chunk, Session& session, Plan& plan) {
  const engine::BatchEntry& entry = batch_.entries[plan.entry];
  if (WC_UNLIKELY(config_.authentication)) {
    session.authenticated = entry.authenticated;
    session.failed_logins = entry.failed_logins;
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
  } else if (WC_UNLIKELY(entry.frames_done < entry.frame_count) && session.deferred_frames == 0) {
    if (!defer_frames(chunk, session, plan)) session.closing = plan.next.close = true;
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
    plan.next.long_reply = long_reply;
  }
  // A body can be received directly into the store only if all input before it is consumed.
  if (plan.next.consumed < chunk.size && !plan.next.body.empty()) {
    plan.next.body = {};
    plan.next.more_now = true;
  }
}

void Worker::complete(const RxChunk& chunk, Plan& plan) {
  if (!chunk.datagram) plan_stream(chunk, plan);
  const ReplySpan* spans = nullptr;
  uint32_t span_count = 0;
  if (WC_LIKELY(plan.entry != kNoEntry)) {
    const engine::BatchEntry& entry = batch_.entries[plan.entry];
    spans = batch_.spans.data() + entry.first_span;
    span_count = entry.span_count;
    if (WC_UNLIKELY(CommandLog::wanted())) log_entry(chunk, plan);
  }
  transport_.complete(chunk, plan.next, spans, span_count);
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
  const engine::BatchEntry& entry = batch_.entries[plan.entry];
  const int fd = chunk.datagram ? -1 : session_of(*chunk.session).fd;
  log([&] {
    log_.commands(fd, batch_.frames.data() + entry.first_frame, entry.frames_done, batch_.input,
                  plan.secret);
    log_.replies(fd, batch_.spans.data() + entry.first_span, entry.span_count);
  });
}

void Worker::opened(io::SessionStorage& storage, int fd) {
  session_of(storage).fd = fd;
  if (WC_UNLIKELY(CommandLog::wanted())) log([&] { log_.opened(fd, config_.protocol); });
}

void Worker::closed(io::SessionStorage& storage) {
  Session& session = session_of(storage);
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
