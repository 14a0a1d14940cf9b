/* SPDX-License-Identifier: Apache-2.0 */
/* test_check_holes.c - what is found in a set with holes is what is found in the same ranks as
 * plain traces. */
#include "holes_make.h"

#include <orrery/check.h>

enum { SETS = 1500 };

static orr_check_report *check_set(const orr_set *s)
{
    const orr_check_options all = {.size = sizeof all, .limit = 1u << 20, .threads = 1};
    orr_check_report *r;
    CHECK_OK(orr_check_set(s, &all, &r, &err), &err);
    return r;
}

/* ---- comparing two reports ---- */

static void show(const char *what, const orr_check_report *r)
{
    orr_str text;
    const orr_check_style style = {.size = sizeof style, .input = what};
    orr_error ignored;
    if (orr_check_text(r, &style, &text, &ignored) == ORR_OK)
        print_error("%s\n", text.ptr);
}

static bool is_same_text(const orr_finding *a, const orr_finding *b)
{
    /* Of several ranks with odd values of their own, one is named. */
    const char *end = strstr(a->text, "; other ranks have other invalid values");
    const size_t len = end ? (size_t)(end - a->text) : strlen(a->text);
    return strlen(b->text) == len && memcmp(a->text, b->text, len) == 0;
}

/* The id in the body: what is added to it depends on the rank. */
static uint64_t body_id(const orr_set *s, const orr_finding *f)
{
    return f->has_node ? f->node - orr_set_id_shift(s, f->rank) : 0;
}

static bool is_same(const orr_finding *a, const orr_finding *b, bool any_rank)
{
    return a->kind == b->kind && a->has_node == b->has_node && a->node == b->node &&
           (any_rank || a->rank == b->rank) && is_same_text(a, b);
}

static bool has_finding(const orr_check_report *r, const orr_finding *f, bool any_rank)
{
    for (size_t i = 0; i < r->finding_count; i++)
        if (is_same(f, &r->findings[i], any_rank))
            return true;
    return false;
}

/* How many ranks have a finding of this kind at this node. */
static uint64_t weight_of(const orr_set *s, const orr_check_report *r, const orr_finding *like)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < r->finding_count; i++) {
        const orr_finding *f = &r->findings[i];
        if (f->kind == like->kind && f->has_node == like->has_node &&
            body_id(s, f) == body_id(s, like))
            sum += f->rank_count;
    }
    return sum;
}

/* Which of several equal collectives runs first depends on who comes first: where ranks are run one
 * by one, there may be a choice that is none when equals are run together, and the other way
 * round.  Then nothing is claimed. */
static bool has_choice(const orr_check_report *r)
{
    for (size_t i = 0; i < r->finding_count; i++)
        if (strstr(r->findings[i].text, "the order of collectives is not compared"))
            return true;
    return false;
}

static bool is_about_order(const orr_finding *f)
{
    return f->kind == ORR_CHECK_COLLECTIVE_ORDER ||
           strstr(f->text, "the order of collectives is not compared");
}

static bool has_same_order(const orr_check_report *a, const orr_check_report *b)
{
    return has_choice(a) || has_choice(b) ||
           a->count[ORR_CHECK_COLLECTIVE_ORDER] == b->count[ORR_CHECK_COLLECTIVE_ORDER];
}

/* Every finding of a set in which no two ranks are equal is in the other, with the same words, and
 * as many ranks have it. */
static bool are_alike(const orr_set *s,
                      const orr_check_report *holed,
                      const orr_check_report *plain)
{
    const bool has_order = !has_choice(holed) && !has_choice(plain);
    if (holed->node_count != plain->node_count || !has_same_order(holed, plain))
        return false;
    for (size_t i = 0; i < holed->finding_count; i++) {
        const orr_finding *f = &holed->findings[i];
        if ((has_order || !is_about_order(f)) &&
            (!has_finding(plain, f, false) || weight_of(s, plain, f) != weight_of(s, holed, f)))
            return false;
    }
    for (size_t i = 0; i < plain->finding_count; i++) {
        const orr_finding *f = &plain->findings[i];
        const bool is_there = f->kind == ORR_CHECK_NOT_COMPARED ? has_finding(holed, f, true)
                                                                : weight_of(s, holed, f) != 0;
        if ((has_order || !is_about_order(f)) && !is_there)
            return false;
    }
    return true;
}

/* A number that is the same in equal ranks is right for at most one of them, which is not counted
 * when ranks are looked at one by one; what is said about a message of one of them is not said
 * again for the others. */
static bool may_be_more(int kind)
{
    return kind == ORR_CHECK_OWN_RANK || kind == ORR_CHECK_UNMATCHED_SEND ||
           kind == ORR_CHECK_UNMATCHED_RECV || kind == ORR_CHECK_MESSAGE_TAG ||
           kind == ORR_CHECK_MESSAGE_SIZE;
}

