/* SPDX-License-Identifier: Apache-2.0 */
/* htsim_topo.c - htsim's .topo files: a fat tree as radixes, speeds and latencies of its tiers.
 *
 *      core0 ... coreC          tier 2: pod p's a-th agg has cores a, a + A, a + 2A, ...
 *       |      \
 *      agg0 .. aggA | ...       tier 1: each tor with each agg of its pod (of two tiers: with every agg)
 *       |   X    |
 *      tor0 .. torT | ...       tier 0: hosts in order
 *
 * htsim counts switches from bandwidths and compares with the radixes; here they are counted from
 * the radixes, and the bandwidths must agree with Oversubscribed: the same files pass, and an error
 * names the inconsistent number.  (Except if tiers differ in speed: htsim's ratio is that of the
 * radixes alone.) The switch latency is split between its cables, half each: every route through
 * the switch pays it once. */
#include "topology_kinds.h"

#include "base/text/text.h"
#include "models/network/words.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

enum { MOST_TIERS = 3, MOST_RADIX = ORR__MOST_RANKS };

typedef struct tier {
    bool is_given;
    uint32_t line;
    double speed_gbps, latency_ns, switch_ns;
    uint64_t radix_down, radix_up, bundle, oversubscribed, queue_down, queue_up;
    uint32_t set; /* one bit per row of the table below */
} tier;

typedef struct tree {
    uint64_t nodes, tiers, podsize;
    tier at[MOST_TIERS];
    uint64_t pods, tors, aggs, cores; /* tors and aggs a pod */
    orr_where where;                  /* the file */
} tree;

/* ---- words ---- */

typedef struct tier_key {
    const char *name, *what;
    bool is_real;
    double min, max;
    size_t at; /* in tier: a double or a uint64_t */
} tier_key;

static const tier_key tier_keys[] = {
    {"downlink_speed_gbps", "a speed in Gb/s", true, 0.001, 1e6, offsetof(tier, speed_gbps)},
    {"downlink_latency_ns", "a latency in ns", true, 0, 1e12, offsetof(tier, latency_ns)},
    {"switch_latency_ns", "a latency in ns", true, 0, 1e12, offsetof(tier, switch_ns)},
    {"radix_down", "a number of ports", false, 1, MOST_RADIX, offsetof(tier, radix_down)},
    {"radix_up", "a number of ports", false, 1, MOST_RADIX, offsetof(tier, radix_up)},
    {"bundle", "a number of cables", false, 1, MOST_RADIX, offsetof(tier, bundle)},
    {"oversubscribed", "a ratio", false, 1, MOST_RADIX, offsetof(tier, oversubscribed)},
    {"queue_down", "a number of bytes", false, 1, 1e15, offsetof(tier, queue_down)},
    {"queue_up", "a number of bytes", false, 1, 1e15, offsetof(tier, queue_up)},
};

enum { TIER_KEYS = sizeof tier_keys / sizeof *tier_keys, SPEED = 0, LATENCY = 1, DOWN = 3, UP = 4 };

/* Keys may be written in any case. */
static bool is_key(orr_str s, const char *name)
{
    size_t i = 0;
    for (; i < s.len && name[i]; i++) {
        const char c = s.ptr[i];
        if ((c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c) != name[i])
            return false;
    }
    return i == s.len && !name[i];
}

static orr_code twice(const orr__words *w, orr_str key, orr_error *err)
{
    const orr_where where = orr__words_where(w);
    return orr_fail(err, ORR_EINPUT, &where, "duplicate %.*s", (int)key.len, key.ptr);
}

static orr_code read_tier_key(tier *t, unsigned row, orr_str key, orr__words *w, orr_error *err)
{
    const tier_key *k = &tier_keys[row];
    void *at = (char *)t + k->at;
    if (t->set >> row & 1)
        return twice(w, key, err);
    t->set |= 1u << row;
    if (k->is_real)
        return orr__words_real(w, k->what, k->min, k->max, at, err);
    return orr__words_u64(w, k->what, (uint64_t)k->min, (uint64_t)k->max, at, err);
}

