/* SPDX-License-Identifier: Apache-2.0 */
/* test_check.c - the doctor: every kind of finding on the smallest set that has it, and silence on
 * sets that only look odd. */
#include "check.h"

#include "base/formats/json.h"
#include "et_make.h"

#include <orrery/check.h>
#include <orrery/set.h>

/* ---- making ranks ---- */

enum { DEPS = 4 };

/* What a node of a test has.  Dependencies and attributes that are not given are absent. */
typedef struct part {
    uint64_t id;
    uint32_t type;
    uint64_t data[DEPS], ctrl[DEPS]; /* ids from 1; 0 ends the list */
    const char *name;
    orr_attr attrs[6];
} part;

static orr_attr whole(const char *name, int64_t v)
{
    return (orr_attr){.name = orr_str_of(name), .kind = ORR_VALUE_INT64, .value.i = v};
}

static orr_attr text(const char *name, const char *v)
{
    return (orr_attr){.name = orr_str_of(name), .kind = ORR_VALUE_STRING, .value.s = orr_str_of(v)};
}

static size_t count_ids(const uint64_t ids[DEPS])
{
    size_t n = 0;
    while (n < DEPS && ids[n])
        n++;
    return n;
}

static void add_part(orr_trace *t, const part *p)
{
    size_t attrs = 0;
    while (attrs < 6 && p->attrs[attrs].name.ptr)
        attrs++;
    const orr_draft d = {.id = p->id,
                         .name = orr_str_of(p->name ? p->name : "n"),
                         .type = p->type ? p->type : ORR_NODE_COMP,
                         .data_deps = p->data,
                         .data_count = count_ids(p->data),
                         .ctrl_deps = p->ctrl,
                         .ctrl_count = count_ids(p->ctrl),
                         .attrs = p->attrs,
                         .attr_count = attrs};
    CHECK_OK(orr_trace_append(t, &d, &err), &err);
}

static orr_trace *trace_of(const part *parts, size_t count)
{
    orr_trace *t = new_trace();
    for (size_t i = 0; i < count; i++)
        add_part(t, &parts[i]);
    seal(t);
    return t;
}
#define TRACE(...) \
    trace_of((const part[]){__VA_ARGS__}, sizeof((const part[]){__VA_ARGS__}) / sizeof(part))

static part coll(uint64_t id, int kind, int64_t size, const char *group, uint64_t after)
{
    part p = {.id = id, .type = ORR_NODE_COMM_COLL, .data = {after}, .name = "coll"};
    p.attrs[0] = whole("comm_type", kind);
    p.attrs[1] = whole("comm_size", size);
    if (group)
        p.attrs[2] = text("pg_name", group);
    return p;
}

static part message(uint64_t id, bool is_send, int64_t peer, int64_t tag, int64_t size)
{
    part p = {.id = id,
              .type = is_send ? ORR_NODE_COMM_SEND : ORR_NODE_COMM_RECV,
              .name = is_send ? "send" : "recv"};
    p.attrs[0] = whole(is_send ? "comm_dst" : "comm_src", peer);
    p.attrs[1] = whole("comm_tag", tag);
    p.attrs[2] = whole("comm_size", size);
    return p;
}
#define SEND(id, to, tag, size) message(id, true, to, tag, size)
#define RECV(id, from, tag, size) message(id, false, from, tag, size)

static orr_set *set_of(orr_trace *const *traces, size_t count)
{
    orr_set *s;
    CHECK_OK(orr_set_create(&s, &err), &err);
    for (size_t i = 0; i < count; i++)
        CHECK_OK(orr_set_add(s, traces[i], &err), &err);
    return s;
}

static orr_check_report *check_set(const orr_set *s)
{
    orr_check_report *r;
    CHECK_OK(orr_check_set(s, NULL, &r, &err), &err);
    return r;
}

/* The report of a set that is gone already: a report stands on its own. */
static orr_check_report *check_traces(orr_trace *const *traces, size_t count)
{
    orr_set *s = set_of(traces, count);
    orr_check_report *r = check_set(s);
    orr_set_close(s);
    return r;
}
#define CHECKED(...)                                \
    check_traces((orr_trace *const[]){__VA_ARGS__}, \
                 sizeof((orr_trace *const[]){__VA_ARGS__}) / sizeof(orr_trace *))

static const orr_finding *find_kind(const orr_check_report *r, orr_check_kind kind)
{
    for (size_t i = 0; i < r->finding_count; i++)
        if (r->findings[i].kind == kind)
            return &r->findings[i];
    check_fail(__FILE__, __LINE__, "no finding of the kind %s", orr_check_kind_name(kind));
    return NULL;
}

static void check_contains(const char *got, const char *part_of_it)
{
    if (!strstr(got, part_of_it))
        check_fail(__FILE__, __LINE__, "\"%s\" does not contain \"%s\"", got, part_of_it);
}

/* This kind and no other, so often; its first finding says this of that node.  Frees the report. */
static void check_only(
    orr_check_report *r, orr_check_kind kind, uint64_t count, uint64_t node, const char *says)
{
    for (int i = 0; i < ORR_CHECK_KIND_COUNT; i++)
        if (r->count[i] != (i == (int)kind ? count : 0))
            check_fail(__FILE__, __LINE__, "%s: found %u times: %s",
                       orr_check_kind_name((orr_check_kind)i), (unsigned)r->count[i],
                       r->finding_count ? r->findings[0].text : "");
    const orr_finding *f = find_kind(r, kind);
    if (f->has_node)
        CHECK_EQ_U(f->node, node);
    check_contains(f->text, says);
    orr_check_report_destroy(r);
}

