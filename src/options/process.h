// SPDX-License-Identifier: Apache-2.0
//
// Carries out the options about the process: -c -d -k -P -r -u and MEMCACHED_PORT_FILENAME. Every
// function returns an empty string, or one sentence that says what failed; the caller decides
// whether to go on. All run on the main thread before other threads start, unless a comment says
// otherwise.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "options/text_file.h"

namespace warpcache {

// Descriptors that a server needs in addition to its connections: standard streams, listeners,
// event queues, logs.
inline constexpr uint64_t kDescriptorsBesideConnections = 256;

// Raises the limit of descriptors for `connections_max` connections (-c): up to the hard limit, and
// above it if the kernel allows.
[[nodiscard]] std::string raise_descriptor_limit(uint32_t connections_max);

// Raises the limit on core files to the hard limit (-r). An error if that is 0.
[[nodiscard]] std::string enable_core_dumps();

// Enables core dumps again after change_user() (-r): by default the kernel writes no core of a
// process that has changed its user.
[[nodiscard]] std::string keep_core_dumps();

// Locks pages in memory when they are first used (-k). Reserved address space costs nothing.
[[nodiscard]] std::string lock_memory();

// True for root, real or effective.
[[nodiscard]] bool running_as_root();

// Changes groups, group and user to those of `user`, permanently (-u). Does nothing unless running
// as root, as memcached.
[[nodiscard]] std::string change_user(const std::string& user);

// Detaches from the terminal (-d). The process that the user started waits, and its exit status
// reports whether the server is ready. Owned by main().
class Daemon {
 public:
  Daemon() = default;
  Daemon(const Daemon&) = delete;
  Daemon& operator=(const Daemon&) = delete;
  // Makes the waiting process exit with status 1, unless ready() was called.
  ~Daemon();

  // Forks twice, starts a session, and changes to / unless `keep_directory` (for core files in the
  // current directory). Returns only in the daemon. The first process exits here: with 0 when
  // ready() is called, with 1 when the daemon ends before. REQUIRES: no other thread runs; paths
  // used later are absolute.
  [[nodiscard]] std::string detach(bool keep_directory);

  // Redirects the standard streams to /dev/null unless `keep_streams` (-v); the waiting process
  // exits with status 0.
  [[nodiscard]] std::string ready(bool keep_streams);

 private:
  int ready_fd_ = -1;
};

// A file with the process id, for the lifetime of this object (-P). Owned by main().
class PidFile {
 public:
  PidFile() = default;
  PidFile(const PidFile&) = delete;
  PidFile& operator=(const PidFile&) = delete;
  // Removes the file, unless another file has replaced it.
  ~PidFile();

  // Writes the file completely or not at all.
  [[nodiscard]] std::string write(const std::string& path);

  // The process id in the file at `path` if that process runs, else 0. For a warning before
  // write().
  [[nodiscard]] static pid_t running_process(const std::string& path);

 private:
  std::string path_;  // empty: none was written
  FileIdentity identity_;
};

// A bound network listener. An empty host means every interface; an IPv6 host has no brackets.
struct BoundPort {
  bool udp = false;
  bool ipv6 = false;
  std::string host;
  uint16_t port = 0;
};

// Writes the ports to the file of MEMCACHED_PORT_FILENAME, one `TCP INET: 11211` a line: completely
// or not at all.
[[nodiscard]] std::string write_port_file(const std::string& path,
                                          const std::vector<BoundPort>& ports);

}  // namespace warpcache
