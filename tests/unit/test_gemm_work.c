/* SPDX-License-Identifier: Apache-2.0 */
/* What one NPU does for a layer: products, traffic, collectives, by hand for each kind. */
#include "check.h"

#include "sources/layers/gemm_impl.h"

static const lay_buffers all_fits = {UINT64_MAX, UINT64_MAX, UINT64_MAX};

static orr_code work(
    const char *text, lay_ways ways, const lay_buffers *buffers, lay_work *out, orr_error *err)
{
    orr_shapes *s;
    CHECK_OK(
        orr_shapes_parse((orr_span){(const uint8_t *)text, strlen(text)}, "t.csv", NULL, &s, err),
        err);
    const orr_code code = lay_work_of(&s->all[0], ways, buffers, "t.csv", out, err);
    orr_shapes_free(s);
    return code;
}

static lay_work work_of(const char *text, uint64_t batch, uint64_t output)
{
    lay_work w;
    orr_error err;
    CHECK_OK(work(text, (lay_ways){batch, output}, &all_fits, &w, &err), &err);
    return w;
}

static void check_product(
    const lay_op *op, size_t i, uint64_t count, uint64_t m, uint64_t n, uint64_t k)
{
    CHECK(i < op->product_count);
    CHECK_EQ_U(op->product[i].count, count);
    CHECK_EQ_U(op->product[i].m, m);
    CHECK_EQ_U(op->product[i].n, n);
    CHECK_EQ_U(op->product[i].k, k);
}

static void check_comm(const lay_work *w, int pass, const char *comm, uint64_t elements)
{
    CHECK_TEXT(w->pass[pass].comm, comm);
    CHECK_EQ_U(w->pass[pass].comm_elements, elements);
}

static void refuse(
    const char *text, uint64_t batch, uint64_t output, uint32_t column, const char *words)
{
    lay_work w;
    orr_error err;
    CHECK_CODE(work(text, (lay_ways){batch, output}, &all_fits, &w, &err), ORR_EINPUT, &err);
    CHECK_SAYS(&err, words);
    CHECK_EQ_U(err.where.line, 2);
    CHECK_EQ_U(err.where.column, column);
}

TEST(test_gemm_work__ways_of_the_policies)
{
    /* 12 NPUs in 3 packages of 4 */
    const lay_ways data = lay_ways_of(ORR_POLICY_DATA, 12, 3);
    const lay_ways model = lay_ways_of(ORR_POLICY_MODEL, 12, 3);
    const lay_ways inside = lay_ways_of(ORR_POLICY_HYBRID_DATA_MODEL, 12, 3);
    const lay_ways outside = lay_ways_of(ORR_POLICY_HYBRID_MODEL_DATA, 12, 3);
    CHECK(data.batch == 12 && data.output == 1);
    CHECK(model.batch == 1 && model.output == 12);
    CHECK(inside.batch == 3 && inside.output == 4);
    CHECK(outside.batch == 4 && outside.output == 3);
}

TEST(test_gemm_work__product_is_cut_and_rounded_up)
{
    /* 100 rows by 3 are 34, 40 columns by 2 are 20 */
    const lay_work w = work_of("Layer,m,n,k\na,100,40,30\n", 3, 2);
    check_product(&w.pass[0].op[0], 0, 1, 34, 20, 30);
    check_product(&w.pass[1].op[0], 0, 1, 34, 30, 20);
    check_product(&w.pass[2].op[0], 0, 1, 30, 20, 34);
    check_comm(&w, 0, "ALLGATHER", 34 * 20);
    check_comm(&w, 1, "REDUCESCATTER", 34 * 30);
    check_comm(&w, 2, "ALLREDUCE", 30 * 20);
    for (int i = 0; i < 3; i++)
        CHECK_EQ_U(w.pass[i].op[0].elements, 34 * 30 + 30 * 20 + 34 * 20);
    CHECK_EQ_U(w.weights, 600);
    /* 3 * 34 * 2 * 20 of 100 * 40 */
    CHECK(w.imbalance > 0.0199 && w.imbalance < 0.0201);
}

TEST(test_gemm_work__one_npu_has_nobody_to_talk_to)
{
    const lay_work w = work_of("Layer,m,n,k\na,100,40,30\n", 1, 1);
    for (int i = 0; i < 3; i++)
        check_comm(&w, i, "NONE", 0);
    CHECK(w.imbalance == 0);
}

TEST(test_gemm_work__small_buffers_cost_traffic)
{
    /* Factors of 1,000 elements, a result of 10,000.  Left in 2 pieces: 1,000 + 2 * 1,000; right in
     * 4: 5,000; the result in squares of 20: 5 * 1,000 twice. */
    const lay_buffers small = {500, 250, 400};
    lay_work w;
    orr_error err;
    CHECK_OK(work("Layer,m,n,k\na,100,100,10\n", (lay_ways){1, 1}, &small, &w, &err), &err);
    CHECK_EQ_U(w.pass[0].op[0].elements, 3000 + 10000);
    /* Squares win when the result is small and the factors are not: 2 by 2 of 400 elements. */
    const lay_buffers tiny = {1, 1, 400};
    CHECK_OK(work("Layer,m,n,k\na,40,40,1000\n", (lay_ways){1, 1}, &tiny, &w, &err), &err);
    CHECK_EQ_U(w.pass[0].op[0].elements, 2 * 40000 + 2 * 40000 + 1600);
}

