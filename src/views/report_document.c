/* SPDX-License-Identifier: Apache-2.0 */
/* report_document.c - a studied run as JSON (docs/format/report.md).  What is not known is null. */
#include "report_impl.h"

#include <math.h>
#include <stdlib.h>

enum { MOST_STEPS = 1000 };

typedef orr_json_writer writer;

/* ---- pieces ---- */

/* 0: null. */
static void put_whole(writer *w, const char *key, uint64_t v)
{
    orr_json_key(w, key);
    if (v)
        orr_json_u64(w, v);
    else
        orr_json_null(w);
}

/* Not a number: null. */
static void put_real(writer *w, const char *key, double v)
{
    orr_json_key(w, key);
    if (v - v == 0)
        orr_json_double(w, v);
    else
        orr_json_null(w);
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
        sum += (double)s->ranks[k].exposed;
    return s->rank_count ? sum / s->rank_count / 1000 : (double)NAN;
}

static uint32_t ranks_of(const orr__study *s)
{
    return s->run->ranks ? s->run->ranks : s->rank_count;
}

static void put_headline(const orr__study *s, writer *w)
{
    const orr_report_run *r = s->run;
    const double seconds = (double)orr__total(s) / 1e12, exposed = mean_exposed(s);
    const bool is_whole = seconds > 0 && !r->stall;
    orr_buf sentence = {0};
    orr__put_sentence(s, &sentence);
    orr_json_key(w, "headline");
    orr_json_begin_object(w);
    put_ps(w, "time_ns", orr__total(s));
    if (r->is_flows)
        put_whole(w, "ranks", 0);
    else
        orr_json_put_u64(w, "ranks", ranks_of(s));
    put_real(w, "tokens_per_s", is_whole ? known(r->tokens / seconds) : (double)NAN);
    put_real(w, "mfu",
             is_whole ? known(r->flops / (seconds * r->peak_flops * ranks_of(s))) : (double)NAN);
    put_real(w, "exposed_comm_ns", exposed);
    put_real(w, "exposed_comm_share", exposed / (seconds * 1e9));
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
    orr_json_put_text(w, "ranks", g->ranks);
    orr_json_put_u64(w, "count", g->count);
    put_ps(w, "total_ns", orr__total(s));
    put_mean(w, "compute_ns", g->sum.compute, g->count);
    put_mean(w, "comm_exposed_ns", g->sum.exposed, g->count);
    put_mean(w, "comm_overlapped_ns", g->sum.overlapped, g->count);
    put_mean(w, "memory_ns", g->sum.memory, g->count);
    put_mean(w, "host_ns", g->sum.host, g->count);
    put_mean(w, "idle_ns", g->sum.idle, g->count);
    orr_json_end_object(w);
    w->to->failed |= name.failed;
    orr_buf_fini(&name);
}

