// SPDX-License-Identifier: Apache-2.0
//
// Compiled, never run: proves that the host and device headers are fit for a kernel.
// tools/device_compile writes all_headers.h.
#include "all_headers.h"

namespace warpcache {

// A thread frames a stream and runs its requests from frame to reply.
__global__ void serve_streams(request::Context context, protocol::FrameLimits limits, Bytes input,
                              protocol::FrameState* states, protocol::Frame* frames,
                              uint32_t frames_per_stream, uint8_t* out, Status* status) {
  protocol::Frame* mine = frames + static_cast<size_t>(threadIdx.x) * frames_per_stream;
  const protocol::FrameResult framed =
      protocol::frame(states[threadIdx.x], limits, input, 0, threadIdx.x, mine, frames_per_stream);
  for (uint32_t i = 0; i < framed.count; ++i) {
    status[threadIdx.x] = request::process_request(context, mine[i], out);
  }
}

// The stages on their own, as an engine runs them over a batch.
__global__ void run_stages(request::Context context, const protocol::Frame* frames,
                           request::RequestState* states, protocol::Result* results,
                           uint32_t* sizes, uint8_t* out) {
  const uint32_t i = threadIdx.x;
  request::decode(context, frames[i], states[i]);
  request::locate(context, states[i]);
  if (request::execute(context, states[i], results[i]) != Status::kOk) return;
  sizes[i] = request::size(states[i], results[i]);
  request::emit(context, states[i], results[i], out);
}

// A thread answers a datagram.
__global__ void frame_datagrams(protocol::FrameLimits limits, const Bytes* datagrams,
                                protocol::UdpHeader* headers, protocol::UdpVerdict* verdicts,
                                protocol::Frame* frames) {
  const uint32_t i = threadIdx.x;
  verdicts[i] = protocol::parse_udp_header(datagrams[i], headers[i]);
  protocol::FrameState state = {};
  protocol::frame_datagram(state, limits, datagrams[i], 0, i, frames + i, 1);
}

// A thread reads an Ethernet frame and writes the frame of its reply around what is there already.
__global__ void answer_packets(const Bytes* requests, uint16_t udp_port,
                               net::PacketVerdict* verdicts, uint32_t payload_size, uint8_t* out,
                               uint32_t* out_sizes) {
  const uint32_t i = threadIdx.x;
  net::Packet packet;
  verdicts[i] = net::parse_packet(requests[i], udp_port, packet);
  if (verdicts[i] != net::PacketVerdict::kRequest) return;
  uint8_t* reply = out + static_cast<size_t>(i) * 2048;
  net::compose_reply_headers(requests[i].data, packet, payload_size, reply);
  net::finish_udp_checksum(packet, payload_size, reply);
  out_sizes[i] = net::pad_frame(reply, net::reply_headers_size(packet) + payload_size);
}

}  // namespace warpcache
