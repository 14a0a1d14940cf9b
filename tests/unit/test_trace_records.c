/* SPDX-License-Identifier: Apache-2.0 */
/* test_trace_records.c - the records of a trace: what they say, copied with changes, written
 * again. */
#include "et_make.h"

#include "trace/trace_impl.h"

#define COUNT(a) (sizeof(a) / sizeof *(a))

static orr_attr list_of(const char *name, orr_value_kind kind, const orr_value *items, size_t n)
{
    return (orr_attr){
        .name = orr_str_of(name), .kind = kind, .is_list = true, .items = items, .item_count = n};
}

/* ---- reading values back ---- */

/* The same value written and read through every member. */
TEST(test_trace_records__every_member_reads_back_what_was_written)
{
    static const struct {
        orr_value_kind kind;
        int64_t low, high;
    } numbers[] = {
        {ORR_VALUE_INT32, INT32_MIN, INT32_MAX},
        {ORR_VALUE_INT64, INT64_MIN, INT64_MAX},
        {ORR_VALUE_UINT32, 0, UINT32_MAX},
        {ORR_VALUE_UINT64, 0, -1},
        {ORR_VALUE_SINT32, INT32_MIN, INT32_MAX},
        {ORR_VALUE_SINT64, INT64_MIN, INT64_MAX},
        {ORR_VALUE_FIXED32, 0, UINT32_MAX},
        {ORR_VALUE_FIXED64, 0, -1},
        {ORR_VALUE_SFIXED32, INT32_MIN, INT32_MAX},
        {ORR_VALUE_SFIXED64, INT64_MIN, INT64_MAX},
        {ORR_VALUE_BOOL, 0, 1},
    };
    orr_trace *t = new_trace();
    for (size_t k = 0; k < COUNT(numbers); k++) {
        const orr_value items[] = {{.i = numbers[k].low}, {.i = numbers[k].high}, {.i = 1}};
        const orr_attr attrs[] = {
            {.name = orr_str_of("low"),
             .doc = orr_str_of("smallest"),
             .kind = numbers[k].kind,
             .value = items[0]},
            {.name = orr_str_of("high"), .kind = numbers[k].kind, .value = items[1]},
            list_of("list", numbers[k].kind, items, 3),
            {.name = orr_str_of("none"), .kind = numbers[k].kind, .is_list = true},
        };
        append_attrs(t, k + 1, attrs, 4);
    }
    seal(t);
    for (uint32_t k = 0; k < COUNT(numbers); k++) {
        orr_node node;
        orr_attr a;
        orr_value v;
        orr_trace_node(t, k, &node);
        orr_attrs it = orr_node_attrs(&node);
        CHECK(orr_attrs_next(&it, &a) && a.kind == numbers[k].kind && a.value.i == numbers[k].low &&
              !a.is_list);
        check_str(a.doc, "smallest");
        CHECK(orr_attrs_next(&it, &a) && a.value.i == numbers[k].high);
        CHECK(orr_attrs_next(&it, &a) && a.is_list && a.kind == numbers[k].kind);
        orr_list items = orr_attr_items(&a);
        CHECK(orr_list_next(&items, &v) && v.i == numbers[k].low);
        CHECK(orr_list_next(&items, &v) && v.i == numbers[k].high);
        CHECK(orr_list_next(&items, &v) && v.i == 1);
        CHECK(!orr_list_next(&items, &v));
        CHECK(orr_attrs_next(&it, &a) && a.is_list);
        items = orr_attr_items(&a);
        CHECK(!orr_list_next(&items, &v));
        CHECK(!orr_attrs_next(&it, &a));
        CHECK(!orr_attrs_next(&it, &a));
    }
    orr_trace_destroy(t);
}

