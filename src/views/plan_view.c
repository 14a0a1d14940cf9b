/* SPDX-License-Identifier: Apache-2.0 */
/* plan_view.c - plans of training and of serving as text, JSON and CSV, and the pages of orrery
 * plan --report: web/plan.html for training, web/plan_serve.html for serving, with the data
 * inserted at their marks. */
#include <orrery/lab/plan.h>
#include <orrery/lab/show.h>
#include <orrery/lab/software.h>
#include <orrery/lab/units.h>
#include <orrery/version.h>

#include "base/formats/json.h"
#include "base/io/output.h"
#include "views_impl.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Made from web/ by the build. */
extern const char orr__plan_html[], orr__plan_serve_html[], orr__plan_css[], orr__plan_style[],
    orr__plan_parts[];

static const char *const recompute_words[] = {"none", "selective", "full", "operators", "parts"};

static void put_row(orr_buf *b, const orr_plan *p)
{
    const orr_llm_options *o = &p->options;
    const orr_plan_shares *x = &p->shares;
    orr_buf_print(
        b, "%.9g,%.9g,%.9g,%.9g,%.9g,%.6g,%" PRIu64 ",%.6g,%.6g,%.6g,%.6g,%.6g,%.6g,%.6g,%.6g,",
        p->step_s, p->low_s, p->high_s, p->bound_s, p->tokens_per_s, p->mfu, p->memory.peak,
        p->usd_per_mtoken, x->compute, x->tensor, x->context, x->expert, x->data, x->pipeline,
        x->bubble);
    orr_buf_print(b, "%u,%u,%u,%u,%u,%u,%" PRIu64 ",%s,%u,%s,%d\n", o->tp, o->cp, o->pp, o->dp,
                  o->ep, o->zero, o->micro_batch, orr_pipeline_name(o->pipeline), o->chunks,
                  recompute_words[o->recompute % 5], o->tp > 1 && !o->no_sequence_parallel);
}

orr_code orr_plan_write_csv(const orr_plan_search *s, const char *path, orr_error *err)
{
    orr_buf b = {0};
    const orr_plan *p;
    orr_buf_text(
        &b,
        "step_s,low_s,high_s,bound_s,tokens_per_s,mfu,memory_bytes,usd_per_mtoken,compute,tensor,"
        "context,expert,data,pipeline,bubble,tp,cp,pp,dp,ep,zero,micro_batch,schedule,chunks,"
        "recompute,sequence_parallel\n");
    for (size_t i = 0; (p = orr_plan_at(s, i)); i++)
        put_row(&b, p);
    const orr_code code = orr_output_save(&b, path, err);
    orr_buf_fini(&b);
    return code;
}

/* ---- pages ---- */

/* The page up to a mark; *at moves past it. */
static void put_until(orr_buf *b, const char **at, const char *mark)
{
    const char *found = strstr(*at, mark);
    const char *end = found ? found : *at + strlen(*at);
    orr_buf_add(b, *at, (size_t)(end - *at));
    *at = found ? found + strlen(mark) : end;
}

/* at: the page with its marks. */
static orr_code write_page(
    const char *at, const char *title, const orr_buf *json, const char *path, orr_error *err)
{
    orr_buf page = {0}, data = {0};
    orr_buf_add(&data, json->ptr, json->len);
    put_until(&page, &at, "<!--orrery:title-->");
    orr__put_html(&page, orr_str_of(title));
    put_until(&page, &at, "<!--orrery:css-->");
    orr_buf_text(&page, orr__plan_css);
    put_until(&page, &at, "<!--orrery:style-->");
    orr_buf_text(&page, orr__plan_style);
    put_until(&page, &at, "<!--orrery:data-->");
    orr_json_in_page(&data, &page);
    put_until(&page, &at, "<!--orrery:parts-->");
    orr_buf_text(&page, orr__plan_parts);
    orr_buf_text(&page, at);
    page.failed |= data.failed || json->failed;
    const orr_code code = orr_output_save(&page, path, err);
    orr_buf_fini(&data);
    orr_buf_fini(&page);
    return code;
}

/* ---- training ---- */

static double exposed(const orr_plan *p)
{
    const orr_plan_shares *x = &p->shares;
    return x->tensor + x->context + x->expert + x->data + x->pipeline;
}

