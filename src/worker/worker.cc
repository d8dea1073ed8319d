// SPDX-License-Identifier: Apache-2.0
#include "worker/worker.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include "protocol/framing/frame.h"

namespace warpcache::worker {

using io::RxChunk;

static_assert(engine::kPinFollows == io::kPinFollows);
static_assert(io::kChunksMax <= engine::kBatchEntriesMax);

Worker::Worker(const WorkerConfig& config, io::Transport& transport, engine::Engine& engine)
    : config_(config),
      transport_(transport),
      engine_(engine),
      limits_{config.item_size_max, kInlineBodyMax, config.cas_enabled, config.protocol},
      memory_(engine.input_memory(kInputBytes)),
      scratch_(kScratchFrames) {
  WC_ASSERT(config.requests_per_stream_max > 0);
  // Taken now, so that none of it has to be had when memory is short. Only what is used of it
  // occupies memory.
  batch_.frames.reserve(kBatchFramesMax);
  batch_.entries.reserve(io::kChunksMax);
  batch_.spans.reserve(engine::kBatchSpansMax);
  spans_.reserve(engine::kBatchSpansMax);
  chunks_.reserve(io::kChunksMax);
  plans_.reserve(io::kChunksMax);
  left_.reserve(io::kChunksMax);
  arena_ = {memory_, kArenaBytes, 0};
  batch_.input = memory_;
  transport_.attach(*this, *this);
}

void Worker::run() {
  while (turn(kWaitMs)) {
  }
}

bool Worker::turn(int timeout_ms) {
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
  for (size_t i = first; i < chunks_.size(); ++i) complete_unless_left(i);
  for (size_t i = 0; i < first; ++i) complete_unless_left(i);
  transport_.flush();
  while (WC_UNLIKELY(!left_.empty())) run_left();
  return true;
}

// Turns without input are also those in which a connection opens, closes or sends what is left.
void Worker::nothing_came() {
  const auto now = std::chrono::steady_clock::now();
  if (!std::exchange(idle_, true)) idle_since_ = now;
  if (now - idle_since_ >= config_.release_device_after) engine_.release_device();
}

// A datagram for which the batch had no room, or the engine no reply space, comes again in this
// turn.
bool Worker::is_left(size_t index) const {
  if (!chunks_[index].datagram) return false;
  const Plan& plan = plans_[index];
  return plan.left_out || (plan.entry != kNoEntry && batch_.entries[plan.entry].frames_done == 0);
}

void Worker::complete_unless_left(size_t index) {
  if (WC_UNLIKELY(is_left(index))) {
    left_.push_back(static_cast<uint32_t>(index));
  } else {
    complete(chunks_[index], plans_[index]);
  }
}

// Runs the datagrams that are left, as a batch of their own: what was answered before has gone, and
// the space of its replies is free. If it is too little for the first of them, those that were in
// the batch go without a reply. Each time around some are completed, or the first is framed.
void Worker::run_left() {
  std::sort(left_.begin(), left_.end());
  keep_left_frames();
  for (const uint32_t index : left_) {
    if (plans_[index].left_out) frame_datagram(chunks_[index], plans_[index]);
  }
  if (!batch_.entries.empty()) run_batch();
  const bool none_served = !batch_.entries.empty() && batch_.entries.front().frames_done == 0;
  size_t still_left = 0;
  for (const uint32_t index : left_) {
    if (is_left(index) && (plans_[index].left_out || !none_served)) {
      left_[still_left++] = index;
    } else {
      complete(chunks_[index], plans_[index]);
    }
  }
  left_.resize(still_left);
  transport_.flush();
}

// Of what the batch holds, the entries stay that have no reply.
void Worker::keep_left_frames() {
  uint32_t frames = 0;
  uint32_t entries = 0;
  for (const uint32_t index : left_) {
    if (plans_[index].left_out) continue;
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

// The transport delivers what waits in the order in which it was completed. Streams that found the
// batch full, the reply space used up or the administrative commands at their limit come first in
// the next iteration, so that clients that send or read fast cannot starve the others.
size_t Worker::first_to_complete() const {
  if (WC_LIKELY(!full_ && !batch_.stream_not_reached)) return 0;
  const auto waits = [this](const Plan& plan) {
    return plan.left_out || (plan.entry != kNoEntry && batch_.entries[plan.entry].frames_done == 0);
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

// An entry without frames is taken back.
void Worker::close_entry(Plan& plan) {
  engine::BatchEntry& entry = batch_.entries.back();
  entry.frame_count = static_cast<uint32_t>(batch_.frames.size()) - entry.first_frame;
  if (entry.frame_count > 0) return;
  batch_.entries.pop_back();
  plan.entry = kNoEntry;
}

// How many frames can be added now; says in the plan whether the batch is full. One place is kept
// for the frame of a big body that is refused.
uint32_t Worker::frame_room(Plan& plan) {
  const auto in_batch = static_cast<uint32_t>(batch_.frames.size());
  const uint32_t in_entry = in_batch - plan.first_frame;
  if (in_entry >= config_.requests_per_stream_max) return 0;
  plan.left_out = in_batch + 1 >= kBatchFramesMax;
  if (WC_UNLIKELY(plan.left_out)) {
    full_ = true;
    return 0;
  }
  return std::min(
      {kBatchFramesMax - 1 - in_batch, config_.requests_per_stream_max - in_entry, kScratchFrames});
}

// A datagram is answered whole, so all of it goes into the batch, or none.
void Worker::frame_datagram(const RxChunk& chunk, Plan& plan) {
  plan.left_out = batch_.frames.size() + kDatagramFramesMax >= kBatchFramesMax;
  if (WC_UNLIKELY(plan.left_out)) return;
  const Session session{};
  open_entry(chunk, session, plan);
  protocol::FrameState state{};
  for (uint32_t cursor = 0; cursor < chunk.size;) {
    const Bytes input = {arena_.data + chunk.offset + cursor, chunk.size - cursor};
    const protocol::FrameResult result = protocol::frame_datagram(
        state, limits_, input, chunk.offset + cursor, plan.entry, scratch_.data(), kScratchFrames);
    if (WC_UNLIKELY(batch_.frames.size() - plan.first_frame + result.count > kDatagramFramesMax)) {
      batch_.frames.resize(plan.first_frame);  // it is lost, as datagrams may be
      break;
    }
    batch_.frames.insert(batch_.frames.end(), scratch_.begin(), scratch_.begin() + result.count);
    cursor += result.consumed;
    if (result.end != protocol::FrameEnd::kFull) break;
  }
  close_entry(plan);
}

void Worker::frame_stream(const RxChunk& chunk, Plan& plan) {
  Session& session = session_of(*chunk.session);
  open_entry(chunk, session, plan);
  if (chunk.body_received > 0) bigs_[session.big].received += chunk.body_received;
  bool go_on = true;
  if (WC_UNLIKELY(session.big_waiting != 0)) go_on = add_big(session.big_waiting, plan);
  if (WC_UNLIKELY(session.waiting != 0) && go_on) go_on = replay_waiting(chunk, session, plan);
  if (WC_UNLIKELY(session.big != 0) && go_on) go_on = continue_big(chunk, session, plan);
  if (WC_LIKELY(go_on && !session.closing)) frame_input(chunk, session, plan);
  close_entry(plan);
}

// Frames the chunk from plan.framed_end on.
void Worker::frame_input(const RxChunk& chunk, Session& session, Plan& plan) {
  while (true) {
    const uint32_t room = frame_room(plan);
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
      case protocol::FrameEnd::kBigBody:
        if (begin_big(session, result.big, plan) && !continue_big(chunk, session, plan)) return;
        break;
    }
  }
}

// What the engine has left undone comes back next turn; the bytes stay with the transport. False:
// the system refuses the memory for it.
bool Worker::keep_waiting(const RxChunk& chunk, Session& session, Plan& plan) {
  const engine::BatchEntry& entry = batch_.entries[plan.entry];
  const uint32_t first = std::max(entry.first_frame + entry.frames_done, plan.first_frame);
  const uint32_t end = entry.first_frame + entry.frame_count;
  try {
    session.waiting = waiting_.take();
    waiting_[session.waiting].frames.assign(batch_.frames.begin() + first,
                                            batch_.frames.begin() + end);
  } catch (const std::bad_alloc&) {
    return false;
  }
  WaitingFrames& waiting = waiting_[session.waiting];
  // Frames without a head have no place in the input.
  uint32_t start = chunk.offset + plan.framed_end;
  for (const protocol::Frame& frame : waiting.frames) {
    if (frame.head_size > 0) start = std::min(start, frame.offset);
  }
  for (protocol::Frame& frame : waiting.frames) {
    frame.offset = frame.head_size > 0 ? frame.offset - start : 0;
  }
  waiting.framed_end = plan.framed_end - (start - chunk.offset);
  plan.next = {
      .consumed = start - chunk.offset, .more_now = true, .long_reply = plan.next.long_reply};
  return true;
}

// False: the batch has no room for them, and they wait on.
bool Worker::replay_waiting(const RxChunk& chunk, Session& session, Plan& plan) {
  WaitingFrames& waiting = waiting_[session.waiting];
  if (batch_.frames.size() + waiting.frames.size() > kBatchFramesMax) {
    full_ = plan.left_out = plan.next.more_now = true;
    return false;
  }
  for (protocol::Frame frame : waiting.frames) {
    frame.offset += chunk.offset;
    frame.entry = plan.entry;
    batch_.frames.push_back(frame);
  }
  plan.framed_end = waiting.framed_end;
  waiting.frames.clear();
  waiting_.give(session.waiting);
  session.waiting = 0;
  return true;
}

// What the engine made of a stream's entry.
void Worker::finish_entry(const RxChunk& chunk, Session& session, Plan& plan) {
  const engine::BatchEntry& entry = batch_.entries[plan.entry];
  if (WC_UNLIKELY(config_.authentication)) {
    session.authenticated = entry.authenticated;
    session.failed_logins = entry.failed_logins;
  }
  plan.next.long_reply = entry.long_reply;
  if (WC_UNLIKELY(plan.big != 0)) {
    if (entry.frames_done == 0 && !entry.close) {
      session.big_waiting = plan.big;
    } else {
      drop_big(plan.big, entry.frames_done == 0);
    }
  }
  if (entry.close) {
    session.closing = plan.next.close = true;
  } else if (WC_UNLIKELY(entry.frames_done < entry.frame_count) && session.waiting == 0) {
    if (!keep_waiting(chunk, session, plan)) session.closing = plan.next.close = true;
  }
}

void Worker::plan_stream(const RxChunk& chunk, Plan& plan) {
  Session& session = session_of(*chunk.session);
  plan.next.consumed = plan.framed_end;
  if (WC_LIKELY(plan.entry != kNoEntry)) finish_entry(chunk, session, plan);
  if (session.closing && session.waiting == 0) plan.next.close = true;
  if (plan.next.close) {
    BytePipe* const long_reply = plan.next.long_reply;
    plan.next = {};
    plan.next.consumed = chunk.size;
    plan.next.close = true;
    plan.next.long_reply = long_reply;
  }
  // A body goes straight to its place only when none of it is left over.
  if (plan.next.consumed < chunk.size && !plan.next.body.empty()) {
    plan.next.body = {};
    plan.next.more_now = true;
  }
}

void Worker::complete(const RxChunk& chunk, Plan& plan) {
  if (!chunk.datagram) plan_stream(chunk, plan);
  spans_.clear();
  if (WC_LIKELY(plan.entry != kNoEntry)) {
    const engine::BatchEntry& entry = batch_.entries[plan.entry];
    for (uint32_t i = 0; i < entry.span_count; ++i) {
      const engine::ReplySpan& span = batch_.spans[entry.first_span + i];
      spans_.push_back({span.data, span.size, span.pin});
    }
    if (WC_UNLIKELY(CommandLog::wanted())) log_entry(chunk, plan);
  }
  transport_.complete(chunk, plan.next, spans_.data(), static_cast<uint32_t>(spans_.size()));
}

// Where the system refuses memory for it, the log has a gap.
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
    log_.replies(fd, spans_.data(), static_cast<uint32_t>(spans_.size()));
  });
}

void Worker::opened(io::SessionStorage& storage, int fd) {
  session_of(storage).fd = fd;
  if (WC_UNLIKELY(CommandLog::wanted())) log([&] { log_.opened(fd, config_.protocol); });
}

void Worker::closed(io::SessionStorage& storage) {
  Session& session = session_of(storage);
  if (WC_UNLIKELY(CommandLog::wanted())) log([&] { log_.closed(session.fd); });
  if (session.big != 0) drop_big(session.big, true);
  if (session.big_waiting != 0) drop_big(session.big_waiting, true);
  if (session.waiting != 0) {
    waiting_[session.waiting].frames.clear();
    waiting_.give(session.waiting);
    session.waiting = 0;
  }
}

}  // namespace warpcache::worker
