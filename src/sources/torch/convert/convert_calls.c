/* SPDX-License-Identifier: Apache-2.0 */
/* convert_calls.c - which nodes communicate: one for each call, neither more nor fewer.
 *
 * One all-reduce shows up to four times, each inside the one before: the operator (c10d::allreduce_), its description
 * (record_param_comms), the backend's annotation (nccl:all_reduce) and the kernel.  The innermost of what is there is
 * the communication; the others are host work around it.
 *
 * Two things are not nested.  A backend that works in threads of its own (gloo) has its annotation behind the
 * operator, not inside; they are paired in order.  And calls that were coalesced have one kernel between them, at the
 * end: then the calls communicate, and the kernel ends when they have ended. */
#include "conversion.h"

#include "base/text/text.h"

enum { LEVELS = 12, REACH = 256 };

/* ---- inside out ---- */

typedef struct finder {
    orr__conversion *c;
    uint8_t *is_covered; /* something inside it communicates */
    uint32_t *next_host; /* the next host node of the same thread */
} finder;

/* The calls around a node are accounted for by it. */
static void cover_parents(finder *f, uint32_t place)
{
    uint32_t up = f->c->parent[place];
    for (int level = 0; level < LEVELS && up != ORR__NO_PLACE; level++) {
        if (f->c->said[up] != ORR__WORD_NONE || orr__is_call_name(orr__node_at(f->c, up)->name))
            f->is_covered[up] = 1;
        up = f->c->parent[up];
    }
}

static bool is_communication(orr__word word)
{
    return word == ORR__WORD_COLLECTIVE || word == ORR__WORD_SEND || word == ORR__WORD_RECV;
}

/* What a host node says, if it is a call: its attributes before its name. */
static orr__said said_by(const orr__conversion *c, uint32_t place)
{
    const orr__linked_node *n = orr__node_at(c, place);
    const orr__linked_comm *comm = n->comm == ORR__NO_COMM ? NULL : &c->l->comms[n->comm];
    orr__recorded recorded;
    if (!orr__is_call_name(n->name))
        return (orr__said){ORR__WORD_NONE, 0};
    if (comm && comm->collective.len)
        return orr__word_of_call(comm->collective);
    if (!orr_str_is(n->name, "record_param_comms"))
        return orr__word_of_call(n->name);
    return orr__io_recorded(n->inputs, &recorded, c->lacks_memory)
               ? orr__word_of_call(recorded.collective)
               : (orr__said){ORR__WORD_NONE, 0};
}

static void find_kernels(finder *f)
{
    orr__conversion *c = f->c;
    for (uint32_t p = 0; p < c->count; p++) {
        const orr__linked_node *n = orr__node_at(c, p);
        const bool is_device = n->kind == ORR__ON_DEVICE;
        c->role[p] = n->kind == ORR__GROUPS ? ORR__ROLE_GROUPS
                     : !is_device           ? ORR__ROLE_HOST
                                            : ORR__ROLE_KERNEL;
        c->said[p] = is_device ? ORR__WORD_NONE : (uint8_t)said_by(c, p).word;
        if (is_device && !n->is_memory && orr__is_comm_kernel(n->name))
            c->role[p] = ORR__ROLE_COMM;
    }
    for (uint32_t p = 0; p < c->count; p++) {
        if (c->role[p] == ORR__ROLE_COMM)
            cover_parents(f, p);
    }
}

/* ---- operators and the annotations behind them ---- */

static bool same_call(const orr__conversion *c, uint32_t a, uint32_t b)
{
    const orr__said x = said_by(c, a), y = said_by(c, b);
    return x.word == y.word && (x.word != ORR__WORD_COLLECTIVE || x.kind == y.kind);
}

