/* SPDX-License-Identifier: Apache-2.0 */
/* test_gantt_view.c - drawings of timelines made by hand, and parts of timelines. */
#include "check.h"
#include "files.h"

#include <orrery/view.h>

static orr_error err;

/* Rank 0: compute 0..50 us, then a send 50..100; rank 1: a collective 50..52 and one 98..100. */
static orr_timeline *make(void)
{
    static const struct {
        uint32_t track;
        orr_ps start, end;
        orr_span_kind kind;
    } spans[] = {{0, 0, 50, ORR_SPAN_COMPUTE},
                 {0, 50, 100, ORR_SPAN_SEND},
                 {1, 50, 52, ORR_SPAN_COLLECTIVE},
                 {1, 98, 100, ORR_SPAN_COLLECTIVE}};
    orr_timeline *t;
    uint32_t counter;
    CHECK_OK(orr_timeline_create(&t, &err), &err);
    CHECK_OK(orr_timeline_add_track(t, 0, orr_str_of("work"), NULL, &err), &err);
    CHECK_OK(orr_timeline_add_track(t, 1, orr_str_of("a\033[b"), NULL, &err), &err);
    for (size_t i = 0; i < sizeof spans / sizeof *spans; i++) {
        const orr_timespan s = {.track = spans[i].track,
                                .start = spans[i].start * 1000000,
                                .end = spans[i].end * 1000000,
                                .kind = (uint8_t)spans[i].kind};
        CHECK_OK(orr_timeline_add_span(t, &s, NULL, &err), &err);
    }
    CHECK_OK(orr_timeline_add_arrow(t, &(orr_arrow){.from = 1, .to = 2}, &err), &err);
    CHECK_OK(
        orr_timeline_add_counter(t, 1, orr_str_of("held"), orr_str_of("bytes"), &counter, &err),
        &err);
    CHECK_OK(orr_timeline_add_sample(t, counter, 10000000, 7, &err), &err);
    CHECK_OK(orr_timeline_add_sample(t, counter, 60000000, 8, &err), &err);
    CHECK_OK(orr_timeline_add_note(t, orr_str_of("by"), orr_str_of("hand"), &err), &err);
    CHECK_OK(orr_timeline_seal(t, &err), &err);
    return t;
}

static void check_drawing(const orr_view_gantt_options *opt, const char *expected)
{
    orr_timeline *t = make();
    CHECK_OK(orr_view_gantt(t, "drawing.txt", opt, &err), &err);
    check_file("drawing.txt", expected, strlen(expected));
    orr_timeline_destroy(t);
}

/* 41 columns less 6 + 4 + 4 + 7 of words are 20 cells of 5 us; 2 us are less than half of one. */
TEST(test_gantt_view__a_cell_shows_what_fills_most_of_it)
{
    check_drawing(&(orr_view_gantt_options){.size = sizeof(orr_view_gantt_options),
                                            .width = 41,
                                            .is_ascii = true},
                  "rank 0  work  ##########>>>>>>>>>> 100.0%\n"
                  "rank 1  a?[b            .        .   4.0%\n"
                  "              |0 ps     |50.0 us\n"
                  "\n# compute   > send   . busy for less than half of the cell\n");
}

/* Cells of 0.5 us: from 45 to 55 us ten are compute and ten a send; the collective takes four of
 * rank 1's. */
TEST(test_gantt_view__a_window_is_drawn_to_scale)
{
    check_drawing(
        &(orr_view_gantt_options){
            .size = sizeof(orr_view_gantt_options),
            .width = 41,
            .window = {.has_from = true, .from = 45000000, .has_to = true, .to = 55000000}},
        "rank 0  work  ██████████▸▸▸▸▸▸▸▸▸▸ 100.0%\n"
        "rank 1  a?[b            ▒▒▒▒        20.0%\n"
        "              |45.0 us  |50.0 us\n"
        "\n█ compute   ▸ send   ▒ collective\n");
}

TEST(test_gantt_view__rows_and_ranks_are_limited)
{
    check_drawing(
        &(orr_view_gantt_options){
            .size = sizeof(orr_view_gantt_options), .width = 41, .is_ascii = true, .rows = 1},
        "rank 0  work  ##########>>>>>>>>>> 100.0%\n"
        "              |0 ps     |50.0 us\n"
        "\n# compute   > send\n"
        "1 more rows are not shown; --ranks picks others\n");
}

TEST(test_gantt_view__a_part_keeps_what_reaches_into_it)
{
    orr_timeline *t = make(), *part;
    const orr_timeline_window ranks = {.has_ranks = true, .first_rank = 1, .last_rank = 5};
    const orr_timeline_window time = {
        .has_from = true, .from = 51000000, .has_to = true, .to = 70000000};
    CHECK_OK(orr_timeline_slice(t, &ranks, &part, &err), &err);
    const orr_timeline_parts *p = orr_timeline_view(part);
    CHECK_EQ_U(p->track_count, 1);
    CHECK_EQ_U(p->span_count, 2);
    CHECK_EQ_U(p->arrow_count, 0);
    CHECK_EQ_U(p->sample_count, 2);
    CHECK_EQ_U(p->note_count, 1);
    orr_timeline_destroy(part);
    CHECK_OK(orr_timeline_slice(t, &time, &part, &err), &err);
    p = orr_timeline_view(part);
    CHECK_EQ_U(p->span_count, 2); /* the send and the first collective, whole */
    CHECK_EQ_U(p->arrow_count, 1);
    CHECK_EQ_U(p->sample_count, 1);
    CHECK_EQ_PS(p->start, 50000000);
    CHECK_EQ_PS(p->end, 100000000);
    orr_timeline_destroy(part);
    orr_timeline_destroy(t);
}

int main(void)
{
    const CMUnitTest tests[] = {
        RUN(test_gantt_view__a_cell_shows_what_fills_most_of_it),
        RUN(test_gantt_view__a_window_is_drawn_to_scale),
        RUN(test_gantt_view__rows_and_ranks_are_limited),
        RUN(test_gantt_view__a_part_keeps_what_reaches_into_it),
    };
    return RUN_ALL(tests);
}
