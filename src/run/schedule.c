/* SPDX-License-Identifier: Apache-2.0 */
/* schedule.c - the order in which the chunks of a collective cross the dimensions of the network
 * (inter-dimension-scheduling), and how ranks agree on the order in which they start them
 * (docs/design/schedulers.md).
 *
 * All ranks must send a chunk through the dimensions in the same order, so the order is decided
 * once, by the first rank that joins the collective, and kept as a *plan* until every rank has
 * finished.  The greedy schedulers follow Themis (Rashidi et al., ISCA 2022): keep a sum of the
 * time each dimension is busy, and send the next chunk first where the sum is smallest, because a
 * chunk is largest in its first reduce-scatter.
 *
 * A queue starts its chunks in the order in which the first rank to start them did.  If one start
 * must precede another, its first occurrence does too, so the ranks' waits can never form a cycle.
 *
 * Cost: a plan has one entry per chunk and one per start, made once per collective; dimensions are
 * sorted per chunk; a start searches the waiting chunks. */
#include "run_state.h"

/* Loads that differ by less than this part of a chunk count as equal (offlineGreedy). */
enum { NEGLIGIBLE = 16 };

typedef struct plan_key {
    uint64_t id; /* of the first chunk */
    uint64_t size;
    orr_collective kind;
    uint32_t dims; /* bit mask of the dimensions in use */
} plan_key;

/* The order in which one queue starts phases of chunks. */
typedef struct start {
    uint32_t chunk, phase;
} start;
typedef struct starts {
    start *list;
    size_t count, room;
} starts;

typedef struct plan_entry {
    sched_plan plan;
    plan_key key;
    uint32_t come, gone; /* ranks */
    size_t room;
    starts *queues;
    uint32_t next; /* with the same id, or free */
} plan_entry;

struct sched {
    plan_entry *entries;
    size_t count, room;
    uint32_t free_entry;
    size_t queue_count;
    orr_map *by_id;       /* id of the first chunk -> entry */
    uint32_t rotation;    /* roundRobin */
    uint64_t loads_since; /* the tick of the last collective, since which loads are summed */
    double load[ORR_NET_DIMS + 1];    /* ns, by position */
    double speed[ORR_NET_DIMS + 1];   /* bytes per ns */
    double busy[ORR_NET_DIMS + 1];    /* onlineGreedy: time taken by phases */
    double carried[ORR_NET_DIMS + 1]; /* and the bytes they moved */
};

struct sched *sched_create(const orr_sim *s)
{
    struct sched *c = orr_alloc(1, sizeof *c);
    if (!c)
        return NULL;
    c->free_entry = RUN_NONE;
    c->queue_count = run_queue_count(s);
    c->by_id = orr_map_create(0);
    /* a link-level topology has no bandwidth per dimension */
    for (uint32_t k = 0; k < s->dims; k++)
        c->speed[k] = s->net_config.bandwidth[k] > 0 ? s->net_config.bandwidth[k] : 1;
    if (!c->by_id) {
        orr_free(c);
        return NULL;
    }
    return c;
}

void sched_destroy(struct sched *c)
{
    if (!c)
        return;
    for (size_t i = 0; i < c->count; i++) {
        for (size_t q = 0; c->entries[i].queues && q < c->queue_count; q++)
            orr_free(c->entries[i].queues[q].list);
        orr_free(c->entries[i].queues);
        orr_free(c->entries[i].plan.orders);
    }
    orr_free(c->entries);
    orr_map_destroy(c->by_id);
    orr_free(c);
}

/* ---- loads ---- */

/* Bytes that a rank sends in one phase. */
static double phase_bytes(orr_collective kind, double data, double n)
{
    if (kind == ORR_COLL_ALL_GATHER)
        return data * (n - 1);
    return (kind == ORR_COLL_ALL_REDUCE ? 2 : 1) * data * (n - 1) / n;
}

/* Only phases like those to be planned: the time of others is mostly waiting. */
void sched_note(const sys_stream *st)
{
    struct sched *c = st->npu->sim->schedule;
    const sys_phase *p = &st->phases[st->phase];
    if (p->kind == ORR_COLL_ALL_TO_ALL || coll_has_root(p->kind) || p->dim->group)
        return;
    c->busy[p->dim->position] += (double)(clk_now(st->npu->sim->clock) - st->phase_since);
    c->carried[p->dim->position] += phase_bytes(p->kind, (double)p->data, p->dim->count);
}

/* onlineGreedy: observed bytes per ns, once there is a sample of every dimension. */
static void learn_speeds(struct sched *c, const sys_route *r)
{
    for (uint32_t i = 0; i < r->count; i++)
        if (!(c->busy[r->dims[i]->position] > 0))
            return;
    for (uint32_t i = 0; i < r->count; i++) {
        const uint32_t k = r->dims[i]->position;
        c->speed[k] = c->carried[k] / c->busy[k];
    }
}

