/* SPDX-License-Identifier: Apache-2.0 */
/* nccl_custom.c - constants and choices of a user's file (docs/format/collectives.md).
 *
 * Missing values are the generation's.  Times have units; rates are fractions of a port's rate,
 * above 0 and at most 1, so that no file can make a collective faster than its bisection allows. */
#include "base/formats/yaml.h"
#include "base/io/input.h"
#include "base/memory/memory.h"
#include "base/text/text.h"
#include "models/collective/nccl/nccl_parts.h"

#include <orrery/lab/units.h>

#include <inttypes.h>
#include <math.h>
#include <string.h>

static const double most_ns = 1e9; /* 1 s */

static const char *const generation_words[] = {"other",  "volta",     "ampere",
                                               "hopper", "blackwell", NULL};
static const char *const kind_words[] = {
    [ORR_COLL_ALL_REDUCE] = "all_reduce",
    [ORR_COLL_REDUCE] = "reduce",
    [ORR_COLL_ALL_GATHER] = "all_gather",
    [ORR_COLL_GATHER] = "gather",
    [ORR_COLL_SCATTER] = "scatter",
    [ORR_COLL_BROADCAST] = "broadcast",
    [ORR_COLL_ALL_TO_ALL] = "alltoall",
    [ORR_COLL_REDUCE_SCATTER] = "reduce_scatter",
    NULL,
};

/* ---- reading ---- */

static orr_code take_ns(orr_yaml_value map, const char *key, double *out, orr_error *err)
{
    orr_yaml_value v;
    double ns = *out;
    orr_code code = orr_yaml_take_ns(map, key, &ns, err);
    if (!code && (ns < 0 || ns > most_ns) && orr_yaml_find(map, key, &v)) {
        const orr_where w = orr_yaml_where(v);
        code = orr_fail(err, ORR_EINPUT, &w, "%s: expected a time of at most 1s", key);
    }
    if (!code)
        *out = ns;
    return code;
}

static orr_code take_rate(orr_yaml_value map, const char *key, double *out, orr_error *err)
{
    return orr_yaml_take_number(map, key, 1e-6, 1, out, err);
}

static orr_code take_line(orr_yaml_value top, const char *word, nccl_line *line, orr_error *err)
{
    static const char *const keys[] = {"base",      "grow", "step", "step_grow", "out_step",
                                       "tree_step", "rate", "ends", "drain",     NULL};
    orr_yaml_value map;
    if (!orr_yaml_find(top, word, &map))
        return ORR_OK;
    orr_code code;
    if ((code = orr_yaml_check_keys(map, keys, err)) ||
        (code = take_ns(map, "base", &line->base_ns, err)) ||
        (code = take_ns(map, "grow", &line->grow_ns, err)) ||
        (code = take_ns(map, "step", &line->up_ns, err)) ||
        (code = take_ns(map, "step_grow", &line->up_grow_ns, err)) ||
        (code = take_ns(map, "out_step", &line->out_ns, err)) ||
        (code = take_ns(map, "tree_step", &line->tree_ns, err)) ||
        (code = take_rate(map, "rate", &line->rate, err)) ||
        (code = orr_yaml_take_number(map, "ends", 0, 100, &line->ends, err)))
        return code;
    return take_ns(map, "drain", &line->drain_ns, err);
}

static orr_code take_direct(orr_yaml_value top, nccl_constants *k, orr_error *err)
{
    static const char *const keys[] = {"base", "grow", "peer", "rate", "drain", NULL};
    orr_yaml_value map;
    if (!orr_yaml_find(top, "direct", &map))
        return ORR_OK;
    orr_code code;
    if ((code = orr_yaml_check_keys(map, keys, err)) ||
        (code = take_ns(map, "base", &k->direct_ns, err)) ||
        (code = take_ns(map, "grow", &k->direct_grow_ns, err)) ||
        (code = take_ns(map, "peer", &k->peer_ns, err)) ||
        (code = take_rate(map, "rate", &k->direct_rate, err)))
        return code;
    return take_ns(map, "drain", &k->direct_drain_ns, err);
}

