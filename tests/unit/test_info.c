/* SPDX-License-Identifier: Apache-2.0 */
/* test_info.c - the figures of small traces made by hand, each worked out in a comment. */
#include "check.h"

#include "base/formats/json.h"
#include "views/info_impl.h"
#include "views/views_impl.h"

#include <orrery/lab/info.h>

static orr_error err;

/* ---- making traces ---- */

static orr_trace *new_trace(void)
{
    orr_trace *t;
    const orr_meta meta = {.version = orr_str_of("1.0.0")};
    CHECK_OK(orr_trace_create(&meta, &t, &err), &err);
    return t;
}

static orr_attr int_attr(const char *name, int64_t v)
{
    return (orr_attr){.name = orr_str_of(name), .kind = ORR_VALUE_INT64, .value.i = v};
}

static orr_attr text_attr(const char *name, const char *v)
{
    return (orr_attr){.name = orr_str_of(name), .kind = ORR_VALUE_STRING, .value.s = orr_str_of(v)};
}

/* A node that waits for up to two others; 0: for none. */
static void add_comp(orr_trace *t, uint64_t id, uint64_t us, uint64_t dep, uint64_t other)
{
    const uint64_t deps[2] = {dep, other};
    const orr_draft d = {.id = id,
                         .name = orr_str_of("COMP_NODE_1"),
                         .type = ORR_NODE_COMP,
                         .duration_us = us,
                         .data_deps = deps,
                         .data_count = (dep != 0) + (size_t)(other != 0)};
    CHECK_OK(orr_trace_append(t, &d, &err), &err);
}

static void add_coll(orr_trace *t, uint64_t id, int64_t kind, int64_t size, const char *group)
{
    const orr_attr attrs[3] = {int_attr("comm_type", kind), int_attr("comm_size", size),
                               text_attr("pg_name", group ? group : "")};
    const orr_draft d = {.id = id,
                         .name = orr_str_of("COMM_COLL_NODE_1"),
                         .type = ORR_NODE_COMM_COLL,
                         .attrs = attrs,
                         .attr_count = group ? 3 : 2};
    CHECK_OK(orr_trace_append(t, &d, &err), &err);
}

static void add_message(
    orr_trace *t, uint64_t id, uint32_t type, int64_t src, int64_t dst, int64_t size)
{
    const orr_attr attrs[3] = {int_attr("comm_src", src), int_attr("comm_dst", dst),
                               int_attr("comm_size", size)};
    const orr_draft d = {
        .id = id, .name = orr_str_of("p2p"), .type = type, .attrs = attrs, .attr_count = 3};
    CHECK_OK(orr_trace_append(t, &d, &err), &err);
}

static orr_trace *seal(orr_trace *t)
{
    CHECK_OK(orr_trace_seal(t, &err), &err);
    return t;
}

static orr_set *set_of(orr_trace *const *traces, size_t count)
{
    orr_set *s;
    CHECK_OK(orr_set_create(&s, &err), &err);
    for (size_t i = 0; i < count; i++)
        CHECK_OK(orr_set_add(s, seal(traces[i]), &err), &err);
    return s;
}

static orr_info *info_of(const orr_set *s, const orr_info_options *opt)
{
    orr_info *info;
    CHECK_OK(orr_info_create(s, opt, &info, &err), &err);
    return info;
}

static orr_info *info_of_one(orr_trace *t, const orr_info_options *opt)
{
    orr_set *s = set_of(&t, 1);
    orr_info *info = info_of(s, opt);
    orr_set_close(s); /* nothing of the set is needed any more */
    return info;
}

/* ---- names ---- */

static const char *group_of(const char *name)
{
    static char out[600];
    char room[ORR__NAME_ROOM];
    const orr_str group = orr__operator_group(orr_str_of(name), room);
    snprintf(out, sizeof out, "%.*s", (int)group.len, group.ptr);
    return out;
}

