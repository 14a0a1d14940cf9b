/* SPDX-License-Identifier: Apache-2.0 */
/* system.c - the system layer of a rank: a collective becomes streams (chunks), a stream is a list
 * of phases, a phase is one algorithm on one dimension and waits in a queue (astra-sim.md 5.1 to
 * 5.3).
 *
 * A queue is a list: first the running streams, then the waiting ones, by descending priority.  The
 * number of running ones is limited, so "start what fits" never searches far.
 *
 * Entry: sys_collective, when a node of the trace starts; exit: work_node_done, when its last
 * stream has ended.  Streams and sets go to free lists: a run has only as many as are active at
 * once, however many collectives it runs. */
#include "system.h"

#include "fold/fold.h"
#include "joint.h"
#include "match.h"
#include "run_state.h"

#include "base/text/number.h"
#include "models/collective/coll_plan.h"
#include "trace/attrs.h"

#include <inttypes.h>

/* MOST_SPLITS: one stream per chunk and rank is made, so a wrong number in a file must not exhaust
 * memory. */
enum { MOST_SPLITS = 1 << 20, BARRIER_BYTES = 8 };

/* ---- setting up ---- */

static bool has_variants(const orr_sim *s)
{
    for (unsigned k = 0; k < ORR_COLL_COUNT; k++)
        for (uint32_t i = 0; i < s->plans[k].count; i++)
            if (s->plans[k].dims[i].ops->variants > 1)
                return true;
    return false;
}

orr_code sys_init(run_npu *n, orr_error *err)
{
    orr_sim *s = n->sim;
    const uint32_t queues = s->opt.queues_per_dim;
    const size_t lines = (size_t)s->lanes * s->dims;
    n->queues = orr_arena_new(s->arena, run_queue_count(s), sys_queue);
    /* The next queue of a dimension, per kind of phase (astra-sim.md 5.2); one row of counters per
     * stream of the trace. */
    n->next_general = orr_arena_new(s->arena, lines, uint32_t);
    n->next_first = orr_arena_new(s->arena, lines, uint32_t);
    n->next_second = orr_arena_new(s->arena, lines, uint32_t);
    if (!n->queues || !n->next_general || !n->next_first || !n->next_second)
        return orr_no_memory(err);
    if (has_variants(s) && !(n->variants_made = orr_arena_new(
                                 s->arena, (size_t)ORR_COLL_COUNT * (ORR_NET_DIMS + 1), uint32_t)))
        return orr_no_memory(err);
    for (size_t k = 0; k < lines; k++)
        /* All-gathers of all-reduces have the queues from the middle on (astra-sim.md 5.2). */
        n->next_second[k] = queues / 2;
    if (s->system.shared_bus && !(n->bus = sys_bus_create(n)))
        return orr_no_memory(err);
    return ORR_OK;
}

void sys_fini(run_npu *n)
{
    orr_free(n->memberships);
}

/* ---- streams ---- */

/* A run may have millions of chunks but few at a time, so streams and sets are used again; the
 * arena only grows to the most that were alive together. */
static sys_stream *new_stream(orr_sim *s)
{
    sys_stream *st = s->free_streams;
    if (!st)
        return orr_arena_zeroed(s->arena, 1, s->stream_size);
    s->free_streams = st->next;
    /* The list of phases stays with the stream: it is in the arena, with the largest length it ever
     * had. */
    sys_phase *phases = st->phases;
    const uint32_t room = st->phase_room;
    *st = (sys_stream){.phases = phases, .phase_room = room};
    return st;
}

static bool make_phase_room(sys_stream *st, uint32_t count)
{
    if (count <= st->phase_room)
        return true;
    /* The shorter list is lost to the arena, which happens a few times per stream at most. */
    st->phases = orr_arena_new(st->npu->sim->arena, count, sys_phase);
    st->phase_room = st->phases ? count : 0;
    return st->phases != NULL;
}

static sys_data_set *new_set(run_npu *n, uint32_t place, uint64_t expected)
{
    orr_sim *s = n->sim;
    sys_data_set *set = s->free_sets;
    if (set)
        s->free_sets = (sys_data_set *)set->npu; /* free sets are linked through this field */
    else
        set = orr_arena_new(s->arena, 1, sys_data_set);
    if (set)
        *set = (sys_data_set){.npu = n,
                              .place = place,
                              .plan = RUN_NONE,
                              .expected = expected,
                              /* An array from its previous use: open_set clears it if it is
                               * needed. */
                              .started = set->started};
    return set;
}

/* The array of starts stays with it: see new_set. */
static void drop_set(orr_sim *s, sys_data_set *set)
{
    set->npu = (run_npu *)s->free_sets;
    s->free_sets = set;
}

/* ---- queues ---- */

