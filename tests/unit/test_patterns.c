/* SPDX-License-Identifier: Apache-2.0 */
#include "check.h"

#include <orrery/lab/gen.h>

static orr_error err;

static orr_trace *trace_of(const char *name, const orr_gen_options *opt, uint32_t rank)
{
    const orr_pattern *p = orr_pattern_find(name);
    orr_trace *t;
    CHECK(p != NULL);
    CHECK_OK(orr_pattern_trace(p, opt ? opt : &p->defaults, rank, &t, &err), &err);
    return t;
}

/* Two ranks or more, so that every pattern can be made. */
static orr_gen_options options_of(const orr_pattern *p)
{
    orr_gen_options opt = p->defaults;
    if (opt.ranks < 4)
        opt.ranks = 4;
    return opt;
}

static bool has_equal_nodes(const orr_trace *a, const orr_trace *b)
{
    const uint32_t count = orr_trace_columns(a)->count;
    orr_node x, y;
    if (orr_trace_columns(b)->count != count)
        return false;
    for (uint32_t i = 0; i < count; i++) {
        orr_trace_node(a, i, &x);
        orr_trace_node(b, i, &y);
        if (x.body.len != y.body.len || memcmp(x.body.ptr, y.body.ptr, x.body.len) != 0)
            return false;
    }
    return true;
}

TEST(test_patterns__names_are_unique)
{
    for (size_t i = 0; orr_pattern_at(i); i++)
        CHECK(orr_pattern_find(orr_pattern_at(i)->name) == orr_pattern_at(i));
}

TEST(test_patterns__old_names_are_found)
{
    CHECK(orr_pattern_find("ALL_REDUCE") == orr_pattern_find("all_reduce"));
    CHECK(orr_pattern_find("invalidNodeCase4") == orr_pattern_find("invalid_node_fork"));
    CHECK(orr_pattern_find("no such thing") == NULL);
}

/* The list is set in 80 columns: 28 for the name, a blank, the help. */
TEST(test_patterns__help_fits_a_line)
{
    for (size_t i = 0; orr_pattern_at(i); i++) {
        CHECK(strlen(orr_pattern_at(i)->name) <= 28);
        CHECK(strlen(orr_pattern_at(i)->help) <= 50);
    }
}

TEST(test_patterns__all_are_graphs_in_order)
{
    for (size_t i = 0; orr_pattern_at(i); i++) {
        const orr_gen_options opt = options_of(orr_pattern_at(i));
        for (uint32_t rank = 0; rank < opt.ranks; rank++) {
            orr_trace *t = trace_of(orr_pattern_at(i)->name, &opt, rank);
            const orr_columns *c = orr_trace_columns(t);
            CHECK(c->count > 0);
            CHECK_EQ(c->id[0], 0);
            CHECK(c->is_ascending && c->is_topological);
            CHECK_EQ(c->data_missing + c->ctrl_missing + c->duplicate_ids, 0);
            orr_trace_destroy(t);
        }
    }
}

TEST(test_patterns__same_options_give_the_same_nodes)
{
    for (size_t i = 0; orr_pattern_at(i); i++) {
        const orr_gen_options opt = options_of(orr_pattern_at(i));
        orr_trace *a = trace_of(orr_pattern_at(i)->name, &opt, 1);
        orr_trace *b = trace_of(orr_pattern_at(i)->name, &opt, 1);
        CHECK(has_equal_nodes(a, b));
        orr_trace_destroy(a);
        orr_trace_destroy(b);
    }
}

/* ranks_differ must tell the truth: a set stores ranks that are said to be alike once. */
TEST(test_patterns__ranks_are_alike_unless_said_otherwise)
{
    for (size_t i = 0; orr_pattern_at(i); i++) {
        const orr_pattern *p = orr_pattern_at(i);
        const orr_gen_options opt = options_of(p);
        orr_trace *first = trace_of(p->name, &opt, 0), *last = trace_of(p->name, &opt, 3);
        CHECK(has_equal_nodes(first, last) != p->ranks_differ);
        orr_trace_destroy(first);
        orr_trace_destroy(last);
    }
}