TEST(test_trace_records__floats_and_texts_read_back)
{
    const orr_value doubles[] = {{.d = 0.1}, {.d = -1e300}, {.d = 0}},
                    floats[] = {{.d = 0.5}, {.d = -16777216}};
    const orr_value texts[] = {{.s = {"", 0}}, {.s = {"\xc3\xa9", 2}}, {.s = {"x\0y", 3}}};
    const orr_value bytes[] = {{.s = {"\xff\0", 2}}};
    const orr_attr attrs[] = {
        {.name = orr_str_of("d"), .kind = ORR_VALUE_DOUBLE, .value = doubles[0]},
        {.name = orr_str_of("f"), .kind = ORR_VALUE_FLOAT, .value = floats[0]},
        {.name = orr_str_of("s"), .kind = ORR_VALUE_STRING, .value = texts[1]},
        {.name = orr_str_of("b"), .kind = ORR_VALUE_BYTES, .value = bytes[0]},
        list_of("ds", ORR_VALUE_DOUBLE, doubles, 3),
        list_of("fs", ORR_VALUE_FLOAT, floats, 2),
        list_of("ss", ORR_VALUE_STRING, texts, 3),
        list_of("bs", ORR_VALUE_BYTES, bytes, 1),
    };
    orr_trace *t = new_trace();
    append_attrs(t, 1, attrs, COUNT(attrs));
    seal(t);
    orr_node node;
    orr_attr a;
    orr_value v;
    int64_t ignored;
    orr_trace_node(t, 0, &node);
    CHECK(orr_node_attr(&node, "d", &a) && a.value.d == 0.1);
    CHECK(!orr_attr_int(&a, &ignored));
    CHECK(orr_node_attr(&node, "f", &a) && a.value.d == 0.5);
    CHECK(orr_node_attr(&node, "s", &a));
    check_str(a.value.s, "\xc3\xa9");
    CHECK(orr_node_attr(&node, "b", &a) && a.value.s.len == 2);
    CHECK(orr_node_attr(&node, "ds", &a));
    orr_list it = orr_attr_items(&a);
    for (size_t i = 0; i < 3; i++)
        CHECK(orr_list_next(&it, &v) && v.d == doubles[i].d);
    CHECK(!orr_list_next(&it, &v));
    CHECK(orr_node_attr(&node, "fs", &a));
    it = orr_attr_items(&a);
    CHECK(orr_list_next(&it, &v) && v.d == 0.5);
    CHECK(orr_list_next(&it, &v) && v.d == -16777216);
    CHECK(orr_node_attr(&node, "ss", &a));
    it = orr_attr_items(&a);
    for (size_t i = 0; i < 3; i++)
        CHECK(orr_list_next(&it, &v) && v.s.len == texts[i].s.len &&
              memcmp(v.s.ptr, texts[i].s.ptr, v.s.len) == 0);
    CHECK(!orr_list_next(&it, &v));
    CHECK(orr_node_attr(&node, "bs", &a));
    it = orr_attr_items(&a);
    CHECK(orr_list_next(&it, &v) && v.s.len == 2 && !orr_list_next(&it, &v));
    orr_trace_destroy(t);
}

TEST(test_trace_records__a_node_is_taken_apart)
{
    const orr_io in = {.values = {"[1]", 3}, .shapes = {"[[2]]", 5}, .types = {"[\"T\"]", 5}};
    orr_trace *t = new_trace();
    orr_node node;
    CHECK_OK(orr_trace_append(t,
                              &(orr_draft){.id = 3,
                                           .name = {"op", 2},
                                           .type = 2,
                                           .inputs = &in,
                                           .start_us = 1,
                                           .duration_us = 2},
                              &err),
             &err);
    CHECK_OK(orr_trace_append(t, &(orr_draft){.id = 4}, &err), &err);
    seal(t);
    orr_trace_node(t, 0, &node);
    CHECK(node.id == 3 && node.type == 2 && node.start_us == 1 && node.duration_us == 2);
    check_str(node.name, "op");
    check_str(orr_trace_name(t, 0), "op");
    check_str(orr_trace_name(t, 1), "");
    CHECK(node.has_inputs && !node.has_outputs);
    check_str(node.inputs.values, "[1]");
    check_str(node.inputs.shapes, "[[2]]");
    check_str(node.inputs.types, "[\"T\"]");
    check_str(node.outputs.values, "");
    orr_trace_node(t, 1, &node);
    check_str(node.name, "");
    CHECK(!node.has_inputs);
    orr_trace_destroy(t);
}

