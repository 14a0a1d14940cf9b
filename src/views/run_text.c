/* SPDX-License-Identifier: Apache-2.0 */
/* run_text.c - results of a run as a few short tables in 80 columns.
 *
 * Sums over ranks mean little for one job, so times are per rank: minimum, mean and maximum over
 * the ranks, or the average of those that take part.  The mean, because means of the parts of a
 * rank's time add up to the run; medians of two kinds of ranks do not. */
#include <orrery/lab/units.h>

#include "base/formats/json.h"
#include "base/io/output.h"
#include "base/memory/sort.h"
#include "base/text/number.h"
#include "explain/facts.h"
#include "views_impl.h"

#include <inttypes.h>
#include <stdlib.h>

/* Results of a run: one JSON object (docs/format/run.md), or CSV
 * with one row per rank or per link.
 *
 * Keys are always present, except "stall"; unknown values are null.  Keys name their units. */

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

/* ---- the head ---- */

static void put_provenance(writer *w, const orr__run_facts *f, const orr__provenance *p)
{
    orr_json_put_object(w, "provenance");
    orr_json_put_text(w, "program", p->program);
    orr_json_put_array(w, "inputs");
    for (size_t i = 0; i < p->input_count; i++)
        orr__put_input(w, &p->inputs[i]);
    orr_json_end_array(w);
    orr_json_key(w, "options");
    orr_json_put_row(
        w, ORR_T("network", p->network), ORR_T("machine", p->machine), ORR_T("hardware", p->chip),
        ORR_T("compute", f->compute), ORR_U("queues_per_dimension", p->queues_per_dim),
        ORR_B("rendezvous", p->rendezvous), ORR_D("injection_scale", p->injection_scale));
    orr_json_end_object(w);
}

static void put_head(writer *w, const orr__run_facts *f, const orr__provenance *p)
{
    orr_json_put_fields(w, ORR_T("format", "orrery-run"), ORR_U("version", FORMAT_VERSION));
    if (p)
        put_provenance(w, f, p);
    orr_json_put_fields(w, ORR_T("status", f->status), ORR_U("simulated_ns", f->end_ns));
    if (f->steps.asked > 1) {
        orr_json_key(w, "steps");
        orr_json_put_row(w, ORR_U("asked", f->steps.asked), ORR_U("simulated", f->steps.simulated),
                         ORR_U("total_ns", f->steps.total), ORR_U("first_ns", f->steps.first),
                         ORR_U("last_ns", f->steps.last));
    }
    if (f->interval.high_ns) {
        orr_json_put_array(w, "interval_ns"); /* 90 % */
        orr_json_u64(w, f->interval.low_ns);
        orr_json_u64(w, f->interval.high_ns);
        orr_json_end_array(w);
        orr_json_put_fields(w, ORR_D("guessed_share", f->interval.guessed),
                            ORR_T("guessed_most", f->interval.guessed_most),
                            ORR_D("host_wait_share", f->interval.host));
    }
    orr_json_put_fields(w, ORR_U("ranks", f->ranks), ORR_U("ranks_distinct", f->classes),
                        ORR_U("ranks_simulated", f->simulated));
    if (f->simulated_last < f->simulated)
        orr_json_put_u64(w, "ranks_simulated_last", f->simulated_last);
    orr_json_put_fields(w, ORR_U("finished_ranks", f->finished), ORR_T("network", f->network),
                        ORR_U("messages", f->messages), ORR_U("events", f->events));
    if (f->packets) {
        orr_json_put_object(w, "packets");
        orr__packet_put_figures(w, f->packets);
        orr_json_end_object(w);
    }
}

static void put_throughput(writer *w, const orr__run_facts *f)
{
    const orr__throughput *p = &f->throughput;
    const bool is_known = p->steps > 0;
    orr_json_put_object(w, "throughput");
    orr_json_put_fields(
        w, ORR_KU("steps", is_known, p->steps),
        ORR_KU("step_ns", is_known, (uint64_t)(p->step_seconds * 1e9 + 0.5)),
        ORR_KD("tokens_per_s", is_known, p->tokens_per_s),
        ORR_KD("tokens_per_s_per_device", is_known, p->tokens_per_s / f->devices),
        ORR_KD("tflops_per_device", is_known && p->flops_per_s > 0, p->flops_per_s / 1e12),
        ORR_KD("mfu", is_known && p->mfu > 0, p->mfu),
        ORR_KD("peak_tflops", p->peak_flops > 0, p->peak_flops / 1e12),
        ORR_T("peak_of", p->peak_of));
    orr_json_end_object(w);
}

/* 90 %, of what a request waits for. */
static void put_wait_interval(writer *w, const orr__run_facts *f, const char *key, double ns)
{
    orr_json_put_array(w, key);
    orr_json_u64(w, (uint64_t)(ns * (1 - f->interval.low_share)));
    orr_json_u64(w, (uint64_t)(ns * (1 + f->interval.high_share)));
    orr_json_end_array(w);
}

/* Only for traces that serve requests. */
static void put_serving(writer *w, const orr__run_facts *f)
{
    const orr__serving *p = &f->serving;
    if (!p->requests)
        return;
    orr_json_put_object(w, "serving");
    orr_json_put_fields(w, ORR_U("requests", p->requests), ORR_U("output_tokens", p->tokens),
                        ORR_D("first_token_mean_ns", p->first_mean_ns),
                        ORR_U("first_token_max_ns", p->first_max_ns),
                        ORR_KD("next_token_mean_ns", p->next_mean_ns > 0, p->next_mean_ns),
                        ORR_U("last_token_ns", p->end_ns), ORR_D("tokens_per_s", p->tokens_per_s),
                        ORR_D("tokens_per_s_per_device", p->tokens_per_s / f->devices));
    if (f->interval.high_ns)
        put_wait_interval(w, f, "first_token_mean_interval_ns", p->first_mean_ns);
    if (f->interval.high_ns && p->next_mean_ns > 0)
        put_wait_interval(w, f, "next_token_mean_interval_ns", p->next_mean_ns);
    orr_json_end_object(w);
}