/* The larger of a phase's input and output. */
static uint64_t phase_size(const sys_stream *st)
{
    const sys_phase *p = &st->phases[st->phase];
    return p->kind == ORR_COLL_ALL_GATHER || p->kind == ORR_COLL_GATHER ? p->data * p->dim->count
                                                                        : p->data;
}

static orr_collective phase_kind(const sys_stream *st)
{
    return st->phases[st->phase].kind;
}

static bool is_half(orr_collective kind)
{
    return kind == ORR_COLL_REDUCE_SCATTER || kind == ORR_COLL_ALL_GATHER;
}

/* RG: chunks of the two halves alternate, so that both make progress. */
static bool fits_before(const sys_stream *st, const sys_stream *waiting)
{
    const orr_collective kind = phase_kind(st);
    if (!is_half(kind) || !waiting->previous)
        return false;
    const orr_collective left = phase_kind(waiting->previous);
    return is_half(left) && left != kind && left == phase_kind(waiting);
}

/* Does the new chunk go before this waiting one?  (docs/design/schedulers.md) */
static bool goes_before(const sys_stream *st, const sys_stream *waiting, cfg_intra how)
{
    switch (how) {
    case CFG_SMALLEST_FIRST:
        return phase_size(st) < phase_size(waiting);
    case CFG_LESS_REMAINING_FIRST:
        return st->phase_count - st->phase < waiting->phase_count - waiting->phase;
    case CFG_ALTERNATING:
        return waiting->priority < st->priority ||
               (waiting->priority == st->priority && fits_before(st, waiting));
    default:
        return waiting->priority < st->priority;
    }
}

void sys_queue_insert(sys_queue *q, sys_stream *st)
{
    const cfg_intra how = st->npu->sim->system.intra;
    sys_stream *before = NULL;
    /* By priority the waiting ones are sorted: the last one tells whether a search is needed. */
    if (q->last && !q->last->is_started &&
        (how != CFG_BY_PRIORITY || goes_before(st, q->last, how))) {
        before = q->first;
        while (before && (before->is_started || !goes_before(st, before, how)))
            before = before->next;
    }
    st->next = before;
    st->previous = before ? before->previous : q->last;
    *(st->previous ? &st->previous->next : &q->first) = st;
    *(before ? &before->previous : &q->last) = st;
}

/* Both ends of the list change in the same statement: a neighbour, or the queue itself where
 * there is none. */
static void remove_stream(sys_queue *q, sys_stream *st)
{
    *(st->previous ? &st->previous->next : &q->first) = st->next;
    *(st->next ? &st->next->previous : &q->last) = st->previous;
}

/* The running ones stay in front. */
static void move_before(sys_queue *q, sys_stream *st, sys_stream *other)
{
    remove_stream(q, st);
    st->next = other;
    st->previous = other->previous;
    *(st->previous ? &st->previous->next : &q->first) = st;
    other->previous = st;
}

static void start_what_fits(run_npu *n, sys_queue *q)
{
    const uint64_t all = n->sim->opt.queues_per_dim;
    /* active-chunks-per-dimension, divided among the queues of the dimension and rounded up: at
     * least one, or nothing would ever start. */
    const uint64_t most = (n->sim->system.active_chunks + all - 1) / all;
    const bool is_agreed = n->sim->system.is_agreed;
    sys_stream *st = q->first;
    /* Skip the running ones in front. */
    for (uint64_t i = 0; st && i < q->running; i++)
        st = st->next;
    while (st && q->running < most && !n->sim->code) {
        sys_stream *waiting = st;
        /* If ranks agreed on an order, a chunk that is not next waits even if a slot is free:
         * different orders on two ranks would deadlock. */
        if (is_agreed && st->set->plan != RUN_NONE && !(st = sched_next(waiting)))
            return;
        if (st != waiting)
            move_before(q, st, waiting);
        /* Before the phase starts: it may end within its start, and then st is in another queue. */
        sys_stream *next = st == waiting ? st->next : waiting;
        st->is_started = true;
        st->phase_since = clk_now(n->sim->clock);
        /* Before the algorithm runs: a phase may end within its start, and its record must exist by
         * then. */
        RUN_TELL(n->sim, phase_start, st);
        st->is_starting = true;
        sys_phase_start(st);
        st->is_starting = false;
        /* Only now: the end of a phase that ends within its start comes later in this tick
         * (is_starting), so the count is not taken back before it is given. */
        q->running++;
        st = next;
    }
}

static sys_queue *queue_of(const sys_stream *st)
{
    return &st->npu->queues[st->phases[st->phase].queue];
}

/* In the shape of an event, for the clock. */
static void advance_later(void *stream, uint64_t unused)
{
    (void)unused;
    sys_stream_advance(stream);
}

/* A phase that finishes within its own start ends in this tick, but only after it counts as
 * started: the queue is being traversed. */