/* Does its interval overlap that of the best plan? Errors common to all plans do not count, and
 * memory is exact. */
static bool is_undecided(const orr_plan_findings *x, const orr_plan *best, const orr_plan *p)
{
    return p != best && strcmp(x->goal, "memory") != 0 && p->own_low_s <= best->own_high_s;
}

static const char *seconds(double s, char room[ORR_UNIT_ROOM])
{
    return orr_time_text((orr_ps)(s * 1e12), room);
}

/* ---- text ---- */

static void print_plan(orr_buf *to, const orr_plan_findings *x, size_t i, bool has_price)
{
    const orr_plan *p = orr_plan_at(x->search, i), *best = orr_plan_at(x->search, 0);
    char words[200], a[5][ORR_UNIT_ROOM], range[2 * ORR_UNIT_ROOM + 8], price[24] = "";
    snprintf(range, sizeof range, "(%s-%s)", seconds(p->low_s, a[0]), seconds(p->high_s, a[1]));
    orr_plan_words(p, words, sizeof words);
    if (has_price)
        snprintf(price, sizeof price, " %8.4f", p->usd_per_mtoken);
    orr_buf_print(to, "%3zu%c %8s %-17s %8s %5.1f %% %9s %5.1f %% %5.1f %%%s  %s\n", i + 1,
                  is_undecided(x, best, p) ? '~' : ' ', seconds(p->step_s, a[2]), range,
                  orr_short_text((uint64_t)p->tokens_per_s, a[3]), 100 * p->mfu,
                  orr_bytes_text((orr_bytes)p->memory.peak, a[4]), 100 * exposed(p),
                  100 * p->shares.bubble, price, words);
    orr_buf_print(to, "%*slimited by %s\n", has_price ? 81 : 72, "", p->limit);
}

/* Say which ranking positions are proven, if not all are. */
static void print_sure(orr_buf *to, const orr_plan_findings *x)
{
    orr_plan_counts n;
    const size_t count = orr_plan_count(x->search), shown = count < x->top ? count : x->top;
    orr_plan_search_counts(x->search, &n);
    const bool has_unproven = n.bounded && !x->is_late && !x->is_stopped && shown > x->sure;
    if (has_unproven && shown == x->sure + 1)
        orr_buf_print(to, "place %zu is the best of those simulated; --sure %zu proves it\n", shown,
                      shown);
    else if (has_unproven)
        orr_buf_print(to,
                      "places %zu to %zu are the best of those simulated; --sure %zu proves them\n",
                      x->sure + 1, shown, shown);
}

static void print_plans(orr_buf *to, const orr_plan_findings *x)
{
    const orr_plan *best = orr_plan_at(x->search, 0), *p;
    const bool has_price = best->usd_per_mtoken > 0;
    size_t undecided = 0;
    orr_buf_print(to, "\n%4s %8s %-17s %8s %7s %9s %7s %7s%s  %s\n", "", "step", "(90 %)",
                  "tokens/s", "MFU", "memory", "exposed", "bubble", has_price ? "  $/Mtoken" : "",
                  "plan");
    for (size_t i = 0; i < x->top && (p = orr_plan_at(x->search, i)); i++) {
        print_plan(to, x, i, has_price);
        undecided += is_undecided(x, best, p);
    }
    if (strcmp(x->goal, "memory") != 0)
        print_sure(to, x);
    if (!has_price && strcmp(x->goal, "cost") == 0)
        orr_buf_print(
            to, "no price given, so cost is devices x time; for $/Mtoken give --price (US dollars "
                "per device-hour) or usd_per_hour in the machine file\n");
    if (undecided)
        orr_buf_print(
            to,
            "~ %zu %s undecided: the difference to the best is within the uncertainty of kernels "
            "and collectives\n",
            undecided, undecided == 1 ? "plan is" : "plans are");
}

static void print_rates(orr_buf *to, const orr_plan_findings *x)
{
    const double base = orr_plan_at(x->search, 0)->step_s;
    char a[ORR_UNIT_ROOM];
    if (x->rate_count)
        orr_buf_print(to, "\nwhat-if for plan 1, twice as fast:\n");
    for (size_t i = 0; i < x->rate_count; i++)
        orr_buf_print(to, "  %-24s %8s %+6.1f %%\n", x->rates[i].name,
                      seconds(x->rates[i].step_s, a), 100 * (x->rates[i].step_s / base - 1));
}

