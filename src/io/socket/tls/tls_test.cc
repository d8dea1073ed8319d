// SPDX-License-Identifier: Apache-2.0
//
// Streams with TLS, their handshakes and certificates, with OpenSSL as the client.
#include "io/socket/tls/tls.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>

#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "io/socket/testing/line_server.h"
#include "io/socket/tls/handshakes.h"
#include "io/socket/tls/testing/certificates.h"
#include "io/socket/tls/testing/tls_client.h"

namespace warpcache::io {
namespace {

struct SessionFree {
  void operator()(SSL_SESSION* session) const { SSL_SESSION_free(session); }
};
using Session = std::unique_ptr<SSL_SESSION, SessionFree>;

// The version of TLS: the tests of streams run with each.
class TlsTest : public testing::TestWithParam<int> {
 protected:
  void SetUp() override {
    (void)signal(SIGPIPE, SIG_IGN);
    certificates_.sign("server");
    settings_.chain_cert = certificates_.path("server.pem");
    settings_.key = certificates_.path("server.key");
    settings_.ca_cert = certificates_.path("ca.pem");
  }

  void make() {
    std::string failure;
    tls_.reset(warpcache_open_tls(settings_, &failure));
    ASSERT_NE(tls_, nullptr) << failure;
    ASSERT_EQ(tls_->load(), "");
  }

  TlsClientConfig client(const std::string& name = "") {
    TlsClientConfig config{.version = GetParam()};
    if (!name.empty()) config.certificate = certificates_.path(name + ".pem");
    return config;
  }

  // Whether the server answers such a client.
  static bool answers(LineServer& server, const TlsClientConfig& config) {
    TlsClient client(server.port(), config);
    return client.connect() && client.ask("echo a\n", 2) == "a\n";
  }

