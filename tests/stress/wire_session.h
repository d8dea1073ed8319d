// SPDX-License-Identifier: Apache-2.0
//
// One connection of wire_run.h: sends a batch of commands, and records their replies and times. By
// UDP each command is a datagram, whose reply may be several; none is sent again, so a run in which
// one is lost fails.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "stress/command.h"
#include "stress/generator.h"
#include "stress/wire_run.h"

namespace warpcache::stress {

class WireSession {
 public:
  // Throws std::runtime_error if the server does not accept it. `number`: of its operations.
  WireSession(const Address& address, uint32_t number, Form form);
  ~WireSession();
  WireSession(const WireSession&) = delete;
  WireSession& operator=(const WireSession&) = delete;

  // Adds a command to the next batch.
  void add(Form form, std::span<const Operation> operations, std::string_view body);
  Form form() const { return form_; }

  // The batch is sent, and its end is asked for.
  void begin();
  // Sends and receives what can be. True: all replies have come, or the connection has failed.
  bool advance();
  int fd() const { return fd_; }
  bool wants_to_send() const {
    return is_udp_ ? datagrams_sent_ < commands_.size() : sent_ < output_.size();
  }
  // Reads the replies. Appends the operations to `done`, or says what is wrong.
  void finish(Generator* generator, std::vector<Operation>* done, std::string* failure);

 private:
  struct Command {
    Form form;
    uint32_t first_operation;  // in operations_
    uint32_t operation_count;
    size_t request_end = 0;          // in output_
    std::vector<std::string> parts;  // by UDP: of a message of its reply; empty: none has begun
    size_t parts_left = 0;
    std::string reply;  // by UDP: whole messages
  };

  bool is_whole() const;
  bool advance_stream();
  bool advance_datagrams();
  void send_datagrams();
  bool take_datagram(std::string_view datagram);
  bool is_answered(const Command& command) const;

  const bool is_udp_;
  const uint32_t number_;
  const Form form_;
  int fd_ = -1;
  bool failed_ = false;
  std::string output_;
  size_t sent_ = 0;
  size_t datagrams_sent_ = 0;
  size_t datagrams_answered_ = 0;
  uint16_t first_id_ = 0;  // of the batch's datagrams
  std::string replies_;
  std::vector<Command> commands_;
  std::vector<Operation> operations_;
  int64_t invoked_ = 0;
  int64_t responded_ = 0;
};

}  // namespace warpcache::stress
