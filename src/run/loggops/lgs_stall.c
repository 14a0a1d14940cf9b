/* SPDX-License-Identifier: Apache-2.0 */
/* lgs_stall.c - why a schedule does not finish: which operations block the others.
 *
 * What has not finished when nothing can happen any more waits for an operation of its own rank, or
 * is a receive whose message does not come, or a large send that nobody receives.  Those of the
 * second and third kind for which the schedule has no partner at all are the cause.  If there is
 * none such, operations wait in a cycle: following one blocker from each comes back to where it
 * was. Cost: linear in what is unfinished, but for the search for partners, which is limited. */
#include "lgs_impl.h"

#include <stdio.h>
#include <stdlib.h>

/* A search looks at all operations of a rank, or of all ranks for a wildcard: a large schedule that
 * stands still must not take longer to explain than to run. */
enum { MOST_LINES = 10, MOST_SEARCHES = 2000, CYCLE_MAX = 1 << 20 };

typedef struct place {
    uint32_t host, node;
} place;

typedef struct finder {
    lgs_sim *s;
    orr_buf *text;
    size_t lines, room;
    char first[256]; /* the first cause, for the error */
    /* causes: also those beyond MOST_LINES, which are counted and not told */
    uint64_t blocked, causes, unreceived;
    uint32_t searches;
} finder;

static bool is_finished(const lgs_sim *s, place p)
{
    const uint64_t at = lgs_finished_bit(s, p.host, p.node);
    return s->finished[at / 64] >> (at % 64) & 1;
}

/* One line of the story; offsets become pointers at the end, since the text may move. */
static void end_line(finder *f)
{
    orr_buf_byte(f->text, 0);
    f->lines++;
}

static void put_op(finder *f, place p)
{
    char words[96];
    const orr_goal_op op = orr_goal_get(f->s->goal, p.host, p.node);
    orr_buf_print(f->text, "rank %u: operation %u (%s)", p.host, p.node + 1,
                  orr_goal_op_text(&op, words, sizeof words));
}

static bool fits(uint32_t a, uint32_t b)
{
    return a == b || a == ORR_GOAL_ANY || b == ORR_GOAL_ANY;
}

/* An unfinished operation of `host` that could be the other half of p's message. */
static bool find_partner_at(finder *f, place p, uint32_t host, place *out)
{
    const lgs_sim *s = f->s;
    const orr__goal_node *n = lgs_node(s, p.host, p.node), *of = orr__goal_nodes(s->goal, host);
    const uint32_t ops = orr__goal_ops(s->goal, host);
    const uint8_t wanted = n->kind == ORR_GOAL_SEND ? ORR_GOAL_RECV : ORR_GOAL_SEND;
    for (uint32_t i = 0; i < ops; i++) {
        if (of[i].kind != wanted || !fits(of[i].peer, p.host) || !fits(of[i].tag, n->tag) ||
            is_finished(s, (place){host, i}))
            continue;
        *out = (place){host, i};
        return true;
    }
    return false;
}

static bool find_partner(finder *f, place p, place *out)
{
    const orr__goal_node *n = lgs_node(f->s, p.host, p.node);
    f->searches++;
    if (n->peer != ORR_GOAL_ANY)
        return find_partner_at(f, p, n->peer, out);
    for (uint32_t host = 0; host < f->s->hosts; host++) {
        if (find_partner_at(f, p, host, out))
            return true;
    }
    return false;
}

/* An unfinished operation of the rank that has an edge to this one. */
static bool find_blocker(const finder *f, place p, place *out)
{
    const orr_goal *g = f->s->goal;
    const orr__goal_node *nodes = orr__goal_nodes(g, p.host);
    const uint32_t *edges = orr__goal_edges(g, p.host), ops = orr__goal_ops(g, p.host);
    for (uint32_t i = 0; i < ops; i++) {
        if (is_finished(f->s, (place){p.host, i}))
            continue;
        for (uint32_t k = nodes[i].then; k < nodes[i + 1].then; k++) {
            if (edges[k] != p.node)
                continue;
            *out = (place){p.host, i};
            return true;
        }
    }
    return false;
}

