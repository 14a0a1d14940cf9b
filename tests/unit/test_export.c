/* SPDX-License-Identifier: Apache-2.0 */
/* test_export.c - exported programs: what they compute and hold follows from their shapes, by hand;
 * what cannot be read says why. */
#include "check.h"
#include "export_make.h"
#include "files.h"
#include "zip_make.h"

#include "base/rng.h"
#include "sources/torch/export/export_impl.h"

static orr_error err;

static orr_span span_of(const orr_buf *b)
{
    return (orr_span){b->ptr, b->len};
}

/* Reads the program that m makes. */
static orr_code read_made(export_maker *m,
                          const orr_export_options *opt,
                          orr_fx **out,
                          orr_export_report *r)
{
    orr_buf b = make_program(m);
    const orr_code code = orr_export_parse(span_of(&b), "p.json", opt, out, r, &err);
    orr_buf_fini(&b);
    return code;
}

static orr_fx_rank_report convert(orr_fx *fx)
{
    orr_set *set;
    orr_fx_report report;
    CHECK_OK(orr_fx_convert(fx, NULL, &set, &report, &err), &err);
    CHECK_EQ_U(report.rank_count, 1);
    const orr_fx_rank_report out = report.ranks[0];
    CHECK_EQ_U(orr_set_rank_count(set), fx->world_size);
    orr_fx_report_fini(&report);
    orr_set_close(set);
    return out;
}

/* Batch 16; layers 256 -> 1024 -> 256 -> 1024 -> 256, each with a bias, ReLU between them: the
 * golden program. */
static void make_mlp(export_maker *m)
{
    for (int i = 0; i < 4; i++) {
        char name[32], in[64];
        const bool is_up = i % 2 == 0;
        snprintf(name, sizeof name, "w%d", i);
        make_tensor(m, name, is_up ? "1024, 256" : "256, 1024", "parameter");
        snprintf(in, sizeof in, "b%d", i);
        make_tensor(m, in, is_up ? "1024" : "256", "parameter");
    }
    make_tensor(m, "x", "16, 256", "user_input");
    for (int i = 0; i < 4; i++) {
        char from[32], in[64], out[32], relu[32];
        snprintf(from, sizeof from, i ? "relu%d" : "x", i - 1);
        snprintf(in, sizeof in, "%s w%d b%d", from, i, i);
        snprintf(out, sizeof out, "linear%d", i);
        snprintf(relu, sizeof relu, "relu%d", i);
        make_tensor(m, out, i % 2 ? "16, 256" : "16, 1024", NULL);
        make_node(m, "aten.linear.default", in, out, "");
        if (i == 3)
            continue;
        make_tensor(m, relu, i % 2 ? "16, 256" : "16, 1024", NULL);
        make_node(m, "aten.relu.default", out, relu, "");
    }
    make_result(m, "linear3");
}

static void check_mlp(orr_fx *fx, const orr_export_report *r)
{
    CHECK(!r->is_joint && r->nodes == 7 && r->parameters == 8 && r->inputs == 1 && r->outputs == 1);
    const orr_fx_rank_report rank = convert(fx);
    CHECK_EQ_U(rank.calls, 7);
    CHECK_EQ_U(rank.nodes, 7);
    /* four products of 2 * 16 * 256 * 1024, ReLU of 16 * 1024, 16 * 256, 16 * 1024 */
    CHECK_EQ_U(rank.flops, 4 * 2 * 16 * 256 * 1024 + 16 * (1024 + 256 + 1024));
    /* results: 16 rows of 1024 four times and of 256 three times, 4 bytes each */
    CHECK_EQ_U(rank.bytes_written, 16 * (4 * 1024 + 3 * 256) * 4);
    CHECK_EQ_U(rank.memory.parameters, (4 * 256 * 1024 + 2 * 1024 + 2 * 256) * 4);
    /* most at a ReLU of the wide layer: what it reads and what it makes */
    CHECK_EQ_U(rank.memory.activations, 2 * 16 * 1024 * 4);
    CHECK_EQ_U(rank.memory.peak, rank.memory.parameters + rank.memory.activations);
}

TEST(test_export__work_and_memory_follow_from_the_shapes)
{
    export_maker m = {0};
    orr_fx *fx;
    orr_export_report r;
    make_mlp(&m);
    CHECK_OK(read_made(&m, NULL, &fx, &r), &err);
    check_mlp(fx, &r);
    CHECK(orr_str_is(r.torch_version, "2.11.0") && r.schema_major == 8 && r.schema_minor == 17);
    const fx_graph *g = fx->graphs[0];
    CHECK(orr_str_is(fx_text(g, FX_OPS, g->nodes[0].op), "aten.linear.default"));
    CHECK(orr_str_is(fx_text(g, FX_MODULES, g->nodes[0].module), "Net.a.b"));
    CHECK(orr_str_is(fx_text(g, FX_LINES, g->nodes[0].line), "model.py:12"));
    orr_export_report_fini(&r);
    orr_fx_close(fx);
}

TEST(test_export__the_golden_program_is_the_same)
{
    char path[1000];
    orr_fx *fx;
    orr_export_report r;
    check_golden(path, sizeof path, "h200/mlp_export_model.json");
    CHECK_OK(orr_export_read(path, NULL, &fx, &r, &err), &err);
    check_mlp(fx, &r);
    orr_export_report_fini(&r);
    orr_fx_close(fx);
}

/* The decoder of examples/capture, "tiny": 1,024 words, width 256, 2 layers, 4 heads of 64, FFN
 * 1,024; 2 x 128 tokens. */
