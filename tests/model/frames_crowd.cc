// SPDX-License-Identifier: Apache-2.0
#include "model/frames_crowd.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <stdexcept>
#include <utility>

#include "base/assert.h"
#include "engine/replies.h"
#include "model/generator.h"
#include "model/player.h"
#include "model/server_process.h"
#include "net/packet.h"
#include "net/testing/packets.h"

namespace warpcache::model {

namespace {

using SteadyClock = std::chrono::steady_clock;

constexpr auto kSilenceMax = std::chrono::minutes(5);  // no server needs so long
constexpr uint16_t kFirstPort = 20'000;                // each player has one
constexpr uint32_t kHeaderBytes = 8;                   // memcached's, of a datagram
constexpr uint32_t kRequestBytesMax = 1400;            // that fit into a frame
constexpr uint64_t kBytesPerScript = uint64_t{4} << 20;

ProcessConfig process_config(const FramesConfig& config, const std::string& folder) {
  ProcessConfig process;
  process.program = config.program;
  // Root opens the link; replies of any size are the model's, too.
  process.options = {"-u", "root", "--udp-allow=0.0.0.0/0", "--udp-allow=::/0",
                     frames_option(config.link, folder)};
  process.ends_with_parent = true;
  process.options.insert(process.options.end(), config.options.begin(), config.options.end());
  return process;
}

}  // namespace

// A folder in the temporary one, until its end.
class FramesCrowd::Folder {
 public:
  Folder() {
    path_ = temporary_folder("model-frames-");
    if (path_.empty()) throw std::runtime_error("no temporary folder can be made");
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder() { remove(); }
  void remove() const {
    std::error_code error;
    (void)std::filesystem::remove_all(path_, error);
  }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// The server, the client's side of its frames, and the requests that are under way.
class FramesCrowd::Link {
 public:
  explicit Link(const FramesConfig& config) : process_(process_config(config, folder_.path())) {
    if (!process_.ok()) throw std::runtime_error(config.program + " does not start");
    if (!process_.clock_moves()) throw std::runtime_error("the server has no debugtime");
    client_ = connect_frames(config.link, folder_.path());
  }

  struct Exchange {
    std::string request;
    bool silent = false;  // no reply is expected
    std::string reply;
    // Of the reply.
    std::vector<std::string> parts;
    uint32_t missing = 0;
    bool answered = false;
  };

  ServerProcess& process() { return process_; }
  void remove_files() {
    process_.remove_files();
    folder_.remove();
  }

  // Sends the requests that there are, by the player's number, and waits for their replies. Returns
  // what is wrong, or "".
  std::string run(std::vector<std::optional<Exchange>>& exchanges) {
    std::vector<std::string> frames;
    bool silence = false;
    for (size_t i = 0; i < exchanges.size(); ++i) {
      if (!exchanges[i].has_value()) continue;
      frames.push_back(frame_for(i, exchanges[i]->request));
      silence |= exchanges[i]->silent;
    }
    client_->send(frames);
    sent_ += frames.size();
    std::string wrong = receive(exchanges);
    // A request without a reply shows only in the server's counter.
    if (wrong.empty() && silence) wrong = wait_until_counted();
    if (wrong.empty() && silence) wrong = receive_surplus(exchanges);
    ++request_id_;
    return wrong;
  }

 private:
  std::string frame_for(size_t player, const std::string& request) const {
    net::testing::FrameForm form;
    form.source_port = static_cast<uint16_t>(kFirstPort + player);
    form.checksum = (player + request_id_) % 4 != 0;
    form.ipv6 = (player + request_id_) % 8 == 1;
    std::string payload(kHeaderBytes, '\0');
    net::testing::set16(payload, 0, request_id_);
    payload[5] = 1;
    return net::testing::frame_of(payload + request, form);
  }

  static bool waits(const std::vector<std::optional<Exchange>>& exchanges) {
    for (const auto& exchange : exchanges) {
      if (exchange.has_value() && !exchange->silent && !exchange->answered) return true;
    }
    return false;
  }

  std::string receive(std::vector<std::optional<Exchange>>& exchanges) {
    const SteadyClock::time_point end = SteadyClock::now() + kSilenceMax;
    std::vector<std::string> frames;
    while (waits(exchanges)) {
      frames.clear();
      client_->receive(frames, 10);
      for (const std::string& frame : frames) {
        if (std::string wrong = take(frame, exchanges); !wrong.empty()) return wrong;
      }
      if (SteadyClock::now() > end) return "a request is not answered";
    }
    return "";
  }

  std::string receive_surplus(std::vector<std::optional<Exchange>>& exchanges) {
    std::vector<std::string> frames;
    client_->receive(frames, 0);
    for (const std::string& frame : frames) {
      if (std::string wrong = take(frame, exchanges); !wrong.empty()) return wrong;
    }
    return "";
  }

  std::string wait_until_counted() {
    const SteadyClock::time_point end = SteadyClock::now() + kSilenceMax;
    while (SteadyClock::now() < end) {
      if (process_.stat("frames_requests") >= sent_) return "";
    }
    return "a request without a reply is not counted";
  }

  // A frame of a reply: its checksums are right, and it belongs to a request that is under way.
  std::string take(const std::string& frame, std::vector<std::optional<Exchange>>& exchanges) {
    const size_t l4 = net::testing::l4_offset_of(frame);
    if (l4 + 8 > frame.size()) return "a short frame";
    const uint16_t port = net::testing::get16(frame, l4 + 2);
    net::Packet packet;
    const Bytes bytes = {reinterpret_cast<const uint8_t*>(frame.data()), frame.size()};
    if (net::parse_packet(bytes, port, packet) != net::PacketVerdict::kRequest ||
        packet.payload_size < kHeaderBytes) {
      return "a frame that a client does not take";
    }
    const size_t player = size_t{port} - kFirstPort;
    const size_t at = packet.payload_offset;
    const uint16_t id = net::testing::get16(frame, at);
    const uint16_t number = net::testing::get16(frame, at + 2);
    const uint16_t count = net::testing::get16(frame, at + 4);
    if (port < kFirstPort || player >= exchanges.size() || !exchanges[player].has_value() ||
        id != request_id_ || number >= count) {
      return "a reply to nothing that was asked";
    }
    Exchange& exchange = *exchanges[player];
    if (exchange.parts.empty()) exchange.parts.resize(exchange.missing = count);
    if (count != exchange.parts.size() || exchange.answered || !exchange.parts[number].empty()) {
      return "a reply that comes twice";
    }
    exchange.parts[number] = frame.substr(at + kHeaderBytes, packet.payload_size - kHeaderBytes);
    if (--exchange.missing == 0) finish(player, exchange);
    return "";
  }

  void finish(size_t player, Exchange& exchange) {
    exchange.reply.clear();
    for (const std::string& part : exchange.parts) exchange.reply += part;
    if (exchange.reply == engine::kDatagramBusy) {
      // Nothing was done: it is asked again.
      exchange.parts.clear();
      client_->send({frame_for(player, exchange.request)});
      ++sent_;
      return;
    }
    exchange.answered = true;
  }

  Folder folder_;
  ServerProcess process_;
  std::unique_ptr<FrameClient> client_;
  uint64_t sent_ = 0;
  uint16_t request_id_ = 1;
};

// One of the crowd, as in crowd.cc.
class FramesCrowd::Member final : public Server {
 public:
  Member(const FramesConfig& config, Link& link, uint64_t seed, uint32_t number)
      : config_(config), process_(link.process()), seed_(seed), number_(number) {}

  void send_round(uint32_t round) {
    while (player_.has_value() || begin_script(round)) {
      if (player_->send_round()) return;
      queue_.clear();
      end_script();
    }
  }
  // The next request of the round; nothing if there is none.
  std::optional<Link::Exchange> next() {
    if (asked_ == queue_.size()) return std::nullopt;
    Link::Exchange exchange;
    exchange.request = queue_[asked_];
    exchange.silent = player_->expects_no_reply(asked_);
    ++asked_;
    return exchange;
  }
  void take(const Link::Exchange& exchange) { replies_.push_back(exchange.reply); }
  void compare_round() {
    queue_.clear();
    asked_ = 0;
    if (player_.has_value() && !player_->compare_round(true)) end_script();
    replies_.clear();
  }
  void end_script();
  uint32_t take_seconds() { return std::exchange(seconds_, 0); }
  CrowdResult& result() { return result_; }

  void send(int, const std::string&) override { WC_ASSERT(false); }
  void send_datagram(const std::string& payload) override { queue_.push_back(payload); }
  bool run() override { WC_ASSERT(false); }  // the crowd does
  std::string take_output(int) override { return {}; }
  std::vector<std::string> take_datagrams() override { return std::exchange(replies_, {}); }
  bool closed(int) override { return false; }
  void advance(uint32_t seconds) override { seconds_ = seconds; }
  std::string finish() override { return {}; }
  int64_t now() const override { return process_.now(); }
  int64_t unix_start() const override { return process_.unix_start(); }
  std::string version() const override { return process_.version(); }
  uint64_t first_cas() const override { return process_.first_cas(); }
  bool cas_follows_requests() const override { return false; }

 private:
  bool begin_script(uint32_t first_round);

  const FramesConfig& config_;
  ServerProcess& process_;
  const uint64_t seed_;
  const uint32_t number_;
  uint64_t scripts_ = 0;  // begun
  bool differs_ = false;
  uint32_t seconds_ = 0;
  Script script_;
  std::optional<Player> player_;
  std::vector<std::string> queue_;  // requests of the round
  size_t asked_ = 0;                // of them
  std::vector<std::string> replies_;
  CrowdResult result_;
};

bool FramesCrowd::Member::begin_script(uint32_t first_round) {
  if (differs_) return false;
  GeneratorConfig config;
  config.bytes_max = kBytesPerScript;
  config.only_datagrams = true;
  config.message_bytes_max = kRequestBytesMax;
  config.messages_max = config_.messages_max;
  config.shared = true;
  config.prefix =
      std::to_string(seed_) + "." + std::to_string(number_) + "." + std::to_string(scripts_) + ".";
  config.first_round = first_round;
  config.last_round = config_.rounds;
  constexpr uint64_t kScriptsMax = 1'000;  // of a player, far more than there are
  SeededDice dice((seed_ * 1'000'003 + number_) * kScriptsMax + scripts_);
  script_ = Generator(config, dice).generate();
  player_.emplace(script_, *this, false);
  ++scripts_;
  return true;
}

void FramesCrowd::Member::end_script() {
  if (!player_.has_value()) return;
  Played played = player_->end();
  player_.reset();
  if (result_.add(std::move(script_), std::move(played))) differs_ = true;
}

FramesCrowd::FramesCrowd(const FramesConfig& config)
    : config_(config), link_(std::make_unique<Link>(config_)) {}
FramesCrowd::~FramesCrowd() = default;

void FramesCrowd::exit(int status) {
  link_->remove_files();
  _exit(status);
}

CrowdResult FramesCrowd::play(uint64_t seed) {
  std::vector<std::unique_ptr<Member>> members;
  for (uint32_t i = 0; i < config_.players; ++i) {
    members.push_back(std::make_unique<Member>(config_, *link_, seed, i));
  }
  CrowdResult all;
  std::vector<std::optional<Link::Exchange>> exchanges(members.size());
  for (uint32_t round = 1; round <= config_.rounds && all.broken.empty(); ++round) {
    uint32_t seconds = 0;
    for (const auto& member : members) {
      member->send_round(round);
      seconds = std::max(seconds, member->take_seconds());
    }
    if (seconds != 0) link_->process().advance(seconds);
    for (bool more = true; more && all.broken.empty();) {
      more = false;
      for (size_t i = 0; i < members.size(); ++i) {
        exchanges[i] = members[i]->next();
        more |= exchanges[i].has_value();
      }
      if (!more) break;
      all.broken = link_->run(exchanges);
      for (size_t i = 0; i < members.size(); ++i) {
        if (!exchanges[i].has_value()) continue;
        members[i]->take(*exchanges[i]);
        const bool waits = !exchanges[i]->silent && !exchanges[i]->answered;
        if (!all.broken.empty() && waits) {
          all.broken += "\n" + escape(exchanges[i]->request);
        }
      }
    }
    if (!all.broken.empty()) break;
    for (const auto& member : members) member->compare_round();
  }
  for (const auto& member : members) {
    member->end_script();
    CrowdResult& one = member->result();
    all.commands += one.commands;
    for (const auto& [loss, count] : one.losses) all.losses[loss] += count;
    for (CrowdResult::Failure& failure : one.failures) all.failures.push_back(std::move(failure));
  }
  const std::string ended = link_->process().finish();
  if (!ended.empty()) all.broken = ended;
  // The next crowd has other keys: without this the store would be full some day.
  if (all.broken.empty()) (void)link_->process().ask("flush_all");
  return all;
}

}  // namespace warpcache::model
