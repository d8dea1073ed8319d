// SPDX-License-Identifier: Apache-2.0
#include "io/ucx/ucx_port.h"

#include <netdb.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "base/assert.h"
#include "io/ucx/ucx_choice.h"

namespace warpcache::io {
namespace {

std::string failed(const char* what, ucs_status_t status) {
  return std::string(what) + ": " + ucs_status_string(status);
}

// Whether a client has the settings that the layout of shared memory depends on.
bool has_our_terms(ucp_conn_request_h request) {
  ucp_conn_request_attr_t attributes{};
  attributes.field_mask = UCP_CONN_REQUEST_ATTR_FIELD_CLIENT_ID;
  return ucp_conn_request_query(request, &attributes) == UCS_OK &&
         attributes.client_id == ucx_terms();
}

// An experiment: see docs/ucx.md. The simulated GPU's memory is the host's, which every UCX
// reaches.
bool reaches_device_memory(bool knows_cuda) {
  const char* const said = std::getenv("WARPCACHE_UCX_GPU");
  if (said == nullptr) return false;
  return std::strcmp(said, "simulated") == 0 || (knows_cuda && std::strcmp(said, "yes") == 0);
}

// Returns the error as text, or "".
std::string resolve(const std::string& host, uint16_t port, bool passive, sockaddr_storage* address,
                    socklen_t* size) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV | (passive ? AI_PASSIVE : 0);
  if (host.empty()) hints.ai_family = AF_INET;
  addrinfo* found = nullptr;
  const int error = getaddrinfo(host.empty() ? nullptr : host.c_str(), std::to_string(port).c_str(),
                                &hints, &found);
  if (error != 0) return host + ": " + gai_strerror(error);
  std::memcpy(address, found->ai_addr, found->ai_addrlen);
  *size = found->ai_addrlen;
  freeaddrinfo(found);
  return "";
}

std::string peer_of(ucp_conn_request_h request) {
  ucp_conn_request_attr_t attributes{};
  attributes.field_mask = UCP_CONN_REQUEST_ATTR_FIELD_CLIENT_ADDR;
  if (ucp_conn_request_query(request, &attributes) != UCS_OK) return "";
  char host[NI_MAXHOST];
  char port[NI_MAXSERV];
  const auto* const address = reinterpret_cast<const sockaddr*>(&attributes.client_address);
  if (getnameinfo(address, sizeof attributes.client_address, host, sizeof host, port, sizeof port,
                  NI_NUMERICHOST | NI_NUMERICSERV) != 0) {
    return "";
  }
  return address->sa_family == AF_INET6 ? "[" + std::string(host) + "]:" + port
                                        : std::string(host) + ":" + port;
}

}  // namespace

std::string UcxContext::open(std::shared_ptr<UcxContext>* context, bool one_sided,
                             const std::string& transports) {
  ucp_config_t* config = nullptr;
  ucs_status_t status = ucp_config_read(nullptr, nullptr, &config);
  if (status != UCS_OK) return failed("reading UCX's configuration", status);
  std::string refused = choose_ucx_settings(config, transports);
  if (!refused.empty()) {
    ucp_config_release(config);
    return refused;
  }
  ucp_params_t params{};
  params.field_mask = UCP_PARAM_FIELD_FEATURES | UCP_PARAM_FIELD_MT_WORKERS_SHARED;
  params.features = UCP_FEATURE_AM | UCP_FEATURE_WAKEUP | (one_sided ? UCP_FEATURE_RMA : 0);
  params.mt_workers_shared = 1;
  std::shared_ptr<UcxContext> made(new UcxContext);
  status = ucp_init(&params, config, &made->handle_);
  ucp_config_release(config);
  if (status != UCS_OK) return failed("starting UCX", status);
  ucp_context_attr_t attributes{};
  attributes.field_mask = UCP_ATTR_FIELD_MEMORY_TYPES;
  status = ucp_context_query(made->handle_, &attributes);
  if (status != UCS_OK) return failed("asking UCX for memory types", status);
  made->knows_cuda_ = (attributes.memory_types & UCS_BIT(UCS_MEMORY_TYPE_CUDA)) != 0;
  made->by_tcp_ = chooses_tcp_alone(transports);
  made->reaches_device_ = reaches_device_memory(made->knows_cuda_);
  *context = std::move(made);
  return "";
}

