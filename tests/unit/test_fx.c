/* SPDX-License-Identifier: Apache-2.0 */
/* Captured steps: who waits for whom, sizes, ranks and memory, all worked out by hand. Tensors 0 to
 * 9 are 4 x 4 float32 (64 bytes) in storages of the same number; 10 and 11 are the upper and lower
 * half of 0, 12 is 2 transposed.  A line is a node: id, operator, "<" and the ids of its data, "|"
 * and those it comes after. */
#include "check.h"

#include <orrery/lab/fx.h>

#include "base/memory/buffer.h"

static orr_error err;

enum {
    MM,
    ADD,
    T,
    ALL_REDUCE,
    WAIT,
    F_ALL_REDUCE,
    WAIT_TENSOR,
    SEND,
    RECV,
    COPY,
    ADD_IN_PLACE,
    STRANGE,
    BARRIER,
    GATHER,
    EMPTY_LIKE,
    GROUP_NORM
};

static const char *const ops[] = {"aten.mm.default",
                                  "aten.add.Tensor",
                                  "aten.t.default",
                                  "c10d.allreduce_.default",
                                  "orrery.wait",
                                  "_c10d_functional.all_reduce.default",
                                  "_c10d_functional.wait_tensor.default",
                                  "c10d.send.default",
                                  "c10d.recv_.default",
                                  "aten.copy_.default",
                                  "aten.add_.Tensor",
                                  "mine.strange.default",
                                  "c10d.barrier.default",
                                  "c10d.gather_.default",
                                  "aten.empty_like.default",
                                  "aten.native_group_norm.default"};

/* A node; more: further members, each with a comma in front. */
typedef struct call {
    int op;
    const char *in, *out, *more;
} call;

static void add_tensor(orr_buf *b, int rows, int storage, int offset, const char *stride)
{
    orr_buf_print(
        b, "{\"shape\":[%d,4],\"dtype\":\"float32\",\"stride\":[%s],\"offset\":%d,\"storage\":%d},",
        rows, stride, offset, storage);
}

static void add_graph(orr_buf *b, int rank, const call *calls, size_t count)
{
    orr_buf_text(b, "{\"ops\":[");
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
        orr_buf_print(b, "%s\"%s\"", i ? "," : "", ops[i]);
    orr_buf_text(b, "],\"modules\":[\"\",\"Net.up\"],\"lines\":[\"net.py:7\"],\"storages\":[");
    for (int i = 0; i < 10; i++)
        orr_buf_print(b, "%s64", i ? "," : "");
    orr_buf_text(b, "],\"kept\":[[0,\"parameter\"],[1,\"state\"]],\"tensors\":[");
    for (int i = 0; i < 10; i++)
        add_tensor(b, 4, i, 0, "4,1");
    add_tensor(b, 2, 0, 0, "4,1");
    add_tensor(b, 2, 0, 8, "4,1");
    add_tensor(b, 4, 2, 0, "1,4");
    b->len--;
    orr_buf_text(b, "],\"nodes\":[");
    for (size_t i = 0; i < count; i++)
        orr_buf_print(b, "%s{\"op\":%d,\"in\":[%s],\"out\":[%s]%s}", i ? "," : "", calls[i].op,
                      calls[i].in, calls[i].out, calls[i].more ? calls[i].more : "");
    orr_buf_print(b, "],\"rank\":%d}", rank);
}

static void begin(orr_buf *b, unsigned world, const char *groups)
{
    orr_buf_print(
        b,
        "{\"format\":\"orrery-capture\",\"version\":1,\"torch\":\"2.11\",\"world_size\":%u,\"step\":1,"
        "\"groups\":[{\"family\":0,\"ranks\":[",
        world);
    for (unsigned r = 0; r < world; r++)
        orr_buf_print(b, "%s%u", r ? "," : "", r);
    orr_buf_print(b, "]}%s],\"notes\":[],\"graphs\":[", groups);
}

static orr_code parse(orr_buf *b, orr_fx **out)
{
    orr_buf_text(b, "]}");
    const orr_code code = orr_fx_parse((orr_span){b->ptr, b->len}, "step.json", 0, out, &err);
    orr_buf_fini(b);
    *b = (orr_buf){0};
    return code;
}

/* One graph, of rank 0. */
static orr_code convert(unsigned world,
                        const char *groups,
                        const call *calls,
                        size_t count,
                        orr_set **set,
                        orr_fx_report *report)
{
    orr_buf b = {0};
    orr_fx *c;
    begin(&b, world, groups);
    add_graph(&b, 0, calls, count);
    CHECK_OK(parse(&b, &c), &err);
    const orr_code code = orr_fx_convert(c, NULL, set, report, &err);
    orr_fx_close(c);
    return code;
}

static void add_deps(orr_buf *b, orr_list list, const char *sign)
{
    orr_value v;
    for (int n = 0; orr_list_next(&list, &v); n++)
        orr_buf_print(b, "%s %" PRIu64, n ? "" : sign, v.u);
}

static void check_trace(const orr_trace *t, const char *want)
{
    orr_buf b = {0};
    for (uint32_t i = 0; i < orr_trace_columns(t)->count; i++) {
        orr_node node;
        orr_trace_node(t, i, &node);
        orr_buf_print(&b, "%" PRIu64 " %.*s", node.id, (int)node.name.len, node.name.ptr);
        add_deps(&b, orr_node_data_deps(&node), " <");
        add_deps(&b, orr_node_ctrl_deps(&node), " |");
        orr_buf_text(&b, "\n");
    }
    orr_buf_byte(&b, 0);
    CHECK_TEXT((const char *)b.ptr, want);
    orr_buf_fini(&b);
}

#define COUNT(list) (sizeof(list) / sizeof *(list))
#define PAIR \
    ","      \
    "{\"family\":1,\"ranks\":[0,1]}"
#define IN(group) ",\"args\":{\"group\":" group "}"

