/* SPDX-License-Identifier: Apache-2.0 */
/* room: nccl_generator, nsight */
/* test_nccl.c - from made-up exports to schedules: how many messages each algorithm sends, by a
 * formula; what is left out, what is refused; and the small parts: hashes, words of streams, names
 * of files, lines of logs. */
#include "check.h"

#define synth_require(condition, what) check_true((condition), (what))
static inline void check_true(bool condition, const char *what)
{
    if (!condition)
        check_fail(__FILE__, __LINE__, "%s", what);
}

#include "compat/nccl_generator/nccl_generator.h"
#include "nsys_synth.h"
#include "sources/nccl/nccl_write.h"

#include <sys/stat.h>

static orr_error err;

static orr_code convert(const synth *made, orr_nccl_options opt, orr_nccl_report *r)
{
    char clean[100];
    snprintf(clean, sizeof clean, "rm -rf %s", made->folder);
    CHECK(system(clean) == 0);
    mkdir(made->folder, 0777);
    synth_write(made);
    const char *const paths[] = {made->folder};
    if (!opt.output)
        opt.output = "out.goal";
    return orr_nccl_convert(paths, 1, &opt, r, &err);
}

/* ---- small parts ---- */

TEST(test_nccl__hashes_are_those_of_python_tuples)
{
    CHECK_EQ_U(ncg_tuple_hash((uint64_t[]){0, 0, 0}, 3), UINT64_C(3010437511937009226));
    CHECK_EQ_U(ncg_tuple_hash((uint64_t[]){1, 6, 0}, 3), UINT64_C(17362250775304672515));
    CHECK_EQ_U(ncg_tuple_hash((uint64_t[]){3, 4, 17}, 3), UINT64_C(11896069093394204156));
}

