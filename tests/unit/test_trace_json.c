/* SPDX-License-Identifier: Apache-2.0 */
#include "check.h"
#include "files.h"

#include <orrery/view.h>

#include "trace/trace_impl.h"

static orr_span span_of(const char *text)
{
    return (orr_span){(const uint8_t *)text, strlen(text)};
}

static orr_code parse(const char *text, orr_leniency leniency, orr_trace **out, orr_error *err)
{
    const orr_read_options opt = {.size = sizeof opt, .leniency = leniency};
    return orr_trace_parse(span_of(text), "test.json", &opt, out, err);
}

/* "0a05" to bytes in buf; returns how many. */
static size_t from_hex(const char *hex, uint8_t *buf)
{
    size_t n = 0;
    for (unsigned byte; sscanf(hex, "%2x", &byte) == 1; hex += 2)
        buf[n++] = (uint8_t)byte;
    return n;
}

/* Reading `text` gives the .et file `hex`. */
static void check_reads_with(const char *text, orr_leniency leniency, const char *hex)
{
    uint8_t want[4096];
    orr_trace *t;
    orr_error err;
    CHECK_OK(parse(text, leniency, &t, &err), &err);
    CHECK_OK(orr_trace_write(t, "out.et", NULL, &err), &err);
    check_file("out.et", want, from_hex(hex, want));
    orr_trace_destroy(t);
}

static void check_reads(const char *text, const char *hex)
{
    check_reads_with(text, ORR_STRICT, hex);
}

/* One node, with empty metadata in front; `hex` is its fields. */
static void check_node(const char *node, const char *hex)
{
    char text[2000], file[2000];
    snprintf(text, sizeof text, "{}%s", node);
    snprintf(file, sizeof file, "00%02x%s", (unsigned)strlen(hex) / 2, hex);
    check_reads(text, file);
}

/* ---- recognising ---- */

static bool is_json(const char *text)
{
    return orr__is_json(span_of(text));
}

TEST(test_trace_json__json_is_recognised)
{
    CHECK(is_json("{}"));
    CHECK(is_json(" \r\n\t{ \n }{\"id\": \"1\"}"));
    CHECK(is_json("{\"id\":\"1\"}"));
    CHECK(is_json("{\n  \"a \\\" b\" : 1}"));
    CHECK(is_json("\xef\xbb\xbf{\"id\":\"1\"}"));
    CHECK(is_json("[ {\"id\":\"1\"} ]"));
    CHECK(is_json("[]"));
    CHECK(is_json("[ ] \n"));
}

TEST(test_trace_json__other_things_are_not_json)
{
    CHECK(!is_json(""));
    CHECK(!orr__is_json((orr_span){NULL, 0}));
    CHECK(!is_json(" "));
    CHECK(!is_json("{"));
    CHECK(!is_json("["));
    CHECK(!is_json("{\"id"));
    CHECK(!is_json("{\"id\""));
    CHECK(!is_json("{id: 1}"));
    CHECK(!is_json("[1]"));
    CHECK(!is_json("[]x"));
    CHECK(!is_json("1"));
}

/* A file whose first record, the metadata, is 123 bytes long begins with '{'; here with a version
 * of 34 bytes, a quote, so that the file begins with { " as JSON does. */
TEST(test_trace_json__et_of_123_bytes_is_not_json)
{
    uint8_t file[124] = {123, 0x0a, 34};
    orr_trace *t;
    orr_error err;
    memset(file + 3, 'v', 34);
    file[37] = 0x12; /* an attribute of 84 bytes: a name */
    file[38] = 85;
    file[39] = 0x0a;
    file[40] = 83;
    memset(file + 41, 'n', 83);
    CHECK(!orr__is_json((orr_span){file, sizeof file}));
    CHECK_OK(orr_trace_parse((orr_span){file, sizeof file}, "test.et", NULL, &t, &err), &err);
    CHECK_EQ_U(orr_trace_version(t).len, 34);
    orr_trace_destroy(t);
}

