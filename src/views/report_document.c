/* SPDX-License-Identifier: Apache-2.0 */
/* report_document.c - an evaluated run as JSON (docs/format/report.md).  Unknown values are
 * null. */
#include <orrery/lab/units.h>

#include "base/formats/json.h"
#include "base/memory/sort.h"
#include "info_impl.h"
#include "report_impl.h"
#include "views_impl.h"

#include <math.h>
#include <stdlib.h>

/* Links, queues, pauses and flows of a packet network, for the page
 * (docs/format/report.md). */

typedef orr_json_writer writer;

/* ---- pieces ---- */

static void put_ns(writer *w, const char *key, uint64_t ps)
{
    orr_json_key(w, key);
    if (ps % 1000 == 0)
        orr_json_u64(w, ps / 1000);
    else
        orr_json_double(w, (double)ps / 1000);
}

/* 0: null. */
static void put_known(writer *w, const char *key, double value)
{
    orr_json_put_known_double(w, key, value > 0, value);
}

/* Four decimals are more than a colour can show. */
static void put_values(writer *w, const char *key, const double *values, size_t count)
{
    orr_json_key(w, key);
    if (!values) {
        orr_json_null(w);
        return;
    }
    orr_json_begin_array(w);
    for (size_t i = 0; i < count; i++) {
        const double v = round(values[i] * 1e4) / 1e4;
        if (v == floor(v) && v < 1e15)
            orr_json_u64(w, (uint64_t)v);
        else
            orr_json_double(w, v);
    }
    orr_json_end_array(w);
}

/* ---- figures ---- */

static void put_figures(writer *w, const orr_packet_figures *g)
{
    orr_json_key(w, "figures");
    orr_json_put_row(
        w, ORR_U("hosts", g->hosts), ORR_U("switches", g->switches), ORR_U("links", g->links),
        ORR_U("flows", g->flows), ORR_U("flows_done", g->flows_done),
        ORR_U("data_packets", g->data_packets), ORR_U("data_bytes", g->data_bytes),
        ORR_U("retransmitted_bytes", g->retransmitted_bytes), ORR_U("acks", g->acks),
        ORR_U("nacks", g->nacks), ORR_U("timeouts", g->timeouts), ORR_U("ecn_marked", g->marked),
        ORR_U("pauses", g->pauses), ORR_U("paused_ports", g->paused_ports),
        ORR_U("dropped", g->dropped), ORR_U("trimmed", g->trimmed), ORR_U("lost", g->lost));
}

/* ---- links ---- */

static void put_link(const orr_fabric_view *v, const orr_fabric_link *l, writer *w)
{
    const double end = (double)v->end_ps;
    orr_json_begin_object(w);
    orr_json_put_fields(w, ORR_T("name", l->name),
                        ORR_D("bandwidth_Bps", (double)l->bits_per_second / 8),
                        ORR_U("bytes", l->bytes));
    put_ns(w, "busy_ns", l->busy_ps);
    orr_json_put_fields(w, ORR_D("utilisation", end > 0 ? fmin(1, (double)l->busy_ps / end) : 0),
                        ORR_U("pauses", l->pauses));
    put_ns(w, "paused_ns", l->paused_ps);
    orr_json_put_fields(w, ORR_D("paused_share", end > 0 ? fmin(1, (double)l->paused_ps / end) : 0),
                        ORR_U("longest_queue_bytes", l->longest_queue));
    put_values(w, "values", l->values, v->columns);
    orr_json_end_object(w);
}

static void put_links(const orr_fabric_view *v,
                      const char *key,
                      const orr_fabric_link *list,
                      size_t count,
                      size_t left_out,
                      writer *w)
{
    orr_json_put_object(w, key);
    orr_json_put_array(w, "rows");
    for (size_t i = 0; i < count; i++)
        put_link(v, &list[i], w);
    orr_json_end_array(w);
    orr_json_put_u64(w, "left_out", left_out);
    if (list == v->links)
        put_values(w, "rest", v->rest_use, v->columns);
    orr_json_end_object(w);
}

/* ---- flows ---- */

static void put_class(const orr_fabric_flows *c, writer *w)
{
    orr_json_begin_object(w);
    orr_json_put_u64(w, "above_bytes", c->above);
    put_known(w, "up_to_bytes", (double)c->up_to);
    orr_json_put_fields(w, ORR_U("flows", c->flows), ORR_U("bytes", c->bytes));
    orr_json_put_array(w, "fct_ns");
    for (unsigned i = 0; i < ORR_FABRIC_TIMES; i++)
        orr_json_double(w, (double)c->fct_ps[i] / 1000);
    orr_json_end_array(w);
    put_ns(w, "fct_p99_ns", c->fct_p99_ps);
    put_known(w, "slowdown_p50", c->slowdown_p50);
    put_known(w, "slowdown_p95", c->slowdown_p95);
    put_known(w, "slowdown_p99", c->slowdown_p99);
    put_known(w, "slowdown_max", c->slowdown_max);
    orr_json_end_object(w);
}

static void put_flows(const orr_fabric_view *v, writer *w)
{
    orr_json_key(w, "flow_times");
    if (!v->all.flows) {
        orr_json_null(w);
        return;
    }
    orr_json_begin_object(w);
    orr_json_key(w, "all");
    put_class(&v->all, w);
    orr_json_put_array(w, "by_size");
    for (unsigned i = 0; i < ORR_FABRIC_CLASSES; i++)
        if (v->classes[i].flows)
            put_class(&v->classes[i], w);
    orr_json_end_array(w);
    orr_json_end_object(w);
}

/* ---- everything ---- */

static void put_fabric(const orr__study *s, writer *w)
{
    const orr_fabric_view *v = s->run->fabric;
    orr_json_key(w, "fabric");
    if (!v) {
        orr_json_null(w);
        return;
    }
    orr_json_begin_object(w);
    put_figures(w, &v->figures);
    put_ns(w, "end_ns", v->end_ps);
    put_known(w, "column_ns", (double)v->column_ps / 1000);
    orr_json_put_u64(w, "columns", v->columns);
    put_links(v, "links", v->links, v->link_count, v->links_left_out, w);
    put_links(v, "queues", v->queues, v->queue_count, v->queues_left_out, w);
    put_links(v, "pauses", v->pauses, v->pause_count, v->pauses_left_out, w);
    put_values(w, "paused_ports", v->paused_ports, v->columns);
    put_flows(v, w);
    orr_json_put_array(w, "notes");
    for (size_t i = 0; i < v->note_count; i++)
        orr_json_text(w, v->notes[i]);
    orr_json_end_array(w);
    orr_json_end_object(w);
}

