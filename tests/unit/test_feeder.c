/* SPDX-License-Identifier: Apache-2.0 */
#include "et_make.h"

#include <orrery/feeder.h>

static orr_feeder *feeder_of(const orr_trace *t, const orr_feeder_options *opt)
{
    orr_feeder *f;
    CHECK_OK(orr_feeder_create(t, opt, &f, &err), &err);
    return f;
}

/* Feed all, finishing each node at once; the ids as text. */
static const char *order_of(orr_feeder *f)
{
    static char text[512];
    size_t used = 0;
    orr_node node;
    text[0] = '\0';
    while (orr_feeder_next(f, &node, &err) == ORR_OK) {
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%" PRIu64, used ? " " : "",
                                 node.id);
        CHECK_OK(orr_feeder_finish(f, node.id, &err), &err);
    }
    return text;
}

static void check_order(orr_trace *t,
                        const orr_feeder_options *opt,
                        const char *want,
                        uint64_t left)
{
    orr_feeder *f = feeder_of(t, opt);
    CHECK_TEXT(order_of(f), want);
    CHECK_EQ_U(orr_feeder_left(f), left);
    CHECK_EQ_U(orr_feeder_in_flight(f), 0);
    CHECK(!orr_feeder_has_ready(f));
    orr_feeder_close(f);
}

static void check_refused(const orr_trace *t, const orr_feeder_options *opt, const char *words)
{
    orr_feeder *f = (orr_feeder *)&err; /* must become NULL */
    CHECK_CODE(orr_feeder_create(t, opt, &f, &err), ORR_EINPUT, &err);
    CHECK(f == NULL);
    CHECK_SAYS(&err, words);
}

static const orr_feeder_options by_data = {.size = sizeof by_data, .deps = ORR_FEED_DATA},
                                by_ctrl = {.size = sizeof by_ctrl, .deps = ORR_FEED_CTRL};
static const orr_feeder_options as_v2 = {.size = sizeof as_v2, .order = ORR_FEED_AS_V2};

/* ---- a trace in memory ---- */

TEST(test_feeder__the_smallest_ready_id_comes_first)
{
    orr_trace *t = new_trace();
    ADD_NODE(t, 9);
    ADD_NODE(t, 3, 9);
    ADD_NODE(t, 5);
    ADD_NODE(t, 7, 5);
    ADD_NODE(t, 1, 3);
    seal(t);
    check_order(t, NULL, "5 7 9 3 1", 0); /* 5 and 9 are ready; 7 after 5, 3 after 9, 1 after 3 */
    check_order(t, &as_v2, "5 7 9 3 1", 0);
    orr_trace_destroy(t);
}

TEST(test_feeder__large_ids_are_compared_as_unsigned)
{
    orr_trace *t = new_trace();
    ADD_NODE(t, UINT64_MAX);
    ADD_NODE(t, 0);
    ADD_NODE(t, 1ull << 63);
    seal(t);
    check_order(t, NULL, "0 9223372036854775808 18446744073709551615", 0);
    orr_trace_destroy(t);
}

TEST(test_feeder__data_and_control_dependencies_are_chosen)
{
    orr_trace *t = new_trace();
    add_node(t, 1, (const uint64_t[]){4}, 1, NULL, 0);
    add_node(t, 2, NULL, 0, (const uint64_t[]){3}, 1);
    ADD_NODE(t, 3);
    ADD_NODE(t, 4);
    seal(t);
    check_order(t, NULL, "3 2 4 1", 0);
    check_order(t, &by_data, "2 3 4 1", 0);
    check_order(t, &by_ctrl, "1 3 2 4", 0);
    check_order(t, &as_v2, "2 3 4 1", 0);
    orr_trace_destroy(t);
}

TEST(test_feeder__a_parent_named_often_is_one_parent)
{
    orr_trace *t = new_trace();
    ADD_NODE(t, 1);
    add_node(t, 2, (const uint64_t[]){1, 1, 1}, 3, (const uint64_t[]){1, 1}, 2);
    ADD_NODE(t, 3, 2);
    seal(t);
    check_order(t, NULL, "1 2 3", 0);
    check_order(t, &as_v2, "1", 2); /* V2 waits for ever */
    orr_trace_destroy(t);
}

