// SPDX-License-Identifier: Apache-2.0
//
// Datagrams of requests, text or binary, each written together with the operation that it must
// become: so no request is parsed here. The last request of a datagram may be cut.
#include <Vmc_parse.h>

#include <algorithm>
#include <initializer_list>
#include <iterator>
#include <utility>

#include "ip_datagrams.h"
#include "layouts.h"

namespace warpcache::rtl {
namespace {

constexpr size_t kDatagramMax = 3000;
constexpr uint64_t kValueMax = 1536;

struct Operation {
  Record op{kMeta};  // without eod, and without what has no meaning for it
  std::string key, value;
};

struct Request {
  std::string bytes;
  size_t line = 0;  // of these, up to the end of the line; binary: the header
  std::vector<Operation> operations;
  bool stops = false;  // nothing after it is read
};

// Fields that have a meaning for the operation; of its other ones nothing is said.
std::vector<const char*> fields_of(const Record& op) {
  std::vector<const char*> fields = {"op", "bin", "opcode", "opaque"};
  const auto add = [&](std::initializer_list<const char*> more) {
    fields.insert(fields.end(), more);
  };
  const uint64_t what = op.get("op").low();
  const bool binary = !op.get("bin").zero();
  if (what == kOpNop) return {"op"};
  if (what == kOpEnd) return {"op", "bin"};
  add({"quiet"});
  if (what == kOpError) add({"err"});
  if (has_key(what)) add({"klen", "kbeats", "cas_cmp"});
  if (binary && has_key(what)) add({"cas"});
  switch (what) {
    case kOpGet:
      add({"touch", "ret_key"});
      if (!binary) add({"last_key", "ret_cas"});
      if (!op.get("touch").zero()) add({"exptime"});
      break;
    case kOpSet:
    case kOpAdd:
    case kOpReplace:
      add({"flags", "exptime"});
      if (!op.get("cas_cmp").zero()) add({"cas"});
      [[fallthrough]];
    case kOpAppend:
    case kOpPrepend:
      add({"vlen", "vbeats"});
      break;
    case kOpIncr:
    case kOpDecr:
      add({"delta"});
      if (binary) add({"initial_value", "exptime", "vivify"});
      break;
    case kOpTouch:
    case kOpFlush:
      add({"exptime"});
      break;
    default:
      break;
  }
  return fields;
}

Record kept(const Record& op) {
  Record out(kMeta);
  for (const char* field : fields_of(op)) out.set(field, op.get(field));
  return out;
}

Operation error(Err err) {
  Operation operation;
  operation.op.set("op", kOpError).set("err", err);
  return operation;
}

std::string random_key(Random& random) {
  const uint32_t size = 1 + random.below(random.below(6) == 0 ? 250 : 20);
  std::string key = random_bytes(random, size);
  for (char& byte : key) byte = static_cast<char>(33 + static_cast<uint8_t>(byte) % 94);
  return key;
}

Operation keyed(Op op, const std::string& key) {
  Operation operation;
  operation.key = key;
  operation.op.set("op", op).set("klen", key.size()).set("kbeats", beats_of(key.size()));
  return operation;
}

void add_value(Operation& operation, const std::string& value) {
  operation.value = value;
  operation.op.set("vlen", value.size()).set("vbeats", beats_of(value.size()));
}

std::string random_value(Random& random) {
  std::string value = random_bytes(random, random.below(random.below(10) == 0 ? 1700 : 40));
  if (random.below(4) == 0 && value.size() > 12) value.replace(3, 9, "\r\nget a\r\n");
  return value;
}

class TextWriter {
 public:
  explicit TextWriter(Random& random) : random_(random) {}