static void put_lost(const orr_packet_figures *g, orr_buf *b)
{
    char bytes[ORR_UNIT_ROOM], count[ORR_UNIT_ROOM];
    if (g->dropped + g->trimmed + g->lost)
        orr_buf_print(b, " %s packets were dropped, trimmed or lost, and %s were retransmitted.",
                      orr_count_text(g->dropped + g->trimmed + g->lost, count),
                      orr_bytes_text(g->retransmitted_bytes, bytes));
    else if (g->retransmitted_bytes)
        orr_buf_print(b, " No packet was lost, but %s were retransmitted.",
                      orr_bytes_text(g->retransmitted_bytes, bytes));
    if (g->pauses)
        orr_buf_print(b, " Ports were paused %s time%s.", orr_count_text(g->pauses, count),
                      g->pauses == 1 ? "" : "s");
}

/* The sentence about a run of flows. */
static void put_fabric_sentence(const orr__study *s, orr_buf *b)
{
    const orr_fabric_view *v = s->run->fabric;
    char use[ORR_UNIT_ROOM], queue[ORR_UNIT_ROOM];
    if (v->link_count) {
        const orr_fabric_link *l = &v->links[0];
        const uint64_t busy = l->busy_ps < v->end_ps ? l->busy_ps : v->end_ps;
        orr_buf_print(b, "The busiest link, %s, was in use %s of the time", l->name,
                      orr_percent_text(busy, v->end_ps, use));
        if (v->queue_count)
            orr_buf_print(b, "; the longest queue, at %s, held %s", v->queues[0].name,
                          orr_bytes_text(v->queues[0].longest_queue, queue));
        orr_buf_text(b, ".");
    }
    if (v->all.slowdown_p99 > 0)
        orr_buf_print(b,
                      " Half of the flows took up to %.2f times as long as alone, the slowest in a "
                      "hundred %.2f times or more.",
                      v->all.slowdown_p50, v->all.slowdown_p99);
    put_lost(&v->figures, b);
}

/* ======== The bottleneck in one sentence.
 *
 * What costs a rank most of its time on average, besides useful work: a run that computes four
 * fifths of the time has little to gain elsewhere, which the sentence tells. */

typedef struct time_shares {
    double compute, exposed, memory, host, unused;
} time_shares;

static time_shares shares_of(const orr__study *s)
{
    time_shares sum = {0};
    const double all = (double)orr__total(s) * s->all_ranks;
    for (uint32_t k = 0; k < s->rank_count && all > 0; k++) {
        const orr__rank_times *r = &s->ranks[k];
        sum.compute += (double)r->compute * r->alike / all;
        sum.exposed += (double)r->exposed * r->alike / all;
        sum.memory += (double)r->memory * r->alike / all;
        sum.host += (double)r->host * r->alike / all;
        sum.unused += (double)orr__unused(r) * r->alike / all;
    }
    return sum;
}

static void put_percent(orr_buf *b, double share)
{
    char text[ORR_UNIT_ROOM];
    orr_buf_text(b, orr_percent_text((uint64_t)(share * 1e6 + 0.5), 1000000, text));
}

/* The collectives with the largest part of what is exposed; messages may have a larger one. */
static void put_collective(const orr__study *s, double exposed, orr_buf *b)
{
    char size[ORR_UNIT_ROOM];
    if (s->row_count == 0)
        return;
    const orr__collective_row *r = &s->rows[0];
    const double all = (double)orr__total(s) * s->all_ranks * exposed;
    const double share = (double)(r->time - r->overlapped) / all;
    if (!(share > 0.01))
        return;
    orr_buf_text(b, ", ");
    if (share > 0.5)
        orr_buf_text(b, "most");
    else
        put_percent(b, share);
    orr_buf_print(b, " of it in %s", orr__collective_text(r->collective));
    if (r->size)
        orr_buf_print(b, " of %s", orr_bytes_text(r->size, size));
    if (r->members)
        orr_buf_print(b, " among %u ranks", r->members);
}

/* The stage that waits longest. */
static void put_stage(const orr__study *s, orr_buf *b)
{
    uint32_t worst = 0;
    for (uint32_t k = 1; k < s->stage_count; k++)
        if (s->stages[k].unused / s->stages[k].count >
            s->stages[worst].unused / s->stages[worst].count)
            worst = k;
    orr_buf_print(b, "; stage %u (ranks %s) waits longest", worst, s->stages[worst].ranks);
}

static void put_best_change(const orr__study *s, orr_buf *b)
{
    const orr_report_what_if *best = NULL;
    const double now = (double)orr__total(s) / 1000;
    for (size_t i = 0; i < s->run->what_if_count; i++)
        if (!best || s->run->what_ifs[i].time_ns < best->time_ns)
            best = &s->run->what_ifs[i];
    const double gain = best && now > 0 ? 1 - (double)best->time_ns / now : 0;
    if (gain < 0.01) {
        orr_buf_text(b, best ? " None of the changes tried helps by 1 %." : "");
        return;
    }
    orr_buf_print(b, " Of the changes tried, %s helps most: ", best->change);
    put_percent(b, gain);
    orr_buf_text(b, " less time.");
}

/* What costs most time besides compute.  A run that computes most of the time is compute-bound, so
 * anything else is a loss, not the bottleneck. */
static void put_bottleneck(const orr__study *s, const time_shares *v, orr_buf *b)
{
    const double others = v->memory > v->host ? v->memory : v->host;
    const bool waits = v->unused > v->exposed && v->unused > others;
    const bool talks = !waits && v->exposed >= others;
    const double loss = waits ? v->unused : talks ? v->exposed : others;
    if (loss <= 0.1) {
        orr_buf_text(b, ": it is limited by compute");
        return;
    }
    orr_buf_text(b, v->compute > 0.5 ? "; the largest loss is " : "; the bottleneck is ");
    orr_buf_text(b, waits && s->stage_count ? "the pipeline: ranks wait for other stages "
                    : waits                 ? "waiting: ranks have nothing to do "
                    : talks                 ? "communication that no computation hides: "
                    : v->memory > v->host   ? "memory transfers: "
                                            : "work on the host: ");
    put_percent(b, loss);
    orr_buf_text(b, " of the time");
    if (waits && s->stage_count)
        put_stage(s, b);
    else if (talks)
        put_collective(s, v->exposed, b);
}