/* ---- the forms ---- */

/* Version 1.0.0, nodes 1 "a" COMP and 2 after 1. */
#define TWO            \
    "070a05312e302e30" \
    "0708011201611804" \
    "050802"           \
    "2a0101"
#define NODE_1 "{\"id\": \"1\", \"name\": \"a\", \"type\": \"COMP_NODE\"}"
#define NODE_2 "{\"id\": \"2\", \"dataDeps\": [\"1\"]}"
#define META "{\"version\": \"1.0.0\"}"

TEST(test_trace_json__document)
{
    check_reads("{\"format\": \"orrery-trace\", \"version\": 1, \"metadata\": " META
                ", \"nodes\": [" NODE_1 ", " NODE_2 "]}\n",
                TWO);
    check_reads("{\"metadata\": " META ", \"nodes\": [" NODE_1 "," NODE_2 "], \"version\": 1}",
                TWO);
}

TEST(test_trace_json__lines)
{
    check_reads("{\"format\":\"orrery-trace\",\"version\":1,\"metadata\":" META "}\n" NODE_1
                "\n" NODE_2 "\n",
                TWO);
    check_reads("{\"version\":1,\"metadata\":" META "}\n" NODE_1 "\n" NODE_2, TWO);
}

TEST(test_trace_json__objects_one_behind_the_other)
{
    check_reads(META NODE_1 NODE_2, TWO);
}

TEST(test_trace_json__array)
{
    check_reads("[" META "," NODE_1 ", " NODE_2 "]", TWO);
}

TEST(test_trace_json__without_metadata)
{
    const char *const nodes = &TWO[16]; /* behind the metadata */
    check_reads(NODE_1 NODE_2, nodes);
    check_reads("[" NODE_1 "," NODE_2 "]", nodes);
    check_reads("{\"nodes\": [" NODE_1 "," NODE_2 "]}", nodes);
    check_reads("{\"format\":\"orrery-trace\",\"version\":1}\n" NODE_1 "\n" NODE_2 "\n", nodes);
    check_reads("{\"metadata\": null, \"nodes\": [" NODE_1 "," NODE_2 "]}", nodes);
}

TEST(test_trace_json__empty_metadata_is_metadata)
{
    check_reads("{\"metadata\": {}, \"nodes\": []}", "00");
    check_reads("{}", "00");
}

/* The members are those the feeder reads: is_cpu_op bool (27), comm_size int64 (9), comm_tag int32
 * (7). */
TEST(test_trace_json__workload_graph)
{
    check_reads(
        "{\"workload_name\": \"w\", \"workload_graph\": [{\"Id\": 3, \"Name\": \"n\", \"NodeType\": 7, \"is_cpu_op\": "
        "false, \"runtime\": 9, \"data_deps\": [1, 2], \"ctrlDeps\": [0], \"comm_size\": 8, \"comm_tag\": 5}], "
        "\"ngpus\": 8}",
        "3d"
        "0803"
        "12016e"
        "1807"
        "220100"
        "2a020102"
        "3809"
        "520e0a0969735f6370755f6f70d80100"
        "520d0a09636f6d6d5f73697a654808"
        "520c0a08636f6d6d5f7461673805");
}

TEST(test_trace_json__workload_graph_of_the_reference)
{
    char path[1000];
    orr_trace *t;
    orr_error err;
    CHECK_OK(
        orr_trace_read(check_golden(path, sizeof path, "chakra/wild/small_workload_graph.json"),
                       NULL, &t, &err),
        &err);
    const orr_columns *c = orr_trace_columns(t);
    CHECK_EQ_U(c->count, 7);
    CHECK_EQ_U(c->id[5], 435);
    CHECK_EQ(c->type[5], ORR_NODE_COMM_COLL);
    CHECK_EQ_U(c->duration_us[5], 28);
    CHECK_EQ_U(c->data_first[6] - c->data_first[5], 3); /* 432, 216, 217 */
    CHECK_EQ_U(c->data_dep[c->data_first[5]], 3);
    CHECK_EQ(c->is_cpu_op[5], 0);
    orr_trace_destroy(t);
}

