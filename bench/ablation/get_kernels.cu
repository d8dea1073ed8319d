// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "ablation/group.cuh"
#include "ablation/kernels.h"
#include "ablation/stage.cuh"

namespace warpcache::ablation {

namespace {

using gpu::kWarpSize;
using gpu::warp_id;

constexpr uint32_t kThreads = 64;    // of a block: two warps; in one variant one helps the other
constexpr uint32_t kBlocksMin = 14;  // of a multiprocessor: a thread has 72 registers

// Words of 16 bytes that a warp's staging buffer needs for `requests`.
__host__ __device__ uint32_t stage_words(uint32_t requests, const StageShape& in,
                                         const StageShape& out) {
  return requests * (in.stride() + out.stride());
}

// Composes the reply for a key that did not fit into its home set (one key in some thousands), with
// one lane. Returns its size; 0: there is none.
__device__ uint32_t serve_spilled(const store::Core& core, const GetBatch& batch,
                                  const uint8_t* frame, uint8_t* out) {
  const protocol::SingleKeyGet request =
      protocol::parse_single_key_get(frame, batch.slot_bytes, batch.udp_port);
  if (request.key_size == 0) return 0;
  const Bytes key = {frame + protocol::kSingleKeyOffset, request.key_size};
  const store::Found found = store::find_key(core, hash_key(core.seed, key), key);
  if (!found) return 0;
  Found quick = header_of(found.item);
  quick.set = found.set;
  quick.way = found.way;
  quick.set_counters = __ldcg(&found.set->counters);
  const uint32_t size =
      reply_size(request, quick, StoreFacts(core), batch.now, batch.reply_slot_bytes);
  if (size == 0) return 0;
  store::record_hit(quick, batch.now);
  compose_alone(request, quick, frame, size, out);
  return size;
}

// Answers the requests that a warp has not answered: up to 32 from `first` on, then `step` further,
// and so on. A separate function at the end, so that none of it is in the loops of the kernels.
// Called by the whole warp; `input` and `reply` are one slot each.
__device__ __noinline__ void serve_rest(const store::Core& core, const GetBatch& batch,
                                        uint32_t first, uint32_t width, uint32_t step,
                                        const StageShape& in, const StageShape& out, uint4* input,
                                        uint4* reply) {
  for (; first < batch.count; first += step) {
    const uint32_t own = first + lane_id();
    const bool here = lane_id() < width && own < batch.count;
    uint32_t left = __ballot_sync(kAllLanes, here && batch.sizes[own] == 0);
    for (; left != 0; left &= left - 1) {
      const uint32_t number = first + store::first_way(left);
      bring_in<kWarpSize>(batch.input + uint64_t{number} * batch.slot_bytes, 1, in, input,
                          lane_id());
      __syncwarp();
      if (lane_id() == 0) {
        batch.sizes[number] = serve_spilled(core, batch, reinterpret_cast<const uint8_t*>(input),
                                            reinterpret_cast<uint8_t*>(reply));
      }
      __syncwarp();
      send<kWarpSize>(batch.replies + uint64_t{number} * batch.reply_slot_bytes, 1, out, reply,
                      lane_id());
      __syncwarp();
    }
  }
}

// --- Some threads for a request

template <uint32_t kLanes>
__global__ void __launch_bounds__(kThreads, kBlocksMin)
    serve_gets(const __grid_constant__ store::Core core, const __grid_constant__ GetBatch batch,
               const __grid_constant__ StageShape in, const __grid_constant__ StageShape out) {
  using Lanes = Group<kLanes>;
  extern __shared__ uint4 shared[];
  uint4* const input = shared + warp_id() * stage_words(Lanes::kCount, in, out);
  uint4* const reply = input + Lanes::kCount * in.stride();
  const auto* const frame = reinterpret_cast<const uint8_t*>(input + Lanes::number() * in.stride());
  auto* const reply_frame = reinterpret_cast<uint8_t*>(reply + Lanes::number() * out.stride());
  const StoreFacts facts(core);
  const uint32_t warps = kThreads / kWarpSize;
  const uint32_t step = gridDim.x * warps * Lanes::kCount;
  const uint32_t begin = (blockIdx.x * warps + warp_id()) * Lanes::kCount;
  bool unanswered = false;  // a request of this lane is not answered
  for (uint32_t first = begin; first < batch.count; first += step) {
    const uint32_t left = batch.count - first;
    const uint32_t slots = left < Lanes::kCount ? left : Lanes::kCount;
    bring_in<kWarpSize>(batch.input + uint64_t{first} * batch.slot_bytes, slots, in, input,
                        lane_id());
    __syncwarp();
    protocol::SingleKeyGet request;
    const bool here = Lanes::number() < slots;
    if (here) request = protocol::parse_single_key_get(frame, batch.slot_bytes, batch.udp_port);
    const Found found = Lanes::find(core, facts.pairs, request, frame);
    const uint32_t size = reply_size(request, found, facts, batch.now, batch.reply_slot_bytes);
    if (size != 0 && Lanes::lane() == 0) store::record_hit(found, batch.now);
    Lanes::compose(request, found, frame, size, reply_frame);
    if (here && Lanes::lane() == 0) {
      batch.sizes[first + Lanes::number()] = size;
      unanswered = unanswered || size == 0;
    }
    send<kWarpSize>(batch.replies + uint64_t{first} * batch.reply_slot_bytes, slots, out, reply,
                    lane_id());
    __syncwarp();
  }
  if (__any_sync(kAllLanes, unanswered)) {
    serve_rest(core, batch, begin, Lanes::kCount, step, in, out, input, reply);
  }
}

// --- A thread and its helper, after section 4.1 of MemcachedGPU (SoCC 2015)

// What main and helper warp exchange, one for each request.
struct Exchange {
  bool headers_right[kWarpSize];
};

// Size of the key in a frame with valid headers and any payload; 0: the headers are not valid.
__device__ uint32_t key_size_of(const uint8_t* frame, uint32_t slot_bytes) {
  using namespace protocol::single_key;
  const uint32_t end = kUdp + big16(word16(frame, kUdp + net::kUdpLengthOffset));
  const bool fits = end >= kKey + 3 && end <= kKey + protocol::kKeySizeMax + 2 && end <= slot_bytes;
  return fits ? end - 2 - kKey : 0;
}

// The part of protocol::parse_single_key_get() that is about the payload.
__device__ protocol::SingleKeyGet parse_command(const uint8_t* frame, uint32_t slot_bytes) {
  using namespace protocol::single_key;
  const uint32_t key_size = key_size_of(frame, slot_bytes);
  if (key_size == 0) return {};
  const Head head = load_head(frame);
  const bool get =
      head.half(kPayload) == ('g' | 'e' << 8) && head.half(kPayload + 2) == ('t' | ' ' << 8);
  const uint32_t end = kKey + key_size;
  if (!get || frame[end] != '\r' || frame[end + 1] != '\n') return {};
  if (!is_one_word(frame, end)) return {};
  if (has_wrong_checksum(head, frame, end + 2 - kUdp)) return {};
  return {key_size, head.half(kUdp + net::kUdpChecksumOffset) != 0};
}

// Writes the part of the reply that does not depend on the item, with lengths of 0. Returns true if
// the headers of the request are valid.
__device__ bool help(const uint8_t* frame, uint32_t slot_bytes, uint32_t room, uint16_t udp_port,
                     uint8_t* out) {
  using namespace protocol::single_key;
  const uint32_t key_size = key_size_of(frame, slot_bytes);
  if (!has_usual_headers(load_head(frame), slot_bytes, udp_port)) return false;
  if (key_size == 0 || kPayload + kHitText + key_size > room) return false;
  put_headers(frame, kIp, out);
  put_value_word(out);
  put_key(frame, key_size, out + kPayload + 6);
  return true;
}

// The rest of the reply.
__device__ void complete(const protocol::SingleKeyGet& request, const Found& found, uint32_t size,
                         uint8_t* out) {
  using namespace protocol::single_key;
  const uint32_t length = big16(size - kIp);
  const uint32_t sum = ~uint32_t{word16(out, kIp + net::kIpv4ChecksumOffset)} & 0xffff;
  put16(out, kIp + net::kIpv4LengthOffset, length);
  put16(out, kIp + net::kIpv4ChecksumOffset, ~uint32_t{net::checksum_fold(sum + length)});
  put16(out, kUdp + net::kUdpLengthOffset, big16(size - kUdp));
  uint8_t* const place = put_around_value(found, out + kPayload + 6 + request.key_size);
  engine::cuda::copy_past_l1(place, found.item->key_data() + request.key_size, found.value_size);
  protocol::finish_single_key_hit(request, size, out);
}

// A block is a main warp, which looks keys up, and a helper warp: barriers of the block are for
// these two.
__global__ void __launch_bounds__(kThreads, kBlocksMin)
    serve_gets_with_helpers(const __grid_constant__ store::Core core,
                            const __grid_constant__ GetBatch batch,
                            const __grid_constant__ StageShape in,
                            const __grid_constant__ StageShape out) {
  static_assert(kThreads == 2 * kWarpSize);
  extern __shared__ uint4 shared[];
  __shared__ Exchange exchange;
  uint4* const input = shared;
  uint4* const reply = input + kWarpSize * in.stride();
  const auto* const frame = reinterpret_cast<const uint8_t*>(input + lane_id() * in.stride());
  auto* const reply_frame = reinterpret_cast<uint8_t*>(reply + lane_id() * out.stride());
  const bool helps = warp_id() == 1;
  const StoreFacts facts(core);
  const uint32_t begin = blockIdx.x * kWarpSize;
  const uint32_t step = gridDim.x * kWarpSize;
  bool unanswered = false;  // a request of this lane is not answered
  for (uint32_t first = begin; first < batch.count; first += step) {
    const uint32_t left = batch.count - first;
    const uint32_t slots = left < kWarpSize ? left : kWarpSize;
    const bool here = lane_id() < slots;
    bring_in<kThreads>(batch.input + uint64_t{first} * batch.slot_bytes, slots, in, input,
                       threadIdx.x);
    __syncthreads();
    protocol::SingleKeyGet request;
    Found found;
    if (helps) {
      exchange.headers_right[lane_id()] =
          here &&
          help(frame, batch.slot_bytes, batch.reply_slot_bytes, batch.udp_port, reply_frame);
    } else {
      if (here) request = parse_command(frame, batch.slot_bytes);
      found = Group<1>::find(core, facts.pairs, request, frame);
    }
    __syncthreads();
    if (!helps && here) {
      uint32_t size = 0;
      if (exchange.headers_right[lane_id()]) {
        size = reply_size(request, found, facts, batch.now, batch.reply_slot_bytes);
      }
      if (size != 0) {
        store::record_hit(found, batch.now);
        complete(request, found, size, reply_frame);
      }
      batch.sizes[first + lane_id()] = size;
      unanswered = unanswered || size == 0;
    }
    __syncthreads();
    send<kThreads>(batch.replies + uint64_t{first} * batch.reply_slot_bytes, slots, out, reply,
                   threadIdx.x);
  }
  __syncthreads();  // the staging buffer is read no more
  if (__any_sync(kAllLanes, unanswered)) {
    serve_rest(core, batch, begin, kWarpSize, step, in, out, input, reply);
  }
}

using Kernel = void (*)(const store::Core, const GetBatch, const StageShape, const StageShape);

// `requests`: the number that a block works on at a time.
Variant<GetBatch> variant_of(const char* experiment, const std::string& name, Kernel kernel,
                             uint32_t requests, const store::Core& core, const GetBatch& shape) {
  const StageShape in(shape.slot_bytes);
  const StageShape out(shape.reply_slot_bytes);
  const uint32_t shared_bytes = 16 * stage_words(requests, in, out);
  const Plan plan = plan_for(kernel, kThreads, shared_bytes, requests);
  const auto launch = [=](const GetBatch& batch, cudaStream_t stream) {
    gpu::start_kernel(kernel, plan.shape_for(batch.count), plan.shared_bytes, stream, core, batch,
                      in, out);
  };
  return {experiment, name, plan.footprint, launch};
}

template <uint32_t kLanes>
Variant<GetBatch> group_variant(const store::Core& core, const GetBatch& shape) {
  return variant_of("threads", std::to_string(kLanes), serve_gets<kLanes>,
                    kThreads / kWarpSize * Group<kLanes>::kCount, core, shape);
}

}  // namespace

std::vector<Variant<GetBatch>> get_variants(const store::Core& core, const GetBatch& shape) {
  if (std::max(shape.slot_bytes, shape.reply_slot_bytes) > kSlotBytesMax) {
    throw std::runtime_error("frames are too large for the stage");
  }
  return {
      group_variant<1>(core, shape),
      group_variant<2>(core, shape),
      group_variant<4>(core, shape),
      group_variant<8>(core, shape),
      group_variant<16>(core, shape),
      group_variant<32>(core, shape),
      variant_of("helpers", "off", serve_gets<1>, kThreads, core, shape),
      variant_of("helpers", "on", serve_gets_with_helpers, kWarpSize, core, shape),
  };
}

}  // namespace warpcache::ablation
