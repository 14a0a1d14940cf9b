/* SPDX-License-Identifier: Apache-2.0 */
/* flexflow_expand.c - a task graph shared out: each device gets its compute tasks and its ends of
 * the messages.
 *
 * A communication is a send on one device and a receive on the other, under one tag.  An edge
 * between tasks that no device has both of would be lost, so such a crossing becomes a message of
 * one byte (a message of none is refused by simulators): the device that finishes the first task
 * tells the one that waits. Cost: linear in tasks and edges. */
#include "flexflow_impl.h"

#include "base/memory/map.h"
#include "base/short_forms.h"
#include "trace/builder.h"

#include <inttypes.h>
#include <math.h>

/* A crossing: `task` is done, tell device `to`. */
typedef struct signal {
    uint32_t task, from, to;
} signal;

typedef struct expander {
    const orr_flexflow *g;
    const orr_flexflow_expand *opt;
    const orr_rules_flexflow *rules;
    const uint32_t *devices; /* of rank r */
    uint32_t ranks;
    uint32_t *rank_of; /* by device; ORR_NO_NODE: it has no file */
    uint32_t device_room;
    /* The tasks of rank r, in file order and by id: list[first[r]] to list[first[r + 1] - 1]. */
    uint32_t *first, *in_file, *by_id;
    uint32_t *tags; /* by task */
    uint32_t next_tag;
    signal *signals;
    size_t signal_count, signal_room;
    uint32_t *signal_first, *signal_of; /* likewise, by rank */
    orr_map *signal_at;                 /* task and device -> number */
    uint64_t next_id;
    orr__builder b;
    orr_arena *arena;
    orr_error *err;
} expander;

/* ---- which device is which rank ---- */

static uint32_t rank_on(const expander *x, uint32_t device)
{
    return device < x->device_room ? x->rank_of[device] : ORR_NO_NODE;
}

/* The ends of messages are devices too, and ranks are devices by number. */
static orr_code check_devices(const expander *x, const bool *has)
{
    for (uint32_t i = 0; i < x->g->count; i++) {
        const ff_task *t = &x->g->tasks[i];
        if (t->is_comm && t->src == t->dst)
            return orr_fail(
                x->err, ORR_EINPUT, ORR_AT(orr_where_line(x->g->label, t->line, t->column)),
                "node%" PRIu64 " sends from device %" PRIu32 " to itself", t->id, t->src);
    }
    for (uint32_t d = 0; d < x->device_room; d++) {
        if (!has[d])
            return orr_fail(x->err, ORR_EINPUT, ORR_AT(orr_where_line(x->g->label, 1, 1)),
                            "device %" PRIu32 " has no task, but device %" PRIu32
                            " has; devices count from 0 without gaps",
                            d, x->device_room - 1);
    }
    return ORR_OK;
}

static orr_code rank_all_devices(expander *x)
{
    const orr_flexflow *g = x->g;
    for (uint32_t i = 0; i < g->count; i++) {
        const ff_task *t = &g->tasks[i];
        const uint32_t last = !t->is_comm ? t->device : t->src > t->dst ? t->src : t->dst;
        x->device_room = last >= x->device_room ? last + 1 : x->device_room;
    }
    bool *has = orr_arena_new(x->arena, x->device_room, bool);
    uint32_t *devices = orr_arena_new(x->arena, x->device_room, uint32_t);
    if (!has || !devices)
        return orr_no_memory(x->err);
    for (uint32_t i = 0; i < g->count; i++) {
        const ff_task *t = &g->tasks[i];
        has[t->is_comm ? t->src : t->device] = true;
        has[t->is_comm ? t->dst : t->device] = true;
    }
    for (uint32_t d = 0; d < x->device_room; d++)
        devices[d] = d;
    x->devices = x->rank_of = devices;
    x->ranks = x->device_room;
    return check_devices(x, has);
}

static orr_code rank_computing_devices(expander *x)
{
    x->devices = x->g->devices;
    x->ranks = x->g->device_count;
    x->device_room = x->devices[x->ranks - 1] + 1;
    x->rank_of = orr_arena_new(x->arena, x->device_room, uint32_t);
    if (!x->rank_of)
        return orr_no_memory(x->err);
    for (uint32_t d = 0; d < x->device_room; d++)
        x->rank_of[d] = ORR_NO_NODE;
    for (uint32_t r = 0; r < x->ranks; r++)
        x->rank_of[x->devices[r]] = r;
    return ORR_OK;
}

/* ---- which tasks are where ---- */

