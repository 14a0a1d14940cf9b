/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_json.c - any bytes into the JSON reader.
 *
 * The input is read three times: as trees in large pieces, as trees in small ones (their size
 * follows from the input's, so that ends fall everywhere), and by walking.  All must come to the
 * same verdict, every place must lie inside the input, and what was read is written again and must
 * read back as equal text. */
#include "base/formats/json.h"
#include "base/formats/json_impl.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { LARGE = 1 << 18 };

static void require(bool condition)
{
    if (!condition)
        abort();
}

static void write_value(orr_json_writer *w, orr_json_value v);

static void write_container(orr_json_writer *w, orr_json_value v)
{
    orr_json_iter it = orr_json_iterate(v);
    orr_json_value inner;
    orr_str key;
    uint32_t count = 0;
    if (orr_json_type_of(v) == ORR_JSON_ARRAY) {
        orr_json_begin_array(w);
        for (; orr_json_next_value(&it, &inner); count++)
            write_value(w, inner);
        orr_json_end_array(w);
    } else {
        orr_json_begin_object(w);
        for (; orr_json_next_member(&it, &key, &inner); count++) {
            orr_json_key_str(w, key);
            write_value(w, inner);
        }
        orr_json_end_object(w);
    }
    require(count == orr_json_count(v));
}

static void write_value(orr_json_writer *w, orr_json_value v)
{
    orr_str s;
    int64_t i;
    double d;
    switch (orr_json_type_of(v)) {
    case ORR_JSON_ARRAY:
    case ORR_JSON_OBJECT:
        write_container(w, v);
        break;
    case ORR_JSON_STRING:
        require(orr_json_get_str(v, &s, NULL) == ORR_OK);
        orr_json_str(w, s);
        break;
    case ORR_JSON_INT:
        if (orr_json_get_i64(v, &i, NULL) == ORR_OK) {
            orr_json_i64(w, i);
            break;
        }
        /* fall through */
    case ORR_JSON_REAL:
        require(orr_json_get_double(v, &d, NULL) == ORR_OK);
        orr_json_double(w, d);
        break;
    default:
        orr_json_raw_text(w, orr_json_raw(v));
    }
}

/* How one input is read and written. */
typedef struct manner {
    size_t piece;
    orr_json_style style;
} manner;

static orr_code write_documents(orr_span in, const manner *m, orr_buf *out, orr_error *err)
{
    orr_json *j;
    orr_json_value v;
    orr_json_writer w;
    require(orr__json_open_pieces(in, "fuzz", m->piece, &j, err) == ORR_OK);
    orr_json_writer_init(&w, out, &m->style);
    orr_code code;
    while ((code = orr_json_document(j, &v, err)) == ORR_OK) {
        require(orr_json_byte(v) + orr_json_raw(v).len <= in.len);
        write_value(&w, v);
        orr_buf_byte(out, '\n');
    }
    orr_json_close(j);
    return code;
}

static orr_code walk(orr_json *j, orr_error *err)
{
    orr_json_item item;
    orr_code code;
    while ((code = orr_json_next(j, &item, err)) == ORR_OK) {
        if (item.type < ORR_JSON_ARRAY)
            continue;
        if ((code = orr_json_enter(j, err)) || (code = walk(j, err)) != ORR_END)
            return code;
    }
    return code;
}

static orr_code walk_documents(orr_span in, size_t piece, orr_error *err)
{
    orr_json *j;
    require(orr__json_open_pieces(in, "fuzz", piece, &j, err) == ORR_OK);
    const orr_code code = walk(j, err);
    orr_json_close(j);
    return code;
}

static void read_back(const orr_buf *first, const manner *m)
{
    orr_buf again = {0};
    orr_error err;
    const orr_span in = {.ptr = first->ptr, .len = first->len};
    require(write_documents(in, m, &again, &err) == ORR_END);
    require(again.len == first->len);
    require(first->len == 0 || memcmp(first->ptr, again.ptr, first->len) == 0);
    orr_buf_fini(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    orr_buf large = {0}, small = {0};
    orr_error tree_err, walk_err;
    const orr_span in = {.ptr = data, .len = size};
    const orr_json_style style = {.ascii = size & 1, .indent = size & 2, .spaced = size & 4};
    const manner in_large = {.piece = LARGE, .style = style};
    const manner in_small = {.piece = 1 + size % 61, .style = style};
    const orr_code code = write_documents(in, &in_large, &large, &tree_err);
    require(write_documents(in, &in_small, &small, &tree_err) == code);
    require(walk_documents(in, in_small.piece, &walk_err) == code);
    if (code == ORR_END) {
        require(large.len == small.len);
        read_back(&large, &in_small);
    } else {
        require(tree_err.where.byte == walk_err.where.byte && tree_err.where.byte <= size);
    }
    orr_buf_fini(&large);
    orr_buf_fini(&small);
    return 0;
}
