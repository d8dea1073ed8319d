// SPDX-License-Identifier: Apache-2.0
//
// The functions of libpcap that the port uses. The library is loaded when a port is opened: it
// comes with ten others, which occupy a megabyte that a server without such a port does not pay.
#pragma once

#include <pcap/pcap.h>

#include <string>

namespace warpcache::io {

struct PcapLibrary {
  decltype(&::pcap_fopen_offline_with_tstamp_precision) fopen_offline = nullptr;
  decltype(&::pcap_datalink) datalink = nullptr;
  decltype(&::pcap_next_ex) next_ex = nullptr;
  decltype(&::pcap_geterr) geterr = nullptr;
  decltype(&::pcap_close) close = nullptr;
  decltype(&::pcap_open_dead_with_tstamp_precision) open_dead = nullptr;
  decltype(&::pcap_dump_fopen) dump_fopen = nullptr;
  decltype(&::pcap_dump) dump = nullptr;
  decltype(&::pcap_dump_flush) dump_flush = nullptr;
  decltype(&::pcap_dump_close) dump_close = nullptr;
};

// Loads the library; it stays until the process ends. Null, with the reason in `why`: it is not
// there.
const PcapLibrary* load_pcap(std::string* why);

}  // namespace warpcache::io