TEST(test_trace_records__metadata_reads_back)
{
    orr_trace *t;
    orr_attr a;
    const orr_attr attrs[] = {text_attr("schema", "1.1"), int_attr("pid", ORR_VALUE_UINT64, 77)};
    CHECK_OK(orr_trace_create(&(orr_meta){.version = {"0.0.4", 5}, .attrs = attrs, .attr_count = 2},
                              &t, &err),
             &err);
    ADD_NODE(t, 1);
    seal(t);
    CHECK(orr_trace_has_metadata(t));
    check_str(orr_trace_version(t), "0.0.4");
    orr_attrs it = orr_trace_attrs(t);
    CHECK(orr_attrs_next(&it, &a));
    check_str(a.name, "schema");
    CHECK(orr_attrs_next(&it, &a) && a.value.u == 77);
    CHECK(!orr_attrs_next(&it, &a));
    orr_trace_destroy(t);
    CHECK_OK(orr_trace_create(NULL, &t, &err), &err);
    ADD_NODE(t, 1);
    seal(t);
    CHECK(!orr_trace_has_metadata(t));
    check_str(orr_trace_version(t), "");
    it = orr_trace_attrs(t);
    CHECK(!orr_attrs_next(&it, &a));
    CHECK_OK(orr_trace_write(t, "f.et", NULL, &err), &err);
    orr_trace_destroy(t);
    CHECK_OK(orr_trace_read("f.et", NULL, &t, &err), &err);
    CHECK(!orr_trace_has_metadata(t) && orr_trace_columns(t)->count == 1);
    orr_trace_destroy(t);
}

TEST(test_trace_records__places_are_those_of_the_file)
{
    orr_trace *t;
    uint8_t *copy;
    orr_buf b = {0};
    put_meta(&b);    /* 8 bytes */
    PUT_NODE(&b, 1); /* a length, 2 + 3 + 2 bytes */
    PUT_NODE(&b, 2);
    CHECK_OK(parse(&b, NULL, &t, &copy), &err);
    CHECK_TEXT(orr_trace_path(t), "f.et");
    CHECK_EQ_U(orr_trace_where(t, 0).byte, 8);
    CHECK_EQ_U(orr_trace_where(t, 1).byte, 16);
    CHECK_TEXT(orr_trace_where(t, 1).path, "f.et");
    orr_trace_destroy(t);
    free(copy);
    orr_buf_fini(&b);
    t = new_trace();
    ADD_NODE(t, 1);
    seal(t);
    CHECK_EQ_U(orr_trace_where(t, 0).byte, ORR_NO_BYTE);
    orr_trace_destroy(t);
}

/* ---- copying ---- */

/* A record with all there is, unknown fields too: field 11 (a message), 12 (a number), and one in
 * an attribute. */
static const char full_record[] = "\x08\x05\x12\x01z\x18\x07\x22\x01\x01\x2a\x02\x02\x03\x38\x09"
                                  "\x52\x0b\x0a\x04"
                                  "keep"
                                  "\x48\x01\x98\x06\x02" /* field 99 of the attribute */
                                  "\x52\x0d\x0a\x09"
                                  "comm_size"
                                  "\x48\x07"
                                  "\x52\x0d\x0a\x09"
                                  "comm_size"
                                  "\x48\x08"
                                  "\x5a\x02\x08\x01\x60\x05";

static orr_trace *full_trace(uint8_t **copy)
{
    orr_trace *t;
    orr_buf b = {0};
    put_meta(&b);
    PUT_RECORD(&b, full_record);
    CHECK_OK(parse(&b, NULL, &t, copy), &err);
    orr_buf_fini(&b);
    return t;
}

