/* SPDX-License-Identifier: Apache-2.0 */
/* goal_load.c - schedules from any input: GOAL unchanged, traces with collectives expanded, several
 * jobs placed on one machine. */
#include "command.h"

#include <orrery/set.h>

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* No chip does more operations per second: four times the fastest of 2026. */
#define MOST_FLOPS 2e16

/* Generated traces have kernels, not durations; without a chip a schedule would only send. */
static void note_no_time(const cli_context *c, orr_run *r, const orr_set *set)
{
    const orr_columns *col = orr_trace_columns(orr_set_trace(set, orr_set_class_of(set, 0)));
    double operations = 0;
    for (uint32_t i = 0; col->num_ops && i < col->count; i++)
        if (col->num_ops[i] != ORR_NO_VALUE && col->num_ops[i] > 0)
            operations += (double)col->num_ops[i];
    if (operations > MOST_FLOPS * 1e-12 * (double)orr_run_rank_at(r, 0)->gpu_total)
        cli_note(c, "implausible: compute takes no time, nodes have no durations; --hardware CHIP "
                    "times their kernels\n");
}

/* Run the traces and record the messages they send. */
static orr_code plan(cli_context *c, const orr_set *set, orr_goal **out, orr_error *err)
{
    orr_run_config config = {.size = sizeof config,
                             .set = set,
                             .system = cli_text(c, "system"),
                             .topology = cli_text(c, "topology"),
                             .groups = cli_text(c, "groups"),
                             .memory = cli_text(c, "memory"),
                             /* convert goal has no machine, no software and no limits */
                             .machine = cli_text_if(c, "machine"),
                             .hardware = cli_text(c, "hardware"),
                             .software = cli_text_if(c, "software"),
                             .is_ideal = cli_text_if(c, "ideal") != NULL,
                             .network = "unaware",
                             .records = ORR_RUN_SCHEDULE,
                             .shows_progress = !c->quiet};
    orr_run *r = NULL;
    orr_code code = cli_chip_check(config.hardware, err);
    if (!code && (cli_text_if(c, "max-time") || cli_text_if(c, "max-memory")))
        code = cli_limits(c, &config, err);
    config.max_events = 0; /* the limit applies to the run of the schedule */
    if (!code)
        code = orr_run_create(&config, &r, err);
    if (!code)
        code = cli_run_to_end(r, err);
    if (code == ORR_ESTOP) {
        orr_because(err, code, "no schedule was made");
        cli_report(c, err);
    }
    if (!code)
        code = orr_run_goal(r, out, err);
    if (!code && !config.hardware && !config.machine)
        note_no_time(c, r, set);
    orr_run_destroy(r);
    return code;
}

/* By its extension or its first bytes. */
bool cli_is_goal(const char *path)
{
    static const char *const endings[] = {".goal", ".goal.gz", ".goal.zst",
                                          ".bin",  ".bin.gz",  ".bin.zst"};
    const size_t n = strlen(path);
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        const size_t m = strlen(endings[i]);
        if (n > m && strcmp(path + n - m, endings[i]) == 0)
            return true;
    }
    return orr_goal_recognise(path);
}

static orr_code load_traces(cli_context *c, const char *path, orr_goal **out, orr_error *err)
{
    orr_set *set;
    orr_code code = orr_set_open(path, NULL, &set, err);
    if (code)
        return code;
    code = plan(c, set, out, err);
    orr_set_close(set);
    return code;
}

bool cli_brings_goal(const char *path)
{
    struct stat st;
    const bool is_pipe = stat(path, &st) == 0 && S_ISFIFO(st.st_mode);
    return strcmp(path, "-") == 0 || is_pipe || cli_is_goal(path);
}

orr_code cli_goal_load(cli_context *c, const char *path, orr_goal **out, orr_error *err)
{
    return cli_brings_goal(path) ? cli_goal_read(c, path, out, err)
                                 : load_traces(c, path, out, err);
}

/* ---- jobs */

typedef struct job_list {
    orr_goal *jobs[CLI_MOST_JOBS]; /* as schedules, */
    orr_set *sets[CLI_MOST_JOBS];  /* or as traces */
    const char *why;               /* why one of them cannot stay traces; NULL: all can */
    size_t count;
    bool has_traces; /* some are traces: system, network, memory and groups are inputs */
    cli_goal_inputs *inputs;
} job_list;

static void add_input(job_list *l, const char *role, orr_str path)
{
    cli_goal_inputs *to = l->inputs;
    if (to && path.ptr && to->count < CLI_GOAL_INPUTS)
        to->list[to->count++] = (orr_run_source){role, path};
}

static void add_option(const cli_context *c, job_list *l, const char *role, const char *name)
{
    const char *path = cli_text(c, name);
    add_input(l, role, (orr_str){path, path ? strlen(path) : 0});
}

