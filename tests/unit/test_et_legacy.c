/* SPDX-License-Identifier: Apache-2.0 */
/* room: et_legacy */
/* test_et_legacy.c - the old generations of .et: recognised, read, written back byte for byte. */
#include "legacy_make.h"

#include <dirent.h>
#include <sys/stat.h>

/* ---- reading and writing back ---- */

TEST(test_et_legacy__eg_graph)
{
    orr_buf b = {0};
    make_eg(&b);
    orr_trace *t = check_round_trip(&b, ORR_SCHEMA_EG);
    const orr_columns *c = orr_trace_columns(t);
    CHECK_EQ(c->count, 2);
    CHECK(!orr_trace_has_metadata(t));
    CHECK_EQ(c->type[0], ORR_NODE_COMP);
    CHECK_EQ_U(c->duration_us[1], 5);
    CHECK_EQ(c->data_first[1], 0);
    CHECK_EQ(c->data_first[2], 1);
    CHECK_EQ(c->data_dep[0], 0);
    CHECK(c->ctrl_first == NULL);
    CHECK_EQ_U(orr_trace_where(t, 1).byte, 18); /* after a length and 17 bytes */
    orr_trace_destroy(t);
    orr_buf_fini(&b);
}

TEST(test_et_legacy__eg_fields_are_attributes)
{
    static const uint64_t dims[] = {1, 0, 1};
    orr_buf b = {0};
    make_eg_full(&b);
    orr_trace *t = check_round_trip(&b, ORR_SCHEMA_EG);
    check_number(t, "tensor_loc", ORR_VALUE_UINT32, 1);
    check_number(t, "tensor_size", ORR_VALUE_UINT64, 0);
    check_number(t, "input_tensor_loc", ORR_VALUE_UINT32, 2);
    check_number(t, "input_tensor_size", ORR_VALUE_UINT64, UINT64_MAX);
    check_number(t, "output_tensor_loc", ORR_VALUE_UINT32, 1);
    check_number(t, "output_tensor_size", ORR_VALUE_UINT64, 11);
    check_number(t, "num_ops", ORR_VALUE_UINT64, 12);
    check_number(t, "comm_type", ORR_VALUE_INT64, ORR_COLL_ALL_TO_ALL);
    check_number(t, "communicator_id", ORR_VALUE_UINT32, 15);
    check_number(t, "comm_src", ORR_VALUE_UINT32, 16);
    check_number(t, "comm_dst", ORR_VALUE_UINT32, 17);
    check_number(t, "comm_size", ORR_VALUE_UINT32, UINT32_MAX);
    check_number(t, "comm_tag", ORR_VALUE_UINT32, 0);
    check_number(t, "comm_priority", ORR_VALUE_UINT32, 20);
    const orr_attr a = attr_of(t, 0, "involved_dim");
    check_items(&a, ORR_VALUE_BOOL, dims, 3);
    CHECK(!has_attr(t, 0, "simulated_run_time"));
    CHECK_EQ_U(orr_trace_columns(t)->duration_us[0], 9);
    CHECK_EQ(orr_trace_columns(t)->type[0], ORR_NODE_COMM_COLL);
    CHECK_EQ(orr_trace_columns(t)->comm_type[0], ORR_COLL_ALL_TO_ALL);
    orr_trace_destroy(t);
    orr_buf_fini(&b);
}

TEST(test_et_legacy__eg_collectives)
{
    static const int8_t now[] = {-1, ORR_COLL_ALL_REDUCE, ORR_COLL_ALL_TO_ALL, ORR_COLL_ALL_GATHER,
                                 ORR_COLL_REDUCE_SCATTER};
    for (uint8_t old = 0; old < 5; old++) {
        char record[64];
        orr_buf b = {0};
        snprintf(record, sizeof record, "08 00 12 01 'n' 18 06 68 %02x 90 01 04", old);
        add_record(&b, record);
        orr_trace *t = check_round_trip(&b, ORR_SCHEMA_EG);
        const int8_t *column = orr_trace_columns(t)->comm_type;
        CHECK_EQ(column ? column[0] : -1, now[old]);
        CHECK_EQ(has_attr(t, 0, "comm_type"), old != 0);
        orr_trace_destroy(t);
        orr_buf_fini(&b);
    }
}

