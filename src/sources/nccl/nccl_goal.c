/* SPDX-License-Identifier: Apache-2.0 */
/* nccl_goal.c - the whole way from exports to a schedule.
 *
 *     scan -> communicators -> (what all ranks have) -> (may streams be merged?) -> (measure) -> write
 *
 * Steps in brackets look at every GPU once more; with all rows in memory that costs little, and
 * with too many of them it is what keeps memory bounded by one GPU.  Measuring is writing with a
 * dry pen: it finds every fault before a byte is written, counts messages, and tells how wide tags
 * must be. */
#include "nccl_impl.h"
#include "nccl_write.h"

#include "base/io/output.h"
#include "base/memory/hash.h"
#include "base/text/text.h"

#include <inttypes.h>
#include <string.h>

/* ==== does every message that is sent get received?
 *
 * For each ordered pair of ranks two sums are kept: messages sent less messages received, and the
 * same of a hash of each message (operation, number, size).  A message that is sent and received
 * leaves both at zero.  So the book has an entry for each pair and not for each message; a false
 * "all match" needs hashes of 64 bits to cancel out. */

typedef struct pair {
    uint32_t from, to;
    uint64_t sent, received;
    uint64_t sum;
} pair;

struct nccl_matching {
    orr_map *number; /* from << 32 | to */
    pair *pairs;
    size_t count, room;
    uint64_t last_key; /* messages of a pair come in runs */
    size_t last;
};

nccl_matching *nccl_matching_create(void)
{
    nccl_matching *m = orr_alloc(1, sizeof *m);
    if (!m)
        return NULL;
    m->number = orr_map_create(256);
    m->last_key = UINT64_MAX;
    if (m->number)
        return m;
    orr_free(m);
    return NULL;
}

void nccl_matching_destroy(nccl_matching *m)
{
    if (!m)
        return;
    orr_map_destroy(m->number);
    orr_free(m->pairs);
    orr_free(m);
}

static pair *find_pair(nccl_matching *m, uint32_t from, uint32_t to)
{
    const uint64_t key = (uint64_t)from << 32 | to;
    if (key == m->last_key)
        return &m->pairs[m->last];
    uint32_t at = orr_map_find(m->number, key, ORR__NONE);
    if (at == ORR__NONE) {
        at = (uint32_t)m->count;
        if (!orr_map_put(m->number, key, at, NULL) || !orr_grow(&m->pairs, &m->room, m->count + 1))
            return NULL;
        m->pairs[m->count++] = (pair){.from = from, .to = to};
    }
    m->last_key = key;
    m->last = at;
    return &m->pairs[at];
}

bool nccl_matching_add(nccl_matching *m, const nccl_match_key *key)
{
    pair *p = find_pair(m, key->from, key->to);
    if (!p)
        return false;
    const uint64_t hash = orr_hash_mix(
        orr_hash_mix(key->context + 0x9e3779b97f4a7c15u, key->id + 0xbf58476d1ce4e5b9u),
        key->bytes + 0x94d049bb133111ebu);
    p->sum += key->is_send ? hash : 0 - hash;
    *(key->is_send ? &p->sent : &p->received) += 1;
    return true;
}

orr_code nccl_matching_check(const nccl_matching *m, uint64_t *unmatched, orr_error *err)
{
    const pair *worst = NULL;
    *unmatched = 0;
    for (size_t i = 0; i < m->count; i++) {
        const pair *p = &m->pairs[i];
        if (p->sent == p->received && p->sum == 0)
            continue;
        const uint64_t more = p->sent > p->received ? p->sent - p->received : p->received - p->sent;
        *unmatched += more ? more : 1;
        worst = worst ? worst : p;
    }
    if (!worst)
        return ORR_OK;
    if (worst->sent != worst->received)
        return orr_fail(
            err, ORR_EINPUT, NULL,
            "rank %" PRIu32 " sends %" PRIu64 " messages to rank %" PRIu32
            ", which receives %" PRIu64
            ": the exports do not cover the same calls (--keep-unmatched writes them anyway)",
            worst->from, worst->sent, worst->to, worst->received);
    return orr_fail(err, ORR_EINPUT, NULL,
                    "rank %" PRIu32 " and rank %" PRIu32 " do not agree on the %" PRIu64
                    " messages from the first to the second (--keep-unmatched writes them anyway)",
                    worst->from, worst->to, worst->sent);
}

static const uint64_t default_budget = UINT64_C(512) << 20;

typedef struct run {
    nccl_job job;
    nccl_writer writer;
    orr_npkit *simple, *ll;
    nccl_matching *matching;
    bool is_merged;
} run;

/* ---- setting up ---- */

