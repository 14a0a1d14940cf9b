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
    conv_state *c;
    uint8_t *is_covered; /* something inside it communicates */
    uint32_t *next_host; /* the next host node of the same thread */
} finder;

/* The calls around a node are accounted for by it. */
static void cover_parents(finder *f, uint32_t place)
{
    uint32_t up = f->c->parent[place];
    for (int level = 0; level < LEVELS && up != CONV_NONE; level++) {
        if (f->c->said[up] != CONV_WORD_NONE || conv_is_call_name(conv_node(f->c, up)->name))
            f->is_covered[up] = 1;
        up = f->c->parent[up];
    }
}

static bool is_communication(conv_word word)
{
    return word == CONV_WORD_COLLECTIVE || word == CONV_WORD_SEND || word == CONV_WORD_RECV;
}

/* What a host node says, if it is a call: its attributes before its name. */
static conv_said said_by(const conv_state *c, uint32_t place)
{
    const linked_node *n = conv_node(c, place);
    const linked_comm *comm = n->comm == LINKED_NO_COMM ? NULL : &c->l->comms[n->comm];
    conv_recorded recorded;
    if (!conv_is_call_name(n->name))
        return (conv_said){CONV_WORD_NONE, 0};
    if (comm && comm->collective.len)
        return conv_word_of_call(comm->collective);
    if (!orr_str_is(n->name, "record_param_comms"))
        return conv_word_of_call(n->name);
    return conv_io_recorded(n->inputs, &recorded, c->lacks_memory)
               ? conv_word_of_call(recorded.collective)
               : (conv_said){CONV_WORD_NONE, 0};
}

static void find_kernels(finder *f)
{
    conv_state *c = f->c;
    for (uint32_t p = 0; p < c->count; p++) {
        const linked_node *n = conv_node(c, p);
        const bool is_device = n->kind == LINKED_ON_DEVICE;
        c->role[p] = n->kind == LINKED_GROUPS ? CONV_GROUPS : !is_device ? CONV_HOST : CONV_KERNEL;
        c->said[p] = is_device ? CONV_WORD_NONE : (uint8_t)said_by(c, p).word;
        if (is_device && !n->is_memory && conv_is_comm_kernel(n->name))
            c->role[p] = CONV_COMM;
    }
    for (uint32_t p = 0; p < c->count; p++) {
        if (c->role[p] == CONV_COMM)
            cover_parents(f, p);
    }
}

/* ---- operators and the annotations behind them ---- */

static bool same_call(const conv_state *c, uint32_t a, uint32_t b)
{
    const conv_said x = said_by(c, a), y = said_by(c, b);
    return x.word == y.word && (x.word != CONV_WORD_COLLECTIVE || x.kind == y.kind);
}

/* The annotation that belongs to an operator: the next call of its thread that is nobody else's. */
static uint32_t find_behind(const finder *f, uint32_t place)
{
    const conv_state *c = f->c;
    uint32_t p = f->next_host[place];
    for (int steps = 0; p != CONV_NONE && steps < REACH; steps++, p = f->next_host[p]) {
        if (conv_is_operator_name(conv_node(c, p)->name) && c->said[p] != CONV_WORD_NONE)
            return CONV_NONE;
        if (c->role[p] == CONV_CALL && c->partner[p] == CONV_NONE &&
            conv_is_backend_name(conv_node(c, p)->name) && same_call(c, place, p))
            return p;
    }
    return CONV_NONE;
}

static void find_call(finder *f, uint32_t place)
{
    conv_state *c = f->c;
    if (c->role[place] != CONV_HOST || f->is_covered[place] ||
        !is_communication((conv_word)c->said[place]))
        return;
    if (conv_is_operator_name(conv_node(c, place)->name)) {
        const uint32_t behind = find_behind(f, place);
        if (behind != CONV_NONE) {
            c->partner[behind] = place;
            return;
        }
    }
    c->role[place] = CONV_CALL;
    cover_parents(f, place);
}

/* ---- calls that ran together ---- */

static bool is_together(const conv_state *c, uint32_t kernel)
{
    uint32_t up = c->parent[kernel];
    for (int level = 0; level < LEVELS && up != CONV_NONE; level++, up = c->parent[up]) {
        if (c->said[up] != CONV_WORD_NONE)
            return c->said[up] == CONV_WORD_TOGETHER;
    }
    return false;
}

/* Calls of the thread before the kernel's own, back to those of another kernel. */
static void gather_calls(finder *f, uint32_t kernel, const uint32_t *before)
{
    conv_state *c = f->c;
    uint32_t p = c->parent[kernel];
    for (int steps = 0; p != CONV_NONE && steps < REACH; steps++, p = before[p]) {
        if (c->role[p] != CONV_CALL)
            continue;
        if (c->partner[p] != CONV_NONE)
            return;
        c->partner[p] = kernel;
        c->role[kernel] = CONV_TOGETHER;
    }
}

static orr_code find_together(finder *f)
{
    conv_state *c = f->c;
    uint32_t *before = orr_arena_new(c->arena, (size_t)c->count + 1, uint32_t);
    if (!before)
        return orr_no_memory(c->err);
    memset(before, 0xFF, ((size_t)c->count + 1) * sizeof *before);
    for (uint32_t p = 0; p < c->count; p++) {
        if (f->next_host[p] != CONV_NONE)
            before[f->next_host[p]] = p;
    }
    for (uint32_t p = 0; p < c->count; p++) {
        if (c->role[p] == CONV_COMM && is_together(c, p))
            gather_calls(f, p, before);
    }
    return ORR_OK;
}

/* ---- all of it ---- */

static orr_code find_neighbours(finder *f)
{
    conv_state *c = f->c;
    orr_map *next = orr_map_create(64);
    bool ok = next;
    for (uint32_t p = c->count; ok && p-- > 0;) {
        f->next_host[p] = CONV_NONE;
        if (conv_node(c, p)->kind == LINKED_ON_DEVICE)
            continue;
        const uint64_t thread = (uint64_t)conv_node(c, p)->tid;
        f->next_host[p] = orr_map_find(next, thread, CONV_NONE);
        ok = orr_map_put(next, thread, p, NULL);
    }
    orr_map_destroy(next);
    return ok ? ORR_OK : orr_no_memory(c->err);
}

orr_code conv_find_calls(conv_state *c)
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
