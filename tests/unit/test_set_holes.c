/* SPDX-License-Identifier: Apache-2.0 */
/* Two pipeline stages of four ranks each, made twice: as classes with holes, and rank by rank. */
#include "et_make.h"

#include "trace/set_impl.h"

enum { RANKS = 8, STAGE = 4 };

/* Slots of a stage: its group, its peer, and a tag that grows to several bytes. */
enum { GROUP, PEER, TAG, SLOTS };

static int64_t group_of(uint32_t rank)
{
    static const int64_t groups[] = {1, 12, 9999, 123456789};
    return groups[rank % STAGE];
}

static int64_t tag_of(uint32_t rank)
{
    static const int64_t tags[] = {0, 127, 128, 2000000};
    return tags[rank % STAGE];
}

static uint32_t peer_of(uint32_t rank)
{
    return rank < STAGE ? rank + STAGE : rank - STAGE;
}

static orr_attr attr_int(const char *name, orr_value_kind kind, int64_t v)
{
    return (orr_attr){.name = orr_str_of(name), .kind = kind, .value.i = v};
}

static void append(orr_trace *t, uint64_t id, uint32_t type, const orr_attr *attrs, size_t count)
{
    const uint64_t before = id - 1;
    const orr_draft d = {.id = id,
                         .name = orr_str_of("node"),
                         .type = type,
                         .data_deps = &before,
                         .data_count = id > 1,
                         .attrs = attrs,
                         .attr_count = count};
    CHECK_OK(orr_trace_append(t, &d, &err), &err);
}

/* Compute, a collective of the group, a message to or from the peer, a collective, compute. */
static orr_trace *make_trace(uint32_t rank)
{
    const bool is_first = rank < STAGE;
    char group[24];
    orr_trace *t;
    snprintf(group, sizeof group, "%lld", (long long)group_of(rank));
    const orr_attr comp[] = {attr_int("num_ops", ORR_VALUE_INT64, 7)};
    const orr_attr coll[] = {
        attr_int("comm_size", ORR_VALUE_INT64, 4096),
        {.name = orr_str_of("pg_name"), .kind = ORR_VALUE_STRING, .value.s = orr_str_of(group)},
        attr_int("comm_type", ORR_VALUE_INT64, ORR_COLL_ALL_REDUCE)};
    const orr_attr message[] = {
        attr_int("comm_size", ORR_VALUE_INT64, 100),
        attr_int("comm_tag", ORR_VALUE_INT32, tag_of(rank)),
        attr_int(is_first ? "comm_dst" : "comm_src", ORR_VALUE_INT32, peer_of(rank)),
        attr_int("is_cpu_op", ORR_VALUE_INT32, 0)};
    CHECK_OK(orr_trace_create(&(orr_meta){.version = orr_str_of("1.0.0")}, &t, &err), &err);
    append(t, 1, ORR_NODE_COMP, comp, 1);
    append(t, 2, ORR_NODE_COMM_COLL, coll, 3);
    append(t, 3, is_first ? ORR_NODE_COMM_SEND : ORR_NODE_COMM_RECV, message, 4);
    append(t, 4, ORR_NODE_COMM_COLL, coll, 3);
    append(t, 5, ORR_NODE_COMP, comp, 1);
    CHECK_OK(orr_trace_seal(t, &err), &err);
    return t;
}

static orr_set *make_plain(void)
{
    orr_set *s;
    CHECK_OK(orr_set_create(&s, &err), &err);
    for (uint32_t r = 0; r < RANKS; r++)
        CHECK_OK(orr_set_add(s, make_trace(r), &err), &err);
    return s;
}

static orr_set *make_holed(void)
{
    orr_set *s;
    CHECK_OK(orr_set_create(&s, &err), &err);
    for (uint32_t stage = 0; stage < 2; stage++) {
        const orr_hole_field peer = stage ? ORR_HOLE_COMM_SRC : ORR_HOLE_COMM_DST;
        const orr_hole holes[] = {{3, ORR_HOLE_PG_NAME, GROUP}, /* in any order */
                                  {2, ORR_HOLE_COMM_TAG, TAG},
                                  {1, ORR_HOLE_PG_NAME, GROUP},
                                  {2, peer, PEER}};
        uint32_t k;
        CHECK_OK(orr_set_add_class(s, make_trace(stage * STAGE + 1), holes, 4, SLOTS, &k, &err),
                 &err);
        CHECK_EQ_U(k, stage);
    }
    for (uint32_t r = 0; r < RANKS; r++) {
        const int64_t values[SLOTS] = {group_of(r), peer_of(r), tag_of(r)};
        CHECK_OK(orr_set_add_rank_values(s, r / STAGE, 0, values, &err), &err);
    }
    return s;
}

