/* SPDX-License-Identifier: Apache-2.0 */
/* fold_symmetry.c - ranks that are symmetric in network and job (docs/design/folding.md,
 * "Symmetry").
 *
 * A symmetry permutes ranks: by digits of their numbers (models/network/symmetry.h), each within
 * one dimension.  It must preserve everything: links (all positions of a switch or a fully
 * connected dimension are equivalent; rings are rotated), traces and speeds, the peers of messages,
 * and the order of members in collective algorithms.  Digits are tried one by one, largest first;
 * each that holds is used.
 *
 * One rank per orbit, its *home*, is simulated on the clock, with its links.  All others are in the
 * same state, except for what depends on the order of events within one tick: that order depends on
 * rank numbers, which the symmetry changes.  So the clock keeps places (clock.h), and if two things
 * happen to a link or a rank in one tick, their order must follow from its own past.  If it does
 * not, every rank is simulated. */
#include "fold_impl.h"

#include "models/network/net_table.h"
#include "models/network/net_time.h"
#include "models/network/symmetry.h"

#include <stdio.h>

/* The last event at a rank: when, at which place in the total order, seen from where. */
typedef struct rank_touch {
    uint64_t at, place;
    uint32_t origin;
    bool is_own, is_one; /* all were; all have this origin */
} rank_touch;

struct fold_symmetry {
    /* those that hold, of all dimensions */
    net_symmetry digits;
    rank_touch *touches; /* by rank */
    uint32_t *number;    /* by group: number of its equivalence class, from 1 */
    bool has_lost_order;
    /* by digit: collectives of all ranks break this symmetry */
    bool parts[NET_SYM_DIGITS];
    bool parts_any;
    bool is_wider;  /* it began with such digits */
    bool is_parted; /* a collective of all ranks has begun */
};

/* ---- may it be folded? ---- */

static unsigned kinds_of(const orr_sim *s)
{
    unsigned kinds = 0;
    for (uint32_t k = 0; k < orr_set_class_count(s->set); k++) {
        const work_graph *g = &s->graphs[k];
        for (uint32_t p = 0; g->t && p < g->count; p++) {
            const orr_columns *c = &g->t->columns;
            if (c->type[g->node[p]] != ORR_NODE_COMM_COLL)
                continue;
            const int kind = work_kind_of(c->comm_type ? c->comm_type[g->node[p]] : -1, s->rules);
            /* A kind that cannot be simulated is treated as unfoldable: the run of every rank
             * reports the error. */
            kinds |= kind < 0 ? COLL_ROOTED : ORR_COLL_BIT(kind);
        }
    }
    return kinds;
}

static const char *obstacle(const orr_sim *s, unsigned kinds)
{
    const char *why = fold_obstacle(s);
    if (why)
        return why;
    if (s->opt.plans)
        return "collectives have custom algorithms";
    if (kinds & COLL_ROOTED)
        return "collectives have a root";
    if (s->memory.type > CFG_MEM_PER_NPU && fold_has_memory_nodes(s))
        return "ranks share memory servers";
    return fold_has_odd_tags(s) ? "identical ranks use different tags for their messages" : NULL;
}

/* ---- does a translation preserve everything? ---- */

/* How the positions of a collective's members may change without changing its messages: all by the
 * same rotation, or by the same bits. */
enum { BY_TURN = 1, BY_BITS = 2, NEVER = 4 };

typedef struct move {
    const net_digit *digit;
    uint32_t by;
} move;

typedef struct search {
    fold_sim *f;
    fold_others others;
    unsigned kinds;
    uint32_t *image; /* by group: its image; NONE: not seen */
    uint32_t *like;  /* by group: a group it was mapped to, or itself */
    net_symmetry *out;
    bool ignores_world; /* collectives of all ranks are ignored */
} search;

static uint32_t moved(move m, uint32_t rank)
{
    return net_digit_add(m.digit, rank, m.by);
}

static unsigned demands_of(const orr_coll_ops *ops)
{
    /* Rings and direct send by distance, halving-doubling by differing bits; other algorithms are
     * not analysed. */
    return ops == &coll_ring || ops == &coll_direct ? BY_TURN
           : ops == &coll_halving_doubling          ? BY_BITS
                                                    : NEVER;
}

