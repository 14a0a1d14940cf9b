/* SPDX-License-Identifier: Apache-2.0 */
/* nccl_model.c - choice and time together.
 *
 * NCCL's choice jumps from way to way as bytes grow, and a later way may be faster than the one
 * before it: without care more bytes would take less time.  So the sizes where the choice changes
 * are walked from small to large, and the time is the largest so far.  Inside a power of two all
 * tuning lines are straight, so the lowest is found by crossings alone. */
#include "models/collective/nccl/nccl_model.h"

#include "models/collective/nccl/nccl_parts.h"

#include <math.h>
#include <string.h>
#include <strings.h>

const char *const nccl_algorithm_words[NCCL_ALGORITHMS + 1] = {
    "ring", "tree", "nvls", "nvls-tree", "collnet-direct", "collnet-chain", "pat", "direct", NULL,
};
const char *const nccl_protocol_words[NCCL_PROTOCOLS + 1] = {"LL", "LL128", "Simple", NULL};

nccl_generation nccl_generation_of(const char *name)
{
    static const struct {
        const char *part;
        nccl_generation generation;
    } parts[] = {
        {"volta", NCCL_VOLTA},     {"v100", NCCL_VOLTA},     {"ampere", NCCL_AMPERE},
        {"a100", NCCL_AMPERE},     {"a800", NCCL_AMPERE},    {"hopper", NCCL_HOPPER},
        {"h100", NCCL_HOPPER},     {"h200", NCCL_HOPPER},    {"h800", NCCL_HOPPER},
        {"h20", NCCL_HOPPER},      {"gh200", NCCL_HOPPER},   {"blackwell", NCCL_BLACKWELL},
        {"b200", NCCL_BLACKWELL},  {"b300", NCCL_BLACKWELL}, {"gb200", NCCL_BLACKWELL},
        {"gb300", NCCL_BLACKWELL}, {"b100", NCCL_BLACKWELL},
    };
    for (size_t i = 0; name && i < sizeof parts / sizeof *parts; i++) {
        size_t length = strlen(parts[i].part);
        for (const char *at = name; *at; at++) {
            /* A whole word: "gh200" is not "h200" of a longer one, but both are Hopper. */
            if (strncasecmp(at, parts[i].part, length) == 0)
                return parts[i].generation;
        }
    }
    return NCCL_OTHER;
}

/* False: the shape is none. */
static bool normal(const nccl_shape *in, nccl_shape *out)
{
    *out = *in;
    if (in->ranks == 0 || in->generation < 0 || in->generation >= NCCL_GENERATIONS)
        return false;
    if (out->nodes == 0)
        out->nodes = 1;
    if (out->nodes > out->ranks)
        return false;
    if (out->nodes == 1)
        out->most_per_node = out->least_per_node = out->ranks;
    if (out->nodes == out->ranks)
        out->most_per_node = out->least_per_node = 1;
    if (out->most_per_node == 0)
        out->most_per_node = (out->ranks + out->nodes - 1) / out->nodes;
    if (out->least_per_node == 0)
        out->least_per_node = out->ranks / out->nodes;
    if (!(in->up_GBps > 0) && out->most_per_node > 1) { /* everything goes through the NICs */
        out->nodes = out->ranks;
        out->most_per_node = out->least_per_node = 1;
        out->up_reduces = false;
    }
    if (out->least_per_node > out->most_per_node)
        return false;
    return out->ranks == 1 || out->nodes == 1 || out->out_GBps > 0;
}

static uint32_t keep_forced(const nccl_forced *forced, nccl_tuned *ways, uint32_t count)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < count; i++) {
        nccl_way w = ways[i].way;
        if (forced && forced->algorithm &&
            strcasecmp(forced->algorithm, nccl_algorithm_words[w.algorithm]))
            continue;
        if (forced && forced->protocol &&
            strcasecmp(forced->protocol, nccl_protocol_words[w.protocol]))
            continue;
        ways[kept++] = ways[i];
    }
    return kept;
}

