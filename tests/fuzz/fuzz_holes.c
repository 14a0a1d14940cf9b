/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_holes.c - any bytes as the tables of holes and of groups of a set that is there; holes that are accepted
 * must fill every rank. */
#include "fuzz_trace.h"

#include "trace/set_impl.h"

enum { RANKS = 6 };

static orr_trace *make_body(uint32_t type, const char *peer)
{
    const orr_attr attrs[] = {
        {.name = orr_str_of("pg_name"), .kind = ORR_VALUE_STRING, .value.s = orr_str_of("7")},
        {.name = orr_str_of("comm_tag"), .kind = ORR_VALUE_INT32, .value.i = 1},
        {.name = orr_str_of(peer), .kind = ORR_VALUE_UINT64, .value.u = 2},
    };
    orr_trace *t;
    orr_error err;
    REQUIRE(orr_trace_create(NULL, &t, &err) == ORR_OK);
    for (uint64_t id = 1; id <= 3; id++) {
        const orr_draft d = {.id = id, .type = type, .attrs = attrs, .attr_count = 3};
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
        REQUIRE(orr_set_add_like(s, r % 2, 0, &err) == ORR_OK);
    return s;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    orr_set *s = make_set();
    const char *bad = NULL;
    orr_error err;
    REQUIRE(orr__groups_load(s, (orr_span){data, size}, &bad, &err) == ORR_OK);
    const orr_code code = orr__holes_load(s, (orr_span){data, size}, &bad, &err);
    REQUIRE(code == ORR_OK);
    for (uint32_t r = 0; r < RANKS && !bad; r++) {
        const orr_trace *t;
        orr_trace *owned;
        REQUIRE(orr_set_rank_trace(s, r, &t, &owned, &err) == ORR_OK);
        REQUIRE(orr_trace_columns(t)->count == 3);
        orr_trace_destroy(owned);
    }
    orr_set_close(s);
    return 0;
}
