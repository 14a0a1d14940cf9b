/* SPDX-License-Identifier: Apache-2.0 */
/* test_xml.c - elements, attributes and places; what is not XML is refused with its place. */
#include "base/formats/xml.h"

#include "check.h"

static orr_code open_text(const char *text, orr_xml **out, orr_error *err)
{
    return orr_xml_open((orr_span){(const uint8_t *)text, strlen(text)}, "x.xml", out, err);
}

static void test_xml__reads_elements_and_attributes(void **state)
{
    (void)state;
    orr_xml *x;
    orr_error err;
    orr_str v;
    CHECK_OK(
        open_text(
            "\xEF\xBB\xBF<?xml version=\"1.0\"?>\n<!DOCTYPE a>\n<!-- <b/> -->\n<a one='1' two=\"&lt;&#65;&#x20AC;&quot;\">\n"
            " text <b/>\n <c d=\"5\"><e/></c><![CDATA[<f/>]]>\n</a >\n",
            &x, &err),
        &err);
    const orr_xml_node *a = orr_xml_root(x);
    CHECK(orr_str_is(a->name, "a"));
    CHECK(orr_xml_attr(a, "one", &v) && orr_str_is(v, "1"));
    CHECK(orr_xml_attr(a, "two", &v) && orr_str_is(v, "<A\xE2\x82\xAC\""));
    CHECK(!orr_xml_attr(a, "three", &v));
    const orr_xml_node *b = a->child, *c = b->next;
    CHECK(orr_str_is(b->name, "b") && orr_str_is(c->name, "c") && !c->next && !b->child);
    CHECK(orr_str_is(c->child->name, "e"));
    int64_t n = 7;
    CHECK_OK(orr_xml_get_int(c, "d", true, 0, 9, &n, &err), &err);
    CHECK_EQ(n, 5);
    CHECK_OK(orr_xml_get_int(c, "absent", false, 0, 9, &n, &err), &err);
    CHECK_EQ(n, 5);
    CHECK(orr_xml_get_int(c, "absent", true, 0, 9, &n, &err) == ORR_EINPUT);
    CHECK(orr_xml_get_int(c, "d", true, 0, 4, &n, &err) == ORR_EINPUT);
    const orr_where w = orr_xml_where(c);
    CHECK_EQ_U(w.line, 6);
    CHECK_EQ_U(w.column, 2);
    orr_xml_close(x);
}

static void test_xml__refuses_what_is_not_xml(void **state)
{
    static const struct {
        const char *text;
        uint32_t line, column;
    } wrong[] = {
        {"", 1, 1},
        {"text", 1, 1},
        {"<a>", 1, 4},
        {"<a></b>", 1, 4},
        {"</a>", 1, 1},
        {"<a/>\n<b/>", 2, 1},
        {"<a b/>", 1, 5},
        {"<a b=1/>", 1, 6},
        {"<a b=\"1/>", 1, 6},
        {"<a b=\"1\" b=\"2\"/>", 1, 10},
        {"<a b=\"1\"c=\"2\"/>", 1, 9},
        {"<a b=\"&x;\"/>", 1, 7},
        {"<a b=\"<\"/>", 1, 6},
        {"<1/>", 1, 2},
        {"<a", 1, 3},
        {"<a/", 1, 4},
        {"<!-- <a/>", 1, 1},
        {"<!DOCTYPE a [<!ENTITY b \"c\">]><a/>", 1, 1},
    };
    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        orr_xml *x;
        orr_error err;
        CHECK(open_text(wrong[i].text, &x, &err) == ORR_EINPUT);
        CHECK(!x);
        CHECK_EQ_U(err.where.line, wrong[i].line);
        CHECK_EQ_U(err.where.column, wrong[i].column);
    }
}

static void test_xml__bounds_nesting(void **state)
{
    char text[4 * 300];
    orr_xml *x;
    orr_error err;
    (void)state;
    for (size_t i = 0; i < 300; i++)
        memcpy(text + 3 * i, "<a>", 3);
    text[900] = '\0';
    CHECK(open_text(text, &x, &err) == ORR_EINPUT);
    CHECK(strstr(err.message, "256"));
}

int main(void)
{
    const CMUnitTest tests[] = {
        RUN(test_xml__reads_elements_and_attributes),
        RUN(test_xml__refuses_what_is_not_xml),
        RUN(test_xml__bounds_nesting),
    };
    return RUN_ALL(tests);
}
