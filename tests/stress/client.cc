// SPDX-License-Identifier: Apache-2.0
#include "stress/client.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <thread>
#include <utility>

#include "base/assert.h"
#include "stress/eviction_log.h"

namespace warpcache::stress {

namespace {

constexpr uint32_t kInlineBodyMax = 60 * 1024;  // bytes; larger bodies go through reservations
constexpr uint32_t kFramesMax = 256;            // of one call
constexpr uint32_t kInputBytes = 32u << 20;     // of a batch at most
constexpr uint32_t kFrontReads = 6;             // after a batch
constexpr size_t kFailuresMax = 3;              // reported for one client

const protocol::FrameLimits& limits() {
  static const protocol::FrameLimits made = [] {
    protocol::FrameLimits limits = {};
    limits.item_size_max = kItemSizeMax;
    limits.inline_body_max = kInlineBodyMax;
    limits.cas_enabled = true;
    return limits;
  }();
  return made;
}

}  // namespace

Client::Client(const Scenario& scenario, uint32_t index, uint64_t seed, store::StoreOwner& store,
               engine::Engine& engine, Front* front)
    : scenario_(scenario),
      store_(store),
      engine_(engine),
      front_(front),
      front_session_(kFrontSession + index),
      memory_(engine.input_memory(kInputBytes)),
      generator_(scenario, index + 1, seed),
      filler_(scenario, index + 1, seed) {
  for (uint32_t i = 0; i < scenario.sessions; ++i) {
    Session session;
    session.number = index * scenario.sessions + i;
    session.form = i % 3 == 2 ? Form::kBinary : Form::kText;
    sessions_.push_back(session);
  }
  WC_ASSERT(sessions_.back().number < kFrontSession && front_session_ < kFinalSession);
  final_session_.number = kFinalSession;
}

Client::~Client() { release_pins(); }

void Client::fail(const std::string& what, std::string_view replies) {
  if (failures_.size() >= kFailuresMax) return;
  std::string shown;
  for (const char c : replies.substr(0, 200)) {
    const bool plain = c >= ' ' && c <= '~';
    shown += plain ? std::string(1, c) : fmt::format("\\x{:02x}", static_cast<uint8_t>(c));
  }
  failures_.push_back(what + ", replies go on with: " + shown + "\n");
}

// --- Making a batch

void Client::open_share(protocol::FrameState* framing) {
  Share share;
  share.first_command = static_cast<uint32_t>(commands_.size());
  share.input_first = static_cast<uint32_t>(input_.size());
  share.framing = framing;
  shares_.push_back(std::move(share));
}

void Client::close_share() {
  Share& share = shares_.back();
  share.command_count = static_cast<uint32_t>(commands_.size()) - share.first_command;
  share.input_size = static_cast<uint32_t>(input_.size()) - share.input_first;
}

void Client::add_command(Session& session, Form form, std::span<const Operation> operations,
                         std::string_view body) {
  Command command;
  command.form = form;
  command.first_operation = static_cast<uint32_t>(batch_operations_.size());
  command.operation_count = static_cast<uint32_t>(operations.size());
  encode(form, operations, body, command.first_operation, &input_);
  for (Operation op : operations) {
    op.session = session.number;
    batch_operations_.push_back(op);
  }
  commands_.push_back(command);
}

void Client::add_session_share(Session& session) {
  open_share(&session.framing);
  const uint64_t count = 1 + generator_.below(scenario_.commands_max);
  std::vector<Operation> made;
  for (uint64_t i = 0; i < count; ++i) {
    made.clear();
    Form form = session.form;
    generator_.make(&form, &made, &body_);
    // A body that is received piece by piece comes first in its batch.
    if (body_.size() > kInlineBodyMax && i != 0) break;
    add_command(session, form, made, body_);
    if (body_.size() > kInlineBodyMax) break;
  }
  close_share();
}

void Client::take_large_body(const Share& share, protocol::Frame frame, uint32_t body_at,
                             uint32_t index) {
  const std::string key =
      key_name(batch_operations_[commands_[share.first_command].first_operation].key);
  uint32_t id = 0;
  const Status status = engine_.reserve(static_cast<uint8_t>(key.size()), frame.body_size, &id);
  frame.entry = index;
  if (status != Status::kOk) {
    const Status why = status == Status::kTooLarge ? status : Status::kOutOfMemory;
    protocol::frame_refuse_large(*share.framing, frame, why);
  } else {
    for (uint32_t at = 0; at < frame.body_size;) {
      const MutableBytes window = engine_.reservation_window(id, at, 0);
      const size_t count = std::min<size_t>(window.size, frame.body_size - at);
      std::memcpy(window.data, input_.data() + body_at + at, count);
      at += static_cast<uint32_t>(count);
    }
    const auto* end = reinterpret_cast<const uint8_t*>(input_.data()) + body_at + frame.body_size;
    protocol::frame_large_done(frame, {end, protocol::body_end_size(frame)});
    batch_.entries[index].reservation = id;
  }
  batch_.frames.push_back(frame);
}

// Frames a share as one entry.
void Client::frame_share(uint32_t index) {
  const Share& share = shares_[index];
  const uint32_t end = share.input_first + share.input_size;
  engine::BatchEntry entry;
  entry.first_frame = static_cast<uint32_t>(batch_.frames.size());
  batch_.entries.push_back(entry);
  entry_share_.push_back(index);
  std::array<protocol::Frame, kFramesMax> frames;
  for (uint32_t at = share.input_first; at < end;) {
    const Bytes rest = {batch_.input + at, end - at};
    const protocol::FrameResult result =
        protocol::frame(*share.framing, limits(), rest, at, index, frames.data(), kFramesMax);
    batch_.frames.insert(batch_.frames.end(), frames.begin(), frames.begin() + result.count);
    at += result.consumed;
    if (result.end == protocol::FrameEnd::kLargeBody) {
      take_large_body(share, result.large, at, index);
      const bool taken = batch_.entries[index].reservation != 0;
      if (taken) at += result.large.body_size + protocol::body_end_size(result.large);
    } else {
      WC_ASSERT(result.consumed != 0);
    }
  }
  batch_.entries[index].frame_count =
      static_cast<uint32_t>(batch_.frames.size()) - entry.first_frame;
}

// --- Running it

// Frames that the engine has not done become the next batch.
bool Client::keep_unfinished(std::vector<protocol::Frame>* frames) {
  std::vector<engine::BatchEntry> entries;
  std::vector<uint32_t> shares;
  frames->clear();
  for (uint32_t i = 0; i < batch_.entries.size(); ++i) {
    const engine::BatchEntry& done = batch_.entries[i];
    if (done.frames_done == done.frame_count) continue;
    engine::BatchEntry entry;
    entry.first_frame = static_cast<uint32_t>(frames->size());
    entry.frame_count = done.frame_count - done.frames_done;
    if (done.frames_done == 0) entry.reservation = done.reservation;
    for (uint32_t f = done.frames_done; f < done.frame_count; ++f) {
      frames->push_back(batch_.frames[done.first_frame + f]);
      frames->back().entry = static_cast<uint32_t>(entries.size());
    }
    entries.push_back(entry);
    shares.push_back(entry_share_[i]);
  }
  batch_.entries = std::move(entries);
  entry_share_ = std::move(shares);
  batch_.frames.swap(*frames);
  return !batch_.entries.empty();
}

void Client::hold(std::vector<Bytes> pieces, uint32_t pin) {
  HeldPin held;
  held.pin = pin;
  held.pieces = std::move(pieces);
  if (scenario_.pins_held != 0) {
    std::string bytes;
    for (const Bytes& piece : held.pieces)
      bytes.append(reinterpret_cast<const char*>(piece.data), piece.size);
    held.value = value_of(bytes);
    ++pins_held_;
  }
  pins_.push_back(std::move(held));
}

void Client::release_oldest() {
  const HeldPin held = std::move(pins_.front());
  pins_.erase(pins_.begin());
  if (scenario_.pins_held != 0) {
    std::string bytes;
    for (const Bytes& piece : held.pieces)
      bytes.append(reinterpret_cast<const char*>(piece.data), piece.size);
    if (!value_of(bytes).same_bytes(held.value)) fail("pinned bytes have changed", bytes);
  }
  engine_.release(held.pin);
}

void Client::release_pins() {
  while (!pins_.empty()) release_oldest();
}

void Client::collect_entry(const engine::BatchEntry& entry, std::string* replies) {
  std::vector<Bytes> pieces;
  for (uint32_t i = 0; i < entry.span_count; ++i) {
    const engine::ReplySpan& span = batch_.spans[entry.first_span + i];
    replies->append(reinterpret_cast<const char*>(span.data), span.size);
    if (span.pin == 0) continue;
    pieces.push_back({span.data, span.size});
    if (span.pin == engine::kPinFollows) continue;
    hold(std::move(pieces), span.pin);
    pieces.clear();
  }
}

void Client::collect_replies() {
  for (uint32_t i = 0; i < batch_.entries.size(); ++i)
    collect_entry(batch_.entries[i], &shares_[entry_share_[i]].replies);
  while (pins_.size() > scenario_.pins_held) release_oldest();
}

void Client::submit_all() {
  std::vector<protocol::Frame> frames;
  bool unfinished = true;
  while (unfinished) {
    if (front_ != nullptr) front_->settle();
    engine_.submit(&batch_);
    while (engine_.poll() == nullptr) std::this_thread::yield();  // to a simulated GPU
    collect_replies();
    const size_t submitted = batch_.frames.size();
    unfinished = keep_unfinished(&frames);
    // A read that waits for pinned memory may wait for the pins of this client.
    if (unfinished && batch_.frames.size() == submitted) release_pins();
  }
}

void Client::decode_replies() {
  for (Share& share : shares_) {
    std::string_view replies = share.replies;
    if (share.filler) {
      if (!filler_.check(&replies)) fail("a reply to a filler command", replies);
    }
    for (uint32_t i = 0; i < share.command_count; ++i) {
      const Command& command = commands_[share.first_command + i];
      const std::span<Operation> operations =
          std::span(batch_operations_).subspan(command.first_operation, command.operation_count);
      const std::string_view before = replies;
      if (!decode(command.form, operations, command.first_operation, &replies)) {
        fail("no reply to this: " + describe(operations[0], 0), before);
        return;
      }
      for (const Operation& op : operations) generator_.learn(op);
    }
    if (!replies.empty()) fail("more replies than commands", replies);
  }
}

void Client::run_shares() {
  WC_ASSERT(input_.size() <= kInputBytes);
  std::memcpy(memory_, input_.data(), input_.size());
  batch_.input = memory_;
  batch_.frames.clear();
  batch_.entries.clear();
  entry_share_.clear();
  for (uint32_t i = 0; i < shares_.size(); ++i) frame_share(i);
  const uint32_t clock_low = store_.clock().now;
  const int64_t invoked = now_ns();
  submit_all();
  const int64_t responded = now_ns();
  const uint32_t clock_high = store_.clock().now;
  decode_replies();
  for (Operation& op : batch_operations_) {
    op.invoked = invoked;
    op.responded = responded;
    op.clock_low = clock_low;
    op.clock_high = clock_high;
    operations_.push_back(op);
  }
  shares_.clear();
  commands_.clear();
  batch_operations_.clear();
  input_.clear();
}

void Client::run_batch() {
  for (Session& session : sessions_) add_session_share(session);
  if (scenario_.filler_commands != 0) {
    open_share(&filler_framing_);
    filler_.make(&input_);
    close_share();
    shares_.back().filler = true;
  }
  run_shares();
  if (front_ != nullptr) {
    for (uint32_t i = 0; i < kFrontReads; ++i) {
      read_from_front();
      if (generator_.one_in(kFrontReads)) write_to_front();
    }
  }
}

void Client::write_to_front() {
  constexpr uint32_t kBytesMax = 300;  // what fits into the program's requests
  std::vector<Operation> writes(1);
  if (generator_.make_plain_set(kBytesMax, writes.data(), &body_)) ask_front(writes, body_);
}

void Client::read_from_front() {
  std::vector<Operation> reads(generator_.one_in(3) ? 2 : 1);
  const uint64_t first = generator_.below(scenario_.keys);
  const uint32_t shown = generator_.one_in(2) ? uint32_t{kShowsCas} : 0;
  for (size_t i = 0; i < reads.size(); ++i) {
    reads[i].key = static_cast<uint32_t>((first + i) % scenario_.keys);
    reads[i].shown = shown;
  }
  ask_front(reads, "");
}

// What the front does not answer is no operation: the engine has not seen it.
void Client::ask_front(std::vector<Operation>& operations, std::string_view body) {
  std::string command;
  encode(Form::kText, operations, body, 0, &command);
  const uint32_t clock_low = store_.clock().now;
  const int64_t invoked = now_ns();
  const std::string reply = front_->ask(command);
  const int64_t responded = now_ns();
  const uint32_t clock_high = store_.clock().now;
  if (reply.empty()) return;
  std::string_view rest = reply;
  if (!decode(Form::kText, operations, 0, &rest) || !rest.empty()) {
    fail("an odd reply of the front to " + command, reply);
    return;
  }
  for (Operation& op : operations) {
    op.session = front_session_;
    op.invoked = invoked;
    op.responded = responded;
    op.clock_low = clock_low;
    op.clock_high = clock_high;
    operations_.push_back(op);
  }
}

void Client::read_all_keys() {
  for (uint32_t key = 0; key < scenario_.keys; ++key) {
    Operation lock;
    lock.kind = Kind::kDelete;
    lock.key = key;
    lock.options = kComparesCas;
    lock.cas_compare = 1;  // no item has it
    Operation read;
    read.key = key;
    read.options = kMeta;
    open_share(&final_session_.framing);
    add_command(final_session_, Form::kMeta, {&lock, 1}, "");
    add_command(final_session_, Form::kMeta, {&read, 1}, "");
    close_share();
    run_shares();
    release_pins();
  }
}

std::vector<Operation> Client::take_operations() { return std::exchange(operations_, {}); }

}  // namespace warpcache::stress