static bool meets(unsigned demands, uint32_t from, uint32_t to, uint32_t first, uint32_t count)
{
    return !(demands & NEVER) && (!(demands & BY_TURN) || to == (from + first) % count) &&
           (!(demands & BY_BITS) || to == (from ^ first));
}

/* Does the translation map this group to that one, each member to an equivalent one? */
static bool takes_group(search *v, move m, uint32_t from, uint32_t to)
{
    const orr_sim *s = v->f->s;
    const cfg_group *a = &s->groups.groups[from], *b = &s->groups.groups[to];
    unsigned demands = 0;
    /* A group is mapped as a whole: all its members must go to the same group. */
    if (v->image[from] != RUN_NONE)
        return v->image[from] == to;
    if (a->count != b->count)
        return false;
    for (unsigned k = 0; k < ORR_COLL_COUNT; k++)
        if (v->kinds & ORR_COLL_BIT(k))
            demands |= demands_of(sys_group_dim(s, a, (orr_collective)k)->ops);
    const uint32_t first = cfg_group_index(b, moved(m, a->members[0]));
    for (uint32_t i = 0; i < a->count; i++) {
        const uint32_t at = cfg_group_index(b, moved(m, a->members[i]));
        if (at == RUN_NONE || !meets(demands, i, at, first, a->count))
            return false;
    }
    v->image[from] = to;
    return true;
}

/* Collectives of all ranks run along lines: each must be mapped to a line, with positions that the
 * algorithm permits. */
static bool takes_lines(const search *v, move m, const sys_dim *d)
{
    const uint32_t ranks = v->f->s->npu_count, last = d->count - 1;
    for (uint32_t r = 0; r < ranks; r++) {
        const uint32_t at = r / d->offset % d->count, first = r - at * d->offset;
        const uint32_t to = moved(m, r), first_to = moved(m, first);
        const uint32_t i = to / d->offset % d->count, turn = first_to / d->offset % d->count;
        if (first + last * d->offset >= ranks ||
            to - i * d->offset != first_to - turn * d->offset ||
            !meets(demands_of(d->ops), at, i, turn, d->count))
            return false;
    }
    return true;
}

static bool takes_world(const search *v, move m)
{
    const orr_sim *s = v->f->s;
    for (unsigned k = 0; k < ORR_COLL_COUNT; k++)
        for (uint32_t i = 0; (v->kinds & ORR_COLL_BIT(k)) && i < s->plans[k].count; i++)
            if (s->plans[k].dims[i].count > 1 && !takes_lines(v, m, &s->plans[k].dims[i]))
                return false;
    return true;
}

static bool takes_rank(search *v, move m, uint32_t r, bool *has_world)
{
    const orr_sim *s = v->f->s;
    const uint32_t to = moved(m, r), k = orr_set_class_of(s->set, r);
    const uint32_t *a = v->others.other + v->others.first[r];
    const uint32_t *b = v->others.other + v->others.first[to];
    /* Trace and speeds first, which is cheap, then the partners. */
    if (s->fold_colour[r] != s->fold_colour[to] || orr_set_class_of(s->set, to) != k)
        return false;
    for (size_t i = 0; i < v->others.count[k]; i++) {
        const bool is_group = v->others.is_group[k][i];
        if (a[i] >= FOLD_WORLD || b[i] >= FOLD_WORLD) {
            *has_world = *has_world || a[i] == FOLD_WORLD;
            if (a[i] != b[i])
                return false;
        } else if (is_group ? !takes_group(v, m, a[i], b[i]) : b[i] != moved(m, a[i])) {
            return false;
        }
    }
    return true;
}

static bool takes_all(search *v, move m)
{
    bool has_world = false;
    for (size_t i = 0; i < v->f->s->groups.count; i++)
        v->image[i] = RUN_NONE;
    for (uint32_t r = 0; r < v->f->s->npu_count; r++)
        if (!takes_rank(v, m, r, &has_world))
            return false;
    return !has_world || v->ignores_world || takes_world(v, m);
}

