/* SPDX-License-Identifier: Apache-2.0 */
/* Caches that move: who sends how much to whom, and that both sides agree. */
#include "serve_make.h"

/* 2 layers, 12 heads of 2, 6 of keys and values: 24 numbers a token in a layer. */
static orr_model six_heads(void)
{
    orr_model m = small_model();
    m.hidden = 24;
    m.heads = 12;
    m.kv_heads = 6;
    m.ffn = 24;
    return m;
}

typedef struct message {
    uint32_t from, to;
    int64_t tag, size;
} message;

typedef struct messages {
    message list[4096];
    size_t count;
} messages;

static int compare_messages(const void *a, const void *b)
{
    return memcmp(a, b, sizeof(message));
}

static void add_message(messages *l, uint32_t from, uint32_t to, int64_t tag, int64_t size)
{
    CHECK(l->count < sizeof l->list / sizeof *l->list);
    memset(&l->list[l->count], 0, sizeof(message));
    l->list[l->count++] = (message){from, to, tag, size};
}

/* All messages with a name that ends like this, as their senders or as their receivers have them,
 * sorted. */
static void collect(const orr_set *s, const char *end, uint8_t type, messages *out)
{
    const bool is_send = type == ORR_NODE_COMM_SEND;
    out->count = 0;
    for (uint32_t r = 0; r < orr_set_rank_count(s); r++) {
        rank_nodes n = open_rank(s, r);
        for (uint32_t i = 0; i < n.c->count; i++) {
            if (n.c->type[i] != type || !is_named(orr_trace_name(n.t, i), "job", end))
                continue;
            const uint32_t peer = (uint32_t)(is_send ? n.c->comm_dst[i] : n.c->comm_src[i]);
            add_message(out, is_send ? r : peer, is_send ? peer : r, n.c->comm_tag[i],
                        n.c->comm_size[i]);
        }
        close_rank(&n);
    }
    qsort(out->list, out->count, sizeof *out->list, compare_messages);
}

/* The senders' list in *out. */
static void check_both_sides(const orr_set *s, const char *what, messages *out)
{
    static messages got;
    char end[64];
    snprintf(end, sizeof end, "%s.send", what);
    collect(s, end, ORR_NODE_COMM_SEND, out);
    snprintf(end, sizeof end, "%s.receive", what);
    collect(s, end, ORR_NODE_COMM_RECV, &got);
    CHECK_EQ_U(got.count, out->count);
    for (size_t i = 0; i < got.count; i++)
        CHECK(compare_messages(&got.list[i], &out->list[i]) == 0);
    for (size_t i = 1; i < got.count; i++) /* no two of a pair have the same tag */
        CHECK(got.list[i - 1].from != got.list[i].from || got.list[i - 1].to != got.list[i].to ||
              got.list[i - 1].tag != got.list[i].tag);
}

static int64_t size_between(const messages *l, uint32_t from, uint32_t to)
{
    for (size_t i = 0; i < l->count; i++)
        if (l->list[i].from == from && l->list[i].to == to)
            return l->list[i].size;
    return 0;
}

static messages kv, token;

TEST(test_serve_kv__heads_are_split_where_degrees_differ)
{
    /* 3 + 3 heads to 2 + 2 + 2: of 20 tokens, 2 blocks of 16, a head is 32 x 4 numbers of 2 bytes
     * in 2 layers. */
    const orr_model m = six_heads();
    const orr_serve_options o = {
        .ranks = {.tp = 2}, .decode = {.tp = 3}, .prompt = 20, .output = 2};
    const int64_t head = 32 * 4 * 2 * 2;
    orr_serve_report r;
    orr_set *s = make_set(&m, &o, &r);
    check_both_sides(s, "kv", &kv);
    CHECK_EQ_U(kv.count, 4);
    CHECK_EQ(size_between(&kv, 0, 2), 2 * head);
    CHECK_EQ(size_between(&kv, 0, 3), head);
    CHECK_EQ(size_between(&kv, 1, 3), head);
    CHECK_EQ(size_between(&kv, 1, 4), 2 * head);
    CHECK_EQ_U(r.moved_messages, 4);
    CHECK_EQ_U(r.moved_bytes, 6 * head);
    orr_set_close(s);
}

