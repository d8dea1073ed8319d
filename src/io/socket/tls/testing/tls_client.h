// SPDX-License-Identifier: Apache-2.0
//
// Test support: the client side of a TLS stream, blocking, on a Client of line_server.h.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "io/socket/testing/line_server.h"
#include "io/socket/tls/openssl.h"

namespace warpcache::io {

struct TlsClientConfig {
  int version = 0;                 // TLS1_2_VERSION or TLS1_3_VERSION; 0: any
  std::string certificate = {};    // PEM file, whose key has the name's ending .key; empty: none
  SSL_SESSION* session = nullptr;  // to resume
};

class TlsClient {
 public:
  // Connects. The handshake is made by connect().
  explicit TlsClient(uint16_t port, const TlsClientConfig& config = {});

  // Whether the handshake succeeds. With TLS 1.3 the server may refuse the client's certificate
  // after it.
  bool connect();
  // The handshake, with `text` in the same segment as its last message.
  bool connect_and_send(std::string_view text);
  void send(std::string_view text);
  std::string receive(size_t size);  // fewer at the end or after Client::kTimeoutS
  std::string ask(std::string_view text, size_t reply_size);
  // Whether the server ends the stream, with TLS's own message.
  bool ended();
  void end() { (void)SSL_shutdown(ssl_.get()); }

  SSL* ssl() { return ssl_.get(); }
  Client& socket() { return socket_; }
  uint32_t records() const { return records_; }  // of application data, received
  std::string server_name() const;               // of its certificate

 private:
  static void count_record(int is_write, int version, int content_type, const void* bytes,
                           size_t size, SSL* ssl, void* client);

  Client socket_;
  SslContextPointer context_;
  SslPointer ssl_;
  uint32_t records_ = 0;
};

}  // namespace warpcache::io