TEST(test_patterns__alike_ranks_are_one_class)
{
    const orr_pattern *p = orr_pattern_find("all_reduce");
    orr_gen_options opt = p->defaults;
    orr_set *set;
    opt.ranks = 32768;
    CHECK_OK(orr_pattern_set(p, &opt, &set, &err), &err);
    CHECK_EQ(orr_set_rank_count(set), 32768);
    CHECK_EQ(orr_set_class_count(set), 1);
    CHECK_EQ(orr_set_class_ranks(set, 0), 32768);
    orr_set_close(set);
}

/* They name their peers, in one body with holes; older generations have a body each. */
TEST(test_patterns__ring_has_one_body)
{
    const orr_pattern *p = orr_pattern_find("send_recv_ring");
    orr_gen_options opt = p->defaults;
    orr_set *set;
    opt.ranks = 5;
    CHECK_OK(orr_pattern_set(p, &opt, &set, &err), &err);
    CHECK_EQ(orr_set_class_count(set), 1);
    orr_set_close(set);
    opt.style = ORR_GEN_0_0_4;
    CHECK_OK(orr_pattern_set(p, &opt, &set, &err), &err);
    CHECK_EQ(orr_set_class_count(set), 5);
    orr_set_close(set);
}

/* Of this program alone: ru_maxrss is that of whoever started it, if larger. */
static long peak_kb(void)
{
    char line[200];
    long kb = 0;
    FILE *const f = fopen("/proc/self/status", "r");
    CHECK(f);
    while (fgets(line, sizeof line, f))
        if (sscanf(line, "VmHWM: %ld kB", &kb) == 1)
            break;
    fclose(f);
    CHECK(kb > 0);
    return kb;
}

/* Of many ranks only the first are kept while the set is made; a trace takes 6 kB. */
TEST(test_patterns__many_ranks_take_little_memory)
{
    const orr_pattern *p = orr_pattern_find("send_recv_ring");
    orr_gen_options opt = p->defaults;
    orr_set *set;
    const long before = peak_kb();
    opt.ranks = 20000;
    CHECK_OK(orr_pattern_set(p, &opt, &set, &err), &err);
#ifndef __SANITIZE_ADDRESS__ /* which keeps what was freed */
    CHECK(peak_kb() - before < 40000);
#endif
    (void)before;
    CHECK_EQ(orr_set_rank_count(set), 20000);
    CHECK_EQ(orr_set_class_count(set), 1);
    for (uint32_t r = 0; r < opt.ranks; r += r < 1000 || r > 19000 ? 1 : 500) {
        const orr_trace *ours;
        orr_trace *owned, *t = trace_of(p->name, &opt, r);
        CHECK_OK(orr_set_rank_trace(set, r, &ours, &owned, &err), &err);
        CHECK(has_equal_nodes(ours, t));
        orr_trace_destroy(owned);
        orr_trace_destroy(t);
    }
    orr_set_close(set);
}

/* Rank 0 of 4 sends to 1 and receives from 3; rank 3 sends to 0 and receives from 2. */
TEST(test_patterns__ring_closes)
{
    orr_gen_options opt = orr_pattern_find("send_recv_ring")->defaults;
    opt.ranks = 4;
    opt.comm_size = 100;
    orr_trace *t = trace_of("send_recv_ring", &opt, 0);
    const orr_columns *c = orr_trace_columns(t);
    CHECK_EQ(c->count, 2);
    CHECK_EQ(c->type[0], ORR_NODE_COMM_SEND);
    CHECK(c->comm_src[0] == 0 && c->comm_dst[0] == 1);
    CHECK(c->comm_src[1] == 3 && c->comm_dst[1] == 0);
    CHECK(c->comm_size[0] == 100 && c->comm_size[1] == 100 && c->comm_tag[0] == 0);
    orr_trace_destroy(t);
    t = trace_of("send_recv_ring", &opt, 3);
    c = orr_trace_columns(t);
    CHECK(c->comm_src[0] == 3 && c->comm_dst[0] == 0 && c->comm_src[1] == 2);
    orr_trace_destroy(t);
}