TEST(test_serve_kv__is_counted_where_no_traces_are_made)
{
    const orr_model m = six_heads();
    const orr_serve_options o = {
        .ranks = {.tp = 2}, .decode = {.tp = 3}, .prompt = 20, .output = 2, .no_traces = true};
    orr_serve_report r;
    orr_set *s = make_set(&m, &o, &r);
    CHECK(!s);
    CHECK_EQ_U(r.moved_messages, 4);
    CHECK_EQ_U(r.moved_bytes, 6 * 32 * 4 * 2 * 2);
}

TEST(test_serve_kv__equal_degrees_send_one_message_a_rank)
{
    const orr_model m = six_heads();
    const orr_serve_options o = {
        .ranks = {.tp = 2}, .decode = {.tp = 2}, .batch = 3, .prompt = 16, .output = 2};
    orr_set *s = make_set(&m, &o, NULL);
    check_both_sides(s, "kv", &kv);
    CHECK_EQ_U(kv.count, 3 * 2);
    CHECK_EQ(size_between(&kv, 1, 3), 16 * 3 * 4 * 2 * 2);
    CHECK_EQ_U(orr_set_class_count(s), 2);
    orr_set_close(s);
}

TEST(test_serve_kv__copies_of_a_head_are_sent_once_to_each)
{
    /* 6 heads on 12 ranks: each rank of 3 gets its 2 heads from two of 12, one of each pair. */
    const orr_model m = six_heads();
    const orr_serve_options o = {
        .ranks = {.tp = 12}, .decode = {.tp = 3}, .prompt = 16, .output = 2};
    orr_set *s = make_set(&m, &o, NULL);
    check_both_sides(s, "kv", &kv);
    CHECK_EQ_U(kv.count, 6);
    for (size_t i = 0; i < kv.count; i++)
        CHECK_EQ(kv.list[i].size, 16 * 4 * 2 * 2);
    orr_set_close(s);
}

TEST(test_serve_kv__every_copy_is_served)
{
    /* 6 heads on 6 ranks to 12: each serves two. */
    const orr_model m = six_heads();
    const orr_serve_options o = {
        .ranks = {.tp = 6}, .decode = {.tp = 12}, .prompt = 16, .output = 2};
    orr_set *s = make_set(&m, &o, NULL);
    check_both_sides(s, "kv", &kv);
    CHECK_EQ_U(kv.count, 12);
    for (uint32_t i = 0; i < 12; i++)
        CHECK_EQ(size_between(&kv, i / 2, 6 + i), 16 * 4 * 2 * 2);
    orr_set_close(s);
}

TEST(test_serve_kv__compressed_caches_go_whole)
{
    /* 4 + 2 numbers of a token to each of 4 ranks, from their half of 2. */
    const orr_model m = small_latent();
    const orr_serve_options o = {
        .ranks = {.tp = 2}, .decode = {.tp = 4}, .prompt = 16, .output = 2};
    orr_set *s = make_set(&m, &o, NULL);
    check_both_sides(s, "kv", &kv);
    CHECK_EQ_U(kv.count, 4);
    for (uint32_t i = 0; i < 4; i++)
        CHECK_EQ(size_between(&kv, i / 2, 2 + i), 16 * 6 * 2);
    orr_set_close(s);
}

TEST(test_serve_kv__stages_exchange_common_layers)
{
    /* 6 layers over 2 and over 3 stages: 0-2, 3-5 and 0-1, 2-3, 4-5. */
    orr_model m = six_heads();
    m.layers = 6;
    const orr_serve_options o = {
        .ranks = {.pp = 2}, .decode = {.pp = 3}, .prompt = 16, .output = 2};
    const int64_t layer = 16 * 24 * 2;
    orr_set *s = make_set(&m, &o, NULL);
    check_both_sides(s, "kv", &kv);
    CHECK_EQ_U(kv.count, 4);
    CHECK_EQ(size_between(&kv, 0, 2), 2 * layer);
    CHECK_EQ(size_between(&kv, 0, 3), layer);
    CHECK_EQ(size_between(&kv, 1, 3), layer);
    CHECK_EQ(size_between(&kv, 1, 4), 2 * layer);
    /* The token goes from the last stage to the first. */
    check_both_sides(s, "token", &token);
    CHECK_EQ_U(token.count, 1);
    CHECK_EQ(size_between(&token, 1, 2), 4);
    orr_set_close(s);
}

