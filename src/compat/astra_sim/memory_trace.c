/* SPDX-License-Identifier: Apache-2.0 */
/* memory_trace.c - a rank's tensors over time, in the Chrome trace format of ASTRA-sim
 * (astra-sim.md 10.2).
 *
 * Byte for byte the same, so three accidents of its libraries are reproduced: the order of events
 * is that of libstdc++'s std::unordered_map over names (hash_order.h), tensors of equal lifetime
 * are in the order its std::sort leaves them in (library_sort.h), and numbers have the digits of
 * its JSON library (grisu.h).
 *
 * Cost: O(n log n) in a rank's tensors and reads. */
#include "astra_sim.h"

#include "base/formats/json.h"
#include "base/text/number.h"
#include "compat/hash_order.h"
#include "compat/library_sort.h"
#include "grisu.h"
#include "run/watch.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- iteration order of the reference's maps ---- */

/* libstdc++'s std::hash<std::string> on 64-bit machines: MurmurHash64A with its default seed. */
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
    hash_order sizes;    /* the maps of sizes and of writes: inserted at first mention */
    hash_order numbers;  /* the map of numbers: inserted in the order of `sizes` */
    hash_order readable; /* the map of reads: inserted at the first read */
    uint32_t *number;    /* per tensor: its position in `sizes` */
} orders;

static void orders_fini(orders *o)
{
    orr_free(o->hashes);
    orr_free(o->number);
    hash_order_fini(&o->sizes);
    hash_order_fini(&o->numbers);
    hash_order_fini(&o->readable);
}

static bool orders_init(orders *o, const mem_ledger *l)
{
    const uint32_t n = (uint32_t)l->count;
    *o = (orders){.hashes = orr_alloc(n, sizeof *o->hashes),
                  .number = orr_alloc(n, sizeof *o->number)};
    bool ok = o->hashes && o->number;
    for (uint32_t i = 0; ok && i < n; i++)
        o->hashes[i] = library_hash(orr_intern_get(l->names, i));
    ok = ok && hash_order_init(&o->sizes, o->hashes, n) &&
         hash_order_init(&o->numbers, o->hashes, n) && hash_order_init(&o->readable, o->hashes, n);
    for (uint32_t i = 0; ok && i < n; i++)
        ok = hash_order_add(&o->sizes, i);
    uint32_t number = 0;
    for (uint32_t i = o->sizes.first; ok && number < n; i = o->sizes.next[i]) {
        o->number[i] = number++;
        ok = hash_order_add(&o->numbers, i);
    }
    for (size_t i = 0; ok && i < l->readable_count; i++)
        ok = hash_order_add(&o->readable, l->readable[i]);
    return ok;
}

/* ---- the file ---- */

typedef struct writer {
    const mem_ledger *l;
    const orders *o;
    orr_json_writer json;
    orr_buf text;
    orr_output *out;
    uint64_t rank;
} writer;

enum { LIFETIMES = 1000000, COUNTER = 2000000, HEATMAP = 3000000 }; /* pid = this + rank */

static void put_double(writer *w, const char *key, double value)
{
    char text[ORR__GRISU_ROOM];
    orr_json_key(&w->json, key);
    orr_json_raw_text(&w->json, (orr_str){text, orr__grisu_text(value, text)});
}

static void put_time(writer *w, const char *key, uint64_t ticks)
{
    put_double(w, key, 1e-3 * (double)ticks); /* microseconds */
}

static void put_number(writer *w, const char *key, uint64_t value)
{
    orr_json_put_u64(&w->json, key, value);
}

static void put_text(writer *w, const char *key, const char *text)
{
    orr_json_put_text(&w->json, key, text);
}

static void put_name(writer *w, const char *key, uint32_t tensor_index)
{
    orr_json_key(&w->json, key);
    orr_json_str(&w->json, orr_intern_get(w->l->names, tensor_index));
}

/* The JSON library sorts keys: events and their arguments are written in alphabetical order. */
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

/* Start or end of a read or write; place NONE: by no node. */
static void put_edge(
    writer *w, uint32_t index, uint32_t place, const char *category, const char *phase, uint64_t at)
{
    const run_npu *n = w->l->n;
    begin_event(w);
    if (place == RUN_NONE) {
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
    const mem_ledger *l = w->l;
    const hash_order *order = &w->o->numbers;
    for (uint32_t i = order->first; i != RUN_NONE; i = order->next[i])
        for (uint32_t r = l->tensors[i].first; r != RUN_NONE; r = l->reads[r].next) {
            const uint32_t place = l->reads[r].place;
            put_edge(w, i, place, "tensorRead", "B", l->n->started_at[place]);
            put_edge(w, i, place, "tensorRead", "E", l->n->tensor_log->ended_at[place]);
        }
    for (uint32_t i = order->first; i != RUN_NONE; i = order->next[i]) {
        const mem_tensor *t = &l->tensors[i];
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
    const hash_order *all = &w->o->sizes, *readable = &w->o->readable;
    for (uint32_t i = all->first; i != RUN_NONE; i = all->next[i])
        put_lifetime(w, i, "B", w->l->tensors[i].born);
    for (uint32_t i = readable->first; i != RUN_NONE; i = readable->next[i])
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

/* Longest lifetime first; ties as std::sort leaves them.  A tensor that is never read lives until
 * the last event. */
static orr__sort_item *sort_lives(const writer *w)
{
    const mem_ledger *l = w->l;
    orr__sort_item *lives = orr_alloc(l->count, sizeof *lives);
    size_t count = 0;
    if (!lives)
        return NULL;
    for (uint32_t i = w->o->sizes.first; i != RUN_NONE; i = w->o->sizes.next[i]) {
        const mem_tensor *t = &l->tensors[i];
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

/* From blue (small) to red (the largest). */
static void put_color(writer *w, uint64_t size, uint64_t largest)
{
    char text[16];
    const int heat = (int)((double)size / (double)largest * 255);
    snprintf(text, sizeof text, "#%02X64%02X", (unsigned)heat, (unsigned)(255 - heat));
    put_text(w, "cname", text);
}

/* "name (1.234 MB)"; long names are cut, and sizes to five characters. */
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
    const mem_tensor *t = &w->l->tensors[v->index];
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
    orr_code code = orr_output_open_deep(path, &w->out, err);
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

orr_code astra_sim_write_memory(const orr_sim *s, uint32_t rank, const char *path, orr_error *err)
{
    mem_ledger l;
    orders o;
    if (rank >= s->npu_count || !s->npus[rank].tensor_log)
        return orr_fail(err, ORR_EUSAGE, NULL, "rank %u has no memory trace", rank);
    orr_code code = mem_ledger_make(&s->npus[rank], &l, err);
    if (!code) {
        writer w = {.l = &l, .o = &o, .rank = rank};
        code = orders_init(&o, &l) ? write_file(&w, path, err) : orr_no_memory(err);
        orders_fini(&o);
        orr_buf_fini(&w.text);
    }
    mem_ledger_fini(&l);
    return code;
}