static void check_deps(const call *calls, size_t count, const char *want)
{
    orr_set *s;
    CHECK_OK(convert(2, PAIR, calls, count, &s, NULL), &err);
    check_trace(orr_set_trace(s, 0), want);
    orr_set_close(s);
}

TEST(test_fx__a_value_waits_for_who_made_it)
{
    const call calls[] = {{MM, "0,1", "2", NULL}, {ADD, "2,0", "3", NULL}, {ADD, "0,1", "4", NULL}};
    check_deps(calls, COUNT(calls),
               "1 aten.mm.default\n2 aten.add.Tensor < 1\n3 aten.add.Tensor\n");
}

TEST(test_fx__views_pass_dependencies_through)
{
    const call calls[] = {{MM, "0,1", "2", NULL},
                          {T, "2", "12", ",\"view\":1"}, /* the same storage */
                          {MM, "12,0", "3", NULL},
                          {T, "3", "5", ",\"view\":1"}, /* another number for it */
                          {MM, "5,0", "6", NULL}};
    check_deps(calls, COUNT(calls),
               "1 aten.mm.default\n2 aten.mm.default < 1\n3 aten.mm.default < 2\n");
}

TEST(test_fx__computation_goes_on_beside_a_collective)
{
    const call calls[] = {
        {MM, "0,1", "2", NULL},
        {ALL_REDUCE, "2", "2", ",\"writes\":[2]" IN("1")},
        {ADD, "0,1", "3", NULL},
        {ADD, "2,3", "4", NULL}, /* before the wait: what the product left there */
        {WAIT, "2", "", NULL},
        {ADD, "2,3", "5", NULL}};
    check_deps(calls, COUNT(calls),
               "1 aten.mm.default\n2 c10d.allreduce_.default < 1\n3 aten.add.Tensor\n"
               "4 aten.add.Tensor < 1 3\n5 aten.add.Tensor < 2 3\n");
}

TEST(test_fx__a_functional_collective_makes_a_new_value)
{
    const call calls[] = {{MM, "0,1", "2", NULL},
                          {F_ALL_REDUCE, "2", "3", IN("1")},
                          {WAIT_TENSOR, "3", "4", NULL}, /* 4 is 3, there now */
                          {ADD, "2,0", "5", NULL},
                          {ADD, "4,0", "6", NULL}};
    check_deps(
        calls, COUNT(calls),
        "1 aten.mm.default\n2 _c10d_functional.all_reduce.default < 1\n3 aten.add.Tensor < 1\n"
        "4 aten.add.Tensor < 2\n");
}

TEST(test_fx__a_wait_of_the_program_is_a_fence)
{
    const call calls[] = {{ALL_REDUCE, "2", "2", ",\"writes\":[2]" IN("1")},
                          {WAIT, "2", "", NULL},
                          {ADD, "0,1", "3", NULL}, /* behind it, though it uses nothing of it */
                          {ADD, "3,1", "4", NULL}, /* behind it already */
                          {F_ALL_REDUCE, "4", "5", IN("1")},
                          {WAIT_TENSOR, "5", "6", NULL}, /* a value, no fence */
                          {ADD, "4,3", "7", NULL}};
    check_deps(calls, COUNT(calls),
               "1 c10d.allreduce_.default\n2 aten.add.Tensor | 1\n3 aten.add.Tensor < 2\n"
               "4 _c10d_functional.all_reduce.default < 3 | 1\n5 aten.add.Tensor < 3 2\n");
}

TEST(test_fx__a_barrier_is_waited_for)
{
    const call calls[] = {
        {BARRIER, "2", "", IN("0")}, {WAIT, "2", "", NULL}, {ADD, "0,1", "3", NULL}};
    check_deps(calls, COUNT(calls), "1 c10d.barrier.default\n2 aten.add.Tensor | 1\n");
}

TEST(test_fx__a_write_comes_after_those_who_read_before)
{
    const call calls[] = {
        {MM, "2,1", "3", NULL},
        {COPY, "2,1", "2", ",\"writes\":[2]"}, /* does not look at what was there */
        {MM, "2,1", "4", NULL},
        {ADD_IN_PLACE, "2,4", "2", ",\"writes\":[2]"}}; /* does */
    check_deps(calls, COUNT(calls),
               "1 aten.mm.default\n2 aten.copy_.default | 1\n3 aten.mm.default < 2\n"
               "4 aten.add_.Tensor < 2 3\n");
}

TEST(test_fx__parts_of_a_buffer_do_not_wait_for_each_other)
{
    const call calls[] = {{COPY, "10,2", "10", ",\"writes\":[10]"},
                          {COPY, "11,3", "11", ",\"writes\":[11]"},
                          {MM, "0,1", "4", NULL},
                          {MM, "10,1", "5", NULL}};
    check_deps(
        calls, COUNT(calls),
        "1 aten.copy_.default\n2 aten.copy_.default\n3 aten.mm.default < 2 1\n4 aten.mm.default < 1\n");
}

TEST(test_fx__a_wait_is_about_its_own_bytes)
{
    const call calls[] = {{ALL_REDUCE, "10", "10", ",\"writes\":[10]" IN("1")},
                          {ALL_REDUCE, "11", "11", ",\"writes\":[11]" IN("1")},
                          {WAIT, "10", "", NULL},
                          {ADD, "2,1", "3", NULL}, /* the lower half is still on its way */
                          {WAIT, "11", "", NULL},
                          {ADD, "2,1", "4", NULL}};
    check_deps(calls, COUNT(calls),
               "1 c10d.allreduce_.default\n2 c10d.allreduce_.default | 1\n3 aten.add.Tensor | 1\n"
               "4 aten.add.Tensor | 2\n");
}

static bool comes_after(const orr_trace *t, uint32_t i, uint64_t id)
{
    orr_node node;
    orr_value v;
    bool is_there = false;
    orr_trace_node(t, i, &node);
    for (orr_list list = orr_node_ctrl_deps(&node); orr_list_next(&list, &v);)
        is_there |= v.u == id;
    return is_there;
}

