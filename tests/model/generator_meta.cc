// SPDX-License-Identifier: Apache-2.0
//
// Meta commands, and what is wrong with commands.
#include "model/generator.h"
#include "model/numbers.h"

namespace warpcache::model {

std::string Generator::meta_key(bool& is_base64) {
  is_base64 = dice_.one_in(8);
  if (!is_base64) return key();
  // A line end in a reply of memcached cannot be told from the end of the reply.
  const bool has_line_end = !config_.wide || dice_.one_in(20);
  const std::string bytes =
      has_line_end ? std::string("\0 \r\n\xff", 5) : std::string("\0\t\xff", 3);
  return base64(prefix_ + pick({"a", "b", "n", bytes, "key5"}));
}

std::string Generator::meta_flag(std::string_view flags) {
  char flag = flags[dice_.roll(static_cast<uint32_t>(flags.size()))];
  if (config_.shared && flag == 'E') flag = 'q';
  std::string word(1, flag);
  switch (flag) {
    case 'T':
    case 'N':
      // 1.6.18 shows the time that is left of what is over as a number near 2^32.
      if (config_.common) return word + pick({"0", "1000", "{now+1000}", "2592000"});
      return word + exptime();
    case 'R':
      return word + exptime();
    case 'F':
      if (!config_.common && dice_.one_in(40)) return word + odd_number();
      return word + this->flags();
    case 'C':
      return word + cas(prefix_ + pick({"a", "b", "n", "num"}));
    case 'E':
      return word + pick({"0", "1", "7", "1000", "12345678901234", "18446744073709551615"});
    case 'J':
    case 'D':
      return word + number();
    case 'O':
      return word + pick({"1", "opaque", "0123456789012345678901234567890"});
    default:
      return word;
  }
}

// Up to `most` flags; now and then one twice.
std::string Generator::meta_flags(std::string_view flags, uint32_t most) {
  std::string text;
  std::string seen;
  for (uint32_t i = dice_.roll(most + 1); i > 0; --i) {
    const std::string flag = meta_flag(flags);
    if (seen.find(flag[0]) != std::string::npos && (config_.common || !dice_.one_in(200))) continue;
    seen += flag[0];
    text += " " + flag;
  }
  return text;
}

std::string Generator::meta_get() {
  bool is_base64 = false;
  const std::string name = meta_key(is_base64);
  const std::string_view flags = config_.common ? "vvkcfstOqNTR" : "vvvkcfsthlOquNTREC";
  return "mg " + name + (is_base64 ? " b" : "") + meta_flags(flags, 8) + "\\r\\n";
}

std::string Generator::meta_set() {
  bool is_base64 = false;
  const std::string name = meta_key(is_base64);
  size_t size = 0;
  const std::string body = value(size);
  std::string line = "ms " + name + " " + std::to_string(size) + (is_base64 ? " b" : "");
  if (dice_.one_in(2)) line += " M" + pick({"S", "E", "A", "P", "R"});
  line += meta_flags(config_.common ? "kOqcTFCI" : "kOqcsTFCIEN", 5);
  return line + "\\r\\n" + body + "\\r\\n";
}

std::string Generator::meta_delete() {
  bool is_base64 = false;
  const std::string name = meta_key(is_base64);
  return "md " + name + (is_base64 ? " b" : "") +
         meta_flags(config_.common ? "kOqCIT" : "kOqCITEx", 4) + "\\r\\n";
}

std::string Generator::meta_count() {
  bool is_base64 = false;
  const std::string name = meta_key(is_base64);
  // memcached loses a time with the old number, and the rest of a script cannot be compared then.
  const bool lasting = config_.wide && !dice_.one_in(20);
  std::string line = "ma " + name + (is_base64 ? " b" : "");
  if (dice_.one_in(2)) line += " M" + pick({"I", "D", "+", "-"});
  return line +
         meta_flags(config_.common ? "vtcOkqNJDTC"
                    : lasting      ? "vtcOkqNJDC"
                                   : "vtcOkqNJDTCE",
                    6) +
         "\\r\\n";
}

std::string Generator::broken_command() {
  if (config_.common) {
    return pick({"bogus\\r\\n", "set " + key() + " 0 0 3\\r\\nabcdefgh\\r\\n",
                 "incr " + key() + " abc\\r\\n", "touch " + key() + " abc\\r\\n",
                 "mg " + key() + " z\\r\\n", "mg " + key() + " Tx\\r\\n",
                 "ms " + key() + " 2 Tx\\r\\nab\\r\\n", "ms " + key() + " abc\\r\\n",
                 "ms " + key() + " 2\\r\\nabcdef\\r\\n", "set " + key() + " 0 0 -1\\r\\n",
                 "gat abc " + key() + "\\r\\n"});
  }
  switch (dice_.roll(7)) {
    case 6:
      // A value that does not end where it should.
      return pick({"set " + key() + " 0 0 3", "ms " + key() + " 3", "append " + key() + " 0 0 3"}) +
             pick({"", " noreply"}) + "\\r\\nabc" +
             pick({"\\n", "\\r\\r\\n", "\\rx\\r\\n", "x\\n\\r\\n", "\\n\\r\\n", "\\r\\n"}) +
             "mn\\r\\n";
    case 0: {
      // A command that lacks something, or has too much of it.
      std::string text = dice_.one_in(2) ? text_store() : meta_set();
      const size_t blank = text.find(' ', 1 + dice_.roll(8));
      // In another place an id would be a size, which two servers must be sent alike.
      const bool may_change = !config_.wide || text.find("{cas") == std::string::npos;
      if (may_change && blank != std::string::npos && text.find("{val") == std::string::npos) {
        text.insert(blank, pick({" ", " x", "\\r\\n", "\\n", "  -1", "\\x00", " 0", "\\r"}));
      }
      return text;
    }
    case 1:
      return pick({"\\r\\n",
                   "\\n",
                   " \\r\\n",
                   " get a\\r\\n",
                   "x\\r\\n",
                   "xy\\r\\n",
                   "gett a\\r\\n",
                   "get\\r\\n",
                   "gets \\r\\n",
                   "gat\\r\\n",
                   "gat 1\\r\\n",
                   "gat x a\\r\\n",
                   "set\\r\\n",
                   "delete\\r\\n",
                   "incr a\\r\\n",
                   "touch a\\r\\n",
                   "verbosity 1\\r\\n",
                   "verbosity\\r\\n",
                   "flush_all x\\r\\n",
                   "GET a\\r\\n",
                   "mx a\\r\\n",
                   "mg\\r\\n",
                   "ms\\r\\n",
                   "md\\r\\n",
                   "ma\\r\\n",
                   "ms a\\r\\n",
                   "bogus noreply\\r\\n",
                   "noreply\\r\\n",
                   "mn\\n",
                   "xy\\n",
                   "gat - a\\r\\n"});
    case 2:
      return "set " + key() + " " + pick({"0", "x", "-1", "4294967301", "+5", "0x5"}) + " " +
             pick({"0", "x", "-1", "4294967396", "1.5"}) + " " +
             pick({"1", "01", "+1", "1x", "2147483646", "-1", "4294967297"}) + noreply() +
             "\\r\\nx\\r\\n";
    case 3:
      return pick({"mg ", "md ", "ma "}) + key() + " " +
             meta_flags("bvkcfsthlOquNTRECMFIJDPLxSzZ", 12) +
             pick({"", " !", " {a*31}",
                   dice_.one_in(10) || !config_.wide ? " O{o*32}" : " O{o*31}"}) +
             "\\r\\n";
    case 4:
      return "ms " + key() + " 2" + meta_flags("bvkcfsthlOquNTRECMFIJDPLxSzZ", 12) +
             pick({"", " !", dice_.one_in(10) || !config_.wide ? " O{o*32}" : " O{o*31}"}) +
             "\\r\\n" + pick({"ab", "abc", "a"}) + "\\r\\n";
    default:
      return pick({"incr ", "decr "}) + key() + " " +
             pick({"x", "-1", "18446744073709551616", "1x", "1 x", "", "-0"}) + noreply() +
             "\\r\\n";
  }
}

}  // namespace warpcache::model
