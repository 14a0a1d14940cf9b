/* SPDX-License-Identifier: Apache-2.0 */
/* mpi_trace_impl.h - conversion of an MPI trace: state shared by all ranks, and of one rank. */
#ifndef ORR_SOURCES_SCHEDGEN_MPI_TRACE_IMPL_H
#define ORR_SOURCES_SCHEDGEN_MPI_TRACE_IMPL_H

#include "schedgen_impl.h"

#include <orrery/lab/mpi_trace.h>

#include "base/memory/map.h"
#include "base/memory/memory.h"

/* ---- one line: the call and the positions of its arguments ---- */

typedef enum mpi_kind {
    MPI_UNKNOWN,
    MPI_INIT,
    MPI_FINALIZE,
    MPI_IGNORED, /* known, but irrelevant to a schedule */
    MPI_SEND,
    MPI_RECV,
    MPI_ISEND,
    MPI_IRECV,
    MPI_SENDRECV,
    MPI_WAIT,
    MPI_WAITALL,
    MPI_SEND_INIT,
    MPI_RECV_INIT,
    MPI_START,
    MPI_STARTALL,
    MPI_REQUEST_FREE,
    MPI_BARRIER, /* from here on: collectives */
    MPI_ALLREDUCE,
    MPI_IALLREDUCE,
    MPI_BCAST,
    MPI_ALLGATHER,
    MPI_REDUCE,
    MPI_ALLTOALL,
    MPI_SCAN,
    MPI_GATHER,
    MPI_SCATTER,
    MPI_GATHERV,
    MPI_SCATTERV,
    MPI_ALLGATHERV,
    MPI_ALLTOALLV,
    MPI_REDUCE_SCATTER,
    MPI_NOT_EXPANDED
} mpi_kind;

/* The number of a field: `at`, plus a multiple of the communicator's ranks, for fields after lists
 * of counts. Fields are counted from 1, after the name; commas separate them as colons do. */
typedef struct mpi_place {
    uint8_t at, times;
} mpi_place;

typedef struct mpi_call {
    const char *name;
    const char *word; /* SchedGen's name for it in messages; NULL: none */
    mpi_kind kind;
    uint8_t known; /* by which lists: bits 1 << ORR__MPI_CALLS_... */
    mpi_place end; /* its end time, the last field that is needed */
    mpi_place count, size, peer, tag, comm, request;
    mpi_place count2, size2, peer2, tag2; /* the receive, for calls that do both */
    mpi_place list;                       /* start of a list of counts */
    mpi_place list2;
} mpi_call;

typedef struct mpi_line {
    const char *path;
    uint32_t number;
    orr_str text;
    size_t *starts; /* where fields begin; a field ends before the next one's start */
    size_t count, room;
    const mpi_call *call; /* NULL: no call (blank, a comment) */
    uint32_t ranks;       /* of the communicator, for positions that depend on it */
} mpi_line;

/* Finds the call and the fields.  A line that is neither blank, nor a comment, nor a call, is an
 * error. */
orr_code sgen_mpi_line_split(mpi_line *l, orr_str text, uint8_t whose, orr_error *err)
    ORR_MUST_CHECK;

orr_code sgen_mpi_line_u64(const mpi_line *l, mpi_place p, uint64_t *out, orr_error *err)
    ORR_MUST_CHECK;

static inline mpi_place sgen_mpi_after(mpi_place p, uint8_t n)
{
    return (mpi_place){(uint8_t)(p.at + n), p.times};
}

/* What all ranks share. */
typedef struct mpi_run {
    const orr_mpi_trace_options *opt;
    const orr_rules_schedgen *rules;
    goal_pen *pen;
    orr_mpi_trace_remarks *remarks;
    uint32_t hosts;  /* ranks with a trace */
    uint32_t copies; /* ranks of the schedule: hosts * copies */
    uint32_t time_mult;
    bool counts_communicators; /* number them in order of use instead of by handle */
    int digits;                /* of times in talk */
} mpi_run;

/* A persistent request. */
typedef struct mpi_persistent {
    bool is_send;
    int64_t peer;
    uint64_t bytes;
    uint32_t communicator; /* its handle; numbered when the request is started */
    int32_t tag;
} mpi_persistent;

/* One rank.  The time since `start` is not yet accounted for.  The next call ends it: a calculation
 * that depends on `before` and that the messages in `next` depend on. */
typedef struct mpi_rank {
    mpi_run *run;
    mpi_line line;
    uint32_t host, copy;
    bool has_begun;     /* MPI_Init was seen */
    double trace_start; /* by the clock of the trace */
    double start;
    uint64_t before[2]; /* labels */
    unsigned before_count;
    bool before_is_start; /* depend on their starts only: not completed */
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
