/* SPDX-License-Identifier: Apache-2.0 */
/* test_packet_faults.c - memory that runs out at every single place of a run of flows and of a run
 * over packets.
 *
 * As in test_faults.c: each job is run again and again with the first, the second, the third ...
 * request for memory failing, and must say so each time.  Sanitizers watch that nothing leaks. */
#include "check.h"
#include "files.h"

#include "models/network/packet/packet.h"
#include "run/sim.h"
#include <orrery/lab/gen.h>

long orr__fail_alloc_after(long n); /* src/base/memory.c */

static orr_error err;

static void write_text(const char *path, const char *text)
{
    write_file(path, text, strlen(text));
}

static void write_inputs(const char *control)
{
    char config[1000];
    snprintf(
        config, sizeof config,
        "CC_MODE %s RATE_AI 1Gbps RATE_HAI 2Gbps RP_TIMER 20 EWMA_GAIN 0.1 L2_CHUNK_SIZE 4000 "
        "L2_ACK_INTERVAL 1 BUFFER_SIZE 1 KMIN_MAP 1 100000000000 5 KMAX_MAP 1 100000000000 20 "
        "PMAX_MAP 1 100000000000 1 TOPOLOGY_FILE t.txt FLOW_FILE f.txt TRACE_FILE n.txt "
        "TRACE_OUTPUT_FILE mix.tr QLEN_MON_FILE q.txt LINK_EVENTS_FILE e.txt SERIES_FILE s.json "
        "SERIES_INTERVAL 1us SERIES_SAMPLES 4 SERIES_WATCH 3.1,0-2 BW_MON_FILE bw.txt "
        "RATE_MON_FILE r.txt CNP_MON_FILE cnp.txt BW_MON_INTERVAL 2 QP_MON_INTERVAL 2",
        control);
    write_text("c.txt", config);
    write_text("t.txt", "4 1 3\n3\n3 0 100Gbps 1us 0\n3 1 100Gbps 1us 0.01\n3 2 100Gbps 1us 0\n");
    write_text("f.txt", "3\n0 2 3 100 60000 0\n1 2 3 100 60000 0\n2 0 3 100 500 0\n");
    write_text("n.txt", "2 0 3\n");
    write_text("e.txt", "1us down 3 0\n4us up 3 0\n");
    write_text(
        "sys.json",
        "{\"scheduling-policy\":\"LIFO\",\"local-mem-bw\":1600,\"preferred-dataset-splits\":2,"
        "\"all-reduce-implementation\":[\"ring\"]}");
}

static unsigned threads;

static orr_code run_flows(void)
{
    const orr_packet_options opt = {.config = "c.txt", .threads = threads, .wants_history = true};
    orr_fabric_view *view = NULL;
    orr_packet *p;
    orr_code code = orr_packet_create(&opt, &p, &err);
    if (!code)
        code = orr_packet_run(p, &err);
    if (!code)
        code = orr_packet_commit(p, &err);
    if (!code)
        code = orr_packet_write_text(p, "out.txt", &err);
    if (!code)
        code = orr_packet_write_json(p, "out.json", &err);
    if (!code)
        code = orr_packet_view(p, &view, &err);
    orr_fabric_view_destroy(view);
    orr_packet_destroy(p);
    return code;
}

static orr_set *set;

static orr_code run_traces(void)
{
    const orr_sim_options opt = {
        .set = set, .system = "sys.json", .network = "c.txt", .fidelity = "packet"};
    orr_sim *s;
    orr_code code = orr_sim_create(&opt, &s, &err);
    if (!code)
        code = orr_sim_run(s, &err);
    orr_sim_destroy(s);
    return code;
}

/* Every request fails once; then all goes well. */
static void fail_everywhere(orr_code (*job)(void))
{
    for (long n = 0;; n++) {
        orr__fail_alloc_after(n);
        const orr_code code = job();
        const bool failed = orr__fail_alloc_after(-1) < 0;
        if (code != (failed ? ORR_ENOMEM : ORR_OK))
            check_fail(__FILE__, __LINE__, "request %ld: code %d: %s", n, (int)code, err.message);
        if (!failed)
            return;
        CHECK(n < 5000);
    }
}

TEST(test_packet_faults__flows)
{
    static const char *const controls[] = {"0", "1", "3", "10"};
    for (size_t i = 0; i < 4; i++) {
        write_inputs(controls[i]);
        fail_everywhere(run_flows);
    }
}

/* In lanes, with pauses, losses, a failure and flows that start when links are looked at; windows
 * are so small that the first thread runs them all. */
TEST(test_packet_faults__lanes)
{
    write_text("c.txt", "CC_MODE 1 RATE_AI 1Gbps RATE_HAI 2Gbps RP_TIMER 20 EWMA_GAIN 0.1 "
                        "L2_CHUNK_SIZE 4000 L2_ACK_INTERVAL 4000 BUFFER_SIZE 1 HAS_WIN 0 "
                        "KMIN_MAP 1 100000000000 5 KMAX_MAP 1 100000000000 20 "
                        "PMAX_MAP 1 100000000000 1 TOPOLOGY_FILE t.txt FLOW_FILE f.txt "
                        "LINK_EVENTS_FILE e.txt PFC_OUTPUT_FILE pfc.txt TRANSPORT selective");
    write_text("t.txt", "6 2 5\n4 5\n4 0 100Gbps 1us 0\n4 1 100Gbps 1us 0\n5 2 100Gbps 1us 0\n"
                        "5 3 100Gbps 1us 0\n4 5 100Gbps 1us 0.01\n");
    write_text("f.txt", "5\n0 2 3 100 90000 0\n1 2 3 100 90000 0\n2 0 3 100 500 0\n"
                        "3 1 3 100 500 0.0000006\n3 1 3 100 500 0.000002\n");
    write_text("e.txt", "1us down 4 0\n4us up 4 0\n");
    threads = 3;
    fail_everywhere(run_flows);
    threads = 0;
}

/* Long enough to repeat itself. */
TEST(test_packet_faults__what_repeats)
{
    write_text("c.txt", "CC_MODE 0 ENABLE_QCN 0 RATE_AI 1Gbps RATE_HAI 1Gbps L2_CHUNK_SIZE 4000 "
                        "L2_ACK_INTERVAL 1 TOPOLOGY_FILE t.txt FLOW_FILE f.txt APPROX 1");
    write_text("t.txt", "3 1 2\n2\n2 0 100Gbps 1us 0\n2 1 100Gbps 1us 0\n");
    write_text("f.txt", "1\n0 1 3 100 2000000 0\n");
    fail_everywhere(run_flows);
}

TEST(test_packet_faults__traces)
{
    const orr_pattern *p = orr_pattern_find("all_reduce");
    orr_gen_options opt = p->defaults;
    opt.ranks = 3;
    write_inputs("1");
    CHECK_OK(orr_pattern_set(p, &opt, &set, &err), &err);
    fail_everywhere(run_traces);
    orr_set_close(set);
}

int main(void)
{
    const CMUnitTest tests[] = {RUN(test_packet_faults__flows), RUN(test_packet_faults__lanes),
                                RUN(test_packet_faults__what_repeats),
                                RUN(test_packet_faults__traces)};
    return RUN_ALL(tests);
}
