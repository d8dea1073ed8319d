/* SPDX-License-Identifier: Apache-2.0
 *
 * Event-driven execution on a GPU (EDGE). An event kernel is registered once. After that a doorbell
 * starts it: a process, a device or another kernel writes an entry of the event's submission queue,
 * and a scheduler that stays on the GPU runs the kernel and writes the completion queue. No launch
 * by the CPU is on the way. docs/edge.md has the layout of the queues byte by byte, and an example.
 *
 * Functions may be called by several threads at once, except edge_open() and edge_close(), and
 * edge_poll() of one event. No function throws or ends the process. Times are in the unit that the
 * name says. Who gets a handle frees it. */
#ifndef WARPCACHE_EDGE_H_
#define WARPCACHE_EDGE_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define EDGE_EVENTS_MAX 32
#define EDGE_PARAMETER_BYTES_MAX 496
#define EDGE_DEPTH_MAX 4096
#define EDGE_BARRIERS_MAX 16

typedef enum {
  EDGE_OK = 0,
  EDGE_FULL = 1,         /* all entries of the queue are in use; nothing was submitted */
  EDGE_CLOSED = 2,       /* the event is not registered, or is being unregistered */
  EDGE_NOT_DONE = 3,     /* no event has completed */
  EDGE_BAD_ARGUMENT = 4, /* nothing was changed */
  EDGE_NO_SPACE = 5,     /* memory, a free event, or room for the blocks on the GPU */
  EDGE_NO_DEVICE = 6,    /* edge_why() says what is missing */
  EDGE_TIMEOUT = 7,      /* the GPU did not answer within edge_config.wait_ms_max */
  EDGE_FAULT = 8         /* the GPU has failed: no event runs until the queues are opened anew */
} edge_status;

/* Codes of events that did not end by themselves. Event kernels return 0, or an own code below. */
#define EDGE_CODE_FAULT 0xfffffff0u     /* taken by a GPU that failed; it may have run in part */
#define EDGE_CODE_CANCELLED 0xfffffff1u /* not run: the queues were closed */
#define EDGE_CODE_MAX 0xffffffefu       /* of an event kernel */

/* How blocks that wait for work get to know of it (the wait-release barrier). */
typedef enum {
  EDGE_WAIT_TARGETED = 0, /* each waits for a word of its own; one block is released for each block
                             of work */
  EDGE_WAIT_RELEASE_ALL = 1, /* all wait for one word, and look at the queue when it changes */
  EDGE_WAIT_POLL = 2         /* no barrier: all look at the queue all the time */
} edge_wait;

typedef enum {
  EDGE_PERSISTENT = 0, /* blocks that stay on the GPU run the event kernels */
  EDGE_GRAPH_LAUNCH =
      1, /* the scheduler launches a kernel for each event, by device graph launch */
} edge_form;

typedef enum {
  EDGE_PRIORITY_NORMAL = 0,
  EDGE_PRIORITY_1 = 1, /* starts before normal events that wait; then those go on beside it */
  EDGE_PRIORITY_2 = 2  /* and no other event starts before it has ended */
} edge_priority;

/* Flags of an event. */
#define EDGE_MODIFIABLE 1u   /* an entry may say how many blocks its event has */
#define EDGE_IN_ORDER 2u     /* completions appear in the order of submission */
#define EDGE_SELF_FREEING 4u /* entries are free again as soon as their event has ended */
#define EDGE_DEVICE_QUEUE 8u /* kernels submit: the queue is in device memory, and self-freeing */
#define EDGE_PARAMETERS_ONLY                                                \
  16u /* of what submitters write, the kernel reads only its parameters: no \
         fence orders other data */

typedef struct edge_program edge_program; /* event kernels that were compiled together */
typedef struct edge_runtime edge_runtime;
typedef struct edge_queues edge_queues;

typedef struct {
  const edge_program* program;
  const char* path; /* file of the queues, for other processes (in /dev/shm); NULL: only this one */
  int device;       /* number of the GPU */
  edge_form form;
  uint32_t workers; /* persistent blocks besides the scheduler's; 0: one a multiprocessor */
  uint32_t reserved_workers; /* of these, only for events with a priority */
  uint32_t threads;          /* of a persistent block: a multiple of 32, at most 256 */
  uint32_t shared_bytes;     /* dynamic shared memory of a persistent block; as much as a
                                multiprocessor has keeps other kernels off it */
  uint32_t depth_max;        /* of queues; 0: 1024 */
  edge_wait wait;
  uint32_t release_count;   /* RELEASE_ALL: a release for this number of blocks of work; 0: 1 ... */
  uint32_t release_us_max;  /* ... or when the oldest has waited so long; 0: 10 */
  uint32_t wait_ms_max;     /* for the GPU, by calls that wait; 0: 5000 */
  uint32_t multiprocessors; /* of the scheduler and the workers alone, a green context; 0: they
                               share all */
  uint32_t lifetime_ms;     /* the scheduler ends by itself after this time; 0: never */
} edge_config;

