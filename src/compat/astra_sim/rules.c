/* SPDX-License-Identifier: Apache-2.0 */
/* rules.c - the rules of AstraSim_Analytical_*: what it rejects, what crashes it, what it does not
 * know. */
#include "astra_sim.h"

#include "compat/hash_order.h"

const orr_rules_run astra_sim_rules = {
    .needs_both_roots = true,
    .merges_equal_ids = true,
    .has_one_stream = true,
    .needs_peers = true,
    .reads_leading_digits = true,
    .has_no_roots = true,
    .runs_lonely = true,
    .sends_nothing = true,
    .has_one_count = true,
    .shares_tags = true,
    .node_order = &orr__hash_order,
    .ignores_new_keys = true,
    .ignores_group_file = true,
    .has_no_topologies = true,
    .aware_most_dims = 1,
    .aware_least_ring = 3,
    .refuses_one_rank = true,
    .overrides_patterns = true,
    .refuses_tick_zero = true,
    .orders_by_hash = true,
    .keeps_no_figures = true,
};

/* Layer tables as in version 1.0. */
const orr_rules_run astra_sim_1_rules = {
    .has_one_count = true,
    .shares_tags = true,
    .node_order = &orr__hash_order,
    .has_ns_durations = true,
};

/* Timing of autumn 2023, for the figures in its documentation (docs/figures.md). */
const orr_rules_run astra_sim_2023_rules = {
    .has_one_count = true,
    .shares_tags = true,
    .node_order = &orr__hash_order,
    .has_ns_durations = true,
    .reduces_for_free = true,
};
