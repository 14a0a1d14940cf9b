/* SPDX-License-Identifier: Apache-2.0 */
#include "check.h"
#include "files.h"

#include <orrery/view.h>

#include "base/text/text.h"

/* "0a05" to bytes in buf; returns how many. */
static size_t from_hex(const char *hex, uint8_t *buf)
{
    size_t n = 0;
    for (unsigned byte; sscanf(hex, "%2x", &byte) == 1; hex += 2)
        buf[n++] = (uint8_t)byte;
    return n;
}

static const orr_read_options lenient = {
    .size = sizeof lenient, .schema = ORR_SCHEMA_CURRENT, .leniency = ORR_KEEP_UNKNOWN};

static void check_trace_text(orr_trace *t, const orr_view_json_options *opt, const char *want)
{
    orr_error err;
    CHECK_OK(orr_view_json(t, "out.json", opt, &err), &err);
    orr_buf got = read_file("out.json");
    orr_buf_byte(&got, '\0');
    CHECK_TEXT((const char *)got.ptr, want);
    orr_buf_fini(&got);
    orr_trace_destroy(t);
}

/* The text of an .et file given in hexadecimal. */
static void check_text(const char *hex, const orr_view_json_options *opt, const char *want)
{
    uint8_t bytes[4096];
    orr_trace *t;
    orr_error err;
    const orr_span span = {bytes, from_hex(hex, bytes)};
    CHECK_OK(orr_trace_parse(span, "test", &lenient, &t, &err), &err);
    check_trace_text(t, opt, want);
}

/* A file with version 1.0.0 and the one node whose fields these are, as a line. */
static void check_node(const char *fields, const char *want)
{
    static const orr_view_json_options opt = {.size = sizeof opt, .form = ORR_VIEW_JSONL};
    char hex[4096], text[4096];
    snprintf(hex, sizeof hex, "070a05312e302e30%02x%s", (unsigned)strlen(fields) / 2, fields);
    snprintf(
        text, sizeof text,
        "{\"format\":\"orrery-trace\",\"version\":1,\"metadata\":{\"version\":\"1.0.0\"}}\n%s\n",
        want);
    check_text(hex, &opt, text);
}

static const orr_view_json_options concat = {.size = sizeof concat, .form = ORR_VIEW_CONCAT};

/* Bytes and text: golden/chakra/jsonizer/special_floats. */
TEST(test_json_view__concat_prints_numbers_as_the_reference)
{
    check_text("070a05312e302e307d08011201661804520c0a016119000000000000f07f520c0a01621900000000"
               "0000f87f52080a01632dcdcccc3d520c0a01641992d54d06cff08044520c0a016519000000000000"
               "000052080a01672d0000804b520c0a016819000000000000008052060a026969220052080a016afa"
               "010200ff52080a016b2d95bfd633",
               &concat,
               "{\n"
               "  \"version\": \"1.0.0\"\n"
               "}{\n"
               "  \"id\": \"1\",\n"
               "  \"name\": \"f\",\n"
               "  \"type\": \"COMP_NODE\",\n"
               "  \"attr\": [\n"
               "    {\n"
               "      \"name\": \"a\",\n"
               "      \"doubleVal\": \"Infinity\"\n"
               "    },\n"
               "    {\n"
               "      \"name\": \"b\",\n"
               "      \"doubleVal\": \"NaN\"\n"
               "    },\n"
               "    {\n"
               "      \"name\": \"c\",\n"
               "      \"floatVal\": 0.1\n"
               "    },\n"
               "    {\n"
               "      \"name\": \"d\",\n"
               "      \"doubleVal\": 1e+22\n"
               "    },\n"
               "    {\n"
               "      \"name\": \"e\",\n"
               "      \"doubleVal\": 0.0\n"
               "    },\n"
               "    {\n"
               "      \"name\": \"g\",\n"
               "      \"floatVal\": 16777216.0\n"
               "    },\n"
               "    {\n"
               "      \"name\": \"h\",\n"
               "      \"doubleVal\": -0.0\n"
               "    },\n"
               "    {\n"
               "      \"name\": \"ii\",\n"
               "      \"doubleList\": {}\n"
               "    },\n"
               "    {\n"
               "      \"name\": \"j\",\n"
               "      \"bytesVal\": \"AP8=\"\n"
               "    },\n"
               "    {\n"
               "      \"name\": \"k\",\n"
               "      \"floatVal\": 1e-07\n"
               "    }\n"
               "  ]\n"
               "}");
}

