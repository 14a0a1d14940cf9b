/* SPDX-License-Identifier: Apache-2.0 */
/* run_json.c - what came out of a run, for programs: one JSON object (docs/format/run.md), or CSV
 * with one row per rank or per link.
 *
 * Keys do not come and go, except "stall"; what is not known is null.  Keys name their units. */
#include "base/io/output.h"
#include "base/text/number.h"
#include "explain/run_facts.h"

#include <inttypes.h>
#include <stdlib.h>

enum { FORMAT_VERSION = 1 };

typedef orr_json_writer writer;

static const char *const figure_keys[ORR__FIGURES] = {
    [ORR__FIGURE_FINISHED] = "finished_at_ns",
    [ORR__FIGURE_COMPUTE] = "compute_ns",
    [ORR__FIGURE_COMMUNICATION] = "communication_ns",
    [ORR__FIGURE_EXPOSED] = "exposed_communication_ns",
    [ORR__FIGURE_MEMORY] = "remote_memory_ns",
    [ORR__FIGURE_HOST] = "host_ns",
    [ORR__FIGURE_WAITING] = "waiting_ns",
    [ORR__FIGURE_BUBBLE] = "bubble_ns",
    [ORR__FIGURE_IDLE] = "idle_ns",
};

static void put_maybe(writer *w, const char *key, bool is_known, uint64_t v)
{
    orr_json_key(w, key);
    if (is_known)
        orr_json_u64(w, v);
    else
        orr_json_null(w);
}

static void put_maybe_double(writer *w, const char *key, bool is_known, double v)
{
    orr_json_key(w, key);
    if (is_known)
        orr_json_double(w, v);
    else
        orr_json_null(w);
}

/* ---- the head ---- */

static void put_provenance(writer *w, const orr__run_facts *f, const orr__provenance *p)
{
    orr_json_key(w, "provenance");
    orr_json_begin_object(w);
    orr_json_put_text(w, "program", p->program);
    orr_json_key(w, "inputs");
    orr_json_begin_array(w);
    for (size_t i = 0; i < p->input_count; i++)
        orr__put_input(w, &p->inputs[i]);
    orr_json_end_array(w);
    orr_json_key(w, "options");
    orr_json_begin_object(w);
    orr_json_put_text(w, "network", p->network);
    orr_json_put_text(w, "machine", p->machine);
    orr_json_put_text(w, "hardware", p->chip);
    orr_json_put_text(w, "compute", f->compute);
    orr_json_put_u64(w, "queues_per_dimension", p->queues_per_dim);
    orr_json_put_bool(w, "rendezvous", p->rendezvous);
    orr_json_put_double(w, "injection_scale", p->injection_scale);
    orr_json_end_object(w);
    orr_json_end_object(w);
}

static void put_head(writer *w, const orr__run_facts *f, const orr__provenance *p)
{
    orr_json_put_text(w, "format", "orrery-run");
    orr_json_put_u64(w, "version", FORMAT_VERSION);
    if (p)
        put_provenance(w, f, p);
    orr_json_put_text(w, "status", f->status);
    orr_json_put_u64(w, "simulated_ns", f->end_ns);
    if (f->steps.asked > 1) {
        orr_json_key(w, "steps");
        orr_json_begin_object(w);
        orr_json_put_u64(w, "asked", f->steps.asked);
        orr_json_put_u64(w, "simulated", f->steps.simulated);
        orr_json_put_u64(w, "total_ns", f->steps.total);
        orr_json_put_u64(w, "first_ns", f->steps.first);
        orr_json_put_u64(w, "last_ns", f->steps.last);
        orr_json_end_object(w);
    }
    if (f->interval.high_ns) {
        orr_json_key(w, "interval_ns"); /* 90 % */
        orr_json_begin_array(w);
        orr_json_u64(w, f->interval.low_ns);
        orr_json_u64(w, f->interval.high_ns);
        orr_json_end_array(w);
        orr_json_put_double(w, "guessed_share", f->interval.guessed);
        orr_json_put_text(w, "guessed_most", f->interval.guessed_most);
    }
    orr_json_put_u64(w, "ranks", f->ranks);
    orr_json_put_u64(w, "ranks_distinct", f->classes);
    orr_json_put_u64(w, "ranks_simulated", f->simulated);
    if (f->simulated_last < f->simulated)
        orr_json_put_u64(w, "ranks_simulated_last", f->simulated_last);
    orr_json_put_u64(w, "finished_ranks", f->finished);
    orr_json_put_text(w, "network", f->network);
    orr_json_put_u64(w, "messages", f->messages);
    orr_json_put_u64(w, "events", f->events);
    if (f->has_packets) {
        orr_json_key(w, "packets");
        orr_json_begin_object(w);
        orr__facts_put_packets(f, w);
        orr_json_end_object(w);
    }
}

