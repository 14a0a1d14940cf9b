/* SPDX-License-Identifier: Apache-2.0 */
/* room: astra_sim */
/* The examples of TOML's own text, and files that are wrong. */
#include "check.h"

#include "base/text/text.h"
#include "compat/astra_sim/toml.h"

static orr_error err;

static orr_toml *open_text(const char *text)
{
    orr_toml *t;
    CHECK_OK(orr_toml_open((orr_span){(const uint8_t *)text, strlen(text)}, "a.toml", &t, &err),
             &err);
    return t;
}

/* "a.b.c", where a number is a place in a list. */
static orr_toml_value at(const orr_toml *t, const char *way)
{
    orr_toml_value v = orr_toml_root(t);
    char part[40];
    while (*way) {
        const size_t n = strcspn(way, ".");
        snprintf(part, sizeof part, "%.*s", (int)n, way);
        way += n + (way[n] == '.');
        if (orr_toml_type_of(v) == ORR_TOML_TABLE) {
            CHECK(orr_toml_find(v, part, &v));
            continue;
        }
        CHECK(orr_toml_first(v, &v));
        for (long i = strtol(part, NULL, 10); i > 0; i--)
            CHECK(orr_toml_next(&v));
    }
    return v;
}

static void check_text(const char *file, const char *way, const char *text)
{
    orr_toml *t = open_text(file);
    const orr_toml_value v = at(t, way);
    char copy[200];
    CHECK_EQ(orr_toml_type_of(v), ORR_TOML_STRING);
    snprintf(copy, sizeof copy, "%.*s", (int)orr_toml_text(v).len, orr_toml_text(v).ptr);
    CHECK_TEXT(copy, text);
    orr_toml_close(t);
}

TEST(test_toml__texts)
{
    check_text("a = \"\"", "a", "");
    check_text("a = \"I'm a string. \\\"You can quote me\\\".\"", "a",
               "I'm a string. \"You can quote me\".");
    check_text("a = \"Jos\\u00E9\\tSF\\U0001F600\"", "a", "Jos\xC3\xA9\tSF\xF0\x9F\x98\x80");
    check_text("a = 'C:\\Users\\nodejs'", "a", "C:\\Users\\nodejs");
    check_text("a = \"\"\"\nRoses are red\nViolets are blue\"\"\"", "a",
               "Roses are red\nViolets are blue");
    check_text("a = \"\"\"\\\n   The quick \\\n\n   brown.\\\n   \"\"\"", "a", "The quick brown.");
    check_text("a = \"\"\"Here are two quotes: \"\". Simple enough.\"\"\"", "a",
               "Here are two quotes: \"\". Simple enough.");
    check_text("a = \"\"\"\"This,\" she said.\"\"\"\"", "a", "\"This,\" she said.\"");
    check_text("a = '''\nThe first newline is\ntrimmed.'''''", "a",
               "The first newline is\ntrimmed.''");
    check_text("a = '' # nothing", "a", "");
    check_text("\xEF\xBB\xBF"
               "a = 'x'\r\n",
               "a", "x");
}

static orr_toml_value one(orr_toml **t, const char *value)
{
    char file[400];
    snprintf(file, sizeof file, "a = %s\n", value);
    *t = open_text(file);
    return at(*t, "a");
}

static void check_int(const char *text, int64_t value)
{
    orr_toml *t;
    const orr_toml_value v = one(&t, text);
    CHECK_EQ(orr_toml_type_of(v), ORR_TOML_INT);
    CHECK_EQ(orr_toml_int(v), value);
    orr_toml_close(t);
}

static void check_real(const char *text, double value)
{
    orr_toml *t;
    const orr_toml_value v = one(&t, text);
    CHECK_EQ(orr_toml_type_of(v), ORR_TOML_REAL);
    const double got = orr_toml_real(v);
    CHECK(got == value || (got != got && value != value));
    orr_toml_close(t);
}

TEST(test_toml__numbers)
{
    check_int("+99", 99);
    check_int("0", 0);
    check_int("-17", -17);
    check_int("5_349_221", 5349221);
    check_int("9223372036854775807", INT64_MAX);
    check_int("-9223372036854775808", INT64_MIN);
    check_int("0xDEADBEEF", 0xDEADBEEF);
    check_int("0xdead_beef", 0xDEADBEEF);
    check_int("0o01234567", 01234567);
    check_int("0b11010110", 0xD6);
    check_real("+1.0", 1);
    check_real("-0.01", -0.01);
    check_real("5e+22", 5e22);
    check_real("1e06", 1e6);
    check_real("6.626e-34", 6.626e-34);
    check_real("224_617.445_991_228", 224617.445991228);
    check_real("-inf", -1 / 0.0);
    check_real("+inf", 1 / 0.0);
    check_real("nan", 0 / 0.0);
}

static void check_date(const char *text)
{
    orr_toml *t;
    const orr_toml_value v = one(&t, text);
    CHECK_EQ(orr_toml_type_of(v), ORR_TOML_DATE);
    CHECK(orr_str_is(orr_toml_text(v), text));
    orr_toml_close(t);
}