/* ---- what is understood ---- */

TEST(test_trace_json__numbers_as_text_or_number)
{
    check_node("{\"id\": 18446744073709551615}", "08ffffffffffffffffff01");
    check_node("{\"id\": \"18446744073709551615\"}", "08ffffffffffffffffff01");
    check_node("{\"id\": 3.0}", "0803");
    check_node("{\"id\": 3e2}", "08ac02");
    check_node("{\"id\": 1, \"dataDeps\": [1, \"2\"]}", "08012a020102");
}

TEST(test_trace_json__both_spellings_of_keys)
{
    check_node(
        "{\"ctrlDeps\": [1], \"dataDeps\": [2], \"startTimeMicros\": 3, \"durationMicros\": 4}",
        "2201012a010230033804");
    check_node(
        "{\"ctrl_deps\": [1], \"data_deps\": [2], \"start_time_micros\": 3, \"duration_micros\": 4}",
        "2201012a010230033804");
}

TEST(test_trace_json__types_by_name_or_number)
{
    check_node("{\"type\": \"COMM_RECV_NODE\"}", "1806");
    check_node("{\"type\": 6}", "1806");
    check_node("{\"id\": 1, \"type\": \"INVALID_NODE\"}", "0801");
    check_node("{\"type\": \"CHECKPOINT_NODE\"}", "180a");
    check_reads_with("{}{\"type\": 42}", ORR_KEEP_UNKNOWN, "0002182a");
    check_reads_with("{}{\"type\": -1}", ORR_KEEP_UNKNOWN, "000b18ffffffffffffffffff01");
}

TEST(test_trace_json__null_and_defaults_are_absent)
{
    check_node(
        "{\"id\": \"1\", \"name\": null, \"type\": 0, \"dataDeps\": [], \"durationMicros\": \"0\", \"attr\": null}",
        "0801");
    check_node("{\"id\": \"1\", \"inputs\": {}, \"outputs\": {\"values\": \"\"}}", "080142004a00");
}

/* Records of length 0 are damage, so a node that has nothing but defaults says its id. */
TEST(test_trace_json__node_without_anything_has_id_0)
{
    check_node("{}", "0800");
}

TEST(test_trace_json__fields_are_written_in_their_order)
{
    check_node(
        "{\"attr\": [{\"stringVal\": \"v\", \"docString\": \"d\", \"name\": \"n\"}], \"type\": 4, \"id\": 1, "
        "\"inputs\": {\"types\": \"t\", \"shapes\": \"s\", \"values\": \"v\"}}",
        "0801"
        "1804"
        "4209"
        "0a0176"
        "120173"
        "1a0174"
        "520a"
        "0a016e"
        "120164"
        "ea010176");
}

