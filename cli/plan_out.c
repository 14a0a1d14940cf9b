/* SPDX-License-Identifier: Apache-2.0 */
/* plan_out.c - what orrery plan prints: tables, JSON, CSV. */
#include "plan.h"

#include "json_out.h"

#include <orrery/lab/units.h>
#include <orrery/version.h>

#include <errno.h>
#include <inttypes.h>
#include <string.h>

static const char *const recompute_words[] = {"none", "selective", "full", "operators"};

static double exposed(const orr_plan *p)
{
    const orr_plan_shares *x = &p->shares;
    return x->tensor + x->context + x->expert + x->data + x->pipeline;
}

/* Does its interval reach that of the best?  What all plans are off by together does not count, and memory is not in
 * doubt. */
static bool is_undecided(const cli_plan *x, const orr_plan *best, const orr_plan *p)
{
    return p != best && strcmp(x->goal, "memory") != 0 && p->own_low_s <= best->own_high_s;
}

static const char *seconds(double s, char room[ORR_UNIT_ROOM])
{
    return orr_time_text((orr_ps)(s * 1e12), room);
}

/* ---- text ---- */

static void print_plan(const cli_plan *x, size_t i, bool has_price)
{
    const orr_plan *p = orr_plan_at(x->search, i), *best = orr_plan_at(x->search, 0);
    char words[200], a[5][ORR_UNIT_ROOM], range[2 * ORR_UNIT_ROOM + 8], price[24] = "";
    snprintf(range, sizeof range, "(%s-%s)", seconds(p->low_s, a[0]), seconds(p->high_s, a[1]));
    orr_plan_words(p, words, sizeof words);
    if (has_price)
        snprintf(price, sizeof price, " %8.4f", p->usd_per_mtoken);
    printf("%3zu%c %8s %-17s %8s %5.1f %% %9s %5.1f %% %5.1f %%%s  %s\n", i + 1,
           is_undecided(x, best, p) ? '~' : ' ', seconds(p->step_s, a[2]), range,
           orr_short_text((uint64_t)p->tokens_per_s, a[3]), 100 * p->mfu,
           orr_bytes_text((orr_bytes)p->memory.peak, a[4]), 100 * exposed(p),
           100 * p->shares.bubble, price, words);
    printf("%*slimited by %s\n", has_price ? 81 : 72, "", p->limit);
}

/* Which places are proven, where not all are. */
static void print_sure(const cli_plan *x)
{
    orr_plan_counts n;
    const size_t count = orr_plan_count(x->search), shown = count < x->top ? count : x->top;
    orr_plan_search_counts(x->search, &n);
    if (n.bounded && !x->is_late && !x->is_stopped && shown > x->sure)
        printf("places %zu to %zu are the best of those simulated; --sure %zu proves them\n",
               x->sure + 1, shown, shown);
}

static void print_plans(const cli_plan *x)
{
    const orr_plan *best = orr_plan_at(x->search, 0), *p;
    const bool has_price = best->usd_per_mtoken > 0;
    size_t undecided = 0;
    printf("\n%4s %8s %-17s %8s %7s %9s %7s %7s%s  %s\n", "", "step", "(90 %)", "tokens/s", "MFU",
           "memory", "exposed", "bubble", has_price ? "  $/Mtoken" : "", "plan");
    for (size_t i = 0; i < x->top && (p = orr_plan_at(x->search, i)); i++) {
        print_plan(x, i, has_price);
        undecided += is_undecided(x, best, p);
    }
    if (strcmp(x->goal, "memory") != 0)
        print_sure(x);
    if (!has_price && strcmp(x->goal, "cost") == 0)
        printf(
            "no price is known, so cost is devices x time; --price 2.5, in US dollars per device and "
            "hour, or usd_per_hour of the machine gives $/Mtoken\n");
    if (undecided)
        printf(
            "~ %zu %s undecided: the best is not better by more than kernels and collectives may be off\n",
            undecided, undecided == 1 ? "plan is" : "plans are");
}

static void print_rates(const cli_plan *x)
{
    const double base = orr_plan_at(x->search, 0)->step_s;
    char a[ORR_UNIT_ROOM];
    if (x->rate_count)
        printf("\ntwice as fast, for plan 1:\n");
    for (size_t i = 0; i < x->rate_count; i++)
        printf("  %-24s %8s %+6.1f %%\n", x->rates[i].name, seconds(x->rates[i].step_s, a),
               100 * (x->rates[i].step_s / base - 1));
}

