// SPDX-License-Identifier: Apache-2.0
//
// Active messages of one thread: endpoints, each connected to another process's, and messages that
// run a handler where they arrive. UCX is one such port (ucx_port.h); tests have one in memory.
//
// A message is a header and data. Eager data arrives with the header. By rendezvous only the header
// arrives; the receiver then fetches the data from the sender's memory to where it wants it, or
// drops it. Headers arrive in the order of send(), of both kinds together.
#pragma once

#include <cstdint>
#include <string>

#include "base/bytes.h"
#include "io/ucx/am_layout.h"

namespace warpcache::io {

// Handle of data that still lies in its sender's memory.
using AmRemote = void*;

// A message that is being sent. The caller keeps it and the data in place from a send() that
// returns kUnderWay until sent().
struct AmSend {
  AmHeader header;
  Bytes data;
  bool rendezvous = false;
  uint32_t endpoint = 0;
  void* port_data = nullptr;  // the port's
};

// Called by AmPort::progress(), except where a comment says otherwise. None of them may close an
// endpoint; all other calls are allowed.
class AmReceiver {
 public:
  virtual ~AmReceiver() = default;
  // Whether a further endpoint may open. On the listening port's thread; each true is followed by
  // opened() or not_opened(), on the thread of the port that the endpoint was assigned to; where
  // the listening port ends or restarts before that, by not_opened() of its own receiver.
  virtual bool admits() = 0;
  virtual void not_opened() = 0;
  // On the listening port's thread: a client was refused, before any memory was shared, since it
  // does not say that it has the settings that both sides must have alike (ucx_choice.h).
  virtual void other_terms() {}
  virtual void opened(uint32_t endpoint) = 0;
  // The header handlers. `header` and `data` are valid until they return.
  virtual void received(uint32_t endpoint, Bytes header, Bytes data) = 0;
  // False: the data is not wanted; `data` is not valid then.
  virtual bool announced(uint32_t endpoint, Bytes header, uint64_t size, AmRemote data) = 0;
  // The completion handlers. `whole`: false if the endpoint has failed or was closed.
  virtual void sent(AmSend& message, bool whole) = 0;
  virtual void fetched(uint32_t endpoint, bool whole) = 0;
  // The peer has gone, or the connection has broken. What follows is close().
  virtual void failed(uint32_t endpoint) = 0;
  // After close(): nothing of the endpoint is under way, its number may be used again.
  virtual void ended(uint32_t endpoint) = 0;
};

enum class AmSent : uint8_t { kDone, kUnderWay, kFailed };

// One thread calls all functions, except wake().
class AmPort {
 public:
  virtual ~AmPort() = default;

  // Once, before the first progress().
  virtual void attach(AmReceiver& receiver) = 0;

  // Handles what has arrived or has completed. Returns whether there was something.
  virtual bool progress() = 0;

  // Makes event_fd() readable when the next thing happens. False: something has happened already.
  virtual bool arm() = 0;
  virtual int event_fd() const = 0;
  // Makes event_fd() readable. Any thread.
  virtual void wake() = 0;

  // kFailed: failed() follows.
  virtual AmSent send(AmSend& message) = 0;

  // Fetches announced data into `pieces`, which have its size in all; they and their array stay in
  // place until fetched(), unless it returns true: the data is there and fetched() does not come.
  // At most one fetch is under way for each endpoint.
  virtual bool fetch(uint32_t endpoint, AmRemote data, const MutableBytes* pieces,
                     uint32_t count) = 0;
  // Whether fetch_to_device() may be called.
  virtual bool reaches_device() const { return false; }
  // As fetch(), to one piece of a GPU's memory. The thread has its CUDA context.
  virtual bool fetch_to_device(uint32_t endpoint, AmRemote data, MutableBytes place) {
    return fetch(endpoint, data, &place, 1);
  }
  // The data is not wanted.
  virtual void drop(uint32_t endpoint, AmRemote data) = 0;

  // Lets clients of this and all ports of the process read `memory` by themselves until the ports'
  // end, without this thread where the transport can: an experiment. `key`: what they need for it.
  // Returns the error as text, or "".
  virtual std::string expose(MutableBytes /*memory*/, std::string* /*key*/) {
    return "the port has no reads of one side";
  }

  // The address of the other side, as text.
  virtual std::string peer(uint32_t endpoint) const = 0;

  // Whether messages have come that cannot be read, and this has been so for some calls; called
  // after each second that the thread has spent on progress() and in waiting for it. A client that
  // is killed while it writes a message to shared memory leaves it so, and later messages of all
  // clients wait after that one. A client that does not read is no reason.
  virtual bool is_stuck() = 0;
  // Starts anew: event_fd() is another one afterwards. Returns the error as text, or "". REQUIRES:
  // all endpoints are closed. Those that have not ended end by it.
  virtual std::string restart() = 0;

  // Closes the endpoint at once; messages under way are lost. ended() follows, from progress().
  virtual void close(uint32_t endpoint) = 0;
};

}  // namespace warpcache::io