/* The sentence; "" if there is nothing to tell. */
static void put_sentence(const orr__study *s, orr_buf *b)
{
    if (s->run->stall) {
        orr_buf_print(b, "The run deadlocked: %s.", s->run->stall);
        return;
    }
    if (s->run->is_flows && s->run->fabric) {
        put_fabric_sentence(s, b);
        return;
    }
    if (s->rank_count == 0 && orr__total(s) > 0) {
        orr_buf_text(b, "Where its time goes is not known: there is no timeline.");
        return;
    }
    if (s->rank_count == 0 || orr__total(s) <= 0) {
        orr_buf_text(b, "Nothing happened: no time passed in this run.");
        return;
    }
    const time_shares v = shares_of(s);
    orr_buf_text(b, "A rank computes ");
    put_percent(b, v.compute);
    orr_buf_text(b, " of the time");
    put_bottleneck(s, &v, b);
    orr_buf_byte(b, '.');
    put_best_change(s, b);
}

/* ======== Two or more runs side by side: how long a rank spends on what.
 *
 * Names of operators are those of info, without the numbers of layers or calls.  Collectives are
 * grouped by type and messages by direction, because kernels of a measured run and nodes of a trace
 * never have the same names.  Rows are ordered by the largest difference from the first run. */

enum { MOST_ROWS = 200 };

/* ---- gathering ---- */

static orr_str name_of(const orr__study *s, const orr_timespan *span, char room[ORR__NAME_ROOM])
{
    switch (span->kind) {
    case ORR_SPAN_COLLECTIVE:
        if (span->collective)
            return orr_str_of(orr__collective_text(span->collective));
        break;
    case ORR_SPAN_SEND:
        return orr_str_of("send");
    case ORR_SPAN_RECEIVE:
        return orr_str_of("receive");
    default:
        break;
    }
    return orr__operator_group(orr_timeline_text(s->t, span->name), room);
}

static bool add_sum(orr__sums *o, uint8_t kind, orr_str name, double ns)
{
    char key[ORR__NAME_ROOM + 1];
    const size_t len = name.len < ORR__NAME_ROOM ? name.len : ORR__NAME_ROOM;
    uint32_t number;
    key[0] = (char)('0' + kind);
    if (len)
        memcpy(key + 1, name.ptr, len);
    if (!orr_intern_add(o->names, (orr_str){key, len + 1}, &number))
        return false;
    const size_t before = o->room;
    if (!orr_grow(&o->ns, &o->room, (size_t)number + 1))
        return false;
    if (o->room > before)
        memset(o->ns + before, 0, (o->room - before) * sizeof *o->ns);
    o->ns[number] += ns;
    return true;
}

/* Sums by text and kind first: names repeat, and each is examined once. */
typedef struct summing {
    orr__study *s;
    orr_map *seen;
    orr__ps_sum *sums;
    uint32_t *example; /* a span of each */
    size_t room, example_room;
    uint32_t count;
    uint32_t *around; /* open host spans on this track, innermost last */
    size_t depth, around_room;
    bool takes_others; /* as work */
    uint32_t alike;    /* ranks represented by this track's */
} summing;

static bool row_of(summing *m, uint32_t i, uint32_t *out)
{
    const orr_timespan *span = &m->s->p->spans[i];
    const uint64_t key = (uint64_t)span->name << 16 | (uint64_t)span->kind << 8 | span->collective;
    *out = orr_map_find(m->seen, key, ORR__NO_PLACE);
    if (*out != ORR__NO_PLACE)
        return true;
    *out = m->count++;
    if (!orr_map_put(m->seen, key, *out, NULL) || !orr_grow(&m->sums, &m->room, m->count) ||
        !orr_grow(&m->example, &m->example_room, m->count))
        return false;
    m->sums[*out] = 0;
    m->example[*out] = i;
    return true;
}

static bool is_host(const orr_timespan *span)
{
    return span->kind == ORR_SPAN_HOST || span->kind == ORR_SPAN_OTHER;
}

/* A nested host call is its own time: subtracted from the enclosing one. */
static bool take_off(summing *m, uint32_t i)
{
    const orr_timespan *spans = m->s->p->spans, *span = &spans[i];
    uint32_t row;
    while (m->depth && spans[m->around[m->depth - 1]].end <= span->start)
        m->depth--;
    if (m->depth && span->end <= spans[m->around[m->depth - 1]].end) {
        if (!row_of(m, m->around[m->depth - 1], &row))
            return false;
        m->sums[row] -= (orr__ps_sum)(span->end - span->start) * m->alike;
    }
    if (!orr_grow(&m->around, &m->around_room, m->depth + 1))
        return false;
    m->around[m->depth++] = i;
    return true;
}

static bool sum_track(summing *m, uint32_t track)
{
    const orr_timeline_parts *p = m->s->p;
    m->depth = 0;
    m->alike = m->s->ranks[m->s->place_of_track[track]].alike;
    for (uint32_t k = p->first[track]; k < p->first[track + 1]; k++) {
        const uint32_t i = p->order[k];
        const orr_timespan *span = &p->spans[i];
        uint32_t row;
        if (span->kind == ORR_SPAN_PHASE || (span->kind == ORR_SPAN_OTHER && !m->takes_others))
            continue;
        if (!row_of(m, i, &row) || (is_host(span) && !take_off(m, i)))
            return false;
        m->sums[row] += (orr__ps_sum)(span->end - m->s->since[i]) * m->alike;
    }
    return true;
}

static bool add_spans(orr__study *s, orr__sums *out)
{
    summing m = {.s = s, .seen = orr_map_create(0), .takes_others = orr__has_others_only(s->p)};
    bool ok = m.seen != NULL;
    for (uint32_t track = 0; ok && track < s->p->track_count; track++)
        if (s->place_of_track[track] != ORR__NO_PLACE)
            ok = sum_track(&m, track);
    for (uint32_t k = 0; ok && k < m.count; k++) {
        char name[ORR__NAME_ROOM];
        const orr_timespan *span = &s->p->spans[m.example[k]];
        const double ns = (double)m.sums[k] / 1000 / s->all_ranks;
        ok = add_sum(out, span->kind, name_of(s, span, name), ns) &&
             add_sum(out, span->kind, (orr_str){"", 0}, ns);
    }
    orr_map_destroy(m.seen);
    orr_free(m.sums);
    orr_free(m.example);
    orr_free(m.around);
    return ok;
}

