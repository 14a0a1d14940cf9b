/* SPDX-License-Identifier: Apache-2.0 */
/* flexflow.c - a task graph of FlexFlow as traces: read from DOT, then distributed over devices,
 * each with its compute tasks and its ends of messages.
 *
 * A communication is a send on one device and a receive on the other, under one tag.  An edge
 * between tasks on different devices would be lost, so it becomes a message of one byte (simulators
 * refuse empty ones) from the device of the first task to the waiting one. Cost: linear in tasks
 * and edges. */
#include "flexflow_impl.h"

#include "base/formats/dot.h"
#include "base/io/input.h"
#include "base/memory/map.h"
#include "base/memory/sort.h"
#include "base/short_forms.h"
#include "base/text/number.h"
#include "trace/builder.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

/* ---- From the statements of a DOT file to tasks and their dependencies (chakra.md
 * 4.4).
 *
 * A node is called node<K>; its label is a record, {device_id=D|NAME|PHASE|KIND|...}. Everything
 * that a later step relies on is checked here: ids are unique, edges join tasks that exist, nothing
 * waits for itself.  Cost: linear, except for one sort of the ids. */

typedef struct reader {
    orr__dot dot;
    orr_flexflow *g;
    orr_map *by_id;
    orr_error *err;
} reader;

/* ---- one label ---- */

/* The fields of a record label that are still to come. */
typedef struct record {
    const reader *r;
    const orr__dot_node *node;
    const char *at, *end; /* after the last bar comes one more field, at `end` none */
    bool is_over;
} record;

static orr_str trim(orr_str s)
{
    while (s.len && (s.ptr[0] == ' ' || s.ptr[0] == '\t'))
        s = (orr_str){s.ptr + 1, s.len - 1};
    while (s.len && (s.ptr[s.len - 1] == ' ' || s.ptr[s.len - 1] == '\t'))
        s.len--;
    return s;
}

static orr_code label_error(const record *f, orr_str found, const char *expected)
{
    return orr_fail(f->r->err, ORR_EINPUT, ORR_AT(orr__dot_where(&f->r->dot, found.ptr)),
                    "%.*s: '%.*s' where %s is expected", ORR_SHOWN(f->node->name, 60),
                    ORR_SHOWN(found, 60), expected);
}

static orr_code next_field(record *f, const char *expected, orr_str *out)
{
    if (f->is_over)
        return orr_fail(f->r->err, ORR_EINPUT, ORR_AT(orr__dot_where(&f->r->dot, f->end)),
                        "%.*s: the label ends where %s is expected", ORR_SHOWN(f->node->name, 60),
                        expected);
    const char *bar = memchr(f->at, '|', (size_t)(f->end - f->at));
    const char *stop = bar ? bar : f->end;
    *out = trim((orr_str){f->at, (size_t)(stop - f->at)});
    f->is_over = !bar;
    f->at = bar ? bar + 1 : f->end;
    return ORR_OK;
}

/* "key=value"; `expected` has the same form. */
static orr_code next_value(record *f, const char *expected, orr_str *out)
{
    orr_str field;
    const orr_code code = next_field(f, expected, &field);
    if (code)
        return code;
    const size_t key = strcspn(expected, "=");
    if (field.len <= key || memcmp(field.ptr, expected, key + 1) != 0)
        return label_error(f, field, expected);
    *out = trim((orr_str){field.ptr + key + 1, field.len - key - 1});
    return ORR_OK;
}

static orr_code next_whole(record *f, const char *expected, uint64_t max, uint64_t *out)
{
    orr_str text;
    const orr_code code = next_value(f, expected, &text);
    if (code)
        return code;
    if (!orr_text_u64(text, out) || *out > max)
        return orr_fail(f->r->err, ORR_EINPUT, ORR_AT(orr__dot_where(&f->r->dot, text.ptr)),
                        "%.*s: %.*s '%.*s' is not a whole number from 0 to %" PRIu64,
                        ORR_SHOWN(f->node->name, 60), (int)strcspn(expected, "="), expected,
                        ORR_SHOWN(text, 60), max);
    return ORR_OK;
}

static orr_code next_device(record *f, const char *expected, uint32_t *out)
{
    uint64_t v;
    const orr_code code = next_whole(f, expected, FF_DEVICES_MAX - 1, &v);
    if (!code)
        *out = (uint32_t)v;
    return code;
}

static orr_code next_seconds(record *f, const char *expected, double *out)
{
    orr_str text;
    const orr_code code = next_value(f, expected, &text);
    if (code)
        return code;
    if (orr_text_double(text, out) && isfinite(*out) && *out >= 0)
        return ORR_OK;
    return orr_fail(f->r->err, ORR_EINPUT, ORR_AT(orr__dot_where(&f->r->dot, text.ptr)),
                    "%.*s: run time '%.*s' is not a time in seconds", ORR_SHOWN(f->node->name, 60),
                    ORR_SHOWN(text, 60));
}

