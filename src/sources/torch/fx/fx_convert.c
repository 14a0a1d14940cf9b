/* SPDX-License-Identifier: Apache-2.0 */
/* fx_convert.c - from captured ranks to the traces of all ranks.
 *
 * One body per kind of rank; groups and peers, in which its ranks differ, are holes with one value
 * per rank.  So a job of 100,000 ranks costs one table entry each. */
#include "fx_impl.h"

#include "base/arithmetic.h"
#include "base/memory/map.h"
#include "base/memory/sort.h"
#include "base/text/text.h"
#include "models/compute/atlas/chip_cost.h"
#include "models/compute/operators/operator_cost.h"
#include "trace/builder.h"
#include "trace/trace_impl.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* ==== do two captured ranks do the same, and is every message matched?
 *
 * Alike are graphs that call the same operators on tensors of the same shapes in the same order,
 * through storages that belong together in the same way, in groups of the same families, with peers
 * at the same places.  A tensor's offset in its storage may differ: ranks keep their own part of a
 * common buffer. Messages are compared by kind: all of one rank to another with one tag, in order.
 * Cost: linear for two graphs; sorting for messages. */

/* ---- alike ---- */

typedef struct pairing {
    const orr_fx *c;
    const fx_graph *a, *b;
    uint32_t *to_b, *to_a; /* storages: 1 + the other's number; 0: not seen yet */
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
    return same_storage(p, x->storage, y->storage) ? NULL : "a tensor that is elsewhere";
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

/* Do they do the same, possibly in other groups?  Then *why is NULL; else it tells how node *at of
 * b differs. */
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
        if (!orr_push(l->at, l->count, l->room,
                      (message){.family = c->groups[n->group].family,
                                .is_send = calls[i].role == FX_SEND,
                                .peer = n->peer,
                                .tag = n->tag == FX_NO_PEER ? 0 : n->tag,
                                .bytes = calls[i].bytes,
                                .node = i}))
            return false;
    }
    if (l->count)
        orr_sort(l->at, l->count, sizeof *l->at, by_kind_and_node);
    return true;
}

/* The number of messages of one kind, from `first` on. */
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
    letters *of; /* per captured rank: equal ranks may have different peers */
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

static uint64_t message_key(uint32_t family, uint32_t rank)
{
    return (uint64_t)family << 32 | rank;
}

/* False: no group of the family holds the rank. */
static bool place_of(const fx_families *f, uint32_t family, uint32_t rank, fx_place *out)
{
    const uint32_t at = orr_map_find(f->at, message_key(family, rank), UINT32_MAX);
    if (at == UINT32_MAX)
        return false;
    out->group = f->group_of[at];
    out->place = (uint32_t)(at - f->c->groups[out->group].first);
    return true;
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
    place_of(m->f, s->family, g->rank, &own);
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
                           " bytes, but its peer, rank %" PRIu32 ", has %" PRIu64,
                           g->rank, s[i].node, s[i].bytes, other, theirs->at[at + i].bytes);
    }
    return ORR_OK;
}

/* Matches every message of a captured rank with one in the graph its peer executes. */
static orr_code match_messages(const fx_families *f,
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

/* ==== which captured rank represents which others.
 *
 * A rank does what the captured rank does that is *placed* as it is: at the same place of its group
 * in every family whose groups have messages (the stages of a pipeline), at the root or not where
 * there are scatters or gathers, and in or out of a group in every other family that is used. Its
 * own groups are then those of the same families that hold it.  A captured rank does what it was
 * captured doing; two that are placed alike must be equal, or the behaviour of the ranks between
 * them would be undefined.
 * Cost: linear in the ranks of the groups in use. */

/* ---- families ---- */

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
                !orr_map_put(f->at, message_key(g->family, c->ranks[at]), (uint32_t)at, NULL))
                return false;
        }
    }
    return true;
}

/* The root of a scatter or gather has tensors that the others lack.  With two roots every place
 * counts. */
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

static void families_fini(fx_families *f)
{
    orr_free(f->use);
    orr_free(f->root);
    orr_map_destroy(f->at);
    orr_free(f->group_of);
    *f = (fx_families){0};
}

