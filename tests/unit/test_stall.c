/* SPDX-License-Identifier: Apache-2.0 */
/* test_stall.c - a simulation that stands still names the right cause, the right ranks and the
 * right nodes.
 *
 * Jobs are tables of nodes.  Each known cause has a job that has nothing else wrong; random jobs
 * are checked against what counting their sends and receives says. */
#include "check.h"
#include "rooms.h"

#include "base/rng.h"
#include "files.h"

#include "run/sim.h"

#include <orrery/lab/stall.h>

static orr_error err;

/* ---- jobs ---- */

typedef struct op {
    uint32_t rank;
    uint64_t id;
    uint32_t type;
    int64_t peer, size, tag; /* of a message; size also of a collective, tag its kind */
    const char *group;
    uint64_t after[3]; /* ids, 0 ends */
} op;

enum { RECV = ORR_NODE_COMM_RECV, SEND = ORR_NODE_COMM_SEND, COLL = ORR_NODE_COMM_COLL };
enum { COMP = ORR_NODE_COMP, IDLE = ORR_NODE_INVALID, MOST_RANKS = 64 };

static orr_attr number(const char *name, int64_t value)
{
    return (orr_attr){.name = orr_str_of(name), .kind = ORR_VALUE_INT64, .value = {.i = value}};
}

static void append(orr_trace *t, const op *o)
{
    orr_attr attrs[4];
    size_t n = 0, deps = 0;
    char name[40];
    if (o->type == SEND || o->type == RECV) {
        attrs[n++] = number(o->type == SEND ? "comm_dst" : "comm_src", o->peer);
        attrs[n++] = number("comm_tag", o->tag);
        attrs[n++] = number("comm_size", o->size);
    } else if (o->type == COLL) {
        attrs[n++] = number("comm_type", o->tag);
        attrs[n++] = number("comm_size", o->size);
        if (o->group)
            attrs[n++] = (orr_attr){.name = orr_str_of("pg_name"),
                                    .kind = ORR_VALUE_STRING,
                                    .value = {.s = orr_str_of(o->group)}};
    }
    while (deps < 3 && o->after[deps])
        deps++;
    snprintf(name, sizeof name, "n%" PRIu64, o->id);
    const orr_draft d = {.id = o->id,
                         .name = orr_str_of(name),
                         .type = o->type,
                         .data_deps = o->after,
                         .data_count = deps,
                         .duration_us = o->type == COMP ? 1 : 0,
                         .attrs = attrs,
                         .attr_count = n};
    CHECK_OK(orr_trace_append(t, &d, &err), &err);
}

/* Ranks without nodes compute. */
static orr_set *make_set(const op *ops, size_t count, uint32_t ranks)
{
    orr_set *s;
    CHECK_OK(orr_set_create(&s, &err), &err);
    for (uint32_t r = 0; r < ranks; r++) {
        orr_trace *t;
        bool is_empty = true;
        CHECK_OK(orr_trace_create(&(orr_meta){.version = orr_str_of("1")}, &t, &err), &err);
        for (size_t i = 0; i < count; i++) {
            if (ops[i].rank != r)
                continue;
            append(t, &ops[i]);
            is_empty = false;
        }
        if (is_empty)
            append(t, &(op){.id = 1, .type = COMP});
        CHECK_OK(orr_trace_seal(t, &err), &err);
        CHECK_OK(orr_set_add(s, t, &err), &err);
    }
    return s;
}

typedef struct job {
    orr_set *set;
    orr_sim *sim;
    const orr_stall *stall;
} job;

typedef struct setting {
    const char *system, *network, *groups;
    bool rendezvous, is_compat;
    const orr_net_ops *net;
} setting;

static const char plain_system[] =
    "{\"scheduling-policy\": \"LIFO\", \"endpoint-delay\": 10, \"preferred-dataset-splits\": 2, "
    "\"local-mem-bw\": 50, \"peak-perf\": 1, \"collective-optimization\": \"baseline\", "
    "\"all-reduce-implementation\": [\"ring\"], \"all-gather-implementation\": [\"ring\"], "
    "\"reduce-scatter-implementation\": [\"ring\"], \"all-to-all-implementation\": [\"ring\"]}";

static void put_text(const char *path, const char *text)
{
    write_file(path, text, strlen(text));
}