  Request next() {
    Request request;
    switch (random_.below(12)) {
      case 0:
      case 1:
      case 2:
        get(request);
        break;
      case 3:
      case 4:
      case 5:
        store(request);
        break;
      case 6:
        request.bytes = "delete ";
        named(request, kOpDelete, "");
        break;
      case 7: {
        const bool up = random_.below(2) != 0;
        const uint64_t delta = random_.next() >> random_.below(64);
        request.bytes = up ? "incr " : "decr ";
        named(request, up ? kOpIncr : kOpDecr, blank() + std::to_string(delta))
            .op.set("delta", delta);
        break;
      }
      case 8: {
        const std::string when = time();
        request.bytes = "touch ";
        named(request, kOpTouch, blank() + when).op.set("exptime", seconds(when));
        break;
      }
      case 9: {
        const std::string when = random_.below(2) != 0 ? time() : "";
        request.bytes = "flush_all" + (when.empty() ? "" : blank() + when);
        request.operations.resize(1);
        request.operations[0].op.set("op", kOpFlush).set("exptime", seconds(when));
        finish(request);
        break;
      }
      default:
        plain(request);
        break;
    }
    if (request.line == 0) request.line = request.bytes.size();
    return request;
  }

 private:
  std::string blank() {
    return std::string(random_.below(12) == 0 ? 1 + random_.below(4) : 1, ' ');
  }
  std::string end() { return random_.below(5) == 0 ? "\n" : "\r\n"; }
  std::string time() {
    switch (random_.below(4)) {
      case 0:
        return "-" + std::to_string(1 + random_.below(100));
      case 1:
        return std::to_string(random_.next() >> 33);
      default:
        return std::to_string(random_.below(20));
    }
  }
  static uint64_t seconds(const std::string& text) {
    return text.empty() ? 0 : static_cast<uint32_t>(std::stoll(text));
  }
  // noreply, maybe, and the line's end.
  void finish(Request& request) {
    if (random_.below(4) == 0) {
      request.bytes += blank() + "noreply";
      request.operations[0].op.set("quiet", 1);
    }
    request.bytes += end();
  }
  Operation& named(Request& request, Op op, const std::string& rest) {
    const std::string key = random_key(random_);
    request.operations.push_back(keyed(op, key));
    request.bytes += key + rest;
    finish(request);
    return request.operations.back();
  }
  void get(Request& request) {
    const bool touches = random_.below(3) == 0;
    const bool with_cas = random_.below(2) != 0;
    request.bytes = touches ? "gat" : "get";
    if (with_cas) request.bytes += "s";
    const std::string when = time();
    if (touches) request.bytes += blank() + when;
    for (uint32_t left = random_.below(2) != 0 ? 1 : 1 + random_.below(6); left > 0; --left) {
      const std::string key = random_key(random_);
      Operation operation = keyed(kOpGet, key);
      operation.op.set("touch", touches).set("ret_cas", with_cas).set("last_key", left == 1);
      if (touches) operation.op.set("exptime", seconds(when));
      request.operations.push_back(operation);
      request.bytes += blank() + key;
    }
    if (random_.below(10) == 0) {
      // A blank before the line's end: that the last key was the last one is known too late.
      request.bytes += " ";
      request.operations.back().op.set("last_key", 0);
      request.operations.emplace_back().op.set("op", kOpEnd);
    }
    request.bytes += end();
  }
  void store(Request& request) {
    static const std::pair<const char*, Op> kCommands[] = {
        {"set ", kOpSet},       {"add ", kOpAdd},         {"replace ", kOpReplace},
        {"append ", kOpAppend}, {"prepend ", kOpPrepend}, {"cas ", kOpSet}};
    const auto& [command, op] = kCommands[random_.below(6)];
    const std::string value = random_value(random_);
    const auto flags = static_cast<uint32_t>(random_.next() >> (32 + random_.below(32)));
    const std::string when = time();
    std::string rest =
        blank() + std::to_string(flags) + blank() + when + blank() + std::to_string(value.size());
    const bool compares = command[0] == 'c';
    const uint64_t cas = random_.next() >> random_.below(64);
    if (compares) rest += blank() + std::to_string(cas);
    request.bytes = command;
    Operation& operation = named(request, op, rest);
    operation.op.set("flags", flags)
        .set("exptime", seconds(when))
        .set("cas_cmp", compares)
        .set("cas", cas);
    add_value(operation, value);
    request.line = request.bytes.size();
    const bool ends_wrong = random_.below(8) == 0;
    request.bytes += value + (ends_wrong ? "\rx" : "\r\n");
    const Bits quiet = operation.op.get("quiet");
    if (ends_wrong || value.size() > kValueMax) {
      operation.op = error(ends_wrong ? kErrData : kErrTooLarge).op;
      operation.op.set("quiet", quiet);
    }
  }
  void plain(Request& request) {
    static const std::pair<const char*, Err> kWrong[] = {
        {"hello world", kErrUnknown}, {"incr k x", kErrDelta},      {"touch k x", kErrExptime},
        {"stats", kErrUnsupported},   {"GET a", kErrUnknown},       {"watch all", kErrUnsupported},
        {"delete", kErrFormat},       {"flush_all x", kErrExptime}, {"set k 0 0", kErrFormat},
        {"verbosity", kErrFormat},    {"set k 0 0 -1", kErrFormat}};
    Operation operation;
    switch (random_.below(6)) {
      case 0:
        request.bytes = "version";
        operation.op.set("op", kOpVersion);
        break;
      case 1:
        request.bytes = "mn\r\n";  // with a LF alone the line is too short
        operation.op.set("op", kOpNoop);
        request.operations = {operation};
        return;
      case 2:
        request.bytes = "verbosity 1";
        operation.op.set("op", kOpOk);
        break;
      case 3:
        request.bytes = "quit" + end();
        request.stops = true;
        return;
      default: {
        const auto& [text, err] = kWrong[random_.below(std::size(kWrong))];
        request.bytes = text;
        operation = error(err);
      }
    }
    request.bytes += end();
    request.operations = {operation};
  }

