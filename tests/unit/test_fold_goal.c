/* SPDX-License-Identifier: Apache-2.0 */
/* test_fold_goal.c - a schedule whose ranks do the same gives the results of every rank simulated.
 *
 * Schedules are drawn by number: what a rank does, with peers given as distances (around a ring, by
 * bits, or within blocks), messages that wait for their receivers, wildcards, several CPUs and
 * NICs, and figures so small that much happens in one tick.  In some, one rank differs.  Each is
 * run with LGS_FOLD_VERIFY, which compares every clock.  FOLD_SEEDS=1000-9000 draws others,
 * FOLD_WHY=1 says what became of each. */
#include "check.h"
#include "draw.h"

#include "run/loggops/loggops.h"

#include <stdlib.h>

static orr_error err;

typedef struct drawing {
    uint64_t state;
    uint32_t ranks, block; /* peers are within blocks of so many ranks */
    bool is_xor;
} drawing;

static uint32_t peer_of(const drawing *d, uint32_t rank, uint32_t distance, bool is_send)
{
    const uint32_t at = rank % d->block, first = rank - at;
    return first + (d->is_xor ? at ^ distance
                    : is_send ? (at + distance) % d->block
                              : (at + d->block - distance) % d->block);
}

enum { MOST_OPS = 64 };

typedef struct template_op {
    orr_goal_op op; /* peer: a distance */
    uint32_t deps[2], dep_count;
    bool on_start;
} template_op;

/* Sends and receives come in pairs, so that most schedules end. */
static uint32_t draw_ops(drawing *d, template_op *ops)
{
    const uint32_t pairs = 1 + below(d, 10), cpus = 1 + below(d, 2), nics = 1 + below(d, 2);
    static const uint64_t sizes[] = {1, 8, 100, 1000};
    uint32_t count = 0;
    for (uint32_t i = 0; i < pairs; i++) {
        const uint32_t distance = 1 + below(d, d->block - 1), tag = below(d, 3);
        const uint64_t size = sizes[below(d, 4)];
        const bool is_wild = chance(d, 5);
        for (uint32_t k = 0; k < 3; k++) {
            if (k == 2 && chance(d, 40))
                continue;
            template_op *t = &ops[count];
            *t = (template_op){.op = {.kind = k == 0   ? ORR_GOAL_SEND
                                              : k == 1 ? ORR_GOAL_RECV
                                                       : ORR_GOAL_CALC,
                                      .size = k == 2 ? below(d, 3) * 50 : size,
                                      .peer = k == 2              ? 0
                                              : k == 1 && is_wild ? ORR_GOAL_ANY
                                                                  : distance,
                                      .tag = k == 2 ? 0 : tag,
                                      .cpu = (uint8_t)below(d, cpus),
                                      .nic = k == 2 ? 0 : (uint8_t)below(d, nics)}};
            for (uint32_t j = 0; j < 2 && count && k != 1; j++)
                if (chance(d, 50))
                    t->deps[t->dep_count++] = below(d, count);
            if (t->dep_count == 2 && t->deps[0] == t->deps[1])
                t->dep_count = 1;
            t->on_start = chance(d, 20);
            count++;
        }
    }
    return count;
}

static orr_goal *draw_goal(drawing *d)
{
    template_op ops[MOST_OPS];
    orr_goal *g;
    const uint32_t count = draw_ops(d, ops), odd = chance(d, 20) ? below(d, d->ranks) : UINT32_MAX;
    const uint32_t changed = below(d, count);
    CHECK(count <= MOST_OPS);
    CHECK_OK(orr_goal_create(d->ranks, &g, &err), &err);
    for (uint32_t r = 0; r < d->ranks; r++) {
        CHECK_OK(orr_goal_begin_rank(g, &err), &err);
        for (uint32_t i = 0; i < count; i++) {
            orr_goal_op op = ops[i].op;
            if (op.kind != ORR_GOAL_CALC && op.peer != ORR_GOAL_ANY)
                op.peer = peer_of(d, r, op.peer, op.kind == ORR_GOAL_SEND);
            if (op.kind == ORR_GOAL_CALC && r == odd && i == changed)
                op.size += 7;
            CHECK_OK(orr_goal_add(g, &op, NULL, &err), &err);
        }
        for (uint32_t i = 0; i < count; i++)
            for (uint32_t k = 0; k < ops[i].dep_count; k++)
                CHECK_OK(orr_goal_require(g, i, ops[i].deps[k],
                                          ops[i].on_start ? ORR_GOAL_STARTED : ORR_GOAL_FINISHED,
                                          &err),
                         &err);
        CHECK_OK(orr_goal_end_rank(g, &err), &err);
    }
    return g;
}

typedef struct counts {
    unsigned folded, whole, stuck;
} counts;

static void try_one(uint64_t number, counts *c)
{
    drawing d = {.state = number * 0x9e3779b97f4a7c15u + 1};
    below(&d, 2);
    d.is_xor = chance(&d, 30);
    d.block = d.is_xor ? 2u << below(&d, 4) : 2 + below(&d, 12);
    d.ranks = d.block * (1 + below(&d, 3));
    orr_goal *g = draw_goal(&d);
    const bool is_even = chance(&d, 30); /* much happens at once */
    lgs_options opt = {.L = is_even ? below(&d, 4) * 100 : 500 + below(&d, 5000),
                       .o = is_even ? below(&d, 3) * 50 : 100 + below(&d, 2000),
                       .g = is_even ? below(&d, 3) * 30 : 100 + below(&d, 2000),
                       .O = below(&d, 2),
                       .G = below(&d, 3) * 0.5,
                       .S = chance(&d, 50) ? 65535 : 50,
                       .fold = LGS_FOLD_VERIFY};
    lgs_sim *s;
    CHECK_OK(lgs_create(g, &opt, &s, &err), &err);
    const orr_code code = lgs_run(s, &err);
    if (code == ORR_EBUG)
        check_fail(__FILE__, __LINE__, "schedule %llu: %s", (unsigned long long)number,
                   err.message);
    if (getenv("FOLD_WHY"))
        fprintf(stderr, "schedule %llu: %s\n", (unsigned long long)number, lgs_fold_why(s));
    c->stuck += code != ORR_OK;
    c->folded += !code && strstr(lgs_fold_why(s), "verified") != NULL;
    c->whole += !code && strstr(lgs_fold_why(s), "verified") == NULL;
    lgs_destroy(s);
    orr_goal_free(g);
}

TEST(test_fold_goal__a_folded_schedule_is_exact)
{
    unsigned long long first = 1, last = 2000;
    const char *asked = getenv("FOLD_SEEDS");
    counts c = {0};
    if (asked)
        CHECK(sscanf(asked, "%llu-%llu", &first, &last) == 2);
    for (unsigned long long i = first; i <= last; i++)
        try_one(i, &c);
    fprintf(stderr, "# %u folded, %u with every rank, %u do not end\n", c.folded, c.whole, c.stuck);
    CHECK(c.folded * 4 > c.whole + c.folded); /* or nothing is tested */
}

int main(void)
{
    const CMUnitTest tests[] = {RUN(test_fold_goal__a_folded_schedule_is_exact)};
    return RUN_ALL(tests);
}