orr_code orr__study_sums(orr__study *s, orr__sums *out)
{
    out->names = orr_intern_create();
    return out->names && add_spans(s, out) ? ORR_OK : orr_no_memory(s->err);
}

void orr__sums_fini(orr__sums *s)
{
    orr_intern_destroy(s->names);
    orr_free(s->ns);
    *s = (orr__sums){0};
}

/* ---- comparing ---- */

typedef struct row {
    orr_str key;
    double difference;
} row;

static double value_of(const orr__sums *s, orr_str key)
{
    uint32_t number;
    return orr_intern_find(s->names, key, &number) ? s->ns[number] : 0;
}

static int compare_rows(const void *a, const void *b)
{
    const row *x = a, *y = b;
    if ((x->key.len == 1) != (y->key.len == 1))
        return x->key.len == 1 ? -1 : 1; /* whole kinds first */
    if (x->difference != y->difference)
        return x->difference > y->difference ? -1 : 1;
    const size_t n = x->key.len < y->key.len ? x->key.len : y->key.len;
    const int order = memcmp(x->key.ptr, y->key.ptr, n);
    return order ? order : x->key.len < y->key.len ? -1 : x->key.len > y->key.len;
}

static void put_row(const row *r, const orr__sums *sums, uint32_t count, orr_json_writer *w)
{
    const char *kind = orr_span_kind_name((orr_span_kind)(r->key.ptr[0] - '0'));
    const bool is_kind = r->key.len == 1;
    orr_json_begin_object(w);
    orr_json_key(w, "name");
    if (is_kind)
        orr_json_text(w, kind);
    else
        orr_json_str(w, (orr_str){r->key.ptr + 1, r->key.len - 1});
    orr_json_put_fields(w, ORR_T("kind", kind), ORR_B("is_kind", is_kind));
    orr_json_put_array(w, "ns");
    for (uint32_t i = 0; i < count; i++)
        orr_json_double(w, value_of(&sums[i], r->key));
    orr_json_end_array(w);
    orr_json_end_object(w);
}

static size_t list_rows(const orr__sums *sums, uint32_t count, orr_intern *all, row **rows)
{
    size_t n = 0, room = 0;
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t k = 0; k < orr_intern_count(sums[i].names); k++) {
            uint32_t number;
            if (!orr_intern_add(all, orr_intern_get(sums[i].names, k), &number))
                return SIZE_MAX;
        }
    for (; n < orr_intern_count(all); n++) {
        if (!orr_grow(rows, &room, n + 1))
            return SIZE_MAX;
        (*rows)[n] = (row){.key = orr_intern_get(all, (uint32_t)n)};
        for (uint32_t i = 1; i < count; i++) {
            const double d =
                fabs(value_of(&sums[i], (*rows)[n].key) - value_of(&sums[0], (*rows)[n].key));
            if (d > (*rows)[n].difference)
                (*rows)[n].difference = d;
        }
    }
    return n;
}

void orr__put_comparison(const orr__sums *sums, uint32_t count, orr_json_writer *w)
{
    row *rows = NULL;
    orr_intern *all = orr_intern_create();
    const size_t n = all ? list_rows(sums, count, all, &rows) : SIZE_MAX;
    orr_json_key(w, "comparison");
    if (n == SIZE_MAX) {
        w->to->failed = true;
        orr_json_null(w);
    } else {
        if (n)
            orr_sort(rows, n, sizeof *rows, compare_rows);
        orr_json_begin_object(w);
        orr_json_put_array(w, "rows");
        for (size_t i = 0; i < n && i < MOST_ROWS; i++)
            put_row(&rows[i], sums, count, w);
        orr_json_end_array(w);
        orr_json_put_u64(w, "rows_left_out", n > MOST_ROWS ? n - MOST_ROWS : 0);
        orr_json_end_object(w);
    }
    orr_free(rows);
    orr_intern_destroy(all);
}

enum { MOST_STEPS = 1000 };

/* ---- pieces ---- */

/* 0: null. */
static void put_whole(writer *w, const char *key, uint64_t v)
{
    orr_json_put_known(w, key, v, v);
}

/* Not a number: null. */
static void put_real(writer *w, const char *key, double v)
{
    orr_json_put_known_double(w, key, v - v == 0, v);
}

static void put_time(writer *w, orr_ps t)
{
    if (t % 1000 == 0)
        orr_json_i64(w, t / 1000);
    else
        orr_json_double(w, (double)t / 1000);
}

static void put_ps(writer *w, const char *key, orr_ps t)
{
    orr_json_key(w, key);
    put_time(w, t);
}

static double known(double v)
{
    return v > 0 ? v : (double)NAN;
}

/* ---- headline ---- */

static double mean_exposed(const orr__study *s)
{
    double sum = 0;
    for (uint32_t k = 0; k < s->rank_count; k++)
        sum += (double)s->ranks[k].exposed * s->ranks[k].alike;
    return s->all_ranks ? sum / s->all_ranks / 1000 : (double)NAN;
}

static uint32_t ranks_of(const orr__study *s)
{
    return s->run->ranks ? s->run->ranks : s->all_ranks;
}

static void put_serving(const orr_report_serving *v, writer *w)
{
    if (!v)
        return;
    orr_json_put_u64(w, "requests", v->requests);
    put_real(w, "first_token_ns", known(v->first_token_ns));
    put_real(w, "first_token_max_ns", known(v->first_token_max_ns));
    put_real(w, "next_token_ns", known(v->next_token_ns));
}

