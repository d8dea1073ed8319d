// SPDX-License-Identifier: Apache-2.0
#include "stress/checker.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <unordered_set>

namespace warpcache::stress {

namespace {

uint64_t mix(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

// Learns a CAS id. False: two clients saw one id with different values, which needs no search.
bool learn_cas(const Operation& op, CasBook* book) {
  if (!op.shows(kShowsCas)) return true;
  if (op.kind == Kind::kGet && op.shows(kShowsValue)) return book->note(op.seen_cas, op.seen);
  const bool plain = op.kind == Kind::kSet || op.kind == Kind::kAdd || op.kind == Kind::kReplace;
  return !plain || book->note(op.seen_cas, op.value);
}

// The operations by session, and how far each session is ordered.
class Search {
 public:
  Search(const std::vector<Operation>& history, const CasBook& book, uint64_t steps_max)
      : history_(history), book_(book), steps_max_(steps_max) {
    for (uint32_t i = 0; i < history.size(); ++i) {
      const uint32_t session = history[i].session;
      if (session >= queues_.size()) queues_.resize(session + 1);
      queues_[session].push_back(i);
    }
    next_.resize(queues_.size());
  }

  CheckResult run(const State& initial);

 private:
  // A state, and which of its successors were tried.
  struct Step {
    State state;
    uint64_t tried = 0;    // sessions
    uint64_t done = 0;     // hash of the set of operations in order so far
    uint32_t session = 0;  // the session whose operation led here
    uint32_t trying = kNone;
    Choice next;  // the choice for `trying`
    bool skip_left = false;
  };
  static constexpr uint32_t kNone = kSessionsMax;

  const Operation* head(uint32_t session) const {
    const auto& queue = queues_[session];
    return next_[session] == queue.size() ? nullptr : &history_[queue[next_[session]]];
  }
  bool choose(Step& step) const;
  bool advance(Step& step, State* after);
  bool push(uint32_t session, const State& after, uint64_t done);
  void pop();
  bool finished() const { return stack_.size() == history_.size() + 1; }
  std::string explain(const std::vector<uint32_t>& order, const State& state) const;
  void note_longest();

  const std::vector<Operation>& history_;
  const CasBook& book_;
  uint64_t steps_max_;
  std::vector<std::vector<uint32_t>> queues_;  // indices into history_
  std::vector<uint32_t> next_;                 // the first of each queue that is not ordered yet
  std::vector<Step> stack_;
  std::vector<uint32_t> order_;
  std::vector<uint32_t> longest_;
  State longest_state_;
  std::unordered_set<uint64_t> seen_;
  uint64_t steps_ = 0;
};

// The session to try next from `step`: the one whose operation ended first. False: all were tried.
bool Search::choose(Step& step) const {
  int64_t first_end = std::numeric_limits<int64_t>::max();
  for (uint32_t i = 0; i < queues_.size(); ++i) {
    const Operation* op = head(i);
    if (op != nullptr) first_end = std::min(first_end, op->responded);
  }
  const Operation* best = nullptr;
  for (uint32_t i = 0; i < queues_.size(); ++i) {
    const Operation* op = head(i);
    if (op == nullptr || (step.tried >> i & 1) != 0 || op->invoked > first_end) continue;
    if (best != nullptr && op->responded >= best->responded) continue;
    best = op;
    step.trying = i;
  }
  if (best == nullptr) return false;
  step.tried |= uint64_t{1} << step.trying;
  step.next = {best->clock_low, best->clock_low, false};
  step.skip_left = best->has(kOptional);
  return true;
}

// The next possible outcome of the operation that `step` tries.
bool Search::advance(Step& step, State* after) {
  const Operation& op = *head(step.trying);
  const bool open_cas = op.has(kComparesCas) && op.has(kInvalidates);
  while (step.next.real_clock <= op.clock_high) {
    const Choice choice = step.next;
    step.next.other_cas = open_cas && !choice.other_cas;
    if (!step.next.other_cas && ++step.next.clock > choice.real_clock) {
      step.next.clock = op.clock_low;
      ++step.next.real_clock;
    }
    if (apply(op, choice, book_, step.state, after)) return true;
  }
  if (!step.skip_left) return false;
  step.skip_left = false;
  *after = step.state;
  return true;
}

bool Search::push(uint32_t session, const State& after, uint64_t done) {
  if (!seen_.insert(mix(done) ^ after.hash()).second) return false;
  order_.push_back(queues_[session][next_[session]]);
  ++next_[session];
  Step step;
  step.state = after;
  step.done = done;
  step.session = session;
  stack_.push_back(step);
  return true;
}

void Search::pop() {
  const uint32_t session = stack_.back().session;
  stack_.pop_back();
  if (stack_.empty()) return;
  --next_[session];
  order_.pop_back();
}

void Search::note_longest() {
  if (order_.size() < longest_.size() || (!longest_.empty() && order_.size() == longest_.size()))
    return;
  longest_ = order_;
  longest_state_ = stack_.back().state;
}

CheckResult Search::run(const State& initial) {
  CheckResult result;
  Step first;
  first.state = initial;
  stack_.push_back(first);
  bool backing = false;
  while (!stack_.empty() && !finished() && steps_ < steps_max_) {
    Step& step = stack_.back();
    State after;
    if (step.trying != kNone && advance(step, &after)) {
      const uint32_t index = queues_[step.trying][next_[step.trying]];
      if (push(step.trying, after, step.done + mix(index + 1))) {
        ++steps_;
        backing = false;
      }
      continue;
    }
    if (choose(step)) continue;
    if (!backing) note_longest();
    backing = true;
    pop();
  }
  result.steps = steps_;
  if (finished()) {
    result.last = stack_.back().state;
    return result;
  }
  result.verdict = stack_.empty() ? Linearizable::kNo : Linearizable::kUndecided;
  result.because = explain(longest_, longest_state_);
  return result;
}

std::string Search::explain(const std::vector<uint32_t>& order, const State& state) const {
  constexpr size_t kShown = 200;
  const int64_t origin = history_.empty() ? 0 : history_.front().invoked;
  std::string text = fmt::format("{} of {} operations have a place; the last of them:\n",
                                 order.size(), history_.size());
  const size_t first = order.size() > kShown ? order.size() - kShown : 0;
  std::vector<bool> placed(history_.size());
  for (size_t i = 0; i < order.size(); ++i) {
    placed[order[i]] = true;
    if (i >= first) text += "  " + describe(history_[order[i]], origin) + "\n";
  }
  text += "then the key holds " + describe(state) + ", and none of these can follow:\n";
  for (const auto& queue : queues_) {
    const auto open =
        std::find_if(queue.begin(), queue.end(), [&](uint32_t i) { return !placed[i]; });
    if (open != queue.end()) text += "  " + describe(history_[*open], origin) + "\n";
  }
  return text;
}

}  // namespace

CheckResult check_history(const std::vector<Operation>& history, const State& initial,
                          CasBook* book, uint64_t steps_max) {
  CheckResult result;
  for (const Operation& op : history) {
    if (op.session >= kSessionsMax) {
      result.verdict = Linearizable::kUndecided;
      result.because = "too many sessions";
      return result;
    }
    if (!learn_cas(op, book)) {
      result.verdict = Linearizable::kNo;
      result.because = "a CAS id of two values: " + describe(op, history.front().invoked) + "\n";
      return result;
    }
  }
  return Search(history, *book, steps_max).run(initial);
}

}  // namespace warpcache::stress
