/* SPDX-License-Identifier: Apache-2.0 */
/* test_schedule.c - the order in which chunks go through the dimensions, and that in which a queue
 * takes them, worked out by hand; and all schedulers with all collectives: they finish, and move
 * what they must. */
#include "sim_make.h"

#include "run/run_state.h"

/* ---- plans ---- */

/* Two dimensions of four ranks, 2 and 1 bytes a ns. */
typedef struct bench {
    orr_sim sim;
    sys_dim dims[2];
    sys_route route;
} bench;

static void set_up(bench *b, cfg_inter how, orr_collective kind, uint64_t chunk)
{
    *b = (bench){.dims = {{.position = 0, .offset = 1, .count = 4},
                          {.position = 1, .offset = 4, .count = 4}}};
    b->sim.npu_count = 16;
    b->sim.dims = 2;
    b->sim.lanes = 1;
    b->sim.opt.queues_per_dim = 1;
    b->sim.net_config.bandwidth[0] = 2;
    b->sim.net_config.bandwidth[1] = 1;
    b->sim.system.inter = how;
    b->sim.system.is_bw_aware = true;
    b->sim.clock = clk_create();
    b->sim.schedule = sched_create(&b->sim);
    CHECK(b->sim.clock && b->sim.schedule);
    b->route =
        (sys_route){.kind = kind, .dims = {&b->dims[0], &b->dims[1]}, .count = 2, .data = chunk};
}

static void tear_down(bench *b)
{
    sched_destroy(b->sim.schedule);
    clk_destroy(b->sim.clock);
}

/* first: of each chunk, the dimension it begins with. */
static void check_plan(bench *b, uint64_t id, uint64_t size, const char *first)
{
    uint32_t index;
    CHECK(sched_join(&b->sim, &b->route, id, size, &index));
    const sched_plan *c = sched_plan_of(&b->sim, index);
    CHECK_EQ_U(c->count, strlen(first));
    for (uint32_t i = 0; i < c->count; i++) {
        CHECK_EQ(c->orders[i].order[0], first[i] - '0');
        CHECK_EQ(c->orders[i].order[1], 1 - (first[i] - '0'));
    }
    sched_leave(&b->sim, index);
}

/* Chunks of 64 bytes, an all-reduce.  Loads (ns) after each: the first goes 0, 1 because nothing is
 * loaded: 48 / 2 = 24 and 12 / 1 = 12.  Then dimension 1 has less: 1, 0 adds 48 and 6: 30 and
 * 60.  Then 0, 1 twice: 54 and 72, 78 and 84.  Ascending alone would end at 96 and 48. */
TEST(test_schedule__offline_greedy_balances_the_loads)
{
    bench b;
    set_up(&b, CFG_OFFLINE_GREEDY, ORR_COLL_ALL_REDUCE, 64);
    check_plan(&b, 0, 256, "0100");
    tear_down(&b);
}

/* An all-gather of 4 bytes a rank is largest at its end.  First 1, 0: dimension 1 gets 12,
 * dimension 0 gets 16 x 3 / 2 = 24.  Dimension 1 has less, so it is last: 0, 1 adds 4 x 3 / 2 = 6
 * and 48: 30 and 60.  Then 1, 0 twice. */
TEST(test_schedule__offline_greedy_gathers_the_other_way_round)
{
    bench b;
    set_up(&b, CFG_OFFLINE_GREEDY, ORR_COLL_ALL_GATHER, 4);
    check_plan(&b, 0, 16, "1011");
    tear_down(&b);
}

/* All ranks get the same plan, however the loads have changed since. */
TEST(test_schedule__decides_once_for_all_ranks)
{
    bench b;
    set_up(&b, CFG_OFFLINE_GREEDY, ORR_COLL_ALL_REDUCE, 64);
    for (int i = 0; i < 15; i++)
        check_plan(&b, 0, 256, "0100");
    /* Another collective at the same tick goes on from loads of 78 and 84. */
    check_plan(&b, 4, 64, "0");
    check_plan(&b, 0, 256, "0100");
    /* All 16 have had it: the same name now means a new collective.  102 and 96: 1, 0. */
    check_plan(&b, 0, 64, "1");
    tear_down(&b);
}

