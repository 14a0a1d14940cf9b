/* SPDX-License-Identifier: Apache-2.0 */
/* fold_unfold.c - separates symmetric ranks between two events: each simulated rank becomes
 * several, with everything it has in flight (docs/design/folding.md, "Symmetry").
 *
 * Why it is exact: all of them are in the same state, up to the translation between them.  So the
 * state of each is a copy with ranks, groups, links and messages translated.  Events keep their
 * places: the order of copies of one event is unknown, and not used.  Cost: everything in flight,
 * times the copies. */
#include "fold_impl.h"

#include "base/memory/hash.h"
#include "models/network/link_servers.h"
#include "models/network/net_time.h"
#include "models/network/symmetry.h"

/* ---- translations ---- */

uint32_t fold_moved(const fold_copier *c, uint32_t k, uint32_t rank)
{
    for (uint32_t i = 0; i < c->dropped.count; i++) {
        const net_digit *d = &c->dropped.digits[i];
        rank = net_digit_add(d, rank, k % d->radix);
        k /= d->radix;
    }
    return rank;
}

uint32_t fold_which_copy(const fold_copier *c, uint32_t rank)
{
    /* The copies in mixed radix: one digit per dropped one. */
    uint32_t k = 0, step = 1;
    for (uint32_t i = 0; i < c->dropped.count; i++) {
        k += net_digit_of(&c->dropped.digits[i], rank) * step;
        step *= c->dropped.digits[i].radix;
    }
    return k;
}

/* ---- groups ---- */

static uint64_t group_key(const fold_copier *c, const cfg_group *g, uint32_t rank)
{
    return (uint64_t)fold_number_of(c->s, g) << 32 | rank;
}

static bool list_groups(fold_copier *c)
{
    for (uint32_t i = 0; i < c->s->groups.count; i++) {
        const cfg_group *g = &c->s->groups.groups[i];
        for (uint32_t m = 0; m < g->count; m++)
            if (!orr_map_put(c->group_at, group_key(c, g, g->members[m]), i + 1, NULL))
                return false;
    }
    return true;
}

const cfg_group *fold_group_at(const fold_copier *c, const cfg_group *like, uint32_t rank)
{
    /* A rank has one group per equivalence class (has_twins refuses others), so rank and class
     * identify it. */
    const uint32_t i = orr_map_find(c->group_at, group_key(c, like, rank), 0);
    return i ? &c->s->groups.groups[i - 1] : NULL;
}

/* ---- calls ---- */

static bool is_npu(const orr_sim *s, const void *context)
{
    return (uintptr_t)context >= (uintptr_t)s->npus &&
           (uintptr_t)context < (uintptr_t)(s->npus + s->npu_count);
}

bool fold_note_copy(fold_copier *c, sys_stream *st, uint32_t k, sys_stream *copy)
{
    /* Addresses as keys of a map that is never iterated: they do not affect results. */
    const uint64_t key = (uint64_t)(uintptr_t)st;
    uint32_t at = orr_map_find(c->stream_at, key, RUN_NONE);
    if (at == RUN_NONE) {
        at = (uint32_t)c->stream_count;
        if (!orr_grow(&c->streams, &c->stream_room, c->stream_count + c->copies) ||
            !orr_map_put(c->stream_at, key, at, NULL))
            return false;
        c->stream_count += c->copies;
        c->streams[at] = st;
    }
    c->streams[at + k] = copy;
    return true;
}

clk_call fold_copy_call(const fold_copier *c, clk_call call, uint32_t rank)
{
    const uint32_t k = fold_which_copy(c, rank);
    if (!call.action)
        return call;
    if (is_npu(c->s, call.context)) {
        const run_npu *n = call.context;
        call.context = &c->s->npus[fold_moved(c, k, n->rank)];
    } else {
        const uint32_t at = orr_map_find(c->stream_at, (uint64_t)(uintptr_t)call.context, RUN_NONE);
        call.context = at == RUN_NONE ? call.context : c->streams[at + k];
    }
    return call;
}

