/* SPDX-License-Identifier: Apache-2.0 */
/* et_make.h - traces for tests: as drafts, and as raw records of an .et file, sound or not. */
#ifndef ORR_TESTS_ET_MAKE_H
#define ORR_TESTS_ET_MAKE_H

#include "files.h"

#include <orrery/trace.h>

#include "base/formats/wire.h"

static orr_error err;

/* ---- files, byte by byte ---- */

/* A record: its length and these bytes. */
__attribute__((unused)) static void put_record(orr_buf *b, const void *body, size_t len)
{
    orr_put_varint(b, len);
    orr_buf_add(b, body, len);
}
#define PUT_RECORD(b, text) put_record((b), (text), sizeof(text) - 1)

__attribute__((unused)) static void put_meta(orr_buf *b)
{
    PUT_RECORD(b, "\x0a\x05"
                  "1.0.0"); /* version = 1 */
}

/* A node with id, name "n", type COMP and data dependencies. */
__attribute__((unused)) static void put_node(orr_buf *b,
                                             uint64_t id,
                                             const uint64_t *deps,
                                             size_t count)
{
    const size_t begin = orr_put_begin(b);
    if (id)
        orr_put_uint(b, 1, id);
    orr_put_bytes(b, 2, "n", 1);
    orr_put_uint(b, 3, ORR_NODE_COMP);
    if (count) {
        orr_put_tag(b, 5, ORR_WIRE_LEN);
        const size_t list = orr_put_begin(b);
        for (size_t i = 0; i < count; i++)
            orr_put_varint(b, deps[i]);
        orr_put_end(b, list);
    }
    orr_put_end(b, begin);
}
#define PUT_NODE(b, id, ...)                             \
    put_node((b), (id), (const uint64_t[]){__VA_ARGS__}, \
             sizeof((const uint64_t[]){__VA_ARGS__}) / 8)

__attribute__((unused)) static orr_span span_of(const orr_buf *b)
{
    return (orr_span){b->ptr, b->len};
}

/* Read a buffer that has exactly the size of the file, so that a sanitizer sees a step outside. */
__attribute__((unused)) static orr_code parse(const orr_buf *b,
                                              const orr_read_options *opt,
                                              orr_trace **out,
                                              uint8_t **copy)
{
    *copy = malloc(b->len ? b->len : 1);
    CHECK(*copy != NULL);
    if (b->len)
        memcpy(*copy, b->ptr, b->len);
    memset(&err, 0, sizeof err);
    return orr_trace_parse((orr_span){*copy, b->len}, "f.et", opt, out, &err);
}

/* ---- traces, node by node ---- */

__attribute__((unused)) static orr_trace *new_trace(void)
{
    orr_trace *t;
    CHECK_OK(orr_trace_create(&(orr_meta){.version = orr_str_of("1.0.0")}, &t, &err), &err);
    return t;
}

__attribute__((unused)) static void add_node(orr_trace *t,
                                             uint64_t id,
                                             const uint64_t *data,
                                             size_t data_count,
                                             const uint64_t *ctrl,
                                             size_t ctrl_count)
{
    const orr_draft d = {.id = id,
                         .name = orr_str_of("n"),
                         .type = ORR_NODE_COMP,
                         .data_deps = data,
                         .data_count = data_count,
                         .ctrl_deps = ctrl,
                         .ctrl_count = ctrl_count};
    CHECK_OK(orr_trace_append(t, &d, &err), &err);
}
#define ADD_NODE(t, id, ...)                             \
    add_node((t), (id), (const uint64_t[]){__VA_ARGS__}, \
             sizeof((const uint64_t[]){__VA_ARGS__}) / 8, NULL, 0)

/* A node with attributes, and attributes. */
__attribute__((unused)) static void append_attrs(orr_trace *t,
                                                 uint64_t id,
                                                 const orr_attr *attrs,
                                                 size_t count)
{
    const orr_draft d = {.id = id, .type = ORR_NODE_COMM_COLL, .attrs = attrs, .attr_count = count};
    CHECK_OK(orr_trace_append(t, &d, &err), &err);
}

__attribute__((unused)) static orr_attr int_attr(const char *name, orr_value_kind kind, int64_t v)
{
    return (orr_attr){.name = orr_str_of(name), .kind = kind, .value = {.i = v}};
}

__attribute__((unused)) static orr_attr text_attr(const char *name, const char *text)
{
    return (orr_attr){
        .name = orr_str_of(name), .kind = ORR_VALUE_STRING, .value = {.s = orr_str_of(text)}};
}

__attribute__((unused)) static void seal(orr_trace *t)
{
    CHECK_OK(orr_trace_seal(t, &err), &err);
}

__attribute__((unused)) static void check_str(orr_str s, const char *want)
{
    CHECK_EQ_U(s.len, strlen(want));
    CHECK_BYTES(s.ptr, want, s.len);
}

/* A trace of random shape: ids ascending with gaps, parents among the `back` nodes before; in file
 * order. */
__attribute__((unused)) static orr_trace *random_trace(uint64_t seed, uint32_t count, uint32_t back)
{
    orr_trace *t = new_trace();
    uint64_t *ids = malloc((count + 1) * sizeof *ids);
    CHECK(ids != NULL);
    uint64_t id = next_random(&seed) % 100;
    for (uint32_t i = 0; i < count; i++) {
        uint64_t data[4], ctrl[2];
        const uint32_t far = i < back ? i : back;
        const size_t nd = far ? next_random(&seed) % 4 : 0, nc = far ? next_random(&seed) % 2 : 0;
        for (size_t k = 0; k < nd; k++)
            data[k] = ids[i - 1 - next_random(&seed) % far];
        for (size_t k = 0; k < nc; k++)
            ctrl[k] = ids[i - 1 - next_random(&seed) % far];
        ids[i] = id;
        add_node(t, id, data, nd, ctrl, nc);
        id += 1 + (next_random(&seed) % 8 == 0 ? next_random(&seed) % 1000 : 0);
    }
    free(ids);
    seal(t);
    return t;
}

#endif