  Certificates certificates_;
  TlsSettings settings_;
  std::unique_ptr<TlsServer> tls_;
};

INSTANTIATE_TEST_SUITE_P(Versions, TlsTest, testing::Values(TLS1_2_VERSION, TLS1_3_VERSION),
                         [](const auto& version) {
                           return version.param == TLS1_2_VERSION ? "Tls12" : "Tls13";
                         });

// What only TLS 1.3 has.
class Tls13Test : public TlsTest {};
INSTANTIATE_TEST_SUITE_P(Tls13, Tls13Test, testing::Values(TLS1_3_VERSION));

TEST_P(TlsTest, RequestsAreAnswered) {
  make();
  LineServer server({.tls = tls_.get()});
  TlsClient client(server.port(), this->client());
  ASSERT_TRUE(client.connect());
  EXPECT_EQ(SSL_version(client.ssl()), GetParam());
  for (int i = 0; i < 100; ++i) ASSERT_EQ(client.ask("echo a\n", 2), "a\n");
  EXPECT_EQ(client.ask("quit\n", 4), "bye\n");
  EXPECT_TRUE(client.ended());
  EXPECT_EQ(server.sum(&TransportCounters::tls_errors), 0u);
  EXPECT_EQ(server.sum(&TransportCounters::bytes_read), 705u);
}

TEST_P(TlsTest, RepliesOfABurstShareARecord) {
  make();
  LineServer server({.workers = 1, .tls = tls_.get()});
  TlsClient client(server.port(), this->client());
  ASSERT_TRUE(client.connect());
  EXPECT_EQ(client.ask("echo a\n", 2), "a\n");
  const uint32_t before = client.records();
  std::string burst;
  std::string replies;
  for (int i = 0; i < 32; ++i) {
    burst += "echo " + std::to_string(i) + "\n";
    replies += std::to_string(i) + "\n";
  }
  EXPECT_EQ(client.ask(burst, replies.size()), replies);
  EXPECT_EQ(client.records(), before + 1);
}

TEST_P(TlsTest, BytesThatCameWithTheHandshakeAreSeen) {
  make();
  LineServer server({.tls = tls_.get()});
  for (int i = 0; i < 20; ++i) {
    TlsClient client(server.port(), this->client());
    ASSERT_TRUE(client.connect_and_send("echo early\n"));
    ASSERT_EQ(client.receive(6), "early\n");
  }
}

// Several times what the transport receives at once: the rest lies decrypted in the stream, and no
// event reports it.
TEST_P(TlsTest, MoreThanFitsIntoOneChunkIsAnswered) {
  make();
  LineServer server({.workers = 1, .tls = tls_.get()});
  TlsClient client(server.port(), this->client());
  ASSERT_TRUE(client.connect());
  std::string burst;
  std::string expected;
  for (int i = 0; i < 20'000; ++i) {
    burst += "echo a\n";
    expected += "a\n";
  }
  client.send(burst);
  EXPECT_EQ(client.receive(expected.size()), expected);
}

TEST_P(TlsTest, LargeRepliesToASlowReader) {
  make();
  LineServer server({.workers = 1, .tls = tls_.get()});
  TlsClient slow(server.port(), this->client());
  TlsClient other(server.port(), this->client());
  ASSERT_TRUE(slow.connect() && other.connect());
  slow.send("big 9000000\npin 9000000\nlong 9000000\necho end\n");
  ASSERT_TRUE(eventually([&] { return server.sum(&TransportCounters::replies_deferred) == 1; }));
  for (int i = 0; i < 100; ++i) ASSERT_EQ(other.ask("echo a\n", 2), "a\n");
  EXPECT_EQ(slow.receive(9'000'000), std::string(9'000'000, 'x'));
  EXPECT_EQ(slow.receive(9'000'000), std::string(9'000'000, 'p'));
  EXPECT_EQ(slow.receive(9'000'000), std::string(9'000'000, 'l'));
  EXPECT_EQ(slow.receive(4), "end\n");
}

TEST_P(TlsTest, BodiesInPieces) {
  make();
  LineServer server({.workers = 1, .tls = tls_.get()});
  TlsClient client(server.port(), this->client());
  ASSERT_TRUE(client.connect());
  const std::string body(100'000, 'a');
  // As the server sums.
  const auto sum_reply = [&](size_t size) {
    uint32_t sum = 0;
    for (size_t i = 0; i < size; ++i) sum = sum * 31 + static_cast<uint8_t>(body[i]);
    return std::to_string(size) + " " + std::to_string(sum) + "\n";
  };
  for (const char* const command : {"body 100000\n", "need 60000\n"}) {
    const size_t size = command[0] == 'b' ? 100'000 : 60'000;
    for (const size_t piece : {size_t{1'000}, size_t{33'000}, size}) {
      client.send(command);
      for (size_t at = 0; at < size; at += piece) {
        client.send(body.substr(0, std::min(piece, size - at)));
      }
      const std::string reply = sum_reply(size);
      ASSERT_EQ(client.receive(reply.size()), reply) << command << piece;
      ASSERT_EQ(client.ask("echo a\n", 2), "a\n");
    }
  }
}

TEST_P(TlsTest, AStreamThatTheClientEnds) {
  make();
  LineServer server({.tls = tls_.get()});
  TlsClient polite(server.port(), this->client());
  ASSERT_TRUE(polite.connect());
  EXPECT_EQ(polite.ask("echo a\n", 2), "a\n");
  polite.end();
  EXPECT_TRUE(polite.ended());
  TlsClient rude(server.port(), this->client());
  ASSERT_TRUE(rude.connect());
  rude.send("need 100\nabc");
  rude.socket().close();
  EXPECT_TRUE(eventually([&] { return server.acceptor().budget().current() == 0; }));
  EXPECT_EQ(server.sum(&TransportCounters::tls_errors), 0u);
}

TEST_P(TlsTest, BytesThatAreNoTlsEndTheirStreamOnly) {
  make();
  LineServer server({.workers = 1, .tls = tls_.get()});
  TlsClient other(server.port(), this->client());
  TlsClient broken(server.port(), this->client());
  ASSERT_TRUE(other.connect() && broken.connect());
  EXPECT_EQ(broken.ask("echo a\n", 2), "a\n");
  broken.socket().send("echo plain\n");
  EXPECT_TRUE(eventually([&] { return server.sum(&TransportCounters::tls_errors) == 1; }));
  EXPECT_EQ(other.ask("echo a\n", 2), "a\n");
  EXPECT_EQ(server.transport(0).connection_count(), 1u);
}

TEST_P(TlsTest, WhoSpeaksPlainTextIsClosed) {
  make();
  LineServer server({.tls = tls_.get()});
  Client plain(server.port());
  plain.send("echo a\n");
  EXPECT_EQ(plain.receive(100).find("a\n"), std::string::npos);
  EXPECT_TRUE(eventually([&] { return server.handshakes().failed() == 1; }));
  EXPECT_TRUE(answers(server, client()));
  EXPECT_EQ(server.handshakes().closed(), 0u);
}

TEST_P(TlsTest, StalledHandshakesEndAtTheirTime) {
  make();
  LineServer server({.tls = tls_.get(), .handshakes = {.time_limit_ms = 300}});
  Client silent(server.port());
  Client half(server.port());
  half.send("\x16\x03\x01");  // the start of a record
  ASSERT_TRUE(eventually([&] { return server.handshakes().under_way() == 2; }));
  EXPECT_TRUE(answers(server, client()));
  EXPECT_TRUE(silent.closed());
  EXPECT_TRUE(half.closed());
  EXPECT_EQ(server.handshakes().closed(), 2u);
  EXPECT_TRUE(eventually([&] { return server.acceptor().budget().current() == 0; }));
}

TEST_P(TlsTest, TheOldestHandshakeGoesWhenThereAreTooMany) {
  make();
  LineServer server({.tls = tls_.get(), .handshakes = {.threads = 2, .under_way_max = 8}});
  std::vector<std::unique_ptr<Client>> silent;
  for (int i = 0; i < 30; ++i) silent.push_back(std::make_unique<Client>(server.port()));
  ASSERT_TRUE(eventually([&] { return server.handshakes().closed() == 22; }));
  EXPECT_TRUE(silent.front()->closed());
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(answers(server, client()));
  EXPECT_LE(server.handshakes().under_way(), 8u);
}

// A connection from another address than 127.0.0.1.
UniqueFd connect_from(const char* address, uint16_t port) {
  UniqueFd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in here{};
  here.sin_family = AF_INET;
  EXPECT_EQ(inet_pton(AF_INET, address, &here.sin_addr), 1);
  EXPECT_EQ(bind(fd.get(), reinterpret_cast<const sockaddr*>(&here), sizeof here), 0);
  sockaddr_in there{};
  there.sin_family = AF_INET;
  there.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  there.sin_port = htons(port);
  EXPECT_EQ(connect(fd.get(), reinterpret_cast<const sockaddr*>(&there), sizeof there), 0);
  return fd;
}

TEST_P(TlsTest, AHandshakeStaysWhereAnotherAddressBeginsMany) {
  make();
  LineServer server({.tls = tls_.get(), .handshakes = {.under_way_max = 8}});
  TlsClient slow(server.port(), client());
  ASSERT_TRUE(eventually([&] { return server.handshakes().under_way() == 1; }));
  std::vector<UniqueFd> silent;
  for (int i = 0; i < 30; ++i) silent.push_back(connect_from("127.0.0.2", server.port()));
  ASSERT_TRUE(eventually([&] { return server.handshakes().closed() == 23; }));
  ASSERT_TRUE(slow.connect());
  EXPECT_EQ(slow.ask("echo a\n", 2), "a\n");
}

TEST_P(TlsTest, StoppingEndsHandshakesToo) {
  make();
  LineServer server({.tls = tls_.get()});
  Client silent(server.port());
  ASSERT_TRUE(eventually([&] { return server.handshakes().under_way() == 1; }));
  server.stop_now();
  EXPECT_TRUE(silent.closed());
  EXPECT_EQ(server.acceptor().budget().current(), 0u);
}

TEST_P(TlsTest, DrainingAnswersWhatWasAsked) {
  make();
  LineServer server({.workers = 1, .tls = tls_.get()});
  TlsClient slow(server.port(), client());
  ASSERT_TRUE(slow.connect());
  slow.send("big 9000000\n");
  ASSERT_TRUE(eventually([&] { return server.sum(&TransportCounters::replies_deferred) == 1; }));
  std::thread drain([&] { server.drain(); });
  EXPECT_EQ(slow.receive(9'000'000).size(), 9'000'000u);
  EXPECT_TRUE(slow.ended());
  drain.join();
}

TEST_P(TlsTest, CertificatesOfClients) {
  certificates_.sign("client");
  certificates_.sign("expired", -1);
  Certificates foreign;
  foreign.sign("foreign");
  const auto answered = [&](TlsVerify verify, TlsUse use) {
    settings_.verify = verify;
    make();
    LineServer server({.tls = tls_.get(), .tls_use = use});
    TlsClientConfig strange = client();
    strange.certificate = foreign.path("foreign.pem");
    return std::vector<bool>{answers(server, client()), answers(server, client("client")),
                             answers(server, client("expired")), answers(server, strange)};
  };
  const std::vector<bool> all = {true, true, true, true};
  const std::vector<bool> right_or_none = {true, true, false, false};
  const std::vector<bool> right_only = {false, true, false, false};
  EXPECT_EQ(answered(TlsVerify::kNone, TlsUse::kDefault), all);
  EXPECT_EQ(answered(TlsVerify::kRequest, TlsUse::kDefault), right_or_none);
  EXPECT_EQ(answered(TlsVerify::kRequire, TlsUse::kDefault), right_only);
  EXPECT_EQ(answered(TlsVerify::kOnce, TlsUse::kDefault), right_only);
  EXPECT_EQ(answered(TlsVerify::kRequire, TlsUse::kServerOnly), all);
  EXPECT_EQ(answered(TlsVerify::kNone, TlsUse::kMutual), right_only);
}

TEST_P(TlsTest, CertificatesAreReplaced) {
  make();
  LineServer server({.tls = tls_.get()});
  TlsClient before(server.port(), client());
  ASSERT_TRUE(before.connect());
  EXPECT_EQ(before.server_name(), "server");
  certificates_.sign("new");
  std::filesystem::rename(certificates_.path("new.pem"), settings_.chain_cert);
  // Not its key: nothing changes.
  EXPECT_NE(tls_->load().find("Error loading the key: "), std::string::npos);
  EXPECT_TRUE(answers(server, client()));
  std::filesystem::rename(certificates_.path("new.key"), settings_.key);
  EXPECT_EQ(tls_->load(), "");
  TlsClient after(server.port(), client());
  ASSERT_TRUE(after.connect());
  EXPECT_EQ(after.server_name(), "new");
  EXPECT_EQ(before.ask("echo a\n", 2), "a\n");
}

TEST_P(TlsTest, LoadingTellsWhatFails) {
  const TlsSettings good = settings_;
  const auto failure = [&](const TlsSettings& settings) {
    std::string none;
    const std::unique_ptr<TlsServer> server(warpcache_open_tls(settings, &none));
    return server->load();
  };
  EXPECT_EQ(failure(good), "");
  TlsSettings bad = good;
  bad.chain_cert = "/nowhere";
  EXPECT_EQ(failure(bad).find("Error loading the certificate chain: /nowhere : error:"), 0u);
  bad = good;
  bad.key = "/nowhere";
  EXPECT_EQ(failure(bad).find("Error loading the key: /nowhere : error:"), 0u);
  bad = good;
  bad.key_is_der = true;
  EXPECT_EQ(failure(bad).find("Error loading the key: "), 0u);
  bad = good;
  bad.ca_cert = "/nowhere";
  EXPECT_EQ(failure(bad).find("Error loading the CA certificate: /nowhere : error:"), 0u);
  bad = good;
  bad.ciphers = "none-such";
  EXPECT_EQ(failure(bad), "Error setting the provided cipher(s): none-such");
}

TEST_P(TlsTest, AnExpiredCertificateIsTold) {
  make();
  EXPECT_NE(tls_->warning().find("expires in "), std::string::npos);
  certificates_.sign("server", 400);
  EXPECT_EQ(tls_->load(), "");
  EXPECT_EQ(tls_->warning(), "");
  certificates_.sign("server", -1);
  EXPECT_EQ(tls_->load(), "");
  EXPECT_NE(tls_->warning().find("has expired"), std::string::npos);
}

TEST_P(TlsTest, OlderVersionsAreRefused) {
  settings_.version_min = 3;
  make();
  LineServer server({.tls = tls_.get()});
  EXPECT_EQ(answers(server, client()), GetParam() == TLS1_3_VERSION);
}

// A session is resumed by its ticket, or, where the client takes none, from the server's memory.
TEST_P(TlsTest, SessionsAreResumed) {
  for (const bool cache : {false, true}) {
    settings_.session_cache = cache;
    make();
    LineServer server({.tls = tls_.get()});
    TlsClient first(server.port(), client());
    ASSERT_TRUE(first.connect());
    EXPECT_EQ(first.ask("echo a\n", 2), "a\n");
    const Session session(SSL_get1_session(first.ssl()));
    EXPECT_EQ(tls_->new_sessions(), 1u);
    TlsClientConfig config = client();
    config.session = session.get();
    TlsClient second(server.port(), config);
    ASSERT_TRUE(second.connect());
    EXPECT_EQ(second.ask("echo a\n", 2), "a\n");
    EXPECT_EQ(SSL_session_reused(second.ssl()), 1);
    EXPECT_EQ(tls_->new_sessions(), 1u);
    // Of another load(): a full handshake.
    EXPECT_EQ(tls_->load(), "");
    TlsClient third(server.port(), config);
    ASSERT_TRUE(third.connect());
    EXPECT_EQ(SSL_session_reused(third.ssl()), 0);
  }
}

// Otherwise whoever has a session of a port without them would need no certificate at any port.
TEST_P(TlsTest, NoSessionReplacesTheClientsCertificate) {
  settings_.session_cache = true;
  make();
  LineServer open({.tls = tls_.get(), .tls_use = TlsUse::kServerOnly});
  LineServer mutual({.tls = tls_.get(), .tls_use = TlsUse::kMutual});
  TlsClient first(open.port(), client());
  ASSERT_TRUE(first.connect());
  EXPECT_EQ(first.ask("echo a\n", 2), "a\n");
  const Session session(SSL_get1_session(first.ssl()));
  TlsClientConfig config = client();
  config.session = session.get();
  EXPECT_TRUE(answers(open, config));
  EXPECT_FALSE(answers(mutual, config));
}

// TLS 1.3 has no renegotiation; there the client asks for new keys, which is allowed.
TEST_P(TlsTest, RenegotiationIsRefused) {
  make();
  LineServer server({.workers = 1, .tls = tls_.get()});
  TlsClient other(server.port(), client());
  TlsClient client(server.port(), this->client());
  ASSERT_TRUE(other.connect() && client.connect());
  if (GetParam() == TLS1_3_VERSION) {
    ASSERT_EQ(SSL_key_update(client.ssl(), SSL_KEY_UPDATE_REQUESTED), 1);
    EXPECT_EQ(client.ask("echo a\n", 2), "a\n");
    EXPECT_EQ(client.ask("echo a\n", 2), "a\n");
  } else {
    ASSERT_EQ(SSL_renegotiate(client.ssl()), 1);
    EXPECT_NE(SSL_do_handshake(client.ssl()), 1);
  }
  EXPECT_EQ(other.ask("echo a\n", 2), "a\n");
}

// Each update costs the worker several times what it costs the client, and OpenSSL handles all that
// have come before it returns.
TEST_P(Tls13Test, AFloodOfKeyUpdatesEndsItsStream) {
  make();
  LineServer server({.workers = 1, .tls = tls_.get()});
  TlsClient other(server.port(), client());
  TlsClient flood(server.port(), client());
  ASSERT_TRUE(other.connect() && flood.connect());
  constexpr uint32_t kUpdatesMax = 100'000;  // far more than are allowed while a test runs
  uint32_t updates = 0;
  while (updates < kUpdatesMax) {
    if (SSL_key_update(flood.ssl(), SSL_KEY_UPDATE_NOT_REQUESTED) != 1) break;
    if (SSL_do_handshake(flood.ssl()) != 1) break;
    ++updates;
  }
  EXPECT_TRUE(eventually([&] { return server.sum(&TransportCounters::tls_errors) == 1; }));
  EXPECT_LT(updates, kUpdatesMax);
  EXPECT_EQ(other.ask("echo a\n", 2), "a\n");
  EXPECT_EQ(server.transport(0).connection_count(), 1u);
}

// A client that takes new keys now and then, with its data between, is let be.
TEST_P(Tls13Test, SomeKeyUpdatesAreTaken) {
  make();
  LineServer server({.workers = 1, .tls = tls_.get()});
  TlsClient client(server.port(), this->client());
  ASSERT_TRUE(client.connect());
  for (uint32_t i = 0; i < 64; ++i) {
    ASSERT_EQ(SSL_key_update(client.ssl(), SSL_KEY_UPDATE_REQUESTED), 1);
    ASSERT_EQ(client.ask("echo a\n", 2), "a\n");
  }
  EXPECT_EQ(server.sum(&TransportCounters::tls_errors), 0u);
}

}  // namespace
}  // namespace warpcache::io
