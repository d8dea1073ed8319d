// SPDX-License-Identifier: Apache-2.0
#include "load/stream_connection.h"

namespace warpcache::load {

bool StreamConnection::flush() {
  Buffer& from = unsent_.empty() ? context_->out : unsent_;
  if (from.empty()) return true;
  size_t taken = 0;
  std::string why;
  if (!stream_->send(from.view(), &taken, &why)) return fail(why);
  context_->note_sent(taken);
  if (taken < from.size() || &from == &unsent_) unsent_.assign(from.view().substr(taken));
  context_->out.clear();
  return true;
}

bool StreamConnection::receive() {
  Buffer& in = context_->in;
  in.clear();
  in.append(partial_.view());
  size_t got = 0;
  std::string why;
  const bool open = stream_->receive(in.reserve(kReceiveBytes), kReceiveBytes, &got, &why);
  context_->now_ns = steady_now_ns();
  if (!open) return fail(why);
  if (got == 0) return true;
  in.extend(got);
  context_->note_received(got);
  std::string_view rest = in.view();
  const bool in_step = read_replies(&rest);
  partial_.assign(rest);
  settle();
  return in_step;
}

bool StreamConnection::read_replies(std::string_view* in) {
  Findings& findings = context_->findings;
  while (!in->empty()) {
    if (outstanding_ == 0) return fail("the server sent what was not asked for");
    Sent& sent = sent_[oldest_];
    const Progress progress = context_->codec.read(&sent.pending, in, &findings);
    if (progress == Progress::kOutOfStep) {
      return fail("no reply to a " +
                  std::string(kOperationNames[static_cast<size_t>(sent.pending.operation)]) +
                  " looks like this: " + findings.first_refusal);
    }
    if (progress == Progress::kAwaited) return true;
    context_->finish(sent.pending.operation, sent.begin_ns);
    oldest_ = oldest_ + 1 == places_ ? 0 : oldest_ + 1;
    --outstanding_;
  }
  return true;
}

bool StreamConnection::check_timeouts(uint64_t oldest_ns) {
  if (outstanding_ == 0 || sent_[oldest_].sent_ns >= oldest_ns) return true;
  return fail("no reply in time");
}

}  // namespace warpcache::load
