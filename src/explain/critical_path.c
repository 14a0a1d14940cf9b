/* SPDX-License-Identifier: Apache-2.0 */
/* critical_path.c - from the end of the last rank backwards to the start, through the log of steps.
 *
 *     rank 0   [ compute ]========[ all-reduce ]           the all-reduce of rank 0 ends when it does because
 *     rank 1   [ compute       ]--[ all-reduce ]           rank 1 came to it last: the path goes on there
 *
 * At each step: since when has it been the one that is waited for?  Since it started; or, when
 * another rank let it go on, since that rank came (a sender posted its message, the last member
 * entered the collective).  What then let *that* step start is the step of its rank that ended at
 * this moment, which the log has.  Each answer lies earlier in the order of events than the
 * question, so the walk ends; the parts touch, so they add up to the whole time.
 *
 * In a collective every member is taken to need every other one, which holds for all but the rooted
 * ones. */
#include "steps.h"

#include "base/memory/hash.h"
#include "base/text/text.h"
#include "run/match.h"

#include <orrery/lab/critical_path.h>

#include <stdlib.h>

/* ======== What ties the steps of different ranks together, found again from the log.
 *
 * The k-th send with a tag, source, destination and size meets the k-th receive (astra-sim.md 4.3),
 * and the log has both in the order in which they were posted: so messages need no entry of their
 * own while a run goes on. */

typedef struct message_key {
    uint32_t tag, src, dst;
    uint64_t size;
} message_key;

/* Steps of one side that wait for the other, first come first served. */
typedef struct waiting {
    message_key key;
    uint32_t first, last;
    bool is_send;
} waiting;

typedef struct linker {
    const orr_sim *s;
    uint32_t *partner, *next; /* by step */
    waiting *queues;
    size_t queue_count, queue_room;
    orr_map *by_key;
} linker;

static uint32_t node_of(const orr_sim *s, const watch_step *step)
{
    return run_graph_of(s, step->rank)->node[step->place];
}

static const orr_columns *columns_of(const orr_sim *s, const watch_step *step)
{
    return &run_graph_of(s, step->rank)->t->columns;
}

uint64_t step_node_id(const orr_sim *s, const watch_step *step)
{
    return columns_of(s, step)->id[node_of(s, step)] + orr_set_id_shift(s->set, step->rank);
}

orr_str step_name(const orr_sim *s, const watch_step *step)
{
    return orr_trace_name(run_graph_of(s, step->rank)->t, node_of(s, step));
}

orr_span_kind step_kind(const orr_sim *s, const watch_step *step)
{
    switch (columns_of(s, step)->type[node_of(s, step)]) {
    case ORR_NODE_COMM_SEND:
        return ORR_SPAN_SEND;
    case ORR_NODE_COMM_RECV:
        return ORR_SPAN_RECEIVE;
    case ORR_NODE_COMM_COLL:
        return ORR_SPAN_COLLECTIVE;
    case ORR_NODE_MEM_LOAD:
    case ORR_NODE_MEM_STORE:
        return ORR_SPAN_MEMORY;
    case ORR_NODE_COMP:
        return run_graph_of(s, step->rank)->slot[step->place] == WORK_SLOT_CPU ? ORR_SPAN_HOST
                                                                               : ORR_SPAN_COMPUTE;
    default:
        return ORR_SPAN_OTHER;
    }
}

uint64_t step_size(const orr_sim *s, const watch_step *step)
{
    const orr_columns *c = columns_of(s, step);
    const uint32_t i = node_of(s, step);
    const bool is_message = c->type[i] >= ORR_NODE_COMM_SEND && c->type[i] <= ORR_NODE_COMM_COLL;
    const int64_t *column = is_message ? c->comm_size : c->tensor_size;
    return column && column[i] > 0 ? (uint64_t)column[i] : 0;
}

int64_t step_peer(const orr_sim *s, const watch_step *step, bool is_send)
{
    const orr_columns *c = columns_of(s, step);
    return orr__set_value(s->set, step->rank, is_send ? ORR_HOLE_COMM_DST : ORR_HOLE_COMM_SRC,
                          is_send ? c->comm_dst : c->comm_src, node_of(s, step));
}

