/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_plan.c - orrery plan MODEL: the best parallelism for a model on a machine (plan.h). */
#include "base/text/text.h"
#include "command.h"
#include "html_report.h"
#include "json_out.h"
#include "plan.h"

#include <orrery/lab/plan.h>
#include <orrery/lab/progress.h>
#include <orrery/lab/software.h>
#include <orrery/lab/units.h>
#include <orrery/version.h>

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define COUNT(name, fallback_, help_)                           \
    {                                                           \
        name, 0, "N", help_, CLI_COUNT, 1, INT32_MAX, fallback_ \
    }
static const cli_option options[] = {
    {"machine", 0, "MACHINE",
     "cluster by name (dgx-h100:128 is 128 nodes; orrery machine list) or file", .required = true},
    COUNT("batch", NULL, "sequences per step (default: one per device)"),
    COUNT("seq", NULL, "tokens per sequence (default: the model's)"),
    {"devices", 0, "LIST",
     "use this many devices; a list (256,512,1024) gives a scaling curve (default: all)"},
    {"fix", 0, "LIST",
     "search only plans with these: tp=8,zero=1,pipeline=1f1b,recompute=none,..."},
    {"goal", 0, "time|cost|memory", "what to minimize, over all numbers of devices",
     .fallback = "time"},
    {"top", 0, "N", "print this many plans", CLI_COUNT, 1, 1000, "10"},
    {"sure", 0, "N",
     "guarantee that the first N are the best of all legal plans; the rest are the best of those "
     "simulated",
     CLI_COUNT, 1, 1000, "1"},
    {"price", 0, "USD", "price of a device per hour (default: the machine's, if it has one)"},
    {"reserve", 0, "BYTES", "device memory to keep free for CUDA context, NCCL and fragmentation",
     .fallback = "4GiB"},
    {"dtype", 0, "bf16|fp16|fp8|fp32", "data type of matrix multiplications", .fallback = "bf16"},
    {"grads-fp32", 0, NULL, "keep and reduce gradients in fp32"},
    {"tp-overlap", 0, NULL, "overlap tensor-parallel communication with its GEMMs, chunk by chunk"},
    {"software", 0, "NAME",
     "launch the kernels of this software (default: the machine's, or megatron-core)"},
    {"serve", 0, NULL, "plans for serving: tp, pp, ep and replicas, by TTFT, TPOT and tokens/s"},
    {"requests", 0, "N",
     "serve: requests at a time, all replicas together (default: one per device)", CLI_COUNT, 1,
     10000000, .with = "serve"},
    COUNT("prompt", "1024", "serve: tokens per prompt"),
    COUNT("output", "128", "serve: tokens generated per request"),
    {"max-ttft", 0, "TIME", "serve: drop plans whose first token takes longer on average",
     .with = "serve"},
    {"max-tpot", 0, "TIME", "serve: drop plans whose next token takes longer on average",
     .with = "serve"},
    {"check", 0, NULL,
     "run the best three again, link by link, message by message and packet by packet: does the order hold?"},
    {"check-budget", 0, "TIME",
     "time budget per such run, estimated from its nodes, messages and packets; a longer step is shortened",
     .fallback = "10s", .with = "check"},
    {"check-seconds", 0, "N", "stop each of these runs after N seconds", CLI_COUNT, 1, 86400,
     .with = "check"},
    {"max-time", 0, "TIME", "search at most this long, then print the best so far; 0: no limit",
     .fallback = "10min"},
    {"no-prune", 0, NULL,
     "simulate every plan that fits, not only those that can be among the best"},
    {"threads", 0, "N", "threads; 0: one per core", CLI_COUNT, 0, 256, "0"},
    {"write", 0, "FILE", "write the traces of the best plan (.orr)", .kind = CLI_OUTPUT},
    {"csv", 0, "FILE", "write every plan that was simulated, one row each", .kind = CLI_OUTPUT},
    {"report", 0, "FILE",
     "write an HTML page: all plans, why they lose, the best plan's own report",
     .kind = CLI_OUTPUT},
    {"json", 0, NULL, "print one JSON object"},
    {0},
};

static const cli_argument arguments[] = {
    {"MODEL", "a name from 'orrery model --list', or a file", CLI_ONCE},
    {0},
};