/* F0 F1 F2 WG2 IG2 C2 WG1 IG1 C1 WG0 C0, as chakra.md 5 has it. */
TEST(test_patterns__three_layers_overlap)
{
    static const uint32_t parent[] = {0, 0, 1, 2, 3, 3, 4, 6, 6, 7, 9};
    orr_trace *t = trace_of("three_layer_data_parallel", NULL, 0);
    const orr_columns *c = orr_trace_columns(t);
    CHECK_EQ(c->count, 11);
    CHECK_EQ(c->data_first[1], 0);
    for (uint32_t i = 1; i < 11; i++) {
        CHECK_EQ(c->data_first[i + 1] - c->data_first[i], 1);
        CHECK_EQ(c->data_dep[c->data_first[i]], parent[i]);
    }
    CHECK(orr_trace_name(t, 5).len == strlen("COMM_COLL_NODE_BWD_ALL_REDUCE_2"));
    orr_trace_destroy(t);
}

TEST(test_patterns__three_layers_in_sequence_are_a_chain)
{
    orr_trace *t = trace_of("three_layer_sequential", NULL, 0);
    const orr_columns *c = orr_trace_columns(t);
    CHECK_EQ(c->count, 11);
    for (uint32_t i = 1; i < 11; i++)
        CHECK_EQ(c->data_dep[c->data_first[i]], i - 1);
    CHECK_EQ(c->type[4], ORR_NODE_COMM_COLL); /* C2 stands behind WG2 */
    orr_trace_destroy(t);
}

/* Four ranks: four layers, 4 FWD + 4 WG + 4 all-reduce + 3 IG = 15 nodes; run time 512 / 4 = 128;
 * gradients 512 * 512 * 2 bytes. */
TEST(test_patterns__compare_data_shares_the_batch)
{
    orr_gen_options opt = orr_pattern_find("compare_data_parallel")->defaults;
    opt.ranks = 4;
    orr_trace *t = trace_of("compare_data_parallel", &opt, 2);
    const orr_columns *c = orr_trace_columns(t);
    CHECK_EQ(c->count, 15);
    CHECK_EQ(c->duration_us[0], 128);
    CHECK_EQ(c->comm_size[5], 524288);
    CHECK_EQ(c->data_dep[c->data_first[6]], 4); /* IG_3 after WG_3 */
    orr_trace_destroy(t);
}

/* Four ranks: 4 * (FWD + all-gather) + 4 * (IG + WG + all-reduce) = 20 nodes; the gather is of
 * 512 * (512 / 4) * 2 bytes; the second IG comes after WG and all-reduce of the layer behind. */
TEST(test_patterns__compare_model_shares_the_layers)
{
    orr_gen_options opt = orr_pattern_find("compare_model_parallel")->defaults;
    opt.ranks = 4;
    orr_trace *t = trace_of("compare_model_parallel", &opt, 0);
    const orr_columns *c = orr_trace_columns(t);
    CHECK_EQ(c->count, 20);
    CHECK_EQ(c->comm_size[1], 131072);
    CHECK_EQ(c->comm_type[1], ORR_COLL_ALL_GATHER);
    CHECK_EQ(c->data_first[12] - c->data_first[11], 2);
    CHECK_EQ(c->data_dep[c->data_first[11]], 9);
    CHECK_EQ(c->data_dep[c->data_first[11] + 1], 10);
    orr_trace_destroy(t);
}

/* Per piece: first stage F SEND RECV WG, middle RECV F SEND RECV IG WG SEND, last RECV F IG WG
 * SEND. */