static void check_copy(const orr_edit *e, const char *want, size_t len)
{
    uint8_t *bytes;
    orr_node node;
    orr_trace *from = full_trace(&bytes), *to = new_trace();
    orr_trace_node(from, 0, &node);
    CHECK_OK(orr_trace_copy(to, &node, e, &err), &err);
    seal(to);
    orr_trace_node(to, 0, &node);
    CHECK_EQ_U(node.body.len, len);
    CHECK_BYTES(node.body.ptr, want, len);
    orr_trace_destroy(from);
    orr_trace_destroy(to);
    free(bytes);
}
#define CHECK_COPY(edit, want) check_copy((edit), (want), sizeof(want) - 1)

TEST(test_trace_records__a_copy_is_the_same_bytes)
{
    CHECK_COPY(NULL, full_record);
    CHECK_COPY(&(orr_edit){.sets_id = false}, full_record);
}

TEST(test_trace_records__a_copy_changes_what_is_asked_for_and_nothing_else)
{
    const uint64_t deps[] = {300};
    CHECK_COPY((&(orr_edit){.sets_id = true,
                            .id = 6,
                            .sets_data_deps = true,
                            .data_deps = deps,
                            .data_count = 1,
                            .sets_ctrl_deps = true}),
               "\x08\x06\x12\x01z\x18\x07\x2a\x02\xac\x02\x38\x09"
               "\x52\x0b\x0a\x04"
               "keep"
               "\x48\x01\x98\x06\x02"
               "\x52\x0d\x0a\x09"
               "comm_size"
               "\x48\x07"
               "\x52\x0d\x0a\x09"
               "comm_size"
               "\x48\x08"
               "\x5a\x02\x08\x01\x60\x05");
    CHECK_COPY((&(orr_edit){.sets_id = true, .id = 0}), /* an id of 0 is not written */
               "\x12\x01z\x18\x07\x22\x01\x01\x2a\x02\x02\x03\x38\x09"
               "\x52\x0b\x0a\x04"
               "keep"
               "\x48\x01\x98\x06\x02"
               "\x52\x0d\x0a\x09"
               "comm_size"
               "\x48\x07"
               "\x52\x0d\x0a\x09"
               "comm_size"
               "\x48\x08"
               "\x5a\x02\x08\x01\x60\x05");
}

TEST(test_trace_records__a_copy_replaces_adds_and_removes_attributes)
{
    const orr_attr replace = int_attr("comm_size", ORR_VALUE_INT64, 9);
    const orr_attr add = {.name = orr_str_of("new"), .kind = ORR_VALUE_BOOL, .value = {.u = 1}};
    const orr_attr both[] = {replace, {.name = orr_str_of("keep")}}; /* kind NONE removes */
    CHECK_COPY((&(orr_edit){.attrs = &replace, .attr_count = 1}),
               "\x08\x05\x12\x01z\x18\x07\x22\x01\x01\x2a\x02\x02\x03\x38\x09"
               "\x52\x0b\x0a\x04"
               "keep"
               "\x48\x01\x98\x06\x02"
               "\x52\x0d\x0a\x09"
               "comm_size"
               "\x48\x09"
               "\x5a\x02\x08\x01\x60\x05");
    CHECK_COPY((&(orr_edit){.attrs = both, .attr_count = 2}),
               "\x08\x05\x12\x01z\x18\x07\x22\x01\x01\x2a\x02\x02\x03\x38\x09"
               "\x52\x0d\x0a\x09"
               "comm_size"
               "\x48\x09"
               "\x5a\x02\x08\x01\x60\x05");
    CHECK_COPY((&(orr_edit){.attrs = &add, .attr_count = 1}),
               "\x08\x05\x12\x01z\x18\x07\x22\x01\x01\x2a\x02\x02\x03\x38\x09"
               "\x52\x0b\x0a\x04"
               "keep"
               "\x48\x01\x98\x06\x02"
               "\x52\x0d\x0a\x09"
               "comm_size"
               "\x48\x07"
               "\x52\x0d\x0a\x09"
               "comm_size"
               "\x48\x08"
               "\x52\x08\x0a\x03"
               "new"
               "\xd8\x01\x01"
               "\x5a\x02\x08\x01\x60\x05");
}

