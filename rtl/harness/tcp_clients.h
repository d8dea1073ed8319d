// SPDX-License-Identifier: Apache-2.0
//
// Terminates TCP for the core: clients of a socket of the kernel.
#pragma once

#include <cstdint>
#include <list>
#include <string>

#include "io/unique_fd.h"
#include "tcp_dialogue.h"

namespace warpcache::rtl {

class Sim;

class TcpClients {
 public:
  // Listens at 127.0.0.1; port 0: any. "" or what is wrong.
  std::string listen(uint16_t port);
  uint16_t port() const { return port_; }
  // Waits for bytes of clients, has the core answer the requests that are complete, and sends the
  // replies. False: the core hangs.
  bool serve(Sim& sim, int wait_ms);

 private:
  struct Client {
    io::UniqueFd fd;
    TcpDialogue dialogue;
    std::string output;
    std::vector<Step> steps;
    bool left = false;   // there may be complete requests that have not been run
    bool ended = false;  // the client sends no more
    bool broken = false;
  };
  void wait(int wait_ms);
  void accept_clients();
  static void read_from(Client& client);
  static void write_to(Client& client);
  bool run(Sim& sim);

  io::UniqueFd listener_;
  uint16_t port_ = 0;
  std::list<Client> clients_;
  bool left_ = false;  // requests that the last run has left for the next one
};

}  // namespace warpcache::rtl