/* Each text of a member, and its encoding with tag. */
TEST(test_trace_json__values_of_every_kind)
{
    static const char *const cases[][2] = {
        {"\"doubleVal\": 1.5", "19000000000000f83f"},
        {"\"doubleVal\": \"-Infinity\"", "19000000000000f0ff"},
        {"\"doubleVal\": \"NaN\"", "19000000000000f87f"},
        {"\"doubleVal\": 2", "190000000000000040"},
        {"\"doubleVal\": \"1.5\"", "19000000000000f83f"},
        {"\"floatVal\": 0.1", "2dcdcccc3d"},
        {"\"float_val\": \"Infinity\"", "2d0000807f"},
        {"\"int32Val\": -1", "38ffffffffffffffffff01"},
        {"\"int32Val\": \"-2147483648\"", "3880808080f8ffffffff01"},
        {"\"int64Val\": \"-9223372036854775808\"", "4880808080808080808001"},
        {"\"int64_val\": 0", "4800"},
        {"\"uint32Val\": 4294967295", "58ffffffff0f"},
        {"\"uint64Val\": \"18446744073709551615\"", "68ffffffffffffffffff01"},
        {"\"sint32Val\": -1", "7801"},
        {"\"sint64Val\": \"-1\"", "880101"},
        {"\"fixed32Val\": 4294967295", "9d01ffffffff"},
        {"\"fixed64Val\": \"1\"", "a9010100000000000000"},
        {"\"sfixed32Val\": -1", "bd01ffffffff"},
        {"\"sfixed64Val\": \"-1\"", "c901ffffffffffffffff"},
        {"\"boolVal\": false", "d80100"},
        {"\"stringVal\": \"\\u00e9\\ud83d\\ude00\"", "ea0106c3a9f09f9880"},
        {"\"stringVal\": \"\"", "ea0100"},
        {"\"bytesVal\": \"AP8=\"", "fa010200ff"},
        {"\"bytesVal\": \"AP8\"", "fa010200ff"},
        {"\"bytesVal\": \"__-_\"", "fa0103ffffbf"},
        {"\"int32List\": {}", "4200"},
        {"\"int32List\": {\"values\": []}", "4200"},
        {"\"boolList\": {\"values\": [true, false]}", "e201040a020100"},
        {"\"bool_list\": [true, false]", "e201040a020100"},
        {"\"stringList\": {\"values\": [\"a\", \"b\"]}", "f201060a01610a0162"},
        {"\"bytesList\": {\"values\": [\"//8=\"]}", "8202040a02ffff"},
        {"\"int64Val\": null, \"boolVal\": true", "d80101"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[200], hex[200];
        snprintf(text, sizeof text, "{\"attr\": [{%s}]}", cases[i][0]);
        snprintf(hex, sizeof hex, "52%02x%s", (unsigned)strlen(cases[i][1]) / 2, cases[i][1]);
        check_node(text, hex);
    }
}

TEST(test_trace_json__unknown_fields_come_back)
{
    check_node(
        "{\"id\": \"1\", \"inputs\": {\"unknownFields\": \"IgFz\"}, \"attr\": [{\"name\": \"x\", \"int32List\": "
        "{\"values\": [3], \"unknownFields\": \"EAE=\"}, \"unknownFields\": \"iAIB\"}], \"unknownFields\": \"WAc=\"}",
        "0801"
        "4203220173"
        "520d0a017842050a01031001880201"
        "5807");
    check_reads("{\"metadata\": {\"unknownFields\": \"GAE=\"}, \"nodes\": []}", "021801");
}

TEST(test_trace_json__lenient_passes_over_other_keys)
{
    check_reads_with(
        "{\"nodes\": [{\"id\": 1, \"color\": [{}], \"attr\": [{\"name\": \"a\", \"int65Val\": 3}]}], \"x\": {}}",
        ORR_KEEP_UNKNOWN, "07080152030a0161");
}

/* ---- what is refused ---- */

typedef struct bad_case {
    const char *text, *place, *words;
} bad_case;

static void check_bad(const bad_case *c)
{
    char place[100];
    orr_trace *t;
    orr_error err;
    CHECK_CODE(parse(c->text, ORR_STRICT, &t, &err), ORR_EINPUT, &err);
    CHECK(t == NULL);
    snprintf(place, sizeof place, "test.json:%s: ", c->place);
    CHECK_SAYS(&err, place);
    CHECK_SAYS(&err, c->words);
}

TEST(test_trace_json__bad_values_are_named_with_their_place)
{
    static const bad_case cases[] = {
        {"{}\n{\"id\": -1}", "2:8", "from 0 to 18446744073709551615, found -1"},
        {"{}{\"id\": 18446744073709551616}", "1:10", "found 18446744073709551616"},
        {"{}{\"id\": 1.5}", "1:10", "found 1.5"},
        {"{}{\"id\": \"x\"}", "1:10", "found \"x\""},
        {"{}{\"id\": true}", "1:10", "found true"},
        {"{}{\"name\": 5}", "1:12", "expected a string, found 5"},
        {"{}{\"type\": \"COMP\"}", "1:12", "a name such as \"COMP_NODE\""},
        {"{}{\"type\": 11}", "1:12", "0 to 10, found 11"},
        {"{}{\"dataDeps\": 4}", "1:16", "expected an array, found 4"},
        {"{}{\"dataDeps\": [1, {}]}", "1:20", "found {}"},
        {"{}{\"inputs\": []}", "1:14", "expected an object"},
        {"{}{\"inputs\": {\"value\": \"\"}}", "1:24", "no member \"value\""},
        {"{}{\"attr\": {}}", "1:12", "expected an array"},
        {"{}{\"attr\": [3]}", "1:13", "an attribute"},
        {"{}{\"attr\": [{\"int32Val\": 2147483648}]}", "1:26", "-2147483648 to 2147483647"},
        {"{}{\"attr\": [{\"uint32Val\": 4294967296}]}", "1:27", "0 to 4294967295"},
        {"{}{\"attr\": [{\"int64Val\": \"9223372036854775808\"}]}", "1:26", "64 bits"},
        {"{}{\"attr\": [{\"floatVal\": 1e39}]}", "1:26", "fits a float"},
        {"{}{\"attr\": [{\"doubleVal\": 1e999}]}", "1:27", "fits a double"},
        {"{}{\"attr\": [{\"doubleVal\": \"many\"}]}", "1:27", "expected a number"},
        {"{}{\"attr\": [{\"boolVal\": 1}]}", "1:25", "true or false"},
        {"{}{\"attr\": [{\"bytesVal\": \"AP*=\"}]}", "1:26", "not base64: wrong at character 3"},
        {"{}{\"attr\": [{\"bytesVal\": \"A\"}]}", "1:26", "not base64"},
        {"{}{\"attr\": [{\"boolVal\": true, \"int32Val\": 1}]}", "1:43",
         "\"int32Val\" is a second one"},
        {"{}{\"attr\": [{\"boolList\": {\"values\": 1}}]}", "1:37", "expected an array"},
        {"{}{\"unknownFields\": \"CA==\"}", "1:3", "the record ends inside a number"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        check_bad(&cases[i]);
}

TEST(test_trace_json__bad_structure_is_named_with_its_place)
{
    static const bad_case cases[] = {
        {"{}{\"colour\": 1}", "1:14", "a node has no member \"colour\""},
        {"{}{\"id\": 1, \"id\": 2}", "1:19", "duplicate key \"id\""},
        {"{}{\"dataDeps\": [], \"data_deps\": []}", "1:33", "duplicate key \"data_deps\""},
        {"{}[]", "1:3", "expected an object"},
        {"{}{\"id\": 1", "1:11", "ends inside the object"},
        {"{\"format\": \"chrome\", \"nodes\": []}", "1:12", "not \"orrery-trace\""},
        {"{\"format\": \"orrery-trace\", \"version\": 2}", "1:39", "knows version 1"},
        {"{\"nodes\": {}}", "1:11", "expected an array of nodes"},
        {"{\"nodes\": []}{}", "1:14", "after the end"},
        {"[{}] {}", "1:6", "after the end"},
        {"{\"nodes\": [{\"id\": 1}], \"metadata\": {}}", "1:36", "before all nodes"},
        {"{\"metadata\": {\"unknownFields\": \"Cg==\"}}", "1:14", "the metadata: "},
        {"{\"nodes\": [], \"edges\": []}", "1:24", "a trace has no member \"edges\""},
        {"{\"workload_graph\": [{\"Name\": \"n\"}]}", "1:21", "no \"Id\""},
        {"{\"workload_graph\": [{\"Id\": 1}]}", "1:21", "no \"NodeType\""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        check_bad(&cases[i]);
}

TEST(test_trace_json__metadata_can_be_required)
{
    const orr_read_options opt = {.size = sizeof opt, .first_is_metadata = true};
    orr_trace *t;
    orr_error err;
    CHECK_CODE(orr_trace_parse(span_of(NODE_1), "test.json", &opt, &t, &err), ORR_EINPUT, &err);
    CHECK_SAYS(&err, "not metadata");
    CHECK_OK(orr_trace_parse(span_of(META NODE_1), "test.json", &opt, &t, &err), &err);
    orr_trace_destroy(t);
}

TEST(test_trace_json__nodes_remember_their_place)
{
    orr_trace *t;
    orr_error err;
    CHECK_OK(parse(META "\n" NODE_1 "\n" NODE_2, ORR_STRICT, &t, &err), &err);
    CHECK_EQ_U(orr_trace_where(t, 0).byte, strlen(META) + 1);
    CHECK_EQ_U(orr_trace_where(t, 1).byte, strlen(META NODE_1) + 2);
    orr_trace_destroy(t);
}

/* ---- there and back ---- */

static orr_value random_value(orr_value_kind kind, uint64_t *seed)
{
    static char text[] = "a text with \"quotes\", \xc3\xa9 and \x01";
    const uint64_t r = next_random(seed) >> (next_random(seed) % 64);
    orr_value v = {.u = r};
    switch (kind) {
    case ORR_VALUE_DOUBLE:
        v.d = (double)r * 0.37 - 5;
        break;
    case ORR_VALUE_FLOAT:
        v.d = (double)((float)r * 0.37f - 5);
        break;
    case ORR_VALUE_INT32:
    case ORR_VALUE_SINT32:
    case ORR_VALUE_SFIXED32:
        v.i = (int32_t)(uint32_t)r;
        break;
    case ORR_VALUE_UINT32:
    case ORR_VALUE_FIXED32:
        v.u = (uint32_t)r;
        break;
    case ORR_VALUE_BOOL:
        v.u = r & 1;
        break;
    case ORR_VALUE_STRING:
        v.s = (orr_str){text, r % 2 ? sizeof text - 1 : 0};
        break;
    case ORR_VALUE_BYTES:
        v.s = (orr_str){text, r % sizeof text};
        break;
    default:
        break;
    }
    return v;
}

enum { MOST_ATTRS = 5, MOST_ITEMS = 4 };

static void append_random(orr_trace *t, uint64_t *seed)
{
    static const orr_io io = {{"[1, 2]", 6}, {"", 0}, {"['Tensor(float)']", 17}};
    orr_attr attrs[MOST_ATTRS];
    orr_value items[MOST_ATTRS][MOST_ITEMS];
    uint64_t deps[4];
    orr_error err;
    const size_t count = next_random(seed) % (MOST_ATTRS + 1);
    for (size_t i = 0; i < count; i++) {
        const orr_value_kind kind =
            (orr_value_kind)(1 + next_random(seed) % (ORR_VALUE_KIND_COUNT - 1));
        attrs[i] = (orr_attr){.name = orr_str_of("name"),
                              .doc = {"", 0},
                              .kind = kind,
                              .is_list = next_random(seed) & 1};
        attrs[i].value = random_value(kind, seed);
        for (size_t k = 0; k < MOST_ITEMS; k++)
            items[i][k] = random_value(kind, seed);
        attrs[i].items = items[i];
        attrs[i].item_count = next_random(seed) % (MOST_ITEMS + 1);
    }
    for (size_t i = 0; i < 4; i++)
        deps[i] = next_random(seed) >> (next_random(seed) % 64);
    const orr_draft node = {.id = next_random(seed) >> (next_random(seed) % 64),
                            .name = {"node", next_random(seed) % 5},
                            .type = (uint32_t)(next_random(seed) % ORR_NODE_TYPE_COUNT),
                            .data_deps = deps,
                            .data_count = next_random(seed) % 5,
                            .ctrl_deps = deps + 1,
                            .ctrl_count = next_random(seed) % 2,
                            .start_us = next_random(seed) % 2,
                            .duration_us = next_random(seed) % 1000,
                            .inputs = next_random(seed) % 2 ? &io : NULL,
                            .outputs =
                                next_random(seed) % 2 ? &(orr_io){{"", 0}, {"", 0}, {"", 0}} : NULL,
                            .attrs = attrs,
                            .attr_count = count,
                            .unknown = {(const uint8_t *)"\x58\x07", next_random(seed) % 2 * 2}};
    CHECK_OK(orr_trace_append(t, &node, &err), &err);
}

static void check_round(const orr_trace *t, orr_view_form form)
{
    const orr_view_json_options opt = {.size = sizeof opt, .form = form};
    orr_trace *back;
    orr_error err;
    CHECK_OK(orr_view_json(t, "there.json.zst", &opt, &err), &err);
    CHECK_OK(orr_trace_read("there.json.zst", NULL, &back, &err), &err);
    CHECK_OK(orr_trace_write(back, "back.et", NULL, &err), &err);
    orr_trace_destroy(back);
    orr_buf got = read_file("back.et");
    check_file("direct.et", got.ptr, got.len);
    orr_buf_fini(&got);
}

TEST(test_trace_json__random_traces_come_back_as_they_were)
{
    for (uint64_t seed = 1; seed <= 20; seed++) {
        uint64_t random = seed;
        const orr_meta meta = {.version = orr_str_of("1.0.0")};
        orr_trace *t;
        orr_error err;
        CHECK_OK(orr_trace_create(seed % 2 ? &meta : NULL, &t, &err), &err);
        for (unsigned i = 0; i < 100; i++)
            append_random(t, &random);
        CHECK_OK(orr_trace_seal(t, &err), &err);
        CHECK_OK(orr_trace_write(t, "direct.et", NULL, &err), &err);
        check_round(t, ORR_VIEW_JSON);
        check_round(t, ORR_VIEW_JSONL);
        orr_trace_destroy(t);
    }
}

int main(void)
{
    const CMUnitTest tests[] = {
        RUN(test_trace_json__json_is_recognised),
        RUN(test_trace_json__other_things_are_not_json),
        RUN(test_trace_json__et_of_123_bytes_is_not_json),
        RUN(test_trace_json__document),
        RUN(test_trace_json__lines),
        RUN(test_trace_json__objects_one_behind_the_other),
        RUN(test_trace_json__array),
        RUN(test_trace_json__without_metadata),
        RUN(test_trace_json__empty_metadata_is_metadata),
        RUN(test_trace_json__workload_graph),
        RUN(test_trace_json__workload_graph_of_the_reference),
        RUN(test_trace_json__numbers_as_text_or_number),
        RUN(test_trace_json__both_spellings_of_keys),
        RUN(test_trace_json__types_by_name_or_number),
        RUN(test_trace_json__null_and_defaults_are_absent),
        RUN(test_trace_json__node_without_anything_has_id_0),
        RUN(test_trace_json__fields_are_written_in_their_order),
        RUN(test_trace_json__values_of_every_kind),
        RUN(test_trace_json__unknown_fields_come_back),
        RUN(test_trace_json__lenient_passes_over_other_keys),
        RUN(test_trace_json__bad_values_are_named_with_their_place),
        RUN(test_trace_json__bad_structure_is_named_with_its_place),
        RUN(test_trace_json__metadata_can_be_required),
        RUN(test_trace_json__nodes_remember_their_place),
        RUN(test_trace_json__random_traces_come_back_as_they_were),
    };
    return RUN_ALL(tests);
}
