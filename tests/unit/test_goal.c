/* SPDX-License-Identifier: Apache-2.0 */
/* Schedules in memory, their text and their binary form.  The binary file below was put together by
 * hand from goal.md, section 2. */
#include "files.h"

#include <orrery/lab/goal.h>

static orr_error err;

static orr_goal *parse(const char *text, orr_goal_remarks *remarks)
{
    orr_goal *g;
    const orr_span bytes = {(const uint8_t *)text, strlen(text)};
    CHECK_OK(orr_goal_parse(bytes, "x.goal", remarks, &g, &err), &err);
    return g;
}

static void bad(const char *text, uint32_t line, uint32_t column, const char *words)
{
    orr_goal *g;
    const orr_span bytes = {(const uint8_t *)text, strlen(text)};
    CHECK_CODE(orr_goal_parse(bytes, "x.goal", NULL, &g, &err), ORR_EINPUT, &err);
    CHECK(g == NULL);
    CHECK_SAYS(&err, words);
    CHECK_EQ_U(err.where.line, line);
    CHECK_EQ_U(err.where.column, column);
}

static void check_written(const orr_goal *g, orr_goal_form form, const void *bytes, size_t len)
{
    CHECK_OK(orr_goal_write(g, "out", form, &err), &err);
    check_file("out", bytes, len);
}

static void check_text(const orr_goal *g, const char *text)
{
    check_written(g, ORR_GOAL_TEXT, text, strlen(text));
}

/* Rank 0 sends 10 bytes after 5 ns of work and works on 3 ns beside it; rank 1 receives. */
static orr_goal *pair(void)
{
    static const orr_goal_op calc = {.kind = ORR_GOAL_CALC, .size = 5, .cpu = 1};
    static const orr_goal_op send = {.kind = ORR_GOAL_SEND, .size = 10, .peer = 1, .tag = 7};
    static const orr_goal_op beside = {.kind = ORR_GOAL_CALC, .size = 3};
    static const orr_goal_op recv = {
        .kind = ORR_GOAL_RECV, .size = 10, .peer = ORR_GOAL_ANY, .tag = 7, .nic = 2};
    orr_goal *g;
    uint32_t a, b, c;
    CHECK_OK(orr_goal_create(2, &g, &err), &err);
    CHECK_OK(orr_goal_begin_rank(g, &err), &err);
    CHECK_OK(orr_goal_add(g, &calc, &a, &err), &err);
    CHECK_OK(orr_goal_add(g, &send, &b, &err), &err);
    CHECK_OK(orr_goal_add(g, &beside, &c, &err), &err);
    CHECK_OK(orr_goal_require(g, b, a, ORR_GOAL_FINISHED, &err), &err);
    CHECK_OK(orr_goal_require(g, c, b, ORR_GOAL_STARTED, &err), &err);
    CHECK_OK(orr_goal_end_rank(g, &err), &err);
    CHECK_OK(orr_goal_begin_rank(g, &err), &err);
    CHECK_OK(orr_goal_add(g, &recv, NULL, &err), &err);
    CHECK_OK(orr_goal_end_rank(g, &err), &err);
    return g;
}

static const char pair_text[] = "num_ranks 2\n"
                                "\nrank 0 {\n"
                                "l1: calc 5 cpu 1\n"
                                "l2: send 10b to 1 tag 7\n"
                                "l2 requires l1\n"
                                "l3: calc 3\n"
                                "l3 irequires l2\n"
                                "}\n"
                                "\nrank 1 {\n"
                                "l1: recv 10b from -1 tag 7 nic 2\n"
                                "}\n";

#define U32(v) (v), 0, 0, 0
#define U64(v) U32(v), U32(0)
#define ANY32 0xff, 0xff, 0xff, 0xff
#define NODE(waits, kind, peer, size, tag, cpu, nic) \
    U32(waits), (kind), peer, U64(size), U32(tag), (cpu), (nic)

