// SPDX-License-Identifier: Apache-2.0
//
// Plays a script against a server and against the model, and tells where they differ.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "engine/testing/rig.h"
#include "model/script.h"
#include "model/server.h"

namespace warpcache::model {

struct Difference {
  uint32_t round = 0;
  int stream = 0;
  std::string what;
  std::string expected;  // from the first byte that differs on
  std::string got;
};
std::string describe(const Difference& difference);

// Starts a server for a script.
using StartServer = std::function<std::unique_ptr<Server>(const Script&)>;

struct Played {
  std::optional<Difference> difference;
  Script transcript;    // the script with its answers, CAS ids as {1}, {2}, ...
  size_t commands = 0;  // steps that were sent
  std::string loss;     // why the script was not played to its end; empty: it was
};

Played play(const Script& script, Server& server);

// The pipeline in this process.
std::unique_ptr<Server> start_pipeline(const Script& script,
                                       engine::RigKind engine = engine::RigKind::kCpu);

// A smaller script for which `differs` still holds, found by leaving things out.
Script shrink(Script script, const std::function<bool(const Script&)>& differs);

}  // namespace warpcache::model