static orr_code families_init(fx_families *f,
                              const orr_fx *c,
                              const fx_calls *calls,
                              orr_error *err)
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
    families_fini(f);
    return orr_no_memory(err);
}

/* ---- how a rank is placed ---- */

typedef struct finder {
    const fx_families *f;
    uint32_t *used; /* numbers of families */
    size_t used_count;
    orr_map *by_place;  /* hash of a placing -> captured rank */
    uint32_t *captured; /* rank -> 1 + its graph; 0: was not run */
    /* per first rank of a class: that of the next class with the same placement */
    uint32_t *next;
    fx_classes *k;
} finder;

/* 0: in no group of the family; 1: in one; 2: at its root; with messages 1 + the place. */
static uint32_t placed(const finder *s, size_t i, uint32_t rank)
{
    const uint8_t use = s->f->use[s->used[i]];
    fx_place p;
    if (!place_of(s->f, s->used[i], rank, &p))
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

/* The captured rank placed like this one; FX_NONE: none, and *free_key is where it would be. */
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
        "ranks %" PRIu32 " and %" PRIu32 " differ at node %zu of rank %" PRIu32
        " (%.*s): %s; ranks that were not run cannot be derived: capture with --ranks all",
        a->rank, b->rank, at, b->rank, ORR_SHOWN(op, 60), why);
}

/* Captured ranks placed alike share a class if they are equal.  If all ranks were captured, a
 * placement may have several classes: a list of their first ranks. */
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
        if (place_of(s->f, s->used[i], rank, &p))
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

static void classes_fini(fx_classes *k)
{
    orr_free(k->graph_of);
    orr_free(k->class_of);
    *k = (fx_classes){0};
}

static orr_code classes_find(const fx_families *f, fx_classes *out, orr_error *err)
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
        classes_fini(out);
    return code;
}

/* ==== the nodes of one captured rank, with holes where the ranks of its class differ.
 *
 * Ids count up from 1 in the order of the program.  The collectives of a family of groups are one
 * stream and come one after the other, as all ranks of a group must agree on their order; so are
 * the messages to one rank, and those from one rank.  Streams go on beside each other and beside
 * computation. A hole is a group ("mine of this family") or a rank ("the third of mine of this
 * family"). */

enum { RECORD_LEAST = 80 }; /* bytes: its name and attributes, all of them short */

/* What differs between the ranks of a class. */
typedef struct fx_slot {
    uint32_t family;
    int64_t place; /* FX_NO_PEER: the group itself; else the rank at this place of it */
} fx_slot;

/* The nodes of one captured rank. */
typedef struct fx_body {
    const orr_fx *c;
    const fx_graph *g;
    const fx_calls *calls;
    const uint64_t *held;
    const orr_fx_options *opt;
    double slow; /* of the step's clock, on a chip */
    fx_slot *slots;
    size_t slot_count, slot_room;
    orr__builder b;
} fx_body;

typedef struct pen {
    fx_body *body;
    orr__builder *b;
    fx_values *values;
    orr_map *slots;   /* family and place -> slot */
    orr_map *streams; /* family, place and direction -> stream */
    uint32_t stream_count;
    uint64_t held; /* of the last node */
    orr_error *err;
} pen;

static uint64_t limit(uint64_t v)
{
    return v < 1 ? 1 : v > INT64_MAX ? INT64_MAX : v;
}

/* ---- holes ---- */

/* Fewer than 2^24 ranks, so a place and its direction fit beside the family. */
static uint64_t key_of(uint32_t family, int64_t place, unsigned direction)
{
    return (uint64_t)family << 28 | (uint64_t)(place == FX_NO_PEER ? 0 : place + 1) << 2 |
           direction;
}

static orr_code add_hole(pen *p, orr_hole_field field, uint32_t family, int64_t place)
{
    fx_body *body = p->body;
    const uint64_t key = key_of(family, place, 0);
    uint32_t slot = orr_map_find(p->slots, key, UINT32_MAX);
    if (slot == UINT32_MAX) {
        slot = (uint32_t)body->slot_count;
        if (!orr_grow(&body->slots, &body->slot_room, body->slot_count + 1) ||
            !orr_map_put(p->slots, key, slot, NULL))
            return orr_no_memory(p->err);
        body->slots[body->slot_count++] = (fx_slot){family, place};
    }
    orr__build_hole(p->b, field, slot);
    return ORR_OK;
}

