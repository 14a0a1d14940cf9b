/* SPDX-License-Identifier: Apache-2.0 */
/* old_output.c - the output of LogGOPSim, byte for byte (goal.md 3.2, 3.7 and 3.8). */
#include "loggopsim.h"

#include "base/io/output.h"
#include "base/memory/sort.h"

#include <stdio.h>
#include <stdlib.h>

enum { SMALL_RUN = 16, SMALL_NOISE = 64 };

typedef unsigned long long ull;

static orr_code save(orr_buf *b, const char *path, orr_error *err)
{
    orr_output *out;
    orr_code code = b->failed ? orr_no_memory(err) : orr_output_open(path, &out, err);
    if (!code) {
        orr_output_drain(out, b);
        code = orr_output_commit(&out, err);
    }
    orr_buf_fini(b);
    return code;
}

static bool is_atlahs(const lgs_sim *s)
{
    return s->rules == &lgs_atlahs_rules;
}

/* ---- standard output */

static void put_head(const lgs_sim *s, orr_buf *b)
{
    const lgs_options *o = &s->opt;
    const bool is_late = is_atlahs(s);
    char G[32];
    if (is_late)
        snprintf(G, sizeof G, "%f", o->G);
    else
        snprintf(G, sizeof G, "%llu", (ull)s->G_whole);
    if (is_late)
        orr_buf_text(b, "The schedule will be valid after this simulation!\n");
    else
        orr_buf_text(b,
                     lgs_extra(s)->links ? "Simple network backend; " : "LogGP network backend; ");
    orr_buf_print(
        b, "size: %u (%u CPUs, %u NICs); L=%llu, o=%llu g=%llu, G=%s, O=%llu, P=%u, S=%u\n",
        s->hosts, s->cpus, s->nics, (ull)o->L, (ull)o->o, (ull)o->g, G, (ull)o->O, s->hosts, o->S);
    if (s->noise)
        orr_buf_print(b, "Noisegen: read %zu noise events spanning %gs (%s)\n",
                      lgs_noise_samples(s->noise), (double)lgs_noise_span(s->noise) / 1e9,
                      o->has_common_noise ? "coscheduling" : "independent");
}

static void put_performance(const lgs_sim *s, orr_buf *b, double seconds)
{
    const ull whole = (ull)seconds;
    const float speed = whole ? (float)s->events / (float)whole : 0;
    orr_buf_print(b, "PERFORMANCE: Processes: %u \t Events: %llu \t Time: %llu s \t ", s->hosts,
                  (ull)s->events, whole);
    if (whole)
        orr_buf_print(b, "Speed: %.2f ev/s\n", (double)speed);
    else
        orr_buf_text(b, s->events ? "Speed: inf ev/s\n" : "Speed: -nan ev/s\n");
    char average[64];
    if (is_atlahs(s))
        orr_buf_print(b, "Average FCT is %s\n", lgs_atlahs_average(s, average, sizeof average));
}

static void put_times(const lgs_sim *s, orr_buf *b, bool is_batch)
{
    if (s->hosts <= SMALL_RUN && !is_batch) {
        orr_buf_text(b, "Times: \n");
        for (uint32_t r = 0; r < s->hosts; r++)
            orr_buf_print(b, "Host %u: %llu\n", r, (ull)lgs_finished_at(s, r));
        return;
    }
    uint64_t latest = 0;
    uint32_t host = 0;
    for (uint32_t r = 0; r < s->hosts; r++) {
        const uint64_t at = lgs_finished_at(s, r);
        if (at > latest) {
            latest = at;
            host = r;
        }
    }
    orr_buf_print(b, "Maximum finishing time at host %u: %llu (%g s)\n", host, (ull)latest,
                  (double)latest / 1e9);
}

/* ---- what is left in queues */

typedef struct lgs_left {
    uint64_t number;
    lgs_key key;
    uint8_t side; /* unexpected messages first */
} lgs_left;