TEST(test_trace_records__a_copy_may_leave_nothing_only_with_an_error)
{
    orr_node node;
    orr_trace *from = new_trace(), *to = new_trace();
    CHECK_OK(orr_trace_append(from, &(orr_draft){.id = 1}, &err), &err);
    seal(from);
    orr_trace_node(from, 0, &node);
    CHECK_CODE(orr_trace_copy(to, &node, &(orr_edit){.sets_id = true}, &err), ORR_EUSAGE, &err);
    CHECK_OK(orr_trace_copy(to, &node, NULL, &err), &err);
    seal(to);
    CHECK_CODE(orr_trace_copy(to, &node, NULL, &err), ORR_EUSAGE, &err);
    orr_trace_destroy(from);
    orr_trace_destroy(to);
}

TEST(test_trace_records__what_was_read_leniently_can_be_copied)
{
    orr_trace *from, *to = new_trace();
    uint8_t *copy;
    orr_node node;
    orr_buf b = {0};
    put_meta(&b);
    PUT_RECORD(&b, "\x08\x01\x18\x63"); /* type 99 */
    CHECK_OK(
        parse(&b,
              &(orr_read_options){.size = sizeof(orr_read_options), .leniency = ORR_KEEP_UNKNOWN},
              &from, &copy),
        &err);
    orr_trace_node(from, 0, &node);
    CHECK_EQ_U(node.type, 99);
    CHECK_OK(orr_trace_copy(to, &node, NULL, &err), &err);
    CHECK_CODE(orr_trace_append(to, &(orr_draft){.id = 2, .type = 99}, &err), ORR_EINPUT, &err);
    seal(to);
    CHECK_EQ_U(orr_trace_columns(to)->type[0], 99);
    orr_trace_destroy(from);
    orr_trace_destroy(to);
    free(copy);
    orr_buf_fini(&b);
}

TEST(test_trace_records__a_draft_carries_unknown_fields_along)
{
    orr_trace *t = new_trace();
    orr_node node;
    CHECK_OK(orr_trace_append(t, &(orr_draft){.id = 1, .unknown = {(const uint8_t *)"\x60\x05", 2}},
                              &err),
             &err);
    CHECK_CODE(
        orr_trace_append(t, &(orr_draft){.id = 2, .unknown = {(const uint8_t *)"\x60", 1}}, &err),
        ORR_EINPUT, &err);
    seal(t);
    orr_trace_node(t, 0, &node);
    CHECK_EQ_U(node.body.len, 4);
    CHECK_BYTES(node.body.ptr, "\x08\x01\x60\x05", 4);
    orr_trace_destroy(t);
}

/* ---- writing ---- */

TEST(test_trace_records__writing_gives_back_the_bytes_that_were_read)
{
    static const char *const names[] = {"f.et", "f.et.gz", "f.et.zst"};
    orr_trace *t;
    uint8_t *copy;
    orr_buf b = {0};
    put_meta(&b);
    PUT_RECORD(&b, full_record);
    PUT_RECORD(&b, "\x18\x04\x08\x81\x00"); /* fields out of order, an overlong number */
    orr_buf_add(&b, "\x82\x00\x08\x02", 4); /* an overlong length */
    CHECK_OK(parse(&b, NULL, &t, &copy), &err);
    for (unsigned k = 0; k < 3; k++) {
        orr_trace *again;
        CHECK_OK(orr_trace_write(t, names[k], NULL, &err), &err);
        CHECK_OK(orr_trace_read(names[k], NULL, &again, &err), &err);
        CHECK_OK(orr_trace_write(again, "again.et", NULL, &err), &err);
        check_file("again.et", b.ptr, b.len);
        orr_trace_destroy(again);
    }
    orr_trace_destroy(t);
    free(copy);
    orr_buf_fini(&b);
}

