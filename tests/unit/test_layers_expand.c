/* SPDX-License-Identifier: Apache-2.0 */
/* room: chakra */
/* The graphs of all policies, written out by hand from chakra.md 4.3 (those the old converter
 * knows) and from the training loops of ASTRA-sim 1.0 as docs/format/text.md has them.  A line is a
 * node: number, name without what stands before every name, run time or bytes, "<" and what it
 * waits for. */
#include "check.h"

#include "compat/chakra/chakra.h"

#include <orrery/lab/layers.h>

#include "base/memory/buffer.h"

static orr_error err;

static orr_layers *table(const char *text, bool is_compat)
{
    const orr_layers_read_options opt = {.rules = is_compat ? &chakra_text_rules : NULL};
    orr_layers *t;
    CHECK_OK(
        orr_layers_parse((orr_span){(const uint8_t *)text, strlen(text)}, "w.txt", &opt, &t, &err),
        &err);
    return t;
}

static void add_dims(orr_buf *b, const orr_node *node)
{
    orr_attr a;
    orr_value v;
    if (!orr_node_attr(node, "involved_dim", &a))
        return;
    orr_buf_text(b, " ");
    orr_list it = orr_attr_items(&a);
    while (orr_list_next(&it, &v))
        orr_buf_text(b, v.u ? "1" : "0");
}

static void add_node(orr_buf *b, const orr_trace *t, uint32_t i)
{
    const orr_columns *c = orr_trace_columns(t);
    orr_node node;
    orr_value v;
    orr_trace_node(t, i, &node);
    const bool is_comp = node.type == ORR_NODE_COMP;
    const size_t skip = strlen(is_comp ? "COMP_NODE_" : "COMM_COLL_NODE_");
    orr_buf_print(b, "%" PRIu64 " %.*s", node.id, (int)(node.name.len - skip),
                  node.name.ptr + skip);
    if (is_comp)
        orr_buf_print(b, " %" PRIu64, node.duration_us);
    else
        orr_buf_print(b, " %s %" PRIi64, orr_collective_name((uint32_t)c->comm_type[i]),
                      c->comm_size[i]);
    add_dims(b, &node);
    orr_list deps = orr_node_data_deps(&node);
    for (int n = 0; orr_list_next(&deps, &v); n++)
        orr_buf_print(b, "%s %" PRIu64, n ? "" : " <", v.u);
    orr_buf_text(b, "\n");
}

static void check_nodes(const orr_layers *t, const orr_layers_expand *opt, const char *want)
{
    orr_set *s;
    orr_buf b = {0};
    CHECK_OK(orr_layers_set(t, opt, &s, &err), &err);
    const orr_trace *trace = orr_set_trace(s, 0);
    CHECK_EQ(orr_set_rank_count(s), opt->ranks);
    CHECK_EQ(orr_set_class_count(s), 1);
    for (uint32_t i = 0; i < orr_trace_columns(trace)->count; i++)
        add_node(&b, trace, i);
    orr_buf_byte(&b, 0);
    CHECK_TEXT((const char *)b.ptr, want);
    orr_buf_fini(&b);
    orr_set_close(s);
}

static void check_text(const char *text, const orr_layers_expand *opt, const char *want)
{
    orr_layers *t = table(text, opt->rules != NULL);
    check_nodes(t, opt, want);
    orr_layers_free(t);
}

static void refuse(const char *text, const orr_layers_expand *opt, orr_code code, const char *part)
{
    orr_layers *t = table(text, opt->rules != NULL);
    orr_set *s;
    CHECK_CODE(orr_layers_set(t, opt, &s, &err), code, &err);
    CHECK(s == NULL);
    CHECK_SAYS(&err, part);
    orr_layers_free(t);
}

static const orr_layers_expand once = {.ranks = 4, .passes = 1};
static const orr_layers_expand twice = {.ranks = 4, .passes = 2};

TEST(test_layers_expand__micro_is_collectives_alone)
{
    check_text("MICRO\n3\n"
               "a -1 1 NONE 0 2 NONE 0 3 ALLREDUCE 64 5\n"
               "b -1 1 NONE 0 2 NONE 0 3 NONE 0 5\n"
               "c -1 1 ALLREDUCE 8 2 NONE 0 3 ALLTOALL 32 5\n",
               &once,
               "0 a_BWD_WG_ALLREDUCE ALL_REDUCE 64\n"
               "1 c_BWD_WG_ALLTOALL ALL_TO_ALL 32\n");
}

