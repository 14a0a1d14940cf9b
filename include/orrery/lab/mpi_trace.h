/* SPDX-License-Identifier: Apache-2.0 */
/* mpi_trace.h - traces of MPI calls, as liballprof writes them, made into a GOAL schedule.
 *
 *     orr_mpi_trace_options opt = {.copies = 2};
 *     orr_schedgen_totals done;
 *     orr_mpi_trace_remarks odd;
 *     if (orr_mpi_trace_write("run-0.dat", &opt, "run.goal", &done, &odd, &err)) return report(&err);
 *
 * There is a file for each rank, named like the first with another number: run-0.dat, run-1.dat and
 * so on.  The time between two calls becomes a calculation, messages become messages, and
 * collectives are taken apart into them.  One file is looked at at a time, one line of it at a
 * time.  docs/format/mpi_trace.md has the format of the lines and what becomes of each call. */
#ifndef ORRERY_LAB_MPI_TRACE_H
#define ORRERY_LAB_MPI_TRACE_H

#include <orrery/lab/schedgen.h>

#ifdef __cplusplus
extern "C" {
#endif

/* How the traced program's MPI numbers "any source" and "no rank", and how far apart requests
 * lie. */
typedef enum orr_mpi_library {
    ORR_MPI_DEFAULT = 0, /* Open MPI; under ATLAHS's rules MPICH */
    ORR_MPI_OPENMPI,     /* -1, -2, 8 bytes */
    ORR_MPI_MPICH        /* -2, -1, 4 bytes */
} orr_mpi_library;

typedef struct orr_mpi_trace_options {
    const orr_rules_schedgen *rules; /* NULL: ours */
    orr_mpi_library library;
    uint32_t time_mult; /* units of the schedule in a microsecond; 0: 1000, nanoseconds */
    uint32_t copies;    /* as many times the ranks there are traces of; 0: 1 */
    uint32_t cpu;       /* where it computes, 0 to 255 */
    bool has_overlap;   /* as in orr_schedgen_options */
    uint64_t overlap_ns, poll_ns;
    uint64_t max_collectives; /* stop in each rank after so many; 0: go on to the end */
    const char
        *start_path; /* NULL, or a file that says where in each trace to begin; it is rewritten */
    bool skips_messages; /* leave out all calls that send or receive one message, and waits */
    bool skips_collectives;
    uint32_t early_us; /* collectives begin that much earlier, beside what is computed then */
    /* NULL, or who gets SchedGen's own talk, a line at a time without its end; more of it, and
     * comments in the schedule, with is_talkative. */
    void (*talk)(void *context, const char *line);
    void *talk_context;
    bool is_talkative;
    bool is_binary; /* as in orr_schedgen_options */
    bool is_quiet;  /* no line of progress */
} orr_mpi_trace_options;

/* What was let pass although it is odd. */
typedef struct orr_mpi_trace_remarks {
    uint32_t ranks;        /* traces that were found */
    uint64_t calls;        /* lines with one */
    uint64_t unknown;      /* calls that mean nothing here */
    char unknown_name[64]; /* the first of them */
    uint64_t not_expanded; /* collectives that are not taken apart; their time is computing time */
    char not_expanded_name[64]; /* the first of them */
    uint64_t sub_communicators; /* collectives of fewer ranks, left out */
    uint64_t sub_messages;      /* messages in such a communicator, ranks taken as they are */
    uint64_t backward;          /* calls that begin before the last one ended: no time between */
    uint64_t nobody;            /* messages to and from no rank (MPI_PROC_NULL), left out */
} orr_mpi_trace_remarks;

/* Into a file as orr_schedgen_write; path NULL only counts.  totals and remarks may be NULL. */
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
