// SPDX-License-Identifier: Apache-2.0
#include "model/reference.h"

#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <ctime>
#include <utility>

namespace warpcache::model {

namespace {

constexpr int kStartTriesMax = 1000;  // of 2 ms
constexpr int kSilenceMs = 5000;

constexpr char kTextBarrier[] = "mg :barrier: k\r\n";
constexpr char kTextBarrierAnswer[] = "EN k:barrier:\r\n";

// noop with an opaque of its own; the answer differs in its first byte.
const std::string& binary_barrier() {
  static const std::string kPacket = std::string("\x80\x0a", 2) + std::string(10, '\0') +
                                     "\xfe\xed\xbe\xef" + std::string(8, '\0');
  return kPacket;
}

}  // namespace

Reference::Reference(const std::string& program) {
  char folder[] = "/tmp/model-XXXXXX";
  if (mkdtemp(folder) == nullptr) return;
  folder_ = folder;
  const std::string path = folder_ + "/s";
  pid_ = fork();
  if (pid_ == 0) {
    execlp(program.c_str(), program.c_str(), "-s", path.c_str(), "-m", "128", "-t", "1", "-u",
           "nobody", "-a", "0777", "-o", "no_lru_maintainer,no_lru_crawler", nullptr);
    _exit(127);
  }
  if (chmod(folder, 0777) != 0) return;
  for (int i = 0; i < kStartTriesMax && !ok_; ++i) {
    const int fd = connect_once();
    ok_ = fd >= 0;
    if (ok_) {
      close(fd);
    } else {
      usleep(2000);
    }
  }
}

Reference::~Reference() {
  for (auto& [number, connection] : connections_) {
    if (connection.fd >= 0) close(connection.fd);
  }
  if (pid_ > 0) {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  if (folder_.empty()) return;
  unlink((folder_ + "/s").c_str());
  rmdir(folder_.c_str());
}

int Reference::connect_once() const {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, (folder_ + "/s").c_str(), sizeof address.sun_path - 1);
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return -1;
  if (connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0) return fd;
  close(fd);
  return -1;
}

int64_t Reference::now() const { return time(nullptr); }

void Reference::write_all(Connection& connection, const std::string& bytes) {
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

void Reference::send(int stream, const std::string& bytes) {
  Connection& connection = connections_[stream];
  if (connection.fd < 0) {
    connection = Connection{};
    connection.fd = connect_once();
    connection.binary = !bytes.empty() && static_cast<uint8_t>(bytes[0]) == 0x80;
  }
  connection.asked = true;
  write_all(connection, bytes);
}

bool Reference::barrier_seen(const Connection& connection) const {
  std::string answer = kTextBarrierAnswer;
  if (connection.binary) {
    answer = binary_barrier();
    answer[0] = '\x81';
  }
  return connection.output.ends_with(answer);
}

// False: nothing came for long.
bool Reference::read_some(Connection& connection) {
  pollfd wait = {connection.fd, POLLIN, 0};
  if (poll(&wait, 1, kSilenceMs) <= 0) return false;
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

// Asks each connection something at the end, and reads until that is answered.
bool Reference::run() {
  for (auto& [number, connection] : connections_) {
    if (!connection.asked) continue;
    connection.asked = false;
    const std::string barrier = connection.binary ? binary_barrier() : kTextBarrier;
    write_all(connection, barrier);
    while (connection.fd >= 0 && !barrier_seen(connection)) {
      if (!read_some(connection)) return false;
    }
    if (connection.fd < 0) continue;
    const size_t size = connection.binary ? barrier.size() : sizeof kTextBarrierAnswer - 1;
    connection.output.resize(connection.output.size() - size);
  }
  return true;
}

std::string Reference::take_output(int stream) {
  return std::exchange(connections_[stream].output, {});
}

}  // namespace warpcache::model
