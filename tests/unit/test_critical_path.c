/* SPDX-License-Identifier: Apache-2.0 */
/* test_critical_path.c - what a run leaves behind: critical path, timeline, figures, and stopping
 * it.
 *
 * All on a switch with 50 GB/s (53.687 bytes a ns) and 500 ns a link: a message of 1 MiB takes
 * 2 x 500 + 1048576 / 53.687 = 20531 ns, rounded down. */
#include "check.h"
#include "files.h"

#include "base/formats/json.h"

#include "run/sim.h"
#include <orrery/lab/critical_path.h>
#include <orrery/view.h>

enum { MIB = 1 << 20, MESSAGE_NS = 20531 };

static orr_error err;

/* ---- traces ---- */

static orr_attr int_attr(const char *name, int64_t v)
{
    return (orr_attr){.name = orr_str_of(name), .kind = ORR_VALUE_INT64, .value.i = v};
}

static orr_trace *new_trace(void)
{
    orr_trace *t;
    CHECK_OK(orr_trace_create(&(orr_meta){.version = orr_str_of("1.0.0")}, &t, &err), &err);
    return t;
}

/* A node that waits for `after`; 0: for none. */
static void add(orr_trace *t,
                uint64_t id,
                uint32_t type,
                uint64_t us,
                uint64_t after,
                const orr_attr *attrs,
                size_t attr_count)
{
    char name[16];
    snprintf(name, sizeof name, "n%u", (unsigned)id);
    const orr_draft d = {.id = id,
                         .name = orr_str_of(name),
                         .type = type,
                         .duration_us = us,
                         .data_deps = &after,
                         .data_count = after != 0,
                         .attrs = attrs,
                         .attr_count = attr_count};
    CHECK_OK(orr_trace_append(t, &d, &err), &err);
}

static void add_comp(orr_trace *t, uint64_t id, uint64_t us, uint64_t after)
{
    add(t, id, ORR_NODE_COMP, us, after, NULL, 0);
}

static void add_all_reduce(orr_trace *t, uint64_t id, uint64_t after)
{
    const orr_attr attrs[] = {int_attr("comm_type", ORR_COLL_ALL_REDUCE),
                              int_attr("comm_size", MIB)};
    add(t, id, ORR_NODE_COMM_COLL, 0, after, attrs, 2);
}

static void add_message(orr_trace *t, uint64_t id, bool is_send, uint32_t peer, uint64_t after)
{
    const orr_attr attrs[] = {int_attr(is_send ? "comm_dst" : "comm_src", peer),
                              int_attr("comm_size", MIB), int_attr("comm_tag", 1)};
    add(t, id, is_send ? ORR_NODE_COMM_SEND : ORR_NODE_COMM_RECV, 0, after, attrs, 3);
}

static void add_load(orr_trace *t, uint64_t id, int64_t size, uint64_t after)
{
    const orr_attr attrs[] = {int_attr("tensor_size", size)};
    add(t, id, ORR_NODE_MEM_LOAD, 0, after, attrs, 1);
}

/* ---- running ---- */

static void write_text(const char *path, const char *text)
{
    write_file(path, text, strlen(text));
}

static void write_config(uint32_t ranks, const char *splits)
{
    char text[400];
    snprintf(text, sizeof text,
             "topology: [Switch]\nnpus_count: [%u]\nbandwidth: [50]\nlatency: [500]\n", ranks);
    write_text("net.yml", text);
    snprintf(
        text, sizeof text,
        "{\"scheduling-policy\":\"LIFO\",\"local-mem-bw\":1600,\"preferred-dataset-splits\":%s,"
        "\"all-reduce-implementation\":[\"ring\"]}",
        splits);
    write_text("sys.json", text);
    write_text("mem.json", "{\"memory-type\":\"MEMORY_POOL\",\"remote-mem-bw\":100}");
}

