/* SPDX-License-Identifier: Apache-2.0 */
/* Two runs side by side: small timelines, figures added up by hand. */
#include "check.h"

#include <orrery/lab/diff.h>

static orr_error err;

typedef struct row {
    uint32_t rank;
    const char *track, *name;
    orr_span_kind kind;
    orr_ps start, end;
} row;

/* The track of row i is that of the first row with its rank and name. */
static uint32_t track_of(const row *rows, size_t i, const uint32_t *tracks)
{
    for (size_t k = 0; k < i; k++) {
        if (rows[k].rank == rows[i].rank && strcmp(rows[k].track, rows[i].track) == 0)
            return tracks[k];
    }
    return UINT32_MAX;
}

static orr_timeline *make(const row *rows, size_t count)
{
    uint32_t tracks[32];
    orr_timeline *t;
    CHECK_OK(orr_timeline_create(&t, &err), &err);
    for (size_t i = 0; i < count; i++) {
        uint32_t name;
        tracks[i] = track_of(rows, i, tracks);
        if (tracks[i] == UINT32_MAX)
            CHECK_OK(orr_timeline_add_track(t, rows[i].rank, orr_str_of(rows[i].track), &tracks[i],
                                            &err),
                     &err);
        CHECK_OK(orr_timeline_add_text(t, orr_str_of(rows[i].name), &name, &err), &err);
        const orr_timespan s = {.track = tracks[i],
                                .name = name,
                                .kind = rows[i].kind,
                                .start = rows[i].start,
                                .end = rows[i].end};
        CHECK_OK(orr_timeline_add_span(t, &s, NULL, &err), &err);
    }
    CHECK_OK(orr_timeline_seal(t, &err), &err);
    return t;
}

static const orr_diff_row *find(const orr_diff_row *rows, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++) {
        if (rows[i].name.len == strlen(name) && memcmp(rows[i].name.ptr, name, strlen(name)) == 0)
            return &rows[i];
    }
    return NULL;
}

static void check_row(
    const orr_diff_row *r, uint64_t count0, uint64_t count1, orr_ps time0, orr_ps time1)
{
    CHECK(r != NULL);
    CHECK_EQ_U(r->count[0], count0);
    CHECK_EQ_U(r->count[1], count1);
    CHECK_EQ_PS(r->time[0], time0);
    CHECK_EQ_PS(r->time[1], time1);
}

/* Measured: "step" is a mark around all; "mm" has a launch inside, which the simulation does not know; "linear" has "mm" inside.
 *
 *     step    0 ............................. 100
 *     linear    10 ................ 50
 *     mm            20 ....... 40
 *     launch            25-35                          so linear has 20 of its own, mm 20, step 60
 *     kernel                            45 - 75
 */
static const row measured[] = {
    {0, "thread", "step", ORR_SPAN_OTHER, 0, 100},
    {0, "thread", "linear", ORR_SPAN_HOST, 10, 50},
    {0, "thread", "mm", ORR_SPAN_HOST, 20, 40},
    {0, "thread", "launch", ORR_SPAN_HOST, 25, 35},
    {0, "stream 7", "kernel", ORR_SPAN_COMPUTE, 45, 75},
    {0, "stream 7", "step", ORR_SPAN_OTHER, 40, 80},
    {0, "worker", "gloo", ORR_SPAN_HOST, 80, 90},
};

/* Simulated on two ranks: 5, 15, 20, 30 on each; the other's "gloo" is a collective here, and has
 * parts. */
static const row simulated[] = {
    {0, "host", "step", ORR_SPAN_HOST, 0, 5},
    {0, "host", "linear", ORR_SPAN_HOST, 5, 20},
    {0, "host", "mm", ORR_SPAN_HOST, 20, 40},
    {0, "gpu", "kernel", ORR_SPAN_COMPUTE, 40, 70},
    {0, "gpu", "gloo", ORR_SPAN_COLLECTIVE, 70, 110},
    {0, "gpu", "part", ORR_SPAN_PHASE, 70, 90},
    {1, "host", "step", ORR_SPAN_HOST, 0, 5},
    {1, "host", "linear", ORR_SPAN_HOST, 5, 20},
    {1, "host", "mm", ORR_SPAN_HOST, 20, 40},
    {1, "gpu", "kernel", ORR_SPAN_COMPUTE, 40, 70},
    {1, "gpu", "gloo", ORR_SPAN_COLLECTIVE, 70, 110},
};