TEST(test_gemm_work__convolution_with_groups_stride_and_padding)
{
    /* (14 + 2 - 3) / 2 + 1 = 7 places a side; 8 images by 4; 2 groups of 3 channels in and 4
     * out. */
    const lay_work w = work_of("name,type,batch,h,w,cin,cout,kh,stride,pad,groups\n"
                               "c,conv,8,14,14,6,8,3,2,1,2\n",
                               4, 1);
    check_product(&w.pass[0].op[0], 0, 2, 2 * 49, 4, 27);
    check_product(&w.pass[1].op[0], 0, 2, 2 * 49, 27, 4);
    check_product(&w.pass[2].op[0], 0, 2, 27, 4, 2 * 49);
    CHECK_EQ_U(w.pass[0].op[0].elements, 2 * (2 * 14 * 14 * 3 + 27 * 4 + 98 * 4));
    CHECK_EQ_U(w.weights, 2 * 27 * 4);
    check_comm(&w, 2, "ALLREDUCE", 216);
}

TEST(test_gemm_work__convolution_gives_whole_groups_to_npus)
{
    /* 3 groups of 2 channels over 2 NPUs: one has 2 groups; the gradient of the inputs is of all
     * channels. */
    const lay_work w = work_of("name,type,batch,h,w,cin,cout,kh,groups,dilation\n"
                               "c,conv,1,9,9,3,6,3,3,2\n",
                               1, 2);
    /* a kernel of 3 with gaps reaches over 5: 5 x 5 places */
    check_product(&w.pass[0].op[0], 0, 2, 25, 2, 9);
    check_comm(&w, 0, "ALLGATHER", 2 * 25 * 2);
    check_comm(&w, 1, "REDUCESCATTER", 9 * 9 * 3);
    CHECK(w.imbalance > 0.333 && w.imbalance < 0.334); /* 4 of 6 channels, not 3 */
    /* Fewer groups than NPUs: the channels of a group are cut. */
    const lay_work four =
        work_of("name,type,batch,h,w,cin,cout,kh,groups\nc,conv,1,9,9,2,8,3,2\n", 1, 4);
    check_product(&four.pass[0].op[0], 0, 1, 49, 2, 9);
    /* 2 groups over 3 NPUs: one group has one NPU for all of its 4 channels. */
    const lay_work three =
        work_of("name,type,batch,h,w,cin,cout,kh,groups\nc,conv,1,9,9,2,8,3,2\n", 1, 3);
    check_product(&three.pass[0].op[0], 0, 1, 49, 4, 9);
    CHECK(three.imbalance > 0.4999 && three.imbalance < 0.5001);
}

TEST(test_gemm_work__embedding_by_table_and_replicated)
{
    const char *text = "name,type,batch,rows,dim,lookups,tables\ne,embedding,64,1000,16,4,6\n";
    /* 6 tables by 4 are 2; 64 * 2 * 16 numbers out of 4 rows each */
    const lay_work by_table = work_of(text, 1, 4);
    CHECK_EQ_U(by_table.pass[0].op[0].elements, 8192 + 2048);
    CHECK_EQ_U(by_table.pass[1].op_count, 0);
    CHECK_EQ_U(by_table.pass[2].op[0].elements, 2 * 8192 + 2048);
    check_comm(&by_table, 0, "ALLTOALL", 2048);
    check_comm(&by_table, 1, "ALLTOALL", 2048);
    check_comm(&by_table, 2, "NONE", 0);
    CHECK_EQ_U(by_table.weights, 2 * 1000 * 16);
    CHECK_EQ_U(by_table.updated, 8192);
    const lay_work replicated = work_of(text, 4, 1);
    check_comm(&replicated, 0, "NONE", 0);
    check_comm(&replicated, 2, "ALLREDUCE", 6 * 1000 * 16);
    CHECK_EQ_U(replicated.updated, 6 * 1000 * 16);
}

