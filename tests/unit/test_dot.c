/* SPDX-License-Identifier: Apache-2.0 */
#include "check.h"

#include "base/formats/dot.h"

#include "base/memory/buffer.h"

static orr_error err;

/* Nodes "name=label", then edges "a>b", all in one line. */
static void check_graph(const char *text, const char *want)
{
    orr__dot d;
    orr_buf b = {0};
    CHECK_OK(orr__dot_read(&d, (orr_span){(const uint8_t *)text, strlen(text)}, "g.dot", &err),
             &err);
    for (size_t i = 0; i < d.node_count; i++) {
        orr_buf_print(&b, "%.*s=%.*s ", (int)d.nodes[i].name.len, d.nodes[i].name.ptr,
                      (int)d.nodes[i].label.len, d.nodes[i].label.ptr ? d.nodes[i].label.ptr : "");
    }
    for (size_t i = 0; i < d.edge_count; i++)
        orr_buf_print(&b, "%.*s>%.*s ", (int)d.edges[i].from.len, d.edges[i].from.ptr,
                      (int)d.edges[i].to.len, d.edges[i].to.ptr);
    orr_buf_byte(&b, 0);
    CHECK_TEXT((const char *)b.ptr, want);
    orr_buf_fini(&b);
    orr__dot_fini(&d);
}

static void refuse(const char *text, uint32_t line, uint32_t column, const char *part)
{
    orr__dot d;
    CHECK_CODE(orr__dot_read(&d, (orr_span){(const uint8_t *)text, strlen(text)}, "g.dot", &err),
               ORR_EINPUT, &err);
    CHECK_SAYS(&err, part);
    CHECK_EQ(err.where.line, line);
    CHECK_EQ(err.where.column, column);
    orr__dot_fini(&d);
}

TEST(test_dot__nodes_and_edges_come_in_file_order)
{
    check_graph("digraph g { b [label=\"x\"]; a; a -> b; b -> a; }", "b=x a= a>b b>a ");
}

TEST(test_dot__separators_and_blanks_are_free)
{
    check_graph("DiGraph{a[x=1,label=\"l\";y=\"2\"][z]b}", "a=l b= ");
    check_graph("strict digraph \"a name\"\n{\n;;\n}\n", "");
}

TEST(test_dot__all_comments_are_skipped)
{
    check_graph("# made by hand\n// one\ndigraph /* two\n lines */ {\n# three\na/**/;/*/ b; */}",
                "a= ");
}

TEST(test_dot__chains_are_edges)
{
    check_graph("digraph { a -> b -> \"c d\" [w=3]; }", "a>b b>c d ");
}

TEST(test_dot__defaults_and_graph_attributes_are_passed_over)
{
    check_graph("digraph { graph [x=1]; node [shape=record]; edge [w=2]; rankdir=LR; node0; }",
                "node0= ");
}

TEST(test_dot__a_label_keeps_what_stands_between_its_quotes)
{
    check_graph("digraph { a [label=\"{p|q \\\" r}\"]; b [label=plain]; c [label=-1.5]; }",
                "a={p|q \\\" r} b=plain c=-1.5 ");
}

TEST(test_dot__the_last_label_counts)
{
    check_graph("digraph { a [label=x, label=y]; b [tip=<b<i>>]; }", "a=y b= ");
}

TEST(test_dot__lines_and_columns_of_nodes_are_kept)
{
    static const char text[] = "digraph {\n  a;\n\n    \"b\" [label=x];\n}";
    orr__dot d;
    CHECK_OK(orr__dot_read(&d, (orr_span){(const uint8_t *)text, strlen(text)}, "g.dot", &err),
             &err);
    CHECK_EQ(d.nodes[0].line, 2);
    CHECK_EQ(d.nodes[0].column, 3);
    CHECK_EQ(d.nodes[1].line, 4);
    CHECK_EQ(d.nodes[1].column, 5);
    orr__dot_fini(&d);
}

TEST(test_dot__what_is_not_understood_is_an_error_with_its_place)
{
    refuse("", 1, 1, "the file ends where 'digraph' is expected");
    refuse("graph { }", 1, 1, "'graph' where 'digraph' is expected");
    refuse("digraph g\n", 2, 1, "the file ends where '{' is expected");
    refuse("digraph {\n a", 2, 3, "the file ends where a statement or '}' is expected");
    refuse("digraph { a -- b }", 1, 13, "'--' where '->' is expected");
    refuse("digraph { a:p -> b }", 1, 12, "':' where '->' is expected");
    refuse("digraph { a -> ; }", 1, 16, "';' where the name of a node is expected");
    refuse("digraph { subgraph c { a } }", 1, 11, "subgraphs are not understood");
    refuse("digraph {\n\"a", 2, 1, "the text that begins here has no end");
    refuse("digraph { a [label=<b] }", 1, 20, "the text that begins here has no end");
    refuse("digraph { a [label=<b>] }", 1, 20, "a label in quotes");
    refuse("digraph { a [label=] }", 1, 20, "the value of an attribute");
    refuse("digraph { \"a\" + \"b\" }", 1, 15, "no glued text");
    refuse("digraph { a } digraph { b }", 1, 15, "the end of the only graph");
    refuse("digraph { a } ? ", 1, 15, "'?' where the end");
    refuse("digraph { a /* ", 1, 16, "the file ends");
}

int main(void)
{
    const CMUnitTest tests[] = {
        RUN(test_dot__nodes_and_edges_come_in_file_order),
        RUN(test_dot__separators_and_blanks_are_free),
        RUN(test_dot__all_comments_are_skipped),
        RUN(test_dot__chains_are_edges),
        RUN(test_dot__defaults_and_graph_attributes_are_passed_over),
        RUN(test_dot__a_label_keeps_what_stands_between_its_quotes),
        RUN(test_dot__the_last_label_counts),
        RUN(test_dot__lines_and_columns_of_nodes_are_kept),
        RUN(test_dot__what_is_not_understood_is_an_error_with_its_place),
    };
    return RUN_ALL(tests);
}
