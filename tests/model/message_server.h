// SPDX-License-Identifier: Apache-2.0
//
// A warpcached as the server of scripts, whose streams go by active messages (--ucx). Its clock and
// its statistics are asked for over its Unix socket.
#pragma once

#include <memory>

#include "model/server.h"
#include "model/server_process.h"

namespace warpcache::model {

// Starts `config.program`, which has `debugtime`. A stream's bytes of a round are packed into as
// few messages as they fit in, or cut at random (`config.cuts`); most large bodies go by
// rendezvous. Throws std::runtime_error: the program does not start, has no such messages, or this
// program was built without UCX.
std::unique_ptr<Server> start_message_server(const ProcessConfig& config);

}  // namespace warpcache::model