static orr_code read_head_key(
    uint64_t *to, uint64_t min, uint64_t max, orr_str key, orr__words *w, orr_error *err)
{
    return *to ? twice(w, key, err) : orr__words_u64(w, "a number", min, max, to, err);
}

static orr_code open_tier(tree *t, tier **now, orr__words *w, orr_error *err)
{
    uint64_t number = 0;
    const orr_code code =
        orr__words_u64(w, "the number of a tier", 0, MOST_TIERS - 1, &number, err);
    if (code)
        return code;
    *now = &t->at[number];
    if ((*now)->is_given) {
        const orr_where where = orr__words_where(w);
        return orr_fail(err, ORR_EINPUT, &where, "duplicate tier %u", (unsigned)number);
    }
    (*now)->is_given = true;
    (*now)->line = w->word_line;
    return ORR_OK;
}

static orr_code read_key(tree *t, tier **now, orr_str key, orr__words *w, orr_error *err)
{
    if (is_key(key, "nodes"))
        return read_head_key(&t->nodes, 2, ORR__MOST_RANKS, key, w, err);
    if (is_key(key, "tiers"))
        return read_head_key(&t->tiers, 2, MOST_TIERS, key, w, err);
    if (is_key(key, "podsize"))
        return read_head_key(&t->podsize, 1, ORR__MOST_RANKS, key, w, err);
    if (is_key(key, "tier"))
        return open_tier(t, now, w, err);
    const orr_where where = orr__words_where(w);
    for (unsigned i = 0; i < TIER_KEYS; i++) {
        if (!is_key(key, tier_keys[i].name))
            continue;
        return *now ? read_tier_key(*now, i, key, w, err)
                    : orr_fail(err, ORR_EINPUT, &where, "%.*s stands before the first Tier",
                               (int)key.len, key.ptr);
    }
    return orr_fail(err, ORR_EINPUT, &where, "\"%.*s\" is not a key of a .topo file",
                    (int)(key.len < 60 ? key.len : 60), key.ptr);
}

static orr_code read_tree(tree *t, orr_span bytes, const char *path, orr_error *err)
{
    orr__words w;
    orr_str key;
    tier *now = NULL;
    orr_code code = ORR_OK;
    orr__words_init(&w, bytes, path);
    for (unsigned i = 0; i < MOST_TIERS; i++)
        t->at[i].bundle = t->at[i].oversubscribed = 1;
    while (!code && orr__words_next(&w, &key)) {
        if (key.ptr[0] == '#')
            orr__words_skip_line(&w);
        else
            code = read_key(t, &now, key, &w, err);
    }
    return code;
}

/* ---- is it a tree? ---- */

static orr_code odd(const tree *t, unsigned k, orr_error *err, const char *words)
{
    const orr_where w = orr_where_line(t->where.path, t->at[k].line, 1);
    return orr_fail(err, ORR_EINPUT, &w, "tier %u: %s", k, words);
}

static orr_code check_head(const tree *t, orr_error *err)
{
    const char *missing = !t->nodes     ? "Nodes"
                          : !t->tiers   ? "Tiers"
                          : !t->podsize ? "Podsize"
                                        : NULL;
    if (missing)
        return orr_fail(err, ORR_EINPUT, &t->where, "the key %s is missing", missing);
    if (t->nodes % t->podsize)
        return orr_fail(err, ORR_EINPUT, &t->where,
                        "Nodes %" PRIu64 " is not a multiple of Podsize %" PRIu64, t->nodes,
                        t->podsize);
    if (t->tiers == 2 && t->nodes != t->podsize)
        return orr_fail(err, ORR_EINPUT, &t->where,
                        "two tiers are one pod: Podsize is %" PRIu64 " and Nodes %" PRIu64,
                        t->podsize, t->nodes);
    return ORR_OK;
}

