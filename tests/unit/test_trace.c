/* SPDX-License-Identifier: Apache-2.0 */
/* test_trace.c - traces: made node by node, their dependencies, the columns of their attributes. */
#include "et_make.h"

#define COUNT(a) (sizeof(a) / sizeof *(a))

/* ---- making ---- */

TEST(test_trace__a_node_is_encoded_byte_for_byte)
{
    /* By hand, from the schema: fields in number order, defaults left out, numbers packed. */
    static const char want[] = "\x07\x0a\x05"
                               "1.0.0"        /* metadata, 7 bytes */
                               "\x2a"         /* a node of 42 bytes */
                               "\x08\x96\x01" /* id 150 */
                               "\x12\x01"
                               "a"                    /* name */
                               "\x18\x07"             /* type COMM_COLL */
                               "\x22\x03\x01\xac\x02" /* ctrl_deps 1, 300 */
                               "\x2a\x01\x02"         /* data_deps 2 */
                               "\x30\x05\x38\x06"     /* start 5, duration 6 */
                               "\x42\x03\x0a\x01v"    /* inputs: values "v" */
                               "\x4a\x00"             /* outputs, empty */
                               "\x52\x0d\x0a\x09"
                               "comm_size"
                               "\x48\x00"; /* an int64 that is 0 stays */
    const uint64_t data[] = {2}, ctrl[] = {1, 300};
    const orr_io in = {.values = {"v", 1}}, out = {.values = {"", 0}};
    const orr_attr attr = {.name = {"comm_size", 9}, .kind = ORR_VALUE_INT64};
    const orr_draft d = {.id = 150,
                         .name = {"a", 1},
                         .type = ORR_NODE_COMM_COLL,
                         .data_deps = data,
                         .data_count = 1,
                         .ctrl_deps = ctrl,
                         .ctrl_count = 2,
                         .start_us = 5,
                         .duration_us = 6,
                         .inputs = &in,
                         .outputs = &out,
                         .attrs = &attr,
                         .attr_count = 1};
    orr_trace *t = new_trace();
    CHECK_OK(orr_trace_append(t, &d, &err), &err);
    seal(t);
    CHECK_OK(orr_trace_write(t, "f.et", NULL, &err), &err);
    check_file("f.et", want, sizeof want - 1);
    orr_trace_destroy(t);
}

TEST(test_trace__order_of_calls_is_kept)
{
    orr_trace *t = new_trace();
    const orr_draft d = {.id = 1};
    CHECK_CODE(orr_trace_write(t, "never.et", NULL, &err), ORR_EUSAGE, &err);
    CHECK(access("never.et", F_OK) != 0);
    seal(t);
    CHECK_CODE(orr_trace_append(t, &d, &err), ORR_EUSAGE, &err);
    CHECK_SAYS(&err, "a sealed trace cannot change");
    CHECK_CODE(orr_trace_seal(t, &err), ORR_EUSAGE, &err);
    CHECK_EQ_U(orr_trace_columns(t)->count, 0);
    orr_trace_destroy(t);
    orr_trace_destroy(NULL);
}

TEST(test_trace__a_node_of_nothing_is_refused)
{
    /* Its record would be empty, which no reader takes for a node. */
    orr_trace *t = new_trace();
    CHECK_CODE(orr_trace_append(t, &(orr_draft){.id = 0}, &err), ORR_EUSAGE, &err);
    CHECK_SAYS(&err, "at least an id, a name or a type");
    CHECK_OK(orr_trace_append(t, &(orr_draft){.id = 0, .type = 4}, &err), &err);
    seal(t);
    CHECK_EQ_U(orr_trace_columns(t)->count, 1);
    orr_trace_destroy(t);
}

