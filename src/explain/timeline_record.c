/* SPDX-License-Identifier: Apache-2.0 */
/* timeline_record.c - from the log of a run to a timeline.
 *
 *     rank r   host            one at a time
 *              compute         one at a time
 *              communication   one at a time: collectives, sends, remote memory
 *              receives        any number
 *              phases, dimension k[, queue q]      when phases were recorded
 *
 * Arrows are messages between nodes. */
#include <orrery/lab/critical_path.h>

#include "base/memory/hash.h"
#include "base/memory/sort.h"
#include "base/text/text.h"
#include "facts.h"
#include "run/match.h"
#include "run/watch.h"
#include "trace/attrs.h"
#include "trace/known_names.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* From the end of the last rank backwards to the start, through the log of steps.
 *
 *     rank 0   [ compute ]========[ all-reduce ]           the all-reduce of rank 0 ends when it does because
 *     rank 1   [ compute       ]--[ all-reduce ]           rank 1 joined last: it continues there
 *
 * At each step: since when was it critical?  Since it started; or, if another rank released it,
 * since that rank arrived (a sender posted its message, the last member joined the collective).
 * *That* step was released by the step of its rank that ended at that moment, which the log has.
 * Each answer precedes the question in the order of events, so the walk terminates; the parts are
 * contiguous, so they add up to the total time.
 *
 * In a collective every member is assumed to need every other one, which holds except for rooted
 * ones. */

/* ======== Dependencies between steps of different ranks, reconstructed from the log.
 *
 * The k-th send with a tag, source, destination and size meets the k-th receive (astra-sim.md 4.3),
 * and the log has both in posting order: so messages need not be recorded during a run. */

typedef struct message_key {
    uint32_t tag, src, dst;
    uint64_t size;
} message_key;

/* Unmatched steps of one side, FIFO. */
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

static uint64_t node_id(const orr_sim *s, const watch_step *step)
{
    return columns_of(s, step)->id[node_of(s, step)] + orr_set_id_shift(s->set, step->rank);
}

/* The peer of a message, or ORR_NO_VALUE. */
static orr_str step_name(const orr_sim *s, const watch_step *step)
{
    return orr_trace_name(run_graph_of(s, step->rank)->t, node_of(s, step));
}

static orr_span_kind step_kind(const orr_sim *s, const watch_step *step)
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

/* bytes; 0: unknown */
static uint64_t step_size(const orr_sim *s, const watch_step *step)
{
    const orr_columns *c = columns_of(s, step);
    const uint32_t i = node_of(s, step);
    const bool is_message = c->type[i] >= ORR_NODE_COMM_SEND && c->type[i] <= ORR_NODE_COMM_COLL;
    const int64_t *column = is_message ? c->comm_size : c->tensor_size;
    return column && column[i] > 0 ? (uint64_t)column[i] : 0;
}

static int64_t step_peer(const orr_sim *s, const watch_step *step, bool is_send)
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

/* The send of each receive and vice versa, by step; NONE: none.  NULL: out of memory. */
static uint32_t *step_partners(const orr_sim *s)
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

/* The last member that joined the collective of this step before the step ended; the step itself
 * when none joined later. */
static uint32_t last_member(const orr_sim *s, uint32_t step)
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

enum { MOST_RANKS = 4096 }; /* limit for writing a full log */

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
    uint32_t missed; /* the rank whose log is needed to continue; NONE: none */
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

/* ---- memory servers: one access at a time ---- */

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

/* The access that delayed this one; NONE: it was served at once. */
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

/* ---- what delayed a step ---- */

typedef struct hold {
    orr_path_held how;
    uint32_t by; /* step whose start was awaited */
} hold;

static hold find_hold(const walker *w, uint32_t step)
{
    const watch_step *me = &w->steps[step];
    const orr_span_kind kind = step_kind(w->s, me);
    const uint32_t partner = w->partner[step];
    const bool is_met = partner != RUN_NONE;
    if (kind == ORR_SPAN_COLLECTIVE) {
        const uint32_t last = last_member(w->s, step);
        return last == step ? (hold){ORR_PATH_NOT_HELD, step} : (hold){ORR_PATH_LAST_RANK, last};
    }
    if (!is_met)
        return (hold){ORR_PATH_NOT_HELD, step};
    const bool is_later = w->steps[partner].start > me->start;
    if (kind == ORR_SPAN_SEND && w->s->opt.rendezvous && is_later)
        return (hold){ORR_PATH_RECEIVER, partner};
    /* Without a rendezvous the receive ends with the message, unless that had arrived earlier. */
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

/* Names are copied, so that the path outlives the simulation; equal ranks share them. */
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

static bool add_to_path(walker *w, uint32_t step, const hold *h, uint64_t from, uint64_t to)
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
                           .node = node_id(w->s, me),
                           .name = name,
                           .what = what_of(w->s, me),
                           .size = step_size(w->s, me)};
    if (h->how != ORR_PATH_NOT_HELD) {
        out->held_rank = by->rank;
        out->held_node = node_id(w->s, by);
    }
    return true;
}

