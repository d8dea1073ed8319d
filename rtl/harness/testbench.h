// SPDX-License-Identifier: Apache-2.0
//
// For tests of one block in simulation. A test bench names the block's streams, queues beats for
// its inputs, and says which beats its outputs must give; run() plays them, each stream held back
// at random. A beat that differs, is missing or is one too many ends the program with status 1, as
// does an offer that is taken back and a block that does nothing any more.
//
//   void run(const Setup& setup) {
//     Model<Vfifo> model;
//     Testbench bench(*model, setup);
//     Stream& in = bench.input("in", model->in_valid, model->in_ready, {model->in_data});
//     Stream& out = bench.output("out", model->out_valid, model->out_ready, {model->out_data});
//     ...
//     in.push({5});    // a beat: a number for each port
//     out.push({5});   // what is expected
//     bench.run();
//   }
//   const Registered registered("fifo", run);
#pragma once

#include <verilated.h>

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "ports.h"

namespace warpcache::rtl {

// A number of up to 512 bits.
class Bits {
 public:
  Bits(uint64_t value = 0)  // NOLINT(google-explicit-constructor): numbers are written as such
      : words_{static_cast<uint32_t>(value), static_cast<uint32_t>(value >> 32)} {}
  uint64_t low() const { return words_[0] | uint64_t{words_[1]} << 32; }
  bool zero() const { return *this == Bits(); }
  // `size` bits from bit `at` on.
  Bits part(int at, int size) const;
  void place(int at, int size, const Bits& value);
  void flip(int at) { words_[static_cast<size_t>(at) / 32] ^= uint32_t{1} << (at % 32); }
  bool operator==(const Bits&) const = default;
  std::string hex() const;
  uint32_t* data() { return words_.data(); }

 private:
  std::array<uint32_t, 16> words_;
};

// A beat of a stream: the numbers at its ports.
using Beat = std::vector<Bits>;

// Fields of a packed struct, the first one at the top, as SystemVerilog has them.
struct Field {
  const char* name;
  int bits;
};
using Layout = std::vector<Field>;

// A packed struct.
class Record {
 public:
  explicit Record(const Layout& layout, const Bits& bits = {}) : layout_(&layout), bits_(bits) {}
  Record& set(const std::string& name, const Bits& value);
  Bits get(const std::string& name) const;
  const Bits& bits() const { return bits_; }

 private:
  int find(const std::string& name, int& size) const;

  const Layout* layout_;
  Bits bits_;
};
// All fields at random.
Bits random_bits(const Layout& layout, Random& random);
int bits_of(const Layout& layout);

// A port of the model, of any width. The model must live longer.
class Port {
 public:
  template <typename T>
  requires(!std::is_same_v<std::remove_const_t<T>, Port>)
      Port(T& port)  // NOLINT(google-explicit-constructor): models' members are passed as they are
      : at_(&port), size_(sizeof(T)) {}
  // One bit of it.
  Port bit(int at) const;
  Bits get() const;
  void set(const Bits& value) const;

 private:
  void* at_;
  size_t size_;
  int bit_ = -1;  // of all
};

inline void set(Port port, const Bits& value) { port.set(value); }

// A fault in what the bench sees of an output, to show that it would be noticed.
struct Fault {
  enum Kind { kNone, kFlip, kDrop, kRepeat } kind = kNone;
  std::string stream;
  uint64_t beat = 0;
};

struct Setup {
  uint64_t count = 0;  // of what the bench repeats; 0: its own number
  uint32_t seed = 1;
  Fault fault;
};

class Stream {
 public:
  // For the block, or expected of it.
  void push(Beat beat) { queue_.push_back(std::move(beat)); }
  void push_all(const std::vector<Beat>& beats) {
    queue_.insert(queue_.end(), beats.begin(), beats.end());
  }
  void clear() { queue_.clear(); }
  bool empty() const { return queue_.empty(); }
  size_t queued() const { return queue_.size(); }
  uint64_t passed() const { return passed_; }
  // Called for each beat that has passed, before it is compared. The bench may push what it
  // expects.
  std::function<void(const Beat&)> on_beat;
  // Clears what a beat of this output says without a meaning.
  std::function<void(Beat&)> normalize;
  // An output that may be taken back, since it is offered only while another stream can go on too.
  bool may_withdraw = false;
  // An output whose beats only on_beat looks at.
  bool unchecked = false;
  // Never held back.
  bool always = false;

