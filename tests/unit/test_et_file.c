/* SPDX-License-Identifier: Apache-2.0 */
#include "et_make.h"

static const orr_read_options current = {.size = sizeof current, .schema = ORR_SCHEMA_CURRENT};
static const orr_read_options lenient = {
    .size = sizeof lenient, .schema = ORR_SCHEMA_CURRENT, .leniency = ORR_KEEP_UNKNOWN};
static const orr_read_options jsonizer = {
    .size = sizeof jsonizer, .schema = ORR_SCHEMA_CURRENT, .leniency = ORR_AS_JSONIZER};
static const orr_read_options feeder = {
    .size = sizeof feeder, .schema = ORR_SCHEMA_CURRENT, .leniency = ORR_AS_FEEDER_V2};

static void check_refused(const orr_buf *b,
                          const orr_read_options *opt,
                          uint64_t byte,
                          const char *words)
{
    orr_trace *t = (orr_trace *)&err; /* must become NULL */
    uint8_t *copy;
    CHECK_CODE(parse(b, opt, &t, &copy), ORR_EINPUT, &err);
    CHECK(t == NULL);
    CHECK_TEXT(err.where.path, "f.et");
    CHECK_EQ_U(err.where.byte, byte);
    CHECK_SAYS(&err, words);
    free(copy);
}

static void check_count(const orr_buf *b, const orr_read_options *opt, uint32_t count)
{
    orr_trace *t;
    uint8_t *copy;
    CHECK_OK(parse(b, opt, &t, &copy), &err);
    CHECK_EQ_U(orr_trace_columns(t)->count, count);
    orr_trace_destroy(t);
    free(copy);
}

/* Metadata (8 bytes) and one record with this body, which therefore starts at byte 9. */
static orr_buf one_record(const char *body, size_t len)
{
    orr_buf b = {0};
    put_meta(&b);
    put_record(&b, body, len);
    return b;
}

static void refuse_record(const char *body, size_t len, uint64_t byte, const char *words)
{
    orr_buf b = one_record(body, len);
    check_refused(&b, &current, 9 + byte, words);
    orr_buf_fini(&b);
}
#define REFUSE(body, byte, words) refuse_record((body), sizeof(body) - 1, (byte), (words))

static void accept_record(const char *body, size_t len, const orr_read_options *opt)
{
    orr_buf b = one_record(body, len);
    check_count(&b, opt, 1);
    orr_buf_fini(&b);
}
#define ACCEPT(body, opt) accept_record((body), sizeof(body) - 1, (opt))

/* ---- framing ---- */

/* Three nodes; where their records begin. */
static orr_buf three_nodes(uint64_t starts[5])
{
    orr_buf b = {0};
    starts[0] = 0;
    put_meta(&b);
    starts[1] = b.len;
    PUT_NODE(&b, 1);
    starts[2] = b.len;
    PUT_NODE(&b, 300, 1);
    starts[3] = b.len;
    PUT_NODE(&b, 301, 1, 300);
    starts[4] = b.len;
    return b;
}

TEST(test_et_file__a_file_cut_anywhere_is_refused_at_its_last_record)
{
    uint64_t starts[5];
    orr_buf b = three_nodes(starts);
    const size_t whole = b.len;
    unsigned record = 0;
    for (b.len = 1; b.len <= whole; b.len++) {
        if (b.len == starts[record + 1])
            check_count(&b, &current, record++); /* a whole number of records */
        else
            check_refused(&b, &current, starts[record], "cut short or damaged");
    }
    CHECK_EQ_U(record, 4);
    b.len = whole;
    orr_buf_fini(&b);
}

TEST(test_et_file__a_file_cut_inside_a_long_length_is_refused)
{
    orr_buf b = {0};
    put_meta(&b);
    orr_buf_add(&b, "\xff", 1);
    check_refused(&b, &current, 8, "ends inside a record's length");
    orr_buf_fini(&b);
}

