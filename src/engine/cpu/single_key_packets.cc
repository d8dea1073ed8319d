// SPDX-License-Identifier: Apache-2.0
#include "engine/cpu/single_key_packets.h"

#include <algorithm>
#include <utility>

#include "base/mem.h"
#include "protocol/framing/item_size.h"
#include "request/write.h"

namespace warpcache::engine {

namespace {

using net::PacketResult;

// Frames whose lines are fetched before they are parsed.
constexpr uint32_t kFramesAhead = 8;
constexpr uint32_t kLine = 64;  // bytes

// Another core has written the frame, and has read the last reply that lay after it.
void prefetch_frame(const net::PacketBurst& burst, uint32_t index) {
  if (index >= burst.count) return;
  const MutableBytes frame = burst.frame(index);
  prefetch(frame.data);
  if (burst.frame_room == 0) return prefetch(frame.data + kLine);
  const uint32_t reply = net::arena_bytes(static_cast<uint32_t>(frame.size));
  prefetch_to_write(frame.data + reply);
  prefetch_to_write(frame.data + reply + kLine);
}

}  // namespace

SingleKeyPackets::SingleKeyPackets(const protocol::FrameLimits& limits, uint16_t udp_port)
    : limits_(limits), udp_port_(udp_port) {
  others_.reserve(kEpochPackets);  // while the server runs, the system may refuse memory
}

__attribute__((always_inline)) inline uint8_t* SingleKeyPackets::space_for(
    const net::PacketBurst& burst, const Pending& pending, uint32_t bytes) const {
  if (net::fits_beside(pending.frame_bytes, bytes, burst.frame_room)) {
    return pending.frame + net::arena_bytes(pending.frame_bytes);
  }
  const bool fits = burst.reply_bytes - reply_used_ >= net::arena_bytes(bytes);
  return fits ? burst.replies + reply_used_ : nullptr;
}

__attribute__((always_inline)) inline void SingleKeyPackets::take_space(net::PacketBurst& burst,
                                                                        const Pending& pending,
                                                                        uint8_t* reply,
                                                                        uint32_t bytes) {
  const bool is_beside = reply != burst.replies + reply_used_;  // in the space after the request
  if (is_beside) {
    const uint32_t offset = net::arena_bytes(pending.frame_bytes);
    burst.results[pending.index] = PacketResult::done_beside(offset, bytes);
    return;
  }
  burst.results[pending.index] = PacketResult::done(reply_used_, bytes);
  reply_used_ += net::arena_bytes(bytes);
}

bool SingleKeyPackets::parse(MutableBytes frame, Pending& pending) const {
  namespace wide = protocol::wide;
  const auto size = static_cast<uint32_t>(frame.size);
  pending.frame = frame.data;
  pending.frame_bytes = size;
  const wide::Start start = wide::parse_start(frame.data, size, udp_port_);
  pending.is_set = start.verb != wide::kGetVerb;
  if (!pending.is_set) {
    pending.get = wide::parse_get(frame.data, start);
    return pending.get.key_size != 0;
  }
  if (start.verb != wide::kSetVerb) return false;
  pending.set = wide::parse_set(frame.data, start);
  return pending.set.key_size != 0 &&
         protocol::item_fits(limits_, pending.set.key_size, pending.set.client_flags,
                             pending.set.value_size);
}

bool SingleKeyPackets::answer_get(const request::Context& context, net::PacketBurst& burst,
                                  const Pending& pending) {
  namespace wide = protocol::wide;
  const protocol::SingleKeyGet& get = pending.get;
  const store::Found found = context.store.find(
      pending.hash, {pending.frame + protocol::kSingleKeyOffset, get.key_size}, pending.hint);
  const auto reply_with = [&](const store::Item& item) {
    if (item.value_size > protocol::kUdpPayloadMax) return false;
    const wide::FlagsAndSize numbers(item.client_flags, item.value_size);
    const uint32_t size = wide::hit_size(get, numbers, item.value_size);
    if (size > protocol::kSingleKeyReplyMax) return false;
    uint8_t* const reply = space_for(burst, pending, size);
    if (reply == nullptr) return false;
    const Bytes value = {item.value_data(), item.value_size};
    wide::put_hit(pending.frame, get, numbers, value, size, reply);
    take_space(burst, pending, reply, size);
    return true;
  };
  uint8_t* const miss = found ? nullptr : space_for(burst, pending, net::kEthernetFrameMin);
  if (!found && miss == nullptr) return false;
  if (request::read_plain(context, found, reply_with) == request::PlainRead::kOther) return false;
  if (found) return true;
  wide::put_miss(pending.frame, get, miss);
  take_space(burst, pending, miss, net::kEthernetFrameMin);
  return true;
}

bool SingleKeyPackets::answer_set(const request::Context& context, net::PacketBurst& burst,
                                  const Pending& pending) {
  uint8_t* const reply = space_for(burst, pending, net::kEthernetFrameMin);
  if (reply == nullptr) return false;
  const protocol::SingleKeySet& set = pending.set;
  store::Allocation allocation;
  const Status status = context.store.allocate(*context.thread, static_cast<uint8_t>(set.key_size),
                                               set.value_size, 0, allocation);
  if (status != Status::kOk) return false;
  const Bytes key = pending.key();
  mem_copy_short(allocation.item->key_data(), key.data, key.size);
  context.store.write_value(*allocation.item, 0,
                            {pending.frame + set.value_offset, set.value_size});
  request::publish_plain_set<store::PlainMemory>(context, pending.hash, key, set.client_flags,
                                                 allocation);
  context.counters->add(request::Counter::kCmdSet);
  protocol::wide::put_stored(pending.frame, set, reply);
  take_space(burst, pending, reply, net::kEthernetFrameMin);
  return true;
}

void SingleKeyPackets::run(const request::Context& context, net::PacketBurst& burst, Engine& engine,
                           HostPackets& general) {
  Job job = {context, burst, engine, general};
  reply_used_ = 0;
  for (uint32_t i = 0; i < kFramesAhead; ++i) prefetch_frame(burst, i);
  for (uint32_t begin = 0; begin < burst.count; begin += kEpochPackets) {
    context.store.enter_batch(*context.thread);
    run_part(job, begin, std::min(burst.count, begin + kEpochPackets));
    context.store.leave_batch(*context.thread);
  }
}

// Packets [begin, end) of the burst, in one epoch. Each request takes its next step when kDistance
// more have been parsed, so that what the step reads has arrived meanwhile.
void SingleKeyPackets::run_part(Job& job, uint32_t begin, uint32_t end) {
  const store::StoreRef& store = job.context.store;
  const uint32_t pairs = store.pairs();
  parsed_ = 0;
  for (uint32_t index = begin; index < end; ++index) {
    prefetch_frame(job.burst, index + kFramesAhead);
    Pending& request = pending(parsed_);
    if (!parse(job.burst.frame(index), request)) {
      finish_pending(job);
      // The ring is empty now, so its first place serves as scratch: the loop parses the frame that
      // ends the run of others again.
      others_.assign(1, index);
      while (index + 1 < end && !parse(job.burst.frame(index + 1), ring_[0])) {
        others_.push_back(++index);
      }
      run_others(job);
      continue;
    }
    request.index = index;
    request.hash = store.hash(request.key());
    request.hint = store.prefetch_tags(request.hash, pairs);
    ++parsed_;
    if (parsed_ > kDistance) prefetch_slot(store, pending(parsed_ - 1 - kDistance));
    if (parsed_ > 2 * kDistance) prefetch_item(store, pending(parsed_ - 1 - 2 * kDistance));
    if (parsed_ > 3 * kDistance) finish(job, parsed_ - 1 - 3 * kDistance);
  }
  finish_pending(job);
}

// The steps that the last requests have not taken yet.
void SingleKeyPackets::finish_pending(Job& job) {
  const store::StoreRef& store = job.context.store;
  const auto from = [this](uint32_t steps) {
    return parsed_ > steps * kDistance ? parsed_ - steps * kDistance : 0;
  };
  for (uint32_t n = from(1); n < parsed_; ++n) prefetch_slot(store, pending(n));
  for (uint32_t n = from(2); n < parsed_; ++n) prefetch_item(store, pending(n));
  for (uint32_t n = from(3); n < parsed_; ++n) finish(job, n);
  parsed_ = 0;
}

// The last step of a request. Hints of later ones are invalid once the epoch was left.
void SingleKeyPackets::finish(Job& job, uint32_t number) {
  const Pending& request = pending(number);
  const bool done = request.is_set ? answer_set(job.context, job.burst, request)
                                   : answer_get(job.context, job.burst, request);
  if (done) return;
  others_.assign(1, request.index);
  run_others(job);
  for (uint32_t n = number + 1; n < parsed_; ++n) pending(n).hint.slot = 0;
}

// Runs others_ on the general path.
void SingleKeyPackets::run_others(Job& job) {
  job.context.store.leave_batch(*job.context.thread);
  reply_used_ = job.general.run(job.engine, job.burst, others_, reply_used_);
  job.context.store.enter_batch(*job.context.thread);
}

}  // namespace warpcache::engine
