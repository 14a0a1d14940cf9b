/* SPDX-License-Identifier: Apache-2.0 */
/* run_observer.h - observers of a run.
 *
 * The layers of a run report what happens; statistics and timelines (watch.c), the tape of messages
 * (goal_tape.c), the log of tensors (local_memory.c) and the output of replaced programs are
 * observers, each with one const table.  An unused hook costs one test. */
#ifndef ORR_RUN_OBSERVER_H
#define ORR_RUN_OBSERVER_H

#include "run_rules.h"

struct run_npu;
struct sys_stream;
struct cfg_group;
struct sys_route;

typedef void (*run_on_node)(struct run_npu *n, uint32_t place);
typedef void (*run_on_rank)(struct run_npu *n);
typedef void (*run_on_message)(orr_sim *s, uint32_t src, uint32_t dst, uint64_t size);
/* stream: the number of its first chunk.  r NULL: custom, all members take part. */
typedef void (*run_on_collective)(struct run_npu *n,
                                  uint32_t place,
                                  uint64_t stream,
                                  const struct cfg_group *group,
                                  const struct sys_route *r);
typedef void (*run_on_group)(struct run_npu *n, const struct cfg_group *group);
typedef void (*run_on_phase)(struct sys_stream *st);
/* stream: of a collective; NULL: on_arrival identifies the node. */
typedef void (*run_on_send)(struct run_npu *n,
                            struct sys_stream *stream,
                            uint32_t tag,
                            uint32_t dst,
                            uint64_t size,
                            clk_call on_arrival);
/* Returns the continuation to use instead. */
typedef clk_call (*run_on_receive)(
    struct run_npu *n, uint32_t tag, uint32_t src, uint64_t size, clk_call on_arrival);

/* NULL: not observed. */
typedef struct run_observer {
    run_on_node node_start, node_end;
    run_on_node node_held, node_flows; /* its peers have not arrived; they have arrived */
    run_on_rank rank_end;
    run_on_message message; /* it is handed to the network */
    run_on_collective collective;
    run_on_group group_ring; /* a rank uses a group for the first time */
    run_on_phase phase_start, phase_end;
    run_on_send send;       /* it is posted, with its collective */
    run_on_receive receive; /* at most one observer */
} run_observer;

enum { RUN_LISTENERS = 7 }; /* at most */

/* The observers of each hook, in order of registration; NULL after the last. */
typedef struct run_hooks {
    run_on_node node_start[RUN_LISTENERS], node_end[RUN_LISTENERS];
    run_on_node node_held[RUN_LISTENERS], node_flows[RUN_LISTENERS];
    run_on_rank rank_end[RUN_LISTENERS];
    run_on_message message[RUN_LISTENERS];
    run_on_collective collective[RUN_LISTENERS];
    run_on_group group_ring[RUN_LISTENERS];
    run_on_phase phase_start[RUN_LISTENERS], phase_end[RUN_LISTENERS];
    run_on_send send[RUN_LISTENERS];
    run_on_receive receive;
} run_hooks;

/* RUN_TELL(s, node_start, n, place): calls all observers of this hook. */
#define RUN_TELL(s, hook, ...)                                                \
    do {                                                                      \
        for (unsigned listener_ = 0; (s)->hooks.hook[listener_]; listener_++) \
            (s)->hooks.hook[listener_](__VA_ARGS__);                          \
    } while (0)

/* ---- tape of messages ----
 *
 * What was sent, for orr_sim_goal. */

struct goal_tape;

orr_code tape_create(orr_sim *s, orr_error *err);
void tape_destroy(struct goal_tape *t); /* NULL is fine */
extern const run_observer tape_observer;
/* The receiver of a message: the continuation wrapped by the tape, or c if it was not. */
clk_call tape_receiver(clk_call c);

#endif