static void put_throughput(writer *w, const orr__run_facts *f)
{
    const orr__throughput *p = &f->throughput;
    const bool is_known = p->steps > 0;
    orr_json_key(w, "throughput");
    orr_json_begin_object(w);
    put_maybe(w, "steps", is_known, p->steps);
    put_maybe(w, "step_ns", is_known, (uint64_t)(p->step_seconds * 1e9 + 0.5));
    put_maybe_double(w, "tokens_per_s", is_known, p->tokens_per_s);
    put_maybe_double(w, "tokens_per_s_per_device", is_known, p->tokens_per_s / f->ranks);
    put_maybe_double(w, "tflops_per_device", is_known && p->flops_per_s > 0, p->flops_per_s / 1e12);
    put_maybe_double(w, "mfu", is_known && p->mfu > 0, p->mfu);
    put_maybe_double(w, "peak_tflops", p->peak_flops > 0, p->peak_flops / 1e12);
    orr_json_put_text(w, "peak_of", p->peak_of);
    orr_json_end_object(w);
}

/* Only of traces that serve requests. */
static void put_serving(writer *w, const orr__run_facts *f)
{
    const orr__serving *p = &f->serving;
    if (!p->requests)
        return;
    orr_json_key(w, "serving");
    orr_json_begin_object(w);
    orr_json_put_u64(w, "requests", p->requests);
    orr_json_put_u64(w, "output_tokens", p->tokens);
    orr_json_put_double(w, "first_token_mean_ns", p->first_mean_ns);
    orr_json_put_u64(w, "first_token_max_ns", p->first_max_ns);
    put_maybe_double(w, "next_token_mean_ns", p->next_mean_ns > 0, p->next_mean_ns);
    orr_json_put_u64(w, "last_token_ns", p->end_ns);
    orr_json_put_double(w, "tokens_per_s", p->tokens_per_s);
    orr_json_put_double(w, "tokens_per_s_per_device", p->tokens_per_s / f->ranks);
    orr_json_end_object(w);
}

static void put_warnings(writer *w, const orr__run_facts *f)
{
    orr_json_key(w, "warnings");
    orr_json_begin_array(w);
    for (size_t i = 0; i < f->warning_count; i++)
        orr_json_str(w, orr_str_of(f->warnings[i]));
    orr_json_end_array(w);
}

static void put_spreads(writer *w, const orr__run_facts *f)
{
    orr_json_key(w, "over_ranks");
    orr_json_begin_object(w);
    for (unsigned k = 0; k < ORR__FIGURES; k++) {
        const orr__figure_spread *v = &f->spread[k];
        orr_json_key(w, figure_keys[k]);
        orr_json_begin_object(w);
        orr_json_put_u64(w, "ranks", v->ranks);
        put_maybe(w, "min", v->ranks, v->least);
        put_maybe(w, "median", v->ranks, v->median);
        put_maybe(w, "max", v->ranks, v->most);
        put_maybe_double(w, "mean", v->ranks, v->mean);
        orr_json_end_object(w);
    }
    orr_json_end_object(w);
}

/* ---- communication ---- */

static void put_times(writer *w, const orr__comm_facts *t)
{
    orr_json_put_u64(w, "count", t->count);
    orr_json_put_u64(w, "bytes_total", t->bytes);
    orr_json_put_u64(w, "duration_ns_total", t->time);
    orr_json_put_u64(w, "duration_ns_max", t->longest);
    orr_json_put_u64(w, "waited_ns_total", t->waited);
}

