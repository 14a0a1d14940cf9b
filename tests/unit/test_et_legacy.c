/* SPDX-License-Identifier: Apache-2.0 */
/* test_et_legacy.c - the old generations of .et: recognised, read, written back byte for byte, converted.
 *
 * Files are written here byte by byte, in hexadecimal, as protobuf's rules have it (docs/format/et.md): tag =
 * number * 8 + wire type, numbers as varints, a length before each text and message. */
#include "check.h"

#include "trace/trace_impl.h"

#include <dirent.h>
#include <sys/stat.h>

static orr_error err;

/* ---- files in memory ---- */

static unsigned digit(char c)
{
    const char *const digits = "0123456789abcdef", *at = strchr(digits, c);
    CHECK(c && at);
    return (unsigned)(at - digits);
}

/* Bytes as text: two hexadecimal digits each, and 'texts'. */
static void add_bytes(orr_buf *b, const char *s)
{
    while (*s) {
        if (*s == ' ') {
            s++;
        } else if (*s == '\'') {
            for (s++; *s != '\''; s++)
                orr_buf_byte(b, (uint8_t)*s);
            s++;
        } else {
            orr_buf_byte(b, (uint8_t)(digit(s[0]) << 4 | digit(s[1])));
            s += 2;
        }
    }
}

/* The same after their length. */
static void add_record(orr_buf *b, const char *s)
{
    const size_t begin = orr_put_begin(b);
    add_bytes(b, s);
    orr_put_end(b, begin);
}

static orr_span span_of(const orr_buf *b)
{
    return (orr_span){b->ptr, b->len};
}

static orr_schema recognise(const orr_buf *b)
{
    return orr__legacy_recognise(span_of(b), "rank.0.et");
}

static orr_trace *parse_as(const orr_buf *b, orr_schema schema, orr_leniency leniency)
{
    orr_trace *t;
    const orr_read_options opt = {.schema = schema, .leniency = leniency};
    CHECK_OK(orr_trace_parse(span_of(b), "rank.0.et", &opt, &t, &err), &err);
    return t;
}

static const char *scratch(void)
{
    static char path[64];
    snprintf(path, sizeof path, P_tmpdir "/orr-test-legacy.%d.et", (int)getpid());
    return path;
}

static orr_code write_as(const orr_trace *t, orr_schema schema, uint64_t shift)
{
    const orr_write_options opt = {.schema = schema, .id_shift = shift};
    return orr_trace_write(t, scratch(), &opt, &err);
}

/* What stands in the file that was written last. */
static void check_written(const void *bytes, size_t len)
{
    orr_input *in;
    CHECK_OK(orr_input_open(scratch(), &in, &err), &err);
    const orr_span got = orr_input_bytes(in);
    const size_t both = got.len < len ? got.len : len;
    CHECK_BYTES(got.ptr, (const uint8_t *)bytes, both);
    CHECK_EQ_U(got.len, len);
    orr_input_close(in);
    unlink(scratch());
}

static void check_converts(const orr_trace *t, orr_schema schema, const orr_buf *expected)
{
    CHECK_OK(write_as(t, schema, 0), &err);
    check_written(expected->ptr, expected->len);
}

/* Recognised, read and written as the same bytes; also by way of the current schema. */
static orr_trace *check_round_trip(const orr_buf *b, orr_schema schema)
{
    orr_trace *by_current;
    const orr_read_options current = {.schema = ORR_SCHEMA_CURRENT};
    CHECK_EQ(recognise(b), schema);
    orr_trace *t = parse_as(b, ORR_SCHEMA_AUTO, ORR_STRICT);
    CHECK_EQ(orr_trace_schema(t), schema);
    check_converts(t, schema, b);
    CHECK_OK(write_as(t, ORR_SCHEMA_CURRENT, 0), &err);
    CHECK_OK(orr_trace_read(scratch(), &current, &by_current, &err), &err);
    unlink(scratch());
    check_converts(by_current, schema, b);
    orr_trace_destroy(by_current);
    return t;
}

