/* SPDX-License-Identifier: Apache-2.0 */
/* lower.c - the nodes of a pipeline stage, their ids and dependencies (stage.md 9 and 11).
 *
 * A tensor becomes a compute node, the collectives on its first operand, those on its second, and
 * its messages, which is also their order in the file.  Ids count the compute nodes and collectives
 * of all stages first, then messages, so everything is numbered before the first plan is
 * made.  Cost: a few table lookups per node. */
#include "lower.h"
#include "base/memory/sort.h"
#include "base/text/text.h"

#include <math.h>
#include <stdlib.h>

static orr_code stg_infer_chain(stg_infer *f,
                                stg_layout made,
                                stg_layout needed,
                                const char *label,
                                uint32_t *out,
                                orr_error *err);

void stg_lowering_fini(stg_lowering *l)
{
    orr_arena_destroy(l->arena);
}

static orr_code find_chain(stg_lowering *l,
                           uint32_t tensor,
                           uint32_t operand,
                           stg_layout needed,
                           uint32_t *out,
                           orr_error *err)
{
    stg_layout made;
    char label[120];
    *out = 0;
    if (operand == ORR__NONE)
        return ORR_OK;
    const orr_code code = stg_tensor_made(l->graph, operand, &made, err);
    if (code || made == needed)
        return code;
    return stg_infer_chain(l->infer, made, needed,
                           stg_tensor_label(l->graph, tensor, label, sizeof label), out, err);
}

static orr_code number_tensor(stg_lowering *l, uint32_t tensor, uint64_t *next, orr_error *err)
{
    const stg_tensor *t = &l->graph->tensors[tensor];
    orr_code code = find_chain(l, tensor, t->a, t->need_a, &l->chain_a[tensor], err);
    if (!code)
        code = find_chain(l, tensor, t->b, t->need_b, &l->chain_b[tensor], err);
    if (code)
        return code;
    l->id[tensor] = *next;
    *next += 1u + l->infer->chains[l->chain_a[tensor]].count +
             l->infer->chains[l->chain_b[tensor]].count;
    return ORR_OK;
}

/* The sends of each tensor, as a list in the order of pairs: built back to front. */
static void list_pairs(stg_lowering *l)
{
    const stg_pipeline *p = l->pipeline;
    for (size_t i = p->pair_count; i-- > 0;) {
        const stg_pair *pair = &p->pairs[i];
        l->next_pair[i] = l->pair[pair->remote];
        l->pair[pair->remote] = (uint32_t)i + 1;
        l->pair[pair->shadow] = (uint32_t)i + 1;
    }
}

static bool make_tables(stg_lowering *l)
{
    const size_t tensors = l->graph->count;
    l->arena = orr_arena_create();
    if (!l->arena)
        return false;
    l->chain_a = orr_arena_new(l->arena, tensors, uint32_t);
    l->chain_b = orr_arena_new(l->arena, tensors, uint32_t);
    l->id = orr_arena_new(l->arena, tensors, uint64_t);
    l->node = orr_arena_new(l->arena, tensors, uint32_t);
    l->pair = orr_arena_new(l->arena, tensors, uint32_t);
    l->next_pair = orr_arena_new(l->arena, l->pipeline->pair_count + 1, uint32_t);
    return l->chain_a && l->chain_b && l->id && l->node && l->pair && l->next_pair;
}

orr_code stg_lowering_init(stg_lowering *l, orr_error *err)
{
    uint64_t next = 1;
    orr_code code = make_tables(l) ? ORR_OK : orr_no_memory(err);
    for (uint32_t stage = 0; stage < l->pipeline->pipe_count && !code; stage++) {
        const stg_pipe *pipe = &l->pipeline->pipes[stage];
        for (size_t i = 0; i < pipe->count && !code; i++)
            code = number_tensor(l, pipe->tensors[i], &next, err);
    }
    l->pair_id = next;
    if (!code)
        list_pairs(l);
    return code;
}

/* ---- nodes ---- */

