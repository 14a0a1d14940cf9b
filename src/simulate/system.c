/* SPDX-License-Identifier: Apache-2.0 */
/* system.c - the system layer of a rank: a collective becomes streams (chunks), a stream is a list of phases, a
 * phase is one algorithm on one dimension and waits in a queue (astra-sim.md 5.1 to 5.3).
 *
 * A queue is a list: the streams that run first, then those that wait, by falling priority.  How many run at
 * once is fixed, so "start what fits" never looks far. */
#include "sim_impl.h"

#include "../base/number.h"

#include <inttypes.h>

enum { GROUP_STREAMS = 1000000 };

/* ---- setting up ---- */

orr_code orr__system_init(orr__npu *n, orr_error *err)
{
    orr_sim *s = n->sim;
    const uint32_t queues = s->opt.queues_per_dim;
    n->queues = orr_arena_new(s->arena, (size_t)s->dims * queues, orr__queue);
    n->next_general = orr_arena_new(s->arena, s->dims, uint32_t);
    n->next_first = orr_arena_new(s->arena, s->dims, uint32_t);
    n->next_second = orr_arena_new(s->arena, s->dims, uint32_t);
    n->trees_made = orr_arena_new(s->arena, (size_t)ORR__KINDS * (ORR_NET_DIMS + 1), uint32_t);
    if (!n->queues || !n->next_general || !n->next_first || !n->next_second || !n->trees_made)
        return orr_no_memory(err);
    for (uint32_t k = 0; k < s->dims; k++)
        n->next_second[k] = queues / 2;
    if (s->system.shared_bus && !(n->bus = orr__bus_create(n)))
        return orr_no_memory(err);
    return ORR_OK;
}

void orr__system_fini(orr__npu *n)
{
    orr_free(n->memberships);
}

/* ---- queues and directions (5.2) ---- */

typedef enum half { BOTH, FIRST_HALF, SECOND_HALF } half;

static void allocate(orr__npu *n, half h, orr__phase *p)
{
    const uint32_t all = n->sim->opt.queues_per_dim, k = p->dim->position;
    uint32_t place;
    if (h == BOTH) {
        place = n->next_general[k];
        n->next_general[k] = (place + 1) % all;
        p->is_clockwise = !(all > 1 && place >= all / 2);
    } else if (h == FIRST_HALF) {
        place = n->next_first[k];
        n->next_first[k] = place + 1 >= all / 2 ? 0 : place + 1;
        p->is_clockwise = true;
    } else {
        place = n->next_second[k];
        n->next_second[k] = place + 1 >= all ? all / 2 : place + 1;
        p->is_clockwise = false;
    }
    p->queue = k * all + place;
}

/* ---- streams ---- */

static orr__stream *new_stream(orr_sim *s)
{
    orr__stream *st = s->free_streams;
    if (!st)
        return orr_arena_new(s->arena, 1, orr__stream);
    s->free_streams = st->next;
    orr__phase *phases = st->phases;
    const size_t room = st->phase_room;
    *st = (orr__stream){.phases = phases, .phase_room = room};
    return st;
}

static bool make_phase_room(orr__stream *st, size_t count)
{
    if (count <= st->phase_room)
        return true;
    st->phases = orr_arena_new(st->npu->sim->arena, count, orr__phase);
    st->phase_room = st->phases ? count : 0;
    return st->phases != NULL;
}

static orr__data_set *new_set(orr__npu *n, uint32_t place, uint64_t expected)
{
    orr_sim *s = n->sim;
    orr__data_set *set = s->free_sets;
    if (set)
        s->free_sets = (orr__data_set *)set->npu; /* free sets are linked through this field */
    else
        set = orr_arena_new(s->arena, 1, orr__data_set);
    if (set)
        *set = (orr__data_set){.npu = n, .place = place, .expected = expected};
    return set;
}

static void drop_set(orr_sim *s, orr__data_set *set)
{
    set->npu = (orr__npu *)s->free_sets;
    s->free_sets = set;
}

static void add_phase(orr__stream *st, const orr__dim *dim, orr__kind kind, half h, uint64_t *data)
{
    orr__npu *n = st->npu;
    orr__phase *p = &st->phases[st->phase_count++];
    *p = (orr__phase){.dim = dim, .kind = kind, .data = *data};
    allocate(n, h, p);
    if (dim->algorithm == ORR__TREE) {
        /* Trees alternate per rank, collective and dimension. */
        uint32_t *made =
            &n->trees_made[(size_t)st->toggle_kind * (ORR_NET_DIMS + 1) + dim->position];
        p->is_max_tree = (*made)++ % 2 == 0;
    } else if (kind == ORR__AG) {
        *data *= dim->count;
    } else if (kind == ORR__RS) {
        *data /= dim->count;
    }
}

