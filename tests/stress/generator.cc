// SPDX-License-Identifier: Apache-2.0
#include "stress/generator.h"

namespace warpcache::stress {

namespace {

constexpr uint32_t kMultigetMax = 5;  // keys
constexpr uint32_t kSmallValueMax = 300;
// So short that some items expire between two requests.
constexpr int32_t kExptimeMax = 5;

}  // namespace

Generator::Generator(const Scenario& scenario, uint32_t thread, uint64_t seed)
    : scenario_(scenario), thread_(thread), random_(seed * 1000 + thread), cas_(scenario.keys, 0) {}

Generator::KeyClass Generator::class_of(uint32_t key) const {
  if (key % 3 == 2) return KeyClass::kNumber;
  return scenario_.large_values && key % 4 == 0 ? KeyClass::kLarge : KeyClass::kSmall;
}

int32_t Generator::random_exptime(Form form) {
  if (!scenario_.expiry || below(100) < 50) return 0;
  if (form != Form::kBinary && one_in(30)) return -1;  // binary times have no sign
  return 1 + static_cast<int32_t>(below(kExptimeMax));
}

void Generator::learn(const Operation& op) {
  if (op.shows(kShowsCas)) cas_[op.key] = op.seen_cas;
}

void Generator::maybe_compare(uint64_t percent, Operation* op) {
  if (cas_[op->key] == 0 || below(100) >= percent) return;
  op->options |= kComparesCas;
  op->cas_compare = cas_[op->key];
}

void Generator::make_read(Form form, Operation* op) {
  op->kind = Kind::kGet;
  if (scenario_.exhaust_pins) op->options |= kMayBeUnpinned;
  if (form == Form::kText && one_in(2)) op->shown = kShowsCas;  // gets
  if (form == Form::kMeta) op->options |= kMeta;
  if (below(100) < 12) {
    op->options |= kTouches;
    op->exptime = random_exptime(form);
  }
  if (form != Form::kMeta) return;
  // A stub has no value, so it is no number: only keys with small values are vivified. T and N
  // together, and R with them, are not tested here.
  if (class_of(op->key) == KeyClass::kSmall && below(100) < 8) {
    op->options = kMeta | kVivifies;
    op->exptime = 0;
    op->vivify_exptime = random_exptime(form);
  } else if (scenario_.expiry && below(100) < 15) {
    op->options |= kRecaches;
    op->recache_ttl = static_cast<int32_t>(below(kExptimeMax));
  }
}

// Makes a multiget of the last read. Each key comes once: the reply does not show which of two was
// missed.
void Generator::make_more_reads(std::vector<Operation>* operations) {
  const size_t first = operations->size() - 1;
  const uint64_t count = below(kMultigetMax);
  for (uint64_t i = 0; i < count; ++i) {
    Operation op = operations->back();
    op.key = static_cast<uint32_t>(below(scenario_.keys));
    bool taken = class_of(op.key) == KeyClass::kLarge;
    for (size_t j = first; j < operations->size(); ++j) taken |= (*operations)[j].key == op.key;
    if (!taken) operations->push_back(op);
  }
}

void Generator::make_value_for(Operation* op, std::string* body) {
  const uint64_t id = next_id();
  op->flags = static_cast<uint32_t>(id);
  if (op->kind == Kind::kAppend || op->kind == Kind::kPrepend) {
    *body = "a" + std::to_string(id) + ";";
    op->flags = 0;
  } else if (class_of(op->key) == KeyClass::kNumber) {
    const uint64_t number = id * 1000;
    op->value = number_value(number, 0);
    *body = std::to_string(number);
    return;
  } else if (class_of(op->key) == KeyClass::kLarge && one_in(2)) {
    *body = make_value(id, 1000 + static_cast<uint32_t>(below(scenario_.value_max - 1000)));
  } else {
    *body = make_value(id, static_cast<uint32_t>(below(kSmallValueMax)));
  }
  op->value = value_of(*body);
}

void Generator::make_store(Form form, Operation* op, std::string* body) {
  constexpr Kind kKinds[] = {Kind::kSet,    Kind::kSet,    Kind::kSet,     Kind::kSet,
                             Kind::kSet,    Kind::kAdd,    Kind::kReplace, Kind::kReplace,
                             Kind::kAppend, Kind::kPrepend};
  op->kind = kKinds[below(std::size(kKinds))];
  const bool joins = op->kind == Kind::kAppend || op->kind == Kind::kPrepend;
  if (joins && class_of(op->key) == KeyClass::kNumber) op->kind = Kind::kAdd;
  make_value_for(op, body);
  op->exptime = op->kind == Kind::kAppend || op->kind == Kind::kPrepend ? 0 : random_exptime(form);
  if (form == Form::kMeta) op->options |= kMeta;
  const bool may_compare =
      op->kind == Kind::kSet || (op->kind == Kind::kReplace && form != Form::kText);
  if (may_compare) maybe_compare(50, op);
  const bool drops = form == Form::kMeta ||
                     (op->kind == Kind::kSet && (form == Form::kBinary || !op->has(kComparesCas)));
  if (drops) op->options |= kDropsOnFailure;
  if (form == Form::kMeta && op->has(kComparesCas) && one_in(3)) op->options |= kInvalidates;
}

bool Generator::make_plain_set(uint32_t bytes_max, Operation* op, std::string* body) {
  op->kind = Kind::kSet;
  op->key = static_cast<uint32_t>(below(scenario_.keys));
  make_value_for(op, body);
  op->options |= kDropsOnFailure;
  return body->size() <= bytes_max;
}

void Generator::make_delete(Form form, Operation* op) {
  op->kind = Kind::kDelete;
  if (form == Form::kText) return;
  maybe_compare(30, op);
  if (form != Form::kMeta) return;
  op->options |= kMeta;
  if (one_in(2)) op->options |= kInvalidates;
  if (class_of(op->key) == KeyClass::kSmall && one_in(6)) op->options |= kEmpties;
  if (op->has(kInvalidates) && one_in(2)) {
    op->options |= kTouches;
    op->exptime = random_exptime(form);
  }
}

void Generator::make_delta(Form form, Operation* op) {
  op->kind = scenario_.plain_gets == 0 && one_in(3) ? Kind::kDecr : Kind::kIncr;
  op->delta = 1 + below(9);
  if (op->kind == Kind::kDecr && one_in(20))
    op->delta = UINT64_MAX;  // down to 0, padded with
                             // blanks
  if (form == Form::kText) return;
  if (one_in(3)) {
    op->options |= kVivifies;
    op->vivify_exptime = std::max(random_exptime(form), 0);
    op->initial = next_id() * 1000;
  }
  maybe_compare(20, op);
  if (form != Form::kMeta) return;
  op->options |= kMeta;
  if (!op->has(kVivifies) && one_in(6)) {
    op->options |= kTouches;
    op->exptime = random_exptime(form);
  }
}

void Generator::make(Form* form, std::vector<Operation>* operations, std::string* body) {
  const bool has_meta = scenario_.plain_gets == 0;
  if (*form != Form::kBinary) *form = has_meta && one_in(2) ? Form::kMeta : Form::kText;
  Operation op;
  op.key = static_cast<uint32_t>(below(scenario_.keys));
  body->clear();
  if (!has_meta && below(100) < scenario_.plain_gets) {
    if (*form == Form::kText && one_in(2)) op.shown = kShowsCas;  // gets
    operations->push_back(op);
    return;
  }
  if (scenario_.flush_every != 0 && one_in(scenario_.flush_every)) {
    if (*form == Form::kMeta) *form = Form::kText;
    op.kind = Kind::kFlush;
    operations->push_back(op);
    return;
  }
  const uint64_t choice = below(100);
  const bool number = class_of(op.key) == KeyClass::kNumber;
  if (choice < 45) {
    make_read(*form, &op);
  } else if (choice < (number ? 60u : 83u)) {
    make_store(*form, &op, body);
  } else if (choice < 91) {
    make_delta(*form, &op);
  } else if (choice < 96) {
    make_delete(*form, &op);
  } else {
    op.kind = Kind::kTouch;
    if (*form == Form::kMeta) *form = Form::kText;
    op.exptime = random_exptime(*form);
  }
  operations->push_back(op);
  const bool small = class_of(op.key) != KeyClass::kLarge;
  if (op.kind == Kind::kGet && *form == Form::kText && small) make_more_reads(operations);
}

}  // namespace warpcache::stress
