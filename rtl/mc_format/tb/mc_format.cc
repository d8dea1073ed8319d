// SPDX-License-Identifier: Apache-2.0
//
// All results that key_check gives, in datagrams of one or several, against replies written as
// memcached's protocol says.
#include <Vmc_format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "ip_datagrams.h"
#include "layouts.h"

namespace warpcache::rtl {
namespace {

const char kVersion[] = "1.6.45-warpcache";

// A result, the key and the value that come with it, and the bytes of its reply.
struct Result {
  Record record{kResult};
  std::string key;
  std::string value;
  std::string reply;
};

std::string text_of(uint64_t outcome, uint64_t err) {
  switch (outcome) {
    case kOutEnd:
      return "END";
    case kOutStored:
      return "STORED";
    case kOutNotStored:
      return "NOT_STORED";
    case kOutExists:
      return "EXISTS";
    case kOutNotFound:
      return "NOT_FOUND";
    case kOutDeleted:
      return "DELETED";
    case kOutTouched:
      return "TOUCHED";
    case kOutOk:
      return "OK";
    case kOutVersion:
      return std::string("VERSION ") + kVersion;
    case kOutNoop:
      return "MN";
    default:
      break;
  }
  switch (err) {
    case kErrUnknown:
      return "ERROR";
    case kErrFormat:
      return "CLIENT_ERROR bad command line format";
    case kErrData:
      return "CLIENT_ERROR bad data chunk";
    case kErrExptime:
      return "CLIENT_ERROR invalid exptime argument";
    case kErrDelta:
      return "CLIENT_ERROR invalid numeric delta argument";
    case kErrNonnum:
      return "CLIENT_ERROR cannot increment or decrement non-numeric value";
    case kErrUnsupported:
      return "SERVER_ERROR not supported";
    default:
      return "SERVER_ERROR object too large for cache";
  }
}

// A binary reply: its status, and what an error says.
std::pair<uint32_t, std::string> status_of(uint64_t outcome, uint64_t op, uint64_t err) {
  switch (outcome) {
    case kOutMiss:
    case kOutNotFound:
      return {1, "Not found"};
    case kOutExists:
      return {2, "Data exists for key."};
    case kOutNotStored:
      if (op == kOpAdd) return {2, "Data exists for key."};
      if (op == kOpReplace) return {1, "Not found"};
      return {5, "Not stored."};
    case kOutError:
      if (err == kErrUnknown || err == kErrUnsupported) return {0x81, "Unknown command"};
      if (err == kErrTooLarge) return {3, "Too large."};
      if (err == kErrNonnum) return {6, "Non-numeric server-side value for incr or decr"};
      return {4, "Invalid arguments"};
    default:
      return {0, ""};
  }
}

void add_text_reply(Result& result) {
  Record& r = result.record;
  const uint64_t outcome = r.get("outcome").low();
  const bool last_key = !r.get("last_key").zero();
  if (outcome == kOutHit) {
    result.reply = "VALUE " + result.key + " " + std::to_string(r.get("flags").low()) + " " +
                   std::to_string(result.value.size());
    if (!r.get("ret_cas").zero()) result.reply += " " + std::to_string(r.get("cas").low());
    result.reply += "\r\n" + result.value + (last_key ? "\r\nEND\r\n" : "\r\n");
  } else if (outcome == kOutMiss) {
    if (last_key) result.reply = "END\r\n";
  } else if (!r.get("quiet").zero() || outcome == kOutNone) {
    return;
  } else if (outcome == kOutNumber) {
    result.reply = std::to_string(r.get("number").low()) + "\r\n";
  } else {
    result.reply = text_of(outcome, r.get("err").low()) + "\r\n";
  }
}

void add_binary_reply(Result& result) {
  Record& r = result.record;
  const uint64_t outcome = r.get("outcome").low();
  static constexpr Outcome kSilent[] = {kOutMiss,   kOutStored, kOutDeleted,
                                        kOutNumber, kOutOk,     kOutNoop};
  if (outcome == kOutNone) return;
  if (!r.get("quiet").zero() &&
      std::find(std::begin(kSilent), std::end(kSilent), outcome) != std::end(kSilent))
    return;
  auto [status, body] = status_of(outcome, r.get("op").low(), r.get("err").low());
  const bool shows_key = !r.get("ret_key").zero() && (outcome == kOutHit || outcome == kOutMiss);
  std::string extras;
  if (outcome == kOutHit || outcome == kOutTouched) extras = big(r.get("flags").low(), 4);
  if (outcome == kOutHit) body = result.value;
  if (outcome == kOutNumber) body = big(r.get("number").low(), 8);
  if (outcome == kOutVersion) body = kVersion;
  if (outcome == kOutMiss && shows_key) body.clear();
  const std::string key = shows_key ? result.key : "";
  const bool has_cas = outcome == kOutHit || outcome == kOutTouched || outcome == kOutStored ||
                       outcome == kOutNumber;
  const uint64_t opaque = r.get("opaque").low();
  std::string opaque_bytes;  // as it came
  for (int i = 0; i < 4; ++i) opaque_bytes += static_cast<char>(opaque >> (8 * i));
  result.reply = "\x81" + big(r.get("opcode").low(), 1) + big(key.size(), 2) +
                 big(extras.size(), 1) + '\0' + big(status, 2) +
                 big(extras.size() + key.size() + body.size(), 4) + opaque_bytes +
                 big(has_cas ? r.get("cas").low() : 0, 8) + extras + key + body;
}

uint64_t random_number(Random& random) { return random.next() >> random.below(64); }

Result random_result(Random& random, bool binary) {
  static constexpr Op kOps[] = {kOpSet, kOpAdd, kOpReplace, kOpAppend, kOpPrepend};
  Result result;
  Record& r = result.record;
  r = Record(kResult, random_bits(kResult, random));
  static constexpr Outcome kUsual[] = {kOutHit, kOutHit, kOutHit, kOutHit, kOutMiss, kOutMiss};
  const uint64_t outcome =
      random.below(2) != 0 ? uint64_t{kUsual[random.below(6)]} : random.below(kOutError + 1);
  const bool is_get = outcome == kOutHit || outcome == kOutMiss;
  r.set("outcome", outcome).set("bin", binary).set("op", is_get ? kOpGet : kOps[random.below(5)]);
  r.set("err", random.below(kErrTooLarge + 1))
      .set("flags", random_number(random) >> 32)
      .set("cas", random_number(random));
  r.set("number", random_number(random));
  if (outcome == kOutEnd) r.set("quiet", 0);
  if (random.below(3) != 0) r.set("flags", random.below(3));
  if (!binary && is_get) r.set("quiet", 0);
  const uint32_t size = 1 + random.below(random.below(5) == 0 ? 250 : 20);
  result.key = random_bytes(random, size);
  r.set("klen", size).set("kbeats", 0).set("vlen", 0).set("vbeats", 0);
  // key_check passes a key on where the reply may show it.
  const bool shown =
      is_get && (binary ? !r.get("ret_key").zero() : outcome == kOutHit || random.below(2) != 0);
  if (shown)
    r.set("kbeats", beats_of(size));
  else
    result.key.clear();
  if (outcome == kOutHit) {
    result.value = random_bytes(random, random.below(random.below(8) == 0 ? 1537 : 30));
    r.set("vlen", result.value.size()).set("vbeats", beats_of(result.value.size()));
  }
  if (binary)
    add_binary_reply(result);
  else
    add_text_reply(result);
  return result;
}

void run(const Setup& setup) {
  Model<Vmc_format> model;
  Testbench bench(*model, setup);
  Random& random = bench.random();
  Stream& in = bench.input("result", model->result_valid, model->result_ready, {model->result});
  Stream& key = bench.input("key", model->key_valid, model->key_ready, {model->key_data});
  Stream& value = bench.input("value", model->value_valid, model->value_ready, {model->value_data});
  Stream& out = bench.output("out", model->out_valid, model->out_ready,
                             {model->out_data, model->out_bytes, model->out_last});
  // Whether a reply ends with its last bytes or with an empty beat is left to the block.
  std::deque<std::string> replies;
  std::string got;
  out.unchecked = true;
  out.on_beat = [&](const Beat& beat) {
    uint64_t data = beat[0].low();
    const uint64_t bytes = beat[1].low();
    bench.check(bytes == 8 || (bytes < 8 && !beat[2].zero()), "a beat is not full");
    for (uint64_t i = 0; i < bytes; ++i, data >>= 8) got += static_cast<char>(data);
    bench.check(bytes == 8 || data == 0, "bytes behind the end");
    if (beat[2].zero()) return;
    bench.check(!replies.empty(), "a reply too many");
    bench.check(got == replies.front(), "reply differs: " + got + "\nexpected: " + replies.front());
    replies.pop_front();
    got.clear();
  };
  for (uint64_t i = bench.count(2500); i > 0; --i) {
    const bool binary = random.below(2) != 0;
    std::string reply;
    for (uint32_t left = random.below(2) != 0 ? 1 : 1 + random.below(6); left > 0; --left) {
      Result result = random_result(random, binary);
      result.record.set("eod", left == 1);
      in.push({result.record.bits()});
      for (const Bits& word : words_of(result.key)) key.push({word});
      for (const Bits& word : words_of(result.value)) value.push({word});
      reply += result.reply;
    }
    replies.push_back(reply);
  }
  bench.run(1000);
  bench.check(replies.empty() && got.empty(), "replies are missing");
}

const Registered registered("mc_format", run);

}  // namespace
}  // namespace warpcache::rtl