TEST(test_trace_records__large_files_are_written_and_read_back)
{
    orr_trace *t = random_trace(3, 60000, 100), *again; /* some 900 KB: mapped when read */
    CHECK_OK(orr_trace_write(t, "f.et", NULL, &err), &err);
    CHECK_OK(orr_trace_read("f.et", NULL, &again, &err), &err);
    CHECK_OK(orr_trace_write(again, "g.et", NULL, &err), &err);
    orr_buf f = read_file("f.et");
    check_file("g.et", f.ptr, f.len);
    const orr_columns *a = orr_trace_columns(t), *b = orr_trace_columns(again);
    CHECK_EQ_U(a->count, b->count);
    CHECK_BYTES(a->id, b->id, a->count * sizeof *a->id);
    CHECK_BYTES(a->data_first, b->data_first, (a->count + 1) * sizeof *a->data_first);
    CHECK_BYTES(a->data_dep, b->data_dep, a->data_first[a->count] * sizeof *a->data_dep);
    CHECK_BYTES(a->ctrl_dep, b->ctrl_dep, a->ctrl_first[a->count] * sizeof *a->ctrl_dep);
    /* Written over itself while it is mapped. */
    CHECK_OK(orr_trace_write(again, "f.et", NULL, &err), &err);
    check_file("f.et", f.ptr, f.len);
    orr_buf_fini(&f);
    orr_trace_destroy(t);
    orr_trace_destroy(again);
}

static void check_shift(
    const char *body, size_t len, uint64_t shift, const char *want, size_t want_len)
{
    orr_trace *t;
    uint8_t *copy;
    orr_buf b = {0}, w = {0};
    put_meta(&b);
    put_record(&b, body, len);
    put_meta(&w);
    put_record(&w, want, want_len);
    CHECK_OK(parse(&b, NULL, &t, &copy), &err);
    CHECK_OK(orr_trace_write(
                 t, "f.et",
                 &(orr_write_options){.size = sizeof(orr_write_options), .id_shift = shift}, &err),
             &err);
    check_file("f.et", w.ptr, w.len);
    orr_trace_destroy(t);
    free(copy);
    orr_buf_fini(&b);
    orr_buf_fini(&w);
}
#define CHECK_SHIFT(body, shift, want) \
    check_shift((body), sizeof(body) - 1, (shift), (want), sizeof(want) - 1)

TEST(test_trace_records__a_shift_moves_ids_and_dependencies)
{
    CHECK_SHIFT("\x08\x05\x18\x04\x22\x01\x01\x2a\x02\x02\x03\x60\x05", 100,
                "\x08\x69\x18\x04\x22\x01\x65\x2a\x02\x66\x67\x60\x05");
    CHECK_SHIFT("\x18\x04", 7, "\x08\x07\x18\x04");            /* id 0 was not written */
    CHECK_SHIFT("\x08\x07\x18\x04", (uint64_t)-7, "\x18\x04"); /* and is not now */
    CHECK_SHIFT("\x08\x7f\x2a\x01\x7f", 1,
                "\x08\x80\x01\x2a\x02\x80\x01"); /* numbers grow longer */
    CHECK_SHIFT("\x08\x05\x28\x02\x20\x03", 1, "\x08\x06\x28\x03\x20\x04"); /* not packed */
    CHECK_SHIFT("\x08\x05\x2a\x00", 1, "\x08\x06\x2a\x00"); /* an empty list stays */
}

TEST(test_trace_records__a_shift_finds_the_id_wherever_it_stands)
{
    static const struct {
        const char *body;
        size_t len;
        uint64_t id;
    } cases[] = {{"\x18\x04\x08\x05", 4, 5},
                 {"\x08\x05\x08\x09", 4, 9},
                 {"\x18\x04\x08\x00", 4, 0},
                 {"\x08\x00\x18\x04", 4, 0}};
    const uint64_t shifts[] = {1, 100, (uint64_t)-5, (uint64_t)-9, (uint64_t)-1};
    for (size_t i = 0; i < COUNT(cases); i++)
        for (size_t k = 0; k < COUNT(shifts); k++) {
            orr_trace *t;
            uint8_t *copy;
            orr_buf b = {0};
            put_meta(&b);
            put_record(&b, cases[i].body, cases[i].len);
            CHECK_OK(parse(&b, NULL, &t, &copy), &err);
            CHECK_EQ_U(orr_trace_columns(t)->id[0], cases[i].id);
            CHECK_OK(orr_trace_write(t, "f.et",
                                     &(orr_write_options){.size = sizeof(orr_write_options),
                                                          .id_shift = shifts[k]},
                                     &err),
                     &err);
            orr_trace_destroy(t);
            free(copy);
            orr_buf_fini(&b);
            CHECK_OK(orr_trace_read("f.et",
                                    &(orr_read_options){.size = sizeof(orr_read_options),
                                                        .schema = ORR_SCHEMA_CURRENT},
                                    &t, &err),
                     &err);
            CHECK_EQ_U(orr_trace_columns(t)->id[0], cases[i].id + shifts[k]);
            orr_trace_destroy(t);
        }
}

