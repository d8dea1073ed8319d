// SPDX-License-Identifier: Apache-2.0
#ifndef WARPCACHE_BENCH_LOAD_OPTIONS_H_
#define WARPCACHE_BENCH_LOAD_OPTIONS_H_

#include "load/types.h"

namespace warpcache::load {

inline constexpr int kExitDone = 0;
inline constexpr int kExitWrong = 1;   // wrong values or refused requests
inline constexpr int kExitUsage = 2;   // the command line, or a file that it names
inline constexpr int kExitServer = 3;  // no server, or the connection was lost

enum class ParseResult { kRun, kShown, kRefused };

// Reads the command line. Prints help or version on request (kShown), or an error (kRefused).
ParseResult parse_options(int argc, char** argv, Options* out);

}  // namespace warpcache::load

#endif  // WARPCACHE_BENCH_LOAD_OPTIONS_H_