static void print_sizes(const cli_plan *x)
{
    const cli_plan_size *first = &x->sizes[0];
    if (x->size_count < 2)
        return;
    printf("\n%9s %9s %9s %7s %11s %10s %10s  %s\n", "devices", "step", "tokens/s", "MFU",
           "efficiency", "memory", "$/Mtoken", "best plan");
    for (size_t i = 0; i < x->size_count; i++) {
        const cli_plan_size *s = &x->sizes[i];
        char a[3][ORR_UNIT_ROOM], words[200], price[24] = "-";
        const double each = s->best.tokens_per_s / s->devices,
                     base = first->best.tokens_per_s / first->devices;
        orr_plan_words(&s->best, words, sizeof words);
        if (s->best.usd_per_mtoken > 0)
            snprintf(price, sizeof price, "%.4f", s->best.usd_per_mtoken);
        printf("%8u%c %9s %9s %5.1f %% %9.1f %% %10s %10s  %s\n", s->devices,
               i == x->best_size ? '*' : ' ', seconds(s->best.step_s, a[0]),
               orr_short_text((uint64_t)s->best.tokens_per_s, a[1]), 100 * s->best.mfu,
               100 * each / base, orr_bytes_text((orr_bytes)s->best.memory.peak, a[2]), price,
               words);
    }
    printf("* the least %s: its plans are those above\n",
           strcmp(x->goal, "cost") == 0     ? "cost of a token"
           : strcmp(x->goal, "memory") == 0 ? "memory of a device"
                                            : "time of a step");
}

/* ---- the best again ---- */

/* Less decides nothing. */
#define SAME 0.005

typedef struct verdict {
    size_t answers; /* plans that have a time at this level */
    bool order_holds;
    char words[120];
} verdict;

static verdict judge(const cli_plan *x, size_t level)
{
    const orr_plan_check *k = x->checks[level];
    verdict v = {.order_holds = true};
    size_t best = x->check_count;
    for (size_t i = 0; i < x->check_count; i++) {
        if (!(k[i].step_s > 0))
            continue;
        v.answers++;
        for (size_t n = 0; n < i; n++)
            if (k[n].step_s > 0 && k[i].step_s < k[n].step_s * (1 - SAME))
                v.order_holds = false;
        if (best == x->check_count || k[i].step_s < k[best].step_s)
            best = i;
    }
    if (v.answers < 2)
        snprintf(v.words, sizeof v.words,
                 v.answers && x->check_count == 1 ? "one plan has no order" : "no answer");
    else if (v.order_holds)
        snprintf(v.words, sizeof v.words, "the order holds");
    else if (k[0].step_s > 0 && k[best].step_s < k[0].step_s * (1 - SAME))
        snprintf(v.words, sizeof v.words, "plan %zu is the best here, %.1f %% before plan 1",
                 best + 1, 100 * (1 - k[best].step_s / k[0].step_s));
    else if (!(k[0].step_s > 0))
        snprintf(v.words, sizeof v.words, "plan 3 is before plan 2");
    else
        snprintf(v.words, sizeof v.words, "plan 1 stays the best, plans 2 and 3 change places");
    return v;
}

static void print_check(const orr_plan_check *k, size_t i)
{
    char a[3][ORR_UNIT_ROOM];
    printf("    %zu ", i + 1);
    if (!(k->step_s > 0)) {
        printf(" not %s: %s\n", k->kind == ORR_PLAN_NOT_RUN && !k->what[0] ? "run" : "ended",
               k->why);
        return;
    }
    printf("%9s %+6.1f %%  %s", seconds(k->step_s, a[0]), 100 * (k->step_s / k->plan->step_s - 1),
           k->what);
    if (k->base_s > 0)
        printf(": %s, %s on the network of the search", seconds(k->run_s, a[1]),
               seconds(k->base_s, a[2]));
    printf("\n");
}

static void print_checks(const cli_plan *x)
{
    size_t answers = 0, kept = 0;
    if (x->check_count)
        printf("\nthe best again, in more detail: step, and what was run\n");
    for (size_t k = 0; k < ORR_PLAN_LEVELS && x->check_count; k++) {
        const verdict v = judge(x, k);
        printf("  %s: %s\n", orr_plan_level_name((orr_plan_level)k), v.words);
        for (size_t i = 0; i < x->check_count; i++)
            print_check(&x->checks[k][i], i);
        answers += v.answers > 1;
        kept += v.answers > 1 && v.order_holds;
    }
    if (answers)
        printf("  the order holds on %zu of %zu network models that gave an answer\n", kept,
               answers);
}

