/* SPDX-License-Identifier: Apache-2.0 */
/* fluid_impl.h - flows, what they cross, and the rates that fluid.c and fluid_windows.c work
 * out. */
#ifndef ORR_MODELS_FLUID_IMPL_H
#define ORR_MODELS_FLUID_IMPL_H

#include "base/memory/heap.h"
#include "fluid.h"

#define NONE FLUID_NONE

typedef struct fluid_resource {
    double capacity;
    double wish;                         /* of all its flows together */
    double shares;                       /* what all take when each has a rate of 1 */
    double bytes;                        /* of the flows that are over */
    uint32_t first;                      /* place of a flow on it */
    uint32_t flows, most_flows, counted; /* counted: flows that are part of the figures */
    uint64_t flows_ever, busy, busy_since;
    uint64_t changed_at; /* flows came or went; most_flows counts those that stayed until then */
    /* while rates are worked out */
    double left, share;
    uint32_t mark, seen;
    /* windows (fluid_windows.c) */
    double load;  /* of all its flows at their rates */
    double delay; /* ns that what passes through waits here */
    double level; /* what a flow that begins here gets at most; INFINITY: all it wants */
    uint32_t drops, most_drops;
    uint32_t own; /* flows that begin here */
    bool is_queued;
} fluid_resource;

/* One flow on one resource. */
typedef struct fluid_place {
    uint32_t flow, next, previous;
    uint32_t part; /* of its use */
} fluid_place;

struct fluid_use {
    fluid_part *parts;
    uint32_t count;
    /* of flows that are gone: the first place of a row of `count`, linked by next */
    uint32_t free_places;
    double trip, window; /* ns, bytes; 0: there is no window */
};

typedef struct fluid_flow {
    fluid_use *use;
    double bytes; /* all of it */
    double left;  /* bytes, at `since` */
    double rate;  /* bytes per ns; 0: not known yet */
    double most;
    double wait, level, pace; /* windows: ns in queues; what its first port leaves it; its rate */
    uint64_t since;
    uint64_t end; /* tick; UINT64_MAX: not known yet */
    void (*done)(void *context, uint64_t argument);
    void *context;
    uint64_t argument, number;
    uint32_t places;  /* the first of use->count */
    uint32_t heap_at; /* NONE: not there */
    uint32_t mark;    /* of the last solution it was part of; while free: the next free one */
    bool is_fixed, is_counted;
} fluid_flow;

/* Who is to be told that a flow is over. */
typedef struct fluid_finished {
    uint64_t number;
    void (*done)(void *context, uint64_t argument);
    void *context;
    uint64_t argument;
} fluid_finished;

struct fluid {
    orr_net *sim;
    fluid_resource *resources;
    size_t resource_count, resource_room;
    fluid_place *places;
    size_t place_count, place_room;
    fluid_flow *flows;
    size_t flow_count, flow_room;
    uint32_t free_flow;
    uint64_t numbers;
    fluid_use **uses;
    size_t use_count, use_room;
    uint32_t *heap; /* flows by end */
    size_t heap_count, heap_room;
    uint64_t armed;  /* tick of the next look at ends */
    uint32_t *dirty; /* resources with a change */
    size_t dirty_count, dirty_room;
    bool is_solving_soon;
    double from; /* flows that are slower than this keep their rates */
    uint32_t *found_flows, *found_resources;
    size_t found_flow_room, found_resource_room;
    orr_heap levels;
    uint32_t mark;
    struct fluid_finished *due;
    size_t due_room;
    bool has_failed, skips_figures;
    bool is_max_min; /* not by windows: a flow without one was seen, or there is a crowd */
    bool is_crowded; /* only until nothing flows */
    uint32_t under_way, senders; /* flows; ports at which one begins */
    /* windows */
    uint32_t *queue, *changed;
    size_t queue_first, queue_count, queue_room, changed_count, changed_room;
    struct fluid_share *shares;
    size_t share_room;
};

/* The rate of a flow from now on. */
void fluid_set_rate(fluid *f, uint32_t index, double rate);

/* ---- fluid_windows.c ---- */

/* Too many flows of a sender at once. */
bool fluid_windows_crowd(const fluid *f);
/* A flow is on its resources, or about to leave them; both may ask for windows_solve. */
void fluid_windows_join(fluid *f, uint32_t index);
void fluid_windows_leave(fluid *f, uint32_t index);
bool fluid_windows_wait(const fluid *f); /* for fluid_windows_solve */
void fluid_windows_solve(fluid *f);

#endif
