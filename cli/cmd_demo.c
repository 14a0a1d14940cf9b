/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_demo.c - orrery demo: an end-to-end example, step by step.
 *
 * Prints each step as the command a user would type and runs it through the same functions:
 * generate the traces of a training step of a language model, read them back from their file, check
 * them, summarize them, simulate them on a cluster of DGX H100, and write a report.  Model, machine
 * and batch are realistic, so that the figures can be compared with published ones. */
#include "command.h"

#include <orrery/check.h>
#include <orrery/lab/info.h>
#include <orrery/lab/llm.h>
#include <orrery/version.h>
#include <orrery/view.h>

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

static const cli_option options[] = {
    {"output", 'o', "DIR", "output folder", .fallback = "orrery-demo", .kind = CLI_FOLDER},
    {"ranks", 'n', "N", "number of ranks: whole hosts of 8, or fewer than 8", CLI_COUNT, 2, 65536,
     "256"},
    {"json", 0, NULL, "print the result of the run as one JSON object, nothing else"},
    CLI_LIMITS,
    {0},
};

static const cli_example examples[] = {
    {"32 ranks instead of 256, with a timeline of all, into small/:",
     "orrery demo --ranks 32 -o small", 0},
    {0},
};

enum { PATH_ROOM = 4096, HOST_RANKS = 8, STAGES = 4, PATH_STEPS = 5, MICRO_BATCHES = 16 };
static const char machine[] = "dgx-h100";
enum { TIMELINE_RANKS = 64 }; /* with more ranks the timeline is too large to view */

typedef struct demo {
    cli_context *c;
    const char *folder;
    uint32_t ranks;
    const char *model;
    char traces[PATH_ROOM], timeline[PATH_ROOM], report[PATH_ROOM];
    orr_run_config limits;
    orr_error *err;
} demo;

/* ---- output ---- */

/* Print the command a user would type for the next step. */
static void print_step(const demo *d, const char *words, const char *rest)
{
    const bool is_colored = cli_is_colored(d->c, stdout);
    if (cli_flag(d->c, "json"))
        return;
    printf(is_colored ? "\033[1m$ " : "$ ");
    printf("orrery %s %s", words, rest);
    printf(is_colored ? "\033[0m\n" : "\n");
    fflush(stdout); /* the step may write to the descriptor */
}

static void print_text(const demo *d, orr_str text)
{
    if (cli_flag(d->c, "json"))
        return;
    cli_print(text);
    putchar('\n');
}

/* ---- traces ---- */

static orr_code make_folder(const demo *d)
{
    if (mkdir(d->folder, 0777) == 0 || errno == EEXIST)
        return ORR_OK;
    const orr_where where = orr_where_line(d->folder, 0, 0);
    return orr_fail(d->err, ORR_EIO, &where, "cannot create the folder: %s", strerror(errno));
}

/* Tensor parallelism within a host, a pipeline over four hosts, data parallelism over the rest.
 * Jobs too small for a model of 70 billion parameters train one of 8 billion. */
static orr_llm_options share_out(const demo *d)
{
    const bool is_large = d->ranks % (HOST_RANKS * STAGES) == 0;
    const bool is_even = d->ranks % HOST_RANKS == 0;
    const uint32_t tp = is_even ? HOST_RANKS : (d->ranks & (d->ranks - 1)) == 0 ? d->ranks : 1;
    const uint32_t pp = is_large ? STAGES : 1, dp = d->ranks / tp / pp;
    return (orr_llm_options){
        .tp = tp, .pp = pp, .dp = dp, .batch = (uint64_t)dp * MICRO_BATCHES, .zero = 1};
}

static orr_code make_traces(const demo *d)
{
    const orr_llm_options opt = share_out(d);
    char words[160];
    orr_model model;
    orr_set *set;
    snprintf(words, sizeof words, "stage %s --tp %u --pp %u --dp %u --zero 1 --batch %u -o",
             d->model, opt.tp, opt.pp, opt.dp, (unsigned)opt.batch);
    print_step(d, words, d->traces);
    orr_code code = orr_model_load(d->model, &model, d->err);
    if (!code)
        code = orr_llm_training(&model, &opt, &set, d->err);
    if (code)
        return code;
    code = orr_set_save(set, d->traces, NULL, d->err);
    if (!code && !cli_flag(d->c, "json"))
        printf("%s: one training step of %s,\n"
               "tensor parallel %u x pipeline %u x data parallel %u.\n\n",
               d->traces, d->model, opt.tp, opt.pp, opt.dp);
    orr_set_close(set);
    return code;
}

static orr_code check_traces(const demo *d, const orr_set *set)
{
    orr_check_report *r;
    orr_str text = {0};
    print_step(d, "check", d->traces);
    orr_code code = orr_check_set(set, NULL, &r, d->err);
    if (code)
        return code;
    const orr_check_style style = {
        .size = sizeof style, .input = d->traces, .is_colored = cli_is_colored(d->c, stdout)};
    code = orr_check_text(r, &style, &text, d->err);
    if (!code)
        print_text(d, text);
    if (!code && (r->errors || r->read_status))
        cli_answer_no(d->c);
    orr_check_report_destroy(r);
    return code;
}

static orr_code show_traces(const demo *d, const orr_set *set)
{
    const orr_info_options opt = {.path = d->traces, .program = "orrery " ORR_VERSION, .top = 5};
    orr_info *info;
    orr_str text = {0};
    print_step(d, "info --top 5", d->traces);
    orr_code code = orr_info_create(set, &opt, &info, d->err);
    if (code)
        return code;
    if (!(code = orr_info_text(info, &text, d->err)))
        print_text(d, text);
    orr_info_destroy(info);
    return code;
}