static void print_sizes(orr_buf *to, const orr_plan_findings *x)
{
    const orr_plan_size *first = &x->sizes[0];
    if (x->size_count < 2)
        return;
    orr_buf_print(to, "\n%9s %9s %9s %7s %11s %10s %10s  %s\n", "devices", "step", "tokens/s",
                  "MFU", "efficiency", "memory", "$/Mtoken", "best plan");
    for (size_t i = 0; i < x->size_count; i++) {
        const orr_plan_size *s = &x->sizes[i];
        char a[3][ORR_UNIT_ROOM], words[200], price[24] = "-";
        const double each = s->best.tokens_per_s / s->devices,
                     base = first->best.tokens_per_s / first->devices;
        orr_plan_words(&s->best, words, sizeof words);
        if (s->best.usd_per_mtoken > 0)
            snprintf(price, sizeof price, "%.4f", s->best.usd_per_mtoken);
        orr_buf_print(to, "%8u%c %9s %9s %5.1f %% %9.1f %% %10s %10s  %s\n", s->devices,
                      i == x->best_size ? '*' : ' ', seconds(s->best.step_s, a[0]),
                      orr_short_text((uint64_t)s->best.tokens_per_s, a[1]), 100 * s->best.mfu,
                      100 * each / base, orr_bytes_text((orr_bytes)s->best.memory.peak, a[2]),
                      price, words);
    }
    orr_buf_print(to, "* lowest %s; its plans are listed above\n",
                  strcmp(x->goal, "cost") == 0     ? "cost of a token"
                  : strcmp(x->goal, "memory") == 0 ? "memory of a device"
                                                   : "time of a step");
}

/* ---- checks of the best plans ---- */

/* Smaller relative differences count as equal. */
#define SAME 0.005

typedef struct verdict {
    size_t answers; /* plans with a time at this level */
    bool order_holds;
    char words[120];
} verdict;

static verdict judge(const orr_plan_findings *x, size_t level)
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
                 v.answers && x->check_count == 1 ? "only one plan, no order" : "no answer");
    else if (v.order_holds)
        snprintf(v.words, sizeof v.words, "same order");
    else if (k[0].step_s > 0 && k[best].step_s < k[0].step_s * (1 - SAME))
        snprintf(v.words, sizeof v.words, "plan %zu is best here, %.1f %% faster than plan 1",
                 best + 1, 100 * (1 - k[best].step_s / k[0].step_s));
    else if (!(k[0].step_s > 0))
        snprintf(v.words, sizeof v.words, "plan 3 is faster than plan 2");
    else
        snprintf(v.words, sizeof v.words, "plan 1 stays best, plans 2 and 3 swap");
    return v;
}

static void print_check(orr_buf *to, const orr_plan_check *k, size_t i)
{
    char a[3][ORR_UNIT_ROOM];
    orr_buf_print(to, "    %zu ", i + 1);
    if (!(k->step_s > 0)) {
        orr_buf_print(to, " not %s: %s\n",
                      k->kind == ORR_PLAN_NOT_RUN && !k->what[0] ? "run" : "ended", k->why);
        return;
    }
    orr_buf_print(to, "%9s %+6.1f %%  %s", seconds(k->step_s, a[0]),
                  100 * (k->step_s / k->plan->step_s - 1), k->what);
    if (k->base_s > 0)
        orr_buf_print(to, ": %s, %s on the network of the search", seconds(k->run_s, a[1]),
                      seconds(k->base_s, a[2]));
    orr_buf_print(to, "\n");
}

static void print_checks(orr_buf *to, const orr_plan_findings *x)
{
    size_t answers = 0, kept = 0;
    if (x->check_count)
        orr_buf_print(to,
                      "\nthe best plans on more detailed networks: step time, and what was run\n");
    for (size_t k = 0; k < ORR_PLAN_LEVELS && x->check_count; k++) {
        const verdict v = judge(x, k);
        orr_buf_print(to, "  %s: %s\n", orr_plan_level_name((orr_plan_level)k), v.words);
        for (size_t i = 0; i < x->check_count; i++)
            print_check(to, &x->checks[k][i], i);
        answers += v.answers > 1;
        kept += v.answers > 1 && v.order_holds;
    }
    if (answers)
        orr_buf_print(to, "  same order on %zu of %zu network models that finished\n", kept,
                      answers);
}

