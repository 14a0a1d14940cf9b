/* SPDX-License-Identifier: Apache-2.0 */
/* lower_plan.c - the nodes of a pipeline stage, their ids and dependencies (specification, sections 9 and 11).
 *
 * A tensor becomes a compute node, the collectives on its first operand, those on its second, and what is sent
 * or received of it; this is also the order in the file.  Ids count compute nodes and collectives through all
 * stages first, messages afterwards, so everything is numbered before the first plan is made.
 * Cost: a few table look-ups for each node. */
#include "lower.h"

void stg_lowering_fini(stg_lowering *l)
{
    orr_arena_destroy(l->arena);
}

static orr_code find_chain(stg_lowering *l,
                           uint32_t tensor,
                           uint32_t operand,
                           orr__layout needed,
                           uint32_t *out,
                           orr_error *err)
{
    orr__layout made;
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

/* What a tensor sends, as a list in the order of pairs: filled from behind. */
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

void stg_plan_fini(orr__plan *p)
{
    orr_free(p->nodes);
    orr_free(p->deps);
    *p = (orr__plan){0};
}

/* The list of a node may not be the last one: then it moves to the end, with room for as many again.  Lists of
 * nodes that go are copied, and a template can make that explode: hence a limit. */
bool stg_plan_depend(orr__plan *p, uint32_t node, uint32_t on)
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

static stg_plan_node *add_node(orr__plan *p, stg_kind kind, uint32_t tensor, uint64_t id)
{
    if (p->count >= UINT32_MAX || !orr_grow(&p->nodes, &p->room, p->count + 1))
        return NULL;
    stg_plan_node *n = &p->nodes[p->count++];
    *n = (stg_plan_node){.id = id, .tensor = tensor, .kind = (uint8_t)kind};
    return n;
}

static bool add_chain(
    orr__plan *p, const stg_chain *chain, stg_kind kind, uint32_t tensor, uint64_t first_id)
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

static bool add_messages(orr__plan *p, const stg_lowering *l, uint32_t tensor)
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

static bool add_tensor(orr__plan *p, stg_lowering *l, uint32_t tensor)
{
    const stg_chain *a = &l->infer->chains[l->chain_a[tensor]],
                    *b = &l->infer->chains[l->chain_b[tensor]];
    const uint64_t id = l->id[tensor];
    l->node[tensor] = (uint32_t)p->count;
    return add_node(p, ORR__COMP, tensor, id) && add_chain(p, a, ORR__COLL_A, tensor, id + 1) &&
           add_chain(p, b, ORR__COLL_B, tensor, id + 1 + a->count) && add_messages(p, l, tensor);
}

/* ---- dependencies ---- */

/* The node whose end means that the tensor is there. */
static uint32_t result_of(const stg_lowering *l, uint32_t tensor)
{
    return l->node[tensor] + (l->graph->tensors[tensor].op == ORR__OP_S);
}

static bool wire_tensor(orr__plan *p, const stg_lowering *l, uint32_t tensor)
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

orr_code stg_plan_make(orr__plan *p, stg_lowering *l, uint32_t stage, orr_error *err)
{
    const stg_pipe *pipe = &l->pipeline->pipes[stage];
    bool ok = true;
    *p = (orr__plan){0};
    for (size_t i = 0; i < pipe->count && ok; i++)
        ok = add_tensor(p, l, pipe->tensors[i]);
    for (size_t i = 0; i < pipe->count && ok; i++)
        ok = wire_tensor(p, l, pipe->tensors[i]);
    return ok ? ORR_OK : orr_no_memory(err);
}