static orr_attr attr_of(const orr_trace *t, uint32_t index, const char *name)
{
    orr_node node;
    orr_attr a = {.kind = ORR_VALUE_NONE};
    orr_trace_node(t, index, &node);
    if (!orr_node_attr(&node, name, &a))
        check_fail(__FILE__, __LINE__, "node %u has no attribute %s", index, name);
    return a;
}

static bool has_attr(const orr_trace *t, uint32_t index, const char *name)
{
    orr_node node;
    orr_attr a;
    orr_trace_node(t, index, &node);
    return orr_node_attr(&node, name, &a);
}

static void check_number(const orr_trace *t, const char *name, orr_value_kind kind, uint64_t value)
{
    const orr_attr a = attr_of(t, 0, name);
    CHECK(!a.is_list);
    CHECK_EQ(a.kind, kind);
    CHECK_EQ_U(a.value.u, value);
}

static void check_items(const orr_attr *a,
                        orr_value_kind kind,
                        const uint64_t *values,
                        size_t count)
{
    orr_list it = orr_attr_items(a);
    orr_value v;
    CHECK(a->is_list);
    CHECK_EQ(a->kind, kind);
    for (size_t i = 0; i < count; i++) {
        CHECK(orr_list_next(&it, &v));
        CHECK_EQ_U(v.u, values[i]);
    }
    CHECK(!orr_list_next(&it, &v));
}

static bool is_str(orr_str s, const char *text, size_t len)
{
    return s.len == len && memcmp(s.ptr, text, len) == 0;
}

/* ---- samples, used by several tests ---- */

static void make_eg(orr_buf *b)
{
    add_record(b, "08 00 12 09 'COMP_NODE' 18 03 38 05");
    add_record(b, "08 01 12 09 'COMP_NODE' 18 03 20 00 38 05");
}

/* Every field, none of them zero but tensor_size. */
static void make_eg_full(orr_buf *b)
{
    add_record(b, "08 07 12 01 'n' 18 06 20 01 20 02 28 01 30 00 38 09 40 02"
                  " 48 ff ff ff ff ff ff ff ff ff 01" /* input_tensor_size: 2^64 - 1 */
                  " 50 01 58 0b 60 0c 68 02 70 01 70 00 70 01 78 0f"
                  " 80 01 10 88 01 11 90 01 ff ff ff ff 0f" /* comm_size: 2^32 - 1 */
                  " 98 01 00 a0 01 14");
}

static void make_0_0_2(orr_buf *b)
{
    add_record(b, "08 00 12 09 'COMP_NODE' 18 03 5a 0d 0a 07 'runtime' 10 01 28 05");
    add_record(b, "08 01 12 01 'n' 18 00 20 00 2a 02 '[]' 52 00" /* inputs, output_types */
                  " 5a 0a 0a 01 'a' 10 00 25 01 00 a0 7f"        /* a NaN of its own */
                  " 5a 10 0a 01 'a' 10 01 28 80 80 80 80 80 80 80 80 80 01" /* -2^63 */
                  " 5a 08 0a 01 'a' 10 02 32 01 's'"
                  " 5a 0f 0a 01 'a' 10 03 3d 00 00 80 3f 3d 00 00 00 80"          /* 1, -0 */
                  " 5a 12 0a 01 'a' 10 04 40 02 40 ff ff ff ff ff ff ff ff ff 01" /* 2, -1 */
                  " 5a 0a 0a 01 'a' 10 05 4a 01 ff 4a 00");
}

