/* SPDX-License-Identifier: Apache-2.0 */
#include "check.h"

#include "base/formats/json.h"
#include "base/formats/json_impl.h"

#include <math.h>
#include <sys/mman.h>

static orr_error err;

static orr_json *open_pieces(orr_str text, size_t piece)
{
    orr_json *j;
    const orr_span bytes = {.ptr = (const uint8_t *)text.ptr, .len = text.len};
    CHECK_OK(orr__json_open_pieces(bytes, "t.json", piece, &j, &err), &err);
    return j;
}

static orr_json *open_text(const char *text)
{
    return open_pieces(orr_str_of(text), 1 << 18);
}

static orr_json_value find(orr_json_value v, const char *key)
{
    orr_json_value out = v;
    CHECK(orr_json_find(v, key, &out));
    return out;
}

static bool text_is(orr_json_value v, const char *want)
{
    orr_str s;
    CHECK_OK(orr_json_get_str(v, &s, &err), &err);
    return orr_str_is(s, want);
}

TEST(test_json_reader__a_tree_gives_every_type)
{
    orr_json_value root;
    int64_t i;
    uint64_t u;
    double d;
    bool b;
    orr_json *j =
        open_text("{\"i\": -9223372036854775808, \"u\": 18446744073709551615, \"d\": 2.5e3,\n"
                  " \"t\": true, \"f\": false, \"n\": null, \"s\": \"x\", \"a\": [1, [], {}],"
                  " \"big\": 123456789012345678901234567890}");
    CHECK_OK(orr_json_only(j, &root, &err), &err);
    CHECK_EQ(orr_json_count(root), 9);
    CHECK_OK(orr_json_get_i64(find(root, "i"), &i, &err), &err);
    CHECK(i == INT64_MIN);
    CHECK_OK(orr_json_get_u64(find(root, "u"), &u, &err), &err);
    CHECK(u == UINT64_MAX);
    CHECK_OK(orr_json_get_double(find(root, "d"), &d, &err), &err);
    CHECK(d == 2500);
    CHECK_OK(orr_json_get_bool(find(root, "t"), &b, &err), &err);
    CHECK(b);
    CHECK_OK(orr_json_get_bool(find(root, "f"), &b, &err), &err);
    CHECK(!b);
    CHECK(orr_json_type_of(find(root, "n")) == ORR_JSON_NULL);
    CHECK(text_is(find(root, "s"), "x"));
    CHECK_EQ(orr_json_count(find(root, "a")), 3);
    CHECK_CODE(orr_json_get_u64(find(root, "big"), &u, &err), ORR_EINPUT, &err);
    CHECK(orr_str_is(orr_json_raw(find(root, "big")), "123456789012345678901234567890"));
    CHECK(orr_json_type_of(find(root, "d")) == ORR_JSON_REAL);
    CHECK_TEXT(orr_json_type_name(orr_json_type_of(find(root, "a"))), "an array");
    orr_json_close(j);
}

TEST(test_json_reader__a_value_of_another_type_says_its_place)
{
    orr_json_value root;
    int64_t i;
    orr_str s;
    orr_json *j = open_text("{\n  \"a\": 1,\n  \"é\": \"4O0\", \"o\": {}\n}");
    CHECK_OK(orr_json_only(j, &root, &err), &err);
    CHECK_CODE(orr_json_get_i64(find(root, "é"), &i, &err), ORR_EINPUT, &err);
    CHECK_SAYS(&err, "t.json:3:8: expected an integer, found \"4O0\"");
    CHECK_EQ(err.where.byte, 20); /* é has two bytes but one column */
    CHECK_CODE(orr_json_get_str(find(root, "o"), &s, &err), ORR_EINPUT, &err);
    CHECK_SAYS(&err, "expected a string, found an object");
    orr_json_close(j);
}