/* Off by default in NCCL, whatever the switches can do. */
static bool wants_collnet(const nccl_forced *forced)
{
    return forced && (forced->collnet ||
                      (forced->algorithm && strncasecmp(forced->algorithm, "collnet", 7) == 0));
}

typedef struct lines {
    const nccl_shape *s;
    orr_collective kind;
    nccl_tuned ways[NCCL_WAYS_MOST];
    uint32_t count;
} lines;

/* The line lowest at `bytes`; corrections of the power of two `power`.  *until: where another gets
 * lower, or infinity. */
static uint32_t lowest(const lines *l, double bytes, uint64_t power, double *until)
{
    double rate[NCCL_WAYS_MOST], best_us = INFINITY;
    uint32_t best = 0;
    for (uint32_t i = 0; i < l->count; i++) {
        double us;
        rate[i] = 1000 * l->ways[i].GBps * nccl_correction(l->s, l->ways[i].way, l->kind, power);
        us = l->ways[i].us + bytes / rate[i];
        /* Where two meet, the one with the higher rate goes on. */
        if (us < best_us * (1 - 1e-12) || (us <= best_us * (1 + 1e-12) && rate[i] > rate[best])) {
            best = i;
            best_us = us < best_us ? us : best_us;
        }
    }
    *until = INFINITY;
    for (uint32_t i = 0; i < l->count; i++) {
        if (rate[i] > rate[best]) {
            double meet = (l->ways[i].us - l->ways[best].us) / (1 / rate[best] - 1 / rate[i]);
            if (meet > bytes && meet < *until)
                *until = meet;
        }
    }
    return best;
}

/* The way at `bytes`, and the largest time of smaller sizes in *floor_ns. */
static uint32_t walk(
    const nccl_constants *k, const lines *l, double bytes, uint32_t channels, double *floor_ns)
{
    double at = 0;
    uint32_t best = 0, before = UINT32_MAX;
    *floor_ns = 0;
    for (uint64_t power = 32;; power *= 2) {
        /* Above 2^32 nothing is corrected: one stretch to the end. */
        double end = power < (1ull << 32) ? (double)(power * 2) : INFINITY;
        for (;;) {
            double until;
            best = lowest(l, at, power, &until);
            if (before != UINT32_MAX && before != best) {
                nccl_time t;
                nccl_time_of(k, l->s, l->kind, at, l->ways[before].way, channels, &t);
                *floor_ns = t.ns > *floor_ns ? t.ns : *floor_ns;
            }
            before = best;
            if (bytes < until && bytes < end)
                return best;
            if (until >= end)
                break;
            at = until;
        }
        at = end;
    }
}

/* The rule of the table that fits, as an index into l->ways; UINT32_MAX: none.  Rules for smaller
 * sizes raise *floor_ns to what they take where they end. */
static uint32_t by_rule(
    const nccl_custom *c, const lines *l, double bytes, uint32_t channels, double *floor_ns)
{
    *floor_ns = 0;
    for (uint32_t i = 0; i < c->rules; i++) {
        const nccl_rule *r = &c->rule[i];
        uint32_t at = 0;
        nccl_time t;
        if (r->kind != l->kind || l->s->ranks < r->least_ranks || l->s->ranks > r->most_ranks ||
            l->s->nodes < r->least_nodes || l->s->nodes > r->most_nodes)
            continue;
        while (at < l->count && (l->ways[at].way.algorithm != r->way.algorithm ||
                                 l->ways[at].way.protocol != r->way.protocol))
            at++;
        if (at == l->count)
            continue;
        if (r->below == UINT64_MAX || bytes < (double)r->below)
            return at;
        nccl_time_of(&c->k, l->s, l->kind, (double)r->below, r->way, channels, &t);
        *floor_ns = t.ns > *floor_ns ? t.ns : *floor_ns;
    }
    return UINT32_MAX;
}