static void make_job(job *j, const op *ops, size_t count, uint32_t ranks, const setting *with)
{
    char network[200];
    snprintf(network, sizeof network,
             "topology: [ Switch ]\nnpus_count: [ %u ]\nbandwidth: [ 50.0 ]\nlatency: [ 500.0 ]\n",
             ranks);
    put_text("sys.json", with->system ? with->system : plain_system);
    put_text("net.yml", with->network ? with->network : network);
    if (with->groups)
        put_text("groups.json", with->groups);
    j->set = make_set(ops, count, ranks);
    const orr_sim_options opt = {
        .set = j->set,
        .system = "sys.json",
        .network = "net.yml",
        .groups = with->groups ? "groups.json" : NULL,
        .rendezvous = with->rendezvous,
        .rules = with->is_compat ? program_of(ORR_RULES_RUN, "astra-sim")->run : NULL,
        .custom_network = with->net,
        .threads = 1};
    CHECK_OK(orr_sim_create(&opt, &j->sim, &err), &err);
}

/* Run the job; the code is what orr_sim_run gave. */
static orr_code run(job *j, const op *ops, size_t count, uint32_t ranks, const setting *with)
{
    make_job(j, ops, count, ranks, with);
    const orr_code code = orr_sim_run(j->sim, &err);
    j->stall = orr_sim_stall(j->sim);
    return code;
}

static void end(job *j)
{
    orr_sim_destroy(j->sim);
    orr_set_close(j->set);
}

static bool says(const orr_stall *s, const char *part)
{
    for (size_t i = 0; i < s->line_count; i++)
        if (strstr(s->lines[i], part))
            return true;
    return false;
}

/* The job stands still for this cause, and says these words. */
static void check_stall(const op *ops,
                        size_t count,
                        uint32_t ranks,
                        const setting *with,
                        orr_stall_cause cause,
                        const char *const *words)
{
    job j;
    CHECK_CODE(run(&j, ops, count, ranks, with), ORR_EINPUT, &err);
    CHECK(j.stall != NULL);
    CHECK_TEXT(orr_stall_cause_name(j.stall->cause), orr_stall_cause_name(cause));
    CHECK_SAYS(&err, "deadlock: ");
    CHECK_SAYS(&err, j.stall->summary);
    CHECK(j.stall->line_count > 0 && j.stall->line_count <= 20);
    for (size_t i = 0; words[i]; i++) {
        if (says(j.stall, words[i]))
            continue;
        for (size_t k = 0; k < j.stall->line_count; k++)
            print_error("  %s\n", j.stall->lines[k]);
        check_fail(__FILE__, __LINE__, "nothing says \"%s\"", words[i]);
    }
    end(&j);
}

#define STALLS(ops, ranks, with, cause, ...)                                  \
    check_stall((ops), sizeof(ops) / sizeof *(ops), (ranks), (with), (cause), \
                (const char *const[]){__VA_ARGS__, NULL})

static const setting plain = {0}, rendezvous = {.rendezvous = true};

/* ---- messages ---- */

TEST(test_stall__names_a_send_that_never_comes)
{
    const op ops[] = {{1, 5, RECV, 0, 100, 3}};
    STALLS(ops, 4, &plain, ORR_STALL_NO_PARTNER,
           "rank 0 never sends the 100 bytes with tag 3 that rank 1 receives (rank 0 has finished)",
           "rank 1, node 5 \"n5\"", "waits for 100 bytes with tag 3 from rank 0");
    CHECK_SAYS(&err, "1 of 4 ranks have not finished: rank 0 never sends to rank 1");
}

TEST(test_stall__names_a_receive_that_never_comes)
{
    const op ops[] = {{0, 5, SEND, 1, 100, 3}};
    STALLS(ops, 2, &rendezvous, ORR_STALL_NO_PARTNER,
           "rank 1 never receives the 100 bytes with tag 3 that rank 0 sends",
           "waits to send 100 bytes with tag 3 to rank 1");
}

TEST(test_stall__tells_sizes_apart)
{
    const op ops[] = {{0, 1, SEND, 1, 4096, 7}, {1, 1, RECV, 0, 4095, 7}};
    const char words[] = "rank 0 sends 4096 bytes with tag 7 to rank 1, which receives 4095 bytes";
    STALLS(ops, 2, &plain, ORR_STALL_SIZE_MISMATCH, words);
    STALLS(ops, 2, &rendezvous, ORR_STALL_SIZE_MISMATCH, words);
}

TEST(test_stall__tells_tags_apart)
{
    const op ops[] = {{0, 1, SEND, 1, 4096, 7}, {1, 1, RECV, 0, 4096, 8}};
    const char words[] =
        "rank 0 sends 4096 bytes with tag 7 to rank 1, which receives them with tag 8";
    STALLS(ops, 2, &plain, ORR_STALL_TAG_MISMATCH, words);
    STALLS(ops, 2, &rendezvous, ORR_STALL_TAG_MISMATCH, words);
}