TEST(test_gemm_work__attention_in_parts_and_fused)
{
    /* 8 heads in all; 36 of 64 pairs are not masked; 1,024 elements in queries, keys, values */
    const lay_work w =
        work_of("name,type,batch,heads,seq_q,head_dim,causal\na,attention,2,4,8,16,1\n", 1, 1);
    CHECK_EQ_U(w.pass[0].op_count, 3);
    check_product(&w.pass[0].op[0], 0, 8, 8, 8, 16);
    check_product(&w.pass[0].op[2], 0, 8, 8, 16, 8);
    CHECK_EQ_U(w.pass[0].op[0].product[0].part, 36);
    CHECK_EQ_U(w.pass[0].op[0].product[0].whole, 64);
    CHECK_EQ_U(w.pass[0].op[0].elements, 1024 + 1024 + 8 * 36);
    CHECK_EQ_U(w.pass[0].op[1].elements, 2 * 8 * 36);
    CHECK_EQ_U(w.pass[0].op[1].vector_ops, 5 * 8 * 36);
    CHECK_EQ_U(w.pass[1].op_count, 5);
    CHECK_EQ_U(w.pass[2].op_count, 0);
    const lay_work fused = work_of("name,type,batch,heads,kv_heads,seq_q,head_dim,fused\n"
                                   "a,attention,2,4,2,8,16,1\n",
                                   1, 2);
    /* 2 heads and 1 head of keys for each NPU: 512 elements of queries, 256 of keys */
    CHECK_EQ_U(fused.pass[0].op_count, 1);
    CHECK_EQ_U(fused.pass[0].op[0].product_count, 2);
    CHECK_EQ_U(fused.pass[0].op[0].elements, 2 * 512 + 2 * 256);
    CHECK_EQ_U(fused.pass[1].op[0].product_count, 5);
    check_comm(&fused, 0, "ALLGATHER", 512);
}

TEST(test_gemm_work__products_of_inputs_have_two_gradients)
{
    /* 10 products by 4 are 3 */
    const lay_work w = work_of("name,type,batch,m,n,k\nb,bmm,10,2,3,4\n", 2, 2);
    check_product(&w.pass[0].op[0], 0, 3, 2, 3, 4);
    check_product(&w.pass[1].op[0], 0, 3, 2, 4, 3);
    check_product(&w.pass[1].op[1], 0, 3, 4, 3, 2);
    CHECK_EQ_U(w.pass[2].op_count, 0);
    CHECK_EQ_U(w.pass[0].op[0].elements, 3 * (8 + 12 + 6));
    check_comm(&w, 0, "ALLGATHER", 18);
}

TEST(test_gemm_work__norm_and_elementwise_only_touch)
{
    const lay_work norm = work_of("name,type,m,n\na,norm,10,8\n", 4, 2);
    CHECK_EQ_U(norm.pass[0].op[0].elements, 2 * 24 + 16); /* 3 of 10 rows, and gain and offset */
    CHECK_EQ_U(norm.pass[0].op[0].vector_ops, 7 * 24);
    CHECK_EQ_U(norm.pass[1].op[0].elements, 3 * 24 + 16);
    check_comm(&norm, 2, "ALLREDUCE", 16);
    const lay_work add = work_of("name,type,m,n\na,elementwise,10,8\n", 1, 1);
    CHECK_EQ_U(add.pass[0].op[0].elements, 3 * 80);
    CHECK_EQ_U(add.pass[1].op[0].elements, 5 * 80);
    const lay_work gelu = work_of("name,type,m,n\na,activation,10,8\n", 1, 1);
    CHECK_EQ_U(gelu.pass[0].op[0].elements, 2 * 80);
    CHECK_EQ_U(gelu.pass[1].op[0].elements, 3 * 80);
}

TEST(test_gemm_work__refuses_what_cannot_be)
{
    refuse("Layer,m,n,k\na,2,4,4\n", 4, 1, 3, "m of 2 cannot be shared by 4");
    refuse("Layer,m,n,k\na,8,2,4\n", 1, 4, 5, "n of 2 cannot be shared by 4");
    refuse("name,type,batch,h,w,cin,cout,kh\nc,conv,1,2,2,1,1,3\n", 1, 1, 18,
           "the kernel is larger");
    refuse("name,type,batch,h,w,cin,cout,kh,groups\nc,conv,1,2,2,3,4,1,2\n", 1, 1, 20,
           "groups does not divide cin");
    refuse("name,type,batch,heads,seq_q,seq_k,head_dim,causal\na,attention,1,1,8,4,2,1\n", 1, 1, 19,
           "causal");
    refuse("Layer,m,n,k\na,4294967296,4294967296,1\n", 1, 1, 1, "too large");
}

int main(void)
{
    const CMUnitTest tests[] = {
        RUN(test_gemm_work__ways_of_the_policies),
        RUN(test_gemm_work__product_is_cut_and_rounded_up),
        RUN(test_gemm_work__one_npu_has_nobody_to_talk_to),
        RUN(test_gemm_work__small_buffers_cost_traffic),
        RUN(test_gemm_work__convolution_with_groups_stride_and_padding),
        RUN(test_gemm_work__convolution_gives_whole_groups_to_npus),
        RUN(test_gemm_work__embedding_by_table_and_replicated),
        RUN(test_gemm_work__attention_in_parts_and_fused),
        RUN(test_gemm_work__products_of_inputs_have_two_gradients),
        RUN(test_gemm_work__norm_and_elementwise_only_touch),
        RUN(test_gemm_work__refuses_what_cannot_be),
    };
    return RUN_ALL(tests);
}