/* Chunks of at least 64 bytes, 256 in all.  The first is the usual one: 24 and 12.  The gap of 12
 * ns is 16 bytes on dimension 1, less than a chunk, so the second is usual too: 48 and 24; the gap
 * is 24: 32 bytes; the third: 72 and 36: 48 bytes; the fourth: 96 and 48. */
TEST(test_schedule__flex_stays_as_usual_while_gaps_are_small)
{
    bench b;
    set_up(&b, CFG_OFFLINE_GREEDY_FLEX, ORR_COLL_ALL_REDUCE, 64);
    check_plan(&b, 0, 256, "0000");
    tear_down(&b);
}

/* Goes on from there: the gap of 48 ns is 64 bytes on dimension 1, enough for a chunk. */
TEST(test_schedule__flex_fills_the_gap_with_one_chunk)
{
    bench b;
    uint32_t index;
    set_up(&b, CFG_OFFLINE_GREEDY_FLEX, ORR_COLL_ALL_REDUCE, 64);
    check_plan(&b, 0, 256, "0000");
    CHECK(sched_join(&b.sim, &b.route, 4, 64, &index));
    const sched_plan *c = sched_plan_of(&b.sim, index);
    CHECK_EQ_U(c->count, 1);
    CHECK_EQ(c->orders[0].order[0], 1);
    CHECK_EQ_U(c->orders[0].size, 64);
    tear_down(&b);
    /* With chunks of 16 or more: 6 and 3, 12 and 6, 18 and 9, 24 and 12: now the gap of 12 is 16
     * bytes. After it 24 + 1.5 and 12 + 12: small again. */
    set_up(&b, CFG_OFFLINE_GREEDY_FLEX, ORR_COLL_ALL_REDUCE, 16);
    check_plan(&b, 0, 96, "000010");
    tear_down(&b);
}

TEST(test_schedule__round_robin_rotates)
{
    bench b;
    set_up(&b, CFG_ROUND_ROBIN, ORR_COLL_ALL_REDUCE, 64);
    check_plan(&b, 0, 256, "0101");
    check_plan(&b, 0, 256, "0101");
    b.route.kind = ORR_COLL_ALL_GATHER;
    check_plan(&b, 4, 192, "101");
    tear_down(&b);
}

/* Dimension 0 looks twice as fast, but turned out to be slow: 48 bytes took 48 ns there and 12 ns
 * on dimension
 * 1.  At 1 and 4 bytes a ns the first chunk loads 48 and 3, the second, beginning with 1, 60 and
 * 15, ... */
TEST(test_schedule__online_greedy_learns_what_phases_took)
{
    bench b;
    run_npu n = {.sim = &b.sim};
    sys_phase phases[2] = {{.kind = ORR_COLL_REDUCE_SCATTER, .data = 64},
                           {.kind = ORR_COLL_REDUCE_SCATTER, .data = 64}};
    sys_stream st = {.npu = &n, .phases = phases, .phase_count = 2};
    set_up(&b, CFG_ONLINE_GREEDY, ORR_COLL_ALL_REDUCE, 64);
    phases[0].dim = &b.dims[0];
    phases[1].dim = &b.dims[1];
    /* The clock is at 0 and phases began before it: only the difference counts. */
    st.phase_since = (uint64_t)0 - 48;
    sched_note(&st);
    st.phase = 1;
    st.phase_since = (uint64_t)0 - 12;
    sched_note(&st);
    check_plan(&b, 0, 320, "01111"); /* 48 3, 60 15, 72 27, 84 39, 96 51 */
    tear_down(&b);
}

TEST(test_schedule__leaves_alone_what_it_cannot_improve)
{
    bench b;
    set_up(&b, CFG_OFFLINE_GREEDY, ORR_COLL_ALL_TO_ALL, 64);
    check_plan(&b, 0, 256, "");
    b.route.kind = ORR_COLL_ALL_REDUCE;
    b.sim.system.is_bw_aware = false;
    check_plan(&b, 4, 256, "");
    b.sim.system.inter = CFG_ASCENDING;
    b.sim.system.is_bw_aware = true;
    check_plan(&b, 8, 256, "");
    tear_down(&b);
}

/* ---- agreeing ---- */