TEST(test_et_legacy__eg_absent_and_zero_differ)
{
    orr_buf b = {0};
    add_record(&b, "08 00 12 00 70 01");       /* no type: INVALID_NODE */
    add_record(&b, "08 01 12 00 18 00");       /* the same, written */
    add_record(&b, "08 02 12 00 18 03");       /* compute, without a run time */
    add_record(&b, "08 03 12 00 18 03 38 00"); /* compute, none */
    add_record(&b, "08 04 12 00 18 01 38 00"); /* load, with a run time of zero */
    add_record(&b, "08 05 12 00 18 01 38 01");
    orr_trace *t = check_round_trip(&b, ORR_SCHEMA_EG);
    CHECK_EQ(orr_trace_columns(t)->type[0], ORR_NODE_INVALID);
    CHECK_EQ(orr_trace_columns(t)->type[4], ORR_NODE_MEM_LOAD);
    orr_trace_destroy(t);
    orr_buf_fini(&b);
}

/* The attributes of node 1 in order; all are called "a". */
static size_t attrs_of(const orr_trace *t, uint32_t index, orr_attr out[16])
{
    orr_node node;
    size_t n = 0;
    orr_trace_node(t, index, &node);
    orr_attrs it = orr_node_attrs(&node);
    while (n < 16 && orr_attrs_next(&it, &out[n]))
        n++;
    return n;
}

TEST(test_et_legacy__0_0_2_attributes)
{
    static const uint64_t ints[] = {2, UINT64_MAX};
    orr_attr a[16];
    orr_value v;
    orr_buf b = {0};
    make_0_0_2(&b);
    orr_trace *t = check_round_trip(&b, ORR_SCHEMA_0_0_2);
    CHECK_EQ(orr_trace_columns(t)->type[0], ORR_NODE_COMP);
    CHECK_EQ_U(orr_trace_columns(t)->duration_us[0], 5);
    CHECK(!has_attr(t, 0, "runtime"));
    CHECK_EQ(attrs_of(t, 1, a), 6);
    CHECK(a[0].kind == ORR_VALUE_FLOAT && a[0].value.d != a[0].value.d);
    CHECK(a[1].kind == ORR_VALUE_INT64 && a[1].value.i == INT64_MIN);
    CHECK(a[2].kind == ORR_VALUE_STRING && is_str(a[2].value.s, "s", 1));
    CHECK(a[3].kind == ORR_VALUE_FLOAT && a[3].is_list);
    check_items(&a[4], ORR_VALUE_INT64, ints, 2);
    CHECK(a[5].kind == ORR_VALUE_BYTES && a[5].is_list);
    orr_list it = orr_attr_items(&a[5]);
    CHECK(orr_list_next(&it, &v) && is_str(v.s, "\xff", 1));
    CHECK(orr_list_next(&it, &v) && v.s.len == 0);
    orr_node node;
    orr_trace_node(t, 1, &node);
    CHECK(node.has_inputs && is_str(node.inputs.values, "[]", 2));
    CHECK(node.has_outputs && node.outputs.types.len == 0);
    orr_trace_destroy(t);
    orr_buf_fini(&b);
}

TEST(test_et_legacy__0_0_3_attributes)
{
    static const uint64_t bools[] = {1, 0}, ints[] = {7};
    orr_attr a[16];
    orr_buf b = {0};
    make_0_0_3(&b);
    orr_trace *t = check_round_trip(&b, ORR_SCHEMA_0_0_3);
    orr_attrs it = orr_trace_attrs(t);
    CHECK(orr_trace_has_metadata(t) && orr_trace_version(t).len == 0);
    CHECK(orr_attrs_next(&it, &a[0]) && is_str(a[0].name, "pid", 3) &&
          is_str(a[0].value.s, "42", 2));
    CHECK_EQ(attrs_of(t, 0, a), 8);
    CHECK(a[0].kind == ORR_VALUE_BOOL && a[0].value.u == 1);
    CHECK(a[1].kind == ORR_VALUE_FLOAT && a[1].value.d == 1.5);
    CHECK(a[2].kind == ORR_VALUE_INT64 && a[2].value.i == -1);
    CHECK(a[3].kind == ORR_VALUE_STRING && a[3].value.s.len == 0);
    check_items(&a[4], ORR_VALUE_BOOL, bools, 2);
    CHECK(a[5].kind == ORR_VALUE_FLOAT && a[5].is_list);
    check_items(&a[6], ORR_VALUE_INT64, ints, 1);
    CHECK(a[7].kind == ORR_VALUE_STRING && a[7].is_list);
    CHECK_EQ_U(orr_trace_columns(t)->duration_us[0], 5);
    orr_trace_destroy(t);
    orr_buf_fini(&b);
}

