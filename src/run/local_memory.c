/* SPDX-License-Identifier: Apache-2.0 */
/* local_memory.c - which tensors a rank holds when, from the nodes that write and read them (astra-sim.md 10.2).
 *
 * A node names its tensors in the attributes inputs and outputs: name, size in bytes, name, size, ...  A tensor
 * lives from the start of the node that writes it (from tick 0 when none does) to the end of the last one that
 * reads it.  During the run only the order in which nodes end is kept; all else follows from it and is worked
 * out twice: for the peak when the rank finishes, and for the file when it is written.
 *
 * The file is a Chrome trace, equal to the reference's also in the order of its events, which is that of GNU's
 * std::unordered_map over names and, by lifetime, of its std::sort, and in every digit: see hash_order.h,
 * library_sort.h and grisu.h.
 *
 * Cost: O(n log n) in the tensors and reads of a rank. */
#include "grisu.h"
#include "hash_order.h"
#include "library_sort.h"
#include "sim_impl.h"

#include "base/formats/json.h"
#include "base/text/number.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

struct orr__tensor_log {
    uint32_t *done; /* places, in the order of their ends */
    uint64_t *ended_at;
    uint32_t count;
};

struct orr__tensor_log *orr__tensor_log_create(uint32_t nodes)
{
    struct orr__tensor_log *l = orr_alloc(1, sizeof *l);
    if (!l)
        return NULL;
    l->done = orr_alloc(nodes, sizeof *l->done);
    l->ended_at = orr_alloc(nodes, sizeof *l->ended_at);
    if (l->done && l->ended_at)
        return l;
    orr__tensor_log_destroy(l);
    return NULL;
}

void orr__tensor_log_destroy(struct orr__tensor_log *l)
{
    if (!l)
        return;
    orr_free(l->done);
    orr_free(l->ended_at);
    orr_free(l);
}

void orr__tensor_log_end(orr__npu *n, uint32_t place)
{
    struct orr__tensor_log *l = n->tensor_log;
    l->ended_at[place] = orr__clock_now(n->sim->clock);
    l->done[l->count++] = place;
}

/* ---- the ledger: tensors in the order of their first mention ---- */

typedef struct tensor {
    uint64_t size;
    uint32_t writer; /* a place, or NONE */
    uint64_t born, written;
    uint64_t last_read;   /* end of the last read; NEVER: none */
    uint32_t first, last; /* of its reads */
} tensor;

typedef struct read {
    uint32_t place, next;
} read;

typedef struct point {
    uint64_t tick, usage; /* while being made: what is added at this tick, modulo 2^64 */
} point;

typedef struct ledger {
    const orr__npu *n;
    orr_intern *names;
    tensor *tensors;
    read *reads;
    uint32_t *readable; /* tensors in the order of their first read */
    point *points;      /* ascending ticks, each once */
    size_t count, room, read_count, read_room, readable_count, readable_room, point_count;
    orr_error *err;
} ledger;

/* What the reference notes for a tensor that no node writes. */
enum { UNWRITTEN_END = 10 };

static void ledger_fini(ledger *l)
{
    orr_intern_destroy(l->names);
    orr_free(l->tensors);
    orr_free(l->reads);
    orr_free(l->readable);
    orr_free(l->points);
}

static orr_code refuse(ledger *l, uint32_t place, const char *words, orr_str what)
{
    const orr__graph *g = l->n->graph;
    const orr_where w = orr_trace_where(g->t, g->node[place]);
    return orr_fail(l->err, ORR_EINPUT, &w,
                    "rank %u, node %" PRIu64 ": local memory cannot be tracked: %s \"%.*s\"",
                    l->n->rank,
                    g->t->id[g->node[place]] + orr_set_id_shift(l->n->sim->set, l->n->rank), words,
                    (int)(what.len < 80 ? what.len : 80), what.ptr);
}

/* Find or add; *is_new says which. */
static orr_code find_tensor(ledger *l, orr_str name, uint64_t size, uint32_t *out, bool *is_new)
{
    if (!orr_intern_add(l->names, name, out))
        return orr_no_memory(l->err);
    *is_new = *out == l->count;
    if (!*is_new)
        return ORR_OK;
    if (!orr_grow(&l->tensors, &l->room, l->count + 1))
        return orr_no_memory(l->err);
    l->tensors[l->count++] = (tensor){.size = size,
                                      .writer = ORR__NONE,
                                      .written = UNWRITTEN_END,
                                      .last_read = ORR_NEVER,
                                      .first = ORR__NONE};
    return ORR_OK;
}

