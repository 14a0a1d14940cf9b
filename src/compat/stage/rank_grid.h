/* SPDX-License-Identifier: Apache-2.0 */
/* rank_grid.h - ranks and communicator groups as places in a grid; all closed forms, no searching. */
#ifndef ORR_SYMBOLIC_RANK_GRID_H
#define ORR_SYMBOLIC_RANK_GRID_H

#include <orrery/lab/stage.h>

typedef enum orr__axis { ORR__DP, ORR__TP, ORR__CP, ORR__EP, ORR__AXES } orr__axis;

typedef struct orr__grid {
    uint32_t stages, per_stage; /* ranks of one stage */
    uint32_t axes;              /* those that have groups: the first three, or all */
    uint32_t degree[ORR__AXES];
    uint32_t first_group[ORR__AXES + 1]; /* number of an axis' first group; the last: one too far */
} orr__grid;

typedef struct orr__spot {
    uint32_t stage, at[ORR__AXES];
} orr__spot;

orr__grid orr__grid_of(const orr_stage_options *opt);
orr__spot orr__grid_spot(const orr__grid *g, uint32_t rank);
uint32_t orr__grid_rank(const orr__grid *g, const orr__spot *spot);
/* The group along an axis that a spot is in. */
uint32_t orr__grid_group(const orr__grid *g, const orr__spot *spot, orr__axis axis);
/* The first member of a group; the others are `*stride` further each, `*count` in all. */
uint32_t orr__grid_members(const orr__grid *g, uint32_t group, uint32_t *count, uint32_t *stride);

#endif