static void put_headline(const orr__study *s, writer *w)
{
    const orr_report_run *r = s->run;
    const double whole = (double)orr__total(s) / 1e12, exposed = mean_exposed(s);
    const double seconds = r->step_ps > 0 ? (double)r->step_ps / 1e12 : whole;
    const bool is_whole = seconds > 0 && !r->stall;
    orr_buf sentence = {0};
    put_sentence(s, &sentence);
    orr_json_put_object(w, "headline");
    put_ps(w, "time_ns", orr__total(s));
    if (r->is_flows)
        put_whole(w, "ranks", 0);
    else
        orr_json_put_u64(w, "ranks", ranks_of(s));
    if (r->ranks_simulated && r->ranks_simulated < ranks_of(s))
        orr_json_put_u64(w, "ranks_simulated", r->ranks_simulated);
    const double rate = r->serving ? r->serving->tokens_per_s : r->tokens / seconds;
    put_real(w, "tokens_per_s", is_whole ? known(rate) : (double)NAN);
    put_real(w, "time_low_ns", is_whole ? known(r->low_ns) : (double)NAN);
    put_real(w, "time_high_ns", is_whole ? known(r->high_ns) : (double)NAN);
    const uint32_t devices = r->devices ? r->devices : ranks_of(s);
    const double per_device = is_whole ? 1 / (seconds * devices) : (double)NAN;
    put_real(w, "tokens_per_s_per_device", is_whole ? known(rate / devices) : (double)NAN);
    put_serving(r->serving, w);
    put_real(w, "tflops_per_device", known(r->flops * per_device / 1e12));
    put_real(w, "peak_tflops", known(r->peak_flops / 1e12));
    orr_json_put_text(w, "peak_of", r->peak_of);
    put_real(w, "mfu",
             is_whole ? known(r->flops / (seconds * r->peak_flops * devices)) : (double)NAN);
    put_real(w, "exposed_comm_ns", exposed);
    put_real(w, "exposed_comm_share", exposed / (whole * 1e9));
    orr_json_put_u64(w, "events", r->events ? r->events : s->p->span_count);
    orr_json_key(w, "sentence");
    orr_json_str(w, (orr_str){(const char *)sentence.ptr, sentence.len});
    orr_json_end_object(w);
    w->to->failed |= sentence.failed;
    orr_buf_fini(&sentence);
}

/* ---- ranks ---- */

static void put_mean(writer *w, const char *key, orr__ps_sum sum, uint32_t count)
{
    orr_json_key(w, key);
    if (sum % count == 0)
        put_time(w, (orr_ps)(sum / count));
    else
        orr_json_double(w, (double)sum / count / 1000);
}

static void put_group(const orr__study *s, const orr__like_ranks *g, writer *w)
{
    orr_buf name = {0};
    orr_buf_print(&name, "%s %s", g->count > 1 ? "ranks" : "rank", g->ranks);
    if (g->stage != ORR__NO_STAGE)
        orr_buf_print(&name, " (stage %u)", g->stage);
    orr_json_begin_object(w);
    orr_json_key(w, "name");
    orr_json_str(w, (orr_str){(const char *)name.ptr, name.len});
    orr_json_put_fields(w, ORR_T("ranks", g->ranks), ORR_U("count", g->count));
    put_ps(w, "total_ns", orr__total(s));
    put_mean(w, "compute_ns", g->sum.compute, g->count);
    put_mean(w, "comm_exposed_ns", g->sum.exposed, g->count);
    put_mean(w, "comm_overlapped_ns", g->sum.overlapped, g->count);
    put_mean(w, "memory_ns", g->sum.memory, g->count);
    put_mean(w, "host_ns", g->sum.host, g->count);
    put_mean(w, "waiting_ns", g->sum.waiting, g->count);
    put_mean(w, "bubble_ns", g->sum.bubble, g->count);
    put_mean(w, "idle_ns", g->sum.idle, g->count);
    orr_json_end_object(w);
    w->to->failed |= name.failed;
    orr_buf_fini(&name);
}

static void put_breakdown(const orr__study *s, writer *w)
{
    orr_json_put_array(w, "breakdown");
    for (uint32_t k = 0; k < s->group_count; k++)
        put_group(s, &s->groups[k], w);
    orr_json_end_array(w);
}

/* ---- the timeline ---- */

static void put_rank(writer *w, uint32_t rank)
{
    orr_json_key(w, "rank");
    if (rank == ORR_NO_RANK)
        orr_json_null(w);
    else
        orr_json_u64(w, rank);
}

static void put_tracks(const orr__study *s, writer *w)
{
    const orr__events *e = &s->events;
    orr_json_put_array(w, "tracks");
    for (uint32_t k = 0; k < e->track_count; k++) {
        const orr_track *t = &s->p->tracks[e->tracks[k]];
        orr_json_begin_object(w);
        put_rank(w, t->rank);
        orr_json_key(w, "name");
        orr_json_str(w, orr_timeline_text(s->t, t->name));
        orr_json_end_object(w);
    }
    orr_json_end_array(w);
    orr_json_put_array(w, "counters");
    for (uint32_t k = 0; k < e->counter_count; k++) {
        const orr_counter *c = &s->p->counters[e->counters[k]];
        orr_json_begin_object(w);
        put_rank(w, c->rank);
        orr_json_key(w, "name");
        orr_json_str(w, orr_timeline_text(s->t, c->name));
        orr_json_key(w, "unit");
        orr_json_str(w, orr_timeline_text(s->t, c->unit));
        orr_json_end_object(w);
    }
    orr_json_end_array(w);
}

static void put_timeline(const orr__study *s, uint32_t number, writer *w)
{
    const orr__events *e = &s->events;
    orr_buf script = {0};
    orr_buf_print(&script, "events-%u", number);
    orr_json_put_object(w, "timeline");
    orr_json_key(w, "script");
    orr_json_str(w, (orr_str){(const char *)script.ptr, script.len});
    orr_json_put_u64(w, "tick_ps", (uint64_t)e->tick);
    put_ps(w, "start_ns", s->start);
    put_ps(w, "end_ns", s->end);
    orr_json_put_fields(w, ORR_U("spans", e->spans), ORR_U("left_out", e->left_out),
                        ORR_U("samples_left_out", e->samples_left_out),
                        ORR_U("ranks_left_out", e->ranks_left_out));
    orr_json_put_array(w, "texts");
    for (uint32_t k = 0; k < e->text_count; k++)
        orr_json_str(w, orr_timeline_text(s->t, e->texts[k]));
    orr_json_end_array(w);
    orr_json_put_array(w, "kinds");
    for (unsigned k = 0; k < ORR_SPAN_KINDS; k++)
        orr_json_text(w, orr_span_kind_name((orr_span_kind)k));
    orr_json_end_array(w);
    put_tracks(s, w);
    orr_json_end_object(w);
    w->to->failed |= script.failed;
    orr_buf_fini(&script);
}

