// SPDX-License-Identifier: Apache-2.0
#ifndef WARPCACHE_BENCH_LOAD_REPORT_H_
#define WARPCACHE_BENCH_LOAD_REPORT_H_

#include <string>

#include "load/run.h"

namespace warpcache::load {

// A line of progress, for the last interval.
std::string progress_line(const Interval& interval);

// The final table, as lines of text.
std::string table(const Options& options, const Summary& summary);

// The same as one JSON object, with the options.
std::string json(const Options& options, const Summary& summary);

}  // namespace warpcache::load

#endif  // WARPCACHE_BENCH_LOAD_REPORT_H_