/* ---- one chunk ---- */

typedef struct planner {
    struct sched *c;
    const sys_route *r; /* its dims ascending */
    bool grows;         /* all-gather: a chunk is largest in its last phase */
    uint64_t smallest;  /* chunk */
} planner;

static double load_of(const planner *p, uint32_t i)
{
    return p->c->load[p->r->dims[i]->position];
}

/* By load, the least loaded first; ties inner first.  All-gathers in reverse. */
static void sort_by_load(const planner *p, sched_order *t)
{
    for (uint32_t i = 0; i < p->r->count; i++) {
        uint32_t at = i;
        for (; at && load_of(p, t->order[at - 1]) > load_of(p, i); at--)
            t->order[at] = t->order[at - 1];
        /* Insertion sort: stable for equal loads, and there are few. */
        t->order[at] = (uint8_t)i;
    }
}

static void reverse(sched_order *t, uint32_t count)
{
    for (uint32_t i = 0; i < count / 2; i++) {
        const uint8_t other = t->order[count - 1 - i];
        t->order[count - 1 - i] = t->order[i];
        t->order[i] = other;
    }
}

static void set_ascending(sched_order *t, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        t->order[i] = (uint8_t)i;
}

/* The chunk size that would fill the gap between the most and the least loaded dimension, if it
 * went to the least loaded one first (in an all-gather: last). */
static double filling_size(const planner *p, const sched_order *by_load)
{
    const uint32_t count = p->r->count;
    const sys_dim *least = p->r->dims[by_load->order[0]];
    const double gap = load_of(p, by_load->order[count - 1]) - load_of(p, by_load->order[0]);
    double bytes = gap * p->c->speed[least->position];
    if (!p->grows)
        return bytes * least->count / (least->count - 1);
    for (uint32_t i = 1; i < count; i++)
        bytes /= p->r->dims[by_load->order[i]]->count;
    return bytes / (least->count - 1);
}

/* Only half of an all-reduce counts: the way back loads the same dimensions equally. */
static void add_load(const planner *p, const sched_order *t)
{
    double data = (double)t->size;
    for (uint32_t i = 0; i < p->r->count; i++) {
        const sys_dim *d = p->r->dims[t->order[i]];
        const orr_collective kind = p->grows ? ORR_COLL_ALL_GATHER : ORR_COLL_REDUCE_SCATTER;
        p->c->load[d->position] += phase_bytes(kind, data, d->count) / p->c->speed[d->position];
        data = p->grows ? data * d->count : data / d->count;
    }
}

static void plan_greedy(const planner *p, cfg_inter how, uint64_t left, sched_order *t)
{
    t->size = p->smallest;
    sort_by_load(p, t);
    const double filling = filling_size(p, t);
    bool is_default = false;
    if (how == CFG_OFFLINE_GREEDY) {
        is_default = filling < (double)p->smallest / NEGLIGIBLE;
    } else if (how == CFG_OFFLINE_GREEDY_FLEX) {
        is_default = filling < (double)p->smallest;
        if (!is_default)
            t->size = filling < (double)left ? (uint64_t)filling : left;
        if (t->size < p->smallest)
            t->size = p->smallest;
    }
    if (is_default)
        set_ascending(t, p->r->count);
    if (p->grows)
        reverse(t, p->r->count);
    add_load(p, t);
}

static void plan_rotation(const planner *p, sched_order *t)
{
    const uint32_t count = p->r->count, shift = p->c->rotation++ % count;
    t->size = p->smallest;
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t k = (i + shift) % count;
        t->order[i] = (uint8_t)(p->grows ? count - 1 - k : k);
    }
}

/* ---- a collective ---- */

static bool plan(planner *p, cfg_inter how, uint64_t now, plan_entry *e)
{
    struct sched *c = p->c;
    if (how == CFG_ONLINE_GREEDY)
        learn_speeds(c, p->r);
    /* Collectives of one tick compete and share the sums; earlier ones are assumed to have
     * ended. */
    if (c->loads_since != now)
        memset(c->load, 0, sizeof c->load);
    c->loads_since = now;
    for (uint64_t left = e->key.size; left > 0;) {
        if (e->plan.count == UINT32_MAX ||
            !orr_grow(&e->plan.orders, &e->room, e->plan.count + (size_t)1))
            return false;
        sched_order *t = &e->plan.orders[e->plan.count++];
        if (how == CFG_ROUND_ROBIN)
            plan_rotation(p, t);
        else
            plan_greedy(p, how, left, t);
        left -= t->size < left ? t->size : left;
    }
    return true;
}

