// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <optional>
#include <thread>
#include <vector>

#include "io/socket/testing/line_server.h"

namespace warpcache::io {
namespace {

using std::chrono::milliseconds;

std::string pattern(size_t size) {
  std::string text(size, '\0');
  for (size_t i = 0; i < size; ++i) text[i] = static_cast<char>('a' + (i * 7 + i / 251) % 26);
  return text;
}

std::string sum_reply(const std::string& bytes) {
  uint32_t sum = 0;
  for (const char c : bytes) sum = sum * 31 + static_cast<uint8_t>(c);
  return std::to_string(bytes.size()) + " " + std::to_string(sum) + "\n";
}

std::string command(const std::string& name, const std::string& bytes) {
  return name + " " + std::to_string(bytes.size()) + "\n" + bytes;
}

TEST(StreamTest, ALineIsAnswered) {
  LineServer server({});
  Client client(server.port());
  EXPECT_EQ(client.ask("echo hello\n", 6), "hello\n");
}

TEST(StreamTest, Ipv6) {
  LineServer server({.ipv6 = true});
  Client client(server.port(), true);
  EXPECT_EQ(client.ask("echo hello\n", 6), "hello\n");
}

void list_all(const SocketTransport& transport, std::vector<ConnectionInfo>& list) {
  uint32_t next = 0;
  while (transport.list_connections(next, list)) {
  }
}

TEST(StreamTest, UnixSocketIsMadeAndRemoved) {
  const std::string path = testing::TempDir() + "stream_test." + std::to_string(getpid());
  {
    LineServer server({.unix_path = path});
    Client client(path);
    EXPECT_EQ(client.ask("echo hello\n", 6), "hello\n");
    std::vector<ConnectionInfo> list;
    for (size_t i = 0; i < 2; ++i) list_all(server.transport(i), list);
    ASSERT_EQ(list.size(), 1u);
    EXPECT_EQ(list[0].listen_address, "unix:" + path);
  }
  EXPECT_NE(access(path.c_str(), F_OK), 0);
}

TEST(StreamTest, ARequestInPiecesAtEveryBoundary) {
  LineServer server({.workers = 1});
  Client client(server.port());
  const std::string bytes = pattern(40);
  const std::string text = command("need", bytes) + "echo a\n" + command("body", bytes);
  const std::string reply = sum_reply(bytes) + "a\n" + sum_reply(bytes);
  for (size_t at = 1; at < text.size(); ++at) {
    client.send(text.substr(0, at));
    std::this_thread::sleep_for(milliseconds(1));
    ASSERT_EQ(client.ask(text.substr(at), reply.size()), reply) << "cut at " << at;
  }
  for (const char c : text) client.send({&c, 1});
  EXPECT_EQ(client.receive(reply.size()), reply);
  EXPECT_TRUE(eventually([&] { return server.transport(0).input_bytes() == 0; }));
}

TEST(StreamTest, APipelineIsReceivedInFewChunks) {
  LineServer server({.workers = 1});
  Client client(server.port());
  constexpr int kCount = 10'000;
  std::string text;
  std::string reply;
  for (int i = 0; i < kCount; ++i) {
    text += "echo " + std::to_string(i) + "\n";
    reply += std::to_string(i) + "\n";
  }
  std::thread sender([&] { client.send(text); });
  EXPECT_EQ(client.receive(reply.size()), reply);
  sender.join();
  EXPECT_LT(server.worker(0).chunks(), 200u);
}

TEST(StreamTest, LargeMessagesAndBodiesMix) {
  LineServer server({.workers = 1});
  Client client(server.port());
  const std::string whole = pattern(60'000);
  const std::string body = pattern(1'000'003);
  std::string text;
  std::string reply;
  for (int i = 0; i < 5; ++i) {
    text += command("need", whole) + "echo between\n" + command("body", body) +
            command("need", pattern(static_cast<size_t>(i)));
    reply += sum_reply(whole) + "between\n" + sum_reply(body) +
             sum_reply(pattern(static_cast<size_t>(i)));
  }
  std::thread sender([&] { client.send(text); });
  EXPECT_EQ(client.receive(reply.size()), reply);
  sender.join();
}

TEST(StreamTest, DeliversAgainWithoutNewBytes) {
  LineServer server({});
  Client client(server.port());
  EXPECT_EQ(client.ask("slow\necho a\nslow\n", 12), "slow\na\nslow\n");
}

TEST(StreamTest, ASlowReaderIsNotReadAndLosesNothing) {
  LineServer server({.workers = 1});
  Client client(server.port());
  constexpr size_t kReply = 8'000'000;
  constexpr int kCount = 5;
  for (int i = 0; i < kCount; ++i) client.send("big 8000000\necho next\n");
  ASSERT_TRUE(eventually([&] { return server.sum(&TransportCounters::replies_deferred) > 0; }));
  const uint64_t read = server.sum(&TransportCounters::bytes_read);
  client.send("echo last\n");
  std::this_thread::sleep_for(milliseconds(100));
  EXPECT_EQ(server.sum(&TransportCounters::bytes_read), read);
  for (int i = 0; i < kCount; ++i) {
    EXPECT_EQ(client.receive(kReply), std::string(kReply, 'x'));
    EXPECT_EQ(client.receive(5), "next\n");
  }
  EXPECT_EQ(client.receive(5), "last\n");
}

TEST(StreamTest, PinnedBytesAreReleasedOnce) {
  LineServer server({.workers = 1, .output_bytes_max = 1'000'000});
  {
    Client client(server.port());
    // Pinned bytes are not copied, so they do not count against the bound.
    const std::string reply = client.ask("pin 30000000\necho a\n", 30'000'002);
    EXPECT_EQ(reply.substr(reply.size() - 3), "pa\n");
    // A reply that is read at once need not be deferred; one that nobody reads is.
    const uint64_t deferred = server.sum(&TransportCounters::replies_deferred);
    client.send("pin 30000000\npin 30000000\n");
    ASSERT_TRUE(
        eventually([&] { return server.sum(&TransportCounters::replies_deferred) > deferred; }));
  }
  EXPECT_TRUE(eventually([&] { return server.transport(0).connection_count() == 0; }));
  EXPECT_EQ(server.sum(&TransportCounters::stalled_closed), 0u);
}

TEST(StreamTest, ALongReplyKeepsItsPlace) {
  LineServer server({.workers = 1});
  Client client(server.port());
  const size_t size = 3'000'000;
  EXPECT_EQ(client.ask("echo a\nlong 3000000\necho b\nlong 5\nquit\n", size + 13),
            "a\n" + std::string(size, 'l') + "b\nlllllbye\n");
  EXPECT_EQ(client.receive(1), "");
}

// The long reply waits for its reader; other clients are served.
TEST(StreamTest, ALongReplyThatNobodyReadsHoldsUpNobody) {
  LineServer server({.workers = 1});
  Client unread(server.port());
  unread.send("long 100000000\n");
  Client client(server.port());
  EXPECT_EQ(client.ask("long 1000000\n", 1'000'000), std::string(1'000'000, 'l'));
  for (int i = 0; i < 1000; ++i) ASSERT_EQ(client.ask("echo a\n", 2), "a\n");
  EXPECT_EQ(unread.receive(100'000'000), std::string(100'000'000, 'l'));
  EXPECT_EQ(unread.ask("echo b\n", 2), "b\n");
}

// A break is seen at once (BytePipe): what is in the pipe then is lost, and nothing follows it.
TEST(StreamTest, ALongReplyThatBreaksEndsItsConnection) {
  LineServer server({.workers = 1});
  Client client(server.port());
  const std::string received = client.ask("cut 500000\necho a\n", 600'000);
  EXPECT_EQ(received, std::string(received.size(), 'l'));
  EXPECT_LE(received.size(), 500'000u);
  EXPECT_GE(received.size() + LongWriter::kPipeBytes, 500'000u);
  EXPECT_TRUE(client.closed());
}

// Connections that end in every way: after a part, unread, half closed, stopped.
TEST(StreamTest, ALongReplyEndsWithItsConnection) {
  LineServer server({.workers = 2});
  for (int i = 0; i < 20; ++i) {
    Client client(server.port());
    client.send("long 100000000\n");
    const size_t read = i % 2 == 0 ? 100'000 : 0;
    EXPECT_EQ(client.receive(read).size(), read);
  }
  Client half(server.port());
  half.send("long 200000\n");
  shutdown(half.fd(), SHUT_WR);
  EXPECT_EQ(half.receive(200'001), std::string(200'000, 'l'));
  EXPECT_TRUE(eventually([&] { return server.acceptor().budget().current() == 0; }));
  Client stopped(server.port());
  stopped.send("long 100000000\n");
  EXPECT_EQ(stopped.receive(1), "l");
  server.stop_now();
}

TEST(StreamTest, UnsentOutputIsBounded) {
  LineServer server({.workers = 1, .output_bytes_max = 1'000'000});
  Client client(server.port());
  client.send("big 30000000\n");
  EXPECT_TRUE(eventually([&] { return server.sum(&TransportCounters::stalled_closed) == 1; }));
  EXPECT_LT(client.receive(30'000'000).size(), 30'000'000u);
}

// The client that does not read is closed, not the one whose reply needs the memory.
TEST(StreamTest, TheReaderStalledForLongestIsClosedForUnsentOutput) {
  // Far more than the kernel buffers for a connection. The unsent rest of one such reply is within
  // the bound, the rests of two are not.
  constexpr size_t kBytes = 30'000'000;
  const std::string big = "big " + std::to_string(kBytes) + "\n";
  LineServer server({.workers = 1, .output_bytes_max = 32'000'000});
  Client stalled(server.port());
  stalled.send(big);
  ASSERT_TRUE(eventually([&] { return server.sum(&TransportCounters::replies_deferred) == 1; }));
  Client reading(server.port());
  reading.send(big);
  ASSERT_TRUE(eventually([&] { return server.sum(&TransportCounters::stalled_closed) == 1; }));
  EXPECT_EQ(reading.receive(kBytes), std::string(kBytes, 'x'));
  EXPECT_EQ(reading.ask("echo a\n", 2), "a\n");
  EXPECT_EQ(server.sum(&TransportCounters::stalled_closed), 1u);
  EXPECT_LT(stalled.receive(kBytes).size(), kBytes);
}

TEST(StreamTest, LeftOverInputIsBounded) {
  LineServer server({.workers = 1, .input_bytes_max = 100'000});
  Client first(server.port());
  Client second(server.port());
  first.send("need 60000\n" + std::string(50'000, 'a'));
  ASSERT_TRUE(eventually([&] { return server.transport(0).input_bytes() > 0; }));
  second.send("need 60000\n" + std::string(50'000, 'a'));
  EXPECT_TRUE(second.closed());
  EXPECT_EQ(first.ask(std::string(10'000, 'a'), 6), "60000 ");
}

TEST(StreamTest, HalfClosedClientsAreAnswered) {
  LineServer server({});
  Client client(server.port());
  client.send("echo a\nbig 100000\necho b\n");
  client.shut_down_sending();
  EXPECT_EQ(client.receive(100'004), "a\n" + std::string(100'000, 'x') + "b\n");
  EXPECT_TRUE(client.closed());
}

TEST(StreamTest, QuitSendsItsReplyFirst) {
  LineServer server({});
  Client client(server.port());
  EXPECT_EQ(client.ask("quit\necho not answered\n", 100), "bye\n");
  EXPECT_TRUE(eventually([&] { return server.acceptor().budget().current() == 0; }));
}

TEST(StreamTest, ClientsThatVanishMidRequest) {
  LineServer server({});
  for (int i = 0; i < 50; ++i) {
    Client client(server.port());
    client.send(i % 3 == 0   ? "body 100000\nabc"
                : i % 3 == 1 ? "need 50000\nabc"
                             : "pin 20000000\n");
    if (i % 2 == 0) {
      client.reset();
    } else {
      client.close();
    }
  }
  EXPECT_TRUE(eventually([&] { return server.acceptor().budget().current() == 0; }));
  Client client(server.port());
  EXPECT_EQ(client.ask("echo still here\n", 11), "still here\n");
}

TEST(StreamTest, ManyConnectionsAreSpreadEvenly) {
  LineServer server({.workers = 3});
  constexpr size_t kCount = 600;
  std::vector<Client> clients;
  for (size_t i = 0; i < kCount; ++i) {
    clients.emplace_back(server.port());
    ASSERT_TRUE(clients.back().connected());
  }
  for (Client& client : clients) client.send("echo hi\n");
  for (Client& client : clients) ASSERT_EQ(client.receive(3), "hi\n");
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(server.transport(i).connection_count(), kCount / 3);
    EXPECT_EQ(server.transport(i).input_bytes(), 0u);
  }
  std::vector<ConnectionInfo> list;
  for (size_t i = 0; i < 3; ++i) list_all(server.transport(i), list);
  ASSERT_EQ(list.size(), kCount);
  EXPECT_EQ(list[0].listen_address, "tcp:127.0.0.1:" + std::to_string(server.port()));
  EXPECT_EQ(list[0].address.substr(0, 14), "tcp:127.0.0.1:");
}

TEST(StreamTest, AboveTheLimitConnectionsAreRejected) {
  LineServer server({.connections_max = 3});
  std::vector<Client> clients;
  for (int i = 0; i < 3; ++i) {
    clients.emplace_back(server.port());
    EXPECT_EQ(clients.back().ask("echo a\n", 2), "a\n");
  }
  Client fourth(server.port());
  EXPECT_EQ(fourth.receive(100), "ERROR Too many open connections\r\n");
  EXPECT_EQ(server.acceptor().counters().rejected.get(), 1u);
  clients.pop_back();
  ASSERT_TRUE(eventually([&] { return server.acceptor().budget().current() == 2; }));
  Client fifth(server.port());
  EXPECT_EQ(fifth.ask("echo a\n", 2), "a\n");
}

TEST(StreamTest, AboveTheLimitConnectionsWait) {
  LineServer server({.connections_max = 3, .reject_when_full = false});
  std::vector<Client> clients;
  for (int i = 0; i < 3; ++i) {
    clients.emplace_back(server.port());
    EXPECT_EQ(clients.back().ask("echo a\n", 2), "a\n");
  }
  Client fourth(server.port());
  fourth.send("echo b\n");
  ASSERT_TRUE(eventually([&] { return !server.acceptor().accepting(); }));
  EXPECT_EQ(server.acceptor().counters().rejected.get(), 0u);
  clients.pop_back();
  EXPECT_EQ(fourth.receive(2), "b\n");
  EXPECT_GE(server.acceptor().counters().accept_disabled.get(), 1u);
  EXPECT_EQ(server.acceptor().budget().current(), 3u);
}

// Sets the limit of descriptors so that only one more can be opened; restores it at the end.
class OneDescriptorLeft {
 public:
  OneDescriptorLeft() {
    EXPECT_EQ(getrlimit(RLIMIT_NOFILE, &before_), 0);
    const int next = dup(STDIN_FILENO);
    EXPECT_GE(next, 0);
    ::close(next);
    const rlimit limit{static_cast<rlim_t>(next) + 1, before_.rlim_max};
    EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
  }
  ~OneDescriptorLeft() { EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &before_), 0); }

 private:
  rlimit before_{};
};

TEST(StreamTest, WithoutDescriptorsAcceptingPauses) {
  LineServer server({});
  std::optional<Client> client;
  {
    const OneDescriptorLeft limit;
    client.emplace(server.port());
    ASSERT_TRUE(client->connected());
    client->send("echo a\n");
    const auto disabled = [&] { return server.acceptor().counters().accept_disabled.get(); };
    EXPECT_TRUE(eventually([&] { return disabled() >= 1; }));
    // It tries again after 10 ms at the earliest.
    const auto start = std::chrono::steady_clock::now();
    const uint64_t before = disabled();
    std::this_thread::sleep_for(milliseconds(300));
    const uint64_t tries = disabled() - before;
    EXPECT_LE(tries * milliseconds(10),
              std::chrono::steady_clock::now() - start + milliseconds(10));
  }
  EXPECT_EQ(client->receive(2), "a\n");
}

// Where the machine has kept the busy client from asking for too long, it is tried again.
TEST(StreamTest, IdleConnectionsAreClosed) {
  constexpr int kTriesMax = 20;
  bool kept = false;
  for (int i = 0; i < kTriesMax && !kept; ++i) {
    LineServer server({.idle_timeout_s = 2});
    Client idle(server.port());
    Client busy(server.port());
    EXPECT_EQ(idle.ask("echo a\n", 2), "a\n");
    auto last = std::chrono::steady_clock::now();
    auto longest = last - last;
    EXPECT_TRUE(eventually([&] {
      kept = busy.ask("echo a\n", 2) == "a\n";
      longest = std::max(longest, std::chrono::steady_clock::now() - last);
      last = std::chrono::steady_clock::now();
      return server.sum(&TransportCounters::idle_closed) >= 1;
    }));
    if (longest < milliseconds(1000)) {
      EXPECT_TRUE(kept);
      EXPECT_EQ(server.sum(&TransportCounters::idle_closed), 1u);
    }
    EXPECT_TRUE(idle.closed());
  }
  EXPECT_TRUE(kept);
}

// In the middle of a value or of a reply is not idle, as in memcached. The idle client is the last
// to become silent, so it would be the last to be closed.
TEST(StreamTest, WhoIsInTheMiddleOfAMessageIsNotIdle) {
  LineServer server({.workers = 1, .idle_timeout_s = 1});
  Client body(server.port());
  body.send("body 4\nab");
  Client need(server.port());
  need.send("need 4\nab");
  Client unread(server.port());
  unread.send("big 10000000\n");
  Client line(server.port());
  line.send("echo a");
  Client idle(server.port());
  EXPECT_EQ(idle.ask("echo a\n", 2), "a\n");
  EXPECT_TRUE(eventually([&] { return server.sum(&TransportCounters::idle_closed) >= 2; }));
  EXPECT_TRUE(idle.closed());
  EXPECT_TRUE(line.closed());
  EXPECT_EQ(body.ask("cd", 10), "4 2987074\n");
  EXPECT_EQ(need.ask("cd", 10), "4 2987074\n");
  EXPECT_EQ(unread.receive(10'000'000).size(), 10'000'000u);
}

// The longer of the two times ends it.
TEST(StreamTest, WhoStandsStillInTheMiddleOfAMessageIsIdleAfterTheStallTimeout) {
  LineServer server({.workers = 1, .idle_timeout_s = 1, .stall_timeout_s = 2});
  Client need(server.port());
  need.send("need 4\nab");
  Client unread(server.port());
  unread.send("big 10000000\n");
  EXPECT_TRUE(eventually([&] { return server.sum(&TransportCounters::idle_closed) == 2; }));
  EXPECT_TRUE(need.closed());
  EXPECT_LT(unread.receive(10'000'000).size(), 10'000'000u);
}

// Half a body, a pinned value and a long reply, all without progress. Idle connections hold
// nothing.
TEST(StreamTest, WhoHoldsSharedMemoryWithoutProgressIsClosed) {
  LineServer server({.workers = 1, .stall_timeout_s = 1});
  Client idle(server.port());
  EXPECT_EQ(idle.ask("echo a\n", 2), "a\n");
  Client unread(server.port());
  unread.send("big 10000000\n");
  Client body(server.port());
  body.send("body 100000\n" + std::string(1000, 'a'));
  Client pin(server.port());
  pin.send("pin 10000000\n");
  Client dump(server.port());
  dump.send("long 100000000\n");
  EXPECT_TRUE(eventually([&] { return server.sum(&TransportCounters::stall_timeouts) == 3; }));
  EXPECT_TRUE(body.closed());
  EXPECT_LT(pin.receive(10'000'000).size(), 10'000'000u);
  EXPECT_LT(dump.receive(100'000'000).size(), 100'000'000u);
  EXPECT_EQ(idle.ask("echo a\n", 2), "a\n");
  EXPECT_EQ(unread.receive(10'000'000), std::string(10'000'000, 'x'));
  EXPECT_EQ(server.sum(&TransportCounters::stall_timeouts), 3u);
}

// Only as many as were refused, and only while others find no space. The connections stay.
TEST(StreamTest, BodiesWithoutProgressAreCancelledForOthers) {
  LineServer server({.workers = 1, .stall_timeout_s = 60});
  std::vector<Client> still;
  for (int i = 0; i < 3; ++i) {
    still.emplace_back(server.port()).send("body 30000\n" + std::string(1000, 'a'));
  }
  const auto cancelled = [&] { return server.sum(&TransportCounters::bodies_cancelled); };
  Client other(server.port());
  std::this_thread::sleep_for(std::chrono::milliseconds(3100));  // a time in which some would go
  EXPECT_EQ(other.ask("echo a\n", 2), "a\n");
  EXPECT_EQ(cancelled(), 0u);
  EXPECT_EQ(other.ask("refuse\nrefuse\n", 16), "refused\nrefused\n");
  EXPECT_TRUE(eventually([&] { return cancelled() == 2; }));
  size_t whole = 0;
  for (Client& client : still) {
    client.send(std::string(29'000, 'a'));
    client.send("\necho z\n");
    const std::string reply = client.receive(2);
    if (reply == "30") {
      ++whole;
      std::string byte;
      do byte = client.receive(1);
      while (byte != "\n" && !byte.empty());
      EXPECT_EQ(client.receive(2), "z\n");
    } else {
      EXPECT_EQ(reply, "z\n");
    }
  }
  EXPECT_EQ(whole, 1u);
  EXPECT_EQ(server.sum(&TransportCounters::stall_timeouts), 0u);
}

// Any progress keeps the connection, however long the whole message takes. If the machine did not
// run this client for too long, the test tries again.
TEST(StreamTest, WhoMakesProgressIsNotStalled) {
  constexpr int kTriesMax = 20;
  bool answered = false;
  for (int i = 0; i < kTriesMax && !answered; ++i) {
    LineServer server({.workers = 1, .stall_timeout_s = 2});
    Client body(server.port());
    body.send("body 40\n");
    auto last = std::chrono::steady_clock::now();
    auto longest = last - last;
    for (int sent = 0; sent < 39; ++sent) {
      body.send("a");
      std::this_thread::sleep_for(milliseconds(100));
      longest = std::max(longest, std::chrono::steady_clock::now() - last);
      last = std::chrono::steady_clock::now();
    }
    answered = body.ask("a", 3) == "40 ";
    if (longest < milliseconds(1000)) {
      EXPECT_TRUE(answered);
    }
  }
  EXPECT_TRUE(answered);
}

TEST(StreamTest, DrainingAnswersWhatWasAsked) {
  LineServer server({.workers = 1});
  Client idle(server.port());
  Client slow(server.port());
  Client unfinished(server.port());
  EXPECT_EQ(idle.ask("echo a\n", 2), "a\n");
  slow.send("big 9000000\n");
  unfinished.send("need 5\nab");
  ASSERT_TRUE(
      eventually([&] { return server.sum(&TransportCounters::bytes_read) == 7u + 12u + 9u; }));
  std::thread drain([&] { server.drain(); });
  EXPECT_TRUE(idle.closed());
  EXPECT_FALSE(Client(server.port()).connected());
  EXPECT_EQ(unfinished.ask("cde", sum_reply("abcde").size()), sum_reply("abcde"));
  EXPECT_TRUE(unfinished.closed());
  EXPECT_EQ(slow.receive(9'000'000).size(), 9'000'000u);
  EXPECT_TRUE(slow.closed());
  drain.join();
  EXPECT_EQ(server.acceptor().budget().current(), 0u);
}

TEST(StreamTest, StoppingDoesNotWaitForAnyone) {
  LineServer server({});
  Client slow(server.port());
  slow.send("pin 30000000\nbig 30000000\n");
  ASSERT_TRUE(eventually([&] { return server.sum(&TransportCounters::replies_deferred) == 1; }));
  server.stop_now();
  EXPECT_EQ(server.acceptor().budget().current(), 0u);
  EXPECT_LT(slow.receive(60'000'000).size(), 60'000'000u);
}

TEST(Later, ComesAfterATimeInWhichTheThreadSleeps) {
  LineServer server({.workers = 1});
  Client client(server.port());
  EXPECT_EQ(client.ask("echo a\n", 2), "a\n");
  const uint64_t before = server.worker(0).iterations();
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(client.ask("later 50\necho b\n", 8), "later\nb\n");
  EXPECT_GE(std::chrono::steady_clock::now() - start, std::chrono::milliseconds(49));
  EXPECT_LT(server.worker(0).iterations() - before, 1000u);
}

TEST(Later, EveryStreamIsServed) {
  LineServer server({.workers = 1});
  std::vector<Client> clients;
  for (int i = 0; i < 30; ++i) clients.emplace_back(server.port());
  for (Client& client : clients) client.send("later 3\necho a\nlater 2\n");
  for (Client& client : clients) EXPECT_EQ(client.receive(14), "later\na\nlater\n");
}

TEST(Later, OthersAreServedAndWhoGoesIsForgotten) {
  LineServer server({.workers = 1});
  Client waiting(server.port());
  waiting.send("later 1000000\n");
  Client other(server.port());
  for (int i = 0; i < 100; ++i) EXPECT_EQ(other.ask("echo a\n", 2), "a\n");
  waiting.reset();
  EXPECT_TRUE(eventually([&] { return server.transport(0).connection_count() == 1; }));
  EXPECT_EQ(other.ask("later 3\n", 6), "later\n");
}

TEST(Later, DrainingWaitsForIt) {
  LineServer server({.workers = 1});
  Client client(server.port());
  client.send("later 30\n");
  EXPECT_TRUE(eventually([&] { return server.worker(0).chunks() > 1; }));
  std::thread draining([&] { server.drain(); });
  EXPECT_EQ(client.receive(6), "later\n");
  draining.join();
}

}  // namespace
}  // namespace warpcache::io