static void check_silent(orr_check_report *r)
{
    if (r->finding_count)
        check_fail(__FILE__, __LINE__, "[%s] %s", orr_check_kind_name(r->findings[0].kind),
                   r->findings[0].text);
    CHECK_EQ_U(r->errors + r->warnings + r->notes, 0);
    orr_check_report_destroy(r);
}

/* ---- dependencies ---- */

TEST(test_check__sound_trace_is_silent)
{
    check_silent(
        CHECKED(TRACE({.id = 1}, {.id = 2, .data = {1}}, {.id = 3, .data = {1, 2}, .ctrl = {1}})));
}

TEST(test_check__missing_parents_are_named)
{
    check_only(CHECKED(TRACE({.id = 1}, {.id = 2, .data = {1, 99}})), ORR_CHECK_MISSING_PARENT, 1,
               2, "data dependency on node 99");
    check_only(CHECKED(TRACE({.id = 1}, {.id = 2, .ctrl = {98, 1}})), ORR_CHECK_MISSING_CTRL_PARENT,
               1, 2, "control dependency on node 98");
    CHECK_EQ(orr_check_kind_severity(ORR_CHECK_MISSING_PARENT), ORR_ERROR);
    CHECK_EQ(orr_check_kind_severity(ORR_CHECK_MISSING_CTRL_PARENT), ORR_WARNING);
}

TEST(test_check__self_dependency_is_not_called_a_cycle)
{
    check_only(CHECKED(TRACE({.id = 1, .data = {1}})), ORR_CHECK_SELF_DEPENDENCY, 1, 1,
               "on itself");
    check_only(CHECKED(TRACE({.id = 1, .ctrl = {1}})), ORR_CHECK_SELF_DEPENDENCY, 1, 1, "control");
}

TEST(test_check__duplicate_dependencies_are_found_in_short_and_long_lists)
{
    check_only(CHECKED(TRACE({.id = 1}, {.id = 2, .data = {1, 1}})), ORR_CHECK_DUPLICATE_DEPENDENCY,
               1, 2, "node 1");
    /* The same in both lists is not a duplicate. */
    check_silent(CHECKED(TRACE({.id = 1}, {.id = 2, .data = {1}, .ctrl = {1}})));
    uint64_t many[40];
    orr_trace *t = new_trace();
    for (uint64_t i = 0; i < 40; i++) {
        add_node(t, i + 1, NULL, 0, NULL, 0);
        many[i] = i + 1;
    }
    many[39] = 7; /* so 7 is there twice and 40 not at all */
    add_node(t, 100, many, 40, NULL, 0);
    seal(t);
    check_only(CHECKED(t), ORR_CHECK_DUPLICATE_DEPENDENCY, 1, 100, "node 7");
}

TEST(test_check__duplicate_ids_are_found)
{
    check_only(CHECKED(TRACE({.id = 5}, {.id = 6, .data = {5}}, {.id = 5, .name = "again"})),
               ORR_CHECK_DUPLICATE_ID, 1, 5, "node 5 \"again\"");
}

TEST(test_check__cycle_is_printed_as_a_path)
{
    check_only(CHECKED(TRACE({.id = 9, .name = "free"}, {.id = 1, .name = "a", .data = {2}},
                             {.id = 2, .name = "b", .data = {9}, .ctrl = {3}},
                             {.id = 3, .name = "c", .data = {1}},
                             {.id = 4, .name = "behind", .data = {3}})),
               ORR_CHECK_CYCLE, 1, 1, "1 \"a\" -> 2 \"b\" -(control)-> 3 \"c\" -> 1, each");
}

TEST(test_check__shortest_cycle_is_shown)
{
    /* 1 -> 2 -> 3 -> 4 -> 1, and 1 -> 4: the way through 4 alone is the shortest. */
    check_only(CHECKED(TRACE({.id = 1, .data = {2, 4}}, {.id = 2, .data = {3}},
                             {.id = 3, .data = {4}}, {.id = 4, .data = {1}})),
               ORR_CHECK_CYCLE, 1, 1,
               "1 \"n\" -> 4 \"n\" -> 1, each waiting for the next; 4 nodes");
}

TEST(test_check__separate_cycles_are_separate_findings)
{
    check_only(CHECKED(TRACE({.id = 1, .data = {2}}, {.id = 2, .data = {1}}, {.id = 3, .data = {4}},
                             {.id = 4, .data = {3, 1}})),
               ORR_CHECK_CYCLE, 2, 1, "1 \"n\" -> 2 \"n\" -> 1");
}

TEST(test_check__long_cycle_is_cut_in_the_middle)
{
    orr_trace *t = new_trace();
    for (uint64_t i = 0; i < 100; i++)
        ADD_NODE(t, i + 1, (i + 1) % 100 + 1);
    seal(t);
    orr_check_report *r = CHECKED(t);
    const char *path = find_kind(r, ORR_CHECK_CYCLE)->text;
    check_contains(
        path,
        "12 \"n\" -> (85 more) -> 98 \"n\" -> 99 \"n\" -> 100 \"n\" -> 1,"); /* 12 + 85 + 3 = 100 */
    orr_check_report_destroy(r);
}

TEST(test_check__children_before_parents_are_no_cycle)
{
    check_silent(CHECKED(TRACE({.id = 3, .data = {2, 1}}, {.id = 2, .data = {1}}, {.id = 1})));
}

