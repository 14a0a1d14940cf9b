/* SPDX-License-Identifier: Apache-2.0 */
/* test_chrome_trace.c - trace events read: our own come back as they were, those of Kineto mean
 * what they say, and what is wrong is said with its place. */
#include "check.h"
#include "files.h"

#include "base/memory/buffer.h"

#include <orrery/lab/chrome_trace.h>
#include <orrery/trace.h>
#include <orrery/view.h>

static orr_error err;

static orr_timeline *parse(const char *text)
{
    orr_timeline *t;
    CHECK_OK(orr_chrome_trace_parse((orr_span){(const uint8_t *)text, strlen(text)}, "x.json", NULL,
                                    &t, &err),
             &err);
    return t;
}

static uint32_t text_of(orr_timeline *t, const char *text)
{
    uint32_t number;
    CHECK_OK(orr_timeline_add_text(t, orr_str_of(text), &number, &err), &err);
    return number;
}

static void check_name(const orr_timeline *t, uint32_t text, const char *want)
{
    char room[256] = "";
    const orr_str s = orr_timeline_text(t, text);
    CHECK(s.len < sizeof room);
    memcpy(room, s.ptr, s.len);
    CHECK_TEXT(room, want);
}

/* ---- there and back ---- */

/* Spans that overlap (lanes), nest and touch; every field; arrows whose ends lie outside of their
 * spans; a track whose name looks like a lane; a track and a counter of no rank. */
static orr_timeline *everything(void)
{
    orr_timeline *t;
    uint32_t tracks[4], counter[2];
    CHECK_OK(orr_timeline_create(&t, &err), &err);
    CHECK_OK(orr_timeline_add_note(t, orr_str_of("program"), orr_str_of("te\"st"), &err), &err);
    CHECK_OK(orr_timeline_add_track(t, 3, orr_str_of("receives"), &tracks[0], &err), &err);
    CHECK_OK(orr_timeline_add_track(t, 3, orr_str_of("receives (2)"), &tracks[1], &err), &err);
    CHECK_OK(orr_timeline_add_track(t, 5, orr_str_of(""), &tracks[2], &err), &err);
    CHECK_OK(orr_timeline_add_track(t, ORR_NO_RANK, orr_str_of("job"), &tracks[3], &err), &err);
    for (uint32_t i = 0; i < 12; i++) {
        const orr_timespan span = {
            .track = tracks[i % 4],
            .name = text_of(t, i % 3 ? "a" : "b <x>"),
            .group = i % 4 == 1 ? text_of(t, "group") : ORR_NO_TEXT,
            .start = 100 * (orr_ps)i,
            .end = 100 * (orr_ps)i + 1234567 * (orr_ps)(i % 5),
            .id = (uint64_t)i << 40,
            .has = (uint8_t)((i % 2 ? ORR_SPAN_HAS_ID : 0) | (i % 3 == 1 ? ORR_SPAN_HAS_PEER : 0)),
            .size = i % 3 ? 1000 * i : 0,
            .peer = i,
            .kind = (uint8_t)(i % ORR_SPAN_KINDS),
            .collective = i % ORR_SPAN_KINDS == ORR_SPAN_COLLECTIVE ? 3 : 0,
            .members = i % ORR_SPAN_KINDS == ORR_SPAN_COLLECTIVE ? 8 : 0,
            .is_open = i == 11};
        CHECK_OK(orr_timeline_add_span(t, &span, NULL, &err), &err);
    }
    const orr_arrow arrows[] = {{.from = 0, .to = 6, .left = -5, .arrived = 99999999},
                                {.from = 9, .to = 1, .left = 1000, .arrived = 2000}};
    for (size_t i = 0; i < 2; i++)
        CHECK_OK(orr_timeline_add_arrow(t, &arrows[i], &err), &err);
    CHECK_OK(orr_timeline_add_counter(t, 5, orr_str_of("memory"), orr_str_of("bytes"), &counter[0],
                                      &err),
             &err);
    CHECK_OK(orr_timeline_add_counter(t, ORR_NO_RANK, orr_str_of("memory"), orr_str_of("ranks"),
                                      &counter[1], &err),
             &err);
    for (int i = 0; i < 6; i++)
        CHECK_OK(orr_timeline_add_sample(t, counter[i % 2], 333 * i, 7 - 3 * i, &err), &err);
    CHECK_OK(orr_timeline_seal(t, &err), &err);
    return t;
}