static void make_0_0_3(orr_buf *b)
{
    add_record(b, "0a 0b 0a 03 'pid' 10 03 3a 02 '42'"); /* metadata */
    add_record(b, "08 01 12 01 'n' 18 04"
                  " 5a 07 0a 01 'a' 10 00 20 01"
                  " 5a 0a 0a 01 'a' 10 01 2d 00 00 c0 3f" /* 1.5 */
                  " 5a 10 0a 01 'a' 10 02 30 ff ff ff ff ff ff ff ff ff 01"
                  " 5a 07 0a 01 'a' 10 03 3a 00"
                  " 5a 09 0a 01 'a' 10 04 40 01 40 00"
                  " 5a 0a 0a 01 'a' 10 05 4d 00 00 00 40" /* 2.0 */
                  " 5a 07 0a 01 'a' 10 06 50 07"
                  " 5a 08 0a 01 'a' 10 07 5a 01 's'"
                  " 5a 0d 0a 07 'runtime' 10 02 30 05");
}

static void make_0_0_3u(orr_buf *b)
{
    add_record(b, "0a 12 0a 03 'pid' 10 02 30 ff ff ff ff ff ff ff ff ff 01");
    add_record(b, "08 01 12 01 'n' 18 04"
                  " 5a 07 0a 01 'a' 10 00 20 00"
                  " 5a 0a 0a 01 'a' 10 01 2d 00 00 c0 3f"
                  " 5a 07 0a 01 'a' 10 02 30 06"
                  " 5a 10 0a 01 'a' 10 03 38 80 80 80 80 80 80 80 80 80 01"
                  " 5a 08 0a 01 'a' 10 04 42 01 's'"
                  " 5a 07 0a 01 'a' 10 05 48 01"
                  " 5a 0a 0a 01 'a' 10 06 55 00 00 00 40"
                  " 5a 07 0a 01 'a' 10 07 58 07"
                  " 5a 07 0a 01 'a' 10 08 60 07"
                  " 5a 08 0a 01 'a' 10 09 6a 01 's'"
                  " 5a 0d 0a 07 'runtime' 10 03 38 05");
}

static void make_2023_10(orr_buf *b)
{
    add_record(b, "0a 07 0a 03 'pid' 48 05");
    add_record(b, "12 01 'n' 18 04 38 05");
    add_record(b, "08 01 12 01 'm' 18 07 22 01 00 2a 01 00 52 06 0a 01 'x' d8 01 01");
}

typedef struct sample {
    orr_schema schema;
    void (*make)(orr_buf *);
} sample;

static const sample samples[] = {
    {ORR_SCHEMA_EG, make_eg},         {ORR_SCHEMA_EG, make_eg_full},
    {ORR_SCHEMA_0_0_2, make_0_0_2},   {ORR_SCHEMA_0_0_3, make_0_0_3},
    {ORR_SCHEMA_0_0_3U, make_0_0_3u}, {ORR_SCHEMA_2023_10, make_2023_10},
};
enum { SAMPLES = sizeof samples / sizeof *samples };

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

/* ---- from one generation to another ---- */

TEST(test_et_legacy__eg_becomes_0_0_3)
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

TEST(test_et_legacy__ids_are_shifted)
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

TEST(test_et_legacy__both_kinds_of_dependency_become_parents_once)
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

TEST(test_et_legacy__values_take_the_nearest_type)
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

TEST(test_et_legacy__a_changed_duration_is_the_run_time)
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

TEST(test_et_legacy__what_cannot_be_said_is_an_error)
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

TEST(test_et_legacy__metadata_that_has_no_place_is_an_error)
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

/* ---- damage ---- */

typedef struct broken {
    orr_schema schema;
    const char *bytes;
    uint64_t byte;
    const char *words;
} broken;