static const cli_example examples[] = {
    {"The best ten plans for Llama 3 8B on 16 H100, at 2.50 dollars per GPU-hour:",
     "orrery plan llama-3-8b --machine dgx-h100:2 --batch 64 --price 2.5", 0},
    {"Without pipeline parallelism, as JSON:",
     "orrery plan llama-3-8b --machine dgx-h100:2 --fix tp=4,pp=1 --json", 0},
    {"How it scales, as a page:",
     "orrery plan gpt2 --machine dgx-h100 --devices 2,4,8 --report scale.html", 0},
    {"Serving with at most 30 ms per token:",
     "orrery plan llama-3-8b --machine dgx-h100:1 --serve --max-tpot 30ms", 0},
    {"What latency costs, as a page:",
     "orrery plan llama-3-8b --machine dgx-h100:1 --serve --report p.html", 0},
    {0},
};

/* ---- options ---- */

static orr_code read_fixed(const char *list, orr_plan_options *o, orr_error *err)
{
    orr_code code = ORR_OK;
    for (const char *p = list; p && !code;) {
        const size_t len = strcspn(p, ",");
        char one[80];
        if (len >= sizeof one)
            return orr_fail(err, ORR_EUSAGE, NULL, "--fix: '%.*s...' is too long", 40, p);
        memcpy(one, p, len);
        one[len] = 0;
        code = orr_plan_fix(o, one, err);
        p = p[len] ? p + len + 1 : NULL;
    }
    return code ? orr_because(err, code, "--fix") : ORR_OK;
}

static orr_code read_price(const char *text, double *out, orr_error *err)
{
    char *end;
    *out = text ? strtod(text, &end) : 0;
    if (!text || (end != text && !*end && *out > 0 && *out < 1e6))
        return ORR_OK;
    return orr_fail(err, ORR_EUSAGE, NULL, "--price '%s' is not a number of US dollars above 0",
                    text);
}

static orr_code read_devices(const char *text,
                             uint32_t out[CLI_PLAN_SIZES],
                             size_t *count,
                             orr_error *err)
{
    *count = 0;
    for (const char *p = text; p && *p;) {
        char *end;
        const unsigned long long n = strtoull(p, &end, 10);
        if (*p < '0' || *p > '9' || (*end && *end != ',') || n < 1 || n > 4194304 ||
            *count == CLI_PLAN_SIZES)
            return orr_fail(err, ORR_EUSAGE, NULL,
                            "--devices '%s' is not a list of at most %d whole numbers, as 256,512",
                            text, CLI_PLAN_SIZES);
        out[(*count)++] = (uint32_t)n;
        p = *end ? end + 1 : end;
    }
    return ORR_OK;
}

static orr_code read_options(const cli_context *c, orr_plan_options *o, orr_error *err)
{
    orr_bytes reserve;
    const char *software = cli_text(c, "software"), *goal = cli_text(c, "goal");
    *o = (orr_plan_options){.size = sizeof *o,
                            .machine = cli_text(c, "machine"),
                            .batch = cli_count(c, "batch"),
                            .seq = cli_count(c, "seq"),
                            .top = (uint32_t)cli_count(c, "top"),
                            .sure = (uint32_t)cli_count(c, "sure"),
                            .no_prune = cli_flag(c, "no-prune"),
                            .threads = (unsigned)cli_count(c, "threads"),
                            .goal = *goal == 't'   ? ORR_PLAN_TIME
                                    : *goal == 'c' ? ORR_PLAN_COST
                                                   : ORR_PLAN_MEMORY};
    o->base.grads_fp32 = cli_flag(c, "grads-fp32");
    o->base.overlaps_tensor = cli_flag(c, "tp-overlap");
    orr_dtype_find(orr_str_of(cli_text(c, "dtype")), &o->base.dtype);
    if (software && !(o->base.software = orr_software_find(software)))
        return orr_fail(err, ORR_EUSAGE, NULL, "--software '%s': 'orrery help stage' lists them",
                        software);
    orr_code code = orr_bytes_parse(cli_text(c, "reserve"), &reserve, err);
    if (code)
        return orr_because(err, code, "--reserve");
    o->reserve = (uint64_t)reserve;
    orr_ps time;
    code = orr_time_parse(cli_text(c, "max-time"), &time, err);
    if (code)
        return orr_because(err, code, "--max-time");
    o->max_seconds = (double)time * 1e-12;
    code = orr_time_parse(cli_text(c, "check-budget"), &time, err);
    if (code || time <= 0)
        return code ? orr_because(err, code, "--check-budget")
                    : orr_fail(err, ORR_EUSAGE, NULL, "--check-budget must be above 0");
    code = read_price(cli_text(c, "price"), &o->usd_per_hour, err);
    return code ? code : read_fixed(cli_text(c, "fix"), o, err);
}