TEST(test_et_legacy__0_0_3u_attributes)
{
    static const uint64_t seven[] = {7};
    orr_attr a[16];
    orr_buf b = {0};
    make_0_0_3u(&b);
    orr_trace *t = check_round_trip(&b, ORR_SCHEMA_0_0_3U);
    orr_attrs it = orr_trace_attrs(t);
    CHECK(orr_attrs_next(&it, &a[0]) && a[0].kind == ORR_VALUE_UINT64 &&
          a[0].value.u == UINT64_MAX);
    CHECK_EQ(attrs_of(t, 0, a), 10);
    CHECK(a[0].kind == ORR_VALUE_BOOL && a[0].value.u == 0);
    CHECK(a[2].kind == ORR_VALUE_UINT64 && a[2].value.u == 6);
    CHECK(a[3].kind == ORR_VALUE_INT64 && a[3].value.i == INT64_MIN);
    CHECK(a[4].kind == ORR_VALUE_STRING && is_str(a[4].value.s, "s", 1));
    check_items(&a[7], ORR_VALUE_UINT64, seven, 1);
    check_items(&a[8], ORR_VALUE_INT64, seven, 1);
    orr_trace_destroy(t);
    orr_buf_fini(&b);
}

TEST(test_et_legacy__2023_10_differs_in_metadata_only)
{
    orr_attr a;
    orr_buf b = {0};
    make_2023_10(&b);
    orr_trace *t = check_round_trip(&b, ORR_SCHEMA_2023_10);
    orr_attrs it = orr_trace_attrs(t);
    CHECK(orr_attrs_next(&it, &a) && is_str(a.name, "pid", 3) && a.value.i == 5);
    CHECK_EQ(orr_trace_columns(t)->type[0], ORR_NODE_COMP);
    CHECK_EQ(orr_trace_columns(t)->ctrl_dep[0], 0);
    CHECK_EQ_U(orr_trace_where(t, 1).byte, 18); /* after records of 1 + 9 and 1 + 7 bytes */
    orr_trace_destroy(t);
    orr_buf_fini(&b);
}

/* Real files declare INT and hold text, or declare and hold nothing. */
TEST(test_et_legacy__declaration_and_value_disagree)
{
    orr_attr a[16];
    orr_buf b = {0};
    add_record(&b, "08 01 12 01 'n' 18 01"
                   " 5a 08 0a 01 'a' 10 03 42 01 's'" /* INT, but text */
                   " 5a 05 0a 01 'a' 10 02"           /* UINT, nothing */
                   " 5a 05 0a 01 'a' 10 05"           /* BOOLS, none: an empty list */
                   " 5a 07 0a 01 'a' 10 08 1a 00");   /* INTS, none; an empty doc_string */
    orr_trace *t = check_round_trip(&b, ORR_SCHEMA_0_0_3U);
    CHECK_EQ(attrs_of(t, 0, a), 4);
    CHECK(a[0].kind == ORR_VALUE_STRING && is_str(a[0].value.s, "s", 1));
    CHECK(a[1].kind == ORR_VALUE_NONE);
    check_items(&a[2], ORR_VALUE_BOOL, NULL, 0);
    check_items(&a[3], ORR_VALUE_INT64, NULL, 0);
    orr_trace_destroy(t);
    orr_buf_fini(&b);
}

