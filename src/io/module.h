// SPDX-License-Identifier: Apache-2.0
//
// Modules of the server: shared objects for what few servers need, with the libraries that it
// takes. A module is loaded when it is asked for.
#pragma once

#include <string>

namespace warpcache::io {

// Loads the module `file` from beside the program, or from ../lib/warpcache, and returns the
// address of its function `name`. The module stays until the process ends. Null, with the reason in
// `why`
// ("loading its module: ..." or "this server was built without LIBRARY"). Start-up only.
[[nodiscard]] void* load_from_module(const char* file, const char* name, const char* library,
                                     std::string* why);

}  // namespace warpcache::io