/* ---- messages ---- */

static bool key_of(const orr_sim *s, const watch_step *step, bool is_send, message_key *out)
{
    const orr_columns *c = columns_of(s, step);
    const uint32_t i = node_of(s, step);
    const int64_t value = step_peer(s, step, is_send);
    const int64_t tag = orr__set_value(s->set, step->rank, ORR_HOLE_COMM_TAG, c->comm_tag, i);
    if (value == ORR_NO_VALUE || tag == ORR_NO_VALUE || !c->comm_size)
        return false;
    const uint32_t peer = (uint32_t)value;
    *out = (message_key){.tag = (uint32_t)((uint64_t)tag % MSG_TAG_SPACE),
                         .src = is_send ? step->rank : peer,
                         .dst = is_send ? peer : step->rank,
                         .size = (uint64_t)c->comm_size[i]};
    return true;
}

static bool is_same(const message_key *a, const message_key *b)
{
    return a->tag == b->tag && a->src == b->src && a->dst == b->dst && a->size == b->size;
}

static waiting *find_queue(linker *l, const message_key *k)
{
    const uint64_t ranks = (uint64_t)k->src << 32 | k->dst, rest = (uint64_t)k->tag << 32 ^ k->size;
    uint64_t hash = orr_hash_mix(ranks ^ 0xa0761d6478bd642fu, rest ^ 0xe7037ed1a0b428dbu);
    uint32_t i;
    while ((i = orr_map_find(l->by_key, hash, RUN_NONE)) != RUN_NONE) {
        if (is_same(&l->queues[i].key, k))
            return &l->queues[i];
        hash++;
    }
    if (!orr_grow(&l->queues, &l->queue_room, l->queue_count + 1) ||
        !orr_map_put(l->by_key, hash, (uint32_t)l->queue_count, NULL))
        return NULL;
    l->queues[l->queue_count] = (waiting){.key = *k, .first = RUN_NONE, .last = RUN_NONE};
    return &l->queues[l->queue_count++];
}

static bool link_step(linker *l, uint32_t i)
{
    const watch_step *steps = l->s->watch->log.steps;
    const orr_span_kind kind = step_kind(l->s, &steps[i]);
    const bool is_send = kind == ORR_SPAN_SEND;
    message_key key;
    if ((kind != ORR_SPAN_SEND && kind != ORR_SPAN_RECEIVE) ||
        !key_of(l->s, &steps[i], is_send, &key))
        return true;
    waiting *q = find_queue(l, &key);
    if (!q)
        return false;
    if (q->first != RUN_NONE && q->is_send != is_send) {
        l->partner[i] = q->first;
        l->partner[q->first] = i;
        q->first = l->next[q->first];
        return true;
    }
    q->is_send = is_send;
    l->next[i] = RUN_NONE;
    if (q->first == RUN_NONE)
        q->first = i;
    else
        l->next[q->last] = i;
    q->last = i;
    return true;
}

uint32_t *step_partners(const orr_sim *s)
{
    const size_t count = s->watch->log.step_count;
    linker l = {.s = s, .by_key = orr_map_create(0)};
    l.partner = orr_alloc(count, sizeof *l.partner);
    l.next = orr_alloc(count, sizeof *l.next);
    bool ok = l.by_key && l.partner && l.next;
    if (ok)
        memset(l.partner, 0xff, count * sizeof *l.partner);
    for (uint32_t i = 0; ok && i < count && !s->system.replay_only; i++)
        ok = link_step(&l, i);
    orr_map_destroy(l.by_key);
    orr_free(l.queues);
    orr_free(l.next);
    if (ok)
        return l.partner;
    orr_free(l.partner);
    return NULL;
}

/* ---- collectives ---- */