static orr_code add_read(ledger *l, uint32_t place, orr_str name, uint64_t size)
{
    uint32_t which;
    bool is_new;
    const orr_code code = find_tensor(l, name, size, &which, &is_new);
    if (code)
        return code;
    tensor *t = &l->tensors[which];
    const uint32_t r = (uint32_t)l->read_count;
    if (!orr_grow(&l->reads, &l->read_room, l->read_count + 1) ||
        !orr_grow(&l->readable, &l->readable_room, l->readable_count + 1))
        return orr_no_memory(l->err);
    l->reads[l->read_count++] = (read){.place = place, .next = ORR__NONE};
    if (t->first == ORR__NONE) {
        l->readable[l->readable_count++] = which;
        t->first = r;
    } else {
        l->reads[t->last].next = r;
    }
    t->last = r;
    t->last_read = l->n->tensor_log->ended_at[place];
    return ORR_OK;
}

static orr_code add_write(ledger *l, uint32_t place, orr_str name, uint64_t size)
{
    uint32_t which;
    bool is_new;
    const orr_code code = find_tensor(l, name, size, &which, &is_new);
    if (code)
        return code;
    if (!is_new)
        return refuse(l, place, "this node writes a tensor that is there already:", name);
    tensor *t = &l->tensors[which];
    t->writer = place;
    t->born = l->n->started_at[place];
    t->written = l->n->tensor_log->ended_at[place];
    return ORR_OK;
}

typedef orr_code (*adder)(ledger *l, uint32_t place, orr_str name, uint64_t size);

/* An attribute of another kind, or an empty list, names no tensors, as in the reference. */
static orr_code add_tensors(
    ledger *l, uint32_t place, const orr_node *node, const char *key, adder add)
{
    orr_attr attr;
    orr_value name, size;
    uint64_t bytes;
    orr_code code = ORR_OK;
    if (!orr_node_attr(node, key, &attr))
        return refuse(l, place, "the node lacks the attribute", orr_str_of(key));
    if (!attr.is_list || attr.kind != ORR_VALUE_STRING)
        return ORR_OK;
    for (orr_list it = orr_attr_items(&attr); !code && orr_list_next(&it, &name);) {
        if (!orr_list_next(&it, &size))
            return refuse(l, place, "there is no size after the tensor", name.s);
        if (!orr_text_u64(size.s, &bytes))
            return refuse(l, place, "not a size in bytes:", size.s);
        if (bytes > 0) /* empty tensors do not count */
            code = add(l, place, name.s, bytes);
    }
    return code;
}

/* One attribute; false: it ends the list of what can be read. */
static bool visit_attribute(
    const orr_node *node, const char *key, bool is_write, orr__tensor_visit visit, void *context)
{
    orr_attr attr;
    orr_value name, size;
    uint64_t bytes;
    if (!orr_node_attr(node, key, &attr))
        return false;
    if (!attr.is_list || attr.kind != ORR_VALUE_STRING)
        return true;
    for (orr_list it = orr_attr_items(&attr); orr_list_next(&it, &name);) {
        if (!orr_list_next(&it, &size) || !orr_text_u64(size.s, &bytes))
            return false;
        if (bytes > 0)
            visit(context, is_write, name.s);
    }
    return true;
}

void orr__tensors_visit(const orr__npu *n, uint32_t place, orr__tensor_visit visit, void *context)
{
    orr_node node;
    orr_trace_node(n->graph->t, n->graph->node[place], &node);
    if (visit_attribute(&node, "inputs", false, visit, context))
        (void)!visit_attribute(&node, "outputs", true, visit, context);
}

