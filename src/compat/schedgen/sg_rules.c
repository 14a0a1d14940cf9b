/* SPDX-License-Identifier: Apache-2.0 */
/* sg_rules.c - the rules of the two SchedGens (goal.md 4). */
#include "sg_rules.h"

#include "sources/schedgen/schedgen_impl.h"

const orr_rules_schedgen sg_lgs2023 = {
    .calls = ORR__MPI_CALLS_LGS2023,
    .has_signed_tags = true,
    .has_one_sendrecv_tag = true,
    .init_share = 1,
    .starts_at_epoch = true,
    .has_early_units = true,
    .has_few_collectives = true,
    .ignores_handles = true,
};

const orr_rules_schedgen sg_atlahs = {
    .has_whole_ring = true,
    .masks_draws = true,
    .counts_tags_on = true,
    .counts_communicators = true,
    .calls = ORR__MPI_CALLS_ATLAHS,
    .has_mpich_numbers = true,
    .has_one_sendrecv_tag = true,
    .init_share = 0.9, /* as measured there */
    .starts_at_epoch = true,
    .doubles_all_reduce = true,
    .has_early_units = true,
    .has_few_collectives = true,
    .ignores_handles = true,
};