/* Rank 0 cannot send before it ends its collective, for which rank 1 is missing. */
TEST(test_stall__tells_sends_to_come_apart)
{
    op ops[] = {{0, 1, COLL, .size = 64},
                {0, 2, SEND, 1, 4096, 7},
                {1, 1, RECV, 0, 4095, 7},
                {1, 2, COLL, .size = 64, .after = {1}}};
    STALLS(ops, 2, &plain, ORR_STALL_SIZE_MISMATCH,
           "rank 0 is to send 4096 bytes with tag 7 to rank 1, which receives 4095 bytes",
           "(rank 0, node 2 \"n2\")");
    ops[2] = (op){1, 1, RECV, 0, 4096, 8};
    STALLS(ops, 2, &plain, ORR_STALL_TAG_MISMATCH,
           "with tag 7 to rank 1, which receives them with tag 8");
}

/* Tag 2 has arrived and its receive is still to come: not a mismatch.  What is missing is tag 1. */
TEST(test_stall__does_not_blame_a_message_that_is_merely_early)
{
    const op ops[] = {
        {0, 1, SEND, 1, 64, 2}, {1, 1, RECV, 0, 64, 1}, {1, 2, RECV, 0, 64, 2, .after = {1}}};
    STALLS(ops, 2, &plain, ORR_STALL_NO_PARTNER, "rank 0 never sends the 64 bytes with tag 1");
}

/* With a rendezvous a send ends when it is received, and here both ranks send first. */
TEST(test_stall__finds_the_cycle_of_two_sends)
{
    const op ops[] = {{0, 1, SEND, 1, 64, 1},
                      {0, 2, RECV, 1, 64, 2, .after = {1}},
                      {1, 1, SEND, 0, 64, 2},
                      {1, 2, RECV, 0, 64, 1, .after = {1}}};
    STALLS(ops, 3, &rendezvous, ORR_STALL_CYCLE, "ranks 0, 1 wait for each other",
           "rank 0, node 1 \"n1\"", "waits to send 64 bytes with tag 1 to rank 1",
           "rank 1 has not started node 2 \"n2\", which depends on node 1 \"n1\"");
    job j;
    CHECK_OK(run(&j, ops, 4, 3, &plain), &err); /* without, a send ends on arrival */
    CHECK(j.stall == NULL);
    end(&j);
}

/* A cycle of six (0 -> 1 -> ... -> 5 -> 0), and one of two (0, 1) by a second dependency. */
TEST(test_stall__finds_the_shortest_cycle)
{
    enum { N = 6 };
    op ops[2 * N + 2];
    size_t n = 0;
    for (uint32_t r = 0; r < N; r++) {
        ops[n++] = (op){r, 1, RECV, (r + 1) % N, 64, 1};
        ops[n++] = (op){r, 3, SEND, (r + N - 1) % N, 64, 1, .after = {1}};
    }
    ops[n++] = (op){1, 2, RECV, 0, 64, 9};
    ops[n++] = (op){0, 4, SEND, 1, 64, 9, .after = {1}};
    ops[3].after[1] = 2; /* rank 1 sends to rank 0 only after both receives */
    job j;
    CHECK_CODE(run(&j, ops, n, N, &plain), ORR_EINPUT, &err);
    CHECK_EQ(j.stall->cause, ORR_STALL_CYCLE);
    CHECK_EQ(j.stall->cycle_length, 2);
    CHECK_EQ(j.stall->cycle[0].first_rank, 0);
    CHECK_EQ(j.stall->cycle[1].first_rank, 1);
    CHECK_EQ_U(j.stall->cycle[1].node, 2);
    end(&j);
}

TEST(test_stall__follows_a_chain_to_its_cause)
{
    /* 0 waits for 1, which waits for 2, which waits for 3, which never sends. */
    const op ops[] = {{0, 1, RECV, 1, 8, 0},
                      {1, 1, RECV, 2, 8, 0},
                      {1, 2, SEND, 0, 8, 0, .after = {1}},
                      {2, 1, RECV, 3, 8, 0},
                      {2, 2, SEND, 1, 8, 0, .after = {1}}};
    STALLS(ops, 4, &plain, ORR_STALL_NO_PARTNER, "rank 3 never sends",
           "rank 1 has not started node 2 \"n2\", which depends on node 1 \"n1\"");
}

