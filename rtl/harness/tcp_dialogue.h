// SPDX-License-Identifier: Apache-2.0
//
// A TCP client's stream as payloads of datagrams, which is all that the core understands.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace warpcache::rtl {

// What has to be done next for a client. Steps are done in order, since replies have the order of
// the requests.
struct Step {
  std::string bytes;
  bool to_core = true;  // a datagram's payload; else bytes for the client
  // Another step of the same get follows: this one's END line is no part of the reply.
  bool more = false;
};

// Divides a stream into requests. A request becomes one payload; a get of many keys several, each
// with a reply that the core can send. A request that is too long for the core is answered here.
class TcpDialogue {
 public:
  // Bytes that the client has sent.
  void add(std::string_view bytes) { in_ += bytes; }
  // Takes the complete requests out of what has been added; at most about `steps_max` steps.
  std::vector<Step> take(size_t steps_max);
  // The client has asked to be disconnected, or has sent a line without an end: after the steps
  // taken so far the connection is closed.
  bool closed() const { return closed_; }

 private:
  // False: the request is not complete.
  bool take_binary(std::vector<Step>& steps);
  bool take_text(std::vector<Step>& steps);
  bool take_storage(const std::vector<std::string_view>& words, size_t line,
                    std::vector<Step>& steps);
  void take_get(const std::vector<std::string_view>& words, std::vector<Step>& steps);
  void forward(size_t bytes, std::vector<Step>& steps);
  void refuse(size_t bytes, std::string answer, std::vector<Step>& steps);

  std::string in_;
  size_t at_ = 0;      // bytes of in_ that have been taken
  uint64_t skip_ = 0;  // bytes to come of a request that has been refused
  bool closed_ = false;
};

// Appends what the core has answered to a client's steps, one reply for each step with `to_core`
// and in their order, to the client's output.
void answer_steps(const std::vector<Step>& steps, std::vector<std::string> replies,
                  std::string& output);

}  // namespace warpcache::rtl