static bool same_text(const orr_timeline *a, const orr_timeline *b, uint32_t in_a, uint32_t in_b)
{
    const orr_str x = orr_timeline_text(a, in_a), y = orr_timeline_text(b, in_b);
    return x.len == y.len && (x.len == 0 || memcmp(x.ptr, y.ptr, x.len) == 0);
}

static void check_same_span(const orr_timeline *a,
                            const orr_timeline *b,
                            const orr_timespan *x,
                            const orr_timespan *y)
{
    CHECK_EQ_PS(x->start, y->start);
    CHECK_EQ_PS(x->end, y->end);
    CHECK_EQ_U(x->track, y->track);
    CHECK(same_text(a, b, x->name, y->name) && same_text(a, b, x->group, y->group));
    CHECK(x->has == y->has && (!(x->has & ORR_SPAN_HAS_ID) || x->id == y->id));
    CHECK(!(x->has & ORR_SPAN_HAS_PEER) || x->peer == y->peer);
    CHECK(x->size == y->size && x->kind == y->kind && x->is_open == y->is_open);
    CHECK(x->collective == y->collective && x->members == y->members);
}

TEST(test_chrome_trace__our_own_comes_back_as_it_was)
{
    orr_timeline *a = everything(), *b;
    const char *path = "own.json.zst";
    CHECK_OK(orr_view_chrome(a, path, &err), &err);
    CHECK_OK(orr_chrome_trace_read(&path, 1, NULL, &b, &err), &err);
    const orr_timeline_parts *p = orr_timeline_view(a), *q = orr_timeline_view(b);
    CHECK_EQ_U(q->track_count, p->track_count);
    for (uint32_t i = 0; i < p->track_count; i++) {
        CHECK_EQ_U(q->tracks[i].rank, p->tracks[i].rank);
        CHECK(same_text(a, b, p->tracks[i].name, q->tracks[i].name));
    }
    CHECK_EQ_U(q->span_count, p->span_count);
    for (uint32_t i = 0; i < p->span_count; i++)
        check_same_span(a, b, &p->spans[p->order[i]], &q->spans[q->order[i]]);
    CHECK_EQ_U(q->arrow_count, p->arrow_count);
    for (uint32_t i = 0; i < p->arrow_count; i++) {
        CHECK_EQ_PS(q->arrows[i].left, p->arrows[i].left);
        CHECK_EQ_PS(q->arrows[i].arrived, p->arrows[i].arrived);
        check_same_span(a, b, &p->spans[p->arrows[i].from], &q->spans[q->arrows[i].from]);
        check_same_span(a, b, &p->spans[p->arrows[i].to], &q->spans[q->arrows[i].to]);
    }
    CHECK_EQ_U(q->sample_count, p->sample_count);
    for (uint32_t i = 0; i < p->sample_count; i++) {
        const orr_counter *x = &p->counters[p->samples[i].counter],
                          *y = &q->counters[q->samples[i].counter];
        CHECK_EQ_PS(q->samples[i].at, p->samples[i].at);
        CHECK_EQ(q->samples[i].value, p->samples[i].value);
        CHECK(x->rank == y->rank && same_text(a, b, x->name, y->name) &&
              same_text(a, b, x->unit, y->unit));
    }
    CHECK_EQ_U(q->note_count, 1);
    CHECK(same_text(a, b, p->notes[0].value, q->notes[0].value));
    orr_timeline_destroy(a);
    orr_timeline_destroy(b);
}