TEST(test_feeder__nothing_is_ready_until_something_finishes)
{
    orr_trace *t = new_trace();
    orr_node node;
    ADD_NODE(t, 1);
    ADD_NODE(t, 2);
    ADD_NODE(t, 3, 1, 2);
    seal(t);
    orr_feeder *f = feeder_of(t, NULL);
    CHECK(orr_feeder_has_ready(f) && orr_feeder_left(f) == 3 && orr_feeder_in_flight(f) == 0);
    CHECK_OK(orr_feeder_next(f, &node, &err), &err);
    CHECK_EQ_U(node.id, 1);
    CHECK_OK(orr_feeder_next(f, &node, &err), &err);
    CHECK_EQ_U(node.id, 2);
    CHECK_CODE(orr_feeder_next(f, &node, &err), ORR_END, &err);
    CHECK(!orr_feeder_has_ready(f) && orr_feeder_left(f) == 3 && orr_feeder_in_flight(f) == 2);
    CHECK_OK(orr_feeder_finish(f, 2, &err), &err);
    CHECK_CODE(orr_feeder_next(f, &node, &err), ORR_END, &err);
    CHECK(orr_feeder_find(f, 1, &node) && node.id == 1);
    CHECK(!orr_feeder_find(f, 2, &node)); /* finished */
    CHECK(orr_feeder_find(f, 3, &node) && node.id == 3);
    CHECK(!orr_feeder_find(f, 4, &node));
    CHECK_OK(orr_feeder_finish(f, 1, &err), &err);
    CHECK_OK(orr_feeder_next(f, &node, &err), &err);
    CHECK_EQ_U(node.id, 3);
    CHECK_OK(orr_feeder_finish(f, 3, &err), &err);
    CHECK_EQ_U(orr_feeder_left(f), 0);
    orr_feeder_close(f);
    orr_feeder_close(NULL);
    orr_trace_destroy(t);
}

TEST(test_feeder__a_node_put_back_comes_again_in_its_place)
{
    orr_trace *t = new_trace();
    orr_node node;
    ADD_NODE(t, 1);
    ADD_NODE(t, 2);
    ADD_NODE(t, 3);
    seal(t);
    orr_feeder *f = feeder_of(t, NULL);
    CHECK(orr_feeder_next(f, &node, &err) == ORR_OK && orr_feeder_next(f, &node, &err) == ORR_OK);
    CHECK_OK(orr_feeder_put_back(f, 1, &err), &err);
    CHECK_EQ_U(orr_feeder_in_flight(f), 1);
    CHECK_CODE(orr_feeder_put_back(f, 1, &err), ORR_EUSAGE, &err);
    CHECK(orr_feeder_next(f, &node, &err) == ORR_OK && node.id == 1);
    CHECK(orr_feeder_next(f, &node, &err) == ORR_OK && node.id == 3);
    CHECK_CODE(orr_feeder_next(f, &node, &err), ORR_END, &err);
    orr_feeder_close(f);
    orr_trace_destroy(t);
}

TEST(test_feeder__misuse_is_an_error_and_changes_nothing)
{
    orr_trace *t = new_trace();
    orr_node node;
    orr_feeder *f;
    ADD_NODE(t, 1);
    ADD_NODE(t, 2, 1);
    CHECK_CODE(orr_feeder_create(t, NULL, &f, &err), ORR_EUSAGE, &err); /* not sealed */
    seal(t);
    f = feeder_of(t, NULL);
    CHECK_CODE(orr_feeder_finish(f, 1, &err), ORR_EUSAGE, &err);
    CHECK_SAYS(&err, "node 1 is not taken");
    CHECK_CODE(orr_feeder_finish(f, 7, &err), ORR_EUSAGE, &err);
    CHECK_SAYS(&err, "node 7 is not in the trace");
    CHECK(orr_feeder_next(f, &node, &err) == ORR_OK);
    CHECK_CODE(orr_feeder_finish(f, 2, &err), ORR_EUSAGE, &err);
    CHECK_OK(orr_feeder_finish(f, 1, &err), &err);
    CHECK_CODE(orr_feeder_finish(f, 1, &err), ORR_EUSAGE, &err);
    CHECK_CODE(orr_feeder_put_back(f, 1, &err), ORR_EUSAGE, &err);
    CHECK_EQ_U(orr_feeder_left(f), 1);
    CHECK(orr_feeder_next(f, &node, &err) == ORR_OK && node.id == 2);
    orr_feeder_close(f);
    orr_trace_destroy(t);
}