UcxContext::~UcxContext() {
  for (const ucp_mem_h memory : exposed_) (void)ucp_mem_unmap(handle_, memory);
  if (handle_ != nullptr) ucp_cleanup(handle_);
}

std::string UcxContext::expose(MutableBytes memory, std::string* key) {
  ucp_mem_map_params_t params{};
  params.field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS | UCP_MEM_MAP_PARAM_FIELD_LENGTH;
  params.address = memory.data;
  params.length = memory.size;
  ucp_mem_h mapped = nullptr;
  ucs_status_t status = ucp_mem_map(handle_, &params, &mapped);
  if (status != UCS_OK) return failed("memory for reads of one side", status);
  exposed_.push_back(mapped);
  void* packed = nullptr;
  size_t size = 0;
  status = ucp_rkey_pack(handle_, mapped, &packed, &size);
  if (status != UCS_OK) return failed("a key for reads of one side", status);
  key->assign(static_cast<const char*>(packed), size);
  ucp_rkey_buffer_release(packed);
  return "";
}

std::string UcxPort::open(std::shared_ptr<UcxContext> context, std::unique_ptr<UcxPort>* port) {
  std::unique_ptr<UcxPort> made(new UcxPort(std::move(context)));
  std::string failure = made->start();
  if (failure.empty()) *port = std::move(made);
  return failure;
}

std::string UcxPort::start() {
  ucp_worker_params_t params{};
  params.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE | UCP_WORKER_PARAM_FIELD_CLIENT_ID;
  params.thread_mode = UCS_THREAD_MODE_SERIALIZED;
  params.client_id = ucx_terms();
  ucs_status_t status = ucp_worker_create(context_->handle(), &params, &worker_);
  if (status != UCS_OK) return failed("starting a worker of UCX's", status);
  status = ucp_worker_get_efd(worker_, &event_fd_);
  if (status != UCS_OK) return failed("events of UCX", status);
  ucp_am_handler_param_t handler{};
  handler.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_FLAGS |
                       UCP_AM_HANDLER_PARAM_FIELD_CB | UCP_AM_HANDLER_PARAM_FIELD_ARG;
  handler.id = kAmId;
  handler.flags = UCP_AM_FLAG_WHOLE_MSG;
  handler.cb = on_message;
  handler.arg = this;
  status = ucp_worker_set_am_recv_handler(worker_, &handler);
  if (status != UCS_OK) return failed("active messages of UCX", status);
  handler.id = kEchoId;
  handler.cb = on_echo;
  status = ucp_worker_set_am_recv_handler(worker_, &handler);
  return status == UCS_OK ? "" : failed("active messages of UCX", status);
}

UcxPort::~UcxPort() {
  stop_listening();
  if (worker_ != nullptr) ucp_worker_destroy(worker_);
}

void UcxPort::stop_listening() {
  for (UcxPort* port : ports_) {
    const std::lock_guard lock(port->new_mutex_);
    for (const ucp_conn_request_h request : port->new_) {
      (void)ucp_listener_reject(listener_, request);
      receiver_->not_opened();
    }
    port->new_.clear();
  }
  if (listener_ != nullptr) ucp_listener_destroy(std::exchange(listener_, nullptr));
}

std::string UcxPort::listen(const std::string& host, uint16_t port, std::vector<UcxPort*> ports) {
  host_ = host;
  port_ = port;
  ports_ = std::move(ports);
  return start_listening();
}

std::string UcxPort::start_listening() {
  sockaddr_storage address{};
  socklen_t size = 0;
  std::string failure = resolve(host_, port_, true, &address, &size);
  if (!failure.empty()) return failure;
  ucp_listener_params_t params{};
  params.field_mask = UCP_LISTENER_PARAM_FIELD_SOCK_ADDR | UCP_LISTENER_PARAM_FIELD_CONN_HANDLER;
  params.sockaddr.addr = reinterpret_cast<const sockaddr*>(&address);
  params.sockaddr.addrlen = size;
  params.conn_handler.cb = on_request;
  params.conn_handler.arg = this;
  const ucs_status_t status = ucp_listener_create(worker_, &params, &listener_);
  if (status == UCS_ERR_BUSY) return "the address is in use";
  return status == UCS_OK ? "" : failed("listening", status);
}

