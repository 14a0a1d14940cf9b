/* SPDX-License-Identifier: Apache-2.0 */
/* room: stage */
/* Sizes and counts are those of the specification's worked example (section 18); bytes are compared
 * with the reference's by tests/golden/test_stage. */
#include "check.h"
#include "compat/stage/template.h"
#include "files.h"

#include <orrery/lab/stage.h>

static orr_error err;

static orr_stage_options small(void)
{
    orr_stage_options o = orr_stage_defaults();
    o.model = ORR_STAGE_GPT;
    o.layers = 2;
    o.dmodel = 256;
    o.dff = 1024;
    o.head = 8;
    o.kvhead = 4;
    o.batch = 16;
    o.seq = 128;
    o.dvocal = 1000;
    return o;
}

static orr_stage *make(const orr_stage_options *o)
{
    orr_stage *job = NULL;
    CHECK_OK(orr_stage_create(o, &job, &err), &err);
    return job;
}

static void check_refused(const orr_stage_options *o, const char *says)
{
    orr_stage *job;
    CHECK_CODE(orr_stage_create(o, &job, &err), ORR_EINPUT, &err);
    CHECK(job == NULL);
    CHECK_SAYS(&err, says);
}

static uint32_t find(const orr_trace *t, const char *name)
{
    const uint32_t count = orr_trace_columns(t)->count;
    for (uint32_t i = 0; i < count; i++) {
        const orr_str s = orr_trace_name(t, i);
        if (s.len == strlen(name) && memcmp(s.ptr, name, s.len) == 0)
            return i;
    }
    check_fail(__FILE__, __LINE__, "there is no node %s", name);
    return 0;
}

/* The worked example: dp 2, tp 2, one micro-batch; b = 8, S = 128, T = 2, D = 256, F = 1024 */

TEST(test_stage__has_the_sizes_of_the_worked_example)
{
    enum { B = 8, S = 128, T = 2, D = 256, F = 1024, V = 1000 };
    const int64_t bsd = B * S * D;
    orr_stage_options o = small();
    orr_trace *t;
    o.dp = o.tp = 2;
    orr_stage *job = make(&o);
    CHECK_OK(orr_stage_trace(job, 0, &t, &err), &err);
    const orr_columns *c = orr_trace_columns(t);
    const struct {
        const char *name;
        int64_t ops, tensor, comm;
        int type;
    } want[] = {
        {"mb0.transformer.1.input_norm.y@0_COMP", 5 * bsd / T, bsd / T, 0, -1},
        {"mb0.transformer.1.mha.qkv@0_X1COMM", 0, 0, bsd / T, ORR_COLL_ALL_GATHER},
        {"mb0.transformer.1.mha.qkv@0_COMP", 3 * (int64_t)B * S * D * D / T, 3 * bsd / T, 0, -1},
        {"mb0.transformer.1.mha.attn_kernel.qkv@0_COMP", 3 * bsd / T, bsd / T, 0, -1},
        {"mb0.transformer.1.mha.o@0_X1COMM", 0, 0, bsd, ORR_COLL_REDUCE_SCATTER},
        {"mb0.transformer.1.ffn.xgate@0_COMP", (int64_t)B * S * D * F / T, B * S * F / T, 0, -1},
        {"mb0.transformer.1.mha.dkv@0_COMP", 2 * bsd / T, 2 * bsd / T, 0, -1},
        {"mb0.transformer.1._sharded_grad@0_X1COMM", 0, 0, (2 * D * F + 4 * D * D) / T,
         ORR_COLL_ALL_REDUCE},
        {"transformer.1._sharded_weight@1_COMP", (2 * D * F + 4 * D * D) / T,
         (2 * D * F + 4 * D * D) / T, 0, -1},
        {"mb0.in_emb.y@0_COMP", (int64_t)B * S * V * D / T, bsd / T, 0, -1},
    };
    for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
        const uint32_t n = find(t, want[i].name);
        CHECK_EQ(c->comm_type[n], want[i].type);
        if (want[i].type < 0) {
            CHECK_EQ(c->num_ops[n], want[i].ops);
            CHECK_EQ(c->tensor_size[n], want[i].tensor);
        } else {
            CHECK_EQ(c->comm_size[n], want[i].comm);
        }
    }
    orr_trace_destroy(t);
    orr_stage_destroy(job);
}

TEST(test_stage__sends_and_receives_the_same_size_under_the_same_tag)
{
    orr_stage_options o = small();
    orr_trace *first, *second;
    o.dp = o.pp = 2;
    o.tag_base = 40;
    orr_stage *job = make(&o);
    CHECK_OK(orr_stage_trace(job, 1, &first, &err), &err);
    CHECK_OK(orr_stage_trace(job, 3, &second, &err), &err);
    const uint32_t send = find(first, "mb0.transformer.0.ffn_res.y@0_Y_SEND"),
                   recv = find(second, "shadow_mb0.transformer.0.ffn_res.y@0_Y_RECV");
    const orr_columns *a = orr_trace_columns(first), *b = orr_trace_columns(second);
    CHECK_EQ(a->comm_dst[send], 3);
    CHECK_EQ(b->comm_src[recv], 1);
    CHECK_EQ(a->comm_size[send], 8 * 128 * 256);
    CHECK_EQ(b->comm_size[recv], 8 * 128 * 256);
    CHECK_EQ(a->comm_tag[send], b->comm_tag[recv]);
    CHECK(a->comm_tag[send] >= 40);
    orr_trace_destroy(first);
    orr_trace_destroy(second);
    orr_stage_destroy(job);
}