static void interval(const nccl_constants *k,
                     const nccl_shape *s,
                     orr_collective kind,
                     double bytes,
                     nccl_way way,
                     nccl_cost *out)
{
    int at = nccl_size_class(bytes);
    double low = log(k->spread[at].low), high = log(k->spread[at].high), wide = 1;
    bool measured = kind == ORR_COLL_ALL_REDUCE || kind == ORR_COLL_ALL_GATHER ||
                    kind == ORR_COLL_REDUCE_SCATTER || kind == ORR_COLL_ALL_TO_ALL;
    out->extrapolates = k->rows == 0 || s->nodes > 1 || !measured || s->ranks > k->ranks_most ||
                        bytes > 4.0 * (double)k->bytes_most ||
                        (way.algorithm != NCCL_RING && way.algorithm != NCCL_DIRECT);
    if (s->nodes > 1)
        wide += 1;
    if (k->rows && out->extrapolates)
        wide += 0.5;
    out->low_ns = out->time_ns * exp(low * wide);
    out->high_ns = out->time_ns * exp(high * wide);
}

bool nccl_cost_of(const nccl_shape *given,
                  orr_collective kind,
                  uint64_t bytes,
                  const nccl_forced *forced,
                  nccl_cost *out)
{
    nccl_shape s;
    lines l;
    nccl_time t;
    double floor_ns = 0, rule_ns = 0;
    uint32_t best, channels = forced ? forced->channels : 0;
    *out = (nccl_cost){.algorithm = "none", .protocol = "none"};
    if (!normal(given, &s) || kind >= ORR_COLL_COUNT)
        return false;
    const nccl_custom *custom = forced && forced->table ? forced->table : s.table;
    if (custom)
        s.generation = custom->generation;
    if (!wants_collnet(forced))
        s.out_reduces = false;
    if (kind == ORR_COLL_REDUCE_SCATTER_BLOCK)
        kind = ORR_COLL_REDUCE_SCATTER;
    if (kind == ORR_COLL_BARRIER)
        bytes = 4;
    l.s = &s;
    l.kind = kind;
    l.count = keep_forced(forced, l.ways, s.ranks > 1 ? nccl_ways(&s, kind, l.ways) : 0);
    if (s.ranks == 1)
        return true;
    if (l.count == 0)
        return false;
    const nccl_constants *k = custom ? &custom->k : &nccl_table[s.generation];
    best = UINT32_MAX;
    if (custom && !(forced && (forced->algorithm || forced->protocol)))
        best = by_rule(custom, &l, (double)bytes, channels, &rule_ns);
    if (best == UINT32_MAX)
        best = walk(k, &l, (double)bytes, channels, &floor_ns);
    floor_ns = rule_ns > floor_ns ? rule_ns : floor_ns;
    nccl_time_of(k, &s, kind, (double)bytes, l.ways[best].way, channels, &t);
    out->algorithm = nccl_algorithm_words[l.ways[best].way.algorithm];
    out->protocol = nccl_protocol_words[l.ways[best].way.protocol];
    out->channels = t.channels;
    out->time_ns = t.ns > floor_ns ? t.ns : floor_ns;
    out->latency_ns = t.latency_ns;
    out->up_bytes = t.up_bytes;
    out->out_bytes = t.out_bytes;
    interval(k, &s, kind, (double)bytes, l.ways[best].way, out);
    return true;
}

bool nccl_send_cost_of(const nccl_shape *given,
                       uint64_t bytes,
                       const nccl_forced *forced,
                       nccl_cost *out)
{
    nccl_shape two = *given;
    two.ranks = 2;
    two.nodes = given->nodes > 1 || !(given->up_GBps > 0) ? 2 : 1;
    two.most_per_node = two.least_per_node = two.nodes == 1 ? 2 : 1;
    /* The gather of two: the root receives half of the bytes. */
    return nccl_cost_of(&two, ORR_COLL_GATHER, bytes > UINT64_MAX / 2 ? bytes : bytes * 2, forced,
                        out);
}
