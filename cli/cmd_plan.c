/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_plan.c - orrery plan MODEL: the best parallelism for a model on a machine (plan.h). */
#include <orrery/lab/plan.h>
#include <orrery/lab/progress.h>
#include <orrery/lab/software.h>
#include <orrery/lab/units.h>

#include "base/text/text.h"
#include "command.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* ---- --report: the page, and next to it the report of the best plan ---- */

/* "plan.html" -> "plan.best.html" */
static bool name_best(const char *path, char *out, size_t size)
{
    const size_t length = strlen(path);
    const bool is_html = length > 5 && strcmp(path + length - 5, ".html") == 0;
    const int n = snprintf(out, size, "%.*s.best.html", (int)(is_html ? length - 5 : length), path);
    return n > 0 && (size_t)n < size;
}

static orr_code write_best(cli_context *c,
                           const orr_plan_findings *x,
                           const char *path,
                           orr_error *err)
{
    const orr_plan *best = orr_plan_at(x->search, 0);
    orr_set *set = NULL;
    orr_run *run = NULL;
    char name[400];
    snprintf(name, sizeof name, "%.180s, the best plan on %.180s", x->name, x->machine);
    orr_code code = orr_llm_training(x->model, &best->options, &set, err);
    const orr_run_config config = {.size = sizeof config,
                                   .set = set,
                                   .traces = x->name,
                                   .machine = x->machine,
                                   .software =
                                       best->options.software ? best->options.software->name : NULL,
                                   .records = ORR_RUN_SPANS | ORR_RUN_HISTORY};
    if (!code)
        code = orr_run_create(&config, &run, err);
    if (!code)
        code = orr_run_to_end(run, err);
    const orr_explain_options about = {.name = name, .what_if = ORR_WHAT_IF_ESTIMATE};
    if (!code)
        code = cli_report_one(c, run, &about, path, err);
    orr_run_destroy(run);
    orr_set_close(set);
    return code;
}

static orr_code plan_report(cli_context *c,
                            const orr_plan_findings *x,
                            const char *path,
                            orr_error *err)
{
    char best[4096] = "";
    char *line = cli_command_line(c);
    orr_code code = line ? ORR_OK : orr_fail(err, ORR_ENOMEM, NULL, "out of memory");
    if (!code && strcmp(path, "-") != 0 && name_best(path, best, sizeof best))
        code = write_best(c, x, best, err);
    const char *slash = strrchr(best, '/');
    if (!code)
        code = orr_plan_write_page(x, best[0] ? (slash ? slash + 1 : best) : NULL, line, path, err);
    free(line);
    return code;
}

/* ---- --serve: how to serve a model on a machine, by the estimate of serve.h ---- */

static orr_code read_time(const cli_context *c, const char *name, double *out, orr_error *err)
{
    orr_ps ps = 0;
    const char *text = cli_text(c, name);
    const orr_code code = text ? orr_time_parse(text, &ps, err) : ORR_OK;
    *out = (double)ps * 1e-12;
    return code ? orr_because(err, code, "--%s", name) : ORR_OK;
}

static orr_code write_serving_page(const cli_context *c,
                                   const orr_plan_servings *x,
                                   const orr_machine *m,
                                   orr_error *err)
{
    char *line = cli_command_line(c);
    if (!line)
        return orr_fail(err, ORR_ENOMEM, NULL, "out of memory");
    const orr_code code = orr_plan_write_serving_page(x, m, line, cli_text(c, "report"), err);
    free(line);
    return code;
}

static orr_code read_devices(const char *text,
                             uint32_t out[ORR_PLAN_SIZES],
                             size_t *count,
                             orr_error *err)
{
    *count = 0;
    for (const char *p = text; p && *p;) {
        char *end;
        const unsigned long long n = strtoull(p, &end, 10);
        if (*p < '0' || *p > '9' || (*end && *end != ',') || n < 1 || n > 4194304 ||
            *count == ORR_PLAN_SIZES)
            return cli_misuse(
                err, "--devices '%s' is not a list of at most %d whole numbers such as 256,512",
                text, ORR_PLAN_SIZES);
        out[(*count)++] = (uint32_t)n;
        p = *end ? end + 1 : end;
    }
    return ORR_OK;
}