TEST(test_trace__what_a_file_may_not_hold_cannot_be_appended)
{
    orr_trace *t = new_trace();
    CHECK_CODE(orr_trace_append(t, &(orr_draft){.id = 1, .type = ORR_NODE_TYPE_COUNT}, &err),
               ORR_EINPUT, &err);
    CHECK_CODE(orr_trace_append(t, &(orr_draft){.id = 1, .name = {"\xff", 1}}, &err), ORR_EINPUT,
               &err);
    CHECK_OK(orr_trace_append(t, &(orr_draft){.id = 1, .type = ORR_NODE_CHECKPOINT}, &err), &err);
    seal(t);
    CHECK_EQ_U(orr_trace_columns(t)->count, 1); /* the refused ones left no mark */
    CHECK_OK(orr_trace_write(t, "f.et", NULL, &err), &err);
    orr_trace_destroy(t);
    CHECK_OK(orr_trace_read("f.et", NULL, &t, &err), &err);
    CHECK_EQ_U(orr_trace_columns(t)->count, 1);
    CHECK_EQ_U(orr_trace_columns(t)->type[0], ORR_NODE_CHECKPOINT);
    orr_trace_destroy(t);
}

/* ---- dependencies ---- */

static void check_deps(const uint32_t *first,
                       const uint32_t *deps,
                       uint32_t node,
                       const uint32_t *want,
                       uint32_t count)
{
    CHECK_EQ_U(first[node + 1] - first[node], count);
    for (uint32_t i = 0; i < count; i++)
        CHECK_EQ_U(deps[first[node] + i], want[i]);
}

TEST(test_trace__dependencies_become_indices_in_file_order)
{
    orr_trace *t = new_trace();
    const uint64_t ctrl[] = {11, 10};
    ADD_NODE(t, 10);
    ADD_NODE(t, 11, 10);
    add_node(t, 12, (const uint64_t[]){11, 10, 11}, 3, ctrl, 2);
    ADD_NODE(t, 13);
    seal(t);
    const orr_columns *c = orr_trace_columns(t);
    CHECK_EQ_U(c->count, 4);
    check_deps(c->data_first, c->data_dep, 0, NULL, 0);
    check_deps(c->data_first, c->data_dep, 1, (const uint32_t[]){0}, 1);
    check_deps(c->data_first, c->data_dep, 2, (const uint32_t[]){1, 0, 1}, 3);
    check_deps(c->ctrl_first, c->ctrl_dep, 1, NULL, 0);
    check_deps(c->ctrl_first, c->ctrl_dep, 2, (const uint32_t[]){1, 0}, 2);
    check_deps(c->ctrl_first, c->ctrl_dep, 3, NULL, 0);
    CHECK(c->is_ascending && c->is_topological && !c->duplicate_ids && !c->data_missing &&
          !c->ctrl_missing);
    orr_trace_destroy(t);
}

TEST(test_trace__ids_may_come_in_any_order)
{
    orr_trace *t = new_trace();
    ADD_NODE(t, 500, 7);
    ADD_NODE(t, 7);
    ADD_NODE(t, UINT64_MAX, 500, 0);
    ADD_NODE(t, 0);
    seal(t);
    const orr_columns *c = orr_trace_columns(t);
    check_deps(c->data_first, c->data_dep, 0, (const uint32_t[]){1}, 1);
    check_deps(c->data_first, c->data_dep, 2, (const uint32_t[]){0, 3}, 2);
    CHECK(!c->is_ascending && !c->is_topological && !c->duplicate_ids && !c->data_missing);
    CHECK_EQ_U(orr_trace_find(t, 500), 0);
    CHECK_EQ_U(orr_trace_find(t, 7), 1);
    CHECK_EQ_U(orr_trace_find(t, UINT64_MAX), 2);
    CHECK_EQ_U(orr_trace_find(t, 0), 3);
    CHECK_EQ_U(orr_trace_find(t, 8), ORR_NO_NODE);
    CHECK_EQ_U(orr_trace_find(t, UINT64_MAX - 1), ORR_NO_NODE);
    orr_trace_destroy(t);
}

