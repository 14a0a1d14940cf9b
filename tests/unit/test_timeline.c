/* SPDX-License-Identifier: Apache-2.0 */
/* test_timeline.c - a timeline made by hand: its order, what it refuses, and its Chrome form byte
 * for byte. */
#include "check.h"
#include "files.h"

#include "base/formats/json.h"

#include <orrery/lab/chrome_trace.h>
#include <orrery/view.h>

static orr_error err;

static orr_timeline *new_timeline(void)
{
    orr_timeline *t;
    CHECK_OK(orr_timeline_create(&t, &err), &err);
    return t;
}

static uint32_t add_track(orr_timeline *t, uint32_t rank, const char *name)
{
    uint32_t track;
    CHECK_OK(orr_timeline_add_track(t, rank, orr_str_of(name), &track, &err), &err);
    return track;
}

static uint32_t add_text(orr_timeline *t, const char *text)
{
    uint32_t number;
    CHECK_OK(orr_timeline_add_text(t, orr_str_of(text), &number, &err), &err);
    return number;
}

static uint32_t add_span(
    orr_timeline *t, uint32_t track, const char *name, orr_ps start, orr_ps end)
{
    uint32_t number;
    const orr_timespan span = {
        .track = track, .name = add_text(t, name), .start = start, .end = end};
    CHECK_OK(orr_timeline_add_span(t, &span, &number, &err), &err);
    return number;
}

static const orr_timeline_parts *seal(orr_timeline *t)
{
    CHECK_OK(orr_timeline_seal(t, &err), &err);
    return orr_timeline_view(t);
}

/* ---- order ---- */

TEST(test_timeline__spans_of_a_track_come_by_start_and_longer_ones_first)
{
    orr_timeline *t = new_timeline();
    const uint32_t a = add_track(t, 0, "a"), b = add_track(t, 0, "b");
    add_span(t, b, "late", 50, 60);      /* 0 */
    add_span(t, a, "inner", 10, 20);     /* 1 */
    add_span(t, a, "outer", 10, 40);     /* 2 */
    add_span(t, b, "early", 5, 6);       /* 3 */
    add_span(t, a, "first", 0, 10);      /* 4 */
    add_span(t, a, "inner too", 10, 20); /* 5: equal to 1 and after it */
    const orr_timeline_parts *p = seal(t);
    const uint32_t want[] = {4, 2, 1, 5, 3, 0};
    CHECK_EQ_U(p->first[a], 0);
    CHECK_EQ_U(p->first[b], 4);
    CHECK_EQ_U(p->first[b + 1], 6);
    CHECK_BYTES(p->order, want, sizeof want);
    orr_timeline_destroy(t);
}

TEST(test_timeline__knows_its_start_and_end)
{
    orr_timeline *t = new_timeline();
    uint32_t counter;
    add_span(t, add_track(t, 3, "a"), "x", 10, 30);
    CHECK_OK(orr_timeline_add_counter(t, ORR_NO_RANK, orr_str_of("memory"), orr_str_of("bytes"),
                                      &counter, &err),
             &err);
    CHECK_OK(orr_timeline_add_sample(t, counter, -5, 1, &err), &err);
    const orr_timeline_parts *p = seal(t);
    CHECK_EQ_PS(p->start, -5);
    CHECK_EQ_PS(p->end, 30);
    orr_timeline_destroy(t);
}

TEST(test_timeline__an_empty_one_is_fine)
{
    orr_timeline *t = new_timeline();
    const orr_timeline_parts *p = seal(t);
    CHECK_EQ_U(p->span_count, 0);
    CHECK_EQ_PS(p->end, 0);
    CHECK_OK(orr_view_chrome(t, "empty.json", &err), &err);
    orr_timeline_destroy(t);
}

TEST(test_timeline__a_sample_at_the_same_time_takes_the_place_of_the_last)
{
    orr_timeline *t = new_timeline();
    uint32_t a, b;
    CHECK_OK(orr_timeline_add_counter(t, 0, orr_str_of("a"), orr_str_of("n"), &a, &err), &err);
    CHECK_OK(orr_timeline_add_counter(t, 0, orr_str_of("b"), orr_str_of("n"), &b, &err), &err);
    CHECK_OK(orr_timeline_add_sample(t, a, 10, 1, &err), &err);
    CHECK_OK(orr_timeline_add_sample(t, b, 10, 7, &err), &err);
    CHECK_OK(orr_timeline_add_sample(t, a, 10, 2, &err), &err);
    CHECK_OK(orr_timeline_add_sample(t, a, 11, 3, &err), &err);
    const orr_timeline_parts *p = seal(t);
    CHECK_EQ_U(p->sample_count, 3);
    CHECK_EQ(p->samples[0].value, 2);
    CHECK_EQ(p->samples[1].value, 7);
    CHECK_EQ(p->samples[2].value, 3);
    orr_timeline_destroy(t);
}

