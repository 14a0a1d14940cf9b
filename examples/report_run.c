/* SPDX-License-Identifier: Apache-2.0 */
/* report_run.c - simulate an all-reduce on eight ranks, print where the time went, write the HTML
 * report.
 *
 *     cc report_run.c $(pkg-config --cflags --libs orrery) */
#include <orrery/lab/lab.h>
#include <orrery/orrery.h>

#include <inttypes.h>
#include <stdio.h>

static int fail(const orr_error *err)
{
    char text[600];
    fprintf(stderr, "%s\n", orr_error_text(err, text, sizeof text));
    return 3;
}

/* The facts of a run are plain structs: use them, or pass them to the report. */
static int print_and_write(const orr_report_run *run, const char *path, orr_error *err)
{
    orr_report *page = NULL;
    for (size_t i = 0; i < run->what_if_count; i++)
        printf("%-36s %" PRIu64 " ns\n", run->what_ifs[i].change, run->what_ifs[i].time_ns);
    const int failed = orr_report_create(NULL, &page, err) || orr_report_add(page, run, err) ||
                       orr_report_write(page, path, err);
    orr_report_destroy(page);
    return failed;
}

int main(void)
{
    orr_error err;
    orr_set *set;
    orr_run *run;
    orr_explanation *facts;
    const orr_pattern *all_reduce = orr_pattern_find("all_reduce");
    orr_gen_options gen = all_reduce->defaults;
    gen.ranks = 8;
    if (orr_pattern_set(all_reduce, &gen, &set, &err))
        return fail(&err);
    const orr_system system = {.size = sizeof system, .chunks = 4};
    const orr_net_config ring = {.size = sizeof ring,
                                 .dims = 1,
                                 .shape = {ORR_NET_RING},
                                 .npus = {8},
                                 .bandwidth = {50},
                                 .latency_ns = {500}};
    const orr_run_config config = {.size = sizeof config,
                                   .set = set,
                                   .own_system = &system,
                                   .dims = &ring,
                                   .records = ORR_RUN_SPANS};
    if (orr_run_create(&config, &run, &err) || orr_run_to_end(run, &err))
        return fail(&err);
    printf("%-36s %" PRId64 " ns\n", "as it is", orr_run_time(run) / 1000);
    const orr_explain_options what = {.name = "all-reduce", .what_if = ORR_WHAT_IF_SIMULATE};
    if (orr_run_explain(run, &what, &facts, &err) ||
        print_and_write(orr_explanation_run(facts), "report.html", &err))
        return fail(&err);
    orr_explanation_destroy(facts);
    orr_run_destroy(run);
    orr_set_close(set);
    return 0;
}
