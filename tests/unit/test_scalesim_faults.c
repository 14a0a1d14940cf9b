/* SPDX-License-Identifier: Apache-2.0 */
/* room: scale_sim */
/* test_scalesim_faults.c - memory that runs out at every single place between SCALE-Sim's files and
 * reports.
 *
 * As in test_faults.c: each job is run again and again with the first, the second, the third ...
 * request for memory failing, and must say so each time.  Sanitizers watch that nothing leaks. */
#include "check.h"

#include "compat/scale_sim/scale_sim.h"

#include <orrery/lab/scalesim.h>

long orr__fail_alloc_after(long n); /* src/base/memory.c */

static orr_error err;
static const char layers[] = "h\n\"a\"\"b\",12,12,3,3,4,9,2,\nDP,6,6,2,2,3,2,1,\nt,9,9,1,1,1,7,1,\n"
                             "w,9,10,3,3,4,9,3,\n";
static const char *configs[] = {"os", "ws", "is"};

typedef struct job {
    const orr_rules_systolic *rules;
    const char *flow, *interface;
    bool is_sparse, is_packed, has_layout;
} job;

static orr_code write_all(orr_scalesim *r, const orr_rules_systolic *rules)
{
    orr_str text;
    orr_code code = orr_scalesim_write(r, ".", &err);
    if (!code && rules == &orr__scale_sim_v1)
        code = orr_scalesim_write_traces(r, ".", &err);
    if (!code)
        code = orr_scalesim_text(r, &text, &err);
    if (!code)
        code = orr_scalesim_json(r, &text, &err);
    return code ? code : orr_scalesim_csv(r, &text, &err);
}

static orr_code do_job(const job *j)
{
    char text[600];
    orr_scalesim_config config;
    orr_scalesim_network *net;
    orr_scalesim *r;
    const orr_scalesim_read read = {.rules = j->rules};
    const orr_scalesim_options opt = {.rules = j->rules,
                                      .wants_traces = j->rules == &orr__scale_sim_v1};
    snprintf(text, sizeof text,
             "[architecture_presets]\nArrayHeight: 4\nArrayWidth: 3\nIfmapSramSz: 1\n"
             "FilterSramSz: 1\nOfmapSramSz: 1\nDataflow: %s\nBandwidth: 2\n[run_presets]\n"
             "InterfaceBandwidth: %s\n[layout]\nIfmapSRAMBankBandwidth: 16\nIfmapSRAMBankNum: 2\n"
             "FilterSRAMBankBandwidth: 16\nFilterSRAMBankNum: 2\n[sparsity]\n"
             "SparsitySupport: %s\nSparseRep: csr\nOptimizedMapping: %s\nBlockSize: 4\n",
             j->flow, j->interface, j->is_sparse ? "true" : "false",
             j->is_packed ? "true" : "false");
    orr_code code = orr_scalesim_parse_config((orr_span){(const uint8_t *)text, strlen(text)},
                                              "a.cfg", &config, &err);
    if (code)
        return code;
    config.array.ifmap_words = config.array.filter_words = 120;
    config.array.ifmap_banks.has_layout = config.array.filter_banks.has_layout = j->has_layout;
    config.array.layout = (orr_systolic_layout){
        {2, 2, 4}, {0, 1, 2, 3, 4, 5}, {2, 4, 2, 1}, {4, 5, 6, 7, 0, 1, 2, 3}};
    code = orr_scalesim_parse_network((orr_span){(const uint8_t *)layers, sizeof layers - 1},
                                      "net.csv", &read, &net, &err);
    if (code)
        return code;
    code = orr_scalesim_run(&config, net, &opt, &r, &err);
    if (!code)
        code = write_all(r, j->rules);
    orr_scalesim_destroy(r);
    orr_scalesim_network_free(net);
    return code;
}

static void fail_everywhere(const job *j)
{
    long n = 0;
    orr_code code;
    do {
        orr__fail_alloc_after(n++);
        code = do_job(j);
        const long left = orr__fail_alloc_after(-1);
        CHECK(code == (left < 0 ? ORR_ENOMEM : ORR_OK));
        CHECK(code == ORR_OK || err.code == ORR_ENOMEM);
    } while (code);
    CHECK(n > 1);
}

TEST(test_scalesim_faults__our_reports)
{
    for (int i = 0; i < 3; i++)
        fail_everywhere(&(job){NULL, configs[i], "USER"});
}

TEST(test_scalesim_faults__reports_of_v1)
{
    for (int i = 0; i < 3; i++)
        fail_everywhere(&(job){&orr__scale_sim_v1, configs[i], "CALC"});
}

TEST(test_scalesim_faults__reports_of_v2)
{
    for (int i = 0; i < 3; i++) {
        fail_everywhere(&(job){&orr__scale_sim_v2, configs[i], "CALC"});
        fail_everywhere(&(job){&orr__scale_sim_v2, configs[i], "USER"});
    }
}

TEST(test_scalesim_faults__reports_of_v3)
{
    fail_everywhere(&(job){&orr__scale_sim_v3, "os", "CALC"});
    fail_everywhere(&(job){&orr__scale_sim_v3, "is", "USER"});
    fail_everywhere(&(job){&orr__scale_sim_v3, "os", "CALC", .is_sparse = true});
    fail_everywhere(&(job){&orr__scale_sim_v3, "ws", "USER", .has_layout = true});
    fail_everywhere(&(job){&orr__scale_sim_v3, "ws", "USER", .is_sparse = true, .is_packed = true});
}

int main(void)
{
    const CMUnitTest tests[] = {
        RUN(test_scalesim_faults__our_reports),
        RUN(test_scalesim_faults__reports_of_v1),
        RUN(test_scalesim_faults__reports_of_v2),
        RUN(test_scalesim_faults__reports_of_v3),
    };
    return RUN_ALL(tests);
}