TEST(test_check__random_graphs_are_silent_but_for_repeated_parents)
{
    for (uint64_t seed = 1; seed < 20; seed++) {
        orr_check_report *r = CHECKED(random_trace(seed, 2000, 50));
        CHECK_EQ_U(r->errors, 0);
        CHECK_EQ_U(r->warnings, r->count[ORR_CHECK_DUPLICATE_DEPENDENCY]);
        orr_check_report_destroy(r);
    }
}

TEST(test_check__findings_are_counted_beyond_those_kept)
{
    orr_trace *t = new_trace();
    for (uint64_t i = 0; i < 25; i++)
        ADD_NODE(t, i + 1, 1000 + i);
    seal(t);
    orr_check_report *r = CHECKED(t);
    CHECK_EQ_U(r->count[ORR_CHECK_MISSING_PARENT], 25);
    CHECK_EQ_U(r->errors, 25);
    CHECK_EQ_U(r->finding_count, 10);
    orr_str words;
    CHECK_OK(orr_check_text(r, &(orr_check_style){.size = sizeof(orr_check_style), .input = "x"},
                            &words, &err),
             &err);
    check_contains(
        words.ptr,
        "error: and 15 more [missing-parent]\nx: 1 rank, 25 nodes: 25 errors, 0 warnings\n");
    orr_check_report_destroy(r);
}

/* ---- attributes ---- */

TEST(test_check__kinds_that_cannot_be_read_are_found)
{
    part p = coll(1, ORR_COLL_ALL_REDUCE, 8, NULL, 0);
    p.attrs[1] = text("comm_size", "8");
    check_only(CHECKED(TRACE(p)), ORR_CHECK_ATTRIBUTE_KIND, 1, 1,
               "comm_size is string_val where an integer");
    p = (part){.id = 1, .attrs = {text("stream", "7")}};
    check_only(CHECKED(TRACE(p)), ORR_CHECK_ODD_ATTRIBUTE, 1, 1, "stream");
    p = (part){.id = 1, .attrs = {whole("involved_dim", 1)}};
    check_only(CHECKED(TRACE(p)), ORR_CHECK_ODD_ATTRIBUTE, 1, 1,
               "involved_dim is int64_val where bool_list");
    p = (part){.id = 1, .attrs = {{.name = orr_str_of("num_ops")}}};
    check_only(CHECKED(TRACE(p)), ORR_CHECK_ODD_ATTRIBUTE, 1, 1, "num_ops is without a value");
    p = coll(1, ORR_COLL_ALL_REDUCE, 8, NULL, 0);
    p.attrs[2] = whole("pg_name", 1);
    check_only(CHECKED(TRACE(p)), ORR_CHECK_ATTRIBUTE_KIND, 1, 1,
               "pg_name is int64_val where string_val");
    /* Any integer will do, and nobody knows this one. */
    p = coll(1, ORR_COLL_ALL_REDUCE, 8, NULL, 0);
    p.attrs[1] =
        (orr_attr){.name = orr_str_of("comm_size"), .kind = ORR_VALUE_FIXED32, .value.u = 8};
    p.attrs[2] = text("my_size", "large");
    check_silent(CHECKED(TRACE(p)));
}

TEST(test_check__values_without_sense_are_found)
{
    check_only(CHECKED(TRACE(coll(1, ORR_COLL_ALL_REDUCE, -8, NULL, 0))), ORR_CHECK_BAD_VALUE, 1, 1,
               "comm_size is -8: a size is not negative");
    check_only(CHECKED(TRACE(coll(1, ORR_COLL_ALL_REDUCE, INT64_MIN, NULL, 0))),
               ORR_CHECK_BAD_VALUE, 1, 1, "a size is not negative");
    part p = {
        .id = 1,
        .attrs = {
            {.name = orr_str_of("tensor_size"), .kind = ORR_VALUE_UINT64, .value.u = UINT64_MAX}}};
    check_only(CHECKED(TRACE(p)), ORR_CHECK_BAD_VALUE, 1, 1, "no size is that large");
    check_only(CHECKED(TRACE(coll(1, 10, 8, NULL, 0))), ORR_CHECK_BAD_VALUE, 1, 1,
               "comm_type is 10");
    check_only(CHECKED(TRACE(coll(1, 1000, 8, NULL, 0))), ORR_CHECK_BAD_VALUE, 1, 1,
               "comm_type is 1000");
    check_only(CHECKED(TRACE(coll(1, -3, 8, NULL, 0))), ORR_CHECK_BAD_VALUE, 1, 1,
               "comm_type is -3");
    check_silent(CHECKED(TRACE(coll(1, ORR_COLL_ALL_REDUCE, 0, NULL, 0))));
}