static void put_collective(writer *w, const orr__comm_facts *t)
{
    orr_json_begin_object(w);
    orr_json_put_text(w, "type", orr_collective_name(t->type));
    orr_json_put_u64(w, "type_number", t->type);
    put_maybe(w, "group_ranks", t->group_ranks, t->group_ranks);
    orr_json_put_u64(w, "groups", t->groups);
    orr_json_key(w, "group");
    if (t->groups == 1 && t->group.len)
        orr_json_str(w, t->group);
    else
        orr_json_null(w);
    orr_json_put_u64(w, "size_bytes", t->size);
    orr_json_put_u64(w, "ranks", t->ranks);
    put_times(w, t);
    orr_json_put_u64(w, "exposed_ns_total", t->exposed);
    orr_json_end_object(w);
}

static void put_communication(writer *w, const orr__run_facts *f)
{
    orr_json_key(w, "collectives");
    orr_json_begin_array(w);
    for (uint32_t i = 0; i < f->collective_count; i++)
        put_collective(w, &f->collectives[f->by_time[i]]);
    orr_json_end_array(w);
    orr_json_key(w, "point_to_point");
    orr_json_begin_object(w);
    orr_json_key(w, "send");
    orr_json_begin_object(w);
    put_times(w, &f->sends);
    orr_json_end_object(w);
    orr_json_key(w, "receive");
    orr_json_begin_object(w);
    put_times(w, &f->receives);
    orr_json_end_object(w);
    orr_json_end_object(w);
}

/* ---- the network ---- */

static void put_dimensions(writer *w, const orr__run_facts *f)
{
    orr_json_key(w, "dimensions");
    orr_json_begin_array(w);
    for (uint32_t k = 0; k < f->dimension_count; k++) {
        const orr_sim_dimension *d = &f->dimensions[k];
        orr_json_begin_object(w);
        orr_json_put_u64(w, "dimension", k);
        orr_json_put_text(w, "shape", d->shape);
        orr_json_put_u64(w, "npus", d->ranks);
        put_maybe_double(w, "bandwidth_GiBps", d->shape, d->bandwidth / (double)(1 << 30));
        put_maybe_double(w, "latency_ns", d->shape, d->latency_ns);
        orr_json_put_u64(w, "messages", d->messages);
        orr_json_put_u64(w, "bytes", d->bytes);
        orr_json_end_object(w);
    }
    orr_json_end_array(w);
}

static double utilisation(const orr_net_link *l, uint64_t end)
{
    return end ? (double)l->busy_ns / (double)end : 0;
}

static bool is_like(const orr_net_link *a, const orr_net_link *b)
{
    return a->messages == b->messages && a->bytes == b->bytes && a->busy_ns == b->busy_ns &&
           a->max_queue == b->max_queue;
}

static void put_links(writer *w, const orr__run_facts *f, bool is_brief)
{
    orr_json_key(w, "links");
    if (!f->has_links) {
        orr_json_null(w);
        return;
    }
    orr_json_begin_object(w);
    orr_json_put_u64(w, "used", f->links_used);
    orr_json_key(w, "busiest");
    orr_json_begin_array(w);
    for (uint32_t i = 0; i < f->link_count; i++) {
        const orr_net_link *l = &f->links[i];
        if (is_brief && i && is_like(l, l - 1))
            continue;
        orr_json_begin_object(w);
        orr_json_put_text(w, "link", l->name);
        orr_json_put_u64(w, "messages", l->messages);
        orr_json_put_u64(w, "bytes", l->bytes);
        orr_json_put_u64(w, "busy_ns", l->busy_ns);
        orr_json_put_double(w, "utilisation", utilisation(l, f->end_ns));
        orr_json_put_u64(w, "max_queue", l->max_queue);
        orr_json_end_object(w);
    }
    orr_json_end_array(w);
    orr_json_end_object(w);
}

/* ---- the critical path: its longest steps, in the order of time ---- */