TEST(test_info__names_lose_numbers_at_their_end)
{
    CHECK_TEXT(group_of("COMP_NODE_123"), "COMP_NODE");
    CHECK_TEXT(group_of("op_1_22_333"), "op");
    CHECK_TEXT(group_of("kernel#7"), "kernel");
    CHECK_TEXT(group_of("step [12]"), "step");
    CHECK_TEXT(group_of("call(3)"), "call");
    CHECK_TEXT(group_of("call()"), "call()");
    CHECK_TEXT(group_of("aten::add_"), "aten::add_");
    CHECK_TEXT(group_of("aten::conv2d"), "aten::conv2d");
    CHECK_TEXT(group_of("bf16"), "bf16");
    CHECK_TEXT(group_of("123"), "123");
    CHECK_TEXT(group_of("_1"), "_1");
    CHECK_TEXT(group_of(""), "");
}

TEST(test_info__names_lose_numbers_in_paths)
{
    CHECK_TEXT(group_of("layer12/forward"), "layer*/forward");
    CHECK_TEXT(group_of("model.layers.12.mlp"), "model.layers.*.mlp");
    CHECK_TEXT(group_of("all_reduce/bucket3"), "all_reduce/bucket*");
    CHECK_TEXT(group_of("sm80_gemm_128x64_tn"), "sm80_gemm_128x64_tn");
}

TEST(test_info__long_names_are_left_alone)
{
    char name[601], room[ORR__NAME_ROOM];
    memset(name, '1', sizeof name);
    memcpy(name, "layer1/", 7);
    name[590] = 'x';
    const orr_str group = orr__operator_group((orr_str){name, 600}, room);
    CHECK_EQ_U(group.len, 600);
}

/* ---- small sums ---- */

static uint64_t moved(uint32_t kind, uint64_t size, uint32_t n)
{
    uint64_t bytes = 0;
    CHECK(orr__moved_bytes(kind, size, n, &bytes));
    return bytes;
}

TEST(test_info__moved_bytes_follow_the_formulas)
{
    CHECK_EQ_U(moved(ORR_COLL_ALL_REDUCE, 1000, 4), 1500);    /* 2 * 3/4 * 1000 */
    CHECK_EQ_U(moved(ORR_COLL_ALL_GATHER, 1000, 4), 3000);    /* 3 * 1000 */
    CHECK_EQ_U(moved(ORR_COLL_REDUCE_SCATTER, 1000, 4), 750); /* 3/4 * 1000 */
    CHECK_EQ_U(moved(ORR_COLL_ALL_TO_ALL, 1000, 4), 750);
    CHECK_EQ_U(moved(ORR_COLL_BROADCAST, 1000, 4), 750);
    CHECK_EQ_U(moved(ORR_COLL_SCATTER, 1000, 4), 187); /* 3/16 * 1000 = 187.5 */
    CHECK_EQ_U(moved(ORR_COLL_BARRIER, 1000, 4), 0);
    for (uint32_t kind = 0; kind < ORR_COLL_COUNT; kind++)
        CHECK_EQ_U(moved(kind, 1000, 1), 0);
    CHECK_EQ_U(moved(ORR_COLL_ALL_GATHER, UINT64_MAX, UINT32_MAX),
               UINT64_MAX); /* 96 bits: stays at the top */
    uint64_t bytes;
    CHECK(!orr__moved_bytes(ORR_COLL_ALL_REDUCE, 1, 0, &bytes));
    CHECK(!orr__moved_bytes(ORR__NO_KIND, 1, 4, &bytes));
}

TEST(test_info__ranks_are_written_as_ranges)
{
    orr_arena *a = orr_arena_create();
    const uint32_t ranks[] = {0, 1, 2, 3, 8, 10, 12, 14, 20, 30};
    CHECK_TEXT(orr__rank_ranges(a, ranks, 4), "0-3");
    CHECK_TEXT(orr__rank_ranges(a, ranks, 10), "0-3,8-14/2,20,30");
    CHECK_TEXT(orr__rank_ranges(a, ranks + 8, 1), "20");
    CHECK_TEXT(orr__rank_ranges(a, ranks, 2), "0-1");
    CHECK_TEXT(orr__rank_ranges(a, ranks, 0), "");
    orr_arena_destroy(a);
}