TEST(test_patterns__compare_pipeline_has_three_kinds_of_stage)
{
    static const uint32_t nodes[] = {4 * 64, 7 * 64, 5 * 64};
    orr_gen_options opt = orr_pattern_find("compare_pipeline_parallel")->defaults;
    opt.ranks = 3;
    for (uint32_t rank = 0; rank < 3; rank++) {
        orr_trace *t = trace_of("compare_pipeline_parallel", &opt, rank);
        CHECK_EQ(orr_trace_columns(t)->count, nodes[rank]);
        orr_trace_destroy(t);
    }
}

/* The first SEND of stage 0 goes to 1 with piece 0: 0 << 22 | 1 << 12 | 0 << 2 | 1 = 4097; 8 rows
 * of 512 elements of 2 bytes are 8192 bytes, and 2 * 8 * 512 * 512 / (2 * 512 * 512) = 8 units of
 * time. */
TEST(test_patterns__compare_pipeline_tags_by_peers_and_piece)
{
    orr_trace *t = trace_of("compare_pipeline_parallel", NULL, 0);
    const orr_columns *c = orr_trace_columns(t);
    CHECK_EQ(c->duration_us[0], 8);
    CHECK(c->comm_dst[1] == 1 && c->comm_tag[1] == 4097 && c->comm_size[1] == 8192);
    CHECK_EQ(c->comm_tag[3], 4097 + 4); /* the next piece */
    orr_trace_destroy(t);
}

/* L layers, bucket b: 1 load + L forward + 1 loss + 2L - 1 backward + 2 * ceil(L / b). */
TEST(test_patterns__data_parallel_has_its_nodes)
{
    orr_gen_options opt = orr_pattern_find("data_parallel")->defaults;
    for (opt.layers = 1; opt.layers < 8; opt.layers++) {
        for (opt.bucket = 1; opt.bucket < 10; opt.bucket++) {
            const uint64_t buckets = (opt.layers + opt.bucket - 1) / opt.bucket;
            orr_trace *t = trace_of("data_parallel", &opt, 0);
            CHECK_EQ(orr_trace_columns(t)->count, 3 * opt.layers + 1 + 2 * buckets);
            orr_trace_destroy(t);
        }
    }
}

/* Every gradient travels once: the all-reduces add up to layers * comm_size. */
TEST(test_patterns__data_parallel_moves_every_gradient_once)
{
    orr_gen_options opt = orr_pattern_find("data_parallel")->defaults;
    opt.layers = 7;
    opt.bucket = 3;
    opt.comm_size = 1000;
    orr_trace *t = trace_of("data_parallel", &opt, 0);
    const orr_columns *c = orr_trace_columns(t);
    int64_t sum = 0;
    for (uint32_t i = 0; i < c->count; i++) {
        if (c->type[i] == ORR_NODE_COMM_COLL)
            sum += c->comm_size[i];
    }
    CHECK_EQ(sum, 7000);
    orr_trace_destroy(t);
}

TEST(test_patterns__layered_follows_its_seed)
{
    orr_gen_options opt = orr_pattern_find("layered")->defaults;
    orr_trace *a = trace_of("layered", &opt, 0);
    opt.seed++;
    orr_trace *b = trace_of("layered", &opt, 0);
    CHECK(!has_equal_nodes(a, b));
    orr_trace_destroy(a);
    orr_trace_destroy(b);
}

static void check_parents(const orr_columns *c, uint32_t node, uint32_t width)
{
    const uint32_t first = c->data_first[node], count = c->data_first[node + 1] - first;
    if (node < width) {
        CHECK_EQ(count, 0);
        return;
    }
    CHECK(count >= 1 && count <= 3 && count <= width);
    for (uint32_t i = 0; i < count; i++) {
        CHECK_EQ(c->data_dep[first + i] / width, node / width - 1);
        CHECK(i == 0 || c->data_dep[first + i - 1] < c->data_dep[first + i]);
    }
}