/* ---- attributes as bytes ---- */

/* Fields of every wire type before the first attribute, short and long. */
TEST(test_trace_records__attributes_begin_at_the_first_whatever_precedes_it)
{
    static const char attr[] = "\x52\x09\x0a\x05"
                               "other"
                               "\x48\x01"
                               "\x08\x07"; /* an id among them */
    static char name[300];
    memset(name, 'n', sizeof name);
    for (unsigned k = 0; k < 8; k++) {
        orr_buf body = {0}, b = {0};
        uint8_t *copy;
        orr_trace *t;
        orr_put_uint(&body, NODE_ID, k == 1 ? UINT64_MAX : 5);
        orr_put_bytes(&body, NODE_NAME, name, k == 2 ? sizeof name : 1);
        orr_put_uint(&body, NODE_TYPE, ORR_NODE_COMP);
        if (k == 3)
            orr_buf_add(&body, "\x63\x52\x00\x64", 4); /* a group, which holds a field 10 */
        if (k == 4)
            orr_buf_add(&body, "\x59RRRRRRRR\x5dRRRR", 14); /* of fixed sizes */
        if (k == 5)
            orr_put_bytes(&body, 99, "R", 1);
        const size_t before = body.len;
        if (k != 6)
            orr_buf_add(&body, attr, sizeof attr - 1);
        if (k == 7)
            orr_buf_add(&body, attr, sizeof attr - 1);
        put_meta(&b);
        put_record(&b, body.ptr, body.len);
        CHECK_OK(parse(&b, NULL, &t, &copy), &err);
        const orr_span bytes = orr__trace_attr_bytes(t, 0);
        CHECK_EQ_U(bytes.len, body.len - before);
        if (bytes.len)
            CHECK_BYTES(bytes.ptr, body.ptr + before, bytes.len);
        orr_trace_destroy(t);
        free(copy);
        orr_buf_fini(&body);
        orr_buf_fini(&b);
    }
}

int main(void)
{
    const CMUnitTest tests[] = {
        RUN(test_trace_records__every_member_reads_back_what_was_written),
        RUN(test_trace_records__floats_and_texts_read_back),
        RUN(test_trace_records__a_node_is_taken_apart),
        RUN(test_trace_records__metadata_reads_back),
        RUN(test_trace_records__places_are_those_of_the_file),
        RUN(test_trace_records__a_copy_is_the_same_bytes),
        RUN(test_trace_records__a_copy_changes_what_is_asked_for_and_nothing_else),
        RUN(test_trace_records__a_copy_replaces_adds_and_removes_attributes),
        RUN(test_trace_records__a_copy_may_leave_nothing_only_with_an_error),
        RUN(test_trace_records__what_was_read_leniently_can_be_copied),
        RUN(test_trace_records__a_draft_carries_unknown_fields_along),
        RUN(test_trace_records__writing_gives_back_the_bytes_that_were_read),
        RUN(test_trace_records__large_files_are_written_and_read_back),
        RUN(test_trace_records__a_shift_moves_ids_and_dependencies),
        RUN(test_trace_records__a_shift_finds_the_id_wherever_it_stands),
        RUN(test_trace_records__attributes_begin_at_the_first_whatever_precedes_it),
    };
    return RUN_ALL(tests);
}