#define DATA_ROWS                               \
    "DATA\n2\n"                                 \
    "a -1 1 NONE 0 2 NONE 0 3 ALLREDUCE 64 5\n" \
    "b -1 4 NONE 0 5 NONE 0 6 NONE 0 7\n"

/* In the second pass layer b, which has nothing to send, waits for its weight gradient itself. */
TEST(test_layers_expand__data_overlaps_collectives_with_the_next_layer)
{
    check_text(DATA_ROWS, &twice,
               "0 a_FWD 1\n"
               "1 b_FWD 4 < 0\n"
               "2 b_BWD_WG 6 < 1\n"
               "3 b_BWD_IG 5 < 2\n"
               "4 a_BWD_WG 3 < 3\n"
               "5 a_BWD_WG_ALLREDUCE ALL_REDUCE 64 < 4\n"
               "6 a_FWD 1 < 5\n"
               "7 b_FWD 4 < 6 2\n"
               "8 b_BWD_WG 6 < 7\n"
               "9 b_BWD_IG 5 < 8\n"
               "10 a_BWD_WG 3 < 9\n"
               "11 a_BWD_WG_ALLREDUCE ALL_REDUCE 64 < 10\n");
}

/* chakra.md 4.3: a node for NONE too, an all-reduce of its size. */
TEST(test_layers_expand__compat_sends_even_nothing)
{
    const orr_layers_expand opt = {.ranks = 2, .passes = 1, .rules = &chakra_text_rules};
    check_text(DATA_ROWS, &opt,
               "0 a_FWD 1\n"
               "1 b_FWD 4 < 0\n"
               "2 b_BWD_WG 6 < 1\n"
               "3 b_NONE ALL_REDUCE 0 < 2\n"
               "4 b_BWD_IG 5 < 2\n"
               "5 a_BWD_WG 3 < 4\n"
               "6 a_ALLREDUCE ALL_REDUCE 64 < 5\n");
}

TEST(test_layers_expand__updates_come_behind_collectives)
{
    const orr_layers_expand opt = {.ranks = 4, .passes = 2, .with_updates = true};
    check_text("DATA\n1\na -1 1 NONE 0 2 NONE 0 3 ALLREDUCE 64 5\n", &opt,
               "0 a_FWD 1\n"
               "1 a_BWD_WG 3 < 0\n"
               "2 a_BWD_WG_ALLREDUCE ALL_REDUCE 64 < 1\n"
               "3 a_BWD_WG_UPDATE 5 < 2\n"
               "4 a_FWD 1 < 3\n"
               "5 a_BWD_WG 3 < 4\n"
               "6 a_BWD_WG_ALLREDUCE ALL_REDUCE 64 < 5\n"
               "7 a_BWD_WG_UPDATE 5 < 6\n");
}

/* Layer a has no input gradient to send; the weight gradients of this policy are not sent. */
TEST(test_layers_expand__model_waits_for_what_it_computes_with)
{
    check_text("MODEL\n2\n"
               "a -1 1 ALLGATHER 8 2 ALLREDUCE 16 3 NONE 0 5\n"
               "b -1 4 NONE 0 5 REDUCESCATTER 32 6 ALLREDUCE 64 7\n",
               &once,
               "0 a_FWD 1\n"
               "1 a_FWD_ALLGATHER ALL_GATHER 8 < 0\n"
               "2 b_FWD 4 < 1\n"
               "3 b_BWD_IG 5 < 2\n"
               "4 b_BWD_IG_REDUCESCATTER REDUCE_SCATTER 32 < 3\n"
               "5 b_BWD_WG 6 < 3\n"
               "6 a_BWD_IG 2 < 5 4\n"
               "7 a_BWD_WG 3 < 6\n");
}

#define HYBRID_ROWS                                            \
    "\n2\n"                                                    \
    "a -1 1 ALLGATHER 8 2 REDUCESCATTER 16 3 ALLREDUCE 24 5\n" \
    "b -1 4 ALLGATHER 32 5 REDUCESCATTER 40 6 ALLREDUCE 48 7\n"