/* A flat buffer with many users: the upper half is on its way to other ranks while the lower one is
 * used and written. */
TEST(test_fx__a_long_list_of_users_does_not_wait_for_communication)
{
    enum { USES = 300, WRITE = USES + 1, LAST = USES + 2 };
    static call calls[USES + 4] = {{ALL_REDUCE, "10", "10", ",\"writes\":[10]" IN("1")}};
    orr_set *s;
    for (int i = 1; i <= USES; i++)
        calls[i] = (call){MM, "11,1", "4", NULL};
    calls[WRITE] = (call){COPY, "11,2", "11", ",\"writes\":[11]"};
    calls[WRITE + 1] = (call){WAIT, "10", "", NULL};
    calls[WRITE + 2] = (call){ADD, "2,1", "3", NULL};
    CHECK_OK(convert(2, PAIR, calls, COUNT(calls), &s, NULL), &err);
    const orr_trace *t = orr_set_trace(s, 0);
    CHECK(!comes_after(t, WRITE, 1));
    CHECK(comes_after(t, WRITE, 2) && comes_after(t, WRITE, USES + 1));
    CHECK(comes_after(t, LAST, 1)); /* and the wait still finds it */
    orr_set_close(s);
}

/* FSDP with 300 parameters in a group: each is made by a node of its own, and all of them go into
 * one buffer. */
TEST(test_fx__an_all_gather_waits_for_all_that_was_copied_in)
{
    enum { PARTS = 300 };
    orr_buf b = {0};
    orr_fx *c;
    orr_set *s;
    begin(&b, 2, "");
    orr_buf_text(&b, "{\"rank\":0,\"ops\":[\"aten.mm.default\",\"fsdp.all_gather_copy_in.default\","
                     "\"c10d._allgather_base_.default\"],\"storages\":[");
    for (int i = 0; i <= PARTS; i++)
        orr_buf_text(&b, i ? ",64" : "64");
    orr_buf_text(&b, "],\"tensors\":[");
    for (int i = 0; i <= PARTS; i++)
        add_tensor(&b, 4, i, 0, "4,1");
    b.len--;
    orr_buf_text(&b, "],\"nodes\":[");
    for (int i = 0; i < PARTS; i++)
        orr_buf_print(&b, "{\"op\":0,\"out\":[%d]},", i);
    orr_buf_text(&b, "{\"op\":1,\"in\":[");
    for (int i = 0; i < PARTS; i++)
        orr_buf_print(&b, i ? ",%d" : "%d", i);
    orr_buf_print(&b, "],\"out\":[%d]},{\"op\":2,\"in\":[%d],\"out\":[%d],\"writes\":[%d]%s}]}",
                  PARTS, PARTS, PARTS, PARTS, IN("0"));
    CHECK_OK(parse(&b, &c), &err);
    CHECK_OK(orr_fx_convert(c, NULL, &s, NULL, &err), &err);
    orr_node node;
    orr_value v;
    int count = 0;
    orr_trace_node(orr_set_trace(s, 0), PARTS, &node);
    for (orr_list list = orr_node_data_deps(&node); orr_list_next(&list, &v);)
        count++;
    CHECK_EQ(count, PARTS);
    orr_set_close(s);
    orr_fx_close(c);
}

/* Each of the tensors would fit, their product takes 2 * 2^64 operations. */
TEST(test_fx__shapes_that_no_machine_holds_are_refused)
{
    static const char text[] =
        "{\"format\":\"orrery-capture\",\"version\":1,\"world_size\":1,"
        "\"groups\":[{\"family\":0,\"ranks\":[0]}],\"graphs\":[{\"rank\":0,\"ops\":[\"aten.mm.default\"],"
        "\"storages\":[0,0,0],\"tensors\":["
        "{\"shape\":[4294967296,1],\"dtype\":\"float32\",\"storage\":0},"
        "{\"shape\":[1,4294967296],\"dtype\":\"float32\",\"storage\":1},"
        "{\"shape\":[1],\"dtype\":\"float32\",\"storage\":2}],"
        "\"nodes\":[{\"op\":0,\"in\":[0,1],\"out\":[2]}]}]}";
    orr_fx *c;
    orr_set *s;
    CHECK_OK(orr_fx_parse((orr_span){(const uint8_t *)text, strlen(text)}, "s.json", 0, &c, &err),
             &err);
    CHECK_CODE(orr_fx_convert(c, NULL, &s, NULL, &err), ORR_EINPUT, &err);
    CHECK_SAYS(&err, "rank 0, node 0: aten.mm.default takes more than 2^63 operations");
    orr_fx_close(c);
}

/* What a file says must not act upon the terminal that it is shown on. */
TEST(test_fx__names_have_no_control_characters)
{
    static const char text[] =
        "{\"format\":\"orrery-capture\",\"version\":1,\"world_size\":1,"
        "\"groups\":[{\"family\":0,\"ranks\":[0]}],\"notes\":[{\"text\":\"a\\u0007b\"}],"
        "\"graphs\":[{\"rank\":0,\"ops\":[\"mine.\\u001b[31m\\u0000\\n.x\"],\"nodes\":[{\"op\":0}]}]}";
    orr_fx *c;
    orr_set *s;
    orr_fx_report r;
    CHECK_OK(orr_fx_parse((orr_span){(const uint8_t *)text, strlen(text)}, "s.json", 0, &c, &err),
             &err);
    CHECK_OK(orr_fx_convert(c, NULL, &s, &r, &err), &err);
    CHECK_EQ(r.unknown_count, 1);
    CHECK_TEXT(r.unknown[0].name.ptr, "mine.?[31m??.x");
    CHECK_TEXT(r.notes[0].text.ptr, "a?b");
    orr_fx_report_fini(&r);
    orr_set_close(s);
    orr_fx_close(c);
}

