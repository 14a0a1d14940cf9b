/* SPDX-License-Identifier: Apache-2.0 */
/* room: schedgen */
#include "check.h"
#include "compat/schedgen/sg_rules.h"
#include "files.h"
#include "goal_play.h"

#include <orrery/lab/schedgen.h>

/* ---- closed forms: docs/design/goal_patterns.md ---- */

typedef struct form {
    uint64_t messages, bytes, calcs;
} form;

static uint64_t log2_up(uint64_t n)
{
    uint64_t k = 0;
    while (UINT64_C(1) << k < n)
        k++;
    return k;
}

static form of_tree(const orr_schedgen_options *o)
{
    return (form){o->ranks - 1, (o->ranks - 1) * o->data_bytes, 0};
}

static form of_pipeline(const orr_schedgen_options *o)
{
    const uint64_t segments = (o->data_bytes + o->segment_bytes - 1) / o->segment_bytes;
    return (form){(o->ranks - 1) * segments, (o->ranks - 1) * o->data_bytes, 0};
}

static form of_doublering(const orr_schedgen_options *o)
{
    return (form){2 * o->ranks, 2 * o->ranks * o->data_bytes, 0};
}

static form of_linbarrier(const orr_schedgen_options *o)
{
    return (form){2 * (o->ranks - 1), 2 * (o->ranks - 1), 1};
}

static form of_dissemination(const orr_schedgen_options *o)
{
    const uint64_t n = o->ranks * log2_up(o->ranks);
    return (form){n, n * o->data_bytes, 0};
}

/* Rounds counted with whole numbers; ranks are chosen so that floating point agrees. */
static form of_nway(const orr_schedgen_options *o)
{
    uint64_t rounds = 0;
    for (uint64_t reach = 1; reach < o->ranks; reach *= o->nway + 1)
        rounds++;
    const uint64_t n = o->ranks * o->nway * rounds;
    return (form){n, n * o->data_bytes, rounds ? o->ranks * o->nway * (rounds - 1) : 0};
}

static form of_alltoall(const orr_schedgen_options *o)
{
    const uint64_t n = (uint64_t)o->ranks * (o->ranks - 1);
    return (form){n, n * o->data_bytes, 0};
}

/* Halves of d, halves of those, ... on p ranks; the same number of bytes doubled again; twice all
 * of it for each rank beside the power of two. */
static form of_recdoub(const orr_schedgen_options *o)
{
    const uint64_t d = o->data_bytes;
    uint64_t k = 0, down = 0;
    while (UINT64_C(2) << k <= o->ranks)
        k++;
    const uint64_t p = UINT64_C(1) << k, rest = o->ranks - p;
    for (uint64_t i = 1; i <= k; i++)
        down += d >> i;
    const uint64_t up = (d >> k) * (p - 1);
    return (form){2 * rest + 2 * p * k, 2 * rest * d + p * (down + up), 0};
}

static form of_ring(const orr_schedgen_options *o)
{
    const uint64_t n = 2 * (uint64_t)o->ranks * (o->ranks - 1);
    const uint64_t each = o->rules == &sg_atlahs ? o->data_bytes : o->data_bytes / o->ranks;
    return (form){n, n * each, 0};
}

static form of_bisect(const orr_schedgen_options *o)
{
    return (form){o->ranks / 2, o->ranks / 2 * o->data_bytes, 0};
}

static form of_bisect_both(const orr_schedgen_options *o)
{
    return (form){o->ranks / 2 * 2, o->ranks / 2 * 2 * o->data_bytes, 0};
}

/* 60,192,808 weights of 4 bytes in ten all-reduces. */
static form of_resnet(const orr_schedgen_options *o)
{
    const uint64_t n = o->ranks * log2_up(o->ranks);
    return (form){10 * n, n * 4 * 60192808, 21 * (uint64_t)o->ranks};
}

static form of_chain(const orr_schedgen_options *o)
{
    const uint64_t n = o->ranks * log2_up(o->ranks);
    return (form){5 * n, 5 * n * 10000, 5 * (uint64_t)o->ranks};
}

