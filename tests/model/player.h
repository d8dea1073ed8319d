// SPDX-License-Identifier: Apache-2.0
//
// Plays a script against a server and against the model, and tells where they differ.
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
  std::string expected;  // from the first byte that differs on
  std::string got;
};
std::string describe(const Difference& difference);

// Starts a server for a script.
using StartServer = std::function<std::unique_ptr<Server>(const Script&)>;

struct Played {
  std::optional<Difference> difference;
  Script transcript;    // the script with its answers, CAS ids as {1}, {2}, ..., where it is kept
  size_t commands = 0;  // steps that were sent
  std::string loss;     // why the script was not played to its end; empty: it was
};

// Plays a script round by round: each is sent, then the server runs, which is the caller's to do,
// then what came back is compared.
class Player {
 public:
  // Both outlive it. Without `keeps_transcript` the transcript stays empty.
  Player(const Script& script, Server& server, bool keeps_transcript);
  Player(const Player&) = delete;
  Player& operator=(const Player&) = delete;

  // Sends the next round. False: there is none, or the model is at a loss.
  bool send_round();
  // `ran`: what Server::run() has said. False: something differs.
  bool compare_round(bool ran);
  // Compares what is stored, if all rounds are through. The player is used up.
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

// Plays all of it, with a transcript.
Played play(const Script& script, Server& server);

// The pipeline in this process.
std::unique_ptr<Server> start_pipeline(const Script& script,
                                       engine::RigKind engine = engine::RigKind::kCpu);

// A smaller script for which `differs` still holds, found by leaving things out.
Script shrink(Script script, const std::function<bool(const Script&)>& differs);

}  // namespace warpcache::model
