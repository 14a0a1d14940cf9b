/* SPDX-License-Identifier: Apache-2.0 */
/* flexflow_read.c - from the statements of a DOT file to tasks and their dependencies (chakra.md
 * 4.4).
 *
 * A node is called node<K>; its label is a record, {device_id=D|NAME|PHASE|KIND|...}.  Everything
 * that a later step relies on is checked here: ids are unique, edges join tasks that exist, nothing
 * waits for itself. Cost: linear, but for one sort of the ids. */
#include "flexflow_impl.h"

#include "base/formats/dot.h"
#include "base/io/input.h"
#include "base/memory/map.h"
#include "base/short_forms.h"
#include "base/text/number.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

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
    const char *at, *end; /* behind the last bar is one more field, at `end` none */
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

/* "key=value"; what is wanted is said in the same form. */
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

/* A repeated edge counts once more where it stood first, as pydot has it. */
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

/* Taking away what waits for nothing until nothing is left; what stays is or follows a cycle. */
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
    qsort(places, g->count, sizeof *places, compare_ids);
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
