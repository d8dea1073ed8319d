// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "admin/stats.h"

namespace warpcache::admin {
namespace {

class Values {
 public:
  StatsEmit emit() {
    return [this](std::string_view name, std::string_view value) {
      values_[std::string(name)] = value;
    };
  }
  std::string value(const std::string& name) const { return values_.at(name); }
  size_t size() const { return values_.size(); }

 private:
  std::map<std::string, std::string> values_;
};

TEST(TlsStats, SettingsOfTls) {
  Options options;
  options.tls = {.enabled = true,
                 .chain_cert = "/c",
                 .key = "/k",
                 .verify_mode = 2,
                 .key_format = 2,
                 .ciphers = "AES",
                 .ca_cert = "/a",
                 .wbuf_kib = 64,
                 .session_cache = true,
                 .kernel_tls = true,
                 .version_min = 3};
  Values collected;
  emit_settings_stats(options, {}, collected.emit());
  const std::map<std::string, std::string> expected = {
      {"ssl_enabled", "yes"},        {"ssl_chain_cert", "/c"},     {"ssl_key", "/k"},
      {"ssl_verify_mode", "3"},  // as memcached: OpenSSL's flags
      {"ssl_keyformat", "2"},        {"ssl_ciphers", "AES"},       {"ssl_ca_cert", "/a"},
      {"ssl_wbuf_size", "65536"},    {"ssl_session_cache", "yes"}, {"ssl_kernel_tls", "yes"},
      {"ssl_min_version", "tlsv1.3"}};
  for (const auto& [name, value] : expected) EXPECT_EQ(collected.value(name), value) << name;
}

TEST(TlsStats, CountersOfTlsArePresentWithTls) {
  StatsSnapshot snapshot;
  snapshot.counters[StatCounter::kSslNewSessions] = 3;
  snapshot.counters[StatCounter::kSslHandshakeErrors] = 4;
  snapshot.counters[StatCounter::kSslProtoErrors] = 5;
  snapshot.certificate_age_s = 6;
  Options options;
  Values without;
  emit_general_stats(options, snapshot, without.emit());
  options.tls.enabled = true;
  Values with;
  emit_general_stats(options, snapshot, with.emit());
  EXPECT_EQ(with.size(), without.size() + 3);
  EXPECT_EQ(with.value("ssl_handshake_errors"), "4");
  EXPECT_EQ(with.value("ssl_proto_errors"), "5");
  EXPECT_EQ(with.value("time_since_server_cert_refresh"), "6");
  options.tls.session_cache = true;
  Values cached;
  emit_general_stats(options, snapshot, cached.emit());
  EXPECT_EQ(cached.size(), without.size() + 4);
  EXPECT_EQ(cached.value("ssl_new_sessions"), "3");
}

}  // namespace
}  // namespace warpcache::admin
