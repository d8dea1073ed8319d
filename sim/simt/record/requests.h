// SPDX-License-Identifier: Apache-2.0
// The requests whose threads are recorded: mixtures of key lengths with a hit ratio, as the
// dissertation's figure 4.12 varies them.
#ifndef WARPCACHE_SIM_SIMT_RECORD_REQUESTS_H_
#define WARPCACHE_SIM_SIMT_RECORD_REQUESTS_H_

#include <cstdint>
#include <string>
#include <vector>

namespace warpcache::simt {

struct KeyLength {
  uint32_t bytes;
  double share;  // they make 1
};

struct Workload {
  std::vector<KeyLength> lengths;
  double hit_ratio = 1;
  double set_share = 0;   // of the requests; the others are gets
  uint32_t keys = 5'000;  // that are stored, of each length
  uint32_t value_bytes = 32;
  uint64_t seed = 1;
};

// "16:50,32:50": bytes and weight. Keys have 8 to 250 bytes.
bool parse_lengths(const std::string& text, std::vector<KeyLength>* out, std::string* why);

// A request and what it is: "16h", a get of 16 bytes that hits; "16m", one that misses; "16s", a
// set.
struct Request {
  std::string thread_class;
  std::string text;
};

// The set of the `number`-th stored key of a length.
std::string store_request(const Workload& workload, uint32_t bytes, uint32_t number);

// The `number`-th request; each follows from the seed and its number.
Request request(const Workload& workload, uint64_t number);

}  // namespace warpcache::simt

#endif  // WARPCACHE_SIM_SIMT_RECORD_REQUESTS_H_
