// SPDX-License-Identifier: Apache-2.0
//
// Datagrams: the header, then messages that must be there whole; and how replies are cut.
#include "fuzz/frames.h"
#include "wire/udp_frame.h"

namespace {

using namespace warpcache;

// The datagrams of a reply of `size` bytes carry all of it, in order, none too large.
void check_reply(uint32_t size, const wire::UdpHeader& request) {
  const uint32_t count = wire::udp_datagram_count(size);
  WC_ASSERT(count <= wire::kUdpDatagramCountMax);
  uint64_t carried = 0;
  const uint32_t step = count > 64 ? count / 64 : 1;
  for (uint32_t i = 0; i < count; i += step) {
    const uint32_t payload = wire::udp_payload_size(size, i);
    WC_ASSERT(payload > 0 && payload <= wire::kUdpPayloadMax);
    carried += payload;
    wire::UdpHeader header;
    header.request_id = request.request_id;
    header.sequence = static_cast<uint16_t>(i);
    header.count = static_cast<uint16_t>(count);
    uint8_t bytes[wire::kUdpHeaderSize + 1] = {};
    wire::compose_udp_header(header, bytes);
    wire::UdpHeader back;
    const wire::UdpVerdict verdict = wire::parse_udp_header({bytes, sizeof bytes}, back);
    WC_ASSERT(back.request_id == header.request_id && back.sequence == header.sequence);
    WC_ASSERT((verdict == wire::UdpVerdict::kRequest) == (count == 1));
  }
  WC_ASSERT(step != 1 || carried == size);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fuzz::Steering steering(data, size);
  const wire::FrameLimits limits = fuzz::limits_of(steering, wire::kProtocolAuto);
  const uint32_t reply_size = static_cast<uint32_t>(steering.next64() % wire::kUdpReplyMax);
  const wire::Result result = fuzz::result_of(steering);
  wire::testing::HeapCopy datagram(steering.rest());
  wire::UdpHeader header;
  if (wire::parse_udp_header(datagram.bytes(), header) != wire::UdpVerdict::kRequest) return 0;
  check_reply(reply_size, header);
  fuzz::run_whole(steering.rest().substr(wire::kUdpHeaderSize), limits, true, result);
  return 0;
}
