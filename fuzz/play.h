// SPDX-License-Identifier: Apache-2.0
//
// Plays a script against the pipeline and the model. A difference is reduced to a minimal script,
// printed, and ends the process like a crash.
#pragma once

#include <cstdio>
#include <cstdlib>

#include "model/player.h"

namespace warpcache::fuzz {

inline void play(const model::Script& script) {
  const model::Played played = model::play(script, *model::start_pipeline(script));
  if (!played.difference.has_value()) return;
  const auto differs = [](const model::Script& candidate) {
    return model::play(candidate, *model::start_pipeline(candidate)).difference.has_value();
  };
  const model::Script small = model::shrink(script, differs);
  const model::Played again = model::play(small, *model::start_pipeline(small));
  std::fprintf(stderr, "\n%s%s", model::write_script(again.transcript).c_str(),
               model::describe(again.difference.value_or(*played.difference)).c_str());
  std::abort();
}

}  // namespace warpcache::fuzz