static void check_same_files(const char *a, const char *b)
{
    for (unsigned r = 0; r < RANKS; r++) {
        char command[128];
        snprintf(command, sizeof command, "cmp %s.%u.et %s.%u.et", a, r, b, r);
        CHECK_EQ(system(command), 0);
    }
}

static void write_both(const orr_set *s, const orr_write_options *opt)
{
    orr_set *plain = make_plain();
    CHECK_OK(orr_set_write_files(plain, "plain", opt, 1, &err), &err);
    CHECK_OK(orr_set_write_files(s, "holed", opt, 2, &err), &err);
    check_same_files("plain", "holed");
    orr_set_close(plain);
}

TEST(test_set_holes__files_are_those_of_ranks_made_one_by_one)
{
    orr_set *s = make_holed();
    CHECK_EQ_U(orr_set_class_count(s), 2);
    CHECK_EQ_U(orr_set_slot_count(s, 1), SLOTS);
    write_both(s, NULL);
    write_both(s, &(orr_write_options){.size = sizeof(orr_write_options), .id_shift = 1000});
    if (orr__et_old_forms) /* built in */
        write_both(s, &(orr_write_options){.size = sizeof(orr_write_options),
                                           .schema = ORR_SCHEMA_2023_10});
    orr_set_close(s);
}

TEST(test_set_holes__values_are_found_by_rank_and_node)
{
    orr_set *s = make_holed();
    int64_t v = 0;
    CHECK(orr_set_hole(s, 2, ORR_HOLE_PG_NAME, 1, &v));
    CHECK_EQ(v, 9999);
    CHECK(orr_set_hole(s, 7, ORR_HOLE_COMM_SRC, 2, &v));
    CHECK_EQ(v, 3);
    CHECK(!orr_set_hole(s, 7, ORR_HOLE_COMM_DST, 2, &v));
    CHECK(!orr_set_hole(s, 2, ORR_HOLE_PG_NAME, 0, &v));
    orr_set_close(s);
}

TEST(test_set_holes__a_rank_can_be_had_as_a_trace)
{
    orr_set *s = make_holed(), *plain = make_plain();
    const orr_trace *t;
    orr_trace *owned;
    CHECK_OK(orr_set_rank_trace(s, 7, &t, &owned, &err), &err);
    CHECK(owned == t);
    CHECK_EQ_U(orr_trace_columns(t)->count, 5);
    CHECK_EQ(orr_trace_columns(t)->comm_src[2], 3);
    CHECK_EQ(orr_trace_columns(t)->comm_tag[2], 2000000);
    const orr_str group = orr_trace_text(t, orr_trace_columns(t)->pg_name[3]);
    CHECK(group.len == 9 && memcmp(group.ptr, "123456789", 9) == 0);
    orr_trace_destroy(owned);
    CHECK_OK(orr_set_rank_trace(plain, 7, &t, &owned, &err), &err);
    CHECK(owned == NULL && t == orr_set_trace(plain, orr_set_class_of(plain, 7)));
    orr_set_close(s);
    orr_set_close(plain);
}

static void check_saved(const orr_set_save_options *opt)
{
    orr_set *s = make_holed(), *again;
    orr_trace *t;
    uint64_t shift = 1;
    CHECK_OK(orr_set_save(s, "holed.orr", opt, &err), &err);
    orr_set_close(s);
    CHECK_OK(orr_set_open("holed.orr", NULL, &again, &err), &err);
    CHECK_EQ_U(orr_set_rank_count(again), RANKS);
    CHECK_EQ_U(orr_set_class_count(again), 2);
    write_both(again, NULL);
    orr_set_close(again);
    CHECK_OK(orr_set_read_rank("holed.orr", 6, NULL, &t, &shift, &err), &err);
    CHECK_EQ_U(shift, 0);
    CHECK_EQ(orr_trace_columns(t)->comm_src[2], 2);
    orr_trace_destroy(t);
    CHECK_CODE(orr_set_read_rank("holed.orr", RANKS, NULL, &t, &shift, &err), ORR_EUSAGE, &err);
}

