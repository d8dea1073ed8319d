// SPDX-License-Identifier: Apache-2.0
#include "sim.h"

#include <verilated.h>
#if VM_COVERAGE
#include <verilated_cov.h>
#endif

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "Vmc_core.h"

namespace warpcache::rtl {

namespace {
constexpr uint64_t kMemoryBeats = uint64_t{1} << 23;
constexpr size_t kReadsMax = 64;
}  // namespace

Sim::Sim(const SimConfig& config)
    : config_(config),
      random_(config.seed),
      context_(std::make_unique<VerilatedContext>()),
      core_(std::make_unique<Vmc_core>(context_.get())) {
  memory_ = static_cast<uint64_t*>(std::calloc(kMemoryBeats, sizeof(uint64_t)));
  core_->clk = 0;
  core_->rst = 1;
  core_->udp_port = config.udp_port;
  core_->second_tick = 0;
  core_->hold = 0;
  core_->rx_valid = 0;
  core_->tx_ready = 0;
  core_->ar_ready = 0;
  core_->r_valid = 0;
  core_->aw_ready = 0;
  core_->w_ready = 0;
  core_->b_valid = 0;
  core_->csr_write = 0;
  core_->csr_address = 3;
  for (int i = 0; i < 4; ++i) {
    core_->clk = 0;
    core_->eval();
    core_->clk = 1;
    core_->eval();
  }
  core_->rst = 0;
  while ((read_register(3) & 1) == 0) {
  }
}

Sim::~Sim() {
  core_->final();
#if VM_COVERAGE
  // A model with counters of its lines, for rtl/coverage; each model adds a file.
  static int number = 0;
  const char* const file = std::getenv("RTL_COVERAGE_FILE");
  if (file != nullptr) {
    context_->coveragep()->write((file + std::to_string(number++) + ".dat").c_str());
  }
#endif
  std::free(memory_);
}

void Sim::drive() {
  if (config_.hold_percent != 0) {
    uint32_t hold = 0;
    for (int i = 0; i < 12; ++i) hold |= static_cast<uint32_t>(holds()) << i;
    core_->hold = static_cast<uint16_t>(hold);
  }
  // A beat that is offered stays offered.
  if (!in_.empty() && (rx_offered_ || !holds())) {
    const Frame& frame = in_.front();
    const size_t left = frame.bytes.size() - in_at_;
    const size_t bytes = std::min<size_t>(left, 8);
    uint64_t data = 0;
    std::memcpy(&data, frame.bytes.data() + in_at_, bytes);
    core_->rx_valid = 1;
    core_->rx_data = data;
    core_->rx_bytes = static_cast<uint8_t>(bytes);
    core_->rx_last = bytes == left;
    core_->rx_error = bytes == left && frame.damaged;
    rx_offered_ = true;
  } else {
    core_->rx_valid = 0;
  }
  core_->tx_ready = !holds();
  core_->ar_ready = reads_.size() < kReadsMax && !holds();
  core_->aw_ready = writes_.size() + filling_.size() < kReadsMax && !holds();
  core_->w_ready = !filling_.empty() && !holds();
  read_chosen_ = -1;
  core_->r_valid = 0;
  if (!reads_.empty()) {
    const auto first = random_.below(static_cast<uint32_t>(reads_.size()));
    for (size_t i = 0; i < reads_.size(); ++i) {
      const size_t at = first + i < reads_.size() ? first + i : first + i - reads_.size();
      if (reads_[at].ready > cycles_) continue;
      read_chosen_ = static_cast<int>(at);
      core_->r_valid = 1;
      core_->r_tag = reads_[at].tag;
      // Beats of 16 bytes, of writes 8.
      std::memcpy(core_->r_data.data(), memory_ + 2 * uint64_t{reads_[at].address}, 16);
      break;
    }
  }
  write_chosen_ = -1;
  core_->b_valid = 0;
  for (size_t i = 0; i < writes_.size(); ++i) {
    if (writes_[i].ready > cycles_) continue;
    write_chosen_ = static_cast<int>(i);
    core_->b_valid = 1;
    core_->b_tag = writes_[i].tag;
    break;
  }
}

// A beat that is offered stays, unchanged, until it is taken.
void Sim::check_offer(Offer& offer, bool valid, bool ready, uint64_t data, uint64_t more,
                      const char* name) {
  if (offer.kept && (!valid || data != offer.data || more != offer.more)) {
    std::fprintf(stderr, "%s has taken an offer back\n", name);
    std::abort();
  }
  offer = {valid && !ready, data, more};
}

void Sim::check_offers() {
  check_offer(offers_[0], core_->tx_valid, core_->tx_ready, core_->tx_data,
              uint64_t{core_->tx_bytes} | uint64_t{core_->tx_last} << 8, "tx");
  check_offer(offers_[1], core_->ar_valid, core_->ar_ready, core_->ar_addr,
              uint64_t{core_->ar_len} | uint64_t{core_->ar_tag} << 8, "ar");
  check_offer(offers_[2], core_->aw_valid, core_->aw_ready, core_->aw_addr,
              uint64_t{core_->aw_len} | uint64_t{core_->aw_tag} << 8, "aw");
  check_offer(offers_[3], core_->w_valid, core_->w_ready, core_->w_data, core_->w_last, "w");
}

void Sim::sample() {
  check_offers();
  if (core_->rx_valid && core_->rx_ready) {
    rx_offered_ = false;
    if (in_at_ == 0) in_began_ = cycles_;
    in_at_ += 8;
    if (in_at_ >= in_.front().bytes.size()) {
      in_.pop_front();
      in_at_ = 0;
    }
  }
  if (core_->tx_valid && core_->tx_ready) {
    if (frame_out_.empty()) out_began_ = cycles_;
    const uint64_t data = core_->tx_data;
    char bytes[8];
    std::memcpy(bytes, &data, 8);
    frame_out_.append(bytes, core_->tx_bytes);
    if (core_->tx_last) {
      out_.push_back(std::move(frame_out_));
      frame_out_.clear();
    }
  }
  if (read_chosen_ >= 0) {
    Read& read = reads_[static_cast<size_t>(read_chosen_)];
    ++read.address;
    if (--read.left == 0) reads_.erase(reads_.begin() + read_chosen_);
  }
  // The bytes of a write appear only now: a read that was allowed before would see the old ones.
  if (write_chosen_ >= 0) {
    const Write& write = writes_[static_cast<size_t>(write_chosen_)];
    std::copy(write.beats.begin(), write.beats.end(), memory_ + write.address);
    writes_.erase(writes_.begin() + write_chosen_);
  }
  if (core_->w_valid && core_->w_ready) {
    Write& write = filling_.front();
    write.beats.push_back(core_->w_data);
    const bool last = write.beats.size() == write.length;
    if (last != static_cast<bool>(core_->w_last)) {
      std::fprintf(stderr, "w_last is wrong\n");
      std::abort();
    }
    if (last) {
      write.ready = cycles_ + latency();
      writes_.push_back(std::move(write));
      filling_.pop_front();
    }
  }
  if (core_->ar_valid && core_->ar_ready) {
    reads_.push_back({cycles_ + latency(), core_->ar_addr, core_->ar_tag, core_->ar_len});
  }
  if (core_->aw_valid && core_->aw_ready) {
    filling_.push_back({0, core_->aw_addr, core_->aw_tag, core_->aw_len, {}});
  }
}

void Sim::step() {
  drive();
  core_->clk = 0;
  core_->eval();
  sample();
  core_->clk = 1;
  core_->eval();
  ++cycles_;
}

bool Sim::run_until_idle(uint64_t cycles_max) {
  constexpr int kQuietCycles =
      400;  // longer than a frame in the first blocks, or the slowest memory
  int quiet = 0;
  for (uint64_t i = 0; i < cycles_max; ++i) {
    step();
    const bool idle = in_.empty() && core_->idle && reads_.empty() && writes_.empty() &&
                      filling_.empty() && !core_->aw_valid;
    quiet = idle ? quiet + 1 : 0;
    if (quiet == kQuietCycles) return frame_out_.empty();
  }
  return false;
}

void Sim::write_register(uint32_t address, uint32_t value) {
  core_->csr_write = 1;
  core_->csr_address = static_cast<uint8_t>(address);
  core_->csr_write_data = value;
  step();
  core_->csr_write = 0;
}

uint32_t Sim::read_register(uint32_t address) {
  core_->csr_address = static_cast<uint8_t>(address);
  step();
  return core_->csr_read_data;
}

void Sim::set_next_cas(uint64_t cas) {
  write_register(2, static_cast<uint32_t>(cas));
  write_register(3, static_cast<uint32_t>(cas >> 32));
}

}  // namespace warpcache::rtl