TEST(test_timeline__kinds_have_names)
{
    CHECK_TEXT(orr_span_kind_name(ORR_SPAN_OTHER), "other");
    for (unsigned k = 0; k < ORR_SPAN_KINDS; k++)
        CHECK(orr_span_kind_name((orr_span_kind)k) != NULL);
    CHECK(orr_span_kind_name(ORR_SPAN_KINDS) == NULL);
}

/* ---- what it refuses ---- */

TEST(test_timeline__refuses_what_points_nowhere)
{
    orr_timeline *t = new_timeline();
    const uint32_t track = add_track(t, 0, "a"), name = add_text(t, "x");
    const orr_timespan no_track = {.track = 7, .name = name};
    const orr_timespan no_name = {.track = track, .name = 99};
    const orr_timespan backwards = {.track = track, .name = name, .start = 2, .end = 1};
    const orr_arrow arrow = {.from = 0, .to = 1, .name = name};
    CHECK_CODE(orr_timeline_add_span(t, &no_track, NULL, &err), ORR_EUSAGE, &err);
    CHECK_SAYS(&err, "track that is not there");
    CHECK_CODE(orr_timeline_add_span(t, &no_name, NULL, &err), ORR_EUSAGE, &err);
    CHECK_CODE(orr_timeline_add_span(t, &backwards, NULL, &err), ORR_EUSAGE, &err);
    CHECK_SAYS(&err, "ends before it starts");
    CHECK_CODE(orr_timeline_add_arrow(t, &arrow, &err), ORR_EUSAGE, &err);
    CHECK_CODE(orr_timeline_add_sample(t, 0, 0, 0, &err), ORR_EUSAGE, &err);
    CHECK_CODE(orr_view_chrome(t, "open.json", &err), ORR_EUSAGE, &err);
    seal(t);
    CHECK_CODE(orr_timeline_add_track(t, 0, orr_str_of("b"), NULL, &err), ORR_EUSAGE, &err);
    CHECK_SAYS(&err, "sealed");
    orr_timeline_destroy(t);
}

/* ---- the Chrome form ---- */

static void check_text(const char *path, const char *want)
{
    orr_buf b = read_file(path);
    orr_buf_byte(&b, '\0');
    CHECK_TEXT((const char *)b.ptr, want);
    orr_buf_fini(&b);
}