/* The phases of one stream (5.2). */
static void add_phases(
    orr__stream *st, orr__kind kind, const orr__dim *const *dims, uint32_t count, uint64_t data)
{
    const bool is_split = kind == ORR__AR && st->npu->sim->system.is_bw_aware;
    st->toggle_kind = kind;
    if (is_split) {
        for (uint32_t i = 0; i + 1 < count; i++)
            add_phase(st, dims[i], ORR__RS, FIRST_HALF, &data);
        add_phase(st, dims[count - 1], ORR__AR, FIRST_HALF, &data);
        for (uint32_t i = count - 1; i-- > 0;)
            add_phase(st, dims[i], ORR__AG, SECOND_HALF, &data);
        return;
    }
    for (uint32_t i = 0; i < count; i++)
        add_phase(st, dims[kind == ORR__AG ? count - 1 - i : i], kind, BOTH, &data);
}

/* ---- queues ---- */

static void insert_stream(orr__queue *q, orr__stream *st)
{
    orr__stream *before = NULL;
    if (q->last && !q->last->is_started && q->last->priority < st->priority) {
        before = q->first;
        while (before->is_started || before->priority >= st->priority)
            before = before->next;
    }
    st->next = before;
    st->previous = before ? before->previous : q->last;
    *(st->previous ? &st->previous->next : &q->first) = st;
    *(before ? &before->previous : &q->last) = st;
}

static void remove_stream(orr__queue *q, orr__stream *st)
{
    *(st->previous ? &st->previous->next : &q->first) = st->next;
    *(st->next ? &st->next->previous : &q->last) = st->previous;
}

static void start_what_fits(orr__npu *n, orr__queue *q)
{
    const uint64_t all = n->sim->opt.queues_per_dim;
    const uint64_t most = (n->sim->system.active_chunks + all - 1) / all;
    orr__stream *st = q->first;
    for (uint64_t i = 0; st && i < q->running; i++)
        st = st->next;
    while (st && q->running < most && !n->sim->code) {
        orr__stream *next = st->next;
        st->is_started = true;
        if (n->sim->watch)
            orr__watch_phase_start(st);
        orr__phase_start(st);
        q->running++;
        st = next;
    }
}

static orr__queue *queue_of(const orr__stream *st)
{
    return &st->npu->queues[st->phases[st->phase].queue];
}

