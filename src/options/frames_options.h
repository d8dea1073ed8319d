// SPDX-License-Identifier: Apache-2.0
//
// The options of ports beside the sockets: of Ethernet frames and of active messages.
#pragma once

#include <string>
#include <string_view>

#include "options/option_draft.h"

namespace warpcache {

// --frames: pcap:IN,OUT or tap:NAME[,ADDRESS/BITS] or dpdk:DEVICE[,ARGUMENTS] or
// ring:NAME or peer:FILE[,BYTES]. An ApplyOption.
bool add_frames(OptionDraft& draft, std::string_view value);

// --ucx: an address with a port. An ApplyOption.
bool set_ucx(OptionDraft& draft, std::string_view value);

// --ucx-client-memory: megabytes. An ApplyOption.
bool set_ucx_client_memory(OptionDraft& draft, std::string_view value);

// --ucx-transports: a list of names. An ApplyOption.
bool set_ucx_transports(OptionDraft& draft, std::string_view value);

// --ucx-one-sided: a number of items. An ApplyOption.
bool set_ucx_one_sided(OptionDraft& draft, std::string_view value);

// Chooses what was not given, when all options are read. Returns an error or "".
std::string finish_ucx(OptionDraft& draft);

// --frames-cpus: as 1,4-7. An ApplyOption.
bool set_frames_cpus(OptionDraft& draft, std::string_view value);

// --frames-kernel: NAME[,ADDRESS/BITS]. An ApplyOption.
bool set_frames_kernel(OptionDraft& draft, std::string_view value);

// Gives the options of DPDK devices to the one device, when all options are read. Returns an error
// or "".
std::string finish_frames(OptionDraft& draft);

}  // namespace warpcache