static orr_sim *simulate_with(orr_trace **traces,
                              uint32_t count,
                              orr_sim_options opt,
                              orr_set **set)
{
    orr_sim *s;
    CHECK_OK(orr_set_create(set, &err), &err);
    for (uint32_t r = 0; r < count; r++) {
        CHECK_OK(orr_trace_seal(traces[r], &err), &err);
        CHECK_OK(orr_set_add(*set, traces[r], &err), &err);
    }
    write_config(count, "1");
    opt.set = *set;
    opt.system = "sys.json";
    opt.network = "net.yml";
    opt.fidelity = "unaware";
    opt.memory = "mem.json";
    CHECK_OK(orr_sim_create(&opt, &s, &err), &err);
    CHECK_OK(orr_sim_run(s, &err), &err);
    return s;
}

static orr_sim *simulate(orr_trace **traces, uint32_t count, orr_set **set)
{
    const orr_sim_options opt = {.record = ORR_SIM_RECORD_NODES, .critical_path = 5};
    return simulate_with(traces, count, opt, set);
}

static orr_critical_path *path_of(const orr_sim *s)
{
    orr_critical_path *p;
    CHECK_OK(orr_sim_critical_path(s, &p, &err), &err);
    return p;
}

static void check_step(
    const orr_path_step *s, uint64_t from, uint64_t to, uint32_t rank, uint64_t node)
{
    CHECK_EQ_U(s->from, from);
    CHECK_EQ_U(s->to, to);
    CHECK_EQ_U(s->rank, rank);
    CHECK_EQ_U(s->node, node);
}

/* ---- the path ---- */

/* Rank 1 comes to the all-reduce after 5 us, rank 0 after 9; then rank 1 computes on.  So rank 0
 * held it. */
TEST(test_critical_path__goes_to_the_rank_that_came_last)
{
    orr_trace *t[] = {new_trace(), new_trace()};
    orr_set *set;
    add_comp(t[0], 1, 9, 0);
    add_all_reduce(t[0], 2, 1);
    add_comp(t[1], 1, 5, 0);
    add_all_reduce(t[1], 2, 1);
    add_comp(t[1], 3, 50, 2);
    orr_sim *s = simulate(t, 2, &set);
    orr_critical_path *p = path_of(s);
    const uint64_t end = orr_sim_rank(s, 1)->finished_at;
    CHECK_EQ_U(p->total, end);
    CHECK_EQ_U(p->step_count, 3);
    check_step(&p->steps[0], 0, 9000, 0, 1);
    CHECK_EQ(p->steps[0].after, ORR_PATH_START);
    check_step(&p->steps[1], 9000, end - 50000, 1, 2);
    CHECK_EQ(p->steps[1].held, ORR_PATH_LAST_RANK);
    CHECK_EQ_U(p->steps[1].held_rank, 0);
    CHECK_EQ(p->steps[1].after, ORR_PATH_DEPENDENCY);
    CHECK_TEXT(p->steps[1].what, "ALL_REDUCE");
    CHECK_TEXT(p->steps[1].name, "n2");
    check_step(&p->steps[2], end - 50000, end, 1, 3);
    CHECK_EQ_U(p->ranks, 2);
    CHECK_EQ_U(p->share_count, 2);
    CHECK_TEXT(p->shares[0].what, "compute");
    CHECK_EQ_U(p->shares[0].time, 59000);
    orr_sim_destroy(s);
    orr_set_close(set);
    CHECK_TEXT(p->steps[0].name, "n1"); /* the path stays when the simulation goes */
    orr_critical_path_destroy(p);
}

TEST(test_critical_path__goes_with_a_message_to_its_sender)
{
    orr_trace *t[] = {new_trace(), new_trace()};
    orr_set *set;
    add_comp(t[0], 1, 3, 0);
    add_message(t[0], 2, true, 1, 1);
    add_message(t[1], 1, false, 0, 0);
    add_comp(t[1], 2, 2, 1);
    orr_sim *s = simulate(t, 2, &set);
    orr_critical_path *p = path_of(s);
    CHECK_EQ_U(p->step_count, 3);
    check_step(&p->steps[0], 0, 3000, 0, 1);
    check_step(&p->steps[1], 3000, 3000 + MESSAGE_NS, 1, 1);
    CHECK_EQ(p->steps[1].held, ORR_PATH_MESSAGE);
    CHECK_EQ_U(p->steps[1].held_rank, 0);
    CHECK_EQ_U(p->steps[1].held_node, 2);
    check_step(&p->steps[2], 3000 + MESSAGE_NS, 5000 + MESSAGE_NS, 1, 2);
    orr_critical_path_destroy(p);
    orr_sim_destroy(s);
    orr_set_close(set);
}

