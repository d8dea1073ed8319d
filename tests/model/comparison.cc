// SPDX-License-Identifier: Apache-2.0
#include "model/comparison.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <utility>

namespace warpcache::model {

namespace {

// Ids of both servers take as many bytes, lest the body of a command of a wrong size ends
// elsewhere.
constexpr size_t kCasDigits = 7;
constexpr std::string_view kCasPlaces[] = {"{cas:", "{cas8:"};

// Keys whose CAS ids a text asks for, without "+1" and its like.
void find_cas_keys(std::string_view text, std::set<std::string>& keys) {
  for (const std::string_view place : kCasPlaces) {
    for (size_t at = text.find(place); at != std::string_view::npos;
         at = text.find(place, at + 1)) {
      const size_t begin = at + place.size();
      const std::string_view key = text.substr(begin, text.find('}', begin) - begin);
      keys.emplace(key.substr(0, key.find_first_of("+-")));
    }
  }
}

// From "ME key exp=.. la=.. cas=17 ..."; 0: there is no such item.
uint64_t ask_cas_of(ServerProcess& server, const std::string& key) {
  const std::string answer = server.ask("me " + key);
  const size_t at = answer.find(" cas=");
  uint64_t number = 0;
  if (at != std::string::npos) {
    std::from_chars(answer.data() + at + 5, answer.data() + answer.size(), number);
  }
  return number;
}

std::string standing_text(Standing standing) {
  switch (standing) {
    case Standing::kInStep:
      return "(in step)";
    case Standing::kClosed:
      return "(closed)";
    case Standing::kWaits:
      return "(waits for more)";
  }
  return {};
}

std::string side_text(const Side& side) {
  if (side.unit == nullptr) return standing_text(side.standing);
  std::string text = digest(side.unit->shown);
  for (const uint64_t number : side.unit->cas) text += " cas " + std::to_string(number);
  for (const std::string& name : side.unit->names) text += " " + name;
  return text;
}

}  // namespace

std::string describe(const Unlisted& difference) {
  return "round " + std::to_string(difference.round) + ", stream " +
         std::to_string(difference.stream) + "\n  warpcached: " + difference.ours +
         "\n  memcached:  " + difference.theirs + "\n";
}

std::string kind_of(const Unlisted& difference) {
  std::string kind;
  for (const char c : difference.ours + " | " + difference.theirs) {
    const bool digit = std::isdigit(static_cast<unsigned char>(c)) != 0;
    if (!digit || kind.empty() || kind.back() != '#') kind += digit ? '#' : c;
  }
  return kind;
}

void Comparison::ask_cas(size_t begin, size_t end) {
  std::set<std::string> keys;
  for (size_t i = begin; i < end; ++i) find_cas_keys(script_.steps[i].text, keys);
  for (const std::string& key : keys) {
    cas_of_ours_[key] = ask_cas_of(ours_, key);
    cas_of_theirs_[key] = ask_cas_of(theirs_, key);
  }
}

void Comparison::send(const Step& step) {
  if (step.stream == kClock) {
    ours_.advance(step.seconds);
    theirs_.advance(step.seconds);
    return;
  }
  ++compared_.commands;
  const int64_t now = ours_.unix_time();
  const auto text_for = [&](const std::map<std::string, uint64_t>& cas) {
    return render(step.text,
                  {[&cas](const std::string& key) { return cas.at(key); }, now, kCasDigits});
  };
  const std::string bytes = text_for(cas_of_ours_);
  if (bytes.empty()) return;
  std::vector<std::string>& sent = sent_[step.stream];
  if (sent.empty() && ours_.closed(step.stream)) is_binary_.erase(step.stream);
  is_binary_.emplace(step.stream, static_cast<unsigned char>(bytes[0]) == 0x80);
  sent.push_back(bytes);
  history_.add(bytes, now);
  ours_.send(step.stream, bytes);
  theirs_.send(step.stream, text_for(cas_of_theirs_));
}

void Comparison::send_round(size_t begin, size_t end) {
  ask_cas(begin, end);
  sent_.clear();
  for (size_t i = begin; i < end; ++i) {
    if (script_.steps[i].answer) continue;
    compared_.transcript.steps.push_back(script_.steps[i]);
    send(script_.steps[i]);
  }
}

void Comparison::write_down(uint32_t round, int stream, const std::string& output) {
  if (output.empty()) return;
  Step step;
  step.round = round;
  step.stream = stream;
  step.answer = true;
  step.text = digest(output);
  compared_.transcript.steps.push_back(std::move(step));
}

Comparison::Verdict Comparison::judge(const Parting& parting, size_t& at_ours, size_t& at_theirs) {
  for (const ListedDifference& listed : listed_differences()) {
    const Effect effect = listed.effect(parting);
    if (effect == Effect::kNone) continue;
    const bool both = parting.ours.unit != nullptr && parting.theirs.unit != nullptr;
    // Where the entry is not about ids, these must be the same two items.
    const bool of_ids = both && parting.ours.unit->cas.size() == parting.theirs.unit->cas.size();
    if (effect == Effect::kAsAnswered && of_ids &&
        !pairs_.same_cas(*parting.ours.unit, *parting.theirs.unit)) {
      continue;
    }
    ++compared_.listed[listed.name];
    if (effect == Effect::kEndsScript) return Verdict::kEndsScript;
    if (effect != Effect::kTheirsMore && parting.ours.unit != nullptr) ++at_ours;
    if (effect != Effect::kOursMore && parting.theirs.unit != nullptr) ++at_theirs;
    return Verdict::kGoesOn;
  }
  return Verdict::kDiffers;
}

Comparison::Verdict Comparison::judge_hidden(const Parting& parting) {
  for (const ListedDifference& listed : listed_differences()) {
    if (!listed.hidden || listed.effect(parting) == Effect::kNone) continue;
    ++compared_.listed[listed.name];
    return Verdict::kEndsScript;
  }
  return Verdict::kGoesOn;
}

Comparison::Verdict Comparison::compare_stream(uint32_t round, int stream) {
  const std::string output = ours_.take_output(stream);
  write_down(round, stream, output);
  const bool binary = is_binary_[stream];
  const auto split = binary ? split_binary_answers : split_text_answers;
  const std::vector<AnswerUnit> ours = split(output);
  const std::vector<AnswerUnit> theirs = split(theirs_.take_output(stream));
  const auto unit_at = [](const std::vector<AnswerUnit>& units, size_t at) {
    return at < units.size() ? &units[at] : nullptr;
  };
  const Standing ours_stand = ours_.standing(stream);
  const Standing theirs_stand = theirs_.standing(stream);
  for (size_t i = 0, j = 0;;) {
    const Side left = {unit_at(ours, i), unit_at(ours, i + 1), ours_stand};
    const Side right = {unit_at(theirs, j), unit_at(theirs, j + 1), theirs_stand};
    const bool both = left.unit != nullptr && right.unit != nullptr;
    if (both && pairs_.same(*left.unit, *right.unit)) {
      ++i;
      ++j;
      continue;
    }
    const bool neither = left.unit == nullptr && right.unit == nullptr;
    if (neither && ours_stand == theirs_stand)
      return judge_hidden({sent_[stream], left, right, binary, history_, ours_.unix_time()});
    const Verdict verdict =
        judge({sent_[stream], left, right, binary, history_, ours_.unix_time()}, i, j);
    if (verdict == Verdict::kDiffers) {
      compared_.difference = Unlisted{round, stream, side_text(left), side_text(right)};
    }
    if (verdict != Verdict::kGoesOn) return verdict;
    // Where the connections stand is the last thing to compare.
    if (neither) return Verdict::kEndsScript;
  }
}

Compared Comparison::play() {
  compared_.transcript.item_size_max = script_.item_size_max;
  compared_.transcript.cuts = script_.cuts;
  const std::vector<Step>& steps = script_.steps;
  for (size_t begin = 0; begin < steps.size();) {
    const uint32_t round = steps[begin].round;
    size_t end = begin;
    while (end < steps.size() && steps[end].round == round) ++end;
    send_round(begin, end);
    begin = end;
    const bool ours_ran = ours_.run();
    // Of memcached alone it counts as waiting: a watcher does not end with its client's half.
    (void)theirs_.run();
    if (!ours_ran) compared_.difference = Unlisted{round, 0, "is stuck", "answers"};
    for (const auto& [stream, sent] : sent_) {
      if (compared_.difference.has_value()) break;
      if (compare_stream(round, stream) == Verdict::kEndsScript) return std::move(compared_);
    }
    if (compared_.difference.has_value()) break;
  }
  return std::move(compared_);
}

}  // namespace warpcache::model