/* Written, read and written again: the same bytes. */
TEST(test_chrome_trace__twice_gives_the_same_file)
{
    orr_timeline *a = everything(), *b;
    const char *path = "first.json";
    CHECK_OK(orr_view_chrome(a, path, &err), &err);
    CHECK_OK(orr_chrome_trace_read(&path, 1, NULL, &b, &err), &err);
    CHECK_OK(orr_view_chrome(b, "second.json", &err), &err);
    orr_buf x = read_file("first.json"), y = read_file("second.json");
    CHECK_EQ_U(x.len, y.len);
    CHECK_BYTES(x.ptr, y.ptr, x.len);
    orr_buf_fini(&x);
    orr_buf_fini(&y);
    orr_timeline_destroy(a);
    orr_timeline_destroy(b);
}

/* ---- Kineto ---- */

static const char kineto[] =
    "{\"schemaVersion\": 1, \"distributedInfo\": {\"rank\": 6, \"world_size\": 8}, \"traceEvents\": [\n"
    "{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"aten::mm\",\"pid\":900,\"tid\":900,\"ts\":100.5,\"dur\":40},\n"
    "{\"ph\":\"X\",\"cat\":\"cuda_runtime\",\"name\":\"cudaLaunchKernel\",\"pid\":900,\"tid\":900,\"ts\":110,"
    "\"dur\":5.25,\"args\":{\"correlation\":7}},\n"
    "{\"ph\":\"s\",\"id\":7,\"pid\":900,\"tid\":900,\"ts\":110,\"cat\":\"ac2g\",\"name\":\"ac2g\"},\n"
    "{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"gemm\",\"pid\":0,\"tid\":7,\"ts\":120,\"dur\":30,"
    "\"args\":{\"stream\":7,\"correlation\":7}},\n"
    "{\"ph\":\"f\",\"id\":7,\"pid\":0,\"tid\":7,\"ts\":120,\"cat\":\"ac2g\",\"name\":\"ac2g\",\"bp\":\"e\"},\n"
    "{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"ncclDevKernel_ReduceScatter_Sum_bf16_RING_LL\",\"pid\":0,"
    "\"tid\":20,\"ts\":150,\"dur\":100,\"args\":{\"Collective name\":\"_reduce_scatter_base\","
    "\"In msg nelems\":1024,\"Out msg nelems\":128,\"Group size\":8,\"dtype\":\"BFloat16\","
    "\"Process Group Name\":\"0\"}},\n"
    "{\"ph\":\"X\",\"cat\":\"gpu_memcpy\",\"name\":\"Memcpy HtoD\",\"pid\":0,\"tid\":7,\"ts\":260,\"dur\":2,"
    "\"args\":{\"bytes\":4096}},\n"
    "{\"ph\":\"X\",\"cat\":\"user_annotation\",\"name\":\"ProfilerStep#1\",\"pid\":900,\"tid\":900,\"ts\":90,"
    "\"dur\":300},\n"
    "{\"ph\":\"X\",\"cat\":\"Trace\",\"name\":\"PyTorch Profiler (0)\",\"pid\":\"Spans\",\"tid\":\"x\",\"ts\":0,"
    "\"dur\":500},\n"
    "{\"ph\":\"i\",\"name\":\"[memory]\",\"pid\":900,\"tid\":900,\"ts\":105,\"s\":\"t\",\"args\":{"
    "\"Total Allocated\":5000,\"Device Type\":1,\"Device Id\":0,\"Bytes\":5000}},\n"
    "{\"name\":\"thread_name\",\"ph\":\"M\",\"ts\":0,\"pid\":0,\"tid\":7,\"args\":{\"name\":\"stream 7 \"}}\n"
    "], \"traceName\": \"x\"}";

