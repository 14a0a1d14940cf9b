/* SPDX-License-Identifier: Apache-2.0 */
/* room: stage */
#include "check.h"
#include "compat/stage/template.h"

static orr_error err;
static stg_space space;
static stg_tgraph graph;

#define HEADER                                                                                    \
    "id,require_grads,x1,x2,op_type,op_attr,x1_shape,x1_hidden,x2_shape,x2_hidden,grad_of,extra_" \
    "attr\n"

static int begin(void **state)
{
    (void)state;
    if (!stg_space_init(&space))
        return -1;
    stg_tgraph_init_named(&graph, &space);
    return 0;
}

static int end(void **state)
{
    (void)state;
    stg_tgraph_fini(&graph);
    stg_space_fini(&space);
    return 0;
}

static orr_span span(const char *text)
{
    return (orr_span){(const uint8_t *)text, strlen(text)};
}

static orr_code parse(const char *csv, const char *json)
{
    return stg_module_parse(&graph, span(csv), "m.csv", span(json), "m.json", &err);
}

static void check_bad(const char *csv, const char *says)
{
    begin(NULL);
    CHECK_CODE(parse(csv, "{\"symbols\": [], \"in_tensors\": [], \"out_tensors\": []}"), ORR_EINPUT,
               &err);
    CHECK_SAYS(&err, says);
    end(NULL);
}

TEST(test_template__reads_a_table_and_what_is_said_of_it)
{
    CHECK_OK(
        parse("\xEF\xBB\xBF" HEADER "x,N,,,T,,\"a/dp, b\",1,,,,\n"
              "w@0,Y,,,T,,\"b, c\",1,,,,\n"
              "y,N,x,w,M,\"mn,nk->mk\",\"a/dp, b\",1,\"b,c\",1,,\n"
              "z,N,y@0,,CUSTOM,a*c,\"a/dp,c\",1,c,1/dp,x,\"{\"\"data_deps\"\": [\"\"x\"\"]}\"\n"
              ",,,,,,,,,,,\n",
              "{\"symbols\": [\"a\", \"b\", \"c\", \"dp\"], \"in_tensors\": [\"x\", \"w\"],"
              " \"out_tensors\": [\"y\", \"z\"]}"),
        &err);
    CHECK_EQ_U(graph.count, 4);
    const stg_tensor *y = &graph.tensors[2], *z = &graph.tensors[3];
    CHECK(y->op == ORR__OP_M && y->a == 0 && y->b == 1 && graph.tensors[1].is_param);
    CHECK(z->a == 2 && z->grad_of == 0 && z->extra_count == 1 && graph.extras[z->extra] == 0);
    stg_layout made;
    CHECK_OK(stg_tensor_made(&graph, 2, &made, &err), &err);
    CHECK_TEXT(stg_layout_text(&space, made).ptr, "a/dp,c");
    CHECK_EQ_U(stg_layout_hidden(&space, made)[0], stg_layout_shape(&space, y->need_a)[1]);
}

TEST(test_template__an_operand_may_stand_below)
{
    CHECK_OK(parse(HEADER "y,N,x,,I,,a,1,,,,\nx,N,,,T,,a,1,,,,\n",
                   "{\"symbols\": [\"a\"], \"in_tensors\": [], \"out_tensors\": []}"),
             &err);
    CHECK_EQ_U(graph.tensors[0].a, 1);
}

TEST(test_template__names_the_row_that_is_wrong)
{
    check_bad("", "m.csv:1:1: the file is empty");
    check_bad("id,x1\n", "m.csv:1:4: column 2 is 'x1' and must be 'require_grads'");
    check_bad("id,require_grads,x1,x2\n", "4 columns; a module has 11 or 12");
    check_bad(HEADER "x,N,,,T,,a,1,,,,,\n", "m.csv:2:1: 13 cells in a table of 12 columns");
    check_bad(HEADER "x,maybe,,,T,,a,1,,,,\n", "m.csv:2:1: require_grads is 'maybe'");
    check_bad(HEADER "x,N,,,Q,,a,1,,,,\n", "m.csv:2:1: op_type 'Q' of x is not one of");
    check_bad(HEADER "x,N,,,T,,a,1,,,,\nx,N,,,T,,a,1,,,,\n",
              "m.csv:3:1: there is another tensor 'x'");
    check_bad(HEADER "x@256,N,,,T,,a,1,,,,\n", "id 'x@256' is not a name");
    check_bad(HEADER ",N,,,T,,a,1,,,,\n", "id '' is not a name");
    check_bad(HEADER "x,N,q,,I,,a,1,,,,\n", "m.csv:2:1: x1 of x: there is no tensor 'q'");
    check_bad(HEADER "x,N,,,T,,a,1,,,q,\n", "grad_of of x: there is no tensor 'q'");
    check_bad(HEADER "x,N,,,T,,a+,1,,,,\n", "x1_shape and x1_hidden: 'a+' ends where");
    check_bad(HEADER "x,N,,,T,,\"a,,b\",1,,,,\n", "ends where a name, a number or '(' is expected");
    check_bad(HEADER "x,N,,,T,,\"a\n", "quoted field has no end");
}

