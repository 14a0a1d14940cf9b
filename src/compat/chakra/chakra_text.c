/* SPDX-License-Identifier: Apache-2.0 */
/* chakra_text.c - text workloads and task graphs as chakra_converter converts them (chakra.md 4.2 to 4.4). */
#include "chakra.h"

#include "sources/flexflow/flexflow_impl.h"
#include "sources/layers/layers_impl.h"

const orr_rules_layers chakra_text_rules = {
    .reads_loosely = true,
    .has_few_policies = true,
    .has_all_collectives = true,
    .has_bare_nodes = true,
    .believes_count = true,
    .counts_ids_on = true,
};

/* Before September 2024. */
const orr_rules_layers chakra_early_text_rules = {
    .reads_loosely = true,
    .has_few_policies = true,
    .has_all_collectives = true,
    .has_bare_nodes = true,
    .believes_count = true,
    .counts_ids_on = true,
    .has_early_form = true,
};

const orr_rules_flexflow chakra_flexflow_rules = {
    .has_gaps = true,
    .keeps_crossings = true,
    .has_bare_nodes = true,
    .has_empty_sends = true,
    .has_wide_numbers = true,
};