/* Two ranks with three chunks each, in a queue: the second must start them as the first did. */
TEST(test_schedule__ranks_start_chunks_in_one_order)
{
    bench b;
    uint32_t index, started[2][2] = {{0}};
    run_npu n[2] = {{.sim = &b.sim}, {.sim = &b.sim}};
    sys_data_set sets[2];
    sys_phase phases[2] = {{.queue = 0}, {.queue = 1}};
    sys_stream st[2][3];
    set_up(&b, CFG_ASCENDING, ORR_COLL_ALL_REDUCE, 64);
    for (unsigned r = 0; r < 2; r++) {
        CHECK(sched_join(&b.sim, &b.route, 5, 192, &index));
        sets[r] = (sys_data_set){.npu = &n[r], .plan = index, .first_id = 5, .started = started[r]};
        for (unsigned i = 0; i < 3; i++)
            st[r][i] = (sys_stream){
                .npu = &n[r], .set = &sets[r], .id = 5 + i, .phases = phases, .phase_count = 2};
    }
    /* Rank 0 has 2, 0 waiting, then 1 comes. */
    st[0][2].next = &st[0][0];
    CHECK(sched_next(&st[0][2]) == &st[0][2]);
    CHECK(sched_next(&st[0][0]) == &st[0][0]);
    CHECK(sched_next(&st[0][1]) == &st[0][1]);
    /* Rank 1 has only 0 and 1: it waits for 2; then they come as on rank 0. */
    st[1][0].next = &st[1][1];
    CHECK(sched_next(&st[1][0]) == NULL);
    st[1][1].next = &st[1][2];
    CHECK(sched_next(&st[1][0]) == &st[1][2]);
    st[1][1].next = NULL;
    CHECK(sched_next(&st[1][0]) == &st[1][0]);
    CHECK(sched_next(&st[1][1]) == &st[1][1]);
    tear_down(&b);
}

/* ---- queues ---- */

typedef struct line {
    orr_sim sim;
    run_npu n;
    sys_dim dim;
    sys_queue q;
    sys_stream st[8];
    sys_phase phases[8][4];
} line;

static void start_line(line *l, cfg_intra how)
{
    *l = (line){.dim = {.count = 4}};
    l->n.sim = &l->sim;
    l->sim.system.intra = how;
}

/* i: its number; phases: how many are left, this one included. */
static void join(line *l, unsigned i, orr_collective kind, uint64_t data, uint32_t phases)
{
    sys_stream *st = &l->st[i];
    *st = (sys_stream){.npu = &l->n, .phases = l->phases[i], .phase_count = phases};
    st->phases[0] = (sys_phase){.dim = &l->dim, .kind = kind, .data = data};
    sys_queue_insert(&l->q, st);
}

static void check_line(const line *l, const char *want)
{
    size_t i = 0;
    const sys_stream *before = NULL;
    for (const sys_stream *st = l->q.first; st; st = st->next, i++) {
        CHECK_EQ(st - l->st, want[i] - '0');
        CHECK(st->previous == before);
        before = st;
    }
    CHECK_EQ_U(i, strlen(want));
    CHECK(l->q.last == before);
}

TEST(test_schedule__queues_take_the_smallest_first)
{
    line l;
    start_line(&l, CFG_SMALLEST_FIRST);
    join(&l, 0, ORR_COLL_REDUCE_SCATTER, 100, 1);
    l.st[0].is_started = true;
    join(&l, 1, ORR_COLL_REDUCE_SCATTER, 80, 1);
    join(&l, 2, ORR_COLL_REDUCE_SCATTER, 40, 1);
    join(&l, 3, ORR_COLL_ALL_GATHER, 10,
         1); /* 40 when it is done: as large as 2, which came before */
    join(&l, 4, ORR_COLL_ALL_GATHER, 9, 1);
    join(&l, 5, ORR_COLL_REDUCE_SCATTER, 90, 1);
    check_line(&l, "042315");
}

TEST(test_schedule__queues_take_those_that_are_almost_done_first)
{
    line l;
    start_line(&l, CFG_LESS_REMAINING_FIRST);
    join(&l, 0, ORR_COLL_REDUCE_SCATTER, 1, 4);
    join(&l, 1, ORR_COLL_ALL_GATHER, 1, 2);
    join(&l, 2, ORR_COLL_REDUCE_SCATTER, 1, 3);
    join(&l, 3, ORR_COLL_ALL_GATHER, 1, 2);
    join(&l, 4, ORR_COLL_ALL_GATHER, 1, 1);
    check_line(&l, "41320");
}

