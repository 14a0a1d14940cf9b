/* SPDX-License-Identifier: Apache-2.0 */
/* room: scale_sim */
/* Tables of shapes: the header, kinds of layers, defaults, and what is refused where. */
#include "check.h"

#include "compat/scale_sim/scale_sim.h"
#include "sources/layers/gemm_impl.h"

static orr_code parse(const char *text, orr_shapes **out, orr_error *err)
{
    return orr_shapes_parse((orr_span){(const uint8_t *)text, strlen(text)}, "t.csv", NULL, out,
                            err);
}

static orr_shapes *read_text(const char *text)
{
    orr_shapes *s;
    orr_error err;
    CHECK_OK(parse(text, &s, &err), &err);
    return s;
}

static void refuse(const char *text, uint32_t line, uint32_t column, const char *words)
{
    orr_shapes *s;
    orr_error err;
    CHECK_CODE(parse(text, &s, &err), ORR_EINPUT, &err);
    CHECK(s == NULL);
    CHECK_SAYS(&err, words);
    CHECK_TEXT(err.where.path, "t.csv");
    CHECK_EQ_U(err.where.line, line);
    CHECK_EQ_U(err.where.column, column);
}

TEST(test_shapes__plain_table_is_products)
{
    orr_shapes *s = read_text("Layer,m,n,k\nfc1,8,16,32\n\n# a remark\nfc2, 1 ,2,3\r\n");
    CHECK_EQ_U(orr_shapes_count(s), 2);
    CHECK(!orr_shapes_have_policies(s));
    CHECK_TEXT(s->all[0].name.ptr, "fc1");
    CHECK_EQ(s->all[0].kind, ORR_SHAPE_GEMM);
    CHECK_EQ_U(s->all[0].size[ORR__M], 8);
    CHECK_EQ_U(s->all[0].size[ORR__N], 16);
    CHECK_EQ_U(s->all[0].size[ORR__K], 32);
    CHECK_EQ_U(s->all[1].size[ORR__M], 1);
    CHECK_EQ_U(s->all[1].line, 5);
    orr_shapes_free(s);
}

TEST(test_shapes__header_names_columns_in_any_order_and_case)
{
    orr_shapes *s = read_text("K, N ,Layer Name,M,CustomizedParallelization\n3,2,a,1,MODEL\n");
    CHECK(orr_shapes_have_policies(s));
    CHECK_EQ_U(s->all[0].size[ORR__M], 1);
    CHECK_EQ_U(s->all[0].size[ORR__N], 2);
    CHECK_EQ_U(s->all[0].size[ORR__K], 3);
    CHECK_EQ(s->all[0].policy, ORR_POLICY_MODEL);
    orr_shapes_free(s);
}

TEST(test_shapes__kinds_have_defaults)
{
    orr_shapes *s = read_text("name,type,m,n,batch,h,w,cin,cout,kh,rows,dim,heads,seq_q,head_dim\n"
                              "c,conv,,,2,7,9,3,4,5,,,,,\n"
                              "e,embedding,,,2,,,,,,100,16,,,\n"
                              "a,attention,,,2,,,,,,,,8,64,32\n"
                              "x,elementwise,5,6\n"
                              "g,activation,5,6\n");
    const uint64_t *c = s->all[0].size, *e = s->all[1].size, *a = s->all[2].size;
    CHECK(c[ORR__KW] == 5 && c[ORR__STRIDE] == 1 && c[ORR__PAD] == 0 && c[ORR__DILATION] == 1 &&
          c[ORR__GROUPS] == 1);
    CHECK(e[ORR__LOOKUPS] == 1 && e[ORR__TABLES] == 1);
    CHECK(a[ORR__SEQ_K] == 64 && a[ORR__KV_HEADS] == 8 && a[ORR__CAUSAL] == 0 &&
          a[ORR__FUSED] == 0);
    CHECK_EQ_U(s->all[3].size[ORR__OPERANDS], 2);
    CHECK_TEXT(orr_shape_kind_name(s->all[4].kind), "activation");
    orr_shapes_free(s);
}

TEST(test_shapes__a_comma_at_the_end_of_each_line_is_fine)
{
    orr_shapes *s = read_text("Layer,m,n,k,\na,1,2,3,\n");
    CHECK_EQ_U(orr_shapes_count(s), 1);
    orr_shapes_free(s);
}

