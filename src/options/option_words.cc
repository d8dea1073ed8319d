// SPDX-License-Identifier: Apache-2.0
//
// The words of -o. Most of memcached's words control its slab classes, background threads or
// external storage. They are checked and accepted without effect, and add a note.
#include <cstddef>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

#include "options/option_draft.h"
#include "options/tls_options.h"

namespace warpcache {
namespace {

enum class ValueRule { kNone, kOptional, kRequired };

struct Word {
  std::string_view name;
  ValueRule rule;
  ApplyOption apply;          // gets "" if there is no value
  std::string_view accepted;  // the values it accepts; empty: takes no value
  std::string_view note;      // why it has no effect; empty: it has an effect
  std::string_view help;      // for -h, if the word has an effect
};

bool store_u32(uint32_t& target, std::string_view value, int64_t min, int64_t max) {
  const auto number = read_number(value, min, max);
  if (!number) return false;
  target = static_cast<uint32_t>(*number);
  return true;
}

bool store_fraction(double& target, std::string_view value, double min, double max) {
  const auto number = read_fraction(value, min, max);
  if (!number) return false;
  target = *number;
  return true;
}

bool any(OptionDraft&, std::string_view) { return true; }
bool any_text(OptionDraft&, std::string_view value) { return !value.empty(); }
bool any_u32(OptionDraft&, std::string_view value) {
  return read_number(value, 0, kU32Max).has_value();
}
bool any_fraction(OptionDraft&, std::string_view value) {
  return read_fraction(value, 0.0, 1.0).has_value();
}

bool slab_sizes(OptionDraft&, std::string_view value) {
  size_t begin = 0;
  while (true) {
    const size_t end = value.find('-', begin);
    if (!read_number(value.substr(begin, end - begin), 1, kU32Max)) return false;
    if (end == std::string_view::npos) return true;
    begin = end + 1;
  }
}

bool hash_algorithm(OptionDraft& draft, std::string_view value) {
  if (value != "jenkins" && value != "murmur3" && value != "xxh3") return false;
  draft.options.compat.hash_algorithm = value;
  return true;
}

bool slab_automove(OptionDraft& draft, std::string_view value) {
  return store_u32(draft.options.compat.slab_automove, value.empty() ? "1" : value, 0, 2);
}

bool temporary_ttl(OptionDraft& draft, std::string_view value) {
  draft.options.compat.temp_lru =
      store_u32(draft.options.compat.temporary_ttl_s, value, 0, kU32Max);
  return draft.options.compat.temp_lru;
}

bool slab_chunk_max(OptionDraft& draft, std::string_view value) {
  const auto kib = read_number(value, 1, 1 << 20);
  if (!kib) return false;
  draft.options.compat.slab_chunk_max_bytes = static_cast<uint32_t>(*kib) << 10;
  return true;
}

bool read_buffer_limit(OptionDraft& draft, std::string_view value) {
  const auto mib = read_number(value, 0, int64_t{1} << 20);
  if (!mib) return false;
  draft.options.server.read_buffer_bytes_max = static_cast<uint64_t>(*mib) << 20;
  return true;
}

// The defaults of memcached 1.4, as far as clients can observe them.
bool no_modern(OptionDraft& draft, std::string_view) {
  draft.options.server.connections_max_fast = false;
  CompatOptions& compat = draft.options.compat;
  compat.slab_reassign = false;
  compat.slab_automove = 0;
  compat.lru_crawler = false;
  compat.lru_maintainer = false;
  compat.hash_algorithm = "jenkins";
  compat.slab_chunk_max_bytes = 1u << 20;
  return true;
}

constexpr std::string_view kNoSlabs = "items lie in a log of segments, there are no slab classes";
constexpr std::string_view kNoLru =
    "eviction goes by segments with access counters, there is no LRU list";
constexpr std::string_view kNoCrawler =
    "expired items leave with their segment, there is no crawler";
constexpr std::string_view kOwnHash = "the index has its own seeded hash";
constexpr std::string_view kExternalWords = "ext_*";  // in -h
constexpr std::string_view kNoExternal = "all items stay in memory, there is no external storage";

constexpr std::string_view kCount = "a number from 0 to 4294967295";
constexpr std::string_view kShare = "a fraction from 0 to 1";
constexpr std::string_view kPercent = "a number from 1 to 79";
constexpr std::string_view kFactor = "a factor above 0";
constexpr std::string_view kText = "a text";

const Word kWords[] = {
    {"maxconns_fast", ValueRule::kNone,
     [](OptionDraft& d, std::string_view) { return d.options.server.connections_max_fast = true; },
     "", "", "refuse connections above -c at once (default: on)"},
    {"no_maxconns_fast", ValueRule::kNone,
     [](OptionDraft& d, std::string_view) {
       return !(d.options.server.connections_max_fast = false);
     },
     "", "", "leave connections above -c waiting in the backlog"},
    {"idle_timeout", ValueRule::kRequired,
     [](OptionDraft& d, std::string_view v) {
       return store_u32(d.options.server.idle_timeout_s, v, 0, 1 << 30);
     },
     "seconds from 0 to 1073741824", "",
     "close connections idle for this many seconds\n(default: 0, never)"},
    {"stall_timeout", ValueRule::kRequired,
     [](OptionDraft& d, std::string_view v) {
       return store_u32(d.options.server.stall_timeout_s, v, 0, 1 << 30);
     },
     "seconds from 0 to 1073741824", "",
     "close connections that hold memory of the store (half of a\nlarge value sent, large values "
     "unread) or a dump, and send\nor read nothing for this many seconds (default: 60;\n0: never)"},
    {"hashpower", ValueRule::kRequired,
     [](OptionDraft& d, std::string_view v) {
       return store_u32(d.options.store.hash_power, v, 12, 32);
     },
     "a number from 12 to 32", "",
     "size of the index at start-up, as a power of two;\nit grows as needed"},
    {"track_sizes", ValueRule::kNone,
     [](OptionDraft& d, std::string_view) { return d.options.stats.track_sizes = true; }, "", "",
     "count item sizes for \"stats sizes\""},
    {"track_latency", ValueRule::kNone,
     [](OptionDraft& d, std::string_view) { return d.options.stats.track_latency = true; }, "", "",
     "measure how long requests take, for \"stats latency\""},
    {"track_keys", ValueRule::kNone,
     [](OptionDraft& d, std::string_view) { return d.options.stats.track_keys = true; }, "", "",
     "sample keys for \"stats hotkeys\""},
    {"slow_log", ValueRule::kRequired,
     [](OptionDraft& d, std::string_view v) {
       return store_u32(d.options.stats.slow_us, v, 0, kU32Max);
     },
     "microseconds from 0 (none) to 4294967295", "",
     "keep requests that took longer, for \"stats slowlog\""},
    {"read_buf_mem_limit", ValueRule::kRequired, read_buffer_limit, "megabytes from 0 to 1048576",
     "", "megabytes for the buffers of all connections\n(default: 0, no limit)"},
    {"no_modern", ValueRule::kNone, no_modern, "", "",
     "the defaults of memcached 1.4 (no_maxconns_fast)"},
    {"modern", ValueRule::kNone, any, "", "", "accepted; changes nothing, as in memcached"},

    {"no_hashexpand", ValueRule::kNone, any, "", "the index always grows as needed", ""},
    {"hash_algorithm", ValueRule::kRequired, hash_algorithm, "jenkins, murmur3 or xxh3", kOwnHash,
     ""},
    {"tail_repair_time", ValueRule::kRequired,
     [](OptionDraft& d, std::string_view v) {
       return store_u32(d.options.compat.tail_repair_time_s, v, 10, kU32Max);
     },
     "seconds, 10 or more", "no item is ever pinned by a lost reference", ""},
    {"lru_crawler", ValueRule::kNone,
     [](OptionDraft& d, std::string_view) { return d.options.compat.lru_crawler = true; }, "",
     kNoCrawler, ""},
    {"no_lru_crawler", ValueRule::kNone,
     [](OptionDraft& d, std::string_view) { return !(d.options.compat.lru_crawler = false); }, "",
     kNoCrawler, ""},
    {"lru_crawler_sleep", ValueRule::kRequired,
     [](OptionDraft& d, std::string_view v) {
       return store_u32(d.options.compat.lru_crawler_sleep_us, v, 0, 1'000'000);
     },
     "microseconds from 0 to 1000000", kNoCrawler, ""},
    {"lru_crawler_tocrawl", ValueRule::kRequired,
     [](OptionDraft& d, std::string_view v) {
       return store_u32(d.options.compat.lru_crawler_tocrawl, v, 0, kU32Max);
     },
     kCount, kNoCrawler, ""},
    {"lru_maintainer", ValueRule::kNone,
     [](OptionDraft& d, std::string_view) { return d.options.compat.lru_maintainer = true; }, "",
     kNoLru, ""},
    {"no_lru_maintainer", ValueRule::kNone,
     [](OptionDraft& d, std::string_view) { return !(d.options.compat.lru_maintainer = false); },
     "", kNoLru, ""},
    {"hot_lru_pct", ValueRule::kRequired,
     [](OptionDraft& d, std::string_view v) {
       return store_u32(d.options.compat.hot_lru_pct, v, 1, 79);
     },
     kPercent, kNoLru, ""},
    {"warm_lru_pct", ValueRule::kRequired,
     [](OptionDraft& d, std::string_view v) {
       return store_u32(d.options.compat.warm_lru_pct, v, 1, 79);
     },
     kPercent, kNoLru, ""},
    {"hot_max_factor", ValueRule::kRequired,
     [](OptionDraft& d, std::string_view v) {
       return store_fraction(d.options.compat.hot_max_factor, v, 1e-9, 1e9);
     },
     kFactor, kNoLru, ""},
    {"warm_max_factor", ValueRule::kRequired,
     [](OptionDraft& d, std::string_view v) {
       return store_fraction(d.options.compat.warm_max_factor, v, 1e-9, 1e9);
     },
     kFactor, kNoLru, ""},
    {"temporary_ttl", ValueRule::kRequired, temporary_ttl, kCount,
     "items are grouped by time to live without it", ""},
    {"slab_reassign", ValueRule::kNone,
     [](OptionDraft& d, std::string_view) { return d.options.compat.slab_reassign = true; }, "",
     kNoSlabs, ""},
    {"no_slab_reassign", ValueRule::kNone,
     [](OptionDraft& d, std::string_view) { return !(d.options.compat.slab_reassign = false); }, "",
     kNoSlabs, ""},
    {"slab_automove", ValueRule::kOptional, slab_automove, "0, 1 or 2", kNoSlabs, ""},
    {"no_slab_automove", ValueRule::kNone,
     [](OptionDraft& d, std::string_view) {
       d.options.compat.slab_automove = 0;
       return true;
     },
     "", kNoSlabs, ""},
    {"slab_automove_ratio", ValueRule::kRequired,
     [](OptionDraft& d, std::string_view v) {
       return store_fraction(d.options.compat.slab_automove_ratio, v, 1e-9, 1.0 - 1e-9);
     },
     "a fraction above 0 and below 1", kNoSlabs, ""},
    {"slab_automove_window", ValueRule::kRequired,
     [](OptionDraft& d, std::string_view v) {
       return store_u32(d.options.compat.slab_automove_window, v, 3, kU32Max);
     },
     "a number, 3 or more", kNoSlabs, ""},
    {"slab_automove_freeratio", ValueRule::kRequired,
     [](OptionDraft& d, std::string_view v) {
       return store_fraction(d.options.compat.slab_automove_freeratio, v, 0.0, 1.0);
     },
     kShare, kNoSlabs, ""},
    {"slab_sizes", ValueRule::kRequired, slab_sizes, "sizes joined by dashes", kNoSlabs, ""},
    {"slab_chunk_max", ValueRule::kRequired, slab_chunk_max, "kilobytes from 1 to 1048576",
     kNoSlabs, ""},
    {"no_chunked_items", ValueRule::kNone, any, "", kNoSlabs, ""},
    {"inline_ascii_response", ValueRule::kNone, any, "", "replies are always composed on the fly",
     ""},
    {"inline_ascii_resp", ValueRule::kNone, any, "", "replies are always composed on the fly", ""},
    {"no_inline_ascii_resp", ValueRule::kNone, any, "", "replies are always composed on the fly",
     ""},
    {"resp_obj_mem_limit", ValueRule::kRequired, any_u32, "megabytes from 0 to 4294967295",
     "memcached dropped it in favour of read_buf_mem_limit", ""},
    {"worker_logbuf_size", ValueRule::kRequired,
     [](OptionDraft& d, std::string_view v) {
       return store_u32(d.options.compat.worker_logbuf_kib, v, 1, 1 << 20);
     },
     "kilobytes from 1 to 1048576", "",
     "kilobytes for the events of a thread that watchers have not\nbeen sent yet (default: 64)"},
    {"watcher_logbuf_size", ValueRule::kRequired,
     [](OptionDraft& d, std::string_view v) {
       return store_u32(d.options.compat.watcher_logbuf_kib, v, 1, 1 << 20);
     },
     "kilobytes from 1 to 1048576", "",
     "kilobytes for the lines that a watcher has not read, at\nleast 64 (default: 256)"},
    {"flush_prefixes", ValueRule::kRequired,
     [](OptionDraft& d, std::string_view v) {
       return store_u32(d.options.store.flushed_prefixes_max, v, 0, 256);
     },
     "a number from 0 to 256", "",
     "prefixes that may be flushed (flush_prefix) and not yet swept\n(default: 64); 0: refuse "
     "flush_prefix"},
    {"no_admin", ValueRule::kNone,
     [](OptionDraft& d, std::string_view) { return !(d.options.server.admin_enabled = false); }, "",
     "",
     "refuse what changes the server: flush_all, flush_prefix,\ncache_memlimit, verbosity, "
     "shutdown, "
     "lru, slabs, stats reset ..."},
    {"share_ports", ValueRule::kNone,
     [](OptionDraft& d, std::string_view) { return d.options.listen.share_ports = true; }, "", "",
     "let the next server open the same TCP ports, and leave new\nconnections to it at a graceful "
     "stop (SIGUSR1)"},
    {"drop_privileges", ValueRule::kNone,
     [](OptionDraft& d, std::string_view) { return d.options.process.drop_privileges = true; }, "",
     "",
     "once it serves, let the kernel refuse all system calls that\na server does not need "
     "(seccomp)"},
    {"no_drop_privileges", ValueRule::kNone,
     [](OptionDraft& d, std::string_view) { return !(d.options.process.drop_privileges = false); },
     "", "", "no such filter (default)"},
    {"relaxed_privileges", ValueRule::kNone, any, "",
     "drop_privileges allows what memcached's tests need", ""},
    {"sock_cookie_id", ValueRule::kRequired, any_u32, kCount, "sockets are not marked", ""},

    {"ext_path", ValueRule::kRequired, any_text, kText, kNoExternal, ""},
    {"ext_page_size", ValueRule::kRequired, any_u32, kCount, kNoExternal, ""},
    {"ext_wbuf_size", ValueRule::kRequired, any_u32, kCount, kNoExternal, ""},
    {"ext_threads", ValueRule::kRequired, any_u32, kCount, kNoExternal, ""},
    {"ext_io_depth", ValueRule::kRequired, any_u32, kCount, kNoExternal, ""},
    {"ext_item_size", ValueRule::kRequired, any_u32, kCount, kNoExternal, ""},
    {"ext_item_age", ValueRule::kRequired, any_u32, kCount, kNoExternal, ""},
    {"ext_low_ttl", ValueRule::kRequired, any_u32, kCount, kNoExternal, ""},
    {"ext_recache_rate", ValueRule::kRequired, any_u32, kCount, kNoExternal, ""},
    {"ext_compact_under", ValueRule::kRequired, any_u32, kCount, kNoExternal, ""},
    {"ext_drop_under", ValueRule::kRequired, any_u32, kCount, kNoExternal, ""},
    {"ext_max_sleep", ValueRule::kRequired, any_u32, kCount, kNoExternal, ""},
    {"ext_max_frag", ValueRule::kRequired, any_fraction, kShare, kNoExternal, ""},
    {"ext_drop_unread", ValueRule::kNone, any, "", kNoExternal, ""},

    {"ssl_chain_cert", ValueRule::kOptional, set_ssl_chain_cert, "", "",
     "certificate chain file in PEM format, for -Z"},
    {"ssl_key", ValueRule::kOptional, set_ssl_key, "", "", "its private key, a file"},
    {"ssl_verify_mode", ValueRule::kOptional, set_ssl_verify_mode, "", "",
     "whether clients give a certificate: 0 (none, default),\n1 (request), 2 (require) or 3 "
     "(once)"},
    {"ssl_keyformat", ValueRule::kOptional, set_ssl_keyformat, "", "",
     "format of the key: 1 (PEM, default) or 2 (DER)"},
    {"ssl_ciphers", ValueRule::kOptional, set_ssl_ciphers, "", "",
     "ciphers up to TLS 1.2, as OpenSSL lists them"},
    {"ssl_ca_cert", ValueRule::kOptional, set_ssl_ca_cert, "", "",
     "PEM file of the authorities of clients' certificates"},
    {"ssl_wbuf_size", ValueRule::kOptional, set_ssl_wbuf_size, "",
     "the replies of a burst share records of 16 KB, TLS's largest", ""},
    {"ssl_session_cache", ValueRule::kNone, set_ssl_session_cache, "", "",
     "keep TLS sessions in memory, so that clients resume them"},
    {"ssl_kernel_tls", ValueRule::kNone, set_ssl_kernel_tls, "", "",
     "let the kernel encrypt, where it can"},
    {"ssl_min_version", ValueRule::kOptional, set_ssl_min_version, "", "",
     "oldest version of TLS: 0 (tlsv1.0), 1 (tlsv1.1),\n2 (tlsv1.2, default) or 3 (tlsv1.3)"},
};

const Word* find_word(std::string_view name) {
  for (const Word& word : kWords) {
    if (word.name == name) return &word;
  }
  return nullptr;
}

bool apply_word(OptionDraft& draft, std::string_view text) {
  const size_t equals = text.find('=');
  const bool has_value = equals != std::string_view::npos;
  const std::string_view name = text.substr(0, equals);
  const std::string_view value = has_value ? text.substr(equals + 1) : std::string_view();
  const std::string option = "-o " + std::string(name);

  const Word* const word = find_word(name);
  if (word == nullptr) {
    draft.refusal =
        "-o does not know \"" + std::string(name) + "\": -h lists the words that it takes.";
    return false;
  }
  if (word->rule == ValueRule::kRequired && !has_value) {
    draft.refusal =
        option + " needs a value: " + option + "=" + "<" + std::string(word->accepted) + ">.";
    return false;
  }
  if (word->rule == ValueRule::kNone && has_value) {
    draft.refusal = option + " takes no value, but \"" + std::string(value) + "\" was given.";
    return false;
  }
  if (!word->apply(draft, value)) {
    if (draft.refusal.empty()) draft.refusal = refused_value(option, value, word->accepted);
    return false;
  }
  if (!word->note.empty()) {
    draft.options.notes.push_back(option + " has no effect: " + std::string(word->note) + ".");
  }
  return true;
}

}  // namespace

bool apply_extended_words(OptionDraft& draft, std::string_view words) {
  // As in memcached: one comma at the end is ignored, an empty word elsewhere is an error.
  if (!words.empty() && words.back() == ',') words.remove_suffix(1);
  size_t begin = 0;
  while (true) {
    const size_t end = words.find(',', begin);
    if (!apply_word(draft, words.substr(begin, end - begin))) return false;
    if (end == std::string_view::npos) return true;
    begin = end + 1;
  }
}

std::string extended_help() {
  std::string text;
  std::string accepted_words;
  for (const Word& word : kWords) {
    if (!word.note.empty()) {
      // Test suites look for ext_path in this text to learn whether there is external storage.
      const bool external = word.name.starts_with("ext_");
      if (external && accepted_words.ends_with(kExternalWords)) continue;
      accepted_words.append(accepted_words.empty() ? "" : " ");
      accepted_words.append(external ? kExternalWords : word.name);
      continue;
    }
    std::string line = "   - " + std::string(word.name) + ":";
    line.resize(line.size() < 26 ? 26 : line.size() + 1, ' ');
    for (const char c : word.help) {
      line.push_back(c);
      if (c == '\n') line.append(26, ' ');
    }
    text += line + "\n";
  }
  text += "   - accepted for memcached's sake, without effect here:\n";
  std::string line = "    ";
  for (size_t begin = 0; begin < accepted_words.size();) {
    size_t end = accepted_words.find(' ', begin);
    if (end == std::string::npos) end = accepted_words.size();
    if (line.size() + 1 + (end - begin) > 80) {
      text += line + "\n";
      line = "    ";
    }
    line.append(" ").append(accepted_words, begin, end - begin);
    begin = end + 1;
  }
  return text + line + "\n";
}

}  // namespace warpcache