static orr_code add_nodes(ledger *l)
{
    const struct orr__tensor_log *log = l->n->tensor_log;
    const orr__graph *g = l->n->graph;
    orr_code code = ORR_OK;
    for (uint32_t i = 0; i < log->count && !code; i++) {
        const uint32_t place = log->done[i];
        orr_node node;
        orr_trace_node(g->t, g->node[place], &node);
        code = add_tensors(l, place, &node, "inputs", add_read);
        if (!code)
            code = add_tensors(l, place, &node, "outputs", add_write);
    }
    return code;
}

static int compare_points(const void *a, const void *b)
{
    const uint64_t x = ((const point *)a)->tick, y = ((const point *)b)->tick;
    return x < y ? -1 : x > y;
}

/* Births and deaths of one tick count together, so a tensor that dies as another is born makes no peak. */
static orr_code add_points(ledger *l)
{
    l->points = orr_alloc(2 * l->count, sizeof *l->points);
    if (!l->points)
        return orr_no_memory(l->err);
    size_t changes = 0;
    for (size_t i = 0; i < l->count; i++) {
        const tensor *t = &l->tensors[i];
        l->points[changes++] = (point){t->born, t->size};
        if (t->last_read != ORR_NEVER)
            l->points[changes++] = (point){t->last_read, -t->size};
    }
    qsort(l->points, changes, sizeof *l->points, compare_points);
    uint64_t usage = 0;
    for (size_t i = 0; i < changes; i++) {
        const uint64_t tick = l->points[i].tick;
        usage += l->points[i].usage;
        if (i == 0 || tick != l->points[l->point_count - 1].tick)
            l->point_count++;
        l->points[l->point_count - 1] = (point){tick, usage};
    }
    return ORR_OK;
}

static orr_code make_ledger(const orr__npu *n, ledger *l, orr_error *err)
{
    *l = (ledger){.n = n, .names = orr_intern_create(), .err = err};
    orr_code code = l->names ? ORR_OK : orr_no_memory(err);
    if (!code)
        code = add_nodes(l);
    if (!code)
        code = add_points(l);
    return code;
}

void orr__tensor_log_measure(orr__npu *n)
{
    ledger l;
    orr_error err;
    const orr_code code = make_ledger(n, &l, &err);
    for (size_t i = 0; i < l.point_count; i++)
        if (l.points[i].usage > n->result.peak_memory)
            n->result.peak_memory = l.points[i].usage;
    if (code)
        orr__sim_fail(n->sim, code, &err);
    ledger_fini(&l);
}

orr_code orr__tensor_usage(const orr__npu *n, orr__usage_visit visit, void *context, orr_error *err)
{
    ledger l;
    const orr_code code = make_ledger(n, &l, err);
    for (size_t i = 0; i < l.point_count && !code; i++)
        visit(context, l.points[i].tick, l.points[i].usage);
    ledger_fini(&l);
    return code;
}

/* ---- the order of names in the reference's maps ---- */

/* The hash of GNU's std::hash<std::string> on 64-bit machines: MurmurHash64A with this seed. */
static uint64_t library_hash(orr_str s)
{
    const uint64_t factor = 0xc6a4a7935bd1e995u;
    uint64_t hash = 0xc70f6907u ^ s.len * factor;
    size_t at = 0;
    for (; s.len - at >= 8; at += 8) {
        uint64_t word;
        memcpy(&word, s.ptr + at, 8);
        word *= factor;
        hash = (hash ^ (word ^ word >> 47) * factor) * factor;
    }
    if (at < s.len) {
        uint64_t word = 0;
        memcpy(&word, s.ptr + at, s.len - at);
        hash = (hash ^ word) * factor;
    }
    hash = (hash ^ hash >> 47) * factor;
    return hash ^ hash >> 47;
}

typedef struct orders {
    uint64_t *hashes;
    orr__hash_order sizes;    /* sizes and writes: tensors put in as they were first mentioned */
    orr__hash_order numbers;  /* put in as `sizes` has them */
    orr__hash_order readable; /* put in as they were first read */
    uint32_t *number;         /* of each tensor: its place in `sizes` */
} orders;

static void orders_fini(orders *o)
{
    orr_free(o->hashes);
    orr_free(o->number);
    orr__hash_order_fini(&o->sizes);
    orr__hash_order_fini(&o->numbers);
    orr__hash_order_fini(&o->readable);
}