TEST(test_json_reader__strings_are_decoded)
{
    orr_json_value root;
    orr_str s;
    orr_json_iter it;
    orr_json_value v;
    orr_json *j =
        open_text("[\"a\\\"\\\\\\/\\b\\f\\n\\r\\tz\", \"\\u00e9\\u20AC\", \"\\ud83d\\ude00\","
                  " \"\\ud83d\", \"\\ude00x\", \"\\ud83d\\u0041\", \"\\u0000\", \"\"]");
    static const char *const want[] = {"a\"\\/\b\f\n\r\tz", "\xC3\xA9\xE2\x82\xAC",
                                       "\xF0\x9F\x98\x80",  "\xEF\xBF\xBD",
                                       "\xEF\xBF\xBDx",     "\xEF\xBF\xBD\x41"};
    CHECK_OK(orr_json_only(j, &root, &err), &err);
    it = orr_json_iterate(root);
    for (size_t i = 0; i < 6; i++) {
        CHECK(orr_json_next_value(&it, &v));
        CHECK(text_is(v, want[i]));
    }
    CHECK(orr_json_next_value(&it, &v));
    CHECK_OK(orr_json_get_str(v, &s, &err), &err);
    CHECK(s.len == 1 && s.ptr[0] == '\0');
    CHECK(orr_str_is(orr_json_raw(v), "\"\\u0000\""));
    CHECK(orr_json_next_value(&it, &v));
    CHECK(text_is(v, ""));
    CHECK(!orr_json_next_value(&it, &v));
    orr_json_close(j);
}

TEST(test_json_reader__keys_keep_their_order_and_repeat)
{
    orr_json_value root, v;
    orr_str key;
    char order[8] = "";
    orr_json *j = open_text("{\"b\":1,\"\\u0061\":2,\"b\":3,\"c\":{\"b\":4}}");
    CHECK_OK(orr_json_only(j, &root, &err), &err);
    orr_json_iter it = orr_json_iterate(root);
    for (size_t i = 0; orr_json_next_member(&it, &key, &v); i++)
        order[i] = key.ptr[0];
    CHECK_TEXT(order, "babc");
    CHECK(orr_str_is(orr_json_raw(find(root, "b")), "3")); /* the last one counts */
    CHECK(orr_str_is(orr_json_raw(find(root, "c")), "{\"b\":4}"));
    CHECK(!orr_json_find(root, "d", &v));
    CHECK(!orr_json_find(find(root, "a"), "d", &v)); /* not an object */
    orr_json_close(j);
}

TEST(test_json_reader__wrong_iteration_sees_nothing)
{
    orr_json_value root, v;
    orr_str key;
    orr_json *j = open_text("{\"a\":[\"x\",\"y\"],\"b\":7}");
    CHECK_OK(orr_json_only(j, &root, &err), &err);
    orr_json_iter it = orr_json_iterate(find(root, "a"));
    CHECK(!orr_json_next_member(&it, &key, &v));
    it = orr_json_iterate(find(root, "b"));
    CHECK(!orr_json_next_value(&it, &v));
    it = orr_json_iterate(root); /* an object's values, without the keys */
    CHECK(orr_json_next_value(&it, &v) && orr_json_type_of(v) == ORR_JSON_ARRAY);
    CHECK(orr_json_next_value(&it, &v) && orr_json_type_of(v) == ORR_JSON_INT);
    CHECK(!orr_json_next_value(&it, &v));
    orr_json_close(j);
}

TEST(test_json_reader__documents_follow_one_another)
{
    static const char text[] = " {\"a\":1}{\"a\":2}\n[3]\n\"four\" 5\n";
    static const uint64_t starts[] = {1, 8, 16, 20, 27};
    orr_json_value v;
    orr_code code;
    size_t n = 0;
    orr_json *j = open_text(text);
    while ((code = orr_json_document(j, &v, &err)) == ORR_OK) {
        CHECK(n < 5);
        CHECK_EQ_U(orr_json_byte(v), starts[n]);
        n++;
    }
    CHECK(code == ORR_END && n == 5);
    orr_json_close(j);
}

TEST(test_json_reader__only_wants_one_document)
{
    orr_json_value v;
    orr_json *j = open_text(" \n ");
    CHECK_CODE(orr_json_only(j, &v, &err), ORR_EINPUT, &err);
    CHECK_SAYS(&err, "empty");
    orr_json_close(j);
    j = open_text("{}\n{}");
    CHECK_CODE(orr_json_only(j, &v, &err), ORR_EINPUT, &err);
    CHECK_SAYS(&err, "t.json:2:1: expected nothing more after the document, found '{'");
    orr_json_close(j);
}