TEST(test_info__averages_round_and_do_not_overflow)
{
    orr_arena *a = orr_arena_create();
    CHECK_TEXT(orr__cell_average(a, 5, 2), "2.5");
    CHECK_TEXT(orr__cell_average(a, 2, 3), "0.7");
    CHECK_TEXT(orr__cell_average(a, 1234567, 1), "1,234,567.0");
    CHECK_TEXT(orr__cell_average(a, 1, 0), "-");
    CHECK_TEXT(orr__cell_average(a, UINT64_MAX, 1), "18,446,744 T");
    orr_arena_destroy(a);
}

/* ---- graphs ---- */

static orr__graph_shape graph_of(orr_trace *t, orr_arena *a)
{
    orr__graph_shape g;
    CHECK_OK(orr__graph_measure(orr_trace_columns(seal(t)), a, &g, &err), &err);
    return g;
}

/* 1 (5 us) -> 2 (7 us), 3 (3 us) -> 4 (2 us): the way over 2 takes 5 + 7 + 2. */
TEST(test_info_graph__diamond)
{
    orr_arena *a = orr_arena_create();
    orr_trace *t = new_trace();
    add_comp(t, 1, 5, 0, 0);
    add_comp(t, 2, 7, 1, 0);
    add_comp(t, 3, 3, 1, 0);
    add_comp(t, 4, 2, 2, 3);
    const orr__graph_shape g = graph_of(t, a);
    CHECK(!g.is_cyclic);
    CHECK_EQ_U(g.length_us, 14);
    CHECK_EQ_U(g.path_count, 3);
    CHECK(g.path[0] == 0 && g.path[1] == 1 && g.path[2] == 3);
    CHECK_EQ_U(g.levels, 3);
    CHECK_EQ_U(g.width, 2);
    CHECK_EQ_U(g.roots, 1);
    CHECK_EQ_U(g.leaves, 1);
    orr_trace_destroy(t);
    orr_arena_destroy(a);
}

/* The same in the reverse order of the file: the order must be found first. */
TEST(test_info_graph__children_before_parents)
{
    orr_arena *a = orr_arena_create();
    orr_trace *t = new_trace();
    add_comp(t, 4, 2, 2, 3);
    add_comp(t, 3, 3, 1, 0);
    add_comp(t, 2, 7, 1, 0);
    add_comp(t, 1, 5, 0, 0);
    const orr__graph_shape g = graph_of(t, a);
    CHECK_EQ_U(g.length_us, 14);
    CHECK(g.path_count == 3 && g.path[0] == 3 && g.path[1] == 2 && g.path[2] == 0);
    CHECK_EQ_U(g.levels, 3);
    CHECK_EQ_U(g.width, 2);
    orr_trace_destroy(t);
    orr_arena_destroy(a);
}

TEST(test_info_graph__control_dependencies_count)
{
    orr_arena *a = orr_arena_create();
    orr_trace *t = new_trace();
    const uint64_t first = 1;
    add_comp(t, 1, 5, 0, 0);
    const orr_draft d = {
        .id = 2, .type = ORR_NODE_COMP, .duration_us = 6, .ctrl_deps = &first, .ctrl_count = 1};
    CHECK_OK(orr_trace_append(t, &d, &err), &err);
    const orr__graph_shape g = graph_of(t, a);
    CHECK_EQ_U(g.length_us, 11);
    CHECK_EQ_U(g.roots, 1);
    CHECK_EQ_U(g.leaves, 1);
    orr_trace_destroy(t);
    orr_arena_destroy(a);
}