TEST(test_trace__ids_that_run_over_the_end_are_not_ascending)
{
    orr_trace *t = new_trace();
    ADD_NODE(t, UINT64_MAX);
    ADD_NODE(t, 0, UINT64_MAX); /* one more than the largest, modulo 2^64 */
    ADD_NODE(t, 1);
    seal(t);
    const orr_columns *c = orr_trace_columns(t);
    CHECK(!c->is_ascending);
    CHECK_EQ_U(c->data_dep[0], 0);
    CHECK_EQ_U(orr_trace_find(t, 0), 1);
    CHECK_EQ_U(orr_trace_find(t, UINT64_MAX), 0);
    orr_trace_destroy(t);
}

TEST(test_trace__missing_parents_are_counted_and_marked)
{
    for (unsigned gap = 0; gap < 2; gap++) { /* with and without gaps in the ids */
        orr_trace *t = new_trace();
        ADD_NODE(t, 5, 4);
        ADD_NODE(t, 6 + gap, 5, 99);
        add_node(t, 7 + gap, NULL, 0, (const uint64_t[]){0, 6 + gap, UINT64_MAX}, 3);
        seal(t);
        const orr_columns *c = orr_trace_columns(t);
        CHECK_EQ_U(c->data_missing, 2);
        CHECK_EQ_U(c->ctrl_missing, 2);
        check_deps(c->data_first, c->data_dep, 0, (const uint32_t[]){ORR_NO_NODE}, 1);
        check_deps(c->data_first, c->data_dep, 1, (const uint32_t[]){0, ORR_NO_NODE}, 2);
        check_deps(c->ctrl_first, c->ctrl_dep, 2, (const uint32_t[]){ORR_NO_NODE, 1, ORR_NO_NODE},
                   3);
        CHECK(c->is_topological);
        orr_node node;
        orr_value v;
        orr_trace_node(t, 2, &node);
        orr_list it = orr_node_ctrl_deps(&node); /* the ids, also of those that are missing */
        CHECK(orr_list_next(&it, &v) && v.u == 0);
        CHECK(orr_list_next(&it, &v) && v.u == 6 + gap);
        CHECK(orr_list_next(&it, &v) && v.u == UINT64_MAX);
        CHECK(!orr_list_next(&it, &v));
        orr_trace_destroy(t);
    }
}

TEST(test_trace__a_dependency_means_the_last_node_of_an_id)
{
    orr_trace *t = new_trace();
    ADD_NODE(t, 1);
    ADD_NODE(t, 2, 1);
    ADD_NODE(t, 1);
    ADD_NODE(t, 1);
    seal(t);
    const orr_columns *c = orr_trace_columns(t);
    CHECK_EQ_U(c->duplicate_ids, 2);
    CHECK_EQ_U(c->data_dep[0], 3);
    CHECK_EQ_U(orr_trace_find(t, 1), 3);
    CHECK(!c->is_ascending && !c->is_topological);
    orr_trace_destroy(t);
}

TEST(test_trace__a_cycle_is_not_topological)
{
    orr_trace *t = new_trace();
    ADD_NODE(t, 1, 1);
    seal(t);
    CHECK(!orr_trace_columns(t)->is_topological);
    orr_trace_destroy(t);
}

TEST(test_trace__dependencies_are_read_packed_or_one_by_one)
{
    orr_trace *t;
    uint8_t *copy;
    orr_buf b = {0};
    put_meta(&b);
    PUT_NODE(&b, 1);
    PUT_NODE(&b, 2);
    PUT_RECORD(
        &b,
        "\x08\x03\x28\x01\x2a\x02\x02\x01\x28\x02\x20\x02\x22\x00"); /* 5: 1, 5: [2, 1], 5: 2, 4: 2, 4: [] */
    CHECK_OK(parse(&b, NULL, &t, &copy), &err);
    const orr_columns *c = orr_trace_columns(t);
    check_deps(c->data_first, c->data_dep, 2, (const uint32_t[]){0, 1, 0, 1}, 4);
    check_deps(c->ctrl_first, c->ctrl_dep, 2, (const uint32_t[]){1}, 1);
    orr_trace_destroy(t);
    free(copy);
    orr_buf_fini(&b);
}