/* ---- the critical path ---- */

typedef struct share {
    const char *what;
    uint64_t ns;
} share;

static int compare_shares(const void *a, const void *b)
{
    const share *x = a, *y = b;
    return x->ns != y->ns ? (x->ns > y->ns ? -1 : 1) : strcmp(x->what, y->what);
}

/* "ALL_REDUCE" as on the rest of the page: "all-reduce". */
static void put_what(writer *w, const char *what)
{
    orr_buf b = {0};
    for (const char *p = what; *p; p++)
        orr_buf_byte(&b, (uint8_t)(*p == '_' ? '-' : *p >= 'A' && *p <= 'Z' ? *p + 32 : *p));
    orr_json_str(w, (orr_str){(const char *)b.ptr, b.len});
    w->to->failed |= b.failed;
    orr_buf_fini(&b);
}

static void put_path_kinds(const orr__study *s, uint64_t total, writer *w)
{
    enum { KINDS = 64 }; /* there are about a dozen; a path with more shows these */
    share shares[KINDS];
    size_t count = 0;
    for (size_t i = 0; i < s->run->step_count; i++) {
        const orr_report_step *p = &s->run->steps[i];
        size_t k = 0;
        while (k < count && strcmp(shares[k].what, p->what) != 0)
            k++;
        if (k == KINDS)
            continue;
        if (k == count)
            shares[count++] = (share){p->what, 0};
        shares[k].ns += p->to_ns - p->from_ns;
    }
    orr_sort(shares, count, sizeof *shares, compare_shares);
    orr_json_put_array(w, "by_kind");
    for (size_t k = 0; k < count; k++) {
        orr_json_begin_object(w);
        orr_json_key(w, "kind");
        put_what(w, shares[k].what);
        orr_json_put_u64(w, "ns", shares[k].ns);
        put_real(w, "share", total ? (double)shares[k].ns / (double)total : (double)NAN);
        orr_json_end_object(w);
    }
    orr_json_end_array(w);
}

static void put_step(const orr__study *s, size_t i, writer *w)
{
    const orr_report_step *p = &s->run->steps[i];
    const uint32_t track = s->step_track ? s->step_track[i] : ORR__NO_PLACE;
    orr_json_begin_object(w);
    orr_json_put_fields(w, ORR_U("rank", p->rank), ORR_T("name", p->name),
                        ORR_T("kind", orr_span_kind_name((orr_span_kind)p->kind)));
    orr_json_key(w, "what");
    put_what(w, p->what);
    orr_json_put_fields(w, ORR_U("start_ns", p->from_ns), ORR_U("end_ns", p->to_ns),
                        ORR_T("why", p->why));
    orr_json_key(w, "track");
    if (track == ORR__NO_PLACE)
        orr_json_null(w);
    else
        orr_json_u64(w, track);
    orr_json_end_object(w);
}

static int compare_lengths(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x > y ? -1 : x < y;
}

/* The minimum length of a listed step, if there are too many; *equal of exactly that length may
 * be. */
static bool find_limit(const orr_report_run *r, uint64_t *limit, size_t *equal)
{
    uint64_t *lengths = orr_alloc(r->step_count, sizeof *lengths);
    size_t longer = 0;
    if (!lengths)
        return false;
    for (size_t i = 0; i < r->step_count; i++)
        lengths[i] = r->steps[i].to_ns - r->steps[i].from_ns;
    orr_sort(lengths, r->step_count, sizeof *lengths, compare_lengths);
    *limit = lengths[MOST_STEPS - 1];
    while (lengths[longer] > *limit)
        longer++;
    *equal = MOST_STEPS - longer;
    orr_free(lengths);
    return true;
}

static void put_steps(const orr__study *s, writer *w)
{
    const orr_report_run *r = s->run;
    uint64_t limit = 0;
    size_t equal = SIZE_MAX, listed = 0;
    if (r->step_count > MOST_STEPS && !find_limit(r, &limit, &equal))
        w->to->failed = true;
    orr_json_put_array(w, "steps");
    for (size_t i = 0; i < r->step_count; i++) {
        const uint64_t length = r->steps[i].to_ns - r->steps[i].from_ns;
        if (length < limit || (length == limit && equal == 0))
            continue;
        equal -= length == limit;
        put_step(s, i, w);
        listed++;
    }
    orr_json_end_array(w);
    orr_json_put_u64(w, "steps_left_out", r->step_count - listed);
}

static void put_path(const orr__study *s, writer *w)
{
    const orr_report_run *r = s->run;
    orr_json_key(w, "critical_path");
    if (r->step_count == 0) {
        orr_json_null(w);
        return;
    }
    const uint64_t total = r->steps[r->step_count - 1].to_ns - r->steps[0].from_ns;
    orr_json_begin_object(w);
    orr_json_put_u64(w, "total_ns", total);
    put_path_kinds(s, total, w);
    put_steps(s, w);
    orr_json_end_object(w);
}

/* ---- collectives ---- */

/* Its name, or the number of groups. */
static void put_groups(const orr__study *s, const orr__collective_row *r, writer *w)
{
    orr_buf b = {0};
    orr_json_key(w, "group");
    if (r->groups > 1) {
        orr_buf_print(&b, "%u groups", r->groups);
        orr_json_str(w, (orr_str){(const char *)b.ptr, b.len});
    } else if (r->group != ORR_NO_TEXT) {
        orr_json_str(w, orr_timeline_text(s->t, r->group));
    } else if (r->members && r->members == ranks_of(s)) {
        orr_json_text(w, "all ranks");
    } else {
        orr_json_null(w);
    }
    w->to->failed |= b.failed;
    orr_buf_fini(&b);
}

static void put_collective_row(const orr__study *s, const orr__collective_row *r, writer *w)
{
    const double ns = (double)r->time / (double)r->calls / 1000;
    double size, factor;
    const bool has_bus = orr__bandwidth_factors(r, &size, &factor);
    const double rate = ns > 0 && has_bus ? size / (ns / 1e9) : (double)NAN;
    orr_json_begin_object(w);
    orr_json_put_text(w, "type", orr__collective_text(r->collective));
    put_groups(s, r, w);
    orr_json_put_u64(w, "groups", r->groups);
    put_whole(w, "group_ranks", r->members);
    orr_json_put_u64(w, "taking_part", r->ranks);
    put_real(w, "count", (double)r->calls / r->ranks);
    put_whole(w, "size_bytes", r->size);
    put_real(w, "time_ns", ns);
    put_real(w, "total_ns", (double)r->time / r->ranks / 1000);
    put_real(w, "algorithm_Bps", rate);
    put_real(w, "bus_Bps", has_bus ? rate * factor : (double)NAN);
    put_real(w, "exposed_share",
             r->time ? 1 - (double)r->overlapped / (double)r->time : (double)NAN);
    orr_json_end_object(w);
}