TEST(test_fx__what_came_before_the_step_is_left_out)
{
    const call calls[] = {{MM, "0,1", "2", ",\"phase\":\"setup\""},
                          {ADD, "2,1", "3", ",\"phase\":\"forward\""}};
    check_deps(calls, COUNT(calls), "1 aten.add.Tensor\n");
}

TEST(test_fx__alone_in_a_group_there_is_nothing_to_do)
{
    const call calls[] = {{MM, "0,1", "2", NULL},
                          {F_ALL_REDUCE, "2", "3", IN("1")},
                          {WAIT_TENSOR, "3", "4", NULL},
                          {ADD, "4,1", "5", NULL}};
    orr_set *s;
    CHECK_OK(convert(2, ",{\"family\":1,\"ranks\":[0]},{\"family\":1,\"ranks\":[1]}", calls,
                     COUNT(calls), &s, NULL),
             &err);
    check_trace(orr_set_trace(s, 0), "1 aten.mm.default\n2 aten.add.Tensor < 1\n");
    CHECK_EQ(orr_set_group_count(s), 0);
    orr_set_close(s);
}

/* What is gathered goes into the first argument, which is written and not looked at. */
TEST(test_fx__alone_in_a_group_what_is_given_is_passed_on)
{
    const call calls[] = {{MM, "0,1", "2", NULL},
                          {GATHER, "3,2", "3", ",\"writes\":[3]" IN("1")},
                          {ADD, "3,1", "4", NULL}};
    orr_set *s;
    CHECK_OK(convert(2, ",{\"family\":1,\"ranks\":[0]},{\"family\":1,\"ranks\":[1]}", calls,
                     COUNT(calls), &s, NULL),
             &err);
    check_trace(orr_set_trace(s, 0), "1 aten.mm.default\n2 aten.add.Tensor < 1\n");
    orr_set_close(s);
}

/* ---- sizes ---- */

/* Inputs 2 and 3 have 64 bytes each, 10 and 11 have 32; among four ranks. */
static void check_size(
    const char *op, const char *in, const char *out, const char *writes, int kind, int64_t size)
{
    orr_buf b = {0};
    orr_fx *c;
    orr_set *s;
    const call one = {STRANGE, in, out, writes};
    begin(&b, 4, "");
    add_graph(&b, 0, &one, 1);
    orr_buf_byte(&b, 0);
    char *at = strstr((char *)b.ptr, "mine.strange.default"), text[8192];
    const int n = snprintf(text, sizeof text, "%.*s%s%s]}", (int)(at - (char *)b.ptr),
                           (char *)b.ptr, op, at + strlen("mine.strange.default"));
    CHECK_OK(orr_fx_parse((orr_span){(const uint8_t *)text, (size_t)n}, "x", 0, &c, &err), &err);
    CHECK_OK(orr_fx_convert(c, NULL, &s, NULL, &err), &err);
    const orr_columns *columns = orr_trace_columns(orr_set_trace(s, 0));
    CHECK_EQ(columns->count, 1);
    CHECK_EQ(columns->comm_type[0], kind);
    CHECK_EQ(columns->comm_size[0], size);
    orr_set_close(s);
    orr_fx_close(c);
    orr_buf_fini(&b);
}

TEST(test_fx__a_size_is_what_a_rank_has_before)
{
    const char *in_place = ",\"writes\":[2,3]" IN("0");
    check_size("c10d.allreduce_.default", "2", "2", ",\"writes\":[2]" IN("0"), ORR_COLL_ALL_REDUCE,
               64);
    check_size("c10d.allreduce_coalesced_.default", "2,3", "2,3", in_place, ORR_COLL_ALL_REDUCE,
               128);
    check_size("_c10d_functional.all_reduce_coalesced.default", "2,3", "4,5", IN("0"),
               ORR_COLL_ALL_REDUCE, 128);
    check_size("c10d.allgather_.default", "2", "3,4,5,6", ",\"writes\":[3,4,5,6]" IN("0"),
               ORR_COLL_ALL_GATHER, 64);
    check_size("c10d._allgather_base_.default", "10", "2", ",\"writes\":[2]" IN("0"),
               ORR_COLL_ALL_GATHER, 32);
    check_size("_c10d_functional.all_gather_into_tensor.default", "10", "2", IN("0"),
               ORR_COLL_ALL_GATHER, 32);
    check_size("_c10d_functional.all_gather_into_tensor_out.default", "10,2", "2",
               ",\"writes\":[2]" IN("0"), ORR_COLL_ALL_GATHER, 32);
    check_size("c10d._reduce_scatter_base_.default", "2", "10", ",\"writes\":[10]" IN("0"),
               ORR_COLL_REDUCE_SCATTER, 64);
    check_size("c10d.reduce_scatter_.default", "2,3,4,5", "6", ",\"writes\":[6]" IN("0"),
               ORR_COLL_REDUCE_SCATTER, 256);
    check_size("_c10d_functional.reduce_scatter_tensor.default", "2", "10", IN("0"),
               ORR_COLL_REDUCE_SCATTER, 64);
    check_size("c10d.alltoall_base_.default", "2", "3", ",\"writes\":[3]" IN("0"),
               ORR_COLL_ALL_TO_ALL, 64);
    check_size("_c10d_functional.all_to_all_single.default", "2", "3", IN("0"), ORR_COLL_ALL_TO_ALL,
               64);
    check_size("_dtensor.shard_dim_alltoall.default", "2", "3", IN("0"), ORR_COLL_ALL_TO_ALL, 64);
    check_size("c10d.broadcast_.default", "2", "2",
               ",\"writes\":[2],\"args\":{\"group\":0,\"root_rank\":1}", ORR_COLL_BROADCAST, 64);
    check_size("c10d.reduce_.default", "2", "2",
               ",\"writes\":[2],\"args\":{\"group\":0,\"root_rank\":1}", ORR_COLL_REDUCE, 64);
    check_size("c10d.gather_.default", "2", "", IN("0"), ORR_COLL_GATHER, 64);
    /* Away from the root there is no input: four parts of 64 bytes are the whole. */
    check_size("c10d.scatter_.default", "", "2", ",\"writes\":[2]" IN("0"), ORR_COLL_SCATTER, 256);
    check_size("c10d.barrier.default", "2", "", IN("0"), ORR_COLL_BARRIER, 0);
}

