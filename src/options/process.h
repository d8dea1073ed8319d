// SPDX-License-Identifier: Apache-2.0
//
// What -c -d -k -P -r -u and MEMCACHED_PORT_FILENAME do to the process. Every function returns an
// empty string or one sentence that says what failed; the caller decides whether that ends the
// start. All run on the main thread, before others start, unless said otherwise.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "options/text_file.h"

namespace warpcache {

// Descriptors that a server needs beside its clients' connections: standard streams, listeners,
// event queues, logs.
inline constexpr uint64_t kDescriptorsBesideConnections = 256;

// Makes room for `connections_max` connections (-c), up to the hard limit, and above it where the
// kernel lets us.
[[nodiscard]] std::string raise_descriptor_limit(uint32_t connections_max);

// Raises the limit on core files as far as it goes (-r). An error where they stay switched off.
[[nodiscard]] std::string enable_core_dumps();

// The kernel dumps no core of a process that has changed its user; from here on it does again (-r,
// after change_user()).
[[nodiscard]] std::string keep_core_dumps();

// Locks memory as pages come into use (-k); reserving address space stays free of cost.
[[nodiscard]] std::string lock_memory();

// True for root, real or effective.
[[nodiscard]] bool running_as_root();

// Becomes `user` for good: groups, group, user (-u). Does nothing unless running as root, as
// memcached does.
[[nodiscard]] std::string change_user(const std::string& user);

// Detaches from the terminal (-d) while the process that was started waits, so that its exit status
// tells whether the server is up. Owned by main().
class Daemon {
 public:
  Daemon() = default;
  Daemon(const Daemon&) = delete;
  Daemon& operator=(const Daemon&) = delete;
  // Lets the waiting process exit with status 1, unless ready() was called.
  ~Daemon();

  // Forks twice, starts a session, and leaves for / unless `keep_directory` (core files are wanted
  // where we are). Returns in the daemon only; the first process exits here once ready() is called
  // (0) or the daemon ends (1). REQUIRES: no other thread runs. Paths used later are absolute.
  [[nodiscard]] std::string detach(bool keep_directory);

  // Standard streams go to /dev/null unless `keep_streams` (-v), and the waiting process exits with
  // status 0.
  [[nodiscard]] std::string ready(bool keep_streams);

 private:
  int ready_fd_ = -1;
};

// The process id in a file, for as long as this lives (-P). Owned by main().
class PidFile {
 public:
  PidFile() = default;
  PidFile(const PidFile&) = delete;
  PidFile& operator=(const PidFile&) = delete;
  // Removes the file that was written, while it still lies there.
  ~PidFile();

  // Writes the file whole or not at all.
  [[nodiscard]] std::string write(const std::string& path);

  // The process that the file at `path` names, if it runs; 0 otherwise. For a warning before
  // write().
  [[nodiscard]] static pid_t running_process(const std::string& path);

 private:
  std::string path_;  // empty: none was written
  FileIdentity identity_;
};

// A network listener as bound. An empty host is every interface; an IPv6 host has no brackets.
struct BoundPort {
  bool udp = false;
  bool ipv6 = false;
  std::string host;
  uint16_t port = 0;
};

// Lists the ports in the file of MEMCACHED_PORT_FILENAME, one `TCP INET: 11211` a line. Whole or
// not at all.
[[nodiscard]] std::string write_port_file(const std::string& path,
                                          const std::vector<BoundPort>& ports);

}  // namespace warpcache
