// SPDX-License-Identifier: Apache-2.0
//
// Joins a store and a table of copies.
#pragma once

#include "nic_cache/copy_table.h"
#include "store/layout/item.h"
#include "store/layout/shared.h"

namespace warpcache::nic_cache {

// What a store calls so that no copy outlives its item. `table` outlives the store.
store::CopyHooks hooks_of(CopyTable& table);

// Copies an item, unless it is of a form that is not copied. `version`: CopiedItem's. REQUIRES: its
// pair is locked.
void copy_item(CopyTable& table, const store::Item& item, uint32_t version = 0);

}  // namespace warpcache::nic_cache