TEST(test_template__names_a_bad_list_of_dependencies)
{
    check_bad(HEADER "x,N,,,T,,a,1,,,,{\n", "m.csv:2:1: extra_attr");
    check_bad(HEADER "x,N,,,T,,a,1,,,,[1]\n", "extra_attr is not a JSON object");
    check_bad(HEADER "x,N,,,T,,a,1,,,,\"{\"\"data_deps\"\": 3}\"\n",
              "data_deps in extra_attr is not an array");
    check_bad(HEADER "x,N,,,T,,a,1,,,,\"{\"\"data_deps\"\": [3]}\"\n", "m.csv:2:1: extra_attr");
    check_bad(HEADER "x,N,,,T,,a,1,,,,\"{\"\"data_deps\"\": [\"\"q\"\"]}\"\n",
              "data_deps of x: there is no tensor 'q'");
    check_bad(HEADER "x,N,,,T,,a,1,,,,\"{\"\"data_deps\"\": [\"\"x\"\"]}\"\n",
              "tensor x@0, operation T: data_deps are for CUSTOM only");
}

#define X HEADER "x,N,,,T,,\"a,b\",1,,,,\n"

TEST(test_template__checks_what_each_operation_wants)
{
    check_bad(HEADER "x,N,,,T,,,,,,,\n", "operation T: x1_shape and x1_hidden are missing");
    check_bad(X "y,N,,,I,,a,1,,,,\n", "m.csv:3:1: tensor y@0, operation I: operand x1 is missing");
    check_bad(X "y,N,x,,T,,a,1,,,,\n", "operation T: it takes no operand x1");
    check_bad(X "y,N,x,x,I,,a,1,a,1,,\n", "operation I: it takes no operand x2");
    check_bad(X "y,N,x,,A,,a,1,a,1,,\n", "operation A: operand x2 is missing");
    check_bad(X "y,N,x,x,A,,a,1,,,,\n", "x2_shape and x2_hidden are missing");
    check_bad(X "y,N,x,,E,,a,1,,,,\n", "operation E: op_attr is missing");
    check_bad(X "y,N,x,x,A,,\"a,b\",1,\"b,a\",1,,\n", "x1_shape and x2_shape differ");
    check_bad(X "y,N,x,x,A,,a,1,a,1/tp,,\n", "x1_hidden and x2_hidden differ");
    check_bad(X "y,N,x,x,E2,1,a,1,b,1,,\n", "operation E2: x1_shape and x2_shape differ");
    check_bad(X "y,N,x,,R,,\"a,b\",1,a,1,,\n", "have different sizes");
    check_bad(X "y,N,x,,CUSTOM,1,a,1,,,,\n",
              "operation CUSTOM: x2_shape and x2_hidden are missing");
    check_bad(X "y,N,x,,CUSTOM,1+,a,1,a,1,,\n", "op_attr of y@0: '1+' ends where");
}

TEST(test_template__checks_einsums)
{
    check_bad(X "y,N,x,x,M,nonsense,\"a,b\",1,\"a,b\",1,,\n", "op_attr is not an einsum");
    check_bad(X "y,N,x,x,M,\"m,n->m\",\"a,b\",1,\"a,b\",1,,\n",
              "not one letter for each dimension");
    check_bad(X "y,N,x,x,M,\"mn,mk->mk\",\"a,b\",1,\"b,c\",1,,\n",
              "stands for two different extents");
    check_bad(X "y,N,x,x,M,\"mn,mk->mz\",\"a,b\",1,\"a,c\",1,,\n", "is in neither operand");
    check_bad(X "y,N,x,x,M,\"mn,mk->mk\",\"a,b\",1/tp,\"a,c\",1,,\n",
              "operands must be whole sums");
}

TEST(test_template__checks_axes)
{
    check_bad(X "y,N,x,,SLICE,3,\"a,b\",1,,,,\n", "op_attr is not axis:extent");
    check_bad(X "y,N,x,,SLICE,2:a,\"a,b\",1,,,,\n", "not a dimension of x1_shape");
    check_bad(X "y,N,x,,SLICE,1:a+,\"a,b\",1,,,,\n", "op_attr of y@0: 'a+' ends where");
    check_bad(X "y,N,x,,B,1:a,\"a,b\",1,,,,\n", "op_attr is not axis*factor");
    check_bad(X "y,N,x,x,C,1,\"a,b\",1,a,1,,\n", "not a dimension of x2_shape");
}

/* One behind the other along an axis: [a, b] and [a, c] make [a, b + c], as many operations as
 * elements. */
