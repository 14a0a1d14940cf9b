/* SPDX-License-Identifier: Apache-2.0 */
/* test_scan_draft.c - a node that is appended is noted from its draft; what its record says must be
 * the same. */
#include "check.h"

#include "base/rng.h"
#include "trace/trace_impl.h"

enum { CASES = 20000, MOST_ATTRS = 6, MOST_DEPS = 4 };

static uint64_t seed = 1;

static uint64_t up_to(uint64_t n)
{
    return orr_splitmix64(&seed) % n;
}

static const char *const names[] = {
    "comm_size", "comm_src",    "comm_dst",   "comm_tag",  "comm_priority",
    "num_ops",   "tensor_size", "tensor_loc", "is_cpu_op", "comm_type",
    "pg_name",   "other",       "",           "\xc3\xa9",  "\xff"};
static const uint64_t numbers[] = {0, 1, 2, 127, 128, INT32_MAX, UINT32_MAX, INT64_MAX, UINT64_MAX};

static orr_attr random_attr(void)
{
    orr_attr a = {.name = orr_str_of(names[up_to(sizeof names / sizeof *names)]),
                  .kind = (orr_value_kind)(1 + up_to(14))};
    if (up_to(20) == 0)
        a.doc = orr_str_of("doc");
    if (a.kind == ORR_VALUE_STRING || a.kind == ORR_VALUE_BYTES)
        a.value.s = orr_str_of(names[up_to(sizeof names / sizeof *names)]);
    else if (a.kind == ORR_VALUE_BOOL)
        a.value.u = up_to(2);
    else if (a.kind == ORR_VALUE_FLOAT || a.kind == ORR_VALUE_DOUBLE)
        a.value.d = 0.5;
    else
        a.value.u = numbers[up_to(sizeof numbers / sizeof *numbers)];
    return a;
}

static void check_equal_text(orr_str a, orr_str b)
{
    CHECK_EQ_U(a.len, b.len);
    CHECK(a.len == 0 || memcmp(a.ptr, b.ptr, a.len) == 0);
}

static void check_equal(const orr__scan *a, const orr__scan *b)
{
    CHECK_EQ_U(a->node.id, b->node.id);
    check_equal_text(a->node.name, b->node.name);
    CHECK_EQ_U(a->node.type, b->node.type);
    CHECK_EQ_U(a->node.start_us, b->node.start_us);
    CHECK_EQ_U(a->node.duration_us, b->node.duration_us);
    CHECK_EQ_U(a->present, b->present);
    for (unsigned k = 0; k < ORR__COLUMNS; k++)
        if ((a->present >> k & 1) && k != ORR__ATTR_PG_NAME)
            CHECK(a->known[k] == b->known[k]);
    if (a->present >> ORR__ATTR_PG_NAME & 1)
        check_equal_text(a->pg_name, b->pg_name);
    CHECK_EQ_U(a->data_count, b->data_count);
    CHECK_EQ_U(a->ctrl_count, b->ctrl_count);
    for (size_t i = 0; i < a->data_count; i++)
        CHECK_EQ_U(a->data[i], b->data[i]);
    for (size_t i = 0; i < a->ctrl_count; i++)
        CHECK_EQ_U(a->ctrl[i], b->ctrl[i]);
}

/* Every draft that is noted without its record has one that is sound, and says the same. */
TEST(test_scan_draft__a_draft_says_what_its_record_says)
{
    orr__scan from_draft = {0}, from_record = {0};
    orr_buf b = {0};
    size_t noted = 0;
    for (int i = 0; i < CASES; i++) {
        orr_attr attrs[MOST_ATTRS];
        uint64_t deps[2][MOST_DEPS];
        orr_draft d = {.id = numbers[up_to(9)],
                       .name = orr_str_of(names[up_to(sizeof names / sizeof *names)]),
                       .type = (uint32_t)up_to(ORR_NODE_TYPE_COUNT + 1),
                       .data_deps = deps[0],
                       .ctrl_deps = deps[1],
                       .data_count = up_to(MOST_DEPS + 1),
                       .ctrl_count = up_to(MOST_DEPS + 1),
                       .start_us = numbers[up_to(9)],
                       .duration_us = numbers[up_to(9)],
                       .attrs = attrs,
                       .attr_count = up_to(MOST_ATTRS + 1)};
        for (size_t k = 0; k < MOST_ATTRS; k++)
            attrs[k] = random_attr();
        for (size_t k = 0; k < 2 * MOST_DEPS; k++)
            deps[k % 2][k / 2] = numbers[up_to(9)];
        if (!orr__scan_draft(&from_draft, &d))
            continue;
        noted++;
        CHECK(orr__scan_draft_deps(&from_draft, &d));
        b.len = 0;
        orr__encode_node(&b, &d);
        CHECK(orr__scan_node(&from_record, (orr_span){b.ptr, b.len}));
        check_equal(&from_draft, &from_record);
    }
    CHECK(noted > CASES / 20);
    orr__scan_fini(&from_draft);
    orr__scan_fini(&from_record);
    orr_buf_fini(&b);
}

int main(void)
{
    const CMUnitTest tests[] = {
        RUN(test_scan_draft__a_draft_says_what_its_record_says),
    };
    return RUN_ALL(tests);
}
