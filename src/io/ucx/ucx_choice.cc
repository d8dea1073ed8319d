// SPDX-License-Identifier: Apache-2.0
#include "io/ucx/ucx_choice.h"

#include <algorithm>
#include <cstdlib>
#include <initializer_list>
#include <string_view>

namespace warpcache::io {
namespace {

struct Setting {
  const char* name;
  const char* value;
};

// The kinds of transports that a list of UCX's may lead to.
struct Kinds {
  bool shared = false;
  bool tcp = false;
};

// --- What both sides must have alike.

// Of UCP. A unified mode leaves out of an address what it takes to be the same on both sides. With
// others of these UCX 1.13 ends the process that has them, in an assertion.
constexpr Setting kCommon[] = {
    {"UNIFIED_MODE", "n"},       {"PROTO_INDIRECT_ID", "auto"}, {"SEG_SIZE", "8192"},
    {"CM_USE_ALL_DEVICES", "y"}, {"MAX_EAGER_RAILS", "1"},      {"MAX_RNDV_RAILS", "2"},
};
// UCX 1.16 changed these, so they follow the version.
constexpr Setting kVersionsBefore16[] = {
    {"PROTO_ENABLE", "n"}, {"SA_DATA_VERSION", "v1"}, {"ADDRESS_VERSION", "v1"}};
constexpr Setting kVersionsSince16[] = {{"PROTO_ENABLE", "y"}, {"SA_DATA_VERSION", "v2"}};

// Of shared memory: posix, sysv and xpmem, whose common name stands above those of each. Notice of
// a peer's end is needed to be chosen at all.
constexpr Setting kShared[] = {
    {"MM_FIFO_SIZE", "64"},   {"MM_FIFO_ELEM_SIZE", "128"}, {"MM_SEG_SIZE", "8256"},
    {"MM_FIFO_HUGETLB", "n"}, {"MM_ERROR_HANDLING", "y"},
};

// Of one transport each: `prefix` is part of the name since UCX 1.17. Versions before 1.20 only
// warn of a name that they do not know.
struct Own {
  std::string_view prefix;
  Setting setting;
};
constexpr Own kSharedOwn[] = {
    {"POSIX_", {"DIR", "/dev/shm"}},
    {"POSIX_", {"USE_PROC_LINK", "y"}},
};
constexpr Own kTcpOwn[] = {
    {"TCP_", {"TX_SEG_SIZE", "8kb"}},
    {"TCP_", {"RX_SEG_SIZE", "64kb"}},
    {"TCP_", {"MAX_IOV", "6"}},
};
constexpr Own kConnectingOwn[] = {{"TCP_CM_", {"PRIV_DATA_LEN", "2048"}}};

bool names_any(std::string_view list, std::initializer_list<std::string_view> names) {
  return std::any_of(names.begin(), names.end(), [list](std::string_view name) {
    return list.find(name) != std::string_view::npos;
  });
}

// UCX warns of settings that nothing reads.
Kinds kinds_of(const char* said) {
  if (said == nullptr || names_any(said, {"^", "all"})) return {true, true};
  return {names_any(said, {"posix", "sysv", "xpmem", "sm", "shm", "mm"}), names_any(said, {"tcp"})};
}

// UCX's list of transports without `self`, which would carry the echo of UcxPort::is_stuck() past
// the memory that it is to test. `said`: the user's list, or null.
std::string without_self(const char* said) {
  // Both kinds of shared memory would cost 4 MB of buffers each.
  if (said == nullptr) return "^sysv,self";
  if (std::string_view(said) == "all") return "^self";
  if (*said == '^') return std::string(said) + ",self";
  std::string kept;
  for (std::string_view rest = said; !rest.empty();) {
    const size_t end = std::min(rest.find(','), rest.size());
    const std::string_view name = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (name.empty() || name == "self") continue;
    kept.append(kept.empty() ? "" : ",").append(name);
  }
  return kept.empty() ? said : kept;
}

class Chooser {
 public:
  explicit Chooser(ucp_config_t* config) : config_(config) {
    ucp_get_version(&major_, &minor_, &release_);
  }

  bool is_before(unsigned minor) const { return major_ == 1 && minor_ < minor; }

  template <size_t kCount>
  void fix(const Setting (&settings)[kCount]) {
    for (const Setting& setting : settings) set(setting.name, setting.value);
  }
  template <size_t kCount>
  void fix(const Own (&settings)[kCount]) {
    for (const auto& [prefix, setting] : settings) {
      const std::string name(is_before(17) ? "" : prefix);
      set((name + setting.name).c_str(), setting.value);
    }
  }
  void prefer(const char* name, const char* value) {
    if (std::getenv((std::string("UCX_") + name).c_str()) == nullptr) set(name, value);
  }
  void set(const char* name, const char* value) {
    const std::string failure = set_ucx(config_, name, value);
    if (failure_.empty()) failure_ = failure;
  }

  // The first one, or "".
  const std::string& failure() const { return failure_; }

 private:
  ucp_config_t* config_;
  std::string failure_;
  unsigned major_ = 0;
  unsigned minor_ = 0;
  unsigned release_ = 0;
};

}  // namespace

std::string set_ucx(ucp_config_t* config, const char* name, const char* value) {
  const ucs_status_t status = ucp_config_modify(config, name, value);
  if (status == UCS_OK) return "";
  return std::string("UCX's setting ") + name + "=" + value + ": " + ucs_status_string(status);
}

namespace {

const char* said_transports(const std::string& transports) {
  return transports.empty() ? std::getenv("UCX_TLS") : transports.c_str();
}

}  // namespace

bool chooses_tcp_alone(const std::string& transports) {
  const char* const said = said_transports(transports);
  return said != nullptr && std::string_view(said) == "tcp";
}

std::string choose_ucx_settings(ucp_config_t* config, const std::string& transports) {
  const char* const said = said_transports(transports);
  Chooser chooser(config);
  chooser.set("TLS", without_self(said).c_str());
  chooser.fix(kCommon);
  if (chooser.is_before(16)) {
    chooser.fix(kVersionsBefore16);
  } else {
    chooser.fix(kVersionsSince16);
  }
  const Kinds kinds = kinds_of(said);
  if (kinds.shared) chooser.fix(kShared);
  if (kinds.tcp) chooser.fix(kTcpOwn);
  chooser.fix(kSharedOwn);
  chooser.fix(kConnectingOwn);

  // Rendezvous by reads of the other's memory only. With writes UCX adds TCP to an endpoint of
  // shared memory, and then asks the kernel for events of it in each progress. What moves data to a
  // GPU is an experiment (docs/ucx.md), which tries others.
  if (std::getenv("WARPCACHE_UCX_GPU") == nullptr) {
    chooser.set("RNDV_SCHEME", "get_zcopy");
  } else {
    chooser.prefer("RNDV_SCHEME", "get_zcopy");
  }

  // What one side may choose for itself, and differs from UCX's own defaults.
  // Without "huge": whoever has reserved huge pages, for DPDK for instance, has counted them.
  chooser.prefer("ALLOC_PRIO", "md:sysv,md:posix,thp,md:*,mmap,heap");
  chooser.prefer("KEEPALIVE_INTERVAL", "1s");
  // A server can be started again at once.
  chooser.prefer("CM_REUSEADDR", "y");
  return chooser.failure();
}

uint64_t ucx_terms() {
  unsigned major = 0;
  unsigned minor = 0;
  unsigned release = 0;
  ucp_get_version(&major, &minor, &release);
  return ucx_terms_of(major, minor);
}

}  // namespace warpcache::io
