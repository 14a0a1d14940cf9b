/* SPDX-License-Identifier: Apache-2.0 */
/* gen_goal.h - shared by orrery gen goal and the old name schedgen: options and their parsing. */
#ifndef ORR_CLI_GEN_GOAL_H
#define ORR_CLI_GEN_GOAL_H

#include "command.h"

#include <orrery/lab/mpi_trace.h>
#include <orrery/lab/schedgen.h>

enum { CLI_RANKS_MAX = INT32_MAX };

/* Numbers that may be negative or have a unit are parsed by read_number, read_size and
 * read_time. */
#define CLI_PATTERN_ROWS                                                                           \
    {"datasize", 'd', "BYTES", "size of a message, or of all the data, as 4096 or 4KiB",           \
     .fallback = "1"},                                                                             \
        {"root", 0, "RANK", "the root of trees, scatter, gather, pipelines", .fallback = "0"},     \
        {"nway",    0, "N",           "messages per round of nwaydissemination",                   \
         CLI_COUNT, 1, CLI_RANKS_MAX, "1"},                                                        \
        {"segmentsize", 0, "BYTES", "segment of a pipelined ring", .fallback = "1"},               \
        {"nb", 0, "NS", "each rank computes this long during the pattern, as 5000 or 5us"},        \
        {"nb-poll", 0, "NS", "in slices of this length; 0: in one piece", .fallback = "0"},        \
        {"cpu", 0, "N", "the CPU that computes", CLI_COUNT, 0, 255, "0"},                          \
        {"rpl-dep-cmp", 0, "NS",                                                                   \
         "allreduce_recdoub: wait this long instead of for messages; -1: wait for them",           \
         .fallback = "-1"},                                                                        \
        {"a2av-skew-ratio",                                                                        \
         0,                                                                                        \
         "N",                                                                                      \
         "linear_alltoallv: divide --datasize by N for messages that do not go to the root",       \
         CLI_COUNT,                                                                                \
         1,                                                                                        \
         INT64_MAX,                                                                                \
         "1"},                                                                                     \
        {"outcast", 0, NULL, "linear_alltoallv: the rank after the root sends --datasize to all"}, \
        {"seed", 0, "N", "random_bisect: random seed", CLI_COUNT, 0, UINT32_MAX, "1"},             \
    {                                                                                              \
        "keep-invalid", 0, NULL, "write what SchedGen writes even where that cannot run"           \
    }

#define CLI_TRACE_ROWS                                                                               \
    {"traces", 0, "FILE", "trace: the file of rank 0; -0 in its name stands for the rank"},          \
        {"traces-extr", 0, "N",           "multiply the number of ranks by N",                       \
         CLI_COUNT,     1, CLI_RANKS_MAX, "1"},                                                      \
        {"traces-nops", 0, "N",           "stop in each rank after N collectives; 0: do not stop",   \
         CLI_COUNT,     0, CLI_RANKS_MAX, "0"},                                                      \
        {"traces-start", 0, "FILE",                                                                  \
         "where to begin in each trace; rewritten when --traces-nops stops"},                        \
        {"traces-nop2p", 0, NULL, "omit point-to-point messages and waits"},                         \
        {"traces-nocolls", 0, NULL, "omit collectives"},                                             \
        {"traces-nbcify",                                                                            \
         0,                                                                                          \
         "US",                                                                                       \
         "start collectives this much earlier, overlapping the computation before them",             \
         CLI_COUNT,                                                                                  \
         0,                                                                                          \
         CLI_RANKS_MAX,                                                                              \
         "0"},                                                                                       \
        {"traces-print", 0, "N",           "not 0: comments in the schedule, and one line per call", \
         CLI_COUNT,      0, CLI_RANKS_MAX, "0"},                                                     \
        {"timemult", 0, "N",           "units of the schedule per microsecond",                      \
         CLI_COUNT,  1, CLI_RANKS_MAX, "1000"},                                                      \
    {                                                                                                \
        "mpi", 0, "openmpi|mpich",                                                                   \
            "MPI whose values of MPI_ANY_SOURCE and MPI_PROC_NULL the trace has"                     \
    }

orr_code cli_pattern_options(const cli_context *c, orr_schedgen_options *opt, orr_error *err);
orr_code cli_pattern_find(const char *name, const orr_schedgen_pattern **out, orr_error *err);
orr_code cli_mpi_options(const cli_context *c, orr_mpi_trace_options *opt, orr_error *err);
/* The schedule of --traces; remarks go to stderr. */
orr_code cli_mpi_write(const cli_context *c,
                       const orr_mpi_trace_options *opt,
                       const char *to,
                       orr_schedgen_totals *totals,
                       orr_mpi_trace_remarks *odd,
                       orr_error *err);

#endif