/* ---- digits ---- */

static uint32_t first_like(uint32_t *like, uint32_t i)
{
    /* Union-find with path halving. */
    while (like[i] != i)
        i = like[i] = like[like[i]];
    return i;
}

/* Groups that the last translation maps to each other are equivalent. */
static void join_likes(search *v)
{
    for (uint32_t i = 0; i < v->f->s->groups.count; i++) {
        if (v->image[i] == RUN_NONE)
            continue;
        const uint32_t a = first_like(v->like, i), b = first_like(v->like, v->image[i]);
        /* The smaller one leads, so that class numbers do not depend on the order of
         * translations. */
        v->like[a > b ? a : b] = a > b ? b : a;
    }
}

static bool passes(search *v, const net_digit *d, bool keeps)
{
    /* A rotation by one generates all rotations; exclusive ors are generated by powers of two. */
    for (uint32_t by = 1; by < d->radix; by *= 2) {
        if (!takes_all(v, (move){d, by}))
            return false;
        if (keeps)
            join_likes(v);
        if (!d->is_xor)
            break;
    }
    return true;
}

static bool holds(void *context, const net_digit *d)
{
    search *v = context;
    orr_sim *s = v->f->s;
    /* Twice: classes are joined only for digits that hold in every respect, network included. */
    return passes(v, d, false) &&
           (s->net_ops != &orr__net_graph || orr__graph_holds(s->net, v->out, d)) &&
           passes(v, d, true);
}

/* Dimension by dimension, each within its own stride: a digit never moves a rank along two of
 * them. */
static void find_digits(search *v)
{
    const orr_net_config *c = &v->f->s->net_config;
    uint32_t stride = 1;
    v->out->count = 0;
    for (uint32_t i = 0; i < v->f->s->groups.count; i++)
        v->like[i] = i;
    for (uint32_t k = 0; k < c->dims; k++) {
        /* The ends of a line differ from the ranks between: no rotation keeps it. */
        if (!c->is_open[k] || c->npus[k] == 2)
            net_sym_find(v->out, stride, c->npus[k], c->shape[k] == ORR_NET_RING, holds, v);
        stride *= c->npus[k];
    }
}

/* ---- life cycle ---- */

/* A rank with two equivalent groups could not distinguish their messages. */
static bool has_twins(const search *v, const uint32_t *like)
{
    const orr_sim *s = v->f->s;
    for (uint32_t r = 0; r < s->npu_count; r++) {
        const uint32_t k = orr_set_class_of(s->set, r);
        const uint32_t *a = v->others.other + v->others.first[r];
        for (size_t i = 0; i < v->others.count[k]; i++)
            for (size_t j = 0; j < i; j++)
                if (v->others.is_group[k][i] && v->others.is_group[k][j] && a[i] < FOLD_WORLD &&
                    a[j] < FOLD_WORLD && a[i] != a[j] && like[a[i]] == like[a[j]])
                    return true;
    }
    return false;
}

/* Until the first collective of all ranks, more ranks may be equivalent: they are separated then
 * (fold_unfold.c). */
static void find_all_digits(search *v, struct fold_symmetry *y)
{
    const orr_sim *s = v->f->s;
    uint32_t size = 1, wider = 1;
    find_digits(v);
    for (uint32_t i = 0; i < y->digits.count; i++)
        size *= y->digits.digits[i].radix;
    if (s->fold_level || s->net_ops == &orr__net_graph || s->opt.steps > 1 ||
        s->opt.record >= ORR_SIM_RECORD_NODES || s->opt.critical_path)
        return;
    v->ignores_world = true;
    find_digits(v);
    v->ignores_world = false;
    for (uint32_t i = 0; i < y->digits.count; i++) {
        y->parts[i] = !passes(v, &y->digits.digits[i], false);
        y->parts_any = y->parts_any || y->parts[i];
        wider *= y->digits.digits[i].radix;
    }
    y->is_wider = y->parts_any && wider > size;
    if (y->is_wider)
        return;
    y->parts_any = false;
    memset(y->parts, 0, sizeof y->parts);
    find_digits(v); /* as initially */
}

