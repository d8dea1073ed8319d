// SPDX-License-Identifier: Apache-2.0
//
// ucx_hostile HOST PORT SCENARIO: a client of active messages that breaks the rules, or goes in the
// middle of something. Prints `ready` when it has done it; then it stays until it is killed, unless
// the server ends the endpoint: it prints `closed` and why.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <thread>

#include "base/testing/patience.h"
#include "client/am_channel.h"
#include "ucx/raw_client.h"

namespace warpcache {
namespace {

using io::AmHandler;
using io::AmHeader;

constexpr size_t kValue = 512 * 1024;

const std::string& value() {
  static const std::string kBytes(kValue, 'v');
  return kBytes;
}

std::string set_line(const char* key) {
  return std::string("set ") + key + " 0 0 " + std::to_string(kValue) + "\r\n";
}

// False: there is no such scenario.
bool play(RawClient& client, std::string_view scenario) {
  if (scenario == "silent") {  // connects and never says hello
    client.run_for_ms(100);
    return true;
  }
  if (scenario == "no-hello") {
    client.bytes("get a\r\n");
    return true;
  }
  if (scenario == "version") {
    client.send({.version = 2, .handler = AmHandler::kHello}, "");
    return true;
  }
  client.greet();
  if (scenario == "two-hellos") {
    client.hello();
  } else if (scenario == "handler") {
    client.send({.handler = static_cast<AmHandler>(77), .sequence = 1}, "x");
  } else if (scenario == "order") {
    client.send({.sequence = 5}, "get a\r\n");
  } else if (scenario == "window") {  // more than it was allowed, of a line that never ends
    static const std::string piece(8000, 'x');
    for (int i = 0; i < 200 && !client.closed(); ++i) client.bytes(piece);
  } else if (scenario == "noise") {
    static std::string noise(2000 * 64, '\0');  // messages on their way point to it
    uint32_t state = 1;
    for (char& c : noise) c = static_cast<char>((state = state * 1664525 + 1013904223) >> 24);
    for (size_t at = 0; at < noise.size() && !client.closed(); at += 64) {
      client.bytes(std::string_view(noise).substr(at, 64));
      client.run([&, n = 0]() mutable { return ++n > 10; });
    }
    // A server that is fast enough has answered all of it with errors. This header is noise, too.
    AmHeader header;
    for (size_t i = 0; i < sizeof header; ++i) {
      reinterpret_cast<uint8_t*>(&header)[i] = static_cast<uint8_t>(0xa5 + 37 * i);
    }
    client.send(header, "");
  } else if (scenario == "long-rendezvous") {
    static const std::string kLong(io::kAmRendezvousMax + 1, 'x');
    client.bytes(set_line("hostile"));
    client.bytes(kLong, true);
  } else if (scenario == "many-rendezvous") {  // more at a time than is allowed
    client.bytes("set hostile 0 0 100\r\n");
    for (int i = 0; i < 100; ++i) client.bytes(std::string_view(value()).substr(0, 20000), true);
  } else if (scenario == "rendezvous-of-commands") {  // allowed, though useless
    static const std::string kCommands = "set by-rendezvous 0 0 2\r\nok\r\n";
    client.bytes(kCommands, true);
    client.run([&] { return client.received() >= 8 || client.closed(); });
  } else if (scenario == "half-set") {  // a part of a large value, and then nothing
    client.bytes(set_line("hostile"));
    for (int i = 0; i < 10; ++i) client.bytes(std::string_view(value()).substr(0, 8000));
    client.run_for_ms(200);
  } else if (scenario ==
             "set-announced") {  // the value is announced; killed before or in the fetch
    client.bytes(set_line("hostile"));
    client.bytes(value(), true);
  } else if (scenario == "get-announced") {  // values wait to be fetched, and never are
    client.bytes("get large large large large\r\n");
    client.run([&] { return client.announced() > 0 || client.closed(); });
  } else if (scenario == "get-many") {  // much more than a client may hold; it fetches nothing
    for (int i = 0; i < 50; ++i)
      client.bytes("get large large large large large large large large large large\r\n");
    client.run([&] { return client.announced() > 0 || client.closed(); });
  } else if (scenario == "no-reading") {  // asks for much and never looks at replies
    for (int i = 0; i < 30; ++i) client.bytes("get small small small small small small small\r\n");
  } else {
    return false;
  }
  return true;
}

// Stores and reads large values, by rendezvous both ways, until it is killed.
int move_values(const std::string& host, uint16_t port, const std::string& key) {
  using client::Channel;
  std::string failure;
  const auto connector = client::make_am_connector(false, &failure);
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  std::unique_ptr<Channel> channel;
  if (connector == nullptr || !connector->connect(host, port, deadline, &channel).empty()) return 1;
  std::printf("ready\n");
  (void)std::fflush(stdout);
  std::string got(kValue + 7, '\0');
  std::string line;
  for (char letter = 'a';; letter = letter == 'z' ? 'a' : static_cast<char>(letter + 1)) {
    const std::string bytes(kValue, letter);
    const bool moved =
        channel->send(bytes_of(set_line(key.c_str())), bytes_of(bytes), bytes_of("\r\n"),
                      deadline) == Channel::Result::kOk &&
        channel->read_line(&line, deadline) == Channel::Result::kOk && line == "STORED" &&
        channel->send(bytes_of("get " + key + "\r\n"), {}, {}, deadline) == Channel::Result::kOk &&
        channel->read_line(&line, deadline) == Channel::Result::kOk &&
        channel->read(reinterpret_cast<uint8_t*>(got.data()), got.size(), deadline) ==
            Channel::Result::kOk;
    if (!moved || got != bytes + "\r\nEND\r\n") return 1;
  }
}

int run(int argc, char** argv) {
  if (argc != 4) return 64;
  const std::string_view scenario = argv[3];
  if (scenario == "values") {
    return move_values(argv[1], static_cast<uint16_t>(std::atoi(argv[2])), "killed");
  }
  RawClient client;
  const std::string failure = client.open(argv[1], static_cast<uint16_t>(std::atoi(argv[2])));
  if (!failure.empty()) {
    std::fprintf(stderr, "%s\n", failure.c_str());
    return 1;
  }
  if (!play(client, scenario)) return 64;
  std::printf("ready\n");
  (void)std::fflush(stdout);
  // These do not even make progress.
  while (scenario == "no-reading" || scenario == "get-announced" || scenario == "set-announced") {
    std::this_thread::sleep_for(std::chrono::seconds(1));
  }
  client.run([&] { return client.closed(); });
  std::printf("%s %s\n", client.closed() ? "closed" : "open", client.why().c_str());
  (void)std::fflush(stdout);
  std::this_thread::sleep_for(std::chrono::seconds(60));
  return 0;
}

}  // namespace
}  // namespace warpcache

int main(int argc, char** argv) { return warpcache::run(argc, argv); }