TEST(test_serve_kv__context_parallel_ranks_send_their_tokens)
{
    /* 64 tokens on 2 ranks: 32 each. */
    const orr_model m = six_heads();
    const orr_serve_options o = {
        .ranks = {.cp = 2}, .decode = {.tp = 1}, .prompt = 64, .output = 2};
    orr_set *s = make_set(&m, &o, NULL);
    check_both_sides(s, "kv", &kv);
    CHECK_EQ_U(kv.count, 2);
    CHECK_EQ(size_between(&kv, 0, 2), 32 * 24 * 2 * 2);
    CHECK_EQ(size_between(&kv, 1, 2), 32 * 24 * 2 * 2);
    orr_set_close(s);
}

TEST(test_serve_kv__windows_send_what_they_keep)
{
    /* One layer sees all of 64 tokens, the other 16. */
    orr_model m = six_heads();
    m.window = 16;
    m.global_every = 2;
    const orr_serve_options o = {.decode = {.tp = 1}, .prompt = 64, .output = 2};
    orr_set *s = make_set(&m, &o, NULL);
    check_both_sides(s, "kv", &kv);
    CHECK_EQ(size_between(&kv, 0, 1), (64 + 16) * 24 * 2);
    orr_set_close(s);
}

TEST(test_serve_kv__replicas_of_any_number_meet)
{
    /* Request i goes through replica i % 3 and is answered by replica 3 + i % 2. */
    const orr_model m = six_heads();
    const orr_serve_options o = {
        .ranks = {.dp = 3}, .decode = {.dp = 2}, .batch = 12, .prompt = 16, .output = 2};
    orr_set *s = make_set(&m, &o, NULL);
    check_both_sides(s, "kv", &kv);
    CHECK_EQ_U(kv.count, 12);
    unsigned pairs[3][2] = {{0}};
    for (size_t i = 0; i < kv.count; i++)
        pairs[kv.list[i].from][kv.list[i].to - 3]++;
    for (unsigned i = 0; i < 3; i++) {
        CHECK_EQ(pairs[i][0], 2);
        CHECK_EQ(pairs[i][1], 2);
    }
    CHECK_EQ_U(orr_set_class_count(s), 2);
    orr_set_close(s);
}

TEST(test_serve_kv__answers_of_one_token_stay)
{
    const orr_model m = six_heads();
    const orr_serve_request requests[] = {{0, 16, 1}, {0, 16, 3}};
    const orr_serve_options o = {.decode = {.tp = 1}, .requests = requests, .request_count = 2};
    char text[100];
    orr_set *s = make_set(&m, &o, NULL);
    check_both_sides(s, "kv", &kv);
    CHECK_EQ_U(kv.count, 1);
    CHECK_TEXT(tokens_text(s, 0, m.hidden, text, sizeof text), "32");
    CHECK_TEXT(tokens_text(s, 1, m.hidden, text, sizeof text), "1 1");
    orr_set_close(s);
}

/* The node that makes the first step's embedding wait for all parts of the cache. */
TEST(test_serve_kv__decoding_waits_for_the_cache)
{
    const orr_model m = six_heads();
    const orr_serve_options o = {
        .ranks = {.tp = 2}, .decode = {.tp = 1}, .prompt = 20, .output = 2};
    orr_set *s = make_set(&m, &o, NULL);
    rank_nodes n = open_rank(s, 2);
    const uint32_t ready = find_node(&n, "decode1.", "kv.ready", 0);
    const uint32_t lookup = find_node(&n, "decode1.", "embedding.lookup", 0);
    CHECK_EQ_U(n.c->data_first[ready + 1] - n.c->data_first[ready], 3); /* 2 parts and the token */
    CHECK_EQ_U(n.c->data_dep[n.c->data_first[lookup]], ready);
    close_rank(&n);
    orr_set_close(s);
}

int main(void)
{
    const CMUnitTest tests[] = {
        RUN(test_serve_kv__heads_are_split_where_degrees_differ),
        RUN(test_serve_kv__is_counted_where_no_traces_are_made),
        RUN(test_serve_kv__equal_degrees_send_one_message_a_rank),
        RUN(test_serve_kv__copies_of_a_head_are_sent_once_to_each),
        RUN(test_serve_kv__every_copy_is_served),
        RUN(test_serve_kv__compressed_caches_go_whole),
        RUN(test_serve_kv__stages_exchange_common_layers),
        RUN(test_serve_kv__context_parallel_ranks_send_their_tokens),
        RUN(test_serve_kv__windows_send_what_they_keep),
        RUN(test_serve_kv__replicas_of_any_number_meet),
        RUN(test_serve_kv__answers_of_one_token_stay),
        RUN(test_serve_kv__decoding_waits_for_the_cache),
    };
    return RUN_ALL(tests);
}