TEST(test_feeder__an_empty_trace_is_done_at_once)
{
    orr_trace *t = new_trace();
    seal(t);
    check_order(t, NULL, "", 0);
    check_order(t, &as_v2, "", 0);
    orr_trace_destroy(t);
}

TEST(test_feeder__by_index_it_is_the_same_order)
{
    orr_trace *t = new_trace();
    ADD_NODE(t, 30);
    ADD_NODE(t, 10, 30);
    ADD_NODE(t, 20, 30);
    seal(t);
    orr_feeder *f = feeder_of(t, NULL);
    uint32_t count;
    CHECK(orr_feeder_trace(f) == t);
    const uint32_t *children = orr_feeder_children(f, 0, &count);
    CHECK(count == 2 && children[0] == 1 && children[1] == 2);
    CHECK_EQ_U(orr_feeder_take(f), 0);
    CHECK_EQ_U(orr_feeder_take(f), ORR_NO_NODE);
    orr_feeder_done(f, 0);
    CHECK_EQ_U(orr_feeder_take(f), 1);
    CHECK_EQ_U(orr_feeder_take(f), 2);
    orr_feeder_done(f, 2);
    orr_feeder_done(f, 1);
    CHECK_EQ_U(orr_feeder_left(f), 0);
    orr_feeder_close(f);
    orr_trace_destroy(t);
}

/* ---- what cannot be fed ---- */

TEST(test_feeder__a_cycle_is_shown_as_a_path)
{
    orr_trace *t = new_trace();
    ADD_NODE(t, 1);
    ADD_NODE(t, 2, 4, 1);
    ADD_NODE(t, 3, 2);
    ADD_NODE(t, 4, 3);
    ADD_NODE(t, 5, 4); /* behind the cycle, not on it */
    seal(t);
    check_refused(t, NULL, "dependencies form a cycle of 3 nodes: 3 -> 4 -> 2 -> 3");
    CHECK_OK(orr_trace_write(t, "f.et", NULL, &err), &err);
    check_order(t, &by_ctrl, "1 2 3 4 5", 0);
    check_order(t, &as_v2, "1", 4);
    orr_trace_destroy(t);
    CHECK_OK(orr_trace_read("f.et", NULL, &t, &err), &err);
    check_refused(t, NULL, "cycle of 3 nodes");
    CHECK_TEXT(err.where.path, "f.et");
    CHECK_EQ_U(err.where.byte, orr_trace_where(t, 1).byte); /* node 2 */
    orr_trace_destroy(t);
}

TEST(test_feeder__a_cycle_may_run_through_both_kinds_of_dependency)
{
    orr_trace *t = new_trace();
    add_node(t, 1, NULL, 0, (const uint64_t[]){2}, 1);
    ADD_NODE(t, 2, 1);
    seal(t);
    check_refused(t, NULL, "cycle of 2 nodes: 2 -> 1 -> 2");
    check_order(t, &by_data, "1 2", 0);
    check_order(t, &by_ctrl, "2 1", 0);
    orr_trace_destroy(t);
}

TEST(test_feeder__a_node_that_waits_for_itself_is_a_cycle)
{
    orr_trace *t = new_trace();
    ADD_NODE(t, 7, 7);
    seal(t);
    check_refused(t, NULL, "cycle of 1 nodes: 7 -> 7");
    check_order(t, &as_v2, "", 1);
    orr_trace_destroy(t);
}

TEST(test_feeder__a_long_cycle_is_cut_in_the_middle)
{
    orr_trace *t = new_trace();
    ADD_NODE(t, 1, 1000);
    for (uint64_t id = 2; id <= 1000; id++)
        ADD_NODE(t, id, id - 1);
    seal(t);
    /* 1001 ids with the first one again at the end: five, 992 left out, four. */
    check_refused(
        t, NULL,
        "cycle of 1000 nodes: 2 -> 3 -> 4 -> 5 -> 6 -> ... (992 more) -> 999 -> 1000 -> 1 -> 2");
    orr_trace_destroy(t);
    t = new_trace(); /* the longest ids still fit */
    const uint64_t big = UINT64_MAX - 50;
    ADD_NODE(t, big, big + 29);
    for (uint64_t i = 1; i < 30; i++)
        ADD_NODE(t, big + i, big + i - 1);
    seal(t);
    check_refused(t, NULL, "(22 more)");
    CHECK_SAYS(&err, "cycle of 30 nodes: 18446744073709551566 -> ");
    orr_trace_destroy(t);
}

