/* SPDX-License-Identifier: Apache-2.0 */
/* test_collective_table.c - an algorithm of the caller's own, given through the public table: it
 * runs, and its name is in the timeline, the explanation of a stall, error messages and
 * help.  Nothing else knows it.
 *
 * "flat": every member sends all it has to every other one; each adds up what it gets.  "flat1" is
 * broken: it forgets to send. */
#include "sim_make.h"

#include <orrery/lab/stall.h>

#include <orrery/collective.h>
#include <orrery/timeline.h>

typedef struct flat {
    orr_bytes size;
    uint32_t delays; /* to come: one for its own data and one for each message */
    bool is_broken;
} flat;

static bool flat_setup(orr_coll *c, const orr_coll_phase *p)
{
    flat *f = orr_coll_state(c);
    CHECK_EQ_U(f->delays, 0);
    f->size = p->data;
    f->delays = c->count;
    f->is_broken = p->number == 1;
    if (p->number > 1)
        orr_coll_fail(c, "flat%u is not known", p->number);
    return p->number <= 1;
}

static void flat_start(orr_coll *c)
{
    const flat *f = orr_coll_state(c);
    orr_coll_charge(c, f->size, ORR_COLL_FROM_NPU);
    for (uint32_t i = 0; i < c->count; i++)
        if (i != c->index)
            orr_coll_receive(c, i, f->size);
}

static void flat_received(orr_coll *c, orr_bytes size)
{
    orr_coll_charge(c, size, ORR_COLL_REDUCED);
}

static void flat_timer(orr_coll *c)
{
    flat *f = orr_coll_state(c);
    for (uint32_t i = 0; f->delays == c->count && !f->is_broken && i < c->count; i++)
        if (i != c->index)
            orr_coll_send(c, i, f->size);
    if (--f->delays == 0)
        orr_coll_done(c);
}

static const orr_coll_ops flat_ops = {
    .name = "flat",
    .label = "flat exchange",
    .help = "everything to everyone",
    .kinds = ORR_COLL_BIT(ORR_COLL_ALL_REDUCE),
    .takes_number = true,
    .state_size = sizeof(flat),
    .setup = flat_setup,
    .start = flat_start,
    .received = flat_received,
    .timer = flat_timer,
};

/* "none": there is nothing to do, and start says so. */
static uint32_t none_starts;

static void none_start(orr_coll *c)
{
    none_starts++;
    orr_coll_done(c);
}

static void none_more(orr_coll *c)
{
    orr_coll_fail(c, "nothing was asked for");
}

static void none_received(orr_coll *c, orr_bytes size)
{
    (void)size;
    none_more(c);
}

static const orr_coll_ops none_ops = {
    .name = "none",
    .label = "none",
    .help = "nothing at all",
    .kinds = ORR_COLL_BIT(ORR_COLL_ALL_REDUCE) | ORR_COLL_BIT(ORR_COLL_REDUCE_SCATTER) |
             ORR_COLL_BIT(ORR_COLL_ALL_GATHER),
    .start = none_start,
    .received = none_received,
    .timer = none_more,
};
static const orr_coll_ops *const mine[] = {&flat_ops, NULL};
static const orr_coll_ops *const with_none[] = {&flat_ops, &none_ops, NULL};

enum { SIZE = 8192 };

static orr_code make_flat(const char *system, int64_t kind, const orr_set **set, orr_sim **out)
{
    const maker m = {.ranks = 4,
                     .system = system,
                     .nodes = {{ORR_NODE_COMM_COLL, .kind = kind, .size = SIZE, .root = -1}}};
    const orr_sim_options opt = {.set = *set = make_set(&m),
                                 .system = "system.json",
                                 .network = "network.yml",
                                 .fidelity = "unaware",
                                 .record = ORR_SIM_RECORD_PHASES,
                                 .algorithms = mine};
    make_files(&m);
    return orr_sim_create(&opt, out, &err);
}

static void drop(orr_sim *s, const orr_set *set)
{
    orr_sim_destroy(s);
    orr_set_close((orr_set *)(uintptr_t)set);
}

TEST(test_collective_table__an_algorithm_of_ones_own_runs_and_is_named_in_the_timeline)
{
    const orr_set *set;
    orr_sim *s;
    orr_timeline *t;
    bool is_named = false;
    CHECK_OK(
        make_flat(", \"all-reduce-implementation\": [\"flat\"]", ORR_COLL_ALL_REDUCE, &set, &s),
        &err);
    CHECK_OK(orr_sim_run(s, &err), &err);
    CHECK_EQ_U(orr_sim_messages(s), 12);
    /* 10 ns at the endpoint; 1000 + 8192 / 53.687 ns; 10 ns; three times 8192 / 50 = 163 ns to add
     * up. */
    for (uint32_t r = 0; r < 4; r++)
        CHECK_EQ_U(orr_sim_rank(s, r)->finished_at, 10 + 1152 + 10 + 3 * 163);
    CHECK_OK(orr_sim_timeline(s, NULL, &t, &err), &err);
    const orr_timeline_parts *p = orr_timeline_view(t);
    for (uint32_t i = 0; i < p->span_count; i++) {
        const orr_str name = orr_timeline_text(t, p->spans[i].name);
        const char *want = "all-reduce, flat exchange, chunk 0";
        is_named |= name.len == strlen(want) && memcmp(name.ptr, want, name.len) == 0;
    }
    CHECK(is_named);
    orr_timeline_destroy(t);
    drop(s, set);
}