static int by_host(const void *a, const void *b)
{
    const lgs_left *x = a, *y = b;
    if (x->key.host != y->key.host)
        return x->key.host < y->key.host ? -1 : 1;
    if (x->side != y->side)
        return x->side > y->side ? -1 : 1;
    return (x->number > y->number) - (x->number < y->number);
}

static lgs_left *collect_left(const lgs_sim *s, size_t *count)
{
    const lgs_match *m = &s->match;
    size_t n = 0, room = 0;
    lgs_left *all = NULL;
    for (size_t i = 0; i < m->slot_count; i++) {
        const lgs_slot *slot = &m->slots[i];
        const uint32_t last = slot->last & 0x7fffffffu;
        for (uint32_t e = last ? s->queue.events[last].next : 0; e;) {
            if (!orr_grow(&all, &room, n + 1)) {
                orr_free(all);
                return NULL;
            }
            all[n++] =
                (lgs_left){s->queue.events[e].number, slot->key, (uint8_t)(slot->last >> 31)};
            e = e == last ? 0 : s->queue.events[e].next;
        }
    }
    if (n)
        orr_sort(all, n, sizeof *all, by_host);
    *count = n;
    return all;
}

bool lgs_put_left(const lgs_sim *s, orr_buf *b)
{
    size_t count = 0;
    lgs_left *all = s->match.used ? collect_left(s, &count) : NULL;
    if (s->match.used && !all)
        b->failed = true;
    for (size_t i = 0; i < count;) {
        size_t n = i;
        while (n < count && all[n].key.host == all[i].key.host && all[n].side == all[i].side)
            n++;
        orr_buf_print(b, "%s queue on host %u contains %zu elements!\n",
                      all[i].side ? "unexpected" : "receive", all[i].key.host, n - i);
        for (; i < n; i++)
            orr_buf_print(b, " src: %d, tag: %d\n", (int32_t)all[i].key.source,
                          (int32_t)all[i].key.tag);
    }
    orr_free(all);
    return count != 0;
}

static orr_code write_lines(const lgs_sim *s, const char *path, bool is_batch, orr_error *err)
{
    orr_buf b = {0};
    if (!lgs_extra(s))
        return orr_fail(err, ORR_EUSAGE, NULL,
                        "only runs by the rules of LogGOPSim have its lines");
    put_head(s, &b);
    if (lgs_extra(s)->talk.len)
        orr_buf_add(&b, lgs_extra(s)->talk.ptr, lgs_extra(s)->talk.len);
    put_performance(s, &b, s->seconds);
    /* ATLAHS does not check its queues. */
    if (is_atlahs(s) || !lgs_put_left(s, &b))
        put_times(s, &b, is_batch);
    if (s->noise && s->hosts <= SMALL_NOISE) {
        orr_buf_text(&b, "noise per rank: ");
        for (uint32_t r = 0; r < s->hosts; r++)
            orr_buf_print(&b, "%llu,", (ull)lgs_noise_total(s->noise, r));
    }
    if (s->noise)
        orr_buf_byte(&b, '\n');
    return save(&b, path, err);
}

static orr_code write_log(const lgs_sim *s, const char *path, orr_error *err)
{
    return write_lines(s, path, false, err);
}

static orr_code write_batch_log(const lgs_sim *s, const char *path, orr_error *err)
{
    return write_lines(s, path, true, err);
}

/* ---- the timeline for DrawViz */

/* ATLAHS stores times in 32 bits. */
static long long viz_time(const lgs_sim *s, uint64_t t)
{
    return is_atlahs(s) ? (int32_t)(uint32_t)t : (long long)t;
}

static void put_span(const lgs_sim *s, orr_buf *b, const lgs_span *v)
{
    static const char *const words[] = {"loclop", "osend", "orecv", "noise"};
    static const char *const colours[] = {"1 0 0", "0 0 1", "0 0 1", "0 1 0"};
    const long long start = viz_time(s, v->start), end = viz_time(s, v->end);
    if (v->kind == LGS_SPAN_WIRE)
        orr_buf_print(b, "transmission %u %u %lld %lld %lld %llu 0 0 1;\n", v->host, v->peer, start,
                      end, (long long)(int32_t)(uint32_t)v->size, (ull)s->G_whole);
    else
        orr_buf_print(b, "%s %u %u %lld %lld %s;\n", words[v->kind], v->host, v->cpu, start, end,
                      colours[v->kind]);
}