/* ---- the run ---- */

static orr_code write_timeline(const demo *d, const orr_run *r)
{
    orr_timeline *t;
    orr_code code = orr_run_timeline(r, &t, d->err);
    if (!code)
        code = orr_view_chrome(t, d->timeline, d->err);
    if (!code)
        orr_timeline_destroy(t);
    return code;
}

static bool has_timeline(const demo *d)
{
    return d->ranks <= TIMELINE_RANKS;
}

static orr_code write_report(const demo *d, orr_run *r, const orr_error *why)
{
    char name[96];
    snprintf(name, sizeof name, "A training step of %s on %u H100", d->model, d->ranks);
    const orr_explain_options about = {.name = name, .why = why};
    return cli_report_one(d->c, r, &about, d->report, d->err);
}

static void print_run(const demo *d)
{
    char rest[4 * PATH_ROOM];
    snprintf(rest, sizeof rest,
             "%s --machine %s \\\n    --critical-path=%d%s%s \\\n    --report %s", d->traces,
             machine, PATH_STEPS, has_timeline(d) ? " --timeline " : "",
             has_timeline(d) ? d->timeline : "", d->report);
    print_step(d, "run", rest);
}

static orr_code simulate(const demo *d, const orr_set *set)
{
    orr_run_config config = {.size = sizeof config,
                             .set = set,
                             .traces = d->traces,
                             .machine = machine,
                             .records = ORR_RUN_SPANS,
                             .path_steps = PATH_STEPS,
                             .shows_progress = !d->c->quiet,
                             .program = "orrery " ORR_VERSION};
    orr_run *r = NULL;
    print_run(d);
    config.max_seconds = d->limits.max_seconds;
    config.max_bytes = d->limits.max_bytes;
    config.max_events = d->limits.max_events;
    orr_code code = orr_run_create(&config, &r, d->err);
    if (code)
        return code;
    const orr_code ran = cli_run_to_end(r, d->err);
    orr_error why = *d->err;
    if (ran == ORR_ESTOP) /* show the results so far */
        cli_report(d->c, &why);
    else
        code = ran;
    if (!code)
        code = orr_run_write(r, cli_flag(d->c, "json") ? "json" : "text", "-", d->err);
    if (!code && has_timeline(d))
        code = write_timeline(d, r);
    if (!code)
        code = write_report(d, r, ran ? &why : NULL);
    orr_run_destroy(r);
    if (!code && ran)
        *d->err = why;
    return code ? code : ran;
}

/* ---- everything ---- */

static bool set_path(const demo *d, char *out, const char *name)
{
    const int n = snprintf(out, PATH_ROOM, "%s/%s", d->folder, name);
    return n > 0 && n < PATH_ROOM;
}

static orr_code go(const demo *d, const orr_set *set)
{
    orr_code code = check_traces(d, set);
    if (code || d->c->answer_is_no)
        return code;
    if ((code = show_traces(d, set)) || (code = simulate(d, set)))
        return code;
    if (cli_flag(d->c, "json"))
        return ORR_OK;
    printf("\nPublished for Llama 3 405B on H100: MFU 38 to 43 %% (arXiv 2407.21783, table "
           "4).\ndocs/truth.md compares this model with published steps.\n");
    printf("Done. See 'orrery help' for more.\n");
    if (has_timeline(d))
        printf("Open %s in ui.perfetto.dev for the timeline.\n", d->timeline);
    printf("Open %s in a browser: where the time went.\n", d->report);
    return ORR_OK;
}

static orr_code demo_run(cli_context *c, orr_error *err)
{
    demo d = {.c = c,
              .folder = cli_text(c, "output"),
              .ranks = (uint32_t)cli_count(c, "ranks"),
              .err = err};
    const orr_set_options read = {.size = sizeof read, .keep_going = true};
    orr_set *set;
    if (!set_path(&d, d.traces, "step.orr") || !set_path(&d, d.timeline, "timeline.json.gz") ||
        !set_path(&d, d.report, "report.html"))
        return cli_misuse(err, "the folder name is too long");
    if (d.ranks > HOST_RANKS && d.ranks % HOST_RANKS != 0)
        return cli_misuse(
            err,
            "--ranks %u: the hosts of the demo have %d GPUs each; take a multiple of %d, "
            "or fewer",
            d.ranks, HOST_RANKS, HOST_RANKS);
    d.model = d.ranks % (HOST_RANKS * STAGES) == 0 ? "llama-3-70b" : "llama-3-8b";
    orr_code code = cli_limits(c, &d.limits, err);
    if (!code)
        code = make_folder(&d);
    if (code || (code = make_traces(&d)) || (code = orr_set_open(d.traces, &read, &set, err)))
        return code;
    code = go(&d, set);
    orr_set_close(set);
    return code;
}

const cli_command cli_cmd_demo = {
    .name = "demo",
    .summary = "end-to-end example: generate traces, check, simulate, report",
    .description =
        "Generates the traces of one training step of Llama 3 70B for all ranks, checks, summarizes and simulates "
        "them on a cluster of DGX H100, and writes an HTML report.  Each step is shown as the command that "
        "does the same.",
    .options = options,
    .examples = examples,
    .see_also = "orrery-check(1), orrery-info(1), orrery-report(1), orrery-run(1), orrery-stage(1)",
    .run = demo_run,
};