TEST(test_stall__finds_dependencies_in_a_cycle)
{
    /* Rank 0 finishes without ever starting node 2: 2 needs 3, 3 needs 4, 4 needs 3. */
    const op ops[] = {{0, 1, COMP},
                      {0, 2, SEND, 1, 8, 0, .after = {1, 3}},
                      {0, 3, COMP, .after = {4}},
                      {0, 4, COMP, .after = {3}},
                      {1, 1, RECV, 0, 8, 0}};
    STALLS(ops, 2, &plain, ORR_STALL_DEPENDENCY_CYCLE, "rank 0 never starts node 2 \"n2\"",
           "the cycle of nodes 3 <- 4 <- 3");
}

TEST(test_stall__knows_nodes_that_end_on_the_spot)
{
    const op ops[] = {{0, 1, COMP}, {0, 2, IDLE, .after = {1}}, {0, 3, COMP, .after = {2}}};
    STALLS(ops, 2, &plain, ORR_STALL_NOTHING_IN_FLIGHT, "node 3 \"n3\" is free",
           "node 2 (INVALID_NODE) before it ended on the spot");
}

/* The message that would free it is the one it has to send itself, by way of rank 1. */
TEST(test_stall__knows_a_cycle_through_free_nodes)
{
    const op ops[] = {{0, 1, IDLE},
                      {0, 2, SEND, 1, 8, 0, .after = {1}},
                      {0, 3, RECV, 1, 8, 0},
                      {1, 1, RECV, 0, 8, 0},
                      {1, 2, SEND, 0, 8, 0, .after = {1}}};
    STALLS(ops, 2, &plain, ORR_STALL_NOTHING_IN_FLIGHT, "node 2 \"n2\"",
           "starts only when another node of its rank completes");
}

static orr_code swallow(void *net, orr_sim *sim, const orr_message *m, orr_error *e)
{
    (void)net;
    (void)sim;
    (void)m;
    (void)e;
    return ORR_OK;
}

TEST(test_stall__accuses_the_network_of_lost_messages)
{
    static const orr_net_ops black_hole = {.name = "hole", .send = swallow};
    const setting lossy = {.net = &black_hole};
    const op ops[] = {{0, 1, SEND, 1, 4096, 7}, {1, 1, RECV, 0, 4096, 7}};
    STALLS(ops, 2, &lossy, ORR_STALL_LOST_MESSAGE,
           "never delivered 4096 bytes from rank 0 to rank 1");
    const op all[] = {{0, 1, COLL, .size = 64}, {1, 1, COLL, .size = 64}};
    STALLS(all, 2, &lossy, ORR_STALL_LOST_MESSAGE, "never delivered");
}

/* ---- collectives ---- */

static const char two_groups[] = "{\"1\": [0, 1, 2, 3], \"2\": [0, 1, 2, 3, 4, 5]}";
static const setting grouped = {.groups = two_groups};
static const setting pair_groups = {.groups = "{\"1\": [0, 1], \"2\": [0, 1]}"};
static const setting pair_group = {.groups = "{\"1\": [0, 1]}"};
static const setting lonely_group = {.groups = "{\"1\": [0]}", .is_compat = true};

TEST(test_stall__names_an_absent_member)
{
    const op ops[] = {{0, 1, COLL, .size = 4096, .group = "1"},
                      {1, 1, COLL, .size = 4096, .group = "1"},
                      {2, 1, COLL, .size = 4096, .group = "1"}};
    STALLS(ops, 8, &grouped, ORR_STALL_MEMBER_ABSENT,
           "rank 3 never joins ALL_REDUCE of 4096 bytes in group 1, collective 0", "ranks 0-2",
           "waits for 512 bytes from rank 3");
}

TEST(test_stall__names_a_member_in_another_group)
{
    op ops[6];
    for (uint32_t r = 0; r < 6; r++)
        ops[r] = (op){r, 1, COLL, .size = 4096, .group = r == 3 ? "1" : "2"};
    STALLS(ops, 8, &grouped, ORR_STALL_MEMBER_ABSENT,
           "rank 3 never joins ALL_REDUCE of 4096 bytes in group 2",
           "never joins ALL_REDUCE of 4096 bytes in group 1");
}

TEST(test_stall__says_what_keeps_a_member_away)
{
    const op ops[] = {{0, 1, COLL, .size = 4096},
                      {1, 1, RECV, 0, 8, 0},
                      {1, 2, COLL, .size = 4096, .after = {1}}};
    STALLS(ops, 2, &plain, ORR_STALL_NO_PARTNER, "rank 0 never sends the 8 bytes",
           "rank 1 has not started node 2 \"n2\", which depends on node 1 \"n1\"");
}

