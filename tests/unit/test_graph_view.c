/* SPDX-License-Identifier: Apache-2.0 */
/* room: drawing */
#include "check.h"
#include "et_make.h"
#include "rooms.h"

#include <orrery/view.h>

static const orr_view_graph_options plain = {.size = sizeof plain};

static orr_view_graph_result draw(const orr_trace *t, const orr_view_graph_options *opt)
{
    orr_view_graph_result r;
    CHECK_OK(orr_view_graph(t, "out.dot", opt, &r, &err), &err);
    return r;
}

static void check_file_has(const char *want, bool is_there)
{
    orr_buf got = read_file("out.dot");
    orr_buf_byte(&got, '\0');
    CHECK((strstr((const char *)got.ptr, want) != NULL) == is_there);
    orr_buf_fini(&got);
}

/* 1 -> 2 -> 3 -> 4, all alike, and 5 beside them. */
static orr_trace *chain(void)
{
    orr_trace *t = new_trace();
    add_node(t, 1, NULL, 0, NULL, 0);
    ADD_NODE(t, 2, 1);
    ADD_NODE(t, 3, 2);
    ADD_NODE(t, 4, 3);
    add_node(t, 5, NULL, 0, NULL, 0);
    seal(t);
    return t;
}

TEST(test_graph_fold__collapses_chains_of_like_nodes)
{
    orr_trace *t = chain();
    const orr_view_graph_options opt = {.size = sizeof opt, .collapse = true};
    CHECK_EQ_U(draw(t, &plain).boxes, 5);
    const orr_view_graph_result r = draw(t, &opt);
    CHECK_EQ_U(r.nodes, 5);
    CHECK_EQ_U(r.boxes, 2);
    check_file_has("n x 4\\n", true);
    check_file_has("->", false);
    orr_trace_destroy(t);
}

TEST(test_graph_fold__shows_what_is_near)
{
    orr_trace *t = chain();
    orr_view_graph_options opt = {.size = sizeof opt, .has_around = true, .around = 2, .depth = 0};
    CHECK_EQ_U(draw(t, &opt).nodes, 1);
    opt.depth = 1;
    CHECK_EQ_U(draw(t, &opt).nodes, 3); /* 1, 2, 3 */
    opt.depth = 4000000000u;
    CHECK_EQ_U(draw(t, &opt).nodes, 4); /* all but 5 */
    opt.around = 6;
    CHECK(orr_view_graph(t, "out.dot", &opt, NULL, &err) == ORR_EUSAGE);
    orr_trace_destroy(t);
}

TEST(test_graph_fold__finds_the_longest_chain)
{
    orr_trace *t = new_trace();
    const orr_draft first = {
        .id = 1, .name = orr_str_of("a"), .type = ORR_NODE_COMP, .duration_us = 1};
    const orr_draft slow = {.id = 2,
                            .name = orr_str_of("b"),
                            .type = ORR_NODE_COMP,
                            .duration_us = 9,
                            .data_deps = (const uint64_t[]){1},
                            .data_count = 1};
    const orr_draft quick = {.id = 3,
                             .name = orr_str_of("c"),
                             .type = ORR_NODE_COMP,
                             .duration_us = 2,
                             .data_deps = (const uint64_t[]){1},
                             .data_count = 1};
    CHECK_OK(orr_trace_append(t, &first, &err), &err);
    CHECK_OK(orr_trace_append(t, &slow, &err), &err);
    CHECK_OK(orr_trace_append(t, &quick, &err), &err);
    seal(t);
    const orr_view_graph_options opt = {.size = sizeof opt, .critical_path = true};
    CHECK_EQ_U(draw(t, &opt).nodes, 2);
    check_file_has("label=\"b\\nCOMP_NODE\\n9.00 us\"", true);
    check_file_has("label=\"c", false);
    orr_trace_destroy(t);
}

TEST(test_graph_fold__says_that_a_cycle_has_no_longest_chain)
{
    orr_trace *t = new_trace();
    ADD_NODE(t, 1, 2);
    ADD_NODE(t, 2, 1);
    seal(t);
    const orr_view_graph_options path = {.size = sizeof path, .critical_path = true},
                                 collapse = {.size = sizeof collapse, .collapse = true};
    CHECK(orr_view_graph(t, "out.dot", &path, NULL, &err) == ORR_EINPUT);
    CHECK_EQ_U(draw(t, &collapse).boxes, 2); /* a ring has no first node */
    orr_trace_destroy(t);
}

TEST(test_graph_fold__keeps_to_the_limit)
{
    orr_trace *t = random_trace(7, 5000, 40);
    const orr_view_graph_options opt = {.size = sizeof opt, .limit = 50};
    const orr_view_graph_result r = draw(t, &opt);
    CHECK_EQ_U(r.nodes, 5000);
    CHECK(r.boxes <= 50 && r.boxes >= 25);
    orr_trace_destroy(t);
}