/* The command that makes its traces.  With --machine, whose software is the default there. */
static void put_stage(orr_buf *to, const orr_plan_findings *x, const orr_plan *p)
{
    char command[ORR_PLAN_COMMAND_ROOM];
    const orr_machine *m = orr_plan_search_machine(x->search);
    orr_plan_command(p, command, sizeof command);
    orr_buf_print(to, "orrery stage %s %s --machine %s", x->name, command, x->machine);
    if (m->software[0] && p->options.software == orr_software_at(0))
        orr_buf_print(to, " --software %s", p->options.software->name);
    orr_buf_print(to, " -o plan.orr");
}

static void print_commands(orr_buf *to, const orr_plan_findings *x)
{
    const orr_plan *p;
    orr_buf_print(to, "\nto reproduce: orrery run plan.orr --machine %s, after\n", x->machine);
    for (size_t i = 0; i < x->top && (p = orr_plan_at(x->search, i)); i++) {
        orr_buf_print(to, "%3zu  ", i + 1);
        put_stage(to, x, p);
        orr_buf_print(to, "\n");
    }
}

/* After a search that was stopped: print what remains possible. */
static void print_open(orr_buf *to,
                       const orr_plan_findings *x,
                       const orr_plan_counts *n,
                       const orr_plan *best)
{
    char a[3][ORR_UNIT_ROOM];
    if (x->is_late)
        orr_buf_print(to, "stopped after %s (--max-time)", seconds(x->max_s, a[0]));
    else if (x->limit[0])
        orr_buf_print(to, "stopped: %s", x->limit);
    else
        orr_buf_print(to, "interrupted");
    if (!(n->least_s > 0))
        orr_buf_print(to, ": other plans may be better\n");
    else if (strcmp(x->goal, "memory") == 0)
        orr_buf_print(to, "; %s plans were not examined\n", orr_count_text(n->to_do, a[1]));
    else if (n->least_s >= best->step_s)
        orr_buf_print(to, ", but no other plan can beat the best\n");
    else
        orr_buf_print(
            to, "; %s plans might be better, by at most %.1f %% (no step can be shorter than %s)\n",
            orr_count_text(n->to_do, a[1]), 100 * (1 - n->least_s / best->step_s),
            seconds(n->least_s, a[2]));
    if (x->size_count < x->size_wanted)
        orr_buf_print(to, "%zu of %zu numbers of devices have no plan by then\n",
                      x->size_wanted - x->size_count, x->size_wanted);
}

static void print_findings(orr_buf *to, const orr_plan_findings *x)
{
    orr_plan_counts n;
    char a[5][ORR_UNIT_ROOM];
    const orr_machine *m = orr_plan_search_machine(x->search);
    const orr_plan *best = orr_plan_at(x->search, 0);
    orr_plan_search_counts(x->search, &n);
    orr_buf_print(to, "%s on %s devices of %s: %s sequences of %s tokens per step\n", x->name,
                  orr_count_text(orr_machine_devices(m), a[0]), m->name,
                  orr_count_text(best->options.batch, a[1]),
                  orr_count_text(best->options.seq, a[2]));
    orr_buf_print(to, "%s legal plans, %s fit into memory, %s simulated",
                  orr_count_text(n.legal, a[0]), orr_count_text(n.fitting, a[1]),
                  orr_count_text(n.simulated, a[2]));
    const bool is_whole = !x->is_stopped && !x->is_late;
    if (n.bounded && is_whole && x->sure > 1)
        orr_buf_print(to, "; no other can be among the first %zu", x->sure);
    else if (n.bounded && is_whole)
        orr_buf_print(to, "; no other can beat the best");
    orr_buf_print(to, "\n");
    if (!is_whole)
        print_open(to, x, &n, best);
    if (n.failed)
        orr_buf_print(to, "%s could not be simulated: %s\n", orr_count_text(n.failed, a[0]),
                      orr_plan_search_failure(x->search));
    print_plans(to, x);
    print_rates(to, x);
    print_sizes(to, x);
    print_checks(to, x);
    print_commands(to, x);
}

/* ---- JSON ---- */

