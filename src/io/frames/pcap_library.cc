// SPDX-License-Identifier: Apache-2.0
#include "io/frames/pcap_library.h"

#include <dlfcn.h>

namespace warpcache::io {
namespace {

template <typename Function>
bool find(void* library, const char* name, Function* function) {
  *function = reinterpret_cast<Function>(dlsym(library, name));
  return *function != nullptr;
}

bool find_all(void* library, PcapLibrary& pcap) {
  return find(library, "pcap_fopen_offline_with_tstamp_precision", &pcap.fopen_offline) &&
         find(library, "pcap_datalink", &pcap.datalink) &&
         find(library, "pcap_next_ex", &pcap.next_ex) &&
         find(library, "pcap_geterr", &pcap.geterr) && find(library, "pcap_close", &pcap.close) &&
         find(library, "pcap_open_dead_with_tstamp_precision", &pcap.open_dead) &&
         find(library, "pcap_dump_fopen", &pcap.dump_fopen) &&
         find(library, "pcap_dump", &pcap.dump) &&
         find(library, "pcap_dump_flush", &pcap.dump_flush) &&
         find(library, "pcap_dump_close", &pcap.dump_close);
}

}  // namespace

const PcapLibrary* load_pcap(std::string* why) {
  static PcapLibrary pcap;
  static const std::string kFailure = [] {
    // The file's name on Debian and Ubuntu, then that of libpcap itself.
    for (const char* const name : {"libpcap.so.0.8", "libpcap.so.1"}) {
      void* const library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
      if (library != nullptr && find_all(library, pcap)) return std::string();
    }
    return std::string("libpcap is not installed");
  }();
  *why = kFailure;
  return kFailure.empty() ? &pcap : nullptr;
}

}  // namespace warpcache::io
