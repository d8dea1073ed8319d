// SPDX-License-Identifier: Apache-2.0
//
// What a request carries from stage to stage, and what all requests of a batch share.
#pragma once

#include <cstdint>
#include <type_traits>

#include "protocol/message.h"
#include "request/counters.h"
#include "store/store_ref.h"

namespace warpcache::request {

// REQUIRES: the input, and with it every offset in `request`, outlives the state.
struct RequestState {
  protocol::Request request;
  store::Candidate hint;    // from locate(), for execute(): where to look first
  const store::Item* item;  // found by execute(), to be shown by the reply; null: nothing
  uint32_t bytes_wanted;    // with kDeferred: the space that was not available (0: trying again
                            // is enough)
  uint32_t pin;             // on the item's memory, taken for the reply; 0: none (see Context)

  // UINT32_MAX stands for larger sizes too: such a reclaim() fails.
  WC_HD void want(uint64_t bytes) {
    bytes_wanted = bytes < UINT32_MAX ? static_cast<uint32_t>(bytes) : UINT32_MAX;
  }
};
static_assert(std::is_trivially_copyable_v<RequestState>);
static_assert(sizeof(RequestState) <= 128);

// Shared by the requests that one thread runs in a batch. A view: owns nothing.
struct Context {
  store::StoreRef store;
  store::ThreadContext* thread = nullptr;
  uint8_t* input = nullptr;  // the batch's input base
  store::Clock clock = {};   // of the whole batch
  Counters* counters = nullptr;
  uint32_t reservation = 0;             // of the current batch entry, for Request::bits kReserved
  uint32_t item_size_max = UINT32_MAX;  // -I, for the results of append and prepend
  bool cas_enabled = true;              // not -C: new items get CAS ids
  // Longer values are pinned and sent from the store. A read that changes its item takes the pin
  // first: without a pin the answer is a miss, and a miss must have changed nothing.
  uint32_t copied_value_max = UINT32_MAX;
  bool out_of_memory =
      false;  // reclaim() has failed for this request: answer instead of deferring again

  WC_HD Bytes key(const protocol::Request& request) const {
    return {input + request.key_offset, request.key_size};
  }
};

}  // namespace warpcache::request
