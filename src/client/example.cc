// SPDX-License-Identifier: Apache-2.0
//
// client_example_cpp HOST TCP-PORT UCX-PORT: what example.c does, in C++. UCX-PORT 0: sockets only.
#include <cstdio>
#include <cstdlib>

#include "warpcache/client.hpp"

int main(int argc, char** argv) {
  if (argc != 4) return 64;
  try {
    warpcache::Client client;
    client.set_timeout_ms(60'000);  // of each call; without it a second
    client.add_server(argv[1], static_cast<uint16_t>(std::atoi(argv[2])),
                      static_cast<uint16_t>(std::atoi(argv[3])));
    client.set("greeting", "hello", 0, 7);
    const std::string large(100'000, 'x');
    client.set("large", large);
    client.set("count", "41");
    const bool all = client.get("greeting") == "hello" && client.get("large") == large &&
                     client.incr("count") == 42 && client.remove("large") &&
                     !client.remove("large") && !client.get("large") && !client.incr("large");
    std::printf("%s, by %s\n", all ? "as stored" : "not as stored",
                warpcache_transport(client.c_client(), "greeting", 8));
    return all ? 0 : 1;
  } catch (const warpcache::ClientError& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
