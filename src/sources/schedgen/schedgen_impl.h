/* SPDX-License-Identifier: Apache-2.0 */
/* schedgen_impl.h - shared by the patterns and by MPI traces, which expand collectives with
 * them. */
#ifndef ORR_SOURCES_SCHEDGEN_SCHEDGEN_IMPL_H
#define ORR_SOURCES_SCHEDGEN_SCHEDGEN_IMPL_H

#include "base/io/output.h"
#include "base/memory/buffer.h"
#include "base/short_forms.h"

#include <orrery/lab/goal.h>
#include <orrery/lab/schedgen.h>

/* ---- rules ----
 *
 * What SchedGen of LogGOPSim and of ATLAHS do differently (goal.md 4). */

/* Which list of MPI calls. */
enum { ORR__MPI_CALLS_OURS, ORR__MPI_CALLS_LGS2023, ORR__MPI_CALLS_ATLAHS };

struct orr_rules_schedgen {
    /* Patterns. */
    bool has_whole_ring; /* all-reduce on a ring: all of the data in each step */
    bool masks_draws;    /* random numbers: mask and retry, do not scale */
    /* resnet: tags continue from rank to rank, so no message matches its receive */
    bool counts_tags_on;
    bool counts_communicators; /* from 0, in order of appearance; otherwise by handle */

    /* Traces of MPI calls. */
    uint8_t calls;             /* ORR__MPI_CALLS_... */
    bool has_mpich_numbers;    /* unless the options name the MPI */
    bool has_signed_tags;      /* communicator and tag are an int, printed as 64 bits */
    bool has_one_sendrecv_tag; /* a receive of any tag takes that of the send */
    double init_share;         /* share of the time of MPI_Send_init that is not computation */
    bool starts_at_epoch;      /* without MPI_Init */
    bool doubles_all_reduce;   /* recursive doubling instead of dissemination */
    bool has_early_units;      /* --traces-nbcify: take microseconds for units of the schedule */
    bool has_few_collectives;  /* do not expand scan, gather, scatter and lists of counts */
    bool ignores_handles;      /* ranks may name their communicators differently */
};

static inline const orr_rules_schedgen *sgen_schedgen_rules(const orr_rules_schedgen *rules)
{
    static const orr_rules_schedgen ours = {.init_share = 1};
    return rules ? rules : &ours;
}

/* ---- pen ----
 *
 * Writes a GOAL schedule, operation by operation: as text in SchedGen's style, or into memory.
 *
 *     goal_pen pen;
 *     sgen_gpen_init(&pen, path, false, &err);
 *     sgen_gpen_head(&pen, ranks);
 *     sgen_gpen_begin(&pen, rank);
 *     const uint64_t recv = sgen_gpen_recv(&pen, 8, 0);     // its label
 *     sgen_gpen_require(&pen, sgen_gpen_send(&pen, 8, 1), recv);
 *     sgen_gpen_end(&pen);
 *     sgen_gpen_finish(&pen, &err);
 *
 * Operations are numbered from 1 in each rank.  Failures are kept until finish. */

enum { ORR__PEN_FIRST = 1, ORR__PEN_LAST = 2 };

typedef struct goal_pen {
    orr_buf text;
    orr_output *out; /* NULL: only counts */
    bool is_kept;    /* in `goal`; no text is written */
    orr_goal *goal;
    const char *path; /* the final path; NULL: none */
    orr_error *err;   /* the first failure of goal, of code: */
    orr_code code;
    uint64_t tag;   /* of messages from now on */
    uint64_t label; /* of the last operation in this rank */
    uint32_t cpu;   /* 0: calculations name none */
    bool has_overlap;
    uint64_t overlap_ns, poll_ns;
    /* Which messages since sgen_gpen_open depend on none of them, and on which none depends: one
     * byte per operation from label `base` on. */
    bool is_open;
    uint64_t base;
    orr_buf marks;
    orr_schedgen_totals totals;
    orr_schedgen_totals *totals_out; /* NULL, or where finish stores them */
} goal_pen;

/* is_kept: the schedule is built in memory; it is written to a path as binary GOAL, or taken with
 * sgen_gpen_take.  err must outlive the pen. */
orr_code sgen_gpen_init(goal_pen *pen, const char *path, bool is_kept, orr_error *err)
    ORR_MUST_CHECK;
orr_goal *sgen_gpen_take(goal_pen *pen);                                 /* before finish */
orr_code sgen_gpen_finish(goal_pen *pen, orr_error *err) ORR_MUST_CHECK; /* pen is empty after it */
void sgen_gpen_discard(goal_pen *pen);
bool sgen_gpen_has_failed(const goal_pen *pen);

void sgen_gpen_head(goal_pen *pen, uint64_t ranks);
void sgen_gpen_begin(goal_pen *pen, uint64_t rank);
void sgen_gpen_end(goal_pen *pen);

/* Each returns the label of the operation.  A peer of -1 is any. */
uint64_t sgen_gpen_send(goal_pen *pen, uint64_t bytes, int64_t to);
uint64_t sgen_gpen_recv(goal_pen *pen, uint64_t bytes, int64_t from);
uint64_t sgen_gpen_calc(goal_pen *pen, uint64_t ns);
uint64_t sgen_gpen_calc_on(goal_pen *pen,
                           uint64_t ns,
                           uint32_t cpu); /* names cpu if pen->cpu is set */
void sgen_gpen_require(goal_pen *pen, uint64_t later, uint64_t earlier);
void sgen_gpen_irequire(goal_pen *pen, uint64_t later, uint64_t earlier);
void sgen_gpen_comment(goal_pen *pen, const char *words);

/* A group of messages.  Afterwards pen->marks holds the first and last ones, until the next
 * group. */
void sgen_gpen_open(goal_pen *pen);
void sgen_gpen_close(goal_pen *pen);

/* ---- patterns ---- */

/* A pattern being generated: the options, and what is drawn once for all ranks. */
typedef struct schedgen {
    const orr_schedgen_options *opt;
    const orr_rules_schedgen *rules;
    uint32_t ranks;  /* of the schedule */
    uint32_t *table; /* sizes[from * ranks + to], or the partner of each rank; NULL */
    goal_pen *pen;
} schedgen;

/* One rank's part of a collective, n ranks (schedgen.c). */
void sgen_binomial_bcast(goal_pen *pen, uint32_t root, uint32_t rank, uint32_t n, uint64_t bytes);
void sgen_binomial_reduce(goal_pen *pen, uint32_t root, uint32_t rank, uint32_t n, uint64_t bytes);
void sgen_dissemination(goal_pen *pen, uint32_t rank, uint32_t n, uint64_t bytes);
void sgen_linear_alltoall(goal_pen *pen, uint32_t rank, uint32_t n, uint64_t bytes);
void sgen_recursive_doubling(goal_pen *pen, uint32_t rank, uint32_t n, uint64_t bytes);

/* Swaps ranks 0 and root; it is its own inverse. */
static inline uint32_t sgen_swap_root(uint32_t rank, uint32_t root)
{
    if (rank == root)
        return 0;
    return rank == 0 ? root : rank;
}

static inline bool sgen_is_power_of_two(uint32_t n)
{
    return (n & (n - 1)) == 0;
}

/* The largest power of two <= n, n > 0. */
static inline uint32_t sgen_power_below(uint32_t n)
{
    return UINT32_C(1) << (31 - __builtin_clz(n));
}

#endif