static orr_code take_nvls(orr_yaml_value top, nccl_constants *k, orr_error *err)
{
    static const char *const keys[] = {"base", "turn", "rate", NULL};
    orr_yaml_value map;
    if (!orr_yaml_find(top, "nvls", &map))
        return ORR_OK;
    orr_code code;
    if ((code = orr_yaml_check_keys(map, keys, err)) ||
        (code = take_ns(map, "base", &k->nvls_ns, err)) ||
        (code = take_ns(map, "turn", &k->nvls_loop_ns, err)))
        return code;
    return take_rate(map, "rate", &k->nvls_rate, err);
}

/* interval: {small: {low: 0.9, high: 1.2}, ...} */
static orr_code take_interval(orr_yaml_value top, nccl_constants *k, orr_error *err)
{
    static const char *const keys[] = {"small", "middle", "large", NULL};
    static const char *const sides[] = {"low", "high", NULL};
    orr_yaml_value map, one;
    if (!orr_yaml_find(top, "interval", &map))
        return ORR_OK;
    orr_code code = orr_yaml_check_keys(map, keys, err);
    for (int i = 0; i < 3 && !code; i++) {
        if (!orr_yaml_find(map, keys[i], &one))
            continue;
        code = orr_yaml_check_keys(one, sides, err);
        if (!code)
            code = orr_yaml_take_number(one, "low", 1e-3, 1, &k->spread[i].low, err);
        if (!code)
            code = orr_yaml_take_number(one, "high", 1, 1e3, &k->spread[i].high, err);
    }
    return code;
}

static orr_code take_bytes(orr_yaml_value map, const char *key, uint64_t *out, orr_error *err)
{
    char text[64];
    orr_yaml_value v;
    orr_bytes n;
    if (!orr_yaml_find(map, key, &v))
        return ORR_OK;
    const orr_where w = orr_yaml_where(v);
    const orr_str s = orr_yaml_text(v);
    bool fits = orr_yaml_type_of(v) == ORR_YAML_SCALAR && s.len > 0 && s.len < sizeof text &&
                !memchr(s.ptr, '\0', s.len);
    if (fits) {
        memcpy(text, s.ptr, s.len);
        text[s.len] = '\0';
        fits = orr_bytes_parse(text, &n, NULL) == ORR_OK && n > 0;
    }
    if (!fits)
        return orr_fail(err, ORR_EINPUT, &w, "%s: expected a size above 0, e.g. 64KiB", key);
    *out = n;
    return ORR_OK;
}

static orr_code take_range(
    orr_yaml_value map, const char *key, uint32_t *from, uint32_t *to, orr_error *err)
{
    orr_yaml_value v;
    uint64_t a, b;
    *from = 1;
    *to = UINT32_MAX;
    if (!orr_yaml_find(map, key, &v))
        return ORR_OK;
    const orr_where w = orr_yaml_where(v);
    if (orr_yaml_type_of(v) != ORR_YAML_SCALAR || !orr_text_range(orr_yaml_text(v), &a, &b) ||
        a > b || b > UINT32_MAX)
        return orr_fail(err, ORR_EINPUT, &w, "%s: expected a number or a range, e.g. 2-8", key);
    *from = (uint32_t)a;
    *to = (uint32_t)b;
    return ORR_OK;
}

static orr_code take_rule(orr_yaml_value map, nccl_rule *r, orr_error *err)
{
    static const char *const keys[] = {"op",        "below",    "ranks", "nodes",
                                       "algorithm", "protocol", NULL};
    orr_yaml_value v;
    unsigned kind = 0, algorithm = 0, protocol = NCCL_SIMPLE;
    r->below = UINT64_MAX;
    orr_code code = orr_yaml_check_keys(map, keys, err);
    if (!code)
        code = orr_yaml_need(map, "op", &v, err);
    if (!code)
        code = orr_yaml_need(map, "algorithm", &v, err);
    if (!code)
        code = orr_yaml_take_word(map, "op", kind_words, &kind, err);
    if (!code)
        code = orr_yaml_take_word(map, "algorithm", nccl_algorithm_words, &algorithm, err);
    if (!code)
        code = orr_yaml_take_word(map, "protocol", nccl_protocol_words, &protocol, err);
    if (!code)
        code = take_bytes(map, "below", &r->below, err);
    if (!code)
        code = take_range(map, "ranks", &r->least_ranks, &r->most_ranks, err);
    if (!code)
        code = take_range(map, "nodes", &r->least_nodes, &r->most_nodes, err);
    r->kind = (orr_collective)kind;
    r->way = (nccl_way){(uint8_t)algorithm, (uint8_t)protocol};
    return code;
}

