/* SPDX-License-Identifier: Apache-2.0 */
/* run_compare.c - orrery run --compare: one input on several network models, the times side by side.
 *
 * Traces run as they are on the models that know collectives, and as the schedule that the planner makes of them on
 * LogGOPS; schedules run as they are there, and as traces elsewhere. */
#include "goal.h"
#include "json_out.h"

#include <orrery/version.h>

#include <orrery/lab/goal_traces.h>
#include <orrery/view.h>

#include <inttypes.h>
#include <string.h>

enum { MOST_NETWORKS = 16, MOST_TRACES = 64, NAME_ROOM = 24 };

typedef struct result {
    char network[NAME_ROOM];
    uint64_t finished_ns, events, messages;
    uint32_t rank; /* the last */
} result;

typedef struct comparison {
    cli_context *c;
    orr_goal *goal;
    orr_set *set;
    result results[MOST_NETWORKS];
    size_t count;
} comparison;

/* What the drawing is made of: a group for each input. */
typedef struct chart {
    char names[MOST_TRACES][2 * NAME_ROOM];
    uint64_t ps[MOST_TRACES * MOST_NETWORKS];
    size_t traces;
} chart;

/* ---- the input in both forms, made when first needed */

static bool has_schedule(const cli_context *c)
{
    return cli_given(c, "job") || cli_given(c, "placement") || cli_given(c, "hosts") ||
           cli_brings_goal(c->args[0]);
}

static orr_code need_goal(comparison *k, orr_error *err)
{
    return k->goal ? ORR_OK : cli_goal_jobs(k->c, NULL, &k->goal, err);
}

static orr_code need_set(comparison *k, orr_error *err)
{
    if (k->set)
        return ORR_OK;
    if (!has_schedule(k->c))
        return orr_set_open(k->c->args[0], NULL, &k->set, err);
    orr_code code = need_goal(k, err);
    if (!code && (code = orr_goal_traces(k->goal, k->c->args[0], &k->set, err)))
        orr_because(err, code, "%s", k->c->args[0]);
    return code;
}

/* ---- runs */

/* On which network it went wrong. */
static orr_code say_which(const result *r, orr_code code, orr_error *err)
{
    return code == ORR_ESTOP ? code : orr_because(err, code, "--compare %s", r->network);
}

/* The last rank decides. */
static void take_result(orr_run *run, result *r)
{
    orr_ps last = 0;
    for (uint32_t i = 0; i < orr_run_ranks(run); i++) {
        const orr_ps at = orr_run_rank_at(run, i)->finished_at;
        if (at > last) {
            last = at;
            r->rank = i;
        }
    }
    r->finished_ns = (uint64_t)last / 1000;
    r->events = orr_run_events(run);
    r->messages = orr_run_messages(run);
}

static orr_code run_network(comparison *k, result *r, orr_error *err)
{
    char keys[CLI_KEYS_ROOM];
    orr_loggops_model model;
    orr_run_config config = {.size = sizeof config, .shows_progress = !k->c->quiet};
    orr_run *run = NULL;
    const bool is_loggops = strcmp(r->network, "loggops") == 0;
    orr_code code = is_loggops ? cli_loggops_options(k->c, &config, &model, err)
                               : cli_packet_keys(k->c, keys, err);
    if (!code)
        code = is_loggops ? need_goal(k, err) : need_set(k, err);
    if (is_loggops) {
        config.schedule = k->goal;
    } else {
        config.set = k->set;
        config.traces = k->c->args[0];
        config.network = r->network;
        config.system = cli_text(k->c, "system");
        config.topology = cli_text(k->c, "topology");
        config.packet_config = cli_text(k->c, "packet-config");
        config.packet_keys = keys;
        config.logical = cli_text(k->c, "logical");
        config.memory = cli_text(k->c, "memory");
        config.groups = cli_text(k->c, "groups");
        config.ranks_file = cli_text(k->c, "ranks-file");
        config.queues_per_dim = (uint32_t)cli_count(k->c, "queues");
        config.rendezvous = cli_flag(k->c, "rendezvous");
    }
    if (!code)
        code = orr_run_create(&config, &run, err);
    if (!code)
        code = cli_run_to_end(run, err);
    if (!code)
        take_result(run, r);
    else
        code = say_which(r, code, err);
    if (code)
        cli_explain(k->c, run, err);
    orr_run_destroy(run);
    return code;
}

static orr_code run_next(comparison *k, const char *name, size_t len, orr_error *err)
{
    if (len == 0 || len >= NAME_ROOM || k->count == MOST_NETWORKS)
        return orr_fail(err, ORR_EUSAGE, NULL,
                        "--compare: expected comma-separated names of networks");
    result *r = &k->results[k->count];
    *r = (result){0};
    memcpy(r->network, name, len);
    const orr_code code = run_network(k, r, err);
    k->count += !code;
    return code;
}

/* ---- results */

