/* SPDX-License-Identifier: Apache-2.0 */
/* rank_grid.c - numbers of ranks and groups (specification, sections 7 and 8).
 *
 * A rank is (stage, ep, cp, tp, dp) with dp fastest.  The groups of an axis are numbered by (stage, the other
 * axes in the order dp, tp, cp, ep) with the last one fastest, those of dp first, then tp, cp, ep; 1 is the
 * first number. */
#include "rank_grid.h"

stg_grid stg_grid_of(const orr_stage_options *opt)
{
    const bool is_routed = opt->model == ORR_STAGE_MOE || opt->model == ORR_STAGE_DEBUG;
    stg_grid g = {.stages = (uint32_t)opt->pp, .axes = is_routed ? 4 : 3};
    g.degree[ORR__DP] = (uint32_t)opt->dp;
    g.degree[ORR__TP] = (uint32_t)(is_routed ? opt->tp : opt->tp * opt->ep);
    g.degree[ORR__CP] = (uint32_t)opt->sp;
    g.degree[ORR__EP] = is_routed ? (uint32_t)opt->ep : 1;
    g.per_stage = 1;
    for (int a = 0; a < ORR__AXES; a++)
        g.per_stage *= g.degree[a];
    g.first_group[0] = 1;
    for (uint32_t a = 0; a < ORR__AXES; a++) {
        const uint32_t groups = a < g.axes ? g.stages * (g.per_stage / g.degree[a]) : 0;
        g.first_group[a + 1] = g.first_group[a] + groups;
    }
    return g;
}

stg_spot stg_grid_spot(const stg_grid *g, uint32_t rank)
{
    stg_spot s = {.stage = rank / g->per_stage};
    uint32_t rest = rank % g->per_stage;
    for (int a = 0; a < ORR__AXES; a++) {
        s.at[a] = rest % g->degree[a];
        rest /= g->degree[a];
    }
    return s;
}

uint32_t stg_grid_rank(const stg_grid *g, const stg_spot *spot)
{
    uint32_t rank = spot->stage;
    for (int a = ORR__AXES - 1; a >= 0; a--)
        rank = rank * g->degree[a] + spot->at[a];
    return rank;
}

uint32_t stg_grid_group(const stg_grid *g, const stg_spot *spot, stg_axis axis)
{
    uint32_t n = spot->stage;
    for (int a = 0; a < ORR__AXES; a++) {
        if (a != (int)axis)
            n = n * g->degree[a] + spot->at[a];
    }
    return g->first_group[axis] + n;
}

uint32_t stg_grid_members(const stg_grid *g, uint32_t group, uint32_t *count, uint32_t *stride)
{
    uint32_t axis = 0;
    stg_spot s = {0};
    while (group >= g->first_group[axis + 1])
        axis++;
    uint32_t rest = group - g->first_group[axis];
    for (int a = ORR__AXES - 1; a >= 0; a--) {
        if (a == (int)axis)
            continue;
        s.at[a] = rest % g->degree[a];
        rest /= g->degree[a];
    }
    s.stage = rest;
    *count = g->degree[axis];
    *stride = 1;
    for (uint32_t a = 0; a < axis; a++)
        *stride *= g->degree[a];
    return stg_grid_rank(g, &s);
}