TEST(test_patterns__layered_has_one_to_three_parents_in_the_layer_before)
{
    orr_gen_options opt = orr_pattern_find("layered")->defaults;
    static const uint64_t widths[] = {1, 2, 3, 4, 5, 7, 64, 1000, 5000};
    for (size_t i = 0; i < sizeof widths / sizeof *widths; i++) {
        opt.nodes = 3000;
        opt.width = widths[i];
        orr_trace *t = trace_of("layered", &opt, 0);
        CHECK_EQ(orr_trace_columns(t)->count, 3000);
        for (uint32_t node = 0; node < 3000; node++)
            check_parents(orr_trace_columns(t), node, (uint32_t)opt.width);
        orr_trace_destroy(t);
    }
}

/* The benchmarks' input: about 131 bytes a node with its length, four or five attributes. */
TEST(test_patterns__layered_is_shaped_like_a_real_trace)
{
    orr_gen_options opt = orr_pattern_find("layered")->defaults;
    opt.nodes = 100000;
    orr_trace *t = trace_of("layered", &opt, 0);
    uint64_t bytes = 0, by_type[ORR_NODE_TYPE_COUNT] = {0};
    for (uint32_t i = 0; i < 100000; i++) {
        orr_node node;
        orr_attr attr;
        int attrs = 0;
        orr_trace_node(t, i, &node);
        bytes += node.body.len + (node.body.len < 128 ? 1 : 2);
        by_type[node.type]++;
        for (orr_attrs it = orr_node_attrs(&node); orr_attrs_next(&it, &attr);)
            attrs++;
        CHECK(attrs == 4 || attrs == 5);
    }
    CHECK(bytes > 12900000 && bytes < 13300000);
    CHECK(by_type[ORR_NODE_COMP] > 79000 && by_type[ORR_NODE_COMP] < 81000);
    CHECK(by_type[ORR_NODE_COMM_COLL] > 9500 && by_type[ORR_NODE_COMM_COLL] < 10500);
    orr_trace_destroy(t);
}

TEST(test_patterns__ours_say_how_they_were_made)
{
    orr_trace *t = trace_of("layered", NULL, 0);
    orr_attrs it = orr_trace_attrs(t);
    orr_attr attr;
    CHECK(orr_attrs_next(&it, &attr));
    static const char want[] = "orrery gen layered --ranks 1 --nodes 1000 --width 64 --seed 1";
    CHECK_EQ(attr.value.s.len, sizeof want - 1);
    CHECK_BYTES(attr.value.s.ptr, want, sizeof want - 1);
    orr_trace_destroy(t);
}

TEST(test_patterns__impossible_options_are_refused)
{
    const orr_pattern *p = orr_pattern_find("compare_pipeline_parallel");
    orr_gen_options opt = p->defaults;
    orr_trace *t;
    orr_set *set;
    opt.ranks = 1;
    CHECK_CODE(orr_pattern_trace(p, &opt, 0, &t, &err), ORR_EUSAGE, &err);
    CHECK(t == NULL);
    CHECK_SAYS(&err, "compare_pipeline_parallel: ranks is 1; expected 2 to 1048576");
    opt.ranks = 2;
    opt.microbatches = 0;
    CHECK_CODE(orr_pattern_set(p, &opt, &set, &err), ORR_EUSAGE, &err);
    CHECK(set == NULL);
    CHECK_SAYS(&err, "microbatches is 0; expected 1 to 512");
    opt.microbatches = 1;
    CHECK_CODE(orr_pattern_trace(p, &opt, 2, &t, &err), ORR_EUSAGE, &err);
    CHECK_SAYS(&err, "there is no rank 2 among 2");
}