TEST(test_feeder__a_missing_parent_is_named)
{
    orr_trace *t = new_trace();
    ADD_NODE(t, 1);
    ADD_NODE(t, 2, 1, 99, 98);
    add_node(t, 3, NULL, 0, (const uint64_t[]){1, 97}, 2);
    seal(t);
    check_refused(t, NULL, "node 2 \"n\": its data dependency is not in the trace: node 99");
    check_refused(t, &by_ctrl, "node 3 \"n\": its control dependency is not in the trace: node 97");
    check_order(t, &as_v2, "1 3", 1);
    CHECK_OK(orr_trace_write(t, "f.et", NULL, &err), &err);
    orr_trace_destroy(t);
    orr_feeder *f;
    CHECK_CODE(orr_feeder_open("f.et", NULL, &f, &err), ORR_EINPUT, &err);
    CHECK_SAYS(&err, "f.et: byte 16: node 2");
}

TEST(test_feeder__only_the_dependencies_that_count_must_be_there)
{
    orr_trace *t = new_trace();
    add_node(t, 1, NULL, 0, (const uint64_t[]){0}, 1); /* as the PyTorch converter leaves them */
    ADD_NODE(t, 2, 1);
    seal(t);
    check_order(t, &by_data, "1 2", 0);
    check_refused(t, NULL, "its control dependency is not in the trace: node 0");
    orr_trace_destroy(t);
}

TEST(test_feeder__a_duplicate_id_is_named)
{
    orr_trace *t = new_trace();
    ADD_NODE(t, 5);
    ADD_NODE(t, 3);
    ADD_NODE(t, 5, 3);
    ADD_NODE(t, 6, 5);
    seal(t);
    check_refused(t, NULL, "node 5 \"n\": an earlier node has the same id 5");
    check_order(t, &as_v2, "3 5 6", 0); /* the last one replaces the first */
    orr_trace_destroy(t);
}

/* ---- files and windows ---- */

typedef struct run {
    uint64_t *ids;
    size_t count;
    uint64_t most; /* nodes held at the same time */
} run;

/* Feed to the end, with up to `width` nodes in flight, finished in an order that depends on the
 * seed. */
static run run_feeder(orr_feeder *f, uint64_t seed, size_t width)
{
    run r = {0};
    size_t room = 0, flying = 0;
    uint64_t in_flight[64];
    orr_node node;
    orr_code code;
    while (orr_feeder_left(f)) {
        if (orr_feeder_left(f) > r.most)
            r.most = orr_feeder_left(f);
        CHECK_EQ_U(orr_feeder_in_flight(f), flying);
        if (flying < width && (code = orr_feeder_next(f, &node, &err)) != ORR_END) {
            CHECK_OK(code, &err);
            CHECK(orr_grow(&r.ids, &room, r.count + 1));
            r.ids[r.count++] = node.id;
            in_flight[flying++] = node.id;
            continue;
        }
        CHECK(flying);
        const size_t k = next_random(&seed) % flying;
        CHECK_OK(orr_feeder_finish(f, in_flight[k], &err), &err);
        in_flight[k] = in_flight[--flying];
    }
    return r;
}

static run run_file(const char *path, uint32_t window, uint64_t seed, size_t width)
{
    orr_feeder *f;
    CHECK_OK(orr_feeder_open(
                 path, &(orr_feeder_options){.size = sizeof(orr_feeder_options), .window = window},
                 &f, &err),
             &err);
    const run r = run_feeder(f, seed, width);
    CHECK_EQ((orr_feeder_trace(f) == NULL), (window != 0));
    orr_feeder_close(f);
    return r;
}

TEST(test_feeder__a_window_that_holds_everything_changes_nothing)
{
    static const char *const names[] = {"f.et", "f.et.gz", "f.et.zst"};
    for (uint64_t seed = 1; seed <= 30; seed++) {
        orr_trace *t = random_trace(seed, 400, 1 + (uint32_t)seed);
        const char *name = names[seed % 3];
        CHECK_OK(orr_trace_write(t, name, NULL, &err), &err);
        orr_trace_destroy(t);
        const size_t width = 1 + seed % 20;
        run whole = run_file(name, 0, seed, width);
        run window = run_file(name, 400 + (uint32_t)seed % 2, seed, width);
        CHECK_EQ_U(whole.count, 400);
        CHECK_EQ_U(window.count, 400);
        CHECK_BYTES(whole.ids, window.ids, 400 * sizeof *whole.ids);
        orr_free(whole.ids);
        orr_free(window.ids);
    }
}