/* A pending event: of a waiting message, of a link, of a rank. */
static void copy_event(void *context, uint32_t k, clk_call *call, uint32_t *owner, uint32_t *origin)
{
    const fold_copier *c = context;
    uint32_t at = k; /* the copy of what it concerns */
    if (call->action == msg_receive_late)
        at = fold_which_copy(c, fold_moved(c, k, msg_receiver(c->s->matcher, call->argument)));
    if (*origin != NET_ORIGIN_NONE)
        *origin = fold_moved(c, at, *origin);
    if (call->action == msg_receive_late) {
        call->argument = c->tokens[call->argument * c->copies + k];
        return;
    }
    if (orr__aware_copy_call(c->s->net, call->action, k, &call->argument))
        return;
    const uint32_t rank = is_npu(c->s, call->context) ? ((run_npu *)call->context)->rank
                                                      : ((sys_stream *)call->context)->npu->rank;
    *call = fold_copy_call(c, *call, fold_moved(c, k, rank));
    *owner = *owner == UINT32_MAX ? *owner : fold_moved(c, k, *owner);
}

/* ---- the network ---- */

static uint32_t moved_rank(void *context, uint32_t k, uint32_t rank)
{
    return fold_moved(context, k, rank);
}

/* At its link the message goes to dst; seen from its source at home, to `there`: the link is that
 * far from home. */
static uint64_t copied_token(void *context, uint64_t token, uint32_t dst, uint32_t k)
{
    const fold_copier *c = context;
    const uint32_t there = msg_receiver(c->s->matcher, token);
    uint32_t which = 0, step = 1;
    for (uint32_t i = 0; i < c->dropped.count; i++) {
        const net_digit *d = &c->dropped.digits[i];
        const uint32_t far = net_digit_of(d, there), near = net_digit_of(d, dst),
                       own = k % d->radix;
        which += (d->is_xor ? own ^ far ^ near : (own + near + d->radix - far) % d->radix) * step;
        step *= d->radix;
        k /= d->radix;
    }
    return c->tokens[token * c->copies + which];
}

/* ---- everything ---- */

/* Copy 0 is the rank itself; each other copy is built like any rank, and then gets the state. */
static orr_code copy_ranks(fold_copier *c, orr_error *err)
{
    orr_sim *s = c->s;
    orr_code code = ORR_OK;
    for (uint32_t r = 0; r < s->npu_count && !code; r++) {
        if (s->lockstep->stands_for[r] != r)
            continue;
        for (uint32_t k = 1; k < c->copies && !code; k++) {
            run_npu *n = &s->npus[fold_moved(c, k, r)];
            /* It exists from now on (sim.c: ranks without a speed are represented by others). */
            n->speed = s->ranks_config.speeds ? &s->ranks_config.speeds[n->rank] : &cfg_plain_rank;
            code = sys_init(n, err);
            if (!code)
                code = work_init(n, n->graph, err);
            if (!code)
                work_copy(n, &s->npus[r]);
            if (!code && !sys_copy(c, k, n, &s->npus[r]))
                code = orr_no_memory(err);
        }
    }
    return code;
}

orr_code fold_unfold(orr_sim *s, orr_error *err)
{
    fold_copier c = {
        .s = s, .copies = 1, .group_at = orr_map_create(0), .stream_at = orr_map_create(0)};
    const net_symmetry *all = fold_digits(s);
    for (uint32_t i = 0; i < all->count; i++) {
        net_symmetry *to = fold_is_dropped(s, i) ? &c.dropped : &c.kept;
        to->digits[to->count++] = all->digits[i];
        c.copies *= fold_is_dropped(s, i) ? all->digits[i].radix : 1;
    }
    orr_code code =
        c.group_at && c.stream_at && list_groups(&c) ? copy_ranks(&c, err) : orr_no_memory(err);
    const net_copier net = {&c, c.copies, moved_rank, copied_token};
    if (!code)
        fold_find_likes(&c);
    if (!code && (!msg_multiply(s->matcher, &c, &c.tokens) || !orr__aware_multiply(s->net, &net) ||
                  !clk_multiply(s->clock, c.copies, copy_event, &c) || !watch_multiply(s, &c)))
        code = orr_no_memory(err);
    orr__aware_end_copies(s->net);
    if (!code)
        fold_drop_digits(&c);
    orr_map_destroy(c.group_at);
    orr_map_destroy(c.stream_at);
    orr_free(c.streams);
    orr_free(c.tokens);
    return code;
}