/* The message is there after 20531 ns; the receive is posted at 30000 and waits for nothing. */
TEST(test_critical_path__a_message_that_is_there_holds_nobody)
{
    orr_trace *t[] = {new_trace(), new_trace()};
    orr_set *set;
    add_message(t[0], 1, true, 1, 0);
    add_comp(t[1], 1, 30, 0);
    add_message(t[1], 2, false, 0, 1);
    orr_sim *s = simulate(t, 2, &set);
    orr_critical_path *p = path_of(s);
    CHECK_EQ_U(p->total, 30000);
    CHECK_EQ_U(p->step_count, 2);
    check_step(&p->steps[0], 0, 30000, 1, 1);
    check_step(&p->steps[1], 30000, 30000, 1, 2);
    CHECK_EQ(p->steps[1].held, ORR_PATH_NOT_HELD);
    orr_critical_path_destroy(p);
    orr_sim_destroy(s);
    orr_set_close(set);
}

/* A rendezvous: the send is posted at once, the receive after 30 us; 8192 bytes say so in 1152
 * ns. */
TEST(test_critical_path__a_send_waits_for_its_receiver_in_a_rendezvous)
{
    orr_trace *t[] = {new_trace(), new_trace()};
    const orr_sim_options opt = {.record = ORR_SIM_RECORD_NODES, .rendezvous = true};
    orr_set *set;
    add_comp(t[0], 1, 30, 0);
    add_message(t[0], 2, false, 1, 1);
    add_message(t[1], 1, true, 0, 0);
    add_comp(t[1], 2, 1, 1);
    orr_sim *s = simulate_with(t, 2, opt, &set);
    orr_critical_path *p = path_of(s);
    CHECK_EQ_U(p->total, 30000 + 1152 + MESSAGE_NS + 1000);
    CHECK_EQ_U(p->step_count, 3);
    check_step(&p->steps[0], 0, 30000, 0, 1);
    check_step(&p->steps[1], 30000, 30000 + 1152 + MESSAGE_NS, 1, 1);
    CHECK_EQ(p->steps[1].held, ORR_PATH_RECEIVER);
    CHECK_EQ_U(p->steps[1].held_rank, 0);
    orr_critical_path_destroy(p);
    orr_sim_destroy(s);
    orr_set_close(set);
}

TEST(test_critical_path__names_the_slot)
{
    orr_trace *t[] = {new_trace(), new_trace()};
    orr_set *set;
    add_comp(t[0], 1, 4, 0);
    add_comp(t[0], 2, 6, 0);
    add_comp(t[1], 1, 1, 0);
    orr_sim *s = simulate(t, 2, &set);
    orr_critical_path *p = path_of(s);
    CHECK_EQ_U(p->step_count, 2);
    check_step(&p->steps[0], 0, 4000, 0, 1);
    check_step(&p->steps[1], 4000, 10000, 0, 2);
    CHECK_EQ(p->steps[1].after, ORR_PATH_SLOT);
    CHECK_TEXT(orr_path_after_name(ORR_PATH_SLOT), "slot");
    CHECK_TEXT(orr_path_held_name(ORR_PATH_LAST_RANK), "last_rank");
    CHECK(orr_path_held_name(ORR_PATH_NOT_HELD) == NULL);
    CHECK_EQ_U(p->ranks, 1);
    orr_critical_path_destroy(p);
    orr_sim_destroy(s);
    orr_set_close(set);
}