  Random& random_;
};

Request binary_request(Random& random) {
  struct Form {
    uint8_t opcode;
    Op op;
    enum { kBare, kKey, kKeyTime, kStore, kJoin, kDelta, kFlush } form;
  };
  static constexpr Form kForms[] = {
      {0x00, kOpGet, Form::kKey},       {0x09, kOpGet, Form::kKey},
      {0x0c, kOpGet, Form::kKey},       {0x0d, kOpGet, Form::kKey},
      {0x01, kOpSet, Form::kStore},     {0x11, kOpSet, Form::kStore},
      {0x02, kOpAdd, Form::kStore},     {0x12, kOpAdd, Form::kStore},
      {0x03, kOpReplace, Form::kStore}, {0x13, kOpReplace, Form::kStore},
      {0x04, kOpDelete, Form::kKey},    {0x14, kOpDelete, Form::kKey},
      {0x05, kOpIncr, Form::kDelta},    {0x15, kOpIncr, Form::kDelta},
      {0x06, kOpDecr, Form::kDelta},    {0x16, kOpDecr, Form::kDelta},
      {0x07, kOpNoop, Form::kBare},     {0x17, kOpNoop, Form::kBare},
      {0x08, kOpFlush, Form::kFlush},   {0x18, kOpFlush, Form::kFlush},
      {0x0a, kOpNoop, Form::kBare},     {0x0b, kOpVersion, Form::kBare},
      {0x0e, kOpAppend, Form::kJoin},   {0x19, kOpAppend, Form::kJoin},
      {0x0f, kOpPrepend, Form::kJoin},  {0x1a, kOpPrepend, Form::kJoin},
      {0x1c, kOpTouch, Form::kKeyTime}, {0x1d, kOpGet, Form::kKeyTime},
      {0x1e, kOpGet, Form::kKeyTime},   {0x23, kOpGet, Form::kKeyTime},
      {0x24, kOpGet, Form::kKeyTime}};
  static constexpr uint8_t kQuiet[] = {0x09, 0x0d, 0x11, 0x12, 0x13, 0x14, 0x15,
                                       0x16, 0x17, 0x18, 0x19, 0x1a, 0x1e, 0x24};
  static constexpr uint8_t kShowsKey[] = {0x0c, 0x0d, 0x23, 0x24};
  const auto is_one = [](const auto& all, uint8_t opcode) {
    return std::find(std::begin(all), std::end(all), opcode) != std::end(all);
  };
  const Form& form = kForms[random.below(std::size(kForms))];
  const bool unknown = random.below(20) == 0;
  const bool wrong = !unknown && random.below(40) == 0;  // more extras than it has
  const uint8_t opcode = unknown ? 0x33 : form.opcode;
  const bool has_name = form.form != Form::kBare && form.form != Form::kFlush;
  Operation operation = has_name ? keyed(form.op, random_key(random)) : Operation();
  Record& op = operation.op;
  op.set("op", form.op).set("bin", 1).set("opcode", opcode);
  op.set("quiet", is_one(kQuiet, opcode)).set("ret_key", is_one(kShowsKey, opcode));
  const uint64_t cas = random.below(3) == 0 ? random.next() : 0;
  if (has_name) op.set("cas", cas).set("cas_cmp", cas != 0);
  if (cas != 0 && (form.op == kOpAdd || form.op == kOpReplace)) op.set("op", kOpSet);
  const uint32_t time = random.below(4) == 0
                            ? 0xffffffff
                            : static_cast<uint32_t>(random.next() >> (32 + random.below(32)));
  const uint32_t exptime =
      time >= 0x80000000u ? 0x7fffffff : time;  // negative ones are a time far away
  std::string extras;
  std::string value;
  switch (form.form) {
    case Form::kKeyTime:
      extras = big(time, 4);
      op.set("exptime", exptime).set("touch", form.op == kOpGet);
      break;
    case Form::kStore: {
      const auto flags = static_cast<uint32_t>(random.next() >> 32);
      extras = big(flags, 4) + big(time, 4);
      op.set("flags", flags).set("exptime", exptime);
      value = random_value(random);
      break;
    }
    case Form::kJoin:
      value = random_value(random);
      break;
    case Form::kDelta: {
      const uint64_t delta = random.next() >> random.below(64);
      const uint64_t initial = random.next() >> random.below(64);
      extras = big(delta, 8) + big(initial, 8) + big(time, 4);
      op.set("delta", delta)
          .set("initial_value", initial)
          .set("exptime", exptime)
          .set("vivify", time != 0xffffffff);
      break;
    }
    case Form::kFlush:
      if (random.below(2) != 0) {
        extras = big(time, 4);
        op.set("exptime", exptime);
      }
      break;
    default:
      break;
  }
  add_value(operation, value);
  Request request;
  const std::string opaque = random_bytes(random, 4);
  op.set("opaque", load_word(opaque, 0));  // bytes as they come
  const auto fails = [&](Err err) {
    const Bits same = op.get("opaque");
    op = error(err).op;
    op.set("bin", 1).set("opcode", opcode).set("opaque", same);
  };
  if (value.size() > kValueMax) fails(kErrTooLarge);
  if (unknown) fails(kErrUnknown);
  if (wrong) {
    fails(kErrFormat);
    extras += std::string(3, 'x');
    request.stops = true;
  }
  if (opcode == 0x07 || opcode == 0x17) request.stops = true;
  request.bytes = "\x80" + big(opcode, 1) + big(operation.key.size(), 2) + big(extras.size(), 1) +
                  std::string(3, '\0') +
                  big(extras.size() + operation.key.size() + value.size(), 4) + opaque +
                  big(cas, 8) + extras + operation.key + value;
  request.line = 24;
  if (op.get("op").low() == kOpError && value.size() <= kValueMax) operation.key.clear();
  request.operations = {operation};
  return request;
}

// What is left of a request that its datagram does not hold completely.
void cut(Request& request, size_t size, bool binary) {
  request.bytes.resize(size);
  request.stops = true;
  const Record op = request.operations.empty() ? Record(kMeta) : request.operations[0].op;
  const bool was_error = op.get("op").low() == kOpError && op.get("err").low() != kErrTooLarge;
  if (binary && size < request.line) {
    request.operations.clear();  // not even a header
    return;
  }
  if (binary && was_error) return;  // what is wrong with it is seen in its header
  Operation operation = error(kErrFormat);
  if (binary)
    operation.op.set("bin", 1).set("opcode", op.get("opcode")).set("opaque", op.get("opaque"));
  request.operations = {operation};
}

void run(const Setup& setup) {
  Model<Vmc_parse> model;
  Testbench bench(*model, setup);
  Random& random = bench.random();
  Stream& info = bench.input("info", model->info_valid, model->info_ready, {model->info});
  Stream& in = bench.input("in", model->in_valid, model->in_ready,
                           {model->in_data, model->in_bytes, model->in_last});
  Stream& key = bench.output("key", model->key_valid, model->key_ready, {model->key_data});
  Stream& value =
      bench.output("value", model->value_valid, model->value_ready, {model->value_data});
  Stream& op = bench.output("op", model->op_valid, model->op_ready, {model->op});
  key.unchecked = value.unchecked = op.unchecked = true;
  // The streams wait for each other, but what has been written of each of them comes in its own
  // time: words of the operations that have not been checked, and these.
  std::deque<Bits> keys, values;
  std::deque<std::pair<Operation, Record>> unchecked;
  const auto take = [](std::deque<Bits>& words, uint64_t count) {
    const auto end = words.begin() + static_cast<std::ptrdiff_t>(count);
    std::vector<Bits> taken(words.begin(), end);
    words.erase(words.begin(), end);
    return taken;
  };
  const auto check_words = [&] {
    while (!unchecked.empty()) {
      const auto& [want, got] = unchecked.front();
      const uint64_t kbeats = got.get("kbeats").low();
      const uint64_t vbeats = got.get("vbeats").low();
      if (keys.size() < kbeats || values.size() < vbeats) return;
      const std::vector<Bits> key_words = take(keys, kbeats);
      const std::vector<Bits> value_words = take(values, vbeats);
      if (has_key(got.get("op").low())) {
        bench.check(key_words == words_of(want.key), "the key differs");
        bench.check(value_words == words_of(want.value), "the value differs");
      }
      unchecked.pop_front();
    }
  };
  key.on_beat = [&](const Beat& beat) {
    keys.push_back(beat[0]);
    check_words();
  };
  value.on_beat = [&](const Beat& beat) {
    values.push_back(beat[0]);
    check_words();
  };
  std::deque<Operation> expected;
  op.on_beat = [&](const Beat& beat) {
    bench.check(!expected.empty(), "an operation too many");
    const Operation& want = expected.front();
    const Record got(kMeta, beat[0]);
    Record same = kept(got);
    same.set("eod", got.get("eod"));
    bench.check(same.bits() == want.op.bits(),
                "operation differs: " + same.bits().hex() + ", expected " + want.op.bits().hex());
    unchecked.emplace_back(want, got);
    expected.pop_front();
    check_words();
  };
  TextWriter text(random);
  for (uint64_t i = bench.count(2000); i > 0; --i) {
    const bool binary = random.below(2) != 0;
    std::string datagram;
    std::vector<Operation> operations;
    bool stopped = false;
    bool silent = false;
    for (uint32_t left = random.below(2) != 0 ? 1 : 1 + random.below(6); left > 0; --left) {
      Request request = binary ? binary_request(random) : text.next();
      if (datagram.size() + request.bytes.size() > kDatagramMax) break;
      const bool cuts = left == 1 && random.below(8) == 0 && request.bytes.size() > 1;
      if (cuts) {
        auto most = static_cast<uint32_t>(request.bytes.size() - 1);
        if (binary && random.below(2) != 0)
          most = std::min(most, static_cast<uint32_t>(request.line - 1));
        cut(request, 1 + random.below(most), binary);
      }
      datagram += request.bytes;
      if (stopped) continue;
      operations.insert(operations.end(), request.operations.begin(), request.operations.end());
      stopped = request.stops;
      silent = request.operations.empty();
    }
    if (datagram.empty()) continue;
    // What ends without an operation ends with one that does nothing.
    if (silent) operations.emplace_back();
    const size_t line = datagram.rfind('\n');
    info.push({Record(kInfo)
                   .set("size", datagram.size())
                   .set("lf_end", line == std::string::npos ? 0 : line + 1)
                   .bits()});
    in.push_all(packet_beats(datagram));
    for (Operation& operation : operations) {
      operation.op = kept(operation.op);
      expected.push_back(operation);
    }
    expected.back().op.set("eod", 1);
  }
  bench.run(1000);
  bench.check(expected.empty() && unchecked.empty() && keys.empty() && values.empty(),
              "operations are missing");
}

const Registered registered("mc_parse", run);

}  // namespace
}  // namespace warpcache::rtl
