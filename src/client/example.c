/* SPDX-License-Identifier: Apache-2.0
 *
 * client_example HOST TCP-PORT UCX-PORT: stores, reads and counts. UCX-PORT 0: sockets only. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "warpcache/client.h"

static int check(warpcache_client* client, const char* what, warpcache_status status) {
  if (status == WARPCACHE_OK) return 0;
  fprintf(stderr, "%s: %s (%s)\n", what, warpcache_status_text(status),
          warpcache_last_error(client));
  return 1;
}

int main(int argc, char** argv) {
  if (argc != 4) return 64;
  warpcache_client* client = warpcache_create();
  if (client == NULL) return 1;
  warpcache_set_timeout_ms(client, 60000); /* of each call; without it a second */
  const uint16_t tcp_port = (uint16_t)atoi(argv[2]);
  const uint16_t ucx_port = (uint16_t)atoi(argv[3]);
  int failed = check(client, "server", warpcache_add_server(client, argv[1], tcp_port, ucx_port));
  failed |= check(client, "set", warpcache_set(client, "greeting", 8, "hello", 5, 0, 7));
  char value[64];
  size_t size = 0;
  uint32_t flags = 0;
  failed |= check(client, "get",
                  warpcache_get(client, "greeting", 8, value, sizeof value, &size, &flags, NULL));
  failed |= check(client, "set", warpcache_set(client, "count", 5, "41", 2, 0, 0));
  uint64_t number = 0;
  failed |= check(client, "incr", warpcache_incr(client, "count", 5, 1, &number));
  if (!failed) {
    printf("%.*s flags %u, count %lu, by %s\n", (int)size, value, flags, (unsigned long)number,
           warpcache_transport(client, "greeting", 8));
  }
  warpcache_free(client);
  return failed;
}