static void put_plan(const orr_plan_findings *x,
                     orr_json_writer *w,
                     const orr_plan *p,
                     const orr_plan *best)
{
    const orr_llm_options *o = &p->options;
    orr_json_line(w, 4);
    orr_json_begin_object(w);
    orr_json_put_fields(
        w, ORR_D("step_s", p->step_s), ORR_D("low_s", p->low_s), ORR_D("high_s", p->high_s),
        ORR_D("own_low_s", p->own_low_s), ORR_D("own_high_s", p->own_high_s),
        ORR_B("undecided", p != best && is_undecided(x, best, p)), ORR_D("bound_s", p->bound_s),
        ORR_D("tokens_per_s", p->tokens_per_s), ORR_D("mfu", p->mfu));
    if (p->usd_per_mtoken > 0)
        orr_json_put_double(w, "usd_per_mtoken", p->usd_per_mtoken);
    if (p->watt_hours_per_mtoken > 0)
        orr_json_put_double(w, "watt_hours_per_mtoken", p->watt_hours_per_mtoken);
    orr_json_put_fields(
        w, ORR_U("memory_bytes", p->memory.peak), ORR_D("compute", p->shares.compute),
        ORR_D("exposed_tensor", p->shares.tensor), ORR_D("exposed_context", p->shares.context),
        ORR_D("exposed_expert", p->shares.expert), ORR_D("exposed_data", p->shares.data),
        ORR_D("exposed_pipeline", p->shares.pipeline), ORR_D("bubble", p->shares.bubble),
        ORR_T("limit", p->limit), ORR_U("tp", o->tp), ORR_U("cp", o->cp), ORR_U("pp", o->pp),
        ORR_U("dp", o->dp), ORR_U("ep", o->ep), ORR_U("zero", o->zero),
        ORR_U("micro_batch", o->micro_batch), ORR_T("pipeline", orr_pipeline_name(o->pipeline)),
        ORR_U("chunks", o->chunks), ORR_T("recompute", recompute_words[o->recompute % 5]),
        ORR_B("sequence_parallel", o->tp > 1 && !o->no_sequence_parallel));
    orr_buf stage = {0};
    put_stage(&stage, x, p);
    orr_buf_add(&stage, "", 1);
    w->to->failed |= stage.failed;
    orr_json_put_text(w, "stage", stage.failed ? NULL : (const char *)stage.ptr);
    orr_buf_fini(&stage);
    orr_json_end_object(w);
}

static void put_sizes(const orr_plan_findings *x, orr_json_writer *w)
{
    orr_json_put_array(w, "sizes");
    for (size_t i = 0; i < x->size_count; i++) {
        const orr_plan_size *s = &x->sizes[i];
        orr_json_line(w, 4);
        orr_json_begin_object(w);
        orr_json_put_fields(w, ORR_U("devices", s->devices), ORR_D("step_s", s->best.step_s),
                            ORR_D("tokens_per_s", s->best.tokens_per_s), ORR_D("mfu", s->best.mfu),
                            ORR_U("memory_bytes", s->best.memory.peak));
        if (s->best.usd_per_mtoken > 0)
            orr_json_put_double(w, "usd_per_mtoken", s->best.usd_per_mtoken);
        orr_json_put_fields(w, ORR_B("is_best", i == x->best_size), ORR_U("legal", s->counts.legal),
                            ORR_U("simulated", s->counts.simulated));
        orr_json_end_object(w);
    }
    orr_json_end_array(w);
}

static void put_check(orr_json_writer *w, const orr_plan_check *k, size_t i)
{
    static const char *const kinds[] = {"not run", "whole", "part", "collectives"};
    orr_json_begin_object(w);
    orr_json_put_fields(w, ORR_U("plan", i + 1), ORR_T("kind", kinds[k->kind]),
                        ORR_T("what", k->what[0] ? k->what : NULL),
                        ORR_D("expected_cpu_s", k->cost_s));
    if (k->base_s > 0) {
        orr_json_put_fields(w, ORR_D("run_s", k->run_s), ORR_D("base_s", k->base_s));
    }
    if (k->step_s > 0)
        orr_json_put_double(w, "step_s", k->step_s);
    orr_json_put_text(w, "why_not", k->why[0] ? k->why : NULL);
    orr_json_end_object(w);
}

