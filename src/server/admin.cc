// SPDX-License-Identifier: Apache-2.0
#include "server/admin.h"

#include <spdlog/spdlog.h>

#include <algorithm>

#include "control/logging.h"
#include "request/expiry.h"
#include "server/dump_replies.h"
#include "server/reply_sink.h"
#include "wire/admin_reply.h"

namespace warpcache::server {
namespace {

constexpr uint64_t kMemoryLimitMbMin = 8;
constexpr uint64_t kMemoryLimitMbMax = 1'000'000'000;

using Sink = ReplySink;

// memcached's own line.
constexpr std::string_view kBusy = "BUSY currently processing crawler request";

std::string_view words_of(const wire::Request& request, const uint8_t* input) {
  return {reinterpret_cast<const char*>(input) + request.value_offset, request.value_size};
}

}  // namespace

Admin::Admin(const Options& options, const ActiveStore& store, StatsSource& stats,
             LongReplies& long_replies, PrefixStats& prefixes, const AuthFile* auth,
             ServerState& state, StopRequest& stop)
    : options_(options),
      store_(store),
      prefixes_(prefixes),
      auth_(auth),
      state_(state),
      stop_(stop),
      source_(stats),
      long_replies_(long_replies),
      stats_(options, stats, prefixes) {}

void Admin::run(const wire::Request& request, const uint8_t* input, engine::BatchEntry& entry,
                std::string& reply) {
  const Sink sink(reply);
  if (!is_allowed(request, input, entry)) {
    if (request.protocol == wire::Protocol::kBinary) {
      return wire::reply_error(request, Status::kNotSupported, sink);
    }
    return wire::reply_line(request, bytes_of("CLIENT_ERROR not allowed here"), sink);
  }
  switch (request.op) {
    case wire::Op::kMetaDebug:
      return debug_item(request, input, reply);
    case wire::Op::kFlushAll:
      return flush_all(request, reply);
    case wire::Op::kVerbosity:
      set_log_verbosity(static_cast<uint32_t>(request.delta));
      return wire::reply_ok(request, sink);
    case wire::Op::kStats:
      return show_stats(request, words_of(request, input), entry, reply);
    case wire::Op::kCacheMemlimit:
      return set_memory_limit(request, reply);
    case wire::Op::kShutdown:
      return shut_down(request, words_of(request, input), entry, reply);
    case wire::Op::kAdmin:
      return run_line(request, words_of(request, input), entry, reply);
    default:
      return wire::reply_error(request, Status::kUnknownCommand, sink);
  }
}

// What changes the server may be kept from all clients, or from those of an address.
bool Admin::is_allowed(const wire::Request& request, const uint8_t* input,
                       const engine::BatchEntry& entry) const {
  if (entry.admin && options_.server.admin_enabled) return true;
  switch (request.op) {
    case wire::Op::kFlushAll:
    case wire::Op::kVerbosity:
    case wire::Op::kCacheMemlimit:
    case wire::Op::kShutdown:
      return false;
    case wire::Op::kStats:
      return !StatsCommand::changes_something(words_of(request, input));
    case wire::Op::kAdmin:
      return is_dump_line(words_of(request, input));
    default:
      return true;
  }
}

// me: everything that is known of an item, without counting as an access.
void Admin::debug_item(const wire::Request& request, const uint8_t* input, std::string& reply) {
  wire::Result result = {};
  result.outcome = wire::Outcome::kMiss;
  store::Item item;
  if (store_->inspect({input + request.key_offset, request.key_size}, &item)) {
    const store::Clock clock = store_->clock();
    const uint8_t bits = item.load_bits();
    const uint32_t accessed = item.load_access_time();
    result.outcome = wire::Outcome::kHit;
    result.ttl = request::seconds_left(item.load_expiry(), clock);
    result.idle = clock.now > accessed ? clock.now - accessed : 0;
    result.cas = item.load_cas();
    result.item_size = static_cast<uint32_t>(store::item_footprint(item));
    if ((bits & store::kItemFetched) != 0) result.bits |= wire::kHitBefore;
    if ((bits & store::kItemBinaryKey) != 0) result.bits |= wire::kItemKeyIsBinary;
  }
  wire::reply_result(request, result, input, Sink(reply));
}

void Admin::flush_all(const wire::Request& request, std::string& reply) {
  const Sink sink(reply);
  if (!options_.server.flush_enabled) {
    return wire::reply_error(request, Status::kFlushDisabled, sink);
  }
  const store::Clock clock = store_->clock();
  const uint32_t when = request::expiry_second(request.exptime, clock);
  const uint32_t delay = when > clock.now ? when - clock.now : 0;
  // Nothing can have been stored before a date that lies before the server's start.
  const bool before_start = request.exptime > 0 && when == request::kExpired;
  if (before_start) {
    store_->cancel_flush();
  } else {
    store_->flush_all(delay);
  }
  state_.flushes.fetch_add(1, std::memory_order_relaxed);
  const uint32_t last = delay != 0 ? clock.now + delay - 1 : clock.now - 1;
  state_.flushed_at_s.store(before_start ? 0 : last, std::memory_order_relaxed);
  wire::reply_ok(request, sink);
}

void Admin::set_memory_limit(const wire::Request& request, std::string& reply) {
  const Sink sink(reply);
  if (request.delta < kMemoryLimitMbMin) {
    return wire::reply_line(
        request, bytes_of("MEMLIMIT_TOO_SMALL cannot set maxbytes to less than 8m"), sink);
  }
  if (request.delta > kMemoryLimitMbMax) {
    return wire::reply_line(
        request, bytes_of("MEMLIMIT_ADJUST_FAILED input value is megabytes not bytes"), sink);
  }
  const uint64_t wanted = request.delta << 20;
  if (!store_->set_memory_limit(wanted)) {
    return wire::reply_line(
        request, bytes_of("MEMLIMIT_ADJUST_FAILED out of bounds or unable to adjust"), sink);
  }
  state_.memory_limit_bytes.store(wanted, std::memory_order_relaxed);
  spdlog::info("memory limit is now {} MB", request.delta);
  wire::reply_ok(request, sink);
}

void Admin::shut_down(const wire::Request& request, std::string_view words,
                      engine::BatchEntry& entry, std::string& reply) {
  const Sink sink(reply);
  if (!options_.server.shutdown_enabled) {
    return wire::reply_error(request, Status::kShutdownDisabled, sink);
  }
  if (!words.empty() && words != "graceful") {
    return wire::reply_line(request, bytes_of("CLIENT_ERROR invalid shutdown mode"), sink);
  }
  entry.close = true;
  stop_.ask(words.empty() ? StopKind::kNow : StopKind::kGraceful);
}

void Admin::show_stats(const wire::Request& request, std::string_view words,
                       engine::BatchEntry& entry, std::string& reply) {
  const Sink sink(reply);
  std::unique_ptr<StatsWalk> walk;
  const StatsVerdict verdict = stats_.run(
      words,
      [&](std::string_view name, std::string_view value) {
        wire::reply_stat(request, bytes_of(name.substr(0, wire::kKeySizeMax)), bytes_of(value),
                         sink);
      },
      walk);
  if (walk != nullptr) {
    const bool is_text = verdict == StatsVerdict::kTextWalk;
    return reply_later(LongReplies::Kind::kStats,
                       std::make_unique<StatsReply>(request, is_text, std::move(walk)), request,
                       entry, reply);
  }
  if (request.protocol != wire::Protocol::kBinary) {
    reply += verdict_line(verdict);
    return;
  }
  switch (verdict) {
    case StatsVerdict::kEnd:
    case StatsVerdict::kReset:
    case StatsVerdict::kOk:
      return wire::reply_stats_end(request, sink);
    default:
      wire::Result result = {};
      result.outcome = wire::Outcome::kNotFound;
      return wire::reply_result(request, result, nullptr, sink);
  }
}

// Hands over a reply that is made while the worker goes on. Not over UDP, where nobody could slow
// it down and anybody could be its target.
void Admin::reply_later(LongReplies::Kind kind, std::unique_ptr<LongReply> long_reply,
                        const wire::Request& request, engine::BatchEntry& entry,
                        std::string& reply) {
  const Sink sink(reply);
  if (entry.datagram) {
    return wire::reply_line(request, bytes_of("CLIENT_ERROR not available over UDP"), sink);
  }
  entry.long_reply = long_replies_.add(kind, std::move(long_reply));
  if (entry.long_reply == nullptr) wire::reply_line(request, bytes_of(kBusy), sink);
}

// -Y: the first command must be a `set` of any key, whose value is a name and a password.
void Admin::authenticate(const wire::Request& request, const uint8_t* input,
                         engine::BatchEntry& entry, std::string& reply) {
  const Sink sink(reply);
  // Every key of a multiget comes here; one of them answers.
  if (request.op == wire::Op::kGet && request.protocol == wire::Protocol::kText &&
      (request.bits & wire::kLastKey) == 0) {
    return;
  }
  wire::Request said = request;
  said.bits &= ~static_cast<uint32_t>(wire::kNoReply | wire::kQuiet);
  const bool is_login = request.op == wire::Op::kSet && request.protocol == wire::Protocol::kText &&
                        (request.bits & wire::kCasCompare) == 0;
  if (!is_login) return wire::reply_error(said, Status::kUnauthenticated, sink);
  if (request.status == Status::kBadDataChunk) {
    return wire::reply_line(said, bytes_of("CLIENT_ERROR bad command line termination"), sink);
  }
  if (request.status != Status::kOk) return wire::reply_error(said, request.status, sink);
  state_.auth_commands.fetch_add(1, std::memory_order_relaxed);
  const AuthResult result = auth_->check(words_of(request, input));
  if (result == AuthResult::kAccepted) {
    entry.authenticated = true;
    reply += "STORED\r\n";
    return;
  }
  state_.auth_errors.fetch_add(1, std::memory_order_relaxed);
  entry.close = ++entry.failed_logins >= AuthFile::kFailedLoginsMax;
  wire::reply_line(
      said,
      bytes_of(result == AuthResult::kRefused ? "CLIENT_ERROR authentication failure"
                                              : "CLIENT_ERROR bad authentication token format"),
      sink);
}

void Admin::saw_key(wire::Op op, Bytes key, bool hit) {
  const std::string_view text(reinterpret_cast<const char*>(key.data), key.size);
  switch (op) {
    case wire::Op::kGet:
      return prefixes_.record(hit ? PrefixEvent::kGetHit : PrefixEvent::kGet, text);
    case wire::Op::kSet:
    case wire::Op::kAdd:
    case wire::Op::kReplace:
    case wire::Op::kAppend:
    case wire::Op::kPrepend:
      return prefixes_.record(PrefixEvent::kSet, text);
    case wire::Op::kDelete:
      return prefixes_.record(PrefixEvent::kDelete, text);
    default:
      return;
  }
}

}  // namespace warpcache::server
