/* SPDX-License-Identifier: Apache-2.0 */
/* room: et_legacy */
/* test_et_legacy_convert.c - from one generation of .et to another, and what cannot be said
 * there. */
#include "legacy_make.h"

/* ---- from one generation to another ---- */

TEST(test_et_legacy_convert__eg_becomes_0_0_3)
{
    orr_buf b = {0}, expected = {0};
    make_eg(&b);
    add_record(&expected, "08 00 12 09 'COMP_NODE' 18 04 5a 0d 0a 07 'runtime' 10 02 30 05");
    add_record(&expected, "08 01 12 09 'COMP_NODE' 18 04 20 00 5a 0d 0a 07 'runtime' 10 02 30 05");
    orr_trace *t = parse_as(&b, ORR_SCHEMA_AUTO, ORR_STRICT);
    check_converts(t, ORR_SCHEMA_0_0_3, &expected);
    orr_trace_destroy(t);
    t = parse_as(&expected, ORR_SCHEMA_AUTO, ORR_STRICT);
    check_converts(t, ORR_SCHEMA_EG, &b);
    orr_trace_destroy(t);
    orr_buf_fini(&b);
    orr_buf_fini(&expected);
}

TEST(test_et_legacy_convert__ids_are_shifted)
{
    orr_buf b = {0}, expected = {0};
    make_eg(&b);
    add_record(&expected, "08 64 12 09 'COMP_NODE' 18 03 38 05");
    add_record(&expected, "08 65 12 09 'COMP_NODE' 18 03 20 64 38 05");
    orr_trace *t = parse_as(&b, ORR_SCHEMA_AUTO, ORR_STRICT);
    CHECK_OK(write_as(t, ORR_SCHEMA_EG, 100), &err);
    check_written(expected.ptr, expected.len);
    orr_trace_destroy(t);
    b.len = expected.len = 0;
    make_2023_10(&b);
    add_record(&expected, "0a 07 0a 03 'pid' 48 05");
    add_record(&expected, "08 64 12 01 'n' 18 04 38 05");
    add_record(&expected, "08 65 12 01 'm' 18 07 22 01 64 2a 01 64 52 06 0a 01 'x' d8 01 01");
    t = parse_as(&b, ORR_SCHEMA_AUTO, ORR_STRICT);
    CHECK_OK(write_as(t, ORR_SCHEMA_2023_10, 100), &err);
    check_written(expected.ptr, expected.len);
    orr_trace_destroy(t);
    orr_buf_fini(&b);
    orr_buf_fini(&expected);
}

/* A new trace of one node. */
static orr_trace *trace_of(const orr_draft *d, const orr_meta *meta)
{
    orr_trace *t;
    CHECK_OK(orr_trace_create(meta, &t, &err), &err);
    CHECK_OK(orr_trace_append(t, d, &err), &err);
    CHECK_OK(orr_trace_seal(t, &err), &err);
    return t;
}

static orr_attr number_attr(const char *name, orr_value_kind kind, uint64_t value)
{
    return (orr_attr){.name = orr_str_of(name), .kind = kind, .value.u = value};
}

TEST(test_et_legacy_convert__both_kinds_of_dependency_become_parents_once)
{
    static const uint64_t data[] = {9, 3, 3}, ctrl[] = {3, 5, 9};
    const orr_draft d = {.id = 10,
                         .type = ORR_NODE_MEM_LOAD,
                         .data_deps = data,
                         .data_count = 3,
                         .ctrl_deps = ctrl,
                         .ctrl_count = 3};
    orr_buf expected = {0};
    orr_trace *t = trace_of(&d, NULL);
    add_record(&expected, "08 0a 12 00 18 01 20 09 20 03 20 03 20 05");
    check_converts(t, ORR_SCHEMA_EG, &expected);
    orr_trace_destroy(t);
    orr_buf_fini(&expected);
}

