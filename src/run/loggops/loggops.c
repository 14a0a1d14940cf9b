/* SPDX-License-Identifier: Apache-2.0 */
/* loggops.c - a simulation as an object: made from a schedule and parameters, run once, asked for
 * its results.
 *
 * Why the schedule is borrowed: it is by far the largest part, never changes, and may be run many
 * times. Cost: 8 bytes per operation beside the schedule, 32 per pending event, 24 per host. */
#include "lgs_body.h"

#include "lgs_impl.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static bool begin_anew(lgs_sim *s);

/* ---- Ranks of a schedule that do the same are simulated once (docs/design/folding.md,
 * "Symmetry").
 *
 * Under LogGOPS all pairs of hosts are alike, so a symmetry is any way of moving ranks that takes
 * the operations of each rank to those of another: the same but for peers, which are moved, too.
 * Ranks at home are simulated; their messages go to the homes of their peers.  Events of one tick
 * run by number, and numbers depend on those of hosts: where two events of one tick meet at a host
 * and their order does not follow from what the host did, every rank is simulated. */

static const lgs_rules folded_rules = {
    .name = "own",
    .waits_for_release = true,
    .empty_costs_a_byte = true,
    .asks_the_sender = true,
    .buffers_messages = true,
    .is_folded = true,
};

/* ---- which ranks are alike ---- */

typedef struct move {
    const net_digit *digit;
    uint32_t by;
} move;

static uint32_t moved(move m, uint32_t rank)
{
    return rank == ORR_GOAL_ANY ? rank : net_digit_add(m.digit, rank, m.by);
}

/* Operations and edges of one rank are those of the other. */
static bool takes_rank(const orr_goal *g, move m, uint32_t r)
{
    const uint32_t to = moved(m, r), ops = orr__goal_ops(g, r);
    const orr__goal_node *a = orr__goal_nodes(g, r), *b = orr__goal_nodes(g, to);
    if (orr__goal_ops(g, to) != ops)
        return false;
    for (uint32_t i = 0; i < ops; i++) {
        const bool has_peer = a[i].kind != ORR_GOAL_CALC;
        if (a[i].size != b[i].size || a[i].kind != b[i].kind || a[i].cpu != b[i].cpu ||
            a[i].nic != b[i].nic || a[i].waits != b[i].waits || a[i].then != b[i].then ||
            a[i].started != b[i].started ||
            (has_peer && (a[i].tag != b[i].tag || moved(m, a[i].peer) != b[i].peer)))
            return false;
    }
    return a[ops].then == b[ops].then && memcmp(orr__goal_edges(g, r), orr__goal_edges(g, to),
                                                a[ops].then * sizeof(uint32_t)) == 0;
}

static bool holds(void *goal, const net_digit *d)
{
    const orr_goal *g = goal;
    /* A rotation is made of single steps, so one step is enough; an exclusive or by any number is
     * made of those by powers of two, so each of them is tried. */
    for (uint32_t by = 1; by < d->radix; by *= 2) {
        for (uint32_t r = 0; r < g->rank_count; r++)
            if (!takes_rank(g, (move){d, by}, r))
                return false;
        if (!d->is_xor)
            break;
    }
    return true;
}

/* ---- one run ---- */

static const char *obstacle(const lgs_sim *s)
{
    const lgs_options *o = &s->opt;
    return o->fold == LGS_FOLD_OFF      ? "it was switched off"
           : s->rules != &lgs_own_rules ? "the rules of another program apply"
           : o->noise                   ? "ranks are interrupted"
           : s->watch || s->walks       ? "every operation or message is recorded"
           : o->max_events              ? "there is a limit on events"
                                        : NULL;
}

/* Sizes of all orbits are equal: a symmetry is made of digits, and each rank is moved by all of
 * their values.  So counts are simply multiplied. */