/* ---- ranks ---- */

TEST(test_fx__groups_and_peers_are_those_of_the_rank)
{
    /* Two pipelines of two stages, {0, 2} and {1, 3}: stage 0 sends, then all add up in {0, 1} or
     * {2, 3}. */
    const char *groups = ",{\"family\":1,\"ranks\":[0,2]},{\"family\":1,\"ranks\":[1,3]}"
                         ",{\"family\":2,\"ranks\":[0,1]},{\"family\":2,\"ranks\":[2,3]}";
    const call first[] = {{SEND, "2", "", ",\"args\":{\"dst\":1,\"tag\":5,\"group\":1}"},
                          {ALL_REDUCE, "3", "3", ",\"writes\":[3]" IN("3")}};
    const call second[] = {
        {RECV, "", "2", ",\"writes\":[2],\"args\":{\"src\":0,\"tag\":5,\"group\":1}"},
        {ALL_REDUCE, "3", "3", ",\"writes\":[3]" IN("4")}};
    orr_buf b = {0};
    orr_fx *c;
    orr_set *s;
    begin(&b, 4, groups);
    add_graph(&b, 0, first, 2);
    orr_buf_text(&b, ",");
    add_graph(&b, 2, second, 2);
    CHECK_OK(parse(&b, &c), &err);
    CHECK_OK(orr_fx_convert(c, NULL, &s, NULL, &err), &err);
    orr_fx_close(c);
    CHECK_EQ(orr_set_rank_count(s), 4);
    CHECK_EQ(orr_set_class_count(s), 2);
    int64_t v;
    CHECK(orr_set_hole(s, 1, ORR_HOLE_COMM_DST, 0, &v));
    CHECK_EQ(v, 3);
    CHECK(orr_set_hole(s, 3, ORR_HOLE_COMM_SRC, 0, &v));
    CHECK_EQ(v, 1);
    CHECK(orr_set_hole(s, 3, ORR_HOLE_PG_NAME, 1, &v));
    CHECK_EQ(v, 5); /* the fifth of the file, as groups of a set count from 1 */
    CHECK_EQ(orr_trace_columns(orr_set_trace(s, 0))->comm_tag[0], 5);
    CHECK_EQ(orr_set_group_count(s), 4); /* nobody uses the group of all */
    orr_set_close(s);
}

TEST(test_fx__the_root_of_a_gather_is_not_like_the_others)
{
    /* Groups {0, 1} and {2, 3}; the first rank of each gathers what both have. */
    const char *groups = ",{\"family\":1,\"ranks\":[0,1]},{\"family\":1,\"ranks\":[2,3]}";
    const call root[] = {
        {GATHER, "2", "3,4", ",\"writes\":[3,4],\"args\":{\"group\":1,\"root_rank\":0}"}};
    const call other[] = {{GATHER, "2", "", ",\"args\":{\"group\":2,\"root_rank\":0}"}};
    orr_buf b = {0};
    orr_fx *c;
    orr_set *s;
    begin(&b, 4, groups);
    add_graph(&b, 0, root, 1);
    orr_buf_text(&b, ",");
    add_graph(&b, 3, other, 1);
    CHECK_OK(parse(&b, &c), &err);
    CHECK_OK(orr_fx_convert(c, NULL, &s, NULL, &err), &err);
    orr_fx_close(c);
    int64_t v;
    CHECK_EQ(orr_set_class_count(s), 2);
    CHECK_EQ(orr_set_class_of(s, 2), orr_set_class_of(s, 0));
    CHECK_EQ(orr_set_class_of(s, 1), orr_set_class_of(s, 3));
    for (uint32_t r = 0; r < 4; r++) {
        CHECK(orr_set_hole(s, r, ORR_HOLE_COMM_DST, 0, &v));
        CHECK_EQ(v, r / 2 * 2);
    }
    orr_set_close(s);
}

TEST(test_fx__an_allocation_waits_for_nothing)
{
    const call calls[] = {{MM, "0,1", "2", NULL},
                          {EMPTY_LIKE, "2", "3", NULL},
                          {COPY, "3,1", "3", ",\"writes\":[3]"}};
    check_deps(calls, COUNT(calls), "1 aten.mm.default\n2 aten.copy_.default\n");
}

TEST(test_fx__a_group_norm_has_no_process_group)
{
    const call calls[] = {
        {GROUP_NORM, "0", "2", ",\"args\":{\"N\":4,\"group\":32,\"tag\":1,\"dst\":9}"}};
    check_deps(calls, COUNT(calls), "1 aten.native_group_norm.default\n");
}

TEST(test_fx__a_large_job_is_one_body)
{
    enum { RANKS = 100000, EACH = 8 };
    orr_buf b = {0}, groups = {0};
    orr_fx *c;
    orr_set *s;
    const call calls[] = {{MM, "0,1", "2", NULL},
                          {ALL_REDUCE, "2", "2", ",\"writes\":[2]" IN("1")}};
    for (unsigned g = 0; g < RANKS / EACH; g++) {
        orr_buf_text(&groups, ",{\"family\":1,\"ranks\":[");
        for (unsigned r = 0; r < EACH; r++)
            orr_buf_print(&groups, "%s%u", r ? "," : "", g * EACH + r);
        orr_buf_text(&groups, "]}");
    }
    orr_buf_byte(&groups, 0);
    begin(&b, RANKS, "");
    b.len -= strlen("],\"notes\":[],\"graphs\":[");
    orr_buf_text(&b, (const char *)groups.ptr);
    orr_buf_text(&b, "],\"notes\":[],\"graphs\":[");
    add_graph(&b, 0, calls, COUNT(calls));
    CHECK_OK(parse(&b, &c), &err);
    CHECK_OK(orr_fx_convert(c, NULL, &s, NULL, &err), &err);
    int64_t v;
    CHECK_EQ(orr_set_rank_count(s), RANKS);
    CHECK_EQ(orr_set_class_count(s), 1);
    CHECK(orr_set_hole(s, 12345, ORR_HOLE_PG_NAME, 1, &v));
    CHECK_EQ(v, 12345 / EACH + 2); /* group 0 is all, and a set counts from 1 */
    orr_set_close(s);
    orr_fx_close(c);
    orr_buf_fini(&groups);
}