TEST(test_check__what_a_type_needs_is_asked_for)
{
    part p = {.id = 1, .type = ORR_NODE_COMM_COLL, .attrs = {whole("comm_size", 8)}};
    check_only(CHECKED(TRACE(p)), ORR_CHECK_MISSING_ATTRIBUTE, 1, 1,
               "a collective without comm_type");
    p.attrs[0] = whole("comm_type", ORR_COLL_ALL_GATHER);
    check_only(CHECKED(TRACE(p)), ORR_CHECK_MISSING_ATTRIBUTE, 1, 1,
               "a collective without comm_size");
    p.attrs[0] = whole("comm_type", ORR_COLL_BARRIER);
    check_silent(CHECKED(TRACE(p)));
    p = (part){.id = 1,
               .type = ORR_NODE_COMM_SEND,
               .attrs = {whole("comm_size", 8), whole("comm_src", 0)}};
    check_only(CHECKED(TRACE(p)), ORR_CHECK_MISSING_PEER, 1, 1, "a send without comm_dst");
    p = (part){.id = 1, .type = ORR_NODE_COMM_RECV, .attrs = {whole("comm_src", 5)}};
    check_only(CHECKED(TRACE(p)), ORR_CHECK_MISSING_SIZE, 1, 1, "a receive without comm_size");
    p = (part){.id = 1, .type = ORR_NODE_MEM_LOAD};
    check_only(CHECKED(TRACE(p)), ORR_CHECK_MISSING_SIZE, 1, 1,
               "a memory node without tensor_size");
}

TEST(test_check__odd_nodes_are_warnings)
{
    orr_trace *t = new_trace();
    CHECK_OK(orr_trace_append(t, &(orr_draft){.id = 1, .name = orr_str_of("n")}, &err), &err);
    seal(t);
    check_only(CHECKED(t), ORR_CHECK_INVALID_NODE, 1, 1, "INVALID_NODE");
    t = new_trace();
    seal(t);
    check_only(CHECKED(t), ORR_CHECK_NO_NODES, 1, 0, "no nodes");
    const part p = {.id = 1, .attrs = {whole("num_ops", 1), whole("num_ops", 2)}};
    check_only(CHECKED(TRACE(p)), ORR_CHECK_DUPLICATE_ATTRIBUTE, 1, 1, "num_ops");
}

TEST(test_check__peers_are_ranks)
{
    /* One rank alone does not tell how many there are; a negative one is wrong all the same. */
    check_silent(CHECKED(TRACE(SEND(1, 77, 0, 8))));
    check_only(CHECKED(TRACE(SEND(1, -1, 0, 8))), ORR_CHECK_PEER_RANGE, 1, 1, "comm_dst is -1");
    check_only(CHECKED(TRACE(SEND(1, 2, 0, 8)), TRACE({.id = 1})), ORR_CHECK_PEER_RANGE, 1, 1,
               "comm_dst is 2: the ranks are 0 to 1");
    part send = SEND(1, 1, 0, 8), recv = RECV(1, 0, 0, 8);
    send.attrs[3] = whole("comm_src", 0);
    recv.attrs[3] = whole("comm_dst", 1);
    check_silent(CHECKED(TRACE(send), TRACE(recv)));
    recv.attrs[3] = whole("comm_dst", 0);
    check_only(CHECKED(TRACE(send), TRACE(recv)), ORR_CHECK_OWN_RANK, 1, 1,
               "comm_dst is 0, but this is rank 1");
}

/* ---- collectives ---- */

#define AR(id, size, group, after) coll(id, ORR_COLL_ALL_REDUCE, size, group, after)
#define AG(id, size, group, after) coll(id, ORR_COLL_ALL_GATHER, size, group, after)

TEST(test_check__the_rank_that_differs_from_most_is_named)
{
    orr_check_report *r =
        CHECKED(TRACE(AR(1, 64, NULL, 0)), TRACE(AR(1, 32, NULL, 0)), TRACE(AR(1, 64, NULL, 0)));
    CHECK_EQ_U(find_kind(r, ORR_CHECK_COLLECTIVE_SIZE)->rank, 1);
    check_only(
        r, ORR_CHECK_COLLECTIVE_SIZE, 1, 1,
        "the group of all ranks: ALL_REDUCE of 32 bytes here, where rank 0 has ALL_REDUCE of 64");
    /* One against one: the lower rank is taken to be right. */
    r = CHECKED(TRACE(AR(1, 64, NULL, 0)), TRACE(AG(2, 64, NULL, 0)));
    CHECK_EQ_U(find_kind(r, ORR_CHECK_COLLECTIVE_TYPE)->rank, 1);
    check_only(r, ORR_CHECK_COLLECTIVE_TYPE, 1, 2, "ALL_GATHER of 64 bytes");
}

TEST(test_check__a_collective_too_few_or_too_many_is_found)
{
    check_only(
        CHECKED(TRACE(AR(1, 64, "tp", 0), AG(2, 8, "tp", 1)), TRACE(AR(1, 64, "tp", 0))),
        ORR_CHECK_COLLECTIVE_COUNT, 1, 0,
        "group \"tp\": 1 collective here, 2 on rank 0; ALL_GATHER of 8 bytes (node 2 \"coll\") has no counterpart here");
    check_only(CHECKED(TRACE(AR(1, 64, "tp", 0)), TRACE(AR(1, 64, "tp", 0), AG(2, 8, "tp", 1))),
               ORR_CHECK_COLLECTIVE_COUNT, 1, 2,
               "ALL_GATHER of 8 bytes (node 2 \"coll\") has no counterpart there");
    /* The nameless group has all ranks as members, also one that runs nothing. */
    check_only(CHECKED(TRACE(AR(1, 64, NULL, 0)), TRACE({.id = 1})), ORR_CHECK_COLLECTIVE_COUNT, 1,
               0, "0 collectives here");
}