/* {"skip": ..., "list": [{"v":0}, {"v":1}, ...], "after": 1}: the sum of v, walking. */
static int64_t sum_list(orr_json *j, uint64_t *after)
{
    orr_json_item item;
    orr_json_value v;
    orr_code code;
    int64_t sum = 0, one;
    CHECK_OK(orr_json_next(j, &item, &err), &err);
    CHECK(item.type == ORR_JSON_OBJECT && item.depth == 0);
    CHECK_OK(orr_json_enter(j, &err), &err);
    while ((code = orr_json_next(j, &item, &err)) == ORR_OK) {
        CHECK_EQ(item.depth, 1);
        if (orr_str_is(item.key, "after"))
            *after = item.byte;
        if (!orr_str_is(item.key, "list"))
            continue;
        CHECK_OK(orr_json_enter(j, &err), &err);
        while ((code = orr_json_next(j, &item, &err)) == ORR_OK) {
            CHECK_OK(orr_json_load(j, &v, &err), &err);
            CHECK_OK(orr_json_get_i64(find(v, "v"), &one, &err), &err);
            sum += one;
        }
        CHECK(code == ORR_END);
    }
    CHECK_CODE(code, ORR_END, &err);
    CHECK(orr_json_next(j, &item, &err) == ORR_END); /* of the input */
    return sum;
}

TEST(test_json_reader__walks_whatever_the_piece_size)
{
    orr_buf b = {0};
    uint64_t after = 0;
    orr_buf_text(&b, "{\"skip\": [[1,{\"x\\\\\\\"]\":null}],\"a \\\\\"], \"\\u006cist\":[");
    for (int i = 0; i < 200; i++)
        orr_buf_print(&b, "%s{\"na\\\\me\": \"é%d\\\"\",%s\"v\":%d}", i ? "," : "", i,
                      i % 7 ? "" : "\n", i);
    orr_buf_text(&b, "],\"after\":true}");
    const orr_str text = {.ptr = (const char *)b.ptr, .len = b.len};
    for (size_t piece = 1; piece < 300; piece++) {
        orr_json *j = open_pieces(text, piece);
        CHECK_EQ(sum_list(j, &after), 199 * 100); /* 0 + 1 + ... + 199 */
        CHECK_EQ_U(after, text.len - 5);
        orr_json_close(j);
    }
    orr_buf_fini(&b);
}

TEST(test_json_reader__only_containers_are_entered)
{
    orr_json_item item;
    orr_json *j = open_text("[4]");
    CHECK_OK(orr_json_next(j, &item, &err), &err);
    CHECK_OK(orr_json_enter(j, &err), &err);
    CHECK_OK(orr_json_next(j, &item, &err), &err);
    CHECK_EQ_U(item.byte, 1);
    CHECK_CODE(orr_json_enter(j, &err), ORR_EINPUT, &err);
    CHECK_SAYS(&err, "t.json:1:2: expected an array or an object, found '4'");
    orr_json_close(j);
}

TEST(test_json_reader__misuse_is_said_and_harmless)
{
    orr_json_item item;
    orr_json_value v;
    orr_json *j = open_text("[1]");
    CHECK_CODE(orr_json_enter(j, &err), ORR_EUSAGE, &err);
    CHECK_OK(orr_json_next(j, &item, &err), &err);
    CHECK_OK(orr_json_load(j, &v, &err), &err);
    CHECK_CODE(orr_json_load(j, &v, &err), ORR_EUSAGE, &err);
    CHECK(orr_json_next(j, &item, &err) == ORR_END);
    orr_json_close(j);
}

typedef struct bad_text {
    const char *text;
    uint32_t byte;
    const char *words;
} bad_text;

