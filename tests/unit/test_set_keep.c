/* SPDX-License-Identifier: Apache-2.0 */
#include "check.h"

#include <orrery/set.h>

/* A trace of one node. */
static orr_trace *trace_of(uint64_t id, const char *name)
{
    orr_trace *t;
    orr_error err;
    const orr_draft node = {.id = id, .name = orr_str_of(name), .type = ORR_NODE_COMP};
    CHECK_OK(orr_trace_create(NULL, &t, &err), &err);
    CHECK_OK(orr_trace_append(t, &node, &err), &err);
    CHECK_OK(orr_trace_seal(t, &err), &err);
    return t;
}

/* Ranks 0 to 4: a, b, a with ids from 10 on, c, a. */
static orr_set *five_ranks(void)
{
    orr_set *s;
    orr_error err;
    CHECK_OK(orr_set_create(&s, &err), &err);
    CHECK_OK(orr_set_add(s, trace_of(1, "a"), &err), &err);
    CHECK_OK(orr_set_add(s, trace_of(1, "b"), &err), &err);
    CHECK_OK(orr_set_add_rank(s, 0, 9, &err), &err);
    CHECK_OK(orr_set_add(s, trace_of(1, "c"), &err), &err);
    CHECK_OK(orr_set_add_rank(s, 0, 0, &err), &err);
    return s;
}

static void check_rank(const orr_set *s, uint32_t rank, const char *name, uint64_t shift)
{
    const orr_str got = orr_trace_name(orr_set_trace(s, orr_set_class_of(s, rank)), 0);
    CHECK_EQ_U(got.len, 1);
    CHECK_EQ(got.ptr[0], name[0]);
    CHECK_EQ_U(orr_set_id_shift(s, rank), shift);
}

TEST(test_set_keep__some_ranks_and_their_classes_stay)
{
    orr_set *s = five_ranks();
    orr_error err;
    CHECK_OK(orr_set_keep(s, 2, 2, &err), &err);
    CHECK_EQ_U(orr_set_rank_count(s), 2);
    CHECK_EQ_U(orr_set_class_count(s), 2);
    check_rank(s, 0, "a", 9);
    check_rank(s, 1, "c", 0);
    CHECK_EQ_U(orr_set_class_ranks(s, orr_set_class_of(s, 0)), 1);
    CHECK_EQ_U(orr_set_class_first(s, orr_set_class_of(s, 1)), 1);
    orr_set_close(s);
}

TEST(test_set_keep__what_is_added_later_finds_its_place)
{
    orr_set *s = five_ranks();
    orr_error err;
    CHECK_OK(orr_set_keep(s, 3, 1, &err), &err);
    CHECK_OK(orr_set_add(s, trace_of(1, "b"), &err), &err);
    CHECK_EQ_U(orr_set_class_count(s), 2);
    check_rank(s, 0, "c", 0);
    check_rank(s, 1, "b", 0);
    orr_set_close(s);
}

TEST(test_set_keep__all_or_none)
{
    orr_set *s = five_ranks();
    orr_error err;
    CHECK_OK(orr_set_keep(s, 0, 5, &err), &err);
    CHECK_EQ_U(orr_set_class_count(s), 3);
    CHECK_OK(orr_set_keep(s, 5, 0, &err), &err);
    CHECK_EQ_U(orr_set_rank_count(s), 0);
    CHECK_EQ_U(orr_set_class_count(s), 0);
    orr_set_close(s);
}

TEST(test_set_keep__ranks_that_are_not_there_are_refused)
{
    orr_set *s = five_ranks();
    orr_error err;
    CHECK_CODE(orr_set_keep(s, 4, 2, &err), ORR_EUSAGE, &err);
    CHECK_CODE(orr_set_keep(s, 6, 0, &err), ORR_EUSAGE, &err);
    CHECK_EQ_U(orr_set_rank_count(s), 5);
    orr_set_close(s);
}

int main(void)
{
    const CMUnitTest tests[] = {
        RUN(test_set_keep__some_ranks_and_their_classes_stay),
        RUN(test_set_keep__what_is_added_later_finds_its_place),
        RUN(test_set_keep__all_or_none),
        RUN(test_set_keep__ranks_that_are_not_there_are_refused),
    };
    return RUN_ALL(tests);
}