TEST(test_info_graph__a_node_that_is_not_there_holds_nothing)
{
    orr_arena *a = orr_arena_create();
    orr_trace *t = new_trace();
    add_comp(t, 1, 5, 99, 0);
    const orr__graph_shape g = graph_of(t, a);
    CHECK_EQ_U(g.length_us, 5);
    CHECK_EQ_U(g.roots, 1);
    orr_trace_destroy(t);
    orr_arena_destroy(a);
}

TEST(test_info_graph__cycles_are_found)
{
    orr_arena *a = orr_arena_create();
    orr_trace *t = new_trace(), *self = new_trace();
    add_comp(t, 1, 5, 3, 0);
    add_comp(t, 2, 5, 1, 0);
    add_comp(t, 3, 5, 2, 0);
    CHECK(graph_of(t, a).is_cyclic);
    add_comp(self, 1, 5, 1, 0);
    CHECK(graph_of(self, a).is_cyclic);
    orr_trace_destroy(t);
    orr_trace_destroy(self);
    orr_arena_destroy(a);
}

/* A chain as long as a stack is not: every node depends on the next one of the file. */
TEST(test_info_graph__a_long_chain_backwards)
{
    enum { LONG = 200000 };
    orr_arena *a = orr_arena_create();
    orr_trace *t = new_trace();
    for (uint64_t i = 1; i <= LONG; i++)
        add_comp(t, i, 1, i < LONG ? i + 1 : 0, 0);
    const orr__graph_shape g = graph_of(t, a);
    CHECK_EQ_U(g.length_us, LONG);
    CHECK_EQ_U(g.levels, LONG);
    orr_trace_destroy(t);
    orr_arena_destroy(a);
}

/* ---- whole sets ---- */

static orr_trace *two_nodes(uint64_t us, const char *group)
{
    orr_trace *t = new_trace();
    add_comp(t, 1, us, 0, 0);
    add_coll(t, 2, ORR_COLL_ALL_REDUCE, 1000, group);
    return t;
}

/* Ranks 0, 1 and 3 compute 10 us, rank 2 20 us: 50 us in all; 4 all-reduces of 1000 bytes among 4
 * ranks move 4 * 2 * 3/4 * 1000 bytes. */
TEST(test_info__equal_ranks_count_as_often_as_they_are)
{
    orr_trace *traces[] = {two_nodes(10, NULL), two_nodes(10, NULL), two_nodes(20, NULL),
                           two_nodes(10, NULL)};
    orr_set *s = set_of(traces, 4);
    orr_info *o = info_of(s, NULL);
    CHECK_EQ_U(o->ranks, 4);
    CHECK_EQ_U(o->classes, 2);
    CHECK_EQ_U(o->nodes, 8);
    CHECK_EQ_U(o->by_type[ORR_NODE_COMP].count, 4);
    CHECK_EQ_U(o->by_type[ORR_NODE_COMP].total, 50);
    CHECK_EQ_U(o->by_type[ORR_NODE_COMP].max, 20);
    CHECK_EQ_U(o->coll_count, 1);
    CHECK_EQ_U(o->colls[0].ranks, 4);
    CHECK_EQ_U(o->colls[0].count, 4);
    CHECK_EQ_U(o->colls[0].size.total, 4000);
    CHECK_EQ_U(o->moved_coll, 6000);
    CHECK(!o->has_unknown_moved);
    CHECK_EQ_U(o->path_us, 20);
    CHECK_EQ_U(o->path_rank, 2);
    CHECK_EQ_U(o->critical_sum_us, 50);
    CHECK_EQ_U(o->row_count, 2);
    CHECK_TEXT(o->rows[0].ranks, "0-1,3");
    CHECK_TEXT(o->rows[1].ranks, "2");
    orr_info_destroy(o);
    orr_set_close(s);
}

