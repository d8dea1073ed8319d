// SPDX-License-Identifier: Apache-2.0
#include "model/model.h"

#include <algorithm>
#include <utility>

#include "model/numbers.h"

namespace warpcache::model {

namespace {

constexpr size_t kNumberMax = 16'000;  // bytes

}  // namespace

void Model::receive(Session& session, std::string_view bytes, Reply& reply) {
  if (session.closed) return;
  session.input += bytes;
  while (!session.closed && loss_.empty()) {
    if (take_swallowed(session)) continue;
    if (session.input.empty() || session.swallow != 0) break;
    if (session.language == Session::Language::kUnknown) {
      const bool binary = static_cast<uint8_t>(session.input[0]) == 0x80;
      session.language = binary ? Session::Language::kBinary : Session::Language::kText;
    }
    const bool text = session.language == Session::Language::kText;
    if (!(text ? take_text(session, reply) : take_binary(session, reply))) break;
  }
}

void Model::receive_datagram(std::string_view bytes, Reply& reply) {
  Session session;
  administrative_ = 0;
  receive(session, bytes, reply);
  if (administrative_ > 1) loss_ = "several administrative commands in a datagram";
  if (session.swallow != 0) loss_ = "a datagram without the end of its value";
  if (session.closed || session.input.empty()) return;
  if (session.language == Session::Language::kText) {
    reply.add("CLIENT_ERROR bad command line format\r\n");
  } else {
    loss_ = "half a binary datagram";
  }
}

// True: there was something to throw away, and there is an end to it.
bool Model::take_swallowed(Session& session) {
  if (session.swallow == 0) return false;
  const uint64_t here = std::min<uint64_t>(session.swallow, session.input.size());
  session.input.erase(0, here);
  session.swallow -= here;
  return session.swallow == 0;
}

uint64_t Model::cas_number(const std::string& key) {
  const Item* item = items_.find(key);
  return item == nullptr ? 0 : book_.number_of(item->cas);
}

bool Model::too_large(size_t key_size, uint32_t flags, uint64_t value_size) const {
  const uint64_t header = 48 + 8 + (flags != 0 ? 4 : 0);
  return header + key_size + 1 + value_size + 2 > config_.item_size_max;
}

CasOrder Model::compare(uint64_t given, const Cas& held) {
  const CasOrder order = book_.compare(given, held);
  if (order == CasOrder::kUnknown) loss_ = "a CAS id that no reply has told";
  return order;
}

namespace {

using Mode = StoreCommand::Mode;

bool joins(Mode mode) { return mode == Mode::kAppend || mode == Mode::kPrepend; }

std::string joined(const StoreCommand& command, const Item& old) {
  return command.mode == Mode::kAppend ? old.value + command.value : command.value + old.value;
}

}  // namespace

StoreOutcome Model::store(const StoreCommand& command, Item** item) {
  Item* old = items_.find(command.key);
  Item made;
  made.value = command.value;
  made.flags = command.flags;
  made.expiry = items_.expiry_of(command.exptime);
  made.key_was_base64 = command.key_was_base64;
  if (old == nullptr) {
    if (command.mode == Mode::kReplace && !command.compares) return StoreOutcome::kNotStored;
    if (joins(command.mode)) {
      if (!command.vivifies) return StoreOutcome::kNotStored;
      made.expiry = items_.expiry_of(command.vivify_exptime);
    } else if (command.compares && command.mode != Mode::kAdd) {
      return StoreOutcome::kNotFound;
    }
  } else {
    if (command.mode == Mode::kAdd) {
      items_.renew(*old);
      return StoreOutcome::kNotStored;
    }
    // The CAS id 0 is none for commands that do without one; for the others nothing has it.
    if (command.compares && (command.cas != 0 || !joins(command.mode))) {
      const CasOrder order = compare(command.cas, old->cas);
      const bool equal = order == CasOrder::kEqual && command.cas != 0;
      const bool stale = order == CasOrder::kOlder && command.allows_stale &&
                         !joins(command.mode) && command.cas != 0;
      if (!equal && !stale) return StoreOutcome::kExists;
      if (stale) {
        made.stale = true;
        made.token_sent = old->token_sent;
        made.expiry = old->expiry;
      }
    }
    if (joins(command.mode)) {
      made.value = joined(command, *old);
      if (config_.as_1_6_18) made.key_was_base64 = false;
      made.flags = old->flags;
      made.expiry = old->expiry;
      if (too_large(command.key.size(), old->flags, made.value.size())) {
        return StoreOutcome::kNotStored;
      }
    }
  }
  made.cas = command.sets_cas ? Cas{command.new_cas} : items_.next_cas();
  *item = &items_.put(command.key, std::move(made));
  return StoreOutcome::kStored;
}

CountOutcome Model::count(const CountCommand& command, uint64_t& number, Item** item) {
  Item* old = items_.find(command.key);
  if (old == nullptr) {
    if (!command.vivifies) return CountOutcome::kNotFound;
    Item made;
    number = command.initial;
    made.value = std::to_string(number);
    made.key_was_base64 = command.key_was_base64 && !config_.as_1_6_18;
    made.cas = command.sets_cas ? Cas{command.new_cas} : items_.next_cas();
    *item = &items_.put(command.key, std::move(made));
    return CountOutcome::kMade;
  }
  if (old->value.empty()) return CountOutcome::kNotANumber;
  if (command.compares && command.cas != 0 && compare(command.cas, old->cas) != CasOrder::kEqual) {
    return CountOutcome::kExists;
  }
  if (!read_u64(old->value, number)) return CountOutcome::kNotANumber;
  // Of what is that long a server may think that it is no number.
  if (old->value.size() > kNumberMax) loss_ = "a long number";
  if (command.up) {
    number += command.delta;
  } else {
    number = number > command.delta ? number - command.delta : 0;
  }
  std::string digits = std::to_string(number);
  if (digits.size() < old->value.size()) digits.resize(old->value.size(), ' ');
  if (config_.as_1_6_18 && digits.size() > old->value.size()) {
    old->used_before = old->stale = old->token_sent = old->key_was_base64 = false;
  }
  old->value = digits;
  old->cas = command.sets_cas ? Cas{command.new_cas} : items_.next_cas();
  *item = old;
  return CountOutcome::kDone;
}

}  // namespace warpcache::model
