// SPDX-License-Identifier: Apache-2.0
//
// ucx_killed HOST PORT COUNT [SEED]: clients of active messages, one after the other, each of which
// ends itself by signal 9 at a step of a rendezvous, of a value that it stores or reads. The steps
// come one after the other; within those that take time the moment is random. A last kind is killed
// by its parent at a random moment, which may lie within the instructions that write a message.
// Prints how many ended at each step. The server must have 512 KB under the key `large`.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <string_view>

#include "ucx/raw_client.h"

namespace warpcache {
namespace {

size_t value_size = 512 * 1024;
constexpr int kTries =
    20;  // a server that starts UCX anew ends its endpoints: another client tries
constexpr uint32_t kMovingUsMax = 300;
constexpr uint32_t kAnyUsMax = 3000;

enum Step : uint32_t {
  kConnected,
  kHello,
  kWelcomed,
  kSetLine,
  kSetHalfEager,  // a part of the value came eagerly
  kSetAnnounced,  // the rest is announced
  kSetMoving,     // the server fetches it
  kSetFetched,
  kSetEnded,  // the line's end is sent
  kSetStored,
  kGetAsked,
  kGetAnnounced,
  kGetMoving,  // this client fetches it
  kGetFetched,
  kGetSecondMoving,  // of two values
  kGetRead,
  kBye,
  kAnyMoment,
  kSteps
};

constexpr const char* kNames[kSteps] = {
    "connected",     "hello",         "welcomed",    "set-line",    "set-half-eager",
    "set-announced", "set-moving",    "set-fetched", "set-ended",   "set-stored",
    "get-asked",     "get-announced", "get-moving",  "get-fetched", "get-second",
    "get-read",      "bye",           "any-moment"};

const std::string& value() {
  static const std::string kBytes(value_size, 'k');
  return kBytes;
}

class Victim {
 public:
  Victim(uint32_t step, uint64_t seed) : step_(step), random_(seed) {}

  // Does not return, except when the server has ended the endpoint.
  void live(const std::string& host, uint16_t port) {
    if (!client_.open(host, port).empty()) return;
    die_at(kConnected);
    client_.hello();
    die_at(kHello);
    client_.run([this] { return client_.welcomed() || client_.closed(); });
    die_at(kWelcomed);
    do {
      if (step_ < kGetAsked || step_ == kAnyMoment) store();
      if (step_ >= kGetAsked) read();
    } while (step_ == kAnyMoment && !client_.closed());
    client_.bye();
    die_at(kBye);
  }

 private:
  void die() const { (void)kill(getpid(), SIGKILL); }
  void die_at(uint32_t step) const {
    if (step_ == step && !client_.closed()) die();
  }
  // Goes on for some time, at most until `done`.
  template <typename Done>
  void die_within(uint32_t step, Done done) {
    if (step_ != step) return;
    const auto end =
        std::chrono::steady_clock::now() + std::chrono::microseconds(random_() % kMovingUsMax);
    client_.run([&] { return done() || std::chrono::steady_clock::now() >= end; });
    die_at(step);
  }

  void store() {
    const size_t replies = client_.received();
    static const std::string kLine = "set killed 0 0 " + std::to_string(value_size) + "\r\n";
    client_.bytes(kLine);
    die_at(kSetLine);
    const std::string_view whole = value();
    const size_t eager = step_ == kSetHalfEager ? 10 * size_t{io::kAmEagerMax} : 0;
    for (size_t at = 0; at < eager; at += io::kAmEagerMax) {
      client_.bytes(whole.substr(at, io::kAmEagerMax));
    }
    const size_t sent = client_.sent_rendezvous();
    client_.bytes(whole.substr(eager), true);
    die_at(kSetHalfEager);
    die_at(kSetAnnounced);
    const auto fetched = [&] { return client_.sent_rendezvous() > sent || client_.closed(); };
    die_within(kSetMoving, fetched);
    client_.run(fetched);
    die_at(kSetFetched);
    client_.bytes("\r\n");
    die_at(kSetEnded);
    constexpr size_t kReply = 8;  // STORED
    client_.run([&] { return client_.received() >= replies + kReply || client_.closed(); });
    die_at(kSetStored);
  }

  void read() {
    const size_t announced = client_.announced();
    client_.bytes("get large large\r\n");
    die_at(kGetAsked);
    client_.run([&] { return client_.announced() > announced || client_.closed(); });
    die_at(kGetAnnounced);
    if (client_.closed() || client_.announced() == announced) return;
    const auto all = [&] { return client_.fetched() == announced + 1 || client_.closed(); };
    client_.fetch(&first_);
    die_within(kGetMoving, all);
    client_.run(all);
    die_at(kGetFetched);
    client_.run([&] { return client_.announced() > announced + 1 || client_.closed(); });
    if (client_.closed() || client_.announced() == announced + 1) return;
    client_.fetch(&second_);
    const auto both = [&] { return client_.fetched() == announced + 2 || client_.closed(); };
    die_within(kGetSecondMoving, both);
    client_.run(both);
    die_at(kGetRead);
  }

  const uint32_t step_;
  std::minstd_rand random_;
  RawClient client_;
  std::string first_;
  std::string second_;
};

// False: the client has not come to its step.
bool kill_one(const std::string& host, uint16_t port, uint32_t step, uint64_t seed) {
  const pid_t child = fork();
  if (child == 0) {
    Victim(step, seed).live(host, port);
    _exit(1);
  }
  int status = 0;
  if (step == kAnyMoment) {
    std::minstd_rand random(seed);
    // After it has begun, which takes some ten milliseconds.
    (void)usleep(static_cast<useconds_t>(20'000 + random() % (10 * kAnyUsMax)));
    (void)kill(child, SIGKILL);
  }
  return waitpid(child, &status, 0) == child && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
}

int run(int argc, char** argv) {
  if (argc < 4 || argc > 6) return 64;
  const auto port = static_cast<uint16_t>(std::atoi(argv[2]));
  const auto count = static_cast<uint32_t>(std::atoi(argv[3]));
  const uint64_t first = argc > 4 ? std::strtoull(argv[4], nullptr, 10) : 1;
  if (argc > 5) value_size = std::strtoull(argv[5], nullptr, 10);
  uint32_t killed[kSteps] = {};
  for (uint32_t i = 0; i < count; ++i) {
    const uint32_t step = i % kSteps;
    int tries = 0;
    while (!kill_one(argv[1], port, step, first + i)) {
      if (++tries == kTries) {
        std::fprintf(stderr, "no client comes to the step %s\n", kNames[step]);
        return 1;
      }
      (void)usleep(200'000);
    }
    ++killed[step];
  }
  for (uint32_t step = 0; step < kSteps; ++step) std::printf("%s %u\n", kNames[step], killed[step]);
  return 0;
}

}  // namespace
}  // namespace warpcache

int main(int argc, char** argv) { return warpcache::run(argc, argv); }
