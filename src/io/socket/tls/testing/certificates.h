// SPDX-License-Identifier: Apache-2.0
//
// Test support: keys and certificates, made for the test and removed with it.
#pragma once

#include <openssl/types.h>

#include <filesystem>
#include <memory>
#include <string>

namespace warpcache::io {

// A folder with an authority (ca.pem) and what it has signed: NAME.pem with NAME.key.
class Certificates {
 public:
  Certificates();
  Certificates(const Certificates&) = delete;
  Certificates& operator=(const Certificates&) = delete;
  ~Certificates();

  // Writes a certificate that is valid from yesterday for `days`, which may be in the past;
  // replaces an earlier one of the name. Returns its path.
  std::string sign(const std::string& name, int days = 2);
  std::string path(const std::string& file) const { return (folder_ / file).string(); }

 private:
  std::filesystem::path folder_;
  std::shared_ptr<EVP_PKEY> key_;  // of the authority, as the next
  std::shared_ptr<X509> certificate_;
};

}  // namespace warpcache::io