/* Bytes and text: golden/chakra/jsonizer/unicode. */
TEST(test_json_view__concat_escapes_as_the_reference)
{
    check_text("070a05312e302e30130801120d71225cc3a9e4b8ad093c263e0118041d08ffffffffffffffffff01"
               "12036d617818043880808080808080808001",
               &concat,
               "{\n"
               "  \"version\": \"1.0.0\"\n"
               "}{\n"
               "  \"id\": \"1\",\n"
               "  \"name\": \"q\\\"\\\\\\u00e9\\u4e2d\\t<&>\\u0001\",\n"
               "  \"type\": \"COMP_NODE\"\n"
               "}{\n"
               "  \"id\": \"18446744073709551615\",\n"
               "  \"name\": \"max\",\n"
               "  \"type\": \"COMP_NODE\",\n"
               "  \"durationMicros\": \"9223372036854775808\"\n"
               "}");
}

TEST(test_json_view__concat_without_nodes_or_metadata_is_empty)
{
    orr_trace *t;
    orr_error err;
    CHECK_OK(orr_trace_create(NULL, &t, &err), &err);
    CHECK_OK(orr_trace_seal(t, &err), &err);
    check_trace_text(t, &concat, "");
}

TEST(test_json_view__always_metadata_prints_an_empty_object)
{
    orr_trace *t;
    orr_error err;
    CHECK_OK(orr_trace_create(NULL, &t, &err), &err);
    CHECK_OK(orr_trace_seal(t, &err), &err);
    check_trace_text(t,
                     &(orr_view_json_options){.size = sizeof(orr_view_json_options),
                                              .form = ORR_VIEW_CONCAT,
                                              .always_metadata = true},
                     "{}");
}

TEST(test_json_view__document_without_nodes_is_a_document)
{
    check_text(
        "00", NULL,
        "{\n  \"format\": \"orrery-trace\",\n  \"version\": 1,\n  \"metadata\": {},\n  \"nodes\": []\n}\n");
}

/* Node 1 "a" COMP after 7, duration 5, empty inputs, attribute x = [3, 4]. */
#define NODE_A       \
    "08011201611804" \
    "2a0107"         \
    "3805"           \
    "4200"           \
    "52090a017842040a020304"

TEST(test_json_view__document_is_indented)
{
    check_text("070a05312e302e30"
               "19" NODE_A "020802",
               NULL,
               "{\n"
               "  \"format\": \"orrery-trace\",\n"
               "  \"version\": 1,\n"
               "  \"metadata\": {\n"
               "    \"version\": \"1.0.0\"\n"
               "  },\n"
               "  \"nodes\": [\n"
               "    {\n"
               "      \"id\": \"1\",\n"
               "      \"name\": \"a\",\n"
               "      \"type\": \"COMP_NODE\",\n"
               "      \"dataDeps\": [\n"
               "        \"7\"\n"
               "      ],\n"
               "      \"durationMicros\": \"5\",\n"
               "      \"inputs\": {},\n"
               "      \"attr\": [\n"
               "        {\n"
               "          \"name\": \"x\",\n"
               "          \"int32List\": {\n"
               "            \"values\": [\n"
               "              3,\n"
               "              4\n"
               "            ]\n"
               "          }\n"
               "        }\n"
               "      ]\n"
               "    },\n"
               "    {\n"
               "      \"id\": \"2\"\n"
               "    }\n"
               "  ]\n"
               "}\n");
}

