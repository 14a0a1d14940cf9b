/* SPDX-License-Identifier: Apache-2.0 */
/* mpi_trace.h - MPI traces written by liballprof, converted to a GOAL schedule.
 *
 *     orr_mpi_trace_options opt = {.copies = 2};
 *     orr_schedgen_totals done;
 *     orr_mpi_trace_remarks odd;
 *     if (orr_mpi_trace_write("run-0.dat", &opt, "run.goal", &done, &odd, &err)) return report(&err);
 *
 * There is one file per rank, named like the first with another number: run-0.dat, run-1.dat and so
 * on.  The time between two calls becomes a calculation, messages become messages, and collectives
 * are expanded into them.  Files are read one at a time, line by line.  docs/format/mpi_trace.md
 * describes the lines and the conversion of each call. */
#ifndef ORRERY_LAB_MPI_TRACE_H
#define ORRERY_LAB_MPI_TRACE_H

#include <orrery/lab/schedgen.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The constants of the traced MPI library for "any source" and "no rank", and the distance between
 * requests. */
typedef enum orr_mpi_library {
    ORR_MPI_DEFAULT = 0, /* Open MPI; under ATLAHS's rules MPICH */
    ORR_MPI_OPENMPI,     /* -1, -2, 8 bytes */
    ORR_MPI_MPICH        /* -2, -1, 4 bytes */
} orr_mpi_library;

typedef struct orr_mpi_trace_options {
    const orr_rules_schedgen *rules; /* NULL: ours */
    orr_mpi_library library;
    uint32_t time_mult; /* units of the schedule in a microsecond; 0: 1000, nanoseconds */
    uint32_t copies;    /* multiply the number of ranks by this; 0: 1 */
    uint32_t cpu;       /* where it computes, 0 to 255 */
    bool has_overlap;   /* as in orr_schedgen_options */
    uint64_t overlap_ns, poll_ns;
    uint64_t max_collectives; /* stop each rank after this many; 0: no limit */
    /* NULL, or a file with the starting position in each trace; it is rewritten */
    const char *start_path;
    bool skips_messages; /* leave out point-to-point calls and waits */
    bool skips_collectives;
    /* collectives begin this much earlier, overlapping the computation before them */
    uint32_t early_us;
    /* NULL, or receives SchedGen's own messages, one line at a time without newline; is_talkative:
     * more of them, and comments in the schedule. */
    void (*talk)(void *context, const char *line);
    void *talk_context;
    bool is_talkative;
    bool is_binary; /* as in orr_schedgen_options */
    bool is_quiet;  /* no progress line */
} orr_mpi_trace_options;

/* Oddities that were accepted. */
typedef struct orr_mpi_trace_remarks {
    uint32_t ranks;        /* traces that were found */
    uint64_t calls;        /* lines with one */
    uint64_t unknown;      /* calls that are not supported */
    char unknown_name[64]; /* the first of them */
    uint64_t not_expanded; /* collectives that are not expanded; their time counts as computation */
    char not_expanded_name[64]; /* the first of them */
    uint64_t sub_communicators; /* collectives of sub-communicators, left out */
    uint64_t sub_messages;      /* messages in sub-communicators, with ranks taken as they are */
    /* calls that begin before the previous one ended: no time in between */
    uint64_t backward;
    uint64_t nobody; /* messages to and from MPI_PROC_NULL, left out */
} orr_mpi_trace_remarks;

/* To a file like orr_schedgen_write; path NULL: count only.  totals and remarks may be NULL. */
ORR_API orr_code orr_mpi_trace_write(const char *rank0_path,
                                     const orr_mpi_trace_options *opt,
                                     const char *path,
                                     orr_schedgen_totals *totals,
                                     orr_mpi_trace_remarks *remarks,
                                     orr_error *err) ORR_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