/* 14 + 2 * 16 bytes of head: relative to byte 8 the first record starts at 38.  It has 8 + 4 + 3 *
 * 39 + 2 * 4 = 137 bytes, so it ends at 175; the second has 8 + 4 + 39 = 51 and ends at 226. */
static const uint8_t pair_binary[] = {
    0x7f,
    0x10,
    0,
    0,
    0,
    0,
    0,
    0, /* 4223 */
    U32(2),
    1,
    2,
    U64(38),
    U64(175),
    U64(175),
    U64(226),
    U32(3),
    U32(1),
    U32(0), /* three nodes, one root: node 0 */
    NODE(0, 3, U32(0), 5, 0, 1, 0),
    U32(1),
    U32(0),
    U32(0),
    U32(1),
    NODE(1, 1, U32(1), 10, 7, 0, 0),
    U32(0),
    U32(1),
    U32(1),
    U32(1),
    NODE(1, 3, U32(0), 3, 0, 0, 0),
    U32(0),
    U32(2),
    U32(0),
    U32(2),
    U32(1),
    U32(2), /* who waits: node 1 for node 0, node 2 for the start of node 1 */
    U32(1),
    U32(1),
    U32(0),
    NODE(0, 2, ANY32, 10, 7, 0, 2),
    U32(0),
    U32(0),
    U32(0),
    U32(0),
};

TEST(test_goal__is_built_rank_by_rank)
{
    orr_goal *g = pair();
    uint32_t count;
    CHECK_EQ_U(orr_goal_ranks(g), 2);
    CHECK_EQ_U(orr_goal_ops(g, 0), 3);
    CHECK_EQ_U(orr_goal_ops(g, 1), 1);
    CHECK_EQ_U(orr_goal_pending(g, 0, 0), 0);
    CHECK_EQ_U(orr_goal_pending(g, 0, 1), 1);
    CHECK_EQ_U(orr_goal_successors(g, 0, 0, ORR_GOAL_FINISHED, &count)[0], 1);
    CHECK_EQ_U(count, 1);
    CHECK_EQ_U(orr_goal_successors(g, 0, 1, ORR_GOAL_STARTED, &count)[0], 2);
    CHECK_EQ_U(count, 1);
    orr_goal_successors(g, 0, 2, ORR_GOAL_FINISHED, &count);
    CHECK_EQ_U(count, 0);
    const orr_goal_totals t = orr_goal_count(g);
    CHECK_EQ_U(t.sends, 1);
    CHECK_EQ_U(t.recvs, 1);
    CHECK_EQ_U(t.calcs, 2);
    CHECK_EQ_U(t.edges, 2);
    CHECK_EQ_U(t.bytes_sent, 10);
    CHECK_EQ_U(t.calc_ns, 8);
    CHECK_EQ_U(t.cpus, 2);
    CHECK_EQ_U(t.nics, 3);
    CHECK_EQ_U(t.wildcards, 1);
    orr_goal_free(g);
}

TEST(test_goal__has_a_text_and_a_binary_form_that_say_the_same)
{
    orr_goal *g = pair(), *again;
    check_text(g, pair_text);
    check_written(g, ORR_GOAL_BINARY, pair_binary, sizeof pair_binary);
    orr_goal_free(g);

    orr_goal_remarks remarks;
    g = parse(pair_text, &remarks);
    CHECK_EQ(remarks.form, ORR_GOAL_TEXT);
    check_written(g, ORR_GOAL_BINARY, pair_binary, sizeof pair_binary);
    CHECK_OK(orr_goal_read("out", &remarks, &again, &err), &err);
    CHECK_EQ(remarks.form, ORR_GOAL_BINARY);
    check_text(again, pair_text);
    orr_goal_free(again);
    orr_goal_free(g);
}