/* The ranks that have task t: one or two, in *a and *b. */
static void ranks_of(const expander *x, const ff_task *t, uint32_t *a, uint32_t *b)
{
    *a = rank_on(x, t->is_comm ? t->src : t->device);
    *b = t->is_comm && t->dst != t->src ? rank_on(x, t->dst) : ORR_NO_NODE;
}

/* order NULL: in file order. */
static void fill_list(const expander *x, const uint32_t *order, uint32_t *at, uint32_t *list)
{
    for (uint32_t k = 0; k < x->g->count; k++) {
        const uint32_t i = order ? order[k] : k;
        uint32_t a, b;
        ranks_of(x, &x->g->tasks[i], &a, &b);
        if (a != ORR_NO_NODE)
            list[at[a]++] = i;
        if (b != ORR_NO_NODE)
            list[at[b]++] = i;
    }
}

static orr_code share_out(expander *x)
{
    const size_t most = 2 * (size_t)x->g->count;
    uint32_t *at = orr_arena_new(x->arena, (size_t)x->ranks + 1, uint32_t);
    x->first = orr_arena_new(x->arena, (size_t)x->ranks + 1, uint32_t);
    x->in_file = orr_arena_new(x->arena, most, uint32_t);
    x->by_id = orr_arena_new(x->arena, most, uint32_t);
    if (!at || !x->first || !x->in_file || !x->by_id)
        return orr_no_memory(x->err);
    for (uint32_t i = 0; i < x->g->count; i++) {
        uint32_t a, b;
        ranks_of(x, &x->g->tasks[i], &a, &b);
        if (a != ORR_NO_NODE)
            x->first[a + 1]++;
        if (b != ORR_NO_NODE)
            x->first[b + 1]++;
    }
    for (uint32_t r = 0; r < x->ranks; r++)
        x->first[r + 1] += x->first[r];
    memcpy(at, x->first, x->ranks * sizeof *at);
    fill_list(x, NULL, at, x->in_file);
    memcpy(at, x->first, x->ranks * sizeof *at);
    fill_list(x, x->g->order, at, x->by_id);
    return ORR_OK;
}

/* Tags count up in the order in which the converter meets the messages: rank by rank, as in the
 * file. */
static orr_code number_messages(expander *x)
{
    x->tags = orr_arena_new(x->arena, x->g->count, uint32_t);
    if (!x->tags)
        return orr_no_memory(x->err);
    memset(x->tags, 0xff, x->g->count * sizeof *x->tags);
    for (uint32_t k = 0; k < x->first[x->ranks]; k++) {
        const uint32_t i = x->in_file[k];
        if (x->g->tasks[i].is_comm && x->tags[i] == UINT32_MAX)
            x->tags[i] = x->next_tag++;
    }
    return ORR_OK;
}

/* ---- crossings ---- */

/* Who must be told that `on` is done before task t may begin there; false: t's devices know. */
static bool crosses(const orr_flexflow *g, const ff_task *t, uint32_t on, signal *out)
{
    const ff_task *p = &g->tasks[on];
    const uint32_t home = t->is_comm ? t->src : t->device;
    if (ff_task_is_on(p, home) || (t->is_comm && ff_task_is_on(p, t->dst)))
        return false;
    *out = (signal){on, p->is_comm ? p->dst : p->device, home};
    return true;
}

static uint64_t signal_key(const signal *s)
{
    return (uint64_t)s->task << 32 | s->to;
}

static orr_code add_signal(expander *x, const signal *s)
{
    if (orr_map_find(x->signal_at, signal_key(s), ORR_NO_NODE) != ORR_NO_NODE)
        return ORR_OK;
    if (x->signal_count >= ORR_NO_NODE ||
        !orr_map_put(x->signal_at, signal_key(s), (uint32_t)x->signal_count, NULL) ||
        !orr_grow(&x->signals, &x->signal_room, x->signal_count + 1))
        return orr_no_memory(x->err);
    x->signals[x->signal_count++] = *s;
    return ORR_OK;
}

static orr_code find_signals(expander *x)
{
    const orr_flexflow *g = x->g;
    orr_code code = ORR_OK;
    for (uint32_t i = 0; i < g->count && !code; i++) {
        for (uint32_t k = g->dep_first[i]; k < g->dep_first[i + 1] && !code; k++) {
            signal s;
            if (crosses(g, &g->tasks[i], g->deps[k].on, &s))
                code = add_signal(x, &s);
        }
    }
    return code;
}