TEST(test_export__an_archive_of_pytorch_is_read)
{
    char path[1000];
    orr_fx *fx;
    orr_export_report r;
    check_source(path, sizeof path, "tests/capture/graphs/tiny.pt2");
    CHECK_OK(orr_export_read(path, NULL, &fx, &r, &err), &err);
    CHECK(orr_str_is(r.model, "model") && r.nodes == 41 && r.parameters == 28);
    const uint64_t tokens = 2 * 128, d = 256, f = 1024, words = 1024, layers = 2;
    const uint64_t products = 2 * tokens * (layers * (4 * d * d + 2 * d * f) + d * words);
    const uint64_t pairs = 128 * 129 / 2; /* of query and key, under a causal mask */
    const uint64_t attention = layers * 2 * 4 * pairs * 2 * (64 + 64);
    const uint64_t norms = (2 * layers + 1) * 7 * tokens * d, gelu = layers * 8 * tokens * f;
    const uint64_t sums = 2 * layers * tokens * d;
    const orr_fx_rank_report rank = convert(fx);
    CHECK_EQ_U(rank.flops, products + attention + norms + gelu + sums);
    /* parameters: embedding and head, and for each layer four products with biases and two norms; a
     * norm at the end */
    const uint64_t layer = 4 * d * d + 4 * d + 2 * d * f + f + d + 4 * d;
    CHECK_EQ_U(rank.memory.parameters, 4 * (2 * words * d + layers * layer + 2 * d));
    orr_export_report_fini(&r);
    orr_fx_close(fx);
}

TEST(test_export__several_ranks_are_one_class)
{
    export_maker m = {0};
    orr_fx *fx;
    orr_set *set;
    make_mlp(&m);
    CHECK_OK(read_made(&m, &(orr_export_options){.ranks = 4096}, &fx, NULL), &err);
    CHECK_OK(orr_fx_convert(fx, NULL, &set, NULL, &err), &err);
    CHECK_EQ_U(orr_set_rank_count(set), 4096);
    CHECK_EQ_U(orr_set_class_count(set), 1);
    orr_set_close(set);
    orr_fx_close(fx);
}

/* ---- memory: who lies where ---- */

static uint32_t storage_of(const fx_graph *g, size_t node)
{
    return g->tensors[fx_out(g, &g->nodes[node])[0]].storage;
}

/* x of 4 x 6, transposed; then seen as 24 in a row, which needs a copy, as 3 x 8 of that, and x
 * itself as 24. */
TEST(test_export__a_reshape_copies_only_when_it_must)
{
    export_maker m = {0};
    orr_fx *fx;
    make_tensor(&m, "x", "4, 6", "user_input");
    m.stride = "1, 6";
    make_tensor(&m, "t", "6, 4", NULL);
    make_node(&m, "aten.transpose.int", "x", "t", "");
    make_tensor(&m, "row", "24", NULL);
    make_node(&m, "aten.reshape.default", "t", "row", "");
    make_tensor(&m, "other", "3, 8", NULL);
    make_node(&m, "aten.reshape.default", "row", "other", "");
    make_tensor(&m, "flat", "24", NULL);
    make_node(&m, "aten.flatten.using_ints", "x", "flat", "");
    make_tensor(&m, "same", "24", NULL);
    make_node(&m, "aten.contiguous.default", "flat", "same", "");
    make_tensor(&m, "straight", "6, 4", NULL);
    make_node(&m, "aten.contiguous.default", "t", "straight", "");
    make_result(&m, "other");
    CHECK_OK(read_made(&m, NULL, &fx, NULL), &err);
    const fx_graph *g = fx->graphs[0];
    static const bool is_view[] = {true, false, true, true, true, false};
    for (size_t i = 0; i < 6; i++)
        CHECK_EQ(g->nodes[i].is_view, is_view[i]);
    CHECK(storage_of(g, 0) == 0 && storage_of(g, 1) == 1 && storage_of(g, 2) == 1);
    CHECK(storage_of(g, 3) == 0 && storage_of(g, 4) == 0 && storage_of(g, 5) == 2);
    CHECK(g->storages[1].is_result && !g->storages[0].is_result);
    orr_fx_close(fx);
}

TEST(test_export__types_and_training_decide_about_copies)
{
    export_maker m = {0};
    orr_fx *fx;
    make_tensor(&m, "x", "8", "user_input");
    make_tensor(&m, "a", "8", NULL);
    make_node(&m, "aten.to.dtype", "x", "a", "");
    make_tensor(&m, "b", "8", NULL);
    make_node(&m, "aten.to.dtype", "x", "b",
              ", {\"name\": \"copy\", \"arg\": {\"as_bool\": true}, \"kind\": 2}");
    make_tensor(&m, "c", "8", NULL);
    make_node(&m, "aten.dropout.default", "x", "c",
              ", {\"name\": \"train\", \"arg\": {\"as_bool\": false}, \"kind\": 1}");
    make_tensor(&m, "d", "8", NULL);
    make_node(&m, "aten.dropout.default", "x", "d",
              ", {\"name\": \"train\", \"arg\": {\"as_bool\": true}, \"kind\": 1}");
    m.dtype = 13;
    make_tensor(&m, "e", "8", NULL);
    make_node(&m, "aten.to.dtype", "x", "e", "");
    m.dtype = 6; /* as many bytes as the one before, yet another type */
    make_tensor(&m, "f", "8", NULL);
    make_node(&m, "aten.to.dtype", "e", "f", "");
    make_result(&m, "f");
    CHECK_OK(read_made(&m, NULL, &fx, NULL), &err);
    static const bool is_view[] = {true, false, true, false, false, false};
    for (size_t i = 0; i < 6; i++)
        CHECK_EQ(fx->graphs[0]->nodes[i].is_view, is_view[i]);
    orr_fx_close(fx);
}

