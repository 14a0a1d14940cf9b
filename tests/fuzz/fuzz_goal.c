/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_goal.c - any bytes as a GOAL schedule, text or binary.  What is refused must have a place
 * and words; what is taken must be whole, become traces or words, and be simulated by all three
 * sets of rules. */
#include "run/loggops/loggops.h"
#include <orrery/lab/compat.h>
#include <orrery/lab/goal_traces.h>

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MOST_OPS = 400, MOST_RANKS = 40, MOST_PLACES = 40 };

static void require(bool condition)
{
    if (!condition)
        abort();
}

/* Every edge leads to an operation, and each operation knows how many lead to it. */
static void check_rank(const orr_goal *g, uint32_t rank)
{
    const uint32_t ops = orr_goal_ops(g, rank);
    uint64_t edges = 0, waits = 0;
    for (uint32_t i = 0; i < ops; i++) {
        const orr_goal_op op = orr_goal_get(g, rank, i);
        char words[96];
        require(op.kind >= ORR_GOAL_SEND && op.kind <= ORR_GOAL_CALC);
        require(orr_goal_op_text(&op, words, sizeof words)[0] != 0);
        waits += orr_goal_pending(g, rank, i);
        for (int kind = 0; kind < 2; kind++) {
            uint32_t count;
            const uint32_t *then = orr_goal_successors(g, rank, i, (orr_goal_edge)kind, &count);
            for (uint32_t k = 0; k < count; k++)
                require(then[k] < ops);
            edges += count;
        }
    }
    require(edges == waits);
}

static void simulate(const orr_goal *g, const char *compat, uint32_t S)
{
    lgs_options opt = lgs_defaults();
    orr_error err;
    lgs_sim *s;
    const orr_compat *old = NULL;
    require(!compat || orr_compat_find(ORR_RULES_LOGGOPS, compat, &old, &err) == ORR_OK);
    opt.rules = old ? old->loggops : NULL;
    opt.S = S;
    opt.keeps_spans = opt.keeps_pairs = opt.keeps_queues = S != 0;
    orr_code code = lgs_create(g, &opt, &s, &err);
    if (code) {
        require(code == ORR_EINPUT && err.message[0]);
        return;
    }
    code = lgs_run(s, &err);
    require(code == ORR_OK || (code == ORR_EINPUT && err.message[0]));
    require(compat || !code == !lgs_stall_line(s, 0));
    lgs_destroy(s);
}

static void use(const orr_goal *g)
{
    const orr_goal_totals t = orr_goal_count(g);
    orr_error err;
    orr_set *set;
    for (uint32_t r = 0; r < orr_goal_ranks(g); r++)
        check_rank(g, r);
    if (t.sends + t.recvs + t.calcs > MOST_OPS || orr_goal_ranks(g) > MOST_RANKS ||
        t.cpus * t.nics > MOST_PLACES)
        return;
    static const char *const rules[] = {NULL, "lgs2023", "atlahs"};
    for (int i = 0; i < 3; i++) {
        simulate(g, rules[i], 65535);
        simulate(g, rules[i], 0);
    }
    if (orr_goal_traces(g, "input", &set, &err) == ORR_OK)
        orr_set_close(set);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    orr_goal_remarks remarks;
    orr_goal *g;
    orr_error err;
    const orr_code code = orr_goal_parse((orr_span){data, size}, "x.goal", &remarks, &g, &err);
    require(!code == (g != NULL));
    if (code) {
        require(code == ORR_EINPUT && err.message[0]);
        require(err.where.line ? err.where.column != 0 : err.where.byte <= size);
        return 0;
    }
    use(g);
    orr_goal_free(g);
    return 0;
}