static const broken damages[] = {
    {ORR_SCHEMA_EG, "", 0, "the file is empty"},
    {ORR_SCHEMA_EG, "80", 0, "ends inside a record's length"},
    {ORR_SCHEMA_EG, "05 08 00", 0, "a record of 5 bytes is announced, but only 2 are left"},
    {ORR_SCHEMA_EG, "00", 0, "an empty record"},
    {ORR_SCHEMA_0_0_3, "00 00", 1, "an empty record"},
    {ORR_SCHEMA_EG, "02 12 00", 1, "node 0 of the file: a node without an id"},
    {ORR_SCHEMA_EG, "02 08 00", 1, "a node without a name"},
    {ORR_SCHEMA_0_0_2, "04 08 00 12 00", 1, "a node without a type"},
    {ORR_SCHEMA_EG, "06 08 00 12 00 18 07", 5, "the node type is not one"},
    {ORR_SCHEMA_0_0_3, "06 08 00 12 00 18 08", 5, "the node type is not one"},
    {ORR_SCHEMA_EG, "05 08 00 12 01 ff", 5, "not valid UTF-8"},
    {ORR_SCHEMA_EG, "07 08 00 12 00 a8 01 00", 5, "a field that this generation does not know"},
    {ORR_SCHEMA_0_0_3, "08 08 00 12 00 18 00 62 00", 7,
     "a field that this generation does not know"},
    {ORR_SCHEMA_EG, "06 08 00 12 00 28 03", 5, "the memory type is not one"},
    {ORR_SCHEMA_EG, "06 08 00 12 00 68 05", 5, "the collective is not one"},
    {ORR_SCHEMA_EG, "0a 08 00 12 00 78 80 80 80 80 10", 5, "does not fit in 32 bits"},
    {ORR_SCHEMA_EG, "06 08 00 12 00 3a 00", 5, "a number field does not hold a number"},
    {ORR_SCHEMA_EG, "07 08 00 12 00 72 01 80", 7, "ends inside a number"},
    {ORR_SCHEMA_0_0_2, "08 08 00 12 00 18 00 28 00", 7, "a text field does not hold text"},
    {ORR_SCHEMA_0_0_2, "08 08 00 12 00 18 00 58 00", 7, "an attribute is not a message"},
    {ORR_SCHEMA_0_0_2, "08 08 00 12 00 18 00 5a 00", 9, "an attribute without a name"},
    {ORR_SCHEMA_0_0_2, "0a 08 00 12 00 18 00 5a 02 0a 00", 9, "an attribute without a type"},
    {ORR_SCHEMA_0_0_2, "0c 08 00 12 00 18 00 5a 04 0a 00 10 06", 11,
     "an attribute's type is not one"},
    {ORR_SCHEMA_0_0_2, "0e 08 00 12 00 18 00 5a 06 0a 00 10 01 20 00", 13, "wrong wire type"},
    {ORR_SCHEMA_0_0_2, "0e 08 00 12 00 18 00 5a 06 0a 00 10 01 50 00", 13,
     "an attribute has a field"},
    {ORR_SCHEMA_0_0_2, "10 08 00 12 00 18 00 5a 08 0a 00 10 01 28 00 40 00", 15,
     "values of two types"},
    {ORR_SCHEMA_0_0_2, "0f 08 00 12 00 18 00 5a 07 0a 00 10 02 32 01 ff", 15, "not valid UTF-8"},
    {ORR_SCHEMA_0_0_3U, "0f 08 00 12 00 18 00 5a 07 0a 00 10 09 6a 01 ff", 15, "not valid UTF-8"},
    {ORR_SCHEMA_0_0_2, "17 08 00 12 00 18 00 5a 0f 0a 09 'comm_type' 10 01 28 04", 9,
     "comm_type is not a collective"},
    {ORR_SCHEMA_0_0_3, "04 0a 02 0a 00", 3, "metadata: an attribute without a type"},
    {ORR_SCHEMA_2023_10, "05 0a 03 0a 01 ff", 5, "metadata: a text is not valid UTF-8"},
    {ORR_SCHEMA_2023_10, "05 0a 00 12 01 'v'", 3,
     "metadata: a field that this generation does not know"},
    {ORR_SCHEMA_2023_10, "02 18 0b", 1, "node 0 of the file: the node type"},
};