TEST(test_goal__says_no_to_what_cannot_be_built)
{
    static const orr_goal_op calc = {.kind = ORR_GOAL_CALC};
    orr_goal *g;
    CHECK_CODE(orr_goal_create(0, &g, &err), ORR_EUSAGE, &err);
    CHECK_OK(orr_goal_create(1, &g, &err), &err);
    CHECK_CODE(orr_goal_add(g, &calc, NULL, &err), ORR_EUSAGE, &err);
    CHECK_CODE(orr_goal_end_rank(g, &err), ORR_EUSAGE, &err);
    CHECK_CODE(orr_goal_write(g, "out", ORR_GOAL_TEXT, &err), ORR_EUSAGE, &err);
    CHECK_OK(orr_goal_begin_rank(g, &err), &err);
    CHECK_CODE(orr_goal_begin_rank(g, &err), ORR_EUSAGE, &err);
    CHECK_CODE(orr_goal_add(g, &(orr_goal_op){0}, NULL, &err), ORR_EUSAGE, &err);
    CHECK_OK(orr_goal_add(g, &calc, NULL, &err), &err);
    CHECK_CODE(orr_goal_require(g, 0, 1, ORR_GOAL_FINISHED, &err), ORR_EUSAGE, &err);
    CHECK_OK(orr_goal_end_rank(g, &err), &err);
    CHECK_CODE(orr_goal_begin_rank(g, &err), ORR_EUSAGE, &err);
    orr_goal_free(g);
    orr_goal_free(NULL);
}

/* The order of a node's successors is the order of release, so text must keep it: l1's are l3,
 * l2. */
TEST(test_goal__text_keeps_the_order_of_successors)
{
    static const char text[] = "num_ranks 1\n\nrank 0 {\nl1: calc 1\nl2: calc 2\nl3: calc 3\n"
                               "l3 requires l1\nl2 requires l1\nl1 irequires l3\n}\n";
    orr_goal *g = parse(text, NULL);
    uint32_t count;
    const uint32_t *then = orr_goal_successors(g, 0, 0, ORR_GOAL_FINISHED, &count);
    CHECK_EQ_U(count, 2);
    CHECK_EQ_U(then[0], 2);
    CHECK_EQ_U(then[1], 1);
    check_text(g, text);
    orr_goal_free(g);
}

TEST(test_goal__text_may_be_written_freely)
{
    static const char text[] = "/* a\n file */ num_ranks 2 // two\r\n"
                               "rank 0\n{ \tfoo_1 : send 64 b to 1 tag -1 /* hm */ cpu 2\r\n"
                               "  calc 9\n"
                               "\tcalc1: recv 0b from 1\n"
                               "calc1 irequires foo_1\n"
                               "}rank 1 {\n"
                               "}\n";
    orr_goal *g = parse(text, NULL);
    check_text(g, "num_ranks 2\n\nrank 0 {\nl1: send 64b to 1 tag -1 cpu 2\nl2: calc 9\n"
                  "l3: recv 0b from 1 tag 0\nl3 irequires l1\n}\n\nrank 1 {\n}\n");
    orr_goal_free(g);
}

TEST(test_goal__odd_things_are_remarked)
{
    orr_goal_remarks r;
    orr_goal *g = parse("num_ranks 1\nrank 0 {\na: calc 1 cpu 300\na: calc 2\nb: calc 3\n"
                        "b requires a\n}\nrank 1 {\n}\n",
                        &r);
    CHECK_EQ_U(r.wrapped, 1);
    CHECK_EQ_U(r.first_wrapped, 3);
    CHECK_EQ_U(r.doubled, 1);
    CHECK_EQ_U(r.first_doubled, 4);
    CHECK_EQ_U(r.ignored_from_line, 8);
    CHECK_EQ_U(orr_goal_get(g, 0, 0).cpu, 44);
    CHECK_EQ_U(orr_goal_pending(g, 0, 2), 1);
    uint32_t count;
    CHECK_EQ_U(orr_goal_successors(g, 0, 0, ORR_GOAL_FINISHED, &count)[0], 2);
    orr_goal_free(g);
}

/* Labels of every shape, more than the first table of names has room for, and none from the rank
 * before. */
