// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "ablation/study.h"

namespace warpcache::ablation {

// A table with a line for each variant.
std::string text_report(const StudyConfig& config, const StudyResult& result);

// One object on one line.
std::string json_report(const StudyConfig& config, const StudyResult& result);

}  // namespace warpcache::ablation