TEST(test_toml__words_and_dates)
{
    orr_toml *t;
    CHECK(orr_toml_bool(one(&t, "true")));
    orr_toml_close(t);
    const orr_toml_value no = one(&t, "false");
    CHECK(orr_toml_type_of(no) == ORR_TOML_BOOL && !orr_toml_bool(no));
    CHECK_EQ(orr_toml_int(no), 0);
    CHECK(orr_toml_real(no) == 0);
    CHECK_EQ_U(orr_toml_text(no).len, 0);
    CHECK_TEXT(orr_toml_type_name(orr_toml_type_of(no)), "true or false");
    orr_toml_close(t);
    check_date("1979-05-27T07:32:00Z");
    check_date("1979-05-27T00:32:00.999999-07:00");
    check_date("1979-05-27 07:32:00+00:00");
    check_date("1979-05-27");
    check_date("07:32:00.5");
}

TEST(test_toml__lists)
{
    orr_toml *t = open_text("a = [ [ 1, 2 ], # two\n [\"x\",\n],\n]\nb = [ ]\n");
    CHECK_EQ_U(orr_toml_count(at(t, "a")), 2);
    CHECK_EQ(orr_toml_int(at(t, "a.0.1")), 2);
    CHECK(orr_str_is(orr_toml_text(at(t, "a.1.0")), "x"));
    CHECK_EQ_U(orr_toml_count(at(t, "b")), 0);
    orr_toml_value v;
    CHECK(!orr_toml_first(at(t, "b"), &v));
    orr_toml_close(t);
}

TEST(test_toml__tables)
{
    orr_toml *t =
        open_text("top = 1\n[a.b]\nx = 1\n[a]\ny = 2\nc.d = 3\nc.e.f = 4\n[a.c.g]\nz = 5\n"
                  "[ 'q q' . \"r\" ]\nin = { k = 1, l.m = 2, n = {} }\n");
    CHECK_EQ(orr_toml_int(at(t, "top")), 1);
    CHECK_EQ(orr_toml_int(at(t, "a.b.x")), 1);
    CHECK_EQ(orr_toml_int(at(t, "a.y")), 2);
    CHECK_EQ(orr_toml_int(at(t, "a.c.d")), 3);
    CHECK_EQ(orr_toml_int(at(t, "a.c.e.f")), 4);
    CHECK_EQ(orr_toml_int(at(t, "a.c.g.z")), 5);
    CHECK_EQ(orr_toml_int(at(t, "q q.r.in.l.m")), 2);
    CHECK_EQ_U(orr_toml_count(at(t, "q q.r.in.n")), 0);
    /* in the order of the file */
    CHECK_EQ_U(orr_toml_count(at(t, "a")), 3);
    orr_toml_value v;
    CHECK(orr_toml_first(at(t, "a"), &v));
    CHECK(orr_str_is(orr_toml_key(v), "b"));
    CHECK(orr_toml_next(&v) && orr_str_is(orr_toml_key(v), "y"));
    CHECK(orr_toml_next(&v) && orr_str_is(orr_toml_key(v), "c") && !orr_toml_next(&v));
    orr_toml_close(t);
}

TEST(test_toml__lists_of_tables)
{
    orr_toml *t =
        open_text("[[fruits]]\nname = \"apple\"\n[fruits.physical]\ncolor = \"red\"\n"
                  "[[fruits.varieties]]\nname = \"a\"\n[[fruits.varieties]]\nname = \"b\"\n"
                  "[[fruits]]\nname = \"banana\"\n[[fruits.varieties]]\nname = \"c\"\n");
    CHECK_EQ_U(orr_toml_count(at(t, "fruits")), 2);
    CHECK(orr_str_is(orr_toml_text(at(t, "fruits.0.physical.color")), "red"));
    CHECK(orr_str_is(orr_toml_text(at(t, "fruits.0.varieties.1.name")), "b"));
    CHECK(orr_str_is(orr_toml_text(at(t, "fruits.1.varieties.0.name")), "c"));
    CHECK(orr_str_is(orr_toml_key(at(t, "fruits.1")), ""));
    orr_toml_close(t);
}

TEST(test_toml__values_know_their_places)
{
    orr_toml *t = open_text("# \xC3\xA4\n  \"\xC3\xA4\xC3\xB6\" = 'x'\n[[b]]\n");
    orr_where w = orr_toml_where(at(t, "\xC3\xA4\xC3\xB6"));
    CHECK_EQ_U(w.line, 2);
    CHECK_EQ_U(w.column, 10); /* in characters */
    w = orr_toml_key_where(at(t, "\xC3\xA4\xC3\xB6"));
    CHECK_EQ_U(w.column, 3);
    w = orr_toml_where(at(t, "b.0"));
    CHECK_EQ_U(w.line, 3);
    CHECK_EQ_U(w.column, 3);
    orr_toml_close(t);
}

