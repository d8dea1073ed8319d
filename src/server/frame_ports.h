// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "io/frames/frame_port.h"
#include "options/options.h"

namespace warpcache::server {

// Opens the ports that a --frames option asks for and appends them: FramesOptions::queues of them.
// Returns the error as text, or "".
std::string open_frame_ports(const FramesOptions& options,
                             std::vector<std::unique_ptr<io::FramePort>>* ports);

}  // namespace warpcache::server