TEST(test_collective_table__a_stall_names_the_algorithm)
{
    const orr_set *set;
    orr_sim *s;
    bool is_named = false;
    CHECK_OK(
        make_flat(", \"all-reduce-implementation\": [\"flat1\"]", ORR_COLL_ALL_REDUCE, &set, &s),
        &err);
    CHECK(orr_sim_run(s, &err) == ORR_EINPUT);
    const orr_stall *stall = orr_sim_stall(s);
    CHECK(stall != NULL);
    for (size_t i = 0; stall && i < stall->line_count; i++)
        is_named |= strstr(stall->lines[i], "(all-reduce, flat exchange over 4 ranks") != NULL;
    CHECK(is_named);
    drop(s, set);
}

TEST(test_collective_table__errors_list_and_name_the_algorithm)
{
    const orr_set *set;
    orr_sim *s;
    CHECK(make_flat(", \"all-reduce-implementation\": [\"flatt\"]", ORR_COLL_ALL_REDUCE, &set,
                    &s) == ORR_EINPUT);
    CHECK_SAYS(&err, "\"flatt\" is not a collective algorithm (ring, direct[N], halvingDoubling, "
                     "doubleBinaryTree, flat[N], oneRing, oneDirect[N], oneHalvingDoubling)");
    drop(s, set);
    CHECK_OK(
        make_flat(", \"all-gather-implementation\": [\"flat\"]", ORR_COLL_ALL_GATHER, &set, &s),
        &err);
    CHECK(orr_sim_run(s, &err) == ORR_EINPUT);
    CHECK_SAYS(&err, "rank 0, node 1 \"node\": flat exchange cannot run an all-gather");
    drop(s, set);
    CHECK_OK(
        make_flat(", \"all-reduce-implementation\": [\"flat7\"]", ORR_COLL_ALL_REDUCE, &set, &s),
        &err);
    CHECK(orr_sim_run(s, &err) == ORR_EINPUT);
    CHECK_SAYS(&err, "rank 0, node 1 \"node\": flat7 is not known");
    drop(s, set);
}

/* Three collectives in four chunks each over two dimensions, in queues of one or two: every phase
 * that is through in its start is followed by the next one. */
TEST(test_collective_table__phases_may_end_in_their_start)
{
    static const char *const systems[] = {", \"all-reduce-implementation\": [\"none\", \"none\"]",
                                          ", \"all-reduce-implementation\": [\"ring\", \"none\"]",
                                          ", \"all-reduce-implementation\": [\"none\", \"flat\"]"};
    /* A reduce-scatter and an all-gather on the first dimension, an all-reduce on the second. */
    static const uint32_t phases[] = {3, 1, 2};
    enum { RANKS = 8, CHUNKS = 4, COLLECTIVES = 3 };
    for (size_t i = 0; i < 6; i++) {
        const make_node node = {ORR_NODE_COMM_COLL, .kind = ORR_COLL_ALL_REDUCE, .size = SIZE,
                                .root = -1};
        const maker m = {.ranks = RANKS,
                         .shapes = "[ Switch, Switch ]",
                         .npus = "[ 4, 2 ]",
                         .bandwidths = "[ 50, 50 ]",
                         .splits = CHUNKS,
                         .queues = 1 + (uint32_t)i % 2,
                         .system = systems[i / 2],
                         .nodes = {node, node, node}};
        orr_set *set = make_set(&m);
        const orr_sim_options opt = {.set = set,
                                     .system = "system.json",
                                     .network = "network.yml",
                                     .fidelity = "unaware",
                                     .queues_per_dim = m.queues,
                                     .algorithms = with_none};
        orr_sim *s;
        make_files(&m);
        none_starts = 0;
        CHECK_OK(orr_sim_create(&opt, &s, &err), &err);
        CHECK_OK(orr_sim_run(s, &err), &err);
        CHECK_EQ_U(none_starts, RANKS * CHUNKS * COLLECTIVES * phases[i / 2]);
        if (i < 2)
            CHECK_EQ_U(orr_sim_messages(s), 0);
        orr_sim_destroy(s);
        orr_set_close(set);
    }
}

TEST(test_collective_table__help_lists_ours_and_the_callers)
{
    char text[2000], little[20];
    const size_t ours = orr_coll_describe(NULL, text, sizeof text);
    for (size_t i = 0; orr_coll_at(i); i++)
        CHECK(strstr(text, orr_coll_at(i)->help) != NULL);
    CHECK(!strstr(text, "flat"));
    const size_t all = orr_coll_describe(mine, text, sizeof text);
    CHECK(strstr(text, "flat[N]            everything to everyone\n") != NULL);
    CHECK(all > ours && strlen(text) == all);
    CHECK_EQ_U(orr_coll_describe(mine, little, sizeof little), all);
    CHECK_EQ_U(strlen(little), sizeof little - 1);
}

int main(void)
{
    const CMUnitTest tests[] = {
        RUN(test_collective_table__an_algorithm_of_ones_own_runs_and_is_named_in_the_timeline),
        RUN(test_collective_table__a_stall_names_the_algorithm),
        RUN(test_collective_table__errors_list_and_name_the_algorithm),
        RUN(test_collective_table__phases_may_end_in_their_start),
        RUN(test_collective_table__help_lists_ours_and_the_callers),
    };
    return RUN_ALL(tests);
}
