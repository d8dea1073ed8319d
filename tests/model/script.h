// SPDX-License-Identifier: Apache-2.0
//
// Scripts: messages of clients to a server, in a form that people can read, shorten and keep.
//
//   # set and get                      a comment
//   item_size_max: 1048576             -I; optional
//   cuts: 17                           seed for the division of streams; 0: no division
//   2> set a 0 0 3\r\nabc\r\n          stream 2 sends
//   2< STORED\r\n                      its expected answer (only in kept cases)
//                                      an empty line: wait for all answers
//   udp> get a\r\n                     a datagram
//   clock 5                            seconds pass
//
// In texts \r \n \\ \xHH are escapes. Braces are replaced when the text is sent:
//   {x*1000} 1000 times x     {val:3*1000} 1000 bytes that vary with the place and the seed 3
//   {cas:key} {cas:key+1}     the CAS number of a key, if replies have shown it, or one near it
//   {cas8:key}                the same as 8 bytes, big endian
//   {now+10}                  the Unix time
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace warpcache::model {

inline constexpr int kDatagram = -1;
inline constexpr int kClock = -2;

struct Step {
  uint32_t round = 0;    // answers are compared after each round
  int stream = 0;        // or kDatagram, kClock
  uint32_t seconds = 0;  // kClock
  std::string text;
  bool answer = false;  // an expected answer, which is not sent
};

struct Script {
  uint64_t item_size_max = 1 << 20;
  uint64_t cuts = 0;
  std::vector<Step> steps;
};

// False: not a script; `error` says where.
bool read_script(std::string_view text, Script& script, std::string& error);
std::string write_script(const Script& script);

struct Surroundings {
  std::function<uint64_t(const std::string& key)> cas_of;
  int64_t unix_time = 0;
  // CAS ids in text have at least this number of digits.
  size_t cas_digits = 1;
};
// The bytes that `text` stands for.
std::string render(std::string_view text, const Surroundings& surroundings);

// The form of bytes in a script: escaped, long runs of one byte as {x*n}.
std::string escape(std::string_view bytes);
// The same for replies; very long ones are shown as size and checksum.
std::string digest(std::string_view bytes);

std::string pattern_value(uint32_t seed, size_t size);

}  // namespace warpcache::model