static orr_code check_tier(const tree *t, unsigned k, orr_error *err)
{
    static const unsigned needed[] = {SPEED, LATENCY, DOWN, UP};
    const tier *own = &t->at[k];
    char words[120];
    if (!own->is_given)
        return orr_fail(err, ORR_EINPUT, &t->where, "there is no Tier %u, of %" PRIu64 " tiers", k,
                        t->tiers);
    for (unsigned i = 0; i < sizeof needed / sizeof *needed; i++) {
        if (own->set >> needed[i] & 1 || (needed[i] == UP && k + 1 == t->tiers))
            continue;
        snprintf(words, sizeof words, "the key %s is missing", tier_keys[needed[i]].name);
        return odd(t, k, err, words);
    }
    if (k + 1 == t->tiers && own->set >> UP & 1)
        return odd(t, k, err, "radix_up: there is nothing above the last tier");
    if (own->radix_down % own->bundle)
        return odd(t, k, err, "radix_down is not a multiple of bundle");
    return ORR_OK;
}

/* The capacity up from a tier must match that from below, by the given ratio; and so must the ports
 * above. */
static orr_code check_between(const tree *t, unsigned k, uint64_t below, orr_error *err)
{
    const tier *own = &t->at[k], *above = &t->at[k + 1];
    const double down = (double)own->radix_down * own->speed_gbps;
    const double up = (double)own->radix_up * above->speed_gbps;
    char words[200];
    if (own->radix_up % above->bundle)
        return odd(t, k, err, "radix_up is not a multiple of the bundle of the tier above");
    if (fabs(down - up * (double)own->oversubscribed) > 1e-9 * down) {
        snprintf(words, sizeof words,
                 "%" PRIu64 " x %g Gb/s down and %" PRIu64 " x %g Gb/s up are %g to 1; "
                 "oversubscribed is %" PRIu64,
                 own->radix_down, own->speed_gbps, own->radix_up, above->speed_gbps, down / up,
                 own->oversubscribed);
        return odd(t, k, err, words);
    }
    if (above->radix_down != below * above->bundle) {
        snprintf(words, sizeof words,
                 "radix_down is %" PRIu64 ", but %" PRIu64 " switches below have %" PRIu64
                 " cables each to it",
                 above->radix_down, below, above->bundle);
        return odd(t, k + 1, err, words);
    }
    return ORR_OK;
}

static orr_code count_switches(tree *t, orr_error *err)
{
    orr_code code = check_head(t, err);
    for (unsigned k = 0; k < t->tiers && !code; k++)
        code = check_tier(t, k, err);
    if (code)
        return code;
    if (t->at[0].bundle != 1)
        return odd(t, 0, err, "bundle: a host has one cable");
    if (t->podsize % t->at[0].radix_down)
        return odd(t, 0, err, "Podsize is not a multiple of radix_down");
    t->pods = t->nodes / t->podsize;
    t->tors = t->podsize / t->at[0].radix_down;
    code = check_between(t, 0, t->tors, err);
    t->aggs = t->at[0].radix_up / t->at[1].bundle;
    if (code || t->tiers == 2)
        return code;
    code = check_between(t, 1, t->pods, err);
    t->cores = t->aggs * (t->at[1].radix_up / t->at[2].bundle);
    return code;
}

/* ---- the network ---- */

static orr_code add_switches(orr__topology *t, const char *name, uint64_t count, orr_error *err)
{
    char text[NET_DEVICE_NAME];
    orr_code code = ORR_OK;
    for (uint64_t i = 0; i < count && !code; i++) {
        snprintf(text, sizeof text, "%s%" PRIu64, name, i);
        code = orr__topology_add_switch(t, orr_str_of(text), NULL, err);
    }
    return code;
}

/* The cables between tier k and the one below. */
static orr_code join(
    orr__topology *t, const tree *r, unsigned k, uint64_t a, uint64_t b, orr_error *err)
{
    const tier *own = &r->at[k];
    const double inside = (own->switch_ns + (k ? r->at[k - 1].switch_ns : 0)) / 2;
    const orr__wire link = {.from = (uint32_t)a,
                            .to = (uint32_t)b,
                            .cost = 1,
                            .speed = own->speed_gbps / 8,
                            .latency = own->latency_ns + inside};
    orr_code code = ORR_OK;
    for (uint64_t i = 0; i < own->bundle && !code; i++)
        code = orr__topology_add_cable(t, &link, err);
    return code;
}