/* ---- ranks ---- */

static void check_same_trace(const orr_trace *a, const orr_trace *b)
{
    CHECK_OK(orr_trace_write(a, "a.et", NULL, &err), &err);
    CHECK_OK(orr_trace_write(b, "b.et", NULL, &err), &err);
    orr_buf bytes = read_file("a.et");
    check_file("b.et", bytes.ptr, bytes.len);
    orr_buf_fini(&bytes);
}

static void check_set(const orr_stage_options *o)
{
    orr_stage *job = make(o);
    orr_set *set;
    CHECK_OK(orr_stage_set(job, &set, &err), &err);
    CHECK_EQ_U(orr_set_rank_count(set), orr_stage_rank_count(job));
    uint64_t nodes = 0;
    for (uint32_t r = 0; r < orr_stage_rank_count(job); r++) {
        const orr_trace *there;
        orr_trace *owned, *here;
        CHECK_OK(orr_set_rank_trace(set, r, &there, &owned, &err), &err);
        CHECK_OK(orr_stage_trace(job, r, &here, &err), &err);
        check_same_trace(here, there);
        nodes += orr_trace_columns(here)->count;
        orr_trace_destroy(here);
        orr_trace_destroy(owned);
    }
    CHECK_EQ_U(nodes, orr_stage_node_count(job));
    orr_set_close(set);
    orr_stage_destroy(job);
}

TEST(test_stage__a_set_has_every_ranks_own_trace)
{
    orr_stage_options o = small();
    o.dp = o.tp = o.pp = 2;
    check_set(&o);
    o.model = ORR_STAGE_MOE;
    o.ep = 2;
    o.micro_batch = 8;
    check_set(&o);
}

TEST(test_stage__ranks_of_a_pipeline_stage_share_one_body)
{
    orr_stage_options o = small();
    orr_set *set;
    o.dp = 16;
    o.tp = 4;
    o.pp = 2;
    orr_stage *job = make(&o);
    CHECK_OK(orr_stage_set(job, &set, &err), &err);
    CHECK_EQ_U(orr_set_rank_count(set), 128);
    CHECK_EQ_U(orr_set_class_count(set), 2);
    CHECK_EQ_U(orr_set_slot_count(set, 0), 3); /* its groups along dp and tp, and its neighbour */
    CHECK_EQ_U(orr_set_group_count(set), 2 * 4 + 2 * 16 + 128);
    orr_set_close(set);
    orr_stage_destroy(job);
}

TEST(test_stage__refuses_a_rank_that_is_not_there)
{
    const orr_stage_options o = small();
    orr_stage *job = make(&o);
    orr_trace *t;
    CHECK_CODE(orr_stage_trace(job, 1, &t, &err), ORR_EUSAGE, &err);
    orr_stage_destroy(job);
}

/* ---- memory ---- */

/* One layer's block of 2 D F + 4 D D and two embeddings of V D elements, each counted twice (before
 * and after the update) at 4 bytes. */
TEST(test_stage__counts_weights_as_the_reference_does)
{
    enum { D = 256, F = 1024, V = 1000 };
    orr_stage_options o = small();
    char line[300];
    o.layers = 1;
    orr_stage *job = make(&o);
    const orr_stage_memory m = orr_stage_rank_memory(job, 0);
    CHECK(m.weights == 2.0 * 4 * (2 * D * F + 4 * D * D + 2 * V * D));
    CHECK(m.optimizer == m.weights);
    CHECK(strncmp(orr_stage_memory_line(job, 0, line, sizeof line),
                  "[GPT] [GPU pp=0,cp=0,tp=0,dp=0] total=", 38) == 0);
    orr_stage_destroy(job);
}

/* ---- files ---- */

TEST(test_stage__takes_a_pattern_for_file_names)
{
    const orr_stage_options o = small();
    orr_stage *job = make(&o);
    orr_trace *t;
    CHECK_OK(orr_stage_write_files(job, "100%%of%d.et", ORR_STAGE_ET, 1, &err), &err);
    CHECK_OK(orr_trace_read("100%of0.et", NULL, &t, &err), &err);
    orr_trace_destroy(t);
    CHECK_CODE(orr_stage_write_files(job, "plain.et", ORR_STAGE_ET, 1, &err), ORR_EUSAGE, &err);
    CHECK_CODE(orr_stage_write_files(job, "%d%d.et", ORR_STAGE_ET, 1, &err), ORR_EUSAGE, &err);
    CHECK_CODE(orr_stage_write_files(job, "%05d.et", ORR_STAGE_ET, 1, &err), ORR_EUSAGE, &err);
    orr_stage_destroy(job);
}