static const struct {
    const char *name;
    form (*of)(const orr_schedgen_options *o);
} forms[] = {
    {"binomialtreebcast", of_tree},
    {"binarytreebcast", of_tree},
    {"binomialtreereduce", of_tree},
    {"scatter", of_tree},
    {"gather", of_tree},
    {"pipelinedring", of_pipeline},
    {"pipelinedringdep", of_pipeline},
    {"doublering", of_doublering},
    {"linbarrier", of_linbarrier},
    {"dissemination", of_dissemination},
    {"nwaydissemination", of_nway},
    {"linear_alltoall", of_alltoall},
    {"allreduce_recdoub", of_recdoub},
    {"allreduce_ring", of_ring},
    {"random_bisect", of_bisect},
    {"random_bisect_fd_sym", of_bisect_both},
    {"resnet", of_resnet},
    {"chained_dissem", of_chain},
};

enum { FORMS = sizeof forms / sizeof *forms };

static void check_form(size_t i, const orr_schedgen_options *o)
{
    orr_error err;
    orr_schedgen_totals t;
    const form want = forms[i].of(o);
    CHECK_OK(orr_schedgen_write(orr_schedgen_find(forms[i].name), o, NULL, &t, &err), &err);
    if (t.sends != want.messages || t.recvs != want.messages || t.bytes_sent != want.bytes ||
        t.calcs != want.calcs)
        check_fail(__FILE__, __LINE__,
                   "%s, %u ranks, %llu bytes: %llu sends, %llu receives, %llu bytes, %llu "
                   "calculations, not %llu, %llu, %llu",
                   forms[i].name, o->ranks, (unsigned long long)o->data_bytes,
                   (unsigned long long)t.sends, (unsigned long long)t.recvs,
                   (unsigned long long)t.bytes_sent, (unsigned long long)t.calcs,
                   (unsigned long long)want.messages, (unsigned long long)want.bytes,
                   (unsigned long long)want.calcs);
}

TEST(test_schedgen__counts_and_bytes_follow_closed_forms)
{
    static const uint64_t sizes[] = {0, 1, 777, 65536, 1048577};
    for (size_t i = 0; i < FORMS; i++) {
        for (uint32_t n = 1; n <= 130; n++) {
            orr_schedgen_options o = orr_schedgen_defaults();
            o.ranks = n;
            o.data_bytes = sizes[n % 5];
            o.segment_bytes = 1 + n * 37 % 400;
            o.nway = 1 + n % 5;
            o.rules = n % 3 ? NULL : &sg_atlahs;
            check_form(i, &o);
        }
    }
}

/* log(125) / log(5) is above 3 in floating point: SchedGen has a fourth round, and so have we. */
TEST(test_schedgen__rounds_are_counted_in_floating_point)
{
    orr_error err;
    orr_schedgen_totals t;
    orr_schedgen_options o = orr_schedgen_defaults();
    o.ranks = 125;
    o.nway = 4;
    CHECK_OK(orr_schedgen_write(orr_schedgen_find("nwaydissemination"), &o, NULL, &t, &err), &err);
    CHECK_EQ_U(t.sends, 4 * 4 * 125);
    CHECK_EQ_U(t.calcs, 4 * 3 * 125);
}

/* A gap behind each step but the last, p(2k-1), and two on each rank that works for another. */
TEST(test_schedgen__gaps_are_counted)
{
    for (uint32_t n = 2; n <= 70; n++) {
        orr_error err;
        orr_schedgen_totals t;
        uint64_t k = 0;
        orr_schedgen_options o = orr_schedgen_defaults();
        o.ranks = n;
        o.has_gap = true;
        while (UINT64_C(2) << k <= n)
            k++;
        const uint64_t p = UINT64_C(1) << k;
        CHECK_OK(orr_schedgen_write(orr_schedgen_find("allreduce_recdoub"), &o, NULL, &t, &err),
                 &err);
        CHECK_EQ_U(t.calcs, p * (2 * k - 1) + 2 * (n - p));
    }
}

TEST(test_schedgen__counts_hold_for_many_ranks)
{
    static const char *const quick[] = {"binomialtreebcast", "binarytreebcast", "dissemination",
                                        "linbarrier",        "doublering",      "random_bisect"};
    for (size_t q = 0; q < sizeof quick / sizeof *quick; q++) {
        for (size_t i = 0; i < FORMS; i++) {
            orr_schedgen_options o = orr_schedgen_defaults();
            o.ranks = 65537 - (strcmp(quick[q], "random_bisect") == 0);
            if (strcmp(forms[i].name, quick[q]) == 0)
                check_form(i, &o);
        }
    }
}

/* ---- schedules that run ---- */