TEST(test_stall__compares_kinds_and_sizes)
{
    op ops[4];
    for (uint32_t r = 0; r < 4; r++)
        ops[r] = (op){r, 1, COLL, .size = 4096};
    ops[2].size = 8192;
    STALLS(ops, 4, &plain, ORR_STALL_COLLECTIVE_MISMATCH,
           "ALL_REDUCE of 4096 bytes as collective 0", "ALL_REDUCE of 8192 bytes");
    ops[2] = (op){2, 1, COLL, .size = 4096, .tag = ORR_COLL_ALL_GATHER};
    STALLS(ops, 4, &plain, ORR_STALL_COLLECTIVE_MISMATCH, "ALL_GATHER of 4096 bytes");
}

/* Each rank has one communication slot: 0 runs group 1 first, 1 runs group 2 first. */
TEST(test_stall__finds_groups_in_opposite_orders)
{
    const op ops[] = {{0, 1, COLL, .size = 64, .group = "1"},
                      {0, 2, COLL, .size = 64, .group = "2"},
                      {1, 1, COLL, .size = 64, .group = "2"},
                      {1, 2, COLL, .size = 64, .group = "1"}};
    STALLS(ops, 8, &pair_groups, ORR_STALL_CYCLE, "ranks 0, 1 wait for each other",
           "rank 1 has not started node 2 \"n2\", whose slot is taken by node 1 \"n1\"");
}

/* In ASTRA-sim the plain counter of chunks advances with those of groups (astra-sim.md 6.4): here
 * rank 2 has made none.  Ours counts them apart. */
TEST(test_stall__knows_chunks_that_are_numbered_differently)
{
    const op ops[] = {{0, 1, COLL, .size = 64, .group = "1"},
                      {1, 1, COLL, .size = 64, .group = "1"},
                      {0, 2, COLL, .size = 64},
                      {1, 2, COLL, .size = 64},
                      {2, 2, COLL, .size = 64}};
    const setting compat = {.groups = pair_group.groups, .is_compat = true};
    STALLS(ops, 3, &compat, ORR_STALL_STREAM_NUMBERS,
           "they ran different numbers of chunks in groups before");
    job j;
    CHECK_OK(run(&j, ops, 5, 3, &pair_group), &err);
    end(&j);
}

TEST(test_stall__knows_collectives_that_cannot_work)
{
    op ops[6];
    for (uint32_t r = 0; r < 6; r++)
        ops[r] = (op){r, 1, COLL, .size = 4096};
    const setting halving = {
        .system = "{\"scheduling-policy\": \"LIFO\", \"preferred-dataset-splits\": 2, "
                  "\"local-mem-bw\": 50, "
                  "\"all-reduce-implementation\": [\"halvingDoubling\"]}"};
    STALLS(ops, 6, &halving, ORR_STALL_NOT_POWER_OF_TWO, "halving-doubling over 6 ranks",
           "ranks 0-5");
    for (uint32_t r = 0; r < 6; r++)
        ops[r] = (op){r, 1, COLL, .size = 0, .tag = ORR_COLL_ALL_GATHER};
    STALLS(ops, 6, &plain, ORR_STALL_EMPTY_ALL_GATHER, "an all-gather of 0 bytes");
    const op alone[] = {{0, 1, COLL, .size = 64, .group = "1"}};
    STALLS(alone, 2, &lonely_group, ORR_STALL_NO_DIMENSION, "no dimension takes part");
}

/* ---- custom collectives ---- */

/* Programs of two members, cc.0.et and cc.1.et; a run of them by both ranks. */
static void check_custom(
    const op *ops, size_t count, unsigned splits, orr_stall_cause cause, const char *words)
{
    char system[200];
    const op both[] = {{0, 1, COLL, .size = 4096}, {1, 1, COLL, .size = 4096}};
    orr_set *programs = make_set(ops, count, 2);
    CHECK_OK(orr_set_write_files(programs, "cc", NULL, 1, &err), &err);
    orr_set_close(programs);
    snprintf(system, sizeof system,
             "{\"scheduling-policy\": \"LIFO\", \"preferred-dataset-splits\": %u, "
             "\"all-reduce-implementation-custom\": [\"cc\"]}",
             splits);
    const setting with = {.system = system};
    STALLS(both, 2, &with, cause, words);
}

