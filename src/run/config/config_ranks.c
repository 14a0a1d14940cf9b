/* SPDX-License-Identifier: Apache-2.0 */
/* config_ranks.c - heterogeneous ranks, and slow or failed links, from a file (YAML or JSON;
 * docs/format/ranks.md).
 *
 * An entry overrides the settings of earlier ones for a rank; other settings stay. */
#include "config.h"

#include "base/arithmetic.h"
#include "base/formats/yaml.h"
#include "base/io/input.h"

#include <inttypes.h>

const cfg_rank_speed cfg_plain_rank = {.compute = 1, .memory = 1, .host = 1};

/* Factors outside this range are certainly mistakes, and could overflow the clock. */
static const double least_factor = 1e-6, most_factor = 1e6;

/* ---- ranks ---- */

static orr_code take_speed(orr_yaml_value map, cfg_rank_speed *s, orr_error *err)
{
    double delay = (double)s->delay;
    const struct {
        const char *key;
        double *value;
    } factors[] = {{"compute", &s->compute}, {"memory", &s->memory}, {"host", &s->host}};
    orr_code code = orr_yaml_take_ns(map, "delay", &delay, err);
    for (size_t i = 0; i < 3 && !code; i++)
        code = orr_yaml_take_number(map, factors[i].key, least_factor, most_factor,
                                    factors[i].value, err);
    s->delay = orr_ticks(delay);
    return code;
}

static orr_code take_range(
    orr_yaml_value map, orr_yaml_value v, uint32_t ranks, cfg_rank_speed *speeds, orr_error *err)
{
    const orr_where w = orr_yaml_where(v);
    const orr_str text = orr_yaml_text(v);
    uint64_t from, to;
    if (!orr_text_range(text, &from, &to) || from > to)
        return orr_fail(err, ORR_EINPUT, &w, "ranks: \"%.*s\" is not a rank or a range, as 3-7",
                        (int)(text.len < 60 ? text.len : 60), text.ptr);
    if (to >= ranks)
        return orr_fail(err, ORR_EINPUT, &w, "rank %" PRIu64 ": the last of the %u ranks is %u", to,
                        ranks, ranks - 1);
    orr_code code = ORR_OK;
    for (uint64_t r = from; r <= to && !code; r++)
        code = take_speed(map, &speeds[r], err);
    return code;
}

static orr_code take_rank(orr_yaml_value map,
                          uint32_t ranks,
                          cfg_rank_speed *speeds,
                          orr_error *err)
{
    static const char *const keys[] = {"ranks", "compute", "memory", "host", "delay", NULL};
    orr_yaml_value v;
    orr_code code = orr_yaml_check_keys(map, keys, err);
    if (!code)
        code = orr_yaml_need(map, "ranks", &v, err);
    if (code)
        return code;
    if (orr_yaml_type_of(v) != ORR_YAML_LIST)
        return take_range(map, v, ranks, speeds, err);
    for (uint32_t i = 0; i < orr_yaml_count(v) && !code; i++)
        code = take_range(map, orr_yaml_item(v, i), ranks, speeds, err);
    return code;
}

/* ---- links ---- */

static orr_code take_device(
    orr_yaml_value v, const char *key, orr_arena *a, const char **out, orr_error *err)
{
    const orr_str text = orr_yaml_text(v);
    const orr_where w = orr_yaml_where(v);
    if (text.len == 0 || memchr(text.ptr, '\0', text.len))
        return orr_fail(err, ORR_EINPUT, &w, "%s: expected a rank or the name of a switch", key);
    *out = orr_arena_text(a, text);
    return *out ? ORR_OK : orr_no_memory(err);
}

