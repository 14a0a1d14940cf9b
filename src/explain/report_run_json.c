/* SPDX-License-Identifier: Apache-2.0 */
/* report_run_json.c - what came out of a run, for programs: one JSON object (docs/format/run.md), or one CSV row
 * a rank.
 *
 * Keys do not come and go, except "stall"; what is not known is null.  Units stand in the names of keys. */
#include "run_report.h"

#include "models/network/packet/packet_network.h"
#include "models/network/packet/packet_run.h"

#include <inttypes.h>

enum { FORMAT_VERSION = 1 };

typedef orr_json_writer writer;

static void put_maybe(writer *w, const char *key, bool is_known, uint64_t v)
{
    orr_json_key(w, key);
    if (is_known)
        orr_json_u64(w, v);
    else
        orr_json_null(w);
}

/* ---- the head ---- */

/* What a network of packets adds: a member "packets"; nothing of other networks. */
static void put_packets(const orr_sim *s, writer *w)
{
    orr_packet_figures g;
    if (!orr_sim_packets(s, &g))
        return;
    orr_json_key(w, "packets");
    orr_json_begin_object(w);
    orr__packet_put_figures(w, &g, orr__net_packet_fabric(s->net));
    orr_json_end_object(w);
}

static void put_head(writer *w, const orr_sim *s)
{
    orr__put_text(w, "format", "orrery-run");
    orr__put_u64(w, "version", FORMAT_VERSION);
    orr__put_provenance(s, w);
    orr__put_text(w, "status", orr__run_status(s));
    orr__put_u64(w, "simulated_ns", orr__watch_end_of_run(s));
    orr__put_u64(w, "ranks", s->npu_count);
    orr__put_u64(w, "ranks_distinct", orr_set_class_count(s->set));
    orr__put_u64(w, "finished_ranks", s->finished);
    orr__put_text(w, "network", s->net_ops->name);
    orr__put_u64(w, "messages", s->messages);
    orr__put_u64(w, "events", orr_sim_events(s));
    put_packets(s, w);
}

static bool put_spreads(writer *w, const orr_sim *s)
{
    orr_json_key(w, "over_ranks");
    orr_json_begin_object(w);
    for (unsigned f = 0; f < ORR__FIGURES; f++) {
        orr__spread v;
        if (!orr__spread_of(s, (orr__figure)f, &v))
            return false;
        orr_json_key(w, orr__figure_keys[f]);
        orr_json_begin_object(w);
        orr__put_u64(w, "ranks", v.ranks);
        put_maybe(w, "min", v.ranks, v.least);
        put_maybe(w, "median", v.ranks, v.median);
        put_maybe(w, "max", v.ranks, v.most);
        orr_json_key(w, "mean");
        if (v.ranks)
            orr_json_double(w, v.mean);
        else
            orr_json_null(w);
        orr_json_end_object(w);
    }
    orr_json_end_object(w);
    return true;
}

/* ---- communication ---- */

static void put_times(writer *w, const orr__tally *t)
{
    orr__put_u64(w, "count", t->count);
    orr__put_u64(w, "bytes_total", t->bytes);
    orr__put_u64(w, "duration_ns_total", t->time);
    orr__put_u64(w, "duration_ns_max", t->longest);
}

static bool put_collectives(writer *w, const orr_sim *s)
{
    uint32_t count;
    uint32_t *rows = orr__collectives_by(s, false, &count);
    uint32_t *ranks = orr_alloc(s->watch->tally_count, sizeof *ranks);
    const bool ok = rows && ranks && orr__watch_tally_ranks(s, ranks);
    orr_json_key(w, "collectives");
    orr_json_begin_array(w);
    for (uint32_t i = 0; ok && i < count; i++) {
        const orr__tally *t = &s->watch->tallies[rows[i]];
        orr_json_begin_object(w);
        orr__put_text(w, "type", orr_collective_name(t->collective));
        orr__put_u64(w, "type_number", t->collective);
        put_maybe(w, "group_ranks", t->group_ranks, t->group_ranks);
        orr__put_u64(w, "groups", t->groups);
        orr_json_key(w, "group");
        if (t->groups == 1 && t->group.len)
            orr_json_str(w, t->group);
        else
            orr_json_null(w);
        orr__put_u64(w, "size_bytes", t->size);
        orr__put_u64(w, "ranks", ranks[rows[i]]);
        put_times(w, t);
        orr__put_u64(w, "exposed_ns_total", t->exposed);
        orr_json_end_object(w);
    }
    orr_json_end_array(w);
    orr_free(rows);
    orr_free(ranks);
    return ok;
}

static void put_messages(writer *w, const orr_sim *s, const char *key, uint8_t type)
{
    const orr__tally none = {0}, *t = orr__messages_of(s, type);
    orr_json_key(w, key);
    orr_json_begin_object(w);
    put_times(w, t ? t : &none);
    orr_json_end_object(w);
}

static void put_speed(writer *w, const char *key, const double *v)
{
    orr_json_key(w, key);
    if (v)
        orr_json_double(w, *v);
    else
        orr_json_null(w);
}