static void print_commands(const cli_plan *x)
{
    const orr_plan *p;
    printf("\nto reproduce: orrery run plan.orr --machine %s, after\n", x->machine);
    for (size_t i = 0; i < x->top && (p = orr_plan_at(x->search, i)); i++) {
        char command[700];
        orr_plan_command(p, command, sizeof command);
        printf("%3zu  orrery stage %s %s -o plan.orr\n", i + 1, x->name, command);
    }
}

/* The search was stopped: what is still possible. */
static void print_open(const cli_plan *x, const orr_plan_counts *n, const orr_plan *best)
{
    char a[3][ORR_UNIT_ROOM];
    if (x->is_late)
        printf("stopped after %s (--max-time)", seconds(x->max_s, a[0]));
    else
        printf("stopped by hand");
    if (!(n->least_s > 0))
        printf(": other plans may be better\n");
    else if (strcmp(x->goal, "memory") == 0)
        printf(": %s plans were not looked at\n", orr_count_text(n->to_do, a[1]));
    else if (n->least_s >= best->step_s)
        printf(", but no other plan can be better than the best\n");
    else
        printf(": %s plans might be better, by %.1f %% at most (no step can take less than %s)\n",
               orr_count_text(n->to_do, a[1]), 100 * (1 - n->least_s / best->step_s),
               seconds(n->least_s, a[2]));
}

void cli_plan_text(const cli_plan *x)
{
    orr_plan_counts n;
    char a[5][ORR_UNIT_ROOM];
    const orr_machine *m = orr_plan_search_machine(x->search);
    const orr_plan *best = orr_plan_at(x->search, 0);
    orr_plan_search_counts(x->search, &n);
    printf("%s on %s devices of %s: %s sequences of %s tokens per step\n", x->name,
           orr_count_text(orr_machine_devices(m), a[0]), m->name,
           orr_count_text(best->options.batch, a[1]), orr_count_text(best->options.seq, a[2]));
    printf("%s legal plans, %s fit into memory, %s simulated", orr_count_text(n.legal, a[0]),
           orr_count_text(n.fitting, a[1]), orr_count_text(n.simulated, a[2]));
    const bool is_whole = !x->is_stopped && !x->is_late;
    if (n.bounded && is_whole && x->sure > 1)
        printf("; no other can take one of the first %zu places", x->sure);
    else if (n.bounded && is_whole)
        printf("; no other can be better than the best");
    printf("\n");
    if (!is_whole)
        print_open(x, &n, best);
    if (n.failed)
        printf("%s could not be simulated: %s\n", orr_count_text(n.failed, a[0]),
               orr_plan_search_failure(x->search));
    print_plans(x);
    print_rates(x);
    print_sizes(x);
    print_checks(x);
    print_commands(x);
}

/* ---- JSON ---- */

