// SPDX-License-Identifier: Apache-2.0
//
// Requests of clients that have not logged in, and logins by SASL.
#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "admin/admin.h"
#include "admin/reply_sink.h"
#include "protocol/binary.h"
#include "protocol/compose/admin_reply.h"

namespace warpcache::admin {
namespace {

// memcached's bound for the name of a mechanism.
constexpr uint32_t kMechanismSizeMax = 32;

// Whether the header's lengths contradict each other, rather than that its opcode is not known.
bool is_contradictory(const protocol::Request& request) {
  const protocol::BinaryForm form = protocol::binary_form(request.binary_opcode);
  return request.op == protocol::Op::kInvalid && request.status == Status::kUnknownCommand &&
         form != protocol::BinaryForm::kUnknown && form != protocol::BinaryForm::kSasl;
}

// Of a message of PLAIN: authorization NUL name NUL password. With --access there is no other
// mechanism.
std::string_view user_of_plain(std::string_view data) {
  data.remove_prefix(std::min(data.find('\0') + 1, data.size()));
  return data.substr(0, data.find('\0'));
}

bool is_sasl(uint8_t opcode) {
  return opcode == protocol::kOpSaslListMechanisms || opcode == protocol::kOpSaslAuth ||
         opcode == protocol::kOpSaslStep;
}

// Closes after a few.
void count_failed_login(engine::BatchEntry& entry) {
  ++entry.failed_logins;
  entry.close = entry.refused = entry.failed_logins >= AuthFile::kFailedLoginsMax;
}

}  // namespace

// False: there are too many users.
bool Admin::let_in(std::string_view user, engine::BatchEntry& entry) {
  if (logins_.access != nullptr) entry.user = logins_.access->number_of(user);
  return entry.authenticated = logins_.access == nullptr || entry.user != 0;
}

void Admin::authenticate(const protocol::Request& request, const uint8_t* input,
                         engine::BatchEntry& entry, std::string& reply) {
  if (logins_.sasl != nullptr) return log_in_by_sasl(request, input, entry, reply);
  log_in_by_token(request, input, entry, reply);
}

// -Y: the first command must be a `set` of any key, whose value is a name and a password.
void Admin::log_in_by_token(const protocol::Request& request, const uint8_t* input,
                            engine::BatchEntry& entry, std::string& reply) {
  const ReplySink sink(reply);
  if (request.op == protocol::Op::kQuit) return;
  // This is called for every key of a multiget; only one of them is answered.
  if (request.op == protocol::Op::kGet && request.protocol == protocol::Protocol::kText &&
      (request.bits & protocol::kLastKey) == 0) {
    return;
  }
  protocol::Request said = request;
  said.bits &= ~static_cast<uint32_t>(protocol::kNoReply | protocol::kQuiet);
  const bool is_login = request.op == protocol::Op::kSet &&
                        request.protocol == protocol::Protocol::kText &&
                        (request.bits & protocol::kCasCompare) == 0;
  if (!is_login) return protocol::reply_error(said, Status::kUnauthenticated, sink);
  if (request.status == Status::kBadDataChunk) {
    return protocol::reply_line(said, bytes_of("CLIENT_ERROR bad command line termination"), sink);
  }
  if (request.status != Status::kOk) return protocol::reply_error(said, request.status, sink);
  state_.auth_commands.fetch_add(1, std::memory_order_relaxed);
  const std::string_view token = words_of(request, input);
  const AuthResult result = logins_.tokens->check(token, entry.source);
  if (result == AuthResult::kAccepted && let_in(token.substr(0, token.find(' ')), entry)) {
    reply += "STORED\r\n";
    return;
  }
  state_.auth_errors.fetch_add(1, std::memory_order_relaxed);
  count_failed_login(entry);
  protocol::reply_line(
      said,
      bytes_of(result == AuthResult::kRefused ? "CLIENT_ERROR authentication failure"
                                              : "CLIENT_ERROR bad authentication token format"),
      sink);
}

// -S: before the login only the SASL commands and `version` are answered. Another one closes the
// connection, as in memcached.
void Admin::log_in_by_sasl(const protocol::Request& request, const uint8_t* input,
                           engine::BatchEntry& entry, std::string& reply) {
  const ReplySink sink(reply);
  if (request.op == protocol::Op::kSasl) return run_sasl(request, input, entry, reply);
  if (request.op == protocol::Op::kVersion) {
    protocol::Result result = {};
    result.outcome = protocol::Outcome::kVersion;
    return protocol::reply_result(request, result, input, sink);
  }
  protocol::Request said = request;
  said.bits &= ~static_cast<uint32_t>(protocol::kQuiet);
  const bool is_login = is_sasl(request.binary_opcode);
  if (is_login && request.status == Status::kUnknownCommand) {  // too long
    state_.auth_commands.fetch_add(1, std::memory_order_relaxed);
    state_.auth_errors.fetch_add(1, std::memory_order_relaxed);
    count_failed_login(entry);
    return protocol::reply_error(said, Status::kUnauthenticated, sink);
  }
  entry.close = entry.refused = true;
  const bool is_malformed = is_login || is_contradictory(request);
  protocol::reply_error(said, is_malformed ? request.status : Status::kUnauthenticated, sink);
}

// Each of these commands logs the client out first, as in memcached.
void Admin::run_sasl(const protocol::Request& request, const uint8_t* input,
                     engine::BatchEntry& entry, std::string& reply) {
  const ReplySink sink(reply);
  const bool is_list = request.binary_opcode == protocol::kOpSaslListMechanisms;
  const std::string_view mechanism(reinterpret_cast<const char*>(input) + request.key_offset,
                                   request.key_size);
  if (!is_list && mechanism.size() > kMechanismSizeMax) {
    return protocol::reply_error(request, Status::kInvalidArguments, sink);
  }
  const bool was_in = std::exchange(entry.authenticated, false);
  if (is_list) return protocol::reply_line(request, bytes_of(logins_.sasl->mechanisms()), sink);
  std::string challenge;
  const std::string_view data = words_of(request, input);
  Sasl::Verdict verdict = Sasl::Verdict::kRefused;
  const Sasl::Client client = {entry.connection_id, entry.source};
  if (request.binary_opcode == protocol::kOpSaslStep) {
    verdict = logins_.sasl->step(client, data, &challenge);
  } else if (!was_in) {
    verdict = logins_.sasl->start(client, mechanism, data, &challenge);
  }
  if (verdict == Sasl::Verdict::kContinue) {
    return protocol::reply_challenge(request, bytes_of(challenge), sink);
  }
  state_.auth_commands.fetch_add(1, std::memory_order_relaxed);
  if (verdict == Sasl::Verdict::kAccepted && let_in(user_of_plain(data), entry)) {
    return protocol::reply_line(request, bytes_of("Authenticated"), sink);
  }
  state_.auth_errors.fetch_add(1, std::memory_order_relaxed);
  count_failed_login(entry);
  protocol::reply_error(request, Status::kUnauthenticated, sink);
}

}  // namespace warpcache::admin