TEST(test_stall__looks_into_custom_collectives)
{
    const op good[] = {{0, 1, SEND, 1, 64, 0}, {1, 1, RECV, 0, 64, 0}};
    check_custom(good, 2, 4, ORR_STALL_CUSTOM_SPLITS, "preferred-dataset-splits 1, not 4");
    const op sizes[] = {{0, 1, SEND, 1, 64, 0}, {1, 1, RECV, 0, 65, 0}};
    check_custom(sizes, 2, 1, ORR_STALL_SIZE_MISMATCH, "sends 64 bytes with tag 0 to rank 1");
    const op tags[] = {{0, 1, SEND, 1, 64, 0}, {1, 1, RECV, 0, 64, 1}};
    check_custom(tags, 2, 1, ORR_STALL_TAG_MISMATCH, "which receives them with tag 1");
    const op missing[] = {{0, 1, COMP}, {1, 1, RECV, 0, 64, 1}};
    check_custom(missing, 2, 1, ORR_STALL_NO_PARTNER, "rank 0 never sends the 64 bytes");
    const op node[] = {{0, 1, IDLE}, {1, 1, RECV, 0, 64, 0}};
    check_custom(node, 2, 1, ORR_STALL_CUSTOM_NODE, "neither compute, send nor receive");
    const op cycle[] = {{0, 1, RECV, 1, 8, 0},
                        {0, 2, SEND, 1, 8, 0, .after = {1}},
                        {1, 1, RECV, 0, 8, 0},
                        {1, 2, SEND, 0, 8, 0, .after = {1}}};
    check_custom(cycle, 4, 1, ORR_STALL_CYCLE, "ranks 0, 1 wait for each other");
}

/* ---- many ranks ---- */

TEST(test_stall__takes_equal_ranks_together)
{
    op ops[60];
    for (uint32_t r = 0; r < 60; r++)
        ops[r] = (op){r, 1, COLL, .size = 1 << 20};
    job j;
    CHECK_CODE(run(&j, ops, 60, 64, &plain), ORR_EINPUT, &err); /* 60 to 63 never join */
    CHECK_EQ(j.stall->cause, ORR_STALL_MEMBER_ABSENT);
    CHECK_EQ(j.stall->unfinished, 60);
    CHECK_EQ(j.stall->wait_count, 1);
    CHECK_TEXT(j.stall->waits[0].ranks, "0-59");
    CHECK_EQ(j.stall->cause_count, 1);
    CHECK_TEXT(j.stall->causes[0].ranks, "0"); /* rank 63 is its neighbour on the ring */
    CHECK_EQ(j.stall->waits_left_out, 0);
    end(&j);
}

TEST(test_stall__is_nothing_while_all_is_well)
{
    const op ops[] = {{0, 1, SEND, 1, 64, 2}, {1, 1, RECV, 0, 64, 2}};
    job j;
    CHECK_OK(run(&j, ops, 2, 2, &plain), &err);
    CHECK(j.stall == NULL);
    end(&j);
}

long orr__fail_alloc_after(long n); /* src/base/memory.c, compiled with ORR_FAULTS */

static void put_lines(orr_buf *b, const orr_stall *stall)
{
    for (size_t i = 0; i < stall->line_count; i++) {
        orr_buf_text(b, stall->lines[i]);
        orr_buf_byte(b, '\n');
    }
}

/* A sum of what can be wrong: messages, a group, a custom node, a free node. */
TEST(test_stall__survives_a_lack_of_memory)
{
    const op ops[] = {{0, 1, COLL, .size = 4096, .group = "2"},
                      {0, 2, RECV, 3, 64, 1},
                      {1, 1, COLL, .size = 4096, .group = "2"},
                      {2, 1, RECV, 3, 64, 2},
                      {2, 2, COLL, .size = 4096, .group = "2", .after = {1}},
                      {3, 1, RECV, 2, 64, 3},
                      {3, 2, SEND, 2, 64, 2, .after = {1}},
                      {4, 1, IDLE},
                      {4, 2, COMP, .after = {1}},
                      {2, 3, SEND, 3, 65, 3}};
    const setting with = {.groups = "{\"2\": [0, 1, 2]}"};
    job j;
    CHECK_CODE(run(&j, ops, sizeof ops / sizeof *ops, 5, &with), ORR_EINPUT, &err);
    orr_buf all = {0};
    put_lines(&all, j.stall);
    end(&j);
    bool is_done = false;
    for (long n = 0; !is_done; n++) {
        CHECK(n < 10000);
        make_job(&j, ops, sizeof ops / sizeof *ops, 5, &with);
        while (orr_sim_step(j.sim, &err) == ORR_OK)
            ;
        orr__fail_alloc_after(n);
        j.stall = orr_sim_stall(j.sim);
        is_done = orr__fail_alloc_after(-1) >= 0;
        CHECK(j.stall || !is_done);
        if (j.stall) { /* all of it, or nothing */
            orr_buf now = {0};
            put_lines(&now, j.stall);
            CHECK_EQ_U(now.len, all.len);
            CHECK_BYTES(now.ptr, all.ptr, all.len);
            orr_buf_fini(&now);
        }
        end(&j);
    }
    orr_buf_fini(&all);
}