static void put_plan(const cli_plan *x, orr_json_writer *w, const orr_plan *p, const orr_plan *best)
{
    const orr_llm_options *o = &p->options;
    char command[700];
    orr_json_line(w, 4);
    orr_json_begin_object(w);
    orr_json_put_double(w, "step_s", p->step_s);
    orr_json_put_double(w, "low_s", p->low_s);
    orr_json_put_double(w, "high_s", p->high_s);
    orr_json_put_double(w, "own_low_s", p->own_low_s);
    orr_json_put_double(w, "own_high_s", p->own_high_s);
    orr_json_put_bool(w, "undecided", p != best && is_undecided(x, best, p));
    orr_json_put_double(w, "bound_s", p->bound_s);
    orr_json_put_double(w, "tokens_per_s", p->tokens_per_s);
    orr_json_put_double(w, "mfu", p->mfu);
    if (p->usd_per_mtoken > 0)
        orr_json_put_double(w, "usd_per_mtoken", p->usd_per_mtoken);
    if (p->watt_hours_per_mtoken > 0)
        orr_json_put_double(w, "watt_hours_per_mtoken", p->watt_hours_per_mtoken);
    orr_json_put_u64(w, "memory_bytes", p->memory.peak);
    orr_json_put_double(w, "compute", p->shares.compute);
    orr_json_put_double(w, "exposed_tensor", p->shares.tensor);
    orr_json_put_double(w, "exposed_context", p->shares.context);
    orr_json_put_double(w, "exposed_expert", p->shares.expert);
    orr_json_put_double(w, "exposed_data", p->shares.data);
    orr_json_put_double(w, "exposed_pipeline", p->shares.pipeline);
    orr_json_put_double(w, "bubble", p->shares.bubble);
    orr_json_put_text(w, "limit", p->limit);
    orr_json_put_u64(w, "tp", o->tp);
    orr_json_put_u64(w, "cp", o->cp);
    orr_json_put_u64(w, "pp", o->pp);
    orr_json_put_u64(w, "dp", o->dp);
    orr_json_put_u64(w, "ep", o->ep);
    orr_json_put_u64(w, "zero", o->zero);
    orr_json_put_u64(w, "micro_batch", o->micro_batch);
    orr_json_put_text(w, "pipeline", orr_pipeline_name(o->pipeline));
    orr_json_put_u64(w, "chunks", o->chunks);
    orr_json_put_text(w, "recompute", recompute_words[o->recompute & 3]);
    orr_json_put_bool(w, "sequence_parallel", o->tp > 1 && !o->no_sequence_parallel);
    orr_plan_command(p, command, sizeof command);
    orr_json_key(w, "stage");
    char stage[1200];
    snprintf(stage, sizeof stage, "orrery stage %s %s -o plan.orr", x->name, command);
    orr_json_text(w, stage);
    orr_json_end_object(w);
}

static void put_sizes(const cli_plan *x, orr_json_writer *w)
{
    cli_json_array(w, "sizes");
    for (size_t i = 0; i < x->size_count; i++) {
        const cli_plan_size *s = &x->sizes[i];
        orr_json_line(w, 4);
        orr_json_begin_object(w);
        orr_json_put_u64(w, "devices", s->devices);
        orr_json_put_double(w, "step_s", s->best.step_s);
        orr_json_put_double(w, "tokens_per_s", s->best.tokens_per_s);
        orr_json_put_double(w, "mfu", s->best.mfu);
        orr_json_put_u64(w, "memory_bytes", s->best.memory.peak);
        if (s->best.usd_per_mtoken > 0)
            orr_json_put_double(w, "usd_per_mtoken", s->best.usd_per_mtoken);
        orr_json_put_bool(w, "is_best", i == x->best_size);
        orr_json_put_u64(w, "legal", s->counts.legal);
        orr_json_put_u64(w, "simulated", s->counts.simulated);
        orr_json_end_object(w);
    }
    orr_json_end_array(w);
}

static void put_check(orr_json_writer *w, const orr_plan_check *k, size_t i)
{
    static const char *const kinds[] = {"not run", "whole", "part", "collectives"};
    orr_json_begin_object(w);
    orr_json_put_u64(w, "plan", i + 1);
    orr_json_put_text(w, "kind", kinds[k->kind]);
    orr_json_put_text(w, "what", k->what[0] ? k->what : NULL);
    orr_json_put_double(w, "expected_cpu_s", k->cost_s);
    if (k->base_s > 0) {
        orr_json_put_double(w, "run_s", k->run_s);
        orr_json_put_double(w, "base_s", k->base_s);
    }
    if (k->step_s > 0)
        orr_json_put_double(w, "step_s", k->step_s);
    orr_json_put_text(w, "why_not", k->why[0] ? k->why : NULL);
    orr_json_end_object(w);
}

static void put_checks(const cli_plan *x, orr_json_writer *w)
{
    cli_json_array(w, "checks");
    for (size_t k = 0; k < ORR_PLAN_LEVELS && x->check_count; k++) {
        const verdict v = judge(x, k);
        orr_json_line(w, 4);
        orr_json_begin_object(w);
        orr_json_put_text(w, "network", orr_plan_level_name((orr_plan_level)k));
        orr_json_put_text(w, "verdict", v.words);
        if (v.answers > 1)
            orr_json_put_bool(w, "order_holds", v.order_holds);
        cli_json_array(w, "plans");
        for (size_t i = 0; i < x->check_count; i++)
            put_check(w, &x->checks[k][i], i);
        orr_json_end_array(w);
        orr_json_end_object(w);
    }
    orr_json_end_array(w);
}