std::string UcxPort::connect(const std::string& host, uint16_t port, uint32_t* endpoint) {
  sockaddr_storage address{};
  socklen_t size = 0;
  std::string failure = resolve(host, port, false, &address, &size);
  if (!failure.empty()) return failure;
  ucp_ep_params_t params{};
  params.field_mask = UCP_EP_PARAM_FIELD_FLAGS | UCP_EP_PARAM_FIELD_SOCK_ADDR;
  params.flags = UCP_EP_PARAMS_FLAGS_CLIENT_SERVER | UCP_EP_PARAMS_FLAGS_SEND_CLIENT_ID;
  params.sockaddr.addr = reinterpret_cast<const sockaddr*>(&address);
  params.sockaddr.addrlen = size;
  Endpoint* made = nullptr;
  failure = make_endpoint(params, &made);
  if (failure.empty()) *endpoint = made->number;
  return failure;
}

UcxPort::Endpoint& UcxPort::add_endpoint() {
  if (free_.empty()) {
    free_.reserve(endpoints_.size() + 1);  // so that end_one() allocates nothing
    free_.push_back(static_cast<uint32_t>(endpoints_.size()));
    endpoints_.push_back(std::make_unique<Endpoint>());
    news_.reserve(endpoints_.size());
  }
  Endpoint& endpoint = *endpoints_[free_.back()];
  endpoint = {};
  endpoint.port = this;
  endpoint.number = free_.back();
  free_.pop_back();
  return endpoint;
}

std::string UcxPort::make_endpoint(ucp_ep_params_t& params, Endpoint** made) {
  Endpoint& endpoint = add_endpoint();
  params.field_mask |= UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE | UCP_EP_PARAM_FIELD_ERR_HANDLER;
  params.err_mode = UCP_ERR_HANDLING_MODE_PEER;
  params.err_handler.cb = on_failure;
  params.err_handler.arg = &endpoint;
  const ucs_status_t status = ucp_ep_create(worker_, &params, &endpoint.ep);
  if (status != UCS_OK) {
    free_.push_back(endpoint.number);
    return failed("connecting", status);
  }
  by_ep_[endpoint.ep] = &endpoint;
  *made = &endpoint;
  return "";
}

// On the listening port's thread.
void UcxPort::on_request(ucp_conn_request_h request, void* port) {
  UcxPort& listening = *static_cast<UcxPort*>(port);
  listening.busy_ = true;
  if (!has_our_terms(request)) {
    (void)ucp_listener_reject(listening.listener_, request);
    listening.receiver_->other_terms();
    return;
  }
  if (!listening.receiver_->admits()) {
    (void)ucp_listener_reject(listening.listener_, request);
    return;
  }
  UcxPort& chosen = *listening.ports_[listening.next_port_++ % listening.ports_.size()];
  {
    const std::lock_guard lock(chosen.new_mutex_);
    chosen.new_.push_back(request);
  }
  chosen.has_new_.store(true, std::memory_order_release);
  chosen.wake();
}

void UcxPort::accept_new() {
  const std::lock_guard lock(new_mutex_);
  has_new_.store(false, std::memory_order_relaxed);
  for (const ucp_conn_request_h request : std::exchange(new_, {})) {
    ucp_ep_params_t params{};
    params.field_mask = UCP_EP_PARAM_FIELD_CONN_REQUEST;
    params.conn_request = request;
    std::string peer = peer_of(request);
    Endpoint* made = nullptr;
    if (make_endpoint(params, &made).empty()) {
      made->peer = std::move(peer);
      receiver_->opened(made->number);
    } else {
      receiver_->not_opened();
    }
  }
}

