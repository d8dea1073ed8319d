// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>

#include "io/socket/tls/openssl.h"
#include "io/socket/tls/tls.h"

namespace warpcache::io {

class OpensslStream final : public TlsStream {
 public:
  // After the handshake a client may send records that are no data: key updates of TLS 1.3, further
  // handshakes of TLS 1.2, which are refused. Each costs as much as some requests, and OpenSSL
  // handles all that have come before it returns. A client may send this many at once and as many a
  // second; with more it breaks the protocol.
  static constexpr uint32_t kControlRecordsMax = 64;
  static constexpr uint32_t kControlRecordsPerSecond = 16;

  // `ssl` is of a server and has its socket. `new_sessions` counts the handshakes that resume none;
  // it outlives the stream.
  OpensslStream(SslPointer ssl, std::atomic<uint64_t>& new_sessions)
      : ssl_(std::move(ssl)), new_sessions_(new_sessions) {}
  ~OpensslStream() override;

  Handshake handshake() override;
  std::string_view failure() const override;
  ssize_t receive(uint8_t* data, size_t size) override;
  bool has_more() const override { return has_more_; }
  ssize_t send(const uint8_t* data, size_t size) override;
  bool kernel_encrypts() const override { return kernel_encrypts_; }

 private:
  using Clock = std::chrono::steady_clock;

  static void saw_record(int is_write, int version, int content_type, const void* bytes,
                         size_t size, SSL* ssl, void* stream);
  void count_control_record();
  bool waits_for_input() const;
  bool waits_for_output() const;
  ssize_t failed(int error);

  SslPointer ssl_;
  std::atomic<uint64_t>& new_sessions_;
  bool has_more_ = false;
  bool failed_ = false;  // the connection cannot be used any more
  bool kernel_encrypts_ = false;
  bool floods_ = false;  // has sent too many control records
  // Each control record moves this time on by 1 / kControlRecordsPerSecond s.
  Clock::time_point control_until_;
};

}  // namespace warpcache::io