TEST(test_chrome_trace__kineto_is_one_rank)
{
    orr_timeline *t = parse(kineto);
    const orr_timeline_parts *p = orr_timeline_view(t);
    const uint8_t kinds[] = {ORR_SPAN_HOST,       ORR_SPAN_HOST,   ORR_SPAN_COMPUTE,
                             ORR_SPAN_COLLECTIVE, ORR_SPAN_MEMORY, ORR_SPAN_OTHER};
    CHECK_EQ_U(p->span_count, 6); /* without the profiler's own frame */
    for (uint32_t i = 0; i < 6; i++)
        CHECK_EQ(p->spans[i].kind, kinds[i]);
    CHECK_EQ_U(p->track_count, 3);
    for (uint32_t k = 0; k < 3; k++)
        CHECK_EQ_U(p->tracks[k].rank, 6);
    check_name(t, p->tracks[1].name, "stream 7");
    CHECK_EQ_PS(p->spans[0].start, 100500000);
    CHECK_EQ_PS(p->spans[1].end, 115250000);
    const orr_timespan *c = &p->spans[3];
    CHECK_EQ(c->collective, ORR_COLL_REDUCE_SCATTER + 1);
    CHECK_EQ_U(c->members, 8);
    CHECK_EQ_U(c->size, 2048); /* 1,024 numbers of two bytes go in */
    check_name(t, c->group, "0");
    CHECK_EQ_U(p->spans[4].size, 4096);
    CHECK_EQ_U(p->arrow_count, 1);
    CHECK_EQ_U(p->arrows[0].from, 1); /* the innermost span there, not aten::mm */
    CHECK_EQ_U(p->arrows[0].to, 2);
    CHECK_EQ_U(p->counter_count, 1);
    CHECK_EQ(p->samples[0].value, 5000);
    check_name(t, p->counters[0].unit, "bytes");
    orr_timeline_destroy(t);
}

TEST(test_chrome_trace__files_that_do_not_say_their_rank_count_up)
{
    static const char text[] =
        "[{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"k\",\"pid\":0,\"tid\":7,\"ts\":1,\"dur\":1}]";
    const char *paths[] = {"a.json", "b.json"};
    orr_timeline *t;
    for (int i = 0; i < 2; i++)
        write_file(paths[i], text, sizeof text - 1);
    CHECK_OK(orr_chrome_trace_read(paths, 2, &(orr_chrome_trace_options){.rank = 4}, &t, &err),
             &err);
    const orr_timeline_parts *p = orr_timeline_view(t);
    CHECK_EQ_U(p->track_count, 2);
    CHECK_EQ_U(p->tracks[0].rank, 4);
    CHECK_EQ_U(p->tracks[1].rank, 5);
    orr_timeline_destroy(t);
}

/* ---- other files ---- */

TEST(test_chrome_trace__begin_and_end_make_spans)
{
    orr_timeline *t =
        parse("[{\"ph\":\"B\",\"name\":\"outer\",\"pid\":1,\"tid\":\"main\",\"ts\":0},"
              "{\"ph\":\"B\",\"name\":\"inner\",\"pid\":1,\"tid\":\"main\",\"ts\":2},"
              "{\"ph\":\"E\",\"pid\":1,\"tid\":\"main\",\"ts\":5},"
              "{\"ph\":\"X\",\"name\":\"x\",\"pid\":1,\"tid\":2,\"ts\":3,\"dur\":6},"
              "{\"ph\":\"C\",\"name\":\"load\",\"pid\":1,\"ts\":4,\"args\":{\"a\":1.6,\"b\":2}}]");
    const orr_timeline_parts *p = orr_timeline_view(t);
    CHECK_EQ_U(p->span_count, 3);
    CHECK_EQ_U(p->tracks[0].rank, 1);
    check_name(t, p->tracks[0].name, "thread \"main\"");
    CHECK_EQ_PS(p->spans[1].start, 2000000);
    CHECK_EQ_PS(p->spans[1].end, 5000000);
    CHECK(!p->spans[1].is_open && p->spans[0].is_open);
    CHECK_EQ_PS(p->spans[0].end, 9000000); /* it never ended: the last thing that happened */
    CHECK_EQ_U(p->counter_count, 2);
    CHECK_EQ(p->samples[0].value, 2); /* 1.6, rounded */
    orr_timeline_destroy(t);
}