/* Every node once, and after all it waits for (in issue order, which is what finishing at once
 * gives). */
static void check_valid(const orr_trace *t, const run *r)
{
    const orr_columns *c = orr_trace_columns(t);
    uint32_t *at = malloc(c->count * sizeof *at);
    CHECK(at != NULL);
    memset(at, 0xff, c->count * sizeof *at);
    CHECK_EQ_U(r->count, c->count);
    for (uint32_t k = 0; k < r->count; k++) {
        const uint32_t i = orr_trace_find(t, r->ids[k]);
        CHECK(i != ORR_NO_NODE && at[i] == UINT32_MAX);
        at[i] = k;
    }
    for (uint32_t i = 0; i < c->count; i++) {
        for (uint32_t e = c->data_first[i]; e < c->data_first[i + 1]; e++)
            CHECK(at[c->data_dep[e]] < at[i]);
        for (uint32_t e = c->ctrl_first ? c->ctrl_first[i] : 0;
             c->ctrl_first && e < c->ctrl_first[i + 1]; e++)
            CHECK(at[c->ctrl_dep[e]] < at[i]);
    }
    free(at);
}

TEST(test_feeder__a_small_window_feeds_every_trace_whose_parents_come_first)
{
    for (uint64_t seed = 1; seed <= 20; seed++) {
        orr_trace *t = random_trace(seed, 5000, 300);
        CHECK_OK(orr_trace_write(t, "f.et", NULL, &err), &err);
        for (uint32_t window = 1; window <= 1000; window *= 10) {
            run r = run_file("f.et", window, seed, 16);
            check_valid(t, &r);
            CHECK(r.most <= window);
            orr_free(r.ids);
        }
        orr_trace_destroy(t);
    }
}

TEST(test_feeder__a_window_remembers_ids_however_far_apart_they_are)
{
    /* Every dependency is on a node that is long finished, with ids that fill no page and that fill
     * pages. */
    for (unsigned spread = 0; spread < 2; spread++) {
        orr_trace *t = new_trace();
        uint64_t ids[4000];
        for (uint32_t i = 0; i < 4000; i++) {
            ids[i] = spread ? (uint64_t)i * 0x9e3779b97f4a7c15u : i;
            add_node(t, ids[i], &ids[i / 2], i ? 1 : 0, NULL, 0);
        }
        seal(t);
        CHECK_OK(orr_trace_write(t, "f.et", NULL, &err), &err);
        run r = run_file("f.et", 3, 1, 2);
        check_valid(t, &r);
        orr_free(r.ids);
        orr_trace_destroy(t);
    }
}

static void window_file(const orr_buf *b, uint32_t window, orr_feeder **f)
{
    write_file("f.et", b->ptr, b->len);
    CHECK_OK(
        orr_feeder_open("f.et",
                        &(orr_feeder_options){.size = sizeof(orr_feeder_options), .window = window},
                        f, &err),
        &err);
}

static void refuse_window(const orr_buf *b, uint32_t window, uint64_t byte, const char *words)
{
    orr_feeder *f = (orr_feeder *)&err;
    write_file("f.et", b->ptr, b->len);
    CHECK_CODE(
        orr_feeder_open("f.et",
                        &(orr_feeder_options){.size = sizeof(orr_feeder_options), .window = window},
                        &f, &err),
        ORR_EINPUT, &err);
    CHECK(f == NULL);
    CHECK_TEXT(err.where.path, "f.et");
    CHECK_EQ_U(err.where.byte, byte);
    CHECK_SAYS(&err, words);
}

TEST(test_feeder__a_parent_may_come_later_within_the_window)
{
    orr_feeder *f;
    orr_node node;
    orr_buf b = {0};
    put_meta(&b);
    PUT_NODE(&b, 1, 3); /* at byte 8 */
    PUT_NODE(&b, 2, 3);
    PUT_NODE(&b, 3);
    PUT_NODE(&b, 4, 1);
    window_file(&b, 3, &f);
    CHECK_TEXT(order_of(f), "3 1 2 4");
    CHECK_EQ_U(orr_feeder_left(f), 0);
    orr_feeder_close(f);
    window_file(&b, 2, &f);
    CHECK_CODE(orr_feeder_next(f, &node, &err), ORR_EINPUT, &err);
    CHECK_SAYS(
        &err,
        "f.et: byte 8: node 1 waits for node 3, which is not within a window of 2 nodes: use a larger one");
    CHECK_CODE(orr_feeder_next(f, &node, &err), ORR_EINPUT, &err); /* and again */
    orr_feeder_close(f);
    orr_buf_fini(&b);
}