static orr_code find_stream(pen *p, uint64_t key, uint32_t *out)
{
    *out = orr_map_find(p->streams, key, UINT32_MAX);
    if (*out != UINT32_MAX)
        return ORR_OK;
    *out = p->stream_count++;
    return orr_map_put(p->streams, key, *out, NULL) ? ORR_OK : orr_no_memory(p->err);
}

/* ---- one node ---- */

static void put_origin(pen *p, const fx_node *n)
{
    static const char *const phases[] = {"setup", "forward", "backward", "optimizer"};
    const fx_graph *g = p->body->g;
    orr__put_text(p->b, ORR__ATTR_PHASE, orr_str_of(phases[n->phase]));
    const orr_str module = n->module == FX_NONE ? (orr_str){0} : fx_text(g, FX_MODULES, n->module);
    const orr_str line = n->line == FX_NONE ? (orr_str){0} : fx_text(g, FX_LINES, n->line);
    if (module.len)
        orr__put_text(p->b, ORR__ATTR_MODULE, module);
    if (line.len)
        orr__put_text(p->b, ORR__ATTR_LINE, line);
}

static void put_held(pen *p, size_t i)
{
    const uint64_t held = p->body->held[i];
    if (held != p->held)
        orr__put_uint(p->b, ORR__ATTR_HELD_BYTES, held);
    p->held = held;
}

/* ---- durations on a chip ---- */

/* A kernel that the chip cannot run takes no time. */
static chip_cost cost_of(const fx_body *body, const fx_call *call)
{
    const orr_chip *chip = body->opt->chip;
    chip_cost out = {0}, one;
    orr_kernel k;
    orr_str list = orr_intern_get(body->calls->texts, call->kernels);
    while (list.len && orr_kernel_next(&list, &k, NULL) == ORR_OK) {
        if (!orr__chip_cost(chip, &k, 1, &one))
            continue;
        out.clocked_us += one.clocked_us;
        out.fixed_us += one.fixed_us;
        out.flops += one.flops;
    }
    if (call->kernels)
        return out;
    return orr__chip_roofline(chip->peak_tflops[ORR_TYPE_BF16] * 1e12, chip->memory_GBps * 1e9,
                              chip->launch_us, (double)call->flops,
                              (double)call->bytes_read + (double)call->bytes_written);
}

/* The highest clock divided by the clock under the power cap, over the whole step. */
static double slowdown_of(const fx_body *body)
{
    chip_cost sum = {0};
    for (size_t i = 0; body->opt->chip && i < body->g->node_count; i++) {
        if (body->calls->at[i].role != FX_COMPUTE)
            continue;
        const chip_cost c = cost_of(body, &body->calls->at[i]);
        sum.fixed_us += c.fixed_us;
        sum.clocked_us += c.clocked_us;
        sum.flops += c.flops;
    }
    return body->opt->chip
               ? orr__chip_slowdown_of(body->opt->chip, &sum, orr_highest_of(body->c->world_size))
               : 1;
}

static void put_duration(pen *p, const fx_call *call)
{
    const orr_fx_options *o = p->body->opt;
    if (o->chip) {
        const chip_cost t = cost_of(p->body, call);
        orr__build_duration_ps(p->b, (t.fixed_us + t.clocked_us * p->body->slow) * 1e6);
        return;
    }
    if (!(o->peak_flops > 0))
        return;
    const operator_cost cost = {.flops = call->flops,
                                .bytes_read = call->bytes_read,
                                .bytes_written = call->bytes_written,
                                .vector_work = call->vector_work,
                                .is_product = call->is_product};
    const operator_rates rates = {o->peak_flops, o->vector_flops, (double)o->memory_rate};
    const double work = orr__operator_seconds(&cost, &rates) * 1e12;
    orr__build_duration_ps(p->b, work + (double)o->overhead);
}