/* Has nothing in its own rank to wait for: it was let go and waits for the other half. */
static bool is_free(const finder *f, place p)
{
    const lgs_sim *s = f->s;
    const orr__goal_node *n = lgs_node(s, p.host, p.node);
    place unused;
    if (n->waits == 0)
        return true;
    /* Counted down to 0: let go.  Operations with one edge have no count (lgs_unblock): their
     * blocker is looked for. */
    if (n->waits > 1)
        return s->waits[n - s->nodes] == 0;
    return !find_blocker(f, p, &unused);
}

static const char *what_it_lacks(finder *f, place p)
{
    const orr__goal_node *n = lgs_node(f->s, p.host, p.node);
    return n->kind == ORR_GOAL_SEND ? "no rank receives it" : "no rank sends it";
}

/* A message from the same rank with another tag is most often the reason; of several the first by
 * rank and tag, since the table's order says nothing. */
static void put_near_miss(finder *f, place p)
{
    const lgs_sim *s = f->s;
    const orr__goal_node *n = lgs_node(s, p.host, p.node);
    const lgs_key *found = NULL;
    for (size_t i = 0; n->kind == ORR_GOAL_RECV && i < s->match.slot_count; i++) {
        const lgs_slot *slot = &s->match.slots[i];
        if (!slot->last || !(slot->last >> 31) || slot->key.host != p.host ||
            !fits(slot->key.source, n->peer))
            continue;
        const lgs_key *k = &slot->key;
        if (!found || k->source < found->source ||
            (k->source == found->source && k->tag < found->tag))
            found = k;
    }
    if (found)
        orr_buf_print(f->text, "; one from rank %u with tag %u waits there", found->source,
                      found->tag);
}

static void add_cause(finder *f, place p)
{
    if (f->causes++ >= MOST_LINES)
        return;
    const size_t from = f->text->len;
    put_op(f, p);
    orr_buf_print(f->text, ": %s", what_it_lacks(f, p));
    put_near_miss(f, p);
    end_line(f);
    if (!f->first[0] && !f->text->failed)
        snprintf(f->first, sizeof f->first, "%s", (const char *)f->text->ptr + from);
}

static void look_at_all(finder *f)
{
    const lgs_sim *s = f->s;
    for (uint32_t host = 0; host < s->hosts; host++) {
        const orr__goal_node *nodes = orr__goal_nodes(s->goal, host);
        const uint32_t ops = orr__goal_ops(s->goal, host);
        for (uint32_t i = 0; i < ops; i++) {
            const place p = {host, i};
            place partner;
            if (is_finished(s, p))
                continue;
            f->blocked++;
            if (nodes[i].kind != ORR_GOAL_CALC && f->searches < MOST_SEARCHES && is_free(f, p) &&
                !find_partner(f, p, &partner))
                add_cause(f, p);
        }
    }
}

/* ---- cycles */

static bool next_blocker(finder *f, place p, place *out)
{
    return find_blocker(f, p, out) || find_partner(f, p, out);
}

static bool find_first_blocked(const finder *f, place *out)
{
    for (uint32_t host = 0; host < f->s->hosts; host++) {
        const uint32_t ops = orr__goal_ops(f->s->goal, host);
        for (uint32_t i = 0; i < ops; i++) {
            *out = (place){host, i};
            if (!is_finished(f->s, *out))
                return true;
        }
    }
    return false;
}

/* Two walkers, one at double speed, meet within the cycle (Floyd).  No set of what was visited: a
 * cycle may be as long as the schedule. */
static bool find_cycle(finder *f, place *out)
{
    place slow, fast;
    if (!find_first_blocked(f, &slow))
        return false;
    fast = slow;
    for (uint32_t i = 0; i < CYCLE_MAX; i++) {
        if (!next_blocker(f, slow, &slow) || !next_blocker(f, fast, &fast) ||
            !next_blocker(f, fast, &fast))
            return false;
        if (slow.host == fast.host && slow.node == fast.node) {
            *out = slow;
            return true;
        }
    }
    return false;
}