static void check_runs(const orr_schedgen_pattern *p, const orr_schedgen_options *o)
{
    orr_error err;
    orr_goal *g;
    CHECK_OK(orr_schedgen_write(p, o, "x.goal", NULL, &err), &err);
    CHECK_OK(orr_goal_read("x.goal", NULL, &g, &err), &err);
    for (int rendezvous = 0; rendezvous < 2; rendezvous++) {
        const char *problem = play_goal(g, rendezvous);
        if (problem)
            check_fail(__FILE__, __LINE__, "%s, %u ranks, root %lld: %s", p->name, o->ranks,
                       (long long)o->root, problem);
    }
    orr_goal_free(g);
}

static orr_schedgen_options some_options(uint32_t ranks, const orr_rules_schedgen *rules)
{
    orr_schedgen_options o = orr_schedgen_defaults();
    o.ranks = ranks;
    o.data_bytes = 1000;
    o.segment_bytes = 300;
    o.nway = 1 + ranks % 4;
    o.skew = 7;
    o.is_outcast = ranks % 2;
    o.seed = ranks;
    o.rules = rules;
    return o;
}

TEST(test_schedgen__every_pattern_runs_on_every_number_of_ranks)
{
    for (size_t i = 0; orr_schedgen_at(i); i++) {
        for (uint32_t n = 1; n <= 20; n++) {
            orr_schedgen_options o = some_options(n, n % 2 ? NULL : &sg_atlahs);
            check_runs(orr_schedgen_at(i), &o);
        }
    }
}

TEST(test_schedgen__every_root_will_do)
{
    for (size_t i = 0; orr_schedgen_at(i); i++) {
        for (uint32_t n = 1; n <= 9 && orr_schedgen_at(i)->uses & ORR_SCHEDGEN_ROOT; n++) {
            orr_schedgen_options o = some_options(n, &sg_lgs2023);
            for (o.root = 0; o.root < n; o.root++)
                check_runs(orr_schedgen_at(i), &o);
        }
    }
}

TEST(test_schedgen__gaps_and_overlap_leave_it_running)
{
    for (uint32_t n = 1; n <= 17; n++) {
        orr_schedgen_options o = some_options(n, NULL);
        o.has_gap = true;
        o.gap_ns = 50;
        o.has_overlap = true;
        o.overlap_ns = 1000;
        o.poll_ns = 300;
        o.cpu = 2;
        check_runs(orr_schedgen_find("allreduce_recdoub"), &o);
    }
}

/* With keeps_invalid the schedules are SchedGen's, and repair says why they cannot run. */
static const char *played(const char *name,
                          uint32_t ranks,
                          int64_t root,
                          const orr_rules_schedgen *rules)
{
    orr_error err;
    orr_goal *g;
    orr_schedgen_options o = some_options(ranks, rules);
    o.root = root;
    o.keeps_invalid = true;
    CHECK(orr_schedgen_repair(orr_schedgen_find(name), &o) != NULL);
    CHECK_OK(orr_schedgen_write(orr_schedgen_find(name), &o, "x.goal", NULL, &err), &err);
    CHECK_OK(orr_goal_read("x.goal", NULL, &g, &err), &err);
    const char *problem = play_goal(g, false);
    orr_goal_free(g);
    return problem;
}

TEST(test_schedgen__what_is_repaired_was_broken)
{
    CHECK(played("binarytreebcast", 8, 3, &sg_lgs2023) != NULL);
    CHECK(played("allreduce_recdoub", 5, 0, &sg_lgs2023) != NULL);
    CHECK(played("chained_dissem", 4, 0, &sg_lgs2023) != NULL);
    CHECK(played("resnet", 4, 0, &sg_atlahs) != NULL);
}

TEST(test_schedgen__nothing_is_repaired_that_runs)
{
    for (size_t i = 0; orr_schedgen_at(i); i++) {
        orr_schedgen_options o = some_options(8, &sg_lgs2023);
        const bool is_chain = strcmp(orr_schedgen_at(i)->name, "chained_dissem") == 0;
        CHECK((orr_schedgen_repair(orr_schedgen_at(i), &o) != NULL) == is_chain);
    }
}

/* ---- texts by hand ---- */

static void check_text(const char *name, const orr_schedgen_options *o, const char *want)
{
    orr_error err;
    orr_schedgen_totals t;
    CHECK_OK(orr_schedgen_write(orr_schedgen_find(name), o, "x.goal", &t, &err), &err);
    CHECK_EQ_U(t.text_bytes, strlen(want));
    check_file("x.goal", want, strlen(want));
}