static void spread(lgs_sim *s, uint32_t size)
{
    for (uint32_t h = 0; h < s->hosts; h++) {
        const uint32_t home = net_sym_home(&s->folding->symmetry, h);
        if (home != h)
            memcpy(lgs_clocks(s, h), lgs_clocks(s, home), s->stride * sizeof *s->clocks);
    }
    s->events *= size;
    s->left = lgs_pending(s) * size;
    s->messages *= size;
    s->finished_count *= size;
}

static orr_code run(lgs_sim *s, uint32_t size, bool *is_done, orr_error *err)
{
    lgs_folding *f = s->folding;
    if (!(f->touches = orr_alloc(s->hosts, sizeof *f->touches)))
        return orr_no_memory(err);
    for (uint32_t h = 0; h < s->hosts; h++)
        f->touches[h].time = UINT64_MAX;
    f->last_time = UINT64_MAX;
    const orr_code code = lgs_run_events(s, &folded_rules, err);
    const bool is_stopped = atomic_load_explicit(&s->must_stop, memory_order_relaxed);
    spread(s, size);
    s->is_spread = is_stopped;
    *is_done = code || is_stopped || (!f->has_lost_order && lgs_is_complete(s));
    if (f->has_lost_order)
        snprintf(s->fold_why, sizeof s->fold_why,
                 "at %" PRIu64
                 " ns the order of two events of one tick is not the same for all ranks",
                 s->now);
    else if (!*is_done) /* then every rank, so that the reason can be said */
        snprintf(s->fold_why, sizeof s->fold_why, "the run does not finish");
    return code;
}

/* ---- the proof ---- */

static orr_code differ(orr_error *err, const char *what, uint64_t folded, uint64_t each)
{
    return orr_fail(err, ORR_EBUG, NULL,
                    "folding is wrong: %s is %" PRIu64 " folded and %" PRIu64
                    " with every rank simulated",
                    what, folded, each);
}

static orr_code verify(lgs_sim *s, orr_error *err)
{
    /* The folded clocks are put aside, every rank is run, and each clock is compared: equal clocks
     * of all CPUs and NICs are equal results. */
    const uint64_t events = s->events, messages = s->messages, now = s->now;
    uint64_t *clocks = s->clocks;
    s->clocks = NULL;
    orr_code code = begin_anew(s) ? s->rules->run(s, err) : orr_no_memory(err);
    for (size_t i = 0; !code && i < (size_t)s->hosts * s->stride; i++)
        if (clocks[i] != s->clocks[i]) {
            char what[64];
            snprintf(what, sizeof what, "clock %zu of rank %zu", i % s->stride, i / s->stride);
            code = differ(err, what, clocks[i], s->clocks[i]);
        }
    if (!code && events != s->events)
        code = differ(err, "the number of events", events, s->events);
    if (!code && messages != s->messages)
        code = differ(err, "the number of messages", messages, s->messages);
    if (!code && now != s->now)
        code = differ(err, "the time of the last event", now, s->now);
    if (!code && !lgs_is_complete(s))
        code = differ(err, "whether it ends", 1, 0);
    if (!code)
        snprintf(s->fold_why, sizeof s->fold_why, "verified, same results with %u of %u ranks",
                 s->simulated, s->hosts);
    s->simulated = s->hosts;
    orr_free(clocks);
    return code;
}

/* Finds out which hosts can stand for others, and runs them.  *is_done: the results are those of
 * all hosts; else nothing has happened yet. */