TEST(test_goal__labels_belong_to_their_rank)
{
    orr_buf b = {0};
    orr_buf_text(&b, "num_ranks 2\nrank 0 {\nl900000000: calc 1\nl007: calc 2\nl0: calc 3\n");
    for (int i = 0; i < 300; i++)
        orr_buf_print(&b, "x%d: calc 4\nx%d requires l900000000\nx%d requires l0\n", i, i, i / 2);
    orr_buf_text(&b, "}\nrank 1 {\nx1: calc 1\n}\n");
    orr_buf_byte(&b, 0);
    orr_goal *g = parse((const char *)b.ptr, NULL);
    uint32_t count;
    orr_goal_successors(g, 0, 0, ORR_GOAL_FINISHED, &count);
    CHECK_EQ_U(count, 300);
    orr_goal_successors(g, 0, 2, ORR_GOAL_FINISHED, &count);
    CHECK_EQ_U(count, 300);
    CHECK_EQ_U(orr_goal_pending(g, 0, 3), 3); /* x0: once l900000000, twice l0 */
    orr_goal_free(g);
    orr_buf_fini(&b);
    bad("num_ranks 2\nrank 0 {\na: calc 1\nl1: calc 1\n}\nrank 1 {\nb: calc 1\nb requires l1\n}\n",
        8, 12, "label \"l1\" is not defined above this line in rank 1");
}

#define HEAD "num_ranks 1\nrank 0 {\n"

TEST(test_goal__errors_of_the_text_have_a_place)
{
    bad("", 1, 1, "expected \"num_ranks\" and the number of ranks, found the end of the file");
    bad("rank 0 {\n}\n", 1, 1, "expected \"num_ranks\"");
    bad("num_ranks 0\n", 1, 11, "num_ranks is 0");
    bad("num_ranks x\n", 1, 11, "expected the number of ranks, found \"x\"");
    bad("num_ranks 2\nrank 1 {\n}\n", 2, 6, "found rank 1, expected rank 0");
    bad("num_ranks 2\nrank 0 {\n}\n", 4, 1, "expected \"rank 1\" of 2, found the end of the file");
    bad("num_ranks 1\nrank 0 [\n", 2, 8, "expected \"{\", found \"[\"");
    bad(HEAD "a: calc 5 cpu 1 nic 1\n}\n", 3, 17, "expected the end of the line, found \"nic\"");
    bad(HEAD "a: send 10 to 1\n}\n", 3, 12, "expected \"b\" after the number of bytes");
    bad(HEAD "a: send 10b to 1 nic 2 cpu 1\n}\n", 3, 24, "expected the end of the line");
    bad(HEAD "a: send 10b from 1\n}\n", 3, 13, "expected \"to\", found \"from\"");
    bad(HEAD "a: recv 10b to 1\n}\n", 3, 13, "expected \"from\", found \"to\"");
    bad(HEAD "a: send 10b to -1\n}\n", 3, 16, "expected a rank, found \"-\"");
    bad(HEAD "a: calc 1\nb requires a\n}\n", 4, 1, "label \"b\" is not defined");
    bad(HEAD "a: calc 1\na need a\n}\n", 4, 3, "expected \":\", \"requires\" or \"irequires\"");
    bad(HEAD "calc: calc 1\n}\n", 3, 5, "expected a number of nanoseconds, found \":\"");
    bad(HEAD "rank: calc 1\n}\n", 3, 1, "\"rank\" cannot be a label");
    bad(HEAD "a: jump 1\n}\n", 3, 4, "expected \"send\", \"recv\" or \"calc\", found \"jump\"");
    bad(HEAD "a: calc 18446744073709551616\n}\n", 3, 9, "must be below 2^64");
    bad(HEAD "a: calc 1", 3, 10, "expected the end of the line, found the end of the file");
    bad(HEAD "a: calc 1\n", 4, 1,
        "expected an operation, a label or \"}\", found the end of the file");
    bad(HEAD "/* no end\n", 3, 1, "a comment that starts here has no end");
    bad(HEAD "\x01", 3, 1, "found the byte 0x01");
}

