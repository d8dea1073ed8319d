// SPDX-License-Identifier: Apache-2.0
#include "traces/workload.h"

#include <charconv>
#include <string_view>
#include <utility>

#include "traces/generated.h"

namespace warpcache::sim {
namespace {

bool is_share(double x) { return x >= 0.0 && x <= 1.0; }

// Reads numbers with colons between them. Returns how many; 0 if `text` is anything else.
size_t read_parts(std::string_view text, double (&parts)[4]) {
  const char* at = text.data();
  const char* const end = at + text.size();
  for (size_t found = 0; found < 4; ++at) {
    const auto [stop, error] = std::from_chars(at, end, parts[found]);
    if (error != std::errc() || !(parts[found] >= 0 && parts[found] < 1e9)) return 0;
    ++found;
    if (stop == end) return found;
    if (*stop != ':') return 0;
    at = stop;
  }
  return 0;
}

bool check(const Workload& workload, bench::Sizes* sizes, std::string* why) {
  if (workload.key_count < 2 || workload.key_count > kKeysMax) {
    *why = "the number of keys must be 2 to " + std::to_string(kKeysMax);
    return false;
  }
  const bool scans_fit =
      workload.scans == 0.0 || (workload.scans < 1.0 && workload.scan_length > 0 &&
                                workload.scan_length <= workload.key_count);
  if (!is_share(workload.one_hits) || !is_share(workload.scans) || !scans_fit) {
    *why = "one-hit wonders and scans are shares of the requests, a scan has 1 key to all";
    return false;
  }
  const bool loops_fit =
      workload.loops == 0.0 || (workload.loop_length > 0 && workload.loop_count > 0 &&
                                workload.loop_length <= workload.key_count / workload.loop_count);
  if (!(workload.loops >= 0.0 && workload.loops < 1.0) || !loops_fit) {
    *why = "loops are a share of the requests, and have together no more keys than there are";
    return false;
  }
  return bench::Sizes::parse(workload.sizes, sizes, why);
}

}  // namespace

bool Mix::parse(const std::string& text, Mix* out, std::string* why) {
  static constexpr std::pair<const char*, Mix> kNamed[] = {
      {"a", {0.5, 0, 0}}, {"b", {0.05, 0, 0}}, {"c", {0, 0, 0}}, {"d", {0, 0.05, 0}}};
  for (const auto& [name, mix] : kNamed) {
    if (text != name) continue;
    *out = mix;
    return true;
  }
  double parts[4] = {};
  const size_t found = read_parts(text, parts);
  const double sum = parts[0] + parts[1] + parts[2] + parts[3];
  if ((found != 2 && found != 4) || !(sum > 0)) {
    *why = "a mix is a, b, c, d, GETS:SETS or GETS:SETS:INSERTS:DELETES, not " + text;
    return false;
  }
  *out = {parts[1] / sum, parts[2] / sum, parts[3] / sum};
  return true;
}

std::unique_ptr<Trace> make_trace(const Workload& workload, std::string* why) {
  bench::Sizes sizes;
  if (!check(workload, &sizes, why)) return nullptr;
  std::unique_ptr<KeyChooser> keys = make_keys(workload.keys, workload.key_count, why);
  if (keys == nullptr) return nullptr;
  if (workload.scans > 0) {
    keys = add_scans(std::move(keys), workload.scans, workload.scan_length, workload.key_count);
  }
  if (workload.loops > 0) {
    keys = add_loops(std::move(keys), workload.loops, workload.loop_length, workload.loop_count,
                     workload.key_count);
  }
  if (workload.one_hits > 0) keys = add_one_hits(std::move(keys), workload.one_hits);
  return std::make_unique<GeneratedTrace>(workload, sizes, std::move(keys));
}

std::unique_ptr<Trace> make_load_trace(const Workload& workload, std::string* why) {
  bench::Sizes sizes;
  if (!check(workload, &sizes, why)) return nullptr;
  return std::make_unique<LoadTrace>(workload, sizes);
}

}  // namespace warpcache::sim