TEST(test_timeline__chrome_form)
{
    orr_timeline *t = new_timeline();
    const uint32_t compute = add_track(t, 0, "compute"), stream = add_track(t, 1, "stream \"7\"");
    uint32_t counter;
    const orr_timespan gemm = {.track = compute,
                               .name = add_text(t, "gemm"),
                               .start = 0,
                               .end = 1500000,
                               .id = 3,
                               .has = ORR_SPAN_HAS_ID,
                               .kind = ORR_SPAN_COMPUTE};
    const orr_timespan recv = {.track = stream,
                               .name = add_text(t, "recv"),
                               .group = add_text(t, "tp"),
                               .start = 500,
                               .end = 2000001,
                               .size = 4096,
                               .peer = 0,
                               .has = ORR_SPAN_HAS_PEER,
                               .kind = ORR_SPAN_RECEIVE,
                               .is_open = true};
    CHECK_OK(orr_timeline_add_note(t, orr_str_of("program"), orr_str_of("test"), &err), &err);
    CHECK_OK(orr_timeline_add_span(t, &gemm, NULL, &err), &err);
    CHECK_OK(orr_timeline_add_span(t, &recv, NULL, &err), &err);
    CHECK_OK(
        orr_timeline_add_arrow(
            t,
            &(orr_arrow){
                .from = 0, .to = 1, .left = 0, .arrived = 2000001, .name = add_text(t, "message")},
            &err),
        &err);
    CHECK_OK(orr_timeline_add_counter(t, ORR_NO_RANK, orr_str_of("busy"), orr_str_of("ranks"),
                                      &counter, &err),
             &err);
    CHECK_OK(orr_timeline_add_sample(t, counter, 0, 2, &err), &err);
    seal(t);
    CHECK_OK(orr_view_chrome(t, "chrome.json", &err), &err);
    /* The arrow ends 1 ns before its span does: 2.000001 - 0.001 us. */
    check_text(
        "chrome.json",
        "{\"displayTimeUnit\":\"ns\",\"otherData\":{\"format\":\"orrery-timeline\",\"version\":\"1\","
        "\"program\":\"test\"},\"traceEvents\":[\n"
        "{\"ph\":\"M\",\"pid\":0,\"name\":\"process_name\",\"args\":{\"name\":\"rank 0\"}},\n"
        "{\"ph\":\"M\",\"pid\":0,\"name\":\"process_sort_index\",\"args\":{\"sort_index\":0}},\n"
        "{\"ph\":\"M\",\"pid\":0,\"tid\":1,\"name\":\"thread_name\",\"args\":{\"name\":\"compute\"}},\n"
        "{\"ph\":\"M\",\"pid\":0,\"tid\":1,\"name\":\"thread_sort_index\",\"args\":{\"sort_index\":1}},\n"
        "{\"ph\":\"M\",\"pid\":1,\"name\":\"process_name\",\"args\":{\"name\":\"rank 1\"}},\n"
        "{\"ph\":\"M\",\"pid\":1,\"name\":\"process_sort_index\",\"args\":{\"sort_index\":1}},\n"
        "{\"ph\":\"M\",\"pid\":1,\"tid\":1,\"name\":\"thread_name\",\"args\":{\"name\":\"stream \\\"7\\\"\"}},\n"
        "{\"ph\":\"M\",\"pid\":1,\"tid\":1,\"name\":\"thread_sort_index\",\"args\":{\"sort_index\":1}},\n"
        "{\"ph\":\"M\",\"pid\":2,\"name\":\"process_name\",\"args\":{\"name\":\"all ranks\"}},\n"
        "{\"ph\":\"M\",\"pid\":2,\"name\":\"process_sort_index\",\"args\":{\"sort_index\":-1}},\n"
        "{\"ph\":\"X\",\"pid\":0,\"tid\":1,\"ts\":0,\"dur\":1.5,\"name\":\"gemm\",\"cat\":\"compute\","
        "\"args\":{\"node\":3}},\n"
        "{\"ph\":\"X\",\"pid\":1,\"tid\":1,\"ts\":0.0005,\"dur\":1.999501,\"name\":\"recv\","
        "\"cat\":\"receive\",\"args\":{\"bytes\":4096,\"group\":\"tp\",\"peer\":0,\"unfinished\":true}},\n"
        "{\"ph\":\"s\",\"pid\":0,\"id\":0,\"tid\":1,\"ts\":0,\"name\":\"message\",\"cat\":\"arrow\","
        "\"args\":{\"span\":0}},\n"
        "{\"ph\":\"f\",\"pid\":1,\"bp\":\"e\",\"id\":0,\"tid\":1,\"ts\":1.999001,\"name\":\"message\","
        "\"cat\":\"arrow\",\"args\":{\"span\":1,\"us\":2.000001}},\n"
        "{\"ph\":\"C\",\"pid\":2,\"ts\":0,\"name\":\"busy\",\"args\":{\"ranks\":2}}\n"
        "]}\n");
    orr_timeline_destroy(t);
}

/* The threads of the X events, in order, as digits. */
static void read_threads(const char *path, char *out, size_t size)
{
    orr_buf b = read_file(path);
    size_t n = 0;
    orr_buf_byte(&b, '\0');
    for (const char *p = (const char *)b.ptr; (p = strstr(p, "\"ph\":\"X\"")) && n + 1 < size;
         p++) {
        const char *tid = strstr(p, "\"tid\":");
        CHECK(tid != NULL);
        out[n++] = tid[6];
    }
    out[n] = '\0';
    orr_buf_fini(&b);
}

TEST(test_timeline__spans_that_overlap_lie_on_lanes_of_their_own)
{
    orr_timeline *t = new_timeline();
    const uint32_t a = add_track(t, 0, "a"), b = add_track(t, 0, "b");
    char threads[16];
    add_span(t, a, "1", 0, 100);
    add_span(t, a, "inside 1", 10, 90);
    add_span(t, a, "across the end of 1", 50, 150);
    add_span(t, a, "after 1", 100, 120);
    add_span(t, a, "across both", 110, 200);
    add_span(t, b, "other track", 0, 10);
    seal(t);
    CHECK_OK(orr_view_chrome(t, "lanes.json", &err), &err);
    read_threads("lanes.json", threads, sizeof threads);
    /* Two lanes for a: the fourth lies inside the third, and the first lane is free for the
     * fifth. */
    CHECK_TEXT(threads, "112213");
    orr_timeline_destroy(t);
}

TEST(test_timeline__chrome_form_of_many_spans_is_the_same_each_time)
{
    for (int k = 0; k < 2; k++) {
        orr_timeline *t = new_timeline();
        uint64_t seed = 1;
        uint32_t tracks[4];
        for (uint32_t i = 0; i < 4; i++)
            tracks[i] = add_track(t, i / 2, "t");
        for (int i = 0; i < 20000; i++) {
            const orr_ps start = (orr_ps)(next_random(&seed) % 1000000);
            add_span(t, tracks[next_random(&seed) % 4], "x", start,
                     start + (orr_ps)(next_random(&seed) % 1000));
        }
        seal(t);
        CHECK_OK(orr_view_chrome(t, k ? "two.json" : "one.json", &err), &err);
        orr_timeline_destroy(t);
    }
    orr_buf one = read_file("one.json");
    check_file("two.json", one.ptr, one.len);
    orr_buf_fini(&one);
}

