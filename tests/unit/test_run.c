/* SPDX-License-Identifier: Apache-2.0 */
/* orr_run: one life for three engines, what a configuration may leave out, stopping, threads. */
#include "check.h"
#include "files.h"

#include <orrery/lab/critical_path.h>
#include <orrery/lab/fabric_view.h>
#include <orrery/lab/gen.h>
#include <orrery/lab/goal.h>
#include <orrery/lab/llm.h>
#include <orrery/run.h>

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>

static orr_error err;

static orr_set *ring_of(uint32_t ranks)
{
    const orr_pattern *ring = orr_pattern_find("send_recv_ring");
    orr_gen_options gen = ring->defaults;
    orr_set *set;
    gen.ranks = ranks;
    CHECK_OK(orr_pattern_set(ring, &gen, &set, &err), &err);
    return set;
}

static orr_goal *parse(const char *text)
{
    orr_goal *g;
    const orr_span bytes = {(const uint8_t *)text, strlen(text)};
    CHECK_OK(orr_goal_parse(bytes, "x.goal", NULL, &g, &err), &err);
    return g;
}

#define PAIR "num_ranks 2\nrank 0 {\nsend 100b to 1\n}\nrank 1 {\nrecv 100b from 0\n}\n"
#define RING_RANK(r, next, before)                       \
    "rank " r " {\nl1: calc 100\nl2: send 100b to " next \
    "\nl2 requires l1\nrecv 100b from " before "\n}\n"
#define RING                                                                                   \
    "num_ranks 4\n" RING_RANK("0", "1", "3") RING_RANK("1", "2", "0") RING_RANK("2", "3", "1") \
        RING_RANK("3", "0", "2")

static orr_run *start(orr_run_config config)
{
    orr_run *r;
    config.size = sizeof config;
    CHECK_OK(orr_run_create(&config, &r, &err), &err);
    return r;
}

static void refuse(orr_run_config config, const char *words)
{
    orr_run *r;
    CHECK_CODE(orr_run_create(&config, &r, &err), ORR_EUSAGE, &err);
    CHECK(r == NULL);
    CHECK(strstr(err.message, words) != NULL);
}

TEST(test_run__what_is_not_there_is_an_error_or_a_default)
{
    orr_set *set = ring_of(4);
    const orr_run_config zero = {0}, sized = {.size = sizeof sized};
    refuse(zero, "orr_run_config.size");
    refuse(sized, "one of");
    refuse((orr_run_config){.size = sizeof sized, .set = set, .is_flows = true}, "only one of");
    refuse((orr_run_config){.size = sizeof sized, .is_flows = true}, "topology");
    refuse((orr_run_config){.size = sizeof sized, .set = set, .own_system = &(orr_system){0}},
           "orr_system.size");
    orr_run *r = start((orr_run_config){.set = set}); /* a plain system, one switch */
    CHECK_OK(orr_run_to_end(r, &err), &err);
    CHECK_EQ_U(orr_run_finished(r), 4);
    CHECK(orr_run_rank_at(r, 4) == NULL);
    CHECK(orr_run_time(r) == orr_run_rank_at(r, 0)->finished_at);
    orr_run_destroy(r);
    orr_set_close(set);
}

