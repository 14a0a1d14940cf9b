/* SPDX-License-Identifier: Apache-2.0 */
/* fx_ranks.c - which captured rank stands for which others.
 *
 * A rank does what the captured rank does that is *placed* as it is: at the same place of its group
 * in every family whose groups have messages (the stages of a pipeline), at the root or not where
 * there are scatters or gathers, and in or out of a group in every other family that is used. Its
 * own groups are then those of the same families that hold it.  A captured rank does what it was
 * seen to do; two that are placed alike must be alike, or nobody could say what the ranks between
 * them do.
 * Cost: linear in the ranks of the groups in use. */
#include "fx_impl.h"

#include "base/text/text.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* ==== do two captured ranks do the same, and does every message have its other end?
 *
 * Alike are graphs that call the same operators on tensors of the same shapes in the same order,
 * through storages that belong together in the same way, in groups of the same families, with peers
 * at the same places.  Where in a storage a tensor begins may differ: ranks keep their own part of
 * a common buffer. Messages are compared kind by kind: all of one rank to another with one tag, in
 * their order.
 * Cost: linear for two graphs; sorting for messages. */

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

/* Do they do the same, be it in other groups?  *why is NULL then; else it says how node *at of b
 * differs. */
static orr_code find_difference(const orr_fx *c,
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
    fx_place own = {0};
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

/* ==== all of it ==== */

/* ---- families ---- */

static uint64_t key_of(uint32_t family, uint32_t rank)
{
    return (uint64_t)family << 32 | rank;
}

static bool note_groups(fx_families *f)
{
    const orr_fx *c = f->c;
    for (uint32_t i = 0; i < c->group_count; i++) {
        const fx_group *g = &c->groups[i];
        if (!f->use[g->family])
            continue;
        for (uint32_t k = 0; k < g->count; k++) {
            const size_t at = g->first + k;
            f->group_of[at] = i;
            if (at > UINT32_MAX - 1 ||
                !orr_map_put(f->at, key_of(g->family, c->ranks[at]), (uint32_t)at, NULL))
                return false;
        }
    }
    return true;
}

/* The root of a scatter or gather has tensors that the others do not have.  With two roots every
 * place counts. */
static void note_use(fx_families *f, const fx_node *n, const fx_call *call)
{
    const uint32_t family = f->c->groups[n->group].family;
    uint8_t *use = &f->use[family];
    const bool is_rooted =
        call->role == FX_COLLECT && n->peer != FX_NO_PEER &&
        (call->collective == ORR_COLL_SCATTER || call->collective == ORR_COLL_GATHER);
    *use |= FX_USED;
    if (call->role != FX_COLLECT || (is_rooted && *use & FX_ROOT && f->root[family] != n->peer))
        *use |= FX_PLACES;
    if (!is_rooted)
        return;
    *use |= FX_ROOT;
    f->root[family] = (uint32_t)n->peer;
}

orr_code fx_families_init(fx_families *f, const orr_fx *c, const fx_calls *calls, orr_error *err)
{
    const uint32_t count = c->group_count ? c->groups[c->group_count - 1].family + 1 : 0;
    *f = (fx_families){.c = c,
                       .count = count,
                       .use = orr_alloc((size_t)count + 1, 1),
                       .root = orr_alloc((size_t)count + 1, sizeof *f->root),
                       .at = orr_map_create(64),
                       .group_of = orr_alloc(c->rank_count + 1, sizeof *f->group_of)};
    bool is_fine = f->use && f->root && f->at && f->group_of;
    for (size_t i = 0; i < c->graph_count && is_fine; i++) {
        const fx_graph *g = c->graphs[i];
        for (size_t k = 0; k < g->node_count; k++) {
            if (fx_is_communication(calls[i].at[k].role))
                note_use(f, &g->nodes[k], &calls[i].at[k]);
        }
    }
    is_fine = is_fine && note_groups(f);
    if (is_fine)
        return ORR_OK;
    fx_families_fini(f);
    return orr_no_memory(err);
}

void fx_families_fini(fx_families *f)
{
    orr_free(f->use);
    orr_free(f->root);
    orr_map_destroy(f->at);
    orr_free(f->group_of);
    *f = (fx_families){0};
}

bool fx_place_of(const fx_families *f, uint32_t family, uint32_t rank, fx_place *out)
{
    const uint32_t at = orr_map_find(f->at, key_of(family, rank), UINT32_MAX);
    if (at == UINT32_MAX)
        return false;
    out->group = f->group_of[at];
    out->place = (uint32_t)(at - f->c->groups[out->group].first);
    return true;
}

/* ---- how a rank is placed ---- */

typedef struct finder {
    const fx_families *f;
    uint32_t *used; /* numbers of families */
    size_t used_count;
    orr_map *by_place;  /* hash of a placing -> captured rank */
    uint32_t *captured; /* rank -> 1 + its graph; 0: was not run */
    uint32_t *next;     /* of the first of a class: that of the next class with the same placing */
    fx_classes *k;
} finder;

/* 0: in no group of the family; 1: in one; 2: at its root; with messages 1 + the place. */
static uint32_t placed(const finder *s, size_t i, uint32_t rank)
{
    const uint8_t use = s->f->use[s->used[i]];
    fx_place p;
    if (!fx_place_of(s->f, s->used[i], rank, &p))
        return 0;
    if (use & FX_PLACES)
        return p.place + 1;
    return use & FX_ROOT && p.place == s->f->root[s->used[i]] ? 2 : 1;
}

static bool placed_alike(const finder *s, uint32_t a, uint32_t b)
{
    for (size_t i = 0; i < s->used_count; i++) {
        if (placed(s, i, a) != placed(s, i, b))
            return false;
    }
    return true;
}

static uint64_t hash_place(const finder *s, uint32_t rank)
{
    uint64_t h = 0x9E3779B97F4A7C15u;
    for (size_t i = 0; i < s->used_count; i++) {
        h = (h ^ placed(s, i, rank)) * 0xFF51AFD7ED558CCDu;
        h ^= h >> 32;
    }
    return h;
}

/* The captured rank that is placed like this one; FX_NONE: there is none, and *free_key is where it
 * would be. */
static uint32_t find_like(const finder *s, uint32_t rank, uint64_t *free_key)
{
    for (uint64_t h = hash_place(s, rank);; h++) {
        const uint32_t graph = orr_map_find(s->by_place, h, FX_NONE);
        *free_key = h;
        if (graph == FX_NONE || placed_alike(s, s->f->c->graphs[graph]->rank, rank))
            return graph;
    }
}

/* ---- classes ---- */

static orr_code fail_unlike(
    const finder *s, uint32_t first, size_t i, size_t at, const char *why, orr_error *err)
{
    const orr_fx *c = s->f->c;
    const fx_graph *a = c->graphs[first], *b = c->graphs[i];
    const bool has_node = at < b->node_count;
    const orr_str op = has_node ? fx_text(b, FX_OPS, b->nodes[at].op) : orr_str_of("the end");
    return fx_fail(
        c, has_node ? b->nodes[at].byte : b->byte, err,
        "ranks %" PRIu32 " and %" PRIu32 " differ at node %zu of rank %" PRIu32 " (%.*s): "
        "%s; what the ranks that were not run do cannot be said: capture with --ranks all",
        a->rank, b->rank, at, b->rank, (int)(op.len < 60 ? op.len : 60), op.ptr, why);
}

/* Captured ranks that are placed alike share a class when they are alike.  Where all ranks were run
 * there may be several classes to a placing: a list of their first ranks. */
static orr_code class_captured(finder *s, size_t i, orr_error *err)
{
    const orr_fx *c = s->f->c;
    const bool has_all = c->graph_count == c->world_size;
    uint64_t key;
    size_t at;
    const char *why = NULL;
    uint32_t first = find_like(s, c->graphs[i]->rank, &key);
    s->k->class_of[i] = (uint32_t)i;
    s->next[i] = FX_NONE;
    if (first == FX_NONE)
        return orr_map_put(s->by_place, key, (uint32_t)i, NULL) ? ORR_OK : orr_no_memory(err);
    for (;; first = s->next[first]) {
        const orr_code code = find_difference(c, c->graphs[first], c->graphs[i], &at, &why, err);
        if (code)
            return code;
        if (why && !has_all)
            return fail_unlike(s, first, i, at, why, err);
        if (!why || s->next[first] == FX_NONE)
            break;
    }
    if (why)
        s->next[first] = (uint32_t)i;
    else
        s->k->class_of[i] = first;
    return ORR_OK;
}

static orr_code fail_alone(const finder *s, uint32_t rank, orr_error *err)
{
    char where[120] = ", which is in groups of other families";
    for (size_t i = 0; i < s->used_count; i++) {
        fx_place p;
        if (!(s->f->use[s->used[i]] & (FX_PLACES | FX_ROOT)))
            continue;
        if (fx_place_of(s->f, s->used[i], rank, &p))
            snprintf(where, sizeof where, ", place %" PRIu32 " of group %" PRIu32, p.place,
                     p.group);
        break;
    }
    return fx_fail(s->f->c, 0, err,
                   "no captured rank has the place of rank %" PRIu32
                   "%s: capture it too, with --ranks all",
                   rank, where);
}

static orr_code class_rank(finder *s, uint32_t rank, orr_error *err)
{
    uint64_t key;
    const uint32_t own = s->captured[rank];
    const uint32_t graph = own ? own - 1 : find_like(s, rank, &key);
    if (graph == FX_NONE)
        return fail_alone(s, rank, err);
    s->k->graph_of[rank] = graph;
    return ORR_OK;
}

static orr_code find_all(finder *s, orr_error *err)
{
    const orr_fx *c = s->f->c;
    orr_code code = ORR_OK;
    for (uint32_t i = 0; i < s->f->count; i++) {
        if (s->f->use[i])
            s->used[s->used_count++] = i;
    }
    for (size_t i = 0; i < c->graph_count && !code; i++) {
        s->captured[c->graphs[i]->rank] = (uint32_t)i + 1;
        code = class_captured(s, i, err);
    }
    for (uint32_t r = 0; r < c->world_size && !code; r++)
        code = class_rank(s, r, err);
    return code;
}

orr_code fx_classes_find(const fx_families *f, fx_classes *out, orr_error *err)
{
    const orr_fx *c = f->c;
    *out = (fx_classes){.graph_of = orr_alloc(c->world_size, sizeof *out->graph_of),
                        .class_of = orr_alloc(c->graph_count, sizeof *out->class_of)};
    finder s = {.f = f,
                .used = orr_alloc((size_t)f->count + 1, sizeof *s.used),
                .by_place = orr_map_create(c->graph_count),
                .captured = orr_alloc(c->world_size, sizeof *s.captured),
                .next = orr_alloc(c->graph_count, sizeof *s.next),
                .k = out};
    const bool is_fine =
        out->graph_of && out->class_of && s.used && s.by_place && s.captured && s.next;
    const orr_code code = is_fine ? find_all(&s, err) : orr_no_memory(err);
    orr_free(s.used);
    orr_map_destroy(s.by_place);
    orr_free(s.captured);
    orr_free(s.next);
    if (code)
        fx_classes_fini(out);
    return code;
}

void fx_classes_fini(fx_classes *k)
{
    orr_free(k->graph_of);
    orr_free(k->class_of);
    *k = (fx_classes){0};
}
