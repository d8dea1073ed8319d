// SPDX-License-Identifier: Apache-2.0
//
// TLS on streams. OpenSSL is needed only with -Z, so the code that uses it is a module that is
// loaded then (tls_server.cc, tls_stream.cc).
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace warpcache::io {

// What a listener asks of its clients.
enum class TlsUse : uint8_t {
  kNone,        // plain text
  kDefault,     // TLS, with the client's certificate as TlsSettings::verify says
  kServerOnly,  // TLS, without a certificate of the client
  kMutual,      // TLS, with a certificate of the client
};

// When a client's certificate is asked for: memcached's ssl_verify_mode.
enum class TlsVerify : uint8_t { kNone, kRequest, kRequire, kOnce };

struct TlsSettings {
  std::string chain_cert;  // PEM file
  std::string key;         // file
  bool key_is_der = false;
  std::string ca_cert;  // PEM file of the authorities of clients; empty: none
  std::string ciphers;  // of TLS up to 1.2, in OpenSSL's form; empty: its default
  TlsVerify verify = TlsVerify::kNone;
  uint8_t version_min = 2;     // TLS 1.x: 0 to 3
  bool session_cache = false;  // keep sessions in memory; tickets are given without it too
  bool kernel_tls = false;     // let the kernel encrypt, where it can
};

// The largest record of TLS, without what encryption adds.
inline constexpr size_t kTlsRecordBytes = 16 * 1024;

// TLS on one connected, non-blocking socket. One thread at a time. The socket stays the owner's: it
// is open until the stream is destroyed, which tells the peer that the stream has ended.
class TlsStream {
 public:
  enum class Handshake : uint8_t { kDone, kWantsInput, kWantsOutput, kFailed };

  virtual ~TlsStream() = default;

  // Continues the handshake, without blocking.
  virtual Handshake handshake() = 0;

  // Why it has returned kFailed, in OpenSSL's words. Valid until this thread calls handshake() of
  // any stream again.
  virtual std::string_view failure() const = 0;

  // As recv(): bytes; 0: the peer has ended the stream; -1 with errno (EAGAIN: none yet; EPROTO:
  // the peer breaks the protocol). REQUIRES: handshake() has returned kDone; size > 0.
  virtual ssize_t receive(uint8_t* data, size_t size) = 0;

  // Whether receive() can give more, although the socket has no new bytes.
  virtual bool has_more() const = 0;

  // As send(). Takes one record at most. After EAGAIN the next call must begin with the same bytes,
  // and have at least as many. REQUIRES: as receive().
  virtual ssize_t send(const uint8_t* data, size_t size) = 0;

  // Whether the kernel encrypts what is written to the socket. Then the owner sends to the socket
  // itself.
  virtual bool kernel_encrypts() const = 0;
};

// The server's side of TLS: certificates and sessions. Any thread.
class TlsServer {
 public:
  virtual ~TlsServer() = default;

  // Reads the certificates and the key again, for handshakes that begin from now on. Returns an
  // error in memcached's words, without a line end, or "". After an error the earlier ones stay in
  // force.
  virtual std::string load() = 0;

  // What an operator should know of the loaded certificates (a sentence), or "".
  virtual std::string warning() const = 0;

  // Null: no memory. REQUIRES: load() was successful; use != TlsUse::kNone.
  virtual std::unique_ptr<TlsStream> open(int fd, TlsUse use) = 0;

  virtual uint64_t new_sessions() const = 0;  // handshakes that resumed none
  virtual uint64_t seconds_since_load() const = 0;
};

inline constexpr char kTlsModule[] = "warpcached-tls.so";

// Loads the module and the certificates. Returns the error as text, or "".
[[nodiscard]] std::string open_tls(const TlsSettings& settings, std::unique_ptr<TlsServer>* server);

}  // namespace warpcache::io

// The module's own function: creates a server without certificates. Null, with the error in
// `failure`.
extern "C" warpcache::io::TlsServer* warpcache_open_tls(const warpcache::io::TlsSettings& settings,
                                                        std::string* failure);