/* A group has the ranks that name it: "tp" two of the three, "dp" one. */
TEST(test_info__groups_have_the_ranks_that_name_them)
{
    orr_trace *traces[] = {two_nodes(1, "tp"), two_nodes(1, "tp"), two_nodes(1, "dp")};
    orr_set *s = set_of(traces, 3);
    orr_info *o = info_of(s, &(orr_info_options){.one_rank = true, .rank = 0});
    CHECK_EQ_U(o->nodes, 2);
    CHECK_EQ_U(o->coll_count, 1);
    CHECK_EQ_U(o->colls[0].ranks, 2);
    CHECK_EQ_U(o->moved_coll, 1000); /* 2 * 1/2 * 1000 */
    orr_info_destroy(o);
    o = info_of(s, NULL);
    CHECK_EQ_U(o->coll_count, 2);
    CHECK_EQ_U(o->colls[0].ranks, 1); /* "dp" sorts first */
    CHECK_EQ_U(o->colls[0].moved, 0);
    CHECK_EQ_U(o->colls[1].ranks, 2);
    CHECK_EQ_U(o->colls[1].moved, 2000);
    orr_info_destroy(o);
    orr_set_close(s);
}

TEST(test_info__one_rank_alone_estimates_only_when_told_of_how_many)
{
    orr_info *o = info_of_one(two_nodes(1, NULL), NULL);
    CHECK(o->has_unknown_moved);
    CHECK_EQ_U(o->moved_coll, 0);
    orr_info_destroy(o);
    o = info_of_one(two_nodes(1, NULL), &(orr_info_options){.job_ranks = 8});
    CHECK(!o->has_unknown_moved);
    CHECK_EQ_U(o->moved_coll, 1750); /* 2 * 7/8 * 1000 */
    orr_info_destroy(o);
}

TEST(test_info__messages_by_pair)
{
    orr_trace *t = new_trace();
    add_message(t, 1, ORR_NODE_COMM_SEND, 0, 1, 100);
    add_message(t, 2, ORR_NODE_COMM_SEND, 0, 1, 300);
    add_message(t, 3, ORR_NODE_COMM_SEND, 0, 2, 50);
    add_message(t, 4, ORR_NODE_COMM_RECV, 1, 0, 70);
    const orr_attr size = {
        .name = orr_str_of("tensor_size"), .kind = ORR_VALUE_UINT64, .value.u = 30};
    const orr_draft bare = {.id = 5, .type = ORR_NODE_COMM_SEND, .attrs = &size, .attr_count = 1};
    CHECK_OK(orr_trace_append(t, &bare, &err), &err);
    orr_info *o = info_of_one(t, NULL);
    CHECK_EQ_U(o->p2p_nodes[0], 4);
    CHECK_EQ_U(o->p2p[0].total, 480);
    CHECK_EQ_U(o->p2p_nodes[1], 1);
    CHECK_EQ_U(o->p2p[1].total, 70);
    CHECK_EQ_U(o->moved_p2p, 480);
    CHECK_EQ_U(o->peer_count, 4);
    CHECK_EQ(o->peers[0].dst, 1);
    CHECK_EQ_U(o->peers[0].count, 2);
    CHECK_EQ_U(o->peers[0].size.total, 400);
    CHECK_EQ(o->peers[3].dst, ORR_NO_VALUE);
    orr_info_destroy(o);
}

TEST(test_info__missing_attributes_are_no_zeros)
{
    orr_trace *t = new_trace();
    const orr_draft d = {.id = 1, .type = ORR_NODE_COMM_COLL};
    CHECK_OK(orr_trace_append(t, &d, &err), &err);
    add_coll(t, 2, ORR_COLL_ALL_GATHER, -5, NULL);
    orr_info *o = info_of_one(t, &(orr_info_options){.job_ranks = 2});
    CHECK_EQ_U(o->coll_count, 2);
    CHECK_EQ_U(o->colls[0].kind, ORR_COLL_ALL_GATHER);
    CHECK_EQ_U(o->colls[0].size.count, 0); /* below zero is as good as absent */
    CHECK_EQ_U(o->colls[1].kind, ORR__NO_KIND);
    CHECK(o->has_unknown_moved);
    orr_info_destroy(o);
}