/* Ranks 3 to 9 by twos are like rank 1: said in the name of its process, and read back from
 * there. */
TEST(test_timeline__a_rank_stands_for_others)
{
    orr_timeline *t = new_timeline(), *again;
    const uint32_t one = add_track(t, 1, "compute"), two = add_track(t, 2, "compute");
    const orr_timespan waits = {.track = one,
                                .name = add_text(t, "all-reduce"),
                                .start = 1000,
                                .end = 9000,
                                .flows = 4000,
                                .kind = ORR_SPAN_COLLECTIVE,
                                .has = ORR_SPAN_HAS_FLOWS};
    orr_timespan wrong = waits;
    wrong.flows = 9001;
    CHECK_OK(orr_timeline_add_span(t, &waits, NULL, &err), &err);
    CHECK_CODE(orr_timeline_add_span(t, &wrong, NULL, &err), ORR_EUSAGE, &err);
    add_span(t, two, "gemm", 0, 9000);
    for (uint32_t r = 3; r < 10; r += 2)
        CHECK_OK(orr_timeline_add_alike(t, 1, r, &err), &err);
    CHECK_CODE(orr_timeline_add_alike(t, 1, ORR_NO_RANK, &err), ORR_EUSAGE, &err);
    seal(t);
    CHECK_OK(orr_view_chrome(t, "alike.json", &err), &err);
    orr_buf text = read_file("alike.json");
    CHECK(memmem(text.ptr, text.len, "\"ranks 1-9/2\"", 13));
    CHECK(memmem(text.ptr, text.len, "\"rank 2\"", 8));
    orr_buf_fini(&text);
    const char *const paths[] = {"alike.json"};
    CHECK_OK(orr_chrome_trace_read(paths, 1, NULL, &again, &err), &err);
    const orr_timeline_parts *p = orr_timeline_view(again);
    CHECK_EQ_U(p->alike_count, 10);
    CHECK_EQ_U(orr_timeline_shown(p, 7), 1);
    CHECK_EQ_U(orr_timeline_shown(p, 2), 2);
    CHECK_EQ_U(orr_timeline_shown(p, 8), 8);
    CHECK(p->spans[0].has & ORR_SPAN_HAS_FLOWS);
    CHECK_EQ_U(p->spans[0].flows, 4000);
    orr_timeline_destroy(again);
    orr_timeline_destroy(t);
}

/* Whoever has tracks stands for itself, whatever is said of it; nobody stands for one that is like
 * a third. */
TEST(test_timeline__a_rank_with_tracks_is_like_no_other)
{
    orr_timeline *t = new_timeline();
    for (uint32_t r = 0; r < 3; r++)
        add_span(t, add_track(t, r, "compute"), "gemm", 0, 1000 * (r + 1));
    CHECK_OK(orr_timeline_add_alike(t, 0, 1, &err), &err);
    CHECK_OK(orr_timeline_add_alike(t, 1, 3, &err), &err);
    CHECK_OK(orr_timeline_add_alike(t, 3, 4, &err), &err);
    seal(t);
    const orr_timeline_parts *p = orr_timeline_view(t);
    CHECK_EQ_U(orr_timeline_shown(p, 1), 1);
    CHECK_EQ_U(orr_timeline_shown(p, 3), 1);
    CHECK_EQ_U(orr_timeline_shown(p, 4), 4);
    orr_timeline_destroy(t);
}

int main(void)
{
    const CMUnitTest tests[] = {
        RUN(test_timeline__spans_of_a_track_come_by_start_and_longer_ones_first),
        RUN(test_timeline__knows_its_start_and_end),
        RUN(test_timeline__an_empty_one_is_fine),
        RUN(test_timeline__a_sample_at_the_same_time_takes_the_place_of_the_last),
        RUN(test_timeline__kinds_have_names),
        RUN(test_timeline__refuses_what_points_nowhere),
        RUN(test_timeline__chrome_form),
        RUN(test_timeline__spans_that_overlap_lie_on_lanes_of_their_own),
        RUN(test_timeline__chrome_form_of_many_spans_is_the_same_each_time),
        RUN(test_timeline__a_rank_stands_for_others),
        RUN(test_timeline__a_rank_with_tracks_is_like_no_other),
    };
    return RUN_ALL(tests);
}
