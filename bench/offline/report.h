// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "offline/study.h"

namespace warpcache::offline {

// A table with a line for each batch size.
std::string text_report(const StudyConfig& config, const std::string& backend,
                        const StudyResult& result);

// One object on one line, with the names and units of the table.
std::string json_report(const StudyConfig& config, const std::string& backend,
                        const StudyResult& result);

}  // namespace warpcache::offline
