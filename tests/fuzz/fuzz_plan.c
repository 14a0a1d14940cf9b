/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_plan.c - any bytes as a plan of a collective, XML or JSON.  One that is accepted gives
 * programs in which every message has both its ends, with the same size. */
#include "models/collective/coll_plan.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition)
{
    if (!condition)
        abort();
}

static void count_ends(const coll_plan *p, const coll_program *g, uint64_t bytes)
{
    uint64_t *sent = orr_alloc((size_t)g->messages + 1, sizeof *sent);
    uint64_t *got = orr_alloc((size_t)g->messages + 1, sizeof *got);
    require(sent && got);
    for (uint32_t r = 0; r < coll_plan_ranks(p); r++)
        for (uint32_t i = 0; i < g->ranks[r].count; i++) {
            const coll_step *s = &g->ranks[r].steps[i];
            require(s->peer < coll_plan_ranks(p) || s->kind > COLL_STEP_RECV);
            if (s->kind == COLL_STEP_SEND)
                sent[s->message] += coll_step_bytes(p, s, bytes);
            else if (s->kind == COLL_STEP_RECV)
                got[s->message] += coll_step_bytes(p, s, bytes);
        }
    for (uint32_t m = 0; m < g->messages; m++)
        require(sent[m] && sent[m] == got[m]);
    orr_free(sent);
    orr_free(got);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const uint64_t bytes[] = {0, 1, 1000003};
    coll_plan *p;
    const coll_program *g;
    orr_error err;
    if (coll_plan_parse((orr_span){data, size}, "plan", &p, &err)) {
        require(err.message[0] && err.where.path[0]);
        return 0;
    }
    for (size_t i = 0; i < sizeof bytes / sizeof *bytes; i++)
        if (coll_plan_program(p, bytes[i], 1 + (uint32_t)i, &g, &err) == ORR_OK)
            count_ends(p, g, bytes[i]);
    coll_plan_destroy(p);
    return 0;
}
