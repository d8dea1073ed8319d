// SPDX-License-Identifier: Apache-2.0
//
// Space for several items of one thread, taken in one visit of its append point. The items count as
// live bytes of their segment from then on, so publishing one does not touch the segment again:
// each must be published by LockedPair::publish_counted() or given back by abandon_counted(), in
// the same batch.
#pragma once

#include <cstdint>

#include "base/hd.h"
#include "store/log/allocate.h"

namespace warpcache::store {

// Locks the append point from the first add() on, until it is destroyed. No lock of a pair may be
// taken meanwhile.
class ItemRun {
 public:
  WC_HD ItemRun(const Core& core, const ThreadContext& thread, uint32_t expiry_class)
      : core_(core), thread_(thread), expiry_class_(expiry_class) {}
  WC_HD ~ItemRun() { end(); }
  ItemRun(const ItemRun&) = delete;
  ItemRun& operator=(const ItemRun&) = delete;

  // An item as allocate_item() makes it, or null: no segment is free. REQUIRES: `expiry` is of the
  // run's class; the item is at most plain_size_max().
  WC_HD Item* add(uint8_t key_size, uint32_t value_size, uint32_t expiry) {
    const auto bytes = static_cast<uint32_t>(item_footprint(key_size, value_size));
    if (WC_UNLIKELY(bytes > run_.space - used_) && !begin(bytes)) return nullptr;
    Item* const item =
        detail::init_item(run_.data + used_, key_size, value_size, expiry, Layout::kPlain);
    if (used_ == 0 || expiry != noted_) segment().note_expiry(expiry);
    noted_ = expiry;
    used_ += bytes;
    return item;
  }

 private:
  WC_HD SegmentEntry& segment() const {
    return core_.segment(core_.segment_of(reinterpret_cast<const Item*>(run_.data)));
  }
  // The next segment is begun when this one is full, as with single items.
  WC_HD bool begin(uint32_t first) {
    end();
    run_ = begin_run(core_, thread_, first, expiry_class_);
    return run_.data != nullptr;
  }
  WC_HD void end() {
    if (run_.data == nullptr) return;
    fetch_add(&segment().live, used_);
    end_run(core_, thread_, used_, expiry_class_);
    run_ = {};
    used_ = 0;
  }

  const Core& core_;
  const ThreadContext& thread_;
  uint32_t expiry_class_;
  uint32_t used_ = 0;   // bytes of the run
  uint32_t noted_ = 0;  // the expiry of its last item
  Run run_;
};

// Gives an item of an ItemRun back. The last item of its segment should come first: then the space
// is free at once.
WC_HD inline void abandon_counted(const Core& core, const ThreadContext& thread, Item* item) {
  const auto bytes = static_cast<uint32_t>(item_footprint(*item));
  fetch_sub(&core.segment(core.segment_of(item)).live, bytes);
  Allocation allocation = {item, bytes, false};
  abandon_item(core, thread, allocation);
}

}  // namespace warpcache::store