/* Many keys in one table; each is found. */
TEST(test_toml__long_tables)
{
    enum { KEYS = 20000 };
    static char text[KEYS * 16];
    char key[16];
    size_t n = 0;
    orr_toml_value v;
    for (int i = 0; i < KEYS; i++)
        n += (size_t)snprintf(text + n, sizeof text - n, "k%d = %d\n", i, i);
    orr_toml *t = open_text(text);
    for (int i = 0; i < KEYS; i++) {
        snprintf(key, sizeof key, "k%d", i);
        CHECK(orr_toml_find(orr_toml_root(t), key, &v));
        CHECK_EQ(orr_toml_int(v), i);
    }
    CHECK(!orr_toml_find(orr_toml_root(t), "k20000", &v));
    orr_toml_close(t);
}

static void refuse(const char *text, const char *words)
{
    orr_toml *t;
    CHECK_CODE(orr_toml_open((orr_span){(const uint8_t *)text, strlen(text)}, "a.toml", &t, &err),
               ORR_EINPUT, &err);
    CHECK(t == NULL);
    CHECK_SAYS(&err, words);
}

TEST(test_toml__errors_name_the_place)
{
    static const char value[] =
        "not a text in quotes, a number, true, false, a date, a list or a table";
    refuse("a", "a.toml:1:2: expected \"=\"");
    refuse("a = ", "a.toml:1:5: expected a value");
    refuse("= 1", "a.toml:1:1: expected a key");
    refuse("a. = 1", "a.toml:1:4: expected a key");
    refuse("a = 1 b = 2", "a.toml:1:7: expected the end of the line");
    refuse("\na = 1\na = 2", "a.toml:3:1: \"a\" is a duplicate key");
    refuse("a = true1", value);
    refuse("a = 01", value);
    refuse("a = 1__0", value);
    refuse("a = 9223372036854775808", value);
    refuse("a = 0x", value);
    refuse("a = 1.", value);
    refuse("a = 1979-05-2", value);
    refuse("a = \"x", "a.toml:1:5: a text without an end");
    refuse("a = 'x\n'", "a.toml:1:5: a text without an end");
    refuse("a = \"x\\q\"", "a.toml:1:7: not one of the escapes");
    refuse("a = \"\\uD800\"", "a.toml:1:6: an escape that is not a character");
    refuse("a = \"\\u12\"", "a.toml:1:6: an escape with too few hexadecimal digits");
    refuse("a = \"\"\"x\n\"\"", "a.toml:1:5: a text without an end");
    refuse("a = [1 2]", "a.toml:1:8: expected \",\" or \"]\"");
    refuse("a = {b = 1, }", "a.toml:1:13: expected a key");
    refuse("a = {b = 1\n}", "a.toml:1:11: expected \",\" or \"}\"");
    refuse("[a", "a.toml:1:3: expected \"]\"");
    refuse("[[a]", "a.toml:1:5: expected \"]]\"");
    refuse("[]", "a.toml:1:2: expected a key");
    refuse("[a]\n[a]", "a.toml:2:2: \"a\" is already defined");
    refuse("[a]\nb.c = 1\n[a.b]", "a.toml:3:4: \"b\" is already defined");
    refuse("a = 1\n[a.b]", "a.toml:2:2: \"a\" is already defined, and is not a table");
    refuse("a = {b = 1}\n[a.c]", "a.toml:2:2: \"a\" is already defined, and is not a table");
    refuse("a = []\n[[a]]", "a.toml:2:3: \"a\" is already defined, and not with [[ ]]");
    refuse("[a.b]\nx = 1\n[a]\nb.c = 1", "a.toml:4:1: \"b\" is already defined, and dotted keys");
    refuse("a = \"\xFF\"", "a.toml:1:6: not valid UTF-8");
    refuse("a = 'x\ty'\nb = '\x01'", "a.toml:2:6: a control character");
    refuse("a = 1\r", "a.toml:1:6: a control character");
}

TEST(test_toml__depth_and_size_are_bounded)
{
    static char deep[300], large[(1 << 20) + 2];
    memset(deep, '[', sizeof deep - 1);
    memcpy(deep, "a = ", 4);
    refuse(deep, "a.toml:1:69: values are nested more than 64 deep");
    memset(large, '\n', sizeof large - 1);
    refuse(large, "a.toml: larger than 1 MiB: not a configuration file");
}

int main(void)
{
    const CMUnitTest tests[] = {
        RUN(test_toml__texts),
        RUN(test_toml__numbers),
        RUN(test_toml__words_and_dates),
        RUN(test_toml__lists),
        RUN(test_toml__tables),
        RUN(test_toml__lists_of_tables),
        RUN(test_toml__values_know_their_places),
        RUN(test_toml__long_tables),
        RUN(test_toml__errors_name_the_place),
        RUN(test_toml__depth_and_size_are_bounded),
    };
    return RUN_ALL(tests);
}