bool UcxPort::progress() {
  busy_ = false;
  if (WC_UNLIKELY(has_new_.load(std::memory_order_acquire) && worker_ != nullptr)) accept_new();
  if (WC_UNLIKELY(worker_ == nullptr)) return false;  // restart() has failed
  for (int i = 0; i < kProgressMax && ucp_worker_progress(worker_) != 0; ++i) {
  }
  if (WC_UNLIKELY(!news_.empty())) report_news();
  return busy_;
}

bool UcxPort::arm() {
  if (has_new_.load(std::memory_order_acquire) || !news_.empty()) return false;
  return worker_ != nullptr && ucp_worker_arm(worker_) == UCS_OK;
}

void UcxPort::wake() {
  const std::lock_guard lock(wake_mutex_);
  if (worker_ != nullptr) (void)ucp_worker_signal(worker_);
}

// UCX refuses to arm, though there is nothing to do, for one of two reasons. A message to this port
// was begun and not finished: then nothing that others send arrives, and neither does a message of
// this port to itself. Or a peer does not read and its queue is full, which disturbs nobody else.
bool UcxPort::is_stuck() {
  constexpr int kTries = 4;
  for (int i = 0; i < kTries; ++i) {
    if (ucp_worker_arm(worker_) == UCS_OK || ucp_worker_progress(worker_) != 0) {
      stuck_checks_ = 0;
      return false;
    }
  }
  if (std::exchange(echo_came_, false)) stuck_checks_ = 0;
  if (stuck_checks_ == 0) send_echo();
  return ++stuck_checks_ >= kStuckChecks;
}

// Where it cannot be sent it does not come.
void UcxPort::send_echo() {
  if (echo_ == nullptr) {
    ucp_address_t* address = nullptr;
    size_t size = 0;
    if (ucp_worker_get_address(worker_, &address, &size) != UCS_OK) return;
    ucp_ep_params_t params{};
    params.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS;
    params.address = address;
    if (ucp_ep_create(worker_, &params, &echo_) != UCS_OK) echo_ = nullptr;
    ucp_worker_release_address(worker_, address);
    if (echo_ == nullptr) return;
  }
  ucp_request_param_t param{};
  param.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
  param.flags = UCP_AM_SEND_FLAG_EAGER;
  ucs_status_ptr_t const request = ucp_am_send_nbx(echo_, kEchoId, nullptr, 0, nullptr, 0, &param);
  if (UCS_PTR_IS_PTR(request)) ucp_request_free(request);
}

ucs_status_t UcxPort::on_echo(void* port, const void*, size_t, void*, size_t,
                              const ucp_am_recv_param_t*) {
  static_cast<UcxPort*>(port)->echo_came_ = true;
  return UCS_OK;
}

std::string UcxPort::restart() {
  const bool listens = !ports_.empty();
  stop_listening();
  if (worker_ != nullptr) {
    const std::lock_guard lock(wake_mutex_);
    retired_.note("/ucx_shm");
    ucp_worker_destroy(std::exchange(worker_, nullptr));
    echo_ = nullptr;  // ended with its worker
    retired_.hold();
  }
  report_news();
  for (auto& endpoint : endpoints_) {
    if (endpoint->closed && !endpoint->ended) end_one(*endpoint);
  }
  stuck_checks_ = 0;
  std::string failure;
  {
    const std::lock_guard lock(wake_mutex_);
    failure = start();
  }
  return failure.empty() && listens ? start_listening() : failure;
}

void UcxPort::list_news(Endpoint& endpoint) {
  if (std::exchange(endpoint.listed, true)) return;
  news_.push_back(&endpoint);
}

void UcxPort::report_news() {
  busy_ = true;
  std::vector<Endpoint*> news;
  news.swap(news_);
  for (Endpoint* endpoint : news) {
    endpoint->listed = false;
    if (std::exchange(endpoint->fetch_failed, false)) receiver_->fetched(endpoint->number, false);
    if (endpoint->closed) {
      if (endpoint->under_way == 0) end_one(*endpoint);
    } else if (endpoint->has_failed && !std::exchange(endpoint->reported, true)) {
      receiver_->failed(endpoint->number);
    }
  }
  if (news_.empty()) {
    news.clear();
    news_.swap(news);  // keeps the memory
  }
}