/* Root 2 of 4 in a binary tree: ranks 0 and 2 change places, so 2 sends to 1 and 0, and 1 to 3. */
TEST(test_schedgen__binary_tree_from_another_root)
{
    orr_schedgen_options o = orr_schedgen_defaults();
    o.ranks = 4;
    o.data_bytes = 64;
    o.root = 2;
    check_text("binarytreebcast", &o,
               "num_ranks 4\n"
               "\nrank 0 {\nl1: recv 64b from 2 tag 0\n}\n"
               "\nrank 1 {\nl1: recv 64b from 2 tag 0\nl2: send 64b to 3 tag 0\nl2 requires l1\n}\n"
               "\nrank 2 {\nl1: send 64b to 1 tag 0\nl2: send 64b to 0 tag 0\n}\n"
               "\nrank 3 {\nl1: recv 64b from 1 tag 0\n}\n");
}

/* Three ranks: rank 0 stands aside; 1 and 2 exchange halves, twice. */
TEST(test_schedgen__halving_on_three_ranks)
{
    orr_schedgen_options o = orr_schedgen_defaults();
    o.ranks = 3;
    o.data_bytes = 10;
    check_text("allreduce_recdoub", &o,
               "num_ranks 3\n"
               "\nrank 0 {\nl1: send 10b to 1 tag 0\nl2: recv 10b from 1 tag 0\n}\n"
               "\nrank 1 {\nl1: recv 10b from 0 tag 0\n"
               "l2: send 5b to 2 tag 0\nl2 requires l1\nl3: recv 5b from 2 tag 0\n"
               "l4: send 5b to 2 tag 0\nl4 requires l3\nl5: recv 5b from 2 tag 0\n"
               "l6: send 10b to 0 tag 0\nl6 requires l5\n}\n"
               "\nrank 2 {\nl1: send 5b to 1 tag 0\nl2: recv 5b from 1 tag 0\n"
               "l3: send 5b to 1 tag 0\nl3 requires l2\nl4: recv 5b from 1 tag 0\n}\n");
}

/* --nb 500 --nb-poll 200 --cpu 3: three pieces of 200, chained. */
TEST(test_schedgen__computes_beside_the_pattern)
{
    orr_schedgen_options o = orr_schedgen_defaults();
    o.ranks = 1;
    o.has_overlap = true;
    o.overlap_ns = 500;
    o.poll_ns = 200;
    o.cpu = 3;
    check_text("dissemination", &o,
               "num_ranks 1\n\nrank 0 {\nl1: calc 200 cpu 3\nl2: calc 200 cpu 3\nl2 requires l1\n"
               "l3: calc 200 cpu 3\nl3 requires l2\n}\n");
}

TEST(test_schedgen__one_rank_alone_has_no_partner)
{
    orr_schedgen_options o = orr_schedgen_defaults();
    o.ranks = 1;
    check_text("random_bisect", &o, "num_ranks 1\n\nrank 0 {\n}\n");
}

/* Numbers beyond 32 bits are written as they are. */
TEST(test_schedgen__large_sizes)
{
    orr_schedgen_options o = orr_schedgen_defaults();
    o.ranks = 2;
    o.data_bytes = UINT64_C(9223372036854775807);
    check_text("gather", &o,
               "num_ranks 2\n\nrank 0 {\nl1: recv 9223372036854775807b from 1 tag 0\n}\n"
               "\nrank 1 {\nl1: send 9223372036854775807b to 0 tag 0\n}\n");
}

/* The first numbers of C's generator with seed 1, on two ranks with root 0 and sizes below 1000:
 * all of the data goes to 0, and the size of 0 -> 1 is 1804289383 % 1000 + 1. */
TEST(test_schedgen__sizes_are_those_of_the_c_library)
{
    orr_schedgen_options o = orr_schedgen_defaults();
    o.ranks = 2;
    o.data_bytes = 1000;
    check_text("linear_alltoallv", &o,
               "num_ranks 2\n"
               "\nrank 0 {\nl1: send 384b to 1 tag 0\nl2: recv 1000b from 1 tag 0\n}\n"
               "\nrank 1 {\nl1: send 1000b to 0 tag 0\nl2: recv 384b from 0 tag 0\n}\n");
}

