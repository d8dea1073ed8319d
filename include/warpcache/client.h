/* SPDX-License-Identifier: Apache-2.0
 *
 * A client of warpcache and memcached servers, in C: active messages by UCX where both sides have
 * them, TCP else. The calls have libmemcached's shape. Link with -lwarpcache_client
 * (pkg-config: warpcache-client).
 *
 * A client is used by one thread at a time; several clients may be used at once. No function throws
 * or ends the process. Keys have 1 to 250 bytes without blanks and control characters. Sizes are in
 * bytes, times in milliseconds where the name says _ms, else in seconds. `expiry` is memcached's: 0
 * never, up to 30 days relative, above that a Unix time. */
#ifndef WARPCACHE_CLIENT_H_
#define WARPCACHE_CLIENT_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define WARPCACHE_API __attribute__((visibility("default")))
#else
#define WARPCACHE_API
#endif

typedef enum {
  WARPCACHE_OK = 0,
  WARPCACHE_NOT_FOUND = 1,
  WARPCACHE_NOT_STORED = 2,   /* add, replace, append, prepend: the condition does not hold */
  WARPCACHE_EXISTS = 3,       /* cas: the item has changed */
  WARPCACHE_BAD_ARGUMENT = 4, /* a key, a server or a size; nothing was sent */
  WARPCACHE_NO_SERVER = 5,    /* cannot be reached, or the connection has broken */
  WARPCACHE_TIMEOUT = 6, /* no answer in time. The connection is closed: whether the request took
                            effect is not known */
  WARPCACHE_SERVER_ERROR = 7, /* the server's own words: warpcache_last_error() */
  WARPCACHE_NO_SPACE = 8,     /* get: the value is larger than the buffer; `size` says how large */
  WARPCACHE_NO_MEMORY = 9
} warpcache_status;

typedef struct warpcache_client warpcache_client;

/* NULL: no memory. The caller frees it. */
WARPCACHE_API warpcache_client* warpcache_create(void);
WARPCACHE_API void warpcache_free(warpcache_client* client);

/* Adds a server. `ucx_port`: that of --ucx, or 0. If the server does not answer there the client
 * uses `tcp_port`, unless that is 0. Keys are distributed by ketama (libmemcached's weighted form,
 * equal weights) over names HOST:TCP_PORT. Connects with the first request. */
WARPCACHE_API warpcache_status warpcache_add_server(warpcache_client* client, const char* host,
                                                    uint16_t tcp_port, uint16_t ucx_port);

/* For each call: 1000 ms unless set. Connecting has the same time. */
WARPCACHE_API void warpcache_set_timeout_ms(warpcache_client* client, uint32_t timeout_ms);

/* What the last failed call met, as text that is valid until the next call. */
WARPCACHE_API const char* warpcache_last_error(const warpcache_client* client);
WARPCACHE_API const char* warpcache_status_text(warpcache_status status);

/* How the key's server is reached: "ucx", "tcp", or "" when it is not. Connects. */
WARPCACHE_API const char* warpcache_transport(warpcache_client* client, const char* key,
                                              size_t key_size);

/* An experiment, off by default, before the first request: with a server that has
 * --ucx-one-sided, small values are read from its memory where it has a copy there, without asking
 * it. A value that warpcache_get() returns so was the key's during the call (docs/ucx.md). */
WARPCACHE_API warpcache_status warpcache_use_one_sided(warpcache_client* client, int on);
/* How many values were read so. */
WARPCACHE_API uint64_t warpcache_one_sided_reads(const warpcache_client* client);

/* The value goes into `buffer`; large ones by UCX straight from the server's memory. `size` is set
 * on OK and NO_SPACE. `flags` and `cas` may be NULL; without `cas` the server is not asked for it.
 */
WARPCACHE_API warpcache_status warpcache_get(warpcache_client* client, const char* key,
                                             size_t key_size, void* buffer, size_t capacity,
                                             size_t* size, uint32_t* flags, uint64_t* cas);

/* Called for each key that was found, in any order; `value` is valid until it returns. */
typedef void (*warpcache_found)(void* context, const char* key, size_t key_size, const void* value,
                                size_t value_size, uint32_t flags, uint64_t cas);
/* Asks all servers at once. OK: each server has answered; keys that were not found are left out. */
WARPCACHE_API warpcache_status warpcache_mget(warpcache_client* client, const char* const* keys,
                                              const size_t* key_sizes, size_t count,
                                              warpcache_found found, void* context);

/* The value stays the caller's; a large one by UCX is fetched by the server from where it lies,
 * which is over when the call returns. */
WARPCACHE_API warpcache_status warpcache_set(warpcache_client* client, const char* key,
                                             size_t key_size, const void* value, size_t value_size,
                                             uint32_t expiry, uint32_t flags);
WARPCACHE_API warpcache_status warpcache_add(warpcache_client* client, const char* key,
                                             size_t key_size, const void* value, size_t value_size,
                                             uint32_t expiry, uint32_t flags);
WARPCACHE_API warpcache_status warpcache_replace(warpcache_client* client, const char* key,
                                                 size_t key_size, const void* value,
                                                 size_t value_size, uint32_t expiry,
                                                 uint32_t flags);
WARPCACHE_API warpcache_status warpcache_append(warpcache_client* client, const char* key,
                                                size_t key_size, const void* value,
                                                size_t value_size);
WARPCACHE_API warpcache_status warpcache_prepend(warpcache_client* client, const char* key,
                                                 size_t key_size, const void* value,
                                                 size_t value_size);
/* Stores if the item's id is still `cas`, as warpcache_get() gave it. */
WARPCACHE_API warpcache_status warpcache_cas(warpcache_client* client, const char* key,
                                             size_t key_size, const void* value, size_t value_size,
                                             uint32_t expiry, uint32_t flags, uint64_t cas);

/* The new number goes into `number`, which may be NULL. */
WARPCACHE_API warpcache_status warpcache_incr(warpcache_client* client, const char* key,
                                              size_t key_size, uint64_t delta, uint64_t* number);
WARPCACHE_API warpcache_status warpcache_decr(warpcache_client* client, const char* key,
                                              size_t key_size, uint64_t delta, uint64_t* number);
WARPCACHE_API warpcache_status warpcache_delete(warpcache_client* client, const char* key,
                                                size_t key_size);
WARPCACHE_API warpcache_status warpcache_touch(warpcache_client* client, const char* key,
                                               size_t key_size, uint32_t expiry);

#ifdef __cplusplus
}
#endif

#endif /* WARPCACHE_CLIENT_H_ */
