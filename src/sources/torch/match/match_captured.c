/* SPDX-License-Identifier: Apache-2.0 */
/* match_captured.c - the calls of a captured step. */
#include "match_impl.h"

typedef struct room {
    operator_tensor *tensors;
    size_t count;
} room;

static operator_tensor tensor_of(const fx_graph *g, uint32_t number)
{
    const fx_tensor *t = &g->tensors[number];
    return (operator_tensor){.shape = fx_shape(g, t),
                             .stride = fx_stride(g, t),
                             .rank = t->rank,
                             .element_bytes = t->element_bytes};
}

static bool is_written(const fx_graph *g, const fx_node *n, uint32_t tensor)
{
    const uint32_t *writes = fx_writes(g, n);
    for (uint32_t i = 0; i < n->writes_count; i++) {
        if (writes[i] == tensor)
            return true;
    }
    return false;
}

static orr_code add_node(match *m, const fx_graph *g, const fx_node *n, room *r, orr_error *err)
{
    if (!orr_grow(&r->tensors, &r->count, (size_t)n->in_count + n->out_count + 1))
        return orr_no_memory(err);
    for (uint32_t i = 0; i < n->in_count; i++) {
        r->tensors[i] = tensor_of(g, fx_in(g, n)[i]);
        r->tensors[i].is_written = is_written(g, n, fx_in(g, n)[i]);
    }
    for (uint32_t i = 0; i < n->out_count; i++)
        r->tensors[n->in_count + i] = tensor_of(g, fx_out(g, n)[i]);
    const match_draft draft = {.call = {.name = fx_text(g, FX_OPS, n->op),
                                        .in = r->tensors,
                                        .out = r->tensors + n->in_count,
                                        .in_count = n->in_count,
                                        .out_count = n->out_count,
                                        .is_view = n->is_view,
                                        .is_causal = n->is_causal,
                                        .is_transposed = n->is_transposed,
                                        .equation = fx_equation(n)},
                               .caller = MATCH_NONE,
                               .count = 1};
    return match_add(m, MATCH_CAPTURED, &draft, err);
}

orr_code match_captured(match *m, const fx_graph *g, orr_error *err)
{
    room r = {0};
    orr_code code = ORR_OK;
    for (size_t i = 0; i < g->node_count && !code; i++) {
        if (g->nodes[i].phase != FX_SETUP)
            code = add_node(m, g, &g->nodes[i], &r, err);
    }
    orr_free(r.tensors);
    m->sides[MATCH_CAPTURED].has_bytes = true;
    return code;
}