static orr_code init_job(nccl_job *j,
                         const orr_nccl_options *opt,
                         orr_nccl_report *report,
                         orr_error *err)
{
    *j = (nccl_job){.opt = opt,
                    .rules = nccl_nccl_rules(opt->rules),
                    .report = report,
                    .arena = orr_arena_create(),
                    .texts = orr_intern_create(),
                    .gpu_of = orr_map_create(64),
                    .member_of = orr_map_create(64),
                    .pair_of = orr_map_create(64),
                    .classes = orr_intern_create(),
                    .budget = opt->memory ? opt->memory : default_budget};
    const bool is_there =
        j->arena && j->texts && j->gpu_of && j->member_of && j->pair_of && j->classes;
    return is_there ? ORR_OK : orr_no_memory(err);
}

/* Plans of MSCCL and MSCCL++, comma-separated. */
static orr_code read_plans(nccl_job *j, const char *list, orr_error *err)
{
    orr_code code = ORR_OK;
    while (list && *list && !code) {
        const size_t n = strcspn(list, ",");
        char *path = orr_arena_text(j->arena, (orr_str){list, n});
        if (!path || !orr_grow(&j->plans.at, &j->plans.room, j->plans.count + 1))
            return orr_no_memory(err);
        if (!(code = coll_plan_read(path, &j->plans.at[j->plans.count], err)))
            j->plans.count++;
        list += n + (list[n] == ',');
    }
    return code;
}

static void fini_job(nccl_job *j)
{
    for (size_t i = 0; i < j->plans.count; i++)
        coll_plan_destroy(j->plans.at[i]);
    orr_free(j->plans.at);
    for (size_t i = 0; i < j->gpus.count; i++)
        nccl_gpu_drop_rows(&j->gpus.at[i]);
    nccl_comms_fini(&j->comms);
    orr_free(j->files.at);
    orr_free(j->gpus.at);
    orr_free(j->members.at);
    orr_free(j->rings.at);
    orr_free(j->trees.at);
    orr_free(j->pairs.at);
    orr_map_destroy(j->gpu_of);
    orr_map_destroy(j->member_of);
    orr_map_destroy(j->pair_of);
    orr_intern_destroy(j->classes);
    orr_intern_destroy(j->texts);
    nccl_user_contexts_free(j->user_contexts);
    orr_arena_destroy(j->arena);
}

static orr_code read_tables(run *r, orr_error *err)
{
    const orr_nccl_options *opt = r->job.opt;
    orr_code code = ORR_OK;
    if (opt->simple_table)
        code = orr_npkit_read(opt->simple_table, &r->simple, err);
    if (!code && opt->ll_table)
        code = orr_npkit_read(opt->ll_table, &r->ll, err);
    if (!code && opt->contexts)
        code = nccl_user_contexts_read(opt->contexts,
                                       nccl_power_of_ten(nccl_old_context_width(opt)) - 1,
                                       &r->job.user_contexts, err);
    return code;
}

static void give_tables(run *r)
{
    const orr_nccl_options *opt = r->job.opt;
    r->writer.tables[0] = r->ll ? r->ll : r->simple;
    r->writer.tables[1] = r->simple ? r->simple : r->ll;
    r->writer.choice.how = opt->has_seed                      ? ORR_NPKIT_DRAWN
                           : r->job.rules->takes_first_timing ? ORR_NPKIT_FIRST
                                                              : ORR_NPKIT_MEAN;
    r->writer.choice.seed = opt->seed;
}

/* ---- looking ---- */

static orr_code decide_merging(run *r, orr_error *err)
{
    nccl_job *j = &r->job;
    r->is_merged = j->opt->is_merged;
    for (size_t i = 0; i < j->comms.ranked.count && r->is_merged; i++) {
        const uint32_t gpu = j->comms.ranked.at[i];
        const orr_code code = nccl_gpu_ready(j, gpu, err);
        if (code)
            return code;
        r->is_merged = !nccl_gpu_overlaps(&j->gpus.at[gpu]);
    }
    j->report->is_merged = r->is_merged;
    return ORR_OK;
}

static uint32_t digits_of(uint64_t v)
{
    uint32_t n = 1;
    while (v >= 10) {
        v /= 10;
        n++;
    }
    return n;
}

uint64_t nccl_power_of_ten(uint32_t n)
{
    uint64_t v = 1;
    while (n-- && v <= UINT64_MAX / 10)
        v *= 10;
    return v;
}

