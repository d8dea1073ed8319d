// SPDX-License-Identifier: Apache-2.0
#include "admin/admin.h"

#include <spdlog/spdlog.h>

#include <algorithm>

#include "admin/dump_replies.h"
#include "admin/reply_sink.h"
#include "options/logging.h"
#include "protocol/compose/admin_reply.h"
#include "request/expiry.h"

namespace warpcache::admin {
namespace {

constexpr uint64_t kMemoryLimitMbMin = 8;
constexpr uint64_t kMemoryLimitMbMax = 1'000'000'000;

using Sink = ReplySink;

// memcached's line.
constexpr std::string_view kBusy = "BUSY currently processing crawler request";

}  // namespace

Admin::Admin(const Options& options, const store::ActiveStore& store, StatsSource& stats,
             LongReplies& long_replies, Watchers& watchers, Inspection& inspection,
             const Logins& logins, ServerState& state, StopRequest& stop)
    : options_(options),
      store_(store),
      inspection_(inspection),
      logins_(logins),
      state_(state),
      stop_(stop),
      source_(stats),
      long_replies_(long_replies),
      watchers_(watchers),
      stats_(options, stats, inspection) {}

void Admin::run(const protocol::Request& request, const uint8_t* input, engine::BatchEntry& entry,
                std::string& reply) {
  const Sink sink(reply);
  if (!is_allowed(request, input, entry)) {
    if (request.protocol == protocol::Protocol::kBinary) {
      return protocol::reply_error(request, Status::kNotSupported, sink);
    }
    return protocol::reply_line(request, bytes_of("CLIENT_ERROR not allowed here"), sink);
  }
  switch (request.op) {
    case protocol::Op::kMetaDebug:
      return debug_item(request, input, entry, reply);
    case protocol::Op::kFlushAll:
      return flush_all(request, reply);
    case protocol::Op::kFlushPrefix:
      return flush_prefix(request, input, entry, reply);
    case protocol::Op::kVerbosity:
      set_log_verbosity(static_cast<uint32_t>(request.delta));
      return protocol::reply_ok(request, sink);
    case protocol::Op::kStats:
      return show_stats(request, words_of(request, input), entry, reply);
    case protocol::Op::kCacheMemlimit:
      return set_memory_limit(request, reply);
    case protocol::Op::kShutdown:
      return shut_down(request, words_of(request, input), entry, reply);
    case protocol::Op::kAdmin:
      return run_line(request, words_of(request, input), entry, reply);
    case protocol::Op::kSasl:
      if (logins_.sasl != nullptr) return run_sasl(request, input, entry, reply);
      return protocol::reply_error(request, Status::kUnknownCommand, sink);
    default:
      return protocol::reply_error(request, Status::kUnknownCommand, sink);
  }
}

// Whether the client may run the command: options can forbid commands that change the server, for
// all clients or for those of a listener.
bool Admin::is_allowed(const protocol::Request& request, const uint8_t* input,
                       const engine::BatchEntry& entry) const {
  if (entry.admin && options_.server.admin_enabled) return true;
  switch (request.op) {
    case protocol::Op::kFlushAll:
    case protocol::Op::kFlushPrefix:
    case protocol::Op::kVerbosity:
    case protocol::Op::kCacheMemlimit:
    case protocol::Op::kShutdown:
      return false;
    case protocol::Op::kStats:
      return !StatsCommand::changes_something(words_of(request, input));
    case protocol::Op::kAdmin:
      return is_dump_line(words_of(request, input));
    default:
      return true;
  }
}

// me: shows all metadata of an item. Does not count as an access.
void Admin::debug_item(const protocol::Request& request, const uint8_t* input,
                       const engine::BatchEntry& entry, std::string& reply) {
  protocol::Result result = {};
  result.outcome = protocol::Outcome::kMiss;
  store::Item item = {};
  if (store_->inspect({input + request.key_offset, request.key_size}, &item)) {
    const store::Clock clock = store_->clock();
    const uint8_t bits = item.load_bits();
    const uint32_t accessed = item.load_access_time();
    result.outcome = protocol::Outcome::kHit;
    result.ttl = request::seconds_left(item.load_expiry(), clock);
    result.idle = clock.now > accessed ? clock.now - accessed : 0;
    result.cas = item.load_cas();
    result.item_size = static_cast<uint32_t>(store::item_footprint(item));
    if ((bits & store::kItemFetched) != 0) result.bits |= protocol::kHitBefore;
    if ((bits & store::kItemBinaryKey) != 0) result.bits |= protocol::kItemKeyIsBinary;
  }
  protocol::reply_result(request, result, input, Sink(reply));
  if ((watchers_.wanted() & engine::kWatchFetchers) == 0) return;
  const bool found = result.outcome == protocol::Outcome::kHit;
  watchers_.saw_look_up(entry.fd, {input + request.key_offset, request.key_size},
                        found ? engine::KeyState::kFound : engine::KeyState::kNotFound,
                        item.value_size);
}

void Admin::flush_all(const protocol::Request& request, std::string& reply) {
  const Sink sink(reply);
  if (!options_.server.flush_enabled) {
    return protocol::reply_error(request, Status::kFlushDisabled, sink);
  }
  const store::Clock clock = store_->clock();
  const uint32_t when = request::expiry_second(request.exptime, clock);
  const uint32_t delay = when > clock.now ? when - clock.now : 0;
  // A date before the server's start: no item can be that old.
  const bool before_start = request.exptime > 0 && when == request::kExpired;
  if (before_start) {
    store_->cancel_flush();
  } else {
    store_->flush_all(delay);
  }
  state_.flushes.fetch_add(1, std::memory_order_relaxed);
  const uint32_t last = delay != 0 ? clock.now + delay - 1 : clock.now - 1;
  state_.flushed_at_s.store(before_start ? 0 : last, std::memory_order_relaxed);
  protocol::reply_ok(request, sink);
}

// Flushes the keys of a namespace: those that begin with the prefix and the delimiter of
// `stats detail`. The client may write the delimiter or leave it out.
void Admin::flush_prefix(const protocol::Request& request, const uint8_t* input,
                         const engine::BatchEntry& entry, std::string& reply) {
  const Sink sink(reply);
  if (!options_.server.flush_enabled || options_.store.flushed_prefixes_max == 0) {
    return protocol::reply_line(request, bytes_of("CLIENT_ERROR flush_prefix not allowed"), sink);
  }
  uint8_t prefix[protocol::kKeySizeMax + 1];
  uint32_t size = request.key_size;
  std::copy_n(input + request.key_offset, size, prefix);
  const auto delimiter = static_cast<uint8_t>(options_.stats.prefix_delimiter);
  if (prefix[size - 1] != delimiter) prefix[size++] = delimiter;
  if (size > store::kFlushedPrefixSizeMax) {
    return protocol::reply_line(request, bytes_of("CLIENT_ERROR prefix is too long"), sink);
  }
  if (entry.user != 0 && !rights_of(entry.user)->allows_flush({prefix, size})) {
    denied();
    return protocol::reply_line(request, bytes_of("CLIENT_ERROR access denied"), sink);
  }
  const store::Clock clock = store_->clock();
  const uint32_t when = request::expiry_second(request.exptime, clock);
  const uint32_t delay = when > clock.now ? when - clock.now : 0;
  if (store_->flush_prefix({prefix, size}, delay) != Status::kOk) {
    return protocol::reply_line(
        request, bytes_of("SERVER_ERROR too many flushed prefixes are not swept yet"), sink);
  }
  state_.prefix_flushes.fetch_add(1, std::memory_order_relaxed);
  protocol::reply_ok(request, sink);
}

void Admin::set_memory_limit(const protocol::Request& request, std::string& reply) {
  const Sink sink(reply);
  if (request.delta < kMemoryLimitMbMin) {
    return protocol::reply_line(
        request, bytes_of("MEMLIMIT_TOO_SMALL cannot set maxbytes to less than 8m"), sink);
  }
  if (request.delta > kMemoryLimitMbMax) {
    return protocol::reply_line(
        request, bytes_of("MEMLIMIT_ADJUST_FAILED input value is megabytes not bytes"), sink);
  }
  const uint64_t wanted = request.delta << 20;
  if (!store_->set_memory_limit(wanted)) {
    return protocol::reply_line(
        request, bytes_of("MEMLIMIT_ADJUST_FAILED out of bounds or unable to adjust"), sink);
  }
  state_.memory_limit_bytes.store(wanted, std::memory_order_relaxed);
  spdlog::info("memory limit is now {} MB", request.delta);
  protocol::reply_ok(request, sink);
}

void Admin::shut_down(const protocol::Request& request, std::string_view words,
                      engine::BatchEntry& entry, std::string& reply) {
  const Sink sink(reply);
  if (!options_.server.shutdown_enabled) {
    return protocol::reply_error(request, Status::kShutdownDisabled, sink);
  }
  if (!words.empty() && words != "graceful") {
    return protocol::reply_line(request, bytes_of("CLIENT_ERROR invalid shutdown mode"), sink);
  }
  entry.close = true;
  stop_.ask(words.empty() ? StopKind::kNow : StopKind::kGraceful);
}

void Admin::show_stats(const protocol::Request& request, std::string_view words,
                       engine::BatchEntry& entry, std::string& reply) {
  const Sink sink(reply);
  std::unique_ptr<StatsWalk> walk;
  const StatsVerdict verdict = stats_.run(
      words,
      [&](std::string_view name, std::string_view value) {
        protocol::reply_stat(request, bytes_of(name.substr(0, protocol::kKeySizeMax)),
                             bytes_of(value), sink);
      },
      walk);
  if (walk != nullptr) {
    const bool is_text = verdict == StatsVerdict::kTextWalk;
    return reply_later(LongReplies::Kind::kStats,
                       std::make_unique<StatsReply>(request, is_text, std::move(walk)), request,
                       entry, reply);
  }
  if (request.protocol != protocol::Protocol::kBinary) {
    reply += verdict_line(verdict);
    return;
  }
  switch (verdict) {
    case StatsVerdict::kEnd:
    case StatsVerdict::kReset:
    case StatsVerdict::kOk:
      return protocol::reply_stats_end(request, sink);
    default:
      protocol::Result result = {};
      result.outcome = protocol::Outcome::kNotFound;
      return protocol::reply_result(request, result, nullptr, sink);
  }
}

// Starts a long reply, which another thread makes while the worker continues. Refused over UDP: it
// has no flow control, and the source address may be forged.
void Admin::reply_later(LongReplies::Kind kind, std::unique_ptr<LongReply> long_reply,
                        const protocol::Request& request, engine::BatchEntry& entry,
                        std::string& reply) {
  const Sink sink(reply);
  if (entry.datagram) {
    return protocol::reply_line(request, bytes_of("CLIENT_ERROR not available over UDP"), sink);
  }
  entry.long_reply = long_replies_.add(kind, std::move(long_reply));
  if (entry.long_reply == nullptr) protocol::reply_line(request, bytes_of(kBusy), sink);
}

void Admin::saw_request(const engine::SeenRequest& seen) {
  saw_key(seen.request.op, seen.key, seen.hit);
  if (watches_requests()) watchers_.saw_request(seen);
}

void Admin::saw_key(protocol::Op op, Bytes key, bool hit) {
  const std::string_view text(reinterpret_cast<const char*>(key.data), key.size);
  if (inspection_.hot_keys.enabled() && HotKeys::takes_this()) inspection_.hot_keys.saw(text, hit);
  if (!inspection_.prefixes.enabled()) return;
  PrefixStats& prefixes = inspection_.prefixes;
  switch (op) {
    case protocol::Op::kGet:
      return prefixes.record(hit ? PrefixEvent::kGetHit : PrefixEvent::kGet, text);
    case protocol::Op::kSet:
    case protocol::Op::kAdd:
    case protocol::Op::kReplace:
    case protocol::Op::kAppend:
    case protocol::Op::kPrepend:
      return prefixes.record(PrefixEvent::kSet, text);
    case protocol::Op::kDelete:
      return prefixes.record(PrefixEvent::kDelete, text);
    default:
      return;
  }
}

}  // namespace warpcache::admin