/* The caller's strings and structs may go as soon as the run is made. */
TEST(test_run__what_the_caller_gave_is_copied)
{
    char system[] = "system.json", network[] = "unaware", algorithm[] = "direct";
    static const char text[] = "{\"scheduling-policy\": \"LIFO\"}";
    orr_set *set = ring_of(4);
    write_file("system.json", text, strlen(text));
    orr_run *r = start((orr_run_config){.set = set, .system = system, .network = network});
    memset(system, 'x', sizeof system - 1);
    memset(network, 'x', sizeof network - 1);
    CHECK_OK(orr_run_to_end(r, &err), &err);
    orr_run_input in;
    CHECK_OK(orr_run_input_at(r, 0, &in, &err), &err);
    CHECK_TEXT(in.path, "system.json");
    CHECK_EQ_U(in.bytes, strlen(text));
    CHECK_CODE(orr_run_input_at(r, 1, &in, &err), ORR_END, &err);
    orr_run_destroy(r);
    orr_system typed = {.size = sizeof typed, .all_reduce = {algorithm}, .chunks = 2};
    orr_net_config dims = {
        .size = sizeof dims, .dims = 1, .npus = {4}, .bandwidth = {50}, .latency_ns = {500}};
    r = start((orr_run_config){.set = set, .own_system = &typed, .dims = &dims});
    memset(algorithm, 'x', sizeof algorithm - 1);
    dims = (orr_net_config){0};
    typed = (orr_system){0};
    CHECK_OK(orr_run_to_end(r, &err), &err);
    orr_run_destroy(r);
    refuse((orr_run_config){.size = sizeof(orr_run_config), .set = set, .dims = &dims},
           "orr_net_config.size must be sizeof(orr_net_config)");
    dims.size = sizeof dims;
    typed = (orr_system){.size = sizeof typed, .all_reduce = {"pigeons"}};
    refuse((orr_run_config){.size = sizeof(orr_run_config), .set = set, .own_system = &typed},
           "pigeons");
    refuse((orr_run_config){.size = sizeof(orr_run_config), .set = set, .dims = &dims},
           "dimension");
    orr_set_close(set);
}

TEST(test_run__an_engine_says_what_it_supports)
{
    orr_goal *g = parse(PAIR);
    CHECK(orr_run_supports("traces", "packet") & ORR_RUN_PACKETS);
    CHECK(!(orr_run_supports("traces", NULL) & ORR_RUN_PACKETS));
    CHECK(!(orr_run_supports("flows", NULL) & ORR_RUN_SPANS));
    CHECK_EQ_U(orr_run_supports("pigeons", NULL), 0);
    refuse(
        (orr_run_config){.size = sizeof(orr_run_config), .schedule = g, .records = ORR_RUN_LINKS},
        "links");
    orr_run *r = start((orr_run_config){.schedule = g});
    orr_critical_path *path;
    CHECK_CODE(orr_run_critical_path(r, &path, &err), ORR_EUSAGE, &err);
    CHECK_CODE(orr_run_write(r, "pigeons", "-", &err), ORR_EUSAGE, &err);
    orr_run_destroy(r);
    orr_goal_free(g);
}

/* Event by event is the same as in one go. */
static void check_steps(orr_run_config config)
{
    orr_run *whole = start(config), *steps = start(config);
    orr_code code;
    uint64_t count = 0;
    CHECK_OK(orr_run_to_end(whole, &err), &err);
    while ((code = orr_run_step(steps, &err)) == ORR_OK)
        count++;
    CHECK_CODE(code, ORR_END, &err);
    CHECK(count > 0 && orr_run_time(whole) > 0);
    CHECK(orr_run_time(steps) == orr_run_time(whole));
    CHECK_EQ_U(orr_run_events(steps), orr_run_events(whole));
    orr_run_destroy(whole);
    orr_run_destroy(steps);
}

static void write_star(void)
{
    static const char topology[] =
        "4 1 3\n3\n3 0 100Gbps 1us 0\n3 1 100Gbps 1us 0\n3 2 100Gbps 1us 0\n";
    static const char config[] = "CC_MODE 0 ENABLE_QCN 0 RATE_AI 1Gbps RATE_HAI 1Gbps "
                                 "L2_CHUNK_SIZE 4000 TOPOLOGY_FILE star.txt\n";
    static const char flows[] = "2\n0 2 3 100 100000 0\n1 2 3 100 100000 0\n";
    write_file("star.txt", topology, strlen(topology));
    write_file("config.txt", config, strlen(config));
    write_file("flows.txt", flows, strlen(flows));
}