/* 100000 bytes at 100 bytes a ns: 1000 ns each, one after the other. */
TEST(test_critical_path__goes_through_a_memory_server)
{
    orr_trace *t[] = {new_trace(), new_trace()};
    orr_set *set;
    for (int r = 0; r < 2; r++) {
        add_load(t[r], 1, 100000, 0);
        add_comp(t[r], 2, 1, 1);
    }
    orr_sim *s = simulate(t, 2, &set);
    orr_critical_path *p = path_of(s);
    CHECK_EQ_U(p->step_count, 3);
    check_step(&p->steps[0], 0, 1000, 0, 1);
    check_step(&p->steps[1], 1000, 2000, 1, 1);
    CHECK_EQ(p->steps[1].after, ORR_PATH_SERVER);
    check_step(&p->steps[2], 2000, 3000, 1, 2);
    orr_critical_path_destroy(p);
    orr_sim_destroy(s);
    orr_set_close(set);
}

TEST(test_critical_path__is_refused_when_it_was_not_recorded)
{
    orr_trace *t[] = {new_trace(), new_trace()};
    const orr_sim_options opt = {.record = ORR_SIM_RECORD_FIGURES};
    orr_critical_path *p;
    orr_timeline *timeline;
    orr_set *set;
    add_comp(t[0], 1, 1, 0);
    add_comp(t[1], 1, 1, 0);
    orr_sim *s = simulate_with(t, 2, opt, &set);
    CHECK_CODE(orr_sim_critical_path(s, &p, &err), ORR_EUSAGE, &err);
    CHECK(p == NULL);
    CHECK_CODE(orr_sim_timeline(s, NULL, &timeline, &err), ORR_EUSAGE, &err);
    orr_sim_destroy(s);
    orr_set_close(set);
}

/* ---- the timeline ---- */

/* What was sent, as the area under its counter: 1 MiB by two ranks, up to the rounding of rates. */
static void check_traffic(const orr_timeline *t)
{
    const orr_timeline_parts *p = orr_timeline_view(t);
    double bytes = 0, rate = 0;
    orr_ps before = 0;
    for (uint32_t i = 0; i < p->sample_count; i++) {
        if (p->samples[i].counter != 2)
            continue;
        bytes += rate * (double)(p->samples[i].at - before) / 1e12;
        before = p->samples[i].at;
        rate = (double)p->samples[i].value;
    }
    CHECK(rate == 0);
    CHECK(2 * bytes > MIB - 1 && 2 * bytes < MIB + 1);
}

TEST(test_critical_path__timeline_has_nodes_messages_and_counters)
{
    orr_trace *t[] = {new_trace(), new_trace()};
    orr_timeline *timeline;
    orr_set *set;
    add_comp(t[0], 1, 3, 0);
    add_message(t[0], 2, true, 1, 1);
    add_message(t[1], 1, false, 0, 0);
    add_comp(t[1], 2, 2, 1);
    orr_sim *s = simulate(t, 2, &set);
    CHECK_OK(orr_sim_timeline(s, NULL, &timeline, &err), &err);
    const orr_timeline_parts *p = orr_timeline_view(timeline);
    CHECK_EQ_U(p->track_count, 4); /* compute, communication; compute, receives */
    CHECK_EQ_U(p->span_count, 4);
    CHECK_EQ_PS(p->end, (5000 + MESSAGE_NS) * 1000LL);
    CHECK_EQ_U(p->arrow_count, 1);
    const orr_timespan *from = &p->spans[p->arrows[0].from], *to = &p->spans[p->arrows[0].to];
    CHECK_EQ(from->kind, ORR_SPAN_SEND);
    CHECK_EQ_PS(from->start, 3000000);
    CHECK_EQ(to->kind, ORR_SPAN_RECEIVE);
    CHECK_EQ_U(to->peer, 0);
    CHECK_EQ_U(to->size, MIB);
    /* Computing: 1 rank, 0 from 3 us on, 1 when the message is there, 0 at the end. */
    CHECK_EQ_U(p->counter_count, 3);
    int64_t seen[8];
    size_t n = 0;
    for (uint32_t i = 0; i < p->sample_count && n < 8; i++)
        if (p->samples[i].counter == 0)
            seen[n++] = p->samples[i].value;
    CHECK_EQ_U(n, 4);
    CHECK(seen[0] == 1 && seen[1] == 0 && seen[2] == 1 && seen[3] == 0);
    check_traffic(timeline);
    orr_timeline_destroy(timeline);
    orr_sim_destroy(s);
    orr_set_close(set);
}

