/* SPDX-License-Identifier: Apache-2.0 */
/* lower_infer.c - collectives out of layouts (specification, section 10).
 *
 *     needed \ made     the same everywhere   divided       part of a sum
 *     the same          -                     all-gather    all-reduce
 *     divided           - (a slice)           all-to-all *  reduce-scatter
 *     part of a sum     impossible            impossible    -          * unless along the same extent
 *
 * Each axis of more than one rank is looked at on its own, in the order dp, tp, cp, ep; those that need a
 * collective form a chain in that order.  Pairs of layouts come again and again and are looked up. */
#include "lower.h"

static const char *const axis_names[ORR__AXES] = {"dp", "tp", "cp", "ep"};

typedef enum state { SAME, DIVIDED, PARTIAL } state;

bool stg_infer_init(stg_infer *f, stg_space *s, const stg_grid *grid)
{
    *f = (stg_infer){.space = s, .grid = grid, .known = orr_map_create(64), .count = 1};
    for (int a = 0; a < ORR__AXES; a++)
        f->symbols[a] = stg_symbol(&s->algebra, orr_str_of(axis_names[a]));
    if (!f->known || !orr_grow(&f->chains, &f->room, 1))
        return false;
    f->chains[0] = (stg_chain){0};
    return !s->algebra.fault;
}

void stg_infer_fini(stg_infer *f)
{
    orr_map_destroy(f->known);
    orr_free(f->chains);
}

/* How a layout uses an axis; *extent is the divided extent with all other axes taken out of it. */
static state state_of(const stg_infer *f, orr__layout l, int axis, stg_expr *extent)
{
    const stg_layout_row row = f->space->layouts[l];
    stg_algebra *a = &f->space->algebra;
    const uint64_t bit = UINT64_C(1) << f->symbols[axis];
    *extent = ORR__ZERO;
    for (uint32_t i = 0; i < row.shape_count; i++) {
        stg_expr e = f->space->extents[row.first + i];
        if (!(stg_expr_uses(a, e) & bit))
            continue;
        for (int other = 0; other < ORR__AXES; other++) {
            if (other != axis)
                e = stg_expr_replace(a, e, f->symbols[other], ORR__ONE);
        }
        *extent = e;
        return DIVIDED;
    }
    for (uint32_t i = 0; i < row.hidden_count; i++) {
        if (stg_expr_uses(a, f->space->extents[row.first + row.shape_count + i]) & bit)
            return PARTIAL;
    }
    return SAME;
}

static void add(stg_chain *c, orr_collective kind, int axis)
{
    c->kind[c->count] = (uint8_t)kind;
    c->axis[c->count++] = (uint8_t)axis;
}

static orr_code compare(stg_infer *f,
                        orr__layout made,
                        orr__layout needed,
                        const char *label,
                        stg_chain *out,
                        orr_error *err)
{
    *out = (stg_chain){0};
    for (int axis = 0; axis < (int)f->grid->axes; axis++) {
        stg_expr had, wanted;
        if (f->grid->degree[axis] == 1)
            continue;
        const state have = state_of(f, made, axis, &had);
        const state want = state_of(f, needed, axis, &wanted);
        if (want == PARTIAL && have != PARTIAL)
            return orr_fail(err, ORR_EINPUT, NULL,
                            "%s: an operand is needed as part of a sum over %s, and is none", label,
                            axis_names[axis]);
        if (have == DIVIDED && want == SAME)
            add(out, ORR_COLL_ALL_GATHER, axis);
        else if (have == PARTIAL && want == SAME)
            add(out, ORR_COLL_ALL_REDUCE, axis);
        else if (have == PARTIAL && want == DIVIDED)
            add(out, ORR_COLL_REDUCE_SCATTER, axis);
        else if (have == DIVIDED && want == DIVIDED && had != wanted)
            add(out, ORR_COLL_ALL_TO_ALL, axis);
    }
    return stg_algebra_check(&f->space->algebra, NULL, label, err);
}

orr_code stg_infer_chain(stg_infer *f,
                         orr__layout made,
                         orr__layout needed,
                         const char *label,
                         uint32_t *out,
                         orr_error *err)
{
    const uint64_t key = (uint64_t)made << 32 | needed;
    stg_chain chain;
    *out = made == needed ? 0 : orr_map_find(f->known, key, ORR__NONE);
    if (*out != ORR__NONE)
        return ORR_OK;
    const orr_code code = compare(f, made, needed, label, &chain, err);
    if (code)
        return code;
    *out = 0;
    if (chain.count) {
        if (!orr_grow(&f->chains, &f->room, f->count + 1))
            return orr_no_memory(err);
        *out = (uint32_t)f->count;
        f->chains[f->count++] = chain;
    }
    return orr_map_put(f->known, key, *out, NULL) ? ORR_OK : orr_no_memory(err);
}