TEST(test_run__steps_come_to_the_same_end)
{
    orr_set *set = ring_of(4);
    orr_goal *g = parse(PAIR);
    write_star();
    check_steps((orr_run_config){.set = set, .fold = ORR_RUN_FOLD_OFF});
    check_steps((orr_run_config){.schedule = g});
    check_steps((orr_run_config){.is_flows = true, .flows = "flows.txt", .topology = "config.txt"});
    orr_goal_free(g);
    orr_set_close(set);
}

TEST(test_run__a_run_that_stands_still_explains_itself)
{
    orr_goal *g = parse("num_ranks 2\nrank 0 {\nrecv 8b from 1\n}\nrank 1 {\n}\n");
    orr_run *r = start((orr_run_config){.schedule = g});
    CHECK(orr_run_stall_line(r, 0) == NULL);
    CHECK_CODE(orr_run_to_end(r, &err), ORR_EINPUT, &err);
    CHECK(strstr(orr_run_stall_line(r, 0), "no rank sends it") != NULL);
    CHECK(orr_run_stall_line(r, 1) == NULL);
    orr_run_destroy(r);
    orr_goal_free(g);
}

static void count_link(void *count, const orr_net_link *link)
{
    *(uint64_t *)count += link->bytes > 0;
}

/* Two flows over three links of a star; a schedule has neither links nor packets. */
TEST(test_run__results_that_an_engine_has_not_are_empty)
{
    orr_goal *g = parse(PAIR);
    uint64_t links = 0;
    orr_packet_figures figures;
    orr_fabric_view *view;
    write_star();
    orr_run *r = start((orr_run_config){.is_flows = true,
                                        .flows = "flows.txt",
                                        .topology = "config.txt",
                                        .records = ORR_RUN_HISTORY});
    CHECK_OK(orr_run_to_end(r, &err), &err);
    CHECK(orr_run_seconds(r) > 0 && orr_run_ranks(r) == 0 && orr_run_peak_flops(r) == 0);
    orr_run_visit_links(r, count_link, &links);
    CHECK_EQ_U(links, 6); /* data one way, ACKs the other */
    CHECK(orr_run_packets(r, &figures) && figures.flows_done == 2);
    CHECK_OK(orr_run_fabric_view(r, &view, &err), &err);
    CHECK(view->columns > 0);
    orr_fabric_view_destroy(view);
    orr_run_destroy(r);
    r = start((orr_run_config){.schedule = g});
    CHECK_OK(orr_run_fabric_view(r, &view, &err), &err);
    CHECK(view == NULL && !orr_run_packets(r, &figures) && orr_run_dimension_at(r, 0) == NULL);
    orr_run_destroy(r);
    orr_goal_free(g);
}

/* Every string of a configuration, on the heap and freed as soon as the run is made: its JSON names
 * the same files as that of a run whose strings stayed.  The sanitizers (make check) see a late
 * look; without them the bytes have changed. */
static void check_strings(orr_run_config config)
{
    const size_t strings[] = {
        offsetof(orr_run_config, traces),       offsetof(orr_run_config, flows),
        offsetof(orr_run_config, name),         offsetof(orr_run_config, program),
        offsetof(orr_run_config, machine),      offsetof(orr_run_config, system),
        offsetof(orr_run_config, topology),     offsetof(orr_run_config, network),
        offsetof(orr_run_config, memory),       offsetof(orr_run_config, groups),
        offsetof(orr_run_config, plans),        offsetof(orr_run_config, ranks_file),
        offsetof(orr_run_config, hardware),     offsetof(orr_run_config, software),
        offsetof(orr_run_config, logical),      offsetof(orr_run_config, packet_config),
        offsetof(orr_run_config, packet_keys),  offsetof(orr_run_config, noise),
        offsetof(orr_run_config, simple_links), offsetof(orr_run_config, logging),
    };
    enum { STRINGS = sizeof strings / sizeof *strings };
    char *copies[STRINGS] = {0};
    orr_run *stays = start(config), *freed;
    orr_run_config copy = config;
    for (size_t i = 0; i < STRINGS; i++) {
        const char **member = (const char **)(void *)((char *)&copy + strings[i]);
        if (*member) {
            *member = copies[i] = strdup(*member);
            CHECK(copies[i] != NULL);
        }
    }
    freed = start(copy);
    for (size_t i = 0; i < STRINGS; i++) {
        if (copies[i])
            memset(copies[i], '#', strlen(copies[i]));
        free(copies[i]);
    }
    memset(&copy, '#', sizeof copy);
    CHECK_OK(orr_run_to_end(stays, &err), &err);
    CHECK_OK(orr_run_to_end(freed, &err), &err);
    CHECK_OK(orr_run_write(stays, "json", "stays.json", &err), &err);
    CHECK_OK(orr_run_write(freed, "json", "freed.json", &err), &err);
    orr_buf one = read_file("stays.json"), other = read_file("freed.json");
    CHECK(one.len > 100 && !memchr(other.ptr, '#', other.len));
    for (size_t i = 0; i < STRINGS; i++) {
        const char *text = *(const char **)(void *)((char *)&config + strings[i]);
        if (text)
            CHECK_EQ(memmem(one.ptr, one.len, text, strlen(text)) != NULL,
                     memmem(other.ptr, other.len, text, strlen(text)) != NULL);
    }
    CHECK_EQ(orr_run_time(stays), orr_run_time(freed));
    orr_buf_fini(&one);
    orr_buf_fini(&other);
    orr_run_destroy(stays);
    orr_run_destroy(freed);
}