TEST(test_layers_expand__hybrids_send_in_dimension_0_or_in_the_others)
{
    const orr_layers_expand opt = {.ranks = 8, .passes = 1, .dims = 3};
    check_text("HYBRID_DATA_MODEL" HYBRID_ROWS, &opt,
               "0 a_FWD 1\n"
               "1 a_FWD_ALLGATHER ALL_GATHER 8 100 < 0\n"
               "2 b_FWD 4 < 1\n"
               "3 b_FWD_ALLGATHER ALL_GATHER 32 100 < 2\n"
               "4 b_BWD_IG 5 < 3\n"
               "5 b_BWD_IG_REDUCESCATTER REDUCE_SCATTER 40 100 < 4\n"
               "6 b_BWD_WG 6 < 4\n"
               "7 b_BWD_WG_ALLREDUCE ALL_REDUCE 48 011 < 6\n"
               "8 a_BWD_IG 2 < 6 5\n"
               "9 a_BWD_WG 3 < 8\n"
               "10 a_BWD_WG_ALLREDUCE ALL_REDUCE 24 011 < 9\n");
    check_text("HYBRID_MODEL_DATA\n1\na -1 1 ALLGATHER 8 2 NONE 0 3 ALLREDUCE 24 5\n", &opt,
               "0 a_FWD 1\n"
               "1 a_FWD_ALLGATHER ALL_GATHER 8 011 < 0\n"
               "2 a_BWD_IG 2 < 1\n"
               "3 a_BWD_WG 3 < 2\n"
               "4 a_BWD_WG_ALLREDUCE ALL_REDUCE 24 100 < 3\n");
}

/* Of a network of one dimension nothing is left for the data-parallel half. */
TEST(test_layers_expand__a_hybrid_in_one_dimension_has_half_of_its_collectives)
{
    const orr_layers_expand opt = {.ranks = 8, .passes = 1, .dims = 1};
    check_text("HYBRID_DATA_MODEL\n1\na -1 1 ALLGATHER 8 2 NONE 0 3 ALLREDUCE 24 5\n", &opt,
               "0 a_FWD 1\n"
               "1 a_FWD_ALLGATHER ALL_GATHER 8 1 < 0\n"
               "2 a_BWD_IG 2 < 1\n"
               "3 a_BWD_WG 3 < 2\n");
}

/* The first pass waits for nothing; in the second a layer waits for its collective. */
TEST(test_layers_expand__hybrids_wait_for_the_collectives_of_the_pass_before)
{
    check_text("HYBRID_MODEL_DATA\n1\na -1 1 NONE 0 2 NONE 0 3 ALLREDUCE 24 5\n", &twice,
               "0 a_FWD 1\n"
               "1 a_BWD_IG 2 < 0\n"
               "2 a_BWD_WG 3 < 1\n"
               "3 a_BWD_WG_ALLREDUCE ALL_REDUCE 24 < 2\n"
               "4 a_FWD 1 < 3\n"
               "5 a_BWD_IG 2 < 4\n"
               "6 a_BWD_WG 3 < 5\n"
               "7 a_BWD_WG_ALLREDUCE ALL_REDUCE 24 < 6\n");
}

TEST(test_layers_expand__customized_layers_send_what_their_policy_sends)
{
    const orr_layers_expand opt = {.ranks = 8, .passes = 1, .dims = 2};
    check_text("HYBRID_CUSTOMIZED\n3\n"
               "a -1 1 ALLGATHER 8 2 REDUCESCATTER 16 3 ALLREDUCE 24 5 DATA\n"
               "b -1 1 ALLGATHER 8 2 REDUCESCATTER 16 3 ALLREDUCE 24 5 MODEL\n"
               "c -1 1 ALLGATHER 8 2 REDUCESCATTER 16 3 ALLREDUCE 24 5 HYBRID_MODEL_DATA\n",
               &opt,
               "0 a_FWD 1\n"
               "1 b_FWD 1 < 0\n"
               "2 b_FWD_ALLGATHER ALL_GATHER 8 11 < 1\n"
               "3 c_FWD 1 < 2\n"
               "4 c_FWD_ALLGATHER ALL_GATHER 8 01 < 3\n"
               "5 c_BWD_IG 2 < 4\n"
               "6 c_BWD_IG_REDUCESCATTER REDUCE_SCATTER 16 01 < 5\n"
               "7 c_BWD_WG 3 < 5\n"
               "8 c_BWD_WG_ALLREDUCE ALL_REDUCE 24 10 < 7\n"
               "9 b_BWD_IG 2 < 7 6\n"
               "10 b_BWD_IG_REDUCESCATTER REDUCE_SCATTER 16 11 < 9\n"
               "11 b_BWD_WG 3 < 9\n"
               "12 a_BWD_IG 2 < 11 10\n"
               "13 a_BWD_WG 3 < 12\n"
               "14 a_BWD_WG_ALLREDUCE ALL_REDUCE 24 11 < 13\n");
}