void UcxPort::end_one(Endpoint& endpoint) {
  if (endpoint.remote != nullptr && worker_ != nullptr) ucp_rkey_destroy(endpoint.remote);
  endpoint.remote = nullptr;
  endpoint.ended = true;
  free_.push_back(endpoint.number);
  receiver_->ended(endpoint.number);
}

ucs_status_t UcxPort::on_message(void* port, const void* header, size_t header_size, void* data,
                                 size_t size, const ucp_am_recv_param_t* param) {
  UcxPort& self = *static_cast<UcxPort*>(port);
  self.busy_ = true;
  if ((param->recv_attr & UCP_AM_RECV_ATTR_FIELD_REPLY_EP) == 0) return UCS_OK;
  if (self.last_ == nullptr || self.last_->ep != param->reply_ep) {
    const auto found = self.by_ep_.find(param->reply_ep);
    if (found == self.by_ep_.end()) return UCS_OK;
    self.last_ = found->second;
  }
  const uint32_t number = self.last_->number;
  const Bytes head = {static_cast<const uint8_t*>(header), header_size};
  if ((param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) != 0) {
    return self.receiver_->announced(number, head, size, data) ? UCS_INPROGRESS : UCS_OK;
  }
  self.receiver_->received(number, head, {static_cast<const uint8_t*>(data), size});
  return UCS_OK;
}

void UcxPort::on_failure(void* endpoint, ucp_ep_h, ucs_status_t) {
  Endpoint& one = *static_cast<Endpoint*>(endpoint);
  one.has_failed = true;
  one.port->list_news(one);
}

AmSent UcxPort::send(AmSend& message) {
  Endpoint& endpoint = *endpoints_[message.endpoint];
  WC_DASSERT(!endpoint.closed);
  ucp_request_param_t param{};
  param.op_attr_mask =
      UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FIELD_FLAGS;
  param.cb.send = on_sent;
  param.user_data = &message;
  param.flags = UCP_AM_SEND_FLAG_REPLY |
                (message.rendezvous ? UCP_AM_SEND_FLAG_RNDV : UCP_AM_SEND_FLAG_EAGER);
  message.port_data = &endpoint;
  ucs_status_ptr_t const request =
      endpoint.has_failed ? UCS_STATUS_PTR(UCS_ERR_NOT_CONNECTED)
                          : ucp_am_send_nbx(endpoint.ep, kAmId, &message.header, sizeof(AmHeader),
                                            message.data.data, message.data.size, &param);
  if (WC_LIKELY(request == nullptr)) return AmSent::kDone;
  if (UCS_PTR_IS_ERR(request)) {
    endpoint.has_failed = true;
    list_news(endpoint);
    return AmSent::kFailed;
  }
  ++endpoint.under_way;
  return AmSent::kUnderWay;
}

void UcxPort::on_sent(void* request, ucs_status_t status, void* message) {
  ucp_request_free(request);
  AmSend& sent = *static_cast<AmSend*>(message);
  Endpoint& endpoint = *static_cast<Endpoint*>(sent.port_data);
  endpoint.port->busy_ = true;
  if (--endpoint.under_way == 0 && endpoint.closed) endpoint.port->list_news(endpoint);
  endpoint.port->receiver_->sent(sent, status == UCS_OK);
}

bool UcxPort::fetch(uint32_t number, AmRemote data, const MutableBytes* pieces, uint32_t count) {
  Endpoint& endpoint = *endpoints_[number];
  ucp_request_param_t param{};
  if (count == 1) return start_fetch(endpoint, data, pieces[0].data, pieces[0].size, param);
  endpoint.pieces.clear();
  for (uint32_t i = 0; i < count; ++i) endpoint.pieces.push_back({pieces[i].data, pieces[i].size});
  param.op_attr_mask = UCP_OP_ATTR_FIELD_DATATYPE;
  param.datatype = ucp_dt_make_iov();
  return start_fetch(endpoint, data, endpoint.pieces.data(), count, param);
}