TEST(test_schedule__queues_let_both_halves_take_turns)
{
    line l;
    start_line(&l, CFG_ALTERNATING);
    join(&l, 0, ORR_COLL_REDUCE_SCATTER, 1, 2);
    l.st[0].is_started = true;
    join(&l, 1, ORR_COLL_REDUCE_SCATTER, 1, 2);
    join(&l, 2, ORR_COLL_REDUCE_SCATTER, 1, 2);
    join(&l, 3, ORR_COLL_REDUCE_SCATTER, 1, 2);
    join(&l, 4, ORR_COLL_ALL_GATHER, 1, 1); /* between the one that runs and the next */
    join(&l, 5, ORR_COLL_ALL_GATHER, 1, 1);
    join(&l, 6, ORR_COLL_REDUCE_SCATTER, 1, 2);
    check_line(&l, "0415236");
}

TEST(test_schedule__queues_go_by_priority_otherwise)
{
    line l;
    start_line(&l, CFG_BY_PRIORITY);
    join(&l, 0, ORR_COLL_REDUCE_SCATTER, 1, 2);
    l.st[1].priority = 0;
    join(&l, 1, ORR_COLL_ALL_GATHER, 1, 1);
    join(&l, 2, ORR_COLL_REDUCE_SCATTER, 9, 1);
    check_line(&l, "012");
}

/* ---- whole simulations ---- */

static maker job(const char *inter, const char *intra, int64_t kind, char *system, size_t room)
{
    snprintf(system, room,
             ", \"active-chunks-per-dimension\": 2, "
             "\"all-reduce-implementation\": [\"ring\", \"direct\"], "
             "\"all-gather-implementation\": [\"ring\", \"ring\"], "
             "\"reduce-scatter-implementation\": [\"halvingDoubling\", \"ring\"], "
             "\"all-to-all-implementation\": [\"ring\", \"direct\"], "
             "\"inter-dimension-scheduling\": \"%s\", \"intra-dimension-scheduling\": \"%s\"",
             inter, intra);
    return (maker){.ranks = 16,
                   .shapes = "[ Ring, Switch ]",
                   .npus = "[ 4, 4 ]",
                   .bandwidths = "[ 100, 50 ]",
                   .splits = 16,
                   .system = system,
                   .nodes = {{ORR_NODE_COMM_COLL, .kind = kind, .size = 64 << 20, .root = -1},
                             {ORR_NODE_COMM_COLL, .kind = kind, .size = 1 << 20, .root = -1}}};
}

/* 16 chunks twice.  One rank sends per chunk, ring and direct alike, n - 1 messages a half: 3 + 3
 * there and 3 + 3 back; the all-to-all on a ring of four 4 x 3 / 2 and 3; halving-doubling 2 and
 * 3. */
TEST(test_schedule__all_schedulers_finish_everything)
{
    static const char *const inters[] = {"ascending", "roundRobin", "offlineGreedy",
                                         "onlineGreedy"};
    static const char *const intras[] = {"FIFO", "RG", "smallestFirst", "lessRemainingPhaseFirst"};
    static const struct {
        int64_t kind;
        uint64_t messages;
    } kinds[] = {{ORR_COLL_ALL_REDUCE, 12},
                 {ORR_COLL_ALL_GATHER, 6},
                 {ORR_COLL_REDUCE_SCATTER, 5},
                 {ORR_COLL_ALL_TO_ALL, 9}};
    char system[800];
    for (unsigned i = 0; i < 16; i++)
        for (unsigned k = 0; k < 4; k++) {
            const maker m = job(inters[i / 4], intras[i % 4], kinds[k].kind, system, sizeof system);
            CHECK_EQ_U(make_run(&m).messages, 2 * 16 * 16 * kinds[k].messages);
        }
    for (unsigned i = 0; i < 4; i++) { /* of which the number of chunks is not known */
        const maker m =
            job("offlineGreedyFlex", intras[i], ORR_COLL_ALL_REDUCE, system, sizeof system);
        CHECK_EQ_U(make_run(&m).messages % (16 * 12), 0);
    }
}

/* After a broadcast along a chain each rank is later than the one before, so each sees its chunks
 * come back at other times.  Ranks that start them in their own order stall, as in
 * the reference. */