void stg_plan_fini(stg_plan *p)
{
    orr_free(p->nodes);
    orr_free(p->deps);
    *p = (stg_plan){0};
}

/* A list that is not the last one is moved to the end, with twice the room.  The lists of dropped
 * nodes are copied to their children, which a template can make explode: hence the limits. */
bool stg_plan_depend(stg_plan *p, uint32_t node, uint32_t on)
{
    enum { LIST_MOST = 1 << 20, ALL_MOST = 1 << 30 };
    stg_plan_node *n = &p->nodes[node];
    if (n->dep_count == n->dep_room) {
        const size_t room = n->dep_room ? 2 * (size_t)n->dep_room : 2;
        p->is_full = room > LIST_MOST || p->dep_count + room > ALL_MOST;
        if (p->is_full || !orr_grow(&p->deps, &p->dep_room, p->dep_count + room))
            return false;
        if (n->dep_count)
            memcpy(p->deps + p->dep_count, p->deps + n->dep, n->dep_count * sizeof *p->deps);
        n->dep = (uint32_t)p->dep_count;
        n->dep_room = (uint32_t)room;
        p->dep_count += room;
    }
    p->deps[n->dep + n->dep_count++] = on;
    return true;
}

static stg_plan_node *add_node(stg_plan *p, stg_kind kind, uint32_t tensor, uint64_t id)
{
    if (p->count >= UINT32_MAX || !orr_grow(&p->nodes, &p->room, p->count + 1))
        return NULL;
    stg_plan_node *n = &p->nodes[p->count++];
    *n = (stg_plan_node){.id = id, .tensor = tensor, .kind = (uint8_t)kind};
    return n;
}

static bool add_chain(
    stg_plan *p, const stg_chain *chain, stg_kind kind, uint32_t tensor, uint64_t first_id)
{
    for (uint32_t i = 0; i < chain->count; i++) {
        stg_plan_node *n = add_node(p, kind, tensor, first_id + i);
        if (!n)
            return false;
        n->collective = chain->kind[i];
        n->axis = chain->axis[i];
        if (i > 0 && !stg_plan_depend(p, (uint32_t)p->count - 1, (uint32_t)p->count - 2))
            return false;
    }
    return true;
}

static bool add_messages(stg_plan *p, const stg_lowering *l, uint32_t tensor)
{
    const bool is_shadow = l->graph->tensors[tensor].op == ORR__OP_S;
    for (uint32_t at = l->pair[tensor]; at; at = is_shadow ? 0 : l->next_pair[at - 1]) {
        const stg_pair *pair = &l->pipeline->pairs[at - 1];
        const uint64_t id = l->pair_id + 2 * (uint64_t)(at - 1) + is_shadow;
        stg_plan_node *n = add_node(p, is_shadow ? ORR__RECV : ORR__SEND, tensor, id);
        if (!n)
            return false;
        n->peer = is_shadow ? pair->from : pair->to;
        n->tag = l->tag_base + at - 1;
        if (!is_shadow && !stg_plan_depend(p, (uint32_t)p->count - 1, l->node[tensor]))
            return false;
    }
    return true;
}

static bool add_tensor(stg_plan *p, stg_lowering *l, uint32_t tensor)
{
    const stg_chain *a = &l->infer->chains[l->chain_a[tensor]],
                    *b = &l->infer->chains[l->chain_b[tensor]];
    const uint64_t id = l->id[tensor];
    l->node[tensor] = (uint32_t)p->count;
    return add_node(p, ORR__COMP, tensor, id) && add_chain(p, a, ORR__COLL_A, tensor, id + 1) &&
           add_chain(p, b, ORR__COLL_B, tensor, id + 1 + a->count) && add_messages(p, l, tensor);
}

/* ---- dependencies ---- */

/* The node whose end completes the tensor. */
static uint32_t result_of(const stg_lowering *l, uint32_t tensor)
{
    return l->node[tensor] + (l->graph->tensors[tensor].op == ORR__OP_S);
}