TEST(test_et_legacy_convert__values_take_the_nearest_type)
{
    const orr_attr attrs[] = {
        number_attr("a", ORR_VALUE_BOOL, 1),
        number_attr("a", ORR_VALUE_SINT32, (uint64_t)-1),
        number_attr("a", ORR_VALUE_UINT32, 6),
        number_attr("a", ORR_VALUE_FIXED64, 7),
        {.name = orr_str_of("a"), .kind = ORR_VALUE_DOUBLE, .value.d = 1.5},
        number_attr("comm_type", ORR_VALUE_UINT32, ORR_COLL_REDUCE_SCATTER),
    };
    const orr_draft d = {.id = 1, .type = ORR_NODE_COMM_COLL, .attrs = attrs, .attr_count = 6};
    const orr_meta meta = {.version = orr_str_of("1.0.0")};
    orr_buf expected = {0};
    orr_trace *t = trace_of(&d, &meta);
    add_record(&expected, ""); /* the version is of another generation */
    add_record(&expected, "08 01 12 00 18 07"
                          " 5a 07 0a 01 'a' 10 00 20 01"
                          " 5a 10 0a 01 'a' 10 03 38 ff ff ff ff ff ff ff ff ff 01"
                          " 5a 07 0a 01 'a' 10 02 30 06"
                          " 5a 07 0a 01 'a' 10 02 30 07"
                          " 5a 0a 0a 01 'a' 10 01 2d 00 00 c0 3f"
                          " 5a 0f 0a 09 'comm_type' 10 03 38 03");
    check_converts(t, ORR_SCHEMA_0_0_3U, &expected);
    expected.len = 0;
    add_record(&expected, "08 01 12 00 18 06"
                          " 5a 07 0a 01 'a' 10 01 28 01"
                          " 5a 10 0a 01 'a' 10 01 28 ff ff ff ff ff ff ff ff ff 01"
                          " 5a 07 0a 01 'a' 10 01 28 06"
                          " 5a 07 0a 01 'a' 10 01 28 07"
                          " 5a 0a 0a 01 'a' 10 00 25 00 00 c0 3f"
                          " 5a 0f 0a 09 'comm_type' 10 01 28 03");
    check_converts(t, ORR_SCHEMA_0_0_2, &expected);
    orr_trace_destroy(t);
    orr_buf_fini(&expected);
}

TEST(test_et_legacy_convert__a_changed_duration_is_the_run_time)
{
    const orr_attr attrs[] = {number_attr("runtime", ORR_VALUE_INT64, 5),
                              number_attr("a", ORR_VALUE_INT64, 1)};
    const orr_draft d = {
        .id = 1, .type = ORR_NODE_COMP, .duration_us = 8, .attrs = attrs, .attr_count = 2};
    orr_buf expected = {0};
    orr_trace *t = trace_of(&d, NULL);
    add_record(&expected,
               "08 01 12 00 18 04 5a 0d 0a 07 'runtime' 10 02 30 08 5a 07 0a 01 'a' 10 02 30 01");
    check_converts(t, ORR_SCHEMA_0_0_3, &expected);
    orr_trace_destroy(t);
    orr_buf_fini(&expected);
}

static void check_refuses(const orr_draft *d, orr_schema schema, const char *words)
{
    orr_trace *t = trace_of(d, NULL);
    CHECK_CODE(write_as(t, schema, 0), ORR_EUSAGE, &err);
    CHECK_SAYS(&err, words);
    CHECK(access(scratch(), F_OK) != 0);
    orr_trace_destroy(t);
}

static void check_refuses_attr(orr_attr a, orr_schema schema, const char *words)
{
    check_refuses(&(orr_draft){.id = 7, .type = ORR_NODE_MEM_LOAD, .attrs = &a, .attr_count = 1},
                  schema, words);
}