void sys_stream_advance(sys_stream *st)
{
    run_npu *n = st->npu;
    orr_sim *s = n->sim;
    sys_queue *q = queue_of(st);
    if (st->is_starting) {
        clk_at(s->clock, clk_now(s->clock), advance_later, st, 0);
        return;
    }
    const bool is_last = st->phase + 1 == st->phase_count;
    /* A custom algorithm is on no dimension, so its time says nothing about the speed of one. */
    if (s->schedule && !st->custom_prefix)
        sched_note(st);
    RUN_TELL(s, phase_end, st);
    if (is_last && ++st->set->finished == st->set->expected) {
        sys_data_set *set = st->set;
        /* Read before the set is freed, since the node's end may start a collective that reuses
         * it. */
        const uint32_t place = set->place;
        if (set->plan != RUN_NONE)
            sched_leave(s, set->plan);
        drop_set(s, set);
        work_node_done(n, place); /* while this stream still occupies its slot */
    }
    remove_stream(q, st);
    /* Into the next queue before the slot is given to another: this order decides who is first
     * there (astra-sim.md 5.3). */
    if (!is_last) {
        st->phase++;
        st->is_started = false;
        sys_queue_insert(queue_of(st), st);
    }
    q->running--;
    start_what_fits(n, q);
    if (is_last) {
        st->next = s->free_streams;
        s->free_streams = st;
    } else {
        start_what_fits(n, queue_of(st));
    }
}

/* ---- copies ---- */

static const sys_dim *dim_at(const fold_copier *c, const sys_dim *d, uint32_t rank)
{
    if (!d->group)
        return d;
    /* Rings of groups are a table of group by kind: the index gives the kind. */
    const size_t kind = (size_t)(d - c->s->group_rings) % ORR_COLL_COUNT;
    return sys_group_dim(c->s, fold_group_at(c, d->group, rank), (orr_collective)kind);
}

/* Sets this rank's position in a running phase. */
static void turn_to(sys_stream *st)
{
    const sys_dim *d = st->phases[st->phase].dim;
    /* The algorithm counts from its own index; a copy has the same state, rotated by the distance
     * between the two positions. */
    const uint32_t rank = st->npu->rank, before = st->coll.index, count = st->coll.count;
    if (d->group) {
        st->group = d->group;
        st->coll.index = cfg_group_index(d->group, rank);
    } else {
        st->coll.index = rank / d->offset % d->count;
        st->first = rank - st->coll.index * d->offset;
    }
    coll_turn(&st->coll, (st->coll.index + count - before) % count);
}

static sys_stream *copy_stream(fold_copier *c,
                               run_npu *n,
                               const sys_stream *from,
                               sys_data_set *set)
{
    sys_stream *st = new_stream(n->sim);
    if (!st)
        return NULL;
    st->npu = n;
    if (!make_phase_room(st, from->phase_room))
        return NULL;
    sys_phase *phases = st->phases;
    const uint32_t room = st->phase_room;
    /* Including the algorithm's state, which follows the struct. */
    memcpy(st, from, n->sim->stream_size);
    memcpy(phases, from->phases, from->phase_count * sizeof *phases);
    for (uint32_t i = 0; i < from->phase_count; i++)
        phases[i].dim = dim_at(c, phases[i].dim, n->rank);
    st->phases = phases;
    st->phase_room = room;
    st->npu = n;
    st->set = set;
    if (st->is_started)
        turn_to(st);
    return st;
}

/* Chunks of one collective share a set: that of the copy is recorded in the original. */
bool sys_copy(fold_copier *c, uint32_t k, run_npu *n, const run_npu *from)
{
    orr_sim *s = n->sim;
    const size_t lines = (size_t)s->lanes * s->dims;
    orr_map *sets = orr_map_create(0);
    sys_data_set **made = NULL;
    size_t made_count = 0, made_room = 0;
    bool ok = sets != NULL;
    memcpy(n->next_general, from->next_general, lines * sizeof *n->next_general);
    memcpy(n->next_first, from->next_first, lines * sizeof *n->next_first);
    memcpy(n->next_second, from->next_second, lines * sizeof *n->next_second);
    n->streams_made = from->streams_made;
    n->priority = from->priority;
    for (size_t i = 0; ok && i < from->membership_count; i++) {
        const cfg_group *g = fold_group_at(c, from->memberships[i]->group, n->rank);
        sys_membership *m = g ? orr_arena_new(s->arena, 1, sys_membership) : NULL;
        ok = m && orr_grow(&n->memberships, &n->membership_room, n->membership_count + 1);
        if (!ok)
            break;
        *m = *from->memberships[i];
        m->group = g;
        n->memberships[n->membership_count++] = m;
    }
    for (size_t q = 0; ok && q < run_queue_count(s); q++) {
        sys_queue *to = &n->queues[q];
        to->running = from->queues[q].running;
        for (sys_stream *st = from->queues[q].first; ok && st; st = st->next) {
            /* An address decides nothing here: copies are made in the order of the queues. */
            const uint64_t key = (uint64_t)(uintptr_t)st->set;
            uint32_t at = orr_map_find(sets, key, RUN_NONE);
            if (at == RUN_NONE) {
                at = (uint32_t)made_count;
                /* Without an agreed order: runs with one do not fold (fold_obstacle). */
                sys_data_set *set = new_set(n, st->set->place, st->set->expected);
                ok = set && orr_grow(&made, &made_room, made_count + 1) &&
                     orr_map_put(sets, key, at, NULL);
                if (!ok)
                    break;
                set->finished = st->set->finished;
                set->first_id = st->set->first_id;
                made[made_count++] = set;
            }
            sys_stream *copy = copy_stream(c, n, st, made[at]);
            ok = copy && fold_note_copy(c, st, k, copy);
            if (!ok)
                break;
            copy->next = NULL;
            copy->previous = to->last;
            *(to->last ? &to->last->next : &to->first) = copy;
            to->last = copy;
        }
    }
    orr_map_destroy(sets);
    orr_free(made);
    return ok;
}