static orr_code check_options(const cli_context *c, orr_error *err)
{
    for (const cli_option *o = options; o->name; o++)
        if (o->with && cli_given(c, o->name) && !cli_given(c, o->with))
            return orr_fail(err, ORR_EUSAGE, NULL, "--%s needs --%s", o->name, o->with);
    const bool has_training = cli_given(c, "batch") || cli_given(c, "seq") ||
                              cli_given(c, "check") || cli_given(c, "write") ||
                              cli_given(c, "no-prune");
    if (cli_flag(c, "serve") && has_training)
        return orr_fail(err, ORR_EUSAGE, NULL,
                        "--batch, --seq, --check, --write and --no-prune do not apply to --serve");
    return ORR_OK;
}

/* ---- interrupts and progress ---- */

static orr_plan_search *volatile searching;

static void stop_searching(int signal_number)
{
    orr_plan_search *s = searching;
    (void)signal_number;
    if (s)
        orr_plan_search_stop(s);
}

/* False: nobody wants them. */
static bool catch_interrupts(orr_plan_search *s, struct sigaction *old)
{
    const struct sigaction stop = {.sa_handler = stop_searching, .sa_flags = (int)SA_RESETHAND};
    if (sigaction(SIGINT, NULL, old) != 0 || old->sa_handler == SIG_IGN)
        return false;
    searching = s;
    return sigaction(SIGINT, &stop, NULL) == 0;
}

static void release_interrupts(bool is_caught, const struct sigaction *old)
{
    if (is_caught)
        sigaction(SIGINT, old, NULL);
    searching = NULL;
}

static orr_code run_to_end(orr_plan_search *s, orr_error *err)
{
    struct sigaction old;
    const bool is_caught = catch_interrupts(s, &old);
    const orr_code code = orr_plan_search_run(s, err);
    release_interrupts(is_caught, &old);
    return code;
}

static void show_progress(void *context, const orr_plan_counts *n)
{
    orr_progress *p = context;
    p->total = n->simulated + n->to_do;
    orr_progress_add(p, n->simulated - p->done);
}

/* ---- again ---- */

static void show_rerun(void *context)
{
    orr_progress_add(context, 1);
}

/* Ctrl-C starts no more. */
static orr_code rerun(cli_context *c,
                      cli_plan *x,
                      const char *what,
                      orr_plan_rerun *list,
                      size_t count,
                      orr_error *err)
{
    orr_progress progress;
    struct sigaction old;
    orr_progress_start(&progress, what, "runs", count, c->quiet);
    const bool is_caught = catch_interrupts(x->search, &old);
    const orr_code code = orr_plan_rerun_all(x->search, list, count, show_rerun, &progress, err);
    release_interrupts(is_caught, &old);
    orr_progress_end(&progress);
    return code;
}

/* ---- what 2 x buys ---- */

static orr_code find_rates(cli_context *c, cli_plan *x, orr_error *err)
{
    const orr_machine *m = orr_plan_search_machine(x->search);
    const orr_plan *best = orr_plan_at(x->search, 0);
    const bool has_two = m->nodes > 1 && m->devices > 1;
    const struct {
        const char *name;
        orr_run_change change;
        bool is_there;
    } all[CLI_PLAN_RATES] = {{"links inside nodes",
                              {.has_dimension = true, .dimension = 0, .bandwidth = 2},
                              m->devices > 1},
                             {"network between nodes",
                              {.has_dimension = true, .dimension = has_two ? 1 : 0, .bandwidth = 2},
                              m->nodes > 1},
                             {"device memory", {.memory = 2}, true},
                             {"compute, all kernels", {.compute = 2}, true}};
    orr_plan_rerun runs[CLI_PLAN_RATES] = {0};
    size_t count = 0;
    for (size_t i = 0; i < CLI_PLAN_RATES; i++) {
        if (!all[i].is_there)
            continue;
        x->rates[count].name = all[i].name;
        runs[count++] = (orr_plan_rerun){.plan = best, .how = {.change = all[i].change}};
    }
    const orr_code code = rerun(c, x, "what faster parts buy", runs, count, err);
    x->rate_count = 0;
    for (size_t i = 0; i < count && !code; i++) {
        if (!(runs[i].step_s > 0))
            continue;
        x->rates[x->rate_count].name = x->rates[i].name;
        x->rates[x->rate_count++].step_s = runs[i].step_s;
    }
    return code;
}

