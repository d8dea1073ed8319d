// SPDX-License-Identifier: Apache-2.0
#include "options/nic_cache_options.h"

#include <algorithm>

#include "options/option_values.h"

namespace warpcache {

using Mode = NicCacheOptions::Mode;

bool set_nic_cache(OptionDraft& draft, std::string_view value) {
  constexpr size_t kNameMax = 15;  // IFNAMSIZ - 1
  const size_t comma = value.find(',');
  const std::string_view name = value.substr(0, comma);
  const std::string_view mode = comma == std::string_view::npos ? "" : value.substr(comma + 1);
  if (name.empty() || name.size() > kNameMax) return false;
  if (comma != std::string_view::npos && mode != "native" && mode != "generic") return false;
  draft.options.nic_cache.interface = name;
  draft.options.nic_cache.mode = mode.empty()       ? Mode::kAny
                                 : mode == "native" ? Mode::kNative
                                                    : Mode::kGeneric;
  return true;
}

bool set_nic_cache_memory(OptionDraft& draft, std::string_view value) {
  constexpr int64_t kMegabytesMax = 65536;
  const auto number = read_number(value, 1, kMegabytesMax);
  if (number) draft.options.nic_cache.memory_mb = static_cast<uint32_t>(*number);
  return number.has_value();
}

bool set_nic_cache_fill(OptionDraft& draft, std::string_view value) {
  if (value != "reads" && value != "frequent" && value != "off") return false;
  draft.options.nic_cache.read_allocate = value != "off";
  draft.options.nic_cache.admit_frequent = value == "frequent";
  return true;
}

bool set_nic_cache_write(OptionDraft& draft, std::string_view value) {
  using Write = NicCacheOptions::Write;
  if (value != "forward" && value != "through" && value != "back") return false;
  draft.options.nic_cache.write = value == "through" ? Write::kThrough
                                  : value == "back"  ? Write::kBack
                                                     : Write::kForward;
  return true;
}

bool set_nic_cache_rate(OptionDraft& draft, std::string_view value) {
  const auto number = read_number(value, 0, int64_t{UINT32_MAX});
  if (number) draft.options.nic_cache.source_rate_max = static_cast<uint32_t>(*number);
  return number.has_value();
}

std::string finish_nic_cache(const OptionDraft& draft) {
  const Options& options = draft.options;
  if (options.nic_cache.interface.empty()) return "";
  if (options.listen.udp.empty()) return "--nic-cache answers UDP only: give -U with a port.";
  if (options.server.engine != EngineChoice::kCuda) return "";
  if (options.nic_cache.write == NicCacheOptions::Write::kBack) {
    return "--nic-cache-write=back cannot be had with --engine=cuda: the NIC cache stores what it "
           "has accepted in the host's memory.";
  }
  // Copies are taken back by the requests, before the GPU runs them.
  const bool has_peer =
      std::any_of(options.frames.begin(), options.frames.end(),
                  [](const auto& one) { return one.kind == FramesOptions::Kind::kPeer; });
  if (has_peer || draft.frames_gpu) {
    return std::string("--nic-cache cannot be had with ") +
           (has_peer ? "--frames=peer" : "--frames-gpu") +
           ": the server does not see such requests before the GPU has run them.";
  }
  return "";
}

}  // namespace warpcache