static bool has_all_kinds(const orr_check_report *holed, const orr_check_report *plain)
{
    for (int kind = 0; kind < ORR_CHECK_COLLECTIVE_ORDER; kind++)
        if (!may_be_more(kind) && (holed->count[kind] != 0) != (plain->count[kind] != 0))
            return false;
    for (int kind = ORR_CHECK_UNMATCHED_SEND; kind < ORR_CHECK_NOT_COMPARED; kind++)
        if (plain->count[kind] && !holed->count[kind])
            return false;
    return has_same_order(holed, plain);
}

typedef struct tally {
    uint64_t clean, order, collectives, messages, attributes;
} tally;

static void count(tally *t, const orr_check_report *r)
{
    t->clean += r->errors + r->warnings == 0;
    t->order += r->count[ORR_CHECK_COLLECTIVE_ORDER] != 0;
    t->collectives += r->count[ORR_CHECK_COLLECTIVE_COUNT] || r->count[ORR_CHECK_COLLECTIVE_SIZE];
    t->messages += r->count[ORR_CHECK_MESSAGE_SIZE] || r->count[ORR_CHECK_UNMATCHED_SEND] ||
                   r->count[ORR_CHECK_MESSAGE_TAG];
    t->attributes += r->count[ORR_CHECK_OWN_RANK] || r->count[ORR_CHECK_PEER_RANGE];
}

static void compare_sets(uint64_t seed, unsigned wildness, bool is_labelled, tally *t)
{
    orr_set *s = make_random_set(seed, wildness, is_labelled), *plain = make_plain_copy(s);
    orr_check_report *a = check_set(s), *b = check_set(plain);
    if (!(is_labelled ? are_alike(s, a, b) : has_all_kinds(a, b))) {
        show("with holes", a);
        show("plain", b);
        check_fail(__FILE__, __LINE__, "seed %llu, one in %u: reports differ",
                   (unsigned long long)seed, wildness);
    }
    count(t, a);
    orr_check_report_destroy(a);
    orr_check_report_destroy(b);
    orr_set_close(s);
    orr_set_close(plain);
}

static void compare_many(bool is_labelled)
{
    static const unsigned wildness[] = {0, 200, 60, 20, 6};
    tally t = {0};
    for (uint64_t seed = 0; seed < SETS; seed++)
        compare_sets(seed, wildness[seed % 5], is_labelled, &t);
    /* Of everything there is enough to mean something. */
    CHECK(t.clean > SETS / 10 && t.collectives > SETS / 50 && t.messages > SETS / 50);
    CHECK(t.attributes > SETS / 50 && t.order > SETS / 300);
}

TEST(test_check_holes__finds_what_is_found_in_plain_ranks)
{
    compare_many(true);
}

TEST(test_check_holes__finds_the_same_kinds_where_ranks_are_equal)
{
    compare_many(false);
}

/* ---- by hand ---- */

/* A set of one class: two collectives, then a message from each rank to the next. */
enum { OWN_FIRST, OWN_SECOND, OWN_NEXT, OWN_BEFORE, OWN_COUNT };

static orr_set *make_ring(uint32_t ranks)
{
    const orr_attr coll[] = {
        attr_of("comm_type", ORR_COLL_ALL_REDUCE),
        attr_of("comm_size", 64),
        {.name = orr_str_of("pg_name"), .kind = ORR_VALUE_STRING, .value.s = orr_str_of("1")}};
    const orr_attr send[] = {attr_of("comm_dst", 0), attr_of("comm_size", 8)};
    const orr_attr recv[] = {attr_of("comm_src", 0), attr_of("comm_size", 8)};
    const orr_hole holes[] = {{0, ORR_HOLE_PG_NAME, OWN_FIRST},
                              {1, ORR_HOLE_PG_NAME, OWN_SECOND},
                              {2, ORR_HOLE_COMM_DST, OWN_NEXT},
                              {3, ORR_HOLE_COMM_SRC, OWN_BEFORE}};
    const struct {
        uint32_t type;
        const orr_attr *attrs;
        size_t count;
    } nodes[] = {{ORR_NODE_COMM_COLL, coll, 3},
                 {ORR_NODE_COMM_COLL, coll, 3},
                 {ORR_NODE_COMM_SEND, send, 2},
                 {ORR_NODE_COMM_RECV, recv, 2}};
    orr_set *s;
    orr_trace *t = new_trace();
    uint32_t k;
    for (uint64_t i = 0; i < 4; i++) {
        const orr_draft d = {.id = i + 1,
                             .name = orr_str_of("n"),
                             .type = nodes[i].type,
                             .data_deps = &i,
                             .data_count = i != 0,
                             .attrs = nodes[i].attrs,
                             .attr_count = nodes[i].count};
        CHECK_OK(orr_trace_append(t, &d, &err), &err);
    }
    seal(t);
    CHECK_OK(orr_set_create(&s, &err), &err);
    CHECK_OK(orr_set_add_class(s, t, holes, 4, OWN_COUNT, &k, &err), &err);
    for (uint32_t r = 0; r < ranks; r++) {
        const int64_t values[OWN_COUNT] = {[OWN_FIRST] = 1 + r / 2,
                                           [OWN_SECOND] = 1000000,
                                           [OWN_NEXT] = (r + 1) % ranks,
                                           [OWN_BEFORE] = (r + ranks - 1) % ranks};
        CHECK_OK(orr_set_add_rank_values(s, k, 0, values, &err), &err);
    }
    return s;
}