static void put_warnings(writer *w, const orr__run_facts *f)
{
    orr_json_put_array(w, "warnings");
    for (size_t i = 0; i < f->warning_count; i++)
        orr_json_str(w, orr_str_of(f->warnings[i]));
    orr_json_end_array(w);
}

static void put_spreads(writer *w, const orr__run_facts *f)
{
    orr_json_put_object(w, "over_ranks");
    for (unsigned k = 0; k < ORR__FIGURES; k++) {
        const orr__figure_spread *v = &f->spread[k];
        orr_json_put_object(w, figure_keys[k]);
        orr_json_put_fields(w, ORR_U("ranks", v->ranks), ORR_KU("min", v->ranks, v->least),
                            ORR_KU("median", v->ranks, v->median), ORR_KU("max", v->ranks, v->most),
                            ORR_KD("mean", v->ranks, v->mean));
        orr_json_end_object(w);
    }
    orr_json_end_object(w);
}

/* ---- communication ---- */

static void put_times(writer *w, const orr__comm_facts *t)
{
    orr_json_put_fields(w, ORR_U("count", t->count), ORR_U("bytes_total", t->bytes),
                        ORR_U("duration_ns_total", t->time), ORR_U("duration_ns_max", t->longest),
                        ORR_U("waited_ns_total", t->waited));
}

static void put_collective(writer *w, const orr__comm_facts *t)
{
    orr_json_begin_object(w);
    orr_json_put_fields(
        w, ORR_T("type", orr_collective_name(t->type)), ORR_U("type_number", t->type),
        ORR_KU("group_ranks", t->group_ranks, t->group_ranks), ORR_U("groups", t->groups));
    orr_json_key(w, "group");
    if (t->groups == 1 && t->group.len)
        orr_json_str(w, t->group);
    else
        orr_json_null(w);
    orr_json_put_fields(w, ORR_U("size_bytes", t->size), ORR_U("ranks", t->ranks));
    put_times(w, t);
    orr_json_put_u64(w, "exposed_ns_total", t->exposed);
    orr_json_end_object(w);
}

static void put_communication(writer *w, const orr__run_facts *f)
{
    orr_json_put_array(w, "collectives");
    for (uint32_t i = 0; i < f->collective_count; i++)
        put_collective(w, &f->collectives[f->by_time[i]]);
    orr_json_end_array(w);
    orr_json_put_object(w, "point_to_point");
    orr_json_put_object(w, "send");
    put_times(w, &f->sends);
    orr_json_end_object(w);
    orr_json_put_object(w, "receive");
    put_times(w, &f->receives);
    orr_json_end_object(w);
    orr_json_end_object(w);
}

/* ---- the network ---- */

