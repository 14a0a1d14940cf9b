/* SPDX-License-Identifier: Apache-2.0 */
/* network.h - what a network model is: it turns a message into its delivery.
 *
 *     static orr_code my_send(void *net, orr_sim *sim, const orr_message *m, orr_error *err)
 *     {
 *         orr_sim_deliver_after(sim, 500 + m->size / 100, m->token);      // 500 ns and 100 bytes per ns
 *         return ORR_OK;
 *     }
 *     static const orr_net_ops mine = {.name = "mine", .help = "half a microsecond", .send = my_send};
 *
 * A model has no clock of its own: it asks the simulation for the time and schedules through it.  Required:
 * send.  Time is in nanoseconds (ticks). */
#ifndef ORRERY_NETWORK_H
#define ORRERY_NETWORK_H

#include <orrery/error.h>
#include <orrery/types.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct orr_sim orr_sim;

typedef struct orr_message {
    uint32_t src, dst; /* ranks, never equal */
    orr_bytes size;    /* never 0 */
    uint64_t token;    /* give it back on delivery */
} orr_message;

typedef enum orr_net_shape { ORR_NET_RING, ORR_NET_SWITCH, ORR_NET_FULLY_CONNECTED } orr_net_shape;

enum { ORR_NET_DIMS = 16 };

/* The network file of ASTRA-sim: one entry a dimension, the innermost first. */
typedef struct orr_net_config {
    uint32_t dims;
    orr_net_shape shape[ORR_NET_DIMS];
    uint32_t npus[ORR_NET_DIMS];
    double bandwidth[ORR_NET_DIMS];  /* GB/s a link and direction; here 1 GB is 2^30 bytes */
    double latency_ns[ORR_NET_DIMS]; /* a link */
    bool is_compat;                  /* refuse what the reference refuses */
    orr_where where;                 /* the file, for messages */
} orr_net_config;

typedef struct orr_net_ops {
    const char *name; /* what the user types after --network */
    const char *help; /* one line */
    orr_code (*create)(const orr_net_config *cfg, void **out, orr_error *err); /* NULL: no state */
    orr_code (*send)(void *net, orr_sim *sim, const orr_message *m, orr_error *err);
    void (*destroy)(void *net); /* may be NULL */
} orr_net_ops;

/* What a model may ask of the simulation, inside send or a scheduled call. */
ORR_API uint64_t orr_sim_now(const orr_sim *s);
ORR_API void orr_sim_after(orr_sim *s,
                           uint64_t delay,
                           void (*call)(void *context, uint64_t argument),
                           void *context,
                           uint64_t argument);
ORR_API void orr_sim_deliver(orr_sim *s, uint64_t token); /* the message is there, now */
ORR_API void orr_sim_deliver_after(orr_sim *s, uint64_t delay, uint64_t token);

/* The models of this library. */
ORR_API const orr_net_ops *orr_net_find(const char *name); /* NULL: none of that name */
ORR_API const orr_net_ops *orr_net_at(size_t index);       /* NULL past the last */

#ifdef __cplusplus
}
#endif
#endif