/* By trying: the elements, in order, must lie where strides of the new shape put them. */
static bool view_by_hand(const uint64_t *shape,
                         const uint64_t *stride,
                         uint32_t rank,
                         const uint64_t *to,
                         uint32_t to_rank)
{
    uint64_t place[4096], count = 1, steps[8] = {0};
    for (uint32_t d = 0; d < rank; d++)
        count *= shape[d];
    for (uint64_t i = 0; i < count; i++) {
        uint64_t rest = i, at = 0;
        for (uint32_t d = rank; d-- > 0; rest /= shape[d])
            at += rest % shape[d] * stride[d];
        place[i] = at;
    }
    uint64_t step = 1;
    for (uint32_t d = to_rank; d-- > 0; step *= to[d])
        steps[d] = to[d] > 1 ? place[step] - place[0] : 0;
    for (uint64_t i = 0; i < count; i++) {
        uint64_t rest = i, at = 0;
        for (uint32_t d = to_rank; d-- > 0; rest /= to[d])
            at += rest % to[d] * steps[d];
        if (at != place[i])
            return false;
    }
    return true;
}

/* A number split into `rank` factors. */
static void split_number(orr_rng *rng, uint64_t n, uint64_t *out, uint32_t rank)
{
    for (uint32_t i = 0; i + 1 < rank; i++) {
        uint64_t f = 1 + orr_rng_below(rng, n);
        while (n % f)
            f--;
        out[i] = f;
        n /= f;
    }
    out[rank - 1] = n;
}

TEST(test_export__views_are_told_from_copies_as_by_trying)
{
    static const uint64_t numbers[] = {1, 2, 6, 12, 16, 24, 36, 48};
    orr_rng rng;
    orr_rng_init(&rng, 7, 0);
    size_t views = 0;
    for (int round = 0; round < 4000; round++) {
        const uint64_t n = numbers[orr_rng_below(&rng, 8)];
        const uint32_t rank = 1 + (uint32_t)orr_rng_below(&rng, 4);
        const uint32_t to_rank = 1 + (uint32_t)orr_rng_below(&rng, 4);
        uint64_t shape[4], stride[4], to[4], step = 1;
        uint32_t order[4] = {0, 1, 2, 3};
        split_number(&rng, n, shape, rank);
        split_number(&rng, n, to, to_rank);
        for (uint32_t i = rank; i-- > 1 && round % 3;) { /* two thirds lie in any order */
            const uint32_t k = (uint32_t)orr_rng_below(&rng, i + 1), was = order[i];
            order[i] = order[k];
            order[k] = was;
        }
        for (uint32_t i = rank; i-- > 0;) {
            stride[order[i]] = orr_rng_below(&rng, 8) ? step : 0;
            step *= shape[order[i]] + (orr_rng_below(&rng, 6) == 0);
        }
        const bool is = export_can_view(shape, stride, rank, to, to_rank);
        CHECK_EQ(is, view_by_hand(shape, stride, rank, to, to_rank));
        views += is;
    }
    CHECK(views > 500 && views < 3900);
}

/* Writing in place orders, and begins no storage. */
TEST(test_export__in_place_operators_write_their_first_argument)
{
    export_maker m = {0};
    orr_fx *fx;
    make_tensor(&m, "x", "8", "user_input");
    make_tensor(&m, "y", "8", "user_input");
    make_tensor(&m, "z", "8", NULL);
    make_node(&m, "aten.add_.Tensor", "x y", "z", "");
    make_result(&m, "z");
    CHECK_OK(read_made(&m, NULL, &fx, NULL), &err);
    const fx_graph *g = fx->graphs[0];
    CHECK_EQ_U(g->nodes[0].writes_count, 1);
    CHECK_EQ_U(fx_writes(g, &g->nodes[0])[0], 0);
    CHECK_EQ_U(storage_of(g, 0), 0);
    CHECK(!g->nodes[0].is_view);
    CHECK_EQ_U(convert(fx).bytes_written, 32); /* once */
    orr_fx_close(fx);
}

/* A counter in a buffer: the new value is copied there at the end. */
TEST(test_export__changed_buffers_are_copied_to)
{
    export_maker m = {0};
    orr_fx *fx;
    orr_export_report r;
    make_tensor(&m, "count", "1000", "buffer");
    make_tensor(&m, "one", "1000", NULL);
    make_node(&m, "aten.add.Tensor", "count", "one", "");
    make_spec(
        &m, "{\"buffer_mutation\": {\"arg\": {\"name\": \"one\"}, \"buffer_name\": \"m.count\"}}");
    CHECK_OK(read_made(&m, NULL, &fx, &r), &err);
    const fx_graph *g = fx->graphs[0];
    CHECK_EQ_U(g->node_count, 2);
    CHECK(orr_str_is(fx_text(g, FX_OPS, g->nodes[1].op), "aten.copy_.default"));
    CHECK_EQ_U(fx_writes(g, &g->nodes[1])[0], 0);
    const orr_fx_rank_report rank = convert(fx);
    CHECK_EQ_U(rank.memory.buffers, 4000);
    CHECK_EQ_U(rank.bytes_written, 8000); /* the sum, then the copy */
    CHECK(r.buffers == 1 && r.outputs == 0);
    orr_export_report_fini(&r);
    orr_fx_close(fx);
}

/* A result that is made early is held until the end: 1,000 numbers beside the two that the rest
 * needs. */
TEST(test_export__results_stay_alive)
{
    for (int is_result = 0; is_result < 2; is_result++) {
        export_maker m = {0};
        orr_fx *fx;
        make_tensor(&m, "x", "1000", "user_input");
        make_tensor(&m, "early", "1000", NULL);
        make_node(&m, "aten.relu.default", "x", "early", "");
        make_tensor(&m, "a", "1000", NULL);
        make_node(&m, "aten.relu.default", "x", "a", "");
        make_tensor(&m, "b", "1000", NULL);
        make_node(&m, "aten.relu.default", "a", "b", "");
        if (is_result)
            make_result(&m, "early");
        make_result(&m, "b");
        CHECK_OK(read_made(&m, NULL, &fx, NULL), &err);
        CHECK_EQ_U(convert(fx).memory.peak, is_result ? 12000 : 8000);
        orr_fx_close(fx);
    }
}

