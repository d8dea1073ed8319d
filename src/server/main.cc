// SPDX-License-Identifier: Apache-2.0
//
// warpcached: parses the command line, starts the server, waits for its end.
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spdlog/spdlog.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <exception>
#include <string>
#include <utility>

#include "options/banner.h"
#include "options/doctor.h"
#include "options/logging.h"
#include "options/options.h"
#include "options/plan.h"
#include "options/process.h"
#include "options/service.h"
#include "options/syscall_filter.h"
#include "server/selftest.h"
#include "server/server.h"

namespace warpcache::server {
namespace {

// Exit status if the system refuses what the options need (sysexits.h EX_OSERR).
constexpr int kExitRefused = 71;
constexpr int kExitFailed = 70;  // a necessary part has failed while running

// Opens /dev/null for closed standard streams. Otherwise a connection could get the number of
// standard error, and the log would be written to a client.
void fill_standard_streams() {
  for (int fd = open("/dev/null", O_RDWR); fd >= 0; fd = open("/dev/null", O_RDWR)) {
    if (fd <= STDERR_FILENO) continue;
    (void)close(fd);
    return;
  }
}

int fail(const std::string& sentence, int exit_status = kExitRefused) {
  spdlog::error("{}", sentence);
  return exit_status;
}

// Blocks the signals that main() waits for, in this thread and all threads that it starts. Returns
// a descriptor to read them from.
int take_signals() {
  (void)signal(SIGPIPE, SIG_IGN);
  sigset_t set;
  sigemptyset(&set);
  for (const int number : {SIGINT, SIGTERM, SIGUSR1, SIGHUP}) sigaddset(&set, number);
  if (pthread_sigmask(SIG_BLOCK, &set, nullptr) != 0) return -1;
  return signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
}

// The next signal, or 0.
int read_signal(int signal_fd) {
  signalfd_siginfo info{};
  return read(signal_fd, &info, sizeof info) == sizeof info ? static_cast<int>(info.ssi_signo) : 0;
}

admin::StopKind stop_kind_of(int signal_number) {
  if (signal_number == SIGUSR1) return admin::StopKind::kGraceful;
  return signal_number == SIGINT || signal_number == SIGTERM ? admin::StopKind::kNow
                                                             : admin::StopKind::kNone;
}

// Waits until a signal or a command ends the server.
admin::StopKind wait_for_end(Server& server, int signal_fd) {
  while (true) {
    pollfd fds[2] = {{signal_fd, POLLIN, 0}, {server.stop_fd(), POLLIN, 0}};
    if (poll(fds, 2, -1) < 0 && errno != EINTR) return admin::StopKind::kNow;
    if (server.asked_to_stop() != admin::StopKind::kNone) return server.asked_to_stop();
    const int number = read_signal(signal_fd);
    if (number == SIGHUP) server.reload();
    const admin::StopKind kind = stop_kind_of(number);
    if (kind != admin::StopKind::kNone) return kind;
  }
}

// Ends the server. A second signal turns a graceful stop into an immediate one. Makes no system
// call that can fail for lack of memory or descriptors.
void stop(Server& server, admin::StopKind kind, int signal_fd) {
  spdlog::info("{}", kind == admin::StopKind::kGraceful ? "stopping gracefully" : "stopping");
  server.begin_stop(kind);
  while (!server.has_ended()) {
    pollfd fds[2] = {{signal_fd, POLLIN, 0}, {server.ended_fd(), POLLIN, 0}};
    (void)poll(fds, 2, -1);
    if (stop_kind_of(read_signal(signal_fd)) == admin::StopKind::kNow) server.hurry();
  }
  server.finish_stop();
}

// Prepares the process as the options say, before there are other threads.
std::string prepare_process(const Options& options) {
  std::string failure = raise_descriptor_limit(options.server.connections_max);
  if (failure.empty() && options.process.core_dumps) failure = enable_core_dumps();
  return failure;
}

std::string become_user(const Options& options) {
  const std::string& user = options.process.user;
  if (user.empty()) {
    if (running_as_root()) spdlog::warn("running as root; -u gives a user to run as");
    return "";
  }
  std::string failure = change_user(user);
  if (failure.empty() && options.process.core_dumps) failure = keep_core_dumps();
  return failure;
}

void announce(const Options& options, const Server& server) {
  BannerFacts facts;
  facts.engine = server.engine_text();
  facts.memory_bytes = server.memory_bytes();
  facts.ports = server.ports();
  facts.unix_path = options.listen.unix_path;
  facts.ucx = server.ucx_text();
  facts.frames = server.frame_ports();
  facts.nic_cache = server.nic_cache_text();
  const std::string text = banner_text(options, facts);
  (void)std::fwrite(text.data(), 1, text.size(), stdout);
  (void)std::fflush(stdout);
}

// Writes the pid and port files. As in memcached, a failure is only logged.
void write_files(const Options& options, const Server& server, PidFile& pid_file) {
  std::string failure;
  if (!options.listen.port_filename.empty()) {
    failure = write_port_file(options.listen.port_filename, server.ports());
    if (!failure.empty()) spdlog::warn("{}", failure);
  }
  if (options.process.pid_file.empty()) return;
  const pid_t other = PidFile::running_process(options.process.pid_file);
  if (other != 0) {
    spdlog::warn("{} names process {}, which runs; replacing it", options.process.pid_file, other);
  }
  failure = pid_file.write(options.process.pid_file);
  if (!failure.empty()) spdlog::warn("{}", failure);
}

FilterNeeds filter_needs(const Options& options) {
  FilterNeeds needs;
  needs.ucx = options.listen.ucx.has_value();
  needs.cuda = options.server.engine == EngineChoice::kCuda;
  for (const FramesOptions& frames : options.frames) {
    using Kind = FramesOptions::Kind;
    needs.frames = needs.frames || frames.kind == Kind::kDpdk || frames.kind == Kind::kRing;
  }
  return needs;
}

int serve(const Options& options) {
  for (const std::string& note : options.notes) spdlog::info("{}", note);
  std::string failure = prepare_process(options);
  if (!failure.empty()) return fail(failure);
  Server server(options);
  failure = server.open_tls();
  if (!failure.empty()) return fail(failure, kExitUsage);
  failure = server.open_ports();
  if (!failure.empty()) return fail(failure);
  Daemon daemon;
  if (options.process.daemonize) failure = daemon.detach(options.process.core_dumps);
  // Before -u, because the other user may not be allowed to lock memory.
  if (failure.empty() && options.process.lock_memory) failure = lock_memory();
  if (failure.empty()) failure = become_user(options);
  if (!failure.empty()) return fail(failure);
  const int signal_fd = take_signals();
  if (signal_fd < 0) return fail("signals cannot be received.");
  failure = server.start();
  if (!failure.empty()) return fail(failure);
  // The server listens already: a client that reads the port from the file can connect, and waits
  // in the backlog.
  PidFile pid_file;
  write_files(options, server, pid_file);
  server.serve();
  notify_ready();
  if (options.process.drop_privileges) {
    failure = install_syscall_filter(filter_needs(options));
    if (!failure.empty()) return fail(failure);
  }
  announce(options, server);
  failure = daemon.ready(options.process.verbosity > 0);
  if (!failure.empty()) return fail(failure);
  const admin::StopKind kind = wait_for_end(server, signal_fd);
  stop(server, kind, signal_fd);
  if (kind == admin::StopKind::kGraceful) {
    failure = server.save_items();
    if (!failure.empty()) spdlog::error("{}", failure);
  }
  (void)close(signal_fd);
  return server.has_failed() ? kExitFailed : 0;
}

int plan(const Options& options) {
  Plan plan;
  const std::string failure = make_plan(options, find_simulator(), &plan);
  if (!failure.empty()) {
    (void)std::fputs((failure + "\n").c_str(), stderr);
    return kExitRefused;
  }
  (void)std::fputs(plan_text(plan, options.process.plan).c_str(), stdout);
  return 0;
}

}  // namespace
}  // namespace warpcache::server

int main(int argc, char** argv) {
  warpcache::server::fill_standard_streams();
  const warpcache::ParseResult parsed = warpcache::parse_options(argc, argv);
  if (!parsed.options.has_value()) {
    std::FILE* const out = parsed.exit_status == 0 ? stdout : stderr;
    (void)std::fwrite(parsed.text.data(), 1, parsed.text.size(), out);
    return parsed.exit_status;
  }
  if (parsed.options->process.doctor) {
    const auto findings = warpcache::examine(*parsed.options, warpcache::this_machine());
    (void)std::fputs(warpcache::findings_text(findings).c_str(), stdout);
    return warpcache::needs_mending(findings) ? 1 : 0;
  }
  if (!parsed.options->process.plan.empty()) return warpcache::server::plan(*parsed.options);
  warpcache::start_logging(parsed.options->process.verbosity);
  // The system may refuse memory or a thread at start-up.
  try {
    if (parsed.options->gpu.selftest) return warpcache::server::run_selftest(*parsed.options);
    return warpcache::server::serve(*parsed.options);
  } catch (const std::exception& failure) {
    return warpcache::server::fail(std::string("the system does not give what the server needs: ") +
                                   failure.what() + ".");
  }
}