TEST(test_feeder__a_window_finds_cycles_missing_parents_and_duplicates)
{
    orr_feeder *f;
    orr_node node;
    orr_buf b = {0};
    put_meta(&b);
    PUT_NODE(&b, 1);
    PUT_NODE(&b, 2, 4);
    PUT_NODE(&b, 3, 2);
    PUT_NODE(&b, 4, 3);
    window_file(&b, 10, &f);
    CHECK(orr_feeder_next(f, &node, &err) == ORR_OK && node.id == 1);
    CHECK_CODE(orr_feeder_next(f, &node, &err), ORR_END, &err); /* node 1 is in flight */
    CHECK_OK(orr_feeder_finish(f, 1, &err), &err);
    CHECK_CODE(orr_feeder_next(f, &node, &err), ORR_EINPUT, &err);
    CHECK_SAYS(&err, "dependencies form a cycle of 3 nodes: 3 -> 4 -> 2 -> 3");
    orr_feeder_close(f);
    b.len = 8;
    PUT_NODE(&b, 5, 5);
    window_file(&b, 1, &f);
    CHECK_CODE(orr_feeder_next(f, &node, &err), ORR_EINPUT, &err);
    CHECK_SAYS(&err, "cycle of 1 nodes: 5 -> 5");
    orr_feeder_close(f);
    b.len = 8;
    PUT_NODE(&b, 1);
    PUT_NODE(&b, 2, 1, 99);
    refuse_window(&b, 10, 16, "node 2: its dependency is not in the trace: node 99");
    window_file(&b, 1, &f); /* known only at the end of the file */
    CHECK(orr_feeder_next(f, &node, &err) == ORR_OK && node.id == 1);
    CHECK_OK(orr_feeder_finish(f, 1, &err), &err);
    CHECK_CODE(orr_feeder_next(f, &node, &err), ORR_EINPUT, &err);
    CHECK_SAYS(&err, "node 2 waits for node 99");
    orr_feeder_close(f);
    b.len = 8;
    PUT_NODE(&b, 1);
    PUT_NODE(&b, 2, 1);
    PUT_NODE(&b, 1);
    refuse_window(&b, 10, 27, "an earlier node has the same id 1");
    window_file(&b, 1, &f);
    CHECK(orr_feeder_next(f, &node, &err) == ORR_OK && orr_feeder_finish(f, 1, &err) == ORR_OK);
    CHECK(orr_feeder_next(f, &node, &err) == ORR_OK && node.id == 2);
    CHECK_CODE(orr_feeder_finish(f, 2, &err), ORR_EINPUT, &err);
    CHECK_SAYS(&err, "an earlier node has the same id 1");
    orr_feeder_close(f);
    orr_buf_fini(&b);
}

TEST(test_feeder__a_window_counts_the_dependencies_that_were_chosen)
{
    orr_feeder *f;
    orr_trace *t = new_trace();
    add_node(t, 1, (const uint64_t[]){3}, 1, (const uint64_t[]){77}, 1);
    add_node(t, 2, (const uint64_t[]){1, 1}, 2, (const uint64_t[]){3}, 1);
    ADD_NODE(t, 3);
    seal(t);
    CHECK_OK(orr_trace_write(t, "f.et", NULL, &err), &err);
    orr_trace_destroy(t);
    CHECK_OK(orr_feeder_open("f.et",
                             &(orr_feeder_options){.size = sizeof(orr_feeder_options),
                                                   .window = 5,
                                                   .deps = ORR_FEED_DATA},
                             &f, &err),
             &err);
    CHECK_TEXT(order_of(f), "3 1 2");
    orr_feeder_close(f);
    CHECK_CODE(orr_feeder_open("f.et",
                               &(orr_feeder_options){.size = sizeof(orr_feeder_options),
                                                     .window = 5,
                                                     .deps = ORR_FEED_CTRL},
                               &f, &err),
               ORR_EINPUT, &err);
    CHECK_SAYS(&err, "node 1: its dependency is not in the trace: node 77");
}

