// SPDX-License-Identifier: Apache-2.0
//
// Recorded frames in files, by libpcap: pcap and pcapng are read, in either byte order and with
// times in microseconds or nanoseconds; pcap with nanoseconds is written. Ethernet alone. A frame
// that was recorded in part is read as far as it goes. Built where libpcap is found.
#pragma once

#include <string>

#include "base/bytes.h"
#include "io/frames/frame_list.h"

namespace warpcache::io {

// Adds the frames of a file to `frames`. Returns what is wrong, in words; empty: nothing. The
// frames before a fault in the middle of the file have been added.
std::string read_pcap(Bytes file, FrameList& frames);
std::string read_pcap_file(const std::string& path, FrameList& frames);

// Writes the frames. Returns what is wrong; empty: nothing.
std::string write_pcap_file(const std::string& path, const FrameList& frames);

}  // namespace warpcache::io