/* ---- in more detail ---- */

static void show_check(void *context, double done_s, double all_s)
{
    orr_progress *p = context;
    p->total = (uint64_t)(all_s * 1000) + 1;
    orr_progress_add(p, (uint64_t)(done_s * 1000) - p->done);
}

/* The best three at each level, all at once. */
static orr_code check_plans(cli_context *c, cli_plan *x, orr_error *err)
{
    orr_progress progress;
    struct sigaction old;
    orr_ps budget;
    orr_plan_check list[ORR_PLAN_LEVELS * CLI_PLAN_CHECKED] = {0};
    const size_t all = orr_plan_count(x->search),
                 each = all < CLI_PLAN_CHECKED ? all : CLI_PLAN_CHECKED;
    orr_code code = orr_time_parse(cli_text(c, "check-budget"), &budget, err);
    if (code)
        return orr_because(err, code, "--check-budget");
    const orr_plan_check_options opt = {.size = sizeof opt,
                                        .budget_s = (double)budget * 1e-12,
                                        .max_seconds = (double)cli_count(c, "check-seconds"),
                                        .progress = show_check,
                                        .context = &progress};
    for (size_t k = 0; k < ORR_PLAN_LEVELS; k++)
        for (size_t i = 0; i < each; i++)
            list[k * each + i] =
                (orr_plan_check){.plan = orr_plan_at(x->search, i), .level = (orr_plan_level)k};
    orr_progress_start(&progress, "checking", "ms of expected work", 0, c->quiet);
    const bool is_caught = catch_interrupts(x->search, &old);
    code = orr_plan_check_all(x->search, &opt, list, ORR_PLAN_LEVELS * each, err);
    release_interrupts(is_caught, &old);
    orr_progress_end(&progress);
    for (size_t k = 0; k < ORR_PLAN_LEVELS && !code; k++)
        memcpy(x->checks[k], &list[k * each], each * sizeof *list);
    x->check_count = code ? 0 : each;
    return code;
}

/* ---- the command ---- */

static orr_code search_one(
    cli_context *c, orr_plan_options *o, uint32_t devices, cli_plan *x, orr_error *err)
{
    orr_progress progress;
    cli_plan_size *size = &x->sizes[x->size_count];
    orr_progress_start(&progress, "simulating", "plans", 0, c->quiet);
    o->devices = devices;
    o->progress = show_progress;
    o->context = &progress;
    orr_code code = orr_plan_search_create(o, &size->search, err);
    if (!code)
        code = run_to_end(size->search, err);
    orr_progress_end(&progress);
    const orr_plan *best = !code || code == ORR_ESTOP ? orr_plan_at(size->search, 0) : NULL;
    if (!best) {
        if (code == ORR_ESTOP && orr_plan_search_is_late(size->search))
            code =
                orr_fail(err, ORR_EUSAGE, NULL,
                         "--max-time %s is over before a plan was simulated; --fix and a smaller "
                         "--batch make the search smaller",
                         cli_text(c, "max-time"));
        orr_plan_search_destroy(size->search);
        size->search = NULL;
        return code;
    }
    if (code && orr_plan_search_is_late(size->search)) {
        x->is_late = true;
        code = ORR_OK;
    }
    size->devices = orr_machine_devices(orr_plan_search_machine(size->search));
    size->best = *best;
    orr_plan_search_counts(size->search, &size->counts);
    x->size_count++;
    return code;
}

