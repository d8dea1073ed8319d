// SPDX-License-Identifier: Apache-2.0
//
// Runs the administrative commands and composes their replies. The server has one; the engines of
// all workers call it at the same time.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "admin/access.h"
#include "admin/inspection.h"
#include "admin/long_replies.h"
#include "admin/sasl.h"
#include "admin/server_state.h"
#include "admin/stats_command.h"
#include "admin/watchers.h"
#include "engine/engine.h"
#include "options/auth_file.h"
#include "options/options.h"
#include "store/host/active_store.h"

namespace warpcache::admin {

// What clients log in with. Null: not asked for. At most one is given.
struct Logins {
  const AuthFile* tokens = nullptr;  // -Y
  Sasl* sasl = nullptr;              // -S
  Access* access = nullptr;          // --access, with one of them
};

class Admin final : public engine::AdminHandler {
 public:
  // REQUIRES: all arguments outlive this object.
  Admin(const Options& options, const store::ActiveStore& store, StatsSource& stats,
        LongReplies& long_replies, Watchers& watchers, Inspection& inspection, const Logins& logins,
        ServerState& state, StopRequest& stop);

  void run(const protocol::Request& request, const uint8_t* input, engine::BatchEntry& entry,
           std::string& reply) override;
  void authenticate(const protocol::Request& request, const uint8_t* input,
                    engine::BatchEntry& entry, std::string& reply) override;
  std::shared_ptr<const engine::Rights> rights_of(uint16_t user) const override {
    return logins_.access->rights_of(user);
  }
  void denied() override { state_.access_denied.fetch_add(1, std::memory_order_relaxed); }
  bool wants_keys() const override {
    const bool sampled = inspection_.hot_keys.enabled() && inspection_.hot_keys.takes_batch();
    return sampled || inspection_.prefixes.enabled() || watches_requests();
  }
  bool watches_requests() const override {
    return (watchers_.wanted() & engine::kWatchRequests) != 0;
  }
  void saw_key(protocol::Op op, Bytes key, bool hit) override;
  void saw_request(const engine::SeenRequest& seen) override;

 private:
  bool is_allowed(const protocol::Request& request, const uint8_t* input,
                  const engine::BatchEntry& entry) const;
  void debug_item(const protocol::Request& request, const uint8_t* input,
                  const engine::BatchEntry& entry, std::string& reply);
  void flush_all(const protocol::Request& request, std::string& reply);
  void flush_prefix(const protocol::Request& request, const uint8_t* input,
                    const engine::BatchEntry& entry, std::string& reply);
  void set_memory_limit(const protocol::Request& request, std::string& reply);
  void shut_down(const protocol::Request& request, std::string_view words,
                 engine::BatchEntry& entry, std::string& reply);
  void show_stats(const protocol::Request& request, std::string_view words,
                  engine::BatchEntry& entry, std::string& reply);
  void reply_later(LongReplies::Kind kind, std::unique_ptr<LongReply> long_reply,
                   const protocol::Request& request, engine::BatchEntry& entry, std::string& reply);
  void run_line(const protocol::Request& request, std::string_view line, engine::BatchEntry& entry,
                std::string& reply);
  std::string crawler(std::string_view words);
  void watch(std::string_view words, engine::BatchEntry& entry, std::string& reply);
  void dump(const protocol::Request& request, std::string_view words, engine::BatchEntry& entry,
            std::string& reply);
  void log_in_by_token(const protocol::Request& request, const uint8_t* input,
                       engine::BatchEntry& entry, std::string& reply);
  void log_in_by_sasl(const protocol::Request& request, const uint8_t* input,
                      engine::BatchEntry& entry, std::string& reply);
  bool let_in(std::string_view user, engine::BatchEntry& entry);
  void run_sasl(const protocol::Request& request, const uint8_t* input, engine::BatchEntry& entry,
                std::string& reply);
  static bool is_dump_line(std::string_view line);  // metadump or mgdump, which only read
  // The classes in a command of the crawler.
  enum class Classes : uint8_t { kBad, kEmpty, kWithItems };
  static Classes read_classes(std::string_view text);
  static std::string slabs(std::string_view words);
  static std::string lru(std::string_view words);
  std::string debug_time(std::string_view words);

  const Options& options_;
  const store::ActiveStore& store_;
  Inspection& inspection_;
  Logins logins_;
  ServerState& state_;
  StopRequest& stop_;
  StatsSource& source_;
  LongReplies& long_replies_;
  Watchers& watchers_;
  StatsCommand stats_;
};

}  // namespace warpcache::admin
