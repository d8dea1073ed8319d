// SPDX-License-Identifier: Apache-2.0
//
// One thread of a run: an engine with several connections. It frames their commands, submits them
// in batches and records them with replies and times.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/engine.h"
#include "protocol/framing/frame.h"
#include "store/host/owner.h"
#include "stress/filler.h"
#include "stress/generator.h"
#include "stress/scenario.h"

namespace warpcache::stress {

// Sessions are numbered over all threads; these two belong to the run.
inline constexpr uint32_t kFrontSession = 48;  // and those after it, one a client
inline constexpr uint32_t kFinalSession = 62;
inline constexpr uint32_t kEvictSession = 63;

class Client {
 public:
  // Only this client uses `engine`. `front` may be null.
  Client(const Scenario& scenario, uint32_t index, uint64_t seed, store::StoreOwner& store,
         engine::Engine& engine, Front* front);
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  // Runs a batch of random commands.
  void run_batch();

  // Reads every key, in a session of its own, each after a command that takes the lock of the key's
  // pair. REQUIRES: no other client runs.
  void read_all_keys();

  // Checks that held replies still have the same bytes, and releases them.
  void release_pins();

  // The operations since the last call, those of a session in order.
  std::vector<Operation> take_operations();
  uint64_t filler_commands() const { return filler_.commands(); }
  uint64_t pins_held() const { return pins_held_; }
  const std::vector<std::string>& failures() const { return failures_; }

 private:
  struct Session {
    uint32_t number = 0;
    Form form = Form::kText;
    protocol::FrameState framing = {};
  };
  // A command of the current batch.
  struct Command {
    Form form;
    uint32_t first_operation;  // in batch_operations_
    uint32_t operation_count;
  };
  // One connection's part of the batch.
  struct Share {
    uint32_t first_command = 0;
    uint32_t command_count = 0;
    bool filler = false;
    uint32_t input_first = 0;
    uint32_t input_size = 0;
    protocol::FrameState* framing = nullptr;
    std::string replies;
  };
  struct HeldPin {
    uint32_t pin;
    std::vector<Bytes> pieces;
    Value value;
  };

  void add_session_share(Session& session);
  void add_command(Session& session, Form form, std::span<const Operation> operations,
                   std::string_view body);
  void open_share(protocol::FrameState* framing);
  void close_share();
  void frame_share(uint32_t index);
  void take_large_body(const Share& share, protocol::Frame frame, uint32_t body_at, uint32_t index);
  void submit_all();
  bool keep_unfinished(std::vector<protocol::Frame>* frames);
  void collect_replies();
  void collect_entry(const engine::BatchEntry& entry, std::string* replies);
  void hold(std::vector<Bytes> pieces, uint32_t pin);
  void release_oldest();
  void decode_replies();
  void run_shares();
  void read_from_front();
  void write_to_front();
  void ask_front(std::vector<Operation>& operations, std::string_view body);
  void fail(const std::string& what, std::string_view replies);

  const Scenario& scenario_;
  store::StoreOwner& store_;
  engine::Engine& engine_;
  Front* const front_;
  const uint32_t front_session_;
  uint8_t* memory_;  // input memory of the engine
  Generator generator_;
  Filler filler_;
  std::vector<Session> sessions_;
  Session final_session_;
  protocol::FrameState filler_framing_ = {};
  engine::Batch batch_;
  std::vector<uint32_t> entry_share_;  // of each entry of batch_
  std::vector<Share> shares_;
  std::vector<Command> commands_;
  std::vector<Operation> batch_operations_;
  std::string input_;
  std::string body_;
  std::vector<HeldPin> pins_;
  uint64_t pins_held_ = 0;
  std::vector<Operation> operations_;
  std::vector<std::string> failures_;
};

}  // namespace warpcache::stress