uint32_t step_last_member(const orr_sim *s, uint32_t step)
{
    const watch_step *steps = s->watch->log.steps, *me = &steps[step];
    if (me->instance == RUN_NONE)
        return step;
    const uint32_t source = s->watch->instances[me->instance].source;
    uint32_t last = s->watch->instances[me->instance].last;
    while (last != RUN_NONE && last != step &&
           (steps[last].start > me->end || (source != RUN_NONE && steps[last].rank != source)))
        last = steps[last].earlier;
    return last != RUN_NONE && steps[last].start > me->start ? last : step;
}

enum { MOST_RANKS = 4096 }; /* of which a log may well be written */

typedef struct walker {
    const orr_sim *s;
    const watch_step *steps;
    uint32_t *partner;
    uint32_t *served; /* memory steps by server and end */
    uint32_t served_count;
    orr_arena *arena;
    orr_path_step *path;
    size_t path_count, path_room;
    orr_map *name_of; /* of steps: class and place -> number of a copied name */
    const char **names;
    size_t name_count, name_room;
    uint32_t missed; /* the rank whose log it takes to go on; NONE: none */
} walker;

/* The object and the arena that all of it lies in. */
typedef struct owner {
    orr_critical_path path;
    orr_arena *arena;
} owner;

const char *orr_path_after_name(orr_path_after after)
{
    static const char *const names[ORR_PATH_AFTERS] = {"start", "dependency", "slot", "turn",
                                                       "server"};
    return after < ORR_PATH_AFTERS ? names[after] : NULL;
}

const char *orr_path_held_name(orr_path_held held)
{
    static const char *const names[ORR_PATH_HELDS] = {NULL, "message", "receiver", "last_rank"};
    return held < ORR_PATH_HELDS ? names[held] : NULL;
}

/* ---- memory servers: one access after the other ---- */

static uint32_t server_of(const orr_sim *s, const watch_step *step)
{
    const cfg_memory *c = &s->memory;
    return c->type == CFG_MEM_POOL || !c->npus_per_node ? 0
                                                        : (uint32_t)(step->rank / c->npus_per_node);
}

static int compare_served(const void *a, const void *b, void *walk)
{
    const walker *w = walk;
    const uint32_t i = *(const uint32_t *)a, k = *(const uint32_t *)b;
    const watch_step *x = &w->steps[i], *y = &w->steps[k];
    const uint32_t at = server_of(w->s, x), other = server_of(w->s, y);
    if (at != other)
        return at < other ? -1 : 1;
    if (x->end != y->end)
        return x->end < y->end ? -1 : 1;
    return i < k ? -1 : i > k;
}

static bool list_served(walker *w)
{
    const size_t count = w->s->watch->log.step_count;
    const cfg_memory_type type = w->s->memory.type;
    if (type != CFG_MEM_PER_NODE && type != CFG_MEM_POOL)
        return true;
    w->served = orr_alloc(count, sizeof *w->served);
    for (uint32_t i = 0; w->served && i < count; i++)
        if (step_kind(w->s, &w->steps[i]) == ORR_SPAN_MEMORY)
            w->served[w->served_count++] = i;
    if (w->served)
        qsort_r(w->served, w->served_count, sizeof *w->served, compare_served, w);
    return w->served != NULL;
}

/* The access that this one had to wait for; NONE: it was served at once. */
static uint32_t served_before(walker *w, uint32_t step)
{
    uint32_t low = 0, high = w->served_count;
    while (low < high) {
        const uint32_t mid = low + (high - low) / 2;
        if (compare_served(&w->served[mid], &step, w) < 0)
            low = mid + 1;
        else
            high = mid;
    }
    if (low == 0 || low == w->served_count)
        return RUN_NONE;
    const uint32_t before = w->served[low - 1];
    const bool is_same = server_of(w->s, &w->steps[before]) == server_of(w->s, &w->steps[step]);
    return is_same && w->steps[before].end > w->steps[step].start ? before : RUN_NONE;
}

/* ---- what held a step ---- */

typedef struct hold {
    orr_path_held how;
    uint32_t by; /* step: its start is what was waited for */
} hold;