TEST(test_trace__large_random_traces_resolve_as_a_plain_search_does)
{
    for (uint64_t seed = 1; seed <= 4; seed++) {
        orr_trace *t = random_trace(seed, 3000, 200);
        const orr_columns *c = orr_trace_columns(t);
        CHECK(c->is_ascending && c->is_topological);
        for (uint32_t i = 0; i < c->count; i++) {
            orr_node node;
            orr_value v;
            orr_trace_node(t, i, &node);
            CHECK_EQ_U(node.id, c->id[i]);
            CHECK_EQ_U(orr_trace_find(t, node.id), i);
            orr_list it = orr_node_data_deps(&node);
            for (uint32_t e = c->data_first[i]; e < c->data_first[i + 1]; e++)
                CHECK(orr_list_next(&it, &v) && c->id[c->data_dep[e]] == v.u);
            CHECK(!orr_list_next(&it, &v));
        }
        orr_trace_destroy(t);
    }
}

/* ---- attributes and their columns ---- */

TEST(test_trace__every_known_attribute_has_its_column)
{
    static const char *const names[] = {"comm_size",  "comm_src",      "comm_dst",
                                        "comm_tag",   "comm_priority", "tensor_size",
                                        "tensor_loc", "num_ops",       "stream"};
    orr_trace *t = new_trace();
    append_attrs(t, 1, NULL, 0);
    for (size_t k = 0; k < COUNT(names); k++)
        append_attrs(t, 2 + k,
                     &(orr_attr){.name = orr_str_of(names[k]),
                                 .kind = ORR_VALUE_INT64,
                                 .value = {.i = 100 + (int64_t)k}},
                     1);
    append_attrs(t, 20, NULL, 0);
    seal(t);
    const orr_columns *c = orr_trace_columns(t);
    const int64_t *const columns[] = {c->comm_size,  c->comm_src,      c->comm_dst,
                                      c->comm_tag,   c->comm_priority, c->tensor_size,
                                      c->tensor_loc, c->num_ops,       c->stream};
    for (size_t k = 0; k < COUNT(names); k++)
        for (uint32_t i = 0; i < c->count; i++)
            CHECK_EQ(columns[k][i], i == k + 1 ? 100 + (int64_t)k : ORR_NO_VALUE);
    CHECK(!c->is_cpu_op && !c->comm_type && !c->pg_name && !c->start_us && !c->ctrl_first);
    orr_trace_destroy(t);
}

TEST(test_trace__a_trace_without_attributes_has_no_columns_for_them)
{
    orr_trace *t = new_trace();
    ADD_NODE(t, 1);
    seal(t);
    const orr_columns *c = orr_trace_columns(t);
    CHECK(!c->comm_size && !c->comm_src && !c->tensor_size && !c->num_ops && !c->is_cpu_op &&
          !c->comm_type);
    orr_trace_destroy(t);
}

