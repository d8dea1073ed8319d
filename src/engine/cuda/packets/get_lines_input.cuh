// SPDX-License-Identifier: Apache-2.0
//
// The first half: open, split, look up. Part of get_lines.cuh.
#pragma once

#include "engine/cuda/packets/get_lines.cuh"

namespace warpcache::engine::cuda {

__device__ inline bool GetLines::run(Bytes frame, uint32_t offset, bool here,
                                     PacketResult& result) {
  frame_ = frame;
  bool waits = false;
  if (here) {
    waits = net::parse_packet_headers_without_extensions(frame, job_.udp_port, packet_) ==
                net::PacketVerdict::kRequest &&
            open();
  }
  waits = verify(waits);
  bool settled = false;
  while (__any_sync(gpu::kAllLanes, waits)) {
    used_ = 0;
    mine_ = false;
    uint32_t owners = __ballot_sync(gpu::kAllLanes, waits);
    for (; owners != 0; owners &= owners - 1) {
      const int owner = __ffs(static_cast<int>(owners)) - 1;
      const Split outcome = split(owner);
      if (outcome == Split::kFull) break;
      if (gpu::lane_id() != static_cast<uint32_t>(owner)) continue;
      waits = false;
      mine_ = outcome == Split::kListed;
    }
    __syncwarp();
    if (used_ == 0) continue;
    look_up();
    settled = settled || mine_;
    const bool fits = allocate(offset);
    if (mine_ && !fits) result = PacketResult::not_done(PacketState::kNoReplySpace);
    const bool answered = mine_ && fits;
    mine_ = answered;
    write();
    count();
    if (mine_) {
      result = result_of();
    } else if (answered) {
      result = PacketResult::not_done(PacketState::kHost);
    }
    __syncwarp();
  }
  return settled;
}

// Finds the line. False: the packet is none. Called by one lane.
__device__ inline bool GetLines::open() {
  const Bytes datagram = {frame_.data + packet_.payload_offset, packet_.payload_size};
  protocol::UdpHeader header;
  if (protocol::parse_udp_header(datagram, header) != protocol::UdpVerdict::kRequest) return false;
  request_id_ = header.request_id;
  const Bytes payload = datagram.from(protocol::kUdpHeaderSize);
  const protocol::GetLine line = protocol::open_get_line(payload);
  const auto at = static_cast<uint32_t>(payload.data - input_);
  line_begin_ = at + line.begin;
  line_end_ = at + line.end;
  with_cas_ = line.with_cas;
  return line.end != 0;
}

// Whether the packet of a lane that is `opened` agrees with its UDP checksum.
__device__ inline bool GetLines::verify(bool opened) const {
  bool intact = opened;
  uint32_t owners = __ballot_sync(gpu::kAllLanes, opened && packet_.has_udp_checksum);
  for (; owners != 0; owners &= owners - 1) {
    const int owner = __ffs(static_cast<int>(owners)) - 1;
    const uint8_t* const header = gpu::pointer_of(frame_.data + packet_.l4_offset, owner);
    const uint32_t size = __shfl_sync(
        gpu::kAllLanes, net::kUdpProtocolHeaderSize + uint32_t{packet_.payload_size}, owner);
    const uint32_t sum = get_lines_detail::sum_of_words(header, size);
    if (gpu::lane_id() == static_cast<uint32_t>(owner)) {
      intact = net::udp_is_intact(frame_, packet_, sum);
    }
  }
  return intact;
}

// Lists the keys of a lane's line after those of the group.
__device__ inline GetLines::Split GetLines::split(int owner) {
  using namespace get_lines_detail;
  const uint32_t begin = __shfl_sync(gpu::kAllLanes, line_begin_, owner);
  const uint32_t end = __shfl_sync(gpu::kAllLanes, line_end_, owner);
  KeyBounds& bounds = stage_.bounds;
  __syncwarp();
  uint32_t keys = 0;  // as far as the blocks were read
  uint32_t whole = 0;
  bool is_longer = false;
  constexpr uint32_t kStep = protocol::kGetLineBlock * gpu::kWarpSize;
  const uint32_t first = begin / protocol::kGetLineBlock * protocol::kGetLineBlock;
  for (uint32_t block = first; block < end && keys <= kGetLineKeysMax; block += kStep) {
    const uint32_t at = block + gpu::lane_id() * protocol::kGetLineBlock;
    protocol::KeyMarks marks;
    if (at < end) marks = protocol::mark_keys(input_ + at, input_ + begin, input_ + end);
    is_longer = is_longer || marks.has_newline;
    const uint32_t both = __popc(marks.firsts) | __popc(marks.lasts) << 16;
    const uint32_t to = gpu::warp_sum_to(both);
    const uint32_t before = to - both;
    (void)list(bounds.first, used_ + keys + (before & 0xffff), marks.firsts, at);
    (void)list(bounds.last, used_ + whole + (before >> 16), marks.lasts, at);
    const uint32_t all = gpu::warp_last(to);
    keys += all & 0xffff;
    whole += all >> 16;
  }
  if (__any_sync(gpu::kAllLanes, is_longer) || keys == 0 || keys > kGetLineKeysMax) {
    return Split::kOther;
  }
  if (used_ + keys > kGroupKeys) return Split::kFull;
  __syncwarp();
  bool is_long = false;
  for (uint32_t i = used_ + gpu::lane_id(); i < used_ + keys; i += gpu::kWarpSize) {
    is_long = is_long || uint32_t{bounds.last[i]} - bounds.first[i] >= protocol::kKeySizeMax;
    bounds.owner[i] = static_cast<uint8_t>(owner);
  }
  if (__any_sync(gpu::kAllLanes, is_long)) return Split::kOther;
  if (gpu::lane_id() == static_cast<uint32_t>(owner)) {
    first_key_ = used_;
    key_count_ = keys;
  }
  used_ += keys;
  return Split::kListed;
}

// Writes where the marked bytes of the block at `at` are, from `number` of the group on. Called by
// one lane.
__device__ inline uint32_t GetLines::list(uint16_t* bounds, uint32_t number, uint32_t marks,
                                          uint32_t at) const {
  for (; marks != 0; marks &= marks - 1, ++number) {
    if (number >= get_lines_detail::kGroupKeys) break;
    bounds[number] = static_cast<uint16_t>(at + __ffs(static_cast<int>(marks)) - 1);
  }
  return number;
}

// Looks all keys of the group up. Packets that are for the general path are not `mine_` afterwards.
__device__ inline void GetLines::look_up() {
  using namespace get_lines_detail;
  const KeyBounds& bounds = stage_.bounds;
  uint32_t total = 0;   // bytes of all parts so far
  uint32_t others = 0;  // lanes whose packets are for the general path, as far as this lane knows
  for (uint32_t first = 0; first < used_; first += gpu::kWarpSize) {
    const uint32_t number = first + gpu::lane_id();
    const bool here = number < used_;
    const uint32_t owner = here ? bounds.owner[number] : 0;
    const bool with_cas = __shfl_sync(gpu::kAllLanes, uint32_t{with_cas_}, owner) != 0;
    uint64_t item = kNotThere;
    uint32_t bytes = 0;
    bool other = false;
    if (here) {
      const uint32_t begin = bounds.first[number];
      const Bytes key = {input_ + begin, uint32_t{bounds.last[number]} + 1 - begin};
      const bool is_last = number + 1 == used_ || bounds.owner[number + 1] != owner;
      const uint64_t hash = hash_key(core_.seed, key);
      const PastL1::Found found = find_past_l1(core_, pairs_, hash, key);
      if (found) {
        item = judge(found, with_cas, is_last, bytes, other);
      } else {
        // It may have moved meanwhile.
        other = static_cast<bool>(store::find_key(core_, hash, key));
      }
      if (item < kMisses) bytes = is_last ? 5 : 0;
      if (other) others |= 1u << owner;
    }
    __syncwarp();
    const uint32_t to = gpu::warp_sum_to(bytes);
    if (here) {
      stage_.keys[number] = item << kPositionBits | ((total + to - bytes) & kPositionMask);
    }
    total += gpu::warp_last(to);
  }
  if (gpu::lane_id() == 0) stage_.keys[used_] = total & kPositionMask;
  others = __reduce_or_sync(gpu::kAllLanes, others);
  if ((others >> gpu::lane_id() & 1) != 0) mine_ = false;
  __syncwarp();
}

// What a key's part shows of what was found: the item's offset in granules, or the kind of miss.
// Sets the part's size if it is a hit. `other`: the packet is for the general path. Called by one
// lane.
__device__ inline uint64_t GetLines::judge(const PastL1::Found& found, bool with_cas, bool is_last,
                                           uint32_t& bytes, bool& other) const {
  using namespace get_lines_detail;
  if (found.flush_generation != flush_generation_ && store::is_flushed(core_, *found.item)) {
    return kFlushed;
  }
  Shown shown = {nullptr, found.key_size(), found.client_flags, found.value_size, with_cas, 0};
  uint32_t expiry = found.expiry;
  if (with_cas) {  // a reader that sees a new CAS id sees the new expiry too
    shown.cas = found.item->load_cas();
    expiry = found.item->load_expiry();
  }
  if (store::has_expired(expiry, job_.clock.now)) return kExpired;
  other = found.chained() || found.value_size > kGetLineValueMax;
  if (other) return kNotThere;
  store::record_hit(found, job_.clock.now);
  bytes = part_bytes(shown, is_last);
  return core_.offset_of(found.item) / store::kItemGranule;
}

}  // namespace warpcache::engine::cuda