TEST(test_feeder__damage_in_the_middle_comes_up_when_it_is_read)
{
    orr_feeder *f;
    orr_node node;
    orr_buf b = {0};
    put_meta(&b);
    PUT_NODE(&b, 1);
    PUT_NODE(&b, 2, 1);
    PUT_NODE(&b, 3, 2);
    b.len--; /* node 3 is cut, at byte 26 + 1 */
    window_file(&b, 1, &f);
    CHECK(orr_feeder_next(f, &node, &err) == ORR_OK && orr_feeder_finish(f, 1, &err) == ORR_OK);
    CHECK(orr_feeder_next(f, &node, &err) == ORR_OK && node.id == 2);
    CHECK_CODE(orr_feeder_finish(f, 2, &err), ORR_EINPUT, &err);
    CHECK_SAYS(&err, "f.et: byte 27: a record is longer than the rest of the file");
    orr_feeder_close(f);
    refuse_window(&b, 3, 27, "cut short or damaged");
    b.len = 27;
    orr_buf_add(&b, "\0", 1);
    refuse_window(&b, 3, 27, "an empty record");
    b.len = 27;
    orr_buf_add(&b, "\xff\xff\xff\xff\xff\x01", 6);
    refuse_window(&b, 3, 27, "more than 256 MiB");
    b.len = 27;
    orr_buf_add(&b, "\xff", 1);
    refuse_window(&b, 3, 27, "ends inside a record's length");
    b.len = 27;
    PUT_RECORD(&b, "\x08\x03\x12\x02"
                   "a\xff");
    refuse_window(&b, 3, 33, "not valid UTF-8");
    b.len = 0;
    refuse_window(&b, 3, 0, "the file is empty");
    PUT_RECORD(&b, "\x0a\x01\xff");
    refuse_window(&b, 3, 3, "not valid UTF-8");
    orr_buf_fini(&b);
}

TEST(test_feeder__a_packed_stream_that_is_cut_feeds_what_is_there)
{
    orr_feeder *f;
    orr_node node;
    orr_code code = ORR_OK;
    orr_trace *t = random_trace(1, 50000, 10);
    uint32_t fed = 0;
    CHECK_OK(orr_trace_write(t, "f.et.gz", NULL, &err), &err);
    orr_trace_destroy(t);
    orr_buf packed = read_file("f.et.gz");
    write_file("f.et.gz", packed.ptr, packed.len / 2);
    orr_buf_fini(&packed);
    CHECK_OK(orr_feeder_open(
                 "f.et.gz", &(orr_feeder_options){.size = sizeof(orr_feeder_options), .window = 10},
                 &f, &err),
             &err);
    while (!code) {
        CHECK_OK(orr_feeder_next(f, &node, &err), &err);
        code = orr_feeder_finish(f, node.id, &err);
        fed++;
    }
    CHECK_EQ(code, ORR_EINPUT);
    CHECK_SAYS(&err, "f.et.gz: byte ");
    CHECK_SAYS(&err, "the compressed data is cut short");
    CHECK(fed > 10000 && fed < 40000);
    orr_feeder_close(f);
}

