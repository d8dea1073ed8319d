// SPDX-License-Identifier: Apache-2.0
#include "io/socket/tls/testing/tls_client.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/x509.h>
#include <sys/socket.h>

#include "base/assert.h"

namespace warpcache::io {

TlsClient::TlsClient(uint16_t port, const TlsClientConfig& config)
    : socket_(port), context_(SSL_CTX_new(TLS_client_method())) {
  if (config.version != 0) {
    (void)SSL_CTX_set_min_proto_version(context_.get(), config.version);
    (void)SSL_CTX_set_max_proto_version(context_.get(), config.version);
  }
  if (!config.certificate.empty()) {
    const std::string key = config.certificate.substr(0, config.certificate.size() - 3) + "key";
    WC_ASSERT(SSL_CTX_use_certificate_chain_file(context_.get(), config.certificate.c_str()) == 1);
    WC_ASSERT(SSL_CTX_use_PrivateKey_file(context_.get(), key.c_str(), SSL_FILETYPE_PEM) == 1);
  }
  ssl_.reset(SSL_new(context_.get()));
  WC_ASSERT(SSL_set_fd(ssl_.get(), socket_.fd()) == 1);
  if (config.session != nullptr) WC_ASSERT(SSL_set_session(ssl_.get(), config.session) == 1);
  SSL_set_connect_state(ssl_.get());
  SSL_set_msg_callback(ssl_.get(), count_record);
  SSL_set_msg_callback_arg(ssl_.get(), this);
}

void TlsClient::count_record(int is_write, int, int content_type, const void* bytes, size_t size,
                             SSL*, void* client) {
  const bool is_data = content_type == SSL3_RT_HEADER && size > 0 && is_write == 0 &&
                       static_cast<const uint8_t*>(bytes)[0] == SSL3_RT_APPLICATION_DATA;
  if (is_data) ++static_cast<TlsClient*>(client)->records_;
}

bool TlsClient::connect() {
  ERR_clear_error();
  return SSL_connect(ssl_.get()) == 1;
}

bool TlsClient::connect_and_send(std::string_view text) {
  const int on = 1;
  const int off = 0;
  (void)setsockopt(socket_.fd(), IPPROTO_TCP, TCP_CORK, &on, sizeof on);
  const bool done = connect();
  send(text);
  (void)setsockopt(socket_.fd(), IPPROTO_TCP, TCP_CORK, &off, sizeof off);
  return done;
}

void TlsClient::send(std::string_view text) {
  ERR_clear_error();
  if (!text.empty()) (void)SSL_write(ssl_.get(), text.data(), static_cast<int>(text.size()));
}

std::string TlsClient::receive(size_t size) {
  std::string text(size, '\0');
  size_t have = 0;
  while (have < size) {
    ERR_clear_error();
    size_t got = 0;
    if (SSL_read_ex(ssl_.get(), text.data() + have, size - have, &got) != 1) break;
    have += got;
  }
  text.resize(have);
  return text;
}

std::string TlsClient::ask(std::string_view text, size_t reply_size) {
  send(text);
  return receive(reply_size);
}

bool TlsClient::ended() {
  ERR_clear_error();
  char byte = 0;
  const int result = SSL_read(ssl_.get(), &byte, 1);
  return result <= 0 && SSL_get_error(ssl_.get(), result) == SSL_ERROR_ZERO_RETURN;
}

std::string TlsClient::server_name() const {
  char name[64] = "";
  X509* const certificate = SSL_get1_peer_certificate(ssl_.get());
  if (certificate != nullptr) {
    (void)X509_NAME_get_text_by_NID(X509_get_subject_name(certificate), NID_commonName, name,
                                    sizeof name);
  }
  X509_free(certificate);
  return name;
}

}  // namespace warpcache::io
