/* SPDX-License-Identifier: Apache-2.0 */
#include "check.h"

#include "models/compute/operators/operator_cost.h"

/* A call as text: inputs, '>' and results; each DIMSxDIMS:BYTES, "()" for a scalar, '!' when it is
 * written in place, '@' and strides when it is not contiguous: "256x768:2 768:2 > 256x768:2". */
enum { TENSORS_MOST = 40, RANK_MOST = 8 };

typedef struct sketch {
    operator_tensor tensors[TENSORS_MOST];
    uint64_t dims[TENSORS_MOST][2][RANK_MOST];
    operator_call call;
} sketch;

static const char *read_dims(const char *s, uint64_t *dims, uint32_t *rank)
{
    *rank = 0;
    if (s[0] == '(')
        return s + 2;
    for (;; s++) {
        char *end;
        dims[(*rank)++] = strtoull(s, &end, 10);
        s = end;
        if (*s != 'x')
            return s;
    }
}

static const char *read_tensor(const char *s, sketch *k, uint32_t at)
{
    operator_tensor *t = &k->tensors[at];
    uint32_t strides;
    char *end;
    s = read_dims(s, k->dims[at][0], &t->rank);
    t->shape = k->dims[at][0];
    t->element_bytes = (uint32_t)strtoul(s + 1, &end, 10);
    s = end;
    if (*s == '@') {
        s = read_dims(s + 1, k->dims[at][1], &strides);
        t->stride = k->dims[at][1];
    }
    t->is_written = *s == '!';
    t->is_parameter = *s == '^';
    return t->is_written || t->is_parameter ? s + 1 : s;
}

static void read_call(sketch *k, const char *name, const char *s)
{
    uint32_t count = 0, inputs = UINT32_MAX;
    memset(k, 0, sizeof *k);
    while (*s) {
        if (*s == ' ') {
            s++;
        } else if (*s == '>') {
            inputs = count;
            s++;
        } else {
            s = read_tensor(s, k, count++);
        }
    }
    inputs = inputs < count ? inputs : count;
    k->call = (operator_call){.name = {name, strlen(name)},
                              .in = k->tensors,
                              .in_count = inputs,
                              .out = k->tensors + inputs,
                              .out_count = count - inputs};
}

static operator_cost cost(const char *name, const char *tensors)
{
    sketch k;
    read_call(&k, name, tensors);
    return orr__operator_cost(&k.call);
}

static operator_cost causal(const char *name, const char *tensors)
{
    sketch k;
    read_call(&k, name, tensors);
    k.call.is_causal = true;
    return orr__operator_cost(&k.call);
}

static operator_cost transposed(const char *name, const char *tensors)
{
    sketch k;
    read_call(&k, name, tensors);
    k.call.is_transposed = true;
    return orr__operator_cost(&k.call);
}

static operator_cost equation(const char *words, const char *tensors)
{
    sketch k;
    read_call(&k, "aten.einsum.default", tensors);
    k.call.equation = (orr_str){words, strlen(words)};
    return orr__operator_cost(&k.call);
}

#define CHECK_COST(c, k, f, r, w)           \
    do {                                    \
        const operator_cost got = (c);      \
        CHECK_EQ(got.kind, (k));            \
        CHECK_EQ_U(got.flops, (f));         \
        CHECK_EQ_U(got.bytes_read, (r));    \
        CHECK_EQ_U(got.bytes_written, (w)); \
    } while (0)

/* ---- the table ---- */

static void check_sorted(operator_rows table)
{
    for (size_t i = 1; i < table.count; i++) {
        if (strcmp(table.rows[i - 1].name, table.rows[i].name) >= 0)
            check_fail(__FILE__, __LINE__, "%s stands behind %s", table.rows[i].name,
                       table.rows[i - 1].name);
    }
}

TEST(test_operator_cost__tables_are_sorted_and_apart)
{
    const operator_rows moves = orr__operator_moves(), sums = orr__operator_arithmetic();
    size_t i = 0, j = 0;
    check_sorted(moves);
    check_sorted(sums);
    while (i < moves.count && j < sums.count) {
        const int order = strcmp(moves.rows[i].name, sums.rows[j].name);
        if (order == 0)
            check_fail(__FILE__, __LINE__, "%s is in both tables", moves.rows[i].name);
        i += order < 0;
        j += order > 0;
    }
}

TEST(test_operator_cost__every_row_is_found_by_its_name)
{
    const operator_rows tables[] = {orr__operator_moves(), orr__operator_arithmetic()};
    for (size_t t = 0; t < 2; t++) {
        for (size_t i = 0; i < tables[t].count; i++) {
            const char *word = tables[t].rows[i].name;
            const operator_name name = orr__operator_name((orr_str){word, strlen(word)});
            CHECK(orr__operator_row(&name) == &tables[t].rows[i]);
        }
    }
}

/* The page says how many there are. */
TEST(test_operator_cost__the_page_has_the_number_of_rows)
{
    char path[512], line[512], words[64];
    const char *root = getenv("ORR_ROOT");
    if (!root)
        skip();
    snprintf(path, sizeof path, "%s/docs/design/operators.md", root);
    snprintf(words, sizeof words, "%zu operators",
             orr__operator_moves().count + orr__operator_arithmetic().count);
    FILE *f = fopen(path, "r");
    CHECK(f);
    bool is_there = false;
    while (fgets(line, sizeof line, f))
        is_there |= strstr(line, words) != NULL;
    fclose(f);
    if (!is_there)
        check_fail(__FILE__, __LINE__, "%s does not say \"%s\"", path, words);
}

/* tests/capture/operators.py wrote the list: what training steps of all sorts dispatch. */
TEST(test_operator_cost__ordinary_training_has_no_unknown_operators)
{
    char path[512], line[256];
    const char *root = getenv("ORR_ROOT");
    size_t count = 0;
    if (!root)
        skip();
    snprintf(path, sizeof path, "%s/tests/capture/operators.txt", root);
    FILE *f = fopen(path, "r");
    CHECK(f);
    for (; fgets(line, sizeof line, f); count++) {
        line[strcspn(line, "\n")] = '\0';
        if (strcmp(line, "aten.einsum.default") != 0 &&
            cost(line, "4x4:4 4x4:4 > 4x4:4").kind == OPERATOR_UNKNOWN)
            check_fail(__FILE__, __LINE__, "%s is not in the table", line);
    }
    fclose(f);
    CHECK(count > 100);
}

