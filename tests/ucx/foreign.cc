// SPDX-License-Identifier: Apache-2.0
//
// ucx_foreign HOST PORT TERMS: a client that is built on UCX alone, with the settings of its
// environment. It connects, says hello, and prints `welcome`, or `refused` where it is not let in.
// TERMS: what it states of its settings: `none`; `zero`; those of other `settings`; of another
// `version` of UCX; or `ours`.
#include <netdb.h>
#include <ucp/api/ucp.h>

#include <chrono>
#include <cstdio>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>

#include "base/testing/patience.h"
#include "io/ucx/am_layout.h"
#include "io/ucx/ucx_choice.h"

namespace warpcache {
namespace {

struct Fate {
  bool welcomed = false;
  bool failed = false;
};

ucs_status_t on_message(void* fate, const void* header, size_t size, void*, size_t,
                        const ucp_am_recv_param_t*) {
  io::AmHeader parsed;
  if (size != sizeof parsed) return UCS_OK;
  std::memcpy(&parsed, header, sizeof parsed);
  if (parsed.handler == io::AmHandler::kWelcome) static_cast<Fate*>(fate)->welcomed = true;
  return UCS_OK;
}

void on_failure(void* fate, ucp_ep_h, ucs_status_t) { static_cast<Fate*>(fate)->failed = true; }

std::optional<uint64_t> terms_of(std::string_view name) {
  constexpr uint64_t kOneMoreChange = 1 << 16;
  if (name == "ours") return io::ucx_terms();
  if (name == "settings") return io::ucx_terms() + kOneMoreChange;
  if (name == "version") return io::ucx_terms() + 1;
  if (name == "none" || name == "zero") return 0;
  return std::nullopt;
}

ucp_worker_h make_worker(ucp_context_h context, uint64_t terms, Fate* fate) {
  ucp_worker_params_t params{};
  params.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE | UCP_WORKER_PARAM_FIELD_CLIENT_ID;
  params.thread_mode = UCS_THREAD_MODE_SINGLE;
  params.client_id = terms;
  ucp_worker_h worker = nullptr;
  if (ucp_worker_create(context, &params, &worker) != UCS_OK) return nullptr;
  ucp_am_handler_param_t handler{};
  handler.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_FLAGS |
                       UCP_AM_HANDLER_PARAM_FIELD_CB | UCP_AM_HANDLER_PARAM_FIELD_ARG;
  handler.id = 1;
  handler.flags = UCP_AM_FLAG_WHOLE_MSG;
  handler.cb = on_message;
  handler.arg = fate;
  return ucp_worker_set_am_recv_handler(worker, &handler) == UCS_OK ? worker : nullptr;
}

ucp_ep_h connect(ucp_worker_h worker, const addrinfo& where, bool states, Fate* fate) {
  ucp_ep_params_t params{};
  params.field_mask = UCP_EP_PARAM_FIELD_FLAGS | UCP_EP_PARAM_FIELD_SOCK_ADDR |
                      UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE | UCP_EP_PARAM_FIELD_ERR_HANDLER;
  params.flags = UCP_EP_PARAMS_FLAGS_CLIENT_SERVER;
  if (states) params.flags |= UCP_EP_PARAMS_FLAGS_SEND_CLIENT_ID;
  params.sockaddr.addr = where.ai_addr;
  params.sockaddr.addrlen = where.ai_addrlen;
  params.err_mode = UCP_ERR_HANDLING_MODE_PEER;
  params.err_handler.cb = on_failure;
  params.err_handler.arg = fate;
  ucp_ep_h endpoint = nullptr;
  return ucp_ep_create(worker, &params, &endpoint) == UCS_OK ? endpoint : nullptr;
}

// Returns whether it was sent, or will be.
bool say_hello(ucp_ep_h endpoint) {
  static const io::AmHeader kHello = {.handler = io::AmHandler::kHello};
  ucp_request_param_t param{};
  param.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
  param.flags = UCP_AM_SEND_FLAG_REPLY | UCP_AM_SEND_FLAG_EAGER;
  ucs_status_ptr_t const request =
      ucp_am_send_nbx(endpoint, 1, &kHello, sizeof kHello, nullptr, 0, &param);
  if (UCS_PTR_IS_PTR(request)) ucp_request_free(request);
  return !UCS_PTR_IS_ERR(request);
}

void close(ucp_worker_h worker, ucp_ep_h endpoint) {
  ucp_request_param_t param{};
  param.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
  param.flags = UCP_EP_CLOSE_FLAG_FORCE;
  ucs_status_ptr_t const request = ucp_ep_close_nbx(endpoint, &param);
  if (!UCS_PTR_IS_PTR(request)) return;
  while (ucp_request_check_status(request) == UCS_INPROGRESS) (void)ucp_worker_progress(worker);
  ucp_request_free(request);
}

int run(int argc, char** argv) {
  if (argc != 4) return 64;
  const auto terms = terms_of(argv[3]);
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* where = nullptr;
  if (!terms || getaddrinfo(argv[1], argv[2], &hints, &where) != 0) return 64;
  ucp_config_t* config = nullptr;
  if (ucp_config_read(nullptr, nullptr, &config) != UCS_OK) return 1;
  // Its settings are its own, unless it states ours.
  const std::string refused =
      *terms == io::ucx_terms() ? io::choose_ucx_settings(config, "") : std::string();
  if (!refused.empty()) {
    std::fprintf(stderr, "%s\n", refused.c_str());
    return 1;
  }
  ucp_params_t params{};
  params.field_mask = UCP_PARAM_FIELD_FEATURES;
  params.features = UCP_FEATURE_AM | UCP_FEATURE_WAKEUP;
  ucp_context_h context = nullptr;
  const ucs_status_t status = ucp_init(&params, config, &context);
  ucp_config_release(config);
  if (status != UCS_OK) return 1;
  Fate fate;
  ucp_worker_h const worker = make_worker(context, *terms, &fate);
  if (worker == nullptr) return 1;
  ucp_ep_h const endpoint = connect(worker, *where, std::string_view(argv[3]) != "none", &fate);
  freeaddrinfo(where);
  if (endpoint == nullptr) return 1;
  if (!say_hello(endpoint)) fate.failed = true;
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  while (!fate.welcomed && !fate.failed && std::chrono::steady_clock::now() < deadline) {
    (void)ucp_worker_progress(worker);
  }
  std::printf("%s\n", fate.welcomed ? "welcome" : fate.failed ? "refused" : "nothing came");
  close(worker, endpoint);
  ucp_worker_destroy(worker);
  ucp_cleanup(context);
  return 0;
}

}  // namespace
}  // namespace warpcache

int main(int argc, char** argv) { return warpcache::run(argc, argv); }