/* ---- groups and plans (astra-sim.md 5.10, 6.4) ---- */

typedef struct request {
    run_npu *n;
    uint32_t place;
    orr_collective kind;
    sys_membership *m;
    int64_t priority;
    uint64_t streams;
    sys_data_set *set;
    const char *custom;      /* traces that are the algorithm, or NULL */
    struct coll_plan *steps; /* a plan that is the algorithm, or NULL */
    const sys_dim *dims;
    uint32_t dim_count;
    sys_route route; /* the dimensions in use, ascending, and the chunk */
    uint32_t plan;   /* the agreed order, or NONE */
} request;

static const cfg_group *find_group(const orr_sim *s, int64_t id)
{
    const uint32_t i =
        s->groups.by_id ? orr_map_find(s->groups.by_id, (uint64_t)id, RUN_NONE) : RUN_NONE;
    return i == RUN_NONE ? NULL : &s->groups.groups[i];
}

static sys_membership *join(run_npu *n, const cfg_group *g)
{
    /* A rank is in few groups: linear search beats a table. */
    for (size_t i = 0; i < n->membership_count; i++)
        if (n->memberships[i]->group == g)
            return n->memberships[i];
    sys_membership *m = orr_arena_new(n->sim->arena, 1, sys_membership);
    if (!m || !orr_grow(&n->memberships, &n->membership_room, n->membership_count + 1)) {
        run_no_memory(n->sim);
        return NULL;
    }
    n->memberships[n->membership_count++] = m;
    /* Stream numbers are part of tags: groups have separate ranges, so that two groups of the same
     * ranks never match each other's messages. */
    *m = (sys_membership){.group = g, .next_stream = fold_first_stream(n->sim, g)};
    return m;
}

/* A group given by this rank's value of a hole. */
static bool own_group(const run_npu *n, uint32_t place, int64_t *out)
{
    return orr__set_hole(n->sim->set, n->rank, ORR_HOLE_PG_NAME, n->graph->node[place], out);
}

orr_str sys_group_text(orr_sim *s, int64_t id)
{
    const uint64_t key = (uint64_t)id;
    uint32_t at = s->group_texts ? orr_map_find(s->group_texts, key, RUN_NONE) : RUN_NONE;
    if (at != RUN_NONE)
        return s->group_text[at];
    at = (uint32_t)s->group_text_count;
    if (!s->group_texts)
        s->group_texts = orr_map_create(0);
    const char *text = orr_arena_print(s->arena, "%" PRId64, id);
    if (!s->group_texts || !text || at == RUN_NONE ||
        !orr_grow(&s->group_text, &s->group_text_room, s->group_text_count + 1) ||
        !orr_map_put(s->group_texts, key, at, NULL)) {
        run_no_memory(s);
        return (orr_str){"", 0};
    }
    return s->group_text[s->group_text_count++] = orr_str_of(text);
}

/* The name of a node's group; empty: all ranks. */
orr_str sys_node_group_name(const run_npu *n, uint32_t place)
{
    const orr_trace *t = n->graph->t;
    int64_t own;
    if (own_group(n, place, &own))
        return own == 0 ? (orr_str){"", 0} : sys_group_text(n->sim, own);
    const uint32_t text =
        t->columns.pg_name ? t->columns.pg_name[n->graph->node[place]] : ORR_NO_NAME;
    const orr_str name = text == ORR_NO_NAME ? (orr_str){"", 0} : orr_trace_text(t, text);
    /* Group 0 is that of all ranks. */
    return name.len == 1 && name.ptr[0] == '0' ? (orr_str){"", 0} : name;
}

/* The group file comes first, then the trace's own groups.  False: neither has the group. */
static bool find_node_group(const run_npu *n, uint32_t place, const cfg_group **out)
{
    int64_t id;
    *out = NULL;
    if (!own_group(n, place, &id) && !orr_text_i64(sys_node_group_name(n, place), &id))
        return false;
    *out = find_group(n->sim, id);
    return *out || work_metadata_group(n->sim, n->graph, id, out);
}