/* after: the node before in its stream; 0: none. */
static orr_code put(pen *p, size_t i, uint32_t stream, uint64_t after)
{
    const fx_deps *deps;
    orr__builder *b = p->b;
    const orr_code code =
        fx_values_next(p->values, (uint32_t)i, b->node.id, after, stream, &deps, p->err);
    if (code)
        return code;
    put_origin(p, &p->body->g->nodes[i]);
    orr__put_on_device(b);
    b->node.data_deps = deps->data;
    b->node.data_count = deps->data_count;
    b->node.ctrl_deps = deps->ctrl;
    b->node.ctrl_count = deps->ctrl_count;
    orr__build_add(b);
    return b->code;
}

static orr_code put_compute(pen *p, size_t i)
{
    const fx_call *call = &p->body->calls->at[i];
    uint64_t bytes;
    if (__builtin_add_overflow(call->bytes_read, call->bytes_written, &bytes))
        bytes = INT64_MAX;
    put_duration(p, call);
    orr__put_work(p->b, limit(call->flops), limit(bytes));
    if (call->kernels)
        orr__put_text(p->b, ORR__ATTR_KERNELS,
                      orr_intern_get(p->body->calls->texts, call->kernels));
    put_held(p, i);
    orr__put_int(p->b, ORR__ATTR_STREAM, 0);
    return put(p, i, 0, 0);
}

static orr_code put_on_stream(pen *p, size_t i, uint32_t stream)
{
    orr__put_int(p->b, ORR__ATTR_STREAM, (int64_t)stream + 1);
    return put(p, i, stream, orr__build_in_stream(p->b, stream));
}

/* The root of a broadcast or scatter is its source, of a reduce or gather its destination. */
static orr_code put_root(pen *p, const fx_node *n, uint8_t collective, uint32_t family)
{
    const bool is_source = collective == ORR_COLL_BROADCAST || collective == ORR_COLL_SCATTER;
    const bool is_target = collective == ORR_COLL_REDUCE || collective == ORR_COLL_GATHER;
    if (n->peer == FX_NO_PEER || (!is_source && !is_target))
        return ORR_OK;
    orr__put_as(p->b, is_source ? ORR__ATTR_COMM_SRC : ORR__ATTR_COMM_DST, ORR_VALUE_INT64, 0);
    return add_hole(p, is_source ? ORR_HOLE_COMM_SRC : ORR_HOLE_COMM_DST, family, n->peer);
}

static orr_code put_collective(pen *p, size_t i)
{
    const fx_node *n = &p->body->g->nodes[i];
    const fx_call *call = &p->body->calls->at[i];
    const uint32_t family = p->body->c->groups[n->group].family;
    uint32_t stream;
    orr_code code = find_stream(p, key_of(family, FX_NO_PEER, 0), &stream);
    if (code)
        return code;
    p->b->node.type = ORR_NODE_COMM_COLL;
    orr__put_collective(p->b, call->collective, call->bytes);
    orr__put_text(p->b, ORR__ATTR_PG_NAME, orr_str_of("1"));
    if ((code = add_hole(p, ORR_HOLE_PG_NAME, family, FX_NO_PEER)) ||
        (code = put_root(p, n, call->collective, family)))
        return code;
    return put_on_stream(p, i, stream);
}

static orr_code put_message(pen *p, size_t i)
{
    const fx_node *n = &p->body->g->nodes[i];
    const fx_call *call = &p->body->calls->at[i];
    const uint32_t family = p->body->c->groups[n->group].family;
    const bool is_send = call->role == FX_SEND;
    uint32_t stream;
    orr_code code = find_stream(p, key_of(family, n->peer, is_send ? 1 : 2), &stream);
    if (code)
        return code;
    p->b->node.type = is_send ? ORR_NODE_COMM_SEND : ORR_NODE_COMM_RECV;
    orr__put_uint(p->b, ORR__ATTR_COMM_SIZE, call->bytes);
    orr__put_as(p->b, is_send ? ORR__ATTR_COMM_DST : ORR__ATTR_COMM_SRC, ORR_VALUE_INT64, 0);
    orr__put_as(p->b, ORR__ATTR_COMM_TAG, ORR_VALUE_INT64, n->tag == FX_NO_PEER ? 0 : n->tag);
    if ((code = add_hole(p, is_send ? ORR_HOLE_COMM_DST : ORR_HOLE_COMM_SRC, family, n->peer)))
        return code;
    return put_on_stream(p, i, stream);
}

