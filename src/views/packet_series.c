/* SPDX-License-Identifier: Apache-2.0 */
/* packet_series.c - time series of the packet network as CSV, one row per slot, or as one JSON
 * object (docs/format/packet.md).
 *
 * Times are in ns with picoseconds as decimals.  The busiest come first. */
#include "models/network/packet/watch/watchers.h"

#include "base/formats/json.h"
#include "base/memory/sort.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAME_ROOM = 80, FORMAT_VERSION = 1 };

typedef enum what { LINK, QUEUE, FLOW } what;

/* ---- intervals ---- */

static uint64_t slot_ticks(const fab_series *s)
{
    return s->every * s->merged;
}

/* The closed slots, and the open one if it is not empty. */
static size_t slot_count(const fab_series *s)
{
    return s->count + (s->end > s->count * slot_ticks(s));
}

static uint64_t begin_of(const fab_series *s, size_t slot)
{
    return slot * slot_ticks(s);
}

static uint64_t end_of(const fab_series *s, size_t slot)
{
    return slot < s->count ? begin_of(s, slot + 1) : s->end;
}

static double share(const fab_series *s, size_t slot, uint64_t ticks)
{
    const uint64_t whole = end_of(s, slot) - begin_of(s, slot);
    const double part = whole ? (double)ticks / (double)whole : 0;
    return part < 1 ? part : 1;
}

static uint64_t mean(uint64_t sum, uint32_t samples)
{
    return samples ? sum / samples : 0;
}

static uint64_t bits_per_second(const fab *f, size_t slot, uint64_t bytes)
{
    const uint64_t ticks = end_of(fab_series_of(f), slot) - begin_of(fab_series_of(f), slot);
    return ticks ? (uint64_t)((unsigned __int128)bytes * 8 * 1000000000u * f->unit / ticks) : 0;
}

/* ---- order ---- */

typedef struct ranked {
    uint64_t weight;
    uint32_t id;
    const fab_series_watch *watch;
} ranked;

static int heavier_first(const void *a, const void *b)
{
    const ranked *x = a, *y = b;
    if (x->weight != y->weight)
        return x->weight > y->weight ? -1 : 1;
    return x->watch < y->watch ? -1 : 1; /* the order of creation */
}

/* NULL: out of memory, or none. */
static ranked *rank(const fab *f, const fab_series_watches *w, bool is_flow)
{
    ranked *r = w->count ? orr_alloc(w->count, sizeof *r) : NULL;
    for (size_t i = 0; r && i < w->count; i++)
        r[i] = (ranked){is_flow ? w->list[i].size : f->ports[w->list[i].id].busy_ticks,
                        w->list[i].id, &w->list[i]};
    if (r)
        orr_sort(r, w->count, sizeof *r, heavier_first);
    return r;
}

static void name_port(const fab *f, uint32_t port, char *out)
{
    const fab_port *p = &f->ports[port], *q = &f->ports[p->peer];
    snprintf(out, NAME_ROOM, p->is_switch ? "switch%u.%u -> %s%u" : "%u.%u -> %s%u", p->node,
             p->number, q->is_switch ? "switch" : "", q->node);
}

static void name_flow(const fab_series_watch *w, char *out)
{
    snprintf(out, NAME_ROOM, "%u -> %u (%u)", w->src, w->dst, w->src_port);
}

/* ---- CSV ---- */

static void put_time(orr_buf *b, const fab *f, uint64_t ticks)
{
    orr_buf_u64(b, ticks / f->unit);
    if (f->unit > 1)
        orr_buf_print(b, ".%03u", (unsigned)(ticks % f->unit));
}

static void put_values(orr_buf *b, const fab *f, what kind, size_t i, const fab_series_slot *s)
{
    if (kind == LINK)
        orr_buf_print(b, "%.6f,%.6f,,,,,", share(fab_series_of(f), i, s->a),
                      share(fab_series_of(f), i, s->b));
    else if (kind == QUEUE)
        orr_buf_print(b, ",,%" PRIu64 ",%" PRIu64 ",,,", mean(s->sum, s->samples), s->max);
    else
        orr_buf_print(b, ",,,,%" PRIu64 ",%" PRIu64 ",%" PRIu64, bits_per_second(f, i, s->a),
                      mean(s->sum, s->samples), mean(s->sum2, s->samples));
}

static void put_rows(orr_buf *b, const fab *f, what kind, const fab_series_watch *w)
{
    static const char *const kinds[] = {"link", "queue", "flow"};
    const size_t count = slot_count(fab_series_of(f));
    char name[NAME_ROOM];
    if (kind == FLOW)
        name_flow(w, name);
    else
        name_port(f, w->id, name);
    for (size_t i = w->first; i <= w->last && i < count; i++) {
        orr_buf_print(b, "%s,%s,", kinds[kind], name);
        put_time(b, f, begin_of(fab_series_of(f), i));
        orr_buf_byte(b, ',');
        put_time(b, f, end_of(fab_series_of(f), i));
        orr_buf_byte(b, ',');
        put_values(b, f, kind, i, &w->slots[i]);
        orr_buf_byte(b, '\n');
    }
}

static bool is_wanted(const fab *f, what kind, const fab_series_watch *w)
{
    static const unsigned bits[] = {ORR__SERIES_LINKS, ORR__SERIES_QUEUES, ORR__SERIES_FLOWS};
    return (f->config.series_what & bits[kind]) &&
           (kind != QUEUE || f->ports[w->id].is_switch); /* hosts have no queues of packets */
}