/* 1700000000 s and a bit: every digit counts, and all times are relative to the hour before. */
TEST(test_chrome_trace__times_since_1970_lose_no_digit)
{
    orr_timeline *t = parse(
        "[{\"ph\":\"X\",\"name\":\"a\",\"pid\":0,\"tid\":0,\"ts\":1700000000123456.789,\"dur\":0.001},"
        "{\"ph\":\"X\",\"name\":\"b\",\"pid\":0,\"tid\":0,\"ts\":1700000000123457.790,\"dur\":1e-3}]");
    const orr_timeline_parts *p = orr_timeline_view(t);
    CHECK_EQ_PS(p->spans[1].start - p->spans[0].start, 1001000);
    CHECK_EQ_PS(p->spans[0].end - p->spans[0].start, 1000);
    CHECK_EQ_PS(p->spans[1].end - p->spans[1].start, 1000);
    orr_timeline_destroy(t);
}

TEST(test_chrome_trace__process_numbers_of_a_machine_are_no_ranks)
{
    orr_timeline *t =
        parse("[{\"ph\":\"X\",\"name\":\"a\",\"pid\":3000000,\"tid\":0,\"ts\":0,\"dur\":1},"
              "{\"ph\":\"X\",\"name\":\"b\",\"pid\":\"other\",\"tid\":0,\"ts\":0,\"dur\":1}]");
    const orr_timeline_parts *p = orr_timeline_view(t);
    CHECK_EQ_U(p->tracks[0].rank, 0);
    CHECK_EQ_U(p->tracks[1].rank, 1);
    orr_timeline_destroy(t);
}

/* ---- what is wrong ---- */

TEST(test_chrome_trace__faults_have_a_place)
{
    static const struct {
        const char *text, *says;
        uint32_t line;
    } bad[] = {
        {"", "an empty file", 1},
        {"7", "or a list", 1},
        {"{}", "no \"traceEvents\"", 1},
        {"{\"traceEvents\": {}}", "not a list", 1},
        {"[1]", "an event is an object", 1},
        {"[\n{\"name\":\"x\"}]", "\"ph\"", 2},
        {"[\n{\"ph\":\"X\",\"pid\":1}]", "no time", 2},
        {"[\n\n{\"ph\":\"X\",\"ts\":true}]", "not a number of microseconds", 3},
        {"[{\"ph\":\"X\",\"ts\":1,\"dur\":-1}]", "below 0", 1},
        {"[{\"ph\":\"X\",\"ts\":1,\n\"dur\":1e30}]", "not a number", 2},
        {"[{\"ph\":\"E\",\"ts\":1}]", "without a beginning", 1},
        {"[{\"ph\":\"B\",\"ts\":5},\n{\"ph\":\"E\",\"ts\":1}]", "before its beginning", 2},
        {"[{\"ph\":\"X\",\"ts\":1,\"dur\":1},{\"ph\":\"X\",\"ts\":99999999999999,\"dur\":1}]",
         "more than 26 days", 1},
        {"{\"distributedInfo\":{\"rank\":-1},\"traceEvents\":[]}", "-1", 1},
        {"[] []", "follows the end", 1},
        {"[{\"ph\":\"X\",\"ts\":1,\"dur\":1}", "", 1},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        orr_timeline *t;
        const orr_span bytes = {(const uint8_t *)bad[i].text, strlen(bad[i].text)};
        CHECK_CODE(orr_chrome_trace_parse(bytes, "x.json", NULL, &t, &err), ORR_EINPUT, &err);
        CHECK(t == NULL);
        CHECK_SAYS(&err, bad[i].says);
        CHECK_EQ_U(err.where.line, bad[i].line);
        CHECK_TEXT(err.where.path, "x.json");
    }
}

int main(void)
{
    const CMUnitTest tests[] = {
        RUN(test_chrome_trace__our_own_comes_back_as_it_was),
        RUN(test_chrome_trace__twice_gives_the_same_file),
        RUN(test_chrome_trace__kineto_is_one_rank),
        RUN(test_chrome_trace__files_that_do_not_say_their_rank_count_up),
        RUN(test_chrome_trace__begin_and_end_make_spans),
        RUN(test_chrome_trace__times_since_1970_lose_no_digit),
        RUN(test_chrome_trace__process_numbers_of_a_machine_are_no_ranks),
        RUN(test_chrome_trace__faults_have_a_place),
    };
    return RUN_ALL(tests);
}