static bool orders_init(orders *o, const ledger *l)
{
    const uint32_t n = (uint32_t)l->count;
    *o = (orders){.hashes = orr_alloc(n, sizeof *o->hashes),
                  .number = orr_alloc(n, sizeof *o->number)};
    bool ok = o->hashes && o->number;
    for (uint32_t i = 0; ok && i < n; i++)
        o->hashes[i] = library_hash(orr_intern_get(l->names, i));
    ok = ok && orr__hash_order_init(&o->sizes, o->hashes, n) &&
         orr__hash_order_init(&o->numbers, o->hashes, n) &&
         orr__hash_order_init(&o->readable, o->hashes, n);
    for (uint32_t i = 0; ok && i < n; i++)
        ok = orr__hash_order_add(&o->sizes, i);
    uint32_t number = 0;
    for (uint32_t i = o->sizes.first; ok && number < n; i = o->sizes.next[i]) {
        o->number[i] = number++;
        ok = orr__hash_order_add(&o->numbers, i);
    }
    for (size_t i = 0; ok && i < l->readable_count; i++)
        ok = orr__hash_order_add(&o->readable, l->readable[i]);
    return ok;
}

/* ---- the file ---- */

typedef struct writer {
    const ledger *l;
    const orders *o;
    orr_json_writer json;
    orr_buf text;
    orr_output *out;
    uint64_t rank;
} writer;

enum { LIFETIMES = 1000000, COUNTER = 2000000, HEATMAP = 3000000 }; /* added to the rank: pid */

static void put_double(writer *w, const char *key, double value)
{
    char text[ORR__GRISU_ROOM];
    orr_json_key(&w->json, key);
    orr_json_raw_text(&w->json, (orr_str){text, orr__grisu_text(value, text)});
}

static void put_time(writer *w, const char *key, uint64_t ticks)
{
    put_double(w, key, 1e-3 * (double)ticks); /* in microseconds */
}

static void put_number(writer *w, const char *key, uint64_t value)
{
    orr_json_key(&w->json, key);
    orr_json_u64(&w->json, value);
}

static void put_text(writer *w, const char *key, const char *text)
{
    orr_json_key(&w->json, key);
    orr_json_text(&w->json, text);
}

static void put_name(writer *w, const char *key, uint32_t tensor_index)
{
    orr_json_key(&w->json, key);
    orr_json_str(&w->json, orr_intern_get(w->l->names, tensor_index));
}

/* Events and their arguments have their keys in alphabetical order. */
static void begin_event(writer *w)
{
    orr_json_begin_object(&w->json);
    orr_json_key(&w->json, "args");
    orr_json_begin_object(&w->json);
}

static void end_args(writer *w)
{
    orr_json_end_object(&w->json);
}

static void end_event(writer *w)
{
    orr_json_end_object(&w->json);
    if (w->text.len > 1 << 16)
        orr_output_drain(w->out, &w->text);
}

/* One end of a read or a write; place NONE: no node does it. */
static void put_edge(
    writer *w, uint32_t index, uint32_t place, const char *category, const char *phase, uint64_t at)
{
    const orr__npu *n = w->l->n;
    begin_event(w);
    if (place == ORR__NONE) {
        put_number(w, "node_id", UINT64_MAX);
        put_text(w, "node_name", "UNDEFINED");
    } else {
        const uint32_t i = n->graph->node[place];
        put_number(w, "node_id", n->graph->t->id[i] + orr_set_id_shift(n->sim->set, n->rank));
        orr_json_key(&w->json, "node_name");
        orr_json_str(&w->json, orr_trace_name(n->graph->t, i));
    }
    put_number(w, "size", w->l->tensors[index].size);
    end_args(w);
    put_text(w, "cat", category);
    put_name(w, "name", index);
    put_text(w, "ph", phase);
    put_number(w, "pid", w->rank);
    put_number(w, "tid", w->o->number[index]);
    put_time(w, "ts", at);
    end_event(w);
}

