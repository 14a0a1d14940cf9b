/* SPDX-License-Identifier: Apache-2.0 */
/* test_run_faults.c - memory that runs out at every single place in a simulation and its reports.
 *
 * As in test_faults.c: each job is run again and again with the first, the second, the third ...
 * request for memory failing, and must say so each time.  Sanitizers watch that nothing leaks. */
#include "check.h"
#include "files.h"

#include "run/run_rules.h"
#include "run/sim.h"
#include <orrery/lab/critical_path.h>
#include <orrery/lab/gen.h>
#include <orrery/lab/llm.h>
#include <orrery/lab/model.h>
#include <orrery/view.h>

long orr__fail_alloc_after(long n); /* src/base/memory.c */

enum { RANKS = 4 };

static orr_error err;
static orr_set *set; /* made once, with memory to spare */

static void write_text(const char *path, const char *text)
{
    write_file(path, text, strlen(text));
}

static orr_set *make_set(const char *pattern)
{
    const orr_pattern *p = orr_pattern_find(pattern);
    orr_gen_options opt = p->defaults;
    orr_set *made;
    opt.ranks = RANKS;
    opt.microbatches = 2;
    CHECK_OK(orr_pattern_set(p, &opt, &made, &err), &err);
    return made;
}

static void write_config(void)
{
    write_text("net.yml", "topology: [Switch]\nnpus_count: [4]\nbandwidth: [50]\nlatency: [500]\n");
    write_text(
        "sys.json",
        "{\"scheduling-policy\":\"LIFO\",\"local-mem-bw\":1600,\"preferred-dataset-splits\":2,"
        "\"all-reduce-implementation\":[\"ring\"]}");
    write_text("mem.json", "{\"memory-type\":\"MEMORY_POOL\",\"remote-mem-bw\":100}");
    write_text("log.toml",
               "[[sink]]\nname = \"a\\tb\"\ntype = 'rotating_file_sink_st'\nmax_size = '2K'\n"
               "base_filename = 'r.log'\nmax_files = 2\n"
               "[[sink]]\nname = 'w'\ntype = 'basic_file_sink_st'\nfilename = 'w.log'\n"
               "truncate = true\n"
               "[[sink]]\nname = 'd'\ntype = 'daily_file_sink_st'\nbase_filename = 'd.log'\n"
               "rotation_hour = 0\nrotation_minute = 0\n"
               "[[logger]]\nname = 'workload'\nlevel = 'trace'\nsinks = [\"a\\tb\", 'w', 'd']\n");
}

/* ---- the jobs: what is done with a simulation that has run ---- */

typedef orr_code (*job)(const orr_sim *s);

static orr_code do_nothing(const orr_sim *s)
{
    (void)s;
    return ORR_OK;
}

static orr_code draw(const orr_sim *s)
{
    orr_timeline *t;
    orr_code code = orr_sim_timeline(s, NULL, &t, &err);
    CHECK(!code == (t != NULL));
    if (!code)
        code = orr_view_chrome(t, "timeline.json", &err);
    orr_timeline_destroy(t);
    return code;
}

static orr_code find_path(const orr_sim *s)
{
    orr_critical_path *p;
    const orr_code code = orr_sim_critical_path(s, &p, &err);
    CHECK(!code == (p != NULL));
    orr_critical_path_destroy(p);
    return code;
}

static orr_code print_text(const orr_sim *s)
{
    return orr_sim_write_text(s, "run.txt", &err);
}

static orr_code print_json(const orr_sim *s)
{
    return orr_sim_write_json(s, "run.json", &err);
}

static orr_code print_csv(const orr_sim *s)
{
    return orr_sim_write_csv(s, true, "run.csv", &err);
}

static orr_code print_logs(const orr_sim *s)
{
    const orr_code code = orr_sim_write_old_log(s, "log.log", ORR_SIM_LOG_FILE, &err);
    return code ? code : orr_sim_write_log_sinks(s, &err);
}

static const struct {
    const char *name;
    job work;
    const char *logging;
} jobs[] = {
    {"run", do_nothing, NULL},          {"timeline", draw, NULL},
    {"critical path", find_path, NULL}, {"text", print_text, NULL},
    {"json", print_json, NULL},         {"csv", print_csv, NULL},
    {"logs", print_logs, "log.toml"},
};

static orr_code run_job(job work, const char *logging)
{
    const orr_sim_options opt = {.set = set,
                                 .system = "sys.json",
                                 .network = "net.yml",
                                 .memory = "mem.json",
                                 .logging = logging,
                                 .threads = 1,
                                 .record = ORR_SIM_RECORD_PHASES,
                                 .critical_path = 3};
    orr_sim *s;
    orr_code code = orr_sim_create(&opt, &s, &err);
    CHECK(!code == (s != NULL));
    if (!code)
        code = orr_sim_run(s, &err);
    if (!code)
        code = work(s);
    orr_sim_destroy(s);
    return code;
}

static void fail_each(const char *pattern)
{
    set = make_set(pattern);
    write_config();
    for (size_t k = 0; k < sizeof jobs / sizeof *jobs; k++)
        for (long n = 0; !jobs[k].logging || run_old_outputs; n++) { /* NULL: not built in */
            err.code = ORR_OK;
            orr__fail_alloc_after(n);
            const orr_code code = run_job(jobs[k].work, jobs[k].logging);
            const bool failed = orr__fail_alloc_after(-1) < 0;
            if (code != (failed ? ORR_ENOMEM : ORR_OK) || (failed && err.code != ORR_ENOMEM))
                check_fail(__FILE__, __LINE__, "%s, %s, request %ld: code %d: %s", pattern,
                           jobs[k].name, n, (int)code, err.message);
            if (!failed)
                break;
            CHECK(n < 20000);
        }
    orr_set_close(set);
}