static orr_code run_folded(lgs_sim *s, bool *is_done, orr_error *err)
{
    const char *why = obstacle(s);
    uint32_t size = 1;
    orr_code code = ORR_OK;
    *is_done = false;
    /* Steps by hand have begun with every rank: it is too late to fold. */
    if (s->has_started)
        return ORR_OK;
    if (!(s->folding = orr_alloc(1, sizeof *s->folding)))
        return orr_no_memory(err);
    if (!why) {
        net_sym_find(&s->folding->symmetry, 1, s->hosts, false, holds, (void *)s->goal);
        for (uint32_t i = 0; i < s->folding->symmetry.count; i++)
            size *= s->folding->symmetry.digits[i].radix;
        if (size == 1)
            why = "no two ranks are alike";
    }
    if (why)
        snprintf(s->fold_why, sizeof s->fold_why, "%s", why);
    else
        code = run(s, size, is_done, err);
    if (*is_done && !code)
        s->simulated = s->hosts / size;
    orr_free(s->folding->parents);
    orr_free(s->folding->touches);
    orr_free(s->folding);
    s->folding = NULL;
    /* It was tried and given up: the next to run must find a simulation as before the first
     * event. */
    if (!why && !*is_done && !code && !begin_anew(s))
        code = orr_no_memory(err);
    if (*is_done && !code && s->opt.fold == LGS_FOLD_VERIFY)
        code = verify(s, err);
    return code;
}

/* ---- Why a schedule does not finish: which operations block the others.
 *
 * What has not finished when nothing can happen any more waits for an operation of its own rank, or
 * is a receive whose message does not come, or a large send that nobody receives.  Those of the
 * second and third kind for which the schedule has no partner at all are the cause.  If there is
 * none such, operations wait in a cycle: following one blocker from each comes back to where it
 * was. Cost: linear in what is unfinished, but for the search for partners, which is limited. */

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

/* What stands in the way of the rest; the error's words, and the lines of the story. */
static orr_code explain_stall(lgs_sim *s, orr_error *err)
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

enum {
    MOST_GROUPS = 1 << 24
}; /* more CPUs and NICs than this, and events are put off one by one */

lgs_options lgs_defaults(void)
{
    return (lgs_options){.L = 2500, .o = 1500, .g = 1000, .G = 6, .S = 65535, .threads = 1};
}

/* ---- what a run keeps for those who want to look: spans of time, searches in queues, who met
 * whom.  Everything is appended as it happens, which is the order of LogGOPSim's files.  40 bytes
 * per span, 24 per search, 16 per pair. */

static orr_code watch_open(const lgs_sim *s, lgs_watch **out, orr_error *err)
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

static void watch_close(lgs_watch *w)
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

void lgs_watch_span(lgs_sim *s, const lgs_span *span)
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

void lgs_watch_length(lgs_sim *s, uint32_t host, lgs_side side)
{
    uint32_t *longest = &s->watch->longest[side][host];
    if (s->match.count[side][host] > *longest)
        *longest = s->match.count[side][host];
}

void lgs_watch_search(
    lgs_sim *s, uint32_t host, lgs_side side, uint64_t time, bool is_hit, uint32_t depth)
{
    lgs_watch *w = s->watch;
    if (!orr_grow(&w->searches, &w->search_room, w->search_count + 1)) {
        s->has_failed = true;
        return;
    }
    w->searches[w->search_count++] = (lgs_search){time, host, depth, (uint8_t)side, is_hit};
}

void lgs_watch_pair(lgs_sim *s, const lgs_pair *pair)
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

/* ---- is it possible? */

static orr_code check_options(const lgs_options *o, const lgs_rules *rules, orr_error *err)
{
    if (!(o->G >= 0) || o->G > 1e18)
        return orr_fail(err, ORR_EUSAGE, NULL, "G is %g; it cannot be negative", o->G);
    if (o->simple_links && !rules->link_send)
        return orr_fail(err, ORR_EUSAGE, NULL, "only LogGOPSim of 2023 has the network \"simple\"");
    return rules->check ? rules->check(o, err) : ORR_OK;
}

