// SPDX-License-Identifier: Apache-2.0
#include "io/socket/tls/testing/certificates.h"

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>
#include <stdlib.h>

#include <cstdio>
#include <memory>

#include "base/assert.h"

namespace warpcache::io {

namespace {

struct Free {
  void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
  void operator()(X509* certificate) const { X509_free(certificate); }
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using Key = std::unique_ptr<EVP_PKEY, Free>;
using Certificate = std::unique_ptr<X509, Free>;
using File = std::unique_ptr<std::FILE, Free>;

constexpr long kDay = 24 * 60 * 60;

Key new_key() { return Key(EVP_EC_gen("P-256")); }

Certificate new_certificate(const std::string& name, EVP_PKEY* key, int days) {
  static long serial = 0;
  Certificate certificate(X509_new());
  (void)X509_set_version(certificate.get(), X509_VERSION_3);
  (void)ASN1_INTEGER_set(X509_get_serialNumber(certificate.get()), ++serial);
  (void)X509_gmtime_adj(X509_getm_notBefore(certificate.get()), -30 * kDay);
  (void)X509_gmtime_adj(X509_getm_notAfter(certificate.get()), days * kDay);
  (void)X509_set_pubkey(certificate.get(), key);
  X509_NAME* const subject = X509_get_subject_name(certificate.get());
  (void)X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC,
                                   reinterpret_cast<const unsigned char*>(name.c_str()), -1, -1, 0);
  return certificate;
}

File create(const std::string& path) {
  File file(std::fopen(path.c_str(), "w"));
  WC_ASSERT(file != nullptr);
  return file;
}

void write(X509* certificate, const std::string& path) {
  WC_ASSERT(PEM_write_X509(create(path).get(), certificate) == 1);
}

}  // namespace

Certificates::Certificates()
    : key_(new_key()), certificate_(new_certificate("test authority", key_.get(), 10)) {
  std::string folder = std::filesystem::temp_directory_path() / "warpcache-tls-XXXXXX";
  WC_ASSERT(mkdtemp(folder.data()) != nullptr);
  folder_ = folder;
  (void)X509_set_issuer_name(certificate_.get(), X509_get_subject_name(certificate_.get()));
  X509_EXTENSION* const is_authority =
      X509V3_EXT_conf_nid(nullptr, nullptr, NID_basic_constraints, "critical,CA:TRUE");
  WC_ASSERT(X509_add_ext(certificate_.get(), is_authority, -1) == 1);
  X509_EXTENSION_free(is_authority);
  WC_ASSERT(X509_sign(certificate_.get(), key_.get(), EVP_sha256()) != 0);
  write(certificate_.get(), path("ca.pem"));
}

Certificates::~Certificates() {
  std::error_code error;
  std::filesystem::remove_all(folder_, error);
}

std::string Certificates::sign(const std::string& name, int days) {
  const Key key = new_key();
  const Certificate certificate = new_certificate(name, key.get(), days);
  (void)X509_set_issuer_name(certificate.get(), X509_get_subject_name(certificate_.get()));
  WC_ASSERT(X509_sign(certificate.get(), key_.get(), EVP_sha256()) != 0);
  write(certificate.get(), path(name + ".pem"));
  WC_ASSERT(PEM_write_PrivateKey(create(path(name + ".key")).get(), key.get(), nullptr, nullptr, 0,
                                 nullptr, nullptr) == 1);
  return path(name + ".pem");
}

}  // namespace warpcache::io