TEST(test_nccl__words_of_streams_tell_the_parallelism)
{
    static const struct {
        const char *letters;
        uint32_t kind;
    } all[] = {{"A", 2},   {"AD", 2},  {"AADD", 2}, {"AADDAA", 2}, {"AAD", 0}, {"ADD", 0},
               {"D", 0},   {"", 0},    {"B", 0},    {"EF", 1},     {"FE", 1},  {"E", 0},
               {"EBF", 1}, {"ADB", 0}, {"ADEE", 1}, {"ADAD", 2}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        CHECK_EQ_U(ncg_parallelism(all[i].letters, strlen(all[i].letters)), all[i].kind);
}

static void check_node(const char *name, const char *node)
{
    const orr_str found = nccl_node_of_file(orr_str_of(name));
    CHECK(found.len == strlen(node) && memcmp(found.ptr, node, found.len) == 0);
}

TEST(test_nccl__nodes_are_in_the_names_of_files)
{
    check_node("trace_nid001200.sqlite", "001200");
    check_node("nidx_nid7.sqlite", "7");
    check_node("profile_12_34_56.sqlite", "34");
    check_node("my_profile_12_34_56.sqlite", "34");
    check_node("profile_12_34.sqlite", "0");
    check_node("profile_12_34_56.sqlite.sqlite", "0");
    check_node("rank0.sqlite", "0");
}

TEST(test_nccl__lines_of_a_log)
{
    static const char text[] =
        "noise\nnid0:1000:1005 [0] NCCL INFO ncclCommInitRankConfig comm 0x5 rank 2 nranks 4 cudaDev 0 commId 0xABC - Init\n"
        "a:b:c [0] NCCL INFO ncclCommInitRankConfig comm 0x5 rank 2 nranks 4 commId 0xabc\n"
        "nid0:7 [0] NCCL INFO ncclCommInitRankConfig comm 0x5 rank 2 nranks 4 commId 0xabc\n"
        "nid0:7:8 [0] NCCL INFO ncclCommInitRankConfig comm 0x5 nranks 4 commId 0xabc\n"
        "nid0:7:8 [0] NCCL INFO ncclCommInitRankConfig rank 1 commId";
    nccl_log l = {.path = "log", .at = text, .end = text + sizeof text - 1};
    nccl_log_line line;
    CHECK_OK(nccl_log_next(&l, &line, &err), &err);
    CHECK(line.pid == 1000 && line.rank == 2 && line.ident.len == 5);
    CHECK(nccl_log_next(&l, &line, &err) == ORR_END);
    static const char large[] =
        "h:1:2 [0] NCCL INFO ncclCommInitRankConfig rank 4294967296 commId 0x1";
    l = (nccl_log){.path = "log", .at = large, .end = large + sizeof large - 1};
    CHECK_CODE(nccl_log_next(&l, &line, &err), ORR_EINPUT, &err);
    CHECK_EQ_U(err.where.line, 1);
}

TEST(test_nccl__a_message_with_one_end_is_found)
{
    nccl_matching *m = nccl_matching_create();
    uint64_t unmatched;
    const nccl_match_key sent = {
        .from = 1, .to = 2, .context = 3, .id = 4, .bytes = 5, .is_send = true};
    nccl_match_key received = sent;
    received.is_send = false;
    CHECK(m && nccl_matching_add(m, &sent));
    CHECK_CODE(nccl_matching_check(m, &unmatched, &err), ORR_EINPUT, &err);
    CHECK_SAYS(&err, "rank 1 sends 1 messages to rank 2, which receives 0");
    CHECK_EQ_U(unmatched, 1);
    CHECK(nccl_matching_add(m, &received));
    CHECK_OK(nccl_matching_check(m, &unmatched, &err), &err);
    received.bytes = 6; /* as many, but not the same */
    CHECK(nccl_matching_add(m, &sent) && nccl_matching_add(m, &received));
    CHECK_CODE(nccl_matching_check(m, &unmatched, &err), ORR_EINPUT, &err);
    CHECK_SAYS(&err, "do not agree");
    nccl_matching_destroy(m);
}

/* ---- algorithms ---- */

/* One collective on two nodes of two GPUs, two channels, protocol LL: one message for each step. */
static uint64_t messages_of(uint32_t only, uint32_t algorithm)
{
    orr_nccl_report r;
    const synth s = {.folder = "t",
                     .nodes = 2,
                     .gpus = 2,
                     .channels = 2,
                     .rounds = 1,
                     .only = only,
                     .algorithm = algorithm};
    CHECK_OK(convert(&s, (orr_nccl_options){0}, &r), &err);
    CHECK_EQ_U(r.ranks, 4);
    return r.messages;
}

TEST(test_nccl__each_algorithm_sends_what_it_must)
{
    enum { N = 4, CHANNELS = 2, LOG = 2 };
    CHECK_EQ_U(messages_of(1, 1), CHANNELS * N * 2 * (N - 1)); /* ring all-reduce: round twice */
    CHECK_EQ_U(messages_of(1, 0), CHANNELS * 2 * (N - 1));     /* tree: each edge up and down */
    CHECK_EQ_U(messages_of(2, 1),
               CHANNELS * N * (N - 1)); /* all-gather, reduce-scatter: round once */
    CHECK_EQ_U(messages_of(3, 1), CHANNELS * N * (N - 1));
    CHECK_EQ_U(messages_of(4, 1), CHANNELS * (N - 1)); /* broadcast: along the ring */
    CHECK_EQ_U(messages_of(1, ORR__NVLS), CHANNELS * 2 * N * (N - 1));
    CHECK_EQ_U(messages_of(1, ORR__COLLNET_DIRECT), CHANNELS * 2 * N * (N - 1));
    CHECK_EQ_U(messages_of(2, ORR__NVLS), CHANNELS * N * (N - 1));
    CHECK_EQ_U(messages_of(3, ORR__NVLS), CHANNELS * N * (N - 1));
    CHECK_EQ_U(messages_of(1, ORR__COLLNET_CHAIN), CHANNELS * 2 * (N - 1));
    CHECK_EQ_U(messages_of(1, ORR__NVLS_TREE), CHANNELS * 2 * (N - 1));
    CHECK_EQ_U(messages_of(2, ORR__PAT), CHANNELS * N * LOG);
    CHECK_EQ_U(messages_of(3, ORR__PAT), CHANNELS * N * LOG);
}

TEST(test_nccl__an_algorithm_that_nobody_knows)
{
    orr_nccl_report r;
    const synth s = {
        .folder = "t", .nodes = 2, .gpus = 1, .channels = 1, .rounds = 1, .algorithm = 9};
    CHECK_CODE(convert(&s, (orr_nccl_options){0}, &r), ORR_EINPUT, &err);
    CHECK_SAYS(&err, "algorithm 9 of ncclAllReduce");
    CHECK_CODE(convert(&(synth){.folder = "t",
                                .nodes = 2,
                                .gpus = 1,
                                .channels = 1,
                                .rounds = 1,
                                .algorithm = ORR__NVLS},
                       (orr_nccl_options){.rules = &ncg_rules}, &r),
               ORR_EINPUT, &err);
}

/* ---- forms of input ---- */

static void read_all(const char *path, char **text, size_t *size)
{
    FILE *f = fopen(path, "rb");
    CHECK(f != NULL);
    *text = malloc(1 << 22);
    CHECK(*text != NULL);
    *size = fread(*text, 1, 1 << 22, f);
    fclose(f);
}

static void check_same_output(const synth *a,
                              orr_nccl_options x,
                              const synth *b,
                              orr_nccl_options y)
{
    char *texts[2];
    size_t sizes[2];
    orr_nccl_report r;
    CHECK_OK(convert(a, x, &r), &err);
    read_all("out.goal", &texts[0], &sizes[0]);
    CHECK_OK(convert(b, y, &r), &err);
    read_all("out.goal", &texts[1], &sizes[1]);
    CHECK_EQ_U(sizes[0], sizes[1]);
    CHECK(memcmp(texts[0], texts[1], sizes[0]) == 0);
    free(texts[0]);
    free(texts[1]);
}

TEST(test_nccl__texts_by_number_and_little_memory_change_nothing)
{
    const synth plain = {.folder = "t", .nodes = 2, .gpus = 3, .channels = 2, .rounds = 9};
    synth numbered = plain;
    numbered.has_text_ids = true;
    check_same_output(&plain, (orr_nccl_options){0}, &numbered, (orr_nccl_options){0});
    check_same_output(&plain, (orr_nccl_options){0}, &plain, (orr_nccl_options){.memory = 1});
    check_same_output(&plain, (orr_nccl_options){.rules = &ncg_rules}, &plain,
                      (orr_nccl_options){.rules = &ncg_rules, .memory = 1});
}

TEST(test_nccl__payloads_are_calls)
{
    orr_nccl_report r;
    /* 4 collectives and an exchange; sizes below 64 KiB: one channel, LL.  On 3 ranks: 3*4 + 3*2 +
     * 3*2 + 2 + 3 messages */
    const synth s = {
        .folder = "t", .nodes = 3, .gpus = 1, .channels = 4, .rounds = 4, .has_payloads = true};
    CHECK_OK(convert(&s, (orr_nccl_options){0}, &r), &err);
    CHECK(r.is_inferred && r.calls == 3 * 6 && r.kernels == 3 * 5);
    CHECK_EQ_U(r.messages, 12 + 6 + 6 + 2 + 3);
    CHECK_CODE(convert(&s, (orr_nccl_options){.rules = &ncg_rules}, &r), ORR_EINPUT,
               &err); /* the old one knows none */
}

TEST(test_nccl__payloads_as_json_by_number)
{
    orr_sqlite *db;
    orr_nccl_report r;
    const char *const paths[] = {"json.sqlite"};
    const orr_nccl_options opt = {.output = "json.goal"};
    CHECK_OK(orr_sqlite_create("json.sqlite", &db, &err), &err);
    CHECK_OK(
        orr_sqlite_run(
            db,
            "CREATE TABLE NVTX_EVENTS (start INTEGER, end INTEGER, textId INTEGER, globalTid INTEGER, jsonTextId INTEGER);"
            "CREATE TABLE StringIds (id INTEGER, value TEXT);"
            "INSERT INTO StringIds VALUES (1, 'ncclCommInitRankConfig'),"
            "(2, '{\"NCCL communicator ID\": 7, \"No. of ranks\": 2, \"Rank\": 1}'),"
            "(3, '{\"NCCL communicator ID\": 7, \"No. of ranks\": 2, \"Rank\": 0}'), (4, 'ncclAllReduce'),"
            "(5, '{\"NCCL communicator ID\": 7, \"Message size [bytes]\": \"2,097,152\"}');"
            "INSERT INTO NVTX_EVENTS VALUES (1, 2, 1, 16777216, 2), (1, 2, 1, 33554432, 3), (5, 6, 4, 16777216, 5),"
            "(5, 6, 4, 33554432, 5)",
            &err),
        &err);
    orr_sqlite_close(db);
    CHECK_OK(orr_nccl_convert(paths, 1, &opt, &r, &err), &err);
    CHECK(!r.is_inferred && r.ranks == 2 && r.communicators == 1 && r.calls == 2);
    /* 32 channels of 64 KiB, a ring of two: each sends its half twice, a slice of 32 KiB each
     * time */
    CHECK_EQ_U(r.messages, 32 * 2 * 2);
}

TEST(test_nccl__calls_that_a_rank_lacks_are_left_out)
{
    orr_nccl_report all, some;
    synth s = {.folder = "t", .nodes = 2, .gpus = 2, .channels = 1, .rounds = 8};
    CHECK_OK(convert(&s, (orr_nccl_options){0}, &all), &err);
    s.lost_calls = 4;
    CHECK_OK(convert(&s, (orr_nccl_options){0}, &some), &err);
    CHECK(some.messages < all.messages && some.left_out_calls > 0 && some.unmatched == 0);
    CHECK_OK(convert(&s, (orr_nccl_options){.allows_unmatched = true}, &some), &err);
    CHECK(some.unmatched > 0);
}

TEST(test_nccl__a_missing_file_is_a_missing_rank)
{
    orr_nccl_report r;
    const char *const paths[] = {"t/trace_nid000000.sqlite"};
    const orr_nccl_options opt = {.output = "missing.goal"};
    CHECK_OK(convert(&(synth){.folder = "t", .nodes = 2, .gpus = 2, .channels = 1, .rounds = 2},
                     (orr_nccl_options){0}, &r),
             &err);
    CHECK_CODE(orr_nccl_convert(paths, 1, &opt, &r, &err), ORR_EINPUT, &err);
    CHECK_SAYS(
        &err, "communicator 0xfeed has 4 ranks, but the exports hold 2 of them: rank 2 is missing");
    CHECK(access("missing.goal", F_OK) != 0);
}

TEST(test_nccl__tags_fit_what_they_were_asked_to_fit)
{
    orr_nccl_report r;
    const synth s = {.folder = "t", .nodes = 2, .gpus = 1, .channels = 2, .rounds = 40};
    CHECK_OK(convert(&s, (orr_nccl_options){.tag_bits = 32}, &r), &err);
    CHECK(r.most_tag < UINT32_MAX);
    CHECK_OK(convert(&s, (orr_nccl_options){.id_width = 4, .context_width = 6}, &r), &err);
    CHECK_CODE(convert(&s, (orr_nccl_options){.context_width = 1}, &r), ORR_EINPUT,
               &err); /* 41 contexts */
    CHECK_CODE(
        convert(&s, (orr_nccl_options){.id_width = 1, .context_width = 10, .tag_bits = 32}, &r),
        ORR_EINPUT, &err);
}

TEST(test_nccl__the_same_seed_gives_the_same_bytes)
{
    const synth s = {.folder = "t", .nodes = 2, .gpus = 1, .channels = 1, .rounds = 5};
    const orr_nccl_options opt = {.simple_table = "table.json", .has_seed = true, .seed = 7};
    synth_write_table("table.json");
    check_same_output(&s, opt, &s, opt);
}

/* ---- a timeline ---- */

TEST(test_nccl__an_export_is_a_timeline)
{
    orr_nccl_report r;
    orr_timeline *t;
    CHECK_OK(convert(&(synth){.folder = "t", .nodes = 1, .gpus = 2, .channels = 1, .rounds = 3},
                     (orr_nccl_options){0}, &r),
             &err);
    CHECK_OK(orr_nsys_timeline("t/trace_nid000000.sqlite", &t, &err), &err);
    const orr_timeline_parts *p = orr_timeline_view(t);
    CHECK_EQ_U(p->track_count, 4); /* a thread and a stream for each of two processes */
    CHECK_EQ_U(p->span_count, r.rows);
    CHECK_EQ(p->start, 0);
    uint64_t collectives = 0;
    for (uint32_t i = 0; i < p->span_count; i++)
        if (p->spans[i].kind == ORR_SPAN_COLLECTIVE) {
            collectives++;
            CHECK_EQ_PS(p->spans[i].end - p->spans[i].start, 10000 * 1000); /* 10 us each */
            CHECK(p->spans[i].collective != 0);
        }
    CHECK_EQ_U(collectives, 2 * 3);
    orr_timeline_destroy(t);
}

int main(void)
{
    const CMUnitTest tests[] = {
        RUN(test_nccl__hashes_are_those_of_python_tuples),
        RUN(test_nccl__words_of_streams_tell_the_parallelism),
        RUN(test_nccl__nodes_are_in_the_names_of_files),
        RUN(test_nccl__lines_of_a_log),
        RUN(test_nccl__a_message_with_one_end_is_found),
        RUN(test_nccl__each_algorithm_sends_what_it_must),
        RUN(test_nccl__an_algorithm_that_nobody_knows),
        RUN(test_nccl__texts_by_number_and_little_memory_change_nothing),
        RUN(test_nccl__payloads_are_calls),
        RUN(test_nccl__payloads_as_json_by_number),
        RUN(test_nccl__calls_that_a_rank_lacks_are_left_out),
        RUN(test_nccl__a_missing_file_is_a_missing_rank),
        RUN(test_nccl__tags_fit_what_they_were_asked_to_fit),
        RUN(test_nccl__the_same_seed_gives_the_same_bytes),
        RUN(test_nccl__an_export_is_a_timeline),
    };
    return RUN_ALL(tests);
}