TEST(test_et_legacy_convert__what_cannot_be_said_is_an_error)
{
    const orr_io io = {
        .values = orr_str_of("[]"), .shapes = orr_str_of(""), .types = orr_str_of("")};
    const orr_str bytes = {"\xff", 1};
    check_refuses(
        &(orr_draft){.id = 7, .start_us = 1}, ORR_SCHEMA_0_0_3U,
        "node 7: it cannot be written as generation 0.0.3u: it has no place for start_time_micros");
    check_refuses(&(orr_draft){.id = 7, .inputs = &io}, ORR_SCHEMA_EG,
                  "no place for inputs and outputs");
    check_refuses(&(orr_draft){.id = 7, .type = ORR_NODE_METADATA}, ORR_SCHEMA_0_0_2,
                  "its node type has no number there");
    check_refuses(&(orr_draft){.id = 7, .type = ORR_NODE_STORAGE}, ORR_SCHEMA_0_0_3,
                  "its node type has no number there");
    check_refuses(&(orr_draft){.id = 7, .duration_us = UINT64_MAX}, ORR_SCHEMA_0_0_3,
                  "its duration is too large");
    check_refuses(&(orr_draft){.id = 7, .unknown = {(const uint8_t *)"\x62\x00", 2}},
                  ORR_SCHEMA_0_0_3, "a field outside the schema");
    check_refuses_attr(
        number_attr("is_cpu_op", ORR_VALUE_BOOL, 1), ORR_SCHEMA_EG,
        "node 7: attribute is_cpu_op cannot be written as generation eg: there is no field for it");
    check_refuses_attr(number_attr("comm_tag", ORR_VALUE_UINT64, 1ull << 32), ORR_SCHEMA_EG,
                       "out of range");
    check_refuses_attr(number_attr("comm_tag", ORR_VALUE_INT64, (uint64_t)-1), ORR_SCHEMA_EG,
                       "out of range");
    check_refuses_attr(number_attr("tensor_loc", ORR_VALUE_UINT32, 3), ORR_SCHEMA_EG,
                       "the memory type has no number");
    check_refuses_attr(number_attr("num_ops", ORR_VALUE_DOUBLE, 0), ORR_SCHEMA_EG,
                       "not one whole number");
    check_refuses_attr(number_attr("involved_dim", ORR_VALUE_INT64, 1), ORR_SCHEMA_EG,
                       "not a list of booleans");
    check_refuses_attr(number_attr("comm_type", ORR_VALUE_INT64, ORR_COLL_BARRIER), ORR_SCHEMA_EG,
                       "the collective has no number there");
    check_refuses_attr(number_attr("comm_type", ORR_VALUE_INT64, ORR_COLL_BROADCAST),
                       ORR_SCHEMA_0_0_3, "the collective has no number there");
    check_refuses_attr(number_attr("x", ORR_VALUE_UINT64, UINT64_MAX), ORR_SCHEMA_0_0_3,
                       "its number is too large");
    check_refuses_attr(number_attr("x", ORR_VALUE_NONE, 0), ORR_SCHEMA_0_0_3, "it has no value");
    check_refuses_attr(
        (orr_attr){.name = orr_str_of("x"), .kind = ORR_VALUE_DOUBLE, .value.d = 0.1},
        ORR_SCHEMA_0_0_3, "a double that no float holds");
    check_refuses_attr(
        (orr_attr){.name = orr_str_of("x"), .kind = ORR_VALUE_BYTES, .value.s = bytes},
        ORR_SCHEMA_0_0_3, "its bytes are not text");
}

TEST(test_et_legacy_convert__metadata_that_has_no_place_is_an_error)
{
    const orr_attr a = number_attr("pid", ORR_VALUE_UINT64, 1);
    const orr_meta meta = {.attrs = &a, .attr_count = 1};
    orr_trace *t = trace_of(&(orr_draft){.id = 1}, &meta);
    CHECK_CODE(write_as(t, ORR_SCHEMA_0_0_2, 0), ORR_EUSAGE, &err);
    CHECK_SAYS(
        &err,
        "metadata: attribute pid cannot be written as generation 0.0.2: there is no metadata");
    orr_trace_destroy(t);
}

int main(void)
{
    const CMUnitTest tests[] = {
        RUN(test_et_legacy_convert__eg_becomes_0_0_3),
        RUN(test_et_legacy_convert__ids_are_shifted),
        RUN(test_et_legacy_convert__both_kinds_of_dependency_become_parents_once),
        RUN(test_et_legacy_convert__values_take_the_nearest_type),
        RUN(test_et_legacy_convert__a_changed_duration_is_the_run_time),
        RUN(test_et_legacy_convert__what_cannot_be_said_is_an_error),
        RUN(test_et_legacy_convert__metadata_that_has_no_place_is_an_error),
    };
    return RUN_ALL(tests);
}