TEST(test_export__a_joint_graph_has_a_backward_pass)
{
    export_maker m = {0};
    orr_fx *fx;
    orr_export_report r;
    make_tensor(&m, "w", "8", "parameter");
    make_tensor(&m, "loss", "1", NULL);
    make_node(&m, "aten.sum.default", "w", "loss", "");
    make_tensor(&m, "g", "8", NULL);
    make_node(&m, "aten.ones_like.default", "w", "g", "");
    make_spec(&m, "{\"loss_output\": {\"arg\": {\"name\": \"loss\"}}}");
    make_spec(
        &m,
        "{\"gradient_to_parameter\": {\"arg\": {\"name\": \"g\"}, \"parameter_name\": \"m.w\"}}");
    CHECK_OK(read_made(&m, NULL, &fx, &r), &err);
    CHECK(r.is_joint);
    CHECK_EQ(fx->graphs[0]->nodes[0].phase, FX_FORWARD);
    CHECK_EQ(fx->graphs[0]->nodes[1].phase, FX_BACKWARD);
    orr_export_report_fini(&r);
    orr_fx_close(fx);
}

TEST(test_export__arithmetic_on_sizes_is_no_work)
{
    export_maker m = {0};
    orr_fx *fx;
    orr_export_report r;
    make_tensor(&m, "x", "8", "user_input");
    make_node(&m, "aten.sym_size.int", "x", "", "");
    make_node(&m, "aten._assert_async.msg", "x", "", "");
    make_tensor(&m, "y", "8", NULL);
    make_node(&m, "aten.relu.default", "x", "y", "");
    make_result(&m, "y");
    CHECK_OK(read_made(&m, NULL, &fx, &r), &err);
    CHECK(r.nodes == 3 && fx->graphs[0]->node_count == 1);
    orr_export_report_fini(&r);
    orr_fx_close(fx);
}

TEST(test_export__attention_and_convolution_say_what_kind)
{
    export_maker m = {0};
    orr_fx *fx;
    make_tensor(&m, "q", "1, 2, 8, 4", "user_input");
    make_tensor(&m, "a", "1, 2, 8, 4", NULL);
    make_node(&m, "aten.scaled_dot_product_attention.default", "q q q", "a",
              ", {\"name\": \"is_causal\", \"arg\": {\"as_bool\": true}, \"kind\": 2}");
    make_tensor(&m, "b", "1, 2, 8, 4", NULL);
    make_node(&m, "aten.scaled_dot_product_attention.default", "q q q", "b", "");
    make_result(&m, "b");
    CHECK_OK(read_made(&m, NULL, &fx, NULL), &err);
    CHECK(fx->graphs[0]->nodes[0].is_causal && !fx->graphs[0]->nodes[1].is_causal);
    /* pairs 36 and 64, 2 heads, 4 columns of keys and 4 of values */
    CHECK_EQ_U(convert(fx).flops, 2 * 2 * 8 * (36 + 64));
    orr_fx_close(fx);
}

/* ---- communication ---- */

#define TEXT_ARGUMENT(name, text) \
    ", {\"name\": \"" name "\", \"arg\": {\"as_string\": \"" text "\"}, \"kind\": 1}"

static orr_code read_collective(const char *args, uint32_t ranks, orr_fx **fx)
{
    export_maker m = {0};
    make_tensor(&m, "x", "256", "user_input");
    make_tensor(&m, "y", "256", NULL);
    make_node(&m, "_c10d_functional.all_reduce.default", "x", "y", args);
    make_tensor(&m, "z", "256", NULL);
    make_node(&m, "_c10d_functional.wait_tensor.default", "y", "z", "");
    make_result(&m, "z");
    return read_made(&m, &(orr_export_options){.ranks = ranks}, fx, NULL);
}

TEST(test_export__collectives_go_over_all_ranks)
{
    orr_fx *fx;
    CHECK_OK(read_collective(TEXT_ARGUMENT("group_name", "0"), 8, &fx), &err);
    const orr_fx_rank_report r = convert(fx);
    CHECK_EQ_U(r.collectives, 1);
    CHECK_EQ_U(r.collective_bytes, 1024);
    orr_fx_close(fx);
    CHECK_CODE(read_collective(TEXT_ARGUMENT("group_name", "0"), 0, &fx), ORR_EINPUT, &err);
    CHECK_SAYS(&err,
               "_c10d_functional.all_reduce.default at model.py:12: the program communicates: "
               "give the number of ranks with --world-size N");
    CHECK_CODE(read_collective(TEXT_ARGUMENT("group_name", "5"), 8, &fx), ORR_EINPUT, &err);
    CHECK_SAYS(&err, "which ranks are in its process group");
    CHECK_CODE(read_collective(
                   TEXT_ARGUMENT(
                       "group_name",
                       "0") ", {\"name\": \"group_size\", \"arg\": {\"as_int\": 4}, \"kind\": 1}",
                   8, &fx),
               ORR_EINPUT, &err);
    CHECK_SAYS(&err, "the size of its process group differs from --world-size");
}

/* ---- graphs inside the graph ---- */

#define GRAPH_ARGUMENT                                                                              \
    "{\"name\": \"\", \"arg\": {\"as_graph\": {\"name\": \"body\", \"graph\": {\"inputs\": "        \
    "[{\"as_tensor\": {\"name\": \"arg\"}}], \"outputs\": [{\"as_tensor\": {\"name\": \"out\"}}], " \
    "\"nodes\": [{\"target\": \"torch.ops.aten.relu.default\", \"inputs\": [{\"name\": \"self\", "  \
    "\"arg\": {\"as_tensor\": {\"name\": \"arg\"}}, \"kind\": 1}], \"outputs\": [{\"as_tensor\": "  \
    "{\"name\": \"out\"}}], \"metadata\": {}}], \"tensor_values\": {\"out\": {\"dtype\": 7, "       \
    "\"sizes\": [{\"as_int\": 8}], \"strides\": [{\"as_int\": 1}], \"layout\": 7}}}}}}"