/* In memory, as binary and as text it is one schedule. */
TEST(test_schedgen__text_binary_and_memory_agree)
{
    for (size_t i = 0; orr_schedgen_at(i); i++) {
        orr_error err;
        orr_goal *g;
        orr_schedgen_options o = some_options(7, NULL);
        o.has_overlap = true;
        o.cpu = 5;
        CHECK_OK(orr_schedgen_goal(orr_schedgen_at(i), &o, &g, &err), &err);
        CHECK_OK(orr_goal_write(g, "memory.bin", ORR_GOAL_BINARY, &err), &err);
        orr_goal_free(g);
        CHECK_OK(orr_schedgen_write(orr_schedgen_at(i), &o, "x.goal", NULL, &err), &err);
        CHECK_OK(orr_goal_read("x.goal", NULL, &g, &err), &err);
        CHECK_OK(orr_goal_write(g, "text.bin", ORR_GOAL_BINARY, &err), &err);
        orr_goal_free(g);
        o.is_binary = true;
        CHECK_OK(orr_schedgen_write(orr_schedgen_at(i), &o, "direct.bin", NULL, &err), &err);
        orr_buf want = read_file("text.bin");
        check_file("memory.bin", want.ptr, want.len);
        check_file("direct.bin", want.ptr, want.len);
        orr_buf_fini(&want);
    }
}

/* ---- what cannot be ---- */

static void check_refused(const char *name, const orr_schedgen_options *o, const char *words)
{
    orr_error err;
    CHECK_CODE(orr_schedgen_write(orr_schedgen_find(name), o, "refused.goal", NULL, &err),
               ORR_EUSAGE, &err);
    CHECK_SAYS(&err, words);
    CHECK(access("refused.goal", F_OK) != 0);
}

TEST(test_schedgen__refuses_what_no_schedule_can_be_made_of)
{
    orr_schedgen_options o = orr_schedgen_defaults();
    o.ranks = 0;
    check_refused("dissemination", &o, "there must be 1 to");
    o = orr_schedgen_defaults();
    o.root = 8;
    check_refused("scatter", &o, "out of range 0..7");
    o.root = -1;
    check_refused("binomialtreebcast", &o, "root -1 out of range");
    o = orr_schedgen_defaults();
    o.segment_bytes = 0;
    check_refused("pipelinedring", &o, "a segment");
    o = orr_schedgen_defaults();
    o.nway = 0;
    check_refused("nwaydissemination", &o, "one message per round");
    o = orr_schedgen_defaults();
    o.skew = 2;
    check_refused("linear_alltoallv", &o, "skew ratio, 2");
    o = orr_schedgen_defaults();
    o.cpu = 256;
    check_refused("dissemination", &o, "cpu 256");
}

TEST(test_schedgen__patterns_are_found_by_name)
{
    CHECK(orr_schedgen_find("nothing") == NULL);
    CHECK(orr_schedgen_find("resnet152") == orr_schedgen_find("resnet"));
    for (size_t i = 0; orr_schedgen_at(i); i++)
        CHECK(orr_schedgen_find(orr_schedgen_at(i)->name) == orr_schedgen_at(i));
}

TEST(test_schedgen__a_full_disk_is_an_error)
{
    orr_error err;
    orr_schedgen_options o = orr_schedgen_defaults();
    o.ranks = 100000;
    CHECK_CODE(orr_schedgen_write(orr_schedgen_find("dissemination"), &o, "/dev/full", NULL, &err),
               ORR_EIO, &err);
}

int main(void)
{
    const CMUnitTest tests[] = {
        RUN(test_schedgen__counts_and_bytes_follow_closed_forms),
        RUN(test_schedgen__rounds_are_counted_in_floating_point),
        RUN(test_schedgen__gaps_are_counted),
        RUN(test_schedgen__counts_hold_for_many_ranks),
        RUN(test_schedgen__every_pattern_runs_on_every_number_of_ranks),
        RUN(test_schedgen__every_root_will_do),
        RUN(test_schedgen__gaps_and_overlap_leave_it_running),
        RUN(test_schedgen__what_is_repaired_was_broken),
        RUN(test_schedgen__nothing_is_repaired_that_runs),
        RUN(test_schedgen__binary_tree_from_another_root),
        RUN(test_schedgen__halving_on_three_ranks),
        RUN(test_schedgen__computes_beside_the_pattern),
        RUN(test_schedgen__one_rank_alone_has_no_partner),
        RUN(test_schedgen__large_sizes),
        RUN(test_schedgen__sizes_are_those_of_the_c_library),
        RUN(test_schedgen__text_binary_and_memory_agree),
        RUN(test_schedgen__refuses_what_no_schedule_can_be_made_of),
        RUN(test_schedgen__patterns_are_found_by_name),
        RUN(test_schedgen__a_full_disk_is_an_error),
    };
    return RUN_ALL(tests);
}
