// SPDX-License-Identifier: Apache-2.0
#include "options/choice_options.h"

#include <utility>

namespace warpcache {
namespace {

// One of a list of words.
template <typename Choice, size_t kCount>
bool set_choice(Choice& target, std::string_view value,
                const std::pair<std::string_view, Choice> (&choices)[kCount]) {
  for (const auto& [word, choice] : choices) {
    if (value != word) continue;
    target = choice;
    return true;
  }
  return false;
}

}  // namespace

bool set_protocol(OptionDraft& draft, std::string_view value) {
  constexpr std::pair<std::string_view, ProtocolChoice> kNames[] = {
      {"auto", ProtocolChoice::kAuto},
      {"ascii", ProtocolChoice::kText},
      {"binary", ProtocolChoice::kBinary}};
  return draft.protocol_given = set_choice(draft.options.server.protocol, value, kNames);
}

bool set_engine(OptionDraft& draft, std::string_view value) {
  return set_choice<EngineChoice>(
      draft.options.server.engine, value,
      {{"auto", EngineChoice::kAuto}, {"cpu", EngineChoice::kCpu}, {"cuda", EngineChoice::kCuda}});
}

bool set_gpu_mode(OptionDraft& draft, std::string_view value) {
  return set_choice<GpuMode>(draft.options.gpu.mode, value,
                             {{"launch", GpuMode::kLaunch},
                              {"persistent", GpuMode::kPersistent},
                              {"edge", GpuMode::kEdge}});
}

bool set_values(OptionDraft& draft, std::string_view value) {
  return set_choice<ValuesChoice>(
      draft.options.gpu.values, value,
      {{"device", ValuesChoice::kDevice}, {"host", ValuesChoice::kHost}});
}

bool set_on_gpu_error(OptionDraft& draft, std::string_view value) {
  return set_choice<GpuErrorChoice>(
      draft.options.gpu.on_error, value,
      {{"cpu", GpuErrorChoice::kCpu}, {"exit", GpuErrorChoice::kExit}});
}

}  // namespace warpcache
