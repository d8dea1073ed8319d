// SPDX-License-Identifier: Apache-2.0
//
// The second half: allocate, write, count. Part of get_lines.cuh.
#pragma once

#include "engine/cuda/packets/get_lines.cuh"

namespace warpcache::engine::cuda {

namespace get_lines_detail {

// Writes the bytes of a part that lie in the window, which has only some of them. Called by one
// lane.
class ClippedOut {
 public:
  __device__ ClippedOut(uint8_t* window, const Place& place, uint32_t at)
      : window_(window), place_(place), at_(at) {}

  __device__ void put(uint8_t byte) {
    if (at_ >= place_.begin() && at_ < place_.end) window_[place_.of(at_)] = byte;
    ++at_;
  }
  template <size_t kSize>
  __device__ void put(const char (&text)[kSize]) {
    for (size_t i = 0; i + 1 < kSize; ++i) put(static_cast<uint8_t>(text[i]));
  }
  __device__ void put(const uint8_t* bytes, uint32_t size) {
    for (uint32_t i = 0; i < size; ++i) put(*static_cast<const volatile uint8_t*>(bytes + i));
  }
  __device__ void put_number(uint64_t number) {
    uint8_t digits[kDigitsOfU64Max];
    const uint8_t* const end = format_u64(number, digits);
    for (const uint8_t* at = digits; at != end; ++at) put(*at);
  }
  __device__ void pass(uint32_t bytes) { at_ += bytes; }