TEST(test_feeder__a_window_is_misused_in_the_same_ways)
{
    orr_feeder *f;
    orr_node node;
    orr_buf b = {0};
    put_meta(&b);
    PUT_NODE(&b, 1);
    PUT_NODE(&b, 2);
    PUT_NODE(&b, 3, 1);
    window_file(&b, 2, &f);
    CHECK_EQ_U(orr_feeder_left(f), 2); /* those that have been read */
    CHECK_EQ_U(orr_feeder_take(f), ORR_NO_NODE);
    CHECK_CODE(orr_feeder_finish(f, 1, &err), ORR_EUSAGE, &err);
    CHECK(orr_feeder_next(f, &node, &err) == ORR_OK && node.id == 1);
    CHECK_OK(orr_feeder_put_back(f, 1, &err), &err);
    CHECK_CODE(orr_feeder_put_back(f, 1, &err), ORR_EUSAGE, &err);
    CHECK(orr_feeder_next(f, &node, &err) == ORR_OK && node.id == 1);
    CHECK(orr_feeder_find(f, 2, &node) && node.id == 2);
    CHECK(!orr_feeder_find(f, 3, &node)); /* not read yet */
    CHECK_OK(orr_feeder_finish(f, 1, &err), &err);
    CHECK(!orr_feeder_find(f, 1, &node));
    CHECK(orr_feeder_find(f, 3, &node) && node.id == 3);
    CHECK_CODE(orr_feeder_finish(f, 1, &err), ORR_EUSAGE, &err);
    CHECK_TEXT(order_of(f), "2 3");
    orr_feeder_close(f);
    CHECK_CODE(orr_feeder_open("f.et",
                               &(orr_feeder_options){.size = sizeof(orr_feeder_options),
                                                     .window = 2,
                                                     .order = ORR_FEED_AS_V2},
                               &f, &err),
               ORR_EUSAGE, &err);
    CHECK_CODE(orr_feeder_open("f.et",
                               &(orr_feeder_options){
                                   .size = sizeof(orr_feeder_options),
                                   .window = 2,
                                   .read = &(orr_read_options){.size = sizeof(orr_read_options),
                                                               .schema = ORR_SCHEMA_EG}},
                               &f, &err),
               ORR_EINPUT, &err);
    CHECK_SAYS(&err, "a window needs a current .et file");
    CHECK_CODE(
        orr_feeder_open("not-there.et",
                        &(orr_feeder_options){.size = sizeof(orr_feeder_options), .window = 2}, &f,
                        &err),
        ORR_EIO, &err);
    CHECK_CODE(orr_feeder_open("not-there.et", NULL, &f, &err), ORR_EIO, &err);
    orr_buf_fini(&b);
}

TEST(test_feeder__a_window_over_a_file_of_metadata_is_done_at_once)
{
    orr_feeder *f;
    orr_node node;
    orr_buf b = {0};
    put_meta(&b);
    window_file(&b, 4, &f);
    CHECK_EQ_U(orr_feeder_left(f), 0);
    CHECK_CODE(orr_feeder_next(f, &node, &err), ORR_END, &err);
    orr_feeder_close(f);
    b.len = 0;
    PUT_NODE(&b, 0); /* and over one without metadata */
    PUT_NODE(&b, 1, 0);
    window_file(&b, 4, &f);
    CHECK_TEXT(order_of(f), "0 1");
    orr_feeder_close(f);
    orr_buf_fini(&b);
}

int main(void)
{
    const CMUnitTest tests[] = {
        RUN(test_feeder__the_smallest_ready_id_comes_first),
        RUN(test_feeder__large_ids_are_compared_as_unsigned),
        RUN(test_feeder__data_and_control_dependencies_are_chosen),
        RUN(test_feeder__a_parent_named_often_is_one_parent),
        RUN(test_feeder__nothing_is_ready_until_something_finishes),
        RUN(test_feeder__a_node_put_back_comes_again_in_its_place),
        RUN(test_feeder__misuse_is_an_error_and_changes_nothing),
        RUN(test_feeder__an_empty_trace_is_done_at_once),
        RUN(test_feeder__by_index_it_is_the_same_order),
        RUN(test_feeder__a_cycle_is_shown_as_a_path),
        RUN(test_feeder__a_cycle_may_run_through_both_kinds_of_dependency),
        RUN(test_feeder__a_node_that_waits_for_itself_is_a_cycle),
        RUN(test_feeder__a_long_cycle_is_cut_in_the_middle),
        RUN(test_feeder__a_missing_parent_is_named),
        RUN(test_feeder__only_the_dependencies_that_count_must_be_there),
        RUN(test_feeder__a_duplicate_id_is_named),
        RUN(test_feeder__a_window_that_holds_everything_changes_nothing),
        RUN(test_feeder__a_small_window_feeds_every_trace_whose_parents_come_first),
        RUN(test_feeder__a_window_remembers_ids_however_far_apart_they_are),
        RUN(test_feeder__a_parent_may_come_later_within_the_window),
        RUN(test_feeder__a_window_finds_cycles_missing_parents_and_duplicates),
        RUN(test_feeder__a_window_counts_the_dependencies_that_were_chosen),
        RUN(test_feeder__damage_in_the_middle_comes_up_when_it_is_read),
        RUN(test_feeder__a_packed_stream_that_is_cut_feeds_what_is_there),
        RUN(test_feeder__a_window_is_misused_in_the_same_ways),
        RUN(test_feeder__a_window_over_a_file_of_metadata_is_done_at_once),
    };
    return RUN_ALL(tests);
}
