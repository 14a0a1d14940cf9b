/* SPDX-License-Identifier: Apache-2.0 */
/* lgs2023.c - the rules of LogGOPSim of 2023 (docs/spec/goal.md 3.3 and 3.4): our engine, with its
 * mistakes put back; and what it shares with the LogGOPSim of ATLAHS. */
#include "loggopsim.h"

#include "compat/library_sort.h"
#include "run/loggops/lgs_body.h"

#include <math.h>

#define TOO_LONG 0x1p62 /* ns; longer than this, and sums may wrap */

/* ---- what both programs keep */

orr_code lgs_extra_open(lgs_sim *s, orr_error *err)
{
    lgs_old_extra *x = s->extra = orr_alloc(1, sizeof *x);
    if (!x)
        return orr_no_memory(err);
    return s->opt.simple_links ? simple_links_open(s->opt.simple_links, s->hosts, &x->links, err)
                               : ORR_OK;
}

void lgs_extra_close(lgs_sim *s)
{
    lgs_old_extra *x = s->extra;
    if (!x)
        return;
    simple_links_close(x->links);
    orr_buf_fini(&x->talk);
    orr_free(x->heap.entries);
    orr_free(x);
}

/* The total counts messages as they are sent. */
void lgs_old_progress(lgs_sim *s, size_t pending)
{
    const orr_goal_totals t = s->goal->totals;
    const uint64_t total = t.sends + t.recvs + t.calcs + s->messages;
    if (total / 100 * lgs_extra(s)->percent >= s->events)
        return;
    uint32_t longest[2] = {0, 0};
    for (uint32_t host = 0; host < s->hosts; host++) {
        for (int side = 0; side < 2; side++) {
            if (s->match.count[side][host] > longest[side])
                longest[side] = s->match.count[side][host];
        }
    }
    orr_buf_print(&lgs_extra(s)->talk,
                  "progress: %u %% (%llu) [sizes: aq: %zu max rq: %u max uq: %u]\n",
                  lgs_extra(s)->percent++, (unsigned long long)s->events, pending,
                  longest[LGS_RECEIVES], longest[LGS_MESSAGES]);
}

/* ---- where it differs from ours */

static orr_code check(const lgs_options *o, orr_error *err)
{
    return o->G == floor(o->G)
               ? ORR_OK
               : orr_fail(err, ORR_EUSAGE, NULL,
                          "LogGOPSim of 2023 has whole numbers for G, not %g", o->G);
}

/* Sends before receives before calculations; equal ones in the order of an unstable sort (goal.md
 * 3.4), which up to 16 elements is that of a stable one. */
static bool order(lgs_sim *s, lgs_batch *b)
{
    if (b->count <= 16) {
        lgs_sort_batch(s, b);
        return !s->has_failed;
    }
    s->sort_room.len = 0;
    const size_t bytes = b->count * (sizeof(lgs_ready) + sizeof(orr__sort_item));
    lgs_ready *copy = (lgs_ready *)(void *)orr_buf_reserve(&s->sort_room, bytes);
    if (!copy)
        return false;
    memcpy(copy, b->items, b->count * sizeof *copy);
    orr__sort_item *items = (orr__sort_item *)(void *)(copy + b->count);
    for (uint32_t i = 0; i < b->count; i++)
        items[i] = (orr__sort_item){(uint64_t)(ORR_GOAL_CALC - copy[i].kind), i};
    orr__library_sort(items, b->count);
    for (uint32_t i = 0; i < b->count; i++)
        b->items[i] = copy[items[i].index];
    return true;
}

/* A message of no bytes has minus one byte, and what is too large wraps (goal.md 3.3): where
 * that costs less than nothing a clock is set to the past. */
static bool clocks_go_back(const lgs_sim *s)
{
    const double o = (double)s->opt.o, g = (double)s->opt.g, O = (double)s->opt.O, G = s->opt.G;
    const bool none_is_cheap = O > o || G > o || G > g;
    for (size_t i = 0; i < s->goal->node_count; i++) {
        const orr__goal_node *n = &s->nodes[i];
        if (n->size == 0 ? n->kind == ORR_GOAL_SEND && none_is_cheap
                         : (double)n->size * (1 + O + G) > TOO_LONG)
            return true;
    }
    return false;
}

static const char *extra(const lgs_sim *s, orr_buf *text, bool *is_list)
{
    *is_list = true;
    return lgs_put_left(s, text) ? "left_in_queues" : NULL;
}

static orr_code run(lgs_sim *s, orr_error *err)
{
    return lgs_run_events(s, &lgs_2023_rules, err);
}

const lgs_rules lgs_2023_rules = {
    .name = "lgs2023",
    .order = order,
    .counts_all_edges = true,
    .repeats_last_noise = true,
    .skips_first_noise = true,
    .check = check,
    .clocks_go_back = clocks_go_back,
    .open = lgs_extra_open,
    .close = lgs_extra_close,
    .link_send = lgs_link_send,
    .link_arrival = lgs_link_arrival,
    .run = run,
    .after_event = lgs_old_progress,
    .extra = extra,
};
