// SPDX-License-Identifier: Apache-2.0
//
// The work of the engine besides jobs: logins, administrative commands, and values that are too
// long for the reply arena.
#include <new>
#include <utility>

#include "base/mem.h"
#include "engine/cuda/messages/message_runner.h"
#include "engine/replies.h"
#include "protocol/compose/admin_reply.h"
#include "request/stages.h"

namespace warpcache::engine::cuda {

// `text` makes a std::string, which is kept until the batch has been sent. If the system refuses
// the memory for it, the connection is closed.
template <typename... Text>
void MessageRunner::answer_text(uint32_t frame, Text&&... text) {
  try {
    texts_.emplace_back(std::forward<Text>(text)...);
    answer_with(frame, bytes_of(texts_.back()));
  } catch (const std::bad_alloc&) {
    answer_with(frame, {});
    answers_[frame].state = FrameState::kQuit;
  }
}

// Until a connection has logged in, everything it sends is a login.
void MessageRunner::authenticate(BatchEntry& entry) {
  while (!entry.authenticated && entry.frames_done < entry.frame_count && !entry.close) {
    const uint32_t frame = entry.first_frame + entry.frames_done;
    const protocol::Request request = parse(frame);
    run_admin(entry, request, frame,
              [&](std::string& text) { admin_.authenticate(request, batch_->input, entry, text); });
    const bool ends =
        request.op == protocol::Op::kQuit || answers_[frame].state == FrameState::kQuit;
    if (ends) entry.close = true;
    ++entry.frames_done;
  }
}

// The kernel does not know of users. So the requests that --access does not allow are found before
// the first round, and no round has them.
void MessageRunner::mark_denied(const BatchEntry& entry) {
  const std::shared_ptr<const Rights> rights = admin_.rights_of(entry.user);
  if (rights == nullptr) return;
  for (uint32_t i = entry.frames_done; i < entry.frame_count; ++i) {
    protocol::Request request;
    const protocol::Frame& frame = batch_->frames[entry.first_frame + i];
    const uint8_t* const input = peek_.parse(frame, batch_->input, request);
    answers_[entry.first_frame + i].denied = !are_enough(*rights, request, input);
  }
}

void MessageRunner::deny(uint32_t index, uint32_t frame) {
  protocol::Request request;
  const uint8_t* const input = peek_.parse(batch_->frames[frame], batch_->input, request);
  uint8_t text[kReplyFrameMax];
  const uint8_t* const end = compose_denial(request, input, text);
  admin_.denied();
  answer_text(frame, reinterpret_cast<const char*>(text), static_cast<size_t>(end - text));
  entry_bytes_[index] += answers_[frame].size;
}

// False: the entry ends here for this batch, before the command if too many have run, or after it
// if its reply comes later. `must`: the command cannot wait.
bool MessageRunner::run_on_host(uint32_t index, uint32_t frame, bool must) {
  BatchEntry& entry = batch_->entries[index];
  const bool may =
      parts_.admin_budget.allows(entry.datagram, entry_admin_[index], AdminBudget::Clock::now());
  if (!must && !may) {
    entry.waits = !entry.datagram;
    if (!entry.datagram) return false;
    fail_datagram(entry, bytes_of(kDatagramBusy));
    return true;
  }
  ++entry_admin_[index];
  parts_.admin_budget.count(entry.datagram);
  if (WC_UNLIKELY(wants_keys_)) show_requests(entry);  // in order: the command may be reported, too
  const protocol::Request request = parse(frame);
  runner_.release_device();  // as in store_alone(): the command may call the store
  run_admin(entry, request, frame,
            [&](std::string& text) { admin_.run(request, batch_->input, entry, text); });
  entry_bytes_[index] += answers_[frame].size;
  ask_watchers();
  // After a logout the next batch begins with a login.
  if (entry.long_reply == nullptr && entry.authenticated) return true;
  ++entry.frames_done;
  return false;
}

// Answers with the text that `run` makes. Texts grow with what is stored: if the system refuses the
// memory, the answer says so.
template <typename Run>
void MessageRunner::run_admin(BatchEntry& entry, const protocol::Request& request, uint32_t frame,
                              Run run) {
  try {
    std::string text;
    run(text);
    answer_text(frame, std::move(text));
  } catch (const std::bad_alloc&) {
    drop_long_reply(entry);
    uint8_t error[kReplyFrameMax];
    size_t size = 0;
    protocol::reply_error(request, Status::kOutOfMemory, [&](Bytes bytes) {
      mem_copy(error + size, bytes.data, bytes.size);
      size += bytes.size;
    });
    answer_text(frame, reinterpret_cast<const char*>(error), size);
  }
}

// Reports to a watcher that the value is there.
void MessageRunner::answer_miss(uint32_t frame) {
  const uint32_t value_size =
      answers_[frame].state == FrameState::kLargeValue ? answers_[frame].bytes : 0;
  const protocol::Request request = parse(frame);
  protocol::Result result = {};
  result.outcome = protocol::Outcome::kMiss;
  uint8_t text[kReplyFrameMax];
  uint8_t* end = protocol::compose_head(request, result, batch_->input, text);
  end = protocol::compose_tail(request, result, batch_->input, end);
  parts_.counters.add(request::Counter::kLargeMissed);
  answer_text(frame, reinterpret_cast<const char*>(text), static_cast<size_t>(end - text));
  if (!reports_ || value_size == 0) return;
  answers_[frame].reported = true;
  answers_[frame].bytes = static_cast<uint32_t>(result.outcome);
  frame_reports_[frame] = {};
  frame_reports_[frame].before = request::KeyState::kFound;
  frame_reports_[frame].value_size_before = value_size;
}

// --- Values that are too long for the arena

// Runs one request with a separate reply buffer, which stays until it has been sent. kFinished: the
// entry waits for a buffer.
MessageRunner::EntryNext MessageRunner::fetch_large(BatchEntry& entry, uint32_t frame) {
  uint32_t buffer = 0;
  while (buffer < kLargeBuffers && (large_used_[buffer] || large_[buffer].bytes() == 0)) ++buffer;
  if (buffer == kLargeBuffers) {
    if (!entry.datagram && !waited_too_long()) return EntryNext::kFinished;
    answer_miss(frame);
    return EntryNext::kAgain;
  }
  pins_refused_ = false;
  run_alone(frame, large_[buffer]);
  if (faults_.failed()) return EntryNext::kFinished;
  Answer& answer = answers_[frame];
  if (answer.answered) {
    answer.pin = first_pin_ + buffer;
    large_used_[buffer] = true;
  } else if (answer.state != FrameState::kDeferred) {
    answer_miss(frame);
  }
  return EntryNext::kAgain;
}

// The same if later frames of the entry are answered already, so that it cannot wait: the reply
// becomes a text. If there is no memory for the text, the answer is a miss.
void MessageRunner::fetch_apart(uint32_t frame) {
  run_alone(frame, apart_);
  Answer& answer = answers_[frame];
  if (answer.state == FrameState::kDeferred) return;  // reclaim() follows, as for other frames
  if (!answer.answered) return answer_miss(frame);
  try {
    texts_.emplace_back(reinterpret_cast<const char*>(answer.data), answer.size);
    answer.data = bytes_of(texts_.back()).data;
  } catch (const std::bad_alloc&) {
    answer_miss(frame);
  }
}

// Runs a job of one frame. `reply` has space for any reply.
void MessageRunner::run_alone(uint32_t frame, const gpu::CudaMemory& reply) {
  const auto size = static_cast<uint32_t>(reply.bytes());
  const bool large = large_copy_.bytes() != 0;
  const uint32_t index = batch_->frames[frame].entry;
  const BatchEntry& entry = batch_->entries[index];
  EntryInfo& info = entries_.as<EntryInfo>()[index];
  info = {};
  info.datagram = entry.datagram ? 1 : 0;
  if (frame == entry.first_frame) info.reservation = bodies_[index];
  origin_.assign(1, frame);
  frames_.as<protocol::Frame>()[0] = batch_->frames[frame];
  job_ = &prepare_job(reply.data(), large ? large_copy_.data() : reply_copy_.data(), size);
  job_->value_size_max = config_.item_size_max;
  add_group(0, 1);
  runner_.launch();
  if (runner_.wait()) (void)take_results(reply.data());
}

bool MessageRunner::waited_too_long() {
  const auto now = std::chrono::steady_clock::now();
  if (!std::exchange(pins_refused_, true)) refused_since_ = now;
  return now - refused_since_ >= std::chrono::milliseconds(config_.pin_wait_ms_max);
}

bool MessageRunner::release(uint32_t pin) {
  if (pin < first_pin_ || pin >= first_pin_ + kLargeBuffers) return false;
  large_used_[pin - first_pin_] = false;
  return true;
}

}  // namespace warpcache::engine::cuda