static void put_collectives(const orr__study *s, writer *w)
{
    orr_json_put_array(w, "collectives");
    for (size_t k = 0; k < s->row_count; k++)
        put_collective_row(s, &s->rows[k], w);
    orr_json_end_array(w);
}

/* ---- the network ---- */

static void put_dimensions(const orr_report_run *r, writer *w)
{
    orr_json_put_array(w, "dimensions");
    for (size_t k = 0; k < r->dimension_count; k++) {
        const orr_report_dimension *d = &r->dimensions[k];
        orr_json_begin_object(w);
        orr_json_put_fields(w, ORR_T("name", d->name), ORR_U("size", d->size));
        put_real(w, "bandwidth_Bps", known(d->bandwidth));
        put_real(w, "latency_ns", d->latency_ns >= 0 ? d->latency_ns : (double)NAN);
        put_real(w, "utilisation", d->utilisation >= 0 ? d->utilisation : (double)NAN);
        orr_json_end_object(w);
    }
    orr_json_end_array(w);
}

static bool is_number(orr_str s)
{
    for (size_t i = 0; i < s.len; i++)
        if (s.ptr[i] < '0' || s.ptr[i] > '9')
            return false;
    return s.len > 0;
}

static void put_nodes(const orr_intern *names, writer *w)
{
    orr_json_put_array(w, "nodes");
    for (uint32_t k = 0; k < orr_intern_count(names); k++) {
        const orr_str name = orr_intern_get(names, k);
        orr_json_begin_object(w);
        orr_json_put_fields(w, ORR_U("id", k), ORR_T("kind", is_number(name) ? "rank" : "switch"));
        orr_json_key(w, "label");
        orr_json_str(w, name);
        orr_json_end_object(w);
    }
    orr_json_end_array(w);
}

static void put_network_link(const orr__study *s,
                             const orr_report_link *l,
                             orr_intern *names,
                             writer *w)
{
    const double total = (double)orr__total(s) / 1000;
    uint32_t from = 0, to = 0;
    w->to->failed |= !orr_intern_add(names, orr_str_of(l->from), &from) ||
                     !orr_intern_add(names, orr_str_of(l->to), &to);
    orr_json_begin_object(w);
    orr_json_put_fields(w, ORR_U("from", from), ORR_U("to", to));
    put_real(w, "bandwidth_Bps", known(l->bandwidth));
    orr_json_put_u64(w, "bytes", l->bytes);
    put_real(w, "utilisation", total > 0 ? (double)l->busy_ns / total : (double)NAN);
    orr_json_put_u64(w, "busy_ns", l->busy_ns);
    orr_json_end_object(w);
}

static void put_topology(const orr__study *s, writer *w)
{
    const orr_report_run *r = s->run;
    orr_intern *names = orr_intern_create();
    orr_json_key(w, "topology");
    if (!names || (r->dimension_count == 0 && r->link_count == 0)) {
        w->to->failed |= !names;
        orr_json_null(w);
        orr_intern_destroy(names);
        return;
    }
    orr_json_begin_object(w);
    put_dimensions(r, w);
    orr_json_put_array(w, "links");
    for (size_t k = 0; k < r->link_count; k++)
        put_network_link(s, &r->links[k], names, w);
    orr_json_end_array(w);
    orr_json_put_u64(w, "links_left_out", r->links_left_out);
    put_nodes(names, w);
    orr_json_end_object(w);
    orr_intern_destroy(names);
}

/* ---- memory and the pipeline ---- */

static void put_series(const orr__memory_series *m, writer *w)
{
    orr_json_begin_object(w);
    orr_json_put_text(w, "name", m->name);
    orr_json_key(w, "peak_bytes");
    orr_json_i64(w, m->peak);
    orr_json_put_array(w, "t_ns");
    for (size_t i = 0; i < m->count; i++)
        put_time(w, m->points[i].at);
    orr_json_end_array(w);
    orr_json_put_array(w, "bytes");
    for (size_t i = 0; i < m->count; i++)
        orr_json_i64(w, m->points[i].value);
    orr_json_end_array(w);
    orr_json_end_object(w);
}

static void put_memory(const orr__study *s, writer *w)
{
    orr_json_key(w, "memory");
    if (s->series_count == 0) {
        orr_json_null(w);
        return;
    }
    orr_json_begin_object(w);
    put_whole(w, "capacity_bytes", s->run->memory_capacity);
    orr_json_put_array(w, "series");
    for (size_t k = 0; k < s->series_count; k++)
        put_series(&s->series[k], w);
    orr_json_end_array(w);
    orr_json_end_object(w);
}

static void put_stage_row(const orr__study *s, uint32_t k, writer *w)
{
    const orr__stage *stage = &s->stages[k];
    const double total = (double)orr__total(s), unused = (double)stage->unused / stage->count;
    orr_buf name = {0};
    orr_buf_print(&name, "stage %u", k);
    orr_json_begin_object(w);
    orr_json_key(w, "name");
    orr_json_str(w, (orr_str){(const char *)name.ptr, name.len});
    orr_json_put_text(w, "ranks", stage->ranks);
    put_real(w, "busy_ns", (total - unused) / 1000);
    put_real(w, "bubble_ns", unused / 1000);
    put_real(w, "bubble_share", unused / total);
    orr_json_end_object(w);
    w->to->failed |= name.failed;
    orr_buf_fini(&name);
}

static void put_pipeline(const orr__study *s, writer *w)
{
    double unused = 0;
    orr_json_key(w, "pipeline");
    if (s->stage_count == 0) {
        orr_json_null(w);
        return;
    }
    for (uint32_t k = 0; k < s->rank_count; k++)
        unused += (double)orr__unused(&s->ranks[k]) * s->ranks[k].alike;
    orr_json_begin_object(w);
    put_real(w, "bubble_share", unused / s->all_ranks / (double)orr__total(s));
    orr_json_put_array(w, "stages");
    for (uint32_t k = 0; k < s->stage_count; k++)
        put_stage_row(s, k, w);
    orr_json_end_array(w);
    orr_json_end_object(w);
}

