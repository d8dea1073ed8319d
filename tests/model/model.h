// SPDX-License-Identifier: Apache-2.0
//
// memcached's semantics as its clients see them, in the simplest form: one thread, one map, one
// command after the other. It takes a stream's bytes and gives the expected reply. It shares no
// code with the server.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "model/cas_book.h"
#include "model/items.h"
#include "model/reply.h"

namespace warpcache::model {

inline constexpr size_t kKeyMax = 250;

struct ModelConfig {
  uint64_t item_size_max = 1 << 20;  // -I
  int64_t now = 2;
  int64_t unix_start = 0;
  std::string version;
  // Behaves like memcached 1.6.18 where it differs from later versions, so that scripts can be
  // played against it: the metadata that it loses when it replaces an item itself.
  bool as_1_6_18 = false;
};

// A connection, or one datagram.
struct Session {
  enum class Language : uint8_t { kUnknown, kText, kBinary };
  std::string input;     // bytes that are not processed yet
  uint64_t swallow = 0;  // bytes that are still to be discarded
  Language language = Language::kUnknown;
  bool closed = false;

  // Whether it is in the middle of a message.
  bool waits() const { return !closed && (!input.empty() || swallow != 0); }
};

// A storage command of any protocol.
struct StoreCommand {
  enum class Mode : uint8_t { kSet, kAdd, kReplace, kAppend, kPrepend };
  Mode mode = Mode::kSet;
  std::string key;
  std::string value;
  uint32_t flags = 0;
  int64_t exptime = 0;
  bool compares = false;  // compares with `cas`; set and replace then need an existing item
  uint64_t cas = 0;
  bool sets_cas = false;
  uint64_t new_cas = 0;
  bool vivifies = false;  // append and prepend create a missing item with vivify_exptime
  int64_t vivify_exptime = 0;
  bool allows_stale = false;
  bool key_was_base64 = false;
};
enum class StoreOutcome : uint8_t { kStored, kNotStored, kExists, kNotFound };

struct CountCommand {
  std::string key;
  bool up = true;
  uint64_t delta = 1;
  bool compares = false;
  uint64_t cas = 0;
  bool sets_cas = false;
  uint64_t new_cas = 0;
  bool vivifies = false;
  uint64_t initial = 0;
  bool key_was_base64 = false;
};
enum class CountOutcome : uint8_t { kDone, kMade, kNotFound, kExists, kNotANumber };

class Model {
 public:
  // REQUIRES: `book` outlives the model.
  Model(const ModelConfig& config, const CasBook& book)
      : config_(config), items_(config.now, config.unix_start), book_(book) {}

  void advance(int64_t seconds) { items_.advance(seconds); }
  int64_t unix_time() const { return items_.unix_time(); }

  // Processes the next bytes of a stream and appends the expected reply to `reply`.
  void receive(Session& session, std::string_view bytes, Reply& reply);
  // Processes a datagram's payload.
  void receive_datagram(std::string_view bytes, Reply& reply);

  // Whether there was a request whose reply the model cannot predict: later differences mean
  // nothing.
  bool at_a_loss() const { return !loss_.empty(); }
  const std::string& loss() const { return loss_; }

  std::map<std::string, std::string> contents() const { return items_.contents(); }
  // The CAS number of a live item, if it is known; else 0.
  uint64_t cas_number(const std::string& key);

 private:
  using Words = std::vector<std::string>;
  struct MetaLine;

  bool take_swallowed(Session& session);
  // Each processes one message of the session's input. False: there is no complete message.
  bool take_text(Session& session, Reply& reply);
  bool take_binary(Session& session, Reply& reply);

  // model_text.cc
  void refuse_store_line(Session& session, const Words& words, Reply& reply);
  bool take_store(Session& session, size_t line_size, const Words& words, Reply& reply);
  void run_line(Session& session, const std::string& line, bool too_short, const Words& words,
                Reply& reply);
  void run_get(const Words& words, Reply& reply);
  void run_long_get(const Words& words, Reply& reply);
  bool show_key(const std::string& key, bool with_cas, const int64_t* exptime, Reply& reply);
  void run_delete(const Words& words, Reply& reply);
  void run_count(const Words& words, Reply& reply);
  void run_touch(const Words& words, Reply& reply);
  void run_flush_all(const Words& words, Reply& reply);
  void run_verbosity(const Words& words, Reply& reply);

  // model_meta.cc
  void run_meta_get(const Words& words, Reply& reply);
  void show_meta_item(const MetaLine& line, Item& item, bool made, Reply& reply);
  void run_meta_delete(const Words& words, Reply& reply);
  void run_meta_count(const Words& words, Reply& reply);
  bool take_meta_set(Session& session, size_t line_size, const Words& words, Reply& reply);
  void run_meta_set(MetaLine& line, std::string value, Reply& reply);

  // model_binary.cc
  struct Packet;
  void run_packet(Session& session, const Packet& packet, Reply& reply);
  void run_binary_get(const Packet& packet, Reply& reply);
  void run_binary_store(const Packet& packet, Reply& reply);
  void run_binary_count(const Packet& packet, Reply& reply);
  void run_binary_delete(const Packet& packet, Reply& reply);

  // model.cc: shared by all protocols
  StoreOutcome store(const StoreCommand& command, Item** item);
  CountOutcome count(const CountCommand& command, uint64_t& number, Item** item);
  bool too_large(size_t key_size, uint32_t flags, uint64_t value_size) const;
  CasOrder compare(uint64_t given, const Cas& held);

  ModelConfig config_;
  Items items_;
  const CasBook& book_;
  uint32_t administrative_ = 0;  // commands since the last datagram began
  std::string loss_;             // why the model cannot predict further replies; empty: it can
};

}  // namespace warpcache::model