static const bad_text bad_texts[] = {
    {"{", 1, "ends inside the object that begins at line 1, column 1"},
    {"[1,", 3, "ends inside the array"},
    {"[1 2]", 3, "expected ',' or ']', found '2'"},
    {"[1,]", 3, "expected a value, found ']'"},
    {"[,1]", 1, "expected a value, found ','"},
    {"{\"a\" 1}", 5, "expected ':' after a key, found '1'"},
    {"{\"a\":1,}", 7, "expected a key, found '}'"},
    {"{\"a\":1 \"b\":2}", 7, "expected ',' or '}', found '\"'"},
    {"{1:2}", 1, "expected a key or '}', found '1'"},
    {"{\"a\":}", 5, "expected a value, found '}'"},
    {"[1}", 2, "expected ',' or ']', found '}'"},
    {"]", 0, "expected a value, found ']'"},
    {"[tru]", 1, "expected a value, found 't'"},
    {"[truex]", 1, "expected a value"},
    {"[nul\n]", 1, "expected a value"},
    {"[01]", 1, "not a number as JSON writes it"},
    {"[1.]", 1, "not a number"},
    {"[-]", 1, "not a number"},
    {"[1e]", 1, "not a number"},
    {"[1\"a\"]", 1, "not a number"},
    {"[+1]", 1, "expected a value, found '+'"},
    {"[\"a\"\"b\"]", 4, "expected ',' or ']'"},
    {"[\"a\"x]", 4, "expected ',' or ']'"},
    {"[\"abc", 1, "this string has no end"},
    {"[\"a\\\"]", 1, "this string has no end"},
    {"[\"a\\x\"]", 3, "\\x does not begin a valid escape"},
    {"[\"a\\u12g4\"]", 3, "\\u does not begin a valid escape"},
    {"[\"a\\u12\"]", 3, "\\u does not begin"},
    {"[\"a\nb\"]", 3, "control character 0x0a"},
    {"[\"a\x01\"]", 3, "control character 0x01"},
    {"[\"a\xFF\"]", 3, "byte 0xff is not valid UTF-8"},
    {"[\"\xC0\x80\"]", 2, "not valid UTF-8"},
    {"[\"\xED\xA0\x80\"]", 2, "not valid UTF-8"},
    {"[\"\xE2\x82\"]", 2, "not valid UTF-8"},
    {"[1,\xC3\xA9]", 3, "expected a value, found byte 0xc3"},
    {"\\\"a\"", 0, "expected a value"},
    {"[1] x", 4, "expected a value, found 'x'"},
    {"[1],[2]", 3, "expected a value, found ','"},
    {"{\"\\q\":1}", 2, "\\q does not begin"},
    {"\v1", 0, "expected a value, found byte 0x0b"},
};

typedef enum way { LOAD, PASS_OVER, WALK } way;

static orr_code walk_all(orr_json *j)
{
    orr_json_item item;
    orr_code code;
    while ((code = orr_json_next(j, &item, &err)) == ORR_OK) {
        if (item.type < ORR_JSON_ARRAY)
            continue;
        if ((code = orr_json_enter(j, &err)) || (code = walk_all(j)) != ORR_END)
            return code;
    }
    return code;
}

static orr_code read_all(orr_json *j, way how)
{
    orr_json_item item;
    orr_json_value v;
    orr_code code;
    if (how == WALK)
        return walk_all(j);
    do
        code = how == LOAD ? orr_json_document(j, &v, &err) : orr_json_next(j, &item, &err);
    while (code == ORR_OK);
    return code;
}

TEST(test_json_reader__every_fault_names_its_byte)
{
    for (size_t i = 0; i < sizeof bad_texts / sizeof *bad_texts; i++) {
        for (int how = LOAD; how <= WALK; how++) {
            for (size_t piece = 1; piece <= 16; piece++) {
                const bad_text *b = &bad_texts[i];
                orr_json *j = open_pieces(orr_str_of(b->text), piece);
                CHECK_CODE(read_all(j, (way)how), ORR_EINPUT, &err);
                CHECK_SAYS(&err, b->words);
                CHECK_EQ_U(err.where.byte, b->byte);
                memset(&err, 0, sizeof err);
                CHECK_CODE(read_all(j, (way)how), ORR_EINPUT, &err); /* and again */
                CHECK_SAYS(&err, b->words);
                orr_json_close(j);
            }
        }
    }
}

static char *nested(int levels)
{
    char *text = malloc((size_t)levels * 2 + 1);
    CHECK(text);
    memset(text, '[', (size_t)levels);
    memset(text + levels, ']', (size_t)levels);
    text[2 * levels] = '\0';
    return text;
}

