// SPDX-License-Identifier: Apache-2.0
#include "stress/operation.h"

#include <fmt/format.h>

namespace warpcache::stress {

namespace {

constexpr const char* kKindNames[] = {"get",    "set",  "add",  "replace", "append", "prepend",
                                      "delete", "incr", "decr", "touch",   "flush",  "evict"};
constexpr const char* kOutcomeNames[] = {
    "?",       "hit",     "miss",   "stored", "not stored",  "exists",   "missing",
    "deleted", "touched", "number", "ok",     "not numeric", "no memory"};

std::string describe_value(const Value& value) {
  if (value.is_number) return std::to_string(value.number);
  return fmt::format("{:08x}/{}", value.hash & 0xffffffff, value.size);
}

void add_arguments(const Operation& op, std::string& text) {
  const bool stores = op.kind >= Kind::kSet && op.kind <= Kind::kPrepend;
  if (stores) text += fmt::format(" value={} flags={}", describe_value(op.value), op.flags);
  if (stores || op.has(kTouches) || op.kind == Kind::kTouch)
    text += fmt::format(" exptime={}", op.exptime);
  if (op.has(kComparesCas) || op.kind == Kind::kEvict)
    text += fmt::format(" cas={}", op.cas_compare);
  if (op.kind == Kind::kIncr || op.kind == Kind::kDecr) text += fmt::format(" by={}", op.delta);
  if (op.has(kVivifies)) text += fmt::format(" vivify={}/{}", op.vivify_exptime, op.initial);
  if (op.has(kRecaches)) text += fmt::format(" recache={}", op.recache_ttl);
  if (op.has(kInvalidates)) text += " invalidate";
  if (op.has(kEmpties)) text += " empty";
  if (op.has(kOptional)) text += " optional";
}

}  // namespace

std::string describe(const Operation& op, int64_t origin) {
  std::string text =
      fmt::format("{:.3f}..{:.3f} us, clock {}..{}, session {}: {}",
                  static_cast<double>(op.invoked - origin) / 1e3,
                  static_cast<double>(op.responded - origin) / 1e3, op.clock_low, op.clock_high,
                  op.session, kKindNames[static_cast<size_t>(op.kind)]);
  add_arguments(op, text);
  text += fmt::format(" -> {}", kOutcomeNames[static_cast<size_t>(op.outcome)]);
  if (op.outcome == Outcome::kNumber) text += fmt::format(" {}", op.seen_number);
  if (op.shows(kShowsValue)) text += fmt::format(" value={}", describe_value(op.seen));
  if (op.shows(kShowsCas)) text += fmt::format(" cas={}", op.seen_cas);
  if (op.shows(kShowsTtl)) text += fmt::format(" ttl={}", op.seen_ttl);
  if (op.shows(kShowsFlags)) text += fmt::format(" flags={}", op.seen_flags);
  if ((op.signs & kWon) != 0) text += " W";
  if ((op.signs & kStale) != 0) text += " X";
  if ((op.signs & kAlreadySent) != 0) text += " Z";
  return text;
}

}  // namespace warpcache::stress
