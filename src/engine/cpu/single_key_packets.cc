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

bool SingleKeyPackets::has_space(const net::PacketBurst& burst, const Pending& pending,
                                 uint32_t bytes) const {
  return net::fits_beside(pending.frame_bytes, bytes, burst.frame_room) ||
         burst.reply_bytes - reply_used_ >= net::arena_bytes(bytes);
}

uint8_t* SingleKeyPackets::take_space(net::PacketBurst& burst, const Pending& pending,
                                      uint32_t bytes) {
  if (net::fits_beside(pending.frame_bytes, bytes, burst.frame_room)) {
    const uint32_t offset = net::arena_bytes(pending.frame_bytes);
    burst.results[pending.index] = PacketResult::done_beside(offset, bytes);
    return pending.frame + offset;
  }
  burst.results[pending.index] = PacketResult::done(reply_used_, bytes);
  return burst.replies + std::exchange(reply_used_, reply_used_ + net::arena_bytes(bytes));
}

bool SingleKeyPackets::parse(MutableBytes frame, Pending& pending) const {
  if (reinterpret_cast<uintptr_t>(frame.data) % 4 != 0) return false;
  const auto size = static_cast<uint32_t>(frame.size);
  pending.frame = frame.data;
  pending.frame_bytes = size;
  pending.get = protocol::parse_single_key_get(frame.data, size, udp_port_);
  pending.is_set = pending.get.key_size == 0;
  if (!pending.is_set) return true;
  pending.set = protocol::parse_single_key_set(frame.data, size, udp_port_);
  return pending.set.key_size != 0 &&
         protocol::item_fits(limits_, pending.set.key_size, pending.set.client_flags,
                             pending.set.value_size);
}

bool SingleKeyPackets::answer(const request::Context& context, net::PacketBurst& burst,
                              const Pending& pending) {
  return pending.is_set ? answer_set(context, burst, pending) : answer_get(context, burst, pending);
}

bool SingleKeyPackets::answer_get(const request::Context& context, net::PacketBurst& burst,
                                  const Pending& pending) {
  if (!has_space(burst, pending, net::kEthernetFrameMin)) return false;
  const store::Found found = context.store.find(pending.hash, pending.key(), pending.hint);
  const protocol::SingleKeyGet& get = pending.get;
  uint32_t size = 0;
  const auto fits = [&](const store::Item& item) {
    if (item.value_size > protocol::kUdpPayloadMax) return false;
    size = protocol::single_key_hit_size(get, item.client_flags, item.value_size);
    return size <= protocol::kSingleKeyReplyMax && has_space(burst, pending, size);
  };
  switch (request::read_plain(context, found, fits)) {
    case request::PlainRead::kOther:
      return false;
    case request::PlainRead::kMiss:
      (void)protocol::compose_single_key_miss(pending.frame, get,
                                              take_space(burst, pending, net::kEthernetFrameMin));
      return true;
    case request::PlainRead::kHit:
      break;
  }
  const store::Item& item = *found.item;
  uint8_t* const out = take_space(burst, pending, size);
  uint8_t* const value = protocol::compose_single_key_hit(pending.frame, get, item.client_flags,
                                                          item.value_size, size, out);
  mem_copy(value, item.key_data() + item.key_size, item.value_size);
  protocol::finish_single_key_hit(get, size, out);
  return true;
}

bool SingleKeyPackets::answer_set(const request::Context& context, net::PacketBurst& burst,
                                  const Pending& pending) {
  if (!has_space(burst, pending, net::kEthernetFrameMin)) return false;
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
  (void)protocol::compose_single_key_stored(pending.frame, set,
                                            take_space(burst, pending, net::kEthernetFrameMin));
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
  parsed_ = 0;
  for (uint32_t index = begin; index < end; ++index) {
    prefetch_frame(job.burst, index + kFramesAhead);
    Pending& request = pending(parsed_);
    if (!parse(job.burst.frame(index), request)) {
      finish_pending(job);
      others_.assign(1, index);
      while (index + 1 < end && !parse(job.burst.frame(index + 1), ring_[0])) {
        others_.push_back(++index);
      }
      run_others(job);
      continue;
    }
    request.index = index;
    request.hash = store.hash(request.key());
    store.prefetch_tags(request.hash);
    ++parsed_;
    if (parsed_ > kDistance) store.prefetch_slot(pending(parsed_ - 1 - kDistance).hash);
    if (parsed_ > 2 * kDistance) probe(store, parsed_ - 1 - 2 * kDistance);
    if (parsed_ > 3 * kDistance) finish(job, parsed_ - 1 - 3 * kDistance);
  }
  finish_pending(job);
}

void SingleKeyPackets::probe(const store::StoreRef& store, uint32_t number) {
  pending(number).hint = store.probe(pending(number).hash);
}

// The steps that the last requests have not taken yet.
void SingleKeyPackets::finish_pending(Job& job) {
  const store::StoreRef& store = job.context.store;
  const auto from = [this](uint32_t steps) {
    return parsed_ > steps * kDistance ? parsed_ - steps * kDistance : 0;
  };
  for (uint32_t n = from(1); n < parsed_; ++n) store.prefetch_slot(pending(n).hash);
  for (uint32_t n = from(2); n < parsed_; ++n) probe(store, n);
  for (uint32_t n = from(3); n < parsed_; ++n) finish(job, n);
  parsed_ = 0;
}

// The last step of a request. Hints of later ones are invalid once the epoch was left.
void SingleKeyPackets::finish(Job& job, uint32_t number) {
  if (answer(job.context, job.burst, pending(number))) return;
  others_.assign(1, pending(number).index);
  run_others(job);
  for (uint32_t n = number + 1; n < parsed_; ++n) pending(n).hint = {};
}

// Runs others_ on the general path.
void SingleKeyPackets::run_others(Job& job) {
  job.context.store.leave_batch(*job.context.thread);
  reply_used_ = job.general.run(job.engine, job.burst, others_, reply_used_);
  job.context.store.enter_batch(*job.context.thread);
}

}  // namespace warpcache::engine