static bool wire_tensor(stg_plan *p, const stg_lowering *l, uint32_t tensor)
{
    const stg_tensor *t = &l->graph->tensors[tensor];
    const uint32_t comp = l->node[tensor];
    const uint32_t on_a = l->infer->chains[l->chain_a[tensor]].count,
                   on_b = l->infer->chains[l->chain_b[tensor]].count;
    bool ok = true;
    if (on_a)
        ok = stg_plan_depend(p, comp, comp + on_a);
    if (ok && on_b)
        ok = stg_plan_depend(p, comp, comp + on_a + on_b);
    if (ok && t->a != ORR__NONE)
        ok = stg_plan_depend(p, on_a ? comp + 1 : comp, result_of(l, t->a));
    if (ok && t->b != ORR__NONE)
        ok = stg_plan_depend(p, on_b ? comp + on_a + 1 : comp, result_of(l, t->b));
    for (uint32_t i = 0; i < t->extra_count && ok; i++)
        ok = stg_plan_depend(p, comp, result_of(l, l->graph->extras[t->extra + i]));
    return ok;
}

orr_code stg_plan_make(stg_plan *p, stg_lowering *l, uint32_t stage, orr_error *err)
{
    const stg_pipe *pipe = &l->pipeline->pipes[stage];
    bool ok = true;
    *p = (stg_plan){0};
    for (size_t i = 0; i < pipe->count && ok; i++)
        ok = add_tensor(p, l, pipe->tensors[i]);
    for (size_t i = 0; i < pipe->count && ok; i++)
        ok = wire_tensor(p, l, pipe->tensors[i]);
    return ok ? ORR_OK : orr_no_memory(err);
}

/* Two options of the reference: micro-batches as clones of nodes, and merged collectives (stage.md
 * 15). */

enum { CLONE_IDS = 1000000000 };

/* ---- clones ---- */

/* Position of clones: clone c of node n is at base[n] + c * width[n], where width[n] is the number
 * of nodes of n's tensor. */
typedef struct places {
    uint32_t *base, *width;
} places;

static void place_clones(const stg_plan *p, uint64_t count, const places *at)
{
    uint32_t next = 0;
    for (size_t i = 0, end; i < p->count; i = end) {
        for (end = i + 1; end < p->count && p->nodes[end].tensor == p->nodes[i].tensor;)
            end++;
        for (size_t k = i; k < end; k++) {
            at->base[k] = next + (uint32_t)(k - i);
            at->width[k] = (uint32_t)(end - i);
        }
        next += (uint32_t)((end - i) * count);
    }
}

static bool clone_node(
    stg_plan *to, const stg_plan *from, size_t node, uint32_t clone, const places *at)
{
    stg_plan_node n = from->nodes[node];
    const uint32_t *deps = from->deps + n.dep;
    const uint32_t count = n.dep_count;
    n.id += (uint64_t)clone * CLONE_IDS;
    n.clone = clone;
    n.dep = n.dep_count = n.dep_room = 0;
    if (!orr_push(to->nodes, to->count, to->room, n))
        return false;
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t dep = at->base[deps[i]] + clone * at->width[deps[i]];
        if (!stg_plan_depend(to, (uint32_t)to->count - 1, dep))
            return false;
    }
    return true;
}

/* The nodes of a tensor for all micro-batches, then those of the next tensor. */
static bool clone_all(stg_plan *to, const stg_plan *from, uint64_t count, orr_arena *arena)
{
    const places at = {orr_arena_new(arena, from->count + 1, uint32_t),
                       orr_arena_new(arena, from->count + 1, uint32_t)};
    if (!at.base || !at.width)
        return false;
    place_clones(from, count, &at);
    for (size_t i = 0; i < from->count; i += at.width[i]) {
        for (uint64_t k = 0; k < count * at.width[i]; k++) {
            const size_t node = i + (size_t)(k % at.width[i]);
            if (!clone_node(to, from, node, (uint32_t)(k / at.width[i]), &at))
                return false;
        }
    }
    return true;
}