TEST(test_set_holes__a_file_keeps_them)
{
    check_saved(NULL);
    check_saved(&(orr_set_save_options){.size = sizeof(orr_set_save_options), .compress = true});
}

TEST(test_set_holes__some_ranks_of_a_set_keep_their_values)
{
    orr_set *s = make_holed();
    int64_t v = 0;
    CHECK_OK(orr_set_keep(s, 5, 2, &err), &err);
    CHECK_EQ_U(orr_set_class_count(s), 1);
    CHECK(orr_set_hole(s, 1, ORR_HOLE_COMM_SRC, 2, &v));
    CHECK_EQ(v, 2);
    CHECK_OK(orr_set_save(s, "part.orr", NULL, &err), &err);
    orr_set_close(s);
    CHECK_OK(orr_set_open("part.orr", NULL, &s, &err), &err);
    CHECK(orr_set_hole(s, 0, ORR_HOLE_PG_NAME, 1, &v));
    CHECK_EQ(v, 12);
    orr_set_close(s);
}

TEST(test_set_holes__a_class_without_ranks_is_saved_without_them)
{
    const orr_hole hole = {1, ORR_HOLE_PG_NAME, 0};
    orr_set *s;
    uint32_t k;
    CHECK_OK(orr_set_create(&s, &err), &err);
    CHECK_OK(orr_set_add_class(s, make_trace(0), &hole, 1, 1000, &k, &err), &err);
    CHECK_OK(orr_set_add(s, make_trace(1), &err), &err);
    CHECK_OK(orr_set_save(s, "nobody.orr", NULL, &err), &err);
    orr_set_close(s);
    CHECK_OK(orr_set_open("nobody.orr", NULL, &s, &err), &err);
    CHECK_EQ_U(orr_set_class_count(s), 2);
    CHECK_EQ_U(orr_set_slot_count(s, k), 0);
    orr_set_close(s);
}

/* Slots take memory, so they must be there: class 0 has one rank and claims 100 slots, of which
 * there are two. */
TEST(test_set_holes__slots_without_values_are_refused)
{
    static const uint8_t table[] = {100, 0, 1, 2};
    const char *bad = NULL;
    orr_set *s;
    CHECK_OK(orr_set_create(&s, &err), &err);
    CHECK_OK(orr_set_add(s, make_trace(0), &err), &err);
    CHECK_OK(orr__holes_load(s, (orr_span){table, sizeof table}, &bad, &err), &err);
    CHECK_TEXT(bad, "more slots than there are values");
    orr_set_close(s);
}

static void refuse_hole(orr_hole_field field, uint32_t node, uint32_t slot, const char *words)
{
    const orr_hole holes[] = {{1, ORR_HOLE_PG_NAME, 0}, {node, field, slot}};
    orr_set *s;
    uint32_t k;
    CHECK_OK(orr_set_create(&s, &err), &err);
    CHECK_CODE(orr_set_add_class(s, make_trace(0), holes, 2, 2, &k, &err), ORR_EUSAGE, &err);
    CHECK_SAYS(&err, words);
    orr_set_close(s);
}

TEST(test_set_holes__what_cannot_be_filled_is_refused)
{
    refuse_hole(ORR_HOLE_COMM_DST, 9, 1, "a node that is not there");
    refuse_hole(ORR_HOLE_COMM_DST, 2, 2, "a slot that is not there");
    refuse_hole(ORR_HOLE_COMM_SRC, 2, 1, "does not have");
    refuse_hole(ORR_HOLE_PG_NAME, 1, 1, "the same place");
    refuse_hole(ORR_HOLE_FIELDS, 1, 1, "not known");
}

TEST(test_set_holes__values_must_fit)
{
    orr_set *s = make_holed();
    const int64_t large[SLOTS] = {1, INT64_C(1) << 31, 0};
    CHECK_CODE(orr_set_add_rank_values(s, 0, 0, large, &err), ORR_EUSAGE, &err);
    CHECK_SAYS(&err, "does not fit into slot 1");
    CHECK_CODE(orr_set_add_rank(s, 0, 0, &err), ORR_EUSAGE, &err);
    CHECK_EQ_U(orr_set_rank_count(s), RANKS);
    orr_set_close(s);
}

/* ---- groups ---- */