bool sys_find_group(const run_npu *n, uint32_t place, const cfg_group **out)
{
    int64_t own;
    *out = NULL;
    if (own_group(n, place, &own) ? own == 0 : sys_node_group_name(n, place).len == 0)
        return true;
    return find_node_group(n, place, out);
}

const cfg_group *sys_node_group(const run_npu *n, uint32_t place)
{
    const cfg_group *g;
    return find_node_group(n, place, &g) ? g : NULL;
}

/* The group of a node: NULL and true if it has none. */
static bool group_of(run_npu *n, uint32_t place, sys_membership **out)
{
    const orr_str name = sys_node_group_name(n, place);
    *out = NULL;
    if (name.len == 0)
        return true;
    const cfg_group *g;
    if (!find_node_group(n, place, &g)) {
        /* Without any group, this is most often one rank of a job, traced alone. */
        run_fail_text(n->sim, n, place,
                      n->sim->groups.by_id || n->sim->rules->refuses_tick_zero
                          ? "communicator group \"%.*s\" is not in the group file"
                          : "communicator group \"%.*s\" has no members: neither the traces nor a "
                            "group file (--groups) list them; traces of all ranks of the job do "
                            "('orrery link --ranks FOLDER')",
                      (int)name.len, name.ptr);
        return false;
    }
    *out = g ? join(n, g) : NULL;
    return !g || *out;
}

static const char *custom_of(const run_npu *n, uint32_t place, orr_collective kind)
{
    const cfg_system *c = &n->sim->system;
    const uint64_t id =
        n->graph->t->columns.id[n->graph->node[place]] + orr_set_id_shift(n->sim->set, n->rank);
    const uint32_t by_node =
        c->custom_by_node ? orr_map_find(c->custom_by_node, id, RUN_NONE) : RUN_NONE;
    return by_node != RUN_NONE ? c->custom_prefix[by_node] : c->custom[kind];
}

bool sys_node_is_custom(const run_npu *n, uint32_t place, orr_collective kind)
{
    uint32_t ranks;
    return custom_of(n, place, kind) || sys_unfit_plan(n->sim, kind, &ranks);
}

static sys_dim group_ring(const orr_sim *s, const cfg_group *g, orr_collective kind)
{
    const sys_plan *p = &s->plans[kind];
    const bool has_root = coll_has_root(kind);
    /* One algorithm for all dimensions applies to groups too; with several, none fits a set of
     * ranks that may span any of them. */
    const sys_dim *only = p->count == 1 || (has_root && p->count) ? &p->dims[0] : NULL;
    return (sys_dim){.ops = only ? only->ops : coll_default(kind),
                     .number = only ? only->number : 0,
                     .count = g->count,
                     .is_last = true,
                     .group = g};
}

bool sys_make_group_rings(orr_sim *s)
{
    const size_t count = s->groups.count * ORR_COLL_COUNT;
    /* One per group and kind, made at the start: phases keep pointers to them, so they must not
     * move. */
    s->group_rings = orr_arena_new(s->arena, count, sys_dim);
    for (size_t i = 0; s->group_rings && i < count; i++)
        s->group_rings[i] = group_ring(s, &s->groups.groups[i / ORR_COLL_COUNT],
                                       (orr_collective)(i % ORR_COLL_COUNT));
    return s->group_rings != NULL;
}

const sys_dim *sys_group_dim(const orr_sim *s, const cfg_group *g, orr_collective kind)
{
    return &s->group_rings[(size_t)(g - s->groups.groups) * ORR_COLL_COUNT + kind];
}

static void fail_no_algorithm(const request *r, uint64_t size)
{
    orr_sim *s = r->n->sim;
    uint32_t ranks;
    const char *unfit = sys_unfit_plan(s, r->kind, &ranks);
    if (unfit)
        run_fail_text(s, r->n, r->place,
                      "the system file has no %s-implementation, and the plan %s, for %u ranks, "
                      "does not fit %u ranks with %" PRIu64 " bytes",
                      coll_kind_name(r->kind), unfit, ranks,
                      r->m ? r->m->group->count : s->npu_count, size);
    else
        run_fail_text(s, r->n, r->place, "the system file has no %s-implementation",
                      coll_kind_name(r->kind));
}

/* How a rank runs this collective: custom traces, a plan, or dimensions.  A group caches its first
 * answer. */
