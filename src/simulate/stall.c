/* SPDX-License-Identifier: Apache-2.0 */
/* stall.c - when nothing can happen any more and ranks have not finished: who waits where. */
#include "sim_impl.h"

#include <inttypes.h>

orr_code orr__explain_stall(orr_sim *s, orr_error *err)
{
    for (uint32_t r = 0; r < s->npu_count; r++) {
        const orr__npu *n = &s->npus[r];
        if (n->result.finished_at != ORR_NEVER)
            continue;
        const uint32_t place = n->occupant[ORR__SLOT_COMM] != ORR__NONE
                                   ? n->occupant[ORR__SLOT_COMM]
                                   : n->occupant[ORR__SLOT_COMP];
        if (place != ORR__NONE)
            return orr_fail(
                err, ORR_EINPUT, NULL,
                "deadlock: %u of %u ranks have not finished; rank %u waits in node %" PRIu64,
                s->npu_count - s->finished, s->npu_count, r,
                n->graph->t->id[n->graph->node[place]]);
    }
    return orr_fail(err, ORR_EINPUT, NULL, "deadlock: %u of %u ranks have not finished",
                    s->npu_count - s->finished, s->npu_count);
}

void orr__stall_destroy(struct orr__stall *stall)
{
    (void)stall;
}
