/* SPDX-License-Identifier: Apache-2.0 */
/* collective.h - the interface of a collective algorithm: it turns one phase of a collective into
 * messages.
 *
 *     typedef struct once { uint32_t left; } once;
 *     static bool setup(orr_coll *c, const orr_coll_phase *p)
 *     {
 *         ((once *)orr_coll_state(c))->left = c->count - 1;     // zero before
 *         return true;
 *     }
 *     ...
 *     static const orr_coll_ops flat = {.name = "flat", .label = "flat", .help = "everyone to everyone",
 *                                       .kinds = ORR_COLL_BIT(ORR_COLL_ALL_REDUCE),
 *                                       .state_size = sizeof(once), .setup = setup, ...};
 *     static const orr_coll_ops *const mine[] = {&flat, NULL};
 *     orr_run_config config = {..., .own_algorithms = mine};
 *
 * The system layer cuts a collective into chunks and sends each chunk through phases, one per
 * dimension of the network (docs/design/collectives.md).  A phase runs once on each of its members;
 * an algorithm sees one member: it sends, receives and waits through the functions below and says
 * when the member is done.  It has no clock.
 *
 *     setup -> start -> (received | timer)* -> orr_coll_done
 *
 * Members are named by their index, 0 to count - 1, along the dimension or in the group.  An
 * algorithm must be deterministic.  Nothing is called from two threads at a time.  The algorithms
 * of this library are in src/models/collective; tests/unit/test_collective_table.c has a complete
 * example. */
#ifndef ORRERY_COLLECTIVE_H
#define ORRERY_COLLECTIVE_H

#include <orrery/error.h>
#include <orrery/types.h>

#ifdef __cplusplus
extern "C" {
#endif

#define ORR_COLL_BIT(kind) (1u << (kind))

typedef struct orr_coll_ops orr_coll_ops;

/* One running phase on one member. */
typedef struct orr_coll {
    const orr_coll_ops *ops;
    uint32_t index, count; /* this member, and how many there are */
    uint8_t kind;          /* orr_collective of this phase: a phase of an all-reduce over several
                              dimensions may be a reduce-scatter */
    bool is_forward;       /* the direction of this chunk around a ring */
    uint8_t spare[6];
} orr_coll;

/* The state of the algorithm: ops->state_size bytes, all zero when setup is called. */
static inline void *orr_coll_state(orr_coll *c)
{
    return c + 1;
}

/* The phase to run; setup copies what it needs later. */
typedef struct orr_coll_phase {
    orr_collective kind;
    orr_bytes data;    /* held by this member at the start */
    uint32_t root;     /* index of the root, if the collective has one */
    uint32_t number;   /* N of "directN" in the system file; 0: none */
    uint32_t variant;  /* 0 to ops->variants - 1, rotating from chunk to chunk */
    bool is_group;     /* members are those of a group, not of a dimension */
    bool is_barrier;   /* half of a barrier: no data to reduce */
    bool has_outsider; /* the list of algorithms ends here, and this rank is not among the first
                        * `count` (astra-sim.md 5.1) */
} orr_coll_phase;

struct orr_coll_ops {
    const char *name;  /* as in the system file: "halvingDoubling"; unique among its kinds */
    const char *label; /* as in timelines and explanations: "halving-doubling" */
    const char *help;  /* one line */
    uint32_t kinds;    /* the collectives it can run: ORR_COLL_BIT(...) | ...  Either those with a
                          root (broadcast, reduce, gather, scatter, barrier) or those without */
    bool takes_number; /* the name may end in a number: "direct8" */
    /* also available as "oneRing" for "ring": one phase over all ranks, whatever the dimensions */
    bool has_one;
    /* with other counts it never finishes; the stall explanation says so */
    bool needs_power_of_two;
    bool keeps_data;   /* a chunk has the same size after the phase as before, even for all-gather
                        * and reduce-scatter */
    uint32_t variants; /* variants of a phase; 0 or 1: all chunks are alike */
    size_t state_size; /* bytes of state per running phase; 0: none */
    /* False: it has called orr_coll_fail.  NULL: nothing to set up. */
    bool (*setup)(orr_coll *c, const orr_coll_phase *p);
    void (*start)(orr_coll *c);
    void (*received)(orr_coll *c, orr_bytes size); /* a message of orr_coll_receive has arrived */
    void (*timer)(orr_coll *c);                    /* the delay of an orr_coll_charge has passed */
    /* Approximate number of messages a member sends per phase, for the progress line.  NULL: count
     * - 1. */
    double (*messages)(orr_collective kind, uint32_t count);
};

/* ---- what an algorithm may call ---- */

ORR_API void orr_coll_send(orr_coll *c, uint32_t member, orr_bytes size);
ORR_API void orr_coll_receive(orr_coll *c, uint32_t member, orr_bytes size);
/* The member processes this many bytes: endpoint delay, then reduction, then timer is called. */
enum {
    ORR_COLL_REDUCED = 1,  /* they are added to the local data: the reduction takes time */
    ORR_COLL_FROM_NPU = 2, /* on a shared bus: from the NPU to its network interface */
    ORR_COLL_SENT_BACK = 4 /* on a shared bus: and back, because they are forwarded */
};
ORR_API void orr_coll_charge(orr_coll *c, orr_bytes size, unsigned how);
/* The member has finished.  Must be the last call of start, received or timer: c is invalid
 * afterwards.  If the message has already arrived, orr_coll_receive calls received before it
 * returns. */
ORR_API void orr_coll_done(orr_coll *c);
/* Ends the run with an error that names the rank and the node. */
ORR_API void orr_coll_fail(orr_coll *c, const char *fmt, ...) ORR_PRINTF(2, 3);

/* ---- the algorithms of this library ---- */

ORR_API const orr_coll_ops *orr_coll_at(size_t index); /* NULL past the last */
/* One line per algorithm, name and help; `more` (NULL-terminated, may be NULL) is listed after
 * ours.  Returns the length; output is truncated to `room`. */
ORR_API size_t orr_coll_describe(const orr_coll_ops *const *more, char *out, size_t room);

#ifdef __cplusplus
}
#endif
#endif