TEST(test_critical_path__timeline_has_phases_when_asked)
{
    orr_trace *t[] = {new_trace(), new_trace()};
    const orr_sim_options opt = {.record = ORR_SIM_RECORD_PHASES};
    orr_timeline *timeline;
    orr_set *set;
    for (int r = 0; r < 2; r++)
        add_all_reduce(t[r], 1, 0);
    orr_sim *s = simulate_with(t, 2, opt, &set);
    CHECK_OK(orr_sim_timeline(s, NULL, &timeline, &err), &err);
    const orr_timeline_parts *p = orr_timeline_view(timeline);
    CHECK_EQ_U(p->track_count, 4); /* communication and phases, twice */
    CHECK_EQ_U(p->span_count, 4);  /* one chunk, one phase */
    const orr_timespan *phase = &p->spans[p->order[p->first[1]]];
    const orr_str name = orr_timeline_text(timeline, phase->name);
    CHECK_EQ(phase->kind, ORR_SPAN_PHASE);
    CHECK_EQ_PS(phase->end, p->end);
    CHECK_TEXT(name.ptr, "all-reduce, ring, chunk 0");
    orr_timeline_destroy(timeline);
    orr_sim_destroy(s);
    orr_set_close(set);
}

/* ---- figures ---- */

static uint64_t number_at(orr_json_value v, const char *key)
{
    orr_json_value found;
    uint64_t out;
    CHECK(orr_json_find(v, key, &found));
    CHECK_OK(orr_json_get_u64(found, &out, &err), &err);
    return out;
}

static orr_json_value item_at(orr_json_value v, const char *key, unsigned place)
{
    orr_json_value list, out;
    CHECK(orr_json_find(v, key, &list));
    orr_json_iter it = orr_json_iterate(list);
    for (unsigned i = 0; i <= place; i++)
        CHECK(orr_json_next_value(&it, &out));
    return out;
}

/* Each rank starts the all-reduce and 10 us of computation at once; rank 1 computes 2 us before
 * that.
 *     rank 0   [all-reduce from 0 ........... end]   [compute 0 .. 10000]
 *     rank 1   [compute 0 .. 2000][all-reduce from 2000 .. end][compute 2000 .. 12000]
 * The all-reduce of rank 0 is exposed from 10000 on, that of rank 1 from 12000 on. */
TEST(test_critical_path__figures_of_a_run)
{
    orr_trace *t[] = {new_trace(), new_trace()};
    orr_json_value root;
    orr_json *j;
    orr_set *set;
    add_all_reduce(t[0], 1, 0);
    add_comp(t[0], 2, 10, 0);
    add_comp(t[1], 1, 2, 0);
    add_all_reduce(t[1], 2, 1);
    add_comp(t[1], 3, 10, 1);
    orr_sim *s = simulate(t, 2, &set);
    const uint64_t end = orr_sim_rank(s, 1)->finished_at, end0 = orr_sim_rank(s, 0)->finished_at;
    CHECK(end0 > 12000 && end > end0);
    CHECK_OK(orr_sim_write_json(s, "run.json", &err), &err);
    orr_buf b = read_file("run.json");
    CHECK_OK(orr_json_open((orr_span){b.ptr, b.len}, "run.json", &j, &err), &err);
    CHECK_OK(orr_json_only(j, &root, &err), &err);
    CHECK_EQ_U(number_at(root, "simulated_ns"), end);
    const orr_json_value all_reduce = item_at(root, "collectives", 0);
    CHECK_EQ_U(number_at(all_reduce, "count"), 2);
    CHECK_EQ_U(number_at(all_reduce, "ranks"), 2);
    CHECK_EQ_U(number_at(all_reduce, "group_ranks"), 2);
    /* For both from when rank 1 has called it: before, no data can flow. */
    CHECK_EQ_U(number_at(all_reduce, "duration_ns_total"), (end0 - 2000) + (end - 2000));
    CHECK_EQ_U(number_at(all_reduce, "exposed_ns_total"), (end0 - 10000) + (end - 12000));
    /* A ring of two sends half of it twice: 4 messages of 512 KiB. */
    const orr_json_value dimension = item_at(root, "dimensions", 0);
    CHECK_EQ_U(number_at(dimension, "messages"), 4);
    CHECK_EQ_U(number_at(dimension, "bytes"), 2 * MIB);
    CHECK_EQ_U(number_at(item_at(root, "per_rank", 1), "exposed_communication_ns"), end - 12000);
    CHECK_EQ_U(number_at(item_at(root, "per_rank", 0), "idle_ns"), end - end0);
    orr_json_close(j);
    orr_buf_fini(&b);
    orr_sim_destroy(s);
    orr_set_close(set);
}