static plan_entry *new_entry(struct sched *c, const plan_key *key)
{
    uint32_t e = c->free_entry;
    if (e != RUN_NONE) {
        c->free_entry = c->entries[e].next;
    } else {
        if (c->count >= RUN_NONE || !orr_grow(&c->entries, &c->room, c->count + 1))
            return NULL;
        starts *queues = orr_alloc(c->queue_count, sizeof *queues);
        if (!queues)
            return NULL;
        e = (uint32_t)c->count++;
        c->entries[e] = (plan_entry){.queues = queues, .next = RUN_NONE};
    }
    const uint32_t before = orr_map_find(c->by_id, key->id, RUN_NONE);
    if (!orr_map_put(c->by_id, key->id, e, NULL))
        return NULL;
    c->entries[e].key = *key;
    c->entries[e].come = c->entries[e].gone = 0;
    c->entries[e].plan.count = 0;
    c->entries[e].next = before;
    for (size_t q = 0; q < c->queue_count; q++)
        c->entries[e].queues[q].count = 0;
    return &c->entries[e];
}

static bool is_same(const plan_key *a, const plan_key *b)
{
    return a->id == b->id && a->size == b->size && a->kind == b->kind && a->dims == b->dims;
}

static plan_entry *find_entry(const struct sched *c, const plan_key *key)
{
    for (uint32_t e = orr_map_find(c->by_id, key->id, RUN_NONE); e != RUN_NONE;
         e = c->entries[e].next)
        if (is_same(&c->entries[e].key, key))
            return &c->entries[e];
    return NULL;
}

static void drop_entry(struct sched *c, uint32_t e)
{
    plan_entry *gone = &c->entries[e];
    /* Plans with one id form a list, whose head is in the map: unlink it there or in the list. */
    const uint32_t head = orr_map_find(c->by_id, gone->key.id, RUN_NONE);
    uint32_t before = head;
    if (head != e) {
        while (c->entries[before].next != e)
            before = c->entries[before].next;
        c->entries[before].next = gone->next;
    } else if (gone->next == RUN_NONE) {
        orr_map_remove(c->by_id, gone->key.id);
    } else {
        orr_map_put(c->by_id, gone->key.id, gone->next,
                    NULL); /* its slot exists: needs no memory */
    }
    gone->next = c->free_entry;
    c->free_entry = e;
}

/* Is the collective scheduled?  For others every order loads the dimensions equally. */
static bool is_planned(const orr_sim *s, orr_collective kind)
{
    switch (s->system.inter) {
    case CFG_ASCENDING:
        return false;
    case CFG_ROUND_ROBIN:
        return true;
    default:
        return kind != ORR_COLL_ALL_TO_ALL &&
               (kind != ORR_COLL_ALL_REDUCE || s->system.is_bw_aware);
    }
}

bool sched_join(orr_sim *s, const sys_route *r, uint64_t id, uint64_t size, uint32_t *out)
{
    struct sched *c = s->schedule;
    plan_key key = {.id = id, .size = size, .kind = r->kind};
    planner p = {.c = c, .r = r, .grows = r->kind == ORR_COLL_ALL_GATHER, .smallest = r->data};
    for (uint32_t i = 0; i < r->count; i++)
        key.dims |= 1u << r->dims[i]->position;
    plan_entry *e = find_entry(c, &key);
    if (!e) {
        e = new_entry(c, &key);
        if (!e || (is_planned(s, r->kind) && !plan(&p, s->system.inter, clk_now(s->clock), e)))
            return false;
    }
    e->come++;
    *out = (uint32_t)(e - c->entries);
    return true;
}

const sched_plan *sched_plan_of(const orr_sim *s, uint32_t index)
{
    return &s->schedule->entries[index].plan;
}

void sched_leave(orr_sim *s, uint32_t index)
{
    plan_entry *e = &s->schedule->entries[index];
    /* All ranks take part in a planned collective, so the last one to leave drops the plan. */
    if (++e->gone == s->npu_count)
        drop_entry(s->schedule, index);
}

/* ---- starting ---- */

sys_stream *sched_next(sys_stream *first)
{
    sys_data_set *set = first->set;
    orr_sim *s = first->npu->sim;
    const uint32_t queue = first->phases[first->phase].queue;
    starts *order = &s->schedule->entries[set->plan].queues[queue];
    const uint32_t at = set->started[queue];
    if (at == order->count) { /* this rank is ahead of all others */
        if (!orr_grow(&order->list, &order->room, order->count + 1)) {
            run_no_memory(s);
            return NULL;
        }
        /* The first rank decides, and records it for the others. */
        order->list[order->count++] = (start){(uint32_t)(first->id - set->first_id), first->phase};
        set->started[queue]++;
        return first;
    }
    const start want = order->list[at];
    /* The chunk whose turn it is may not have arrived: then nothing starts, and the queue retries
     * when it does. */
    sys_stream *st = first;
    while (st &&
           (st->set != set || st->id - set->first_id != want.chunk || st->phase != want.phase))
        st = st->next;
    set->started[queue] += st != NULL;
    return st;
}