/* ---- the rest ---- */

static void put_what_ifs(const orr__study *s, writer *w)
{
    const double now = (double)orr__total(s) / 1000;
    orr_json_put_array(w, "what_if");
    for (size_t k = 0; k < s->run->what_if_count; k++) {
        const orr_report_what_if *f = &s->run->what_ifs[k];
        orr_json_begin_object(w);
        orr_json_put_fields(w, ORR_T("change", f->change), ORR_U("time_ns", f->time_ns));
        put_real(w, "gain_share", now > 0 ? 1 - (double)f->time_ns / now : (double)NAN);
        orr_json_put_text(w, "how", f->is_simulated ? "simulated again" : "from the critical path");
        orr_json_end_object(w);
    }
    orr_json_end_array(w);
}

static void put_stall(const orr_report_run *r, writer *w)
{
    orr_json_key(w, "stall");
    if (!r->stall) {
        orr_json_null(w);
        return;
    }
    orr_json_begin_object(w);
    orr_json_put_text(w, "title", r->stall);
    orr_json_put_array(w, "lines");
    for (size_t i = 0; i < r->stall_line_count; i++)
        orr_json_text(w, r->stall_lines[i]);
    orr_json_end_array(w);
    orr_json_end_object(w);
}

/* The provenance notes of a timeline: "path murmur3_128=hash" is a file, anything else an
 * option. */
static bool split_note(orr_str value, orr_str *path, orr_str *hash)
{
    static const char mark[] = " murmur3_128=";
    const char *found = value.len ? memmem(value.ptr, value.len, mark, sizeof mark - 1) : NULL;
    if (!found)
        return false;
    *path = (orr_str){value.ptr, (size_t)(found - value.ptr)};
    *hash = (orr_str){found + sizeof mark - 1, value.len - path->len - (sizeof mark - 1)};
    return true;
}

static void put_noted(const orr__study *s, bool are_files, writer *w)
{
    for (uint32_t k = 0; k < s->p->note_count; k++) {
        const orr_str key = orr_timeline_text(s->t, s->p->notes[k].key);
        const orr_str value = orr_timeline_text(s->t, s->p->notes[k].value);
        orr_str path, hash;
        if (split_note(value, &path, &hash) != are_files)
            continue;
        orr_json_begin_object(w);
        orr_json_key(w, are_files ? "what" : "name");
        orr_json_str(w, key);
        orr_json_key(w, are_files ? "path" : "value");
        orr_json_str(w, are_files ? path : value);
        if (are_files) {
            orr_json_key(w, "hash");
            orr_json_str(w, hash);
            orr_json_key(w, "bytes");
            orr_json_null(w);
        }
        orr_json_end_object(w);
    }
}

static void put_inputs(const orr__study *s, writer *w)
{
    const orr_report_run *r = s->run;
    orr_json_put_array(w, "inputs");
    put_noted(s, true, w);
    for (size_t k = 0; k < r->input_count; k++) {
        const orr_report_input *in = &r->inputs[k];
        orr_json_begin_object(w);
        orr_json_put_fields(w, ORR_T("what", in->what), ORR_T("path", in->path),
                            ORR_T("hash", in->hash));
        put_real(w, "bytes", in->has_bytes ? (double)in->bytes : (double)NAN);
        orr_json_end_object(w);
    }
    orr_json_end_array(w);
    orr_json_put_array(w, "options");
    put_noted(s, false, w);
    for (size_t k = 0; k < r->option_count; k++) {
        orr_json_put_row(w, ORR_T("name", r->options[k].name), ORR_T("value", r->options[k].value));
    }
    orr_json_end_array(w);
}

static void put_note(writer *w, orr_buf *b)
{
    orr_json_str(w, (orr_str){(const char *)b->ptr, b->len});
    w->to->failed |= b->failed;
    orr_buf_fini(b);
    *b = (orr_buf){0};
}

/* Tells what the page does not show. */
static void put_notes(const orr__study *s, writer *w)
{
    const orr__events *e = &s->events;
    orr_buf b = {0};
    orr_json_put_array(w, "notes");
    for (size_t k = 0; k < s->run->note_count; k++)
        orr_json_text(w, s->run->notes[k]);
    if (e->ranks_left_out) {
        orr_buf_print(&b,
                      "The timeline shows %u of %u ranks; figures are of all of them.  "
                      "Others: --ranks of orrery report, --report-ranks of orrery run.",
                      s->all_ranks - e->ranks_left_out, s->all_ranks);
        put_note(w, &b);
    }
    if (s->tolerance > 0.001) {
        orr_buf_print(
            &b, "Ranks are taken to be alike when they differ by less than %.3g %% of the time.",
            s->tolerance * 100);
        put_note(w, &b);
    }
    if (e->left_out) {
        orr_buf_print(
            &b, "The timeline has %llu spans; the %llu shortest of the ranks shown are left out.",
            (unsigned long long)e->spans, (unsigned long long)e->left_out);
        put_note(w, &b);
    }
    if (e->samples_left_out) {
        orr_buf_print(&b, "Counters are thinned by %llu samples; their extremes are kept.",
                      (unsigned long long)e->samples_left_out);
        put_note(w, &b);
    }
    orr_json_end_array(w);
}

void orr__put_run(orr__study *s, uint32_t number, writer *w)
{
    orr_json_begin_object(w);
    orr_json_put_fields(w, ORR_T("name", s->run->name),
                        ORR_T("kind", s->run->is_flows      ? "flows"
                                      : s->run->is_measured ? "measured"
                                                            : "simulated"));
    put_headline(s, w);
    put_breakdown(s, w);
    if (s->run->timeline) {
        put_timeline(s, number, w);
    } else {
        orr_json_key(w, "timeline");
        orr_json_null(w);
    }
    put_path(s, w);
    put_collectives(s, w);
    put_topology(s, w);
    put_fabric(s, w);
    put_memory(s, w);
    put_pipeline(s, w);
    put_what_ifs(s, w);
    put_stall(s->run, w);
    put_inputs(s, w);
    put_notes(s, w);
    orr_json_end_object(w);
}