TEST(test_operator_cost__names_as_each_writer_spells_them)
{
    static const char *const spellings[] = {"aten.mm.default", "torch.ops.aten.mm.default",
                                            "aten::mm", "aten::mm.out", "mm"};
    for (size_t i = 0; i < sizeof spellings / sizeof *spellings; i++)
        CHECK_EQ_U(cost(spellings[i], "2x3:4 3x5:4 > 2x5:4").flops, 2 * 2 * 3 * 5);
}

TEST(test_operator_cost__names_that_are_none)
{
    CHECK_EQ(cost("", "").kind, OPERATOR_UNKNOWN);
    CHECK_EQ(cost("aten.", "").kind, OPERATOR_UNKNOWN);
    CHECK_EQ(cost("aten._", "").kind, OPERATOR_UNKNOWN);
    CHECK_EQ(cost("::", "").kind, OPERATOR_UNKNOWN);
    CHECK_EQ(cost("aten._foreach_", "").kind, OPERATOR_UNKNOWN);
    CHECK_EQ(cost("other.mm.default", "2x3:4 3x5:4").kind, OPERATOR_UNKNOWN);
}

TEST(test_operator_cost__unknown_operators_move_their_tensors)
{
    CHECK_COST(cost("mine.fused_thing.default", "4x8:2 8:4 > 4x8:2"), OPERATOR_UNKNOWN, 0,
               4 * 8 * 2 + 8 * 4, 4 * 8 * 2);
}

TEST(test_operator_cost__collectives_and_waits_are_left_to_the_network)
{
    CHECK_COST(cost("c10d.allreduce_.default", "64:4!"), OPERATOR_COLLECTIVE, 0, 0, 0);
    CHECK_COST(cost("_c10d_functional.all_reduce.default", "64:4 > 64:4"), OPERATOR_COLLECTIVE, 0,
               0, 0);
    CHECK_COST(cost("_c10d_functional.wait_tensor.default", "64:4 > 64:4"), OPERATOR_WAIT, 0, 0, 0);
    CHECK_COST(cost("orrery.wait", "64:4"), OPERATOR_WAIT, 0, 0, 0);
}

/* ---- what costs nothing ---- */