/* ---- stopping ---- */

TEST(test_critical_path__a_run_stops_when_told_and_goes_on)
{
    orr_trace *t = new_trace();
    const orr_sim_options opt = {.system = "sys.json", .network = "net.yml", .fidelity = "unaware"};
    orr_sim *whole, *s;
    orr_set *set;
    add_all_reduce(t, 1, 0);
    CHECK_OK(orr_trace_seal(t, &err), &err);
    CHECK_OK(orr_set_create(&set, &err), &err);
    CHECK_OK(orr_set_add(set, t, &err), &err);
    for (int r = 1; r < 32; r++)
        CHECK_OK(orr_set_add_rank(set, 0, 0, &err), &err);
    write_config(32, "8"); /* 32 ranks x 8 chunks x 62 messages */
    orr_sim_options with_set = opt;
    with_set.set = set;
    with_set.fold = ORR_SIM_FOLD_OFF; /* folded it is over in a few events */
    CHECK_OK(orr_sim_create(&with_set, &whole, &err), &err);
    CHECK_OK(orr_sim_run(whole, &err), &err);
    CHECK_OK(orr_sim_create(&with_set, &s, &err), &err);
    orr_sim_stop(s);
    CHECK_CODE(orr_sim_run(s, &err), ORR_ESTOP, &err);
    CHECK_SAYS(&err, "interrupted at");
    CHECK_EQ_U(orr_sim_finished(s), 0);
    CHECK(orr_sim_events(s) < orr_sim_events(whole)); /* none, if it is told before the first */
    CHECK_OK(orr_sim_write_text(s, "so_far.txt", &err), &err);
    CHECK_OK(orr_sim_run(s, &err), &err);
    CHECK_EQ_U(orr_sim_finished(s), 32);
    CHECK_EQ_U(orr_sim_rank(s, 31)->finished_at, orr_sim_rank(whole, 31)->finished_at);
    orr_sim_destroy(s);
    orr_sim_destroy(whole);
    orr_set_close(set);
}

int main(void)
{
    const CMUnitTest tests[] = {
        RUN(test_critical_path__goes_to_the_rank_that_came_last),
        RUN(test_critical_path__goes_with_a_message_to_its_sender),
        RUN(test_critical_path__a_message_that_is_there_holds_nobody),
        RUN(test_critical_path__a_send_waits_for_its_receiver_in_a_rendezvous),
        RUN(test_critical_path__names_the_slot),
        RUN(test_critical_path__goes_through_a_memory_server),
        RUN(test_critical_path__is_refused_when_it_was_not_recorded),
        RUN(test_critical_path__timeline_has_nodes_messages_and_counters),
        RUN(test_critical_path__timeline_has_phases_when_asked),
        RUN(test_critical_path__figures_of_a_run),
        RUN(test_critical_path__a_run_stops_when_told_and_goes_on),
    };
    return RUN_ALL(tests);
}