static void put_accesses(writer *w)
{
    const ledger *l = w->l;
    const orr__hash_order *order = &w->o->numbers;
    for (uint32_t i = order->first; i != ORR__NONE; i = order->next[i])
        for (uint32_t r = l->tensors[i].first; r != ORR__NONE; r = l->reads[r].next) {
            const uint32_t place = l->reads[r].place;
            put_edge(w, i, place, "tensorRead", "B", l->n->started_at[place]);
            put_edge(w, i, place, "tensorRead", "E", l->n->tensor_log->ended_at[place]);
        }
    for (uint32_t i = order->first; i != ORR__NONE; i = order->next[i]) {
        const tensor *t = &l->tensors[i];
        put_edge(w, i, t->writer, "tensorWrite", "B", t->born);
        put_edge(w, i, t->writer, "tensorWrite", "E", t->written);
    }
}

static void put_lifetime(writer *w, uint32_t index, const char *phase, uint64_t at)
{
    begin_event(w);
    put_number(w, "size", w->l->tensors[index].size);
    end_args(w);
    put_text(w, "cat", "tensorLifetime");
    put_name(w, "name", index);
    put_text(w, "ph", phase);
    put_number(w, "pid", w->rank + LIFETIMES);
    put_number(w, "tid", w->o->number[index]);
    put_time(w, "ts", at);
    end_event(w);
}

static void put_lifetimes(writer *w)
{
    const orr__hash_order *all = &w->o->sizes, *readable = &w->o->readable;
    for (uint32_t i = all->first; i != ORR__NONE; i = all->next[i])
        put_lifetime(w, i, "B", w->l->tensors[i].born);
    for (uint32_t i = readable->first; i != ORR__NONE; i = readable->next[i])
        put_lifetime(w, i, "E", w->l->tensors[i].last_read);
}

static double megabytes(uint64_t bytes)
{
    return (double)bytes / (1024.0 * 1024.0);
}

static void put_counter(writer *w)
{
    for (size_t i = 0; i < w->l->point_count; i++) {
        begin_event(w);
        put_double(w, "Memory_MB", megabytes(w->l->points[i].usage));
        end_args(w);
        put_text(w, "cat", "GPU Memory");
        put_text(w, "name", "GPU Memory Usage (MB)");
        put_text(w, "ph", "C");
        put_number(w, "pid", w->rank + COUNTER);
        put_time(w, "ts", w->l->points[i].tick);
        end_event(w);
    }
}

/* ---- the heat map: tensors by lifetime ---- */

/* By lifetime, the longest first; equal ones as the reference's library leaves them.  A tensor that is never read
 * lives to the last change there is. */
static orr__sort_item *sort_lives(const writer *w)
{
    const ledger *l = w->l;
    orr__sort_item *lives = orr_alloc(l->count, sizeof *lives);
    size_t count = 0;
    if (!lives)
        return NULL;
    for (uint32_t i = w->o->sizes.first; i != ORR__NONE; i = w->o->sizes.next[i]) {
        const tensor *t = &l->tensors[i];
        const uint64_t end =
            t->last_read != ORR_NEVER ? t->last_read : l->points[l->point_count - 1].tick;
        lives[count++] = (orr__sort_item){.key = end - t->born, .index = i};
    }
    orr__library_sort(lives, count);
    return lives;
}

static void put_label(writer *w, const char *event, const char *name, bool is_thread)
{
    begin_event(w);
    put_text(w, "name", name);
    end_args(w);
    put_text(w, "name", event);
    put_text(w, "ph", "M");
    put_number(w, "pid", w->rank + HEATMAP);
    if (is_thread)
        put_number(w, "tid", 0);
    end_event(w);
}

/* Small tensors are blue, the largest is red. */
static void put_color(writer *w, uint64_t size, uint64_t largest)
{
    char text[16];
    const int heat = (int)((double)size / (double)largest * 255);
    snprintf(text, sizeof text, "#%02X64%02X", (unsigned)heat, (unsigned)(255 - heat));
    put_text(w, "cname", text);
}

/* "name (1.234 MB)"; long names lose their end, and sizes what does not fit in five characters. */
static void put_caption(writer *w, uint32_t index)
{
    const orr_str name = orr_intern_get(w->l->names, index);
    const bool is_long = name.len > 20;
    char size[40];
    orr_buf b = {0};
    snprintf(size, sizeof size, "%f", megabytes(w->l->tensors[index].size));
    orr_buf_print(&b, "%.*s%s (%.5s MB)", is_long ? 17 : (int)name.len, name.ptr,
                  is_long ? "..." : "", size);
    orr_json_key(&w->json, "name");
    orr_json_str(&w->json, (orr_str){(const char *)b.ptr, b.len});
    orr_buf_fini(&b);
}