#define DLRM_ROWS                                    \
    "\n4\n"                                          \
    "emb -1 1 ALLTOALL 8 2 ALLTOALL 16 3 NONE 0 5\n" \
    "bot -1 4 NONE 0 5 NONE 0 6 ALLREDUCE 24 5\n"    \
    "last -1 7 NONE 0 8 NONE 0 9 ALLREDUCE 32 5\n"   \
    "top -1 10 NONE 0 11 NONE 0 12 ALLREDUCE 40 5\n"

/* chakra.md 4.3, HYBRID_DLRM with k = 2: layer 2 waits for the embedding's all-to-all; that of the
 * gradients follows the input gradient of layer 3, and layer 0 waits for it. */
TEST(test_layers_expand__dlrm_exchanges_embeddings)
{
    check_text("HYBRID_DLRM 2" DLRM_ROWS, &once,
               "0 emb_FWD 1\n"
               "1 emb_FWD_ALLTOALL ALL_TO_ALL 8 < 0\n"
               "2 bot_FWD 4 < 0\n"
               "3 last_FWD 7 < 2 1\n"
               "4 top_FWD 10 < 3\n"
               "5 top_BWD_WG 12 < 4\n"
               "6 top_BWD_WG_ALLREDUCE ALL_REDUCE 40 < 5\n"
               "7 top_BWD_IG 11 < 5\n"
               "8 emb_BWD_IG_ALLTOALL ALL_TO_ALL 16 < 7\n"
               "9 last_BWD_WG 9 < 7\n"
               "10 last_BWD_WG_ALLREDUCE ALL_REDUCE 32 < 9\n"
               "11 last_BWD_IG 8 < 9\n"
               "12 bot_BWD_WG 6 < 11\n"
               "13 bot_BWD_WG_ALLREDUCE ALL_REDUCE 24 < 12\n"
               "14 bot_BWD_IG 5 < 12\n"
               "15 emb_BWD_WG 3 < 14 8\n");
}

TEST(test_layers_expand__dlrm_needs_its_last_bottom_layer_and_an_all_to_all)
{
    const orr_layers_expand compat = {.ranks = 1, .passes = 1, .rules = &chakra_text_rules};
    refuse("HYBRID_DLRM 0" DLRM_ROWS, &once, ORR_EINPUT, "w.txt:1:13: the last bottom layer is 0");
    refuse("HYBRID_DLRM 4" DLRM_ROWS, &once, ORR_EINPUT, "one of the layers 1 to 3");
    refuse("HYBRID_DLRM 0" DLRM_ROWS, &compat, ORR_EINPUT, "the last bottom layer is 0");
    refuse("HYBRID_DLRM 1\n2\na -1 1 NONE 4 2 NONE 4 3 ALLREDUCE 4 5\n"
           "b -1 1 NONE 4 2 NONE 4 3 ALLREDUCE 4 5\n",
           &once, ORR_EINPUT, "w.txt:3:8: the forward collective of layer 0 is 'NONE'");
}

/* Model-parallel groups of two on a network of 2 by 2; layer 0 sends its input gradient, and the
 * next pass waits. */
TEST(test_layers_expand__transformers_part_dimensions_at_the_group)
{
    static const uint32_t sizes[] = {2, 2};
    const orr_layers_expand opt = {.ranks = 4, .passes = 2, .dims = 2, .dim_sizes = sizes};
    check_text("HYBRID_TRANSFORMER g: 2\n1\na -1 1 ALLREDUCE 8 2 ALLREDUCE 16 3 ALLREDUCE 24 5\n",
               &opt,
               "0 a_FWD 1\n"
               "1 a_FWD_ALLREDUCE ALL_REDUCE 8 10 < 0\n"
               "2 a_BWD_IG 2 < 1\n"
               "3 a_BWD_IG_ALLREDUCE ALL_REDUCE 16 10 < 2\n"
               "4 a_BWD_WG 3 < 2\n"
               "5 a_BWD_WG_ALLREDUCE ALL_REDUCE 24 01 < 4\n"
               "6 a_FWD 1 < 5 3\n"
               "7 a_FWD_ALLREDUCE ALL_REDUCE 8 10 < 6\n"
               "8 a_BWD_IG 2 < 7\n"
               "9 a_BWD_IG_ALLREDUCE ALL_REDUCE 16 10 < 8\n"
               "10 a_BWD_WG 3 < 8\n"
               "11 a_BWD_WG_ALLREDUCE ALL_REDUCE 24 01 < 10\n");
}