static hold find_hold(const walker *w, uint32_t step)
{
    const watch_step *me = &w->steps[step];
    const orr_span_kind kind = step_kind(w->s, me);
    const uint32_t partner = w->partner[step];
    const bool is_met = partner != RUN_NONE;
    if (kind == ORR_SPAN_COLLECTIVE) {
        const uint32_t last = step_last_member(w->s, step);
        return last == step ? (hold){ORR_PATH_NOT_HELD, step} : (hold){ORR_PATH_LAST_RANK, last};
    }
    if (!is_met)
        return (hold){ORR_PATH_NOT_HELD, step};
    const bool is_later = w->steps[partner].start > me->start;
    if (kind == ORR_SPAN_SEND && w->s->opt.rendezvous && is_later)
        return (hold){ORR_PATH_RECEIVER, partner};
    /* Without a rendezvous the receive ends with the message, unless that was there already. */
    if (kind == ORR_SPAN_RECEIVE && (w->s->opt.rendezvous ? is_later : me->end > me->start))
        return (hold){ORR_PATH_MESSAGE, partner};
    return (hold){ORR_PATH_NOT_HELD, step};
}

static bool has_parent(const work_graph *g, uint32_t child, uint32_t parent)
{
    for (uint32_t e = g->child_first[parent]; e < g->child_first[parent + 1]; e++)
        if (g->child[e] == child)
            return true;
    return false;
}

static orr_path_after how_after(const walker *w, uint32_t step, uint32_t cause)
{
    if (cause == RUN_NONE)
        return ORR_PATH_START;
    const watch_step *me = &w->steps[step], *before = &w->steps[cause];
    const work_graph *g = run_graph_of(w->s, me->rank);
    if (has_parent(g, me->place, before->place))
        return ORR_PATH_DEPENDENCY;
    const bool has_slot = g->slot[me->place] != WORK_SLOT_RECV;
    return has_slot && g->slot[me->place] == g->slot[before->place] ? ORR_PATH_SLOT : ORR_PATH_TURN;
}

/* ---- the walk ---- */

static const char *what_of(const orr_sim *s, const watch_step *step)
{
    const work_graph *g = run_graph_of(s, step->rank);
    const orr_columns *c = &g->t->columns;
    const orr_span_kind kind = step_kind(s, step);
    const char *name = NULL;
    if (kind == ORR_SPAN_COLLECTIVE && c->comm_type)
        name = orr_collective_name((uint32_t)c->comm_type[g->node[step->place]]);
    if (name)
        return name;
    if (kind == ORR_SPAN_SEND || kind == ORR_SPAN_RECEIVE)
        return "message";
    return kind == ORR_SPAN_MEMORY ? "remote memory" : orr_span_kind_name(kind);
}

/* Names are copied, so that the path outlives the simulation; equal ranks share theirs. */
static const char *name_of(walker *w, const watch_step *step)
{
    const work_graph *g = run_graph_of(w->s, step->rank);
    const uint64_t key = (uint64_t)(g - w->s->graphs) << 32 | step->place;
    const uint32_t known = orr_map_find(w->name_of, key, RUN_NONE);
    if (known != RUN_NONE)
        return w->names[known];
    const char *text = orr_arena_text(w->arena, step_name(w->s, step));
    if (!text || !orr_grow(&w->names, &w->name_room, w->name_count + 1) ||
        !orr_map_put(w->name_of, key, (uint32_t)w->name_count, NULL))
        return NULL;
    w->names[w->name_count++] = text;
    return text;
}

static bool add_step(walker *w, uint32_t step, const hold *h, uint64_t from, uint64_t to)
{
    const watch_step *me = &w->steps[step], *by = &w->steps[h->by];
    const char *name = name_of(w, me);
    if (!name || !orr_grow(&w->path, &w->path_room, w->path_count + 1))
        return false;
    orr_path_step *out = &w->path[w->path_count++];
    *out = (orr_path_step){.from = from,
                           .to = to,
                           .rank = me->rank,
                           .kind = (uint8_t)step_kind(w->s, me),
                           .held = (uint8_t)h->how,
                           .node = step_node_id(w->s, me),
                           .name = name,
                           .what = what_of(w->s, me),
                           .size = step_size(w->s, me)};
    if (h->how != ORR_PATH_NOT_HELD) {
        out->held_rank = by->rank;
        out->held_node = step_node_id(w->s, by);
    }
    return true;
}