static bool make(search *v, fold_lockstep *l, struct fold_symmetry *y)
{
    orr_sim *s = v->f->s;
    uint32_t numbers = 0;
    *l = (fold_lockstep){.stands_for = orr_arena_new(s->arena, s->npu_count, uint32_t),
                         .size = orr_arena_new(s->arena, s->npu_count, uint32_t),
                         .like = orr_arena_new(s->arena, s->groups.count + 1, uint32_t),
                         .symmetry = y};
    y->touches = orr_arena_new(s->arena, s->npu_count, rank_touch);
    y->number = orr_arena_new(s->arena, s->groups.count + 1, uint32_t);
    if (!l->stands_for || !l->size || !l->like || !y->touches || !y->number)
        return false;
    for (uint32_t r = 0; r < s->npu_count; r++) {
        l->stands_for[r] = net_sym_home(&y->digits, r);
        l->classes += l->size[l->stands_for[r]]++ == 0;
        y->touches[r].at = UINT64_MAX;
    }
    for (uint32_t i = 0; i < s->groups.count; i++) {
        l->like[i] = first_like(v->like, i);
        y->number[i] = l->like[i] == i ? ++numbers : y->number[l->like[i]];
    }
    /* Equivalent groups share a range of stream numbers, and ranges must not wrap in tags. */
    if (numbers >= MSG_TAG_SPACE / SYS_GROUP_STREAMS)
        fold_give_up(v->f, "there are too many different groups");
    else if (has_twins(v, l->like))
        fold_give_up(v->f, "a rank has two groups that are alike");
    else if (l->classes > s->npu_count / 2)
        fold_give_up(v->f, "only few ranks are alike");
    return true;
}

static void heard_timer(void *sim, uint32_t owner)
{
    fold_touch(sim, owner, true);
}

/* fold_sim is borrowed only to find the partners of ranks; no class is made. */
orr_code fold_symmetry_create(orr_sim *s, fold_lockstep **out, orr_error *err)
{
    const unsigned kinds = kinds_of(s);
    const char *why = obstacle(s, kinds);
    *out = NULL;
    if (why) {
        snprintf(s->fold_why, sizeof s->fold_why, "%s", why);
        return ORR_OK;
    }
    fold_sim f = {.s = s, .arena = orr_arena_create()};
    fold_lockstep *l = orr_arena_new(s->arena, 1, fold_lockstep);
    struct fold_symmetry *y = orr_arena_new(s->arena, 1, struct fold_symmetry);
    search v = {.f = &f, .kinds = kinds, .out = y ? &y->digits : NULL};
    bool ok = f.arena && l && y && fold_colour_ranks(s) && fold_find_others(&f, &v.others);
    if (ok) {
        v.image = orr_arena_new(f.arena, s->groups.count + 1, uint32_t);
        v.like = orr_arena_new(f.arena, s->groups.count + 1, uint32_t);
        ok = v.image && v.like;
    }
    if (ok && !f.has_given_up && fold_has_ambiguous_groups(s, f.uses_world))
        fold_give_up(&f, "messages of two groups may be taken for each other");
    if (ok && !s->code && !f.has_given_up) {
        find_all_digits(&v, y);
        ok = make(&v, l, y);
    }
    if (ok && !s->code && !f.has_given_up) {
        ok = s->net_ops == &orr__net_graph ? orr__graph_fold(s->net, &y->digits)
                                           : orr__aware_fold(s->net, &y->digits);
        /* Before anything is scheduled, as the clock requires. */
        clk_keep_places(s->clock, heard_timer, s);
        *out = l;
    }
    orr_free(v.others.other);
    orr_arena_destroy(f.arena);
    return ok && !s->code ? ORR_OK : orr_no_memory(err);
}

/* ---- the order of events ---- */

uint64_t orr__net_place(const orr_net *n)
{
    return clk_place(n->clock);
}

void orr__net_lose_order(orr_net *n)
{
    if (!n->lockstep->symmetry->has_lost_order)
        snprintf(n->fold_why, sizeof n->fold_why,
                 "at %llu ns the order of two events of one tick is not the same for all ranks",
                 (unsigned long long)clk_now(n->clock));
    n->lockstep->symmetry->has_lost_order = true;
    clk_stop(n->clock);
}