static void put(const char *path, const char *text)
{
    write_file(path, text, strlen(text));
}

TEST(test_run__every_string_may_be_freed)
{
    orr_set *set = ring_of(4), *step;
    orr_goal *g = parse(PAIR);
    put("sys.json", "{\"scheduling-policy\": \"LIFO\"}");
    put("net.yml", "topology: [Switch]\nnpus_count: [4]\nbandwidth: [50]\nlatency: [500]\n");
    put("leaf.yml",
        "generate: {type: leaf-spine, ranks: 4, spines: 2, ranks_per_leaf: 2, bandwidth: 400Gb/s}\n");
    put("mem.json", "{\"memory-type\": \"NO_MEMORY_EXPANSION\"}");
    put("groups.json", "{\"1\": [0, 1]}");
    put("ranks.yml", "ranks: [{rank: 1, compute: 0.5}]\n");
    put("noise.txt", "100 10\n500 20\n");
    write_star();
    check_strings((orr_run_config){.set = set,
                                   .traces = "from-here",
                                   .program = "somebody 1.0",
                                   .system = "sys.json",
                                   .topology = "net.yml",
                                   .network = "unaware",
                                   .memory = "mem.json",
                                   .groups = "groups.json"});
    check_strings((orr_run_config){.set = set,
                                   .system = "sys.json",
                                   .topology = "leaf.yml",
                                   .network = "packet",
                                   .threads = 1,
                                   .packet_keys = "CC_MODE 3"});
    CHECK_OK(orr_llm_training(orr_model_find("gpt2"), &(orr_llm_options){0}, &step, &err), &err);
    check_strings((orr_run_config){.set = step,
                                   .machine = "dgx-h100",
                                   .hardware = "h100",
                                   .software = "cuda-graph",
                                   .program = "somebody 1.0"});
    check_strings((orr_run_config){
        .schedule = g, .name = "pair", .noise = "noise.txt", .program = "somebody 1.0"});
    check_strings(
        (orr_run_config){.is_flows = true, .flows = "flows.txt", .topology = "config.txt"});
    orr_goal_free(g);
    orr_set_close(step);
    orr_set_close(set);
}

/* ---- stopping ---- */

