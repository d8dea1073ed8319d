// SPDX-License-Identifier: Apache-2.0
#include "model/server_process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <stdexcept>
#include <system_error>
#include <utility>

#include "base/testing/patience.h"

namespace warpcache::model {

namespace {

constexpr int kStartTriesMax = 60'000;  // of 1 ms
constexpr int kSilenceMs = 20'000;      // no server needs so long to answer or to close
constexpr int kSilentAgainMs = 1000;    // of another stream, when one was silent for so long
constexpr int kPatienceToEnd = 50;      // of an ended connection, beside one that may say more
constexpr useconds_t kPieceGapUs = 20;

constexpr int kIdsGivenOut = 1100;
// A server's first second is above 1, which is the end of what has ended long ago.
constexpr int64_t kClockStart = 2;

constexpr char kTextBarrier[] = "mg :barrier: k\r\n";
constexpr char kTextBarrierAnswer[] = "EN k:barrier:\r\n";

// noop with an opaque of its own; the answer differs in its first byte.
const std::string& binary_barrier() {
  static const std::string kPacket = std::string("\x80\x0a", 2) + std::string(10, '\0') +
                                     "\xfe\xed\xbe\xef" + std::string(8, '\0');
  return kPacket;
}

std::vector<std::string> command_line(const ProcessConfig& config, const std::string& socket) {
  std::vector<std::string> words = {config.program, "-s",     socket, "-t",  "1",
                                    "-u",           "nobody", "-a",   "0777"};
  words.insert(words.end(), config.options.begin(), config.options.end());
  return words;
}

constexpr char kSocket[] = "/s";

}  // namespace

std::string temporary_folder(const char* name) {
  std::error_code failure;
  std::filesystem::path path = std::filesystem::temp_directory_path(failure);
  if (failure) path = "/tmp";
  std::string made = path / (std::string(name) + "XXXXXX");
  return mkdtemp(made.data()) != nullptr ? made : "";
}

ServerProcess::ServerProcess(const ProcessConfig& config)
    : patience_ms_(config.patience_ms),
      runs_on_(config.runs_on),
      stop_(config.stop),
      silence_ms_(config.stop != nullptr ? kPatienceMs : kSilenceMs),
      cuts_(config.cuts) {
  start(config);
  for (int i = 0; i < kStartTriesMax && control_ < 0 && folder_ != ""; ++i) {
    control_ = connect_once();
    if (control_ >= 0) break;
    if (has_ended()) return;
    usleep(1000);
  }
  if (control_ < 0) return;
  version_ = ask("version");
  ok_ = version_.starts_with("VERSION ");
  version_.erase(0, std::min<size_t>(version_.size(), 8));
  // Scripts use CAS ids up to 1000 as numbers that no item has.
  std::string sets;
  for (int i = 0; i < kIdsGivenOut; ++i) sets += "ms :first: 0 q\r\n\r\n";
  (void)ask(sets + "md :first:");
  clock_moves_ = ask("debugtime p") == "OK";
  read_clock();
}

// The server's own time: another clock's second may end between two looks.
void ServerProcess::read_clock() {
  const std::string stats = ask("stats", "END\r\n");
  const auto value_of = [&stats](const std::string& name) {
    const std::string lead = "STAT " + name + " ";
    const size_t at = stats.find(lead);
    return at == std::string::npos ? 0
                                   : std::strtoll(stats.c_str() + at + lead.size(), nullptr, 10);
  };
  stopped_at_ = value_of("time");
  unix_start_ = stopped_at_ - value_of("uptime") - kClockStart;
  ok_ = ok_ && stopped_at_ != 0;
  if (!clock_moves_) return;
  // What it makes of a date: its `time` may be that of another second.
  constexpr int64_t kFarSeconds = 100'000;
  const std::string date = std::to_string(stopped_at_ + kFarSeconds);
  const std::string left = ask("ms :clock: 0 q T" + date + "\r\n\r\nmg :clock: t");
  (void)ask("md :clock:");
  if (!left.starts_with("HD t")) return;  // another server has no meta commands
  const int64_t ahead = kFarSeconds - std::strtoll(left.c_str() + 4, nullptr, 10);
  stopped_at_ += ahead;
  unix_start_ += ahead;
}

void ServerProcess::start(const ProcessConfig& config) {
  folder_ = temporary_folder("model-");
  if (folder_.empty()) return;
  if (chmod(folder_.c_str(), 0777) != 0) return;
  std::vector<std::string> words = command_line(config, folder_ + kSocket);
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  pid_ = fork();
  if (pid_ != 0) return;
  if (config.ends_with_parent) (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (config.stop != nullptr) (void)setpgid(0, 0);
  // What it logs, by `verbosity` for instance, is not compared.
  const int nowhere = open("/dev/null", O_RDWR);
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) dup2(nowhere, fd);
  execvp(arguments[0], arguments.data());
  _exit(127);
}

ServerProcess::~ServerProcess() {
  for (auto& [number, connection] : connections_) {
    if (connection.fd >= 0) close(connection.fd);
  }
  if (control_ >= 0) close(control_);
  if (pid_ > 0) {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  remove_files();
}

void ServerProcess::remove_files() {
  if (folder_.empty()) return;
  // A program between may have more files there.
  std::error_code failure;
  std::filesystem::remove_all(folder_, failure);
  folder_.clear();
}

int ServerProcess::connect_once() const {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, (folder_ + kSocket).c_str(), sizeof address.sun_path - 1);
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return -1;
  if (connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0) return fd;
  close(fd);
  return -1;
}

bool ServerProcess::has_ended(int* status) {
  if (pid_ <= 0 || waitpid(pid_, status, WNOHANG) != pid_) return false;
  pid_ = -1;
  return true;
}

int64_t ServerProcess::now() const {
  return (clock_moves_ ? stopped_at_ + moved_seconds_ : time(nullptr)) - unix_start_;
}

uint64_t ServerProcess::stat(const std::string& name) {
  const std::string all = ask("stats", "END\r\n");
  const std::string head = "STAT " + name + " ";
  const size_t at = all.find(head);
  return at == std::string::npos ? 0 : std::strtoull(all.c_str() + at + head.size(), nullptr, 10);
}

std::string ServerProcess::ask(const std::string& line, const std::string& end) {
  const std::string request = line + "\r\n";
  (void)::send(control_, request.data(), request.size(), MSG_NOSIGNAL);
  std::string answer;
  while (!answer.ends_with(end)) {
    pollfd wait = {control_, POLLIN, 0};
    char buffer[4096];
    const int ready = poll(&wait, 1, kSilenceMs);
    if (ready < 0 && errno == EINTR) continue;  // by the signal that ends the run: soon enough
    if (ready <= 0) return {};
    const ssize_t got = recv(control_, buffer, sizeof buffer, 0);
    if (got <= 0) return {};
    answer.append(buffer, static_cast<size_t>(got));
  }
  answer.resize(answer.size() - end.size());
  return answer;
}

void ServerProcess::advance(uint32_t seconds) {
  if (!clock_moves_) return;
  // memcached moves its clock by the sum of all steps that it was ever given.
  const bool sums_up = !version_.ends_with("-warpcache");
  const int64_t step = static_cast<int64_t>(seconds) - (sums_up ? last_step_ : 0);
  (void)ask("debugtime " + std::to_string(step));
  last_step_ = seconds;
  moved_seconds_ += seconds;
}

void ServerProcess::write_all(Connection& connection, const std::string& bytes) const {
  size_t at = 0;
  while (connection.fd >= 0 && at < bytes.size()) {
    const ssize_t put =
        ::send(connection.fd, bytes.data() + at, bytes.size() - at, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (put > 0) {
      at += static_cast<size_t>(put);
      continue;
    }
    // Its answers may have to be read first.
    pollfd wait = {connection.fd, POLLIN | POLLOUT, 0};
    if (poll(&wait, 1, kSilenceMs) <= 0 || (wait.revents & (POLLERR | POLLHUP)) != 0) return;
    char buffer[65536];
    const ssize_t got = recv(connection.fd, buffer, sizeof buffer, MSG_DONTWAIT);
    if (got > 0) connection.output.append(buffer, static_cast<size_t>(got));
  }
}

void ServerProcess::send(int stream, const std::string& bytes) {
  Connection& connection = connections_[stream];
  if (connection.fd < 0 && !connection.asked) {
    std::string output = std::move(connection.output);
    connection = Connection{};
    connection.output = std::move(output);
    connection.fd = connect_once();
    connection.binary = !bytes.empty() && static_cast<uint8_t>(bytes[0]) == 0x80;
  }
  connection.asked = true;
  if (runs_on_) {
    connection.queued += bytes;
    return;
  }
  for (size_t at = 0; at < bytes.size();) {
    const size_t size = cuts_.next(bytes.size() - at);
    write_all(connection, bytes.substr(at, size));
    at += size;
    if (at < bytes.size()) usleep(kPieceGapUs);
  }
}

bool ServerProcess::barrier_seen(const Connection& connection) const {
  std::string answer = kTextBarrierAnswer;
  if (connection.binary) {
    answer = binary_barrier();
    answer[0] = '\x81';
  }
  return connection.output.ends_with(answer);
}

// False: nothing came for so long.
bool ServerProcess::read_some(Connection& connection, int wait_ms) const {
  pollfd wait = {connection.fd, POLLIN, 0};
  int ready = 0;
  do {
    ready = poll(&wait, 1, wait_ms);
  } while (ready < 0 && errno == EINTR && !stops());
  if (ready <= 0) return false;
  char buffer[65536];
  const ssize_t got = recv(connection.fd, buffer, sizeof buffer, 0);
  if (got > 0) {
    connection.output.append(buffer, static_cast<size_t>(got));
  } else {
    close(connection.fd);
    connection.fd = -1;
  }
  return true;
}

bool ServerProcess::read_to_barrier(Connection& connection) const {
  connection.standing = Standing::kClosed;
  bool ended = false;
  while (connection.fd >= 0 && !barrier_seen(connection)) {
    const int end_ms = std::min(patience_ms_ * kPatienceToEnd, kSilenceMs);
    if (read_some(connection, ended ? end_ms : patience_ms_)) continue;
    if (ended) return false;
    connection.standing = Standing::kWaits;
    shutdown(connection.fd, SHUT_WR);
    ended = true;
  }
  if (!barrier_seen(connection)) return true;
  connection.standing = Standing::kInStep;
  const size_t size = connection.binary ? binary_barrier().size() : sizeof kTextBarrierAnswer - 1;
  connection.output.resize(connection.output.size() - size);
  // A connection that was ended in impatience is opened again by the next send().
  if (ended && connection.fd >= 0) close(connection.fd);
  if (ended) connection.fd = -1;
  return true;
}

void ServerProcess::write_queued(Connection& connection) {
  connection.asked = false;
  const std::string bytes = std::exchange(connection.queued, {});
  for (size_t at = 0; at < bytes.size();) {
    const size_t size = cuts_.next(bytes.size() - at);
    write_all(connection, bytes.substr(at, size));
    at += size;
  }
}

// Asks each connection something at the end, and reads until that is answered.
bool ServerProcess::run() {
  for (auto& [number, connection] : connections_) {
    if (!connection.asked) continue;
    if (runs_on_) {
      write_queued(connection);
      continue;
    }
    write_all(connection, connection.binary ? binary_barrier() : kTextBarrier);
    connection.asked = false;
    if (!read_to_barrier(connection)) return false;
  }
  return true;
}

bool ServerProcess::closed(int stream) {
  return runs_on_ ? connections_[stream].fd < 0 : standing(stream) != Standing::kInStep;
}

bool ServerProcess::wait(int stream) {
  Connection& connection = connections_[stream];
  if (connection.fd < 0 || stops()) return false;
  if (read_some(connection, silence_ms_)) return true;
  silence_ms_ = std::min(silence_ms_, kSilentAgainMs);
  return false;
}

std::string ServerProcess::take_output(int stream) {
  return std::exchange(connections_[stream].output, {});
}

std::string ServerProcess::finish() {
  int status = 0;
  if (has_ended(&status)) {
    return "the server has ended by itself, status " + std::to_string(status);
  }
  // A program between may have lost its server, and all streams with it.
  if (!runs_on_ || ask("version") == "VERSION " + version_) return {};
  return "the server does not answer any more on the stream that was opened first";
}

std::unique_ptr<Server> start_process(const ProcessConfig& config) {
  auto server = std::make_unique<ServerProcess>(config);
  if (!server->ok()) throw std::runtime_error(config.program + " does not start");
  if (!server->clock_moves()) throw std::runtime_error(config.program + " has no debugtime");
  return server;
}

}  // namespace warpcache::model