TEST(test_json_view__lines_are_compact)
{
    check_node(
        NODE_A,
        "{\"id\":\"1\",\"name\":\"a\",\"type\":\"COMP_NODE\",\"dataDeps\":[\"7\"],\"durationMicros\":\"5\","
        "\"inputs\":{},\"attr\":[{\"name\":\"x\",\"int32List\":{\"values\":[3,4]}}]}");
}

TEST(test_json_view__lines_without_metadata_have_a_heading)
{
    check_text(
        "020801",
        &(orr_view_json_options){.size = sizeof(orr_view_json_options), .form = ORR_VIEW_JSONL},
        "{\"format\":\"orrery-trace\",\"version\":1}\n{\"id\":\"1\"}\n");
}

TEST(test_json_view__id_shift_moves_ids_and_dependencies)
{
    check_text("00"
               "0808012201032a0107",
               &(orr_view_json_options){
                   .size = sizeof(orr_view_json_options), .form = ORR_VIEW_JSONL, .id_shift = 10},
               "{\"format\":\"orrery-trace\",\"version\":1,\"metadata\":{}}\n"
               "{\"id\":\"11\",\"ctrlDeps\":[\"13\"],\"dataDeps\":[\"17\"]}\n");
}

TEST(test_json_view__node_types_have_names_or_numbers)
{
    check_node("1807", "{\"type\":\"COMM_COLL_NODE\"}");
    check_node("180a", "{\"type\":\"CHECKPOINT_NODE\"}");
    check_node("182a", "{\"type\":42}");
    check_node("18ffffffffffffffffff01", "{\"type\":-1}");
    check_text("0002180a", &concat, "{}{\n  \"type\": 10\n}"); /* the reference has 0 to 7 */
}