/* Undefined behaviour in the references (goal.md 3), an error here. */
static orr_code check_peers(const orr_goal *g, orr_error *err)
{
    const uint32_t ranks = g->rank_count;
    for (uint32_t r = 0; r < ranks; r++) {
        const orr__goal_node *n = orr__goal_nodes(g, r);
        const uint32_t ops = orr__goal_ops(g, r);
        for (uint32_t i = 0; i < ops; i++) {
            if (n[i].kind == ORR_GOAL_CALC || n[i].peer < ranks ||
                (n[i].kind == ORR_GOAL_RECV && n[i].peer == ORR_GOAL_ANY))
                continue;
            char words[96];
            const orr_goal_op op = orr_goal_get(g, r, i);
            return orr_fail(err, ORR_EINPUT, NULL,
                            "rank %u: operation %u (%s): there are %u ranks only", r, i + 1,
                            orr_goal_op_text(&op, words, sizeof words), ranks);
        }
    }
    return ORR_OK;
}

/* ---- making one */

static bool make_waits(lgs_sim *s)
{
    const size_t count = s->goal->node_count;
    s->waits = orr_alloc(count, sizeof *s->waits);
    if (!s->waits)
        return false;
    for (size_t i = 0; i < count; i++)
        s->waits[i] = s->nodes[i].waits;
    /* With one CPU its clock is never behind what an operation on it waited for. */
    if (s->rules->keeps_release_times || (s->rules->waits_for_release && s->cpus > 1)) {
        s->ready = orr_alloc(count, sizeof *s->ready);
        if (!s->ready)
            return false;
    }
    if (s->rules->explains_stall)
        s->finished = orr_alloc(count / 64 + 1 + s->hosts, sizeof *s->finished);
    return !s->rules->explains_stall || s->finished;
}

/* Groups of events that wait for the same clocks are right only where clocks never go back and
 * nothing else holds a message up (docs/design/loggops.md, "How it is fast"). */
static bool make_busy(lgs_sim *s)
{
    const double groups = (double)s->hosts * s->cpus * (1.0 + 2.0 * s->nics);
    if (s->rules->puts_off_singly || s->opt.simple_links || groups > MOST_GROUPS ||
        (s->rules->clocks_go_back && s->rules->clocks_go_back(s)))
        return true;
    const size_t count = (size_t)s->hosts * s->cpus * (1 + 2 * (size_t)s->nics);
    s->busy = orr_alloc(count, sizeof *s->busy);
    for (size_t i = 0; s->busy && i < count; i++)
        s->busy[i].first = UINT64_MAX;
    return s->busy != NULL;
}

static bool make_parts(lgs_sim *s)
{
    const orr_goal_totals t = s->goal->totals;
    s->nodes = s->goal->nodes;
    s->ranks = s->goal->ranks;
    s->edges = s->goal->edges;
    s->hosts = s->goal->rank_count;
    s->cpus = t.cpus;
    s->nics = t.nics;
    /* A send is two events, itself and its message. */
    s->expected = 2 * t.sends + t.recvs + t.calcs;
    /* Whole numbers are multiplied as such: exact beyond 2^53, and wrapping as the reference's
     * do. */
    s->is_G_whole = s->opt.G == floor(s->opt.G);
    s->G_whole = (uint64_t)s->opt.G;
    s->has_wildcards = t.wildcards != 0;
    s->counts_all = s->rules->counts_all_edges;
    s->walks = s->opt.keeps_queues;
    s->stride = (size_t)s->cpus + 2 * (size_t)s->nics;
    s->clocks = orr_alloc((size_t)s->hosts * s->stride, sizeof *s->clocks);
    return s->clocks && make_waits(s) && make_busy(s) && lgs_queue_init(&s->queue) &&
           lgs_match_init(&s->match, s->hosts,
                          s->has_wildcards || s->walks || s->opt.prints_progress);
}

static void drop_parts(lgs_sim *s)
{
    lgs_queue_fini(&s->queue);
    lgs_match_fini(&s->match);
    orr_free(s->clocks);
    orr_free(s->waits);
    orr_free(s->ready);
    orr_free(s->finished);
    orr_free(s->busy);
    s->clocks = s->ready = s->finished = NULL;
    s->waits = NULL;
    s->busy = NULL;
}

