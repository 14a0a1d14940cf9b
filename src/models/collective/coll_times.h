/* SPDX-License-Identifier: Apache-2.0 */
/* coll_times.h - end times of the members of a phase from their start times: max-plus forms of the
 * algorithms, for networks without contention. */
#ifndef ORR_COLL_TIMES_H
#define ORR_COLL_TIMES_H

#include "coll.h"

/* A phase of one algorithm, the same for all members. */
typedef struct coll_times_phase {
    const orr_coll_ops *ops;
    orr_collective kind;
    uint64_t data;
    uint32_t count, number;
    uint32_t root, variant; /* where applicable */
    bool is_group, is_forward, is_barrier;
    uint64_t endpoint;   /* delay, ns */
    double memory_speed; /* bytes per second, for reductions */
} coll_times_phase;

/* Delay of a message of this size from its sender to `member`, in this step of the algorithm. */
typedef uint64_t (*coll_times_delay)(void *context, uint64_t step, uint32_t member, uint64_t size);

typedef struct coll_times_net {
    coll_times_delay delay;
    void *context;
    bool is_even;          /* the delay depends only on the step */
    bool is_out_of_memory; /* why a function returned false */
} coll_times_net;

/* Time from the last timer of a member to its end: minimum and maximum over all members. */
typedef struct coll_times_lag {
    uint64_t least, most;
} coll_times_lag;

/* The steps of a phase and their messages, for counting.  Steps are numbers: see
 * coll_times_source. */
typedef void (*coll_times_visit)(void *context,
                                 uint64_t step,
                                 uint64_t messages_each,
                                 uint64_t size);

/* False: these forms do not cover the algorithm, or not this phase. */
bool coll_times_knows(const coll_times_phase *p);
uint32_t coll_times_source(uint64_t step, uint32_t member, uint32_t count);
/* Messages go along the edges of a tree: members differ, and edges take the place of steps. */
bool coll_times_is_tree(const coll_times_phase *p);
bool coll_times_is_edge(uint64_t step);
typedef void (*coll_times_edge)(
    void *context, uint32_t from, uint32_t to, uint64_t messages, uint64_t size);
void coll_times_edges(const coll_times_phase *p, coll_times_edge visit, void *context);
void coll_times_steps(const coll_times_phase *p, coll_times_visit visit, void *context);
/* All messages with their send times, relative to the members' starts. member: the receiver;
 * COLL_TIMES_ALL: each member gets one, and start is common to all. Returns the same as
 * coll_times_ends. */
enum { COLL_TIMES_ALL = UINT32_MAX };
typedef void (*coll_times_sent)(
    void *context, uint64_t step, uint32_t member, int64_t at, uint64_t size);
bool coll_times_sends(const coll_times_phase *p,
                      coll_times_net *net,
                      const int64_t *start,
                      bool is_even,
                      coll_times_sent visit,
                      void *context);
bool coll_times_same(const coll_times_phase *a, const coll_times_phase *b);
/* All members start at once and the network is even: so they end together. */
bool coll_times_even(const coll_times_phase *p,
                     coll_times_net *net,
                     int64_t start,
                     int64_t *end,
                     coll_times_lag *lag);
/* From start[0..count) to end[0..count).  False: the result depends on the order of events within a
 * tick, or out of memory. */
bool coll_times_ends(const coll_times_phase *p,
                     coll_times_net *net,
                     const int64_t *start,
                     int64_t *end,
                     coll_times_lag *lag);

#endif