/* Stopped before it begins, and run again: as if nothing had been. */
static void check_stop(orr_run_config config)
{
    orr_run *whole = start(config), *stopped = start(config);
    CHECK_OK(orr_run_to_end(whole, &err), &err);
    orr_run_stop(stopped);
    const orr_code code = orr_run_to_end(stopped, &err);
    CHECK(code == ORR_ESTOP || code == ORR_OK); /* a short run may be over before it listens */
    if (code)
        CHECK_OK(orr_run_to_end(stopped, &err), &err);
    CHECK(orr_run_time(stopped) == orr_run_time(whole));
    CHECK(orr_run_events(stopped) == orr_run_events(whole));
    CHECK(orr_run_messages(stopped) == orr_run_messages(whole));
    for (uint32_t i = 0; i < orr_run_ranks(whole); i++)
        CHECK(orr_run_rank_at(stopped, i)->finished_at == orr_run_rank_at(whole, i)->finished_at);
    orr_run_destroy(whole);
    orr_run_destroy(stopped);
}

TEST(test_run__a_stopped_run_can_go_on)
{
    orr_set *set = ring_of(4);
    orr_goal *g = parse(PAIR), *ring = parse(RING); /* of which one rank stands for all */
    write_star();
    check_stop((orr_run_config){.set = set});
    check_stop((orr_run_config){.schedule = g});
    check_stop((orr_run_config){.schedule = ring});
    check_stop((orr_run_config){.schedule = ring, .fold = ORR_RUN_FOLD_OFF, .threads = 2});
    check_stop((orr_run_config){.is_flows = true, .flows = "flows.txt", .topology = "config.txt"});
    orr_goal_free(ring);
    orr_goal_free(g);
    orr_set_close(set);
}

/* Runs that share a limit of time: what the others used is gone, and the error names all of it. */
TEST(test_run__earlier_runs_use_up_the_time)
{
    orr_set *set = ring_of(4);
    for (int used = 0; used <= 120; used += 60) {
        orr_run *r = start((orr_run_config){.set = set, .max_seconds = 100, .used_seconds = used});
        CHECK_EQ(orr_run_to_end(r, &err), used < 100 ? ORR_OK : ORR_ESTOP);
        CHECK_EQ(orr_run_finished(r), used < 100 ? 4 : 0);
        if (used > 100)
            CHECK_SAYS(&err, "the limit of 100 s is reached: ");
        orr_run_destroy(r);
    }
    orr_set_close(set);
}

/* Everything that can be asked of a run; what it has not is refused, with words. */
static void ask_all(orr_run *r)
{
    static const char *const files[] = {"text",  "json",      "csv",    "csv-alike", "figures",
                                        "links", "trace-log", "memory", "timeline"};
    orr_timeline *line;
    orr_critical_path *path;
    orr_goal *goal;
    const char *why;
    for (uint32_t i = 0; i < orr_run_ranks(r); i++)
        CHECK(orr_run_rank_at(r, i) != NULL);
    for (uint32_t i = 0; i < orr_run_dimensions(r); i++)
        CHECK(orr_run_dimension_at(r, i) != NULL);
    CHECK(orr_run_finished(r) <= orr_run_ranks(r) && orr_run_time(r) >= 0);
    (void)orr_run_threads(r, &why);
    (void)orr_run_stall(r);
    (void)orr_run_steps_of(r);
    (void)orr_run_events(r);
    (void)orr_run_messages(r);
    (void)orr_run_ranks_simulated(r);
    (void)orr_run_ranks_simulated_last(r);
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        err.message[0] = 0;
        CHECK(!orr_run_write(r, files[i], "asked", &err) || err.message[0]);
    }
    if (!orr_run_timeline(r, &line, &err))
        orr_timeline_destroy(line);
    if (!orr_run_critical_path(r, &path, &err))
        orr_critical_path_destroy(path);
    if (!orr_run_goal(r, &goal, &err))
        orr_goal_free(goal);
}

static void ask_at_any_time(orr_run_config config)
{
    orr_run *r = start(config);
    ask_all(r);
    orr_run_stop(r); /* before its first event */
    CHECK_CODE(orr_run_to_end(r, &err), ORR_ESTOP, &err);
    ask_all(r);
    CHECK_OK(orr_run_to_end(r, &err), &err);
    const orr_ps end = orr_run_time(r);
    ask_all(r);
    orr_run_destroy(r);
    r = start(config);
    CHECK_OK(orr_run_step(r, &err), &err);
    ask_all(r);
    CHECK_OK(orr_run_to_end(r, &err), &err);
    CHECK(orr_run_time(r) == end);
    orr_run_destroy(r);
    orr_run_destroy(start(config)); /* never asked, never run */
}