TEST(test_trace__any_integer_member_will_do)
{
    static const orr_value_kind kinds[] = {
        ORR_VALUE_INT32,    ORR_VALUE_INT64,    ORR_VALUE_UINT32,  ORR_VALUE_UINT64,
        ORR_VALUE_SINT32,   ORR_VALUE_SINT64,   ORR_VALUE_FIXED32, ORR_VALUE_FIXED64,
        ORR_VALUE_SFIXED32, ORR_VALUE_SFIXED64, ORR_VALUE_BOOL};
    orr_trace *t = new_trace();
    for (size_t k = 0; k < COUNT(kinds); k++) {
        const orr_attr attrs[] = {int_attr("comm_size", kinds[k], 1),
                                  int_attr("is_cpu_op", kinds[k], 1),
                                  int_attr("comm_type", kinds[k], 1)};
        append_attrs(t, k + 1, attrs, 3);
    }
    append_attrs(
        t, 100,
        &(orr_attr){.name = orr_str_of("comm_size"), .kind = ORR_VALUE_DOUBLE, .value = {.d = 1}},
        1);
    append_attrs(t, 101,
                 &(orr_attr){.name = orr_str_of("comm_size"),
                             .kind = ORR_VALUE_STRING,
                             .value = {.s = {"1", 1}}},
                 1);
    append_attrs(
        t, 102,
        &(orr_attr){.name = orr_str_of("comm_size"), .kind = ORR_VALUE_INT64, .is_list = true}, 1);
    append_attrs(t, 103, &(orr_attr){.name = orr_str_of("comm_size")}, 1); /* no value at all */
    seal(t);
    const orr_columns *c = orr_trace_columns(t);
    for (size_t k = 0; k < COUNT(kinds); k++) {
        CHECK_EQ(c->comm_size[k], 1);
        CHECK_EQ(c->is_cpu_op[k], 1);
        CHECK_EQ(c->comm_type[k], 1);
    }
    for (size_t k = COUNT(kinds); k < c->count; k++)
        CHECK_EQ(c->comm_size[k], ORR_NO_VALUE);
    orr_trace_destroy(t);
}

TEST(test_trace__values_out_of_a_columns_range_are_marked)
{
    orr_trace *t = new_trace();
    const int64_t types[] = {0, 9, 126, 127, 128, 1000000, -1, -5};
    const int8_t want[] = {0, 9, 126, 127, 127, 127, 127, 127};
    for (size_t i = 0; i < COUNT(types); i++)
        append_attrs(t, i,
                     &(orr_attr){.name = orr_str_of("comm_type"),
                                 .kind = ORR_VALUE_INT64,
                                 .value = {.i = types[i]}},
                     1);
    append_attrs(t, 50,
                 &(orr_attr){.name = orr_str_of("comm_size"),
                             .kind = ORR_VALUE_UINT64,
                             .value = {.u = UINT64_MAX}},
                 1);
    append_attrs(
        t, 51,
        &(orr_attr){.name = orr_str_of("comm_size"), .kind = ORR_VALUE_INT32, .value = {.i = -7}},
        1);
    append_attrs(
        t, 52,
        &(orr_attr){.name = orr_str_of("is_cpu_op"), .kind = ORR_VALUE_INT32, .value = {.i = 5}},
        1);
    append_attrs(
        t, 53,
        &(orr_attr){.name = orr_str_of("is_cpu_op"), .kind = ORR_VALUE_BOOL, .value = {.u = 0}}, 1);
    seal(t);
    const orr_columns *c = orr_trace_columns(t);
    for (size_t i = 0; i < COUNT(types); i++) {
        CHECK_EQ(c->comm_type[i], want[i]);
        CHECK_EQ(c->is_cpu_op[i], -1);
    }
    CHECK_EQ(c->comm_type[8], -1);
    CHECK_EQ(c->comm_size[8], INT64_MAX);
    CHECK_EQ(c->comm_size[9], -7);
    CHECK_EQ(c->is_cpu_op[10], 1);
    CHECK_EQ(c->is_cpu_op[11], 0);
    orr_trace_destroy(t);
}

TEST(test_trace__the_first_attribute_of_a_name_counts)
{
    orr_trace *t = new_trace();
    const orr_attr attrs[] = {int_attr("comm_tag", ORR_VALUE_INT32, 1),
                              int_attr("comm_tag", ORR_VALUE_INT64, 2), text_attr("pg_name", "a"),
                              text_attr("pg_name", "b")};
    append_attrs(t, 1, attrs, 4);
    seal(t);
    CHECK_EQ(orr_trace_columns(t)->comm_tag[0], 1);
    check_str(orr_trace_text(t, orr_trace_columns(t)->pg_name[0]), "a");
    orr_node node;
    orr_attr a;
    int64_t v;
    orr_trace_node(t, 0, &node);
    CHECK(orr_node_attr(&node, "comm_tag", &a) && orr_attr_int(&a, &v) && v == 1);
    CHECK(!orr_node_attr(&node, "comm_ta", &a));
    orr_trace_destroy(t);
}