static void make_both(orr_timeline **a, orr_timeline **b, orr_diff **d)
{
    *a = make(measured, sizeof measured / sizeof *measured);
    *b = make(simulated, sizeof simulated / sizeof *simulated);
    CHECK_OK(orr_diff_make(*a, *b, d, &err), &err);
}

static void end_both(orr_timeline *a, orr_timeline *b, orr_diff *d)
{
    orr_diff_free(d);
    orr_timeline_destroy(a);
    orr_timeline_destroy(b);
}

TEST(test_diff__own_times_by_operator)
{
    orr_timeline *a, *b;
    orr_diff *d;
    make_both(&a, &b, &d);
    CHECK_EQ_U(d->ranks[0], 1);
    CHECK_EQ_U(d->ranks[1], 2);
    CHECK_EQ_PS(d->whole[0], 100);
    CHECK_EQ_PS(d->whole[1], 110);
    CHECK_EQ_U(d->operator_count, 5); /* the launch is part of mm, the part is none */
    check_row(find(d->operators, 5, "linear"), 1, 2, 20, 30);
    check_row(find(d->operators, 5, "mm"), 1, 2, 20, 40);
    check_row(find(d->operators, 5, "kernel"), 1, 2, 30, 60);
    check_row(find(d->operators, 5, "gloo"), 1, 2, 10, 80);
    CHECK_EQ(find(d->operators, 5, "gloo")->kind, ORR_SPAN_COLLECTIVE);
    end_both(a, b, d);
}

/* Per rank: step 60 and 5, gloo 10 and 40, linear 20 and 15; kernel and mm are equal and go by
 * name. */
TEST(test_diff__the_largest_difference_first)
{
    static const char *const order[] = {"step", "gloo", "linear", "kernel", "mm"};
    orr_timeline *a, *b;
    orr_diff *d;
    make_both(&a, &b, &d);
    for (size_t i = 0; i < 5; i++)
        CHECK(find(d->operators + i, 1, order[i]) != NULL);
    CHECK_EQ_U(d->kind_count, 3);
    check_row(find(d->kinds, 1, "host"), 3, 6, 100, 80);
    check_row(find(d->kinds + 1, 1, "collective"), 1, 2, 10, 80);
    check_row(find(d->kinds + 2, 1, "compute"), 1, 2, 30, 60);
    end_both(a, b, d);
}

TEST(test_diff__in_words)
{
    orr_timeline *a, *b;
    orr_diff *d;
    orr_str text;
    const orr_diff_style style = {.first = "m", .second = "s", .most = 1};
    make_both(&a, &b, &d);
    CHECK_OK(orr_diff_text(d, &style, &text, &err), &err);
    CHECK(strstr(text.ptr, "the first 1 of 5"));
    CHECK(strstr(text.ptr, "-91.7%")); /* of step: 60 to 5 */
    CHECK(strstr(text.ptr, "+10.0%")); /* of the whole: 100 to 110 */
    CHECK(!strstr(text.ptr, "linear"));
    CHECK_OK(orr_diff_json(d, &style, &text, &err), &err);
    CHECK(strstr(text.ptr, "\"format\": \"orrery-diff\""));
    end_both(a, b, d);
}

/* Nothing against something. */
TEST(test_diff__empty)
{
    orr_timeline *a = make(NULL, 0), *b = make(simulated, 1);
    orr_diff *d;
    orr_str text;
    CHECK_OK(orr_diff_make(a, b, &d, &err), &err);
    CHECK_EQ_U(d->ranks[0], 0);
    CHECK_EQ_U(d->operator_count, 1);
    CHECK_OK(orr_diff_text(d, &(orr_diff_style){.first = "a", .second = "b"}, &text, &err), &err);
    CHECK(strstr(text.ptr, "new"));
    end_both(a, b, d);
}

int main(void)
{
    const CMUnitTest tests[] = {
        RUN(test_diff__own_times_by_operator),
        RUN(test_diff__the_largest_difference_first),
        RUN(test_diff__in_words),
        RUN(test_diff__empty),
    };
    return RUN_ALL(tests);
}