static bool plan_of(request *r, uint64_t size)
{
    run_npu *n = r->n;
    sys_membership *m = r->m;
    const orr_collective kind = r->kind;
    orr_sim *s = n->sim;
    const bool is_known = m && m->is_planned[kind], is_part = m && m->group->count != s->npu_count;
    r->custom = is_known ? m->custom[kind] : custom_of(n, r->place, kind);
    if (!r->custom)
        r->steps = sys_find_plan(s, kind, m ? m->group->count : s->npu_count, size);
    if (!r->custom && !r->steps && !s->plans[kind].exists) {
        fail_no_algorithm(r, size);
        return false;
    }
    /* A group keeps the result of its first collective of a kind (astra-sim.md 6.4): custom traces
     * of later nodes are ignored. */
    if (m && !is_known) {
        m->is_planned[kind] = true;
        m->custom[kind] = r->custom;
        if (is_part) /* also for custom traces, which do not need it: as in the reference */
            RUN_TELL(s, group_ring, n, m->group);
    }
    r->dims = is_part ? sys_group_dim(s, m->group, kind) : s->plans[kind].dims;
    r->dim_count = is_part ? 1 : s->plans[kind].count;
    return true;
}

/* ---- a collective (astra-sim.md 5.2) ---- */

/* Which dimensions involved_dim leaves.  Returns its length; UINT32_MAX: there is none. */
static uint32_t read_involved(const work_graph *g, uint32_t place, bool involved[ORR_NET_DIMS + 1])
{
    orr_node node;
    orr_attr a;
    memset(involved, 1, (ORR_NET_DIMS + 1) * sizeof *involved);
    orr_trace_node(g->t, g->node[place], &node);
    if (!orr__node_get(&node, ORR__ATTR_INVOLVED_DIM, &a) || !a.is_list || a.kind != ORR_VALUE_BOOL)
        return UINT32_MAX;
    orr_list it = orr_attr_items(&a);
    orr_value v;
    uint32_t k = 0;
    while (k < ORR_NET_DIMS && orr_list_next(&it, &v))
        involved[k++] = v.u != 0;
    return k;
}

uint32_t sys_dims_of(const orr_sim *s, const work_graph *g, uint32_t place)
{
    bool involved[ORR_NET_DIMS + 1];
    uint32_t mask = 0, count = 0;
    read_involved(g, place, involved);
    for (uint32_t k = 0; k < s->dims; k++) {
        mask |= (uint32_t)involved[k] << k;
        count += involved[k];
    }
    return count == s->dims ? UINT32_MAX : mask;
}

/* The same for a request: a list that is too short ends the run. */
static bool find_involved(const request *r, uint32_t dims, bool involved[ORR_NET_DIMS + 1])
{
    memset(involved, 1, (ORR_NET_DIMS + 1) * sizeof *involved);
    const uint32_t k = r->m ? UINT32_MAX : read_involved(r->n->graph, r->place, involved);
    if (k < dims)
        run_fail_text(r->n->sim, r->n, r->place, "involved_dim has %u entries for %u dimensions", k,
                      dims);
    return k >= dims;
}

/* The dimensions in use: larger than one, and not excluded by involved_dim. */
static bool find_active_dims(request *r)
{
    bool involved[ORR_NET_DIMS + 1];
    if (!find_involved(r, r->dim_count, involved))
        return false;
    for (uint32_t i = 0; i < r->dim_count; i++)
        /* A dimension of one rank has no peers and gets no phase. */
        if (r->dims[i].count > 1 && involved[r->dims[i].position])
            r->route.dims[r->route.count++] = &r->dims[i];
    return true;
}

_Static_assert(MSG_TAG_SPACE == 500 * SYS_GROUP_STREAMS, "sys_tag_number");

static sys_stream *make_stream(const request *r, uint32_t phases)
{
    run_npu *n = r->n;
    sys_stream *st = new_stream(n->sim);
    if (!st)
        return NULL;
    st->npu = n;
    st->set = r->set;
    st->priority = r->priority;
    if (!make_phase_room(st, phases))
        return NULL;
    const uint64_t own = n->streams_made;
    /* ASTRA-sim counts streams of groups too (astra-sim.md 5.3): ranks with a different history of
     * groups number a collective of all ranks differently, and never match. */
    if (!r->m || n->sim->rules->has_one_count)
        n->streams_made++;
    st->id = r->m ? r->m->next_stream++ : own;
    /* The same on all members, which create their streams in the same order; tags of nodes are
     * below. */
    const uint64_t group = sys_tag_number(st->id / SYS_GROUP_STREAMS, n->sim->rules->has_one_count);
    st->tag = (uint32_t)(MSG_TAG_SPACE + group * SYS_GROUP_STREAMS + st->id % SYS_GROUP_STREAMS);
    return st;
}

static void launch(sys_stream *st)
{
    sys_queue_insert(queue_of(st), st);
    start_what_fits(st->npu, queue_of(st));
}

static void run_custom(const request *r)
{
    sys_stream *st = make_stream(r, 1);
    if (!st) {
        run_no_memory(r->n->sim);
        return;
    }
    /* One phase, in queue 0 and on no dimension (astra-sim.md 5.10). */
    st->phases[0] = (sys_phase){.queue = 0};
    st->phase_count = 1;
    st->custom_prefix = r->custom;
    st->group = r->m ? r->m->group : NULL;
    RUN_TELL(r->n->sim, collective, r->n, r->place, st->id, st->group, NULL);
    launch(st);
}

