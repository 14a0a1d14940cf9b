/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_holes.c - any bytes as the tables of holes and of groups of a set that is there; holes that
 * are accepted must fill every rank, and the set must have the findings and figures of its ranks as
 * plain traces. */
#include "fuzz_trace.h"

#include "trace/set_impl.h"

enum { RANKS = 6 };

static orr_trace *make_body(uint32_t type, const char *peer)
{
    const orr_attr attrs[] = {
        {.name = orr_str_of("pg_name"), .kind = ORR_VALUE_STRING, .value.s = orr_str_of("7")},
        {.name = orr_str_of("comm_tag"), .kind = ORR_VALUE_INT32, .value.i = 1},
        {.name = orr_str_of(peer), .kind = ORR_VALUE_UINT64, .value.u = 2},
        {.name = orr_str_of("comm_type"), .kind = ORR_VALUE_INT64, .value.i = ORR_COLL_ALL_GATHER},
        {.name = orr_str_of("comm_size"), .kind = ORR_VALUE_INT64, .value.i = 64},
    };
    orr_trace *t;
    orr_error err;
    REQUIRE(orr_trace_create(NULL, &t, &err) == ORR_OK);
    for (uint64_t id = 1; id <= 3; id++) {
        const orr_draft d = {
            .id = id, .type = id == 2 ? ORR_NODE_COMM_COLL : type, .attrs = attrs, .attr_count = 5};
        REQUIRE(orr_trace_append(t, &d, &err) == ORR_OK);
    }
    REQUIRE(orr_trace_seal(t, &err) == ORR_OK);
    return t;
}

static orr_set *make_set(void)
{
    orr_set *s;
    orr_error err;
    REQUIRE(orr_set_create(&s, &err) == ORR_OK);
    REQUIRE(orr_set_add(s, make_body(ORR_NODE_COMM_SEND, "comm_dst"), &err) == ORR_OK);
    REQUIRE(orr_set_add(s, make_body(ORR_NODE_COMM_RECV, "comm_src"), &err) == ORR_OK);
    for (uint32_t r = 2; r < RANKS; r++)
        REQUIRE(orr_set_add_rank(s, r % 2, 0, &err) == ORR_OK);
    return s;
}

static orr_set *make_plain(const orr_set *s)
{
    orr_set *plain;
    orr_error err;
    REQUIRE(orr_set_create(&plain, &err) == ORR_OK);
    for (uint32_t r = 0; r < RANKS; r++) {
        const orr_trace *t;
        orr_trace *owned;
        REQUIRE(orr_set_rank_trace(s, r, &t, &owned, &err) == ORR_OK);
        REQUIRE(orr_trace_columns(t)->count == 3);
        if (!owned)
            REQUIRE(orr__class_trace(&s->classes[orr_set_class_of(s, r)], NULL, &owned, &err) ==
                    ORR_OK);
        REQUIRE(orr_set_add(plain, owned, &err) == ORR_OK);
    }
    return plain;
}

/* Equal ranks share what is said about their own numbers and their messages, and some of it is not
 * said twice. */
static bool is_about_one(int kind)
{
    return kind == ORR_CHECK_OWN_RANK || kind > ORR_CHECK_UNEVEN_SIZE;
}

static void compare_checks(const orr_set *s, const orr_set *plain)
{
    const orr_check_options opt = {.size = sizeof opt, .threads = 1};
    orr_check_report *a, *b;
    orr_error err;
    REQUIRE(orr_check_set(s, &opt, &a, &err) == ORR_OK);
    REQUIRE(orr_check_set(plain, &opt, &b, &err) == ORR_OK);
    for (int kind = 0; kind < ORR_CHECK_KIND_COUNT; kind++)
        REQUIRE(is_about_one(kind) || (a->count[kind] != 0) == (b->count[kind] != 0));
    REQUIRE(a->node_count == b->node_count);
    orr_check_report_destroy(a);
    orr_check_report_destroy(b);
}

/* All that stands behind the head, which has hashes and numbers of classes. */
static orr_str figures_of(const orr_set *s, orr_info **info)
{
    orr_error err;
    orr_str text;
    REQUIRE(orr_info_create(s, NULL, info, &err) == ORR_OK);
    REQUIRE(orr_info_json(*info, &text, &err) == ORR_OK);
    const char *from = memmem(text.ptr, text.len, "\n  \"nodes\":", 11);
    REQUIRE(from != NULL);
    return (orr_str){from, (size_t)(text.ptr + text.len - from)};
}

static void compare_figures(const orr_set *s, const orr_set *plain)
{
    orr_info *x, *y;
    const orr_str a = figures_of(s, &x), b = figures_of(plain, &y);
    REQUIRE(a.len == b.len && memcmp(a.ptr, b.ptr, a.len) == 0);
    orr_info_destroy(x);
    orr_info_destroy(y);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    orr_set *s = make_set();
    const char *bad = NULL;
    orr_error err;
    REQUIRE(orr__groups_load(s, (orr_span){data, size}, &bad, &err) == ORR_OK);
    const orr_code code = orr__holes_load(s, (orr_span){data, size}, &bad, &err);
    REQUIRE(code == ORR_OK);
    if (!bad) {
        orr_set *plain = make_plain(s);
        compare_checks(s, plain);
        compare_figures(s, plain);
        orr_set_close(plain);
    }
    orr_set_close(s);
    return 0;
}