static orr_code add_links(orr__topology *t, const tree *r, orr_error *err)
{
    const uint64_t tor = r->nodes, agg = tor + r->tors * r->pods, core = agg + r->aggs * r->pods;
    const uint64_t ups = r->aggs ? r->cores / r->aggs : 0;
    orr_code code = ORR_OK;
    for (uint64_t h = 0; h < r->nodes && !code; h++)
        code = join(t, r, 0, h, tor + h / r->at[0].radix_down, err);
    for (uint64_t i = 0; i < r->pods * r->tors * r->aggs && !code; i++)
        code = join(t, r, 1, tor + i / r->aggs,
                    agg + i / (r->tors * r->aggs) * r->aggs + i % r->aggs, err);
    for (uint64_t i = 0; i < r->pods * r->aggs * ups && !code; i++)
        code = join(t, r, 2, agg + i / ups, core + i / ups % r->aggs + r->aggs * (i % ups), err);
    return code;
}

/* Checked first: the product of radixes may exceed any memory. */
static bool is_small(const orr__topology *t, const tree *r)
{
    const uint64_t most = t->most_links, aggs = r->aggs * r->pods;
    if (r->nodes > most || aggs > most || r->cores > most)
        return false;
    const uint64_t links = r->nodes + r->tors * r->pods * r->at[0].radix_up;
    return links <= most && links + (r->cores ? aggs * r->at[1].radix_up : 0) <= most / 2;
}

static orr_code build(orr__topology *t, const tree *r, orr_error *err)
{
    if (!is_small(t, r))
        return orr_fail(err, ORR_EINPUT, &r->where, "this makes more than %zu cables",
                        t->most_links / 2);
    t->ranks = t->npus[0] = (uint32_t)r->nodes;
    t->dims = 1;
    t->ranks_forward = false;
    orr_code code = add_switches(t, "tor", r->tors * r->pods, err);
    if (!code)
        code = add_switches(t, "agg", r->aggs * r->pods, err);
    if (!code)
        code = add_switches(t, "core", r->cores, err);
    if (!code)
        code = add_links(t, r, err);
    if (code == ORR_EINPUT && err && !err->where.path[0])
        err->where = r->where;
    return code;
}

orr_code orr__htsim_topo_parse(
    orr_span bytes, const char *path, size_t most_links, orr__topology **out, orr_error *err)
{
    tree r = {.where = orr_where_byte(path, ORR_NO_BYTE)};
    *out = NULL;
    orr_code code = read_tree(&r, bytes, path, err);
    if (!code)
        code = count_switches(&r, err);
    if (!code && !(code = orr__topology_create(out, err))) {
        (*out)->most_links = most_links;
        code = build(*out, &r, err);
    }
    if (code) {
        orr__topology_destroy(*out);
        *out = NULL;
    }
    return code;
}

/* ---- failures ---- */

static bool find_switch(const orr__topology *t, const char *name, uint64_t number, uint32_t *device)
{
    char text[NET_DEVICE_NAME];
    uint32_t found;
    snprintf(text, sizeof text, "%s%" PRIu64, name, number);
    if (!orr_intern_find(t->switches, orr_str_of(text), &found))
        return false;
    *device = t->ranks + found;
    return true;
}

orr_code orr__htsim_topo_fail(
    orr__topology *t, uint64_t agg, uint64_t link, const orr_where *where, orr_error *err)
{
    uint32_t from, core, last = UINT32_MAX;
    uint64_t at = 0;
    if (!find_switch(t, "agg", agg, &from) || !find_switch(t, "core", 0, &core))
        return orr_fail(err, ORR_EINPUT, where,
                        "there is no aggregation switch %" PRIu64 " below core switches", agg);
    for (size_t i = 0; i < t->link_count; i++) {
        orr__wire *l = &t->links[i];
        if (l->from != from || l->to < core || l->to == last)
            continue;
        last = l->to;
        if (at++ < link)
            continue;
        l->is_failed = t->links[i ^ 1].is_failed = true; /* a cable is two adjacent links */
        return ORR_OK;
    }
    return orr_fail(err, ORR_EINPUT, where,
                    "aggregation switch %" PRIu64 " has %" PRIu64
                    " core switches, no link %" PRIu64,
                    agg, at, link);
}