/* Contexts below `contexts`, message numbers up to `most_id`. */
static orr_code choose_tags(const nccl_job *j, uint64_t most_id, nccl_tags *t, orr_error *err)
{
    const orr_nccl_options *opt = j->opt;
    const uint64_t contexts = j->contexts ? j->contexts : 1, end_of_32 = UINT32_MAX;
    const uint32_t width = opt->context_width ? opt->context_width : digits_of(contexts - 1);
    uint64_t most;
    *t = (nccl_tags){.factor = nccl_power_of_ten(width),
                     .limit = opt->context_width ? nccl_power_of_ten(width) : 0,
                     .id_limit = opt->id_width ? nccl_power_of_ten(opt->id_width) : 0,
                     .digits = opt->id_width ? opt->id_width + width : 0};
    const bool fits = !__builtin_mul_overflow(most_id, t->factor, &most) &&
                      !__builtin_add_overflow(most, contexts - 1, &most);
    if (opt->tag_bits == 32 && (!fits || most >= end_of_32)) {
        if (opt->context_width || opt->id_width)
            return orr_fail(err, ORR_EINPUT, NULL, "with these widths tags do not fit 32 bits");
        /* Used again after so many operations: messages with the same tag are then matched in their
         * order. */
        t->id_space = most_id + 1 < 1u << 20 ? most_id + 1 : 1u << 20;
        t->factor = (end_of_32 - 1) / t->id_space;
        return ORR_OK;
    }
    return fits ? ORR_OK : orr_fail(err, ORR_EINPUT, NULL, "tags do not fit 64 bits");
}

static orr_code check_matching(run *r, orr_error *err)
{
    orr_error words;
    if (!r->matching)
        return ORR_OK;
    const orr_code code = nccl_matching_check(r->matching, &r->job.report->unmatched, &words);
    if (!code || r->job.opt->allows_unmatched)
        return ORR_OK;
    if (err)
        *err = words;
    return code;
}

static orr_code measure(run *r, orr_error *err)
{
    nccl_job *j = &r->job;
    nccl_writer *w = &r->writer;
    orr_code code = ORR_OK;
    if (!j->rules->has_decimal_tags && !(r->matching = nccl_matching_create()))
        return orr_no_memory(err);
    w->matching = r->matching;
    w->pen.is_dry = true;
    w->tags.factor = 1;
    for (size_t i = 0; i < j->comms.ranked.count && !code; i++) {
        code = nccl_gpu_ready(j, j->comms.ranked.at[i], err);
        if (!code)
            code = nccl_write_rank(w, j->comms.ranked.at[i], r->is_merged);
        j->report->operations += w->pen.labels;
    }
    if (!code)
        code = check_matching(r, err);
    if (!code && !j->rules->has_decimal_tags)
        code = choose_tags(j, w->most_id, &w->tags, err);
    w->matching = NULL;
    w->pen.is_dry = false;
    if (j->opt->output || j->opt->parts) {
        w->pen.messages = w->pen.bytes = w->overlaps = w->left_out = 0;
        j->report->operations = 0;
    }
    w->most_tag = 0;
    return code;
}

/* The old way finds most faults while it writes; where that would be too late, it measures too. */
static bool must_measure(const orr_nccl_options *opt)
{
    const int files = (opt->output != NULL) + (opt->events != NULL) + 2 * (opt->parts != NULL);
    const bool is_pipe = opt->output && strcmp(opt->output, "-") == 0;
    if (files == 0)
        return true; /* somebody wants to know, not to have */
    return (!nccl_nccl_rules(opt->rules)->has_decimal_tags || files > 1 || is_pipe) &&
           (opt->output || opt->parts);
}

/* ---- writing ---- */

static orr_code write_part(run *r, uint32_t gpu, orr_output *out, orr_error *err)
{
    nccl_writer *w = &r->writer;
    orr_code code = nccl_gpu_ready(&r->job, gpu, err);
    if (code)
        return code;
    w->out = out;
    orr_buf_print(&w->pen.to, "rank %" PRIu32 " {\n", r->job.gpus.at[gpu].rank);
    code = nccl_write_rank(w, gpu, r->is_merged);
    orr_buf_text(&w->pen.to, "}\n");
    r->job.report->operations += w->pen.labels;
    if (!code && w->pen.to.failed)
        code = orr_no_memory(err);
    orr_output_drain(out, &w->pen.to);
    return code;
}

static orr_code write_goal(run *r, const char *path, orr_error *err)
{
    nccl_job *j = &r->job;
    orr_output *out;
    orr_code code = orr_output_open(path, &out, err);
    if (code)
        return code;
    orr_progress_start(&j->progress, "writing", "ranks", j->comms.ranked.count,
                       !j->opt->shows_progress);
    orr_buf_print(&r->writer.pen.to, "num_ranks %zu\n", j->comms.ranked.count);
    for (size_t i = 0; i < j->comms.ranked.count && !code; i++) {
        code = write_part(r, j->comms.ranked.at[i], out, err);
        orr_progress_add(&j->progress, 1);
    }
    orr_progress_end(&j->progress);
    orr_output_drain(out, &r->writer.pen.to);
    if (!code)
        return orr_output_commit(&out, err);
    orr_output_discard(out);
    return code;
}