static orr_code read_comm(record *f, ff_task *t)
{
    orr_code code = next_device(f, "src_device_id=NUMBER", &t->src);
    if (!code)
        code = next_device(f, "dst_device_id=NUMBER", &t->dst);
    return code ? code : next_whole(f, "comm_size=BYTES", INT64_MAX, &t->bytes);
}

static orr_code read_label(record *f, ff_task *t)
{
    orr_str kind;
    orr_code code;
    if ((code = next_device(f, "device_id=NUMBER", &t->device)) ||
        (code = next_field(f, "the name of a task", &t->name)) ||
        (code = next_field(f, "its phase", &t->phase)) ||
        (code = next_field(f, "COMP_NODE or COMM_SEND_RECV_NODE", &kind)))
        return code;
    t->is_comm = orr_str_is(kind, "COMM_SEND_RECV_NODE");
    if (!t->is_comm && !orr_str_is(kind, "COMP_NODE"))
        return label_error(f, kind, "COMP_NODE or COMM_SEND_RECV_NODE");
    return t->is_comm ? read_comm(f, t)
                      : next_seconds(f, "simulated_run_time=SECONDS", &t->seconds);
}

/* ---- nodes ---- */

static bool read_id(orr_str name, uint64_t *out)
{
    static const char word[] = "node";
    const size_t n = sizeof word - 1;
    return name.len > n && memcmp(name.ptr, word, n) == 0 &&
           orr_text_u64((orr_str){name.ptr + n, name.len - n}, out);
}

static orr_code name_error(const reader *r, orr_str name)
{
    return orr_fail(r->err, ORR_EINPUT, ORR_AT(orr__dot_where(&r->dot, name.ptr)),
                    "'%.*s' is not the name of a task: node and a number", ORR_SHOWN(name, 60));
}

static bool keep_text(orr_flexflow *g, orr_str *s)
{
    s->ptr = orr_arena_text(g->arena, *s);
    return s->ptr != NULL;
}

static bool is_utf8(orr_str s)
{
    for (size_t i = 0, n; i < s.len; i += n) {
        if (!(n = orr_utf8_length((const uint8_t *)s.ptr + i, s.len - i)))
            return false;
    }
    return true;
}

static orr_code read_node(reader *r, const orr__dot_node *node)
{
    orr_flexflow *g = r->g;
    const orr_str label = node->label;
    const orr_where at = orr_where_line(g->label, node->line, node->column);
    ff_task t = {.line = node->line, .column = node->column};
    bool is_new;
    if (!read_id(node->name, &t.id))
        return name_error(r, node->name);
    if (label.len < 2 || label.ptr[0] != '{' || label.ptr[label.len - 1] != '}')
        return orr_fail(r->err, ORR_EINPUT, &at, "%.*s has no label \"{device_id=...|...}\"",
                        ORR_SHOWN(node->name, 60));
    record f = {.r = r, .node = node, .at = label.ptr + 1, .end = label.ptr + label.len - 1};
    const orr_code code = read_label(&f, &t);
    if (code)
        return code;
    if (!is_utf8(t.name) || !is_utf8(t.phase))
        return orr_fail(r->err, ORR_EINPUT, &at, "the name of %.*s is not UTF-8 text",
                        ORR_SHOWN(node->name, 60));
    if (!keep_text(g, &t.name) || !keep_text(g, &t.phase) ||
        !orr_map_put(r->by_id, t.id, g->count, &is_new))
        return orr_no_memory(r->err);
    if (!is_new)
        return orr_fail(r->err, ORR_EINPUT, &at, "duplicate %.*s", ORR_SHOWN(node->name, 60));
    g->tasks[g->count++] = t;
    return ORR_OK;
}

static orr_code read_nodes(reader *r)
{
    orr_flexflow *g = r->g;
    const size_t n = r->dot.node_count;
    if (n >= ORR_NO_NODE - 2)
        return orr_no_memory(r->err);
    if (n == 0)
        return orr_fail(r->err, ORR_EINPUT, ORR_AT(orr_where_line(r->dot.path, 1, 1)),
                        "the graph has no tasks");
    g->tasks = orr_arena_new(g->arena, n, ff_task);
    if (!g->tasks)
        return orr_no_memory(r->err);
    orr_code code = ORR_OK;
    for (size_t i = 0; i < n && !code; i++)
        code = read_node(r, &r->dot.nodes[i]);
    return code;
}

/* ---- edges ---- */

typedef struct edge {
    uint32_t from, to, times;
} edge;

