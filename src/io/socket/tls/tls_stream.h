// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <utility>

#include "io/socket/tls/openssl.h"
#include "io/socket/tls/tls.h"

namespace warpcache::io {

class OpensslStream final : public TlsStream {
 public:
  // `ssl` is of a server and has its socket. `new_sessions` counts the handshakes that resume none;
  // it outlives the stream.
  OpensslStream(SslPointer ssl, std::atomic<uint64_t>& new_sessions)
      : ssl_(std::move(ssl)), new_sessions_(new_sessions) {}
  ~OpensslStream() override;

  Handshake handshake() override;
  ssize_t receive(uint8_t* data, size_t size) override;
  bool has_more() const override { return has_more_; }
  ssize_t send(const uint8_t* data, size_t size) override;
  bool kernel_encrypts() const override { return kernel_encrypts_; }

 private:
  ssize_t failed(int error);

  SslPointer ssl_;
  std::atomic<uint64_t>& new_sessions_;
  bool has_more_ = false;
  bool failed_ = false;  // the connection cannot be used any more
  bool kernel_encrypts_ = false;
};

}  // namespace warpcache::io