static void put_checks(const orr_plan_findings *x, orr_json_writer *w)
{
    orr_json_put_array(w, "checks");
    for (size_t k = 0; k < ORR_PLAN_LEVELS && x->check_count; k++) {
        const verdict v = judge(x, k);
        orr_json_line(w, 4);
        orr_json_begin_object(w);
        orr_json_put_fields(w, ORR_T("network", orr_plan_level_name((orr_plan_level)k)),
                            ORR_T("verdict", v.words));
        if (v.answers > 1)
            orr_json_put_bool(w, "order_holds", v.order_holds);
        orr_json_put_array(w, "plans");
        for (size_t i = 0; i < x->check_count; i++)
            put_check(w, &x->checks[k][i], i);
        orr_json_end_array(w);
        orr_json_end_object(w);
    }
    orr_json_end_array(w);
}

/* Members common to the page and to JSON, with at most `most` plans, into an open object. */
static void put_findings(const orr_plan_findings *x, orr_json_writer *w, size_t most)
{
    orr_plan_counts n;
    const orr_plan *p, *best = orr_plan_at(x->search, 0);
    orr_plan_search_counts(x->search, &n);
    orr_json_put_fields(
        w, ORR_T("program", "orrery " ORR_VERSION), ORR_T("model", x->name),
        ORR_T("machine", x->machine),
        ORR_U("devices", orr_machine_devices(orr_plan_search_machine(x->search))),
        ORR_T("goal", x->goal), ORR_U("batch", best->options.batch),
        ORR_U("seq", best->options.seq), ORR_U("device_bytes", best->options.device_bytes),
        ORR_U("legal", n.legal), ORR_U("fitting", n.fitting), ORR_U("simulated", n.simulated),
        ORR_U("bounded", n.bounded), ORR_U("failed", n.failed), ORR_U("might_be_better", n.to_do));
    if (n.least_s > 0)
        orr_json_put_double(w, "least_s", n.least_s);
    orr_json_put_array(w, "plans");
    for (size_t i = 0; i < most && (p = orr_plan_at(x->search, i)); i++)
        put_plan(x, w, p, best);
    orr_json_end_array(w);
    orr_json_put_array(w, "twice_as_fast");
    for (size_t i = 0; i < x->rate_count; i++) {
        orr_json_put_row(w, ORR_T("what", x->rates[i].name), ORR_D("step_s", x->rates[i].step_s));
    }
    orr_json_end_array(w);
    put_sizes(x, w);
    put_checks(x, w);
}

/* Plans for the other numbers of devices, for the page. */
static void put_other_sizes(const orr_plan_findings *x, orr_json_writer *w)
{
    const orr_plan *p;
    orr_json_put_array(w, "other_sizes");
    for (size_t i = 0; i < x->size_count; i++) {
        if (i == x->best_size)
            continue;
        orr_json_begin_object(w);
        orr_json_put_u64(w, "devices", x->sizes[i].devices);
        orr_json_put_array(w, "plans");
        for (size_t k = 0; (p = orr_plan_at(x->sizes[i].search, k)); k++)
            put_plan(x, w, p, &x->sizes[i].best);
        orr_json_end_array(w);
        orr_json_end_object(w);
    }
    orr_json_end_array(w);
}

orr_code orr_show_plans(const orr_plan_findings *x,
                        orr_show_form form,
                        const char *path,
                        orr_error *err)
{
    orr_buf b = {0};
    orr__document d;
    if (form == ORR_SHOW_JSON) {
        put_findings(x, orr__document_begin(&d, "orrery-plan"), x->top);
        return orr__document_save(&d, path, err);
    }
    print_findings(&b, x);
    return orr__text_save(&b, path, err);
}

orr_code orr_plan_write_page(const orr_plan_findings *x,
                             const char *best_report,
                             const char *made_from,
                             const char *path,
                             orr_error *err)
{
    char title[300];
    orr_buf text = {0};
    orr_json_writer w;
    orr_json_writer_init(&w, &text, NULL);
    orr_json_begin_object(&w);
    put_findings(x, &w, SIZE_MAX);
    put_other_sizes(x, &w);
    orr_json_put_fields(&w, ORR_T("best_report", best_report), ORR_T("made_from", made_from));
    orr_json_end_object(&w);
    snprintf(title, sizeof title, "%.140s on %.140s", x->name, x->machine);
    const orr_code code = write_page(orr__plan_html, title, &text, path, err);
    orr_buf_fini(&text);
    return code;
}