static orr_code find_end(const reader *r, orr_str name, uint32_t *out)
{
    uint64_t id;
    if (!read_id(name, &id))
        return name_error(r, name);
    *out = orr_map_find(r->by_id, id, ORR_NO_NODE);
    if (*out != ORR_NO_NODE)
        return ORR_OK;
    return orr_fail(r->err, ORR_EINPUT, ORR_AT(orr__dot_where(&r->dot, name.ptr)),
                    "%.*s has no statement of its own", ORR_SHOWN(name, 60));
}

/* A repeated edge counts once more at its first position, as in pydot. */
static orr_code read_edge(
    reader *r, const orr__dot_edge *e, orr_map *seen, edge *edges, uint32_t *count)
{
    edge now = {.times = 1};
    bool is_new;
    orr_code code = find_end(r, e->from, &now.from);
    if (code || (code = find_end(r, e->to, &now.to)))
        return code;
    const uint64_t key = (uint64_t)now.to << 32 | now.from;
    const uint32_t old = orr_map_find(seen, key, ORR_NO_NODE);
    if (old != ORR_NO_NODE) {
        edges[old].times += edges[old].times < UINT32_MAX;
        return ORR_OK;
    }
    if (!orr_map_put(seen, key, *count, &is_new))
        return orr_no_memory(r->err);
    edges[(*count)++] = now;
    return ORR_OK;
}

/* Sort the edges by the task they lead to, in file order for each. */
static orr_code sort_edges(reader *r, const edge *edges, uint32_t count)
{
    orr_flexflow *g = r->g;
    uint32_t *first = orr_arena_new(g->arena, (size_t)g->count + 2, uint32_t);
    g->deps = orr_arena_new(g->arena, (size_t)count + 1, ff_task_dep);
    if (!first || !g->deps)
        return orr_no_memory(r->err);
    for (uint32_t k = 0; k < count; k++)
        first[edges[k].to + 2]++;
    for (uint32_t i = 1; i < g->count + 2; i++)
        first[i] += first[i - 1];
    for (uint32_t k = 0; k < count; k++)
        g->deps[first[edges[k].to + 1]++] = (ff_task_dep){edges[k].from, edges[k].times};
    g->dep_first = first;
    return ORR_OK;
}

static orr_code read_edges(reader *r, orr_arena *scratch)
{
    const size_t n = r->dot.edge_count;
    edge *edges = n < ORR_NO_NODE ? orr_arena_new(scratch, n + 1, edge) : NULL;
    orr_map *seen = orr_map_create(n);
    orr_code code = edges && seen ? ORR_OK : orr_no_memory(r->err);
    uint32_t count = 0;
    for (size_t k = 0; k < n && !code; k++)
        code = read_edge(r, &r->dot.edges[k], seen, edges, &count);
    orr_map_destroy(seen);
    return code ? code : sort_edges(r, edges, count);
}

/* ---- the graph as a whole ---- */

/* Kahn's algorithm: remove what has no dependencies until nothing is left; the rest is in or after
 * a cycle. */
typedef struct sweep {
    uint32_t *waits; /* for how many tasks */
    uint32_t *first,
        *next; /* the tasks that wait for task i: next[first[i]] to next[first[i + 1] - 1] */
    uint32_t *ready;
    uint32_t ready_count;
} sweep;

static bool sweep_init(sweep *s, const orr_flexflow *g, orr_arena *scratch)
{
    const uint32_t edges = g->dep_first[g->count];
    s->waits = orr_arena_new(scratch, g->count, uint32_t);
    s->first = orr_arena_new(scratch, (size_t)g->count + 2, uint32_t);
    s->next = orr_arena_new(scratch, (size_t)edges + 1, uint32_t);
    s->ready = orr_arena_new(scratch, g->count, uint32_t);
    if (!s->waits || !s->first || !s->next || !s->ready)
        return false;
    for (uint32_t k = 0; k < edges; k++)
        s->first[g->deps[k].on + 2]++;
    for (uint32_t i = 1; i < g->count + 2; i++)
        s->first[i] += s->first[i - 1];
    for (uint32_t i = 0; i < g->count; i++) {
        s->waits[i] = g->dep_first[i + 1] - g->dep_first[i];
        for (uint32_t k = g->dep_first[i]; k < g->dep_first[i + 1]; k++)
            s->next[s->first[g->deps[k].on + 1]++] = i;
        if (s->waits[i] == 0)
            s->ready[s->ready_count++] = i;
    }
    return true;
}