bool fold_has_lost_order(const orr_sim *s)
{
    return s->lockstep && s->lockstep->symmetry && s->lockstep->symmetry->has_lost_order;
}

bool fold_is_set_apart(orr_sim *s)
{
    struct fold_symmetry *y = s->lockstep->symmetry;
    if (!y || !y->parts_any)
        return false;
    if (!y->is_parted) {
        const uint64_t done = clk_events(s->clock);
        /* One less: the event that begins the collective runs again after the ranks have been
         * separated. */
        s->fold_until = done ? done - 1 : 0;
        /* Nothing ran before it, so nothing could be repeated: use only what holds throughout. */
        s->fold_level += !s->fold_until;
        snprintf(s->fold_why, sizeof s->fold_why,
                 "%u until a collective of all ranks began, at %llu ns", s->lockstep->classes,
                 (unsigned long long)clk_now(s->clock));
    }
    y->is_parted = true;
    clk_stop(s->clock);
    return true;
}

bool fold_wants_again(const orr_sim *s)
{
    const struct fold_symmetry *y = s->lockstep ? s->lockstep->symmetry : NULL;
    return y && !s->code && (y->is_parted || (y->has_lost_order && y->is_wider));
}

orr_code fold_again(orr_sim *s, orr_error *err)
{
    if (!s->lockstep->symmetry->is_parted) { /* those that hold throughout may suffice */
        s->fold_level = 1;
        s->fold_until = 0;
    }
    return run_build_again(s, true, err);
}

/* Events that a rank schedules itself keep their order. */
void fold_touch(orr_sim *s, uint32_t rank, bool is_own)
{
    if (!s->lockstep->symmetry)
        return;
    rank_touch *t = &s->lockstep->symmetry->touches[s->lockstep->stands_for[rank]];
    const uint32_t origin = clk_origin(s->clock);
    rank_touch now = {clk_now(s->clock), clk_place(s->clock), origin, is_own,
                      origin != NET_ORIGIN_NONE};
    /* Two events in one tick at the same place: their order must follow from the rank's own
     * actions, or from a common origin. */
    if (t->at == now.at && t->place == now.place) {
        now.is_own = t->is_own && is_own;
        now.is_one = t->is_one && origin == t->origin;
        if (!now.is_own && !now.is_one)
            orr__net_lose_order(s);
    }
    *t = now;
}

uint32_t orr__net_origin(const orr_net *n)
{
    return clk_origin(n->clock);
}

void orr__net_set_origin(orr_net *n, uint32_t origin)
{
    clk_set_origin(n->clock, origin);
}

void orr__net_move_origin(orr_net *n, uint32_t rank)
{
    const uint32_t origin = clk_origin(n->clock);
    if (origin != NET_ORIGIN_NONE)
        clk_set_origin(n->clock, net_sym_with(&n->lockstep->symmetry->digits, rank, origin));
}

void fold_see_from_source(orr_sim *s, uint32_t dst)
{
    const uint32_t origin = clk_origin(s->clock);
    if (origin != NET_ORIGIN_NONE)
        clk_set_origin(s->clock, net_sym_back(&s->lockstep->symmetry->digits, dst, origin));
}

/* ---- equivalence ---- */

void fold_move_home(const orr_sim *s, uint32_t *src, uint32_t *dst)
{
    const net_symmetry *y = &s->lockstep->symmetry->digits;
    /* Before the source: the distance between the two is preserved. */
    *dst = net_sym_with(y, *src, *dst);
    *src = net_sym_home(y, *src);
}

uint64_t fold_first_stream(const orr_sim *s, const cfg_group *g)
{
    if (s->lockstep && s->lockstep->symmetry)
        return (uint64_t)s->lockstep->symmetry->number[g - s->groups.groups] * SYS_GROUP_STREAMS;
    return (uint64_t)g->id * SYS_GROUP_STREAMS;
}

uint64_t fold_stream_of(const orr_sim *s, const cfg_group *g, uint64_t stream)
{
    return g ? stream - fold_first_stream(s, g) + (uint64_t)g->id * SYS_GROUP_STREAMS : stream;
}