/* The annotation that belongs to an operator: the next call of its thread that is nobody else's. */
static uint32_t find_behind(const finder *f, uint32_t place)
{
    const orr__conversion *c = f->c;
    uint32_t p = f->next_host[place];
    for (int steps = 0; p != ORR__NO_PLACE && steps < REACH; steps++, p = f->next_host[p]) {
        if (orr__is_operator_name(orr__node_at(c, p)->name) && c->said[p] != ORR__WORD_NONE)
            return ORR__NO_PLACE;
        if (c->role[p] == ORR__ROLE_CALL && c->partner[p] == ORR__NO_PLACE &&
            orr__is_backend_name(orr__node_at(c, p)->name) && same_call(c, place, p))
            return p;
    }
    return ORR__NO_PLACE;
}

static void find_call(finder *f, uint32_t place)
{
    orr__conversion *c = f->c;
    if (c->role[place] != ORR__ROLE_HOST || f->is_covered[place] ||
        !is_communication((orr__word)c->said[place]))
        return;
    if (orr__is_operator_name(orr__node_at(c, place)->name)) {
        const uint32_t behind = find_behind(f, place);
        if (behind != ORR__NO_PLACE) {
            c->partner[behind] = place;
            return;
        }
    }
    c->role[place] = ORR__ROLE_CALL;
    cover_parents(f, place);
}

/* ---- calls that ran together ---- */

static bool is_together(const orr__conversion *c, uint32_t kernel)
{
    uint32_t up = c->parent[kernel];
    for (int level = 0; level < LEVELS && up != ORR__NO_PLACE; level++, up = c->parent[up]) {
        if (c->said[up] != ORR__WORD_NONE)
            return c->said[up] == ORR__WORD_TOGETHER;
    }
    return false;
}

/* Calls of the thread before the kernel's own, back to those of another kernel. */
static void gather_calls(finder *f, uint32_t kernel, const uint32_t *before)
{
    orr__conversion *c = f->c;
    uint32_t p = c->parent[kernel];
    for (int steps = 0; p != ORR__NO_PLACE && steps < REACH; steps++, p = before[p]) {
        if (c->role[p] != ORR__ROLE_CALL)
            continue;
        if (c->partner[p] != ORR__NO_PLACE)
            return;
        c->partner[p] = kernel;
        c->role[kernel] = ORR__ROLE_TOGETHER;
    }
}

static orr_code find_together(finder *f)
{
    orr__conversion *c = f->c;
    uint32_t *before = orr_arena_new(c->arena, (size_t)c->count + 1, uint32_t);
    if (!before)
        return orr_no_memory(c->err);
    memset(before, 0xFF, ((size_t)c->count + 1) * sizeof *before);
    for (uint32_t p = 0; p < c->count; p++) {
        if (f->next_host[p] != ORR__NO_PLACE)
            before[f->next_host[p]] = p;
    }
    for (uint32_t p = 0; p < c->count; p++) {
        if (c->role[p] == ORR__ROLE_COMM && is_together(c, p))
            gather_calls(f, p, before);
    }
    return ORR_OK;
}

/* ---- all of it ---- */

static orr_code find_neighbours(finder *f)
{
    orr__conversion *c = f->c;
    orr_map *next = orr_map_create(64);
    bool ok = next;
    for (uint32_t p = c->count; ok && p-- > 0;) {
        f->next_host[p] = ORR__NO_PLACE;
        if (orr__node_at(c, p)->kind == ORR__ON_DEVICE)
            continue;
        const uint64_t thread = (uint64_t)orr__node_at(c, p)->tid;
        f->next_host[p] = orr_map_find(next, thread, ORR__NO_PLACE);
        ok = orr_map_put(next, thread, p, NULL);
    }
    orr_map_destroy(next);
    return ok ? ORR_OK : orr_no_memory(c->err);
}

orr_code orr__find_calls(orr__conversion *c)
{
    finder f = {.c = c,
                .is_covered = orr_arena_new(c->arena, (size_t)c->count + 1, uint8_t),
                .next_host = orr_arena_new(c->arena, (size_t)c->count + 1, uint32_t)};
    if (!f.is_covered || !f.next_host)
        return orr_no_memory(c->err);
    const orr_code code = find_neighbours(&f);
    if (code)
        return code;
    find_kernels(&f);
    for (uint32_t p = c->count; p-- > 0;) /* what is inside has the larger id */
        find_call(&f, p);
    return find_together(&f);
}
