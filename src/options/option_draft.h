// SPDX-License-Identifier: Apache-2.0
//
// Shared by the readers of options (options.cc) and of the words of -o (option_words.cc). For the
// parser only.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "options/option_values.h"
#include "options/options.h"

namespace warpcache {

inline constexpr int64_t kU32Max = std::numeric_limits<uint32_t>::max();

// The options while they are parsed. `refusal` is set at most once; parsing stops then.
struct OptionDraft {
  Options options;
  std::vector<ListenSpec> listen_specs;
  bool tcp_port_given = false;
  bool udp_port_given = false;
  bool protocol_given = false;
  bool item_size_given = false;
  bool udp_allow_given = false;
  FramesOptions frames_of_dpdk;  // what --frames-* options say of the DPDK device
  bool frames_threads_given = false;
  bool frames_gpu = false;
  bool license = false;
  bool version = false;
  bool help = false;
  std::string refusal;
};

// Reads one value into the draft. False: the value is refused and the draft is unchanged.
using ApplyOption = bool (*)(OptionDraft&, std::string_view value);

// `-t does not accept "0": give a number from 1 to 256.`
[[nodiscard]] std::string refused_value(std::string_view option, std::string_view value,
                                        std::string_view accepted);

// Reads the comma-separated words of one -o. False: draft.refusal has the reason.
[[nodiscard]] bool apply_extended_words(OptionDraft& draft, std::string_view words);

// The lines of -h that describe the words of -o.
[[nodiscard]] std::string extended_help();

}  // namespace warpcache