static orr_code read_nested(const char *target, const char *args, orr_fx **fx, orr_export_report *r)
{
    export_maker m = {0};
    make_tensor(&m, "x", "8", "user_input");
    make_tensor(&m, "y", "8", NULL);
    make_node(&m, target, "", "y", args);
    make_tensor(&m, "z", "8", NULL);
    make_node(&m, "aten.relu.default", "y", "z", "");
    make_result(&m, "z");
    return read_made(&m, NULL, fx, r);
}

TEST(test_export__graphs_that_run_once_are_entered)
{
    orr_fx *fx;
    orr_export_report r;
    CHECK_OK(
        read_nested("higher_order.wrap_with_set_grad_enabled",
                    "{\"name\": \"\", \"arg\": {\"as_bool\": false}, \"kind\": 1}, " GRAPH_ARGUMENT
                    ", {\"name\": \"\", \"arg\": {\"as_tensor\": {\"name\": \"x\"}}, \"kind\": 1}",
                    &fx, &r),
        &err);
    CHECK(r.nested == 1 && r.nodes == 3);
    const fx_graph *g = fx->graphs[0];
    CHECK_EQ_U(g->node_count, 2);
    CHECK_EQ_U(fx_in(g, &g->nodes[0])[0], 0);                          /* x */
    CHECK_EQ_U(fx_in(g, &g->nodes[1])[0], fx_out(g, &g->nodes[0])[0]); /* y is what the body made */
    orr_export_report_fini(&r);
    orr_fx_close(fx);
    CHECK_CODE(read_nested("higher_order.wrap_with_set_grad_enabled", GRAPH_ARGUMENT, &fx, NULL),
               ORR_EINPUT, &err);
    CHECK_SAYS(&err, "differ in their tensors: 0 and 1");
}

TEST(test_export__branches_and_loops_are_refused_with_advice)
{
    static const char *const cases[][2] = {
        {"higher_order.cond", "which branch runs depends on data"},
        {"higher_order.while_loop", "how often the loop runs depends on data"},
        {"higher_order.scan", "not unrolled"},
        {"higher_order.map_impl", "not unrolled"},
    };
    orr_fx *fx;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        CHECK_CODE(read_nested(cases[i][0], GRAPH_ARGUMENT, &fx, NULL), ORR_EINPUT, &err);
        CHECK_SAYS(&err, cases[i][1]);
        CHECK_SAYS(&err, "at model.py:12");
        CHECK(err.where.line == 2 && strcmp(err.where.path, "p.json") == 0);
    }
}

TEST(test_export__an_operator_in_a_wrapper_has_its_own_name)
{
    orr_fx *fx;
    CHECK_OK(
        read_nested("higher_order.auto_functionalized",
                    "{\"name\": \"_mutable_op\", \"arg\": {\"as_operator\": "
                    "\"torch.ops.mine.fused.default\"}, \"kind\": 1}, "
                    "{\"name\": \"x\", \"arg\": {\"as_tensor\": {\"name\": \"x\"}}, \"kind\": 2}",
                    &fx, NULL),
        &err);
    const fx_graph *g = fx->graphs[0];
    CHECK(orr_str_is(fx_text(g, FX_OPS, g->nodes[0].op), "mine.fused.default"));
    orr_fx_close(fx);
}

/* ---- sizes that are open ---- */

/* An expression over s0 = 10 (given), s1 = 3 (example in the file). */
static orr_code evaluate(const char *expr, int64_t *out)
{
    char text[600];
    orr_json *j = NULL;
    orr_json_value root, v;
    export_symbols *s = NULL;
    snprintf(
        text, sizeof text,
        "[{\"as_expr\": {\"expr_str\": \"Symbol('s1', integer=True)\", \"hint\": {\"as_int\": 3}}}, "
        "{\"as_expr\": {\"expr_str\": \"%s\", \"hint\": null}}]",
        expr);
    CHECK_OK(symbols_create("s0=10", &s, &err), &err);
    CHECK_OK(orr_json_open((orr_span){(const uint8_t *)text, strlen(text)}, "e.json", &j, &err),
             &err);
    CHECK_OK(orr_json_only(j, &root, &err), &err);
    orr_json_iter it = orr_json_iterate(root);
    CHECK(orr_json_next_value(&it, &v));
    CHECK_OK(symbols_learn(s, v, &err), &err);
    CHECK(orr_json_next_value(&it, &v));
    const orr_code code = symbols_value(s, v, out, &err);
    orr_json_close(j);
    symbols_destroy(s);
    return code;
}

TEST(test_export__expressions_are_worked_out)
{
    static const struct {
        const char *expr;
        int64_t value;
    } cases[] = {
        {"s0", 10},
        {"s1", 3},
        {"2*s0 + 1", 21},
        {"s0*s1 - 5", 25},
        {"-s0 + 12", 2},
        {"s0//4", 2},
        {"-s0//4", -3}, /* downwards, as Python divides */
        {"(-s0) % 4", 2},
        {"s0 % s1", 1},
        {"s0**2", 100},
        {"-s1**2", -9},
        {"2**s1**2", 512},
        {"(s0 + 2)//s1", 4},
        {"floor(s0/4)", 2},
        {"ceiling(s0/4)", 3},
        {"s0/5", 2},
        {"1 + s0/2*4", 21},
        {"Max(1, s1, s0)", 10},
        {"Min(s0, s1)", 3},
        {"FloorDiv(s0, s1)", 3},
        {"CeilDiv(s0, s1)", 4},
        {"Mod(s0, s1)", 1},
        {"PythonMod(-s0, s1)", 2},
        {"ModularIndexing(s0*s0, 7, 4)", 2}, /* 100 // 7 = 14; 14 mod 4 */
        {"TruncToInt(IntTrueDiv(s0, 4))", 2},
        {"CeilToInt(IntTrueDiv(s0, 4))", 3},
        {"Abs(s1 - s0)", 7},
        {"PowByNatural(s1, 3)", 27},
        {"64*(((s0 - 1)//2)) + 64", 320},
        {"Symbol('s0', positive=True, integer=True)", 10},
        {"Add(Mul(Integer(2), Symbol('s0', integer=True)), Integer(-1))", 19},
        {"Mul(Integer(2), Symbol('s0'), Symbol('s1', positive=True))", 60},
        {"FloorDiv(Symbol('s0', positive=True, integer=True), Integer(4))", 2},
        {"floor(Mul(Rational(1, 4), Symbol('s0', integer=True)))", 2},
        {"Pow(Symbol('s1', integer=True), Integer(2))", 9},
        {"Max(Integer(1), Add(Integer(-7), Symbol('s0', integer=True)))", 3},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int64_t v = 0;
        CHECK_OK(evaluate(cases[i].expr, &v), &err);
        CHECK_EQ(v, cases[i].value);
    }
}

