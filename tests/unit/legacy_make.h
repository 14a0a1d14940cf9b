/* SPDX-License-Identifier: Apache-2.0 */
/* legacy_make.h - files of the old generations of .et for tests: written byte by byte, read and
 * written back.
 *
 * They are written in hexadecimal, as protobuf's rules have it (docs/format/et.md): tag = number *
 * 8 + wire type, numbers as varints, a length before each text and message. */
#ifndef ORR_TESTS_LEGACY_MAKE_H
#define ORR_TESTS_LEGACY_MAKE_H

#include "check.h"

#include "trace/trace_impl.h"

#include <unistd.h>

static orr_error err;

/* ---- files in memory ---- */

__attribute__((unused)) static unsigned digit(char c)
{
    const char *const digits = "0123456789abcdef", *at = strchr(digits, c);
    CHECK(c && at);
    return (unsigned)(at - digits);
}

/* Bytes as text: two hexadecimal digits each, and 'texts'. */
__attribute__((unused)) static void add_bytes(orr_buf *b, const char *s)
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
__attribute__((unused)) static void add_record(orr_buf *b, const char *s)
{
    const size_t begin = orr_put_begin(b);
    add_bytes(b, s);
    orr_put_end(b, begin);
}

__attribute__((unused)) static orr_span span_of(const orr_buf *b)
{
    return (orr_span){b->ptr, b->len};
}

__attribute__((unused)) static orr_schema recognise(const orr_buf *b)
{
    return orr__et_recognise(span_of(b), "rank.0.et");
}

__attribute__((unused)) static orr_trace *parse_as(const orr_buf *b,
                                                   orr_schema schema,
                                                   orr_leniency leniency)
{
    orr_trace *t;
    const orr_read_options opt = {.size = sizeof opt, .schema = schema, .leniency = leniency};
    CHECK_OK(orr_trace_parse(span_of(b), "rank.0.et", &opt, &t, &err), &err);
    return t;
}

__attribute__((unused)) static const char *scratch(void)
{
    static char path[64];
    snprintf(path, sizeof path, P_tmpdir "/orr-test-legacy.%d.et", (int)getpid());
    return path;
}

__attribute__((unused)) static orr_code write_as(const orr_trace *t,
                                                 orr_schema schema,
                                                 uint64_t shift)
{
    const orr_write_options opt = {.size = sizeof opt, .schema = schema, .id_shift = shift};
    return orr_trace_write(t, scratch(), &opt, &err);
}

/* What stands in the file that was written last. */
__attribute__((unused)) static void check_written(const void *bytes, size_t len)
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

__attribute__((unused)) static void check_converts(const orr_trace *t,
                                                   orr_schema schema,
                                                   const orr_buf *expected)
{
    CHECK_OK(write_as(t, schema, 0), &err);
    check_written(expected->ptr, expected->len);
}

/* Recognised, read and written as the same bytes; also by way of the current schema. */
__attribute__((unused)) static orr_trace *check_round_trip(const orr_buf *b, orr_schema schema)
{
    orr_trace *by_current;
    const orr_read_options current = {.size = sizeof current, .schema = ORR_SCHEMA_CURRENT};
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

__attribute__((unused)) static orr_attr attr_of(const orr_trace *t,
                                                uint32_t index,
                                                const char *name)
{
    orr_node node;
    orr_attr a = {.kind = ORR_VALUE_NONE};
    orr_trace_node(t, index, &node);
    if (!orr_node_attr(&node, name, &a))
        check_fail(__FILE__, __LINE__, "node %u has no attribute %s", index, name);
    return a;
}

__attribute__((unused)) static bool has_attr(const orr_trace *t, uint32_t index, const char *name)
{
    orr_node node;
    orr_attr a;
    orr_trace_node(t, index, &node);
    return orr_node_attr(&node, name, &a);
}

__attribute__((unused)) static void check_number(const orr_trace *t,
                                                 const char *name,
                                                 orr_value_kind kind,
                                                 uint64_t value)
{
    const orr_attr a = attr_of(t, 0, name);
    CHECK(!a.is_list);
    CHECK_EQ(a.kind, kind);
    CHECK_EQ_U(a.value.u, value);
}

__attribute__((unused)) static void check_items(const orr_attr *a,
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

__attribute__((unused)) static bool is_str(orr_str s, const char *text, size_t len)
{
    return s.len == len && memcmp(s.ptr, text, len) == 0;
}

/* ---- samples, used by several tests ---- */

__attribute__((unused)) static void make_eg(orr_buf *b)
{
    add_record(b, "08 00 12 09 'COMP_NODE' 18 03 38 05");
    add_record(b, "08 01 12 09 'COMP_NODE' 18 03 20 00 38 05");
}

/* Every field, none of them zero but tensor_size. */
__attribute__((unused)) static void make_eg_full(orr_buf *b)
{
    add_record(b, "08 07 12 01 'n' 18 06 20 01 20 02 28 01 30 00 38 09 40 02"
                  " 48 ff ff ff ff ff ff ff ff ff 01" /* input_tensor_size: 2^64 - 1 */
                  " 50 01 58 0b 60 0c 68 02 70 01 70 00 70 01 78 0f"
                  " 80 01 10 88 01 11 90 01 ff ff ff ff 0f" /* comm_size: 2^32 - 1 */
                  " 98 01 00 a0 01 14");
}

__attribute__((unused)) static void make_0_0_2(orr_buf *b)
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

__attribute__((unused)) static void make_0_0_3(orr_buf *b)
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

__attribute__((unused)) static void make_0_0_3u(orr_buf *b)
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

__attribute__((unused)) static void make_2023_10(orr_buf *b)
{
    add_record(b, "0a 07 0a 03 'pid' 48 05");
    add_record(b, "12 01 'n' 18 04 38 05");
    add_record(b, "08 01 12 01 'm' 18 07 22 01 00 2a 01 00 52 06 0a 01 'x' d8 01 01");
}

typedef struct sample {
    orr_schema schema;
    void (*make)(orr_buf *);
} sample;

__attribute__((unused)) static const sample samples[] = {
    {ORR_SCHEMA_EG, make_eg},         {ORR_SCHEMA_EG, make_eg_full},
    {ORR_SCHEMA_0_0_2, make_0_0_2},   {ORR_SCHEMA_0_0_3, make_0_0_3},
    {ORR_SCHEMA_0_0_3U, make_0_0_3u}, {ORR_SCHEMA_2023_10, make_2023_10},
};
enum { SAMPLES = sizeof samples / sizeof *samples };

#endif