static void put_kind(orr_buf *b, const fab *f, what kind)
{
    const fab_series_watches *w =
        kind == FLOW ? &fab_series_of(f)->flows : &fab_series_of(f)->ports;
    ranked *order = rank(f, w, kind == FLOW);
    b->failed |= w->count && !order;
    for (size_t i = 0; order && i < w->count; i++)
        if (is_wanted(f, kind, order[i].watch))
            put_rows(b, f, kind, order[i].watch);
    orr_free(order);
}

static void series_write_csv(const fab *f, orr_buf *b)
{
    orr_buf_text(b, "what,name,from_ns,to_ns,utilisation,paused,queue_mean_bytes,queue_max_bytes,"
                    "rate_bps,window_bytes,in_flight_bytes\n");
    for (int kind = LINK; kind <= FLOW; kind++)
        put_kind(b, f, (what)kind);
}

/* ---- JSON ---- */

typedef double (*value_of)(const fab *f, size_t i, const fab_series_slot *s);

static double utilisation(const fab *f, size_t i, const fab_series_slot *s)
{
    return share(fab_series_of(f), i, s->a);
}

static double paused(const fab *f, size_t i, const fab_series_slot *s)
{
    return share(fab_series_of(f), i, s->b);
}

static double mean_queue(const fab *f, size_t i, const fab_series_slot *s)
{
    (void)f, (void)i;
    return (double)mean(s->sum, s->samples);
}

static double max_queue(const fab *f, size_t i, const fab_series_slot *s)
{
    (void)f, (void)i;
    return (double)s->max;
}

static double rate(const fab *f, size_t i, const fab_series_slot *s)
{
    return (double)bits_per_second(f, i, s->a);
}

static double in_flight(const fab *f, size_t i, const fab_series_slot *s)
{
    (void)f, (void)i;
    return (double)mean(s->sum2, s->samples);
}

static const struct column {
    const char *name;
    value_of value;
    bool is_whole;
} columns[][3] = {
    {{"utilisation", utilisation, false}, {"paused", paused, false}, {NULL, NULL, false}},
    {{"mean_bytes", mean_queue, true}, {"max_bytes", max_queue, true}, {NULL, NULL, false}},
    {{"rate_bps", rate, true},
     {"window_bytes", mean_queue, true},
     {"in_flight_bytes", in_flight, true}},
};

static void put_column(orr_json_writer *j,
                       const fab *f,
                       const struct column *c,
                       const fab_series_watch *w)
{
    const size_t count = slot_count(fab_series_of(f));
    orr_json_put_array(j, c->name);
    for (size_t i = w->first; i <= w->last && i < count; i++) {
        const double v = c->value(f, i, &w->slots[i]);
        if (c->is_whole)
            orr_json_u64(j, (uint64_t)v);
        else
            orr_json_double(j, v);
    }
    orr_json_end_array(j);
}

static void put_watch(orr_json_writer *j, const fab *f, what kind, const fab_series_watch *w)
{
    char name[NAME_ROOM];
    orr_json_begin_object(j);
    if (kind == FLOW) {
        orr_json_put_fields(j, ORR_U("source", w->src), ORR_U("destination", w->dst),
                            ORR_U("source_port", w->src_port),
                            ORR_U("destination_port", w->dst_port), ORR_U("bytes", w->size));
    } else {
        name_port(f, w->id, name);
        orr_json_put_fields(j, ORR_T("name", name), ORR_U("bits_per_second", f->ports[w->id].rate));
    }
    orr_json_put_u64(j, "first_interval", w->first);
    for (int i = 0; i < 3 && columns[kind][i].name; i++)
        put_column(j, f, &columns[kind][i], w);
    orr_json_end_object(j);
}

static void put_list(orr_json_writer *j, orr_buf *b, const fab *f, what kind)
{
    static const char *const kinds[] = {"links", "queues", "flows"};
    const fab_series_watches *w =
        kind == FLOW ? &fab_series_of(f)->flows : &fab_series_of(f)->ports;
    ranked *order = rank(f, w, kind == FLOW);
    b->failed |= w->count && !order;
    orr_json_put_array(j, kinds[kind]);
    for (size_t i = 0; order && i < w->count; i++)
        if (is_wanted(f, kind, order[i].watch))
            put_watch(j, f, kind, order[i].watch);
    orr_json_end_array(j);
    orr_free(order);
}

static void series_write_json(const fab *f, orr_buf *b)
{
    const fab_series *s = fab_series_of(f);
    const uint64_t ps = 1000 / f->unit;
    orr_json_writer j;
    orr_json_writer_init(&j, b, NULL);
    orr_json_begin_object(&j);
    orr_json_put_fields(
        &j, ORR_T("format", "orrery-packet-series"), ORR_U("version", FORMAT_VERSION),
        ORR_U("sample_interval_ps", s->every * ps), ORR_U("interval_ps", slot_ticks(s) * ps));
    orr_json_put_fields(&j, ORR_U("intervals", slot_count(s)), ORR_U("end_ps", s->end * ps));
    for (int kind = LINK; kind <= FLOW; kind++)
        put_list(&j, b, f, (what)kind);
    orr_json_end_object(&j);
    orr_buf_byte(b, '\n');
}

void fab_series_write(const fab *f, orr_buf *b)
{
    const char *path = f->config.series_out;
    const size_t len = strlen(path);
    if (len > 5 && strcmp(path + len - 5, ".json") == 0)
        series_write_json(f, b);
    else
        series_write_csv(f, b);
}