TEST(test_et_legacy__run_time_stands_where_it_stood)
{
    orr_buf b = {0};
    add_record(
        &b,
        "08 00 12 00 18 04 5a 0d 0a 07 'runtime' 10 02 30 05 5a 07 0a 01 'a' 10 02 30 01"); /* first */
    add_record(&b, "08 01 12 00 18 04"); /* none */
    add_record(
        &b,
        "08 02 12 00 18 04 5a 0d 0a 07 'runtime' 10 02 30 05 5a 0d 0a 07 'runtime' 10 02 30 06"); /* twice */
    add_record(&b,
               "08 03 12 00 18 07 5a 0d 0a 07 'runtime' 10 02 30 00"); /* zero, of a collective */
    add_record(&b, "08 04 12 00 18 04 5a 16 0a 07 'runtime' 10 02"
                   " 30 ff ff ff ff ff ff ff ff ff 01"); /* -1 */
    add_record(&b, "08 05 12 00 18 04 5a 0d 0a 07 'runtime' 10 02 30 00");
    add_record(&b, "08 06 12 00 18 04 5a 10 0a 07 'runtime' 10 02 1a 01 'd' 30 05");
    add_record(&b, "08 07 12 00 18 04 5a 0a 0a 01 'a' 10 03 3a 03 '0.3'");
    orr_trace *t = check_round_trip(&b, ORR_SCHEMA_0_0_3);
    const uint64_t *duration = orr_trace_columns(t)->duration_us;
    static const uint64_t expected[] = {5, 0, 5, 0, 0, 0, 5, 0};
    static const bool is_kept[] = {true, false, true, true, true, false, true, false};
    for (uint32_t i = 0; i < 8; i++) {
        CHECK_EQ_U(duration[i], expected[i]);
        CHECK_EQ(has_attr(t, i, "runtime"), is_kept[i]);
    }
    orr_trace_destroy(t);
    orr_buf_fini(&b);
}

TEST(test_et_legacy__collectives_of_0_0_3u)
{
    static const int8_t now[] = {ORR_COLL_ALL_REDUCE, ORR_COLL_ALL_TO_ALL, ORR_COLL_ALL_GATHER,
                                 ORR_COLL_REDUCE_SCATTER, ORR_COLL_BROADCAST};
    orr_buf b = {0};
    for (uint8_t old = 0; old < 5; old++) {
        char record[64];
        snprintf(record, sizeof record, "08 %02x 12 00 18 07 5a 0f 0a 09 'comm_type' 10 03 38 %02x",
                 old, old);
        add_record(&b, record);
    }
    orr_trace *t = check_round_trip(&b, ORR_SCHEMA_0_0_3U);
    for (uint32_t i = 0; i < 5; i++)
        CHECK_EQ(orr_trace_columns(t)->comm_type[i], now[i]);
    orr_trace_destroy(t);
    orr_buf_fini(&b);
}

TEST(test_et_legacy__packed_lists_are_read_too)
{
    static const uint64_t ints[] = {1, 2};
    orr_buf b = {0};
    add_record(&b, "08 03 12 00 18 04 22 02 01 02 5a 09 0a 01 'a' 10 06 52 02 01 02");
    orr_trace *t = parse_as(&b, ORR_SCHEMA_0_0_3, ORR_STRICT);
    CHECK_EQ(orr_trace_columns(t)->data_first[1], 2);
    const orr_attr a = attr_of(t, 0, "a");
    check_items(&a, ORR_VALUE_INT64, ints, 2);
    orr_trace_destroy(t);
    orr_buf_fini(&b);
}

TEST(test_et_legacy__strings_of_0_0_3_may_be_bytes)
{
    orr_buf b = {0};
    add_record(&b, "08 00 12 00 18 01 5a 0b 0a 01 'a' 10 07 5a 01 's' 5a 01 ff");
    orr_trace *t = check_round_trip(&b, ORR_SCHEMA_0_0_3);
    const orr_attr a = attr_of(t, 0, "a");
    CHECK(a.kind == ORR_VALUE_BYTES && a.is_list);
    CHECK_CODE(write_as(t, ORR_SCHEMA_0_0_3U, 0), ORR_EUSAGE, &err);
    CHECK_SAYS(
        &err, "node 0: attribute a cannot be written as generation 0.0.3u: its bytes are not text");
    orr_trace_destroy(t);
    orr_buf_fini(&b);
}

TEST(test_et_legacy__empty_metadata_stays)
{
    orr_buf b = {0};
    add_record(&b, "");
    add_record(&b, "08 00 12 00 18 04 5a 0d 0a 07 'runtime' 10 02 30 05");
    orr_trace *t = check_round_trip(&b, ORR_SCHEMA_0_0_3);
    CHECK(orr_trace_has_metadata(t));
    orr_trace_destroy(t);
    orr_buf_fini(&b);
}

/* ---- recognising ---- */

