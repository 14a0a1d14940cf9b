/* SPDX-License-Identifier: Apache-2.0 */
/* test_coll_plan.c - a plan becomes a graph of messages per rank; its bytes add up; a wrong one is
 * refused.  Plans in both formats run in tests/cli/run_plan.sh. */
#include "models/collective/coll_plan_impl.h"

#include "check.h"

static orr_code parse(const char *text, coll_plan **out, orr_error *err)
{
    return coll_plan_parse((orr_span){(const uint8_t *)text, strlen(text)}, "p.xml", out, err);
}

/* Two ranks swap halves of an all-reduce of three chunks: rank 0 adds up chunks 0 and 1, rank 1
 * chunk 2. */
static const char swap[] =
    "<algo name='swap' ngpus='2' coll='allreduce' inplace='1'>"
    "<gpu id='0' i_chunks='3' o_chunks='0' s_chunks='0'><tb id='0' send='1' recv='1' chan='0'>"
    "<step s='0' type='s' srcbuf='i' srcoff='2' dstbuf='i' dstoff='2' cnt='1'/>"
    "<step s='1' type='rrcs' srcbuf='i' srcoff='0' dstbuf='i' dstoff='0' cnt='2'/>"
    "<step s='2' type='r' srcbuf='i' srcoff='2' dstbuf='i' dstoff='2' cnt='1'/></tb></gpu>"
    "<gpu id='1' i_chunks='3' o_chunks='0' s_chunks='0'><tb id='0' send='0' recv='0' chan='0'>"
    "<step s='0' type='s' srcbuf='i' srcoff='0' dstbuf='i' dstoff='0' cnt='2'/>"
    "<step s='1' type='rrcs' srcbuf='i' srcoff='2' dstbuf='i' dstoff='2' cnt='1'/>"
    "<step s='2' type='r' srcbuf='i' srcoff='0' dstbuf='i' dstoff='0' cnt='2'/></tb></gpu>"
    "</algo>";

static uint64_t bytes_sent(const coll_plan *p, const coll_program *g, uint32_t rank, uint64_t data)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < g->ranks[rank].count; i++)
        if (g->ranks[rank].steps[i].kind == COLL_STEP_SEND)
            sum += coll_step_bytes(p, &g->ranks[rank].steps[i], data);
    return sum;
}

static void test_coll_plan__makes_a_graph_per_rank(void **state)
{
    coll_plan *p;
    const coll_program *g, *again;
    orr_error err;
    (void)state;
    CHECK_OK(parse(swap, &p, &err), &err);
    CHECK_EQ(coll_plan_kind(p), ORR_COLL_ALL_REDUCE);
    CHECK_EQ_U(coll_plan_ranks(p), 2);
    CHECK(coll_plan_fits(p, 2, 1) && !coll_plan_fits(p, 3, 1));
    CHECK_OK(coll_plan_program(p, 100, 8, &g, &err), &err);
    CHECK_OK(coll_plan_program(p, 200, 8, &again, &err), &err);
    CHECK(g == again); /* no pipelines: one program for all sizes */
    CHECK_EQ_U(g->messages, 4);
    /* work, send; receive, work, send; receive, work */
    CHECK_EQ_U(g->ranks[0].count, 7);
    const coll_step *s = g->ranks[0].steps;
    CHECK_EQ(s[0].kind, COLL_STEP_WORK);
    CHECK_EQ_U(s[0].waits, 0);
    CHECK_EQ(s[1].kind, COLL_STEP_SEND);
    CHECK_EQ_U(s[1].peer, 1);
    CHECK_EQ(s[2].kind, COLL_STEP_RECV); /* after the work, not after the message has arrived */
    CHECK_EQ_U(s[0].after_count, 2);
    CHECK_EQ_U(s[1].after_count, 0);
    CHECK_EQ(s[3].how, ORR_COLL_REDUCED | ORR_COLL_SENT_BACK);
    /* 100 bytes in three chunks: 33, 33 and 34. */
    CHECK_EQ_U(bytes_sent(p, g, 0, 100), 34 + 66);
    CHECK_EQ_U(bytes_sent(p, g, 1, 100), 66 + 34);
    CHECK_EQ_U(bytes_sent(p, g, 0, 0), 2); /* a message has a byte at least */
    /* One slot: the second send of the connection waits for the first. */
    CHECK_OK(coll_plan_program(p, 100, 1, &g, &err), &err);
    CHECK_EQ_U(g->ranks[0].steps[1].after_count, 1);
    coll_plan_destroy(p);
}

static void refuse(const char *from, const char *to, const char *says)
{
    char text[sizeof swap + 64];
    const char *at = strstr(swap, from);
    coll_plan *p;
    orr_error err;
    snprintf(text, sizeof text, "%.*s%s%s", (int)(at - swap), swap, to, at + strlen(from));
    CHECK_CODE(parse(text, &p, &err), ORR_EINPUT, &err);
    CHECK_SAYS(&err, says);
    CHECK(!p);
}

