// SPDX-License-Identifier: Apache-2.0
#include "simt/record/requests.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>

#include "workload/random.h"

namespace warpcache::simt {
namespace {

constexpr uint32_t kKeyBytesMin = 8;
constexpr uint32_t kKeyBytesMax = 250;

bool parse_one(std::string_view part, KeyLength* out) {
  const size_t colon = part.find(':');
  if (colon == std::string_view::npos) return false;
  const char* end = part.data() + part.size();
  const auto bytes = std::from_chars(part.data(), part.data() + colon, out->bytes);
  const auto share = std::from_chars(part.data() + colon + 1, end, out->share);
  return bytes.ptr == part.data() + colon && share.ptr == end && share.ec == std::errc() &&
         out->bytes >= kKeyBytesMin && out->bytes <= kKeyBytesMax && out->share > 0;
}

// Letters that follow from the key's number; 'm' in front of keys that are never stored.
std::string key(const Workload& workload, uint32_t bytes, uint32_t number, bool stored) {
  std::string out = fmt::format("{}{:06x}", stored ? 'k' : 'm', number & 0xffffff);
  bench::Random random(bench::mix(workload.seed, bytes, number));
  while (out.size() < bytes) out += static_cast<char>('a' + random.next() % 26);
  return out;
}

std::string set_text(const Workload& workload, const std::string& key) {
  return fmt::format("set {} 0 0 {}\r\n{}\r\n", key, workload.value_bytes,
                     std::string(workload.value_bytes, 'v'));
}

}  // namespace

bool parse_lengths(const std::string& text, std::vector<KeyLength>* out, std::string* why) {
  out->clear();
  double sum = 0;
  for (size_t from = 0; from <= text.size();) {
    const size_t end = std::min(text.find(',', from), text.size());
    KeyLength one;
    if (!parse_one(std::string_view(text).substr(from, end - from), &one)) {
      *why = fmt::format("\"{}\": expected BYTES:WEIGHT,... with {} to {} bytes", text,
                         kKeyBytesMin, kKeyBytesMax);
      return false;
    }
    out->push_back(one);
    sum += one.share;
    from = end + 1;
  }
  for (KeyLength& one : *out) one.share /= sum;
  return true;
}

std::string store_request(const Workload& workload, uint32_t bytes, uint32_t number) {
  return set_text(workload, key(workload, bytes, number, true));
}

Request request(const Workload& workload, uint64_t number) {
  bench::Random random(bench::mix(workload.seed, number, 2));
  double point = random.next_unit();
  uint32_t bytes = workload.lengths.back().bytes;
  for (const KeyLength& length : workload.lengths) {
    point -= length.share;
    if (point >= 0) continue;
    bytes = length.bytes;
    break;
  }
  const bool sets = random.next_unit() < workload.set_share;
  const bool hits = random.next_unit() < workload.hit_ratio;
  const auto chosen = static_cast<uint32_t>(random.next() % workload.keys);
  const std::string name = key(workload, bytes, chosen, sets || hits);
  if (sets) return {fmt::format("{}s", bytes), set_text(workload, name)};
  return {fmt::format("{}{}", bytes, hits ? 'h' : 'm'), fmt::format("get {}\r\n", name)};
}

}  // namespace warpcache::simt