TEST(test_et_legacy__nothing_telling_is_current)
{
    orr_buf b = {0};
    CHECK_EQ(recognise(&b), ORR_SCHEMA_CURRENT);
    add_record(&b, "08 01 12 01 'n' 18 04");
    CHECK_EQ(recognise(&b), ORR_SCHEMA_CURRENT);
    CHECK_EQ(orr__et_recognise(span_of(&b), "x.eg"), ORR_SCHEMA_EG);
    CHECK_EQ(orr__et_recognise(span_of(&b), "x.eg.gz"), ORR_SCHEMA_EG);
    add_record(&b, "08 02 12 01 'n' 18 04 52 05 0a 01 'x' 48 01");
    CHECK_EQ(orr__et_recognise(span_of(&b), "x.eg"),
             ORR_SCHEMA_CURRENT); /* an attribute of today */
    b.len = 0;
    add_record(&b, "0a 05 '1.0.0'");
    add_record(&b, "08 00 12 09 'COMP_NODE' 18 03 38 05");
    CHECK_EQ(recognise(&b), ORR_SCHEMA_CURRENT);
    orr_buf_fini(&b);
}

/* The name of a node shows which number its type has. */
TEST(test_et_legacy__names_tell_the_numbering)
{
    orr_buf b = {0};
    add_record(&b, "08 05 12 0b 'COMP_NODE_1' 18 03 38 05");
    CHECK_EQ(recognise(&b), ORR_SCHEMA_EG);
    b.len = 0;
    add_record(&b, "08 05 12 0b 'COMP_NODE_1' 18 04 38 05");
    CHECK_EQ(recognise(&b), ORR_SCHEMA_CURRENT);
    b.len = 0;
    add_record(&b, "08 05 12 0a 'ALL_REDUCE' 18 06 20 01");
    CHECK_EQ(recognise(&b), ORR_SCHEMA_0_0_2);
    b.len = 0;
    add_record(&b, "08 05 12 0a 'ALL_REDUCE' 18 07 20 01");
    CHECK_EQ(recognise(&b), ORR_SCHEMA_0_0_3);
    orr_buf_fini(&b);
}

/* An extension of today's schema has field 11 too; attributes there are known by what is in
 * them. */
TEST(test_et_legacy__storage_is_not_an_attribute)
{
    orr_buf b = {0};
    add_record(&b, "08 01 12 01 'n' 18 08 5a 04 08 01 52 00");
    CHECK_EQ(recognise(&b), ORR_SCHEMA_CURRENT);
    orr_buf_fini(&b);
}

static unsigned check_current_below(const char *folder)
{
    unsigned seen = 0;
    char path[1024];
    DIR *d = opendir(folder);
    CHECK(d != NULL);
    for (struct dirent *e = readdir(d); e; e = readdir(d)) {
        orr_input *in;
        struct stat about;
        snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
        if (e->d_name[0] == '.')
            continue;
        if (stat(path, &about) == 0 && S_ISDIR(about.st_mode)) {
            seen += check_current_below(path);
            continue;
        }
        const size_t len = strlen(path);
        if (strcmp(path + len - 3, ".et") != 0 || orr_input_open(path, &in, &err))
            continue;
        if (orr__et_recognise(orr_input_bytes(in), path) != ORR_SCHEMA_CURRENT)
            check_fail(__FILE__, __LINE__, "%s is not taken for current", path);
        orr_input_close(in);
        seen++;
    }
    closedir(d);
    return seen;
}

TEST(test_et_legacy__reference_traces_are_current)
{
    char path[512];
    check_golden(path, sizeof path, "chakra");
    CHECK(check_current_below(path) > 100);
}

int main(void)
{
    const CMUnitTest tests[] = {
        RUN(test_et_legacy__eg_graph),
        RUN(test_et_legacy__eg_fields_are_attributes),
        RUN(test_et_legacy__eg_collectives),
        RUN(test_et_legacy__eg_absent_and_zero_differ),
        RUN(test_et_legacy__0_0_2_attributes),
        RUN(test_et_legacy__0_0_3_attributes),
        RUN(test_et_legacy__0_0_3u_attributes),
        RUN(test_et_legacy__2023_10_differs_in_metadata_only),
        RUN(test_et_legacy__declaration_and_value_disagree),
        RUN(test_et_legacy__run_time_stands_where_it_stood),
        RUN(test_et_legacy__collectives_of_0_0_3u),
        RUN(test_et_legacy__packed_lists_are_read_too),
        RUN(test_et_legacy__strings_of_0_0_3_may_be_bytes),
        RUN(test_et_legacy__empty_metadata_stays),
        RUN(test_et_legacy__nothing_telling_is_current),
        RUN(test_et_legacy__names_tell_the_numbering),
        RUN(test_et_legacy__storage_is_not_an_attribute),
        RUN(test_et_legacy__reference_traces_are_current),
    };
    return RUN_ALL(tests);
}