TEST(test_et_file__an_empty_file_is_refused)
{
    orr_buf b = {0};
    check_refused(&b, &current, 0, "the file is empty");
    check_refused(&b, NULL, 0, "the file is empty");
    check_refused(&b, &lenient, 0, "the file is empty");
    orr_trace *t;
    CHECK_CODE(orr_trace_parse((orr_span){NULL, 0}, "f.et", &current, &t, &err), ORR_EINPUT, &err);
    CHECK_OK(orr_trace_parse((orr_span){NULL, 0}, "f.et", &feeder, &t, &err), &err);
    orr_trace_destroy(t);
    orr_buf_fini(&b);
}

TEST(test_et_file__metadata_alone_is_a_trace_without_nodes)
{
    orr_buf b = {0};
    put_meta(&b);
    check_count(&b, NULL, 0);
    b.len = 0;
    orr_buf_add(&b, "\0", 1); /* metadata without anything in it */
    check_count(&b, &current, 0);
    PUT_NODE(&b, 1);
    check_count(&b, &current, 1);
    orr_buf_fini(&b);
}

TEST(test_et_file__an_empty_record_is_refused)
{
    orr_buf b = {0};
    put_meta(&b);
    PUT_NODE(&b, 1);
    orr_buf_add(&b, "\0", 1);
    PUT_NODE(&b, 2);
    check_refused(&b, &current, 16, "an empty record");
    check_refused(&b, &lenient, 16, "an empty record");
    orr_buf_fini(&b);
}

TEST(test_et_file__an_absurd_length_is_refused_without_being_believed)
{
    static const char *const lengths[] = {"\xff\xff\xff\xff\x0f",
                                          "\xff\xff\xff\xff\xff\xff\xff\xff\x7f",
                                          "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"};
    for (size_t i = 0; i < 3; i++) {
        orr_buf b = {0};
        put_meta(&b);
        orr_buf_text(&b, lengths[i]);
        orr_buf_text(&b, "abc");
        check_refused(&b, &current, 8, "but only 3 are left");
        orr_buf_fini(&b);
    }
    orr_buf b = {0};
    put_meta(&b);
    orr_buf_text(&b, "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"); /* eleven bytes: no number */
    check_refused(&b, &current, 8,
                  "the file ends inside a record's length, or the length is not a number");
    orr_buf_fini(&b);
}

TEST(test_et_file__overlong_lengths_are_lengths)
{
    orr_buf b = {0};
    put_meta(&b);
    orr_buf_add(&b, "\x82\x80\x80\x00\x08\x05", 6);
    check_count(&b, &current, 1);
    orr_buf_fini(&b);
}

/* ---- metadata or node? ---- */

TEST(test_et_file__files_without_metadata_start_with_a_node)
{
    orr_buf b = {0};
    PUT_NODE(&b, 1);
    PUT_NODE(&b, 2, 1);
    check_count(&b, NULL, 2);
    check_refused(&b,
                  &(orr_read_options){.size = sizeof(orr_read_options),
                                      .schema = ORR_SCHEMA_CURRENT,
                                      .first_is_metadata = true},
                  1, "the first record is not metadata");
    b.len = 0;
    PUT_NODE(&b, 0); /* id 0 is not written: the record starts with a name */
    PUT_NODE(&b, 2, 0);
    check_count(&b, NULL, 2);
    orr_buf_fini(&b);
}

TEST(test_et_file__metadata_may_have_fields_of_its_own)
{
    orr_trace *t;
    uint8_t *copy;
    orr_buf b = {0};
    PUT_RECORD(&b, "\x0a\x05"
                   "1.0.0"
                   "\x1a\x01x\x20\x05"); /* fields 3 and 4 are not in the schema */
    PUT_NODE(&b, 1);
    CHECK_OK(parse(&b, NULL, &t, &copy), &err);
    CHECK(orr_trace_has_metadata(t) && orr_trace_columns(t)->count == 1);
    CHECK_OK(orr_trace_write(t, "out.et", NULL, &err), &err);
    check_file("out.et", b.ptr, b.len);
    orr_trace_destroy(t);
    free(copy);
    orr_buf_fini(&b);
}

