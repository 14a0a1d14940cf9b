/* SPDX-License-Identifier: Apache-2.0 */
/* goal.h - GOAL schedules: per rank, sends, receives and calculations with their dependencies.
 *
 *     orr_goal *g;
 *     if (orr_goal_create(2, &g, &err)) return report(&err);
 *     uint32_t a, b;
 *     orr_goal_begin_rank(g, &err);                                  // rank 0, then 1, ...
 *     orr_goal_add(g, &(orr_goal_op){.kind = ORR_GOAL_CALC, .size = 100}, &a, &err);
 *     orr_goal_add(g, &(orr_goal_op){.kind = ORR_GOAL_SEND, .size = 8, .peer = 1}, &b, &err);
 *     orr_goal_require(g, b, a, ORR_GOAL_FINISHED, &err);            // b starts after a has ended
 *     orr_goal_end_rank(g, &err);
 *     ...
 *     orr_goal_write(g, "x.goal", ORR_GOAL_TEXT, &err);
 *     orr_goal_free(g);
 *
 * Operations of a rank are numbered from 0 in the order they were added; an edge may name
 * operations that were added later.  A schedule costs 32 bytes per operation and 4 per edge.  It is
 * immutable once every rank has ended.  docs/format/goal.md has the two file formats. */
#ifndef ORRERY_LAB_GOAL_H
#define ORRERY_LAB_GOAL_H

#include <orrery/error.h>
#include <orrery/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The numbers are those of the binary file. */
typedef enum orr_goal_kind {
    ORR_GOAL_SEND = 1,
    ORR_GOAL_RECV = 2,
    ORR_GOAL_CALC = 3
} orr_goal_kind;

#define ORR_GOAL_ANY UINT32_MAX /* any source, any tag: -1 in the text */

typedef struct orr_goal_op {
    orr_goal_kind kind;
    uint64_t size; /* bytes; of a calculation: nanoseconds */
    uint32_t peer; /* destination or source; 0 for a calculation */
    uint32_t tag;  /* 0 for a calculation */
    uint8_t cpu, nic;
} orr_goal_op;

/* What an edge waits for: the end of the earlier operation ("requires") or its start
 * ("irequires"). */
typedef enum orr_goal_edge { ORR_GOAL_FINISHED = 0, ORR_GOAL_STARTED = 1 } orr_goal_edge;

typedef struct orr_goal orr_goal;

/* Building.  Every rank, in ascending order, between begin and end. */
ORR_API orr_code orr_goal_create(uint32_t ranks, orr_goal **out, orr_error *err) ORR_MUST_CHECK;
ORR_API orr_code orr_goal_begin_rank(orr_goal *g, orr_error *err) ORR_MUST_CHECK;
ORR_API orr_code orr_goal_add(orr_goal *g,
                              const orr_goal_op *op,
                              uint32_t *number_out, /* of the operation in its rank; may be NULL */
                              orr_error *err) ORR_MUST_CHECK;
/* `later` waits for `earlier`.  A simulator releases operations in the order of these calls. */
ORR_API orr_code orr_goal_require(orr_goal *g,
                                  uint32_t later,
                                  uint32_t earlier,
                                  orr_goal_edge edge,
                                  orr_error *err) ORR_MUST_CHECK;
ORR_API orr_code orr_goal_end_rank(orr_goal *g, orr_error *err) ORR_MUST_CHECK;
ORR_API void orr_goal_free(orr_goal *g); /* NULL is fine */

/* Reading.  Ranks and operations must be in range. */
ORR_API uint32_t orr_goal_ranks(const orr_goal *g);
ORR_API uint32_t orr_goal_ops(const orr_goal *g, uint32_t rank);
ORR_API orr_goal_op orr_goal_get(const orr_goal *g, uint32_t rank, uint32_t op);
/* The number of edges into an operation, and the operations that wait for it, in order.
 * Borrowed. */
ORR_API uint32_t orr_goal_pending(const orr_goal *g, uint32_t rank, uint32_t op);
ORR_API const uint32_t *orr_goal_successors(
    const orr_goal *g, uint32_t rank, uint32_t op, orr_goal_edge edge, uint32_t *count_out);