static orr_code take_rules(orr_yaml_value top, nccl_custom *c, orr_error *err)
{
    orr_yaml_value list;
    orr_code code = ORR_OK;
    if (!orr_yaml_find(top, "choice", &list))
        return ORR_OK;
    const orr_where w = orr_yaml_where(list);
    if (orr_yaml_type_of(list) != ORR_YAML_LIST || orr_yaml_count(list) > NCCL_RULES_MOST)
        return orr_fail(err, ORR_EINPUT, &w, "choice: expected a list of at most %d rules",
                        NCCL_RULES_MOST);
    for (; c->rules < orr_yaml_count(list) && !code; c->rules++)
        code = take_rule(orr_yaml_item(list, c->rules), &c->rule[c->rules], err);
    return code;
}

static orr_code take_name(orr_yaml_value top, nccl_custom *c, orr_error *err)
{
    orr_yaml_value v;
    if (!orr_yaml_find(top, "name", &v))
        return ORR_OK;
    const orr_where w = orr_yaml_where(v);
    const orr_str s = orr_yaml_text(v);
    bool fine = orr_yaml_type_of(v) == ORR_YAML_SCALAR && s.len > 0 && s.len < sizeof c->name;
    for (size_t i = 0; fine && i < s.len; i++)
        fine = s.ptr[i] >= ' ' && s.ptr[i] < 0x7F && s.ptr[i] != '"' && s.ptr[i] != '\\';
    if (!fine)
        return orr_fail(err, ORR_EINPUT, &w, "name: expected 1 to %zu plain characters",
                        sizeof c->name - 1);
    memcpy(c->name, s.ptr, s.len);
    c->name[s.len] = '\0';
    return ORR_OK;
}

static orr_code take_all(orr_yaml_value top, nccl_custom *c, orr_error *err)
{
    static const char *const keys[] = {
        "name",  "generation", "channels", "latency", "out_latency", "LL",
        "LL128", "Simple",     "out_rate", "direct",  "nvls",        "interval",
        "rows",  "ranks",      "bytes",    "choice",  NULL};
    unsigned generation = NCCL_OTHER;
    uint64_t channels, rows = 0, ranks = 0, bytes = 0;
    orr_code code;
    if ((code = orr_yaml_check_keys(top, keys, err)) || (code = take_name(top, c, err)) ||
        (code = orr_yaml_take_word(top, "generation", generation_words, &generation, err)))
        return code;
    c->generation = (nccl_generation)generation;
    c->k = nccl_table[c->generation];
    channels = c->k.channels;
    rows = c->k.rows;
    ranks = c->k.ranks_most;
    bytes = c->k.bytes_most;
    code = orr_yaml_take_u64(top, "channels", 1, 1024, &channels, err);
    if (!code)
        code = take_ns(top, "latency", &c->k.up_latency_ns, err);
    if (!code)
        code = take_ns(top, "out_latency", &c->k.out_latency_ns, err);
    for (int p = 0; p < NCCL_PROTOCOLS && !code; p++)
        code = take_line(top, nccl_protocol_words[p], &c->k.line[p], err);
    if (!code)
        code = take_rate(top, "out_rate", &c->k.out_rate, err);
    if (!code)
        code = take_direct(top, &c->k, err);
    if (!code)
        code = take_nvls(top, &c->k, err);
    if (!code)
        code = take_interval(top, &c->k, err);
    if (!code)
        code = orr_yaml_take_u64(top, "rows", 0, UINT32_MAX, &rows, err);
    if (!code)
        code = orr_yaml_take_u64(top, "ranks", 0, UINT32_MAX, &ranks, err);
    if (!code)
        code = take_bytes(top, "bytes", &bytes, err);
    c->k.channels = (uint32_t)channels;
    c->k.rows = (uint32_t)rows;
    c->k.ranks_most = (uint32_t)ranks;
    c->k.bytes_most = bytes;
    return code ? code : take_rules(top, c, err);
}

