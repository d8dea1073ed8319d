// SPDX-License-Identifier: Apache-2.0
//
// Generates random scripts: few keys, every command, mostly valid messages, values of all sizes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "model/script.h"

namespace warpcache::model {

// The source of the generator's random decisions.
class Dice {
 public:
  virtual ~Dice() = default;
  // 0 to sides - 1. REQUIRES: sides > 0.
  virtual uint32_t roll(uint32_t sides) = 0;
  // Whether the source is exhausted; roll() then gives 0.
  virtual bool spent() const = 0;

  bool one_in(uint32_t sides) { return roll(sides) == 0; }
};

class SeededDice final : public Dice {
 public:
  explicit SeededDice(uint64_t seed) : random_(seed) {}
  uint32_t roll(uint32_t sides) override { return static_cast<uint32_t>(random_() % sides); }
  bool spent() const override { return false; }

 private:
  std::mt19937_64 random_;
};

// Decisions from the bytes of a fuzzer.
class ByteDice final : public Dice {
 public:
  ByteDice(const uint8_t* data, size_t size) : data_(data), size_(size) {}
  uint32_t roll(uint32_t sides) override;
  bool spent() const override { return at_ >= size_; }

 private:
  const uint8_t* data_;
  size_t size_;
  size_t at_ = 0;
};

enum class Protocol : uint8_t { kAll, kText, kMeta, kBinary };

struct GeneratorConfig {
  Protocol protocol = Protocol::kAll;
  // Also messages that the model does not know: administration, wrong numbers and words of all
  // kinds.
  bool wide = false;
  size_t steps = 60;
  size_t bytes_max = 16u << 20;  // of all values together
  bool clock = true;
  bool datagrams = true;
  bool only_datagrams = false;   // text and binary; no streams
  size_t message_bytes_max = 0;  // 0: no bound
  bool large = true;
  // Only messages that memcached 1.6.18 answers like 1.6.45.
  bool common = false;
  uint32_t messages_max = 4;  // of a stream in a round, most of the time
  // Other scripts run against the same server at the same time: only keys with `prefix`, no flush,
  // no guessed CAS ids. Uses the rounds first_round to last_round, whatever the number of steps; in
  // the same rounds the same time passes for all scripts.
  bool shared = false;
  std::string prefix;
  uint32_t first_round = 1;
  uint32_t last_round = 0;
};

class Generator {
 public:
  Generator(const GeneratorConfig& config, Dice& dice) : config_(config), dice_(dice) {}

  Script generate();

 private:
  enum class Language : uint8_t { kText, kBinary };

  void add_round(Script& script);
  void add_clock(Script& script, uint32_t seconds);
  void add_message(Script& script, int stream, Language language, bool alone);
  void add_datagrams(Script& script);
  std::string bounded_command(Language language);
  void add_last_look(Script& script);

  // Message texts, as in a Script.
  std::string text_command();
  std::string text_get();
  std::string text_store();
  std::string text_change();
  std::string meta_get();
  std::string meta_set();
  std::string meta_delete();
  std::string meta_count();
  std::string meta_flag(std::string_view flags);
  std::string meta_flags(std::string_view flags, uint32_t most);
  std::string meta_key(bool& base64);
  std::string broken_command();
  std::string wide_command();
  std::string wide_admin();
  std::string wide_line();
  std::string wide_numbers();
  std::string wide_sizes();
  std::string wide_long_line();
  std::string wide_number();
  std::string wide_word();
  std::string wide_meta_flag();
  std::string with_words_changed(const std::string& text);
  std::string wide_packet();
  std::string with_header_changed(const std::string& text);
  std::string binary_command();
  std::string binary_store(uint8_t opcode);
  std::string packet(uint8_t opcode, const std::string& extras, const std::string& key,
                     const std::string& value, size_t value_size, const std::string& cas);

  std::string key();
  std::string short_key();
  std::string cas(const std::string& key);
  std::string cas8(const std::string& key);
  std::string flags();
  std::string exptime();
  std::string number();
  std::string odd_number();
  std::string noreply();
  // A value as script text, and its size.
  std::string value(size_t& size);
  std::string pick(const std::vector<std::string>& choices);
  int32_t plain_time();

  const GeneratorConfig config_;
  Dice& dice_;
  std::string prefix_;  // of the keys of this message
  size_t bytes_ = 0;
  uint32_t round_ = 0;
  uint32_t unframed_round_ = 0;  // the last round with a message whose size may be wrong
  bool flushes_ = true;          // in this script
  bool may_flush_ = false;       // in this message
  bool in_datagram_ = false;
};

}  // namespace warpcache::model
