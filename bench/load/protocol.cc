// SPDX-License-Identifier: Apache-2.0
#include "load/protocol.h"

#include <cstring>

#include "client/codec/text.h"
#include "client/codec/words.h"
#include "workload/sizes.h"

namespace warpcache::load {
namespace {

using client::kLineEnd;
using client::ReplyCode;
using client::RequestLine;
using client::Taken;
using client::TextReply;

constexpr size_t kShownMax = 200;  // bytes of a reply that a message shows

void refuse(std::string_view line, Findings* findings) {
  ++findings->refused;
  if (findings->first_refusal.empty()) findings->first_refusal = line.substr(0, kShownMax);
}

Progress out_of_step(std::string_view line, Findings* findings) {
  refuse(line, findings);
  return Progress::kOutOfStep;
}

bool read_meta_flags(const TextReply& reply, bool single, Codec::Head* head) {
  std::string_view flags = reply.head.flags;
  bool has_flags = false;
  bool has_place = single;
  while (!flags.empty()) {
    const std::string_view flag = client::take_word(&flags);
    if (flag.starts_with('f')) has_flags = client::read_number(flag.substr(1), &head->flags);
    if (flag.starts_with('O')) has_place = client::read_number(flag.substr(1), &head->place);
  }
  return has_flags && has_place;
}

}  // namespace

bool Codec::answers_change(ReplyCode code, bool is_set) const {
  if (meta_) return code == ReplyCode::kMetaDone || (!is_set && code == ReplyCode::kMetaNotFound);
  return is_set ? code == ReplyCode::kStored
                : code == ReplyCode::kDeleted || code == ReplyCode::kNotFound;
}

size_t Codec::bytes_max(Operation operation, uint32_t count) const {
  const size_t value = operation == Operation::kSet ? keys_.value_size_max() + kLineEnd.size() : 0;
  return value + (count + 1) * client::line_bytes_max(bench::kKeySizeMax);
}

char* Codec::write_set(uint32_t id, uint32_t version, char* out) const {
  const uint32_t size = keys_.value_size(id);
  const uint32_t flags = keys_.flags(id, version);
  if (meta_) {
    RequestLine line(out, "ms");
    line.key(key_of(id)).number(size).flag('F', flags);
    if (expiry_s_ != 0) line.flag('T', expiry_s_);
    out = line.end();
  } else {
    out = client::write_store("set", key_of(id), {flags, expiry_s_, size}, out);
  }
  keys_.write_value(id, version, out);
  std::memcpy(out + size, kLineEnd.data(), kLineEnd.size());
  return out + size + kLineEnd.size();
}

// A multiget is a quiet get for each key, with its place as the opaque, and a no-op after them.
char* Codec::write_meta_gets(const Pending& pending, char* out) const {
  for (uint32_t i = 0; i < pending.count; ++i) {
    RequestLine line(out, "mg");
    line.key(key_of(pending.ids[i])).flag('f');
    if (pending.count == 1) return line.flag('v').end();
    out = line.flag('q').flag('v').flag('O', i).end();
  }
  return RequestLine(out, "mn").end();
}

// All but the text protocol's gets.
char* Codec::write_other(const Pending& pending, uint32_t version, char* out) const {
  if (pending.operation == Operation::kSet) return write_set(pending.ids[0], version, out);
  if (pending.operation == Operation::kDelete) {
    return RequestLine(out, meta_ ? "md" : "delete").key(key_of(pending.ids[0])).end();
  }
  return write_meta_gets(pending, out);
}

bool Codec::count_values(std::string_view reply, uint32_t* count) {
  constexpr std::string_view kValue = "VALUE ";
  uint32_t found = 0;
  while (reply.starts_with(kValue)) {
    const size_t line = reply.find('\r', kValue.size());
    if (line == std::string_view::npos) return false;
    // The size is the last word: text gets ask for no CAS ids.
    size_t bytes = 0;
    size_t scale = 1;
    for (size_t at = line - 1; reply[at] >= '0' && reply[at] <= '9' && scale < size_t{1} << 32;
         --at) {
      bytes += scale * static_cast<size_t>(reply[at] - '0');
      scale *= 10;
    }
    const size_t whole = line + kLineEnd.size() + bytes + kLineEnd.size();
    if (reply.size() < whole) return false;
    reply.remove_prefix(whole);
    ++found;
  }
  if (found == 0 || reply != "END\r\n") return false;
  *count = found;
  return true;
}

Progress Codec::read(Pending* pending, std::string_view* in, Findings* findings) const {
  if (pending->operation != Operation::kGet) return read_change(*pending, in, findings);
  return meta_ ? read_meta_get(pending, in, findings) : read_text_get(pending, in, findings);
}

void Codec::miss_up_to(uint32_t end, Pending* pending, Findings* findings) const {
  for (; pending->next < end; ++pending->next) {
    ++findings->misses;
    if (findings->keep_missed) findings->missed.push_back(pending->ids[pending->next]);
  }
}

void Codec::check_value(const Pending& pending, const Head& head, std::string_view value,
                        Findings* findings) const {
  const bool asked_for = head.place < pending.count;
  const uint32_t id = asked_for ? pending.ids[head.place] : 0;
  if (asked_for && (!verify_ || keys_.value_is(id, head.flags, value))) {
    ++findings->hits;
    return;
  }
  ++findings->wrong;
  if (!findings->first_wrong.empty()) return;
  if (!asked_for) {
    findings->first_wrong = "a value of a key that was not asked for: " + std::string(head.key);
    return;
  }
  char key[bench::kKeySizeMax];
  findings->first_wrong = "key " + std::string(key, keys_.write_key(id, key)) + ": flags " +
                          std::to_string(head.flags) + " and " + std::to_string(value.size()) +
                          " bytes are no version of its " + std::to_string(keys_.value_size(id)) +
                          " bytes";
}

// Counts a value, and the keys before it that have none.
void Codec::note_value(const Head& head, std::string_view value, Pending* pending,
                       Findings* findings) const {
  const bool asked_for = head.place < pending->count;
  if (asked_for) miss_up_to(head.place, pending, findings);
  check_value(*pending, head, value, findings);
  if (asked_for) pending->next = head.place + 1;
}

// Values come in the order of the keys; missing keys are skipped.
uint32_t Codec::place_of(std::string_view key, const Pending& pending) const {
  uint32_t place = pending.next;
  while (place < pending.count && !keys_.key_is(pending.ids[place], key)) ++place;
  return place;
}

Progress Codec::read_text_get(Pending* pending, std::string_view* in, Findings* findings) const {
  TextReply reply;
  for (;;) {
    const Taken taken = client::take_reply(in, &reply, bench::kValueSizeMax);
    if (taken == Taken::kPart) return Progress::kAwaited;
    if (taken == Taken::kBad) return out_of_step(reply.line, findings);
    switch (reply.code) {
      case ReplyCode::kValue:
        note_value({place_of(reply.head.key, *pending), reply.head.client_flags, reply.head.key},
                   reply.value, pending, findings);
        break;
      case ReplyCode::kEnd:
        miss_up_to(pending->count, pending, findings);
        return Progress::kDone;
      case ReplyCode::kError:
        refuse(reply.line, findings);
        return Progress::kDone;
      default:
        return out_of_step(reply.line, findings);
    }
  }
}

// Reads "VA size f<flags> O<place>", EN for a miss of a single get, MN after the last of several.
Progress Codec::read_meta_get(Pending* pending, std::string_view* in, Findings* findings) const {
  const bool single = pending->count == 1;
  const ReplyCode last = single ? ReplyCode::kMetaMiss : ReplyCode::kMetaNoop;
  TextReply reply;
  for (;;) {
    const Taken taken = client::take_reply(in, &reply, bench::kValueSizeMax);
    Head head = {};
    const bool is_value = reply.code == ReplyCode::kMetaValue;
    if (taken == Taken::kBad || (is_value && !read_meta_flags(reply, single, &head))) {
      return out_of_step(reply.line, findings);
    }
    if (taken == Taken::kPart) return Progress::kAwaited;
    if (is_value) {
      if (head.place < pending->next) head.place = pending->count;  // this key was answered before
      note_value(head, reply.value, pending, findings);
    } else if (reply.code == ReplyCode::kError) {
      refuse(reply.line, findings);
    } else if (reply.code == last) {
      miss_up_to(pending->count, pending, findings);
      return Progress::kDone;
    } else {
      return out_of_step(reply.line, findings);
    }
    if (single) return Progress::kDone;
  }
}

// Reads the one line that answers a set or a delete.
Progress Codec::read_change(const Pending& pending, std::string_view* in,
                            Findings* findings) const {
  TextReply reply;
  const Taken taken = client::take_reply(in, &reply, bench::kValueSizeMax);
  if (taken == Taken::kPart) return Progress::kAwaited;
  if (taken == Taken::kBad) return out_of_step(reply.line, findings);
  const bool is_set = pending.operation == Operation::kSet;
  if (is_set && reply.line == client::kOutOfMemory) {
    ++findings->out_of_memory;
  } else if (reply.code == ReplyCode::kError) {
    refuse(reply.line, findings);
  } else if (!answers_change(reply.code, is_set)) {
    return out_of_step(reply.line, findings);
  }
  return Progress::kDone;
}

}  // namespace warpcache::load