orr_code nccl_custom_parse(orr_span bytes, const char *label, nccl_custom *out, orr_error *err)
{
    orr_yaml *y;
    orr_code code = orr_yaml_open(bytes, label, &y, err);
    if (code)
        return code;
    memset(out, 0, sizeof *out);
    code = take_all(orr_yaml_root(y), out, err);
    orr_yaml_close(y);
    return code;
}

orr_code nccl_custom_open(const char *collectives, nccl_custom **out, orr_error *err)
{
    static const char *const built_in[] = {"nccl", "rccl", "torus", "none"};
    orr_input *in;
    *out = NULL;
    for (size_t i = 0; i < sizeof built_in / sizeof *built_in; i++)
        if (strcmp(collectives, built_in[i]) == 0)
            return ORR_OK;
    orr_code code = orr_input_open(collectives, &in, err);
    if (code)
        return code;
    nccl_custom *c = orr_alloc(1, sizeof *c);
    code = c ? nccl_custom_parse(orr_input_bytes(in), collectives, c, err) : orr_no_memory(err);
    orr_input_close(in);
    if (code)
        orr_free(c);
    else
        *out = c;
    return code;
}

/* ---- writing ---- */

static void put_line(orr_pen *t, const char *word, const nccl_line *l)
{
    orr_pen_put(t, "%s:\n", word);
    orr_pen_put(t, "  base: %.0fns\n  grow: %.0fns\n  step: %.0fns\n  step_grow: %.0fns\n",
                l->base_ns, l->grow_ns, l->up_ns, l->up_grow_ns);
    orr_pen_put(
        t, "  out_step: %.0fns\n  tree_step: %.0fns\n  rate: %.4f\n  ends: %.3f\n  drain: %.0fns\n",
        l->out_ns, l->tree_ns, l->rate, l->ends, l->drain_ns);
}

size_t nccl_custom_text(const nccl_custom *c, char *out, size_t size)
{
    static const char *const classes[] = {"small", "middle", "large"};
    const nccl_constants *k = &c->k;
    orr_pen t = {out, size, 0};
    if (c->name[0])
        orr_pen_put(&t, "name: \"%s\"\n", c->name);
    orr_pen_put(&t, "generation: %s\nchannels: %" PRIu32 "\n", generation_words[c->generation],
                k->channels);
    orr_pen_put(&t, "latency: %.0fns\nout_latency: %.0fns\n", k->up_latency_ns, k->out_latency_ns);
    for (int p = 0; p < NCCL_PROTOCOLS; p++)
        put_line(&t, nccl_protocol_words[p], &k->line[p]);
    orr_pen_put(&t, "out_rate: %.4f\n", k->out_rate);
    orr_pen_put(
        &t,
        "direct:\n  base: %.0fns\n  grow: %.0fns\n  peer: %.0fns\n  rate: %.4f\n  drain: %.0fns\n",
        k->direct_ns, k->direct_grow_ns, k->peer_ns, k->direct_rate, k->direct_drain_ns);
    orr_pen_put(&t, "nvls:\n  base: %.0fns\n  turn: %.0fns\n  rate: %.4f\n", k->nvls_ns,
                k->nvls_loop_ns, k->nvls_rate);
    orr_pen_put(&t, "interval:\n");
    for (int i = 0; i < 3; i++)
        orr_pen_put(&t, "  %s: {low: %.3f, high: %.3f}\n", classes[i], k->spread[i].low,
                    k->spread[i].high);
    orr_pen_put(&t, "rows: %" PRIu32 "\nranks: %" PRIu32 "\n", k->rows, k->ranks_most);
    if (k->bytes_most)
        orr_pen_put(&t, "bytes: %" PRIu64 "B\n", k->bytes_most);
    return t.used;
}