TEST(test_set_holes__groups_travel_with_the_set)
{
    orr_set *s = make_holed();
    const uint32_t ring[] = {3, 1, 2}, all[] = {0, 1, 2, 3, 4, 5, 6, 7};
    CHECK_OK(orr_set_add_group(s, 2, ring, 3, &err), &err);
    CHECK_OK(orr_set_add_group(s, 700, all, 8, &err), &err);
    CHECK_CODE(orr_set_add_group(s, 2, ring, 3, &err), ORR_EUSAGE, &err);
    CHECK_CODE(orr_set_add_group(s, 900, ring, 0, &err), ORR_EUSAGE, &err);
    CHECK_OK(orr_set_save(s, "groups.orr", NULL, &err), &err);
    orr_set_close(s);
    CHECK_OK(orr_set_open("groups.orr", NULL, &s, &err), &err);
    CHECK_EQ_U(orr_set_group_count(s), 2);
    const orr_group g = orr_set_group(s, 0), h = orr_set_group(s, 1);
    CHECK_EQ_U(g.id, 2);
    CHECK_EQ_U(g.count, 3);
    CHECK_BYTES(g.ranks, ring, sizeof ring);
    CHECK_EQ_U(h.id, 700);
    CHECK_EQ_U(h.count, 8);
    CHECK_BYTES(h.ranks, all, sizeof all);
    CHECK_OK(orr_set_write_groups(s, "groups.json", &err), &err);
    static const char text[] = "{\"2\": [3, 1, 2], \"700\": [0, 1, 2, 3, 4, 5, 6, 7]}";
    check_file("groups.json", text, sizeof text - 1);
    CHECK_OK(orr_set_keep(s, 0, 2, &err), &err);
    CHECK_EQ_U(orr_set_group_count(s), 0);
    orr_set_close(s);
}

static void refuse_groups(const char *bytes, size_t len)
{
    orr_set *s = make_holed();
    const char *bad = NULL;
    CHECK_OK(orr__groups_load(s, (orr_span){(const uint8_t *)bytes, len}, &bad, &err), &err);
    CHECK(bad != NULL);
    orr_set_close(s);
}
#define REFUSE_GROUPS(text) refuse_groups((text), sizeof(text) - 1)

TEST(test_set_holes__a_damaged_table_of_groups_is_refused)
{
    REFUSE_GROUPS("");                     /* no count */
    REFUSE_GROUPS("\1");                   /* cut */
    REFUSE_GROUPS("\1\0\1\0");             /* number 0 */
    REFUSE_GROUPS("\1\1\0");               /* nobody in it */
    REFUSE_GROUPS("\1\1\1\20");            /* rank 8 of 8 */
    REFUSE_GROUPS("\1\1\1\1");             /* rank -1 */
    REFUSE_GROUPS("\1\1\xff\xff\xff\x7f"); /* more ranks than bytes */
    REFUSE_GROUPS("\1\1\1\0\0");           /* something behind it */
}

/* Every byte of the file in turn is another one: an error or the same set, never a crash. */
TEST(test_set_holes__a_damaged_file_is_refused)
{
    orr_set *s = make_holed();
    CHECK_OK(orr_set_save(s, "whole.orr", NULL, &err), &err);
    orr_set_close(s);
    orr_buf whole = read_file("whole.orr");
    for (size_t i = 0; i < whole.len; i++) {
        whole.ptr[i] ^= 0x11;
        write_file("damaged.orr", whole.ptr, whole.len);
        whole.ptr[i] ^= 0x11;
        if (orr_set_open("damaged.orr", NULL, &s, &err) == ORR_OK)
            orr_set_close(s);
    }
    orr_buf_fini(&whole);
}

int main(void)
{
    const CMUnitTest tests[] = {
        RUN(test_set_holes__groups_travel_with_the_set),
        RUN(test_set_holes__a_damaged_table_of_groups_is_refused),
        RUN(test_set_holes__files_are_those_of_ranks_made_one_by_one),
        RUN(test_set_holes__values_are_found_by_rank_and_node),
        RUN(test_set_holes__a_rank_can_be_had_as_a_trace),
        RUN(test_set_holes__a_file_keeps_them),
        RUN(test_set_holes__some_ranks_of_a_set_keep_their_values),
        RUN(test_set_holes__a_class_without_ranks_is_saved_without_them),
        RUN(test_set_holes__slots_without_values_are_refused),
        RUN(test_set_holes__what_cannot_be_filled_is_refused),
        RUN(test_set_holes__values_must_fit),
        RUN(test_set_holes__a_damaged_file_is_refused),
    };
    return RUN_ALL(tests);
}
