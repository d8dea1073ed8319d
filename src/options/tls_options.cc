// SPDX-License-Identifier: Apache-2.0
#include "options/tls_options.h"

#include <utility>

namespace warpcache {
namespace {

constexpr uint32_t kPem = 1;
constexpr uint32_t kDer = 2;
constexpr int64_t kWbufKibMax = 1 << 20;

bool refuse(OptionDraft& draft, std::string sentence) {
  draft.refusal = std::move(sentence);
  return false;
}

bool set_text(OptionDraft& draft, std::string& target, std::string_view word,
              std::string_view value) {
  target = value;
  if (!value.empty()) return true;
  return refuse(draft, "Missing " + std::string(word) + " argument");
}

// A number from 0 to 3.
bool set_choice(OptionDraft& draft, uint32_t& target, std::string_view word,
                std::string_view value) {
  const auto number = read_number(value, INT32_MIN, INT32_MAX);
  if (!number) return refuse(draft, "could not parse argument to " + std::string(word));
  if (*number < 0 || *number > 3) {
    return refuse(draft, "Invalid " + std::string(word) + ". Use help to see valid options.");
  }
  target = static_cast<uint32_t>(*number);
  return true;
}

std::string unusable_prefix(ListenTls tls) {
  const std::string_view prefix = tls == ListenTls::kNone         ? "notls"
                                  : tls == ListenTls::kServerOnly ? "btls"
                                                                  : "mtls";
  return "'" + std::string(prefix) + "' option is valid only when SSL is enabled";
}

bool asks_for_certificates(const Options& options) {
  if (options.tls.verify_mode != 0) return true;
  for (const ListenAddress& address : options.listen.tcp) {
    if (address.tls == ListenTls::kMutual) return true;
  }
  return false;
}

// What is served without TLS although -Z is given.
void note_plain(Options& options) {
  const auto note = [&](std::string_view what) {
    options.notes.push_back("-Z does not encrypt " + std::string(what) + ".");
  };
  if (!options.listen.unix_path.empty()) note("the Unix socket of -s");
  if (!options.listen.udp.empty()) note("UDP (-U)");
  if (!options.frames.empty()) note("Ethernet frames (--frames)");
}

}  // namespace

bool set_ssl_chain_cert(OptionDraft& draft, std::string_view value) {
  return set_text(draft, draft.options.tls.chain_cert, "ssl_chain_cert", value);
}
bool set_ssl_key(OptionDraft& draft, std::string_view value) {
  return set_text(draft, draft.options.tls.key, "ssl_key", value);
}
bool set_ssl_verify_mode(OptionDraft& draft, std::string_view value) {
  return set_choice(draft, draft.options.tls.verify_mode, "ssl_verify_mode", value);
}
bool set_ssl_ciphers(OptionDraft& draft, std::string_view value) {
  return set_text(draft, draft.options.tls.ciphers, "ssl_ciphers", value);
}
bool set_ssl_ca_cert(OptionDraft& draft, std::string_view value) {
  return set_text(draft, draft.options.tls.ca_cert, "ssl_ca_cert", value);
}
bool set_ssl_min_version(OptionDraft& draft, std::string_view value) {
  return set_choice(draft, draft.options.tls.version_min, "ssl_min_version", value);
}

// The names stand in memcached's help, which takes only the numbers.
bool set_ssl_keyformat(OptionDraft& draft, std::string_view value) {
  const auto number = read_number(value == "PEM" ? "1" : value == "DER" ? "2" : value, kPem, kDer);
  if (!number) return refuse(draft, "could not parse argument to ssl_keyformat");
  draft.options.tls.key_format = static_cast<uint32_t>(*number);
  return true;
}

bool set_ssl_wbuf_size(OptionDraft& draft, std::string_view value) {
  const auto kib = read_number(value, 0, kWbufKibMax);
  if (!kib) return refuse(draft, "could not parse argument to ssl_wbuf_size");
  draft.options.tls.wbuf_kib = static_cast<uint32_t>(*kib);
  return true;
}

bool set_ssl_session_cache(OptionDraft& draft, std::string_view) {
  return draft.options.tls.session_cache = true;
}
bool set_ssl_kernel_tls(OptionDraft& draft, std::string_view) {
  return draft.options.tls.kernel_tls = true;
}

std::string finish_tls(OptionDraft& draft) {
  Options& options = draft.options;
  for (const ListenSpec& spec : draft.listen_specs) {
    if (spec.tls && !options.tls.enabled) return unusable_prefix(*spec.tls);
  }
  if (!options.tls.enabled) return "";
  if (options.tcp_port == 0) return "ERROR: You cannot enable SSL without a TCP port.";
  if (options.tls.chain_cert.empty()) return "-Z needs a certificate: give -o ssl_chain_cert=FILE.";
  if (options.tls.key.empty()) return "-Z needs the certificate's key: give -o ssl_key=FILE.";
  if (options.tls.ca_cert.empty() && asks_for_certificates(options)) {
    options.notes.emplace_back(
        "without -o ssl_ca_cert no certificate of a client is accepted where one is asked for.");
  }
  note_plain(options);
  return "";
}

}  // namespace warpcache