/* `name` is the path, pointing into the command line. */
static orr_code load_job(
    cli_context *c, job_list *l, const char *path, orr_str name, orr_error *err)
{
    const bool is_goal = cli_brings_goal(path);
    add_input(l, is_goal ? "schedule" : "traces", name);
    l->has_traces |= !is_goal;
    const orr_code code = is_goal ? cli_goal_read(c, path, &l->jobs[l->count], err)
                                  : load_traces(c, path, &l->jobs[l->count], err);
    l->count += !code;
    return code;
}

typedef orr_code load_one(
    cli_context *c, job_list *l, const char *path, orr_str name, orr_error *err);

static orr_code load_jobs(cli_context *c, job_list *l, load_one *load, orr_error *err)
{
    const char *more = cli_text(c, "job");
    orr_code code = load(c, l, c->args[0], orr_str_of(c->args[0]), err);
    while (!code && more && *more) {
        char path[4096];
        const size_t len = strcspn(more, ",");
        if (len == 0 || len >= sizeof path || l->count == CLI_MOST_JOBS)
            return cli_misuse(err, "--job: expected comma-separated file names");
        memcpy(path, more, len);
        path[len] = 0;
        code = load(c, l, path, (orr_str){more, len}, err);
        more += len + (more[len] == ',');
    }
    return code;
}

static void list_others(const cli_context *c, job_list *l, const orr_goal_machine *m)
{
    if (l->has_traces) {
        add_option(c, l, "system", "system");
        add_option(c, l, "network", "topology");
        add_option(c, l, "memory", "memory");
        add_option(c, l, "groups", "groups");
    }
    if (m->placement == ORR_GOAL_FROM_FILE)
        add_option(c, l, "placement", "placement");
}

static orr_code machine_wanted(const cli_context *c, orr_goal_machine *out, orr_error *err)
{
    static const char *const words[] = {"packed", "spread", "random"};
    const char *placement = cli_text(c, "placement");
    *out = (orr_goal_machine){.hosts = (uint32_t)cli_count(c, "hosts"),
                              .placement = ORR_GOAL_FROM_FILE,
                              .seed = cli_count(c, "seed"),
                              .file = placement};
    for (int i = 0; i < 3; i++) {
        if (strcmp(placement, words[i]) == 0)
            out->placement = (orr_goal_placement)i;
    }
    if (out->placement == ORR_GOAL_FROM_FILE && strcmp(placement, "-") != 0 &&
        access(placement, F_OK) != 0)
        return cli_misuse(err, "--placement %s: not packed, spread or random, and no such file",
                          placement);
    return ORR_OK;
}

orr_code cli_goal_jobs(cli_context *c, cli_goal_inputs *inputs, orr_goal **out, orr_error *err)
{
    orr_goal_machine m;
    const bool is_placed =
        cli_given(c, "job") || cli_given(c, "placement") || cli_given(c, "hosts");
    job_list l = {.inputs = inputs};
    orr_code code = machine_wanted(c, &m, err);
    if (!code)
        code = load_jobs(c, &l, load_job, err);
    if (!code)
        list_others(c, &l, &m);
    if (!code && is_placed)
        code = orr_goal_combine((const orr_goal *const *)l.jobs, l.count, &m, NULL, out, err);
    if (!code && !is_placed) {
        *out = l.jobs[0];
        l.count = 0;
    }
    for (size_t i = 0; i < l.count; i++)
        orr_goal_free(l.jobs[i]);
    return code;
}

/* ---- jobs as traces, which keep their collectives ---- */

static orr_code load_set(
    cli_context *c, job_list *l, const char *path, orr_str name, orr_error *err)
{
    const orr_set_options opt = {.size = sizeof opt,
                                 .joins_alike = strcmp(cli_text(c, "fold"), "off") != 0};
    (void)name;
    if (l->why)
        return ORR_OK;
    if (cli_brings_goal(path)) {
        l->why = "one of them is a schedule";
        return ORR_OK;
    }
    const orr_code code = orr_set_open(path, &opt, &l->sets[l->count], err);
    if (!code)
        l->why = orr_set_combine_obstacle(l->sets[l->count++]);
    return code;
}

orr_code cli_job_traces(cli_context *c, orr_set **out, const char **why, orr_error *err)
{
    orr_goal_machine m;
    /* A group file describes one job. */
    job_list l = {.why = cli_given(c, "groups") ? "--groups belongs to one job" : NULL};
    *out = NULL;
    orr_code code = machine_wanted(c, &m, err);
    if (!code && !l.why)
        code = load_jobs(c, &l, load_set, err);
    *why = l.why;
    if (!code && !l.why)
        code = orr_set_combine((const orr_set *const *)l.sets, l.count, &m, out, err);
    for (size_t i = 0; i < l.count; i++)
        orr_set_close(l.sets[i]);
    return code;
}
