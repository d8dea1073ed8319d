// SPDX-License-Identifier: Apache-2.0
#include "options/frames_options.h"

#include <algorithm>
#include <bit>
#include <string>
#include <utility>

#include "base/cpu_list.h"
#include "options/option_values.h"

namespace warpcache {
namespace {

// It becomes a part of files' names.
bool is_ring_name(std::string_view name) {
  constexpr size_t kSizeMax = 32;
  constexpr std::string_view kLetters =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_";
  return !name.empty() && name.size() <= kSizeMax &&
         name.find_first_not_of(kLetters) == std::string_view::npos;
}

}  // namespace

bool add_frames(OptionDraft& draft, std::string_view value) {
  const size_t colon = value.find(':');
  if (colon == std::string_view::npos) return false;
  const std::string_view kind = value.substr(0, colon);
  const std::string_view rest = value.substr(colon + 1);
  const size_t comma = rest.find(',');
  const std::string first(rest.substr(0, comma));
  const std::string second(comma == std::string_view::npos ? "" : rest.substr(comma + 1));
  if (first.empty() || (second.empty() && comma != std::string_view::npos)) return false;
  FramesOptions frames;
  if (kind == "pcap" && !second.empty()) {
    frames.kind = FramesOptions::Kind::kPcap;
    frames.input = first;
    frames.output = second;
  } else if (kind == "tap") {
    frames.kind = FramesOptions::Kind::kTap;
    frames.name = first;
    frames.address = second;
  } else if (kind == "dpdk") {
    frames.kind = FramesOptions::Kind::kDpdk;
    frames.name = rest;
  } else if (kind == "ring") {
    if (!is_ring_name(rest)) return false;
    frames.kind = FramesOptions::Kind::kRing;
    frames.name = rest;
  } else if (kind == "peer") {
    frames.kind = FramesOptions::Kind::kPeer;
    frames.name = first;
    if (!second.empty()) {
      const auto bytes = read_number(second, 64, kPeerSlotBytesMax);
      if (!bytes || *bytes % 16 != 0) return false;
      frames.slot_bytes = static_cast<uint32_t>(*bytes);
    }
  } else {
    return false;
  }
  draft.options.frames.push_back(std::move(frames));
  return true;
}

bool set_ucx(OptionDraft& draft, std::string_view value) {
  const auto spec = read_listen(value);
  if (!spec || spec->port.value_or(0) == 0) return false;
  draft.options.listen.ucx = ListenAddress{spec->host, *spec->port, spec->admin};
  return true;
}

bool set_ucx_client_memory(OptionDraft& draft, std::string_view value) {
  constexpr int64_t kMegabytesMax = 1 << 20;
  const auto number = read_number(value, 1, kMegabytesMax);
  if (number) draft.options.listen.ucx_client_bytes = static_cast<uint64_t>(*number) << 20;
  return number.has_value();
}

bool set_ucx_transports(OptionDraft& draft, std::string_view value) {
  constexpr size_t kLengthMax = 200;
  constexpr std::string_view kTaken = "abcdefghijklmnopqrstuvwxyz0123456789_,";
  const std::string_view names = value.substr(value.starts_with('^') ? 1 : 0);  // ^: all but these
  if (names.empty() || names.size() > kLengthMax || names.front() == ',' || names.back() == ',' ||
      names.find(",,") != std::string_view::npos ||
      names.find_first_not_of(kTaken) != std::string_view::npos) {
    return false;
  }
  draft.options.listen.ucx_transports = value;
  return true;
}

bool set_ucx_one_sided(OptionDraft& draft, std::string_view value) {
  constexpr int64_t kSlotsMax = 1 << 20;
  const auto number = read_number(value, 1, kSlotsMax);
  if (number) draft.options.listen.ucx_slots = std::bit_ceil(static_cast<uint32_t>(*number));
  return number.has_value();
}

std::string finish_ucx(OptionDraft& draft) {
  Options& options = draft.options;
  uint64_t& bytes = options.listen.ucx_client_bytes;
  if (!options.listen.ucx.has_value()) {
    if (options.listen.ucx_slots != 0) return "--ucx-one-sided needs --ucx.";
    if (!options.listen.ucx_transports.empty()) return "--ucx-transports needs --ucx.";
    return bytes == 0 ? "" : "--ucx-client-memory needs --ucx.";
  }
  if (options.listen.ucx_slots != 0) {
    // Reads of one side ask nobody who it is; and the store reports changes to one owner of
    // copies.
    const char* const other = options.server.authentication()                ? "-Y and -S"
                              : options.server.engine == EngineChoice::kCuda ? "--engine=cuda"
                              : !options.nic_cache.interface.empty()         ? "--nic-cache"
                                                                             : nullptr;
    if (other != nullptr) return std::string("--ucx-one-sided cannot be had with ") + other + ".";
  }
  // So that one client can hold no more than a part of what all may, but any value.
  constexpr uint64_t kShare = 16;
  if (bytes == 0) {
    bytes = std::max(options.store.memory_bytes / kShare, options.store.item_size_max_bytes);
  }
  return "";
}

bool set_frames_cpus(OptionDraft& draft, std::string_view value) {
  draft.frames_of_dpdk.cpus = read_cpu_list(value);
  return !draft.frames_of_dpdk.cpus.empty();
}

bool set_frames_kernel(OptionDraft& draft, std::string_view value) {
  const size_t comma = value.find(',');
  draft.frames_of_dpdk.kernel_interface = value.substr(0, comma);
  if (comma != std::string_view::npos) {
    draft.frames_of_dpdk.kernel_address = value.substr(comma + 1);
    if (draft.frames_of_dpdk.kernel_address.empty()) return false;
  }
  return !draft.frames_of_dpdk.kernel_interface.empty();
}

std::string finish_frames(OptionDraft& draft) {
  using Kind = FramesOptions::Kind;
  FramesOptions* device = nullptr;
  uint32_t peers = 0;
  for (FramesOptions& frames : draft.options.frames) {
    if (frames.kind == Kind::kPeer && ++peers > 1) return "--frames accepts one peer.";
    if (frames.kind != Kind::kDpdk && frames.kind != Kind::kRing) continue;
    if (device != nullptr) return "--frames accepts one DPDK device, or one ring.";
    device = &frames;
  }
  const Options& options = draft.options;
  if (peers != 0 &&
      (options.server.engine != EngineChoice::kCuda || options.gpu.mode != GpuMode::kEdge)) {
    return "--frames=peer needs --engine=cuda and --gpu-mode=edge: only its events can be rung by "
           "another process.";
  }
  const FramesOptions& given = draft.frames_of_dpdk;
  if (device == nullptr) {
    if (given == FramesOptions{} && !draft.frames_threads_given && !draft.frames_gpu) return "";
    return "--frames-queues, --frames-threads, --frames-cpus, --frames-kernel and --frames-gpu "
           "need --frames=dpdk:DEVICE.";
  }
  if (device->kind == Kind::kRing && (!given.kernel_interface.empty() || draft.frames_gpu)) {
    return "--frames-kernel and --frames-gpu need --frames=dpdk:DEVICE.";
  }
  if (draft.frames_threads_given && given.threads > given.queues) {
    return "--frames-threads is at most the number of --frames-queues.";
  }
  if (draft.options.process.daemonize) {
    return "-d cannot be had with --frames=dpdk and =ring: DPDK's threads would be lost.";
  }
  device->queues = given.queues;
  device->threads = draft.frames_threads_given ? given.threads : given.queues;
  if (!given.cpus.empty()) {
    if (given.cpus.size() != device->threads) {
      return "--frames-cpus gives " + std::to_string(given.cpus.size()) + " CPUs to " +
             std::to_string(device->threads) + " threads: give one each.";
    }
    if (const std::vector<uint32_t> others = cpus_not_allowed(given.cpus); !others.empty()) {
      return "--frames-cpus: the server may not use CPU " + std::to_string(others[0]) + ".";
    }
  }
  // Where the GPU has failed, its memory is gone: no other engine could read the frames.
  if (draft.frames_gpu && (draft.options.server.engine != EngineChoice::kCuda ||
                           draft.options.gpu.on_error != GpuErrorChoice::kExit)) {
    return "--frames-gpu needs --engine=cuda and --on-gpu-error=exit.";
  }
  if (draft.frames_gpu) device->gpu = draft.options.gpu.number;
  device->cpus = given.cpus;
  device->kernel_interface = given.kernel_interface;
  device->kernel_address = given.kernel_address;
  return "";
}

}  // namespace warpcache