TEST(test_trace__the_last_member_of_one_value_counts)
{
    /* Two members of the oneof in one attribute: int64_val 5, then int32_val 6. */
    orr_trace *t;
    uint8_t *copy;
    orr_buf b = {0};
    put_meta(&b);
    PUT_RECORD(&b, "\x08\x01\x52\x0e\x0a\x08"
                   "comm_src"
                   "\x48\x05\x38\x06");
    CHECK_OK(parse(&b, NULL, &t, &copy), &err);
    CHECK_EQ(orr_trace_columns(t)->comm_src[0], 6);
    orr_node node;
    orr_attr a;
    orr_trace_node(t, 0, &node);
    CHECK(orr_node_attr(&node, "comm_src", &a));
    CHECK(a.kind == ORR_VALUE_INT32 && !a.is_list && a.value.i == 6);
    orr_trace_destroy(t);
    free(copy);
    orr_buf_fini(&b);
}

TEST(test_trace__group_names_are_numbered_in_order)
{
    orr_trace *t = new_trace();
    const char *const names[] = {"7", "0", "7", "", "0"};
    for (size_t i = 0; i < COUNT(names); i++)
        append_attrs(t, i,
                     &(orr_attr){.name = orr_str_of("pg_name"),
                                 .kind = ORR_VALUE_STRING,
                                 .value = {.s = orr_str_of(names[i])}},
                     1);
    append_attrs(t, 9, NULL, 0);
    append_attrs(
        t, 10,
        &(orr_attr){.name = orr_str_of("pg_name"), .kind = ORR_VALUE_INT64, .value = {.i = 7}}, 1);
    seal(t);
    const uint32_t *pg = orr_trace_columns(t)->pg_name;
    const uint32_t want[] = {0, 1, 0, 2, 1, ORR_NO_NAME, ORR_NO_NAME};
    for (size_t i = 0; i < COUNT(want); i++)
        CHECK_EQ_U(pg[i], want[i]);
    CHECK_EQ_U(orr_trace_text_count(t), 3);
    check_str(orr_trace_text(t, 0), "7");
    check_str(orr_trace_text(t, 2), "");
    orr_trace_destroy(t);
}

TEST(test_trace__times_are_columns_and_a_late_start_fills_the_earlier_ones)
{
    orr_trace *t = new_trace();
    CHECK_OK(orr_trace_append(t, &(orr_draft){.id = 1, .duration_us = 9}, &err), &err);
    CHECK_OK(orr_trace_append(
                 t, &(orr_draft){.id = 2, .start_us = UINT64_MAX, .duration_us = UINT64_MAX}, &err),
             &err);
    CHECK_OK(orr_trace_append(t, &(orr_draft){.id = 3}, &err), &err);
    seal(t);
    const orr_columns *c = orr_trace_columns(t);
    CHECK(c->duration_us[0] == 9 && c->duration_us[1] == UINT64_MAX && c->duration_us[2] == 0);
    CHECK(c->start_us[0] == 0 && c->start_us[1] == UINT64_MAX && c->start_us[2] == 0);
    orr_trace_destroy(t);
}

TEST(test_trace__names_of_numbers)
{
    orr_schema s;
    CHECK_TEXT(orr_node_type_name(ORR_NODE_COMP), "COMP_NODE");
    CHECK_TEXT(orr_node_type_name(10), "CHECKPOINT_NODE");
    CHECK(!orr_node_type_name(11) && !orr_node_type_name(UINT32_MAX));
    CHECK_TEXT(orr_collective_name(9), "BARRIER");
    CHECK(!orr_collective_name(10));
    CHECK_TEXT(orr_value_member(ORR_VALUE_SFIXED64, true), "sfixed64_list");
    CHECK_TEXT(orr_value_member(ORR_VALUE_BYTES, false), "bytes_val");
    for (unsigned i = 0; i < ORR_SCHEMA_COUNT; i++)
        CHECK(orr_schema_find(orr_str_of(orr_schema_name((orr_schema)i)), &s) && s == i);
    CHECK(!orr_schema_find(orr_str_of("0.0.5"), &s));
    CHECK(!orr_schema_name(ORR_SCHEMA_COUNT));
}