TEST(test_info__sums_stay_at_the_top_and_say_so)
{
    orr_trace *t = new_trace();
    add_comp(t, 1, UINT64_MAX, 0, 0);
    add_comp(t, 2, 7, 1, 0);
    orr_info *o = info_of_one(t, NULL);
    CHECK(o->is_saturated);
    CHECK_EQ_U(o->by_type[ORR_NODE_COMP].total, UINT64_MAX);
    CHECK_EQ_U(o->path_us, UINT64_MAX);
    orr_str text;
    CHECK_OK(orr_info_text(o, &text, &err), &err);
    CHECK(memmem(text.ptr, text.len, "exceed 64 bits", 14));
    orr_info_destroy(o);
}

TEST(test_info__a_cycle_is_said_and_the_rest_still_counted)
{
    orr_trace *t = new_trace();
    add_comp(t, 1, 5, 2, 0);
    add_comp(t, 2, 5, 1, 0);
    orr_info *o = info_of_one(t, NULL);
    orr_str text;
    CHECK_EQ_U(o->cyclic_ranks, 1);
    CHECK(!o->has_path);
    CHECK_EQ_U(o->nodes, 2);
    CHECK_OK(orr_info_text(o, &text, &err), &err);
    CHECK(memmem(text.ptr, text.len, "no critical path: dependencies form a cycle", 43));
    orr_info_destroy(o);
}

TEST(test_info__unknown_rank_is_refused)
{
    orr_trace *t = two_nodes(1, NULL);
    orr_set *s = set_of(&t, 1);
    orr_info *o;
    CHECK_CODE(orr_info_create(s, &(orr_info_options){.one_rank = true, .rank = 1}, &o, &err),
               ORR_EUSAGE, &err);
    CHECK_SAYS(&err, "no rank 1: there are 1, counted from 0");
    CHECK(!o);
    orr_set_close(s);
}

/* ---- printing ---- */

/* Characters, not bytes. */
static int columns_of(const char *line, const char *stop)
{
    int n = 0;
    for (; line < stop; line++)
        n += ((unsigned char)*line & 0xC0) != 0x80;
    return n;
}

static void check_lines_fit(orr_str text)
{
    const char *line = text.ptr, *end = text.ptr + text.len;
    while (line < end) {
        const char *stop = memchr(line, '\n', (size_t)(end - line));
        CHECK(stop != NULL);
        if (columns_of(line, stop) > 80)
            check_fail(__FILE__, __LINE__, "%d columns: %.*s", (int)(stop - line),
                       (int)(stop - line), line);
        CHECK(stop == line || stop[-1] != ' ');
        line = stop + 1;
    }
}

static void check_json(orr_str text)
{
    orr_json *j;
    orr_json_value root, v;
    orr_str format;
    CHECK_OK(orr_json_open((orr_span){(const uint8_t *)text.ptr, text.len}, "info", &j, &err),
             &err);
    CHECK_OK(orr_json_only(j, &root, &err), &err);
    CHECK(orr_json_find(root, "format", &v));
    CHECK_OK(orr_json_get_str(v, &format, &err), &err);
    CHECK(format.len == 11 && memcmp(format.ptr, "orrery-info", 11) == 0);
    CHECK(text.len > 16 && memcmp(text.ptr, "{\n  \"format\": ", 14) == 0);
    orr_json_close(j);
}

static void check_prints(orr_info *o)
{
    orr_str text;
    CHECK_OK(orr_info_text(o, &text, &err), &err);
    check_lines_fit(text);
    CHECK_OK(orr_info_json(o, &text, &err), &err);
    check_json(text);
}

