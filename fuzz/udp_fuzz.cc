// SPDX-License-Identifier: Apache-2.0
//
// Datagrams: the header, then messages that must be complete; and the division of replies.
#include "fuzz/frames.h"
#include "protocol/framing/udp_frame.h"

namespace {

using namespace warpcache;

// Checks that the datagrams of a reply of `size` bytes carry all of it, in order, and none is too
// large.
void check_reply(uint32_t size, const protocol::UdpHeader& request) {
  const uint32_t count = protocol::udp_datagram_count(size);
  WC_ASSERT(count <= protocol::kUdpDatagramCountMax);
  uint64_t carried = 0;
  const uint32_t step = count > 64 ? count / 64 : 1;
  for (uint32_t i = 0; i < count; i += step) {
    const uint32_t payload = protocol::udp_payload_size(size, i);
    WC_ASSERT(payload > 0 && payload <= protocol::kUdpPayloadMax);
    carried += payload;
    protocol::UdpHeader header;
    header.request_id = request.request_id;
    header.sequence = static_cast<uint16_t>(i);
    header.count = static_cast<uint16_t>(count);
    uint8_t bytes[protocol::kUdpHeaderSize + 1] = {};
    protocol::compose_udp_header(header, bytes);
    protocol::UdpHeader back;
    const protocol::UdpVerdict verdict = protocol::parse_udp_header({bytes, sizeof bytes}, back);
    WC_ASSERT(back.request_id == header.request_id && back.sequence == header.sequence);
    WC_ASSERT((verdict == protocol::UdpVerdict::kRequest) == (count == 1));
  }
  WC_ASSERT(step != 1 || carried == size);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fuzz::Steering steering(data, size);
  const protocol::FrameLimits limits = fuzz::limits_of(steering, protocol::kProtocolAuto);
  const uint32_t reply_size = static_cast<uint32_t>(steering.next64() % protocol::kUdpReplyMax);
  const protocol::Result result = fuzz::result_of(steering);
  protocol::testing::HeapCopy datagram(steering.rest());
  protocol::UdpHeader header;
  if (protocol::parse_udp_header(datagram.bytes(), header) != protocol::UdpVerdict::kRequest)
    return 0;
  check_reply(reply_size, header);
  fuzz::run_whole(steering.rest().substr(protocol::kUdpHeaderSize), limits, true, result);
  return 0;
}
