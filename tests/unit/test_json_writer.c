/* SPDX-License-Identifier: Apache-2.0 */
#include "check.h"

#include "base/formats/json.h"

#include <math.h>

static const char *written(orr_buf *b)
{
    CHECK(!b->failed);
    orr_buf_byte(b, 0);
    return (const char *)b->ptr;
}

static void write_sample(orr_json_writer *w)
{
    orr_json_begin_object(w);
    orr_json_key(w, "a");
    orr_json_begin_array(w);
    orr_json_i64(w, -1);
    orr_json_u64(w, UINT64_MAX);
    orr_json_begin_array(w);
    orr_json_end_array(w);
    orr_json_begin_object(w);
    orr_json_end_object(w);
    orr_json_end_array(w);
    orr_json_key(w, "b");
    orr_json_double(w, 0.5);
    orr_json_key_str(w, (orr_str){.ptr = "cd", .len = 1});
    orr_json_bool(w, true);
    orr_json_key(w, "n");
    orr_json_null(w);
    orr_json_key(w, "r");
    orr_json_raw_text(w, orr_str_of("[1]"));
    orr_json_end_object(w);
}

static void check_style(orr_json_style style, const char *want)
{
    orr_buf b = {0};
    orr_json_writer w;
    orr_json_writer_init(&w, &b, &style);
    write_sample(&w);
    CHECK_TEXT(written(&b), want);
    orr_buf_fini(&b);
}

/* The expected texts are what json.dumps gives with separators=(",", ":"), by default, and with
 * indent=2. */
TEST(test_json_writer__styles_are_those_of_python)
{
    check_style(
        (orr_json_style){0},
        "{\"a\":[-1,18446744073709551615,[],{}],\"b\":0.5,\"c\":true,\"n\":null,\"r\":[1]}");
    check_style((orr_json_style){.spaced = true},
                "{\"a\": [-1, 18446744073709551615, [], {}], \"b\": 0.5, \"c\": true, \"n\": null, "
                "\"r\": [1]}");
    check_style((orr_json_style){.indent = 2},
                "{\n  \"a\": [\n    -1,\n    18446744073709551615,\n    [],\n    {}\n  ],\n"
                "  \"b\": 0.5,\n  \"c\": true,\n  \"n\": null,\n  \"r\": [1]\n}");
}

static void check_quote(orr_str s, bool ascii, const char *want)
{
    orr_buf b = {0};
    orr_json_quote(&b, s, ascii);
    CHECK_TEXT(written(&b), want);
    orr_buf_fini(&b);
}

TEST(test_json_writer__strings_are_escaped)
{
    check_quote(orr_str_of("plain text of some length"), false, "\"plain text of some length\"");
    check_quote(orr_str_of("\"\\/\b\f\n\r\t\x01\x1f\x7f"), false,
                "\"\\\"\\\\/\\b\\f\\n\\r\\t\\u0001\\u001f\x7f\"");
    check_quote((orr_str){.ptr = "a\0b", .len = 3}, false, "\"a\\u0000b\"");
    check_quote(orr_str_of("é€😀"), false, "\"é€😀\"");
    check_quote(orr_str_of(""), false, "\"\"");
}

TEST(test_json_writer__ascii_style_escapes_the_rest)
{
    check_quote(orr_str_of("é€😀\x7f~"), true, "\"\\u00e9\\u20ac\\ud83d\\ude00\\u007f~\"");
}

TEST(test_json_writer__invalid_utf8_is_replaced)
{
    check_quote(orr_str_of("a\xFFz"), false, "\"a\xEF\xBF\xBDz\"");
    check_quote(orr_str_of("a\xE2\x82"), true, "\"a\\ufffd\\ufffd\"");
    check_quote(orr_str_of("\xED\xA0\x80"), true, "\"\\ufffd\\ufffd\\ufffd\"");
}

/* Every byte at every place of an eight-byte word. */
TEST(test_json_writer__finds_every_byte_that_needs_escaping)
{
    for (int c = 0; c < 128; c++) {
        for (size_t place = 0; place < 20; place++) {
            char text[20];
            orr_buf b = {0};
            orr_json *j;
            orr_json_value v;
            orr_str back;
            orr_error err;
            memset(text, 'a', sizeof text);
            text[place] = (char)c;
            orr_json_quote(&b, (orr_str){.ptr = text, .len = sizeof text}, place % 2);
            CHECK_OK(orr_json_open((orr_span){.ptr = b.ptr, .len = b.len}, NULL, &j, &err), &err);
            CHECK_OK(orr_json_only(j, &v, &err), &err);
            CHECK_OK(orr_json_get_str(v, &back, &err), &err);
            CHECK_EQ_U(back.len, sizeof text);
            CHECK_BYTES(back.ptr, text, sizeof text);
            orr_json_close(j);
            orr_buf_fini(&b);
        }
    }
}

TEST(test_json_writer__documents_stand_alone)
{
    orr_buf b = {0};
    orr_json_writer w;
    orr_json_writer_init(&w, &b, NULL);
    orr_json_i64(&w, 1);
    orr_buf_byte(&b, '\n');
    orr_json_begin_array(&w);
    orr_json_text(&w, "x");
    orr_json_end_array(&w);
    CHECK_TEXT(written(&b), "1\n[\"x\"]");
    orr_buf_fini(&b);
}

TEST(test_json_writer__numbers_without_end_are_words)
{
    orr_buf b = {0};
    orr_json_writer w;
    orr_json_writer_init(&w, &b, NULL);
    orr_json_begin_array(&w);
    orr_json_double(&w, NAN);
    orr_json_double(&w, -INFINITY);
    orr_json_double(&w, INFINITY);
    orr_json_double(&w, 0.1);
    orr_json_end_array(&w);
    CHECK_TEXT(written(&b), "[NaN,-Infinity,Infinity,0.1]");
    orr_buf_fini(&b);
}

int main(void)
{
    const CMUnitTest tests[] = {
        RUN(test_json_writer__styles_are_those_of_python),
        RUN(test_json_writer__strings_are_escaped),
        RUN(test_json_writer__ascii_style_escapes_the_rest),
        RUN(test_json_writer__invalid_utf8_is_replaced),
        RUN(test_json_writer__finds_every_byte_that_needs_escaping),
        RUN(test_json_writer__documents_stand_alone),
        RUN(test_json_writer__numbers_without_end_are_words),
    };
    return RUN_ALL(tests);
}
