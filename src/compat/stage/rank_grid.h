/* SPDX-License-Identifier: Apache-2.0 */
/* rank_grid.h - ranks and communicator groups as places in a grid; all closed forms, no
 * searching. */
#ifndef ORR_SYMBOLIC_RANK_GRID_H
#define ORR_SYMBOLIC_RANK_GRID_H

#include <orrery/lab/stage.h>

typedef enum stg_axis { ORR__DP, ORR__TP, ORR__CP, ORR__EP, ORR__AXES } stg_axis;

typedef struct stg_grid {
    uint32_t stages, per_stage; /* ranks of one stage */
    uint32_t axes;              /* those that have groups: the first three, or all */
    uint32_t degree[ORR__AXES];
    uint32_t first_group[ORR__AXES + 1]; /* number of an axis' first group; the last: one too far */
} stg_grid;

typedef struct stg_spot {
    uint32_t stage, at[ORR__AXES];
} stg_spot;

stg_grid stg_grid_of(const orr_stage_options *opt);
stg_spot stg_grid_spot(const stg_grid *g, uint32_t rank);
uint32_t stg_grid_rank(const stg_grid *g, const stg_spot *spot);
/* The group along an axis that a spot is in. */
uint32_t stg_grid_group(const stg_grid *g, const stg_spot *spot, stg_axis axis);
/* The first member of a group; the others are `*stride` further each, `*count` in all. */
uint32_t stg_grid_members(const stg_grid *g, uint32_t group, uint32_t *count, uint32_t *stride);

#endif