TEST(test_patterns__products_that_do_not_fit_are_refused)
{
    const orr_pattern *p = orr_pattern_find("data_parallel");
    orr_gen_options opt = p->defaults;
    orr_trace *t;
    opt.runtime_us = UINT64_MAX / 2;
    CHECK_CODE(orr_pattern_trace(p, &opt, 0, &t, &err), ORR_EUSAGE, &err);
    CHECK_SAYS(&err, "too long");
    opt.runtime_us = 1;
    opt.comm_size = INT64_MAX;
    CHECK_CODE(orr_pattern_trace(p, &opt, 0, &t, &err), ORR_EUSAGE, &err);
    CHECK_SAYS(&err, "too large");
}

/* A collective of 0.0.4 carries is_cpu_op, comm_type, comm_size unsigned, involved_dim. */
TEST(test_patterns__style_0_0_4_names_dimensions)
{
    orr_gen_options opt = orr_pattern_find("all_gather")->defaults;
    orr_node node;
    orr_attr attr;
    opt.style = ORR_GEN_0_0_4;
    opt.dims = 3;
    orr_trace *t = trace_of("all_gather", &opt, 0);
    orr_trace_node(t, 0, &node);
    CHECK(orr_node_attr(&node, "comm_size", &attr) && attr.kind == ORR_VALUE_UINT64);
    CHECK(orr_node_attr(&node, "involved_dim", &attr) && attr.is_list);
    orr_list items = orr_attr_items(&attr);
    orr_value v;
    int n = 0;
    for (; orr_list_next(&items, &v); n++)
        CHECK_EQ(v.u, 1);
    CHECK_EQ(n, 3);
    CHECK_EQ(orr_trace_version(t).len, 5);
    CHECK_BYTES(orr_trace_version(t).ptr, "0.0.4", 5);
    orr_trace_destroy(t);
}

TEST(test_patterns__style_eg_has_32_bits_for_a_size)
{
    const orr_pattern *p = orr_pattern_find("all_reduce");
    orr_gen_options opt = p->defaults;
    orr_trace *t;
    opt.style = ORR_GEN_EG;
    opt.comm_size = (uint64_t)UINT32_MAX + 1;
    CHECK_CODE(orr_pattern_trace(p, &opt, 0, &t, &err), ORR_EUSAGE, &err);
    CHECK_SAYS(&err, "comm-size is 4294967296; the schema eg has 32 bits for it");
}

int main(void)
{
    const CMUnitTest tests[] = {
        RUN(test_patterns__names_are_unique),
        RUN(test_patterns__old_names_are_found),
        RUN(test_patterns__help_fits_a_line),
        RUN(test_patterns__all_are_graphs_in_order),
        RUN(test_patterns__same_options_give_the_same_nodes),
        RUN(test_patterns__ranks_are_alike_unless_said_otherwise),
        RUN(test_patterns__alike_ranks_are_one_class),
        RUN(test_patterns__ring_has_one_body),
        RUN(test_patterns__many_ranks_take_little_memory),
        RUN(test_patterns__ring_closes),
        RUN(test_patterns__three_layers_overlap),
        RUN(test_patterns__three_layers_in_sequence_are_a_chain),
        RUN(test_patterns__compare_data_shares_the_batch),
        RUN(test_patterns__compare_model_shares_the_layers),
        RUN(test_patterns__compare_pipeline_has_three_kinds_of_stage),
        RUN(test_patterns__compare_pipeline_tags_by_peers_and_piece),
        RUN(test_patterns__data_parallel_has_its_nodes),
        RUN(test_patterns__data_parallel_moves_every_gradient_once),
        RUN(test_patterns__layered_follows_its_seed),
        RUN(test_patterns__layered_has_one_to_three_parents_in_the_layer_before),
        RUN(test_patterns__layered_is_shaped_like_a_real_trace),
        RUN(test_patterns__ours_say_how_they_were_made),
        RUN(test_patterns__impossible_options_are_refused),
        RUN(test_patterns__products_that_do_not_fit_are_refused),
        RUN(test_patterns__style_0_0_4_names_dimensions),
        RUN(test_patterns__style_eg_has_32_bits_for_a_size),
    };
    return RUN_ALL(tests);
}
