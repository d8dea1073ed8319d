// SPDX-License-Identifier: Apache-2.0
//
// ucx_latency: the time of one request at a time, or the rate of several clients that one thread
// serves in rounds. Reads jobs from standard input and writes a JSON line for each:
//   KIND ADDRESS PORT OPERATION SIZE CLIENTS REQUESTS [DEPTH]
// KIND: tcp, unix (ADDRESS is a path) or ucx. OPERATION: get, set, 10:90 (sets and gets), 1:1, or
// hold, which keeps CLIENTS connections open until the next line. DEPTH: gets of a client that are
// sent by one call; default 1. Every value is checked.
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <iostream>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "client/am_channel.h"
#include "client/channel.h"

namespace warpcache {
namespace {

using client::AmConnector;
using client::Channel;
using Clock = std::chrono::steady_clock;

struct Job {
  std::string kind;
  std::string address;
  int port = 0;
  std::string operation;
  size_t size = 0;
  size_t clients = 1;
  size_t requests = 0;
  size_t depth = 1;
};

void check(bool ok, const std::string& what) {
  if (!ok) throw std::runtime_error(what);
}

class Client {
 public:
  Client(const Job& job, size_t number, AmConnector* connector)
      : job_(job), key_("latency-" + std::to_string(job.size) + "-" + std::to_string(number)) {
    const Channel::Deadline until = deadline();
    std::string failure;
    const auto port = static_cast<uint16_t>(job.port);
    if (job.kind == "ucx") {
      check(connector != nullptr, "there is no UCX");
      failure = connector->connect(job.address, port, until, &channel_);
    } else if (job.kind == "unix") {
      failure = client::connect_unix(job.address, &channel_);
    } else {
      failure = client::connect_tcp(job.address, port, until, &channel_);
    }
    check(failure.empty(), failure);
    value_.resize(job.size);
    for (size_t i = 0; i < job.size; ++i) value_[i] = static_cast<uint8_t>(i * 7 + number);
    got_.resize(job.size);
    set_ = "set " + key_ + " 0 0 " + std::to_string(job.size) + "\r\n";
    for (size_t i = 0; i < job.depth; ++i) get_ += "get " + key_ + "\r\n";
    send_set();
    finish_set();
  }

  // `number`: of the round.
  void send(size_t number) { sets(number) ? send_set() : send_get(); }
  void finish(size_t number) {
    if (sets(number)) return finish_set();
    for (size_t i = 0; i < job_.depth; ++i) finish_get();
  }
  void verify() {
    if (job_.operation != "set") check(got_ == value_, "another value came");
  }

 private:
  static Channel::Deadline deadline() { return Clock::now() + std::chrono::seconds(10); }
  static void check_ok(Channel::Result result) {
    check(result == Channel::Result::kOk, "the connection has failed");
  }

  bool sets(size_t number) const {
    if (job_.operation == "set") return true;
    if (job_.operation == "10:90") return number % 10 == 9;
    return job_.operation == "1:1" && number % 2 == 1;
  }

  void send_set() {
    check_ok(channel_->send(bytes_of(set_), {value_.data(), value_.size()}, bytes_of("\r\n"),
                            deadline()));
  }
  void finish_set() {
    check_ok(channel_->read_line(&line_, deadline()));
    check(line_ == "STORED", line_);
  }
  void send_get() { check_ok(channel_->send(bytes_of(get_), {}, {}, deadline())); }
  void finish_get() {
    const Channel::Deadline until = deadline();
    check_ok(channel_->read_line(&line_, until));
    check(line_.starts_with("VALUE "), line_);
    check_ok(channel_->read(got_.data(), got_.size(), until));
    uint8_t end[7];
    check_ok(channel_->read(end, sizeof end, until));
    check(std::memcmp(end, "\r\nEND\r\n", sizeof end) == 0, "the value has another size");
  }

  const Job& job_;
  std::string key_;
  std::string set_;
  std::string get_;
  std::string line_;
  std::vector<uint8_t> value_;
  std::vector<uint8_t> got_;
  std::unique_ptr<Channel> channel_;
};

double cpu_seconds() {
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
  };
  return seconds(used.ru_utime) + seconds(used.ru_stime);
}

// `depth` requests of each client a round, all sent before the first answer is read.
std::string run(const Job& job, AmConnector* connector) {
  std::vector<std::unique_ptr<Client>> clients;
  for (size_t i = 0; i < job.clients; ++i) {
    clients.push_back(std::make_unique<Client>(job, i, connector));
  }
  if (job.operation == "hold") {
    std::cout << "{\"held\": " << clients.size() << "}" << std::endl;
    std::string line;
    std::getline(std::cin, line);
    return "{\"held\": 0}";
  }
  const size_t rounds = std::max<size_t>(1, job.requests / job.clients / job.depth);
  std::vector<int64_t> times(rounds);
  const auto round = [&clients](size_t number) {
    for (auto& client : clients) client->send(number);
    for (auto& client : clients) client->finish(number);
  };
  const size_t warm_up = rounds / 10 + 1;
  for (size_t i = 0; i < warm_up; ++i) round(i);
  for (auto& client : clients) client->verify();
  const double cpu_before = cpu_seconds();
  const Clock::time_point begun = Clock::now();
  size_t number = 0;
  for (int64_t& time : times) {
    const Clock::time_point sent = Clock::now();
    round(number++);
    time = std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - sent).count();
  }
  const double seconds = std::chrono::duration<double>(Clock::now() - begun).count();
  const double cpu = cpu_seconds() - cpu_before;
  const auto requests = static_cast<double>(rounds * job.clients * job.depth);
  for (auto& client : clients) client->verify();
  std::sort(times.begin(), times.end());
  const auto at = [&](double part) {
    return static_cast<double>(times[static_cast<size_t>(part * static_cast<double>(rounds - 1))]) /
           1000.0;
  };
  std::ostringstream out;
  out << "{\"min_us\": " << at(0) << ", \"p50_us\": " << at(0.5) << ", \"p99_us\": " << at(0.99)
      << ", \"rate\": " << requests / seconds << ", \"cpu_us\": " << cpu / requests * 1e6
      << ", \"requests\": " << rounds * job.clients * job.depth
      << ", \"with_warm_up\": " << (rounds + warm_up) * job.clients * job.depth + job.clients
      << "}";
  return out.str();
}

int serve() {
  std::string failure;
  const std::unique_ptr<AmConnector> connector = client::make_am_connector(false, &failure);
  std::string line;
  while (std::getline(std::cin, line)) {
    Job job;
    std::istringstream words(line);
    words >> job.kind >> job.address >> job.port >> job.operation >> job.size >> job.clients >>
        job.requests;
    if (size_t depth = 0; words >> depth) job.depth = depth;
    try {
      std::cout << run(job, connector.get()) << std::endl;
    } catch (const std::exception& error) {
      std::cerr << line << ": " << error.what() << std::endl;
      return 1;
    }
  }
  return 0;
}

}  // namespace
}  // namespace warpcache

int main() { return warpcache::serve(); }