TEST(test_run__anything_may_be_asked_at_any_time)
{
    static const char *const networks[] = {"fluid", "unaware", "aware", "graph", "packet"};
    orr_set *ring = ring_of(8);
    const orr_pattern *pattern = orr_pattern_find("all_reduce");
    orr_set *reduce;
    CHECK_OK(orr_pattern_set(pattern, &pattern->defaults, &reduce, &err), &err);
    orr_goal *g = parse(RING);
    write_star();
    for (size_t n = 0; n < sizeof networks / sizeof *networks; n++)
        for (int i = 0; i < 12; i++) {
            const orr_run_config c = {.set = i % 2 ? ring : reduce,
                                      .network = networks[n],
                                      .fold = i / 2 % 2 ? ORR_RUN_FOLD_OFF : ORR_RUN_FOLD_AUTO,
                                      .steps = i / 4 == 1 ? 3 : 1,
                                      .threads = 1,
                                      .records = i / 4 == 2 ? ORR_RUN_SPANS : 0};
            ask_at_any_time(c);
        }
    ask_at_any_time((orr_run_config){.schedule = g});
    ask_at_any_time((orr_run_config){.schedule = g, .fold = ORR_RUN_FOLD_OFF, .threads = 2});
    ask_at_any_time(
        (orr_run_config){.is_flows = true, .flows = "flows.txt", .topology = "config.txt"});
    orr_goal_free(g);
    orr_set_close(reduce);
    orr_set_close(ring);
}

/* A network that never lets a run end: each message is followed by calls without end. */
static atomic_int calls;

static void again(void *sim, uint64_t argument)
{
    atomic_fetch_add(&calls, 1);
    orr_net_after(sim, 1000, again, sim, argument);
}

static orr_code endless_send(void *net, orr_net *sim, const orr_message *m, orr_error *e)
{
    (void)net, (void)e;
    orr_net_after(sim, 1000, again, sim, m->token);
    return ORR_OK;
}

static const orr_net_ops endless = {.name = "endless", .help = "", .send = endless_send};

static void *stop_soon(void *run)
{
    while (atomic_load(&calls) < 1000)
        sched_yield();
    orr_run_stop(run);
    return NULL;
}

TEST(test_run__another_thread_stops_it)
{
    orr_set *set = ring_of(2);
    orr_run *r = start((orr_run_config){.set = set, .own_network = &endless});
    pthread_t thread;
    atomic_store(&calls, 0);
    CHECK(pthread_create(&thread, NULL, stop_soon, r) == 0);
    CHECK_CODE(orr_run_to_end(r, &err), ORR_ESTOP, &err);
    pthread_join(thread, NULL);
    CHECK(orr_run_time(r) > 0 && orr_run_finished(r) == 0);
    orr_run_destroy(r);
    orr_set_close(set);
}

static orr_run *volatile handled;

static void on_signal(int number)
{
    (void)number;
    orr_run_stop(handled);
}

static void *send_signal(void *thread)
{
    while (atomic_load(&calls) < 1000)
        sched_yield();
    pthread_kill(*(pthread_t *)thread, SIGUSR1);
    return NULL;
}

TEST(test_run__a_signal_handler_stops_it)
{
    orr_set *set = ring_of(2);
    pthread_t thread, self = pthread_self();
    struct sigaction old, stop = {.sa_handler = on_signal};
    handled = start((orr_run_config){.set = set, .own_network = &endless});
    atomic_store(&calls, 0);
    sigaction(SIGUSR1, &stop, &old);
    CHECK(pthread_create(&thread, NULL, send_signal, &self) == 0);
    CHECK_CODE(orr_run_to_end(handled, &err), ORR_ESTOP, &err);
    pthread_join(thread, NULL);
    sigaction(SIGUSR1, &old, NULL);
    orr_run_destroy(handled);
    orr_set_close(set);
}