static void put_breakdown(const orr__study *s, writer *w)
{
    orr_json_key(w, "breakdown");
    orr_json_begin_array(w);
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
    orr_json_key(w, "tracks");
    orr_json_begin_array(w);
    for (uint32_t k = 0; k < e->track_count; k++) {
        const orr_track *t = &s->p->tracks[e->tracks[k]];
        orr_json_begin_object(w);
        put_rank(w, t->rank);
        orr_json_key(w, "name");
        orr_json_str(w, orr_timeline_text(s->t, t->name));
        orr_json_end_object(w);
    }
    orr_json_end_array(w);
    orr_json_key(w, "counters");
    orr_json_begin_array(w);
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
    orr_json_key(w, "timeline");
    orr_json_begin_object(w);
    orr_json_key(w, "script");
    orr_json_str(w, (orr_str){(const char *)script.ptr, script.len});
    orr_json_put_u64(w, "tick_ps", (uint64_t)e->tick);
    put_ps(w, "start_ns", s->start);
    put_ps(w, "end_ns", s->end);
    orr_json_put_u64(w, "spans", e->spans);
    orr_json_put_u64(w, "left_out", e->left_out);
    orr_json_put_u64(w, "samples_left_out", e->samples_left_out);
    orr_json_put_u64(w, "ranks_left_out", e->ranks_left_out);
    orr_json_key(w, "texts");
    orr_json_begin_array(w);
    for (uint32_t k = 0; k < e->text_count; k++)
        orr_json_str(w, orr_timeline_text(s->t, e->texts[k]));
    orr_json_end_array(w);
    orr_json_key(w, "kinds");
    orr_json_begin_array(w);
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

/* "ALL_REDUCE" as the rest of the page has it: "all-reduce". */
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
    enum { KINDS = 64 }; /* there are about a dozen; a path that has more shows these */
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
    qsort(shares, count, sizeof *shares, compare_shares);
    orr_json_key(w, "by_kind");
    orr_json_begin_array(w);
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
    orr_json_put_u64(w, "rank", p->rank);
    orr_json_put_text(w, "name", p->name);
    orr_json_put_text(w, "kind", orr_span_kind_name((orr_span_kind)p->kind));
    orr_json_key(w, "what");
    put_what(w, p->what);
    orr_json_put_u64(w, "start_ns", p->from_ns);
    orr_json_put_u64(w, "end_ns", p->to_ns);
    orr_json_put_text(w, "why", p->why);
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

/* How long a step must be to be listed, when there are too many; *equal of exactly that length may be. */
static bool find_limit(const orr_report_run *r, uint64_t *limit, size_t *equal)
{
    uint64_t *lengths = orr_alloc(r->step_count, sizeof *lengths);
    size_t longer = 0;
    if (!lengths)
        return false;
    for (size_t i = 0; i < r->step_count; i++)
        lengths[i] = r->steps[i].to_ns - r->steps[i].from_ns;
    qsort(lengths, r->step_count, sizeof *lengths, compare_lengths);
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
    orr_json_key(w, "steps");
    orr_json_begin_array(w);
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

/* Its name, or how many there are. */
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

static void put_collective(const orr__study *s, const orr__collective_row *r, writer *w)
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
    orr_json_key(w, "collectives");
    orr_json_begin_array(w);
    for (size_t k = 0; k < s->row_count; k++)
        put_collective(s, &s->rows[k], w);
    orr_json_end_array(w);
}

/* ---- the network ---- */

static void put_dimensions(const orr_report_run *r, writer *w)
{
    orr_json_key(w, "dimensions");
    orr_json_begin_array(w);
    for (size_t k = 0; k < r->dimension_count; k++) {
        const orr_report_dimension *d = &r->dimensions[k];
        orr_json_begin_object(w);
        orr_json_put_text(w, "name", d->name);
        orr_json_put_u64(w, "size", d->size);
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
    orr_json_key(w, "nodes");
    orr_json_begin_array(w);
    for (uint32_t k = 0; k < orr_intern_count(names); k++) {
        const orr_str name = orr_intern_get(names, k);
        orr_json_begin_object(w);
        orr_json_put_u64(w, "id", k);
        orr_json_put_text(w, "kind", is_number(name) ? "rank" : "switch");
        orr_json_key(w, "label");
        orr_json_str(w, name);
        orr_json_end_object(w);
    }
    orr_json_end_array(w);
}

static void put_link(const orr__study *s, const orr_report_link *l, orr_intern *names, writer *w)
{
    const double total = (double)orr__total(s) / 1000;
    uint32_t from = 0, to = 0;
    w->to->failed |= !orr_intern_add(names, orr_str_of(l->from), &from) ||
                     !orr_intern_add(names, orr_str_of(l->to), &to);
    orr_json_begin_object(w);
    orr_json_put_u64(w, "from", from);
    orr_json_put_u64(w, "to", to);
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
    orr_json_key(w, "links");
    orr_json_begin_array(w);
    for (size_t k = 0; k < r->link_count; k++)
        put_link(s, &r->links[k], names, w);
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
    orr_json_key(w, "t_ns");
    orr_json_begin_array(w);
    for (size_t i = 0; i < m->count; i++)
        put_time(w, m->points[i].at);
    orr_json_end_array(w);
    orr_json_key(w, "bytes");
    orr_json_begin_array(w);
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
    orr_json_key(w, "series");
    orr_json_begin_array(w);
    for (size_t k = 0; k < s->series_count; k++)
        put_series(&s->series[k], w);
    orr_json_end_array(w);
    orr_json_end_object(w);
}

static void put_stage(const orr__study *s, uint32_t k, writer *w)
{
    const orr__stage *stage = &s->stages[k];
    const double total = (double)orr__total(s), waiting = (double)stage->waiting / stage->count;
    orr_buf name = {0};
    orr_buf_print(&name, "stage %u", k);
    orr_json_begin_object(w);
    orr_json_key(w, "name");
    orr_json_str(w, (orr_str){(const char *)name.ptr, name.len});
    orr_json_put_text(w, "ranks", stage->ranks);
    put_real(w, "busy_ns", (total - waiting) / 1000);
    put_real(w, "bubble_ns", waiting / 1000);
    put_real(w, "bubble_share", waiting / total);
    orr_json_end_object(w);
    w->to->failed |= name.failed;
    orr_buf_fini(&name);
}

static void put_pipeline(const orr__study *s, writer *w)
{
    double waiting = 0;
    orr_json_key(w, "pipeline");
    if (s->stage_count == 0) {
        orr_json_null(w);
        return;
    }
    for (uint32_t k = 0; k < s->rank_count; k++)
        waiting += (double)s->ranks[k].waiting;
    orr_json_begin_object(w);
    put_real(w, "bubble_share", waiting / s->rank_count / (double)orr__total(s));
    orr_json_key(w, "stages");
    orr_json_begin_array(w);
    for (uint32_t k = 0; k < s->stage_count; k++)
        put_stage(s, k, w);
    orr_json_end_array(w);
    orr_json_end_object(w);
}

/* ---- the rest ---- */

static void put_what_ifs(const orr__study *s, writer *w)
{
    const double now = (double)orr__total(s) / 1000;
    orr_json_key(w, "what_if");
    orr_json_begin_array(w);
    for (size_t k = 0; k < s->run->what_if_count; k++) {
        const orr_report_what_if *f = &s->run->what_ifs[k];
        orr_json_begin_object(w);
        orr_json_put_text(w, "change", f->change);
        orr_json_put_u64(w, "time_ns", f->time_ns);
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
    orr_json_key(w, "lines");
    orr_json_begin_array(w);
    for (size_t i = 0; i < r->stall_line_count; i++)
        orr_json_text(w, r->stall_lines[i]);
    orr_json_end_array(w);
    orr_json_end_object(w);
}

/* What a timeline says about where it comes from: "path murmur3_128=hash" is a file, anything else an option. */
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
    orr_json_key(w, "inputs");
    orr_json_begin_array(w);
    put_noted(s, true, w);
    for (size_t k = 0; k < r->input_count; k++) {
        const orr_report_input *in = &r->inputs[k];
        orr_json_begin_object(w);
        orr_json_put_text(w, "what", in->what);
        orr_json_put_text(w, "path", in->path);
        orr_json_put_text(w, "hash", in->hash);
        put_real(w, "bytes", in->has_bytes ? (double)in->bytes : (double)NAN);
        orr_json_end_object(w);
    }
    orr_json_end_array(w);
    orr_json_key(w, "options");
    orr_json_begin_array(w);
    put_noted(s, false, w);
    for (size_t k = 0; k < r->option_count; k++) {
        orr_json_begin_object(w);
        orr_json_put_text(w, "name", r->options[k].name);
        orr_json_put_text(w, "value", r->options[k].value);
        orr_json_end_object(w);
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

/* What the page does not show is said. */
static void put_notes(const orr__study *s, writer *w)
{
    const orr__events *e = &s->events;
    orr_buf b = {0};
    orr_json_key(w, "notes");
    orr_json_begin_array(w);
    for (size_t k = 0; k < s->run->note_count; k++)
        orr_json_text(w, s->run->notes[k]);
    if (e->ranks_left_out) {
        orr_buf_print(&b,
                      "The timeline shows %u of %u ranks; figures are of all of them.  "
                      "Others: --ranks of orrery report, --report-ranks of orrery run.",
                      s->rank_count - e->ranks_left_out, s->rank_count);
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
    orr_json_put_text(w, "name", s->run->name);
    orr_json_put_text(w, "kind",
                      s->run->is_flows      ? "flows"
                      : s->run->is_measured ? "measured"
                                            : "simulated");
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
    orr__put_fabric(s, w);
    put_memory(s, w);
    put_pipeline(s, w);
    put_what_ifs(s, w);
    put_stall(s->run, w);
    put_inputs(s, w);
    put_notes(s, w);
    orr_json_end_object(w);
}
