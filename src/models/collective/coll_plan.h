/* SPDX-License-Identifier: Apache-2.0 */
/* coll_plan.h - a collective as a plan: a file that says which thread block of which rank moves
 * which chunk when (MSCCL's XML, MSCCL++'s JSON; docs/format/plan.md).
 *
 *     coll_plan *p;
 *     const coll_program *g;
 *     if (coll_plan_read("ring8.xml", &p, &err)) ...       // read, executed on symbols, checked
 *     coll_plan_program(p, 1 << 20, 8, &g, &err);             // what each rank does for 1 MiB
 *     ...
 *     coll_plan_destroy(p);
 *
 * Reading executes the plan once symbolically: the value of every chunk is the set of inputs
 * reduced into it, and at the end each rank must hold the result of the collective.  A plan that
 * deadlocks, reads uninitialised data or computes something else is an error with its location.
 *
 * A *program* is the result of such an execution: per rank a graph of messages and local work.
 * Dependencies are within a rank; ranks depend on each other through messages only. */
#ifndef ORR_COLL_PLAN_H
#define ORR_COLL_PLAN_H

#include "coll.h"

#include "base/memory/memory.h"

typedef struct coll_plan coll_plan;

typedef enum coll_step_kind {
    COLL_STEP_SEND, /* ends when the message has arrived; rarely awaited */
    COLL_STEP_RECV,
    COLL_STEP_WORK, /* endpoint delay, copy, reduction */
    COLL_STEP_JOIN  /* no work: merges several dependencies */
} coll_step_kind;

/* COLL_STEP_WORK: of orr_coll_charge, and these, which have no endpoint delay. */
enum { COLL_WORK_COPY = 16, COLL_WORK_ADD = 32 };

enum { COLL_FLAG_BYTES = 8 }; /* a signal, or the request of a read */

typedef struct coll_step {
    uint8_t kind;
    uint8_t how;       /* work */
    uint8_t factor;    /* bytes on the wire per byte; 2: packets with flags.  0: COLL_FLAG_BYTES */
    uint32_t peer;     /* a member */
    uint32_t message;  /* the same number at both ends */
    uint32_t from, to; /* places, see coll_step_bytes */
    uint32_t piece;    /* of a pipeline, from 0 */
    uint32_t unit;     /* which of the plan's piece sizes; COLL_NO_UNIT: everything at once */
    uint32_t waits;    /* number of dependencies */
    uint32_t first_after, after_count; /* in `after`: its successors */
} coll_step;

#define COLL_NO_UNIT UINT32_MAX

typedef struct coll_rank_program {
    coll_step *steps;
    uint32_t *after;
    uint32_t count;
} coll_rank_program;

typedef struct coll_program {
    const coll_plan *plan;
    coll_rank_program *ranks; /* by member */
    uint32_t messages;
} coll_program;

orr_code coll_plan_read(const char *path, coll_plan **out, orr_error *err) ORR_MUST_CHECK;
/* The same from memory; path is for messages. */
orr_code coll_plan_parse(orr_span bytes, const char *path, coll_plan **out, orr_error *err)
    ORR_MUST_CHECK;
void coll_plan_destroy(coll_plan *p); /* NULL is fine */

const char *coll_plan_path(const coll_plan *p);
orr_collective coll_plan_kind(const coll_plan *p);
uint32_t coll_plan_ranks(const coll_plan *p);
/* Is it for this number of ranks and bytes?  `data`: what a rank has at the start. */
bool coll_plan_fits(const coll_plan *p, uint32_t ranks, uint64_t data);

/* Messages in flight per connection, up to COLL_PLAN_SLOTS: as many as NCCL has if the network
 * models contention, one if not.  Cached by the plan; programs depend on `data` only if the plan
 * has pipelines. */
enum { COLL_PLAN_SLOTS = 8 };
orr_code coll_plan_program(coll_plan *p,
                           uint64_t data,
                           uint32_t slots,
                           const coll_program **out,
                           orr_error *err) ORR_MUST_CHECK;
/* Bytes that a step sends, receives or processes; never 0. */
uint64_t coll_step_bytes(const coll_plan *p, const coll_step *s, uint64_t data);

/* By the end of its name, which is what tells a plan from the files of a custom collective. */
bool coll_plan_looks_like(const char *path);

#endif