static int compare_length(const void *a, const void *b, void *steps)
{
    const uint32_t i = *(const uint32_t *)a, k = *(const uint32_t *)b;
    const orr_path_step *all = steps, *x = &all[i], *y = &all[k];
    if (x->to - x->from != y->to - y->from)
        return x->to - x->from > y->to - y->from ? -1 : 1;
    return i < k ? -1 : i > k;
}

static int compare_place(const void *a, const void *b)
{
    const uint32_t i = *(const uint32_t *)a, k = *(const uint32_t *)b;
    return i < k ? -1 : i > k;
}

/* Steps that take no time are never among them. */
static uint32_t *longest_steps(const orr_critical_path *p, uint32_t wanted, uint32_t *count)
{
    uint32_t *all = orr_alloc(p->step_count, sizeof *all);
    uint32_t n = 0;
    if (!all)
        return NULL;
    for (uint32_t i = 0; i < p->step_count; i++)
        if (p->steps[i].to > p->steps[i].from)
            all[n++] = i;
    qsort_r(all, n, sizeof *all, compare_length, (void *)(uintptr_t)p->steps);
    *count = n < wanted ? n : wanted;
    qsort(all, *count, sizeof *all, compare_place);
    return all;
}

static void put_step(writer *w, const orr_path_step *s)
{
    orr_json_begin_object(w);
    orr_json_put_u64(w, "from_ns", s->from);
    orr_json_put_u64(w, "to_ns", s->to);
    orr_json_put_u64(w, "rank", s->rank);
    orr_json_put_u64(w, "node", s->node);
    orr_json_put_text(w, "name", s->name);
    orr_json_put_text(w, "work", s->what);
    orr_json_put_u64(w, "size_bytes", s->size);
    orr_json_put_text(w, "after", orr_path_after_name((orr_path_after)s->after));
    orr_json_put_text(w, "held_by", orr_path_held_name((orr_path_held)s->held));
    put_maybe(w, "held_by_rank", s->held, s->held_rank);
    put_maybe(w, "held_by_node", s->held, s->held_node);
    orr_json_end_object(w);
}

static void put_path(writer *w, const orr__run_facts *f)
{
    const orr_critical_path *p = f->path;
    uint32_t count = 0;
    orr_json_key(w, "critical_path");
    if (!p) {
        orr_json_null(w);
        return;
    }
    uint32_t *rows = longest_steps(p, f->path_shown, &count);
    w->to->failed |= !rows;
    orr_json_begin_object(w);
    orr_json_put_u64(w, "duration_ns", p->total);
    orr_json_put_u64(w, "ranks", p->ranks);
    orr_json_put_u64(w, "steps_total", p->step_count);
    orr_json_key(w, "work");
    orr_json_begin_array(w);
    for (size_t i = 0; i < p->share_count; i++) {
        const orr_path_share *share = &p->shares[i];
        orr_json_begin_object(w);
        orr_json_put_text(w, "work", share->what);
        orr_json_put_u64(w, "steps", share->steps);
        orr_json_put_u64(w, "duration_ns", share->time);
        orr_json_put_double(w, "share", p->total ? (double)share->time / (double)p->total : 0);
        orr_json_end_object(w);
    }
    orr_json_end_array(w);
    orr_json_key(w, "longest_steps");
    orr_json_begin_array(w);
    for (uint32_t i = 0; rows && i < count; i++)
        put_step(w, &p->steps[rows[i]]);
    orr_json_end_array(w);
    orr_json_end_object(w);
    orr_free(rows);
}

/* ---- a stall ---- */

static void put_stalled_collective(writer *w, const orr_stall_item *item)
{
    orr_json_put_text(w, "collective", item->kind);
    orr_json_put_u64(w, "collective_bytes", item->collective_size);
    orr_json_put_text(w, "group", item->group);
    orr_json_put_u64(w, "sequence", item->sequence);
    if (!item->has_stream)
        return;
    orr_json_put_u64(w, "chunk", item->stream);
    orr_json_put_u64(w, "phase", item->phase);
    orr_json_put_u64(w, "phases", item->phases);
    orr_json_put_u64(w, "dimension", item->dimension);
}