// UCX is told the kind of memory: it takes what was allocated before it was started for the host's.
bool UcxPort::fetch_to_device(uint32_t number, AmRemote data, MutableBytes place) {
  ucp_request_param_t param{};
  if (context_->knows_cuda()) {
    param.op_attr_mask = UCP_OP_ATTR_FIELD_MEMORY_TYPE;
    param.memory_type = UCS_MEMORY_TYPE_CUDA;
  }
  return start_fetch(*endpoints_[number], data, place.data, place.size, param);
}

bool UcxPort::start_fetch(Endpoint& endpoint, AmRemote data, void* buffer, size_t size,
                          ucp_request_param_t& param) {
  param.op_attr_mask |= UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
  param.cb.recv_am = on_fetched;
  param.user_data = &endpoint;
  ucs_status_ptr_t const request = ucp_am_recv_data_nbx(worker_, data, buffer, size, &param);
  if (request == nullptr) return true;
  if (UCS_PTR_IS_ERR(request)) {
    endpoint.has_failed = endpoint.fetch_failed = true;
    list_news(endpoint);
  } else {
    ++endpoint.under_way;
  }
  return false;
}

void UcxPort::on_fetched(void* request, ucs_status_t status, size_t, void* endpoint) {
  ucp_request_free(request);
  Endpoint& one = *static_cast<Endpoint*>(endpoint);
  one.port->busy_ = true;
  if (--one.under_way == 0 && one.closed) one.port->list_news(one);
  if (status != UCS_OK) {
    one.has_failed = true;
    one.port->list_news(one);
  }
  one.port->receiver_->fetched(one.number, status == UCS_OK);
}

void UcxPort::read(uint32_t number, Bytes key, uint64_t address, MutableBytes buffer, Read* read) {
  Endpoint& endpoint = *endpoints_[number];
  *read = {Read::State::kFailed, &endpoint};
  if (endpoint.has_failed || endpoint.closed) return;
  if (endpoint.remote == nullptr &&
      ucp_ep_rkey_unpack(endpoint.ep, key.data, &endpoint.remote) != UCS_OK) {
    endpoint.remote = nullptr;
    return;
  }
  ucp_request_param_t param{};
  param.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
  param.cb.send = on_read;
  param.user_data = read;
  ucs_status_ptr_t const request =
      ucp_get_nbx(endpoint.ep, buffer.data, buffer.size, address, endpoint.remote, &param);
  if (request == nullptr) {
    read->state = Read::State::kDone;
  } else if (!UCS_PTR_IS_ERR(request)) {
    read->state = Read::State::kUnderWay;
    ++endpoint.under_way;
  }
}

void UcxPort::on_read(void* request, ucs_status_t status, void* read) {
  ucp_request_free(request);
  Read& one = *static_cast<Read*>(read);
  Endpoint& endpoint = *one.endpoint;
  endpoint.port->busy_ = true;
  one.state = status == UCS_OK ? Read::State::kDone : Read::State::kFailed;
  if (--endpoint.under_way == 0 && endpoint.closed) endpoint.port->list_news(endpoint);
}

void UcxPort::drop(uint32_t, AmRemote data) { ucp_am_data_release(worker_, data); }

void UcxPort::close(uint32_t number) {
  Endpoint& endpoint = *endpoints_[number];
  WC_ASSERT(!endpoint.closed);
  endpoint.closed = true;
  by_ep_.erase(endpoint.ep);
  if (last_ == &endpoint) last_ = nullptr;
  ucp_request_param_t param{};
  param.op_attr_mask =
      UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FIELD_FLAGS;
  param.flags = UCP_EP_CLOSE_FLAG_FORCE;
  param.cb.send = on_closed;
  param.user_data = &endpoint;
  ucs_status_ptr_t const request = ucp_ep_close_nbx(endpoint.ep, &param);
  if (UCS_PTR_IS_PTR(request)) ++endpoint.under_way;
  if (endpoint.under_way == 0) list_news(endpoint);
}

void UcxPort::on_closed(void* request, ucs_status_t, void* endpoint) {
  ucp_request_free(request);
  Endpoint& one = *static_cast<Endpoint*>(endpoint);
  if (--one.under_way == 0) one.port->list_news(one);
}

}  // namespace warpcache::io