TEST(test_check__only_ranks_that_name_a_group_belong_to_it)
{
    check_silent(CHECKED(TRACE(AR(1, 64, "a", 0)), TRACE(AR(1, 64, "a", 0)),
                         TRACE(AR(1, 8, "b", 0)), TRACE({.id = 1})));
    /* Group 0 is the group of all, and so is no group. */
    check_silent(
        CHECKED(TRACE(AR(1, 64, "0", 0)), TRACE(AR(1, 64, NULL, 0)), TRACE(AR(1, 64, "", 0))));
    part p = AR(1, 64, NULL, 0);
    p.attrs[2] = whole("comm_group", 3);
    check_silent(CHECKED(TRACE(p), TRACE(AR(1, 64, "3", 0)), TRACE({.id = 1})));
}

TEST(test_check__sizes_may_differ_in_an_all_to_all)
{
    check_only(CHECKED(TRACE(coll(1, ORR_COLL_ALL_TO_ALL, 64, NULL, 0)),
                       TRACE(coll(1, ORR_COLL_ALL_TO_ALL, 63, NULL, 0))),
               ORR_CHECK_UNEVEN_SIZE, 1, 1, "ALL_TO_ALL of 63 bytes");
}

TEST(test_check__parts_of_the_network_are_not_compared)
{
    const orr_value dims[2] = {{.u = 1}, {.u = 0}};
    part p = AR(1, 64, NULL, 0), q = AR(1, 32, NULL, 0);
    p.attrs[2] = q.attrs[2] = (orr_attr){.name = orr_str_of("involved_dim"),
                                         .kind = ORR_VALUE_BOOL,
                                         .is_list = true,
                                         .items = dims,
                                         .item_count = 2};
    check_only(CHECKED(TRACE(p), TRACE(q)), ORR_CHECK_NOT_COMPARED, 1, 0, "involved_dim");
}

TEST(test_check__independent_collectives_may_come_in_any_order)
{
    check_silent(CHECKED(TRACE(AR(1, 64, NULL, 0), AG(2, 8, NULL, 0)),
                         TRACE(AG(1, 8, NULL, 0), AR(2, 64, NULL, 0))));
    /* Also when only one side leaves them free. */
    check_silent(CHECKED(TRACE(AR(1, 64, NULL, 0), AG(2, 8, NULL, 1)),
                         TRACE(AG(1, 8, NULL, 0), AR(2, 64, NULL, 0))));
    check_silent(CHECKED(TRACE(AR(1, 64, "a", 0), AG(2, 8, "b", 1)),
                         TRACE(AG(1, 8, "b", 0), AR(2, 64, "a", 0))));
}

TEST(test_check__orders_that_contradict_are_a_deadlock)
{
    check_only(
        CHECKED(TRACE(AR(1, 64, NULL, 0), AG(2, 8, NULL, 1)),
                TRACE(AG(1, 8, NULL, 0), AR(2, 64, NULL, 1))),
        ORR_CHECK_COLLECTIVE_ORDER, 1, 1,
        "rank 0 is in ALL_REDUCE of 64 bytes (node 1 \"coll\") of the group of all ranks and waits for rank 1; "
        "rank 1 is in ALL_GATHER of 8 bytes (node 1 \"coll\") of the group of all ranks and waits for rank 0");
    /* Two groups, each of which agrees; a compute node stands between. */
    check_only(CHECKED(TRACE(AR(1, 64, "a", 0), {.id = 3, .data = {1}}, AR(2, 64, "b", 3)),
                       TRACE(AR(1, 64, "b", 0), AR(2, 64, "a", 1))),
               ORR_CHECK_COLLECTIVE_ORDER, 1, 1, "group \"a\" and waits for rank 1; rank 1 is in");
    /* Three ranks in a ring: 0 waits for 1, which waits for 2, which waits for 0. */
    check_only(CHECKED(TRACE(AR(1, 64, "x", 0), AR(2, 64, "z", 1)),
                       TRACE(AR(1, 64, "y", 0), AR(2, 64, "x", 1)),
                       TRACE(AR(1, 64, "z", 0), AR(2, 64, "y", 1))),
               ORR_CHECK_COLLECTIVE_ORDER, 1, 1, "waits for rank 2; rank 2 is in");
}

TEST(test_check__order_is_found_in_any_file_order)
{
    /* Parents behind their children: the order in the file is not the order of running. */
    check_silent(CHECKED(TRACE(AG(2, 8, NULL, 1), AR(1, 64, NULL, 0)),
                         TRACE(AR(1, 64, NULL, 0), AG(2, 8, NULL, 1))));
    check_only(CHECKED(TRACE(AG(2, 8, NULL, 1), AR(1, 64, NULL, 0)),
                       TRACE(AG(2, 8, NULL, 0), AR(1, 64, NULL, 2))),
               ORR_CHECK_COLLECTIVE_ORDER, 1, 1, "rank 0 is in ALL_REDUCE");
}

TEST(test_check__nothing_is_claimed_where_equal_collectives_may_be_exchanged)
{
    /* Rank 0 may run either of its two equal all-reduces with rank 1's only ready one.  With the
     * first, its all-gather comes free, and the all-gather is what rank 1 needs next. */
    orr_check_report *r = CHECKED(TRACE(AR(1, 64, NULL, 0), AR(2, 64, NULL, 0), AG(3, 8, NULL, 2)),
                                  TRACE(AR(1, 64, NULL, 0), AG(2, 8, NULL, 1), AR(3, 64, NULL, 2)));
    CHECK_EQ_U(r->errors, 0);
    orr_check_report_destroy(r);
}

/* A job that runs: collectives in one global order, of which each rank has those of its groups,
 * with dependencies on earlier ones only, in a file order of its own. */