static orr_code write_viz(const lgs_sim *s, const char *path, orr_error *err)
{
    if (!s->opt.keeps_spans)
        return orr_fail(err, ORR_EUSAGE, NULL, "this run kept no spans");
    orr_buf b = {0};
    orr_buf_print(&b, "numranks %u;\n", s->hosts);
    for (size_t i = 0; i < s->watch->span_count; i++)
        put_span(s, &b, &s->watch->spans[i]);
    return save(&b, path, err);
}

/* ---- queue lengths */

static orr_code write_longest(const lgs_sim *s, lgs_side side, const char *path, orr_error *err)
{
    orr_buf b = {0};
    for (uint32_t r = 0; r < s->hosts; r++)
        orr_buf_print(&b, "%u\n", s->watch->longest[side][r]);
    return save(&b, path, err);
}

static int by_rank(const void *a, const void *b)
{
    const lgs_search *const *x = a, *const *y = b;
    if ((*x)->host != (*y)->host)
        return (*x)->host < (*y)->host ? -1 : 1;
    return *x < *y ? -1 : 1;
}

static orr_code write_searches(
    const lgs_sim *s, lgs_side side, bool is_hit, const char *path, orr_error *err)
{
    const lgs_watch *w = s->watch;
    const lgs_search **list = orr_alloc(w->search_count, sizeof *list);
    if (!list)
        return orr_no_memory(err);
    size_t n = 0;
    for (size_t i = 0; i < w->search_count; i++) {
        if (w->searches[i].side == side && w->searches[i].is_hit == is_hit)
            list[n++] = &w->searches[i];
    }
    if (n)
        orr_sort(list, n, sizeof *list, by_rank);
    orr_buf b = {0};
    size_t at = 0;
    for (uint32_t r = 0; r < s->hosts; r++) {
        for (; at < n && list[at]->host == r; at++)
            orr_buf_print(&b, "%u,%llu ", list[at]->depth, (ull)list[at]->time);
        orr_buf_byte(&b, '\n');
    }
    orr_free(list);
    return save(&b, path, err);
}

static orr_code write_queues(const lgs_sim *s, const char *prefix, orr_error *err)
{
    static const char *const names[] = {"rq", "uq"};
    orr_code code = ORR_OK;
    if (!s->opt.keeps_queues)
        return orr_fail(err, ORR_EUSAGE, NULL, "this run kept no lengths of queues");
    for (int side = 0; side < 2 && !code; side++) {
        char path[4096];
        snprintf(path, sizeof path, "%s-%s-max.data", prefix, names[side]);
        code = write_longest(s, (lgs_side)side, path, err);
        for (int hit = 0; hit < 2 && !code; hit++) {
            snprintf(path, sizeof path, "%s-%s-%s.data", prefix, names[side], hit ? "hit" : "miss");
            code = write_searches(s, (lgs_side)side, hit, path, err);
        }
    }
    return code;
}

/* ---- matched pairs */

static orr_code write_pairs(const lgs_sim *s, const char *path, orr_error *err)
{
    if (!s->opt.keeps_pairs)
        return orr_fail(err, ORR_EUSAGE, NULL, "this run kept no pairs of sends and receives");
    orr_buf b = {0};
    for (size_t i = 0; i < s->watch->pair_count; i++) {
        const lgs_pair *p = &s->watch->pairs[i];
        orr_buf_print(&b, "%u,%u,%u,%u\n", p->from, p->send, p->to, p->recv);
    }
    return save(&b, path, err);
}

const lgs_writer lgs_writers[] = {
    {"log", write_log},       {"log-batch", write_batch_log}, {"viz", write_viz},
    {"queues", write_queues}, {"pairs", write_pairs},         {NULL, NULL},
};