 private:
  uint8_t* window_;
  const Place& place_;
  uint32_t at_;
};

// A part of which a frame ends in the middle, without its value. A miss has no `key`.
__device__ __noinline__ inline void put_clipped(uint8_t* window, const Place& place, uint32_t begin,
                                                const Shown& shown, bool is_last) {
  ClippedOut out(window, place, begin);
  if (shown.key != nullptr) {
    out.put("VALUE ");
    out.put(shown.key, shown.key_size);
    out.put(" ");
    out.put_number(shown.client_flags);
    out.put(" ");
    out.put_number(shown.value_size);
    if (shown.with_cas) {
      out.put(" ");
      out.put_number(shown.cas);
    }
    out.put("\r\n");
    out.pass(shown.value_size);
    out.put("\r\n");
  }
  if (is_last) out.put("END\r\n");
}

// The part of a hit before its value; returns where that goes. Called by one lane.
__device__ inline uint8_t* put_head(const Shown& shown, uint8_t* out) {
  using protocol::single_key::digits_of;
  using protocol::single_key::put_number;
  out = put(out, "VALUE ");
  copy_past_l1(out, shown.key, shown.key_size);
  out += shown.key_size;
  *out++ = ' ';
  out = put_number(shown.client_flags, digits_of(shown.client_flags), out);
  *out++ = ' ';
  out = put_number(shown.value_size, digits_of(shown.value_size), out);
  if (shown.with_cas) {
    *out++ = ' ';
    out = format_u64(shown.cas, out);
  }
  return protocol::put_crlf(out);
}

}  // namespace get_lines_detail

// Finds space for the replies of the lanes that are `mine_`: beside the request if it is one frame
// that fits there, else in the arena. Returns whether there is space for this lane's.
__device__ inline bool GetLines::allocate(uint32_t offset) {
  bool fits = false;
  if (mine_) {
    bytes_ = (position(first_key_ + key_count_) - position(first_key_)) &
             get_lines_detail::kPositionMask;
    run_ = run_of(packet_, bytes_);
    beside_ = run_.count == 1 && fits_beside(job_, frame_, run_.last_bytes);
    if (beside_) {
      base_ = beside_word(offset, frame_);
      fits = true;
    } else {
      const uint32_t words = run_.count > 1 ? run_words(run_) : FrameRun::words_of(run_.last_bytes);
      fits = ReplyArena(job_).take(words, 0, &base_);
    }
  }
  if (fits && run_.count > 1) {
    reinterpret_cast<uint4*>(job_.reply_out)[base_] = {run_.count, run_.frame_bytes,
                                                       run_.last_bytes, 0};
  }
  __syncwarp();
  return fits;
}

// Called by one lane.
__device__ inline PacketResult GetLines::result_of() const {
  if (beside_) return PacketResult::done_beside(beside_word(0, frame_) * 16, run_.last_bytes);
  const uint32_t at = base_ * PacketResult::kReplyGranule;
  return run_.count > 1 ? PacketResult::done_run(at) : PacketResult::done(at, run_.last_bytes);
}

// Writes the replies of the lanes that are `mine_`: as many whole frames at a time as fit into the
// window. A packet that must run on the host after all is not `mine_` afterwards.
__device__ inline void GetLines::write() {
  using get_lines_detail::kWindowWords;
  uint32_t next = 0;  // frame
  bool waits = mine_;
  while (__any_sync(gpu::kAllLanes, waits)) {
    const uint32_t left = run_.count - next;
    const uint32_t full = FrameRun::words_of(run_.frame_bytes);
    const uint32_t last = FrameRun::words_of(run_.last_bytes);
    const uint32_t frames = left == 2 && full + last <= kWindowWords ? 2 : 1;
    uint32_t words = left == 1 ? last : full;
    if (frames == 2) words += last;
    // A window is for replies beside their requests, or for those to the arena.
    const bool beside = __any_sync(gpu::kAllLanes, waits && beside_);
    const bool may = waits && beside_ == beside;
    const gpu::LaneRanges space(may ? words : 0);
    const bool chosen = may && space.end() <= kWindowWords;
    const uint32_t total = __reduce_max_sync(gpu::kAllLanes, chosen ? space.end() : 0);
    Place place = {};
    if (chosen) {
      const uint32_t end = (next + frames) * protocol::kUdpPayloadMax;
      place = {space.begin() * 16 + headers(), full * 16, next, min(end, bytes_)};
    }
    compose_parts(place, chosen);
    finish_frames(place, frames, chosen);
    const auto* const source = reinterpret_cast<const uint4*>(stage_.window);
    auto* const target = reinterpret_cast<uint4*>(beside ? job_.input : job_.reply_out);
    space.scatter(
        base_ + (run_.count > 1 ? FrameRun::begin_of(next, run_.frame_bytes) : 0), total,
        [source](uint32_t word) { return source[word]; },
        [target](uint32_t at, const uint4& word) { __stcs(target + at, word); });
    __syncwarp();
    if (chosen) next += frames;
    waits = waits && next < run_.count;
  }
}

// The first key, counted as in the group, whose part begins after byte `at` of the reply; the one
// after the last key counts as one. Called by one lane.
__device__ inline uint32_t GetLines::first_after(uint32_t at) const {
  uint32_t low = 0;
  uint32_t high = key_count_;
  while (low < high) {
    const uint32_t middle = (low + high) / 2;
    const uint32_t begin =
        (position(first_key_ + middle) - position(first_key_)) & get_lines_detail::kPositionMask;
    if (begin > at) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return first_key_ + low;
}

// Composes everything that lies in the window except the headers of frames. `place`: of this lane's
// packet, if it has frames there (`mine`).
__device__ inline void GetLines::compose_parts(const Place& place, bool mine) {
  using namespace get_lines_detail;
  uint32_t from = 0;
  uint32_t to = 0;
  if (mine) {
    from = first_after(place.begin()) - 1;
    to = first_after(place.end - 1);
  }
  const gpu::LaneRanges keys(to - from);
  uint32_t broken = 0;
  for (uint32_t first = 0; first < keys.total(); first += gpu::kWarpSize) {
    const uint32_t at = first + gpu::lane_id();
    const uint32_t owner = keys.owner_of(at);
    const uint32_t number = __shfl_sync(gpu::kAllLanes, from, owner) + at -
                            __shfl_sync(gpu::kAllLanes, keys.begin(), owner);
    const uint32_t first_key = __shfl_sync(gpu::kAllLanes, first_key_, owner);
    const uint32_t end_key = first_key + __shfl_sync(gpu::kAllLanes, key_count_, owner);
    const bool with_cas = __shfl_sync(gpu::kAllLanes, uint32_t{with_cas_}, owner) != 0;
    const Place where = place.from_lane(static_cast<int>(owner));
    bool here = at < keys.total();
    Shown shown = {};
    uint32_t begin = 0;
    uint32_t bytes = 0;
    if (here) {
      begin = (position(number) - position(first_key)) & kPositionMask;
      bytes = (position(number + 1) - position(number)) & kPositionMask;
      here = bytes != 0;
    }
    const bool is_last = number + 1 == end_key;
    if (here && load_shown(number, with_cas, shown) && with_cas &&
        part_bytes(shown, is_last) != bytes) {
      broken |= 1u << owner;  // its CAS id has changed, and is longer or shorter now
      here = false;
    }
    __syncwarp();
    const bool is_whole =
        here && begin / protocol::kUdpPayloadMax == (begin + bytes - 1) / protocol::kUdpPayloadMax;
    uint8_t* const out = stage_.window;
    if (is_whole) {
      uint8_t* part = out + where.of(begin);
      if (shown.key != nullptr) {
        part = put_head(shown, part);
        if (shown.value_size <= kLaneValueMax) copy_past_l1(part, shown.value(), shown.value_size);
        part = protocol::put_crlf(part + shown.value_size);
      }
      if (is_last) (void)put(part, "END\r\n");
    }
    if (here && !is_whole) put_clipped(out, where, begin, shown, is_last);
    __syncwarp();
    const bool by_warp =
        here && shown.value_size != 0 && (!is_whole || shown.value_size > kLaneValueMax);
    if (__any_sync(gpu::kAllLanes, by_warp)) copy_value(where, shown, begin, by_warp);
  }
  broken = __reduce_or_sync(gpu::kAllLanes, broken);
  if ((broken >> gpu::lane_id() & 1) != 0) mine_ = false;
  __syncwarp();
}

// Reads what the part of a key shows. False: it is a miss. Called by one lane.
__device__ inline bool GetLines::load_shown(uint32_t number, bool with_cas, Shown& shown) const {
  const uint64_t offset = item_of(number);
  if (offset < get_lines_detail::kMisses) return false;
  const store::Item* const item = core_.item_at(offset * store::kItemGranule);
  const uint4 second =
      past_l1_detail::load_past_l1(reinterpret_cast<const uint8_t*>(item) + sizeof(uint4));
  shown = {item->key_data(), second.w & 0xff, second.y, second.x, with_cas, 0};
  if (with_cas) shown.cas = item->load_cas();
  return true;
}

// Copies the values of the lanes that are `here`, as far as they lie in the window, one after the
// other. `begin`: of the part in its reply.
__device__ inline void GetLines::copy_value(const Place& place, const Shown& shown, uint32_t begin,
                                            bool here) const {
  const uint32_t own_begin = begin + (here ? get_lines_detail::head_bytes(shown) : 0);
  uint32_t owners = __ballot_sync(gpu::kAllLanes, here);
  for (; owners != 0; owners &= owners - 1) {
    const int owner = __ffs(static_cast<int>(owners)) - 1;
    const Place where = place.from_lane(owner);
    const uint8_t* const value = gpu::pointer_of(shown.key + shown.key_size, owner);
    const uint32_t first = __shfl_sync(gpu::kAllLanes, own_begin, owner);
    const uint32_t last = first + __shfl_sync(gpu::kAllLanes, shown.value_size, owner);
    uint32_t at = max(first, where.begin());
    const uint32_t end = min(last, where.end);
    while (at < end) {
      const uint32_t in_frame = protocol::kUdpPayloadMax - at % protocol::kUdpPayloadMax;
      const uint32_t bytes = min(end - at, in_frame);
      gpu::warp_copy(stage_.window + where.of(at), value + (at - first), bytes);
      at += bytes;
    }
  }
  __syncwarp();
}

// Completes the frames in the window: headers, checksums, padding.
__device__ inline void GetLines::finish_frames(const Place& place, uint32_t frames, bool mine) {
  uint32_t first_sum = 0;
  uint32_t second_sum = 0;
  uint32_t owners = __ballot_sync(gpu::kAllLanes, mine && packet_.has_udp_checksum);
  for (; owners != 0; owners &= owners - 1) {
    const int owner = __ffs(static_cast<int>(owners)) - 1;
    const Place where = place.from_lane(owner);
    const uint32_t count = __shfl_sync(gpu::kAllLanes, frames, owner);
    for (uint32_t i = 0; i < count; ++i) {
      const uint32_t begin = (where.frame + i) * protocol::kUdpPayloadMax;
      const uint32_t size = min(where.end - begin, protocol::kUdpPayloadMax);
      const uint32_t sum = get_lines_detail::sum_of_words(stage_.window + where.of(begin), size);
      if (gpu::lane_id() == static_cast<uint32_t>(owner)) (i == 0 ? first_sum : second_sum) = sum;
    }
  }
  if (mine) {
    for (uint32_t i = 0; i < frames; ++i) {
      compose_headers(place, place.frame + i, i == 0 ? first_sum : second_sum);
    }
  }
  __syncwarp();
}

// Writes the headers of frame `number`, whose payload has the checksum's `sum`. Called by one lane.
__device__ inline void GetLines::compose_headers(const Place& place, uint32_t number,
                                                 uint32_t sum) {
  const uint32_t begin = number * protocol::kUdpPayloadMax;
  const uint32_t payload = min(place.end - begin, protocol::kUdpPayloadMax);
  const uint32_t udp_payload = protocol::kUdpHeaderSize + payload;
  uint8_t* const out = stage_.window + place.of(begin) - headers();
  uint8_t* const own_header = out + headers() - protocol::kUdpHeaderSize;
  net::compose_reply_headers(frame_.data, packet_, udp_payload, out);
  protocol::compose_udp_header(
      {request_id_, static_cast<uint16_t>(number), static_cast<uint16_t>(run_.count)}, own_header);
  net::finish_udp_checksum_of_sum(
      packet_, udp_payload, net::checksum_add(sum, own_header, protocol::kUdpHeaderSize), out);
  (void)net::pad_frame(out, headers() + payload);
}

// Counts the keys of the lanes that are `mine_`.
__device__ inline void GetLines::count() {
  using namespace get_lines_detail;
  const gpu::LaneRanges keys(mine_ ? key_count_ : 0);
  uint32_t misses = 0;
  uint32_t expired = 0;
  uint32_t flushed = 0;
  for (uint32_t first = 0; first < keys.total(); first += gpu::kWarpSize) {
    const uint32_t at = first + gpu::lane_id();
    const uint32_t owner = keys.owner_of(at);
    const uint32_t number = __shfl_sync(gpu::kAllLanes, first_key_, owner) + at -
                            __shfl_sync(gpu::kAllLanes, keys.begin(), owner);
    const uint64_t item = at < keys.total() ? item_of(number) : kMisses;
    misses += __popc(__ballot_sync(gpu::kAllLanes, item < kMisses));
    expired += __popc(__ballot_sync(gpu::kAllLanes, item == kExpired));
    flushed += __popc(__ballot_sync(gpu::kAllLanes, item == kFlushed));
  }
  if (gpu::lane_id() != 0 || keys.total() == 0) return;
  request::Counters& counters = tally_.counters;
  counters.add(request::Counter::kCmdGet, keys.total());
  if (misses != keys.total()) counters.add(request::Counter::kGetHits, keys.total() - misses);
  if (misses != 0) counters.add(request::Counter::kGetMisses, misses);
  if (expired != 0) counters.add(request::Counter::kGetExpired, expired);
  if (flushed != 0) counters.add(request::Counter::kGetFlushed, flushed);
}

}  // namespace warpcache::engine::cuda
