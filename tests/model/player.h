// SPDX-License-Identifier: Apache-2.0
//
// Plays a script against a server and the model, and reports where they differ.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "engine/testing/rig.h"
#include "model/cas_book.h"
#include "model/model.h"
#include "model/reply.h"
#include "model/script.h"
#include "model/server.h"

namespace warpcache::model {

struct Difference {
  uint32_t round = 0;
  int stream = 0;
  std::string what;
  std::string expected;  // from the first different byte on
  std::string got;
};
std::string describe(const Difference& difference);

// Starts a server for a script.
using StartServer = std::function<std::unique_ptr<Server>(const Script&)>;

struct Played {
  std::optional<Difference> difference;
  Script transcript;    // if kept: the script with its answers, CAS ids as {1}, {2}, ...
  size_t commands = 0;  // sent steps
  std::string loss;     // why the script was not played to its end; empty: it was
};

// Plays a script in rounds: sends the messages of a round, then the caller runs the server, then
// compares the replies.
class Player {
 public:
  // REQUIRES: `script` and `server` outlive this object. Without `keeps_transcript` the transcript
  // stays empty.
  Player(const Script& script, Server& server, bool keeps_transcript);
  Player(const Player&) = delete;
  Player& operator=(const Player&) = delete;

  // Sends the next round. False: there is none, or the model cannot predict it.
  bool send_round();
  // Compares the replies; `ran` is the result of Server::run(). False: there is a difference.
  bool compare_round(bool ran);
  // Whether the model answers this datagram of the round with nothing.
  bool expects_no_reply(size_t datagram) const { return datagrams_[datagram].empty(); }
  // Compares the items after the last round. The player cannot be used after this.
  Played end();

 private:
  // Both ends of a stream.
  struct Stream {
    explicit Stream(CasBook& book) : matcher(book) {}
    Session session;
    ReplyMatcher matcher;
    Reply said;  // in this round
  };

  void run_step(const Step& step);
  Reply say(int number, const std::string& bytes);
  void end_round();
  bool compare_stream(uint32_t round, int number, Stream& stream);
  bool compare_datagrams(uint32_t round);
  void compare_contents();
  void differ(uint32_t round, int stream, std::string what, std::string expected, std::string got) {
    played_.difference =
        Difference{round, stream, std::move(what), std::move(expected), std::move(got)};
  }
  void write_down(uint32_t round, int stream, const Reply& reply);

  const Script& script_;
  Server& server_;
  const bool keeps_transcript_;
  size_t next_step_ = 0;
  CasBook book_;
  Model model_;
  std::map<int, std::unique_ptr<Stream>> streams_;
  std::set<int> touched_;
  std::vector<Reply> datagrams_;
  std::map<uint64_t, size_t> shown_cas_;
  Played played_;
};

// Plays the whole script, with a transcript.
Played play(const Script& script, Server& server);

// The pipeline in this process.
std::unique_ptr<Server> start_pipeline(const Script& script,
                                       engine::RigKind engine = engine::RigKind::kCpu);

// A smaller script for which `differs` is still true, found by removing parts.
Script shrink(Script script, const std::function<bool(const Script&)>& differs);

}  // namespace warpcache::model