/* A group of one rank has nobody to share the model with; one of all ranks nobody to share the data
 * with. */
TEST(test_layers_expand__groups_of_one_rank_or_of_all_send_half)
{
    const char *const rows = "\n1\na -1 1 ALLREDUCE 8 2 NONE 0 3 ALLREDUCE 24 5\n";
    char text[200];
    snprintf(text, sizeof text, "HYBRID_TRANSFORMER g: 1%s", rows);
    check_text(text, &once,
               "0 a_FWD 1\n1 a_BWD_IG 2 < 0\n2 a_BWD_WG 3 < 1\n"
               "3 a_BWD_WG_ALLREDUCE ALL_REDUCE 24 < 2\n");
    snprintf(text, sizeof text, "HYBRID_TRANSFORMER g: 4%s", rows);
    check_text(text, &once,
               "0 a_FWD 1\n1 a_FWD_ALLREDUCE ALL_REDUCE 8 < 0\n2 a_BWD_IG 2 < 1\n"
               "3 a_BWD_WG 3 < 2\n");
}

#define ONE_ROW "\n1\na -1 1 ALLREDUCE 8 2 NONE 0 3 ALLREDUCE 24 5\n"

TEST(test_layers_expand__groups_that_do_not_fit_are_refused)
{
    static const uint32_t sizes[] = {4, 2}, wrong[] = {4, 3};
    const orr_layers_expand eight = {.ranks = 8, .passes = 1, .dims = 2, .dim_sizes = sizes};
    const orr_layers_expand count = {.ranks = 8, .passes = 1, .dims = 2};
    const orr_layers_expand twelve = {.ranks = 8, .passes = 1, .dims = 2, .dim_sizes = wrong};
    refuse("HYBRID_TRANSFORMER g: 2" ONE_ROW, &eight, ORR_EINPUT,
           "w.txt:1:20: the model-parallel group of 2 ranks ends in the middle of a dimension");
    refuse("HYBRID_TRANSFORMER g: 3" ONE_ROW, &eight, ORR_EINPUT, "groups of 3 do not make up 8");
    refuse("HYBRID_TRANSFORMER g: 0" ONE_ROW, &eight, ORR_EINPUT, "has 0 ranks");
    refuse("HYBRID_TRANSFORMER g: 4" ONE_ROW, &count, ORR_EUSAGE, "needs the sizes");
    refuse("HYBRID_TRANSFORMER g: 4" ONE_ROW, &twelve, ORR_EUSAGE, "do not multiply to 8 ranks");
}

#define FOUR_ROWS                                 \
    "\n4\n"                                       \
    "a -1 1 NONE 0 10 NONE 0 100 NONE 0 5\n"      \
    "b -1 2 ALLREDUCE 8 20 NONE 0 200 NONE 0 5\n" \
    "c -1 3 NONE 0 30 NONE 0 300 NONE 0 5\n"      \
    "d -1 4 NONE 0 40 NONE 0 400 NONE 0 5\n"

/* Layer 1 is kept; before the backward pass of layer 3, layers 1 and 2 run forward again. */
TEST(test_layers_expand__checkpoints_run_forward_again)
{
    check_text("HYBRID_TRANSFORMER_FWD_IN_BCKWD g: 2 c: 1 1 i: 1 3" FOUR_ROWS, &once,
               "0 a_FWD 1\n"
               "1 b_FWD 2 < 0\n"
               "2 b_FWD_ALLREDUCE ALL_REDUCE 8 < 1\n"
               "3 c_FWD 3 < 2\n"
               "4 d_FWD 4 < 3\n"
               "5 b_FWD_IN_BWD 2 < 4\n"
               "6 b_FWD_IN_BWD_ALLREDUCE ALL_REDUCE 8 < 5\n"
               "7 c_FWD_IN_BWD 3 < 6\n"
               "8 d_BWD_IG 40 < 7\n"
               "9 d_BWD_WG 400 < 8\n"
               "10 c_BWD_IG 30 < 9\n"
               "11 c_BWD_WG 300 < 10\n"
               "12 b_BWD_IG 20 < 11\n"
               "13 b_BWD_WG 200 < 12\n"
               "14 a_BWD_IG 10 < 13\n"
               "15 a_BWD_WG 100 < 14\n");
}