static orr_code put_node(pen *p, size_t i)
{
    const fx_graph *g = p->body->g;
    const fx_deps *none;
    orr__build_node(p->b, ORR_NODE_COMP, fx_text(g, FX_OPS, g->nodes[i].op));
    switch (p->body->calls->at[i].role) {
    case FX_COMPUTE:
        return put_compute(p, i);
    case FX_COLLECT:
        return put_collective(p, i);
    case FX_SEND:
    case FX_RECV:
        return put_message(p, i);
    case FX_OUTSIDE:
        return ORR_OK;
    default:
        return fx_values_next(p->values, (uint32_t)i, 0, 0, 0, &none, p->err);
    }
}

/* ---- all of them ---- */

static size_t count_nodes(const fx_body *b)
{
    size_t count = 0;
    for (size_t i = 0; i < b->g->node_count; i++) {
        const uint8_t role = b->calls->at[i].role;
        count += role == FX_COMPUTE || fx_is_communication(role);
    }
    return count;
}

static orr_code open_trace(fx_body *body)
{
    orr__builder *b = &body->b;
    const size_t nodes = count_nodes(body); /* their records were bytes of a file: no overflow */
    orr__put_text(b, ORR__ATTR_SCHEMA, orr_str_of("orrery capture 1"));
    orr__put_uint(b, ORR__ATTR_STREAMS, 1);
    orr__build_trace(b, "1.0.0");
    b->next_id = 1;
    return b->code ? b->code : orr__trace_expect(b->trace, nodes, nodes * RECORD_LEAST, b->err);
}

/* c, g, calls, held and opt are set. */
static orr_code make_nodes(fx_body *body, orr_error *err)
{
    pen p = {.body = body,
             .b = &body->b,
             .slots = orr_map_create(16),
             .streams = orr_map_create(16),
             .err = err};
    orr__build_open(&body->b, err);
    body->slow = slowdown_of(body);
    orr_code code = p.slots && p.streams ? open_trace(body) : orr_no_memory(err);
    if (!code)
        code = fx_values_create(body->g, body->calls, &p.values, err);
    for (size_t i = 0; i < body->g->node_count && !code; i++)
        code = put_node(&p, i);
    fx_values_destroy(p.values);
    orr_map_destroy(p.slots);
    orr_map_destroy(p.streams);
    return code;
}

/* ==== all ranks ==== */

typedef struct job {
    const orr_fx *c;
    const orr_fx_options *opt;
    fx_calls *calls; /* of each captured rank */
    fx_families families;
    fx_classes classes;
    fx_body *bodies; /* of captured ranks that stand for a class: their slots */
    uint32_t *class_number;
    int64_t *values; /* scratch: one for each slot of a class */
    size_t value_room;
    orr_set *set;
    orr_fx_rank_report *reports;
    orr_arena *arena; /* of the report */
    orr_error *err;
} job;

/* ---- what is reported ---- */

static void count_call(orr_fx_rank_report *r, const fx_call *call)
{
    r->nodes += call->role == FX_COMPUTE || fx_is_communication(call->role);
    r->views += call->role == FX_FOLD;
    r->setup += call->role == FX_OUTSIDE;
    r->flops = orr_sat_add(r->flops, call->flops);
    r->bytes_read = orr_sat_add(r->bytes_read, call->bytes_read);
    r->bytes_written = orr_sat_add(r->bytes_written, call->bytes_written);
    r->sends += call->role == FX_SEND;
    r->receives += call->role == FX_RECV;
    if (call->role == FX_SEND)
        r->send_bytes = orr_sat_add(r->send_bytes, call->bytes);
    if (call->role != FX_COLLECT)
        return;
    r->collectives++;
    r->collective_bytes = orr_sat_add(r->collective_bytes, call->bytes);
}

static void count_calls(job *j, size_t i)
{
    orr_fx_rank_report *r = &j->reports[i];
    const fx_graph *g = j->c->graphs[i];
    r->rank = g->rank;
    r->calls = g->node_count;
    for (size_t k = 0; k < g->node_count; k++)
        count_call(r, &j->calls[i].at[k]);
}

