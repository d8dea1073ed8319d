// SPDX-License-Identifier: Apache-2.0
#include "engine/failover_engine.h"

#include <algorithm>
#include <new>

#include "base/assert.h"
#include "protocol/framing/frame.h"

namespace warpcache::engine {

void FailoverEngine::submit(Batch* batch) {
  if (!failed_over_ && hooks_.failed()) fail_over();
  if (failed_over_) {
    run_by_spare(*batch);
    done_.push_back(batch);
    return;
  }
  const auto slot = std::find_if(under_way_.begin(), under_way_.end(),
                                 [](const UnderWay& one) { return one.batch == nullptr; });
  WC_ASSERT(slot != under_way_.end());
  slot->batch = batch;
  slot->authenticated.clear();
  for (const BatchEntry& entry : batch->entries) slot->authenticated.push_back(entry.authenticated);
  primary_->submit(batch);
}

Batch* FailoverEngine::poll() {
  if (!done_.empty()) {
    Batch* const batch = done_.back();
    done_.pop_back();
    return batch;
  }
  // Also after the failure: batches that were under way come back from the primary.
  Batch* const batch = primary_->poll();
  if (batch == nullptr) return nullptr;
  const auto slot = std::find_if(under_way_.begin(), under_way_.end(),
                                 [batch](const UnderWay& one) { return one.batch == batch; });
  WC_ASSERT(slot != under_way_.end());
  slot->batch = nullptr;
  if (!hooks_.failed()) return batch;
  if (!failed_over_) fail_over();
  restore(*batch, *slot);
  run_by_spare(*batch);
  return batch;
}

void FailoverEngine::fail_over() {
  failed_over_ = true;
  spare_ = hooks_.make_spare(&spare_counters_);
  if (spare_ != nullptr && takes_packets_ && !spare_->open_packets(packet_settings_).empty()) {
    spare_.reset();
  }
}

// Makes a batch that the primary has given back what it was before.
void FailoverEngine::restore(Batch& batch, const UnderWay& as_submitted) {
  for (size_t i = 0; i < batch.entries.size(); ++i) {
    BatchEntry& entry = batch.entries[i];
    drop_long_reply(entry);
    entry.close = false;
    entry.authenticated = as_submitted.authenticated[i] != 0;
  }
  batch.spans.clear();
}

void FailoverEngine::run_by_spare(Batch& batch) {
  if (spare_ == nullptr) return close_all(batch);
  submit_to_spare(batch);
  while (spare_->poll() == nullptr) {
  }
  finish_by_spare(batch);
}

void FailoverEngine::close_all(Batch& batch) {
  batch.spans.clear();
  for (BatchEntry& entry : batch.entries) {
    drop_long_reply(entry);
    entry.first_span = entry.span_count = 0;
    entry.frames_done = entry.frame_count;
    entry.close = true;
  }
}

void FailoverEngine::submit_to_spare(Batch& batch) {
  reservations_.clear();
  for (BatchEntry& entry : batch.entries) {
    reservations_.push_back(entry.reservation);
    if (entry.reservation == 0) continue;
    if (is_spares(entry.reservation)) {
      entry.reservation &= ~kOfSpare;
      continue;
    }
    entry.reservation = 0;
    protocol::refuse_store(batch.frames[entry.first_frame], Status::kOutOfMemory);
  }
  spare_->submit(&batch);
}

void FailoverEngine::finish_by_spare(Batch& batch) {
  for (size_t i = 0; i < batch.entries.size(); ++i) {
    BatchEntry& entry = batch.entries[i];
    const bool lost = reservations_[i] != 0 && !is_spares(reservations_[i]);
    if (lost && entry.frames_done > 0) primary_->abandon(reservations_[i]);
    entry.reservation = reservations_[i];
  }
  for (ReplySpan& span : batch.spans) {
    if (span.pin != 0 && span.pin != kPinFollows) span.pin |= kOfSpare;
  }
  take_spares_counts();
}

void FailoverEngine::take_spares_counts() {
  for (int i = 0; i < static_cast<int>(request::Counter::kCount); ++i) {
    const auto counter = static_cast<request::Counter>(i);
    const uint64_t now = spare_counters_->read(counter);
    add_owned(&counters_.value[i], now - counted_.value[i]);
    counted_.value[i] = now;
  }
}

// --- Ethernet frames

std::string FailoverEngine::open_packets(const PacketSettings& settings) {
  packet_settings_ = settings;
  takes_packets_ = true;
  return primary_->open_packets(settings);
}

void FailoverEngine::submit_packets(net::PacketBurst* burst) {
  if (!failed_over_ && hooks_.failed()) fail_over();
  burst->doorbell = {};
  bursts_.push_back(burst);
  if (!failed_over_) primary_->submit_packets(burst);
}

net::PacketBurst* FailoverEngine::poll_packets() {
  if (bursts_.empty()) return nullptr;
  if (!failed_over_) {
    net::PacketBurst* const burst = primary_->poll_packets();
    if (!hooks_.failed()) {
      if (burst != nullptr) bursts_.erase(std::find(bursts_.begin(), bursts_.end(), burst));
      return burst;
    }
    fail_over();
  }
  // No reply to a burst that was under way has been sent, so the spare runs it from its start.
  net::PacketBurst& burst = *bursts_.front();
  bursts_.pop_front();
  if (spare_ != nullptr && !burst.rung_by_peer) {
    spare_->submit_packets(&burst);
    while (spare_->poll_packets() == nullptr) {
    }
    take_spares_counts();
  } else {
    burst.drop_all();
  }
  return &burst;
}

void FailoverEngine::release(uint32_t pin) { owner(pin).release(pin & ~kOfSpare); }

Status FailoverEngine::reserve(uint8_t key_size, uint32_t body_size, uint32_t* id) {
  const Status status = current().reserve(key_size, body_size, id);
  if (status != Status::kOk) return status;
  WC_ASSERT(!is_spares(*id));
  if (spare_ != nullptr) *id |= kOfSpare;
  return status;
}

MutableBytes FailoverEngine::reservation_window(uint32_t id, uint32_t received, uint32_t after) {
  return owner(id).reservation_window(id & ~kOfSpare, received, after);
}

MutableBytes FailoverEngine::device_window(uint32_t id, uint32_t received, uint32_t size) {
  return owner(id).device_window(id & ~kOfSpare, received, size);
}

void FailoverEngine::device_bytes_came(uint32_t id, uint32_t received, uint32_t size) {
  owner(id).device_bytes_came(id & ~kOfSpare, received, size);
}

void FailoverEngine::abandon(uint32_t id) { owner(id).abandon(id & ~kOfSpare); }

}  // namespace warpcache::engine