/* A signal handler has no context argument. */
static int serve_stop;
static volatile sig_atomic_t serve_is_interrupted;

static void stop_serving(int signal_number)
{
    (void)signal_number;
    serve_is_interrupted = 1;
    __atomic_store_n(&serve_stop, 1, __ATOMIC_RELAXED);
}

/* With Ctrl-C as the end of the search. */
static orr_code search_serving(orr_plan_serve_options *o,
                               orr_plan_serving **out,
                               size_t *count,
                               orr_error *err)
{
    struct sigaction old, stop = {.sa_handler = stop_serving, .sa_flags = (int)SA_RESETHAND};
    const bool is_ignored = sigaction(SIGINT, NULL, &old) != 0 || old.sa_handler == SIG_IGN;
    serve_stop = serve_is_interrupted = 0;
    o->stop = &serve_stop;
    if (!is_ignored)
        sigaction(SIGINT, &stop, NULL);
    const orr_code code = orr_plan_serve(o, out, count, err);
    if (!is_ignored)
        sigaction(SIGINT, &old, NULL);
    return code;
}

static orr_code say_stopped(cli_context *c, double max_seconds, size_t count, orr_error *err)
{
    char limit[80] = "interrupted";
    if (!serve_is_interrupted)
        snprintf(limit, sizeof limit, "the limit of %.6g s is reached", max_seconds);
    const orr_code code = orr_fail(err, ORR_ESTOP, NULL, "%s: %s", limit,
                                   count ? "these are the best so far" : "no plan was estimated");
    cli_report(c, err);
    return code;
}

static orr_code plan_serve(cli_context *c, double usd_per_hour, orr_error *err)
{
    orr_model model;
    orr_machine machine;
    orr_plan_serving *list;
    uint32_t sizes[ORR_PLAN_SIZES] = {0};
    size_t count;
    orr_code code = read_devices(cli_text(c, "devices"), sizes, &count, err);
    if (!code && count > 1)
        code = cli_misuse(err, "--devices '%s': --serve takes one number", cli_text(c, "devices"));
    if (!code)
        code = orr_model_load(c->args[0], &model, err);
    orr_plan_serve_options o = {.size = sizeof o,
                                .model = &model,
                                .machine = cli_text(c, "machine"),
                                .requests = cli_count(c, "requests"),
                                .prompt = cli_count(c, "prompt"),
                                .output = cli_count(c, "output"),
                                .devices = sizes[0],
                                .usd_per_hour = usd_per_hour,
                                .threads = (unsigned)cli_count(c, "threads")};
    if (!code)
        code = read_time(c, "max-ttft", &o.max_ttft_s, err);
    if (!code)
        code = read_time(c, "max-tpot", &o.max_tpot_s, err);
    if (!code)
        code = read_time(c, "max-time", &o.max_seconds, err);
    orr_dtype_find(orr_str_of(cli_text(c, "dtype")), &o.dtype);
    if (!code && (code = o.devices ? orr_machine_for(o.machine, o.devices, &machine, err)
                                   : orr_machine_find(o.machine, &machine, err)))
        code = orr_because(err, code, "--machine %s", o.machine);
    if (!code && !o.requests)
        o.requests = orr_machine_devices(&machine);
    if (code)
        return code;
    code = search_serving(&o, &list, &count, err);
    if (code && code != ORR_ESTOP)
        return code;
    const bool is_stopped = code == ORR_ESTOP;
    code = ORR_OK;
    const orr_plan_servings found = {.model = c->args[0],
                                     .options = &o,
                                     .list = list,
                                     .count = count,
                                     .top = cli_count(c, "top")};
    if (cli_given(c, "report") && count)
        code = write_serving_page(c, &found, &machine, err);
    if (!code && count)
        code = orr_show_servings(&found, cli_show_form(c), "-", err);
    orr_plan_serve_free(list);
    if (code || !is_stopped)
        return code;
    const orr_code stopped = say_stopped(c, o.max_seconds, count, err);
    /* As in a search of training plans, the default limit is no failure. */
    const bool is_default = !serve_is_interrupted && !cli_given(c, "max-time") && count;
    return is_default ? ORR_OK : stopped;
}