/* Everything is made again and not reset field by field: one way to begin, so that a second run
 * cannot differ from a first. */
static bool begin_anew(lgs_sim *s)
{
    drop_parts(s);
    s->now = s->events = s->messages = s->finished_count = s->waiting = s->left = 0;
    s->has_failed = s->has_started = s->is_spread = false;
    return make_parts(s);
}

static orr_code open_extras(lgs_sim *s, orr_error *err)
{
    orr_code code = ORR_OK;
    if (s->opt.noise)
        code = lgs_noise_open(s, &s->noise, err);
    if (!code && s->rules->open)
        code = s->rules->open(s, err);
    if (!code && (s->opt.keeps_spans || s->opt.keeps_queues || s->opt.keeps_pairs))
        code = watch_open(s, &s->watch, err);
    return code;
}

orr_code lgs_create(const orr_goal *g, const lgs_options *opt, lgs_sim **out, orr_error *err)
{
    *out = NULL;
    const lgs_options plain = lgs_defaults();
    if (!opt)
        opt = &plain;
    const lgs_rules *rules = opt->rules ? opt->rules : &lgs_own_rules;
    orr_code code = check_options(opt, rules, err);
    if (!code)
        code = check_peers(g, err);
    if (code)
        return code;
    lgs_sim *s = orr_alloc(1, sizeof *s);
    if (!s)
        return orr_no_memory(err);
    s->opt = *opt;
    s->rules = rules;
    s->goal = g;
    s->simulated = g->rank_count;
    /* Parts first: noise and records are made for as many hosts as they found. */
    code = make_parts(s) ? open_extras(s, err) : orr_no_memory(err);
    if (code)
        lgs_destroy(s);
    else
        *out = s;
    return code;
}

void lgs_destroy(lgs_sim *s)
{
    if (!s)
        return;
    lgs_noise_close(s->noise);
    if (s->rules->close)
        s->rules->close(s);
    watch_close(s->watch);
    drop_parts(s);
    orr_free(s->batch[0].items);
    orr_free(s->batch[1].items);
    orr_buf_fini(&s->sort_room);
    orr_buf_fini(&s->stall_text);
    orr_free(s->stall_lines);
    orr_free(s);
}

/* ---- running, asking */

/* ---- our rules */

static orr_code run_own(lgs_sim *s, orr_error *err)
{
    return lgs_run_events(s, &lgs_own_rules, err);
}

const lgs_rules lgs_own_rules = {
    .name = "own",
    .waits_for_release = true,
    .empty_costs_a_byte = true,
    .asks_the_sender = true,
    .buffers_messages = true,
    .explains_stall = true,
    .run = run_own,
};

orr_code lgs_outcome(const lgs_sim *s, const orr_error *inner, orr_error *err)
{
    if (!s->has_failed)
        return ORR_OK;
    if (inner->code == ORR_OK)
        return orr_no_memory(err);
    if (err)
        *err = *inner;
    return inner->code;
}

/* Until so many events have run since the start, and back to the caller. */
static void count_events(lgs_sim *s, uint64_t most)
{
    s->is_counting = true;
    s->most = most;
    atomic_store(&s->must_stop, true);
}