/* For each rank the signals that it sends or gets. */
static orr_code share_signals(expander *x)
{
    uint32_t *at = orr_arena_new(x->arena, (size_t)x->ranks + 1, uint32_t);
    x->signal_first = orr_arena_new(x->arena, (size_t)x->ranks + 1, uint32_t);
    x->signal_of = orr_arena_new(x->arena, 2 * x->signal_count + 1, uint32_t);
    if (!at || !x->signal_first || !x->signal_of)
        return orr_no_memory(x->err);
    for (size_t k = 0; k < x->signal_count; k++) {
        x->signal_first[x->signals[k].from + 1]++;
        x->signal_first[x->signals[k].to + 1]++;
    }
    for (uint32_t r = 0; r < x->ranks; r++)
        x->signal_first[r + 1] += x->signal_first[r];
    memcpy(at, x->signal_first, x->ranks * sizeof *at);
    for (uint32_t k = 0; k < x->signal_count; k++) {
        x->signal_of[at[x->signals[k].from]++] = k;
        x->signal_of[at[x->signals[k].to]++] = k;
    }
    return ORR_OK;
}

static orr_code connect(expander *x)
{
    const orr_flexflow *g = x->g;
    x->signal_at = orr_map_create(0);
    if (!x->signal_at)
        return orr_no_memory(x->err);
    if (x->rules->keeps_crossings)
        return share_signals(x);
    const uint64_t last = g->tasks[g->order[g->count - 1]].id;
    orr_code code = find_signals(x);
    if (!code && last >= UINT64_MAX - x->signal_count)
        code = orr_fail(x->err, ORR_EINPUT, NULL, "no ids are left behind node%" PRIu64, last);
    x->next_id = last + 1;
    return code ? code : share_signals(x);
}

/* ---- nodes ---- */

/* chakra.md 4.4: compute tasks keep all, messages what stands on "their" device, where a message's
 * device is the number of its link. */
static bool keeps_dep(const expander *x, const ff_task *t, uint32_t on, uint32_t rank)
{
    return !t->is_comm || x->g->tasks[on].device == x->devices[rank];
}

/* A signal for a message waits with its send. */
static void add_local_dep(expander *x, const ff_task *t, uint32_t on, uint32_t rank)
{
    const uint32_t home = t->is_comm ? t->src : t->device;
    signal s;
    uint64_t id = x->g->tasks[on].id;
    if (!ff_task_is_on(&x->g->tasks[on], rank)) {
        if (home != rank || !crosses(x->g, t, on, &s))
            return;
        id = x->next_id + orr_map_find(x->signal_at, signal_key(&s), 0);
    }
    orr__build_deps(&x->b, &id, 1);
}

static void add_deps(expander *x, uint32_t i, uint32_t rank)
{
    const orr_flexflow *g = x->g;
    const ff_task *t = &g->tasks[i];
    for (uint32_t k = g->dep_first[i]; k < g->dep_first[i + 1]; k++) {
        const ff_task_dep *d = &g->deps[k];
        if (!x->rules->keeps_crossings) {
            add_local_dep(x, t, d->on, rank);
            continue;
        }
        const uint32_t times = keeps_dep(x, t, d->on, rank) ? d->times : 0;
        for (uint32_t c = 0; c < times; c++)
            orr__build_deps(&x->b, &g->tasks[d->on].id, 1);
    }
}

static void begin_node(expander *x, uint32_t type, uint64_t id, const char *kind, orr_str name)
{
    x->b.next_id = id;
    orr__build_node(&x->b, type, (orr_str){NULL, 0});
    orr__build_name(&x->b, orr_str_of(kind));
    orr__build_name(&x->b, name);
}

/* Seconds to whole cycles, ties to even as Python's round has it. */
static orr_code run_time(const expander *x, const ff_task *t, uint64_t *out)
{
    const double cycles = t->seconds * ((double)(x->opt->mhz ? x->opt->mhz : 1) * 1e6);
    if (!(cycles < 18446744073709549568.0))
        return orr_fail(x->err, ORR_EINPUT, ORR_AT(orr_where_line(x->g->label, t->line, t->column)),
                        "node%" PRIu64 ": %g s are too many cycles", t->id, t->seconds);
    *out = (uint64_t)nearbyint(cycles);
    return ORR_OK;
}

static orr_code append_compute(expander *x, uint32_t i, uint32_t rank)
{
    const ff_task *t = &x->g->tasks[i];
    begin_node(x, ORR_NODE_COMP, t->id, "COMP_NODE_", t->name);
    const orr_code code = run_time(x, t, &x->b.node.duration_us);
    if (code)
        return code;
    if (!x->rules->has_bare_nodes) {
        orr__build_name(&x->b, orr_str_of("_"));
        orr__build_name(&x->b, t->phase);
        orr__put_on_device(&x->b);
    }
    add_deps(x, i, rank);
    orr__build_add(&x->b);
    return x->b.code;
}