TEST(test_et_file__damaged_metadata_is_named_as_such)
{
    orr_buf b = {0};
    PUT_RECORD(&b, "\x0a\x05"
                   "1.\xff.0");
    PUT_NODE(&b, 1);
    check_refused(&b, &current, 5, "the metadata is damaged: a text is not valid UTF-8");
    b.len = 0;
    PUT_RECORD(&b, "\x0a\x01"
                   "1\x12\x03\x0a\x05"
                   "a"); /* an attribute whose name is longer than it */
    check_refused(&b, &current, 7, "the metadata is damaged: a length is larger");
    orr_buf_fini(&b);
}

/* ---- records ---- */

TEST(test_et_file__bad_texts_are_refused_at_the_bad_byte)
{
    REFUSE("\x08\x01\x12\x03"
           "ab\xff",
           6, "a text is not valid UTF-8");
    REFUSE("\x08\x01\x12\x02"
           "a\xc3",
           5, "a text is not valid UTF-8"); /* cut off */
    REFUSE("\x08\x01\x12\x04"
           "a\xed\xa0\x80",
           5, "a text is not valid UTF-8"); /* half a surrogate pair */
    REFUSE("\x08\x01\x12\x03"
           "a\xc0\x80",
           5, "a text is not valid UTF-8"); /* overlong */
    REFUSE("\x42\x04\x12\x02"
           "a\xff",
           5, "a text is not valid UTF-8"); /* inputs.shapes */
    REFUSE("\x08\x01\x52\x03\x0a\x01\xff", 6,
           "a text is not valid UTF-8"); /* an attribute's name */
    REFUSE("\x08\x01\x52\x03\x12\x01\xff", 6, "a text is not valid UTF-8");     /* its doc_string */
    REFUSE("\x08\x01\x52\x04\xea\x01\x01\xff", 7, "a text is not valid UTF-8"); /* its string_val */
    REFUSE("\x08\x01\x52\x06\xf2\x01\x03\x0a\x01\xff", 9,
           "a text is not valid UTF-8");                  /* an item of string_list */
    ACCEPT("\x08\x01\x52\x04\xfa\x01\x01\xff", &current); /* bytes_val may be anything */
    ACCEPT("\x08\x01\x12\x04\xf0\x9f\x98\x80", &current);
}