TEST(test_goal__errors_of_the_binary_form_name_the_byte)
{
    static const struct {
        size_t at;
        uint8_t value;
        uint64_t where;
        const char *words;
    } rows[] = {
        {0, 0x80, 0, "magic number 4224, expected 4223"},
        {11, 0x80, 8, "2147483650 ranks in a file of 234 bytes"},
        {12, 0, 12, "largest cpu 0 and nic 2, but operations use 1 and 2"},
        {14, 37, 14, "rank 0: its record is said to be bytes 37 to 175 of 226"},
        {38, 230, 30, "rank 1: its record is said to be bytes 175 to 230"},
        {46, 4, 46, "rank 0: 4 nodes and 1 roots do not fit"},
        {50, 9, 46, "3 nodes and 9 roots do not fit"},
        {54, 1, 54, "node 0 waits for nothing but is not root 0"},
        {58, 1, 58, "node 0: waits for 1, but 0 edges lead to it"},
        {62, 4, 62, "node 0: type 4, expected 1 (send), 2 (recv) or 3 (calc)"},
        {81, 2, 175, "its nodes have 3 successors, the record has room for 2"},
        {85, 2, 81, "node 0: successors 2 to 2 of 2"},
        {175, 3, 175, "node 0: successor 3 does not exist"},
    };
    uint8_t copy[sizeof pair_binary];
    orr_goal *g;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        memcpy(copy, pair_binary, sizeof copy);
        copy[rows[i].at] = rows[i].value;
        CHECK_CODE(orr_goal_parse((orr_span){copy, sizeof copy}, "x.bin", NULL, &g, &err),
                   ORR_EINPUT, &err);
        CHECK_SAYS(&err, rows[i].words);
        CHECK_EQ_U(err.where.byte, rows[i].where);
    }
    memcpy(copy, pair_binary, sizeof copy);
    copy[0] = 0x26;
    copy[1] = 0x09;
    CHECK_CODE(orr_goal_parse((orr_span){copy, sizeof copy}, "x.bin", NULL, &g, &err), ORR_EINPUT,
               &err);
    CHECK_SAYS(&err, "--save-mem");
    for (size_t n = 8; n < sizeof pair_binary; n++)
        CHECK_CODE(orr_goal_parse((orr_span){pair_binary, n}, "x.bin", NULL, &g, &err), ORR_EINPUT,
                   &err);
}

TEST(test_goal__an_operation_has_words)
{
    char text[80];
    orr_goal_op op = {.kind = ORR_GOAL_RECV, .size = 8, .peer = ORR_GOAL_ANY, .tag = ORR_GOAL_ANY};
    CHECK_TEXT(orr_goal_op_text(&op, text, sizeof text), "recv 8b from -1 tag -1");
    op = (orr_goal_op){.kind = ORR_GOAL_SEND, .size = 8, .peer = 3, .cpu = 1, .nic = 2};
    CHECK_TEXT(orr_goal_op_text(&op, text, sizeof text), "send 8b to 3 tag 0 cpu 1 nic 2");
    op = (orr_goal_op){.kind = ORR_GOAL_CALC, .size = 9};
    CHECK_TEXT(orr_goal_op_text(&op, text, sizeof text), "calc 9");
}

int main(void)
{
    const CMUnitTest tests[] = {
        RUN(test_goal__is_built_rank_by_rank),
        RUN(test_goal__has_a_text_and_a_binary_form_that_say_the_same),
        RUN(test_goal__says_no_to_what_cannot_be_built),
        RUN(test_goal__text_keeps_the_order_of_successors),
        RUN(test_goal__text_may_be_written_freely),
        RUN(test_goal__odd_things_are_remarked),
        RUN(test_goal__labels_belong_to_their_rank),
        RUN(test_goal__errors_of_the_text_have_a_place),
        RUN(test_goal__errors_of_the_binary_form_name_the_byte),
        RUN(test_goal__an_operation_has_words),
    };
    return RUN_ALL(tests);
}