typedef struct orr_goal_totals {
    uint64_t sends, recvs, calcs, edges;
    uint64_t bytes_sent;
    uint64_t calc_ns;    /* of all calculations */
    uint32_t cpus, nics; /* of every rank: the largest number used, plus one */
    uint64_t wildcards;  /* receives from any source or with any tag, sends with any tag */
} orr_goal_totals;

ORR_API orr_goal_totals orr_goal_count(const orr_goal *g);

typedef enum orr_goal_form { ORR_GOAL_TEXT = 0, ORR_GOAL_BINARY = 1 } orr_goal_form;

/* Oddities that a reader accepted; lines from 1, 0: none. */
typedef struct orr_goal_remarks {
    uint64_t wrapped; /* peers, tags, cpus, nics too large for their field, taken modulo its size */
    uint64_t doubled; /* labels defined twice: the first definition counts */
    uint32_t first_wrapped;     /* the line of the first */
    uint32_t first_doubled;     /* the line of the first */
    uint32_t ignored_from_line; /* text after the last rank, which is ignored */
    orr_goal_form form;         /* format of the file */
} orr_goal_remarks;

/* From a file ("-": standard input; gzip and zstd too), text or binary, recognised by its first
 * bytes; or from memory, which may be freed afterwards: `label` is used in messages.  remarks may
 * be NULL. */
ORR_API orr_code orr_goal_read(const char *path,
                               orr_goal_remarks *remarks,
                               orr_goal **out,
                               orr_error *err) ORR_MUST_CHECK;
ORR_API orr_code orr_goal_parse(orr_span bytes,
                                const char *label,
                                orr_goal_remarks *remarks,
                                orr_goal **out,
                                orr_error *err) ORR_MUST_CHECK;

/* Does a file hold a schedule, by its first bytes?  False for standard input and pipes, which
 * cannot be read twice. */
ORR_API bool orr_goal_recognise(const char *path);

/* To a file ("-": standard output), which appears whole or not at all.  Text and binary are
 * equivalent: a round trip through text gives the same binary. */
ORR_API orr_code orr_goal_write(const orr_goal *g,
                                const char *path,
                                orr_goal_form form,
                                orr_error *err) ORR_MUST_CHECK;

/* ---- several schedules on one machine */

typedef enum orr_goal_placement {
    ORR_GOAL_PACKED = 0, /* job after job, rank after rank */
    ORR_GOAL_SPREAD,     /* round-robin: the first rank of each job, the second of each, ... */
    ORR_GOAL_RANDOM,     /* any host, by the seed */
    ORR_GOAL_FROM_FILE   /* a JSON array with one array of hosts per job */
} orr_goal_placement;

typedef struct orr_goal_machine {
    uint32_t hosts; /* 0: as many as there are ranks */
    orr_goal_placement placement;
    uint64_t seed;    /* ORR_GOAL_RANDOM */
    const char *file; /* ORR_GOAL_FROM_FILE */
} orr_goal_machine;

/* One schedule for the machine, whose ranks are hosts; unused hosts are idle.  host_of (may be
 * NULL) is filled with the host of each rank, job after job. */
ORR_API orr_code orr_goal_combine(const orr_goal *const *jobs,
                                  size_t job_count,
                                  const orr_goal_machine *machine,
                                  uint32_t *host_of,
                                  orr_goal **out,
                                  orr_error *err) ORR_MUST_CHECK;

/* The same for traces, which keep their collectives: peers become hosts, groups are numbered job
 * after job, and a collective of all ranks of a job becomes one of a group. */
struct orr_set;
ORR_API orr_code orr_set_combine(const struct orr_set *const *jobs,
                                 size_t job_count,
                                 const orr_goal_machine *machine,
                                 struct orr_set **out,
                                 orr_error *err) ORR_MUST_CHECK;
/* Why these traces cannot be combined; NULL: they can. */
ORR_API const char *orr_set_combine_obstacle(const struct orr_set *s);

/* One operation in GOAL's text syntax, without a label: "recv 8b from 3 tag 7".  Returns buf. */
ORR_API char *orr_goal_op_text(const orr_goal_op *op, char *buf, size_t size);

#ifdef __cplusplus
}
#endif
#endif