TEST(test_json_reader__nesting_has_a_limit)
{
    for (int how = LOAD; how <= WALK; how++) {
        char *fits = nested(ORR_JSON_DEPTH), *deep = nested(ORR_JSON_DEPTH + 1);
        orr_json *j = open_text(fits);
        CHECK_CODE(read_all(j, (way)how), ORR_END, &err);
        orr_json_close(j);
        j = open_text(deep);
        CHECK_CODE(read_all(j, (way)how), ORR_EINPUT, &err);
        CHECK_SAYS(&err, "more than 512 levels of nesting");
        CHECK_EQ_U(err.where.byte, ORR_JSON_DEPTH);
        orr_json_close(j);
        free(fits);
        free(deep);
    }
}

TEST(test_json_reader__numbers_beyond_json_that_python_writes)
{
    orr_json_value root, v;
    double d;
    orr_json *j = open_text("[NaN,Infinity,-Infinity]");
    CHECK_OK(orr_json_only(j, &root, &err), &err);
    orr_json_iter it = orr_json_iterate(root);
    CHECK(orr_json_next_value(&it, &v));
    CHECK(orr_json_type_of(v) == ORR_JSON_REAL);
    CHECK_OK(orr_json_get_double(v, &d, &err), &err);
    CHECK(isnan(d));
    CHECK(orr_json_next_value(&it, &v));
    CHECK_OK(orr_json_get_double(v, &d, &err), &err);
    CHECK(d == INFINITY);
    CHECK(orr_json_next_value(&it, &v));
    CHECK_OK(orr_json_get_double(v, &d, &err), &err);
    CHECK(d == -INFINITY);
    orr_json_close(j);
}

TEST(test_json_reader__a_byte_order_mark_is_passed_over)
{
    orr_json_value root;
    orr_json *j = open_text("\xEF\xBB\xBF[1]");
    CHECK_OK(orr_json_only(j, &root, &err), &err);
    CHECK_EQ_U(orr_json_byte(root), 3);
    orr_json_close(j);
}

/* The text ends where a page ends and the next page may not be touched. */
TEST(test_json_reader__nothing_behind_the_input_is_read)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char *two = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(two != MAP_FAILED);
    CHECK(mprotect(two + page, page, PROT_NONE) == 0);
    static const char *const texts[] = {"[1,\"abcdefghijklmnop\",true]",
                                        "123",
                                        "\"ab",
                                        "[\"a\\",
                                        "true",
                                        "tru",
                                        "[1,2",
                                        "-",
                                        "1.",
                                        "\"\\u12",
                                        "{\"a\":\"\xE2\x82"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        for (int how = LOAD; how <= WALK; how++) {
            const size_t n = strlen(texts[i]);
            memcpy(two + page - n, texts[i], n);
            orr_json *j = open_pieces((orr_str){.ptr = two + page - n, .len = n}, 1 << 18);
            const orr_code code = read_all(j, (way)how);
            CHECK(code == ORR_END || code == ORR_EINPUT);
            orr_json_close(j);
        }
    }
    munmap(two, 2 * page);
}

int main(void)
{
    const CMUnitTest tests[] = {
        RUN(test_json_reader__a_tree_gives_every_type),
        RUN(test_json_reader__a_value_of_another_type_says_its_place),
        RUN(test_json_reader__strings_are_decoded),
        RUN(test_json_reader__keys_keep_their_order_and_repeat),
        RUN(test_json_reader__wrong_iteration_sees_nothing),
        RUN(test_json_reader__documents_follow_one_another),
        RUN(test_json_reader__only_wants_one_document),
        RUN(test_json_reader__walks_whatever_the_piece_size),
        RUN(test_json_reader__only_containers_are_entered),
        RUN(test_json_reader__misuse_is_said_and_harmless),
        RUN(test_json_reader__every_fault_names_its_byte),
        RUN(test_json_reader__nesting_has_a_limit),
        RUN(test_json_reader__numbers_beyond_json_that_python_writes),
        RUN(test_json_reader__a_byte_order_mark_is_passed_over),
        RUN(test_json_reader__nothing_behind_the_input_is_read),
    };
    return RUN_ALL(tests);
}