/* A single value or a list. */
static orr_code take_end(
    orr_yaml_value map, const char *key, orr_arena *a, const char *const **out, orr_error *err)
{
    orr_yaml_value v;
    orr_code code = orr_yaml_need(map, key, &v, err);
    if (code)
        return code;
    const bool is_list = orr_yaml_type_of(v) == ORR_YAML_LIST;
    const uint32_t count = is_list ? orr_yaml_count(v) : 1;
    const orr_where w = orr_yaml_where(v);
    if (count == 0)
        return orr_fail(err, ORR_EINPUT, &w, "%s: the list is empty", key);
    const char **texts = orr_arena_new(a, (size_t)count + 1, const char *);
    if (!texts)
        return orr_no_memory(err);
    for (uint32_t i = 0; i < count && !code; i++)
        code = take_device(is_list ? orr_yaml_item(v, i) : v, key, a, &texts[i], err);
    *out = texts;
    return code;
}

static orr_code take_link(orr_yaml_value map, orr_arena *a, orr__link_change *c, orr_error *err)
{
    static const char *const keys[] = {"from",    "to",     "bandwidth", "latency",
                                       "one_way", "failed", NULL};
    *c = (orr__link_change){.bandwidth = 1, .latency = 1, .where = orr_yaml_where(map)};
    orr_code code;
    if ((code = orr_yaml_check_keys(map, keys, err)) ||
        (code = take_end(map, "from", a, &c->from, err)) ||
        (code = take_end(map, "to", a, &c->to, err)) ||
        (code = orr_yaml_take_number(map, "bandwidth", least_factor, most_factor, &c->bandwidth,
                                     err)) ||
        (code = orr_yaml_take_number(map, "latency", 0, most_factor, &c->latency, err)) ||
        (code = orr_yaml_take_bool(map, "one_way", &c->is_one_way, err)))
        return code;
    return orr_yaml_take_bool(map, "failed", &c->is_failed, err);
}

/* ---- the whole file ---- */

static orr_code find_list(orr_yaml_value root, const char *key, orr_yaml_value *out, orr_error *err)
{
    *out = (orr_yaml_value){root.doc, 0};
    if (!orr_yaml_find(root, key, out))
        return ORR_OK;
    const orr_where w = orr_yaml_where(*out);
    if (orr_yaml_type_of(*out) != ORR_YAML_LIST)
        return orr_fail(err, ORR_EINPUT, &w, "%s: expected a list", key);
    return ORR_OK;
}

static orr_code take_ranks_file(
    orr_yaml_value root, uint32_t ranks, orr_arena *a, cfg_ranks *out, orr_error *err)
{
    static const char *const keys[] = {"ranks", "links", NULL};
    orr_yaml_value list, links;
    orr_code code;
    if ((code = orr_yaml_check_keys(root, keys, err)) ||
        (code = find_list(root, "ranks", &list, err)) ||
        (code = find_list(root, "links", &links, err)))
        return code;
    out->speeds = orr_arena_new(a, ranks, cfg_rank_speed);
    out->changes = orr_arena_new(a, (size_t)orr_yaml_count(links) + 1, orr__link_change);
    if (!out->speeds || !out->changes)
        return orr_no_memory(err);
    for (uint32_t r = 0; r < ranks; r++)
        out->speeds[r] = cfg_plain_rank;
    for (uint32_t i = 0; i < orr_yaml_count(list) && !code; i++)
        code = take_rank(orr_yaml_item(list, i), ranks, out->speeds, err);
    for (uint32_t i = 0; i < orr_yaml_count(links) && !code; i++)
        code = take_link(orr_yaml_item(links, i), a, &out->changes[out->change_count++], err);
    return code;
}

orr_code cfg_parse_ranks(
    orr_span bytes, const char *path, uint32_t ranks, orr_arena *a, cfg_ranks *out, orr_error *err)
{
    orr_yaml *y;
    *out = (cfg_ranks){0};
    orr_code code = orr_yaml_open(bytes, path, &y, err);
    if (code)
        return code;
    code = take_ranks_file(orr_yaml_root(y), ranks, a, out, err);
    orr_yaml_close(y);
    return code;
}

orr_code cfg_read_ranks(
    const char *path, uint32_t ranks, orr_arena *a, cfg_ranks *out, orr_error *err)
{
    orr_input *in;
    orr_code code = orr_input_open(path, &in, err);
    if (code)
        return code;
    code = cfg_parse_ranks(orr_input_bytes(in), path, ranks, a, out, err);
    orr_input_close(in);
    return code;
}