/* ---- serving ---- */

enum { COMMAND_ROOM = 700, SPAN_ROOM = 100 };

static const char *command_of(const orr_plan_servings *x,
                              const orr_plan_serving *p,
                              char out[COMMAND_ROOM])
{
    const orr_plan_serve_options *o = x->options;
    char ep[24] = "", dtype[24] = "";
    if (p->ranks.ep > 1)
        snprintf(ep, sizeof ep, " --ep %u", p->ranks.ep);
    if (o->dtype != ORR_DTYPE_BF16)
        snprintf(dtype, sizeof dtype, " --dtype %s", orr_dtype_name(o->dtype));
    snprintf(out, COMMAND_ROOM,
             "orrery serve %.200s --machine %.200s --tp %u --pp %u --dp %u%s%s --batch %llu "
             "--prompt-tokens %llu --output-tokens %llu --max-batch %llu",
             x->model, o->machine, p->ranks.tp, p->ranks.pp, p->ranks.dp, ep, dtype,
             (unsigned long long)o->requests, (unsigned long long)o->prompt,
             (unsigned long long)o->output, (unsigned long long)p->max_batch);
    return out;
}

/* "51.4 ms (43.1-61.0)". */
static const char *span_text(const orr_plan_serving *p, double s, char out[SPAN_ROOM])
{
    char value[ORR_UNIT_ROOM], ends[SPAN_ROOM];
    const double low = s * 1e12 * (1 - p->report.low_share),
                 high = s * 1e12 * (1 + p->report.high_share);
    orr_ends_text(seconds(s, value), low, high, ends, sizeof ends);
    if (!(s > 0)) /* no request has two tokens */
        snprintf(out, SPAN_ROOM, "-");
    else if (p->report.high_share > 0 && ends[0])
        snprintf(out, SPAN_ROOM, "%.30s (%.60s)", value, ends);
    else
        snprintf(out, SPAN_ROOM, "%.30s", value);
    return out;
}

static void print_servings(orr_buf *to, const orr_plan_servings *x)
{
    const orr_plan_serve_options *o = x->options;
    const orr_plan_serving *list = x->list;
    char a[2][ORR_UNIT_ROOM], range[2][SPAN_ROOM];
    const bool has_price = list[0].usd_per_mtoken > 0;
    size_t undecided = 0;
    char part[40] = "";
    if (o->devices)
        snprintf(part, sizeof part, "%u devices of ", o->devices);
    orr_buf_print(to, "%s on %s%s: %s request%s of %llu tokens, answers of %llu; %zu plans\n\n",
                  x->model, part, o->machine, orr_count_text(o->requests, a[0]),
                  o->requests == 1 ? "" : "s", (unsigned long long)o->prompt,
                  (unsigned long long)o->output, x->count);
    orr_buf_print(to, "%4s %10s  %-21s %-21s%s  %s\n", "", "tokens/s", "TTFT (90 %)", "TPOT (90 %)",
                  has_price ? "   $/Mtoken" : "", "plan");
    for (size_t i = 0; i < x->count && i < x->top; i++) {
        const orr_plan_serving *p = &list[i];
        undecided += p->is_undecided;
        orr_buf_print(to, "%3zu%c %10s  %-21s %-21s", i + 1, p->is_undecided ? '~' : ' ',
                      p->tokens_per_s < 100 ? orr_figure_text(p->tokens_per_s, a[0])
                                            : orr_short_text((uint64_t)p->tokens_per_s, a[0]),
                      span_text(p, p->ttft_s, range[0]), span_text(p, p->tpot_s, range[1]));
        if (has_price)
            orr_buf_print(to, " %10.*f", p->usd_per_mtoken < 99999 ? 4 : 0, p->usd_per_mtoken);
        orr_buf_print(to, "  %u replica%s of tp %u pp %u", p->ranks.dp, p->ranks.dp == 1 ? "" : "s",
                      p->ranks.tp, p->ranks.pp);
        if (p->ranks.ep > 1)
            orr_buf_print(to, ", ep %u", p->ranks.ep);
        orr_buf_print(to, ", %llu concurrent sequence%s\n", (unsigned long long)p->max_batch,
                      p->max_batch == 1 ? "" : "s");
    }
    if (undecided)
        orr_buf_print(to,
                      "~ %zu %s undecided: the difference to the first is within the uncertainty "
                      "of kernels and collectives\n",
                      undecided, undecided == 1 ? "plan is" : "plans are");
    char command[COMMAND_ROOM];
    orr_buf_print(to, "\nto reproduce plan 1:\n  %s\n", command_of(x, &list[0], command));
}

