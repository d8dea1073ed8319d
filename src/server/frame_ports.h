// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "io/frames/frame_port.h"
#include "options/options.h"

namespace warpcache::server {

// Opens the port that a --frames option asks for. Returns the error as text, or "".
std::string open_frame_port(const FramesOptions& options, std::unique_ptr<io::FramePort>* port);

}  // namespace warpcache::server