typedef struct message {
    uint64_t id, bytes;
    orr_str name;
    uint32_t src, dst, tag;
    bool is_send;
} message;

/* Peers and tag are int32 because that is what the C++ feeder reads. */
static void begin_message(expander *x, const message *m)
{
    begin_node(x, m->is_send ? ORR_NODE_COMM_SEND : ORR_NODE_COMM_RECV, m->id,
               m->is_send ? "COMM_SEND_NODE_" : "COMM_RECV_NODE_", m->name);
    if (!x->rules->has_bare_nodes)
        orr__put_on_device(&x->b);
    orr__put_message(&x->b, x->rules->has_wide_numbers ? ORR_VALUE_INT64 : ORR_VALUE_INT32, m->src,
                     m->dst, m->bytes, m->tag);
}

static orr_code append_task(expander *x, uint32_t i, uint32_t rank)
{
    const ff_task *t = &x->g->tasks[i];
    if (!t->is_comm)
        return append_compute(x, i, rank);
    const message m = {.id = t->id,
                       .bytes = t->bytes || x->rules->has_empty_sends ? t->bytes : 1,
                       .name = t->name,
                       .src = t->src,
                       .dst = t->dst,
                       .tag = x->tags[i],
                       .is_send = t->src == x->devices[rank]};
    begin_message(x, &m);
    add_deps(x, i, rank);
    orr__build_add(&x->b);
    return x->b.code;
}

static void append_signal(expander *x, uint32_t k, uint32_t rank)
{
    const signal *s = &x->signals[k];
    const ff_task *t = &x->g->tasks[s->task];
    const message m = {.id = x->next_id + k,
                       .bytes = 1,
                       .name = t->name,
                       .src = s->from,
                       .dst = s->to,
                       .tag = x->next_tag + k,
                       .is_send = s->from == rank};
    begin_message(x, &m);
    if (m.is_send)
        orr__build_deps(&x->b, &t->id, 1);
    orr__build_add(&x->b);
}

/* ---- traces ---- */

static orr_code add_rank(expander *x, orr_set *set, uint32_t rank)
{
    orr__build_open(&x->b, x->err);
    orr__put_text(&x->b, ORR__ATTR_GENERATOR, orr_str_of("orrery: FlexFlow task graph"));
    orr__build_trace(&x->b, x->rules->has_bare_nodes ? NULL : "1.0.0");
    for (uint32_t k = x->first[rank]; k < x->first[rank + 1] && !x->b.code; k++)
        x->b.code = append_task(x, x->by_id[k], rank);
    for (uint32_t k = x->signal_first[rank]; k < x->signal_first[rank + 1] && !x->b.code; k++)
        append_signal(x, x->signal_of[k], rank);
    return orr__build_rank(&x->b, set);
}

static orr_code make_set(expander *x, orr_set **out)
{
    orr_set *set;
    orr_code code = orr_set_create(&set, x->err);
    if (code)
        return code;
    for (uint32_t r = 0; r < x->ranks && !code; r++) {
        code = add_rank(x, set, r);
    }
    if (code) {
        orr_set_close(set);
        return code;
    }
    *out = set;
    return ORR_OK;
}

orr_code orr_flexflow_set(const orr_flexflow *g,
                          const orr_flexflow_expand *opt,
                          orr_set **out,
                          orr_error *err)
{
    static const orr_rules_flexflow ours;
    expander x = {.g = g,
                  .opt = opt,
                  .rules = opt->rules ? opt->rules : &ours,
                  .arena = orr_arena_create(),
                  .err = err};
    *out = NULL;
    orr_code code = x.arena ? ORR_OK : orr_no_memory(err);
    if (!code)
        code = x.rules->has_gaps ? rank_computing_devices(&x) : rank_all_devices(&x);
    if (!code)
        code = share_out(&x);
    if (!code)
        code = number_messages(&x);
    if (!code)
        code = connect(&x);
    if (!code)
        code = make_set(&x, out);
    orr_map_destroy(x.signal_at);
    orr_free(x.signals);
    orr_arena_destroy(x.arena);
    return code;
}

size_t orr_flexflow_crossings(const orr_flexflow *g)
{
    size_t n = 0;
    for (uint32_t i = 0; i < g->count; i++) {
        for (uint32_t k = g->dep_first[i]; k < g->dep_first[i + 1]; k++) {
            signal s;
            n += crosses(g, &g->tasks[i], g->deps[k].on, &s);
        }
    }
    return n;
}