TEST(test_shapes__errors_name_line_and_column)
{
    refuse("", 1, 1, "the file is empty");
    refuse("# nothing\n", 1, 1, "the file is empty");
    refuse("a,1,2,3\n", 1, 1, "no column \"a\"");
    refuse("Layer,8,16,32\n", 1, 7, "\"8\" is a number");
    refuse("Layer,m,n\na,1,2\n", 1, 1, "no column k");
    refuse("m,n,k\n1,2,3\n", 1, 1, "no column Layer");
    refuse("Layer,m,n,k,m\n", 1, 13, "duplicate column");
    refuse("Layer,m,n,kk\n", 1, 11, "no column \"kk\"");
    refuse("Layer,m,n,k\n", 2, 1, "no layers");
    refuse("Layer,m,n,k\na,1,2\n", 2, 1, "needs k");
    refuse("Layer,m,n,k\na,1,,3\n", 2, 1, "needs n");
    refuse("Layer,m,n,k\na,1,2,3,4\n", 2, 9, "one too many");
    refuse("Layer,m,n,k\na,-8,2,3\n", 2, 3, "m: \"-8\" is not a whole number");
    refuse("Layer,m,n,k\na,1,0,3\n", 2, 5, "n: \"0\"");
    refuse("Layer,m,n,k\na,1,2,99999999999999999999\n", 2, 7, "k: \"99999999999999999999\"");
    refuse("Layer,m,n,k\na,1.5,2,3\n", 2, 3, "m: \"1.5\"");
    refuse("Layer,m,n,k\na b,1,2,3\n", 2, 1, "\"a b\"");
    refuse("Layer,m,n,k\n,1,2,3\n", 2, 1, "no name");
    refuse("Layer,type,m,n,k\na,pool,1,2,3\n", 2, 3, "type: \"pool\"");
    refuse("Layer,type,m,n,k,h\na,gemm,1,2,3,4\n", 2, 14, "has no h");
    refuse("Layer,type,m,n,k\na,conv,1,2,3\n", 2, 8, "has no m");
    refuse("Layer,m,n,k,strategy\na,1,2,3,FOO\n", 2, 9, "strategy: \"FOO\"");
    refuse("Layer,m,n,k,strategy\na,1,2,3,HYBRID_CUSTOMIZED\n", 2, 9, "strategy");
    refuse("Layer,m,n,k\n\"a,1,2,3\n", 2, 1, "quoted field");
}

TEST(test_shapes__old_form_skips_its_first_line_and_reads_by_place)
{
    const char *text = "whatever\nL 0, 8,4,4,extra\n x,1,2,3\n";
    const orr_shapes_options opt = {.rules = &orr__gemm_v2};
    orr_shapes *s;
    orr_error err;
    CHECK_OK(
        orr_shapes_parse((orr_span){(const uint8_t *)text, strlen(text)}, "t.csv", &opt, &s, &err),
        &err);
    CHECK_EQ_U(orr_shapes_count(s), 2);
    CHECK_TEXT(s->all[0].name.ptr, "L 0");
    CHECK_EQ_U(s->all[0].size[ORR__M], 8);
    CHECK_TEXT(s->all[1].name.ptr, "x");
    orr_shapes_free(s);
}

TEST(test_shapes__examples_can_be_read)
{
    static const size_t layers[] = {54, 10, 10};
    orr_shapes_example e;
    size_t i = 0;
    for (; orr_shapes_example_at(i, &e); i++) {
        orr_shapes *s;
        orr_error err;
        CHECK(i < 3);
        CHECK_OK(orr_shapes_parse((orr_span){(const uint8_t *)e.text.ptr, e.text.len}, e.name, NULL,
                                  &s, &err),
                 &err);
        CHECK_EQ_U(orr_shapes_count(s), layers[i]);
        orr_shapes_free(s);
    }
    CHECK_EQ_U(i, 3);
}

int main(void)
{
    const CMUnitTest tests[] = {
        RUN(test_shapes__plain_table_is_products),
        RUN(test_shapes__header_names_columns_in_any_order_and_case),
        RUN(test_shapes__kinds_have_defaults),
        RUN(test_shapes__a_comma_at_the_end_of_each_line_is_fine),
        RUN(test_shapes__errors_name_line_and_column),
        RUN(test_shapes__old_form_skips_its_first_line_and_reads_by_place),
        RUN(test_shapes__examples_can_be_read),
    };
    return RUN_ALL(tests);
}
