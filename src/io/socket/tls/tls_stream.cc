// SPDX-License-Identifier: Apache-2.0
#include "io/socket/tls/tls_stream.h"

#include <openssl/bio.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace warpcache::io {

namespace {

// Of the last handshake that failed in this thread: not in the stream, since most streams have
// none.
thread_local char handshake_error[128] = "";
constexpr char kGone[] = "the client has gone";  // the words that OpenSSL has none for

void take_handshake_error() {
  const auto error = ERR_get_error();
  if (error == 0) {
    std::memcpy(handshake_error, kGone, sizeof kGone);
  } else {
    ERR_error_string_n(error, handshake_error, sizeof handshake_error);
  }
  ERR_clear_error();
}

}  // namespace

// Without the goodbye, clients could not tell the end of the stream from an attack, and OpenSSL
// would forget the session.
OpensslStream::~OpensslStream() {
  if (failed_ || SSL_is_init_finished(ssl_.get()) == 0) return;
  ERR_clear_error();
  (void)SSL_shutdown(ssl_.get());
  ERR_clear_error();
}

TlsStream::Handshake OpensslStream::handshake() {
  ERR_clear_error();
  const int result = SSL_do_handshake(ssl_.get());
  if (result == 1) {
    SSL_set_msg_callback(ssl_.get(), saw_record);
    SSL_set_msg_callback_arg(ssl_.get(), this);
    has_more_ = SSL_has_pending(ssl_.get()) != 0;
    kernel_encrypts_ = BIO_get_ktls_send(SSL_get_wbio(ssl_.get())) != 0;
    if (SSL_session_reused(ssl_.get()) == 0) new_sessions_.fetch_add(1, std::memory_order_relaxed);
    return Handshake::kDone;
  }
  switch (SSL_get_error(ssl_.get(), result)) {
    case SSL_ERROR_WANT_READ:
      return Handshake::kWantsInput;
    case SSL_ERROR_WANT_WRITE:
      return Handshake::kWantsOutput;
    default:
      failed_ = true;
      take_handshake_error();
      return Handshake::kFailed;
  }
}

std::string_view OpensslStream::failure() const { return handshake_error; }

// Called for each record. The type of one of TLS 1.3 is known once it is decrypted; outside it says
// that it has data.
void OpensslStream::saw_record(int is_write, int /*version*/, int content_type, const void* bytes,
                               size_t size, SSL*, void* stream) {
  const bool tells_type =
      content_type == SSL3_RT_HEADER || content_type == SSL3_RT_INNER_CONTENT_TYPE;
  if (is_write != 0 || !tells_type || size == 0) return;
  if (static_cast<const uint8_t*>(bytes)[0] == SSL3_RT_APPLICATION_DATA) return;
  static_cast<OpensslStream*>(stream)->count_control_record();
}

// Above the limit OpenSSL is told that the stream has ended. So it handles nothing more of it.
void OpensslStream::count_control_record() {
  constexpr Clock::duration kPrice =
      Clock::duration(std::chrono::seconds(1)) / kControlRecordsPerSecond;
  const Clock::time_point now = Clock::now();
  control_until_ = std::max(control_until_, now) + kPrice;
  if (control_until_ - now <= kControlRecordsMax * kPrice) return;
  floods_ = true;
  SSL_set_shutdown(ssl_.get(), SSL_RECEIVED_SHUTDOWN);
}

// OpenSSL's queue of errors is empty before each call here, since whoever finds errors empties it:
// to empty it before each call would cost a tenth of a request. Should something else of this
// thread leave errors there, SSL_get_error() would take them for this stream's. So it is asked only
// if the stream does not just wait for its socket.
bool OpensslStream::waits_for_input() const {
  return !floods_ && SSL_want_read(ssl_.get()) && BIO_should_retry(SSL_get_rbio(ssl_.get())) != 0;
}

bool OpensslStream::waits_for_output() const {
  return SSL_want_write(ssl_.get()) && BIO_should_retry(SSL_get_wbio(ssl_.get())) != 0;
}

// Takes record after record while there are bytes for them that were received already. So a request
// costs one system call.
ssize_t OpensslStream::receive(uint8_t* data, size_t size) {
  SSL* const ssl = ssl_.get();
  size_t received = 0;
  has_more_ = false;
  while (received < size) {
    size_t got = 0;
    const int result = SSL_read_ex(ssl, data + received, size - received, &got);
    if (result != 1) {
      if (waits_for_input()) break;
      const int error = floods_ ? SSL_ERROR_SSL : SSL_get_error(ssl, result);
      ERR_clear_error();
      has_more_ = true;  // the end, or the error again
      if (received > 0) break;
      return error == SSL_ERROR_ZERO_RETURN ? 0 : failed(error);
    }
    received += got;
    if (SSL_has_pending(ssl) == 0) break;
    has_more_ = received == size;
  }
  if (received > 0) return static_cast<ssize_t>(received);
  errno = EAGAIN;
  return -1;
}

ssize_t OpensslStream::send(const uint8_t* data, size_t size) {
  size_t sent = 0;
  const int result = SSL_write_ex(ssl_.get(), data, size, &sent);
  if (result == 1) return static_cast<ssize_t>(sent);
  if (!waits_for_output()) return failed(SSL_get_error(ssl_.get(), result));
  errno = EAGAIN;
  return -1;
}

// After an error that ends the connection. Returns -1 and sets errno.
ssize_t OpensslStream::failed(int error) {
  failed_ = true;
  if (error != SSL_ERROR_SYSCALL) {
    errno = EPROTO;
  } else if (errno == 0 || errno == EAGAIN) {
    errno = ECONNRESET;
  }
  ERR_clear_error();
  return -1;
}

}  // namespace warpcache::io