TEST(test_layers_expand__checkpoints_that_make_no_sense_are_refused)
{
#define AGAIN "HYBRID_TRANSFORMER_FWD_IN_BCKWD g: 2 "
    refuse(AGAIN "c: 1 9 i: 1 3" FOUR_ROWS, &once, ORR_EINPUT, "there is no layer 9");
    refuse(AGAIN "c: 1 1 i: 1 1" FOUR_ROWS, &once, ORR_EINPUT, "layer 1 is a checkpoint and");
    refuse(AGAIN "c: 1 2 i: 1 1" FOUR_ROWS, &once, ORR_EINPUT,
           "no checkpoint comes before layer 1");
    refuse(AGAIN "c: 1 0 i: 2 1 3" FOUR_ROWS, &once, ORR_EINPUT, "inside another one");
}

TEST(test_layers_expand__inference_goes_forward_only)
{
    check_text("DISTRIBUTED_INFERENCE\n2\n"
               "a -1 1 ALLGATHER 8 2 ALLREDUCE 16 3 ALLREDUCE 24 5\n"
               "b -1 4 NONE 0 5 NONE 0 6 NONE 0 7\n",
               &twice,
               "0 a_FWD 1\n"
               "1 a_FWD_ALLGATHER ALL_GATHER 8 < 0\n"
               "2 b_FWD 4 < 1\n"
               "3 a_FWD 1 < 2\n"
               "4 a_FWD_ALLGATHER ALL_GATHER 8 < 3\n"
               "5 b_FWD 4 < 4\n");
}

TEST(test_layers_expand__the_double_collective_is_two)
{
    check_text("MICRO\n1\na -1 1 NONE 0 2 NONE 0 3 ALLREDUCEALLTOALL 64 5\n", &once,
               "0 a_BWD_WG_ALLREDUCE ALL_REDUCE 64\n"
               "1 a_BWD_WG_ALLTOALL ALL_TO_ALL 64 < 0\n");
}

TEST(test_layers_expand__a_collective_of_no_bytes_is_none)
{
    check_text(
        "MICRO\n2\na -1 1 NONE 0 2 NONE 0 3 ALLGATHER 0 5\nb -1 1 NONE 0 2 NONE 0 3 ALLGATHER 1 5\n",
        &once, "0 b_BWD_WG_ALLGATHER ALL_GATHER 1\n");
}

/* chakra.md 4.3: the node ids of a rank go on where those of the rank before end. */
TEST(test_layers_expand__ids_restart_per_rank_but_for_compat)
{
    orr_layers *t = table(DATA_ROWS, false);
    orr_layers_expand opt = {.ranks = 3, .passes = 1};
    orr_set *s;
    CHECK_OK(orr_layers_set(t, &opt, &s, &err), &err);
    CHECK_EQ(orr_set_id_shift(s, 2), 0);
    orr_set_close(s);
    opt.rules = &chakra_text_rules;
    CHECK_OK(orr_layers_set(t, &opt, &s, &err), &err);
    CHECK_EQ(orr_set_id_shift(s, 1), 7);
    CHECK_EQ(orr_set_id_shift(s, 2), 14);
    orr_set_close(s);
    orr_layers_free(t);
}

TEST(test_layers_expand__impossible_options_are_refused)
{
    refuse(DATA_ROWS, &(orr_layers_expand){.passes = 1}, ORR_EUSAGE, "0 ranks");
    refuse(DATA_ROWS, &(orr_layers_expand){.ranks = 2000000, .passes = 1}, ORR_EUSAGE, "ranks");
    refuse(DATA_ROWS, &(orr_layers_expand){.ranks = 1}, ORR_EUSAGE, "0 passes");
    refuse(DATA_ROWS, &(orr_layers_expand){.ranks = 1, .passes = UINT32_MAX}, ORR_EUSAGE,
           "more nodes than a trace can hold");
    refuse(DATA_ROWS, &(orr_layers_expand){.ranks = 1, .passes = 1, .dims = 65}, ORR_EUSAGE,
           "65 dimensions");
}