TEST(test_stage__writes_groups_and_graph)
{
    orr_stage_options o = small();
    static const char row[] = "\nin_emb.w@1,Y,in_emb.w@0,in_emb.dw@0,A,,\"Dvocal,Dmodel\",1,";
    static const char groups[] = "{\"1\": [0, 1], \"2\": [0], \"3\": [1], \"4\": [0], \"5\": [1]}";
    o.dp = 2;
    orr_stage *job = make(&o);
    CHECK_OK(orr_stage_write_groups(job, "groups.json", &err), &err);
    check_file("groups.json", groups, sizeof groups - 1);
    CHECK_OK(orr_stage_write_graph(job, "graph", &err), &err);
    orr_buf csv = read_file("graph.csv");
    CHECK(memmem(csv.ptr, csv.len, row, strlen(row)));
    orr_buf_fini(&csv);
    orr_stage_destroy(job);
}

TEST(test_stage__a_graph_that_was_written_can_be_read_as_a_module)
{
    orr_stage_options o = small();
    stg_space space;
    stg_tgraph g;
    bool is_there;
    o.layers = 1;
    orr_stage *job = make(&o);
    CHECK_OK(orr_stage_write_graph(job, "graph", &err), &err);
    orr_stage_destroy(job);
    CHECK(stg_space_init(&space));
    stg_tgraph_init_named(&g, &space);
    CHECK_OK(stg_module_read(&g, ".", "graph", &is_there, &err), &err);
    CHECK(is_there);
    /* A layer: norms of 4, attention of 22 and 10, residuals of 6, feed-forward of 15; 5 for the
     * block of weights and 4 for the weights backward.  Embeddings of 6, a loss of 3; then 3 merged
     * gradients, 3 updates. */
    CHECK_EQ_U(g.count, (2 * 4 + 22 + 10 + 2 * 6 + 15) + (5 + 4) + 2 * 6 + 3 + 3 + 3);
    stg_tgraph_fini(&g);
    stg_space_fini(&space);
}

/* ---- options that cannot be ---- */

TEST(test_stage__refuses_what_cannot_be)
{
    orr_stage_options o = small();
    o.pp = 3;
    check_refused(&o, "3 pipeline stages (pp) for 2 layers");
    o = small();
    o.micro_batch = 5;
    check_refused(&o, "micro_batch 5 does not divide batch 16");
    o = small();
    o.dp = 0;
    check_refused(&o, "dp is 0; it must be 1 to");
    o = small();
    o.dp = o.tp = 1 << 13;
    check_refused(&o, "more than 16777216 ranks");
    o = small();
    o.model = ORR_STAGE_MOE;
    o.ep = 3;
    check_refused(&o, "ep 3 does not divide the 8 experts");
    o.ep = 1;
    o.tpsp = false;
    check_refused(&o, "no form without tpsp");
    o.tpsp = o.clones = true;
    check_refused(&o, "cannot have its micro-batches cloned");
    o = small();
    o.model = ORR_STAGE_DEBUG;
    o.pp = 2;
    check_refused(&o, "pp is 2 and must be 1");
    o = small();
    o.dvocal = o.dmodel = o.seq = INT32_MAX;
    orr_stage *job;
    CHECK_OK(orr_stage_create(&o, &job, &err),
             &err); /* the numbers are fine, a field is too small */
    orr_trace *t;
    CHECK_CODE(orr_stage_trace(job, 0, &t, &err), ORR_EINPUT, &err);
    CHECK_SAYS(&err, "is too large for a trace");
    orr_stage_destroy(job);
}

TEST(test_stage__knows_its_models_by_name)
{
    orr_stage_model m;
    CHECK(orr_stage_model_find("moe", &m) && m == ORR_STAGE_MOE);
    CHECK(!orr_stage_model_find("bert", &m));
    CHECK_TEXT(orr_stage_model_name(ORR_STAGE_LLAMA), "llama");
}

int main(void)
{
    const CMUnitTest tests[] = {
        RUN(test_stage__has_the_sizes_of_the_worked_example),
        RUN(test_stage__sends_and_receives_the_same_size_under_the_same_tag),
        RUN(test_stage__a_set_has_every_ranks_own_trace),
        RUN(test_stage__ranks_of_a_pipeline_stage_share_one_body),
        RUN(test_stage__refuses_a_rank_that_is_not_there),
        RUN(test_stage__counts_weights_as_the_reference_does),
        RUN(test_stage__takes_a_pattern_for_file_names),
        RUN(test_stage__writes_groups_and_graph),
        RUN(test_stage__a_graph_that_was_written_can_be_read_as_a_module),
        RUN(test_stage__refuses_what_cannot_be),
        RUN(test_stage__knows_its_models_by_name),
    };
    return RUN_ALL(tests);
}