TEST(test_et_legacy__damage_is_named_with_its_byte)
{
    for (size_t i = 0; i < sizeof damages / sizeof *damages; i++) {
        const broken *d = &damages[i];
        const orr_read_options opt = {.schema = d->schema};
        orr_trace *t;
        orr_buf b = {0};
        add_bytes(&b, d->bytes);
        const orr_code code = orr_trace_parse(span_of(&b), "f.et", &opt, &t, &err);
        if (code != ORR_EINPUT || err.where.byte != d->byte || !strstr(err.message, d->words))
            check_fail(__FILE__, __LINE__, "case %zu: code %d, byte %" PRIu64 ": %s", i, (int)code,
                       err.where.byte, err.message);
        CHECK(t == NULL);
        orr_buf_fini(&b);
    }
}

TEST(test_et_legacy__every_cut_is_an_error_or_a_shorter_trace)
{
    for (size_t s = 0; s < SAMPLES; s++) {
        orr_buf b = {0};
        samples[s].make(&b);
        for (size_t len = 0; len <= b.len; len++) {
            const orr_read_options strict = {.schema = samples[s].schema};
            const orr_read_options feeder = {.schema = samples[s].schema,
                                             .leniency = ORR_AS_FEEDER_V2};
            orr_trace *t;
            const orr_code code =
                orr_trace_parse((orr_span){b.ptr, len}, "f.et", &strict, &t, &err);
            CHECK(code == ORR_OK || (code == ORR_EINPUT && err.where.byte <= len));
            orr_trace_destroy(t);
            CHECK_OK(orr_trace_parse((orr_span){b.ptr, len}, "f.et", &feeder, &t, &err), &err);
            orr_trace_destroy(t);
        }
        orr_buf_fini(&b);
    }
}

static void try_both_ways(orr_span bytes, const orr_read_options *opt, orr_schema out)
{
    orr_trace *t;
    if (orr_trace_parse(bytes, "f.et", opt, &t, &err))
        return;
    const orr_code code = write_as(t, out, 0);
    CHECK(code == ORR_OK || code == ORR_EUSAGE);
    orr_trace_destroy(t);
}

/* Each byte of each sample takes a few other values, and what can still be read is written in some way. */
TEST(test_et_legacy__no_byte_does_harm)
{
    static const uint8_t others[] = {0x00, 0x01, 0x7f, 0x80, 0xff, 0x5a};
    for (size_t s = 0; s < SAMPLES; s++) {
        orr_buf b = {0};
        samples[s].make(&b);
        for (size_t i = 0; i < b.len; i++) {
            const uint8_t was = b.ptr[i];
            for (size_t k = 0; k < sizeof others; k++) {
                const orr_read_options opt = {
                    .schema = k & 1 ? ORR_SCHEMA_AUTO : samples[s].schema,
                    .leniency = k & 2 ? ORR_KEEP_UNKNOWN : ORR_STRICT,
                };
                b.ptr[i] = others[k];
                try_both_ways(span_of(&b), &opt, (orr_schema)(ORR_SCHEMA_CURRENT + (i + k) % 6));
            }
            b.ptr[i] = was;
        }
        orr_buf_fini(&b);
    }
    unlink(scratch());
}

TEST(test_et_legacy__lenient_skips_what_it_does_not_know)
{
    orr_buf b = {0}, expected = {0};
    add_record(&b, "08 00 12 01 'n' 18 04 38 05 5a 09 0a 01 'a' 10 02 30 01 78 01 a8 01 01");
    add_record(&expected, "08 00 12 01 'n' 18 04 5a 07 0a 01 'a' 10 02 30 01");
    orr_trace *t = parse_as(&b, ORR_SCHEMA_0_0_3, ORR_KEEP_UNKNOWN);
    check_converts(t, ORR_SCHEMA_0_0_3, &expected);
    orr_trace_destroy(t);
    orr_buf_fini(&b);
    orr_buf_fini(&expected);
}

