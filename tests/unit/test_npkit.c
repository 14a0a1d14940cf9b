/* SPDX-License-Identifier: Apache-2.0 */
/* test_npkit.c - tables of timings: exact sizes, beyond both ends, between two, and what is refused
 * (goal.md 5.8). */
#include "check.h"

#include <orrery/lab/nccl.h>

static orr_error err;

static orr_code parse(const char *text, orr_npkit **out)
{
    return orr_npkit_parse((orr_span){(const uint8_t *)text, strlen(text)}, "t.json", out, &err);
}

#define REDUCE "\"NPKIT_EVENT_GPU_RECV_REDUCE_SEND\": "
#define COPY "\"NPKIT_EVENT_GPU_DIRECT_RECV_COPY_SEND\": "

static const char good[] = "{\"NPKIT_EVENT_GPU_SEND\": {\"x\": 1}, " REDUCE
                           "{\"1000\": [10, 20], \"100\": [40, 1, 1]}, " COPY "{\"8\": [7]}}";

static uint64_t time_of(const orr_npkit *t, orr_npkit_what what, orr_npkit_how how, uint64_t bytes)
{
    return orr_npkit_time(t, what, &(orr_npkit_choice){.how = how, .seed = 5}, bytes);
}

TEST(test_npkit__first_samples_and_means)
{
    orr_npkit *t;
    CHECK_OK(parse(good, &t), &err);
    CHECK_EQ_U(time_of(t, ORR_NPKIT_REDUCE, ORR_NPKIT_FIRST, 100), 40);
    CHECK_EQ_U(time_of(t, ORR_NPKIT_REDUCE, ORR_NPKIT_FIRST, 1), 40);
    CHECK_EQ_U(time_of(t, ORR_NPKIT_REDUCE, ORR_NPKIT_FIRST, 1000000), 10);
    CHECK_EQ_U(time_of(t, ORR_NPKIT_REDUCE, ORR_NPKIT_MEAN, 100), 14);
    CHECK_EQ_U(time_of(t, ORR_NPKIT_REDUCE, ORR_NPKIT_MEAN, 5000), 15);
    CHECK_EQ_U(time_of(t, ORR_NPKIT_COPY, ORR_NPKIT_MEAN, 123), 7);
    /* halfway between the means 14 and 15, cut off */
    CHECK_EQ_U(time_of(t, ORR_NPKIT_REDUCE, ORR_NPKIT_FIRST, 550), 14);
    orr_npkit_free(t);
}

TEST(test_npkit__drawn_times_are_samples_and_repeat)
{
    orr_npkit *t;
    CHECK_OK(parse(good, &t), &err);
    bool has_other = false;
    for (uint64_t seed = 0; seed < 64; seed++) {
        const orr_npkit_choice c = {.how = ORR_NPKIT_DRAWN, .seed = seed};
        const uint64_t v = orr_npkit_time(t, ORR_NPKIT_REDUCE, &c, 1000);
        CHECK(v == 10 || v == 20);
        CHECK_EQ_U(orr_npkit_time(t, ORR_NPKIT_REDUCE, &c, 1000), v);
        has_other = has_other || v == 20;
        const uint64_t between = orr_npkit_time(t, ORR_NPKIT_REDUCE, &c, 550);
        CHECK(between >= 13 && between <= 15); /* 14.5, six times 1 % around it at most */
    }
    CHECK(has_other);
    orr_npkit_free(t);
}

TEST(test_npkit__what_is_refused_has_a_place)
{
    static const struct {
        const char *text, *words;
    } bad[] = {
        {"", ""},
        {"[]", "RECV_REDUCE_SEND"},
        {"{" REDUCE "{\"8\": [1]}}", "COPY_SEND"},
        {"{" REDUCE "{}, " COPY "{\"8\": [7]}}", "at least one"},
        {"{" REDUCE "[], " COPY "{\"8\": [7]}}", "object"},
        {"{" REDUCE "{\"8\": []}, " COPY "{\"8\": [7]}}", "at least one"},
        {"{" REDUCE "{\"8\": 1}, " COPY "{\"8\": [7]}}", "list"},
        {"{" REDUCE "{\"8x\": [1]}, " COPY "{\"8\": [7]}}", "not a size"},
        {"{" REDUCE "{\"8\": [\"1\"]}, " COPY "{\"8\": [7]}}", "number"},
        {"{" REDUCE "{\"8\": [-1]}, " COPY "{\"8\": [7]}}", "9e15"},
        {"{" REDUCE "{\"8\": [NaN]}, " COPY "{\"8\": [7]}}", "9e15"},
        {"{" REDUCE "{\"8\": [1], \"08\": [2]}, " COPY "{\"8\": [7]}}", "duplicate size 8"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        orr_npkit *t;
        CHECK_CODE(parse(bad[i].text, &t), ORR_EINPUT, &err);
        CHECK(!t && err.where.line);
        CHECK_SAYS(&err, bad[i].words);
    }
}

TEST(test_npkit__a_file_that_is_not_there)
{
    orr_npkit *t;
    CHECK_CODE(orr_npkit_read("nowhere.json", &t, &err), ORR_EIO, &err);
}

int main(void)
{
    const CMUnitTest tests[] = {
        RUN(test_npkit__first_samples_and_means),
        RUN(test_npkit__drawn_times_are_samples_and_repeat),
        RUN(test_npkit__what_is_refused_has_a_place),
        RUN(test_npkit__a_file_that_is_not_there),
    };
    return RUN_ALL(tests);
}