static orr_trace *random_rank(uint32_t rank, uint64_t job, uint32_t count)
{
    static const char *const groups[] = {"a", "b", "c", "d"};
    orr_trace *t = new_trace();
    part parts[64];
    uint32_t mine = 0;
    uint64_t own = job * 1000 + rank;
    for (uint32_t i = 0; i < count; i++) {
        uint64_t shared = job * 77 + i;
        const uint32_t group = (uint32_t)(next_random(&shared) % 4);
        const int kind = next_random(&shared) % 2 ? ORR_COLL_ALL_REDUCE : ORR_COLL_ALL_GATHER;
        const int64_t size = (int64_t)(next_random(&shared) % 3);
        if (!((rank * 7 + 5) >> group & 1))
            continue;
        parts[mine] = coll(i + 1, kind, size, groups[group], 0);
        for (uint32_t d = 0; mine && d < next_random(&own) % 3; d++)
            parts[mine].data[d] = parts[next_random(&own) % mine].id;
        mine++;
    }
    for (uint32_t left = mine; left; left--) {
        const uint32_t pick = job % 2 ? (uint32_t)(next_random(&own) % left) : 0;
        add_part(t, &parts[pick]);
        memmove(&parts[pick], &parts[pick + 1], (left - pick - 1) * sizeof *parts);
    }
    seal(t);
    return t;
}

TEST(test_check__jobs_that_run_are_never_called_a_deadlock)
{
    for (uint64_t job = 1; job < 60; job++) {
        orr_trace *ranks[8];
        for (uint32_t r = 0; r < 8; r++)
            ranks[r] = random_rank(r, job, 48);
        orr_check_report *report = check_traces(ranks, 8);
        CHECK_EQ_U(report->errors, 0);
        orr_check_report_destroy(report);
    }
}

/* ---- messages ---- */

TEST(test_check__messages_that_match_are_silent)
{
    check_silent(CHECKED(TRACE(SEND(1, 1, 7, 64), SEND(2, 1, 7, 32), RECV(3, 1, 0, 8)),
                         TRACE(RECV(1, 0, 7, 32), RECV(2, 0, 7, 64), SEND(3, 0, 0, 8))));
    /* A missing tag is tag 0. */
    part p = {.id = 1,
              .type = ORR_NODE_COMM_SEND,
              .attrs = {whole("comm_dst", 1), whole("comm_size", 8)}};
    check_silent(CHECKED(TRACE(p), TRACE(RECV(1, 0, 0, 8))));
}

TEST(test_check__ends_that_are_missing_are_found)
{
    check_only(CHECKED(TRACE(SEND(1, 1, 7, 64)), TRACE({.id = 1})), ORR_CHECK_UNMATCHED_SEND, 1, 1,
               "sends 1 message to rank 1 with tag 7, which receives 0");
    check_only(CHECKED(TRACE({.id = 1}), TRACE(RECV(4, 0, 7, 64))), ORR_CHECK_UNMATCHED_RECV, 1, 4,
               "waits for 1 message from rank 0 with tag 7, which sends 0");
    check_only(CHECKED(TRACE(SEND(1, 1, 7, 64), SEND(2, 1, 7, 64)), TRACE(RECV(4, 0, 7, 64))),
               ORR_CHECK_UNMATCHED_SEND, 1, 1,
               "sends 2 messages to rank 1 with tag 7, which receives 1");
    check_only(CHECKED(TRACE(SEND(1, 1, 7, 64)), TRACE(RECV(3, 0, 7, 64), RECV(4, 0, 7, 64))),
               ORR_CHECK_UNMATCHED_RECV, 1, 3,
               "waits for 2 messages from rank 0 with tag 7, which sends 1");
}

TEST(test_check__tags_and_sizes_that_differ_are_found)
{
    check_only(CHECKED(TRACE(SEND(1, 1, 7, 64)), TRACE(RECV(4, 0, 8, 64))), ORR_CHECK_MESSAGE_TAG,
               1, 1, "sends to rank 1 with tag 7, which waits for tag 8 (node 4 \"recv\")");
    check_only(CHECKED(TRACE(SEND(1, 1, 7, 64), SEND(2, 1, 7, 32)),
                       TRACE(RECV(4, 0, 7, 64), RECV(5, 0, 7, 33))),
               ORR_CHECK_MESSAGE_SIZE, 1, 2,
               "sends 32 bytes to rank 1 with tag 7, which expects 33 (node 5 \"recv\")");
}

TEST(test_check__unknown_peers_could_be_anybody)
{
    const part anybody = {.id = 9, .type = ORR_NODE_COMM_RECV, .attrs = {whole("comm_size", 64)}};
    orr_check_report *r = CHECKED(TRACE(SEND(1, 1, 7, 64)), TRACE(anybody));
    CHECK_EQ_U(r->errors, 0);
    CHECK_EQ_U(r->count[ORR_CHECK_MISSING_PEER], 1);
    CHECK_EQ_U(r->count[ORR_CHECK_NOT_COMPARED], 1);
    orr_check_report_destroy(r);
}

/* Rank 0 receives from all others, which are equal. */
static orr_set *gather_set(uint32_t ranks, uint32_t forgotten)
{
    orr_trace *root = new_trace();
    for (uint32_t r = 1; r < ranks; r++)
        if (r != forgotten) {
            const part p = RECV(r, r, 5, 64);
            add_part(root, &p);
        }
    seal(root);
    orr_set *s = set_of((orr_trace *const[]){root, TRACE(SEND(1, 0, 5, 64))}, 2);
    for (uint32_t r = 2; r < ranks; r++)
        CHECK_OK(orr_set_add_rank(s, 1, 0, &err), &err);
    return s;
}

