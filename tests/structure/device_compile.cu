// SPDX-License-Identifier: Apache-2.0
//
// Compiled, never run: proves that the host and device headers are fit for a kernel.
// tools/device_compile writes all_headers.h.
#include "all_headers.h"

namespace warpcache {

// A thread frames a stream and runs its requests from frame to reply.
__global__ void serve_streams(request::Context context, wire::FrameLimits limits, Bytes input,
                              wire::FrameState* states, wire::Frame* frames,
                              uint32_t frames_per_stream, uint8_t* out, Status* status) {
  wire::Frame* mine = frames + static_cast<size_t>(threadIdx.x) * frames_per_stream;
  const wire::FrameResult framed =
      wire::frame(states[threadIdx.x], limits, input, 0, threadIdx.x, mine, frames_per_stream);
  for (uint32_t i = 0; i < framed.count; ++i) {
    status[threadIdx.x] = request::process_request(context, mine[i], out);
  }
}

// The stages on their own, as an engine runs them over a batch.
__global__ void run_stages(request::Context context, const wire::Frame* frames,
                           request::RequestState* states, wire::Result* results, uint32_t* sizes,
                           uint8_t* out) {
  const uint32_t i = threadIdx.x;
  request::decode(context, frames[i], states[i]);
  request::locate(context, states[i]);
  if (request::execute(context, states[i], results[i]) != Status::kOk) return;
  sizes[i] = request::size(states[i], results[i]);
  request::emit(context, states[i], results[i], out);
}

// A thread answers a datagram.
__global__ void frame_datagrams(wire::FrameLimits limits, const Bytes* datagrams,
                                wire::UdpHeader* headers, wire::UdpVerdict* verdicts,
                                wire::Frame* frames) {
  const uint32_t i = threadIdx.x;
  verdicts[i] = wire::parse_udp_header(datagrams[i], headers[i]);
  wire::FrameState state = {};
  wire::frame_datagram(state, limits, datagrams[i], 0, i, frames + i, 1);
}

// A thread reads an Ethernet frame and writes the frame of its reply around what is there already.
__global__ void answer_packets(const Bytes* requests, uint16_t udp_port,
                               wire::PacketVerdict* verdicts, uint32_t payload_size, uint8_t* out,
                               uint32_t* out_sizes) {
  const uint32_t i = threadIdx.x;
  wire::Packet packet;
  verdicts[i] = wire::parse_packet(requests[i], udp_port, packet);
  if (verdicts[i] != wire::PacketVerdict::kRequest) return;
  uint8_t* reply = out + static_cast<size_t>(i) * 2048;
  wire::compose_reply_headers(requests[i].data, packet, payload_size, reply);
  wire::finish_udp_checksum(packet, payload_size, reply);
  out_sizes[i] = wire::pad_frame(reply, wire::reply_headers_size(packet) + payload_size);
}

}  // namespace warpcache