TEST(test_info__prints_nothing_wrong_about_nothing)
{
    orr_info *o = info_of_one(new_trace(), &(orr_info_options){.per_rank = true});
    CHECK_EQ_U(o->nodes, 0);
    check_prints(o);
    orr_info_destroy(o);
    orr_set *empty = set_of(NULL, 0);
    o = info_of(empty, &(orr_info_options){.per_rank = true});
    CHECK_EQ_U(o->ranks, 0);
    check_prints(o);
    orr_info_destroy(o);
    orr_set_close(empty);
}

/* Long names, control characters, bytes that are no UTF-8, large numbers: 80 columns and JSON
 * hold. */
TEST(test_info__prints_wild_values_in_80_columns)
{
    orr_trace *t = new_trace();
    char name[400];
    memset(name, 'x', sizeof name);
    memcpy(name, "a\033[31m\n\t\xC3\xA4", 10);
    name[sizeof name - 1] = 0;
    for (uint64_t i = 1; i <= 30; i++) {
        const orr_attr attrs[] = {
            int_attr("tensor_size", INT64_MAX), int_attr("num_ops", INT64_MAX),
            int_attr("comm_size", INT64_MAX),   int_attr("comm_src", INT64_MAX),
            int_attr("comm_dst", (int64_t)i),   int_attr("is_cpu_op", i % 2 == 0)};
        name[10] = (char)('a' + (int)i % 26);
        const orr_draft d = {.id = i,
                             .name = {name, sizeof name - 1},
                             .type = (uint32_t)(i % 8),
                             .duration_us = UINT64_MAX - i,
                             .attrs = attrs,
                             .attr_count = 6};
        CHECK_OK(orr_trace_append(t, &d, &err), &err);
    }
    add_coll(t, 100, 300, INT64_MAX, name);
    orr_info *o = info_of_one(
        t, &(orr_info_options){.per_rank = true, .job_ranks = UINT32_MAX, .path = "wild"});
    check_prints(o);
    orr_info_destroy(o);
}

TEST(test_info__same_input_same_bytes)
{
    orr_str text[2];
    orr_info *o[2];
    for (size_t i = 0; i < 2; i++) {
        o[i] = info_of_one(two_nodes(3, "tp"), NULL);
        CHECK_OK(orr_info_json(o[i], &text[i], &err), &err);
    }
    CHECK_EQ_U(text[0].len, text[1].len);
    CHECK_BYTES(text[0].ptr, text[1].ptr, text[0].len);
    orr_info_destroy(o[0]);
    orr_info_destroy(o[1]);
}

int main(void)
{
    const CMUnitTest tests[] = {
        RUN(test_info__names_lose_numbers_at_their_end),
        RUN(test_info__names_lose_numbers_in_paths),
        RUN(test_info__long_names_are_left_alone),
        RUN(test_info__moved_bytes_follow_the_formulas),
        RUN(test_info__ranks_are_written_as_ranges),
        RUN(test_info__averages_round_and_do_not_overflow),
        RUN(test_info_graph__diamond),
        RUN(test_info_graph__children_before_parents),
        RUN(test_info_graph__control_dependencies_count),
        RUN(test_info_graph__a_node_that_is_not_there_holds_nothing),
        RUN(test_info_graph__cycles_are_found),
        RUN(test_info_graph__a_long_chain_backwards),
        RUN(test_info__equal_ranks_count_as_often_as_they_are),
        RUN(test_info__groups_have_the_ranks_that_name_them),
        RUN(test_info__one_rank_alone_estimates_only_when_told_of_how_many),
        RUN(test_info__messages_by_pair),
        RUN(test_info__missing_attributes_are_no_zeros),
        RUN(test_info__sums_stay_at_the_top_and_say_so),
        RUN(test_info__a_cycle_is_said_and_the_rest_still_counted),
        RUN(test_info__unknown_rank_is_refused),
        RUN(test_info__prints_nothing_wrong_about_nothing),
        RUN(test_info__prints_wild_values_in_80_columns),
        RUN(test_info__same_input_same_bytes),
    };
    return RUN_ALL(tests);
}
