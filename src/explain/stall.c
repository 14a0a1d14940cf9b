/* SPDX-License-Identifier: Apache-2.0 */
/* stall.c - when nothing can happen any more and ranks have not finished: why.
 *
 * What waits is collected, what each of it waits for is worked out, and then it is followed to where it ends: in
 * a cause or in a circle.  docs/design/stall.md says how, and which causes there are.  All is done once, after
 * the clock has run empty; a run that ends well pays nothing. */
#include "run_facts.h"
#include "stall_impl.h"

static void free_scratch(struct orr__stall *st)
{
    orr_map_destroy(st->by_place);
    orr_map_destroy(st->by_stream);
    orr_map_destroy(st->by_tag);
    orr_map_destroy(st->starved);
    orr_map_destroy(st->resolved);
    orr_free(st->waits);
    orr_free(st->edges);
    st->by_place = st->by_stream = st->by_tag = st->starved = st->resolved = NULL;
    st->waits = NULL;
    st->edges = NULL;
}

void orr__stall_destroy(struct orr__stall *st)
{
    if (!st)
        return;
    free_scratch(st);
    orr_arena_destroy(st->arena);
    orr_free(st);
}

static struct orr__stall *analyse(orr_sim *s)
{
    struct orr__stall *st = orr_alloc(1, sizeof *st);
    if (!st)
        return NULL;
    st->sim = s;
    st->arena = orr_arena_create();
    if (st->arena && orr__stall_collect(st) && orr__stall_link_messages(st) &&
        orr__stall_link_streams(st) && orr__stall_find_causes(st) && orr__stall_make_items(st)) {
        free_scratch(st);
        return st;
    }
    orr__stall_destroy(st);
    return NULL;
}

const char *const *orr__stall_lines(orr_sim *s, size_t *count)
{
    const orr_stall *stall = orr_sim_stall(s);
    *count = stall ? stall->line_count : 0;
    return stall ? stall->lines : NULL;
}

const orr_stall *orr_sim_stall(orr_sim *s)
{
    uint64_t tick;
    if (!s->has_started || s->code || s->finished == s->npu_count ||
        orr__clock_next_tick(s->clock, &tick))
        return NULL;
    if (!s->stall)
        s->stall = analyse(s);
    return s->stall ? &s->stall->result : NULL;
}

const orr_stall *orr__stall_known(const orr_sim *s)
{
    return s->stall ? &s->stall->result : NULL;
}

orr_code orr__explain_stall(orr_sim *s, orr_error *err)
{
    const orr_stall *r = orr_sim_stall(s);
    if (!r)
        return orr_no_memory(err);
    const orr_stall_item *at = r->cause_count ? r->causes : r->circle_count ? r->circle : r->waits;
    const bool has_place = r->cause_count || r->circle_count || r->wait_count;
    return orr_fail(err, ORR_EINPUT, has_place ? &at->where : NULL,
                    "deadlock: %u of %u ranks have not finished: %s", r->unfinished, r->ranks,
                    r->summary);
}
