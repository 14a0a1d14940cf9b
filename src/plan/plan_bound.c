/* SPDX-License-Identifier: Apache-2.0 */
/* plan_bound.c - a time that no run of a plan can beat. */
#include "search_impl.h"

orr_code search_bounds_create(orr_plan_search *s, orr_error *err)
{
    (void)s;
    (void)err;
    return ORR_OK;
}

void search_bounds_destroy(struct search_bounds *b)
{
    (void)b;
}

orr_code search_bound(orr_plan_search *s, search_candidate *c, orr_error *err)
{
    (void)err;
    c->bound_s =
        s->peak_flops > 0 ? s->flops / (orr_machine_devices(&s->machine) * s->peak_flops) : 0;
    return ORR_OK;
}
