/* SPDX-License-Identifier: Apache-2.0 */
/* coll_plan_impl.h - a parsed plan: thread blocks of primitive operations.
 *
 * Every operation of either format becomes a few of these.  They work on the *hand* of a thread
 * block, the values it currently holds: LOAD reads them, ADD reduces into them, STORE writes them,
 * SEND and PUT send them.  A range is counted in places: a chunk has `parts` of them, more than one
 * only if thread blocks share the work of one chunk. */
#ifndef ORR_COLL_PLAN_IMPL_H
#define ORR_COLL_PLAN_IMPL_H

#include "coll_plan.h"

typedef enum plan_buffer { PLAN_INPUT, PLAN_OUTPUT, PLAN_SCRATCH, PLAN_BUFFERS } plan_buffer;

typedef enum plan_verb {
    PLAN_LOAD,    /* hand = range */
    PLAN_ADD,     /* hand += range */
    PLAN_STORE,   /* range = hand */
    PLAN_WORK,    /* `how` with the hand */
    PLAN_SEND,    /* hand to the next RECV of `link` */
    PLAN_RECV,    /* hand = what the oldest unreceived SEND of `link` sent */
    PLAN_PUT,     /* range of `rank` = hand */
    PLAN_GET,     /* hand = range of `rank` */
    PLAN_SIGNAL,  /* link */
    PLAN_WAIT,    /* one signal of link */
    PLAN_FLUSH,   /* until everything put on `link` has arrived */
    PLAN_BARRIER, /* with `count` thread blocks of the rank, at `link` */
    PLAN_ACQUIRE, /* semaphore `link` of the rank */
    PLAN_RELEASE,
    PLAN_AFTER,   /* thread block `link` of the rank has finished its step `count` */
    PLAN_STEP_END /* end of a step of the file, as counted by PLAN_AFTER */
} plan_verb;

typedef struct plan_op {
    uint8_t verb, how, buffer;
    bool is_packet; /* LOAD, ADD: wait for the packets; PUT, STORE: write packets */
    bool is_async;  /* PUT: the thread block does not wait */
    uint32_t rank;  /* of PUT and GET */
    uint32_t from, to;
    uint32_t link, count;
    uint32_t unit; /* COLL_NO_UNIT: not in a pipeline */
    uint64_t byte; /* of the file */
} plan_op;

typedef struct plan_loop { /* ops [from, to) are repeated */
    uint32_t from, to;
    uint32_t unit;   /* in units */
    uint32_t chunks; /* number of chunks covered by its pieces */
} plan_loop;

typedef struct plan_block {
    plan_op *ops;
    size_t count, room;
    plan_loop *loops;
    size_t loop_count, loop_room;
    uint32_t rank;
    uint32_t id; /* in the file */
    uint32_t steps;
} plan_block;

/* A connection: messages (MSCCL) or signals (MSCCL++) from a to b. */
typedef struct plan_link {
    uint32_t from, to;
} plan_link;

struct coll_plan {
    orr_arena *arena;
    char *path, *name;
    orr_collective kind;
    uint32_t ranks, chunks, parts; /* chunks: of the larger buffer */
    bool is_inplace;
    uint64_t least, most; /* range of bytes it is for */
    uint32_t *scratch;    /* chunks, by rank */
    plan_block *blocks;   /* ascending by rank */
    size_t block_count, block_room;
    uint32_t *first_block; /* by rank, and one more */
    plan_link *links;
    size_t link_count, link_room;
    uint32_t *semaphores; /* initial values, by link number of ACQUIRE */
    size_t semaphore_count, semaphore_room;
    uint32_t barriers;
    uint64_t *units; /* bytes of a piece */
    size_t unit_count, unit_room;
    orr_span bytes; /* while reading: for locations in messages */
    struct plan_kept *kept;
};

enum { PLAN_MOST_RANKS = 1 << 16, PLAN_MOST_CHUNKS = 1 << 20, PLAN_MOST_PARTS = 5040 };

/* Number of places of a buffer of this rank, and index of its first one in the rank's memory, where
 * input and output may overlap (in place). */
uint32_t plan_places(const coll_plan *p, uint32_t rank, plan_buffer b);
/* All bytes of the larger buffer, if a rank starts with `data`; at most UINT64_MAX. */
uint64_t plan_whole(const coll_plan *p, uint64_t data);

orr_code plan_read_xml(coll_plan *p, orr_span bytes, orr_error *err);
orr_code plan_read_json(coll_plan *p, orr_span bytes, orr_error *err);

/* Functions for readers. */
orr_code plan_fail(const coll_plan *p, uint64_t byte, orr_error *err, const char *fmt, ...)
    ORR_PRINTF(4, 5);
plan_block *plan_add_block(coll_plan *p, uint32_t rank, uint32_t id); /* NULL: out of memory */
bool plan_add_op(plan_block *b, const plan_op *op);                   /* false: out of memory */
bool plan_find_kind(orr_str name, orr_collective *out);
/* coll_plan_build.c: executes the plan.  With values (data 0), or only for its graph. */
orr_code plan_build(const coll_plan *p,
                    orr_arena *a,
                    bool checks_values,
                    uint64_t data,
                    uint32_t slots,
                    coll_program *out,
                    orr_error *err);

#endif