TEST(test_check__equal_ranks_send_one_message_each)
{
    orr_set *s = gather_set(1000, 0);
    check_silent(check_set(s));
    orr_set_close(s);
    s = gather_set(1000, 600);
    orr_check_report *r = check_set(s);
    CHECK_EQ_U(find_kind(r, ORR_CHECK_UNMATCHED_SEND)->rank, 600);
    check_only(r, ORR_CHECK_UNMATCHED_SEND, 1, 1, "to rank 0 with tag 5, which receives 0");
    orr_set_close(s);
}

/* 32,768 ranks in four classes, each of which sends to and receives from every rank of the next: 2
 * * 8,192 messages a rank, more than 500 million in all, of which the check must look at 65,536. */
TEST(test_check__many_equal_ranks_are_quick)
{
    enum { RANKS = 32768, CLASSES = 4, EACH = RANKS / CLASSES };
    orr_trace *classes[CLASSES];
    for (uint32_t c = 0; c < CLASSES; c++) {
        const uint32_t to = (c + 1) % CLASSES * EACH, from = (c + CLASSES - 1) % CLASSES * EACH;
        classes[c] = new_trace();
        for (uint32_t i = 0; i < EACH; i++) {
            const part send = SEND(2 * i + 1, to + i, 0, 64),
                       recv = RECV(2 * i + 2, from + i, 0, 64);
            add_part(classes[c], &send);
            add_part(classes[c], &recv);
        }
        const part last = AR(3 * EACH, 64, NULL, 1);
        add_part(classes[c], &last);
        seal(classes[c]);
    }
    orr_set *s;
    CHECK_OK(orr_set_create(&s, &err), &err);
    for (uint32_t c = 0; c < CLASSES; c++) {
        CHECK_OK(orr_set_add(s, classes[c], &err), &err);
        for (uint32_t i = 1; i < EACH; i++)
            CHECK_OK(orr_set_add_rank(s, c, 0, &err), &err);
    }
    CHECK_EQ_U(orr_set_class_count(s), CLASSES);
    check_silent(check_set(s));
    orr_set_close(s);
}

TEST(test_check__any_number_of_threads_gives_the_same_report)
{
    enum { RANKS = 100 };
    orr_trace *ranks[RANKS];
    for (uint32_t r = 0; r < RANKS; r++)
        ranks[r] = TRACE({.id = 1, .data = {r % 7 ? 0 : 90 + r}},
                         {.id = 2 + r, .data = {2 + r}, .name = "self"});
    orr_set *s = set_of(ranks, RANKS);
    orr_str text[2];
    orr_check_report *report[2];
    for (unsigned i = 0; i < 2; i++) {
        const orr_check_options opt = {.size = sizeof opt, .threads = i ? 5 : 1, .limit = 20};
        CHECK_OK(orr_check_set(s, &opt, &report[i], &err), &err);
        CHECK_OK(orr_check_text(report[i],
                                &(orr_check_style){.size = sizeof(orr_check_style), .input = "x"},
                                &text[i], &err),
                 &err);
    }
    /* Ranks 0, 7, ..., 98 have the missing parent. */
    CHECK_EQ_U(report[0]->count[ORR_CHECK_MISSING_PARENT], 15);
    CHECK_EQ_U(report[0]->count[ORR_CHECK_SELF_DEPENDENCY], RANKS);
    CHECK_EQ_U(report[0]->finding_count, 15 + 20);
    CHECK_TEXT(text[0].ptr, text[1].ptr);
    orr_check_report_destroy(report[0]);
    orr_check_report_destroy(report[1]);
    orr_set_close(s);
}

/* ---- words ---- */

TEST(test_check__equal_ranks_are_one_finding)
{
    orr_set *s = set_of((orr_trace *const[]){TRACE({.id = 1, .data = {9}})}, 1);
    for (int i = 0; i < 15; i++)
        CHECK_OK(orr_set_add_rank(s, 0, 100, &err), &err);
    orr_check_report *r = check_set(s);
    CHECK_EQ_U(r->errors, 1);
    CHECK_EQ_U(r->node_count, 16);
    orr_str words;
    CHECK_OK(orr_check_text(r, &(orr_check_style){.size = sizeof(orr_check_style), .input = "job"},
                            &words, &err),
             &err);
    check_contains(words.ptr,
                   "error: rank 0 (and 15 equal ranks): node 1 \"n\": data dependency on node 9");
    check_contains(words.ptr, "job: 16 ranks (1 distinct), 16 nodes: 1 error, 0 warnings\n");
    orr_check_report_destroy(r);
    orr_set_close(s);
}

TEST(test_check__names_are_cut_and_made_printable)
{
    static const char longest[] =
        "0123456789012345678901234567890123456789012345678901234567890123456789";
    orr_check_report *r = CHECKED(TRACE({.id = 1, .name = longest, .data = {9}}));
    orr_str words;
    CHECK_OK(orr_check_text(r, &(orr_check_style){.size = sizeof(orr_check_style), .input = "x"},
                            &words, &err),
             &err);
    check_contains(
        words.ptr,
        "node 1 \"0123456789012345678901234567890123456789012345678901234567890123...\":");
    CHECK_TEXT(r->findings[0].name, longest);
    orr_check_report_destroy(r);
    r = CHECKED(TRACE({.id = 1, .name = "a\nb\x1b[0m", .data = {9}}));
    CHECK_OK(orr_check_text(r, &(orr_check_style){.size = sizeof(orr_check_style), .input = "x"},
                            &words, &err),
             &err);
    check_contains(words.ptr, "node 1 \"a?b?[0m\":");
    orr_check_report_destroy(r);
}