TEST(test_schedule__ranks_that_agree_never_stand_still)
{
    static const char *const inters[] = {"ascending", "roundRobin", "offlineGreedy",
                                         "offlineGreedyFlex", "onlineGreedy"};
    static const char *const intras[] = {"FIFO", "RG", "smallestFirst", "lessRemainingPhaseFirst"};
    char system[900];
    unsigned stalls = 0;
    for (unsigned i = 0; i < 20; i++) {
        maker m = job(inters[i / 4], intras[i % 4], ORR_COLL_ALL_REDUCE, system, sizeof system);
        m.nodes[2] = m.nodes[1];
        m.nodes[1] = (make_node){ORR_NODE_COMM_COLL, .kind = ORR_COLL_BROADCAST, .size = 1 << 20,
                                 .root = -1};
        m.nodes[2].size = 32 << 20;
        const size_t end = strlen(system);
        const char *more = ", \"broadcast-implementation\": [\"ring\"], \"chunk-order\"";
        snprintf(system + end, sizeof system - end, "%s: \"agreed\"", more);
        make_run(&m);
        snprintf(system + end, sizeof system - end, "%s: \"own\"", more);
        stalls += make_failure(&m) != ORR_OK;
    }
    CHECK(stalls > 0);
}

/* The outer dimension idles half of the time when every chunk begins inside. */
TEST(test_schedule__themis_is_faster_where_dimensions_are_unequal)
{
    char system[800];
    maker m = job("ascending", "FIFO", ORR_COLL_ALL_REDUCE, system, sizeof system);
    m.bandwidths = "[ 50, 50 ]";
    const uint64_t usual = make_run(&m).last;
    m = job("offlineGreedy", "FIFO", ORR_COLL_ALL_REDUCE, system, sizeof system);
    m.bandwidths = "[ 50, 50 ]";
    const uint64_t themis = make_run(&m).last;
    CHECK(themis * 10 < usual * 9);
}

TEST(test_schedule__the_defaults_change_nothing)
{
    char system[800];
    maker m = job("ascending", "FIFO", ORR_COLL_ALL_REDUCE, system, sizeof system);
    const made with = make_run(&m);
    *strstr(system, ", \"inter-") = '\0';
    const made without = make_run(&m);
    for (unsigned r = 0; r < 16; r++)
        CHECK_EQ_U(with.finished[r], without.finished[r]);
}

TEST(test_schedule__old_names_ignore_the_keys)
{
    char system[800];
    maker m = job("ascending", "FIFO", ORR_COLL_ALL_REDUCE, system, sizeof system);
    const uint64_t usual = make_run(&m).last;
    m = job("offlineGreedy", "no such thing", ORR_COLL_ALL_REDUCE, system, sizeof system);
    m.is_compat = true;
    CHECK_EQ_U(make_run(&m).last, usual);
    m.is_compat = false;
    CHECK_CODE(make_failure(&m), ORR_EINPUT, &err);
    CHECK_SAYS(&err, "intra-dimension-scheduling: \"no such thing\" is not one of FIFO, RG, ");
}

int main(void)
{
    const CMUnitTest tests[] = {
        RUN(test_schedule__offline_greedy_balances_the_loads),
        RUN(test_schedule__offline_greedy_gathers_the_other_way_round),
        RUN(test_schedule__decides_once_for_all_ranks),
        RUN(test_schedule__flex_stays_as_usual_while_gaps_are_small),
        RUN(test_schedule__flex_fills_the_gap_with_one_chunk),
        RUN(test_schedule__round_robin_rotates),
        RUN(test_schedule__online_greedy_learns_what_phases_took),
        RUN(test_schedule__leaves_alone_what_it_cannot_improve),
        RUN(test_schedule__ranks_start_chunks_in_one_order),
        RUN(test_schedule__queues_take_the_smallest_first),
        RUN(test_schedule__queues_take_those_that_are_almost_done_first),
        RUN(test_schedule__queues_let_both_halves_take_turns),
        RUN(test_schedule__queues_go_by_priority_otherwise),
        RUN(test_schedule__all_schedulers_finish_everything),
        RUN(test_schedule__ranks_that_agree_never_stand_still),
        RUN(test_schedule__themis_is_faster_where_dimensions_are_unequal),
        RUN(test_schedule__the_defaults_change_nothing),
        RUN(test_schedule__old_names_ignore_the_keys),
    };
    return RUN_ALL(tests);
}