static void set_value(orr_set *s, uint32_t rank, uint32_t slot, int64_t v)
{
    s->values[s->ranks[rank].values_at + slot] = v;
}

/* So many findings of a kind; the first names this rank, stands for so many and says this. */
static void check_first(const orr_check_report *r,
                        orr_check_kind kind,
                        uint64_t findings,
                        uint32_t rank,
                        uint32_t rank_count,
                        const char *text)
{
    CHECK_EQ_U(r->count[kind], findings);
    for (size_t i = 0; i < r->finding_count; i++) {
        const orr_finding *f = &r->findings[i];
        if (f->kind != kind)
            continue;
        CHECK_EQ_U(f->rank, rank);
        CHECK_EQ_U(f->rank_count, rank_count);
        CHECK_TEXT(f->text, text);
        return;
    }
    CHECK(false);
}

TEST(test_check_holes__many_ranks_are_sound)
{
    orr_set *s = make_ring(32768);
    orr_check_report *r = check_set(s);
    CHECK_EQ_U(r->finding_count, 0);
    CHECK_EQ_U(r->node_count, 4 * 32768);
    orr_check_report_destroy(r);
    orr_set_close(s);
}

TEST(test_check_holes__one_wrong_value_among_many_is_found)
{
    orr_set *s = make_ring(32768);
    set_value(s, 777, OWN_NEXT, 779); /* and not 778 */
    orr_check_report *r = check_set(s);
    CHECK_EQ_U(r->errors, 2);
    check_first(r, ORR_CHECK_UNMATCHED_SEND, 1, 777, 1,
                "sends 1 message to rank 779 with tag 0, which receives 0");
    check_first(r, ORR_CHECK_UNMATCHED_RECV, 1, 778, 1,
                "waits for 1 message from rank 777 with tag 0, which sends 0");
    orr_check_report_destroy(r);
    set_value(s, 777, OWN_NEXT, 32768);
    set_value(s, 800, OWN_NEXT, 40000);
    r = check_set(s);
    check_first(
        r, ORR_CHECK_PEER_RANGE, 1, 777, 2,
        "comm_dst is 32768: the ranks are 0 to 32767; other ranks have other invalid values");
    orr_check_report_destroy(r);
    orr_set_close(s);
}

/* Rank 5 has one group in both its slots: what it runs there is two collectives. */
TEST(test_check_holes__two_values_that_coincide_are_one_group)
{
    orr_set *s = make_ring(8);
    set_value(s, 5, OWN_SECOND, 3); /* the group of ranks 4 and 5 */
    orr_check_report *r = check_set(s);
    check_first(
        r, ORR_CHECK_COLLECTIVE_COUNT, 1, 5, 1,
        "group \"3\": 2 collectives here, 1 on rank 4; ALL_REDUCE of 64 bytes (node 2 \"n\") "
        "has no counterpart there");
    orr_check_report_destroy(r);
    orr_set_close(s);
}

/* Group 10 + i joins ranks i and i + 1, and everybody is first in the one to its right. */
TEST(test_check_holes__a_cycle_of_groups_is_told_rank_by_rank)
{
    orr_set *s = make_ring(3);
    for (uint32_t r = 0; r < 3; r++) {
        set_value(s, r, OWN_FIRST, 10 + r);
        set_value(s, r, OWN_SECOND, 10 + (r + 2) % 3);
    }
    orr_check_report *r = check_set(s);
    check_first(r, ORR_CHECK_COLLECTIVE_ORDER, 1, 0, 1,
                "the order of collectives is a deadlock: "
                "rank 0 is in ALL_REDUCE of 64 bytes (node 1 \"n\") of group \"10\" and waits for "
                "rank 1; "
                "rank 1 is in ALL_REDUCE of 64 bytes (node 1 \"n\") of group \"11\" and waits for "
                "rank 2; "
                "rank 2 is in ALL_REDUCE of 64 bytes (node 1 \"n\") of group \"12\" and waits for "
                "rank 0");
    orr_check_report_destroy(r);
    orr_set_close(s);
}

