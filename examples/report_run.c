/* SPDX-License-Identifier: Apache-2.0 */
/* report_run.c - simulate an all-reduce on eight ranks, say where the time went, write the HTML report.
 * cc report_run.c $(pkg-config --cflags --libs orrery) */
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

/* The facts of a run are plain structs: use them, or hand them to the report. */
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
    orr_sim *sim;
    orr_explanation *facts;
    const orr_pattern *all_reduce = orr_pattern_find("all_reduce");
    orr_gen_options gen = all_reduce->defaults;
    gen.ranks = 8;
    if (orr_pattern_set(all_reduce, &gen, &set, &err))
        return fail(&err);
    const orr_sim_options opt = {
        .set = set,
        .system_text =
            "{\"scheduling-policy\": \"LIFO\", \"endpoint-delay\": 10,"
            " \"preferred-dataset-splits\": 4, \"local-mem-bw\": 1000, \"all-reduce-implementation\": [\"ring\"]}",
        .network_text = "topology: [Ring]\nnpus_count: [8]\nbandwidth: [50]\nlatency: [500]\n",
        .record = ORR_SIM_RECORD_NODES};
    if (orr_sim_create(&opt, &sim, &err) || orr_sim_run(sim, &err))
        return fail(&err);
    printf("%-36s %" PRIu64 " ns\n", "as it is", orr_sim_time(sim));
    const orr_explain_options what = {.name = "all-reduce", .what_if = ORR_WHAT_IF_SIMULATE};
    if (orr_sim_explain(sim, &what, &facts, &err) ||
        print_and_write(orr_explanation_run(facts), "report.html", &err))
        return fail(&err);
    orr_explanation_destroy(facts);
    orr_sim_destroy(sim);
    orr_set_close(set);
    return 0;
}