void cli_plan_put(const cli_plan *x, orr_json_writer *w, size_t most)
{
    orr_plan_counts n;
    const orr_plan *p, *best = orr_plan_at(x->search, 0);
    orr_plan_search_counts(x->search, &n);
    orr_json_put_text(w, "program", "orrery " ORR_VERSION);
    orr_json_put_text(w, "model", x->name);
    orr_json_put_text(w, "machine", x->machine);
    orr_json_put_u64(w, "devices", orr_machine_devices(orr_plan_search_machine(x->search)));
    orr_json_put_text(w, "goal", x->goal);
    orr_json_put_u64(w, "batch", best->options.batch);
    orr_json_put_u64(w, "seq", best->options.seq);
    orr_json_put_u64(w, "device_bytes", best->options.device_bytes);
    orr_json_put_u64(w, "legal", n.legal);
    orr_json_put_u64(w, "fitting", n.fitting);
    orr_json_put_u64(w, "simulated", n.simulated);
    orr_json_put_u64(w, "bounded", n.bounded);
    orr_json_put_u64(w, "failed", n.failed);
    orr_json_put_u64(w, "might_be_better", n.to_do);
    if (n.least_s > 0)
        orr_json_put_double(w, "least_s", n.least_s);
    cli_json_array(w, "plans");
    for (size_t i = 0; i < most && (p = orr_plan_at(x->search, i)); i++)
        put_plan(x, w, p, best);
    orr_json_end_array(w);
    cli_json_array(w, "twice_as_fast");
    for (size_t i = 0; i < x->rate_count; i++) {
        orr_json_begin_object(w);
        orr_json_put_text(w, "what", x->rates[i].name);
        orr_json_put_double(w, "step_s", x->rates[i].step_s);
        orr_json_end_object(w);
    }
    orr_json_end_array(w);
    put_sizes(x, w);
    put_checks(x, w);
}

void cli_plan_put_others(const cli_plan *x, orr_json_writer *w)
{
    const orr_plan *p;
    cli_json_array(w, "other_sizes");
    for (size_t i = 0; i < x->size_count; i++) {
        if (i == x->best_size)
            continue;
        orr_json_begin_object(w);
        orr_json_put_u64(w, "devices", x->sizes[i].devices);
        cli_json_array(w, "plans");
        for (size_t k = 0; (p = orr_plan_at(x->sizes[i].search, k)); k++)
            put_plan(x, w, p, &x->sizes[i].best);
        orr_json_end_array(w);
        orr_json_end_object(w);
    }
    orr_json_end_array(w);
}

void cli_plan_json(const cli_plan *x)
{
    cli_json j;
    cli_plan_put(x, cli_json_open(&j, "orrery-plan"), x->top);
    cli_json_close(&j);
}

/* ---- CSV ---- */

static void print_row(FILE *f, const orr_plan *p)
{
    const orr_llm_options *o = &p->options;
    const orr_plan_shares *x = &p->shares;
    fprintf(f, "%.9g,%.9g,%.9g,%.9g,%.9g,%.6g,%" PRIu64 ",%.6g,%.6g,%.6g,%.6g,%.6g,%.6g,%.6g,%.6g,",
            p->step_s, p->low_s, p->high_s, p->bound_s, p->tokens_per_s, p->mfu, p->memory.peak,
            p->usd_per_mtoken, x->compute, x->tensor, x->context, x->expert, x->data, x->pipeline,
            x->bubble);
    fprintf(f, "%u,%u,%u,%u,%u,%u,%" PRIu64 ",%s,%u,%s,%d\n", o->tp, o->cp, o->pp, o->dp, o->ep,
            o->zero, o->micro_batch, orr_pipeline_name(o->pipeline), o->chunks,
            recompute_words[o->recompute & 3], o->tp > 1 && !o->no_sequence_parallel);
}

orr_code cli_plan_csv(const cli_plan *x, const char *path, orr_error *err)
{
    cli_file to;
    const orr_plan *p;
    const orr_code code = cli_file_open(path, &to, err);
    if (code)
        return code;
    fprintf(
        to.f,
        "step_s,low_s,high_s,bound_s,tokens_per_s,mfu,memory_bytes,usd_per_mtoken,compute,tensor,context,expert,"
        "data,pipeline,bubble,tp,cp,pp,dp,ep,zero,micro_batch,schedule,chunks,recompute,sequence_parallel\n");
    for (size_t i = 0; (p = orr_plan_at(x->search, i)); i++)
        print_row(to.f, p);
    return cli_file_close(&to, ORR_OK, err);
}