TEST(test_trace__of_several_names_the_last_counts)
{
    /* Records that no writer of ours makes: node 0 has one name, node 1 two, in the order id, name,
     * type, name. */
    static const uint8_t bytes[] = "\x00"
                                   "\x0f\x08\x00\x12\x01"
                                   "a\x18\x04\x38\x01\x38\x01\x38\x01\x38\x01"
                                   "\x13\x08\x01\x12\x01"
                                   "b\x18\x04\x12\x02"
                                   "cc\x38\x01\x38\x01\x38\x01\x38\x01";
    orr_trace *t;
    CHECK_OK(orr_trace_parse((orr_span){bytes, sizeof bytes - 1}, "names", NULL, &t, &err), &err);
    CHECK_EQ_U(orr_trace_columns(t)->count, 2);
    const orr_str first = orr_trace_name(t, 0), second = orr_trace_name(t, 1);
    CHECK(first.len == 1 && first.ptr[0] == 'a');
    CHECK(second.len == 2 && memcmp(second.ptr, "cc", 2) == 0);
    orr_trace_destroy(t);
}

/* As protobuf: the last one counts.  Names are compared before an attribute is decoded. */
TEST(test_trace__the_last_name_of_an_attribute_counts)
{
    /* attr {name: "a", doc: "d", name: "b"}, attr {name: "c"} */
    static const uint8_t bytes[] = "\x52\x09\x0a\x01"
                                   "a\x12\x01"
                                   "d\x0a\x01"
                                   "b\x52\x03\x0a\x01"
                                   "c";
    const orr_node node = {.body = {bytes, sizeof bytes - 1}};
    orr_attr attr;
    CHECK(!orr_node_attr(&node, "a", &attr));
    CHECK(orr_node_attr(&node, "b", &attr) && attr.doc.len == 1);
    CHECK(orr_node_attr(&node, "c", &attr));
    CHECK(!orr_node_attr(&node, "d", &attr));
}

int main(void)
{
    const CMUnitTest tests[] = {
        RUN(test_trace__a_node_is_encoded_byte_for_byte),
        RUN(test_trace__order_of_calls_is_kept),
        RUN(test_trace__a_node_of_nothing_is_refused),
        RUN(test_trace__what_a_file_may_not_hold_cannot_be_appended),
        RUN(test_trace__dependencies_become_indices_in_file_order),
        RUN(test_trace__ids_may_come_in_any_order),
        RUN(test_trace__ids_that_run_over_the_end_are_not_ascending),
        RUN(test_trace__missing_parents_are_counted_and_marked),
        RUN(test_trace__a_dependency_means_the_last_node_of_an_id),
        RUN(test_trace__a_cycle_is_not_topological),
        RUN(test_trace__dependencies_are_read_packed_or_one_by_one),
        RUN(test_trace__large_random_traces_resolve_as_a_plain_search_does),
        RUN(test_trace__every_known_attribute_has_its_column),
        RUN(test_trace__a_trace_without_attributes_has_no_columns_for_them),
        RUN(test_trace__any_integer_member_will_do),
        RUN(test_trace__values_out_of_a_columns_range_are_marked),
        RUN(test_trace__the_first_attribute_of_a_name_counts),
        RUN(test_trace__the_last_member_of_one_value_counts),
        RUN(test_trace__group_names_are_numbered_in_order),
        RUN(test_trace__times_are_columns_and_a_late_start_fills_the_earlier_ones),
        RUN(test_trace__names_of_numbers),
        RUN(test_trace__of_several_names_the_last_counts),
        RUN(test_trace__the_last_name_of_an_attribute_counts),
    };
    return RUN_ALL(tests);
}