/* The same on a line: the last rank has nobody to its right, so it begins, and all go on after
 * it. */
TEST(test_check_holes__a_chain_of_groups_has_an_order)
{
    enum { LENGTH = 300 }; /* longer than ranks are looked at for likeness */
    orr_set *s = make_ring(LENGTH);
    for (uint32_t r = 0; r < LENGTH; r++) {
        set_value(s, r, OWN_FIRST, 10 + r);
        set_value(s, r, OWN_SECOND, r ? 9 + r : 5);
    }
    orr_check_report *r = check_set(s);
    CHECK_EQ_U(r->finding_count, 0);
    orr_check_report_destroy(r);
    orr_set_close(s);
}

/* ---- repairing ---- */

static void fix(const char *from, const char *to)
{
    orr_check_report *changes;
    CHECK_OK(orr_check_fix(from, to,
                           &(orr_set_options){.size = sizeof(orr_set_options), .threads = 1}, NULL,
                           &changes, &err),
             &err);
    orr_check_report_destroy(changes);
}

/* Repaired as a set or as files, every rank gets the same bytes. */
TEST(test_check_holes__a_repaired_set_has_the_ranks_of_repaired_files)
{
    for (uint64_t seed = 0; seed < 40; seed++) {
        orr_set *s = make_random_set(seed, 4, true);
        const uint32_t ranks = orr_set_rank_count(s);
        orr_set_close(read_plain_copy(s));
        CHECK_OK(orr_set_save(s, "in.orr", NULL, &err), &err);
        orr_set_close(s);
        fix("plain", "fixed_plain");
        fix("in.orr", "fixed_holed");
        for (uint32_t r = 0; r < ranks; r++) {
            char a[32], b[32];
            snprintf(a, sizeof a, "fixed_plain.%u.et", r);
            snprintf(b, sizeof b, "fixed_holed.%u.et", r);
            orr_buf want = read_file(a);
            check_file(b, want.ptr, want.len);
            orr_buf_fini(&want);
        }
    }
}

TEST(test_check_holes__repairing_keeps_holes_and_groups)
{
    orr_set *s = make_ring(4), *fixed;
    const uint32_t members[] = {0, 1};
    int64_t v = 0;
    CHECK_OK(orr_set_add_group(s, 1, members, 2, &err), &err);
    CHECK_OK(orr_set_save(s, "ring.orr", NULL, &err), &err);
    orr_set_close(s);
    fix("ring.orr", "fixed.orr");
    CHECK_OK(orr_set_open("fixed.orr", NULL, &fixed, &err), &err);
    CHECK_EQ_U(orr_set_class_count(fixed), 1);
    CHECK_EQ_U(orr_set_slot_count(fixed, 0), OWN_COUNT);
    CHECK(orr_set_hole(fixed, 2, ORR_HOLE_COMM_DST, 2, &v));
    CHECK_EQ(v, 3);
    CHECK_EQ_U(orr_set_group_count(fixed), 1);
    CHECK_EQ_U(orr_set_group(fixed, 0).count, 2);
    orr_set_close(fixed);
}

/* A .orr of one rank, repaired into a file: its holes are filled and its ids shifted. */
TEST(test_check_holes__one_rank_is_repaired_into_a_file)
{
    orr_set *s = make_ring(1);
    orr_trace *t;
    s->ranks[0].id_shift = 1000;
    set_value(s, 0, OWN_NEXT, 77);
    CHECK_OK(orr_set_save(s, "one.orr", NULL, &err), &err);
    orr_set_close(s);
    fix("one.orr", "one.et");
    CHECK_OK(orr_trace_read("one.et", NULL, &t, &err), &err);
    CHECK_EQ(orr_trace_columns(t)->comm_dst[2], 77);
    CHECK_EQ_U(orr_trace_columns(t)->id[0], 1001);
    orr_trace_destroy(t);
}

int main(void)
{
    const CMUnitTest tests[] = {
        RUN(test_check_holes__finds_what_is_found_in_plain_ranks),
        RUN(test_check_holes__finds_the_same_kinds_where_ranks_are_equal),
        RUN(test_check_holes__many_ranks_are_sound),
        RUN(test_check_holes__one_wrong_value_among_many_is_found),
        RUN(test_check_holes__two_values_that_coincide_are_one_group),
        RUN(test_check_holes__a_cycle_of_groups_is_told_rank_by_rank),
        RUN(test_check_holes__a_chain_of_groups_has_an_order),
        RUN(test_check_holes__a_repaired_set_has_the_ranks_of_repaired_files),
        RUN(test_check_holes__repairing_keeps_holes_and_groups),
        RUN(test_check_holes__one_rank_is_repaired_into_a_file),
    };
    return RUN_ALL(tests);
}