/* ---- a compute model of the caller's ---- */

/* 40 us for every node, 0 (as recorded) for the second one, refusal when told so. */
static orr_code model_time(
    void *context, const orr_trace *t, uint32_t node, orr_ps *out, orr_error *e)
{
    const int *answers = context;
    CHECK_EQ_U(orr_trace_columns(t)->type[node], ORR_NODE_COMP);
    if (answers[node] < 0)
        return orr_fail(e, ORR_EUSAGE, NULL, "no answer");
    *out = (orr_ps)answers[node] * 1000000;
    return ORR_OK;
}

/* Two nodes of 5 us, one behind the other, on two ranks. */
static orr_set *two_nodes(void)
{
    const uint64_t before = 1;
    orr_set *set;
    CHECK_OK(orr_set_create(&set, &err), &err);
    for (int r = 0; r < 2; r++) {
        orr_trace *t;
        CHECK_OK(orr_trace_create(NULL, &t, &err), &err);
        const orr_draft first = {.id = 1, .type = ORR_NODE_COMP, .duration_us = 5};
        const orr_draft second = {.id = 2,
                                  .type = ORR_NODE_COMP,
                                  .duration_us = 5,
                                  .data_deps = &before,
                                  .data_count = 1};
        CHECK_OK(orr_trace_append(t, &first, &err), &err);
        CHECK_OK(orr_trace_append(t, &second, &err), &err);
        CHECK_OK(orr_trace_seal(t, &err), &err);
        CHECK_OK(orr_set_add(set, t, &err), &err);
    }
    return set;
}

TEST(test_run__a_compute_model_of_the_callers)
{
    orr_set *set = two_nodes();
    int answers[] = {40, 0};
    const orr_compute_ops model = {.time = model_time, .context = answers};
    const orr_run_config config = {.size = sizeof config, .set = set, .own_compute = &model};
    orr_run *r = start(config);
    CHECK_OK(orr_run_to_end(r, &err), &err);
    CHECK_EQ(orr_run_time(r), 45000000); /* 40 us, and 5 us as recorded */
    orr_run_destroy(r);
    answers[1] = -1;
    refuse(config, "no answer");
    orr_set_close(set);
}

/* ---- two at once ---- */

typedef struct half {
    const orr_run_config *config;
    orr_ps time;
    orr_code code;
} half;

static void *run_half(void *context)
{
    half *h = context;
    orr_error mine;
    orr_run *r = NULL;
    h->code = orr_run_create(h->config, &r, &mine);
    if (!h->code)
        h->code = orr_run_to_end(r, &mine);
    h->time = h->code ? 0 : orr_run_time(r);
    orr_run_destroy(r);
    return NULL;
}

/* The set is shared, the runs are not. */
TEST(test_run__two_threads_run_two)
{
    orr_set *set = ring_of(64);
    orr_goal *g = parse(PAIR);
    const orr_run_config traces = {.size = sizeof traces, .set = set};
    const orr_run_config schedule = {.size = sizeof schedule, .schedule = g};
    for (int round = 0; round < 20; round++) {
        half halves[] = {{&traces, 0, 0}, {&traces, 0, 0}, {&schedule, 0, 0}, {&schedule, 0, 0}};
        pthread_t threads[4];
        for (int i = 0; i < 4; i++)
            CHECK(pthread_create(&threads[i], NULL, run_half, &halves[i]) == 0);
        for (int i = 0; i < 4; i++) {
            pthread_join(threads[i], NULL);
            CHECK(halves[i].code == ORR_OK && halves[i].time > 0);
        }
        CHECK(halves[0].time == halves[1].time && halves[2].time == halves[3].time);
    }
    orr_goal_free(g);
    orr_set_close(set);
}

/* Runs of one set, on every network, while another thread stops them again and again; each comes to
 * the end that it has alone. */
typedef struct stopping {
    orr_run_config config;
    _Atomic(orr_run *) run;
    atomic_bool is_over;
    pthread_mutex_t lock; /* held while the run is destroyed */
    orr_ps time;
    unsigned stops;
    bool ok;
} stopping;