TEST(test_fx__when_all_were_run_those_that_are_alike_share_a_body)
{
    const call a[] = {{MM, "0,1", "2", NULL}}, b[] = {{ADD, "0,1", "2", NULL}};
    orr_buf text = {0};
    orr_fx *c;
    orr_set *s;
    begin(&text, 6, "");
    for (int r = 0; r < 6; r++) { /* a b a b a b */
        orr_buf_text(&text, r ? "," : "");
        add_graph(&text, r, r % 2 ? b : a, 1);
    }
    CHECK_OK(parse(&text, &c), &err);
    CHECK_OK(orr_fx_convert(c, NULL, &s, NULL, &err), &err);
    CHECK_EQ(orr_set_class_count(s), 2);
    CHECK_EQ(orr_set_class_of(s, 5), orr_set_class_of(s, 1));
    orr_set_close(s);
    orr_fx_close(c);
}

static orr_code convert_two(unsigned world, const call *a, const call *b, size_t count, orr_set **s)
{
    orr_buf text = {0};
    orr_fx *c;
    begin(&text, world, PAIR);
    add_graph(&text, 0, a, count);
    orr_buf_text(&text, ",");
    add_graph(&text, 1, b, count);
    CHECK_OK(parse(&text, &c), &err);
    const orr_code code = orr_fx_convert(c, NULL, s, NULL, &err);
    orr_fx_close(c);
    return code;
}

TEST(test_fx__ranks_that_should_be_alike_and_are_not_are_refused)
{
    const call a[] = {{MM, "0,1", "2", NULL}, {ADD, "2,1", "3", NULL}};
    const call b[] = {{MM, "0,1", "2", NULL}, {ADD, "2,2", "3", NULL}};
    orr_set *s;
    CHECK_CODE(convert_two(3, a, b, 2, &s), ORR_EINPUT, &err);
    CHECK_SAYS(&err, "ranks 0 and 1 differ at node 1 of rank 1 (aten.add.Tensor)");
    CHECK_SAYS(&err, "--ranks all");
    CHECK_OK(convert_two(2, a, b, 2, &s),
             &err); /* all were run: each does what it was seen to do */
    CHECK_EQ(orr_set_class_count(s), 2);
    orr_set_close(s);
    CHECK_OK(convert_two(3, a, a, 2, &s), &err);
    CHECK_EQ(orr_set_class_count(s), 1);
    orr_set_close(s);
}

TEST(test_fx__a_message_needs_its_other_end)
{
    const call send[] = {{SEND, "2", "", ",\"args\":{\"dst\":1,\"group\":1}"}};
    const call other[] = {
        {RECV, "", "2", ",\"writes\":[2],\"args\":{\"src\":0,\"tag\":1,\"group\":1}"}};
    const call small[] = {{RECV, "", "10", ",\"writes\":[10],\"args\":{\"src\":0,\"group\":1}"}};
    orr_set *s;
    CHECK_CODE(convert_two(2, send, other, 1, &s), ORR_EINPUT, &err);
    CHECK_SAYS(&err, "rank 0, node 0: 1 messages to rank 1 with tag 0, which expects 0");
    CHECK_CODE(convert_two(2, send, small, 1, &s), ORR_EINPUT, &err);
    CHECK_SAYS(&err, "rank 0, node 0: a message of 64 bytes, but its peer, rank 1, has 32");
    CHECK_CODE(convert(2, PAIR, send, 1, &s, NULL), ORR_EINPUT, &err);
    CHECK_SAYS(&err, "no captured rank has the place of rank 1, place 1 of group 1");
}

/* Ranks 0 and 2 are alike, rank 3 does not receive what rank 1 receives: it is rank 2's message
 * that is lost. */
TEST(test_fx__every_rank_of_a_class_needs_its_other_end)
{
    const call first[] = {{SEND, "2", "", ",\"args\":{\"dst\":1,\"group\":1}"}},
               third[] = {{SEND, "2", "", ",\"args\":{\"dst\":1,\"group\":2}"}},
               second[] = {{RECV, "", "2", ",\"writes\":[2],\"args\":{\"src\":0,\"group\":1}"}},
               none[] = {{MM, "0,1", "2", NULL}};
    const call *const all[] = {first, second, third, none};
    orr_buf b = {0};
    orr_fx *c;
    orr_set *s;
    begin(&b, 4, PAIR ",{\"family\":1,\"ranks\":[2,3]}");
    for (int r = 0; r < 4; r++) {
        orr_buf_text(&b, r ? "," : "");
        add_graph(&b, r, all[r], 1);
    }
    CHECK_OK(parse(&b, &c), &err);
    CHECK_CODE(orr_fx_convert(c, NULL, &s, NULL, &err), ORR_EINPUT, &err);
    CHECK_SAYS(&err, "rank 2, node 0: 1 messages to rank 3 with tag 0, which expects 0");
    orr_fx_close(c);
}

