/* SPDX-License-Identifier: Apache-2.0 */
#include "check.h"

#include "base/threads/pool.h"

enum { ITEMS = 100, RUNS = 500 };

typedef struct sums {
    uint64_t of[ITEMS]; /* not atomic: each is written by one member, and read between runs */
    unsigned members;
} sums;

static void add_one(void *context, unsigned who, unsigned members)
{
    sums *s = context;
    for (unsigned i = who; i < ITEMS; i += members)
        s->of[i]++;
    if (who == 0)
        s->members = members;
}

/* Each item once a run, and nothing is left undone when a run returns. */
TEST(test_crew__every_run_does_all_of_the_work_once)
{
    static const unsigned members[] = {1, 2, 3, 8};
    for (size_t m = 0; m < sizeof members / sizeof *members; m++) {
        sums s = {{0}, 0};
        orr_crew *c = orr_crew_create(members[m], add_one, &s);
        CHECK(c != NULL);
        for (uint64_t run = 1; run <= RUNS; run++) {
            orr_crew_run(c);
            for (unsigned i = 0; i < ITEMS; i++)
                CHECK_EQ_U(s.of[i], run);
        }
        CHECK(s.members >= 1 && s.members <= members[m]);
        orr_crew_destroy(c);
    }
}

/* Members that have gone to sleep come back. */
TEST(test_crew__a_run_after_a_pause_is_done_as_well)
{
    sums s = {{0}, 0};
    orr_crew *c = orr_crew_create(4, add_one, &s);
    CHECK(c != NULL);
    for (uint64_t run = 1; run <= 5; run++) {
        usleep(20000);
        orr_crew_run(c);
        CHECK_EQ_U(s.of[ITEMS - 1], run);
    }
    orr_crew_destroy(c);
}

TEST(test_crew__one_that_never_ran_can_go)
{
    sums s = {{0}, 0};
    orr_crew_destroy(orr_crew_create(3, add_one, &s));
    orr_crew_destroy(NULL);
    CHECK_EQ_U(s.of[0], 0);
}

int main(void)
{
    const CMUnitTest tests[] = {
        RUN(test_crew__every_run_does_all_of_the_work_once),
        RUN(test_crew__a_run_after_a_pause_is_done_as_well),
        RUN(test_crew__one_that_never_ran_can_go),
    };
    return RUN_ALL(tests);
}
