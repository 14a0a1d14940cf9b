/* SPDX-License-Identifier: Apache-2.0 */
/* fx_alike.c - do two captured ranks do the same, and does every message have its other end?
 *
 * Alike are graphs that call the same operators on tensors of the same shapes in the same order, through storages that
 * belong together in the same way, in groups of the same families, with peers at the same places.  Where in a storage
 * a tensor begins may differ: ranks keep their own part of a common buffer.
 * Messages are compared kind by kind: all of one rank to another with one tag, in their order.
 * Cost: linear for two graphs; sorting for messages. */
#include "fx_impl.h"

#include "base/text/text.h"

#include <inttypes.h>
#include <stdlib.h>

/* ---- alike ---- */

typedef struct pairing {
    const orr_fx *c;
    const fx_graph *a, *b;
    uint32_t *to_b, *to_a; /* storages: 1 + the other's number; 0: not met yet */
} pairing;

static bool same_storage(pairing *p, uint32_t a, uint32_t b)
{
    if (p->to_b[a] || p->to_a[b])
        return p->to_b[a] == b + 1 && p->to_a[b] == a + 1;
    p->to_b[a] = b + 1;
    p->to_a[b] = a + 1;
    return p->a->storages[a].kept == p->b->storages[b].kept;
}

static const char *differ_in_tensor(pairing *p, uint32_t a, uint32_t b)
{
    const fx_tensor *x = &p->a->tensors[a], *y = &p->b->tensors[b];
    if (x->rank != y->rank || x->element_bytes != y->element_bytes ||
        (x->rank && memcmp(fx_shape(p->a, x), fx_shape(p->b, y), x->rank * sizeof(uint64_t)) != 0))
        return "a tensor of another shape";
    return same_storage(p, x->storage, y->storage) ? NULL : "a tensor that lies elsewhere";
}

static uint32_t family_of(const orr_fx *c, const fx_node *n)
{
    return n->group == FX_NONE ? FX_NONE : c->groups[n->group].family;
}

static const char *differ_in_node(pairing *p, const fx_node *x, const fx_node *y)
{
    const uint32_t *rx = fx_in(p->a, x), *ry = fx_in(p->b, y);
    if (!orr_str_equal(fx_text(p->a, FX_OPS, x->op), fx_text(p->b, FX_OPS, y->op)))
        return "another operator";
    if (x->phase != y->phase)
        return "another phase";
    if (x->in_count != y->in_count || x->out_count != y->out_count ||
        x->writes_count != y->writes_count)
        return "another number of tensors";
    if (family_of(p->c, x) != family_of(p->c, y))
        return "a group of another family";
    if (x->peer != y->peer || x->tag != y->tag)
        return "another peer or tag";
    if (x->is_view != y->is_view || x->is_causal != y->is_causal ||
        x->is_transposed != y->is_transposed || !orr_str_equal(fx_equation(x), fx_equation(y)))
        return "other arguments";
    const size_t refs = (size_t)x->in_count + x->out_count + x->writes_count;
    for (size_t i = 0; i < refs; i++) {
        const char *why = differ_in_tensor(p, rx[i], ry[i]);
        if (why)
            return why;
    }
    return NULL;
}

static size_t skip_setup(const fx_graph *g, size_t i)
{
    while (i < g->node_count && g->nodes[i].phase == FX_SETUP)
        i++;
    return i;
}

static const char *differ(pairing *p, size_t *at)
{
    size_t i = skip_setup(p->a, 0), k = skip_setup(p->b, 0);
    while (i < p->a->node_count && k < p->b->node_count) {
        const char *why = differ_in_node(p, &p->a->nodes[i], &p->b->nodes[k]);
        *at = k;
        if (why)
            return why;
        i = skip_setup(p->a, i + 1);
        k = skip_setup(p->b, k + 1);
    }
    *at = k;
    return i == p->a->node_count && k == p->b->node_count ? NULL : "another number of nodes";
}

orr_code fx_differ(const orr_fx *c,
                   const fx_graph *a,
                   const fx_graph *b,
                   size_t *at,
                   const char **why,
                   orr_error *err)
{
    pairing p = {.c = c,
                 .a = a,
                 .b = b,
                 .to_b = orr_alloc(a->storage_count + 1, sizeof *p.to_b),
                 .to_a = orr_alloc(b->storage_count + 1, sizeof *p.to_a)};
    const orr_code code = p.to_a && p.to_b ? ORR_OK : orr_no_memory(err);
    *why = code ? NULL : differ(&p, at);
    orr_free(p.to_a);
    orr_free(p.to_b);
    return code;
}

/* ---- messages ---- */

typedef struct message {
    uint32_t family;
    bool is_send;
    int64_t peer, tag; /* a place in the group */
    uint64_t bytes;
    size_t node;
} message;

typedef struct letters {
    message *at;
    size_t count, room;
} letters;