static void print_json(const comparison *k)
{
    cli_json j;
    orr_json_writer *w = cli_json_open_tight(&j, "orrery-compare");
    orr_json_put_text(w, "program", "orrery " ORR_VERSION);
    orr_json_put_text(w, "traces", k->c->args[0]);
    cli_json_array(w, "runs");
    for (size_t i = 0; i < k->count; i++) {
        const result *r = &k->results[i];
        orr_json_begin_object(w);
        orr_json_put_text(w, "network", r->network);
        orr_json_put_u64(w, "finished_ns", r->finished_ns);
        orr_json_put_u64(w, "finished_rank", r->rank);
        orr_json_put_u64(w, "events", r->events);
        orr_json_put_u64(w, "messages", r->messages);
        orr_json_end_object(w);
    }
    orr_json_end_array(w);
    cli_json_close(&j);
}

static void print_table(const comparison *k)
{
    const double base = (double)k->results[0].finished_ns;
    printf("%-10s %18s %10s %8s %14s %14s\n", "network", "finished (ns)", "of first", "rank",
           "messages", "events");
    for (size_t i = 0; i < k->count; i++) {
        const result *r = &k->results[i];
        char share[24] = "-";
        if (base > 0)
            snprintf(share, sizeof share, "%.1f%%", 100 * (double)r->finished_ns / base);
        printf("%-10s %18" PRIu64 " %10s %8" PRIu32 " %14" PRIu64 " %14" PRIu64 "\n", r->network,
               r->finished_ns, share, r->rank, r->messages, r->events);
    }
}

/* ---- one input after the other */

static orr_code run_all(comparison *k, orr_error *err)
{
    orr_code code = ORR_OK;
    for (const char *p = cli_text(k->c, "compare"); !code;) {
        const size_t len = strcspn(p, ",");
        code = run_next(k, p, len, err);
        if (!p[len])
            break;
        p += len + 1;
    }
    return code;
}

/* Without folders and without the ending. */
static void name_group(const char *path, char out[2 * NAME_ROOM])
{
    const char *slash = strrchr(path, '/'), *name = slash && slash[1] ? slash + 1 : path;
    const char *dot = strrchr(name, '.');
    const size_t len = dot && dot > name ? (size_t)(dot - name) : strlen(name);
    snprintf(out, 2 * NAME_ROOM, "%.*s", (int)len, name);
}

static void keep_for_chart(chart *x, const comparison *k)
{
    name_group(k->c->args[0], x->names[x->traces]);
    for (size_t i = 0; i < k->count; i++)
        x->ps[x->traces * k->count + i] = k->results[i].finished_ns * 1000;
    x->traces++;
}

static orr_code compare_one(cli_context *c, char *traces, chart *x, orr_error *err)
{
    comparison k = {.c = c};
    char *const first = c->args[0];
    c->args[0] = traces;
    const orr_code code = run_all(&k, err);
    if (!code && cli_flag(c, "json"))
        print_json(&k);
    else if (!code) {
        if (cli_given(c, "compare-traces"))
            printf("%s%s:\n", x->traces ? "\n" : "", traces);
        print_table(&k);
    }
    if (!code)
        keep_for_chart(x, &k);
    c->args[0] = first;
    orr_goal_free(k.goal);
    orr_set_close(k.set);
    return code;
}

static orr_code draw(const cli_context *c, const chart *x, orr_error *err)
{
    const char *groups[MOST_TRACES], *bars[MOST_NETWORKS];
    char names[MOST_NETWORKS * NAME_ROOM], *at = names;
    size_t count = 0;
    snprintf(names, sizeof names, "%s", cli_text(c, "compare"));
    for (char *end; count < MOST_NETWORKS; at = end + 1) {
        bars[count++] = at;
        if (!(end = strchr(at, ',')))
            break;
        *end = 0;
    }
    for (size_t i = 0; i < x->traces; i++)
        groups[i] = x->names[i];
    const orr_view_bars v = {.title = "run time of each network relative to the first",
                             .groups = groups,
                             .bars = bars,
                             .group_count = x->traces,
                             .bar_count = count,
                             .ps = x->ps};
    return orr_view_bars_svg(&v, cli_text(c, "compare-chart"), err);
}

orr_code cli_run_compare(cli_context *c, orr_error *err)
{
    chart x = {.traces = 0};
    char more[8192] = "", *at = more;
    const char *given = cli_text(c, "compare-traces");
    orr_code code = ORR_OK;
    if (given && strlen(given) >= sizeof more)
        code = orr_fail(err, ORR_EUSAGE, NULL, "--compare-traces is too long");
    if (!code)
        code = compare_one(c, c->args[0], &x, err);
    if (!code && given)
        snprintf(more, sizeof more, "%s", given);
    while (!code && *at) {
        char *comma = strchr(at, ',');
        if (comma)
            *comma = 0;
        code = x.traces < MOST_TRACES
                   ? compare_one(c, at, &x, err)
                   : orr_fail(err, ORR_EUSAGE, NULL, "more than %d traces", MOST_TRACES);
        at = comma ? comma + 1 : at + strlen(at);
    }
    return code || !cli_given(c, "compare-chart") ? code : draw(c, &x, err);
}