TEST(test_check__brief_text_has_no_notes_and_no_summary)
{
    orr_check_report *r = CHECKED(TRACE({.id = 1}));
    orr_str words;
    CHECK_OK(
        orr_check_text(
            r, &(orr_check_style){.size = sizeof(orr_check_style), .input = "x", .is_brief = true},
            &words, &err),
        &err);
    CHECK_EQ_U(words.len, 0);
    CHECK_OK(orr_check_text(r,
                            &(orr_check_style){
                                .size = sizeof(orr_check_style), .input = "x", .is_colored = true},
                            &words, &err),
             &err);
    CHECK_TEXT(words.ptr, "x: 1 rank, 1 node: \033[32mno problems found\033[0m\n");
    orr_check_report_destroy(r);
}

TEST(test_check__json_is_one_object)
{
    orr_check_report *r = CHECKED(TRACE({.id = 1, .data = {9}, .name = "\"quoted\""}));
    orr_str words;
    orr_json *j;
    orr_json_value root, v;
    int64_t n;
    orr_str s;
    CHECK_OK(orr_check_json(r, &(orr_check_style){.size = sizeof(orr_check_style), .input = "x"},
                            &words, &err),
             &err);
    CHECK_OK(orr_json_open((orr_span){(const uint8_t *)words.ptr, words.len}, "x", &j, &err), &err);
    CHECK_OK(orr_json_only(j, &root, &err), &err);
    CHECK(strncmp(words.ptr, "{\n  \"format\": \"orrery-check\",\n  \"version\": 1,\n", 43) == 0);
    CHECK(orr_json_find(root, "errors", &v));
    CHECK_OK(orr_json_get_i64(v, &n, &err), &err);
    CHECK_EQ(n, 1);
    CHECK(orr_json_find(root, "counts", &v) && orr_json_find(v, "missing-parent", &v));
    CHECK(orr_json_find(root, "findings", &v));
    orr_json_iter it = orr_json_iterate(v);
    CHECK(orr_json_next_value(&it, &root));
    CHECK(orr_json_find(root, "node_name", &v));
    CHECK_OK(orr_json_get_str(v, &s, &err), &err);
    check_str(s, "\"quoted\"");
    orr_json_close(j);
    orr_check_report_destroy(r);
}

TEST(test_check__every_kind_has_a_name)
{
    for (int i = 0; i < ORR_CHECK_KIND_COUNT; i++)
        CHECK(orr_check_kind_name((orr_check_kind)i) != NULL);
    CHECK(orr_check_kind_name(ORR_CHECK_KIND_COUNT) == NULL);
}

int main(void)
{
    const CMUnitTest tests[] = {
        RUN(test_check__sound_trace_is_silent),
        RUN(test_check__missing_parents_are_named),
        RUN(test_check__self_dependency_is_not_called_a_cycle),
        RUN(test_check__duplicate_dependencies_are_found_in_short_and_long_lists),
        RUN(test_check__duplicate_ids_are_found),
        RUN(test_check__cycle_is_printed_as_a_path),
        RUN(test_check__shortest_cycle_is_shown),
        RUN(test_check__separate_cycles_are_separate_findings),
        RUN(test_check__long_cycle_is_cut_in_the_middle),
        RUN(test_check__children_before_parents_are_no_cycle),
        RUN(test_check__random_graphs_are_silent_but_for_repeated_parents),
        RUN(test_check__findings_are_counted_beyond_those_kept),
        RUN(test_check__kinds_that_cannot_be_read_are_found),
        RUN(test_check__values_without_sense_are_found),
        RUN(test_check__what_a_type_needs_is_asked_for),
        RUN(test_check__odd_nodes_are_warnings),
        RUN(test_check__peers_are_ranks),
        RUN(test_check__the_rank_that_differs_from_most_is_named),
        RUN(test_check__a_collective_too_few_or_too_many_is_found),
        RUN(test_check__only_ranks_that_name_a_group_belong_to_it),
        RUN(test_check__sizes_may_differ_in_an_all_to_all),
        RUN(test_check__parts_of_the_network_are_not_compared),
        RUN(test_check__independent_collectives_may_come_in_any_order),
        RUN(test_check__orders_that_contradict_are_a_deadlock),
        RUN(test_check__order_is_found_in_any_file_order),
        RUN(test_check__nothing_is_claimed_where_equal_collectives_may_be_exchanged),
        RUN(test_check__jobs_that_run_are_never_called_a_deadlock),
        RUN(test_check__messages_that_match_are_silent),
        RUN(test_check__ends_that_are_missing_are_found),
        RUN(test_check__tags_and_sizes_that_differ_are_found),
        RUN(test_check__unknown_peers_could_be_anybody),
        RUN(test_check__equal_ranks_send_one_message_each),
        RUN(test_check__many_equal_ranks_are_quick),
        RUN(test_check__any_number_of_threads_gives_the_same_report),
        RUN(test_check__equal_ranks_are_one_finding),
        RUN(test_check__names_are_cut_and_made_printable),
        RUN(test_check__brief_text_has_no_notes_and_no_summary),
        RUN(test_check__json_is_one_object),
        RUN(test_check__every_kind_has_a_name),
    };
    return RUN_ALL(tests);
}