TEST(test_fx__communication_says_where_it_goes)
{
    const call lost[] = {{SEND, "2", "", IN("1")}},
               own[] = {{SEND, "2", "", ",\"args\":{\"dst\":0,\"group\":1}"}},
               nowhere[] = {{ALL_REDUCE, "2", "2", ",\"writes\":[2]"}};
    orr_set *s;
    CHECK_CODE(convert(2, PAIR, lost, 1, &s, NULL), ORR_EINPUT, &err);
    CHECK_SAYS(&err, "does not say whom it is for");
    CHECK_CODE(convert(2, PAIR, own, 1, &s, NULL), ORR_EINPUT, &err);
    CHECK_SAYS(&err, "a message to itself");
    CHECK_CODE(convert(2, PAIR, nowhere, 1, &s, NULL), ORR_EINPUT, &err);
    CHECK_SAYS(&err, "does not say in which process group");
}

TEST(test_fx__a_pipeline_keeps_its_order)
{
    /* Rank 0 computes, sends, waits for an answer, computes with it, and then goes on with
     * something else: the last node comes after the answer and after all that was computed before
     * it was waited for. */
    const call a[] = {{MM, "0,1", "2", NULL},
                      {SEND, "2", "", ",\"args\":{\"dst\":1,\"group\":1}"},
                      {RECV, "", "3", ",\"writes\":[3],\"args\":{\"src\":1,\"group\":1}"},
                      {WAIT, "3", "", NULL},
                      {ADD, "3,1", "4", NULL},
                      {MM, "0,1", "5", NULL}};
    const call b[] = {{RECV, "", "3", ",\"writes\":[3],\"args\":{\"src\":0,\"group\":1}"},
                      {WAIT, "3", "", NULL},
                      {MM, "3,1", "2", NULL},
                      {SEND, "2", "", ",\"args\":{\"dst\":0,\"group\":1}"},
                      {WAIT, "2", "", NULL},
                      {MM, "0,1", "5", NULL}};
    orr_set *s;
    CHECK_OK(convert_two(2, a, b, 6, &s), &err);
    check_trace(orr_set_trace(s, 0),
                "1 aten.mm.default\n2 c10d.send.default < 1\n3 c10d.recv_.default\n"
                "4 aten.add.Tensor < 3 | 1\n5 aten.mm.default | 3 1\n");
    check_trace(orr_set_trace(s, 1),
                "1 c10d.recv_.default\n2 aten.mm.default < 1\n3 c10d.send.default < 2\n"
                "4 aten.mm.default | 1\n");
    orr_set_close(s);
}

/* ---- what is reported ---- */

TEST(test_fx__memory_is_what_is_alive)
{
    const call calls[] = {{MM, "0,1", "2", ",\"phase\":\"forward\""},   /* 0, 1, 2 */
                          {ADD, "2,1", "3", ",\"phase\":\"forward\""},  /* 2, 3 */
                          {ADD, "3,3", "4", ",\"phase\":\"backward\""}, /* 3, 4: 2 is dead */
                          {ADD, "4,3", "5", ",\"phase\":\"backward\""}, /* 3, 4, 5: most */
                          {ADD_IN_PLACE, "0,5", "0", ",\"writes\":[0],\"phase\":\"optimizer\""}};
    orr_set *s;
    orr_fx_report r;
    CHECK_OK(convert(1, "", calls, COUNT(calls), &s, &r), &err);
    const orr_fx_memory *m = &r.ranks[0].memory;
    CHECK_EQ_U(m->peak, 5 * 64);
    CHECK_EQ_U(m->parameters, 64);
    CHECK_EQ_U(m->optimizer, 64);
    CHECK_EQ_U(m->gradients, 64); /* 5, which the optimizer reads */
    CHECK_EQ_U(m->activations, 2 * 64);
    orr_attr attr;
    orr_node node;
    int64_t held;
    const int64_t want[] = {3 * 64, 4 * 64, -1, 5 * 64, 3 * 64}; /* -1: as before */
    for (uint32_t i = 0; i < 5; i++) {
        orr_trace_node(orr_set_trace(s, 0), i, &node);
        const bool has = orr_node_attr(&node, "held_bytes", &attr) && orr_attr_int(&attr, &held);
        CHECK_EQ(has ? held : -1, want[i]);
    }
    orr_fx_report_fini(&r);
    orr_set_close(s);
}

TEST(test_fx__operators_without_a_cost_are_listed)
{
    const call calls[] = {
        {STRANGE, "0", "2", NULL}, {MM, "2,1", "3", NULL}, {STRANGE, "3", "4", NULL}};
    orr_set *s;
    orr_fx_report r;
    CHECK_OK(convert(1, "", calls, COUNT(calls), &s, &r), &err);
    CHECK_EQ_U(r.unknown_count, 1);
    CHECK_TEXT(r.unknown[0].name.ptr, "mine.strange.default");
    CHECK_EQ_U(r.unknown[0].count, 2);
    CHECK_EQ_U(r.ranks[0].flops, 2 * 4 * 4 * 4);
    const orr_columns *c = orr_trace_columns(orr_set_trace(s, 0));
    CHECK_EQ(c->tensor_size[0], 2 * 64);
    CHECK_EQ(c->num_ops[1], 128);
    CHECK_EQ(c->tensor_size[1], 3 * 64);
    orr_fx_report_fini(&r);
    orr_set_close(s);
}

TEST(test_fx__rounding_of_durations_does_not_add_up)
{
    /* 128 FLOP at 85.333 MFLOP/s are 1.5 us: 1, then 2, then 1. */
    const call calls[] = {{MM, "0,1", "2", NULL}, {MM, "0,1", "3", NULL}, {MM, "0,1", "4", NULL}};
    const orr_fx_options opt = {.peak_flops = 128 / 1.5e-6};
    orr_buf b = {0};
    orr_fx *c;
    orr_set *s;
    begin(&b, 1, "");
    add_graph(&b, 0, calls, COUNT(calls));
    CHECK_OK(parse(&b, &c), &err);
    CHECK_OK(orr_fx_convert(c, &opt, &s, NULL, &err), &err);
    const uint64_t *us = orr_trace_columns(orr_set_trace(s, 0))->duration_us;
    CHECK_EQ_U(us[0], 1);
    CHECK_EQ_U(us[0] + us[1] + us[2], 4);
    orr_set_close(s);
    orr_fx_close(c);
}