static orr_code check_cycles(const reader *r, orr_arena *scratch)
{
    const orr_flexflow *g = r->g;
    sweep s = {0};
    if (!sweep_init(&s, g, scratch))
        return orr_no_memory(r->err);
    for (uint32_t done = 0; done < s.ready_count; done++) {
        const uint32_t i = s.ready[done];
        for (uint32_t k = s.first[i]; k < s.first[i + 1]; k++) {
            if (--s.waits[s.next[k]] == 0)
                s.ready[s.ready_count++] = s.next[k];
        }
    }
    for (uint32_t i = 0; i < g->count; i++) {
        if (s.waits[i])
            return orr_fail(r->err, ORR_EINPUT,
                            ORR_AT(orr_where_line(g->label, g->tasks[i].line, g->tasks[i].column)),
                            "node%" PRIu64 " never runs: the edges before it form a cycle",
                            g->tasks[i].id);
    }
    return ORR_OK;
}

typedef struct id_place {
    uint64_t id;
    uint32_t task;
} id_place;

static int compare_ids(const void *a, const void *b)
{
    const uint64_t x = ((const id_place *)a)->id, y = ((const id_place *)b)->id;
    return x < y ? -1 : x > y;
}

static orr_code sort_ids(const reader *r, orr_arena *scratch)
{
    orr_flexflow *g = r->g;
    id_place *places = orr_arena_new(scratch, g->count, id_place);
    g->order = orr_arena_new(g->arena, g->count, uint32_t);
    if (!places || !g->order)
        return orr_no_memory(r->err);
    for (uint32_t i = 0; i < g->count; i++)
        places[i] = (id_place){g->tasks[i].id, i};
    orr_sort(places, g->count, sizeof *places, compare_ids);
    for (uint32_t i = 0; i < g->count; i++)
        g->order[i] = places[i].task;
    return ORR_OK;
}

static orr_code find_devices(const reader *r, orr_arena *scratch)
{
    orr_flexflow *g = r->g;
    uint32_t room = 1;
    for (uint32_t i = 0; i < g->count; i++)
        room = !g->tasks[i].is_comm && g->tasks[i].device >= room ? g->tasks[i].device + 1 : room;
    bool *has = orr_arena_new(scratch, room, bool);
    g->devices = orr_arena_new(g->arena, room, uint32_t);
    if (!has || !g->devices)
        return orr_no_memory(r->err);
    for (uint32_t i = 0; i < g->count; i++) {
        if (!g->tasks[i].is_comm)
            has[g->tasks[i].device] = true;
    }
    for (uint32_t d = 0; d < room; d++) {
        if (has[d])
            g->devices[g->device_count++] = d;
    }
    if (g->device_count)
        return ORR_OK;
    return orr_fail(r->err, ORR_EINPUT,
                    ORR_AT(orr_where_line(g->label, g->tasks[0].line, g->tasks[0].column)),
                    "no task computes anything: there are no devices");
}

static orr_code read_graph(reader *r, orr_arena *scratch)
{
    orr_code code;
    if ((code = read_nodes(r)) || (code = read_edges(r, scratch)) ||
        (code = check_cycles(r, scratch)) || (code = sort_ids(r, scratch)))
        return code;
    return find_devices(r, scratch);
}

orr_code orr_flexflow_parse(orr_span bytes, const char *label, orr_flexflow **out, orr_error *err)
{
    reader r = {.g = orr_alloc(1, sizeof *r.g), .by_id = orr_map_create(0), .err = err};
    orr_arena *scratch = orr_arena_create();
    orr_code code = orr_no_memory(err);
    *out = NULL;
    if (r.g && r.by_id && scratch && (r.g->arena = orr_arena_create()) &&
        (r.g->label = orr_arena_text(r.g->arena, orr_str_of(label))))
        code = orr__dot_read(&r.dot, bytes, label, err);
    if (!code)
        code = read_graph(&r, scratch);
    orr__dot_fini(&r.dot);
    orr_map_destroy(r.by_id);
    orr_arena_destroy(scratch);
    if (code)
        orr_flexflow_free(r.g);
    else
        *out = r.g;
    return code;
}

orr_code orr_flexflow_read(const char *path, orr_flexflow **out, orr_error *err)
{
    orr_input *in;
    *out = NULL;
    orr_code code = orr_input_open(path, &in, err);
    if (code)
        return code;
    code = orr_flexflow_parse(orr_input_bytes(in), path, out, err);
    orr_input_close(in);
    return code;
}

void orr_flexflow_free(orr_flexflow *g)
{
    if (!g)
        return;
    orr_arena_destroy(g->arena);
    orr_free(g);
}

uint32_t orr_flexflow_device(const orr_flexflow *g, uint32_t rank)
{
    return g->devices[rank];
}

/* A crossing: notifies device `to` that `task` is done. */
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

/* ---- ranks of devices ---- */

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

/* ---- placement of tasks ---- */

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

/* Must `on` be signalled to another device before task t may begin there?  False: t's devices
 * know. */
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