uint32_t fold_members_like(const run_npu *n, const cfg_group *g, const sys_route *r)
{
    const orr_sim *s = n->sim;
    const net_symmetry *y = &s->lockstep->symmetry->digits;
    const bool is_ring = g && !watch_is_along_dims(g, r);
    uint32_t count = is_ring ? 0 : 1;
    for (uint32_t i = 0; is_ring && i < g->count; i++)
        count += s->lockstep->stands_for[g->members[i]] == n->rank;
    for (uint32_t i = 0; !is_ring && i < y->count; i++)
        for (uint32_t k = 0; k < r->count; k++) {
            const sys_dim *d = r->dims[k];
            /* A digit within the dimension maps members of one line to each other: the rank counts
             * for all of them. */
            if (y->digits[i].stride >= d->offset && y->digits[i].stride < d->offset * d->count)
                count *= y->digits[i].radix;
        }
    return count;
}

bool fold_spread_links(orr_sim *s)
{
    if (s->lockstep->symmetry && s->net_ops == &orr__net_graph)
        orr__graph_spread(s->net);
    else if (s->lockstep->symmetry)
        return orr__aware_spread(s->net);
    return true;
}

/* ---- fewer digits ---- */

const net_symmetry *fold_digits(const orr_sim *s)
{
    return &s->lockstep->symmetry->digits;
}

bool fold_is_dropped(const orr_sim *s, uint32_t digit)
{
    return s->lockstep->symmetry->parts[digit];
}

uint32_t fold_number_of(const orr_sim *s, const cfg_group *g)
{
    return s->lockstep->symmetry->number[g - s->groups.groups];
}

/* Groups that the remaining digits map to each other are equivalent. */
void fold_find_likes(const fold_copier *c)
{
    orr_sim *s = c->s;
    uint32_t *like = s->lockstep->like;
    for (uint32_t i = 0; i < s->groups.count; i++)
        like[i] = i;
    for (uint32_t i = 0; i < s->groups.count; i++)
        for (uint32_t d = 0; d < c->kept.count; d++) {
            const net_digit *digit = &c->kept.digits[d];
            for (uint32_t by = 1; by < digit->radix; by *= 2) {
                const uint32_t to = net_digit_add(digit, s->groups.groups[i].members[0], by);
                const cfg_group *g = fold_group_at(c, &s->groups.groups[i], to);
                const uint32_t a = first_like(like, i),
                               b = g ? first_like(like, (uint32_t)(g - s->groups.groups)) : a;
                like[a > b ? a : b] = a > b ? b : a;
                if (!digit->is_xor)
                    break;
            }
        }
    for (uint32_t i = 0; i < s->groups.count; i++)
        like[i] = first_like(like, i);
}

const cfg_group *fold_like_of(const fold_copier *c, const cfg_group *g)
{
    const orr_sim *s = c->s;
    return g ? &s->groups.groups[s->lockstep->like[g - s->groups.groups]] : NULL;
}

void fold_drop_digits(const fold_copier *c)
{
    orr_sim *s = c->s;
    fold_lockstep *l = s->lockstep;
    struct fold_symmetry *y = l->symmetry;
    for (uint32_t r = 0; r < s->npu_count; r++) {
        const uint32_t home = net_sym_home(&y->digits, r);
        /* Represented ranks get the results of their home, translated. */
        if (home != r) {
            y->touches[r] = y->touches[home];
            if (y->touches[r].origin != NET_ORIGIN_NONE)
                y->touches[r].origin =
                    fold_moved(c, fold_which_copy(c, r), y->touches[home].origin);
        }
        l->size[r] = 0;
    }
    y->digits = c->kept;
    y->parts_any = false;
    l->classes = 0;
    for (uint32_t r = 0; r < s->npu_count; r++) {
        l->stands_for[r] = net_sym_home(&y->digits, r);
        l->classes += l->size[l->stands_for[r]]++ == 0;
    }
    for (uint32_t r = 0; r < s->npu_count; r++)
        s->npus[r].weight = l->size[r];
}
