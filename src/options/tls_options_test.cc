// SPDX-License-Identifier: Apache-2.0
#include "options/tls_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace warpcache {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

ParseResult parse_tls_words(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "warpcached");
  std::vector<char*> argv;
  for (std::string& text : arguments) argv.push_back(text.data());
  argv.push_back(nullptr);
  return parse_options(static_cast<int>(arguments.size()), argv.data());
}

// With -Z, a certificate and a key.
ParseResult parse_tls(const std::vector<std::string>& more) {
  std::vector<std::string> arguments = {"-Z", "-o", "ssl_chain_cert=/c,ssl_key=/k"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return parse_tls_words(arguments);
}

std::vector<ListenTls> tls_of(const Options& options) {
  std::vector<ListenTls> list;
  for (const ListenAddress& address : options.listen.tcp) list.push_back(address.tls);
  return list;
}

TEST(TlsOptions, Defaults) {
  const Options options = parse_tls({}).options.value();
  EXPECT_TRUE(options.tls.enabled);
  EXPECT_EQ(options.tls.chain_cert, "/c");
  EXPECT_EQ(options.tls.key, "/k");
  EXPECT_EQ(options.tls.verify_mode, 0u);
  EXPECT_EQ(options.tls.key_format, 1u);
  EXPECT_EQ(options.tls.version_min, 2u);
  EXPECT_FALSE(options.tls.session_cache);
  EXPECT_THAT(options.notes, IsEmpty());
  EXPECT_THAT(tls_of(options), ElementsAre(ListenTls::kDefault));
  EXPECT_THAT(tls_of(parse_tls_words({}).options.value()), ElementsAre(ListenTls::kNone));
}

TEST(TlsOptions, WordsAreTaken) {
  const TlsOptions tls =
      parse_tls({"-o",
                 "ssl_verify_mode=3,ssl_keyformat=2,ssl_ciphers=AES,ssl_ca_cert=/a,"
                 "ssl_session_cache,ssl_kernel_tls,ssl_min_version=3,ssl_wbuf_size=64"})
          .options.value()
          .tls;
  EXPECT_EQ(tls.verify_mode, 3u);
  EXPECT_EQ(tls.key_format, 2u);
  EXPECT_EQ(tls.ciphers, "AES");
  EXPECT_EQ(tls.ca_cert, "/a");
  EXPECT_EQ(tls.wbuf_kib, 64u);
  EXPECT_TRUE(tls.session_cache);
  EXPECT_TRUE(tls.kernel_tls);
  EXPECT_EQ(tls.version_min, 3u);
  EXPECT_EQ(parse_tls({"-o", "ssl_keyformat=DER"}).options->tls.key_format, 2u);
  EXPECT_EQ(parse_tls({"-o", "ssl_keyformat=PEM"}).options->tls.key_format, 1u);
  // As in memcached, they may be given without -Z.
  EXPECT_FALSE(parse_tls_words({"-o", "ssl_key=/k,ssl_verify_mode=2"}).options->tls.enabled);
}

// memcached's sentences.
TEST(TlsOptions, WordsAreRefused) {
  const std::pair<const char*, const char*> bad[] = {
      {"ssl_chain_cert", "Missing ssl_chain_cert argument"},
      {"ssl_key", "Missing ssl_key argument"},
      {"ssl_key=", "Missing ssl_key argument"},
      {"ssl_verify_mode=x", "could not parse argument to ssl_verify_mode"},
      {"ssl_verify_mode=4", "Invalid ssl_verify_mode. Use help to see valid options."},
      {"ssl_verify_mode=-1", "Invalid ssl_verify_mode. Use help to see valid options."},
      {"ssl_keyformat=x", "could not parse argument to ssl_keyformat"},
      {"ssl_keyformat=3", "could not parse argument to ssl_keyformat"},
      {"ssl_ciphers", "Missing ssl_ciphers argument"},
      {"ssl_ca_cert", "Missing ssl_ca_cert argument"},
      {"ssl_wbuf_size=x", "could not parse argument to ssl_wbuf_size"},
      {"ssl_min_version=9", "Invalid ssl_min_version. Use help to see valid options."},
      {"ssl_min_version=", "could not parse argument to ssl_min_version"}};
  for (const auto& [word, sentence] : bad) {
    const ParseResult result = parse_tls({"-o", word});
    EXPECT_EQ(result.exit_status, kExitUsage) << word;
    EXPECT_EQ(result.text, std::string("warpcached: ") + sentence + "\n") << word;
  }
  EXPECT_THAT(parse_tls({"-o", "ssl_session_cache=1"}).text, HasSubstr("takes no value"));
}

TEST(TlsOptions, WhatTlsNeeds) {
  EXPECT_THAT(parse_tls_words({"-Z"}).text, HasSubstr("ssl_chain_cert"));
  EXPECT_THAT(parse_tls_words({"-Z", "-o", "ssl_chain_cert=/c"}).text, HasSubstr("ssl_key"));
  EXPECT_THAT(parse_tls({"-p", "0", "-U", "5"}).text,
              HasSubstr("You cannot enable SSL without a TCP port"));
}

TEST(TlsOptions, PrefixesOfAddresses) {
  const Options options = parse_tls({"-l", "notls:127.0.0.1,mtls:[::1]:5", "-l", "btls:*:6,host",
                                     "-o", "ssl_ca_cert=/a", "-U", "7"})
                              .options.value();
  EXPECT_THAT(tls_of(options), ElementsAre(ListenTls::kNone, ListenTls::kMutual,
                                           ListenTls::kServerOnly, ListenTls::kDefault));
  for (const ListenAddress& address : options.listen.udp) {
    EXPECT_EQ(address.tls, ListenTls::kNone);
  }
  for (const char* const prefix : {"notls", "btls", "mtls"}) {
    EXPECT_THAT(
        parse_tls_words({"-l", std::string(prefix) + ":127.0.0.1"}).text,
        HasSubstr(std::string("'") + prefix + "' option is valid only when SSL is enabled"));
  }
}

TEST(TlsOptions, WhatIsNotEncryptedIsNoted) {
  EXPECT_THAT(parse_tls({"-U", "5"}).options->notes, ElementsAre(HasSubstr("UDP")));
  EXPECT_THAT(parse_tls({"-s", "/s"}).options->notes, ElementsAre(HasSubstr("Unix socket")));
  EXPECT_THAT(parse_tls({"--frames=tap:t0"}).options->notes, ElementsAre(HasSubstr("frames")));
  EXPECT_THAT(parse_tls({"-o", "ssl_verify_mode=2"}).options->notes,
              ElementsAre(HasSubstr("ssl_ca_cert")));
}

}  // namespace
}  // namespace warpcache