static void put_dimensions(writer *w, const orr__run_facts *f)
{
    orr_json_put_array(w, "dimensions");
    for (uint32_t k = 0; k < f->dimension_count; k++) {
        const orr_sim_dimension *d = &f->dimensions[k];
        orr_json_put_row(w, ORR_U("dimension", k), ORR_T("shape", d->shape),
                         ORR_U("npus", d->ranks),
                         ORR_KD("bandwidth_GiBps", d->shape, d->bandwidth / (double)(1 << 30)),
                         ORR_KD("latency_ns", d->shape, d->latency_ns),
                         ORR_U("messages", d->messages), ORR_U("bytes", d->bytes));
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
    orr_json_put_array(w, "busiest");
    for (uint32_t i = 0; i < f->link_count; i++) {
        const orr_net_link *l = &f->links[i];
        if (is_brief && i && is_like(l, l - 1))
            continue;
        orr_json_put_row(w, ORR_T("link", l->name), ORR_U("messages", l->messages),
                         ORR_U("bytes", l->bytes), ORR_U("busy_ns", l->busy_ns),
                         ORR_D("utilisation", utilisation(l, f->end_ns)),
                         ORR_U("max_queue", l->max_queue));
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

/* Steps of zero length are never included. */
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
    orr_sort(all, *count, sizeof *all, compare_place);
    return all;
}

static void put_step(writer *w, const orr_path_step *s)
{
    orr_json_put_row(w, ORR_U("from_ns", s->from), ORR_U("to_ns", s->to), ORR_U("rank", s->rank),
                     ORR_U("node", s->node), ORR_T("name", s->name), ORR_T("work", s->what),
                     ORR_U("size_bytes", s->size),
                     ORR_T("after", orr_path_after_name((orr_path_after)s->after)),
                     ORR_T("held_by", orr_path_held_name((orr_path_held)s->held)),
                     ORR_KU("held_by_rank", s->held, s->held_rank),
                     ORR_KU("held_by_node", s->held, s->held_node));
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
    orr_json_put_fields(w, ORR_U("duration_ns", p->total), ORR_U("ranks", p->ranks),
                        ORR_U("steps_total", p->step_count));
    orr_json_put_array(w, "work");
    for (size_t i = 0; i < p->share_count; i++) {
        const orr_path_share *share = &p->shares[i];
        orr_json_put_row(w, ORR_T("work", share->what), ORR_U("steps", share->steps),
                         ORR_U("duration_ns", share->time),
                         ORR_D("share", p->total ? (double)share->time / (double)p->total : 0));
    }
    orr_json_end_array(w);
    orr_json_put_array(w, "longest_steps");
    for (uint32_t i = 0; rows && i < count; i++)
        put_step(w, &p->steps[rows[i]]);
    orr_json_end_array(w);
    orr_json_end_object(w);
    orr_free(rows);
}

/* ---- a stall ---- */

static void put_stalled_collective(writer *w, const orr_stall_item *item)
{
    orr_json_put_fields(w, ORR_T("collective", item->kind),
                        ORR_U("collective_bytes", item->collective_size),
                        ORR_T("group", item->group), ORR_U("sequence", item->sequence));
    if (!item->has_stream)
        return;
    orr_json_put_fields(w, ORR_U("chunk", item->stream), ORR_U("phase", item->phase),
                        ORR_U("phases", item->phases), ORR_U("dimension", item->dimension));
}

static void put_item(writer *w, const orr_stall_item *item)
{
    orr_json_begin_object(w);
    if (item->cause != ORR_STALL_NONE)
        orr_json_put_text(w, "cause", orr_stall_cause_name(item->cause));
    orr_json_put_fields(w, ORR_T("ranks", item->ranks), ORR_U("rank_count", item->rank_count),
                        ORR_U("node", item->node), ORR_T("name", item->name),
                        ORR_T("file", item->where.path));
    if (item->where.byte != ORR_NO_BYTE)
        orr_json_put_u64(w, "byte", item->where.byte);
    orr_json_put_text(w, "waits_for", item->waits_for);
    if (item->peer != ORR_STALL_NO_RANK)
        orr_json_put_u64(w, "peer", item->peer);
    if (item->has_message) {
        orr_json_put_fields(w, ORR_U("tag", item->tag), ORR_U("message_bytes", item->size));
    }
    if (item->is_collective)
        put_stalled_collective(w, item);
    orr_json_put_text(w, "text", item->text);
    orr_json_end_object(w);
}

static void put_items(writer *w, const char *key, const orr_stall_item *items, size_t count)
{
    orr_json_put_array(w, key);
    for (size_t i = 0; i < count; i++)
        put_item(w, &items[i]);
    orr_json_end_array(w);
}

static void put_stall(writer *w, const orr_stall *r)
{
    if (!r)
        return;
    orr_json_put_object(w, "stall");
    orr_json_put_fields(w, ORR_U("unfinished_ranks", r->unfinished),
                        ORR_T("cause", orr_stall_cause_name(r->cause)),
                        ORR_T("summary", r->summary));
    put_items(w, "causes", r->causes, r->cause_count);
    orr_json_put_u64(w, "cycle_length", r->cycle_length);
    put_items(w, "cycle", r->cycle, r->cycle_count);
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

/* Only for a run of jobs; hosts are ranks of the machine. */
static void put_jobs(writer *w, const orr__run_facts *f, bool is_brief)
{
    if (!f->job_count)
        return;
    orr_json_put_array(w, "jobs");
    for (size_t j = 0; j < f->job_count; j++) {
        const orr__run_job *k = &f->jobs[j];
        orr_json_begin_object(w);
        orr_json_put_fields(
            w, ORR_KU("finished_ns", k->is_finished && f->steps.asked <= 1, k->finished_ns),
            ORR_KU("compute_mean_ns", k->is_finished, k->compute_ns),
            ORR_KU("exposed_communication_mean_ns", k->is_finished, k->exposed_ns),
            ORR_KD("tokens_per_s", k->tokens_per_s > 0, k->tokens_per_s));
        orr_json_put_array(w, "hosts");
        for (uint32_t i = 0; i < k->ranks && !is_brief; i++)
            orr_json_u64(w, k->hosts[i]);
        orr_json_end_array(w);
        orr_json_end_object(w);
    }
    orr_json_end_array(w);
}

static void put_ranks(writer *w, const orr__run_facts *f, bool is_brief)
{
    if (!is_brief) {
        orr_json_put_array(w, "finish_order");
        for (uint32_t i = 0; i < f->finished; i++)
            orr_json_u64(w, f->finish_order[i]);
        orr_json_end_array(w);
    }
    orr_json_put_array(w, "per_rank");
    for (uint32_t r = 0; r < f->ranks; r++) {
        if (is_brief && repeats(f, r))
            continue;
        orr_json_begin_object(w);
        orr_json_put_u64(w, "rank", r);
        for (unsigned k = 0; k < ORR__FIGURES; k++)
            orr_json_put_known(w, figure_keys[k], f->times[r][k] != ORR_NEVER, f->times[r][k]);
        orr_json_put_known(w, "peak_memory_bytes", f->peak_memory,
                           f->peak_memory ? f->peak_memory[r] : 0);
        orr_json_end_object(w);
    }
    orr_json_end_array(w);
}

/* Brief: for callers that only need minimum and maximum of lists, as a sweep does ten thousand
 * times. */
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
    put_jobs(&w, f, is_brief);
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

static void print_csv_head(const orr_sim *s, bool is_alike, orr_buf *b)
{
    orr__provenance p;
    orr__provenance_line lines[ORR__PROVENANCE_LINES];
    orr_arena *a = orr_arena_create();
    size_t count = 0;
    const bool ok = a && orr__provenance_take(s, &p) && orr__provenance_lines(&p, a, lines, &count);
    b->failed |= !ok;
    orr_buf_print(b, "# format: orrery-run-%s %d\n", is_alike ? "alike" : "ranks", FORMAT_VERSION);
    for (size_t i = 0; ok && i < count; i++)
        orr_buf_print(b, "# %s: %s\n", lines[i].key, lines[i].value);
    orr_buf_text(b, "rank");
    for (unsigned k = 0; k < ORR__FIGURES; k++)
        orr_buf_print(b, ",%s", figure_keys[k]);
    orr_buf_text(b, ",peak_memory_bytes\n");
    orr_arena_destroy(a);
}

orr_code orr_sim_write_csv(const orr_sim *s, bool is_alike, const char *path, orr_error *err)
{
    orr__run_facts *f;
    orr_buf b = {0};
    orr_code code = orr__run_facts_take(s, &f, err);
    if (code)
        return code;
    print_csv_head(s, is_alike, &b);
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
    if (is_alike)
        orr__csv_join_alike(&b);
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

enum { TOP = 5, BAR_CELLS = 12, PATH_CELLS = 16 };

/* "12.3 ms"; 0 has no unit. */
static char *ns_text(uint64_t ns, char out[ORR_UNIT_ROOM])
{
    if (ns == 0) {
        memcpy(out, "0", 2);
        return out;
    }
    if (ns <= INT64_MAX / 1000)
        return orr_time_text((orr_ps)(ns * 1000), out);
    /* More than 106 days, which do not fit in picoseconds. */
    orr_count_text(ns / 1000000000, out);
    memcpy(out + strlen(out), " s", 3);
    return out;
}

/* ---- the head ---- */

/* Consecutive steps; everything below is about the last one. */
static void print_steps(const orr__run_facts *f, orr_buf *b)
{
    const orr_sim_steps *s = &f->steps;
    char total[ORR_UNIT_ROOM], exact[ORR_UNIT_ROOM], first[ORR_UNIT_ROOM], last[ORR_UNIT_ROOM];
    char span[ORR_UNIT_ROOM];
    orr_buf_print(b, "%u ranks finished %u steps after %s (%s ns)\n", f->ranks, s->asked,
                  ns_text(s->total, total), orr_count_text(s->total, exact));
    orr_buf_print(b, "the first took %s, the last %s", ns_text(s->first, first),
                  ns_text(s->last, last));
    if (s->simulated < s->asked)
        orr_buf_print(b, "; %u %s simulated, the rest follows from %s", s->simulated,
                      s->simulated == 1 ? "was" : "were", s->simulated == 1 ? "it" : "these");
    orr_buf_print(
        b, "\nbelow: the last step, which ranks begin and end at different times, %s in total\n",
        ns_text(f->end_ns, span));
}

static void print_head(const orr__run_facts *f, orr_buf *b)
{
    char time[ORR_UNIT_ROOM], exact[ORR_UNIT_ROOM];
    ns_text(f->end_ns, time);
    orr_count_text(f->end_ns, exact);
    if (f->finished == f->ranks && f->steps.asked > 1)
        print_steps(f, b);
    else if (f->finished == f->ranks)
        orr_buf_print(b, "%u rank%s finished after %s (%s ns)\n", f->ranks,
                      f->ranks == 1 ? "" : "s", time, exact);
    else
        orr_buf_print(b, "%s at %s (%s ns): %u of %u ranks had finished\n", f->status, time, exact,
                      f->finished, f->ranks);
}

/* "198-231": both ends in the unit of the value before it. */
static void print_ends(double low_ns, double high_ns, const char *value, orr_buf *b)
{
    char ends[64];
    orr_buf_print(b, "%s", orr_ends_text(value, low_ns * 1e3, high_ns * 1e3, ends, sizeof ends));
}

/* " (198-231)", of one of so many parts. */
static void print_interval(const orr__run_facts *f, const char *value, double parts, orr_buf *b)
{
    const orr__interval *x = &f->interval;
    if (!x->high_ns || !strchr(value, ' '))
        return;
    orr_buf_print(b, " (");
    print_ends((double)x->low_ns / parts, (double)x->high_ns / parts, value, b);
    orr_buf_byte(b, ')');
}

/* Of what a request waits for: no idle time. */
static void print_wait_ends(const orr__interval *x, double ns, const char *value, orr_buf *b)
{
    print_ends(ns * (1 - x->low_share), ns * (1 + x->high_share), value, b);
}

/* Waits of the device for the host that are worth a line, as a share of compute. */
#define HOST_SHOWN 0.1

/* Waits for the host are a part of compute, as a chip twice as fast would not shorten them. */
static void print_host(const orr__run_facts *f, orr_buf *b)
{
    if (f->interval.host >= HOST_SHOWN)
        orr_buf_print(b, "%.0f %% of compute time the device waits for the host to issue kernels\n",
                      100 * f->interval.host);
}

static void print_guessed(const orr__run_facts *f, orr_buf *b)
{
    if (f->interval.guessed_most)
        orr_buf_print(b,
                      "%.0f %% of compute time is in kernels unlike any measured one,\nmostly: "
                      "%s\n",
                      100 * f->interval.guessed, f->interval.guessed_most);
}

/* "step 5.10 s: 1.64 M tokens/s, 1,607 per device; 411 TFLOP/s per device, MFU 41.6 % of ..." */
static void print_throughput(const orr__run_facts *f, orr_buf *b)
{
    const orr__throughput *p = &f->throughput;
    char step[ORR_UNIT_ROOM], all[ORR_UNIT_ROOM], one[ORR_UNIT_ROOM];
    if (!p->steps && f->interval.high_ns) {
        orr_buf_print(b, "90 %% interval: %s", ns_text(f->end_ns, step));
        print_interval(f, step, 1, b);
        orr_buf_byte(b, '\n');
    }
    if (!p->steps)
        return;
    ns_text((uint64_t)(p->step_seconds * 1e9 + 0.5), step);
    orr_buf_print(b, "%s %s", p->steps > 1 ? "a step takes" : "step", step);
    print_interval(f, step, p->steps, b);
    orr_buf_print(b, ": %s tokens/s, %s per device",
                  orr_count_text((uint64_t)(p->tokens_per_s + 0.5), all),
                  orr_count_text((uint64_t)(p->tokens_per_s / f->devices + 0.5), one));
    if (p->flops_per_s > 0)
        orr_buf_print(b, "\n%.4g TFLOP/s per device", p->flops_per_s / 1e12);
    if (p->mfu > 0)
        orr_buf_print(b, ", MFU %.1f %% of %.4g TFLOP/s (%s)", 100 * p->mfu, p->peak_flops / 1e12,
                      p->peak_of);
    orr_buf_byte(b, '\n');
}

/* "8 requests: first token after 50.6 ms (42.9-59.6; 50.6 ms at most), the next after 4.97 ms
 * (4.21-5.85);" */
static void print_serving(const orr__run_facts *f, orr_buf *b)
{
    const orr__serving *p = &f->serving;
    const orr__interval *x = &f->interval;
    char a[4][ORR_UNIT_ROOM];
    if (!p->requests)
        return;
    orr_buf_print(b, "%s request%s: first token after %s (", orr_count_text(p->requests, a[0]),
                  p->requests == 1 ? "" : "s", ns_text((uint64_t)(p->first_mean_ns + 0.5), a[1]));
    if (x->high_ns && strchr(a[1], ' ')) {
        print_wait_ends(x, p->first_mean_ns, a[1], b);
        orr_buf_print(b, "; ");
    }
    orr_buf_print(b, "%s at most)", ns_text(p->first_max_ns, a[2]));
    if (p->next_mean_ns > 0)
        orr_buf_print(b, ", the next after %s", ns_text((uint64_t)(p->next_mean_ns + 0.5), a[0]));
    if (p->next_mean_ns > 0 && x->high_ns && strchr(a[0], ' ')) {
        orr_buf_print(b, " (");
        print_wait_ends(x, p->next_mean_ns, a[0], b);
        orr_buf_byte(b, ')');
    }
    orr_buf_print(b, ";\n%s token%s until %s: %s tokens/s, %s per device\n",
                  orr_count_text(p->tokens, a[0]), p->tokens == 1 ? "" : "s",
                  ns_text(p->end_ns, a[1]), orr_figure_text(p->tokens_per_s, a[2]),
                  orr_figure_text(p->tokens_per_s / f->devices, a[3]));
}

/* ---- ranks ---- */

static const char *const labels[ORR__FIGURES] = {
    [ORR__FIGURE_FINISHED] = "finished after",
    [ORR__FIGURE_COMPUTE] = "compute",
    [ORR__FIGURE_COMMUNICATION] = "communication",
    [ORR__FIGURE_EXPOSED] = "  exposed",
    [ORR__FIGURE_MEMORY] = "remote memory",
    [ORR__FIGURE_HOST] = "host",
    [ORR__FIGURE_WAITING] = "waits for peers",
    [ORR__FIGURE_BUBBLE] = "pipeline bubble",
    [ORR__FIGURE_IDLE] = "idle",
};

static void print_time(orr_buf *b, uint64_t ns)
{
    char text[ORR_UNIT_ROOM];
    orr_buf_print(b, "  %10s", ns_text(ns, text));
}

static bool is_optional(orr__figure f)
{
    return f == ORR__FIGURE_MEMORY || f == ORR__FIGURE_HOST || f == ORR__FIGURE_WAITING ||
           f == ORR__FIGURE_BUBBLE;
}

static void print_ranks(const orr__run_facts *f, orr_buf *b)
{
    char share[ORR_UNIT_ROOM], bar[ORR_BAR_ROOM];
    orr_buf_print(b, "\n%-16s  %10s  %10s  %10s  %8s\n", "per rank", "min", "mean", "max", "share");
    for (unsigned k = 0; k < ORR__FIGURES; k++) {
        const orr__figure_spread *v = &f->spread[k];
        const uint64_t mean = (uint64_t)(v->mean + 0.5);
        if (v->ranks == 0 || (v->most == 0 && is_optional((orr__figure)k)))
            continue;
        orr_buf_print(b, "%-16s",
                      k == ORR__FIGURE_EXPOSED && !f->is_split ? "exposed, waiting" : labels[k]);
        print_time(b, v->least);
        print_time(b, mean);
        print_time(b, v->most);
        if (k != ORR__FIGURE_FINISHED)
            orr_buf_print(b, "  %8s%s%s", orr_percent_text(mean, f->end_ns, share),
                          mean ? "  " : "", orr_bar_text(mean, f->end_ns, BAR_CELLS, bar));
        orr_buf_byte(b, '\n');
    }
}

static int compare_bytes(const void *a, const void *b)
{
    const orr_bytes x = *(const orr_bytes *)a, y = *(const orr_bytes *)b;
    return x < y ? -1 : x > y;
}

/* Several jobs on one machine: end, compute and exposed time of each. */
static void print_jobs(const orr__run_facts *f, orr_buf *b)
{
    if (f->job_count < 2)
        return;
    orr_buf_text(b, "\njob    ranks  first host    finished     compute     exposed    tokens/s\n");
    for (size_t j = 0; j < f->job_count; j++) {
        const orr__run_job *k = &f->jobs[j];
        char ranks[ORR_UNIT_ROOM], tokens[ORR_UNIT_ROOM] = "";
        orr_buf_print(b, "%3zu %8s  %10u ", j + 1, orr_count_text(k->ranks, ranks), k->hosts[0]);
        if (!k->is_finished) {
            orr_buf_print(b, "%12s\n", "not yet");
            continue;
        }
        if (f->steps.asked > 1)
            orr_buf_print(b, "%12s", "");
        else
            print_time(b, k->finished_ns);
        print_time(b, k->compute_ns);
        print_time(b, k->exposed_ns);
        if (k->tokens_per_s > 0)
            orr_buf_print(b, "%12s", orr_count_text((uint64_t)(k->tokens_per_s + 0.5), tokens));
        orr_buf_byte(b, '\n');
    }
}

static void print_peak_memory(const orr__run_facts *f, orr_buf *b)
{
    const uint32_t n = f->finished;
    char least[ORR_UNIT_ROOM], mean[ORR_UNIT_ROOM], most[ORR_UNIT_ROOM];
    double sum = 0;
    if (!f->peak_memory || n == 0)
        return;
    orr_bytes *peaks = orr_arena_new(f->arena, n, orr_bytes);
    b->failed |= !peaks;
    if (!peaks)
        return;
    for (uint32_t i = 0; i < n; i++) {
        peaks[i] = f->peak_memory[f->finish_order[i]];
        sum += (double)peaks[i];
    }
    orr_sort(peaks, n, sizeof *peaks, compare_bytes);
    orr_buf_print(b, "%-16s  %10s  %10s  %10s\n", "peak memory", orr_bytes_text(peaks[0], least),
                  orr_bytes_text((orr_bytes)(sum / n + 0.5), mean),
                  orr_bytes_text(peaks[n - 1], most));
}

/* ---- collectives ---- */

static const char *collective_text(const orr__comm_facts *t)
{
    const char *name = orr_collective_name(t->type);
    return name ? name : "unknown";
}

/* "16", or "8 x 128": the size of a group, and the number of such groups. */
static void print_group(orr_buf *b, const orr__comm_facts *t)
{
    char text[32] = "?";
    orr_buf room = {0};
    if (t->group_ranks && t->groups > 1)
        orr_buf_print(&room, "%u x %u", t->group_ranks, t->groups);
    else if (t->group_ranks)
        orr_buf_print(&room, "%u", t->group_ranks);
    if (room.len && room.len < sizeof text) {
        memcpy(text, room.ptr, room.len);
        text[room.len] = '\0';
    }
    b->failed |= room.failed;
    orr_buf_fini(&room);
    orr_buf_print(b, " %11s", text);
}

/* Calls per rank: an integer unless ranks differ. */
static void print_calls(orr_buf *b, uint64_t calls, uint32_t ranks)
{
    char text[ORR_UNIT_ROOM];
    const uint64_t tenths = ranks ? (calls * 10 + ranks / 2) / ranks : 0;
    orr_count_text(tenths / 10, text);
    if (tenths % 10 == 0)
        orr_buf_print(b, " %8s", text);
    else
        orr_buf_print(b, " %6s.%u", text, (unsigned)(tenths % 10));
}

static void print_collective(orr_buf *b, const orr__comm_facts *t)
{
    char text[ORR_UNIT_ROOM];
    const uint32_t members = t->ranks ? t->ranks : 1;
    orr_buf_print(b, "%-20s", collective_text(t));
    print_group(b, t);
    orr_buf_print(b, " %10s", orr_bytes_text(t->size, text));
    print_calls(b, t->count, t->ranks);
    orr_buf_print(b, " %10s", ns_text(t->time / members, text));
    orr_buf_print(b, " %10s\n", ns_text(t->exposed / members, text));
}

static void print_rows(const orr__run_facts *f, orr_buf *b, const char *title, const uint32_t *rows)
{
    const uint32_t count = f->collective_count;
    orr_buf_print(b, "\n%-20s %11s %10s %8s %10s %10s\n", title, "ranks", "size", "calls", "time",
                  "exposed");
    for (uint32_t i = 0; i < count && i < TOP; i++)
        print_collective(b, &f->collectives[rows[i]]);
    if (count > TOP)
        orr_buf_print(b, "and %u more kinds\n", count - TOP);
}

/* Does the first TOP of one list hold the same rows as that of the other? */
static bool has_same_top(const uint32_t *a, const uint32_t *b, uint32_t count)
{
    const uint32_t top = count < TOP ? count : TOP;
    for (uint32_t i = 0; i < top; i++) {
        uint32_t k = 0;
        while (k < top && b[k] != a[i])
            k++;
        if (k == top)
            return false;
    }
    return true;
}

static void print_collectives(const orr__run_facts *f, orr_buf *b)
{
    if (f->collective_count)
        print_rows(f, b, "collectives by time", f->by_time);
    if (!has_same_top(f->by_time, f->by_bytes, f->collective_count))
        print_rows(f, b, "collectives by bytes", f->by_bytes);
}

/* ---- messages between nodes ---- */

static void print_messages(orr_buf *b, const orr__comm_facts *t, const char *what)
{
    char count[ORR_UNIT_ROOM], bytes[ORR_UNIT_ROOM], time[ORR_UNIT_ROOM], longest[ORR_UNIT_ROOM];
    if (t->count == 0)
        return;
    orr_buf_print(b, "%-16s  %12s  %12s  %12s  %12s\n", what, orr_count_text(t->count, count),
                  orr_bytes_text(t->bytes, bytes), ns_text(t->time / t->count, time),
                  ns_text(t->longest, longest));
}

static void print_point_to_point(const orr__run_facts *f, orr_buf *b)
{
    if (!f->sends.count && !f->receives.count)
        return;
    orr_buf_print(b, "\n%-16s  %12s  %12s  %12s  %12s\n", "point to point", "count", "bytes",
                  "average", "longest");
    print_messages(b, &f->sends, "sends");
    print_messages(b, &f->receives, "receives");
}

/* ---- dimensions ---- */

static void print_dimension(const orr__run_facts *f, orr_buf *b, uint32_t k)
{
    const orr_sim_dimension *d = &f->dimensions[k];
    char count[ORR_UNIT_ROOM], bytes[ORR_UNIT_ROOM], rate[ORR_UNIT_ROOM], share[ORR_UNIT_ROOM];
    const double end = (double)f->end_ns, ranks = f->ranks;
    const double per_rank = end > 0 ? (double)d->bytes / ranks / end : 0; /* bytes per ns */
    const double links = d->bandwidth * d->links / 1e9;
    orr_buf label = {0};
    if (d->shape)
        orr_buf_print(&label, "%u: %s %u", k, d->shape, d->ranks);
    else
        orr_buf_print(&label, "%u: %u ranks", k, d->ranks);
    orr_buf_print(b, "%-22.*s %12s %11s %13s %12s\n", (int)label.len, (const char *)label.ptr,
                  orr_count_text(d->messages, count), orr_bytes_text(d->bytes, bytes),
                  orr_rate_text((orr_Bps)(per_rank * 1e9), rate),
                  orr_percent_text((uint64_t)(per_rank * 1e6), (uint64_t)(links * 1e6), share));
    b->failed |= label.failed;
    orr_buf_fini(&label);
}

static void print_dimensions(const orr__run_facts *f, orr_buf *b)
{
    orr_buf_print(b, "\n%-22s %12s %11s %13s %12s\n", "dimension", "messages", "bytes",
                  "rate per rank", "link use");
    for (uint32_t k = 0; k < f->dimension_count; k++)
        print_dimension(f, b, k);
}

static void print_links(const orr__run_facts *f, orr_buf *b)
{
    char bytes[ORR_UNIT_ROOM], busy[ORR_UNIT_ROOM], share[ORR_UNIT_ROOM], queue[ORR_UNIT_ROOM];
    const uint32_t shown = f->link_count < TOP ? f->link_count : TOP;
    if (f->links_used)
        orr_buf_print(b, "\n%-30s %11s %12s %8s %13s\n", "busiest links", "bytes", "busy", "share",
                      "longest queue");
    for (uint32_t i = 0; i < shown; i++) {
        const orr_net_link *l = &f->links[i];
        orr_buf_print(b, "%-30s %11s %12s %8s %13s\n", l->name, orr_bytes_text(l->bytes, bytes),
                      ns_text(l->busy_ns, busy), orr_percent_text(l->busy_ns, f->end_ns, share),
                      orr_count_text(l->max_queue, queue));
    }
    if (f->links_used > shown)
        orr_buf_print(b, "and %s more with traffic\n",
                      orr_count_text(f->links_used - shown, queue));
}

/* ---- the critical path ---- */

/* Consecutive steps of one rank and one kind of work, none but the first delayed by another rank:
 * one line. */
typedef struct stretch {
    uint32_t first, last; /* steps */
    uint32_t steps;       /* those that take time */
    uint64_t from, to;
} stretch;

static bool goes_on(const orr_critical_path *p, const stretch *r, const orr_path_step *s)
{
    const orr_path_step *first = &p->steps[r->first];
    return s->rank == first->rank && s->held == ORR_PATH_NOT_HELD &&
           strcmp(s->what, first->what) == 0;
}

static stretch *find_stretches(const orr_critical_path *p, uint32_t *count)
{
    stretch *rows = orr_alloc(p->step_count, sizeof *rows);
    *count = 0;
    for (uint32_t i = 0; rows && i < p->step_count; i++) {
        const orr_path_step *s = &p->steps[i];
        stretch *r = *count ? &rows[*count - 1] : NULL;
        if (s->from == s->to)
            continue;
        if (!r || !goes_on(p, r, s)) {
            r = &rows[(*count)++];
            *r = (stretch){.first = i, .from = s->from};
        }
        r->last = i;
        r->steps++;
        r->to = s->to;
    }
    return rows;
}

static int compare_stretch(const void *a, const void *b)
{
    const stretch *x = a, *y = b;
    if (x->to - x->from != y->to - y->from)
        return x->to - x->from > y->to - y->from ? -1 : 1;
    return x->first < y->first ? -1 : x->first > y->first;
}

static int compare_first(const void *a, const void *b)
{
    const stretch *x = a, *y = b;
    return x->first < y->first ? -1 : x->first > y->first;
}

static void print_shares(orr_buf *b, const orr_critical_path *p)
{
    char time[ORR_UNIT_ROOM], share[ORR_UNIT_ROOM], steps[ORR_UNIT_ROOM], bar[ORR_BAR_ROOM];
    orr_buf_print(b, "\n%-22s %12s %11s %13s\n", "critical path", "steps", "time", "share");
    for (size_t i = 0; i < p->share_count; i++)
        orr_buf_print(b, "%-22s %12s %11s %13s%s%s\n", p->shares[i].what,
                      orr_count_text(p->shares[i].steps, steps), ns_text(p->shares[i].time, time),
                      orr_percent_text(p->shares[i].time, p->total, share),
                      p->shares[i].time ? "  " : "",
                      orr_bar_text(p->shares[i].time, p->total, PATH_CELLS, bar));
}

/* What delayed the end of a step, in brief. */
static void print_reason(orr_buf *b, const orr_critical_path *p, uint32_t i)
{
    const orr_path_step *s = &p->steps[i], *before = i ? s - 1 : NULL;
    switch (s->held) {
    case ORR_PATH_MESSAGE:
        orr_buf_print(b, "message from rank %u", s->held_rank);
        return;
    case ORR_PATH_RECEIVER:
        orr_buf_print(b, "rank %u was not ready", s->held_rank);
        return;
    case ORR_PATH_LAST_RANK:
        orr_buf_print(b, "rank %u came last", s->held_rank);
        return;
    default:
        break;
    }
    if (!before)
        orr_buf_text(b, "the start");
    else if (s->after == ORR_PATH_START)
        orr_buf_text(b, "its late start");
    else if (s->after == ORR_PATH_DEPENDENCY)
        orr_buf_print(b, "needs node %" PRIu64, before->node);
    else if (s->after == ORR_PATH_SLOT)
        orr_buf_print(b, "slot of node %" PRIu64, before->node);
    else if (s->after == ORR_PATH_SERVER)
        orr_buf_print(b, "server, for rank %u", before->rank);
    else
        orr_buf_print(b, "turn after node %" PRIu64, before->node);
}

/* Text from a file must not contain terminal control characters, nor shift a column. */
static void print_cell(orr_buf *b, const char *text, size_t length, size_t width)
{
    for (size_t n = 0; n < width; n++) {
        const char c = n < length ? text[n] : ' ';
        const bool is_cut = n + 1 == width && length > width;
        orr_buf_byte(b, (uint8_t)(is_cut ? '~' : c >= 0x20 && c < 0x7f ? c : '?'));
    }
}

static void print_stretch(orr_buf *b, const orr_critical_path *p, const stretch *r)
{
    enum { WHAT_WIDTH = 30 };
    const orr_path_step *s = &p->steps[r->first];
    char from[ORR_UNIT_ROOM], took[ORR_UNIT_ROOM];
    orr_buf what = {0};
    if (r->steps > 1)
        orr_buf_print(&what, "%u x %s, nodes %" PRIu64 "-%" PRIu64, r->steps, s->what, s->node,
                      p->steps[r->last].node);
    else
        orr_buf_print(&what, "%s, node %" PRIu64 " %s", s->what, s->node, s->name);
    orr_buf_print(b, "%9s %9s %6u ", ns_text(r->from, from), ns_text(r->to - r->from, took),
                  s->rank);
    print_cell(b, (const char *)what.ptr, what.len, WHAT_WIDTH);
    orr_buf_byte(b, ' ');
    print_reason(b, p, r->first);
    orr_buf_byte(b, '\n');
    b->failed |= what.failed;
    orr_buf_fini(&what);
}

static void print_path(const orr__run_facts *f, orr_buf *b)
{
    const orr_critical_path *p = f->path;
    uint32_t count;
    if (!p)
        return;
    stretch *rows = find_stretches(p, &count);
    b->failed |= !rows;
    if (rows) {
        print_shares(b, p);
        orr_sort(rows, count, sizeof *rows, compare_stretch);
        const uint32_t shown = count < f->path_shown ? count : f->path_shown;
        orr_sort(rows, shown, sizeof *rows, compare_first);
        orr_buf_print(b, "\n%9s %9s %6s %-30s %s\n", "from", "took", "rank",
                      shown < count ? "its longest parts" : "step by step", "waited for");
        for (uint32_t i = 0; i < shown; i++)
            print_stretch(b, p, &rows[i]);
    }
    orr_free(rows);
}

/* ---- everything ---- */

static void print_packets(const orr__run_facts *f, orr_buf *b)
{
    char data[ORR_UNIT_ROOM], again[ORR_UNIT_ROOM], pauses[ORR_UNIT_ROOM], marked[ORR_UNIT_ROOM];
    char dropped[ORR_UNIT_ROOM], timeouts[ORR_UNIT_ROOM];
    if (!f->packets)
        return;
    const orr_packet_figures *g = &f->packets->figures;
    orr_buf_print(
        b, "packets: %s with data, %s retransmitted; %s pauses, %s marked, %s lost, %s timeouts\n",
        orr_count_text(g->data_packets, data), orr_bytes_text(g->retransmitted_bytes, again),
        orr_count_text(g->pauses, pauses), orr_count_text(g->marked, marked),
        orr_count_text(g->dropped + g->lost, dropped), orr_count_text(g->timeouts, timeouts));
    orr__packet_put_notes(b, f->packets);
}

static void print_all(const orr__run_facts *f, orr_buf *b)
{
    char messages[ORR_UNIT_ROOM], events[ORR_UNIT_ROOM];
    print_head(f, b);
    print_throughput(f, b);
    print_serving(f, b);
    print_host(f, b);
    print_guessed(f, b);
    print_jobs(f, b);
    print_ranks(f, b);
    print_peak_memory(f, b);
    print_collectives(f, b);
    print_point_to_point(f, b);
    print_dimensions(f, b);
    print_links(f, b);
    print_path(f, b);
    orr_buf_byte(b, '\n');
    if (f->machine)
        orr_buf_print(b, "machine %s; ", f->machine);
    orr_buf_print(b, "compute: %s\n", f->compute);
    orr_buf_print(b, "network %s; %s messages, %s events", f->network,
                  orr_count_text(f->messages, messages), orr_count_text(f->events, events));
    if (f->simulated < f->ranks) {
        char some[ORR_UNIT_ROOM], all[ORR_UNIT_ROOM];
        orr_buf_print(b, "; %s of %s ranks simulated", orr_count_text(f->simulated, some),
                      orr_count_text(f->ranks, all));
        if (f->simulated_last < f->simulated)
            orr_buf_print(b, ", %s at the end", orr_count_text(f->simulated_last, some));
    }
    orr_buf_text(b, "\n");
    print_packets(f, b);
    for (size_t i = 0; i < f->warning_count; i++)
        orr_buf_print(b, "%simplausible: %s\n", i ? "" : "\n", f->warnings[i]);
}

orr_code orr_sim_write_text(const orr_sim *s, const char *path, orr_error *err)
{
    orr__run_facts *f;
    orr_buf b = {0};
    orr_code code = orr__run_facts_take(s, &f, err);
    if (code)
        return code;
    print_all(f, &b);
    code = orr_output_save(&b, path, err);
    orr_buf_fini(&b);
    orr__run_facts_destroy(f);
    return code;
}