TEST(test_graph_view__takes_an_empty_trace)
{
    orr_trace *t = new_trace();
    seal(t);
    const orr_view_graph_options svg = {.size = sizeof svg, .form = ORR_GRAPH_SVG},
                                 graphml = {.size = sizeof graphml, .form = ORR_GRAPH_GRAPHML};
    CHECK_EQ_U(draw(t, &plain).boxes, 0);
    CHECK_EQ_U(draw(t, &svg).boxes, 0);
    check_file_has("<svg", true);
    CHECK_EQ_U(draw(t, &graphml).boxes, 0);
    check_file_has("<graph edgedefault=\"directed\"></graph></graphml>", true);
    orr_trace_destroy(t);
}

/* Graphviz reads \N in a label as the node's name and &lt; as "<": neither may come out of a
 * name. */
/* Graphviz's text plugin keeps the address of a font: what it belongs to must live on.  Fails under
 * the address sanitizer, and valgrind, otherwise. */
TEST(test_graph_view__draws_again_and_again_in_one_process)
{
    const orr_view_graph_options opt = {.size = sizeof opt, .form = ORR_GRAPH_SVG};
    orr_buf first = {0};
    for (int i = 0; i < 6; i++) {
        orr_trace *t = chain();
        CHECK_EQ_U(draw(t, &opt).boxes, 5);
        orr_buf got = read_file("out.dot");
        if (i == 0)
            orr_buf_add(&first, got.ptr, got.len);
        CHECK_EQ_U(got.len, first.len);
        CHECK_BYTES(got.ptr, first.ptr, first.len);
        orr_buf_fini(&got);
        orr_trace_destroy(t);
    }
    orr_buf_fini(&first);
}

TEST(test_dot_view_text__escapes_names)
{
    orr_trace *t = new_trace();
    const orr_draft d = {.id = 1, .name = orr_str_of("\\N\"&lt;\n\x01"), .type = ORR_NODE_COMP};
    CHECK_OK(orr_trace_append(t, &d, &err), &err);
    seal(t);
    draw(t, &plain);
    check_file_has("label=\"\\\\N\\\"&amp;lt; \xEF\xBF\xBD\\nCOMP_NODE\"", true);
    orr_trace_destroy(t);
}

TEST(test_dot_view_text__draws_frames)
{
    orr_trace *t = new_trace();
    const char *const names[] = {"layers.0.mlp", "layers.10.mlp", "loss"};
    for (uint64_t i = 0; i < 3; i++) {
        const orr_draft d = {.id = i, .name = orr_str_of(names[i]), .type = ORR_NODE_COMP};
        CHECK_OK(orr_trace_append(t, &d, &err), &err);
    }
    seal(t);
    const orr_view_graph_options opt = {.size = sizeof opt, .cluster = ORR_CLUSTER_LAYER};
    draw(t, &opt);
    check_file_has("label=\"layer 0\"", true);
    check_file_has("label=\"layer 10\"", true);
    check_file_has("cluster_2", false);
    orr_trace_destroy(t);
}

/* Bytes and text: golden/chakra/visualizer/labels. */
TEST(test_dot_view__writes_the_text_of_the_old_program)
{
    static const char et[] =
        "\007\012\0051.0.0\035\010\005\022\027a{b}(c)<d>[e]|f&g-h\134i\042j\030\004\013\010\003\030\004\042\001\005*\002\005\005\017\010\011\022\005x y\303\251\030\004*\002\003M";
    static const char want[] =
        "digraph {\012"
        "\0115 [label=\042a\134{b\134}\134(c\134)\134<d\134>\134[e\134]\134|f\134&g\134-h\134i\134\042j\042 id=5 shape=record]\012"
        "\0113 [label=\042\042 id=3 shape=record]\012"
        "\0115 -> 3 [arrowhead=normal]\012"
        "\0115 -> 3 [arrowhead=normal]\012"
        "\0115 -> 3 [arrowhead=tee]\012"
        "\0119 [label=\042x y\303\251\042 id=9 shape=record]\012"
        "\0113 -> 9 [arrowhead=normal]\012"
        "\01177 -> 9 [arrowhead=normal]\012"
        "}\012";
    const orr_view_graph_options opt = {.size = sizeof opt,
                                        .rules = program_of(ORR_RULES_VIEW, NULL)->view};
    orr_trace *t;
    const orr_span bytes = {(const uint8_t *)et, sizeof et - 1};
    CHECK_OK(orr_trace_parse(bytes, "labels.et", NULL, &t, &err), &err);
    draw(t, &opt);
    check_file("out.dot", want, sizeof want - 1);
    orr_trace_destroy(t);
}

int main(void)
{
    const CMUnitTest tests[] = {
        RUN(test_dot_view__writes_the_text_of_the_old_program),
        RUN(test_graph_fold__collapses_chains_of_like_nodes),
        RUN(test_graph_fold__shows_what_is_near),
        RUN(test_graph_fold__finds_the_longest_chain),
        RUN(test_graph_fold__says_that_a_cycle_has_no_longest_chain),
        RUN(test_graph_fold__keeps_to_the_limit),
        RUN(test_graph_view__takes_an_empty_trace),
        RUN(test_graph_view__draws_again_and_again_in_one_process),
        RUN(test_dot_view_text__escapes_names),
        RUN(test_dot_view_text__draws_frames),
    };
    return RUN_ALL(tests);
}
