/* SPDX-License-Identifier: Apache-2.0 */
/* chakra_simulate.c - what chakra_converter --simulate prints: the nodes played through on one host
 * and any number of streams (chakra.md 4.1).
 *
 * The old converter's clock ticks once a microsecond.  Here it jumps: a tick in which nothing
 * starts changes nothing until something ends.  A node of no duration lasts one tick, and children
 * are released when their parent is issued, not when it ends: both as in the old one.
 *
 * Cost: linear in nodes and dependencies, times the streams that run at once. */
#include "chakra_convert.h"

#include "base/memory/buffer.h"

#include <inttypes.h>

/* Ready nodes of one stream, in the order in which they came, and the one that runs. */
typedef struct lane {
    int64_t stream;
    uint32_t first, last; /* waiting: a list through `next` */
    uint32_t running;     /* NONE: idle */
    uint64_t since;
    uint64_t order; /* when it last became busy: streams end in that order within a tick */
} lane;

typedef struct player {
    const chakra_plan *p;
    uint32_t *waits;         /* dependencies that are still to be issued, by item */
    uint32_t *first, *child; /* who depends on an item, in the order in which nodes were created */
    uint32_t *next;          /* in the list of ready nodes */
    uint64_t *arrival;       /* when it became ready, counted in nodes */
    uint64_t arrived, issued_order;
    lane host;
    lane *lanes;
    size_t lane_count, lane_room;
    uint32_t *issued; /* in this tick */
    size_t issued_count, issued_room;
    uint64_t now;
    orr_buf line;
    orr_line_sink say;
    void *sink;
    bool has_memory;
} player;

/* ---- words ---- */

static void tell(player *s)
{
    orr_buf_byte(&s->line, '\0');
    if (!s->line.failed)
        s->say(s->sink, (const char *)s->line.ptr);
    s->line.len = 0;
}

static void put_name(player *s, uint32_t item)
{
    const orr_str name = chakra_node(s->p, item)->name;
    orr_buf_add(&s->line, name.ptr, name.len);
}

static void put_stream(player *s, int64_t stream)
{
    if (stream == ORR_NO_VALUE)
        orr_buf_text(&s->line, "None");
    else
        orr_buf_i64(&s->line, stream);
}

static void tell_issue(player *s, const lane *l)
{
    const linked_node *n = chakra_node(s->p, l->running);
    const bool is_host = l == &s->host;
    orr_buf_print(&s->line, "Issuing %s Node ID %" PRIu64 " (", is_host ? "CPU" : "GPU", n->id);
    put_name(s, l->running);
    orr_buf_print(&s->line, ") at %" PRIu64 "us ", s->now);
    if (!is_host) {
        orr_buf_text(&s->line, "on stream ");
        put_stream(s, l->stream);
        orr_buf_byte(&s->line, ' ');
    }
    orr_buf_print(&s->line, "with duration %" PRIu64 "us, tid: ", chakra_duration(n));
    if (is_host) {
        orr_buf_i64(&s->line, n->tid);
    } else {
        orr_buf_text(&s->line, "stream ");
        put_stream(s, l->stream);
    }
    tell(s);
}

static void tell_end(player *s, const lane *l)
{
    const linked_node *n = chakra_node(s->p, l->running);
    if (l == &s->host) {
        orr_buf_print(&s->line, "CPU Node ID %" PRIu64 " completed at %" PRIu64 "us, tid: %" PRId64,
                      n->id, s->now, n->tid);
    } else {
        orr_buf_print(&s->line, "GPU Node ID %" PRIu64 " on stream ", n->id);
        put_stream(s, l->stream);
        orr_buf_print(&s->line, " completed at %" PRIu64 "us, tid: stream ", s->now);
        put_stream(s, l->stream);
    }
    tell(s);
}

/* ---- ready nodes ---- */

static lane *lane_of(player *s, uint32_t item)
{
    const linked_node *n = chakra_node(s->p, item);
    if (n->kind != LINKED_ON_DEVICE)
        return &s->host;
    for (size_t i = 0; i < s->lane_count; i++) {
        if (s->lanes[i].stream == n->stream)
            return &s->lanes[i];
    }
    if (!orr_grow(&s->lanes, &s->lane_room, s->lane_count + 1)) {
        s->has_memory = false;
        return NULL;
    }
    s->lanes[s->lane_count] = (lane){n->stream, CHAKRA_NONE, CHAKRA_NONE, CHAKRA_NONE, 0, 0};
    return &s->lanes[s->lane_count++];
}

static void make_ready(player *s, uint32_t item)
{
    lane *l = lane_of(s, item);
    if (!l)
        return;
    s->arrival[item] = s->arrived++;
    s->next[item] = CHAKRA_NONE;
    if (l->first == CHAKRA_NONE)
        l->first = item;
    else
        s->next[l->last] = item;
    l->last = item;
}

/* ---- a tick ---- */

static void issue(player *s, lane *l)
{
    l->running = l->first;
    l->first = s->next[l->first];
    l->since = s->now;
    l->order = s->issued_order++;
    tell_issue(s, l);
    if (!orr_grow(&s->issued, &s->issued_room, s->issued_count + 1))
        s->has_memory = false;
    else
        s->issued[s->issued_count++] = l->running;
}