typedef struct {
  uint32_t function;        /* number of the event kernel in its program */
  uint32_t blocks;          /* 1 to 65535 */
  uint32_t threads;         /* graph launch: of a block. Persistent blocks have their own number */
  uint32_t shared_bytes;    /* graph launch: likewise */
  uint32_t parameter_bytes; /* of each event, a multiple of 4 */
  uint32_t depth;           /* events in flight at most: a power of two */
  edge_priority priority;
  uint32_t flags;
  uint32_t period_us;     /* a timer: the GPU submits an event by itself once in this time; 0: no */
  uint32_t notify_count;  /* edge_notified() moves once for this number of completions; 0: 1 ... */
  uint32_t notify_us_max; /* ... or when the oldest has waited so long; 0: 10 */
  const void* timer_parameters; /* of a timer's events: parameter_bytes; word 0 becomes the tick */
} edge_event;

/* Counts since the start of the scheduler. */
typedef struct {
  uint64_t queue_polls;   /* loads of the work queue by waiting blocks */
  uint64_t barrier_polls; /* loads of a barrier's word by waiting blocks */
  uint64_t releases;      /* of blocks, by the scheduler */
  uint64_t bell_polls;    /* loads of submission queues by the scheduler, a warp each */
  uint64_t events;        /* completed */
  uint64_t blocks;        /* completed */
  uint64_t busy_launches; /* graph launch: a graph was still ending, and was launched again later */
} edge_counts;

/* --- The GPU's side */

/* Opens queues, and starts the scheduler. If that fails the runtime only says why, and is to be
 * closed all the same. With a `path` that exists the queues in it are continued: events that
 * another process's GPU had taken and not completed get EDGE_CODE_FAULT. */
edge_status edge_open(const edge_config* config, edge_runtime** runtime);
/* Ends the scheduler. Events that run end first; those that wait get EDGE_CODE_CANCELLED. */
edge_status edge_close(edge_runtime* runtime);

/* edgeRegisterEvent. `id` is the event's number, for submitters. */
edge_status edge_register_event(edge_runtime* runtime, const edge_event* event, uint32_t* id);
/* edgeUnregisterEvent: refuses new events, waits for those in flight, and frees the number.
 * EDGE_TIMEOUT: some are still in flight; call it again. */
edge_status edge_unregister_event(edge_runtime* runtime, uint32_t id);
/* Blocks of events that are submitted later; those in flight keep theirs. */
edge_status edge_modify_event(edge_runtime* runtime, uint32_t id, uint32_t blocks);

/* Ends the scheduler after the events that run, and starts it again. Events that wait stay. */
edge_status edge_pause(edge_runtime* runtime);
edge_status edge_resume(edge_runtime* runtime);

/* edgeReleaseBarrier: all blocks that wait at a barrier (device code: edge/device/barrier.cuh) go
 * on, and the next that comes does not wait. */
edge_status edge_release_barrier(edge_runtime* runtime, uint32_t barrier);

/* With edge_config.multiprocessors: a cudaStream_t whose kernels run on all others. The runtime
 * owns it. NULL without. */
void* edge_rest_stream(edge_runtime* runtime);
/* The queues of a runtime. The runtime owns them. */
edge_queues* edge_queues_of(edge_runtime* runtime);
/* EDGE_OK, or EDGE_FAULT and edge_why(). To be called now and then by who waits. */
edge_status edge_check(edge_runtime* runtime);
edge_status edge_read_counts(edge_runtime* runtime, edge_counts* counts);
/* What went wrong in the last call, or with the GPU; valid until the next call. */
const char* edge_why(const edge_runtime* runtime);
const char* edge_status_text(edge_status status);

/* --- The submitters' side: any process; needs no GPU */

/* Maps the queues of another process. */
edge_status edge_attach(const char* path, edge_queues** queues);
void edge_detach(edge_queues* queues);

/* edgeScheduleEvent: submits an event and rings its doorbell. `blocks`: of a modifiable event, else
 * 0. `number` (or NULL): for edge_take(). Never waits. */
edge_status edge_schedule(edge_queues* queues, uint32_t id, const void* parameters,
                          uint32_t parameter_bytes, uint32_t blocks, uint32_t* number);
/* The oldest event, if it has completed: its number and code; frees its entry. */
edge_status edge_poll(edge_queues* queues, uint32_t id, uint32_t* number, uint32_t* code);
/* A given event, if it has completed; frees its entry. Not together with edge_poll(). */
edge_status edge_take(edge_queues* queues, uint32_t id, uint32_t number, uint32_t* code);
/* Completions that the GPU has announced, modulo 2^32: see edge_event.notify_count. */
uint32_t edge_notified(const edge_queues* queues, uint32_t id);

#ifdef __cplusplus
}
#endif

#endif /* WARPCACHE_EDGE_H_ */
