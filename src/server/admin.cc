// SPDX-License-Identifier: Apache-2.0
#include "server/admin.h"

#include <spdlog/spdlog.h>

#include <algorithm>

#include "control/logging.h"
#include "request/expiry.h"
#include "wire/admin_reply.h"

namespace warpcache::server {
namespace {

constexpr uint64_t kMemoryLimitMbMin = 8;
constexpr uint64_t kMemoryLimitMbMax = 1'000'000'000;

// Appends to a reply; what the functions of wire/admin_reply.h write into.
class Sink {
 public:
  explicit Sink(std::string& reply) : reply_(reply) {}
  void operator()(Bytes bytes) const {
    reply_.append(reinterpret_cast<const char*>(bytes.data), bytes.size);
  }

 private:
  std::string& reply_;
};

std::string_view words_of(const wire::Request& request, const uint8_t* input) {
  return {reinterpret_cast<const char*>(input) + request.value_offset, request.value_size};
}

}  // namespace

Admin::Admin(const Options& options, const ActiveStore& store, StatsSource& stats,
             PrefixStats& prefixes, const AuthFile* auth, ServerState& state, StopRequest& stop)
    : options_(options),
      store_(store),
      prefixes_(prefixes),
      auth_(auth),
      state_(state),
      stop_(stop),
      source_(stats),
      stats_(options, stats, prefixes) {}

void Admin::run(const wire::Request& request, const uint8_t* input, engine::BatchEntry& entry,
                std::string& reply) {
  const Sink sink(reply);
  switch (request.op) {
    case wire::Op::kMetaDebug:
      return debug_item(request, input, reply);
    case wire::Op::kFlushAll:
      return flush_all(request, reply);
    case wire::Op::kVerbosity:
      set_log_verbosity(static_cast<uint32_t>(request.delta));
      return wire::reply_ok(request, sink);
    case wire::Op::kStats:
      return show_stats(request, words_of(request, input), reply);
    case wire::Op::kCacheMemlimit:
      return set_memory_limit(request, reply);
    case wire::Op::kShutdown:
      return shut_down(request, words_of(request, input), entry, reply);
    case wire::Op::kAdmin:
      return run_line(request, words_of(request, input), reply);
    default:
      return wire::reply_error(request, Status::kUnknownCommand, sink);
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
  const uint64_t reached = store_->set_memory_limit(wanted);
  const uint64_t slack = store_->stats().segment_size;
  if (reached > wanted + slack || wanted > reached + slack) {
    (void)store_->set_memory_limit(state_.memory_limit_bytes.load(std::memory_order_relaxed));
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

void Admin::show_stats(const wire::Request& request, std::string_view words, std::string& reply) {
  const Sink sink(reply);
  std::string text;
  const StatsVerdict verdict = stats_.run(
      words,
      [&](std::string_view name, std::string_view value) {
        wire::reply_stat(request, bytes_of(name.substr(0, wire::kKeySizeMax)), bytes_of(value),
                         sink);
      },
      text);
  if (request.protocol != wire::Protocol::kBinary) {
    reply += verdict == StatsVerdict::kText ? std::string_view(text) : verdict_line(verdict);
    return;
  }
  switch (verdict) {
    case StatsVerdict::kText:
      wire::reply_stat(request, bytes_of("detailed"), bytes_of(text), sink);
      return wire::reply_stats_end(request, sink);
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
  switch (auth_->check(words_of(request, input))) {
    case AuthResult::kAccepted:
      entry.authenticated = true;
      reply += "STORED\r\n";
      return;
    case AuthResult::kRefused:
      state_.auth_errors.fetch_add(1, std::memory_order_relaxed);
      return wire::reply_line(said, bytes_of("CLIENT_ERROR authentication failure"), sink);
    case AuthResult::kBadFormat:
      state_.auth_errors.fetch_add(1, std::memory_order_relaxed);
      return wire::reply_line(said, bytes_of("CLIENT_ERROR bad authentication token format"), sink);
  }
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