 private:
  friend class Testbench;
  std::string name_;
  std::vector<Port> valid_;  // of pulses: none
  std::vector<Port> ready_;  // likewise
  std::vector<Port> ports_;
  std::deque<Beat> queue_;
  uint64_t passed_ = 0;
  uint32_t hold_percent_ = 0;
  bool offered_ = false;  // and not taken yet
  Beat kept_;
};

class Testbench {
 public:
  // Holds the block in reset for some cycles.
  template <typename Block>
  Testbench(Block& block, const Setup& setup)
      : Testbench([&block] { block.eval(); }, block.clk, block.rst, setup) {}
  ~Testbench();
  Testbench(const Testbench&) = delete;
  Testbench& operator=(const Testbench&) = delete;

  Stream& input(std::string name, Port valid, Port ready, std::vector<Port> ports);
  Stream& output(std::string name, Port valid, Port ready, std::vector<Port> ports);
  // An input that the block always takes: `valid` with the ports for one cycle.
  Stream& command(std::string name, Port valid, std::vector<Port> ports);
  // Outputs that say something in each cycle in which one of them is not zero.
  Stream& pulses(std::string name, std::vector<Port> ports);
  // Called in each cycle: before outputs are computed, and with them, before the clock.
  std::function<void()> before;
  std::function<void()> after;

  void step();
  // Until all queues are empty, and `more` cycles after that.
  void run(uint64_t more = 200);
  uint64_t cycles() const { return cycles_; }
  Random& random() { return random_; }
  uint64_t count(uint64_t usual) const { return setup_.count != 0 ? setup_.count : usual; }
  [[noreturn]] void fail(const std::string& what) const;
  void check(bool good, const std::string& what) const {
    if (!good) fail(what);
  }

 private:
  Testbench(std::function<void()> eval, Port clk, Port rst, const Setup& setup);
  Stream& add(std::vector<Stream*>& to, std::string name, std::vector<Port> valid,
              std::vector<Port> ready, std::vector<Port> ports);
  void drive();
  void sample();
  void observe(Stream& stream, Beat beat);
  void compare(Stream& stream, const Beat& beat);
  bool draws(const Stream& stream);

  std::function<void()> eval_;
  Port clk_;
  Port rst_;
  Setup setup_;
  Random random_;
  std::deque<Stream> streams_;
  std::vector<Stream*> inputs_, outputs_, pulses_;
  uint64_t cycles_ = 0;
  uint64_t idle_cycles_ = 0;
};

// A model of a block, and its context.
template <typename Block>
class Model {
 public:
  Model() : block_(std::make_unique<Block>(&context_)) {}
  Block& operator*() { return *block_; }
  Block* operator->() { return block_.get(); }

 private:
  VerilatedContext context_;
  std::unique_ptr<Block> block_;
};

// Makes a test bench known to the program.
class Registered {
 public:
  Registered(const char* name, void (*run)(const Setup&));
};

// Beats of 8 bytes: data, number of bytes, last.
std::vector<Beat> packet_beats(const std::string& bytes);
// Words of 8 bytes, the last one filled up with zeros.
std::vector<Bits> words_of(const std::string& bytes);
// Words as the bytes of memory.
uint64_t load_word(const std::string& bytes, size_t at);
std::string random_bytes(Random& random, size_t size);

}  // namespace warpcache::rtl
