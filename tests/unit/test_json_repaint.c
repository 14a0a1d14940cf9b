/* SPDX-License-Identifier: Apache-2.0 */
/* test_json_repaint.c - JSON text in the layout of Python's json.dump(indent=4); the expected texts
 * are Python's. */
#include "check.h"

#include "sources/torch/link/json_repaint.h"

static void check_value(const char *text, const char *expected)
{
    orr_buf b = {0};
    const char *end = repaint_value(&b, text, 0);
    CHECK(*end == '\0' || *end == ' ');
    orr_buf_byte(&b, '\0');
    CHECK_TEXT((const char *)b.ptr, expected);
    orr_buf_fini(&b);
}

TEST(test_json_repaint__containers_have_one_item_a_line)
{
    check_value("{\"a\":[1,2 , {}],\"b\" : [ ]}",
                "{\n    \"a\": [\n        1,\n        2,\n        {}\n    ],\n    \"b\": []\n}");
}

TEST(test_json_repaint__numbers_are_in_their_shortest_form)
{
    check_value("[-0,-0.0,1.50,1e3,1E-7,123456789012345678901234567890,1e22,NaN,-Infinity] ",
                "[\n    0,\n    -0.0,\n    1.5,\n    1000.0,\n    1e-07,\n    "
                "123456789012345678901234567890,\n    1e+22,\n    NaN,\n    -Infinity\n]");
}

TEST(test_json_repaint__strings_are_ascii_with_the_shortest_escapes)
{
    check_value("\"a\\/b\\u0041\\u00E9\\ud83d\\ude00\\uD800\"",
                "\"a/bA\\u00e9\\ud83d\\ude00\\ud800\"");
    check_value("\"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\x7f\"",
                "\"\\u00e9\\u20ac\\ud83d\\ude00\\u007f\"");
    check_value("\"\\n\\u000a\\u0022\\u005c\\u0001\\b\"", "\"\\n\\n\\\"\\\\\\u0001\\b\"");
}

TEST(test_json_repaint__overrides_stand_where_the_key_is_or_at_the_end)
{
    repaint_override o[] = {{.key = "b", .value = {"7", 1}}, {.key = "z", .value = {"[]", 2}}};
    orr_buf b = {0};
    repaint_object(&b, "{\"a\": true, \"b\": {\"b\": [\"}\"]}, \"c\": null}", 0, o, 2);
    orr_buf_byte(&b, '\0');
    CHECK_TEXT((const char *)b.ptr,
               "{\n    \"a\": true,\n    \"b\": 7,\n    \"c\": null,\n    \"z\": []\n}");
    orr_buf_fini(&b);
}

int main(void)
{
    const CMUnitTest tests[] = {
        RUN(test_json_repaint__containers_have_one_item_a_line),
        RUN(test_json_repaint__numbers_are_in_their_shortest_form),
        RUN(test_json_repaint__strings_are_ascii_with_the_shortest_escapes),
        RUN(test_json_repaint__overrides_stand_where_the_key_is_or_at_the_end),
    };
    return RUN_ALL(tests);
}