/* Chunk by chunk, each through the whole plan. */
static void run_steps(const request *r)
{
    for (uint64_t i = 0; i < r->streams && !r->n->sim->code; i++) {
        sys_stream *st = make_stream(r, 1);
        if (!st) {
            run_no_memory(r->n->sim);
            return;
        }
        st->phases[0] = (sys_phase){.queue = 0, .kind = r->kind, .data = r->route.data};
        st->phase_count = 1;
        st->custom_prefix = coll_plan_path(r->steps);
        st->plan = r->steps;
        st->whole = (uint8_t)r->kind;
        st->group = r->m ? r->m->group : NULL;
        if (i == 0)
            RUN_TELL(r->n->sim, collective, r->n, r->place, st->id, st->group, NULL);
        launch(st);
    }
}

static bool has_orders(const request *r)
{
    return r->plan != RUN_NONE && sched_plan_of(r->n->sim, r->plan)->count;
}

/* The route of the i-th chunk. */
static void set_route(const request *r, uint64_t i, sys_route *out)
{
    const sys_route *all = &r->route;
    *out = *all;
    if (has_orders(r)) {
        const sched_order *t = &sched_plan_of(r->n->sim, r->plan)->orders[i];
        out->is_unmerged = r->n->sim->system.inter != CFG_ROUND_ROBIN;
        out->data = t->size;
        for (uint32_t k = 0; k < all->count; k++)
            out->dims[k] = all->dims[t->order[k]];
    } else if (r->kind == ORR_COLL_ALL_GATHER) {
        for (uint32_t k = 0; k < all->count; k++)
            /* Descending, unlike all others (astra-sim.md 5.2). */
            out->dims[k] = all->dims[all->count - 1 - k];
    }
}

/* Streams are launched one by one, each into its queue: the first may run, and end, before the last
 * is made. */
static void run_native(const request *r)
{
    sys_route route;
    if (r->route.count == 0)
        return; /* no dimension in use: it never completes, and the stall explanation says so */
    for (uint64_t i = 0; i < r->streams && !r->n->sim->code; i++) {
        sys_stream *st = make_stream(r, 2 * r->route.count);
        if (!st) {
            run_no_memory(r->n->sim);
            return;
        }
        set_route(r, i, &route);
        sys_add_phases(st, &route);
        if (i == 0)
            RUN_TELL(r->n->sim, collective, r->n, r->place, st->id, r->m ? r->m->group : NULL,
                     &r->route);
        launch(st);
    }
}

static bool next_priority(run_npu *n, uint32_t place, int64_t *out)
{
    const int64_t *column = n->graph->t->columns.comm_priority;
    switch (n->sim->system.policy) {
    /* Priorities of later collectives increase (LIFO) or decrease (FIFO); the highest starts
     * first. */
    case CFG_LIFO:
        *out = n->priority++;
        return true;
    case CFG_FIFO:
        *out = n->priority--;
        return true;
    case CFG_EXPLICIT:
        *out = column && column[n->graph->node[place]] != ORR_NO_VALUE
                   ? column[n->graph->node[place]]
                   : 0;
        return true;
    default:
        run_fail_text(n->sim, n, place, "the system file has no scheduling-policy");
        return false;
    }
}

/* Size and number of chunks (astra-sim.md 5.2). */
static bool cut(request *r, uint64_t *size)
{
    run_npu *n = r->n;
    orr_sim *s = n->sim;
    const uint64_t splits = s->system.splits;
    uint64_t chunk;
    if (r->kind == ORR_COLL_BARRIER) {
        r->route.data = *size = BARRIER_BYTES;
        r->streams = 1;
        return true;
    }
    if (splits == 0) {
        run_fail_text(s, n, r->place,
                      "the system file has no preferred-dataset-splits, or it is 0");
        return false;
    }
    if (splits > MOST_SPLITS) {
        run_fail_text(s, n, r->place, "preferred-dataset-splits %" PRIu64 " is more than %d",
                      splits, MOST_SPLITS);
        return false;
    }
    chunk = *size / splits;
    /* A chunk has at least one byte per rank of the system, and the total grows with it
     * (astra-sim.md 5.2). */
    if (r->kind != ORR_COLL_ALL_GATHER && s->npu_count > chunk) {
        chunk = s->npu_count;
        *size = splits * chunk;
    }
    if (chunk == 0 && *size > 0) {
        run_fail_text(s, n, r->place,
                      "an all-gather of %" PRIu64 " bytes cannot be cut into %" PRIu64 " chunks",
                      *size, splits);
        return false;
    }
    r->route.data = chunk;
    /* What does not divide evenly makes further chunks of full size (astra-sim.md 5.2). */
    r->streams = chunk ? (*size + chunk - 1) / chunk : 0;
    return true;
}

