// SPDX-License-Identifier: Apache-2.0
#include "options/settle.h"

#include <cstdlib>
#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

#include "options/frames_options.h"
#include "options/nic_cache_options.h"
#include "options/tls_options.h"

namespace warpcache {
namespace {

// Makes a path absolute: a daemon changes its directory, and opens some files after that.
void make_absolute(std::string& path) {
  if (path.empty()) return;
  std::error_code error;
  const std::filesystem::path absolute = std::filesystem::absolute(path, error);
  if (!error) path = absolute.string();
}

uint16_t listen_port(int port) { return port < 0 ? uint16_t{0} : static_cast<uint16_t>(port); }

// `tls`: of an address without a prefix for it.
std::vector<ListenAddress> resolve_listen(const std::vector<ListenSpec>& specs, int port,
                                          ListenTls tls) {
  if (port == 0) return {};
  if (specs.empty()) return {ListenAddress{"", listen_port(port), true, tls}};
  std::vector<ListenAddress> addresses;
  addresses.reserve(specs.size());
  for (const ListenSpec& spec : specs) {
    addresses.push_back({spec.host, spec.port.value_or(listen_port(port)), spec.admin,
                         spec.tls.value_or(tls), spec.proxied});
  }
  return addresses;
}

// Why the system calls of these options cannot be filtered: drivers and libraries decide about
// them.
std::string settle_filter(const Options& options) {
  if (!options.process.drop_privileges) return "";
  const char* const other = !options.nic_cache.interface.empty() ? "--nic-cache"
                            : options.server.sasl && options.server.sasl_password_file.empty()
                                ? "-S with the users of libsasl2"
                                : nullptr;
  if (other == nullptr) return "";
  return std::string("-o drop_privileges cannot be had with ") + other +
         ": the system calls of its libraries are not known.";
}

}  // namespace

std::string settle(OptionDraft& draft) {
  Options& options = draft.options;
  const uint64_t half_bytes = options.store.memory_bytes / 2;
  if (options.store.item_size_max_bytes > half_bytes) {
    const std::string size = std::to_string(options.store.item_size_max_bytes);
    return (draft.item_size_given
                ? "-I does not accept " + size + " bytes"
                : "-m leaves no room for items of " + size + " bytes, the default of -I") +
           ": give an item size of at most half of -m, which is " + std::to_string(half_bytes) +
           " bytes.";
  }
  if (options.compat.hot_lru_pct + options.compat.warm_lru_pct > 80) {
    return "-o hot_lru_pct and warm_lru_pct do not accept " +
           std::to_string(options.compat.hot_lru_pct) + " and " +
           std::to_string(options.compat.warm_lru_pct) + ": give numbers whose sum is at most 80.";
  }
  // As in memcached: -U without -p also sets the TCP port.
  if (draft.udp_port_given && options.udp_port != 0 && !draft.tcp_port_given)
    options.tcp_port = options.udp_port;
  if (options.listen.unix_path.empty()) {
    const ListenTls tls = options.tls.enabled ? ListenTls::kDefault : ListenTls::kNone;
    options.listen.tcp = resolve_listen(draft.listen_specs, options.tcp_port, tls);
    options.listen.udp = resolve_listen(draft.listen_specs, options.udp_port, ListenTls::kNone);
    for (ListenAddress& address : options.listen.udp) address.tls = ListenTls::kNone;
    if (options.listen.tcp.empty() && options.listen.udp.empty() && options.frames.empty() &&
        !options.listen.ucx.has_value()) {
      // As in memcached, which starts, too, and writes a file of ports without a port.
      options.notes.emplace_back(
          "-p 0 without -U, -s, --frames or --ucx: no client can reach this server");
    }
  }
  if (std::string failure = finish_frames(draft); !failure.empty()) return failure;
  if (std::string failure = finish_ucx(draft); !failure.empty()) return failure;
  if (std::string failure = finish_nic_cache(draft); !failure.empty()) return failure;
  if (std::string failure = finish_tls(draft); !failure.empty()) return failure;
  if (!options.store.memory_file.empty() && options.server.engine == EngineChoice::kCuda) {
    return "-e cannot be had with --engine=cuda: items in a GPU's memory end with the process; "
           "warpcache-dump and warpcache-restore keep them over a restart.";
  }
  if (options.server.authentication()) {
    const std::string option = options.server.sasl ? "-S" : "-Y";
    if (!options.listen.udp.empty())
      return option + " cannot be had with -U: a datagram carries no authentication, give -U 0.";
    if (!options.frames.empty())
      return option + " cannot be had with --frames: a datagram carries no authentication.";
  }
  if (options.server.sasl) {
    if (!options.server.auth_file.empty())
      return "-S cannot be had with -Y: one is for the binary protocol, the other for text.";
    if (draft.protocol_given && options.server.protocol != ProtocolChoice::kBinary)
      return "-S needs the binary protocol: leave -B away or give -B binary.";
    options.server.protocol = ProtocolChoice::kBinary;
    if (const char* const file = std::getenv("MEMCACHED_SASL_PWDB"))
      options.server.sasl_password_file = file;
  }
  if (!options.server.auth_file.empty()) {
    if (draft.protocol_given && options.server.protocol != ProtocolChoice::kText) {
      return "-Y needs the text protocol: leave -B away or give -B ascii.";
    }
    options.server.protocol = ProtocolChoice::kText;
  }
  if (!options.server.access_file.empty()) {
    if (!options.server.authentication())
      return "--access needs logins: give -Y, or -S with MEMCACHED_SASL_PWDB.";
    if (options.server.sasl && options.server.sasl_password_file.empty())
      return "--access needs MEMCACHED_SASL_PWDB with -S: libsasl2 does not say who logs in.";
  }
  if (std::string failure = settle_filter(options); !failure.empty()) return failure;
  if (options.process.daemonize) {
    make_absolute(options.process.pid_file);
    make_absolute(options.listen.unix_path);
    make_absolute(options.listen.port_filename);
    make_absolute(options.server.auth_file);
    make_absolute(options.server.access_file);
    make_absolute(options.tls.chain_cert);
    make_absolute(options.tls.key);
    make_absolute(options.tls.ca_cert);
    make_absolute(options.store.memory_file);
    make_absolute(options.server.sasl_password_file);
    for (FramesOptions& frames : options.frames) {
      make_absolute(frames.input);
      make_absolute(frames.output);
      if (frames.kind == FramesOptions::Kind::kPeer) make_absolute(frames.name);
    }
  }
  if (!draft.udp_allow_given)
    options.udp_guard.allow = {*read_cidr("127.0.0.0/8"), *read_cidr("::1")};
  return "";
}

}  // namespace warpcache
