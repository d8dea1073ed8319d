// SPDX-License-Identifier: Apache-2.0
#include "options/process.h"

#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

namespace warpcache {
namespace {

std::string system_failure(const std::string& what) {
  return what + ": " + std::strerror(errno) + ".";
}

// The number at the start of the file, or 0.
pid_t read_pid(const std::string& path) {
  constexpr size_t kLineSizeMax = 32;
  std::string text;
  if (!read_text_file(path, kLineSizeMax, &text).empty()) return 0;
  return static_cast<pid_t>(std::strtol(text.c_str(), nullptr, 10));
}

// The limit that even root cannot exceed; 0: unknown.
rlim_t system_descriptors_max() {
  constexpr size_t kLineSizeMax = 32;
  std::string text;
  if (!read_text_file("/proc/sys/fs/nr_open", kLineSizeMax, &text).empty()) return 0;
  return std::strtoull(text.c_str(), nullptr, 10);
}

// Runs in the process that the user started: waits for one byte from the daemon, or for its end.
[[noreturn]] void wait_for_daemon(int fd, pid_t child) {
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  char byte = 0;
  ssize_t got = 0;
  do {
    got = read(fd, &byte, 1);
  } while (got < 0 && errno == EINTR);
  _exit(got == 1 ? 0 : 1);
}

}  // namespace

std::string raise_descriptor_limit(uint32_t connections_max) {
  const rlim_t wanted = connections_max + kDescriptorsBesideConnections;
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
    return system_failure("the limit on open files cannot be read");
  if (limit.rlim_cur >= wanted) return "";
  const rlimit raised{wanted, std::max(limit.rlim_max, wanted)};
  if (setrlimit(RLIMIT_NOFILE, &raised) == 0) return "";
  std::string sentence = "-c " + std::to_string(connections_max) + " needs " +
                         std::to_string(wanted) + " open files, but the limit is " +
                         std::to_string(limit.rlim_max);
  const rlim_t system_max = system_descriptors_max();
  if (system_max != 0 && wanted > system_max) {
    sentence += ", and the system gives a process " + std::to_string(system_max) +
                " at most (sysctl fs.nr_open)";
  } else if (running_as_root()) {
    sentence +=
        ", and root may not raise it here (CAP_SYS_RESOURCE is missing); raise it where "
        "the server is started (ulimit -Hn, LimitNOFILE=, docker run --ulimit nofile=)";
  } else {
    sentence += "; raise it (ulimit -Hn, LimitNOFILE=), start as root";
  }
  sentence += ", or give a smaller -c";
  if (limit.rlim_max > kDescriptorsBesideConnections) {
    sentence += " (at most " + std::to_string(limit.rlim_max - kDescriptorsBesideConnections) + ")";
  }
  return sentence + ".";
}

std::string enable_core_dumps() {
  rlimit limit{RLIM_INFINITY, RLIM_INFINITY};
  if (setrlimit(RLIMIT_CORE, &limit) == 0) return "";
  if (getrlimit(RLIMIT_CORE, &limit) == 0 && limit.rlim_max != 0) {
    limit.rlim_cur = limit.rlim_max;
    if (setrlimit(RLIMIT_CORE, &limit) == 0) return "";
  }
  return "-r: the limit on core files is 0 and cannot be raised.";
}

std::string keep_core_dumps() {
  if (prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) == 0) return "";
  return system_failure("-r: core files cannot be switched on");
}

std::string lock_memory() {
  // After -u the kernel counts locked memory against this limit, so raise it while still root. If
  // that fails, mlockall() reports it below.
  const rlimit unlimited{RLIM_INFINITY, RLIM_INFINITY};
  (void)setrlimit(RLIMIT_MEMLOCK, &unlimited);
  if (mlockall(MCL_CURRENT | MCL_FUTURE | MCL_ONFAULT) != 0)
    return system_failure("-k: memory cannot be locked");
  return "";
}

bool running_as_root() { return getuid() == 0 || geteuid() == 0; }

std::string change_user(const std::string& user) {
  if (!running_as_root()) return "";
  errno = 0;
  const passwd* const entry = getpwnam(user.c_str());
  if (entry == nullptr) return "-u: there is no user \"" + user + "\".";
  if (initgroups(user.c_str(), entry->pw_gid) != 0 || setgid(entry->pw_gid) != 0 ||
      setuid(entry->pw_uid) != 0) {
    return system_failure("-u: cannot become user \"" + user + "\"");
  }
  if (entry->pw_uid != 0 && setuid(0) == 0)
    return "-u: user \"" + user + "\" could become root again.";
  return "";
}

std::string Daemon::detach(bool keep_directory) {
  int fds[2];
  if (pipe2(fds, O_CLOEXEC) != 0) return system_failure("-d: no pipe");
  const pid_t child = fork();
  if (child < 0) return system_failure("-d: cannot fork");
  if (child > 0) {
    close(fds[1]);
    wait_for_daemon(fds[0], child);
  }
  close(fds[0]);
  if (setsid() < 0) _exit(1);
  // Ignore SIGHUP: the end of the session leader sends it. The second fork's child is not a session
  // leader, so it can never get a controlling terminal.
  (void)signal(SIGHUP, SIG_IGN);
  const pid_t grandchild = fork();
  if (grandchild != 0) _exit(grandchild < 0 ? 1 : 0);
  ready_fd_ = fds[1];
  if (!keep_directory && chdir("/") != 0) return system_failure("-d: cannot change to /");
  return "";
}

std::string Daemon::ready(bool keep_streams) {
  if (ready_fd_ < 0) return "";
  std::string failure;
  if (!keep_streams) {
    const int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (null_fd < 0) return system_failure("-d: cannot open /dev/null");
    for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
      if (dup2(null_fd, stream) < 0)
        failure = system_failure("-d: cannot leave the standard streams");
    }
    if (null_fd > STDERR_FILENO) close(null_fd);
  }
  const char byte = 1;
  ssize_t put = 0;
  do {
    put = write(ready_fd_, &byte, 1);
  } while (put < 0 && errno == EINTR);
  close(ready_fd_);
  ready_fd_ = -1;
  return failure;
}

Daemon::~Daemon() {
  if (ready_fd_ >= 0) close(ready_fd_);
}

std::string PidFile::write(const std::string& path) {
  const std::string failure = write_text_file(path, std::to_string(getpid()) + "\n", &identity_);
  if (!failure.empty()) return "-P: the file " + path + " cannot be written: " + failure;
  path_ = path;
  return "";
}

pid_t PidFile::running_process(const std::string& path) {
  const pid_t pid = read_pid(path);
  if (pid <= 0 || pid == getpid()) return 0;
  return kill(pid, 0) == 0 || errno == EPERM ? pid : 0;
}

PidFile::~PidFile() {
  if (!path_.empty() && read_pid(path_) == getpid()) remove_file(path_, identity_);
}

std::string write_port_file(const std::string& path, const std::vector<BoundPort>& ports) {
  std::string text;
  for (const BoundPort& port : ports) {
    text += std::string(port.udp ? "UDP" : "TCP") + (port.ipv6 ? " INET6: " : " INET: ") +
            std::to_string(port.port) + "\n";
  }
  const std::string failure = write_text_file(path, text);
  if (failure.empty()) return "";
  return "MEMCACHED_PORT_FILENAME: the file " + path + " cannot be written: " + failure;
}

}  // namespace warpcache
