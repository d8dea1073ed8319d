// SPDX-License-Identifier: Apache-2.0
#include "load/ucx_worker.h"

namespace warpcache::load {

std::unique_ptr<Worker> make_ucx_worker(const Options&, const Keyspace&, Distribution*, uint32_t,
                                        std::atomic<bool>*, const std::string&, std::string* why) {
  *why = "this program was built without UCX";
  return nullptr;
}

}  // namespace warpcache::load