static orr_code write_parts(run *r, orr_error *err)
{
    const nccl_job *j = &r->job;
    orr_code code = ORR_OK;
    for (size_t i = 0; i < j->comms.ranked.count && !code; i++) {
        orr_output *out;
        const char *path = orr_arena_print(r->job.arena, "%s/rank_%zu.goal", j->opt->parts, i);
        if (!path)
            return orr_no_memory(err);
        if ((code = orr_output_open(path, &out, err)))
            return code;
        code = write_part(r, j->comms.ranked.at[i], out, err);
        if (!code)
            code = orr_output_commit(&out, err);
        orr_output_discard(out);
    }
    return code;
}

static orr_code write_events(run *r, orr_error *err)
{
    nccl_job *j = &r->job;
    nccl_writer *w = &r->writer;
    orr_output *out;
    orr_code code = orr_output_open(j->opt->events, &out, err);
    if (code)
        return code;
    orr_buf_print(&w->pen.to, "num_ranks %zu\n", j->comms.ranked.count);
    for (size_t i = 0; i < j->comms.ranked.count && !code; i++) {
        const uint32_t gpu = j->comms.ranked.at[i];
        orr_buf_print(&w->pen.to, "\nrank %zu {\n", i);
        code = nccl_gpu_ready(j, gpu, err);
        if (!code)
            code = nccl_write_events(w, gpu, r->is_merged);
        orr_buf_text(&w->pen.to, "}\n");
        orr_output_drain(out, &w->pen.to);
    }
    w->pen.first_label = 0;
    if (!code)
        return orr_output_commit(&out, err);
    orr_output_discard(out);
    return code;
}

static void fill_report(const run *r)
{
    orr_nccl_report *report = r->job.report;
    const nccl_job *j = &r->job;
    report->messages = r->writer.pen.messages;
    report->bytes = r->writer.pen.bytes;
    report->overlaps = r->writer.overlaps;
    report->most_tag = r->writer.most_tag;
    report->left_out_calls = r->writer.left_out;
    for (size_t i = 0; i < j->gpus.count; i++)
        report->by_time += j->gpus.at[i].is_by_time;
    for (size_t i = 0; i < j->gpus.count; i++)
        report->overlaps += j->gpus.at[i].overlaps;
}

static orr_code convert(run *r, const char *const *paths, size_t count, orr_error *err)
{
    nccl_job *j = &r->job;
    const orr_nccl_options *opt = j->opt;
    orr_code code = read_tables(r, err);
    if (!code)
        code = nccl_job_find_files(j, paths, count, err);
    if (!code)
        code = nccl_job_scan(j, err);
    if (!code)
        code = nccl_comms_build(j, err);
    if (!code && j->comms.ranked.count == 0)
        return orr_fail(err, ORR_EINPUT, NULL,
                        "no GPU of the exports uses NCCL, or NCCL was not annotated");
    if (!code && !j->rules->keeps_unmatched)
        code = nccl_cut_survey(j, err);
    if (!code)
        code = decide_merging(r, err);
    if (!code)
        code = nccl_writer_init(&r->writer, j, err);
    give_tables(r);
    if (!code && must_measure(opt))
        code = measure(r, err);
    if (!code && opt->events)
        code = write_events(r, err);
    if (!code && opt->parts)
        code = write_parts(r, err);
    if (!code && opt->output)
        code = write_goal(r, opt->output, err);
    fill_report(r);
    return code;
}

orr_code orr_nccl_convert(const char *const *paths,
                          size_t path_count,
                          const orr_nccl_options *opt,
                          orr_nccl_report *report,
                          orr_error *err)
{
    orr_nccl_report own;
    run *r = orr_alloc(1, sizeof *r);
    if (!r)
        return orr_no_memory(err);
    if (!report)
        report = &own;
    *report = (orr_nccl_report){0};
    orr_code code = init_job(&r->job, opt, report, err);
    if (!code)
        code = read_plans(&r->job, opt->plans, err);
    if (!code)
        code = convert(r, paths, path_count, err);
    nccl_writer_fini(&r->writer);
    nccl_matching_destroy(r->matching);
    orr_npkit_free(r->simple);
    orr_npkit_free(r->ll);
    fini_job(&r->job);
    orr_free(r);
    return code;
}