static void tell_cycle(finder *f)
{
    place start, at, next;
    if (!find_cycle(f, &start))
        return;
    at = start;
    for (int i = 0; i < MOST_LINES; i++) {
        if (!next_blocker(f, at, &next))
            return;
        put_op(f, at);
        orr_buf_text(f->text, " waits for ");
        put_op(f, next);
        end_line(f);
        at = next;
        if (at.host == start.host && at.node == start.node)
            break;
    }
    char words[96];
    const orr_goal_op op = orr_goal_get(f->s->goal, start.host, start.node);
    snprintf(f->first, sizeof f->first, "rank %u: operation %u (%s) waits for itself, in a cycle",
             start.host, start.node + 1, orr_goal_op_text(&op, words, sizeof words));
}

/* ---- messages that came and were never received, where all operations are over */

static void tell_unreceived(finder *f)
{
    const lgs_sim *s = f->s;
    for (size_t i = 0; i < s->match.slot_count; i++) {
        const lgs_slot *slot = &s->match.slots[i];
        const uint32_t last = slot->last & 0x7fffffffu;
        for (uint32_t e = slot->last >> 31 ? s->queue.events[last].next : 0; e;) {
            const place p = {s->queue.events[e].host, s->queue.events[e].node & 0x7fffffffu};
            e = e == last ? 0 : s->queue.events[e].next;
            if (is_finished(s, p))
                f->unreceived++;
        }
    }
}

/* In order of ranks, not of hashes: the sends that are over and were never received. */
static void list_unreceived(finder *f)
{
    const lgs_sim *s = f->s;
    uint64_t told = 0;
    for (uint32_t host = 0; host < s->hosts && told < MOST_LINES; host++) {
        const orr__goal_node *nodes = orr__goal_nodes(s->goal, host);
        const uint32_t ops = orr__goal_ops(s->goal, host);
        for (uint32_t i = 0; i < ops && told < MOST_LINES; i++) {
            if (nodes[i].kind != ORR_GOAL_SEND)
                continue;
            const lgs_key key = {nodes[i].peer, host, nodes[i].tag};
            size_t at = lgs_match_place(&s->match, key);
            for (; s->match.slots[at].last; at = (at + 1) & (s->match.slot_count - 1)) {
                const lgs_slot *slot = &s->match.slots[at];
                if (memcmp(&slot->key, &key, sizeof key) == 0 && slot->last >> 31) {
                    place p = {host, i};
                    const size_t from = f->text->len;
                    put_op(f, p);
                    orr_buf_text(f->text, ": its message is never received");
                    end_line(f);
                    if (!f->first[0] && !f->text->failed)
                        snprintf(f->first, sizeof f->first, "%s",
                                 (const char *)f->text->ptr + from);
                    told++;
                    break;
                }
            }
        }
    }
}

static orr_code make_lines(finder *f, orr_error *err)
{
    lgs_sim *s = f->s;
    s->stall_lines = orr_alloc(f->lines + 1, sizeof *s->stall_lines);
    if (f->text->failed || !s->stall_lines)
        return orr_no_memory(err);
    const char *p = (const char *)f->text->ptr;
    for (size_t i = 0; i < f->lines; i++) {
        s->stall_lines[i] = p;
        p += strlen(p) + 1;
    }
    s->stall_count = f->lines;
    return ORR_OK;
}

orr_code lgs_explain_stall(lgs_sim *s, orr_error *err)
{
    finder f = {.s = s, .text = &s->stall_text};
    look_at_all(&f);
    tell_unreceived(&f);
    if (f.causes > MOST_LINES) {
        orr_buf_print(f.text, "... and %llu more", (unsigned long long)(f.causes - MOST_LINES));
        end_line(&f);
    }
    /* Only without a cause: what waits for a message that nobody sends is no cycle, and walking
     * would not come back. */
    if (f.blocked && !f.causes)
        tell_cycle(&f);
    if (f.unreceived)
        list_unreceived(&f);
    if (!f.blocked && !f.unreceived)
        return ORR_OK;
    const orr_code code = make_lines(&f, err);
    if (code)
        return code;
    if (f.blocked)
        return orr_fail(err, ORR_EINPUT, NULL, "%llu of %llu operations never finish: %s",
                        (unsigned long long)f.blocked,
                        (unsigned long long)(f.blocked + s->finished_count), f.first);
    return orr_fail(err, ORR_EINPUT, NULL, "%llu messages are never received: %s",
                    (unsigned long long)f.unreceived, f.first);
}