orr_code lgs_run(lgs_sim *s, orr_error *err)
{
    struct timespec from, to;
    clock_gettime(CLOCK_MONOTONIC, &from);
    if (s->is_spread && !begin_anew(s))
        return orr_no_memory(err);
    s->left = 0;
    if (s->opt.max_events)
        count_events(s, s->opt.max_events);
    /* Folded, then parted, then by one thread: each leaves a simulation as it found it, or says
     * that it is done. */
    bool is_done = false;
    orr_code code = run_folded(s, &is_done, err);
    if (!code && !is_done)
        code = lgs_run_parts(s, &is_done, err);
    if (!code && !is_done)
        code = s->rules->run(s, err);
    if (!s->left) /* else ranks were folded, and each that is left stands for several */
        s->left = lgs_pending(s);
    if (s->is_counting && !lgs_is_at_limit(s) && !atomic_load(&s->must_end))
        atomic_store(&s->must_stop, false); /* it came to its end before */
    s->is_counting = false;
    atomic_store(&s->must_end, false);
    clock_gettime(CLOCK_MONOTONIC, &to);
    s->seconds = (double)(to.tv_sec - from.tv_sec) + (double)(to.tv_nsec - from.tv_nsec) * 1e-9;
    if (code)
        return code;
    s->was_stopped = atomic_exchange_explicit(&s->must_stop, false, memory_order_relaxed);
    if (s->was_stopped)
        return orr_fail(err, ORR_ESTOP, NULL, "stopped at %llu ns", (unsigned long long)s->now);
    return lgs_is_complete(s) || !s->rules->explains_stall ? ORR_OK : explain_stall(s, err);
}

orr_code lgs_step_once(lgs_sim *s, orr_error *err)
{
    /* A step borrows the flag of stops; a stop that was asked for before must be there after it. */
    const bool was_stopped = atomic_load(&s->must_stop),
               had_to_end = atomic_exchange(&s->must_end, false);
    if (s->is_spread && !begin_anew(s))
        return orr_no_memory(err);
    const uint64_t ran = s->events - lgs_pending(s);
    count_events(s, ran + 1);
    const orr_code code = s->rules->run(s, err);
    s->is_counting = false;
    s->left = lgs_pending(s);
    atomic_store(&s->must_end, had_to_end);
    atomic_store(&s->must_stop, was_stopped);
    return code ? code : s->events - s->left == ran ? ORR_END : ORR_OK;
}

bool lgs_is_complete(const lgs_sim *s)
{
    const orr_goal_totals t = s->goal->totals;
    return s->finished_count == t.sends + t.recvs + t.calcs && !s->match.used;
}

void lgs_stop(lgs_sim *s)
{
    atomic_store_explicit(&s->must_end, true, memory_order_relaxed);
    atomic_store_explicit(&s->must_stop, true, memory_order_relaxed);
}

uint32_t lgs_simulated(const lgs_sim *s)
{
    return s->simulated;
}

uint32_t lgs_threads(const lgs_sim *s)
{
    return s->threads ? s->threads : 1;
}

const char *lgs_threads_why(const lgs_sim *s)
{
    if (s->threads_why)
        return s->threads_why;
    return s->threads ? "" : "ranks that fold are simulated by one thread";
}

const char *lgs_fold_why(const lgs_sim *s)
{
    return s->fold_why;
}

uint64_t lgs_events(const lgs_sim *s)
{
    return s->events - s->left;
}

uint64_t lgs_messages(const lgs_sim *s)
{
    return s->messages;
}

uint64_t lgs_finished_at(const lgs_sim *s, uint32_t rank)
{
    const uint64_t *clock = s->clocks + (size_t)rank * s->stride;
    uint64_t latest = 0;
    for (uint32_t i = 0; i < s->cpus; i++)
        latest = lgs_max(latest, clock[i]);
    return latest;
}

uint64_t lgs_noise_of(const lgs_sim *s, uint32_t rank)
{
    return s->noise ? lgs_noise_total(s->noise, rank) : 0;
}

const char *lgs_stall_line(const lgs_sim *s, size_t i)
{
    return i < s->stall_count ? s->stall_lines[i] : NULL;
}

/* ---- files of replaced programs (src/compat) */

orr_code lgs_write_old(const lgs_sim *s, const char *what, const char *path, orr_error *err)
{
    for (const lgs_writer *w = lgs_old_writers; w && w->name; w++)
        if (strcmp(w->name, what) == 0)
            return w->write(s, path, err);
    return orr_fail(err, ORR_EUSAGE, NULL, "a LogGOPS run writes no \"%s\"", what);
}
