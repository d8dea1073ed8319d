// SPDX-License-Identifier: Apache-2.0
//
// Files of recorded frames: the classic pcap format, Ethernet only. Reads both byte orders, and times
// in microseconds or nanoseconds; writes nanoseconds. Of a frame that was recorded in part, it reads
// the recorded bytes.
#pragma once

#include <string>

#include "base/bytes.h"
#include "io/frames/frame_list.h"

namespace warpcache::io {

// Adds the frames of a pcap file to `frames`. Returns an error message, or an empty string. If there
// is a fault in the middle of the file, the frames before it have been added.
std::string read_pcap(Bytes file, FrameList& frames);
std::string read_pcap_file(const std::string& path, FrameList& frames);

// Returns the frames as the contents of a pcap file.
std::string write_pcap(const FrameList& frames);
// Returns an error message, or an empty string.
std::string write_pcap_file(const std::string& path, const FrameList& frames);

}  // namespace warpcache::io