TEST(test_et_file__wrong_wire_types_are_refused_strictly_and_unknown_otherwise)
{
    static const struct {
        const char *body;
        size_t len;
        uint64_t byte;
        const char *words;
    } cases[] = {
        {"\x0a\x01x\x18\x04", 5, 0, "a number field does not hold a number"}, /* id */
        {"\x08\x01\x10\x05", 4, 2, "a text field does not hold text"},        /* name */
        {"\x08\x01\x1a\x01x", 5, 2, "a number field does not hold a number"}, /* type */
        {"\x08\x01\x2d\x01\x00\x00\x00", 7, 2,
         "a dependency list does not hold numbers"}, /* data_deps */
        {"\x08\x01\x35\x01\x00\x00\x00", 7, 2, "a number field does not hold a number"}, /* start */
        {"\x08\x01\x40\x01", 4, 2, "inputs or outputs are not a message"},
        {"\x08\x01\x42\x02\x08\x01", 6, 4, "a text field does not hold text"}, /* inputs.values */
        {"\x08\x01\x50\x01", 4, 2, "an attribute is not a message"},
        {"\x08\x01\x52\x02\x08\x01", 6, 4,
         "a text field does not hold text"}, /* an attribute's name */
        {"\x08\x01\x52\x05\x0a\x01"
         "a\x18\x01",
         9, 7, "wrong wire type"}, /* double_val as a varint */
        {"\x08\x01\x52\x05\x0a\x01"
         "a\x50\x01",
         9, 7, "wrong wire type"}, /* int64_list as a varint */
        {"\x08\x01\x52\x0a\x0a\x01"
         "a\x52\x05\x0d\x01\x02\x03\x04",
         14, 9, "a list item has the wrong type"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        refuse_record(cases[i].body, cases[i].len, cases[i].byte, cases[i].words);
        accept_record(cases[i].body, cases[i].len, &lenient);
    }
}

TEST(test_et_file__lists_must_hold_whole_items)
{
    REFUSE("\x08\x01\x2a\x02\x01\x80", 5, "ends inside a number");         /* data_deps */
    REFUSE("\x08\x01\x52\x04\x52\x02\x0a\x01", 7, "larger than the rest"); /* int64_list.values */
    REFUSE("\x08\x01\x52\x05\x52\x03\x0a\x01\x80", 8, "ends inside a number");
    REFUSE("\x08\x01\x52\x06\x32\x04\x0a\x02\x01\x02", 8,
           "a list ends inside a number"); /* float_list */
    REFUSE("\x08\x01\x52\x08\x22\x06\x0a\x04\x01\x02\x03\x04", 8,
           "a list ends inside a number"); /* double_list */
    ACCEPT("\x08\x01\x52\x08\x32\x06\x0a\x04\x01\x02\x03\x04", &current);
}

TEST(test_et_file__node_types_without_a_name_are_refused_strictly_and_kept_otherwise)
{
    ACCEPT("\x08\x01\x18\x0a", &current); /* 10, CHECKPOINT */
    REFUSE("\x08\x01\x18\x0b", 2, "the node type is not one this schema has");
    REFUSE("\x08\x01\x18\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 2,
           "the node type is not one"); /* -1 */
    ACCEPT("\x08\x01\x18\x0b", &lenient);
    orr_buf b = one_record("\x08\x01\x18\xe8\x07", 5); /* 1000 */
    orr_trace *t;
    orr_node node;
    uint8_t *copy;
    CHECK_OK(parse(&b, &lenient, &t, &copy), &err);
    CHECK_EQ_U(orr_trace_columns(t)->type[0], 255);
    orr_trace_node(t, 0, &node);
    CHECK_EQ_U(node.type, 1000);
    orr_trace_destroy(t);
    free(copy);
    orr_buf_fini(&b);
}

TEST(test_et_file__damage_inside_a_record_is_placed)
{
    REFUSE("\x08\x01\x00", 2, "impossible number");
    REFUSE("\x08\x01\x0e", 2, "impossible wire type");
    REFUSE("\x08", 1, "ends inside a number");
    REFUSE("\x08\x01\x12\x05"
           "abc",
           3, "larger than the rest");
    REFUSE("\x08\x01\x52\x03\x0a\x05"
           "a",
           5, "larger than the rest");
    orr_buf b = {0};
    put_meta(&b);
    PUT_NODE(&b, 1);
    PUT_RECORD(&b, "\x08\x01\x00"); /* at byte 16, its body at 17 */
    check_refused(&b, &current, 19, "node 1 of the file: a field has an impossible number");
    orr_buf_fini(&b);
}

TEST(test_et_file__groups_nested_deep_are_refused_and_shallow_ones_skipped)
{
    char body[6002] = "\x08\x01";
    memset(body + 2, 0x73, 3000); /* field 14, group */
    memset(body + 3002, 0x74, 3000);
    orr_buf b = {0};
    put_meta(&b);
    put_record(&b, body, sizeof body);
    check_refused(&b, &current, 8 + 2 + 2 + 100, "nested more than 100 deep");
    check_refused(&b, &lenient, 8 + 2 + 2 + 100, "nested more than 100 deep");
    orr_buf_fini(&b);
    ACCEPT("\x08\x01\x73\x73\x08\x01\x74\x74", &current);
}

TEST(test_et_file__every_byte_changed_gives_an_answer)
{
    /* Whatever the change, the file is read or refused with a place inside it. */
    static const orr_read_options *const all[] = {&current, &lenient, &jsonizer, &feeder, NULL};
    orr_buf b = {0};
    PUT_RECORD(&b, "\x0a\x05"
                   "1.0.0"
                   "\x12\x08\x0a\x04"
                   "name"
                   "\x48\x01");
    PUT_NODE(&b, 1);
    PUT_RECORD(&b, "\x08\x05\x12\x01z\x18\x07\x22\x01\x01\x2a\x02\x02\x03\x38\x09\x42\x03\x0a\x01v"
                   "\x52\x0b\x0a\x04"
                   "keep"
                   "\x48\x01\x98\x06\x02\x52\x0d\x0a\x09"
                   "comm_size"
                   "\x48\x07"
                   "\x52\x08\x0a\x01"
                   "l\x52\x03\x0a\x01\x05\x52\x08\x0a\x07pg_name\x73\x74");
    PUT_NODE(&b, 6, 5, 1);
    for (size_t at = 0; at < b.len; at++)
        for (unsigned value = 0; value < 256; value++) {
            const uint8_t old = b.ptr[at];
            b.ptr[at] = (uint8_t)value;
            for (size_t k = 0; k < sizeof all / sizeof *all; k++) {
                orr_trace *t;
                uint8_t *copy;
                const orr_code code = parse(&b, all[k], &t, &copy);
                if (code == ORR_OK) {
                    orr_attr a;
                    orr_value v;
                    for (uint32_t i = 0; i < orr_trace_columns(t)->count; i++) {
                        orr_node node;
                        orr_trace_node(t, i, &node);
                        orr_attrs it = orr_node_attrs(&node);
                        while (orr_attrs_next(&it, &a))
                            for (orr_list items = orr_attr_items(&a); orr_list_next(&items, &v);)
                                ;
                    }
                    CHECK(orr_trace_version(t).len <= b.len);
                    orr_trace_destroy(t);
                } else {
                    CHECK_EQ(code, ORR_EINPUT);
                    CHECK_TEXT(err.where.path, "f.et");
                    CHECK(err.where.byte <= b.len && err.message[0]);
                }
                free(copy);
            }
            b.ptr[at] = old;
        }
    orr_buf_fini(&b);
}

/* ---- as the old tools frame a file (chakra.md 1.1) ---- */

TEST(test_et_file__as_jsonizer_a_length_of_zero_or_no_length_ends_the_file)
{
    orr_buf b = {0};
    put_meta(&b);
    PUT_NODE(&b, 1);
    const size_t good = b.len;
    orr_buf_add(&b, "\0", 1);
    PUT_NODE(&b, 2);
    check_count(&b, &jsonizer, 1);
    b.len = good;
    orr_buf_add(&b, "\xff", 1); /* the file ends inside a length */
    check_count(&b, &jsonizer, 1);
    b.len = good;
    orr_buf_text(&b, "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01");
    PUT_NODE(&b, 2);
    check_count(&b, &jsonizer, 1);
    b.len = 0; /* an empty file is no damage there */
    check_count(&b, &jsonizer, 0);
    orr_buf_add(&b, "\0", 1); /* and neither is empty metadata */
    PUT_NODE(&b, 2);
    check_count(&b, &jsonizer, 1);
    orr_buf_fini(&b);
}

TEST(test_et_file__as_jsonizer_a_cut_record_is_read_as_far_as_it_goes)
{
    uint64_t starts[5];
    orr_buf b = three_nodes(starts);
    const size_t whole = b.len;
    /* The last record: length, id (3 bytes), name (3), type (2), data_deps (2 + 3). */
    const uint64_t body = starts[3] + 1;
    static const unsigned boundaries[] = {0, 3, 6, 8, 13};
    for (unsigned n = 0, k = 0; n <= 13; n++) {
        b.len = body + n;
        if (n == boundaries[k]) {
            k++;
            check_count(&b, &jsonizer, 3);
        } else {
            orr_trace *t;
            uint8_t *copy;
            CHECK_CODE(parse(&b, &jsonizer, &t, &copy), ORR_EINPUT, &err);
            CHECK(err.where.byte >= body && err.where.byte <= b.len);
            free(copy);
        }
    }
    orr_trace *t;
    uint8_t *copy;
    b.len = body + 8;
    CHECK_OK(parse(&b, &jsonizer, &t, &copy), &err);
    CHECK_EQ_U(orr_trace_columns(t)->id[2], 301);
    CHECK_EQ_U(orr_trace_columns(t)->data_first[3], 1); /* its own two dependencies are cut off */
    CHECK_OK(orr_trace_write(t, "f.et", NULL, &err), &err);
    orr_trace_destroy(t);
    free(copy);
    CHECK_OK(orr_trace_read("f.et", NULL, &t, &err), &err); /* what is written is sound */
    CHECK_EQ_U(orr_trace_columns(t)->count, 3);
    orr_trace_destroy(t);
    b.len = whole;
    orr_buf_fini(&b);
}

TEST(test_et_file__as_jsonizer_a_cut_record_with_a_long_length_is_placed)
{
    orr_buf b = {0};
    put_meta(&b);
    orr_buf_add(&b, "\xe8\x07\x08\x01\x12\x02\xff\xff", 8); /* 1000 bytes are announced in two */
    check_refused(&b, &jsonizer, 14, "not valid UTF-8");
    orr_buf_fini(&b);
}

TEST(test_et_file__as_jsonizer_cut_metadata_is_read_as_far_as_it_goes)
{
    orr_trace *t;
    uint8_t *copy;
    orr_buf b = {0};
    orr_attr a;
    orr_buf_text(&b, "\x7f\x0a\x05"
                     "1.0.0"); /* 127 bytes are announced, 7 are there */
    CHECK_OK(parse(&b, &jsonizer, &t, &copy), &err);
    CHECK(orr_trace_has_metadata(t) && orr_trace_columns(t)->count == 0);
    check_str(orr_trace_version(t), "1.0.0");
    orr_attrs it = orr_trace_attrs(t);
    CHECK(!orr_attrs_next(&it, &a));
    CHECK_OK(orr_trace_write(t, "f.et", NULL, &err), &err);
    check_file("f.et",
               "\x07\x0a\x05"
               "1.0.0",
               8);
    orr_trace_destroy(t);
    free(copy);
    orr_buf_fini(&b);
}

TEST(test_et_file__as_jsonizer_the_first_record_is_metadata_or_an_error)
{
    orr_buf b = {0};
    PUT_RECORD(&b, "\x08\x01\x12\x01n"); /* a node: "n" does not parse as an attribute */
    PUT_NODE(&b, 2);
    check_refused(&b, &jsonizer, 5, "the first record is not metadata");
    orr_buf_fini(&b);
}

TEST(test_et_file__as_feeder_the_first_bad_record_ends_the_trace)
{
    uint64_t starts[5];
    orr_buf b = three_nodes(starts);
    const size_t whole = b.len;
    unsigned record = 0;
    for (b.len = 1; b.len <= whole; b.len++) {
        if (b.len == starts[record + 1])
            record++;
        check_count(&b, &feeder, record ? record - 1 : 0);
    }
    b.len = whole;
    PUT_RECORD(&b, "\x08\x04\x12\x01\xff"); /* not UTF-8 */
    PUT_NODE(&b, 5);
    check_count(&b, &feeder, 3);
    b.len = whole;
    orr_buf_text(&b, "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01");
    check_count(&b, &feeder, 3);
    b.len = 0;
    check_count(&b, &feeder, 0);
    orr_buf_fini(&b);
}

TEST(test_et_file__as_feeder_the_first_record_is_thrown_away_whatever_it_is)
{
    orr_buf b = {0};
    orr_trace *t;
    uint8_t *copy;
    PUT_NODE(&b, 1);
    PUT_NODE(&b, 2);
    check_count(&b, &feeder, 1);
    CHECK_OK(parse(&b, &feeder, &t, &copy), &err);
    CHECK_EQ_U(orr_trace_columns(t)->id[0], 2);
    check_str(orr_trace_version(t), "");
    orr_trace_destroy(t);
    free(copy);
    orr_buf_fini(&b);
}

TEST(test_et_file__what_was_overlooked_is_not_written)
{
    uint64_t starts[5];
    orr_trace *t;
    uint8_t *copy;
    orr_buf b = three_nodes(starts);
    b.len = starts[3] + 4; /* inside the third node */
    CHECK_OK(parse(&b, &feeder, &t, &copy), &err);
    CHECK_OK(orr_trace_write(t, "f.et", NULL, &err), &err);
    check_file("f.et", b.ptr, starts[3]);
    orr_trace_destroy(t);
    free(copy);
    orr_buf_fini(&b);
}

TEST(test_et_file__reading_files_and_writing_them)
{
    orr_trace *t = (orr_trace *)&err;
    CHECK_CODE(orr_trace_read("not-there.et", NULL, &t, &err), ORR_EIO, &err);
    CHECK(t == NULL);
    CHECK_SAYS(&err, "not-there.et");
    uint64_t starts[5];
    orr_buf b = three_nodes(starts), packed = {0};
    add_gzip(&packed, b.ptr, b.len);
    write_file("f.et", packed.ptr, packed.len); /* by its content, not by its name */
    CHECK_OK(orr_trace_read("f.et", NULL, &t, &err), &err);
    CHECK_EQ_U(orr_trace_columns(t)->count, 3);
    CHECK_EQ_U(orr_trace_where(t, 1).byte, starts[2]);
    CHECK_CODE(orr_trace_write(t, "no/such/folder.et", NULL, &err), ORR_EIO, &err);
    orr_trace_destroy(t);
    write_file("f.et", packed.ptr, packed.len - 9);
    CHECK_CODE(orr_trace_read("f.et", NULL, &t, &err), ORR_EINPUT, &err);
    CHECK_SAYS(&err, "the compressed data is cut short");
    write_file("f.et", b.ptr, b.len - 1);
    CHECK_CODE(orr_trace_read("f.et", NULL, &t, &err), ORR_EINPUT, &err);
    CHECK_TEXT(err.where.path, "f.et");
    CHECK_EQ_U(err.where.byte, starts[3]);
    orr_buf_fini(&b);
    orr_buf_fini(&packed);
}

int main(void)
{
    const CMUnitTest tests[] = {
        RUN(test_et_file__a_file_cut_anywhere_is_refused_at_its_last_record),
        RUN(test_et_file__a_file_cut_inside_a_long_length_is_refused),
        RUN(test_et_file__an_empty_file_is_refused),
        RUN(test_et_file__metadata_alone_is_a_trace_without_nodes),
        RUN(test_et_file__an_empty_record_is_refused),
        RUN(test_et_file__an_absurd_length_is_refused_without_being_believed),
        RUN(test_et_file__overlong_lengths_are_lengths),
        RUN(test_et_file__files_without_metadata_start_with_a_node),
        RUN(test_et_file__metadata_may_have_fields_of_its_own),
        RUN(test_et_file__damaged_metadata_is_named_as_such),
        RUN(test_et_file__bad_texts_are_refused_at_the_bad_byte),
        RUN(test_et_file__wrong_wire_types_are_refused_strictly_and_unknown_otherwise),
        RUN(test_et_file__lists_must_hold_whole_items),
        RUN(test_et_file__node_types_without_a_name_are_refused_strictly_and_kept_otherwise),
        RUN(test_et_file__damage_inside_a_record_is_placed),
        RUN(test_et_file__groups_nested_deep_are_refused_and_shallow_ones_skipped),
        RUN(test_et_file__every_byte_changed_gives_an_answer),
        RUN(test_et_file__as_jsonizer_a_length_of_zero_or_no_length_ends_the_file),
        RUN(test_et_file__as_jsonizer_a_cut_record_is_read_as_far_as_it_goes),
        RUN(test_et_file__as_jsonizer_a_cut_record_with_a_long_length_is_placed),
        RUN(test_et_file__as_jsonizer_cut_metadata_is_read_as_far_as_it_goes),
        RUN(test_et_file__as_jsonizer_the_first_record_is_metadata_or_an_error),
        RUN(test_et_file__as_feeder_the_first_bad_record_ends_the_trace),
        RUN(test_et_file__as_feeder_the_first_record_is_thrown_away_whatever_it_is),
        RUN(test_et_file__what_was_overlooked_is_not_written),
        RUN(test_et_file__reading_files_and_writing_them),
    };
    return RUN_ALL(tests);
}