static void put_item(writer *w, const orr_stall_item *item)
{
    orr_json_begin_object(w);
    if (item->cause != ORR_STALL_NONE)
        orr_json_put_text(w, "cause", orr_stall_cause_name(item->cause));
    orr_json_put_text(w, "ranks", item->ranks);
    orr_json_put_u64(w, "rank_count", item->rank_count);
    orr_json_put_u64(w, "node", item->node);
    orr_json_put_text(w, "name", item->name);
    orr_json_put_text(w, "file", item->where.path);
    if (item->where.byte != ORR_NO_BYTE)
        orr_json_put_u64(w, "byte", item->where.byte);
    orr_json_put_text(w, "waits_for", item->waits_for);
    if (item->peer != ORR_STALL_NO_RANK)
        orr_json_put_u64(w, "peer", item->peer);
    if (item->has_message) {
        orr_json_put_u64(w, "tag", item->tag);
        orr_json_put_u64(w, "message_bytes", item->size);
    }
    if (item->is_collective)
        put_stalled_collective(w, item);
    orr_json_put_text(w, "text", item->text);
    orr_json_end_object(w);
}

static void put_items(writer *w, const char *key, const orr_stall_item *items, size_t count)
{
    orr_json_key(w, key);
    orr_json_begin_array(w);
    for (size_t i = 0; i < count; i++)
        put_item(w, &items[i]);
    orr_json_end_array(w);
}

static void put_stall(writer *w, const orr_stall *r)
{
    if (!r)
        return;
    orr_json_key(w, "stall");
    orr_json_begin_object(w);
    orr_json_put_u64(w, "unfinished_ranks", r->unfinished);
    orr_json_put_text(w, "cause", orr_stall_cause_name(r->cause));
    orr_json_put_text(w, "summary", r->summary);
    put_items(w, "causes", r->causes, r->cause_count);
    orr_json_put_u64(w, "circle_length", r->circle_length);
    put_items(w, "circle", r->circle, r->circle_count);
    put_items(w, "waits", r->waits, r->wait_count);
    orr_json_put_u64(w, "waits_left_out", r->waits_left_out);
    orr_json_end_object(w);
}

/* ---- ranks ---- */

static bool repeats(const orr__run_facts *f, uint32_t r)
{
    return r && r + 1 < f->ranks && memcmp(f->times[r], f->times[r - 1], sizeof f->times[r]) == 0 &&
           (!f->peak_memory || f->peak_memory[r] == f->peak_memory[r - 1]);
}

static void put_ranks(writer *w, const orr__run_facts *f, bool is_brief)
{
    if (!is_brief) {
        orr_json_key(w, "finish_order");
        orr_json_begin_array(w);
        for (uint32_t i = 0; i < f->finished; i++)
            orr_json_u64(w, f->finish_order[i]);
        orr_json_end_array(w);
    }
    orr_json_key(w, "per_rank");
    orr_json_begin_array(w);
    for (uint32_t r = 0; r < f->ranks; r++) {
        if (is_brief && repeats(f, r))
            continue;
        orr_json_begin_object(w);
        orr_json_put_u64(w, "rank", r);
        for (unsigned k = 0; k < ORR__FIGURES; k++)
            put_maybe(w, figure_keys[k], f->times[r][k] != ORR_NEVER, f->times[r][k]);
        put_maybe(w, "peak_memory_bytes", f->peak_memory, f->peak_memory ? f->peak_memory[r] : 0);
        orr_json_end_object(w);
    }
    orr_json_end_array(w);
}