/* Devices x time is what a step costs, whatever the price of a device. */
static double by_goal(orr_plan_goal goal, const cli_plan_size *s)
{
    return goal == ORR_PLAN_MEMORY ? (double)s->best.memory.peak
           : goal == ORR_PLAN_COST ? s->best.step_s * s->devices
                                   : s->best.step_s;
}

static void choose_size(orr_plan_goal goal, cli_plan *x)
{
    x->best_size = 0;
    for (size_t i = 1; i < x->size_count; i++)
        if (by_goal(goal, &x->sizes[i]) < by_goal(goal, &x->sizes[x->best_size]))
            x->best_size = i;
    x->search = x->size_count ? x->sizes[x->best_size].search : NULL;
}

static orr_code write_traces(const cli_plan *x, const char *path, orr_error *err)
{
    orr_set *set;
    const orr_plan *best = orr_plan_at(x->search, 0);
    orr_code code = orr_llm_training(x->model, &best->options, &set, err);
    if (!code)
        code = orr_set_save(set, path, NULL, err);
    orr_set_close(set);
    return code;
}

static orr_code write_outputs(cli_context *c, cli_plan *x, orr_error *err)
{
    orr_code code = find_rates(c, x, err);
    if (!code && cli_flag(c, "check"))
        code = check_plans(c, x, err);
    if (!code && cli_given(c, "write"))
        code = write_traces(x, cli_text(c, "write"), err);
    if (!code && cli_given(c, "csv"))
        code = cli_plan_csv(x, cli_text(c, "csv"), err);
    if (!code && cli_given(c, "report"))
        code = cli_plan_report(c, x, cli_text(c, "report"), err);
    return code;
}

static orr_code run_plan(cli_context *c, orr_error *err)
{
    orr_plan_options o;
    orr_model model;
    uint32_t sizes[CLI_PLAN_SIZES] = {0};
    size_t count = 0;
    orr_code code = check_options(c, err);
    if (!code && cli_flag(c, "serve")) {
        double price;
        code = read_price(cli_text(c, "price"), &price, err);
        return code ? code : cli_plan_serve(c, price, err);
    }
    if (!code)
        code = orr_model_load(c->args[0], &model, err);
    if (!code)
        code = read_options(c, &o, err);
    if (!code)
        code = read_devices(cli_text(c, "devices"), sizes, &count, err);
    if (code)
        return code;
    cli_plan x = {.model = &model,
                  .name = c->args[0],
                  .machine = cli_text(c, "machine"),
                  .top = cli_count(c, "top"),
                  .sure = cli_count(c, "sure"),
                  .max_s = o.max_seconds,
                  .goal = cli_text(c, "goal")};
    o.model = &model;
    for (size_t i = 0; i < (count ? count : 1) && !code; i++)
        code = search_one(c, &o, sizes[i], &x, err);
    choose_size(o.goal, &x);
    const orr_code stopped = code;
    x.is_stopped = stopped == ORR_ESTOP;
    if (!code)
        code = write_outputs(c, &x, err);
    if (!code || (stopped == ORR_ESTOP && x.search && orr_plan_count(x.search))) {
        if (stopped) {
            orr_fail(err, ORR_ESTOP, NULL, "interrupted: these are the best so far");
            cli_report(c, err);
        }
        if (cli_flag(c, "json"))
            cli_plan_json(&x);
        else
            cli_plan_text(&x);
    }
    for (size_t i = 0; i < x.size_count; i++)
        orr_plan_search_destroy(x.sizes[i].search);
    return code;
}

const cli_command cli_cmd_plan = {
    .name = "plan",
    .summary = "search the best parallelism for a model on a machine",
    .description =
        "Searches every legal way to spread a training step over a machine: tensor, context, pipeline, data and "
        "expert parallelism, ZeRO, micro-batch, pipeline schedule, recomputation, sequence parallelism. Plans that do not fit "
        "into memory are dropped, the others are simulated in the order of a lower bound, until none of those left "
        "can be among the best.\n\n"
        "Prints the best plans with their 90 % intervals, what costs them time, what faster parts would buy the best "
        "one, and the commands that reproduce each. Ctrl-C prints the best so far.",
    .options = options,
    .arguments = arguments,
    .examples = examples,
    .see_also = "orrery-machine(1), orrery-run(1), orrery-stage(1)",
    .run = run_plan,
};
