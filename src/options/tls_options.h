// SPDX-License-Identifier: Apache-2.0
//
// The options of TLS. What is refused is told in memcached's words.
#pragma once

#include <string>
#include <string_view>

#include "options/option_draft.h"

namespace warpcache {

// The words of -o, each an ApplyOption.
bool set_ssl_chain_cert(OptionDraft& draft, std::string_view value);
bool set_ssl_key(OptionDraft& draft, std::string_view value);
bool set_ssl_verify_mode(OptionDraft& draft, std::string_view value);
bool set_ssl_keyformat(OptionDraft& draft, std::string_view value);
bool set_ssl_ciphers(OptionDraft& draft, std::string_view value);
bool set_ssl_ca_cert(OptionDraft& draft, std::string_view value);
bool set_ssl_wbuf_size(OptionDraft& draft, std::string_view value);
bool set_ssl_session_cache(OptionDraft& draft, std::string_view value);
bool set_ssl_kernel_tls(OptionDraft& draft, std::string_view value);
bool set_ssl_min_version(OptionDraft& draft, std::string_view value);

// Checks the options of TLS against each other and gives the addresses their TLS, when all options
// are read and the addresses are resolved. Returns an error or "".
std::string finish_tls(OptionDraft& draft);

}  // namespace warpcache
