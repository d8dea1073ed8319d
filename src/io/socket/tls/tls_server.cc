// SPDX-License-Identifier: Apache-2.0
//
// The module's TLS server. Each load() makes a new context; connections keep theirs alive.
#include <openssl/x509.h>

#include <atomic>
#include <chrono>
#include <ctime>
#include <mutex>
#include <new>
#include <utility>

#include "io/socket/tls/openssl.h"
#include "io/socket/tls/tls.h"
#include "io/socket/tls/tls_stream.h"

namespace warpcache::io {
namespace {

constexpr int kVersions[] = {TLS1_VERSION, TLS1_1_VERSION, TLS1_2_VERSION, TLS1_3_VERSION};
constexpr int kVerifyModes[] = {
    SSL_VERIFY_NONE, SSL_VERIFY_PEER, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT,
    SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT | SSL_VERIFY_CLIENT_ONCE};
constexpr int kWarnDays = 7;

// Keys with a password are refused, because nobody could answer while the server runs.
int no_password(char*, int, int, void*) { return -1; }

class OpensslServer final : public TlsServer {
 public:
  explicit OpensslServer(TlsSettings settings) : settings_(std::move(settings)) {}

  std::string load() override;
  std::string warning() const override;
  std::unique_ptr<TlsStream> open(int fd, TlsUse use) override;
  uint64_t new_sessions() const override { return new_sessions_.load(std::memory_order_relaxed); }
  uint64_t seconds_since_load() const override;

 private:
  using Clock = std::chrono::steady_clock;

  std::string load_files(SSL_CTX* context) const;
  void configure(SSL_CTX* context) const;
  int verify_mode(TlsUse use) const;

  const TlsSettings settings_;
  mutable std::mutex mutex_;  // guards the two below
  SslContextPointer context_;
  Clock::time_point loaded_at_;
  std::atomic<uint64_t> new_sessions_{0};
};

std::string OpensslServer::load() {
  SslContextPointer context(SSL_CTX_new(TLS_server_method()));
  if (context == nullptr) return "Error creating the TLS context : " + take_openssl_error();
  configure(context.get());
  std::string failure = load_files(context.get());
  if (!failure.empty()) return failure;
  if (!settings_.ciphers.empty() &&
      SSL_CTX_set_cipher_list(context.get(), settings_.ciphers.c_str()) != 1) {
    ERR_clear_error();
    return "Error setting the provided cipher(s): " + settings_.ciphers;
  }
  ERR_clear_error();  // files that are loaded may leave errors though all went well
  const std::lock_guard lock(mutex_);
  context_.swap(context);
  loaded_at_ = Clock::now();
  return "";
}

// The words are memcached's.
std::string OpensslServer::load_files(SSL_CTX* context) const {
  ERR_clear_error();
  if (SSL_CTX_use_certificate_chain_file(context, settings_.chain_cert.c_str()) != 1) {
    return "Error loading the certificate chain: " + settings_.chain_cert + " : " +
           take_openssl_error();
  }
  const int format = settings_.key_is_der ? SSL_FILETYPE_ASN1 : SSL_FILETYPE_PEM;
  if (SSL_CTX_use_PrivateKey_file(context, settings_.key.c_str(), format) != 1) {
    return "Error loading the key: " + settings_.key + " : " + take_openssl_error();
  }
  if (SSL_CTX_check_private_key(context) != 1) {
    return "Error validating the certificate: " + take_openssl_error();
  }
  if (settings_.ca_cert.empty()) return "";
  STACK_OF(X509_NAME)* names = nullptr;
  if (SSL_CTX_load_verify_locations(context, settings_.ca_cert.c_str(), nullptr) != 1 ||
      (names = SSL_load_client_CA_file(settings_.ca_cert.c_str())) == nullptr) {
    return "Error loading the CA certificate: " + settings_.ca_cert + " : " + take_openssl_error();
  }
  SSL_CTX_set_client_CA_list(context, names);
  return "";
}

void OpensslServer::configure(SSL_CTX* context) const {
  SSL_CTX_set_default_passwd_cb(context, no_password);
  (void)SSL_CTX_set_min_proto_version(context, kVersions[settings_.version_min]);
  uint64_t options = SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION | SSL_OP_IGNORE_UNEXPECTED_EOF;
  if (settings_.kernel_tls) options |= SSL_OP_ENABLE_KTLS;
  (void)SSL_CTX_set_options(context, options);
  (void)SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE |
                                      SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                                      SSL_MODE_RELEASE_BUFFERS);
  // One system call receives all that the socket has. The kernel's TLS receives record by record.
  SSL_CTX_set_read_ahead(context, settings_.kernel_tls ? 0 : 1);
  SSL_CTX_set_session_cache_mode(
      context, settings_.session_cache ? SSL_SESS_CACHE_SERVER : SSL_SESS_CACHE_OFF);
}

int OpensslServer::verify_mode(TlsUse use) const {
  if (use == TlsUse::kServerOnly) return SSL_VERIFY_NONE;
  return kVerifyModes[static_cast<size_t>(use == TlsUse::kMutual ? TlsVerify::kRequire
                                                                 : settings_.verify)];
}

std::unique_ptr<TlsStream> OpensslServer::open(int fd, TlsUse use) {
  SslPointer ssl;
  {
    const std::lock_guard lock(mutex_);
    ssl.reset(SSL_new(context_.get()));
  }
  if (ssl == nullptr || SSL_set_fd(ssl.get(), fd) != 1) {
    ERR_clear_error();
    return nullptr;
  }
  const int verify = verify_mode(use);
  SSL_set_verify(ssl.get(), verify, nullptr);
  // A session is resumed only where the same is asked of the client. Otherwise one without the
  // client's certificate could be resumed where the certificate is required.
  const auto name = static_cast<unsigned char>(verify);
  (void)SSL_set_session_id_context(ssl.get(), &name, sizeof name);
  SSL_set_accept_state(ssl.get());
  return std::unique_ptr<TlsStream>(new (std::nothrow)
                                        OpensslStream(std::move(ssl), new_sessions_));
}

std::string OpensslServer::warning() const {
  const std::lock_guard lock(mutex_);
  const X509* const certificate = SSL_CTX_get0_certificate(context_.get());
  int days = 0;
  int seconds = 0;
  if (certificate == nullptr ||
      ASN1_TIME_diff(&days, &seconds, nullptr, X509_get0_notAfter(certificate)) != 1) {
    return "";
  }
  const std::string what = "the certificate " + settings_.chain_cert;
  if (days < 0 || seconds < 0) return what + " has expired; clients that check it refuse it.";
  if (days < kWarnDays) return what + " expires in " + std::to_string(days) + " days.";
  return "";
}

uint64_t OpensslServer::seconds_since_load() const {
  const std::lock_guard lock(mutex_);
  const auto age = std::chrono::duration_cast<std::chrono::seconds>(Clock::now() - loaded_at_);
  return static_cast<uint64_t>(age.count());
}

}  // namespace
}  // namespace warpcache::io

extern "C" __attribute__((visibility("default"))) warpcache::io::TlsServer* warpcache_open_tls(
    const warpcache::io::TlsSettings& settings, std::string* failure) {
  auto* const server = new (std::nothrow) warpcache::io::OpensslServer(settings);
  if (server == nullptr) *failure = "-Z: no memory.";
  return server;
}