/* ---- random jobs ---- */

/* Messages between few ranks, in a random order, some of them spoilt. */
static size_t random_ops(orr_rng *rng, op *ops, uint32_t ranks, bool *is_spoilt)
{
    uint64_t next[MOST_RANKS] = {0};
    size_t n = 0;
    *is_spoilt = orr_rng_below(rng, 3) == 0;
    for (unsigned i = 0; i < 12; i++) {
        const uint32_t a = (uint32_t)orr_rng_below(rng, ranks);
        const uint32_t b = (a + 1 + (uint32_t)orr_rng_below(rng, ranks - 1)) % ranks;
        const int64_t size = 64 << orr_rng_below(rng, 2), tag = (int64_t)orr_rng_below(rng, 3);
        ops[n++] = (op){a, 0, SEND, b, size, tag};
        ops[n++] = (op){b, 0, RECV, a, size, tag};
    }
    for (size_t i = n; i-- > 1;) {
        const size_t k = (size_t)orr_rng_below(rng, i + 1);
        const op o = ops[i];
        ops[i] = ops[k];
        ops[k] = o;
    }
    if (*is_spoilt)
        ops[orr_rng_below(rng, n)].size += 1;
    for (size_t i = 0; i < n; i++) {
        op *o = &ops[i];
        o->id = ++next[o->rank];
        if (o->id > 1 && orr_rng_below(rng, 3))
            o->after[0] = 1 + orr_rng_below(rng, o->id - 1);
    }
    return n;
}

static const op *find(const op *ops, size_t n, uint32_t rank, uint64_t id)
{
    for (size_t i = 0; i < n; i++)
        if (ops[i].rank == rank && ops[i].id == id)
            return &ops[i];
    return NULL;
}

/* How many more receives than sends (or the other way round) there are of the message of this
 * node. */
static int64_t surplus(const op *ops, size_t n, const op *o)
{
    int64_t count = 0;
    for (size_t i = 0; i < n; i++) {
        const op *x = &ops[i];
        const bool is_same_side = x->type == o->type && x->rank == o->rank && x->peer == o->peer;
        const bool is_other_side =
            x->type != o->type && x->rank == (uint32_t)o->peer && x->peer == (int64_t)o->rank;
        if (x->tag == o->tag && x->size == o->size)
            count += is_same_side ? 1 : is_other_side ? -1 : 0;
    }
    return count;
}

static unsigned check_random(uint64_t seed, bool has_rendezvous)
{
    op ops[64];
    bool is_spoilt;
    orr_rng rng;
    orr_rng_init(&rng, seed, 0);
    const uint32_t ranks = 2 + (uint32_t)orr_rng_below(&rng, 4);
    const size_t n = random_ops(&rng, ops, ranks, &is_spoilt);
    job j;
    const orr_code code = run(&j, ops, n, ranks, &(setting){.rendezvous = has_rendezvous});
    CHECK(code == ORR_OK || code == ORR_EINPUT);
    CHECK((code == ORR_EINPUT) == (j.stall != NULL));
    if (j.stall) {
        CHECK(j.stall->cause != ORR_STALL_UNKNOWN && j.stall->cause != ORR_STALL_NONE);
        CHECK(j.stall->line_count <= 20);
        for (size_t i = 0; i < j.stall->cause_count; i++) {
            const orr_stall_item *c = &j.stall->causes[i];
            CHECK(c->cause <= ORR_STALL_NO_PARTNER);
            if (surplus(ops, n, find(ops, n, c->first_rank, c->node)) <= 0)
                check_fail(__FILE__, __LINE__, "seed %" PRIu64 ", rendezvous %d: %s", seed,
                           has_rendezvous, c->text);
        }
        if (!is_spoilt)
            CHECK_EQ(j.stall->cause, ORR_STALL_CYCLE);
    }
    const unsigned has_stalled = j.stall != NULL;
    end(&j);
    return has_stalled;
}

/* Where nothing is spoilt every message has both sides, so only a cycle can be the cause; and what
 * is blamed on a node is true by count. */
TEST(test_stall__is_right_about_random_jobs)
{
    unsigned stalls = 0;
    for (uint64_t seed = 0; seed < 300; seed++)
        stalls += check_random(seed, false) + check_random(seed, true);
    CHECK(stalls > 200); /* or else this tests little */
}

