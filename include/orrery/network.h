/* SPDX-License-Identifier: Apache-2.0 */
/* network.h - the interface of a network model: it decides when a message is delivered.
 *
 *     static orr_code my_send(void *net, orr_net *n, const orr_message *m, orr_error *err)
 *     {
 *         orr_net_deliver_after(n, 500000 + 10 * (orr_ps)m->size, m->token);   // 500 ns, 100 GB/s
 *         return ORR_OK;
 *     }
 *     static const orr_net_ops mine = {.name = "mine", .help = "half a microsecond", .send = my_send};
 *
 *     orr_run_config config = {..., .own_network = &mine};
 *
 * A model has no clock: it gets the time from the run and schedules through it.  It gets each
 * message once, at the time the message is sent, in the order of time; it must deliver each of them
 * once, at any time from now on.  Messages may overtake each other.  Only send is required. A model
 * must be deterministic, so that the same run gives the same result.
 *
 * One run owns one network: create makes its state, which is passed to every other function.
 * Nothing is called from two threads at a time.  examples/custom_network.c is a complete model. */
#ifndef ORRERY_NETWORK_H
#define ORRERY_NETWORK_H

#include <orrery/error.h>
#include <orrery/types.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct orr_sim orr_net; /* the run, as a model sees it */

typedef struct orr_message {
    uint32_t src, dst; /* ranks, never equal */
    orr_bytes size;    /* never 0 */
    uint64_t token;    /* pass it back on delivery */
} orr_message;

typedef enum orr_net_shape { ORR_NET_RING, ORR_NET_SWITCH, ORR_NET_FULLY_CONNECTED } orr_net_shape;

enum { ORR_NET_DIMS = 16 };

/* The network file, read.  That of ASTRA-sim has one entry per dimension, the innermost first.  A
 * link-level topology (docs/format/topology.md) has logical dimensions only: npus[]
 * is the view of collectives, and shape, bandwidth and latency are ignored. */
typedef struct orr_net_config {
    size_t size; /* sizeof(orr_net_config); create may get a larger one */
    uint32_t dims;
    orr_net_shape shape[ORR_NET_DIMS];
    uint32_t npus[ORR_NET_DIMS];     /* ranks per dimension; their product is the number of ranks */
    double bandwidth[ORR_NET_DIMS];  /* GiB/s per link and direction */
    double latency_ns[ORR_NET_DIMS]; /* per link, as in the file: may be fractional */
    /* Limits of the network "aware" when a run follows another program's rules; 0: none. */
    uint32_t most_dims, least_ring;
    orr_where where; /* the file, for messages */
    /* With one dimension: ranks per host, which the dimension connects; 0: unknown. */
    uint32_t ranks_per_node;
    bool is_open[ORR_NET_DIMS]; /* a ring without the link between its last rank and its first */
} orr_net_config;

/* Traffic of one link, in one direction. */
enum { ORR_NET_LINK_NAME = 96 };
typedef struct orr_net_link {
    char name[ORR_NET_LINK_NAME]; /* "3 -> leaf0" */
    uint64_t messages, bytes;
    /* Time spent transmitting; the last message counts in full.  In ns, as runs may exceed the
     * range of orr_ps. */
    uint64_t busy_ns;
    uint64_t max_queue; /* most messages that waited for it at once */
    double bandwidth;   /* bytes per ns; 0: not known */
} orr_net_link;
typedef void (*orr_net_link_visit)(void *context, const orr_net_link *link);

typedef struct orr_net_ops {
    const char *name; /* value of --network */
    const char *help; /* one line */
    /* NULL: no state.  On failure *out is NULL. */
    orr_code (*create)(const orr_net_config *cfg, void **out, orr_error *err);
    /* The message leaves now.  A failure ends the run. */
    orr_code (*send)(void *net, orr_net *n, const orr_message *m, orr_error *err);
    void (*destroy)(void *net); /* may be NULL */
    /* Visit every link that carried something, always in the same order.  NULL: the model knows no
     * links. */
    void (*report)(const void *net, orr_net_link_visit visit, void *context);
    /* The run is over and all ranks have finished: the model commits its output files.  May be
     * NULL. */
    orr_code (*finish)(void *net, orr_error *err);
} orr_net_ops;

/* What a model may call, from send or a scheduled callback.  The clock counts whole nanoseconds:
 * delays are rounded to the nearest one. */
ORR_API orr_ps orr_net_now(const orr_net *n);
ORR_API void orr_net_after(orr_net *n,
                           orr_ps delay,
                           void (*call)(void *context, uint64_t argument),
                           void *context,
                           uint64_t argument);
ORR_API void orr_net_deliver(orr_net *n, uint64_t token); /* the message arrives now */
ORR_API void orr_net_deliver_after(orr_net *n, orr_ps delay, uint64_t token);
/* The two halves of orr_net_deliver, for models in which the sender learns of the delivery later:
 * each is called once per message, in either order. */
ORR_API void orr_net_deliver_receiver(orr_net *n, uint64_t token);
ORR_API void orr_net_complete_sender(orr_net *n, uint64_t token);
/* An error in a scheduled callback: ends the run. */
ORR_API void orr_net_fail(orr_net *n, const orr_error *err);

/* The models of this library. */
ORR_API const orr_net_ops *orr_net_find(const char *name); /* NULL: none of that name */
ORR_API const orr_net_ops *orr_net_at(size_t index);       /* NULL past the last */

#ifdef __cplusplus
}
#endif
#endif