/* ---- graphs as FX prints them ---- */

static const char printed[] =
    "[{\"pass\":\"forward\",\"nodes\":["
    "{\"name\":\"x\",\"op\":\"placeholder\",\"target\":\"x\",\"inputs\":[],\"args\":\"()\","
    "\"val\":{\"shape\":[4,4],\"dtype\":\"torch.float32\"}},"
    "{\"name\":\"t\",\"op\":\"call_function\",\"target\":\"aten.t.default\",\"inputs\":[\"x\"],\"args\":\"(x,)\","
    "\"val\":{\"shape\":[4,4],\"dtype\":\"torch.float32\"}},"
    "{\"name\":\"mm\",\"op\":\"call_function\",\"target\":\"aten.mm.default\",\"inputs\":[\"x\",\"t\"],"
    "\"args\":\"(x, t)\",\"val\":{\"shape\":[4,4],\"dtype\":\"torch.float32\"}},"
    "{\"name\":\"sum\",\"op\":\"call_function\",\"target\":\"_c10d_functional.all_reduce.default\","
    "\"inputs\":[\"mm\"],\"args\":\"(mm, 'sum', '5')\",\"val\":{\"shape\":[4,4],\"dtype\":\"torch.float32\"}},"
    "{\"name\":\"wait\",\"op\":\"call_function\",\"target\":\"_c10d_functional.wait_tensor.default\","
    "\"inputs\":[\"sum\"],\"args\":\"(sum,)\",\"val\":{\"shape\":[4,4],\"dtype\":\"torch.float32\"}},"
    "{\"name\":\"output\",\"op\":\"output\",\"target\":\"output\",\"inputs\":[\"wait\"],\"args\":\"((wait,),)\","
    "\"val\":\"None\"}]},"
    "{\"pass\":\"backward\",\"nodes\":["
    "{\"name\":\"wait\",\"op\":\"placeholder\",\"target\":\"wait\",\"inputs\":[],\"args\":\"()\","
    "\"val\":{\"shape\":[4,4],\"dtype\":\"torch.float32\"}},"
    "{\"name\":\"mm_1\",\"op\":\"call_function\",\"target\":\"aten.mm.default\",\"inputs\":[\"wait\",\"wait\"],"
    "\"args\":\"(wait, wait)\",\"val\":{\"shape\":[4,4],\"dtype\":\"torch.float32\"}}]}]";

TEST(test_fx__printed_graphs_are_read)
{
    const orr_span bytes = {(const uint8_t *)printed, sizeof printed - 1};
    orr_fx *c;
    orr_set *s;
    CHECK_CODE(orr_fx_parse(bytes, "g.json", 0, &c, &err), ORR_EINPUT, &err);
    CHECK_SAYS(&err, "--world-size");
    CHECK_OK(orr_fx_parse(bytes, "g.json", 4, &c, &err), &err);
    CHECK_OK(orr_fx_convert(c, NULL, &s, NULL, &err), &err);
    CHECK_EQ(orr_set_rank_count(s), 4);
    check_trace(orr_set_trace(s, 0),
                "1 aten.mm.default\n2 _c10d_functional.all_reduce.default < 1\n"
                "3 aten.mm.default < 2\n");
    CHECK_EQ(orr_trace_columns(orr_set_trace(s, 0))->comm_size[1], 64);
    orr_set_close(s);
    orr_fx_close(c);
}

int main(void)
{
    const CMUnitTest tests[] = {
        RUN(test_fx__a_value_waits_for_who_made_it),
        RUN(test_fx__views_pass_dependencies_through),
        RUN(test_fx__computation_goes_on_beside_a_collective),
        RUN(test_fx__a_functional_collective_makes_a_new_value),
        RUN(test_fx__a_wait_of_the_program_is_a_fence),
        RUN(test_fx__a_barrier_is_waited_for),
        RUN(test_fx__a_write_comes_after_those_who_read_before),
        RUN(test_fx__parts_of_a_buffer_do_not_wait_for_each_other),
        RUN(test_fx__a_wait_is_about_its_own_bytes),
        RUN(test_fx__a_long_list_of_users_does_not_wait_for_communication),
        RUN(test_fx__an_all_gather_waits_for_all_that_was_copied_in),
        RUN(test_fx__shapes_that_no_machine_holds_are_refused),
        RUN(test_fx__names_have_no_control_characters),
        RUN(test_fx__what_came_before_the_step_is_left_out),
        RUN(test_fx__alone_in_a_group_there_is_nothing_to_do),
        RUN(test_fx__alone_in_a_group_what_is_given_is_passed_on),
        RUN(test_fx__a_size_is_what_a_rank_has_before),
        RUN(test_fx__groups_and_peers_are_those_of_the_rank),
        RUN(test_fx__the_root_of_a_gather_is_not_like_the_others),
        RUN(test_fx__an_allocation_waits_for_nothing),
        RUN(test_fx__a_group_norm_has_no_process_group),
        RUN(test_fx__a_large_job_is_one_body),
        RUN(test_fx__ranks_that_should_be_alike_and_are_not_are_refused),
        RUN(test_fx__when_all_were_run_those_that_are_alike_share_a_body),
        RUN(test_fx__a_message_needs_its_other_end),
        RUN(test_fx__every_rank_of_a_class_needs_its_other_end),
        RUN(test_fx__communication_says_where_it_goes),
        RUN(test_fx__a_pipeline_keeps_its_order),
        RUN(test_fx__memory_is_what_is_alive),
        RUN(test_fx__operators_without_a_cost_are_listed),
        RUN(test_fx__rounding_of_durations_does_not_add_up),
        RUN(test_fx__printed_graphs_are_read),
    };
    return RUN_ALL(tests);
}