#define COUNT(name, with_, fallback_, help_)                                   \
    {                                                                          \
        name, 0, "N", help_, CLI_COUNT, 1, INT32_MAX, fallback_, .with = with_ \
    }
static const cli_option options[] = {
    {"machine", 0, "MACHINE",
     "cluster by name (dgx-h100:128 is 128 nodes; orrery machine list) or file", .required = true},
    COUNT("batch", NULL, NULL, "sequences per step (default: one per device)"),
    COUNT("seq", NULL, NULL, "tokens per sequence (default: the model's)"),
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
    {"software", 0, "NAME",
     "launch the kernels of this software (default: the machine's, or megatron-core)"},
    CLI_TRAINING_OPTIONS,
    {"serve", 0, NULL, "plans for serving: tp, pp, ep and replicas, by TTFT, TPOT and tokens/s"},
    {"requests", 0, "N",
     "serve: requests at a time, all replicas together (default: one per device)", CLI_COUNT, 1,
     10000000, .with = "serve"},
    COUNT("prompt", "serve", "1024", "serve: tokens per prompt"),
    COUNT("output", "serve", "128", "serve: tokens generated per request"),
    {"max-ttft", 0, "TIME", "serve: drop plans whose first token takes longer on average",
     .with = "serve"},
    {"max-tpot", 0, "TIME", "serve: drop plans whose next token takes longer on average",
     .with = "serve"},
    {"check", 0, NULL,
     "run the best three again, link by link, message by message and packet by packet: is "
     "the order the same?"},
    {"check-budget", 0, "TIME",
     "time budget per such run, estimated from its nodes, messages and packets; a longer step is shortened",
     .fallback = "10s", .with = "check"},
    {"check-seconds", 0, "N", "stop each of these runs after N seconds", CLI_COUNT, 1, 86400,
     .with = "check"},
    {"max-time", 0, "TIME", "search at most this long, then print the best so far; 0: no limit",
     .fallback = "10min"},
    CLI_LIMITS_OF_WORK,
    {"no-prune", 0, NULL,
     "simulate every plan that fits, not only those that can be among the best"},
    {"threads", 0, "N", "threads; 0: one per core", CLI_COUNT, 0, 256, "0"},
    {"write", 0, "FILE", "write the traces of the best plan (.orr)", .kind = CLI_OUTPUT},
    {"csv", 0, "FILE", "write every plan that was simulated, one row each", .kind = CLI_OUTPUT},
    {"report", 0, "FILE",
     "write an HTML page: all plans, what limits them, and the report of the best",
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
            return cli_misuse(err, "--fix: '%.*s...' is too long", 40, p);
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
    return cli_misuse(err, "--price '%s' is not a number of US dollars above 0", text);
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
    if (software && !(o->base.software = orr_software_find(software)))
        return cli_no_software(software, err);
    orr_code code = cli_training_options(c, &o->base, err);
    if (code)
        return code;
    code = orr_bytes_parse(cli_text(c, "reserve"), &reserve, err);
    if (code)
        return orr_because(err, code, "--reserve");
    o->reserve = (uint64_t)reserve;
    orr_ps time;
    code = orr_time_parse(cli_text(c, "max-time"), &time, err);
    if (code)
        return orr_because(err, code, "--max-time");
    o->max_seconds = (double)time * 1e-12;
    orr_bytes bytes = 0;
    if (cli_given(c, "max-memory") && orr_bytes_parse(cli_text(c, "max-memory"), &bytes, err))
        return orr_because(err, ORR_EUSAGE, "--max-memory");
    if (cli_given(c, "max-memory") && !bytes)
        return cli_misuse(err, "--max-memory must be above 0");
    o->max_bytes = bytes;
    o->max_events = cli_count(c, "max-events");
    code = orr_time_parse(cli_text(c, "check-budget"), &time, err);
    if (code || time <= 0)
        return code ? orr_because(err, code, "--check-budget")
                    : cli_misuse(err, "--check-budget must be above 0");
    code = read_price(cli_text(c, "price"), &o->usd_per_hour, err);
    return code ? code : read_fixed(cli_text(c, "fix"), o, err);
}

static orr_code check_options(const cli_context *c, orr_error *err)
{
    for (const cli_option *o = options; o->name; o++)
        if (o->with && cli_given(c, o->name) && !cli_given(c, o->with))
            return cli_misuse(err, "--%s needs --%s", o->name, o->with);
    static const char *const of_training[] = {
        "batch", "seq",          "fix",           "goal",  "sure", "reserve", "software",
        "check", "check-budget", "check-seconds", "write", "csv",  "no-prune"};
    for (size_t i = 0; cli_flag(c, "serve") && i < sizeof of_training / sizeof *of_training; i++)
        if (cli_given(c, of_training[i]))
            return cli_misuse(err, "--%s does not apply to --serve", of_training[i]);
    const char *const given = cli_training_given(c, "dtype");
    if (cli_flag(c, "serve") && given)
        return cli_misuse(err, "--%s does not apply to --serve", given);
    if (cli_flag(c, "serve") && (cli_given(c, "max-memory") || cli_given(c, "max-events")))
        return cli_misuse(err, "--max-memory and --max-events do not apply to --serve, which "
                               "simulates nothing");
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

/* False: SIGINT is ignored (nohup), or cannot be caught. */
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

/* ---- reruns ---- */

static void show_rerun(void *context)
{
    orr_progress_add(context, 1);
}

/* After Ctrl-C no further runs are started. */
static orr_code rerun(cli_context *c,
                      orr_plan_findings *x,
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

/* ---- gain from doubling each rate ---- */

static orr_code find_rates(cli_context *c, orr_plan_findings *x, orr_error *err)
{
    const orr_machine *m = orr_plan_search_machine(x->search);
    const orr_plan *best = orr_plan_at(x->search, 0);
    const bool has_two = m->nodes > 1 && m->devices > 1;
    const struct {
        const char *name;
        orr_run_change change;
        bool is_there;
    } all[ORR_PLAN_RATES] = {{"links inside nodes",
                              {.has_dimension = true, .dimension = 0, .bandwidth = 2},
                              m->devices > 1},
                             {"network between nodes",
                              {.has_dimension = true, .dimension = has_two ? 1 : 0, .bandwidth = 2},
                              m->nodes > 1},
                             {"device memory", {.memory = 2}, true},
                             {"compute, all kernels", {.compute = 2}, true}};
    orr_plan_rerun runs[ORR_PLAN_RATES] = {0};
    size_t count = 0;
    for (size_t i = 0; i < ORR_PLAN_RATES; i++) {
        if (!all[i].is_there)
            continue;
        x->rates[count].name = all[i].name;
        runs[count++] = (orr_plan_rerun){.plan = best, .how = {.change = all[i].change}};
    }
    const orr_code code = rerun(c, x, "what faster hardware would gain", runs, count, err);
    x->rate_count = 0;
    for (size_t i = 0; i < count && !code; i++) {
        if (!(runs[i].step_s > 0))
            continue;
        x->rates[x->rate_count].name = x->rates[i].name;
        x->rates[x->rate_count++].step_s = runs[i].step_s;
    }
    return code;
}

/* ---- more detailed networks ---- */

static void show_check(void *context, double done_s, double all_s)
{
    orr_progress *p = context;
    p->total = (uint64_t)(all_s * 1000) + 1;
    orr_progress_add(p, (uint64_t)(done_s * 1000) - p->done);
}

/* Check the best three plans at each level, all in parallel. */
static orr_code check_plans(cli_context *c, orr_plan_findings *x, orr_error *err)
{
    orr_progress progress;
    struct sigaction old;
    orr_ps budget;
    orr_plan_check list[ORR_PLAN_LEVELS * ORR_PLAN_CHECKED] = {0};
    const size_t all = orr_plan_count(x->search),
                 each = all < ORR_PLAN_CHECKED ? all : ORR_PLAN_CHECKED;
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

static void note_events(orr_plan_findings *x)
{
    snprintf(x->limit, sizeof x->limit, "the limit of %llu event%s is reached",
             (unsigned long long)x->max_events, x->max_events == 1 ? "" : "s");
}

/* Record in words which limit the search reached: memory or events. */
static void note_limit(orr_plan_findings *x, const orr_plan_search *s, const orr_plan_options *o)
{
    char bytes[ORR_UNIT_ROOM];
    if (orr_plan_search_is_full(s)) {
        orr_bytes_text((orr_bytes)o->max_bytes, bytes);
        snprintf(x->limit, sizeof x->limit, "the limit of %s of memory is reached", bytes);
    } else if (orr_plan_search_is_spent(s)) {
        note_events(x);
    }
}

static orr_code search_one(
    cli_context *c, orr_plan_options *o, uint32_t devices, orr_plan_findings *x, orr_error *err)
{
    orr_progress progress;
    orr_plan_size *size = &x->sizes[x->size_count];
    orr_progress_start(&progress, "simulating", "plans", 0, c->quiet);
    o->devices = devices;
    o->progress = show_progress;
    o->context = &progress;
    orr_code code = orr_plan_search_create(o, &size->search, err);
    if (!code)
        code = run_to_end(size->search, err);
    orr_progress_end(&progress);
    const orr_plan *best = !code || code == ORR_ESTOP ? orr_plan_at(size->search, 0) : NULL;
    if (code == ORR_ESTOP && !orr_plan_search_is_late(size->search))
        note_limit(x, size->search, o);
    if (!best) {
        const bool is_late = code == ORR_ESTOP && orr_plan_search_is_late(size->search);
        x->is_late |= is_late;
        if (is_late && x->size_count)
            code = ORR_OK; /* smaller numbers of devices have results */
        else if (is_late)
            code = cli_misuse(
                err,
                "--max-time %s expired before any plan was simulated; --fix or a smaller --batch "
                "shortens the search",
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

static double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Search every number of devices; limits apply to all searches together. */
static orr_code search_all(cli_context *c,
                           orr_plan_options *o,
                           const uint32_t *sizes,
                           size_t count,
                           orr_plan_findings *x,
                           orr_error *err)
{
    const double start_s = now_s();
    orr_code code = ORR_OK;
    for (size_t i = 0; i < count && !code && !x->is_late; i++) {
        uint64_t used = 0;
        for (size_t k = 0; k < x->size_count; k++)
            used += x->sizes[k].counts.events;
        const double left_s = x->max_s - (now_s() - start_s);
        if (i && x->max_s > 0 && !(left_s > 0)) {
            x->is_late = true;
            break;
        }
        o->max_seconds = i && x->max_s > 0 ? left_s : x->max_s;
        o->max_events = x->max_events > used ? x->max_events - used : 0;
        if (x->max_events && !o->max_events) {
            note_events(x);
            return orr_fail(err, ORR_ESTOP, NULL, "stopped");
        }
        code = search_one(c, o, sizes[i], x, err);
    }
    return code;
}

/* The cost of a step is proportional to devices x time. */
static double by_goal(orr_plan_goal goal, const orr_plan_size *s)
{
    return goal == ORR_PLAN_MEMORY ? (double)s->best.memory.peak
           : goal == ORR_PLAN_COST ? s->best.step_s * s->devices
                                   : s->best.step_s;
}

static void choose_size(orr_plan_goal goal, orr_plan_findings *x)
{
    x->best_size = 0;
    for (size_t i = 1; i < x->size_count; i++)
        if (by_goal(goal, &x->sizes[i]) < by_goal(goal, &x->sizes[x->best_size]))
            x->best_size = i;
    x->search = x->size_count ? x->sizes[x->best_size].search : NULL;
}

static orr_code write_traces(const orr_plan_findings *x, const char *path, orr_error *err)
{
    orr_set *set;
    const orr_plan *best = orr_plan_at(x->search, 0);
    orr_code code = orr_llm_training(x->model, &best->options, &set, err);
    if (!code)
        code = orr_set_save(set, path, NULL, err);
    orr_set_close(set);
    return code;
}

/* Write the output that needs no further simulation. */
static orr_code write_known(cli_context *c, orr_plan_findings *x, orr_error *err)
{
    orr_code code = ORR_OK;
    if (cli_given(c, "write"))
        code = write_traces(x, cli_text(c, "write"), err);
    if (!code && cli_given(c, "csv"))
        code = orr_plan_write_csv(x->search, cli_text(c, "csv"), err);
    return code;
}

static orr_code write_outputs(cli_context *c, orr_plan_findings *x, orr_error *err)
{
    orr_code code = find_rates(c, x, err);
    if (!code && cli_flag(c, "check"))
        code = check_plans(c, x, err);
    if (!code)
        code = write_known(c, x, err);
    if (!code && cli_given(c, "report"))
        code = plan_report(c, x, cli_text(c, "report"), err);
    return code;
}

static orr_code run_plan(cli_context *c, orr_error *err)
{
    orr_plan_options o;
    orr_model model;
    uint32_t sizes[ORR_PLAN_SIZES] = {0};
    size_t count = 0;
    orr_code code = check_options(c, err);
    if (!code && cli_flag(c, "serve")) {
        double price;
        code = read_price(cli_text(c, "price"), &price, err);
        return code ? code : plan_serve(c, price, err);
    }
    if (!code)
        code = orr_model_load(c->args[0], &model, err);
    if (!code)
        code = read_options(c, &o, err);
    if (!code)
        code = read_devices(cli_text(c, "devices"), sizes, &count, err);
    if (code)
        return code;
    orr_plan_findings x = {.model = &model,
                           .name = c->args[0],
                           .machine = cli_text(c, "machine"),
                           .top = cli_count(c, "top"),
                           .sure = cli_count(c, "sure"),
                           .max_s = o.max_seconds,
                           .max_events = o.max_events,
                           .size_wanted = count ? count : 1,
                           .goal = cli_text(c, "goal")};
    o.model = &model;
    code = search_all(c, &o, sizes, x.size_wanted, &x, err);
    choose_size(o.goal, &x);
    const orr_code stopped = code;
    x.is_stopped = stopped == ORR_ESTOP;
    if (!code)
        code = write_outputs(c, &x, err);
    else if (x.limit[0] && x.search && write_known(c, &x, err))
        code = err->code;
    const bool has_plans = x.search && orr_plan_count(x.search);
    const bool is_stopped = stopped == ORR_ESTOP && code == ORR_ESTOP;
    if (!code || (is_stopped && has_plans)) {
        const orr_code shown = orr_show_plans(&x, cli_show_form(c), "-", err);
        if (shown)
            code = shown;
    }
    if (is_stopped && code == ORR_ESTOP) { /* a plan that could not be printed is the worse news */
        orr_fail(err, ORR_ESTOP, NULL, "%s: %s", x.limit[0] ? x.limit : "interrupted",
                 has_plans ? "these are the best so far" : "no plan was simulated");
        cli_report(c, err);
    }
    for (size_t i = 0; i < x.size_count; i++)
        orr_plan_search_destroy(x.sizes[i].search);
    if (code || !x.is_late || !cli_given(c, "max-time"))
        return code;
    code = orr_fail(err, ORR_ESTOP, NULL,
                    "the limit of %.6g s is reached: these are the best so far", x.max_s);
    cli_report(c, err);
    return code;
}

const cli_command cli_cmd_plan = {
    .name = "plan",
    .summary = "search for the best parallelism of a model on a machine",
    .description =
        "Searches every legal way to spread a training step over a machine: tensor, context, pipeline, data and "
        "expert parallelism, ZeRO, micro-batch, pipeline schedule, recomputation, sequence "
        "parallelism. Plans that do not fit into memory are dropped; the others are simulated in "
        "order of a lower bound, until no remaining plan can be among the best.\n\n"
        "Prints the best plans with their 90 % intervals, what costs them time, what faster "
        "hardware would gain the best one, and the commands that reproduce each. Ctrl-C prints "
        "the best so far.",
    .options = options,
    .arguments = arguments,
    .examples = examples,
    .see_also = "orrery-machine(1), orrery-run(1), orrery-stage(1)",
    .run = run_plan,
};