static int by_name(const void *a, const void *b)
{
    const orr_fx_unknown *x = a, *y = b;
    const size_t n = x->name.len < y->name.len ? x->name.len : y->name.len;
    const int order = n ? memcmp(x->name.ptr, y->name.ptr, n) : 0;
    return order ? order : (x->name.len > y->name.len) - (x->name.len < y->name.len);
}

/* Counts, per operator, calls that the table does not know. */
static bool note_unknown(const job *j, size_t i, orr_intern *names, uint64_t **counts, size_t *room)
{
    const fx_graph *g = j->c->graphs[i];
    for (size_t k = 0; k < g->node_count; k++) {
        uint32_t number;
        if (!j->calls[i].at[k].is_unknown)
            continue;
        const size_t before = orr_intern_count(names);
        if (!orr_intern_add(names, fx_text(g, FX_OPS, g->nodes[k].op), &number) ||
            !orr_grow(counts, room, (size_t)number + 1))
            return false;
        if (number == before)
            (*counts)[number] = 0;
        (*counts)[number]++;
    }
    return true;
}

static bool list_unknown(job *j, orr_fx_report *out)
{
    orr_intern *names = orr_intern_create();
    uint64_t *counts = NULL;
    size_t room = 0;
    bool is_fine = names != NULL;
    for (size_t i = 0; i < j->c->graph_count && is_fine; i++)
        is_fine = note_unknown(j, i, names, &counts, &room);
    const uint32_t count = is_fine ? orr_intern_count(names) : 0;
    orr_fx_unknown *list =
        is_fine ? orr_arena_new(j->arena, (size_t)count + 1, orr_fx_unknown) : NULL;
    for (uint32_t i = 0; i < count && list; i++) {
        const orr_str name = orr_intern_get(names, i);
        const char *copy = orr_arena_text(j->arena, name);
        is_fine = is_fine && copy;
        list[i] = (orr_fx_unknown){.name = {copy, name.len}, .count = counts[i]};
    }
    is_fine = is_fine && list;
    if (is_fine && count)
        orr_sort(list, count, sizeof *list, by_name);
    out->unknown = list;
    out->unknown_count = count;
    if (names)
        orr_intern_destroy(names);
    orr_free(counts);
    return is_fine;
}

static bool copy_notes(job *j, orr_fx_report *out)
{
    const orr_fx *c = j->c;
    orr_fx_note *notes = orr_arena_new(j->arena, c->note_count + 1, orr_fx_note);
    for (size_t i = 0; i < c->note_count && notes; i++) {
        const char *copy = orr_arena_text(j->arena, c->notes[i].text);
        if (!copy)
            return false;
        notes[i] = (orr_fx_note){.text = {copy, c->notes[i].text.len}, .count = c->notes[i].count};
    }
    out->notes = notes;
    out->note_count = c->note_count;
    return notes != NULL;
}

static orr_code fill_report(job *j, orr_fx_report *out)
{
    *out = (orr_fx_report){.world_size = j->c->world_size,
                           .class_count = orr_set_class_count(j->set),
                           .ranks = j->reports,
                           .rank_count = j->c->graph_count};
    for (size_t i = 0; i < j->c->graph_count; i++)
        j->reports[i].like = j->c->graphs[j->classes.class_of[i]]->rank;
    for (uint32_t r = 0; r < j->c->world_size; r++)
        j->reports[j->classes.class_of[j->classes.graph_of[r]]].ranks_like_it++;
    if (!list_unknown(j, out) || !copy_notes(j, out))
        return orr_no_memory(j->err);
    out->owner = j->arena;
    j->arena = NULL;
    return ORR_OK;
}

/* ---- bodies ---- */

static orr_code make_body(job *j, size_t i)
{
    const fx_graph *g = j->c->graphs[i];
    fx_body *b = &j->bodies[i];
    uint64_t *held = NULL;
    orr_code code = fx_memory(g, &j->calls[i], &held, &j->reports[i].memory, j->err);
    if (code || j->classes.class_of[i] != i) {
        orr_free(held);
        return code;
    }
    *b = (fx_body){.c = j->c, .g = g, .calls = &j->calls[i], .held = held, .opt = j->opt};
    code = make_nodes(b, j->err);
    orr_free(held);
    b->held = NULL;
    if (!code)
        return orr__build_class(&b->b, j->set, (uint32_t)b->slot_count, &j->class_number[i]);
    orr__build_fini(&b->b);
    return code;
}