static void put_span(orr_json_writer *w, const char *key, const orr_plan_serving *p, double s)
{
    orr_json_put_array(w, key);
    orr_json_double(w, s * (1 - p->report.low_share));
    orr_json_double(w, s * (1 + p->report.high_share));
    orr_json_end_array(w);
}

static void put_serving(const orr_plan_servings *x,
                        const orr_plan_serving *p,
                        bool has_command,
                        orr_json_writer *w)
{
    char command[COMMAND_ROOM];
    orr_json_line(w, 4);
    orr_json_begin_object(w);
    orr_json_put_fields(w, ORR_D("tokens_per_s", p->tokens_per_s), ORR_D("ttft_s", p->ttft_s),
                        ORR_D("tpot_s", p->tpot_s));
    if (p->report.high_share > 0) {
        put_span(w, "ttft_interval_s", p, p->ttft_s);
        if (p->tpot_s > 0)
            put_span(w, "tpot_interval_s", p, p->tpot_s);
        orr_json_put_bool(w, "undecided", p->is_undecided);
    }
    if (p->usd_per_mtoken > 0)
        orr_json_put_double(w, "usd_per_mtoken", p->usd_per_mtoken);
    orr_json_put_fields(w, ORR_U("tp", p->ranks.tp), ORR_U("pp", p->ranks.pp),
                        ORR_U("ep", p->ranks.ep), ORR_U("replicas", p->ranks.dp),
                        ORR_U("max_batch", p->max_batch),
                        ORR_U("weight_bytes", p->report.pools[0].weight_bytes),
                        ORR_U("kv_bytes", p->report.pools[0].kv_peak));
    if (has_command)
        orr_json_put_text(w, "serve", command_of(x, p, command));
    orr_json_end_object(w);
}

static void put_servings(const orr_plan_servings *x,
                         size_t most,
                         bool has_commands,
                         orr_json_writer *w)
{
    const orr_plan_serve_options *o = x->options;
    orr_json_put_fields(w, ORR_T("program", "orrery " ORR_VERSION), ORR_T("model", x->model),
                        ORR_T("machine", o->machine), ORR_U("requests", o->requests),
                        ORR_U("prompt", o->prompt), ORR_U("output", o->output));
    orr_json_put_array(w, "plans");
    for (size_t i = 0; i < x->count && i < most; i++)
        put_serving(x, &x->list[i], has_commands, w);
    orr_json_end_array(w);
}

orr_code orr_show_servings(const orr_plan_servings *x,
                           orr_show_form form,
                           const char *path,
                           orr_error *err)
{
    orr_buf b = {0};
    orr__document d;
    if (form == ORR_SHOW_JSON) {
        put_servings(x, x->top, false, orr__document_begin(&d, "orrery-plan-serve"));
        return orr__document_save(&d, path, err);
    }
    print_servings(&b, x);
    return orr__text_save(&b, path, err);
}

/* The page lists at most this many plans, the best ones. */
enum { PAGE_PLANS = 2000 };

orr_code orr_plan_write_serving_page(const orr_plan_servings *x,
                                     const orr_machine *m,
                                     const char *made_from,
                                     const char *path,
                                     orr_error *err)
{
    const orr_plan_serve_options *o = x->options;
    char title[300];
    orr_buf text = {0};
    orr_json_writer w;
    orr_json_writer_init(&w, &text, NULL);
    orr_json_begin_object(&w);
    put_servings(x, PAGE_PLANS, true, &w);
    orr_json_put_fields(&w, ORR_U("devices", orr_machine_devices(m)),
                        ORR_U("device_bytes", m->memory), ORR_D("max_ttft_s", o->max_ttft_s),
                        ORR_D("max_tpot_s", o->max_tpot_s), ORR_T("made_from", made_from));
    orr_json_end_object(&w);
    snprintf(title, sizeof title, "%.140s served by %.140s", x->model, o->machine);
    const orr_code code = write_page(orr__plan_serve_html, title, &text, path, err);
    orr_buf_fini(&text);
    return code;
}