/* The reference ends with an error where a layer waits for a collective that was left out. */
TEST(test_layers_expand__compat_refuses_a_count_that_is_too_small)
{
    const orr_layers_expand opt = {.ranks = 1, .passes = 1, .rules = &chakra_text_rules};
    refuse("MODEL\n1\na -1 1 NONE 4 2 NONE 4 3 ALLREDUCE 4 5\nb -1 1 NONE 4 2 NONE 4 3 NONE 4 5\n",
           &opt, ORR_EINPUT, "w.txt:2:1: the number of layers is 1, but 2 follow");
}

/* Made without a file: the same checks, no place to name. */
TEST(test_layers_expand__a_table_that_was_made_is_checked_too)
{
    const orr_str none = orr_str_of("NONE");
    orr_layer l = {.name = orr_str_of("a"),
                   .forward = {1, orr_str_of("GOSSIP"), 8},
                   .input_grad = {1, none, 0},
                   .weight_grad = {1, none, 0}};
    orr_layers *t;
    orr_set *s;
    CHECK_OK(orr_layers_create(ORR_POLICY_MODEL, &t, &err), &err);
    CHECK_OK(orr_layers_add(t, &l, &err), &err);
    CHECK_CODE(orr_layers_set(t, &once, &s, &err), ORR_EINPUT, &err);
    CHECK_SAYS(&err, "layer 0: 'GOSSIP' is not a collective");
    orr_layers_free(t);
}

TEST(test_layers_expand__what_a_policy_does_not_do_can_be_asked)
{
    orr_layers *t = table("DATA\n1\na -1 1 ALLGATHER 8 2 ALLREDUCE 16 3 ALLREDUCE 24 5\n", false);
    CHECK_EQ(orr_layers_idle(t), 2);
    CHECK(!orr_layers_needs_dims(t));
    orr_layers_free(t);
    t = table("HYBRID_CUSTOMIZED\n1\na -1 1 NONE 8 2 NONE 16 3 ALLREDUCE 24 5 HYBRID_DATA_MODEL\n",
              false);
    CHECK_EQ(orr_layers_idle(t), 0);
    CHECK(orr_layers_needs_dims(t));
    orr_layers_free(t);
}

int main(void)
{
    const CMUnitTest tests[] = {
        RUN(test_layers_expand__micro_is_collectives_alone),
        RUN(test_layers_expand__data_overlaps_collectives_with_the_next_layer),
        RUN(test_layers_expand__compat_sends_even_nothing),
        RUN(test_layers_expand__updates_come_behind_collectives),
        RUN(test_layers_expand__model_waits_for_what_it_computes_with),
        RUN(test_layers_expand__hybrids_send_in_dimension_0_or_in_the_others),
        RUN(test_layers_expand__a_hybrid_in_one_dimension_has_half_of_its_collectives),
        RUN(test_layers_expand__hybrids_wait_for_the_collectives_of_the_pass_before),
        RUN(test_layers_expand__customized_layers_send_what_their_policy_sends),
        RUN(test_layers_expand__dlrm_exchanges_embeddings),
        RUN(test_layers_expand__dlrm_needs_its_last_bottom_layer_and_an_all_to_all),
        RUN(test_layers_expand__transformers_part_dimensions_at_the_group),
        RUN(test_layers_expand__groups_of_one_rank_or_of_all_send_half),
        RUN(test_layers_expand__groups_that_do_not_fit_are_refused),
        RUN(test_layers_expand__checkpoints_run_forward_again),
        RUN(test_layers_expand__checkpoints_that_make_no_sense_are_refused),
        RUN(test_layers_expand__inference_goes_forward_only),
        RUN(test_layers_expand__the_double_collective_is_two),
        RUN(test_layers_expand__a_collective_of_no_bytes_is_none),
        RUN(test_layers_expand__ids_restart_per_rank_but_for_compat),
        RUN(test_layers_expand__impossible_options_are_refused),
        RUN(test_layers_expand__compat_refuses_a_count_that_is_too_small),
        RUN(test_layers_expand__a_table_that_was_made_is_checked_too),
        RUN(test_layers_expand__what_a_policy_does_not_do_can_be_asked),
    };
    return RUN_ALL(tests);
}