TEST(test_run_faults__collectives)
{
    fail_each("three_layer_data_parallel");
}

TEST(test_run_faults__messages)
{
    fail_each("compare_pipeline_parallel");
}

TEST(test_run_faults__memory)
{
    fail_each("one_remote_mem_load_node");
}

/* Steps in a row, of which one is recorded and others are played back
 * (src/run/fold/fold_tape.c). */
TEST(test_run_faults__steps_in_a_row)
{
    orr_model m;
    bool failed = true;
    CHECK_OK(orr_model_load("gpt2-medium", &m, &err), &err);
    m.layers = 2;
    const orr_llm_options opt = {.tp = 1,
                                 .pp = 2,
                                 .dp = 6,
                                 .zero = 2,
                                 .seq = 1024,
                                 .batch = 12,
                                 .micro_batch = 1,
                                 .pipeline = ORR_PIPELINE_GPIPE,
                                 .bucket_bytes = 100000000};
    CHECK_OK(orr_llm_training(&m, &opt, &set, &err), &err);
    write_text("net.yml", "topology: [Switch, Ring]\nnpus_count: [4, 3]\nbandwidth: [100, 50]\n"
                          "latency: [300, 50000]\n");
    write_text("sys.json",
               "{\"scheduling-policy\":\"LIFO\",\"local-mem-bw\":3000,\"peak-perf\":600,"
               "\"roofline-enabled\":1,\"preferred-dataset-splits\":4,\"endpoint-delay\":10,"
               "\"active-chunks-per-dimension\":2,\"collective-optimization\":\"localBWAware\","
               "\"all-reduce-implementation\":[\"ring\",\"ring\"],"
               "\"all-gather-implementation\":[\"ring\",\"ring\"],"
               "\"reduce-scatter-implementation\":[\"ring\",\"ring\"]}");
    for (long n = 0; failed; n++) {
        const orr_sim_options how = {.set = set,
                                     .system = "sys.json",
                                     .network = "net.yml",
                                     .fidelity = "unaware",
                                     .steps = 13,
                                     .threads = 1,
                                     .record = ORR_SIM_RECORD_PHASES};
        orr_sim *s;
        orr__fail_alloc_after(n);
        orr_code code = orr_sim_create(&how, &s, &err);
        if (!code)
            code = orr_sim_run(s, &err);
        failed = orr__fail_alloc_after(-1) < 0;
        if (code != (failed ? ORR_ENOMEM : ORR_OK))
            check_fail(__FILE__, __LINE__, "request %ld: code %d: %s", n, (int)code, err.message);
        if (!failed)
            CHECK_EQ_U(orr_sim_steps_of(s).simulated, 1); /* the others are played back */
        orr_sim_destroy(s);
        CHECK(n < 20000);
    }
    orr_set_close(set);
}

/* Ranks that were set apart are simulated as one again (src/run/fold/fold_merge.c). */
TEST(test_run_faults__classes_become_one_again)
{
    orr_model m;
    bool failed = true;
    CHECK_OK(orr_model_load("gpt2-medium", &m, &err), &err);
    m.layers = 2;
    const orr_llm_options opt = {
        .tp = 2, .pp = 2, .dp = 4, .seq = 1024, .batch = 8, .micro_batch = 1};
    CHECK_OK(orr_llm_training(&m, &opt, &set, &err), &err);
    write_text("net.yml", "topology: [Switch, Switch]\nnpus_count: [2, 8]\nbandwidth: [100, 50]\n"
                          "latency: [300, 5000]\n");
    write_text("ranks.yml", "ranks:\n  - {ranks: 3, delay: 200us}\n");
    write_text("sys.json", "{\"local-mem-bw\":3000,\"peak-perf\":600,\"roofline-enabled\":1,"
                           "\"all-reduce-implementation\":[\"ring\",\"ring\"],"
                           "\"all-gather-implementation\":[\"ring\",\"ring\"],"
                           "\"reduce-scatter-implementation\":[\"ring\",\"ring\"]}");
    for (long n = 0; failed; n++) {
        const orr_sim_options how = {.set = set,
                                     .system = "sys.json",
                                     .network = "net.yml",
                                     .fidelity = "unaware",
                                     .ranks_file = "ranks.yml",
                                     .threads = 1,
                                     .record = ORR_SIM_RECORD_PHASES};
        orr_sim *s;
        orr__fail_alloc_after(n);
        orr_code code = orr_sim_create(&how, &s, &err);
        if (!code)
            code = orr_sim_run(s, &err);
        failed = orr__fail_alloc_after(-1) < 0;
        if (code != (failed ? ORR_ENOMEM : ORR_OK))
            check_fail(__FILE__, __LINE__, "request %ld: code %d: %s", n, (int)code, err.message);
        if (!failed)
            CHECK(orr_sim_simulated_last(s) < orr_sim_simulated(s));
        orr_sim_destroy(s);
        CHECK(n < 20000);
    }
    orr_set_close(set);
}

int main(void)
{
    const CMUnitTest tests[] = {
        RUN(test_run_faults__collectives),
        RUN(test_run_faults__messages),
        RUN(test_run_faults__memory),
        RUN(test_run_faults__steps_in_a_row),
        RUN(test_run_faults__classes_become_one_again),
    };
    return RUN_ALL(tests);
}