TEST(test_operator_cost__views_metadata_and_allocations_are_free)
{
    static const char *const names[] = {"aten.view.default",        "aten.t.default",
                                        "aten.expand.default",      "aten._unsafe_view.default",
                                        "aten.detach.default",      "aten.slice.Tensor",
                                        "aten.empty.memory_format", "aten.split_with_sizes.default",
                                        "aten.sym_size.int",        "aten.transpose_.default"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        CHECK_COST(cost(names[i], "4x8:2 > 8x4:2"), OPERATOR_FREE, 0, 0, 0);
}

TEST(test_operator_cost__what_the_reader_calls_a_view_is_one)
{
    sketch k;
    read_call(&k, "mine.look_at.default", "4x8:2 > 4x8:2");
    k.call.is_view = true;
    CHECK_EQ(orr__operator_cost(&k.call).kind, OPERATOR_FREE);
}

TEST(test_operator_cost__reshaping_copies_when_elements_are_not_in_order)
{
    CHECK_EQ(cost("aten.reshape.default", "4x8:2 > 32:2").kind, OPERATOR_FREE);
    CHECK_EQ(cost("aten.reshape.default", "4x8:2@8x1 > 32:2").kind, OPERATOR_FREE);
    CHECK_COST(cost("aten.reshape.default", "4x8:2@1x4 > 32:2"), OPERATOR_MOVE, 0, 64, 64);
}

TEST(test_operator_cost__converting_costs_between_types_only)
{
    CHECK_EQ(cost("aten.to.dtype", "16:4 > 16:4").kind, OPERATOR_FREE);
    CHECK_COST(cost("aten.to.dtype", "16:4 > 16:2"), OPERATOR_MOVE, 0, 64, 32);
    CHECK_COST(cost("aten._to_copy.default", "16:4 > 16:2"), OPERATOR_MOVE, 0, 64, 32);
}

/* ---- matrices ---- */

TEST(test_operator_cost__matrix_products)
{
    CHECK_COST(cost("aten.mm.default", "256x768:2 768x3072:2 > 256x3072:2"), OPERATOR_COMPUTE,
               2ull * 256 * 768 * 3072, 2 * (256 * 768 + 768 * 3072), 2 * 256 * 3072);
    CHECK_EQ_U(cost("aten.addmm.default", "5:4 2x3:4 3x5:4 > 2x5:4").flops, 2 * 2 * 3 * 5);
    CHECK_EQ_U(cost("aten.bmm.default", "7x2x3:4 7x3x5:4 > 7x2x5:4").flops, 2 * 7 * 2 * 3 * 5);
    CHECK_EQ_U(cost("aten.baddbmm.default", "7x2x5:4 7x2x3:4 7x3x5:4 > 7x2x5:4").flops,
               2 * 7 * 2 * 3 * 5);
    CHECK_EQ_U(cost("aten.mv.default", "2x3:4 3:4 > 2:4").flops, 2 * 2 * 3);
    CHECK_EQ_U(cost("aten.addmv.default", "2:4 2x3:4 3:4 > 2:4").flops, 2 * 2 * 3);
    CHECK_EQ_U(cost("aten.dot.default", "9:4 9:4 > ():4").flops, 2 * 9);
    CHECK_EQ_U(cost("aten._int_mm.default", "32x64:1 64x16:1 > 32x16:4").flops, 2 * 32 * 64 * 16);
    CHECK_EQ_U(cost("aten._scaled_mm.default", "32x64:1 64x16:1 ():4 ():4 > 32x16:2").flops,
               2 * 32 * 64 * 16);
}

/* matmul: 4 batches of 2 x 3 by one 3 x 5; a vector on either side. */
TEST(test_operator_cost__matmul_stretches_batches)
{
    CHECK_EQ_U(cost("aten.matmul.default", "4x2x3:4 3x5:4 > 4x2x5:4").flops, 2 * 4 * 2 * 3 * 5);
    CHECK_EQ_U(cost("aten.matmul.default", "2x3:4 4x3x5:4 > 4x2x5:4").flops, 2 * 4 * 2 * 3 * 5);
    CHECK_EQ_U(cost("aten.matmul.default", "6x1x2x3:4 4x3x5:4 > 6x4x2x5:4").flops,
               2 * 6 * 4 * 2 * 3 * 5);
    CHECK_EQ_U(cost("aten.matmul.default", "4x2x3:4 3:4 > 4x2:4").flops, 2 * 4 * 2 * 3);
    CHECK_EQ_U(cost("aten.matmul.default", "3:4 3x5:4 > 5:4").flops, 2 * 3 * 5);
}

TEST(test_operator_cost__linear_is_counted_by_its_columns)
{
    CHECK_EQ_U(cost("aten.linear.default", "8x16x32:2 64x32:2 64:2 > 8x16x64:2").flops,
               2 * 8 * 16 * 32 * 64);
    CHECK_EQ_U(cost("aten::linear", "8x16x32:2 64x32:2 64:2").flops, 2 * 8 * 16 * 32 * 64);
    /* 64 columns of 4-bit weights in a shape of their own */
    CHECK_EQ_U(
        cost("aten._weight_int4pack_mm.default", "16x32:2 8x2x32x4:4 1x64x2:2 > 16x64:2").flops,
        2 * 16 * 32 * 64);
}

/* 100 rows of 8, each with one of 4 matrices 8 x 16; the gradient of the matrices; columns in
 * groups. */
TEST(test_operator_cost__grouped_products_count_each_row_once)
{
    CHECK_EQ_U(cost("aten._grouped_mm.default", "100x8:2 4x8x16:2 4:4 > 100x16:2").flops,
               2 * 100 * 8 * 16);
    CHECK_EQ_U(cost("aten._grouped_mm.default", "8x100:2 100x16:2 4:4 > 4x8x16:2").flops,
               2 * 8 * 100 * 16);
    CHECK_EQ_U(cost("aten._grouped_mm.default", "4x8x16:2 16x100:2 4:4 > 8x100:2").flops,
               2 * 8 * 16 * 100);
    CHECK_EQ_U(cost("aten._grouped_mm.default", "4x5x8:2 4x8x16:2 > 4x5x16:2").flops,
               2 * 4 * 5 * 8 * 16);
}

TEST(test_operator_cost__einsum_by_its_letters)
{
    CHECK_EQ_U(equation("bij,bjk->bik", "7x2x3:4 7x3x5:4 > 7x2x5:4").flops, 2 * 7 * 2 * 3 * 5);
    CHECK_EQ_U(equation("bhqd, bhkd -> bhqk", "2x4x8x16:4 2x4x9x16:4 > 2x4x8x9:4").flops,
               2 * 2 * 4 * 8 * 9 * 16);
    CHECK_EQ_U(equation("...ij,...jk->...ik", "6x7x2x3:4 6x7x3x5:4 > 6x7x2x5:4").flops,
               2 * 6 * 7 * 2 * 3 * 5);
    CHECK_EQ_U(equation("ii->", "5x5:4 > ():4").flops, 5);
    CHECK_EQ_U(equation("bij,bjk->bik", "7x2:4 7x3x5:4").flops, 0); /* letters without dimensions */
    CHECK_EQ(equation("", "7x2:4").kind, OPERATOR_UNKNOWN);
}

TEST(test_operator_cost__distances)
{
    CHECK_EQ_U(cost("aten._cdist_forward.default", "2x10x3:4 2x20x3:4 > 2x10x20:4").flops,
               3 * 2 * 10 * 20 * 3);
}

/* ---- convolutions ---- */

/* ResNet-50's first: 7 x 7, 3 -> 64, stride 2, 224 -> 112: 118,013,952 multiplications. */
TEST(test_operator_cost__convolution_of_resnet)
{
    CHECK_COST(cost("aten.convolution.default", "1x3x224x224:4 64x3x7x7:4 > 1x64x112x112:4"),
               OPERATOR_COMPUTE, 2ull * 118013952, 4ull * (3 * 224 * 224 + 64 * 3 * 49),
               4ull * 64 * 112 * 112);
}

/* Depthwise, 32 groups of one channel: 9 multiplications an element. */
TEST(test_operator_cost__convolution_heeds_groups_and_dimensions)
{
    CHECK_EQ_U(cost("aten.convolution.default", "2x32x14x14:4 32x1x3x3:4 > 2x32x14x14:4").flops,
               2 * 9 * 2 * 32 * 14 * 14);
    CHECK_EQ_U(cost("aten.conv1d.default", "2x8x100:4 16x8x5:4 16:4 > 2x16x96:4").flops,
               2 * 8 * 5 * 2 * 16 * 96);
    CHECK_EQ_U(cost("aten.conv3d.default", "1x4x8x8x8:4 6x4x3x3x3:4 > 1x6x6x6x6:4").flops,
               2 * 4 * 27 * 6 * 6 * 6 * 6);
    /* The result is not known: as large as the input. */
    CHECK_EQ_U(cost("aten::conv2d", "2x3x32x32:4 8x3x3x3:4").flops, 2 * 27 * 2 * 8 * 32 * 32);
}

/* 16 -> 8 channels, 4 x 4, every element of the input gives to 8 * 16. */
TEST(test_operator_cost__transposed_convolution_goes_by_the_input)
{
    const char *call = "2x16x10x10:4 16x8x4x4:4 > 2x8x22x22:4";
    CHECK_EQ_U(transposed("aten.convolution.default", call).flops, 2 * 2 * 16 * 100 * 8 * 16);
    CHECK_EQ_U(cost("aten.conv_transpose2d.input", call).flops, 2 * 2 * 16 * 100 * 8 * 16);
}

TEST(test_operator_cost__convolution_backward_has_what_is_asked_for)
{
    const uint64_t forward = 2 * 27 * 2 * 8 * 30 * 30;
    CHECK_EQ_U(cost("aten.convolution_backward.default",
                    "2x8x30x30:4 2x3x32x32:4 8x3x3x3:4 > 2x3x32x32:4 8x3x3x3:4 8:4")
                   .flops,
               2 * forward + 2 * 8 * 30 * 30);
    CHECK_EQ_U(
        cost("aten.convolution_backward.default", "2x8x30x30:4 2x3x32x32:4 8x3x3x3:4 > 8x3x3x3:4")
            .flops,
        forward);
    CHECK_EQ_U(cost("aten::convolution_backward", "2x8x30x30:4 2x3x32x32:4 8x3x3x3:4").flops,
               2 * forward);
    CHECK_EQ_U(transposed("aten.convolution_backward.default",
                          "2x8x22x22:4 2x16x10x10:4 16x8x4x4:4 > 2x16x10x10:4")
                   .flops,
               2 * 2 * 16 * 100 * 8 * 16);
}

/* ---- attention ---- */

/* GPT-2: 8 x 12 heads x 1,024 x 64; causal pairs 1024 * 1025 / 2. */
TEST(test_operator_cost__attention_of_gpt2)
{
    const char *forward =
        "8x12x1024x64:2 8x12x1024x64:2 8x12x1024x64:2 > 8x12x1024x64:2 8x12x1024:4";
    const uint64_t all = 8ull * 12 * 1024 * 1024, half = 8ull * 12 * 1024 * 1025 / 2;
    const uint64_t one = 8ull * 12 * 1024 * 64 * 2;
    CHECK_COST(cost("aten._scaled_dot_product_flash_attention.default", forward), OPERATOR_COMPUTE,
               all * 4 * 64, 3 * one, one + 8 * 12 * 1024 * 4);
    CHECK_EQ_U(causal("aten._scaled_dot_product_flash_attention_for_cpu.default", forward).flops,
               half * 4 * 64);
    CHECK_EQ_U(causal("aten._scaled_dot_product_cudnn_attention_backward.default",
                      "8x12x1024x64:2 8x12x1024x64:2 8x12x1024x64:2 8x12x1024x64:2 8x12x1024x64:2")
                   .flops,
               half * 10 * 64);
}

TEST(test_operator_cost__every_variant_of_attention_costs_the_same)
{
    static const char *const names[] = {"scaled_dot_product_attention",
                                        "_scaled_dot_product_flash_attention",
                                        "_scaled_dot_product_efficient_attention",
                                        "_scaled_dot_product_cudnn_attention",
                                        "_scaled_dot_product_flash_attention_for_cpu",
                                        "_scaled_dot_product_attention_math",
                                        "_cudnn_attention_forward"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        CHECK_EQ_U(cost(names[i], "2x4x8x16:2 2x4x8x16:2 2x4x8x16:2").flops,
                   2 * 4 * 8 * 8 * 4 * 16);
}

/* 8 heads of queries on 2 of keys: the queries' heads count.  Values narrower than keys.  Queries
 * fewer and more than keys: the first query sees the first key. */
TEST(test_operator_cost__attention_of_other_shapes)
{
    const char *name = "aten._scaled_dot_product_flash_attention.default";
    CHECK_EQ_U(cost(name, "2x8x16x32:2 2x2x16x32:2 2x2x16x32:2").flops, 2 * 8 * 16 * 16 * 4 * 32);
    CHECK_EQ_U(cost(name, "2x8x16x32:2 2x8x16x32:2 2x8x16x24:2").flops,
               2 * 8 * 16 * 16 * 2 * (32 + 24));
    CHECK_EQ_U(cost("aten._scaled_dot_product_flash_attention_backward.default",
                    "2x8x16x24:2 2x8x16x32:2 2x8x16x32:2 2x8x16x24:2")
                   .flops,
               2 * 8 * 16 * 16 * 2 * (3 * 32 + 2 * 24));
    CHECK_EQ_U(causal(name, "1x1x3x1:2 1x1x5x1:2 1x1x5x1:2").flops, (1 + 2 + 3) * 4);
    CHECK_EQ_U(causal(name, "1x1x5x1:2 1x1x3x1:2 1x1x3x1:2").flops, (1 + 2 + 3 + 3 + 3) * 4);
}

/* The kernels' own operators have the length before the heads; several sequences in one batch of 4
 * x 256 tokens. */
TEST(test_operator_cost__attention_by_rows)
{
    CHECK_EQ_U(
        cost("aten._flash_attention_forward.default", "2x128x4x64:2 2x128x4x64:2 2x128x4x64:2")
            .flops,
        2 * 4 * 128 * 128 * 4 * 64);
    CHECK_EQ_U(
        cost("aten._flash_attention_forward.default", "1024x4x64:2 1024x4x64:2 1024x4x64:2 5:4 5:4")
            .flops,
        4 * 4 * 256 * 256 * 4 * 64);
    CHECK_EQ_U(cost("aten._efficient_attention_backward.default",
                    "2x128x4x64:2 2x128x4x64:2 2x128x4x64:2 2x128x4x64:2")
                   .flops,
               2 * 4 * 128 * 128 * 10 * 64);
}

/* An LSTM layer of 4 * 20 x 10 and 4 * 20 x 20, 7 steps of 3 sequences. */
TEST(test_operator_cost__recurrent_layers_meet_every_matrix_with_every_token)
{
    const char *call = "7x3x10:4 80x10:4 80x20:4 80:4 80:4 1x3x20:4 1x3x20:4";
    const uint64_t forward = 2 * 7 * 3 * (80 * 10 + 80 * 20);
    CHECK_EQ_U(cost("aten._cudnn_rnn.default", call).flops, forward);
    CHECK_EQ_U(cost("aten._cudnn_rnn_backward.default", call).flops, 2 * forward);
}

/* ---- elements ---- */

TEST(test_operator_cost__pointwise)
{
    CHECK_COST(cost("aten.add.Tensor", "4x8:2 4x8:2 > 4x8:2"), OPERATOR_COMPUTE, 32, 128, 64);
    CHECK_EQ_U(cost("aten.gelu.default", "4x8:2 > 4x8:2").flops, 8 * 32);
    CHECK_EQ_U(cost("aten.gelu_backward.default", "4x8:2 4x8:2 > 4x8:2").flops, 16 * 32);
    /* SiLU and the gate: 6, as the generator of models has it */
    CHECK_EQ_U(cost("aten.silu.default", "4x8:2 > 4x8:2").flops +
                   cost("aten.mul.Tensor", "4x8:2 4x8:2 > 4x8:2").flops,
               6 * 32);
    CHECK_EQ_U(cost("aten::mul", "4x1:2 8:2").flops, 32); /* stretched: no result is known */
}

TEST(test_operator_cost__in_place_reads_and_writes_its_first)
{
    CHECK_COST(cost("aten.add_.Tensor", "4x8:2! 4x8:2 > 4x8:2"), OPERATOR_COMPUTE, 32, 128, 64);
    CHECK_COST(cost("aten::add_", "4x8:2 4x8:2 > 4x8:2"), OPERATOR_COMPUTE, 32, 128, 64);
    CHECK_COST(cost("aten.add.out", "4x8:2 4x8:2 4x8:2! > 4x8:2"), OPERATOR_COMPUTE, 32, 128, 64);
}

TEST(test_operator_cost__stretched_tensors_are_read_once)
{
    CHECK_COST(cost("aten.mul.Tensor", "4x8:2 4x8:2@0x1 > 4x8:2"), OPERATOR_COMPUTE, 32, 64 + 16,
               64);
    /* windows of 3 over 10 elements: 8 x 3 that are 10 */
    CHECK_EQ_U(cost("aten.clone.default", "8x3:4@1x1 > 8x3:4").bytes_read, 40);
}

TEST(test_operator_cost__what_is_overwritten_is_not_read)
{
    CHECK_COST(cost("aten.copy_.default", "16:4! 16:2 > 16:4"), OPERATOR_MOVE, 0, 32, 64);
    CHECK_COST(cost("aten::copy_", "16:4 16:2 > 16:4"), OPERATOR_MOVE, 0, 32, 64);
    CHECK_COST(cost("aten.fill_.Scalar", "16:4! > 16:4"), OPERATOR_MOVE, 0, 0, 64);
    CHECK_COST(cost("aten.zeros_like.default", "16:4 > 16:4"), OPERATOR_MOVE, 0, 0, 64);
    CHECK_COST(cost("aten.normal_.default", "16:4! > 16:4"), OPERATOR_COMPUTE, 4 * 16, 0, 64);
    CHECK_COST(cost("aten._foreach_copy_.default", "16:4! 8:4! 16:2 8:2"), OPERATOR_MOVE, 0, 48,
               96);
}

TEST(test_operator_cost__lists)
{
    CHECK_COST(cost("aten._foreach_add_.Scalar", "():4! ():4! ():4!"), OPERATOR_COMPUTE, 3, 12, 12);
    CHECK_COST(cost("aten._foreach_mul.Scalar", "10:4 20:4 > 10:4 20:4"), OPERATOR_COMPUTE, 30, 120,
               120);
    /* from a host trace, which does not say what is written: a list and a number, two lists */
    CHECK_EQ_U(cost("aten::_foreach_mul_", "10:4 20:4").flops, 30);
    CHECK_EQ_U(cost("aten::_foreach_add_", "10:4 20:4 10:4 20:4").flops, 30);
    CHECK_EQ_U(cost("aten._foreach_norm.Scalar", "10:4 20:4 > ():4 ():4").flops, 2 * 30);
    CHECK_COST(cost("aten.cat.default", "10:4 20:4 > 30:4"), OPERATOR_MOVE, 0, 120, 120);
}

/* ---- over all elements of the input ---- */

TEST(test_operator_cost__reductions_softmax_and_norms)
{
    CHECK_COST(cost("aten.sum.dim_IntList", "256x768:2 > 1x768:2"), OPERATOR_COMPUTE, 256 * 768,
               2 * 256 * 768, 2 * 768);
    CHECK_EQ_U(cost("aten._softmax.default", "4x8:4 > 4x8:4").flops, 5 * 32);
    CHECK_EQ_U(cost("aten._log_softmax_backward_data.default", "4x8:4 4x8:4 > 4x8:4").flops,
               4 * 32);
    CHECK_EQ_U(cost("aten.native_layer_norm.default", "4x8:2 8:2 8:2 > 4x8:2 4x1:4 4x1:4").flops,
               7 * 32);
    CHECK_EQ_U(cost("aten._fused_rms_norm.default", "4x8:2 8:2 > 4x8:2 4x1:4").flops, 4 * 32);
    CHECK_EQ_U(
        cost("aten.native_layer_norm_backward.default", "4x8:2 4x8:2 4x1:4 4x1:4 8:2 8:2").flops,
        14 * 32);
    CHECK_EQ_U(cost("aten.cumsum.default", "4x8:4 > 4x8:4").flops, 32);
    CHECK_EQ_U(
        cost("aten.max_pool2d_with_indices.default", "1x1x8x8:4 > 1x1x4x4:4 1x1x4x4:8").flops, 64);
}

/* 8 tokens, 1,000 words: the loss picks 8 numbers, its gradient fills 8,000. */
TEST(test_operator_cost__loss_picks_and_fills)
{
    CHECK_COST(cost("aten.nll_loss_forward.default", "8x1000:2 8:8 > ():2 ():2"), OPERATOR_COMPUTE,
               2 * 8, 8 * 2 + 8 * 8, 4);
    CHECK_COST(cost("aten.nll_loss_backward.default", "():2 8x1000:2 8:8 ():2 > 8x1000:2"),
               OPERATOR_MOVE, 0, 2 + 64 + 2, 16000);
}

TEST(test_operator_cost__tables_are_read_where_they_are_looked_up)
{
    CHECK_COST(cost("aten.embedding.default", "50304x768:2 4x8:8 > 4x8x768:2"), OPERATOR_MOVE, 0,
               32 * 768 * 2 + 32 * 8, 32 * 768 * 2);
    CHECK_COST(cost("aten.embedding_dense_backward.default", "4x8x768:2 4x8:8 > 50304x768:2"),
               OPERATOR_COMPUTE, 32 * 768, 32 * 768 * 2 + 256, 50304ull * 768 * 2);
    /* Six rows of 64 are added up into three: all six are read. */
    CHECK_COST(cost("aten._embedding_bag.default", "1000x64:4 6:8 3:8 > 3x64:4"), OPERATOR_COMPUTE,
               6 * 64, 6 * 64 * 4 + 6 * 8 + 3 * 8, 3 * 64 * 4);
    CHECK_COST(cost("aten.index_select.default", "100x4:4 10:8 > 10x4:4"), OPERATOR_MOVE, 0,
               160 + 80, 160);
}

TEST(test_operator_cost__scattering_touches_what_it_brings)
{
    CHECK_COST(cost("aten.index_put_.default", "100x4:4! 10:8 10x4:4 > 100x4:4"), OPERATOR_MOVE, 0,
               80 + 160, 160);
    CHECK_COST(cost("aten.index_add_.default", "100x4:4! 10:8 10x4:4 > 100x4:4"), OPERATOR_COMPUTE,
               40, 80 + 160 + 160, 160);
    CHECK_COST(cost("aten.scatter.src", "100:4 10:8 10:4 > 100:4"), OPERATOR_MOVE, 0, 80 + 40 + 400,
               400);
}

/* 4 rows of 1,000: 10 levels. */
TEST(test_operator_cost__sorting_by_levels)
{
    CHECK_EQ_U(cost("aten.sort.default", "4x1000:4 > 4x1000:4 4x1000:8").flops, 10 * 4000);
    CHECK_EQ_U(cost("aten.topk.default", "1024:4 > 8:4 8:8").flops, 10 * 1024);
}

/* ---- optimizers ---- */

/* Two parameters of 6 and 5: read p, g, m, v and the steps, written p, m, v; 12 operations each. */
TEST(test_operator_cost__fused_adam)
{
    CHECK_COST(cost("aten._fused_adamw_.default",
                    "2x3:2! 5:2! 2x3:2! 5:2! 2x3:2! 5:2! 2x3:2! 5:2! ():4 ():4"),
               OPERATOR_COMPUTE, 12 * 11, 4 * 22 + 8, 3 * 22);
    /* with maxima */
    CHECK_COST(cost("aten._fused_adam_.default",
                    "2x3:2! 5:2! 2x3:2! 5:2! 2x3:2! 5:2! 2x3:2! 5:2! 2x3:2! 5:2! ():4 ():4"),
               OPERATOR_COMPUTE, 12 * 11, 5 * 22 + 8, 4 * 22);
    /* with a tensor for the learning rate */
    CHECK_COST(cost("aten._fused_adamw_.tensor_lr",
                    "2x3:2! 5:2! 2x3:2! 5:2! 2x3:2! 5:2! 2x3:2! 5:2! ():4 ():4 ():4"),
               OPERATOR_COMPUTE, 12 * 11, 4 * 22 + 12, 3 * 22);
    CHECK_COST(cost("aten._fused_adamw_.default", "7:4! 7:4! 7:4! 7:4! ():4"), OPERATOR_COMPUTE,
               12 * 7, 4 * 28 + 4, 3 * 28);
}

TEST(test_operator_cost__fused_sgd_and_adagrad)
{
    CHECK_COST(cost("aten._fused_sgd_.default", "6:4! 5:4! 6:4! 5:4!"), OPERATOR_COMPUTE, 4 * 11,
               88, 44);
    CHECK_COST(cost("aten._fused_sgd_.default", "6:4! 5:4! 6:4! 5:4! 6:4! 5:4!"), OPERATOR_COMPUTE,
               4 * 11, 132, 88);
    CHECK_COST(cost("aten._fused_adagrad_.default", "6:4! 5:4! 6:4! 5:4! 6:4! 5:4! ():4 ():4"),
               OPERATOR_COMPUTE, 6 * 11, 132 + 8, 88);
    CHECK_EQ_U(cost("aten._fused_adamw_.default", "").flops, 0);
}

/* FSDP: own shards into the place of this rank in the buffer; out of it into the parameters;
 * gradients into one. */
TEST(test_operator_cost__copies_of_sharded_parameters)
{
    CHECK_COST(cost("fsdp.all_gather_copy_in.default", "10:4 20:4 240:4 > 30:4 240:4"),
               OPERATOR_MOVE, 0, 120, 120);
    CHECK_COST(cost("fsdp.split_with_sizes_copy.default", "8x30:4 8x10:4! 8x20:4!"), OPERATOR_MOVE,
               0, 960, 960);
    CHECK_COST(cost("fsdp.chunk_cat.default", "10:4 20:4 8x4:4!"), OPERATOR_MOVE, 0, 120, 128);
}

/* ---- numbers that are too large, tensors that are missing ---- */

TEST(test_operator_cost__what_does_not_fit_ends_at_the_most)
{
    const operator_cost c =
        cost("aten.mm.default", "4294967296x4294967296:8 4294967296x4294967296:8");
    CHECK_EQ_U(c.flops, UINT64_MAX);
    CHECK_EQ_U(c.bytes_read, UINT64_MAX);
    CHECK_EQ_U(cost("aten.mm.default", "0x18446744073709551615:8 18446744073709551615x2:8").flops,
               0);
    CHECK_EQ_U(cost("aten.add.Tensor", "3x3:4@18446744073709551615x18446744073709551615 > 3x3:4")
                   .bytes_read,
               36);
}

/* ---- kernels ---- */

static void kernels_of(const char *name, const char *tensors, char *text, size_t room)
{
    sketch k;
    orr_kernel kernels[OPERATOR_KERNELS];
    read_call(&k, name, tensors);
    k.call.is_causal = strstr(name, "attention") != NULL;
    const operator_name parts = orr__operator_name(k.call.name);
    const operator_row *row = orr__operator_row(&parts);
    const operator_cost price = orr__operator_cost_of(&k.call, &parts, row);
    const size_t count = orr__operator_kernels(&k.call, &parts, row, &price, kernels);
    text[0] = '\0';
    for (size_t i = 0; i < count; i++) {
        const size_t used = strlen(text);
        snprintf(text + used, room - used, "%s", i ? "; " : "");
        orr_kernel_text(&kernels[i], text + strlen(text), room - strlen(text));
    }
}

static void check_kernels(const char *name, const char *tensors, const char *expected)
{
    char text[1024];
    kernels_of(name, tensors, text, sizeof text);
    CHECK_TEXT(text, expected);
}

TEST(test_operator_cost__every_operator_bears_any_tensors)
{
    static const char *const calls[] = {
        "",
        "():4",
        "> ():4",
        "0:4 0x0:4 > 0:0",
        "3:4 3:4 3:4 3:4 3:4 > 3:4",
        "0x2:4 0x2:4 0x2:4 0x2:4",
        "():0 1x2x3x4x5x6x7:2 2:1 > ():2 3:4",
        "18446744073709551615x3:8 18446744073709551615x3x2:8 9:1 9:1 9:1"};
    char text[1024];
    const operator_rows tables[] = {orr__operator_moves(), orr__operator_arithmetic()};
    for (size_t t = 0; t < 2; t++) {
        for (size_t i = 0; i < tables[t].count; i++) {
            for (size_t j = 0; j < sizeof calls / sizeof *calls; j++) {
                const bool is_known =
                    cost(tables[t].rows[i].name, calls[j]).kind != OPERATOR_UNKNOWN;
                CHECK(is_known || strcmp(tables[t].rows[i].name, "einsum") == 0);
                (void)transposed(tables[t].rows[i].name, calls[j]);
                (void)causal(tables[t].rows[i].name, calls[j]);
                kernels_of(tables[t].rows[i].name, calls[j], text, sizeof text);
            }
        }
    }
}

TEST(test_operator_cost__kernels_of_products_know_their_layout)
{
    check_kernels("aten.mm.default", "64x32:2 32x16:2@1x32 > 64x16:2", "gemm bf16 m=64 n=16 k=32");
    check_kernels("aten.mm.default", "64x32:2 32x16:2 > 64x16:2", "gemm bf16 m=64 n=16 k=32 nn");
    check_kernels("aten.mm.default", "64x32:2@1x64 32x16:2 > 64x16:2",
                  "gemm bf16 m=64 n=16 k=32 tn");
    check_kernels("aten.addmm.default", "16:4 64x32:4 32x16:4@1x32 > 64x16:4",
                  "gemm fp32 m=64 n=16 k=32 bias");
    check_kernels("aten.bmm.default", "8x64x32:2 8x32x16:2 > 8x64x16:2",
                  "gemm bf16 batch=8 m=64 n=16 k=32 nn");
    check_kernels("aten.convolution.default", "8x64x56x56:2 128x64x3x3:2 > 8x128x28x28:2",
                  "conv bf16 batch=8 n=128 k=64 side=56 window=3 stride=2");
    check_kernels("aten._scaled_dot_product_cudnn_attention.default",
                  "2x8x64x32:2 2x4x64x32:2 2x4x64x32:2 > 2x8x64x32:2",
                  "attention bf16 batch=2 heads=8 kv_heads=4 head=32 q=64 kv=64 causal");
}

/* Exported programs have the operators above autograd: the same kernels as below it. */
TEST(test_operator_cost__exported_operators_have_the_kernels_of_captured_ones)
{
    check_kernels("aten.layer_norm.default", "4x16x32:2 32:2 32:2 > 4x16x32:2",
                  "norm bf16 m=64 n=32 layer");
    check_kernels("aten.rms_norm.default", "64x32:2 32:2 > 64x32:2", "norm bf16 m=64 n=32 rms");
    check_kernels("aten.softmax.int", "64x32:2 > 64x32:2", "softmax bf16 m=64 n=32");
    check_kernels("aten.log_softmax.int", "64x32:4 > 64x32:4", "softmax fp32 m=64 n=32 log");
    check_kernels("aten.max_pool2d.default", "8x64x56x56:2 > 8x64x28x28:2",
                  "pool bf16 batch=8 k=64 side=56 stride=2");
    check_kernels("aten.cross_entropy_loss.default", "64x32:4 64:8 > 1:4",
                  "softmax fp32 m=64 n=32 log; reduce fp32 m=64 n=1 all");
}

TEST(test_operator_cost__kernels_of_passes_know_the_order_of_operands)
{
    check_kernels("aten.add.Tensor", "64x32:2 64x32:2 > 64x32:2",
                  "elementwise bf16 read=8192 write=4096");
    check_kernels("aten.add.Tensor", "64x32:2@1x64 64x32:2 > 64x32:2",
                  "elementwise bf16 read=8192 write=4096 dims=2 strided turned");
    check_kernels("aten.mul.Tensor", "64x32:2 32:2 > 64x32:2",
                  "elementwise bf16 read=4160 write=4096 dims=2 strided");
    /* By hand: inside each other lie 32, heads, tokens and sequences; the angles, which all heads
     * and sequences share, keep them apart. */
    check_kernels("aten.mul.Tensor",
                  "2x8x16x32:2@4096x32x256x1 16x32:2 > 2x8x16x32:2@4096x32x256x1",
                  "elementwise bf16 read=17408 write=16384 dims=4 strided");
    /* Halves of rows: one gap behind each. */
    check_kernels("aten.mul.Tensor", "4x16x32:2@1024x64x1 4x16x32:2@1024x64x1 > 4x16x32:2",
                  "elementwise bf16 read=8192 write=4096 dims=2 strided");
    check_kernels("aten.add.Tensor", "64x32:4 64x32:2 > 64x32:4",
                  "elementwise fp32 read=12288 write=8192 dims=1 strided cast");
    check_kernels("aten.sum.dim_IntList", "64x32:2 > 1x32:2", "reduce bf16 m=64 n=32 rows cold");
    check_kernels("aten.sum.dim_IntList", "64x32:2 > 64x1:2", "reduce bf16 m=64 n=32 columns cold");
    check_kernels("aten.cumsum.default", "4096x8:4 > 4096x8:8", "scan fp64 m=4096 n=8 columns");
    /* Channels that lie beside each other stay: pixels are added. */
    check_kernels("aten.sum.dim_IntList", "4x96x8x8:4@6144x1x768x96 > 1x96x1x1:4",
                  "reduce fp32 m=256 n=96 rows cold");
    check_kernels("aten._to_copy.default", "64x32:2 > 64x32:4",
                  "copy fp32 read=4096 write=8192 dims=1 strided cast");
    check_kernels("aten._to_copy.default", "64x32:4 > 64x32:2",
                  "copy bf16 read=8192 write=4096 cast");
    /* Parameters have left the cache by the time a layer needs them; what is 32 bits long may not. */
    check_kernels("aten._to_copy.default", "64x32:4^ > 64x32:2",
                  "copy bf16 read=8192 write=4096 cold cast");
    check_kernels("aten._to_copy.default", "64x32:2^ > 64x32:4",
                  "copy fp32 read=4096 write=8192 dims=1 strided cast");
    /* The zeros of the table belong to the kernel. */
    check_kernels("aten.embedding_dense_backward.default", "4x8x768:2 4x8:8 > 50304x768:2",
                  "embedding bf16 m=32 n=768 k=50304 backward");
    /* A layer norm under autocast, captured on a CPU: 32 bits on a GPU. */
    check_kernels("aten.native_layer_norm.default", "64x32:2 32:4 32:4 > 64x32:2 64x1:4 64x1:4",
                  "copy fp32 read=4096 write=8192 dims=1 strided cast; norm fp32 m=64 n=32 layer; "
                  "copy bf16 read=8192 write=4096 cast");
    check_kernels("aten.native_layer_norm.default", "64x32:2 32:2 32:2 > 64x32:2 64x1:4 64x1:4",
                  "norm bf16 m=64 n=32 layer");
    /* Counters of blocks are zeroed from 1,793 rows on. */
    check_kernels("aten.native_batch_norm.default",
                  "8x64x56x56:2@200704x1x3584x64 64:4 64:4 > 8x64x56x56:2",
                  "fill fp32 write=12; norm bf16 m=25088 n=64 channels");
    check_kernels("aten.native_batch_norm.default",
                  "8x64x14x14:2@12544x1x896x64 64:4 64:4 > 8x64x14x14:2",
                  "norm bf16 m=1568 n=64 channels");
    check_kernels("aten.max_pool2d_with_indices_backward.default",
                  "8x64x28x28:2 8x64x56x56:2 8x64x28x28:8 > 8x64x56x56:2",
                  "fill bf16 write=3211264; pool bf16 batch=8 k=64 side=56 stride=2 backward");
    check_kernels("aten.cat.default", "64x32:2 64x32:2 > 64x64:2", "copy bf16 write=8192 joined");
    check_kernels("aten.view.default", "64x32:2 > 2048:2", "");
    check_kernels("aten.mm.default", "0x32:2 32x16:2 > 0x16:2", "");
}

int main(void)
{
    const CMUnitTest tests[] = {
        RUN(test_operator_cost__tables_are_sorted_and_apart),
        RUN(test_operator_cost__every_row_is_found_by_its_name),
        RUN(test_operator_cost__the_page_has_the_number_of_rows),
        RUN(test_operator_cost__ordinary_training_has_no_unknown_operators),
        RUN(test_operator_cost__names_as_each_writer_spells_them),
        RUN(test_operator_cost__names_that_are_none),
        RUN(test_operator_cost__unknown_operators_move_their_tensors),
        RUN(test_operator_cost__collectives_and_waits_are_left_to_the_network),
        RUN(test_operator_cost__views_metadata_and_allocations_are_free),
        RUN(test_operator_cost__what_the_reader_calls_a_view_is_one),
        RUN(test_operator_cost__reshaping_copies_when_elements_are_not_in_order),
        RUN(test_operator_cost__converting_costs_between_types_only),
        RUN(test_operator_cost__matrix_products),
        RUN(test_operator_cost__matmul_stretches_batches),
        RUN(test_operator_cost__linear_is_counted_by_its_columns),
        RUN(test_operator_cost__grouped_products_count_each_row_once),
        RUN(test_operator_cost__einsum_by_its_letters),
        RUN(test_operator_cost__distances),
        RUN(test_operator_cost__convolution_of_resnet),
        RUN(test_operator_cost__convolution_heeds_groups_and_dimensions),
        RUN(test_operator_cost__transposed_convolution_goes_by_the_input),
        RUN(test_operator_cost__convolution_backward_has_what_is_asked_for),
        RUN(test_operator_cost__attention_of_gpt2),
        RUN(test_operator_cost__every_variant_of_attention_costs_the_same),
        RUN(test_operator_cost__attention_of_other_shapes),
        RUN(test_operator_cost__attention_by_rows),
        RUN(test_operator_cost__recurrent_layers_meet_every_matrix_with_every_token),
        RUN(test_operator_cost__pointwise),
        RUN(test_operator_cost__in_place_reads_and_writes_its_first),
        RUN(test_operator_cost__stretched_tensors_are_read_once),
        RUN(test_operator_cost__what_is_overwritten_is_not_read),
        RUN(test_operator_cost__lists),
        RUN(test_operator_cost__reductions_softmax_and_norms),
        RUN(test_operator_cost__loss_picks_and_fills),
        RUN(test_operator_cost__tables_are_read_where_they_are_looked_up),
        RUN(test_operator_cost__scattering_touches_what_it_brings),
        RUN(test_operator_cost__sorting_by_levels),
        RUN(test_operator_cost__fused_adam),
        RUN(test_operator_cost__fused_sgd_and_adagrad),
        RUN(test_operator_cost__copies_of_sharded_parameters),
        RUN(test_operator_cost__what_does_not_fit_ends_at_the_most),
        RUN(test_operator_cost__kernels_of_products_know_their_layout),
        RUN(test_operator_cost__exported_operators_have_the_kernels_of_captured_ones),
        RUN(test_operator_cost__kernels_of_passes_know_the_order_of_operands),
        RUN(test_operator_cost__every_operator_bears_any_tensors),
    };
    return RUN_ALL(tests);
}
