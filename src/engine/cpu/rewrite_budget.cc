// SPDX-License-Identifier: Apache-2.0
//
// What the CPU engine does so that requests which copy much within the store keep nobody waiting.
// Ten bytes of `append` make it copy a value of any length.
#include <algorithm>

#include "engine/cpu/cpu_engine.h"

namespace warpcache::engine {

// Bytes that such a request has written. Of an incr or decr about as many: those of the item that
// was there when its group began.
uint32_t CpuEngine::bytes_copied(const request::RequestState& state,
                                 const protocol::Result& result) {
  const protocol::Op op = state.request.op;
  if (op == protocol::Op::kIncr || op == protocol::Op::kDecr) {
    return store::slot_lines(state.hint.slot) * 64;
  }
  return result.outcome == protocol::Outcome::kStored ? result.value_size : 0;
}

void CpuEngine::count_copied(const BatchEntry& entry, uint32_t bytes) {
  entry_reply_bytes_ += std::min(bytes, kEntryReplySlice);
  (entry.datagram ? datagrams_copied_bytes_ : copied_bytes_) += bytes;
}

// A request that would copy is of a datagram, which cannot wait, and the batch's datagrams have
// copied too much.
bool CpuEngine::may_not_copy(const BatchEntry& entry) const {
  return entry.datagram && datagrams_copied_bytes_ >= kBatchCopiedMax;
}

// The frame is of a stream, and may ask to copy with a base64 key: only `ms` and `ma` can. Such a
// key cannot wait once it is decoded. So where streams copy much, it is decoded when all before it
// has run, at the start of a group, and ends that.
bool CpuEngine::may_copy_by_base64(const Batch& batch, const protocol::Frame& frame) const {
  const uint8_t* const head = context_.input + frame.offset;
  return !batch.entries[frame.entry].datagram && frame.head_size >= 2 && head[0] == 'm' &&
         (head[1] == 's' || head[1] == 'a');
}

// Such a frame is the next of its entry. Returns whether the entry stops here: it has had its
// share, or the batch's is used up.
bool CpuEngine::stops_before_copy(const protocol::Frame& frame) const {
  return (frame.entry == open_entry_ && entry_reply_bytes_ >= kEntryReplySlice) ||
         copied_bytes_ >= kBatchCopiedMax;
}

// Passes by entries that stop at `next_frame`. Returns where the group ends at the latest: such a
// frame starts another.
uint32_t CpuEngine::end_before_copy(Batch& batch, uint32_t& next_frame) {
  const auto frames = static_cast<uint32_t>(batch.frames.size());
  while (next_frame < frames && may_copy_by_base64(batch, batch.frames[next_frame]) &&
         stops_before_copy(batch.frames[next_frame])) {
    const BatchEntry& entry = batch.entries[batch.frames[next_frame].entry];
    batch.stream_not_reached = batch.stream_not_reached || entry.frames_done == 0;
    next_frame = entry.first_frame + entry.frame_count;
  }
  uint32_t end = next_frame + 1;
  while (end < frames && end < next_frame + kGroupSize &&
         !may_copy_by_base64(batch, batch.frames[end])) {
    ++end;
  }
  return std::min(end, frames);
}

// The request at `index` would copy, and its stream has had its share of the turn, or the batch's
// is used up.
bool CpuEngine::waits_to_copy(const BatchEntry& entry, uint32_t index, uint32_t count) const {
  if (entry.datagram) return false;
  const bool used_up = entry_reply_bytes_ >= kEntryReplySlice || copied_bytes_ >= kBatchCopiedMax;
  return used_up && may_wait(index, count);
}

}  // namespace warpcache::engine