TEST(test_export__expressions_that_mean_nothing_are_told)
{
    static const char *const cases[][2] = {
        {"", "size '' cannot be read"},
        {"s0 +", "cannot be read"},
        {"s0 s1", "has something that cannot be read"},
        {"(s0", "has no closing parenthesis"},
        {"s0/4", "is not a whole number"},
        {"s0//0", "divides by zero"},
        {"s0 % (s1 - 3)", "divides by zero"},
        {"s0**-1", "has a power"},
        {"s0**65", "has a power"},
        {"s0**64", "is too large a number"},
        {"99999999999999999999", "is too large a number"},
        {"sin(s0)", "has a function that is not known"},
        {"FloorDiv(s0)", "wrong number of arguments"},
        {"Mod(s0, s1, 2)", "wrong number of arguments"},
        {"Symbol(s0)", "cannot be read"},
        {"Symbol('s0'", "has no closing parenthesis"},
        {"Symbol('', integer=True)", "cannot be read"},
        {"Add(Symbol('u0', integer=True), Integer(1))", "size 'u0' is symbolic"},
        {"u0 + 1",
         "size 'u0' is symbolic and the file has no example value: give it with --dim u0=N"},
        {"((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((s0",
         "nested too deeply"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int64_t v = 0;
        CHECK_CODE(evaluate(cases[i][0], &v), ORR_EINPUT, &err);
        CHECK_SAYS(&err, cases[i][1]);
    }
}

/* A batch that was exported as 4: FLOPs follow the size that is chosen. */
static orr_code read_open(const char *sizes, const char *first, orr_fx **fx, orr_export_report *r)
{
    export_maker m = {0};
    char shape[64];
    snprintf(shape, sizeof shape, "%s, 32", first);
    make_tensor(&m, "w", "64, 32", "parameter");
    m.stride = "32, 1";
    make_tensor(&m, "x", shape, "user_input");
    m.stride = "64, 1";
    make_tensor(&m, "y", "2*s0, 64", NULL);
    make_node(&m, "aten.linear.default", "x w", "y", "");
    make_result(&m, "y");
    orr_buf_text(&m.ranges, "\"s0\": {\"min_val\": 1, \"max_val\": 512}");
    return read_made(&m, &(orr_export_options){.sizes = sizes}, fx, r);
}

TEST(test_export__open_sizes_are_given_or_taken_from_the_example)
{
    orr_fx *fx;
    orr_export_report r;
    CHECK_OK(read_open(NULL, "s0@4", &fx, &r), &err);
    CHECK_EQ_U(r.symbol_count, 1);
    CHECK(orr_str_is(r.symbols[0].name, "s0") && r.symbols[0].value == 4 && !r.symbols[0].is_given);
    CHECK(r.symbols[0].min == 1 && r.symbols[0].max == 512);
    CHECK_EQ_U(fx_shape(fx->graphs[0], &fx->graphs[0]->tensors[2])[0], 8);
    orr_export_report_fini(&r);
    orr_fx_close(fx);
    CHECK_OK(read_open("s0=100", "s0@4", &fx, &r), &err);
    CHECK(r.symbols[0].value == 100 && r.symbols[0].is_given);
    CHECK_EQ_U(fx_shape(fx->graphs[0], &fx->graphs[0]->tensors[2])[0], 200);
    orr_export_report_fini(&r);
    orr_fx_close(fx);
    CHECK_OK(read_open(NULL, "Symbol('s0')@5", &fx, &r), &err);
    CHECK_EQ_U(fx_shape(fx->graphs[0], &fx->graphs[0]->tensors[2])[0], 10);
    orr_export_report_fini(&r);
    orr_fx_close(fx);
    CHECK_CODE(read_open(NULL, "s0", &fx, &r), ORR_EINPUT, &err);
    CHECK_SAYS(
        &err,
        "size 's0' is symbolic and the file has no example value: give it with --dim s0=N, 1 to 512");
    CHECK_CODE(read_open("s0=513", "s0@4", &fx, &r), ORR_EUSAGE, &err);
    CHECK_SAYS(&err, "size s0=513: the program was exported for 1 to 512");
    CHECK_CODE(read_open("batch=8", "s0@4", &fx, &r), ORR_EUSAGE, &err);
    CHECK_SAYS(&err, "no size of this program is called 'batch'; there are: s0");
    static const char *const wrong[] = {"",      "s0",        "s0=",  "=4", "s0=-1",
                                        "s0=1,", "s0=1,s0=2", "s0=x", "1=1"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        CHECK_CODE(read_open(wrong[i], "s0@4", &fx, &r), ORR_EUSAGE, &err);
}

/* ---- archives ---- */

static orr_code read_archive(zip_item *items, size_t count, const char *model, orr_export_report *r)
{
    orr_buf b = zip_make(items, count, false);
    orr_fx *fx;
    const orr_code code =
        orr_export_parse(span_of(&b), "a.pt2", &(orr_export_options){.model = model}, &fx, r, &err);
    orr_buf_fini(&b);
    orr_fx_close(fx);
    return code;
}

TEST(test_export__programs_are_found_in_archives_of_all_ages)
{
    static const char *const names[] = {"a/models/model.json", "models/model.json",
                                        "serialized_exported_program.json",
                                        "a/serialized_exported_program.json"};
    export_maker m = {0};
    make_mlp(&m);
    orr_buf json = make_program(&m);
    for (size_t i = 0; i < 8; i++) {
        orr_export_report r;
        zip_item items[] = {
            {.name = "a/data/weights/weight_0", .bytes = "1234", .len = 4},
            {.name = names[i / 2], .bytes = json.ptr, .len = json.len, .is_deflated = i % 2},
            {.name = "a/archive_format", .bytes = "pt2", .len = 3}};
        CHECK_OK(read_archive(items, 3, NULL, &r), &err);
        CHECK_EQ_U(r.nodes, 7);
        CHECK(orr_str_is(r.model, i < 4 ? "model" : ""));
        orr_export_report_fini(&r);
    }
    orr_buf_fini(&json);
}

TEST(test_export__of_several_programs_one_is_chosen)
{
    export_maker m = {0};
    make_mlp(&m);
    orr_buf json = make_program(&m);
    orr_export_report r;
    zip_item items[] = {{.name = "a/models/one.json", .bytes = json.ptr, .len = json.len},
                        {.name = "a/models/two.json", .bytes = json.ptr, .len = json.len}};
    CHECK_CODE(read_archive(items, 2, NULL, &r), ORR_EUSAGE, &err);
    CHECK_SAYS(&err, "choose one with --model: 'one', 'two'");
    CHECK_CODE(read_archive(items, 2, "three", &r), ORR_EUSAGE, &err);
    CHECK_SAYS(&err, "no program 'three' in the archive; there are: 'one', 'two'");
    CHECK_OK(read_archive(items, 2, "two", &r), &err);
    CHECK(orr_str_is(r.model, "two"));
    orr_export_report_fini(&r);
    orr_buf_fini(&json);
}

TEST(test_export__other_archives_of_pytorch_are_named)
{
    static const char *const cases[][2] = {
        {"a/data/aotinductor/model/x.so", "a compiled program (AOTInductor)"},
        {"a/code/__torch__.py", "a TorchScript program"},
        {"a/data.pkl", "weights saved by torch.save()"},
        {"a/b", "neither models/*.json nor serialized_exported_program.json"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        zip_item item = {.name = cases[i][0], .bytes = "x", .len = 1};
        CHECK_CODE(read_archive(&item, 1, NULL, NULL), ORR_EINPUT, &err);
        CHECK_SAYS(&err, cases[i][1]);
    }
    zip_item items[] = {{.name = "models/m.json", .bytes = "{}", .len = 2},
                        {.name = "archive_format", .bytes = "pt3", .len = 3}};
    CHECK_CODE(read_archive(items, 2, NULL, NULL), ORR_EINPUT, &err);
    CHECK_SAYS(&err, "the archive's format is not 'pt2'");
}

/* ---- what cannot be read ---- */

/* What is replaced in several of these. */
#define RELU_TARGET "\"target\": \"torch.ops.aten.relu.default\""
#define X_USED "{\"as_tensor\": {\"name\": \"x\"}}, \"kind\""
#define RELU_MADE "\"outputs\": [{\"as_tensor\": {\"name\": \"relu0\"}}]"
#define SIZES_OF_X "[{\"as_int\": 16}, {\"as_int\": 256}], \"requires"

/* A text of the program is replaced, and the refusal has these words and this line. */
static const struct {
    const char *from, *to, *words;
    uint32_t line;
} faults[] = {
    {"\"schema_version\"", "\"schema\"", "not an exported program: \"schema_version\" is missing",
     1},
    {"\"major\": 8", "\"major\": 9",
     "schema version 9.17 of exported programs; 1 to 8 are supported", 0},
    {"\"major\": 8", "\"major\": \"8\"", "\"major\" is a string; an integer is expected", 0},
    {"\"graph_module\"", "\"graph_modul\"", "\"graph_module\" is missing here", 1},
    {"\"graph\": {", "\"grap\": {", "\"graph\" is missing here", 1},
    {"\"nodes\": [", "\"nods\": [", "\"nodes\" is missing here", 1},
    {"\"signature\": {", "\"signature\": 5, \"x\": {",
     "\"signature\" is an integer; an object is expected", 0},
    {"\"tensor_values\": {", "\"tensor_value\": {", "\"tensor_values\" is missing here", 1},
    {"\"input_specs\": [", "\"inputs\": [", "\"input_specs\" is missing here", 0},
    {RELU_TARGET, "\"target\": 7", "\"target\" is an integer; a string is expected", 3},
    {RELU_TARGET, "\"t\": 7", "\"target\" is missing here", 3},
    {X_USED, "{\"as_tensor\": {\"name\": \"q\"}}, \"kind\"",
     "'q' is used here, but nothing before made it", 2},
    {X_USED, "{\"as_tensor\": {\"name\": \"relu0\"}}, \"kind\"",
     "'relu0' is used here, but nothing before made it", 2},
    {X_USED, "{\"as_tensor\": {\"nam\": \"x\"}}, \"kind\"", "\"name\" is missing here", 2},
    {X_USED, "{\"as_tensor\": {\"name\": \"\"}}, \"kind\"", "a value without a name", 2},
    {RELU_MADE, "\"outputs\": [{\"as_tensor\": {\"name\": \"x\"}}]", "'x' is made a second time",
     3},
    {RELU_MADE, "\"outputs\": [{\"as_tensor\": {\"name\": \"new\"}}]",
     "'new' has no entry in \"tensor_values\"", 3},
    {"\"user_output\": {\"arg\": {\"as_tensor\": {\"name\": \"linear3\"}}}",
     "\"user_output\": {\"arg\": {\"as_tensor\": {\"name\": \"nothing\"}}}",
     "'nothing' is used here", 0},
    {"\"x\": {\"dtype\": 7", "\"x\": {\"dtype\": 14", "unknown type number 14 of a tensor", 0},
    {"\"x\": {\"dtype\": 7", "\"x\": {\"dtype\": -1", "type number -1", 0},
    {"\"layout\": 7}", "\"layout\": 1}", "a sparse tensor (layout 1)", 0},
    {SIZES_OF_X, "[{\"as_int\": -16}, {\"as_int\": 256}], \"requires", "a size of -16", 0},
    {SIZES_OF_X, "[{\"as_int\": 256}], \"requires", "a tensor with 1 sizes and 2 strides", 0},
    {SIZES_OF_X, "[{\"as_int\": 4611686018427387904}, {\"as_int\": 256}], \"requires",
     "a tensor of more than 2^63 bytes", 0},
    {SIZES_OF_X, "[{\"as_int\": 9223372036854775807}, {\"as_int\": 1}], \"requires",
     "a tensor of more than 2^63 bytes", 0},
    {SIZES_OF_X, "[{\"as_int\": 1e3}, {\"as_int\": 256}], \"requires", "integer", 0},
    {SIZES_OF_X, "[{}, {\"as_int\": 256}], \"requires", "neither \"as_int\" nor \"as_expr\"", 0},
    {SIZES_OF_X, "[{\"as_expr\": {}}, {\"as_int\": 256}], \"requires",
     "a symbolic size without \"expr_str\"", 0},
    {SIZES_OF_X, "7, \"requires", "\"sizes\" is an integer; an array is expected", 0},
};

/* A copy of b with the first `from` replaced. */
static orr_buf replaced(const orr_buf *b, const char *from, const char *to)
{
    orr_buf out = {0};
    const char *at = memmem(b->ptr, b->len, from, strlen(from));
    CHECK(at != NULL);
    const size_t n = (size_t)((const uint8_t *)at - b->ptr);
    orr_buf_add(&out, b->ptr, n);
    orr_buf_text(&out, to);
    orr_buf_add(&out, b->ptr + n + strlen(from), b->len - n - strlen(from));
    return out;
}

TEST(test_export__faults_have_a_place_and_words)
{
    export_maker m = {0};
    make_mlp(&m);
    orr_buf json = make_program(&m);
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        orr_buf b = replaced(&json, faults[i].from, faults[i].to);
        orr_fx *fx;
        const orr_code code = orr_export_parse(span_of(&b), "p.json", NULL, &fx, NULL, &err);
        orr_buf_fini(&b);
        CHECK_EQ(code, ORR_EINPUT);
        CHECK_SAYS(&err, faults[i].words);
        CHECK(strcmp(err.where.path, "p.json") == 0 && err.where.line > 0);
        if (faults[i].line)
            CHECK_EQ_U(err.where.line, faults[i].line);
        CHECK(fx == NULL);
    }
    orr_buf_fini(&json);
}

TEST(test_export__a_cut_anywhere_is_told)
{
    export_maker m = {0};
    make_mlp(&m);
    orr_buf json = make_program(&m);
    orr_fx *fx;
    for (size_t n = 0; n + 2 < json.len; n += 41)
        CHECK_CODE(orr_export_parse((orr_span){json.ptr, n}, "p.json", NULL, &fx, NULL, &err),
                   ORR_EINPUT, &err);
    orr_buf_fini(&json);
}

TEST(test_export__other_json_is_no_program)
{
    static const char *const texts[] = {"[]", "5", "{}", "{\"format\": \"orrery-capture\"}",
                                        "null"};
    orr_fx *fx;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        CHECK_CODE(orr_export_parse((orr_span){(const uint8_t *)texts[i], strlen(texts[i])},
                                    "p.json", NULL, &fx, NULL, &err),
                   ORR_EINPUT, &err);
        CHECK_SAYS(&err, "not an exported program");
    }
}

TEST(test_export__too_many_ranks_are_refused)
{
    export_maker m = {0};
    orr_fx *fx;
    make_mlp(&m);
    CHECK_CODE(read_made(&m, &(orr_export_options){.ranks = UINT32_MAX}, &fx, NULL), ORR_EUSAGE,
               &err);
}

int main(void)
{
    const CMUnitTest tests[] = {
        RUN(test_export__work_and_memory_follow_from_the_shapes),
        RUN(test_export__the_golden_program_is_the_same),
        RUN(test_export__an_archive_of_pytorch_is_read),
        RUN(test_export__several_ranks_are_one_class),
        RUN(test_export__a_reshape_copies_only_when_it_must),
        RUN(test_export__types_and_training_decide_about_copies),
        RUN(test_export__views_are_told_from_copies_as_by_trying),
        RUN(test_export__in_place_operators_write_their_first_argument),
        RUN(test_export__changed_buffers_are_copied_to),
        RUN(test_export__results_stay_alive),
        RUN(test_export__a_joint_graph_has_a_backward_pass),
        RUN(test_export__arithmetic_on_sizes_is_no_work),
        RUN(test_export__attention_and_convolution_say_what_kind),
        RUN(test_export__collectives_go_over_all_ranks),
        RUN(test_export__graphs_that_run_once_are_entered),
        RUN(test_export__branches_and_loops_are_refused_with_advice),
        RUN(test_export__an_operator_in_a_wrapper_has_its_own_name),
        RUN(test_export__expressions_are_worked_out),
        RUN(test_export__expressions_that_mean_nothing_are_told),
        RUN(test_export__open_sizes_are_given_or_taken_from_the_example),
        RUN(test_export__programs_are_found_in_archives_of_all_ages),
        RUN(test_export__of_several_programs_one_is_chosen),
        RUN(test_export__other_archives_of_pytorch_are_named),
        RUN(test_export__faults_have_a_place_and_words),
        RUN(test_export__a_cut_anywhere_is_told),
        RUN(test_export__other_json_is_no_program),
        RUN(test_export__too_many_ranks_are_refused),
    };
    return RUN_ALL(tests);
}
