// SPDX-License-Identifier: Apache-2.0
#ifndef WARPCACHE_BENCH_LOAD_BYTE_STREAM_H_
#define WARPCACHE_BENCH_LOAD_BYTE_STREAM_H_

#include <cstddef>
#include <string>
#include <string_view>

namespace warpcache::load {

// The bytes of a connection both ways. No function waits. One that returns false has written to
// `why`, and the connection is of no use any more.
class ByteStream {
 public:
  virtual ~ByteStream() = default;
  // `taken`: how many of the bytes will be sent.
  [[nodiscard]] virtual bool send(std::string_view bytes, size_t* taken, std::string* why) = 0;
  // `got`: how many bytes were written to `out`; 0: none has come.
  [[nodiscard]] virtual bool receive(char* out, size_t space, size_t* got, std::string* why) = 0;
};

// TCP or a Unix socket, which belongs to somebody else.
class SocketStream final : public ByteStream {
 public:
  explicit SocketStream(int socket) : socket_(socket) {}
  [[nodiscard]] bool send(std::string_view bytes, size_t* taken, std::string* why) override;
  [[nodiscard]] bool receive(char* out, size_t space, size_t* got, std::string* why) override;

 private:
  const int socket_;
};

}  // namespace warpcache::load

#endif  // WARPCACHE_BENCH_LOAD_BYTE_STREAM_H_
