// SPDX-License-Identifier: Apache-2.0
#include "load/connection.h"

namespace warpcache::load {

Connection::Connection(ThreadContext* context, uint32_t places)
    : context_(context),
      places_(places),
      keys_max_(context->options.multiget),
      limit_(places),
      sent_(places),
      ids_(new uint32_t[size_t{places} * keys_max_]) {}

void Connection::add(uint64_t begin_ns) {
  const uint32_t place = take_place();
  Pending& pending = sent_[place].pending;
  uint32_t* const ids = ids_at(place);
  pending.count = context_->next(&pending.operation, ids);
  pending.next = 0;
  pending.ids = ids;
  sent_[place].begin_ns = begin_ns;
  sent_[place].sent_ns = context_->now_ns;
  context_->note_delay(begin_ns);
  write(place);
}

bool Connection::add_missed(uint64_t begin_ns) {
  if (missed_.empty()) return false;
  const uint32_t place = take_place();
  uint32_t* const ids = ids_at(place);
  ids[0] = missed_.back();
  missed_.pop_back();
  sent_[place] = {begin_ns, begin_ns, {Operation::kSet, 1, 0, ids}};
  write(place);
  return true;
}

void Connection::write_body(uint32_t place) {
  const Pending& pending = sent_[place].pending;
  char* const out =
      context_->out.reserve(context_->codec.bytes_max(pending.operation, pending.count));
  context_->out.set_end(context_->codec.write(pending, context_->next_version(), out));
}

void Connection::settle() {
  Findings& findings = context_->findings;
  if (!findings.missed.empty()) {
    missed_.insert(missed_.end(), findings.missed.begin(), findings.missed.end());
    findings.missed.clear();
  }
  context_->settle();
}

bool Connection::fail(const std::string& what) {
  if (context_->failure.empty()) context_->failure = what;
  return false;
}

}  // namespace warpcache::load