static void put_dimensions(writer *w, const orr_sim *s)
{
    static const char *const shapes[] = {"Ring", "Switch", "FullyConnected"};
    const orr_net_config *c = &s->net_config;
    orr_json_key(w, "dimensions");
    orr_json_begin_array(w);
    for (uint32_t k = 0; k < s->dims; k++) {
        orr_json_begin_object(w);
        orr__put_u64(w, "dimension", k);
        orr__put_text(w, "shape", c->topology ? NULL : shapes[c->shape[k]]);
        orr__put_u64(w, "npus", c->npus[k]);
        put_speed(w, "bandwidth_GiBps", c->topology ? NULL : &c->bandwidth[k]);
        put_speed(w, "latency_ns", c->topology ? NULL : &c->latency_ns[k]);
        orr__put_u64(w, "messages", s->watch->traffic[k].messages);
        orr__put_u64(w, "bytes", s->watch->traffic[k].bytes);
        orr_json_end_object(w);
    }
    orr_json_end_array(w);
}

/* ---- ranks ---- */

static void put_rank(writer *w, const orr_sim *s, uint32_t rank)
{
    const orr_sim_rank_result *r = orr_sim_rank(s, rank);
    orr_json_begin_object(w);
    orr__put_u64(w, "rank", rank);
    for (unsigned f = 0; f < ORR__FIGURES; f++) {
        const uint64_t v = orr__figure_of(s, rank, (orr__figure)f);
        put_maybe(w, orr__figure_keys[f], v != ORR_NEVER, v);
    }
    put_maybe(w, "peak_memory_bytes", s->system.track_local_mem, r->peak_memory);
    orr_json_end_object(w);
}

static void put_ranks(writer *w, const orr_sim *s)
{
    orr_json_key(w, "finish_order");
    orr_json_begin_array(w);
    for (uint32_t i = 0; i < s->finished; i++)
        orr_json_u64(w, s->finish_order[i]);
    orr_json_end_array(w);
    orr_json_key(w, "per_rank");
    orr_json_begin_array(w);
    for (uint32_t r = 0; r < s->npu_count; r++)
        put_rank(w, s, r);
    orr_json_end_array(w);
}

static bool put_all(writer *w, const orr_sim *s)
{
    orr_json_begin_object(w);
    put_head(w, s);
    if (!put_spreads(w, s) || !put_collectives(w, s))
        return false;
    orr_json_key(w, "point_to_point");
    orr_json_begin_object(w);
    put_messages(w, s, "send", ORR_NODE_COMM_SEND);
    put_messages(w, s, "receive", ORR_NODE_COMM_RECV);
    orr_json_end_object(w);
    put_dimensions(w, s);
    if (!orr__put_links(s, w))
        return false;
    orr__put_path(s, w);
    orr__stall_write_json(s, w);
    put_ranks(w, s);
    orr_json_end_object(w);
    orr_buf_byte(w->to, '\n');
    return true;
}

static orr_code refuse_compat(orr_error *err)
{
    return orr_fail(err, ORR_EUSAGE, NULL,
                    "a simulation with is_compat keeps no figures for this report");
}

orr_code orr_sim_write_json(const orr_sim *s, const char *path, orr_error *err)
{
    orr_buf b = {0};
    writer w;
    const orr_json_style style = {.indent = 2};
    if (!s->watch)
        return refuse_compat(err);
    orr_json_writer_init(&w, &b, &style);
    const orr_code code = put_all(&w, s) ? orr__save_report(&b, path, err) : orr_no_memory(err);
    orr_buf_fini(&b);
    return code;
}

/* ---- CSV ---- */

static bool print_csv_head(const orr_sim *s, orr_buf *b)
{
    orr__provenance_line lines[ORR__PROVENANCE_LINES];
    orr_arena *a = orr_arena_create();
    size_t count = 0;
    const bool ok = a && orr__provenance_lines(s, a, lines, &count);
    orr_buf_print(b, "# format: orrery-run-ranks %d\n", FORMAT_VERSION);
    for (size_t i = 0; ok && i < count; i++)
        orr_buf_print(b, "# %s: %s\n", lines[i].key, lines[i].value);
    orr_buf_text(b, "rank");
    for (unsigned f = 0; f < ORR__FIGURES; f++)
        orr_buf_print(b, ",%s", orr__figure_keys[f]);
    orr_buf_text(b, ",peak_memory_bytes\n");
    orr_arena_destroy(a);
    return ok;
}

orr_code orr_sim_write_csv(const orr_sim *s, const char *path, orr_error *err)
{
    orr_buf b = {0};
    if (!s->watch)
        return refuse_compat(err);
    const bool ok = print_csv_head(s, &b);
    for (uint32_t r = 0; ok && r < s->npu_count; r++) {
        orr_buf_u64(&b, r);
        for (unsigned f = 0; f < ORR__FIGURES; f++) {
            const uint64_t v = orr__figure_of(s, r, (orr__figure)f);
            orr_buf_byte(&b, ',');
            if (v != ORR_NEVER)
                orr_buf_u64(&b, v);
        }
        orr_buf_byte(&b, ',');
        if (s->system.track_local_mem)
            orr_buf_u64(&b, orr_sim_rank(s, r)->peak_memory);
        orr_buf_byte(&b, '\n');
    }
    const orr_code code = ok ? orr__save_report(&b, path, err) : orr_no_memory(err);
    orr_buf_fini(&b);
    return code;
}
