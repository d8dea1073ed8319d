// SPDX-License-Identifier: Apache-2.0
//
// rtl_blocks: lists the test benches. rtl_blocks NAME [--count N] [--seed N]: runs one, and says
// how many beats its outputs gave. --fault STREAM:KIND:BEAT changes what the bench sees of an
// output (flip, drop, repeat): the bench must fail.
#include "testbench.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <utility>

namespace warpcache::rtl {

namespace {

constexpr uint64_t kIdleMax = 20000;  // cycles without a beat, while some are to come
constexpr uint64_t kPhase = 64;       // cycles, on average, between two rates of holding back

std::map<std::string, void (*)(const Setup&)>& benches() {
  static std::map<std::string, void (*)(const Setup&)> all;
  return all;
}

std::string text_of(const Beat& beat) {
  std::string text;
  for (const Bits& bits : beat) text += (text.empty() ? "" : " ") + bits.hex();
  return text;
}

}  // namespace

Bits Bits::part(int at, int size) const {
  Bits out;
  for (int i = 0; i < size; ++i) {
    const auto from = static_cast<size_t>(at + i);
    if ((words_[from / 32] >> (from % 32) & 1) != 0) out.flip(i);
  }
  return out;
}

void Bits::place(int at, int size, const Bits& value) {
  for (int i = 0; i < size; ++i) {
    const auto from = static_cast<size_t>(i);
    const auto to = static_cast<size_t>(at + i);
    const bool is = (words_[to / 32] >> (to % 32) & 1) != 0;
    if (is != ((value.words_[from / 32] >> (from % 32) & 1) != 0)) flip(at + i);
  }
}

std::string Bits::hex() const {
  size_t top = words_.size() - 1;
  while (top > 0 && words_[top] == 0) --top;
  char digits[12];
  std::snprintf(digits, sizeof(digits), "%x", words_[top]);
  std::string out = digits;
  while (top-- > 0) {
    std::snprintf(digits, sizeof(digits), "%08x", words_[top]);
    out += digits;
  }
  return out;
}

int bits_of(const Layout& layout) {
  int bits = 0;
  for (const Field& field : layout) bits += field.bits;
  return bits;
}

Bits random_bits(const Layout& layout, Random& random) {
  Bits bits;
  const int size = bits_of(layout);
  for (int at = 0; at < size; at += 32)
    bits.place(at, std::min(32, size - at), random.next() >> 32);
  return bits;
}

int Record::find(const std::string& name, int& size) const {
  int at = bits_of(*layout_);
  for (const Field& field : *layout_) {
    at -= field.bits;
    size = field.bits;
    if (name == field.name) return at;
  }
  std::fprintf(stderr, "no field %s\n", name.c_str());
  std::abort();
}

Record& Record::set(const std::string& name, const Bits& value) {
  int size = 0;
  const int at = find(name, size);
  bits_.place(at, size, value);
  return *this;
}

Bits Record::get(const std::string& name) const {
  int size = 0;
  const int at = find(name, size);
  return bits_.part(at, size);
}

Port Port::bit(int at) const {
  Port one = *this;
  one.bit_ = at;
  return one;
}

Bits Port::get() const {
  Bits bits;
  std::memcpy(bits.data(), at_, size_);
  return bit_ < 0 ? bits : bits.part(bit_, 1);
}

void Port::set(const Bits& value) const {
  Bits bits = value;
  if (bit_ >= 0) {
    std::memcpy(bits.data(), at_, size_);
    bits.place(bit_, 1, value);
  }
  std::memcpy(at_, bits.data(), size_);
}

Testbench::Testbench(std::function<void()> eval, Port clk, Port rst, const Setup& setup)
    : eval_(std::move(eval)), clk_(clk), rst_(rst), setup_(setup), random_(setup.seed) {
  rst_.set(1);
  for (int i = 0; i < 4; ++i) {
    clk_.set(0);
    eval_();
    clk_.set(1);
    eval_();
  }
  rst_.set(0);
}

Testbench::~Testbench() {
  std::printf("%llu cycles;", static_cast<unsigned long long>(cycles_));
  for (const auto* group : {&outputs_, &pulses_})
    for (const Stream* stream : *group)
      std::printf(" %s %llu", stream->name_.c_str(),
                  static_cast<unsigned long long>(stream->passed_));
  std::printf("\n");
}

void Testbench::fail(const std::string& what) const {
  std::printf("cycle %llu: %s\n", static_cast<unsigned long long>(cycles_), what.c_str());
  std::fflush(stdout);
  std::_Exit(1);
}

Stream& Testbench::add(std::vector<Stream*>& to, std::string name, std::vector<Port> valid,
                       std::vector<Port> ready, std::vector<Port> ports) {
  Stream& stream = streams_.emplace_back();
  stream.name_ = std::move(name);
  stream.valid_ = std::move(valid);
  stream.ready_ = std::move(ready);
  stream.ports_ = std::move(ports);
  to.push_back(&stream);
  return stream;
}

Stream& Testbench::input(std::string name, Port valid, Port ready, std::vector<Port> ports) {
  valid.set(0);
  return add(inputs_, std::move(name), {valid}, {ready}, std::move(ports));
}
Stream& Testbench::output(std::string name, Port valid, Port ready, std::vector<Port> ports) {
  ready.set(0);
  return add(outputs_, std::move(name), {valid}, {ready}, std::move(ports));
}
Stream& Testbench::command(std::string name, Port valid, std::vector<Port> ports) {
  valid.set(0);
  return add(inputs_, std::move(name), {valid}, {}, std::move(ports));
}
Stream& Testbench::pulses(std::string name, std::vector<Port> ports) {
  return add(pulses_, std::move(name), {}, {}, std::move(ports));
}

// Whether the stream goes on in this cycle. Its rate changes now and then: never, seldom, mostly.
bool Testbench::draws(const Stream& stream) {
  return stream.always || random_.below(100) >= stream.hold_percent_;
}

void Testbench::drive() {
  static constexpr uint32_t kRates[] = {0, 0, 20, 50, 95};
  for (Stream& stream : streams_)
    if (random_.below(kPhase) == 0) stream.hold_percent_ = kRates[random_.below(5)];
  for (Stream* stream : inputs_) {
    const bool valid = !stream->queue_.empty() && (stream->offered_ || draws(*stream));
    stream->valid_[0].set(valid);
    for (size_t i = 0; i < stream->ports_.size(); ++i)
      stream->ports_[i].set(valid ? stream->queue_.front()[i] : Bits());
    stream->offered_ = valid;
  }
  for (Stream* stream : outputs_) stream->ready_[0].set(draws(*stream));
}

void Testbench::compare(Stream& stream, const Beat& beat) {
  if (stream.on_beat) stream.on_beat(beat);
  ++stream.passed_;
  if (stream.unchecked) return;
  if (stream.queue_.empty()) fail(stream.name_ + ": one beat too many: " + text_of(beat));
  if (stream.queue_.front() != beat)
    fail(stream.name_ + " differs at beat " + std::to_string(stream.passed_ - 1) + ": " +
         text_of(beat) + ", expected " + text_of(stream.queue_.front()));
  stream.queue_.pop_front();
}

void Testbench::observe(Stream& stream, Beat beat) {
  idle_cycles_ = 0;
  if (setup_.fault.stream != stream.name_ || setup_.fault.beat != stream.passed_)
    return compare(stream, beat);
  switch (std::exchange(setup_.fault.kind, Fault::kNone)) {
    case Fault::kNone:
      return compare(stream, beat);
    case Fault::kFlip:
      beat[0].flip(0);
      return compare(stream, beat);
    case Fault::kDrop:
      return;
    case Fault::kRepeat:
      compare(stream, beat);
      return compare(stream, beat);
  }
}

void Testbench::sample() {
  for (Stream* stream : inputs_) {
    if (!stream->offered_ || (!stream->ready_.empty() && stream->ready_[0].get().zero())) continue;
    idle_cycles_ = 0;
    ++stream->passed_;
    stream->offered_ = false;
    const Beat beat = std::move(stream->queue_.front());
    stream->queue_.pop_front();
    if (stream->on_beat) stream->on_beat(beat);
  }
  const auto beat_of = [](const Stream& stream) {
    Beat beat;
    for (const Port& port : stream.ports_) beat.push_back(port.get());
    if (stream.normalize) stream.normalize(beat);
    return beat;
  };
  for (Stream* stream : outputs_) {
    const bool valid = !stream->valid_[0].get().zero();
    Beat beat;
    if (valid) beat = beat_of(*stream);
    if (stream->offered_ && !stream->may_withdraw && (!valid || beat != stream->kept_))
      fail(stream->name_ + " has taken an offer back: " + text_of(stream->kept_));
    const bool ready = !stream->ready_[0].get().zero();
    stream->offered_ = valid && !ready;
    if (valid && ready)
      observe(*stream, std::move(beat));
    else
      stream->kept_ = std::move(beat);
  }
  for (Stream* stream : pulses_) {
    Beat beat = beat_of(*stream);
    if (std::any_of(beat.begin(), beat.end(), [](const Bits& bits) { return !bits.zero(); }))
      observe(*stream, std::move(beat));
  }
}

void Testbench::step() {
  drive();
  if (before) before();
  clk_.set(0);
  eval_();
  ++idle_cycles_;
  sample();
  if (after) after();
  clk_.set(1);
  eval_();
  ++cycles_;
}

void Testbench::run(uint64_t more) {
  const auto waits = [this] {
    return std::any_of(streams_.begin(), streams_.end(),
                       [](const Stream& stream) { return !stream.empty(); });
  };
  idle_cycles_ = 0;
  while (waits()) {
    if (idle_cycles_ > kIdleMax) {
      std::string which;
      for (const Stream& stream : streams_)
        if (!stream.empty())
          which += " " + stream.name_ + " (" + std::to_string(stream.queued()) + ")";
      fail("nothing comes any more; waiting:" + which);
    }
    step();
  }
  for (uint64_t i = 0; i < more; ++i) step();
}

Registered::Registered(const char* name, void (*run)(const Setup&)) { benches()[name] = run; }

std::vector<Beat> packet_beats(const std::string& bytes) {
  std::vector<Beat> beats;
  size_t at = 0;
  do {
    const size_t size = std::min<size_t>(8, bytes.size() - at);
    beats.push_back({load_word(bytes, at), size, at + size == bytes.size()});
    at += size;
  } while (at < bytes.size());
  return beats;
}

std::vector<Bits> words_of(const std::string& bytes) {
  std::vector<Bits> words;
  for (size_t at = 0; at < bytes.size(); at += 8) words.emplace_back(load_word(bytes, at));
  return words;
}

uint64_t load_word(const std::string& bytes, size_t at) {
  uint64_t word = 0;
  std::memcpy(&word, bytes.data() + at, std::min<size_t>(8, bytes.size() - at));
  return word;
}

std::string random_bytes(Random& random, size_t size) {
  std::string bytes;
  for (size_t i = 0; i < size; ++i) bytes += static_cast<char>(random.next() >> 56);
  return bytes;
}

namespace {

bool parse_fault(const std::string& text, Fault& fault) {
  static const std::map<std::string, Fault::Kind> kKinds = {
      {"flip", Fault::kFlip}, {"drop", Fault::kDrop}, {"repeat", Fault::kRepeat}};
  const size_t first = text.find(':');
  const size_t second = text.find(':', first + 1);
  if (second == std::string::npos) return false;
  const auto kind = kKinds.find(text.substr(first + 1, second - first - 1));
  if (kind == kKinds.end()) return false;
  fault = {kind->second, text.substr(0, first),
           std::strtoull(text.c_str() + second + 1, nullptr, 10)};
  return true;
}

}  // namespace

int run_benches(int argc, char** argv) {
  if (argc == 1) {
    for (const auto& [name, run] : benches()) std::printf("%s\n", name.c_str());
    return 0;
  }
  Setup setup;
  const auto found = benches().find(argv[1]);
  bool good = found != benches().end() && argc % 2 == 0;
  for (int i = 2; good && i + 1 < argc; i += 2) {
    const std::string option = argv[i];
    if (option == "--count")
      setup.count = std::strtoull(argv[i + 1], nullptr, 10);
    else if (option == "--seed")
      setup.seed = static_cast<uint32_t>(std::strtoul(argv[i + 1], nullptr, 10));
    else
      good = option == "--fault" && parse_fault(argv[i + 1], setup.fault);
  }
  if (!good) {
    std::fprintf(stderr, "rtl_blocks [NAME [--count N] [--seed N] [--fault STREAM:KIND:BEAT]]\n");
    return 2;
  }
  found->second(setup);
  return 0;
}

}  // namespace warpcache::rtl

int main(int argc, char** argv) { return warpcache::rtl::run_benches(argc, argv); }