/* The root: a rank given by the trace, or the first member. */
static bool find_root(request *r)
{
    const run_npu *n = r->n;
    const bool is_source = r->kind == ORR_COLL_BROADCAST || r->kind == ORR_COLL_SCATTER;
    const int64_t given = is_source ? run_npu_src(n, r->place) : run_npu_dst(n, r->place);
    const cfg_group *g = r->m ? r->m->group : NULL;
    if (given == ORR_NO_VALUE || r->kind == ORR_COLL_BARRIER) {
        r->route.root = g ? g->members[0] : 0;
        return true;
    }
    if (given < 0 || given >= (int64_t)n->sim->npu_count ||
        (g && cfg_group_index(g, (uint32_t)given) == RUN_NONE)) {
        run_fail_text(n->sim, n, r->place,
                      "the root of the %s, rank %" PRId64 ", is not one of its ranks",
                      coll_kind_name(r->kind), given);
        return false;
    }
    r->route.root = (uint32_t)given;
    return true;
}

/* The agreed order, if there is a choice. */
static bool find_plan(request *r, uint64_t size)
{
    orr_sim *s = r->n->sim;
    /* The number of its first chunk identifies a collective: its ranks count alike. */
    const uint64_t id = r->m ? r->m->next_stream : r->n->streams_made;
    /* One dimension has one order, and rooted collectives cross them in ascending order. */
    if (!s->schedule || coll_has_root(r->kind) || r->route.count < 2)
        return true;
    if (!sched_join(s, &r->route, id, size, &r->plan)) {
        run_no_memory(s);
        return false;
    }
    if (has_orders(r))
        r->streams = sched_plan_of(s, r->plan)->count;
    return true;
}

static bool open_set(request *r)
{
    orr_sim *s = r->n->sim;
    const size_t queues = run_queue_count(s);
    sys_data_set *set = new_set(r->n, r->place, r->streams);
    r->set = set;
    if (!set || r->plan == RUN_NONE)
        return set != NULL;
    set->plan = r->plan;
    set->first_id = r->m ? r->m->next_stream : r->n->streams_made;
    if (!set->started)
        set->started = orr_arena_new(s->arena, queues, uint32_t);
    else
        memset(set->started, 0, queues * sizeof *set->started);
    return set->started != NULL;
}

/* All members at once, by the NCCL model, if no algorithm is configured. */
static bool run_jointly(request *r, uint64_t size)
{
    run_npu *n = r->n;
    orr_sim *s = n->sim;
    if (!s->plans[r->kind].is_joint || custom_of(n, r->place, r->kind))
        return false;
    if (!group_of(n, r->place, &r->m))
        return true;
    const cfg_group *g = r->m ? r->m->group : NULL;
    uint32_t ranks;
    if (sys_find_plan(s, r->kind, g ? g->count : s->npu_count, size))
        return false;
    /* a user who names a plan does not want another algorithm */
    if (sys_unfit_plan(s, r->kind, &ranks)) {
        fail_no_algorithm(r, size);
        return true;
    }
    bool involved[ORR_NET_DIMS + 1];
    uint32_t mask = 0;
    if (!find_involved(r, s->dims, involved))
        return true;
    for (uint32_t k = 0; k < s->dims; k++)
        mask |= (uint32_t)involved[k] << k;
    joint_collective(n, r->place, r->kind, g, mask, size);
    return true;
}

void sys_collective(run_npu *n, uint32_t place, orr_collective kind, uint64_t size)
{
    orr_sim *s = n->sim;
    request r = {.n = n, .place = place, .kind = kind, .route = {.kind = kind}, .plan = RUN_NONE};
    if (run_jointly(&r, size))
        return;
    /* Again, for collectives that are not joint: the first lookup was for run_jointly. */
    if (!group_of(n, place, &r.m))
        return;
    /* A collective of all ranks in a symmetric run: the symmetry may have to be reduced before it
     * can continue. */
    if (s->lockstep && (!r.m || r.m->group->count == s->npu_count) && fold_is_set_apart(s))
        return;
    if (!cut(&r, &size) || !plan_of(&r, size) || !next_priority(n, place, &r.priority))
        return;
    if (!r.custom && !r.steps && (!find_active_dims(&r) || !find_plan(&r, size)))
        return;
    if (coll_has_root(kind) && !find_root(&r))
        return;
    if (!s->rules->runs_lonely &&
        (r.m ? r.m->group->count : s->npu_count) == 1) { /* no communication */
        run_npu_timer(n, 0, work_node_done, n, place);
        return;
    }
    if (!open_set(&r))
        run_no_memory(s);
    else if (r.custom)
        run_custom(&r);
    else if (r.steps)
        run_steps(&r);
    else
        run_native(&r);
}
