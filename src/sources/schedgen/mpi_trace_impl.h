/* SPDX-License-Identifier: Apache-2.0 */
/* mpi_trace_impl.h - a trace at work: what all ranks share, and the state of one. */
#ifndef ORR_SOURCES_SCHEDGEN_MPI_TRACE_IMPL_H
#define ORR_SOURCES_SCHEDGEN_MPI_TRACE_IMPL_H

#include "mpi_trace_line.h"
#include "schedgen_impl.h"

#include "base/memory/map.h"

/* What all ranks share. */
typedef struct mpi_run {
    const orr_mpi_trace_options *opt;
    const orr_rules_schedgen *rules;
    goal_pen *pen;
    orr_mpi_trace_remarks *remarks;
    uint32_t hosts;  /* ranks there are traces of */
    uint32_t copies; /* ranks of the schedule: hosts * copies */
    uint32_t time_mult;
    bool counts_communicators; /* number them in order of use, and do not trust their handles */
    int digits;                /* of times in talk */
} mpi_run;

/* A request that is started again and again. */
typedef struct mpi_persistent {
    bool is_send;
    int64_t peer;
    uint64_t bytes;
    uint32_t communicator; /* its handle; it gets a number when the request is started */
    int32_t tag;
} mpi_persistent;

/* One rank.  Between calls there is time that nobody has accounted for yet: from `start` on.  The
 * next call ends it: a calculation that waits for `before` and that the messages in `next` wait
 * for. */
typedef struct mpi_rank {
    mpi_run *run;
    mpi_line line;
    uint32_t host, copy;
    bool has_begun;     /* MPI_Init was seen */
    double trace_start; /* by the clock of the trace */
    double start;
    uint64_t before[2]; /* labels */
    unsigned before_count;
    bool before_is_start; /* wait for their starts only: they are not done */
    uint64_t *next;
    size_t next_count, next_room;
    uint64_t collectives; /* how many so far */
    orr_map *requests;    /* address -> label */
    orr_map *communicators;
    uint32_t communicator_count;
    orr_map *persistent_by; /* address -> index */
    mpi_persistent *persistent;
    size_t persistent_count, persistent_room;
} mpi_rank;

orr_code sgen_mpi_rank_init(mpi_rank *r, mpi_run *run, orr_error *err) ORR_MUST_CHECK;
void sgen_mpi_rank_fini(mpi_rank *r);

/* One line. */
orr_code sgen_mpi_rank_line(mpi_rank *r, orr_str text, orr_error *err) ORR_MUST_CHECK;

/* Everything in one file, from byte `from` on; *stopped_at is where it stopped. */
orr_code sgen_mpi_rank_read(mpi_rank *r,
                            orr_str all,
                            const char *path,
                            uint64_t from,
                            uint64_t *stopped_at,
                            orr_error *err) ORR_MUST_CHECK;

void sgen_mpi_say(const mpi_run *run, const char *fmt, ...) ORR_PRINTF(2, 3);

static inline bool sgen_mpi_is_talkative(const mpi_run *run)
{
    return run->opt->is_talkative;
}

/* Of the rank in the schedule. */
static inline uint32_t sgen_mpi_number(const mpi_rank *r)
{
    return r->host + r->run->hosts * r->copy;
}

#endif