/* ---- ranks ---- */

static orr_code add_rank(job *j, uint32_t rank)
{
    const orr_fx *c = j->c;
    const uint32_t head = j->classes.class_of[j->classes.graph_of[rank]];
    const fx_body *b = &j->bodies[head];
    if (!orr_grow(&j->values, &j->value_room, b->slot_count + 1))
        return orr_no_memory(j->err);
    for (size_t s = 0; s < b->slot_count; s++) {
        fx_place p;
        if (!place_of(&j->families, b->slots[s].family, rank, &p))
            return orr_fail(j->err, ORR_EBUG, NULL, "rank %u has no group of a family that it uses",
                            rank);
        j->values[s] =
            b->slots[s].place == FX_NO_PEER
                ? (int64_t)p.group + 1
                : (int64_t)c->ranks[c->groups[p.group].first + (size_t)b->slots[s].place];
    }
    return orr_set_add_rank_values(j->set, j->class_number[head], 0, j->values, j->err);
}

static orr_code add_groups(job *j)
{
    const orr_fx *c = j->c;
    orr_code code = ORR_OK;
    for (size_t i = 0; i < c->group_count && !code; i++) {
        const fx_group *g = &c->groups[i];
        if (j->families.use[g->family])
            code = orr_set_add_group(j->set, i + 1, c->ranks + g->first, g->count, j->err);
    }
    return code;
}

/* ---- everything ---- */

static orr_code make_calls(job *j)
{
    orr_code code = ORR_OK;
    for (size_t i = 0; i < j->c->graph_count && !code; i++) {
        code = fx_calls_make(j->c, j->c->graphs[i], &j->calls[i], j->err);
        if (!code)
            count_calls(j, i);
    }
    return code;
}

static orr_code make_set(job *j)
{
    const orr_fx *c = j->c;
    orr_code code = make_calls(j);
    if (code || (code = families_init(&j->families, c, j->calls, j->err)) ||
        (code = classes_find(&j->families, &j->classes, j->err)) ||
        (code = match_messages(&j->families, &j->classes, j->calls, j->err)) ||
        (code = orr_set_create(&j->set, j->err)))
        return code;
    for (size_t i = 0; i < c->graph_count && !code; i++)
        code = make_body(j, i);
    for (uint32_t r = 0; r < c->world_size && !code; r++)
        code = add_rank(j, r);
    return code ? code : add_groups(j);
}

static bool open_job(job *j)
{
    const size_t count = j->c->graph_count;
    j->arena = orr_arena_create();
    j->calls = orr_alloc(count, sizeof *j->calls);
    j->bodies = orr_alloc(count, sizeof *j->bodies);
    j->class_number = orr_alloc(count, sizeof *j->class_number);
    j->reports = j->arena ? orr_arena_new(j->arena, count, orr_fx_rank_report) : NULL;
    return j->calls && j->bodies && j->class_number && j->reports;
}

static void close_job(job *j)
{
    for (size_t i = 0; i < j->c->graph_count; i++) {
        if (j->calls)
            fx_calls_fini(&j->calls[i]);
        if (j->bodies)
            orr_free(j->bodies[i].slots);
    }
    orr_free(j->calls);
    orr_free(j->bodies);
    orr_free(j->class_number);
    orr_free(j->values);
    families_fini(&j->families);
    classes_fini(&j->classes);
    orr_arena_destroy(j->arena);
}

orr_code orr_fx_convert(const orr_fx *c,
                        const orr_fx_options *opt,
                        orr_set **out,
                        orr_fx_report *report,
                        orr_error *err)
{
    const orr_fx_options defaults = {0};
    job j = {.c = c, .opt = opt ? opt : &defaults, .err = err};
    orr_code code = open_job(&j) ? make_set(&j) : orr_no_memory(err);
    if (!code && report)
        code = fill_report(&j, report);
    if (code) {
        orr_set_close(j.set);
        j.set = NULL;
    }
    *out = j.set;
    close_job(&j);
    return code;
}

void orr_fx_report_fini(orr_fx_report *r)
{
    orr_arena_destroy(r->owner);
    *r = (orr_fx_report){0};
}
