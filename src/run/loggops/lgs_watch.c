/* SPDX-License-Identifier: Apache-2.0 */
/* lgs_watch.c - what a run keeps for those who want to look: spans of time, searches in queues, who met whom.
 *
 * Everything is appended in the order it happens, which is the order of the old files; making a file or a timeline
 * out of it comes later.  Cost: 40 bytes a span, 24 a search, 16 a pair, and only what was asked for. */
#include "lgs_impl.h"

orr_code orr__lgs_watch_open(const orr_loggops *s, lgs_watch **out, orr_error *err)
{
    lgs_watch *w = orr_alloc(1, sizeof *w);
    *out = w;
    if (!w)
        return orr_no_memory(err);
    w->sent_at = orr_alloc(s->goal->node_count, sizeof *w->sent_at);
    bool is_good = w->sent_at != NULL;
    for (int side = 0; side < 2 && s->opt.keeps_queues; side++) {
        w->longest[side] = orr_alloc(s->hosts, sizeof **w->longest);
        is_good = is_good && w->longest[side];
    }
    return is_good ? ORR_OK : orr_no_memory(err);
}

void orr__lgs_watch_close(lgs_watch *w)
{
    if (!w)
        return;
    orr_free(w->spans);
    orr_free(w->searches);
    orr_free(w->pairs);
    orr_free(w->longest[0]);
    orr_free(w->longest[1]);
    orr_free(w->sent_at);
    orr_free(w);
}

void orr__lgs_watch_span(orr_loggops *s, const lgs_span *span)
{
    lgs_watch *w = s->watch;
    if (!s->opt.keeps_spans)
        return;
    if (!orr_grow(&w->spans, &w->span_room, w->span_count + 1)) {
        s->has_failed = true;
        return;
    }
    w->spans[w->span_count++] = *span;
}

void orr__lgs_watch_length(orr_loggops *s, uint32_t host, lgs_side side)
{
    uint32_t *longest = &s->watch->longest[side][host];
    if (s->match.count[side][host] > *longest)
        *longest = s->match.count[side][host];
}

void orr__lgs_watch_search(
    orr_loggops *s, uint32_t host, lgs_side side, uint64_t time, bool is_hit, uint32_t depth)
{
    lgs_watch *w = s->watch;
    if (!orr_grow(&w->searches, &w->search_room, w->search_count + 1)) {
        s->has_failed = true;
        return;
    }
    w->searches[w->search_count++] = (lgs_search){time, host, depth, (uint8_t)side, is_hit};
}

/* As LogGOPSim does it: the total counts messages as they are sent (goal.md 3.1). */
void orr__lgs_print_progress(orr_loggops *s, size_t pending)
{
    const orr_goal_totals t = s->goal->totals;
    const uint64_t total = t.sends + t.recvs + t.calcs + s->messages;
    if (total / 100 * s->percent >= s->events)
        return;
    uint32_t longest[2] = {0, 0};
    for (uint32_t host = 0; host < s->hosts; host++) {
        for (int side = 0; side < 2; side++) {
            if (s->match.count[side][host] > longest[side])
                longest[side] = s->match.count[side][host];
        }
    }
    orr_buf_print(&s->talk, "progress: %u %% (%llu) [sizes: aq: %zu max rq: %u max uq: %u]\n",
                  s->percent++, (unsigned long long)s->events, pending, longest[LGS_RECEIVES],
                  longest[LGS_MESSAGES]);
}

void orr__lgs_watch_pair(orr_loggops *s, const lgs_pair *pair)
{
    lgs_watch *w = s->watch;
    if (!s->opt.keeps_pairs)
        return;
    if (!orr_grow(&w->pairs, &w->pair_room, w->pair_count + 1)) {
        s->has_failed = true;
        return;
    }
    w->pairs[w->pair_count++] = *pair;
}

orr_code orr__lgs_outcome(const orr_loggops *s, const orr_error *inner, orr_error *err)
{
    if (!s->has_failed)
        return ORR_OK;
    if (inner->code == ORR_OK)
        return orr_no_memory(err);
    if (err)
        *err = *inner;
    return inner->code;
}
