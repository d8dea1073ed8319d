// SPDX-License-Identifier: Apache-2.0
//
// OpenSSL's objects with owners, and its errors as text. For the module only.
#pragma once

#include <openssl/err.h>
#include <openssl/ssl.h>

#include <memory>
#include <string>

namespace warpcache::io {

struct OpensslFree {
  void operator()(SSL* ssl) const { SSL_free(ssl); }
  void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
};
using SslPointer = std::unique_ptr<SSL, OpensslFree>;
using SslContextPointer = std::unique_ptr<SSL_CTX, OpensslFree>;

// The first error of this thread; forgets all.
inline std::string take_openssl_error() {
  char text[256] = "";
  ERR_error_string_n(ERR_get_error(), text, sizeof text);
  ERR_clear_error();
  return text;
}

}  // namespace warpcache::io