static void put_life(writer *w, const orr__sort_item *v, uint64_t position, uint64_t largest)
{
    const tensor *t = &w->l->tensors[v->index];
    begin_event(w);
    put_number(w, "lifetime_ns", v->key);
    put_number(w, "position", position);
    put_number(w, "size_bytes", t->size);
    put_double(w, "size_mb", megabytes(t->size));
    put_name(w, "tensor_name", v->index);
    end_args(w);
    put_text(w, "cat", "tensorHeatmap");
    put_color(w, t->size, largest);
    put_time(w, "dur", v->key);
    put_caption(w, v->index);
    put_text(w, "ph", "X");
    put_number(w, "pid", w->rank + HEATMAP);
    put_number(w, "tid", position);
    put_time(w, "ts", t->born);
    end_event(w);
}

static void put_summary(writer *w)
{
    begin_event(w);
    put_text(w, "description", "Tensors arranged by lifetime duration (longest at bottom)");
    put_number(w, "displayed_tensors", w->l->count);
    put_number(w, "total_tensors", w->l->count);
    end_args(w);
    put_text(w, "cat", "tensorHeatmap");
    put_text(w, "name", "Tensor Lifetime Heatmap");
    put_text(w, "ph", "i");
    put_number(w, "pid", w->rank + HEATMAP);
    put_text(w, "s", "p");
    put_number(w, "ts", 0);
    end_event(w);
}

static bool put_heatmap(writer *w)
{
    const size_t count = w->l->count;
    orr__sort_item *lives = sort_lives(w);
    uint64_t largest = 0;
    if (!lives)
        return false;
    for (size_t i = 0; i < count; i++)
        if (w->l->tensors[i].size > largest)
            largest = w->l->tensors[i].size;
    put_label(w, "process_name", "Tensor Lifetime Heap", false);
    put_label(w, "thread_name", "Longest Lifetime \xE2\x86\x92 Shortest Lifetime", true);
    for (size_t i = 0; i < count; i++) {
        const uint64_t above = lives[i].key - lives[count - 1].key;
        const uint64_t range = lives[0].key - lives[count - 1].key;
        const double share = range ? (double)above / (double)range : 0;
        put_life(w, &lives[i], (uint64_t)(share * (double)(count - 1)), largest);
    }
    put_summary(w);
    orr_free(lives);
    return true;
}

static orr_code write_file(writer *w, const char *path, orr_error *err)
{
    const orr_json_style style = {.indent = 2};
    orr_code code = orr_output_open(path, &w->out, err);
    if (code)
        return code;
    orr_json_writer_init(&w->json, &w->text, &style);
    orr_json_begin_object(&w->json);
    orr_json_key(&w->json, "traceEvents");
    orr_json_begin_array(&w->json);
    put_accesses(w);
    put_lifetimes(w);
    put_counter(w);
    if (!put_heatmap(w))
        code = orr_no_memory(err);
    orr_json_end_array(&w->json);
    orr_json_end_object(&w->json);
    orr_output_drain(w->out, &w->text);
    if (!code)
        return orr_output_commit(&w->out, err);
    orr_output_discard(w->out);
    return code;
}

const char *orr_sim_memory_trace(const orr_sim *s)
{
    return s->system.track_local_mem ? s->system.local_mem_file : NULL;
}

orr_code orr_sim_write_memory_trace(const orr_sim *s,
                                    uint32_t rank,
                                    const char *path,
                                    orr_error *err)
{
    ledger l;
    orders o;
    if (rank >= s->npu_count || !s->npus[rank].tensor_log)
        return orr_fail(err, ORR_EUSAGE, NULL, "rank %u has no memory trace", rank);
    orr_code code = make_ledger(&s->npus[rank], &l, err);
    if (!code) {
        writer w = {.l = &l, .o = &o, .rank = rank};
        code = orders_init(&o, &l) ? write_file(&w, path, err) : orr_no_memory(err);
        orders_fini(&o);
        orr_buf_fini(&w.text);
    }
    ledger_fini(&l);
    return code;
}