orr_code stg_plan_clone(stg_plan *p, uint64_t count, orr_error *err)
{
    stg_plan out = {0};
    if (p->count * count > INT32_MAX)
        return orr_fail(err, ORR_EINPUT, NULL, "too many nodes: the micro-batches are too many");
    orr_arena *arena = orr_arena_create();
    const bool ok = arena && clone_all(&out, p, count, arena);
    orr_arena_destroy(arena);
    if (!ok) {
        stg_plan_fini(&out);
        return orr_no_memory(err);
    }
    stg_plan_fini(p);
    *p = out;
    return ORR_OK;
}

/* ---- merged collectives ---- */

static bool is_collective(const stg_plan_node *n)
{
    return n->kind == ORR__COLL_A || n->kind == ORR__COLL_B;
}

/* Remove duplicate parents, keeping first occurrences. */
static void drop_repeated(stg_plan *p, uint32_t *seen)
{
    for (size_t i = 0; i < p->count; i++) {
        stg_plan_node *n = &p->nodes[i];
        uint32_t *deps = p->deps + n->dep, kept = 0;
        for (uint32_t d = 0; d < n->dep_count; d++) {
            if (seen[deps[d]] == i + 1)
                continue;
            seen[deps[d]] = (uint32_t)i + 1;
            deps[kept++] = deps[d];
        }
        n->dep_count = kept;
    }
}

static bool has_dep(const stg_plan *p, uint32_t node, uint32_t dep)
{
    const stg_plan_node *n = &p->nodes[node];
    for (uint32_t i = 0; i < n->dep_count; i++) {
        if (p->deps[n->dep + i] == dep)
            return true;
    }
    return false;
}

/* Node i inherits the parents of its parents of the same kind, which are dropped.  Inherited
 * parents are not examined again. */
static bool inherit(stg_plan *p, uint32_t i)
{
    const uint32_t first = p->nodes[i].dep_count;
    for (uint32_t d = 0; d < first; d++) {
        const uint32_t parent = p->deps[p->nodes[i].dep + d];
        if (!is_collective(&p->nodes[parent]) ||
            p->nodes[parent].collective != p->nodes[i].collective)
            continue;
        for (uint32_t k = 0; k < p->nodes[parent].dep_count; k++) {
            const uint32_t dep = p->deps[p->nodes[parent].dep + k];
            if (!has_dep(p, i, dep) && !stg_plan_depend(p, i, dep))
                return false;
        }
        p->nodes[parent].is_gone = true;
    }
    return true;
}

/* Dropped nodes disappear from all dependencies, including those of their other children. */
static void forget_gone(stg_plan *p, uint32_t *moved)
{
    uint32_t kept = 0;
    for (size_t i = 0; i < p->count; i++)
        moved[i] = p->nodes[i].is_gone ? ORR__NONE : kept++;
    kept = 0;
    for (size_t i = 0; i < p->count; i++) {
        stg_plan_node n = p->nodes[i];
        uint32_t *deps = p->deps + n.dep, left = 0;
        if (n.is_gone)
            continue;
        for (uint32_t d = 0; d < n.dep_count; d++) {
            if (moved[deps[d]] != ORR__NONE)
                deps[left++] = moved[deps[d]];
        }
        n.dep_count = left;
        p->nodes[kept++] = n;
    }
    p->count = kept;
}

orr_code stg_plan_merge(stg_plan *p, orr_error *err)
{
    orr_arena *arena = orr_arena_create();
    uint32_t *seen = arena ? orr_arena_new(arena, p->count + 1, uint32_t) : NULL;
    bool ok = seen != NULL;
    if (ok)
        drop_repeated(p, seen);
    for (size_t i = 0; i < p->count && ok; i++) {
        if (is_collective(&p->nodes[i]))
            ok = inherit(p, (uint32_t)i);
    }
    if (ok)
        forget_gone(p, seen);
    orr_arena_destroy(arena);
    return ok ? ORR_OK : orr_no_memory(err);
}