static int compare(int64_t a, int64_t b)
{
    return (a > b) - (a < b);
}

/* By kind alone. */
static int by_kind(const message *a, const message *b)
{
    int order = compare(a->family, b->family);
    order = order ? order : compare(a->is_send, b->is_send);
    order = order ? order : compare(a->peer, b->peer);
    return order ? order : compare(a->tag, b->tag);
}

static int by_kind_and_node(const void *a, const void *b)
{
    const message *x = a, *y = b;
    const int order = by_kind(x, y);
    return order ? order : (x->node > y->node) - (x->node < y->node);
}

static bool collect(const orr_fx *c, const fx_graph *g, const fx_call *calls, letters *l)
{
    for (size_t i = 0; i < g->node_count; i++) {
        const fx_node *n = &g->nodes[i];
        if (calls[i].role != FX_SEND && calls[i].role != FX_RECV)
            continue;
        if (!orr_grow(&l->at, &l->room, l->count + 1))
            return false;
        l->at[l->count++] = (message){.family = c->groups[n->group].family,
                                      .is_send = calls[i].role == FX_SEND,
                                      .peer = n->peer,
                                      .tag = n->tag == FX_NO_PEER ? 0 : n->tag,
                                      .bytes = calls[i].bytes,
                                      .node = i};
    }
    if (l->count)
        qsort(l->at, l->count, sizeof *l->at, by_kind_and_node);
    return true;
}

/* The messages of one kind: from `first` on so many. */
static size_t run_length(const letters *l, size_t first)
{
    size_t n = 1;
    while (first + n < l->count && by_kind(&l->at[first], &l->at[first + n]) == 0)
        n++;
    return n;
}

static size_t find_run(const letters *l, const message *kind)
{
    size_t low = 0, high = l->count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (by_kind(&l->at[middle], kind) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

typedef struct matching {
    const fx_families *f;
    const fx_classes *k;
    letters *of; /* of each captured rank: alike ranks may have unlike peers */
    orr_error *err;
} matching;

static orr_code fail_unmatched(const matching *m,
                               const fx_graph *g,
                               const message *s,
                               uint32_t other,
                               size_t own,
                               size_t found)
{
    return fx_fail(m->f->c, g->nodes[s->node].byte, m->err,
                   "rank %" PRIu32 ", node %zu: %zu %s rank %" PRIu32 " with tag %" PRId64
                   ", which %s %zu: the step is not complete, or capture with --ranks all",
                   g->rank, s->node, own, s->is_send ? "messages to" : "messages are expected from",
                   other, s->tag, s->is_send ? "expects" : "sends", found);
}

static orr_code match_run(const matching *m, size_t graph, size_t first, size_t count)
{
    const orr_fx *c = m->f->c;
    const fx_graph *g = c->graphs[graph];
    const message *s = &m->of[graph].at[first];
    const fx_group *group = &c->groups[g->nodes[s->node].group];
    const uint32_t other = c->ranks[group->first + (size_t)s->peer];
    const letters *theirs = &m->of[m->k->graph_of[other]];
    fx_place own;
    message kind = *s;
    fx_place_of(m->f, s->family, g->rank, &own);
    kind.is_send = !s->is_send;
    kind.peer = own.place;
    const size_t at = find_run(theirs, &kind);
    const size_t found =
        at < theirs->count && by_kind(&theirs->at[at], &kind) == 0 ? run_length(theirs, at) : 0;
    if (found != count)
        return fail_unmatched(m, g, s, other, count, found);
    for (size_t i = 0; i < count; i++) {
        if (s[i].bytes != theirs->at[at + i].bytes)
            return fx_fail(c, g->nodes[s[i].node].byte, m->err,
                           "rank %" PRIu32 ", node %zu: a message of %" PRIu64
                           " bytes, but its other end, rank %" PRIu32 ", has %" PRIu64,
                           g->rank, s[i].node, s[i].bytes, other, theirs->at[at + i].bytes);
    }
    return ORR_OK;
}

orr_code fx_match_messages(const fx_families *f,
                           const fx_classes *k,
                           const fx_calls *calls,
                           orr_error *err)
{
    const orr_fx *c = f->c;
    matching m = {.f = f, .k = k, .of = orr_alloc(c->graph_count, sizeof *m.of), .err = err};
    orr_code code = m.of ? ORR_OK : orr_no_memory(err);
    for (size_t i = 0; i < c->graph_count && !code; i++) {
        if (!collect(c, c->graphs[i], calls[i].at, &m.of[i]))
            code = orr_no_memory(err);
    }
    for (size_t i = 0; i < c->graph_count && !code; i++) {
        for (size_t at = 0, n; at < m.of[i].count && !code; at += n) {
            n = run_length(&m.of[i], at);
            code = match_run(&m, i, at, n);
        }
    }
    for (size_t i = 0; m.of && i < c->graph_count; i++)
        orr_free(m.of[i].at);
    orr_free(m.of);
    return code;
}