static void test_coll_plan__refuses_what_is_no_such_collective(void **state)
{
    (void)state;
    refuse("'rrcs'", "'rcs'", "this does not implement all-reduce");
    refuse("coll='allreduce'", "coll='alltoall'", "cannot be divided");
    refuse("type='s' srcbuf='i' srcoff='2'", "type='s' srcbuf='i' srcoff='0'",
           "this does not implement all-reduce");
    refuse("cnt='2'/><step s='2'", "cnt='1'/><step s='2'", "receives 1 chunks, but GPU 1 sent 2");
    refuse("type='r'", "type='nop'", "never receives");
    refuse("s='1' type='rrcs'", "s='1' depid='3' deps='0' type='rrcs'",
           "a step that does not exist");
}

/* An all-gather of two ranks in JSON, with ' for ": each puts its chunk into the other's output.
 * `first` comes before that, `second` is what the other thread block does. */
static orr_code parse_gather(const char *first, const char *second, coll_plan **out, orr_error *err)
{
    static const char gpu[] =
        "{'id': %u, 'input_chunks': 1, 'output_chunks': 2, 'scratch_chunks': 3,"
        "'channels': [{'channel_type': 'memory', 'connected_to': [%u]}],"
        "'remote_buffers': [{'rank': %u, 'type': 'o'}], 'threadblocks': [{'id': 0,"
        "'channels': [{'channel_type': 'memory', 'channel_ids': [0]}],"
        "'remote_buffer_refs': [{'access_channel_type': 'memory', 'remote_buffer_ids': [0]}],"
        "'ops': [%s, {'name': 'put', 'channel_type': 'memory',"
        "'src_buff': [{'type': 'o', 'index': %u, 'size': 1}],"
        "'dst_buff': [{'buffer_id': 0, 'index': %u, 'size': 1}]},"
        "{'name': 'signal', 'channel_type': 'memory', 'channel_ids': [0]},"
        "{'name': 'wait', 'channel_type': 'memory', 'channel_ids': [0]}]},"
        "{'id': 1, 'ops': [%s]}]}%s";
    char text[4096];
    size_t n = (size_t)snprintf(text, sizeof text,
                                "{'name': 'gather', 'collective': 'allgather', 'protocol': 'LL',"
                                "'inplace': true, 'max_message_size': 1000, 'gpus': [");
    for (unsigned r = 0; r < 2; r++)
        n += (size_t)snprintf(text + n, sizeof text - n, gpu, r, 1 - r, 1 - r, first, r, r, second,
                              r ? "]}" : ",");
    for (size_t i = 0; i < n; i++)
        text[i] = text[i] == '\'' ? '"' : text[i];
    return parse(text, out, err);
}

static void test_coll_plan__needs_no_error_struct(void **state)
{
    coll_plan *p;
    (void)state;
    CHECK_EQ(parse(swap, &p, NULL), ORR_OK);
    coll_plan_destroy(p);
    CHECK_EQ(parse_gather("", "", &p, NULL), ORR_EINPUT); /* an empty operation */
    CHECK_EQ(parse_gather("{'name': 'nop'}",
                          "{'name': 'barrier', 'barrier_id': 0,"
                          "'num_threadblocks': 2}",
                          &p, NULL),
             ORR_EINPUT);
}

/* An entry for each barrier that is used, not for each possible number. */
static void test_coll_plan__numbers_barriers_as_they_come(void **state)
{
    const char *const meet = "{'name': 'barrier', 'barrier_id': 65536, 'num_threadblocks': 2}";
    coll_plan *p;
    orr_error err;
    (void)state;
    CHECK_OK(parse_gather(meet, meet, &p, &err), &err);
    CHECK_EQ_U(p->barriers, 2); /* one per rank */
    coll_plan_destroy(p);
}

/* Not for the operation after it, a put that waits for nothing. */
static void test_coll_plan__blames_the_barrier_that_blocks(void **state)
{
    const char *const meet = "{'name': 'barrier', 'barrier_id': 0, 'num_threadblocks': 3}";
    coll_plan *p;
    orr_error err;
    (void)state;
    CHECK_CODE(parse_gather(meet, meet, &p, &err), ORR_EINPUT, &err);
    CHECK_SAYS(&err, "GPU 0, thread block 0 waits for a barrier of 3 thread blocks, of which 2 "
                     "arrived");
}