static bool can_issue(const lane *l)
{
    return l->running == CHAKRA_NONE && l->first != CHAKRA_NONE;
}

/* Streams in the order in which their first ready nodes came. */
static void issue_devices(player *s)
{
    for (;;) {
        lane *best = NULL;
        for (size_t i = 0; i < s->lane_count; i++) {
            lane *l = &s->lanes[i];
            if (can_issue(l) && (!best || s->arrival[l->first] < s->arrival[best->first]))
                best = l;
        }
        if (!best)
            return;
        issue(s, best);
    }
}

static uint64_t end_of(const player *s, const lane *l)
{
    const uint64_t duration = chakra_duration(chakra_node(s->p, l->running));
    return l->since + (duration ? duration : 1);
}

static void end_lane(player *s, lane *l)
{
    tell_end(s, l);
    l->running = CHAKRA_NONE;
}

static void end_devices(player *s)
{
    for (;;) {
        lane *first = NULL;
        for (size_t i = 0; i < s->lane_count; i++) {
            lane *l = &s->lanes[i];
            if (l->running != CHAKRA_NONE && end_of(s, l) <= s->now &&
                (!first || l->order < first->order))
                first = l;
        }
        if (!first)
            return;
        end_lane(s, first);
    }
}

static void release_children(player *s)
{
    for (size_t i = 0; i < s->issued_count; i++) {
        const uint32_t item = s->issued[i];
        for (uint32_t c = s->first[item]; c < s->first[item + 1]; c++) {
            if (--s->waits[s->child[c]] == 0)
                make_ready(s, s->child[c]);
        }
    }
    s->issued_count = 0;
}

/* The next tick in which something happens; false: nothing ever will. */
static bool advance(player *s)
{
    uint64_t next = s->host.running == CHAKRA_NONE ? UINT64_MAX : end_of(s, &s->host);
    for (size_t i = 0; i < s->lane_count; i++) {
        const lane *l = &s->lanes[i];
        if (l->running != CHAKRA_NONE && end_of(s, l) < next)
            next = end_of(s, l);
    }
    if (s->issued_count)
        next = s->now + 1;
    s->now = next;
    return next != UINT64_MAX;
}

static void play(player *s)
{
    for (;;) {
        if (can_issue(&s->host))
            issue(s, &s->host);
        issue_devices(s);
        if (!s->has_memory || !advance(s))
            return;
        if (s->host.running != CHAKRA_NONE && end_of(s, &s->host) <= s->now)
            end_lane(s, &s->host);
        end_devices(s);
        release_children(s);
    }
}

/* ---- from a plan ---- */

static void count_children(player *s)
{
    const chakra_plan *p = s->p;
    for (uint32_t i = 0; i < p->count; i++) {
        for (uint32_t e = p->dep_first[i]; e != CHAKRA_NONE; e = p->deps[e].next) {
            s->waits[i]++;
            s->first[p->deps[e].from + 1]++;
        }
    }
    for (uint32_t i = 0; i < p->count; i++)
        s->first[i + 1] += s->first[i];
}

static bool find_children(player *s)
{
    const chakra_plan *p = s->p;
    uint32_t *at = orr_arena_new(p->arena, (size_t)p->count + 1, uint32_t);
    if (!at)
        return false;
    count_children(s);
    memcpy(at, s->first, ((size_t)p->count + 1) * sizeof *at);
    for (uint32_t k = 0; k < p->created_count; k++) {
        const uint32_t item = p->created[k];
        for (uint32_t e = p->dep_first[item]; e != CHAKRA_NONE; e = p->deps[e].next)
            s->child[at[p->deps[e].from]++] = item;
    }
    return true;
}

static bool prepare(player *s)
{
    const chakra_plan *p = s->p;
    orr_arena *a = p->arena;
    s->waits = orr_arena_new(a, (size_t)p->count + 1, uint32_t);
    s->first = orr_arena_new(a, (size_t)p->count + 2, uint32_t);
    s->child = orr_arena_new(a, p->dep_count + 1, uint32_t);
    s->next = orr_arena_new(a, (size_t)p->count + 1, uint32_t);
    s->arrival = orr_arena_new(a, (size_t)p->count + 1, uint64_t);
    if (!s->waits || !s->first || !s->child || !s->next || !s->arrival || !find_children(s))
        return false;
    for (uint32_t k = 0; k < p->count; k++) {
        const uint32_t item = p->by_id[k];
        if (chakra_is_written(p, item) && s->waits[item] == 0)
            make_ready(s, item);
    }
    return s->has_memory;
}

orr_code chakra_simulate(const orr_linked *l, orr_line_sink say, void *sink, orr_error *err)
{
    chakra_plan p;
    orr_code code = chakra_plan_make(l, &p, err);
    if (code)
        return code;
    player s = {.p = &p,
                .host = {0, CHAKRA_NONE, CHAKRA_NONE, CHAKRA_NONE, 0, 0},
                .say = say,
                .sink = sink,
                .has_memory = true};
    s.has_memory = prepare(&s);
    if (s.has_memory)
        play(&s);
    const bool is_whole = s.has_memory && !s.line.failed;
    orr_free(s.lanes);
    orr_free(s.issued);
    orr_buf_fini(&s.line);
    chakra_plan_end(&p);
    return is_whole ? ORR_OK : orr_no_memory(err);
}