/* Collectives of groups that overlap; ranks have them in different orders, and now and then not at
 * all. */
static size_t random_collectives(orr_rng *rng, op *ops)
{
    static const char *const names[] = {NULL, "1", "2", "3"};
    static const uint32_t members[][5] = {{4, 0, 1, 2, 3}, {2, 0, 1}, {3, 1, 2, 3}, {2, 0, 3}};
    uint64_t next[4] = {0};
    size_t n = 0;
    for (unsigned i = 0; i < 8; i++) {
        const size_t g = (size_t)orr_rng_below(rng, 4);
        const int64_t size = 64 << orr_rng_below(rng, 2);
        for (uint32_t k = 1; k <= members[g][0]; k++)
            if (orr_rng_below(rng, 40))
                ops[n++] = (op){members[g][k], 0, COLL, .size = size, .group = names[g]};
        if (n > 1 && orr_rng_below(rng, 3) == 0) {
            const op o = ops[n - 1];
            ops[n - 1] = ops[n / 2];
            ops[n / 2] = o;
        }
    }
    for (size_t i = 0; i < n; i++) {
        op *o = &ops[i];
        o->id = ++next[o->rank];
        if (o->id > 1 && orr_rng_below(rng, 2))
            o->after[0] = 1 + orr_rng_below(rng, o->id - 1);
    }
    return n;
}

static uint32_t count_collectives(const op *ops, size_t n, uint32_t rank, const char *group)
{
    uint32_t count = 0;
    for (size_t i = 0; i < n; i++)
        count += ops[i].rank == rank && strcmp(ops[i].group ? ops[i].group : "", group) == 0;
    return count;
}

TEST(test_stall__is_right_about_random_collectives)
{
    const setting with = {.groups = "{\"1\": [0, 1], \"2\": [1, 2, 3], \"3\": [3, 0]}"};
    unsigned stalls = 0;
    for (uint64_t seed = 0; seed < 300; seed++) {
        op ops[64];
        orr_rng rng;
        job j;
        orr_rng_init(&rng, seed, 1);
        const size_t n = random_collectives(&rng, ops);
        const orr_code code = run(&j, ops, n, 4, &with);
        CHECK((code == ORR_EINPUT) == (j.stall != NULL));
        for (size_t i = 0; j.stall && i < j.stall->cause_count; i++) {
            const orr_stall_item *c = &j.stall->causes[i];
            CHECK(c->cause != ORR_STALL_UNKNOWN);
            if (c->cause == ORR_STALL_MEMBER_ABSENT)
                CHECK(count_collectives(ops, n, c->peer, c->group) <= c->sequence);
        }
        if (j.stall)
            CHECK(j.stall->cause_count || j.stall->cycle_length);
        stalls += j.stall != NULL;
        end(&j);
    }
    CHECK(stalls > 100); /* or else this tests little */
}

int main(void)
{
    const CMUnitTest tests[] = {
        RUN(test_stall__names_a_send_that_never_comes),
        RUN(test_stall__names_a_receive_that_never_comes),
        RUN(test_stall__tells_sizes_apart),
        RUN(test_stall__tells_tags_apart),
        RUN(test_stall__tells_sends_to_come_apart),
        RUN(test_stall__does_not_blame_a_message_that_is_merely_early),
        RUN(test_stall__finds_the_cycle_of_two_sends),
        RUN(test_stall__finds_the_shortest_cycle),
        RUN(test_stall__follows_a_chain_to_its_cause),
        RUN(test_stall__finds_dependencies_in_a_cycle),
        RUN(test_stall__knows_nodes_that_end_on_the_spot),
        RUN(test_stall__knows_a_cycle_through_free_nodes),
        RUN(test_stall__accuses_the_network_of_lost_messages),
        RUN(test_stall__names_an_absent_member),
        RUN(test_stall__names_a_member_in_another_group),
        RUN(test_stall__says_what_keeps_a_member_away),
        RUN(test_stall__compares_kinds_and_sizes),
        RUN(test_stall__finds_groups_in_opposite_orders),
        RUN(test_stall__knows_chunks_that_are_numbered_differently),
        RUN(test_stall__knows_collectives_that_cannot_work),
        RUN(test_stall__looks_into_custom_collectives),
        RUN(test_stall__takes_equal_ranks_together),
        RUN(test_stall__is_nothing_while_all_is_well),
        RUN(test_stall__survives_a_lack_of_memory),
        RUN(test_stall__is_right_about_random_jobs),
        RUN(test_stall__is_right_about_random_collectives),
    };
    return RUN_ALL(tests);
}
