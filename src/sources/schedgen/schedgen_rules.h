/* SPDX-License-Identifier: Apache-2.0 */
/* schedgen_rules.h - what SchedGen of LogGOPSim and of ATLAHS do differently (goal.md 4). */
#ifndef ORR_SOURCES_SCHEDGEN_RULES_H
#define ORR_SOURCES_SCHEDGEN_RULES_H

#include <orrery/lab/schedgen.h>

/* Whose list of MPI calls. */
enum { ORR__MPI_CALLS_OURS, ORR__MPI_CALLS_LGS2023, ORR__MPI_CALLS_ATLAHS };

struct orr_rules_schedgen {
    /* Patterns. */
    bool has_whole_ring;       /* all-reduce on a ring: all of the data in each step */
    bool masks_draws;          /* random numbers: masked and tried again, not scaled */
    bool counts_tags_on;       /* resnet: from rank to rank, so that no message meets its receive */
    bool counts_communicators; /* from 0, as they appear; otherwise by their handles */

    /* Traces of MPI calls. */
    uint8_t calls;             /* ORR__MPI_CALLS_... */
    bool has_mpich_numbers;    /* unless the options say whose */
    bool has_signed_tags;      /* communicator and tag are an int, printed as 64 bits */
    bool has_one_sendrecv_tag; /* a receive of any tag takes that of the send */
    double init_share;         /* of the time of MPI_Send_init that is not computing */
    bool starts_at_epoch;      /* without MPI_Init */
    bool doubles_all_reduce;   /* recursive doubling instead of dissemination */
    bool has_early_units; /* --traces-nbcify: microseconds are taken for units of the schedule */
    bool has_few_collectives; /* scan, gather, scatter and lists of counts are not taken apart */
    bool ignores_handles;     /* ranks may name their communicators differently */
};

static inline const orr_rules_schedgen *sgen_schedgen_rules(const orr_rules_schedgen *rules)
{
    static const orr_rules_schedgen ours = {.init_share = 1};
    return rules ? rules : &ours;
}

#endif
