/* SPDX-License-Identifier: Apache-2.0 */
/* fold_links.h - links with equal traffic, for lockstep on networks where ranks share links. */
#ifndef ORR_RUN_FOLD_LINKS_H
#define ORR_RUN_FOLD_LINKS_H

#include "models/network/fluid/fluid.h"
#include "run/run_state.h"

typedef struct fold_shared_links fold_shared_links;

fold_shared_links *fold_links_create(orr_sim *s); /* NULL: out of memory */
void fold_links_destroy(fold_shared_links *l);

/* Adds the links crossed: by collectives of groups, and by messages of ranks, per link of their
 * traces.  False: see *err. */
bool fold_links_add_group(fold_shared_links *l,
                          uint32_t group,
                          const uint32_t *members,
                          uint32_t count,
                          bool is_pairs,
                          orr_error *err);
bool fold_links_add_message(
    fold_shared_links *l, uint32_t from, uint32_t link, uint32_t to, orr_error *err);

/* Colours, once everything has been added: from links to groups and ranks, and back. */
bool fold_links_begin(fold_shared_links *l); /* false: out of memory */
void fold_links_tell_groups(const fold_shared_links *l, uint64_t *group_sum);
void fold_links_tell_ranks(const fold_shared_links *l, uint64_t *rank_sum);
void fold_links_refine(fold_shared_links *l, const uint64_t *colour, const uint64_t *group_sum);
uint32_t fold_links_count(const fold_shared_links *l); /* colours; 0: out of memory */

/* The result, in the arena except for its map.  *is_twice: two links of a trace lead to one rank.
 * NULL: out of memory. */
fluid_standing *fold_links_stand(
    fold_shared_links *l, orr_arena *a, uint32_t *class_of, bool *is_twice, orr_error *err);
/* Keep the parts of one flow, from `from` on, that are on representative links. */
void fold_links_keep(fluid_paths *p, size_t from);

#endif
