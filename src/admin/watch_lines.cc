// SPDX-License-Identifier: Apache-2.0
#include "admin/watch_lines.h"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <array>
#include <iterator>

#include "admin/encoded_key.h"

namespace warpcache::admin {
namespace {

constexpr std::array<std::string_view, 4> kFound = {"not_found", "found", "flushed", "expired"};
constexpr std::array<std::string_view, 6> kStored = {"not_stored", "stored",    "exists",
                                                     "not_found",  "too_large", "no_memory"};
constexpr std::array<std::string_view, 6> kCommands = {"add",    "set",     "replace",
                                                       "append", "prepend", "cas"};

void append_peer(const WatchRecord& record, std::string& out) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  const engine::PeerAddress& peer = record.peer;
  std::string_view transport = "tcp";
  switch (peer.kind) {
    case engine::PeerAddress::Kind::kIpv4:
      (void)inet_ntop(AF_INET, peer.bytes, text.data(), text.size());
      break;
    case engine::PeerAddress::Kind::kIpv6:
      (void)inet_ntop(AF_INET6, peer.bytes, text.data(), text.size());
      break;
    case engine::PeerAddress::Kind::kUnix:
      transport = "local";
      std::string_view("unix").copy(text.data(), 4);
      break;
    case engine::PeerAddress::Kind::kUnknown:
      break;
  }
  fmt::format_to(std::back_inserter(out), "rip={} rport={} transport={}", text.data(), peer.port,
                 transport);
}

// Class 1 has all items; class 0 stands for none.
int item_class(const WatchRecord& record) {
  return record.found == engine::KeyState::kNotFound ? 0 : 1;
}

}  // namespace

void append_watch_line(const WatchRecord& record, std::string_view text, std::string& out) {
  const auto add = [&out](fmt::string_view form, const auto&... values) {
    fmt::vformat_to(std::back_inserter(out), form, fmt::make_format_args(values...));
  };
  // memcached does not pad the microseconds.
  add("ts={}.{} gid={} ", record.seconds, record.microseconds, record.number);
  switch (record.line) {
    case WatchRecord::Line::kGet: {
      out += "type=item_get key=";
      append_encoded_key(text, out);
      const int in_class = item_class(record);
      add(" status={} clsid={} cfd={} size={}", kFound[static_cast<size_t>(record.found)], in_class,
          record.fd, record.value_size);
      break;
    }
    case WatchRecord::Line::kStore:
      out += "type=item_store key=";
      append_encoded_key(text, out);
      add(" status={} cmd={} ttl={} clsid=1 cfd={} size={}",
          kStored[static_cast<size_t>(record.stored)],
          kCommands[static_cast<size_t>(record.command)], record.ttl, record.fd, record.value_size);
      break;
    case WatchRecord::Line::kDelete: {
      out += "type=deleted key=";
      append_encoded_key(text, out);
      const std::string_view command = record.meta ? "md" : "delete";
      add(" cmd={} clsid=1 size={}", command, record.value_size);
      break;
    }
    case WatchRecord::Line::kEviction: {
      out += "type=eviction key=";
      append_encoded_key(text, out);
      const std::string_view fetched = record.fetched ? "yes" : "no";
      const int64_t ttl = record.ttl == UINT32_MAX ? -1 : int64_t{record.ttl};
      add(" fetch={} ttl={} la={} clsid=1 size={}", fetched, ttl, record.idle_s, record.value_size);
      break;
    }
    case WatchRecord::Line::kOpened:
      out += "type=conn_new ";
      append_peer(record, out);
      add(" cfd={}", record.fd);
      break;
    case WatchRecord::Line::kTlsError:
      add("type=conntlserr fd={} msg={}", record.fd, text);
      break;
    case WatchRecord::Line::kClosed:
      out += "type=conn_close ";
      append_peer(record, out);
      add(" reason={} cfd={}", text, record.fd);
      break;
    case WatchRecord::Line::kCommand:
      out += text;
      break;
  }
  out += '\n';
}

}  // namespace warpcache::admin
