// SPDX-License-Identifier: Apache-2.0
//
// What the engine does beside handing in jobs: logins, administrative commands, values that are too
// long for the reply arena.
#include <new>
#include <utility>

#include "engine/cuda/cuda_engine.h"
#include "engine/replies.h"
#include "request/stages.h"
#include "wire/admin_reply.h"

namespace warpcache::engine::cuda {

// Until a connection has logged in, what it sends is the login.
void CudaEngine::authenticate(BatchEntry& entry) {
  while (!entry.authenticated && entry.frames_done < entry.frame_count && !entry.close) {
    const uint32_t frame = entry.first_frame + entry.frames_done;
    const wire::Request request = parse(frame);
    if (request.op == wire::Op::kQuit) {
      entry.close = true;
      answer_text(frame, "");
    } else {
      std::string text;
      admin_.authenticate(request, batch_->input, entry, text);
      answer_text(frame, std::move(text));
    }
    ++entry.frames_done;
  }
}

void CudaEngine::run_on_host(BatchEntry& entry, uint32_t frame) {
  const wire::Request request = parse(frame);
  std::string text;
  try {
    admin_.run(request, batch_->input, entry, text);
  } catch (const std::bad_alloc&) {
    // Texts grow with what is stored. The error is short.
    text.clear();
    wire::reply_error(request, Status::kOutOfMemory, [&text](Bytes bytes) {
      text.append(reinterpret_cast<const char*>(bytes.data), bytes.size);
    });
  }
  entry_bytes_[batch_->frames[frame].entry] += static_cast<uint32_t>(text.size());
  wants_keys_ = admin_.wants_keys();
  answer_text(frame, std::move(text));
}

void CudaEngine::answer_miss(uint32_t frame) {
  const wire::Request request = parse(frame);
  wire::Result result = {};
  result.outcome = wire::Outcome::kMiss;
  uint8_t text[kReplyFrameMax];
  uint8_t* end = wire::compose_head(request, result, batch_->input, text);
  end = wire::compose_tail(request, result, batch_->input, end);
  counters_.add(request::Counter::kLargeMissed);
  answer_text(frame,
              std::string(reinterpret_cast<const char*>(text), static_cast<size_t>(end - text)));
}

// --- Values that are too long for the arena

// Runs the one request with a buffer of its own for the reply, which stays until it has been sent.
// kFinished: the entry waits for a buffer.
CudaEngine::EntryNext CudaEngine::fetch_large(BatchEntry& entry, uint32_t frame) {
  uint32_t buffer = 0;
  while (buffer < kLargeBuffers && (large_used_[buffer] || large_[buffer].bytes() == 0)) ++buffer;
  if (buffer == kLargeBuffers) {
    if (!entry.datagram && !waited_too_long()) return EntryNext::kFinished;
    answer_miss(frame);
    return EntryNext::kAgain;
  }
  pins_refused_ = false;
  origin_.assign(1, frame);
  frames_.as<wire::Frame>()[0] = batch_->frames[frame];
  const CudaMemory& memory = large_[buffer];
  job_ = &prepare_job(memory.data(), large_copy_.data(), static_cast<uint32_t>(memory.bytes()));
  job_->value_size_max = config_.item_size_max;
  add_group(0, 1);
  runner_.launch();
  if (!runner_.wait()) return EntryNext::kFinished;
  (void)take_results(memory.data());
  Answer& answer = answers_[frame];
  if (answer.answered) {
    answer.pin = buffer + 1;
    large_used_[buffer] = true;
  } else if (answer.state != FrameState::kDeferred) {
    answer_miss(frame);
  }
  return EntryNext::kAgain;
}

bool CudaEngine::waited_too_long() {
  const auto now = std::chrono::steady_clock::now();
  if (!std::exchange(pins_refused_, true)) refused_since_ = now;
  return now - refused_since_ >= std::chrono::milliseconds(config_.pin_wait_ms_max);
}

void CudaEngine::release(uint32_t pin) { large_used_[pin - 1] = false; }

}  // namespace warpcache::engine::cuda
