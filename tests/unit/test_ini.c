/* SPDX-License-Identifier: Apache-2.0 */
#include "check.h"

#include "base/formats/ini.h"
#include "base/text/text.h"

static orr_error err;
static orr_ini *ini;

static orr_code open_text(const char *text)
{
    return orr_ini_open((orr_span){(const uint8_t *)text, strlen(text)}, "t.cfg", &ini, &err);
}

static bool value_is(const char *section, const char *key, const char *text)
{
    orr_ini_value v;
    return orr_ini_find(ini, section, key, &v) && orr_str_is(v.text, text);
}

TEST(test_ini__keys_in_either_case_with_either_sign)
{
    CHECK_OK(open_text("# head\n[general]\nrun_name = \"x y\"\n; note\n\n[arch]\nArrayHeight:  32\n"
                       "Empty:\r\nUrl = a:b=c\n"),
             &err);
    CHECK(value_is("general", "RUN_NAME", "\"x y\""));
    CHECK(value_is("arch", "arrayheight", "32"));
    CHECK(value_is("arch", "empty", ""));
    CHECK(value_is("arch", "url", "a:b=c"));
    CHECK(!value_is("Arch", "url", "a:b=c"));
    CHECK(!value_is("general", "arrayheight", "32"));
    orr_ini_close(ini);
}

TEST(test_ini__lines_further_in_go_on)
{
    orr_ini_value v;
    CHECK_OK(open_text("[a]\n  list: 1,\n     2 ,\n    3\n  next: 4\n"), &err);
    CHECK(orr_ini_find(ini, "a", "list", &v));
    CHECK(orr_str_is(v.text, "1,\n     2 ,\n    3"));
    CHECK(orr_str_is(orr_ini_first(v).text, "1"));
    CHECK(value_is("a", "next", "4"));
    orr_ini_close(ini);
    CHECK_OK(open_text("[a]\nlist:\n   7, 8\n"), &err);
    CHECK(orr_ini_find(ini, "a", "list", &v));
    CHECK(orr_str_is(v.text, "7, 8") && v.line == 3 && v.column == 4);
    orr_ini_close(ini);
}

TEST(test_ini__values_know_their_places)
{
    orr_ini_value v;
    char text[300];
    CHECK_OK(open_text("\xEF\xBB\xBF[a]\n k =  12 \n"), &err);
    CHECK_OK(orr_ini_need(ini, "a", "k", &v, &err), &err);
    const orr_where w = orr_ini_where(ini, &v);
    CHECK(w.line == 2 && w.column == 7);
    CHECK_CODE(orr_ini_need(ini, "a", "missing", &v, &err), ORR_EINPUT, &err);
    CHECK_TEXT(orr_error_text(&err, text, sizeof text),
               "t.cfg: the key \"missing\" is missing in section [a]");
    orr_ini_close(ini);
}

static void refuse(const char *text, const char *words)
{
    CHECK_CODE(open_text(text), ORR_EINPUT, &err);
    CHECK(ini == NULL);
    CHECK_SAYS(&err, words);
}

TEST(test_ini__faults_have_their_places)
{
    refuse("k: 1\n", "t.cfg:1:1: expected a [section] before the first key");
    refuse("[a]\n\nhello\n", "t.cfg:3:1: expected \"key: value\"");
    refuse("[a]\n: 1\n", "t.cfg:2:1: expected \"key: value\"");
    refuse("[a]\nk: 1\nK = 2\n", "t.cfg:3:1: duplicate key \"K\"");
    refuse("[a]\n[b]\n[a]\n", "t.cfg:3:1: duplicate section \"a\"");
    refuse("[a\n", "t.cfg:1:1: expected the name of a section in [ ]");
    refuse(" []\n", "t.cfg:1:2: expected the name of a section in [ ]");
}

int main(void)
{
    const CMUnitTest tests[] = {
        RUN(test_ini__keys_in_either_case_with_either_sign),
        RUN(test_ini__lines_further_in_go_on),
        RUN(test_ini__values_know_their_places),
        RUN(test_ini__faults_have_their_places),
    };
    return RUN_ALL(tests);
}