/* A rank may start late (--ranks-file): then so does the path. */
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

/* Ends early if the log lacks the step that released a rank: missed is that rank. */
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
        if (!add_to_path(w, step, &h, from, until))
            return false;
        w->path[w->path_count - 1].after =
            (uint8_t)(is_queued ? ORR_PATH_SERVER : how_after(w, h.by, next));
        until = from;
        step = next;
    }
    if (!add_late_start(w, until))
        return false;
    for (size_t i = 0; i < w->path_count / 2; i++) { /* it was collected backwards */
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
    orr_sort(shares, count, sizeof *shares, compare_shares);
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

/* For a folded run only the ranks on the path are requested, as they appear.  A path that crosses
 * to another rank mostly continues along a pipeline: the number of requested ranks doubles each
 * time, so the log is written only a few times. */
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
        /* A path that alternates between many ranks gets them all. */
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

/* ======== Counters of a timeline:
 *
 *     ranks computing, ranks communicating     of the whole job
 *     sent, dimension k                        mean bytes per second sent by a rank along it
 *     memory                                   of each rank: its live tensors, when the system file tracks them; else what
 *                                              the nodes' attribute held_bytes says
 *
 * held_bytes: from when such a node starts, its rank holds that much. */

typedef struct counting {
    const orr_sim *s;
    const struct watch_record *w;
    orr_timeline *t;
    const uint32_t *stands_for; /* by rank: how many it represents; NULL: one */
    orr_error *err;
} counting;

/* ---- active ranks ---- */

typedef struct change {
    uint64_t at;
    uint32_t rank;
    uint8_t counter;
    bool is_start;
} change;

static int compare_changes(const void *a, const void *b)
{
    const change *x = a, *y = b;
    return x->at != y->at ? (x->at < y->at ? -1 : 1) : 0;
}

/* 0: computes; 1: communicates; 2: neither. */
static uint8_t counter_of(const counting *r, const watch_step *step)
{
    switch (step_kind(r->s, step)) {
    case ORR_SPAN_COMPUTE:
        return 0;
    case ORR_SPAN_SEND:
    case ORR_SPAN_RECEIVE:
    case ORR_SPAN_COLLECTIVE:
        return 1;
    default:
        return 2;
    }
}

static size_t list_changes(const counting *r, change *out)
{
    size_t count = 0;
    for (size_t i = 0; i < r->w->log.step_count; i++) {
        const watch_step *step = &r->w->log.steps[i];
        const uint8_t k = counter_of(r, step);
        if (k > 1 || !watch_has_rank(r->s, step->rank))
            continue;
        out[count++] = (change){step->start, step->rank, k, true};
        if (step->end != ORR_NEVER)
            out[count++] = (change){step->end, step->rank, k, false};
    }
    return count;
}

/* Only the value at the end of a tick is a sample, so the order within one does not matter. */
static orr_code add_samples(const counting *r,
                            const change *changes,
                            size_t count,
                            uint32_t *active)
{
    uint32_t counter[2];
    int64_t ranks[2] = {0, 0};
    orr_code code = orr_timeline_add_counter(r->t, ORR_NO_RANK, orr_str_of("ranks computing"),
                                             orr_str_of("ranks"), &counter[0], r->err);
    if (!code)
        code = orr_timeline_add_counter(r->t, ORR_NO_RANK, orr_str_of("ranks communicating"),
                                        orr_str_of("ranks"), &counter[1], r->err);
    for (size_t i = 0; i < count && !code; i++) {
        const change *c = &changes[i];
        uint32_t *n = &active[2 * (size_t)c->rank + c->counter];
        const bool was = *n > 0;
        *n = c->is_start ? *n + 1 : *n - 1;
        ranks[c->counter] +=
            ((*n > 0) - was) * (int64_t)(r->stands_for ? r->stands_for[c->rank] : 1);
        for (unsigned k = 0; k < 2 && !code && (i + 1 == count || changes[i + 1].at != c->at); k++)
            code = orr_timeline_add_sample(r->t, counter[k], watch_ps(c->at), ranks[k], r->err);
    }
    return code;
}

static orr_code add_activity(const counting *r)
{
    change *changes = orr_alloc(2 * r->w->log.step_count, sizeof *changes);
    uint32_t *active = orr_alloc(2 * (size_t)r->s->npu_count, sizeof *active);
    orr_code code = changes && active ? ORR_OK : orr_no_memory(r->err);
    if (!code) {
        const size_t count = list_changes(r, changes);
        orr_sort(changes, count, sizeof *changes, compare_changes);
        code = add_samples(r, changes, count, active);
    }
    orr_free(changes);
    orr_free(active);
    return code;
}

/* ---- traffic ---- */

static orr_code add_traffic(const counting *r, uint32_t dimension)
{
    const watch_traffic_bins *b = r->w->bins;
    const uint64_t end = watch_end_of_run(r->s);
    const uint64_t width = UINT64_C(1) << b->shift;
    uint32_t counter;
    int64_t before = -1;
    char name[64];
    snprintf(name, sizeof name, "sent, dimension %u", dimension);
    orr_code code = orr_timeline_add_counter(r->t, ORR_NO_RANK, orr_str_of(name), orr_str_of("B/s"),
                                             &counter, r->err);
    for (uint32_t i = 0; i < WATCH_TRAFFIC_BINS && !code; i++) {
        const uint64_t from = (uint64_t)i << b->shift;
        if (from >= end)
            break;
        const uint64_t length = end - from < width ? end - from : width;
        const double rate =
            (double)b->bytes[dimension][i] * 1e9 / ((double)length * r->s->npu_count);
        const int64_t value = rate < 9e18 ? (int64_t)rate : INT64_MAX;
        if (value != before)
            code = orr_timeline_add_sample(r->t, counter, watch_ps(from), value, r->err);
        before = value;
    }
    return code || before <= 0 ? code
                               : orr_timeline_add_sample(r->t, counter, watch_ps(end), 0, r->err);
}

static orr_code add_all_traffic(const counting *r)
{
    orr_code code = ORR_OK;
    for (uint32_t k = 0; k < r->s->dims && !code; k++)
        if (r->w->bins && r->w->traffic[k].messages)
            code = add_traffic(r, k);
    return code;
}

/* ---- memory ---- */

typedef struct memory {
    const counting *r;
    int64_t **held;    /* by class and place; NULL: no node of the class says anything */
    uint32_t *counter; /* by rank; NONE: not made */
} memory;

static orr_code add_memory_counter(const counting *r, uint32_t rank, uint32_t *counter)
{
    return orr_timeline_add_counter(r->t, rank, orr_str_of("memory"), orr_str_of("bytes"), counter,
                                    r->err);
}

typedef struct tensor_samples {
    const counting *r;
    uint32_t counter;
    orr_code code;
} tensor_samples;

static void add_usage(void *context, uint64_t tick, uint64_t usage)
{
    tensor_samples *v = context;
    const int64_t value = usage < INT64_MAX ? (int64_t)usage : INT64_MAX;
    if (!v->code)
        v->code = orr_timeline_add_sample(v->r->t, v->counter, watch_ps(tick), value, v->r->err);
}

/* Of finished ranks: before that it is not known which tensors will be read again. */
static orr_code add_tensors(const counting *r, uint32_t rank)
{
    tensor_samples v = {.r = r};
    if (r->s->npus[rank].result.finished_at == ORR_NEVER)
        return ORR_OK;
    v.code = add_memory_counter(r, rank, &v.counter);
    if (v.code)
        return v.code;
    const orr_code code = mem_usage(&r->s->npus[rank], add_usage, &v, r->err);
    return code ? code : v.code;
}

static bool read_held(const work_graph *g, int64_t **out)
{
    for (uint32_t place = 0; place < g->count; place++) {
        orr_node node;
        orr_attr attr;
        int64_t value;
        orr_trace_node(g->t, g->node[place], &node);
        if (!orr__node_get(&node, ORR__ATTR_HELD_BYTES, &attr) || !orr_attr_int(&attr, &value) ||
            value < 0)
            continue;
        if (!*out && !(*out = orr_alloc(g->count, sizeof **out)))
            return false;
        (*out)[place] = value + 1; /* 0: nothing is said */
    }
    return true;
}

static orr_code add_held(memory *m, const watch_step *step)
{
    const counting *r = m->r;
    const uint32_t class_index = orr_set_class_of(r->s->set, step->rank);
    const int64_t *held = m->held[class_index];
    if (!held || held[step->place] == 0)
        return ORR_OK;
    uint32_t *counter = &m->counter[step->rank];
    const orr_code code =
        *counter == RUN_NONE ? add_memory_counter(r, step->rank, counter) : ORR_OK;
    return code ? code
                : orr_timeline_add_sample(r->t, *counter, watch_ps(step->start),
                                          held[step->place] - 1, r->err);
}

static orr_code add_all_held(memory *m)
{
    const orr_sim *s = m->r->s;
    const uint32_t classes = orr_set_class_count(s->set);
    orr_code code = m->held && m->counter ? ORR_OK : orr_no_memory(m->r->err);
    bool has_any = false;
    for (uint32_t r = 0; r < s->npu_count && !code; r++)
        m->counter[r] = RUN_NONE;
    for (uint32_t k = 0; k < classes && !code; k++) {
        if (s->graphs[k].t && !read_held(&s->graphs[k], &m->held[k]))
            code = orr_no_memory(m->r->err);
        has_any |= m->held[k] != NULL;
    }
    for (size_t i = 0; i < m->r->w->log.step_count && has_any && !code; i++)
        if (watch_has_rank(s, m->r->w->log.steps[i].rank))
            code = add_held(m, &m->r->w->log.steps[i]);
    for (uint32_t k = 0; m->held && k < classes; k++)
        orr_free(m->held[k]);
    return code;
}

static orr_code add_memory(const counting *r)
{
    orr_code code = ORR_OK;
    if (r->s->system.track_local_mem) {
        for (uint32_t rank = 0; rank < r->s->npu_count && !code; rank++)
            code = add_tensors(r, rank);
        return code;
    }
    memory m = {.r = r,
                .held = orr_alloc(orr_set_class_count(r->s->set), sizeof *m.held),
                .counter = orr_alloc(r->s->npu_count, sizeof *m.counter)};
    code = add_all_held(&m);
    orr_free(m.held);
    orr_free(m.counter);
    return code;
}

static orr_code add_counters(const orr_sim *s,
                             const uint32_t *stands_for,
                             orr_timeline *t,
                             orr_error *err)
{
    const counting r = {.s = s, .w = s->watch, .t = t, .stands_for = stands_for, .err = err};
    orr_code code = add_activity(&r);
    if (!code)
        code = add_all_traffic(&r);
    return code ? code : add_memory(&r);
}

/* Compute nodes that are not work: annotations, and one-sided communication kernels. */
enum { ROLE_WORK, ROLE_ANNOTATION, ROLE_ONE_SIDED };

typedef struct recorder {
    const orr_sim *s;
    uint8_t **role; /* by class and place; NULL: all of the class is work */
    const watch_log *w;
    const uint32_t *like; /* by rank: whose spans stand for its own; NULL: each has its own */
    uint32_t *stands_for; /* by rank: how many; NULL likewise */
    uint64_t apart;       /* maximum time difference in ns within a group of represented ranks */
    orr_timeline *t;
    orr_error *err;
    uint32_t *track;       /* by rank and slot; NONE: not made */
    uint32_t *phase_track; /* by rank, dimension and queue */
    uint32_t *span;        /* by step */
    uint32_t *partner;
    uint64_t until; /* end of open spans */
    run_npu view;   /* the current rank: only what it runs */
} recorder;

static const run_npu *view_of(recorder *r, uint32_t rank)
{
    r->view.rank = rank;
    r->view.graph = run_graph_of(r->s, rank);
    return &r->view;
}

/* ---- tracks: non-empty ones, rank by rank ---- */

static const char *slot_name(const work_graph *g, uint32_t slot, char room[48])
{
    static const char *const names[WORK_SLOT_STREAMS] = {"host", "compute", "communication",
                                                         "receives"};
    if (!work_is_comm_slot((uint8_t)slot) || g->slot_count == WORK_SLOT_STREAMS)
        return names[slot];
    snprintf(room, 48, "communication, stream %" PRId64, g->stream[slot]);
    return room;
}

static size_t phase_place(const recorder *r, const watch_phase *p)
{
    const size_t queues = (size_t)r->s->opt.queues_per_dim * r->s->lanes;
    return ((size_t)r->w->steps[p->step].rank * r->s->dims + p->dim) * queues + p->queue;
}

static orr_code add_slot_tracks(recorder *r, uint32_t rank)
{
    orr_code code = ORR_OK;
    char room[48];
    for (uint32_t k = 0; k < WORK_SLOTS && !code; k++) {
        uint32_t *track = &r->track[rank * WORK_SLOTS + k];
        if (*track != RUN_NONE)
            code = orr_timeline_add_track(r->t, rank,
                                          orr_str_of(slot_name(run_graph_of(r->s, rank), k, room)),
                                          track, r->err);
    }
    return code;
}

static const char *phase_name(const recorder *r, uint32_t rank, uint32_t k, orr_arena *a)
{
    const work_graph *g = run_graph_of(r->s, rank);
    const uint32_t all = r->s->opt.queues_per_dim, queues = all * r->s->lanes;
    const uint32_t lane = k % queues / all,
                   slot = lane ? WORK_SLOT_STREAMS + lane - 1 : WORK_SLOT_COMM;
    char queue[32] = "", stream[48] = "";
    if (all > 1)
        snprintf(queue, sizeof queue, ", queue %u", k % all);
    if (g->slot_count > WORK_SLOT_STREAMS)
        snprintf(stream, sizeof stream, ", stream %" PRId64, g->stream[slot]);
    return orr_arena_print(a, "phases, dimension %u%s%s", k / queues, queue, stream);
}

static orr_code add_phase_tracks(recorder *r, uint32_t rank)
{
    const uint32_t queues = r->s->opt.queues_per_dim * r->s->lanes;
    orr_arena *a = orr_arena_create();
    orr_code code = a ? ORR_OK : orr_no_memory(r->err);
    for (uint32_t k = 0; k < r->s->dims * queues && !code; k++) {
        uint32_t *track = &r->phase_track[(size_t)rank * r->s->dims * queues + k];
        if (*track == RUN_NONE)
            continue;
        const char *name = phase_name(r, rank, k, a);
        code = name ? orr_timeline_add_track(r->t, rank, orr_str_of(name), track, r->err)
                    : orr_no_memory(r->err);
    }
    orr_arena_destroy(a);
    return code;
}

static orr_code add_tracks(recorder *r)
{
    const watch_log *w = r->w;
    orr_code code = ORR_OK;
    for (size_t i = 0; i < w->step_count; i++) { /* any other number than NONE: wanted */
        const watch_step *step = &w->steps[i];
        if (!watch_has_rank(r->s, step->rank))
            continue;
        r->track[step->rank * WORK_SLOTS + run_graph_of(r->s, step->rank)->slot[step->place]] = 0;
    }
    for (size_t i = 0; i < w->phase_count; i++)
        r->phase_track[phase_place(r, &w->phases[i])] = 0;
    for (uint32_t rank = 0; rank < r->s->npu_count && !code; rank++) {
        code = add_slot_tracks(r, rank);
        if (!code && r->s->watch->keeps_phases)
            code = add_phase_tracks(r, rank);
    }
    return code;
}

/* ---- spans ---- */

/* Of a folded run that was stopped, some ranks are known beyond that moment. */
static void set_times(const recorder *r, uint64_t start, uint64_t end, orr_timespan *out)
{
    out->is_open = end == ORR_NEVER;
    out->start = watch_ps(start);
    out->end = watch_ps(!out->is_open ? end : start > r->until ? start : r->until);
}

static void set_peer(const recorder *r, uint32_t i, orr_timespan *out)
{
    const watch_step *step = &r->w->steps[i];
    const bool is_message = out->kind == ORR_SPAN_SEND || out->kind == ORR_SPAN_RECEIVE;
    const int64_t peer =
        is_message ? step_peer(r->s, step, out->kind == ORR_SPAN_SEND) : ORR_NO_VALUE;
    if (peer >= 0) {
        out->has |= ORR_SPAN_HAS_PEER;
        out->peer = (uint32_t)peer;
    } else if (step->instance != RUN_NONE && step->end != ORR_NEVER) {
        out->has |= ORR_SPAN_HAS_PEER;
        out->peer = r->w->steps[last_member(r->s, i)].rank;
    }
}

/* Set if not all ranks have spans: it could not be derived from them. */
static void set_flows(const recorder *r, uint32_t i, orr_timespan *out)
{
    const watch_step *step = &r->w->steps[i];
    uint32_t by = RUN_NONE; /* it is waited for */
    if (!r->like || step->end == ORR_NEVER)
        return;
    if (out->kind == ORR_SPAN_RECEIVE)
        by = r->partner[i];
    else if (out->kind == ORR_SPAN_COLLECTIVE && step->instance != RUN_NONE && out->members)
        by = r->s->watch->instances[step->instance].last;
    if (by == RUN_NONE || r->w->steps[by].start <= step->start)
        return;
    out->has |= ORR_SPAN_HAS_FLOWS;
    out->flows = watch_ps(r->w->steps[by].start < step->end ? r->w->steps[by].start : step->end);
}

static orr_code set_collective(recorder *r, const run_npu *n, uint32_t place, orr_timespan *out)
{
    const orr_columns *c = &n->graph->t->columns;
    const uint32_t node = n->graph->node[place];
    const orr_str name = sys_node_group_name(n, place);
    const cfg_group *g = sys_node_group(n, place);
    if (c->comm_type && c->comm_type[node] >= 0 && c->comm_type[node] < ORR_COLL_COUNT)
        out->collective = (uint8_t)(c->comm_type[node] + 1);
    out->members = g ? g->count : name.len == 0 ? r->s->npu_count : 0;
    return orr_timeline_add_text(r->t, name, &out->group, r->err);
}

static uint8_t role_of(const work_graph *g, uint32_t place)
{
    const uint32_t node = g->node[place];
    if (g->t->columns.type[node] != ORR_NODE_COMP)
        return ROLE_WORK;
    if (g->slot[place] == WORK_SLOT_CPU)
        return orr__is_annotation(g->t, node) ? ROLE_ANNOTATION : ROLE_WORK;
    return orr__comm_kernel(orr_trace_name(g->t, node)) == ORR__COMM_ONE_SIDED ? ROLE_ONE_SIDED
                                                                               : ROLE_WORK;
}

/* Recorded traces have such nodes, and host nodes; generated ones have neither. */
static orr_code find_roles(recorder *r)
{
    const orr_sim *s = r->s;
    for (uint32_t k = 0; k < orr_set_class_count(s->set); k++) {
        const work_graph *g = &s->graphs[k];
        for (uint32_t place = 0; g->t && place < g->count; place++) {
            const uint8_t role = role_of(g, place);
            if (role == ROLE_WORK)
                continue;
            if (!r->role[k] && !(r->role[k] = orr_alloc(g->count, sizeof **r->role)))
                return orr_no_memory(r->err);
            r->role[k][place] = role;
        }
    }
    return ORR_OK;
}

static void set_role(const recorder *r, const watch_step *step, orr_timespan *span)
{
    const uint8_t *role = r->role[orr_set_class_of(r->s->set, step->rank)];
    if (!role || role[step->place] == ROLE_WORK)
        return;
    span->kind = role[step->place] == ROLE_ANNOTATION ? ORR_SPAN_OTHER : ORR_SPAN_COLLECTIVE;
    if (span->kind == ORR_SPAN_COLLECTIVE)
        span->collective = orr__comm_one_sided_kind(step_name(r->s, step));
}

static orr_code add_to_log(recorder *r, uint32_t i)
{
    const watch_step *step = &r->w->steps[i];
    const run_npu *n = view_of(r, step->rank);
    orr_timespan span = {.track = r->track[step->rank * WORK_SLOTS + n->graph->slot[step->place]],
                         .id = node_id(r->s, step),
                         .has = ORR_SPAN_HAS_ID,
                         .size = step_size(r->s, step),
                         .kind = (uint8_t)step_kind(r->s, step)};
    set_role(r, step, &span);
    set_times(r, step->start, step->end, &span);
    set_peer(r, i, &span);
    orr_code code = orr_timeline_add_text(r->t, step_name(r->s, step), &span.name, r->err);
    if (!code && step_kind(r->s, step) == ORR_SPAN_COLLECTIVE)
        code = set_collective(r, n, step->place, &span);
    set_flows(r, i, &span);
    return code ? code : orr_timeline_add_span(r->t, &span, &r->span[i], r->err);
}

static orr_code add_phase(recorder *r, const watch_phase *p, orr_arena *a)
{
    orr_timespan span = {.track = r->phase_track[phase_place(r, p)],
                         .id = node_id(r->s, &r->w->steps[p->step]),
                         .has = ORR_SPAN_HAS_ID,
                         .size = p->data,
                         .kind = ORR_SPAN_PHASE};
    set_times(r, p->start, p->end, &span);
    const char *name =
        orr_arena_print(a, "%s, %s, chunk %llu", coll_kind_name((orr_collective)p->kind),
                        sys_algorithm_label(r->s, p->algorithm), (unsigned long long)p->stream);
    const orr_code code = name ? orr_timeline_add_text(r->t, orr_str_of(name), &span.name, r->err)
                               : orr_no_memory(r->err);
    orr_arena_reset(a);
    return code ? code : orr_timeline_add_span(r->t, &span, NULL, r->err);
}

static orr_code add_spans(recorder *r)
{
    orr_arena *a = orr_arena_create();
    orr_code code = a ? ORR_OK : orr_no_memory(r->err);
    for (uint32_t i = 0; i < r->w->step_count && !code; i++)
        if (watch_has_rank(r->s, r->w->steps[i].rank))
            code = add_to_log(r, i);
    for (size_t i = 0; i < r->w->phase_count && !code; i++)
        code = add_phase(r, &r->w->phases[i], a);
    orr_arena_destroy(a);
    return code;
}

/* ---- arrows ---- */

static orr_code add_arrows(recorder *r)
{
    const watch_log *w = r->w;
    uint32_t name;
    orr_code code = orr_timeline_add_text(r->t, orr_str_of("message"), &name, r->err);
    for (uint32_t i = 0; i < w->step_count && !code; i++) {
        const uint32_t to = r->partner[i];
        if (to == RUN_NONE || step_kind(r->s, &w->steps[i]) != ORR_SPAN_SEND ||
            w->steps[to].end == ORR_NEVER || !watch_has_rank(r->s, w->steps[i].rank) ||
            !watch_has_rank(r->s, w->steps[to].rank))
            continue;
        const orr_arrow arrow = {.from = r->span[i],
                                 .to = r->span[to],
                                 .left = watch_ps(w->steps[i].start),
                                 .arrived = watch_ps(w->steps[to].end),
                                 .name = name};
        code = orr_timeline_add_arrow(r->t, &arrow, r->err);
    }
    return code;
}

/* ---- where it comes from: notes ---- */

static orr_code add_notes(recorder *r)
{
    orr__provenance p;
    orr__provenance_line lines[ORR__PROVENANCE_LINES];
    orr_arena *a = orr_arena_create();
    size_t count = 0;
    const bool ok =
        a && orr__provenance_take(r->s, &p) && orr__provenance_lines(&p, a, lines, &count);
    orr_code code = ok ? ORR_OK : orr_no_memory(r->err);
    for (size_t i = 0; i < count && !code; i++)
        code = orr_timeline_add_note(r->t, orr_str_of(lines[i].key), orr_str_of(lines[i].value),
                                     r->err);
    if (!code && r->apart) {
        const bool is_long = r->apart >= 1000000;
        const char *words = orr_arena_print(
            a, "one of each class; others of a class do the same up to %.3g %s earlier or later",
            (double)r->apart / (is_long ? 1e6 : 1e3), is_long ? "ms" : "us");
        code = words ? orr_timeline_add_note(r->t, orr_str_of("ranks"), orr_str_of(words), r->err)
                     : orr_no_memory(r->err);
    }
    orr_arena_destroy(a);
    return code;
}

/* ---- ranks represented by others ---- */

static orr_code add_alike(recorder *r)
{
    orr_code code = ORR_OK;
    for (uint32_t rank = 0; r->like && rank < r->s->npu_count && !code; rank++)
        if (r->like[rank] != rank)
            code = orr_timeline_add_alike(r->t, r->like[rank], rank, r->err);
    return code;
}

static bool settle(recorder *r)
{
    const uint32_t count = r->s->npu_count;
    if (!r->like)
        return watch_log_settle(r->s, NULL);
    bool *asked = orr_alloc(count, sizeof *asked);
    r->stands_for = orr_alloc(count, sizeof *r->stands_for);
    bool ok = asked && r->stands_for;
    for (uint32_t rank = 0; ok && rank < count; rank++) {
        asked[r->like[rank]] = true;
        r->stands_for[r->like[rank]]++;
    }
    /* Anything the log has beyond that must not be shown. */
    watch_log_drop(r->s->watch);
    ok = ok && watch_log_settle(r->s, asked);
    orr_free(asked);
    return ok;
}

/* ---- everything ---- */

static bool prepare(recorder *r)
{
    const size_t slots = (size_t)r->s->npu_count * WORK_SLOTS;
    const size_t queues = (size_t)r->s->npu_count * run_queue_count(r->s);
    const bool has_phases = r->s->watch->keeps_phases;
    r->track = orr_alloc(slots, sizeof *r->track);
    r->phase_track = orr_alloc(has_phases ? queues : 0, sizeof *r->phase_track);
    r->span = orr_alloc(r->w->step_count, sizeof *r->span);
    r->partner = step_partners(r->s);
    r->role = orr_alloc(orr_set_class_count(r->s->set), sizeof *r->role);
    if (!r->track || !r->phase_track || !r->span || !r->partner || !r->role)
        return false;
    memset(r->track, 0xff, slots * sizeof *r->track);
    if (has_phases)
        memset(r->phase_track, 0xff, queues * sizeof *r->phase_track);
    return true;
}

static orr_code record(recorder *r)
{
    orr_code code = settle(r) && prepare(r) ? ORR_OK : orr_no_memory(r->err);
    if (code || (code = find_roles(r)) || (code = add_notes(r)) || (code = add_tracks(r)) ||
        (code = add_spans(r)) || (code = add_arrows(r)) || (code = add_alike(r)) ||
        (code = add_counters(r->s, r->stands_for, r->t, r->err)))
        return code;
    return orr_timeline_seal(r->t, r->err);
}

static orr_code record_timeline(
    const orr_sim *s, const uint32_t *like, uint64_t apart, orr_timeline **out, orr_error *err)
{
    *out = NULL;
    if (!s->watch || !s->watch->keeps_steps)
        return orr_fail(err, ORR_EUSAGE, NULL, "no timeline was recorded: orr_sim_options.record");
    recorder r = {
        .s = s, .w = &s->watch->log, .like = like, .err = err, .until = clk_now(s->clock)};
    r.apart = apart;
    r.view.sim = (orr_sim *)s;
    orr_code code = orr_timeline_create(&r.t, err);
    if (!code)
        code = record(&r);
    for (uint32_t k = 0; r.role && k < orr_set_class_count(s->set); k++)
        orr_free(r.role[k]);
    orr_free(r.role);
    orr_free(r.track);
    orr_free(r.phase_track);
    orr_free(r.span);
    orr_free(r.partner);
    orr_free(r.stands_for);
    if (code)
        orr_timeline_destroy(r.t);
    else
        *out = r.t;
    return code;
}

orr_code orr_sim_timeline(const orr_sim *s,
                          const uint32_t *like,
                          orr_timeline **out,
                          orr_error *err)
{
    return record_timeline(s, like, 0, out, err);
}

/* ======== Which ranks have spans. */

enum { MOST_SPANS = 1 << 20 }; /* limit on spans of all ranks in a timeline */

/* Ranks of the list represent themselves. */
static orr_code take_list(const char *text, uint32_t *like, uint32_t count, orr_error *err)
{
    const char *at = text;
    uint32_t first, last;
    orr_code code;
    while (!(code = orr_rank_list_next(text, &at, &first, &last, err)))
        for (uint32_t r = first; r <= last && r < count; r++)
            like[r] = r;
    return code == ORR_END ? ORR_OK : code;
}

static uint64_t count_nodes(const orr_sim *s)
{
    uint64_t nodes = 0;
    for (uint32_t r = 0; r < s->npu_count; r++)
        nodes += run_graph_of(s, r)->count;
    return nodes;
}

/* By rank, its time on the path; zeros for a run without one. */
static uint64_t *weigh(const orr_sim *s, const orr_critical_path *path)
{
    uint64_t *weight = orr_alloc(s->npu_count, sizeof *weight);
    for (size_t i = 0; weight && path && i < path->step_count; i++)
        weight[path->steps[i].rank] += path->steps[i].to - path->steps[i].from;
    return weight;
}

orr_code orr_sim_timeline_of(const orr_sim *s,
                             const char *ranks,
                             const orr_critical_path *path,
                             orr_timeline **out,
                             orr_error *err)
{
    const bool is_whole = s->finished == s->npu_count && s->watch;
    *out = NULL;
    if (!is_whole || (ranks && strcmp(ranks, "all") == 0))
        return orr_sim_timeline(s, NULL, out, err);
    uint32_t *like = orr_alloc(s->npu_count, sizeof *like);
    uint64_t *weight = weigh(s, path);
    uint64_t apart = 0;
    orr_code code = like && weight && watch_find_alike(s, weight, MOST_SPANS, like, &apart)
                        ? ORR_OK
                        : orr_no_memory(err);
    bool has_alike = false;
    for (uint32_t r = 0; !code && r < s->npu_count; r++)
        has_alike |= like[r] != r;
    if (!code && ranks)
        code = take_list(ranks, like, s->npu_count, err);
    if (!code)
        code = record_timeline(s, has_alike ? like : NULL, apart, out, err);
    orr_free(like);
    orr_free(weight);
    return code;
}

orr_code orr_sim_timeline_to_show(const orr_sim *s,
                                  orr_run_rows rows,
                                  orr_timeline **out,
                                  orr_error *err)
{
    const bool is_short = rows == ORR_RUN_ROWS_AUTO && count_nodes(s) <= MOST_SPANS;
    return orr_sim_timeline_of(s, rows == ORR_RUN_ROWS_ALL || is_short ? "all" : NULL, NULL, out,
                               err);
}