TEST(test_template__concatenates)
{
    stg_layout made;
    stg_expr ops;
    CHECK_OK(parse(X "z,N,,,T,,\"a,c\",1,,,,\ny,N,x,z,C,1,\"a,b\",1/tp,\"a,c\",1,,\n",
                   "{\"symbols\": [\"a\", \"b\", \"c\", \"tp\"], \"in_tensors\": [\"x\"],"
                   " \"out_tensors\": [\"y@0\"]}"),
             &err);
    CHECK_OK(stg_tensor_made(&graph, 2, &made, &err), &err);
    CHECK_TEXT(stg_layout_text(&space, made).ptr, "a,b + c");
    CHECK_OK(stg_tensor_ops(&graph, 2, &ops, &err), &err);
    CHECK_TEXT(stg_expr_text(&space.algebra, ops).ptr, "a*(b + c)");
}

static void check_summary(const char *json, const char *says)
{
    begin(NULL);
    CHECK_CODE(parse(HEADER "x,N,,,T,,a,1,,,,\ny,N,x,,E,5,a,1,,,,\n", json), ORR_EINPUT, &err);
    CHECK_SAYS(&err, says);
    end(NULL);
}

TEST(test_template__compares_the_table_with_its_summary)
{
    check_summary("", "m.json");
    check_summary("{}", "m.json:1:1: there is no \"symbols\"");
    check_summary("{\"symbols\": 3}", "m.json:1:13: \"symbols\" is not an array");
    check_summary("{\"symbols\": []}", "symbol 'a' is in a layout of the table but not listed");
    check_summary("{\"symbols\": [\"a\", \"b\"]}",
                  "symbol 'b' is listed but in no layout of the table");
    check_summary("{\"symbols\": [\"a\"]}", "there is no \"in_tensors\"");
    check_summary("{\"symbols\": [\"a\"], \"in_tensors\": [\"q\"]}",
                  "in_tensors: there is no tensor 'q'");
    check_summary("{\"symbols\": [\"a\"], \"in_tensors\": [\"y\"]}",
                  "'y' is not a placeholder (T)");
    check_summary("{\"symbols\": [\"a\"], \"in_tensors\": [\"x\"], \"out_tensors\": [\"q\"]}",
                  "out_tensors: there is no tensor 'q'");
}

TEST(test_template__brings_all_modules_of_all_families_along)
{
    static const char *const kinds[] = {"tpsp_gpt", "tp_gpt", "tpsp", "tpsp_moe"};
    static const struct {
        const char *name;
        size_t tensors;
    } modules[] = {
        {"embedding", 6},
        {"layer_norm", 4},
        {"residual", 6},
        {"loss", 3},
        {"group_query_attention_surrounding", 22},
        {"moe_frame", 24},
        {"expert_wrapper", 8},
    };
    for (size_t k = 0; k < 4; k++) {
        const size_t with_experts = strcmp(kinds[k], "tpsp_moe") == 0 ? 2 : 0;
        for (size_t i = 0; i < sizeof modules / sizeof *modules - 2 + with_experts; i++) {
            begin(NULL);
            CHECK_OK(stg_module_builtin(&graph, kinds[k], modules[i].name, &err), &err);
            CHECK_EQ_U(graph.count, modules[i].tensors);
            end(NULL);
        }
    }
    CHECK_CODE(stg_module_builtin(&graph, "tpsp", "no_such", &err), ORR_EBUG, &err);
}

TEST(test_template__replaces_whole_names_in_attributes)
{
    stg_tensor t = stg_tensor_new(&space, "y", ORR__OP_CUSTOM);
    t.attr = stg_word_of(&space, orr_str_of("Batch/dp*MicroBatch*Batch2+Batch"));
    t.need_a = t.need_b = stg_layout_line(&space, ORR__ONE);
    stg_tgraph_add(&graph, &t);
    CHECK_OK(stg_tgraph_replace(&graph, 0, "Batch", "MicroBatch", false, &err), &err);
    CHECK_TEXT(stg_word_text(&space, graph.tensors[0].attr).ptr,
               "(MicroBatch)/dp*MicroBatch*Batch2+(MicroBatch)");
}

#define SET(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
    const CMUnitTest tests[] = {
        SET(test_template__reads_a_table_and_what_is_said_of_it),
        SET(test_template__an_operand_may_stand_below),
        RUN(test_template__names_the_row_that_is_wrong),
        RUN(test_template__names_a_bad_list_of_dependencies),
        RUN(test_template__checks_what_each_operation_wants),
        RUN(test_template__checks_einsums),
        RUN(test_template__checks_axes),
        SET(test_template__concatenates),
        RUN(test_template__compares_the_table_with_its_summary),
        RUN(test_template__brings_all_modules_of_all_families_along),
        SET(test_template__replaces_whole_names_in_attributes),
    };
    return RUN_ALL(tests);
}
