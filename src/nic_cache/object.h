// SPDX-License-Identifier: Apache-2.0
//
// The compiled XDP program. Its definition is made from bpf/nic_cache.bpf.c when the server is
// built.
#pragma once

#include "base/bytes.h"

namespace warpcache::nic_cache {

Bytes program_object();

}  // namespace warpcache::nic_cache