void orr__stream_advance(orr__stream *st)
{
    orr__npu *n = st->npu;
    orr_sim *s = n->sim;
    orr__queue *q = queue_of(st);
    const bool is_last = st->phase + 1 == st->phase_count;
    if (s->watch)
        orr__watch_phase_end(st);
    if (is_last && ++st->set->finished == st->set->expected) {
        orr__data_set *set = st->set;
        const uint32_t place = set->place;
        drop_set(s, set);
        orr__node_done(n, place); /* while this stream still occupies its slot */
    }
    remove_stream(q, st);
    if (!is_last) {
        st->phase++;
        st->is_started = false;
        insert_stream(queue_of(st), st);
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

/* ---- groups and plans (5.10, 6.4) ---- */

typedef struct request {
    orr__npu *n;
    uint32_t place;
    orr__kind kind;
    orr__membership *m;
    int64_t priority;
    uint64_t chunk, streams;
    orr__data_set *set;
    const char *custom; /* traces that are the algorithm, or NULL */
    const orr__dim *dims;
    uint32_t dim_count;
} request;

static const orr__group *find_group(const orr_sim *s, int64_t id)
{
    const uint32_t i =
        s->groups.by_id ? orr_map_find(s->groups.by_id, (uint64_t)id, ORR__NONE) : ORR__NONE;
    return i == ORR__NONE ? NULL : &s->groups.groups[i];
}

static orr__membership *join(orr__npu *n, const orr__group *g)
{
    for (size_t i = 0; i < n->membership_count; i++)
        if (n->memberships[i]->group == g)
            return n->memberships[i];
    orr__membership *m = orr_arena_new(n->sim->arena, 1, orr__membership);
    if (!m || !orr_grow(&n->memberships, &n->membership_room, n->membership_count + 1)) {
        orr__sim_no_memory(n->sim);
        return NULL;
    }
    n->memberships[n->membership_count++] = m;
    *m = (orr__membership){.group = g, .next_stream = (uint64_t)g->id * GROUP_STREAMS};
    return m;
}

/* The name of a node's group; empty: all ranks. */
orr_str orr__node_group_name(const orr__npu *n, uint32_t place)
{
    const orr_trace *t = n->graph->t;
    const uint32_t text =
        t->columns.pg_name ? t->columns.pg_name[n->graph->node[place]] : ORR_NO_NAME;
    const orr_str name = text == ORR_NO_NAME ? (orr_str){"", 0} : orr_trace_text(t, text);
    return name.len == 1 && name.ptr[0] == '0' ? (orr_str){"", 0} : name;
}

const orr__group *orr__node_group(const orr__npu *n, uint32_t place)
{
    int64_t id;
    return orr_text_i64(orr__node_group_name(n, place), &id) ? find_group(n->sim, id) : NULL;
}

/* The group of a node: NULL and true when it has none. */
static bool group_of(orr__npu *n, uint32_t place, orr__membership **out)
{
    const orr_str name = orr__node_group_name(n, place);
    *out = NULL;
    if (name.len == 0)
        return true;
    const orr__group *g = orr__node_group(n, place);
    if (!g) {
        orr__sim_fail_text(n->sim, n, place, "communicator group \"%.*s\" is not in the group file",
                           (int)name.len, name.ptr);
        return false;
    }
    *out = join(n, g);
    return *out != NULL;
}

static const char *custom_of(const orr__npu *n, uint32_t place, orr__kind kind)
{
    const orr__system_config *c = &n->sim->system;
    const uint64_t id =
        n->graph->t->columns.id[n->graph->node[place]] + orr_set_id_shift(n->sim->set, n->rank);
    const uint32_t by_node =
        c->custom_by_node ? orr_map_find(c->custom_by_node, id, ORR__NONE) : ORR__NONE;
    return by_node != ORR__NONE ? c->custom_prefix[by_node] : c->custom[kind];
}

bool orr__node_is_custom(const orr__npu *n, uint32_t place, orr__kind kind)
{
    return custom_of(n, place, kind) != NULL;
}

static orr__dim group_ring(const orr_sim *s, const orr__group *g, orr__kind kind)
{
    const orr__choice *only = s->system.choice_count[kind] == 1 ? &s->system.choice[kind][0] : NULL;
    return (orr__dim){.algorithm = only ? only->algorithm : ORR__RING,
                      .window = only ? only->window : 0,
                      .count = g->count,
                      .is_last = true,
                      .group = g};
}

static void note_ring(const orr__npu *n, const orr__group *g)
{
    uint32_t index = 0;
    while (index < g->count && g->members[index] != n->rank)
        index++;
    orr__sim_note(n->sim, &(orr__note){.kind = ORR__NOTE_GROUP_RING,
                                       .rank = n->rank,
                                       .count = g->count,
                                       .index = index});
}

/* How a rank runs this collective: custom traces, or dimensions.  A group remembers its first answer. */
static bool plan_of(request *r)
{
    orr__npu *n = r->n;
    orr__membership *m = r->m;
    const orr__kind kind = r->kind;
    orr_sim *s = n->sim;
    static const char *const names[ORR__KINDS] = {"all-reduce", "reduce-scatter", "all-gather",
                                                  "all-to-all"};
    const bool is_known = m && m->is_planned[kind], is_part = m && m->group->count != s->npu_count;
    r->custom = is_known ? m->custom[kind] : custom_of(n, r->place, kind);
    if (!is_known && !r->custom && !s->plans[kind].exists) {
        orr__sim_fail_text(s, n, r->place, "the system file has no %s-implementation", names[kind]);
        return false;
    }
    if (m && !is_known) {
        m->is_planned[kind] = true;
        m->custom[kind] = r->custom;
        m->ring[kind] = group_ring(s, m->group, kind);
        if (is_part && !r->custom)
            note_ring(n, m->group);
    }
    r->dims = is_part ? &m->ring[kind] : s->plans[kind].dims;
    r->dim_count = is_part ? 1 : s->plans[kind].count;
    return true;
}

/* ---- a collective (5.2) ---- */

/* Which dimensions take part: larger than one, and not switched off by involved_dim. */
static bool active_dims(const request *r, const orr__dim **out, uint32_t *count)
{
    orr_node node;
    orr_attr a;
    bool involved[ORR_NET_DIMS + 1];
    memset(involved, 1, sizeof involved);
    orr_trace_node(r->n->graph->t, r->n->graph->node[r->place], &node);
    if (!r->m && orr_node_attr(&node, "involved_dim", &a) && a.is_list &&
        a.kind == ORR_VALUE_BOOL) {
        orr_list it = orr_attr_items(&a);
        orr_value v;
        uint32_t k = 0;
        while (k < ORR_NET_DIMS && orr_list_next(&it, &v))
            involved[k++] = v.u != 0;
        if (k < r->dim_count) {
            orr__sim_fail_text(r->n->sim, r->n, r->place,
                               "involved_dim has %u entries for %u dimensions", k, r->dim_count);
            return false;
        }
    }
    *count = 0;
    for (uint32_t i = 0; i < r->dim_count; i++)
        if (r->dims[i].count > 1 && involved[r->dims[i].position])
            out[(*count)++] = &r->dims[i];
    return true;
}

static orr__stream *make_stream(const request *r, size_t phases)
{
    orr__npu *n = r->n;
    orr__stream *st = new_stream(n->sim);
    if (!st)
        return NULL;
    st->npu = n;
    st->set = r->set;
    st->priority = r->priority;
    if (!make_phase_room(st, phases))
        return NULL;
    const uint64_t own = n->streams_made++;
    st->id = r->m ? r->m->next_stream++ : own;
    st->tag = (uint32_t)(ORR__TAG_SPACE + st->id % ORR__TAG_SPACE);
    return st;
}

static void launch(orr__stream *st)
{
    insert_stream(queue_of(st), st);
    start_what_fits(st->npu, queue_of(st));
}

static void run_custom(const request *r)
{
    orr__stream *st = make_stream(r, 1);
    if (!st) {
        orr__sim_no_memory(r->n->sim);
        return;
    }
    st->phases[0] = (orr__phase){.queue = 0};
    st->phase_count = 1;
    st->custom_prefix = r->custom;
    st->group = r->m ? r->m->group : NULL;
    if (r->n->sim->watch)
        orr__watch_collective(r->n, r->place, st->id, st->group, NULL, 0);
    launch(st);
}

static void run_native(const request *r)
{
    const orr__dim *dims[ORR_NET_DIMS + 1];
    uint32_t count;
    if (!active_dims(r, dims, &count) || count == 0)
        return; /* no dimension takes part: it never completes, and the stall says so */
    for (uint64_t i = 0; i < r->streams && !r->n->sim->code; i++) {
        orr__stream *st = make_stream(r, 2 * (size_t)count);
        if (!st) {
            orr__sim_no_memory(r->n->sim);
            return;
        }
        add_phases(st, r->kind, dims, count, r->chunk);
        if (i == 0 && r->n->sim->watch)
            orr__watch_collective(r->n, r->place, st->id, r->m ? r->m->group : NULL, dims, count);
        launch(st);
    }
}

static bool next_priority(orr__npu *n, uint32_t place, int64_t *out)
{
    const int64_t *column = n->graph->t->columns.comm_priority;
    switch (n->sim->system.policy) {
    case ORR__LIFO:
        *out = n->priority++;
        return true;
    case ORR__FIFO:
        *out = n->priority--;
        return true;
    case ORR__EXPLICIT:
        *out = column && column[n->graph->node[place]] != ORR_NO_VALUE
                   ? column[n->graph->node[place]]
                   : 0;
        return true;
    default:
        orr__sim_fail_text(n->sim, n, place, "the system file has no scheduling-policy");
        return false;
    }
}

void orr__collective(orr__npu *n, uint32_t place, orr__kind kind, uint64_t size)
{
    orr_sim *s = n->sim;
    const uint64_t splits = s->system.splits;
    request r = {.n = n, .place = place, .kind = kind};
    if (!group_of(n, place, &r.m))
        return;
    if (splits == 0) {
        orr__sim_fail_text(s, n, place,
                           "the system file has no preferred-dataset-splits, or it is 0");
        return;
    }
    r.chunk = size / splits;
    if (kind != ORR__AG && s->npu_count > r.chunk) {
        r.chunk = s->npu_count;
        size = splits * r.chunk;
    }
    if (r.chunk == 0 && size > 0) {
        orr__sim_fail_text(
            s, n, place, "an all-gather of %" PRIu64 " bytes cannot be cut into %" PRIu64 " chunks",
            size, splits);
        return;
    }
    if (!plan_of(&r) || !next_priority(n, place, &r.priority))
        return;
    r.streams = r.chunk ? (size + r.chunk - 1) / r.chunk : 0;
    r.set = new_set(n, place, r.streams);
    if (!r.set)
        orr__sim_no_memory(s);
    else if (r.custom)
        run_custom(&r);
    else
        run_native(&r);
}