/* With a single source there is nothing to reduce, so no step comes before these packets. */
static void test_coll_plan__stores_packets_before_any_step(void **state)
{
    const char *const store =
        "{'name': 'recpkt', 'src_buff': [{'type': 'i', 'index': 0, 'size': 1}],"
        "'dst_buff': [{'type': 's', 'index': 0, 'size': 1},"
        "{'type': 's', 'index': 1, 'size': 1}]}";
    const char *const unpack =
        "{'name': 'upkt', 'src_buff': [{'type': 's', 'index': 1, 'size': 1}],"
        "'dst_buff': [{'type': 's', 'index': 2, 'size': 1}]}";
    coll_plan *p;
    orr_error err;
    (void)state;
    CHECK_OK(parse_gather(store, unpack, &p, &err), &err);
    coll_plan_destroy(p);
}

/* 2^63 bytes on each of two ranks are 2^64: too many for the plan's 1,000, and for a pipeline. */
static void test_coll_plan__sizes_beyond_64_bits_do_not_wrap(void **state)
{
    const char *const pieces =
        "{'name': 'pipeline', 'iter_context': {'unit_size': 1, 'num_chunks': 2}, 'ops': [{"
        "'name': 'copy', 'src_buff': [{'type': 'i', 'index': 0, 'size': 1}],"
        "'dst_buff': [{'type': 's', 'index': 0, 'size': 1}]}]}";
    const uint64_t data = UINT64_C(1) << 63;
    const coll_program *g;
    coll_plan *p;
    orr_error err;
    (void)state;
    CHECK_OK(parse_gather(pieces, "", &p, &err), &err);
    CHECK(coll_plan_fits(p, 2, 500) && !coll_plan_fits(p, 2, 501) && !coll_plan_fits(p, 2, data));
    CHECK_CODE(coll_plan_program(p, data, 8, &g, &err), ORR_EINPUT, &err);
    CHECK_SAYS(&err, "a pipeline of more than 1048576 pieces");
    coll_plan_destroy(p);
}

/* Place k of P begins at byte floor(k x all / P).  With all = 3P - 1 that is 3k - 1 for 0 < k <= P,
 * so every place but the first has three bytes; k x (P - 1) reaches 2^64 between the two ends. */
static void test_coll_plan__bytes_are_exact_for_the_most_places(void **state)
{
    const uint64_t places = (uint64_t)PLAN_MOST_CHUNKS * PLAN_MOST_PARTS, all = 3 * places - 1;
    const coll_plan p = {
        .kind = ORR_COLL_ALL_REDUCE, .chunks = PLAN_MOST_CHUNKS, .parts = PLAN_MOST_PARTS};
    const uint32_t at = (uint32_t)(UINT64_MAX / (places - 1));
    coll_step s = {.factor = 1, .from = at, .to = at + 1, .unit = COLL_NO_UNIT};
    (void)state;
    CHECK_EQ_U(coll_step_bytes(&p, &s, all), 3);
    s.factor = 2;
    CHECK_EQ_U(coll_step_bytes(&p, &s, all), 6);
    /* Packets of all data: twice as many bytes as fit. */
    const coll_plan one = {.kind = ORR_COLL_ALL_REDUCE, .chunks = 1, .parts = 1};
    s.from = 0;
    s.to = 1;
    CHECK_EQ_U(coll_step_bytes(&one, &s, (UINT64_C(1) << 63) + 1), UINT64_MAX);
}

/* Places have numbers of 32 bits: 2 x 2^20 chunks of 5,040 parts are 2^33.3. */
static void test_coll_plan__refuses_more_places_than_it_can_number(void **state)
{
    static uint32_t scratch[2];
    static char path[] = "p.json";
    const coll_plan p = {.path = path,
                         .kind = ORR_COLL_ALL_REDUCE,
                         .ranks = 2,
                         .chunks = PLAN_MOST_CHUNKS,
                         .parts = PLAN_MOST_PARTS,
                         .scratch = scratch};
    orr_arena *a = orr_arena_create();
    coll_program g;
    orr_error err;
    (void)state;
    CHECK(a);
    CHECK_CODE(plan_build(&p, a, false, 0, 8, &g, &err), ORR_EINPUT, &err);
    CHECK_SAYS(&err, "10569646080 parts of chunks");
    orr_arena_destroy(a);
}

int main(void)
{
    const CMUnitTest tests[] = {
        RUN(test_coll_plan__makes_a_graph_per_rank),
        RUN(test_coll_plan__refuses_what_is_no_such_collective),
        RUN(test_coll_plan__needs_no_error_struct),
        RUN(test_coll_plan__numbers_barriers_as_they_come),
        RUN(test_coll_plan__blames_the_barrier_that_blocks),
        RUN(test_coll_plan__stores_packets_before_any_step),
        RUN(test_coll_plan__sizes_beyond_64_bits_do_not_wrap),
        RUN(test_coll_plan__bytes_are_exact_for_the_most_places),
        RUN(test_coll_plan__refuses_more_places_than_it_can_number),
    };
    return RUN_ALL(tests);
}