/* Numbers without a name stay without one, and go back to where they came from, not elsewhere. */
TEST(test_et_legacy__lenient_keeps_unknown_numbers)
{
    orr_buf b = {0};
    add_record(&b, "08 00 12 00 18 07 28 09 68 09");
    orr_trace *t = parse_as(&b, ORR_SCHEMA_EG, ORR_KEEP_UNKNOWN);
    CHECK(orr_node_type_name(orr_trace_columns(t)->type[0]) == NULL);
    CHECK(orr_collective_name((uint32_t)orr_trace_columns(t)->comm_type[0]) == NULL);
    check_converts(t, ORR_SCHEMA_EG, &b);
    CHECK_CODE(write_as(t, ORR_SCHEMA_0_0_2, 0), ORR_EUSAGE, &err);
    orr_trace_destroy(t);
    orr_buf_fini(&b);
}

TEST(test_et_legacy__metadata_can_be_demanded)
{
    const orr_read_options opt = {.schema = ORR_SCHEMA_0_0_3, .first_is_metadata = true};
    orr_trace *t;
    orr_buf b = {0};
    add_record(&b, "08 00 12 00 18 04");
    CHECK_CODE(orr_trace_parse(span_of(&b), "f.et", &opt, &t, &err), ORR_EINPUT, &err);
    CHECK_SAYS(&err, "f.et: byte 0: the first record is not metadata");
    orr_buf_fini(&b);
}

/* ---- recognising ---- */

TEST(test_et_legacy__nothing_telling_is_current)
{
    orr_buf b = {0};
    CHECK_EQ(recognise(&b), ORR_SCHEMA_CURRENT);
    add_record(&b, "08 01 12 01 'n' 18 04");
    CHECK_EQ(recognise(&b), ORR_SCHEMA_CURRENT);
    CHECK_EQ(orr__legacy_recognise(span_of(&b), "x.eg"), ORR_SCHEMA_EG);
    CHECK_EQ(orr__legacy_recognise(span_of(&b), "x.eg.gz"), ORR_SCHEMA_EG);
    add_record(&b, "08 02 12 01 'n' 18 04 52 05 0a 01 'x' 48 01");
    CHECK_EQ(orr__legacy_recognise(span_of(&b), "x.eg"),
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

/* An extension of today's schema has field 11 too; attributes there are known by what is in them. */
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
        if (orr__legacy_recognise(orr_input_bytes(in), path) != ORR_SCHEMA_CURRENT)
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
    check_shared(path, sizeof path, "golden/chakra");
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
        RUN(test_et_legacy__eg_becomes_0_0_3),
        RUN(test_et_legacy__ids_are_shifted),
        RUN(test_et_legacy__both_kinds_of_dependency_become_parents_once),
        RUN(test_et_legacy__values_take_the_nearest_type),
        RUN(test_et_legacy__a_changed_duration_is_the_run_time),
        RUN(test_et_legacy__what_cannot_be_said_is_an_error),
        RUN(test_et_legacy__metadata_that_has_no_place_is_an_error),
        RUN(test_et_legacy__damage_is_named_with_its_byte),
        RUN(test_et_legacy__every_cut_is_an_error_or_a_shorter_trace),
        RUN(test_et_legacy__no_byte_does_harm),
        RUN(test_et_legacy__lenient_skips_what_it_does_not_know),
        RUN(test_et_legacy__lenient_keeps_unknown_numbers),
        RUN(test_et_legacy__metadata_can_be_demanded),
        RUN(test_et_legacy__nothing_telling_is_current),
        RUN(test_et_legacy__names_tell_the_numbering),
        RUN(test_et_legacy__storage_is_not_an_attribute),
        RUN(test_et_legacy__reference_traces_are_current),
    };
    return RUN_ALL(tests);
}
