/* SPDX-License-Identifier: Apache-2.0 */
/* mpi_trace_line.h - one line of a trace of MPI calls: which call, and where in the line its
 * arguments stand. */
#ifndef ORR_SOURCES_SCHEDGEN_MPI_TRACE_LINE_H
#define ORR_SOURCES_SCHEDGEN_MPI_TRACE_LINE_H

#include <orrery/lab/mpi_trace.h>

#include "base/memory/memory.h"

typedef enum mpi_kind {
    MPI_UNKNOWN,
    MPI_INIT,
    MPI_FINALIZE,
    MPI_IGNORED, /* known, and of no meaning for a schedule */
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

/* The number of a field: `at`, and so many times the ranks of the communicator, which lists of
 * counts have. Fields are counted from 1, behind the name; commas part them as colons do. */
typedef struct mpi_place {
    uint8_t at, times;
} mpi_place;

typedef struct mpi_call {
    const char *name;
    const char *word; /* as SchedGen calls it when it talks; NULL: does not */
    mpi_kind kind;
    uint8_t known; /* to whom: bits 1 << ORR__MPI_CALLS_... */
    mpi_place end; /* the time of its end, the last field that is needed */
    mpi_place count, size, peer, tag, comm, request;
    mpi_place count2, size2, peer2, tag2; /* what is received, where a call does both */
    mpi_place list;                       /* the first of a list of counts */
    mpi_place list2;
} mpi_call;

typedef struct mpi_line {
    const char *path;
    uint32_t number;
    orr_str text;
    size_t *starts; /* where fields begin; a field ends before the next one's start */
    size_t count, room;
    const mpi_call *call; /* NULL: no call (blank, a comment) */
    uint32_t ranks;       /* of the communicator, for places that depend on it */
} mpi_line;

/* Finds the call and the fields.  A line that is neither blank, nor a comment, nor a call, is an
 * error. */
orr_code sgen_mpi_line_split(mpi_line *l, orr_str text, uint8_t whose, orr_error *err)
    ORR_MUST_CHECK;
orr_str sgen_mpi_line_name(const mpi_line *l);
bool sgen_mpi_line_has(const mpi_line *l, mpi_place place);

/* Values of fields.  Handles and addresses wrap into 64 bits when they are negative. */
orr_code sgen_mpi_line_time(const mpi_line *l, mpi_place p, double *out, orr_error *err)
    ORR_MUST_CHECK;
orr_code sgen_mpi_line_u64(const mpi_line *l, mpi_place p, uint64_t *out, orr_error *err)
    ORR_MUST_CHECK;
orr_code sgen_mpi_line_int(const mpi_line *l, mpi_place p, int32_t *out, orr_error *err)
    ORR_MUST_CHECK;
/* A count of elements of a size: bytes. */
orr_code sgen_mpi_line_bytes(const mpi_line *l,
                             mpi_place count,
                             mpi_place size,
                             uint64_t *out,
                             orr_error *err) ORR_MUST_CHECK;
/* An error that points to a field. */
orr_where sgen_mpi_line_where(const mpi_line *l, mpi_place p);

static inline mpi_place sgen_mpi_after(mpi_place p, uint8_t n)
{
    return (mpi_place){(uint8_t)(p.at + n), p.times};
}

#endif
