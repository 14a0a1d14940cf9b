/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_dot.c - any bytes as a task graph in the DOT language.  What is refused must have a place
 * and words; what is taken must become traces, whose dependencies lead nowhere else by our
 * rules. */
#include <orrery/lab/compat.h>
#include <orrery/lab/flexflow.h>

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition)
{
    if (!condition)
        abort();
}

static void expand(const orr_flexflow *g, const orr_rules_flexflow *rules)
{
    const orr_flexflow_expand opt = {.mhz = 1000, .rules = rules};
    orr_error err;
    orr_set *s;
    const orr_code code = orr_flexflow_set(g, &opt, &s, &err);
    require(!code == (s != NULL));
    if (code) {
        require(code == ORR_EINPUT && err.message[0]);
        return;
    }
    for (uint32_t r = 0; r < orr_set_rank_count(s); r++) {
        const orr_columns *c = orr_trace_columns(orr_set_trace(s, orr_set_class_of(s, r)));
        require(c->is_ascending && c->count > 0 && (rules || c->data_missing == 0));
        require(!rules || r == 0 || orr_flexflow_device(g, r) > orr_flexflow_device(g, r - 1));
    }
    orr_set_close(s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    orr_flexflow *g;
    orr_error err;
    const orr_code code = orr_flexflow_parse((orr_span){data, size}, "g.dot", &g, &err);
    require(!code == (g != NULL));
    if (code) {
        require(code == ORR_EINPUT && err.message[0] && err.where.line && err.where.column);
        return 0;
    }
    expand(g, NULL);
    const orr_compat *old = orr_compat_at(ORR_RULES_FLEXFLOW, 0);
    if (old)
        expand(g, old->flexflow);
    orr_flexflow_free(g);
    return 0;
}