/* Each member of an attribute's value, in hexadecimal with its tag, and its text. */
TEST(test_json_view__values_of_every_kind)
{
    static const char *const cases[][2] = {
        {"19000000000000f83f", "\"doubleVal\":1.5"},
        {"19000000000000f0ff", "\"doubleVal\":\"-Infinity\""},
        {"190100000000000080", "\"doubleVal\":-5e-324"},
        {"2dcdcccc3d", "\"floatVal\":0.1"},
        {"2d0000807f", "\"floatVal\":\"Infinity\""},
        {"38ffffffffffffffffff01", "\"int32Val\":-1"},
        {"388080808010", "\"int32Val\":0"}, /* 2^32: protobuf keeps the low 32 bits */
        {"4880808080808080808001", "\"int64Val\":\"-9223372036854775808\""},
        {"58ffffffff0f", "\"uint32Val\":4294967295"},
        {"68ffffffffffffffffff01", "\"uint64Val\":\"18446744073709551615\""},
        {"7801", "\"sint32Val\":-1"},
        {"880101", "\"sint64Val\":\"-1\""},
        {"9d01ffffffff", "\"fixed32Val\":4294967295"},
        {"a901ffffffffffffffff", "\"fixed64Val\":\"18446744073709551615\""},
        {"bd01ffffffff", "\"sfixed32Val\":-1"},
        {"c901ffffffffffffffff", "\"sfixed64Val\":\"-1\""},
        {"d80100", "\"boolVal\":false"},
        {"ea010161", "\"stringVal\":\"a\""},
        {"ea0100", "\"stringVal\":\"\""},
        {"fa010200ff", "\"bytesVal\":\"AP8=\""},
        {"4200", "\"int32List\":{}"},
        {"e201040a020100", "\"boolList\":{\"values\":[true,false]}"},
        {"22120a10000000000000f83f000000000000f07f",
         "\"doubleList\":{\"values\":[1.5,\"Infinity\"]}"},
        {"f201060a01610a0162", "\"stringList\":{\"values\":[\"a\",\"b\"]}"},
        {"8202040a02ffff", "\"bytesList\":{\"values\":[\"//8=\"]}"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char fields[200], want[200];
        snprintf(fields, sizeof fields, "52%02x%s", (unsigned)strlen(cases[i][0]) / 2, cases[i][0]);
        snprintf(want, sizeof want, "{\"attr\":[{%s}]}", cases[i][1]);
        check_node(fields, want);
    }
}

TEST(test_json_view__fields_in_any_order_and_in_pieces_are_one)
{
    check_node("280708012a020809", "{\"id\":\"1\",\"dataDeps\":[\"7\",\"8\",\"9\"]}");
    check_node("08010802", "{\"id\":\"2\"}");
    check_node("42030a017842031201790801",
               "{\"id\":\"1\",\"inputs\":{\"values\":\"x\",\"shapes\":\"y\"}}");
    check_node("520d0a017842030a010342030a0104",
               "{\"attr\":[{\"name\":\"x\",\"int32List\":{\"values\":[3,4]}}]}");
    /* Another member in between: the list begins anew. */
    check_node("520f0a017842030a0103480542030a0104",
               "{\"attr\":[{\"name\":\"x\",\"int32List\":{\"values\":[4]}}]}");
}

/* Unknown: field 4 of the inputs, 2 of the list, 33 of the attribute, 11 of the node. */
#define WITH_UNKNOWN                 \
    "0801"                           \
    "4203220173"                     \
    "520d0a017842050a01031001880201" \
    "5807"

TEST(test_json_view__unknown_fields_are_kept)
{
    check_node(
        WITH_UNKNOWN,
        "{\"id\":\"1\",\"inputs\":{\"unknownFields\":\"IgFz\"},"
        "\"attr\":[{\"name\":\"x\",\"int32List\":{\"values\":[3],\"unknownFields\":\"EAE=\"},"
        "\"unknownFields\":\"iAIB\"}],\"unknownFields\":\"WAc=\"}");
}

TEST(test_json_view__known_number_with_wrong_wire_type_is_unknown)
{
    check_node("0a0131", "{\"unknownFields\":\"CgEx\"}");
}

TEST(test_json_view__unknown_fields_of_metadata_are_kept)
{
    const uint8_t bytes[] = {2, 0x18, 1, 2, 8, 1}; /* field 3 of the metadata */
    const orr_read_options opt = {
        .size = sizeof opt, .schema = ORR_SCHEMA_CURRENT, .first_is_metadata = true};
    orr_trace *t;
    orr_error err;
    CHECK_OK(orr_trace_parse((orr_span){bytes, sizeof bytes}, "test", &opt, &t, &err), &err);
    check_trace_text(
        t, &(orr_view_json_options){.size = sizeof(orr_view_json_options), .form = ORR_VIEW_JSONL},
        "{\"format\":\"orrery-trace\",\"version\":1,\"metadata\":{\"unknownFields\":\"GAE=\"}}\n"
        "{\"id\":\"1\"}\n");
}

TEST(test_json_view__concat_leaves_unknown_fields_out)
{
    check_text("00"
               "18" WITH_UNKNOWN,
               &concat,
               "{}{\n"
               "  \"id\": \"1\",\n"
               "  \"inputs\": {},\n"
               "  \"attr\": [\n"
               "    {\n"
               "      \"name\": \"x\",\n"
               "      \"int32List\": {\n"
               "        \"values\": [\n"
               "          3\n"
               "        ]\n"
               "      }\n"
               "    }\n"
               "  ]\n"
               "}");
}

/* ---- texts ---- */

/* The JSON text of one character, the slow way. */
static void add_expected(orr_buf *b, uint32_t c)
{
    static const char short_forms[] = "\"\"\\\\\bb\ff\nn\rr\tt";
    for (size_t i = 0; i + 1 < sizeof short_forms; i += 2)
        if ((uint32_t)short_forms[i] == c) {
            orr_buf_print(b, "\\%c", short_forms[i + 1]);
            return;
        }
    if (c >= 0x20 && c < 0x7f)
        orr_buf_byte(b, (uint8_t)c);
    else if (c < 0x10000)
        orr_buf_print(b, "\\u%04x", c);
    else
        orr_buf_print(b, "\\u%04x\\u%04x", 0xd800 + ((c - 0x10000) >> 10),
                      0xdc00 + ((c - 0x10000) & 0x3ff));
}

static void check_name(const orr_buf *name, const orr_buf *expected)
{
    orr_trace *t;
    orr_error err;
    const orr_draft node = {.id = 1, .name = {(const char *)name->ptr, name->len}};
    orr_buf want = {0};
    orr_buf_text(&want, "{\"format\":\"orrery-trace\",\"version\":1}\n{\"id\":\"1\",\"name\":\"");
    orr_buf_add(&want, expected->ptr, expected->len);
    orr_buf_add(&want, "\"}\n", 4); /* with the NUL */
    CHECK_OK(orr_trace_create(NULL, &t, &err), &err);
    CHECK_OK(orr_trace_append(t, &node, &err), &err);
    CHECK_OK(orr_trace_seal(t, &err), &err);
    check_trace_text(
        t, &(orr_view_json_options){.size = sizeof(orr_view_json_options), .form = ORR_VIEW_JSONL},
        (const char *)want.ptr);
    orr_buf_fini(&want);
}

static void add_character(orr_buf *name, orr_buf *expected, uint32_t c)
{
    uint8_t utf8[4];
    orr_buf_add(name, utf8, orr_utf8_put(c, utf8));
    add_expected(expected, c);
}

TEST(test_json_view__every_ascii_character_and_some_others)
{
    static const uint32_t others[] = {0x80,   0xff,   0x7ff,  0x800,   0x2028,
                                      0xd7ff, 0xe000, 0xffff, 0x10000, 0x10ffff};
    orr_buf name = {0}, expected = {0};
    for (uint32_t c = 0; c < 0x80; c++)
        add_character(&name, &expected, c);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        add_character(&name, &expected, others[i]);
    check_name(&name, &expected);
    orr_buf_fini(&name);
    orr_buf_fini(&expected);
}

/* Longer than the buffer, with characters of every length at every place in a part. */
TEST(test_json_view__long_texts_are_whole)
{
    static const uint32_t kinds[] = {'a', '"', 1, 0xe9, 0x4e2d, 0x1f600};
    orr_buf name = {0}, expected = {0};
    uint64_t seed = 11;
    for (unsigned i = 0; i < 200000; i++) {
        const uint64_t r = next_random(&seed);
        add_character(&name, &expected, r % 4 ? 'b' : kinds[r / 4 % 6]);
    }
    check_name(&name, &expected);
    orr_buf_fini(&name);
    orr_buf_fini(&expected);
}

TEST(test_json_view__long_bytes_are_whole)
{
    uint8_t *zeros = calloc(100000, 1);
    const orr_attr attr = {.name = {"", 0},
                           .doc = {"", 0},
                           .kind = ORR_VALUE_BYTES,
                           .value.s = {(char *)zeros, 100000}};
    const orr_draft node = {.name = {"", 0}, .attrs = &attr, .attr_count = 1};
    orr_trace *t;
    orr_error err;
    CHECK_OK(orr_trace_create(NULL, &t, &err), &err);
    CHECK_OK(orr_trace_append(t, &node, &err), &err);
    CHECK_OK(orr_trace_seal(t, &err), &err);
    CHECK_OK(orr_view_json(t, "out.json",
                           &(orr_view_json_options){.size = sizeof(orr_view_json_options),
                                                    .form = ORR_VIEW_JSONL},
                           &err),
             &err);
    orr_trace_destroy(t);
    free(zeros);
    orr_buf got = read_file("out.json");
    /* 33,333 times three zero bytes are "AAAA", the last one is "AA==". */
    const size_t head =
        strlen("{\"format\":\"orrery-trace\",\"version\":1}\n{\"attr\":[{\"bytesVal\":\"");
    CHECK_EQ_U(got.len, head + 4 * 33334 + strlen("\"}]}\n"));
    CHECK_BYTES(got.ptr + head + 4 * 33333 - 1, "AAA==\"}]}\n", 10);
    orr_buf_fini(&got);
}

TEST(test_json_view__names_of_forms)
{
    orr_view_form form = ORR_VIEW_JSON;
    CHECK(orr_view_form_find(orr_str_of("concat"), &form) && form == ORR_VIEW_CONCAT);
    CHECK(orr_view_form_find(orr_str_of("jsonl"), &form) && form == ORR_VIEW_JSONL);
    CHECK(!orr_view_form_find(orr_str_of("yaml"), &form));
}

TEST(test_json_view__no_folder_is_an_error)
{
    orr_trace *t;
    orr_error err;
    CHECK_OK(orr_trace_create(NULL, &t, &err), &err);
    CHECK_OK(orr_trace_seal(t, &err), &err);
    CHECK_CODE(orr_view_json(t, "nowhere/out.json", NULL, &err), ORR_EIO, &err);
    CHECK_SAYS(&err, "nowhere/out.json");
    orr_trace_destroy(t);
}

TEST(test_json_view__options_begin_with_their_size)
{
    /* an older header knew only the form, which comes first */
    const orr_view_json_options none = {.form = ORR_VIEW_JSONL},
                                larger = {.size = sizeof larger + 1},
                                older = {.size = offsetof(orr_view_json_options, id_shift),
                                         .form = ORR_VIEW_JSONL,
                                         .id_shift = 10};
    orr_trace *t;
    orr_error err;
    CHECK_OK(orr_trace_create(NULL, &t, &err), &err);
    CHECK_OK(orr_trace_append(t, &(orr_draft){.id = 1, .name = {"", 0}}, &err), &err);
    CHECK_OK(orr_trace_seal(t, &err), &err);
    CHECK_CODE(orr_view_json(t, "out.json", &none, &err), ORR_EUSAGE, &err);
    CHECK_SAYS(&err, "orr_view_json_options.size must be sizeof(orr_view_json_options)");
    CHECK_CODE(orr_view_json(t, "out.json", &larger, &err), ORR_EUSAGE, &err);
    CHECK_OK(orr_view_json(t, "out.json", &older, &err), &err);
    orr_trace_destroy(t);
    CHECK_OK(orr_trace_read("out.json", NULL, &t, &err), &err);
    CHECK_EQ_U(orr_trace_columns(t)->id[0], 1); /* not shifted */
    orr_trace_destroy(t);
}

int main(void)
{
    const CMUnitTest tests[] = {
        RUN(test_json_view__concat_prints_numbers_as_the_reference),
        RUN(test_json_view__concat_escapes_as_the_reference),
        RUN(test_json_view__concat_without_nodes_or_metadata_is_empty),
        RUN(test_json_view__always_metadata_prints_an_empty_object),
        RUN(test_json_view__document_without_nodes_is_a_document),
        RUN(test_json_view__document_is_indented),
        RUN(test_json_view__lines_are_compact),
        RUN(test_json_view__lines_without_metadata_have_a_heading),
        RUN(test_json_view__id_shift_moves_ids_and_dependencies),
        RUN(test_json_view__node_types_have_names_or_numbers),
        RUN(test_json_view__values_of_every_kind),
        RUN(test_json_view__fields_in_any_order_and_in_pieces_are_one),
        RUN(test_json_view__unknown_fields_are_kept),
        RUN(test_json_view__known_number_with_wrong_wire_type_is_unknown),
        RUN(test_json_view__unknown_fields_of_metadata_are_kept),
        RUN(test_json_view__concat_leaves_unknown_fields_out),
        RUN(test_json_view__every_ascii_character_and_some_others),
        RUN(test_json_view__long_texts_are_whole),
        RUN(test_json_view__long_bytes_are_whole),
        RUN(test_json_view__names_of_forms),
        RUN(test_json_view__no_folder_is_an_error),
        RUN(test_json_view__options_begin_with_their_size),
    };
    return RUN_ALL(tests);
}