/* A rank may start late (--ranks-file): then the path does, too. */
static bool add_late_start(walker *w, uint64_t until)
{
    if (until == 0 || w->path_count == 0)
        return true;
    if (!orr_grow(&w->path, &w->path_room, w->path_count + 1))
        return false;
    orr_path_step *out = &w->path[w->path_count++];
    *out = out[-1];
    out->from = 0;
    out->to = until;
    out->kind = ORR_SPAN_OTHER;
    out->held = ORR_PATH_NOT_HELD;
    out->size = 0;
    out->what = "late start";
    return true;
}

/* It ends early where the log does not have what let a rank begin: missed says whose. */
static bool walk(walker *w, uint32_t step, uint64_t until)
{
    size_t left = 2 * w->s->watch->log.step_count + 1; /* more than any walk takes */
    while (step != RUN_NONE && left--) {
        const hold h = find_hold(w, step);
        if (!watch_has_rank(w->s, w->steps[h.by].rank)) {
            w->missed = w->steps[h.by].rank;
            return true;
        }
        const uint32_t queued = w->served_count ? served_before(w, step) : RUN_NONE;
        const bool is_queued =
            queued != RUN_NONE && step_kind(w->s, &w->steps[step]) == ORR_SPAN_MEMORY;
        const uint64_t from = is_queued ? w->steps[queued].end : w->steps[h.by].start;
        const uint32_t next = is_queued ? queued : w->steps[h.by].cause;
        if (!add_step(w, step, &h, from, until))
            return false;
        w->path[w->path_count - 1].after =
            (uint8_t)(is_queued ? ORR_PATH_SERVER : how_after(w, h.by, next));
        until = from;
        step = next;
    }
    if (!add_late_start(w, until))
        return false;
    for (size_t i = 0; i < w->path_count / 2; i++) { /* it was walked backwards */
        const orr_path_step swap = w->path[i];
        w->path[i] = w->path[w->path_count - 1 - i];
        w->path[w->path_count - 1 - i] = swap;
    }
    return true;
}

/* ---- shares ---- */

static int compare_shares(const void *a, const void *b)
{
    const orr_path_share *x = a, *y = b;
    if (x->time != y->time)
        return x->time > y->time ? -1 : 1;
    return strcmp(x->what, y->what);
}

/* There are about a dozen kinds of work. */
static bool add_up(walker *w, orr_critical_path *out)
{
    enum { KINDS = 32 };
    orr_path_share *shares = orr_arena_new(w->arena, KINDS, orr_path_share);
    bool *is_seen = orr_arena_new(w->arena, w->s->npu_count, bool);
    size_t count = 0;
    if (!shares || !is_seen)
        return false;
    for (size_t i = 0; i < w->path_count; i++) {
        const orr_path_step *p = &w->path[i];
        size_t k = 0;
        while (k < count && strcmp(shares[k].what, p->what) != 0)
            k++;
        if (k == count && count < KINDS)
            shares[count++].what = p->what;
        if (k < KINDS) {
            shares[k].time += p->to - p->from;
            shares[k].steps++;
        }
        out->ranks += !is_seen[p->rank];
        is_seen[p->rank] = true;
    }
    qsort(shares, count, sizeof *shares, compare_shares);
    out->shares = shares;
    out->share_count = count;
    return true;
}

static bool keep(walker *w, orr_critical_path *out)
{
    orr_path_step *steps = orr_arena_new(w->arena, w->path_count, orr_path_step);
    if (!steps || !add_up(w, out))
        return false;
    if (w->path_count)
        memcpy(steps, w->path, w->path_count * sizeof *steps);
    out->steps = steps;
    out->step_count = w->path_count;
    return true;
}

