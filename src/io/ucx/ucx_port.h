// SPDX-License-Identifier: Apache-2.0
//
// Active messages by UCX: shared memory to processes of this machine, TCP to others, RDMA where UCX
// has it. Built where UCX is; the server loads it as a module (ucx_module.h).
#pragma once

#include <ucp/api/ucp.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "io/ucx/am_port.h"
#include "io/ucx/retired_fds.h"
#include "io/ucx/ucx_module.h"

namespace warpcache::io {

// UCX's own state, which the ports of a process share.
class UcxContext {
 public:
  // Returns the error as text, or "". `one_sided`: for UcxPort::expose() and read(). `transports`:
  // as in choose_ucx_settings().
  static std::string open(std::shared_ptr<UcxContext>* context, bool one_sided = false,
                          const std::string& transports = {});
  UcxContext(const UcxContext&) = delete;
  UcxContext& operator=(const UcxContext&) = delete;
  ~UcxContext();

  ucp_context_h handle() const { return handle_; }
  // Whether UCX can move data to and from the memory of CUDA's devices, and whether it is to.
  bool knows_cuda() const { return knows_cuda_; }
  bool reaches_device() const { return reaches_device_; }
  bool is_by_tcp() const { return by_tcp_; }
  // As UcxPort::expose().
  std::string expose(MutableBytes memory, std::string* key);

 private:
  UcxContext() = default;
  std::vector<ucp_mem_h> exposed_;
  ucp_context_h handle_ = nullptr;
  bool knows_cuda_ = false;
  bool reaches_device_ = false;
  bool by_tcp_ = false;
};

class UcxPort final : public AmPort {
  struct Endpoint;

 public:
  // Returns the error as text, or "".
  static std::string open(std::shared_ptr<UcxContext> context, std::unique_ptr<UcxPort>* port);
  UcxPort(const UcxPort&) = delete;
  UcxPort& operator=(const UcxPort&) = delete;
  // REQUIRES: no other thread uses a port that listen() of this one gave.
  ~UcxPort() override;

  // Accepts endpoints and assigns them to `ports`, one after the other. The ports outlive this one,
  // which may be among them, or no longer run progress(). Returns the error as text, or "".
  std::string listen(const std::string& host, uint16_t port, std::vector<UcxPort*> ports);

  // Starts to connect. The endpoint can be used at once; failed() follows if there is no server.
  // Returns the error as text, or "".
  std::string connect(const std::string& host, uint16_t port, uint32_t* endpoint);

  void attach(AmReceiver& receiver) override { receiver_ = &receiver; }
  bool progress() override;
  bool arm() override;
  int event_fd() const override { return event_fd_; }
  void wake() override;
  AmSent send(AmSend& message) override;
  bool fetch(uint32_t number, AmRemote data, const MutableBytes* pieces, uint32_t count) override;
  // Whether its endpoints go by TCP alone, as far as this side knows.
  bool is_by_tcp() const { return context_->is_by_tcp(); }
  bool reaches_device() const override { return context_->reaches_device(); }
  bool fetch_to_device(uint32_t number, AmRemote data, MutableBytes place) override;
  void drop(uint32_t number, AmRemote data) override;
  std::string expose(MutableBytes memory, std::string* key) override {
    return context_->expose(memory, key);
  }
  bool is_stuck() override;
  std::string restart() override;
  void close(uint32_t number) override;
  std::string peer(uint32_t endpoint) const override { return endpoints_[endpoint]->peer; }

  // A read of one side that is under way, and its end. `state` is changed by progress().
  struct Read {
    enum class State : uint8_t { kUnderWay, kDone, kFailed };
    State state = State::kDone;
    Endpoint* endpoint = nullptr;
  };
  // Reads `buffer.size` bytes at `address` in memory that the peer has exposed. `key`: as it gave
  // it, the same for all reads of an endpoint. `read` and the buffer stay in place while it is
  // under way, or until the endpoint has ended.
  void read(uint32_t number, Bytes key, uint64_t address, MutableBytes buffer, Read* read);

 private:
  static constexpr unsigned kAmId = 1;
  static constexpr unsigned kEchoId = 2;  // without data; a peer's does no harm
  static constexpr uint32_t kStuckChecks = 3;
  static constexpr int kProgressMax = 32;  // so that a busy port gives others a chance

  struct Endpoint {
    UcxPort* port = nullptr;
    ucp_ep_h ep = nullptr;
    uint32_t number = 0;
    uint32_t under_way = 0;  // sends, a fetch, and closing
    bool has_failed = false;
    bool reported = false;  // failed() was called
    bool closed = false;
    bool ended = false;
    bool listed = false;  // in news_
    bool fetch_failed = false;
    std::string peer;
    std::vector<ucp_dt_iov_t> pieces;  // of the fetch
    ucp_rkey_h remote = nullptr;       // of read()
  };

  explicit UcxPort(std::shared_ptr<UcxContext> context) : context_(std::move(context)) {}
  std::string start();
  std::string start_listening();
  void stop_listening();
  Endpoint& add_endpoint();
  std::string make_endpoint(ucp_ep_params_t& params, Endpoint** made);
  void list_news(Endpoint& endpoint);
  void report_news();
  void accept_new();
  void end_one(Endpoint& endpoint);
  void send_echo();
  bool start_fetch(Endpoint& endpoint, AmRemote data, void* buffer, size_t size,
                   ucp_request_param_t& param);

  static void on_request(ucp_conn_request_h request, void* port);
  static ucs_status_t on_message(void* port, const void* header, size_t header_size, void* data,
                                 size_t size, const ucp_am_recv_param_t* param);
  static ucs_status_t on_echo(void* port, const void* header, size_t header_size, void* data,
                              size_t size, const ucp_am_recv_param_t* param);
  static void on_failure(void* endpoint, ucp_ep_h ep, ucs_status_t status);
  static void on_sent(void* request, ucs_status_t status, void* message);
  static void on_read(void* request, ucs_status_t status, void* read);
  static void on_fetched(void* request, ucs_status_t status, size_t size, void* endpoint);
  static void on_closed(void* request, ucs_status_t status, void* endpoint);

  std::shared_ptr<UcxContext> context_;
  ucp_worker_h worker_ = nullptr;
  int event_fd_ = -1;
  AmReceiver* receiver_ = nullptr;
  std::vector<std::unique_ptr<Endpoint>> endpoints_;
  std::vector<uint32_t> free_;
  std::unordered_map<ucp_ep_h, Endpoint*> by_ep_;
  Endpoint* last_ = nullptr;     // that a message came from
  std::vector<Endpoint*> news_;  // failed, or nothing is under way any more
  uint32_t stuck_checks_ = 0;    // calls of is_stuck() in a row that found it so
  ucp_ep_h echo_ = nullptr;      // to this port itself; made when is_stuck() first needs it
  bool echo_came_ = false;
  RetiredFds retired_;     // of the worker before the last restart
  std::mutex wake_mutex_;  // for worker_ in wake() and restart()
  bool busy_ = false;      // a handler ran since progress() began

  ucp_listener_h listener_ = nullptr;
  std::string host_;  // of listen(), as the next two
  uint16_t port_ = 0;
  std::vector<UcxPort*> ports_;
  size_t next_port_ = 0;
  // Also held while a request is accepted: the listener must not go meanwhile.
  std::mutex new_mutex_;
  std::vector<ucp_conn_request_h> new_;  // connection requests assigned to this port
  std::atomic<bool> has_new_{false};
};

}  // namespace warpcache::io