static void *stop_often(void *data)
{
    stopping *x = data;
    while (!atomic_load(&x->is_over)) {
        pthread_mutex_lock(&x->lock);
        orr_run *r = atomic_load(&x->run);
        if (r)
            orr_run_stop(r);
        pthread_mutex_unlock(&x->lock);
        sched_yield();
    }
    return NULL;
}

static void *run_stopped(void *data)
{
    stopping *x = data;
    orr_error e;
    orr_run *r;
    pthread_t stopper;
    x->ok = !orr_run_create(&x->config, &r, &e);
    if (!x->ok)
        return NULL;
    atomic_store(&x->run, r);
    const bool is_stopped = pthread_create(&stopper, NULL, stop_often, x) == 0;
    orr_code code = ORR_ESTOP;
    while (code == ORR_ESTOP && x->stops < 20) {
        code = orr_run_to_end(r, &e);
        x->stops += code == ORR_ESTOP;
    }
    atomic_store(&x->is_over, true);
    if (is_stopped)
        pthread_join(stopper, NULL);
    if (code == ORR_ESTOP) /* stopped often enough */
        code = orr_run_to_end(r, &e);
    if (code == ORR_ESTOP) /* the last one asked before it was over */
        code = orr_run_to_end(r, &e);
    x->ok = !code && orr_run_finished(r) == orr_run_ranks(r);
    x->time = orr_run_time(r);
    pthread_mutex_lock(&x->lock);
    atomic_store(&x->run, NULL);
    orr_run_destroy(r);
    pthread_mutex_unlock(&x->lock);
    return NULL;
}

TEST(test_run__runs_in_threads_are_stopped_by_others)
{
    static const char *const networks[] = {"fluid", "unaware", "aware", "graph"};
    enum { COUNT = 8 };
    orr_set *set = ring_of(16);
    stopping list[COUNT];
    pthread_t threads[COUNT];
    for (int i = 0; i < COUNT; i++) {
        list[i] = (stopping){.config = {.size = sizeof(orr_run_config),
                                        .set = set,
                                        .network = networks[i % 4],
                                        .threads = 1,
                                        .fold = i < 4 ? ORR_RUN_FOLD_AUTO : ORR_RUN_FOLD_OFF}};
        pthread_mutex_init(&list[i].lock, NULL);
        CHECK(pthread_create(&threads[i], NULL, run_stopped, &list[i]) == 0);
    }
    for (int i = 0; i < COUNT; i++) {
        pthread_join(threads[i], NULL);
        pthread_mutex_destroy(&list[i].lock);
    }
    for (int i = 0; i < COUNT; i++) {
        orr_run *r = start(list[i].config);
        CHECK_OK(orr_run_to_end(r, &err), &err);
        CHECK(list[i].ok && list[i].time == orr_run_time(r));
        orr_run_destroy(r);
    }
    orr_set_close(set);
}

int main(void)
{
    const CMUnitTest tests[] = {
        RUN(test_run__what_is_not_there_is_an_error_or_a_default),
        RUN(test_run__what_the_caller_gave_is_copied),
        RUN(test_run__an_engine_says_what_it_supports),
        RUN(test_run__steps_come_to_the_same_end),
        RUN(test_run__a_run_that_stands_still_explains_itself),
        RUN(test_run__results_that_an_engine_has_not_are_empty),
        RUN(test_run__every_string_may_be_freed),
        RUN(test_run__a_stopped_run_can_go_on),
        RUN(test_run__earlier_runs_use_up_the_time),
        RUN(test_run__anything_may_be_asked_at_any_time),
        RUN(test_run__another_thread_stops_it),
        RUN(test_run__a_signal_handler_stops_it),
        RUN(test_run__a_compute_model_of_the_callers),
        RUN(test_run__two_threads_run_two),
        RUN(test_run__runs_in_threads_are_stopped_by_others),
    };
    return RUN_ALL(tests);
}