static orr_code check_state(const orr_sim *s, orr_error *err)
{
    if (!s->watch || !s->watch->keeps_steps)
        return orr_fail(err, ORR_EUSAGE, NULL,
                        "the critical path was not recorded: orr_sim_options.record");
    if (s->finished < s->npu_count)
        return orr_fail(err, ORR_EUSAGE, NULL,
                        "there is no critical path: %u of %u ranks have not finished",
                        s->npu_count - s->finished, s->npu_count);
    return ORR_OK;
}

/* The rank that finished last; of several in one tick, the one with the largest number. */
static uint32_t last_rank(const orr_sim *s)
{
    uint32_t last = 0;
    for (uint32_t r = 1; r < s->npu_count; r++)
        if (orr_sim_rank(s, r)->finished_at >= orr_sim_rank(s, last)->finished_at)
            last = r;
    return last;
}

/* Its step that ended last; of several in one tick, the one that began last. */
static uint32_t last_step(const orr_sim *s, uint32_t rank)
{
    const watch_log *l = &s->watch->log;
    uint32_t last = RUN_NONE;
    for (uint32_t i = l->first_step[rank]; i < l->first_step[rank + 1]; i++)
        if (last == RUN_NONE || l->steps[i].end >= l->steps[last].end)
            last = i;
    return last;
}

static void drop_walk(walker *w)
{
    orr_free(w->path);
    orr_free(w->partner);
    orr_free(w->served);
    w->path = NULL;
    w->partner = w->served = NULL;
    w->path_count = w->path_room = w->served_count = 0;
}

/* A folded run is asked for the ranks on the path only, as they are met.  A path that goes on to another rank mostly goes
 * on along a pipeline: each time as many of the next ones are asked for as were before, so a log is written no more than
 * a few times. */
static bool find_path(walker *w, bool *asked, orr_critical_path *out)
{
    enum { MOST_ROUNDS = 64 };
    const uint32_t rank = last_rank(w->s);
    const bool is_folded = w->s->fold || w->s->lockstep;
    uint32_t rounds = 0, count = 0;
    out->total = orr_sim_rank(w->s, rank)->finished_at;
    w->missed = rank;
    while (w->missed != RUN_NONE) {
        asked[w->missed] = true;
        if (is_folded && rounds && !watch_ask_near(w->s, w->missed, count, asked))
            return false;
        for (uint32_t r = count = 0; r < w->s->npu_count; r++)
            count += asked[r];
        w->missed = RUN_NONE;
        drop_walk(w);
        /* A path that goes back and forth between many ranks takes them all. */
        const bool *some = rounds++ < MOST_ROUNDS || w->s->npu_count > MOST_RANKS ? asked : NULL;
        if (!watch_log_settle(w->s, some))
            return false;
        w->steps = w->s->watch->log.steps;
        if (!(w->partner = step_partners(w->s)) || !list_served(w) ||
            !walk(w, last_step(w->s, rank), out->total))
            return false;
    }
    return keep(w, out);
}

orr_code orr_sim_critical_path(const orr_sim *s, orr_critical_path **out, orr_error *err)
{
    const orr_code code = check_state(s, err);
    *out = NULL;
    if (code)
        return code;
    walker w = {.s = s, .arena = orr_arena_create()};
    owner *o = w.arena ? orr_arena_new(w.arena, 1, owner) : NULL;
    bool *asked = orr_alloc(s->npu_count, sizeof *asked);
    w.name_of = orr_map_create(0);
    if (o)
        o->arena = w.arena;
    const bool ok = o && asked && w.name_of && find_path(&w, asked, &o->path);
    orr_free(asked);
    orr_map_destroy(w.name_of);
    orr_free(w.names);
    drop_walk(&w);
    if (!ok) {
        orr_arena_destroy(w.arena);
        return orr_no_memory(err);
    }
    *out = &o->path;
    return ORR_OK;
}

void orr_critical_path_destroy(orr_critical_path *p)
{
    if (p)
        orr_arena_destroy(((owner *)p)->arena);
}
