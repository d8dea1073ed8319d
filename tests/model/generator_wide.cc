// SPDX-License-Identifier: Apache-2.0
//
// Text and meta commands that no client library sends: wrong numbers and words everywhere, lines of
// all lengths, and administration. Two servers are compared by them; the model does not know all.
#include <utility>

#include "model/generator.h"
#include "model/numbers.h"

namespace warpcache::model {

namespace {

constexpr char kEnd[] = "\\r\\n";

std::string joined(const std::vector<std::string>& words) {
  std::string line;
  for (const std::string& word : words) line += (line.empty() ? "" : " ") + word;
  return line;
}

}  // namespace

std::string Generator::wide_number() {
  switch (dice_.roll(4)) {
    case 0:
      return pick({"0", "1", "2", "10", "100", "300"});
    case 1:
      return pick({"2147483647", "2147483648", "2147483649", "4294967295", "4294967296",
                   "4294967297", "9223372036854775807", "9223372036854775808",
                   "18446744073709551615", "18446744073709551616", "100000000000000000000",
                   "99999999999999999999999999999", "2592000", "2592001", "1000000000"});
    case 2:
      return pick({"-1", "-2", "-0", "-2147483648", "-2147483649", "-4294967295", "-4294967296",
                   "-9223372036854775808", "-9223372036854775809", "-18446744073709551615", "+1",
                   "+0", "+2147483648", "00", "007", "0000000000000000000000001"});
    default:
      return pick({"",     "-",      "+",       "--1",     "+-1",    "x",    "1x",   "x1",
                   "0x5",  "1.5",    "1e3",     "1,",      "1\\x00", "\\t1", "1\\t", "1\\x0b",
                   "1\\r", "\\x001", "{0*300}", "{1*300}", "1-",     "\\xb2"});
  }
}

std::string Generator::wide_meta_flag() {
  const std::string letter(1, "bvkcfsthlOquNTRECMFIJDPLxSWXZaAgz09"[dice_.roll(35)]);
  switch (dice_.roll(6)) {
    case 0:
      return letter;
    case 1:
      return letter + wide_number();
    case 2:
      return letter + key();
    case 3:
      return "M" + pick({"S", "s", "set",  "E", "e", "A",    "a", "append", "P", "p", "R", "r",
                         "I", "i", "incr", "D", "d", "decr", "+", "-",      "x", "",  "0"});
    default:
      return meta_flag("bvkcfsthlOquNTRECFIJDxS");
  }
}

std::string Generator::wide_word() {
  switch (dice_.roll(8)) {
    case 0:
    case 1:
      return key();
    case 2:
    case 3:
      return wide_number();
    case 4:
      return pick({"noreply", "NOREPLY", "noreply ", "norepl", "noreplyx", "all", "hash", "\\x00",
                   "\\x01\\x7f\\xff", "\\t", "\\r", "{ *30}", "*", ".", ":", "a:b", "a:b:c", "%",
                   "\\xc3\\xa4"});
    case 5:
      return "{a*" + std::to_string(dice_.roll(4) == 0 ? 240 + dice_.roll(20) : dice_.roll(300)) +
             "}";
    case 6:
      return pick({"YQ==", "YQ=", "YQ", "YWI=", "YWJj", "=",
                   "====", "Y*==", "YQ==YQ==", "cw==", "{A*332}", "{A*336}", "{A*340}"});
    default:
      return wide_meta_flag();
  }
}

// One to three words of the first line left out, doubled, replaced or put in.
std::string Generator::with_words_changed(const std::string& text) {
  const size_t end = text.find(kEnd);
  if (end == std::string::npos) return text;
  std::vector<std::string> words = split_words(text.substr(0, end));
  // In another place the id would be a size or a time, which both servers must be sent alike.
  for (std::string& word : words) {
    if (word.find("{cas:") != std::string::npos) word = "7";
  }
  for (uint32_t i = 1 + dice_.roll(3); i > 0 && !words.empty(); --i) {
    const auto at = words.begin() + dice_.roll(static_cast<uint32_t>(words.size()));
    switch (dice_.roll(6)) {
      case 0:
        words.erase(at);
        break;
      case 1:
        words.insert(at, std::string(*at));
        break;
      case 2:
        words.insert(at, wide_word());
        break;
      case 3:
        words.push_back(wide_word());
        break;
      default:
        *at = dice_.one_in(2) ? wide_number() : wide_word();
        break;
    }
  }
  return joined(words) +
         (dice_.one_in(20) ? pick({"\\n", "\\r\\r\\n", " \\r\\n", "\\x00\\r\\n"}) : kEnd) +
         text.substr(end + sizeof kEnd - 1);
}

// Any command with any words.
std::string Generator::wide_line() {
  std::string line =
      config_.protocol == Protocol::kMeta
          ? pick({"mg", "ms", "md", "ma", "mn", "me", "mx", "m", "mgx", "MG", "mg\\t"})
          : pick({"get",     "gets",     "gat",       "gats",
                  "set",     "add",      "replace",   "append",
                  "prepend", "cas",      "delete",    "incr",
                  "decr",    "touch",    "verbosity", "version",
                  "noreply", "GET",      "Set",       "getss",
                  "ge",      "g",        "",          "\\x00",
                  "cas\\t",  "extstore", "misbehave", "refresh_certs",
                  "bget",    "quitx"});
  for (uint32_t i = dice_.roll(8); i > 0; --i) {
    line += (dice_.one_in(20) ? "  " : " ");
    line += config_.protocol == Protocol::kMeta ? wide_meta_flag() : wide_word();
  }
  const std::string end =
      dice_.one_in(10) ? pick({"\\n", "\\r\\r\\n", " \\r\\n", "\\x00\\r\\n"}) : kEnd;
  return line + end;
}

// Right but for one number.
std::string Generator::wide_numbers() {
  const std::string name = key();
  const std::string number = wide_number();
  if (config_.protocol == Protocol::kMeta) {
    const std::string letter = pick({"T", "N", "R", "E", "C", "F", "J", "D", "S", "O", "L", "P"});
    const std::string flag = " " + letter + number;
    switch (dice_.roll(5)) {
      case 0:
        return "mg " + name + " v t c f s" + flag + kEnd;
      case 1:
        return "ms " + name + " 1 c" + flag + kEnd + "x" + kEnd;
      case 2:
        return "md " + name + flag + pick({"", " I"}) + kEnd;
      case 3:
        return "ma " + name + " v t c" + flag + pick({"", " N0", " MD"}) + kEnd;
      default:
        return "ms " + name + " " + number + " c" + kEnd + "x" + kEnd;
    }
  }
  const std::string store = pick({"set ", "add ", "replace ", "append ", "prepend ", "cas "});
  const std::string cas = store == "cas " ? " 7" : "";
  switch (dice_.roll(9)) {
    case 0:
      return "touch " + name + " " + number + noreply() + kEnd;
    case 1:
      return pick({"gat ", "gats "}) + number + " " + name + kEnd;
    case 2:
      return pick({"incr ", "decr "}) + name + " " + number + noreply() + kEnd;
    case 3:
      return store + name + " " + number + " 0 1" + cas + noreply() + kEnd + "x" + kEnd;
    case 4:
      return store + name + " 0 " + number + " 1" + cas + noreply() + kEnd + "x" + kEnd;
    case 5:
      return store + name + " 0 0 " + number + cas + noreply() + kEnd + "x" + kEnd;
    case 6:
      return "cas " + name + " 0 0 1 " + number + noreply() + kEnd + "x" + kEnd;
    case 7:
      return "delete " + name + " " + number + noreply() + kEnd;
    default:
      return may_flush_ && dice_.one_in(4) ? "flush_all " + number + noreply() + kEnd
                                           : "verbosity " + number + noreply() + kEnd;
  }
}

// A size that the value has not.
std::string Generator::wide_sizes() {
  const uint32_t size = dice_.roll(6);
  const uint32_t more = dice_.roll(8);
  const bool meta = config_.protocol == Protocol::kMeta || dice_.one_in(4);
  const std::string line =
      meta ? "ms " + key() + " " + std::to_string(size) + " k" + pick({"", " q", " c", " b"})
           : pick({"set ", "append ", "add "}) + key() + " 0 0 " + std::to_string(size) + noreply();
  return line + kEnd + "{a*" + std::to_string(size + more) + "}" +
         pick({"\\r\\n", "\\n", "\\r", "\\r\\r\\n", "\\n\\r\\n"}) +
         (dice_.one_in(2) ? "mn\\r\\n" : "");
}

std::string Generator::wide_long_line() {
  const std::string count =
      std::to_string(dice_.one_in(3) ? 2000 + dice_.roll(100) : 20 + dice_.roll(3000));
  switch (dice_.roll(6)) {
    case 0:
      return "get{ *" + count + "}" + key() + kEnd;
    case 1:
      return "get " + key() + " {b*" + count + "} " + key() + kEnd;
    case 2:
      return "set " + key() + " 0 0 1{ *" + count + "}" + kEnd + "x" + kEnd;
    case 3:
      return "mg " + key() + "{ *" + count + "}v" + kEnd;
    case 4:
      return "{x*" + count + "}" + kEnd;
    default:
      return pick({"mg ", "touch ", "incr ", "md "}) + "{x*" + count + "} 1" + kEnd;
  }
}

std::string Generator::wide_admin() {
  switch (dice_.roll(12)) {
    case 0:
      return "verbosity" + pick({"", " 1", " 0", " x", " 1 2", " 1 noreply", " noreply"}) + kEnd;
    case 1:
      return may_flush_ ? "flush_all" +
                              pick({"", " 0", " 1", " 3", " noreply", " 0 noreply", " 2 noreply",
                                    " x", " -1", " 1 2", " 1 2 3", " {now+2}", " 2592001"}) +
                              kEnd
                        : "version x\\r\\n";
    case 2:
      return "slabs" +
             pick({"", " x", " automove", " automove 0", " automove 1", " automove 2",
                   " automove x", " automove 3", " automove -1", " reassign", " reassign 1",
                   " reassign x y", " reassign x y z", " reassign 1 x"}) +
             kEnd;
    case 3:
      return "lru" +
             pick({"", " x", " mode", " mode flat", " mode segmented", " mode x", " tune",
                   " tune 10 20 0.2 2.0", " tune 10 25 0.1", " tune x y z w", " tune 90 90 0.1 2",
                   " tune 10 20 -1 2", " temp_ttl", " temp_ttl 5", " temp_ttl x", " temp_ttl -1"}) +
             kEnd;
    case 4:
      return "lru_crawler" +
             pick({"",
                   " x",
                   " enable",
                   " disable",
                   " sleep",
                   " sleep 100",
                   " sleep 1000001",
                   " sleep x",
                   " sleep -1",
                   " tocrawl",
                   " tocrawl 10",
                   " tocrawl x",
                   " tocrawl -1",
                   " crawl",
                   " crawl x",
                   " crawl 0",
                   " crawl 999",
                   " metadump",
                   " metadump x",
                   " metadump 999",
                   " mgdump",
                   " mgdump x",
                   " enable 1",
                   " disable x"}) +
             kEnd;
    case 5:
      return "stats" +
             pick({"",
                   "",
                   " settings",
                   " settings x",
                   " items",
                   " slabs",
                   " reset",
                   " reset x",
                   " detail",
                   " detail on",
                   " detail off",
                   " detail x",
                   " detail dump",
                   " sizes x",
                   " extstore",
                   " x",
                   " noreply",
                   " malloc",
                   " cachedump",
                   " cachedump 1",
                   " cachedump x y",
                   " cachedump 1 x",
                   " cachedump 999 1",
                   " cachedump 0 1",
                   " conns",
                   " proxy",
                   " proxyfuncs"}) +
             kEnd;
    case 6:
      return "cache_memlimit" +
             pick({"", " x", " -1", " 0", " 1", " 7", " 100", " 128", " 128 noreply", " 100 200",
                   " noreply", " 18446744073709551616"}) +
             kEnd;
    case 7:
      return "version" + pick({"", " x", " noreply", " 1 2"}) + kEnd;
    case 8:
      return "shutdown" + pick({"", " graceful", " x", " noreply", " graceful x"}) + kEnd;
    case 9:
      return dice_.one_in(40) ? "watch" + pick({"", " x", " fetchers", " evictions"}) + kEnd
                              : "extstore" + pick({"", " x", " free_memchunks 1 2"}) + kEnd;
    case 10:
      return dice_.one_in(10) ? pick({"quit", "quit x", "quit noreply"}) + kEnd
                              : "refresh_certs" + pick({"", " x"}) + kEnd;
    default:
      return pick({"mn", "mn x", "mn noreply", "me", "me a", "me b b", "me YQ== b", "me a x",
                   "noreply", "me {a*251}", "get", "ok", "bogus noreply", "END", "misbehave",
                   "debugtime", "debugtime x"}) +
             kEnd;
  }
}

std::string Generator::wide_command() {
  unframed_round_ = round_;
  switch (dice_.roll(10)) {
    case 0:
      return wide_line();
    case 1:
    case 2:
      return wide_numbers();
    case 3:
      return wide_sizes();
    case 4:
      return dice_.one_in(10) ? wide_long_line() : wide_numbers();
    case 5:
      return config_.protocol == Protocol::kMeta && dice_.one_in(2) ? broken_command()
                                                                    : wide_admin();
    case 6:
      return with_words_changed(config_.protocol == Protocol::kMeta ? meta_get() : text_get());
    case 7:
      return with_words_changed(config_.protocol == Protocol::kMeta ? meta_set() : text_store());
    case 8:
      return with_words_changed(config_.protocol == Protocol::kMeta ? meta_delete()
                                                                    : text_change());
    default:
      return config_.protocol == Protocol::kText ? broken_command()
                                                 : with_words_changed(meta_count());
  }
}

}  // namespace warpcache::model
