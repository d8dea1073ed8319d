// SPDX-License-Identifier: Apache-2.0
#include "engine/cpu/cpu_engine.h"

#include <new>
#include <string>
#include <utility>

#include "base/mem.h"
#include "protocol/compose/admin_reply.h"

namespace warpcache::engine {

namespace {

constexpr uint32_t kNoEntry = 0xffffffffu;
static_assert(kGroupSize <= PreparedStores::kGroupMax);

}  // namespace

CpuEngine::CpuEngine(const CpuEngineConfig& config, store::Store& store, AdminHandler& admin)
    : store_(store),
      admin_(admin),
      writer_(kReplyArenaBytes),
      open_entry_(kNoEntry),
      admin_budget_(config.admin_window),
      pin_wait_ms_max_(config.pin_wait_ms_max) {
  WC_ASSERT(store_.register_thread(&thread_) == Status::kOk);
  context_.store = store.ref();
  context_.thread = &thread_;
  context_.counters = &counters_;
  context_.item_size_max = config.item_size_max;
  context_.cas_enabled = config.cas_enabled;
  context_.copied_value_max = kHeapValueMax;
}

CpuEngine::~CpuEngine() { store_.unregister_thread(&thread_); }

uint8_t* CpuEngine::input_memory(uint32_t bytes) {
  input_ = std::make_unique_for_overwrite<uint8_t[]>(bytes);
  return input_.get();
}

void CpuEngine::submit(Batch* batch) {
  WC_ASSERT(done_ == nullptr);
  writer_.start(&batch->spans);
  context_.input = batch->input;
  context_.clock = context_.store.clock();
  wants_keys_ = packets_ ? wants_keys_of_burst_ : admin_.wants_keys();
  admin_budget_.begin_batch();
  heap_bytes_ = 0;
  copied_before_bytes_ = copied_before_bytes_ / 2 + std::exchange(copied_bytes_, 0);
  datagrams_copied_bytes_ = 0;
  batch->stream_not_reached = false;
  for (BatchEntry& entry : batch->entries) {
    entry.frames_done = entry.first_span = entry.span_count = 0;
    entry.long_reply = nullptr;
    entry.waits = false;
  }
  context_.store.enter_batch(thread_);
  run_groups(*batch);
  context_.store.leave_batch(thread_);
  done_ = batch;
}

Batch* CpuEngine::poll() { return std::exchange(done_, nullptr); }

void CpuEngine::release(uint32_t pin) { context_.store.unpin(pin); }

Status CpuEngine::reserve(uint8_t key_size, uint32_t body_size, uint32_t* id) {
  return store_.reserve(key_size, body_size, id, &thread_);
}

MutableBytes CpuEngine::reservation_window(uint32_t id, uint32_t received, uint32_t after) {
  return store_.reservation_window(id, received + after);
}

void CpuEngine::abandon(uint32_t id) { store_.abandon_reservation(id); }

std::string CpuEngine::open_packets(const PacketSettings& settings) {
  const protocol::FrameLimits limits = {context_.item_size_max, UINT32_MAX, context_.cas_enabled,
                                        settings.protocol};
  packets_.emplace(limits, settings.udp_port, MutableBytes{});
  // The fast path reads text requests.
  if (settings.protocol != protocol::kProtocolBinary) {
    single_key_.emplace(limits, settings.udp_port);
  }
  return "";
}

uint8_t* CpuEngine::packet_memory(uint64_t bytes) {
  return packet_memory_.emplace_back(std::make_unique_for_overwrite<uint8_t[]>(bytes)).get();
}

void CpuEngine::submit_packets(net::PacketBurst* burst) {
  WC_ASSERT(packets_done_ == nullptr);
  burst->replies_dropped = 0;
  wants_keys_of_burst_ = admin_.wants_keys();
  if (!single_key_ || wants_keys_of_burst_) {
    packets_->run_all(*this, *burst);
  } else {
    context_.clock = context_.store.clock();
    single_key_->run(context_, *burst, *this, *packets_);
  }
  packets_done_ = burst;
}

net::PacketBurst* CpuEngine::poll_packets() { return std::exchange(packets_done_, nullptr); }

void CpuEngine::run_groups(Batch& batch) {
  open_entry_ = kNoEntry;
  uint32_t next_frame = 0;
  while (next_frame < batch.frames.size()) {
    const uint32_t count = fill_group(batch, next_frame);
    if (count == 0) break;
    for (uint32_t i = 0; i < count; ++i) request::locate(context_, group_[i].state);
    sets_.prepare(context_);
    run_group(batch, count);
    sets_.drop(context_);
  }
  close_entry(batch);
  if (WC_UNLIKELY(!batch.entries.empty() && batch.entries.back().frames_done == 0)) {
    batch.stream_not_reached = true;
  }
}

// Decodes a group of frames before `end` and moves next_frame past it. kCopiesMuch: streams have
// copied much of stored values, in this batch or lately. A template, so that the loop of usual
// batches has no check of it.
template <bool kCopiesMuch>
__attribute__((flatten)) inline uint32_t CpuEngine::decode_group(const Batch& batch,
                                                                 uint32_t& next_frame,
                                                                 uint32_t end) {
  const protocol::Frame* const all = batch.frames.data();
  const BatchEntry* const entries = batch.entries.data();
  const uint32_t pairs = context_.store.pairs();
  uint32_t last_entry = kNoEntry;
  bool prepares = false;  // sets of that entry
  uint32_t count = 0;
  while (count < kGroupSize && next_frame < end) {
    const protocol::Frame& frame = all[next_frame++];
    Slot& slot = group_[count++];
    protocol::Request& request = slot.state.request;
    slot.entry = frame.entry;
    slot.kind = request::PlainKind::kNone;
    request::decode(context_, frame, pairs, slot.state);
    if (WC_UNLIKELY(request::is_administrative(request.op))) break;
    if (frame.entry != last_entry) {
      const BatchEntry& entry = entries[frame.entry];
      last_entry = frame.entry;
      prepares = entry.authenticated && !wants_keys_;
      const bool first = next_frame == entry.first_frame + 1;
      if (WC_UNLIKELY(entry.reservation != 0) && first) request.bits |= protocol::kReserved;
    }
    slot.kind = request::plain_kind(request);
    if (slot.kind == request::PlainKind::kSet && prepares) sets_.add(count - 1, request);
    // Decoding has rewritten this key in the input, so what comes before it in the group can no
    // longer stay for the next batch.
    if (WC_UNLIKELY((request.bits & protocol::kKeyIsBase64) != 0) &&
        (kCopiesMuch || entries[frame.entry].value_memory_max != 0)) {
      break;
    }
  }
  return count;
}

// Decodes the next group and moves next_frame past it. 0: the batch is done, or its reply space is
// used up. An entry is stopped before its end only here, between groups: the frames of a group are
// always executed once they are decoded, since decoding may rewrite keys in the input. So a group
// ends with an administrative command, which may have to wait for the next batch.
uint32_t CpuEngine::fill_group(Batch& batch, uint32_t& next_frame) {
  const uint32_t frames = static_cast<uint32_t>(batch.frames.size());
  if (next_frame < frames && open_entry_ == batch.frames[next_frame].entry) {
    BatchEntry& entry = batch.entries[open_entry_];
    const bool no_space = !has_space();
    if (entry.datagram && no_space) fail_datagram(batch, entry, bytes_of(kDatagramTooLarge));
    const bool had_its_share = !entry.datagram && entry_reply_bytes_ >= kEntryReplySlice;
    if (entry.close || stopped_ || had_its_share || entry.long_reply != nullptr ||
        entry.frames_done == entry.frame_count) {
      next_frame = entry.first_frame + entry.frame_count;
    }
  }
  if (!has_space()) return 0;
  if (WC_UNLIKELY(copied_bytes_ + copied_before_bytes_ >= kEntryReplySlice)) {
    const uint32_t end = end_before_copy(batch, next_frame);
    return decode_group<true>(batch, next_frame, end);
  }
  return decode_group<false>(batch, next_frame, frames);
}

void CpuEngine::run_group(Batch& batch, uint32_t count) {
  bool plain = open_entry_ != kNoEntry && runs_plainly(batch.entries[open_entry_]);
  for (uint32_t i = 0; i < count;) {
    const Slot& slot = group_[i];
    if (slot.entry != open_entry_) {
      close_entry(batch);
      open_entry(batch, slot.entry);
      plain = runs_plainly(batch.entries[slot.entry]);
    }
    BatchEntry& entry = batch.entries[slot.entry];
    if (WC_LIKELY(plain && slot.kind != request::PlainKind::kNone)) {
      const uint32_t end = answer_plain(i, count);
      entry.frames_done += end - i;
      i = end;
      if (i == count || group_[i].entry != open_entry_) continue;
    }
    run_one(batch, i++, count);
    // run_one() makes an entry plain only by a login, and ends one only by closing or stopping it.
    plain = plain ? !entry.close && !stopped_ : runs_plainly(entry);
  }
}

// The entry's requests run on the store with no rights to check and no watcher to report to.
bool CpuEngine::runs_plainly(const BatchEntry& entry) const {
  return entry.authenticated && !entry.close && !stopped_ && rights_ == nullptr && !wants_keys_;
}

// Runs and answers requests of the open entry from `index` on. Returns the first that is not usual,
// or of another entry: of that nothing took effect. Flattened, because calls are a tenth of its
// instructions.
__attribute__((flatten)) inline uint32_t CpuEngine::answer_plain(uint32_t index, uint32_t count) {
  uint8_t* const start = writer_.cursor();
  uint8_t* out = start;
  for (; index < count && group_[index].entry == open_entry_; ++index) {
    uint8_t* const end = answer_plain_one(group_[index], index, out);
    if (end == nullptr) break;
    out = end;
  }
  writer_.advance(out);
  entry_reply_bytes_ += static_cast<uint32_t>(out - start);
  return index;
}

// Returns the end of the reply, or null.
inline uint8_t* CpuEngine::answer_plain_one(const Slot& slot, uint32_t index, uint8_t* out) {
  using request::PlainKind;
  switch (slot.kind) {
    case PlainKind::kTextGet:
      return request::answer_plain_get<PlainKind::kTextGet>(context_, slot.state, kCopiedValueMax,
                                                            out);
    case PlainKind::kMetaValue:
      return request::answer_plain_get<PlainKind::kMetaValue>(context_, slot.state, kCopiedValueMax,
                                                              out);
    case PlainKind::kMetaGet:
      return request::answer_plain_get<PlainKind::kMetaGet>(context_, slot.state, kCopiedValueMax,
                                                            out);
    case PlainKind::kSet: {
      store::Item* const item = sets_.take(index);
      return item == nullptr ? nullptr : run_prepared_set(slot.state, item, out);
    }
    case PlainKind::kNone:
      break;
  }
  return nullptr;
}

void CpuEngine::run_one(Batch& batch, uint32_t index, uint32_t count) {
  Slot& slot = group_[index];
  BatchEntry& entry = batch.entries[slot.entry];
  if (entry.close || stopped_) return;
  const protocol::Op op = slot.state.request.op;
  if (WC_UNLIKELY(!entry.authenticated)) {
    run_admin(batch, entry, index, count);
  } else if (WC_UNLIKELY(rights_ != nullptr) &&
             !are_enough(*rights_, slot.state.request, batch.input)) {
    deny(entry, slot.state.request);
  } else if (WC_UNLIKELY(request::is_administrative(op))) {
    if (!may_run_admin(entry, group_[index].state.request)) {
      if (entry.datagram) return fail_datagram(batch, entry, bytes_of(kDatagramBusy));
      stopped_ = true;
      entry.waits = true;
      batch.stream_not_reached = batch.stream_not_reached || entry.frames_done == 0;
      return;
    }
    run_admin(batch, entry, index, count);
  } else if (WC_UNLIKELY(waits_for_share(entry, index, count))) {
    stopped_ = entry.values_wait = true;
    return;
  } else if (WC_UNLIKELY(must_wait(entry, index, count)) ||
             (WC_UNLIKELY(copies_stored(op)) && waits_to_copy(entry, index, count))) {
    stopped_ = true;
    batch.stream_not_reached = batch.stream_not_reached || entry.frames_done == 0;
    return;
  } else {
    if (WC_UNLIKELY(copies_stored(op)) && may_not_copy(entry)) {
      stopped_ = true;
      return fail_datagram(batch, entry, bytes_of(kDatagramCopies));
    }
    run_on_store(entry, index, count);
  }
  ++entry.frames_done;
  if (WC_UNLIKELY(op == protocol::Op::kQuit)) entry.close = true;
}

// --access does not allow it.
void CpuEngine::deny(const BatchEntry& entry, const protocol::Request& request) {
  admin_.denied();
  if ((request.bits & protocol::kReserved) != 0) store_.abandon_reservation(entry.reservation);
  uint8_t* const start = writer_.cursor();
  uint8_t* const end = compose_denial(request, context_.input, start);
  writer_.advance(end);
  entry_reply_bytes_ += static_cast<uint32_t>(end - start);
}

void CpuEngine::run_on_store(BatchEntry& entry, uint32_t index, uint32_t count) {
  request::RequestState& state = group_[index].state;
  if (store::Item* const item = sets_.take(index); item != nullptr) {
    uint8_t* const start = writer_.cursor();
    uint8_t* const end = run_prepared_set(state, item, start);
    writer_.advance(end);
    entry_reply_bytes_ += static_cast<uint32_t>(end - start);
    return;
  }
  context_.reservation = (state.request.bits & protocol::kReserved) != 0 ? entry.reservation : 0;
  protocol::Result result;
  request::KeyBefore before;
  if (WC_UNLIKELY(wants_keys_)) before = look_before(state);
  execute(state, index, count, result);
  answer(entry, state, result);
  if (WC_UNLIKELY(copies_stored(state.request.op)))
    count_copied(entry, bytes_copied(state, result));
  if (context_.reservation != 0) store_.abandon_reservation(context_.reservation);
  if (WC_UNLIKELY(wants_keys_)) show_request(entry, state, result, before);
}

// Returns the end of the reply.
inline uint8_t* CpuEngine::run_prepared_set(const request::RequestState& state, store::Item* item,
                                            uint8_t* out) {
  const protocol::Request& request = state.request;
  const uint32_t value_size = item->value_size;
  const uint64_t cas = request::publish_prepared_set(context_, state, item);
  if (WC_LIKELY(request.protocol == protocol::Protocol::kText)) {
    return (request.bits & protocol::kNoReply) != 0 ? out : put(out, "STORED\r\n");
  }
  protocol::Result result = {};
  result.outcome = protocol::Outcome::kStored;
  result.cas = cas;
  result.value_size = value_size;
  return request::emit(context_, state, result, out);
}

// A base64 key has been decoded, and would be decoded again if it waited.
bool CpuEngine::may_run_admin(const BatchEntry& entry, const protocol::Request& request) {
  if ((request.bits & protocol::kKeyIsBase64) != 0) return true;
  return admin_budget_.allows(entry.datagram, entry_admin_, AdminBudget::Clock::now());
}

// No epoch is held between requests, so an administrative command may wait for the end of batches.
void CpuEngine::run_admin(Batch& batch, BatchEntry& entry, uint32_t index, uint32_t count) {
  const protocol::Request& request = group_[index].state.request;
  sets_.drop(context_);
  context_.store.leave_batch(thread_);
  if (request.op != protocol::Op::kQuit || !entry.authenticated) {
    try {
      std::string text;
      if (entry.authenticated) {
        ++entry_admin_;
        admin_budget_.count(entry.datagram);
        admin_.run(request, batch.input, entry, text);
      } else {
        admin_.authenticate(request, batch.input, entry, text);
        if (entry.user != 0) rights_ = admin_.rights_of(entry.user);
      }
      entry_reply_bytes_ += static_cast<uint32_t>(text.size());
      writer_.add_text(std::move(text));
    } catch (const std::bad_alloc&) {
      drop_long_reply(entry);
      refuse_for_memory(request);
    }
  }
  if (entry.frames_done == 0 && entry.reservation != 0)
    store_.abandon_reservation(entry.reservation);
  context_.clock = context_.store.clock();
  wants_keys_ = admin_.wants_keys();
  context_.store.enter_batch(thread_);
  drop_hints(index + 1, count);
}

// The text of a reply grows with what is stored, and the system may refuse the memory for it. The
// error needs none.
void CpuEngine::refuse_for_memory(const protocol::Request& request) {
  protocol::reply_error(request, Status::kOutOfMemory, [this](Bytes bytes) { write(bytes); });
}

void CpuEngine::write(Bytes bytes) {
  mem_copy(writer_.cursor(), bytes.data, bytes.size);
  writer_.advance(writer_.cursor() + bytes.size);
}

void CpuEngine::execute(request::RequestState& state, uint32_t index, uint32_t count,
                        protocol::Result& result) {
  for (uint32_t round = 0; request::execute(context_, state, result) == Status::kDeferred;
       ++round) {
    sets_.drop(context_);
    context_.store.leave_batch(thread_);
    const Status reclaimed =
        state.bytes_wanted == 0 ? Status::kOk : store_.reclaim(state.bytes_wanted);
    context_.store.enter_batch(thread_);
    drop_hints(index, count);
    context_.out_of_memory = reclaimed != Status::kOk || round >= kReclaimRoundsMax;
  }
  context_.out_of_memory = false;
}

// Located addresses are invalid once the epoch was left: the memory may be reused.
void CpuEngine::drop_hints(uint32_t from, uint32_t count) {
  for (uint32_t i = from; i < count; ++i) group_[i].state.hint = {};
}

void CpuEngine::answer(BatchEntry& entry, const request::RequestState& state,
                       protocol::Result& result) {
  const bool large =
      result.value_size > kCopiedValueMax && protocol::reply_carries_value(state.request, result);
  if (WC_UNLIKELY(large)) return answer_pinned(entry, state, result);
  answer_copied(state, result);
}

void CpuEngine::answer_copied(const request::RequestState& state, const protocol::Result& result) {
  uint8_t* start = writer_.cursor();
  uint8_t* end = request::emit(context_, state, result, start);
  WC_DASSERT(static_cast<uint64_t>(end - start) <= request::size(state, result));
  writer_.advance(end);
  entry_reply_bytes_ += static_cast<uint32_t>(end - start);
}

// There is reply space for a group.
bool CpuEngine::has_space() const {
  return writer_.has_space(kGroupReplyMax) && heap_bytes_ < kBatchHeapBytesMax;
}

// The request at `index` reads a value that can be neither pinned, since too much is, nor copied in
// this batch, since others used up the bytes for copies or the value is too long. A value that is
// too long waits until other clients have read theirs, but for a limited time, since some never do.
// A datagram does not wait. An entry with a base64 key decoded in this group does not wait either,
// because a frame that waits is decoded again.
bool CpuEngine::must_wait(const BatchEntry& entry, uint32_t index, uint32_t count) {
  const request::RequestState& state = group_[index].state;
  if (WC_LIKELY(store::slot_lines(state.hint.slot) < store::kSlotLinesMax)) return false;
  if (state.request.op != protocol::Op::kGet || !context_.store.pins_are_exhausted()) return false;
  if (entry.datagram || !may_wait(index, count)) return false;
  const store::Item& item = *context_.store.core.item_in(state.hint.slot);
  if (item.value_size <= kHeapValueMax) return heap_bytes_ >= kBatchHeapBytesMax;
  return !waited_too_long();
}

// No later request of the entry in the group has a key that has been decoded.
bool CpuEngine::may_wait(uint32_t index, uint32_t count) const {
  for (uint32_t i = index; i < count && group_[i].entry == open_entry_; ++i) {
    if ((group_[i].state.request.bits & protocol::kKeyIsBase64) != 0) return false;
  }
  return true;
}

// A pin of the item would exceed what the entry's client may hold. The first value of a reply
// counts by its own size, so that one as large as the limit can be read whatever the segments are.
bool CpuEngine::exceeds_share(const BatchEntry& entry, const store::Item& item) const {
  if (WC_LIKELY(entry.value_memory_max == 0)) return false;
  if (entry_value_memory_ == 0) return item.value_size > entry.value_memory_max;
  return entry_value_memory_ + context_.store.pinned_by(item) > entry.value_memory_max;
}

// The request at `index` reads a value that would exceed the share of the entry's client, but not
// any more when the client has taken those before it: the next batch comes then. The hint would not
// do: a request before it in the group may have stored the value.
bool CpuEngine::waits_for_share(const BatchEntry& entry, uint32_t index, uint32_t count) const {
  if (WC_LIKELY(entry.value_memory_max == 0 || entry_value_memory_ == 0)) return false;
  const request::RequestState& state = group_[index].state;
  if (state.request.op != protocol::Op::kGet) return false;
  const store::Found found =
      context_.store.find(state.request.hash, context_.key(state.request), state.hint);
  return found && found.item->value_size > kInlineValueMax && exceeds_share(entry, *found.item) &&
         may_wait(index, count);
}

bool CpuEngine::waited_too_long() {
  const auto now = std::chrono::steady_clock::now();
  if (!std::exchange(pins_refused_, true)) refused_since_ = now;
  return now - refused_since_ >= std::chrono::milliseconds(pin_wait_ms_max_);
}

// The last piece has the pin: it is released when that piece has been sent.
void CpuEngine::answer_pinned(BatchEntry& entry, const request::RequestState& state,
                              protocol::Result& result) {
  uint32_t pin = state.pin;
  if (WC_UNLIKELY(exceeds_share(entry, *state.item))) {
    if (pin != 0) context_.store.unpin(pin);
    return answer_over_share(entry, state, result);
  }
  if (pin == 0) {
    const bool may = result.value_size <= kInlineValueMax;
    pin = context_.store.pin(*state.item, may ? store::PinNeed::kMay : store::PinNeed::kMust);
  }
  if (pin == 0) return answer_unpinned(entry, state, result);
  if (result.value_size > kHeapValueMax) pins_refused_ = false;
  entry_value_memory_ += context_.store.pinned_by(*state.item);
  writer_.advance(protocol::compose_head(state.request, result, context_.input, writer_.cursor()));
  store::ValuePieces pieces = context_.store.pieces(*state.item);
  uint32_t left = result.value_size;
  for (Bytes piece = pieces.first(); !piece.empty(); piece = pieces.next()) {
    left -= static_cast<uint32_t>(piece.size);
    writer_.add_pinned(piece.data, static_cast<uint32_t>(piece.size),
                       left == 0 ? pin : kPinFollows);
  }
  writer_.advance(protocol::compose_tail(state.request, result, context_.input, writer_.cursor()));
  entry_reply_bytes_ += result.value_size;
}

// If too much is pinned, the value is copied. If it is too long for that, and waiting has not
// helped, the answer is a miss: an error between the values of a multiget would confuse clients.
void CpuEngine::answer_unpinned(BatchEntry& entry, const request::RequestState& state,
                                protocol::Result& result) {
  if (result.value_size <= kInlineValueMax) return answer_copied(state, result);
  if (result.value_size <= kHeapValueMax) return answer_from_heap(entry, state, result);
  counters_.add(request::Counter::kLargeMissed);
  result = {};
  result.outcome = protocol::Outcome::kMiss;
  answer_copied(state, result);
}

// The value would exceed what the client may hold, and cannot wait: it is longer than that alone,
// or a base64 key has been decoded. A copy counts as unsent output. Between the
// values of a multiget the answer is a miss, as above.
void CpuEngine::answer_over_share(BatchEntry& entry, const request::RequestState& state,
                                  protocol::Result& result) {
  if (result.value_size <= kInlineValueMax) return answer_copied(state, result);
  const bool fits = result.value_size <= entry.value_memory_max;
  if (fits && result.value_size <= kHeapValueMax && heap_bytes_ < kBatchHeapBytesMax) {
    return answer_from_heap(entry, state, result);
  }
  const protocol::Request& request = state.request;
  const bool between =
      request.protocol == protocol::Protocol::kText && (request.bits & protocol::kLastKey) == 0;
  ++entry.values_refused;
  result = {};
  result.outcome = between ? protocol::Outcome::kMiss : protocol::Outcome::kError;
  result.status = Status::kOverShare;
  answer_copied(state, result);
}

// If the system refuses the memory for the copy, the connection is closed: the request may have
// changed the item, so a miss would be wrong.
void CpuEngine::answer_from_heap(BatchEntry& entry, const request::RequestState& state,
                                 const protocol::Result& result) {
  try {
    std::string value;
    value.reserve(result.value_size);
    store::ValuePieces pieces = context_.store.pieces(*state.item);
    for (Bytes piece = pieces.first(); !piece.empty(); piece = pieces.next()) {
      value.append(reinterpret_cast<const char*>(piece.data), piece.size);
    }
    writer_.advance(
        protocol::compose_head(state.request, result, context_.input, writer_.cursor()));
    writer_.add_text(std::move(value));
    writer_.advance(
        protocol::compose_tail(state.request, result, context_.input, writer_.cursor()));
  } catch (const std::bad_alloc&) {
    entry.close = true;
  }
  entry_reply_bytes_ += result.value_size;
  heap_bytes_ += result.value_size;
}

void CpuEngine::open_entry(Batch& batch, uint32_t entry) {
  open_entry_ = entry;
  entry_reply_bytes_ = 0;
  entry_value_memory_ = 0;
  entry_admin_ = 0;
  stopped_ = false;
  const uint16_t user = batch.entries[entry].user;
  if (WC_UNLIKELY(user != 0 || rights_ != nullptr)) {
    rights_ = user == 0 ? nullptr : admin_.rights_of(user);
  }
  batch.entries[entry].first_span = writer_.span_count();
  entry_start_ = writer_.cursor();
}

void CpuEngine::close_entry(Batch& batch) {
  if (open_entry_ == kNoEntry) return;
  writer_.cut();
  BatchEntry& entry = batch.entries[open_entry_];
  entry.span_count = writer_.span_count() - entry.first_span;
  open_entry_ = kNoEntry;
}

// The replies of a datagram cannot be split over batches: the first one contains the number of
// datagrams. So the error is the whole answer.
void CpuEngine::fail_datagram(Batch& batch, BatchEntry& entry, Bytes error) {
  writer_.cut();
  for (uint32_t i = entry.first_span; i < writer_.span_count(); ++i) {
    const uint32_t pin = batch.spans[i].pin;
    if (pin != 0 && pin != kPinFollows) release(pin);
  }
  writer_.rewind(entry.first_span, entry_start_);
  write(error);
  entry.frames_done = entry.frame_count;
}

}  // namespace warpcache::engine