/* Brief: for those who take the least and the most of lists, as a sweep does ten thousand times. */
static orr_code write_json(const orr_sim *s, bool is_brief, const char *path, orr_error *err)
{
    const orr_json_style style = {.indent = 2};
    orr__run_facts *f;
    orr__provenance p;
    orr_buf b = {0};
    writer w;
    orr_code code = orr__run_facts_take(s, &f, err);
    if (code)
        return code;
    b.failed = !is_brief && !orr__provenance_take(s, &p);
    orr_json_writer_init(&w, &b, is_brief ? NULL : &style);
    orr_json_begin_object(&w);
    put_head(&w, f, is_brief ? NULL : &p);
    put_throughput(&w, f);
    put_serving(&w, f);
    put_warnings(&w, f);
    put_spreads(&w, f);
    put_communication(&w, f);
    put_dimensions(&w, f);
    put_links(&w, f, is_brief);
    put_path(&w, f);
    put_stall(&w, f->stall);
    put_ranks(&w, f, is_brief);
    orr_json_end_object(&w);
    orr_buf_byte(&b, '\n');
    code = orr_output_save(&b, path, err);
    orr_buf_fini(&b);
    orr__run_facts_destroy(f);
    return code;
}

orr_code orr_sim_write_json(const orr_sim *s, const char *path, orr_error *err)
{
    return write_json(s, false, path, err);
}

orr_code orr_sim_write_figures(const orr_sim *s, const char *path, orr_error *err)
{
    return write_json(s, true, path, err);
}

/* ---- CSV ---- */

static void print_csv_head(const orr_sim *s, orr_buf *b)
{
    orr__provenance p;
    orr__provenance_line lines[ORR__PROVENANCE_LINES];
    orr_arena *a = orr_arena_create();
    size_t count = 0;
    const bool ok = a && orr__provenance_take(s, &p) && orr__provenance_lines(&p, a, lines, &count);
    b->failed |= !ok;
    orr_buf_print(b, "# format: orrery-run-ranks %d\n", FORMAT_VERSION);
    for (size_t i = 0; ok && i < count; i++)
        orr_buf_print(b, "# %s: %s\n", lines[i].key, lines[i].value);
    orr_buf_text(b, "rank");
    for (unsigned k = 0; k < ORR__FIGURES; k++)
        orr_buf_print(b, ",%s", figure_keys[k]);
    orr_buf_text(b, ",peak_memory_bytes\n");
    orr_arena_destroy(a);
}

orr_code orr_sim_write_csv(const orr_sim *s, const char *path, orr_error *err)
{
    orr__run_facts *f;
    orr_buf b = {0};
    orr_code code = orr__run_facts_take(s, &f, err);
    if (code)
        return code;
    print_csv_head(s, &b);
    for (uint32_t r = 0; r < f->ranks; r++) {
        orr_buf_u64(&b, r);
        for (unsigned k = 0; k < ORR__FIGURES; k++) {
            orr_buf_byte(&b, ',');
            if (f->times[r][k] != ORR_NEVER)
                orr_buf_u64(&b, f->times[r][k]);
        }
        orr_buf_byte(&b, ',');
        if (f->peak_memory)
            orr_buf_u64(&b, f->peak_memory[r]);
        orr_buf_byte(&b, '\n');
    }
    code = orr_output_save(&b, path, err);
    orr_buf_fini(&b);
    orr__run_facts_destroy(f);
    return code;
}

typedef struct csv {
    orr_buf *to;
    uint64_t end;
} csv;

static void print_row(void *context, const orr_net_link *l)
{
    const csv *c = context;
    char text[ORR_NUMBER_ROOM];
    orr_buf_byte(c->to, '"');
    for (const char *p = l->name; *p; p++) {
        if (*p == '"')
            orr_buf_byte(c->to, '"');
        orr_buf_byte(c->to, (uint8_t)*p);
    }
    orr_buf_print(c->to, "\",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",", l->messages, l->bytes,
                  l->busy_ns);
    orr_buf_add(c->to, text, orr_double_text(utilisation(l, c->end), text));
    orr_buf_print(c->to, ",%" PRIu64 "\n", l->max_queue);
}

orr_code orr_sim_write_links(const orr_sim *s, const char *path, orr_error *err)
{
    orr_buf b = {0};
    csv c = {&b, orr_sim_time(s)};
    orr_code code = orr__check_links(s, err);
    if (code)
        return code;
    orr_buf_text(&b, "link,messages,bytes,busy_ns,utilisation,max_queue\n");
    orr_sim_visit_links(s, print_row, &c);
    code = orr_output_save(&b, path, err);
    orr_buf_fini(&b);
    return code;
}