/* Collectives from layouts (stage.md 10).
 *
 *     needed \ made     the same everywhere   divided       part of a sum
 *     the same          -                     all-gather    all-reduce
 *     divided           - (a slice)           all-to-all *  reduce-scatter
 *     part of a sum     impossible            impossible    -
 *
 * (* unless along the same extent.)
 *
 * Each axis of more than one rank is examined separately, in the order dp, tp, cp, ep; those that
 * need a collective form a chain in that order.  Pairs of layouts recur, so results are cached. */

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

/* How a layout uses an axis; *extent is the divided extent without the other axes. */
static state state_of(const stg_infer *f, stg_layout l, int axis, stg_expr *extent)
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
                        stg_layout made,
                        stg_layout needed,
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
                            "%s: an operand is needed as a partial sum over %s, but is not one",
                            label, axis_names[axis]);
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

/* The chain of collectives between two layouts; chain 0 is empty.  label: whose operand it is. */
static orr_code stg_infer_chain(stg_infer *f,
                                stg_layout made,
                                stg_layout needed,
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

/* Values of symbols.  A model has about forty different expressions, each needed thousands of
 * times, so values are cached. */

static void set(stg_measure *m, const char *name, uint64_t value)
{
    const uint32_t s = stg_symbol(&m->space->algebra, orr_str_of(name));
    m->values[s] = (int64_t)value;
    m->known |= UINT64_C(1) << s;
}

void stg_measure_init(stg_measure *m, stg_space *s, const orr_stage_options *opt)
{
    const bool is_routed = opt->model == ORR_STAGE_MOE || opt->model == ORR_STAGE_DEBUG;
    *m = (stg_measure){.space = s};
    set(m, "Dvocal", opt->dvocal);
    set(m, "Dmodel", opt->dmodel);
    set(m, "Dff", opt->dff);
    set(m, "Batch", opt->batch);
    set(m, "MicroBatch", opt->micro_batch);
    set(m, "Seq", opt->seq);
    set(m, "Head", opt->head);
    set(m, "KVHead", opt->kvhead);
    set(m, "Experts", opt->experts);
    set(m, "KExperts", opt->kexperts);
    set(m, "dp", opt->dp);
    set(m, "tp", is_routed ? opt->tp : opt->tp * opt->ep);
    set(m, "cp", opt->sp);
    set(m, "ep", opt->ep);
    set(m, "pp", opt->pp);
}

void stg_measure_fini(stg_measure *m)
{
    orr_free(m->memo);
}

static orr_code work_out(stg_measure *m, stg_expr x, double *out, orr_error *err)
{
    const stg_algebra *a = &m->space->algebra;
    const orr_str text = stg_expr_text(a, x);
    const uint64_t unknown = stg_expr_uses(a, x) & ~m->known;
    stg_ratio v;
    if (unknown) {
        const orr_str name = stg_symbol_name(a, (uint32_t)__builtin_ctzll(unknown));
        return orr_fail(err, ORR_EINPUT, NULL,
                        "symbol '%.*s' of a template has no value (in '%.*s')", (int)name.len,
                        name.ptr, (int)text.len, text.ptr);
    }
    if (!stg_expr_value(a, x, m->values, ORR__SYMBOLS_MOST, &v))
        return orr_fail(err, ORR_EINPUT, NULL, "'%.*s' is too large, or divided by zero",
                        (int)text.len, text.ptr);
    *out = stg_ratio_double(v);
    return ORR_OK;
}

orr_code stg_measure_expr(stg_measure *m, stg_expr x, double *out, orr_error *err)
{
    const size_t old = m->memo_room;
    if (x >= old) {
        if (!orr_grow(&m->memo, &m->memo_room, x + 1u))
            return orr_no_memory(err);
        for (size_t i = old; i < m->memo_room; i++)
            m->memo[i] = NAN;
    }
    *out = m->memo[x];
    if (!isnan(*out))
        return ORR_OK;
    const orr_code code = work_out(m, x, out, err);
    if (!code)
        m->memo[x] = *out;
    return code;
}

orr_code stg_measure_layout(stg_measure *m, stg_layout l, double *out, orr_error *err)
{
    const stg_expr size = stg_layout_size(m->space, l);
    const orr_code code = stg_algebra_check(&m->space->algebra, NULL, "size of a tensor", err);
    return code ? code : stg_measure_expr(m, size, out, err);
}

/* Drop compute nodes without work (stage.md 12).
 *
 * The reference processes empty nodes in rounds, each in file order: a node that depends on another
 * empty node of the round is postponed to the next; any other passes its parents to its children
 * and is dropped.  This determines the order of parents in the files, so the order is kept, but not
 * the rounds: the parents a node passes on are never empty (it would have been postponed), so the
 * children and the empty parents of an empty node never change, and its round follows from those of
 * its empty parents:
 *
 *     round(n) = max over empty parents p: round(p) if p precedes n in the file, else round(p) + 1
 *
 * Cost: one pass over the dependencies and a sort of the empty nodes, whatever the length of their
 * chains. */

typedef struct leaving {
    uint32_t node, round;
} leaving;

typedef struct clearing {
    stg_plan *p;
    bool *is_empty;
    uint32_t *first, *child; /* children of empty nodes: one entry per dependency */
    uint32_t *waits;         /* number of empty parents without a round */
    leaving *order;
    size_t count;
} clearing;

static orr_code find_empty(clearing *c, stg_lowering *l, orr_error *err)
{
    for (size_t i = 0; i < c->p->count; i++) {
        double ops;
        stg_expr x;
        if (c->p->nodes[i].kind != ORR__COMP)
            continue;
        orr_code code = stg_tensor_ops(l->graph, c->p->nodes[i].tensor, &x, err);
        if (!code)
            code = stg_measure_expr(l->measure, x, &ops, err);
        if (code)
            return code;
        c->is_empty[i] = ops == 0;
        c->count += ops == 0;
    }
    return ORR_OK;
}

/* The children of each empty node, and the number of empty parents of each node. */
static bool list_children(clearing *c, orr_arena *arena)
{
    const stg_plan *p = c->p;
    size_t entries = 0;
    for (size_t i = 0; i < p->count; i++) {
        for (uint32_t d = 0; d < p->nodes[i].dep_count; d++) {
            const uint32_t parent = p->deps[p->nodes[i].dep + d];
            c->first[parent + 1] += c->is_empty[parent];
            c->waits[i] += c->is_empty[parent];
            entries += c->is_empty[parent];
        }
    }
    for (size_t i = 0; i < p->count; i++)
        c->first[i + 1] += c->first[i];
    c->child = orr_arena_new(arena, entries + 1, uint32_t);
    uint32_t *at = orr_arena_new(arena, p->count + 1, uint32_t);
    if (!c->child || !at)
        return false;
    memcpy(at, c->first, p->count * sizeof *at);
    for (size_t i = 0; i < p->count; i++) {
        for (uint32_t d = 0; d < p->nodes[i].dep_count; d++) {
            const uint32_t parent = p->deps[p->nodes[i].dep + d];
            if (c->is_empty[parent])
                c->child[at[parent]++] = (uint32_t)i;
        }
    }
    return true;
}

/* Rounds in topological order.  False: a cycle of empty nodes. */
static bool find_rounds(clearing *c, uint32_t *round)
{
    size_t ready = 0;
    for (size_t i = 0; i < c->p->count; i++) {
        if (c->is_empty[i] && c->waits[i] == 0)
            c->order[ready++].node = (uint32_t)i;
    }
    for (size_t done = 0; done < ready; done++) {
        const uint32_t n = c->order[done].node;
        c->order[done].round = round[n];
        for (uint32_t k = c->first[n]; k < c->first[n + 1]; k++) {
            const uint32_t child = c->child[k];
            const uint32_t at = round[n] + (child < n);
            if (!c->is_empty[child])
                continue;
            if (round[child] < at)
                round[child] = at;
            if (--c->waits[child] == 0)
                c->order[ready++].node = child;
        }
    }
    return ready == c->count;
}

static int compare_leaving(const void *a, const void *b)
{
    const leaving *x = a, *y = b;
    if (x->round != y->round)
        return x->round < y->round ? -1 : 1;
    return (x->node > y->node) - (x->node < y->node);
}

/* Remove one entry for n; n's parents are appended. */
static bool hand_over(stg_plan *p, uint32_t n, uint32_t child)
{
    stg_plan_node *c = &p->nodes[child];
    uint32_t *deps = p->deps + c->dep;
    uint32_t at = 0;
    while (at < c->dep_count && deps[at] != n)
        at++;
    if (at < c->dep_count) {
        memmove(deps + at, deps + at + 1, (c->dep_count - at - 1) * sizeof *deps);
        c->dep_count--;
    }
    for (uint32_t i = 0; i < p->nodes[n].dep_count; i++) {
        if (!stg_plan_depend(p, child, p->deps[p->nodes[n].dep + i]))
            return false;
    }
    return true;
}

static bool take_out(clearing *c)
{
    for (size_t i = 0; i < c->count; i++) {
        const uint32_t n = c->order[i].node;
        c->p->nodes[n].is_gone = true;
        for (uint32_t k = c->first[n]; k < c->first[n + 1]; k++) {
            if (!hand_over(c->p, n, c->child[k]))
                return false;
        }
    }
    return true;
}

/* Renumber without gaps. */
static void close_gaps(stg_plan *p, uint32_t *moved)
{
    uint32_t kept = 0;
    for (size_t i = 0; i < p->count; i++) {
        moved[i] = kept;
        if (!p->nodes[i].is_gone)
            p->nodes[kept++] = p->nodes[i];
    }
    p->count = kept;
    for (size_t i = 0; i < p->count; i++) {
        uint32_t *deps = p->deps + p->nodes[i].dep;
        for (uint32_t d = 0; d < p->nodes[i].dep_count; d++)
            deps[d] = moved[deps[d]];
    }
}

static orr_code name_cycle(const clearing *c, const stg_lowering *l, orr_error *err)
{
    char label[120];
    uint32_t tensor = 0;
    for (size_t i = c->p->count; i-- > 0;) {
        if (c->is_empty[i] && c->waits[i])
            tensor = c->p->nodes[i].tensor;
    }
    return orr_fail(err, ORR_EINPUT, NULL,
                    "tensors without work depend on each other in a cycle; %s is one of them",
                    stg_tensor_label(l->graph, tensor, label, sizeof label));
}

static orr_code clear(clearing *c, stg_lowering *l, orr_arena *arena, orr_error *err)
{
    const size_t n = c->p->count + 1;
    uint32_t *round = orr_arena_new(arena, n, uint32_t);
    c->is_empty = orr_arena_new(arena, n, bool);
    c->first = orr_arena_new(arena, n, uint32_t);
    c->waits = orr_arena_new(arena, n, uint32_t);
    if (!round || !c->is_empty || !c->first || !c->waits)
        return orr_no_memory(err);
    const orr_code code = find_empty(c, l, err);
    if (code)
        return code;
    c->order = orr_arena_new(arena, c->count + 1, leaving);
    if (!c->order || !list_children(c, arena))
        return orr_no_memory(err);
    if (!find_rounds(c, round))
        return name_cycle(c, l, err);
    orr_sort(c->order, c->count, sizeof *c->order, compare_leaving);
    if (!take_out(c))
        return c->p->is_full ? orr_fail(err, ORR_EINPUT, NULL,
                                        "tensors without work give a node too many dependencies")
                             : orr_no_memory(err);
    close_gaps(c->p, round);
    return ORR_OK;
}

orr_code stg_plan_drop_empty(stg_plan *p, stg_lowering *l, orr_error *err)
{
    clearing c = {.p = p};
    orr_arena *arena = orr_arena_create();
    const orr_code code = arena ? clear(&c, l, arena, err) : orr_no_memory(err);
    orr_arena_destroy(arena);
    return code;
}
